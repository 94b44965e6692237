/* fake_device.c - the device for tests: queues that do work as late as allowed, or as early. */
#include "tests/device/fake_device.h"

#include "engine/base/arith.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORK 16384
#define MOST_LOG 65536

fake_settings fake = {.devices = 1, .bytes = (size_t)1 << 30};

struct tgi_device {
    int id;
    int library; /* it is open */
};

/* A place in a queue: behind `at` pieces of work. */
struct tgi_device_event {
    int recorded;
    tgi_device_queue queue;
    int at;
    double time; /* known once the work in front of it is done */
};

struct tgi_device_program {
    tgi_device_queue queue;
    int n;
};

typedef enum work_kind { WORK_COPY, WORK_RUN, WORK_WAIT, WORK_MARK } work_kind;

/* Steps of a run with everything that they point to and that changes from band to band. */
typedef struct kept_steps {
    tgi_device_step *step;
    int n;
    void **block;
    int n_blocks;
} kept_steps;

typedef struct work {
    work_kind kind;
    double asked; /* the host's time then */
    void *dst;
    const void *src;
    size_t bytes;
    double seconds;
    tgi_device_event *event;
    tgi_device_event seen; /* WORK_WAIT: the event as it was then */
    kept_steps steps;
} work;

typedef struct queue {
    work work[MOST_WORK]; /* number i lies at i % MOST_WORK until it is done */
    int n, done;
    double time; /* of the last that is done */
} queue;

static struct {
    queue queue[TGI_QUEUE_COUNT];
    double now;
    fake_work log[MOST_LOG];
    int n_log, count[FAKE_CALLS], things, broken, context;
    size_t used, peak, copied[2]; /* copied: up, back */
} state;

static void drop_steps(kept_steps *k)
{
    for (int i = 0; i < k->n_blocks; i++)
        free(k->block[i]);
    free(k->block);
    free(k->step);
    memset(k, 0, sizeof *k);
}

/* ---- For tests --------------------------------------------------------------------------- */

void fake_reset(void)
{
    for (int q = 0; q < TGI_QUEUE_COUNT; q++)
        for (int i = state.queue[q].done; i < state.queue[q].n; i++)
            drop_steps(&state.queue[q].work[i % MOST_WORK].steps);
    memset(&state, 0, sizeof state);
    fake = (fake_settings){.devices = 1, .bytes = (size_t)1 << 30};
}

double fake_now(void)
{
    return state.now;
}

void fake_host_works(double seconds)
{
    state.now += seconds;
}

static int by_time(const void *a, const void *b)
{
    const double x = ((const fake_work *)a)->from, y = ((const fake_work *)b)->from;
    return x < y ? -1 : x > y;
}

int fake_log(const fake_work **out)
{
    qsort(state.log, (size_t)state.n_log, sizeof state.log[0], by_time);
    *out = state.log;
    return state.n_log;
}

size_t fake_peak_bytes(void)
{
    return state.peak;
}

int fake_count(fake_call call)
{
    return state.count[call];
}

int fake_open_things(void)
{
    return state.things;
}

/* ---- Failures ---------------------------------------------------------------------------- */

/* Count a call; the one that is to fail does. Errors of the device, other than memory, stay. */
static tg_status called(fake_call call, tgi_err *err)
{
    if (state.broken)
        return tgi_fail(err, TG_E_DEVICE, "the fake device has failed before");
    const int n = ++state.count[call], at = fake.fail_at[call];
    if (at >= 0 ? n != at : n < -at)
        return TG_OK;
    const tg_status st = fake.fail_with[call];
    state.broken = st == TG_E_DEVICE;
    const tg_status said = tgi_fail(err, st, "the fake device was told to fail");
    return call == FAKE_PIN ? said : tgi_err_tried(err, said, TGI_DEVICE_ASKS, 0);
}

/* ---- Doing what was put into the queues -------------------------------------------------- */

static tg_status do_until(tgi_device_queue q, int end, tgi_err *err);

static void note(tgi_device_queue q, double from, double to)
{
    if (state.n_log < MOST_LOG && to > from)
        state.log[state.n_log++] = (fake_work){q, from, to};
}

static tg_status run_steps(const kept_steps *k, tgi_err *err)
{
    for (int i = 0; i < k->n; i++)
        TGI_TRY(fake_run_step(&k->step[i], err));
    return TG_OK;
}

static tg_status do_one(tgi_device_queue q, work *w, tgi_err *err)
{
    queue *line = &state.queue[q];
    double from = line->time > w->asked ? line->time : w->asked;
    tg_status st = TG_OK;
    if (w->kind == WORK_WAIT && w->seen.recorded) {
        TGI_TRY(do_until(w->seen.queue, w->seen.at, err));
        from = w->event->time > from ? w->event->time : from;
    }
    if (w->kind == WORK_COPY && w->src)
        memcpy(w->dst, w->src, w->bytes);
    else if (w->kind == WORK_COPY)
        memset(w->dst, 0, w->bytes);
    if (w->kind == WORK_RUN)
        st = run_steps(&w->steps, err);
    if (w->kind == WORK_MARK)
        w->event->time = from;
    note(q, from, from + w->seconds);
    line->time = from + w->seconds;
    drop_steps(&w->steps);
    return st;
}

/* The queue's work up to number `end`, and whatever it waits for. */
static tg_status do_until(tgi_device_queue q, int end, tgi_err *err)
{
    queue *line = &state.queue[q];
    while (line->done < end)
        TGI_TRY(do_one(q, &line->work[line->done++ % MOST_WORK], err));
    return TG_OK;
}

static int can_go_on(const work *w)
{
    return w->kind != WORK_WAIT || !w->seen.recorded ||
           state.queue[w->seen.queue].done >= w->seen.at;
}

/* Eager queues do what they can without anybody waiting; the others hold still. */
static tg_status go_on(tgi_err *err)
{
    tg_status st = TG_OK;
    for (int moved = 1; st == TG_OK && moved;) {
        moved = 0;
        for (int q = 0; q < TGI_QUEUE_COUNT; q++) {
            queue *line = &state.queue[q];
            while (st == TG_OK && fake.eager[q] && line->done < line->n &&
                   can_go_on(&line->work[line->done % MOST_WORK])) {
                st = do_one((tgi_device_queue)q, &line->work[line->done++ % MOST_WORK], err);
                moved = 1;
            }
        }
    }
    return st;
}

static work *put(tgi_device_queue q)
{
    queue *line = &state.queue[q];
    if (line->n - line->done == MOST_WORK)
        abort(); /* nobody waits for anything */
    work *w = &line->work[line->n++ % MOST_WORK];
    memset(w, 0, sizeof *w);
    w->asked = state.now;
    return w;
}

/* ---- The table --------------------------------------------------------------------------- */

static const tgi_kernel_set *backend(tg_dtype element)
{
    return element == TG_DTYPE_F32 || (element == TG_DTYPE_F16 && fake.halves)
               ? fake_backend(element)
               : NULL;
}

static tg_status count(int *n, tgi_err *err)
{
    if (fake.devices <= 0)
        return tgi_fail(err, TG_E_DEVICE, "no device: none is plugged in");
    *n = fake.devices;
    return TG_OK;
}

static tg_status describe(int id, tgi_device_info *out, tgi_err *err)
{
    if (id < 0 || id >= fake.devices)
        return tgi_fail(err, TG_E_ARG, "no device %d", id);
    *out = (tgi_device_info){.id = id,
                             .name = "Fake 1000",
                             .total_bytes = fake.bytes,
                             .copies_overlap = 1,
                             .kinds = fake.kinds,
                             .driver = "none"};
    if (fake.told)
        snprintf(out->uuid, sizeof out->uuid, "%s", FAKE_UUID);
    return TG_OK;
}

static tg_status take(size_t bytes, tgi_err *err)
{
    const size_t used = state.used + fake.taken;
    if (used > fake.bytes || bytes > fake.bytes - used)
        return tgi_err_tried(err,
                             tgi_fail(err, TG_E_NOMEM,
                                      "the device has %zu bytes free, %zu are asked for",
                                      fake.bytes > used ? fake.bytes - used : 0, bytes),
                             TGI_DEVICE_ASKS, bytes);
    state.used += bytes;
    state.peak = state.used > state.peak ? state.used : state.peak;
    state.things++;
    return TG_OK;
}

static tg_status open_device(int id, tgi_device **out, tgi_err *err)
{
    TGI_TRY(called(FAKE_OPEN, err));
    if (state.context)
        state.things++; /* it is there from before */
    else
        TGI_TRY(take(fake.context_bytes, err));
    state.context = fake.keeps_context;
    fake.taken = (size_t)((long)fake.taken + fake.comes);
    *out = calloc(1, sizeof **out);
    (*out)->id = id;
    return TG_OK;
}

static tg_status library(tgi_device *d, int open, tgi_err *err);

static void close_device(tgi_device **d)
{
    if (!*d)
        return;
    if (fake.counts)
        fprintf(stderr, "fake device: %zu bytes up, %zu back\n", state.copied[0],
                state.copied[1]);
    if ((*d)->library)
        (void)library(*d, 0, NULL);
    state.used -= fake.keeps_context ? 0 : fake.context_bytes;
    state.things--;
    free(*d);
    *d = NULL;
    state.broken = 0;
}

static tg_status memory(tgi_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                        tgi_err *err)
{
    (void)d;
    (void)err;
    const size_t used = state.used + fake.taken;
    *free_bytes = used < fake.bytes ? fake.bytes - used : 0;
    *total_bytes = fake.bytes;
    return TG_OK;
}

size_t fake_used_bytes(void)
{
    return state.used;
}

/* Blocks know their size and are full of NaN. */
static void *block_of(size_t bytes)
{
    size_t *at = aligned_alloc(256, tgi_align_size(bytes, 256) + 256);
    at[0] = bytes;
    memset((char *)at + 256, 0xff, bytes);
    return (char *)at + 256;
}

static size_t drop_block(void *p)
{
    size_t *at = (size_t *)(void *)((char *)p - 256);
    const size_t bytes = at[0];
    memset(p, 0xff, bytes);
    free(at);
    return bytes;
}

static tg_status alloc(tgi_device *d, size_t bytes, void **at, tgi_err *err)
{
    (void)d;
    TGI_TRY(called(FAKE_ALLOC, err));
    TGI_TRY(take(bytes, err));
    *at = block_of(bytes);
    return TG_OK;
}

static void release(tgi_device *d, void *at)
{
    (void)d;
    state.used -= drop_block(at);
    state.things--;
}

static tg_status pin(tgi_device *d, size_t bytes, void **at, tgi_err *err)
{
    (void)d;
    TGI_TRY(called(FAKE_PIN, err));
    *at = block_of(bytes);
    state.things++;
    return TG_OK;
}

static void unpin(tgi_device *d, void *at)
{
    (void)d;
    drop_block(at);
    state.things--;
}

static tg_status copy(fake_call call, tgi_device_queue q, void *dst, const void *src,
                      size_t bytes, double per_byte, tgi_err *err)
{
    TGI_TRY(called(call, err));
    work *w = put(q);
    w->kind = WORK_COPY;
    w->dst = dst;
    w->src = src;
    w->bytes = bytes;
    w->seconds = per_byte * (double)bytes;
    return go_on(err);
}

static tg_status upload(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                        size_t bytes, tgi_err *err)
{
    (void)d;
    state.copied[0] += bytes;
    return copy(FAKE_UPLOAD, q, dst, src, bytes, fake.upload_per_byte, err);
}

static tg_status download(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                          size_t bytes, tgi_err *err)
{
    (void)d;
    state.copied[1] += bytes;
    return copy(FAKE_DOWNLOAD, q, dst, src, bytes, fake.download_per_byte, err);
}

static tg_status copy_there(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                            size_t bytes, tgi_err *err)
{
    (void)d;
    return copy(FAKE_RUN, q, dst, src, bytes, 0, err);
}

static tg_status event_new(tgi_device *d, tgi_device_event **out, tgi_err *err)
{
    (void)d;
    (void)err;
    *out = calloc(1, sizeof **out);
    state.things++;
    return TG_OK;
}

static void event_free(tgi_device *d, tgi_device_event *e)
{
    (void)d;
    free(e);
    state.things--;
}

static tg_status record(tgi_device *d, tgi_device_queue q, tgi_device_event *e, tgi_err *err)
{
    (void)d;
    (void)err;
    work *w = put(q);
    w->kind = WORK_MARK;
    w->event = e;
    *e = (tgi_device_event){1, q, state.queue[q].n, 0};
    return go_on(err);
}

static tg_status wait_event(tgi_device *d, tgi_device_queue q, tgi_device_event *e,
                            tgi_err *err)
{
    (void)d;
    (void)err;
    work *w = put(q);
    w->kind = WORK_WAIT;
    w->event = e;
    w->seen = *e;
    return go_on(err);
}

static tg_status sync_event(tgi_device *d, tgi_device_event *e, tgi_err *err)
{
    (void)d;
    TGI_TRY(called(FAKE_SYNC, err));
    for (int q = 0; q < TGI_QUEUE_COUNT; q++)
        if (!e)
            TGI_TRY(do_until((tgi_device_queue)q, state.queue[q].n, err));
    if (e && e->recorded)
        TGI_TRY(do_until(e->queue, e->at, err));
    for (int q = 0; q < TGI_QUEUE_COUNT; q++)
        if (!e && state.queue[q].time > state.now)
            state.now = state.queue[q].time;
    if (e && e->time > state.now)
        state.now = e->time;
    return TG_OK;
}

static tg_status program_open(tgi_device *d, tgi_device_queue q, const tgi_device_step *steps,
                              int n, tgi_device_program **out, size_t *bytes, tgi_err *err)
{
    *bytes = (size_t)n * 1024;
    if (!out)
        return fake.uncountable
                   ? tgi_fail(err, TG_E_UNSUPPORTED, "the fake device counts no launches")
                   : TG_OK;
    TGI_TRY(called(FAKE_PROGRAM, err));
    for (int i = 0; i < n; i++)
        if (steps[i].kind == TGI_STEP_NODE && (steps[i].variant->kinds & TGI_KIND_LIBRARY) &&
            !d->library)
            return tgi_fail(err, TG_E_DEVICE, "the library that this needs is not open");
    TGI_TRY(take(*bytes, err));
    *out = calloc(1, sizeof **out);
    **out = (tgi_device_program){q, n};
    return TG_OK;
}

static void program_close(tgi_device_program **p)
{
    if (!*p)
        return;
    state.used -= (size_t)(*p)->n * 1024;
    state.things--;
    free(*p);
    *p = NULL;
}

static void *keep(kept_steps *k, const void *src, size_t bytes)
{
    void *p = malloc(bytes + 1);
    if (bytes)
        memcpy(p, src, bytes);
    k->block[k->n_blocks++] = p;
    return p;
}

static void keep_step(kept_steps *k, tgi_device_step *s)
{
    tgi_call *c = &s->call;
    const size_t n_src = s->kind == TGI_STEP_NODE    ? (size_t)c->ctx->n_src + (size_t)c->n_epi
                         : s->kind == TGI_STEP_STORE ? 1
                                                     : 0;
    const size_t n_dst = s->kind == TGI_STEP_NODE   ? (size_t)c->ctx->n_dst
                         : s->kind == TGI_STEP_LOAD ? 1
                                                    : 0;
    size_t used = (size_t)(s->kind == TGI_STEP_NODE ? c->ctx->n_src : (int)n_src);
    for (int i = 0; i < c->n_epi; i++)
        if (c->epi[i].src >= 0 && (size_t)c->epi[i].src + 1 > used)
            used = (size_t)c->epi[i].src + 1;
    tgi_operand *src = keep(k, c->src, used * sizeof *src);
    for (size_t j = 0; j < used; j++)
        src[j].seg = keep(k, src[j].seg, (size_t)src[j].n_seg * sizeof(tgi_view));
    c->src = src;
    c->dst = keep(k, c->dst, n_dst * sizeof(tgi_view));
}

static tg_status program_run(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err)
{
    TGI_TRY(called(FAKE_RUN, err));
    work *w = put(p->queue);
    w->kind = WORK_RUN;
    w->seconds = fake.run_seconds;
    kept_steps *k = &w->steps;
    k->n = p->n;
    k->step = malloc((size_t)p->n * sizeof *k->step);
    k->block = malloc((size_t)p->n * (TGI_OP_MAX_SRC + 32) * sizeof *k->block);
    memcpy(k->step, steps, (size_t)p->n * sizeof *k->step);
    for (int i = 0; i < p->n; i++)
        keep_step(k, &k->step[i]);
    return go_on(err);
}

/* A layer over and over computes the same: once will do, and takes the time of all. */
static int program_loose(const tgi_device_program *p)
{
    (void)p;
    return fake.loose;
}

static tg_status program_time(tgi_device_program *p, const tgi_device_step *steps,
                              double *seconds, tgi_err *err)
{
    const int n = p->n;
    TGI_TRY(sync_event(NULL, NULL, err));
    const double from = fake_now();
    p->n = 1;
    const tg_status st = program_run(p, steps, err);
    p->n = n;
    TGI_TRY(st);
    TGI_TRY(sync_event(NULL, NULL, err));
    const double took = fake_now() - from;
    *seconds = (took > 0 ? took : 1e-3) * n; /* where a test sets no time: some */
    return TG_OK;
}

static tg_status times(tgi_device *d, double seconds[3], tgi_err *err)
{
    TGI_TRY(sync_event(d, NULL, err));
    memset(seconds, 0, 3 * sizeof *seconds);
    for (int i = 0; i < state.n_log; i++)
        seconds[state.log[i].queue < TGI_QUEUE_COMPUTE ? (int)state.log[i].queue : 2] +=
            state.log[i].to - state.log[i].from;
    return TG_OK;
}

static tg_status library(tgi_device *d, int open, tgi_err *err)
{
    if (open == d->library)
        return TG_OK;
    if (!open) {
        state.used -= fake.library_bytes - fake.library_keeps;
        state.things--;
        d->library = 0;
        return TG_OK;
    }
    if (!fake.library_bytes)
        return tgi_fail(err, TG_E_UNSUPPORTED, "there is no library");
    TGI_TRY(called(FAKE_LIBRARY, err));
    TGI_TRY(take(fake.library_bytes, err));
    d->library = 1;
    return TG_OK;
}

static const char *library_name(tgi_device *d)
{
    return !d->library ? NULL : fake.newer_library ? "Fake library 2" : "Fake library 1";
}

const tgi_device_ops *fake_device_ops(void)
{
    static const tgi_device_ops ops = {.abi = TGI_DEVICE_ABI,
                                       .name = "cuda", /* what jobs ask for */
                                       .backend = backend,
                                       .count = count,
                                       .describe = describe,
                                       .open = open_device,
                                       .close = close_device,
                                       .memory = memory,
                                       .alloc = alloc,
                                       .release = release,
                                       .pin = pin,
                                       .unpin = unpin,
                                       .upload = upload,
                                       .download = download,
                                       .copy = copy_there,
                                       .event_new = event_new,
                                       .event_free = event_free,
                                       .record = record,
                                       .wait = wait_event,
                                       .sync = sync_event,
                                       .program_open = program_open,
                                       .program_close = program_close,
                                       .program_run = program_run,
                                       .program_time = program_time,
                                       .program_loose = program_loose,
                                       .times = times,
                                       .library = library,
                                       .library_name = library_name};
    return &ops;
}
