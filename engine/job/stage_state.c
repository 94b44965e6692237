/* stage_state.c - records of a run in stages, and what of them still holds. */
#include "engine/job/stage_state.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/job/ends.h"
#include "engine/job/job_open.h"
#include "engine/job/pass.h"
#include "engine/job/plan_seconds.h"
#include "io/crc32c.h"
#include "io/file_ops.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_SECONDS 5.0 /* of work that a crash may cost */
#define NO_ROWS (-1)
#define PARTS 6           /* of a record */
#define SAVED_MOST 65536u /* bytes of values in memory that a record holds, too */

/* ---- Records ----------------------------------------------------------------------------- */

/* Work that is left of the item at hand. */
static double work_left(const tgi_pass *p)
{
    const tgi_stage_state *s = &p->stages.state;
    const tgi_stage_record *r = &s->now;
    const tgi_tiling *t = p->stages.plan->tiling;
    double left = 0;
    for (int k = r->at; k < p->stages.plan->n; k++)
        left += s->needs[k] ? t[k].work : 0;
    const double rows = (double)r->rows / (double)tgi_max(1, r->rows_in_all);
    const double cells = ((double)r->at_cell + rows) / (double)t[r->at].cells;
    return left - (s->needs[r->at] ? t[r->at].work * cells : 0);
}

/* Of values in memory: all of them where they are few numbers, as the weights of channels are. A
 * whole stage would run again for those alone. */
static size_t saved_bytes(const tgi_staged *plan)
{
    return plan->kept_bytes <= SAVED_MOST ? plan->kept_bytes : 0;
}

static int list_parts(tgi_pass *p, tgi_stage_part part[PARTS])
{
    tgi_stage_state *s = &p->stages.state;
    const tgi_staged *plan = p->stages.plan;
    part[0] = (tgi_stage_part){&s->now, sizeof s->now};
    part[1] = (tgi_stage_part){s->done, (size_t)s->n_done * sizeof *s->done};
    part[2] = (tgi_stage_part){(void *)s->sums, (size_t)plan->n_kept * sizeof *s->sums};
    part[3] = (tgi_stage_part){p->stages.numbers, plan->n_numbers * sizeof(float)};
    part[4] = (tgi_stage_part){p->stages.states, plan->moments_at};
    part[5] = (tgi_stage_part){p->stages.memory, saved_bytes(plan)};
    return PARTS;
}

static size_t record_bytes(tgi_pass *p)
{
    tgi_stage_part part[PARTS];
    size_t n = 0;
    for (int i = 0; i < list_parts(p, part); i++)
        n += part[i].bytes;
    return n;
}

/* Rows before it are on the disk. */
tg_status tgi_stage_state_write(tgi_pass *p, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    tgi_stage_part part[PARTS];
    if (!s->log)
        return TG_OK;
    if (s->fd >= 0)
        TGI_TRY(tgi_file_sync(s->fd, s->owner.kept, err));
    if (p->job->bad)
        tgi_bad_tiles_state(p->job->bad, &s->now.bad);
    s->now.written = tgi_day_seconds();
    s->now.left = work_left(p);
    s->now.did = s->behind + s->to_do - s->now.left;
    const int n = list_parts(p, part);
    TGI_TRY(tgi_stage_log_write(s->log, part, n, err));
    s->last = tgi_seconds();
    return TG_OK;
}

static double seconds_between(void)
{
    return getenv("TEGULA_SYNC_TILES") ? 0 : RECORD_SECONDS;
}

tg_status tgi_stage_state_tick(tgi_pass *p, tgi_err *err)
{
    const tgi_stage_state *s = &p->stages.state;
    if (!s->log || tgi_seconds() - s->last < seconds_between())
        return TG_OK;
    return tgi_stage_state_write(p, err);
}

/* ---- Open and close ---------------------------------------------------------------------- */

/* What a record must agree with: the cut, and where values are kept. */
static uint64_t plan_check(const tgi_staged *plan)
{
    uint32_t a = 0, b = 0;
    for (int k = 0; k < plan->n; k++) {
        const tgi_stage *t = &plan->cut->stage[k];
        a = tgi_crc32c(a, t->node, (size_t)t->n_nodes * sizeof *t->node);
        for (int o = 0; o < t->n_out; o++)
            a = tgi_crc32c(a, &t->out[o].value, sizeof t->out[o].value);
    }
    for (int i = 0; i < plan->n_kept; i++) {
        const tgi_kept_value *v = &plan->kept[i];
        const uint64_t is[5] = {(uint64_t)v->value, (uint64_t)v->made, (uint64_t)v->on_disk,
                                v->bytes, v->on_disk ? v->at : 0};
        b = tgi_crc32c(b, is, sizeof is);
    }
    return (uint64_t)a << 32 | b;
}

static tg_status open_lists(tgi_pass *p, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    const tgi_staged *plan = p->stages.plan;
    for (int k = 0; k < plan->n; k++)
        s->n_done = (int)tgi_max(s->n_done, plan->cut->stage[k].n_out);
    s->done = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n_done + 1, sizeof *s->done);
    s->sums = tgi_calloc(TGI_TAG_PLAN, (size_t)plan->n_kept + 1, sizeof *s->sums);
    s->needs = tgi_calloc(TGI_TAG_PLAN, (size_t)plan->n + 1, 1);
    return s->done && s->sums && s->needs
               ? TG_OK
               : tgi_fail(err, TG_E_NOMEM, "no memory for %d stages", plan->n);
}

/* The file of kept values. It is the record's if it has the id. */
static tg_status open_kept(tgi_pass *p, int found, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    uint64_t id = 0;
    if (s->owner.kept[0])
        TGI_TRY(tgi_kept_open(s->owner.kept, p->stages.plan->disk_bytes, &s->fd, &id, err));
    s->goes_on = found && (!s->owner.kept[0] || id == s->now.id);
    return TG_OK;
}

static tg_status begin_anew(tgi_pass *p, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    tgi_stage_record *r = &s->now;
    r->id = (uint64_t)getpid() << 40 ^ (uint64_t)(tgi_day_seconds() * 1e6);
    r->plan = plan_check(p->stages.plan);
    r->item = r->cell = 0;
    r->stage = 0;
    r->stages = p->stages.plan->n;
    r->band = 0;
    r->at = r->again = 0;
    r->at_cell = r->at_cells = r->rows = r->rows_in_all = 0;
    for (int i = 0; i < s->n_done; i++)
        s->done[i] = NO_ROWS;
    for (int i = 0; i < p->stages.plan->n_kept; i++)
        atomic_store(&s->sums[i], 0);
    TGI_TRY(
        tgi_stage_state_write(p, err)); /* else values might be taken for an older record's */
    return s->fd >= 0 ? tgi_kept_mark(s->fd, s->owner.kept, r->id, err) : TG_OK;
}

/* Could this plan have written the record down? Its checksum tells of damage, not of who wrote it. */
static int is_possible(const tgi_pass *p)
{
    const tgi_stage_state *s = &p->stages.state;
    const tgi_stage_record *r = &s->now;
    const tgi_staged *plan = p->stages.plan;
    if (r->item < 0 || r->item >= p->job->ends->items(p->job) || r->stage < 0 ||
        r->stage > plan->n || r->cell < 0 || r->band < 0 ||
        (r->stage < plan->n && r->cell > plan->tiling[r->stage].cells))
        return 0;
    for (int o = 0; o < s->n_done; o++)
        if (s->done[o] < NO_ROWS)
            return 0;
    return 1;
}

tg_status tgi_stage_state_open(tgi_pass *p, const char *output, uint64_t job, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    tgi_stage_part part[PARTS];
    int found = 0;
    uint64_t of = 0;
    tgi_stage_record was = {.stage = 0};
    s->fd = -1;
    s->owner.job = job;
    if (!tgi_stage_log_look(output, &of, &was, sizeof was) || of != job)
        was.stage = 0;
    TGI_TRY(open_lists(p, err));
    if (p->stages.plan->disk_bytes)
        TGI_TRY(tgi_kept_path(p->job->set.scratch, output, s->owner.kept, sizeof s->owner.kept,
                              err));
    TGI_TRY(tgi_stage_log_open(output, &s->owner, record_bytes(p), &s->log, err));
    const int n = list_parts(p, part);
    TGI_TRY(tgi_stage_log_read(s->log, part, n, &found, err));
    const int ours = found && s->now.plan == plan_check(p->stages.plan) && is_possible(p);
    TGI_TRY(open_kept(p, ours, err));
    if (!s->goes_on && was.stage > 0 && was.stage < was.stages)
        tgi_job_warn(p->job,
                     "stopped in stage %d of %d; %s, so the stages begin with the first again",
                     was.stage + 1, was.stages,
                     ours ? "their values in --scratch are gone"
                          : "this plan is another (--ram, --scratch and --threads decide it)");
    s->now.process = getpid();
    s->now.began = tgi_day_seconds();
    return s->goes_on ? TG_OK : begin_anew(p, err);
}

void tgi_stage_state_bad(const char *output, uint64_t job, tgi_bad_state *bad)
{
    tgi_stage_record r;
    uint64_t of;
    if (!tgi_stage_log_look(output, &of, &r, sizeof r) || of != job || r.bad.bytes < bad->bytes)
        return;
    r.bad.beyond |= bad->beyond;
    *bad = r.bad;
}

static void close_kept(tgi_stage_state *s)
{
    if (s->fd >= 0 && s->done) /* without, it was never opened */
        close(s->fd);
    s->fd = -1;
}

tg_status tgi_stage_state_remove(tgi_pass *p, const char *output, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    tgi_stage_log_close(&s->log);
    close_kept(s);
    p->stages.kept.fd = -1;
    TGI_TRY(tgi_stage_log_discard(output, err));
    if (tgi_file_begins(s->owner.kept, TGI_KEPT_MARK, sizeof TGI_KEPT_MARK - 1))
        tgi_job_warn(p->job, "%s: values between stages, of no use any more, cannot be removed",
                     s->owner.kept);
    return TG_OK;
}

void tgi_stage_state_close(tgi_stage_state *s)
{
    tgi_stage_log_close(&s->log);
    close_kept(s);
    tgi_free(s->done);
    tgi_free((void *)s->sums);
    tgi_free(s->needs);
    memset(s, 0, sizeof *s);
    s->fd = -1;
}

/* ---- What still holds -------------------------------------------------------------------- */

tgi_box tgi_stage_state_share(const tgi_tiling *t, int o, int64_t cell, int64_t end)
{
    tgi_range core[3];
    tgi_box b = tgi_box_full(&t->net->values[t->stage->out[o].value].ext);
    tgi_tiling_cell(t, cell, core);
    for (int a = TGI_STREAM_AXIS; a < b.rank; a++)
        b.ax[a] = tgi_range_clip(tgi_axis_share(t->stage, a, o, core[a - TGI_STREAM_AXIS]), 0,
                                 b.ax[a].hi);
    if (end >= 0)
        b.ax[TGI_STREAM_AXIS].hi = tgi_min(b.ax[TGI_STREAM_AXIS].hi, end);
    return b;
}

/* The sum of what was written of value i: all of it, or cells before the one at hand, and its
 * rows. */
static tg_status sum_written(tgi_pass *p, int i, uint64_t *sum, tgi_err *err)
{
    const tgi_stage_state *s = &p->stages.state;
    const tgi_kept_value *v = &p->stages.plan->kept[i];
    const tgi_tiling *t = &p->stages.plan->tiling[v->made];
    const size_t room = p->job->plan.bytes.arena;
    int o = 0;
    *sum = 0;
    if (v->made < s->now.stage) {
        const tgi_box all = tgi_box_full(&t->net->values[v->value].ext);
        return tgi_kept_check(&p->stages.kept, v, &all, p->arena, room, sum, err);
    }
    while (t->stage->out[o].value != v->value || t->stage->out[o].reduced)
        o++;
    for (int64_t c = 0; c <= s->now.cell && c < t->cells; c++) {
        if (c == s->now.cell && s->done[o] == NO_ROWS)
            break;
        const tgi_box b = tgi_stage_state_share(t, o, c, c == s->now.cell ? s->done[o] : -1);
        if (!tgi_box_empty(&b))
            TGI_TRY(tgi_kept_check(&p->stages.kept, v, &b, p->arena, room, sum, err));
    }
    return TG_OK;
}

static int same_tiling(const tgi_stage_record *r, const tgi_tiling *t)
{
    return r->band == t->band && r->cells == t->cells &&
           memcmp(r->cut, t->cut, sizeof r->cut) == 0;
}

/* Does the stage hand out rows of the output file? Its tiles may not be on the disk when the record
 * is, so they say where it goes on (store.h), not the record. */
static int hands_out_tiles(const tgi_stage *t)
{
    for (int o = 0; o < t->n_out; o++)
        if (t->out[o].port >= 0)
            return 1;
    return 0;
}

/* The stage at hand begins again: nothing of it was handed out. */
static void forget_stage(tgi_pass *p)
{
    tgi_stage_state *s = &p->stages.state;
    s->now.cell = 0;
    s->now.band = 0;
    for (int i = 0; i < s->n_done; i++)
        s->done[i] = NO_ROWS;
    for (int i = 0; i < p->stages.plan->n_kept; i++)
        if (p->stages.plan->kept[i].made == s->now.stage)
            atomic_store(&s->sums[i], 0);
}

/* Are the values on disk that are still wanted what was written? What cannot be read is not: it is
 * made anew, and else each later run would end there. */
static tg_status compare_sums(tgi_pass *p, int *equal, tgi_err *err)
{
    const tgi_stage_state *s = &p->stages.state;
    *equal = 1;
    for (int i = 0; i < p->stages.plan->n_kept && *equal; i++) {
        const tgi_kept_value *v = &p->stages.plan->kept[i];
        uint64_t sum;
        if (!v->on_disk || v->made > s->now.stage || v->needed < s->now.stage)
            continue;
        tgi_err why = {0};
        const tg_status st = sum_written(p, i, &sum, &why);
        if (st != TG_OK && st != TG_E_FORMAT && st != TG_E_IO)
            return tgi_fail(err, st, "%s", why.text);
        *equal = st == TG_OK && sum == atomic_load(&s->sums[i]);
    }
    return TG_OK;
}

static const tgi_kept_value *lost(const tgi_pass *p, int value)
{
    const tgi_kept_value *v = tgi_kept_of(p->stages.plan, value);
    return v && !v->on_disk && !saved_bytes(p->stages.plan) ? v : NULL;
}

/* Stages from the one at hand on, and those whose values in memory are gone. */
static void find_needs(tgi_pass *p)
{
    tgi_stage_state *s = &p->stages.state;
    const tgi_staged *plan = p->stages.plan;
    for (int k = 0; k < plan->n; k++)
        s->needs[k] = k >= s->now.stage;
    for (int k = plan->n - 1; k >= 0; k--)
        for (int i = 0; s->needs[k] && i < plan->cut->stage[k].n_loaded; i++) {
            const tgi_kept_value *v = lost(p, plan->cut->stage[k].in[i].value);
            if (v && v->made < s->now.stage)
                s->needs[v->made] = 1;
            else if (v && v->made == s->now.stage)
                forget_stage(p); /* rows of it were in memory */
        }
}

static void need_all(tgi_pass *p)
{
    tgi_stage_state *s = &p->stages.state;
    memset(s->needs, 1, (size_t)p->stages.plan->n);
    s->now.stage = 0;
    forget_stage(p);
    for (int i = 0; i < p->stages.plan->n_kept; i++)
        atomic_store(&s->sums[i], 0);
}

/* ---- An item ----------------------------------------------------------------------------- */

/* How much work it is, for who watches. */
static void watch_item(tgi_pass *p)
{
    tgi_stage_state *s = &p->stages.state;
    tgi_stage_record *r = &s->now;
    s->behind += s->to_do;
    r->item_work = 0;
    for (int k = 0; k < p->stages.plan->n; k++)
        r->item_work += p->stages.plan->tiling[k].work;
    for (r->at = 0; r->at < r->stage && !s->needs[r->at]; r->at++)
        ;
    r->at_cell = r->at == r->stage ? r->cell : 0;
    r->at_cells = p->stages.plan->tiling[r->at].cells;
    r->rows = r->rows_in_all = 0;
    s->to_do = work_left(p);
}

tg_status tgi_stage_state_item(tgi_pass *p, int *stage, int64_t *cell, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    int equal = 0;
    *stage = 0;
    *cell = 0;
    if (!s->log)
        return TG_OK;
    if (s->goes_on)
        tgi_job_learn_drop(p->job); /* a part of the work says nothing of all of it */
    if (s->goes_on && s->now.item == p->item && s->now.stage < p->stages.plan->n) {
        const tgi_tiling *t = &p->stages.plan->tiling[s->now.stage];
        if (!same_tiling(&s->now, t) || hands_out_tiles(t->stage))
            forget_stage(p);
        TGI_TRY(compare_sums(p, &equal, err));
        tgi_err why = {0};
        if (equal && s->now.band > 0) /* states that are none: each later run would end there */
            equal = tgi_gathering_resume(&p->stages.gathering, s->now.stage, &why) == TG_OK;
        if (!equal)
            tgi_job_warn(p->job,
                         "%s: what was kept between stages is damaged; the stages begin "
                         "with the first one",
                         s->owner.kept);
        if (equal) {
            find_needs(p);
            s->resumed = s->now.stage + 1;
        }
    }
    s->goes_on = 0;
    s->now.item = p->item;
    s->now.items = p->job->ends->items(p->job);
    if (!equal)
        need_all(p);
    *stage = s->now.stage;
    *cell = s->now.cell;
    watch_item(p);
    return tgi_stage_state_write(p, err);
}

int tgi_stage_state_progress(const tgi_pass *p, double *done, double *own)
{
    const tgi_stage_state *s = &p->stages.state;
    const tgi_stage_record *r = &s->now;
    if (!s->log || !(r->item_work > 0))
        return 0;
    const double here = work_left(p), all = (double)r->items * r->item_work;
    const double left = here + (double)(r->items - 1 - r->item) * r->item_work;
    const double did = s->behind + s->to_do - here;
    *done = left < all ? 1 - left / all : 0;
    *own = did > 0 ? did / (did + left) : 0;
    return 1;
}

void tgi_stage_state_turn(tgi_pass *p, int64_t cell)
{
    tgi_stage_state *s = &p->stages.state;
    tgi_stage_record *r = &s->now;
    if (!s->log)
        return;
    r->stage = p->stages.at;
    r->cell = cell;
    r->cells = p->tiling->cells;
    r->band = p->tiling->band;
    memcpy(r->cut, p->tiling->cut, sizeof r->cut);
}

void tgi_stage_state_watch(tgi_pass *p, int64_t cell, const tgi_range *rows)
{
    tgi_stage_record *r = &p->stages.state.now;
    r->at = p->stages.at;
    r->again = p->stages.at < p->stages.known;
    r->at_cell = cell;
    r->at_cells = p->tiling->cells;
    r->rows = 0;
    r->rows_in_all = tgi_range_len(*rows);
    p->stages.state.row0 = rows->lo;
}

void tgi_stage_state_rows(tgi_pass *p, int64_t end)
{
    tgi_stage_record *r = &p->stages.state.now;
    r->rows = tgi_min(r->rows_in_all, tgi_max(0, end - p->stages.state.row0));
}
