/* layer_case.h - one convolution with data, ready to run through one of our variants: what
 * bench_op and perf_floor time. Failures end the program: these are programs for people. */
#ifndef TG_LAYER_CASE_H
#define TG_LAYER_CASE_H

#include "kernels/backend.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/threads.h"

typedef struct layer {
    const char *name;
    int64_t ci, co, d, h, w, k, s, groups; /* d 0: 2-D */
    int transposed;
    int64_t kw; /* columns of the kernel where they are not k; 0: k */
} layer;

typedef struct layer_case {
    const layer *l;
    conv_attrs attrs;
    tgi_desc src[3], dst;
    tgi_constant cst[3];
    const tgi_constant *cp[3];
    tgi_op_ctx ctx;
    float *x, *w, *b; /* dense */
    const tgi_variant *v;
    tgi_view sv, dv;
    tgi_operand operand;
    float *mem[4]; /* source view, destination view, packed weights, scratch */
    size_t packed_bytes, scratch_bytes;
    tgi_epi_step relu;
    tgi_call call;
    double flops; /* of direct convolution: 2 per multiply-add */
} layer_case;

typedef struct layer_choice {
    const char *variant;               /* of this name; NULL: the one the planner prefers */
    int exact;                         /* direct sums only */
    unsigned kinds;                    /* of variants that are allowed too: TGI_KIND_* */
    void (*round)(float *p, size_t n); /* pixels and weights, as somebody holds them; or NULL */
} layer_choice;

/* Fill in shapes and data of a layer with bias and ReLU. 0: no such variant accepts the layer
 * (close all the same). */
int layer_case_open(layer_case *k, const layer *l, const tgi_kernel_set *be,
                    const layer_choice *want, tgi_threads *pool);
void layer_case_close(layer_case *k);

void layer_case_run(layer_case *k);
/* The reference's answer, ReLU applied, and ours: dense arrays of the caller's. */
void layer_case_reference(layer_case *k, float *dense);
void layer_case_answer(layer_case *k, float *dense);
/* What stands in the destination view now. */
void layer_case_dense(const layer_case *k, float *dense);

size_t layer_count(const tgi_desc *d); /* elements */
float *layer_floats(size_t n);         /* zeroed, page-aligned; free() */
_Noreturn void layer_die(const char *what);

#endif
