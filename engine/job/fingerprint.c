#include "engine/job/fingerprint.h"

#include "engine/base/mem.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a, 64 bits: identity of files among honest users, not a defence against forgery. */
static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h;
}

/* Size, time of change and a hash: of the whole file up to `limit` bytes, else of its two ends.
 */
tg_status tgi_file_identity(const char *path, int64_t limit, char *buf, size_t cap,
                            tgi_err *err)
{
    unsigned char block[16384];
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
        const ssize_t n = pread(fd, block, sizeof block, at);
        if (n <= 0)
            break;
        h = hash_bytes(h, block, (size_t)n);
        at += n;
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

typedef struct lines {
    char *p;
    size_t n, cap;
} lines;

static void add(lines *t, const char *fmt, ...) TGI_PRINTF(2, 3);
static void add(lines *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int w = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
    va_end(ap);
    if (w > 0)
        t->n = t->n + (size_t)w < t->cap ? t->n + (size_t)w : t->cap - 1;
}

tg_status tgi_fingerprint_make(const tg_job *job, char **out, tgi_err *err)
{
    char input[128], model[128], codec[64], by[64];
    const tg_plan_part *p = &job->plan;
    const tg_mapping *m = &job->map;
    TGI_TRY(tgi_input_identity(job->source, job->set.input, input, sizeof input, err));
    TGI_TRY(tgi_file_identity(job->set.model, (int64_t)1 << 30, model, sizeof model, err));
    char *net = tgi_net_text(p->net);
    lines s = {.cap = 4096 + (net ? strlen(net) : 0)};
    s.p = tgi_malloc(TGI_TAG_JOURNAL, s.cap);
    if (!net || !s.p) {
        tgi_free(net);
        tgi_free(s.p);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the job's fingerprint");
    }
    add(&s, "tegula=%s\nisa=%s\nprecision=%s\ninput=%s\nmodel=%s\nkernels=%s\n",
        TG_VERSION_STRING, tgi_job_computed_by(job, by, sizeof by), tgi_job_precision(job),
        input, model, net);
    if (job->dev.library && !job->dev.supposed) /* which chooses algorithms by device */
        add(&s, "library=%s on %s\n", job->dev.ops->library_name(job->dev.device),
            job->dev.info.name);
    add(&s, "region=%lld,%lld,%lld+%lldx%lldx%lld pad=%d items=%lld\n", (long long)m->origin[0],
        (long long)m->origin[1], (long long)m->origin[2], (long long)m->extent[0],
        (long long)m->extent[1], (long long)m->extent[2], (int)m->pad, (long long)m->n_items);
    add(&s, "size=");
    for (int i = 0; i < 3; i++)
        add(&s, "%s%lld+%lld>%lld+%lld box %lld,%lld", i ? " " : "",
            (long long)m->fit[i].before, (long long)m->fit[i].size, (long long)m->fit[i].crop,
            (long long)m->fit[i].out, (long long)m->fit[i].box, (long long)m->fit[i].core);
    add(&s, "\nplanes=%s\nseries=%lld level=%lld\n",
        tgi_opts_str(job->opts, TGI_OPT_PLANES) ? tgi_opts_str(job->opts, TGI_OPT_PLANES)
                                                : "all",
        (long long)tgi_opts_int(job->opts, TGI_OPT_SERIES, 0),
        (long long)tgi_opts_int(job->opts, TGI_OPT_LEVEL, 0));
    add(&s, "dtype=%s\nnormalize=%s invert=%d\n", tgi_dtype_name(job->set.dtype),
        job->set.normalize_text, job->set.invert);
    add(&s, "pyramid=%d\n", (int)tgi_opts_pyramid(job->opts));
    if (job->set.writer)
        add(&s, "format=%s\n", job->set.writer->name);
    add(&s, "on_bad_tile=%s\n", job->bad ? "fill" : "stop");
    add(&s, "codec=%s\n", tgi_tile_codec_text(p->layout, codec, sizeof codec));
    char plan[160];
    tgi_job_decided(job, plan, sizeof plan);
    add(&s, "plan=%s\n", plan);
    tgi_free(net);
    *out = s.p;
    return TG_OK;
}

/* The line that begins with `key=`; NULL if there is none. */
static const char *find_line(const char *stored, size_t n, const char *key, size_t *len)
{
    const size_t k = strlen(key);
    for (const char *line = stored, *end = stored + n; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t l = (size_t)((stop ? stop : end) - line);
        if (l > k && line[k] == '=' && memcmp(line, key, k) == 0) {
            *len = l - k - 1;
            return line + k + 1;
        }
        line += l + 1;
    }
    return NULL;
}

int tgi_fingerprint_get(const char *stored, size_t n, const char *key, char *buf, size_t cap)
{
    size_t len;
    const char *v = find_line(stored, n, key, &len);
    if (!v || len >= cap)
        return 0;
    memcpy(buf, v, len);
    buf[len] = 0;
    return 1;
}

tg_status tgi_fingerprint_compare(const char *stored, size_t n, const char *ours, tgi_err *err)
{
    for (const char *line = ours; *line;) {
        const char *stop = strchr(line, '\n'), *eq = strchr(line, '=');
        char key[32];
        size_t len = 0;
        if (!stop || !eq || (size_t)(eq - line) >= sizeof key)
            break;
        snprintf(key, sizeof key, "%.*s", (int)(eq - line), line);
        const size_t want = (size_t)(stop - eq - 1);
        const char *v = find_line(stored, n, key, &len);
        const int may_differ = !strcmp(key, "plan") || !strcmp(key, "on_bad_tile");
        if (!may_differ && (!v || len != want || memcmp(v, eq + 1, want) != 0))
            return tgi_fail(err, TG_E_CHANGED,
                            "the interrupted output was made with another %s (%.*s, now %.*s): "
                            "restore it, or give -y to discard that output and start over",
                            key, (int)(len < 120 ? len : 120), v ? v : "",
                            (int)(want < 120 ? want : 120), eq + 1);
        line = stop + 1;
    }
    return TG_OK;
}
