/* The truth about memory, read from made-up machines: /proc and cgroup trees in a folder. */
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_machine.h"
#include "tests/made_machine.h"

#include <tegula_memory.h>

#define MIB ((uint64_t)1 << 20)
#define MEMINFO "MemTotal: 16384000 kB\nMemFree: 100 kB\nMemAvailable:    8192000 kB\n"
#define AVAILABLE (8192000ull * 1024)

static tgi_free_memory look(void)
{
    tgi_free_memory f;
    tgi_free_memory_read(machine, &f);
    end_machine();
    return f;
}

static void test_without_limits_the_machine_decides(void)
{
    begin_machine(MEMINFO, NULL);
    tgi_free_memory f = look();
    CHECK_EQ(f.bytes, AVAILABLE);
    CHECK(f.cgroup == TGI_UNLIMITED && f.rlimit == TGI_UNLIMITED);
    CHECK_STR(f.limited_by, "MemAvailable");

    begin_machine(MEMINFO, "0::/user\n");
    put("/sys/fs/cgroup/user/memory.max", "max\n");
    put("/sys/fs/cgroup/user/memory.high", "max\n");
    f = look();
    CHECK(f.cgroup == TGI_UNLIMITED);

    begin_machine(MEMINFO, "5:memory:/user\n");
    put("/sys/fs/cgroup/memory/user/memory.limit_in_bytes", "9223372036854771712\n");
    f = look();
    CHECK(f.cgroup == TGI_UNLIMITED);
}

static void test_turns_of_all_threads_are_summed(void)
{
    tgi_turns t;
    begin_machine(MEMINFO, NULL);
    put("/proc/self/task/7/schedstat", "2000000000 500000000 12\n");
    put("/proc/self/task/8/schedstat", "1000000000 250000000 3\n");
    put("/proc/self/task/9/schedstat", "rubbish\n");
    tgi_turns_read(machine, &t);
    CHECK(t.ran > 2.999 && t.ran < 3.001 && t.waited > 0.749 && t.waited < 0.751);
    end_machine();
    begin_machine(MEMINFO, NULL);
    tgi_turns_read(machine, &t);
    CHECK(t.ran == 0 && t.waited == 0);
    end_machine();
}

static void test_v2_counts_what_is_used_and_gives_inactive_file_pages_back(void)
{
    begin_machine(MEMINFO, "0::/job\n");
    put("/sys/fs/cgroup/job/memory.max", "536870912\n");
    put("/sys/fs/cgroup/job/memory.high", "max\n");
    put("/sys/fs/cgroup/job/memory.current", "209715200\n");
    put("/sys/fs/cgroup/job/memory.stat",
        "anon 1048576\nfile 104857600\nactive_file 10\ninactive_file 104857600\n");
    const tgi_free_memory f = look();
    CHECK_EQ(f.cgroup, 512 * MIB - 100 * MIB);
    CHECK_EQ(f.bytes, f.cgroup);
    CHECK_STR(f.limited_by, "cgroup /job");
}

static void test_a_group_above_may_be_the_narrower_one(void)
{
    begin_machine(MEMINFO, "0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/a/b/memory.high", "1073741824\n");
    put("/sys/fs/cgroup/a/b/memory.current", "973078528\n"); /* a neighbour uses it */
    put("/sys/fs/cgroup/a/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/a/memory.current", "0\n");
    const tgi_free_memory f = look();
    CHECK_EQ(f.bytes, 96 * MIB);
    CHECK_STR(f.limited_by, "cgroup /a/b");
}

static void test_a_group_over_its_limit_has_nothing_left(void)
{
    begin_machine(MEMINFO, "0::/job\n");
    put("/sys/fs/cgroup/job/memory.high", "1048576\n");
    put("/sys/fs/cgroup/job/memory.current", "2097152\n");
    CHECK_EQ(look().bytes, 0);
}

static void test_v1_reads_its_own_names_beside_other_controllers(void)
{
    begin_machine(MEMINFO, "9:name=systemd:/\n8:cpu,cpuacct:/x\n4:memory:/docker/ab\n0::/\n");
    put("/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "1073741824\n");
    put("/sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", "629145600\n");
    put("/sys/fs/cgroup/memory/docker/ab/memory.stat",
        "inactive_file 1\ntotal_rss 5\ntotal_inactive_file 104857600\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    const tgi_free_memory f = look();
    CHECK_EQ(f.bytes, 1024 * MIB - 500 * MIB);
    CHECK_STR(f.limited_by, "cgroup /docker/ab");
}

static void test_in_a_container_the_mounts_root_is_the_containers_group(void)
{
    begin_machine(MEMINFO, "4:memory:/docker/ab\n"); /* not visible below the mount */
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    const tgi_free_memory f = look();
    CHECK_EQ(f.bytes, 256 * MIB);
    CHECK_STR(f.limited_by, "cgroup /");
}

static void test_mounts_are_found_where_the_system_says(void)
{
    char mounts[9000];
    size_t n = 0;
    for (int i = 0; i < 90; i++) /* more than one piece of the reader's buffer */
        n += (size_t)snprintf(mounts + n, sizeof mounts - n,
                              "%d 1 8:1 / /mnt/a_rather_long_name_%d rw - ext4 /dev/x rw\n", i,
                              i);
    snprintf(mounts + n, sizeof mounts - n,
             "91 1 0:3 / /odd/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
             "92 1 0:4 /docker/ab /odd/mem rw shared:1 - cgroup cgroup rw,memory\n");
    begin_machine(MEMINFO, "4:memory:/docker/ab/inner\n");
    put("/proc/self/mountinfo", mounts);
    put("/odd/mem/inner/memory.limit_in_bytes", "67108864\n");
    put("/odd/mem/memory.limit_in_bytes", "268435456\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n"); /* not the one */
    const tgi_free_memory f = look();
    CHECK_EQ(f.bytes, 64 * MIB);
    CHECK_STR(f.limited_by, "cgroup /inner");
}

static void test_v1_and_v2_together_take_the_narrower(void)
{
    begin_machine(MEMINFO, "4:memory:/one\n0::/two\n");
    put("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "1073741824\n");
    put("/sys/fs/cgroup/two/memory.max", "805306368\n");
    const tgi_free_memory f = look();
    CHECK_EQ(f.bytes, 768 * MIB);
    CHECK_STR(f.limited_by, "cgroup /two");
}

static void test_the_margin_is_half_a_gibibyte_or_a_tenth(void)
{
    CHECK_EQ(tgi_budget_of(1000 * MIB, 24 * MIB), 512 * MIB);
    CHECK_EQ(tgi_budget_of(100 * 1024 * MIB, 0), 90 * 1024 * MIB);
    CHECK_EQ(tgi_budget_of(100 * MIB, 0), 0);
    CHECK(tgi_budget_of(TGI_UNLIMITED, MIB) > TGI_UNLIMITED / 2); /* no wrap */
    CHECK_EQ(tgi_margin_of(5120 * MIB, 0), 512 * MIB);            /* where both are the same */
    CHECK_EQ(tgi_margin_of(5100 * MIB, 20 * MIB + 10), 512 * MIB + 1);
    CHECK_EQ(tgi_margin_of(5120 * MIB - 10, 0), 512 * MIB);
    CHECK_EQ(tgi_budget_of(512 * MIB, 0), 0);
    CHECK_EQ(tgi_budget_of(512 * MIB, 1), 1);
}

static void test_the_process_is_read_from_its_status(void)
{
    begin_machine(MEMINFO, NULL);
    put("/proc/self/status",
        "Name:\tRssAnon: 9 kB\nVmHWM:\t    70 kB\nVmRSS:\t 60 kB\n"
        "RssAnon:\t      10 kB\nRssFile:\t      20 kB\nRssShmem:\t       3 kB\n"
        "VmPTE:\t      40 kB\nVmSwap:\t       5 kB\n");
    tgi_process_memory p;
    CHECK(tgi_process_memory_read(machine, &p));
    end_machine();
    CHECK_EQ(p.anon, 10 * 1024);
    CHECK_EQ(p.file, 20 * 1024);
    CHECK_EQ(p.shmem, 3 * 1024);
    CHECK_EQ(p.pte, 40 * 1024);
    CHECK_EQ(p.swap, 5 * 1024);
    CHECK_EQ(p.high_water, 70 * 1024);
    CHECK(!tgi_process_memory_read("no_such_folder", &p));
    CHECK_EQ(p.anon, 0);
}

static void test_the_public_readers_say_bytes_of_a_root(void)
{
    begin_machine("MemTotal: 16384000 kB\nMemAvailable: 4096000 kB\nSwapTotal: 200 kB\n"
                  "SwapFree: 150 kB\n",
                  "0::/a/b\n");
    put("/proc/self/status", "VmSize: 900 kB\nVmHWM: 70 kB\nVmRSS: 33 kB\nRssAnon: 10 kB\n"
                             "RssFile: 20 kB\nRssShmem: 3 kB\nVmPTE: 40 kB\nVmSwap: 5 kB\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.current", "4096\n");
    put("/sys/fs/cgroup/a/memory.max", "1048576\n");
    put("/sys/fs/cgroup/a/memory.current", "8192\n");
    tg_system_memory s = {.size = sizeof s};
    tg_process_memory p = {.size = sizeof p};
    tg_free_memory f = {.size = sizeof f};
    tg_cgroup_memory *group = NULL;
    size_t n = 0;
    CHECK_EQ(tg_memory_system(machine, &s), TG_OK);
    CHECK_EQ(s.total_bytes, 16384000ull * 1024);
    CHECK_EQ(s.available_bytes, 4096000ull * 1024);
    CHECK_EQ(s.used_bytes, 12288000ull * 1024);
    CHECK_NEAR(s.used_percent, 75, 1e-12);
    CHECK(s.swap_total_bytes == 200 * 1024 && s.swap_free_bytes == 150 * 1024);
    CHECK_EQ(tg_memory_process(machine, &p), TG_OK);
    CHECK_EQ(p.anonymous_bytes, 10 * 1024);
    CHECK_EQ(p.file_bytes, 20 * 1024);
    CHECK_EQ(p.resident_bytes, 33 * 1024);
    CHECK_EQ(p.virtual_bytes, 900 * 1024);
    CHECK_EQ(p.peak_resident_bytes, 70 * 1024);
    CHECK_EQ(p.measured_bytes, (10 + 3 + 5 + 40) * 1024); /* no file pages */
    CHECK_EQ(tg_memory_free_now(machine, &f), TG_OK);
    CHECK_EQ(f.free_bytes, 1048576 - 8192);
    CHECK_STR(f.limited_by, "cgroup /a");
    CHECK_EQ(tg_memory_cgroups(machine, &group, &n), TG_OK);
    CHECK_EQ(n, 2);
    if (n == 2) {
        CHECK(group[0].limit_bytes == TG_NO_LIMIT && group[0].free_bytes == TG_NO_LIMIT);
        CHECK_EQ(group[0].used_bytes, 4096);
        CHECK_STR(group[1].path, "/a");
        CHECK_EQ(group[1].limit_bytes, 1048576);
    }
    tg_memory_list_free(group);
    end_machine();
    CHECK_EQ(tg_memory_system("no_such_root", &s), TG_E_UNSUPPORTED);
    CHECK_EQ(tg_memory_process("no_such_root", &p), TG_E_UNSUPPORTED);
    CHECK_EQ(tg_memory_cgroups("no_such_root", &group, &n), TG_OK);
    CHECK(group == NULL && n == 0);
    s.size = sizeof s.size - 1; /* not even the size itself */
    CHECK_EQ(tg_memory_system(NULL, &s), TG_E_ARG);
    CHECK_EQ(tg_memory_process(NULL, NULL), TG_E_ARG);
    CHECK_EQ(tg_memory_free_now(NULL, NULL), TG_E_ARG);
    CHECK_EQ(tg_memory_cgroups(NULL, NULL, &n), TG_E_ARG);
}

int main(void)
{
    RUN(test_turns_of_all_threads_are_summed);
    RUN(test_without_limits_the_machine_decides);
    RUN(test_v2_counts_what_is_used_and_gives_inactive_file_pages_back);
    RUN(test_a_group_above_may_be_the_narrower_one);
    RUN(test_a_group_over_its_limit_has_nothing_left);
    RUN(test_v1_reads_its_own_names_beside_other_controllers);
    RUN(test_in_a_container_the_mounts_root_is_the_containers_group);
    RUN(test_mounts_are_found_where_the_system_says);
    RUN(test_v1_and_v2_together_take_the_narrower);
    RUN(test_the_margin_is_half_a_gibibyte_or_a_tenth);
    RUN(test_the_process_is_read_from_its_status);
    RUN(test_the_public_readers_say_bytes_of_a_root);
    return TEST_END();
}
