/* av_mp4_tracks.c - what an MP4 or MOV says of a track where libavformat 59 does not read it, its title, or does not write
 * it, its language in a MOV: it takes the languages of the old list alone ("eng", "ger"), and not those of ISO 639.
 * Sources: ISO/IEC 14496-12:2015, sections 8.3.2, 8.4.2; QuickTime File Format (Apple 2016), user data and language codes. */
#include "engine/base/utf8.h"
#include "io/av/av_boxes.h"
#include "io/av/av_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MOST_TITLE 1000
#define NO_LANGUAGE 0x7fff

/* The id that its tkhd says; 0: none. */
static uint32_t id_of(int fd, const tgi_av_box *trak)
{
    tgi_av_box b;
    if (!tgi_av_box_find(fd, trak->at, trak->end, "tkhd", &b))
        return 0;
    const int large = tgi_av_box_number(fd, b.at) >> 24 == 1; /* times have 64 bits */
    return tgi_av_box_number(fd, b.at + (large ? 20 : 12));
}

/* Calls `tell` for each track that a stream of `c` was made of. */
static void each_track(int fd, int64_t size, const AVFormatContext *c,
                       void (*tell)(int fd, const tgi_av_box *trak, uint32_t id,
                                    const AVFormatContext *c))
{
    tgi_av_box moov, b;
    if (!tgi_av_box_find(fd, 0, size, "moov", &moov))
        return;
    for (int64_t at = moov.at; tgi_av_box_at(fd, at, moov.end, &b); at = b.end)
        if (tgi_av_box_is(&b, "trak"))
            tell(fd, &b, id_of(fd, &b), c);
}

/* Characters that can be shown, without what fills the end up. */
static int is_text(const char *s, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = tgi_utf8_length(s + i, n - i);
        if (!k || (unsigned char)s[i] < ' ')
            return 0;
    }
    return n > 0;
}

static void take_title(int fd, const tgi_av_box *trak, uint32_t id, const AVFormatContext *c)
{
    char text[MOST_TITLE + 1] = "";
    tgi_av_box b;
    if (!tgi_av_box_find(fd, trak->at, trak->end, "udta", &b) ||
        !tgi_av_box_find(fd, b.at, b.end, "name", &b) || b.end - b.at > MOST_TITLE)
        return;
    const size_t bytes = (size_t)(b.end - b.at);
    if (pread(fd, text, bytes, b.at) != (ssize_t)bytes || !is_text(text, strlen(text)))
        return;
    for (unsigned i = 0; id && i < c->nb_streams; i++)
        if (c->streams[i]->id == (int)id)
            av_dict_set(&c->streams[i]->metadata, "title", text, AV_DICT_DONT_OVERWRITE);
}

void tgi_av_mp4_titles(const tgi_av_input *in)
{
    if (in->container && strstr(in->container->iformat->name, "mp4"))
        each_track(in->fd, in->size, in->container, take_title);
}

int tgi_av_mp4_has_language(const char *text)
{
    return strlen(text) == 3 && strspn(text, "abcdefghijklmnopqrstuvwxyz") == 3;
}

/* Three letters of five bits each. libavformat numbers tracks from 1 as it does streams from 0. */
static void say_language(int fd, const tgi_av_box *trak, uint32_t id, const AVFormatContext *c)
{
    tgi_av_box b;
    const AVDictionaryEntry *e =
        id && id <= c->nb_streams
            ? av_dict_get(c->streams[id - 1]->metadata, "language", NULL, 0)
            : NULL;
    if (!e || !tgi_av_mp4_has_language(e->value) ||
        !tgi_av_box_find(fd, trak->at, trak->end, "mdia", &b) ||
        !tgi_av_box_find(fd, b.at, b.end, "mdhd", &b))
        return;
    const int large = tgi_av_box_number(fd, b.at) >> 24 == 1;
    const int64_t at = b.at + (large ? 32 : 20);
    if (tgi_av_box_number(fd, at) >> 16 != NO_LANGUAGE)
        return;
    const char *l = e->value;
    const unsigned code =
        (unsigned)(l[0] - 0x60) << 10 | (unsigned)(l[1] - 0x60) << 5 | (unsigned)(l[2] - 0x60);
    const uint8_t bytes[2] = {(uint8_t)(code >> 8), (uint8_t)code};
    if (pwrite(fd, bytes, sizeof bytes, at) != (ssize_t)sizeof bytes && !errno)
        errno = EIO;
}

int tgi_av_mp4_languages(int fd, int64_t size, const AVFormatContext *c)
{
    errno = 0;
    each_track(fd, size, c, say_language);
    return errno;
}
