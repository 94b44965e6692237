/* op_identity.c - Identity. Border: none. @source ONNX operator Identity, versions 1 to 21. */
#include "kernels/ops/op_shared.h"

const tgi_op tgi_op_identity = {
    .name = "Identity",
    .infer = tgi_infer_same,
    .ref = tgi_ref_copy,
    .eval = tgi_eval_copy,
};
