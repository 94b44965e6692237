/* stack.c - see stack.h. Each lane (reader thread) has its own open files, so lanes never wait
 * for each other and a file in use is never closed under somebody. */
#include "io/stack.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/io_formats.h"

#include <stdio.h>
#include <string.h>

#define MAX_LANES 1024
#define MAX_OPEN 16 /* files a lane holds open at most */
#define DEFAULT_BUDGET ((size_t)1 << 30)

typedef struct handle {
    tgi_source *source; /* NULL: free */
    uint32_t file;
    uint64_t used; /* time of last use, by the lane's clock */
} handle;

struct stack_source;

typedef struct lane {
    const struct stack_source *owner;
    int64_t plane; /* being read */
    handle open[MAX_OPEN];
    uint64_t clock;
    uint64_t decoded; /* bytes, by files closed since */
} lane;

typedef struct stack_source {
    tgi_source base;
    tgi_stack_spec spec;
    tgi_stamp *was;     /* of each path, when it was looked at */
    tgi_open_opts opts; /* of the files */
    int n_open;         /* of MAX_OPEN, in use */
    int n_lanes;
    lane *lanes;
    size_t file_bytes; /* the most that one open file holds */
    size_t own_bytes;
    int64_t stream_rows;
    int64_t expect_planes, expect_stride; /* within one file; 0: nothing to tell it */
} stack_source;

void tgi_stack_spec_free(tgi_stack_spec *spec)
{
    for (int64_t i = 0; spec->path && i < spec->n_files + spec->n_extra; i++)
        tgi_free(spec->path[i]);
    tgi_free(spec->path);
    tgi_free(spec->planes);
    tgi_image_meta_free(&spec->info.meta);
    *spec = (tgi_stack_spec){0};
}

/* ---- Open files -------------------------------------------------------------------------- */

/* What a file cannot decode, as a region of the stack. */
static tg_status bad_in_member(void *arg, const tgi_bad_region *r, tgi_err *err)
{
    const lane *l = arg;
    const stack_source *s = l->owner;
    tgi_bad_region ours = *r;
    char reason[192];
    snprintf(reason, sizeof reason, "%s: %s", s->spec.path[s->spec.planes[l->plane].file],
             r->reason);
    ours.plane = l->plane;
    ours.reason = reason;
    return s->opts.on_bad(s->opts.on_bad_arg, &ours, err);
}

/* For reading planes in `l`, or (NULL) to look at it. */
static tg_status open_member(const stack_source *s, lane *l, uint32_t file, tgi_source **out,
                             tgi_err *err)
{
    tgi_open_opts o = s->opts;
    if (o.on_bad && l) {
        o.on_bad = bad_in_member;
        o.on_bad_arg = l;
    }
    TGI_TRY(tgi_source_open(s->spec.path[file], &o, out, err));
    if (s->expect_planes && (*out)->ops->expect) {
        const tg_status st = (*out)->ops->expect(*out, s->expect_planes, s->expect_stride, err);
        if (st != TG_OK)
            tgi_source_close(out);
        return st;
    }
    return TG_OK;
}

/* The same size and type as the stack; `what` says which of the two differs. */
static tg_status agrees(const stack_source *s, const char *path, const tgi_image_info *i,
                        tgi_err *err)
{
    const tgi_image_info *w = &s->spec.info;
    if (i->width != w->width || i->height != w->height || i->samples != w->samples)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s has %lld x %lld pixels of %d samples, the stack %lld x %lld of %d: "
                        "choose its files by a pattern in quotes, or give each an output of "
                        "its own (run --each)",
                        path, (long long)i->width, (long long)i->height, i->samples,
                        (long long)w->width, (long long)w->height, w->samples);
    if (i->dtype != w->dtype)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s holds %s, the stack %s: choose its files by a pattern in quotes, "
                        "or give each an output of its own (run --each)",
                        path, tgi_dtype_name(i->dtype), tgi_dtype_name(w->dtype));
    return TG_OK;
}

/* The name is still that of the file that was looked at: asked before it is opened, and of what
 * was opened. (Its time of change is another question: who runs over the stack asks it when all
 * is read.) */
static tg_status is_same(const stack_source *s, uint32_t file, const tgi_source *m,
                         tgi_err *err)
{
    tgi_held is = {.path = s->spec.path[file]};
    const int there = m ? tgi_source_held(m, 0, &is) : tgi_stamp_path(is.path, &is.was) == 0;
    if (there && tgi_stamp_same_file(&is.was, &s->was[file]) &&
        is.was.size == s->was[file].size)
        return TG_OK;
    return tgi_fail(
        err, TG_E_FORMAT,
        "%s is gone, or was replaced or changed, while the stack was read: with the "
        "old file back the same command goes on, with the new one -y starts over",
        s->spec.path[file]);
}

static void close_handle(lane *l, handle *h)
{
    if (!h->source)
        return;
    if (h->source->ops->decoded_bytes)
        l->decoded += h->source->ops->decoded_bytes(h->source);
    tgi_source_close(&h->source);
}

/* The file, open in this lane; the one used longest ago makes room for it. */
static tg_status hold(stack_source *s, lane *l, uint32_t file, tgi_source **out, tgi_err *err)
{
    handle *h = &l->open[0];
    for (int i = 0; i < s->n_open; i++) {
        if (l->open[i].source && l->open[i].file == file) {
            h = &l->open[i];
            break;
        }
        if (!l->open[i].source || (h->source && l->open[i].used < h->used))
            h = &l->open[i];
    }
    if (!h->source || h->file != file) {
        close_handle(l, h);
        TGI_TRY(is_same(s, file, NULL, err));
        TGI_TRY(open_member(s, l, file, &h->source, err));
        h->file = file;
        tg_status st = is_same(s, file, h->source, err);
        if (st == TG_OK)
            st = agrees(s, s->spec.path[file], h->source->ops->info(h->source), err);
        if (st != TG_OK) { /* it did at open */
            close_handle(l, h);
            return st;
        }
    }
    h->used = ++l->clock;
    *out = h->source;
    return TG_OK;
}

static void close_all(stack_source *s)
{
    for (int k = 0; s->lanes && k < s->n_lanes; k++)
        for (int i = 0; i < MAX_OPEN; i++)
            close_handle(&s->lanes[k], &s->lanes[k].open[i]);
}

/* ---- The source -------------------------------------------------------------------------- */

static tg_status stack_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                            int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                            size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    stack_source *s = (stack_source *)base;
    tgi_source *member;
    if (thread < 0 || thread >= s->n_lanes || plane < 0 || plane >= s->spec.info.n_planes)
        return tgi_fail(err, TG_E_ARG, "plane %lld of a stack of %lld", (long long)plane,
                        (long long)s->spec.info.n_planes);
    const tgi_stack_plane at = s->spec.planes[plane];
    s->lanes[thread].owner = s;
    s->lanes[thread].plane = plane;
    TGI_TRY(hold(s, &s->lanes[thread], at.file, &member, err));
    const tg_status st = member->ops->read(member, 0, at.plane, s0, s1, y0, y1, x0, x1, dst,
                                           row_pitch, sample_pitch, err);
    if (st != TG_OK)
        tgi_err_prefix(err, "%s", s->spec.path[at.file]);
    return st;
}

static const tgi_image_info *stack_info(const tgi_source *s)
{
    return &((const stack_source *)s)->spec.info;
}

static size_t stack_codec_bytes(const tgi_source *base)
{
    const stack_source *s = (const stack_source *)base;
    return tgi_sat_add(
        s->own_bytes,
        tgi_sat_mul(tgi_sat_mul((size_t)s->n_lanes, (size_t)s->n_open), s->file_bytes));
}

static int64_t stack_stream_rows(const tgi_source *s)
{
    return ((const stack_source *)s)->stream_rows;
}

static uint64_t stack_decoded(const tgi_source *base)
{
    const stack_source *s = (const stack_source *)base;
    uint64_t n = 0;
    for (int k = 0; k < s->n_lanes; k++) {
        n += s->lanes[k].decoded;
        for (int i = 0; i < s->n_open; i++) {
            const tgi_source *m = s->lanes[k].open[i].source;
            if (m && m->ops->decoded_bytes)
                n += m->ops->decoded_bytes(m);
        }
    }
    return n;
}

static const char *stack_file(const tgi_source *base, int64_t i)
{
    const stack_source *s = (const stack_source *)base;
    return i < s->spec.n_files + s->spec.n_extra ? s->spec.path[i] : NULL;
}

static int stack_held(const tgi_source *base, int64_t i, tgi_held *out)
{
    const stack_source *s = (const stack_source *)base;
    if (i >= s->spec.n_files + s->spec.n_extra)
        return 0;
    *out = (tgi_held){s->spec.path[i], -1, s->was[i]};
    return 1;
}

static void stack_close(tgi_source **base)
{
    stack_source *s = (stack_source *)*base;
    if (!s)
        return;
    close_all(s);
    tgi_free(s->lanes);
    tgi_free(s->was);
    tgi_stack_spec_free(&s->spec);
    tgi_free(s);
    *base = NULL;
}

static const tgi_source_ops stack_ops;

/* What a file holds open, and whether its rows are streamed. */
static void weigh(stack_source *s, const tgi_source *m)
{
    const size_t n = m->ops->codec_bytes(m);
    s->file_bytes = n > s->file_bytes ? n : s->file_bytes;
    if (m->ops->stream_rows)
        s->stream_rows = tgi_max(s->stream_rows, m->ops->stream_rows(m));
}

/* Every file once, in order: does it fit, and has it the planes that are asked of it? */
static tg_status look_at_files(stack_source *s, tgi_err *err)
{
    tgi_stack_spec *p = &s->spec;
    uint32_t *most = tgi_calloc(TGI_TAG_IO, (size_t)p->n_files, sizeof *most);
    if (!most)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %lld files", (long long)p->n_files);
    for (int64_t i = 0; i < p->info.n_planes; i++)
        if (p->planes[i].plane >= most[p->planes[i].file])
            most[p->planes[i].file] = p->planes[i].plane + 1;
    tg_status st = TG_OK;
    for (uint32_t f = 0; st == TG_OK && f < (uint32_t)p->n_files; f++) {
        tgi_source *m = NULL;
        if (s->opts.cancelled && s->opts.cancelled())
            st = tgi_fail(err, TG_E_CANCELLED, "stopped while the files were looked at");
        else
            st = open_member(s, NULL, f, &m, err);
        if (st != TG_OK)
            break;
        const tgi_image_info *i = m->ops->info(m);
        st = agrees(s, p->path[f], i, err);
        if (st == TG_OK && m->ops->file)
            st = tgi_fail(err, TG_E_UNSUPPORTED,
                          "%s is part of a multi-file OME-TIFF: give that file alone",
                          p->path[f]);
        if (st == TG_OK && i->n_planes < most[f])
            st = tgi_fail(err, TG_E_FORMAT, "%s has %lld planes, plane %u of it is asked for",
                          p->path[f], (long long)i->n_planes, most[f] - 1);
        tgi_held is;
        if (st == TG_OK && tgi_source_held(m, 0, &is))
            s->was[f] = is.was;
        weigh(s, m);
        p->info.file_bytes += i->file_bytes;
        tgi_source_close(&m);
    }
    tgi_free(most);
    for (int64_t f = p->n_files; st == TG_OK && f < p->n_files + p->n_extra; f++)
        if (tgi_stamp_path(p->path[f], &s->was[f]) != 0)
            st = tgi_fail(err, TG_E_NOT_FOUND, "%s is gone", p->path[f]);
    return st;
}

/* What the spec leaves open is the first file's. */
static tg_status take_from_first(stack_source *s, tgi_err *err)
{
    tgi_source *m = NULL;
    tgi_image_info *w = &s->spec.info;
    TGI_TRY(open_member(s, NULL, s->spec.planes[0].file, &m, err));
    const tgi_image_info *i = m->ops->info(m);
    if (!w->format)
        w->format = i->format;
    w->dtype = i->dtype;
    w->compression = i->compression;
    w->predictor = i->predictor;
    w->planar_samples = i->planar_samples;
    w->tiled = i->tiled;
    w->block_h = i->block_h;
    w->block_w = i->block_w;
    w->big_endian = i->big_endian;
    w->bigtiff = i->bigtiff;
    w->plain = i->plain;
    w->n_levels = i->n_levels;
    memcpy(w->level_h, i->level_h, sizeof w->level_h);
    memcpy(w->level_w, i->level_w, sizeof w->level_w);
    w->n_files = s->spec.n_files;
    if (!w->n_series)
        w->n_series = 1;
    tgi_source_close(&m);
    return TG_OK;
}

/* Planes read in turn: one file each, or all of one file. */
static tg_status stack_expect(tgi_source *base, int64_t planes, int64_t stride, tgi_err *err)
{
    stack_source *s = (stack_source *)base;
    const tgi_stack_plane *p = s->spec.planes;
    int64_t files = 1, inside = 0;
    for (int64_t i = 1; i < planes && i * stride < s->spec.info.n_planes; i++) {
        const tgi_stack_plane *a = &p[(i - 1) * stride], *b = &p[i * stride];
        files += a->file != b->file;
        if (a->file == b->file && b->plane > a->plane)
            inside = b->plane - a->plane;
    }
    close_all(s);
    s->n_open = (int)tgi_clamp(tgi_max(files, 2), 1, tgi_min(MAX_OPEN, s->spec.n_files));
    s->expect_planes = inside ? tgi_ceil_div(planes, files) : 0;
    s->expect_stride = inside;
    if (!inside)
        return TG_OK;
    tgi_source *m = NULL; /* what a file holds is another number now */
    TGI_TRY(open_member(s, NULL, p[0].file, &m, err));
    weigh(s, m);
    tgi_source_close(&m);
    return TG_OK;
}

static tg_status open_stack(stack_source *s, const tgi_open_opts *o, tgi_err *err)
{
    tgi_stack_spec *p = &s->spec;
    const size_t budget = o->decode_budget ? o->decode_budget : DEFAULT_BUDGET;
    s->n_lanes = (int)tgi_clamp(o->threads, 1, MAX_LANES);
    s->n_open = (int)tgi_min(2, p->n_files);
    s->opts = *o;
    s->opts.threads = 1;
    s->opts.axes = NULL;
    s->opts.series = p->pages ? 0 : o->series;
    s->opts.pages = p->pages;
    s->opts.member = 1;
    s->opts.decode_budget = budget / (size_t)(2 * s->n_lanes);
    s->lanes = tgi_calloc(TGI_TAG_IO, (size_t)s->n_lanes, sizeof *s->lanes);
    if (!s->lanes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d readers", s->n_lanes);
    s->own_bytes = sizeof *s + (size_t)s->n_lanes * sizeof *s->lanes +
                   (size_t)p->info.n_planes * sizeof *p->planes;
    for (int64_t i = 0; i < p->n_files + p->n_extra; i++)
        s->own_bytes += sizeof *p->path + strlen(p->path[i]) + 1 + sizeof *s->was;
    s->was = tgi_calloc(TGI_TAG_IO, (size_t)(p->n_files + p->n_extra), sizeof *s->was);
    if (!s->was)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %lld files", (long long)p->n_files);
    tg_status st = take_from_first(s, err);
    if (st == TG_OK)
        st = look_at_files(s, err);
    if (st != TG_OK) { /* a file has its part of the budget */
        if (err && err->tried_bytes)
            err->tried_bytes = tgi_sat_mul(err->tried_bytes, (size_t)(2 * s->n_lanes));
        return st;
    }
    return o->axes ? tgi_image_relabel(&p->info, o->axes, err) : TG_OK;
}

tg_status tgi_stack_open(tgi_stack_spec *spec, const tgi_open_opts *o, tgi_source **out,
                         tgi_err *err)
{
    stack_source *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s) {
        tgi_stack_spec_free(spec);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a stack of files");
    }
    s->base.ops = &stack_ops;
    s->spec = *spec;
    *spec = (tgi_stack_spec){0};
    const tg_status st = open_stack(s, o, err);
    if (st != TG_OK) {
        tgi_source *base = &s->base;
        stack_close(&base);
        return st;
    }
    *out = &s->base;
    return TG_OK;
}

static const tgi_source_ops stack_ops = {
    .format = "stack",
    .info = stack_info,
    .read = stack_read,
    .close = stack_close,
    .codec_bytes = stack_codec_bytes,
    .expect = stack_expect,
    .stream_rows = stack_stream_rows,
    .decoded_bytes = stack_decoded,
    .file = stack_file,
    .held = stack_held,
};
