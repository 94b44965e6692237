/* test_boxes.c - a network of one size runs over any image in boxes of that size. The expectation is the same network with
 * its size left open, on an image that the test padded itself. */
#include "tests/property/sizes_case.h"

/* Pools, enlarges and joins; the last Slice keeps rows and columns [start, ends). A positive
 * end before the last pixel fixes the size. */
static void make_boxed(const char *path, const int64_t ext[2], const int64_t ends[2],
                       int64_t start, int64_t pad)
{
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, pad, NULL);
    const char *b = made_conv(&m, made_pool(&m, a, 2), 8, 8, k3, 1, 1, NULL);
    const char *c = made_concat(&m, 1, made_up(&m, b, 8, 8, 2), a);
    made_conv(&m, made_slice(&m, c, start, ends[0], start, ends[1]), 16, 1, k3, 1, pad, "y");
    made_end(&m, path);
}

typedef struct box_case {
    int64_t h, w; /* of the image */
    int64_t start, pad;
    int64_t end_y, end_x;     /* of the Slice; the network is declared for 64 x 96 */
    int64_t lead;             /* eaten before, rows and columns; the same after: */
    int64_t after_y, after_x; /* beyond that, up to even extents */
} box_case;

static const box_case boxes[] = {
    {200, 255, 0, 1, 60, 92, 0, 4, 5}, /* both axes in boxes; nothing eaten before */
    {50, 255, 0, 1, 60, 92, 0, 14, 5}, /* rows fit into one */
    {31, 40, 0, 1, 60, 92, 0, 33, 56}, /* all in one */
    {200, 255, 2, 0, 60, 92, 4, 0, 1}, /* valid convolutions and a crop: padded before, too */
};

/* The same weights with the size left open: what the boxes must add up to. With direct
 * convolutions, because blocks of Winograd begin where a box does. */
static void boxes_give_what_the_free_network_gives(void)
{
    static const int64_t ext[2] = {64, 96};
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        const box_case *c = &boxes[i];
        const int64_t ends[2] = {c->end_y, c->end_x};
        const int64_t left = 64 - (c->pad ? 0 : 2) - c->end_y; /* rows behind the Slice */
        const int64_t follow[2] = {left ? -left : INT32_MAX, left ? -left : INT32_MAX};
        const int64_t before[3] = {0, c->lead, c->lead};
        const int64_t after[3] = {0, c->lead + c->after_y, c->lead + c->after_x};
        make_boxed(in_folder("fixed.onnx"), ext, ends, c->start, c->pad);
        make_boxed(in_folder("free.onnx"), open2, follow, c->start, c->pad);
        tgi_graph *g = graph_of(in_folder("fixed.onnx"));
        CHECK(g && g->fixed_size);
        tgi_graph_free(&g);
        image in = picture(1, c->h, c->w);
        image wide = padded(&in, before, after, 'r');
        save(&in, in_folder("in.tif"));
        save(&wide, in_folder("wide.tif"));
        CHECK_JOB(TG_OK, run_verb, "model", in_folder("free.onnx"), "input",
                  in_folder("wide.tif"), "output", in_folder("whole.tif"), "raw-size", "true",
                  "exact", "true");
        image whole = load(in_folder("whole.tif"));
        static const char *const rams[] = {"1GiB", TG_SANITIZED ? "2GiB" : "100MiB"};
        for (int t = 0; t < 2; t++) {
            CHECK_JOB(TG_OK, run_verb, "model", in_folder("fixed.onnx"), "input",
                      in_folder("in.tif"), "output", in_folder("boxed.tif"), "ram", rams[t],
                      "exact", "true", "compress", t ? "zstd" : "none", "threads",
                      t ? "3" : "1");
            image boxed = load(in_folder("boxed.tif"));
            check_part(&boxed, &whole, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, c->h, c->w});
            free(boxed.px);
        }
        CHECK_JOB(TG_OK, verify_verb, "model", in_folder("fixed.onnx"), "input",
                  in_folder("in.tif"));
        free(whole.px);
        free(wide.px);
        free(in.px);
    }
}

static int plan_verb(tg_job *j)
{
    tg_plan_info p = {.size = sizeof p};
    const tg_status st = tg_job_plan(j, &p);
    int said = 0;
    for (size_t i = 0; i < p.n_lines; i++)
        said += strstr(p.lines[i].note, "fixed boxes of 64x96, core 48x80") != NULL ||
                strstr(p.lines[i].note, "4 + 4 rows, 4 + 5 columns before + after") != NULL;
    CHECK_EQ(said, 2);
    return (int)st;
}

/* A Resize repeats its edge pixel and never reads beyond: at the border of a box that is none
 * of the image such pixels must not be kept. */
static void a_box_keeps_nothing_that_its_own_border_changed(void)
{
    static const int64_t ext[2] = {64, 96}, k9[2] = {9, 9};
    static const float by2[4] = {1, 1, 2, 2};
    static const int64_t four[1] = {4};
    for (int fixed = 0; fixed < 2; fixed++) {
        made m = made_begin(2, 1, fixed ? ext : open2);
        bytes at = {0};
        b_attr_text(&at, "mode", "linear");
        b_init(&m.g, "by2", 1, 1, four, by2, sizeof by2);
        const char *p = made_pool(&m, made_slice(&m, "x", 4, -4, 4, -4), 2);
        const char *a = made_node(&m, "Resize", p, "", "by2", NULL, &at, NULL);
        /* reads further than the Resize: hides in the input what the Resize reads */
        const char *b = made_conv(&m, "x", 1, 4, k9, 1, 0, NULL);
        const char *d = made_concat(&m, 1, b, a);
        const char *e =
            fixed ? made_slice(&m, d, 0, 54, 0, 86) : made_slice(&m, d, 0, -2, 0, -2);
        made_conv(&m, e, 5, 1, k3, 1, 0, "y");
        made_end(&m, in_folder(fixed ? "fixed2.onnx" : "free2.onnx"));
    }
    image in = picture(1, 200, 256);
    save(&in, in_folder("in.tif"));
    for (int fixed = 0; fixed < 2; fixed++)
        CHECK_JOB(TG_OK, run_verb, "model", in_folder(fixed ? "fixed2.onnx" : "free2.onnx"),
                  "input", in_folder("in.tif"), "output",
                  in_folder(fixed ? "boxed.tif" : "whole.tif"), "raw-size", "true", "exact",
                  "true");
    image a = load(in_folder("whole.tif")), b = load(in_folder("boxed.tif"));
    check_part(&b, &a, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, 188, 244});
    free(a.px);
    free(b.px);
    free(in.px);
}

static void the_plan_says_how_the_image_is_padded_and_cut(void)
{
    image in = picture(1, 200, 255);
    save(&in, in_folder("in.tif"));
    CHECK_JOB(TG_OK, plan_verb, "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"));
    CHECK_JOB(TG_E_ARG, run_verb, "model", in_folder("fixed.onnx"), "input",
              in_folder("in.tif"), "output", in_folder("no.tif"), "tile", "64");
    free(in.px);
}

/* Stops a run at the first word it says of its bands. */
static int stopping;
static void stop(void *user, const tg_progress *p)
{
    (void)user;
    if (stopping && strcmp(p->phase, "run") == 0)
        tg_cancel(2);
}

static void a_stopped_run_in_boxes_goes_on_to_the_same_file(void)
{
    const tg_ctx_opts watch = {.size = sizeof watch, .progress = stop};
    tg_ctx *const plain = ctx;
    image in = picture(1, 400, 455);
    save(&in, in_folder("in.tif"));
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("whole.tif"));
    ctx = NULL;
    CHECK_EQ(tg_ctx_open(&watch, &ctx), TG_OK);
    stopping = 1;
    CHECK_EQ(job(run_verb, "", "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("parts.tif"), NULL),
             TG_E_CANCELLED);
    tg_cancel(0);
    stopping = 0;
    CHECK_EQ(job(run_verb, "", "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("parts.tif"), NULL),
             TG_OK);
    tg_ctx_close(&ctx);
    ctx = plain;
    image a = load(in_folder("whole.tif")), b = load(in_folder("parts.tif"));
    check_part(&b, &a, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, 400, 455});
    free(a.px);
    free(b.px);
    free(in.px);
}

/* Instance norm looks at the whole box, a pool of its size as well: no pieces. The refusal
 * names file and node. */
static void what_is_not_local_has_no_boxes(void)
{
    static const int64_t ext[2] = {64, 96}, one[1] = {8};
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *scale = made_weights(&m, 1, one), *bias = made_weights(&m, 1, one);
    const char *b = made_node(&m, "InstanceNormalization", a, scale, bias, NULL, NULL, NULL);
    made_conv(&m, made_slice(&m, b, 0, 60, 0, 92), 8, 1, k3, 1, 1, "y");
    made_end(&m, in_folder("whole.onnx"));
    CHECK_EQ(job(run_verb, "", "model", in_folder("whole.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("no.tif"), NULL),
             TG_E_UNSUPPORTED);
    CHECK(strstr(tg_ctx_detail(ctx), "whole.onnx") != NULL);
    CHECK(strstr(tg_ctx_detail(ctx), "InstanceNormalization") != NULL);
    CHECK(strstr(tg_ctx_detail(ctx), "Slice") != NULL);
    static const int64_t square[2] = {64, 64};
    m = made_begin(2, 1, square);
    a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    b = made_up(&m, made_pool(&m, a, 64), 8, 8, 8);
    b = made_conv(&m, made_up(&m, b, 8, 8, 8), 8, 8, k3, 1, 1, NULL);
    made_conv(&m, made_slice(&m, made_concat(&m, 1, a, b), 0, 60, 0, 60), 16, 1, k3, 1, 1, "y");
    made_end(&m, in_folder("pool.onnx"));
    CHECK_EQ(job(run_verb, "", "model", in_folder("pool.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("no.tif"), NULL),
             TG_E_UNSUPPORTED);
    CHECK(strstr(tg_ctx_detail(ctx), "MaxPool") != NULL);
}

int main(void)
{
    help_open();
    RUN(boxes_give_what_the_free_network_gives);
    RUN(a_box_keeps_nothing_that_its_own_border_changed);
    RUN(the_plan_says_how_the_image_is_padded_and_cut);
    RUN(a_stopped_run_in_boxes_goes_on_to_the_same_file);
    RUN(what_is_not_local_has_no_boxes);
    help_close();
    return TEST_END();
}
