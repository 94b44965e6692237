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

const char *tgi_sized_wrong(const void *given)
{
    if (!given)
        return " is NULL";
    if (size_of(given) < sizeof(size_t))
        return ".size is not set: it is the struct's sizeof";
    return " has members set that this version does not know";
}

void tgi_sized_give(void *given, const void *own)
{
    const size_t has = size_of(given), bytes = size_of(own);
    if (has > sizeof has && bytes > sizeof bytes)
        memcpy((char *)given + sizeof has, (const char *)own + sizeof has,
               (has < bytes ? has : bytes) - sizeof has);
}
