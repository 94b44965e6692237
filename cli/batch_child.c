/* batch_child.c - one job as a process: this very program, with the job's options and --json, whose lines say how far it
 * is and how it ends.
 *
 * It has a process group of its own, so that Ctrl-C reaches the batch alone, which passes each signal on once: a second
 * one would make a job drop what it has in hand. Where the batch is killed and can pass on nothing, the kernel kills its
 * jobs (PR_SET_PDEATHSIG): they are gone on with by the next run. */
#include "batch.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 127 }; /* exit code that no tegula has */

/* ---- Its command line -------------------------------------------------------------------- */

typedef struct words {
    char *at[512];
    int n;
} words;

static bool add_word(batch *b, words *w, const char *a, const char *name, const char *value)
{
    const size_t n = strlen(a) + strlen(name) + (value ? strlen(value) + 1 : 0) + 1;
    char *text = w->n + 1 < (int)(sizeof w->at / sizeof w->at[0]) ? cli_batch_take(b, n) : NULL;
    if (!text)
        return false;
    snprintf(text, n, "%s%s%s%s", a, name, value ? "=" : "", value ? value : "");
    w->at[w->n++] = text;
    return true;
}

static void drop_words(batch *b, words *w)
{
    for (int i = 0; i < w->n; i++)
        (void)tg_pool_free(b->pool, w->at[i]);
}

/* The input stands last, behind "--", where no name is taken for anything else. */
static bool add_words(batch *b, const batch_job *j, const tg_opts *o, words *w)
{
    size_t n;
    const tg_option *t = tg_option_table(&n);
    bool good = add_word(b, w, "", "tegula", NULL) && add_word(b, w, "", "inpaint", NULL);
    for (size_t i = 0; good && i < n; i++) {
        const char *from = tg_opts_origin(o, t[i].name);
        if (from && strcmp(from, "command line") == 0 && strcmp(t[i].name, "input") != 0)
            good = add_word(b, w, "--", t[i].name, tg_opts_get(o, t[i].name));
    }
    for (int i = 0; good && i < b->c->verbose; i++)
        good = add_word(b, w, "--", "verbose", NULL);
    good = good && add_word(b, w, "--", "quiet", NULL) && add_word(b, w, "--", "json", NULL) &&
           add_word(b, w, "--", "skip-done", NULL) && add_word(b, w, "--", "", NULL) &&
           add_word(b, w, "", j->input, NULL);
    w->at[w->n] = NULL;
    return good;
}

/* ---- Begin ------------------------------------------------------------------------------- */

/* In the new process, before it becomes the program: only calls that are safe there. Signals are blocked; what comes from
 * here on ends it, but what is ignored (nohup) stays so. */
static void become(char *const *argv, const sigset_t *mask, int out, int err, pid_t parent)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    const int nothing = open("/dev/null", O_RDONLY);
    struct sigaction now;
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        if (sigaction(caught[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)signal(caught[i], SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) /* it is gone already */
        _exit(NOT_STARTED);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0)
        _exit(NOT_STARTED);
    execv("/proc/self/exe", argv);
    _exit(NOT_STARTED);
}

/* fork, since PR_SET_PDEATHSIG is for the new process to ask for. */
static pid_t new_process(char *const *argv, int out, int err)
{
    sigset_t all, before;
    const pid_t parent = getpid();
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0)
        become(argv, &before, out, err, parent);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static tg_status no_process(batch *b)
{
    return cli_fail(b->c, TG_E_IO, "a job cannot be started: %s", strerror(errno));
}

static tg_status start(batch *b, batch_child *k, char *const *argv)
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return no_process(b);
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[0]);
        close(out[1]);
        return no_process(b);
    }
    k->pid = new_process(argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    k->out = out[0];
    k->err = err[0];
    if (k->pid > 0) {
        (void)fcntl(k->out, F_SETFL, O_NONBLOCK);
        (void)fcntl(k->err, F_SETFL, O_NONBLOCK);
        return TG_OK;
    }
    const tg_status st = no_process(b);
    close(k->out);
    close(k->err);
    return st;
}

tg_status cli_batch_child_start(batch *b, batch_job *j, batch_child *k)
{
    words w = {.n = 0};
    tg_opts *o = NULL;
    tg_status st = cli_batch_options(b, j, true, &o);
    if (st != TG_OK)
        return st;
    k->n = k->said_n = 0;
    k->too_long = k->was_complete = false;
    k->fraction = -1;
    k->detail[0] = k->said[0] = 0;
    k->t0 = cli_now();
    st = add_words(b, j, o, &w) ? start(b, k, w.at) : cli_batch_no_memory(b);
    drop_words(b, &w);
    tg_opts_free(&o);
    k->job = st == TG_OK ? j : NULL;
    j->state = st == TG_OK ? BATCH_RUNS : j->state;
    return st;
}

/* ---- What it says ------------------------------------------------------------------------ */

/* The member's value as text; "" where it is not there. */
static const char *member(const char *line, const char *key, char *buf, size_t cap)
{
    size_t n = 0;
    const char *v = cli_json_member(line, key, &n);
    FILE *to = v ? fmemopen(buf, cap, "w") : NULL;
    buf[0] = 0;
    if (to) {
        cli_put_json(to, v, n);
        fclose(to);
    }
    buf[cap - 1] = 0;
    return buf;
}

static void hear(batch *b, batch_child *k, const char *line)
{
    char event[24], text[800];
    member(line, "event", event, sizeof event);
    if (strcmp(event, "progress") == 0) {
        k->fraction = atof(member(line, "fraction", text, sizeof text));
    } else if (strcmp(event, "error") == 0) {
        member(line, "detail", k->detail, sizeof k->detail);
    } else if (strcmp(event, "done") == 0) {
        size_t n;
        const char *v = cli_json_member(line, "measured_peak_bytes", &n),
                   *planned = cli_json_member(line, "predicted_peak_bytes", &n);
        k->job->peak_bytes = v ? strtoull(v, NULL, 10) : 0;
        k->was_complete = planned && strtoull(planned, NULL, 10) == 0;
    } else if (strcmp(event, "log") == 0) {
        char level[16];
        cli_progress_clear(b->c);
        fprintf(stderr, "tegula: %s: ", member(line, "level", level, sizeof level));
        cli_batch_put_of(stderr, k->job, member(line, "line", text, sizeof text));
        fputc('\n', stderr);
    }
}

static void take_line(batch *b, batch_child *k, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            k->too_long |= k->n + 1 >= sizeof k->line;
            if (!k->too_long)
                k->line[k->n++] = bytes[i];
            continue;
        }
        k->line[k->n] = 0;
        if (!k->too_long) /* a plan; nobody asks here */
            hear(b, k, k->line);
        k->n = 0;
        k->too_long = false;
    }
}

/* Of what it says for people the last line is kept: where it crashes, that is all there is. */
static void keep_said(batch_child *k, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (k->said_n && k->said[k->said_n - 1] == '\n' && bytes[i] != '\n')
            k->said_n = 0;
        if (k->said_n + 1 < sizeof k->said && (bytes[i] != '\n' || k->said_n))
            k->said[k->said_n++] = bytes[i];
    }
}

static void listen_to(batch *b, batch_child *k, int *fd, bool is_json)
{
    char bytes[4096];
    for (ssize_t n = 1; *fd >= 0 && n > 0;) {
        n = read(*fd, bytes, sizeof bytes);
        if (n > 0 && is_json)
            take_line(b, k, bytes, (size_t)n);
        else if (n > 0)
            keep_said(k, bytes, (size_t)n);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            close(*fd);
            *fd = -1;
        }
    }
}

void cli_batch_child_listen(batch *b, batch_child *k)
{
    listen_to(b, k, &k->out, true);
    listen_to(b, k, &k->err, false);
}

/* ---- Its end ----------------------------------------------------------------------------- */

static void settle(batch *b, batch_child *k, int how)
{
    batch_job *j = k->job;
    const int killed = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    const int asked = tg_cancel_signal();
    j->code = killed ? 128 + killed : WEXITSTATUS(how);
    j->seconds = cli_now() - k->t0;
    if (!killed && j->code == 0)
        j->state = k->was_complete ? BATCH_COMPLETE : BATCH_DONE;
    else if (!killed && j->code > 128)
        j->state = BATCH_STOPPED;
    else
        j->state = killed && asked ? BATCH_STOPPED : BATCH_FAILED;
    if (k->said_n && k->said[k->said_n - 1] == '\n')
        k->said_n--;
    k->said[k->said_n] = 0;
    if (killed)
        snprintf(k->detail, sizeof k->detail,
                 "was killed by signal %d%s; the next run goes on with it%s%s", killed,
                 killed == SIGKILL ? " (as the kernel does where memory runs out)" : "",
                 k->said[0] ? "; its last words: " : "", k->said);
    else if (j->code == NOT_STARTED)
        snprintf(k->detail, sizeof k->detail, "the program could not be started again");
    else if (j->code && !k->detail[0])
        snprintf(k->detail, sizeof k->detail, "%s",
                 k->said[0] ? k->said : "ended and did not say why");
    if (j->code)
        j->message = cli_batch_text(b, k->detail);
}

bool cli_batch_child_ended(batch *b, batch_child *k)
{
    int how;
    if (waitpid(k->pid, &how, WNOHANG) != k->pid)
        return false;
    cli_batch_child_listen(b, k);
    if (k->out >= 0)
        close(k->out);
    if (k->err >= 0)
        close(k->err);
    settle(b, k, how);
    k->job = NULL;
    return true;
}
