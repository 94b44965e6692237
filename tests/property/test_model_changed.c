/* Weights are views of the model's file until they are packed. A file that is cut or written to
 * between opening a job and that moment is damage, not another network's answer. One that takes
 * the model's name is no harm: the job keeps the file that it opened. */
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#include <fcntl.h>
#include <sys/stat.h>

#define SIDE 64

static void make_model(const char *path)
{
    static const int64_t open2[2] = {0, 0}, k3[2] = {3, 3};
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 16, k3, 1, 1, NULL);
    a = made_conv(&m, a, 16, 16, k3, 1, 1, NULL);
    made_conv(&m, a, 16, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* With exponents that no kernel packs: they are read where they lie, band after band. */
static void make_unpacked_model(const char *path)
{
    static const int64_t open2[2] = {0, 0}, k3[2] = {3, 3}, each[4] = {1, 16, 1, 1};
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 16, k3, 1, 1, NULL);
    a = made_node(&m, "Pow", a, made_weights(&m, 4, each), NULL, NULL, NULL, NULL);
    made_conv(&m, a, 16, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

static void make_input(void)
{
    static float px[SIDE * SIDE];
    const tgi_desc d = {TG_DTYPE_F32, 4, {1, 1, SIDE, SIDE}};
    tgi_err err = {0};
    for (int i = 0; i < SIDE * SIDE; i++)
        px[i] = (float)(i * 37 % 101) / 101;
    const tgi_desc page = {TG_DTYPE_F32, 2, {SIDE, SIDE}};
    CHECK_OK(tgi_npy_save(in_folder("in.npy"), &d, px, &err), err);
    CHECK_OK(tgi_npy_save(in_folder("page.npy"), &page, px, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("page.npy"), "axes", "YX", "output",
               in_folder("page.tif"));
}

static uint64_t sum_of(const char *path)
{
    uint64_t h = 1469598103934665603u;
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    for (int c; f && (c = fgetc(f)) != EOF;)
        h = (h ^ (uint64_t)c) * 1099511628211u;
    if (f)
        fclose(f);
    return h;
}

/* ---- What somebody does to it ------------------------------------------------------------ */

static void nothing(const char *path)
{
    (void)path;
}

/* Less than a page, so that what is missing reads as zeros and nobody gets a signal. */
static void cut(const char *path)
{
    struct stat st;
    CHECK_EQ(stat(path, &st), 0);
    CHECK(st.st_size % 4096 > 32);
    CHECK_EQ(truncate(path, st.st_size - 32), 0);
}

/* Weights of the layer in the middle. */
static void write_into(const char *path)
{
    static const float zeros[64] = {0};
    struct stat st;
    const int fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    CHECK_EQ(pwrite(fd, zeros, sizeof zeros, st.st_size / 2), (ssize_t)sizeof zeros);
    close(fd);
}

static void replace(const char *path)
{
    static const int64_t open2[2] = {0, 0}, k3[2] = {3, 3};
    made m = made_begin(2, 1, open2);
    made_conv(&m, "x", 1, 1, k3, 1, 1, "y");
    made_end(&m, in_folder("other.onnx"));
    CHECK_EQ(rename(in_folder("other.onnx"), path), 0);
}

static void touch(const char *path)
{
    CHECK_EQ(utimensat(AT_FDCWD, path, NULL, 0), 0);
}

static void removed(const char *path)
{
    CHECK_EQ(unlink(path), 0);
}

static void (*later)(const char *path); /* is done when the bands have begun */

static void on_progress(void *user, const tg_progress *p)
{
    (void)user;
    if (!later || strcmp(p->phase, "run") != 0)
        return;
    later(in_folder("m.onnx"));
    later = NULL;
}

/* The model is older than anything that is done to it, however coarse the file system's clock.
 */
static void age(const char *path)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    CHECK_EQ(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static tg_status run_after(void (*make)(const char *path), void (*done)(const char *path),
                           const char *in, const char *out)
{
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_plan_info plan = {.size = sizeof plan};
    tg_run_result res = {.size = sizeof res};
    const tg_ctx_opts watch = {.size = sizeof watch, .progress = on_progress};
    const char *const set[] = {"model",  in_folder("m.onnx"),
                               "input",  in_folder(in),
                               "output", in_folder(out),
                               "exact",  "true",
                               "tile",   "32"};
    tg_ctx_close(&ctx); /* a new one, which reports the first band whenever the last job was */
    CHECK_EQ(tg_ctx_open(&watch, &ctx), TG_OK);
    make(in_folder("m.onnx"));
    age(in_folder("m.onnx"));
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i += 2)
        CHECK_EQ(tg_opts_set(o, set[i], set[i + 1]), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, &plan), TG_OK);
    done(in_folder("m.onnx"));
    const tg_status st = tg_job_run(job, &res);
    tg_job_close(&job);
    tg_opts_free(&o);
    return st;
}

static void a_model_that_is_changed_while_it_is_read_is_damage(void)
{
    static void (*const harm[])(const char *) = {cut, write_into};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(run_after(make_model, harm[i], "in.npy", "bad.npy"), TG_E_FORMAT);
        CHECK(strstr(tg_ctx_detail(ctx), "changed while it was read") != NULL);
        CHECK(!exists(in_folder("bad.npy")));
    }
}

static void a_model_that_bands_read_is_looked_at_until_their_end(void)
{
    CHECK_EQ(run_after(make_unpacked_model, nothing, "page.tif", "good.tif"), TG_OK);
    later = write_into;
    CHECK_EQ(run_after(make_unpacked_model, nothing, "page.tif", "bad.tif"), TG_E_FORMAT);
    CHECK(!later && !exists(in_folder("bad.tif")));
    later = touch;
    CHECK_EQ(run_after(make_unpacked_model, nothing, "page.tif", "touched.tif"), TG_OK);
    CHECK(!later);
    later = write_into; /* what is packed by then may change */
    CHECK_EQ(run_after(make_model, nothing, "page.tif", "packed.tif"), TG_OK);
    CHECK(!later);
}

static void a_model_of_the_same_name_is_no_harm(void)
{
    static void (*const harmless[])(const char *) = {replace, removed};
    CHECK_EQ(run_after(make_model, nothing, "in.npy", "good.npy"), TG_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(run_after(make_model, harmless[i], "in.npy", "same.npy"), TG_OK);
        CHECK_EQ(sum_of(in_folder("same.npy")), sum_of(in_folder("good.npy")));
        unlink(in_folder("same.npy"));
    }
}

int main(void)
{
    help_open();
    make_input();
    RUN(a_model_that_is_changed_while_it_is_read_is_damage);
    RUN(a_model_that_bands_read_is_looked_at_until_their_end);
    RUN(a_model_of_the_same_name_is_no_harm);
    help_close();
    return TEST_END();
}
