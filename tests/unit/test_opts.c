/* test_opts.c - the option table and sets of options. */
#include "engine/opts.h"
#include "tests/tg_test.h"

static tgi_err err;

static void test_every_row_is_whole_and_its_default_parses(void)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    tg_opts *o = NULL;
    CHECK_EQ(n, TGI_OPT_COUNT);
    CHECK_OK(tgi_opts_new(&o, &err), err);
    for (size_t i = 0; i < n; i++) {
        CHECK(t[i].name && t[i].name[0] && t[i].verbs && t[i].help && t[i].help[0]);
        CHECK_EQ(tgi_opt_find(t[i].name), i);
        if (t[i].alias)
            CHECK_EQ(tgi_opt_find(t[i].alias), i);
        if (t[i].fallback)
            CHECK_OK(tgi_opts_set(o, t[i].name, t[i].fallback, &err), err);
    }
    tg_opts_free(&o);
    CHECK(!o);
    tg_opts_free(&o);
    tg_opts_free(NULL);
}

static void test_no_name_or_alias_means_two_things(void)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            CHECK(i == j || strcmp(t[i].name, t[j].name) != 0);
            if (t[j].alias)
                CHECK(strcmp(t[i].name, t[j].alias) != 0 &&
                      (i == j || !t[i].alias || strcmp(t[i].alias, t[j].alias) != 0));
        }
}

static void test_values_are_kept_as_written_and_defaults_shine_through(void)
{
    tg_opts *o = NULL;
    tgi_tile_spec tile;
    tgi_ram_spec ram;
    tgi_compress_spec comp;
    tg_dtype dtype;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_STR(tgi_opts_str(o, TGI_OPT_TILE), "auto");
    CHECK(!tgi_opts_given(o, TGI_OPT_TILE) && !tgi_opts_ram(o, &ram));
    CHECK(!tgi_opts_str(o, TGI_OPT_RAM) && !tgi_opts_dtype(o, &dtype));

    CHECK_OK(tgi_opts_set(o, "chunk-size", "64x128", &err), err); /* an alias */
    CHECK_OK(tgi_opts_set(o, "ram", "512MiB", &err), err);
    CHECK_OK(tgi_opts_set(o, "ram", "1GiB", &err), err); /* the later one counts */
    CHECK_OK(tgi_opts_set(o, "compress", "zstd:5", &err), err);
    CHECK_OK(tgi_opts_set(o, "dtype", "same", &err), err);
    CHECK_STR(tgi_opts_str(o, TGI_OPT_TILE), "64x128");
    tgi_opts_tile(o, &tile);
    CHECK(tile.v[1] == 64 && tile.v[2] == 128);
    CHECK(tgi_opts_ram(o, &ram) && ram.bytes == 1u << 30);
    tgi_opts_compress(o, &comp);
    CHECK(comp.kind == TGI_COMPRESS_ZSTD && comp.level == 5);
    CHECK(tgi_opts_dtype(o, &dtype) && dtype == TG_DTYPE_NONE);
    tg_opts_free(&o);
}

static void test_numbers_switches_and_choices_are_typed(void)
{
    tg_opts *o = NULL;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_EQ(tgi_opts_int(o, TGI_OPT_THREADS, 6), 6); /* auto */
    CHECK_EQ(tgi_opts_int(o, TGI_OPT_LEVEL, -1), 0);  /* the default */
    CHECK_OK(tgi_opts_set(o, "threads", "3", &err), err);
    CHECK_EQ(tgi_opts_int(o, TGI_OPT_THREADS, 6), 3);
    CHECK_STATUS(tgi_opts_set(o, "threads", "0", &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_opts_set(o, "threads", "1025", &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_opts_set(o, "level", "-1", &err), TG_E_ARG, err);

    CHECK(!tgi_opts_flag(o, TGI_OPT_EXACT));
    CHECK_OK(tgi_opts_set(o, "exact", NULL, &err), err);
    CHECK(tgi_opts_flag(o, TGI_OPT_EXACT));
    CHECK_OK(tgi_opts_set(o, "exact", "false", &err), err);
    CHECK(!tgi_opts_flag(o, TGI_OPT_EXACT));
    CHECK_STATUS(tgi_opts_set(o, "exact", "maybe", &err), TG_E_ARG, err);

    CHECK_EQ(tgi_opts_choice(o, TGI_OPT_IO), 0);
    CHECK_OK(tgi_opts_set(o, "io", "read", &err), err);
    CHECK_EQ(tgi_opts_choice(o, TGI_OPT_IO), 2);
    CHECK_STATUS(tgi_opts_set(o, "io", "reads", &err), TG_E_ARG, err);
    CHECK_EQ(tgi_opts_choice(o, TGI_OPT_IO), 2); /* a refused value changes nothing */
    tg_opts_free(&o);
}

static void test_a_refusal_names_the_option_and_the_nearest(void)
{
    tg_opts *o = NULL;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_EQ(tgi_opts_set(o, "tiel", "4", &err), TG_E_ARG);
    CHECK(strstr(err.text, "\"tiel\"") && strstr(err.text, "\"tile\""));
    memset(&err, 0, sizeof err);
    CHECK_EQ(tgi_opts_set(o, "tile", "4y4", &err), TG_E_ARG);
    CHECK(strncmp(err.text, "tile: ", 6) == 0 && strstr(err.text, "HxW"));
    memset(&err, 0, sizeof err);
    CHECK_EQ(tgi_opts_set(o, "ram", "", &err), TG_E_ARG);
    CHECK(strstr(err.text, "SIZE"));
    memset(&err, 0, sizeof err);

    CHECK_STR(tgi_opt_nearest("norm"), "normalize"); /* the beginning of a name */
    CHECK_STR(tgi_opt_nearest("chunk_size"), "chunk-size");
    CHECK_STR(tgi_opt_nearest("compres"), "compress");
    CHECK(tgi_opt_nearest("zzzzzzzz") == NULL);
    CHECK(tgi_opt_nearest("") == NULL);
    tg_opts_free(&o);
}

static void test_input_tensors_collect_in_order(void)
{
    tg_opts *o = NULL;
    char name[16];
    const char *file;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "x=a.npy", &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "sigma=b=c.npy", &err), err);
    CHECK_STATUS(tgi_opts_set(o, "input-tensor", "x=again.npy", &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_opts_set(o, "input-tensor", "=a.npy", &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_opts_set(o, "input-tensor", "a.npy", &err), TG_E_ARG, err);
    CHECK_EQ(tgi_opts_n_tensors(o), 2);
    CHECK(tgi_opts_tensor(o, 0, name, sizeof name, &file));
    CHECK_STR(name, "x");
    CHECK_STR(file, "a.npy");
    CHECK(tgi_opts_tensor(o, 1, name, sizeof name, &file));
    CHECK_STR(name, "sigma");
    CHECK_STR(file, "b=c.npy");
    CHECK(!tgi_opts_tensor(o, 2, name, sizeof name, &file));
    tg_opts_free(&o);
}

static void test_a_failed_allocation_is_answered_and_leaks_nothing(void)
{
    for (uint64_t k = 1; k < 20; k++) {
        tg_opts *o = NULL;
        tgi_mem_fail_at(k);
        tg_status st = tgi_opts_new(&o, &err);
        if (st == TG_OK)
            st = tgi_opts_set(o, "model", "m.onnx", &err);
        if (st == TG_OK)
            st = tgi_opts_set(o, "input-tensor", "a=b", &err);
        if (st == TG_OK)
            st = tgi_opts_set(o, "model", "n.onnx", &err);
        tgi_mem_fail_at(0);
        CHECK_EQ(st, k <= 5 ? TG_E_NOMEM : TG_OK); /* set, text, text, list, text */
        tg_opts_free(&o);
        memset(&err, 0, sizeof err);
    }
}

/* Random text from the characters the specs are made of: refused with a detail, or kept. */
static void test_random_values_are_refused_or_kept_whole(void)
{
    static const char letters[] = "0123456789:,x-%.e/GMiBZYXautonescl=z";
    uint64_t seed = 20260;
    size_t n, accepted = 0;
    const tg_option *t = tg_option_table(&n);
    tg_opts *o = NULL;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    for (int i = 0; i < 50000; i++) {
        char text[24];
        const int len = (int)tg_rand_in(&seed, 0, sizeof text - 1);
        for (int k = 0; k < len; k++)
            text[k] = letters[tg_rand_in(&seed, 0, sizeof letters - 2)];
        text[len] = 0;
        const tgi_opt id = (tgi_opt)tg_rand_in(&seed, 0, TGI_OPT_COUNT - 1);
        if (id == TGI_OPT_INPUT_TENSOR)
            continue; /* it collects */
        const tg_status st = tgi_opts_set(o, t[id].name, text, &err);
        if (st == TG_OK && *text)
            CHECK_STR(tgi_opts_str(o, id), text);
        CHECK(st == TG_OK || (st == TG_E_ARG && err.text[0]));
        accepted += st == TG_OK;
        memset(&err, 0, sizeof err);
    }
    CHECK(accepted > 1000 && accepted < 45000);
    tg_opts_free(&o);
}

static void test_the_job_is_written_as_json(void)
{
    tg_opts *o = NULL;
    char *json = NULL;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_OK(tgi_opts_to_json(o, &json, &err), err);
    CHECK_STR(json, "{}\n");
    tgi_free(json);
    CHECK_OK(tgi_opts_set(o, "yes", NULL, &err), err); /* not of the job */
    CHECK_OK(tgi_opts_set(o, "exact", "on", &err), err);
    CHECK_OK(tgi_opts_set(o, "model", "a \"b\"\\\n\xc3\xa9.onnx", &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "x=1.npy", &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "y=2.npy", &err), err);
    CHECK_OK(tgi_opts_to_json(o, &json, &err), err);
    CHECK_STR(json, "{\n  \"model\": \"a \\\"b\\\"\\\\\\u000a\xc3\xa9.onnx\",\n"
                    "  \"input-tensor\": [\"x=1.npy\", \"y=2.npy\"],\n  \"exact\": true\n}\n");
    tgi_free(json);
    tg_opts_free(&o);
}

int main(void)
{
    RUN(test_random_values_are_refused_or_kept_whole);
    RUN(test_the_job_is_written_as_json);
    RUN(test_every_row_is_whole_and_its_default_parses);
    RUN(test_no_name_or_alias_means_two_things);
    RUN(test_values_are_kept_as_written_and_defaults_shine_through);
    RUN(test_numbers_switches_and_choices_are_typed);
    RUN(test_a_refusal_names_the_option_and_the_nearest);
    RUN(test_input_tensors_collect_in_order);
    RUN(test_a_failed_allocation_is_answered_and_leaks_nothing);
    return TEST_END();
}
