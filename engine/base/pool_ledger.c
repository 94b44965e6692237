/* pool_ledger.c - what is allocated by whom, exactly and at every moment.
 *
 * Peaks of scopes. A scope wants the most that was allocated since it was opened or reset, and
 * there may be many at once. Comparing each of them at every allocation would cost what nobody
 * wants to pay. Instead the pool keeps one number, the most since *anyone last looked*
 * (window_peak). Opening, resetting or reading any scope first folds it into all open scopes,
 * then begins a new window at what is allocated now. So every scope's peak is the maximum over
 * the windows that lie within its time, exactly, at one comparison an allocation. */
#include "engine/base/arith.h"
#include "engine/base/pool_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t tgi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void tgi_ledger_init(tg_pool *p)
{
    p->live.newer = p->live.older = &p->live;
    p->leak_check = 1;
}

/* Number of a tag; equal texts are one tag. Literals are mostly found by their address. */
uint32_t tgi_ledger_tag(tg_pool *p, const char *tag)
{
    for (uint32_t i = 0; i < p->n_tags; i++)
        if (p->tag_name[i] == tag)
            return i;
    for (uint32_t i = 0; i < p->n_tags; i++)
        if (strcmp(p->tag_name[i], tag) == 0)
            return i;
    if (p->n_tags == MAX_TAGS)
        return MAX_TAGS - 1;
    p->tag_name[p->n_tags] = p->n_tags == MAX_TAGS - 1 ? "other" : tag;
    return p->n_tags++;
}

static void raise(level *l, uint64_t now)
{
    l->now = now;
    if (now > l->peak)
        l->peak = now;
}

void tgi_ledger_reserve(tg_pool *p, uint64_t more, uint64_t less)
{
    raise(&p->reserved, p->reserved.now + more - less);
}

void tgi_ledger_activate(tg_pool *p, uint64_t more, uint64_t less)
{
    raise(&p->active, p->active.now + more - less);
}

/* Inactive is a difference: between two halves of an operation it is nobody's number. */
void tgi_pool_unlock(tg_pool *p)
{
    raise(&p->inactive, p->reserved.now - p->active.now);
    pthread_mutex_unlock(&p->lock);
}

/* ---- Timeline ---------------------------------------------------------------------------- */

static event *event_of(tg_pool *p, uint64_t number)
{
    const uint64_t i = number - p->line.first;
    if (number < p->line.first || i >= p->line.recorded)
        return NULL;
    return &p->line.chunk[i / EVENTS_A_CHUNK][i % EVENTS_A_CHUNK];
}

#define CHUNK_BYTES (EVENTS_A_CHUNK * sizeof(event))

/* Pages of a file are the system's to write out: no memory that a plan would have to count. They
 * are there before they are touched, since a full disk is a signal then. */
static event *chunk_alloc(const timeline *t, uint64_t chunk)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const off_t at = (off_t)(chunk * ((CHUNK_BYTES + page - 1) / page * page));
    int e;
    if (!t->file)
        return tgi_books_alloc(CHUNK_BYTES);
    do
        e = posix_fallocate(t->file - 1, at, (off_t)CHUNK_BYTES);
    while (e == EINTR);
    if (e)
        return NULL;
    void *p = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t->file - 1, at);
    return p == MAP_FAILED ? NULL : p;
}

static void drop_chunks(tg_pool *p)
{
    timeline *t = &p->line;
    for (int i = 0; i < MAX_CHUNKS; i++) {
        if (t->chunk[i] && t->file)
            munmap(t->chunk[i], CHUNK_BYTES);
        else
            tgi_books_free(t->chunk[i]);
        t->chunk[i] = NULL;
    }
    if (t->file)
        close(t->file - 1);
    t->file = 0;
}

/* Events are numbered like allocations, so the end of one finds its beginning at once. */
static void record_begin(tg_pool *p, const record *r)
{
    timeline *t = &p->line;
    const uint64_t chunk = t->recorded / EVENTS_A_CHUNK;
    if (t->dropped || chunk == MAX_CHUNKS ||
        (!t->chunk[chunk] && !(t->chunk[chunk] = chunk_alloc(t, chunk)))) {
        t->dropped++; /* all later ones too: the numbers would not agree */
        return;
    }
    t->chunk[chunk][t->recorded % EVENTS_A_CHUNK] =
        (event){.begin_ns = tgi_now_ns(), .site = r->site, .bytes = r->bytes, .tag = r->tag};
    t->recorded++;
}

tg_status tgi_ledger_profile(tg_pool *p, int on, int fd)
{
    timeline *t = &p->line;
    if (!on || (t->on && fd < 0)) {
        t->on = on;
        return TG_OK;
    }
    drop_chunks(p);
    *t = (timeline){.first = p->number + 1, .start_ns = tgi_now_ns()};
    if (fd >= 0)
        t->file = fcntl(fd, F_DUPFD_CLOEXEC, 0) + 1;
    t->chunk[0] = fd < 0 || t->file ? chunk_alloc(t, 0) : NULL;
    t->on = t->chunk[0] != NULL;
    if (!t->on)
        drop_chunks(p);
    return t->on ? TG_OK : fd < 0 ? TG_E_NOMEM : TG_E_IO;
}

void tgi_ledger_release(tg_pool *p)
{
    drop_chunks(p);
}

/* ---- In and out -------------------------------------------------------------------------- */

void tgi_ledger_in(tg_pool *p, record *r, size_t bytes, uint32_t tag, const char *site,
                   uint32_t mark)
{
    *r = (record){.newer = &p->live,
                  .older = p->live.older,
                  .site = site,
                  .bytes = bytes,
                  .number = ++p->number,
                  .tag = tag,
                  .mark = mark};
    r->older->newer = r;
    p->live.older = r;
    p->n_live++;
    p->allocs++;
    p->direct += mark == RECORD_DIRECT;
    p->tag_bytes[tag] += bytes;
    raise(&p->allocated, p->allocated.now + bytes);
    if (p->allocated.now > p->window_peak)
        p->window_peak = p->allocated.now;
    if (p->line.on)
        record_begin(p, r);
}

void tgi_ledger_out(tg_pool *p, record *r)
{
    r->newer->older = r->older;
    r->older->newer = r->newer;
    r->mark = 0;
    p->n_live--;
    p->frees++;
    p->tag_bytes[r->tag] -= r->bytes;
    p->allocated.now -= r->bytes;
    event *e = p->line.recorded ? event_of(p, r->number) : NULL;
    if (e)
        e->end_ns = tgi_now_ns();
}

/* ---- Scopes ------------------------------------------------------------------------------ */

static void fold_window(tg_pool *p)
{
    for (tgi_scope *s = p->scopes; s; s = s->next)
        if (p->window_peak > s->peak_bytes)
            s->peak_bytes = p->window_peak;
    p->window_peak = p->allocated.now;
}

static void begin_at_now(tg_pool *p, tgi_scope *s)
{
    s->start_bytes = s->peak_bytes = p->allocated.now;
}

void tgi_scope_open(tg_pool *p, tgi_scope *s)
{
    pthread_mutex_lock(&p->lock);
    fold_window(p);
    begin_at_now(p, s);
    s->prev = NULL;
    s->next = p->scopes;
    if (s->next)
        s->next->prev = s;
    p->scopes = s;
    pthread_mutex_unlock(&p->lock);
}

void tgi_scope_reset(tg_pool *p, tgi_scope *s)
{
    pthread_mutex_lock(&p->lock);
    fold_window(p);
    begin_at_now(p, s);
    pthread_mutex_unlock(&p->lock);
}

void tgi_scope_read(tg_pool *p, tgi_scope *s, uint64_t *now_bytes, uint64_t *peak_bytes)
{
    pthread_mutex_lock(&p->lock);
    fold_window(p);
    *now_bytes = p->allocated.now;
    *peak_bytes = s->peak_bytes;
    pthread_mutex_unlock(&p->lock);
}

void tgi_scope_close(tg_pool *p, tgi_scope *s)
{
    pthread_mutex_lock(&p->lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        p->scopes = s->next;
    if (s->next)
        s->next->prev = s->prev;
    s->next = s->prev = NULL;
    pthread_mutex_unlock(&p->lock);
}
