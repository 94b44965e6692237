/* text_number.c - see text_number.h. */
#include "io/text_number.h"

#include "engine/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MORE "\", and " /* behind the last entry that has room, its quote included */
#define MORE_ROOM 40
#define EXACT 9007199254740992.0 /* whole numbers up to here are doubles */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool tgi_text_number(const char *s, size_t n, double *out)
{
    while (n && is_blank(*s)) {
        s++;
        n--;
    }
    while (n && is_blank(s[n - 1]))
        n--;
    if (n > 1 && *s == '+' && s[1] != '-') {
        s++;
        n--;
    }
    return tgi_number_parse(s, n, out);
}

bool tgi_text_whole(const char *s, size_t n, int64_t *out)
{
    double v;
    if (!tgi_text_number(s, n, &v) || v != floor(v))
        return false;
    *out = fabs(v) <= EXACT ? (int64_t)v : v < 0 ? INT64_MIN : INT64_MAX;
    return true;
}

void tgi_text_malformed(char list[TGI_MALFORMED], const char *name, const char *value, size_t n)
{
    char one[96], shown[32];
    size_t k = 0;
    for (; k < n && k < sizeof shown - 1 && value[k]; k++)
        shown[k] = value[k] < 0x20 || value[k] >= 0x7f ? '?'
                   : value[k] == '"'                   ? '\''
                                                       : value[k];
    shown[k] = 0;
    snprintf(one, sizeof one, "%.40s=\"%s%s\"", name, shown, k < n ? "..." : "");
    if (strstr(list, one))
        return;
    char *tail = strstr(list, MORE); /* no value has a quote: it is behind the last entry */
    const long long more = tail ? strtoll(tail + sizeof MORE - 1, NULL, 10) : 0;
    const size_t used = strlen(list);
    char *end = tail ? tail : list + used - (used > 0);
    if (more || used + strlen(one) + 2 + MORE_ROOM > TGI_MALFORMED)
        snprintf(end, MORE_ROOM, MORE "%lld more", more + 1);
    else
        snprintf(list + used, TGI_MALFORMED - used, "%s%s", used ? ", " : "", one);
}
