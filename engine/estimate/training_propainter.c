/* training_propainter.c - see training_propainter.h: tensor by tensor, what autograd keeps of the published generator.
 *
 * A table and not the graphs of engine/models, which yield the same frames and keep less: they draw GELU before patches
 * overlap, have no buffer of patches, and attend without one of likenesses. What is kept:
 *
 *   Conv2d, Linear, matmul   what they read; LeakyReLU, in place, what it yields, which the next one reads
 *   fold                     its result lies in a buffer of the patches' size (col2im resizes a copy of what it read)
 *   autocast (O1)            casts what each product reads, so queries, keys, values and pooling have a copy each; norms,
 *                            softmax, warps and deformable convolutions read float32
 *   O2                       two bytes an element, but statistics
 *
 * With float32 its sums are those of torch.autograd.graph.saved_tensors_hooks (docs/reference/estimators.md).
 * @source Zhou, Li, Chan, Loy: ProPainter, ICCV 2023, its published generator and training configuration. */
#include "engine/estimate/training_propainter.h"

#include "engine/models/propainter/networks.h"

#define C TGI_PP_CHANNELS
#define D TGI_PP_TOKEN
#define PATCH 49    /* pixels of a token's patch */
#define AROUND 148  /* tokens around a window that it attends to */
#define INNER 1960  /* channels between the linear layers of a block */
#define OFFSETS 288 /* of a deformable convolution; half as many shares */

/* Elements of the tensors in the three published files. */
#define OF_GENERATOR 39429667
#define OF_MOTION 5261312
#define OF_COMPLETION 5079555
/* Of the generator, what autocast leaves in float32: norms, deformable convolutions. */
#define OF_NORMS (TGI_PP_BLOCKS * 4 * D)
#define OF_DEFORM (2 * (C * C * 9 + C))

typedef struct shape {
    int64_t p, q;         /* pixels of a frame, of its features */
    int64_t tokens, full; /* of a frame, with those that fill windows up */
    int64_t pooled;
    int64_t windows;
    int64_t local, all; /* frames */
    int masked;         /* 1: each window of the attention hides something; 0: none does */
    tg_train_precision precision;
} shape;

/* Bytes of so many elements that take `o1` bytes each under autocast, all copies together. */
static uint64_t of(const shape *s, int64_t elements, int o1)
{
    const int each = s->precision == TG_TRAIN_FP32 ? 4 : s->precision == TG_TRAIN_O1 ? o1 : 2;
    return (uint64_t)elements * (uint64_t)each;
}

static uint64_t of_encoder(const shape *s)
{
    /* At a quarter of the sides: layers 4 to 16, and what is put together for those of groups. */
    const int64_t few = 128 + 256 + 384 + 640 + 512 + 768 + 384 + 640 + 256 + 512 + C;
    return of(s, s->all * (5 * s->p + 2 * 64 * s->p / 4 + few * s->q), 2);
}

/* Both ways, then both together. The first frame of a way is not moved. */
static uint64_t of_propagation(const shape *s)
{
    const int64_t moved = 2 * (s->local - 1), each = 2 * s->local;
    return of(s, moved * s->q * (C + 2 + OFFSETS + OFFSETS / 2), 4) + /* warped, sampled by */
           of(s, moved * s->q * (2 * C + 5 + 3 * C + OFFSETS), 2) + /* how offsets are found */
           (s->precision == TG_TRAIN_O1 ? of(s, moved * s->q * OFFSETS / 2, 2) : 0) +
           of(s, each * s->q * (2 * C + 2 + C), 2) + /* refined */
           of(s, s->local * s->q * (2 * C + 2 + C), 2);
}

static uint64_t of_split(const shape *s)
{
    return of(s, s->all * s->tokens * C * PATCH, 2);
}

/* What windows keep that hide something: keys of every other frame, with what is around and pooled. Of the others each frame
 * attends to its own tokens. */
static uint64_t of_windows(const shape *s, int b)
{
    const int64_t full = s->all * s->full * D, keyed = (s->all - b % 2 + 1) / 2,
                  window = TGI_PP_WINDOW_H * TGI_PP_WINDOW_W,
                  keys = s->masked ? keyed * (window + AROUND + s->pooled) : window,
                  asking = s->masked ? s->all * window : window,
                  rounds = s->windows * TGI_PP_HEADS * (s->masked ? 1 : s->all);
    return of(s, full, 2) +
           of(s, 2 * (s->masked ? s->windows * keys * D : full), 2) + /* keys and values */
           of(s, rounds * asking * keys, 6);
}

static uint64_t of_block(const shape *s, int b)
{
    const int64_t tokens = s->all * s->tokens * D, full = s->all * s->full * D;
    return of(s, 2 * tokens, 4) +
           (uint64_t)(s->all * s->tokens) * 4 * 4 + /* normed, statistics */
           of(s, full, 8) + /* queries, keys, values and pooling read it */
           of(s, s->all * s->pooled * D, 2) + of_windows(s, b) +
           of(s, 2 * tokens, 2) + /* projection, first layer */
           of(s, s->all * s->tokens * (PATCH + 2 * INNER), 2);
}

static uint64_t of_decoder(const shape *s)
{
    return of(s, s->all * s->tokens * (D + C * PATCH), 2) +
           of(s, s->all * (s->p / 4 * (C + 128 + 64) + s->p * (64 + 64 + 3)), 2);
}

/* What lies before each segment: encoder, propagation, split, the blocks, decoder. */
static uint64_t of_borders(const shape *s)
{
    const int64_t features = s->all * s->q * C;
    return of(s, 5 * s->all * s->p + 2 * features, 4) +
           of(s, (TGI_PP_BLOCKS + 1) * s->all * s->tokens * D, 2) + of(s, features, 4);
}

const char *tgi_ppt_part_name(tgi_ppt_part part)
{
    static const char *const name[TGI_PPT_PARTS] = {"encoder", "propagation", "split",
                                                    "transformer", "decoder"};
    return name[part];
}

void tgi_ppt_find(const tgi_ppt_sample *f, tg_train_precision precision, int masked,
                  tgi_ppt_kept *out)
{
    const tgi_pp_tokens n = tgi_pp_tokens_of(f->high, f->wide);
    const shape s = {.p = f->high * f->wide,
                     .q = f->high * f->wide / 16,
                     .tokens = n.high * n.wide,
                     .full = n.full_h * n.full_w,
                     .pooled = n.pool_h * n.pool_w,
                     .windows = n.win_h * n.win_w,
                     .local = f->local,
                     .all = f->local + f->refs,
                     .masked = masked,
                     .precision = precision};
    *out = (tgi_ppt_kept){
        .part = {of_encoder(&s), of_propagation(&s), of_split(&s), 0, of_decoder(&s)},
        .stored = of_borders(&s),
        .segments = TGI_PPT_PARTS - 1 + TGI_PP_BLOCKS};
    for (int b = 0; b < TGI_PP_BLOCKS; b++) {
        const uint64_t bytes = of_block(&s, b);
        out->part[TGI_PPT_TRANSFORMER] += bytes;
        out->largest = bytes > out->largest ? bytes : out->largest;
    }
    for (int k = 0; k < TGI_PPT_PARTS; k++) {
        out->all += out->part[k];
        if (k != TGI_PPT_TRANSFORMER && out->part[k] > out->largest)
            out->largest = out->part[k];
    }
}

tgi_saved tgi_ppt_parameters(void)
{
    return (tgi_saved){.parameters = OF_GENERATOR,
                       .half_read = OF_GENERATOR - OF_NORMS - OF_DEFORM,
                       .buffers = 4 * (uint64_t)(OF_MOTION + OF_COMPLETION)};
}
