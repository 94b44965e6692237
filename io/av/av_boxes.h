/* av_boxes.h - boxes of an MP4 or MOV, read where they lie. Inside the plugin alone.
 * Source: ISO/IEC 14496-12:2015, section 4.2. */
#ifndef TGI_AV_BOXES_H
#define TGI_AV_BOXES_H

#include <stdint.h>

#define TGI_AV_BOX_HEAD 8

typedef struct tgi_av_box {
    char name[4];
    int64_t at, end; /* of its contents, */
    int64_t from;    /* and of its head */
    int is_cut;      /* the file ends in it, */
    int64_t lacks;   /* and has so many bytes of it not */
} tgi_av_box;

/* 4 bytes at `at`; 0 behind the file's end. */
uint32_t tgi_av_box_number(int fd, int64_t at);
/* The box whose head is at `at`, before `end`. 0: there is none. */
int tgi_av_box_at(int fd, int64_t at, int64_t end, tgi_av_box *b);
int tgi_av_box_is(const tgi_av_box *b, const char *name);
/* The first of that name in [at, end). 0: there is none. */
int tgi_av_box_find(int fd, int64_t at, int64_t end, const char *name, tgi_av_box *b);

#endif
