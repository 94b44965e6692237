/* describe.c - what a file is, as one JSON object: an image, an array, a network or weights. Headers
 * only. */
#include "engine/verbs/describe.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/graph/card.h"
#include "engine/job/descriptor.h"
#include "engine/job/job.h"
#include "engine/plan/stage.h"
#include "engine/settings/opts_source.h"
#include "engine/verbs/describe_film.h"
#include "engine/verbs/describe_weights.h"
#include "io/imagej.h"
#include "io/npy.h"
#include "io/picked.h"
#include "kernels/reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int has_suffix(const char *path, const char *suffix)
{
    const size_t n = strlen(path), k = strlen(suffix);
    return n > k && strcmp(path + n - k, suffix) == 0;
}

static void put_ints(tgi_jw *w, const char *key, const int64_t *v, int n)
{
    tgi_jw_begin(w, key, '[');
    for (int i = 0; i < n; i++)
        if (v[i] < 0)
            tgi_jw_str(w, NULL, NULL);
        else
            tgi_jw_int(w, NULL, v[i]);
    tgi_jw_end(w, ']');
}

/* ---- Images ------------------------------------------------------------------------------ */

/* What ImageJ keeps beside the pixels; the first label stands for all. */
static void put_imagej(tgi_jw *w, const tgi_image_meta *m)
{
    if (m->mode)
        tgi_jw_str(w, "display_mode", tgi_imagej_mode(m->mode));
    if (m->n_luts)
        tgi_jw_int(w, "lookup_tables", m->n_luts);
    if (m->n_ranges) {
        tgi_jw_begin(w, "display_ranges", '[');
        for (int i = 0; i < 2 * m->n_ranges; i++)
            tgi_jw_num(w, NULL, m->range[i]);
        tgi_jw_end(w, ']');
    }
    if (m->n_labels) {
        tgi_jw_int(w, "labels", m->n_labels);
        tgi_jw_str(w, "first_label", m->label[0]);
    }
}

/* Pixels per unit, as the file's tags say. */
static void put_resolution(tgi_jw *w, const tgi_image_meta *m)
{
    static const char *const unit[] = {"none", "none", "inch", "centimetre"};
    if (m->resolution_unit < 1 || m->resolution_unit > 3 || !(m->resolution[1] > 0))
        return;
    tgi_jw_begin(w, "resolution", '{');
    tgi_jw_num(w, "y", m->resolution[0]);
    tgi_jw_num(w, "x", m->resolution[1]);
    tgi_jw_str(w, "unit", unit[m->resolution_unit]);
    tgi_jw_end(w, '}');
}

/* What was said about the image. */
static void put_words(tgi_jw *w, const tgi_image_meta *m)
{
    char also[240];
    if (m->title)
        tgi_jw_str(w, "name", m->title);
    if (m->acquired)
        tgi_jw_str(w, "acquired", m->acquired);
    if (m->about)
        tgi_jw_str(w, "description", m->about);
    if (*tgi_ome_kept_words(m->ome, &m->ome_place, also, sizeof also))
        tgi_jw_str(w, "ome_only", also);
    if (m->left_behind[0])
        tgi_jw_str(w, "not_carried", m->left_behind);
    if (m->malformed[0])
        tgi_jw_str(w, "malformed", m->malformed);
}

static void put_meta(tgi_jw *w, const tgi_image_meta *m)
{
    static const char *const axis[3] = {"z", "y", "x"};
    tgi_jw_begin(w, "physical_size", '{');
    for (int i = 0; i < 3; i++) {
        if (m->physical[i] <= 0)
            continue;
        tgi_jw_begin(w, axis[i], '{');
        tgi_jw_num(w, "value", m->physical[i]);
        tgi_jw_str(w, "unit", m->unit[i]);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, '}');
    put_resolution(w, m);
    if (m->time_increment > 0)
        tgi_jw_num(w, "time_increment_seconds", m->time_increment);
    put_imagej(w, m);
    put_words(w, m);
    if (m->icc_bytes)
        tgi_jw_uint(w, "icc_profile_bytes", m->icc_bytes);
    if (m->channel_color && m->n_channels) {
        char hex[16];
        tgi_jw_begin(w, "channel_colors", '[');
        for (int i = 0; i < m->n_channels; i++) {
            const uint32_t color = m->channel_color[i] ? m->channel_color[i] : TGI_WHITE;
            snprintf(hex, sizeof hex, "#%08x", (unsigned)color);
            tgi_jw_str(w, NULL, hex);
        }
        tgi_jw_end(w, ']');
    }
    if (!m->channel_name)
        return;
    tgi_jw_begin(w, "channels", '[');
    for (int i = 0; i < m->n_channels; i++)
        tgi_jw_str(w, NULL, m->channel_name[i]);
    tgi_jw_end(w, ']');
}

/* The count; and one row each, when there is a choice. */
static void put_series(tgi_jw *w, const tgi_image_info *i)
{
    tgi_jw_int(w, "series", i->n_series);
    if (i->n_series < 2)
        return;
    tgi_jw_begin(w, "series_list", '[');
    for (int k = 0; k < i->n_series && k < TGI_IMAGE_MAX_SERIES; k++) {
        const tgi_series_info *s = &i->series[k];
        if (!s->height)
            continue;
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_int(w, "number", k);
        if (s->name[0])
            tgi_jw_str(w, "name", s->name);
        tgi_jw_int(w, "height", s->height);
        tgi_jw_int(w, "width", s->width);
        if (s->pages) {
            tgi_jw_int(w, "samples", s->samples);
            tgi_jw_int(w, "pages", s->pages);
            tgi_jw_int(w, "levels", s->n_levels);
        }
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

static void put_image(tgi_jw *w, const tgi_image_info *i)
{
    char axes[TGI_IMAGE_MAX_AXES + 1];
    memcpy(axes, i->axes, sizeof axes);
    tgi_jw_str(w, "kind", "image");
    tgi_jw_str(w, "format", i->format);
    tgi_jw_str(w, "flavor", i->flavor);
    put_ints(w, "shape", i->shape, i->n_axes);
    tgi_jw_str(w, "axes", axes);
    tgi_jw_str(w, "dtype", tgi_dtype_name(i->dtype));
    tgi_jw_str(w, "compression", i->compression);
    tgi_jw_int(w, "predictor", i->predictor);
    tgi_jw_bool(w, "tiled", i->tiled);
    tgi_jw_int(w, "block_height", i->block_h);
    tgi_jw_int(w, "block_width", i->block_w);
    tgi_jw_bool(w, "planar_samples", i->planar_samples);
    tgi_jw_bool(w, "big_endian", i->big_endian);
    tgi_jw_bool(w, "bigtiff", i->bigtiff);
    if (i->meta.orientation > 1)
        tgi_jw_int(w, "orientation", i->meta.orientation);
    if (i->meta.stored_as)
        tgi_jw_str(w, "stored_as", tgi_stored_name(i->meta.stored_as));
    if (i->meta.alpha)
        tgi_jw_str(w, "alpha", i->meta.alpha == 1 ? "associated" : "unassociated");
    tgi_jw_int(w, "planes", i->n_planes);
    put_series(w, i);
    if (i->n_files > 1)
        tgi_jw_int(w, "files", i->n_files);
    tgi_jw_uint(w, "file_bytes", i->file_bytes);
    if (i->note[0])
        tgi_jw_str(w, "note", i->note);
    tgi_jw_begin(w, "levels", '[');
    for (int k = 0; k < i->n_levels; k++) {
        const int64_t hw[2] = {i->level_h[k], i->level_w[k]};
        put_ints(w, NULL, hw, 2);
    }
    tgi_jw_end(w, ']');
    put_meta(w, &i->meta);
}

/* --planes, where they are combinations of entries of axes; else *mixed is how many there are. */
static tg_status choose_planes(const tg_opts *o, tgi_source **s, int64_t *mixed, tgi_err *err)
{
    const int64_t all = (*s)->ops->info(*s)->n_planes;
    tgi_planes_spec planes;
    int64_t n;
    int done = 0;
    tgi_opts_planes(o, &planes);
    TGI_TRY(tgi_planes_resolve(&planes, all, &n, err));
    if (n == all)
        return TG_OK;
    TGI_TRY(tgi_picked_planes(s, NULL, &planes, n, &done, err));
    *mixed = done ? 0 : n;
    return TG_OK;
}

/* The image with one plain axis of n planes, as a run or a copy makes it of such a choice. */
static tg_status make_mixed(const tgi_image_info *all, int64_t n, tgi_image_info **out,
                            tgi_err *err)
{
    tgi_image_info *i = tgi_malloc(TGI_TAG_MISC, sizeof *i);
    if (!i)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a description");
    *i = *all;
    i->n_planes = n;
    i->axes[0] = strcmp(all->flavor, "ome") == 0 ? 'T' : 'I'; /* OME has no axis of anything */
    i->shape[0] = n;
    i->n_axes = 1;
    for (int a = 0; a < all->n_axes; a++)
        if (strchr("YXS", all->axes[a])) {
            i->axes[i->n_axes] = all->axes[a];
            i->shape[i->n_axes++] = all->shape[a];
        }
    i->axes[i->n_axes] = 0;
    i->meta.n_channels = i->meta.n_made = i->meta.n_luts = i->meta.n_ranges = i->meta.mode = 0;
    i->meta.n_labels = 0;
    i->meta.time_increment = i->meta.physical[0] = 0;
    i->meta.ome = NULL;
    i->meta.channel_name = NULL;
    i->meta.channel_color = NULL;
    snprintf(
        i->note, sizeof i->note,
        "the planes that --planes names are not all combinations of some channels, slices and "
        "times: they become one plain axis, of which nothing else is known");
    *out = i;
    return TG_OK;
}

/* The rows and columns of --roi as an image of its own; its slices were chosen when it was opened. */
static tg_status put_region(tgi_jw *w, const tgi_image_info *whole, tgi_roi_spec roi,
                            tgi_err *err)
{
    const int64_t extent[3] = {1, whole->height, whole->width};
    tgi_range r[3];
    roi.ax[0] = (tgi_range){0, TGI_ROI_OPEN};
    TGI_TRY(tgi_roi_resolve(&roi, extent, r, err));
    tgi_image_info *part = tgi_malloc(TGI_TAG_MISC, sizeof *part);
    if (!part)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a description");
    *part = *whole;
    part->height = part->level_h[0] = tgi_range_len(r[1]);
    part->width = part->level_w[0] = tgi_range_len(r[2]);
    part->n_levels = 1;
    for (int a = 0; a < part->n_axes; a++)
        if (part->axes[a] == 'Y' || part->axes[a] == 'X')
            part->shape[a] = part->axes[a] == 'Y' ? part->height : part->width;
    put_image(w, part);
    tgi_free(part);
    return TG_OK;
}

static tg_status put_part(const tg_opts *o, tgi_source **s, tgi_jw *w, tgi_err *err)
{
    tgi_roi_spec roi;
    int64_t mixed = 0;
    tgi_image_info *plain = NULL;
    tg_status st = TG_OK;
    if (o)
        TGI_TRY(choose_planes(o, s, &mixed, err));
    const tgi_image_info *info = (*s)->ops->info(*s);
    if (mixed)
        TGI_TRY(make_mixed(info, mixed, &plain, err));
    if (o && tgi_opts_roi(o, &roi))
        st = put_region(w, plain ? plain : info, roi, err);
    else
        put_image(w, plain ? plain : info);
    tgi_free(plain);
    return st;
}

static tg_status describe_image(const char *path, const tg_opts *o, tgi_jw *w, tgi_err *err)
{
    tgi_open_opts opts = {.threads = 1, .truncated = 1}; /* its note says what is missing */
    tgi_source *s = NULL;
    if (o)
        TGI_TRY(tgi_opts_source_check(o, err));
    if (o) {
        tgi_opts_source(o, &opts);
        tgi_opts_source_slices(o, &opts);
    }
    TGI_TRY(tgi_source_open(path, &opts, &s, err));
    const tg_status st = put_part(o, &s, w, err);
    if (st == TG_OK)
        tgi_describe_film(w, s);
    tgi_source_close(&s);
    return st;
}

static tg_status describe_array(const char *path, tgi_jw *w, tgi_err *err)
{
    tgi_npy_in in;
    TGI_TRY(tgi_npy_open(path, &in, err));
    tgi_jw_str(w, "kind", "array");
    put_ints(w, "shape", in.head.desc.dim, in.head.desc.rank);
    tgi_jw_str(w, "dtype", tgi_dtype_name(in.head.desc.dtype));
    tgi_npy_close(&in);
    return TG_OK;
}

/* ---- Networks ---------------------------------------------------------------------------- */

/* How often each operator is there, in the order in which they come first. */
static void put_operators(tgi_jw *w, const tgi_graph *g)
{
    int counted = 0;
    tgi_jw_begin(w, "operators", '{');
    for (int i = 0; i < g->n_plain && counted < g->n_plain; i++) {
        int count = 0, seen = 0;
        for (int k = 0; k < i && !seen; k++)
            seen = g->plain[k] == g->plain[i];
        for (int k = i; k < g->n_plain && !seen; k++)
            count += g->plain[k] == g->plain[i];
        if (!seen)
            tgi_jw_int(w, g->plain[i]->name, count);
        counted += count;
    }
    tgi_jw_end(w, '}');
}

static int is_whole(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    return !tgi_node_is_known(s, n) &&
           (n->op_class == TGI_OP_WHOLE || tgi_node_is_flat(g, s, n));
}

#define NEAR 64 /* nodes before */

/* Several nodes, near each other, may do the work of one of the model's. */
static int is_named_before(const tgi_graph *g, const tgi_shapes *s, int i)
{
    for (int k = i > NEAR ? i - NEAR : 0; k < i; k++)
        if (strcmp(g->nodes[k].name, g->nodes[i].name) == 0 && is_whole(g, s, &g->nodes[k]))
            return 1;
    return 0;
}

/* Operators that read the whole of an image, and those that work on what is no image. */
static tg_status put_whole(tgi_jw *w, const tgi_graph *g, tgi_err *err)
{
    int local = 1;
    tgi_desc in[TGI_MAX_PORTS];
    tgi_shapes s;
    tgi_graph_input_descs(g, g->base, in);
    TGI_TRY(tgi_graph_infer(g, in, &s, err));
    tgi_jw_begin(w, "whole_extent_operators", '[');
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        if (is_whole(g, &s, n)) {
            if (!is_named_before(g, &s, i))
                tgi_jw_str(w, NULL, n->name);
            local = 0;
        }
    }
    tgi_jw_end(w, ']');
    tgi_jw_bool(w, "local", local);
    tgi_shapes_free(&s);
    return TG_OK;
}

static void put_ports(tgi_jw *w, const char *key, const tgi_port *p, int n)
{
    tgi_jw_begin(w, key, '[');
    for (int i = 0; i < n; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "name", p[i].name);
        put_ints(w, "shape", p[i].file_dim, p[i].file_rank);
        if (p[i].file_dtype != TG_DTYPE_NONE)
            tgi_jw_str(w, "dtype", tgi_dtype_name(p[i].file_dtype));
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

/* Of a network of one size: what keeps larger images from being put together of boxes. */
static void put_no_boxes(tgi_jw *w, const tgi_graph *g)
{
    for (int k = 3 - g->spatial; k < 3 && g->fixed_size; k++) {
        tgi_place place;
        if (tgi_graph_fixed_extent(g, k) && tgi_graph_place(g, k, &place, NULL) == TG_OK &&
            place.step_in == 0) {
            tgi_jw_str(w, "no_boxes_why", place.why);
            return;
        }
    }
}

/* An input of side n, or the next that works; 0 when the network cannot take it. */
static int input_of(const tgi_graph *g, int64_t n, tgi_desc *d)
{
    const tgi_port *p = &g->in[0];
    *d = (tgi_desc){TG_DTYPE_F32, g->spatial + 2, {1, 1}};
    if (p->perm[1] >= 0)
        d->dim[1] = p->file_dim[p->perm[1]];
    for (int i = 0; i < g->spatial; i++) {
        const int k = 3 - g->spatial + i;
        const int64_t want = tgi_graph_fixed_extent(g, k);
        d->dim[2 + i] = want > 0 ? want : tgi_graph_extent(g, k, n);
    }
    return d->dim[1] > 0 && g->n_in == 1;
}

/* What cannot be told of a network is left out; what memory did not suffice for is an error,
 * and so is a request to stop. */
static tg_status only_ours(tg_status st)
{
    return st == TG_E_NOMEM || st == TG_E_CANCELLED ? st : TG_OK;
}

#define LARGE 4096 /* sides; most networks read less than half of the first */
#define GIGA 32768

/* The network at one size. Freed by the caller, also after a failure. */
typedef struct sized {
    tgi_net *net;
    tgi_stages *stages;
} sized;

static void close_sized(sized *s)
{
    tgi_stages_free(&s->stages);
    tgi_net_free(&s->net);
}

static tg_status open_sized(sized *s, const tgi_graph *g, const tgi_kernel_set *be,
                            int64_t side, tgi_err *err)
{
    tgi_desc in;
    close_sized(s);
    if (!input_of(g, side, &in))
        return TG_E_UNSUPPORTED;
    TGI_TRY(tgi_net_new(g, be, &in, TGI_NET_EXACT, &s->net, err));
    return tgi_stages_new(s->net, &s->stages, err);
}

/* Exact halo: what one output pixel in the middle of an image reads, on each side. *cut: it
 * reads up to the image's border, and would read more of a larger one. */
static tg_status find_halo(const tgi_stage *stage, int64_t *halo, int *cut, tgi_err *err)
{
    const tgi_net *net = stage->net;
    tgi_range *r = tgi_calloc(TGI_TAG_PLAN, 2 * (size_t)net->n_values + 2, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the halo");
    tg_status st = TG_OK;
    *cut = 0;
    for (int axis = TGI_STREAM_AXIS; axis < net->rank && st == TG_OK; axis++) {
        int64_t d_out = tgi_stage_out_dim(stage, 0, axis);
        int64_t d_in = tgi_stage_in_dim(stage, 0, axis);
        const int64_t extent = d_out;
        tgi_place place;
        if (tgi_graph_place(net->g, axis + 3 - net->rank, &place, NULL) == TG_OK && place.up) {
            d_out = place.up;
            d_in = place.down;
        } else {
            place.lead = 0;
        }
        int64_t most = 0;
        const int64_t phases = tgi_reads_are_plain(net, axis) ? 1 : 64; /* of strides */
        for (int64_t k = 0; k < tgi_min(phases, extent - extent / 2); k++) {
            const int64_t middle = extent / 2 + k;
            const tgi_range core = {middle, middle + 1};
            if ((st = tgi_check_cancel(err)) != TG_OK)
                break;
            tgi_axis_need(stage, axis, core, r, r + net->n_values);
            const tgi_range n = r[net->n_values + net->in[0]];
            if (n.lo <= 0 || n.hi >= tgi_stage_in_dim(stage, 0, axis)) {
                *cut = 1;
                k = phases;
            }
            most = tgi_max(most,
                           tgi_max((core.lo + place.lead) * d_in / d_out - n.lo,
                                   n.hi - tgi_ceil_div((core.hi + place.lead) * d_in, d_out)));
        }
        halo[axis - TGI_STREAM_AXIS + 5 - net->rank] = most;
    }
    tgi_free(r);
    return st;
}

/* *giga: the network at its larger size, made here or not yet. */
static tg_status put_halo(tgi_jw *w, const tgi_graph *g, const tgi_kernel_set *be,
                          const tgi_stage *stage, sized *giga, tgi_err *err)
{
    int64_t halo[3] = {0, 0, 0};
    int cut;
    TGI_TRY(find_halo(stage, halo, &cut, err));
    if (cut) { /* hundreds of layers deep */
        TGI_TRY(open_sized(giga, g, be, GIGA, err));
        TGI_TRY(find_halo(&giga->stages->one, halo, &cut, err));
    }
    put_ints(w, "halo", halo, 3);
    return TG_OK;
}

static void put_flops(tgi_jw *w, const tgi_net *net)
{
    double flops = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        const tgi_desc *d = &net->values[net->nodes[i].node->dst[0]].ext;
        double n = net->nodes[i].flops_per_element;
        for (int a = 1; a < d->rank; a++)
            n *= (double)d->dim[a];
        flops += n;
    }
    for (int axis = TGI_STREAM_AXIS; axis < net->rank; axis++)
        flops /= (double)tgi_net_dim(net, net->in[0], axis);
    tgi_jw_num(w, "flops_per_pixel", flops);
}

/* What is known once the network is laid out at some large size. */
static tg_status put_sized(tgi_jw *w, const tgi_graph *g, const tgi_kernel_set *be, sized *giga,
                           tgi_err *err)
{
    char at_once[160];
    sized s = {0};
    tg_status st = open_sized(&s, g, be, LARGE, err);
    if (st == TG_OK && !s.stages->one.whole_op) /* nothing is cut: there is no halo */
        st = put_halo(w, g, be, &s.stages->one, giga, err);
    if (st == TG_OK) {
        put_flops(w, s.net);
        tgi_stages_at_once_text(s.stages, at_once, sizeof at_once);
        tgi_stages_json(w, s.stages, at_once, 0);
        tgi_stages_at_once_json(w, s.stages);
    }
    close_sized(&s);
    return only_ours(st);
}

/* Narrow strips of a stage. */
static tg_status strips_of(const tgi_stage *stage, size_t *arena, tgi_err *err)
{
    tgi_tiling t;
    const int64_t cut[3] = {0, 0, 64};
    TGI_TRY(tgi_tiling_make(stage, cut, 8, 1, NULL, &t, err));
    *arena = t.arena_bytes;
    tgi_tiling_free(&t);
    return TG_OK;
}

/* What is gathered in a stage. */
static size_t states_of(const tgi_stage *stage)
{
    size_t bytes = 0;
    for (int o = 0; o < stage->n_out; o++) {
        const tgi_stage_out *out = &stage->out[o];
        const tgi_net_node *n = out->reduced ? &stage->net->nodes[out->whole] : NULL;
        if (n)
            bytes = tgi_sat_add(
                bytes,
                tgi_granules_bytes(&stage->net->shapes.desc[out->value],
                                   tgi_reduce_what(tgi_reduce_of(n->node->op, &n->ctx))));
    }
    return bytes;
}

/* The largest of all stages, what passes between them being on a disk. 0: one of them needs all
 * pixels at once. */
static tg_status strips_of_stages(tgi_stages *s, size_t *most, tgi_err *err)
{
    *most = 0;
    for (int k = 0; k < s->n; k++)
        if (s->stage[k].whole_op)
            return TG_OK;
    for (int k = 0; k < s->n; k++) {
        size_t bytes;
        TGI_TRY(tgi_stage_lifetimes(&s->stage[k], err));
        TGI_TRY(strips_of(&s->stage[k], &bytes, err));
        bytes = tgi_sat_add(bytes, states_of(&s->stage[k]));
        *most = bytes > *most ? bytes : *most;
    }
    return TG_OK;
}

/* Smallest arena and weights for 32768 x 32768 pixels: the narrowest useful strips. */
static tg_status put_gigapixel(tgi_jw *w, const tgi_graph *g, const tgi_kernel_set *be,
                               sized *giga, tgi_err *err)
{
    size_t bytes = 0;
    if (g->spatial != 2 || g->fixed_size)
        return TG_OK;
    tg_status st = giga->stages ? TG_OK : open_sized(giga, g, be, GIGA, err);
    if (st == TG_OK)
        st = giga->stages->one.whole_op ? strips_of_stages(giga->stages, &bytes, err)
                                        : strips_of(&giga->stages->one, &bytes, err);
    if (st == TG_OK && bytes)
        tgi_jw_uint(w, "smallest_bytes_for_gigapixel",
                    tgi_sat_add(bytes, giga->net->packed_bytes));
    return only_ours(st);
}

static void put_names(tgi_jw *w, const tgi_card_port *p)
{
    for (int i = 0; i < p->n_names; i++)
        tgi_jw_str(w, NULL, p->channel_name[i]);
    tgi_jw_end(w, ']');
}

/* Of a description in it or beside it: which format it has, what it calls channels, and the steps of processing that it asks
 * for. */
static void put_steps(tgi_jw *w, const char *path)
{
    tgi_card *card = NULL;
    if (tgi_descriptor_card_beside(path, &card, NULL) == TG_OK && card) {
        tgi_jw_str(w, "description", card->format);
        tgi_jw_begin(w, "preprocessing", '[');
        for (int i = 0; i < card->in[0].n_step; i++)
            tgi_jw_str(w, NULL, card->in[0].step[i].name);
        tgi_jw_end(w, ']');
        tgi_jw_begin(w, "postprocessing", '[');
        for (int i = 0; i < card->out[0].n_step; i++)
            tgi_jw_str(w, NULL, card->out[0].step[i].name);
        tgi_jw_end(w, ']');
        if (card->in[0].n_names) {
            tgi_jw_begin(w, "input_channels", '[');
            put_names(w, &card->in[0]);
        }
        if (card->out[0].n_names) {
            tgi_jw_begin(w, "output_channels", '[');
            put_names(w, &card->out[0]);
        }
    }
    tgi_card_free(&card);
}

static tg_status describe_model(const char *path, tgi_jw *w, tgi_err *err)
{
    tgi_graph *g = NULL;
    sized giga = {0};
    const tgi_kernel_set *be = tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT));
    tg_status st = tgi_graph_load_onnx(path, 0, &g, err);
    if (st == TG_OK) {
        tgi_jw_str(w, "kind", "model");
        put_steps(w, path);
        tgi_jw_int(w, "opset", g->opset);
        tgi_jw_int(w, "parameters", g->n_params);
        put_operators(w, g);
        tgi_jw_int(w, "nodes_after_fusion", g->n_nodes);
        st = put_whole(w, g, err);
        put_ports(w, "inputs", g->in, g->n_in);
        put_ports(w, "outputs", g->out, g->n_out);
        put_ints(w, "divisor", g->divisor, 3);
        put_ints(w, "remainder", g->remainder, 3);
        tgi_jw_bool(w, "fixed_size", g->fixed_size);
        if (g->fixed_why)
            tgi_jw_str(w, "fixed_why", g->fixed_why);
        put_no_boxes(w, g);
        if (st == TG_OK)
            st = put_sized(w, g, be, &giga, err);
        if (st == TG_OK)
            st = put_gigapixel(w, g, be, &giga, err);
        close_sized(&giga);
        tgi_jw_begin(w, "rewrites", '[');
        for (int i = 0; i < g->n_rewrites; i++)
            tgi_jw_str(w, NULL, g->rewrites[i]);
        tgi_jw_end(w, ']');
    }
    tgi_graph_free(&g);
    return st;
}

/* A part of an image is chosen, and this is none. */
static tg_status check_part(const char *path, const tg_opts *o, tgi_err *err)
{
    static const tgi_opt part[] = {TGI_OPT_CHANNELS, TGI_OPT_C,     TGI_OPT_Z,
                                   TGI_OPT_T,        TGI_OPT_AXES,  TGI_OPT_SERIES,
                                   TGI_OPT_KEY_Z,    TGI_OPT_KEY_C, TGI_OPT_KEY_T,
                                   TGI_OPT_PLANES,   TGI_OPT_ROI};
    size_t n;
    for (size_t i = 0; o && i < sizeof part / sizeof part[0]; i++)
        if (tgi_opts_given(o, part[i]))
            return tgi_fail(err, TG_E_ARG, "%s: --%s is for images", path,
                            tgi_option_table(&n)[part[i]].name);
    return TG_OK;
}

static int is_model(const char *path)
{
    return has_suffix(path, ".onnx") || tgi_package_is(path);
}

static int is_image(const char *path)
{
    return !is_model(path) && !tgi_names_weights(path) &&
           (!has_suffix(path, ".npy") || tgi_source_is_set(path));
}

tg_status tgi_describe(const char *path, const tg_opts *o, char **json, tgi_err *err)
{
    tgi_jw w = {0};
    if (!is_image(path))
        TGI_TRY(check_part(path, o, err));
    tgi_jw_begin(&w, NULL, '{');
    tg_status st = is_image(path)            ? describe_image(path, o, &w, err)
                   : is_model(path)          ? describe_model(path, &w, err)
                   : tgi_names_weights(path) ? tgi_describe_weights(path, &w, err)
                                             : describe_array(path, &w, err);
    tgi_jw_end(&w, '}');
    char *text = NULL;
    const tg_status taken = tgi_jw_take(&w, &text, err);
    if (st == TG_OK && taken == TG_OK)
        *json = text;
    else
        tgi_free(text);
    return st != TG_OK ? st : taken;
}
