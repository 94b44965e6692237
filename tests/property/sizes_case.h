/* sizes_case.h - what tests of sizes share: images that are drawn, padded and compared, and jobs over them. */
#ifndef TG_SIZES_CASE_H
#define TG_SIZES_CASE_H

#include "engine/plan/mapping.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

static const int64_t open2[2] = {0, 0}, k3[3] = {3, 3, 3};

static inline tgi_graph *graph_of(const char *path)
{
    tgi_graph *g = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
    if (g)
        CHECK_OK(tgi_graph_finish(g, 0, &e), e);
    return g;
}

typedef struct image {
    int64_t d, h, w; /* planes, rows, columns */
    float *px;
} image;

static inline image picture(int64_t d, int64_t h, int64_t w)
{
    image i = {d, h, w, malloc((size_t)(d * h * w) * sizeof(float))};
    uint64_t seed = 11;
    for (int64_t k = 0; k < d * h * w; k++)
        i.px[k] = tg_rand_unit(&seed);
    return i;
}

/* Mirror, repeat or zero: the definition, written down once more. */
static inline int64_t outside(char how, int64_t i, int64_t n)
{
    while (how == 'r' && (i < 0 || i >= n))
        i = i < 0 ? -i : 2 * (n - 1) - i;
    if (i >= 0 && i < n)
        return i;
    return how == 'z' ? -1 : i < 0 ? 0 : n - 1;
}

/* before[] and after[] are z,y,x. */
static inline image padded(const image *a, const int64_t before[3], const int64_t after[3],
                           char how)
{
    image b = {a->d + before[0] + after[0], a->h + before[1] + after[1],
               a->w + before[2] + after[2], NULL};
    b.px = calloc((size_t)(b.d * b.h * b.w), sizeof(float));
    for (int64_t z = 0; z < b.d; z++)
        for (int64_t y = 0; y < b.h; y++)
            for (int64_t x = 0; x < b.w; x++) {
                const int64_t sz = outside(how, z - before[0], a->d);
                const int64_t sy = outside(how, y - before[1], a->h);
                const int64_t sx = outside(how, x - before[2], a->w);
                if (sz >= 0 && sy >= 0 && sx >= 0)
                    b.px[(z * b.h + y) * b.w + x] = a->px[(sz * a->h + sy) * a->w + sx];
            }
    return b;
}

static inline void save(const image *a, const char *path)
{
    const tgi_desc d = {TG_DTYPE_F32, 3, {a->d, a->h, a->w}};
    tgi_err e = {0};
    CHECK_OK(tgi_npy_save(in_folder("px.npy"), &d, a->px, &e), e);
    CHECK_COPY(TG_OK, "input", in_folder("px.npy"), "output", path, "axes", "ZYX", "yes",
               "true");
}

static inline tg_status job(int (*verb)(tg_job *), const char *name, ...)
{
    va_list ap;
    tg_job *j = NULL;
    va_start(ap, name);
    tg_opts *o = opts_of(ap);
    va_end(ap);
    tg_status st = tg_job_open(ctx, o, &j);
    if (st == TG_OK)
        st = (tg_status)verb(j);
    tg_job_close(&j);
    tg_opts_free(&o);
    return st;
}

static inline int run_verb(tg_job *j)
{
    tg_run_result r = {.size = sizeof r};
    return (int)tg_job_run(j, &r);
}

static inline int verify_verb(tg_job *j)
{
    tg_verify_result r = {.size = sizeof r};
    const tg_status st = tg_job_verify(j, &r);
    CHECK(r.bit_equal);
    return (int)st;
}

#define CHECK_JOB(want, verb, ...)                                                             \
    do {                                                                                       \
        const tg_status got_ = job(verb, "", __VA_ARGS__, "yes", "true", NULL);                \
        if (got_ != (want))                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tg_ctx_detail(ctx));            \
        CHECK_EQ(got_, want);                                                                  \
    } while (0)

static inline image load(const char *path)
{
    tgi_source *s = open_image(path);
    image a = {0, 0, 0, NULL};
    if (!s)
        return a;
    const tgi_image_info *i = s->ops->info(s);
    const size_t plane = (size_t)(i->height * i->width);
    a = (image){i->n_planes, i->height, i->width, NULL};
    a.px = calloc((size_t)a.d * plane, sizeof(float));
    for (int64_t z = 0; z < a.d; z++) {
        float *p = pixels_of(s, z, 0, a.h, 0, a.w);
        memcpy(a.px + (size_t)z * plane, p, plane * sizeof *p);
        free(p);
    }
    tgi_source_close(&s);
    return a;
}

/* `got` is `whole` from pixel `at` (z,y,x) on, bit by bit. */
static inline void check_part(const image *got, const image *whole, const int64_t at[3],
                              const int64_t size[3])
{
    const int before = tg_failures;
    int64_t bad = 0;
    CHECK_EQ(got->d, size[0]);
    CHECK_EQ(got->h, size[1]);
    CHECK_EQ(got->w, size[2]);
    CHECK(whole->d >= at[0] + size[0] && whole->h >= at[1] + size[1] &&
          whole->w >= at[2] + size[2]);
    if (tg_failures > before)
        return;
    for (int64_t z = 0; z < size[0]; z++)
        for (int64_t y = 0; y < size[1]; y++)
            bad += memcmp(got->px + (z * got->h + y) * got->w,
                          whole->px + ((z + at[0]) * whole->h + y + at[1]) * whole->w + at[2],
                          (size_t)size[2] * sizeof(float)) != 0;
    CHECK_EQ(bad, 0);
}

#endif
