/* video_mp4.c - frames of an MP4 or QuickTime file, by its boxes.
 *
 * A box is {length, name} and what is in it; length 1 means eight more bytes of length, 0 up to
 * the end. Pixels and the number of samples of a track stand in moov/trak (`tkhd` its number,
 * `hdlr` whether it is video, `stsd` its size, `stsz` or `stz2` its samples), and of fragmented
 * files in moof/traf (`tfhd` whose, `trun` how many). A sample is a frame.
 * Source: ISO/IEC 14496-12:2015, sections 4.2, 8.3.2, 8.4.3, 8.5.2, 8.7.3, 8.8.7, 8.8.8. */
#include "io/bytes.h"
#include "io/video_parts.h"

#include <string.h>

#define MOST_DEPTH 8

typedef struct track {
    uint32_t id;
    bool video;
    int64_t width, height, samples;
} track;

typedef struct mp4 {
    tgi_video_file *v;
    track now, first; /* the track whose boxes go by; the first that is video */
    uint32_t part_of; /* the track that the fragment belongs to */
} mp4;

typedef struct box {
    char name[5];
    uint64_t at, end; /* of its contents */
} box;

static bool is(const box *b, const char *name)
{
    return memcmp(b->name, name, 4) == 0;
}

static tg_status box_at(mp4 *m, uint64_t at, uint64_t end, box *b, tgi_err *err)
{
    const uint8_t *p;
    TGI_TRY(tgi_video_part(m->v, err));
    TGI_TRY(tgi_video_bytes(m->v, at, 8, &p, err));
    uint64_t n = tgi_load32(p, true), head = 8;
    memcpy(b->name, p + 4, 4);
    b->name[4] = 0;
    if (n == 1) {
        TGI_TRY(tgi_video_bytes(m->v, at, 16, &p, err));
        n = tgi_load64(p + 8, true);
        head = 16;
    } else if (n == 0) {
        n = end - at;
    }
    if (n < head || n > end - at)
        return tgi_fail(err, TG_E_FORMAT,
                        "the box at byte %llu goes past the end of what it is in",
                        (unsigned long long)at);
    b->at = at + head;
    b->end = at + n;
    return TG_OK;
}

/* The first n bytes of a box. */
static tg_status inside(mp4 *m, const box *b, size_t n, const uint8_t **out, tgi_err *err)
{
    if (b->end - b->at < n)
        return tgi_fail(err, TG_E_FORMAT, "the box at byte %llu is too short",
                        (unsigned long long)b->at);
    return tgi_video_bytes(m->v, b->at, n, out, err);
}

static tg_status take_samples(mp4 *m, const box *b, tgi_err *err)
{
    const uint8_t *p;
    TGI_TRY(inside(m, b, 12, &p, err));
    const uint64_t n = tgi_load32(p + 8, true);
    const bool table = is(b, "stz2") || tgi_load32(p + 4, true) == 0;
    const uint64_t bits = is(b, "stz2") ? p[7] : 32;
    if (table && n * bits / 8 > b->end - b->at - 12)
        return tgi_fail(err, TG_E_FORMAT, "%llu samples in a table of %llu bytes",
                        (unsigned long long)n, (unsigned long long)(b->end - b->at - 12));
    m->now.samples += (int64_t)n;
    return TG_OK;
}

static tg_status take(mp4 *m, const box *b, tgi_err *err)
{
    const uint8_t *p;
    if (is(b, "tkhd")) {
        TGI_TRY(inside(m, b, 24, &p, err));
        m->now.id = tgi_load32(p + (p[0] == 1 ? 20 : 12), true);
    } else if (is(b, "hdlr")) {
        TGI_TRY(inside(m, b, 12, &p, err));
        if (memcmp(p + 4, "dhlr", 4) != 0) /* QuickTime's second one, of where data lie */
            m->now.video = memcmp(p + 8, "vide", 4) == 0;
    } else if (is(b, "stsd") && b->end - b->at >= 8 + 36) {
        TGI_TRY(inside(m, b, 8 + 36, &p, err));
        m->now.width = tgi_load16(p + 8 + 32, true);
        m->now.height = tgi_load16(p + 8 + 34, true);
    } else if (is(b, "stsz") || is(b, "stz2")) {
        return take_samples(m, b, err);
    } else if (is(b, "tfhd")) {
        TGI_TRY(inside(m, b, 8, &p, err));
        m->part_of = tgi_load32(p + 4, true);
    } else if (is(b, "trun") && m->first.video && m->part_of == m->first.id) {
        TGI_TRY(inside(m, b, 8, &p, err));
        m->first.samples += tgi_load32(p + 4, true);
    }
    return TG_OK;
}

static bool has_boxes(const box *b)
{
    static const char names[][5] = {"moov", "trak", "mdia", "minf", "stbl", "moof", "traf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is(b, names[i]))
            return true;
    return false;
}

static tg_status boxes(mp4 *m, uint64_t at, uint64_t end, int depth, tgi_err *err)
{
    if (depth == MOST_DEPTH)
        return tgi_fail(err, TG_E_FORMAT, "boxes within boxes at byte %llu, %d deep",
                        (unsigned long long)at, depth);
    while (end - at >= 8) {
        box b = {.at = 0};
        const tg_status st = box_at(m, at, end, &b, err);
        if (st == TG_E_FORMAT && depth == 0 && m->first.samples) {
            *err = (tgi_err){0};
            return TG_OK; /* what was left behind the last box by a careless writer */
        }
        TGI_TRY(st);
        if (is(&b, "trak"))
            m->now = (track){0};
        TGI_TRY(has_boxes(&b) ? boxes(m, b.at, b.end, depth + 1, err) : take(m, &b, err));
        if (is(&b, "trak") && m->now.video && !m->first.video)
            m->first = m->now;
        at = b.end;
    }
    return TG_OK;
}

tg_status tgi_video_mp4(tgi_video_file *v, tgi_video_head *out, tgi_err *err)
{
    mp4 m = {.v = v};
    TGI_TRY(boxes(&m, 0, v->f.size, 0, err));
    out->width = m.first.width;
    out->height = m.first.height;
    out->frames = m.first.samples;
    return TG_OK;
}
