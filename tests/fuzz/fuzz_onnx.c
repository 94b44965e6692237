/* fuzz_onnx.c - any bytes through the ONNX reader, the importer, the rewrites, shape inference
 * at three sizes and, where the network is small, the planner and the executor: once whole,
 * once in cells and bands, and both must give the same bits.
 *
 * The kernels are the operators' references, which every box, pitch and offset of a stranger's
 * model reaches; the tuned ones would take a quarter of an hour to compile with sanitizers.
 * What is not in the model (size, cut, layout, fusion, the pixels) follows from its length. */
#include "engine/base/arith.h"
#include "engine/exec/dense.h"
#include "engine/graph/graph.h"
#include "engine/plan/tiling.h"
#include "io/onnx.h"
#include "tests/fuzz/fuzz_target.h"

#define MOST_BYTES ((size_t)4 << 20) /* of all values of a network that is run */
#define MOST_FLOPS 2e6 /* evaluated one by one, under sanitizers: a second at most */

static void infer_some(const tgi_graph *g)
{
    static const int64_t ext[3][3] = {{1, 1, 1}, {5, 37, 61}, {64, 50000, 60000}};
    for (int i = 0; i < 3; i++) {
        tgi_err e = {0};
        tgi_desc in[TGI_MAX_PORTS];
        tgi_shapes shapes = {0};
        tgi_graph_input_descs(g, ext[i], in);
        fuzz_check(tgi_graph_infer(g, in, &shapes, &e), &e);
        tgi_shapes_free(&shapes);
    }
}

/* ---- Running it ---- */

/* As dense.h has it: images are floats whatever their type. */
static tgi_desc array_of(const tgi_net *net, int v)
{
    tgi_desc d = net->shapes.desc[v];
    if (!net->values[v].flat)
        d.dtype = TG_DTYPE_F32;
    return d;
}

static size_t array_bytes(const tgi_net *net, int v)
{
    const tgi_desc d = array_of(net, v);
    int64_t n = 0;
    return tgi_desc_count(&d, &n) ? tgi_sat_mul((size_t)n, tgi_dtype_size(d.dtype)) : SIZE_MAX;
}

/* Whole numbers and eighths between -4 and 4, as the value's type has them; in floats now and
 * then one that is none. */
static void fill(void *data, const tgi_net *net, int value, uint64_t seed)
{
    static const double odd[] = {0.0 / 0.0, 1e38, -1e38, -0.0};
    const tgi_desc array = array_of(net, value);
    const tg_dtype type = net->shapes.desc[value].dtype;
    int64_t n = 0;
    tgi_desc_count(&array, &n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const int v = (int)(seed >> 33) % 64;
        double x = v % 9 - 4;
        if (type == TG_DTYPE_BOOL)
            x = v & 1;
        else if (type == TG_DTYPE_F32)
            x = v < 4 ? odd[v] : v / 8.0 - 4;
        tgi_num_put(array.dtype, data, i, x);
    }
}

/* Operations of one pass, which are all there can be where values are flat: in every cell. */
static double flops_of(const tgi_net *net)
{
    double flops = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        int64_t n = 0;
        if (!tgi_desc_count(&net->nodes[i].dst[0], &n))
            return 1e300;
        flops += (double)n * net->nodes[i].flops_per_element;
    }
    return flops;
}

static bool is_small(const tgi_net *net)
{
    size_t bytes = net->packed_bytes;
    for (int v = 0; v < net->n_values; v++)
        if (net->shapes.desc[v].dtype != TG_DTYPE_NONE)
            bytes = tgi_sat_add(bytes, array_bytes(net, v));
    return bytes < MOST_BYTES && flops_of(net) < MOST_FLOPS;
}

static void *room(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1))
        abort();
    memset(p, 0xff, bytes); /* NaN: what is read and was never written shows */
    return p;
}

/* One pass over all cells. */
static tg_status pass(const tgi_stage *stage, const int64_t cut[3], int64_t band,
                      tgi_dense_io *io, tgi_err *err)
{
    tgi_tiling t;
    tgi_exec *e = NULL;
    const tgi_exec_io eio = {.user = io, .load = tgi_dense_load, .store = tgi_dense_store};
    TGI_TRY(tgi_tiling_make(stage, cut, band, 1, NULL, &t, err));
    tg_status st = TG_OK;
    if (t.arena_bytes > 4 * MOST_BYTES ||
        (double)t.cells * flops_of(stage->net) > 8 * MOST_FLOPS) {
        tgi_tiling_free(&t);
        return tgi_fail(err, TG_E_BUDGET, "too large for a fuzzer");
    }
    void *packed = room(stage->net->packed_bytes), *arena = room(t.arena_bytes);
    tgi_net_pack(stage->net, packed, NULL);
    st = tgi_exec_open(&t, packed, arena, NULL, &eio, &e, err);
    for (int64_t k = 0; st == TG_OK && k < t.cells; k++) {
        tgi_range core[3];
        memset(arena, 0xff, t.arena_bytes);
        tgi_tiling_cell(&t, k, core);
        st = tgi_exec_cell(e, core, err);
    }
    tgi_exec_close(&e);
    tgi_tiling_free(&t);
    free(packed);
    free(arena);
    return st;
}

/* Floats of the same bits, or both none. */
static void must_agree(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && (a[i] == a[i] || b[i] == b[i]))
            abort();
}

static void run_net(const tgi_net *net, unsigned how)
{
    const int64_t uncut[3] = {0, 0, 0}, cut[3] = {1 + how % 3, 1 + how % 7, 1 + how % 5};
    tgi_err e = {0};
    tgi_stages *stages = NULL;
    tgi_dense_io io = {.net = net};
    float *whole[TGI_MAX_PORTS] = {0}, *tiled[TGI_MAX_PORTS] = {0};
    fuzz_check(tgi_stages_new(net, &stages, &e), &e);
    for (int i = 0; i < net->n_in; i++) {
        void *p = room(array_bytes(net, net->in[i]));
        fill(p, net, net->in[i], how + (unsigned)i);
        io.in[i] = p;
    }
    for (int i = 0; i < net->n_out; i++) {
        whole[i] = io.out[i] = room(array_bytes(net, net->out[i]));
        tiled[i] = room(array_bytes(net, net->out[i]));
    }
    tg_status st = stages ? pass(&stages->one, uncut, INT32_MAX, &io, &e) : TG_E_NOMEM;
    fuzz_check(st, &e);
    if (st == TG_OK && !stages->one.whole_op) {
        for (int i = 0; i < net->n_out; i++)
            io.out[i] = tiled[i];
        st = pass(&stages->one, cut, 1 + how % 4, &io, &e);
        fuzz_check(st, &e);
        if (st == TG_OK && !net->values[net->out[0]].flat)
            must_agree(whole[0], tiled[0], array_bytes(net, net->out[0]) / sizeof(float));
    }
    for (int i = 0; i < TGI_MAX_PORTS; i++) {
        free((void *)(uintptr_t)io.in[i]);
        free(whole[i]);
        free(tiled[i]);
    }
    tgi_stages_free(&stages);
}

static void run_small(const tgi_graph *g, unsigned how)
{
    tgi_err e = {0};
    tgi_desc in[TGI_MAX_PORTS];
    tgi_net *net = NULL;
    int64_t ext[3];
    for (int k = 0; k < 3; k++) {
        const int64_t fixed = tgi_graph_fixed_extent(g, k);
        ext[k] = fixed ? fixed : tgi_graph_extent(g, k, k ? 5 + how % 9 : 3);
    }
    tgi_graph_input_descs(g, ext, in);
    const tg_status st = tgi_net_new(g, tgi_backend_for(TGI_ISA_PORTABLE), in,
                                     how & 2 ? TGI_NET_REFERENCE : 0, &net, &e);
    fuzz_check(st, &e);
    if (st == TG_OK && is_small(net))
        run_net(net, how);
    tgi_net_free(&net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tgi_onnx_model *m = NULL;
    tgi_graph *g = NULL;
    tgi_err e = {0};
    tg_status st = tgi_onnx_parse(data, n, &m, &e);
    if (st == TG_OK)
        st = tgi_graph_lower_onnx(&m, &g, &e);
    if (st == TG_OK)
        st = tgi_graph_finish(g, n & 1 ? TGI_GRAPH_NO_FUSE | TGI_GRAPH_NO_COMMUTE : 0, &e);
    if (st == TG_OK) {
        infer_some(g);
        run_small(g, (unsigned)n);
    }
    tgi_graph_free(&g);
    tgi_onnx_close(&m);
    fuzz_check(st, &e);
    fuzz_check_leaks();
    return 0;
}
