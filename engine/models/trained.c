/* trained.c - see trained.h. */
#include "engine/models/trained.h"

#include "engine/graph/graph_priv.h"

#include <stdio.h>
#include <string.h>

/* ---- Elements ---------------------------------------------------------------------------- */

#define LARGEST (1 << 22)
static float no_weights[LARGEST]; /* of which no page is ever there */

static void shape_text(char *buf, size_t cap, int rank, const int64_t *dim)
{
    int at = snprintf(buf, cap, "[");
    for (int i = 0; i < rank && at > 0 && (size_t)at < cap; i++)
        at += snprintf(buf + at, cap - (size_t)at, "%s%lld", i ? "," : "", (long long)dim[i]);
    if (at > 0 && (size_t)at < cap)
        snprintf(buf + at, cap - (size_t)at, "]");
}

static tg_status check_shape(const tgi_weights *file, const tgi_weight *w, const char *name,
                             int rank, const int64_t *dim, tgi_err *err)
{
    char is[96], wanted[96];
    if (!w)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: it has no tensor \"%s\": it is not the file of that network",
                        tgi_weights_path(file), name);
    if (w->desc.rank == rank && memcmp(w->desc.dim, dim, (size_t)rank * sizeof *dim) == 0)
        return TG_OK;
    shape_text(is, sizeof is, w->desc.rank, w->desc.dim);
    shape_text(wanted, sizeof wanted, rank, dim);
    return tgi_fail(err, TG_E_FORMAT,
                    "%s: tensor \"%s\" is %s, the network of that name has %s there",
                    tgi_weights_path(file), name, is, wanted);
}

static float *convert(const tgi_trained *t, int i, int64_t count, tgi_err *err)
{
    const tgi_weight *w = tgi_weights_at(t->file, i);
    float *to = tgi_graph_own(t->draft->graph, (size_t)count * sizeof *to, err);
    void *raw = to;
    if (to && w->desc.dtype != TG_DTYPE_F32)
        raw = tgi_malloc(TGI_TAG_GRAPH, w->bytes + 1);
    if (!to || !raw) {
        tgi_fail(err, TG_E_NOMEM, "no memory for a tensor");
        return NULL;
    }
    const tg_status st = tgi_weights_read(t->file, i, raw, err);
    if (raw != to) {
        const tgi_constant c = {w->desc, raw};
        for (int64_t k = 0; k < count && st == TG_OK; k++)
            to[k] = (float)tgi_num_at(&c, k);
        tgi_free(raw);
    }
    return st == TG_OK ? to : NULL;
}

const float *tgi_trained_floats(const tgi_trained *t, const char *name, int rank,
                                const int64_t *dim)
{
    tgi_draft *d = t->draft;
    int64_t count = 1;
    if (d->st != TG_OK)
        return NULL;
    for (int k = 0; k < rank; k++)
        count *= dim[k];
    if (!t->file) {
        if (count > LARGEST)
            d->st = tgi_fail(&d->err, TG_E_INTERNAL, "%s: larger than any tensor", name);
        return d->st == TG_OK ? no_weights : NULL;
    }
    const int i = tgi_weights_find(t->file, name);
    const tgi_weight *w = i >= 0 ? tgi_weights_at(t->file, i) : NULL;
    d->st = check_shape(t->file, w, name, rank, dim, &d->err);
    if (d->st != TG_OK)
        return NULL;
    const float *there = w->desc.dtype == TG_DTYPE_F32 ? tgi_weights_mapped(t->file, i) : NULL;
    if (!there)
        there = convert(t, i, count, &d->err);
    if (!there)
        d->st = d->err.code != TG_OK ? d->err.code : TG_E_NOMEM;
    return there;
}

int tgi_trained_const(const tgi_trained *t, const char *name, int rank, const int64_t *dim)
{
    const float *data = tgi_trained_floats(t, name, rank, dim);
    return tgi_draft_floats(t->draft, name, rank, dim, data, NULL);
}

/* ---- Layers ------------------------------------------------------------------------------ */

static int bias_of(const tgi_trained *t, const char *name, int64_t n)
{
    char full[160];
    snprintf(full, sizeof full, "%s.bias", name);
    return tgi_trained_const(t, full, TGI_DIMS(n));
}

int tgi_trained_conv(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                     int64_t k, const tgi_draft_window *w)
{
    char full[160];
    tgi_draft_window own = *w;
    own.kernel[0] = own.kernel[1] = k;
    snprintf(full, sizeof full, "%s.weight", name);
    const int weight =
        tgi_trained_const(t, full, TGI_DIMS(to, from / (w->group ? w->group : 1), k, k));
    return tgi_draft_conv(t->draft, name, x, weight, bias_of(t, name, to), &own);
}

int tgi_trained_same(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                     int64_t k)
{
    return tgi_trained_conv(t, x, name, from, to, k,
                            &(tgi_draft_window){.pad = {k / 2, k / 2}});
}

int tgi_trained_linear(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to)
{
    char full[160];
    snprintf(full, sizeof full, "%s.weight", name);
    const float *data = tgi_trained_floats(t, full, TGI_DIMS(to, from));
    const int weight = tgi_draft_floats(t->draft, full, TGI_DIMS(to, from, 1, 1), data, NULL);
    return tgi_draft_conv(t->draft, name, x, weight, bias_of(t, name, to),
                          &(tgi_draft_window){.kernel = {1, 1}});
}

int tgi_trained_part(const tgi_trained *t, int x, const char *name, int64_t from, int64_t all,
                     int64_t lo, int64_t hi, int64_t k)
{
    char full[160];
    snprintf(full, sizeof full, "%s.weight", name);
    const float *weights = tgi_trained_floats(t, full, TGI_DIMS(all, from, k, k));
    snprintf(full, sizeof full, "%s.bias", name);
    const float *biases = tgi_trained_floats(t, full, TGI_DIMS(all));
    if (!weights || !biases)
        return -1;
    const int w = tgi_draft_floats(t->draft, name, TGI_DIMS(hi - lo, from, k, k),
                                   weights + lo * from * k * k, NULL);
    const int b = tgi_draft_floats(t->draft, full, TGI_DIMS(hi - lo), biases + lo, NULL);
    return tgi_draft_conv(t->draft, name, x, w, b,
                          &(tgi_draft_window){.kernel = {k, k}, .pad = {k / 2, k / 2}});
}

void tgi_trained_offsets(const tgi_trained *t, int x, const char *name, int64_t from, int64_t c,
                         int64_t groups, float reach, int *offset, int *share)
{
    const float slope = 0.1f;
    const int64_t offsets = 18 * groups, parts = 27 * groups;
    tgi_draft *d = t->draft;
    char full[128];
    for (int i = 0; i < 3; i++) {
        snprintf(full, sizeof full, "%s.conv_offset.%d", name, 2 * i);
        x = tgi_draft_leaky(d, tgi_trained_same(t, x, full, from, c, 3), slope);
        from = c;
    }
    snprintf(full, sizeof full, "%s.conv_offset.6", name);
    *offset = tgi_trained_part(t, x, full, c, parts, 0, offsets, 3);
    *offset = tgi_draft_scale(d, tgi_draft_unary(d, "Tanh", *offset), reach);
    *share = tgi_trained_part(t, x, full, c, parts, offsets, parts, 3);
    *share = tgi_draft_unary(d, "Sigmoid", *share);
}

int tgi_trained_deform(const tgi_trained *t, int x, int offset, int share, const char *name,
                       int64_t from, int64_t to, int64_t groups)
{
    static const int64_t border[4] = {1, 1, 1, 1};
    char full[160];
    snprintf(full, sizeof full, "%s.weight", name);
    const int weight = tgi_trained_const(t, full, TGI_DIMS(to, from, 3, 3));
    const int src[5] = {x, weight, offset, bias_of(t, name, to), share};
    const int v = tgi_draft_node(t->draft, "DeformConv", name, 5, src);
    tgi_draft_ints(t->draft, "pads", 4, border);
    tgi_draft_int(t->draft, "offset_group", groups);
    return v;
}
