/* fuzz_yaml.c - any bytes as YAML, every value of what parses asked for all its types, and as a description of bioimage.io. */
#include "engine/graph/card.h"
#include "tests/fuzz/fuzz_target.h"

static int seen;

static void walk(const tgi_yaml *v, int depth)
{
    const char *s = "";
    double d;
    int64_t i;
    if (depth > TGI_YAML_DEPTH ||
        ++seen > TGI_YAML_NODES) /* the reader promises to refuse it */
        abort();
    if (tgi_yaml_text(v, &s) && strlen(s) > TGI_YAML_BYTES)
        abort();
    if (tgi_yaml_int(v, &i) && !tgi_yaml_num(v, &d))
        abort();
    int n = 0;
    for (const tgi_yaml *c = tgi_yaml_first(v); c; c = tgi_yaml_next(c), n++) {
        if (tgi_yaml_is_map(v) && tgi_yaml_get(v, tgi_yaml_key(c)) != c)
            abort(); /* keys are unique */
        walk(c, depth + 1);
    }
    if (n != tgi_yaml_count(v))
        abort();
}

static void as_card(const tgi_yaml *says)
{
    tgi_card *card = NULL;
    tgi_normalize_spec norm;
    char text[96];
    tgi_err err = {0};
    const tg_status st = tgi_card_of_yaml(says, "made.yaml", "0123", &card, &err);
    fuzz_check(st, &err);
    if (st != TG_OK)
        return;
    tgi_card_normalize(card, &norm, text, sizeof text);
    if (norm.n_step > TGI_NORM_STEPS || !card->n_in || !card->n_out)
        abort();
    tgi_card_free(&card);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tgi_yaml_doc *doc = NULL;
    tgi_err err = {0};
    const tg_status st = tgi_yaml_parse(data, n, "made.yaml", &doc, &err);
    fuzz_check(st, &err);
    seen = 0;
    if (st == TG_OK) {
        walk(tgi_yaml_root(doc), 0);
        as_card(tgi_yaml_root(doc));
    }
    tgi_yaml_free(&doc);
    fuzz_check_leaks();
    return 0;
}
