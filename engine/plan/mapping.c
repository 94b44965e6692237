/* mapping.c - matches the axes of image and network, and describes the output's image. */
#include "engine/plan/mapping.h"

#include "engine/base/arith.h"
#include "engine/plan/mapping_refuse.h"

#include <stdio.h>
#include <string.h>

/* ---- Input ------------------------------------------------------------------------------- */

typedef struct plane_axis {
    char letter;
    int64_t size, stride;
} plane_axis;

static int plane_axes(const tgi_image_info *info, plane_axis *out)
{
    int n = 0;
    for (int i = 0; i < info->n_axes; i++)
        if (!strchr("YXS", info->axes[i]))
            out[n++] = (plane_axis){info->axes[i], info->shape[i], 0};
    int64_t stride = 1;
    for (int i = n - 1; i >= 0; i--) {
        out[i].stride = stride;
        stride *= out[i].size;
    }
    return n;
}

static int find_axis(const plane_axis *a, int n, char letter)
{
    for (int i = 0; i < n; i++)
        if (a[i].letter == letter)
            return i;
    return -1;
}

/* The axis whose planes together feed the network, or -1: C, or where it has one entry at most
 * the only axis with more; slices of a volume are never taken for channels. */
static int channels_of(const plane_axis *a, int n)
{
    const int c = find_axis(a, n, 'C');
    int only = -1, many = 0;
    for (int i = 0; i < n; i++)
        if (a[i].size > 1) {
            only = i;
            many++;
        }
    return many == 1 && (c < 0 || a[c].size == 1) && a[only].letter != 'Z' ? only : c;
}

/* The network takes the colours, and what follows them is something else. */
static int is_all_but_alpha(const tgi_mapping *m, const tgi_image_info *info)
{
    return info->samples > m->channels &&
           (m->channels == info->meta.colours ||
            (info->meta.alpha && info->samples == m->channels + 1));
}

/* `--planes` names as many planes of the only long axis as the network has channels, equally
 * far apart: they feed it together. */
static int take_chosen(tgi_mapping *m, const tgi_image_info *info, const plane_axis *a, int n,
                       const tgi_planes_spec *chosen)
{
    int64_t count;
    tgi_err unused = {0};
    tgi_planes_spec p;
    if (!chosen || chosen->n < 1 || info->samples > 1)
        return -1;
    p = *chosen;
    const int c = channels_of(a, n);
    for (int i = 0; i < n; i++)
        if (i != c && a[i].size > 1)
            return -1;
    if (c < 0 || tgi_planes_resolve(&p, a[c].size, &count, &unused) != TG_OK ||
        count != m->channels)
        return -1;
    const int64_t first = tgi_planes_at(&p, 0), step = tgi_planes_at(&p, 1) - first;
    for (int64_t k = 2; k < count; k++)
        if (tgi_planes_at(&p, k) != first + k * step)
            return -1;
    m->first_plane = first;
    m->channel_stride = step;
    m->planes_are_channels = 1;
    return c;
}

static tg_status take_channels(tgi_mapping *m, const tgi_image_info *info, const plane_axis *a,
                               int n, const tgi_mapping_opts *o, int *channel_axis,
                               tgi_err *err)
{
    const int c = channels_of(a, n);
    *channel_axis = -1;
    if (m->channels == 1) {
        m->left_out = info->samples > 1 && info->meta.alpha;
        m->loops_samples = info->samples - m->left_out > 1;
        return TG_OK;
    }
    if (info->samples == m->channels || is_all_but_alpha(m, info)) {
        m->from_samples = 1;
        m->left_out = info->samples - (int)m->channels;
        return TG_OK;
    }
    *channel_axis = take_chosen(m, info, a, n, o->planes);
    if (*channel_axis >= 0)
        return TG_OK;
    if (c >= 0 && a[c].size == m->channels && info->samples == 1) {
        *channel_axis = c;
        m->channel_stride = a[c].stride;
        return TG_OK;
    }
    if (o->choice.text)
        return tgi_mapping_refuse_choice(m, o, err);
    if (info->meta.stored_as == TGI_STORED_CMYK)
        return tgi_fail(
            err, TG_E_ARG,
            "the network takes %lld channels; the image is CMYK, %d inks a pixel, and "
            "is not converted: make an RGB image of it first",
            (long long)m->channels, info->samples);
    const long long has = c >= 0 ? (long long)a[c].size : 1;
    if (strcmp(info->format, "film") == 0 && info->samples == 1 && m->channels == 3)
        return tgi_fail(
            err, TG_E_ARG,
            "the network takes 3 channels, and frames of the film are grey: make colours of it "
            "first, `ffmpeg -i IN -c:v ffv1 -pix_fmt gbrp -c:a copy OUT.mkv`%s",
            info->n_planes > 2 ? ", or give --window 3, if it takes frames together" : "");
    if (n == 0 && info->samples == 1 && m->channels == 3 &&
        (info->dtype == TG_DTYPE_U8 || info->dtype == TG_DTYPE_U16))
        return tgi_err_try(
            err,
            tgi_fail(err, TG_E_ARG,
                     "the network takes 3 channels, and the image (axes %s) is grey: make "
                     "an image of red, green and blue of it first, "
                     "`ffmpeg -i IN -pix_fmt %s OUT.png`, choose another, or give it as all "
                     "three, --channels 0,0,0",
                     info->axes, info->dtype == TG_DTYPE_U8 ? "rgb24" : "rgb48be"),
            TGI_TRY_CHANNELS, "0,0,0");
    const int seen = info->samples - (info->meta.alpha ? 1 : 0);
    if (find_axis(a, n, 'T') >= 0 && seen > 1 && m->channels % seen == 0)
        return tgi_fail(
            err, TG_E_ARG,
            "the network takes %lld channels, a frame has %d: --window %lld gives it as "
            "many frames at once, if that is what it takes",
            (long long)m->channels, seen, (long long)(m->channels / seen));
    if (info->samples > 1)
        return tgi_mapping_refuse_samples(m, o, info, err);
    if (c >= 0 && a[c].letter != 'C')
        return tgi_fail(err, TG_E_ARG,
                        "the network takes %lld channels, the image (axes %s) has %lld planes: "
                        "choose %s, or "
                        "name its axes with --axes",
                        (long long)m->channels, info->axes, has,
                        has > m->channels ? "as many of them with --planes"
                                          : "an image that matches");
    return tgi_mapping_refuse_channels(m, o, info, has, err);
}

static tg_status take_depth(tgi_mapping *m, const tgi_image_info *info, const plane_axis *a,
                            int n, int channel_axis, int *depth_axis, tgi_err *err)
{
    *depth_axis = -1;
    if (m->spatial == 2)
        return TG_OK;
    *depth_axis = find_axis(a, n, 'Z');
    if (*depth_axis < 0 && n - (channel_axis >= 0) == 1)
        *depth_axis = channel_axis == 0 ? 1 : 0;
    if (*depth_axis < 0)
        return tgi_fail(err, TG_E_ARG,
                        "the network works on volumes and the image (axes %s) has no Z axis: "
                        "name its axes with --axes",
                        info->axes);
    m->depth_stride = a[*depth_axis].stride;
    m->extent[0] = a[*depth_axis].size;
    return TG_OK;
}

static void take_loops(tgi_mapping *m, const tgi_image_info *info, const plane_axis *a, int n,
                       int channel_axis, int depth_axis)
{
    m->n_items = 1;
    m->stats_axis = -1;
    m->n_stats = 1;
    for (int i = 0; i < n; i++) {
        if (i == channel_axis || i == depth_axis)
            continue;
        if (a[i].letter == 'C')
            m->stats_axis = m->n_loop;
        m->loop[m->n_loop++] = (tgi_loop_axis){a[i].letter, a[i].size, a[i].stride};
        m->n_items *= a[i].size;
    }
    if (m->loops_samples) {
        if (m->stats_axis < 0)
            m->stats_axis = m->n_loop;
        m->loop[m->n_loop++] = (tgi_loop_axis){find_axis(a, n, 'C') < 0 ? 'C' : 'Q',
                                               info->samples - m->left_out, 0};
        m->n_items *= info->samples - m->left_out;
    }
    if (m->stats_axis >= 0)
        m->n_stats = m->loop[m->stats_axis].size;
}

static tg_status fit_extents(tgi_mapping *m, const tgi_graph *g, const tgi_mapping_opts *o,
                             tgi_err *err)
{
    for (int i = 0; i < 3 - m->spatial; i++)
        m->fit[i] = (tgi_fit){.size = 1, .out = 1, .place = {.up = 1, .down = 1}};
    for (int i = 3 - m->spatial; i < 3; i++)
        TGI_TRY(o->in_boxes ? tgi_fit_axis_in_boxes(g, i, m->extent[i], o->same_size,
                                                    o->core[i], &m->fit[i], err)
                            : tgi_fit_axis(g, i, m->extent[i], o->same_size, &m->fit[i], err));
    return TG_OK;
}

int tgi_mapping_boxed(const tgi_mapping *m)
{
    return m->fit[0].box || m->fit[1].box || m->fit[2].box;
}

/* Sets of statistics of an item. */
static int64_t each(const tgi_mapping *m)
{
    return m->stats_each > 1 ? m->stats_each : 1;
}

int64_t tgi_net_channels(const tgi_graph *g)
{
    const tgi_port *p = &g->in[0];
    return p->perm[1] >= 0 ? p->file_dim[p->perm[1]] : 1;
}

tg_status tgi_mapping_input(const tgi_graph *g, const tgi_image_info *info,
                            const tgi_mapping_opts *o, tgi_mapping *m, tgi_desc *in_desc,
                            tgi_err *err)
{
    plane_axis a[TGI_IMAGE_MAX_AXES];
    int channel_axis, depth_axis;
    memset(m, 0, sizeof *m);
    const int n = plane_axes(info, a);
    m->spatial = g->spatial;
    m->pad = o->pad;
    m->appended = o->appended;
    m->channels = tgi_net_channels(g) - o->appended;
    if (m->channels < 1)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the network does not say how many channels it takes");
    m->extent[0] = 1;
    m->extent[1] = info->height;
    m->extent[2] = info->width;
    TGI_TRY(take_channels(m, info, a, n, o, &channel_axis, err));
    TGI_TRY(take_depth(m, info, a, n, channel_axis, &depth_axis, err));
    take_loops(m, info, a, n, channel_axis, depth_axis);
    if (o->roi) {
        tgi_range r[3];
        const int64_t whole[3] = {m->extent[0], m->extent[1], m->extent[2]};
        TGI_TRY(tgi_roi_resolve(o->roi, whole, r, err));
        for (int i = 0; i < 3; i++) {
            m->origin[i] = r[i].lo;
            m->extent[i] = tgi_range_len(r[i]);
        }
    }
    if (o->planes && o->planes->n > 0 && !m->planes_are_channels) {
        m->planes = *o->planes;
        TGI_TRY(tgi_planes_resolve(&m->planes, m->n_items, &m->n_items, err));
    }
    m->stats_by_item = o->stats_by_item;
    m->stats_each = o->stats_by_channel ? m->channels : 0;
    m->n_stats = (m->stats_by_item ? m->n_items : m->n_stats) * each(m);
    m->own.channels = (tgi_range){0, m->channels};
    m->own.slices = (tgi_range){0, m->extent[0]};
    TGI_TRY(fit_extents(m, g, o, err));
    *in_desc = (tgi_desc){TG_DTYPE_F32, m->spatial + 2, {1, m->channels + m->appended}};
    for (int i = 0; i < m->spatial; i++) {
        const tgi_fit *f = &m->fit[3 - m->spatial + i];
        in_desc->dim[2 + i] = f->box ? f->box : f->size;
    }
    return TG_OK;
}

/* ---- Output ------------------------------------------------------------------------------ */

/* Append an axis of the output; axes of planes come before Y, X. */
static void add_axis(tgi_mapping *m, int *n, char letter, int64_t size)
{
    m->out_axes[*n] = letter;
    m->out_shape[(*n)++] = size;
}

static tg_status list_axes(tgi_mapping *m, const tgi_image_info *info, tgi_err *err)
{
    int n = 0, at = 0, has_c = 0;
    const int new_c = m->out_channels > 1 && !m->out_samples;
    if (m->n_loop + 3 + new_c + (m->spatial == 3) > TGI_IMAGE_MAX_AXES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the output would have more than %d axes",
                        TGI_IMAGE_MAX_AXES);
    if (m->planes.n > 0) {
        char letter[TGI_IMAGE_MAX_AXES];
        int64_t size[TGI_IMAGE_MAX_AXES];
        for (int i = 0; i < m->n_loop; i++) {
            letter[i] = m->loop[i].letter;
            size[i] = m->loop[i].size;
        }
        m->chosen = tgi_chosen_axis(&m->planes, m->n_items, m->n_loop, letter, size);
        if (m->chosen.letter) /* OME has no axis of anything: such planes are in turn */
            add_axis(m, &n,
                     m->chosen.letter == 'I' && strcmp(info->flavor, "ome") == 0
                         ? 'T'
                         : m->chosen.letter,
                     m->n_items);
        has_c |= m->chosen.letter == 'C';
    } else {
        for (int i = 0; i < info->n_axes; i++) {
            const char c = info->axes[i];
            if (at < m->n_loop && m->loop[at].letter == c && m->loop[at].stride) {
                const int64_t size = m->loop[at++].size;
                if (c == 'C' && size == 1 &&
                    new_c) /* the network's channels are in its place */
                    continue;
                add_axis(m, &n, c, size);
                has_c |= c == 'C';
            }
        }
        if (m->loops_samples) {
            has_c |= m->loop[m->n_loop - 1].letter == 'C';
            add_axis(m, &n, m->loop[m->n_loop - 1].letter, m->loop[m->n_loop - 1].size);
        }
    }
    if (m->spatial == 3 && tgi_range_len(m->own.slices) == m->extent[0])
        add_axis(m, &n, 'Z', m->out_extent[0]);
    if (new_c)
        add_axis(m, &n, has_c ? 'Q' : 'C', m->out_channels);
    add_axis(m, &n, 'Y', m->out_extent[1]);
    add_axis(m, &n, 'X', m->out_extent[2]);
    if (m->out_samples)
        add_axis(m, &n, 'S', m->out_channels);
    m->out_axes[n] = 0;
    return TG_OK;
}

tg_status tgi_mapping_output(tgi_mapping *m, const tgi_image_info *info,
                             const tgi_desc *in_desc, const tgi_desc *out_desc, tgi_err *err)
{
    if (out_desc->rank != in_desc->rank)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the network's output has rank %d, its input %d: feed it .npy arrays",
                        out_desc->rank, in_desc->rank);
    m->out_channels = out_desc->dim[1];
    m->out_samples = m->from_samples && m->out_channels > 1 && m->out_channels <= 4;
    for (int i = 0; i < 3; i++)
        m->out_extent[i] = m->fit[i].out;
    TGI_TRY(list_axes(m, info, err));
    m->out_channel_stride = m->out_samples ? 0 : 1;
    m->out_depth_stride = m->out_samples ? 1 : m->out_channels;
    m->out_item_stride = m->out_depth_stride * m->out_extent[0];
    return TG_OK;
}

/* How long axis k of the source is. */
static int64_t whole_of(const tgi_image_info *info, int k)
{
    const char *z = strchr(info->axes, 'Z');
    return k == 2 ? info->width : k == 1 ? info->height : z ? info->shape[z - info->axes] : 1;
}

/* Where points of the input lie in the output, along axis k. */
static void move_along(const tgi_mapping *m, int k, double scale, int64_t whole,
                       tgi_ome_place *p)
{
    const tgi_fit *f = &m->fit[k];
    if (k == 0 && scale == 1)
        p->first_z += m->origin[0];
    else if (k == 0)
        p->no_planes = p->other_slices = 1;
    if (k == 0 || scale > 0)
        p->extent[k] = m->extent[k] < whole ? m->out_extent[k] : 0;
    if (k == 0 || scale <= 0)
        return;
    const double was = p->scale[k - 1] > 0 ? p->scale[k - 1] : 1;
    p->shift[k - 1] = scale * (p->shift[k - 1] + (double)(m->origin[k] - f->before)) +
                      (double)(f->place.lead + f->crop);
    p->scale[k - 1] = was * scale;
}

/* Of a network of one channel that ran over each colour of a pixel. */
static void name_colours(const tgi_mapping *m, const tgi_image_info *info, tgi_image_meta *out)
{
    static char red[] = "red", green[] = "green", blue[] = "blue", alpha[] = "alpha";
    static char *name[] = {red, green, blue, alpha};
    static uint32_t color[] = {0xff0000ff, 0x00ff00ff, 0x0000ffff, 0};
    const tgi_image_meta *in = &info->meta;
    const int n = m->loops_samples ? (int)m->loop[m->n_loop - 1].size : 0,
              named = in->n_channels && in->channel_name && in->channel_name[0];
    if (named || info->meta.colours != 3 || info->meta.stored_as || m->planes.n || n < 3 ||
        n > 4 || (n == 4 && !info->meta.alpha) || m->loop[m->n_loop - 1].letter != 'C')
        return;
    out->channel_name = name;
    out->channel_color = color;
    out->n_channels = n;
}

/* Values are not the input's any more: no display ranges. Lookup tables colour whatever is
 * shown, so they stay with their channels. */
void tgi_mapping_meta(const tgi_mapping *m, const tgi_image_info *info, tgi_image_meta *out)
{
    const int same_samples =
        m->from_samples ? m->out_samples && m->out_channels == m->channels : info->samples == 1;
    int keeps_c = 0;
    *out = info->meta;
    for (int k = 3 - m->spatial; k < 3; k++) {
        const tgi_place *p = &m->fit[k].place;
        const double scale = p->up > 0 && p->down > 0 ? (double)p->up / (double)p->down : 0;
        out->physical[k] = scale > 0 ? out->physical[k] / scale : 0;
        if (k > 0)
            out->resolution[k - 1] *= scale;
        move_along(m, k, scale, whole_of(info, k), &out->ome_place);
    }
    for (int i = 0; i < m->n_loop && !m->planes.n; i++)
        keeps_c |= m->loop[i].letter == 'C' && m->loop[i].stride &&
                   m->loop[i].size == info->meta.n_channels;
    const int one = info->meta.n_luts == 1 && m->out_channels == 1 && !m->from_samples;
    if (!keeps_c) {
        out->n_channels = 0;
        name_colours(m, info, out);
    }
    out->ome_place.any_channel |= !keeps_c && !m->from_samples;
    out->ome_place.no_planes |= m->planes.n > 0;
    const int new_c = m->out_channels > 1 && !m->out_samples;
    out->ome_place.any_channel |= new_c;
    if ((!keeps_c && !one) || new_c)
        out->n_luts = 0;
    if (!strchr(m->out_axes, 'C') || new_c || m->planes.n)
        out->mode = 0;
    if (!strchr(m->out_axes, 'T'))
        out->time_increment = 0;
    if (m->planes.n > 0) {
        out->time_increment = m->chosen.letter == 'I'
                                  ? 0
                                  : tgi_chosen_scale(&m->chosen, 'T', out->time_increment);
        out->physical[0] =
            m->chosen.letter == 'I' ? 0 : tgi_chosen_scale(&m->chosen, 'Z', out->physical[0]);
    }
    if (!same_samples)
        out->icc_bytes = 0;
    if (m->planes.n || m->planes_are_channels || m->out_channels > 1 || m->spatial == 3 ||
        m->from_samples)
        out->n_labels = 0;
    out->n_ranges = 0;
    out->ome_place.other_values = 1;
    out->stored_as = TGI_STORED_LIGHT;
    if (!same_samples || m->left_out)
        out->alpha = 0;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static int64_t loop_item(const tgi_mapping *m, int64_t item)
{
    return m->planes.n > 0 ? tgi_planes_at(&m->planes, item) : item;
}

int64_t tgi_mapping_plane(const tgi_mapping *m, int64_t item, int64_t z, int *sample)
{
    int64_t k = loop_item(m, item),
            plane = m->first_plane + (m->origin[0] + z) * m->depth_stride;
    *sample = 0;
    for (int i = m->n_loop - 1; i >= 0; i--) {
        const int64_t at = k % m->loop[i].size;
        k /= m->loop[i].size;
        if (m->loops_samples && i == m->n_loop - 1)
            *sample = (int)at;
        else
            plane += at * m->loop[i].stride;
    }
    return plane;
}

int64_t tgi_mapping_stats_of(const tgi_mapping *m, int64_t item)
{
    int64_t k = loop_item(m, item), at = 0;
    if (m->stats_by_item)
        return item * each(m);
    for (int i = m->n_loop - 1; i >= 0; i--) {
        if (i == m->stats_axis)
            at = k % m->loop[i].size;
        k /= m->loop[i].size;
    }
    return at * each(m);
}

int64_t tgi_mapping_out_plane(const tgi_mapping *m, int64_t item, int64_t z, int64_t c)
{
    return item * m->out_item_stride + z * m->out_depth_stride + c * m->out_channel_stride;
}

int64_t tgi_pad_index(tgi_pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == TGI_PAD_ZERO)
        return -1;
    if (mode == TGI_PAD_EDGE || n == 1)
        return i < 0 ? 0 : n - 1;
    const int64_t period = 2 * (n - 1);
    int64_t k = i % period;
    if (k < 0)
        k += period;
    return k < n ? k : period - k;
}

tgi_range tgi_pad_hull(tgi_pad_mode mode, tgi_range r, int64_t n)
{
    tgi_range h = tgi_range_clip(r, 0, n);
    if (tgi_range_empty(h))
        h = (tgi_range){n, 0};
    for (int64_t i = r.lo; i < r.hi; i++) {
        if (i >= 0 && i < n) { /* inside: no need to look at each */
            i = tgi_min(r.hi, n) - 1;
            continue;
        }
        const int64_t k = tgi_pad_index(mode, i, n);
        if (k < 0)
            continue;
        h.lo = tgi_min(h.lo, k);
        h.hi = tgi_max(h.hi, k + 1);
    }
    return h.lo < h.hi ? h : (tgi_range){0, 0};
}
