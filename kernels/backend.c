/* backend.c - the compiled instruction sets and the choice of a variant. */
#include "kernels/backend.h"

#include "kernels/cpu/cpu_backend.h"

#include <string.h>

const tg_backend *tgi_backend_for(tg_isa isa)
{
    switch (isa) {
    case TG_ISA_PORTABLE:
        return &tgi_backend_portable;
#ifdef TG_HAVE_AVX2
    case TG_ISA_AVX2:
        return &tgi_backend_avx2;
#endif
#ifdef TG_HAVE_AVX512
    case TG_ISA_AVX512:
        return &tgi_backend_avx512;
#endif
    default:
        return NULL;
    }
}

const tg_variant *tgi_variant_pick(const tg_backend *be, const char *op, const tg_op_ctx *ctx,
                                   const tg_layout_hint *lay)
{
    const tg_variant *best = NULL;
    double least = 0;
    for (const tg_variant *const *v = be->variants; *v; v++) {
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

void tgi_epilogue_apply(const tg_backend *be, const tg_call *call)
{
    be->epilogue(call);
}
