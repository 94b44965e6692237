/* av_opaque.h - whether a film that could have alpha has none to be seen: what the packets of a GIF say. */
#ifndef TGI_AV_OPAQUE_H
#define TGI_AV_OPAQUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct tgi_av_opaque {
    int n;             /* images that were looked at */
    int not_so;        /* 1: one of the frames may have alpha */
    int bare;          /* 1: the canvas that the next image is drawn on may have alpha */
    int width, height; /* of the canvas */
} tgi_av_opaque;

/* The film's next packet of `bytes`, in the order in which they are decoded. */
void tgi_av_opaque_gif(tgi_av_opaque *o, const uint8_t *bytes, size_t n);
/* 1: where no pixel of the first frame has alpha, none of a later one has, but for what is damaged. */
int tgi_av_opaque_all(const tgi_av_opaque *o);
/* 1: no pixel of a frame of four bytes, the last of them alpha, has any. Where packets leave none out, one of a colour that its
 * table lacks does. */
int tgi_av_opaque_frame(const uint8_t *pixels, ptrdiff_t pitch, int width, int height);

#endif
