/* video_mkv.c - frames of a Matroska or WebM file, by its elements.
 *
 * An element is {identifier, length} and what is in it, both numbers of 1 to 8 bytes whose
 * first bits say how many; a length of ones means unknown. Its headers do not say how many
 * frames there are, but each frame is a block that begins with the number of its track, so
 * blocks are counted by their heads. Elements that hold others are simply entered, not nested:
 * what follows is told by identifiers alone, which also reads what has no length. Source: RFC
 * 8794 (EBML), RFC 9559 (Matroska), sections 5.1 and 10. */
#include "io/bytes.h"
#include "io/video_parts.h"

#define MOST_TRACKS 64

enum {
    SEGMENT = 0x18538067,
    CLUSTER = 0x1F43B675,
    TRACKS = 0x1654AE6B,
    BLOCK_GROUP = 0xA0,
    SIMPLE_BLOCK = 0xA3,
    BLOCK = 0xA1,
    TRACK = 0xAE,
    TRACK_NUMBER = 0xD7,
    TRACK_TYPE = 0x83,
    VIDEO = 0xE0,
    WIDTH = 0xB0,
    HEIGHT = 0xBA
};

typedef struct mkv {
    tgi_video_file *v;
    struct {
        uint64_t number, type;
        int64_t width, height;
    } track[MOST_TRACKS];
    int n_tracks;
    int64_t frames[128]; /* by number of track; numbers beyond 127 are not seen in files */
} mkv;

/* A number of 1 to `most` bytes at *at; `keep`: with the bit that says how long it is. */
static tg_status number(mkv *m, uint64_t *at, int most, bool keep, uint64_t *value, int *bytes,
                        tgi_err *err)
{
    const uint8_t *b;
    TGI_TRY(tgi_video_bytes(m->v, *at, 1, &b, err));
    int n = 1;
    while (n <= most && !(b[0] & 0x80 >> (n - 1)))
        n++;
    if (n > most)
        return tgi_fail(err, TG_E_FORMAT, "no element at byte %llu", (unsigned long long)*at);
    TGI_TRY(tgi_video_bytes(m->v, *at, (size_t)n, &b, err));
    uint64_t x = keep ? b[0] : b[0] & (0xffu >> n);
    for (int i = 1; i < n; i++)
        x = x << 8 | b[i];
    *at += (uint64_t)n;
    *value = x;
    *bytes = n;
    return TG_OK;
}

/* An unsigned number that fills an element. */
static tg_status value_of(mkv *m, uint64_t at, uint64_t n, uint64_t *value, tgi_err *err)
{
    const uint8_t *b;
    if (n > 8)
        return tgi_fail(err, TG_E_FORMAT, "a number of %llu bytes at byte %llu",
                        (unsigned long long)n, (unsigned long long)at);
    *value = 0;
    TGI_TRY(tgi_video_bytes(m->v, at, (size_t)n, &b, err));
    for (uint64_t i = 0; i < n; i++)
        *value = *value << 8 | b[i];
    return TG_OK;
}

/* A block: number of the track, two bytes of time, flags, and with lacing how many frames more.
 */
static tg_status count_block(mkv *m, uint64_t at, uint64_t n, tgi_err *err)
{
    const uint8_t *b;
    const uint64_t end = at + n;
    uint64_t track;
    int bytes;
    TGI_TRY(number(m, &at, 8, false, &track, &bytes, err));
    if (end - at < 3 || at > end)
        return tgi_fail(err, TG_E_FORMAT, "the block at byte %llu is too short",
                        (unsigned long long)at);
    TGI_TRY(tgi_video_bytes(m->v, at, end - at > 3 ? 4 : 3, &b, err));
    const bool laced = (b[2] & 0x06) && end - at > 3;
    if (track < 128)
        m->frames[track] += laced ? b[3] + 1 : 1;
    return TG_OK;
}

static bool has_elements(uint64_t id)
{
    return id == SEGMENT || id == CLUSTER || id == TRACKS || id == BLOCK_GROUP || id == TRACK ||
           id == VIDEO;
}

static tg_status take(mkv *m, uint64_t id, uint64_t at, uint64_t n, tgi_err *err)
{
    uint64_t value = 0;
    const int k = m->n_tracks - 1;
    if (id == SIMPLE_BLOCK || id == BLOCK)
        return count_block(m, at, n, err);
    if (k < 0 || (id != TRACK_NUMBER && id != TRACK_TYPE && id != WIDTH && id != HEIGHT))
        return TG_OK;
    TGI_TRY(value_of(m, at, n, &value, err));
    if (id == TRACK_NUMBER)
        m->track[k].number = value;
    else if (id == TRACK_TYPE)
        m->track[k].type = value;
    else if (value > INT32_MAX)
        return tgi_fail(err, TG_E_FORMAT, "frames of %llu pixels' side",
                        (unsigned long long)value);
    else
        *(id == WIDTH ? &m->track[k].width : &m->track[k].height) = (int64_t)value;
    return TG_OK;
}

tg_status tgi_video_mkv(tgi_video_file *v, tgi_video_head *out, tgi_err *err)
{
    mkv m = {.v = v};
    uint64_t at = 0;
    while (at < v->f.size) {
        uint64_t id, n;
        int bytes;
        TGI_TRY(tgi_video_part(v, err));
        TGI_TRY(number(&m, &at, 4, true, &id, &bytes, err));
        TGI_TRY(number(&m, &at, 8, false, &n, &bytes, err));
        if (id == TRACK && m.n_tracks == MOST_TRACKS)
            return tgi_fail(err, TG_E_FORMAT, "more than %d tracks", MOST_TRACKS);
        m.n_tracks += id == TRACK;
        if (has_elements(id))
            continue;
        if (n > v->f.size - at)
            return tgi_fail(err, TG_E_FORMAT,
                            "the element at byte %llu goes past the end of the file",
                            (unsigned long long)at);
        TGI_TRY(take(&m, id, at, n, err));
        at += n;
    }
    for (int i = m.n_tracks - 1; i >= 0; i--)
        if (m.track[i].type == 1) {
            out->width = m.track[i].width;
            out->height = m.track[i].height;
            out->frames = m.track[i].number < 128 ? m.frames[m.track[i].number] : 0;
        }
    return TG_OK;
}
