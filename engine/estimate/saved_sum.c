/* saved_sum.c - adding up what is kept (saved.h): all of it, or segment by segment between
 * checkpoints.
 *
 * A checkpoint keeps what crosses a border between segments and throws the rest away; the
 * backward pass computes one segment at a time again. So its height is all borders and the
 * largest segment. @source Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016,
 * section 4. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/estimate/saved.h"

#include <string.h>

static void add(tgi_saved_bytes *to, const tgi_saved_bytes *b)
{
    to->per_sample = tgi_sat_add(to->per_sample, b->per_sample);
    to->fixed = tgi_sat_add(to->fixed, b->fixed);
}

/* Items of steps [from, to), each value once, without those marked in `stored` (or NULL).
 * `seen` is scratch, a byte per value. */
static tgi_saved_bytes sum_of(const tgi_saved *s, int from, int to, const unsigned char *stored,
                              unsigned char *seen)
{
    tgi_saved_bytes sum = {0, 0};
    memset(seen, 0, (size_t)s->g->n_values + 1);
    for (int i = 0; i < s->n_items; i++) {
        const tgi_saved_item *it = &s->item[i];
        if (it->step < from || it->step >= to)
            continue;
        if (it->value >= 0) {
            const unsigned char bit = it->half ? 2 : 1;
            if (seen[it->value] & bit || (stored && stored[it->value] & bit))
                continue;
            seen[it->value] |= bit;
        }
        add(&sum, &it->bytes);
    }
    return sum;
}

tg_status tgi_saved_total(const tgi_saved *s, tgi_saved_bytes *out, tgi_err *err)
{
    unsigned char *seen = tgi_calloc(TGI_TAG_PLAN, (size_t)s->g->n_values + 1, 1);
    if (!seen)
        return tgi_fail(err, TG_E_NOMEM, "no memory to add up what is kept");
    *out = sum_of(s, 0, s->n_steps, NULL, seen);
    tgi_free(seen);
    return TG_OK;
}

/* Steps at which segment k begins: equal shares of the bytes. */
static void place_borders(const tgi_saved *s, int segments, int *begin)
{
    double all = 0, so_far = 0;
    int k = 1;
    for (int i = 0; i < s->n_items; i++)
        all += (double)s->item[i].bytes.per_sample;
    begin[0] = 0;
    for (int i = 0; i < s->n_items && k < segments; i++) {
        so_far += (double)s->item[i].bytes.per_sample;
        if (so_far >= all * k / segments && s->item[i].step + 1 > begin[k - 1])
            begin[k++] = s->item[i].step + 1;
    }
    while (k <= segments)
        begin[k++] = s->n_steps;
}

/* The step of each value's maker and of its last reader: -1 for inputs. */
static void find_lives(const tgi_saved *s, int *first, int *last)
{
    for (int v = 0; v < s->g->n_values; v++)
        first[v] = last[v] = -1;
    for (int k = 0; k < s->n_steps; k++) {
        const tgi_node *n = &s->g->nodes[s->step_node[k]];
        for (int i = 0; i < n->n_src; i++)
            if (n->src[i] >= 0)
                last[s->alias[n->src[i]]] = k;
        for (int i = 0; i < n->n_dst; i++)
            if (n->dst[i] >= 0 && s->alias[n->dst[i]] == n->dst[i])
                first[n->dst[i]] = k;
    }
}

/* Mark what crosses a border, and add it up: made before it, read from it on. */
static tgi_saved_bytes store_borders(const tgi_saved *s, int segments, const int *begin,
                                     const int *first, const int *last, unsigned char *stored)
{
    tgi_saved_bytes sum = {0, 0};
    for (int v = 0; v < s->g->n_values; v++) {
        int crosses = first[v] < 0 && last[v] >= 0; /* an input: the first segment's */
        if (s->g->values[v].is_const || s->shapes.known[v].data || s->alias[v] != v)
            continue;
        for (int k = 1; k < segments; k++)
            crosses |= first[v] < begin[k] && last[v] >= begin[k];
        if (!crosses)
            continue;
        const tgi_desc *d = &s->shapes.desc[v];
        int64_t n = 0;
        (void)tgi_desc_count(d, &n);
        const tgi_saved_bytes b = {
            tgi_sat_mul((size_t)n, s->half[v] ? 2 : tgi_dtype_size(d->dtype)), 0};
        stored[v] = s->half[v] ? 2 : 1;
        add(&sum, &b);
    }
    return sum;
}

tg_status tgi_saved_segments(const tgi_saved *s, int segments, tgi_saved_bytes *stored,
                             tgi_saved_bytes *largest, tgi_err *err)
{
    const size_t n = (size_t)s->g->n_values + 1;
    int *life = tgi_calloc(TGI_TAG_PLAN, 2 * n + (size_t)segments + 1, sizeof *life);
    unsigned char *marks = tgi_calloc(TGI_TAG_PLAN, 2 * n, 1);
    tg_status st = TG_OK;
    if (life && marks) {
        int *begin = life + 2 * n;
        place_borders(s, segments, begin);
        find_lives(s, life, life + n);
        *stored = store_borders(s, segments, begin, life, life + n, marks);
        *largest = (tgi_saved_bytes){0, 0};
        for (int k = 0; k < segments; k++) {
            const tgi_saved_bytes b = sum_of(s, begin[k], begin[k + 1], marks, marks + n);
            if (b.per_sample > largest->per_sample)
                *largest = b;
        }
    } else {
        st = tgi_fail(err, TG_E_NOMEM, "no memory to add up what is kept");
    }
    tgi_free(life);
    tgi_free(marks);
    return st;
}
