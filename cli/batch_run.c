/* batch_run.c - the jobs of a batch, in the order of the list, so many at once. A signal is passed on to those that run;
 * they stop as a run alone does, and nothing more is begun. */
#include "batch.h"
#include "text.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

enum { MOMENT = 200 }; /* ms until signals are looked at again */

typedef struct running {
    batch *b;
    batch_child *child; /* b->at_once of them */
    int next;           /* the first job that was not begun */
    int n;              /* running */
    int passed_on;      /* signal */
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

/* On a terminal: how far those are that run. */
static void draw(const running *r)
{
    cli *c = r->b->c;
    char line[160];
    const int before = r->next - r->n;
    size_t n = (size_t)snprintf(line, sizeof line, "%d of %d", before, r->b->n);
    if (!c->progress.terminal || c->quiet)
        return;
    for (int i = 0; i < r->b->at_once && n < 72; i++) {
        const batch_child *k = &r->child[i];
        const char *slash = k->job ? strrchr(k->job->input, '/') : NULL;
        if (k->job && k->fraction >= 0)
            n += (size_t)snprintf(line + n, sizeof line - n, ", %.24s %d %%",
                                  slash ? slash + 1 : k->job->input, (int)(100 * k->fraction));
    }
    cli_progress_clear(c);
    line[n < 79 ? n : 79] = 0;
    cli_put_clean(stderr, line);
    fflush(stderr);
    c->progress.width_drawn = strlen(line);
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
    running r = {.b = b};
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
        draw(&r);
        wait_a_moment(&r);
        pass_on(&r, st == TG_OK ? tg_cancel_signal() : SIGTERM);
        look_after(&r);
    } while (r.n || (st == TG_OK && r.next < b->n && !tg_cancel_signal()));
    cli_progress_clear(b->c);
    return st;
}
