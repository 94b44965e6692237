/* av_ends.h - where a file's own structure says that more of it should follow: what shows that a copy or a recording was not
 * finished; and where a Matroska has files attached to it, which that walk passes. Inside the plugin alone, and without libav, whose demuxers end at such a place as at any other. */
#ifndef TGI_AV_ENDS_H
#define TGI_AV_ENDS_H

#include <stdint.h>

#define TGI_AV_ENDS_MOST 512 /* bytes that one look takes */

/* A file that is attached to a Matroska (a font): the element of its bytes. Covers are none. */
typedef struct tgi_av_attached {
    int64_t at, end;
    int64_t bytes; /* of the file */
} tgi_av_attached;
#define TGI_AV_ATTACHED 32 /* that are known at most */
#define TGI_AV_LARGE 4096  /* bytes of one that is worth to be known */

typedef struct tgi_av_ends {
    int fd;
    int64_t size; /* of the file */
    int (*cancelled)(void);
    int looks,
        gave_up; /* gave_up: it cannot be read, is too long for this, or somebody stops it: nothing is known */
    int64_t from; /* of the bytes that are kept, */
    int kept;     /* and how many they are */
    uint8_t bytes[4096];
    /* What was found. */
    const char
        *of;       /* what of it is not whole: "its last tag"; NULL: nothing is known to lack */
    int64_t lacks; /* bytes of it that the file has not, at least */
    int64_t
        whole; /* the file up to what is not whole, or up to what is no part of it; 0: all of it */
    int another;    /* 1: another film begins there */
    int64_t header; /* bytes of the headers of its tracks, of Matroska and AVI; 0: not known */
    int n_attached;
    tgi_av_attached attached[TGI_AV_ATTACHED];
    const char *
        unended; /* what speaks for a cut and may as well be so in a whole file; NULL: nothing */
} tgi_av_ends;

/* n bytes from `at` on, n up to TGI_AV_ENDS_MOST, until the next call; NULL: the file ends before, or it was given up. */
const uint8_t *tgi_av_ends_at(tgi_av_ends *e, int64_t at, int n);
/* The file ends in what begins at `at` and ends at `end`. */
void tgi_av_ends_in(tgi_av_ends *e, int64_t at, int64_t end, const char *of);
/* 1: it is one of those that are looked at, all of them but MP4 (av_mp4.c); what is found stands in e. */
int tgi_av_ends_look(tgi_av_ends *e);
/* What begins at `at` is another film: only what is in front of it is read. */
void tgi_av_ends_another(tgi_av_ends *e, int64_t at);
/* Kinds that have a file of their own. Each 1: it is one. */
int tgi_av_ends_mkv(tgi_av_ends *e);
int tgi_av_ends_mpeg(tgi_av_ends *e);

/* An element of a Matroska (EBML). */
enum { TGI_MKV_EBML = 0x1a45dfa3, TGI_MKV_SEGMENT = 0x18538067, TGI_MKV_CLUSTER = 0x1f43b675 };
typedef struct tgi_mkv_element {
    uint32_t id;
    int64_t from;    /* where it begins; */
    int64_t at, end; /* of what it holds */
    int open;        /* it does not say its length */
} tgi_mkv_element;
#define TGI_MKV_ELEMENT 2
/* TGI_MKV_ELEMENT: that of which the head stands at `at` is in *x. */
int tgi_mkv_element_at(tgi_av_ends *e, int64_t at, tgi_mkv_element *x);

#endif
