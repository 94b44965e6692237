/* PNG and JPEG as outputs: the pixels arrive, what cannot be one is refused by name, and a stop
 * anywhere costs nothing but time. */
#include "io/exif.h"
#include "io/file_ops.h"
#include "job_help.h"
#include "tiff_by_hand.h"

#include <signal.h>
#include <sys/wait.h>

enum { HEIGHT = 300, WIDTH = 270 };

static void save(const char *name, tg_dtype type, int samples, int planes)
{
    const size_t n = (size_t)planes * HEIGHT * WIDTH * (size_t)samples,
                 size = tgi_dtype_size(type);
    tgi_desc d = {type, 0, {0}};
    uint8_t *p = malloc(n * size);
    tgi_err err = {0};
    uint64_t seed = 3;
    for (size_t i = 0; i < n * size; i++)
        p[i] = (uint8_t)(i / (size_t)samples % WIDTH + tg_rand(&seed) % 16 + i % 3 * 20);
    if (planes > 1)
        d.dim[d.rank++] = planes;
    d.dim[d.rank++] = HEIGHT;
    d.dim[d.rank++] = WIDTH;
    if (samples > 1)
        d.dim[d.rank++] = samples;
    CHECK_OK(tgi_npy_save(in_folder(name), &d, p, &err), err);
    free(p);
}

/* Mean distance of the pixels of two images, in grey levels; 1e9 when they are not alike. */
static double distance(const char *a, const char *b, const char *axes_of_b)
{
    tgi_err err = {0};
    const tgi_open_opts named = {.threads = 1, .axes = axes_of_b};
    tgi_source *s = open_image(a), *t = NULL;
    CHECK_OK(tgi_source_open(b, &named, &t, &err), err);
    double sum = 1e9;
    if (s && t) {
        const tgi_image_info *i = s->ops->info(s), *k = t->ops->info(t);
        CHECK_EQ(i->samples, k->samples);
        CHECK_EQ(i->dtype, k->dtype);
        const size_t n = HEIGHT * WIDTH * (size_t)i->samples;
        uint8_t *p = pixels_of(s, 0, 0, HEIGHT, 0, WIDTH);
        uint8_t *q = pixels_of(t, 0, 0, HEIGHT, 0, WIDTH);
        sum = 0;
        for (size_t e = 0; e < n * tgi_dtype_size(i->dtype); e++)
            sum += abs(p[e] - q[e]);
        sum /= (double)n;
        free(p);
        free(q);
    }
    tgi_source_close(&s);
    tgi_source_close(&t);
    return sum;
}

static void nothing_left(const char *out)
{
    static const char *const ends[] = {".partial", ".made", ".journal"};
    char path[200];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", out, ends[i]);
        CHECK(!exists(path));
    }
}

static void test_pixels_arrive_in_png_exactly_and_in_jpeg_nearly(void)
{
    for (int samples = 1; samples <= 4; samples++)
        for (int wide = 0; wide < 2; wide++) {
            const char *axes = samples > 1 ? "YXS" : "YX";
            save("in.npy", wide ? TG_DTYPE_U16 : TG_DTYPE_U8, samples, 1);
            CHECK_COPY(TG_OK, "input", in_folder("in.npy"), "axes", axes, "output",
                       in_folder("out.png"), "yes", "", "compress", "zstd");
            CHECK_EQ(distance(in_folder("out.png"), in_folder("in.npy"), axes), 0);
            nothing_left(in_folder("out.png"));
            if (wide || samples % 2 == 0)
                continue;
            const tg_status st = copy("", "input", in_folder("in.npy"), "axes", axes, "output",
                                      in_folder("out.JPEG"), "yes", "", NULL);
            CHECK(st == TG_OK || st == TG_E_UNSUPPORTED); /* a build without libjpeg */
            if (st == TG_OK)
                CHECK(distance(in_folder("out.JPEG"), in_folder("in.npy"), axes) < 3);
            nothing_left(in_folder("out.JPEG"));
        }
}

static void refused(const char *out, const char *words)
{
    CHECK_COPY(TG_E_ARG, "input", in_folder("in.npy"), "output", in_folder(out));
    CHECK(strstr(tg_ctx_detail(ctx), words) != NULL);
    if (!strstr(tg_ctx_detail(ctx), words))
        fprintf(stderr, "  \"%s\"\n", tg_ctx_detail(ctx));
    CHECK(!exists(in_folder(out)));
    nothing_left(in_folder(out));
}

static void test_what_is_no_picture_is_refused_before_anything_is_written(void)
{
    save("in.npy", TG_DTYPE_U8, 1, 5);
    refused("no.png", "a PNG holds one plane, the output has 5");
    save("in.npy", TG_DTYPE_F32, 1, 1);
    refused("no.png", "a PNG holds uint8 or uint16 in 1 to 4 samples, not float32 in 1");
}

/* ---- What is known beside the pixels ---- */

enum { PROFILE = 100000 }; /* more than a segment of a JPEG holds */

/* A TIFF of 32x20 RGB pixels that is to be turned, with a profile. */
static void turned(const char *name, const uint8_t *profile, int orientation)
{
    const uint16_t turn = (uint16_t)orientation;
    const hand_page p = {.w = 32,
                         .h = 20,
                         .bits = 8,
                         .samples = 3,
                         .extra = {{274, 3, 1, &turn}, {34675, 7, PROFILE, profile}},
                         .n_extra = 2};
    hand_tiff(in_folder(name), &p, 1);
}

static int says(const char *name, const uint8_t *profile, int orientation)
{
    tgi_source *s = open_image(in_folder(name));
    const tgi_image_meta *m = s ? &s->ops->info(s)->meta : NULL;
    const int same = m && m->orientation == orientation && m->icc_bytes == PROFILE &&
                     memcmp(m->icc, profile, PROFILE) == 0;
    tgi_source_close(&s);
    return same;
}

static void test_profile_and_orientation_go_from_tiff_to_picture_and_back(void)
{
    /* As much of a profile as libpng asks for: size, class, spaces, mark, no tags. */
    static uint8_t profile[PROFILE] = {0,   1,   0x86,       0xa0, [12] = 'm', 'n', 't',
                                       'r', 'R', 'G',        'B',  ' ',        'X', 'Y',
                                       'Z', ' ', [36] = 'a', 'c',  's',        'p'};
    static const char *const pictures[] = {"turned.png", "turned.jpg"};
    for (int i = 132; i < PROFILE; i++)
        profile[i] = (uint8_t)((uint32_t)i * (uint32_t)i >> 5);
    turned("turned.tif", profile, 6);
    for (int i = 0; i < 2; i++) {
        const tg_status st = copy("", "input", in_folder("turned.tif"), "output",
                                  in_folder(pictures[i]), "yes", "", NULL);
        if (i && st == TG_E_UNSUPPORTED)
            continue; /* a build without libjpeg */
        CHECK_EQ(st, TG_OK);
        CHECK(says(pictures[i], profile, 6));
        CHECK_COPY(TG_OK, "input", in_folder(pictures[i]), "output", in_folder("back.tif"),
                   "yes", "");
        CHECK(says("back.tif", profile, 6));
    }
    profile[16] = 'C'; /* of inks: no profile for a picture of light */
    turned("turned.tif", profile, 1);
    CHECK_COPY(TG_OK, "input", in_folder("turned.tif"), "output", in_folder("turned.png"),
               "yes", "");
    CHECK(!says("turned.png", profile, 0));
}

/* Flipped and cut bytes in what stands in front of the pixels: a status, nothing else. */
static void test_bent_marks_of_a_picture_end_in_a_status(void)
{
    static uint8_t file[1 << 18];
    static const char *const pictures[] = {"turned.png", "turned.jpg"};
    uint64_t seed = 11;
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(in_folder(pictures[i]), "rb");
        const size_t n = f ? fread(file, 1, sizeof file, f) : 0;
        if (f)
            fclose(f);
        for (int k = 0; k < 200 && n; k++) {
            const size_t at = (size_t)tg_rand_in(&seed, 0, k % 2 ? 200 : (int64_t)n - 1);
            const uint8_t was = file[at];
            tgi_source *s = NULL;
            tgi_err err = {0};
            file[at] = (uint8_t)tg_rand(&seed);
            f = fopen(in_folder("bent"), "wb");
            fwrite(file, 1, k % 5 ? n : at, f);
            fclose(f);
            if (tgi_source_open(in_folder("bent"), &(tgi_open_opts){.threads = 1}, &s, &err) ==
                TG_OK)
                CHECK(s->ops->info(s)->meta.orientation >= 0 &&
                      s->ops->info(s)->meta.orientation < 9);
            tgi_source_close(&s);
            file[at] = was;
        }
    }
    for (int k = 0; k < 20000; k++) {
        uint8_t block[40];
        const size_t n = (size_t)tg_rand_in(&seed, 0, sizeof block);
        tgi_exif_make(3, block);
        for (int b = 0; b < 3; b++)
            block[tg_rand_in(&seed, 4, sizeof block - 1)] = (uint8_t)tg_rand(&seed);
        uint8_t *exact = malloc(n + 1); /* so that one byte too far is seen */
        memcpy(exact, block, n);
        const int v = tgi_exif_orientation(exact, n);
        CHECK(v >= 0 && v < 9);
        free(exact);
    }
}

/* ---- Stops ---- */

static int calls, kill_at;

static int hook(tgi_file_op op, const char *path)
{
    (void)op, (void)path;
    if (++calls == kill_at)
        raise(SIGKILL);
    return 0;
}

static size_t bytes_of(const char *name, uint8_t *to, size_t cap)
{
    FILE *f = fopen(in_folder(name), "rb");
    const size_t n = f ? fread(to, 1, cap, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* Killed in front of the k-th call that touches a file, for every k: the same command completes
 * and the bytes are the same. */
static void test_a_kill_anywhere_is_resumed_to_the_same_picture(void)
{
    static uint8_t want[1 << 20], got[1 << 20];
    int k = 1, killed = 1;
    unlink(in_folder("out.png"));
    save("in.npy", TG_DTYPE_U16, 1, 1);
    CHECK_COPY(TG_OK, "input", in_folder("in.npy"), "output", in_folder("want.png"));
    const size_t n = bytes_of("want.png", want, sizeof want);
    CHECK(n > 1000 && n < sizeof want);
    for (; killed && k < 200; k++) {
        fflush(NULL);
        const pid_t child = fork();
        if (!child) {
            kill_at = k;
            tgi_file_set_hook(hook);
            _exit(copy("", "input", in_folder("in.npy"), "output", in_folder("out.png"),
                       NULL) != TG_OK);
        }
        int status = 0;
        waitpid(child, &status, 0);
        killed = WIFSIGNALED(status);
        CHECK(killed || WEXITSTATUS(status) == 0);
        if (killed)
            CHECK_COPY(TG_OK, "input", in_folder("in.npy"), "output", in_folder("out.png"));
        CHECK_EQ(bytes_of("out.png", got, sizeof got), n);
        CHECK(memcmp(want, got, n) == 0);
        nothing_left(in_folder("out.png"));
        unlink(in_folder("out.png"));
    }
    printf("%d calls\n", k - 2);
    CHECK(k > 20);
}

int main(void)
{
    help_open();
    RUN(test_pixels_arrive_in_png_exactly_and_in_jpeg_nearly);
    RUN(test_what_is_no_picture_is_refused_before_anything_is_written);
    RUN(test_profile_and_orientation_go_from_tiff_to_picture_and_back);
    RUN(test_bent_marks_of_a_picture_end_in_a_status);
    RUN(test_a_kill_anywhere_is_resumed_to_the_same_picture);
    help_close();
    return TEST_END();
}
