/* cu_window.cuh - where a block of WindowAttention works, and which keys its queries look at: found by
 * index, from a table of steps from the window's corner, on a grid whose borders meet. */
#ifndef TGI_CU_WINDOW_CUH
#define TGI_CU_WINDOW_CUH

#include "kernels/cuda/cu_map.cuh"

struct cu_see_args {
    int32_t lo[2], hi[2];       /* the box: y, x */
    int32_t window[2], full[2]; /* rows and columns: of a window, of whole windows */
    int32_t size[2];            /* of the tokens */
    int32_t down, across;       /* windows of the largest box */
    int32_t queries;            /* of a block */
    int32_t batches, heads;     /* blocks for a window's queries */
    int32_t asked, frames, first;
    int32_t channels, inner, row;  /* of a frame, of a head; floats of a row */
    int32_t own, around;           /* tokens in the table: of the window, all */
    int32_t pooled, pooled_across; /* of a frame */
    float scale;
    const float *fill;
    const int2 *table;
    cu_operand query, token[2], pool_of[2], masked; /* [0]: keys, [1]: values */
    cu_view dst;
    cu_pool pool;
};

/* Where a block works. */
struct cu_see_block {
    int32_t y0, x0;            /* of the window's first token */
    int32_t frame, channel;    /* of queries; a head's first channel in a frame */
    int32_t query0;            /* in the window */
    int32_t masked, keys, per; /* all of them, and of a frame */
};

enum cu_see_kind { CU_SEE_NONE, CU_SEE_TOKEN, CU_SEE_POOLED, CU_SEE_FILL };

template <class T>
__device__ __forceinline__ bool cu_see_block_of(const cu_see_args *a, cu_see_block *b)
{
    uint32_t i = blockIdx.x;
    b->query0 = (int32_t)(i % (uint32_t)a->batches) * a->queries;
    i /= (uint32_t)a->batches;
    b->channel = (int32_t)(i % (uint32_t)a->heads) * a->inner;
    i /= (uint32_t)a->heads;
    b->frame = (int32_t)(i % (uint32_t)a->asked);
    i /= (uint32_t)a->asked;
    const int32_t wx = a->lo[1] / a->window[1] + (int32_t)(i % (uint32_t)a->across);
    const int32_t wy = a->lo[0] / a->window[0] + (int32_t)(i / (uint32_t)a->across);
    b->y0 = wy * a->window[0];
    b->x0 = wx * a->window[1];
    if (b->y0 >= a->hi[0] || b->x0 >= a->hi[1])
        return false;
    b->masked = cu_read_one<T>(a->pool, a->masked, 0, wy, wx, 0) != 0.0f;
    b->per = b->masked ? a->around + a->pooled : a->own;
    b->keys = b->masked ? (a->frames - a->first + 1) / 2 * b->per : a->own;
    return true;
}

/* Query q's token; false: it is not in the box. */
__device__ __forceinline__ bool cu_see_query(const cu_see_args *a, const cu_see_block &b,
                                             int32_t q, int32_t *y, int32_t *x)
{
    *y = b.y0 + q / a->window[1];
    *x = b.x0 + q % a->window[1];
    return q < a->own && *y >= a->lo[0] && *y < a->hi[0] && *x >= a->lo[1] && *x < a->hi[1];
}

/* A step from a window's corner, on a grid of n whose ends meet. */
__device__ __forceinline__ int32_t cu_see_wrapped(int32_t at, int32_t n)
{
    return at < 0 ? at + n : at >= n ? at - n : at;
}

__device__ __forceinline__ int4 cu_see_key(const cu_see_args *a, const cu_see_block &b,
                                           int32_t key)
{
    if (key >= b.keys)
        return make_int4(CU_SEE_NONE, 0, 0, 0);
    const int32_t i = key % b.per, frame = b.masked ? a->first + 2 * (key / b.per) : b.frame;
    if (i >= a->around)
        return make_int4(CU_SEE_POOLED, (i - a->around) / a->pooled_across,
                         (i - a->around) % a->pooled_across, frame);
    const int2 step = __ldg(a->table + i);
    const int32_t y = cu_see_wrapped(b.y0 + step.x, a->full[0]),
                  x = cu_see_wrapped(b.x0 + step.y, a->full[1]);
    return make_int4(y < a->size[0] && x < a->size[1] ? CU_SEE_TOKEN : CU_SEE_FILL, y, x,
                     frame);
}

/* Does any query of the block lie in the box? A window may reach beyond it, or beyond the last token. */
__device__ __forceinline__ bool cu_see_any(const cu_see_args *a, const cu_see_block &b)
{
    int32_t y, x;
    return __syncthreads_or((int32_t)threadIdx.x < a->queries &&
                            cu_see_query(a, b, b.query0 + (int32_t)threadIdx.x, &y, &x)) != 0;
}

#endif
