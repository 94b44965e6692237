/* unpack_ccitt.c - fax compression of images of one bit: runs of white and black pixels, coded
 * by themselves (1-D) or as what changed against the row above (2-D). Rows come out as packed
 * bits, black 1, whatever the photometric interpretation says.
 *
 *   2      1-D; each row begins on a whole byte
 *   32771  the same on two bytes
 *   3      1-D, with T4Options also 2-D; rows are parted by end marks (EOL: eleven zeros and a
 * one; in the 2-D form one more bit: the next row is 1-D) 4      2-D throughout, the row above
 * the first is white
 *
 * The state machine goes on code by code, so pieces may end anywhere. A row is kept as the
 * places where the colour changes: even entries to black, odd ones to white, then the width,
 * many times.
 *
 * Source: ITU-T T.4 and T.6; TIFF 6.0, sections 10 and 11. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/ccitt_codes.h"
#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"

#include <string.h>

#define TABLE_BITS 13 /* of the longest code */
#define MODE_BITS 7   /* of the longest vertical mode */
#define PAST_END 4    /* entries behind the last change: a search steps by two */
#define MAX_WIDTH (1u << 24)
#define EOL_ZEROS 11

typedef enum step {
    BEGIN_ROW, /* nothing of the row is read */
    FIND_ONE,  /* behind the zeros of an end mark: skip the others, and the one */
    FIND_TAG,  /* the bit that says how the next row is coded */
    ONE_D,     /* runs, white first */
    MODE,      /* 2-D: the next mode */
    FIRST_RUN, /* of a horizontal mode */
    SECOND_RUN,
    GIVE_ROW
} step;

/* A vertical mode of T.6: where the change lies against b1. */
typedef struct vertical {
    uint8_t code, length; /* length 0: none */
    int8_t shift;
} vertical;

typedef struct ccitt {
    uint16_t run[2]
                [1 << TABLE_BITS]; /* run << 4 | length of its code; 0: no code; white, black */
    vertical mode[1 << MODE_BITS];
    tgi_packing p;
    uint32_t width;
    size_t row_bytes, given; /* of the row, packed; handed out so far */
    uint8_t *row;
    uint32_t *above, *now; /* changes of the row above and of this one; width + 2 + PAST_END */
    uint32_t n_now, b;     /* b: where the last search in `above` ended */
    int64_t a0;            /* up to where the row is known; -1 before its first pixel */
    uint32_t so_far;       /* of a run in several codes */
    bool black;            /* what comes next */
    bool tagged, ended;    /* ended: the end of the block was marked */
    step step;
    uint64_t fed;  /* bytes of the block that went into `hold` */
    uint64_t hold; /* bits, the next one the most significant of `have` */
    unsigned have;
    bool dry; /* the block has no more bytes */
} ccitt;

/* ---- Codes ------------------------------------------------------------------------------- */

/* All words of TABLE_BITS bits that begin with the code. */
static void enter(uint16_t *table, const char *code, unsigned run)
{
    const unsigned length = (unsigned)strlen(code), rest = TABLE_BITS - length;
    unsigned word = 0;
    for (const char *c = code; *c; c++)
        word = word << 1 | (unsigned)(*c - '0');
    for (unsigned i = 0; i < 1u << rest; i++)
        table[word << rest | i] = (uint16_t)(run << 4 | length);
}

static void make_tables(ccitt *f)
{
    for (unsigned i = 0; i < TGI_CCITT_RUNS; i++) {
        const unsigned run = i < 64 ? i : (i - 63) * 64;
        enter(f->run[0], tgi_ccitt_white[i], run);
        enter(f->run[1], tgi_ccitt_black[i], run);
    }
    static const vertical modes[] = {{1, 1, 0},  {3, 3, 1}, {2, 3, -1}, {3, 6, 2},
                                     {2, 6, -2}, {3, 7, 3}, {2, 7, -3}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        for (unsigned k = 0, rest = MODE_BITS - modes[i].length; k < 1u << rest; k++)
            f->mode[(unsigned)modes[i].code << rest | k] = modes[i];
    for (unsigned i = 0; i < TGI_CCITT_EXTENDED; i++)
        for (int c = 0; c < 2; c++)
            enter(f->run[c], tgi_ccitt_extended[i], 1792 + 64 * i);
}

static size_t parts_of(const tgi_packing *p, size_t *row_bytes, size_t *entries)
{
    *row_bytes = ((size_t)p->width + 7) / 8;
    *entries = (size_t)p->width + 2 + PAST_END;
    return sizeof(ccitt) + *row_bytes + 2 * *entries * sizeof(uint32_t);
}

static tg_status ccitt_open(const tgi_packing *p, void **state, tgi_err *err)
{
    size_t row_bytes, entries;
    if (p->width > MAX_WIDTH)
        return tgi_fail(err, TG_E_UNSUPPORTED, "CCITT rows of %u pixels", p->width);
    parts_of(p, &row_bytes, &entries);
    ccitt *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    uint32_t *above = tgi_malloc(TGI_TAG_IO, entries * sizeof *above);
    uint32_t *now = tgi_malloc(TGI_TAG_IO, entries * sizeof *now);
    uint8_t *row = tgi_malloc(TGI_TAG_IO, row_bytes);
    if (!f || !above || !now || !row) {
        tgi_free(f);
        tgi_free(above);
        tgi_free(now);
        tgi_free(row);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a CCITT decoder");
    }
    f->p = *p;
    f->width = p->width;
    f->row_bytes = row_bytes;
    f->above = above;
    f->now = now;
    f->row = row;
    make_tables(f);
    *state = f;
    return TG_OK;
}

static void ccitt_close(void *state)
{
    ccitt *f = state;
    if (!f)
        return;
    tgi_free(f->above);
    tgi_free(f->now);
    tgi_free(f->row);
    tgi_free(f);
}

static size_t ccitt_bytes(const tgi_packing *p)
{
    size_t row_bytes, entries;
    return parts_of(p, &row_bytes, &entries);
}

/* ---- Rows -------------------------------------------------------------------------------- */

static void end_changes(ccitt *f)
{
    for (int i = 0; i < PAST_END; i++)
        f->now[f->n_now + (uint32_t)i] = f->width;
}

static void begin_row(ccitt *f)
{
    f->n_now = f->b = f->so_far = 0;
    f->a0 = -1;
    f->black = false;
    f->given = 0;
    f->step = BEGIN_ROW;
}

static void ccitt_begin(void *state)
{
    ccitt *f = state;
    f->n_now = 0;
    end_changes(f); /* white above the first row */
    uint32_t *white = f->now;
    f->now = f->above;
    f->above = white;
    f->hold = f->fed = 0;
    f->have = 0;
    f->dry = f->ended = f->tagged = false;
    begin_row(f);
}

static tg_status damaged(const char *what, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "CCITT data is damaged (%s)", what);
}

/* The colour changes at `at`. */
static inline tg_status change(ccitt *f, int64_t at, tgi_err *err)
{
    if (at < tgi_max(f->a0, 0) || at > f->width)
        return damaged("a run leaves its row", err);
    if (f->n_now > f->width) /* runs of no pixels, again and again */
        return damaged("a row of too many runs", err);
    f->now[f->n_now++] = (uint32_t)at;
    f->a0 = at;
    f->black = !f->black;
    return TG_OK;
}

/* First change in the row above right of a0 to the other colour than the current one. */
static inline uint32_t find_b1(ccitt *f)
{
    if (f->b)
        f->b--;
    f->b += (f->b & 1) != f->black;
    while (f->above[f->b] <= f->a0 && f->above[f->b] < f->width)
        f->b += 2;
    return f->above[f->b];
}

static inline void set_bits(uint8_t *row, uint32_t from, uint32_t to)
{
    const uint32_t a = from >> 3, b = to >> 3;
    const unsigned head = 0xffu >> (from & 7), tail = 0xff00u >> (to & 7) & 0xff;
    if (from >= to)
        return;
    if (a == b) {
        row[a] |= (uint8_t)(head & tail);
        return;
    }
    row[a] |= (uint8_t)head;
    if (b > a + 1)
        memset(row + a + 1, 0xff, b - a - 1);
    if (tail)
        row[b] |= (uint8_t)tail;
}

static void finish_row(ccitt *f)
{
    memset(f->row, 0, f->row_bytes);
    end_changes(f);
    for (uint32_t i = 0; i < f->n_now; i += 2)
        set_bits(f->row, f->now[i], f->now[i + 1]);
    f->step = GIVE_ROW;
}

static void give_row(ccitt *f, tgi_pieces *io)
{
    const size_t left = f->row_bytes - f->given, n = left < io->room ? left : io->room;
    memcpy(io->dst, f->row + f->given, n);
    io->dst += n;
    io->room -= n;
    f->given += n;
    if (f->given < f->row_bytes)
        return;
    uint32_t *done = f->now;
    f->now = f->above;
    f->above = done;
    begin_row(f);
}

/* ---- Bits -------------------------------------------------------------------------------- */

static inline void refill(ccitt *f, tgi_pieces *io)
{
    if (f->have > 32)
        return; /* enough for any code */
    if (io->n >= 4) {
        f->hold = f->hold << 32 | tgi_load32(io->src, true);
        f->fed += 4;
        f->have += 32;
        io->src += 4, io->n -= 4;
    }
    while (f->have <= 56 && io->n) {
        f->hold = f->hold << 8 | *io->src++;
        f->fed++;
        f->have += 8;
        io->n--;
    }
}

/* The next n <= TABLE_BITS bits; behind the end of the block zeros follow. */
static inline unsigned peek(const ccitt *f, unsigned n)
{
    const uint64_t mask = (UINT64_C(1) << n) - 1;
    return (unsigned)((f->have >= n ? f->hold >> (f->have - n) : f->hold << (n - f->have)) &
                      mask);
}

static inline bool skip(ccitt *f, unsigned n)
{
    if (n > f->have)
        return false;
    f->have -= n; /* what is above stays in `hold` and is not looked at */
    return true;
}

static void align_row(ccitt *f)
{
    const unsigned unit = f->p.compression == TGI_TIFF_CCITT_RLE    ? 8
                          : f->p.compression == TGI_TIFF_CCITT_RLEW ? 16
                                                                    : 1;
    const uint64_t used = 8 * f->fed - f->have;
    skip(f, (unsigned)((unit - used % unit) % unit));
}

/* ---- One code at a time ------------------------------------------------------------------ */

/* A whole run, of several codes when it is long: *done. False in *got: bits are missing. */
static inline tg_status take_run(ccitt *f, bool *got, bool *done, tgi_err *err)
{
    const uint16_t e = f->run[f->black][peek(f, TABLE_BITS)];
    *done = false;
    if (!e && f->dry && f->have < TABLE_BITS) {
        *got = false;
        return TG_OK;
    }
    if (!e)
        return damaged("no code of a run", err);
    *got = skip(f, e & 15);
    if (!*got)
        return TG_OK;
    f->so_far += e >> 4;
    if (f->so_far > f->width)
        return damaged("a run leaves its row", err);
    *done = e >> 4 < 64;
    return TG_OK;
}

static inline tg_status run_step(ccitt *f, bool *got, tgi_err *err)
{
    bool done;
    TGI_TRY(take_run(f, got, &done, err));
    if (!done)
        return TG_OK;
    const int64_t at = tgi_max(f->a0, 0) + f->so_far;
    f->so_far = 0;
    TGI_TRY(change(f, at, err));
    if (f->step == FIRST_RUN)
        f->step = SECOND_RUN;
    else if (f->a0 >= f->width)
        finish_row(f);
    else if (f->step == SECOND_RUN)
        f->step = MODE;
    return TG_OK;
}

static inline tg_status mode_step(ccitt *f, bool *got, tgi_err *err)
{
    const vertical v = f->mode[peek(f, MODE_BITS)];
    if (v.length) {
        if (!(*got = skip(f, v.length)))
            return TG_OK;
        TGI_TRY(change(f, (int64_t)find_b1(f) + v.shift, err));
        if (f->a0 >= f->width)
            finish_row(f);
        return TG_OK;
    }
    if (peek(f, 3) == 1) { /* horizontal */
        *got = skip(f, 3);
        f->step = *got ? FIRST_RUN : MODE;
    } else if (peek(f, 4) == 1) { /* pass: the two changes above are not repeated */
        if ((*got = skip(f, 4))) {
            find_b1(f);
            f->a0 = f->above[f->b + 1];
            if (f->a0 >= f->width)
                return damaged("a row that passes its end", err);
        }
    } else if (f->dry && f->have < EOL_ZEROS + 1) {
        *got = false;
    } else {
        return damaged("no code of a change", err);
    }
    return TG_OK;
}

/* End marks, and how the row is coded. */
static bool begin_step(ccitt *f)
{
    const bool fax4 = f->p.compression == TGI_TIFF_CCITT_FAX4;
    const bool fax3 = f->p.compression == TGI_TIFF_CCITT_FAX3;
    align_row(f);
    if ((fax3 || fax4) && f->have >= EOL_ZEROS && peek(f, EOL_ZEROS) == 0) {
        f->ended = fax4; /* two of them end the block; one already says so */
        f->step = FIND_ONE;
        return !fax4;
    }
    if (!f->have && f->dry)
        return false;
    if (fax4)
        f->step = MODE;
    else if (fax3 && f->p.fax_options & 1 && f->tagged)
        f->step = FIND_TAG;
    else
        f->step = ONE_D;
    return true;
}

static bool tag_step(ccitt *f)
{
    if (!f->have)
        return false;
    f->step = peek(f, 1) ? ONE_D : MODE;
    f->tagged = false;
    return skip(f, 1);
}

/* Zeros of any number, and the one behind them. */
static bool one_step(ccitt *f)
{
    while (f->have && !peek(f, 1))
        skip(f, 1);
    if (!f->have)
        return false;
    skip(f, 1);
    f->tagged = true;
    f->step = BEGIN_ROW;
    return true;
}

static tg_status take_step(ccitt *f, bool *got, tgi_err *err)
{
    *got = true;
    switch (f->step) {
    case BEGIN_ROW:
        *got = begin_step(f);
        return TG_OK;
    case FIND_ONE:
        *got = one_step(f);
        return TG_OK;
    case FIND_TAG:
        *got = tag_step(f);
        return TG_OK;
    case MODE:
        return mode_step(f, got, err);
    default:
        return run_step(f, got, err);
    }
}

static tg_status ccitt_more(void *state, tgi_pieces *io, tgi_err *err)
{
    ccitt *f = state;
    f->dry = f->dry || !io->n;
    while (io->room && !f->ended) {
        bool got = true;
        if (f->step == GIVE_ROW) {
            give_row(f, io);
            continue;
        }
        refill(f, io);
        if (f->have < 2 * TABLE_BITS && !io->n && !f->dry) /* the next code may not be whole */
            break;
        TGI_TRY(take_step(f, &got, err));
        if (!got && (f->dry || f->ended))
            break;
    }
    io->ended = f->ended;
    return TG_OK;
}

const tgi_codec tgi_codec_ccitt = {.name = "CCITT",
                                   .fuzzed = TGI_FUZZED,
                                   .open = ccitt_open,
                                   .close = ccitt_close,
                                   .bytes = ccitt_bytes,
                                   .begin = ccitt_begin,
                                   .more = ccitt_more};
