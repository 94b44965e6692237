/* op_harness.h - run one operator on dense test data: contexts from text or from an ONNX node,
 * and views that hold exactly one box, with poison around it. */
#ifndef TG_OP_HARNESS_H
#define TG_OP_HARNESS_H

#include "kernels/backend.h"
#include "kernels/op.h"
#include "tests/tg_test.h"

/* A node with its inputs as dense arrays. Owned; release with node_close. */
typedef struct op_node {
    const tgi_op *op;
    void *attrs;
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    void *data[TGI_OP_MAX_SRC]; /* dense, of src[i].dtype; NULL when not given */
    int is_const[TGI_OP_MAX_SRC];
    tgi_constant cst[TGI_OP_MAX_SRC];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    tgi_op_ctx ctx;
    int exact; /* 1: by no variant that rearranges sums */
} op_node;

/* Default attributes for op; sources are filled by the caller, then node_bind. */
void node_open(op_node *n, const tgi_op *op, int opset, int n_src, int n_dst);
/* Allocate dense data of src[i]. */
void *node_data(op_node *n, int i);
/* Point the context at the sources and infer. */
tg_status node_bind(op_node *n, tgi_err *err);
void node_close(op_node *n);

/* A view that stores `box` of a value of shape `d`: rows in a ring a little longer than the
 * box, columns with a margin, everything poisoned with NaN. */
typedef struct test_view {
    tgi_view v;
    float *mem;
    size_t floats;
    int64_t z_rows, y_rows; /* rings */
} test_view;

void view_open(test_view *t, const tgi_desc *d, int64_t channels, const tgi_box *box, int cb,
               uint64_t *seed);
void view_close(test_view *t);
/* Copy channels [c0, c0 + v.c) of dense data into the box; zeros outside the image. */
void view_fill(test_view *t, const tgi_desc *d, const float *dense, int64_t c0,
               const tgi_box *box);

/* A tuned variant chosen for a node, with its packed weights. Owned; runner_close. */
typedef struct op_runner {
    const tgi_kernel_set *be;
    const tgi_variant *v;
    tgi_layout_hint lay;
    void *packed, *scratch; /* aligned, inside the blocks below */
    void *packed_block, *scratch_block;
    size_t packed_bytes, scratch_bytes;
} op_runner;

/* Backends to test: those of this processor, or a device's (TG_TEST_DEVICE). NULL past the
 * end. */
const tgi_kernel_set *runner_backend(int i);

/* 0: no variant of this backend takes the node with blocked operands. */
int runner_open(op_runner *r, const op_node *n, const tgi_kernel_set *be, uint64_t *seed);
void runner_close(op_runner *r);

/* As node_run_box below, by a variant: its need, its layout. */
void node_run_variant(const op_node *n, const op_runner *r, const tgi_box *box, uint64_t *seed,
                      float *const *dst, int *clean);

/* Compute `box` of all outputs with the reference from exactly the boxes that `need` names (and
 * constants), sources cut into up to `max_seg` segments of `cb` lanes. Results are written into
 * dense outputs dst[i] (only the box). Returns the status of ref; *clean is 0 when something
 * outside the box was written or an unused lane is not zero. */
tg_status node_run_box(const op_node *n, const tgi_box *box, int cb, int max_seg,
                       uint64_t *seed, float *const *dst, int *clean, tgi_err *err);

/* Box `box` of output 0 as seen by output i (same spatial extent, its own channels). */
tgi_box box_of_output(const op_node *n, int i, const tgi_box *box);
/* A random box of d: one pixel, primes, anything, whole. */
tgi_box box_random(const tgi_desc *d, uint64_t *seed);
size_t desc_floats(const tgi_desc *d);

#endif
