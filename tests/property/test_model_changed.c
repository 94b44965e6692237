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

static void make_input(void)
{
    static float px[SIDE * SIDE];
    const tg_desc d = {TG_DTYPE_F32, 4, {1, 1, SIDE, SIDE}};
    tgi_err err = {0};
    for (int i = 0; i < SIDE * SIDE; i++)
        px[i] = (float)(i * 37 % 101) / 101;
    CHECK_OK(tgi_npy_save(in_folder("in.npy"), &d, px, &err), err);
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

static void removed(const char *path)
{
    CHECK_EQ(unlink(path), 0);
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static tg_status run_after(void (*done)(const char *path), const char *out)
{
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_plan_info plan = {.size = sizeof plan};
    tg_run_result res = {.size = sizeof res};
    const char *const set[] = {"model",  in_folder("m.onnx"), "input", in_folder("in.npy"),
                               "output", in_folder(out),      "exact", "true"};
    make_model(in_folder("m.onnx"));
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
        CHECK_EQ(run_after(harm[i], "bad.npy"), TG_E_FORMAT);
        CHECK(strstr(tg_ctx_detail(ctx), "changed while it was read") != NULL);
        CHECK(!exists(in_folder("bad.npy")));
    }
}

static void a_model_of_the_same_name_is_no_harm(void)
{
    static void (*const harmless[])(const char *) = {replace, removed};
    CHECK_EQ(run_after(nothing, "good.npy"), TG_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(run_after(harmless[i], "same.npy"), TG_OK);
        CHECK_EQ(sum_of(in_folder("same.npy")), sum_of(in_folder("good.npy")));
        unlink(in_folder("same.npy"));
    }
}

int main(void)
{
    help_open();
    make_input();
    RUN(a_model_that_is_changed_while_it_is_read_is_damage);
    RUN(a_model_of_the_same_name_is_no_harm);
    help_close();
    return TEST_END();
}
