/* bench_tokens.c - the operators that ProPainter's networks have beside convolutions, at the sizes
 * of its films, one at a time.
 *
 *   bench_tokens [--isa NAME] [--threads N] [--rounds N] [--rows N] [--json] [FILTER]
 *
 * Prints milliseconds, the median and the least of the rounds (11), and the rate of the operations
 * that the answer takes (2 for a multiply-add: products with keys and values or places), as a share
 * of the multiply-add peak of the same rounds. With one thread the clock is the thread's processor
 * time, with more it is the wall's. --rows: results come in bands of so many rows, as the executor
 * asks for them. Answers are compared by tests/cases and test_golden_tokens, not here.
 *
 * Linears and attention stand beside oneDNN, which computes nothing but their matrix products, of
 * numbers that lie as matrices, all queries with all keys of a window. Both are timed in turns, each
 * long enough to be measured; the ratio is that of the rates of a round, above 1 where we are faster,
 * and its range that of the rounds. A second ratio counts its softmax of the products, too. --json:
 * those cases alone, a line for each. */
#include "bench/measure.h"
#include "bench/products.h"
#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/ops/window_tokens.h"
#include "kernels/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN_SECONDS 0.02
#define PRODUCTS_MAX 4

typedef struct settings {
    const tgi_kernel_set *be;
    tgi_threads *pool;
    int threads, rounds, json;
    int64_t rows; /* of a band; 0: all */
    const char *filter;
} settings;

typedef struct work {
    const char *op;
    const void *attrs;
    int n_src;
    tgi_desc src[TGI_OP_MAX_SRC], dst;
    float *data[TGI_OP_MAX_SRC]; /* of constants: dense */
    int is_const[TGI_OP_MAX_SRC], planar[TGI_OP_MAX_SRC];
    tgi_view view[TGI_OP_MAX_SRC + 1];
    double flops;
    product product[PRODUCTS_MAX]; /* what a peer computes */
    int n_product;
} work;

static float *floats(size_t n)
{
    return measure_room(n * sizeof(float));
}

static uint32_t noise_at = 1;

static float noise(void)
{
    noise_at = noise_at * 1664525u + 1013904223u;
    return (float)(noise_at >> 8) / 8388608.0f - 1.0f;
}

static tgi_desc frame(int64_t c, int64_t h, int64_t w)
{
    return (tgi_desc){TG_DTYPE_F32, 4, {1, c, h, w}};
}

/* As the executor stores a value: the blocks of a row side by side, a column of zeros around. */
static tgi_view make_view(const tgi_desc *d, int cb)
{
    tgi_view v = {.c = d->dim[1], .cb = cb, .x0 = -1, .width = d->dim[3] + 2};
    v.y_ring = d->dim[2];
    v.z_ring = 1;
    v.block_pitch = tgi_align_size((size_t)(v.width * cb), 16);
    v.y_pitch = v.block_pitch * (size_t)tgi_view_blocks(&v);
    v.z_pitch = v.y_pitch * (size_t)v.y_ring;
    v.base = floats(v.z_pitch);
    return v;
}

static void fill(const tgi_view *v, const tgi_desc *d)
{
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t y = 0; y < d->dim[2]; y++)
            for (int64_t x = 0; x < d->dim[3]; x++)
                *tgi_view_at(v, c, 0, y, x) = noise();
}

static void give(work *w, int i, tgi_desc d, int planar)
{
    w->src[i] = d;
    w->planar[i] = planar;
    w->n_src = i + 1;
}

static void give_const(work *w, int i, int64_t n)
{
    w->src[i] = (tgi_desc){TG_DTYPE_F32, 1, {n}};
    w->is_const[i] = 1;
    w->data[i] = floats((size_t)n);
    for (int64_t k = 0; k < n; k++)
        w->data[i][k] = noise();
    w->n_src = i + 1;
}

static void make_views(work *w, const settings *s)
{
    for (int i = 0; i < w->n_src; i++)
        if (!w->is_const[i]) {
            w->view[i] = make_view(&w->src[i], w->planar[i] ? 1 : s->be->lanes);
            fill(&w->view[i], &w->src[i]);
        }
}

static void close_work(work *w)
{
    for (int i = 0; i <= TGI_OP_MAX_SRC; i++)
        free(w->view[i].base);
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        free(w->data[i]);
}

static void pass(const settings *s, const tgi_variant *v, tgi_call *call, int64_t height)
{
    const int64_t rows = s->rows ? s->rows : height;
    for (int64_t y = 0; y < height; y += rows) {
        call->box.ax[2] = (tgi_range){y, tgi_min(y + rows, height)};
        v->run(call);
    }
}

/* Seconds of a pass and of the peer's, ratios, and the processor's peak. */
typedef struct rounds {
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], peak[ROUNDS_MAX];
    double ratio[ROUNDS_MAX], soft[ROUNDS_MAX]; /* the latter with softmax behind products */
} rounds;

/* Seconds of a pass; `reps` of them, or of the peer's. */
static double timed_pass(const settings *s, const tgi_variant *v, tgi_call *call,
                         int64_t height, int reps)
{
    const double from = measure_now();
    for (int i = 0; i < reps; i++)
        pass(s, v, call, height);
    return (measure_now() - from) / reps;
}

static double timed_peer(const products *peer, int softmax, int reps)
{
    double sum = 0;
    for (int i = 0; i < reps; i++)
        sum += products_seconds(peer, softmax);
    return sum / reps;
}

static int repetitions(double once)
{
    return once > TURN_SECONDS ? 1 : (int)(TURN_SECONDS / once) + 1;
}

/* In turns. Between them we sleep: the peer's workers spin for a while after a loop. */
static void take_turns(const work *w, const settings *s, const tgi_variant *v, tgi_call *call,
                       const products *peer, rounds *r)
{
    const int64_t height = w->dst.dim[2];
    const int reps = repetitions(timed_pass(s, v, call, height, 1)),
              peer_reps = peer ? repetitions(timed_peer(peer, 0, 1)) : 0;
    for (int i = 0; i < s->rounds; i++) {
        if (peer && s->threads > 1)
            usleep(20000);
        r->ours[i] = timed_pass(s, v, call, height, reps);
        r->peak[i] = measure_peak(s->be->isa) * s->threads;
        if (!peer)
            continue;
        if (s->threads > 1)
            usleep(5000);
        r->theirs[i] = timed_peer(peer, 0, peer_reps);
        const double softmax = timed_peer(peer, 1, peer_reps);
        const double share = w->flops / products_flops(peer) / r->ours[i];
        r->ratio[i] = share * r->theirs[i];
        r->soft[i] = share * (r->theirs[i] + softmax);
    }
}

static void report(const work *w, const settings *s, const char *name, const products *peer,
                   size_t room, rounds *r)
{
    const int n = s->rounds;
    const double middle = measure_median(r->ours, n), top = measure_median(r->peak, n),
                 gflops = w->flops / middle * 1e-9;
    const double theirs = peer ? products_flops(peer) / measure_median(r->theirs, n) * 1e-9 : 0;
    const double ratio = peer ? measure_median(r->ratio, n) : 0,
                 soft = peer ? measure_median(r->soft, n) : 0;
    if (s->json && peer)
        printf("{\"case\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"gflops\":%.1f,"
               "\"peer\":\"%s\",\"peer_gflops\":%.1f,\"peak_gflops\":%.1f,"
               "\"products\":[%.3f,%.3f,%.3f],\"softmax\":[%.3f,%.3f,%.3f]}\n",
               name, s->be->name, s->threads, gflops, products_ways(peer), theirs, top * 1e-9,
               ratio, r->ratio[0], r->ratio[n - 1], soft, r->soft[0], r->soft[n - 1]);
    if (s->json)
        return;
    printf("%-44s %9.3f ms, least %9.3f ms, %6.1f GF/s, %3.0f %% of peak, scratch %.1f MiB\n",
           name, middle * 1e3, r->ours[0] * 1e3, gflops, top > 0 ? 1e11 * gflops / top : 0.0,
           (double)room / 1048576);
    if (peer)
        printf("%-44s %6.1f GF/s, ratio %.2f (%.2f to %.2f), %s\n", "  oneDNN, products alone",
               theirs, ratio, r->ratio[0], r->ratio[n - 1], products_ways(peer));
    if (peer && soft > ratio)
        printf("%-44s ratio %.2f (%.2f to %.2f)\n", "  with softmax", soft, r->soft[0],
               r->soft[n - 1]);
    fflush(stdout);
}

static void measure(work *w, const settings *s, const char *name)
{
    const tgi_op *op = tgi_op_find(w->op);
    tgi_constant cst[TGI_OP_MAX_SRC];
    const tgi_constant *consts[TGI_OP_MAX_SRC] = {0};
    tgi_operand operands[TGI_OP_MAX_SRC] = {0};
    tgi_layout_hint lay = {.lanes = s->be->lanes, .n_src = w->n_src};
    tgi_err err = {0};
    for (int i = 0; i < w->n_src; i++) {
        cst[i] = (tgi_constant){w->src[i], w->data[i]};
        consts[i] = w->is_const[i] ? &cst[i] : NULL;
        operands[i] = (tgi_operand){!w->is_const[i], &w->view[i]};
        lay.src_segs[i] = !w->is_const[i];
        lay.src_cb[i] = w->view[i].cb;
        lay.seg_c[i][0] = w->view[i].c;
    }
    tgi_op_ctx ctx = {
        .attrs = w->attrs, .n_src = w->n_src, .n_dst = 1, .src = w->src, .const_src = consts};
    if (op->infer(&ctx, &w->dst, &err) != TG_OK) {
        fprintf(stderr, "%s: %s\n", name, err.text);
        exit(1);
    }
    ctx.dst = &w->dst;
    tgi_view *out = &w->view[TGI_OP_MAX_SRC];
    lay.dst_cb = w->dst.dim[1] <= 4 ? 1 : s->be->lanes;
    *out = make_view(&w->dst, lay.dst_cb);
    const tgi_variant *v = tgi_variant_pick(s->be, w->op, &ctx, &lay);
    tgi_call call = {.ctx = &ctx,
                     .src = operands,
                     .dst = out,
                     .box = tgi_box_full(&w->dst),
                     .threads = s->pool};
    float *packed = floats(v->packed_bytes ? v->packed_bytes(&ctx, &lay) / sizeof(float) : 0);
    const size_t room =
        v->scratch_bytes ? v->scratch_bytes(&ctx, &lay, w->dst.dim[3], s->threads) : 0;
    call.packed = packed;
    call.scratch = floats(room / sizeof(float));
    if (v->pack)
        v->pack(&ctx, &lay, packed);
    products *peer =
        w->n_product ? products_open(w->product, w->n_product, s->threads, s->be->isa) : NULL;
    rounds r;
    take_turns(w, s, v, &call, peer, &r);
    report(w, s, name, peer, room, &r);
    products_close(peer);
    free(packed);
    free(call.scratch);
}

static int wanted(const settings *s, const char *name)
{
    return strstr(name, s->filter) != NULL;
}

/* ---- Cases ------------------------------------------------------------------------------- */

static void linear(const settings *s, int64_t from, int64_t to, int64_t h, int64_t w)
{
    char name[96];
    const conv_attrs a = {.group = 1,
                          .kernel_shape.n = -1,
                          .strides.n = -1,
                          .dilations.n = -1,
                          .pads = {4, {0}},
                          .output_padding.n = -1};
    work k = {.op = "Conv", .attrs = &a};
    snprintf(name, sizeof name, "linear %d->%d, %dx%d tokens", (int)from, (int)to, (int)h,
             (int)w);
    if (!wanted(s, name))
        return;
    give(&k, 0, frame(from, h, w), 0);
    give_const(&k, 1, from * to);
    k.src[1] = (tgi_desc){TG_DTYPE_F32, 4, {to, from, 1, 1}};
    give_const(&k, 2, to);
    make_views(&k, s);
    k.flops = 2.0 * (double)(from * to * h * w);
    k.product[k.n_product++] =
        (product){.count = 1, .m = h * w, .n = to, .k = from, .constant = 1};
    measure(&k, s, name);
    close_work(&k);
}

/* `count` times the two products of q queries with so many keys of 128 numbers. */
static void give_products(work *w, int64_t count, int64_t q, int64_t keys)
{
    const int64_t inner = 128;
    if (!count)
        return;
    w->product[w->n_product++] =
        (product){.count = count, .m = q, .n = keys, .k = inner, .turned = 1, .softmax = 1};
    w->product[w->n_product++] = (product){.count = count, .m = q, .n = inner, .k = keys};
}

/* `every`: of so many windows one is masked; 0: none is. */
static void attention(const settings *s, int64_t h, int64_t w, int64_t frames, int every)
{
    char name[96], which[16];
    const window_attrs a = {.frames = frames,
                            .heads = 4,
                            .window_h = 5,
                            .window_w = 9,
                            .scale = 0.08838834764831845f};
    const int64_t c = 512, wy = (h + 4) / 5, wx = (w + 8) / 9;
    work k = {.op = "WindowAttention", .attrs = &a};
    snprintf(which, sizeof which, "%s", every ? "all" : "none");
    if (every > 1)
        snprintf(which, sizeof which, "1 of %d", every);
    snprintf(name, sizeof name, "attention %dx%d tokens, %d frames, %s masked", (int)h, (int)w,
             (int)frames, which);
    if (!wanted(s, name))
        return;
    for (int i = 0; i < 3; i++)
        give(&k, i, frame(frames * c, h, w), 0);
    for (int i = 3; i < 5; i++)
        give(&k, i, frame(frames * c, wy * 5 / 4, wx * 9 / 4), 0);
    give(&k, 5, frame(1, wy, wx), 1);
    give_const(&k, 6, c);
    give_const(&k, 7, c);
    make_views(&k, s);
    const int64_t most =
        (frames + 1) / 2 * (45 + tgi_window_around(&a) + (wy * 5 / 4) * (wx * 9 / 4));
    double keys = 0; /* of all queries */
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int masked = every && (y / 5 * wx + x / 9) % every == 0;
            *tgi_view_at(&k.view[5], 0, 0, y / 5, x / 9) = (float)masked;
            keys += (double)(frames * (masked ? most : 45));
        }
    k.flops = keys * 4 * (double)c;
    const int64_t seen = every ? (wy * wx + every - 1) / every : 0;
    give_products(&k, (wy * wx - seen) * frames * a.heads, 45, 45);
    give_products(&k, seen * a.heads, frames * 45, most);
    measure(&k, s, name);
    close_work(&k);
}

/* `wild`: flows of neighbours differ by so many pixels. */
static void lookup(const settings *s, int64_t h, int64_t w, float wild)
{
    char name[96];
    const lookup_attrs a = {.radius = 4};
    work k = {.op = "CorrelationLookup", .attrs = &a};
    snprintf(name, sizeof name, "lookup %dx%d, 256 channels, flows +-%g", (int)h, (int)w,
             (double)wild);
    if (!wanted(s, name))
        return;
    give(&k, 0, frame(256, h, w), 0);
    give(&k, 1, frame(2, h, w), 1);
    for (int l = 0; l < 4; l++)
        give(&k, 2 + l, frame(256, h >> l, w >> l), 0);
    make_views(&k, s);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int c = 0; c < 2; c++)
                *tgi_view_at(&k.view[1], c, 0, y, x) =
                    3 * sinf((float)(x + 2 * y) / 30) + wild * noise();
    k.flops = (double)(h * w) * 4 * 100 * 2 * 256;
    measure(&k, s, name);
    close_work(&k);
}

static void upsample(const settings *s, int64_t h, int64_t w)
{
    char name[96];
    const convex_attrs a = {.scale = 8};
    work k = {.op = "ConvexUpsample", .attrs = &a};
    snprintf(name, sizeof name, "upsample %dx%d", (int)h, (int)w);
    if (!wanted(s, name))
        return;
    give(&k, 0, frame(2, h, w), 1);
    give(&k, 1, frame(576, h, w), 0);
    make_views(&k, s);
    k.flops = (double)(h * w) * 64 * 2 * 9 * 2;
    measure(&k, s, name);
    close_work(&k);
}

static void fold(const settings *s, int64_t c, int64_t h, int64_t w, int mean)
{
    char name[96];
    const fold_attrs a = {.kernel = 7, .stride = 3, .pad = 3, .mean = mean};
    work k = {.op = "FoldBias", .attrs = &a};
    snprintf(name, sizeof name, "bias of a fold, %d channels, %dx%d%s", (int)c, (int)h, (int)w,
             mean ? ", mean" : "");
    if (!wanted(s, name))
        return;
    give(&k, 0, frame(c, h, w), 0);
    give_const(&k, 1, c * 49);
    make_views(&k, s);
    k.flops = (double)(c * h * w) * 3;
    measure(&k, s, name);
    close_work(&k);
}

static void norm(const settings *s, int64_t c, int64_t h, int64_t w)
{
    char name[96];
    const channel_norm_attrs a = {.epsilon = 1e-5f, .centred = 1};
    work k = {.op = "ChannelNorm", .attrs = &a};
    snprintf(name, sizeof name, "norm of tokens, %d channels, %dx%d", (int)c, (int)h, (int)w);
    if (!wanted(s, name))
        return;
    give(&k, 0, frame(c, h, w), 0);
    make_views(&k, s);
    k.flops = (double)(c * h * w) * 8;
    measure(&k, s, name);
    close_work(&k);
}

/* mode 1: the form with tanh. */
static void gelu(const settings *s, int64_t c, int64_t h, int64_t w, int mode)
{
    char name[96];
    const unary_attrs a = {.mode = mode};
    work k = {.op = "Gelu", .attrs = &a};
    snprintf(name, sizeof name, "gelu%s, %d channels, %dx%d", mode ? " by tanh" : "", (int)c,
             (int)h, (int)w);
    if (!wanted(s, name))
        return;
    give(&k, 0, frame(c, h, w), 0);
    make_views(&k, s);
    k.flops = (double)(c * h * w) * 2;
    measure(&k, s, name);
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
        else if (strcmp(argv[i], "--rows") == 0)
            s.rows = strtol(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--json") == 0)
            s.json = 1;
        else
            s.filter = argv[i];
    }
    s.rounds = s.rounds < 1 ? 1 : s.rounds > ROUNDS_MAX ? ROUNDS_MAX : s.rounds;
    s.be = tgi_backend_for(isa);
    if (tgi_threads_open(s.threads, &s.pool, NULL) != TG_OK)
        return 1;
    if (s.threads == 1)
        measure_clock(CLOCK_THREAD_CPUTIME_ID);
    if (s.json && !products_there())
        fprintf(stderr, "skipped: this build has no oneDNN\n");
    if (!s.json)
        printf("%s, %d thread(s), %d rounds, medians%s\n", s.be->name, s.threads, s.rounds,
               products_there() ? "" : "; built without oneDNN: nothing stands beside them");
    linear(&s, 512, 512, 20, 36);
    linear(&s, 512, 512, 60, 107);
    attention(&s, 20, 36, 18, 0);
    attention(&s, 20, 36, 18, 1);
    attention(&s, 60, 107, 18, 0);
    attention(&s, 60, 107, 4, 4);
    attention(&s, 60, 107, 18, 4);
    lookup(&s, 30, 54, 0.1f);
    lookup(&s, 90, 160, 0.1f);
    lookup(&s, 90, 160, 4);
    lookup(&s, 90, 160, 40);
    upsample(&s, 90, 160);
    fold(&s, 40, 180, 320, 1);
    fold(&s, 128, 180, 320, 0);
    norm(&s, 512, 20, 36);
    norm(&s, 512, 60, 107);
    gelu(&s, 40, 60, 108, 0);
    gelu(&s, 40, 180, 320, 0);
    gelu(&s, 40, 180, 320, 1);
    tgi_threads_close(&s.pool);
    return 0;
}
