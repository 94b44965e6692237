/* av_h264.c - see av_h264.h. */
#include "io/av/av_h264.h"

#define SPS 7
#define SLICE 1 /* of a picture that is no IDR, */
#define PART_A 2
#define SLICE_IDR 5
#define SLICE_B 1    /* and its type, of five */
#define MOST_SPS 512 /* bytes of one that are looked at */

/* Bits of a unit without its bytes against start codes; behind the end there are zeros. */
typedef struct bits {
    uint8_t byte[MOST_SPS];
    size_t n, at; /* bits */
} bits;

static bits bits_of(const uint8_t *unit, size_t n)
{
    bits b = {.n = 0};
    int zeros = 0;
    for (size_t i = 0; i < n && b.n < 8 * (size_t)MOST_SPS; i++) {
        if (zeros >= 2 && unit[i] == 3) {
            zeros = 0;
            continue;
        }
        zeros = unit[i] ? 0 : zeros + 1;
        b.byte[b.n / 8] = unit[i];
        b.n += 8;
    }
    return b;
}

static unsigned bit(bits *b)
{
    const size_t at = b->at++;
    return at < b->n ? (unsigned)b->byte[at / 8] >> (7 - at % 8) & 1u : 0;
}

static uint32_t number(bits *b, int n)
{
    uint32_t v = 0;
    while (n-- > 0)
        v = v << 1 | bit(b);
    return v;
}

/* Exponential Golomb code, section 9.1. */
static uint32_t golomb(bits *b)
{
    int zeros = 0;
    while (zeros < 31 && b->at < b->n && !bit(b))
        zeros++;
    return (1u << zeros) - 1 + number(b, zeros);
}

static int32_t signed_golomb(bits *b)
{
    const uint32_t k = golomb(b);
    return k % 2 ? (int32_t)(k / 2 + 1) : -(int32_t)(k / 2);
}

static void skip_scaling(bits *b, int lists)
{
    for (int i = 0; i < lists; i++) {
        int last = 8, next = 8;
        if (!bit(b))
            continue;
        for (int j = 0; j < (i < 6 ? 16 : 64) && b->at < b->n; j++) {
            if (next)
                next = (int)(((uint32_t)last + (uint32_t)signed_golomb(b)) & 255u);
            last = next ? next : last;
        }
    }
}

/* Those profiles that say how chroma is sampled, and more. */
static int is_high(uint32_t profile)
{
    static const uint8_t high[] = {100, 110, 122, 244, 44,  83, 86,
                                   118, 128, 138, 139, 134, 135};
    for (size_t i = 0; i < sizeof high; i++)
        if (high[i] == profile)
            return 1;
    return 0;
}

static int allows(const uint8_t *unit, size_t n)
{
    bits b = bits_of(unit, n);
    b.at = 8; /* the unit's own head */
    const uint32_t profile = number(&b, 8);
    b.at += 16; /* constraints, level */
    golomb(&b); /* its number */
    if (is_high(profile)) {
        const uint32_t chroma = golomb(&b);
        b.at += chroma == 3;
        golomb(&b); /* depths */
        golomb(&b);
        b.at++; /* transform bypass */
        if (bit(&b))
            skip_scaling(&b, chroma == 3 ? 12 : 8);
    }
    golomb(&b); /* bits of frame numbers */
    const uint32_t order = golomb(&b);
    if (order == 0)
        golomb(&b);
    if (order == 1) {
        b.at++;
        golomb(&b);
        golomb(&b);
        for (uint32_t i = golomb(&b); i > 0 && b.at < b.n; i--)
            golomb(&b);
    }
    golomb(&b); /* reference frames */
    return b.at < b.n && bit(&b);
}

static int is_sps(const uint8_t *unit, size_t n)
{
    return n > 4 && (unit[0] & 31) == SPS;
}

/* 5 bytes, their number in 5 bits, each with its length in 16 bits. */
static int in_record(const uint8_t *p, size_t n)
{
    size_t at = 6;
    for (int i = p[5] & 31; i > 0 && at + 2 <= n; i--) {
        const size_t bytes = (size_t)p[at] << 8 | p[at + 1];
        at += 2;
        if (bytes > n - at)
            return 0;
        if (is_sps(p + at, bytes) && allows(p + at, bytes))
            return 1;
        at += bytes;
    }
    return 0;
}

int tgi_av_h264_allows_gaps(const uint8_t *p, size_t n)
{
    if (p && n > 6 && p[0] == 1)
        return in_record(p, n);
    for (size_t i = 0; p && i + 4 < n; i++)
        if (p[i] == 0 && p[i + 1] == 0 && p[i + 2] == 1 && is_sps(p + i + 3, n - i - 3) &&
            allows(p + i + 3, n - i - 3))
            return 1;
    return 0;
}

static int is_slice(uint8_t head)
{
    const int type = head & 31;
    return type == SLICE || type == PART_A || type == SLICE_IDR;
}

static tgi_av_h264_kind kind_of(const uint8_t *unit, size_t n)
{
    bits b = bits_of(unit, n < 16 ? n : 16);
    b.at = 8;
    golomb(&b); /* its first macroblock */
    if (golomb(&b) % 5 != SLICE_B)
        return TGI_AV_STEM;
    return unit[0] >> 5 & 3 ? TGI_AV_TWIG : TGI_AV_LEAF;
}

tgi_av_h264_kind tgi_av_h264_kind_of(const uint8_t *header, size_t n, const uint8_t *p,
                                     size_t bytes)
{
    const size_t each = header && n > 4 && header[0] == 1 ? (header[4] & 3u) + 1 : 0;
    for (size_t at = 0; each && bytes - at > each;) {
        size_t unit = 0;
        for (size_t i = 0; i < each; i++)
            unit = unit << 8 | p[at + i];
        at += each;
        if (!unit || unit > bytes - at)
            return TGI_AV_STEM;
        if (is_slice(p[at]))
            return kind_of(p + at, unit);
        at += unit;
    }
    for (size_t i = 0; !each && i + 3 < bytes; i++)
        if (p[i] == 0 && p[i + 1] == 0 && p[i + 2] == 1 && is_slice(p[i + 3]))
            return kind_of(p + i + 3, bytes - i - 3);
    return TGI_AV_STEM;
}
