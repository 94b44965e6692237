/* cu_flat_image.cu - operators on images whose data is an array: several samples, or one
 * spatial axis where the network's images have two. Sample by sample the array is laid out as
 * an image in scratch, computed by the operator's kernel for images, and taken back; an image
 * of rank 3 has one row.
 *
 * Samples follow each other, so all take the same scratch. Of many that is many launches:
 * accepted up to CU_FLAT_SAMPLES. */
#include "kernels/cuda/cu_flat.cuh"
#include "kernels/cuda/cu_ops.cuh"

#define CU_FLAT_SAMPLES 64

const tgi_kernel_set *cu_backend_of(tg_dtype element);

/* ---- One sample -------------------------------------------------------------------------- */

/* The node as it is for a sample. Points into itself: not to be copied. */
struct cu_sample {
    tgi_op_ctx ctx;
    tgi_desc src[TGI_OP_MAX_SRC], dst[1];
    tgi_layout_hint lay;
};

static void sample_of(const tgi_op_ctx *ctx, cu_sample *s)
{
    memset(s, 0, sizeof *s);
    for (int j = 0; j < ctx->n_src; j++)
        s->src[j] = ctx->src[j];
    s->dst[0] = ctx->dst[0];
    s->src[0].dim[0] = s->dst[0].dim[0] = 1;
    s->ctx = *ctx;
    s->ctx.src = s->src;
    s->ctx.dst = s->dst;
    s->ctx.flat_src = s->ctx.flat_dst = 0;
    s->lay.lanes = 8;
    s->lay.n_src = ctx->n_src;
    s->lay.src_segs[0] = 1;
    s->lay.seg_c[0][0] = s->src[0].dim[1];
    s->lay.src_cb[0] = (int)tgi_whole_pixel(s->src[0].dim[1]);
    s->lay.dst_cb = (int)tgi_whole_pixel(s->dst[0].dim[1]);
}

/* The variant for images that costs least, as tgi_variant_pick finds it. */
static const tgi_variant *inner_of(const tgi_kernel_set *be, const char *op, const cu_sample *s)
{
    const tgi_variant *best = NULL;
    double least = 0;
    for (const tgi_variant *const *v = be->variants; *v; v++) {
        if ((*v)->flat || (*v)->kinds || (*v)->rearranges || strcmp((*v)->op, op) != 0 ||
            !(*v)->accepts(&s->ctx, &s->lay))
            continue;
        const double cost = (*v)->cost ? (*v)->cost(&s->ctx, &s->lay) : 1;
        if (!best || cost < least) {
            best = *v;
            least = cost;
        }
    }
    return best;
}

static tgi_view view_of(const tgi_desc *d, char *base)
{
    tgi_view v;
    memset(&v, 0, sizeof v);
    v.base = (float *)(void *)base;
    v.c = d->dim[1];
    v.cb = (int)tgi_whole_pixel(v.c);
    v.width = tgi_desc_axis(d, 2);
    v.y_pitch = (size_t)tgi_align_up(v.width * v.cb, 16);
    v.y_ring = tgi_desc_axis(d, 1);
    v.z_pitch = v.y_pitch * (size_t)v.y_ring;
    v.z_ring = tgi_desc_axis(d, 0);
    v.block_pitch = v.z_pitch * (size_t)v.z_ring;
    return v;
}

static size_t image_bytes(const tgi_desc *d, size_t element)
{
    return cu_flat_align(view_of(d, NULL).block_pitch * element);
}

/* ---- The variant ------------------------------------------------------------------------- */

template <class T> static const tgi_kernel_set *backend_of(void)
{
    return cu_backend_of(cu_dtype<T>());
}

template <class T>
static int accepts_samples(const char *op, const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    cu_sample s;
    if (!cu_flat_accepts(ctx, lay) || ctx->const_src[0] || ctx->n_dst != 1 ||
        ctx->src[0].rank < 3 || ctx->src[0].dim[0] < 1 ||
        ctx->src[0].dim[0] > CU_FLAT_SAMPLES || ctx->dst[0].rank != ctx->src[0].rank ||
        ctx->dst[0].dim[0] != ctx->src[0].dim[0])
        return 0;
    for (int j = 1; j < ctx->n_src; j++)
        if (!ctx->const_src[j] && tgi_given(ctx, j))
            return 0;
    sample_of(ctx, &s);
    return inner_of(backend_of<T>(), op, &s) != NULL;
}

template <class T> static size_t bytes_samples(const char *op, const tgi_op_ctx *ctx)
{
    cu_sample s;
    sample_of(ctx, &s);
    const tgi_variant *v = inner_of(backend_of<T>(), op, &s);
    return v && v->packed_bytes ? v->packed_bytes(&s.ctx, &s.lay) : 0;
}

template <class T> static void pack_samples(const char *op, const tgi_op_ctx *ctx, void *dst)
{
    cu_sample s;
    sample_of(ctx, &s);
    const tgi_variant *v = inner_of(backend_of<T>(), op, &s);
    if (v && v->pack)
        v->pack(&s.ctx, &s.lay, dst);
}

template <class T> static size_t scratch_samples(const char *op, const tgi_op_ctx *ctx)
{
    cu_sample s;
    sample_of(ctx, &s);
    const tgi_variant *v = inner_of(backend_of<T>(), op, &s);
    const size_t own = v && v->scratch_bytes
                           ? v->scratch_bytes(&s.ctx, &s.lay, tgi_desc_axis(&s.dst[0], 2), 1)
                           : 0;
    return image_bytes(&s.src[0], sizeof(T)) + image_bytes(&s.dst[0], sizeof(T)) + own;
}

template <class T> static void run_samples(const char *op, const tgi_call *call)
{
    cu_sample s;
    cu_flat f;
    tgi_call one;
    sample_of(call->ctx, &s);
    const tgi_variant *v = inner_of(backend_of<T>(), op, &s);
    if (!v)
        return; /* `accepts` said no */
    cu_flat_begin<T, T>(&f, call, 0);
    const tgi_view in = view_of(&s.src[0], f.scratch);
    const tgi_view out = view_of(&s.dst[0], f.scratch + image_bytes(&s.src[0], sizeof(T)));
    const tgi_box all_in = tgi_box_full(&s.src[0]);
    tgi_operand src[TGI_OP_MAX_SRC];
    memset(src, 0, sizeof src);
    src[0] = {1, &in};
    memset(&one, 0, sizeof one);
    one.ctx = &s.ctx;
    one.src = src;
    one.dst = &out;
    one.packed = call->packed;
    one.scratch = (char *)(void *)out.base + image_bytes(&s.dst[0], sizeof(T));
    one.recorder = call->recorder;
    one.box = tgi_box_full(&s.dst[0]);
    for (int k = 0; k < one.box.rank; k++) {
        one.most[k] = tgi_range_len(one.box.ax[k]);
        one.box.ax[k].hi = f.count(one.box.ax[k].hi);
    }
    for (int64_t i = 0; i < call->ctx->src[0].dim[0]; i++) {
        cu_flat_give<T>(call, f.src[0] + i * cu_count(&s.src[0]) * (int64_t)sizeof(T),
                        &s.src[0], &all_in, &in);
        v->run(&one);
        cu_flat_take<T>(call, &out, &s.dst[0],
                        f.dst[0] + i * cu_count(&s.dst[0]) * (int64_t)sizeof(T));
    }
    cu_flat_end<T>(&f);
}

#define CU_SAMPLES_OF(symbol, op, T, suffix)                                                   \
    static int accepts_##symbol##_##suffix(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)  \
    {                                                                                          \
        return accepts_samples<T>(op, ctx, lay);                                               \
    }                                                                                          \
    static size_t bytes_##symbol##_##suffix(const tgi_op_ctx *ctx, const tgi_layout_hint *)    \
    {                                                                                          \
        return bytes_samples<T>(op, ctx);                                                      \
    }                                                                                          \
    static void pack_##symbol##_##suffix(const tgi_op_ctx *ctx, const tgi_layout_hint *,       \
                                         void *dst)                                            \
    {                                                                                          \
        pack_samples<T>(op, ctx, dst);                                                         \
    }                                                                                          \
    static size_t scratch_##symbol##_##suffix(const tgi_op_ctx *ctx, const tgi_layout_hint *,  \
                                              int64_t, int)                                    \
    {                                                                                          \
        return scratch_samples<T>(op, ctx);                                                    \
    }                                                                                          \
    static void run_##symbol##_##suffix(const tgi_call *call)                                  \
    {                                                                                          \
        run_samples<T>(op, call);                                                              \
    }                                                                                          \
    constexpr tgi_variant cu_##symbol##_##suffix = samples_variant(                            \
        op, accepts_##symbol##_##suffix, bytes_##symbol##_##suffix, pack_##symbol##_##suffix,  \
        scratch_##symbol##_##suffix, run_##symbol##_##suffix);

typedef size_t (*cu_scratch_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay,
                                int64_t width, int threads);

constexpr tgi_variant samples_variant(const char *op, cu_accepts_fn accepts, cu_bytes_fn bytes,
                                      cu_pack_fn pack, cu_scratch_fn scratch, cu_run_fn run)
{
    tgi_variant v = cu_flat_variant("cu_flat_image", op, accepts, bytes, pack, run);
    v.scratch_bytes = scratch;
    return v;
}

#define CU_SAMPLES(symbol, op)                                                                 \
    CU_SAMPLES_OF(symbol, op, float, f32)                                                      \
    CU_SAMPLES_OF(symbol, op, __half, f16)                                                     \
    CU_SAMPLES_OF(symbol, op, __nv_bfloat16, bf16)

CU_SAMPLES(flat_average_pool, "AveragePool")
CU_SAMPLES(flat_batch_norm, "BatchNormalization")
CU_SAMPLES(flat_conv, "Conv")
CU_SAMPLES(flat_conv_transpose, "ConvTranspose")
CU_SAMPLES(flat_global_average, "GlobalAveragePool")
CU_SAMPLES(flat_global_max, "GlobalMaxPool")
CU_SAMPLES(flat_group_norm, "GroupNormalization")
CU_SAMPLES(flat_lp_pool, "LpPool")
CU_SAMPLES(flat_lrn, "LRN")
CU_SAMPLES(flat_max_pool, "MaxPool")
CU_SAMPLES(flat_resize, "Resize")
