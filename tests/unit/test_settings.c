/* test_settings.c - settings of a job: where they are from, and the job file that repeats it.
 */
#include "engine/base/json.h"
#include "job_help.h"
#include "tegula_preset.h"

#define MODEL TG_SOURCE_DIR "/models/tegula_denoise.onnx"

enum { HEIGHT = 150, WIDTH = 210 };

static void make_files(void)
{
    static uint16_t v[HEIGHT][WIDTH];
    const tgi_desc d = {TG_DTYPE_U16, 2, {HEIGHT, WIDTH}};
    uint64_t seed = 3;
    tgi_err err = {0};
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            v[y][x] = (uint16_t)tg_rand_in(&seed, 0, 4000);
    CHECK_OK(tgi_npy_save(in_folder("image.npy"), &d, v, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("image.npy"), "output", in_folder("image.tif"), "axes",
               "YX", "dtype", "same");
    FILE *f = fopen(in_folder("job.json"), "w");
    CHECK(f && fputs("{\"exact\":true,\"pad\":\"edge\",\"ram\":\"3GiB\"}", f) >= 0);
    if (f)
        fclose(f);
}

static const tg_setting *setting(tg_job *job, const char *name)
{
    static const tg_setting none = {"", "", "", 0};
    const tg_setting *list = NULL;
    size_t n = 0;
    const tg_status st = tg_job_settings(job, &list, &n);
    if (st != TG_OK)
        fprintf(stderr, "%s\n", tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return &none;
}

#define CHECK_SETTING(job, name, want_value, want_origin, want_default)                        \
    do {                                                                                       \
        const tg_setting *s_ = setting(job, name);                                             \
        CHECK_STR(s_->value, want_value);                                                      \
        CHECK_STR(s_->origin, want_origin);                                                    \
        CHECK_EQ(s_->is_default, want_default);                                                \
    } while (0)

static tg_opts *basic(const char *output)
{
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    tg_opts_set_by(o, "command line");
    CHECK_EQ(tg_opts_set(o, "model", MODEL), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("image.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", in_folder(output)), TG_OK);
    return o;
}

static tg_job *open_job(const tg_opts *o)
{
    tg_job *job = NULL;
    const tg_status st = tg_job_open(ctx, o, &job);
    if (st != TG_OK)
        fprintf(stderr, "%s\n", tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
    if (!job)
        exit(1); /* what follows asks it */
    return job;
}

static void test_each_setting_says_where_it_is_from(void)
{
    tg_opts *o = basic("out.tif");
    CHECK_EQ(tg_opts_set(o, "preset", "archive"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "threads", "2"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "level", "0"), TG_OK);
    CHECK_EQ(tg_opts_load(o, in_folder("job.json")), TG_OK);
    tg_job *job = open_job(o);
    CHECK_SETTING(job, "threads", "2", "command line", 0);
    CHECK_SETTING(job, "level", "0", "command line", 1); /* said, and the default */
    CHECK_SETTING(job, "pad", "edge", in_folder("job.json"), 0);
    CHECK_SETTING(job, "ram", "3GiB", in_folder("job.json"), 0);
    CHECK_SETTING(job, "compress", "zstd:9", "preset archive", 0);
    CHECK_SETTING(job, "normalize", "percentile:1,99.8", "descriptor", 0);
    CHECK_SETTING(job, "dtype", "uint16", "descriptor", 0);
    CHECK_SETTING(job, "tile", "150x210", "worked out", 0);
    CHECK_SETTING(job, "io", "auto", "default", 1);
    CHECK_STR(setting(job, "isa")->origin, "worked out");
    CHECK_STR(setting(job, "model")->name, ""); /* what the job is about */
    tg_job_close(&job);
    tg_opts_free(&o);
}

static void test_the_plan_as_json_has_the_same_settings(void)
{
    tg_opts *o = basic("out.tif");
    tgi_json *doc = NULL;
    tgi_err err = {0};
    char *text = NULL;
    const tg_setting *list = NULL;
    size_t n = 0, i = 0;
    tg_job *job = open_job(o);
    CHECK_EQ(tg_job_plan_json(job, 0, &text), TG_OK);
    CHECK_OK(tgi_json_parse(text, strlen(text), "plan", &doc, &err), err);
    CHECK_EQ(tg_job_settings(job, &list, &n), TG_OK);
    for (const tgi_json *v = tgi_json_first(tgi_json_get(doc, "settings")); v;
         v = tgi_json_next(v), i++) {
        const char *name = "", *value = "", *origin = "";
        CHECK(tgi_json_str(tgi_json_get(v, "name"), &name) &&
              tgi_json_str(tgi_json_get(v, "value"), &value) &&
              tgi_json_str(tgi_json_get(v, "origin"), &origin));
        CHECK(i < n && strcmp(name, list[i].name) == 0 && strcmp(value, list[i].value) == 0 &&
              strcmp(origin, list[i].origin) == 0);
    }
    CHECK(n > 8 && i == n);
    tgi_json_free(&doc);
    tg_text_free(text);
    tg_job_close(&job);
    tg_opts_free(&o);
}

/* ---- The saved job ----------------------------------------------------------------------- */

static void save_job(tg_job *job, const char *path)
{
    char *json = NULL;
    FILE *f = fopen(path, "w");
    CHECK_EQ(tg_job_save_json(job, &json), TG_OK);
    CHECK(f && fputs(json, f) >= 0);
    if (f)
        fclose(f);
    tg_text_free(json);
}

static size_t read_file(const char *path, char *buf, size_t cap)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(buf, 1, cap, f) : 0;
    CHECK(f && n > 0 && n < cap);
    if (f)
        fclose(f);
    return n;
}

/* The cut, and the settings but for those that a saved job spells out: "10%", "same". */
static void plan_text(tg_job *job, char *buf, size_t cap)
{
    tg_plan_info p = {.size = sizeof p};
    const tg_setting *list = NULL;
    size_t n = 0, at;
    CHECK_EQ(tg_job_plan(job, &p), TG_OK);
    CHECK_EQ(tg_job_settings(job, &list, &n), TG_OK);
    at = (size_t)snprintf(buf, cap, "arena %llu, %lld strips, %lld bands, %lldx%lld",
                          (unsigned long long)p.arena_bytes, (long long)p.strips,
                          (long long)p.bands, (long long)p.tile[1], (long long)p.tile[2]);
    for (size_t i = 0; i < n && at < cap; i++)
        if (strcmp(list[i].name, "ram") != 0 && strcmp(list[i].name, "dtype") != 0)
            at += (size_t)snprintf(buf + at, cap - at, ", %s=%s", list[i].name, list[i].value);
}

static void run_to(const tg_opts *from, const char *output, char *plan, size_t cap)
{
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", in_folder(output)), TG_OK);
    CHECK_EQ(tg_opts_load(o, in_folder("saved.json")), TG_OK);
    tg_job *job = open_job(from ? from : o);
    plan_text(job, plan, cap);
    if (from)
        save_job(job, in_folder("saved.json"));
    CHECK_EQ(tg_job_run(job, NULL), TG_OK);
    tg_job_close(&job);
    tg_opts_free(&o);
}

static void check_saved_job_repeats(const char *const (*set)[2], size_t n)
{
    static char a[1 << 20], b[1 << 20];
    char plan[2][1024];
    tg_opts *o = basic("first.tif");
    FILE *f = fopen(in_folder("saved.json"), "w"); /* run_to reads it in both cases */
    CHECK(f && fputs("{}", f) >= 0);
    if (f)
        fclose(f);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(tg_opts_set(o, set[i][0], set[i][1]), TG_OK);
    run_to(o, "first.tif", plan[0], sizeof plan[0]);
    run_to(NULL, "second.tif", plan[1], sizeof plan[1]);
    CHECK_STR(plan[1], plan[0]);
    const size_t bytes = read_file(in_folder("first.tif"), a, sizeof a);
    CHECK_EQ(read_file(in_folder("second.tif"), b, sizeof b), bytes);
    CHECK(memcmp(a, b, bytes) == 0);
    tg_opts_free(&o);
    unlink(in_folder("first.tif"));
    unlink(in_folder("second.tif"));
}

static void test_a_saved_job_gives_the_same_plan_and_the_same_bytes(void)
{
    static const char *const none[][2] = {{"level", "0"}};
    static const char *const tight[][2] = {
        {"ram", TG_SANITIZED ? "3GiB" : "12MiB"}, {"threads", "1"}, {"exact", "true"}};
    static const char *const share[][2] = {
        {"ram", "10%"}, {"tile", "64x96"}, {"dtype", "same"}, {"compress", "deflate"}};
    check_saved_job_repeats(none, 1);
    check_saved_job_repeats(tight, 3);
    check_saved_job_repeats(share, 4);
}

static void test_a_saved_job_leaves_nothing_to_the_machine(void)
{
    tg_opts *o = basic("out.tif"), *back = NULL;
    tg_job *job = open_job(o);
    tg_plan_info plan = {.size = sizeof plan};
    char budget[32];
    size_t n;
    const tg_option *t = tg_option_table(&n);
    save_job(job, in_folder("saved.json"));
    CHECK_EQ(tg_opts_new(ctx, &back), TG_OK);
    CHECK_EQ(tg_opts_load(back, in_folder("saved.json")), TG_OK);
    for (size_t i = 0; i < n; i++)
        if (*setting(job, t[i].name)->name)
            CHECK_STR(tg_opts_origin(back, t[i].name), in_folder("saved.json"));
    CHECK_EQ(tg_job_plan(job, &plan), TG_OK);
    snprintf(budget, sizeof budget, "%lluKiB", (unsigned long long)plan.budget_bytes / 1024);
    CHECK_STR(tg_opts_get(back, "ram"), budget);
    CHECK(strcmp(tg_opts_get(back, "threads"), "auto") != 0);
    CHECK(strcmp(tg_opts_get(back, "isa"), "auto") != 0);
    CHECK_STR(tg_opts_get(back, "tile"), "auto"); /* the budget chooses it again */
    tg_opts_free(&back);
    tg_job_close(&job);
    tg_opts_free(&o);
}

/* ---- What is shipped --------------------------------------------------------------------- */

static void test_every_shipped_preset_loads_says_why_and_plans(void)
{
    tg_preset_info *list = NULL;
    size_t n = 0;
    CHECK_EQ(tg_preset_list(ctx, &list, &n), TG_OK);
    CHECK(n >= 5);
    for (size_t i = 0; i < n; i++) {
        tg_opts *o = basic("out.tif");
        tg_job *job = NULL;
        CHECK_EQ(list[i].from, TG_PRESET_BUILT_IN);
        CHECK_STR(list[i].problem, "");
        CHECK(list[i].description[0] && list[i].why[0]);
        tg_status st = tg_opts_set(o, "preset", list[i].name);
        if (st == TG_OK)
            st = tg_job_open(ctx, o, &job);
        if (st == TG_OK)
            st = tg_job_plan(job, NULL);
        if (st == TG_E_DEVICE && strcmp(list[i].name, "fast") == 0)
            fprintf(stderr, "note: fast needs AVX512_BF16\n");
        else if (st != TG_OK)
            fprintf(stderr, "%s: %s\n", list[i].name, tg_ctx_detail(ctx));
        CHECK(st == TG_OK || (st == TG_E_DEVICE && strcmp(list[i].name, "fast") == 0));
        tg_job_close(&job);
        tg_opts_free(&o);
    }
    tg_preset_list_free(list);
}

int main(void)
{
    CHECK_EQ(setenv("XDG_CONFIG_HOME", "/nowhere", 1), 0);
    CHECK_EQ(setenv("TEGULA_CONFIGS", TG_SOURCE_DIR "/configs", 1), 0);
    help_open();
    make_files();
    RUN(test_each_setting_says_where_it_is_from);
    RUN(test_the_plan_as_json_has_the_same_settings);
    RUN(test_a_saved_job_gives_the_same_plan_and_the_same_bytes);
    RUN(test_a_saved_job_leaves_nothing_to_the_machine);
    RUN(test_every_shipped_preset_loads_says_why_and_plans);
    help_close();
    return TEST_END();
}
