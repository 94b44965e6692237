/* The films of ProPainter's conformance data with a device in the processor's place: the frames are the published ones, but for
 * shares of the samples that are off by one step of 8 bits and by more. In float32 the data say how many may be; in halves,
 * which all networks but that of the motions are computed in, it is what was measured (docs/gpu.md).
 *
 * Arguments: a folder with the three files of weights (tools/draw_weights.c), then, in any order, films and precisions: those
 * alone. Runs on a real device (label gpu), on the fake one and, in an hour or two, on the emulated one. */
#include "engine/base/json.h"
#include "engine/inpaint/pp_weights.h"
#include "engine/inpaint/propainter.h"
#include "io/npy.h"
#include "kernels/backend.h"
#include "tests/networks_on.h"

#define DATA TG_SHARED_DATA "/conformance/propainter/e2e"
/* Of all samples, in halves: twice what was measured (bmx24, on the fake device). */
#define HALF_OFF 7.2e-3
#define HALF_FAR 1.2e-4

static tgi_weights *weights[3];
static int words;
static char **word;

typedef struct film {
    int64_t frames, height, width;
    uint8_t *rgb, *hidden, *want; /* of all frames */
} film;

static int number(const tgi_json *of, const char *name)
{
    double v = 0;
    CHECK(tgi_json_num(tgi_json_get(of, name), &v));
    return (int)v;
}

static uint8_t *load(const tgi_json *from, const char *name, tgi_desc *d)
{
    char path[512];
    const char *file = "";
    void *data = NULL;
    tgi_err err = {0};
    CHECK(tgi_json_str(tgi_json_get(tgi_json_get(from, name), "file"), &file));
    snprintf(path, sizeof path, DATA "/%s", file);
    CHECK_OK(tgi_npy_load(path, 0, d, &data, &err), err);
    return data;
}

static tg_status frame(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err)
{
    const film *f = user;
    const size_t n = (size_t)(f->height * f->width);
    (void)err;
    memcpy(pixels, f->rgb + 3 * n * (size_t)k, 3 * n);
    memcpy(hidden, f->hidden + n * (size_t)k, n);
    return TG_OK;
}

typedef struct shares {
    int64_t all, hidden, off, far, outside;
} shares;

static void count_off(shares *s, const film *f, int64_t k, const uint8_t *got)
{
    const int64_t n = f->height * f->width;
    for (int64_t i = 0; i < 3 * n; i++) {
        const int by = abs((int)got[i] - (int)f->want[3 * n * k + i]);
        const int hidden = f->hidden[n * k + i / 3] != 0;
        s->all++;
        s->hidden += hidden;
        s->off += by > 0;
        s->far += by > 1;
        s->outside += by > 0 && !hidden;
    }
}

static void check_shares(const shares *s, const tgi_json *allowed, const char *name,
                         tg_dtype element)
{
    const double all = (double)s->all, off = (double)s->off / all, far = (double)s->far / all;
    double most_off = HALF_OFF, most_far = HALF_FAR;
    if (element == TG_DTYPE_F32)
        CHECK(tgi_json_num(tgi_json_get(allowed, "max_fraction_diff_gt0"), &most_off) &&
              tgi_json_num(tgi_json_get(allowed, "max_fraction_diff_gt1"), &most_far));
    printf("  %s, %s: %.2g of the samples are off (%.2g), %.2g by more than one (%.2g); of the "
           "hidden ones %.2g and %.2g\n",
           name, tgi_dtype_name(element), off, most_off, far, most_far,
           (double)s->off / (double)s->hidden, (double)s->far / (double)s->hidden);
    CHECK(off <= most_off && far <= most_far);
    CHECK_EQ(s->outside, 0);
}

static void make(film *f, const tgi_json *of, const char *name, tg_dtype element)
{
    const tgi_json *set = tgi_json_get(of, "params");
    tgi_on_device on = networks_on;
    on.how.far = NETWORKS_ROOM; /* what lies between networks stays there */
    const tgi_propainter_how how = {.height = f->height,
                                    .width = f->width,
                                    .hi = f->frames,
                                    .set = {number(set, "subvideo_length"),
                                            number(set, "neighbor_length"),
                                            number(set, "ref_stride")},
                                    .iterations = number(set, "raft_iter"),
                                    .threads = 2,
                                    .flags = networks_flags(),
                                    .raft = weights[0],
                                    .completion = weights[1],
                                    .generator = weights[2],
                                    .be = tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)),
                                    .on = &on,
                                    .user = f,
                                    .frame = frame};
    tgi_method *m = NULL;
    tgi_err err = {0};
    shares s = {0};
    CHECK_OK(tgi_propainter_new(&how, &m, &err), err);
    for (int64_t k = 0; k < f->frames && m && err.code == TG_OK; k++) {
        tgi_propagated is = {0};
        CHECK_OK(m->ops->make(m, k, &is, &err), err);
        if (err.code == TG_OK)
            count_off(&s, f, k, is.pixels);
    }
    CHECK_EQ(s.all, 3 * f->frames * f->height * f->width);
    if (s.all)
        check_shares(&s, tgi_json_get(tgi_json_get(of, "tolerance"), "comp"), name, element);
    if (m)
        m->ops->free(&m);
}

/* It is among the words, or none of its sort is. */
static int is_wanted(const char *name, const char *const *sort, int n)
{
    int others = 0;
    for (int i = 0; i < words; i++) {
        if (strcmp(word[i], name) == 0)
            return 1;
        for (int k = 0; k < n; k++)
            others |= strcmp(word[i], sort[k]) == 0;
    }
    return !others;
}

static void one_film(const tgi_json *of, const char *name)
{
    static const tg_dtype types[2] = {TG_DTYPE_F32, TG_DTYPE_F16};
    static const char *const precision[2] = {"fp32", "fp16"};
    const tgi_json *from = tgi_json_get(of, "inputs");
    tgi_desc d = {0}, unused;
    film f = {.rgb = load(from, "frames", &d),
              .hidden = load(from, "masks", &unused),
              .want = load(tgi_json_get(of, "outputs"), "comp", &unused)};
    f.frames = d.dim[0];
    f.height = d.dim[1];
    f.width = d.dim[2];
    for (int i = 0; i < 2; i++) {
        if (!is_wanted(precision[i], precision, 2))
            continue;
        if (networks_in(types[i]))
            make(&f, of, name, types[i]);
        else
            printf("  no kernels of %s\n", precision[i]);
    }
    tgi_free(f.rgb);
    tgi_free(f.hidden);
    tgi_free(f.want);
}

static void test_films_are_the_published_ones(void)
{
    static const char *const films[2] = {"bmx12", "bmx24"};
    tgi_json *index = NULL;
    tgi_err err = {0};
    int n = 0;
    CHECK_OK(tgi_json_load(DATA "/index.json", &index, &err), err);
    for (const tgi_json *c = tgi_json_first(tgi_json_get(index, "cases")); c;
         c = tgi_json_next(c), n++) {
        const char *name = "";
        CHECK(tgi_json_str(tgi_json_get(c, "name"), &name));
        if (is_wanted(name, films, 2))
            one_film(c, name);
    }
    CHECK_EQ(n, 2);
    tgi_json_free(&index);
}

int main(int argc, char **argv)
{
    tgi_err e = {0};
    if (argc < 2)
        return 2;
    words = argc - 2;
    word = argv + 2;
    if (!networks_in(TG_DTYPE_F32))
        return 77;
    if (!tg_has(DATA "/index.json"))
        return TEST_END();
    CHECK_OK(tgi_pp_weights_open(argv[1], weights, &e), e);
    if (weights[0])
        RUN(test_films_are_the_published_ones);
    for (int i = 0; i < 3; i++)
        tgi_weights_close(&weights[i]);
    return TEST_END();
}
