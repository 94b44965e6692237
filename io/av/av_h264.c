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

#define SETS 32 /* numbers that a sequence parameter set may have */

/* What a set says of gaps. One that ends too early says nothing. */
static void note_set(uint32_t *gaps, const uint8_t *unit, size_t n)
{
    bits b = bits_of(unit, n);
    b.at = 8; /* the unit's own head */
    const uint32_t profile = number(&b, 8);
    b.at += 16; /* constraints, level */
    const uint32_t set = golomb(&b);
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
    if (b.at >= b.n || set >= SETS)
        return;
    *gaps &= ~((uint32_t)1 << set);
    *gaps |= (uint32_t)bit(&b) << set;
}

static int is_sps(const uint8_t *unit, size_t n)
{
    return n > 4 && (unit[0] & 31) == SPS;
}

/* 5 bytes, their number in 5 bits, each with its length in 16 bits. */
static void note_record(uint32_t *gaps, const uint8_t *p, size_t n)
{
    size_t at = 6;
    for (int i = p[5] & 31; i > 0 && at + 2 <= n; i--) {
        const size_t bytes = (size_t)p[at] << 8 | p[at + 1];
        at += 2;
        if (bytes > n - at)
            return;
        if (is_sps(p + at, bytes))
            note_set(gaps, p + at, bytes);
        at += bytes;
    }
}

static int is_record(const uint8_t *header, size_t n)
{
    return header && n > 6 && header[0] == 1;
}

/* Units of a packet: behind their lengths of `each` bytes, or, 0, behind start codes; those go to the packet's end. */
typedef struct units {
    const uint8_t *p;
    size_t n, at, each;
} units;

static units units_of(const uint8_t *header, size_t n, const uint8_t *packet, size_t bytes)
{
    const size_t each = is_record(header, n) ? (header[4] & 3u) + 1 : 0;
    return (units){packet, packet ? bytes : 0, 0, each};
}

/* NULL: there is none any more. */
static const uint8_t *next_unit(units *u, size_t *n)
{
    if (u->each) {
        size_t bytes = 0, i = 0;
        if (u->n - u->at <= u->each)
            return NULL;
        for (; i < u->each; i++)
            bytes = bytes << 8 | u->p[u->at++];
        if (!bytes || bytes > u->n - u->at)
            return NULL;
        u->at += bytes;
        *n = bytes;
        return u->p + u->at - bytes;
    }
    for (; u->at + 3 < u->n; u->at++)
        if (u->p[u->at] == 0 && u->p[u->at + 1] == 0 && u->p[u->at + 2] == 1) {
            u->at += 3;
            *n = u->n - u->at;
            return u->p + u->at;
        }
    return NULL;
}

static int is_slice(uint8_t head)
{
    const int type = head & 31;
    return type == SLICE || type == PART_A || type == SLICE_IDR;
}

void tgi_av_h264_note_header(uint32_t *gaps, const uint8_t *header, size_t n)
{
    if (is_record(header, n))
        note_record(gaps, header, n);
    else
        tgi_av_h264_note_packet(gaps, NULL, 0, header, n);
}

void tgi_av_h264_note_packet(uint32_t *gaps, const uint8_t *header, size_t n, const uint8_t *p,
                             size_t bytes)
{
    units u = units_of(header, n, p, bytes);
    const uint8_t *unit;
    size_t of;
    while ((unit = next_unit(&u, &of)) != NULL && !is_slice(unit[0]))
        if (is_sps(unit, of))
            note_set(gaps, unit, of);
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
    units u = units_of(header, n, p, bytes);
    const uint8_t *unit;
    size_t of;
    while ((unit = next_unit(&u, &of)) != NULL)
        if (is_slice(unit[0]))
            return kind_of(unit, of);
    return TGI_AV_STEM;
}
