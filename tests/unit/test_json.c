/* JSON in and out: what is refused, what survives a round trip, in any locale. */
#include "engine/base/json.h"
#include "engine/base/number.h"
#include "tests/comma_locale.h"
#include "tests/tg_test.h"

static tg_status parse(const char *text, tgi_json **doc, tgi_err *e)
{
    return tgi_json_parse(text, strlen(text), "t", doc, e);
}

static void refused(const char *text, size_t n, const char *why)
{
    tgi_err e = {0};
    tgi_json *doc = NULL;
    tg_status st = tgi_json_parse(text, n, "t", &doc, &e);
    if (st != TG_E_FORMAT || !strstr(e.text, why))
        fprintf(stderr, "%.*s: %s\n", (int)n, text, e.text);
    CHECK_EQ(st, TG_E_FORMAT);
    CHECK(strstr(e.text, why) != NULL);
    tgi_json_free(&doc);
}
#define REFUSED(text, why) refused("" text "", sizeof(text) - 1, why)

static void test_what_is_no_json_is_refused_with_its_place(void)
{
    REFUSED("", "missing");
    REFUSED("{\"a\":1,\"a\":2}", "\"a\" is given twice");
    REFUSED("{\"a\":1} x", "byte 8: bytes after the end");
    REFUSED("{\"a\":1}\0", "bytes after the end");
    REFUSED("{\n\"a\" 1}", "line 2");
    REFUSED("{a:1}", "quoted name");
    REFUSED("{\"a\":1,}", "quoted name");
    REFUSED("[1,]", "missing");
    REFUSED("[1", "',' or ']' expected, and the text ends there: it may have been cut off");
    REFUSED("[1 2]", "',' or ']' expected");
    REFUSED("\"abc", "does not end");
    REFUSED("\"abc\\", "does not end");
    REFUSED("\"a\nb\"", "control");
    REFUSED("\"\\x\"", "escape");
    REFUSED("\"\\u00\"", "hexadecimal");
    REFUSED("\"\\u0000\"", "u0000");
    REFUSED("\"\\ud800\"", "surrogate");
    REFUSED("\"\\ud800\\u0041\"", "surrogate");
    REFUSED("\"\\udc00\"", "surrogate");
    REFUSED("\"\xc0\x80\"", "UTF-8");
    REFUSED("\"\xed\xa0\x80\"", "UTF-8");
    REFUSED("\"\xf4\x90\x80\x80\"", "UTF-8");
    REFUSED("\"\xe2\x82\"", "UTF-8");
    REFUSED("\xef\xbb\xbf{}", "missing");
    REFUSED("nul", "missing");
    REFUSED("[true false]", "','");
}

static void test_numbers_follow_the_grammar_and_fit_a_double(void)
{
    static const char *const wrong[] = {"01",  "+1", ".5",   "1.",    "1.e5", "-",  "1e",
                                        "1e+", "--", "0x10", "1e999", "NaN",  "1-2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tgi_err e = {0};
        tgi_json *doc = NULL;
        CHECK_STATUS(parse(wrong[i], &doc, &e), TG_E_FORMAT, e);
    }
    tgi_err e = {0};
    tgi_json *doc = NULL;
    CHECK_OK(parse("[-0, 0.5, 9223372036854775807, -9223372036854775808, 9223372036854775808,"
                   " 1e3, 2.50]",
                   &doc, &e),
             e);
    static const double want[] = {
        0,    0.5, 9223372036854775807.0, -9223372036854775808.0, 9223372036854775808.0,
        1000, 2.5};
    static const int whole[] = {1, 0, 1, 1, 0, 0, 0};
    int i = 0;
    for (const tgi_json *v = tgi_json_first(doc); v; v = tgi_json_next(v), i++) {
        double d = -1;
        int64_t n = -1;
        CHECK(tgi_json_num(v, &d));
        CHECK_NEAR(d, want[i], 0);
        CHECK_EQ(tgi_json_int(v, &n), whole[i]);
        if (i == 2)
            CHECK_EQ(n, INT64_MAX); /* a double would have lost the last bits */
    }
    CHECK_EQ(i, 7);
    tgi_json_free(&doc);
}

static void test_values_answer_only_to_their_own_type(void)
{
    tgi_err e = {0};
    tgi_json *doc = NULL;
    const char *s = "unchanged";
    double d = 7;
    bool b = false;
    CHECK_OK(
        parse("{\"s\":\"a\\u00b5\\ud83d\\ude00\\n\",\"n\":null,\"t\":true,\"o\":{\"x\":[]}}",
              &doc, &e),
        e);
    CHECK(tgi_json_is_object(doc) && !tgi_json_is_array(doc));
    CHECK(!tgi_json_num(tgi_json_get(doc, "s"), &d) &&
          !tgi_json_str(tgi_json_get(doc, "t"), &s));
    CHECK(!tgi_json_str(tgi_json_get(doc, "n"), &s) &&
          !tgi_json_str(tgi_json_get(doc, "S"), &s));
    CHECK_STR(s, "unchanged");
    CHECK(tgi_json_str(tgi_json_get(doc, "s"), &s));
    CHECK_STR(s, "a\xc2\xb5\xf0\x9f\x98\x80\n");
    CHECK(tgi_json_bool(tgi_json_get(doc, "t"), &b) && b);
    const tgi_json *x = tgi_json_get(tgi_json_get(doc, "o"), "x");
    CHECK(tgi_json_is_array(x) && !tgi_json_first(x));
    CHECK(!tgi_json_get(NULL, "x") && !tgi_json_get(x, "x") && !tgi_json_first(NULL));
    tgi_json_free(&doc);
}

static void test_depth_ends_at_64(void)
{
    char text[200];
    tgi_err e = {0};
    tgi_json *doc = NULL;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    CHECK_OK(tgi_json_parse(text, 128, "t", &doc, &e), e);
    tgi_json_free(&doc);
    memset(text, '[', 200);
    refused(text, 200, "too deep");
}

static void test_every_prefix_of_a_document_is_refused_and_leaks_nothing(void)
{
    const char text[] =
        "{\"a\":[1,-2.5e3,\"x\\u0041\xc3\xa9\"],\"b\":{\"c\":null,\"d\":false}}";
    for (size_t n = 0; n + 1 < sizeof text; n++) {
        char *copy =
            tgi_malloc(TGI_TAG_MISC, n + !n); /* exact size: a sanitizer sees overreads */
        CHECK(copy != NULL);
        if (!copy)
            return;
        memcpy(copy, text, n);
        tgi_err e = {0};
        tgi_json *doc = NULL;
        CHECK_STATUS(tgi_json_parse(copy, n, "t", &doc, &e), TG_E_FORMAT, e);
        tgi_free(copy);
    }
}

static void write_all(tgi_jw *w)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "path", "a\"b\\c\x01\xff\xc3\xa9");
    tgi_jw_int(w, "least", INT64_MIN);
    tgi_jw_uint(w, "most", UINT64_MAX);
    tgi_jw_num(w, "tenth", 0.1);
    tgi_jw_num(w, "nan", NAN);
    tgi_jw_begin(w, "list", '[');
    tgi_jw_bool(w, NULL, 1);
    tgi_jw_str(w, NULL, NULL);
    tgi_jw_end(w, ']');
    tgi_jw_end(w, '}');
}

static const char written[] =
    "{\"path\":\"a\\\"b\\\\c\\u0001\\udcff\xc3\xa9\",\"least\":-9223372036854775808,"
    "\"most\":18446744073709551615,\"tenth\":0.1,\"nan\":null,\"list\":[true,null]}";

static void test_the_writer_escapes_and_keeps_every_bit(void)
{
    tgi_err e = {0};
    tgi_jw w = {0};
    char *text = NULL;
    write_all(&w);
    CHECK_OK(tgi_jw_take(&w, &text, &e), e);
    CHECK_STR(text, written);
    tgi_json *doc = NULL;
    CHECK_OK(parse(text, &doc, &e), e);
    const char *path = NULL;
    CHECK(tgi_json_str(tgi_json_get(doc, "path"), &path));
    CHECK_STR(path, "a\"b\\c\x01\xff\xc3\xa9"); /* a file name of any bytes comes back */
    tgi_json_free(&doc);
    tgi_free(text);
}

static void test_doubles_survive_a_round_trip(void)
{
    uint64_t seed = 20240611;
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = tg_rand(&seed);
        double v, back = 0;
        char t[TGI_NUMBER_TEXT];
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        const size_t n = tgi_number_text(v, t);
        CHECK(tgi_number_parse(t, n, &back));
        CHECK(memcmp(&v, &back, sizeof v) == 0);
    }
}

static void test_the_locale_of_the_host_program_changes_nothing(void)
{
    tg_commas commas;
    (void)tg_commas_begin(&commas);
    double v = 0;
    char t[TGI_NUMBER_TEXT];
    CHECK(tgi_number_parse("-12.75e1", 8, &v));
    CHECK_NEAR(v, -127.5, 0);
    CHECK(!tgi_number_parse("1,5", 3, &v));
    tgi_number_text(1.5, t);
    CHECK_STR(t, "1.5");
    tg_commas_end(&commas);
}

static void test_refused_memory_is_answered(void)
{
    for (uint64_t k = 1; k <= 2; k++) {
        tgi_err e = {0};
        tgi_jw w = {0};
        char *text = NULL;
        tgi_mem_fail_at(k);
        write_all(&w);
        const tg_status st = tgi_jw_take(&w, &text, &e);
        tgi_mem_fail_at(0);
        CHECK_EQ(st, k == 1 ? TG_E_NOMEM : TG_OK);
        tgi_free(text);
    }
    tgi_err e = {0};
    tgi_json *doc = NULL;
    tgi_mem_fail_at(1);
    CHECK_STATUS(parse("[1]", &doc, &e), TG_E_NOMEM, e);
    tgi_mem_fail_at(0);
}

static void test_files_are_read_and_their_absence_is_named(void)
{
    char path[] = "tegula_json_XXXXXX";
    tgi_err e = {0};
    tgi_json *doc = NULL;
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, "{\"ram\":\"1GiB\"}\n", 15) == 15);
    close(fd);
    CHECK_OK(tgi_json_load(path, &doc, &e), e);
    const char *s = NULL;
    CHECK(tgi_json_str(tgi_json_get(doc, "ram"), &s));
    CHECK_STR(s, "1GiB");
    tgi_json_free(&doc);
    unlink(path);
    CHECK_STATUS(tgi_json_load(path, &doc, &e), TG_E_NOT_FOUND, e);
    CHECK_STATUS(tgi_json_load(".", &doc, &e), TG_E_FORMAT, e);
}

int main(void)
{
    RUN(test_what_is_no_json_is_refused_with_its_place);
    RUN(test_numbers_follow_the_grammar_and_fit_a_double);
    RUN(test_values_answer_only_to_their_own_type);
    RUN(test_depth_ends_at_64);
    RUN(test_every_prefix_of_a_document_is_refused_and_leaks_nothing);
    RUN(test_the_writer_escapes_and_keeps_every_bit);
    RUN(test_doubles_survive_a_round_trip);
    RUN(test_the_locale_of_the_host_program_changes_nothing);
    RUN(test_refused_memory_is_answered);
    RUN(test_files_are_read_and_their_absence_is_named);
    return TEST_END();
}
