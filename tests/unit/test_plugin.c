/* Opening plugins and choosing a device, with plugins and a management library that pretend. */
#include "engine/device/choice.h"
#include "engine/memory/monitor_nvml.h"
#include "tests/tg_test.h"

#include <sys/stat.h>

static tgi_err err;

/* Another machine: its plugin (NULL: what is found beside the program), what that answers. */
static void machine(const char *plugin, const char *answers)
{
    tgi_device_close_plugins();
    if (plugin)
        setenv("TEGULA_CUDA_PLUGIN", plugin, 1);
    else
        unsetenv("TEGULA_CUDA_PLUGIN");
    setenv("FAKE_PLUGIN", answers, 1);
}

static void driver(const char *library, const char *answers)
{
    tgi_nvml_close();
    setenv("TEGULA_NVML", library, 1);
    setenv("FAKE_NVML", answers, 1);
}

/* What is looked up has no device, for this reason. */
static void none_because(const char *why)
{
    tgi_devices all;
    tgi_devices_look("cuda", &all);
    CHECK_EQ(all.n, 0);
    if (!strstr(all.why, why))
        fprintf(stderr, "\"%s\" says nothing of \"%s\"\n", all.why, why);
    CHECK(strstr(all.why, why) != NULL);
    CHECK(!strchr(all.why, '\n'));
}

static tg_status choose(const char *text, tgi_device_choice *out)
{
    tgi_device_spec want;
    memset(out, 0xff, sizeof *out);
    CHECK_OK(tgi_device_parse(text, &want, &err), err);
    return tgi_device_choose(&want, out, &err);
}

/* ---- Opening ----------------------------------------------------------------------------- */

static void test_a_plugin_that_is_not_there_or_not_ours_is_refused_with_the_reason(void)
{
    static const struct {
        const char *path, *why;
    } rows[] = {{"none", "switched off by TEGULA_CUDA_PLUGIN"},
                {"/no/such/plugin.so", "/no/such/plugin.so"},
                {TG_SOURCE_DIR "/README.md", "README.md"},
                {FAKE_STRANGER, "lacks tgi_device_plugin"},
                {FAKE_OTHER_ABI, "another version"},
                {FAKE_LIES, "another version"},
                {FAKE_HOLES, "no complete plugin"},
                {FAKE_NAME, "no complete plugin"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tgi_device_ops *ops = (const tgi_device_ops *)&err;
        machine(rows[i].path, "");
        CHECK_EQ(tgi_device_open_plugin("cuda", &ops, &err), TG_E_DEVICE);
        CHECK(ops == NULL && strstr(err.text, rows[i].why) != NULL);
        memset(&err, 0, sizeof err);
        none_because(rows[i].why); /* the same words when asked again */
    }
    static char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    machine(longer, "");
    none_because("a path of 1999 characters");
    const tgi_device_ops *ops;
    CHECK_STATUS(tgi_device_open_plugin("abacus", &ops, &err), TG_E_DEVICE, err);
}

static void test_a_plugin_lists_its_devices(void)
{
    tgi_devices all;
    machine(FAKE_PLUGIN, "");
    tgi_devices_look("cuda", &all);
    CHECK(all.n == 2 && all.ops != NULL && !all.why[0]);
    CHECK_STR(all.path, FAKE_PLUGIN);
    CHECK_STR(all.info[1].name, "Pretended 1");
    machine(FAKE_PLUGIN, "devices=100"); /* more than we list */
    tgi_devices_look("cuda", &all);
    CHECK_EQ(all.n, TGI_MAX_DEVICES);
    machine(FAKE_PLUGIN, "nodriver");
    none_because("no pretended driver");
    machine(FAKE_PLUGIN, "lost=1");
    none_because("is lost");
    machine(FAKE_PLUGIN, "devices=0");
    none_because("shows no device");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    none_because("CUDA_VISIBLE_DEVICES=7");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* In folders as an installation and a build have them: the program is copied there and asked.
 */
static void test_a_plugin_is_found_beside_the_program_and_in_lib_above_it(void)
{
    static const struct {
        const char *program, *plugin;
        int found;
    } rows[] = {
        {"bin/ask", "bin/libtegula_cuda.so", 1},
        {"bin/ask", "lib/tegula/libtegula_cuda.so", 1},
        {"a/b/c/ask", "lib/tegula/libtegula_cuda.so", 1},
        {"a/b/c/d/ask", "lib/tegula/libtegula_cuda.so", 0},
        {"bin/ask", "lib/libtegula_cuda.so", 0},
        {"bin/ask", "libtegula_cuda.so", 0}}; /* the working folder counts for nothing */
    char self[1024] = "", command[4096];
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(command, sizeof command,
                 "rm -rf plugin_tree && mkdir -p plugin_tree && cd plugin_tree && "
                 "mkdir -p $(dirname %s) $(dirname %s) && cp '%s' %s && cp '%s' %s && "
                 "env -u TEGULA_CUDA_PLUGIN FAKE_PLUGIN=devices=3 ./%s --ask",
                 rows[i].program, rows[i].plugin, self, rows[i].program, FAKE_PLUGIN,
                 rows[i].plugin, rows[i].program);
        const int status = system(command);
        CHECK_EQ(status, (rows[i].found ? 3 : 0) << 8); /* the exit code is the count */
    }
    CHECK_EQ(system("rm -rf plugin_tree"), 0);
}

static int ask(void)
{
    tgi_devices all;
    tgi_devices_look("cuda", &all);
    return all.n;
}

/* ---- Choosing ---------------------------------------------------------------------------- */

static void test_the_words_of_a_device_are_read(void)
{
    static const struct {
        const char *text;
        tgi_device_kind kind;
        int id;
    } good[] = {{"auto", TGI_DEVICE_AUTO, -1},
                {"cpu", TGI_DEVICE_CPU, -1},
                {"cuda", TGI_DEVICE_OF_PLUGIN, -1},
                {"cuda:0", TGI_DEVICE_OF_PLUGIN, 0},
                {"cuda:31", TGI_DEVICE_OF_PLUGIN, 31}};
    static const char *const bad[] = {"",       "cud",     "gpu",     "cuda:", "cuda:-1", "CPU",
                                      "cuda:a", "cuda:1a", "cuda:32", "cuda0", "auto:1"};
    tgi_device_spec s;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_OK(tgi_device_parse(good[i].text, &s, &err), err);
        CHECK_EQ(s.kind, good[i].kind);
        CHECK_EQ(s.id, good[i].id);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_STATUS(tgi_device_parse(bad[i], &s, &err), TG_E_ARG, err);
    CHECK_EQ(tgi_device_parse("cud", &s, &err), TG_E_ARG);
    CHECK(strstr(err.text, "nearest is \"cuda\"") != NULL);
    memset(&err, 0, sizeof err);
}

static void test_the_processor_asks_nobody(void)
{
    tgi_device_choice c;
    machine(FAKE_PLUGIN, "");
    CHECK_EQ(choose("cpu", &c), TG_OK);
    CHECK(c.ops == NULL && !c.notice[0]);
}

static void test_a_device_asked_for_that_is_not_there_is_an_error_with_the_reason(void)
{
    tgi_device_choice c;
    machine(FAKE_PLUGIN, "nodriver");
    CHECK_EQ(choose("cuda", &c), TG_E_DEVICE);
    CHECK_STR(err.text, "no cuda device: there is no pretended driver");
    memset(&err, 0, sizeof err);
    machine(FAKE_PLUGIN, "devices=2");
    CHECK_EQ(choose("cuda:2", &c), TG_E_DEVICE);
    CHECK_STR(err.text, "there is no device cuda:2: there are 0 to 1");
    memset(&err, 0, sizeof err);
    CHECK_EQ(choose("cuda:1", &c), TG_OK);
    CHECK(c.ops != NULL && c.info.id == 1 && !c.notice[0]);
}

static void test_auto_goes_on_without_and_says_so_where_a_device_is_expected(void)
{
    tgi_device_choice c;
    machine(FAKE_PLUGIN, "nodriver");
    driver("none", "");
    CHECK_EQ(choose("auto", &c), TG_OK);
    CHECK(c.ops == NULL);
    CHECK_STR(c.notice, "no cuda device: there is no pretended driver");
    machine("none", ""); /* neither plugin nor GPU: nothing to say */
    CHECK_EQ(choose("auto", &c), TG_OK);
    CHECK(c.ops == NULL && !c.notice[0]);
    driver(FAKE_NVML, "gpus=1"); /* a GPU, and no plugin for it */
    CHECK_EQ(choose("auto", &c), TG_OK);
    CHECK(c.ops == NULL && strstr(c.notice, "switched off") != NULL);
    machine(FAKE_PLUGIN, "devices=1");
    CHECK_EQ(choose("auto", &c), TG_OK);
    CHECK(c.ops != NULL && c.info.id == 0 && !c.notice[0]);
}

static void test_of_several_the_one_with_most_free_memory_is_taken(void)
{
    static const struct {
        const char *gpus, *devices;
        int best;
    } rows[] = {{"gpus=4", "devices=4", 2}, /* 6, 14, 22, 22 GiB free: of equals the first */
                {"gpus=4", "devices=4,reversed", 0},
                {"gpus=4,lost=2", "devices=4", 3}, /* what cannot be read is not recommended */
                {"gpus=0", "devices=4", 0}};       /* nobody knows */
    tgi_device_choice c;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        driver(FAKE_NVML, rows[i].gpus);
        machine(FAKE_PLUGIN, rows[i].devices);
        CHECK_EQ(choose("cuda", &c), TG_OK);
        CHECK_EQ(c.info.id, rows[i].best);
        CHECK_EQ(choose("cuda:1", &c), TG_OK); /* who says which, gets it */
        CHECK_EQ(c.info.id, 1);
    }
    driver("none", "");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--ask") == 0)
        return ask();
    RUN(test_a_plugin_that_is_not_there_or_not_ours_is_refused_with_the_reason);
    RUN(test_a_plugin_lists_its_devices);
    RUN(test_a_plugin_is_found_beside_the_program_and_in_lib_above_it);
    RUN(test_the_words_of_a_device_are_read);
    RUN(test_the_processor_asks_nobody);
    RUN(test_a_device_asked_for_that_is_not_there_is_an_error_with_the_reason);
    RUN(test_auto_goes_on_without_and_says_so_where_a_device_is_expected);
    RUN(test_of_several_the_one_with_most_free_memory_is_taken);
    tgi_device_close_plugins();
    tgi_nvml_close();
    return TEST_END();
}
