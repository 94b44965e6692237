/* op_shared.h - what many operator files need: constants of any type, broadcasting, the loops
 * of reference kernels and of constant folding.
 *
 * A reference kernel is, wherever speed allows, one function "the value at this pixel", driven
 * by tgi_ref_each: the result cannot depend on the box because the function does not see it. */
#ifndef TGI_OP_SHARED_H
#define TGI_OP_SHARED_H

#include "engine/base/arith.h"
#include "kernels/op.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"

#include <inttypes.h>
#include <string.h>

/* ---- Inputs ------------------------------------------------------------------------------ */

/* Is input i present? Optional inputs may be missing at the end or empty in the middle. */
static inline int tgi_given(const tgi_op_ctx *ctx, int i)
{
    return i < ctx->n_src && (ctx->src[i].rank > 0 || ctx->src[i].dtype != TG_DTYPE_NONE);
}
/* The constant behind input i, or NULL. */
static inline const tgi_constant *tgi_const(const tgi_op_ctx *ctx, int i)
{
    return tgi_given(ctx, i) && ctx->const_src ? ctx->const_src[i] : NULL;
}
/* Constants may be views of a file at any byte offset: never dereferenced in place. */
static inline float tgi_f32_at(const void *data, int64_t i)
{
    float v;
    memcpy(&v, (const char *)data + (size_t)i * sizeof v, sizeof v);
    return v;
}
/* Element i of a constant as an integer. */
int64_t tgi_int_at(const tgi_constant *c, int64_t i); /* floats are truncated */
/* Store it as the element type `t`; it wraps as in C. */
void tgi_int_put(tg_dtype t, void *data, int64_t i, int64_t v);
int64_t tgi_const_count(const tgi_constant *c); /* elements; 1 for a scalar */
static inline int tgi_dtype_is_unsigned(tg_dtype t)
{
    return t == TG_DTYPE_BOOL || t == TG_DTYPE_U8 || t == TG_DTYPE_U16 || t == TG_DTYPE_U32 ||
           t == TG_DTYPE_U64;
}

/* Element type by its number in TensorProto.DataType; TG_DTYPE_NONE: not one of ours. */
tg_dtype tgi_onnx_type(int64_t number); /* op_cast.c */

/* The float32 constant (or one of input 0's float type, for eval) of input i with exactly
 * `count` elements (-1: any); else a failure that calls it `what`: TG_E_UNSUPPORTED when it is
 * not constant or not float32. */
tg_status tgi_const_f32(const tgi_op_ctx *ctx, int i, const char *what, int64_t count,
                        const void **data, tgi_err *err);
/* A short list of integers from a constant input (scalar: one entry). */
tg_status tgi_const_ints(const tgi_op_ctx *ctx, int i, const char *what, tgi_ints *out,
                         tgi_err *err);
/* All given inputs are constant: the node can be folded. */
int tgi_all_const(const tgi_op_ctx *ctx);

/* ---- Shapes ------------------------------------------------------------------------------ */

/* dst[0] = src[0]: pointwise operators. */
tg_status tgi_infer_same(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err);
/* Negative axes count from the end; TG_E_FORMAT outside [-rank, rank). */
tg_status tgi_axis(int64_t axis, int rank, int *out, tgi_err *err);
/* Fails unless input i is [N,C,W], [N,C,H,W] or [N,C,D,H,W], of any type. */
tg_status tgi_want_image(const tgi_op_ctx *ctx, int i, tgi_err *err);
/* Fails unless input i is [1,C,H,W]. */
tg_status tgi_want_frame(const tgi_op_ctx *ctx, int i, tgi_err *err);
/* Fails unless input i, which is called `what`, has the shape of `want`. */
tg_status tgi_want_shape(const tgi_op_ctx *ctx, int i, const char *what, const tgi_desc *want,
                         tgi_err *err);

/* `slide` of operators that read the whole spatial extent. */
int tgi_slide_whole(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);
/* A rule: all of the axis, whatever is asked for. */
void tgi_rule_all(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *rule);
/* A rule by a function of what is `given`. */
#define TGI_RULE(rule, fn, what)                                                               \
    do {                                                                                       \
        _Static_assert(sizeof(what) <= TGI_RULE_BYTES, "a rule is given less");                \
        *(rule) = (tgi_rule){.need = (fn)};                                                    \
        memcpy((rule)->u.given, &(what), sizeof(what));                                        \
    } while (0)
/* Intersect with [0, n), but never empty: a box wholly in a border reads its nearest pixel, so
 * that the need stays monotone. */
tgi_range tgi_clip_nonempty(tgi_range r, int64_t n);
/* Set spatial axis i (TGI_Z..TGI_X) of a box; no effect for z of rank 4. */
static inline void tgi_box_set(tgi_box *b, int i, tgi_range r)
{
    const int at = b->rank - 3 + i;
    if (at >= 2)
        b->ax[at] = r;
}

/* ---- Broadcasting ------------------------------------------------------------------------ */

/* numpy's rule over all given inputs. `lead` (opset < 7, attribute `axis`): position of input
 * 1's first axis in input 0; -1: aligned at the end. @source ONNX Broadcasting.md */
tg_status tgi_infer_broadcast(const tgi_op_ctx *ctx, int lead, tgi_desc *dst, tgi_err *err);
/* `slide` of a broadcasting operator: an axis of extent 1 is read as a whole. */
int tgi_slide_broadcast(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);
/* What input i is to a running value of shape dst, when it is constant. */
typedef enum tgi_const_form {
    TGI_NOT_CONST,
    TGI_CONST_SCALAR,  /* one element */
    TGI_CONST_CHANNEL, /* one per channel of dst, all other extents 1 */
    TGI_CONST_OTHER
} tgi_const_form;
tgi_const_form tgi_const_form_of(const tgi_op_ctx *ctx, int i, int lead);

/* ---- Reference loops --------------------------------------------------------------------- */

typedef struct tgi_px {
    int64_t c, z, y, x;
} tgi_px;

typedef float (*tgi_px_fn)(const tgi_call *call, const void *arg, const tgi_px *p);
/* dst[dst_i] = fn over the box, for all its channels; unused lanes become zero. */
void tgi_ref_each(const tgi_call *call, int dst_i, tgi_px_fn fn, const void *arg);
/* dst[0] row by row, in parallel: `row` fills all channels of columns `x` of row (z,y); unused
 * lanes become zero. */
typedef void tgi_ref_row(const tgi_call *call, int64_t z, int64_t y, tgi_range x);
void tgi_ref_rows(const tgi_call *call, tgi_ref_row *row);
/* Zero the lanes behind the last channel over the box. */
void tgi_zero_lanes(const tgi_view *v, const tgi_box *box);

/* The view and the channel inside it that hold channel *c of an operand. */
static inline const tgi_view *tgi_operand_view(const tgi_operand *o, int64_t *c)
{
    const tgi_view *v = o->seg;
    while (*c >= v->c)
        *c -= (v++)->c;
    return v;
}
static inline float tgi_src_at(const tgi_call *call, int i, const tgi_px *p)
{
    return tgi_operand_get(&call->src[i], p->c, p->z, p->y, p->x);
}
/* Input i at dst's pixel p under broadcasting, constant or activation. */
float tgi_src_broadcast(const tgi_call *call, int i, int lead, const tgi_px *p);

/* Unary operators: y = (float)fn((double)x). */
typedef double (*tgi_unary_fn)(double x, const void *attrs);
tg_status tgi_ref_unary(const tgi_call *call, tgi_unary_fn fn, tgi_err *err);
tg_status tgi_eval_unary(const tgi_op_ctx *ctx, void *const *dst_data, tgi_unary_fn fn,
                         tgi_err *err);

/* Binary operators: sums, products and quotients of two floats, computed in double and rounded,
 * are the correctly rounded float results. */
typedef struct tgi_arith {
    double (*f)(double a, double b); /* NULL: not defined for floats */
    /* 0: not defined for these values. NULL: not defined for integers. */
    int (*i)(int64_t a, int64_t b, int is_unsigned, int64_t *out);
} tgi_arith;
/* Fails when an activation has another rank than the result: those are not views of it. */
tg_status tgi_check_ranks(const tgi_call *call, tgi_err *err);
/* Left fold over all inputs (two, or more for Min, Max, Sum). */
tg_status tgi_ref_arith(const tgi_call *call, const tgi_arith *op, int lead, tgi_err *err);
tg_status tgi_eval_arith(const tgi_op_ctx *ctx, void *const *dst_data, const tgi_arith *op,
                         int lead, tgi_err *err);
/* Epilogue step of a binary operator: `fwd` when the running value is input 0, else `rev`. A
 * constant of several elements is per channel (the caller makes `vec`); one element goes to a.
 * The other activation must have the full shape. */
int tgi_step_arith(const tgi_op_ctx *ctx, int chain, int lead, tgi_epi_kind fwd,
                   tgi_epi_kind rev, tgi_epi_step *step);

/* Add, Sub, Mul, Div, Pow: opset < 7 has `broadcast` and `axis`. */
typedef struct tgi_binary_attrs {
    int64_t axis, broadcast;
} tgi_binary_attrs;
extern const tgi_attr tgi_binary_rows[];
int tgi_binary_lead(const tgi_op_ctx *ctx); /* for the functions above */

/* ---- Windows ----------------------------------------------------------------------------- */

extern const char *const tgi_auto_pad_names[]; /* in the order of tgi_auto_pad */

/* Conv and ConvTranspose, whose geometry it is: constant weights and bias. */
typedef tg_status (*tgi_geometry_fn)(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err);
tg_status tgi_infer_conv(const tgi_op_ctx *ctx, tgi_geometry_fn geometry, tgi_desc *dst,
                         tgi_err *err);
/* MaxPool and AveragePool. */
tg_status tgi_infer_pool(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err);
int tgi_slide_pool(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);
double tgi_flops_pool(const tgi_op_ctx *ctx);
/* GlobalAveragePool and GlobalMaxPool: spatial extents become 1. */
tg_status tgi_infer_global(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err);
/* Image coordinates of the taps of pixel p's window, per axis: from lo, in steps of the
 * dilation, below hi. */
void tgi_pool_taps(const tgi_geom *g, const tgi_px *p, tgi_range *k);

/* ---- Folding data movement --------------------------------------------------------------- */

/* dst[i0,i1,...] = src[base + sum i_k * stride_k], elements of `size` bytes, dst dense. */
void tgi_gather_dense(const tgi_desc *dst, void *dst_data, const void *src_data, int64_t base,
                      const int64_t *stride, size_t size);
/* Elements of a tensor; 0 when they overflow. */
int64_t tgi_dense_count(const tgi_desc *d);
/* Step a dense index vector; 0 after the last element. */
int tgi_next_index(const tgi_desc *d, int64_t *at);
/* Offset of the element of input i that broadcasts to index `at` of dst (`lead` as above). */
int64_t tgi_dense_offset(const tgi_op_ctx *ctx, int i, int lead, const int64_t *at);
/* Strides in elements of a dense tensor. */
void tgi_dense_strides(const tgi_desc *d, int64_t *stride);

typedef tg_status (*tgi_ref_fn)(const tgi_call *call, tgi_err *err);
/* eval of operators on images by their reference kernel: input 0 of rank 3 to 5, any samples,
 * any element type (through float32); all other inputs are constants to the kernel. Allocates
 * where a type has to be converted. */
tg_status tgi_eval_by_ref(const tgi_op_ctx *ctx, void *const *dst_data, tgi_ref_fn ref,
                          tgi_err *err);
/* Its boilerplate: a function `eval` by a function `ref`. */
#define TGI_EVAL_BY_REF                                                                        \
    static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)          \
    {                                                                                          \
        return tgi_eval_by_ref(ctx, dst_data, ref, err);                                       \
    }
/* eval of operators that only relabel (Reshape, Squeeze, Unsqueeze, Identity, ...). */
tg_status tgi_eval_copy(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err);
/* ref of operators that pass input 0 through. */
tg_status tgi_ref_copy(const tgi_call *call, tgi_err *err);

/* An operator of a family whose functions ref_kind and eval_kind are told which (`what`); then what
 * else it has. */
#define TGI_OP_OF_KIND(symbol, onnx, what, ...)                                                \
    static tg_status ref_##symbol(const tgi_call *call, tgi_err *err)                          \
    {                                                                                          \
        return ref_kind(call, what, err);                                                      \
    }                                                                                          \
    static tg_status eval_##symbol(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err) \
    {                                                                                          \
        return eval_kind(ctx, dst_data, what, err);                                            \
    }                                                                                          \
    const tgi_op tgi_op_##symbol = {                                                           \
        .name = onnx, .ref = ref_##symbol, .eval = eval_##symbol, __VA_ARGS__};

#endif
