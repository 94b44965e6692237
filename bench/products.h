/* products.h - matrix products by oneDNN, which linears and attention are measured beside. */
#ifndef TG_PRODUCTS_H
#define TG_PRODUCTS_H

#include "kernels/backend.h"

/* `count` products of m x k numbers with k x n, all of their own numbers. */
typedef struct product {
    int64_t count, m, n, k;
    int constant; /* 1: the second operand is one for ever, packed ahead, and a bias is added */
    int turned;   /* the second lies as n x k */
    int softmax;  /* of the rows of the result, where it is asked for */
} product;

typedef struct products products; /* several, one after another */

int products_there(void); /* 0: built without oneDNN */

/* Each by the faster of the library's two ways, a primitive and sgemm, as a trial says. NULL: there
 * is no oneDNN. Failures end the program. Owned by the caller: products_close. */
products *products_open(const product *p, int n, int threads, tgi_isa isa);
void products_close(products *all);

/* Seconds of all of them, by measure_now; of `softmax` 1: of what stands behind them. Of many that would not fit 64 MiB some are computed, and
 * their time is multiplied: the rate is that of numbers that lie nearer. */
double products_seconds(const products *all, int softmax);
double products_flops(const products *all);
/* "brgemm:avx512_core, sgemm": what computes them. */
const char *products_ways(const products *all);

#endif
