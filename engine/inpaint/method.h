/* method.h - what makes frames without what masks hide: each way to do that is a method, and inpaint.c knows no more of it
 * than this. A method's struct begins with `tgi_method`. */
#ifndef TGI_METHOD_H
#define TGI_METHOD_H

#include "engine/exec/schedule_device.h"
#include "engine/inpaint/follow.h"
#include "engine/plan/tiling.h"

/* What is known of a frame, valid until the next call. */
typedef struct tgi_propagated {
    int64_t height, width;
    const void *pixels;    /* the result, [height][width][samples] */
    const uint8_t *hidden; /* [height][width] */
    const uint8_t *left; /* of these, what no frame shows: 1; NULL: the method does not tell */
    const void *
        source; /* the frame as it was read: for previews (tgi_inpaint_look), which read it once more */
    int all_hidden; /* 1: all of it is: places of the nearest frames that show them, as they are, else black */
} tgi_propagated;

typedef struct tgi_method tgi_method;

typedef struct tgi_method_ops {
    void (*free)(tgi_method **m);
    /* What it will hold, page tables not counted; bytes of the scratch file. */
    size_t (*bytes)(const tgi_method *m);
    uint64_t (*disk)(const tgi_method *m);
    /* Take less memory, before anything was made: the next smaller way. 0: there is none. */
    int (*shrink)(tgi_method *m);
    /* Of `bytes`, what a GPU would hold if it computed: networks and weights. NULL: there are none. */
    size_t (*networks)(const tgi_method *m);
    /* What its networks take of a device that computes them, each at most; the host's part is in `bytes`. NULL: no device does. */
    void (*need)(const tgi_method *m, tgi_sched_need *out);
    /* Begun on a device: the memory that its networks share. NULL: no device does. */
    const tgi_sched_card *(*card)(const tgi_method *m);
    /* Operations of a frame. */
    double (*flops)(const tgi_method *m);
    /* Seconds of frames [from, until), where `of` says those of a network's pass. What the masks decide, and nobody has
     * read, takes the most; `least`: the least. */
    double (*seconds)(const tgi_method *m, int64_t from, int64_t until, int least,
                      tgi_sched_pass *of, void *user);
    /* Take the memory, before the first frame. NULL: `make` does. */
    tg_status (*begin)(tgi_method *m, tgi_err *err);
    /* Frame k. */
    tg_status (*make)(tgi_method *m, int64_t k, tgi_propagated *out, tgi_err *err);
    /* After that: the motion from frame k to the next one, completed; 0: there is none. NULL: the method tells none. */
    int (*motion)(tgi_method *m, int64_t k, tgi_motion *out);
    /* What somebody should know of the settings, a sentence, or "". NULL: nothing. */
    void (*note)(const tgi_method *m, char *buf, size_t cap);
    /* "81 frames, 20 of them in memory, ..." */
    void (*text)(const tgi_method *m, char *buf, size_t cap);
} tgi_method_ops;

struct tgi_method {
    const tgi_method_ops *ops;
};

#endif
