/* test_estimate.c - every formula and threshold of tegula_estimate.h, against numbers worked by
 * hand (docs/reference/estimators.md), from both sides. Where a published sample contradicts
 * its own formula, only the formula's value is here. */
#include "engine/base/json.h"
#include "engine/estimate/estimate.h"
#include "engine/estimate/saved.h"
#include "engine/settings/config.h"
#include "engine/settings/words.h"
#include "tests/onnx_bytes.h"
#include "tests/tg_test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GIB(x) ((uint64_t)((x)*1073741824.0))

static tgi_err err;

/* ---- Data ---- */

static void images_are_a_dense_array(void)
{
    static const struct {
        int64_t n, h, w, c;
        tg_dtype dtype;
        uint64_t bytes;
    } rows[] = {
        {1, 1, 1, 1, TG_DTYPE_U8, 1},
        {1000, 224, 224, 3, TG_DTYPE_F32, 602112000}, /* 0.561 GiB */
        {1000, 224, 224, 3, TG_DTYPE_F16, 301056000},
        {1000, 224, 224, 3, TG_DTYPE_U8, 150528000},
        {60000, 28, 28, 1, TG_DTYPE_U8, 47040000},
        {10, 50000, 50000, 1, TG_DTYPE_F64, 200000000000}, /* beyond 32 bits */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t b = 0;
        CHECK_EQ(tg_estimate_image_bytes(rows[i].n, rows[i].h, rows[i].w, rows[i].c,
                                         rows[i].dtype, &b),
                 TG_OK);
        CHECK_EQ(b, rows[i].bytes);
    }
    CHECK_NEAR(602112000 / TGI_GIB, 0.561, 0.0005);
}

static void what_is_no_number_of_bytes_is_refused(void)
{
    uint64_t b = 7;
    CHECK_EQ(tg_estimate_image_bytes(0, 1, 1, 1, TG_DTYPE_U8, &b), TG_E_ARG);
    CHECK_EQ(tg_estimate_image_bytes(1, -1, 1, 1, TG_DTYPE_U8, &b), TG_E_ARG);
    CHECK_EQ(tg_estimate_image_bytes(1, 1, 1, 1, TG_DTYPE_NONE, &b), TG_E_ARG);
    CHECK_EQ(tg_estimate_image_bytes(INT64_MAX / 2, 1, 1, 3, TG_DTYPE_U8, &b), TG_E_ARG);
    CHECK_EQ(tg_estimate_text_bytes(INT64_MAX / 4, 3, TG_DTYPE_I64, &b), TG_E_ARG);
    CHECK_EQ(b, 7); /* untouched */
}

static void texts_are_ids_and_a_mask(void)
{
    uint64_t b = 0;
    CHECK_EQ(tg_estimate_text_bytes(1000, 128, TG_DTYPE_I64, &b), TG_OK);
    CHECK_EQ(b, 1000 * 2 * 128 * 8);
    CHECK_EQ(tg_estimate_text_bytes(1, 1, TG_DTYPE_I32, &b), TG_OK);
    CHECK_EQ(b, 8);
}

static void a_visual_question_set_is_the_sum_of_its_parts(void)
{
    tg_vqa_spec s = {.size = sizeof s, .samples = 1000};
    tg_vqa_size r = {.size = sizeof r};
    CHECK_EQ(tg_estimate_vqa(&s, &r), TG_OK); /* all defaults */
    CHECK_EQ(r.image_bytes, 602112000);
    CHECK_EQ(r.question_bytes, 1000 * 2 * 32 * 8);
    CHECK_EQ(r.answer_bytes, 1000 * 2 * 32 * 8);
    CHECK_EQ(r.metadata_bytes, 1024000);
    CHECK_EQ(r.total_bytes, 602112000 + 512000 + 512000 + 1024000);
    s.images_on_disk = 1;
    s.metadata_bytes = -1;
    s.answer_length = 1;
    s.token_dtype = TG_DTYPE_I32;
    CHECK_EQ(tg_estimate_vqa(&s, &r), TG_OK);
    CHECK_EQ(r.image_bytes, 602112000); /* said, but not in memory */
    CHECK_EQ(r.total_bytes, 1000 * 2 * 32 * 4 + 1000 * 2 * 1 * 4);
    s.samples = 0;
    CHECK_EQ(tg_estimate_vqa(&s, &r), TG_E_ARG);
    s.size = 1;
    CHECK_EQ(tg_estimate_vqa(&s, &r), TG_E_ARG);
}

static void strategies_change_at_half_and_at_twice(void)
{
    static const struct {
        uint64_t needed, available;
        tg_data_strategy want;
    } rows[] = {
        {0, 1, TG_DATA_SMALL},
        {GIB(15.5), GIB(32), TG_DATA_SMALL}, /* 48 % */
        {GIB(16) - 1, GIB(32), TG_DATA_SMALL},
        {GIB(16), GIB(32), TG_DATA_MEDIUM}, /* exactly half */
        {GIB(32), GIB(32), TG_DATA_MEDIUM},
        {GIB(64) - 1, GIB(32), TG_DATA_MEDIUM},
        {GIB(64), GIB(32), TG_DATA_LARGE}, /* exactly twice */
        {3, 7, TG_DATA_SMALL},
        {4, 7, TG_DATA_MEDIUM},
        {13, 7, TG_DATA_MEDIUM},
        {14, 7, TG_DATA_LARGE},
        {0, 0, TG_DATA_LARGE},
        {UINT64_MAX, UINT64_MAX / 2, TG_DATA_LARGE},
        {UINT64_MAX - 2, UINT64_MAX / 2, TG_DATA_MEDIUM}, /* nothing wraps */
        {UINT64_MAX, UINT64_MAX, TG_DATA_MEDIUM},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(tg_estimate_strategy(rows[i].needed, rows[i].available), rows[i].want);
    CHECK_STR(tg_data_strategy_name(TG_DATA_MEDIUM), "medium");
}

/* ---- Batches ---- */

static void both_batch_formulas_by_hand(void)
{
    /* sample = 224*224*3*4 + 128*768*4 = 602,112 + 393,216 = 995,328
     * published: (16 - 110*4/1000) * 1024^3 * 0.7 / 995,328 = 11,750.09
     * exact: (16*1024^3 - 440,000,000) * 0.7 / 995,328 = 11,772.9 */
    tg_batch_spec s = {.size = sizeof s, .parameters = 110000000, .memory_bytes = GIB(16)};
    tg_batch_result r = {.size = sizeof r};
    CHECK_EQ(tg_estimate_batch(&s, &r), TG_OK);
    CHECK_EQ(r.sample_bytes, 995328);
    CHECK_EQ(r.published.raw, 11750);
    CHECK_EQ(r.exact.raw, 11772);
    CHECK_EQ(r.published.batch, 8192);
    CHECK_EQ(r.exact.batch, 8192);
    CHECK_EQ(r.exact.weights_bytes, 440000000);
    CHECK_EQ(r.published.weights_bytes, (uint64_t)(0.44 * 1073741824.0));
    s.length = -1; /* pictures alone: 602,112; 16,739,869,184 * 0.7 / 602,112 = 19,461.3 */
    CHECK_EQ(tg_estimate_batch(&s, &r), TG_OK);
    CHECK_EQ(r.sample_bytes, 602112);
    CHECK_EQ(r.exact.raw, 19461);
    CHECK_EQ(r.exact.batch, 16384);
}

static void one_byte_decides_whether_a_sample_fits(void)
{
    /* 1 parameter, 1x1 pixels: 4 bytes of weights, 12 a sample; 4 + 12 / 0.7 = 21.14 */
    tg_batch_spec s = {
        .size = sizeof s, .parameters = 1, .height = 1, .width = 1, .length = -1};
    tg_batch_result r = {.size = sizeof r};
    s.memory_bytes = 22;
    CHECK_EQ(tg_estimate_batch(&s, &r), TG_OK);
    CHECK_EQ(r.exact.batch, 1);
    CHECK_EQ(r.exact.shortfall_bytes, 0);
    s.memory_bytes = 21;
    CHECK_EQ(tg_estimate_batch(&s, &r), TG_E_BUDGET);
    CHECK_EQ(r.exact.batch, 0);
    CHECK_EQ(r.exact.raw, 0);
    CHECK_EQ(r.exact.shortfall_bytes, 1);
    s.memory_bytes = 2; /* not even the weights */
    CHECK_EQ(tg_estimate_batch(&s, &r), TG_E_BUDGET);
    CHECK_EQ(r.exact.shortfall_bytes, 20);
    s.memory_bytes = 0;
    CHECK_EQ(tg_estimate_batch(&s, &r), TG_E_ARG);
}

static void a_batch_is_a_power_of_two(void)
{
    CHECK_EQ(tgi_power_of_two(0), 0);
    CHECK_EQ(tgi_power_of_two(1), 1);
    CHECK_EQ(tgi_power_of_two(8191), 4096);
    CHECK_EQ(tgi_power_of_two(8192), 8192);
    CHECK_EQ(tgi_power_of_two(UINT64_MAX), (uint64_t)1 << 63);
}

/* ---- Words ---- */

static void option_values_say_what_they_mean(void)
{
    int64_t v[3], n;
    double d;
    CHECK_OK(tgi_dims_parse("224x32x3", v, &err), err);
    CHECK(v[0] == 224 && v[1] == 32 && v[2] == 3);
    CHECK_OK(tgi_dims_parse("7x9", v, &err), err);
    CHECK_EQ(v[2], 0);
    static const char *const no_dims[] = {"224",     "0x5",  "2x",   "2x3x",
                                          "2x3x4x5", "-2x3", "2x3 ", "99999999x2"};
    for (size_t i = 0; i < sizeof no_dims / sizeof no_dims[0]; i++)
        CHECK_STATUS(tgi_dims_parse(no_dims[i], v, &err), TG_E_ARG, err);
    CHECK_OK(tgi_params_parse("110M", &n, &err), err);
    CHECK_EQ(n, 110000000);
    CHECK_OK(tgi_params_parse("1.3B", &n, &err), err);
    CHECK_EQ(n, 1300000000);
    CHECK_OK(tgi_params_parse("25557032", &n, &err), err);
    CHECK_EQ(n, 25557032);
    CHECK_STATUS(tgi_params_parse("110", &n, &err), TG_E_ARG, err); /* surely millions */
    CHECK_STATUS(tgi_params_parse("110m", &n, &err), TG_E_ARG, err);
    CHECK_OK(tgi_share_parse("50%", &d, &err), err);
    CHECK_EQ(d * 100, 50);
    CHECK_STATUS(tgi_share_parse("101%", &d, &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_share_parse("0%", &d, &err), TG_E_ARG, err);
    CHECK_OK(tgi_sizes_check("16GiB,24GB", &err), err);
    CHECK_STATUS(tgi_sizes_check("16GiB,", &err), TG_OK, err);
    CHECK_STATUS(tgi_sizes_check("16", &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_sizes_check(",", &err), TG_E_ARG, err);
    CHECK_OK(tgi_prices_check("V100 16GB=3.06,L4=0.8", &err), err);
    CHECK_STATUS(tgi_prices_check("V100=", &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_prices_check("3.06", &err), TG_E_ARG, err);
    CHECK_NEAR(tgi_price_of("V100 16GB=3.06,L4=0.8", "L4"), 0.8, 1e-12);
    CHECK_NEAR(tgi_price_of("v100-16gb=3.06", "V100 16GB"), 3.06, 1e-12);
    CHECK(tgi_price_of("V100=3.06", "L4") < 0);
    CHECK(tgi_price_of(NULL, "L4") < 0);
    CHECK(tgi_same_name("rtx4090", 7, "RTX 4090") && !tgi_same_name("rtx409", 6, "RTX 4090"));
}

/* ---- Configs ---- */

static const tgi_key keys[] = {{"schema", TGI_KEY_NUMBER, 1, 1, 1},
                               {"name", TGI_KEY_TEXT, 0, 0, 0}};

static tg_status check_text(const char *text)
{
    tgi_json *doc = NULL;
    tg_status st = tgi_json_parse(text, strlen(text), "f.json", &doc, &err);
    if (st == TG_OK)
        st = tgi_config_check(doc, keys, 2, "f.json", &err);
    tgi_json_free(&doc);
    return st;
}

static void configs_name_the_nearest_key(void)
{
    CHECK_OK(check_text("{\"schema\":1,\"name\":\"a\"}"), err);
    CHECK_EQ(check_text("{\"schema\":1,\"nmae\":\"a\"}"), TG_E_FORMAT);
    CHECK_STR(err.text, "f.json: there is no key \"nmae\"; the nearest is \"name\"");
    err = (tgi_err){0};
    CHECK_EQ(check_text("{\"name\":\"a\"}"), TG_E_FORMAT);
    CHECK_STR(err.text, "f.json: the key \"schema\" is missing");
    err = (tgi_err){0};
    CHECK_EQ(check_text("{\"schema\":2}"), TG_E_FORMAT);
    CHECK_STR(err.text, "f.json: \"schema\" is 2, outside 1 to 1");
    err = (tgi_err){0};
    CHECK_EQ(check_text("{\"schema\":1,\"name\":3}"), TG_E_FORMAT);
    CHECK_STR(err.text, "f.json: \"name\" must be a text");
    err = (tgi_err){0};
    CHECK_STATUS(check_text("[]"), TG_E_FORMAT, err);
}

static void the_table_of_gpus_is_found_and_sound(void)
{
    tgi_gpus *t = NULL;
    const tgi_gpu *g = NULL;
    unsetenv("TEGULA_CONFIGS");
    CHECK_OK(tgi_gpus_load(&t, &err), err);
    if (!t)
        return;
    CHECK(t->n >= 20);
    for (int i = 0; i < t->n; i++) {
        const double balance = t->gpu[i].fp16_flops / t->gpu[i].bytes_per_second;
        /* A slip of a unit would show. Those without matrix units do less for a byte. */
        const int plain = strncmp(t->gpu[i].name, "GTX", 3) == 0;
        CHECK(t->gpu[i].source[0] && t->gpu[i].memory_bytes >= GIB(3));
        CHECK(balance > (plain ? 15 : 30) && balance < (plain ? 35 : 700));
        CHECK(t->gpu[i].major >= 6 && t->gpu[i].minor <= 9 && t->gpu[i].multiprocessors >= 6);
    }
    CHECK_OK(tgi_gpus_find(t, "a100-80gb", 9, &g, &err), err);
    CHECK(g && g->memory_bytes == GIB(80));
    CHECK_EQ(tgi_gpus_find(t, "RTX 409", 7, &g, &err), TG_E_ARG);
    CHECK(strstr(err.text, "RTX 4090") != NULL);
    err = (tgi_err){0};
    CHECK_OK(tgi_gpus_find(t, "rtx 3060", 8, &g, &err), err); /* the one build of it */
    CHECK(g && strcmp(g->name, "RTX 3060 12GB") == 0);
    CHECK_STATUS(tgi_gpus_find(t, "A100", 4, &g, &err), TG_E_ARG, err);
    CHECK_OK(tgi_gpus_find(t, "GTX 1080", 8, &g, &err), err);
    CHECK(g && !tgi_gpu_is_served(g)); /* no kernels before 7.5 */
    CHECK_OK(tgi_gpus_find(t, "RTX 4060 Laptop", 15, &g, &err), err);
    CHECK(g && tgi_gpu_is_served(g) && g->memory_bytes == GIB(8));
    tgi_free(t);
}

static void another_folder_of_configs_is_the_only_one(void)
{
    char path[256];
    setenv("TEGULA_CONFIGS", "/nowhere", 1);
    CHECK_STATUS(tgi_config_path("gpus.json", path, sizeof path, &err), TG_E_NOT_FOUND, err);
    setenv("TEGULA_CONFIGS", TG_SOURCE_DIR "/configs", 1);
    CHECK_OK(tgi_config_path("gpus.json", path, sizeof path, &err), err);
    CHECK_STR(path, TG_SOURCE_DIR "/configs/gpus.json");
    CHECK_STATUS(tgi_config_path("none.json", path, sizeof path, &err), TG_E_NOT_FOUND, err);
    unsetenv("TEGULA_CONFIGS");
}

/* ---- Lists ---- */

static char list_path[64] = "tegula-list-XXXXXX";

static tg_status count(const char *text, const char *ending, int64_t *n, char *member)
{
    char path[80];
    snprintf(path, sizeof path, "%s/list%s", list_path, ending);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    const tg_status st = tgi_list_count(path, n, member, 64, &err);
    unlink(path);
    return st;
}

static void lists_are_counted_as_they_stream_by(void)
{
    static const struct {
        const char *ending, *text, *member;
        int64_t n;
    } good[] = {
        {".json", "[]", "", 0},
        {".json", "[1]", "", 1},
        {".json", " [ {\"a\":[1,2,3]} , \"x,y]\" ,[ [],[] ] ]\n", "", 3},
        {".json", "{\"info\":{\"n\":[1,2,3]},\"questions\":[{},{}],\"q\":[1]}", "questions", 2},
        {".json", "{\"a\":\"b\",\"images\":[{\"k\":\"v\"},{},{}]}", "images", 3},
        {".json", "[\"\\\"]\",\"\\\\\"]", "", 2},
        {".json", "\xef\xbb\xbf[1,2]", "", 2},
        {".jsonl", "{\"a\":1}\n\n  \n{\"b\":[1,2]}\n", "", 2},
        {".jsonl", "{}\r\n{}", "", 2},
        {".jsonl", "", "", 0},
    };
    static const char *const bad[] = {"",          "3",        "{}",  "[1",      "[1,,2]",
                                      "[1]]",      "[1} ",     "\"a", "[1] [2]", "[,1]",
                                      "{\"a\":1}", "[\"\n\"]", "[1],"};
    static const char *const bad_lines[] = {"{\n}\n", "\"a\nb\"\n", "{} {}\n", "]\n"};
    int64_t n;
    char member[64], deep[1100];
    CHECK(mkdtemp(list_path) != NULL);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        n = -1;
        CHECK_OK(count(good[i].text, good[i].ending, &n, member), err);
        CHECK_EQ(n, good[i].n);
        CHECK_STR(member, good[i].member);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_STATUS(count(bad[i], ".json", &n, member), TG_E_FORMAT, err);
    for (size_t i = 0; i < sizeof bad_lines / sizeof bad_lines[0]; i++)
        CHECK_STATUS(count(bad_lines[i], ".jsonl", &n, member), TG_E_FORMAT, err);
    memset(deep, '[', 1024);
    deep[1024] = 0;
    CHECK_STATUS(count(deep, ".json", &n, member), TG_E_FORMAT, err);
    rmdir(list_path);
}

/* In a child: limits cannot be raised again. A list of three times what the process may have.
 */
#define LIMIT ((rlim_t)16 << 20)

static int counted_within_the_limit(const char *path)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    tgi_err e = {0};
    char member[64];
    int64_t n = 0;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || malloc(LIMIT) != NULL)
        return 2;
    return tgi_list_count(path, &n, member, sizeof member, &e) == TG_OK ? (int)(n >> 10) : 3;
}

static void a_list_is_counted_in_less_memory_than_it_has_bytes(void)
{
    static const char name[] = "tegula-large.json";
    static char block[1 << 20];
    if (TG_SANITIZED)
        return;
    memset(block, ' ', sizeof block);
    for (size_t i = 0; i < sizeof block; i += 1024) { /* a sample a KiB */
        const int n = snprintf(block + i, 1024, "%s{\"q\": \"%0*d\"}", i ? "," : " ", 1000, 7);
        block[i + (size_t)n] = ' ';
    }
    FILE *f = fopen(name, "wb");
    CHECK(f && fputc('[', f) == '[');
    for (int i = 0; f && i < 48; i++) {
        CHECK_EQ(fwrite(block, 1, sizeof block, f), sizeof block);
        block[0] = ',';
    }
    CHECK(f && fputc(']', f) == ']');
    if (f)
        fclose(f);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(counted_within_the_limit(name));
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 48);
    unlink(name);
}

/* ---- Real things ---- */

static void put_file(const char *folder, const char *name, const void *data, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    close(fd);
}

/* An array of `shape` float32 zeros, as numpy writes it: 128 bytes of head. */
static void put_npy(const char *folder, const char *name, const char *shape, size_t elements)
{
    char file[4096] = {0};
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(file + 10, 118,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
    file[10 + n] = ' ';
    file[127] = '\n';
    put_file(folder, name, file, 128 + elements * 4);
}

static double number_at(const tgi_json *v, const char *a, const char *b)
{
    double n = -1;
    v = tgi_json_get(v, a);
    (void)tgi_json_num(b ? tgi_json_get(v, b) : v, &n);
    return n;
}

static tgi_json *ask(const char *path, const char *option, const char *value)
{
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    char *text = NULL;
    tgi_json *doc = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "ram", "1GiB"), TG_OK);
    if (option)
        CHECK_EQ(tg_opts_set(o, option, value), TG_OK);
    CHECK_EQ(tg_estimate_json(ctx, "data", o, &path, 1, &text), TG_OK);
    if (text)
        CHECK_OK(tgi_json_parse(text, strlen(text), "answer", &doc, &err), err);
    tg_text_free(text);
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
    return doc;
}

static void a_folder_is_counted_by_headers_and_the_rest_is_named(void)
{
    char folder[64] = "tegula-data-XXXXXX", inner[80], path[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(inner, sizeof inner, "%s/inner", folder);
    CHECK_EQ(mkdir(inner, 0755), 0);
    put_npy(folder, "a.npy", "4, 8", 32);
    put_npy(inner, "b.npy", "3, 4, 8", 96);
    put_file(folder, "c.mp4", "xxxx", 4);
    put_file(folder, "d.tif", "not a TIFF", 10);
    put_file(inner, "f.y4m", "YUV4MPEG2 W4 H2 C444\nFRAME\n012345678901234567890123", 51);
    put_file(folder, "e.jsonl", "{}\n{}\n{}\n{}\n{}\n", 15);
    put_file(folder, ".hidden.tif", "x", 1);
    snprintf(path, sizeof path, "%s/loop", folder);
    CHECK_EQ(symlink(".", path), 0);
    tgi_json *d = ask(folder, NULL, NULL);
    CHECK_EQ(number_at(d, "num_samples", NULL), 3);
    CHECK_EQ(number_at(d, "found", "images"), 2);
    CHECK_EQ(number_at(d, "found", "planes"), 4);
    CHECK_EQ(number_at(d, "found", "videos"), 1);
    CHECK_EQ(number_at(d, "found", "frames"), 1);
    CHECK_EQ(number_at(d, "found", "compressed_images"), 0);
    CHECK_EQ(number_at(d, "found", "largest_image_bytes"), 96 * 4);
    CHECK_EQ(number_at(d, "found", "list_samples"), 5);
    CHECK_EQ(number_at(d, "needed", "total_bytes"), 128 * 4 + 4 * 2 * 3);
    int reasons = 0;
    for (const tgi_json *r =
             tgi_json_first(tgi_json_get(tgi_json_get(d, "found"), "not_counted"));
         r; r = tgi_json_next(r), reasons++)
        CHECK_EQ(number_at(r, "files", NULL), 1);
    CHECK_EQ(reasons, 3); /* the video, the file that is no TIFF, the link */
    tgi_json_free(&d);
    d = ask(folder, "kind", "vqa"); /* five samples, the pictures as they are */
    CHECK_EQ(number_at(d, "num_samples", NULL), 5);
    CHECK_EQ(number_at(d, "needed", "image_bytes"), 512 + 24);
    CHECK_EQ(number_at(d, "needed", "question_bytes"), 5 * 2 * 32 * 8);
    tgi_json_free(&d);
    d = ask(folder, "size", "16x16x1"); /* two images and a frame at another size */
    CHECK_EQ(number_at(d, "needed", "total_bytes"), 3 * 256 * 4);
    tgi_json_free(&d);
    static const char *const made[] = {"a.npy", "inner/b.npy", "inner/f.y4m", "c.mp4",
                                       "d.tif", "e.jsonl",     ".hidden.tif", "loop"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        unlink(path);
    }
    rmdir(inner);
    CHECK_EQ(rmdir(folder), 0);
}

/* ---- GPUs ---- */

/* Two GPUs: one of 2 GiB, and one of 8 GiB twice as fast in all. */
static void write_table(const char *folder)
{
    static const char table[] =
        "{\"schema\":1,\"gpus\":["
        "{\"name\":\"Small\",\"gib\":2,\"fp16_tflops\":10,\"gb_per_second\":100,"
        "\"verified\":true,\"source\":\"made up\"},"
        "{\"name\":\"Twice\",\"gib\":8,\"fp16_tflops\":20,\"gb_per_second\":200,"
        "\"verified\":true,\"source\":\"made up\"},"
        "{\"name\":\"Tiny\",\"gib\":1,\"fp16_tflops\":99,\"gb_per_second\":999,"
        "\"verified\":true,\"source\":\"made up\"}]}";
    put_file(folder, "gpus.json", table, sizeof table - 1);
}

static tg_status ask_gpu(const char *image, const char *const *options, tgi_json **doc)
{
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    char *text = NULL;
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", TG_SOURCE_DIR "/models/tegula_denoise.onnx"), TG_OK);
    for (; *options; options += 2)
        CHECK_EQ(tg_opts_set(o, options[0], options[1]), TG_OK);
    const tg_status st = tg_estimate_json(ctx, "gpu", o, &image, 1, &text);
    if (text)
        CHECK_OK(tgi_json_parse(text, strlen(text), "answer", doc, &err), err);
    else
        fprintf(stderr, "%s\n", tg_ctx_detail(ctx));
    tg_text_free(text);
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
    return st;
}

static const char *text_at(const tgi_json *v, const char *key)
{
    const char *s = NULL;
    return tgi_json_str(tgi_json_get(v, key), &s) ? s : "(none)";
}

static void gpus_are_told_apart_by_room_time_and_price(void)
{
    char folder[64] = "tegula-gpu-XXXXXX", image[80];
    tgi_json *d = NULL;
    CHECK(mkdtemp(folder) != NULL);
    write_table(folder);
    put_npy(folder, "a.npy", "1, 1, 16, 60", 960);
    snprintf(image, sizeof image, "%s/a.npy", folder);
    setenv("TEGULA_CONFIGS", folder, 1);
    CHECK_EQ(ask_gpu(image, (const char *const[]){"gpu", "small", "deadline", "1h", NULL}, &d),
             TG_OK);
    const tgi_json *small = tgi_json_first(tgi_json_get(d, "fits")),
                   *twice = tgi_json_next(small);
    CHECK_STR(text_at(small, "gpu"), "Small");
    CHECK_STR(text_at(twice, "gpu"), "Twice");
    CHECK(!tgi_json_next(twice)); /* 1 GiB less the margin less the context is nothing */
    const double t = number_at(small, "projected_seconds", NULL);
    CHECK_NEAR(number_at(twice, "projected_seconds", NULL), t / 2, t * 1e-9);
    CHECK_NEAR(number_at(small, "roofline_seconds", NULL), t / 2, t * 1e-9); /* 50 % */
    /* 2 GiB less 512 MiB less 512 MiB */
    CHECK_EQ(number_at(small, "headroom_bytes", NULL) + number_at(small, "needed_bytes", NULL),
             1073741824);
    CHECK_STR(text_at(d, "least_for_deadline"), "Small"); /* the slowest that suffices */
    CHECK_STR(text_at(d, "host_ram"), "16 GiB");
    CHECK_STR(text_at(tgi_json_first(tgi_json_get(d, "next")), "next"), "Twice");
    tgi_json_free(&d);
    /* Twice as fast at less than twice the price is the cheaper one. */
    CHECK_EQ(ask_gpu(image,
                     (const char *const[]){"price", "Small=1,Twice=1.9", "deadline", "1h",
                                           "efficiency", "100%", NULL},
                     &d),
             TG_OK);
    CHECK_STR(text_at(d, "least_for_deadline"), "Twice");
    small = tgi_json_first(tgi_json_get(d, "fits"));
    CHECK_NEAR(number_at(small, "projected_seconds", NULL), t / 2, t * 1e-9);
    CHECK_NEAR(number_at(small, "projected_cost", NULL), t / 2 / 3600, t * 1e-9);
    tgi_json_free(&d);
    /* Only 1 GiB, and named: the next is any that has room. */
    CHECK_EQ(ask_gpu(image, (const char *const[]){"gpu", "tiny", NULL}, &d), TG_OK);
    CHECK_STR(text_at(tgi_json_first(tgi_json_get(d, "next")), "next"), "Small");
    tgi_json_free(&d);
    CHECK_EQ(ask_gpu(image,
                     (const char *const[]){"deadline", "1ms", "efficiency", "0.001%", NULL},
                     &d),
             TG_E_DEVICE);
    CHECK(d != NULL); /* and yet all is said */
    tgi_json_free(&d);
    unsetenv("TEGULA_CONFIGS");
    unlink(image);
    snprintf(image, sizeof image, "%s/gpus.json", folder);
    unlink(image);
    CHECK_EQ(rmdir(folder), 0);
}

/* ---- Training ---- */

#define NET "tegula-estimate-net.onnx"

/* y = MaxPool(Relu(Conv(x))): 1 channel of 8x8 to 2 of 8x8 to 2 of 4x4. */
static void write_net(void)
{
    static const int64_t in[] = {1, 1, 8, 8}, out[] = {1, 2, 4, 4}, w[] = {2, 1, 3, 3},
                         b[] = {2}, ones[] = {1, 1, 1, 1}, two[] = {2, 2};
    static const float zero[18];
    bytes g = {0}, attr = {0};
    b_attr_ints(&attr, "pads", 4, ones);
    b_node(&g, "Conv", (const char *const[]){"x", "w", "b", NULL}, "c", &attr);
    b_node(&g, "Relu", (const char *const[]){"c", NULL}, "r", NULL);
    b_attr_ints(&attr, "kernel_shape", 2, two);
    b_attr_ints(&attr, "strides", 2, two);
    b_node(&g, "MaxPool", (const char *const[]){"r", NULL}, "y", &attr);
    b_init(&g, "w", 1, 4, w, zero, 18 * 4);
    b_init(&g, "b", 1, 1, b, zero, 2 * 4);
    b_port(&g, 11, "x", 4, in);
    b_port(&g, 12, "y", 4, out);
    bytes m = b_model(&g, 13);
    FILE *f = fopen(NET, "wb");
    CHECK(f && fwrite(m.p, 1, m.n, f) == m.n);
    if (f)
        fclose(f);
    b_free(&m);
}

static tg_train_size train(tg_train_spec s)
{
    tg_ctx *ctx = NULL;
    tg_train_size r = {.size = sizeof r};
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    s.size = sizeof s;
    s.model = NET;
    const tg_status st = tg_estimate_training(ctx, &s, &r);
    if (st != TG_OK)
        fprintf(stderr, "%s\n", tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
    tg_ctx_close(&ctx);
    return r;
}

static void training_by_hand(void)
{
    write_net();
    /* 20 parameters. Kept a sample: x 64*4, the ReLU's output (the pooling's input too) 128*4,
     * 32 indices of 8 bytes. */
    tg_train_size r = train((tg_train_spec){.batch = 3});
    CHECK_EQ(r.parameters, 20);
    CHECK_EQ(r.weights_bytes, 80);
    CHECK_EQ(r.gradients_bytes, 80);
    CHECK_EQ(r.optimizer_bytes, 160);
    CHECK_EQ(r.per_sample_bytes, 256 + 512 + 256);
    CHECK_EQ(r.activations_bytes, 3 * 1024);
    CHECK_EQ(r.total_bytes, 320 + 3072);
    CHECK_EQ(r.effective_batch, 3);
    CHECK_EQ(r.segments, 0);
    r = train((tg_train_spec){.batch = 3, .accumulation = 4, .optimizer = TG_OPT_SGD});
    CHECK_EQ(r.effective_batch, 12);
    CHECK_EQ(r.optimizer_bytes, 0);
    CHECK_EQ(r.activations_bytes, 3 * 1024); /* accumulation adds none */
    r = train((tg_train_spec){.height = 16, .width = 8});
    CHECK_EQ(r.activations_bytes, 2 * 1024);
}

static void half_precision_by_hand(void)
{
    /* O1: float32 weights and half copies; x as half 128, the ReLU's output 256, indices 256.
     */
    tg_train_size r = train((tg_train_spec){.precision = TG_TRAIN_O1});
    CHECK_EQ(r.weights_bytes, 80 + 40);
    CHECK_EQ(r.gradients_bytes, 80);
    CHECK_EQ(r.activations_bytes, 128 + 256 + 256);
    /* O2: 2 + 4 a parameter, gradients of 2; with Adam 16 in all. */
    r = train((tg_train_spec){.precision = TG_TRAIN_O2});
    CHECK_EQ(r.weights_bytes + r.gradients_bytes + r.optimizer_bytes, 20 * 16);
    CHECK_EQ(r.activations_bytes, 128 + 256 + 256);
}

static void each_optimizer_has_its_moments(void)
{
    static const struct {
        tg_optimizer o;
        int floats;
    } rows[] = {{TG_OPT_ADAM, 2},     {TG_OPT_ADAMW, 2},   {TG_OPT_SGD, 0},
                {TG_OPT_MOMENTUM, 1}, {TG_OPT_RMSPROP, 1}, {TG_OPT_ADAGRAD, 1},
                {TG_OPT_AMSGRAD, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(train((tg_train_spec){.optimizer = rows[i].o}).optimizer_bytes,
                 20 * 4 * rows[i].floats);
}

static void checkpoints_keep_borders_and_one_segment(void)
{
    /* One segment keeps x (256) and computes all again (512 + 256); a border behind the ReLU
     * keeps x and r (768) and computes 256 again: the same, so the fewer segments win. */
    const tg_train_size r = train((tg_train_spec){.checkpointing = 1});
    CHECK_EQ(r.segments, 1);
    CHECK_EQ(r.stored_bytes, 256);
    CHECK_EQ(r.segment_bytes, 768);
    CHECK_EQ(r.activations_bytes, 1024);
    /* On a real network it helps: the shipped one has eleven layers of equal width. */
    tg_ctx *ctx = NULL;
    tg_train_spec s = {.size = sizeof s, .model = TG_SOURCE_DIR "/models/tegula_denoise.onnx"};
    tg_train_size all = {.size = sizeof all}, some = {.size = sizeof some};
    CHECK_EQ(tg_ctx_open(NULL, &ctx), TG_OK);
    CHECK_EQ(tg_estimate_training(ctx, &s, &all), TG_OK);
    s.checkpointing = 1;
    CHECK_EQ(tg_estimate_training(ctx, &s, &some), TG_OK);
    CHECK(some.segments > 1 && some.activations_bytes < all.activations_bytes * 7 / 10);
    CHECK_EQ(some.stored_bytes + some.segment_bytes, some.activations_bytes);
    s.batch = -1;
    CHECK_EQ(tg_estimate_training(ctx, &s, &all), TG_E_ARG);
    tg_ctx_close(&ctx);
    unlink(NET);
}

int main(void)
{
    RUN(images_are_a_dense_array);
    RUN(what_is_no_number_of_bytes_is_refused);
    RUN(texts_are_ids_and_a_mask);
    RUN(a_visual_question_set_is_the_sum_of_its_parts);
    RUN(strategies_change_at_half_and_at_twice);
    RUN(both_batch_formulas_by_hand);
    RUN(one_byte_decides_whether_a_sample_fits);
    RUN(a_batch_is_a_power_of_two);
    RUN(option_values_say_what_they_mean);
    RUN(configs_name_the_nearest_key);
    RUN(the_table_of_gpus_is_found_and_sound);
    RUN(another_folder_of_configs_is_the_only_one);
    RUN(lists_are_counted_as_they_stream_by);
    RUN(a_list_is_counted_in_less_memory_than_it_has_bytes);
    RUN(a_folder_is_counted_by_headers_and_the_rest_is_named);
    RUN(gpus_are_told_apart_by_room_time_and_price);
    RUN(training_by_hand);
    RUN(half_precision_by_hand);
    RUN(each_optimizer_has_its_moments);
    RUN(checkpoints_keep_borders_and_one_segment);
    return TEST_END();
}
