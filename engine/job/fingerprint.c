/* fingerprint.c - hashes model and input, and writes the lines of the
 * fingerprint. */
#include "engine/job/fingerprint.h"

#include "engine/base/clock.h"
#include "engine/base/fnv.h"
#include "engine/base/mem.h"
#include "engine/base/versions.h"
#include "engine/ends/tensors.h"
#include "engine/graph/card.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/device_kinds.h"
#include "engine/job/job_film.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"
#include "engine/job/run_arrays.h"
#include "engine/settings/opts_source.h"
#include "io/axis_list.h"
#include "io/crc32c.h"
#include "io/film_cut.h"
#include "io/onnx.h"
#include "io/picked.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As many bytes as there are: where a block ends must not depend on how it was read. */
static size_t read_block(int fd, unsigned char *block, size_t cap, uint64_t at)
{
    size_t got = 0;
    ssize_t n = 1;
    while (got < cap && n != 0) {
        n = pread(fd, block + got, cap - got, (off_t)(at + got));
        if (n > 0)
            got += (size_t)n;
        else if (n < 0 && errno != EINTR)
            break;
    }
    return got;
}

/* Of the whole file up to `limit` bytes, else of its first HEAD and of its end. Nothing behind
 * the size that the file had when it was opened is read. Blocks lie at fixed places. */
static uint64_t hash_file(int fd, uint64_t size, uint64_t limit)
{
    enum { HEAD = 65536 };
    unsigned char block[8192];
    uint64_t h = TGI_FNV_BEGIN;
    const uint64_t part = size <= limit ? size : limit / 2;
    for (uint64_t at = 0; at < size;) {
        const uint64_t left = size - at;
        const size_t n = read_block(fd, block, left < sizeof block ? left : sizeof block, at);
        if (!n)
            break;
        const uint32_t check = tgi_crc32c(0, block, n);
        h = tgi_fnv(h, &check, sizeof check);
        at += n;
        if (at >= HEAD && at >= part && at < size - part)
            at = size - part; /* the middle of a huge image is left out */
    }
    return h;
}

/* When a file was written to matters where its middle was not hashed, not else: a copy is as good. */
static void put_identity(const tgi_stamp *was, int whole, uint64_t hash, char *buf, size_t cap)
{
    char mtime[64] = "";
    if (!whole)
        snprintf(mtime, sizeof mtime, " mtime %lld.%09lld,", (long long)was->sec,
                 (long long)was->nsec);
    snprintf(buf, cap, "%llu bytes,%s hash %016llx", (unsigned long long)was->size, mtime,
             (unsigned long long)hash);
}

static tg_status file_identity(const tgi_held *f, uint64_t limit, char *buf, size_t cap,
                               tgi_err *err)
{
    int fd;
    TGI_TRY(tgi_held_open(f, &fd, err));
    put_identity(&f->was, f->was.size <= limit, hash_file(fd, f->was.size, limit), buf, cap);
    tgi_held_close(f, &fd);
    return TG_OK;
}

#define WHOLE ((uint64_t)64 << 20) /* up to here all is hashed, before the first pixel */
#define EVERY UINT64_MAX

/* Are the files together small enough? *n: how many there are. */
static int are_small(tgi_held_files *files, const void *of, int64_t *n)
{
    tgi_held f;
    uint64_t all = 0;
    for (*n = 0; files(of, *n, &f); (*n)++)
        all = f.was.size < EVERY - all ? all + f.was.size : EVERY;
    return all <= WHOLE;
}

/* What can be had at once of the files that an input is read from. */
static tg_status files_identity(tgi_held_files *files, const void *of, char *buf, size_t cap,
                                tgi_err *err)
{
    char one[128];
    int64_t n;
    uint64_t h = TGI_FNV_BEGIN;
    tgi_held f;
    const int small = are_small(files, of, &n);
    if (!n)
        return tgi_fail(err, TG_E_NOT_FOUND, "the input cannot be looked at");
    if (n == 1) {
        files(of, 0, &f);
        return file_identity(&f, small ? EVERY : 32768, buf, cap, err);
    }
    for (int64_t i = 0; i < n && files(of, i, &f); i++) {
        const char *slash = strrchr(f.path, '/'), *name = slash ? slash + 1 : f.path;
        TGI_TRY(file_identity(&f, small ? EVERY : 4096, one, sizeof one, err));
        h = tgi_fnv(h, name, strlen(name) + 1);
        h = tgi_fnv(h, one, strlen(one) + 1);
    }
    snprintf(buf, cap, "%lld files, hash of names, sizes%s %016llx", (long long)n,
             small ? " and bytes" : ", times and ends", (unsigned long long)h);
    return TG_OK;
}

/* Of files whose middle was not hashed: when anything of them was changed last. */
static void add_changed(tgi_lines *t, tgi_held_files *files, const void *of)
{
    int64_t n;
    uint64_t h = TGI_FNV_BEGIN;
    tgi_held f;
    if (are_small(files, of, &n))
        return;
    for (int64_t i = 0; files(of, i, &f); i++) {
        const int64_t at[2] = {f.was.csec, f.was.cnsec};
        h = tgi_fnv(h, at, sizeof at);
    }
    if (n == 1 && files(of, 0, &f))
        tgi_lines_add(t, TGI_INPUT_CHANGED, "%lld.%09lld", (long long)f.was.csec,
                      (long long)f.was.cnsec);
    else
        tgi_lines_add(t, TGI_INPUT_CHANGED, "%lld files, hash of times %016llx", (long long)n,
                      (unsigned long long)h);
}

tg_status tgi_fingerprint_files(tgi_lines *t, const char *key, tgi_held_files *files,
                                const void *of, tgi_err *err)
{
    char text[160];
    TGI_TRY(files_identity(files, of, text, sizeof text, err));
    tgi_lines_add(t, key, "%s", text);
    return TG_OK;
}

tg_status tgi_fingerprint_input(tgi_lines *t, const tgi_source *s, tgi_err *err)
{
    TGI_TRY(tgi_fingerprint_files(t, "input", tgi_source_held, s, err));
    add_changed(t, tgi_source_held, s);
    return TG_OK;
}

void tgi_fingerprint_program(tgi_lines *t, const char *program)
{
    tgi_lines_add(t, "tegula", "%s", program);
    tgi_lines_add(t, "bits", "%d", TGI_BITS);
    tgi_lines_add(t, "journal", "%d", TGI_JOURNAL_FORMAT);
}

/* Entries of the file's axes, by number: "GFP", "1" and "name:GFP" choose the same. */
static tg_status add_entries(tgi_lines *t, const tgi_source *s, tgi_err *err)
{
    static const char named[] = "CSZT", *const key[] = {"channels", "samples", "z", "t"};
    char text[512], other[16];
    for (char letter = 'A'; letter <= 'Z'; letter++) { /* of a plain stack, I or Q */
        const char *at = strchr(named, letter);
        tgi_axis_list l;
        TGI_TRY(tgi_picked_entries(s, letter, &l, err));
        snprintf(other, sizeof other, "planes of %c", letter);
        if (l.at)
            tgi_lines_add(t, at ? key[at - named] : other, "%s",
                          tgi_axis_list_text(&l, text, sizeof text));
        tgi_free(l.at);
    }
    return TG_OK;
}

/* Microseconds with a point, whatever the locale. */
static void add_seconds(tgi_lines *t, const char *name, const char *text)
{
    const long long us = llround(tgi_film_seconds(text) * 1e6);
    tgi_lines_add(t, name, "%lld.%06lld", us / 1000000, us % 1000000);
}

/* "1:30" and "90" are one time, ":10" and "0:10" the same frames. */
static void add_cut(tgi_lines *t, const tg_opts *o)
{
    const char *frames = tgi_opts_str(o, TGI_OPT_FRAMES),
               *start = tgi_opts_str(o, TGI_OPT_START), *end = tgi_opts_str(o, TGI_OPT_END);
    if (frames)
        tgi_lines_add(t, "frames", "%s%s", frames[0] == ':' ? "0" : "", frames);
    if (start)
        add_seconds(t, "start", start);
    if (end)
        add_seconds(t, "end", end);
}

tg_status tgi_fingerprint_chosen(tgi_lines *t, const tg_opts *o, const tgi_source *s,
                                 const tgi_planes_spec *planes, tgi_err *err)
{
    char text[TGI_PLANES_TEXT];
    const char *axes = tgi_opts_str(o, TGI_OPT_AXES), *raw = tgi_opts_str(o, TGI_OPT_RAW);
    static const char *const key[3] = {"key_z", "key_c", "key_t"};
    tgi_lines_add(t, "planes", "%s", tgi_planes_text(planes, text, sizeof text));
    tgi_lines_add(t, "axes", "%s", axes ? axes : "file");
    for (int i = 0; i < 3; i++)
        tgi_lines_add(t, key[i], "%s", tgi_opts_name_key(o, i) ? tgi_opts_name_key(o, i) : "");
    TGI_TRY(add_entries(t, s, err));
    if (raw)
        tgi_lines_add(t, "raw", "%s", raw);
    add_cut(t, o);
    tgi_lines_add(
        t, "series", "%lld level=%lld",
        (long long)tgi_opts_int(o, TGI_OPT_SERIES, s ? s->ops->info(s)->at_series : 0),
        (long long)tgi_opts_int(o, TGI_OPT_LEVEL, 0));
    return TG_OK;
}

/* Planes that --planes names, as far as they are no entries of axes that the source has alone. */
static tg_status add_chosen(tgi_lines *t, const tg_job *job, tgi_err *err)
{
    tgi_planes_spec planes = {0};
    int64_t n;
    tgi_err none = {0};
    if (job->map.planes.n)
        planes = job->map.planes;
    else if (!job->picked.count)
        tgi_opts_planes(job->opts, &planes);
    if (planes.n && job->source) /* channels for the network: an open end is closed here */
        (void)tgi_planes_resolve(&planes, job->info->n_planes, &n, &none);
    return tgi_fingerprint_chosen(t, job->opts, job->source, &planes, err);
}

/* Weights may lie in files beside the model, which are the model as much as it is. The bytes
 * are those that it was opened with, whatever has its name now. */
static void add_model(tgi_lines *t, const tgi_graph *g)
{
    char one[128];
    tgi_lines beside = {0};
    tgi_onnx_part p;
    tgi_graph_sum(g);
    for (int i = 0; tgi_graph_part(g, i, &p); i++) {
        put_identity(&p.was, 0, p.sum, one, sizeof one); /* nobody looks at it meanwhile */
        if (p.location)
            tgi_lines_add(&beside, p.location, "%s;", one);
        else
            tgi_lines_add(t, "model", "%s", one);
    }
    for (size_t i = 0; beside.p && i < beside.n; i++)
        if (beside.p[i] == '\n')
            beside.p[i] = ' ';
    t->lost |= beside.lost;
    if (beside.p)
        tgi_lines_add(t, "model_data", "%s", beside.p);
    tgi_free(beside.p);
}

static void add_region(tgi_lines *t, const tgi_mapping *m)
{
    char size[3][160];
    tgi_lines_add(t, "region", "%lld,%lld,%lld+%lldx%lldx%lld pad=%d items=%lld",
                  (long long)m->origin[0], (long long)m->origin[1], (long long)m->origin[2],
                  (long long)m->extent[0], (long long)m->extent[1], (long long)m->extent[2],
                  (int)m->pad, (long long)m->n_items);
    for (int i = 0; i < 3; i++)
        snprintf(size[i], sizeof size[i], "%lld+%lld>%lld+%lld box %lld,%lld",
                 (long long)m->fit[i].before, (long long)m->fit[i].size,
                 (long long)m->fit[i].crop, (long long)m->fit[i].out, (long long)m->fit[i].box,
                 (long long)m->fit[i].core);
    tgi_lines_add(t, "size", "%s %s %s", size[0], size[1], size[2]);
}

/* What is in the files of a list, "IN=FILE,...": all of it, since it is held in memory, too. */
static void add_files(tgi_lines *t, const char *key, const char *list)
{
    char path[3072], one[128];
    tgi_err none = {0};
    uint64_t h = tgi_fnv(TGI_FNV_BEGIN, list, strlen(list) + 1);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        const char *file = strchr(at, '=');
        tgi_held f = {.path = path, .fd = -1};
        if (!file)
            break;
        snprintf(path, sizeof path, "%.*s", (int)strcspn(file + 1, ","), file + 1);
        if (tgi_stamp_path(path, &f.was) == 0 &&
            file_identity(&f, EVERY, one, sizeof one, &none) == TG_OK)
            h = tgi_fnv(h, one, strlen(one) + 1);
    }
    tgi_lines_add(t, key, "%.200s, hash %016llx", list, (unsigned long long)h);
}

static void add_window(tgi_lines *t, const tg_job *job)
{
    char text[512];
    size_t n = 0;
    if (job->set.window > 1)
        tgi_lines_add(t, "window", "%d edge=%d", job->set.window, (int)job->set.window_edge);
    for (int i = 0; i < job->set.n_ties && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", i ? "," : "",
                              job->set.tie[i].out, job->set.tie[i].in);
    if (job->set.n_ties)
        tgi_lines_add(t, "state", "%s", text);
    if (job->set.state_init)
        add_files(t, "state_init", job->set.state_init);
    if (job->set.constant)
        add_files(t, "constant", job->set.constant);
}

static void add_scope(tgi_lines *t, const tg_job *job)
{
    if (job->set.norm_tiles) /* without it texts stay what they were */
        tgi_lines_add(t, "norm_scope", "tile");
}

const char *tgi_on_bad_word(const tg_job *job)
{
    if (!job->bad)
        return "stop";
    return tgi_opts_choice(job->opts, TGI_OPT_ON_BAD_TILE) == 2 ? "keep" : "fill";
}

/* A codec that has no crf says none; what was not asked for is the codec's usual one. */
static void add_film(tgi_lines *t, const tgi_film_out *f)
{
    char crf[24] = "";
    if (f->coding.crf >= 0)
        snprintf(crf, sizeof crf, " crf=%d", f->coding.crf);
    else if (f->has_crf)
        snprintf(crf, sizeof crf, " crf=usual");
    tgi_lines_add(t, "film", "%s%s speed=%d rate=%lld/%lld, %s", f->text, crf, f->coding.speed,
                  (long long)f->coding.rate.num, (long long)f->coding.rate.den,
                  f->ops->version());
}

static void add_output(tgi_lines *t, const tg_job *job)
{
    char codec[64], plan[TGI_DECIDED_TEXT];
    const tgi_decided decided = tgi_job_decided(job);
    tgi_lines_add(t, "dtype", "%s", tgi_dtype_name(job->set.dtype));
    tgi_lines_add(t, "normalize", "%s invert=%d", job->set.normalize_text, job->set.invert);
    tgi_lines_add(t, "pyramid", "%d", (int)tgi_opts_pyramid(job->opts));
    if (job->film && job->film->out.pictures)
        tgi_lines_add(t, "film", "%s", job->film->out.text);
    else if (job->film)
        add_film(t, &job->film->out);
    if (job->set.writer)
        tgi_lines_add(t, "format", "%s", job->set.writer->name);
    tgi_lines_add(t, "on_bad_tile", "%s", tgi_on_bad_word(job));
    tgi_lines_add(t, "codec", "%s", tgi_tile_codec_text(job->plan.layout, codec, sizeof codec));
    tgi_lines_add(t, "plan", "%s", tgi_decided_text(&decided, plan, sizeof plan));
}

/* What computes which network. */
static void add_network(tgi_lines *t, const tg_job *job)
{
    char by[64];
    tgi_lines_add(t, "isa", "%s", tgi_job_computed_by(job, by, sizeof by));
    tgi_lines_add(t, "precision", "%s", tgi_job_precision(job));
    if (job->dev.for_source)
        tgi_lines_add(t, "beside", "%s", job->set.backend->name);
    add_model(t, job->graph);
    if (job->set.card) /* its steps behind the network, too */
        tgi_lines_add(t, "description", "%s", job->set.card->sum);
    if (tgi_inpaint_network(job->source))
        add_model(t, tgi_inpaint_network(job->source));
    char *net = tgi_net_text(job->plan.net);
    t->lost |= !net;
    if (net)
        tgi_lines_add(t, "kernels", "%s", net);
    tgi_free(net);
    if (job->dev.library && !job->dev.supposed) /* which chooses algorithms by device */
        tgi_lines_add(t, "library", "%s on %s", job->dev.ops->library_name(job->dev.device),
                      job->dev.info.name);
}

static tg_status add_all(tgi_lines *t, const tg_job *job, tgi_err *err)
{
    tgi_fingerprint_program(t, TG_VERSION_STRING);
    if (tgi_film_source_is_stream(job->source))
        tgi_lines_add(t, "input", "what came through a pipe");
    else
        TGI_TRY(tgi_fingerprint_input(t, job->source, err));
    add_network(t, job);
    add_region(t, &job->map);
    add_scope(t, job);
    add_window(t, job);
    TGI_TRY(add_chosen(t, job, err));
    TGI_TRY(tgi_job_inpaint_fingerprint(job, t, err));
    add_output(t, job);
    return TG_OK;
}

/* A file of statistics is written once; a pipe is another one each time. */
static void add_statistics(tgi_lines *t, const char *path)
{
    tgi_stamp is;
    if (path && tgi_stamp_path(path, &is) == 0)
        tgi_lines_add(t, "stats", "%llu %llu %lld.%09lld", (unsigned long long)is.ino,
                      (unsigned long long)is.size, (long long)is.sec, (long long)is.nsec);
}

tg_status tgi_fingerprint_tensors(const tg_job *job, tgi_lines *t, tgi_err *err)
{
    char input[160];
    const char *compress = tgi_opts_str(job->opts, TGI_OPT_COMPRESS);
    const char *format = tgi_opts_str(job->opts, TGI_OPT_FORMAT);
    tgi_held any;
    snprintf(input, sizeof input, "no files");
    if (tgi_tensor_files(job, 0, &any))
        TGI_TRY(files_identity(tgi_tensor_files, job, input, sizeof input, err));
    for (int i = 0; i < job->graph->n_in; i++)
        if (job->tensors->in[i].lent) /* nothing says that it is what it was before a stop */
            tgi_lines_add(t, "source", "%d %.9f", (int)getpid(), tgi_seconds());
    tgi_fingerprint_program(t, "arrays " TG_VERSION_STRING);
    tgi_lines_add(t, "input", "%s", input);
    add_network(t, job);
    if (job->source)
        add_region(t, &job->map);
    add_window(t, job);
    TGI_TRY(add_chosen(t, job, err));
    tgi_lines_add(t, "dtype", "%s", tgi_dtype_name(job->set.dtype));
    tgi_lines_add(t, "normalize", "%s invert=%d", job->set.normalize_text, job->set.invert);
    add_statistics(t, tgi_opts_str(job->opts, TGI_OPT_STATS));
    tgi_lines_add(t, "on_bad_tile", "%s", tgi_on_bad_word(job));
    tgi_lines_add(t, "compress", "%s", compress ? compress : "");
    tgi_lines_add(t, "format", "%s", format ? format : "");
    return TG_OK;
}

tg_status tgi_fingerprint_make(const tg_job *job, char **out, tgi_err *err)
{
    tgi_lines t = {0};
    const tg_status st = add_all(&t, job, err);
    if (st == TG_OK)
        return tgi_lines_take(&t, out, err);
    tgi_free(t.p);
    return st;
}
