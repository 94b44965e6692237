/* plan_seconds.c - how long a planned job will take: by measured speeds where there are some,
 * else by those of a usual machine, corrected by what finished runs took; on a device by a
 * model. And what a run took. */
#include "engine/job/plan_seconds.h"
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/ctx.h"
#include "engine/base/mem.h"
#include "engine/ends/tensors.h"
#include "engine/exec/exec.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_film.h"
#include "engine/plan/lessons.h"
#include "engine/plan/staged.h"

#include <string.h>

/* A film's decoder is counted by its frames. */
static tgi_codec_speed codec_of_input(const tg_job *job)
{
    const tgi_image_info *i = job->info;
    if (tgi_film_source_info(job->source))
        return TGI_CODEC_NONE;
    static const char *const plain[] = {"none", "packbits", NULL};
    for (int k = 0; plain[k]; k++)
        if (!i->compression || strcmp(i->compression, plain[k]) == 0)
            return TGI_CODEC_NONE;
    if (strcmp(i->compression, "zstd") == 0)
        return TGI_CODEC_ZSTD;
    return strcmp(i->compression, "lzw") == 0 ? TGI_CODEC_LZW
                                              : TGI_CODEC_DEFLATE; /* and what is like it */
}

/* What a disk moves in a second, and what a processor does between memory and memory: of values
 * that pass from stage to stage. */
#define DISK_BYTES_PER_SECOND 1e9
#define KEPT_BYTES_PER_SECOND 4e9

/* ---- In one pass, or in stages ----------------------------------------------------------- */

static int n_passes(const tg_job *job)
{
    return job->plan.choice.staged ? job->plan.choice.staged->n : 1;
}

static const tgi_tiling *pass_of(const tg_job *job, int k)
{
    const tgi_choice *c = &job->plan.choice;
    return c->staged ? &c->staged->tiling[k] : &c->tiling;
}

/* Seconds of all kernels of an item; < 0: the speeds do not know one. `l`: NULL: as they are. */
static double kernel_seconds(const tg_job *job, const tgi_lessons *l, const tgi_speeds *s,
                             int threads)
{
    double sum = 0;
    for (int k = 0; k < n_passes(job); k++) {
        const tgi_tiling *t = pass_of(job, k);
        const double one =
            l ? tgi_lessons_kernels(l, s, t, threads) : tgi_speed_kernels(s, t, threads);
        if (one < 0)
            return -1;
        sum += one;
    }
    return sum;
}

/* Bytes of a value that pass a processor once when it is kept, read again or gathered. */
static double kept_bytes(const tg_job *job, int v)
{
    return (double)tgi_kept_bytes(job->plan.net, v);
}

/* Seconds of an item for what passes from stage to stage, and for gathering. */
static double seconds_between(const tg_job *job)
{
    const tgi_staged *s = job->plan.choice.staged;
    double bytes = 0;
    for (int k = 0; s && k < s->n; k++) {
        const tgi_stage *t = &s->cut->stage[k];
        for (int i = 0; i < t->n_loaded; i++)
            bytes += tgi_kept_of(s, t->in[i].value) ? kept_bytes(job, t->in[i].value) : 0;
        for (int o = 0; o < t->n_out; o++)
            bytes += t->out[o].port < 0 ? kept_bytes(job, t->out[o].value) : 0;
    }
    return s ? bytes / KEPT_BYTES_PER_SECOND + (double)s->moved_bytes / DISK_BYTES_PER_SECOND
             : 0;
}

/* ---- Beside the kernels ------------------------------------------------------------------ */

/* How often an input pixel is loaded, on average: cells overlap by their halos. */
static double times_loaded(const tgi_tiling *t)
{
    double times = 1;
    for (int k = 0; k < 3; k++)
        if (t->n_cut[k] > 1 && t->cut[k] > 0)
            times *= 1 + 2 * (double)t->halo[k] / (double)t->cut[k];
    return times;
}

/* By all passes that read the image. */
static double times_loaded_by_all(const tg_job *job)
{
    double times = 0;
    for (int k = 0; k < n_passes(job); k++) {
        const tgi_tiling *t = pass_of(job, k);
        int reads = 0;
        for (int i = 0; i < t->stage->n_loaded; i++)
            for (int j = 0; j < t->net->n_in; j++)
                reads |= t->stage->in[i].value == t->net->in[j];
        times += reads ? times_loaded(t) : 0;
    }
    return times;
}

/* Planes, volumes or samples. */
/* Of a film of which nobody knows the frames: one. */
static double items_of(const tg_job *job)
{
    if (tgi_film_source_is_stream(job->source))
        return 1;
    return (double)job->ends->items(job);
}

void tgi_traffic_of_image(const tg_job *job, double items, tgi_traffic *t)
{
    const tgi_mapping *m = &job->map;
    t->samples_in = items * (double)m->extent[0] * (double)m->extent[1] * (double)m->extent[2] *
                    (double)m->channels;
    t->bytes_in = t->samples_in * (double)tgi_dtype_size(job->info->dtype);
}

static tgi_traffic traffic_of(const tg_job *job)
{
    tgi_traffic t = {0, 0, 0, 0};
    job->ends->add_traffic(job, items_of(job), &t);
    return t;
}

static double encoding_seconds(const tg_job *job)
{
    const double frames = job->film ? (double)job->film->out.frames : 0;
    return frames <= 0 ? 0
                       : job->film->out.seconds *
                             (tgi_film_source_is_stream(job->source) ? 1 / frames : 1);
}

/* What films add: frames are decoded once, and once more for statistics; a film's encoder has two threads at most. */
static void add_films(const tg_job *job, double passes, tgi_speed_io *io)
{
    const tgi_mapping *m = &job->map;
    const int read = tgi_film_source_info(job->source) != NULL;
    if (!read && !job->film)
        return;
    io->decoding =
        (passes + (io->samples_statistics > 0)) * tgi_film_source_decoding(job->source);
    io->encoding = encoding_seconds(job);
    io->encoders = job->set.threads > 1 ? 2 : 1;
    io->rows = items_of(job) * (double)m->out_extent[0] * (double)m->out_extent[1];
    io->is_film = job->film != NULL;
}

static tgi_speed_io work_beside(const tg_job *job)
{
    const tgi_plan_part *p = &job->plan;
    const tgi_traffic t = traffic_of(job);
    const double passes = p->scratch.passes > 1 && !p->scratch.used ? p->scratch.passes : 1;
    /* Scratch is made of pages too, and copied into them. */
    const double scratch = p->scratch.used ? 2 * (double)p->scratch.bytes : 0;
    tgi_speed_io io = {
        .samples_in = t.samples_in * times_loaded_by_all(job),
        .samples_out = t.samples_out,
        .bytes_in = t.bytes_in * passes,
        .bytes_out = t.bytes_out,
        .samples_statistics =
            job->source && tgi_normalize_needs_stats(&job->set.normalize) ? t.samples_in : 0,
        .arena_bytes = (double)(p->choice.staged ? p->choice.staged->arena_bytes
                                                 : p->choice.tiling.arena_bytes) +
                       (double)p->bytes.weights + (double)p->bytes.kept + scratch,
        .in = job->source ? codec_of_input(job) : TGI_CODEC_NONE,
        .out = job->ends->output_codec(job)};
    add_films(job, passes, &io);
    return io;
}

/* Speeds of the machine that is planned for: its own, and a usual one's where it has none. */
static void speeds_of(const tg_job *job, int calibrated, tgi_speeds *out)
{
    tgi_speeds_usual(job->machine.processors, calibrated ? &job->machine.speeds : NULL, out);
}

/* 1: the machine's own speeds know every tuned kernel of the plan. */
static int knows(const tg_job *job, const tgi_speeds *s)
{
    return job->machine.calibrated && kernel_seconds(job, NULL, s, job->set.threads) >= 0;
}

double tgi_job_least_seconds(const tg_job *job, const tgi_tiling *t, int threads)
{
    const double items = items_of(job);
    tgi_speeds s;
    speeds_of(job, job->machine.calibrated, &s);
    double kernels = tgi_speed_kernels(&s, t, threads);
    if (kernels < 0) {
        speeds_of(job, 0, &s);
        kernels = tgi_speed_kernels(&s, t, threads);
    }
    if (kernels < 0)
        return 0;
    s.clear = s.sample = 0; /* everything beside hides, and no memory is cleared */
    memset(s.decode, 0, sizeof s.decode);
    memset(s.encode, 0, sizeof s.encode);
    s.fixed *= job->ends->fixed_share;
    tgi_speed_io io = work_beside(job);
    io.decoding = io.encoding = io.rows = 0;
    return tgi_speed_job(&s, kernels * items, &io, threads);
}

/* By the model of device_time.h: speeds of the processor say nothing of a device. */
static double seconds_on_device(const tg_job *job)
{
    const tgi_tiling *t = &job->plan.choice.tiling;
    const tgi_traffic all = traffic_of(job);
    return tgi_job_device_all_seconds(job, t, items_of(job),
                                      all.bytes_in * times_loaded(t) + all.bytes_out);
}

/* Seconds that the job takes beside `kernels`, of all items. */
static double beside(const tg_job *job, tgi_speeds *s, double kernels)
{
    const tgi_speed_io io = work_beside(job);
    const double fixed = s->fixed;
    s->fixed *= job->ends->fixed_share;
    const double seconds = tgi_speed_job(s, kernels, &io, job->set.threads) - kernels;
    s->fixed = fixed;
    return seconds;
}

/* All that is not kernels; what passes between stages is much of it where there are any. */
static double rest_of(const tg_job *job, tgi_speeds *s, double kernels)
{
    return beside(job, s, kernels) + seconds_between(job) * items_of(job);
}

static const char *rest_key(const tg_job *job)
{
    return job->film || tgi_film_source_info(job->source) ? TGI_LESSON_FILMS
           : job->plan.choice.staged                      ? TGI_LESSON_STAGES
                                                          : TGI_LESSON_BESIDE;
}

/* Lessons of finished runs here; NULL where there is no memory for them. Returned; tgi_free. */
static tgi_lessons *load_lessons(const tgi_speeds *s, int calibrated)
{
    tgi_lessons *l = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *l);
    if (l)
        tgi_lessons_load(s, calibrated, l);
    return l;
}

/* NULL where they are not wanted. */
static const tgi_lessons *lessons_of(tg_job *job, const tgi_speeds *s, int calibrated)
{
    const tgi_lessons *l = job->known.lessons;
    if (!job->machine.here)
        return NULL;
    if (!l && !job->lessons)
        job->lessons = load_lessons(s, calibrated);
    l = l ? l : job->lessons;
    return l && l->n ? l : NULL;
}

void tgi_pace_of(const tgi_machine *m, int threads, tgi_pace *out)
{
    *out = (tgi_pace){.threads = threads};
    tgi_speeds_usual(m->processors, m->calibrated ? &m->speeds : NULL, &out->speeds);
    if (!m->here)
        return;
    out->own = load_lessons(&out->speeds, m->calibrated);
    out->lessons = out->own && out->own->n ? out->own : NULL;
}

void tgi_pace_end(tgi_pace *p)
{
    tgi_free(p->own);
    *p = (tgi_pace){0};
}

double tgi_pace_of_pass(void *pace, const tgi_sched_net *n)
{
    const tgi_pace *p = pace;
    const tgi_tiling *t = &n->choice.tiling;
    const double seconds = p->lessons
                               ? tgi_lessons_kernels(p->lessons, &p->speeds, t, p->threads)
                               : tgi_speed_kernels(&p->speeds, t, p->threads);
    return seconds > 0 ? seconds : 0;
}

/* What removes something from the frames, beside the network that hands them on. */
static double inpaint_seconds(const tg_job *job, tgi_pace *pace, int least)
{
    return job->dev.for_source
               ? tgi_inpaint_seconds(job->source, least, tgi_schedule_device_pass,
                                     (void *)(uintptr_t)&job->dev.pace)
               : tgi_inpaint_seconds(job->source, least, tgi_pace_of_pass, pace);
}

void tgi_job_plan_seconds(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    tgi_speeds s;
    p->calibrated = 0;
    p->lessons = 0;
    p->masks_decide = 0;
    if (tgi_job_pass_ops(job)) {
        p->seconds = seconds_on_device(job);
        return;
    }
    speeds_of(job, job->machine.calibrated, &s);
    p->calibrated = knows(job, &s);
    if (!p->calibrated)
        speeds_of(job, 0, &s);
    const tgi_lessons *l = lessons_of(job, &s, p->calibrated);
    const double kernels = kernel_seconds(job, l, &s, job->set.threads);
    if (kernels < 0) {
        p->seconds = p->choice.seconds * items_of(job);
        return;
    }
    const double said = kernel_seconds(job, NULL, &s, job->set.threads) * items_of(job);
    p->seconds = kernels * items_of(job) +
                 rest_of(job, &s, said) * (l ? tgi_lessons_factor(l, rest_key(job)) : 1);
    if (tgi_inpaint_is(job->source)) {
        tgi_pace pace = {.speeds = s, .lessons = l, .threads = job->set.threads};
        const double most = inpaint_seconds(job, &pace, 0);
        p->masks_decide = most - inpaint_seconds(job, &pace, 1);
        p->seconds += most;
    }
    p->lessons = l ? l->runs : 0;
}

/* ---- What a run took --------------------------------------------------------------------- */

#define LEAST_SECONDS 0.02 /* of a run: of less, most is chance */

/* Nodes of the stages before stage k, as a run times them one stage behind the other. */
static size_t nodes_before(const tg_job *job, int k)
{
    size_t n = 0;
    for (int j = 0; j < k; j++)
        n += (size_t)pass_of(job, j)->stage->n_nodes;
    return n;
}

void tgi_job_learn_begin(tg_job *job)
{
    tgi_job_learn_drop(job);
    if (!tgi_lessons_wanted() || tgi_inpaint_is(job->source))
        return;
    job->node_seconds = tgi_calloc(TGI_TAG_PLAN, nodes_before(job, n_passes(job)) + 1,
                                   sizeof *job->node_seconds);
    job->processor_before = tgi_processor_seconds();
}

void tgi_job_learn_drop(tg_job *job)
{
    tgi_free(job->node_seconds);
    job->node_seconds = NULL;
}

/* One thread's own time is disturbed less by other programs; several wait for each other, and what
 * they waited for a processor is taken off (tgi_turns). */
void tgi_job_learn_stage(tg_job *job, int k, tgi_exec *exec)
{
    if (job->node_seconds)
        tgi_exec_time_nodes(exec, job->set.threads > 1 ? tgi_seconds : tgi_thread_seconds,
                            job->node_seconds + nodes_before(job, k));
}

/* A key, and what its nodes took and were said to take. */
typedef struct taken {
    char key[48];
    double took, said;
} taken;

/* Of all nodes, by key; how many keys. `of` has a place for each node. */
static size_t sum_by_key(const tg_job *job, const tgi_speeds *s, taken *of)
{
    size_t n = 0, at = 0;
    for (int p = 0; p < n_passes(job); p++) {
        const tgi_tiling *t = pass_of(job, p);
        for (int k = 0; k < t->stage->n_nodes; k++, at++) {
            size_t i = 0;
            tgi_speed_key(tgi_stage_node(t->stage, k), of[n].key, sizeof of[n].key);
            while (strcmp(of[i].key, of[n].key) != 0)
                i++;
            n += i == n;
            of[i].took += job->node_seconds[at];
            of[i].said += tgi_speed_node(s, t, k, job->set.threads) * items_of(job);
        }
    }
    return n;
}

/* Seconds of the kernels, taken and said, key by key into `l`. `alone`: of the time taken, the share
 * that they would have taken, had no other program been there. */
static int learn_kernels(const tg_job *job, const tgi_speeds *s, double alone, tgi_lessons *l,
                         double *took, double *said)
{
    taken *of = tgi_calloc(TGI_TAG_PLAN, nodes_before(job, n_passes(job)) + 1, sizeof *of);
    const size_t n = of ? sum_by_key(job, s, of) : 0;
    for (size_t i = 0; i < n; i++) {
        tgi_lessons_add(l, of[i].key, alone * of[i].took, of[i].said);
        *took += alone * of[i].took;
        *said += of[i].said;
    }
    tgi_free(of);
    return n > 0;
}

static void learn(tg_job *job, double seconds)
{
    double took = 0, said = 0;
    tgi_speeds s;
    tgi_err e = {0};
    if (!job->node_seconds || seconds < LEAST_SECONDS)
        return;
    if (job->set.threads == 1)
        seconds = tgi_processor_seconds() - job->processor_before;
    const double alone = job->set.threads == 1 ? 1 : job->undisturbed;
    const int calibrated = job->plan.calibrated;
    speeds_of(job, calibrated, &s);
    if (kernel_seconds(job, NULL, &s, job->set.threads) < 0)
        return;
    tgi_lessons *l = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *l);
    if (!l)
        return;
    tgi_lessons_load(&s, calibrated, l); /* others may have finished meanwhile */
    if (learn_kernels(job, &s, alone, l, &took, &said)) {
        tgi_lessons_add(l, rest_key(job), alone * seconds - took, rest_of(job, &s, said));
        l->runs++;
        if (tgi_lessons_save(&s, calibrated, l, &e) != TG_OK)
            tgi_ctx_log(job->ctx, TG_LOG_DEBUG, "nothing was learned of this run: %s", e.text);
    }
    tgi_free(l);
}

void tgi_job_learn_end(tg_job *job, double seconds)
{
    learn(job, seconds);
    tgi_job_learn_drop(job);
}
