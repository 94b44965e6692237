/* op_add.c - Add: a + b; numpy broadcasting.
 * Border: none, each element by itself; an axis of extent 1 is read as a whole.
 * @source ONNX operator Add, versions 7 to 14 (and `axis` of versions 1 to 6). */
#include "kernels/ops/op_shared.h"

static double on_floats(double a, double b)
{
    return a + b;
}

static int on_ints(int64_t a, int64_t b, int is_unsigned, int64_t *out)
{
    (void)is_unsigned;
    *out = (int64_t)((uint64_t)a + (uint64_t)b);
    return 1;
}

static const tgi_arith arith = {on_floats, on_ints};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    return tgi_infer_broadcast(ctx, tgi_binary_lead(ctx), dst, err);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    return tgi_ref_arith(call, &arith, tgi_binary_lead(call->ctx), err);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    return tgi_eval_arith(ctx, dst_data, &arith, tgi_binary_lead(ctx), err);
}

static int as_step(const tgi_op_ctx *ctx, int chain, tgi_epi_step *step)
{
    return tgi_step_arith(ctx, chain, tgi_binary_lead(ctx), TGI_EPI_ADD, TGI_EPI_ADD, step);
}

const tgi_op tgi_op_add = {
    .name = "Add",
    .attrs = tgi_binary_rows,
    .attrs_size = sizeof(tgi_binary_attrs),
    .infer = infer,
    .slide = tgi_slide_broadcast,
    .ref = ref,
    .eval = eval,
    .as_step = as_step,
};
