/* Machine files: what a plan takes from them, and what is refused of a file from a stranger. */
#include "engine/settings/machine.h"

#include "engine/base/mem.h"
#include "engine/estimate/estimate.h"
#include "tegula_memory.h"
#include "tests/tg_test.h"

#include <string.h>

#define GIB ((uint64_t)1 << 30)

/* As little as a person has to write. */
#define HEAD "{\"schema\":\"tegula.machine\",\"version\":1"
#define MEMORY ",\"memory\":{\"available_bytes\":8589934592}"
#define PROCESSORS                                                                             \
    ",\"processors\":{\"model\":\"P\",\"usable\":8,\"instruction_sets\":[\"portable\","        \
    "\"avx2\"]}"
#define SMALL HEAD MEMORY PROCESSORS "}"

static tg_status parse(const char *text, tgi_machine *m, tgi_err *e)
{
    return tgi_machine_parse(text, strlen(text), "lab.json", m, e);
}

static void a_file_made_by_hand_needs_memory_and_processors_only(void)
{
    tgi_machine m;
    tgi_err e = {0};
    CHECK_OK(parse(SMALL, &m, &e), e);
    CHECK(!m.here && !m.calibrated && !m.bf16);
    CHECK_STR(m.name, "lab.json");
    CHECK_EQ(m.processors, 8);
    CHECK_EQ(m.isa, TGI_ISA_AVX2);
    CHECK_EQ(m.sets, 3);
    CHECK_EQ(m.free_bytes, 8 * GIB);
    const uint64_t all = 8 * GIB + 4 * (GIB >> 10); /* and the program's own, by default */
    CHECK_EQ(m.margin_bytes, all / 10);
    CHECK_EQ(m.budget_bytes, all - all / 10);
    CHECK_EQ(m.n_disks, 0);
    CHECK_EQ(m.n_gpus, 0);
}

static void free_memory_is_the_least_of_the_machine_and_its_cgroups(void)
{
    static const char text[] =
        HEAD ",\"memory\":{\"total_bytes\":68719476736,\"available_bytes\":60129542144}"
             ",\"process\":{\"measured_bytes\":1048576}"
             ",\"cgroups\":[{\"version\":2,\"path\":\"/pod\",\"limit_bytes\":2147483648,"
             "\"used_bytes\":0,\"free_bytes\":2147483648},{\"path\":\"/\",\"limit_bytes\":null,"
             "\"free_bytes\":null}]" PROCESSORS "}";
    tgi_machine m;
    tgi_err e = {0};
    CHECK_OK(parse(text, &m, &e), e);
    CHECK_EQ(m.free_bytes, 2 * GIB);
    CHECK_EQ(m.own_bytes, 1 << 20);
    CHECK_EQ(m.budget_bytes, 2 * GIB + (1 << 20) - (GIB >> 1));
    CHECK(strstr(m.limited_by, "cgroup") != NULL);
}

static void what_the_file_says_of_its_budget_stands(void)
{
    static const char text[] =
        HEAD ",\"memory\":{\"free_bytes\":9007199254740993,\"budget_bytes\":12345,"
             "\"margin_bytes\":7,\"limited_by\":\"cgroup /a\"}" PROCESSORS "}";
    tgi_machine m;
    tgi_err e = {0};
    size_t margin = 1;
    tg_opts *o = NULL;
    CHECK_OK(parse(text, &m, &e), e);
    CHECK(m.free_bytes == 9007199254740993u); /* all digits: no double holds it */
    CHECK_STR(m.limited_by, "cgroup /a");
    CHECK_OK(tgi_opts_new(&o, &e), e);
    CHECK_EQ(tgi_machine_budget(&m, o, &margin), 12345);
    CHECK_EQ(margin, 7);
    CHECK_OK(tgi_opts_set(o, "ram", "50%", &e), e);
    m.free_bytes = 6 * GIB;
    m.own_bytes = 2 * GIB;
    CHECK_EQ(tgi_machine_budget(&m, o, &margin), 4 * GIB);
    CHECK_EQ(margin, 0);
    CHECK_OK(tgi_opts_set(o, "ram", "3GiB", &e), e);
    CHECK_EQ(tgi_machine_budget(&m, o, NULL), 3 * GIB);
    tg_opts_free(&o);
}

static void the_process_is_the_program_there_and_what_is_held_here(void)
{
    tgi_machine m;
    tgi_err e = {0};
    uint64_t program = 0, more = 7;
    const uint64_t mib = 1 << 20;
    CHECK_OK(parse(SMALL, &m, &e), e);
    m.own_bytes = mib / 2; /* a few pages more or less are the same */
    CHECK_EQ(tgi_machine_process(&m, 0, &program, &more), mib);
    CHECK_EQ(program, mib);
    CHECK_EQ(more, 0);
    m.own_bytes += 20 * 4096;
    CHECK_EQ(tgi_machine_process(&m, 0, &program, &more), mib);
    CHECK_EQ(tgi_machine_process(&m, 512 * 1000, &program, &more), mib + 513 * 1000);
    m.own_bytes = mib;
    CHECK_EQ(tgi_machine_process(&m, 0, &program, &more), mib + mib / 2);
    m.own_bytes = mib / 2; /* of one job it never shrinks */
    CHECK_EQ(tgi_machine_process(&m, 0, &program, &more), mib + mib / 2);
    CHECK(tgi_machine_process(&m, SIZE_MAX, &program, &more) == SIZE_MAX);
    for (int pages = -40; pages < 40;
         pages++) { /* what another start counts is told beforehand */
        uint64_t now = 0, then = 0, told;
        m.own_bytes = mib + 4096 * (uint64_t)(int64_t)pages;
        (void)tgi_machine_process(&m, 0, &now, &told);
        m.own_bytes += 15 * 4096;
        (void)tgi_machine_process(&m, 0, &then, &more);
        CHECK(then <= now + told);
    }
}

/* What other parts of the program hold is the program's, and what the library holds is not
 * counted twice. */
static void the_process_here_is_measured(void)
{
    tgi_machine m;
    uint64_t before = 0, after = 0, near;
    const size_t more = 64 << 20;
    tgi_machine_here(&m);
    (void)tgi_machine_process(&m, 0, &before, &near);
    char *ours = tgi_malloc(TGI_TAG_IO, more);
    CHECK(ours != NULL);
    for (size_t i = 0; ours && i < more; i += 4096)
        ours[i] = 1;
    (void)tgi_machine_process(&m, 0, &after, &near);
    CHECK(after <= before + (1 << 20));
    tgi_free(ours);
    ours = tgi_malloc(TGI_TAG_IO, more); /* and not touched: it hides nothing */
    char *theirs = malloc(more);
    for (size_t i = 0; theirs && i < more; i += 4096)
        ((volatile char *)theirs)[i] = 1;
    (void)tgi_machine_process(&m, 0, &after, &near);
    CHECK(after >= before + more - (1 << 20));
    free(theirs);
    tgi_free(ours);
}

static void paths_belong_to_the_disk_whose_path_is_their_longest_beginning(void)
{
    static const char text[] = HEAD MEMORY PROCESSORS
        ",\"disks\":[{\"role\":\"current\",\"path\":\"/data/me\",\"free_bytes\":1000},"
        "{\"role\":\"temporary\",\"path\":\"/tmp\",\"free_bytes\":2000,\"in_memory\":true},"
        "{\"role\":\"\",\"path\":\"/tmp/big/\",\"free_bytes\":3000},"
        "{\"role\":\"\",\"path\":\"\",\"free_bytes\":5000},"
        "{\"role\":\"root\",\"path\":\"/\",\"free_bytes\":4000}]}";
    tgi_machine m;
    tgi_err e = {0};
    int in_memory = 0;
    uint64_t room = 0;
    CHECK_OK(parse(text, &m, &e), e);
    CHECK_EQ(tgi_machine_disk_free(&m, NULL), 1000);
    CHECK_EQ(tgi_machine_disk_free(&m, "out.tif"), 1000);
    CHECK_EQ(tgi_machine_disk_free(&m, "/data/me/a/out.tif"), 1000);
    CHECK_EQ(tgi_machine_disk_free(&m, "/data/meg/out.tif"), 4000);
    CHECK_EQ(tgi_machine_disk_free(&m, "/tmp/x"), 2000);
    CHECK_EQ(tgi_machine_disk_free(&m, "/tmp/big"), 3000);
    CHECK_EQ(tgi_machine_disk_free(&m, "/tmp/bigger"), 2000);
    CHECK_STR(tgi_machine_temp(&m, &in_memory, &room), "/tmp");
    CHECK(in_memory == 1 && room == 2000);
    CHECK_OK(parse(SMALL, &m, &e), e);
    CHECK(tgi_machine_disk_free(&m, "/tmp/x") == TG_NO_LIMIT); /* not known is not none */
    CHECK(tgi_machine_temp(&m, &in_memory, &room) == NULL);
}

#define SPEEDS                                                                                 \
    ",\"speeds\":{\"processor\":\"%s\",\"processors\":8,\"clear_seconds_per_byte\":1e-10,"     \
    "\"fixed_seconds\":0.01,\"finish_seconds_per_byte\":0,"                                    \
    "\"statistics_seconds_per_sample\":0,\"processor_seconds_per_sample\":1e-9,"               \
    "\"decode_seconds_per_byte\":{\"none\":0,\"deflate\":1e-8,\"zstd\":0,\"lzw\":0},"          \
    "\"encode_seconds_per_byte\":{\"none\":0,\"deflate\":1e-8,\"zstd\":0,\"lzw\":0},"          \
    "\"kernels\":{\"avx2 conv_direct\":[1e10,8e10]}}}"

static void speeds_count_when_they_are_of_the_processor_of_the_file(void)
{
    char text[2048];
    tgi_machine m;
    tgi_err e = {0};
    snprintf(text, sizeof text, HEAD MEMORY PROCESSORS SPEEDS, "P");
    CHECK_OK(parse(text, &m, &e), e);
    CHECK_EQ(m.calibrated, 1);
    CHECK_EQ(m.speeds.n_kernels, 1);
    snprintf(text, sizeof text, HEAD MEMORY PROCESSORS SPEEDS, "another");
    CHECK_OK(parse(text, &m, &e), e);
    CHECK_EQ(m.calibrated, 0);
    CHECK_EQ(parse(HEAD MEMORY PROCESSORS ",\"speeds\":{\"processor\":\"P\"}}", &m, &e),
             TG_E_FORMAT);
    CHECK(strstr(e.text, "lab.json: speeds: ") == e.text);
}

static void gpus_that_could_not_be_read_are_none(void)
{
    static const char text[] = HEAD MEMORY PROCESSORS
        ",\"gpus\":[{\"id\":0,\"name\":\"A\",\"total_bytes\":0,\"problem\":\"lost\"},"
        "{\"id\":1,\"name\":\"B\",\"total_bytes\":100,\"free_bytes\":90,\"problem\":null},"
        "{\"id\":2,\"name\":\"C\",\"total_bytes\":100}]}";
    tgi_machine m;
    tgi_err e = {0};
    CHECK_OK(parse(text, &m, &e), e);
    CHECK_EQ(m.n_gpus, 2);
    CHECK_STR(m.gpu[0].name, "B");
    CHECK_EQ(m.gpu[0].free_bytes, 90);
    CHECK_EQ(m.gpu[1].free_bytes, 100);
}

static void a_slip_of_the_pen_is_told_and_a_newer_file_may_have_more(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[]", "no machine file"},
        {"{\"schema\":\"other\"}", "no machine file"},
        {"{\"schema\":\"tegula.machine\"}", "\"version\" must be"},
        {"{\"schema\":\"tegula.machine\",\"version\":0}", "\"version\" must be"},
        {"{\"schema\":\"tegula.machine\",\"version\":2}", "of version 2; this tegula reads"},
        {HEAD PROCESSORS "}", "\"memory\" is missing"},
        {HEAD MEMORY "}", "\"processors\" is missing"},
        {HEAD ",\"memroy\":{}" MEMORY PROCESSORS "}", "\"memroy\"; the nearest is \"memory\""},
        {HEAD ",\"memory\":{\"avail_bytes\":1}" PROCESSORS "}",
         "lab.json: memory: there is no"},
        {HEAD ",\"memory\":{}" PROCESSORS "}", "none of \"budget_bytes\""},
        {HEAD ",\"memory\":{\"total_bytes\":-1}" PROCESSORS "}", "outside 0 to"},
        {HEAD ",\"memory\":{\"total_bytes\":1e19}" PROCESSORS "}", "outside 0 to"},
        {HEAD ",\"memory\":{\"total_bytes\":null}" PROCESSORS "}", "must be a number"},
        {HEAD ",\"memory\":5" PROCESSORS "}", "\"memory\" must be an object"},
        {HEAD MEMORY ",\"processors\":{\"usable\":0,\"instruction_sets\":[\"avx2\"]}}",
         "\"usable\" is 0"},
        {HEAD MEMORY ",\"processors\":{\"usable\":2}}", "\"instruction_sets\" is missing"},
        {HEAD MEMORY ",\"processors\":{\"usable\":2,\"instruction_sets\":[]}}", "none of"},
        {HEAD MEMORY ",\"processors\":{\"usable\":2,\"instruction_sets\":[7]}}",
         "list of names"},
        {HEAD MEMORY PROCESSORS ",\"disks\":[{\"path\":\"/\"}]}", "disks: row 1: the key"},
        {HEAD MEMORY PROCESSORS ",\"gpus\":[{\"name\":\"A\",\"total_bytes\":1},7]}",
         "gpus: row 2: must be an object"},
        {HEAD MEMORY PROCESSORS ",\"tegula\":\"0.0.9\",\"moon\":1}", "no key \"moon\""},
        {SMALL "{}", "lab.json"},
    };
    tgi_machine m;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tgi_err e = {0};
        CHECK_EQ(parse(bad[i].text, &m, &e), TG_E_FORMAT);
        if (!strstr(e.text, bad[i].says))
            fprintf(stderr, "%s\n  says %s\n", bad[i].text, e.text);
        CHECK(strstr(e.text, bad[i].says) != NULL);
    }
    tgi_err e = {0};
    CHECK_OK(parse(HEAD ",\"tegula\":\"999.0.0\",\"moon\":1" MEMORY PROCESSORS "}", &m, &e), e);
}

static void long_lists_end_somewhere(void)
{
    static char text[1 << 16];
    size_t n = (size_t)snprintf(text, sizeof text, HEAD MEMORY PROCESSORS ",\"gpus\":[");
    tgi_machine m;
    tgi_err e = {0};
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s{\"name\":\"A\",\"total_bytes\":1}",
                              i ? "," : "");
    snprintf(text + n, sizeof text - n, "]}");
    CHECK_OK(parse(text, &m, &e), e);
    CHECK_EQ(m.n_gpus, TGI_MACHINE_GPUS);
    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",{\"name\":\"A\",\"total_bytes\":1}");
    snprintf(text + n, sizeof text - n, "]}");
    CHECK_EQ(parse(text, &m, &e), TG_E_FORMAT);
    CHECK(strstr(e.text, "more than 256 rows") != NULL);
}

static void a_file_cut_anywhere_is_an_error(void)
{
    char text[2048];
    tgi_machine m;
    const int n = snprintf(text, sizeof text, HEAD MEMORY PROCESSORS SPEEDS, "P");
    for (int i = 0; i < n; i++) {
        tgi_err e = {0};
        CHECK(tgi_machine_parse(text, (size_t)i, "cut", &m, &e) == TG_E_FORMAT && e.text[0]);
    }
}

/* ---- GPUs by the names their drivers tell ------------------------------------------------ */

static void names_of_drivers_find_the_row_of_the_table(void)
{
    static const struct {
        const char *name;
        uint64_t gib;
        const char *row;
    } of[] = {{"NVIDIA H200", 140, "H200"},
              {"NVIDIA A100-SXM4-80GB", 80, "A100 80GB"},
              {"NVIDIA A100-SXM4-40GB", 40, "A100 40GB"},
              {"NVIDIA GeForce RTX 4070", 12, "RTX 4070"},
              {"NVIDIA GeForce RTX 4070 Ti", 12, "RTX 4070 Ti"},
              {"NVIDIA GeForce RTX 3060", 12, "RTX 3060 12GB"},
              {"NVIDIA GeForce RTX 3060 Laptop GPU", 6, "RTX 3060 Laptop"},
              {"NVIDIA GeForce RTX 3080 Laptop GPU", 16, "RTX 3080 Laptop 16GB"},
              {"NVIDIA GeForce RTX 4090 Laptop GPU", 16, "RTX 4090 Laptop"},
              {"NVIDIA GeForce RTX 3050", 8, "RTX 3050 8GB"},
              {"NVIDIA GeForce GTX 1060 6GB", 6, "GTX 1060 6GB"},
              {"GeForce GTX 1080 Ti", 11, "GTX 1080 Ti"},
              {"NVIDIA L40S", 45, "L40S"},
              {"NVIDIA L4", 22, "L4"},
              {"Tesla V100-SXM2-32GB", 32, "V100 32GB"},
              {"Tesla T4", 15, "T4"},
              {"NVIDIA H100 PCIe", 80, "H100 PCIe"},
              {"NVIDIA GeForce RTX 4070", 24, NULL},
              {"NVIDIA T400", 4, NULL},
              {"", 16, NULL}};
    tgi_gpus *table = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_gpus_load(&table, &e), e);
    for (size_t i = 0; table && i < sizeof of / sizeof of[0]; i++) {
        const tgi_gpu *g = tgi_gpus_like(table, of[i].name, of[i].gib * GIB);
        if (of[i].row)
            CHECK_STR(g ? g->name : "(none)", of[i].row);
        else
            CHECK(g == NULL);
    }
    tgi_free(table);
}

int main(void)
{
    RUN(a_file_made_by_hand_needs_memory_and_processors_only);
    RUN(free_memory_is_the_least_of_the_machine_and_its_cgroups);
    RUN(what_the_file_says_of_its_budget_stands);
    RUN(the_process_is_the_program_there_and_what_is_held_here);
    RUN(the_process_here_is_measured);
    RUN(paths_belong_to_the_disk_whose_path_is_their_longest_beginning);
    RUN(speeds_count_when_they_are_of_the_processor_of_the_file);
    RUN(gpus_that_could_not_be_read_are_none);
    RUN(a_slip_of_the_pen_is_told_and_a_newer_file_may_have_more);
    RUN(long_lists_end_somewhere);
    RUN(a_file_cut_anywhere_is_an_error);
    RUN(names_of_drivers_find_the_row_of_the_table);
    return TEST_END();
}
