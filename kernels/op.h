/* op.h - the contract of one operator: shape rule, which input a piece of output reads, and the
 * plain C that defines the result.
 *
 * Executable activations are [N=1,C,H,W] or [N=1,C,D,H,W], float32 but for a few operators'
 * results. Boxes have the value's rank;
 * box axes 0 and 1 (N and C) are always full: work is never split over channels between bands.
 *
 * THE VIEW. Kernels never compute base + y*pitch. An activation lives in rings: the address of
 * element (c,z,y,x) in image coordinates of that value is
 *
 *   base + (c / cb) * block_pitch + (z mod z_ring) * z_pitch + (y mod y_ring) * y_pitch
 *        + (x - x0) * cb + (c mod cb)
 *
 * cb is 1 (planar rows, for few channels) or the lane count of the instruction set. Lanes
 * between `c` and the end of the last block are zero, always: producers write zeros there.
 * Columns outside the image that a consumer needs are stored, and zero.
 *
 * A source may be read *doubled*: the operand is the stored value with every pixel repeated in
 * a square of 2x2, nearest upsampling that nobody computes. Coordinates above are then those of
 * what is stored; only variants that say so (reads_doubled) get such views.
 *
 * A view holds every number as a float32, whatever the type of its value: a bool is 0 or 1, an
 * integer itself, exact up to 2^24.
 *
 * A source operand is a list of segments: more than one when it is a virtual Concat over
 * channels; each segment is padded to its own channel block.
 *
 * BIT-EQUALITY. The value written at an image coordinate must not depend on the box, the
 * threads or the view: one accumulation order in body, edge and tail; border handling decided
 * by image coordinates (`full` descs) alone. */
#ifndef TG_OP_H
#define TG_OP_H

#include "engine/base/attrs.h"
#include "engine/base/region.h"
#include "engine/base/status.h"
#include "engine/base/tensor.h"

#define TG_OP_MAX_SRC 16
#define TG_OP_MAX_DST 8
#define TG_MAX_SEG 16

/* A constant input: dense row-major data, valid while the graph lives. */
typedef struct tg_const {
    tg_desc desc;
    const void *data;
} tg_const;

/* Element i of a constant as a number; integers beyond 2^53 lose bits. */
double tgi_num_at(const tg_const *c, int64_t i);
/* Store a number as the element type `t` (integers wrap as in C). */
void tgi_num_put(tg_dtype t, void *data, int64_t i, double v);

/* Everything that is fixed once shapes are known. */
typedef struct tg_op_ctx {
    const void *attrs; /* the op's attribute struct */
    int opset;         /* opset the node was written for */
    int n_src, n_dst;
    const tg_desc *src; /* full extents; rank 0 with dtype NONE: input not given */
    const tg_desc *dst;
    const tg_const *const *const_src; /* NULL where not a constant */
    int64_t phase; /* variants that compute whole blocks: one starts at this row and column */
    /* Bits: source j, result d is flat, a dense row-major array of its shape. Its view is one
     * row of one channel, as long as the array. */
    uint32_t flat_src, flat_dst;
} tg_op_ctx;

typedef struct tg_view {
    float *base;
    int64_t c;     /* logical channels */
    int cb;        /* lanes per channel block */
    int doubled;   /* pixel (y,x) of the operand is (y/2,x/2) of what is stored, see below */
    int64_t x0;    /* image column of the first stored column */
    int64_t width; /* stored columns */
    size_t block_pitch, z_pitch, y_pitch; /* in floats */
    int64_t z_ring, y_ring;
} tg_view;

typedef struct tg_operand {
    int n_seg;          /* 0: constant or not given; look at const_src */
    const tg_view *seg; /* channels in order */
} tg_operand;

static inline float *tgi_view_row(const tg_view *v, int64_t block, int64_t z, int64_t y)
{
    return v->base + (size_t)block * v->block_pitch + (size_t)(z % v->z_ring) * v->z_pitch +
           (size_t)(y % v->y_ring) * v->y_pitch;
}
/* Address of one element; for reference kernels and edges, not for inner loops. */
static inline float *tgi_view_at(const tg_view *v, int64_t c, int64_t z, int64_t y, int64_t x)
{
    return tgi_view_row(v, c / v->cb, z, y) + (x - v->x0) * v->cb + c % v->cb;
}
static inline int64_t tgi_view_blocks(const tg_view *v)
{
    return (v->c + v->cb - 1) / v->cb;
}
/* Read element (c,...) of a segmented operand. */
static inline float tgi_operand_get(const tg_operand *o, int64_t c, int64_t z, int64_t y,
                                    int64_t x)
{
    int s = 0;
    while (c >= o->seg[s].c)
        c -= o->seg[s++].c;
    return *tgi_view_at(&o->seg[s], c, z, y, x);
}

typedef struct tg_threads tg_threads; /* kernels/threads.h */

/* Pointwise steps that follow a node inside its kernel. Defined by the ops of the same name. */
typedef enum tg_epi_kind {
    TG_EPI_RELU,
    TG_EPI_LEAKY, /* a = slope */
    TG_EPI_PRELU, /* vec = slope per channel */
    TG_EPI_CLIP,  /* a = low, b = high */
    TG_EPI_SIGMOID,
    TG_EPI_TANH,
    TG_EPI_ABS,
    TG_EPI_SQRT,
    TG_EPI_EXP,
    TG_EPI_NEG,
    TG_EPI_HARDSIGMOID, /* clip(a*x+b, 0, 1) */
    TG_EPI_ELU,         /* a = alpha */
    TG_EPI_SILU,        /* x * sigmoid(x) */
    TG_EPI_HARDSWISH,   /* x * clip(a*x+b, 0, 1) */
    TG_EPI_KEEP,        /* remember the running value; a later step may read it */
    TG_EPI_SWAP,        /* exchange the running value and the kept one */
    /* binary: acc op other; other is a view (src >= 0), the kept value, a channel vector (vec)
     * or scalar a */
    TG_EPI_ADD,
    TG_EPI_SUB,  /* acc - other */
    TG_EPI_RSUB, /* other - acc */
    TG_EPI_MUL,
    TG_EPI_DIV,  /* acc / other */
    TG_EPI_RDIV, /* other / acc */
    TG_EPI_MIN,
    TG_EPI_MAX
} tg_epi_kind;

#define TG_EPI_KEPT (-2) /* a step's src: the value that the last KEEP or SWAP put aside */

typedef struct tg_epi_step {
    tg_epi_kind kind;
    int src; /* binary: index of the call's source operand, TG_EPI_KEPT, or -1 */
    float a, b;
    const float *vec; /* per channel, zero-padded to a multiple of 16 lanes; or NULL */
} tg_epi_step;

typedef struct tg_call {
    const tg_op_ctx *ctx;
    const tg_operand *src; /* ctx->n_src operands, then the epilogue's further ones */
    const tg_view *dst;    /* ctx->n_dst views */
    tg_box box;            /* of dst[0], inside the image; other dsts have the same */
    const tg_epi_step *epi;
    int n_epi;
    const void *packed;  /* what the variant's `pack` wrote; NULL for references */
    void *scratch;       /* what the variant booked, 64-byte aligned */
    tg_threads *threads; /* NULL: run on the calling thread */
    /* Of a device's variant alone (kernels/device.h): */
    const tg_box *boxes;       /* of a flat node: for each result, what is kept of it */
    int64_t most[TG_MAX_RANK]; /* lengths of `box` at most, in any band of any cell */
    void *recorder;            /* where `run` puts its launches */
} tg_call;

typedef enum tg_op_class {
    TG_OP_LOCAL, /* slide or rule bound what is read */
    TG_OP_WHOLE, /* reads the whole spatial extent: need answers the full box */
    TG_OP_DENSE /* no piece of it can be computed: `eval` on whole dense tensors of any type and
                   rank, at import where the inputs are known then (Shape, Gather of extents) */
} tg_op_class;

/* TG_OP_WHOLE: what is needed of input 0's whole extent. A pass over an image that does not fit
 * has to end there; this says with what in hand. */
typedef enum tg_whole {
    TG_WHOLE_VALUE, /* every pixel */
    TG_WHOLE_STATS, /* numbers per channel, then each pixel by itself (InstanceNormalization) */
    TG_WHOLE_REDUCED, /* numbers per channel, nothing else (GlobalAveragePool) */
} tg_whole;

/* The number of which channel of a pixel, of several alike the first or the last of them. */
typedef enum tg_pick {
    TG_PICK_NONE,
    TG_PICK_FIRST_LARGEST,
    TG_PICK_LAST_LARGEST,
    TG_PICK_FIRST_SMALLEST,
    TG_PICK_LAST_SMALLEST
} tg_pick;

typedef struct tg_op {
    const char *name; /* ONNX spelling: "Conv" */
    tg_op_class op_class;
    /* The class of one node, where attributes or shapes decide it (a reduction over channels is
     * local, over pixels it is not); not by extents. NULL: op_class. */
    tg_op_class (*classify)(const tg_op_ctx *ctx);
    int any_type;         /* 1: `ref` is right for integers and bools in views too */
    tg_whole whole;       /* of TG_OP_WHOLE */
    const tg_attr *attrs; /* NULL: none */
    size_t attrs_size;    /* bytes of the attribute struct */
    /* Shapes of all outputs from shapes (and constant data) of inputs. A conflict is
     * TG_E_FORMAT with a detail that gives both sides; what is valid ONNX but not done here is
     * TG_E_UNSUPPORTED. `ctx->dst` is not yet valid. */
    tg_status (*infer)(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err);
    /* What rows of an output read of source `src_i` along one axis (TG_Z to TG_X), in closed
     * form: it is asked for each band of thousands of nodes. May reach outside the image: there
     * the op reads zeros, and the executor stores them. Ops with another border rule stay
     * inside the image. Monotone: more rows never need less.
     * `slide`: where that goes on evenly; 0: it does not, and `rule` says how. NULL: the same
     * rows (pointwise), or, where there is a `rule`, 0. */
    int (*slide)(const tg_op_ctx *ctx, int src_i, int axis, tg_slide *slide);
    /* For any axis, equal to `slide` wherever that answers 1. NULL: it always does. */
    void (*rule)(const tg_op_ctx *ctx, int src_i, int axis, tg_rule *rule);
    /* Reference: plain C over views, any box, obviously right. Computes dst[*] over call->box
     * WITHOUT the epilogue. NULL for TG_OP_DENSE. Accumulates in float64 unless the op is exact
     * in float32. */
    tg_status (*ref)(const tg_call *call, tgi_err *err);
    /* Evaluate on constants: dense inputs (all const_src given, any dtype) into dense outputs
     * (ctx->dst inferred, `dst_data[i]` allocated by the caller). NULL: the folder uses `ref`
     * for float activations-like constants, or leaves the node alone. */
    tg_status (*eval)(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err);
    /* Multiply-adds per output element times 2, for the cost model; NULL: 1. */
    double (*flops)(const tg_op_ctx *ctx);
    /* Pointwise ops that can ride in another node's epilogue: fill `step` from attributes and
     * constants, `chain` = which input is the running value. Returns 0 when it cannot
     * (`vec` data that the step needs is made by the caller from const_src[other]). */
    int (*as_step)(const tg_op_ctx *ctx, int chain, tg_epi_step *step);
    /* 1: output 0 is source 0 with every pixel of the plane repeated in a square of 2x2, and
     * nothing else. NULL: never. */
    int (*doubles)(const tg_op_ctx *ctx);
    /* What output 0 is of the channels of source 0 at the same pixel, and nothing else. NULL:
     * TG_PICK_NONE. */
    tg_pick (*picks)(const tg_op_ctx *ctx);
} tg_op;

static inline tg_op_class tgi_op_class(const tg_op *op, const tg_op_ctx *ctx)
{
    return op->classify ? op->classify(ctx) : op->op_class;
}

/* Box of source `src_i` that box `dst` of output `dst_i` reads. */
void tgi_op_need(const tg_op *op, const tg_op_ctx *ctx, int dst_i, const tg_box *dst, int src_i,
                 tg_box *need);
/* 1: so it goes on along that axis, for any box; 0: as the op's rule says. */
int tgi_op_slide(const tg_op *op, const tg_op_ctx *ctx, int src_i, int axis, tg_slide *slide);

/* kernels/op_table.c */
const tg_op *tgi_op_find(const char *name); /* NULL: unknown */
const tg_op *tgi_op_at(int i);              /* NULL past the end */

#endif
