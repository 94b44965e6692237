/* fuzz_onnx.c - any bytes through the ONNX reader, the importer, the rewrites and, at three
 * sizes, shape inference. */
#include "engine/graph/graph.h"
#include "io/onnx.h"
#include "tests/fuzz/fuzz_target.h"

static void infer_some(const tg_graph *g)
{
    static const int64_t ext[3][3] = {{1, 1, 1}, {5, 37, 61}, {64, 50000, 60000}};
    for (int i = 0; i < 3; i++) {
        tgi_err e = {0};
        tg_desc in[TG_MAX_PORTS];
        tg_shapes shapes = {0};
        tgi_graph_input_descs(g, ext[i], in);
        fuzz_check(tgi_graph_infer(g, in, &shapes, &e), &e);
        tgi_shapes_free(&shapes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tg_onnx_model *m = NULL;
    tg_graph *g = NULL;
    tgi_err e = {0};
    tg_status st = tgi_onnx_parse(data, n, &m, &e);
    if (st == TG_OK)
        st = tgi_graph_lower_onnx(&m, &g, &e);
    if (st == TG_OK)
        st = tgi_graph_finish(g, n & 1 ? TG_GRAPH_NO_FUSE | TG_GRAPH_NO_COMMUTE : 0, &e);
    if (st == TG_OK)
        infer_some(g);
    tgi_graph_free(&g);
    tgi_onnx_close(&m);
    fuzz_check(st, &e);
    fuzz_check_leaks();
    return 0;
}
