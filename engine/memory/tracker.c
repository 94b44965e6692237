/* tracker.c - one thread that samples, one file descriptor it appends to.
 *
 * Nothing is allocated after opening, and each line is one write of less than a page to a file
 * opened for appending, so what a kill leaves behind is whole lines. */
#include "engine/memory/tracker.h"

#include "engine/base/mem.h"
#include "engine/memory/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tgi_tracker {
    pthread_t thread;
    int interval_ms, csv;
    atomic_int quit;
    atomic_uint_fast64_t current, peak, predicted, budget;
    atomic_int_fast64_t tiles;
    _Atomic(const char *) phase;
    struct timespec t0;
};

/* The log need not be as dense as the peak's samples: ten lines a second at most. */
#define CSV_EVERY_MS 100

static void write_line(tgi_tracker *m, const tgi_process_memory *p)
{
    char line[512];
    struct timespec t;
    tgi_free_memory f;
    clock_gettime(CLOCK_MONOTONIC, &t);
    tgi_free_memory_read("", &f);
    const double s =
        (double)(t.tv_sec - m->t0.tv_sec) + 1e-9 * (double)(t.tv_nsec - m->t0.tv_nsec);
    const int n = snprintf(
        line, sizeof line, "%.3f,%s,%lld,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n", s,
        atomic_load(&m->phase), (long long)atomic_load(&m->tiles), (unsigned long long)p->anon,
        (unsigned long long)p->file, (unsigned long long)p->shmem, (unsigned long long)p->swap,
        (unsigned long long)p->pte, (unsigned long long)tgi_measured_of(p),
        (unsigned long long)f.bytes, (unsigned long long)atomic_load(&m->predicted),
        (unsigned long long)atomic_load(&m->budget));
    if (n > 0 && write(m->csv, line, (size_t)n) != n) {
        close(m->csv); /* a log must not stop a run: it ends here */
        m->csv = -1;
    }
}

static void sample(tgi_tracker *m, tgi_process_memory *p)
{
    if (!tgi_process_memory_read("", p))
        return;
    const uint64_t now = tgi_measured_of(p);
    atomic_store(&m->current, now);
    if (now > atomic_load(&m->peak))
        atomic_store(&m->peak, now);
}

static void *sampler(void *arg)
{
    tgi_tracker *m = arg;
    tgi_process_memory p = {0};
    const struct timespec nap = {m->interval_ms / 1000, m->interval_ms % 1000 * 1000000L};
    for (int64_t ms = 0; !atomic_load(&m->quit); ms += m->interval_ms) {
        sample(m, &p);
        if (m->csv >= 0 && ms % CSV_EVERY_MS < m->interval_ms)
            write_line(m, &p);
        nanosleep(&nap, NULL);
    }
    sample(m, &p);
    if (m->csv >= 0)
        write_line(m, &p);
    return NULL;
}

static tg_status open_csv(tgi_tracker *m, const char *path, tgi_err *err)
{
    static const char head[] =
        "seconds,phase,tiles,anon,file,shmem,swap,pte,measured,available,"
        "predicted,budget\n";
    m->csv = -1;
    if (!path)
        return TG_OK;
    m->csv = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (m->csv < 0 || write(m->csv, head, sizeof head - 1) != (ssize_t)sizeof head - 1)
        return tgi_fail(err, TG_E_IO, "%s: the memory log cannot be written: %s", path,
                        strerror(errno));
    return TG_OK;
}

tg_status tgi_tracker_open(int interval_ms, const char *csv_path, tgi_tracker **out,
                           tgi_err *err)
{
    tgi_tracker *m = tgi_calloc(TGI_TAG_MISC, 1, sizeof *m);
    if (!m)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the tracker");
    m->interval_ms = interval_ms > 0 ? interval_ms : 1;
    atomic_store(&m->phase, "start");
    clock_gettime(CLOCK_MONOTONIC, &m->t0);
    tg_status st = open_csv(m, csv_path, err);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    sigset_t all, before;
    sigfillset(&all); /* signals are the program's: its handlers do not run on this thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (st == TG_OK && pthread_create(&m->thread, &attr, sampler, m) != 0)
        st = tgi_fail(err, TG_E_NOMEM, "the system refused the tracker's thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (st != TG_OK) {
        if (m->csv >= 0)
            close(m->csv);
        tgi_free(m);
        return st;
    }
    *out = m;
    return TG_OK;
}

void tgi_tracker_note(tgi_tracker *m, const char *phase, int64_t tiles, uint64_t predicted,
                      uint64_t budget)
{
    if (!m)
        return;
    atomic_store(&m->phase, phase);
    atomic_store(&m->tiles, tiles);
    atomic_store(&m->predicted, predicted);
    atomic_store(&m->budget, budget);
}

uint64_t tgi_tracker_current(const tgi_tracker *m)
{
    return m ? atomic_load(&m->current) : 0;
}

uint64_t tgi_tracker_peak(const tgi_tracker *m)
{
    return m ? atomic_load(&m->peak) : 0;
}

uint64_t tgi_tracker_close(tgi_tracker **mp)
{
    if (!mp || !*mp)
        return 0;
    tgi_tracker *m = *mp;
    atomic_store(&m->quit, 1);
    pthread_join(m->thread, NULL);
    const uint64_t peak = atomic_load(&m->peak);
    if (m->csv >= 0)
        close(m->csv);
    tgi_free(m);
    *mp = NULL;
    return peak;
}
