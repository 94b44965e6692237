/* av_film.h - a film that is read, inside of the plugin: av_film.c knows what it has and finds its frames, av_decode.c is its
 * decoder. */
#ifndef TGI_AV_FILM_H
#define TGI_AV_FILM_H

#include "io/av/av_frames.h"
#include "io/av/av_h264.h"
#include "io/av/av_input.h"
#include "io/av/av_inside.h"
#include "io/av/av_look.h"
#include "io/av/av_opaque.h"
#include "io/av/av_palette.h"
#include "io/av/av_sums.h"

#include <libavcodec/avcodec.h>

#define TGI_AV_MOST_PIXELS ((int64_t)1 << 28)

#define TGI_AV_HELD 32 /* frames that a decoder may hold back, and more */

typedef struct tgi_av_place {
    int64_t pts, dts;
    int key;
} tgi_av_place;

struct tgi_av_film {
    tgi_av_open opts;
    tgi_av_input in;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    int ended;         /* the decoder was told that no packet follows */
    int marred;        /* TGI_AV_MADE_UP, TGI_AV_REFUSED: and no later frame began anew */
    int64_t marred_at; /* number of a packet that was refused; 0: of none */
    int lacking;       /* the decoder made up frames that others are made of, */
    int64_t hurt_at;   /* the last packet whose own frame is made up; 0: none */
    int64_t lacks_from, lacks_last; /* from packets of these numbers on; */
    int64_t
        lacks_one[TGI_AV_HELD]; /* packets whose own frames are made of what was not there, */
    int64_t n_lacks_one;        /* the last of them; so many so far */
    int64_t since;              /* packets since decoding began, here or by a jump */
    tgi_av_h264_kind kind;      /* of the last one's picture, */
    int twig_lacks;             /* and one near it is made of what was not there */
    uint32_t may_lack; /* bits: headers of an H.264 that allow pictures to be left out */
    int bad;           /* what of all this holds for the frame that is there */
    int gives_all; /* the decoder gives frames that need earlier ones than there are, too, and says so of each */
    int64_t sent;   /* packets, since the beginning */
    int broken;     /* the last packet's own checksum does not hold */
    int has_slices; /* of FFV1: they end in a length and a checksum */
    int speaks;     /* an error that the decoder logs is damage of the frame that it gives */
    int sent_key;   /* it is a key packet */
    int tells_no_keys; /* of the decoder's frames each is said to be a key frame; it holds none back */
    tgi_av_place *packets;
    size_t n_packets, room;
    int64_t *shown; /* times of the frames, sorted; NULL: there are none */
    int64_t next; /* number of the frame that the decoder yields next; -1: the next one tells */
    int64_t have; /* number of the one in `frame`; -1: of none */
    int64_t gap;  /* the decoder yielded none of [gap, have), from the first frame on */
    int whole;    /* it was decoded from the first frame on */
    int64_t refused;
    tgi_av_sums sums;
    int64_t pictures; /* packets of raw HEVC that have one */
    int is_raw_hevc;
    unsigned beside;
    tgi_av_look first; /* of the first frame */

    int64_t clock;          /* when its last packet was decoded; AV_NOPTS_VALUE */
    int leaps;              /* it once went forward by more than a minute */
    uint64_t heard_sound;   /* bits: tracks of sound of which a packet came */
    int64_t last, last_for; /* when the last frame is shown, and how long */
    tgi_av_opaque opaque;
    enum AVPixelFormat stored; /* as the decoder gives it */
    int is_bare;               /* and its alpha, which is opaque, is left out */
    enum AVPixelFormat as;     /* what is handed out */
    uint8_t *made;             /* a frame of pixels that are made of a palette's; NULL */
    tgi_av_info info;
    tgi_av_frames frames;
};

/* The container from its beginning, with the decoder: frame 0 is next. */
tg_status tgi_av_begin(tgi_av_film *f, tgi_err *err);
/* The next frame that is shown. *there 0: the film is over. */
tg_status tgi_av_decode(tgi_av_film *f, int *there, tgi_err *err);
/* The file ends in the packet, and is to be read as if it ended before. */
int tgi_av_is_cut_off(const tgi_av_film *f);
/* What was decoded before is of no account. */
void tgi_av_forget_damage(tgi_av_film *f);
void tgi_av_close_all(tgi_av_film *f);

#endif
