/* What has the name of a file by now is not what a job opened: the job goes on with what it
 * has, and its receipt tells of that. */
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#include <sys/stat.h>

#define SIDE 96

static void make_model(const char *path, int layers)
{
    static const int64_t open2[2] = {0, 0}, k3[2] = {3, 3};
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 16, k3, 1, 1, NULL);
    for (int i = 1; i < layers; i++)
        a = made_conv(&m, a, 16, 16, k3, 1, 1, NULL);
    made_conv(&m, a, 16, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* One page of uint8, `side` pixels high and wide or, `many`, that many times as wide. */
static void make_image(const char *to, int side, int many)
{
    const tgi_desc page = {TG_DTYPE_U8, 2, {side, (int64_t)side * many}};
    uint8_t *px = malloc((size_t)side * (size_t)side * (size_t)many);
    tgi_err err = {0};
    CHECK(px != NULL);
    for (int i = 0; px && i < side * side * many; i++)
        px[i] = (uint8_t)(i * 37 % 251);
    CHECK_OK(tgi_npy_save(in_folder("page.npy"), &page, px, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("page.npy"), "axes", "YX", "output", to, "yes",
               "true");
    free(px);
}

static tg_job *open_job(const char *image, const char *out, const char *ram)
{
    tg_opts *o = NULL;
    tg_job *job = NULL;
    const char *const set[] = {"model", in_folder("m.onnx"), "input", image, "output", out,
                               "isa",   "portable",          "ram",   ram};
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    for (size_t i = 0; i < (ram ? 10 : 8); i += 2)
        CHECK_EQ(tg_opts_set(o, set[i], set[i + 1]), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    tg_opts_free(&o);
    return job;
}

/* ---- Reopened to hold less --------------------------------------------------------------- */

static tg_status plan_within(int kib, int replaced)
{
    char ram[32];
    tg_plan_info plan = {.size = sizeof plan};
    snprintf(ram, sizeof ram, "%dKiB", kib);
    tg_job *job = open_job(in_folder("wide.png"), in_folder("none.tif"), ram);
    if (replaced)
        CHECK_EQ(rename(in_folder("other.png"), in_folder("wide.png")), 0);
    const tg_status st = job ? tg_job_plan(job, &plan) : TG_E_INTERNAL;
    if (replaced && st == TG_OK)
        CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    tg_job_close(&job);
    return st;
}

/* A picture's reader keeps rows as long as there is room. Where there is none, it is opened
 * again, by its name. */
static void a_source_opened_again_is_the_same_file(void)
{
    int least = 1024, enough = 1 << 20;
    make_model(in_folder("m.onnx"), 1);
    make_image(in_folder("wide.png"), 64, 200);
    while (enough - least > 1) {
        const int mid = least + (enough - least) / 2;
        if (plan_within(mid, 0) == TG_OK)
            enough = mid;
        else
            least = mid;
    }
    make_image(in_folder("other.png"), 48, 100);
    CHECK_EQ(plan_within(enough, 1), TG_E_BUDGET);
}

/* ---- What the receipt names -------------------------------------------------------------- */

static int receipt_has(const char *out, const char *text)
{
    char all[8192] = "", path[200];
    snprintf(path, sizeof path, "%s.tegula.json", out);
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    const size_t n = f ? fread(all, 1, sizeof all - 1, f) : 0;
    CHECK(n > 0);
    if (f)
        fclose(f);
    return strstr(all, text) != NULL;
}

static void a_receipt_names_the_files_that_were_opened(void)
{
    char model[64], image[64];
    struct stat st;
    make_model(in_folder("m.onnx"), 1);
    make_model(in_folder("new.onnx"), 2);
    make_image(in_folder("in.tif"), SIDE, 1);
    make_image(in_folder("new.tif"), SIDE, 2);
    CHECK_EQ(stat(in_folder("m.onnx"), &st), 0);
    snprintf(model, sizeof model, "\"model\":\"%lld bytes", (long long)st.st_size);
    CHECK_EQ(stat(in_folder("in.tif"), &st), 0);
    snprintf(image, sizeof image, "\"input\":\"%lld bytes", (long long)st.st_size);
    tg_job *job = open_job(in_folder("in.tif"), in_folder("out.tif"), NULL);
    CHECK_EQ(rename(in_folder("new.onnx"), in_folder("m.onnx")), 0);
    CHECK_EQ(rename(in_folder("new.tif"), in_folder("in.tif")), 0);
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    tg_job_close(&job);
    CHECK(receipt_has(in_folder("out.tif"), model));
    CHECK(receipt_has(in_folder("out.tif"), image));
    CHECK(receipt_has(in_folder("out.tif"), "\"input_changed\":true"));
}

/* ---- One job, two verbs ------------------------------------------------------------------ */

static void a_run_after_a_verify_tells_its_own_figure(void)
{
    tg_verify_result v = {.size = sizeof v};
    make_model(in_folder("m.onnx"), 1);
    make_image(in_folder("in.tif"), SIDE, 1);
    tg_job *job = open_job(in_folder("in.tif"), in_folder("none.tif"), "2MiB");
    CHECK_EQ(tg_job_verify(job, &v), TG_E_BUDGET);
    CHECK(strstr(tg_ctx_detail(ctx), "a larger --ram") != NULL);
    CHECK_EQ(tg_job_run(job, NULL), TG_E_BUDGET);
    CHECK(strstr(tg_ctx_detail(ctx), "give --ram ") != NULL);
    tg_job_close(&job);
}

static void a_budget_that_holds_nothing_is_told_what_would_do(void)
{
    tg_plan_info plan = {.size = sizeof plan};
    static const char *const ram[] = {"1KiB", "64KiB", "2MiB"};
    make_model(in_folder("m.onnx"), 1);
    make_image(in_folder("in.tif"), SIDE, 1);
    for (int i = 0; i < 3; i++) {
        tg_job *job = open_job(in_folder("in.tif"), in_folder("none.tif"), ram[i]);
        CHECK_EQ(job ? tg_job_plan(job, &plan) : TG_E_INTERNAL, TG_E_BUDGET);
        CHECK(strstr(tg_ctx_detail(ctx), "give --ram ") != NULL);
        tg_job_close(&job);
        CHECK_COPY(TG_E_BUDGET, "input", in_folder("in.tif"), "output", in_folder("none.tif"),
                   "ram", ram[i]);
        CHECK(strstr(tg_ctx_detail(ctx), "the copy needs ") != NULL);
    }
}

int main(void)
{
    help_open();
    RUN(a_source_opened_again_is_the_same_file);
    RUN(a_receipt_names_the_files_that_were_opened);
    RUN(a_run_after_a_verify_tells_its_own_figure);
    RUN(a_budget_that_holds_nothing_is_told_what_would_do);
    help_close();
    return TEST_END();
}
