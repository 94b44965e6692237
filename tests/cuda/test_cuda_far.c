/* test_cuda_far.c - kernels where offsets in memory pass 31 and 32 bits: images whose last
 * rows, columns and slabs lie there, staged pixels and whole arrays of which a part is
 * computed, and images of more rows than a grid's y or z has blocks. Usage: test_cuda_far. */
#include "kernels/pixels.h"
#include "tests/cuda/far_flat.h"

#define HALF TG_DTYPE_F16
#define BRAIN TGI_DTYPE_BF16
#define SINGLE TG_DTYPE_F32
#define ANY TG_DTYPE_NONE

/* ---- Images ------------------------------------------------------------------------------ */

/* clang-format off */
static const far_line convolutions[] = {
    {"conv", "pads=1,1,1,1 | 1x16x96x24 ; 32x16x3x3 ; 32", "conv_mma", .element = HALF, .wide = 1},
    {"conv", "pads=1,1,1,1 | 1x16x96x24 ; 32x16x3x3", "conv_mma", .element = HALF, .capability = 75, .wide = 1},
    {"conv", "pads=1,1,1,1 | 1x16x96x24 ; 64x16x3x3", "conv_mma", .element = BRAIN, .wide = 1, .add = 1},
    {"conv", "pads=1,1,1,1 | 1x3x96x24 ; 16x3x3x3", "conv_mma", .element = HALF, .wide = 1},
    {"conv", "strides=2,2 pads=1,1,1,1 | 1x16x96x48 ; 16x16x3x3", "conv_mma", .element = HALF, .wide = 1},
    {"conv", "dilations=2,2 pads=2,2,2,2 | 1x48x96x24 ; 16x48x3x3", "conv_mma", .element = HALF, .segs = {32, 16}, .doubled = 1},
    {"conv", "pads=1,1,1,1,1,1 | 1x16x24x6x20 ; 16x16x3x3x3", "conv_mma", .element = BRAIN},
    {"conv", " | 1x32x96x24 ; 16x32x1x1", "conv_mma", .element = HALF, .wide = 1},
    {"conv", "pads=1,1,1,1 | 1x16x96x24 ; 16x16x3x3", "conv_tf32", .element = SINGLE, .kinds = TGI_KIND_TF32, .wide = 1},
    {"conv", "pads=1,1,1,1 | 1x16x96x24 ; 32x16x3x3", "conv_simt", .element = SINGLE, .wide = 1, .add = 1},
    {"conv", "pads=1,1,1,1 | 1x3x96x24 ; 16x3x3x3", "conv_simt", .element = SINGLE, .wide = 1},
    {"conv", "pads=1,1,1,1,1,1 | 1x16x24x6x20 ; 16x16x3x3x3", "conv_simt", .element = SINGLE},
    {"conv", "pads=1,1,1,1 | 1x5x96x24 ; 6x5x3x3", "conv_plain", .element = ANY, .wide = 1},
    {"conv", "pads=1,1,1,1,1,1 | 1x5x24x6x20 ; 6x5x3x3x3", "conv_plain", .element = ANY},
    {"conv", "group=16 pads=1,1,1,1 | 1x16x96x24 ; 16x1x3x3", "conv_depthwise", .element = ANY, .wide = 1},
    {"conv", "group=16 pads=1,1,1,1 | 1x16x96x24 ; 16x1x3x3", "conv_depthwise_row", .element = ANY, .wide = 1},
    {"conv", "group=16 pads=2,2,2,2 | 1x16x96x24 ; 16x1x5x5", "conv_depthwise_row", .element = ANY, .wide = 1, .segs = {8, 8}},
    {"conv", "pads=1,1,1,1 | 1x64x96x40 ; 64x64x3x3 ; 64", "conv_wgmma", .element = HALF, .kinds = TGI_KIND_WGMMA, .capability = 90, .wide = 4},
    {"conv", "pads=1,1,1,1 | 1x16x96x40 ; 64x16x3x3", "conv_wgmma", .element = BRAIN, .kinds = TGI_KIND_WGMMA, .capability = 90, .wide = 4},
    {"conv", "strides=2,2 pads=1,1,1,1 | 1x32x96x80 ; 64x32x3x3", "conv_wgmma", .element = HALF, .kinds = TGI_KIND_WGMMA, .capability = 90},
    {"conv", "pads=1,1,1,1 | 1x48x96x40 ; 64x48x3x3", "conv_wgmma", .element = BRAIN, .kinds = TGI_KIND_WGMMA, .capability = 90, .segs = {32, 16}, .doubled = 1},
    {"conv", "pads=1,1,1,1,1,1 | 1x16x24x6x20 ; 16x16x3x3x3", "conv_wgmma", .element = HALF, .kinds = TGI_KIND_WGMMA, .capability = 90},
    {"conv_transpose", "strides=2,2 pads=1,1,1,1 | 1x32x96x24 ; 32x16x4x4 ; 16", "conv_transpose_wgmma", .element = HALF, .kinds = TGI_KIND_WGMMA, .capability = 90, .wide = 4},
    {"conv_transpose", "strides=2,2 pads=1,1,1,1 | 1x16x96x24 ; 16x16x4x4", "conv_transpose_mma", .element = HALF, .wide = 1},
    {"conv_transpose", "strides=2,2 | 1x16x96x24 ; 16x16x2x2", "conv_transpose_mma", .element = BRAIN, .wide = 1},
    {"conv_transpose", "strides=2,2 pads=1,1,1,1 | 1x16x96x24 ; 16x16x4x4", "conv_transpose_simt", .element = SINGLE, .wide = 1},
    {"conv_transpose", "strides=2,2 pads=1,1,1,1 | 1x16x96x24 ; 16x16x4x4", "conv_transpose_tf32", .element = SINGLE, .kinds = TGI_KIND_TF32, .wide = 1},
    {"conv_transpose", "strides=2,2 | 1x5x96x24 ; 5x6x3x3", "conv_transpose_plain", .element = ANY, .wide = 1},
    {"conv_transpose", "strides=2,2 group=16 | 1x16x96x24 ; 16x1x3x3", "conv_transpose_depthwise", .element = ANY, .wide = 1},
};

static const far_line others[] = {
    {"max_pool", "kernel_shape=2,2 strides=2,2 | 1x8x96x24", "cu_max_pool", .element = ANY, .wide = 1},
    {"average_pool", "kernel_shape=3,3 pads=1,1,1,1 | 1x5x96x24", "cu_average_pool", .element = ANY, .wide = 1},
    {"lp_pool", "kernel_shape=2,2,2 strides=2,2,2 | 1x8x24x6x20", "cu_lp_pool", .element = ANY},
    {"resize", "mode=linear | 1x8x96x24 ; none ; f:1,1,2,2", "cu_resize", .element = ANY},
    {"resize", "mode=cubic | 1x3x24x7x20 ; none ; f:1,1,2,1,1.5", "cu_resize", .element = ANY},
    {"upsample", "mode=nearest opset=9 | 1x16x96x24 ; f:1,1,2,2", "cu_resize", .element = ANY},
    {"depth_to_space", "blocksize=2 | 1x32x96x24", "cu_depth_to_space", .element = ANY, .wide = 1},
    {"depth_to_space", "blocksize=2 mode=CRD | 1x32x96x24", "cu_depth_to_space", .element = ANY, .wide = 1},
    {"space_to_depth", "blocksize=2 | 1x8x96x24", "cu_space_to_depth", .element = ANY, .wide = 1},
    {"space_to_depth", "blocksize=2 | 1x3x96x24", "cu_space_to_depth", .element = ANY, .wide = 1},
    {"concat", "axis=1 | 1x8x96x24 ; a:1x5x96x24", "cu_concat", .element = ANY, .wide = 1},
    {"concat", "axis=1 | 1x8x24x6x20 ; a:1x8x24x6x20", "cu_concat", .element = ANY},
    {"slice", " | 1x8x96x24 ; i:1,3 ; i:96,24 ; i:2,3", "cu_slice", .element = ANY},
    {"slice", " | 1x8x96x24 ; i:1 ; i:8 ; i:1 ; i:2", "cu_slice", .element = ANY, .wide = 1},
    {"split", "axis=1 outputs=2 num_outputs=2 | 1x16x96x24", "cu_split", .element = ANY, .wide = 1},
    {"pad", "mode=reflect | 1x8x96x24 ; i:0,0,2,2,0,0,2,2", "cu_pad", .element = ANY, .wide = 1},
    {"pad", "mode=wrap opset=19 | 1x8x96x24 ; i:0,0,0,0,0,0,0,4", "cu_pad", .element = ANY},
    {"tile", " | 1x8x96x24 ; i:1,2,1,1", "cu_tile", .element = ANY, .wide = 1},
    {"batch_normalization", " | 1x16x96x24 ; 16 ; 16 ; 16 ; f:1,1,1,1,2,2,2,2,3,3,3,3,4,4,4,4", "cu_batch_norm", .element = ANY, .wide = 1},
    {"instance_normalization", " | 1x16x96x70 ; 16 ; 16", "cu_instance_norm", .element = ANY, .whole = 1},
    {"group_normalization", "num_groups=2 opset=21 | 1x8x24x5x7 ; 8 ; 8", "cu_group_norm", .element = ANY, .whole = 1},
    {"global_average_pool", " | 1x16x96x70", "cu_global_average", .element = ANY, .whole = 1},
    {"global_max_pool", " | 1x16x96x70", "cu_reduce", .element = ANY, .whole = 1},
    {"reduce_sum", " | 1x8x24x5x7 ; i:2,3,4", "cu_reduce", .element = ANY, .whole = 1},
    {"reduce_l2", " | 1x8x96x70 ; i:1,3", "cu_reduce", .element = ANY},
    {"reduce_max", " | 1x8x96x24 ; i:1", "cu_reduce", .element = ANY, .wide = 1},
    {"softmax", "axis=1 | 1x11x96x24", "cu_softmax", .element = ANY, .wide = 1},
    {"log_softmax", "axis=1 | 1x8x24x6x20", "cu_log_softmax", .element = ANY},
    {"hardmax", "axis=1 | 1x8x96x24", "cu_hardmax", .element = ANY, .wide = 1},
    {"arg_max", "axis=1 | 1x8x96x24", "cu_arg_max", .element = ANY, .wide = 1},
    {"lp_normalization", "axis=1 | 1x8x96x24", "cu_lp_normalization", .element = ANY, .wide = 1},
    {"lrn", "size=3 | 1x8x96x24", "cu_lrn", .element = ANY, .wide = 1},
    {"add", " | 1x8x96x24 ; a:1x8x96x24", "cu_pointwise", .element = ANY, .wide = 1},
    {"mul", " | 1x8x24x6x20 ; a:1x1x24x6x20", "cu_pointwise", .element = ANY, .add = 1},
    {"relu", " | 1x3x96x24", "cu_pointwise", .element = ANY, .wide = 1, .add = 1},
    {"exp", " | 1x2x96x24", "cu_pointwise", .element = ANY, .wide = 1},
    {"neg", " | 1x1x96x24", "cu_pointwise", .element = ANY, .wide = 1},
};
/* clang-format on */

static void check_lines(const far_line *lines, size_t n)
{
    static const tg_dtype types[] = {SINGLE, HALF, BRAIN};
    for (size_t i = 0; i < n; i++)
        for (int t = 0; t < 3; t++)
            if (lines[i].element == types[t] || lines[i].element == ANY)
                far_check(&lines[i], types[t], 0);
}

static void test_convolutions_reach_far_rows_columns_and_slabs(void)
{
    check_lines(convolutions, sizeof convolutions / sizeof *convolutions);
}

static void test_other_operators_reach_far_rows_columns_and_slabs(void)
{
    check_lines(others, sizeof others / sizeof *others);
}

/* More than 2^31 pixels become one number: sums and maxima of chunks in the order of the image,
 * of which the last is there. All others are zero, here because nobody computes them. */
static void test_reductions_count_beyond_31_bits_of_pixels(void)
{
    static const far_line lines[] = {
        {"reduce_sum", " | 1x1x16x1024 ; i:2,3", "cu_reduce", .whole = 1, .tail = 16},
        {"reduce_max", " | 1x1x16x1024 ; i:2,3", "cu_reduce", .whole = 1, .tail = 16},
        {"global_max_pool", " | 1x1x16x1024", "cu_reduce", .whole = 1, .tail = 16},
    };
    const int64_t pixels = tgi_min(far_reach, (int64_t)1 << 32) * 2;
    device_blocks(1);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        far_check(&lines[i], i ? HALF : SINGLE, pixels / 1024);
    device_blocks(0);
}

/* Rows of an image that the library takes as a batch of matrices. */
static void test_a_library_reaches_far_rows(void)
{
    static const far_line lines[] = {
        {"conv", " | 1x32x96x24 ; 32x32x1x1 ; 32", "conv_1x1_cublaslt", .element = HALF,
         .kinds = TGI_KIND_LIBRARY, .wide = 1},
        {"conv", " | 1x32x96x24 ; 32x32x1x1", "conv_1x1_cublaslt", .element = SINGLE,
         .kinds = TGI_KIND_LIBRARY, .wide = 1},
    };
    const int is_open = device_open_library(ops, device);
    tgi_err err = {0};
#ifdef TG_TEST_EMULATED
    CHECK(is_open);
#endif
    if (!is_open)
        return;
    check_lines(lines, sizeof lines / sizeof *lines);
    CHECK_OK(ops->library(device, 0, &err), err);
}

/* ---- Images of many rows ----------------------------------------------------------------- */

/* Rows and columns are below 2^30 - 2^23 (cu_fits). */
#define MOST_ROWS (((int64_t)1 << 30) - ((int64_t)1 << 23) - 1)

/* clang-format off */
static const far_line tall[] = {
    {"conv", "pads=1,1,1,1 | 1x8x96x2 ; 16x8x3x3", "conv_mma", .element = HALF},
    {"conv", "strides=2,1 pads=1,1,1,1 | 1x8x96x2 ; 16x8x3x3", "conv_mma", .element = HALF, .capability = 75},
    {"conv", "pads=1,1,1,1 | 1x8x96x2 ; 16x8x3x3", "conv_simt", .element = SINGLE},
    {"conv", "pads=1,1,1,1 | 1x3x96x2 ; 3x3x3x3", "conv_plain", .element = HALF},
    {"conv", "group=8 pads=1,1,1,1 | 1x8x96x2 ; 8x1x3x3", "conv_depthwise_row", .element = HALF},
    {"conv", "pads=1,1,1,1 | 1x8x96x2 ; 16x8x3x3", "conv_wgmma", .element = HALF, .kinds = TGI_KIND_WGMMA, .capability = 90},
    {"conv_transpose", "strides=2,2 pads=1,1,1,1 | 1x8x96x2 ; 8x8x4x4", "conv_transpose_mma", .element = HALF},
    {"conv_transpose", "strides=2,2 pads=1,1,1,1 | 1x8x96x2 ; 8x8x4x4", "conv_transpose_simt", .element = SINGLE},
    {"conv_transpose", "strides=2,2 | 1x3x96x2 ; 3x5x3x3", "conv_transpose_plain", .element = HALF},
    {"max_pool", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 | 1x8x96x4", "cu_max_pool", .element = HALF},
    {"pad", "mode=edge | 1x8x96x2 ; i:0,0,0,2,0,0,0,2", "cu_pad", .element = HALF},
    {"depth_to_space", "blocksize=2 | 1x32x96x2", "cu_depth_to_space", .element = HALF},
    {"space_to_depth", "blocksize=2 | 1x8x96x4", "cu_space_to_depth", .element = HALF},
    {"softmax", "axis=1 | 1x8x96x2", "cu_softmax", .element = HALF},
    {"relu", " | 1x8x96x2", "cu_pointwise", .element = HALF, .add = 1},
};
/* clang-format on */

/* As many rows as coordinates take, or memory. */
static int64_t rows_of(const far_line *l)
{
    const int grows = strcmp(l->symbol, "conv_transpose") == 0;
    const int shuffled = strcmp(l->symbol, "depth_to_space") == 0;
    const int64_t rows = tgi_min(MOST_ROWS, far_reach / 16) - 8;
    return rows / (grows || shuffled ? 2 : 1) / 64 * 64 - 32;
}

static void test_rows_are_counted_up_to_the_last_coordinate(void)
{
    for (size_t i = 0; i < sizeof tall / sizeof *tall; i++)
        far_check(&tall[i], tall[i].element, rows_of(&tall[i]));
}

/* What lies behind the box, of a band that could be as tall as the image: nothing is written
 * there, wherever that would be. */
static void test_blocks_behind_the_last_row_do_nothing(void)
{
    for (size_t i = 0; i < sizeof tall / sizeof *tall; i++)
        behind_check(&tall[i], tall[i].element, rows_of(&tall[i]));
}

/* clang-format off */
static const far_line gridded[] = {
    {"conv", "pads=1,1,1,1 | 1x8x96x1 ; 16x8x3x3", "conv_mma", .element = HALF, .last = 75},
    {"conv", "pads=1,1,1,1 | 1x8x96x1 ; 16x8x3x3", "conv_simt", .element = SINGLE, .last = 75},
    {"conv", "pads=1,1,1,1 | 1x8x96x1 ; 16x8x3x3", "conv_wgmma", .element = HALF, .kinds = TGI_KIND_WGMMA, .capability = 90, .last = 88},
    {"conv", "pads=1,1,1,1,1,1 | 1x8x96x1x1 ; 16x8x3x3x3", "conv_mma", .element = HALF, .last = 100},
    {"conv", "group=8 pads=1,1,1,1 | 1x8x96x1 ; 8x1x3x3", "conv_depthwise_row", .element = HALF, .last = 1000},
    {"relu", " | 1x8x96x1", "cu_pointwise", .element = HALF, .last = 1000},
    {"relu", " | 1x8x96x1x1", "cu_pointwise", .element = HALF, .last = 1000},
    {"max_pool", "kernel_shape=3,1 pads=1,0,1,0 | 1x8x96x1", "cu_max_pool", .element = HALF, .last = 1000},
    {"softmax", "axis=1 | 1x8x96x1", "cu_softmax", .element = HALF, .last = 1000},
};
/* clang-format on */

/* All rows or slabs in one launch, 70,000 of them; the last are looked at. */
static void test_rows_and_slabs_are_more_than_a_grid_has_on_y_or_z(void)
{
    for (size_t i = 0; i < sizeof gridded / sizeof *gridded; i++)
        whole_check(&gridded[i], gridded[i].element, 70000);
}

/* ---- What is refused --------------------------------------------------------------------- */

/* Whether the variant takes the line with extents of source 0 as said. */
static int taken(const far_line *l, int64_t c, int64_t h, int64_t w)
{
    far_node f;
    const int good =
        far_parse(&f, l, HALF, (const int64_t[]){1, c, h, w}) && named(&f, l->variant);
    node_close(&f.n);
    return good;
}

/* Coordinates and offsets within a row have 31 bits, with what kernels add to them. */
static void test_beyond_the_last_coordinate_nobody_computes(void)
{
    static const far_line lines[] = {
        {"relu", " | 1x8x96x8", "cu_pointwise", .element = HALF},
        {"conv", "pads=1,1,1,1 | 1x8x96x8 ; 16x8x3x3", "conv_mma", .element = HALF},
        {"conv", "pads=1,1,1,1 | 1x8x96x8 ; 16x8x3x3", "conv_plain", .element = HALF},
        {"softmax", "axis=1 | 1x8x96x8", "cu_softmax", .element = HALF},
        {"pad", "mode=edge | 1x8x96x8 ; i:0,0,0,2,0,0,0,2", "cu_pad", .element = HALF},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const far_line *l = &lines[i];
        const int64_t row = ((int64_t)1 << 30) / (strcmp(l->symbol, "conv") == 0 ? 16 : 8);
        case_where = l->text;
        CHECK(taken(l, 8, MOST_ROWS, 1));
        CHECK(!taken(l, 8, MOST_ROWS + 1, 1));
        CHECK(taken(l, 8, 3, row - 8));
        CHECK(!taken(l, 8, 3, row));
    }
}

/* Offsets within a patch of conv_wgmma have 32 bits, in eights; a window's pixels 31. */
static void test_what_a_kernel_adds_up_has_limits_too(void)
{
    const far_line patch = {"conv", "pads=1,1,1,1 | 1x64x96x8 ; 64x64x3x3", "conv_wgmma",
                            .element = HALF};
    const far_line window = {"average_pool", "kernel_shape=65536,4 | 1x8x65536x8",
                             "cu_average_pool", .element = HALF};
    const far_line window_too_large = {"average_pool", "kernel_shape=65536,32768 | 1x8x65536x8",
                                       "cu_average_pool", .element = HALF};
    const far_line stride = {"conv", "strides=65536,1 | 1x8x96x8 ; 16x8x1x1", "conv_mma",
                             .element = HALF};
    CHECK(taken(&patch, 64, 96, 1 << 22));
    CHECK(!taken(&patch, 64, 96, 1 << 23));
    CHECK(taken(&window, 8, 65536, 65536));
    CHECK(!taken(&window_too_large, 8, 65536, 65536));
    CHECK(!taken(&stride, 8, 96, 8));
}

/* ---- Pixels in and out ------------------------------------------------------------------- */

/* Staged pixels of a whole region of `rows` x `cols`, of which the last are there. */
typedef struct staged {
    tgi_device_pixels p;
    int64_t slabs, rows, cols;
    size_t bytes;
} staged;

#define STAGED_COLS 32768
#define STAGED_ROWS 5   /* the last ones: numbers */
#define STAGED_SHOWN 13 /* columns, likewise */
#define STAGED_RING 8

static int stage(staged *s, tg_dtype type, int64_t slabs, int64_t together)
{
    *s = (staged){.slabs = slabs, .cols = STAGED_COLS};
    s->rows = tgi_min(far_reach, (int64_t)1 << 34) * 5 / 4 / STAGED_COLS / 3 / slabs;
    s->p = (tgi_device_pixels){.type = type,
                               .element = HALF,
                               .channels = 3,
                               .together = together,
                               .rows = {0, s->rows},
                               .cols = {0, s->cols},
                               .extent = {slabs, s->rows, s->cols},
                               .pad = TGI_LOAD_EDGE,
                               .mul = 0.5f,
                               .add = 1};
    s->bytes = (size_t)(s->slabs * s->rows * s->cols * 3) * tgi_dtype_size(type);
    return reserve(s->bytes + 64, &s->p.at);
}

/* Where channel c of a pixel lies. */
static char *staged_at(const staged *s, int64_t z, int64_t c, int64_t y, int64_t x)
{
    const int64_t planes = 3 / s->p.together;
    const int64_t row = (z * planes + c / s->p.together) * s->rows + y;
    const int64_t at = (row * s->cols + x) * s->p.together + c % s->p.together;
    return (char *)s->p.at + (size_t)at * tgi_dtype_size(s->p.type);
}

static float pixel_value(int64_t z, int64_t c, int64_t dy, int64_t dx)
{
    return (float)((z * 57 + c * 31 + dy * 13 + dx * 7) % 120);
}

static tgi_box staged_box(const staged *s, int64_t rows, int64_t cols)
{
    tgi_box b = {.rank = 4, .ax = {{0, 1}, {0, 3}}};
    if (s->slabs > 1)
        b.ax[b.rank++ - 2] = (tgi_range){0, s->slabs};
    b.ax[b.rank - 2] = (tgi_range){s->rows - rows, s->rows};
    b.ax[b.rank - 1] = (tgi_range){s->cols - cols, s->cols};
    return b;
}

static void run_pixels(const staged *s, tgi_device_step_kind kind, const tgi_box *box,
                       const tgi_view *view)
{
    const tgi_operand operand = {1, view};
    tgi_device_step step = {.kind = kind, .pixels = s->p};
    tgi_err err = {0};
    step.call.box = *box;
    step.call.src = &operand;
    step.call.dst = view;
    for (int k = 0; k < box->rank; k++)
        step.call.most[k] = tgi_range_len(box->ax[k]);
    CHECK_OK(run_step(&step, &err), err);
}

/* fn(pixel, its value) for the last ones of all slabs and channels. */
static void each_staged(const staged *s, void (*fn)(tg_dtype type, char *at, float v))
{
    for (int64_t z = 0; z < s->slabs; z++)
        for (int64_t c = 0; c < 3; c++)
            for (int64_t y = s->rows - STAGED_ROWS; y < s->rows; y++)
                for (int64_t x = s->cols - STAGED_SHOWN; x < s->cols; x++)
                    fn(s->p.type, staged_at(s, z, c, y, x),
                       pixel_value(z, c, s->rows - y, s->cols - x));
}

static void put_one(tg_dtype type, char *at, float v)
{
    char one[8];
    tgi_pixels_store(type, &v, 1, 1, 1, 0, one, 1);
    put(at, one, tgi_dtype_size(type));
}

static void check_one(tg_dtype type, char *at, float v)
{
    char one[8];
    float got = NAN;
    get(one, at, tgi_dtype_size(type));
    tgi_pixels_load(type, one, 1, 1, 0, &got, 1);
    CHECK_EQ(got, v);
}

static tgi_desc staged_desc(const staged *s)
{
    if (s->slabs > 1)
        return (tgi_desc){TG_DTYPE_F32, 5, {1, 3, s->slabs, s->rows, s->cols}};
    return (tgi_desc){TG_DTYPE_F32, 4, {1, 3, s->rows, s->cols}};
}

/* The last pixels of a region: v * 0.5 + 1 in a view whose rows are few, and in a far one. */
static void check_load(const staged *s, int far)
{
    const tgi_box box = staged_box(s, STAGED_ROWS, STAGED_SHOWN);
    const tgi_desc d = staged_desc(s);
    held h;
    if (!hold(&h, &d, 3, &box, HALF, far)) {
        far_skipped++;
        return;
    }
    fill_nan(&h);
    run_pixels(s, TGI_STEP_LOAD, &box, &h.v);
    float *pixels = must(tgi_malloc(TGI_TAG_MISC, held_count(&h) * sizeof *pixels));
    const float *at = pixels;
    move_pixels(&h, pixels, 0);
    for (int64_t z = 0; z < s->slabs; z++)
        for (int64_t y = STAGED_ROWS; y > 0; y--)
            for (int64_t x = STAGED_SHOWN; x > 0; x--)
                for (int64_t c = 0; c < 4; c++)
                    CHECK_EQ(*at++, c < 3 ? pixel_value(z, c, y, x) * 0.5f + 1 : 0);
    tgi_free(pixels);
    let_go(&h);
    far_runs++;
}

/* All of the region out of a view whose rows are one ring; the numbers are in its last columns.
 * What lies before them is infinite, and counted. */
static void check_store(staged *s)
{
    const tgi_box box = staged_box(s, s->rows, s->cols);
    tgi_box ring = box;
    tgi_desc d = staged_desc(s);
    const size_t n_counts = (size_t)(2 * s->rows);
    held h;
    tgi_err err = {0};
    ring.ax[ring.rank - 2] = (tgi_range){s->rows - STAGED_RING, s->rows};
    CHECK(hold(&h, &d, 3, &ring, HALF, 0));
    h.box.ax[h.box.rank - 1].lo = s->cols - STAGED_SHOWN - 1;
    float *pixels = must(tgi_calloc(TGI_TAG_MISC, held_count(&h), sizeof *pixels)),
          *to = pixels;
    for (int64_t y = STAGED_RING; y > 0; y--)
        for (int64_t x = STAGED_SHOWN + 1; x > 0; x--, to += 4)
            for (int64_t c = 0; c < 3; c++)
                to[c] = x > STAGED_SHOWN ? INFINITY : pixel_value(0, c, y, x) * 0.5f + 1;
    move_pixels(&h, pixels, 1);
    void *counts = NULL;
    CHECK_OK(ops->alloc(device, n_counts * 4, &counts, &err), err);
    s->p.counts = counts;
    s->p.mul = 2;
    s->p.add = -2;
    device_blocks(STAGED_ROWS * STAGED_COLS / 256);
    run_pixels(s, TGI_STEP_STORE, &box, &h.v);
    device_blocks(0);
    uint32_t last[2 * STAGED_ROWS];
    get(last, (uint32_t *)counts + 2 * (s->rows - STAGED_ROWS), sizeof last);
    for (int i = 0; i < 2 * STAGED_ROWS; i++)
        CHECK_EQ(last[i], i % 2 ? 0 : 3);
    ops->release(device, counts);
    tgi_free(pixels);
    let_go(&h);
    far_runs++;
}

static void test_staged_pixels_are_more_than_31_bits_count(void)
{
    static const tg_dtype types[] = {TG_DTYPE_U8, TG_DTYPE_U16};
    for (int i = 0; i < 8; i++) {
        staged s;
        if (!stage(&s, types[i % 2], i / 2 % 2 ? 3 : 1, i / 4 ? 3 : 1)) {
            printf("no room for %zu staged bytes\n", s.bytes);
            far_skipped++;
            continue;
        }
        each_staged(&s, put_one);
        check_load(&s, 0);
        check_load(&s, 1);
        give_back(s.p.at, s.bytes + 64);
    }
}

static void test_pixels_are_stored_beyond_31_bits(void)
{
    for (int together = 1; together <= 3; together += 2) {
        staged s;
        if (!stage(&s, TG_DTYPE_F32, 1, together)) {
            far_skipped++;
            continue;
        }
        check_store(&s);
        each_staged(&s, check_one);
        give_back(s.p.at, s.bytes + 64);
    }
}

/* ---- Whole arrays ------------------------------------------------------------------------ */

/* clang-format off */
static const flat_line arrays[] = {
    {"slice", " | 5x4 ; i:-3 ; i:100000000000 ; i:0", "cu_flat_move", .axis = {1}},
    {"gather", "axis=0 | 8x4 ; i:-1,-4,-2", "cu_flat_move", .axis = {1}},
    {"transpose", "perm=1,2,0 | 2x8x16", "cu_flat_move", .axis = {3}},
    {"concat", "axis=0 | 64x4 ; a:3x4", "cu_flat_move", .axis = {1}},
    {"reshape", " | 128x8 ; i:-1,4", "cu_flat_move", .axis = {1}},
    {"slice", " | 1x16x2x256 ; i:-8,-1,-64 ; i:100000000000,100000000000,100000000000 ; i:1,2,3", "cu_flat_move", .axis = {3}, .image = 1},
    {"add", " | 64x16 ; a:64x16", "cu_flat_pointwise", .axis = {1, 1}},
    {"mul", " | 64x16 ; a:16", "cu_flat_pointwise", .axis = {1}},
    {"where", " | 16x3 ; a:16x3 ; a:1x3", "cu_flat_pointwise", .axis = {1, 1}},
    {"softmax", "axis=-1 | 8x64", "cu_flat_row", .axis = {1}},
    {"softmax", "axis=-1 | 8x2", "cu_flat_row", .axis = {1}},
    {"softmax", "axis=0 | 16x256", "cu_flat_row", .axis = {2}},
    {"layer_normalization", "axis=-1 | 8x64 ; 64 ; 64", "cu_flat_row", .axis = {1}},
    {"reduce_sum", "keepdims=0 | 8x64 ; i:1", "cu_flat_reduce", .axis = {1}},
    {"reduce_max", "keepdims=0 | 16x256 ; i:0", "cu_flat_reduce", .axis = {2}},
    {"arg_max", "axis=0 keepdims=0 | 16x256", "cu_flat_reduce", .axis = {2}},
    {"mat_mul", " | 64x64 ; a:64x16", "cu_matmul", .axis = {1}},
    {"mat_mul", " | 3x64 ; a:64x64", "cu_matmul", .axis = {0, 2}},
    {"gemm", "transA=1 | 64x64 ; a:64x8 ; a:8", "cu_matmul", .axis = {2}},
    {"gemm", "transB=1 alpha=0.5 beta=2 | 64x32 ; a:8x32 ; a:64x8", "cu_matmul", .axis = {1, 0, 1}},
    {"einsum", "equation=ijk,ik,jk->i | 16x4x8 ; a:16x8 ; a:4x8", "cu_matmul", .axis = {1, 1}},
    {"mat_mul", " | 64x64 ; a:64x16", "cu_matmul_tf32", .axis = {1}, .kinds = TGI_KIND_TF32, .element = SINGLE},
    {"gemm", "transA=1 | 64x64 ; a:64x8", "cu_matmul_tf32", .axis = {2}, .kinds = TGI_KIND_TF32, .element = SINGLE},
};
/* clang-format on */

static void test_whole_arrays_of_more_than_31_bits(void)
{
    static const tg_dtype types[] = {SINGLE, HALF, BRAIN};
    device_generation(80);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        for (int t = 0; t < 3; t++)
            if ((arrays[i].element == types[t] || arrays[i].element == ANY) &&
                device_has(types[t]))
                flat_check(&arrays[i], types[t]);
}

int main(void)
{
    ops = device_of_test(&device);
    if (!ops)
        return 77;
    choose_reach();
    RUN(test_convolutions_reach_far_rows_columns_and_slabs);
    RUN(test_other_operators_reach_far_rows_columns_and_slabs);
    RUN(test_reductions_count_beyond_31_bits_of_pixels);
    RUN(test_a_library_reaches_far_rows);
    RUN(test_rows_are_counted_up_to_the_last_coordinate);
    RUN(test_blocks_behind_the_last_row_do_nothing);
    RUN(test_rows_and_slabs_are_more_than_a_grid_has_on_y_or_z);
    RUN(test_beyond_the_last_coordinate_nobody_computes);
    RUN(test_what_a_kernel_adds_up_has_limits_too);
    RUN(test_staged_pixels_are_more_than_31_bits_count);
    RUN(test_pixels_are_stored_beyond_31_bits);
    RUN(test_whole_arrays_of_more_than_31_bits);
    printf("%d runs, %d skipped\n", far_runs, far_skipped);
    return far_runs ? TEST_END() : 77;
}
