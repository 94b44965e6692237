/* axes_shared.h - Squeeze and Unsqueeze: axes as attribute or, from opset 13, as input. */
#ifndef TGI_AXES_SHARED_H
#define TGI_AXES_SHARED_H

#include "kernels/ops/op_shared.h"

typedef struct axes_attrs {
    tgi_ints axes;
} axes_attrs;

static inline tg_status axes_given(const tgi_op_ctx *ctx, tgi_ints *axes, tgi_err *err)
{
    const axes_attrs *a = ctx->attrs;
    *axes = a->axes;
    if (ctx->opset >= 13)
        axes->n = -1;
    return ctx->opset >= 13 && tgi_given(ctx, 1) ? tgi_const_ints(ctx, 1, "axes", axes, err)
                                                 : TG_OK;
}

/* Bit k: axis k of `rank` is in the list; twice is an error. */
static inline tg_status axes_mask(const tgi_ints *axes, int rank, unsigned *mask, tgi_err *err)
{
    *mask = 0;
    for (int i = 0; i < axes->n; i++) {
        int k;
        TGI_TRY(tgi_axis(axes->v[i], rank, &k, err));
        if (*mask >> k & 1u)
            return tgi_fail(err, TG_E_FORMAT, "axis %d is listed twice", k);
        *mask |= 1u << k;
    }
    return TG_OK;
}

#endif
