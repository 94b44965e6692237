/* av_mp4.c - what the boxes of an MP4 or MOV say of its samples, before a demuxer takes memory for them.
 *
 * A demuxer makes an entry for each sample when it opens a file, and the number stands there as it is:
 * a file of two kilobytes may name 2^32 samples of no size, or 2^32 in each chunk, or have each edit show all of
 * them again. A sample that is there has a byte; an edit shows some of them. What goes beyond is refused.
 * Boxes: ISO/IEC 14496-12:2015, sections 4.2, 8.4.3, 8.6.1.2, 8.6.6, 8.7.3, 8.7.4, 8.7.5, 8.8.8. */
#include "engine/base/arith.h"
#include "io/av/av_boxes.h"
#include "io/av/av_input.h"

#include <string.h>
#include <unistd.h>

#define MOST_DEPTH 10
#define ASK_EACH 4096 /* looks at the file, whether somebody stops it */
#define MOST_BOXES (1 << 22)
#define FEW_SAMPLES ((size_t)1 << 20)  /* that any file may name */
#define MANY_SAMPLES ((size_t)1 << 25) /* that none may */
#define MANY_EDITED ((size_t)1 << 24)
#define BOX_HEAD TGI_AV_BOX_HEAD
#define LARGE_HEAD 16   /* of a box whose size has 64 bits */
#define SOUND_BLOCK 160 /* samples of sound that share an entry, at least */

typedef struct track {
    int is_sound, uneven; /* uneven: samples of sound are not all 1 tick long */
    size_t samples, chunks, in_chunk, edits;
} track;

typedef struct mp4 {
    const tgi_av_input *in;
    track now;
    size_t entries, edited; /* of all tracks */
    size_t headers;         /* bytes of what all tracks say of how their samples are stored */
    int boxes;
    int looks, stopped;
    int has_index; /* a moov that is whole */
    int in_fragments;
    int64_t lacks, size; /* as in tgi_av_input, */
    const char *of;      /* lacks_of there */
    int64_t head;        /* a fragment's head whose samples did not come yet; -1: of none */
    int64_t named;       /* where the last fragment ends that an index of them (sidx) names */
    size_t before;       /* entries that there were before it */
} mp4;

/* Of the file. */
static uint32_t number(const mp4 *m, int64_t at)
{
    return tgi_av_box_number(m->in->fd, at);
}

static int is_stopped(mp4 *m)
{
    if (m->looks++ % ASK_EACH == 0)
        m->stopped |= tgi_av_input_cancelled(m->in);
    return m->stopped;
}

/* 0: there is none. */
static int box_at(mp4 *m, int64_t at, int64_t end, tgi_av_box *b)
{
    if (is_stopped(m) || !tgi_av_box_at(m->in->fd, at, end, b))
        return 0;
    m->boxes++;
    return m->boxes <= MOST_BOXES;
}

static void take_most(size_t *to, size_t n)
{
    *to = n > *to ? n : *to;
}

/* A box that says how many. Of two of a kind the worse counts: demuxers take either. */
static void take_counts(mp4 *m, const tgi_av_box *b)
{
    track *t = &m->now;
    const uint32_t second = number(m, b->at + 4), third = number(m, b->at + 8);
    if (tgi_av_box_is(b, "hdlr") &&
        (third == 0x736f756e || third == 0x76696465)) /* a MOV has others, too */
        t->is_sound = third == 0x736f756e;            /* soun, else vide */
    if (tgi_av_box_is(b, "stts"))
        t->uneven |= second != 1 || number(m, b->at + 12) != 1;
    if (tgi_av_box_is(b, "stsz") || tgi_av_box_is(b, "stz2"))
        take_most(&t->samples, third);
    if (tgi_av_box_is(b, "stco") || tgi_av_box_is(b, "co64"))
        take_most(&t->chunks, second);
    if (tgi_av_box_is(b, "elst"))
        take_most(&t->edits, second);
    for (int64_t i = 0; tgi_av_box_is(b, "stsc") && i < second &&
                        b->at + 12 * i + 20 <= b->end && !is_stopped(m);
         i++)
        take_most(&t->in_chunk, number(m, b->at + 12 * i + 12));
    if (tgi_av_box_is(b, "stsd"))
        m->headers = tgi_sat_add(m->headers, (size_t)(b->end - b->at));
    if (tgi_av_box_is(b, "trun"))
        m->entries = tgi_sat_add(m->entries, second);
}

/* The entries of the track whose boxes went by. */
static void count_track(mp4 *m)
{
    const track *t = &m->now;
    size_t n = t->samples;
    if (t->is_sound && !t->uneven)
        n = tgi_sat_add(t->chunks, tgi_sat_mul(t->chunks, t->in_chunk) / SOUND_BLOCK);
    m->entries = tgi_sat_add(m->entries, n);
    if (t->edits > 2)
        m->edited = tgi_sat_add(m->edited, tgi_sat_mul(n, t->edits));
    m->now = (track){0};
}

static int has_boxes(const tgi_av_box *b)
{
    static const char names[][5] = {"moov", "trak", "mdia", "minf", "stbl",
                                    "edts", "moof", "traf", "mvex", "udta",
                                    "dinf", "tref", "wave", "free", "hoov"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tgi_av_box_is(b, names[i]))
            return 1;
    return 0;
}

static void lacks(mp4 *m, int64_t n, int64_t whole, const char *of)
{
    m->lacks = n;
    m->size = whole;
    m->of = of;
}

/* Is it one that stands in no other? What somebody put behind a film is none. */
static int is_outer(const tgi_av_box *b)
{
    static const char names[][5] = {"ftyp", "moov", "moof", "mdat", "free", "skip",
                                    "wide", "uuid", "sidx", "ssix", "styp", "prft",
                                    "emsg", "mfra", "meta", "udta", "pnot"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tgi_av_box_is(b, names[i]))
            return 1;
    return 0;
}

/* Fragments behind each other, from a place behind the box on. Source: ISO/IEC 14496-12:2015, section 8.16.3. */
static void take_named(mp4 *m, const tgi_av_box *b)
{
    const int large = number(m, b->at) >> 24 != 0; /* places have 64 bits */
    const int64_t first = b->at + (large ? 20 : 16), refs = first + (large ? 8 : 4);
    uint64_t end = (uint64_t)b->end + number(m, large ? first + 4 : first);
    const uint32_t n = number(m, refs) & 0xffff;
    for (uint32_t i = 0; i < n && refs + 4 + 12 * (int64_t)(i + 1) <= b->end; i++)
        end += number(m, refs + 4 + 12 * (int64_t)i) & INT32_MAX;
    m->named = tgi_max(m->named, (int64_t)end);
}

/* A box that is in no other. Source: ISO/IEC 14496-12:2015, section 8.8: a fragment is a moof, and the mdat behind it. */
static void note_outer(mp4 *m, const tgi_av_box *b)
{
    const int is_data = tgi_av_box_is(b, "mdat");
    if (tgi_av_box_is(b, "moof")) {
        m->in_fragments = 1;
        m->head = b->from;
        m->before = m->entries;
    }
    if (is_data)
        m->head = -1;
    if (tgi_av_box_is(b, "sidx") && !b->lacks)
        take_named(m, b);
    if (b->lacks && is_outer(b)) /* a demuxer takes all but samples as a whole */
        lacks(m, b->lacks, is_data ? m->in->size : b->from,
              m->in_fragments && (is_data || tgi_av_box_is(b, "moof")) ? "its last fragment"
              : is_data                                                ? "its mdat box"
                                                                       : "its last box");
}

/* The first byte of the head of a box: none of 16 MiB or more but an mdat follows others, and those say their lengths
 * elsewhere. */
static int may_be_head(mp4 *m, int64_t at)
{
    uint8_t b;
    return pread(m->in->fd, &b, 1, at) == 1 && b == 0;
}

/* Behind the last box that is in no other: the file ends there, or in the head of one, or a fragment lacks its samples. Only
 * films of fragments go on behind what is there. */
static void note_end(mp4 *m, int64_t at)
{
    const int64_t left = m->in->size - at;
    if (m->in_fragments && left > 0 && left < BOX_HEAD && may_be_head(m, at))
        lacks(m, BOX_HEAD - left, at, "its last box");
    else if (m->in_fragments && left >= BOX_HEAD && left < LARGE_HEAD && number(m, at) == 1)
        lacks(m, LARGE_HEAD - left, at, "its last box");
    if (!m->lacks && m->in_fragments && m->named > m->in->size)
        lacks(m, m->named - m->in->size, m->in->size, "its last fragment");
    if (m->head < 0 || m->entries == m->before || m->size <= m->head)
        return;
    lacks(m, m->lacks ? m->lacks : BOX_HEAD, m->head, "its last fragment");
}

/* Boxes in boxes. */
static tg_status walk(mp4 *m, int64_t end, tgi_err *err)
{
    int64_t at[MOST_DEPTH + 1] = {0}, ends[MOST_DEPTH + 1] = {end};
    tgi_av_box b;
    for (int depth = 0; depth >= 0;) {
        if (!box_at(m, at[depth], ends[depth], &b)) {
            if (depth == 0)
                note_end(m, at[0]);
            depth--;
            continue;
        }
        at[depth] = b.end;
        if (tgi_av_box_is(&b, "cmov"))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "a MOV whose header is compressed, which is not read");
        if (tgi_av_box_is(&b, "trak"))
            count_track(m);
        if (depth == 0)
            note_outer(m, &b);
        m->has_index |= tgi_av_box_is(&b, "moov") && !b.is_cut;
        if (!has_boxes(&b)) {
            take_counts(m, &b);
        } else if (depth < MOST_DEPTH) {
            depth++;
            at[depth] = b.at;
            ends[depth] = b.end;
        }
    }
    count_track(m);
    if (m->stopped)
        return tgi_fail(err, TG_E_CANCELLED, "stopped while a film was read");
    return m->boxes <= MOST_BOXES
               ? TG_OK
               : tgi_fail(err, TG_E_UNSUPPORTED, "a film of more than %d boxes", MOST_BOXES);
}

tg_status tgi_av_mp4_look(tgi_av_input *in, tgi_err *err)
{
    mp4 m = {.in = in, .size = in->size, .head = -1};
    tgi_av_box b = {.at = 0};
    if (!box_at(&m, 0, in->size, &b) ||
        !(tgi_av_box_is(&b, "ftyp") || tgi_av_box_is(&b, "moov") || tgi_av_box_is(&b, "mdat") ||
          tgi_av_box_is(&b, "wide")))
        return TG_OK;
    TGI_TRY(walk(&m, in->size, err));
    const size_t bytes = (size_t)in->size;
    const size_t most = bytes < FEW_SAMPLES    ? FEW_SAMPLES
                        : bytes > MANY_SAMPLES ? MANY_SAMPLES
                                               : bytes;
    if (m.entries > most || m.edited > MANY_EDITED)
        return tgi_fail(
            err, TG_E_FORMAT,
            "the file's header names %zu samples, of which edits show %zu, in %zu bytes",
            m.entries, m.edited, bytes);
    in->track_bytes = (int64_t)m.headers;
    in->lacks = m.lacks;
    in->lacks_of = m.of;
    in->size = m.size;
    if (m.has_index)
        return TG_OK;
    return tgi_fail(
        err, TG_E_FORMAT,
        "its index (the moov box) is missing or cut, without which nobody knows where its "
        "frames lie: the copy or the recording was not finished. Copy the whole file "
        "again; "
        "of a recording, tools that restore a moov can make one with a whole film of the "
        "same camera");
}
