/* plan_report.c - the plan as the public structs and as JSON. */
#include "engine/job/plan_report.h"
#include "engine/base/mem.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/device_kinds.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_settings.h"
#include "engine/plan/staged_text.h"
#include "io/film_out.h"
#include "tegula_memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void tgi_job_add_line(tgi_plan_part *p, const char *name, uint64_t bytes, tg_plan_kind kind,
                      uint64_t free_bytes, const char *fmt, const char *arg)
{
    if (p->n_lines == TGI_MAX_PLAN_LINES)
        return;
    char *note = p->note[p->n_lines];
    snprintf(note, sizeof p->note[0], fmt, arg);
    p->line[p->n_lines++] = (tg_plan_line){name, note, bytes, kind, free_bytes};
}

void tgi_job_add_margin(tgi_plan_part *p)
{
    if (p->margin)
        tgi_job_add_line(
            p, "margin", p->margin, TG_PLAN_MARGIN, 0, "%s",
            "left free beside the budget: max(512 MiB, 10 %); --ram decides instead");
}

/* Of all stages what else is of one pass. */
static void add_staged(const tgi_staged *s, tg_plan_info *out)
{
    const tgi_staged_sums sum = tgi_staged_sum(s);
    out->arena_bytes = s->arena_bytes;
    out->lower_bound_bytes = sum.lower_bound_bytes;
    out->strips = sum.cells;
    out->bands = sum.bands;
    out->flops = sum.flops;
    out->recomputed_fraction = tgi_staged_recomputed(s);
    memcpy(out->halo, sum.halo, sizeof out->halo);
    out->staged = 1;
    out->kept_values = s->n_kept;
    out->kept_bytes = s->kept_bytes;
    out->kept_disk_bytes = s->disk_bytes;
}

void tgi_job_plan_info(const tg_job *job, tg_plan_info *out)
{
    const tgi_plan_part *p = &job->plan;
    const tgi_tiling *t = &p->choice.tiling;
    const size_t size = out->size;
    *out = (tg_plan_info){
        .size = size,
        .peak_bytes = p->bytes.total,
        .budget_bytes = p->budget,
        .arena_bytes = t->arena_bytes,
        .lower_bound_bytes = t->lower_bound_bytes,
        .stages = job->set.norm_tiles ? 1 : job->plan.stages->n,
        .strips = t->cells,
        .bands = t->bands,
        .items = tgi_film_source_is_stream(job->source) ? 1 : job->ends->items(job),
        .flops = t->flops,
        .recomputed_fraction = tgi_tiling_recomputed(t),
        .lines = p->line,
        .n_lines = (size_t)p->n_lines,
        .whole_image_only = p->whole_text[0] ? p->whole_text : NULL};
    memcpy(out->tile, t->cut, sizeof out->tile);
    memcpy(out->halo, t->halo, sizeof out->halo);
    if (p->choice.staged)
        add_staged(p->choice.staged, out);
    out->flops *= (double)out->items;
    out->flops += tgi_inpaint_flops(job->source) * (double)out->items;
    out->seconds_estimate = p->seconds;
    out->seconds_least = p->seconds - p->masks_decide;
    out->is_endless = tgi_film_source_is_stream(job->source);
    out->calibrated = p->calibrated;
    out->lessons = p->lessons;
    out->machine = job->machine.here ? NULL : job->machine_text;
    if (job->dev.ops) {
        const tgi_job_device *d = &job->dev;
        out->device = job->device_text;
        out->device_peak_bytes = tgi_job_device_planned(job);
        out->device_budget_bytes = d->budget_bytes;
    }
    if (!job->dev.ops && job->device_text[0])
        out->device_notice = job->device_text;
}

static void put_triple(tgi_jw *w, const char *key, const int64_t v[3])
{
    tgi_jw_begin(w, key, '[');
    for (int i = 0; i < 3; i++)
        tgi_jw_int(w, NULL, v[i]);
    tgi_jw_end(w, ']');
}

static void put_lines(tgi_jw *w, const tg_plan_info *i)
{
    static const char *const kind[] = {"memory", "disk", "margin", "device", "device_margin"};
    tgi_jw_begin(w, "lines", '[');
    for (size_t k = 0; k < i->n_lines; k++) {
        const tg_plan_line *l = &i->lines[k];
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "kind", kind[l->kind]);
        tgi_jw_str(w, "name", l->name);
        tgi_jw_uint(w, "bytes", l->bytes);
        if (l->kind == TG_PLAN_DISK && l->free_bytes == TG_NO_LIMIT)
            tgi_jw_num(w, "free_bytes", NAN); /* null: not known */
        else if (l->kind == TG_PLAN_DISK)
            tgi_jw_uint(w, "free_bytes", l->free_bytes);
        tgi_jw_str(w, "note", l->note);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

/* Of another machine than this: which. */
static void put_machine(tgi_jw *w, const tgi_machine *m)
{
    tgi_jw_begin(w, "machine", '{');
    tgi_jw_str(w, "file", m->name);
    tgi_jw_str(w, "processor", m->processor);
    tgi_jw_int(w, "processors", m->processors);
    tgi_jw_str(w, "instruction_set", tgi_isa_name(m->isa));
    tgi_jw_bool(w, "bf16", m->bf16);
    tgi_jw_end(w, '}');
}

/* What decoding the input costs, and what scratch does about it. */
static void put_decoding(tgi_jw *w, const tg_job *job)
{
    const tgi_scratch_part *s = &job->plan.scratch;
    tgi_jw_num(w, "decode_passes", s->used ? 1 : s->passes);
    tgi_jw_begin(w, "scratch", '{');
    tgi_jw_bool(w, "used", s->used);
    tgi_jw_bool(w, "helps", s->helps);
    tgi_jw_uint(w, "bytes", s->bytes);
    tgi_jw_num(w, "decode_passes_without", s->passes);
    tgi_jw_str(w, "why", s->why);
    tgi_jw_end(w, '}');
}

static int same_plan(const tgi_tried *a, const int64_t cut[3], int64_t band)
{
    return a->band == band && memcmp(a->cut, cut, sizeof a->cut) == 0;
}

/* Each once: the search looks at some again. */
static int was_told(const tgi_choice *c, int i)
{
    int k = 0;
    while (!same_plan(&c->tried[k], c->tried[i].cut, c->tried[i].band))
        k++;
    return k < i;
}

static void put_rejected(tgi_jw *w, const tgi_plan_part *p)
{
    tgi_jw_begin(w, "rejected", '[');
    for (int i = 0; i < p->choice.n_tried; i++) {
        const tgi_tried *t = &p->choice.tried[i];
        const int chosen =
            p->valid && same_plan(t, p->choice.tiling.cut, p->choice.tiling.band);
        if (chosen || was_told(&p->choice, i))
            continue;
        tgi_jw_begin(w, NULL, '{');
        put_triple(w, "tile", t->cut);
        tgi_jw_int(w, "band", t->band);
        tgi_jw_uint(w, "bytes", t->bytes);
        tgi_jw_num(w, "seconds_estimate", t->seconds);
        tgi_jw_num(w, "recomputed_fraction", t->recomputed);
        tgi_jw_str(w, "why", t->fits && p->valid ? "slower" : "does not fit");
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

/* Take the text, or throw it away after a failure. */
static tg_status finish(tgi_jw *w, tg_status st, char **json, tgi_err *err)
{
    char *text = NULL;
    const tg_status taken = tgi_jw_take(w, &text, err);
    if (st == TG_OK)
        st = taken;
    if (st == TG_OK)
        *json = text;
    else
        tgi_free(text);
    return st;
}

tg_status tgi_job_rejected_json(const tg_job *job, char **json, tgi_err *err)
{
    tgi_jw w = {0};
    tgi_jw_begin(&w, NULL, '{');
    put_rejected(&w, &job->plan);
    tgi_jw_end(&w, '}');
    return finish(&w, TG_OK, json, err);
}

tg_status tgi_job_plan_json(tg_job *job, int why, char **json, tgi_err *err)
{
    tg_plan_info i = {.size = sizeof i};
    tgi_jw w = {0};
    tgi_job_plan_info(job, &i);
    tgi_jw_begin(&w, NULL, '{');
    if (!job->machine.here)
        put_machine(&w, &job->machine);
    tgi_jw_uint(&w, "peak_bytes", i.peak_bytes);
    tgi_jw_uint(&w, "budget_bytes", i.budget_bytes);
    tgi_jw_uint(&w, "arena_bytes", i.arena_bytes);
    tgi_jw_uint(&w, "lower_bound_bytes", i.lower_bound_bytes);
    put_triple(&w, "tile", i.tile);
    put_triple(&w, "halo", i.halo);
    tgi_jw_int(&w, "strips", i.strips);
    tgi_jw_int(&w, "bands", i.bands);
    tgi_jw_int(&w, "band_rows", job->plan.choice.tiling.band);
    tgi_jw_int(&w, "items", i.items);
    if (job->plan.layout)
        tgi_jw_int(&w, "tiles_in_flight", job->plan.window);
    tgi_jw_num(&w, "flops", i.flops);
    tgi_jw_num(&w, "recomputed_fraction", i.recomputed_fraction);
    tgi_jw_num(&w, "seconds_estimate", i.seconds_estimate);
    tgi_jw_num(&w, "seconds_least", i.seconds_least);
    tgi_jw_bool(&w, "is_endless", i.is_endless);
    tgi_jw_bool(&w, "calibrated", i.calibrated);
    tgi_jw_int(&w, "lessons", i.lessons);
    tgi_jw_int(&w, "threads", job->set.threads);
    tgi_jw_str(&w, "isa", job->set.backend->name);
    tgi_jw_str(&w, "precision", tgi_job_precision(job));
    if (i.device_notice)
        tgi_jw_str(&w, "device_notice", i.device_notice);
    if (i.device) {
        tgi_jw_str(&w, "device", i.device);
        tgi_jw_uint(&w, "device_peak_bytes", i.device_peak_bytes);
        tgi_jw_uint(&w, "device_budget_bytes", i.device_budget_bytes);
    }
    tgi_jw_str(&w, "norm_scope", job->set.norm_tiles ? "tile" : "global");
    tgi_jw_int(&w, "bf16_nodes", tgi_net_nodes_of(job->plan.net, TGI_KIND_BF16));
    tgi_jw_int(&w, "winograd_nodes", job->plan.net->n_used);
    tgi_jw_int(&w, "winograd_candidates", job->plan.net->n_fast);
    if (job->plan.layout)
        put_decoding(&w, job);
    put_lines(&w, &i);
    const tg_status st = tgi_job_put_settings(&w, job, err);
    tgi_stages_json(&w, job->plan.stages, job->plan.whole_text,
                    why && !job->plan.choice.staged);
    if (job->plan.choice.staged)
        tgi_staged_json(&w, job->plan.choice.staged);
    if (why)
        put_rejected(&w, &job->plan);
    tgi_jw_end(&w, '}');
    return finish(&w, st, json, err);
}
