/* product_lines.h - cases of sums of products over whole arrays: shapes beyond one tile,
 * factors along either axis, batches, and two that are no product of matrices. */
#ifndef TG_PRODUCT_LINES_H
#define TG_PRODUCT_LINES_H

#include "tests/unit/op_case.h"

static const case_line sum_lines[] = {
    {"mat_mul", " | 70x40 ; a:40x130 | exact"},
    {"mat_mul", " | 2x3x65x16 ; a:2x3x16x70 | exact"},
    {"mat_mul", " | 2x1x65x33 ; c:3x33x7 | exact"},
    {"mat_mul", " | 5x64x72 ; c:72x64 | exact"},
    {"mat_mul", " | 129 ; a:129x9 | exact"},
    {"mat_mul", " | 3x9x129 ; a:129 | exact"},
    {"gemm", "transA=1 transB=1 alpha=0.5 beta=2 | 40x70 ; a:66x40 ; a:66 | exact"},
    {"gemm", "transB=1 | 7x48 ; c:80x48 ; c:80 | exact"},
    {"gemm", "transA=1 | 33x65 ; a:33x64 ; a:65x1 | exact"},
    {"gemm", " | 1x96 ; c:96x10 ; c:10 | exact"},
    {"einsum", "equation=bhid,bhjd->bhij | 2x2x65x24 ; a:2x2x66x24 | exact"},
    {"einsum", "equation=bhij,bhjd->bihd | 1x2x33x40 ; a:1x2x40x16 | exact"},
    {"einsum", "equation=bchw,dc->bdhw | 1x20x5x16 ; c:24x20 | exact"},
    {"einsum", "equation=bhwc,cd->bdhw | 2x5x6x20 ; c:20x3 | exact"},
    {"einsum", "equation=viwh,vivwh->vwh | 3x2x5x4 ; a:3x2x3x5x4 | exact"},
    {"einsum", "equation=ijk,ik,jk->i | 4x5x6 ; a:4x6 ; a:5x6 | exact"},
};
#define N_SUM_LINES (sizeof sum_lines / sizeof sum_lines[0])

#endif
