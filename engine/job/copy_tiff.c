/* copy_tiff.c - a copy to a TIFF, tile by tile through the journal. */
#include "engine/job/copy.h"
#include "engine/job/copy_priv.h"
#include "engine/job/job_settings.h"

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/ends/tensors.h"
#include "engine/job/fingerprint.h"
#include "engine/job/go_on.h"
#include "engine/job/job_picture.h"
#include "engine/out/pyramid.h"
#include "io/ome_write.h"
#include <stdio.h>
#include <string.h>

/* The program in the fingerprint of a copy that is part of a job: nobody goes on with it. */
#define PART TGI_ARRAY_IMAGE " " TG_VERSION_STRING

/* ---- TIFF -------------------------------------------------------------------------------- */

tg_status tgi_copy_make_layout(const tgi_copying *c, tgi_sink_layout **out, tgi_err *err)
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
    spec.predictor = tgi_sink_predictor(spec.compression, spec.dtype);
    TGI_TRY(tgi_ome_may(c->output, c->dtype, spec.axes, err));
    return tgi_sink_layout_make(&spec, out, err);
}

/* One row of tiles of one plane. */
static tg_status tile_row(tgi_copying *c, const tgi_sink_layout *l, const tgi_journal *j,
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
        TGI_TRY(tgi_copy_read_rows(c, plane, y, y1, err));
        for (int64_t r = 0; r < y1 - y; r++)
            for (int64_t i = 0; i < l->tiles_x; i++)
                for (int64_t s = 0; s < l->samples; s++) {
                    const int64_t x = i * l->tile_w, n = tgi_min(l->tile_w, l->width - x);
                    const int64_t at = (y + r) % l->tile_h * l->tile_w * l->samples + s;
                    if (!slot[i])
                        continue;
                    tgi_copy_convert(c,
                                     tgi_copy_row_of(c, s, r, y1 - y) +
                                         (size_t)x * tgi_dtype_size(c->info->dtype),
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

/* Who goes on with the journal knows then what all of the input was. */
static void say_input(tgi_copying *c, const tgi_journal *j)
{
    const char *sum = tgi_input_hash_known(c->hash);
    if (!sum || c->input_sum[0] || c->unsure)
        return;
    snprintf(c->input_sum, sizeof c->input_sum, "%s", sum);
    tgi_journal_say_input(j, sum);
}

/* All that are missing. */
static tg_status tile_rows(tgi_copying *c, const tgi_sink_layout *l, const tgi_journal *j,
                           tgi_commit *w, void **slot, tgi_err *err)
{
    const int64_t n = l->n_planes * l->tiles_y;
    for (int64_t k = 0; k < n; k++) {
        if (row_is_there(l, j, k * l->tiles_x))
            continue;
        TGI_TRY(tile_row(c, l, j, w, k / l->tiles_y, k % l->tiles_y, slot, err));
        say_input(c, j);
        tgi_copy_tell(c, (double)(k + 1) / (double)n);
    }
    return tgi_commit_flush(w, err);
}

static tg_status all_tiles(tgi_copying *c, const tgi_sink_layout *l, tgi_journal *j,
                           tgi_commit *w, void **slot, tgi_err *err)
{
    c->n_tiles = l->n_tiles;
    c->seq = c->resumed = tgi_journal_appended(j);
    TGI_TRY(tile_rows(c, l, j, w, slot, err));
    int64_t damaged;
    c->begun = tgi_seconds();
    TGI_TRY(tgi_journal_recheck(j, tgi_copy_check_tick, c, &damaged, err));
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
        st = tgi_pyramid_build(b, j, w, tgi_copy_stopped, NULL, err);
    tgi_pyramid_close(&b);
    return st;
}

static tg_status fingerprint(const tgi_copying *c, const tgi_sink_layout *l, char **out,
                             tgi_err *err)
{
    char codec[64];
    tgi_lines t = {0};
    if (c->part && c->part->fingerprint) {
        *out = tgi_strdup(TGI_TAG_IO, c->part->fingerprint);
        return *out ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a fingerprint");
    }
    tgi_fingerprint_program(&t, c->part ? PART : "copy " TG_VERSION_STRING);
    tg_status st = tgi_fingerprint_input(&t, c->source, err);
    tgi_lines_add(&t, "region", "%lld:%lld,%lld:%lld planes=%lld", (long long)c->y.lo,
                  (long long)c->y.hi, (long long)c->x.lo, (long long)c->x.hi,
                  (long long)c->n_planes);
    if (st == TG_OK)
        st = tgi_fingerprint_chosen(
            &t, c->opts, c->source,
            c->n_planes == c->info->n_planes ? &(tgi_planes_spec){0} : &c->planes, err);
    if (st != TG_OK) {
        tgi_free(t.p);
        return st;
    }
    tgi_lines_add(&t, "pyramid", "%d", (int)tgi_opts_pyramid(c->opts));
    tgi_lines_add(&t, "dtype", "%s", tgi_dtype_name(c->dtype));
    if (c->post)
        tgi_lines_add(&t, "post", "%s", tgi_opts_str(c->opts, TGI_OPT_POST));
    tgi_lines_add(&t, "codec", "%s", tgi_tile_codec_text(l, codec, sizeof codec));
    if (c->writer)
        tgi_lines_add(&t, "format", "%s", c->writer->name);
    return tgi_lines_take(&t, out, err);
}

/* What an interrupted copy left is ours to go on with. */
static tg_status take_over(tgi_copying *c, const tgi_sink_layout *l, tgi_journal *j,
                           const char *text, tgi_err *err)
{
    size_t n;
    const void *stored = tgi_journal_job(j, &n);
    TGI_TRY(tgi_fingerprint_compare(stored, n, text, err));
    if (!c->part)
        TGI_TRY(tgi_same_input(c->ctx, j, c->source, text, c->input_sum, &c->unsure, err));
    if (c->unsure)
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_UNSURE_INPUT, c->input);
    TGI_TRY(tgi_may_go_on(j, c->bad, c->output, err));
    return tgi_journal_state(j) == TGI_JOURNAL_FINISHED
               ? TG_OK
               : tgi_go_on(j, l, c->bad, tgi_journal_bad(j), err);
}

static tg_status begin(tgi_copying *c, const tgi_sink_layout *l, tgi_journal *j, tgi_err *err)
{
    char *text = NULL;
    tgi_err why = {0};
    tg_status st = TG_E_CHANGED;
    int afresh =
        (c->part && !c->part->fingerprint) || tgi_journal_state(j) == TGI_JOURNAL_FRESH;
    TGI_TRY(tgi_copy_check_objects(c, afresh, err));
    TGI_TRY(fingerprint(c, l, &text, err));
    if (!afresh)
        st = take_over(c, l, j, text, &why);
    if (c->but) {
        st = tgi_left_out(j, c->output, afresh ? TG_OK : st, &why);
        afresh = 0;
    }
    if (st == TG_E_CHANGED && !afresh && tgi_opts_flag(c->opts, TGI_OPT_YES)) {
        tgi_ctx_log(c->ctx, TG_LOG_WARN,
                    "-y: %s.partial, an interrupted output of another copy, is discarded",
                    c->output);
        afresh = 1;
    }
    c->went_on = !afresh;
    if (afresh)
        c->input_sum[0] = 0;
    c->unsure &= !afresh;
    if (afresh)
        st = tgi_journal_begin(j, l, text, strlen(text), &why);
    if (afresh && st == TG_OK)
        st = tgi_bad_tiles_begin_output(c->bad, c->output, &why);
    tgi_free(text);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", why.text);
    tgi_journal_watch_bad(j, c->bad);
    tgi_journal_introduce(j, c->input, NULL, 0);
    return TG_OK;
}

static tg_status write_tiles(tgi_copying *c, const tgi_sink_layout *l, tgi_journal *j,
                             tgi_err *err)
{
    const int window = tgi_copy_window_of(l), encoders = tgi_copy_encoders_of(c);
    tgi_commit *w = NULL;
    tgi_reserve *mem = NULL;
    void *memory = NULL;
    void **slot = tgi_calloc(TGI_TAG_IO, (size_t)l->tiles_x, sizeof *slot);
    const size_t bytes = tgi_commit_bytes(l, window, encoders);
    tg_status st = slot ? tgi_reserve_open(bytes + 64, &mem, err)
                        : tgi_fail(err, TG_E_NOMEM, "no memory for tiles");
    if (st == TG_OK)
        st = tgi_reserve_take(mem, "window", bytes, &memory, err);
    const tgi_commit_opts o = {tgi_journal_tiles(j), l, window, encoders, memory};
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
static void leave(tgi_copying *c, tgi_journal *j, tg_status st)
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

static tg_status fill_tiff(tgi_copying *c, const tgi_sink_layout *l, tgi_journal *j,
                           tgi_err *err)
{
    tg_status st = tgi_copy_watch_input(c, err);
    if (st == TG_OK)
        st = tgi_copy_begin_post(c, err);
    if (st == TG_OK)
        st = write_tiles(c, l, j, err);
    if (st == TG_OK)
        st = tgi_copy_write_objects(c, c->went_on, err);
    st = tgi_copy_input_held(c, st, err);
    tgi_copy_forget_objects(c, st);
    leave(c, j, st);
    if (st == TG_OK)
        st = tgi_picture_make(c->writer, l, &c->meta, j, err);
    if (st == TG_OK)
        st = tgi_copy_list_bad(c, err);
    if (st == TG_OK)
        st = c->part ? tgi_journal_seal(j, err) : tgi_journal_finish(j, err);
    return st == TG_OK ? tgi_copy_verdict(c, err) : st;
}

/* Begin, or go on with, or find finished. */
static tg_status attempt(tgi_copying *c, const tgi_sink_layout *l, tgi_journal *j, tgi_err *err)
{
    int settled;
    TGI_TRY(begin(c, l, j, err));
    return tgi_journal_state(j) == TGI_JOURNAL_FINISHED
               ? tgi_settle(j, c->bad, c->input, c->source, c->output, &settled, err)
               : fill_tiff(c, l, j, err);
}

/* -y: what was found to be of no use goes, and all begins once more. */
static tg_status discard(tgi_copying *c, tgi_journal **j, tgi_err *err)
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

tg_status tgi_copy_to_tiff(tgi_copying *c, tgi_err *err)
{
    tgi_sink_layout *l = NULL;
    tgi_journal *j = c->part ? c->part->journal : NULL;
    tg_status st = tgi_copy_make_layout(c, &l, err);
    if (st == TG_OK)
        st = tgi_picture_check(c->writer, c->output, l, &c->meta, err);
    if (st == TG_OK)
        tgi_copy_tell_lost(c, l);
    if (st == TG_OK)
        st = tgi_copy_check_budget(c, l, NULL, err);
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
    if (c->part && c->part->layout) {
        tgi_sink_layout_free(c->part->layout);
        *c->part->layout = l;
    } else {
        tgi_sink_layout_free(&l);
    }
    return st;
}
