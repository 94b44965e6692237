/* sized.c - see sized.h. */
#include "engine/base/sized.h"

#include <string.h>

static size_t size_of(const void *p)
{
    size_t n;
    memcpy(&n, p, sizeof n);
    return n;
}

int tgi_sized_take(const void *given, void *own, size_t bytes)
{
    const size_t has = given ? size_of(given) : 0;
    const unsigned char *p = given;
    if (has < sizeof has)
        return 0;
    for (size_t i = bytes; i < has; i++)
        if (p[i])
            return 0;
    memset(own, 0, bytes);
    memcpy(own, given, has < bytes ? has : bytes);
    memcpy(own, &bytes, sizeof bytes);
    return 1;
}

tg_status tgi_sized_refuse(const void *given, const char *name, tgi_err *err)
{
    if (!given)
        return tgi_fail(err, TG_E_ARG, "%s is NULL", name);
    if (size_of(given) < sizeof(size_t))
        return tgi_fail(err, TG_E_ARG, "%s.size is %zu: set it to the sizeof of the struct",
                        name, size_of(given));
    return tgi_fail(err, TG_E_ARG,
                    "%s has members that this version does not know, and they are not zero",
                    name);
}

void tgi_sized_give(void *given, const void *own)
{
    const size_t has = size_of(given), bytes = size_of(own);
    if (has > sizeof has && bytes > sizeof bytes)
        memcpy((char *)given + sizeof has, (const char *)own + sizeof has,
               (has < bytes ? has : bytes) - sizeof has);
}
