/* bench_stats.c - statistics of channels: whole images by the kernels of operators, and bands of rows
 * into a state (kernels/granule.h).
 *
 *   bench_stats [--isa NAME] [--threads N] [--rounds N] [--height N] [--width N] [--channels N]
 *
 * Prints milliseconds, the median and the least of the rounds (15), and gigabytes a second that
 * were read. With one thread the clock is the thread's, with more it is the wall's. Bands are of
 * 16 rows. */
#include "bench/measure.h"
#include "kernels/granule.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAND 16

typedef struct work {
    const tgi_kernel_set *be;
    tgi_threads *threads;
    int rounds, n_threads;
    tgi_desc image;
    tgi_view src, dst;
} work;

static tgi_view image_view(const tgi_desc *d, int cb)
{
    tgi_view v = {
        .c = d->dim[1], .cb = cb, .width = d->dim[3], .y_ring = d->dim[2], .z_ring = 1};
    v.y_pitch = (size_t)(v.width * cb);
    v.z_pitch = v.block_pitch = v.y_pitch * (size_t)v.y_ring;
    const size_t n = v.block_pitch * (size_t)tgi_view_blocks(&v);
    v.base = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
    for (size_t i = 0; i < n; i++)
        v.base[i] = (float)(i * 2654435761u % 1024) / 1024.0f;
    return v;
}

static void print(const work *w, const char *what, double *t)
{
    const double middle = measure_median(t, w->rounds),
                 bytes = (double)w->image.dim[1] * (double)w->image.dim[2] *
                         (double)w->image.dim[3] * sizeof(float);
    printf("%-24s %8.2f ms, least %8.2f ms, %5.1f GB/s\n", what, middle * 1e3, t[0] * 1e3,
           bytes / middle * 1e-9);
}

static void bench_op(const work *w, const char *op)
{
    const int is_norm = strcmp(op, "InstanceNormalization") == 0;
    const int64_t c = w->image.dim[1];
    float *numbers = calloc((size_t)c, sizeof *numbers);
    const tgi_constant k = {{TG_DTYPE_F32, 1, {c}}, numbers};
    const tgi_constant *const consts[] = {NULL, &k, &k};
    const tgi_desc src[] = {w->image, k.desc, k.desc};
    tgi_desc dst = w->image;
    const instance_norm_attrs attrs = {.epsilon = 1e-5f};
    tgi_view out = w->dst;
    double t[ROUNDS_MAX];
    if (!is_norm) {
        dst.dim[2] = dst.dim[3] = 1;
        out = image_view(&dst, w->src.cb);
    }
    const tgi_op_ctx ctx = {.attrs = &attrs,
                            .n_src = is_norm ? 3 : 1,
                            .n_dst = 1,
                            .src = src,
                            .dst = &dst,
                            .const_src = consts};
    tgi_layout_hint lay = {.lanes = w->be->lanes, .n_src = 1, .dst_cb = w->be->lanes};
    lay.src_cb[0] = w->be->lanes;
    lay.src_segs[0] = 1;
    lay.seg_c[0][0] = c;
    const tgi_variant *v = tgi_variant_pick(w->be, op, &ctx, &lay);
    const tgi_operand operands[3] = {{1, &w->src}};
    tgi_call call = {.ctx = &ctx,
                     .src = operands,
                     .dst = &out,
                     .box = tgi_box_full(&dst),
                     .threads = w->threads};
    call.scratch = aligned_alloc(
        64, (v->scratch_bytes(&ctx, &lay, w->image.dim[3], w->n_threads) + 64) / 64 * 64);
    for (int i = -1; i < w->rounds; i++) {
        const double from = measure_now();
        v->run(&call);
        if (i >= 0)
            t[i] = measure_now() - from;
    }
    print(w, op, t);
    if (!is_norm)
        free(out.base);
    free(call.scratch);
    free(numbers);
}

static void bench_bands(const work *w, const char *name, unsigned what)
{
    void *mem = malloc(tgi_granules_bytes(&w->image, what));
    const tgi_operand src = {1, &w->src};
    double t[ROUNDS_MAX];
    for (int i = -1; i < w->rounds; i++) {
        tgi_granules g;
        tgi_box b = tgi_box_full(&w->image);
        const double from = measure_now();
        tgi_granules_init(&g, &w->image, what, mem);
        for (int64_t y = 0; y < w->image.dim[2]; y += BAND) {
            const int64_t end = y + BAND < w->image.dim[2] ? y + BAND : w->image.dim[2];
            b.ax[2] = (tgi_range){y, end};
            if (w->be->granules_add(&g, &src, &b, w->threads, NULL) != TG_OK)
                abort();
        }
        if (i >= 0)
            t[i] = measure_now() - from;
    }
    print(w, name, t);
    free(mem);
}

int main(int argc, char **argv)
{
    tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);
    work w = {.rounds = 15, .n_threads = 1, .image = {TG_DTYPE_F32, 4, {1, 32, 1024, 1024}}};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--isa") && tgi_isa_parse(value, &isa))
            isa = tgi_isa_detect(isa);
        else if (!strcmp(name, "--threads"))
            w.n_threads = atoi(value);
        else if (!strcmp(name, "--rounds"))
            w.rounds = atoi(value);
        else if (!strcmp(name, "--channels"))
            w.image.dim[1] = atoi(value);
        else if (!strcmp(name, "--height"))
            w.image.dim[2] = atoi(value);
        else if (!strcmp(name, "--width"))
            w.image.dim[3] = atoi(value);
    }
    w.rounds = w.rounds < 1 ? 1 : w.rounds > ROUNDS_MAX ? ROUNDS_MAX : w.rounds;
    w.be = tgi_backend_for(isa);
    if (tgi_threads_open(w.n_threads, &w.threads, NULL) != TG_OK)
        return 1;
    if (w.n_threads == 1)
        measure_clock(CLOCK_THREAD_CPUTIME_ID);
    w.src = image_view(&w.image, w.be->lanes);
    w.dst = image_view(&w.image, w.be->lanes);
    printf("%s, %d threads, %d x %d x %d\n", w.be->name, w.n_threads, (int)w.image.dim[1],
           (int)w.image.dim[2], (int)w.image.dim[3]);
    bench_op(&w, "InstanceNormalization");
    bench_op(&w, "GlobalAveragePool");
    bench_op(&w, "GlobalMaxPool");
    bench_bands(&w, "bands, moments", TGI_GRANULES_MOMENTS);
    bench_bands(&w, "bands, extremes", TGI_GRANULES_EXTREMES);
    tgi_threads_close(&w.threads);
    free(w.src.base);
    free(w.dst.base);
    return 0;
}
