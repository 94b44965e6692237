#include "engine/device/half_gain.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/ops/op_attrs.h"

#include <string.h>

#define CHANNELS 64
#define COLUMNS 64
#define ROUNDS 3
#define RUNS 4                          /* of a round */
#define LONG_RUN 0.02                   /* seconds: one of these says enough */
#define OTHER_BYTES ((uint64_t)8 << 20) /* weights and programs, at most */
#define ROWS_OF_EACH 16 /* for each multiprocessor: eight blocks of 128 pixels */

/* One convolution in one type of activations, ready to run. */
typedef struct subject {
    const tg_device_ops *ops;
    tg_device *d;
    const tg_backend *be;
    conv_attrs attrs;
    tg_desc src[2], dst;
    tg_const weights;
    const tg_const *consts[2];
    tg_op_ctx ctx;
    tg_layout_hint hint;
    tg_view in, out;
    tg_operand operand[2];
    void *at_in, *at_out, *at_packed;
    tg_device_step step;
    tg_device_program *program;
    double least; /* seconds of a run; 0: none yet */
} subject;

static void describe(subject *s, const float *weights, int64_t rows)
{
    s->attrs = (conv_attrs){.kernel_shape = {2, {3, 3}},
                            .strides = {2, {1, 1}},
                            .pads = {4, {1, 1, 1, 1}},
                            .dilations = {2, {1, 1}},
                            .group = 1};
    s->src[0] = s->dst = (tg_desc){TG_DTYPE_F32, 4, {1, CHANNELS, rows, COLUMNS}};
    s->src[1] = (tg_desc){TG_DTYPE_F32, 4, {CHANNELS, CHANNELS, 3, 3}};
    s->weights = (tg_const){s->src[1], weights};
    s->consts[1] = &s->weights;
    s->ctx = (tg_op_ctx){.attrs = &s->attrs,
                         .n_src = 2,
                         .n_dst = 1,
                         .src = s->src,
                         .dst = &s->dst,
                         .const_src = s->consts};
    s->hint = (tg_layout_hint){.lanes = s->be->lanes,
                               .n_src = 2,
                               .src_cb = {(int)tgi_whole_pixel(CHANNELS)},
                               .src_segs = {1},
                               .seg_c = {{CHANNELS}},
                               .dst_cb = (int)tgi_whole_pixel(CHANNELS)};
}

static tg_view view_of(int64_t rows, void *at)
{
    const size_t pitch = (size_t)COLUMNS * (size_t)tgi_whole_pixel(CHANNELS);
    return (tg_view){.base = at,
                     .c = CHANNELS,
                     .cb = (int)tgi_whole_pixel(CHANNELS),
                     .width = COLUMNS,
                     .y_pitch = pitch,
                     .z_pitch = pitch * (size_t)rows,
                     .block_pitch = pitch * (size_t)rows,
                     .z_ring = 1,
                     .y_ring = rows};
}

static tg_status send_weights(subject *s, const tg_variant *v, tgi_err *err)
{
    const size_t bytes = v->packed_bytes ? v->packed_bytes(&s->ctx, &s->hint) : 0;
    if (!bytes)
        return TG_OK;
    void *packed = tgi_malloc(TGI_TAG_PLAN, bytes);
    if (!packed)
        return tgi_fail(err, TG_E_NOMEM, "no memory to measure a device with");
    v->pack(&s->ctx, &s->hint, packed);
    tg_status st = s->ops->alloc(s->d, bytes, &s->at_packed, err);
    if (st == TG_OK)
        st = s->ops->upload(s->d, TG_QUEUE_COMPUTE, s->at_packed, packed, bytes, err);
    if (st == TG_OK)
        st = s->ops->sync(s->d, NULL, err);
    tgi_free(packed);
    return st;
}

/* What the pixels are does not matter: none is looked at. */
static tg_status subject_open(subject *s, const float *weights, int64_t rows, tgi_err *err)
{
    size_t program_bytes;
    describe(s, weights, rows);
    const tg_variant *v = tgi_variant_pick(s->be, "Conv", &s->ctx, &s->hint);
    if (!v || v->scratch_bytes)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the device has no convolution to measure");
    const size_t bytes =
        (size_t)(rows * COLUMNS * tgi_whole_pixel(CHANNELS)) * tgi_element_bytes(s->be);
    TGI_TRY(send_weights(s, v, err));
    TGI_TRY(s->ops->alloc(s->d, bytes, &s->at_in, err));
    TGI_TRY(s->ops->alloc(s->d, bytes, &s->at_out, err));
    s->in = view_of(rows, s->at_in);
    s->out = view_of(rows, s->at_out);
    s->operand[0] = (tg_operand){1, &s->in};
    s->step = (tg_device_step){.kind = TG_STEP_NODE,
                               .variant = v,
                               .call = {.ctx = &s->ctx,
                                        .src = s->operand,
                                        .dst = &s->out,
                                        .box = tgi_box_full(&s->dst),
                                        .packed = s->at_packed,
                                        .most = {1, CHANNELS, rows, COLUMNS}}};
    return s->ops->program_open(s->d, TG_QUEUE_COMPUTE, &s->step, 1, &s->program,
                                &program_bytes, err);
}

static void subject_close(subject *s)
{
    if (s->program)
        s->ops->program_close(&s->program);
    void *const at[] = {s->at_out, s->at_in, s->at_packed};
    for (int i = 0; i < 3; i++)
        if (at[i])
            s->ops->release(s->d, at[i]);
}

static tg_status time_runs(subject *s, int n, double (*now)(void), double *seconds,
                           tgi_err *err)
{
    const double from = now();
    for (int i = 0; i < n; i++)
        TGI_TRY(s->ops->program_run(s->program, &s->step, err));
    TGI_TRY(s->ops->sync(s->d, NULL, err));
    *seconds = (now() - from) / n;
    return TG_OK;
}

/* By turns, so that a clock that rises or falls does so for both. The first run of each warms
 * up and is not counted. */
static tg_status compare(subject *s, double (*now)(void), tgi_err *err)
{
    double seconds;
    for (int round = -2; round < ROUNDS; round++)
        for (int k = 0; k < 2; k++) {
            if (s[k].least >= LONG_RUN)
                continue;
            TGI_TRY(time_runs(&s[k], round < 0 ? 1 : RUNS, now, &seconds, err));
            if (round > -2 && (s[k].least == 0 || seconds < s[k].least))
                s[k].least = seconds;
        }
    return TG_OK;
}

tg_status tgi_half_gain(const tg_device_ops *ops, tg_device *d, const tg_device_info *info,
                        uint64_t limit, double (*now)(void), double *gain, tgi_err *err)
{
    static const tg_dtype types[2] = {TG_DTYPE_F32, TG_DTYPE_F16};
    const int64_t rows =
        tgi_max(8, tgi_min((int64_t)ROWS_OF_EACH * info->multiprocessors, 8192));
    const size_t n = (size_t)CHANNELS * CHANNELS * 9;
    subject s[2] = {{.ops = ops, .d = d}, {.ops = ops, .d = d}};
    *gain = 0;
    for (int k = 0; k < 2; k++) {
        s[k].be = ops->backend(types[k]);
        if (!s[k].be)
            return tgi_fail(err, TG_E_UNSUPPORTED, "the device does not offer %s",
                            tgi_dtype_name(types[k]));
    }
    if (limit < OTHER_BYTES + (uint64_t)rows * COLUMNS * CHANNELS * 2 * (4 + 2))
        return tgi_fail(err, TG_E_BUDGET, "there is no room on the device to measure it");
    float *weights = tgi_malloc(TGI_TAG_PLAN, n * sizeof *weights);
    if (!weights)
        return tgi_fail(err, TG_E_NOMEM, "no memory to measure a device with");
    for (size_t i = 0; i < n; i++)
        weights[i] = (float)(i % 17) / 160.0f - 0.05f;
    tg_status st = TG_OK;
    for (int k = 0; k < 2 && st == TG_OK; k++)
        st = subject_open(&s[k], weights, rows, err);
    if (st == TG_OK)
        st = compare(s, now, err);
    if (st == TG_OK && s[1].least > 0)
        *gain = s[0].least / s[1].least;
    for (int k = 0; k < 2; k++)
        subject_close(&s[k]);
    tgi_free(weights);
    return st;
}
