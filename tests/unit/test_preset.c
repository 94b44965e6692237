/* test_preset.c - presets: who wins, files that are none, folders, saving. */
#include "engine/base/ctx.h"
#include "engine/settings/opts.h"
#include "engine/settings/preset.h"
#include "io/file_ops.h"
#include "job_help.h"

#include <errno.h>
#include <sys/stat.h>

static tgi_err err;
static char config[512];   /* $XDG_CONFIG_HOME */
static char last_log[768]; /* of the context `listening` */
static tg_ctx *listening;

static void on_log(void *user, tg_log_level level, const char *line)
{
    (void)user, (void)level;
    snprintf(last_log, sizeof last_log, "%s", line);
}

static const char *write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
    return path;
}

/* A preset of the user, of these settings. */
static const char *user_preset(const char *name, const char *settings)
{
    static char path[700];
    char text[600];
    snprintf(path, sizeof path, "%s/tegula/presets/%s.json", config, name);
    snprintf(text, sizeof text, "{\"schema\":1,\"description\":\"d\",\"settings\":%s}",
             settings);
    CHECK_OK(tgi_preset_user_path(name, path, sizeof path, &err), err);
    return write_file(path, text);
}

static tg_opts *new_opts(void)
{
    tg_opts *o = NULL;
    last_log[0] = 0;
    CHECK_EQ(tg_opts_new(listening, &o), TG_OK);
    return o;
}

#define CHECK_SET(o, name, value)                                                              \
    do {                                                                                       \
        const tg_status got_ = tg_opts_set(o, name, value);                                    \
        if (got_ != TG_OK)                                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tg_ctx_detail(listening));      \
        CHECK_EQ(got_, TG_OK);                                                                 \
    } while (0)

/* ---- Who wins ---------------------------------------------------------------------------- */

enum { PRESET, JOB, SET };

static void say(tg_opts *o, int side)
{
    if (side == PRESET)
        CHECK_SET(o, "preset", "side");
    else if (side == JOB)
        CHECK_EQ(tg_opts_load(o, in_folder("job.json")), TG_OK);
    else
        CHECK_SET(o, "compress", "lzw");
}

static void test_of_each_pair_the_higher_wins_in_any_order(void)
{
    static const char *const value[] = {"none", "deflate", "zstd", "lzw"}; /* default first */
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const char *origin[] = {"default", "preset side", in_folder("job.json"), "program"};
    user_preset("side", "{\"compress\":\"deflate\"}");
    write_file(in_folder("job.json"), "{\"compress\":\"zstd\"}");
    for (int sides = 0; sides < 8; sides++)
        for (int k = 0; k < 6; k++) {
            tg_opts *o = new_opts();
            int highest = 0;
            for (int i = 0; i < 3; i++) {
                const int side = order[k][i];
                if (!(sides >> side & 1))
                    continue;
                say(o, side);
                highest = side + 1 > highest ? side + 1 : highest;
            }
            CHECK_STR(tg_opts_get(o, "compress"), value[highest]);
            CHECK_STR(tg_opts_origin(o, "compress"), origin[highest]);
            tg_opts_free(&o);
        }
}

static void test_one_preset_counts_that_of_the_command_line_before_that_of_the_job(void)
{
    user_preset("first", "{\"ram\":\"1GiB\",\"threads\":1}");
    user_preset("second", "{\"ram\":\"2GiB\",\"exact\":true}");
    write_file(in_folder("named.json"), "{\"threads\":4,\"preset\":\"first\",\"level\":2}");
    tg_opts *o = new_opts();
    CHECK_EQ(tg_opts_load(o, in_folder("named.json")), TG_OK);
    CHECK_STR(tg_opts_get(o, "ram"), "1GiB"); /* of its preset */
    CHECK_STR(tg_opts_get(o, "threads"), "4");
    CHECK_STR(tg_opts_origin(o, "preset"), in_folder("named.json"));
    CHECK_STR(last_log, ""); /* it knows its own preset: nothing to tell */
    CHECK_SET(o, "preset", "second");
    CHECK_STR(tg_opts_get(o, "ram"), "2GiB");
    CHECK_STR(tg_opts_get(o, "exact"), "true");
    CHECK_STR(tg_opts_origin(o, "exact"), "preset second");
    CHECK_STR(tg_opts_get(o, "threads"), "4");
    CHECK_SET(o, "preset", "first");
    CHECK(!tg_opts_get(o, "exact")); /* nothing is left of the second */
    tg_opts_free(&o);

    o = new_opts();
    CHECK_SET(o, "preset", "second");
    CHECK_EQ(tg_opts_load(o, in_folder("named.json")), TG_OK);
    CHECK_STR(tg_opts_get(o, "ram"), "2GiB");
    CHECK_STR(tg_opts_get(o, "preset"), "second");
    tg_opts_free(&o);
}

static void test_of_two_job_files_the_first_wins_and_of_two_sets_the_last(void)
{
    tg_opts *o = new_opts();
    write_file(in_folder("one.json"), "{\"ram\":\"1GiB\"}");
    write_file(in_folder("two.json"), "{\"ram\":\"2GiB\",\"level\":2}");
    CHECK_EQ(tg_opts_load(o, in_folder("one.json")), TG_OK);
    CHECK_EQ(tg_opts_load(o, in_folder("two.json")), TG_OK);
    CHECK_STR(tg_opts_get(o, "ram"), "1GiB");
    CHECK_STR(tg_opts_origin(o, "ram"), in_folder("one.json"));
    CHECK_STR(tg_opts_origin(o, "level"), in_folder("two.json"));
    CHECK_SET(o, "level", "1");
    CHECK_SET(o, "level", "3");
    CHECK_STR(tg_opts_get(o, "level"), "3");
    CHECK_STR(tg_opts_origin(o, "level"), "program");
    tg_opts_free(&o);
}

static void test_a_preset_that_loses_to_the_job_file_is_told(void)
{
    user_preset("side", "{\"ram\":\"1GiB\",\"threads\":2,\"level\":1}");
    write_file(in_folder("full.json"), "{\"ram\":\"2GiB\",\"threads\":2}");
    tg_opts *o = new_opts();
    CHECK_SET(o, "preset", "side");
    CHECK_EQ(tg_opts_load(o, in_folder("full.json")), TG_OK);
    CHECK(strstr(last_log, "full.json wins over preset side in ram") != NULL);
    CHECK(!strstr(last_log, "threads")); /* they agree */
    tg_opts_free(&o);
    o = new_opts(); /* the other way round */
    CHECK_EQ(tg_opts_load(o, in_folder("full.json")), TG_OK);
    CHECK_SET(o, "preset", "side");
    CHECK(strstr(last_log, "full.json wins over preset side in ram") != NULL);
    CHECK_STR(tg_opts_get(o, "level"), "1");
    tg_opts_free(&o);
}

static void test_a_copy_knows_where_its_values_are_from(void)
{
    tg_opts *a = new_opts(), *b = NULL;
    user_preset("side", "{\"ram\":\"1GiB\"}");
    CHECK_SET(a, "preset", "side");
    tg_opts_set_by(a, "command line");
    CHECK_SET(a, "threads", "2");
    CHECK_OK(tgi_opts_new(&b, &err), err);
    CHECK_OK(tgi_opts_copy(b, a, &err), err);
    CHECK_STR(tg_opts_origin(b, "ram"), "preset side");
    CHECK_STR(tg_opts_origin(b, "threads"), "command line");
    CHECK_STR(tg_opts_origin(b, "tile"), "default");
    CHECK(!tg_opts_origin(b, "tiel"));
    tg_opts_free(&a);
    tg_opts_free(&b);
}

/* ---- Files that are none ----------------------------------------------------------------- */

#define HEAD "{\"schema\":1,\"description\":\"d\","

static void test_files_that_are_no_presets_are_refused_and_say_why(void)
{
    static const struct {
        const char *text;
        tg_status st;
        const char *says;
    } c[] = {
        {"", TG_E_FORMAT, "x.json"},
        {"[]", TG_E_FORMAT, "must be an object"},
        {"{\"description\":\"d\",\"settings\":{}}", TG_E_FORMAT, "\"schema\" is missing"},
        {"{\"schema\":2,\"description\":\"d\",\"settings\":{}}", TG_E_FORMAT, "outside 1 to 1"},
        {"{\"schema\":1,\"settings\":{\"ram\":\"1GiB\"}}", TG_E_FORMAT, "\"description\""},
        {HEAD "\"settings\":{}}", TG_E_FORMAT, "it says nothing"},
        {HEAD "\"settings\":[]}", TG_E_FORMAT, "must be an object"},
        {HEAD "\"setings\":{}}", TG_E_FORMAT, "nearest is \"settings\""},
        {HEAD "\"settings\":{\"rma\":\"1GiB\"}}", TG_E_ARG, "nearest is \"ram\""},
        {HEAD "\"settings\":{\"ram\":1}}", TG_E_ARG, "\"ram\" is a string"},
        {HEAD "\"settings\":{\"ram\":\"1\"}}", TG_E_ARG, "no unit"},
        {HEAD "\"settings\":{\"exact\":\"maybe\"}}", TG_E_ARG, "true or false"},
        {HEAD "\"settings\":{\"threads\":0}}", TG_E_ARG, "1 to 1024"},
        {HEAD "\"settings\":{\"tile\":\"8\",\"chunk-size\":\"8\"}}", TG_E_FORMAT, "twice"},
        {HEAD "\"settings\":{\"model\":\"m.onnx\"}}", TG_E_ARG, "\"model\" is no setting"},
        {HEAD "\"settings\":{\"output\":\"o.tif\"}}", TG_E_ARG, "names a file"},
        {HEAD "\"settings\":{\"input-tensor\":[\"x=a\"]}}", TG_E_ARG, "names a file"},
        {HEAD "\"settings\":{\"roi\":\"0:1,0:1\"}}", TG_E_ARG, "of one image"},
        {HEAD "\"settings\":{\"yes\":true}}", TG_E_ARG, "one command behaves"},
        {HEAD "\"settings\":{\"preset\":\"x\"}}", TG_E_ARG, "one command behaves"},
        {HEAD "\"settings\":{},\"device\":{}}", TG_E_FORMAT, "device: the key \"gib\""},
        {HEAD "\"settings\":{},\"device\":{\"gib\":1e9,\"tile\":64,\"batch\":1,"
              "\"precision\":\"fp16\"}}",
         TG_E_FORMAT, "outside"},
        {HEAD "\"settings\":{},\"device\":{\"gib\":4,\"tile\":64.5,\"batch\":1,"
              "\"precision\":\"fp16\"}}",
         TG_E_FORMAT, "no whole number"},
        {HEAD "\"settings\":{},\"device\":{\"gib\":4,\"tile\":64,\"batch\":1,"
              "\"precision\":\"fp8\"}}",
         TG_E_FORMAT, "fp32, fp16 and bf16"},
        {HEAD "\"settings\":{},\"device\":{\"gib\":4,\"tile\":64,\"batch\":1,"
              "\"precision\":\"float sixteen\"}}",
         TG_E_FORMAT, "longer than 7"},
        {HEAD "\"settings\":{},\"device\":{\"gib\":4,\"tyle\":64}}", TG_E_FORMAT, "\"tile\""},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        tg_opts *o = new_opts();
        const tg_status st =
            tg_opts_set(o, "preset", write_file(in_folder("x.json"), c[i].text));
        const char *detail = tg_ctx_detail(listening);
        if (st != c[i].st || !strstr(detail, c[i].says) || !strstr(detail, "x.json"))
            fprintf(stderr, "%s: %s: %s\n", c[i].text, tg_status_name(st), detail);
        CHECK(st == c[i].st && strstr(detail, c[i].says) && strstr(detail, "x.json"));
        CHECK_STR(tg_opts_origin(o, "preset"), "default"); /* nothing is set */
        tg_opts_free(&o);
    }
}

static tg_status opened(const char *name)
{
    tgi_preset p = {0};
    const tg_status st = tgi_preset_open(name, &p, &err);
    tgi_preset_close(&p);
    return st;
}

static void test_hostile_files_are_refused_at_once(void)
{
    char *big = malloc(10 << 20);
    memset(big, ' ', 10 << 20);
    big[(10 << 20) - 1] = 0;
    write_file(in_folder("big.json"), big);
    CHECK_EQ(opened(in_folder("big.json")), TG_E_FORMAT);
    CHECK(strstr(err.text, "10485759 bytes; a preset has at most 262144") != NULL);
    memset(&err, 0, sizeof err);
    memset(big, '[', 200000);
    big[200000] = 0;
    write_file(in_folder("deep.json"), big);
    CHECK_STATUS(opened(in_folder("deep.json")), TG_E_FORMAT, err);
    int n = sprintf(big, HEAD "\"settings\":{\"ram\":\"");
    memset(big + n, '9', 100000);
    sprintf(big + n + 100000, "GiB\"}}");
    write_file(in_folder("long.json"), big);
    CHECK_STATUS(opened(in_folder("long.json")), TG_E_ARG, err);
    n = sprintf(big, "{\"schema\":1,\"settings\":{\"ram\":\"1GiB\"},\"description\":\"");
    memset(big + n, 'd', 300);
    sprintf(big + n + 300, "\"}");
    write_file(in_folder("wordy.json"), big);
    CHECK_STATUS(opened(in_folder("wordy.json")), TG_E_FORMAT, err);
    free(big);
    CHECK_EQ(mkfifo(in_folder("pipe.json"), 0600), 0); /* would wait for a writer */
    CHECK_STATUS(opened(in_folder("pipe.json")), TG_E_FORMAT, err);
    CHECK_STATUS(opened("/dev/zero"), TG_E_FORMAT, err);
    CHECK_STATUS(opened(folder), TG_E_ARG, err); /* no name of a preset */
    CHECK_STATUS(opened("./"), TG_E_FORMAT, err);
    CHECK_STATUS(opened("/nowhere/x.json"), TG_E_NOT_FOUND, err);
}

static void test_names_that_are_none_are_refused(void)
{
    static const char *const bad[] = {"-x", ".x", "a b", "a\nb", "\xc3\xa9", "a;b", ""};
    char name[100];
    memset(name, 'n', sizeof name);
    name[64] = 0;
    CHECK_STATUS(opened(name), TG_E_ARG, err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(opened(bad[i]), TG_E_ARG, err);
    CHECK_EQ(opened("smal-memory"), TG_E_ARG);
    CHECK(strstr(err.text, "nearest is \"small-memory\"") != NULL);
    memset(&err, 0, sizeof err);
    CHECK_EQ(opened("zzzzzzzz"), TG_E_ARG);
    CHECK(strstr(err.text, "there is no preset \"zzzzzzzz\"; tegula preset list") != NULL);
    memset(&err, 0, sizeof err);
}

/* ---- Folders and saving ------------------------------------------------------------------ */

static const tg_preset_info *in_list(const tg_preset_info *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static void test_what_is_saved_is_listed_loaded_and_taken(void)
{
    tg_preset_info *list = NULL, info;
    tg_opts *o = new_opts(), *back = NULL;
    size_t n = 0, before = 0;
    CHECK_EQ(tg_preset_list(listening, &list, &before), TG_OK);
    tg_preset_list_free(list);
    CHECK_SET(o, "ram", "1.5GiB");
    CHECK_SET(o, "exact", "true");
    CHECK_SET(o, "z", "z(\\d+)\"\\");
    CHECK_SET(o, "about", "mine \xc3\xa9");
    CHECK_EQ(tg_preset_save(listening, "lab-1.b", o, &info), TG_OK);
    CHECK(exists(info.path) && info.from == TG_PRESET_USER);
    CHECK_EQ(tg_preset_save(listening, "lab-1.b", o, NULL), TG_E_EXISTS);
    CHECK_SET(o, "ram", "2GiB");
    CHECK_SET(o, "yes", "true");
    CHECK_EQ(tg_preset_save(listening, "lab-1.b", o, NULL), TG_OK);
    tg_opts_free(&o);

    CHECK_EQ(tg_preset_list(listening, &list, &n), TG_OK);
    CHECK_EQ(n, before + 1);
    const tg_preset_info *i = in_list(list, n, "lab-1.b");
    CHECK(i && !i->problem[0] && i->from == TG_PRESET_USER && !i->hides);
    CHECK_STR(i ? i->description : "", "mine \xc3\xa9");
    tg_preset_list_free(list);
    CHECK_EQ(tg_preset_load(listening, "lab-1.b", &info, &back), TG_OK);
    CHECK_STR(tg_opts_get(back, "ram"), "2GiB");
    CHECK_STR(tg_opts_get(back, "z"), "z(\\d+)\"\\");
    CHECK_STR(tg_opts_origin(back, "threads"), "default");
    tg_opts_free(&back);
    o = new_opts();
    CHECK_SET(o, "preset", "lab-1.b");
    CHECK_STR(tg_opts_get(o, "exact"), "true");
    tg_opts_free(&o);
    CHECK_EQ(unlink(info.path), 0);
}

static void test_the_user_s_preset_counts_and_hides_the_built_in_one(void)
{
    tg_preset_info *list = NULL, info;
    size_t n = 0;
    const char *path = user_preset("exact", "{\"exact\":false}");
    tg_opts *o = new_opts();
    CHECK_SET(o, "preset", "exact");
    CHECK_STR(tg_opts_get(o, "exact"), "false");
    tg_opts_free(&o);
    CHECK_EQ(tg_preset_list(listening, &list, &n), TG_OK);
    const tg_preset_info *i = in_list(list, n, "exact");
    CHECK(i && i->from == TG_PRESET_USER && i->hides);
    tg_preset_list_free(list);
    CHECK_EQ(tg_preset_load(listening, TG_SOURCE_DIR "/configs/presets/exact.json", &info, &o),
             TG_OK);
    CHECK(info.from == TG_PRESET_FILE && strcmp(info.name, "exact") == 0);
    CHECK_STR(tg_opts_get(o, "exact"), "true");
    tg_opts_free(&o);
    write_file(path, "{"); /* a broken one is in the list, with the reason, and never taken */
    CHECK_EQ(tg_preset_list(listening, &list, &n), TG_OK);
    i = in_list(list, n, "exact");
    CHECK(i && i->hides && strstr(i->problem, "exact.json"));
    tg_preset_list_free(list);
    CHECK_EQ(tg_preset_load(listening, "exact", NULL, NULL), TG_E_FORMAT);
    CHECK_EQ(unlink(path), 0);
}

static void test_of_a_job_what_no_preset_may_have_is_left_out_but_named_it_is_refused(void)
{
    tg_preset_info info;
    tg_opts *o = new_opts(), *back = NULL;
    write_file(in_folder("job.json"),
               "{\"model\":\"m.onnx\",\"input-tensor\":[\"x=a.npy\"],\"ram\":\"1GiB\"}");
    CHECK_EQ(tg_opts_load(o, in_folder("job.json")), TG_OK);
    CHECK_EQ(tg_preset_save(listening, "of-job", o, &info), TG_OK);
    CHECK_STR(info.description, "ram=1GiB");
    CHECK_EQ(tg_preset_load(listening, "of-job", NULL, &back), TG_OK);
    CHECK(!tg_opts_get(back, "model"));
    tg_opts_free(&back);
    CHECK_SET(o, "stats", "s.json");
    CHECK_SET(o, "yes", "true");
    CHECK_EQ(tg_preset_save(listening, "of-job", o, NULL), TG_E_ARG);
    CHECK(strstr(tg_ctx_detail(listening), "--stats") != NULL);
    tg_opts_free(&o);
    CHECK_EQ(unlink(info.path), 0);
    o = new_opts();
    CHECK_EQ(tg_preset_save(listening, "of-job", o, NULL), TG_E_ARG); /* nothing to save */
    CHECK_SET(o, "ram", "1GiB");
    CHECK_EQ(tg_preset_save(listening, "../x", o, NULL), TG_E_ARG);
    CHECK_EQ(tg_preset_save(listening, "a.json", o, NULL), TG_E_ARG);
    tg_opts_free(&o);
}

static void test_a_device_part_is_kept_and_told_not_to_be_used(void)
{
    tg_preset_info info;
    write_file(in_folder("gpu.json"),
               HEAD "\"settings\":{},\"why\":\"w\",\"device\":{\"gib\":8,\"tile\":512,"
                    "\"batch\":4,\"precision\":\"fp16\"}}");
    tg_opts *o = new_opts();
    CHECK_SET(o, "preset", in_folder("gpu.json"));
    CHECK(strstr(last_log, "device part (8.00 GiB: tile 512, batch 4, fp16) is not used"));
    CHECK_SET(o, "threads", "2");
    CHECK_EQ(tg_preset_save(listening, "gpu", o, NULL), TG_OK);
    CHECK_EQ(tg_preset_load(listening, "gpu", &info, NULL), TG_OK);
    CHECK(info.device.memory_bytes == 8ull << 30 && info.device.tile == 512);
    CHECK(info.device.batch == 4 && strcmp(info.device.precision, "fp16") == 0);
    CHECK_STR(info.why, "w");
    tg_opts_free(&o);
    CHECK_EQ(unlink(info.path), 0);
}

static int64_t fail_at, calls;

static int hook(tgi_file_op op, const char *path)
{
    (void)op, (void)path;
    return ++calls == fail_at ? ENOSPC : 0;
}

static void test_a_preset_is_saved_whole_or_not_at_all(void)
{
    char path[700], partial[720];
    tg_opts *o = new_opts();
    CHECK_SET(o, "ram", "1GiB");
    CHECK_OK(tgi_preset_user_path("half", path, sizeof path, &err), err);
    snprintf(partial, sizeof partial, "%s.tmp", path);
    tgi_file_set_hook(hook);
    tg_status st = TG_E_IO;
    for (fail_at = 1; st != TG_OK && fail_at < 20; fail_at++) {
        calls = 0;
        st = tg_preset_save(listening, "half", o, NULL);
        CHECK(st == TG_OK || !exists(path));
        CHECK(!exists(partial));
    }
    tgi_file_set_hook(NULL);
    CHECK(fail_at > 4 && exists(path));
    CHECK_EQ(unlink(path), 0);
    tg_opts_free(&o);
}

static void test_a_failed_allocation_is_answered(void)
{
    int done = 0;
    user_preset("side", "{\"ram\":\"1GiB\",\"threads\":2}");
    for (uint64_t k = 1; !done && k < 400; k++) {
        tg_opts *o = NULL;
        tgi_mem_fail_at(k);
        tg_status st = tgi_opts_new(&o, &err);
        if (st == TG_OK)
            st = tgi_opts_set(o, "preset", "side", &err);
        if (st == TG_OK)
            st = tgi_preset_save("saved", o, NULL, &err);
        tgi_mem_fail_at(0);
        CHECK(st == TG_OK || st == TG_E_NOMEM);
        done = st == TG_OK;
        tg_opts_free(&o);
        memset(&err, 0, sizeof err);
    }
    CHECK(done);
    char path[700];
    CHECK_OK(tgi_preset_user_path("saved", path, sizeof path, &err), err);
    CHECK_EQ(unlink(path), 0);
}

static void make_folders(void)
{
    char cwd[256], path[600];
    const tg_ctx_opts opts = {.size = sizeof opts, .log = on_log};
    CHECK(getcwd(cwd, sizeof cwd) != NULL);
    snprintf(config, sizeof config, "%s/%s/.config", cwd, folder);
    CHECK_EQ(setenv("XDG_CONFIG_HOME", config, 1), 0);
    CHECK_EQ(setenv("TEGULA_CONFIGS", TG_SOURCE_DIR "/configs", 1), 0);
    CHECK_EQ(mkdir(config, 0777), 0);
    snprintf(path, sizeof path, "%s/tegula", config);
    CHECK_EQ(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/tegula/presets", config);
    CHECK_EQ(mkdir(path, 0777), 0);
    CHECK_EQ(tg_ctx_open(&opts, &listening), TG_OK);
}

static void remove_folders(void)
{
    static const char *const presets[] = {"side", "first", "second"};
    char path[700];
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (tgi_preset_user_path(presets[i], path, sizeof path, &err) == TG_OK)
            unlink(path);
    snprintf(path, sizeof path, "%s/tegula/presets", config);
    CHECK_EQ(rmdir(path), 0); /* every test took its own away */
    snprintf(path, sizeof path, "%s/tegula", config);
    CHECK_EQ(rmdir(path), 0);
    CHECK_EQ(rmdir(config), 0);
    tg_ctx_close(&listening);
}

int main(void)
{
    help_open();
    make_folders();
    RUN(test_of_each_pair_the_higher_wins_in_any_order);
    RUN(test_one_preset_counts_that_of_the_command_line_before_that_of_the_job);
    RUN(test_of_two_job_files_the_first_wins_and_of_two_sets_the_last);
    RUN(test_a_preset_that_loses_to_the_job_file_is_told);
    RUN(test_a_copy_knows_where_its_values_are_from);
    RUN(test_files_that_are_no_presets_are_refused_and_say_why);
    RUN(test_hostile_files_are_refused_at_once);
    RUN(test_names_that_are_none_are_refused);
    RUN(test_what_is_saved_is_listed_loaded_and_taken);
    RUN(test_the_user_s_preset_counts_and_hides_the_built_in_one);
    RUN(test_of_a_job_what_no_preset_may_have_is_left_out_but_named_it_is_refused);
    RUN(test_a_device_part_is_kept_and_told_not_to_be_used);
    RUN(test_a_preset_is_saved_whole_or_not_at_all);
    RUN(test_a_failed_allocation_is_answered);
    remove_folders();
    help_close();
    return TEST_END();
}
