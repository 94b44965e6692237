/* av_ends_mkv.c - whether a Matroska or WebM is as long as its elements say (av_ends.h).
 *
 * Names of elements are the same at any depth, so the walk is flat: it goes into what holds others and is not whole, or does not
 * say how long it is (a live stream), and over all else. Behind a segment that says its length nothing counts.
 * Source: RFC 8794 (EBML), sections 4 to 6; RFC 9559 (Matroska), sections 5 and 23. */
#include "io/av/av_ends.h"

#include "engine/base/arith.h"

#include <stddef.h>
#include <string.h>

enum {
    EBML = TGI_MKV_EBML,
    SEGMENT = TGI_MKV_SEGMENT,
    CLUSTER = TGI_MKV_CLUSTER,
    SEEK_HEAD = 0x114d9b74,
    SEEK = 0x4dbb,
    SEEK_POSITION = 0x53ac,
    CUES = 0x1c53bb6b,
    CUE_POINT = 0xbb,
    CUE_TRACK_POSITIONS = 0xb7,
    CUE_CLUSTER_POSITION = 0xf1,
    TRACKS = 0x1654ae6b,
    ATTACHMENTS = 0x1941a469,
    ATTACHED_FILE = 0x61a7,
    FILE_MEDIA_TYPE = 0x4660,
    FILE_DATA = 0x465c
};

typedef tgi_mkv_element element;

typedef struct segment {
    int64_t at, end; /* of what it holds; INT64_MAX: it does not say */
    int64_t named;   /* the last place in it that an index names */
    int64_t until;   /* where the segment or cluster ends that the file ends in; 0: in none */
    const char *of;
} segment;

/* Bytes of a number that begins with b; 0: none does. */
static int length_of(uint8_t b)
{
    int n = 1;
    while (n <= 8 && !(b & 0x100 >> n))
        n++;
    return n <= 8 ? n : 0;
}

enum { NO_ELEMENT, HALF_A_HEAD, ELEMENT = TGI_MKV_ELEMENT };

int tgi_mkv_element_at(tgi_av_ends *e, int64_t at, element *x)
{
    const uint8_t *b = tgi_av_ends_at(e, at, 1);
    const int n = b ? length_of(b[0]) : 0;
    if (n < 1 || n > 4)
        return NO_ELEMENT;
    b = tgi_av_ends_at(e, at, n + 1);
    if (!b)
        return HALF_A_HEAD;
    x->id = 0;
    for (int i = 0; i < n; i++)
        x->id = x->id << 8 | b[i];
    const int m = length_of(b[n]);
    if (!m)
        return NO_ELEMENT;
    b = tgi_av_ends_at(e, at, n + m);
    if (!b)
        return HALF_A_HEAD;
    const uint64_t most = ((uint64_t)1 << 7 * m) - 1;
    uint64_t size = 0;
    for (int i = 0; i < m; i++)
        size = size << 8 | b[n + i];
    size &= most;
    x->open = size == most;
    x->from = at;
    x->at = at + n + m;
    x->end = x->open ? INT64_MAX : x->at + (int64_t)size;
    return ELEMENT;
}

/* What stands in a file, a segment or a cluster. */
static int is_known(uint32_t id)
{
    static const uint32_t known[] = {
        EBML,       SEGMENT, CLUSTER,    SEEK_HEAD,  CUES,
        0x1549a966, TRACKS,  0x1043a770, 0x1254c367, ATTACHMENTS, /* Info to Attachments */
        0xe7,       0x5854,  0xa7,       0xab,       0xa3,        /* Timestamp to SimpleBlock */
        0xa0,       0xaf,    0xec,       0xbf}; /* BlockGroup, EncryptedBlock, Void, CRC-32 */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == id)
            return 1;
    return 0;
}

static int holds_places(uint32_t id)
{
    return id == SEEK_HEAD || id == SEEK || id == CUES || id == CUE_POINT ||
           id == CUE_TRACK_POSITIONS;
}

static void note_place(tgi_av_ends *e, const element *x, segment *s)
{
    const int n = (int)tgi_min(x->end - x->at, 8);
    const uint8_t *b = n > 0 ? tgi_av_ends_at(e, x->at, n) : NULL;
    uint64_t place = 0;
    for (int i = 0; b && i < n; i++)
        place = place << 8 | b[i];
    if (place < (uint64_t)(INT64_MAX - s->at))
        s->named = tgi_max(s->named, s->at + (int64_t)place);
}

/* Where to go on behind the element's head. */
static int64_t behind(tgi_av_ends *e, const element *x, segment *s)
{
    const int holds = x->id == SEGMENT || x->id == CLUSTER;
    const int is_cut = !x->open && x->end > e->size;
    if (holds && is_cut && !s->until) {
        s->until = x->end;
        s->of = x->id == SEGMENT ? "its segment" : "its last cluster";
    }
    if (x->id == SEGMENT) {
        s->at = x->at;
        s->end = x->end;
    }
    if (x->id == SEGMENT || (holds && (is_cut || x->open)) ||
        (s->end == INT64_MAX && holds_places(x->id)))
        return x->at;
    if (x->id == SEEK_POSITION || x->id == CUE_CLUSTER_POSITION)
        note_place(e, x, s);
    return x->end;
}

/* A picture is a cover, of which its decoder says more. */
static int is_picture(tgi_av_ends *e, const element *type)
{
    const uint8_t *b = type->end - type->at >= 6 ? tgi_av_ends_at(e, type->at, 6) : NULL;
    return !b || memcmp(b, "image/", 6) == 0;
}

static void note_attached(tgi_av_ends *e, const element *all)
{
    element x;
    int plain = 0; /* a type was said before, and is no picture's */
    for (int64_t at = all->at; at < all->end && tgi_mkv_element_at(e, at, &x) == ELEMENT &&
                               !x.open && x.end <= all->end && e->n_attached < TGI_AV_ATTACHED;
         at = x.id == ATTACHED_FILE ? x.at : x.end) {
        if (x.id == ATTACHED_FILE)
            plain = 0;
        else if (x.id == FILE_MEDIA_TYPE)
            plain = !is_picture(e, &x);
        else if (x.id == FILE_DATA && plain && x.end - x.at >= TGI_AV_LARGE)
            e->attached[e->n_attached++] = (tgi_av_attached){at, x.end, x.end - x.at};
    }
}

static int is_zeros(tgi_av_ends *e, int64_t at)
{
    static const uint8_t zeros[TGI_AV_ENDS_MOST];
    while (at < e->size) {
        const int n = (int)tgi_min(e->size - at, TGI_AV_ENDS_MOST);
        const uint8_t *b = tgi_av_ends_at(e, at, n);
        if (!b || memcmp(b, zeros, (size_t)n) != 0)
            return 0;
        at += n;
    }
    return 1;
}

/* At the end of a segment, or, where it does not say its length, where no element of it stands: another film may begin. */
static void look_behind(tgi_av_ends *e, int64_t at, const segment *s)
{
    element x;
    if (at >= e->size)
        return;
    if (tgi_mkv_element_at(e, at, &x) == ELEMENT && x.id == EBML)
        tgi_av_ends_another(e, at);
    else if (s->end == INT64_MAX && is_zeros(e, at)) {
        e->whole = at;
        e->unended = "zeros stand behind its last cluster";
    } else if (s->end == INT64_MAX) {
        e->unended = "what is no part of it stands behind its last cluster";
    }
}

int tgi_av_ends_mkv(tgi_av_ends *e)
{
    element x;
    segment s = {.end = INT64_MAX};
    int64_t at = 0;
    if (tgi_mkv_element_at(e, 0, &x) != ELEMENT || x.id != EBML)
        return 0;
    while (at < e->size && at < s.end) {
        const int got = tgi_mkv_element_at(e, at, &x);
        const int holds = got == ELEMENT && (x.id == SEGMENT || x.id == CLUSTER);
        const int again = got == ELEMENT && x.id == EBML && at > 0;
        const int odd =
            got == ELEMENT && s.end == INT64_MAX && x.end > e->size && !is_known(x.id);
        if (got == NO_ELEMENT || again || odd || (got == ELEMENT && x.open && !holds))
            break;
        if (got == HALF_A_HEAD || (!holds && x.end > e->size && (s.until || is_known(x.id)))) {
            tgi_av_ends_in(e, at,
                           s.until          ? s.until
                           : got == ELEMENT ? x.end
                                            : 0,
                           s.until ? s.of : "its last element");
            return 1;
        }
        if (x.id == ATTACHMENTS)
            note_attached(e, &x);
        if (x.id == TRACKS && !x.open)
            e->header = tgi_max(e->header, x.end - x.at);
        at = behind(e, &x, &s);
    }
    if (s.until)
        tgi_av_ends_in(e, e->size, s.until, s.of);
    else if (s.end == INT64_MAX && s.named >= e->size)
        tgi_av_ends_in(e, e->size, s.named, "its segment");
    else
        look_behind(e, at, &s);
    return 1;
}
