/* refusal.c - see refusal.h.
 *
 * A remedy is never guessed: the options are changed, a second job is opened and planned beside
 * the one that failed, and only what the planner promises to fit is told, with the peak it
 * promised. What the failed job holds meanwhile is not counted (known.others_bytes of tg_job): the changed
 * command will run without it. Planning takes no memory to speak of, so explaining keeps to the
 * budget too.
 *
 * Kinds of change stand in one table, least loss first. Each is tried alone, from its mildest
 * step on; when none does, all that lose only time are tried together, and then with less and
 * less of the image. A refusal by the system instead of the budget (TG_E_NOMEM) is answered
 * within what is free now: there --ram is part of every change. */
#include "engine/verbs/refusal.h"
#include "engine/base/cancel.h"
#include "engine/job/copy.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_settings.h"
#include "engine/verbs/job_preview.h"
#include "engine/verbs/job_verify.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/pool.h"
#include "engine/base/reserve.h"
#include "engine/base/size.h"
#include "engine/job/job.h"
#include "engine/memory/caches.h"
#include "engine/memory/monitor.h"
#include "engine/plan/staged_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_SECONDS 3.0 /* of a processor: a busy machine finds the same remedies, later */
#define MIB ((uint64_t)1 << 20)

typedef struct asking {
    const tgi_err *err;
    tgi_machine machine; /* that refused: this one, or the one planned for */
    const tg_opts *opts;
    const tg_job *job; /* NULL: it could not be opened */
    tgi_verb verb;
    uint64_t room; /* largest --ram to propose */
    char ram[32];  /* that every change includes; "": none */
    double t0;
    double again; /* of the last plan that fitted: work that is done twice, of all */
    tg_refusal *out;
} asking;

static int set(tg_remedy *r, const char *name, const char *fmt, ...) TGI_PRINTF(3, 4);

/* Add an option to a change; 1, for the tables below. */
static int set(tg_remedy *r, const char *name, const char *fmt, ...)
{
    size_t i = 0;
    while (i < r->n_options && strcmp(r->option[i].name, name) != 0)
        i++;
    if (i == sizeof r->option / sizeof r->option[0])
        return 0;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(r->option[i].value, sizeof r->option[i].value, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof r->option[i].value)
        return 0; /* a name that was cut is another name */
    r->option[i].name = name;
    if (i == r->n_options)
        r->n_options++;
    return 1;
}

/* ---- Would it fit? ----------------------------------------------------------------------- */

static tg_status peak_of(tgi_verb verb, tg_job *job, uint64_t *peak, tgi_err *err)
{
    if (verb == TGI_DO_VERIFY)
        return tgi_job_verify_peak(job, peak, err);
    if (verb == TGI_DO_PREVIEW)
        return tgi_job_preview_peak(job, peak, err);
    TGI_TRY(tgi_job_plan_output(job, err));
    *peak = job->plan.bytes.total;
    return TG_OK;
}

/* A copy has no smaller form of itself. */
static tg_status copy_changed(const asking *a, const tg_opts *o, uint64_t *peak, tgi_err *err)
{
    TGI_TRY(tgi_copy_peak(o, peak, err));
    if (!tgi_opts_given(o, TGI_OPT_RAM) || *peak <= tgi_machine_budget(&a->machine, o, NULL))
        return TG_OK;
    return tgi_err_tried(err, tgi_fail(err, TG_E_BUDGET, "too near to the budget"), "copy",
                         *peak);
}

/* With an output that was interrupted: what it was begun with stays. */
static int goes_on(const asking *a)
{
    return a->job && a->job->plan.adopts;
}

/* The device that refused; with other precision its kernels are chosen again. */
static const tgi_job_device *as_it_was(const asking *a, const tg_opts *o, tgi_job_device *out)
{
    *out = a->job->refused;
    if (tgi_opts_choice(o, TGI_OPT_PRECISION) !=
        tgi_opts_choice(a->job->opts, TGI_OPT_PRECISION))
        out->element = TG_DTYPE_NONE;
    return out;
}

/* What the failed job holds, and the options of the trial, are not there when the changed
 * command runs. */
static tg_status plan_changed(asking *a, const tg_opts *o, uint64_t *peak, tgi_err *err)
{
    tg_job *trial = NULL;
    tgi_job_device device;
    if (a->verb == TGI_DO_COPY)
        return copy_changed(a, o, peak, err);
    TGI_TRY(tgi_job_open(NULL, o, &trial, err));
    if (a->job) {
        trial->known.others_bytes = trial->held_before - a->job->held_before;
        /* more of the program has come into memory since */
        trial->known.program_bytes = a->job->program_bytes;
    }
    if (goes_on(a))
        tgi_job_adopt(trial, &a->job->plan.adopted);
    if (a->job && a->job->refused.ops)
        trial->known.device = as_it_was(a, o, &device);
    tg_status st = peak_of(a->verb, trial, peak, err);
    a->again =
        st == TG_OK && a->verb == TGI_DO_RUN ? tgi_choice_recomputed(&trial->plan.choice) : 0;
    if (st == TG_OK && trial->plan.bytes.kept_disk > trial->scratch_place.free_bytes)
        st = TG_E_NO_SPACE; /* for a larger budget it would keep less there */
    if (st == TG_OK && trial->device_peak && a->job && a->job->refused_bytes)
        *peak = trial->device_peak;
    tgi_job_close(&trial);
    return st;
}

/* The budget that a refusal asked for: what a reader may decode in is a part of it. */
static uint64_t budget_asked(const tgi_err *err)
{
    return err->asked_by && strcmp(err->asked_by, TGI_DECODER_ASKS) == 0
               ? tgi_decode_needs(err->tried_bytes)
               : err->tried_bytes;
}

/* Plan with the change; fills r->peak_bytes. On TG_E_BUDGET *tried (NULL allowed) is what the
 * smallest plan needed. */
static tg_status predict(asking *a, tg_remedy *r, uint64_t *tried)
{
    tg_opts *o = NULL;
    tgi_err err = {0};
    tg_status st = tgi_opts_new(&o, &err);
    if (st == TG_OK)
        st = tgi_opts_copy(o, a->opts, &err);
    if (st == TG_OK && a->ram[0])
        set(r, "ram", "%s", a->ram);
    for (size_t i = 0; st == TG_OK && i < r->n_options; i++)
        st = tgi_opts_set(o, r->option[i].name, r->option[i].value, &err);
    if (st == TG_OK)
        st = plan_changed(a, o, &r->peak_bytes, &err);
    if (tried)
        *tried = budget_asked(&err);
    tgi_opts_free(&o);
    return st;
}

static int time_is_up(const asking *a)
{
    return tgi_processor_seconds() - a->t0 > MOST_SECONDS || tgi_cancel_signal() != 0;
}

static int is_full(const asking *a)
{
    return a->out->n_remedies == sizeof a->out->remedy / sizeof a->out->remedy[0];
}

static int keep_if_it_fits(asking *a, tg_remedy *r)
{
    if (is_full(a) || predict(a, r, NULL) != TG_OK)
        return 0;
    a->out->remedy[a->out->n_remedies++] = *r;
    return 1;
}

/* ---- Changes ----------------------------------------------------------------------------- */

/* Step k of a kind, from the mildest: 1 and the options, or 0 when there is no such step. */
typedef int (*change)(const asking *a, int step, tg_remedy *r);

static int free_tile(const asking *a, int step, tg_remedy *r)
{
    tgi_tile_spec t;
    tgi_opts_tile(a->opts, &t);
    return step == 0 && !t.automatic && set(r, "tile", "auto");
}

static int fewer_threads(const asking *a, int step, tg_remedy *r)
{
    int64_t n = tgi_opts_int(a->opts, TGI_OPT_THREADS, a->machine.processors);
    if (n >> step <= 1)
        return 0;
    n >>= step + 1;
    return set(r, "threads", "%lld", (long long)n);
}

static int scratch_on_disk(const asking *a, int step, tg_remedy *r)
{
    int in_memory;
    uint64_t free_bytes;
    const char *folder = tgi_machine_temp(&a->machine, &in_memory, &free_bytes);
    if (step || (a->verb != TGI_DO_RUN && a->verb != TGI_DO_PREVIEW) ||
        tgi_opts_given(a->opts, TGI_OPT_SCRATCH) || !folder || in_memory)
        return 0;
    return set(r, "scratch", "%s", folder);
}

static int no_compression(const asking *a, int step, tg_remedy *r)
{
    tgi_compress_spec c;
    tgi_opts_compress(a->opts, &c);
    return step == 0 && c.kind != TGI_COMPRESS_NONE && set(r, "compress", "none");
}

static int no_pyramid(const asking *a, int step, tg_remedy *r)
{
    return step == 0 && tgi_opts_pyramid(a->opts) != TGI_PYRAMID_NONE &&
           set(r, "pyramid", "none");
}

static int bfloat16(const asking *a, int step, tg_remedy *r)
{
    return step == 0 && a->verb != TGI_DO_COPY && a->job && !a->job->set.bf16 &&
           !a->job->set.descriptor.fp32_only && a->machine.bf16 &&
           a->job->set.backend->isa == a->machine.isa && set(r, "precision", "bf16");
}

/* Half of the longer side, again and again, from where the region begins. */
static int less_of_the_image(const asking *a, int step, tg_remedy *r)
{
    if (!a->job || !a->job->info || step > 12)
        return 0;
    const tgi_image_info *i = a->job->info;
    const int64_t extent[3] = {INT64_MAX / 2, i->height, i->width};
    tgi_range box[3] = {{0, 1}, {0, i->height}, {0, i->width}};
    tgi_roi_spec roi;
    if (tgi_opts_roi(a->opts, &roi) && tgi_roi_resolve(&roi, extent, box, NULL) != TG_OK)
        return 0;
    int64_t h = tgi_range_len(box[1]), w = tgi_range_len(box[2]);
    for (int k = 0; k <= step; k++) {
        int64_t *longer = h >= w ? &h : &w;
        if (*longer < 64)
            return 0;
        *longer = *longer / 32 * 16;
    }
    if (!set(r, "roi", "%lld:%lld,%lld:%lld", (long long)box[1].lo, (long long)(box[1].lo + h),
             (long long)box[2].lo, (long long)(box[2].lo + w)))
        return 0;
    snprintf(r->loses, sizeof r->loses, "all but %lld x %lld pixels of the image", (long long)h,
             (long long)w);
    return 1;
}

/* Half as far, again and again. */
static int shorter_reach(const asking *a, int step, tg_remedy *r)
{
    const int64_t n = tgi_opts_int(a->opts, TGI_OPT_REACH, 40) >> (step + 1);
    return n >= 2 && set(r, "reach", "%lld", (long long)n);
}

/* Fast sums have weights of four times the size. */
static int direct_sums(const asking *a, int step, tg_remedy *r)
{
    return step == 0 && a->job && tgi_job_draws(a->opts) && !a->job->set.exact &&
           !a->job->set.bf16 && set(r, "exact", "1");
}

static int smaller_frames(const asking *a, int step, tg_remedy *r)
{
    return step == 0 && !tgi_opts_given(a->opts, TGI_OPT_RESIZE_RATIO) &&
           set(r, "resize-ratio", "0.5");
}

/* Jobs that a change is for. */
enum { OF_IMAGES = 1, OF_FILMS = 2, OF_ALL = 3 }; /* OF_FILMS: something is removed from one */

static const struct {
    change step;
    const char *loses;
    int only_time; /* may be joined with others of the sort */
    int of;
} kinds[] = {
    {free_tile, "nothing", 1, OF_IMAGES},
    {scratch_on_disk, "disk space while it runs", 0, OF_ALL},
    {fewer_threads, "time", 1, OF_ALL},
    {no_compression, "disk space: a larger file", 0, OF_IMAGES},
    {bfloat16, "accuracy: some 3e-3 relative", 0, OF_IMAGES},
    {no_pyramid, "the smaller levels of the output", 0, OF_IMAGES},
    {direct_sums, "time: kernels whose weights are smaller; the same but for rounding", 0,
     OF_FILMS},
    {smaller_frames, "detail of what is filled in", 0, OF_FILMS},
    {shorter_reach, "what frames farther away would show", 0, OF_FILMS},
    {less_of_the_image, NULL, 0, OF_IMAGES},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])
#define LAST_OF_FILMS (N_KINDS - 2)

static int is_for(const asking *a, size_t k)
{
    return kinds[k].of & (tgi_job_inpaints(a->opts) ? OF_FILMS : OF_IMAGES);
}

/* The mildest step of one kind that fits, on top of `base`. */
static int try_kind(asking *a, size_t k, const tg_remedy *base)
{
    for (int step = 0; is_for(a, k) && !time_is_up(a); step++) {
        tg_remedy r = *base;
        if (!r.loses[0] && kinds[k].loses)
            snprintf(r.loses, sizeof r.loses, "%s", kinds[k].loses);
        if (!kinds[k].step(a, step, &r))
            return 0;
        if (keep_if_it_fits(a, &r))
            return 1;
    }
    return 0;
}

#define SLOW 0.25

/* More than just fits: where that computes much twice, the next step that does not. */
static void try_more_ram(asking *a, uint64_t bytes, uint64_t most, tg_remedy *least)
{
    char free_text[sizeof least->loses];
    snprintf(free_text, sizeof free_text, "%s", least->loses);
    snprintf(least->loses, sizeof least->loses, "time: %.0f %% of the work is done twice",
             100 * a->again);
    for (int i = 0; i < 4 && !is_full(a) && !time_is_up(a); i++) {
        tg_remedy r = {.n_options = 0};
        bytes = tgi_sat_add(bytes, bytes / 2 + MIB) / MIB * MIB;
        snprintf(r.loses, sizeof r.loses, "%s", free_text);
        set(&r, "ram", "%lluMiB", (unsigned long long)(bytes / MIB));
        if (bytes > most || predict(a, &r, NULL) != TG_OK)
            return;
        if (a->again <= SLOW) { /* loses less, so it comes first */
            a->out->remedy[a->out->n_remedies++] = *least;
            *least = r;
            return;
        }
    }
}

/* A larger budget, when so much is free: what the plan named, or what it names when asked with
 * that; `loses` says what it costs. */
static int try_ram(asking *a, uint64_t most, const char *loses)
{
    uint64_t bytes = tgi_sat_add(budget_asked(a->err), a->job ? a->job->program_more : 0);
    bytes = tgi_sat_add(bytes, MIB - 1) / MIB * MIB;
    if (a->out->budget_bytes >= bytes) /* of a part only */
        bytes = tgi_sat_mul(2, a->out->budget_bytes) / MIB * MIB;
    for (int i = 0; i < 12 && bytes <= most && !time_is_up(a); i++) {
        tg_remedy r = {.n_options = 0};
        uint64_t tried = 0;
        snprintf(r.loses, sizeof r.loses, "%s", loses);
        set(&r, "ram", "%lluMiB", (unsigned long long)(bytes / MIB));
        const tg_status st = predict(a, &r, &tried);
        if (st == TG_OK && !is_full(a)) {
            tg_remedy *kept = &a->out->remedy[a->out->n_remedies++];
            *kept = r;
            if (a->again > SLOW)
                try_more_ram(a, bytes, most, kept);
            return 1;
        }
        if (st != TG_E_BUDGET)
            return 0;
        tried = tgi_sat_add(tried, MIB - 1) / MIB * MIB;
        bytes = tried > bytes ? tried : tgi_sat_add(bytes, bytes / 2) / MIB * MIB;
    }
    return 0;
}

/* Everything that loses only time at once, alone and with less of the image. */
static void try_together(asking *a)
{
    tg_remedy all = {.loses = "time"};
    for (size_t k = 0; k < N_KINDS; k++)
        for (int step = 0; is_for(a, k) && kinds[k].only_time && kinds[k].step(a, step, &all);
             step++)
            ;
    if (tgi_job_inpaints(a->opts) && scratch_on_disk(a, 0, &all))
        snprintf(all.loses, sizeof all.loses, "%s", kinds[LAST_OF_FILMS].loses);
    if (!all.n_options || keep_if_it_fits(a, &all))
        return;
    (void)try_kind(a, tgi_job_inpaints(a->opts) ? LAST_OF_FILMS : N_KINDS - 1, &all);
}

static void find_remedies(asking *a)
{
    static const tg_remedy nothing = {.n_options = 0};
    const int system = a->err->code == TG_E_NOMEM;
    if (system) {
        tg_remedy r = {.loses = "time: more and smaller strips"};
        snprintf(a->ram, sizeof a->ram, "%lluMiB", (unsigned long long)(a->room / MIB));
        if (a->room < MIB || keep_if_it_fits(a, &r))
            return; /* the planner does the rest within it */
    } else if (tgi_opts_given(a->opts, TGI_OPT_RAM)) {
        (void)try_ram(a, a->room, "nothing: so much is free");
    }
    if (goes_on(a)) /* other settings are another output's */
        return;
    for (size_t k = 0; k < N_KINDS && !is_full(a) && !time_is_up(a); k++)
        (void)try_kind(a, k, &nothing);
    if (!system && !tgi_opts_given(a->opts, TGI_OPT_RAM))
        (void)try_ram(a, a->out->free_bytes, "the margin that is left to other programs");
    if (!a->out->n_remedies && !time_is_up(a))
        try_together(a);
}

/* ---- Of a device ------------------------------------------------------------------------- */

static int larger_vram(const asking *a, int step, tg_remedy *r)
{
    const tgi_job_device *d = &a->job->refused;
    const uint64_t mib = (a->job->refused_bytes + MIB - 1) / MIB;
    return step == 0 && mib * MIB <= d->context_bytes + d->free_bytes &&
           set(r, "vram", "%lluMiB", (unsigned long long)mib);
}

static int half_precision(const asking *a, int step, tg_remedy *r)
{
    const tgi_job_device *d = &a->job->refused;
    return step == 0 && d->element == TG_DTYPE_F32 && !a->job->set.exact && !a->job->set.tf32 &&
           !a->job->set.descriptor.fp32_only && d->ops->backend(TG_DTYPE_F16) &&
           set(r, "precision", "fp16");
}

static int on_the_processor(const asking *a, int step, tg_remedy *r)
{
    (void)a;
    return step == 0 && set(r, "device", "cpu");
}

static const struct {
    change step;
    const char *loses;
} device_kinds[] = {
    {larger_vram, "nothing: so much is free there"},
    {free_tile, "nothing"},
    {half_precision, "accuracy: tegula verify says how much"},
    {on_the_processor, "time: the processor computes"},
};

/* The memory that did not do is the device's: what is free there, and what would do. Trials
 * take its figures as they were; they make no context. */
static void explain_device(asking *a)
{
    const tg_job *job = a->job;
    const tgi_job_device *d = &job->refused;
    tg_refusal *out = a->out;
    out->asked_by = "the plan";
    out->tried_bytes = job->refused_bytes;
    out->free_bytes = d->context_bytes + d->free_bytes;
    out->budget_bytes = d->budget_bytes;
    snprintf(out->limited_by, sizeof out->limited_by, "%.200s", job->device_text);
    for (size_t k = 0; k < sizeof device_kinds / sizeof *device_kinds; k++) {
        tg_remedy r = {.n_options = 0};
        snprintf(r.loses, sizeof r.loses, "%s", device_kinds[k].loses);
        if (!time_is_up(a) && device_kinds[k].step(a, 0, &r))
            (void)keep_if_it_fits(a, &r);
    }
}

/* Memory that the plan counted on is not there: what somebody else took on the device is not ours
 * to plan with. */
static int device_refused(const tgi_err *err)
{
    return err->code == TG_E_NOMEM && err->asked_by &&
           strcmp(err->asked_by, TGI_DEVICE_ASKS) == 0;
}

static void explain_device_memory(asking *a)
{
    const tg_job *job = a->job;
    tg_refusal *out = a->out;
    tg_remedy r = {.loses = "time: the processor computes"};
    out->free_bytes = tgi_job_device_free_now(job);
    out->budget_bytes = job->dev.budget_bytes;
    snprintf(out->limited_by, sizeof out->limited_by, "%.200s", job->device_text);
    if (!goes_on(a) && on_the_processor(a, 0, &r))
        (void)keep_if_it_fits(a, &r);
}

/* ---- Figures ----------------------------------------------------------------------------- */

static void add_holder(tg_refusal *out, const char *tag, uint64_t bytes)
{
    const size_t cap = sizeof out->holder / sizeof out->holder[0];
    if (!bytes || (out->n_holders == cap && out->holder[cap - 1].bytes >= bytes))
        return;
    size_t at = out->n_holders < cap ? out->n_holders++ : cap - 1;
    for (; at > 0 && out->holder[at - 1].bytes < bytes; at--)
        out->holder[at] = out->holder[at - 1];
    out->holder[at] = (tg_holder){tag, bytes};
}

/* The pool's tags: what parts of the library hold, and the blocks of reservations by name. */
static void list_holders(tg_refusal *out)
{
    const char *tag[64];
    uint64_t bytes[64], named = 0;
    const uint64_t all = tgi_mem_measured();
    const size_t n = tgi_pool_holders(tgi_pool_engine(), tag, bytes, 64);
    for (size_t i = 0; i < n; named += bytes[i++])
        add_holder(out, tag[i], bytes[i]);
    if (tgi_pages_kept())
        add_holder(out, "kept for the next job", tgi_pages_kept());
    named += tgi_pages_kept();
    add_holder(out, "program and libraries", all > named ? all - named : 0);
}

/* The largest budget to propose. Where the system refused, its margin may be more than there
 * is: a tenth of what is free is left then. */
static uint64_t room_now(const tgi_err *err, tgi_machine *m)
{
    tgi_machine_look_again(m);
    return err->code == TG_E_NOMEM
               ? tgi_sat_add(m->free_bytes - m->free_bytes / 10, m->own_bytes)
               : tgi_budget_of(m->free_bytes, m->own_bytes);
}

static void explain(asking *a)
{
    const tgi_err *err = a->err;
    tg_refusal *out = a->out;
    if (a->job && a->opts && device_refused(err)) {
        a->t0 = tgi_processor_seconds();
        explain_device_memory(a);
        return;
    }
    if (a->job && a->job->refused_bytes) {
        a->t0 = tgi_processor_seconds();
        explain_device(a);
        return;
    }
    if (!a->opts || tgi_machine_of(a->opts, &a->machine, NULL) != TG_OK)
        tgi_machine_here(&a->machine);
    out->free_bytes = a->machine.free_bytes;
    snprintf(out->limited_by, sizeof out->limited_by, "%s", a->machine.limited_by);
    if (a->machine.here)
        list_holders(out);
    if (!a->opts)
        return;
    out->budget_bytes = a->job && a->job->plan.budget
                            ? a->job->plan.budget
                            : tgi_machine_budget(&a->machine, a->opts, NULL);
    if (!err->asked_by || strcmp(err->asked_by, TGI_HEADER_ASKS) == 0)
        return; /* a small block, or what opening with more allowed would take at once: not the
                   plan's to cure */
    (void)tgi_caches_clear();
    a->room = room_now(err, &a->machine); /* without them */
    a->t0 = tgi_processor_seconds();
    find_remedies(a);
}

void tgi_refusal_explain(const tgi_err *err, tgi_verb verb, const tg_opts *opts,
                         const tg_job *job, tg_refusal *out)
{
    memset(out, 0, sizeof *out);
    if (!job || !job->refused_bytes || device_refused(err)) {
        out->asked_by = err->asked_by ? err->asked_by : "an allocation";
        out->tried_bytes = err->asked_by             ? err->tried_bytes
                           : err->code == TG_E_NOMEM ? tgi_mem_refused_bytes()
                                                     : 0;
    }
    /* Plans are made in there: a machine is too much for a small stack beneath them. */
    asking *a = tgi_calloc(TGI_TAG_MISC, 1, sizeof *a);
    if (!a)
        return;
    *a = (asking){.err = err, .opts = opts, .job = job, .verb = verb, .out = out};
    explain(a);
    tgi_free(a);
}
