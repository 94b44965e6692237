/* test_opts.c - the option table and sets of options. */
#include "engine/settings/opts.h"
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

static void test_what_presets_may_hold_is_what_the_verb_preset_takes(void)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    for (size_t i = 0; i < n; i++) {
        const tgi_opt id = (tgi_opt)i;
        CHECK(!tgi_opt_in_preset(id) || tgi_opt_in_job(id));
        if (tgi_opt_in_preset(id))
            CHECK(strstr(t[i].verbs, " preset") != NULL);
        if (id == TGI_OPT_SCRATCH) /* of a machine, as threads are: preset auto names it, and
                                      what is written there has no name */
            continue;
        if (tgi_opt_in_job(id) && t[i].arg &&
            (strstr(t[i].arg, "FILE") || strstr(t[i].arg, "DIR")))
            CHECK(!tgi_opt_in_preset(id)); /* nobody else's paths */
    }
    CHECK(tgi_opt_in_preset(TGI_OPT_RAM) && !tgi_opt_in_preset(TGI_OPT_ROI));
    CHECK(!tgi_opt_in_preset(TGI_OPT_PRESET) && !tgi_opt_in_preset(TGI_OPT_YES));
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
    CHECK(tgi_opt_nearest("foo") == NULL); /* two of three letters are another word */
    CHECK_STR(tgi_opt_nearest("fsp"), "fps");
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
        CHECK_EQ(st, k <= 6 ? TG_E_NOMEM : TG_OK); /* set, pipes, text, text, list, text */
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
        if (id == TGI_OPT_INPUT_TENSOR || id == TGI_OPT_PRESET)
            continue; /* the one collects, the other is read */
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
    CHECK_STR(json, "{}");
    tgi_free(json);
    CHECK_OK(tgi_opts_set(o, "yes", NULL, &err), err); /* not of the job */
    CHECK_OK(tgi_opts_set(o, "exact", "on", &err), err);
    CHECK_OK(tgi_opts_set(o, "model", "a \"b\"\\\n\xc3\xa9.onnx", &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "x=1.npy", &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "y=2.npy", &err), err);
    CHECK_OK(tgi_opts_to_json(o, &json, &err), err);
    CHECK_STR(json, "{\"model\":\"a \\\"b\\\"\\\\\\u000a\xc3\xa9.onnx\","
                    "\"input-tensor\":[\"x=1.npy\",\"y=2.npy\"],\"exact\":true}");
    tgi_free(json);
    tg_opts_free(&o);
}

static tg_status load(tg_opts *o, const char *text)
{
    return tgi_opts_from_json(o, text, strlen(text), "job.json", &err);
}

static void test_a_job_reads_back_as_it_was_written(void)
{
    static const char *const set[][2] = {{"model", "a \"b\"\\/\n\x01\xc3\xa9\xff.onnx"},
                                         {"ram", "1.5GiB"},
                                         {"tile", "64x128"},
                                         {"normalize", "percentile:0.10,99.80"},
                                         {"exact", "off"},
                                         {"threads", "7"},
                                         {"input-tensor", "x=1.npy"},
                                         {"input-tensor", "y=2.npy"}};
    tg_opts *a = NULL, *b = NULL, *c = NULL;
    char *json = NULL, *again = NULL, name[8];
    const char *file;
    CHECK_OK(tgi_opts_new(&a, &err), err);
    CHECK_OK(tgi_opts_new(&b, &err), err);
    CHECK_OK(tgi_opts_new(&c, &err), err);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        CHECK_OK(tgi_opts_set(a, set[i][0], set[i][1], &err), err);
    CHECK_OK(tgi_opts_to_json(a, &json, &err), err);
    CHECK_OK(load(b, json), err);
    CHECK_STR(tgi_opts_str(b, TGI_OPT_MODEL), set[0][1]);
    CHECK_STR(tgi_opts_str(b, TGI_OPT_NORMALIZE), "percentile:0.10,99.80");
    CHECK(tgi_opts_given(b, TGI_OPT_EXACT) && !tgi_opts_flag(b, TGI_OPT_EXACT));
    CHECK(tgi_opts_tensor(b, 1, name, sizeof name, &file) && strcmp(file, "2.npy") == 0);
    CHECK_OK(tgi_opts_copy(c, b, &err), err);
    CHECK_OK(tgi_opts_to_json(c, &again, &err), err);
    CHECK_STR(again, json);
    tgi_free(json);
    tgi_free(again);
    tg_opts_free(&a);
    tg_opts_free(&b);
    tg_opts_free(&c);
}

static void test_what_is_set_already_wins_over_a_job_file(void)
{
    tg_opts *o = NULL;
    char name[8];
    const char *file;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_OK(tgi_opts_set(o, "ram", "2GiB", &err), err);
    CHECK_OK(tgi_opts_set(o, "input-tensor", "mine=m.npy", &err), err);
    CHECK_OK(load(o, " {\"ram\":\"1GiB\", \"level\" : 2,\"chunk-size\":512,\n\"exact\":true,"
                     "\"input-tensor\":[\"x=1.npy\"],\"model\":\"\\u00e9\\ud83d\\ude00\"}\n"),
             err);
    CHECK_STR(tgi_opts_str(o, TGI_OPT_RAM), "2GiB");
    CHECK_STR(tgi_opts_str(o, TGI_OPT_TILE), "512");
    CHECK_STR(tgi_opts_str(o, TGI_OPT_MODEL), "\xc3\xa9\xf0\x9f\x98\x80");
    CHECK_EQ(tgi_opts_int(o, TGI_OPT_LEVEL, -1), 2);
    CHECK(tgi_opts_flag(o, TGI_OPT_EXACT));
    CHECK_EQ(tgi_opts_n_tensors(o), 1);
    CHECK(tgi_opts_tensor(o, 0, name, sizeof name, &file) && strcmp(name, "mine") == 0);
    CHECK_STATUS(load(o, "{\"ram\":\"lots\"}"), TG_E_ARG,
                 err); /* loses, and is still checked */
    tg_opts_free(&o);
}

static void test_a_job_file_that_is_none_is_refused(void)
{
    static const struct {
        const char *text;
        tg_status st;
    } c[] = {
        {"", TG_E_FORMAT},
        {"[]", TG_E_FORMAT},
        {"{", TG_E_FORMAT},
        {"{}x", TG_E_FORMAT},
        {"{\"ram\"}", TG_E_FORMAT},
        {"{\"ram\":\"1GiB\",}", TG_E_FORMAT},
        {"{\"ram\":\"1GiB\" \"level\":1}", TG_E_FORMAT},
        {"{\"ram\":\"1GiB\",\"ram\":\"2GiB\"}", TG_E_FORMAT},
        {"{\"tile\":\"8\",\"chunk-size\":\"8\"}", TG_E_FORMAT}, /* one option, two names */
        {"{\"model\":\"a", TG_E_FORMAT},
        {"{\"model\":\"\\x\"}", TG_E_FORMAT},
        {"{\"model\":\"\\ud800\"}", TG_E_FORMAT},
        {"{\"model\":\"\\udc00\"}", TG_E_FORMAT},
        {"{\"model\":\"\\", TG_E_FORMAT},
        {"{\"model\":\"\\u12", TG_E_FORMAT},
        {"{\"model\":null}", TG_E_ARG},
        {"{\"model\":{}}", TG_E_ARG},
        {"{\"input-tensor\":\"x=1\"}", TG_E_FORMAT},
        {"{\"input-tensor\":[\"x=1\"", TG_E_FORMAT},
        {"{\"model\":5}", TG_E_ARG},
        {"{\"model\":true}", TG_E_ARG},
        {"{\"exact\":1}", TG_E_ARG},
        {"{\"ram\":1073741824}", TG_E_ARG},
        {"{\"threads\":2.5}", TG_E_ARG},
        {"{\"threads\":-1}", TG_E_ARG},
        {"{\"rma\":\"1GiB\"}", TG_E_ARG},
        {"{\"config\":\"self.json\"}", TG_E_ARG},
        {"{\"model\":\"\"}", TG_E_ARG},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        tg_opts *o = NULL;
        CHECK_OK(tgi_opts_new(&o, &err), err);
        const tg_status st = load(o, c[i].text);
        if (st != c[i].st)
            fprintf(stderr, "%s: %s\n", c[i].text, tg_status_name(st));
        CHECK(st == c[i].st && strstr(err.text, "job.json"));
        memset(&err, 0, sizeof err);
        tg_opts_free(&o);
    }
    tg_opts *o = NULL;
    CHECK_OK(tgi_opts_new(&o, &err), err);
    CHECK_STATUS(tgi_opts_from_json(o, "{}\0{}", 5, "job.json", &err), TG_E_FORMAT, err);
    CHECK_STATUS(tgi_opts_load(o, "/nowhere/job.json", &err), TG_E_NOT_FOUND, err);
    CHECK_STATUS(tgi_opts_load(o, "/", &err), TG_E_FORMAT, err);
    CHECK_STATUS(tgi_opts_load(o, "/dev/zero", &err), TG_E_FORMAT, err);
    tg_opts_free(&o);
}

/* A good file with one byte changed or cut short: some answer, never a crash (run with ASan).
 */
static void test_damaged_job_files_never_crash(void)
{
    static const char good[] = "{\"ram\":\"1GiB\",\"model\":\"\\u00e9\\ud83d\\ude00\\n\","
                               "\"input-tensor\":[\"x=1\",\"y=2\"],\"exact\":true,\"level\":3}";
    uint64_t seed = 99;
    int accepted = 0;
    for (int i = 0; i < 5000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        size_t n = sizeof good - 1;
        if (i & 1)
            n = (size_t)tg_rand_in(&seed, 0, (int64_t)n);
        else
            text[tg_rand_in(&seed, 0, (int64_t)n - 1)] = (char)tg_rand_in(&seed, 0, 255);
        tg_opts *o = NULL;
        CHECK_OK(tgi_opts_new(&o, &err), err);
        const tg_status st = tgi_opts_from_json(o, text, n, "job.json", &err);
        CHECK(st == TG_OK || st == TG_E_FORMAT || st == TG_E_ARG);
        accepted += st == TG_OK;
        memset(&err, 0, sizeof err);
        tg_opts_free(&o);
    }
    CHECK(accepted > 10 && accepted < 2500);
}

int main(void)
{
    RUN(test_a_job_reads_back_as_it_was_written);
    RUN(test_what_is_set_already_wins_over_a_job_file);
    RUN(test_a_job_file_that_is_none_is_refused);
    RUN(test_damaged_job_files_never_crash);
    RUN(test_random_values_are_refused_or_kept_whole);
    RUN(test_the_job_is_written_as_json);
    RUN(test_every_row_is_whole_and_its_default_parses);
    RUN(test_no_name_or_alias_means_two_things);
    RUN(test_what_presets_may_hold_is_what_the_verb_preset_takes);
    RUN(test_values_are_kept_as_written_and_defaults_shine_through);
    RUN(test_numbers_switches_and_choices_are_typed);
    RUN(test_a_refusal_names_the_option_and_the_nearest);
    RUN(test_input_tensors_collect_in_order);
    RUN(test_a_failed_allocation_is_answered_and_leaks_nothing);
    return TEST_END();
}
