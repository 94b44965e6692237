/* schedule_device.h - networks of a schedule on a device. Of buffers in the host's memory each network gets its inputs band
 * by band, and it gives its outputs back to there; those that stay on the device it reads and writes where they lie.
 *
 * Networks follow each other in one queue of the device. What comes back to the host is waited for, nothing else is: so
 * the host goes on while the device computes.
 *
 * Every network has its weights on the device. What they compute in, and what is on its way, they share: never two of
 * them run at once. */
#ifndef TGI_SCHEDULE_DEVICE_H
#define TGI_SCHEDULE_DEVICE_H

#include "engine/device/pinned.h"
#include "engine/exec/device_exec.h"
#include "engine/plan/device_time.h"
#include "engine/plan/schedule.h"

/* What the networks of a schedule take. Those of several schedules that never run at once share the room, up and back. */
typedef struct tgi_sched_need {
    size_t weights, program; /* of the device, for all of them */
    size_t room;             /* of the device, once */
    size_t far;              /* of the device, once: buffers that stay there */
    size_t missed;           /* that would, and lie in the host's memory for want of room */
    size_t up, back;         /* pinned memory of the host, once */
    size_t packing;          /* of the host, while weights are sent */
} tgi_sched_need;

/* Bytes of the room that a tiling takes beside its arena; SIZE_MAX: the device does not take it. */
size_t tgi_schedule_device_extra(const tgi_device_ops *ops, const tgi_tiling *t,
                                 const tgi_sched_stay *always);
/* What of a device tgi_sched_device asks for: seconds by its rates, bytes beside the arena; user = one of these. */
typedef struct tgi_sched_pace {
    const tgi_device_ops *ops;
    tgi_rates rates;
} tgi_sched_pace;
double tgi_schedule_device_seconds(void *user, const tgi_tiling *t,
                                   const tgi_sched_stay *stays);
double tgi_schedule_device_pass(void *user, const tgi_sched_net *n);
/* Networks of `element`, in so much room, and buffers that stay there in `far`. `pace` borrowed. */
tgi_sched_device tgi_schedule_device_of(const tgi_sched_pace *pace, tg_dtype element,
                                        size_t room, size_t far);
#define TGI_ROOMS_TRIED 200 /* about one for each network that does not fit the one before */
/* The least room that all networks do with: `plan` plans them in one, and is called again with what the first that does not
 * fit takes. It leaves the plan in that room. */
tg_status tgi_schedule_device_least(tg_status (*plan)(void *user, size_t room, tgi_err *err),
                                    void *user, tgi_err *err);
/* Add what a schedule takes that is planned. */
tg_status tgi_schedule_device_need(const tgi_device_ops *ops, const tgi_schedule *s,
                                   tgi_sched_need *add, tgi_err *err);
/* All of it on the device. */
size_t tgi_sched_need_device(const tgi_sched_need *n);

/* The memory that is shared, of a tgi_sched_need. */
typedef struct tgi_sched_card {
    const tgi_device_ops *ops;
    tgi_device *device; /* borrowed */
    void *room, *far;   /* on the device */
    tgi_pinned up, back;
    size_t up_bytes;
    /* What converts on the way: NULL: this thread alone, and the definition of pixels.h. Borrowed, set by who opens it. */
    tgi_threads *pool;
    const tgi_kernel_set *be;
    tgi_device_event *computed; /* what the networks before compute is done: the room is free */
    tgi_device_event *sent;     /* what lies in `up` is on the device */
} tgi_sched_card;

tg_status tgi_sched_card_open(const tgi_device_ops *ops, tgi_device *device,
                              const tgi_sched_need *need, tgi_sched_card *out, tgi_err *err);
void tgi_sched_card_close(tgi_sched_card *c);

/* Where an array of an input or output lies: as buffers do. `row`: floats from row to row, where it is a part of more
 * channels than its own; 0: it is all. Of one on the device `type` is that of its numbers, and `row` counts them from pixel to
 * pixel. */
typedef struct tgi_sched_at {
    const float *at;
    int64_t row;
    tg_dtype type; /* TG_DTYPE_NONE: it lies in the host's memory */
} tgi_sched_at;

/* All of an array of the host's memory; NULL: of an output that is dropped. */
static inline tgi_sched_at tgi_sched_here(const float *at)
{
    return (tgi_sched_at){at, 0, TG_DTYPE_NONE};
}

/* Bytes of the device to others of it, or zeros there (`from` NULL), behind the networks before. */
tg_status tgi_sched_card_copy(const tgi_sched_card *c, void *to, const void *from, size_t bytes,
                              tgi_err *err);
/* All of an array of the host, to the device, before the networks behind. */
tg_status tgi_sched_card_put(const tgi_sched_card *c, const tgi_view *from, int64_t height,
                             tgi_sched_at to, tgi_err *err);

/* A network on it: `in` and `out` answer for an input or output where its array lies; of one in the host's memory `from` and
 * `to` how all of it lies; to's base NULL: it is dropped. */
typedef struct tgi_sched_ends {
    void *user;
    const tgi_sched_at *(*in)(void *user, int i);
    const tgi_sched_at *(*out)(void *user, int o);
    tgi_view (*from)(void *user, int i);
    tgi_view (*to)(void *user, int o);
    tg_status (*stop)(void *user, tgi_err *err); /* between bands; or NULL */
} tgi_sched_ends;

typedef struct tgi_sched_on_card tgi_sched_on_card;

/* `c` borrowed. Returned; tgi_sched_on_card_close. */
tg_status tgi_sched_on_card_open(const tgi_sched_card *c, const tgi_sched_net *net,
                                 const tgi_sched_ends *ends, tgi_sched_on_card **out,
                                 tgi_err *err);
void tgi_sched_on_card_close(tgi_sched_on_card **n);
/* One cell: what it gives the host is in its place when this returns, and what stays on the device when the next network
 * begins. */
tg_status tgi_sched_on_card_cell(tgi_sched_on_card *n, int64_t cell, const tgi_range core[3],
                                 tgi_err *err);
/* What its tables take. */
size_t tgi_sched_on_card_bytes(const tgi_sched_net *net);

#endif
