/* schedule.h - several networks over several arrays: which step reads and writes which, planned to the
 * byte before any of them runs.
 *
 * A schedule is a list of *steps*. A step runs a network, or a function of the caller's, with *buffers*
 * bound to its inputs and outputs. What it does depends on no pixel. So each buffer has a first and
 * a last step, and each network an arena that lives in its steps; the arena packer places them all in one
 * block. A network may stand in several steps, at several sizes: each size is a net of its own.
 *
 * Buffers are dense, [C,H,W] in float32, or bytes of the caller's own form. A buffer `kept` lives from the
 * first step to the last: it is there before and after a run.
 *
 * With `lanes` buffers lie as the networks compute, [row][block][column][lane], but for those of TGI_PLANAR_MAX channels and
 * fewer, which stay dense. Nothing is turned on the way then, and what a network reads whole (a picture that is warped,
 * keys, values) it reads where it lies.
 *
 * Where a device computes the networks, buffers that they alone touch may stay there, as [H][W][C] of the device's own
 * type: as many as the caller gives room for, those first that are read and written most. Nothing is copied for them but
 * on the device, and the numbers are the same.
 *
 *     tgi_schedule_new(&s, err)
 *     a = tgi_schedule_buffer(s, "pair", c, h, w)          in any order, then
 *     n = tgi_schedule_net(s, graph, be, c, h, w, threads)
 *     tgi_schedule_step(s, &(tgi_sched_step){.net = n, .in = {a}, .out = {b}})
 *     tgi_schedule_plan(s, err)                            block_bytes and weight_bytes hold then
 *
 * Errors are kept until tgi_schedule_plan tells the first. */
#ifndef TGI_SCHEDULE_H
#define TGI_SCHEDULE_H

#include "engine/plan/choose.h"

#define TGI_SCHED_PORTS 16
#define TGI_SCHED_WORK (-1) /* in the place of a net: a function */
#define TGI_SCHED_COPY                                                                         \
    (-2) /* the same: output i becomes what input i is; outputs without one become 0 */

typedef struct tgi_sched_buffer {
    char name[24];
    int64_t shape[3]; /* C,H,W; of bytes 1,1,bytes */
    size_t bytes;
    int kept, far_only;
    int first, last; /* steps; first > last: nobody uses it */
    size_t offset;   /* once it is planned, in the block, or in what stays on the device: */
    tg_dtype type;   /* of its numbers there; TG_DTYPE_NONE: it lies in the host's memory */
    /* Of use while it is planned (schedule_far.c): */
    int64_t uses; /* passes that read or write it */
    int here;     /* a function looks at it */
    int wide;     /* a network fills it with float32 */
    int with;     /* a buffer that it is copied from, or changes places with */
} tgi_sched_buffer;

/* Which of a network's arrays stay on the device: bit i is that of input or output i. */
typedef struct tgi_sched_stay {
    uint32_t in, out;
} tgi_sched_stay;

typedef struct tgi_sched_net {
    const tgi_graph *graph; /* borrowed */
    tgi_net *net;
    tgi_stages *stages;
    tgi_choice choice;
    int called;                   /* from outside of the steps too */
    int said;                     /* its bindings are all that there are */
    tgi_sched_stay stays, always; /* once it is planned: in most of its passes, in all */
    size_t weights_at, arena_at;  /* in the weights, in the block */
} tgi_sched_net;

/* What a pass of a network is of: seconds, operations. */
typedef double tgi_sched_pass(void *user, const tgi_sched_net *n);

/* A buffer in a port of a network, so many times. */
typedef struct tgi_sched_binding {
    int net, is_out, port, buffer;
    int64_t times;
} tgi_sched_binding;

/* What computes the networks in the processor's place; buffers and functions stay where they are. */
typedef struct tgi_sched_device {
    const tgi_kernel_set *be; /* whatever the caller names for a network */
    /* Of float32, for networks that `be` cannot compute since they make numbers of that type on the way (offsets, coordinates);
     * NULL: there are none. */
    const tgi_kernel_set *wide;
    size_t room; /* bytes there for what a network computes in, beside weights */
    size_t
        far; /* bytes there, beside the room, for buffers that stay; 0: all lie in the host's memory */
    double (*seconds)(void *user, const tgi_tiling *t, const tgi_sched_stay *stays);
    /* Of the room, beside the arena: what comes from the host and goes there has a place. */
    size_t (*extra)(void *user, const tgi_tiling *t, const tgi_sched_stay *always);
    void *user;
} tgi_sched_device;

/* tgi_err.asked_by of a TG_E_BUDGET when a network does not fit the room: tried_bytes is what it takes at least. */
#define TGI_SCHED_ROOM "the room"

struct tgi_sched_step;
/* buffer[i]: where the i-th buffer of the schedule lies. */
typedef tg_status tgi_sched_work(void *user, const struct tgi_sched_step *step,
                                 void *const *buffer, tgi_err *err);

typedef struct tgi_sched_step {
    const char *name;     /* static */
    int net;              /* or TGI_SCHED_COPY, or TGI_SCHED_WORK: */
    tgi_sched_work *work; /* called with the user of the run */
    int number;           /* the caller's own: a level, a frame */
    int repeat;           /* a network: so many times; 0: once */
    int in[TGI_SCHED_PORTS], out[TGI_SCHED_PORTS];
    int n_in, n_out;
    /* Where it is repeated: input state_in[k] gets what output state_out[k] gave of the time before. The two
     * buffers have one shape and change places; what came last lies in the output's. */
    int state_in[2], state_out[2], n_state;
} tgi_sched_step;

typedef struct tgi_schedule {
    int lanes; /* 0: all buffers are dense; set before the first of them */
    unsigned
        flags; /* of all nets: TGI_NET_EXACT, TGI_NET_KINDS; set before the first of them */
    const tgi_sched_device *device; /* borrowed, or NULL; set before the first of them */
    tgi_sched_buffer *buffer;
    int n_buffers;
    tgi_sched_net *net;
    int n_nets;
    tgi_sched_step *step;
    int n_steps;
    tgi_sched_binding *binding; /* of networks that are called; once it is planned, of all */
    int n_bindings;
    size_t block_bytes;  /* buffers and, of the processor, arenas */
    size_t far_bytes;    /* buffers that stay on the device */
    size_t far_missed;   /* those that would, and have no room there */
    size_t weight_bytes; /* of all nets; 0: a device has them */
    double flops;        /* of all steps */
    tg_status st;        /* the first that went wrong, and why */
    tgi_err err;
} tgi_schedule;

/* Lanes of an array of c channels in such a schedule; 1: it is dense. */
static inline int64_t tgi_sched_lanes(int lanes, int64_t c)
{
    return lanes && c > TGI_PLANAR_MAX ? lanes : 1;
}
/* Floats from row to row of an array with lanes, and of all of one of c channels. */
int64_t tgi_sched_row(int lanes, int64_t c, int64_t w);
int64_t tgi_sched_floats(int lanes, int64_t c, int64_t h, int64_t w);

tg_status tgi_schedule_new(tgi_schedule **out, tgi_err *err);
void tgi_schedule_free(tgi_schedule **s);
/* A buffer of float32; of bytes. Its number. */
int tgi_schedule_buffer(tgi_schedule *s, const char *name, int64_t c, int64_t h, int64_t w);
int tgi_schedule_bytes(tgi_schedule *s, const char *name, size_t bytes);
void tgi_schedule_keep(tgi_schedule *s, int buffer);
/* Of a network that is called: its input `in` is that buffer, its output `out` goes there, so many times while the others go
 * as often as is said of them. Buffers that networks alone touch may stay on a device. */
void tgi_schedule_reads(tgi_schedule *s, int net, int in, int buffer, int64_t times);
void tgi_schedule_writes(tgi_schedule *s, int net, int out, int buffer, int64_t times);
/* Nothing else is ever bound to it: what stays needs no place on its way. */
void tgi_schedule_said(tgi_schedule *s, int net);
/* The buffer is of use on a device alone: in the host's memory it takes nothing. */
void tgi_schedule_far_only(tgi_schedule *s, int buffer);
/* A network whose first input is [1,c,h,w], or the one that is there already; `g` outlives the schedule. Its number. */
int tgi_schedule_net(tgi_schedule *s, const tgi_graph *g, const tgi_kernel_set *be, int64_t c,
                     int64_t h, int64_t w, int threads);
/* The network runs when the caller says so (tgi_schedule_call): with arrays of the caller's, outside of all steps, and
 * never two of these at once. A schedule may have no steps then. */
void tgi_schedule_called(tgi_schedule *s, int net);
/* Copied. */
void tgi_schedule_step(tgi_schedule *s, const tgi_sched_step *step);
/* Lifetimes, tilings, offsets. TG_E_ARG: a step binds a buffer of another shape than its network has there. */
tg_status tgi_schedule_plan(tgi_schedule *s, tgi_err *err);

/* Type of a value on its way between networks of a device: halves where they have no more of it. */
tg_dtype tgi_sched_type(const tgi_net *net, int value);
/* Bytes of a buffer where it stays on the device. */
size_t tgi_sched_far_bytes(const tgi_sched_buffer *b, tg_dtype type);
/* 1: once it is planned, the buffer stays on the device. */
static inline int tgi_schedule_stays(const tgi_schedule *s, int buffer)
{
    return s->buffer[buffer].type != TG_DTYPE_NONE;
}
/* schedule_far.c: choose what stays on the device, and where; part of tgi_schedule_plan. */
tg_status tgi_schedule_plan_far(tgi_schedule *s, tgi_err *err);

#endif
