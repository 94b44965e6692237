/* numbered.c - see numbered.h. */
#include "io/numbered.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tgi_numbered_find(const char *path, tgi_numbered *n)
{
    const char *slash = strrchr(path, '/');
    n->base = slash ? slash + 1 : path;
    n->from = strchr(n->base, '%');
    if (!n->from)
        return 0;
    const char *p = n->from + 1;
    n->width = 0;
    for (; isdigit((unsigned char)*p) && n->width < 100; p++)
        n->width = 10 * n->width + (size_t)(*p - '0');
    n->to = p + 1;
    return *p == 'd' && !strchr(n->to, '%');
}

int tgi_numbered_fits(const tgi_numbered *n, const char *name)
{
    const size_t head = (size_t)(n->from - n->base), len = strlen(name), tail = strlen(n->to);
    if (len < head + tail || memcmp(name, n->base, head) != 0 ||
        strcmp(name + len - tail, n->to) != 0)
        return 0;
    const size_t digits = len - head - tail;
    return digits && strspn(name + head, "0123456789") >= digits && digits >= n->width &&
           (digits == n->width || digits == 1 || name[head] != '0' || !n->width);
}

int tgi_numbered_name(const char *pattern, int64_t number, char *path, size_t cap)
{
    tgi_numbered n;
    if (!tgi_numbered_find(pattern, &n) || n.width > 20)
        return 0;
    const int got = snprintf(path, cap, "%.*s%0*lld%s", (int)(n.from - pattern), pattern,
                             (int)n.width, (long long)number, n.to);
    return got > 0 && (size_t)got < cap;
}

int64_t tgi_number_of(const char *pattern, const char *path)
{
    tgi_numbered n;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!tgi_numbered_find(pattern, &n) || !tgi_numbered_fits(&n, name) ||
        strlen(name) - strlen(n.to) - (size_t)(n.from - n.base) > 18)
        return -1;
    return strtoll(name + (n.from - n.base), NULL, 10);
}
