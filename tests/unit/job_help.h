/* job_help.h - what the tests of whole commands share: a folder of their own, options in one
 * line, images made of arrays. */
#ifndef TG_JOB_HELP_H
#define TG_JOB_HELP_H

#include "io/image.h"
#include "io/npy.h"
#include "tegula.h"
#include "tests/tg_test.h"

#include <dirent.h>
#include <stdarg.h>

static char folder[64];
static tg_ctx *ctx;

static inline void help_open(void)
{
    snprintf(folder, sizeof folder, "%s", "tegula-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
}

static inline const char *in_folder(const char *name)
{
    static char path[8][160];
    static int next;
    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%.90s", folder, name);
    return path[next];
}

static inline void help_close(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlink(in_folder(e->d_name));
    if (d)
        closedir(d);
    rmdir(folder);
    tg_ctx_close(&ctx);
}

static inline int exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Options from name, value, ..., NULL. Release with tg_opts_free. */
static inline tg_opts *opts_of(va_list ap)
{
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    for (const char *name; (name = va_arg(ap, const char *));) {
        const char *value = va_arg(ap, const char *);
        const tg_status st = tg_opts_set(o, name, value);
        if (st != TG_OK)
            fprintf(stderr, "%s=%s: %s\n", name, value, tg_ctx_detail(ctx));
        CHECK_EQ(st, TG_OK);
    }
    return o;
}

/* tg_copy with options; on failure the detail is in the context. */
static inline tg_status copy(const char *name, ...)
{
    va_list ap;
    va_start(ap, name);
    tg_opts *o = opts_of(ap);
    va_end(ap);
    const tg_status st = tg_copy(ctx, o);
    tg_opts_free(&o);
    (void)name;
    return st;
}

#define CHECK_COPY(want, ...)                                                                  \
    do {                                                                                       \
        const tg_status got_ = copy("", __VA_ARGS__, NULL);                                    \
        if (got_ != (want))                                                                    \
            fprintf(stderr, "%s:%d: copy: %s\n", __FILE__, __LINE__, tg_ctx_detail(ctx));      \
        CHECK_EQ(got_, want);                                                                  \
    } while (0)

static inline tgi_source *open_image(const char *path)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts o = {.threads = 1};
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        exit(1); /* what follows reads it */
    return s;
}

/* All samples of a box of one plane, sample-planar. Released with free. */
static inline void *pixels_of(tgi_source *s, int64_t plane, int64_t y0, int64_t y1, int64_t x0,
                              int64_t x1)
{
    tgi_err err = {0};
    const tgi_image_info *i = s->ops->info(s);
    const size_t pitch = (size_t)(x1 - x0) * tgi_dtype_size(i->dtype);
    char *p = calloc((size_t)(y1 - y0) * (size_t)i->samples, pitch);
    CHECK(p != NULL);
    if (p)
        CHECK_OK(s->ops->read(s, 0, plane, 0, i->samples, y0, y1, x0, x1, p, pitch,
                              pitch * (size_t)(y1 - y0), &err),
                 err);
    return p;
}

#endif
