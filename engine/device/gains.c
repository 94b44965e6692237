/* gains.c - computes a layer both ways on a device, compares the bits and times both. */
#include "engine/device/gains.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/pixels.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 64
#define ROUNDS 3
#define MEASURED 0.005 /* seconds of a round, at least: launches do not count */
#define MOST_STEPS 512 /* the layer over and over, in one program */
#define LONG_RUN 0.02  /* seconds: one of these says enough */
#define OTHER_BYTES ((uint64_t)8 << 20) /* weights and programs, at most */
#define PIXEL_CHANNELS 65536            /* of a layer, for each multiprocessor: 16 rows of 64 */
#define CHUNK_ROWS 16                   /* sent and compared at once */

/* A convolution of as many channels as it has results, and what it is computed with. */
typedef struct layer {
    tg_dtype element;
    unsigned kinds;
    int64_t channels, kernel;
} layer;

/* Two ways to compute the same: `plain` and what may be better. */
typedef struct trial {
    layer plain, other;
} trial;

#define MOST_TRIALS 3
#define KIND(element, kind, channels, kernel)                                                  \
    {                                                                                          \
        {element, 0, channels, kernel},                                                        \
        {                                                                                      \
            element, kind, channels, kernel                                                    \
        }                                                                                      \
    }
static const struct {
    const char *name, *what, *than;
    double worth;
    int compared;
    trial trial[MOST_TRIALS];
} measured[TGI_GAIN_COUNT] = {
    [TGI_GAIN_HALF] = {"half_gain",
                       "fp16 is",
                       "fp32",
                       1.15,
                       0,
                       {{{TG_DTYPE_F32, 0, 64, 3}, {TG_DTYPE_F16, 0, 64, 3}}}},
    [TGI_GAIN_WGMMA] = {"wgmma_gain",
                        "convolutions by warp groups are",
                        "the others",
                        1.05,
                        1,
                        {KIND(TG_DTYPE_F16, TGI_KIND_WGMMA, 128, 3),
                         KIND(TG_DTYPE_F16, TGI_KIND_WGMMA, 64, 3),
                         KIND(TGI_DTYPE_BF16, TGI_KIND_WGMMA, 128, 3)}},
    [TGI_GAIN_LIBRARY] = {"library_gain",
                          "products by its library are",
                          "our own",
                          1.1,
                          1,
                          {KIND(TG_DTYPE_F16, TGI_KIND_LIBRARY, 256, 1),
                           KIND(TGI_DTYPE_BF16, TGI_KIND_LIBRARY, 256, 1),
                           KIND(TG_DTYPE_F32, TGI_KIND_LIBRARY, 256, 1)}},
};

const char *tgi_gain_name(tgi_gain which)
{
    return measured[which].name;
}

const char *tgi_gain_text(tgi_gain which, double gain, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s %.2f times as fast as %s", measured[which].what, gain,
             measured[which].than);
    return buf;
}

double tgi_gain_worth(tgi_gain which)
{
    return measured[which].worth;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

/* Number i of a series, -1 to 1 in steps of 2^-bits. */
static float number(uint32_t i, int bits)
{
    const uint32_t mixed = (i * 2654435761u) >> 8;
    const int64_t steps = (int64_t)1 << bits;
    return (float)((int64_t)(mixed % (uint32_t)(2 * steps + 1)) - steps) / (float)steps;
}

/* Pixels of few bits, so that every sum of products is exact; of float32 of more than TF32
 * holds, so that a product that rounds to it shows. */
static int pixel_bits(tg_dtype element)
{
    return element == TG_DTYPE_F32 ? 12 : 4;
}

static float weight(uint32_t i)
{
    return number(i, 1) / 8;
}

/* n exact numbers as elements of an activation. */
static void to_elements(tg_dtype element, const float *from, int64_t n, void *to)
{
    uint32_t bits;
    if (element != TGI_DTYPE_BF16) {
        tgi_pixels_store(element, from, 1, n, 1, 0, to, 1);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(&bits, &from[i], sizeof bits);
        ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
    }
}

/* ---- A layer, ready to run --------------------------------------------------------------- */

typedef struct subject {
    const tgi_device_ops *ops;
    tgi_device *d;
    layer what;
    const tgi_kernel_set *be;
    int64_t rows;
    conv_attrs attrs;
    tgi_desc src[2], dst;
    tgi_constant weights;
    const tgi_constant *consts[2];
    tgi_op_ctx ctx;
    tgi_layout_hint hint;
    tgi_view in, out;
    tgi_operand operand[2];
    void *at_in, *at_out, *at_packed;
    tgi_device_step *steps; /* of the program: `times` of the same */
    int times;
    tgi_device_program *program;
    double least; /* seconds of one; 0: none yet */
} subject;

static void describe(subject *s, const float *weights)
{
    const int64_t c = s->what.channels, k = s->what.kernel, pad = k / 2;
    s->attrs = (conv_attrs){.kernel_shape = {2, {k, k}},
                            .strides = {2, {1, 1}},
                            .pads = {4, {pad, pad, pad, pad}},
                            .dilations = {2, {1, 1}},
                            .group = 1};
    s->src[0] = s->dst = (tgi_desc){TG_DTYPE_F32, 4, {1, c, s->rows, COLUMNS}};
    s->src[1] = (tgi_desc){TG_DTYPE_F32, 4, {c, c, k, k}};
    s->weights = (tgi_constant){s->src[1], weights};
    s->consts[1] = &s->weights;
    s->ctx = (tgi_op_ctx){.attrs = &s->attrs,
                          .n_src = 2,
                          .n_dst = 1,
                          .src = s->src,
                          .dst = &s->dst,
                          .const_src = s->consts};
    s->hint = (tgi_layout_hint){.lanes = s->be->lanes,
                                .kinds = s->what.kinds,
                                .n_src = 2,
                                .src_cb = {(int)tgi_whole_pixel(c)},
                                .src_segs = {1},
                                .seg_c = {{c}},
                                .dst_cb = (int)tgi_whole_pixel(c)};
}

static size_t row_bytes(const subject *s)
{
    return (size_t)(COLUMNS * tgi_whole_pixel(s->what.channels)) * tgi_element_bytes(s->be);
}

static tgi_view view_of(const subject *s, void *at)
{
    const size_t pitch = row_bytes(s) / tgi_element_bytes(s->be);
    return (tgi_view){.base = at,
                      .c = s->what.channels,
                      .cb = (int)tgi_whole_pixel(s->what.channels),
                      .width = COLUMNS,
                      .y_pitch = pitch,
                      .z_pitch = pitch * (size_t)s->rows,
                      .block_pitch = pitch * (size_t)s->rows,
                      .z_ring = 1,
                      .y_ring = s->rows};
}

static tg_status no_memory(tgi_err *err)
{
    return tgi_fail(err, TG_E_NOMEM, "no memory to measure a device with");
}

static tg_status send_weights(subject *s, const tgi_variant *v, tgi_err *err)
{
    const size_t bytes = v->packed_bytes ? v->packed_bytes(&s->ctx, &s->hint) : 0;
    if (!bytes)
        return TG_OK;
    void *packed = tgi_malloc(TGI_TAG_PLAN, bytes);
    if (!packed)
        return no_memory(err);
    v->pack(&s->ctx, &s->hint, packed);
    tg_status st = s->ops->alloc(s->d, bytes, &s->at_packed, err);
    if (st == TG_OK)
        st = s->ops->upload(s->d, TGI_QUEUE_COMPUTE, s->at_packed, packed, bytes, err);
    if (st == TG_OK)
        st = s->ops->sync(s->d, NULL, err);
    tgi_free(packed);
    return st;
}

/* The same few rows over and over. */
static tg_status send_pixels(subject *s, tgi_err *err)
{
    const int64_t n = CHUNK_ROWS * COLUMNS * tgi_whole_pixel(s->what.channels);
    const size_t bytes = row_bytes(s);
    float *numbers = tgi_malloc(TGI_TAG_PLAN, (size_t)n * sizeof *numbers);
    void *elements = tgi_malloc(TGI_TAG_PLAN, CHUNK_ROWS * bytes);
    tg_status st = numbers && elements ? TG_OK : no_memory(err);
    for (int64_t i = 0; st == TG_OK && i < n; i++)
        numbers[i] = number((uint32_t)i, pixel_bits(s->what.element));
    if (st == TG_OK)
        to_elements(s->what.element, numbers, n, elements);
    for (int64_t y = 0; st == TG_OK && y < s->rows; y += CHUNK_ROWS)
        st = s->ops->upload(s->d, TGI_QUEUE_COMPUTE, (char *)s->at_in + (size_t)y * bytes,
                            elements, (size_t)tgi_min(CHUNK_ROWS, s->rows - y) * bytes, err);
    if (st == TG_OK)
        st = s->ops->sync(s->d, NULL, err);
    tgi_free(numbers);
    tgi_free(elements);
    return st;
}

/* Results that are not written are none: nothing of an earlier one may lie there. */
static tg_status poison(subject *s, int byte, tgi_err *err)
{
    const size_t bytes = CHUNK_ROWS * row_bytes(s);
    void *chunk = tgi_malloc(TGI_TAG_PLAN, bytes);
    tg_status st = chunk ? TG_OK : no_memory(err);
    if (st == TG_OK)
        memset(chunk, byte, bytes);
    for (int64_t y = 0; st == TG_OK && y < s->rows; y += CHUNK_ROWS)
        st = s->ops->upload(s->d, TGI_QUEUE_COMPUTE,
                            (char *)s->at_out + (size_t)y * row_bytes(s), chunk,
                            (size_t)tgi_min(CHUNK_ROWS, s->rows - y) * row_bytes(s), err);
    if (st == TG_OK)
        st = s->ops->sync(s->d, NULL, err);
    tgi_free(chunk);
    return st;
}

/* The layer `times` over in one program. */
static tg_status repeat(subject *s, const tgi_device_step *step, int times, tgi_err *err)
{
    size_t bytes;
    tgi_device_step *steps = tgi_malloc(TGI_TAG_PLAN, (size_t)times * sizeof *steps);
    if (!steps)
        return no_memory(err);
    for (int i = 0; i < times; i++)
        steps[i] = *step;
    if (s->program)
        s->ops->program_close(&s->program);
    tgi_free(s->steps);
    s->steps = steps;
    s->times = times;
    return s->ops->program_open(s->d, TGI_QUEUE_COMPUTE, steps, times, &s->program, &bytes,
                                err);
}

/* `*there` 0: the device has no variant of that kind for it. */
static tg_status subject_open(subject *s, const float *weights, int *there, tgi_err *err)
{
    describe(s, weights);
    const tgi_variant *v = tgi_variant_pick(s->be, "Conv", &s->ctx, &s->hint);
    *there = v && !v->scratch_bytes && (s->what.kinds & ~v->kinds) == 0;
    if (!*there)
        return TG_OK;
    const size_t bytes = (size_t)s->rows * row_bytes(s);
    TGI_TRY(send_weights(s, v, err));
    TGI_TRY(s->ops->alloc(s->d, bytes, &s->at_in, err));
    TGI_TRY(s->ops->alloc(s->d, bytes, &s->at_out, err));
    TGI_TRY(send_pixels(s, err));
    s->in = view_of(s, s->at_in);
    s->out = view_of(s, s->at_out);
    s->operand[0] = (tgi_operand){1, &s->in};
    const tgi_device_step step = {.kind = TGI_STEP_NODE,
                                  .variant = v,
                                  .call = {.ctx = &s->ctx,
                                           .src = s->operand,
                                           .dst = &s->out,
                                           .box = tgi_box_full(&s->dst),
                                           .packed = s->at_packed,
                                           .most = {1, s->what.channels, s->rows, COLUMNS}}};
    return repeat(s, &step, 1, err);
}

static void subject_close(subject *s)
{
    if (s->program)
        s->ops->program_close(&s->program);
    void *const at[] = {s->at_out, s->at_in, s->at_packed};
    for (int i = 0; i < 3; i++)
        if (at[i])
            s->ops->release(s->d, at[i]);
    tgi_free(s->steps);
}

/* ---- Measuring --------------------------------------------------------------------------- */

static tg_status time_once(subject *s, tgi_err *err)
{
    double seconds;
    TGI_TRY(s->ops->program_time(s->program, s->steps, &seconds, err));
    seconds /= s->times;
    if (s->least == 0 || seconds < s->least)
        s->least = seconds;
    return TG_OK;
}

/* So many that a round takes long enough to be measured. The first run of each program warms up
 * and is not counted. */
static tg_status choose_times(subject *s, tgi_err *err)
{
    double seconds;
    TGI_TRY(s->ops->program_time(s->program, s->steps, &seconds, err));
    TGI_TRY(time_once(s, err));
    if (s->least >= MEASURED)
        return TG_OK;
    const double n = s->least > 0 ? MEASURED / s->least + 1 : MOST_STEPS;
    const tgi_device_step step = s->steps[0];
    TGI_TRY(repeat(s, &step, n < MOST_STEPS ? (int)n : MOST_STEPS, err));
    s->least = 0;
    return s->ops->program_time(s->program, s->steps, &seconds, err);
}

/* By turns, so that a clock that rises or falls does so for both. */
static tg_status time_both(subject s[2], tgi_err *err)
{
    for (int k = 0; k < 2; k++)
        TGI_TRY(choose_times(&s[k], err));
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < 2; k++)
            if (s[k].least < LONG_RUN)
                TGI_TRY(time_once(&s[k], err));
    return TG_OK;
}

static tg_status same_results(const subject s[2], int *same, tgi_err *err)
{
    const size_t bytes = row_bytes(&s[0]);
    char *rows = tgi_malloc(TGI_TAG_PLAN, 2 * CHUNK_ROWS * bytes);
    tg_status st = rows ? TG_OK : no_memory(err);
    *same = 1;
    for (int64_t y = 0; st == TG_OK && *same && y < s[0].rows; y += CHUNK_ROWS) {
        const size_t n = (size_t)tgi_min(CHUNK_ROWS, s[0].rows - y) * bytes;
        for (int k = 0; k < 2 && st == TG_OK; k++)
            st = s[k].ops->download(s[k].d, TGI_QUEUE_COMPUTE, rows + (size_t)k * n,
                                    (char *)s[k].at_out + (size_t)y * bytes, n, err);
        if (st == TG_OK)
            st = s[0].ops->sync(s[0].d, NULL, err);
        *same = st == TG_OK && memcmp(rows, rows + n, n) == 0;
    }
    tgi_free(rows);
    return st;
}

/* Weights of the layer in `weights`. `*gain` < 0: the device does not offer both. */
static tg_status compare(subject s[2], const float *weights, int compared, double *gain,
                         tgi_err *err)
{
    int there[2] = {0, 0}, same = 1;
    tg_status st = TG_OK;
    for (int k = 0; k < 2 && st == TG_OK; k++)
        st = subject_open(&s[k], weights, &there[k], err);
    if (st == TG_OK && there[0] && there[1]) {
        for (int k = 0; k < 2 && st == TG_OK && compared; k++)
            st = poison(&s[k], 0x55 + k, err);
        if (st == TG_OK)
            st = time_both(s, err);
        if (st == TG_OK && compared)
            st = same_results(s, &same, err);
        if (st == TG_OK)
            *gain = same && s[1].least > 0 ? s[0].least / s[1].least : 0;
    }
    for (int k = 0; k < 2; k++)
        subject_close(&s[k]);
    return st;
}

static tg_status measure(const trial *t, int compared, const tgi_device_ops *ops, tgi_device *d,
                         const tgi_device_info *info, uint64_t limit, double *gain,
                         tgi_err *err)
{
    const int64_t c = t->plain.channels, k = t->plain.kernel;
    const int64_t rows = tgi_max(
        8, tgi_min((int64_t)info->multiprocessors * PIXEL_CHANNELS / (COLUMNS * c), 8192));
    const size_t n = (size_t)(c * c * k * k);
    uint64_t bytes = OTHER_BYTES;
    subject s[2] = {{.ops = ops, .d = d, .what = t->plain, .rows = rows},
                    {.ops = ops, .d = d, .what = t->other, .rows = rows}};
    *gain = -1;
    for (int i = 0; i < 2; i++) {
        s[i].be = ops->backend(s[i].what.element);
        if (!s[i].be || (s[i].what.element == TGI_DTYPE_BF16 && !info->bf16))
            return TG_OK;
        bytes += 2 * (uint64_t)rows * row_bytes(&s[i]);
    }
    if (limit < bytes)
        return tgi_fail(err, TG_E_BUDGET, "there is no room on the device to measure it");
    float *weights = tgi_malloc(TGI_TAG_PLAN, n * sizeof *weights);
    if (!weights)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        weights[i] = weight((uint32_t)i);
    const tg_status st = compare(s, weights, compared, gain, err);
    tgi_free(weights);
    return st;
}

tg_status tgi_gain_measure(tgi_gain which, const tgi_device_ops *ops, tgi_device *d,
                           const tgi_device_info *info, uint64_t limit, double *gain,
                           tgi_err *err)
{
    double least = -1, one;
    *gain = 0;
    for (int i = 0; i < MOST_TRIALS && measured[which].trial[i].plain.channels; i++) {
        TGI_TRY(measure(&measured[which].trial[i], measured[which].compared, ops, d, info,
                        limit, &one, err));
        if (one >= 0 && (least < 0 || one < least))
            least = one;
    }
    *gain = least > 0 ? least : 0;
    return TG_OK;
}
