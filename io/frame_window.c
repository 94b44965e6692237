/* frame_window.c - see frame_window.h. */
#include "io/frame_window.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/film_out.h"

#include <stdio.h>
#include <string.h>

typedef struct windows {
    tgi_source base;
    tgi_source *inner;
    tgi_frame_window how;
    tgi_image_info info;
    int64_t axis, stride; /* frames of the inner source, and its planes from one to the next */
    int64_t lo, hi; /* of the frames that can be read; those of the source are 0 to axis */
    int64_t c_planes, c_stride; /* its axis C, where a channel is a plane; else 1 */
    int64_t others[TGI_IMAGE_MAX_AXES], other_stride[TGI_IMAGE_MAX_AXES];
    int n_others, frame_at; /* the axes that number windows, and which of them is the frames' */
} windows;

static const windows *windows_of(const tgi_source *s);

/* ---- Axes -------------------------------------------------------------------------------- */

static int is_in_plane(char axis)
{
    return axis == 'Y' || axis == 'X' || axis == 'S';
}

/* Index of the axis of frames; -1: there is none. */
static int frame_axis(const tgi_image_info *i)
{
    int only = -1, many = 0;
    for (int k = 0; k < i->n_axes; k++) {
        if (i->axes[k] == 'T')
            return k;
        if (is_in_plane(i->axes[k]) || i->axes[k] == 'C' || i->shape[k] == 1)
            continue;
        only = k;
        many++;
    }
    return many == 1 ? only : -1;
}

static tg_status read_axes(windows *w, const tgi_image_info *in, tgi_err *err)
{
    const int frames = frame_axis(in);
    int64_t stride = 1;
    if (frames < 0)
        return tgi_fail(
            err, TG_E_ARG,
            "--window: the image (axes %s) has no axis of frames: name its axes with "
            "--axes",
            in->axes);
    w->c_planes = 1;
    for (int k = in->n_axes - 1; k >= 0; k--) {
        if (is_in_plane(in->axes[k]))
            continue;
        if (in->axes[k] == 'C') {
            w->c_planes = in->shape[k];
            w->c_stride = stride;
        } else if (k != frames && in->axes[k] == 'Z' && w->how.volume && in->shape[k] > 1) {
            return tgi_fail(
                err, TG_E_ARG,
                "--window: the network takes volumes, and slices of the image (axes "
                "%s) are no frames",
                in->axes);
        }
        if (k == frames) {
            w->axis = in->shape[k];
            w->stride = stride;
        }
        stride *= in->shape[k];
    }
    w->lo = 0;
    w->hi = w->axis;
    tgi_film_source_around(w->inner, &w->lo, &w->hi);
    return TG_OK;
}

static void add_axis(tgi_image_info *i, char letter, int64_t size)
{
    i->axes[i->n_axes] = letter;
    i->shape[i->n_axes++] = size;
}

/* T and others as they are, then Z or nothing, C, Y, X. */
static tg_status make_info(windows *w, const tgi_image_info *in, tgi_err *err)
{
    tgi_image_info *i = &w->info;
    const int frames = frame_axis(in);
    const int64_t each = w->how.channels, n = w->how.frames;
    int64_t stride = in->n_planes;
    *i = *in;
    i->n_axes = 0;
    i->samples = 1;
    i->planar_samples = 0;
    i->meta.n_channels = i->meta.n_luts = i->meta.n_ranges = i->meta.mode = i->meta.colours =
        i->meta.alpha = 0;
    i->meta.n_labels = 0;
    i->n_planes = n * each;
    for (int k = 0; k < in->n_axes; k++) {
        if (is_in_plane(in->axes[k]))
            continue;
        stride /= in->shape[k];
        if (in->axes[k] == 'C' || (w->how.volume && in->axes[k] == 'Z' && k != frames))
            continue;
        if (i->n_axes + 5 > TGI_IMAGE_MAX_AXES)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "--window: the image (axes %s) has too many axes", in->axes);
        if (k == frames)
            w->frame_at = w->n_others;
        w->others[w->n_others] = in->shape[k];
        w->other_stride[w->n_others++] = stride;
        add_axis(i, k == frames && w->how.volume ? 'T' : in->axes[k], in->shape[k]);
        i->n_planes *= in->shape[k];
    }
    if (w->how.volume)
        add_axis(i, 'Z', n);
    add_axis(i, 'C', w->how.volume ? each : n * each);
    add_axis(i, 'Y', in->height);
    add_axis(i, 'X', in->width);
    i->axes[i->n_axes] = 0;
    return TG_OK;
}

/* ---- Planes ------------------------------------------------------------------------------ */

/* Frame k, or the one that stands for it where frames end at `hi`. */
static int64_t frame_for(const windows *w, int64_t k, int64_t hi)
{
    const int64_t n = hi - w->lo;
    if (w->how.edge == TGI_WINDOW_REPEAT || n == 1)
        return tgi_clamp(k, w->lo, hi - 1);
    const int64_t period = 2 * (n - 1);
    int64_t at = (k - w->lo) % period;
    if (at < 0)
        at += period;
    return w->lo + (at < n ? at : period - at);
}

/* The inner plane, without its channel, that is frame `slot` of window number `k`. */
static int64_t inner_plane(const windows *w, int64_t k, int64_t slot, int64_t hi)
{
    int64_t plane = 0;
    for (int a = w->n_others - 1; a >= 0; a--) {
        int64_t at = k % w->others[a];
        k /= w->others[a];
        if (a == w->frame_at)
            at = frame_for(w, at + slot - (w->how.frames - 1) / 2, hi);
        plane += at * w->other_stride[a];
    }
    return plane;
}

/* The frames of window k have come, or the end of the pipe that they come through: *hi is where they end. There is a window
 * for each frame. */
static tg_status wait_for(const windows *w, int64_t k, int64_t *hi, tgi_err *err)
{
    *hi = w->hi;
    const tg_status st = tgi_film_source_reach(w->inner, k + w->how.frames / 2, hi, err);
    if (st != TG_OK && st != TG_E_CANCELLED && w->inner->path)
        tgi_err_prefix(err, "%s", w->inner->path);
    TGI_TRY(st);
    return !tgi_film_source_is_stream(w->inner) || k < *hi
               ? TG_OK
               : tgi_fail(err, TG_E_CANCELLED, "it ends behind %lld frames", (long long)*hi);
}

static tg_status windows_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                              int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                              size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    const windows *w = windows_of(base);
    const int64_t each = w->how.channels, n = w->how.frames;
    if (plane < 0 || plane >= w->info.n_planes || s0 != 0 || s1 != 1)
        return tgi_fail(err, TG_E_ARG, "a plane outside the windows of frames: %lld",
                        (long long)plane);
    const int64_t c = plane % each, slot = plane / each % n;
    int64_t hi;
    TGI_TRY(wait_for(w, plane / each / n, &hi, err));
    const int64_t from =
        inner_plane(w, plane / each / n, slot, hi) + (w->c_planes > 1 ? c * w->c_stride : 0);
    const int s = w->c_planes > 1 ? 0 : (int)c;
    return tgi_source_read(w->inner, thread, from, s, s + 1, y0, y1, x0, x1, dst, row_pitch,
                           sample_pitch, err);
}

int64_t tgi_frame_window_middle(const tgi_source *s, int64_t k)
{
    const windows *w = windows_of(s);
    return w ? inner_plane(w, k / w->how.channels / w->how.frames, (w->how.frames - 1) / 2,
                           w->hi)
             : k;
}

/* ---- The rest of a source ---------------------------------------------------------------- */

static const tgi_image_info *windows_info(const tgi_source *s)
{
    return &windows_of(s)->info;
}

static void windows_close(tgi_source **base)
{
    windows *w = (windows *)*base;
    if (!w)
        return;
    tgi_source_close(&w->inner);
    tgi_free(w);
    *base = NULL;
}

static size_t windows_bytes(const tgi_source *s)
{
    const windows *w = windows_of(s);
    return sizeof *w + w->inner->ops->codec_bytes(w->inner);
}

/* Each band reads some rows of every frame of the window. */
static tg_status windows_expect(tgi_source *s, int64_t planes, int64_t stride, tgi_err *err)
{
    const windows *w = windows_of(s);
    (void)planes;
    (void)stride;
    return w->inner->ops->expect
               ? w->inner->ops->expect(w->inner, w->how.frames, w->stride, err)
               : TG_OK;
}

static const tgi_source *windows_inner(const tgi_source *s)
{
    return windows_of(s)->inner;
}

static const tgi_source_ops windows_ops = {.format = "frames",
                                           .fuzzed = TGI_FUZZED,
                                           .info = windows_info,
                                           .read = windows_read,
                                           .close = windows_close,
                                           .codec_bytes = windows_bytes,
                                           .expect = windows_expect,
                                           .decoded_bytes = tgi_inner_decoded,
                                           .file = tgi_inner_file,
                                           .held = tgi_inner_held,
                                           .inner = windows_inner};

static const windows *windows_of(const tgi_source *s)
{
    return s && s->ops == &windows_ops ? (const windows *)s : NULL;
}

static tg_status check_channels(const windows *w, const tgi_image_info *in, tgi_err *err)
{
    const int64_t has = w->c_planes > 1 ? w->c_planes : in->samples;
    const int64_t but_alpha = in->meta.alpha && w->c_planes == 1 ? has - 1 : has;
    if (w->how.channels == has || w->how.channels == but_alpha)
        return TG_OK;
    const int64_t all = w->how.channels * w->how.frames;
    char how[120] = "choose an input that matches";
    if (all == but_alpha)
        snprintf(how, sizeof how, "leave --window out");
    else if (all % but_alpha == 0)
        snprintf(how, sizeof how, "give --window %lld%s", (long long)(all / but_alpha),
                 but_alpha == 1 && w->how.channels == 3
                     ? ", if it takes grey frames, or make colours of them first"
                     : "");
    return tgi_fail(err, TG_E_ARG,
                    "--window %d: the network takes %lld channel%s of each frame, the input "
                    "has %lld: %s",
                    w->how.frames, (long long)w->how.channels, w->how.channels == 1 ? "" : "s",
                    (long long)but_alpha, how);
}

tg_status tgi_frame_window_open(tgi_source *inner, const tgi_frame_window *how,
                                tgi_source **out, tgi_err *err)
{
    const tgi_image_info *in = inner->ops->info(inner);
    windows *w = tgi_calloc(TGI_TAG_IO, 1, sizeof *w);
    if (!w)
        return tgi_fail(err, TG_E_NOMEM, "no memory for windows of frames");
    *w = (windows){.base.ops = &windows_ops, .inner = inner, .how = *how};
    tg_status st = read_axes(w, in, err);
    if (st == TG_OK)
        st = check_channels(w, in, err);
    if (st == TG_OK)
        st = make_info(w, in, err);
    if (st == TG_OK)
        *out = &w->base;
    else
        tgi_free(w);
    return st;
}
