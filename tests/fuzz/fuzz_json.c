/* fuzz_json.c - any bytes as JSON (descriptors, job files, texts of the journal), and every
 * value of what parses asked for all its types. */
#include "engine/base/json.h"
#include "tests/fuzz/fuzz_target.h"

static void walk(const tgi_json *v, int depth)
{
    const char *s = "";
    double d;
    int64_t i;
    bool b;
    if (depth > 64) /* the reader promises to refuse it */
        abort();
    if (tgi_json_str(v, &s) && strlen(s) > SIZE_MAX / 2)
        abort();
    if (tgi_json_int(v, &i) && !tgi_json_num(v, &d))
        abort();
    (void)tgi_json_bool(v, &b);
    for (const tgi_json *c = tgi_json_first(v); c; c = tgi_json_next(c)) {
        if (tgi_json_is_object(v) && tgi_json_get(v, tgi_json_key(c)) != c)
            abort(); /* keys are unique */
        walk(c, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tgi_json *doc = NULL;
    tgi_err err = {0};
    const tg_status st = tgi_json_parse((const char *)data, n, "made.json", &doc, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        walk(doc, 0);
    tgi_json_free(&doc);
    fuzz_check_leaks();
    return 0;
}
