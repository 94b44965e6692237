/* av_input.h - a file as libavformat reads it: through our own calls, so that no protocol of its own and
 * no second file comes into play. Inside the plugin alone. */
#ifndef TGI_AV_INPUT_H
#define TGI_AV_INPUT_H

#include "engine/base/status.h"
#include "io/av/av.h"
#include "io/av/av_ends.h"
#include "io/av/av_heard.h"

#include <libavformat/avformat.h>
#include <stdint.h>

#define TGI_AV_STREAMS 64
#define TGI_AV_MOST_TICKS                                                                      \
    ((int64_t)1 << 60) /* of a time that is believed: sums of some do not wrap */

typedef struct tgi_av_input {
    int fd;
    int64_t at, size; /* of the file, up to what is not whole */
    AVIOContext *io;
    AVFormatContext *container; /* NULL: closed */
    int read_error;             /* errno of the file */
    int (*cancelled)(void);     /* or NULL */
    int64_t lacks; /* bytes that the file has not, at least; 0: nothing says that any lack */
    const char *lacks_of; /* what of it is not whole, "its last fragment"; NULL */
    const char *unended;  /* as in tgi_av_info, */
    int another;          /* and this */
    int64_t track_bytes;  /* of the headers of its tracks, as far as the file says it */
    int opening;          /* libavformat reads headers: */
    int64_t read;         /* so many bytes so far */
    /* Files that are attached to a Matroska may be large, and libavformat holds three copies of each. */
    int n_attached;
    tgi_av_attached attached[TGI_AV_ATTACHED];
    int bare;                            /* 1: they are read as files of one byte */
    size_t header_bytes, attached_bytes; /* as in tgi_av_info */
    tgi_av_heard heard;                  /* of the container, since it was begun */
    int64_t most_pixels; /* of a frame that is decoded for the header; 0: as libav has it */
} tgi_av_input;

/* The file, none of it libav's yet. TG_E_NOT_FOUND, TG_E_IO, TG_E_UNSUPPORTED no regular file; and as tgi_av_mp4_look. */
tg_status tgi_av_input_file(tgi_av_input *in, const char *path, tgi_err *err);
/* Its container, from the beginning, with what is known of its streams: TGI_AV_STREAMS at most. */
tg_status tgi_av_input_begin(tgi_av_input *in, tgi_err *err);
/* The container closes, the file stays open; or both close. */
void tgi_av_input_end(tgi_av_input *in);
void tgi_av_input_close(tgi_av_input *in);
/* What was heard of a container; NULL: it is none of ours. */
tgi_av_heard *tgi_av_input_heard(const AVFormatContext *c);
int tgi_av_input_cancelled(const tgi_av_input *in);
/* 1: of this packet, the last that was read, the file has the beginning alone. */
int tgi_av_input_ends_in(const tgi_av_input *in, const AVPacket *p);
/* What libav's `code` means while `what` was read, with what our own calls know of it. */
tg_status tgi_av_failed(const tgi_av_input *in, int code, const char *what, tgi_err *err);
/* TG_E_FORMAT: an MP4 or MOV without an index, or that names more samples than it can hold (av_mp4.c). Other files: TG_OK.
 * Of one that is cut amid a box, or in front of a fragment's samples, `lacks` and `lacks_of` are set, and `size`. */
tg_status tgi_av_mp4_look(tgi_av_input *in, tgi_err *err);
/* av_mp4_tracks.c. Of an MP4 or MOV: the titles of its tracks, as "title" of the streams. */
void tgi_av_mp4_titles(const tgi_av_input *in);
/* 1: an MP4 or MOV has a code for this language: three letters. */
int tgi_av_mp4_has_language(const char *text);
/* In a MOV that libavformat wrote of `c`, of `size` bytes: languages that it left out. An errno, or 0. */
int tgi_av_mp4_languages(int fd, int64_t size, const AVFormatContext *c);
/* av_tell.c. 0: there is no track i. */
int tgi_av_channels_of(const AVCodecParameters *p);
int tgi_av_tell_track(const AVFormatContext *c, int i, tgi_av_track *out);
int tgi_av_tell_word(const AVFormatContext *c, int track, int i, tgi_av_word *out);
int tgi_av_tell_chapter(const AVFormatContext *c, int i, tgi_av_chapter *out);
void tgi_av_tell_light(const AVStream *s, const AVFrame *f, tgi_av_light *out);
/* TGI_AV_HDR10_PLUS and so on. */
unsigned tgi_av_tell_beside(const AVStream *s, const AVFrame *f);
/* av_bytes.c: what libavformat takes to know the tracks beside the film. */
size_t tgi_av_others_bytes(const AVFormatContext *c, int film);
/* 1: a track's clock is another at `now` than at `before`, in its ticks: it went back by a second or more, or came to its
 * end too early. */
int tgi_av_clock_restarts(const AVStream *s, int64_t before, int64_t now);
/* 1: it went forward by more than a minute, of clocks that may restart. */
int tgi_av_clock_leaps(const AVStream *s, int64_t before, int64_t now);
/* The first stream of pictures that is no cover; -1: there is none. */
int tgi_av_first_video(const AVFormatContext *c);

#endif
