/* pp_slots.c - see pp_slots.h. */
#include "engine/inpaint/pp_slots.h"

#define NOTHING INT64_MIN

void tgi_pp_slots_open(tgi_pp_slots *s, const tgi_schedule_run *run, const int *buffer, int n)
{
    s->n = 0;
    for (int i = 0; i < n; i++) {
        const tgi_sched_at at = tgi_schedule_place(run, buffer[i]);
        if (at.type != TG_DTYPE_NONE)
            s->at[s->n++] = at;
    }
    tgi_pp_slots_forget(s);
}

void tgi_pp_slots_forget(tgi_pp_slots *s)
{
    for (int i = 0; i < s->n; i++)
        s->frame[i] = NOTHING;
}

static int is_one_of(const int64_t *list, int n, int64_t frame)
{
    for (int i = 0; i < n; i++)
        if (list[i] == frame)
            return 1;
    return 0;
}

int64_t *tgi_pp_slots_take(tgi_pp_slots *s, int64_t frame, const int64_t *wanted, int n_wanted,
                           tgi_sched_at *at, int *there)
{
    int best = -1;
    *there = 0;
    for (int i = 0; i < s->n && !*there; i++) {
        *there = s->frame[i] == frame;
        if (*there || (!is_one_of(wanted, n_wanted, s->frame[i]) &&
                       (best < 0 || s->frame[i] < s->frame[best])))
            best = i;
    }
    if (best < 0)
        return NULL;
    *at = s->at[best];
    return &s->frame[best];
}
