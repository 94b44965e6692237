/* av_frames.c - see av_frames.h. */
#include "io/av/av_frames.h"

#include "engine/base/arith.h"

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <stdint.h>
#include <string.h>

/* Before a plane: how long it is; then its bytes, aligned as this is. */
#define HEAD 64
#define STEP 16 /* columns that a row grows by until it is aligned */

static void give_back(void *opaque, uint8_t *data)
{
    tgi_av_frames *f = opaque;
    size_t bytes;
    memcpy(&bytes, data - HEAD, sizeof bytes);
    f->held -= bytes;
    av_free(data - HEAD);
}

/* Zeroed, as libavcodec's own are: what a damaged frame shows does not depend on what lay there. */
static AVBufferRef *take(void *opaque, size_t bytes)
{
    tgi_av_frames *f = opaque;
    if (f->most && (bytes > f->most || f->held > f->most - bytes)) {
        f->over = 1;
        return NULL;
    }
    uint8_t *head = bytes < SIZE_MAX - HEAD ? av_mallocz(bytes + HEAD) : NULL;
    if (!head)
        return NULL;
    memcpy(head, &bytes, sizeof bytes);
    AVBufferRef *b = av_buffer_create(head + HEAD, bytes, give_back, f, 0);
    if (!b) {
        av_free(head);
        return NULL;
    }
    f->held += bytes;
    return b;
}

static AVBufferRef *from_pool(tgi_av_frames *f, int plane, size_t bytes)
{
    if (!f->pool[plane] || f->pool_bytes[plane] != bytes) {
        av_buffer_pool_uninit(&f->pool[plane]);
        f->pool[plane] = av_buffer_pool_init2(bytes, f, take, NULL);
        f->pool_bytes[plane] = bytes;
    }
    return f->pool[plane] ? av_buffer_pool_get(f->pool[plane]) : NULL;
}

static int is_aligned(const int pitch[4], const int align[4])
{
    int good = 1;
    for (int i = 0; i < 4; i++)
        good &= pitch[i] % align[i] == 0;
    return good;
}

/* Bytes of a row and of each plane, as the decoder may write them: beyond what is shown. Rows are of one width in all
 * planes: some decoders take one for the half of the other. */
static int layout(AVCodecContext *c, const AVFrame *frame, int pitch[4], size_t plane[4])
{
    int align[AV_NUM_DATA_POINTERS], width = frame->width, height = frame->height;
    ptrdiff_t pitches[4];
    avcodec_align_dimensions2(c, &width, &height, align);
    width = (int)tgi_align_up(width, STEP);
    do {
        const int r = av_image_fill_linesizes(pitch, frame->format, width);
        if (r < 0)
            return r;
        width += STEP;
    } while (!is_aligned(pitch, align));
    for (int i = 0; i < 4; i++)
        pitches[i] = pitch[i];
    return av_image_fill_plane_sizes(plane, frame->format, height, pitches);
}

#define BEHIND (16 + 64 - 1) /* that loops of vectors may touch behind a plane */

static int get_buffer(AVCodecContext *c, AVFrame *frame, int flags)
{
    if (c->codec_type != AVMEDIA_TYPE_VIDEO || !(c->codec->capabilities & AV_CODEC_CAP_DR1))
        return avcodec_default_get_buffer2(c, frame, flags);
    int pitch[4];
    size_t plane[4];
    const int r = layout(c, frame, pitch, plane);
    if (r < 0)
        return r;
    for (int i = 0; i < 4 && plane[i]; i++) {
        frame->buf[i] = from_pool(c->opaque, i, plane[i] + BEHIND);
        if (!frame->buf[i]) {
            av_frame_unref(frame);
            return AVERROR(ENOMEM);
        }
        frame->data[i] = frame->buf[i]->data;
        frame->linesize[i] = pitch[i];
    }
    frame->extended_data = frame->data;
    return 0;
}

void tgi_av_frames_use(AVCodecContext *c, tgi_av_frames *frames)
{
    c->opaque = frames;
    c->get_buffer2 = get_buffer;
}

size_t tgi_av_frames_each(const tgi_av_frames *f)
{
    size_t n = 0;
    for (int i = 0; i < AV_NUM_DATA_POINTERS; i++)
        n += f->pool[i] ? f->pool_bytes[i] : 0;
    return n;
}

void tgi_av_frames_end(tgi_av_frames *f)
{
    for (int i = 0; i < AV_NUM_DATA_POINTERS; i++)
        av_buffer_pool_uninit(&f->pool[i]);
}

tgi_av_heard *tgi_av_frames_heard(const AVCodecContext *c)
{
    return c->get_buffer2 == get_buffer ? c->opaque : NULL;
}
