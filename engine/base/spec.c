/* spec.c - parsers of option values (spec.h).
 *
 * All of them walk one cursor over the text with two primitives, `take` (this character?) and
 * `number` (a decimal int64 without sign), and accept only when the cursor ends at the NUL:
 * what is not understood is never skipped. `real` lets through digits, one point, an exponent:
 * no blanks, hex, inf or nan. */
#include "engine/base/spec.h"

#include "engine/base/number.h"
#include "engine/base/size.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One or more digits; false leaves the cursor where it was. */
static bool number(const char **p, int64_t *out)
{
    const char *s = *p;
    int64_t v = 0;
    if (!is_digit(*s))
        return false;
    for (; is_digit(*s); s++) {
        const int d = *s - '0';
        if (v > (INT64_MAX - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *p = s;
    *out = v;
    return true;
}

/* [-]digits[.digits][e[+-]digits], whatever the locale of the host. */
static bool real(const char **p, double *out)
{
    const char *s = *p;
    take(&s, '-');
    const char *first = s;
    while (is_digit(*s))
        s++;
    if (take(&s, '.'))
        while (is_digit(*s))
            s++;
    if (s == first || (s == first + 1 && *first == '.'))
        return false;
    if (*s == 'e' || *s == 'E') {
        const char *e = s + 1;
        if (*e == '+' || *e == '-')
            e++;
        if (!is_digit(*e))
            return false;
        while (is_digit(*e))
            e++;
        s = e;
    }
    if (!tgi_number_parse(*p, (size_t)(s - *p), out))
        return false;
    *p = s;
    return true;
}

/* A real, or a ratio of two such as 1/255. */
static bool ratio(const char **p, double *out)
{
    double a, b;
    if (!real(p, &a))
        return false;
    if (!take(p, '/')) {
        *out = a;
        return true;
    }
    if (!real(p, &b) || b == 0.0)
        return false;
    *out = a / b;
    return true;
}

tg_status tgi_int_parse(const char *text, int64_t lo, int64_t hi, const char *what,
                        int64_t *out, tgi_err *err)
{
    const char *p = text;
    int64_t v;
    if (!number(&p, &v) || *p || v < lo || v > hi)
        return tgi_fail(err, TG_E_ARG,
                        "%s \"%s\": a whole number from %lld to %lld is expected", what, text,
                        (long long)lo, (long long)hi);
    *out = v;
    return TG_OK;
}

int tgi_choice_index(const char *choices, const char *text)
{
    const size_t n = strlen(text);
    int index = 0;
    for (const char *c = choices;; index++) {
        const char *bar = strchr(c, '|');
        const size_t len = bar ? (size_t)(bar - c) : strlen(c);
        if (len == n && memcmp(c, text, n) == 0)
            return index;
        if (!bar)
            return -1;
        c = bar + 1;
    }
}

static int min3(int a, int b, int c)
{
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment: three rows of the usual table. @source Boytsov 2011, section 2.1.
 */
int tgi_edit_distance(const char *a, const char *b)
{
    enum { CAP = 32 };
    int row[3][CAP + 1];
    const int na = (int)strnlen(a, CAP), nb = (int)strnlen(b, CAP);
    int *before = row[0], *prev = row[1], *cur = row[2];
    for (int j = 0; j <= nb; j++)
        prev[j] = before[j] = j;
    for (int i = 1; i <= na; i++) {
        cur[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int differ = a[i - 1] != b[j - 1];
            cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + differ);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < cur[j])
                cur[j] = before[j - 2] + 1;
        }
        int *oldest = before;
        before = prev;
        prev = cur;
        cur = oldest;
    }
    return prev[nb];
}

/* A third of the letters at most, and one in any case: of "foo" two are no slip. */
tgi_nearest tgi_nearest_to(const char *asked)
{
    const int third = (int)(strlen(asked) / 3);
    return (tgi_nearest){.asked = asked, .best = (third ? third : 1) + 1};
}

void tgi_nearest_offer(tgi_nearest *n, const char *name, const char *shown)
{
    const int d = tgi_edit_distance(n->asked, name);
    if (d < n->best) {
        n->best = d;
        n->found = shown;
    }
}

const char *tgi_nearest_text(const tgi_nearest *n, char *buf, size_t cap)
{
    if (n->found)
        snprintf(buf, cap, "; the nearest is \"%s\"", n->found);
    else
        buf[0] = 0;
    return buf;
}

/* ---- memory budget ----------------------------------------------------------------------- */

tg_status tgi_ram_parse(const char *text, tgi_ram_spec *out, tgi_err *err)
{
    const size_t n = strlen(text);
    if (n && text[n - 1] == '%') {
        const char *p = text;
        double v;
        if (*p == '-' || !real(&p, &v) || strcmp(p, "%") != 0 || !(v > 0.0 && v <= 100.0))
            return tgi_fail(err, TG_E_ARG,
                            "\"%s\": a share of the free memory is above 0%% and at most 100%%",
                            text);
        *out = (tgi_ram_spec){.percent = v};
        return TG_OK;
    }
    uint64_t bytes = 0;
    TGI_TRY(tgi_size_parse(text, 0, &bytes, err));
    if (bytes == 0)
        return tgi_fail(err, TG_E_ARG, "\"%s\": a budget of no memory at all", text);
    *out = (tgi_ram_spec){.bytes = bytes};
    return TG_OK;
}

/* ---- tile -------------------------------------------------------------------------------- */

tg_status tgi_tile_parse(const char *text, tgi_tile_spec *out, tgi_err *err)
{
    if (strcmp(text, "auto") == 0) {
        *out = (tgi_tile_spec){.automatic = true};
        return TG_OK;
    }
    const char *p = text;
    int64_t v[3];
    int n = 0;
    bool ok = true;
    do
        ok = n < 3 && number(&p, &v[n]) && v[n] > 0 && v[n] <= INT32_MAX;
    while (ok && ++n && take(&p, 'x'));
    if (!ok || *p)
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\": a tile is auto, N, HxW or DxHxW, each from 1 to %d pixels",
                        text, INT32_MAX);
    *out = (tgi_tile_spec){.v = {n == 3 ? v[0] : 0, n == 1 ? v[0] : v[n - 2], v[n - 1]}};
    return TG_OK;
}

/* ---- region of interest ------------------------------------------------------------------ */

/* "lo:hi", either may be missing. */
static bool bounds(const char **p, tgi_range *out)
{
    tgi_range r = {0, TGI_ROI_OPEN};
    if (**p != ':' && !number(p, &r.lo))
        return false;
    if (!take(p, ':'))
        return false;
    if (is_digit(**p) && !number(p, &r.hi))
        return false;
    *out = r;
    return r.lo < r.hi;
}

tg_status tgi_roi_parse(const char *text, tgi_roi_spec *out, tgi_err *err)
{
    const char *p = text;
    tgi_range ax[3];
    int n = 0;
    bool ok = true;
    do
        ok = n < 3 && bounds(&p, &ax[n]);
    while (ok && ++n && take(&p, ','));
    if (!ok || *p || n < 2)
        return tgi_fail(
            err, TG_E_ARG,
            "\"%s\": a region is z0:z1,y0:y1,x0:x1 or y0:y1,x0:x1 with each end after "
            "its start; a missing bound means the image's",
            text);
    out->ax[0] = n == 3 ? ax[0] : (tgi_range){0, TGI_ROI_OPEN};
    out->ax[1] = ax[n - 2];
    out->ax[2] = ax[n - 1];
    return TG_OK;
}

tg_status tgi_roi_resolve(const tgi_roi_spec *s, const int64_t extent[3], tgi_range out[3],
                          tgi_err *err)
{
    static const char name[3] = {'z', 'y', 'x'};
    tgi_range r[3];
    for (int i = 0; i < 3; i++) {
        r[i] = s->ax[i];
        if (r[i].hi == TGI_ROI_OPEN)
            r[i].hi = extent[i];
        if (r[i].hi > extent[i] || r[i].lo >= r[i].hi)
            return tgi_fail(err, TG_E_ARG,
                            "roi: %c from %lld to %lld is not inside the image, which has %lld",
                            name[i], (long long)r[i].lo, (long long)r[i].hi,
                            (long long)extent[i]);
    }
    memcpy(out, r, sizeof r);
    return TG_OK;
}

/* ---- planes ------------------------------------------------------------------------------ */

const char *tgi_steps_text(const char *item, char *buf, size_t cap)
{
    const char *p = item;
    int64_t v[3] = {0};
    size_t n = 0;
    bool ok = true;
    for (int i = 0; i < 3 && ok; i++) {
        const bool there = number(&p, &v[i]);
        ok = (there || i == 0) && (i == 2 || take(&p, ':'));
    }
    buf[0] = 0;
    if (!ok || *p || v[2] < 1 || v[1] <= v[0])
        return buf;
    const int64_t most = 8, count = (v[1] - v[0] - 1) / v[2] + 1;
    n = (size_t)snprintf(buf, cap, "; steps are not taken, each is named: ");
    for (int64_t i = 0; i < count && i < most && n < cap; i++)
        n += (size_t)snprintf(buf + n, cap - n, "%s%lld", i ? "," : "",
                              (long long)(v[0] + i * v[2]));
    if (count > most && n < cap)
        snprintf(buf + n, cap - n, ",...");
    return buf;
}

/* "7", "5-9" (both included), "5:10" (10 not), or those with the end left out; ":5". */
static bool plane_range(const char **p, tgi_range *out)
{
    tgi_range r = {0, 0};
    if (**p != ':' && (!number(p, &r.lo) || r.lo == INT64_MAX))
        return false;
    r.hi = r.lo + 1;
    if (take(p, ':')) {
        r.hi = TGI_ROI_OPEN;
        (void)number(p, &r.hi);
    } else if (take(p, '-')) {
        int64_t last;
        r.hi = TGI_ROI_OPEN;
        if (number(p, &last)) {
            if (last == INT64_MAX)
                return false;
            r.hi = last + 1;
        }
    }
    *out = r;
    return r.lo < r.hi;
}

tg_status tgi_planes_parse(const char *text, tgi_planes_spec *out, tgi_err *err)
{
    const char *p = text;
    tgi_planes_spec s = {0};
    bool ok = true;
    do {
        ok = s.n < TGI_PLANES_MAX && plane_range(&p, &s.range[s.n]) &&
             (s.n == 0 || s.range[s.n].lo >= s.range[s.n - 1].hi);
        s.n += ok;
    } while (ok && take(&p, ','));
    char steps[80];
    if (!ok || *p)
        return tgi_fail(
            err, TG_E_ARG,
            "\"%s\": planes are numbers and ranges in rising order, such as 0,2,5-9, 5:10 (10 "
            "not among them) or 10- (at most %d of them)%s",
            text, TGI_PLANES_MAX, tgi_steps_text(text, steps, sizeof steps));
    *out = s;
    return TG_OK;
}

tg_status tgi_planes_resolve(tgi_planes_spec *s, int64_t n_planes, int64_t *count, tgi_err *err)
{
    tgi_planes_spec r = *s;
    if (r.n == 0) {
        r.n = 1;
        r.range[0] = (tgi_range){0, n_planes};
    }
    tgi_range *last = &r.range[r.n - 1];
    if (last->hi == TGI_ROI_OPEN)
        last->hi = n_planes > last->lo ? n_planes : last->lo + 1; /* refused below */
    if (last->hi > n_planes)
        return tgi_fail(
            err, TG_E_ARG, "planes: number %lld was asked for, the image has %lld (0 to %lld)",
            (long long)(last->hi - 1), (long long)n_planes, (long long)n_planes - 1);
    int64_t sum = 0;
    for (int i = 0; i < r.n; i++)
        sum += r.range[i].hi - r.range[i].lo;
    *s = r;
    *count = sum;
    return TG_OK;
}

const char *tgi_planes_text(const tgi_planes_spec *s, char *buf, size_t cap)
{
    size_t n = 0;
    snprintf(buf, cap, "all");
    for (int i = 0; i < s->n && n < cap; i++) {
        const int64_t lo = s->range[i].lo;
        while (i + 1 < s->n && s->range[i + 1].lo == s->range[i].hi)
            i++; /* "2,3" is "2-3" */
        const int64_t hi = s->range[i].hi;
        n += (size_t)snprintf(buf + n, cap - n, "%s%lld", n ? "," : "", (long long)lo);
        if (n < cap && hi != lo + 1)
            n += (size_t)(hi == TGI_ROI_OPEN
                              ? snprintf(buf + n, cap - n, "-")
                              : snprintf(buf + n, cap - n, "-%lld", (long long)hi - 1));
    }
    return buf;
}

int64_t tgi_planes_at(const tgi_planes_spec *s, int64_t i)
{
    for (int k = 0; k < s->n && i >= 0; k++) {
        const int64_t len = s->range[k].hi - s->range[k].lo;
        if (i < len)
            return s->range[k].lo + i;
        i -= len;
    }
    return -1;
}

/* ---- normalisation ----------------------------------------------------------------------- */

static bool starts(const char **p, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0)
        return false;
    *p += n;
    return true;
}

tg_status tgi_normalize_parse(const char *text, tgi_normalize_spec *out, tgi_err *err)
{
    const char *p = text;
    tgi_normalize_spec s = {.kind = TGI_NORM_NONE};
    bool ok = true;
    if (strcmp(text, "none") == 0 || strcmp(text, "minmax") == 0 ||
        strcmp(text, "zscore") == 0) {
        s.kind = text[0] == 'n'   ? TGI_NORM_NONE
                 : text[0] == 'm' ? TGI_NORM_MINMAX
                                  : TGI_NORM_ZSCORE;
        p += strlen(text);
    } else if (starts(&p, "scale:")) {
        s.kind = TGI_NORM_SCALE;
        ok = ratio(&p, &s.a) && (!take(&p, ',') || ratio(&p, &s.b)) && s.a != 0.0;
    } else if (starts(&p, "percentile:")) {
        s.kind = TGI_NORM_PERCENTILE;
        ok = real(&p, &s.a) && take(&p, ',') && real(&p, &s.b) && s.a >= 0.0 && s.a < s.b &&
             s.b <= 100.0;
    } else {
        ok = false;
    }
    if (!ok || *p)
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\": normalize is none, minmax, zscore, scale:a,b (x*a+b, a not 0; "
                        "scale:1/255 is fine) or percentile:lo,hi with 0 <= lo < hi <= 100",
                        text);
    *out = s;
    return TG_OK;
}

bool tgi_normalize_needs_stats(const tgi_normalize_spec *s)
{
    return s->kind == TGI_NORM_MINMAX || s->kind == TGI_NORM_PERCENTILE ||
           s->kind == TGI_NORM_ZSCORE || (s->kind == TGI_NORM_CHAIN && s->measures);
}

int tgi_normalize_ranked(const tgi_normalize_spec *s)
{
    return s->kind == TGI_NORM_PERCENTILE ? 1 : s->kind == TGI_NORM_CHAIN ? s->ranked : 0;
}

/* ---- types and compression --------------------------------------------------------------- */

tg_status tgi_dtype_spec_parse(const char *text, tg_dtype *out, tgi_err *err)
{
    tg_dtype t = TG_DTYPE_NONE;
    if (strcmp(text, "same") != 0 && (!tgi_dtype_parse(text, &t) || t == TG_DTYPE_NONE))
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\": dtype is same, uint8, uint16, uint32, int8, int16, int32, "
                        "float16, float32 or float64",
                        text);
    *out = t;
    return TG_OK;
}

static const struct {
    const char *name;
    int lo, hi; /* levels; hi 0: the codec has none */
} codecs[] = {
    [TGI_COMPRESS_NONE] = {"none", 0, 0},
    [TGI_COMPRESS_DEFLATE] = {"deflate", 1, 9},
    [TGI_COMPRESS_ZSTD] = {"zstd", 1, 22},
    [TGI_COMPRESS_LZW] = {"lzw", 0, 0},
};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

tg_status tgi_compress_parse(const char *text, tgi_compress_spec *out, tgi_err *err)
{
    const char *colon = strchr(text, ':');
    const size_t len = colon ? (size_t)(colon - text) : strlen(text);
    for (int i = 0; i < N_CODECS; i++) {
        if (strlen(codecs[i].name) != len || memcmp(codecs[i].name, text, len) != 0)
            continue;
        int64_t level = -1;
        if (colon && !codecs[i].hi)
            return tgi_fail(err, TG_E_ARG, "\"%s\": %s has no levels", text, codecs[i].name);
        if (colon && tgi_int_parse(colon + 1, codecs[i].lo, codecs[i].hi, "", &level, NULL))
            return tgi_fail(err, TG_E_ARG, "\"%s\": levels of %s go from %d to %d", text,
                            codecs[i].name, codecs[i].lo, codecs[i].hi);
        *out = (tgi_compress_spec){.kind = (tgi_compress_kind)i, .level = (int)level};
        return TG_OK;
    }
    return tgi_fail(
        err, TG_E_ARG,
        "\"%s\": compress is none, deflate, zstd or lzw, with an optional level such "
        "as zstd:3",
        text);
}

const char *tgi_compress_name(tgi_compress_kind k)
{
    return (int)k >= 0 && (int)k < N_CODECS ? codecs[k].name : "?";
}

/* ---- points and axes --------------------------------------------------------------------- */

tg_status tgi_at_parse(const char *text, int64_t out[3], tgi_err *err)
{
    const char *p = text;
    int64_t v[3];
    int n = 0;
    bool ok = true;
    do
        ok = n < 3 && number(&p, &v[n]);
    while (ok && ++n && take(&p, ','));
    if (!ok || *p || n < 2)
        return tgi_fail(err, TG_E_ARG, "\"%s\": a point is z,y,x or y,x in pixels", text);
    out[0] = n == 3 ? v[0] : -1;
    out[1] = v[n - 2];
    out[2] = v[n - 1];
    return TG_OK;
}

tg_status tgi_axes_parse(const char *text, tgi_err *err)
{
    uint32_t seen = 0;
    size_t n = 0;
    bool ok = true;
    for (; ok && text[n]; n++) {
        const int bit = text[n] - 'A';
        ok = bit >= 0 && bit < 26 && !(seen >> bit & 1u) && n < 8;
        if (ok)
            seen |= 1u << bit;
    }
    if (!ok || !(seen >> ('Y' - 'A') & 1u) || !(seen >> ('X' - 'A') & 1u))
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\": axes are at most 8 capital letters, each once, Y and X among "
                        "them, such as TZCYX or YXS",
                        text);
    return TG_OK;
}

tg_status tgi_interval_parse(const char *text, tgi_interval_spec *out, tgi_err *err)
{
    const char *p = text;
    int64_t n;
    double seconds;
    if (number(&p, &n) && strcmp(p, "u") == 0 && n > 0) {
        *out = (tgi_interval_spec){.updates = n};
        return TG_OK;
    }
    if (tgi_duration_parse(text, &seconds, NULL) != TG_OK || seconds < 1e-3 || seconds > 86400)
        return tgi_fail(err, TG_E_ARG,
                        "\"%s\": a time such as 500ms or 2s (1ms to 24h) is expected, or 10u "
                        "for every tenth update",
                        text);
    *out = (tgi_interval_spec){.ms = (int64_t)(seconds * 1e3 + 0.5)};
    return TG_OK;
}
