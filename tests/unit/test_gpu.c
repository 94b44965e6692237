/* GPUs through a management library that pretends (fake_nvml.c), and through none. */
#include "engine/memory/caches.h"
#include "engine/memory/gpu.h"
#include "engine/memory/monitor_nvml.h"
#include "tests/tg_test.h"

#define GIB ((uint64_t)1 << 30)

/* Another machine: its library, and what the library is to answer. */
static void machine(const char *library, const char *answers)
{
    tgi_nvml_close();
    setenv("TEGULA_NVML", library, 1);
    setenv("FAKE_NVML", answers, 1);
}

static tg_gpu gpu(int id)
{
    tg_gpu g = {.size = sizeof g};
    CHECK_EQ(tg_gpu_memory(id, &g), TG_OK);
    return g;
}

static tg_gpu_driver driver(void)
{
    tg_gpu_driver d = {.size = sizeof d};
    CHECK_EQ(tg_gpu_driver_look(&d), TG_OK);
    return d;
}

static void there_is_none(void)
{
    uint64_t most = 7;
    tg_gpu *list = (tg_gpu *)&most;
    size_t n = 9;
    CHECK_EQ(tg_gpu_count(), 0);
    const tg_gpu g = gpu(TG_GPU_CURRENT);
    CHECK(g.total_bytes == 0 && g.free_bytes == 0 && g.used_bytes == 0 && g.problem[0]);
    CHECK_EQ(tg_gpu_memory_all(NULL, &list, &n), TG_OK);
    CHECK(list == NULL && n == 0);
    CHECK_EQ(tg_gpu_most_free(&most), TG_GPU_NONE);
    CHECK_EQ(most, 0);
    CHECK(tg_gpu_open(0) == NULL && tg_gpu_open(TG_GPU_CURRENT) == NULL);
    CHECK_EQ(tg_gpu_read(NULL, &most, NULL, NULL), TG_E_ARG);
    CHECK(tg_gpu_free_bytes(0, 1) == 0 && tg_gpu_used_bytes(0, 1) == 0);
}

static void test_without_a_library_there_are_no_gpus_and_no_errors(void)
{
    machine("libtegula_no_such_library.so.1", "");
    there_is_none();
    CHECK(strstr(driver().problem, "no_such_library") != NULL);
    machine("none", "");
    there_is_none();
    CHECK(strstr(driver().problem, "TEGULA_NVML") != NULL);
}

static void test_a_library_that_lacks_what_is_needed_is_named(void)
{
    machine(FAKE_NVML_BROKEN, "");
    there_is_none();
    CHECK(strstr(driver().problem, "nvmlInit_v2") != NULL);
}

static void test_a_driver_that_does_not_start_says_why(void)
{
    machine(FAKE_NVML, "init=18");
    there_is_none();
    CHECK(strstr(driver().problem, "different versions") != NULL);
    machine(FAKE_NVML, "init=9");
    there_is_none();
    CHECK(strstr(driver().problem, "not loaded") != NULL);
    machine(FAKE_NVML, "gpus=0");
    there_is_none();
    CHECK_STR(driver().version, "555.42");
}

static void test_several_gpus_are_listed_with_all_that_is_told(void)
{
    tg_gpu *list = NULL;
    size_t n = 0;
    machine(FAKE_NVML, "gpus=3");
    CHECK_EQ(tg_gpu_memory_all(NULL, &list, &n), TG_OK);
    CHECK_EQ(n, 3);
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(list[i].id, i);
        CHECK_EQ(list[i].total_bytes, (i == 2 ? 16 : 8 * (i + 1)) * GIB);
        CHECK_EQ(list[i].used_bytes, 2 * GIB); /* the driver's own reserve included */
        CHECK_EQ(list[i].free_bytes, list[i].total_bytes - 2 * GIB);
        CHECK_STR(list[i].problem, "");
        CHECK_EQ(list[i].pool_reserved_bytes, 0);
    }
    CHECK_STR(list[1].name, "Pretended 1?");
    CHECK_STR(list[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
    CHECK_STR(list[1].pci, "00000000:02:00.0");
    CHECK(list[1].compute_major == 7 && list[1].compute_minor == 5);
    CHECK_EQ(list[0].n_processes, 2);
    CHECK_EQ(list[0].process[0].pid, 4712); /* the larger one first */
    CHECK_EQ(list[0].process[0].used_bytes, GIB / 32);
    CHECK_EQ(list[0].process[1].used_bytes, GIB / 64);
    CHECK_EQ(list[1].n_processes, 0);
    tg_memory_list_free(list);
}

static void test_an_old_driver_tells_memory_and_little_else(void)
{
    machine(FAKE_NVML_OLD, "");
    const tg_gpu g = gpu(0);
    CHECK_EQ(g.total_bytes, 8 * GIB);
    CHECK_EQ(g.used_bytes, 2 * GIB);
    CHECK_STR(g.uuid, "");
    CHECK_STR(g.problem, "");
    CHECK_EQ(g.n_processes, 0);
}

static void test_one_failing_gpu_leaves_the_others(void)
{
    uint64_t most = 0, total = 1, used = 1;
    machine(FAKE_NVML, "gpus=3,lost=1");
    CHECK_EQ(tg_gpu_count(), 3);
    const tg_gpu lost = gpu(1);
    CHECK(lost.total_bytes == 0 && lost.free_bytes == 0 && lost.used_bytes == 0);
    CHECK(strstr(lost.problem, "NVML error 15") != NULL);
    CHECK_STR(lost.name, "Pretended 1?");
    CHECK_EQ(gpu(0).total_bytes, 8 * GIB);
    CHECK_EQ(tg_gpu_most_free(&most), 2);
    CHECK_EQ(most, 14 * GIB);
    CHECK_EQ(tg_gpu_read(tg_gpu_open(1), &total, NULL, &used), TG_E_DEVICE);
    CHECK(total == 0 && used == 0);

    machine(FAKE_NVML, "gpus=2,closed=0");
    CHECK(strstr(gpu(0).problem, "no permission") != NULL);
    CHECK_EQ(gpu(0).total_bytes, 0);
    CHECK_EQ(gpu(1).total_bytes, 8 * GIB);
}

static void test_holders_that_are_not_told_are_unknown_and_no_zeros(void)
{
    machine(FAKE_NVML, "denied");
    tg_gpu g = gpu(0);
    CHECK_EQ(g.total_bytes, 8 * GIB); /* memory is known all the same */
    CHECK(strstr(g.problem, "no permission") != NULL);
    CHECK_EQ(g.n_processes, 0);
    machine(FAKE_NVML, "hidden");
    g = gpu(0);
    CHECK_EQ(g.n_processes, 2);
    CHECK(g.process[0].used_bytes == TG_NO_LIMIT);
    machine(FAKE_NVML, "crowd=40");
    g = gpu(0);
    CHECK_EQ(g.n_processes, 40);
    CHECK_EQ(g.process[0].pid, 4711 + 39);
    CHECK_EQ(g.process[15].pid, 4711 + 24);
    machine(FAKE_NVML, "crowd=1024");
    g = gpu(0);
    CHECK_EQ(g.n_processes, 1024);
    CHECK_EQ(g.process[0].pid, 4711 + 1023);
    machine(FAKE_NVML, "crowd=1025"); /* the driver lists none, and neither do we */
    g = gpu(0);
    CHECK_EQ(g.n_processes, 0);
    CHECK_EQ(g.process[0].pid, 0);
    CHECK(strstr(g.problem, "1025 programs") != NULL);
}

/* `self` stands for our process, on GPU 0. */
static int others(const char *library, const char *answers, unsigned self, uint64_t *bytes,
                  int *listed)
{
    machine(library, answers);
    return tgi_nvml_count() > 0 && tgi_nvml_others(tgi_nvml_device_at(0), self, bytes, listed);
}

static void test_what_others_hold_is_told_of_all_or_not_at_all(void)
{
    uint64_t bytes = 0;
    int listed = 0;
    CHECK(others(FAKE_NVML, "", 1, &bytes, &listed));
    CHECK_EQ(bytes, 3 * (GIB / 64)); /* of two */
    CHECK(!listed);
    CHECK(others(FAKE_NVML, "", 4711, &bytes, &listed));
    CHECK_EQ(bytes, 2 * (GIB / 64));
    CHECK(listed);
    CHECK(!others(FAKE_NVML, "denied", 4711, &bytes, &listed));
    CHECK(!others(FAKE_NVML, "hidden", 4711, &bytes, &listed));
    CHECK(!others(FAKE_NVML, "crowd=1025", 4711, &bytes, &listed));
    CHECK(!others(FAKE_NVML, "closed=0", 4711, &bytes, &listed));
    CHECK(!others(FAKE_NVML_OLD, "", 4711, &bytes, &listed));
}

static void test_ids_that_are_none_give_zeros(void)
{
    machine(FAKE_NVML, "gpus=2");
    for (int id = -5; id < 70; id++) {
        const tg_gpu g = gpu(id);
        const int real = id == TG_GPU_CURRENT || id == 0 || id == 1;
        CHECK_EQ(g.total_bytes > 0, real);
        CHECK_EQ(tg_gpu_free_bytes(id, 0), g.free_bytes);
        CHECK_EQ(tg_gpu_used_bytes(id, 0), g.used_bytes);
        CHECK_EQ(tg_gpu_open(id) != NULL, real);
    }
    CHECK_EQ(tg_gpu_memory(0, NULL), TG_E_ARG);
    tg_gpu wrong = {.size = 3};
    CHECK_EQ(tg_gpu_memory(0, &wrong), TG_E_ARG);
}

static void test_of_gpus_with_equal_room_the_first_is_taken(void)
{
    uint64_t most = 0;
    machine(FAKE_NVML, "gpus=2"); /* both have 6 GiB free */
    CHECK_EQ(tg_gpu_most_free(&most), 0);
    CHECK_EQ(most, 6 * GIB);
    machine(FAKE_NVML, "gpus=4");
    CHECK_EQ(tg_gpu_most_free(NULL), 2);
}

static void test_a_handle_reads_what_the_long_way_reads(void)
{
    uint64_t total = 0, free_now = 0, used = 0;
    machine(FAKE_NVML, "gpus=3");
    const tg_gpu_handle *h = tg_gpu_open(1);
    CHECK_EQ(tg_gpu_read(h, &total, &free_now, &used), TG_OK);
    const tg_gpu g = gpu(1);
    CHECK(total == g.total_bytes && free_now == g.free_bytes && used == g.used_bytes);
    CHECK_EQ(tg_gpu_read(h, NULL, NULL, NULL), TG_OK);
}

static int preloaded = -1;

static int current_is_one(void)
{
    return 1;
}

static tg_status preload(int id, tgi_err *err)
{
    preloaded = id;
    return id == 0 ? tgi_fail(err, TG_E_DEVICE, "no context") : TG_OK;
}

/* Memory of a device is an address that nobody here may touch. */
static void *device_alloc(void *user, size_t bytes)
{
    uint64_t *next = user;
    const uint64_t at = *next;
    *next += bytes;
    return (void *)(uintptr_t)at;
}

static void device_free(void *user, void *at, size_t bytes)
{
    (void)user, (void)at, (void)bytes;
}

/* Half a GiB in use on device 1, half a GiB idle. */
static tg_pool *pool_of_one(uint64_t *next)
{
    const tg_raw raw = {.size = sizeof raw,
                        .kind = TG_MEMORY_DEVICE,
                        .device = 1,
                        .user = next,
                        .alloc = device_alloc,
                        .free = device_free};
    tg_pool *pool = NULL;
    void *a = NULL, *b = NULL;
    CHECK_EQ(tg_pool_open(NULL, &raw, NULL, &pool), TG_OK);
    CHECK_EQ(tg_pool_alloc(pool, GIB / 2, "weights", &a), TG_OK);
    CHECK_EQ(tg_pool_alloc(pool, GIB / 2, "arena", &b), TG_OK);
    CHECK_EQ(tg_pool_free(pool, a), TG_OK);
    CHECK_STR(tg_pool_name(pool), "device 1");
    return pool;
}

static void test_a_backend_says_what_is_current_and_what_is_ours(void)
{
    static const tgi_gpu_hooks hooks = {current_is_one, preload};
    uint64_t next = 1ull << 40;
    tgi_err e = {0};
    machine(FAKE_NVML, "gpus=2");
    CHECK_EQ(gpu(TG_GPU_CURRENT).id, 0);
    CHECK_STATUS(tgi_gpu_preload(0, &e), TG_E_UNSUPPORTED, e);
    tgi_gpu_set_hooks(&hooks);
    tg_pool *pool = pool_of_one(&next);
    const tg_gpu g = gpu(TG_GPU_CURRENT);
    CHECK_EQ(g.id, 1);
    CHECK(g.pool_allocated_bytes == GIB / 2 && g.pool_reserved_bytes == GIB);
    CHECK_EQ(tg_gpu_free_bytes(TG_GPU_CURRENT, 0), 6 * GIB);
    CHECK_EQ(tg_gpu_free_bytes(TG_GPU_CURRENT, 1), 6 * GIB + GIB / 2);
    CHECK_EQ(tg_gpu_used_bytes(TG_GPU_CURRENT, 1), 2 * GIB);
    CHECK_EQ(tg_gpu_used_bytes(TG_GPU_CURRENT, 0), 2 * GIB - GIB / 2);
    CHECK_EQ(tg_gpu_free_bytes(0, 1), 6 * GIB);
    CHECK_OK(tgi_gpu_preload(TG_GPU_CURRENT, &e), e);
    CHECK_EQ(preloaded, 1);
    CHECK_STATUS(tgi_gpu_preload(0, &e), TG_E_DEVICE, e);
    CHECK_STATUS(tgi_gpu_preload(5, &e), TG_E_ARG, e);
    CHECK_EQ(tg_gpu_preload(NULL, 5), TG_E_ARG);
    tgi_gpu_set_hooks(NULL);
    CHECK(tg_mem_clear() >= GIB / 2);
    CHECK_EQ(gpu(1).pool_reserved_bytes, GIB / 2);
    tg_pool_close(&pool, NULL);
}

static uint64_t give_back(void *user)
{
    uint64_t *kept = user;
    const uint64_t bytes = *kept;
    *kept = 0;
    return bytes;
}

static void test_one_call_empties_every_cache(void)
{
    uint64_t a = 1000, b = 2000;
    void *held[64];
    tg_mem_clear();
    CHECK(tgi_cache_register("a", give_back, &a) && tgi_cache_register("b", give_back, &b));
    CHECK(tg_mem_clear() >= 3000);
    CHECK(a == 0 && b == 0);
    a = 500;
    tgi_cache_unregister(give_back, &a);
    tg_mem_clear();
    CHECK_EQ(a, 500);
    tgi_cache_unregister(give_back, &b);
    /* What malloc keeps after frees goes back too: 64 blocks of 64 KiB below one that stays. */
    for (int i = 0; i < 64; i++)
        if ((held[i] = tgi_malloc(TGI_TAG_MISC, 65536)) != NULL)
            memset(held[i], 1, 65536);
    void *stays = tgi_malloc(TGI_TAG_MISC, 65536);
    for (int i = 0; i < 64; i++)
        tgi_free(held[i]);
    if (!TG_SANITIZED)
        CHECK(tg_mem_clear() >= 3u << 20);
    tgi_free(stays);
}

static void test_sizes_and_times_have_units(void)
{
    uint64_t bytes = 5;
    double s = 5;
    CHECK_EQ(tg_bytes_to_mib(0), 0);
    CHECK_EQ(tg_bytes_to_mib((1u << 20) - 1), 0);
    CHECK_EQ(tg_bytes_to_mib(1u << 20), 1);
    CHECK_EQ(tg_bytes_to_mib(UINT64_MAX), UINT64_MAX >> 20);
    CHECK_EQ(tg_size_parse(NULL, "1.5GiB", 0, &bytes), TG_OK);
    CHECK_EQ(bytes, 3 * GIB / 2);
    CHECK_EQ(tg_size_parse(NULL, "50%", 1000, &bytes), TG_OK);
    CHECK_EQ(bytes, 500);
    CHECK_EQ(tg_size_parse(NULL, "50%", 0, &bytes), TG_E_ARG);
    CHECK_EQ(tg_size_parse(NULL, "50", 1000, &bytes), TG_E_ARG);
    CHECK_EQ(bytes, 500);
    CHECK_EQ(tg_duration_parse(NULL, "500ms", &s), TG_OK);
    CHECK_NEAR(s, 0.5, 0);
    CHECK_EQ(tg_duration_parse(NULL, "1.5m", &s), TG_OK);
    CHECK_NEAR(s, 90, 0);
    static const char *const bad[] = {"", "1", "0s", "-1s", "s", "1 s", "1d", "1000h", "1sx"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(tg_duration_parse(NULL, bad[i], &s), TG_E_ARG);
    CHECK_NEAR(s, 90, 0);
}

int main(void)
{
    RUN(test_without_a_library_there_are_no_gpus_and_no_errors);
    RUN(test_a_library_that_lacks_what_is_needed_is_named);
    RUN(test_a_driver_that_does_not_start_says_why);
    RUN(test_several_gpus_are_listed_with_all_that_is_told);
    RUN(test_an_old_driver_tells_memory_and_little_else);
    RUN(test_one_failing_gpu_leaves_the_others);
    RUN(test_holders_that_are_not_told_are_unknown_and_no_zeros);
    RUN(test_what_others_hold_is_told_of_all_or_not_at_all);
    RUN(test_ids_that_are_none_give_zeros);
    RUN(test_of_gpus_with_equal_room_the_first_is_taken);
    RUN(test_a_handle_reads_what_the_long_way_reads);
    RUN(test_a_backend_says_what_is_current_and_what_is_ours);
    RUN(test_one_call_empties_every_cache);
    RUN(test_sizes_and_times_have_units);
    tgi_nvml_close();
    return TEST_END();
}
