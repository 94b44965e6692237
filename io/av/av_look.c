/* av_look.c - see av_look.h. */
#include "io/av/av_look.h"

#include "io/av/av.h"

#include <string.h>

static const AVRational square = {1, 1};
static const int32_t upright[4] = {65536, 0, 0, 65536};

static AVRational aspect_of(const AVStream *s, const AVFrame *f)
{
    const AVRational a = f->sample_aspect_ratio;
    return s->sample_aspect_ratio.num || a.num <= 0 || a.den <= 0 ? square : a;
}

static void take_turn(const AVStream *s, const AVFrame *f, tgi_av_look *to)
{
    const AVFrameSideData *d = av_frame_get_side_data(f, AV_FRAME_DATA_DISPLAYMATRIX);
    int32_t m[9];
    memcpy(to->turn, upright, sizeof upright);
    if (!d || d->size < sizeof m || av_stream_get_side_data(s, AV_PKT_DATA_DISPLAYMATRIX, NULL))
        return;
    memcpy(m, d->data, sizeof m);
    const int32_t four[4] = {m[0], m[1], m[3], m[4]};
    memcpy(to->turn, four, sizeof four);
    to->says_turn = 1;
}

tgi_av_look tgi_av_look_of(const AVStream *s, const AVFrame *f)
{
    tgi_av_look look = {.range = (int)f->color_range,
                        .matrix = (int)f->colorspace,
                        .transfer = (int)f->color_trc,
                        .primaries = (int)f->color_primaries,
                        .fields = f->interlaced_frame,
                        .aspect = aspect_of(s, f),
                        .key = f->key_frame};
    take_turn(s, f, &look);
    return look;
}

unsigned tgi_av_look_other(const tgi_av_look *a, const tgi_av_look *b)
{
    unsigned other = 0;
    if (a->range != b->range || a->matrix != b->matrix || a->transfer != b->transfer ||
        a->primaries != b->primaries)
        other |= TGI_AV_OTHER_COLOURS;
    if (b->fields && !a->fields)
        other |= TGI_AV_OTHER_FIELDS;
    if (av_cmp_q(a->aspect, b->aspect) != 0)
        other |= TGI_AV_OTHER_ASPECT;
    /* What is said holds up to the next key frame. Source: ITU-T H.264, D.2.27, and H.265, D.3.17. */
    if ((b->says_turn || b->key) && memcmp(a->turn, b->turn, sizeof a->turn) != 0)
        other |= TGI_AV_OTHER_TURN;
    return other;
}
