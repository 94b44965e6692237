#include "engine/job/fingerprint.h"

#include "engine/base/mem.h"
#include "engine/base/versions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a over words of 64 bits, turned so that their upper bits reach the lower ones, and bytes
 * at the end: identity of files among honest users, not a defence against forgery. The whole of
 * a model goes through it. */
static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n)
{
    uint64_t word;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 1099511628211ull;
        h = h << 29 | h >> 35;
    }
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h;
}

/* As many bytes as there are: where a block ends must not depend on how it was read. */
static size_t read_block(int fd, unsigned char *block, size_t cap, off_t at)
{
    size_t got = 0;
    ssize_t n = 1;
    while (got < cap && n != 0) {
        n = pread(fd, block + got, cap - got, at + (off_t)got);
        if (n > 0)
            got += (size_t)n;
        else if (n < 0 && errno != EINTR)
            break;
    }
    return got;
}

/* Size, time of change and a hash: of the whole file up to `limit` bytes, else of its two ends.
 */
tg_status tgi_file_identity(const char *path, int64_t limit, char *buf, size_t cap,
                            tgi_err *err)
{
    unsigned char block[65536];
    struct stat st;
    uint64_t h = 14695981039346656037ull;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: cannot be opened", path);
    }
    const off_t part = st.st_size <= limit ? st.st_size : limit / 2;
    for (off_t at = 0; at < st.st_size;) {
        const size_t n = read_block(fd, block, sizeof block, at);
        if (!n)
            break;
        h = hash_bytes(h, block, n);
        at += (off_t)n;
        if (at >= part && at < st.st_size - part)
            at = st.st_size - part; /* the middle of a huge image is left out */
    }
    close(fd);
    snprintf(buf, cap, "%lld bytes, mtime %lld.%09ld, hash %016llx", (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (unsigned long long)h);
    return TG_OK;
}

tg_status tgi_input_identity(const tg_source *s, const char *path, char *buf, size_t cap,
                             tgi_err *err)
{
    char one[128];
    int64_t n = 0;
    uint64_t h = 14695981039346656037ull;
    const char *file;
    if (!tgi_source_file(s, path, 1))
        return tgi_file_identity(tgi_source_file(s, path, 0), 32768, buf, cap, err);
    for (; (file = tgi_source_file(s, path, n)); n++) {
        const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
        TGI_TRY(tgi_file_identity(file, 4096, one, sizeof one, err));
        h = hash_bytes(h, (const unsigned char *)name, strlen(name) + 1);
        h = hash_bytes(h, (const unsigned char *)one, strlen(one) + 1);
    }
    snprintf(buf, cap, "%lld files, hash of names, sizes, times and ends %016llx", (long long)n,
             (unsigned long long)h);
    return TG_OK;
}

void tgi_fingerprint_program(tgi_lines *t, const char *program)
{
    tgi_lines_add(t, "tegula", "%s", program);
    tgi_lines_add(t, "bits", "%d", TGI_BITS);
    tgi_lines_add(t, "journal", "%d", TGI_JOURNAL_FORMAT);
}

void tgi_fingerprint_chosen(tgi_lines *t, const tg_opts *o)
{
    static const struct {
        tgi_opt opt;
        const char *key, *unset;
    } text[] = {{TGI_OPT_PLANES, "planes", "all"},
                {TGI_OPT_AXES, "axes", "file"},
                {TGI_OPT_KEY_Z, "key_z", ""},
                {TGI_OPT_KEY_C, "key_c", ""},
                {TGI_OPT_KEY_T, "key_t", ""}};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        const char *v = tgi_opts_str(o, text[i].opt);
        tgi_lines_add(t, text[i].key, "%s", v ? v : text[i].unset);
    }
    tgi_lines_add(t, "series", "%lld level=%lld", (long long)tgi_opts_int(o, TGI_OPT_SERIES, 0),
                  (long long)tgi_opts_int(o, TGI_OPT_LEVEL, 0));
}

/* Weights may lie in files beside the model, which are the model as much as it is. */
static tg_status add_model(tgi_lines *t, const tg_job *job, tgi_err *err)
{
    char one[128];
    const char *model = job->set.model, *slash = strrchr(model, '/'), *name;
    const int folder = slash ? (int)(slash - model) + 1 : 0;
    TGI_TRY(tgi_file_identity(model, INT64_MAX, one, sizeof one, err));
    tgi_lines_add(t, "model", "%s", one);
    tgi_lines all = {0};
    for (int i = 0; (name = tgi_graph_file(job->graph, i)); i++) {
        char path[4096];
        tg_status st = TG_E_NOT_FOUND;
        if (snprintf(path, sizeof path, "%.*s%s", folder, model, name) < (int)sizeof path)
            st = tgi_file_identity(path, INT64_MAX, one, sizeof one, err);
        else
            (void)tgi_fail(err, st, "%s: the name of its external data is too long", model);
        if (st != TG_OK) {
            tgi_free(all.p);
            return st;
        }
        tgi_lines_add(&all, name, "%s;", one);
    }
    for (size_t i = 0; all.p && i < all.n; i++)
        if (all.p[i] == '\n')
            all.p[i] = ' ';
    t->lost |= all.lost;
    if (all.p)
        tgi_lines_add(t, "model_data", "%s", all.p);
    tgi_free(all.p);
    return TG_OK;
}

static void add_region(tgi_lines *t, const tg_mapping *m)
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

static void add_output(tgi_lines *t, const tg_job *job)
{
    char codec[64], plan[160];
    tgi_lines_add(t, "dtype", "%s", tgi_dtype_name(job->set.dtype));
    tgi_lines_add(t, "normalize", "%s invert=%d", job->set.normalize_text, job->set.invert);
    tgi_lines_add(t, "pyramid", "%d", (int)tgi_opts_pyramid(job->opts));
    if (job->set.writer)
        tgi_lines_add(t, "format", "%s", job->set.writer->name);
    tgi_lines_add(t, "on_bad_tile", "%s", job->bad ? "fill" : "stop");
    tgi_lines_add(t, "codec", "%s", tgi_tile_codec_text(job->plan.layout, codec, sizeof codec));
    tgi_job_decided(job, plan, sizeof plan);
    tgi_lines_add(t, "plan", "%s", plan);
}

static tg_status add_all(tgi_lines *t, const tg_job *job, tgi_err *err)
{
    char input[128], by[64];
    TGI_TRY(tgi_input_identity(job->source, job->set.input, input, sizeof input, err));
    tgi_fingerprint_program(t, TG_VERSION_STRING);
    tgi_lines_add(t, "isa", "%s", tgi_job_computed_by(job, by, sizeof by));
    tgi_lines_add(t, "precision", "%s", tgi_job_precision(job));
    tgi_lines_add(t, "input", "%s", input);
    TGI_TRY(add_model(t, job, err));
    char *net = tgi_net_text(job->plan.net);
    t->lost |= !net;
    if (net)
        tgi_lines_add(t, "kernels", "%s", net);
    tgi_free(net);
    if (job->dev.library && !job->dev.supposed) /* which chooses algorithms by device */
        tgi_lines_add(t, "library", "%s on %s", job->dev.ops->library_name(job->dev.device),
                      job->dev.info.name);
    add_region(t, &job->map);
    tgi_fingerprint_chosen(t, job->opts);
    add_output(t, job);
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
