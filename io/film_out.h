/* film_out.h - what a film will be that is written: container, codec, how its frames are stored, what that
 * takes. All of it follows from the output's name, its pixels and the film that was read. */
#ifndef TGI_FILM_OUT_H
#define TGI_FILM_OUT_H

#include "engine/base/busy.h"
#include "io/film_bypass.h"
#include "io/film_pixels.h"
#include "io/image.h"

/* What the user may say; zero and NULL: nothing. */
typedef struct tgi_film_wish {
    const char *codec; /* "h264", ... */
    int like_input;    /* 1: the codec is that of the film that was read */
    const char *form;  /* "yuv420p", ... as ffmpeg spells it */
    int crf;           /* < 0: nothing */
    int speed;         /* as in tgi_av_coding; 0: nothing */
    int raw;           /* 1: what goes to standard output has no header (raw_frames.h) */
    int drop_alpha;    /* 1: where the codec has none the film goes without */
} tgi_film_wish;

typedef struct tgi_film_out {
    const tgi_av_ops *ops;
    const char *container;    /* as ffmpeg spells it; static */
    tgi_av_coding coding;     /* what its packets depend on */
    tgi_film_pixels pixels;   /* from the upright picture to what is stored */
    int samples;              /* of the picture's pixels */
    tgi_film_passing passing; /* what is put into frames beside the picture */
    int64_t frames;
    tgi_av_ratio time_base;
    size_t frame_bytes; /* of the picture */
    size_t bytes;       /* that encoding takes, the picture and libav's memory included */
    size_t
        tables; /* that grow with the film: of the packets, headers and attachments of its container */
    double disk;    /* bytes of all frames; of what is lossless at most, else a guess, */
    int guessed;    /* as this says */
    double seconds; /* of a processor, to encode them */
    double copied;  /* bytes of the other tracks that go with it, at most */
    char text[160]; /* in words: "h264 (yuv420p) in mp4, segments of 48 frames" */
    int pictures; /* 1: a file for each frame (frame_files.h): of the rest only numbers and text hold */
    int pipe;       /* 1: to standard output, as it comes */
    int has_crf;    /* 1: the codec has such a setting */
    int endless;    /* 1: the frames come through a pipe, nobody knows how many */
    int lost;       /* things in `note` that the film will not have */
    char note[320]; /* what of the film that was read changes; "" nothing */
} tgi_film_out;

/* The container that the output's name asks for, as ffmpeg spells it; NULL: it names no film. */
const char *tgi_film_container(const char *path);

/* 1: it has frames alone, one rate, and nothing else: a .y4m, a .raw. As ffmpeg spells it. */
int tgi_film_is_bare(const char *container);

/* 1: it says how a film is turned for viewing. */
int tgi_film_says_turns(const char *path);

/* A film of `frames` upright pictures, height x width pixels of `samples` samples. `from`: the film that
 * they were made of; NULL: no film. TG_E_ARG: the container does not hold the codec, or the type is none
 * of films; TG_E_UNSUPPORTED, TG_E_DEVICE: libav does not do it here. */
typedef struct tgi_film_frames {
    int64_t frames, height, width;
    int samples;              /* with what passes by */
    tgi_film_passing passing; /* of `from` */
    int endless; /* 1: `frames` come through a pipe, and are only as many at most */
    tg_dtype dtype;
    const tgi_av_info *from;
    tgi_av_ratio asked; /* frames a second, whatever `from` says; 0, 1: as it says */
    double rate;        /* frames a second, where `from` does not say; 0: nobody knows */
} tgi_film_frames;
tg_status tgi_film_out_make(const char *path, const tgi_film_frames *of,
                            const tgi_film_wish *wish, tgi_film_out *out, tgi_err *err);

/* Of a source that is a film, or made of one (tgi_source_ops.inner), here and below: what it says of itself, when a frame is
 * shown (k = frames: when the last is over); else NULL, TGI_AV_NO_TIME. */
const tgi_av_info *tgi_film_source_info(const tgi_source *s);
/* What the frames that were read so far have beside their pixels: TGI_AV_HDR10_PLUS and so on; 0: no film. */
unsigned tgi_film_source_beside(tgi_source *s);
int64_t tgi_film_source_time(const tgi_source *s, int64_t k);
/* Track i of the film's file. 0: there is none. */
int tgi_film_source_track(const tgi_source *s, int i, tgi_av_track *out);
/* Word i about that track, -1: about the film; chapter i. 0: there is none. */
int tgi_film_source_word(const tgi_source *s, int track, int i, tgi_av_word *out);
int tgi_film_source_chapter(const tgi_source *s, int i, tgi_av_chapter *out);
/* What the film does not say and is assumed, in words with ", " between them; "" nothing. */
const char *tgi_film_source_assumed(const tgi_source *s);
/* From now on its pixels are without that, which is kept of each frame for `put`; before anything is read.
 * `ahead`: so many frames are read before one is put, at most; more are decoded again; 0: none is read at all.
 * TG_E_UNSUPPORTED: it has none. */
tg_status tgi_film_source_split(tgi_source *s, tgi_film_passing what, int ahead, tgi_err *err);
tgi_film_passing tgi_film_source_passing(const tgi_source *s);
/* The rest of frame k into a frame that is written. `how`: its `from` and `what` are filled in here. */
tg_status tgi_film_source_put(tgi_source *s, int64_t k, tgi_film_bypass *how,
                              const tgi_av_blank *to, tgi_err *err);
/* 1: its frames are Y, U and V that a device may convert (film_yuv.h), and *out says what they mean. Of a source that is
 * a film itself. */
int tgi_film_source_yuv(const tgi_source *s, tgi_yuv *out);
/* From now on frames are kept so: `stage` gives rectangles of them, and pixels are made when they are read, row by row.
 * Before anything is read through a pipe. */
tg_status tgi_film_source_keep_yuv(tgi_source *s, tgi_err *err);
/* Rows and columns of frame k to `to`; what goes wrong names the file. */
tg_status tgi_film_source_stage(tgi_source *s, int64_t k, const tgi_yuv *f,
                                const tgi_yuv_staged *what, void *to, tgi_err *err);
/* Of the tables of its packets; 0: it is no film. */
size_t tgi_film_source_index_bytes(const tgi_source *s);
/* The film's own number of its frame 0; 1: not all of the film's frames are read. */
int64_t tgi_film_source_first(const tgi_source *s);
int tgi_film_source_is_part(const tgi_source *s);
/* Frames [lo, hi) of the film, counted from its frame 0 that is read: those that were cut off can be read, too. */
void tgi_film_source_around(const tgi_source *s, int64_t *lo, int64_t *hi);
/* 1: the film's last frame is read. */
int tgi_film_source_has_last(const tgi_source *s);
/* 1: it comes through a pipe (y4m.h): in order, once, and nobody knows how many frames. */
int tgi_film_source_is_stream(const tgi_source *s);
/* Waits until frame k came through the pipe, or its end, which goes to *end then; of anything else nothing happens. */
tg_status tgi_film_source_reach(tgi_source *s, int64_t k, int64_t *end, tgi_err *err);
/* Frames that are kept at once at most; 0: it is no film. */
int tgi_film_source_keeps(const tgi_source *s);
/* Frames that came when it ended; -1: it did not, or is none such. */
int64_t tgi_film_source_ended(const tgi_source *s);
/* Runs while a frame is decoded and turned into pixels. View; NULL: it is no film. */
tgi_busy *tgi_film_source_busy(const tgi_source *s);
/* Seconds of a processor to decode all frames once; of one that comes through a pipe, a frame. 0: it is no film. */
double tgi_film_source_decoding(const tgi_source *s);

#define TGI_FILM_STDOUT                                                                        \
    "-" /* as an output: a YUV4MPEG2, or raw frames, through standard output */

#endif
