/* av_join.h - a film that is being joined: what av_join.c, which writes it, and av_join_tracks.c share. Inside the plugin
 * alone. */
#ifndef TGI_AV_JOIN_H
#define TGI_AV_JOIN_H

#include "io/av/av_input.h"
#include "io/av/av_inside.h"

typedef struct tgi_av_joining {
    const tgi_av_join *j;
    AVFormatContext *out;
    AVIOContext *io;
    int64_t at;
    int write_error; /* errno of the file */
    tgi_av_encoder *encoder;
    AVStream *film;
    tgi_av_input in;          /* of the other tracks; closed: there are none */
    int to[TGI_AV_STREAMS];   /* stream of `out` for each of its; -1: left out */
    AVPacket *packet, *other; /* the next of each */
    int64_t next;             /* number of `packet` in the order of decoding */
    int known;                /* tracks of the other film when it was opened */
    int telling;              /* what is left out is told */
    int late;                 /* a track came to light behind the header, which was told */
    int free_words;           /* an MP4 or MOV says its words by names of any kind */
    int has_other;            /* `other` is there */
    int64_t last[TGI_AV_STREAMS],
        last_for[TGI_AV_STREAMS];    /* time of decoding of each track's last packet, */
    int64_t again[TGI_AV_STREAMS];   /* added to its times, since its clock started again; */
    int64_t written[TGI_AV_STREAMS]; /* and as it was written */
} tgi_av_joining;

/* It is an MP4 or MOV. */
int tgi_av_joins_mp4(const tgi_av_joining *w);
/* Only some of the film's time is joined. */
int tgi_av_joins_part(const tgi_av_joining *w);
/* Beside the track's packets. */
tg_status tgi_av_say_beside(AVStream *s, enum AVPacketSideDataType type, const void *what,
                            size_t n, tgi_err *err);
/* Ticks of origin_base, of a track whose ticks are `base`. */
int64_t tgi_av_ticks_of_film(const tgi_av_joining *w, int64_t ticks, AVRational base);
/* What is taken off the times of a track whose ticks are `base`. */
int64_t tgi_av_origin(const tgi_av_joining *w, AVRational base);
/* The other tracks, chapters and words of the film that was read, as far as this one takes them; `dropped` is told of
 * the others. */
tg_status tgi_av_join_others(tgi_av_joining *w, tgi_err *err);

#endif
