/* fuzz_onnx.c - any bytes through the ONNX reader, the importer and the rewrites. Besides
 * crashes it looks for leaks, and for statuses that would be our own fault. */
#include "engine/base/mem.h"
#include "engine/graph/graph.h"
#include "io/onnx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tg_onnx_model *m = NULL;
    tg_graph *g = NULL;
    tgi_err e = {0};
    tgi_mem_stats mem;
    tg_status st = tgi_onnx_parse(data, size, &m, &e);
    if (st == TG_OK)
        st = tgi_graph_lower_onnx(&m, &g, &e);
    if (st == TG_OK)
        st = tgi_graph_finish(g, 0, &e);
    tgi_graph_free(&g);
    tgi_onnx_close(&m);
    tgi_mem_get_stats(&mem);
    if (st == TG_E_INTERNAL || (st != TG_OK && !e.text[0]) || mem.live_blocks)
        abort();
    return 0;
}
