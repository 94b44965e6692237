/* receipt.c - writes OUT.tegula.json; docs/reference/files.md lists its members. */
#include "engine/job/receipt.h"

#include "engine/base/mem.h"
#include "engine/job/device_kinds.h"
#include "engine/job/fingerprint.h"
#include "engine/job/job_film.h"
#include "engine/job/methods.h"
#include "engine/job/stats_file.h"
#include "engine/out/fingerprint_text.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* "key": "value" of each line. A receipt that has no memory for one is not taken. */
static void put_fingerprint(tgi_jw *w, const char *text)
{
    const char *end = text + strlen(text);
    tgi_line l;
    tgi_jw_begin(w, "fingerprint", '{');
    while (tgi_lines_next(&text, end, &l)) {
        char key[48], *value = tgi_malloc(TGI_TAG_MISC, l.value_n + 1);
        w->failed |= !value;
        if (!value)
            return;
        memcpy(value, l.value, l.value_n);
        value[l.value_n] = 0;
        snprintf(key, sizeof key, "%.*s", (int)l.key_n, l.key);
        tgi_jw_str(w, key, value);
        tgi_free(value);
    }
    tgi_jw_end(w, '}');
}

static void put_methods(tgi_jw *w, const tg_job *job, const tg_run_result *res)
{
    char *text = tgi_job_methods(job, res, job->stats_given);
    w->failed |= !text;
    if (text)
        tgi_jw_str(w, "methods", text);
    tgi_free(text);
}

static void put_files(tgi_jw *w, const tgi_receipt_files *f)
{
    char crc[16];
    snprintf(crc, sizeof crc, "%08x", (unsigned)f->output_crc32c);
    tgi_jw_uint(w, "input_bytes", f->input.bytes);
    tgi_jw_str(w, "input_sha256", f->input.sha256[0] ? f->input.sha256 : NULL);
    tgi_jw_bool(w, "input_changed", f->input.changed);
    if (f->input.trouble[0])
        tgi_jw_str(w, "input_trouble", f->input.trouble);
    tgi_jw_uint(w, "output_bytes", f->output_bytes);
    tgi_jw_str(w, "output_crc32c", crc);
}

/* How its frames are encoded, with a line of ffmpeg that says the same. */
static void put_film(tgi_jw *w, const tg_job *job)
{
    char words[512], line[9216];
    const tgi_film_out *o = job->film ? &job->film->out : NULL;
    if (!o || o->pictures)
        return;
    o->ops->encoder_words(&o->coding, words, sizeof words);
    snprintf(line, sizeof line,
             "ffmpeg -i FRAMES -i %s -map 0:v -map 1:a? -map 1:s? -c copy %s %s",
             job->set.input, words, job->set.output);
    tgi_jw_begin(w, "film", '{');
    tgi_jw_str(w, "container", o->container);
    tgi_jw_str(w, "coding", o->text);
    tgi_jw_str(w, "encoder", words);
    tgi_jw_str(w, "libraries", o->ops->version());
    tgi_jw_str(w, "ffmpeg", line);
    tgi_jw_end(w, '}');
}

tg_status tgi_receipt_write(const tg_job *job, const tg_run_result *res, const tgi_stats *sets,
                            const char *fingerprint, const tgi_receipt_files *files,
                            tgi_err *err)
{
    char path[4096], *text = NULL;
    tgi_jw w = {0};
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "tegula", TG_VERSION_STRING);
    tgi_jw_str(&w, "input", job->set.input);
    tgi_jw_str(&w, "model", job->set.model);
    tgi_jw_str(&w, "output", job->set.output);
    put_files(&w, files);
    put_fingerprint(&w, fingerprint);
    tgi_jw_str(&w, "normalize", job->set.normalize_text);
    if (sets && tgi_normalize_needs_stats(&job->set.normalize))
        tgi_stats_json(&w, sets, job->map.n_stats);
    tgi_jw_str(&w, "dtype", tgi_dtype_name(job->set.dtype));
    tgi_jw_str(&w, "precision", tgi_job_precision(job));
    tgi_jw_str(&w, "norm_scope", job->set.norm_tiles ? "tile" : "global");
    tgi_jw_int(&w, "threads", job->set.threads);
    tgi_jw_uint(&w, "budget_bytes", res->budget_bytes);
    tgi_jw_uint(&w, "predicted_peak_bytes", res->predicted_peak_bytes);
    tgi_jw_uint(&w, "measured_peak_bytes", res->measured_peak_bytes);
    if (res->device) {
        tgi_jw_str(&w, "device", res->device);
        tgi_jw_uint(&w, "device_predicted_bytes", res->device_predicted_bytes);
        tgi_jw_uint(&w, "device_measured_bytes", res->device_measured_bytes);
    }
    tgi_jw_num(&w, "seconds", res->seconds);
    tgi_jw_int(&w, "tiles", res->tiles);
    tgi_jw_int(&w, "tiles_resumed", res->tiles_resumed);
    tgi_jw_int(&w, "tiles_begun", res->tiles_begun);
    tgi_jw_str(&w, "on_bad_tile", tgi_on_bad_word(job));
    tgi_jw_int(&w, "bad_regions", res->bad_regions);
    tgi_jw_int(&w, "nonfinite", res->nonfinite);
    tgi_jw_begin(&w, "warnings", '[');
    for (int i = 0; i < job->n_warnings; i++)
        tgi_jw_str(&w, NULL, job->warning[i]);
    tgi_jw_end(&w, ']');
    put_film(&w, job);
    put_methods(&w, job, res);
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, &text, err));
    tg_status st = TG_OK;
    if (snprintf(path, sizeof path, "%s.tegula.json", job->set.output) < (int)sizeof path)
        st = tgi_write_text(path, text, 1, err);
    tgi_free(text);
    return st;
}

/* ---- Read -------------------------------------------------------------------------------- */

/* Of a file that got the name since, it tells another size. */
static int tells_of(const tgi_json *receipt, const char *output)
{
    struct stat st;
    int64_t bytes;
    return stat(output, &st) == 0 && S_ISREG(st.st_mode) &&
           tgi_json_int(tgi_json_get(receipt, "output_bytes"), &bytes) && bytes == st.st_size;
}

tgi_json *tgi_receipt_of(const char *output)
{
    char path[4096];
    tgi_json *doc = NULL;
    tgi_err none = {0};
    if (snprintf(path, sizeof path, "%s.tegula.json", output) >= (int)sizeof path ||
        tgi_json_load(path, &doc, &none) != TG_OK)
        return NULL;
    if (!tells_of(doc, output))
        tgi_json_free(&doc);
    return doc;
}

void tgi_receipt_fingerprint(const tgi_json *receipt, tgi_lines *t)
{
    const char *value;
    const tgi_json *of = tgi_json_get(receipt, "fingerprint");
    for (const tgi_json *v = of ? tgi_json_first(of) : NULL; v; v = tgi_json_next(v))
        if (tgi_json_str(v, &value))
            tgi_lines_add(t, tgi_json_key(v), "%s", value);
}
