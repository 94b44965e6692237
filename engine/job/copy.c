/* copy.c - an image through the same reader and writer, no network between: to convert, to
 * crop, and to see that nothing is lost on the way. TIFF output goes through the journal like a
 * run's, a picture is made of such a TIFF; .npy output is written to OUT.partial and renamed.
 */
#include "engine/job/copy.h"
#include "engine/job/copy_priv.h"
#include "engine/job/go_on.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_open.h"
#include "engine/job/run_tiles.h"

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/ends/tensors.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"
#include "engine/job/lost.h"
#include "engine/memory/monitor.h"
#include "engine/out/gate.h"
#include "engine/out/pyramid.h"
#include "engine/settings/opts_source.h"
#include "io/film_out.h"
#include "io/ome_write.h"
#include "io/picked.h"
#include "kernels/pixels_exact.h"

#include <string.h>

/* ---- What to copy ------------------------------------------------------------------------ */

static tg_status choose_region(tgi_copying *c, tgi_err *err)
{
    tgi_roi_spec roi;
    const int64_t extent[3] = {1, c->info->height, c->info->width};
    tgi_range r[3] = {{0, 1}, {0, extent[1]}, {0, extent[2]}};
    if (tgi_opts_roi(c->opts, &roi)) {
        roi.ax[0] = (tgi_range){0, TGI_ROI_OPEN}; /* slices were chosen when it was opened */
        TGI_TRY(tgi_roi_resolve(&roi, extent, r, err));
    }
    c->y = r[1];
    c->x = r[2];
    tgi_opts_planes(c->opts, &c->planes);
    TGI_TRY(tgi_planes_resolve(&c->planes, c->info->n_planes, &c->n_planes, err));
    if (c->n_planes == c->info->n_planes)
        return TG_OK;
    int picked = 0;
    TGI_TRY(tgi_picked_planes(&c->source, NULL, &c->planes, c->n_planes, &picked, err));
    c->info = c->source->ops->info(c->source);
    if (picked && strcmp(c->info->note, c->source->ops->inner(c->source)
                                            ->ops->info(c->source->ops->inner(c->source))
                                            ->note) != 0)
        tgi_ctx_log(c->ctx, TG_LOG_WARN, "%s: %s", c->input, c->info->note);
    if (picked) {
        c->planes = (tgi_planes_spec){0};
        TGI_TRY(tgi_planes_resolve(&c->planes, c->info->n_planes, &c->n_planes, err));
    } else if (strcmp(c->info->format, "film") != 0) {
        TGI_TRY(tgi_in_turn_make(c->info, NULL, &c->planes, c->n_planes, &c->in_turn, err));
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_PLANES_MIXED, c->input,
                    tgi_in_turn_told(&c->in_turn, c->info));
    }
    return TG_OK;
}

static void list_axes(tgi_copying *c)
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
                c->axes[c->n_axes] = /* OME has no axis of anything: such planes are in turn */
                    c->chosen.letter == 'I' && strcmp(i->flavor, "ome") == 0 ? 'T'
                                                                             : c->chosen.letter;
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
    tgi_ome_letters(c->output, c->axes);
}

/* What is known beside the pixels and holds for the output. */
static void choose_meta(tgi_copying *c)
{
    tgi_image_meta *m = &c->meta;
    *m = c->part && c->part->meta ? *c->part->meta : c->info->meta;
    if (c->n_planes != c->info->n_planes) { /* some planes: they have no channels any more */
        m->n_channels = m->n_made = m->n_luts = m->n_ranges = m->mode = 0;
        m->n_labels = 0;
        m->time_increment =
            c->chosen.letter == 'T' ? tgi_chosen_scale(&c->chosen, 'T', m->time_increment) : 0;
        m->physical[0] = tgi_chosen_scale(&c->chosen, 'Z', m->physical[0]);
    }
    m->ome_place.shift[0] += (double)c->y.lo;
    m->ome_place.shift[1] += (double)c->x.lo;
    if (c->in_turn.n)
        tgi_in_turn_meta(&c->in_turn, c->info, m);
    else
        m->ome_place.no_planes |= c->n_planes != c->info->n_planes;
    if (tgi_range_len(c->y) < c->info->height || tgi_range_len(c->x) < c->info->width) {
        m->ome_place.extent[1] = tgi_range_len(c->y);
        m->ome_place.extent[2] = tgi_range_len(c->x);
    }
    if (c->dtype != c->info->dtype) { /* numbers of another type are no indices and no inks */
        m->stored_as = TGI_STORED_LIGHT;
        m->ome_place.other_values = 1;
    }
}

static tg_status pass_gate(const tgi_copying *c, tgi_err *err)
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

void tgi_copy_tell_lost(const tgi_copying *c, const tgi_sink_layout *l)
{
    char words[480];
    const tgi_lost_to to = l ? TGI_LOST_TO_IMAGE : TGI_LOST_TO_ARRAY;
    tgi_lost_words(to, c->writer, l, &c->meta, words, sizeof words);
    if (words[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_LOST_META, c->output, words,
                    tgi_lost_why(to, c->writer));
    const int64_t shapes =
        tgi_lost_nothing(to, c->writer, l) ? tgi_rois_lost(c->meta.ome, &c->meta.ome_place) : 0;
    if (shapes)
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_LOST_SHAPES, c->output, (long long)shapes,
                    shapes == 1 ? "" : "s", shapes == 1 ? "is" : "are");
}

/* Values are written as they are: of a type with more bits they are near its dark end. */
static void warn_of_bits(const tgi_copying *c)
{
    const int shown = c->writer && !c->writer->images, bits = c->info->bits;
    if (bits && (shown || bits < 8) && !c->meta.palette && !tgi_names_npy(c->output) &&
        !tgi_dtype_is_float(c->dtype))
        tgi_ctx_log(c->ctx, TG_LOG_WARN,
                    "%s: the values have %d bit%s and are written as they are, 0 to %lld: %s",
                    c->input, bits, bits == 1 ? "" : "s", (1LL << bits) - 1,
                    shown ? "the picture is dark" : "viewers show them dark");
}

/* What the numbers of the input mean and the output does not say. */
static tg_status check_meaning(const tgi_copying *c, tgi_err *err)
{
    const tgi_stored as = c->info->meta.stored_as;
    const int shown = c->writer && !c->writer->images, other = c->dtype != c->info->dtype;
    if (!as || tgi_names_npy(c->output) || !(shown || other))
        return TG_OK;
    if (tgi_opts_pyramid(c->opts) == TGI_PYRAMID_MEAN && !tgi_dtype_is_float(c->info->dtype) &&
        (as == TGI_STORED_PALETTE || as == TGI_STORED_CIELAB))
        return tgi_fail(err, TG_E_ARG,
                        "%s: the pixels are stored as %s, whose means are other colours: "
                        "--pyramid nearest, or leave it out",
                        c->input, tgi_stored_name(as));
    tgi_ctx_log(c->ctx, TG_LOG_WARN,
                "%s: the pixels are stored as %s and written as they are: %s", c->input,
                tgi_stored_name(as),
                shown ? "the picture will look otherwise"
                      : "of another type the output does not say so");
    return TG_OK;
}

/* ---- Open -------------------------------------------------------------------------------- */

/* A source that is not there yet. */
typedef struct expected {
    tgi_source base;
    tgi_image_info info;
    size_t bytes;
} expected;

static const tgi_image_info *expected_info(const tgi_source *s)
{
    return &((const expected *)s)->info;
}

static tg_status expected_read(tgi_source *s, int thread, int64_t plane, int s0, int s1,
                               int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                               size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    (void)s, (void)thread, (void)plane, (void)s0, (void)s1, (void)y0, (void)y1, (void)x0,
        (void)x1, (void)dst, (void)row_pitch, (void)sample_pitch;
    return tgi_fail(err, TG_E_INTERNAL, "the input is not there");
}

static void expected_close(tgi_source **s)
{
    tgi_free(*s);
    *s = NULL;
}

static size_t expected_bytes(const tgi_source *s)
{
    return ((const expected *)s)->bytes;
}

static const tgi_source_ops expected_ops = {.format = "expected",
                                            .info = expected_info,
                                            .read = expected_read,
                                            .close = expected_close,
                                            .codec_bytes = expected_bytes};

static tg_status open_expected(tgi_copying *c, tgi_err *err)
{
    expected *e = tgi_calloc(TGI_TAG_IO, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a copy");
    e->base.ops = &expected_ops;
    e->info = *c->part->info;
    e->bytes = c->part->reader_bytes;
    c->source = &e->base;
    return TG_OK;
}

static tg_status check_output(const tgi_copying *c, tgi_err *err)
{
    if (!c->input || !c->output)
        return tgi_fail(err, TG_E_ARG,
                        "copy needs an input and an output (-o OUT.tif|.png|.jpg|.npy)");
    TGI_TRY(tgi_check_output_name(c->output, 0, err));
    if (tgi_film_container(c->output))
        return tgi_fail(err, TG_E_ARG, "%s: copy writes no films: -o OUT.tif|.png|.jpg|.npy",
                        c->output);
    if (c->output[strlen(c->output) - 1] == '/')
        return tgi_fail(err, TG_E_ARG, "%s: copy writes one file: -o %sOUT.tif", c->output,
                        c->output);
    return TG_OK;
}

static tg_status open_input(tgi_copying *c, tgi_err *err)
{
    int among = 0;
    tgi_open_opts o = {.threads = 1,
                       .but = c->but,
                       .but_found = &among,
                       .decode_budget = tgi_decode_budget(c->budget),
                       .budget = c->budget,
                       .text_budget = tgi_text_budget(c->budget),
                       .spare = c->spare,
                       .cancelled = tgi_cancel_signal,
                       .keep_bad = tgi_opts_choice(c->opts, TGI_OPT_ON_BAD_TILE) == 2,
                       .truncated = tgi_opts_flag(c->opts, TGI_OPT_ALLOW_TRUNCATED),
                       .surplus = &c->surplus};
    TGI_TRY(tgi_opts_source_check(c->opts, err));
    tgi_opts_source(c->opts, &o);
    tgi_opts_source_slices(c->opts, &o);
    const int shown = tgi_picture_writer_for(c->output) != NULL;
    o.pick.apart = !tgi_names_npy(c->output) && !shown;
    o.pick.picture = shown && !tgi_opts_str(c->opts, TGI_OPT_POST);
    if (tgi_opts_choice(c->opts, TGI_OPT_ON_BAD_TILE) > 0) {
        TGI_TRY(tgi_bad_tiles_new(c->output, &c->bad, err));
        o.on_bad = tgi_bad_tiles_note;
        o.on_bad_arg = c->bad;
    }
    const size_t before = tgi_mem_held();
    TGI_TRY(tgi_decode_refused(tgi_source_open(c->input, &o, &c->source, err), err));
    if (!among) /* it lies elsewhere */
        c->but = NULL;
    c->source_bytes = tgi_mem_held() - before;
    return pass_gate(c, err);
}

/* What the file says and the copy does not carry. */
static void tell_of_input(const tgi_copying *c)
{
    if (c->info->note[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, "%s: %s", c->input, c->info->note);
    if (tgi_more_images(c->info, c->opts))
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_MORE_IMAGES, c->input,
                    TGI_MORE_IMAGES_OF(c->info));
    if (c->info->meta.malformed[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_MALFORMED_META, c->input, c->info->meta.malformed);
    if (c->info->meta.left_behind[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, "%s: it also has %s: a copy does not carry these",
                    c->input, c->info->meta.left_behind);
}

static tg_status open_rows(tgi_copying *c, tgi_err *err)
{
    const size_t row = (size_t)tgi_range_len(c->x) * tgi_dtype_size(c->info->dtype);
    c->step = tgi_clamp((int64_t)(ROWS_BYTES / (row ? row : 1)), 1, tgi_range_len(c->y));
    c->row_bytes = (size_t)(c->step * c->info->samples) * row +
                   (size_t)(tgi_range_len(c->x) * c->info->samples) * 8;
    c->in_rows = tgi_calloc(TGI_TAG_IO, (size_t)(c->step * c->info->samples), row);
    c->out_rows = tgi_calloc(TGI_TAG_IO, (size_t)(tgi_range_len(c->x) * c->info->samples), 8);
    return c->in_rows && c->out_rows ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for rows");
}

static tg_status open_copy(tgi_copying *c, tgi_err *err)
{
    tg_dtype asked = TG_DTYPE_NONE;
    c->machine = tgi_malloc(TGI_TAG_MISC, sizeof *c->machine);
    if (!c->machine)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a copy");
    tgi_machine_here(c->machine);
    c->budget = c->part && c->part->budget ? c->part->budget
                                           : tgi_machine_budget(c->machine, c->opts, NULL);
    c->input = tgi_opts_str(c->opts, TGI_OPT_INPUT);
    c->output = tgi_opts_str(c->opts, TGI_OPT_OUTPUT);
    tgi_leave_out(c->input, c->output, &c->but);
    TGI_TRY(check_output(c, err));
    TGI_TRY(c->part && c->part->info ? open_expected(c, err) : open_input(c, err));
    c->info = c->source->ops->info(c->source);
    tell_of_input(c);
    c->dtype =
        tgi_opts_dtype(c->opts, &asked) && asked != TG_DTYPE_NONE ? asked : c->info->dtype;
    TGI_TRY(tgi_picture_choose(c->opts, &c->writer, err));
    TGI_TRY(choose_region(c, err));
    list_axes(c);
    choose_meta(c);
    TGI_TRY(tgi_copy_add_post(c, err));
    TGI_TRY(check_meaning(c, err));
    warn_of_bits(c);
    return open_rows(c, err);
}

static void close_copy(tgi_copying *c)
{
    tgi_input_hash_close(&c->hash);
    if (c->source)
        tgi_source_close(&c->source);
    tgi_bad_tiles_free(&c->bad);
    tgi_in_turn_free(&c->in_turn);
    tgi_free(c->machine);
    tgi_free(c->in_rows);
    tgi_free(c->out_rows);
}

/* ---- Watching ---------------------------------------------------------------------------- */

#define POST_TELLS_EVERY 0.02 /* seconds */

static void say(const tgi_copying *c, const char *phase, double fraction)
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

void tgi_copy_tell(const tgi_copying *c, double fraction)
{
    say(c, "copy", fraction);
}

tg_status tgi_copy_stopped(void *user, tgi_err *err)
{
    (void)user;
    return tgi_cancel_signal() ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s", tgi_cancel_by())
                               : TG_OK;
}

tg_status tgi_copy_check_tick(void *user, double fraction, tgi_err *err)
{
    say(user, "check", fraction);
    return tgi_copy_stopped(user, err);
}

/* It ticks with each row of each plane, and to look at the process costs as much as a short row. */
tg_status tgi_copy_post_tick(void *user, const char *phase, double fraction, tgi_err *err)
{
    tgi_copying *c = user;
    const double now = tgi_seconds();
    const int goes_on = c->post_phase && strcmp(c->post_phase, phase) == 0;
    if (!goes_on || fraction >= 1 || now - c->post_told >= POST_TELLS_EVERY) {
        say(c, phase, fraction);
        c->post_phase = phase;
        c->post_told = now;
    }
    return tgi_copy_stopped(user, err);
}

tg_status tgi_copy_watch_input(tgi_copying *c, tgi_err *err)
{
    if (c->part)
        return TG_OK;
    TGI_TRY(tgi_input_hash_open(tgi_source_held, c->source, NULL, TGI_INPUT_HASH_LITTLE,
                                &c->hash, err));
    tgi_input_hash_expect(c->hash, c->input_sum);
    return TG_OK;
}

tg_status tgi_copy_input_held(tgi_copying *c, tg_status st, tgi_err *err)
{
    tgi_err none = {0};
    tgi_input_digest d = {.trouble = ""};
    if (st == TG_OK && c->hash) {
        st = tgi_input_hash_settle(c->hash, tgi_copy_check_tick, c, &d, err);
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

tg_status tgi_copy_read_rows(tgi_copying *c, int64_t plane, int64_t y0, int64_t y1,
                             tgi_err *err)
{
    const size_t pitch = (size_t)tgi_range_len(c->x) * tgi_dtype_size(c->info->dtype);
    TGI_TRY(tgi_copy_stopped(c, err));
    const tg_status st = tgi_input_hash_check(c->hash, tgi_copy_check_tick, c, err);
    c->changed |= st == TG_E_FORMAT;
    TGI_TRY(st);
    return tgi_source_read(c->source, 0, tgi_planes_at(&c->planes, plane), 0, c->info->samples,
                           c->y.lo + y0, c->y.lo + y1, c->x.lo, c->x.hi, c->in_rows, pitch,
                           pitch * (size_t)(y1 - y0), err);
}

void tgi_copy_convert(tgi_copying *c, const char *src, int64_t n, char *dst, int64_t stride)
{
    const size_t size = tgi_dtype_size(c->dtype);
    if (c->dtype == c->info->dtype) {
        for (int64_t i = 0; i < n && stride > 1; i++)
            memcpy(dst + (size_t)(i * stride) * size, src + (size_t)i * size, size);
        if (stride == 1)
            memcpy(dst, src, (size_t)n * size);
        return;
    }
    if (tgi_pixels_need_exact(c->info->dtype, c->dtype)) {
        c->clipped += tgi_pixels_convert_exact(c->info->dtype, src, n, c->dtype, dst, stride);
        c->converted += n;
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

const char *tgi_copy_row_of(const tgi_copying *c, int64_t s, int64_t r, int64_t rows)
{
    const size_t pitch = (size_t)tgi_range_len(c->x) * tgi_dtype_size(c->info->dtype);
    return c->in_rows + (size_t)(s * rows + r) * pitch;
}

/* ---- What could not be decoded ----------------------------------------------------------- */

tg_status tgi_copy_list_bad(tgi_copying *c, tgi_err *err)
{
    return c->bad ? tgi_bad_tiles_write(c->bad, c->input, c->source, err) : TG_OK;
}

tg_status tgi_copy_verdict(const tgi_copying *c, tgi_err *err)
{
    return tgi_bad_tiles_verdict(tgi_bad_tiles_count(c->bad), c->input, c->source, c->output,
                                 err);
}

/* ---- Memory ------------------------------------------------------------------------------ */

int tgi_copy_window_of(const tgi_sink_layout *l)
{
    return (int)tgi_min(INT32_MAX, 2 * l->tiles_x + 2);
}

int tgi_copy_encoders_of(const tgi_copying *c)
{
    return (int)tgi_opts_int(c->opts, TGI_OPT_THREADS, c->machine->processors);
}

tg_status tgi_copy_check_budget(tgi_copying *c, const tgi_sink_layout *l, uint64_t *peak,
                                tgi_err *err)
{
    const size_t codec = c->source->ops->codec_bytes(c->source), now = tgi_mem_held();
    const size_t counted = c->row_bytes + (c->source_bytes < codec ? c->source_bytes : codec);
    uint64_t program = 0, more;
    const uint64_t held =
        c->part && c->part->held
            ? c->part->held
            : tgi_machine_process(c->machine, now > counted ? now - counted : 0, &program,
                                  &more);
    const uint64_t budget = c->part && c->part->budget ? c->part->budget
                            : tgi_opts_given(c->opts, TGI_OPT_RAM)
                                ? tgi_machine_budget(c->machine, c->opts, NULL)
                                : tgi_sat_add(tgi_mem_available(NULL), held);
    size_t need = tgi_sat_add(codec, TGI_ALLOWANCE_BYTES + c->row_bytes);
    char text[2][32];
    if (l)
        need = tgi_sat_add(need,
                           tgi_commit_bytes(l, tgi_copy_window_of(l), tgi_copy_encoders_of(c)) +
                               tgi_journal_bytes(l) + tgi_pyramid_bytes(l) +
                               tgi_picture_make_bytes(c->writer, l, &c->meta));
    TGI_TRY(tgi_copy_choose_post(c, tgi_sat_add(need, held), budget, err));
    const uint64_t all =
        tgi_sat_add(tgi_sat_add(need, held), tgi_sat_add(c->post_bytes, c->table_bytes));
    if (peak)
        *peak = all;
    if (all <= budget)
        return TG_OK;
    c->refused = 1;
    const tg_status st =
        tgi_fail(err, TG_E_BUDGET, "%s needs %s, the budget is %s%s",
                 c->part ? "the output behind the network" : "the copy",
                 tgi_size_above(all, text[0], sizeof text[0]),
                 tgi_size_below(budget, text[1], sizeof text[1]),
                 tgi_copy_post_needs_scratch(c)
                     ? ": --scratch DIR, a folder on a disk, holds what --post has to know of "
                       "the whole image"
                     : "");
    return tgi_err_tried(err, st, "the copy", all);
}

/* Begin again, with decoders that hold as little as they can. */
static void spare(tgi_copying *c, const tg_opts *o)
{
    close_copy(c);
    memset(c, 0, sizeof *c);
    c->opts = o;
    c->spare = 1;
}

/* Open and check alone. */
static tg_status count_copy(tgi_copying *c, uint64_t *bytes, tgi_err *err)
{
    tgi_sink_layout *l = NULL;
    tg_status st = open_copy(c, err);
    if (st == TG_OK && !tgi_names_npy(c->output))
        st = tgi_copy_make_layout(c, &l, err);
    if (st == TG_OK)
        st = tgi_copy_check_budget(c, l, bytes, err);
    tgi_sink_layout_free(&l);
    return st;
}

tg_status tgi_copy_peak(const tg_opts *o, uint64_t *bytes, tgi_err *err)
{
    tgi_copying c = {.opts = o};
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

tg_status tgi_copy_count(const tg_opts *o, const tgi_copy_part *part, tgi_copy_figures *out,
                         tgi_err *err)
{
    tgi_copying c = {.opts = o, .part = part};
    tgi_sink_layout *l = NULL;
    tg_status st = open_copy(&c, err);
    if (st == TG_OK)
        st = tgi_copy_make_layout(&c, &l, err);
    if (st == TG_OK)
        st = tgi_picture_check(c.writer, c.output, l, &c.meta, err);
    if (st == TG_OK)
        st = tgi_copy_check_budget(&c, l, &out->peak, err);
    if (st == TG_OK) {
        out->output = c.writer ? 2 * l->file_bytes : l->file_bytes;
        out->scratch = c.post_folder ? tgi_copy_post_scratch(&c) : 0;
    }
    tgi_sink_layout_free(&l);
    close_copy(&c);
    return st;
}

static tg_status copy_opened(tgi_copying *c, tgi_err *err)
{
    return tgi_names_npy(c->output) ? tgi_copy_to_npy(c, err) : tgi_copy_to_tiff(c, err);
}

/* Within a budget that has no more room, decoders hold as little as they can. */
static tg_status copy_sparing(tgi_copying *c, tg_ctx *ctx, tgi_err *err)
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
    tgi_copying c = {.ctx = ctx, .opts = o, .begun = tgi_seconds(), .part = part};
    tgi_err e = {0};
    if (!part)
        tgi_pages_keep_at_most(0); /* its memory is not a reservation */
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
    const int found = st == TG_OK ? atomic_load(&c.surplus) : 0;
    for (int bit = 1; bit <= found; bit *= 2)
        if (found & bit)
            tgi_ctx_log(ctx, TG_LOG_WARN, "%s: %s", c.input, tgi_surplus_text(bit));
    close_copy(&c);
    return st;
}
