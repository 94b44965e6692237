/* job_plan.c - choose the tiling that fits and say, line by line, what the run will hold.
 *
 *   budget >= process + allowance + decoder + weights + staging + window + journal + arena
 *
 * `process` is what this process holds already (program, parsed model, indexes of the input);
 * the others are sizes of blocks in the one reservation, except `journal` (its tables),
 * `decoder` (block buffers of the reader, not touched before they are used) and `allowance`
 * (stacks, slack of the libraries' allocator), which lie outside it. `page_tables` map the
 * blocks. */
#include "engine/job/job_plan.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/device_kinds.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_open.h"
#include "engine/job/job_post.h"
#include "engine/job/page_tables.h"
#include "engine/job/plan_device.h"
#include "engine/job/plan_report.h"
#include "engine/job/plan_seconds.h"
#include "engine/job/plan_stages.h"
#include "engine/job/source_device.h"
#include "engine/memory/monitor.h"
#include "io/film_out.h"

#include <stdio.h>
#include <string.h>

/* ---- Room -------------------------------------------------------------------------------- */

#define FEW_THREADS 16
#define SET_BYTES ((size_t)768)
#define STACK_TOUCHED                                                                          \
    ((size_t)16 << 10) /* of each; 8 to 12 KiB were seen, and an arena's slack */

/* Stacks of more threads than the allowance was measured with come on top. */
static size_t allowance_of(const tg_job *job)
{
    const int more = job->set.threads - FEW_THREADS;
    /* Statistics of each plane: the sets, the journal's copy, their text in the receipt. */
    const size_t sets =
        job->map.stats_by_item ? tgi_sat_mul((size_t)job->map.n_stats, SET_BYTES) : 0;
    return tgi_sat_add(TGI_ALLOWANCE_BYTES + (more > 0 ? (size_t)more * STACK_TOUCHED : 0),
                       sets);
}

tgi_bytes tgi_plan_first_bytes(tg_job *job)
{
    tgi_choice_free(&job->plan.choice);
    tgi_stages_forget(job->plan.stages); /* counted where they are filled in again */
    return (tgi_bytes){.process = tgi_job_process_bytes(job),
                       .allowance = allowance_of(job),
                       .carried = job->carried_bytes};
}

static size_t fixed_bytes(const tg_job *job)
{
    const tgi_bytes *b = &job->plan.bytes;
    return b->process + b->allowance + b->journal + b->decoder + b->inpaint + b->weights +
           b->scratch + b->receipt + b->picture + b->index + b->tables + b->pyramid +
           b->statistics + b->rows + b->carried + job->plan.ask.beside;
}

#define CHECK_BYTES ((size_t)64 << 10)

/* What a first pass takes of a reservation that has no arena for it: that lies on a device. So does
 * a look at what a stopped run left on disk. */
static size_t pass_beside(const tg_job *job)
{
    const size_t pass = tgi_job_pass_ops(job) ? job->ends->first_pass(job) : 0;
    const size_t check = tgi_job_pass_ops(job) && tgi_plan_keeps_on_disk(job) ? CHECK_BYTES : 0;
    return pass > check ? pass : check;
}

/* Blocks that are mapped whatever the tiling. */
static size_t mapped_bytes(const tg_job *job)
{
    const tgi_bytes *b = &job->plan.bytes;
    return b->weights + b->receipt + b->rows + b->carried + pass_beside(job);
}

/* What a tiling may take of this machine's memory. */
size_t tgi_plan_host_room(const tg_job *job)
{
    const tgi_plan_part *p = &job->plan;
    const size_t taken =
        tgi_sat_add(tgi_sat_add(fixed_bytes(job), pass_beside(job)), job->dev.host_over);
    return p->budget > taken ? tgi_room_beside(p->budget - taken, mapped_bytes(job)) : 0;
}

size_t tgi_plan_least_bytes(const tg_job *job)
{
    const size_t host = tgi_job_pass_ops(job)
                            ? tgi_sat_add(job->dev.host_least, job->dev.host_over)
                            : job->plan.choice.smallest_bytes;
    return tgi_sat_add(tgi_with_tables(host, mapped_bytes(job)),
                       tgi_sat_add(fixed_bytes(job), pass_beside(job)));
}

/* ---- Choose ------------------------------------------------------------------------------ */

double tgi_flops_per_second(tgi_isa isa, int threads)
{
    static const double per_thread[TGI_ISA_COUNT] = {
        [TGI_ISA_PORTABLE] = 20e9, [TGI_ISA_AVX2] = 110e9, [TGI_ISA_AVX512] = 200e9};
    return per_thread[isa] * threads;
}

static double flops_of(const tgi_settings *s)
{
    return tgi_flops_per_second(s->backend->isa, s->threads);
}

static size_t beside_of(void *user, const tgi_tiling *t)
{
    const tg_job *job = user;
    return job->ends->beside(job, t);
}

static size_t device_extra_of(void *user, const tgi_tiling *t)
{
    return tgi_job_device_extra(user, t, tgi_plan_host_room(user));
}

void tgi_plan_args(tg_job *job, const int64_t fixed[3], tgi_choose_args *a)
{
    const int device = tgi_job_pass_ops(job) != NULL;
    *a = (tgi_choose_args){.stage = &job->plan.stages->one,
                           .threads = job->set.threads,
                           .limit_bytes =
                               device ? job->dev.limit_bytes : tgi_plan_host_room(job),
                           .flops_per_second = flops_of(&job->set),
                           .seconds = device ? tgi_job_device_seconds : NULL,
                           .tallest = device ? TGI_JOB_DEVICE_TALLEST : 0,
                           .extra = device ? device_extra_of : beside_of,
                           .user = job};
    job->ends->unit(job, a->unit);
    memcpy(a->fixed, fixed, sizeof a->fixed);
}

int tgi_plan_fits(tg_job *job, const int64_t fixed[3])
{
    tgi_choose_args a;
    tgi_choice c;
    tgi_plan_args(job, fixed, &a);
    const int fits = tgi_choose(&a, &c, NULL) == TG_OK;
    if (fits)
        tgi_tiling_free(&c.tiling);
    return fits;
}

/* A device's weights are no memory of ours but while they are sent, which its extra counts. */
static void set_weights(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    p->bytes.weights = tgi_job_pass_ops(job) ? 0 : tgi_align_size(p->net->packed_bytes, 64);
}

/* With the net's kernels as they are: the adopted tiling when it fits, else the best there is
 * on the same file grid. */
static tg_status choose_tiling(void *user, tgi_choice *out)
{
    tg_job *job = user;
    tgi_plan_part *p = &job->plan;
    set_weights(job);
    tgi_choose_args a;
    tgi_plan_args(job, p->fixed, &a);
    job->dev.host_least = SIZE_MAX;
    job->dev.kept_bytes = job->dev.place_least = 0;
    job->dev.host_stage = NULL;
    *out = (tgi_choice){.smallest_bytes = SIZE_MAX};
    if (p->adopts && p->adopted.staged >= (int64_t)p->budget && tgi_plan_may_stage(job) &&
        tgi_plan_stages(job, &a, out) == TG_OK) { /* what its stages have done stays of use */
        out->beside_bytes = p->bytes.weights;
        return TG_OK;
    }
    /* The cells of a last stage, each of which would compute all of the image in one pass, are no
     * way to go on. */
    if (p->adopts && !(p->adopted.staged && p->stages->one.whole_op)) {
        tgi_tiling t;
        TGI_TRY(tgi_tiling_make(&p->stages->one, p->adopted.cut, p->adopted.band,
                                job->set.threads, NULL, &t, NULL));
        if (tgi_sat_add(t.arena_bytes, a.extra(job, &t)) <= a.limit_bytes) {
            memset(out, 0, sizeof *out);
            out->tiling = t;
            out->seconds = t.work / a.flops_per_second;
            return TG_OK;
        }
        tgi_tiling_free(&t);
    }
    tg_status st = tgi_choose(&a, out, NULL);
    if (st == TG_E_BUDGET && tgi_plan_may_stage(job))
        st = tgi_plan_stages(job, &a, out);
    tgi_job_device_next_place(job);
    out->beside_bytes = p->bytes.weights;
    return st;
}

/* What an interrupted run used of kernels stays, for the bits' sake. */
tg_status tgi_plan_choose(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    const int given = p->adopts ? (int)p->adopted.fast : -1;
    const tg_status st = tgi_choose_kernels(p->net, given, !job->set.tile.automatic,
                                            choose_tiling, job, &p->choice);
    set_weights(job);
    tgi_plan_drop_cuts(job);
    return st;
}

tg_status tgi_job_net(tg_job *job, const tgi_desc *in, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    if (!p->net)
        TGI_TRY(tgi_net_new(job->graph,
                            tgi_job_pass_ops(job) ? job->dev.ops->backend(job->dev.element)
                                                  : job->set.backend,
                            in, tgi_job_net_flags(job), &p->net, err));
    if (!p->stages)
        TGI_TRY(tgi_stages_new(p->net, &p->stages, err));
    p->whole_text[0] = 0;
    if (job->set.norm_tiles) /* nothing needs the image */
        return TG_OK;
    if (tgi_plan_knows_stages(job))
        tgi_stages_at_once_text(p->stages, p->whole_text, sizeof p->whole_text);
    else
        tgi_stage_whole_text(&p->stages->one, p->whole_text, sizeof p->whole_text);
    return TG_OK;
}

/* ---- Refusals ---------------------------------------------------------------------------- */

const char *tgi_plan_ram_text(const tg_job *job, size_t least, char *buf, size_t cap)
{
    least = tgi_sat_add(least, (size_t)job->program_more);
    const int large = least >> 30 >= 100; /* nobody types seven digits of MiB */
    const size_t round = (size_t)1 << (large ? 30 : 20);
    snprintf(buf, cap, "%zu%s", least / round + (least % round != 0), large ? "GiB" : "MiB");
    return buf;
}

/* No tiling could be counted: why the device could not, else its sum is past all memory. */
static tg_status no_figure(const tg_job *job, tgi_err *err)
{
    if (tgi_job_pass_ops(job) && job->uncounted.code != TG_OK)
        return tgi_fail(err, job->uncounted.code, "%s: %s", job->device_text,
                        job->uncounted.text);
    return tgi_fail(err, TG_E_BUDGET,
                    "the smallest plan needs more memory than can be counted: give a smaller "
                    "image, or --roi");
}

#define MAPPED_MORE ((size_t)4 << 20) /* stacks, and the border that a reservation begins on */

/* What of `least` is not held yet does not fit under a limit of the shell: no --ram helps then. */
static int say_limit(const tg_job *job, size_t least, char *out, size_t cap)
{
    tgi_free_memory now;
    char left[32];
    if (!job->machine.here)
        return 0;
    const uint64_t room = tgi_mem_available(&now), held = tgi_mem_measured();
    const char *option = tgi_free_memory_option(&now);
    if (!option || tgi_sat_add(room, held) >= tgi_sat_add(least, MAPPED_MORE))
        return 0;
    snprintf(out, cap, "a larger %s (%s are left of it)", option,
             tgi_size_below(room, left, sizeof left));
    return 1;
}

tg_status tgi_job_refuse_host(tg_job *job, size_t least, tgi_err *err)
{
    const char *whole = job->plan.stages->one.whole_op;
    char need[32], have[32], must[64];
    if (least == SIZE_MAX)
        return no_figure(job, err);
    tgi_size_above(least, need, sizeof need);
    tgi_size_below(job->plan.budget, have, sizeof have);
    if (job->plan.ask.remedy) {
        snprintf(must, sizeof must, "%s", job->plan.ask.remedy);
    } else if (!say_limit(job, least, must, sizeof must)) {
        memcpy(must, "--ram ", 6);
        tgi_plan_ram_text(job, least, must + 6, sizeof must - 6);
    }
    if (tgi_job_pass_ops(job)) {
        tgi_job_device_keep_refused(job);
        return tgi_fail(err, TG_E_BUDGET,
                        "the smallest plan on %s needs %s of this machine's memory, the budget "
                        "is %s: give %s",
                        job->device_text, need, have, must);
    }
    if (tgi_plan_may_stage(job))
        return tgi_plan_refuse_stages(job, least, need, have, must, err);
    if (whole && job->set.norm_tiles)
        return tgi_fail(
            err, TG_E_BUDGET,
            "\"%s\" reads a whole tile with its surroundings, which needs %s at once; "
            "the budget is %s: give %s, or a smaller --tile",
            whole, need, have, must);
    if (whole)
        return tgi_fail(err, TG_E_BUDGET,
                        "\"%s\" reads the whole image, which needs %s at once; the budget is "
                        "%s: give %s%s",
                        whole, need, have, must,
                        job->source ? ", or a smaller --roi" : ", or a smaller array");
    return tgi_fail(err, TG_E_BUDGET, "the smallest plan needs %s, the budget is %s: give %s",
                    need, have, must);
}

/* What an interrupted output has decided is not what a plan without it would choose. */
static void say_what_stays(const tg_job *job, tgi_err *err)
{
    const tgi_plan_part *p = &job->plan;
    const size_t n = err ? strlen(err->text) : 0;
    if (err && p->adopts && p->layout)
        snprintf(err->text + n, sizeof err->text - n,
                 "; the interrupted output goes on in its tiles of %lldx%lld (-y discards it)",
                 (long long)p->tile_h, (long long)p->tile_w);
}

#define HELD_WORTH_A_WORD ((uint64_t)32 << 20)

/* A program that calls us may hold more than the network takes: no option makes that smaller. */
static void say_what_is_held(const tg_job *job, size_t least, tgi_err *err)
{
    const size_t n = err ? strlen(err->text) : 0;
    char size[32];
    if (err && least != SIZE_MAX && job->program_bytes >= HELD_WORTH_A_WORD &&
        job->program_bytes >= least / 4)
        snprintf(err->text + n, sizeof err->text - n, "; %s of it the program held before",
                 tgi_size_text(job->program_bytes, size, sizeof size));
}

static tg_status refuse(tg_job *job, tgi_err *err)
{
    const tgi_plan_part *p = &job->plan;
    const size_t on_device = p->choice.smallest_bytes;
    size_t least = tgi_plan_least_bytes(job);
    if (tgi_job_pass_ops(job) && on_device != SIZE_MAX && on_device > job->dev.limit_bytes)
        return tgi_job_device_refuse(job, on_device, err);
    if (tgi_job_pass_ops(job) && p->choice.tiling.slot && p->bytes.total > least)
        least = p->bytes.total;
    const tg_status st = job->ends->refuse(job, least, err);
    if (st == TG_E_BUDGET) {
        say_what_is_held(job, least, err);
        say_what_stays(job, err);
    }
    return st == TG_E_BUDGET ? tgi_err_tried(err, st, "the plan", least) : st;
}

/* ---- Plan -------------------------------------------------------------------------------- */

static void arena_line(tg_job *job, const char *one)
{
    const tgi_staged *s = job->plan.choice.staged;
    char text[96];
    snprintf(text, sizeof text, "activations of the largest of %d stages, rows on their way in",
             s ? s->n : 1);
    tgi_job_add_line(&job->plan, "arena", job->plan.bytes.arena, TG_PLAN_MEMORY, 0, "%s",
                     s ? text : one);
}

void tgi_plan_decoder_line(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    char text[96] = "blocks of the input being decompressed";
    if (tgi_film_source_is_stream(job->source))
        snprintf(text, sizeof text, "the frame that comes through the pipe, %d that are kept",
                 tgi_film_source_keeps(job->source));
    if (p->bytes.decoder)
        tgi_job_add_line(p, "decoder", p->bytes.decoder, TG_PLAN_MEMORY, 0, "%s", text);
    tgi_job_inpaint_line(job);
}

void tgi_plan_process_lines(tg_job *job, const char *process)
{
    tgi_plan_part *p = &job->plan;
    const tgi_bytes *b = &p->bytes;
    tgi_job_add_line(p, "process", b->process, TG_PLAN_MEMORY, 0, "%s", process);
    tgi_job_add_line(p, "page tables", b->page_tables, TG_PLAN_MEMORY, 0, "%s",
                     "of the blocks above");
    tgi_job_add_line(p, "allowance", b->allowance, TG_PLAN_MEMORY, 0, "%s",
                     "stacks, library slack");
}

void tgi_plan_network_lines(tg_job *job, const char *weights, const char *arena)
{
    tgi_plan_part *p = &job->plan;
    const tgi_bytes *b = &p->bytes;
    if (tgi_job_pass_ops(job)) {
        tgi_job_device_lines(job);
        if (b->arena)
            tgi_job_add_line(
                p, "arena", b->arena, TG_PLAN_MEMORY, 0, "%s",
                "of the first pass over the image, and of a look at what lies on disk");
    } else {
        tgi_job_add_line(p, "weights", b->weights, TG_PLAN_MEMORY, 0, "%s", weights);
        arena_line(job, arena);
    }
    tgi_plan_stage_lines(job);
    if (b->carried)
        tgi_job_add_line(p, "state", b->carried, TG_PLAN_MEMORY, 0, "%s",
                         "what the network hands from frame to frame, twice");
}

/* Rows on their way in lie in the arena then. */
static void count_stages(tg_job *job)
{
    tgi_bytes *b = &job->plan.bytes;
    const tgi_staged *s = job->plan.choice.staged;
    b->kept = b->states = b->numbers = b->tilings = 0;
    b->kept_disk = 0;
    if (!s)
        return;
    b->arena = tgi_job_pass_ops(job) ? 0 : s->arena_bytes;
    b->staging = 0;
    for (int k = 0; tgi_job_pass_ops(job) && k < s->n; k++) /* else in the arena */
        if (job->ends->rows_in(job, &s->tiling[k]) > b->staging)
            b->staging = job->ends->rows_in(job, &s->tiling[k]);
    b->kept = s->kept_bytes;
    b->states = s->state_bytes;
    b->numbers = tgi_align_size(s->n_numbers * sizeof(float), 64);
    b->tilings = s->held_bytes;
    b->kept_disk = s->disk_bytes;
}

static void add_up(tg_job *job)
{
    tgi_bytes *b = &job->plan.bytes;
    const size_t kept = b->kept + b->states + b->numbers;
    b->page_tables = tgi_page_table_bytes(b->weights + b->arena + b->staging + b->window +
                                          b->rows + b->receipt + b->carried + kept);
    b->total = fixed_bytes(job) + b->arena + b->staging + b->window + kept + b->tilings +
               b->page_tables + b->pinned;
}

/* All bytes of what was chosen. */
static tg_status count(tg_job *job, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    tgi_bytes *b = &p->bytes;
    const size_t pass = tgi_job_pass_ops(job) ? pass_beside(job) : job->ends->first_pass(job);
    job->ends->count(job);
    if (tgi_job_pass_ops(job))
        TGI_TRY(tgi_job_device_count(job, tgi_plan_host_room(job), err));
    b->arena = tgi_job_pass_ops(job) ? 0 : p->choice.tiling.arena_bytes;
    count_stages(job);
    if (b->arena < pass)
        b->arena = pass;
    add_up(job);
    if (job->ends->widen && b->total < p->budget) {
        b->window += job->ends->widen(job, p->budget - b->total);
        add_up(job);
    }
    return TG_OK;
}

static tg_status conclude(tg_job *job, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    if (p->bytes.total > p->budget)
        return refuse(job, err);
    if (job->post)
        TGI_TRY(tgi_job_post_count(job, err));
    p->n_lines = 0;
    job->ends->write_lines(job);
    if (job->post)
        tgi_job_post_lines(job);
    p->valid = 1;
    return TG_OK;
}

void tgi_job_drop_plan(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    p->valid = 0;
    tgi_choice_free(&p->choice);
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
}

tgi_decided tgi_job_decided(const tg_job *job)
{
    const tgi_plan_part *p = &job->plan;
    const tgi_tiling *t = &p->choice.tiling;
    return (tgi_decided){.cut = {t->cut[0], t->cut[1], t->cut[2]},
                         .band = t->band,
                         .tile_h = p->tile_h,
                         .tile_w = p->tile_w,
                         .fast = p->net->n_used,
                         .staged = p->choice.staged ? (int64_t)p->budget : 0};
}

void tgi_job_adopt(tg_job *job, const tgi_decided *d)
{
    job->plan.adopts = 1;
    job->plan.adopted = *d;
    tgi_job_drop_plan(job);
}

void tgi_job_adopt_none(tg_job *job)
{
    job->plan.adopts = 0;
    job->dev.settled = 0;
    tgi_job_drop_plan(job);
}

/* Net and tiling, from the first grid on. */
static tg_status plan_afresh(void *user, tgi_err *err)
{
    tg_job *job = user;
    TGI_TRY(tgi_job_net(job, job->ends->shapes(job), err));
    job->ends->fit(job, job->plan.stages);
    const tg_status st = job->ends->choose(job, err);
    if (st == TG_E_BUDGET)
        return refuse(job, err);
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "no memory to plan");
}

/* A plan that was asked for is about to be run: drop it unless the device is as it was
 * supposed to be. Where there is none any more, `auto` goes back to the processor. */
static tg_status confirm(tg_job *job, tgi_err *err)
{
    int holds = 1;
    tgi_err e = {0};
    if (!job->plan.valid || !job->plan.ask.measured)
        return TG_OK;
    const tg_status st = tgi_job_device_confirm(job, &holds, &e);
    if (st != TG_OK)
        return job->dev.by_name ? tgi_fail(err, st, "%s", e.text)
                                : tgi_job_device_leave(job, e.text, err);
    if (!holds)
        tgi_job_drop_plan(job);
    return TG_OK;
}

static tg_status choose_and_count(tg_job *job, tgi_err *err)
{
    TGI_TRY(tgi_job_plan_on_device(job, job->ends->shapes(job), plan_afresh, job, err));
    if (!tgi_job_pass_ops(job))
        TGI_TRY(plan_afresh(job, err));
    if (job->ends->choose_again)
        TGI_TRY(job->ends->choose_again(job, err));
    return count(job, err);
}

#define TOGETHER_TRIED 6

/* What the one before was refused is no matter of this one. Of stages on a device one may pin most
 * and another read the longest rows: then all are chosen again, with less. */
static tg_status attempt(tg_job *job, tgi_err *err)
{
    const tgi_plan_part *p = &job->plan;
    *err = (tgi_err){0};
    job->refused_bytes = 0;
    job->refused.ops = NULL;
    job->uncounted.code = TG_OK;
    job->dev.host_over = 0;
    for (int i = 0;; i++) {
        TGI_TRY(choose_and_count(job, err));
        if (!tgi_job_pass_ops(job) || !p->choice.staged || p->bytes.total <= p->budget ||
            i == TOGETHER_TRIED)
            return conclude(job, err);
        job->dev.host_over += job->dev.host_over + (p->bytes.total - p->budget);
        tgi_job_drop_plan(job);
    }
}

tg_status tgi_job_plan(tg_job *job, tgi_plan_ask ask, tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    tgi_err e = {0};
    p->ask = ask;
    TGI_TRY(confirm(job, err));
    if (p->valid)
        return TG_OK;
    TGI_TRY(tgi_job_plan_source(job, err));
    p->scratch.no_room = 0;
    job->program_measured = 0;
    tgi_machine_look_again(&job->machine);
    TGI_TRY(job->ends->begin(job, err));
    p->budget = tgi_machine_budget(&job->machine, job->opts, &p->margin);
    const size_t allowed = p->budget;
    if (job->ran_out && p->budget > job->ran_out - job->ran_out / 8)
        p->budget = job->ran_out - job->ran_out / 8;
    tg_status st = attempt(job, &e);
    while (st == TG_E_BUDGET && tgi_job_spare_source(job))
        st = attempt(job, &e);
    if (st == TG_E_BUDGET && job->ran_out) { /* it is as small as it can be */
        p->budget = job->ran_out - 1 < allowed ? job->ran_out - 1 : allowed;
        st = attempt(job, &e);
    }
    if (st == TG_E_BUDGET && job->set.scratch && job->source) {
        p->scratch.no_room = 1;
        st = attempt(job, &e);
    }
    if (st != TG_OK) {
        tgi_err stopped = {0};
        const tg_status why = tgi_check_cancel(&stopped); /* what fits was not found out then */
        if (err)
            *err = why == TG_OK ? e : stopped;
        return why == TG_OK ? st : why;
    }
    tgi_job_plan_seconds(job);
    return TG_OK;
}
