/* number.c - reads and writes decimal numbers without the locale. */
#include "engine/base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHARS 300

static size_t digits_at(const char *text, size_t n, size_t at)
{
    const size_t from = at;
    while (at < n && text[at] >= '0' && text[at] <= '9')
        at++;
    return at - from;
}

static size_t digits_in(const char *text)
{
    return strspn(text, "0123456789");
}

/* Whether text is a number; where its point is, or n. */
static bool is_number(const char *text, size_t n, size_t *point)
{
    size_t at = n && text[0] == '-';
    size_t digits = digits_at(text, n, at);
    at += digits;
    *point = n;
    if (at < n && text[at] == '.') {
        *point = at++;
        const size_t more = digits_at(text, n, at);
        digits += more;
        at += more;
    }
    if (digits && at < n && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < n && (text[at] == '+' || text[at] == '-');
        const size_t power = digits_at(text, n, at);
        if (!power)
            return false;
        at += power;
    }
    return digits && at == n;
}

bool tgi_number_parse(const char *text, size_t n, double *out)
{
    char buf[MAX_CHARS + 32];
    size_t point;
    if (n > MAX_CHARS || !is_number(text, n, &point))
        return false;
    const char *dot = localeconv()->decimal_point;
    const size_t dot_bytes = point < n ? strlen(dot) : 0, behind = point < n ? point + 1 : n;
    const size_t used = point + dot_bytes + (n - behind);
    if (used >= sizeof buf)
        return false;
    memcpy(buf, text, point); /* pieces by length: text has no 0 behind it */
    memcpy(buf + point, dot, dot_bytes);
    memcpy(buf + point + dot_bytes, text + behind, n - behind);
    buf[used] = 0;
    char *end;
    const double v = strtod(buf, &end);
    if (end != buf + used || !isfinite(v))
        return false;
    *out = v;
    return true;
}

size_t tgi_number_begin(const char *text, double *out)
{
    size_t at = text[0] == '-', digits = digits_in(text + at);
    at += digits;
    if (text[at] == '.') {
        const size_t more = digits_in(text + at + 1);
        at += digits + more ? 1 + more : 0;
        digits += more;
    }
    if (digits && (text[at] == 'e' || text[at] == 'E')) {
        const size_t sign = text[at + 1] == '+' || text[at + 1] == '-',
                     power = digits_in(text + at + 1 + sign);
        at += power ? 1 + sign + power : 0;
    }
    return digits && tgi_number_parse(text, at, out) ? at : 0;
}

/* What is neither digit, sign nor exponent is the locale's point, of one byte or more. */
static size_t put_point(char *buf)
{
    size_t n = 0;
    bool in_point = false;
    for (const char *p = buf; *p; p++) {
        const bool plain = strchr("0123456789+-e", *p) != NULL;
        if (plain || !in_point)
            buf[n++] = plain ? *p : '.';
        in_point = !plain;
    }
    buf[n] = 0;
    return n;
}

size_t tgi_number_digits(double value, int digits, char buf[TGI_NUMBER_TEXT])
{
    snprintf(buf, TGI_NUMBER_TEXT, "%.*g", digits, value);
    return put_point(buf);
}

size_t tgi_number_text(double value, char buf[TGI_NUMBER_TEXT])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, TGI_NUMBER_TEXT, "%.*g", digits, value);
        const double back = strtod(buf, NULL);
        if (!(back < value || back > value))
            break;
    }
    return put_point(buf);
}
