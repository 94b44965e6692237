/* imagej.c - see imagej.h. Counts out of range become the largest, which no file holds: a
 * text that promises more than there can be is refused, not passed over. */
#include "io/imagej.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (INT64_C(1) << 40)

static const struct {
    const char *from, *to;
} unit_names[] = {
    {"micron", "\xc2\xb5m"},     {"microns", "\xc2\xb5m"},   {"um", "\xc2\xb5m"},
    {"micrometer", "\xc2\xb5m"}, {"\\u00B5m", "\xc2\xb5m"},  {"\\u00b5m", "\xc2\xb5m"},
    {"\xb5m", "\xc2\xb5m"},      {"\xce\xbcm", "\xc2\xb5m"}, {"\\u03bcm", "\xc2\xb5m"},
};

void tgi_unit_canonical(const char *unit, size_t len, char *out, size_t cap)
{
    for (size_t i = 0; i < sizeof unit_names / sizeof unit_names[0]; i++)
        if (strlen(unit_names[i].from) == len && memcmp(unit_names[i].from, unit, len) == 0) {
            snprintf(out, cap, "%s", unit_names[i].to);
            return;
        }
    snprintf(out, cap, "%.*s", (int)(len < cap ? len : cap - 1), unit);
}

/* The value of a line; 0 where there is none. */
static double number_of(tgi_imagej *o, const char *key, const char *s, size_t n)
{
    double v = 0;
    if (n && !tgi_text_number(s, n, &v))
        tgi_text_malformed(o->malformed, key, s, n);
    return v;
}

static int64_t count_of(tgi_imagej *o, const char *key, const char *s, size_t n)
{
    int64_t v = 0;
    if (n && !tgi_text_whole(s, n, &v))
        tgi_text_malformed(o->malformed, key, s, n);
    return v <= 0 ? 0 : v < MOST ? v : MOST;
}

static const char *const modes[] = {"", "composite", "color", "grayscale"};

const char *tgi_imagej_mode(int mode)
{
    return mode > 0 && mode < (int)(sizeof modes / sizeof *modes) ? modes[mode] : "";
}

int tgi_imagej_mode_of(const char *word, size_t len)
{
    for (int i = 1; i < (int)(sizeof modes / sizeof *modes); i++)
        if (strlen(modes[i]) == len && memcmp(modes[i], word, len) == 0)
            return i;
    return 0;
}

static void take_line(const char *key, size_t key_len, const char *value, size_t value_len,
                      tgi_imagej *o)
{
#define IS(name) (key_len == sizeof name - 1 && memcmp(key, name, key_len) == 0)
    if (IS("images"))
        o->images = count_of(o, "images", value, value_len);
    else if (IS("channels"))
        o->channels = count_of(o, "channels", value, value_len);
    else if (IS("slices"))
        o->slices = count_of(o, "slices", value, value_len);
    else if (IS("frames"))
        o->frames = count_of(o, "frames", value, value_len);
    else if (IS("spacing"))
        o->spacing = fabs(number_of(o, "spacing", value, value_len));
    else if (IS("finterval"))
        o->interval = fmax(0, number_of(o, "finterval", value, value_len));
    else if (IS("order"))
        snprintf(o->order, sizeof o->order, "%.*s", (int)(value_len < 7 ? value_len : 7),
                 value);
    else if (IS("mode"))
        o->mode = tgi_imagej_mode_of(value, value_len);
    else if (IS("unit") && !o->unit[0])
        tgi_unit_canonical(value, value_len, o->unit, sizeof o->unit);
#undef IS
}

bool tgi_imagej_parse(const char *text, tgi_imagej *out)
{
    *out = (tgi_imagej){0};
    if (strncmp(text, "ImageJ=", 7) != 0)
        return false;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\r\n");
        const char *eq = memchr(line, '=', len);
        if (eq)
            take_line(line, (size_t)(eq - line), eq + 1, len - (size_t)(eq + 1 - line), out);
        line += len;
        line += strspn(line, "\r\n");
    }
    return true;
}

/* Position behind `"key":`, or NULL. The object is flat as tifffile writes it; a key inside a
 * string value would need an escaped quote in front and does not match. */
static const char *json_value(const char *text, const char *key)
{
    char quoted[24];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    for (const char *p = text; (p = strstr(p, quoted)); p++) {
        const char *q = p + strlen(quoted);
        if (p > text && p[-1] == '\\')
            continue;
        q += strspn(q, " \t\r\n");
        if (*q == ':')
            return q + 1 + strspn(q + 1, " \t\r\n");
    }
    return NULL;
}

/* Numbers up to `close`; p stands behind the opening bracket. */
static bool shape_list(const char *p, char close, tgi_shaped *out)
{
    for (;;) {
        char *end;
        const long long v = strtoll(p, &end, 10);
        if (end == p || v < 1 || out->n == TGI_SHAPED_MAX)
            return false;
        out->shape[out->n++] = v < MOST ? v : MOST;
        p = end + strspn(end, " \t\r\n");
        if (*p == close)
            return true;
        if (*p++ != ',')
            return false;
    }
}

bool tgi_shaped_parse(const char *text, tgi_shaped *out)
{
    *out = (tgi_shaped){0};
    if (strncmp(text, "shape=(", 7) == 0) /* as written before 2014 */
        return shape_list(text + 7, ')', out);
    if (text[0] != '{')
        return false;
    const char *shape = json_value(text, "shape"), *axes = json_value(text, "axes");
    if (!shape || *shape != '[' || !shape_list(shape + 1, ']', out))
        return false;
    if (axes && *axes == '"') {
        const size_t n = strspn(axes + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if ((int)n == out->n && axes[1 + n] == '"')
            memcpy(out->axes, axes + 1, n);
    }
    return true;
}
