/* test_onnx.c - the ONNX reader and the importer against files that mean harm, and files that
 * are merely broken: a named refusal, bounded memory, no crash, no leak. */
#include "engine/graph/graph.h"
#include "io/onnx.h"
#include "tests/onnx_bytes.h"
#include "tests/tg_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define MODELS TG_SHARED_DATA "/data/models/"
#define BAD TG_SHARED_DATA "/data/bad/onnx/"
#define MEMORY_CAP ((size_t)256 << 20)

/* Import and finish; whatever happens, nothing may leak. */
static tg_status digest(const char *path, tgi_err *e)
{
    tgi_graph *g = NULL;
    tg_status st = tgi_graph_import_onnx(path, &g, e);
    if (st == TG_OK)
        st = tgi_graph_finish(g, 0, e);
    tgi_graph_free(&g);
    return st;
}

static tg_status digest_bytes(const void *p, size_t n, tgi_err *e)
{
    tgi_onnx_model *m = NULL;
    tgi_graph *g = NULL;
    tg_status st = tgi_onnx_parse(p, n, &m, e);
    if (st == TG_OK)
        st = tgi_graph_lower_onnx(&m, &g, e);
    if (st == TG_OK)
        st = tgi_graph_finish(g, 0, e);
    tgi_graph_free(&g);
    tgi_onnx_close(&m);
    return st;
}

static size_t peak_since(size_t live)
{
    tgi_mem_stats m;
    tgi_mem_get_stats(&m);
    return m.peak_bytes - (live < m.peak_bytes ? live : m.peak_bytes);
}

static uint8_t *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    *n = 0;
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t *p = tgi_malloc(TGI_TAG_MISC, (size_t)size + 1);
    if (p)
        *n = fread(p, 1, (size_t)size, f);
    fclose(f);
    return p;
}

static int have_shared(void)
{
    return tg_has(BAD) && tg_has(MODELS);
}

static void damaged_files_are_refused_with_a_reason(void)
{
    DIR *d = have_shared() ? opendir(BAD) : NULL;
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[1024];
        tgi_err err = {0};
        const size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 5, ".onnx") != 0)
            continue;
        snprintf(path, sizeof path, BAD "%s", e->d_name);
        const tg_status st = digest(path, &err);
        if (st == TG_OK || st == TG_E_INTERNAL || st == TG_E_NOMEM || !err.text[0])
            fprintf(stderr, "%s: %s %s\n", e->d_name, tg_status_name(st), err.text);
        CHECK(st == TG_E_FORMAT || st == TG_E_UNSUPPORTED || st == TG_E_NOT_FOUND ||
              st == TG_E_BUDGET);
        CHECK(err.text[0] != 0);
        n++;
    }
    if (d) {
        closedir(d);
        CHECK(n >= 23);
        CHECK(peak_since(0) < MEMORY_CAP);
    }
}

static void a_file_cut_anywhere_is_refused(void)
{
    size_t n;
    uint8_t *p = slurp(MODELS "sci_low_light/model.onnx", &n);
    for (size_t cut = 0; p && cut < n; cut += 1 + cut / 500) {
        tgi_err e = {0};
        uint8_t *exact = tgi_malloc(TGI_TAG_MISC, cut ? cut : 1); /* so ASan sees one past it */
        memcpy(exact, p, cut);
        const tg_status st = digest_bytes(exact, cut, &e);
        CHECK(st != TG_E_INTERNAL && st != TG_E_NOMEM);
        /* Cut between two fields after the graph the file is whole again but for its opset. */
        CHECK(st != TG_OK || cut > n - 64);
        tgi_free(exact);
    }
    tgi_free(p);
}

static void flipped_bits_never_crash(void)
{
    uint64_t seed = 20260101;
    size_t n;
    uint8_t *p = slurp(MODELS "sci_low_light/model.onnx", &n);
    for (int k = 0; p && k < 1500; k++) {
        tgi_err e = {0};
        size_t at[4];
        for (int i = 0; i < 4; i++) {
            at[i] = (size_t)tg_rand_in(&seed, 0, (int64_t)n - 1);
            p[at[i]] ^= (uint8_t)(1u << (tg_rand(&seed) & 7));
        }
        const uint8_t *bad = p;
        const tg_status st = digest_bytes(bad, n, &e);
        CHECK(st != TG_E_INTERNAL && st != TG_E_NOMEM);
        tgi_free(p);
        p = slurp(MODELS "sci_low_light/model.onnx", &n);
    }
    CHECK(peak_since(0) < MEMORY_CAP);
    tgi_free(p);
}

/* ---- Bombs ------------------------------------------------------------------------------- */

static void megabytes_of_empty_messages_stay_small(void)
{
    static const unsigned fields[] = {1, 5, 11, 12, 13}; /* nodes, initializers, ports */
    for (int f = 0; f < 5; f++) {
        bytes graph = {0};
        const uint8_t pair[2] = {(uint8_t)(fields[f] << 3 | 2), 0};
        for (int i = 0; i < 4 << 20; i++)
            b_raw(&graph, pair, 2);
        bytes m = b_model(&graph, 13);
        tgi_mem_stats before;
        tgi_mem_get_stats(&before);
        tgi_err e = {0};
        CHECK_STATUS(digest_bytes(m.p, m.n, &e), TG_E_FORMAT, e);
        CHECK(peak_since(before.live_bytes) < MEMORY_CAP);
        b_free(&m);
    }
}

static void graphs_nested_without_end_are_refused(void)
{
    bytes graph = {0};
    for (int i = 0; i < 200; i++) { /* graph in attribute in node in graph ... */
        bytes attr = {0}, node = {0}, outer = {0};
        b_str(&attr, 1, "then_branch");
        b_msg(&attr, 6, &graph);
        b_msg(&node, 5, &attr);
        b_str(&node, 4, "If");
        b_msg(&outer, 1, &node);
        graph = outer;
    }
    bytes m = b_model(&graph, 13);
    tgi_err e = {0};
    CHECK_STATUS(digest_bytes(m.p, m.n, &e), TG_E_FORMAT, e);
    b_free(&m);
}

static bytes one_tensor(int type, int rank, const int64_t *dim, const void *data, size_t n)
{
    static const int64_t image[] = {1, 3, 8, 8};
    static const char *const in[] = {"x", "w", NULL};
    bytes graph = {0};
    b_port(&graph, 11, "x", 4, image);
    b_port(&graph, 12, "y", 4, image);
    b_init(&graph, "w", type, rank, dim, data, n);
    b_node(&graph, "Add", in, "y", NULL);
    return b_model(&graph, 13);
}

static void extents_that_overflow_or_lack_data_are_refused(void)
{
    const int64_t cases[][4] = {{INT64_MAX, INT64_MAX, 1, 1},
                                {1ll << 62, 4, 1, 1},
                                {1ll << 32, 1ll << 31, 1, 1},
                                {-1, 3, 1, 1},
                                {1, 4, 1, 1},
                                {1, 2, 1, 1}};
    const float three[3] = {1, 2, 3};
    const int64_t good[4] = {1, 3, 1, 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tgi_err e = {0};
        bytes m = one_tensor(1, 4, cases[i], three, sizeof three);
        CHECK_STATUS(digest_bytes(m.p, m.n, &e), TG_E_FORMAT, e);
        b_free(&m);
    }
    tgi_err e = {0};
    bytes m = one_tensor(1, 4, good, three, sizeof three);
    CHECK_OK(digest_bytes(m.p, m.n, &e), e);
    b_free(&m);
}

static void an_endless_loop_and_a_petabyte_are_refused_at_once(void)
{
    static const char *const in[] = {"s", NULL};
    const int64_t one[] = {3}, dims[3] = {1 << 20, 1 << 20, 1 << 10};
    const int64_t image[] = {1, 1, 8, 8};
    static const char *const add[] = {"x", "big", NULL};
    bytes graph = {0};
    b_port(&graph, 11, "x", 4, image);
    b_port(&graph, 12, "y", 4, image);
    b_init(&graph, "s", 7, 1, one, dims, sizeof dims);
    b_node(&graph, "ConstantOfShape", in, "big", NULL);
    b_node(&graph, "Add", add, "y", NULL);
    bytes m = b_model(&graph, 13);
    tgi_err e = {0};
    const tg_status st = digest_bytes(m.p, m.n, &e);
    CHECK(st == TG_E_BUDGET || st == TG_E_UNSUPPORTED);
    CHECK(peak_since(0) < MEMORY_CAP);
    b_free(&m);
}

/* ---- External data ----------------------------------------------------------------------- */

static char folder[] = "/tmp/tegula-onnx-XXXXXX";

static void write_file(const char *name, const void *p, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(p, 1, n, f) == n);
    if (f)
        fclose(f);
}

/* A model in `folder` whose weight [1,3,1,1] lies in `location`; its status. */
static tg_status with_external(const char *location, const char *offset, const char *length,
                               tgi_err *e)
{
    const int64_t image[] = {1, 3, 8, 8}, dim[] = {1, 3, 1, 1};
    static const char *const in[] = {"x", "w", NULL};
    const char *const pairs[][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    char path[512];
    bytes graph = {0}, t = b_tensor("w", 1, 4, dim);
    b_int(&t, 14, 1);
    for (int i = 0; i < 3; i++) {
        bytes entry = {0};
        if (!pairs[i][1])
            continue;
        b_str(&entry, 1, pairs[i][0]);
        b_str(&entry, 2, pairs[i][1]);
        b_msg(&t, 13, &entry);
    }
    b_port(&graph, 11, "x", 4, image);
    b_port(&graph, 12, "y", 4, image);
    b_msg(&graph, 5, &t);
    b_node(&graph, "Mul", in, "y", NULL);
    bytes m = b_model(&graph, 13);
    write_file("m.onnx", m.p, m.n);
    b_free(&m);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    return digest(path, e);
}

static void external_data_stay_inside_the_folder(void)
{
    const float w[4] = {1, 2, 3, 4};
    char a[512], b[512];
    tgi_err e = {0};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(a, sizeof a, "%s/sub", folder);
    CHECK(mkdir(a, 0700) == 0);
    write_file("w.bin", w, sizeof w);
    write_file("sub/w.bin", w, sizeof w);
    write_file("hard.bin", w, sizeof w);
    snprintf(a, sizeof a, "%s/hard.bin", folder);
    snprintf(b, sizeof b, "%s/other.bin", folder);
    CHECK(link(a, b) == 0);
    snprintf(b, sizeof b, "%s/soft.bin", folder);
    CHECK(symlink("w.bin", b) == 0);
    snprintf(b, sizeof b, "%s/softdir", folder);
    CHECK(symlink("sub", b) == 0);
    snprintf(b, sizeof b, "%s/fifo", folder);
    CHECK(mkfifo(b, 0600) == 0);

    CHECK_OK(with_external("w.bin", "4", "12", &e), e);
    CHECK_OK(with_external("sub/w.bin", NULL, NULL, &e), e);
    CHECK_STATUS(with_external("w.bin", "8", "12", &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("w.bin", "4", "8", &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("w.bin", "18446744073709551615", NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("w.bin", "-4", NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("absent.bin", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("/etc/hostname", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("../w.bin", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("sub/../w.bin", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("sub//w.bin", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("sub", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("fifo", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("soft.bin", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("softdir/w.bin", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(with_external("hard.bin", NULL, NULL, &e), TG_E_FORMAT, e);

    static const char *const names[] = {"w.bin",    "sub/w.bin", "sub",
                                        "hard.bin", "other.bin", "soft.bin",
                                        "softdir",  "fifo",      "m.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(a, sizeof a, "%s/%s", folder, names[i]);
        CHECK(remove(a) == 0);
    }
    CHECK(rmdir(folder) == 0);
}

static void a_fifo_or_a_folder_is_no_model(void)
{
    tgi_err e = {0};
    CHECK_STATUS(digest("/tmp", &e), TG_E_FORMAT, e);
    CHECK_STATUS(digest("/nonexistent/model.onnx", &e), TG_E_NOT_FOUND, e);
    CHECK_STATUS(digest("/dev/null", &e), TG_E_FORMAT, e);
}

/* ---- Refused memory ---------------------------------------------------------------------- */

/* Fail request k for k = 1, 2, ... until all succeed; steps grow so that the loop ends. */
static void refuse_each_request(const char *path)
{
    int refused = 0;
    for (uint64_t k = 1;; k += 1 + k / 200) {
        tgi_err e = {0};
        tgi_mem_stats before, after;
        tgi_mem_get_stats(&before);
        tgi_mem_fail_at(k);
        const tg_status st = digest(path, &e);
        tgi_mem_fail_at(0);
        tgi_mem_get_stats(&after);
        CHECK_EQ(after.live_blocks, before.live_blocks);
        if (st == TG_OK)
            break;
        if (st != TG_E_NOMEM)
            fprintf(stderr, "request %llu: %s\n", (unsigned long long)k, e.text);
        CHECK_EQ(st, TG_E_NOMEM);
        refused++;
    }
    CHECK(refused > 100);
}

static void every_refused_request_is_answered(void)
{
    if (!have_shared())
        return;
    refuse_each_request(MODELS "sci_low_light/model.onnx");
    refuse_each_request(MODELS "fsrcnn_x2/model.onnx");
}

int main(void)
{
    RUN(megabytes_of_empty_messages_stay_small);
    RUN(graphs_nested_without_end_are_refused);
    RUN(extents_that_overflow_or_lack_data_are_refused);
    RUN(an_endless_loop_and_a_petabyte_are_refused_at_once);
    RUN(external_data_stay_inside_the_folder);
    RUN(a_fifo_or_a_folder_is_no_model);
    RUN(damaged_files_are_refused_with_a_reason);
    RUN(a_file_cut_anywhere_is_refused);
    RUN(flipped_bits_never_crash);
    RUN(every_refused_request_is_answered);
    return TEST_END();
}
