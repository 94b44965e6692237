/* av_opaque.c - see av_opaque.h. Source: GIF89a specification, sections 18 to 26. A packet is an image with the blocks before
 * it; the first one begins with the file's header. */
#include "io/av/av_opaque.h"

#include <string.h>

#define HEAD 13 /* "GIF89a", the logical screen's descriptor */
#define IMAGE 10
#define EXTENSION 0x21
#define CONTROL 0xf9 /* of what the next image is like */
#define TRANSPARENT 1

/* What becomes of an image before the next is drawn. */
enum { STAYS = 1, TO_NOTHING = 2, TO_WHAT_WAS = 3 };

static size_t table_bytes(uint8_t flags)
{
    return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

static int word(const uint8_t *b)
{
    return b[0] | b[1] << 8;
}

/* Where the blocks of data at `at` are over; n: not before the end. */
static size_t over(const uint8_t *b, size_t n, size_t at)
{
    while (at < n && b[at])
        at += 1 + (size_t)b[at];
    return at < n ? at + 1 : n;
}

/* Where the first block is. */
static size_t take_head(tgi_av_opaque *o, const uint8_t *b, size_t n)
{
    if (n < HEAD || memcmp(b, "GIF8", 4) != 0)
        return n;
    o->width = word(b + 6);
    o->height = word(b + 8);
    return HEAD + table_bytes(b[10]);
}

/* An image, drawn on the canvas as it is. What the first one covers its frame shows. */
static void draw(tgi_av_opaque *o, const uint8_t *image, int control)
{
    const int covers = word(image + 1) == 0 && word(image + 3) == 0 &&
                       word(image + 5) == o->width && word(image + 7) == o->height;
    const int bare = o->n > 1 && o->bare && !(covers && !(control & TRANSPARENT));
    const int then = control >> 2 & 7;
    o->not_so |= bare;
    if (then != TO_WHAT_WAS)
        o->bare = bare || then > STAYS;
}

void tgi_av_opaque_gif(tgi_av_opaque *o, const uint8_t *b, size_t n)
{
    int control = 0, images = 0;
    size_t at = 0;
    if (!o->n++) {
        o->bare = 1;
        at = take_head(o, b, n);
    }
    while (at + IMAGE <= n && !images) {
        if (b[at] == EXTENSION && b[at + 1] == CONTROL && b[at + 2] >= 4)
            control = b[at + 3];
        if (b[at] == EXTENSION) {
            at = over(b, n, at + 2);
        } else if (b[at] == ',') {
            draw(o, b + at, control);
            images++;
        } else {
            break;
        }
    }
    o->not_so |= !images;
}

int tgi_av_opaque_all(const tgi_av_opaque *o)
{
    return o->n > 0 && !o->not_so;
}

int tgi_av_opaque_frame(const uint8_t *pixels, ptrdiff_t pitch, int width, int height)
{
    for (int y = 0; y < height; y++) {
        const uint8_t *alpha = pixels + y * pitch + 3;
        unsigned all = 255;
        for (int x = 0; x < width; x++)
            all &= alpha[4 * (ptrdiff_t)x];
        if (all != 255)
            return 0;
    }
    return 1;
}
