/* copy.c - an image through the same reader and writer, no network between: to convert, to
 * crop, and to see that nothing is lost on the way. TIFF output goes through the journal like a
 * run's, a picture is made of such a TIFF; .npy output is written to OUT.partial and renamed.
 */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/ends/input_hash.h"
#include "engine/job/fingerprint.h"
#include "engine/job/go_on.h"
#include "engine/job/job.h"
#include "engine/job/job_picture.h"
#include "engine/job/tensors.h"
#include "engine/memory/monitor.h"
#include "engine/out/commit.h"
#include "engine/out/gate.h"
#include "engine/out/pyramid.h"
#include "io/file_ops.h"
#include "io/npy.h"
#include "kernels/pixels.h"

#include <stdio.h>
#include <string.h>

#define ALLOWANCE_BYTES ((size_t)1536 * 1024) /* stacks, library slack: as job_plan.c */
#define HASH_BYTES ((size_t)16 << 10)         /* of the allowance */
#define ROWS_BYTES ((size_t)4 << 20) /* of one sample, at most, unless one row is longer */

/* The program in the fingerprint of a copy that is part of a job. */
#define PART "array " TG_VERSION_STRING

typedef struct copy {
    tg_ctx *ctx;
    const tg_opts *opts;
    tgi_machine *machine; /* too large for the stack */
    tgi_source *source;
    const tgi_image_info *info;
    const char *input, *output;
    const tgi_picture_writer *writer; /* makes the output of the tiles; NULL: they stay */
    tgi_image_meta meta;              /* of the output, a view */
    const tgi_copy_part *part;        /* of a job; or NULL */
    tgi_bad_tiles *bad;               /* --on-bad-tile fill; else NULL */
    tg_dtype dtype;
    tgi_planes_spec planes;
    tgi_chosen chosen; /* where not all planes are copied */
    int64_t n_planes;
    tgi_range y, x;
    char axes[TGI_IMAGE_MAX_AXES + 1]; /* of the output, singletons kept */
    int64_t shape[TGI_IMAGE_MAX_AXES];
    int n_axes;
    tgi_input_hash *hash;       /* of a part NULL: nobody else has its input */
    int changed;                /* the input is another one now */
    char *in_rows, *out_rows;   /* [sample][row][column]; one row of the output */
    size_t row_bytes;           /* of both */
    size_t budget;              /* what --ram allows */
    size_t source_bytes;        /* of the library, that the source took when it was opened */
    int spare;                  /* it was opened to hold as little as it can */
    int refused;                /* check_budget did not let it begin */
    int64_t step;               /* rows read at once */
    atomic_int surplus;         /* the input has more data than pixels */
    double begun;               /* the phase */
    int64_t n_tiles, resumed;   /* of a TIFF; those that were found */
    int64_t repairs;            /* of these damaged, and written again */
    int64_t seq;                /* of the next tile */
    int64_t clipped, converted; /* values that the output's type does not hold; all of them */
} copy;

/* ---- What to copy ------------------------------------------------------------------------ */

static tg_status choose_region(copy *c, tgi_err *err)
{
    tgi_roi_spec roi;
    const int64_t extent[3] = {1, c->info->height, c->info->width};
    tgi_range r[3] = {{0, 1}, {0, extent[1]}, {0, extent[2]}};
    if (tgi_opts_roi(c->opts, &roi))
        TGI_TRY(tgi_roi_resolve(&roi, extent, r, err));
    c->y = r[1];
    c->x = r[2];
    tgi_opts_planes(c->opts, &c->planes);
    return tgi_planes_resolve(&c->planes, c->info->n_planes, &c->n_planes, err);
}

static void list_axes(copy *c)
{
    const tgi_image_info *i = c->info;
    const int some = c->n_planes != i->n_planes;
    char letter[TGI_IMAGE_MAX_AXES];
    int64_t size[TGI_IMAGE_MAX_AXES];
    int n = 0, listed = 0;
    for (int a = 0; a < i->n_axes; a++)
        if (!strchr("YXS", i->axes[a])) {
            letter[n] = i->axes[a];
            size[n++] = i->shape[a];
        }
    if (some)
        c->chosen = tgi_chosen_axis(&c->planes, c->n_planes, n, letter, size);
    for (int a = 0; a < i->n_axes; a++) {
        const char l = i->axes[a];
        const int is_plane_axis = !strchr("YXS", l);
        if (some && is_plane_axis) {
            if (!listed && c->chosen.letter) {
                c->axes[c->n_axes] = c->chosen.letter;
                c->shape[c->n_axes++] = c->n_planes;
            }
            listed = 1;
            continue;
        }
        c->axes[c->n_axes] = l;
        c->shape[c->n_axes++] = l == 'Y'   ? tgi_range_len(c->y)
                                : l == 'X' ? tgi_range_len(c->x)
                                           : i->shape[a];
    }
    c->axes[c->n_axes] = 0;
}

/* What is known beside the pixels and holds for the output. */
static void choose_meta(copy *c)
{
    tgi_image_meta *m = &c->meta;
    *m = c->part ? *c->part->meta : c->info->meta;
    if (c->n_planes != c->info->n_planes) { /* some planes: they have no channels any more */
        m->n_channels = m->n_luts = m->n_ranges = 0;
        m->n_labels = 0;
        m->time_increment =
            c->chosen.letter == 'T' ? tgi_chosen_scale(&c->chosen, 'T', m->time_increment) : 0;
        m->physical[0] = tgi_chosen_scale(&c->chosen, 'Z', m->physical[0]);
    }
    if (c->dtype != c->info->dtype) /* numbers of another type are no indices and no inks */
        m->stored_as = TGI_STORED_LIGHT;
}

static tg_status pass_gate(const copy *c, tgi_err *err)
{
    tgi_gate g = {0};
    tg_status st = tgi_gate_options_write(&g, c->opts, err);
    if (st == TG_OK)
        st = tgi_gate_options_read(&g, c->opts, err);
    if (st == TG_OK)
        st = tgi_gate_reads_source(&g, c->source, c->input, err);
    tgi_gate_close(&g);
    return st;
}

static tg_status open_copy(copy *c, tgi_err *err)
{
    c->machine = tgi_malloc(TGI_TAG_MISC, sizeof *c->machine);
    if (!c->machine)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a copy");
    tgi_machine_here(c->machine);
    c->budget = tgi_machine_budget(c->machine, c->opts, NULL);
    tgi_open_opts o = {.series = (int)tgi_opts_int(c->opts, TGI_OPT_SERIES, 0),
                       .level = (int)tgi_opts_int(c->opts, TGI_OPT_LEVEL, 0),
                       .threads = 1,
                       .axes = tgi_opts_str(c->opts, TGI_OPT_AXES),
                       .key = {tgi_opts_str(c->opts, TGI_OPT_KEY_Z),
                               tgi_opts_str(c->opts, TGI_OPT_KEY_C),
                               tgi_opts_str(c->opts, TGI_OPT_KEY_T)},
                       .decode_budget = tgi_decode_budget(c->budget),
                       .spare = c->spare,
                       .cancelled = tgi_cancel_signal,
                       .surplus = &c->surplus};
    tg_dtype asked = TG_DTYPE_NONE;
    c->input = tgi_opts_str(c->opts, TGI_OPT_INPUT);
    c->output = tgi_opts_str(c->opts, TGI_OPT_OUTPUT);
    if (!c->input || !c->output)
        return tgi_fail(err, TG_E_ARG,
                        "copy needs an input and an output (-o OUT.tif|.png|.jpg|.npy)");
    TGI_TRY(tgi_check_output_name(c->output, 0, err));
    if (c->output[strlen(c->output) - 1] == '/')
        return tgi_fail(err, TG_E_ARG, "%s: copy writes one file: -o %sOUT.tif", c->output,
                        c->output);
    if (tgi_opts_choice(c->opts, TGI_OPT_ON_BAD_TILE) == 1) {
        TGI_TRY(tgi_bad_tiles_new(c->output, &c->bad, err));
        o.on_bad = tgi_bad_tiles_note;
        o.on_bad_arg = c->bad;
    }
    const size_t before = tgi_mem_held();
    TGI_TRY(tgi_source_open(c->input, &o, &c->source, err));
    c->source_bytes = tgi_mem_held() - before;
    TGI_TRY(pass_gate(c, err));
    c->info = c->source->ops->info(c->source);
    if (c->info->note[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, "%s: %s", c->input, c->info->note);
    if (c->info->meta.left_behind[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN,
                    "%s: its OME-XML also has %s: a copy does not carry these", c->input,
                    c->info->meta.left_behind);
    c->dtype =
        tgi_opts_dtype(c->opts, &asked) && asked != TG_DTYPE_NONE ? asked : c->info->dtype;
    TGI_TRY(tgi_picture_choose(c->opts, &c->writer, err));
    TGI_TRY(choose_region(c, err));
    list_axes(c);
    choose_meta(c);
    if (c->writer && !c->writer->images && c->meta.stored_as)
        tgi_ctx_log(c->ctx, TG_LOG_WARN,
                    "%s: the pixels are stored as %s and written as they are: the picture will "
                    "look otherwise",
                    c->input, tgi_stored_name(c->meta.stored_as));
    const size_t row = (size_t)tgi_range_len(c->x) * tgi_dtype_size(c->info->dtype);
    c->step = tgi_clamp((int64_t)(ROWS_BYTES / (row ? row : 1)), 1, tgi_range_len(c->y));
    c->row_bytes = (size_t)(c->step * c->info->samples) * row +
                   (size_t)(tgi_range_len(c->x) * c->info->samples) * 8;
    c->in_rows = tgi_calloc(TGI_TAG_IO, (size_t)(c->step * c->info->samples), row);
    c->out_rows = tgi_calloc(TGI_TAG_IO, (size_t)(tgi_range_len(c->x) * c->info->samples), 8);
    return c->in_rows && c->out_rows ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for rows");
}

static void close_copy(copy *c)
{
    tgi_input_hash_close(&c->hash);
    if (c->source)
        tgi_source_close(&c->source);
    tgi_bad_tiles_free(&c->bad);
    tgi_free(c->machine);
    tgi_free(c->in_rows);
    tgi_free(c->out_rows);
}

/* ---- Watching ---------------------------------------------------------------------------- */

static void say(const copy *c, const char *phase, double fraction)
{
    const tg_progress p = {.phase = phase,
                           .fraction = fraction,
                           .seconds = tgi_seconds() - c->begun,
                           .eta_seconds = -1,
                           .memory_bytes = tgi_mem_measured(),
                           .budget_bytes = c->budget,
                           .tiles_done = c->seq - c->repairs,
                           .tiles_total = c->n_tiles,
                           .tiles_resumed = c->resumed - c->repairs};
    tgi_ctx_progress(c->ctx, &p);
}

static void tell(const copy *c, double fraction)
{
    say(c, "copy", fraction);
}

static tg_status copy_stopped(void *user, tgi_err *err)
{
    (void)user;
    return tgi_cancel_signal() ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s", tgi_cancel_by())
                               : TG_OK;
}

static tg_status check_tick(void *user, double fraction, tgi_err *err)
{
    say(user, "check", fraction);
    return copy_stopped(user, err);
}

/* Before the first pixel is read. */
static tg_status watch_input(copy *c, tgi_err *err)
{
    return c->part ? TG_OK
                   : tgi_input_hash_open(tgi_source_held, c->source, NULL, HASH_BYTES, &c->hash,
                                         err);
}

/* When all is read, or reading failed. TG_E_FORMAT: c->changed when what was made of the input
 * is of no use to anybody. */
static tg_status input_held(copy *c, tg_status st, tgi_err *err)
{
    tgi_err none = {0};
    tgi_input_digest d = {.trouble = ""};
    if (st == TG_OK && c->hash) {
        st = tgi_input_hash_settle(c->hash, check_tick, c, &d, err);
        c->changed |= st == TG_E_FORMAT;
    }
    if (st == TG_OK && d.trouble[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, "%s: %s", d.file, d.trouble);
    if (st != TG_E_FORMAT)
        return st;
    c->changed |= tgi_input_unchanged(tgi_source_held, c->source, &none) != TG_OK;
    return tgi_input_blame(tgi_source_held, c->source, st, err);
}

/* ---- Rows -------------------------------------------------------------------------------- */

static tg_status read_rows(copy *c, int64_t plane, int64_t y0, int64_t y1, tgi_err *err)
{
    const size_t pitch = (size_t)tgi_range_len(c->x) * tgi_dtype_size(c->info->dtype);
    TGI_TRY(copy_stopped(c, err));
    const tg_status st = tgi_input_hash_check(c->hash, check_tick, c, err);
    c->changed |= st == TG_E_FORMAT;
    TGI_TRY(st);
    return tgi_source_read(c->source, 0, tgi_planes_at(&c->planes, plane), 0, c->info->samples,
                           c->y.lo + y0, c->y.lo + y1, c->x.lo, c->x.hi, c->in_rows, pitch,
                           pitch * (size_t)(y1 - y0), err);
}

/* n pixels of one sample to every `stride`-th element of dst, in the output's type. */
static void convert(copy *c, const char *src, int64_t n, char *dst, int64_t stride)
{
    const size_t size = tgi_dtype_size(c->dtype);
    if (c->dtype == c->info->dtype) {
        for (int64_t i = 0; i < n && stride > 1; i++)
            memcpy(dst + (size_t)(i * stride) * size, src + (size_t)i * size, size);
        if (stride == 1)
            memcpy(dst, src, (size_t)n * size);
        return;
    }
    float piece[512];
    for (int64_t i = 0; i < n; i += 512) {
        const int64_t k = tgi_min(512, n - i);
        tgi_pixels_load(c->info->dtype, src + (size_t)i * tgi_dtype_size(c->info->dtype), k,
                        1.0f, 0.0f, piece, 1);
        c->clipped += tgi_pixels_outside(c->dtype, piece, 1, k, 1.0f, 0.0f);
        c->converted += k;
        tgi_pixels_store(c->dtype, piece, 1, k, 1.0f, 0.0f, dst + (size_t)(i * stride) * size,
                         stride);
    }
}

/* Row r (of `rows` read) of sample s. */
static const char *row_of(const copy *c, int64_t s, int64_t r, int64_t rows)
{
    const size_t pitch = (size_t)tgi_range_len(c->x) * tgi_dtype_size(c->info->dtype);
    return c->in_rows + (size_t)(s * rows + r) * pitch;
}

/* ---- What could not be decoded -------------------------------------------------------------
 */

/* Before the output gets its name. */
static tg_status list_bad(copy *c, tgi_err *err)
{
    return c->bad ? tgi_bad_tiles_write(c->bad, c->input, err) : TG_OK;
}

/* After it has it. */
static tg_status settle_bad(copy *c, tgi_err *err)
{
    if (!c->bad)
        return TG_OK;
    tgi_bad_tiles_clear(c->bad);
    return tgi_bad_tiles_verdict(tgi_bad_tiles_count(c->bad), c->input, c->output, err);
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* Slots of the writer, and threads that compress. */
static int window_of(const tgi_sink_layout *l)
{
    return (int)tgi_min(INT32_MAX, 2 * l->tiles_x + 2);
}

static int encoders_of(const copy *c)
{
    return (int)tgi_opts_int(c->opts, TGI_OPT_THREADS, c->machine->processors);
}

/* What the copy takes beside what the process holds by now, against --ram or, without one, all
 * that is free: a copy takes little. `l` NULL: the output is an array. */
static tg_status check_budget(copy *c, const tgi_sink_layout *l, uint64_t *peak, tgi_err *err)
{
    const size_t codec = c->source->ops->codec_bytes(c->source), now = tgi_mem_held();
    const size_t counted = c->row_bytes + (c->source_bytes < codec ? c->source_bytes : codec);
    uint64_t program = 0;
    const uint64_t held =
        tgi_machine_process(c->machine, now > counted ? now - counted : 0, &program);
    const uint64_t budget = tgi_opts_given(c->opts, TGI_OPT_RAM)
                                ? tgi_machine_budget(c->machine, c->opts, NULL)
                                : tgi_sat_add(tgi_mem_available(NULL), held);
    size_t need = tgi_sat_add(codec, ALLOWANCE_BYTES + c->row_bytes);
    char text[2][32];
    if (l)
        need = tgi_sat_add(need, tgi_commit_bytes(l, window_of(l), encoders_of(c)) +
                                     tgi_journal_bytes(l) + tgi_pyramid_bytes(l) +
                                     tgi_picture_make_bytes(c->writer, l, &c->meta));
    const uint64_t all = tgi_sat_add(need, held);
    if (peak)
        *peak = all;
    if (all <= budget)
        return TG_OK;
    c->refused = 1;
    const tg_status st = tgi_fail(err, TG_E_BUDGET, "the copy needs %s, the budget is %s",
                                  tgi_size_above(all, text[0], sizeof text[0]),
                                  tgi_size_below(budget, text[1], sizeof text[1]));
    return tgi_err_tried(err, st, "the copy", all);
}

/* ---- .npy -------------------------------------------------------------------------------- */

/* Elements between neighbours along an axis of the output array. */
static int64_t step_of(const copy *c, char letter)
{
    int64_t n = 1;
    for (int a = c->n_axes - 1; a >= 0; a--) {
        if (c->axes[a] == letter)
            return n;
        n *= c->shape[a];
    }
    return 0;
}

/* First element of a plane: plane axes in order, whatever lies between them. */
static int64_t plane_at(const copy *c, int64_t plane)
{
    int64_t at = 0, n = 1;
    for (int a = c->n_axes - 1; a >= 0; a--) {
        if (!strchr("YXS", c->axes[a])) {
            at += plane % c->shape[a] * n;
            plane /= c->shape[a];
        }
        n *= c->shape[a];
    }
    return at;
}

static tg_status npy_rows(copy *c, tgi_npy_out *out, int64_t plane, int64_t y0, int64_t y1,
                          tgi_err *err)
{
    const size_t size = tgi_dtype_size(c->dtype);
    const int64_t w = tgi_range_len(c->x), s_step = step_of(c, 'S'), x_step = step_of(c, 'X');
    const int interleaved = s_step == 1 && x_step > 1;
    for (int64_t r = 0; r < y1 - y0; r++) {
        const int64_t at = plane_at(c, plane) + (y0 + r) * step_of(c, 'Y');
        for (int64_t s = 0; s < c->info->samples; s++) {
            const char *src = row_of(c, s, r, y1 - y0);
            convert(c, src, w, interleaved ? c->out_rows + (size_t)s * size : c->out_rows,
                    x_step);
            if (!interleaved)
                TGI_TRY(tgi_npy_write(out, (uint64_t)(at + s * s_step) * size, c->out_rows,
                                      (size_t)w * size, err));
        }
        if (interleaved)
            TGI_TRY(tgi_npy_write(out, (uint64_t)at * size, c->out_rows,
                                  (size_t)(w * c->info->samples) * size, err));
    }
    return TG_OK;
}

static tg_status npy_planes(copy *c, tgi_npy_out *out, tgi_err *err)
{
    const int64_t h = tgi_range_len(c->y);
    for (int64_t p = 0; p < c->n_planes; p++)
        for (int64_t y = 0; y < h; y += c->step) {
            const int64_t y1 = tgi_min(h, y + c->step);
            TGI_TRY(read_rows(c, p, y, y1, err));
            TGI_TRY(npy_rows(c, out, p, y, y1, err));
            tell(c, ((double)p + (double)y1 / (double)h) / (double)c->n_planes);
        }
    return TG_OK;
}

static tg_status copy_to_npy(copy *c, tgi_err *err)
{
    tgi_desc d = {c->dtype, 0, {0}};
    tgi_npy_out out = {.part = TGI_PART_CLOSED};
    TGI_TRY(check_budget(c, NULL, NULL, err));
    for (int a = 0; a < c->n_axes; a++)
        if (c->shape[a] != 1 ||
            strchr("YX", c->axes[a])) /* a row of pixels is an image still */
            d.dim[d.rank++] = c->shape[a];
    TGI_TRY(tgi_npy_create(c->output, &d, tgi_opts_flag(c->opts, TGI_OPT_YES), &out, err));
    tg_status st = tgi_bad_tiles_begin_output(c->bad, c->output, err);
    if (st == TG_OK)
        st = watch_input(c, err);
    if (st == TG_OK)
        st = npy_planes(c, &out, err);
    st = input_held(c, st, err);
    if (st == TG_OK)
        st = list_bad(c, err);
    if (st == TG_OK)
        st = tgi_npy_finish(&out, err);
    tgi_npy_abandon(&out);
    if (st == TG_OK)
        return settle_bad(c, err);
    if (c->bad)
        tgi_bad_tiles_clear(c->bad);
    return st;
}

/* ---- TIFF -------------------------------------------------------------------------------- */

static tg_status make_layout(const copy *c, tgi_sink_layout **out, tgi_err *err)
{
    tgi_compress_spec z;
    tgi_sink_spec spec = {
        .dtype = c->dtype, .pyramid = tgi_opts_pyramid(c->opts), .meta = &c->meta};
    int n = 0;
    tgi_opts_compress(c->opts, &z);
    spec.compression = (tgi_compression)z.kind;
    spec.level = z.level > 0 ? z.level : 0;
    if (c->writer) /* the output is made of the tiles, which then go */
        spec.compression = TGI_COMPRESSION_NONE;
    for (int a = 0; a < c->n_axes; a++) /* planes first, then Y, X, S */
        if (!strchr("YXS", c->axes[a])) {
            spec.axes[n] = c->axes[a];
            spec.shape[n++] = c->shape[a];
        }
    spec.axes[n] = 'Y';
    spec.shape[n++] = tgi_range_len(c->y);
    spec.axes[n] = 'X';
    spec.shape[n++] = tgi_range_len(c->x);
    if (c->info->samples > 1) {
        spec.axes[n] = 'S';
        spec.shape[n++] = c->info->samples;
    }
    if (spec.compression != TGI_COMPRESSION_NONE)
        spec.predictor = tgi_dtype_is_float(spec.dtype) ? 3 : 2;
    return tgi_sink_layout_make(&spec, out, err);
}

/* One row of tiles of one plane. */
static tg_status tile_row(copy *c, const tgi_sink_layout *l, const tgi_journal *j,
                          tgi_commit *w, int64_t plane, int64_t ty, void **slot, tgi_err *err)
{
    const int64_t first = (plane * l->tiles_y + ty) * l->tiles_x;
    int64_t seq = c->seq;
    const int64_t y_end = tgi_min(l->height, (ty + 1) * l->tile_h);
    const size_t size = tgi_dtype_size(l->dtype);
    for (int64_t i = 0; i < l->tiles_x; i++) {
        slot[i] = NULL; /* written already, by a run that stopped within this row */
        if (!tgi_journal_has_tile(j, first + i))
            TGI_TRY(tgi_commit_slot(w, c->seq++, &slot[i], err));
    }
    for (int64_t y = ty * l->tile_h; y < y_end; y += c->step) {
        const int64_t y1 = tgi_min(y_end, y + c->step);
        TGI_TRY(read_rows(c, plane, y, y1, err));
        for (int64_t r = 0; r < y1 - y; r++)
            for (int64_t i = 0; i < l->tiles_x; i++)
                for (int64_t s = 0; s < l->samples; s++) {
                    const int64_t x = i * l->tile_w, n = tgi_min(l->tile_w, l->width - x);
                    const int64_t at = (y + r) % l->tile_h * l->tile_w * l->samples + s;
                    if (!slot[i])
                        continue;
                    convert(
                        c, row_of(c, s, r, y1 - y) + (size_t)x * tgi_dtype_size(c->info->dtype),
                        n, (char *)slot[i] + (size_t)at * size, l->samples);
                }
    }
    for (int64_t i = 0; i < l->tiles_x; i++)
        if (slot[i])
            TGI_TRY(tgi_commit_submit(w, seq++, first + i, err));
    return TG_OK;
}

static int row_is_there(const tgi_sink_layout *l, const tgi_journal *j, int64_t first)
{
    for (int64_t i = 0; i < l->tiles_x; i++)
        if (!tgi_journal_has_tile(j, first + i))
            return 0;
    return 1;
}

/* All that are missing. */
static tg_status tile_rows(copy *c, const tgi_sink_layout *l, const tgi_journal *j,
                           tgi_commit *w, void **slot, tgi_err *err)
{
    const int64_t n = l->n_planes * l->tiles_y;
    for (int64_t k = 0; k < n; k++) {
        if (row_is_there(l, j, k * l->tiles_x))
            continue;
        TGI_TRY(tile_row(c, l, j, w, k / l->tiles_y, k % l->tiles_y, slot, err));
        tell(c, (double)(k + 1) / (double)n);
    }
    return tgi_commit_flush(w, err);
}

static tg_status all_tiles(copy *c, const tgi_sink_layout *l, tgi_journal *j, tgi_commit *w,
                           void **slot, tgi_err *err)
{
    c->n_tiles = l->n_tiles;
    c->seq = c->resumed = tgi_journal_appended(j);
    TGI_TRY(tile_rows(c, l, j, w, slot, err));
    int64_t damaged;
    c->begun = tgi_seconds();
    TGI_TRY(tgi_journal_recheck(j, check_tick, c, &damaged, err));
    c->repairs = damaged;
    if (damaged) {
        tgi_ctx_log(c->ctx, TG_LOG_WARN,
                    "%s.partial: %lld of the %lld tiles that the interrupted copy left were "
                    "damaged and are written again",
                    c->output, (long long)damaged, (long long)c->resumed);
        TGI_TRY(tile_rows(c, l, j, w, slot, err));
    }
    tgi_pyramid_builder *b = NULL;
    tg_status st = tgi_pyramid_open(l, &b, err);
    if (st == TG_OK)
        st = tgi_pyramid_build(b, j, w, copy_stopped, NULL, err);
    tgi_pyramid_close(&b);
    return st;
}

static tg_status fingerprint(const copy *c, const tgi_sink_layout *l, char **out, tgi_err *err)
{
    char id[160], codec[64];
    tgi_lines t = {0};
    TGI_TRY(tgi_input_identity(c->source, id, sizeof id, err));
    tgi_fingerprint_program(&t, c->part ? PART : "copy " TG_VERSION_STRING);
    tgi_lines_add(&t, "input", "%s", id);
    tgi_lines_add(&t, "region", "%lld:%lld,%lld:%lld planes=%lld", (long long)c->y.lo,
                  (long long)c->y.hi, (long long)c->x.lo, (long long)c->x.hi,
                  (long long)c->n_planes);
    tgi_fingerprint_chosen(&t, c->opts);
    tgi_lines_add(&t, "pyramid", "%d", (int)tgi_opts_pyramid(c->opts));
    tgi_lines_add(&t, "dtype", "%s", tgi_dtype_name(c->dtype));
    tgi_lines_add(&t, "codec", "%s", tgi_tile_codec_text(l, codec, sizeof codec));
    if (c->writer)
        tgi_lines_add(&t, "format", "%s", c->writer->name);
    return tgi_lines_take(&t, out, err);
}

/* What an interrupted copy left is ours to go on with. */
static tg_status take_over(copy *c, const tgi_sink_layout *l, tgi_journal *j, const char *text,
                           tgi_err *err)
{
    size_t n;
    const void *stored = tgi_journal_job(j, &n);
    TGI_TRY(tgi_fingerprint_compare(stored, n, text, err));
    TGI_TRY(tgi_may_go_on(j, c->bad, c->output, err));
    return tgi_journal_state(j) == TGI_JOURNAL_FINISHED ? TG_OK : tgi_go_on(j, l, c->bad, err);
}

static tg_status begin(copy *c, const tgi_sink_layout *l, tgi_journal *j, tgi_err *err)
{
    char *text = NULL;
    tgi_err why = {0};
    tg_status st = TG_E_CHANGED;
    int afresh = c->part || tgi_journal_state(j) == TGI_JOURNAL_FRESH;
    TGI_TRY(fingerprint(c, l, &text, err));
    if (!afresh)
        st = take_over(c, l, j, text, &why);
    if (st == TG_E_CHANGED && !afresh && tgi_opts_flag(c->opts, TGI_OPT_YES)) {
        tgi_ctx_log(c->ctx, TG_LOG_WARN,
                    "-y: %s.partial, an interrupted output of another copy, is discarded",
                    c->output);
        afresh = 1;
    }
    if (afresh)
        st = tgi_journal_begin(j, l, text, strlen(text), &why);
    if (afresh && st == TG_OK)
        st = tgi_bad_tiles_begin_output(c->bad, c->output, &why);
    tgi_free(text);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", why.text);
    tgi_journal_watch_bad(j, c->bad);
    return TG_OK;
}

static tg_status write_tiles(copy *c, const tgi_sink_layout *l, tgi_journal *j, tgi_err *err)
{
    const int window = window_of(l), encoders = encoders_of(c);
    tgi_commit *w = NULL;
    tgi_reserve *mem = NULL;
    void *memory = NULL;
    void **slot = tgi_calloc(TGI_TAG_IO, (size_t)l->tiles_x, sizeof *slot);
    const size_t bytes = tgi_commit_bytes(l, window, encoders);
    tg_status st = slot ? tgi_reserve_open(bytes + 64, &mem, err)
                        : tgi_fail(err, TG_E_NOMEM, "no memory for tiles");
    if (st == TG_OK)
        st = tgi_reserve_take(mem, "window", bytes, &memory, err);
    const tgi_commit_opts o = {j, l, window, encoders, memory};
    if (st == TG_OK)
        st = tgi_commit_open(&o, &w, err);
    if (st == TG_OK)
        st = all_tiles(c, l, j, w, slot, err);
    if (w && st != TG_OK)
        tgi_commit_stop(w);
    tgi_err late = {0};
    const tg_status closed = w ? tgi_commit_close(&w, &late) : TG_OK;
    if (st == TG_OK && closed != TG_OK)
        st = tgi_fail(err, closed, "%s", late.text);
    tgi_reserve_close(&mem);
    tgi_free(slot);
    return st;
}

/* Of a copy that failed: what nobody can go on with goes. */
static void leave(copy *c, tgi_journal *j, tg_status st)
{
    if (st != TG_E_FORMAT)
        return; /* the same copy goes on, if the input is the same */
    if (c->changed)
        tgi_journal_forget(j);
    else if (!tgi_journal_abandon(j))
        return;
    if (c->bad)
        tgi_bad_tiles_clear(c->bad);
}

static tg_status fill_tiff(copy *c, const tgi_sink_layout *l, tgi_journal *j, tgi_err *err)
{
    tg_status st = watch_input(c, err);
    if (st == TG_OK)
        st = write_tiles(c, l, j, err);
    st = input_held(c, st, err);
    leave(c, j, st);
    if (st == TG_OK)
        st = tgi_picture_make(c->writer, l, &c->meta, j, err);
    if (st == TG_OK)
        st = list_bad(c, err);
    if (st == TG_OK)
        st = c->part ? tgi_journal_seal(j, err) : tgi_journal_finish(j, err);
    return st == TG_OK ? settle_bad(c, err) : st;
}

int tgi_copy_was_part(const tgi_journal *j)
{
    size_t n;
    char program[64];
    const char *stored = tgi_journal_job(j, &n);
    return n && tgi_fingerprint_get(stored, n, "tegula", program, sizeof program) &&
           strncmp(program, PART, strcspn(PART, " ")) == 0;
}

/* Begin, or go on with, or find finished. */
static tg_status attempt(copy *c, const tgi_sink_layout *l, tgi_journal *j, tgi_err *err)
{
    int settled;
    TGI_TRY(begin(c, l, j, err));
    return tgi_journal_state(j) == TGI_JOURNAL_FINISHED
               ? tgi_settle(j, c->bad, c->input, c->output, &settled, err)
               : fill_tiff(c, l, j, err);
}

/* -y: what was found to be of no use goes, and all begins once more. */
static tg_status discard(copy *c, tgi_journal **j, tgi_err *err)
{
    tgi_ctx_log(c->ctx, TG_LOG_WARN, "-y: %s.partial is discarded: %s", c->output, err->text);
    *err = (tgi_err){0};
    tgi_input_hash_close(&c->hash);
    tgi_journal_forget(*j);
    tgi_journal_close(j);
    if (c->bad)
        tgi_bad_tiles_clear(c->bad);
    c->repairs = c->clipped = c->converted = 0;
    return tgi_journal_open(c->output, 1, NULL, j, err);
}

static tg_status copy_to_tiff(copy *c, tgi_err *err)
{
    tgi_sink_layout *l = NULL;
    tgi_journal *j = c->part ? c->part->journal : NULL;
    tg_status st = make_layout(c, &l, err);
    if (st == TG_OK)
        st = tgi_picture_check(c->writer, c->output, l, &c->meta, err);
    if (st == TG_OK)
        st = check_budget(c, l, NULL, err);
    if (st == TG_OK && !j)
        st = tgi_journal_open(c->output, tgi_opts_flag(c->opts, TGI_OPT_YES), NULL, &j, err);
    if (st == TG_OK)
        st = attempt(c, l, j, err);
    if (st == TG_E_CHANGED && j && tgi_journal_is_another(j) &&
        tgi_opts_flag(c->opts, TGI_OPT_YES)) {
        st = discard(c, &j, err);
        if (st == TG_OK)
            st = attempt(c, l, j, err);
    }
    if (!c->part)
        tgi_journal_close(&j);
    tgi_sink_layout_free(&l);
    return st;
}

static int is_array(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0;
}

/* Begin again, with decoders that hold as little as they can. */
static void spare(copy *c, const tg_opts *o)
{
    close_copy(c);
    memset(c, 0, sizeof *c);
    c->opts = o;
    c->spare = 1;
}

/* Open and check alone. */
static tg_status count_copy(copy *c, uint64_t *bytes, tgi_err *err)
{
    tgi_sink_layout *l = NULL;
    tg_status st = open_copy(c, err);
    if (st == TG_OK && !is_array(c->output))
        st = make_layout(c, &l, err);
    if (st == TG_OK)
        st = check_budget(c, l, bytes, err);
    tgi_sink_layout_free(&l);
    return st;
}

tg_status tgi_copy_peak(const tg_opts *o, uint64_t *bytes, tgi_err *err)
{
    copy c = {.opts = o};
    tgi_err e = {0};
    tg_status st = count_copy(&c, bytes, &e);
    if (c.refused) {
        spare(&c, o);
        e = (tgi_err){0};
        st = count_copy(&c, bytes, &e);
    }
    close_copy(&c);
    if (st != TG_OK && err)
        *err = e;
    return st;
}

static tg_status copy_opened(copy *c, tgi_err *err)
{
    return is_array(c->output) ? copy_to_npy(c, err) : copy_to_tiff(c, err);
}

/* Within a budget that has no more room, decoders hold as little as they can. */
static tg_status copy_sparing(copy *c, tg_ctx *ctx, tgi_err *err)
{
    const double begun = c->begun;
    const tgi_copy_part *part = c->part;
    spare(c, c->opts);
    c->begun = begun;
    c->part = part;
    TGI_TRY(open_copy(c, err)); /* warnings were told the first time */
    c->ctx = ctx;
    return copy_opened(c, err);
}

tg_status tgi_copy(tg_ctx *ctx, const tg_opts *o, const tgi_copy_part *part, tgi_err *err)
{
    copy c = {.ctx = ctx, .opts = o, .begun = tgi_seconds(), .part = part};
    tgi_err e = {0};
    tg_status st = open_copy(&c, &e);
    if (st == TG_OK)
        st = copy_opened(&c, &e);
    if (c.refused) {
        e = (tgi_err){0};
        st = copy_sparing(&c, ctx, &e);
    }
    if (st != TG_OK && err)
        *err = e;
    if (st == TG_OK && (double)c.clipped > TGI_CLIPPED_MANY * (double)c.converted)
        tgi_ctx_log(ctx, TG_LOG_WARN,
                    "%s: %.0f %% of the values do not fit %s and were clipped",
                    part ? c.output : c.input, 100 * (double)c.clipped / (double)c.converted,
                    tgi_dtype_name(c.dtype));
    if (st == TG_OK && atomic_load(&c.surplus))
        tgi_ctx_log(ctx, TG_LOG_WARN,
                    "%s: blocks of it hold far more data than pixels: what lies behind the "
                    "pixels was not read, and may be damaged",
                    c.input);
    close_copy(&c);
    return st;
}
