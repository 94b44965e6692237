/* bench_warps.c - the operators of ProPainter that read where data point to, at the sizes of its
 * films, beside the two roofs of a processor.
 *
 *   bench_warps [--isa NAME] [--threads N] [--rounds N] [FILTER]
 *
 * Prints milliseconds, the median and the least of the rounds (11); operations of the answer (2 for a
 * multiply-add, of convolutions those of the product alone) a second, as a share of the multiply-add
 * peak of the same rounds; bytes of sources and result, each once, a second, as a share of what
 * copying as many bytes of memory reaches in the same rounds, where a byte copied counts twice. With
 * one thread the clock is the thread's processor time, with more it is the wall's, and the copy is
 * that of one thread. Last what lies below: bytes, operations for each, and the share of the roof, the
 * longer of the times that the operations take at the peak and the bytes at the rate of the copy, in
 * the time that it took. Answers are compared by tests/cases and test_golden_warps, not here. */
#include "bench/measure.h"
#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const tgi_kernel_set *be;
    tgi_threads *pool;
    int threads, rounds;
    const char *filter;
} settings;

typedef struct work {
    const char *name, *op;
    const void *attrs;
    int n_src, segments; /* of source 0 */
    tgi_desc src[TGI_OP_MAX_SRC], dst;
    float *constant[TGI_OP_MAX_SRC]; /* dense; NULL: an image */
    tgi_view view[TGI_OP_MAX_SRC], second, out;
    double flops;
} work;

static float *floats(size_t n)
{
    return measure_room(n * sizeof(float));
}

static float noise(void)
{
    static uint32_t at = 1;
    at = at * 1664525u + 1013904223u;
    return (float)(at >> 8) / 8388608.0f - 1.0f;
}

static tgi_desc frame(int64_t c, int64_t h, int64_t w)
{
    return (tgi_desc){TG_DTYPE_F32, 4, {1, c, h, w}};
}

/* As the executor stores a value: the blocks of a row side by side. */
static tgi_view make_view(const settings *s, const tgi_desc *d, int64_t channels)
{
    tgi_view v = {.c = channels, .cb = channels <= 4 ? 1 : s->be->lanes, .width = d->dim[3]};
    v.y_ring = d->dim[2];
    v.z_ring = 1;
    v.block_pitch = tgi_align_size((size_t)(v.width * v.cb), 16);
    v.y_pitch = v.block_pitch * (size_t)tgi_view_blocks(&v);
    v.z_pitch = v.y_pitch * (size_t)v.y_ring;
    v.base = floats(v.z_pitch);
    return v;
}

/* Numbers around those of a smooth flow, `wild` apart. */
static void fill(const tgi_view *v, float smooth, float wild)
{
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t y = 0; y < v->y_ring; y++)
            for (int64_t x = 0; x < v->width; x++)
                *tgi_view_at(v, c, 0, y, x) =
                    smooth * sinf((float)(x + 2 * y) / 30) + wild * noise();
}

static double bytes_of(const work *w)
{
    int64_t n = 0, all = 0;
    for (int i = 0; i < w->n_src; i++)
        all += tgi_desc_count(&w->src[i], &n) ? n : 0;
    all += tgi_desc_count(&w->dst, &n) ? n : 0;
    return (double)all * sizeof(float);
}

/* Bytes a second that copying reads and writes, of as many bytes as the operator's. */
static double copy_rate(double bytes)
{
    static char *from, *to;
    static size_t n;
    const size_t want = (size_t)bytes / 2;
    if (n != want) {
        free(from);
        free(to);
        n = want;
        from = (char *)floats(n / sizeof(float) + 1);
        to = (char *)floats(n / sizeof(float) + 1);
    }
    const double t0 = measure_now();
    memcpy(to, from, n);
    __asm__ volatile("" : : "r"(to) : "memory");
    return bytes / (measure_now() - t0);
}

static void time_it(const work *w, const settings *s, const tgi_variant *v,
                    const tgi_call *call)
{
    double t[ROUNDS_MAX], peak[ROUNDS_MAX], copy[ROUNDS_MAX];
    const double bytes = bytes_of(w);
    for (int i = -1; i < s->rounds; i++) {
        const double from = measure_now();
        v->run(call);
        const double took = measure_now() - from, rate = copy_rate(bytes);
        if (i < 0)
            continue;
        t[i] = took;
        copy[i] = rate;
        peak[i] = measure_peak(s->be->isa) * s->threads;
    }
    const double m = measure_median(t, s->rounds), top = measure_median(peak, s->rounds),
                 copied = measure_median(copy, s->rounds);
    const double least = fmax(top > 0 ? w->flops / top : 0, bytes / copied);
    printf("%-40s %8.3f ms, least %8.3f ms, %6.1f GF/s, %3.0f %% of %5.1f, %5.2f GB/s, %3.0f "
           "%% of "
           "%4.1f; %5.1f MB, %5.1f op/byte, %3.0f %% of the roof\n",
           w->name, m * 1e3, t[0] * 1e3, w->flops / m * 1e-9,
           top > 0 ? 100 * w->flops / m / top : 0.0, top * 1e-9, bytes / m * 1e-9,
           100 * bytes / m / copied, copied * 1e-9, bytes * 1e-6, w->flops / bytes,
           100 * least / m);
    fflush(stdout);
}

/* What the operator reads, in operands and hints. */
static void measure(work *w, const settings *s)
{
    const tgi_op *op = tgi_op_find(w->op);
    tgi_constant cst[TGI_OP_MAX_SRC];
    const tgi_constant *consts[TGI_OP_MAX_SRC] = {0};
    tgi_operand operands[TGI_OP_MAX_SRC] = {0};
    tgi_layout_hint lay = {.lanes = s->be->lanes, .n_src = w->n_src};
    tgi_err err = {0};
    const tgi_view parts[2] = {w->view[0], w->second};
    for (int i = 0; i < w->n_src; i++) {
        cst[i] = (tgi_constant){w->src[i], w->constant[i]};
        consts[i] = w->constant[i] ? &cst[i] : NULL;
        operands[i] = (tgi_operand){!w->constant[i], &w->view[i]};
        lay.src_segs[i] = !w->constant[i];
        lay.src_cb[i] = w->view[i].cb;
        lay.seg_c[i][0] = w->view[i].c;
    }
    operands[0] = (tgi_operand){w->segments, parts};
    lay.src_segs[0] = w->segments;
    lay.seg_c[0][1] = w->second.c;
    tgi_op_ctx ctx = {
        .attrs = w->attrs, .n_src = w->n_src, .n_dst = 1, .src = w->src, .const_src = consts};
    if (op->infer(&ctx, &w->dst, &err) != TG_OK) {
        fprintf(stderr, "%s: %s\n", w->name, err.text);
        exit(1);
    }
    ctx.dst = &w->dst;
    w->out = make_view(s, &w->dst, w->dst.dim[1]);
    lay.dst_cb = w->out.cb;
    const tgi_variant *v = tgi_variant_pick(s->be, w->op, &ctx, &lay);
    if (!v) {
        printf("%-44s no variant\n", w->name);
        return;
    }
    float *packed = floats(v->packed_bytes ? v->packed_bytes(&ctx, &lay) / sizeof(float) : 0);
    float *scratch =
        floats(v->scratch_bytes
                   ? v->scratch_bytes(&ctx, &lay, w->dst.dim[3], s->threads) / sizeof(float)
                   : 0);
    if (v->pack)
        v->pack(&ctx, &lay, packed);
    const tgi_call call = {.ctx = &ctx,
                           .src = operands,
                           .dst = &w->out,
                           .box = tgi_box_full(&w->dst),
                           .packed = packed,
                           .scratch = scratch,
                           .threads = s->pool};
    time_it(w, s, v, &call);
    free(packed);
    free(scratch);
}

static void give(work *w, const settings *s, int i, tgi_desc d, float smooth, float wild)
{
    const int64_t c = d.dim[1] / (i ? 1 : w->segments);
    w->src[i] = d;
    w->n_src = i + 1;
    w->view[i] = make_view(s, &d, c);
    fill(&w->view[i], smooth, wild);
    if (i == 0 && w->segments > 1) {
        w->second = make_view(s, &d, c);
        fill(&w->second, smooth, wild);
    }
}

static void give_const(work *w, int i, tgi_desc d)
{
    int64_t n = 0;
    w->src[i] = d;
    w->n_src = i + 1;
    w->constant[i] = floats(tgi_desc_count(&d, &n) ? (size_t)n : 0);
    for (int64_t k = 0; k < n; k++)
        w->constant[i][k] = noise();
}

static void close_work(work *w)
{
    for (int i = 0; i < TGI_OP_MAX_SRC; i++) {
        free(w->view[i].base);
        free(w->constant[i]);
    }
    free(w->second.base);
    free(w->out.base);
}

/* ---- Cases ------------------------------------------------------------------------------- */

/* Offsets are those of a flow, `wild` pixels apart. */
static void deform(const settings *s, const char *name, int64_t c, int segments, int64_t h,
                   int64_t w, float wild)
{
    const deform_attrs a = {.conv = {.group = 1,
                                     .kernel_shape.n = -1,
                                     .strides.n = -1,
                                     .dilations.n = -1,
                                     .pads = {4, {1, 1, 1, 1}}},
                            .offset_group = 16};
    work k = {.name = name, .op = "DeformConv", .attrs = &a, .segments = segments};
    if (!strstr(name, s->filter))
        return;
    give(&k, s, 0, frame(c, h, w), 0, 1);
    give_const(&k, 1, (tgi_desc){TG_DTYPE_F32, 4, {128, c, 3, 3}});
    give(&k, s, 2, frame(288, h, w), 5, wild);
    give_const(&k, 3, (tgi_desc){TG_DTYPE_F32, 1, {128}});
    give(&k, s, 4, frame(144, h, w), 0, 1);
    k.flops = 2.0 * 9 * 128 * (double)(c * h * w);
    measure(&k, s);
    close_work(&k);
}

static void warp(const settings *s, const char *name, int64_t c, int64_t h, int64_t w, int mode)
{
    const warp_attrs a = {.mode = mode};
    work k = {.name = name, .op = "FlowWarp", .attrs = &a, .segments = 1};
    if (!strstr(name, s->filter))
        return;
    give(&k, s, 0, frame(c, h, w), 0, 1);
    give(&k, s, 1, frame(2, h, w), 5, 0.2f);
    k.flops = (mode ? 0.0 : 9.0) * (double)(c * h * w);
    measure(&k, s);
    close_work(&k);
}

static void consistency(const settings *s, const char *name, int64_t h, int64_t w)
{
    work k = {.name = name, .op = "FlowConsistency", .segments = 1};
    if (!strstr(name, s->filter))
        return;
    give(&k, s, 0, frame(2, h, w), 5, 0.2f);
    give(&k, s, 1, frame(2, h, w), -5, 0.2f);
    k.flops = 36.0 * (double)(h * w);
    measure(&k, s);
    close_work(&k);
}

int main(int argc, char **argv)
{
    tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);
    settings s = {.threads = 1, .rounds = 11, .filter = ""};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--isa") == 0 && tgi_isa_parse(value, &isa))
            isa = tgi_isa_detect(isa), i++;
        else if (strcmp(argv[i], "--threads") == 0)
            s.threads = (int)strtol(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--rounds") == 0)
            s.rounds = (int)strtol(value, NULL, 10), i++;
        else
            s.filter = argv[i];
    }
    s.rounds = s.rounds < 1 ? 1 : s.rounds > ROUNDS_MAX ? ROUNDS_MAX : s.rounds;
    s.be = tgi_backend_for(isa);
    if (tgi_threads_open(s.threads, &s.pool, NULL) != TG_OK)
        return 1;
    if (s.threads == 1)
        measure_clock(CLOCK_THREAD_CPUTIME_ID);
    printf("%s, %d thread(s), %d rounds, medians\n", s.be->name, s.threads, s.rounds);
    deform(&s, "deform 128 -> 128, 108x60", 128, 1, 60, 108, 1);
    deform(&s, "deform 128 -> 128, 320x180", 128, 1, 180, 320, 1);
    deform(&s, "deform 128 -> 128, 320x180, offsets +-5", 128, 1, 180, 320, 5);
    deform(&s, "deform 128 + 128 -> 128, 160x90", 256, 2, 90, 160, 1);
    warp(&s, "warp of 128 channels, 320x180", 128, 180, 320, 0);
    warp(&s, "warp of 3 channels, 1280x720", 3, 720, 1280, 0);
    warp(&s, "warp of 1 channel, 1280x720", 1, 720, 1280, 0);
    warp(&s, "nearest warp of 128 channels, 320x180", 128, 180, 320, 1);
    warp(&s, "nearest warp of 3 channels, 1280x720", 3, 720, 1280, 1);
    consistency(&s, "consistency of flows, 1280x720", 720, 1280);
    tgi_threads_close(&s.pool);
    return 0;
}
