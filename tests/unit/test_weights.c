/* Weights by name: drawn files in every form have the numbers of their table, files of others those that PyTorch reads,
 * and what is cut short, changed or does not fit memory is named. The argument is tegula-draw-weights. */
#include "io/weights.h"
#include "tests/md5.h"
#include "tests/tg_test.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define TABLE TG_SHARED_DATA "/conformance/propainter/weights.csv"
#define SAMPLES TG_SHARED_DATA "/data/weights_torch/"

static const char *draw_weights;
static char folder[256];

static const struct {
    const char *key, *file;
} models[] = {
    {"raft", "raft-things"}, {"rfc", "recurrent_flow_completion"}, {"gen", "ProPainter"}};
static const char *const forms[] = {"zip", "legacy", "safetensors"};
static const char *const names[] = {"pth", "legacy pth", "safetensors"};

/* The file of a model in that form; drawn from `table`. */
static const char *draw(const char *table, int form, int model)
{
    static char path[1024];
    char command[2048];
    snprintf(command, sizeof command, "'%s' --form %s --model %s '%s' '%s'", draw_weights,
             forms[form], models[model].key, table, folder);
    CHECK_EQ(system(command), 0);
    snprintf(path, sizeof path, "%s/%s%s", folder, models[model].file,
             form == 2 ? ".safetensors" : ".pth");
    return path;
}

static tgi_weights *open_weights(const char *path)
{
    tgi_weights *w = NULL;
    tgi_err err = {0};
    CHECK_OK(tgi_weights_open(path, &w, &err), err);
    return w;
}

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    static uint32_t table[256];
    uint32_t c = 0xffffffffu;
    for (uint32_t i = 0; i < 256 && !table[255]; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] = table[i] & 1 ? 0xedb88320u ^ table[i] >> 1 : table[i] >> 1;
    }
    for (size_t i = 0; i < n; i++)
        c = table[(c ^ p[i]) & 255] ^ c >> 8;
    return ~c;
}

/* The elements, copied; where they are mapped too, the same. Freed by the caller. */
static uint8_t *elements(const tgi_weights *w, int i)
{
    const size_t n = tgi_weights_at(w, i)->bytes;
    const void *mapped = tgi_weights_mapped(w, i);
    uint8_t *p = malloc(n + 1);
    tgi_err err = {0};
    if (!p)
        abort();
    CHECK_OK(tgi_weights_read(w, i, p, &err), err);
    CHECK(!mapped || memcmp(mapped, p, n) == 0);
    return p;
}

/* "64x3x7x7"; of a number alone "scalar" or nothing */
static void check_shape(const tgi_desc *d, const char *text)
{
    char is[128] = "";
    for (int k = 0; k < d->rank; k++)
        snprintf(is + strlen(is), sizeof is - strlen(is), "%s%lld", k ? "x" : "",
                 (long long)d->dim[k]);
    CHECK_STR(is, strcmp(text, "scalar") == 0 ? "" : text);
}

/* ---- Drawn files ------------------------------------------------------------------------- */

/* Rows of the model, each found with its numbers; how many. */
static int compare_with_table(const tgi_weights *w, const char *model)
{
    char line[512], key[16], name[160], type[16], shape[64];
    int n = 0;
    FILE *f = fopen(TABLE, "r");
    while (f && fgets(line, sizeof line, f)) {
        const uint32_t crc = (uint32_t)strtoul(strrchr(line, ',') + 1, NULL, 16);
        if (sscanf(line, "%15[^,],%159[^,],%15[^,],%63[^,]", key, name, type, shape) != 4 ||
            strcmp(key, model) != 0)
            continue;
        const int i = tgi_weights_find(w, name);
        CHECK(i >= 0);
        n++;
        if (i < 0)
            continue;
        uint8_t *p = elements(w, i);
        CHECK_STR(tgi_weights_at(w, i)->name, name);
        CHECK_STR(tgi_dtype_name(tgi_weights_at(w, i)->desc.dtype), type);
        check_shape(&tgi_weights_at(w, i)->desc, shape);
        CHECK_EQ(crc_of(p, tgi_weights_at(w, i)->bytes), crc);
        free(p);
    }
    if (f)
        fclose(f);
    return n;
}

static int count_mapped(const tgi_weights *w)
{
    int n = 0;
    for (int i = 0; i < tgi_weights_count(w); i++)
        n += tgi_weights_mapped(w, i) != NULL;
    return n;
}

static void test_drawn_files_have_the_numbers_of_their_table(void)
{
    int all[3] = {0};
    if (!tg_has(TABLE))
        return;
    for (int m = 0; m < 3; m++) {
        char sum[3][TGI_SHA256_TEXT] = {"0", "1", "2"};
        for (int form = 0; form < 3; form++) {
            tgi_err err = {0};
            tgi_weights *w = open_weights(draw(TABLE, form, m));
            if (!w)
                continue;
            CHECK_STR(tgi_weights_format(w), names[form]);
            CHECK_EQ(compare_with_table(w, models[m].key), tgi_weights_count(w));
            CHECK_EQ(tgi_weights_find(w, "module.fnet.conv1.weight"), -1);
            all[form] += tgi_weights_count(w);
            if (form != 1) /* storages of the older form lie anywhere */
                CHECK_EQ(count_mapped(w), tgi_weights_count(w));
            CHECK_OK(tgi_weights_sum(w, sum[form], &err), err);
            tgi_weights_close(&w);
        }
        CHECK_STR(sum[0], sum[1]);
        CHECK_STR(sum[0], sum[2]);
    }
    for (int form = 0; form < 3; form++)
        CHECK_EQ(all[form], 469);
}

static void test_what_one_module_has_under_two_names_is_stored_once(void)
{
    if (!tg_has(TABLE))
        return;
    tgi_weights *w = open_weights(draw(TABLE, 0, 0));
    if (!w)
        return;
    const int a = tgi_weights_find(w, "cnet.layer2.0.norm3.running_var"),
              b = tgi_weights_find(w, "cnet.layer2.0.downsample.1.running_var");
    CHECK(a >= 0 && b >= 0 && a != b);
    if (a >= 0 && b >= 0)
        CHECK(tgi_weights_mapped(w, a) == tgi_weights_mapped(w, b));
    tgi_weights_close(&w);
}

/* 157 MB of numbers: names, shapes and places are all that is kept of them. */
static void test_an_open_file_takes_little_memory(void)
{
    tgi_mem_stats before, after;
    if (!tg_has(TABLE))
        return;
    for (int form = 0; form < 3; form++) {
        const char *path = draw(TABLE, form, 2);
        tgi_mem_get_stats(&before);
        tgi_weights *w = open_weights(path);
        tgi_mem_get_stats(&after);
        CHECK(after.live_bytes - before.live_bytes < (size_t)256 << 10);
        tgi_weights_close(&w);
    }
}

/* ---- Files of others --------------------------------------------------------------------- */

static void hex_of(const uint8_t *p, size_t n, char text[33])
{
    md5 m;
    md5_init(&m);
    md5_add(&m, p, n);
    md5_hex(&m, text);
}

/* file,key,shape,dtype,mean,md5_le */
static void check_row(const tgi_weights *w, char *const col[6])
{
    char is[33];
    const int i = w ? tgi_weights_find(w, col[1]) : -1;
    CHECK(i >= 0);
    if (i < 0)
        return;
    uint8_t *p = elements(w, i);
    hex_of(p, tgi_weights_at(w, i)->bytes, is);
    CHECK_STR(is, col[5]);
    CHECK_STR(tgi_dtype_name(tgi_weights_at(w, i)->desc.dtype), col[3]);
    check_shape(&tgi_weights_at(w, i)->desc, col[2]);
    free(p);
}

static void test_sample_files_have_the_sums_that_pytorch_gives(void)
{
    char line[512], path[512], was[64] = "", *col[6];
    int n = 0;
    tgi_weights *w = NULL;
    if (!tg_has(SAMPLES "tensors.csv"))
        return;
    FILE *f = fopen(SAMPLES "tensors.csv", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *at = line;
        line[strcspn(line, "\r\n")] = 0;
        for (int k = 0; k < 6; k++)
            col[k] = at ? strsep(&at, ",") : line;
        if (strlen(col[5]) != 32)
            continue;
        if (strcmp(col[0], was) != 0) {
            tgi_weights_close(&w);
            snprintf(path, sizeof path, "%s%s", SAMPLES, col[0]);
            w = open_weights(path);
            snprintf(was, sizeof was, "%s", col[0]);
        }
        check_row(w, col);
        n++;
    }
    if (f)
        fclose(f);
    tgi_weights_close(&w);
    CHECK_EQ(n, 281);
}

/* ---- What goes wrong --------------------------------------------------------------------- */

/* A table of four small tensors, two of them of one module. */
static const char *small_table(void)
{
    static char path[512];
    static const char *const kept[] = {",cnet.layer2.0.norm3.bias,", ",cnet.norm1.num_batches_",
                                       ",cnet.layer2.0.downsample.1.bias,",
                                       ",update_block.flow_head.conv2.bias,"};
    char line[512];
    snprintf(path, sizeof path, "%s/small.csv", folder);
    FILE *in = fopen(TABLE, "r"), *out = fopen(path, "w");
    for (int n = 0; in && out && fgets(line, sizeof line, in); n++) {
        int keep = n == 0;
        for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++)
            keep |= strncmp(line, "raft,", 5) == 0 && strstr(line, kept[k]) != NULL;
        if (keep)
            fputs(line, out);
    }
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    return path;
}

static uint8_t *load(const char *path, size_t *n)
{
    struct stat st;
    uint8_t *p = stat(path, &st) == 0 ? malloc((size_t)st.st_size) : NULL;
    FILE *f = fopen(path, "rb");
    *n = p && f ? fread(p, 1, (size_t)st.st_size, f) : 0;
    if (f)
        fclose(f);
    return p;
}

static void test_a_file_that_is_cut_anywhere_is_damaged(void)
{
    const int fd = memfd_create("cut", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (int form = 0; form < 3 && tg_has(TABLE); form++) {
        size_t n;
        uint8_t *bytes = load(draw(small_table(), form, 0), &n);
        CHECK(bytes && n > 400);
        for (size_t k = 0; bytes && k <= n; k++) {
            tgi_weights *w = NULL;
            tgi_err err = {0};
            if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, k, 0) != (ssize_t)k)
                abort();
            CHECK_STATUS(tgi_weights_open(path, &w, &err), k < n ? TG_E_FORMAT : TG_OK, err);
            CHECK_EQ(w ? tgi_weights_count(w) : 0, k < n ? 0 : 4);
            tgi_weights_close(&w);
        }
        free(bytes);
    }
    close(fd);
}

static void test_every_refused_allocation_is_a_status(void)
{
    for (int form = 0; form < 3 && tg_has(TABLE); form++) {
        const char *path = draw(small_table(), form, 0);
        tg_status st = TG_E_NOMEM;
        int k = 0;
        while (st == TG_E_NOMEM && k < 500) {
            tgi_weights *w = NULL;
            tgi_err err = {0};
            tgi_mem_fail_at((uint64_t)++k);
            st = tgi_weights_open(path, &w, &err);
            tgi_mem_fail_at(0);
            CHECK(st == TG_OK || err.text[0]);
            tgi_weights_close(&w);
        }
        CHECK_EQ(st, TG_OK);
        CHECK(k > 5);
    }
}

static void test_a_file_that_is_written_into_is_told(void)
{
    tgi_err err = {0};
    char path[1024], other[1024];
    if (!tg_has(TABLE))
        return;
    snprintf(path, sizeof path, "%s", draw(small_table(), 0, 0));
    tgi_weights *w = open_weights(path);
    if (!w)
        return;
    CHECK_OK(tgi_weights_unchanged(w, &err), err);
    snprintf(other, sizeof other, "%s/other", folder); /* a new one in its place is not ours */
    FILE *f = fopen(other, "w");
    CHECK(f && fputs("new", f) >= 0);
    if (f)
        fclose(f);
    CHECK_EQ(rename(other, path), 0);
    CHECK_OK(tgi_weights_unchanged(w, &err), err);
    tgi_weights_close(&w);
    w = open_weights(draw(small_table(), 0, 0));
    f = fopen(path, "r+b");
    CHECK(f && fseek(f, 200, SEEK_SET) == 0 && fputc('x', f) == 'x');
    if (f)
        fclose(f);
    CHECK_STATUS(tgi_weights_unchanged(w, &err), TG_E_FORMAT, err);
    tgi_weights_close(&w);
}

static void check_refused(const char *bytes, size_t n, tg_status st, const char *says)
{
    char path[512];
    tgi_weights *w = NULL;
    tgi_err err = {0};
    snprintf(path, sizeof path, "%s/refused", folder);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    if (f)
        fclose(f);
    CHECK_EQ(tgi_weights_open(path, &w, &err), st);
    CHECK(strstr(err.text, says) != NULL);
    if (!strstr(err.text, says))
        fprintf(stderr, "  it says: %s\n", err.text);
    tgi_weights_close(&w);
}

static void test_what_people_have_in_the_place_of_weights_is_named(void)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    static const char page[] = "<!DOCTYPE html><html></html>";
    tgi_weights *w = NULL;
    tgi_err err = {0};
    check_refused(lfs, sizeof lfs - 1, TG_E_FORMAT, "Git LFS");
    check_refused(page, sizeof page - 1, TG_E_FORMAT, "a page of the web");
    check_refused("", 0, TG_E_FORMAT, "empty");
    check_refused("hello", 5, TG_E_FORMAT, "neither");
    check_refused("\x80\2K\1.", 5, TG_E_FORMAT, "torch.save did not write");
    CHECK_STATUS(tgi_weights_open("/nowhere/a.pth", &w, &err), TG_E_NOT_FOUND, err);
    CHECK_STATUS(tgi_weights_open("/", &w, &err), TG_E_ARG, err);
}

int main(int argc, char **argv)
{
    const char *disk = getenv("TG_DISK");
    if (argc != 2)
        return 2;
    draw_weights = argv[1];
    snprintf(folder, sizeof folder, "%s/weights_XXXXXX", disk ? disk : "/tmp");
    if (!mkdtemp(folder))
        return 2;
    RUN(test_drawn_files_have_the_numbers_of_their_table);
    RUN(test_what_one_module_has_under_two_names_is_stored_once);
    RUN(test_an_open_file_takes_little_memory);
    RUN(test_sample_files_have_the_sums_that_pytorch_gives);
    RUN(test_a_file_that_is_cut_anywhere_is_damaged);
    RUN(test_every_refused_allocation_is_a_status);
    RUN(test_a_file_that_is_written_into_is_told);
    RUN(test_what_people_have_in_the_place_of_weights_is_named);
    char command[512];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_EQ(system(command), 0);
    return TEST_END();
}
