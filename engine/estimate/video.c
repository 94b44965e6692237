/* video.c - `tegula estimate video`: what ProPainter takes for a film of a size and length, on the machine that is asked for, on
 * GPUs that are not there (video_gpus.c), and beside what is published of its script (video_beside.c).
 *
 *   peak      of the frames and networks of `tegula inpaint --weights`: all in memory, and as little as --scratch allows
 *   ram       what --ram has to be then: with the program, and a film's decoder and encoder
 *   device    with --device cuda: what the plugin's plan of the networks takes of a GPU
 *   seconds   as `inpaint --plan` predicts them, from the least to the most that masks may make of it
 *
 * No weights are needed: zeros of the same shapes stand in for them. */
#include "engine/estimate/video.h"
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/device/choice.h"
#include "engine/inpaint/propainter.h"
#include "engine/job/plan_seconds.h"
#include "engine/settings/words.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <string.h>

#define USUAL_WIDTH 1280
#define USUAL_HEIGHT 720
#define USUAL_FRAMES 80

/* Beside frames and networks: plans that read and write H.264 ask for 37 MiB and 53 frames of RGB at 1280x720 and
 * 1920x1080, for less below. */
#define BESIDE_BYTES ((uint64_t)40 << 20)
#define BESIDE_FRAMES 54

/* ---- A plan ------------------------------------------------------------------------------ */

tgi_video_film tgi_video_film_of(const tgi_question *q, int64_t width, int64_t height,
                                 int64_t frames)
{
    return (tgi_video_film){width,
                            height,
                            frames,
                            {tgi_opts_int(q->o, TGI_OPT_SUBVIDEO_LENGTH, 80),
                             tgi_opts_int(q->o, TGI_OPT_NEIGHBOR_LENGTH, 10),
                             tgi_opts_int(q->o, TGI_OPT_REF_STRIDE, 10)}};
}

static int threads_of(const tgi_question *q)
{
    return (int)tgi_opts_int(q->o, TGI_OPT_THREADS, q->machine.processors);
}

/* Kernels as a job of that machine has them. */
static tg_status kernels_of(const tgi_machine *m, const tgi_kernel_set **out, tgi_err *err)
{
    *out = tgi_backend_for(m->isa);
    if (*out && m->sets >> m->isa & 1)
        return TG_OK;
    return tgi_fail(err, TG_E_DEVICE, "%s or build has no %s kernels", m->name,
                    tgi_isa_name(m->isa));
}

static void measure(tgi_method *m, const tgi_video_film *f, tgi_pace *pace, tgi_video_need *out)
{
    size_t block, weights;
    tgi_propainter_networks(m, &block, &weights);
    *out = (tgi_video_need){
        .peak = m->ops->bytes(m),
        .device = {block + weights, (block + weights) / 2, (block + weights) / 2},
        .flops = m->ops->flops(m) * (double)f->frames};
    for (int i = 0; i < 2; i++)
        out->seconds[i] = m->ops->seconds(m, 0, f->frames, i == 0, tgi_pace_of_pass, pace);
    while (m->ops->shrink(m))
        continue;
    out->least = m->ops->bytes(m);
    out->scratch = m->ops->disk(m);
}

static tgi_propainter_how how_of(const tgi_question *q, const tgi_video_film *f)
{
    return (tgi_propainter_how){.height = f->height / 8 * 8,
                                .width = f->width / 8 * 8,
                                .hi = f->frames,
                                .set = f->set,
                                .iterations = (int)tgi_opts_int(q->o, TGI_OPT_RAFT_ITER, 20),
                                .threads = threads_of(q),
                                .scratch = "."};
}

/* ---- On a GPU ---------------------------------------------------------------------------- */

int tgi_video_is_far(const tgi_question *q)
{
    tgi_device_spec want;
    tgi_opts_device(q->o, &want);
    return want.kind == TGI_DEVICE_OF_PLUGIN;
}

typedef struct far {
    const tgi_question *q;
    const tgi_video_film *f;
    tgi_sched_pace pace;
    tg_dtype element;
    size_t stay; /* bytes for buffers between networks */
    tgi_sched_need need;
} far;

static tg_status plan_far(void *user, size_t room, tgi_err *err)
{
    far *a = user;
    tgi_device *none = NULL;
    tgi_method *m = NULL;
    tgi_propainter_how how = how_of(a->q, a->f);
    const tgi_on_device on = {
        .ops = a->pace.ops,
        .device = &none,
        .flags = TGI_NET_KINDS(0),
        .how = tgi_schedule_device_of(&a->pace, a->element, room, a->stay),
        .motion = tgi_schedule_device_of(&a->pace, TG_DTYPE_F32, room, a->stay)};
    how.on = &on;
    TGI_TRY(kernels_of(&a->q->machine, &how.be, err));
    TGI_TRY(tgi_propainter_new(&how, &m, err));
    m->ops->need(m, &a->need);
    m->ops->free(&m);
    return TG_OK;
}

/* *can 0: no kernels of that type. */
static tg_status begin_far(const tgi_question *q, const tgi_video_film *f, tgi_video_kind kind,
                           far *out, int *can, tgi_err *err)
{
    static const tg_dtype element[TGI_VIDEO_KINDS] = {TG_DTYPE_F32, TG_DTYPE_F16,
                                                      TG_DTYPE_NONE};
    *out = (far){.q = q, .f = f, .element = element[kind]};
    TGI_TRY(tgi_device_open_plugin("cuda", &out->pace.ops, err));
    *can = out->element != TG_DTYPE_NONE && out->pace.ops->backend(out->element);
    out->pace.rates = tgi_device_rates(0, *can ? out->element : TG_DTYPE_F32);
    return TG_OK;
}

#define MUCH (SIZE_MAX / 4)

static tg_status liked_device(const tgi_question *q, const tgi_video_film *f,
                              tgi_video_need *out, tgi_err *err)
{
    for (int k = 0; k < TGI_VIDEO_KINDS; k++) {
        far a;
        int can;
        TGI_TRY(begin_far(q, f, (tgi_video_kind)k, &a, &can, err));
        a.stay = MUCH;
        if (can)
            TGI_TRY(plan_far(&a, MUCH, err));
        out->device[k] = can ? tgi_sched_need_device(&a.need) : 0;
    }
    return TG_OK;
}

tg_status tgi_video_least_device(const tgi_question *q, const tgi_video_film *f,
                                 tgi_video_kind kind, uint64_t *out, tgi_err *err)
{
    far a;
    int can;
    TGI_TRY(begin_far(q, f, kind, &a, &can, err));
    if (can)
        TGI_TRY(tgi_schedule_device_least(plan_far, &a, err));
    *out = can ? tgi_sched_need_device(&a.need) : 0;
    return TG_OK;
}

tg_status tgi_video_plan(const tgi_question *q, const tgi_video_film *f, int bf16,
                         tgi_video_need *out, tgi_err *err)
{
    tgi_propainter_how how = how_of(q, f);
    tgi_method *m = NULL;
    how.flags = TGI_NET_KINDS(bf16 ? TGI_KIND_BF16 : 0);
    if (how.height < TGI_PP_SMALLEST || how.width < TGI_PP_SMALLEST)
        return tgi_fail(err, TG_E_ARG,
                        "--size %lldx%lld: ProPainter takes sides of %d pixels or more",
                        (long long)f->width, (long long)f->height, TGI_PP_SMALLEST);
    TGI_TRY(kernels_of(&q->machine, &how.be, err));
    tgi_pace *pace = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *pace);
    if (!pace)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a plan");
    const tg_status st = tgi_propainter_new(&how, &m, err);
    if (st == TG_OK) {
        tgi_pace_of(&q->machine, how.threads, pace);
        measure(m, f, pace, out);
        tgi_pace_end(pace);
        m->ops->free(&m);
    }
    tgi_free(pace);
    return st == TG_OK && tgi_video_is_far(q) ? liked_device(q, f, out, err) : st;
}

/* ---- The estimator ----------------------------------------------------------------------- */

static tg_status read_film(const tgi_question *q, tgi_video_film *f, tgi_err *err)
{
    const char *size = tgi_opts_str(q->o, TGI_OPT_SIZE),
               *frames = tgi_opts_str(q->o, TGI_OPT_FRAMES);
    int64_t v[3] = {USUAL_WIDTH, USUAL_HEIGHT, 0}, n = USUAL_FRAMES;
    if (q->n_files)
        return tgi_fail(err, TG_E_ARG,
                        "estimate video takes no file: --size WIDTHxHEIGHT and --frames N; "
                        "tegula inpaint %s ... --plan is about that film",
                        q->files[0]);
    if (size)
        TGI_TRY(tgi_dims_parse(size, v, err));
    if (frames)
        TGI_TRY(tgi_int_parse(frames, 2, 1000000000, "--frames", &n, err));
    *f = tgi_video_film_of(q, v[0], v[1], n);
    return TG_OK;
}

static void put_settings(const tgi_question *q, const tgi_video_film *f, tgi_jw *w)
{
    char size[64];
    double efficiency = 0.5;
    (void)tgi_share_parse(tgi_opts_str(q->o, TGI_OPT_EFFICIENCY), &efficiency, NULL);
    snprintf(size, sizeof size, "%lldx%lld", (long long)f->width, (long long)f->height);
    tgi_jw_begin(w, "settings", '{');
    tgi_jw_str(w, "size", size);
    tgi_jw_int(w, "frames", f->frames);
    tgi_jw_int(w, "subvideo_length", f->set.subvideo_length);
    tgi_jw_int(w, "neighbor_length", f->set.neighbor_length);
    tgi_jw_int(w, "ref_stride", f->set.ref_stride);
    tgi_jw_int(w, "raft_iter", tgi_opts_int(q->o, TGI_OPT_RAFT_ITER, 20));
    tgi_jw_int(w, "threads", threads_of(q));
    tgi_jw_str(w, "isa", tgi_isa_name(q->machine.isa));
    tgi_jw_bool(w, "calibrated", q->machine.calibrated);
    tgi_jw_num(w, "efficiency", efficiency);
    if (tgi_opts_given(q->o, TGI_OPT_PRICE))
        tgi_jw_str(w, "price_per_hour", tgi_opts_str(q->o, TGI_OPT_PRICE));
    tgi_jw_end(w, '}');
}

/* What --ram has to be: the least of the film's frames and networks, its decoder and encoder, the program. */
static uint64_t least_ram(const tgi_question *q, const tgi_video_film *f, uint64_t least)
{
    const uint64_t frame = (uint64_t)(f->width * f->height) * 3;
    return tgi_sat_add(tgi_sat_add(least, BESIDE_BYTES + BESIDE_FRAMES * frame),
                       q->machine.own_bytes);
}

static void put_processor(const tgi_question *q, const tgi_video_film *f, const char *precision,
                          const tgi_video_need *n, tgi_jw *w)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "precision", precision);
    if (n) {
        tgi_jw_uint(w, "peak_bytes", n->peak);
        tgi_jw_uint(w, "least_bytes", n->least);
        tgi_jw_uint(w, "least_ram_bytes", least_ram(q, f, n->least));
        tgi_jw_uint(w, "scratch_bytes", n->scratch);
        tgi_jw_num(w, "least_seconds", n->seconds[0]);
        tgi_jw_num(w, "most_seconds", n->seconds[1]);
    } else {
        tgi_jw_str(w, "state", "refused: the processor has no bf16");
    }
    tgi_jw_end(w, '}');
}

static tg_status put_host(const tgi_question *q, const tgi_video_film *f, tgi_jw *w,
                          tgi_video_need *fp32, tgi_err *err)
{
    tgi_video_need half;
    TGI_TRY(tgi_video_plan(q, f, 0, fp32, err));
    if (q->machine.bf16)
        TGI_TRY(tgi_video_plan(q, f, 1, &half, err));
    tgi_jw_num(w, "tflop", fp32->flops / 1e12);
    tgi_jw_begin(w, "processor", '[');
    put_processor(q, f, "fp32", fp32, w);
    put_processor(q, f, "bf16", q->machine.bf16 ? &half : NULL, w);
    tgi_jw_end(w, ']');
    return TG_OK;
}

tg_status tgi_estimate_video(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    tgi_video_film f;
    tgi_video_need fp32;
    tgi_gpus *table = NULL;
    TGI_TRY(read_film(q, &f, err));
    put_settings(q, &f, w);
    TGI_TRY(put_host(q, &f, w, &fp32, err));
    TGI_TRY(tgi_gpus_load(&table, err));
    tg_status st = tgi_video_put_gpus(q, table, &f, &fp32, w, err);
    if (st == TG_OK)
        st = tgi_video_put_beside(q, table, &f, w, err);
    tgi_free(table);
    return st;
}
