/* utf8.h - is this a character? (Unicode 15, table 3-7: well-formed byte sequences.) */
#ifndef TGI_UTF8_H
#define TGI_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed UTF-8 sequence at the beginning of s[0, n); 0 when there is none:
 * overlong forms, surrogates and what lies beyond U+10FFFF are none. */
static inline size_t tgi_utf8_length(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    if (n == 0 || (p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4)
        return 0;
    const size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    const unsigned char lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned char hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (len > n || (len > 1 && (p[1] < lo || p[1] > hi)))
        return 0;
    for (size_t i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return len;
}

#endif
