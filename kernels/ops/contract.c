/* contract.c - see contract.h. A run of the result's last axis is summed together, so that a
 * row of the second factor is read once for all of them; pairs of float32 have a loop that the
 * compiler can vectorise, everything else goes element by element. */
#include "kernels/ops/contract.h"

#include "engine/base/cancel.h"

#define RUN 64                           /* results that are summed together */
#define BETWEEN_LOOKS ((int64_t)1 << 20) /* terms summed before the next look at who waits */

typedef union sums {
    double f[RUN];
    int64_t i[RUN];
} sums;

typedef struct position {
    int64_t at[TGI_CONTRACT_AXES], off[TGI_CONTRACT_INPUTS];
} position;

/* Step the first `rank` axes; 0 after the last place. */
static int step(position *p, int rank, int n_in, const int64_t *dim,
                const int64_t (*stride)[TGI_CONTRACT_AXES])
{
    for (int k = rank - 1; k >= 0; k--) {
        for (int i = 0; i < n_in; i++)
            p->off[i] += stride[i][k];
        if (++p->at[k] < dim[k])
            return 1;
        for (int i = 0; i < n_in; i++)
            p->off[i] -= stride[i][k] * dim[k];
        p->at[k] = 0;
    }
    return 0;
}

/* acc[j] += a[j * sa] * b[j * sb] */
static void add_pair(double *acc, int64_t n, const char *a, int64_t sa, const char *b,
                     int64_t sb)
{
    if (sa == 0 && sb == 1) {
        const double v = (double)tgi_f32_at(a, 0);
        for (int64_t j = 0; j < n; j++)
            acc[j] += v * (double)tgi_f32_at(b, j);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        acc[j] += (double)tgi_f32_at(a, j * sa) * (double)tgi_f32_at(b, j * sb);
}

/* Add the products at offsets off[], and their n right neighbours on the result's last axis. */
static void add_products(const tgi_contraction *c, const int64_t *off, const int64_t *last,
                         int64_t n, sums *acc)
{
    const tg_dtype t = c->in[0]->desc.dtype;
    if (t == TG_DTYPE_F32 && c->n_in == 2) {
        add_pair(acc->f, n, (const char *)c->in[0]->data + off[0] * 4, last[0],
                 (const char *)c->in[1]->data + off[1] * 4, last[1]);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        if (tgi_dtype_is_float(t)) {
            double v = 1;
            for (int i = 0; i < c->n_in; i++)
                v *= tgi_num_at(c->in[i], off[i] + j * last[i]);
            acc->f[j] += v;
        } else {
            uint64_t v = 1;
            for (int i = 0; i < c->n_in; i++)
                v *= (uint64_t)tgi_int_at(c->in[i], off[i] + j * last[i]);
            acc->i[j] = (int64_t)((uint64_t)acc->i[j] + v);
        }
}

static int has_nothing(const int64_t *dim, int rank)
{
    for (int k = 0; k < rank; k++)
        if (dim[k] == 0)
            return 1;
    return 0;
}

/* Count n terms; TG_E_CANCELLED when somebody asked to stop. */
static tg_status look(int64_t *terms, int64_t n, tgi_err *err)
{
    if ((*terms += n) < BETWEEN_LOOKS)
        return TG_OK;
    *terms = 0;
    return tgi_check_cancel(err);
}

/* n results from `from` on, stored from element `to` on. */
static tg_status sum_run(const tgi_contraction *c, const int64_t *from, int64_t n, void *dst,
                         int64_t to, int64_t *terms, tgi_err *err)
{
    const tg_dtype t = c->in[0]->desc.dtype;
    int64_t last[TGI_CONTRACT_INPUTS] = {0};
    position s = {{0}, {0}};
    sums acc;
    memset(&acc, 0, sizeof acc);
    for (int i = 0; i < c->n_in; i++) {
        s.off[i] = from[i];
        last[i] = c->rank ? c->stride[i][c->rank - 1] : 0;
    }
    if (!has_nothing(c->sum_dim, c->sum_rank))
        do {
            add_products(c, s.off, last, n, &acc);
            TGI_TRY(look(terms, n, err));
        } while (step(&s, c->sum_rank, c->n_in, c->sum_dim, c->sum_stride));
    for (int64_t j = 0; j < n; j++)
        if (tgi_dtype_is_float(t))
            tgi_num_put(t, dst, to + j, acc.f[j]);
        else
            tgi_int_put(t, dst, to + j, acc.i[j]);
    return TG_OK;
}

tg_status tgi_contract(const tgi_contraction *c, void *dst, tgi_err *err)
{
    const int outer = c->rank ? c->rank - 1 : 0;
    const int64_t width = c->rank ? c->dim[outer] : 1;
    position r = {{0}, {0}};
    int64_t to = 0, terms = 0;
    if (has_nothing(c->dim, c->rank))
        return TG_OK;
    do
        for (int64_t x = 0; x < width; x += RUN) {
            const int64_t n = tgi_min(RUN, width - x);
            int64_t from[TGI_CONTRACT_INPUTS];
            for (int i = 0; i < c->n_in; i++)
                from[i] = r.off[i] + (c->rank ? x * c->stride[i][outer] : 0);
            TGI_TRY(sum_run(c, from, n, dst, to, &terms, err));
            to += n;
        }
    while (step(&r, outer, c->n_in, c->dim, c->stride));
    return TG_OK;
}
