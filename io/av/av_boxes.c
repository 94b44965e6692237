/* av_boxes.c - see av_boxes.h. */
#include "io/av/av_boxes.h"

#include <string.h>
#include <unistd.h>

int tgi_av_box_is(const tgi_av_box *b, const char *name)
{
    return memcmp(b->name, name, 4) == 0;
}

uint32_t tgi_av_box_number(int fd, int64_t at)
{
    uint8_t b[4];
    if (pread(fd, b, 4, at) != 4)
        return 0;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

int tgi_av_box_at(int fd, int64_t at, int64_t end, tgi_av_box *b)
{
    uint8_t h[TGI_AV_BOX_HEAD];
    if (end - at < TGI_AV_BOX_HEAD || pread(fd, h, sizeof h, at) != (ssize_t)sizeof h)
        return 0;
    memcpy(b->name, h + 4, 4);
    uint64_t n = tgi_av_box_number(fd, at), head = TGI_AV_BOX_HEAD;
    if (n == 1) {
        n = (uint64_t)tgi_av_box_number(fd, at + 8) << 32 | tgi_av_box_number(fd, at + 12);
        head += 8;
    }
    b->is_cut = n > (uint64_t)(end - at);
    b->lacks = b->is_cut && n <= INT64_MAX ? (int64_t)n - (end - at) : 0;
    if (n == 0 || b->is_cut)
        n = (uint64_t)(end - at);
    b->from = at;
    b->at = at + (int64_t)head;
    b->end = at + (int64_t)n;
    return n >= head;
}

int tgi_av_box_find(int fd, int64_t at, int64_t end, const char *name, tgi_av_box *b)
{
    for (; tgi_av_box_at(fd, at, end, b); at = b->end)
        if (tgi_av_box_is(b, name))
            return 1;
    return 0;
}
