/* fuzz_memlog.c - any bytes as a memory log, and a picture of what was read. */
#include "engine/draw/plot.h"
#include "tests/fuzz/fuzz_target.h"

static void draw(const tgi_memlog *log)
{
    tgi_canvas *c = NULL;
    tgi_err err = {0};
    char *text = NULL;
    size_t n = 0;
    if (tgi_svg_open(640, tgi_plot_height(log), -1, "made", "made", &c, &err) != TG_OK)
        return;
    if (tgi_plot_draw(c, 640, "made", log, &err) != TG_OK)
        abort();
    if (tgi_svg_close(&c, &text, &n, &err) != TG_OK || n > 8 << 20 || strstr(text, "<script"))
        abort();
    tgi_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tgi_memlog *log = NULL;
    tgi_err err = {0};
    const tg_status st = tgi_memlog_parse((const char *)data, n, "made.csv", &log, &err);
    fuzz_check(st, &err);
    if (st == TG_OK) {
        if (log->rows < 1 || log->n_groups < 1 || log->n_groups > TGI_MEMLOG_GROUPS ||
            log->n_phases < 1 || log->n_phases > TGI_MEMLOG_PHASES || log->to < log->from)
            abort();
        draw(log);
    }
    tgi_free(log);
    fuzz_check_leaks();
    return 0;
}
