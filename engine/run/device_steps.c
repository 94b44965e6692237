#include "engine/run/device_steps.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <string.h>

/* ---- Vectors of the epilogues ------------------------------------------------------------ */

/* Of one step: padded as tg_epi_step says, each on a border of 64 bytes. */
static size_t vector_bytes(const tg_net_node *n)
{
    return (size_t)tgi_align_up(n->dst[0].dim[1], 16) * sizeof(float);
}

size_t tgi_device_constants_bytes(const tg_tiling *t)
{
    size_t bytes = 0;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(t->stage, k);
        for (int i = 0; i < n->n_epi; i++)
            bytes += n->epi[i].vec ? vector_bytes(n) : 0;
    }
    return bytes;
}

void tgi_device_constants_fill(const tg_tiling *t, void *dst)
{
    char *at = dst;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(t->stage, k);
        for (int i = 0; i < n->n_epi; i++) {
            if (!n->epi[i].vec)
                continue;
            memcpy(at, n->epi[i].vec, vector_bytes(n));
            at += vector_bytes(n);
        }
    }
}

/* ---- Sizes ------------------------------------------------------------------------------- */

/* Most rows of a value that one band brings. */
static int64_t rows_per_band(const tg_tiling *t, int value)
{
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(t->stage, k);
        for (int d = 0; d < n->ctx.n_dst; d++)
            if (n->node->dst[d] == value)
                return t->band_rows[k];
    }
    return t->slot[value].ring; /* an input */
}

void tgi_device_store_most(const tg_tiling *t, int64_t *rows, int64_t *pixels)
{
    *rows = rows_per_band(t, t->stage->out[0].value) * (t->net->rank == 5 ? t->cut[1] : 1);
    *pixels = *rows * t->cut[2];
}

static void most_of_value(const tg_tiling *t, int value, int64_t rows, int64_t *most)
{
    const int rank = t->net->rank;
    const tg_slot *s = &t->slot[value];
    most[0] = 1;
    most[1] = t->net->values[value].c;
    most[TG_STREAM_AXIS] = tgi_max(1, rows);
    if (rank == 5)
        most[rank - 2] = tgi_max(1, tgi_min(s->rows, tgi_net_dim(t->net, value, rank - 2)));
    most[rank - 1] = tgi_max(1, tgi_min(s->width, tgi_net_dim(t->net, value, rank - 1)));
}

/* ---- Open and close ---------------------------------------------------------------------- */

static void count(const tg_stage *stage, size_t *n_src, size_t *n_seg, size_t *n_dst,
                  size_t *n_epi)
{
    *n_src = *n_dst = 1; /* load's dst, store's src */
    *n_seg = 1;
    *n_epi = 0;
    for (int k = 0; k < stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(stage, k);
        *n_src += (size_t)n->n_operands;
        *n_dst += (size_t)n->ctx.n_dst;
        *n_epi += (size_t)n->n_epi;
        for (int j = 0; j < n->n_operands; j++)
            *n_seg += (size_t)n->operand[j].n_seg;
    }
}

static void fill_nodes(tg_device_steps *s)
{
    const tg_tiling *t = s->cell.t;
    tg_view *dst = s->dst + 1;
    tg_operand *src = s->src + 1;
    tg_epi_step *epi = s->epi;
    char *vec = s->at.constants;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(t->stage, k);
        tg_device_step *step = &s->step[1 + k];
        step->kind = TG_STEP_NODE;
        step->variant = n->variant;
        step->call = (tg_call){.ctx = &n->ctx,
                               .src = src,
                               .dst = dst,
                               .epi = epi,
                               .n_epi = n->n_epi,
                               .packed = s->at.weights + n->packed_offset,
                               .scratch = s->at.arena + t->scratch[k]};
        most_of_value(t, n->node->dst[0], t->band_rows[k], step->call.most);
        for (int i = 0; i < n->n_epi; i++) {
            epi[i] = n->epi[i];
            if (!n->epi[i].vec)
                continue;
            epi[i].vec = (const float *)(const void *)vec;
            vec += vector_bytes(n);
        }
        src += n->n_operands;
        dst += n->ctx.n_dst;
        epi += n->n_epi;
    }
}

static void fill_ends(tg_device_steps *s)
{
    const tg_tiling *t = s->cell.t;
    const int in = t->stage->in[0].value, out = t->stage->out[0].value;
    const tg_dtype element =
        t->net->be->element == TG_DTYPE_NONE ? TG_DTYPE_F32 : t->net->be->element;
    tg_device_step *load = &s->step[0], *store = &s->step[s->n - 1];
    load->kind = TG_STEP_LOAD;
    load->call.dst = s->dst;
    load->pixels.type = s->form.in_type;
    load->pixels.element = store->pixels.element = element;
    most_of_value(t, in, rows_per_band(t, in), load->call.most);
    store->kind = TG_STEP_STORE;
    s->src[0] = (tg_operand){1, s->seg};
    store->call.src = s->src;
    most_of_value(t, out, rows_per_band(t, out), store->call.most);
    store->pixels.type = s->form.out_type;
    store->pixels.channels = s->form.out_channels;
    store->pixels.together = s->form.out_together;
}

/* The views of the cell as they are now, into all steps. */
static void place_views(tg_device_steps *s)
{
    const tg_stage *stage = s->cell.stage;
    tg_view *seg = s->seg + 1, *dst = s->dst + 1;
    tg_operand *src = s->src + 1;
    s->dst[0] = s->cell.view[stage->in[0].value];
    s->seg[0] = s->cell.view[stage->out[0].value];
    for (int k = 0; k < stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(stage, k);
        seg += tgi_cell_operands(&s->cell, k, seg, src);
        src += n->n_operands;
        for (int d = 0; d < n->ctx.n_dst; d++)
            *dst++ = s->cell.view[n->node->dst[d]];
    }
}

tg_status tgi_device_steps_open(tg_device_steps *s, const tg_tiling *t,
                                const tg_device_form *form, tg_device_places at, tgi_err *err)
{
    size_t n_src, n_seg, n_dst, n_epi;
    tg_range core[3];
    memset(s, 0, sizeof *s);
    s->form = *form;
    s->at = at;
    s->n = t->stage->n_nodes + 2;
    count(t->stage, &n_src, &n_seg, &n_dst, &n_epi);
    s->step = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n, sizeof *s->step);
    s->src = tgi_calloc(TGI_TAG_PLAN, n_src, sizeof *s->src);
    s->seg = tgi_calloc(TGI_TAG_PLAN, n_seg, sizeof *s->seg);
    s->dst = tgi_calloc(TGI_TAG_PLAN, n_dst, sizeof *s->dst);
    s->epi = tgi_calloc(TGI_TAG_PLAN, n_epi + 1, sizeof *s->epi);
    tg_status st = tgi_cell_open(&s->cell, t, at.arena, err);
    if (st == TG_OK && (!s->step || !s->src || !s->seg || !s->dst || !s->epi))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the steps of a band");
    if (st != TG_OK) {
        tgi_device_steps_close(s);
        return st;
    }
    fill_nodes(s);
    fill_ends(s);
    tgi_tiling_cell(t, 0, core);
    tgi_cell_begin(&s->cell, core);
    place_views(s);
    tgi_device_steps_rest(s);
    return TG_OK;
}

void tgi_device_steps_close(tg_device_steps *s)
{
    tgi_cell_close(&s->cell);
    tgi_free(s->step);
    tgi_free(s->src);
    tgi_free(s->seg);
    tgi_free(s->dst);
    tgi_free(s->epi);
    memset(s, 0, sizeof *s);
}

/* ---- A band ------------------------------------------------------------------------------ */

static tg_box nothing(const tg_device_steps *s)
{
    tg_box b = {.rank = s->cell.net->rank};
    return b;
}

void tgi_device_steps_rest(tg_device_steps *s)
{
    for (int i = 0; i < s->n; i++)
        s->step[i].call.box = nothing(s);
    place_views(s);
}

void tgi_device_steps_load(tg_device_steps *s, const tg_box *box, const tg_device_pixels *px)
{
    const tg_dtype element = s->step[0].pixels.element;
    s->step[0].pixels = *px;
    s->step[0].pixels.element = element;
    s->step[0].call.box = *box;
}

void tgi_device_steps_nodes(tg_device_steps *s)
{
    for (int k = 0; k < s->cell.stage->n_nodes; k++) {
        const tg_net_node *n = tgi_stage_node(s->cell.stage, k);
        const tg_range rows = tgi_flow_advance(&s->cell.flow, k);
        const tg_box box = tgi_cell_rows(&s->cell, n->node->dst[0], rows);
        if (!tgi_range_empty(rows) && !tgi_box_empty(&box))
            s->step[1 + k].call.box = box;
    }
}

size_t tgi_device_steps_store(tg_device_steps *s, const tg_box *box, void *counts, void *at,
                              float mul, float add)
{
    tg_device_step *store = &s->step[s->n - 1];
    tg_device_pixels *px = &store->pixels;
    store->call.box = *box;
    px->at = at;
    px->counts = counts;
    px->mul = mul;
    px->add = add;
    px->rows = box->ax[box->rank - 2];
    px->cols = box->ax[box->rank - 1];
    int64_t pixels = px->channels;
    for (int a = TG_STREAM_AXIS; a < box->rank; a++)
        pixels *= tgi_range_len(box->ax[a]);
    return (size_t)pixels * tgi_dtype_size(px->type);
}
