/* The doctor on made-up machines: each trouble is found from where it begins, and none is found
 * without what to do about it. */
#include "engine/device/plugin.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_nvml.h"
#include "tests/made_machine.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <tegula_memory.h>

#define ROOMY "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n"

static tg_finding *list;
static size_t n_found;

/* Look, and hold what is true of every finding. Ends the machine. */
static void look(const tg_opts *job)
{
    tg_memory_list_free(list);
    list = NULL;
    n_found = 0;
    CHECK_EQ(tg_doctor(NULL, machine, job, &list, &n_found), TG_OK);
    CHECK(n_found >= 5);
    for (size_t i = 0; i < n_found; i++) {
        CHECK(list[i].about && list[i].about[0] && list[i].says[0]);
        CHECK(!strchr(list[i].says, '\n') && !strchr(list[i].remedy, '\n'));
        if (list[i].state != TG_FINDING_OK && !list[i].remedy[0])
            fprintf(stderr, "%s: %s: and now?\n", list[i].about, list[i].says);
        CHECK(list[i].state == TG_FINDING_OK || list[i].remedy[0]);
    }
    end_machine();
}

/* The finding about something whose sentence holds `says`; NULL. */
static const tg_finding *found(const char *about, const char *says)
{
    for (size_t i = 0; i < n_found; i++)
        if (strcmp(list[i].about, about) == 0 && strstr(list[i].says, says))
            return &list[i];
    return NULL;
}

static void expect(const char *about, const char *says, tg_finding_state state,
                   const char *remedy)
{
    const tg_finding *f = found(about, says);
    if (!f)
        fprintf(stderr, "nothing about %s that says \"%s\"\n", about, says);
    CHECK(f != NULL);
    if (!f)
        return;
    CHECK_EQ(f->state, state);
    if (remedy ? !strstr(f->remedy, remedy) : f->remedy[0] != 0)
        fprintf(stderr, "%s: %s -> %s\n", about, f->says, f->remedy);
    CHECK(remedy ? strstr(f->remedy, remedy) != NULL : f->remedy[0] == 0);
}

static void driver(const char *library, const char *answers)
{
    tgi_nvml_close();
    setenv("TEGULA_NVML", library, 1);
    setenv("FAKE_NVML", answers, 1);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static void test_a_machine_with_room_has_nothing_to_do(void)
{
    driver("libtegula_no_such_library.so.1", "");
    begin_machine(ROOMY, "0::/user\n");
    put("/sys/fs/cgroup/user/memory.max", "max\n");
    look(NULL);
    expect("ram", "8.00 GiB free (MemAvailable) of 16.00 GiB", TG_FINDING_OK, NULL);
    expect("cgroup", "no group allows less", TG_FINDING_OK, NULL);
    expect("driver", "no NVIDIA driver", TG_FINDING_OK, NULL);
    CHECK(!found("swap", "") && !found("overcommit", "") && !found("job", ""));
    CHECK(found("disk", "free in .") && found("temporary", "") && found("processor", "usable"));
    CHECK(!found("build", "GPU"));
    expect("device", "jobs run on the processor", TG_FINDING_OK, NULL);
    for (size_t i = 0; i < n_found; i++)
        CHECK(list[i].state != TG_FINDING_BLOCKS);
}

static void test_little_memory_is_a_notice_and_less_than_the_margin_blocks(void)
{
    static const struct {
        const char *meminfo;
        int low, blocks;
    } rows[] = {{"MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n", 0, 0}, /* 1 GiB */
                {"MemTotal: 16777216 kB\nMemAvailable: 1048575 kB\n", 1, 0},
                {"MemTotal: 16777216 kB\nMemAvailable: 524289 kB\n", 1, 0},
                {"MemTotal: 16777216 kB\nMemAvailable: 524288 kB\n", 1, 1}}; /* 512 MiB */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin_machine(rows[i].meminfo, NULL);
        look(NULL);
        expect("ram", "free (MemAvailable)", rows[i].low ? TG_FINDING_NOTICE : TG_FINDING_OK,
               rows[i].low ? "ps -eo pid,rss" : NULL);
        CHECK_EQ(found("ram", "margin") != NULL, rows[i].blocks);
    }
    expect("ram", "margin of 512 MiB", TG_FINDING_BLOCKS, "--ram 460MiB"); /* nine tenths */
}

static void test_swap_in_use_is_told_beyond_half(void)
{
    begin_machine(ROOMY "SwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n", NULL);
    look(NULL);
    CHECK(!found("swap", ""));
    begin_machine(ROOMY "SwapTotal: 2097152 kB\nSwapFree: 1048575 kB\n", NULL);
    look(NULL);
    expect("swap", "1.00 GiB of 2.00 GiB in use", TG_FINDING_NOTICE, "ps -eo pid,rss");
}

static void test_a_limit_is_raised_by_whoever_made_the_group(void)
{
    static const char *const rows[][2] = {
        {"/slurm/uid_0/job_7/step_0", "sbatch --mem=16G"},
        {"/kubepods/burstable/pod7", "resources.limits.memory"},
        {"/docker/0123abcd", "docker update --memory 8g --memory-swap 8g 0123abcd"},
        {"/system.slice/docker-01ab.scope", "systemctl set-property docker-01ab.scope "},
        {"/user.slice/user@1000.service", "systemctl set-property user@1000.service "},
        {"/lab", "raise memory.max"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[160], says[160];
        snprintf(path, sizeof path, "0::%s\n", rows[i][0]);
        begin_machine(ROOMY, path);
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", rows[i][0]);
        put(path, "1073741824\n");
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", rows[i][0]);
        put(path, "268435456\n");
        look(NULL);
        snprintf(says, sizeof says, "%s allows 1.00 GiB, 768.00 MiB of it free", rows[i][0]);
        expect("cgroup", says, TG_FINDING_NOTICE, rows[i][1]);
        CHECK(!found("cgroup", "no group"));
    }
    begin_machine(ROOMY, "0::/all\n"); /* as much as the machine has: no limit */
    put("/sys/fs/cgroup/all/memory.max", "17179869184\n");
    look(NULL);
    expect("cgroup", "no group allows less", TG_FINDING_OK, NULL);
}

static void test_a_system_that_promises_no_more_than_it_has_is_told(void)
{
    static const char promised[] = ROOMY "CommitLimit: 10485760 kB\nCommitted_AS: 3145728 kB\n";
    for (int mode = 0; mode <= 2; mode++) {
        char text[8];
        snprintf(text, sizeof text, "%d\n", mode);
        begin_machine(promised, NULL);
        put("/proc/sys/vm/overcommit_memory", text);
        look(NULL);
        CHECK_EQ(found("overcommit", "") != NULL, mode == 2);
    }
    expect("overcommit", "3.00 GiB of 10.00 GiB are promised", TG_FINDING_NOTICE,
           "sysctl vm.overcommit_memory=0");
}

/* In a child: limits cannot be raised again. */
static int told_of_the_shells_limit(void)
{
    const struct rlimit limit = {(rlim_t)1 << 32, (rlim_t)1 << 32};
    tg_finding *one = NULL;
    size_t n = 0;
    int told = 0;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || tg_doctor(NULL, NULL, NULL, &one, &n) != TG_OK)
        return 2;
    for (size_t i = 0; i < n; i++)
        told |= strcmp(one[i].about, "rlimit") == 0 &&
                strstr(one[i].remedy, "ulimit -v unlimited") != NULL;
    return told ? 0 : 3;
}

static void test_a_limit_of_the_shell_is_told(void)
{
    if (TG_SANITIZED)
        return;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(told_of_the_shells_limit());
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- Disk, processor, build -------------------------------------------------------------- */

static void test_folders_and_settings_that_stand_in_the_way_are_told(void)
{
    tg_env tmp, isa;
    tg_env_lend(&tmp, "TMPDIR", "no/such/folder");
    tg_env_lend(&isa, "TEGULA_ISA", "portable");
    setenv("TEGULA_BLOCK_UNTRUSTED", "1", 1);
    begin_machine(ROOMY, NULL);
    look(NULL);
    tg_env_back(&tmp);
    tg_env_back(&isa);
    unsetenv("TEGULA_BLOCK_UNTRUSTED");
    expect("temporary", "no/such/folder is not there", TG_FINDING_NOTICE,
           "mkdir -p 'no/such/folder'");
    expect("processor", "TEGULA_ISA=portable caps", TG_FINDING_NOTICE, "unset TEGULA_ISA");
    expect("processor", "kernels for portable", TG_FINDING_NOTICE, "AVX2");
    expect("build", "TEGULA_BLOCK_UNTRUSTED", TG_FINDING_NOTICE,
           "unset TEGULA_BLOCK_UNTRUSTED");
}

static void test_emulated_kernels_are_told(void)
{
    const tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);
    tg_env env;
    begin_machine(ROOMY, NULL);
    look(NULL);
    if (tgi_isa_emulated(isa))
        expect("processor", "emulated", TG_FINDING_NOTICE, "TG_EMULATE_AVX512");
    else
        CHECK(!found("processor", "emulated"));
    tg_env_lend(&env, "TEGULA_ISA", "portable"); /* whose kernels are nobody's halves */
    begin_machine(ROOMY, NULL);
    look(NULL);
    tg_env_back(&env);
    CHECK(!found("processor", "emulated"));
}

/* ---- GPUs -------------------------------------------------------------------------------- */

static void test_a_driver_that_does_not_answer_is_told_with_its_cure(void)
{
    static const struct {
        const char *library, *answers, *says, *remedy;
    } rows[] = {{FAKE_NVML, "init=18", "different versions", "reboot"},
                {FAKE_NVML, "init=9", "not loaded", "modprobe nvidia"},
                {FAKE_NVML, "init=4", "permission", "nvidia-smi"},
                {FAKE_NVML_BROKEN, "", "nvmlInit_v2", "nvidia-smi"},
                {"none", "", "TEGULA_NVML", "unset TEGULA_NVML"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        driver(rows[i].library, rows[i].answers);
        begin_machine(ROOMY, NULL);
        look(NULL);
        expect("driver", rows[i].says, TG_FINDING_NOTICE, rows[i].remedy);
        CHECK(!found("gpu", ""));
    }
    /* The kernel has the driver and its library is not there: a container. */
    driver("libtegula_no_such_library.so.1", "");
    begin_machine(ROOMY, NULL);
    put("/proc/driver/nvidia/version", "NVRM version: 555.42\n");
    look(NULL);
    expect("driver", "no_such_library", TG_FINDING_NOTICE, "docker run --gpus all");
}

static void test_who_holds_gpu_memory_is_named(void)
{
    driver(FAKE_NVML, "gpus=2");
    begin_machine(ROOMY, NULL);
    put("/proc/4712/comm", "notebook\n");
    look(NULL);
    expect("driver", "555.42, 2 GPUs", TG_FINDING_OK, NULL);
    expect("gpu", "GPU 0 Pretended 0?: 6.00 GiB free of 8.00 GiB", TG_FINDING_OK, NULL);
    expect("gpu", "GPU 0: notebook (pid 4712) holds 32.00 MiB", TG_FINDING_NOTICE, "kill 4712");
    expect("gpu", "GPU 0: ? (pid 4711) holds 16.00 MiB", TG_FINDING_NOTICE, "kill 4711");
    driver(FAKE_NVML, "gpus=2,hidden,lost=1");
    begin_machine(ROOMY, NULL);
    look(NULL);
    expect("gpu", "(pid 4712) holds an unknown part", TG_FINDING_NOTICE, "kill 4712");
    expect("gpu", "GPU 1: ", TG_FINDING_NOTICE, "nvidia-smi -i 1");
    CHECK(!found("gpu", "GPU 1 Pretended")); /* no figures that nobody knows */
    driver(FAKE_NVML, "gpus=60,crowd=100");  /* more than is shown */
    begin_machine(ROOMY, NULL);
    look(NULL);
    CHECK(found("gpu", "GPU 59 ") != NULL && found("gpu", "(pid 4810)") != NULL);
    driver(FAKE_NVML, "gpus=1,crowd=2000"); /* more than the driver lists: nobody to kill */
    begin_machine(ROOMY, NULL);
    look(NULL);
    expect("gpu", "2000 programs", TG_FINDING_NOTICE, "nvidia-smi -i 0");
    CHECK(!found("gpu", "(pid "));
    driver("none", "");
}

static void plugin(const char *path, const char *answers)
{
    tgi_device_close_plugins();
    setenv("TEGULA_CUDA_PLUGIN", path, 1);
    setenv("FAKE_PLUGIN", answers, 1);
}

static void test_devices_are_listed_or_why_there_are_none(void)
{
    driver(FAKE_NVML, "gpus=1");
    plugin(FAKE_PLUGIN, "devices=2");
    begin_machine(ROOMY, NULL);
    look(NULL);
    expect("device", "cuda:1 Pretended 1: 12.00 GiB, compute capability 8.6, pretended driver",
           TG_FINDING_OK, NULL);
    CHECK(!found("device", "processor"));
    plugin(FAKE_PLUGIN, "nodriver");
    begin_machine(ROOMY, NULL);
    look(NULL);
    expect("device", "jobs run on the processor: there is no pretended driver",
           TG_FINDING_NOTICE, "nvidia-smi");
    plugin("none", "");
    begin_machine(ROOMY, NULL);
    look(NULL);
    expect("device", "switched off by TEGULA_CUDA_PLUGIN", TG_FINDING_NOTICE, "TG_CUDA=on");
    driver(FAKE_NVML, "gpus=60,crowd=100"); /* a long list, and the last is there */
    plugin(FAKE_PLUGIN, "devices=40");
    begin_machine(ROOMY, NULL);
    look(NULL);
    CHECK(found("gpu", "GPU 59 ") != NULL && found("device", "cuda:31 ") != NULL);
    plugin("none", "");
    driver("none", "");
}

/* ---- A job ------------------------------------------------------------------------------- */

/* 64 x 64 float32 zeros, as numpy writes them. */
static void put_image(const char *path)
{
    static char file[128 + 64 * 64 * 4];
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(
        file + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 64, 64), }");
    file[10 + n] = ' ';
    file[127] = '\n';
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(file, 1, sizeof file, f) == sizeof file);
    if (f)
        fclose(f);
}

static void look_at_job(const char *model, const char *ram)
{
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", model), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", "tegula_doctor_in.npy"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", "tegula_doctor_out.npy"), TG_OK);
    CHECK_EQ(tg_opts_set(o, "ram", ram), TG_OK);
    begin_machine(ROOMY, NULL);
    look(o);
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
}

static void test_a_job_fits_or_is_told_why_not(void)
{
    put_image("tegula_doctor_in.npy");
    look_at_job(TG_SOURCE_DIR "/models/tegula_denoise.onnx", "1GiB");
    expect("job", "of a budget of 1.00 GiB", TG_FINDING_OK, NULL);
    look_at_job(TG_SOURCE_DIR "/models/tegula_denoise.onnx", "1MiB");
    if (!TG_SANITIZED) { /* whose process grows while remedies are tried */
        expect("job", "", TG_FINDING_BLOCKS, "tegula run --config JOB --ram '");
        expect("job", "", TG_FINDING_BLOCKS, "MiB; loses nothing: so much is free)");
    }
    look_at_job("no_such_model.onnx", "1GiB");
    expect("job", "no_such_model.onnx", TG_FINDING_BLOCKS, "docs/reference/errors.md");
    CHECK(access("tegula_doctor_out.npy", F_OK) != 0); /* it changes nothing */
    unlink("tegula_doctor_in.npy");
}

static void test_wrong_arguments_and_no_memory_are_refused(void)
{
    tg_finding *one = NULL;
    size_t n = 0;
    CHECK_EQ(tg_doctor(NULL, NULL, NULL, NULL, &n), TG_E_ARG);
    CHECK_EQ(tg_doctor(NULL, NULL, NULL, &one, NULL), TG_E_ARG);
    tgi_mem_fail_at(1);
    CHECK_EQ(tg_doctor(NULL, NULL, NULL, &one, &n), TG_E_NOMEM);
    tgi_mem_fail_at(0);
    CHECK(one == NULL && n == 0);
}

int main(void)
{
    RUN(test_a_machine_with_room_has_nothing_to_do);
    RUN(test_little_memory_is_a_notice_and_less_than_the_margin_blocks);
    RUN(test_swap_in_use_is_told_beyond_half);
    RUN(test_a_limit_is_raised_by_whoever_made_the_group);
    RUN(test_a_system_that_promises_no_more_than_it_has_is_told);
    RUN(test_a_limit_of_the_shell_is_told);
    RUN(test_folders_and_settings_that_stand_in_the_way_are_told);
    RUN(test_emulated_kernels_are_told);
    RUN(test_a_driver_that_does_not_answer_is_told_with_its_cure);
    RUN(test_who_holds_gpu_memory_is_named);
    RUN(test_devices_are_listed_or_why_there_are_none);
    RUN(test_a_job_fits_or_is_told_why_not);
    RUN(test_wrong_arguments_and_no_memory_are_refused);
    tg_memory_list_free(list);
    tgi_device_close_plugins();
    tgi_nvml_close();
    return TEST_END();
}
