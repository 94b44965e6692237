/* av_sums.c - see av_sums.h.
 *
 * The first child of a cluster, or of another element of the top, may be a CRC-32 of all that follows in it; ffmpeg writes such
 * (mkvmerge none). The walk is flat, as in av_ends_mkv.c, and reads each byte once.
 * Source: RFC 8794 (EBML), section 11.3.1; RFC 9559 (Matroska), section 6.2. */
#include "io/av/av_sums.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"

#include <errno.h>
#include <libavutil/crc.h>
#include <stdio.h>
#include <unistd.h>

#define CRC_32 0xbf
#define PIECE (128 << 10) /* bytes that are read at once */

typedef struct sums {
    tgi_av_input *in;
    tgi_av_ends ends;
    uint8_t *piece;
    const AVCRC *table;
    tgi_av_sums *out;
} sums;

/* What is looked at, as it is named; NULL: another element. */
static const char *name_of(uint32_t id)
{
    static const struct {
        uint32_t id;
        const char *name;
    } known[] = {{TGI_MKV_CLUSTER, "a cluster"}, {TGI_MKV_EBML, "its EBML header"},
                 {0x114d9b74, "its seek head"},  {0x1549a966, "its information"},
                 {0x1654ae6b, "its tracks"},     {0x1c53bb6b, "its cues"},
                 {0x1043a770, "its chapters"},   {0x1254c367, "its tags"},
                 {0x1941a469, "its attachments"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].id == id)
            return known[i].name;
    return NULL;
}

/* All that have checksums are known: where another has, a bit of its name is another, and a demuxer passes over it. */
static int is_of_the_top(uint32_t id)
{
    return id >= 0x10000000;
}

static tg_status sum_of(sums *s, int64_t at, int64_t end, uint32_t *sum, tgi_err *err)
{
    *sum = UINT32_MAX;
    while (at < end) {
        if (tgi_av_input_cancelled(s->in))
            return tgi_av_failed(s->in, 0, "the film's checksums", err);
        const ssize_t got = pread(s->in->fd, s->piece, (size_t)tgi_min(PIECE, end - at), at);
        if (got <= 0) { /* somebody cuts it while it is read: EIO */
            s->in->read_error = got < 0 ? errno : EIO;
            return tgi_av_failed(s->in, 0, "the film's checksums", err);
        }
        *sum = av_crc(s->table, *sum, s->piece, (size_t)got);
        at += got;
    }
    *sum ^= UINT32_MAX;
    return TG_OK;
}

enum { NO_SUM, HOLDS, IS_WRONG };

static tg_status check(sums *s, const tgi_mkv_element *x, int *how, tgi_err *err)
{
    tgi_mkv_element first;
    uint32_t sum;
    *how = NO_SUM;
    if (x->at >= x->end || tgi_mkv_element_at(&s->ends, x->at, &first) != TGI_MKV_ELEMENT ||
        first.id != CRC_32)
        return TG_OK;
    *how = IS_WRONG;
    const int fits = first.end - first.at == 4 && first.end <= x->end;
    if (!fits)
        return TG_OK;
    *how = NO_SUM; /* where it cannot be read, which ends the walk */
    const uint8_t *b = tgi_av_ends_at(&s->ends, first.at, 4);
    if (!b)
        return TG_OK;
    const uint32_t said = tgi_load32(b, false);
    TGI_TRY(sum_of(s, first.end, x->end, &sum, err));
    *how = sum == said ? HOLDS : IS_WRONG;
    return TG_OK;
}

static void note_bad(tgi_av_sums *s, const tgi_mkv_element *x)
{
    tgi_av_bad *last = s->n ? &s->bad[s->n - 1] : NULL;
    if (x->id != TGI_MKV_CLUSTER) {
        s->at = s->of ? s->at : x->from;
        s->end = s->of ? s->end : x->end;
        s->is_none |= !s->of && !name_of(x->id);
        s->of = s->of ? s->of : name_of(x->id) ? name_of(x->id) : "an element of no known name";
    } else if (last && (last->end == x->from || s->n == TGI_AV_SUMS))
        last->end = x->end;
    else
        s->bad[s->n++] = (tgi_av_bad){.at = x->from, .end = x->end};
}

/* Amid a segment that says its length, and of which all is there. Demuxers search for what they know behind it, and may come to
 * the end. */
static void note_none(tgi_av_sums *s, int64_t at, int64_t end)
{
    if (at >= end || s->of)
        return;
    s->of = "no element of it";
    s->at = at;
    s->end = end;
    s->is_none = 1;
}

static tg_status walk(sums *s, tgi_err *err)
{
    tgi_mkv_element x;
    int how;
    int64_t at = 0, end = s->in->size,
            whole = 0; /* whole: where a segment ends of which all is there */
    while (at < end) {
        const int got = tgi_mkv_element_at(&s->ends, at, &x);
        if (s->ends.gave_up || (at == 0 && (got != TGI_MKV_ELEMENT || x.id != TGI_MKV_EBML)))
            return TG_OK;
        const int goes_in = got == TGI_MKV_ELEMENT &&
                            (x.id == TGI_MKV_SEGMENT || (x.open && x.id == TGI_MKV_CLUSTER));
        if (got != TGI_MKV_ELEMENT || (!goes_in && x.end > end)) {
            note_none(s->out, at, whole);
            return TG_OK;
        }
        if (x.id == TGI_MKV_SEGMENT && !x.open && x.end <= end)
            end = whole = x.end;
        if (!goes_in && (name_of(x.id) || is_of_the_top(x.id))) {
            TGI_TRY(check(s, &x, &how, err));
            if (how == IS_WRONG || (how == HOLDS && !name_of(x.id)))
                note_bad(s->out, &x);
        }
        at = goes_in ? x.at : x.end;
    }
    return TG_OK;
}

tg_status tgi_av_sums_look(tgi_av_input *in, tgi_av_sums *out, tgi_err *err)
{
    sums s = {.in = in,
              .ends = {.fd = in->fd, .size = in->size, .cancelled = in->cancelled},
              .table = av_crc_get_table(AV_CRC_32_IEEE_LE),
              .out = out};
    *out = (tgi_av_sums){.n = 0};
    s.piece = tgi_malloc(TGI_TAG_IO, PIECE);
    if (!s.piece)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film's checksums");
    const tg_status st = walk(&s, err);
    tgi_free(s.piece);
    return st;
}

tgi_av_bad *tgi_av_sums_at(tgi_av_sums *s, int64_t place)
{
    for (int i = 0; i < s->n && s->bad[i].at <= place; i++)
        if (place < s->bad[i].end)
            return &s->bad[i];
    return NULL;
}

void tgi_av_sums_tell(const tgi_av_sums *s, char *to, size_t cap)
{
    const char *of = s->of;
    int64_t at = s->at, end = s->end;
    for (int i = 0; i < s->n && !of; i++)
        if (!s->bad[i].has_frames) {
            of = "a cluster";
            at = s->bad[i].at;
            end = s->bad[i].end;
        }
    to[0] = 0;
    if (of)
        snprintf(to, cap, "%s%s, bytes %lld to %lld", s->is_none ? "" : "wrong checksum of ",
                 of, (long long)at, (long long)end);
}
