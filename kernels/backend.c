/* backend.c - the compiled instruction sets and the choice of a variant. */
#include "kernels/backend.h"

#include "kernels/cpu/cpu_backend.h"

#include <string.h>

const tgi_kernel_set *tgi_backend_for_plans(tgi_isa isa)
{
    switch (isa) {
    case TGI_ISA_PORTABLE:
        return &tgi_backend_portable;
#ifdef TG_HAVE_AVX2
    case TGI_ISA_AVX2:
        return &tgi_backend_avx2_plan;
#endif
#ifdef TG_HAVE_AVX512
    case TGI_ISA_AVX512:
        return &tgi_backend_avx512_plan;
#endif
    default:
        return NULL;
    }
}

const tgi_kernel_set *tgi_backend_for(tgi_isa isa)
{
#ifdef TG_HAVE_AVX2
    if (isa == TGI_ISA_AVX2 && tgi_isa_best() >= isa)
        return &tgi_backend_avx2;
#endif
#ifdef TG_HAVE_AVX512
    if (isa == TGI_ISA_AVX512 && tgi_isa_best() >= isa)
        return &tgi_backend_avx512;
#endif
    return tgi_backend_for_plans(isa);
}

const tgi_variant *tgi_variant_pick(const tgi_kernel_set *be, const char *op,
                                    const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const tgi_variant *best = NULL;
    double least = 0;
    for (const tgi_variant *const *v = be->variants; *v; v++) {
        if (strcmp((*v)->op, op) != 0 || (lay->exact && (*v)->rearranges) ||
            ((*v)->kinds & ~lay->kinds) || lay->flat != (*v)->flat ||
            (lay->n_doubled && !(*v)->reads_doubled) || !(*v)->accepts(ctx, lay))
            continue;
        const double cost = (*v)->cost ? (*v)->cost(ctx, lay) : 1;
        if (!best || cost < least) {
            best = *v;
            least = cost;
        }
    }
    return best;
}

void tgi_epilogue_apply(const tgi_kernel_set *be, const tgi_call *call)
{
    be->epilogue(call);
}
