/* batch_run.c - the jobs of a batch, in the order of the list, so many at once. A signal is passed on to those that run;
 * they stop as a run alone does, and nothing more is begun. */
#include "batch.h"
#include "text.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

enum {
    MOMENT = 200,    /* ms until signals are looked at again */
    WIDTH = 80,      /* of a line on how far they are */
    PLAIN_EVERY = 60 /* seconds */
};
#define REDRAW 0.5

typedef struct running {
    batch *b;
    batch_child *child; /* b->at_once of them */
    int next;           /* the first job that was not begun */
    int n;              /* running */
    int passed_on;      /* signal */
    double shown_at;
} running;

static void end_job(running *r, batch_job *j)
{
    r->b->ended[j->state]++;
    cli_batch_says_end(r->b, j);
}

/* Without a process: it cannot even begin. */
static void hinder(running *r, batch_job *j, int code, const char *why)
{
    j->state = BATCH_FAILED;
    j->code = code;
    j->message = why;
    end_job(r, j);
}

static tg_status begin(running *r, batch_child *k)
{
    batch *b = r->b;
    batch_job *j = &b->job[r->next++];
    if (j->hindered) {
        hinder(r, j, cli_exit_code(TG_E_NOT_FOUND), j->hindered);
        return TG_OK;
    }
    cli_batch_says_begin(b, j);
    tg_status st = cli_batch_job_folder(b, j);
    if (st == TG_OK)
        st = cli_batch_child_start(b, j, k);
    r->n += st == TG_OK;
    return st;
}

static tg_status begin_some(running *r)
{
    tg_status st = TG_OK;
    for (int i = 0; i < r->b->at_once; i++)
        while (st == TG_OK && !r->child[i].job && r->next < r->b->n && !tg_cancel_signal())
            st = begin(r, &r->child[i]);
    return st;
}

static void pass_on(running *r, int sig)
{
    if (r->passed_on || !sig)
        return;
    r->passed_on = sig;
    for (int i = 0; i < r->b->at_once; i++)
        if (r->child[i].job)
            (void)kill(r->child[i].pid, sig);
}

static void wait_a_moment(running *r)
{
    struct pollfd on[2 * BATCH_AT_ONCE];
    nfds_t n = 0;
    for (int i = 0; i < r->b->at_once; i++) {
        const batch_child *k = &r->child[i];
        if (k->job && k->out >= 0)
            on[n++] = (struct pollfd){.fd = k->out, .events = POLLIN};
        if (k->job && k->err >= 0)
            on[n++] = (struct pollfd){.fd = k->err, .events = POLLIN};
    }
    (void)poll(on, n, n ? MOMENT : 5); /* where they say no more they are about to end */
}

/* "3 of 12, a.mp4 43 %, b.mp4 7 %": how many are through, how far those are that run. */
static void compose(const running *r, char line[WIDTH])
{
    size_t n = (size_t)snprintf(line, WIDTH, "%d of %d", r->next - r->n, r->b->n);
    for (int i = 0; i < r->b->at_once && n < WIDTH - 36; i++) {
        const batch_child *k = &r->child[i];
        const char *slash = k->job ? strrchr(k->job->input, '/') : NULL;
        if (k->job && k->fraction >= 0)
            n += (size_t)snprintf(line + n, WIDTH - n, ", %.24s %d %%",
                                  slash ? slash + 1 : k->job->input, (int)(100 * k->fraction));
    }
}

/* On a terminal a line that is drawn anew, else one now and then. */
static void show(running *r)
{
    cli *c = r->b->c;
    char line[WIDTH];
    const double now = cli_now();
    if (c->quiet || now - r->shown_at < (c->progress.terminal ? REDRAW : PLAIN_EVERY))
        return;
    r->shown_at = now;
    compose(r, line);
    cli_progress_clear(c);
    cli_put_clean(stderr, line);
    if (c->progress.terminal)
        c->progress.width_drawn = strlen(line);
    else
        fputc('\n', stderr);
    fflush(stderr);
}

static void look_after(running *r)
{
    for (int i = 0; i < r->b->at_once; i++) {
        batch_child *k = &r->child[i];
        batch_job *j = k->job;
        if (!j)
            continue;
        cli_batch_child_listen(r->b, k);
        if (cli_batch_child_ended(r->b, k)) {
            r->n--;
            end_job(r, j);
        }
    }
}

tg_status cli_batch_run(batch *b)
{
    running r = {.b = b, .shown_at = cli_now()};
    tg_status st = TG_OK;
    r.child = cli_batch_take(b, (size_t)b->at_once * sizeof *r.child);
    if (!r.child)
        return cli_batch_no_memory(b);
    memset(r.child, 0, (size_t)b->at_once * sizeof *r.child);
    do {
        if (st == TG_OK)
            st = begin_some(&r);
        if (!r.n)
            break;
        show(&r);
        wait_a_moment(&r);
        pass_on(&r, st == TG_OK ? tg_cancel_signal() : SIGTERM);
        look_after(&r);
    } while (r.n || (st == TG_OK && r.next < b->n && !tg_cancel_signal()));
    cli_progress_clear(b->c);
    return st;
}
