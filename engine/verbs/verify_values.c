/* verify_values.c - holds an item's arrays and measures how far results are apart. */
#include "engine/verbs/verify_values.h"

#include "engine/base/arith.h"
#include "kernels/pixels.h"

#include <math.h>
#include <string.h>

/* ---- Room -------------------------------------------------------------------------------- */

/* What the executor hands out: floats, but flat values as they are. */
static size_t bytes_of(const tgi_net *net, int value)
{
    const tgi_desc *d = &net->shapes.desc[value];
    int64_t n = 0;
    if (net->values[value].flat)
        return tgi_net_dense_bytes(net, value);
    return tgi_desc_count(d, &n) ? tgi_sat_mul((size_t)n, sizeof(float)) : SIZE_MAX;
}

size_t tgi_verify_in_bytes(const tgi_net *net)
{
    size_t sum = 0;
    for (int i = 0; i < net->n_in; i++)
        sum = tgi_sat_add(sum, bytes_of(net, net->in[i]));
    return sum;
}

size_t tgi_verify_out_bytes(const tgi_net *net)
{
    size_t sum = 0;
    for (int o = 0; o < net->n_out; o++)
        sum = tgi_sat_add(sum, bytes_of(net, net->out[o]));
    return sum;
}

#define BLOCK_SLACK 64 /* blocks of a reservation begin at multiples of it */

size_t tgi_verify_room(const tgi_net *net)
{
    const size_t slack = (size_t)(1 + net->n_in + 2 * net->n_out) * BLOCK_SLACK;
    return tgi_sat_add(
        tgi_sat_add(tgi_verify_in_bytes(net), tgi_sat_mul(2, tgi_verify_out_bytes(net))),
        slack);
}

static tg_status take_one(tgi_reserve *mem, const char *name, const tgi_net *net, int value,
                          float **out, tgi_err *err)
{
    void *p = NULL;
    TGI_TRY(tgi_reserve_take(mem, name, bytes_of(net, value), &p, err));
    *out = p;
    return TG_OK;
}

tg_status tgi_verify_take(tgi_reserve *mem, const tgi_net *net, tgi_verify_values *v,
                          tgi_err *err)
{
    *v = (tgi_verify_values){.net = net};
    for (int i = 0; i < net->n_in; i++)
        TGI_TRY(take_one(mem, "input", net, net->in[i], &v->in[i], err));
    for (int o = 0; o < net->n_out; o++) {
        TGI_TRY(take_one(mem, "output", net, net->out[o], &v->whole[o], err));
        TGI_TRY(take_one(mem, "output", net, net->out[o], &v->other[o], err));
    }
    return TG_OK;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

#define AT_ONCE 256

static tg_dtype type_of(const tgi_net *net, int value)
{
    const tg_dtype type = net->shapes.desc[value].dtype;
    if (!net->values[value].flat)
        return TG_DTYPE_F32;
    return type == TG_DTYPE_BOOL ? TG_DTYPE_U8 : type; /* 0 or 1 */
}

/* n <= AT_ONCE numbers from element k on; `room` when they have to be converted. */
static const float *numbers(const float *data, tg_dtype type, int64_t k, int64_t n, float *room)
{
    if (type == TG_DTYPE_F32)
        return data + k;
    tgi_pixels_load(type, (const char *)data + (size_t)k * tgi_dtype_size(type), n, 1.0f, 0.0f,
                    room, 1);
    return room;
}

static void add_run(const tgi_verify_values *v, int o, int64_t k, int64_t n, tgi_distance *s)
{
    const tg_dtype type = type_of(v->net, v->net->out[o]);
    float room[2][AT_ONCE];
    for (int64_t end = k + n; k < end; k += AT_ONCE) {
        const int64_t m = tgi_min(end - k, AT_ONCE);
        const float *a = numbers(v->other[o], type, k, m, room[0]);
        const float *b = numbers(v->whole[o], type, k, m, room[1]);
        for (int64_t i = 0; i < m; i++)
            tgi_distance_add(s, a[i], b[i]);
    }
}

int64_t tgi_verify_distance(const tgi_verify_values *v, int o, const tgi_box *box,
                            tgi_distance *s)
{
    const int value = v->net->out[o];
    const tgi_desc *d = &v->net->shapes.desc[value];
    int64_t n = 0;
    if (!box || v->net->values[value].flat) {
        tgi_desc_count(d, &n);
        add_run(v, o, 0, n, s);
        return n;
    }
    const tgi_range z = d->rank == 5 ? box->ax[2] : (tgi_range){0, 1};
    const tgi_range y = box->ax[d->rank - 2], x = box->ax[d->rank - 1];
    const int64_t depth = d->rank == 5 ? d->dim[2] : 1, height = d->dim[d->rank - 2],
                  width = d->dim[d->rank - 1];
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t k = z.lo; k < z.hi; k++)
            for (int64_t j = y.lo; j < y.hi; j++, n += tgi_range_len(x))
                add_run(v, o, ((c * depth + k) * height + j) * width + x.lo, tgi_range_len(x),
                        s);
    return n;
}

/* Bit for bit, but for numbers that are none: of which kind they are nobody promises. */
int tgi_verify_equal(const tgi_verify_values *v, int o)
{
    const int value = v->net->out[o];
    const size_t bytes = bytes_of(v->net, value);
    if (memcmp(v->other[o], v->whole[o], bytes) == 0 || type_of(v->net, value) != TG_DTYPE_F32)
        return memcmp(v->other[o], v->whole[o], bytes) == 0;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        if (memcmp(&v->other[o][i], &v->whole[o][i], sizeof(float)) != 0 &&
            !(isnan(v->other[o][i]) && isnan(v->whole[o][i])))
            return 0;
    return 1;
}

/* Calls `see` with every number of an output. */
static void each(const tgi_verify_values *v, int o, const float *data,
                 void (*see)(void *user, float x), void *user)
{
    const int value = v->net->out[o];
    const tg_dtype type = type_of(v->net, value);
    float room[AT_ONCE];
    int64_t n = 0;
    tgi_desc_count(&v->net->shapes.desc[value], &n);
    for (int64_t k = 0; k < n; k += AT_ONCE) {
        const int64_t m = tgi_min(n - k, AT_ONCE);
        const float *a = numbers(data, type, k, m, room);
        for (int64_t i = 0; i < m; i++)
            see(user, a[i]);
    }
}

static void count_nonfinite(void *user, float x)
{
    *(int64_t *)user += !isfinite(x);
}

int64_t tgi_verify_nonfinite(const tgi_verify_values *v, int o)
{
    int64_t n = 0;
    each(v, o, v->other[o], count_nonfinite, &n);
    return n;
}

static void widen(void *user, float x)
{
    double *range = user;
    if (!isfinite(x))
        return;
    range[0] = x < range[0] ? x : range[0];
    range[1] = x > range[1] ? x : range[1];
}

void tgi_verify_range(const tgi_verify_values *v, int o, double *lo, double *hi)
{
    double range[2] = {INFINITY, -INFINITY};
    each(v, o, v->whole[o], widen, range);
    const int any = range[0] <= range[1];
    *lo = any ? range[0] : 0;
    *hi = any ? range[1] : 0;
}

double tgi_verify_psnr(const tgi_distance *s, int64_t n, const tg_verify_output *of)
{
    const double range = of->max - of->min;
    if (s->squares == 0)
        return INFINITY;
    return range > 0 && isfinite(s->squares)
               ? 10 * log10(range * range * (double)n / s->squares)
               : (double)NAN;
}
