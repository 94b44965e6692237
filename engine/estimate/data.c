/* data.c - `tegula estimate data`: what a data set takes, and how to hold it.
 *
 * The advice beside the strategy follows from it by the rules of docs/reference/estimators.md:
 *
 *   strategy  loader      cache                   workers
 *   small     preload     all of it               at most 2: they only collate
 *   medium    lazy_cache  half of what is there   at most 4
 *   large     map         none                    at most 8; map when nothing is compressed,
 *             stream                              else stream
 *
 * With --preload no a small set is loaded as a medium one: its images are on disk.
 *
 * The batch is the largest power of two, at most 1024, of which two per worker and two more
 * take at most a tenth of the memory; at least 1. The precision is fp32 unless float32 pixels
 * at half the bytes would be a better strategy. */
#include "engine/base/arith.h"
#include "engine/base/size.h"
#include "engine/estimate/estimate.h"
#include "engine/settings/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IMAGES, TEXT, VQA }; /* choices of --kind */

typedef struct data_set {
    int kind;
    int64_t samples;
    int64_t height, width, channels;
    tg_dtype dtype, token_dtype;
    int as_stored; /* pixels as the files hold them, not of a --size */
    int preload;
    int64_t length, question_length, answer_length, metadata;
    tg_vqa_size part;
    tgi_scan scan;
    int from_files;
} data_set;

uint64_t tgi_estimate_available(const tgi_question *q, const char **where)
{
    tgi_ram_spec ram;
    const tgi_machine *m = &q->machine;
    if (!tgi_opts_ram(q->o, &ram)) {
        *where = m->here ? "what is free now" : "what is free there";
        return m->free_bytes;
    }
    *where = ram.bytes ? "--ram"
             : m->here ? "--ram, of what is free now"
                       : "--ram, of what is free there";
    if (ram.bytes)
        return ram.bytes;
    return (uint64_t)((double)m->free_bytes * ram.percent / 100);
}

void tgi_estimate_dims(const tg_opts *o, int64_t *height, int64_t *width, int64_t *channels)
{
    int64_t v[3] = {TG_DATA_HEIGHT, TG_DATA_WIDTH, 0};
    const char *text = tgi_opts_str(o, TGI_OPT_SIZE);
    if (text)
        (void)tgi_dims_parse(text, v, NULL);
    *height = v[0];
    *width = v[1];
    *channels = v[2];
}

/* ---- What there is ----------------------------------------------------------------------- */

static tg_dtype type_of(const tg_opts *o, tgi_opt id, tg_dtype otherwise)
{
    tg_dtype t = TG_DTYPE_NONE;
    const char *text = tgi_opts_str(o, id);
    if (text)
        (void)tgi_dtype_spec_parse(text, &t, NULL);
    return t == TG_DTYPE_NONE ? otherwise : t;
}

static void read_settings(const tg_opts *o, data_set *d)
{
    uint64_t metadata = 0;
    tgi_estimate_dims(o, &d->height, &d->width, &d->channels);
    d->channels = d->channels ? d->channels : TG_DATA_CHANNELS;
    d->dtype = type_of(o, TGI_OPT_DTYPE, TG_DTYPE_F32);
    d->token_dtype = type_of(o, TGI_OPT_TOKEN_DTYPE, TG_DTYPE_I64);
    d->preload = tgi_opts_choice(o, TGI_OPT_PRELOAD) == 0;
    d->length = tgi_opts_int(o, TGI_OPT_LENGTH, TG_DATA_TEXT_LENGTH);
    d->question_length = tgi_opts_int(o, TGI_OPT_QUESTION_LENGTH, 0);
    d->answer_length = tgi_opts_int(o, TGI_OPT_ANSWER_LENGTH, 0);
    (void)tgi_size_parse(tgi_opts_str(o, TGI_OPT_METADATA), 0, &metadata, NULL);
    d->metadata = metadata ? (int64_t)metadata : -1;
}

/* 1: a list is among the files named, so it says what the samples are. */
static int names_list(const tgi_question *q)
{
    for (size_t i = 0; i < q->n_files; i++) {
        const char *dot = strrchr(q->files[i], '.');
        if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".jsonl") == 0))
            return 1;
    }
    return 0;
}

/* Pictures that were found: images, and each frame of a video. */
static int64_t pictures(const tgi_scan *s)
{
    return s->images + s->frames;
}

/* Count the files, and settle what a sample is and how many there are. */
static tg_status settle(const tgi_question *q, data_set *d, tgi_err *err)
{
    for (size_t i = 0; i < q->n_files; i++)
        TGI_TRY(tgi_scan_path(&d->scan, q->files[i], err));
    const tgi_scan *s = &d->scan;
    d->from_files = q->n_files > 0;
    const int kind = tgi_opts_choice(q->o, TGI_OPT_KIND);
    d->kind = kind >= 0 ? kind : names_list(q) || (s->lists && !pictures(s)) ? VQA : IMAGES;
    d->as_stored = pictures(s) > 0 && !tgi_opts_given(q->o, TGI_OPT_SIZE) && d->kind != TEXT;
    d->samples = tgi_opts_int(q->o, TGI_OPT_SAMPLES, 0);
    if (!d->samples)
        d->samples = d->kind == IMAGES || !s->list_samples ? pictures(s) : s->list_samples;
    if (d->samples)
        return TG_OK;
    if (d->from_files)
        return tgi_fail(err, TG_E_ARG, "%s: nothing there to count%s%.300s%s", q->files[0],
                        s->n_reasons ? " (" : "", s->n_reasons ? s->reason[0].why : "",
                        s->n_reasons ? ")" : "");
    return tgi_fail(err, TG_E_ARG, "how many samples? give --samples N, or name files");
}

/* Bytes of the parts. Images on disk are counted once each, whatever refers to them. */
static tg_status count_bytes(data_set *d, tgi_err *err)
{
    tg_vqa_size *p = &d->part;
    const int64_t images = pictures(&d->scan) ? pictures(&d->scan) : d->samples;
    const int64_t pixel[] = {images, d->height, d->width, d->channels,
                             (int64_t)tgi_dtype_size(d->dtype)};
    const int64_t word = (int64_t)tgi_dtype_size(d->token_dtype);
    const int64_t text[] = {d->samples, 2, d->length, word};
    const int64_t question[] = {d->samples, 2, d->question_length, word};
    const int64_t answer[] = {d->samples, 2, d->answer_length, word};
    const int64_t meta[] = {d->samples, d->metadata};
    if (d->kind == TEXT)
        return tgi_product("texts", text, 4, &p->total_bytes, err);
    if (d->as_stored)
        p->image_bytes = d->scan.decoded_bytes;
    else
        TGI_TRY(tgi_product("images", pixel, 5, &p->image_bytes, err));
    if (d->kind == VQA) {
        TGI_TRY(tgi_product("questions", question, 4, &p->question_bytes, err));
        TGI_TRY(tgi_product("answers", answer, 4, &p->answer_bytes, err));
        if (d->metadata > 0)
            TGI_TRY(tgi_product("metadata", meta, 2, &p->metadata_bytes, err));
    }
    p->total_bytes = tgi_sat_add(
        tgi_sat_add(p->question_bytes, p->answer_bytes),
        tgi_sat_add(p->metadata_bytes, d->kind == IMAGES || d->preload ? p->image_bytes : 0));
    return TG_OK;
}

/* ---- What is said of it ------------------------------------------------------------------ */

static void put_settings(tgi_jw *w, const data_set *d, const char *where)
{
    char size[64];
    snprintf(size, sizeof size, "%lldx%lldx%lld", (long long)d->height, (long long)d->width,
             (long long)d->channels);
    tgi_jw_begin(w, "settings", '{');
    if (d->kind != TEXT && d->as_stored)
        tgi_jw_str(w, "pixels", "as stored in the files");
    if (d->kind != TEXT && !d->as_stored) {
        tgi_jw_str(w, "size", size);
        tgi_jw_str(w, "dtype", tgi_dtype_name(d->dtype));
    }
    if (d->kind == TEXT)
        tgi_jw_int(w, "length", d->length);
    if (d->kind == VQA) {
        tgi_jw_str(w, "preload", d->preload ? "yes" : "no");
        tgi_jw_int(w, "question_length", d->question_length);
        tgi_jw_int(w, "answer_length", d->answer_length);
        tgi_jw_int(w, "metadata_bytes", d->metadata > 0 ? d->metadata : 0);
    }
    if (d->kind != IMAGES)
        tgi_jw_str(w, "token_dtype", tgi_dtype_name(d->token_dtype));
    tgi_jw_str(w, "available", where);
    tgi_jw_end(w, '}');
}

static void put_found(tgi_jw *w, const tgi_scan *s)
{
    tgi_jw_begin(w, "found", '{');
    if (s->videos) {
        tgi_jw_int(w, "videos", s->videos);
        tgi_jw_int(w, "frames", s->frames);
    }
    if (s->images) {
        tgi_jw_int(w, "images", s->images);
        tgi_jw_int(w, "planes", s->planes);
        tgi_jw_int(w, "compressed_images", s->compressed - s->videos);
    }
    if (pictures(s)) {
        tgi_jw_uint(w, "file_bytes", s->file_bytes);
        tgi_jw_uint(w, "decoded_bytes", s->decoded_bytes);
        tgi_jw_uint(w, "largest_image_bytes", s->largest_bytes);
    }
    if (s->lists) {
        tgi_jw_int(w, "lists", s->lists);
        tgi_jw_int(w, "list_samples", s->list_samples);
    }
    tgi_jw_begin(w, "not_counted", '[');
    for (int i = 0; i < s->n_reasons; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "kind", s->reason[i].kind);
        tgi_jw_int(w, "files", s->reason[i].files);
        tgi_jw_str(w, "why", s->reason[i].why);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    tgi_jw_end(w, '}');
}

static void put_bytes(tgi_jw *w, const data_set *d)
{
    tgi_jw_begin(w, "needed", '{');
    if (d->kind == VQA) {
        tgi_jw_uint(w, "image_bytes", d->part.image_bytes);
        tgi_jw_uint(w, "question_bytes", d->part.question_bytes);
        tgi_jw_uint(w, "answer_bytes", d->part.answer_bytes);
        tgi_jw_uint(w, "metadata_bytes", d->part.metadata_bytes);
    }
    tgi_jw_uint(w, "total_bytes", d->part.total_bytes);
    tgi_jw_end(w, '}');
}

static void reason(tgi_jw *w, const char *fmt, ...) TGI_PRINTF(2, 3);
static void reason(tgi_jw *w, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tgi_jw_str(w, NULL, text);
}

/* Images that are not to be held. */
static int on_disk(const data_set *d)
{
    return d->kind == VQA && !d->preload;
}

static uint64_t batch_for(const data_set *d, uint64_t sample, int64_t workers,
                          uint64_t available)
{
    const uint64_t in_flight = tgi_sat_mul(sample ? sample : 1, 2 * (uint64_t)workers + 2);
    const uint64_t fits = tgi_power_of_two(available / 10 / in_flight);
    const uint64_t most = tgi_power_of_two((uint64_t)d->samples);
    uint64_t batch = fits < 1024 ? fits : 1024;
    batch = batch < most ? batch : most;
    return batch ? batch : 1;
}

static void put_cache(tgi_jw *w, tg_data_strategy s, uint64_t needed, uint64_t available)
{
    tgi_jw_str(w, "cache",
               s == TG_DATA_SMALL    ? "all"
               : s == TG_DATA_MEDIUM ? "least recently used"
                                     : "none");
    tgi_jw_uint(w, "cache_bytes",
                s == TG_DATA_SMALL    ? needed
                : s == TG_DATA_MEDIUM ? available / 2
                                      : 0);
}

static void put_reasons(tgi_jw *w, const data_set *d, tg_data_strategy s, uint64_t available,
                        tg_data_strategy half, uint64_t batch, uint64_t sample)
{
    char need[32], have[32], one[32];
    tgi_size_text(d->part.total_bytes, need, sizeof need);
    tgi_size_text(available, have, sizeof have);
    tgi_size_text(sample, one, sizeof one);
    tgi_jw_begin(w, "reasons", '[');
    reason(
        w, "%s is %.1f %% of the %s available: %s", need,
        100 * (double)d->part.total_bytes / (double)(available ? available : 1), have,
        s == TG_DATA_SMALL && on_disk(d)
            ? "below 50 %, so it stays in memory; images do not, they are loaded when asked for"
        : s == TG_DATA_SMALL  ? "below 50 %, so all of it is preloaded"
        : s == TG_DATA_MEDIUM ? "50 % or more and below 200 %, so samples are loaded when "
                                "asked for, behind a cache"
                              : "200 % or more, so it is read as it is used");
    reason(w,
           "a batch of %llu samples of %s, two for each worker and two more, is within 10 %% "
           "of what is available",
           (unsigned long long)batch, one);
    if (on_disk(d))
        reason(w, "--preload no: images are read when they are needed, and only the rest is "
                  "counted above");
    if (half != s)
        reason(w, "as float16 it would be %s: half the bytes", tgi_data_strategy_name(half));
    if (d->scan.not_counted)
        reason(w, "%lld files are not counted", (long long)d->scan.not_counted);
    tgi_jw_end(w, ']');
}

static void put_advice(tgi_jw *w, const tgi_question *q, const data_set *d, uint64_t available)
{
    const int64_t there = tgi_opts_int(q->o, TGI_OPT_THREADS, q->machine.processors);
    static const int64_t most_workers[] = {2, 4, 8};
    static const char *const loaders[] = {"preload", "lazy_cache", "stream"};
    const uint64_t needed = d->part.total_bytes;
    const tg_data_strategy s = tgi_estimate_strategy(needed, available);
    const uint64_t sample =
        (needed + (on_disk(d) ? d->part.image_bytes : 0)) / (uint64_t)d->samples;
    const tg_data_strategy how = on_disk(d) && s == TG_DATA_SMALL ? TG_DATA_MEDIUM : s;
    const int64_t workers = tgi_min(there, most_workers[how]);
    const uint64_t batch = batch_for(d, sample, workers, available);
    const int float32 =
        d->kind != TEXT && (d->as_stored ? d->scan.floats : d->dtype == TG_DTYPE_F32);
    const uint64_t pixels = d->kind == IMAGES || d->preload ? d->part.image_bytes : 0;
    const tg_data_strategy half =
        float32 ? tgi_estimate_strategy(needed - pixels / 2, available) : s;
    const int map = s == TG_DATA_LARGE && d->from_files && !d->scan.compressed;
    tgi_jw_int(w, "num_samples", d->samples);
    tgi_jw_num(w, "available_memory_gib", (double)available / TGI_GIB);
    tgi_jw_num(w, "estimated_memory_gib", (double)needed / TGI_GIB);
    tgi_jw_str(w, "recommended_strategy", tgi_data_strategy_name(s));
    tgi_jw_str(w, "loader", map ? "map" : loaders[how]);
    tgi_jw_uint(w, "batch_size", batch);
    put_cache(w, s, needed, available);
    tgi_jw_int(w, "workers", workers);
    tgi_jw_str(w, "precision", half != s ? "fp16" : "fp32");
    put_reasons(w, d, s, available, half, batch, sample);
}

tg_status tgi_estimate_data(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    static const char *const kinds[] = {"images", "text", "vqa"};
    const char *where;
    data_set d = {0};
    const uint64_t available = tgi_estimate_available(q, &where);
    read_settings(q->o, &d);
    TGI_TRY(settle(q, &d, err));
    TGI_TRY(count_bytes(&d, err));
    tgi_jw_str(w, "kind", kinds[d.kind]);
    put_settings(w, &d, where);
    if (d.from_files)
        put_found(w, &d.scan);
    put_bytes(w, &d);
    put_advice(w, q, &d, available);
    return TG_OK;
}
