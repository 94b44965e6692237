/* no_kernels.c - a backend without tuned kernels, for the fuzz builds: every operator runs as
 * its reference, which any box, pitch and offset of a stranger's model reaches. */
#include "kernels/cpu/cpu_backend.h"

/* Sums, whatever the steps are: here it matters what they read. */
static void add_steps(const tgi_call *c, int64_t k, int64_t z, int64_t y, int64_t x)
{
    float *at = tgi_view_at(&c->dst[0], k, z, y, x);
    for (int i = 0; i < c->n_epi; i++) {
        const tgi_epi_step *s = &c->epi[i];
        *at += s->src >= 0 ? tgi_operand_get(&c->src[s->src], k, z, y, x)
               : s->vec    ? s->vec[k]
                           : s->a;
    }
}

static void plain_epilogue(const tgi_call *c)
{
    const int r = c->box.rank;
    const tgi_range z = r == 5 ? c->box.ax[2] : (tgi_range){0, 1};
    const tgi_range y = c->box.ax[r - 2], x = c->box.ax[r - 1];
    for (int64_t k = 0; k < c->dst[0].c; k++)
        for (int64_t d = z.lo; d < z.hi; d++)
            for (int64_t h = y.lo; h < y.hi; h++)
                for (int64_t w = x.lo; w < x.hi; w++)
                    add_steps(c, k, d, h, w);
}

static const tgi_variant *const no_variants[] = {NULL};
const tgi_kernel_set tgi_backend_portable = {
    .name = "plain", .lanes = 8, .variants = no_variants, .epilogue = plain_epilogue};
