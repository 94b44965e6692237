/* otsu.c - see otsu.h. */
#include "engine/post/otsu.h"

#include <math.h>
#include <string.h>

#define BINS 65536
#define FLOAT_BINS 256

_Static_assert(TGI_OTSU_BYTES == BINS * (sizeof(uint64_t) + sizeof(double) + sizeof(float)),
               "counts, sums and weights");

int tgi_otsu_one_pass(tg_dtype type)
{
    return type == TG_DTYPE_U8 || type == TG_DTYPE_I8 || type == TG_DTYPE_U16 ||
           type == TG_DTYPE_I16 || type == TG_DTYPE_BOOL;
}

/* The value that bin 0 counts. */
static int first_of(tg_dtype type)
{
    return type == TG_DTYPE_I8 || type == TG_DTYPE_I16 ? INT16_MIN : 0;
}

void tgi_otsu_begin(tgi_otsu *o, tg_dtype type, void *memory)
{
    uint64_t *count = memory;
    double *sum = (double *)(count + BINS);
    *o = (tgi_otsu){.type = type,
                    .low = INFINITY,
                    .high = -INFINITY,
                    .count = count,
                    .sum = sum,
                    .weight = (float *)(sum + BINS)};
    memset(count, 0, BINS * sizeof *count);
}

void tgi_otsu_range(tgi_otsu *o, const double *v, int64_t n)
{
    const int one = tgi_otsu_one_pass(o->type), first = first_of(o->type);
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            continue;
        o->low = v[i] < o->low ? v[i] : o->low;
        o->high = v[i] > o->high ? v[i] : o->high;
        o->seen++;
        if (one)
            o->count[(int)v[i] - first]++;
    }
}

/* numpy makes edges in the type of the values. */
void tgi_otsu_bins(tgi_otsu *o)
{
    const double step = (o->high - o->low) / FLOAT_BINS;
    const float low = (float)o->low, single = ((float)o->high - low) / (float)FLOAT_BINS;
    o->n = FLOAT_BINS;
    for (int i = 0; i < FLOAT_BINS; i++)
        o->edge[i] =
            o->type == TG_DTYPE_F32 ? (double)((float)i * single + low) : i * step + o->low;
    o->edge[FLOAT_BINS] = o->high;
}

void tgi_otsu_count(tgi_otsu *o, const double *v, int64_t n)
{
    const double width = o->high - o->low;
    for (int64_t i = 0; i < n && width > 0; i++) {
        if (!isfinite(v[i]))
            continue;
        const double at = (v[i] - o->low) / width * FLOAT_BINS;
        /* No number where the width of the values is none that a double holds. */
        int b = at >= FLOAT_BINS ? FLOAT_BINS - 1 : at > 0 ? (int)at : 0;
        while (b > 0 && v[i] < o->edge[b])
            b--;
        while (b < FLOAT_BINS - 1 && v[i] >= o->edge[b + 1])
            b++;
        o->count[b]++;
    }
}

/* Bins, from the smallest value that is there on. */
typedef struct bins {
    const tgi_otsu *o;
    int first, n, single; /* single: sums have single precision */
} bins;

static double centre(const bins *b, int i)
{
    if (!b->o->n)
        return b->o->low + i;
    const double sum = b->o->edge[i] + b->o->edge[i + 1];
    return b->single ? (double)((float)sum / 2.0f) : sum / 2;
}

static float count(const bins *b, int i)
{
    return (float)b->o->count[b->first + i];
}

static double product(const bins *b, int i)
{
    const double p = (double)count(b, i) * centre(b, i);
    return b->single ? (double)(float)p : p;
}

static double add(const bins *b, double sum, double more)
{
    return b->single ? (double)((float)sum + (float)more) : sum + more;
}

/* Of all bins from i on: numpy sums them from the end, and a sum depends on its order. */
static void sum_from_the_end(const bins *b)
{
    float weight = 0;
    double sum = 0;
    for (int i = b->n - 1; i >= 0; i--) {
        b->o->weight[i] = weight += count(b, i);
        b->o->sum[i] = sum = add(b, sum, product(b, i));
    }
}

static double quotient(const bins *b, double sum, float weight)
{
    return b->single ? (double)((float)sum / weight) : sum / (double)weight;
}

/* How far apart the classes are on both sides of a bin. */
static double between(const bins *b, float w1, double s1, float w2, double s2)
{
    const double m1 = quotient(b, s1, w1), m2 = quotient(b, s2, w2);
    const float weights = w1 * w2;
    if (b->single) {
        const float d = (float)m1 - (float)m2;
        return (double)(weights * (d * d));
    }
    return (double)weights * ((m1 - m2) * (m1 - m2));
}

double tgi_otsu_threshold(const tgi_otsu *o)
{
    if (!(o->high > o->low))
        return o->seen ? o->low : 0;
    const bins b = {.o = o,
                    .first = o->n ? 0 : (int)o->low - first_of(o->type),
                    .n = o->n ? o->n : (int)(o->high - o->low) + 1,
                    .single = o->type == TG_DTYPE_F32};
    float weight = 0;
    double sum = 0, best = -1, found = o->low;
    sum_from_the_end(&b);
    for (int i = 0; i + 1 < b.n; i++) {
        weight += count(&b, i);
        sum = add(&b, sum, product(&b, i));
        const double v = between(&b, weight, sum, o->weight[i + 1], o->sum[i + 1]);
        if (v > best) {
            best = v;
            found = centre(&b, i);
        }
    }
    return found;
}
