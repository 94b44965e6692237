/* cu_fold.cuh - the reductions of family_reduce.c, number by number: what many become one by.
 * Shared by the kernels for images and for whole arrays. */
#ifndef TGI_CU_FOLD_CUH
#define TGI_CU_FOLD_CUH

#include "kernels/cuda/cu_common.cuh"

#include <math.h>

enum cu_fold_kind {
    CU_L1,
    CU_L2,
    CU_LOG_SUM,
    CU_LOG_SUM_EXP,
    CU_MAX,
    CU_MEAN,
    CU_MIN,
    CU_PROD,
    CU_SUM,
    CU_SQUARES,
    CU_MAX_POOL /* a NaN never wins */
};

/* ---- Folds: R is float or double --------------------------------------------------------- */

template <class R> struct cu_fold {
    R acc, top; /* top: of CU_LOG_SUM_EXP, the largest; acc counts from there */
};

template <class R> __device__ __forceinline__ cu_fold<R> cu_fold_start(int kind)
{
    cu_fold<R> f;
    f.acc = kind == CU_MAX || kind == CU_MAX_POOL ? (R)-INFINITY
            : kind == CU_MIN                      ? (R)INFINITY
            : kind == CU_PROD                     ? (R)1
                                                  : (R)0;
    f.top = (R)-INFINITY;
    return f;
}

/* log(exp(a)) of two sums, each `acc` times exp(top). */
template <class R>
__device__ __forceinline__ cu_fold<R> cu_add_exp(const cu_fold<R> &a, const cu_fold<R> &b)
{
    const R minus = (R)-INFINITY;
    if (b.top == minus && b.acc == b.acc)
        return a;
    if (a.top == minus && a.acc == a.acc)
        return b;
    cu_fold<R> f;
    f.top = b.top > a.top ? b.top : a.top;
    f.acc = a.acc * (a.top == f.top ? (R)1 : (R)exp(a.top - f.top)) +
            b.acc * (b.top == f.top ? (R)1 : (R)exp(b.top - f.top));
    return f;
}

/* Two folds of the same kind, `a` of what comes first. */
template <class R>
__device__ __forceinline__ cu_fold<R> cu_fold_merge(int kind, const cu_fold<R> &a,
                                                    const cu_fold<R> &b)
{
    cu_fold<R> f = a;
    switch (kind) {
    case CU_MAX:
        f.acc = b.acc > a.acc || b.acc != b.acc ? b.acc : a.acc;
        break;
    case CU_MIN:
        f.acc = b.acc < a.acc || b.acc != b.acc ? b.acc : a.acc;
        break;
    case CU_MAX_POOL:
        f.acc = b.acc > a.acc ? b.acc : a.acc;
        break;
    case CU_PROD:
        f.acc = a.acc * b.acc;
        break;
    case CU_LOG_SUM_EXP:
        f = cu_add_exp(a, b);
        break;
    default:
        f.acc = a.acc + b.acc;
        break;
    }
    return f;
}

template <class R> __device__ __forceinline__ void cu_fold_add(int kind, cu_fold<R> *f, R v)
{
    cu_fold<R> one;
    one.acc = kind == CU_L1                         ? (v < 0 ? -v : v)
              : kind == CU_L2 || kind == CU_SQUARES ? v * v
              : kind == CU_LOG_SUM_EXP && v == v    ? (R)1
                                                    : v;
    one.top = v;
    *f = cu_fold_merge(kind, *f, one);
}

/* `n`: how many were folded. */
template <class R>
__device__ __forceinline__ float cu_fold_result(int kind, const cu_fold<R> &f, R n)
{
    switch (kind) {
    case CU_L2:
        return (float)sqrt(f.acc);
    case CU_LOG_SUM:
        return (float)log(f.acc);
    case CU_LOG_SUM_EXP:
        return (float)(log(f.acc) + (f.acc > 0 ? f.top : (R)0));
    case CU_MEAN:
        return (float)(f.acc / n);
    default:
        return (float)f.acc;
    }
}

/* Operators by symbol and ONNX name, and what they fold. */
#define CU_FOLD_LIST(X)                                                                        \
    X(reduce_l1, "ReduceL1", CU_L1)                                                            \
    X(reduce_l2, "ReduceL2", CU_L2)                                                            \
    X(reduce_log_sum, "ReduceLogSum", CU_LOG_SUM)                                              \
    X(reduce_log_sum_exp, "ReduceLogSumExp", CU_LOG_SUM_EXP)                                   \
    X(reduce_max, "ReduceMax", CU_MAX)                                                         \
    X(reduce_mean, "ReduceMean", CU_MEAN)                                                      \
    X(reduce_min, "ReduceMin", CU_MIN)                                                         \
    X(reduce_prod, "ReduceProd", CU_PROD)                                                      \
    X(reduce_sum, "ReduceSum", CU_SUM)                                                         \
    X(reduce_sum_square, "ReduceSumSquare", CU_SQUARES)

#endif
