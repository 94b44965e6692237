/* plain_step.h - what one step of an epilogue says, in float64: the tests' own definition. */
#ifndef TG_PLAIN_STEP_H
#define TG_PLAIN_STEP_H

#include "kernels/op.h"

#include <math.h>

static inline double plain_clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* `o`: of a binary step, and of PRELU, the other number. Alone, KEEP does nothing and SWAP
 * finds nothing put aside; who walks several steps does these two himself. NaN stays NaN. */
static inline double plain_step(const tgi_epi_step *s, double x, double o)
{
    const double a = (double)s->a, b = (double)s->b;
    switch (s->kind) {
    case TGI_EPI_RELU:
        return x < 0 ? 0 : x;
    case TGI_EPI_LEAKY:
        return x < 0 ? x * a : x;
    case TGI_EPI_PRELU:
        return x < 0 ? x * o : x;
    case TGI_EPI_CLIP:
        return plain_clamp(x, a, b);
    case TGI_EPI_SIGMOID:
        return 1 / (1 + exp(-x));
    case TGI_EPI_TANH:
        return tanh(x);
    case TGI_EPI_ABS:
        return fabs(x);
    case TGI_EPI_SQRT:
        return sqrt(x);
    case TGI_EPI_EXP:
        return exp(x);
    case TGI_EPI_NEG:
        return -x;
    case TGI_EPI_HARDSIGMOID:
        return plain_clamp(a * x + b, 0, 1);
    case TGI_EPI_ELU:
        return x < 0 ? a * expm1(x) : x;
    case TGI_EPI_SILU:
        return x / (1 + exp(-x));
    case TGI_EPI_HARDSWISH:
        return x * plain_clamp(a * x + b, 0, 1);
    case TGI_EPI_GELU:
        return x * erfc(-x * 0.70710678118654752440) / 2;
    case TGI_EPI_GELU_TANH:
        return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case TGI_EPI_KEEP:
        return x;
    case TGI_EPI_SWAP:
        return 0;
    case TGI_EPI_ADD:
        return x + o;
    case TGI_EPI_SUB:
        return x - o;
    case TGI_EPI_RSUB:
        return o - x;
    case TGI_EPI_MUL:
        return x * o;
    case TGI_EPI_DIV:
        return x / o;
    case TGI_EPI_RDIV:
        return o / x;
    case TGI_EPI_MIN:
        return isnan(x) || x < o ? x : o;
    case TGI_EPI_MAX:
        return isnan(x) || x > o ? x : o;
    }
    return NAN;
}

#endif
