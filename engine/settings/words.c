/* words.c - option values of the estimators, and names of codecs (words.h). */
#include "engine/settings/words.h"

#include "engine/base/number.h"
#include "engine/base/size.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MOST_EXTENT 1048576 /* of one axis: more is a slip */

/* A whole number of at most seven digits at *p, above 0. */
static int extent(const char **p, int64_t *v)
{
    const size_t n = strspn(*p, "0123456789");
    double d;
    if (n == 0 || n > 7 || !tgi_number_parse(*p, n, &d) || d < 1 || d > MOST_EXTENT)
        return 0;
    *v = (int64_t)d;
    *p += n;
    return 1;
}

tg_status tgi_dims_parse(const char *text, int64_t v[3], tgi_err *err)
{
    const char *p = text;
    int64_t d[3] = {0, 0, 0};
    int ok = extent(&p, &d[0]) && *p++ == 'x' && extent(&p, &d[1]);
    if (ok && *p == 'x') {
        p++;
        ok = extent(&p, &d[2]);
    }
    if (!ok || *p)
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\" is no size of an image: write HxW or HxWxC, such as 224x224x3",
                        text);
    memcpy(v, d, sizeof d);
    return TG_OK;
}

tg_status tgi_params_parse(const char *text, int64_t *out, tgi_err *err)
{
    const size_t n = strspn(text, "0123456789.");
    const char *unit = text + n;
    const double factor = strcmp(unit, "") == 0    ? 1
                          : strcmp(unit, "K") == 0 ? 1e3
                          : strcmp(unit, "M") == 0 ? 1e6
                          : strcmp(unit, "B") == 0 ? 1e9
                                                   : 0;
    double v;
    if (factor == 0 || !tgi_number_parse(text, n, &v) || v * factor < 1 || v * factor > 1e15)
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\" is no number of parameters: write 110M, 1.3B or 25557032",
                        text);
    if (factor < 2 && v < 1000)
        return tgi_fail(err, TG_E_ARG, "\"%s\" has no unit: write %sM for millions", text,
                        text);
    *out = (int64_t)(v * factor + 0.5);
    return TG_OK;
}

tg_status tgi_share_parse(const char *text, double *share, tgi_err *err)
{
    const size_t n = strspn(text, "0123456789.");
    double v;
    if (strcmp(text + n, "%") != 0 || !tgi_number_parse(text, n, &v) || v <= 0 || v > 100)
        return tgi_fail(err, TG_E_ARG, "\"%s\" is no share: write 50%%, at most 100%%", text);
    *share = v / 100;
    return TG_OK;
}

tg_status tgi_loss_scale_parse(const char *text, double *factor, tgi_err *err)
{
    double v;
    if (strcmp(text, "dynamic") == 0)
        *factor = 0;
    else if (strcmp(text, "none") == 0)
        *factor = -1;
    else if (tgi_number_parse(text, strlen(text), &v) && v >= 1)
        *factor = v;
    else
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\" is no loss scale: write dynamic, none or a factor such as 1024",
                        text);
    return TG_OK;
}

/* ---- Lists ------------------------------------------------------------------------------- */

size_t tgi_list_next(const char **p, const char **item)
{
    *item = *p;
    const size_t n = strcspn(*p, ",");
    *p += n + ((*p)[n] == ',');
    return n;
}

tg_status tgi_sizes_check(const char *text, tgi_err *err)
{
    const char *p = text, *item;
    char one[64];
    uint64_t bytes;
    do {
        const size_t n = tgi_list_next(&p, &item);
        if (n == 0 || n >= sizeof one)
            return tgi_fail(err, TG_E_ARG, "\"%s\" is no list of sizes: write 16GiB,24GiB",
                            text);
        snprintf(one, sizeof one, "%.*s", (int)n, item);
        TGI_TRY(tgi_size_parse(one, 0, &bytes, err));
        if (bytes == 0)
            return tgi_fail(err, TG_E_ARG, "\"%s\": a GPU of no memory at all", text);
    } while (*p);
    return TG_OK;
}

/* "NAME=3.06": where its name ends and what it costs. */
static int price_parse(const char *item, size_t n, size_t *name, double *price)
{
    const char *eq = memchr(item, '=', n);
    if (!eq || eq == item)
        return 0;
    *name = (size_t)(eq - item);
    return tgi_number_parse(eq + 1, n - *name - 1, price) && *price >= 0;
}

tg_status tgi_prices_check(const char *text, tgi_err *err)
{
    const char *p = text, *item;
    size_t name;
    double price;
    do {
        const size_t n = tgi_list_next(&p, &item);
        if (!price_parse(item, n, &name, &price))
            return tgi_fail(err, TG_E_ARG,
                            "\"%.*s\" is no price: write NAME=3.06, per hour, several with "
                            "commas between",
                            (int)n, item);
    } while (*p);
    return TG_OK;
}

double tgi_price_of(const char *list, const char *name)
{
    const char *item;
    while (list && *list) {
        size_t k = 0;
        double price;
        const size_t n = tgi_list_next(&list, &item);
        if (price_parse(item, n, &k, &price) && tgi_same_name(item, k, name))
            return price;
    }
    return -1;
}

/* The next letter or digit as a small letter; 0 at the end. */
static char next_letter(const char **p, const char *end)
{
    while (*p < end) {
        const char c = *(*p)++;
        if (c != ' ' && c != '-' && c != '_')
            return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return 0;
}

void tgi_plain_name(const char *a, size_t n, char *out, size_t cap)
{
    const char *end = a + n;
    size_t k = 0;
    for (char c; k + 1 < cap && (c = next_letter(&a, end)) != 0;)
        out[k++] = c;
    out[k] = 0;
}

int tgi_same_name(const char *a, size_t n, const char *b)
{
    const char *a_end = a + n, *b_end = b + strlen(b);
    for (;;) {
        const char x = next_letter(&a, a_end), y = next_letter(&b, b_end);
        if (x != y)
            return 0;
        if (!x)
            return 1;
    }
}

const char *tgi_codec_called(const char *text)
{
    static const struct {
        const char *begins, *codec;
    } names[] = {{"x264", "h264"},     {"x264rgb", "h264"},  {"h264", "h264"},
                 {"h.264", "h264"},    {"avc", "h264"},      {"avc1", "h264"},
                 {"openh264", "h264"}, {"x265", "hevc"},     {"h265", "hevc"},
                 {"h.265", "hevc"},    {"hevc", "hevc"},     {"hvc1", "hevc"},
                 {"hev1", "hevc"},     {"av1", "av1"},       {"av01", "av1"},
                 {"aom", "av1"},       {"svt", "av1"},       {"svtav1", "av1"},
                 {"rav1e", "av1"},     {"vp9", "vp9"},       {"vpx", "vp9"},
                 {"ffv1", "ffv1"},     {"prores", "prores"}, {"apcn", "prores"},
                 {"apch", "prores"},   {"ap4h", "prores"},   {"copy", "copy-like-input"}};
    if (strncasecmp(text, "lib", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncasecmp(text, names[i].begins, strlen(names[i].begins)) == 0 &&
            !isalnum((unsigned char)text[strlen(names[i].begins)])) /* "h264_nvenc" */
            return names[i].codec;
    return NULL;
}

tg_status tgi_boxes_next(const char **at, tgi_mask_box *out, tgi_err *err)
{
    char one[96];
    const size_t n = strcspn(*at, ";");
    if (n >= sizeof one)
        return tgi_fail(err, TG_E_ARG, "\"%.40s...\" is no box, as 410,220,90,160@120-480",
                        *at);
    snprintf(one, sizeof one, "%.*s", (int)n, *at);
    TGI_TRY(tgi_mask_box_parse(one, out, err));
    *at += n;
    *at += **at == ';';
    return TG_OK;
}
