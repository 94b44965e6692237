/* video_head.c - which container a video is, and the two small ones: AVI and YUV4MPEG.
 *
 * AVI: RIFF chunks {name, length} on even offsets; `avih`, `strh` and `strf` lie in the list
 * `hdrl` in front of the pixels. Files of more than a gigabyte (OpenDML) say their whole number
 * of frames in `dmlh`. YUV4MPEG: a line of words, then frames of equal size, each behind a
 * line. Sources: AVI RIFF File Reference (Microsoft), OpenDML AVI extensions 1.02, yuv4mpeg(5).
 */
#include "engine/base/arith.h"
#include "io/bytes.h"
#include "io/image.h"
#include "io/video_parts.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)4096)
#define MOST_PARTS ((int64_t)1 << 24) /* 60 hours of Matroska */
#define MOST_SIDE ((int64_t)1 << 20)

tg_status tgi_video_bytes(tgi_video_file *v, uint64_t at, size_t n, const uint8_t **out,
                          tgi_err *err)
{
    return tgi_window_get(&v->win, &v->f, at, n, WINDOW, out, err);
}

tg_status tgi_video_part(tgi_video_file *v, tgi_err *err)
{
    return ++v->parts <= MOST_PARTS
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT, "more than %lld parts", (long long)MOST_PARTS);
}

/* ---- AVI --------------------------------------------------------------------------------- */

typedef struct avi {
    bool video;                    /* the stream whose headers go by */
    int64_t length, whole;         /* of that stream; of the file, by dmlh */
    int64_t width, height, frames; /* of the first video stream */
} avi;

static void take_chunk(avi *a, const char *name, const uint8_t *b, size_t n)
{
    if (memcmp(name, "strh", 4) == 0 && n >= 36) {
        a->video = memcmp(b, "vids", 4) == 0;
        a->length = tgi_load32(b + 32, false);
    } else if (memcmp(name, "strf", 4) == 0 && n >= 12 && a->video && !a->width) {
        const int32_t h = (int32_t)tgi_load32(b + 8, false); /* negative: rows from the top */
        a->width = tgi_load32(b + 4, false);
        a->height = h < 0 ? -(int64_t)h : h;
        a->frames = a->length;
    } else if (memcmp(name, "dmlh", 4) == 0 && n >= 4) {
        a->whole = tgi_load32(b, false);
    }
}

tg_status tgi_video_avi(tgi_video_file *v, tgi_video_head *out, tgi_err *err)
{
    avi a = {0};
    uint64_t at = 12; /* behind RIFF, its length (which few writers fill in), AVI */
    while (v->f.size - at >= 8) {
        const uint8_t *b;
        char name[4], list[4] = {0};
        TGI_TRY(tgi_video_part(v, err));
        TGI_TRY(tgi_video_bytes(v, at, 8, &b, err));
        const uint32_t n = tgi_load32(b + 4, false);
        memcpy(name, b, 4);
        if (memcmp(name, "LIST", 4) == 0 && v->f.size - at >= 12) {
            TGI_TRY(tgi_video_bytes(v, at + 8, 4, &b, err));
            memcpy(list, b, 4);
        }
        if (memcmp(list, "movi", 4) == 0)
            break;
        if (memcmp(list, "hdrl", 4) == 0 || memcmp(list, "strl", 4) == 0 ||
            memcmp(list, "odml", 4) == 0) {
            at += 12; /* go inside */
            continue;
        }
        if (n > v->f.size - at - 8)
            return tgi_fail(err, TG_E_FORMAT,
                            "the chunk at byte %llu goes past the end of the file",
                            (unsigned long long)at);
        const size_t head = n < 64 ? n : 64;
        TGI_TRY(tgi_video_bytes(v, at + 8, head, &b, err));
        take_chunk(&a, name, b, head);
        at = tgi_sat_add(at + 8, (uint64_t)n + n % 2);
        if (at > v->f.size)
            break;
    }
    out->width = a.width;
    out->height = a.height;
    out->frames = a.width && a.whole > a.frames ? a.whole : a.frames;
    return TG_OK;
}

/* ---- YUV4MPEG ---------------------------------------------------------------------------- */

/* Bytes of a frame: the word of C is 420 (and kinds of it), 422, 444, 444alpha or mono, with
 * p10 and the like behind it for samples of two bytes. 0: unknown. */
static int64_t y4m_frame_bytes(int64_t w, int64_t h, const char *colour)
{
    const int64_t half_w = w / 2 + w % 2, half_h = h / 2 + h % 2;
    const char *depth = strchr(colour, 'p');
    int64_t n = strncmp(colour, "mono", 4) == 0       ? w * h
                : strncmp(colour, "420", 3) == 0      ? w * h + 2 * half_w * half_h
                : strncmp(colour, "422", 3) == 0      ? w * h + 2 * half_w * h
                : strncmp(colour, "444alpha", 8) == 0 ? 4 * w * h
                : strncmp(colour, "444", 3) == 0      ? 3 * w * h
                                                      : 0;
    if ((depth && depth[1] >= '0' && depth[1] <= '9') || strcmp(colour, "mono16") == 0)
        n *= 2;
    return n;
}

/* The line at `at`, without its end, into text; its length with the end to *n. */
static tg_status line_at(tgi_video_file *v, uint64_t at, char text[512], size_t *n,
                         tgi_err *err)
{
    const uint8_t *b;
    const size_t room = v->f.size - at < 511 ? (size_t)(v->f.size - at) : 511;
    TGI_TRY(tgi_video_bytes(v, at, room, &b, err));
    const uint8_t *end = memchr(b, '\n', room);
    if (!end)
        return tgi_fail(err, TG_E_FORMAT, "no line at byte %llu", (unsigned long long)at);
    memcpy(text, b, (size_t)(end - b));
    text[end - b] = 0;
    *n = (size_t)(end - b) + 1;
    return TG_OK;
}

tg_status tgi_video_y4m(tgi_video_file *v, tgi_video_head *out, tgi_err *err)
{
    char text[512], colour[32] = "420", *save = NULL;
    size_t n = 0, mark = 0;
    TGI_TRY(line_at(v, 0, text, &n, err));
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (*w == 'W')
            out->width = strtoll(w + 1, NULL, 10);
        else if (*w == 'H')
            out->height = strtoll(w + 1, NULL, 10);
        else if (*w == 'C' && strlen(w) <= sizeof colour)
            memcpy(colour, w + 1, strlen(w));
    }
    if (out->width < 1 || out->height < 1 || out->width > MOST_SIDE || out->height > MOST_SIDE)
        return TG_OK; /* judged by the caller */
    const int64_t frame = y4m_frame_bytes(out->width, out->height, colour);
    if (!frame)
        return tgi_fail(err, TG_E_UNSUPPORTED, "pixels of kind C%s are not known", colour);
    if (v->f.size == n)
        return TG_OK;
    TGI_TRY(line_at(v, n, text, &mark, err));
    if (strncmp(text, "FRAME", 5) != 0)
        return tgi_fail(err, TG_E_FORMAT, "no FRAME at byte %zu", n);
    out->frames = (int64_t)((v->f.size - n) / ((uint64_t)frame + mark));
    return TG_OK;
}

/* ---- Which it is ------------------------------------------------------------------------- */

static const struct {
    const char *container, *magic;
    size_t at, n;
    tg_status (*read)(tgi_video_file *v, tgi_video_head *out, tgi_err *err);
} kinds[] = {
    {"MP4", "ftyp", 4, 4, tgi_video_mp4}, {"MP4", "moov", 4, 4, tgi_video_mp4},
    {"MP4", "mdat", 4, 4, tgi_video_mp4}, {"MP4", "wide", 4, 4, tgi_video_mp4},
    {"MP4", "free", 4, 4, tgi_video_mp4}, {"Matroska", "\x1a\x45\xdf\xa3", 0, 4, tgi_video_mkv},
    {"AVI", "AVI ", 8, 4, tgi_video_avi}, {"YUV4MPEG", "YUV4MPEG2 ", 0, 10, tgi_video_y4m},
};

/* A size that nobody has, or more frames than there are bytes for them. */
static tg_status judge(const tgi_video_head *h, tgi_err *err)
{
    if (!h->width && !h->height)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s",
                        h->frames ? "it does not say how large its frames are"
                                  : "no video track in it");
    if (h->width < 1 || h->height < 1 || h->width > MOST_SIDE || h->height > MOST_SIDE)
        return tgi_fail(err, TG_E_FORMAT, "frames of %lld x %lld pixels", (long long)h->width,
                        (long long)h->height);
    if (h->frames < 0 || (uint64_t)h->frames > h->file_bytes)
        return tgi_fail(err, TG_E_FORMAT, "%lld frames in %llu bytes", (long long)h->frames,
                        (unsigned long long)h->file_bytes);
    if (!h->frames)
        return tgi_fail(err, TG_E_UNSUPPORTED, "it does not say how many frames it has");
    return TG_OK;
}

static tg_status read_head(tgi_video_file *v, tgi_video_head *out, tgi_err *err)
{
    const uint8_t *b = NULL;
    const size_t n = v->f.size < 16 ? (size_t)v->f.size : 16;
    TGI_TRY(tgi_video_bytes(v, 0, n, &b, err));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].at + kinds[i].n <= n &&
            memcmp(b + kinds[i].at, kinds[i].magic, kinds[i].n) == 0) {
            out->container = kinds[i].container;
            TGI_TRY(kinds[i].read(v, out, err));
            return judge(out, err);
        }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "a video whose frames only a decoder can count (neither MP4, Matroska, AVI "
                    "nor YUV4MPEG)");
}

tg_status tgi_video_head_read(const char *path, tgi_video_head *out, tgi_err *err)
{
    tgi_video_file v = {.f = {.fd = -1}};
    *out = (tgi_video_head){0};
    tg_status st = tgi_untrusted_check(TGI_FUZZED_LITTLE, "video headers", err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "%s", path);
        return st;
    }
    TGI_TRY(tgi_rfile_open(path, &v.f, err));
    out->file_bytes = v.f.size;
    st = tgi_window_init(&v.win, WINDOW, err);
    if (st == TG_OK)
        st = read_head(&v, out, err);
    if (st != TG_OK)
        tgi_err_prefix(err, "%s", path);
    tgi_window_free(&v.win);
    tgi_rfile_close(&v.f);
    return st;
}
