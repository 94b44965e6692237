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
#ifndef TGI_OP_H
#define TGI_OP_H

#include "engine/base/attrs.h"
#include "engine/base/region.h"
#include "engine/base/status.h"
#include "engine/base/tensor.h"

#define TGI_OP_MAX_SRC 16
#define TGI_OP_MAX_DST 8
#define TGI_MAX_SEG 16

/* A constant input: dense row-major data, valid while the graph lives. */
typedef struct tgi_constant {
    tgi_desc desc;
    const void *data;
} tgi_constant;

/* Element i of a constant as a number; integers beyond 2^53 lose bits. */
double tgi_num_at(const tgi_constant *c, int64_t i);
/* Store a number as the element type `t` (integers wrap as in C). */
void tgi_num_put(tg_dtype t, void *data, int64_t i, double v);

/* Everything that is fixed once shapes are known. */
typedef struct tgi_op_ctx {
    const void *attrs; /* the op's attribute struct */
    int opset;         /* opset the node was written for */
    int n_src, n_dst;
    const tgi_desc *src; /* full extents; rank 0 with dtype NONE: input not given */
    const tgi_desc *dst;
    const tgi_constant *const *const_src; /* NULL where not a constant */
    int64_t phase; /* variants that compute whole blocks: one starts at this row and column */
    /* Bits: source j, result d is flat, a dense row-major array of its shape. Its view is one
     * row of one channel, as long as the array. */
    uint32_t flat_src, flat_dst;
} tgi_op_ctx;

typedef struct tgi_view {
    float *base;
    int64_t c;     /* logical channels */
    int cb;        /* lanes per channel block */
    int doubled;   /* pixel (y,x) of the operand is (y/2,x/2) of what is stored, see below */
    int64_t x0;    /* image column of the first stored column */
    int64_t width; /* stored columns */
    size_t block_pitch, z_pitch, y_pitch; /* in floats */
    int64_t z_ring, y_ring;
} tgi_view;

typedef struct tgi_operand {
    int n_seg;           /* 0: constant or not given; look at const_src */
    const tgi_view *seg; /* channels in order */
} tgi_operand;

static inline float *tgi_view_row(const tgi_view *v, int64_t block, int64_t z, int64_t y)
{
    return v->base + (size_t)block * v->block_pitch + (size_t)(z % v->z_ring) * v->z_pitch +
           (size_t)(y % v->y_ring) * v->y_pitch;
}
/* Address of one element; for reference kernels and edges, not for inner loops. */
static inline float *tgi_view_at(const tgi_view *v, int64_t c, int64_t z, int64_t y, int64_t x)
{
    return tgi_view_row(v, c / v->cb, z, y) + (x - v->x0) * v->cb + c % v->cb;
}
static inline int64_t tgi_view_blocks(const tgi_view *v)
{
    return (v->c + v->cb - 1) / v->cb;
}
/* Read element (c,...) of a segmented operand. */
static inline float tgi_operand_get(const tgi_operand *o, int64_t c, int64_t z, int64_t y,
                                    int64_t x)
{
    int s = 0;
    while (c >= o->seg[s].c)
        c -= o->seg[s++].c;
    return *tgi_view_at(&o->seg[s], c, z, y, x);
}

typedef struct tgi_threads tgi_threads; /* kernels/threads.h */

/* Pointwise steps that follow a node inside its kernel. Defined by the ops of the same name. */
typedef enum tgi_epi_kind {
    TGI_EPI_RELU,
    TGI_EPI_LEAKY, /* a = slope */
    TGI_EPI_PRELU, /* vec = slope per channel */
    TGI_EPI_CLIP,  /* a = low, b = high */
    TGI_EPI_SIGMOID,
    TGI_EPI_TANH,
    TGI_EPI_ABS,
    TGI_EPI_SQRT,
    TGI_EPI_EXP,
    TGI_EPI_NEG,
    TGI_EPI_HARDSIGMOID, /* clip(a*x+b, 0, 1) */
    TGI_EPI_ELU,         /* a = alpha */
    TGI_EPI_SILU,        /* x * sigmoid(x) */
    TGI_EPI_HARDSWISH,   /* x * clip(a*x+b, 0, 1) */
    TGI_EPI_GELU,        /* x * (1 + erf(x / sqrt 2)) / 2 */
    TGI_EPI_GELU_TANH,   /* its form with tanh */
    TGI_EPI_KEEP,        /* remember the running value; a later step may read it */
    TGI_EPI_SWAP,        /* exchange the running value and the kept one */
    /* binary: acc op other; other is a view (src >= 0), the kept value, a channel vector (vec)
     * or scalar a */
    TGI_EPI_ADD,
    TGI_EPI_SUB,  /* acc - other */
    TGI_EPI_RSUB, /* other - acc */
    TGI_EPI_MUL,
    TGI_EPI_DIV,  /* acc / other */
    TGI_EPI_RDIV, /* other / acc */
    TGI_EPI_MIN,
    TGI_EPI_MAX
} tgi_epi_kind;

#define TGI_EPI_KEPT (-2) /* a step's src: the value that the last KEEP or SWAP put aside */

typedef struct tgi_epi_step {
    tgi_epi_kind kind;
    int src; /* binary: index of the call's source operand, TGI_EPI_KEPT, or -1 */
    float a, b;
    const float *vec; /* per channel, zero-padded to a multiple of 16 lanes; or NULL */
} tgi_epi_step;

typedef struct tgi_call {
    const tgi_op_ctx *ctx;
    const tgi_operand *src; /* ctx->n_src operands, then the epilogue's further ones */
    const tgi_view *dst;    /* ctx->n_dst views */
    tgi_box box;            /* of dst[0], inside the image; other dsts have the same */
    const tgi_epi_step *epi;
    int n_epi;
    const void *packed;   /* what the variant's `pack` wrote; NULL for references */
    void *scratch;        /* what the variant booked, 64-byte aligned */
    tgi_threads *threads; /* NULL: run on the calling thread */
    /* Of a node that is called once for each piece of what it looks at (tgi_variant.piece): which
     * sources come in pieces, as bits, and which of their pixels are there: by their numbers, as
     * x, in a single row. 0: all sources are there as they lie in the image. */
    uint32_t in_pieces;
    tgi_range piece;
    /* Of a device's variant alone (kernels/device.h): */
    const tgi_box *boxes;       /* of a flat node: for each result, what is kept of it */
    int64_t most[TGI_MAX_RANK]; /* lengths of `box` at most, in any band of any cell */
    void *recorder;             /* where `run` puts its launches */
} tgi_call;

typedef enum tgi_op_kind {
    TGI_OP_LOCAL, /* slide or rule bound what is read */
    TGI_OP_WHOLE, /* reads the whole extent of its sources but those of `by_rows` */
    TGI_OP_DENSE  /* no piece of it can be computed: `eval` on whole dense tensors of any type
                    and  rank, at import where the inputs are known then (Shape, Gather of
                    extents) */
} tgi_op_kind;

/* A whole-extent node whose result is a few numbers: how it comes about from pieces of source 0.
 * What is gathered is fixed by image coordinates (granule.h), so the pieces do not matter; the
 * reference and the kernels end with the same `finish`, so they have the same bits. */
struct tgi_moments;
struct tgi_extremes;
typedef void (*tgi_finish_fn)(const tgi_op_ctx *ctx, const struct tgi_moments *m, float *dst);
typedef void (*tgi_finish_extremes_fn)(const tgi_op_ctx *ctx, const struct tgi_extremes *e,
                                       float *dst);
typedef struct tgi_reduce {
    /* 1: this node is such a reduction; NULL: every node of the operator is. */
    int (*fits)(const tgi_op_ctx *ctx);
    /* Fill dst[0], dense, from what was gathered over all pixels of each channel of source 0.
     * One of the two is set: `finish` takes moments, `finish_extremes` takes extremes. */
    tgi_finish_fn finish;
    tgi_finish_extremes_fn finish_extremes;
} tgi_reduce;

/* The number of which channel of a pixel, of several alike the first or the last of them. */
typedef enum tgi_pick {
    TGI_PICK_NONE,
    TGI_PICK_FIRST_LARGEST,
    TGI_PICK_LAST_LARGEST,
    TGI_PICK_FIRST_SMALLEST,
    TGI_PICK_LAST_SMALLEST
} tgi_pick;

typedef struct tgi_op {
    const char *name; /* ONNX spelling: "Conv" */
    tgi_op_kind op_class;
    /* The class of one node, where attributes or shapes decide it (a reduction over channels is
     * local, over pixels it is not); not by extents. NULL: op_class. */
    tgi_op_kind (*classify)(const tgi_op_ctx *ctx);
    int any_type;             /* 1: `ref` is right for integers and bools in views too */
    const tgi_reduce *reduce; /* of TGI_OP_WHOLE: made in pieces; NULL: from edge to edge */
    /* Of TGI_OP_WHOLE, bits: sources that are read as `slide` says, row by row. */
    uint32_t by_rows;
    int internal; /* 1: of this program alone, no model's file may name it */
    /* 1: what it yields (statistics, a flow) is float32 on every device, whatever else has there. */
    int wide;
    uint32_t wide_src;     /* bits: sources that are such numbers: those, flows, offsets */
    const tgi_attr *attrs; /* NULL: none */
    size_t attrs_size;     /* bytes of the attribute struct */
    /* Shapes of all outputs from shapes (and constant data) of inputs. A conflict is
     * TG_E_FORMAT with a detail that gives both sides; what is valid ONNX but not done here is
     * TG_E_UNSUPPORTED. `ctx->dst` is not yet valid. */
    tg_status (*infer)(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err);
    /* What rows of an output read of source `src_i` along one axis (TGI_Z to TGI_X), in closed
     * form: it is asked for each band of thousands of nodes. May reach outside the image: there
     * the op reads zeros, and the executor stores them. Ops with another border rule stay
     * inside the image. Monotone: more rows never need less.
     * `slide`: where that goes on evenly; 0: it does not, and `rule` says how. NULL: the same
     * rows (pointwise), or, where there is a `rule`, 0. */
    int (*slide)(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);
    /* For any axis, equal to `slide` wherever that answers 1. NULL: it always does. */
    void (*rule)(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *rule);
    /* Reference: plain C over views, any box, obviously right. Computes dst[*] over call->box
     * WITHOUT the epilogue. NULL for TGI_OP_DENSE. Accumulates in float64 unless the op is
     * exact in float32. */
    tg_status (*ref)(const tgi_call *call, tgi_err *err);
    /* Evaluate on constants: dense inputs (all const_src given, any dtype) into dense outputs
     * (ctx->dst inferred, `dst_data[i]` allocated by the caller). NULL: the folder uses `ref`
     * for float activations-like constants, or leaves the node alone. */
    tg_status (*eval)(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err);
    /* Multiply-adds per output element times 2, for the cost model; NULL: 1. */
    double (*flops)(const tgi_op_ctx *ctx);
    /* Pointwise ops that can ride in another node's epilogue: fill `step` from attributes and
     * constants, `chain` = which input is the running value. Returns 0 when it cannot
     * (`vec` data that the step needs is made by the caller from const_src[other]). */
    int (*as_step)(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step);
    /* 1: output 0 is source 0 with every pixel of the plane repeated in a square of 2x2, and
     * nothing else. NULL: never. */
    int (*doubles)(const tgi_op_ctx *ctx);
    /* What output 0 is of the channels of source 0 at the same pixel, and nothing else. NULL:
     * TGI_PICK_NONE. */
    tgi_pick (*picks)(const tgi_op_ctx *ctx);
} tgi_op;

static inline tgi_op_kind tgi_op_class(const tgi_op *op, const tgi_op_ctx *ctx)
{
    return op->classify ? op->classify(ctx) : op->op_class;
}

/* Box of source `src_i` that box `dst` of output `dst_i` reads. */
void tgi_op_need(const tgi_op *op, const tgi_op_ctx *ctx, int dst_i, const tgi_box *dst,
                 int src_i, tgi_box *need);
/* 1: so it goes on along that axis, for any box; 0: as the op's rule says. */
int tgi_op_slide(const tgi_op *op, const tgi_op_ctx *ctx, int src_i, int axis,
                 tgi_slide *slide);

/* kernels/op_table.c */
const tgi_op *tgi_op_find(const char *name); /* NULL: unknown */
const tgi_op *tgi_op_at(int i);              /* NULL past the end */

#endif
