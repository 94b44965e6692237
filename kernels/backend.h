/* backend.h - variants: faster ways to compute an op, per instruction set.
 *
 * The planner asks all variants of an op and takes the cheapest whose `accepts` says yes, of
 * equals the first in the table; the choice is recorded and part of the numerics fingerprint.
 * `accepts` and `cost` must not look at tile extents: only at attributes, channel counts and
 * layouts. */
#ifndef TGI_BACKEND_H
#define TGI_BACKEND_H

#include "kernels/granule.h"
#include "kernels/op.h"
#include "kernels/pixels.h"

typedef enum tgi_isa { TGI_ISA_PORTABLE, TGI_ISA_AVX2, TGI_ISA_AVX512, TGI_ISA_COUNT } tgi_isa;

/* Kinds of variants that are computed with only where all of theirs are allowed. */
#define TGI_KIND_BF16 1u    /* of a processor: products of bfloat16 numbers, float32 sums */
#define TGI_KIND_TF32 2u    /* products of float32 numbers rounded to 10 bits */
#define TGI_KIND_WGMMA 4u   /* products by the warp groups of compute capability 9.0 */
#define TGI_KIND_LIBRARY 8u /* products by a library that the device opens when asked */

/* What a kernel of a processor spends its time on: the estimate (engine/plan/speed.h) files its
 * speed by it. Of a device's no speeds are kept. */
typedef enum tgi_work {
    TGI_WORK_BYTES,       /* reading and writing them: of most */
    TGI_WORK_ATTENTION,   /* operations, many for each pixel that it reads */
    TGI_WORK_CONV,        /* operations, and bytes beside them; so are those below */
    TGI_WORK_CONV_FEW,    /* 1 to 4 channels of the result: as fast as conv_few, by and large */
    TGI_WORK_CONV_CLASSES /* at a rate that depends on its channels and taps */
} tgi_work;

/* Layout of the operands that the planner offers a variant. */
typedef struct tgi_layout_hint {
    int lanes;                  /* channel block of the instruction set: 8 or 16 */
    int exact;                  /* 1: no variant that rearranges the sum */
    unsigned kinds;             /* that are allowed: TGI_KIND_* */
    int flat;                   /* 1: variants over whole arrays, and none else */
    int n_src;                  /* operands (see n_seg for virtual concats) */
    int src_cb[TGI_OP_MAX_SRC]; /* 1 or lanes */
    int src_segs[TGI_OP_MAX_SRC];
    int64_t seg_c[TGI_OP_MAX_SRC][TGI_MAX_SEG]; /* logical channels of each segment */
    int n_doubled;                              /* segments that are read doubled */
    int dst_cb;
    const tgi_epi_step *epi;
    int n_epi;
} tgi_layout_hint;

typedef struct tgi_variant {
    const char *name; /* "conv_direct": shows in plans and in the fingerprint */
    const char *op;   /* tgi_op name */
    /* 1: a faster sum that rounds differently from the direct one (Winograd). The plan decides
     * node by node whether to use it; --exact never does. */
    int rearranges;
    unsigned kinds;    /* TGI_KIND_* that it is of; 0 of most */
    int reads_doubled; /* takes sources that are read doubled (tgi_view) */
    /* 1: computes a node over whole arrays (net.h): reads all of its sources and writes all of
     * its results, of images what call.boxes says. Scratch: for each source that is an image,
     * then each result that is one, a dense array in the backend's element type, aligned to 64
     * bytes; then what `scratch_bytes` says. */
    int flat;
    tgi_work work;
    int (*accepts)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay);
    /* Weights in the form the kernel reads; 0 or NULL: none. `pack` writes exactly that many
     * bytes (64-byte aligned destination). */
    size_t (*packed_bytes)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay);
    void (*pack)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst);
    /* Scratch for a call whose dst rows are at most `width` columns, for `threads` threads;
     * NULL: none. Besides `scratch`, kernels use up to 48 KiB of each thread's stack. */
    size_t (*scratch_bytes)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads);
    /* Of a node that looks at whole extents beside rows (tgi_op.by_rows). Above 0: what it looks at
     * may come in pieces (tgi_call.piece). Each but the last has a multiple of so many pixels, which
     * is a power of two. The scratch then stays from piece to piece, and is larger by `state_bytes`
     * of a box of so many pixels at most. */
    int piece;
    size_t (*state_bytes)(const tgi_op_ctx *ctx, int64_t pixels);
    /* Time of the variant over the time that the op's `flops` would take; NULL: 1. */
    double (*cost)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay);
    /* What it reads where that is more than the op's own need says: as tgi_op's slide, and
     * always 1. NULL: the op's. Asked through tgi_variant_need. */
    int (*slide)(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);
    /* Compute dst over call->box, epilogue included. May write stored columns right of the box
     * only inside the view's width and only if they are recomputed before use: never columns
     * outside the image. Must not allocate. */
    void (*run)(const tgi_call *call);
} tgi_variant;

/* tgi_op_need and tgi_op_slide of the variant, or of the op where there is none (NULL). */
void tgi_variant_need(const tgi_variant *v, const tgi_op *op, const tgi_op_ctx *ctx, int dst_i,
                      const tgi_box *dst, int src_i, tgi_box *need);
int tgi_variant_slide(const tgi_variant *v, const tgi_op *op, const tgi_op_ctx *ctx, int src_i,
                      int axis, tgi_slide *slide);

typedef struct tgi_kernel_set {
    const char *name; /* "avx512" */
    tgi_isa isa;
    int lanes;
    /* 1, of a device: pixels lie whole (NHWC), so a value has one block, of as many lanes as
     * tgi_whole_pixel says; every node needs a variant, there is no reference behind it. */
    int whole_pixels;
    tg_dtype element;                       /* of activations; TG_DTYPE_NONE: float32 */
    const tgi_variant *const *variants;     /* NULL-terminated, of equals the preferred first */
    void (*epilogue)(const tgi_call *call); /* behind tgi_epilogue_apply */
    /* tgi_pixels_load_run and tgi_pixels_store_run, bit for bit, faster. */
    void (*pixels_load)(const tgi_pixels *p, const void *src);
    void (*pixels_store)(const tgi_pixels *p, void *dst);
    /* Of processors: add all channels of `src` over a box to a state (kernels/granule.h), by
     * the same code that whole images are summed with. The box must be in src's views, which
     * are not doubled. Bits do not depend on the set, the threads or the box.
     * @return TG_E_INTERNAL when it breaks granule.h's rules; then nothing was added. */
    tg_status (*granules_add)(tgi_granules *g, const tgi_operand *src, const tgi_box *box,
                              tgi_threads *threads, tgi_err *err);
} tgi_kernel_set;

/* Bytes of one element of an activation. */
static inline size_t tgi_element_bytes(const tgi_kernel_set *be)
{
    return be->element == TG_DTYPE_NONE ? sizeof(float) : tgi_dtype_size(be->element);
}
/* Elements that a whole pixel of c channels takes: 16 bytes are read at once from 8 on. */
static inline int64_t tgi_whole_pixel(int64_t c)
{
    return c <= 2 ? c : c <= 4 ? 4 : (c + 7) / 8 * 8;
}

/* Best instruction set of this processor not above `cap` (TGI_ISA_COUNT: no cap; the
 * environment variable TEGULA_ISA=portable|avx2|avx512-nobf16|avx512 caps too). */
tgi_isa tgi_isa_detect(tgi_isa cap);
/* What the processor has, whatever TEGULA_ISA says. */
tgi_isa tgi_isa_best(void);
/* NULL when not compiled in. Of a set that this processor does not have: for plans alone, its
 * variants have no `run`. */
const tgi_kernel_set *tgi_backend_for(tgi_isa isa);
/* The same of any set, also of one that it has. */
const tgi_kernel_set *tgi_backend_for_plans(tgi_isa isa);
/* 1: this processor and build have the instruction set's bfloat16 dot product. A feature of its
 * own: there are processors with AVX-512 and without it, and TEGULA_ISA=avx512-nobf16 makes
 * this one of them. */
int tgi_isa_has_bf16(tgi_isa isa);
/* 1: this build, made for tests (TG_EMULATE_AVX512), computes the set with smaller vectors. */
int tgi_isa_emulated(tgi_isa isa);
const char *tgi_isa_name(tgi_isa isa);
int tgi_isa_parse(const char *name, tgi_isa *out); /* 1 when known */

/* The cheapest variant that accepts, or NULL (then the reference runs, epilogue after it). */
const tgi_variant *tgi_variant_pick(const tgi_kernel_set *be, const char *op,
                                    const tgi_op_ctx *ctx, const tgi_layout_hint *lay);

/* Apply epilogue steps in place to dst over a box: what follows a reference kernel, and the
 * definition that fused epilogues must match bit for bit on the same backend. Zeroes the unused
 * lanes. Vectorised with the backend's own functions. */
void tgi_epilogue_apply(const tgi_kernel_set *be, const tgi_call *call);

#endif
