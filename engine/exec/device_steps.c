/* device_steps.c - lists the steps of a band for a device and fills in their views and
 * boxes. */
#include "engine/exec/device_steps.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/granule.h"

#include <string.h>

/* ---- Vectors of the epilogues ------------------------------------------------------------ */

/* Of one step: padded as tgi_epi_step says, each on a border of 64 bytes. */
static size_t vector_bytes(const tgi_net_node *n)
{
    return (size_t)tgi_align_up(n->dst[0].dim[1], 16) * sizeof(float);
}

size_t tgi_device_constants_bytes(const tgi_tiling *t)
{
    size_t bytes = 0;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, k);
        for (int i = 0; i < n->n_epi; i++)
            bytes += n->epi[i].vec ? vector_bytes(n) : 0;
    }
    return bytes;
}

void tgi_device_constants_fill(const tgi_tiling *t, void *dst)
{
    char *at = dst;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, k);
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
static int64_t rows_per_band(const tgi_tiling *t, int value)
{
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, k);
        for (int d = 0; d < n->ctx.n_dst; d++)
            if (n->node->dst[d] == value)
                return t->band_rows[k];
    }
    return t->slot[value].ring; /* an input */
}

/* Longest share of output o, on an axis, that goes with a cell: tgi_axis_share rounds both of its
 * ends down, and what is gathered goes in whole granules. */
static int64_t longest_share(const tgi_tiling *t, int o, int axis)
{
    const int64_t cut = t->cut[tgi_cut_of_axis(t->net, axis)];
    const int64_t d0 = tgi_stage_out_dim(t->stage, 0, axis);
    const int64_t d = tgi_stage_out_dim(t->stage, o, axis);
    const int64_t share = d == d0 ? cut : cut * d / d0 + 1;
    const int64_t more = t->stage->out[o].reduced ? TGI_GRANULE - 1 : 0;
    return tgi_min(d, share + more);
}

/* Bytes of so many rows of so many columns. */
static size_t bytes_of(const tgi_device_port *port, int64_t rows, int64_t columns)
{
    const size_t size = port->moments ? 2 * sizeof(double) : tgi_dtype_size(port->type);
    const int64_t each = port->moments ? tgi_ceil_div(columns, TGI_GRANULE) : columns;
    return tgi_sat_mul(tgi_sat_mul((size_t)rows, (size_t)each), (size_t)port->channels * size);
}

size_t tgi_device_store_most(const tgi_tiling *t, int o, const tgi_device_port *port,
                             int64_t *rows)
{
    const int rank = t->net->rank;
    *rows = rows_per_band(t, t->stage->out[o].value) *
            (rank == 5 ? longest_share(t, o, rank - 2) : 1);
    return bytes_of(port, *rows, longest_share(t, o, rank - 1));
}

static void most_of_value(const tgi_tiling *t, int value, int64_t rows, int64_t *most)
{
    const int rank = t->net->rank;
    const tgi_slot *s = &t->slot[value];
    most[0] = 1;
    most[1] = t->net->values[value].c;
    most[TGI_STREAM_AXIS] = tgi_max(1, rows);
    if (rank == 5)
        most[rank - 2] = tgi_max(1, tgi_min(s->rows, tgi_net_dim(t->net, value, rank - 2)));
    most[rank - 1] = tgi_max(1, tgi_min(s->width, tgi_net_dim(t->net, value, rank - 1)));
}

size_t tgi_device_load_most(const tgi_tiling *t, int value)
{
    int64_t most[TGI_MAX_RANK] = {0};
    size_t n = 1;
    most_of_value(t, value, rows_per_band(t, value), most);
    for (int a = 0; a < t->net->rank; a++)
        n = tgi_sat_mul(n, (size_t)most[a]);
    return n;
}

/* ---- Open and close ---------------------------------------------------------------------- */

static void count(const tgi_device_steps *s, const tgi_stage *stage, size_t *n_src,
                  size_t *n_seg, size_t *n_dst, size_t *n_epi)
{
    *n_dst = (size_t)s->n_load;
    *n_src = *n_seg = (size_t)s->n_store;
    *n_epi = 0;
    for (int k = 0; k < stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(stage, k);
        *n_src += (size_t)n->n_operands;
        *n_dst += (size_t)n->ctx.n_dst;
        *n_epi += (size_t)n->n_epi;
        for (int j = 0; j < n->n_operands; j++)
            *n_seg += (size_t)n->operand[j].n_seg;
    }
}

static void fill_nodes(tgi_device_steps *s)
{
    const tgi_tiling *t = s->cell.t;
    tgi_view *dst = s->dst + s->n_load;
    tgi_operand *src = s->src + s->n_store;
    tgi_epi_step *epi = s->epi;
    char *vec = s->at.constants;
    const tgi_box *box = s->box;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, k);
        tgi_device_step *step = &s->step[s->n_load + k];
        step->kind = TGI_STEP_NODE;
        step->variant = n->variant;
        step->call = (tgi_call){.ctx = &n->ctx,
                                .src = src,
                                .dst = dst,
                                .epi = epi,
                                .n_epi = n->n_epi,
                                .boxes = box,
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
        box += n->ctx.n_dst;
        epi += n->n_epi;
    }
}

static void fill_ends(tgi_device_steps *s)
{
    const tgi_tiling *t = s->cell.t;
    const tg_dtype element =
        t->net->be->element == TG_DTYPE_NONE ? TG_DTYPE_F32 : t->net->be->element;
    for (int i = 0; i < s->n_load; i++) {
        const int v = t->stage->in[i].value;
        tgi_device_step *load = &s->step[i];
        load->kind = TGI_STEP_LOAD;
        load->call.dst = s->dst + i;
        load->pixels.type = s->form.in[i].type;
        load->pixels.yuv.there = s->form.in[i].yuv;
        load->pixels.element = t->net->values[v].wide ? TG_DTYPE_F32 : element;
        most_of_value(t, v, rows_per_band(t, v), load->call.most);
    }
    for (int o = 0, k = 0; o < t->stage->n_out; o++) {
        const int v = t->stage->out[o].value;
        if (s->store_of[o] < 0)
            continue;
        tgi_device_step *store = &s->step[s->store_of[o]];
        store->kind = TGI_STEP_STORE;
        s->src[k] = (tgi_operand){1, s->seg + k};
        store->call.src = s->src + k++;
        most_of_value(t, v, rows_per_band(t, v), store->call.most);
        store->pixels.element = t->net->values[v].wide ? TG_DTYPE_F32 : element;
        store->pixels.type = s->form.out[o].type;
        store->pixels.channels = s->form.out[o].channels;
        store->pixels.together = s->form.out[o].together;
        store->pixels.moments = s->form.out[o].moments;
        store->pixels.pick = t->stage->out[o].pick;
    }
}

/* The views of the cell as they are now, into all steps. */
static void place_views(tgi_device_steps *s)
{
    const tgi_stage *stage = s->cell.stage;
    tgi_view *seg = s->seg, *dst = s->dst;
    tgi_operand *src = s->src + s->n_store;
    for (int i = 0; i < s->n_load; i++)
        *dst++ = s->cell.view[stage->in[i].value];
    for (int o = 0; o < stage->n_out; o++)
        if (s->store_of[o] >= 0)
            *seg++ = s->cell.view[stage->out[o].value];
    for (int k = 0; k < stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(stage, k);
        seg += tgi_cell_operands(&s->cell, k, seg, src);
        src += n->n_operands;
        for (int d = 0; d < n->ctx.n_dst; d++)
            *dst++ = s->cell.view[n->node->dst[d]];
    }
}

/* How many steps there are, and which is which output's. */
static void number(tgi_device_steps *s, const tgi_stage *stage)
{
    s->n_load = stage->n_loaded;
    for (int o = 0; o < stage->n_out; o++)
        s->store_of[o] = s->form.out[o].type == TG_DTYPE_NONE
                             ? -1
                             : s->n_load + stage->n_nodes + s->n_store++;
    s->n = s->n_load + stage->n_nodes + s->n_store;
}

size_t tgi_device_steps_bytes(const tgi_tiling *t, const tgi_device_form *form)
{
    tgi_device_steps s = {.form = *form};
    size_t n_src, n_seg, n_dst, n_epi;
    number(&s, t->stage);
    count(&s, t->stage, &n_src, &n_seg, &n_dst, &n_epi);
    return (size_t)s.n * sizeof *s.step + (n_src + 1) * sizeof *s.src +
           (n_seg + 1) * sizeof *s.seg + n_dst * (sizeof *s.dst + sizeof *s.box) +
           (n_epi + 1) * sizeof *s.epi + tgi_cell_bytes(t);
}

tg_status tgi_device_steps_open(tgi_device_steps *s, const tgi_tiling *t,
                                const tgi_device_form *form, tgi_device_places at, tgi_err *err)
{
    size_t n_src, n_seg, n_dst, n_epi;
    tgi_range core[3];
    memset(s, 0, sizeof *s);
    s->form = *form;
    s->at = at;
    number(s, t->stage);
    count(s, t->stage, &n_src, &n_seg, &n_dst, &n_epi);
    s->step = tgi_calloc(TGI_TAG_PLAN, (size_t)s->n, sizeof *s->step);
    s->src = tgi_calloc(TGI_TAG_PLAN, n_src + 1, sizeof *s->src);
    s->seg = tgi_calloc(TGI_TAG_PLAN, n_seg + 1, sizeof *s->seg);
    s->dst = tgi_calloc(TGI_TAG_PLAN, n_dst, sizeof *s->dst);
    s->epi = tgi_calloc(TGI_TAG_PLAN, n_epi + 1, sizeof *s->epi);
    s->box = tgi_calloc(TGI_TAG_PLAN, n_dst, sizeof *s->box);
    tg_status st = tgi_cell_open(&s->cell, t, at.arena, err);
    if (st == TG_OK && (!s->step || !s->src || !s->seg || !s->dst || !s->epi || !s->box))
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

void tgi_device_steps_close(tgi_device_steps *s)
{
    tgi_cell_close(&s->cell);
    tgi_free(s->step);
    tgi_free(s->src);
    tgi_free(s->seg);
    tgi_free(s->dst);
    tgi_free(s->epi);
    tgi_free(s->box);
    memset(s, 0, sizeof *s);
}

/* ---- A band ------------------------------------------------------------------------------ */

static tgi_box nothing(const tgi_device_steps *s)
{
    tgi_box b = {.rank = s->cell.net->rank};
    return b;
}

void tgi_device_steps_rest(tgi_device_steps *s)
{
    for (int i = 0; i < s->n; i++)
        s->step[i].call.box = nothing(s);
    place_views(s);
}

void tgi_device_steps_load(tgi_device_steps *s, int i, const tgi_box *box,
                           const tgi_device_pixels *px)
{
    tgi_device_step *load = &s->step[i];
    const tg_dtype element = load->pixels.element;
    load->pixels = *px;
    load->pixels.element = element;
    load->call.box = *box;
}

/* What the bands have of each result of a flat node: all of what is stored. */
static void fill_boxes(tgi_device_steps *s, const tgi_net_node *n, tgi_box *box)
{
    const tgi_flow *f = &s->cell.flow;
    for (int d = 0; d < n->ctx.n_dst; d++) {
        const int v = n->node->dst[d];
        box[d] = tgi_cell_rows(&s->cell, v, (tgi_range){f->lo[v], f->hi[v]});
    }
}

void tgi_device_steps_nodes(tgi_device_steps *s)
{
    tgi_box *at = s->box;
    for (int k = 0; k < s->cell.stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(s->cell.stage, k);
        const tgi_range rows = tgi_flow_advance(&s->cell.flow, k);
        const tgi_box box = tgi_cell_rows(&s->cell, n->node->dst[0], rows);
        if (!tgi_range_empty(rows) && !tgi_box_empty(&box)) {
            s->step[s->n_load + k].call.box = box;
            if (n->flat)
                fill_boxes(s, n, at);
        }
        at += n->ctx.n_dst;
    }
}

size_t tgi_device_steps_store(tgi_device_steps *s, int o, const tgi_box *box, void *counts,
                              void *at, float mul, float add)
{
    tgi_device_step *store = &s->step[s->store_of[o]];
    tgi_device_pixels *px = &store->pixels;
    store->call.box = *box;
    px->at = at;
    px->counts = counts;
    px->type = s->form.out[o].type;
    px->together = s->form.out[o].together;
    px->pitch = 0;
    px->mul = mul;
    px->add = add;
    px->rows = box->ax[box->rank - 2];
    px->cols = box->ax[box->rank - 1];
    int64_t rows = 1;
    for (int a = TGI_STREAM_AXIS; a < box->rank - 1; a++)
        rows *= tgi_range_len(box->ax[a]);
    return bytes_of(&s->form.out[o], rows, tgi_range_len(box->ax[box->rank - 1]));
}

void tgi_device_steps_leave(tgi_device_steps *s, int o, const tgi_box *box,
                            const tgi_device_pixels *px)
{
    tgi_device_step *store = &s->step[s->store_of[o]];
    tgi_device_pixels *to = &store->pixels;
    store->call.box = *box;
    to->at = px->at;
    to->counts = NULL;
    to->type = px->type;
    to->together = px->together;
    to->pitch = px->pitch;
    to->rows = px->rows;
    to->cols = px->cols;
    to->mul = 1;
    to->add = 0;
}
