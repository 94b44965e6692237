/* job_post.c - see job_post.h. */
#include "engine/job/job_post.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/job/copy.h"
#include "engine/job/descriptor.h"
#include "engine/job/ends.h"
#include "engine/job/fingerprint.h"
#include "engine/job/job_done.h"
#include "engine/job/job_film.h"
#include "engine/job/job_log.h"
#include "engine/job/job_open.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_plan.h"
#include "engine/job/plan_report.h"
#include "engine/job/receipt.h"
#include "engine/job/run.h"
#include "engine/out/fingerprint_text.h"
#include "engine/out/journal.h"
#include "engine/post/objects.h"
#include "engine/post/post.h"
#include "io/file_ops.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const tg_opts *tgi_job_asked(const tg_job *job)
{
    return job->post ? job->post->opts : job->opts;
}

/* ---- Open -------------------------------------------------------------------------------- */

/* The list, unless somebody said none; "": there is none. */
static tg_status find_list(const tg_job *job, char *text, size_t cap, int *labels, tgi_err *err)
{
    const char *said = tgi_opts_str(job->opts, TGI_OPT_POST),
               *model = tgi_opts_str(job->opts, TGI_OPT_MODEL);
    tgi_descriptor d = {0};
    text[0] = 0;
    if (!model)
        return TG_OK; /* which is refused later, or nothing runs */
    TGI_TRY(tgi_descriptor_load(model, job->opts, &d, err));
    *labels = d.labels || tgi_opts_flag(job->opts, TGI_OPT_LABELS);
    snprintf(text, cap, "%s", said ? said : d.post);
    return TG_OK;
}

/* Of the network's values; what is said of the output is for the copy. */
static tg_status set_options(tg_job *job, int labels, tgi_err *err)
{
    const char *out = tgi_opts_str(job->opts, TGI_OPT_OUTPUT);
    char path[4096];
    TGI_TRY(tgi_opts_set(job->opts, "compress", "none", err));
    TGI_TRY(tgi_opts_set(job->opts, "pyramid", "none", err));
    TGI_TRY(tgi_opts_set(job->opts, "format", "auto", err));
    TGI_TRY(tgi_opts_set(job->opts, "skip-done", "true", err));
    TGI_TRY(tgi_opts_set(job->opts, "dtype", labels ? "same" : "float32", err));
    if (!out)
        return TG_OK;
    if (snprintf(path, sizeof path, "%s" TGI_POST_VALUES, out) >= (int)sizeof path)
        return tgi_fail(err, TG_E_ARG, "%.100s...: the name is too long", out);
    return tgi_opts_set(job->opts, "output", path, err);
}

/* What can hold objects. */
static tg_status check_name(const tgi_job_post *p, tgi_err *err)
{
    const char *out = p->output;
    const size_t n = out ? strlen(out) : 0;
    if (!n)
        return TG_OK;
    if (out[n - 1] == '/' || tgi_names_npy(out) || tgi_film_container(out) ||
        strchr(out, '%') || strcmp(out, "-") == 0)
        return tgi_fail(err, TG_E_ARG,
                        "%s: --post makes an image of what the network gives: -o OUT.tif, or "
                        "--post none",
                        out);
    return TG_OK;
}

static tg_status open_post(tg_job *job, const char *text, int labels, tgi_err *err)
{
    tgi_job_post *p = tgi_calloc(TGI_TAG_MISC, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for --post");
    job->post = p;
    TGI_TRY(tgi_post_parse(text, &p->spec, err));
    TGI_TRY(tgi_objects_need_label(&p->spec, job->opts, err));
    snprintf(p->text, sizeof p->text, "%s", text);
    TGI_TRY(tgi_opts_new(&p->opts, err));
    TGI_TRY(tgi_opts_copy(p->opts, job->opts, err));
    const char *out = tgi_opts_str(job->opts, TGI_OPT_OUTPUT);
    p->output = out ? tgi_strdup(TGI_TAG_MISC, out) : NULL;
    if (out && !p->output)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a name");
    TGI_TRY(check_name(p, err));
    return set_options(job, labels, err);
}

tg_status tgi_job_post_open(tg_job *job, tgi_err *err)
{
    char text[TGI_POST_TEXT];
    int labels = 0;
    TGI_TRY(find_list(job, text, sizeof text, &labels, err));
    if (!text[0] || strcmp(text, "none") == 0)
        return tgi_objects_need_label(&(tgi_post_spec){0}, job->opts, err);
    return open_post(job, text, labels, err);
}

void tgi_job_post_free(tg_job *job)
{
    tgi_job_post *p = job->post;
    if (!p)
        return;
    tgi_sink_layout_free(&p->layout);
    tgi_free(p->output);
    tgi_opts_free(&p->opts);
    tgi_free(p);
    job->post = NULL;
}

void tgi_job_post_leave(tg_job *job)
{
    if (!job->post)
        return;
    tgi_free(job->set.output);
    job->set.output = job->post->output;
    job->post->output = NULL;
    tgi_job_post_free(job);
    tgi_job_drop_plan(job);
}

tg_status tgi_job_post_check(const tg_job *job, tgi_err *err)
{
    if (job->post && !job->ends->image_out)
        return tgi_fail(
            err, TG_E_ARG,
            "--post is for images: the job reads or writes arrays or a pipe: leave it "
            "out, or --post none");
    return TG_OK;
}

/* ---- The copy ---------------------------------------------------------------------------- */

static tg_status hand_on(const tgi_job_post *p, tg_opts *o, tgi_err *err)
{
    static const tgi_opt of_output[] = {TGI_OPT_COMPRESS, TGI_OPT_PYRAMID, TGI_OPT_FORMAT,
                                        TGI_OPT_DTYPE,    TGI_OPT_SCRATCH, TGI_OPT_THREADS,
                                        TGI_OPT_OBJECTS,  TGI_OPT_YES,     TGI_OPT_RAM};
    for (size_t i = 0; i < sizeof of_output / sizeof of_output[0]; i++)
        if (tgi_opts_given(p->opts, of_output[i]))
            TGI_TRY(tgi_opts_set(o, tgi_option_table(NULL)[of_output[i]].name,
                                 tgi_opts_str(p->opts, of_output[i]), err));
    return TG_OK;
}

static tg_status copy_options(const tg_job *job, tg_opts **out, tgi_err *err)
{
    const tgi_job_post *p = job->post;
    TGI_TRY(tgi_opts_new(out, err));
    tg_status st = tgi_opts_set(*out, "input", job->set.output ? job->set.output : "OUT", err);
    if (st == TG_OK)
        st = tgi_opts_set(*out, "output", p->output ? p->output : "OUT.tif", err);
    if (st == TG_OK)
        st = tgi_opts_set(*out, "post", p->text, err);
    if (st == TG_OK)
        st = hand_on(p, *out, err);
    if (st != TG_OK)
        tgi_opts_free(out);
    return st;
}

/* The values as an image, before there is one. */
static void values_info(const tg_job *job, tgi_image_info *out)
{
    const tgi_sink_layout *l = job->plan.layout;
    *out = (tgi_image_info){.format = "tiff",
                            .n_axes = l->n_axes,
                            .dtype = l->dtype,
                            .compression = "none",
                            .tiled = 1,
                            .n_planes = l->n_planes,
                            .height = l->height,
                            .width = l->width,
                            .samples = l->samples,
                            .n_levels = 1,
                            .n_series = 1,
                            .n_files = 1};
    memcpy(out->axes, l->axes, sizeof out->axes);
    memcpy(out->shape, l->shape, sizeof out->shape);
    tgi_job_meta(job, &out->meta);
}

/* What a reader of such a file holds at most: windows, a place for each page, its description. */
static size_t reader_bytes(const tg_job *job)
{
    const tgi_sink_layout *l = job->plan.layout;
    const size_t text = l->description ? strlen(l->description) : 0;
    return ((size_t)1 << 20) + 256 * (size_t)l->n_planes + 2 * text;
}

static tgi_copy_part part_of(const tg_job *job)
{
    return (tgi_copy_part){.volume = job->map.spatial == 3,
                           .budget = job->plan.budget,
                           .planned = job->plan.bytes.total};
}

/* ---- What --objects measures ------------------------------------------------------------- */

/* The image that goes into the network, where its pixels are those of the objects. */
typedef struct measured {
    const tg_job *job;
    tgi_post_image image;
    int64_t *item, *z; /* of each plane of the values */
    char *row;
    int64_t
        looped; /* planes from a channel to the next, where the network gets them one by one; 0: it does not */
} measured;

static int is_same_size(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    const int64_t grid = tgi_post_grid(&job->post->spec);
    return m->extent[0] == m->out_extent[0] && m->extent[1] == m->out_extent[1] * grid &&
           m->extent[2] == m->out_extent[2] * grid;
}

static tg_status measured_row(void *user, int64_t plane, int64_t y, int channel, double *dst,
                              tgi_err *err)
{
    const measured *i = user;
    const tgi_mapping *m = &i->job->map;
    int sample;
    int64_t from = tgi_mapping_plane(m, i->item[plane], i->z[plane], &sample);
    if (i->looped) /* from the image's first channel on */
        from += (channel - from / i->looped % i->image.channels) * i->looped;
    else if (m->from_samples || m->loops_samples)
        sample = m->loops_samples ? channel : sample + channel;
    else
        from += channel * m->channel_stride;
    TGI_TRY(tgi_source_read(i->job->source, 0, from, sample, sample + 1, m->origin[1] + y,
                            m->origin[1] + y + 1, m->origin[2], m->origin[2] + m->extent[2],
                            i->row, 0, 0, err));
    tgi_post_to_double(i->job->info->dtype, i->row, m->extent[2], dst);
    return TG_OK;
}

static void close_measured(measured *i)
{
    tgi_free(i->item);
    tgi_free(i->z);
    tgi_free(i->row);
}

/* A network of one channel gets each channel of the image by itself; what is measured are all of them. */
static void measure_all_channels(const tg_job *job, measured *i)
{
    const tgi_image_info *info = job->info;
    const char *c = strchr(info->axes, 'C');
    int64_t stride = 1;
    if (job->map.channels != 1)
        return;
    if (job->map.loops_samples) {
        i->image.channels = info->samples - job->map.left_out;
        return;
    }
    for (int a = c ? (int)(c - info->axes) + 1 : info->n_axes; a < info->n_axes; a++)
        stride *= strchr("YXS", info->axes[a]) ? 1 : info->shape[a];
    if (c && info->shape[c - info->axes] > 1 && info->samples == 1) {
        i->image.channels = (int)info->shape[c - info->axes];
        i->looped = stride;
    }
}

static tg_status open_measured(const tg_job *job, measured *i, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    const int64_t n = job->plan.layout->n_planes;
    const tg_dtype type = job->info->dtype;
    i->job = job;
    i->image = (tgi_post_image){.row = measured_row,
                                .user = i,
                                .channels = (int)m->channels,
                                .whole = tgi_post_is_whole(type)};
    measure_all_channels(job, i);
    i->item = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *i->item);
    i->z = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *i->z);
    i->row = tgi_malloc(TGI_TAG_IO, (size_t)m->extent[2] * tgi_dtype_size(type));
    if (!i->item || !i->z || !i->row)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a table of objects");
    for (int64_t k = 0; k < m->n_items; k++)
        for (int64_t z = 0; z < m->out_extent[0]; z++)
            for (int64_t c = 0; c < (m->out_samples ? 1 : m->out_channels); c++) {
                const int64_t plane = tgi_mapping_out_plane(m, k, z, c);
                if (plane >= 0 && plane < n) {
                    i->item[plane] = k;
                    i->z[plane] = z;
                }
            }
    return TG_OK;
}

/* Bytes that it takes. */
static size_t measured_bytes(const tg_job *job)
{
    return 2 * (size_t)job->plan.layout->n_planes * sizeof(int64_t) +
           (size_t)job->map.extent[2] * tgi_dtype_size(job->info->dtype);
}

/* A part that measures it; without --objects one that does not. */
static tg_status measure(const tg_job *job, measured *i, tgi_copy_part *part, tgi_err *err)
{
    if (!tgi_opts_str(job->post->opts, TGI_OPT_OBJECTS))
        return TG_OK;
    if (!is_same_size(job))
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "--objects measures the input, and the network's output has another size "
            "(%lldx%lld of %lldx%lld): leave it out, and make the table with tegula "
            "copy",
            (long long)job->map.out_extent[1], (long long)job->map.out_extent[2],
            (long long)job->map.extent[1], (long long)job->map.extent[2]);
    TGI_TRY(open_measured(job, i, err));
    part->image = &i->image;
    if (job->info->meta.n_channels == i->image.channels) {
        part->channel = job->info->meta.channel_name;
        part->n_channels = job->info->meta.n_channels;
    }
    return TG_OK;
}

tg_status tgi_job_post_count(tg_job *job, tgi_err *err)
{
    tgi_job_post *p = job->post;
    tgi_image_info info;
    tgi_copy_figures figures = {0};
    tgi_copy_part part = part_of(job);
    tg_opts *o = NULL;
    values_info(job, &info);
    part.info = &info;
    part.reader_bytes = reader_bytes(job);
    part.held = tgi_job_process_bytes(job) + job->source->ops->codec_bytes(job->source) +
                measured_bytes(job);
    measured input = {0};
    tg_status st = measure(job, &input, &part, err);
    if (st == TG_OK)
        st = copy_options(job, &o, err);
    if (st == TG_OK)
        st = tgi_copy_count(o, &part, &figures, err);
    tgi_opts_free(&o);
    close_measured(&input);
    TGI_TRY(st);
    p->peak = (size_t)figures.peak;
    p->disk = figures.output;
    p->scratch = figures.scratch;
    job->plan.bytes.post =
        p->peak > job->plan.bytes.total ? p->peak - job->plan.bytes.total : 0;
    job->plan.bytes.total += job->plan.bytes.post;
    return TG_OK;
}

void tgi_job_post_lines(tg_job *job)
{
    const tgi_job_post *p = job->post;
    tgi_plan_part *plan = &job->plan;
    if (plan->bytes.post)
        tgi_job_add_line(plan, "objects", plan->bytes.post, TG_PLAN_MEMORY, 0,
                         "%s: what it takes then, beyond what the network takes before",
                         p->text);
    tgi_job_add_line(plan, "objects", p->disk, TG_PLAN_DISK, plan->bytes.output_free, "%s",
                     p->output ? p->output : "(no output named)");
    if (p->scratch)
        tgi_job_add_line(plan, "scratch", p->scratch, TG_PLAN_DISK,
                         job->scratch_place.free_bytes, "%s",
                         "what touches what, of the whole image; gone when the run ends");
}

/* ---- Run --------------------------------------------------------------------------------- */

/* Which network made the values of which image, and what is made of them. The cut does not matter. */
static tg_status fingerprint(const tg_job *job, char **out, tgi_err *err)
{
    static const char *const keys[] = {"dtype", "compress", "pyramid", "format"};
    char *text = NULL;
    tgi_lines t = {0};
    tgi_line l;
    TGI_TRY(tgi_fingerprint_make(job, &text, err));
    for (const char *at = text, *end = text + strlen(text); tgi_lines_next(&at, end, &l);) {
        char key[64], *value = tgi_malloc(TGI_TAG_MISC, l.value_n + 1);
        if (!value) {
            t.lost = 1;
            break;
        }
        snprintf(key, sizeof key, "%.*s", (int)l.key_n, l.key);
        memcpy(value, l.value, l.value_n);
        value[l.value_n] = 0;
        tgi_lines_add(&t, key, "%s", value);
        tgi_free(value);
    }
    tgi_free(text);
    tgi_lines_add(&t, "post", "%s", job->post->text);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char key[64];
        const char *value = tgi_opts_str(job->post->opts, tgi_opt_find(keys[i]));
        snprintf(key, sizeof key, "post_%s", keys[i]);
        tgi_lines_add(&t, key, "%s", value ? value : "");
    }
    return tgi_lines_take(&t, out, err);
}

/* A value of a receipt as it was. */
static void put_value(tgi_jw *w, const char *key, const tgi_json *v)
{
    const char *text;
    double number;
    int64_t whole;
    bool on;
    if (tgi_json_is_object(v) || tgi_json_is_array(v)) {
        const int object = tgi_json_is_object(v);
        tgi_jw_begin(w, key, object ? '{' : '[');
        for (const tgi_json *m = tgi_json_first(v); m; m = tgi_json_next(m))
            put_value(w, object ? tgi_json_key(m) : NULL, m);
        tgi_jw_end(w, object ? '}' : ']');
    } else if (tgi_json_str(v, &text)) {
        tgi_jw_str(w, key, text);
    } else if (tgi_json_int(v, &whole)) {
        tgi_jw_int(w, key, whole);
    } else if (tgi_json_num(v, &number)) {
        tgi_jw_num(w, key, number);
    } else if (tgi_json_bool(v, &on)) {
        tgi_jw_bool(w, key, on);
    } else {
        tgi_jw_str(w, key, NULL);
    }
}

static void put_fingerprint(tgi_jw *w, const char *text)
{
    tgi_line l;
    tgi_jw_begin(w, "fingerprint", '{');
    for (const char *end = text + strlen(text); tgi_lines_next(&text, end, &l);) {
        char key[64], *value = tgi_malloc(TGI_TAG_MISC, l.value_n + 1);
        w->failed |= !value;
        if (!value)
            break;
        snprintf(key, sizeof key, "%.*s", (int)l.key_n, l.key);
        memcpy(value, l.value, l.value_n);
        value[l.value_n] = 0;
        tgi_jw_str(w, key, value);
        tgi_free(value);
    }
    tgi_jw_end(w, '}');
}

/* What the network computed, and what became of it. */
static void put_methods(tgi_jw *w, const char *key, const char *methods, const char *steps)
{
    const size_t n = strlen(methods) + strlen(steps) + 64;
    char *text = tgi_malloc(TGI_TAG_MISC, n);
    w->failed |= !text;
    if (!text)
        return;
    snprintf(text, n, "%s The output was made of its values by these steps: %s.", methods,
             steps);
    tgi_jw_str(w, key, text);
    tgi_free(text);
}

/* The receipt of the values, of OUT: memory and time of both. */
static tg_status write_receipt(const tg_job *job, tgi_journal *j, const char *text,
                               tgi_err *err)
{
    const tgi_job_post *p = job->post;
    uint32_t check = 0;
    uint64_t bytes = 0;
    int64_t whole;
    double seconds;
    const char *methods;
    char path[4200], crc[16], *json = NULL;
    tgi_json *of = tgi_receipt_of(job->set.output);
    tgi_jw w = {0};
    if (!of) /* it was written, and is gone with the values by now */
        return TG_OK;
    tg_status st = tgi_journal_output_check(j, &check, &bytes, err);
    snprintf(crc, sizeof crc, "%08x", (unsigned)check);
    tgi_jw_begin(&w, NULL, '{');
    for (const tgi_json *m = tgi_json_first(of); m; m = tgi_json_next(m)) {
        const char *key = tgi_json_key(m);
        if (strcmp(key, "output") == 0)
            tgi_jw_str(&w, key, p->output);
        else if (strcmp(key, "output_bytes") == 0)
            tgi_jw_uint(&w, key, bytes);
        else if (strcmp(key, "output_crc32c") == 0)
            tgi_jw_str(&w, key, crc);
        else if (strcmp(key, "fingerprint") == 0)
            put_fingerprint(&w, text);
        else if (strcmp(key, "measured_peak_bytes") == 0 && tgi_json_int(m, &whole))
            tgi_jw_uint(&w, key, tgi_larger((uint64_t)whole, tgi_job_tracker_peak(p->tracker)));
        else if (strcmp(key, "seconds") == 0 && tgi_json_num(m, &seconds))
            tgi_jw_num(&w, key, seconds + tgi_seconds() - p->began);
        else if (strcmp(key, "methods") == 0 && tgi_json_str(m, &methods))
            put_methods(&w, key, methods, p->text);
        else
            put_value(&w, key, m);
    }
    tgi_jw_str(&w, "post", p->text);
    tgi_jw_end(&w, '}');
    tgi_json_free(&of);
    const tg_status taken = tgi_jw_take(&w, &json, err);
    st = st == TG_OK ? taken : st;
    snprintf(path, sizeof path, "%s.tegula.json", p->output);
    if (st == TG_OK)
        st = tgi_write_text(path, json, 1, err);
    tgi_free(json);
    return st;
}

/* What lies beside the values goes with them; a list of what was filled becomes that of OUT. */
static tg_status remove_values(const tg_job *job, tgi_err *err)
{
    char from[4200], to[4200];
    snprintf(from, sizeof from, "%s.errors.json", job->set.output);
    snprintf(to, sizeof to, "%s.errors.json", job->post->output);
    if (access(from, F_OK) == 0)
        TGI_TRY(tgi_file_rename(from, to, 1, err));
    TGI_TRY(tgi_file_unlink(job->set.output, err));
    snprintf(from, sizeof from, "%s.tegula.json", job->set.output);
    return tgi_file_unlink(from, err);
}

/* Objects out of the values; `made`: they are there, of an earlier run, and the values are not needed. */
static tg_status make_objects(tg_job *job, tgi_journal *j, int made, tgi_err *err)
{
    tgi_image_info info;
    tgi_copy_part part = part_of(job);
    char *text = NULL;
    tg_opts *o = NULL;
    part.journal = j;
    part.layout = &job->post->layout;
    values_info(job, &info);
    if (made) {
        part.info = &info;
        part.reader_bytes = reader_bytes(job);
    }
    measured input = {0};
    tg_status st = measure(job, &input, &part, err);
    if (st == TG_OK)
        st = fingerprint(job, &text, err);
    part.fingerprint = text;
    part.meta = &info.meta;
    if (st == TG_OK)
        st = copy_options(job, &o, err);
    if (st == TG_OK)
        st = tgi_copy(job->ctx, o, &part, err);
    if (st == TG_OK)
        st = write_receipt(job, j, text, err);
    if (st == TG_OK)
        st = remove_values(job, err);
    if (st == TG_OK)
        st = tgi_journal_name(j, err);
    tgi_opts_free(&o);
    close_measured(&input);
    tgi_free(text);
    return st;
}

static tg_status watched_objects(tg_job *job, tgi_journal *j, int made, tg_run_result *res,
                                 tgi_err *err)
{
    tgi_job_post *p = job->post;
    /* What waits for the next job is beside the copy. */
    const size_t all = job->plan.bytes.total;
    tgi_pages_keep_at_most(all > p->peak ? (all - p->peak) / 257 * 256 : 0);
    TGI_TRY(tgi_job_tracker_again(job, &p->tracker, err));
    tgi_tracker_expect(p->tracker, job->plan.bytes.total, job->plan.budget);
    (void)tgi_tracker_update(p->tracker, "objects", 0);
    p->began = tgi_seconds();
    const tg_status st = make_objects(job, j, made, err);
    const uint64_t peak = tgi_job_tracker_close(job, &p->tracker);
    res->measured_peak_bytes = tgi_larger(res->measured_peak_bytes, peak);
    if (!made &&
        !res->predicted_peak_bytes) { /* the values were there: it is this call's work all the same */
        res->predicted_peak_bytes = job->plan.bytes.total;
        res->budget_bytes = job->plan.budget;
    }
    res->seconds += tgi_seconds() - p->began;
    return st;
}

/* All was made by a run that was stopped before OUT got its name. *done: so it is; else a tile of it is damaged, and all is
 * made again. */
static tg_status settle_made(tg_job *job, tgi_journal **j, int *done, tg_run_result *res,
                             tgi_err *err)
{
    tgi_err e = {0};
    *done = 0;
    if (!tgi_journal_is_sealed(*j) || access(job->set.output, F_OK) == 0)
        return TG_OK;
    TGI_TRY(tgi_job_plan_to_run(job, err));
    const tg_status st = watched_objects(job, *j, 1, res, &e);
    *done = st == TG_OK;
    if (st == TG_E_INTERNAL) { /* what is missing would have to be read */
        tgi_journal_close(j);
        return tgi_journal_open(job->post->output, job->set.overwrite, NULL, j, err);
    }
    if (st != TG_OK)
        *err = e;
    return st;
}

static tg_status verdict(const tg_job *job, int64_t bad_regions, tgi_err *err)
{
    return tgi_bad_tiles_verdict(bad_regions, job->set.input, job->source, job->post->output,
                                 err);
}

/* Of what an earlier run made: the receipt knows what was filled. */
static tg_status verdict_then(const tg_job *job, tg_run_result *res, tgi_err *err)
{
    int there;
    tgi_err ignored = {0};
    (void)tgi_output_is_done(job->post->output, "", &there, &res->bad_regions, &ignored);
    return verdict(job, res->bad_regions, err);
}

static tg_status go(tg_job *job, tgi_journal **j, tg_run_result *res, tgi_err *err)
{
    int done;
    TGI_TRY(settle_made(job, j, &done, res, err));
    if (done)
        return verdict_then(job, res, err);
    const tg_status st = tgi_job_run(job, res, err);
    if (st != TG_OK && !(st == TG_E_FORMAT && res->bad_regions > 0))
        return st;
    *err = (tgi_err){0};
    TGI_TRY(tgi_job_plan_to_run(job, err));
    TGI_TRY(watched_objects(job, *j, 0, res, err));
    return verdict(job, res->bad_regions, err);
}

/* Before the network works for nothing. */
static tg_status check_table(const tg_job *job, const tgi_journal *j, tgi_err *err)
{
    const char *path = tgi_opts_str(job->post->opts, TGI_OPT_OBJECTS);
    if (path)
        TGI_TRY(tgi_objects_place(path, err));
    return path && tgi_journal_state(j) == TGI_JOURNAL_FRESH && !job->set.overwrite &&
                   access(path, F_OK) == 0
               ? tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path)
               : TG_OK;
}

/* The same of objects that were begun: those of another command. */
static tg_status check_begun(tg_job *job, const tgi_journal *j, tgi_err *err)
{
    size_t n;
    const void *stored = tgi_journal_job(j, &n);
    char *text = NULL;
    if (tgi_journal_state(j) != TGI_JOURNAL_RESUME || !n || job->set.overwrite)
        return TG_OK;
    TGI_TRY(tgi_job_plan_to_run(job, err));
    TGI_TRY(fingerprint(job, &text, err));
    const tg_status st = tgi_fingerprint_compare(stored, n, text, err);
    tgi_free(text);
    return st;
}

/* --skip-done: is OUT what would be made? */
static tg_status look_for_done(tg_job *job, int *done, tg_run_result *res, tgi_err *err)
{
    tgi_job_post *p = job->post;
    const char *table = tgi_opts_str(p->opts, TGI_OPT_OBJECTS);
    char *text = NULL;
    int there = 0;
    *done = 0;
    if (!tgi_opts_flag(p->opts, TGI_OPT_SKIP_DONE) || access(p->output, F_OK) != 0)
        return TG_OK;
    TGI_TRY(tgi_job_plan_to_run(job, err));
    TGI_TRY(fingerprint(job, &text, err));
    tg_status st = tgi_output_is_done(p->output, text, &there, &res->bad_regions, err);
    tgi_free(text);
    *done = st == TG_OK && there;
    if (*done && table && access(table, F_OK) != 0) {
        *done = 0;
        st = tgi_fail(err, TG_E_EXISTS,
                      "%s is complete, and its table %s is not there: -y makes both again",
                      p->output, table);
    }
    if (st == TG_E_EXISTS && job->set.overwrite) {
        *err = (tgi_err){0};
        st = TG_OK;
    }
    return *done ? verdict(job, res->bad_regions, err) : st;
}

/* OUT has its name, and only the journal stayed: of this command, or nothing is done. -y: another's goes. */
static tg_status settle_finished(tg_job *job, tgi_journal **j, int *done, tg_run_result *res,
                                 tgi_err *err)
{
    const char *output = job->post->output;
    char *text = NULL;
    size_t n;
    TGI_TRY(tgi_job_plan_to_run(job, err));
    TGI_TRY(fingerprint(job, &text, err));
    const void *stored = tgi_journal_job(*j, &n);
    const tg_status st = tgi_fingerprint_compare(stored, n, text, err);
    tgi_free(text);
    *done = st == TG_OK;
    if (!*done && !(st == TG_E_CHANGED && job->set.overwrite))
        return st;
    *err = (tgi_err){0};
    TGI_TRY(tgi_journal_clear_finished(*j, err));
    if (*done)
        return verdict_then(job, res, err);
    tgi_journal_close(j);
    return tgi_journal_open(output, 1, NULL, j, err);
}

tg_status tgi_job_run_all(tg_job *job, tg_run_result *out, tgi_err *err)
{
    tg_run_result res = {.size = sizeof res};
    tgi_job_post *p = job->post;
    tgi_journal *j = NULL;
    if (!p)
        return tgi_job_run(job, out, err);
    if (!p->output)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.tif) is missing");
    int done;
    const tg_status found = look_for_done(job, &done, &res, err);
    if (done && out) {
        res.output = p->output;
        *out = res;
    }
    if (done || found != TG_OK)
        return found;
    TGI_TRY(tgi_journal_open(p->output, job->set.overwrite, NULL, &j, err));
    tg_status st = TG_OK;
    if (tgi_journal_state(j) == TGI_JOURNAL_FINISHED)
        st = settle_finished(job, &j, &done, &res, err);
    if (st == TG_OK && !done)
        st = check_table(job, j, err);
    if (st == TG_OK && !done)
        st = check_begun(job, j, err);
    if (st == TG_OK && !done)
        st = go(job, &j, &res, err);
    tgi_journal_close(&j);
    res.output = p->output;
    if (out && (st == TG_OK || res.bad_regions > 0))
        *out = res;
    return st;
}
