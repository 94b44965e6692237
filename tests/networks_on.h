/* networks_on.h - what computes the networks of a test's schedules: the processor, or, in a program with TG_TEST_DEVICE, the
 * device of the test (tests/cuda/device_run.h), in float32 or in halves. */
#ifndef TG_NETWORKS_ON_H
#define TG_NETWORKS_ON_H

#include "engine/exec/schedule_run.h"
#include "tests/golden_bounds.h"
#include "tests/tg_test.h"

#ifdef TG_TEST_DEVICE
#include "engine/inpaint/on_device.h"
#include "tests/cuda/device_run.h"
#endif

static inline void *networks_room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0xff, bytes); /* no number: what is read before it was written shows */
    return p;
}

#ifdef TG_TEST_DEVICE

#define NETWORKS_ROOM ((size_t)512 << 20)

static tgi_device *networks_device;
static tgi_sched_pace networks_pace;
static tgi_on_device networks_on;

/* From now on networks are of that type; 0: the device has none, or there is no device. Of float32 what lies between networks
 * stays on the device, where a test does not see it; of halves it lies with the host. */
static inline int networks_in(tg_dtype element)
{
    const tgi_device_ops *ops = device_of_test(&networks_device);
    if (!ops || !device_has(element) || !ops->backend(element))
        return 0;
    networks_pace =
        (tgi_sched_pace){ops, tgi_device_rates(device_described()->multiprocessors, element)};
    networks_on = (tgi_on_device){
        .ops = ops,
        .device = &networks_device,
        .flags = TGI_NET_KINDS(device_kinds() & TGI_KIND_WGMMA), /* float32 stays that */
        .how = tgi_schedule_device_of(&networks_pace, element, NETWORKS_ROOM,
                                      element == TG_DTYPE_F32 ? NETWORKS_ROOM : 0),
        .motion =
            tgi_schedule_device_of(&networks_pace, TG_DTYPE_F32, NETWORKS_ROOM, NETWORKS_ROOM)};
    return 1;
}

static inline tg_dtype networks_element(void)
{
    return networks_on.how.be->element;
}

/* Flags of networks there. */
static inline unsigned networks_flags(void)
{
    return networks_on.flags;
}

/* What a schedule is to be planned with; `motion`: of the networks that find motions. */
static inline const tgi_sched_device *networks_of(int motion)
{
    return motion ? &networks_on.motion : &networks_on.how;
}

static inline void networks_card(const tgi_schedule *s, tgi_sched_card *card)
{
    tgi_sched_need need = {0};
    tgi_err e = {0};
    CHECK_OK(tgi_schedule_device_need(networks_on.ops, s, &need, &e), e);
    CHECK_OK(tgi_sched_card_open(networks_on.ops, networks_device, &need, card, &e), e);
}

#else

static inline int networks_in(tg_dtype element)
{
    return element == TG_DTYPE_F32;
}

static inline tg_dtype networks_element(void)
{
    return TG_DTYPE_F32;
}

static inline unsigned networks_flags(void)
{
    return 0;
}

static inline const tgi_sched_device *networks_of(int motion)
{
    (void)motion;
    return NULL;
}

static inline void networks_card(const tgi_schedule *s, tgi_sched_card *card)
{
    (void)s;
    (void)card;
}

#endif

/* Memory of a schedule that is planned, and of the device where it has one. */
typedef struct networks_memory {
    tgi_schedule_memory m;
    tgi_sched_card card;
} networks_memory;

static inline void networks_take(networks_memory *to, const tgi_schedule *s, size_t block,
                                 tgi_threads *pool)
{
    *to = (networks_memory){.m = {.weights = networks_room(s->weight_bytes),
                                  .block = networks_room(block),
                                  .pool = pool,
                                  .card = &to->card}};
    networks_card(s, &to->card);
}

static inline void networks_give(networks_memory *m)
{
    tgi_sched_card_close(&m->card);
    free(m->m.weights);
    free(m->m.block);
}

#endif
