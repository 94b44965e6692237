/* PNG and JPEG as outputs: the pixels arrive, what cannot be one is refused by name, and a stop
 * anywhere costs nothing but time. */
#include "io/file_ops.h"
#include "job_help.h"

#include <signal.h>
#include <sys/wait.h>

enum { HEIGHT = 300, WIDTH = 270 };

static void save(const char *name, tg_dtype type, int samples, int planes)
{
    const size_t n = (size_t)planes * HEIGHT * WIDTH * (size_t)samples,
                 size = tgi_dtype_size(type);
    tg_desc d = {type, 0, {0}};
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
    const tg_open_opts named = {.threads = 1, .axes = axes_of_b};
    tg_source *s = open_image(a), *t = NULL;
    CHECK_OK(tgi_source_open(b, &named, &t, &err), err);
    double sum = 1e9;
    if (s && t) {
        const tg_image_info *i = s->ops->info(s), *k = t->ops->info(t);
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
    RUN(test_a_kill_anywhere_is_resumed_to_the_same_picture);
    help_close();
    return TEST_END();
}
