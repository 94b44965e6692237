/* av_ends.c - see av_ends.h: AVI, FLV, IVF, Ogg, ASF, MXF, GIF, NUT, DV.
 *
 * Each is a row of parts that say how long they are. The walk goes from part to part, and what the last one says against
 * the size of the file is all that is looked at: what stands in the midst is the demuxer's. Where something stands that is
 * no part, the walk ends, and nothing is said. */
#include "io/av/av_ends.h"

#include "engine/base/arith.h"
#include "io/bytes.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define MOST_LOOKS (1 << 26)
#define ASK_EACH 4096 /* looks, whether somebody stops it */

/* ---- Bytes ------------------------------------------------------------------------------- */

const uint8_t *tgi_av_ends_at(tgi_av_ends *e, int64_t at, int n)
{
    e->looks++;
    if (e->looks > MOST_LOOKS || (e->looks % ASK_EACH == 0 && e->cancelled && e->cancelled()))
        e->gave_up = 1;
    if (e->gave_up || at < 0 || n > e->size - at)
        return NULL;
    if (at < e->from || at + n > e->from + e->kept) {
        const ssize_t got = pread(e->fd, e->bytes, sizeof e->bytes, at);
        e->from = at;
        e->kept = got > 0 ? (int)got : 0;
        e->gave_up |= e->kept < n;
    }
    return e->gave_up ? NULL : e->bytes + (at - e->from);
}

void tgi_av_ends_in(tgi_av_ends *e, int64_t at, int64_t end, const char *of)
{
    e->of = of;
    e->lacks = tgi_max(1, end - e->size);
    e->whole = at;
}

void tgi_av_ends_another(tgi_av_ends *e, int64_t at)
{
    e->whole = at;
    e->another = 1;
}

/* The file has n bytes there, or ends amid them: those that there are. */
static int begins(tgi_av_ends *e, int64_t at, const char *bytes, int n)
{
    const int m = (int)tgi_min(n, e->size - at);
    const uint8_t *b = m > 0 ? tgi_av_ends_at(e, at, m) : NULL;
    return b && memcmp(b, bytes, (size_t)m) == 0;
}

static int is_kind(tgi_av_ends *e, const char *bytes, int n)
{
    return e->size >= n && begins(e, 0, bytes, n);
}

/* ---- AVI --------------------------------------------------------------------------------- */

/* Source: Microsoft, "AVI RIFF File Reference", and "OpenDML AVI File Format Extensions" for the RIFF lists behind the first. A
 * writer that cannot go back leaves sizes 0 or -1. */
typedef struct riff {
    int64_t end; /* of the RIFF list; INT64_MAX: it does not say */
    int has_index;
} riff;

#define COUNTS_ITS_HEAD 8 /* bytes by which some writers say too much of a RIFF list */

static int is_open(uint32_t size)
{
    return size == 0 || size == UINT32_MAX;
}

static int is_list(tgi_av_ends *e, int64_t at, const char *kind)
{
    const uint8_t *b = tgi_av_ends_at(e, at, 12);
    return b && memcmp(b, "LIST", 4) == 0 && memcmp(b + 8, kind, 4) == 0;
}

/* Where to go on behind the chunk at `at`; 0: nowhere. */
static int64_t avi_chunk(tgi_av_ends *e, int64_t at, riff *r)
{
    const uint8_t *b = tgi_av_ends_at(e, at, 8);
    if (!b) {
        if (at < r->end || begins(e, at, "RIFF", 4))
            tgi_av_ends_in(e, at, r->end < INT64_MAX ? r->end : at + 8, "its last chunk");
        return 0;
    }
    const uint32_t size = tgi_load32(b + 4, false);
    const int64_t end = at + 8 + (int64_t)size;
    if (memcmp(b, "RIFF", 4) == 0) {
        *r = (riff){.end = is_open(size) ? INT64_MAX : end};
        return at + 12;
    }
    for (int i = 0; i < 4; i++)
        if (b[i] < ' ' || b[i] > '~')
            return 0;
    if (at >= r->end)
        return 0;
    if (is_list(e, at, "hdrl"))
        e->header = tgi_max(e->header, (int64_t)size);
    r->has_index |= memcmp(b, "idx1", 4) == 0;
    if (memcmp(b, "LIST", 4) == 0 && begins(e, at + 8, "movi", 4) &&
        (is_open(size) || end > e->size))
        return at + 12;
    if (end > e->size)
        tgi_av_ends_in(e, at, r->end < INT64_MAX ? tgi_max(end, r->end) : end,
                       "its last chunk");
    return end > e->size ? 0 : end + (size & 1);
}

static int avi_ends(tgi_av_ends *e)
{
    riff r = {.end = INT64_MAX};
    int64_t at = 0, next = 1;
    if (!is_kind(e, "RIFF", 4))
        return 0;
    for (; at < e->size && next; at = next ? next : at)
        next = avi_chunk(e, at, &r);
    /* An index is the last of a list: behind it nothing lacks, whatever the list says. */
    if (!e->of && next && r.end < INT64_MAX && r.end - COUNTS_ITS_HEAD > e->size &&
        !r.has_index)
        tgi_av_ends_in(e, e->size, r.end, "its RIFF list");
    return 1;
}

/* ---- FLV --------------------------------------------------------------------------------- */

/* Source: Adobe Flash Video File Format Specification 10.1, annex E.3, E.4. Behind each tag stands its size again; of the last
 * one some writers have none. */
#define FLV_TAG 11
#define FLV_AGAIN 4

static int flv_ends(tgi_av_ends *e)
{
    const uint8_t *b = is_kind(e, "FLV\1", 4) ? tgi_av_ends_at(e, 0, 9) : NULL;
    if (!b)
        return 0;
    for (int64_t at = (int64_t)tgi_load32(b + 5, true) + FLV_AGAIN, end; at < e->size;
         at = end + FLV_AGAIN) {
        b = tgi_av_ends_at(e, at, 1);
        const int kind = b ? b[0] & 0x1f : 0;
        if (e->size - at >= 9 && begins(e, at, "FLV\1", 4)) /* its head is there */
            tgi_av_ends_another(e, at);
        if (kind != 8 && kind != 9 && kind != 18)
            break;
        b = tgi_av_ends_at(e, at, FLV_TAG);
        end = at + FLV_TAG + (b ? (int64_t)(tgi_load32(b, true) & 0xffffff) : FLV_AGAIN);
        if (!b || end > e->size)
            tgi_av_ends_in(e, at, end + FLV_AGAIN, "its last tag");
        else if (end < e->size && end + FLV_AGAIN > e->size)
            tgi_av_ends_in(e, end, end + FLV_AGAIN, "its last tag");
        if (e->of)
            break;
    }
    return 1;
}

/* ---- IVF --------------------------------------------------------------------------------- */

/* Source: the description of IVF with libvpx: a head, and 12 bytes in front of each frame. */
#define IVF_FRAME 12

static int ivf_ends(tgi_av_ends *e)
{
    const uint8_t *b = is_kind(e, "DKIF", 4) ? tgi_av_ends_at(e, 0, 32) : NULL;
    if (!b)
        return 0;
    const uint32_t frames = tgi_load32(b + 24, false); /* 0: not known */
    uint32_t n = 0;
    for (int64_t at = tgi_load16(b + 6, false), end; at < e->size && !e->of && !e->gave_up;
         at = end) {
        if (frames && n++ == frames)
            return 1; /* behind the last one there may be anything */
        b = tgi_av_ends_at(e, at, IVF_FRAME);
        end = at + IVF_FRAME + (b ? (int64_t)tgi_load32(b, false) : 0);
        if (end > e->size)
            tgi_av_ends_in(e, at, end, "its last frame");
    }
    return 1;
}

/* ---- Ogg --------------------------------------------------------------------------------- */

/* Source: RFC 3533, section 6. */
#define OGG_HEAD 27
#define OGG_GOES_ON 255 /* a segment behind which the packet goes on */
#define OGG_STREAMS 64

typedef struct ogg {
    struct {
        uint32_t serial;
        int goes_on, ended;
    } of[OGG_STREAMS];
    int n, has_data; /* has_data: a page that begins no stream was there */
} ogg;

static void note_page(ogg *o, uint32_t serial, int goes_on, int ended)
{
    int i = 0;
    while (i < o->n && o->of[i].serial != serial)
        i++;
    if (i == OGG_STREAMS)
        return;
    o->n = i == o->n ? i + 1 : o->n;
    o->of[i].serial = serial;
    o->of[i].goes_on = goes_on;
    o->of[i].ended = ended;
}

/* Where to go on; 0: nowhere. */
static int64_t ogg_page(tgi_av_ends *e, int64_t at, ogg *o)
{
    if (!begins(e, at, "OggS", 4))
        return 0;
    const uint8_t *b = tgi_av_ends_at(e, at, OGG_HEAD);
    const int n = b ? b[OGG_HEAD - 1] : 0;
    const uint8_t *s = b ? tgi_av_ends_at(e, at, OGG_HEAD + n) : NULL;
    int64_t end = at + OGG_HEAD + n;
    const int begins_stream =
        b && b[5] & 2; /* all of a film's do so in front of its other pages */
    if (begins_stream && o->has_data) {
        tgi_av_ends_another(e, at);
        return e->size;
    }
    o->has_data |= b && !begins_stream;
    for (int i = 0; s && i < n; i++)
        end += s[OGG_HEAD + i];
    if (!s || end > e->size) {
        tgi_av_ends_in(e, at, end, "its last page");
        return 0;
    }
    note_page(o, tgi_load32(s + 14, false), n && s[OGG_HEAD + n - 1] == OGG_GOES_ON,
              (s[5] & 4) != 0);
    return end;
}

static int ogg_ends(tgi_av_ends *e)
{
    ogg o = {.n = 0};
    int64_t at = 0, next = 1;
    if (!is_kind(e, "OggS", 4))
        return 0;
    for (; at < e->size && next; at = next ? next : at)
        next = ogg_page(e, at, &o);
    for (int i = 0; next && i < o.n; i++) {
        if (o.of[i].goes_on)
            tgi_av_ends_in(e, e->size, e->size + 1, "its last packet");
        if (!o.of[i].ended)
            e->unended = "no page ends its streams";
    }
    return 1;
}

/* ---- ASF --------------------------------------------------------------------------------- */

/* Source: Microsoft, "Advanced Systems Format (ASF) Specification" 01.20.05, sections 3.1, 3.2, 5.1. */
#define ASF_OBJECT 24 /* its name and its size */
#define ASF_DATA_HEAD 50
#define ASF_FILE_HEAD 104
#define ASF_IS_LIVE 1
static const char asf_header[] =
    "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";
static const char asf_file[] =
    "\xa1\xdc\xab\x8c\x47\xa9\xcf\x11\x8e\xe4\x00\xc0\x0c\x20\x53\x65";
static const char asf_data[] =
    "\x36\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";

static const char asf_index[] =
    "\x90\x08\x00\x33\xb1\xe5\xcf\x11\x89\xf4\x00\xa0\xc9\x03\x49\xcb";
static const char asf_packet[] = "\x82\0\0";

typedef struct asf {
    int64_t packet; /* bytes of each; 0: not said */
    int live;
} asf;

/* Among the objects of the header, which ends at `end`. */
static void asf_find_file(tgi_av_ends *e, int64_t end, asf *a)
{
    const uint8_t *b;
    for (int64_t at = ASF_OBJECT + 6; at < end;) {
        if (begins(e, at, asf_file, 16) && (b = tgi_av_ends_at(e, at, ASF_FILE_HEAD)) != NULL) {
            a->live = (b[88] & ASF_IS_LIVE) != 0;
            if (tgi_load32(b + 92, false) == tgi_load32(b + 96, false))
                a->packet = tgi_load32(b + 92, false);
            return;
        }
        b = tgi_av_ends_at(e, at, ASF_OBJECT);
        const uint64_t n = b ? tgi_load64(b + 16, false) : 0;
        if (n < ASF_OBJECT || n > (uint64_t)(end - at))
            return;
        at += (int64_t)n;
    }
}

/* Of a file whose writer could not go back: packets, which begin with an error correction of 2 bytes, then an index. */
static void asf_packets(tgi_av_ends *e, const asf *a, int64_t at)
{
    while (at < e->size && a->packet && begins(e, at, asf_packet, 3) && !e->of) {
        if (a->packet > e->size - at)
            tgi_av_ends_in(e, at, at + a->packet, "its last packet");
        at += a->packet;
    }
    if (e->of || at >= e->size || !begins(e, at, asf_index, 16))
        return;
    const uint8_t *b = tgi_av_ends_at(e, at, ASF_OBJECT);
    const uint64_t n = b ? tgi_load64(b + 16, false) : ASF_OBJECT;
    if (n > (uint64_t)(e->size - at))
        tgi_av_ends_in(e, at, e->size + 1, "its index");
}

/* Behind the data there are indexes alone: is it one, as far as the file goes? */
static int asf_may_be_index(tgi_av_ends *e, int64_t at)
{
    static const char *const known[] = {
        asf_index, "\xd3\x29\xe2\xd6\xda\x35\xd1\x11\x90\x34\x00\xa0\xc9\x03\x49\xbe",
        "\xf8\x03\xb1\xfe\xad\x12\x64\x4c\x84\x0f\x2a\x1d\x2f\x7a\xd4\x8c",
        "\xd0\x3f\xb7\x3c\x4a\x0c\x03\x48\x95\x3d\xed\xf7\xb6\x22\x8f\x0c"};
    const int n = (int)tgi_min(16, e->size - at);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (begins(e, at, known[i], n))
            return 1;
    return 0;
}

static int asf_ends(tgi_av_ends *e)
{
    int behind = 0; /* the data */
    asf a = {.packet = 0};
    if (!is_kind(e, asf_header, 16))
        return 0;
    for (int64_t at = 0; at < e->size && !e->of && !e->gave_up;) {
        const uint8_t *b = tgi_av_ends_at(e, at, ASF_OBJECT);
        const uint64_t n = b ? tgi_load64(b + 16, false) : ASF_OBJECT;
        const int64_t end = n < (uint64_t)(INT64_MAX - at) ? at + (int64_t)n : INT64_MAX;
        const int64_t data = at + ASF_DATA_HEAD;
        const int is_data = begins(e, at, asf_data, 16) && data <= e->size;
        if (at == 0)
            asf_find_file(e, tgi_min(end, e->size), &a);
        if (is_data && (a.live || n <= ASF_DATA_HEAD)) {
            asf_packets(e, &a, data);
            break;
        }
        if ((b && n < ASF_OBJECT) || (behind && !asf_may_be_index(e, at)))
            break;
        behind |= is_data;
        if (!b || end > e->size)
            tgi_av_ends_in(
                e, is_data && a.packet ? data + (e->size - data) / a.packet * a.packet : at,
                end, is_data ? "its data object" : "its last object");
        at = end;
    }
    return 1;
}

/* ---- MXF --------------------------------------------------------------------------------- */

/* Source: SMPTE ST 377-1:2011, sections 6.3 (keys and lengths) and 7.1 (partition packs). */
#define MXF_KEY 16
static const char mxf_begins[] = "\x06\x0e\x2b\x34";
static const char mxf_partition[] = "\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01\x02";

/* Where the value at `at` begins, and *end where it ends; 0: the file ends before that is known; -1: it has no length. */
static int64_t mxf_value(tgi_av_ends *e, int64_t at, int64_t *end)
{
    const uint8_t *b = tgi_av_ends_at(e, at, MXF_KEY + 1);
    const int more = b && b[MXF_KEY] > 127 ? b[MXF_KEY] & 127 : 0;
    uint64_t n = b ? b[MXF_KEY] : 0;
    if (more > 8 || (b && b[MXF_KEY] == 128))
        return -1;
    b = b ? tgi_av_ends_at(e, at, MXF_KEY + 1 + more) : NULL;
    for (int i = 0; b && i < more; i++)
        n = (i ? n << 8 : 0) | b[MXF_KEY + 1 + i];
    const int64_t value = at + MXF_KEY + 1 + more;
    *end = n < (uint64_t)(INT64_MAX - value) ? value + (int64_t)n : INT64_MAX;
    return b ? value : 0;
}

static int mxf_ends(tgi_av_ends *e)
{
    int64_t end, footer = 0;
    if (!is_kind(e, mxf_begins, 4))
        return 0;
    for (int64_t at = 0; at < e->size && !e->of; at = end) {
        const int64_t value = begins(e, at, mxf_begins, 4) ? mxf_value(e, at, &end) : -1;
        if (value < 0)
            return 1;
        const uint8_t *b =
            value && begins(e, at, mxf_partition, 14) ? tgi_av_ends_at(e, value, 32) : NULL;
        if (b)
            footer = (int64_t)(tgi_load64(b + 24, true) & INT64_MAX);
        if (!value || end > e->size)
            tgi_av_ends_in(e, at, value ? end : at + MXF_KEY + 1, "its last packet");
    }
    if (!e->of && footer >= e->size)
        tgi_av_ends_in(e, e->size, footer, "its body");
    return 1;
}

/* ---- GIF --------------------------------------------------------------------------------- */

/* Source: CompuServe, "Graphics Interchange Format" 89a, sections 15 and 17 to 27. */
static int64_t gif_colours(uint8_t flags)
{
    return flags & 0x80 ? 3 << ((flags & 7) + 1) : 0;
}

/* Behind a block that has a head of n bytes; 0: the file ends in it. */
static int64_t gif_block(tgi_av_ends *e, int64_t at, int n)
{
    const uint8_t *b = tgi_av_ends_at(e, at, n);
    if (!b)
        return 0;
    at += n;
    if (b[0] == ',') /* an image has its colours, and a number in front of its bytes */
        at += gif_colours(b[9]) + 1;
    while ((b = tgi_av_ends_at(e, at, 1)) != NULL && b[0])
        at += 1 + b[0];
    return b ? at + 1 : 0;
}

static int gif_ends(tgi_av_ends *e)
{
    const uint8_t *b = is_kind(e, "GIF8", 4) ? tgi_av_ends_at(e, 0, 13) : NULL;
    if (!b)
        return 0;
    int64_t at = 13 + gif_colours(b[10]),
            shown = tgi_min(at, e->size); /* the last image ends there */
    while ((b = tgi_av_ends_at(e, at, 1)) != NULL) {
        if (b[0] == ';') /* its trailer; what stands behind is no part of it */
            e->whole = at + 1;
        if (b[0] != ',' && b[0] != '!' && b[0] != 0)
            return 1; /* or nobody knows */
        const int is_image = b[0] == ',';
        const int64_t next = b[0] ? gif_block(e, at, is_image ? 10 : 2) : at + 1;
        if (!next)
            break;
        shown = is_image ? next : shown;
        at = next;
    }
    tgi_av_ends_in(e, shown, e->size + 1, at < e->size ? "its last block" : "its trailer");
    return 1;
}

/* ---- NUT --------------------------------------------------------------------------------- */

/* Source: "NUT Open Container Format", index packet: it is the last, and in front of its checksum stands how far before it
 * begins. A writer may leave it out. */
#define NUT_FOOT 12
#define NUT_INDEX_NEAR (1 << 20)
static const char nut_index[] = "NX\xdd\x67\x2f\x23\xe6\x4e";

static int64_t nut_find_index(tgi_av_ends *e)
{
    int64_t at = tgi_max(0, e->size - NUT_INDEX_NEAR);
    for (; at + 8 <= e->size; at++)
        if (begins(e, at, nut_index, 8))
            return at;
    return 0;
}

/* Where the packet at `at` ends: what follows its length, and, of a long one, the length's checksum. */
static int64_t nut_behind(tgi_av_ends *e, int64_t at)
{
    const uint8_t *b;
    uint64_t n = 0;
    int64_t to = at + 8;
    do {
        b = tgi_av_ends_at(e, to++, 1);
        n = n << 7 | (b ? b[0] & 127 : 0);
    } while (b && b[0] & 128 && to < at + 16);
    return b && n < (uint64_t)e->size ? to + (int64_t)n + (n > 4096 ? 4 : 0) : INT64_MAX;
}

static int nut_ends(tgi_av_ends *e)
{
    const uint8_t *b = is_kind(e, "nut/multimedia container", 25)
                           ? tgi_av_ends_at(e, e->size - NUT_FOOT, 8)
                           : NULL;
    if (!b)
        return 0;
    const uint64_t back = tgi_load64(b, true);
    if (back >= NUT_FOOT && back < (uint64_t)e->size &&
        begins(e, e->size - (int64_t)back, nut_index, 8))
        return 1;
    const int64_t index = nut_find_index(e);
    if (index && nut_behind(e, index) > e->size)
        tgi_av_ends_in(e, index, e->size + 1, "its index");
    e->unended = index ? NULL : "it has no index";
    return 1;
}

/* ---- DV ---------------------------------------------------------------------------------- */

/* Frames of one length without a head of the file: sequences of 150 blocks of 80 bytes, of which the first begin with the
 * same block. libavformat fills a frame that the file ends in up with rows of the one before.
 * Source: IEC 61834-2:1998, section 11; SMPTE 314M-2005, section 4.4. */
#define DV_SEQUENCE 12000
#define DV_MOST 48 /* sequences of a frame: four channels of twelve */

static int dv_ends(tgi_av_ends *e)
{
    uint8_t first[3];
    const uint8_t *b = tgi_av_ends_at(e, 0, 4);
    if (!b || memcmp(b, "\x1f\x07\0", 3) != 0)
        return 0;
    memcpy(first, b, sizeof first);
    int64_t frame = DV_SEQUENCE * (b[3] & 0x80 ? 12 : 10); /* of one channel */
    for (int k = 1; k <= DV_MOST; k++) {
        b = tgi_av_ends_at(e, k * (int64_t)DV_SEQUENCE, 3);
        if (!b || memcmp(b, first, sizeof first) != 0)
            continue;
        frame = k * (int64_t)DV_SEQUENCE;
        break;
    }
    const int64_t last = e->size - e->size % frame;
    if (last < e->size && begins(e, last, (const char *)first, sizeof first))
        tgi_av_ends_in(e, last, last + frame, "its last frame");
    else if (last < e->size)
        e->whole = last;
    return 1;
}

/* ---- All --------------------------------------------------------------------------------- */

int tgi_av_ends_look(tgi_av_ends *e)
{
    static int (*const kinds[])(tgi_av_ends *) = {
        tgi_av_ends_mkv, avi_ends, flv_ends, ivf_ends,         ogg_ends, asf_ends,
        mxf_ends,        gif_ends, nut_ends, tgi_av_ends_mpeg, dv_ends};
    int is_one = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !is_one; i++)
        is_one = kinds[i](e);
    if (e->gave_up) {
        e->of = NULL;
        e->unended = NULL;
        e->whole = e->another = 0;
    }
    return is_one;
}
