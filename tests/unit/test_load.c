/* The loader: which rows its reader's thread has read before they are asked for, of the item
 * and place that comes next too, and that what was foreseen wrongly is read again. */
#include "engine/base/arith.h"
#include "engine/ends/load.h"
#include "io/image.h"
#include "tests/tg_test.h"

#define H 12
#define W 10
#define ITEMS 3

/* ---- A source that counts who reads ------------------------------------------------------ */

typedef struct counted {
    tgi_source base;
    int reads[2]; /* by thread: 0 the caller, 1 the reader */
} counted;

static uint16_t value_at(int64_t plane, int64_t y, int64_t x)
{
    return (uint16_t)(plane * 10000 + y * 100 + x);
}

static const tgi_image_info *info(const tgi_source *s)
{
    static const tgi_image_info i = {
        .dtype = TG_DTYPE_U16, .width = W, .height = H, .n_planes = ITEMS, .samples = 1};
    (void)s;
    return &i;
}

static tg_status read_rows(tgi_source *s, int thread, int64_t plane, int s0, int s1, int64_t y0,
                           int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                           size_t sample_pitch, tgi_err *err)
{
    (void)s0, (void)s1, (void)sample_pitch, (void)err;
    ((counted *)s)->reads[thread]++;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            const uint16_t v = value_at(plane, y, x);
            memcpy((char *)dst + (size_t)(y - y0) * row_pitch + (size_t)(x - x0) * sizeof v, &v,
                   sizeof v);
        }
    return TG_OK;
}

static const tgi_source_ops ops = {.format = "counted", .info = info, .read = read_rows};

/* ---- A loader of it ---------------------------------------------------------------------- */

typedef struct subject {
    counted source;
    tgi_mapping map;
    uint16_t staging[2][H * W];
    tgi_loader *loader;
} subject;

static void open_subject(subject *s)
{
    tgi_err err = {0};
    *s = (subject){.source = {.base = {.ops = &ops}}};
    s->map = (tgi_mapping){.spatial = 2,
                           .extent = {1, H, W},
                           .fit = {{.size = 1}, {.size = H}, {.size = W}},
                           .channels = 1,
                           .n_loop = 1,
                           .loop = {{.letter = 'T', .size = ITEMS, .stride = 1}},
                           .n_items = ITEMS};
    const tgi_loader_opts o = {.source = &s->source.base,
                               .map = &s->map,
                               .rank = 4,
                               .staging = {s->staging[0], s->staging[1]},
                               .staging_bytes = sizeof s->staging[0]};
    CHECK_OK(tgi_loader_open(&o, &s->loader, &err), err);
}

static tgi_box rows(int64_t lo, int64_t hi)
{
    return (tgi_box){4, {{0, 1}, {0, 1}, {lo, hi}, {0, W}}};
}

/* Get a box of an item at a place, and look at the numbers. */
static void get(subject *s, int64_t item, const int64_t shift[3], const tgi_box *box)
{
    tgi_device_pixels px;
    tgi_err err = {0};
    const void *at = NULL;
    size_t bytes = 0;
    int64_t bad = 0;
    tgi_loader_item(s->loader, item, (tgi_affine){.mul = 1});
    tgi_loader_place(s->loader, shift);
    CHECK_OK(tgi_loader_pixels(s->loader, box, &px, &at, &bytes, &err), err);
    CHECK_EQ(px.rows.lo, box->ax[2].lo - shift[1]);
    CHECK_EQ(bytes, (size_t)(tgi_range_len(px.rows) * W) * sizeof(uint16_t));
    const uint16_t *v = at;
    for (int64_t y = px.rows.lo; y < px.rows.hi; y++)
        for (int64_t x = 0; x < W; x++)
            bad += *v++ != value_at(item, y, x);
    CHECK_EQ(bad, 0);
}

static const int64_t at_first[3] = {0, 0, 0}, further[3] = {0, 4, 0};

/* ---- Tests ------------------------------------------------------------------------------- */

static void test_the_next_rows_of_an_item_are_read_by_the_readers_thread(void)
{
    subject s;
    const tgi_box first = rows(0, 4), second = rows(4, 8);
    open_subject(&s);
    get(&s, 0, at_first, &first);
    tgi_loader_prefetch(s.loader, &second);
    get(&s, 0, at_first, &second);
    CHECK_EQ(s.source.reads[0], 1);
    CHECK_EQ(s.source.reads[1], 1);
    tgi_loader_close(&s.loader);
}

static void test_so_are_the_first_of_the_next_item_and_of_another_place(void)
{
    subject s;
    const tgi_box first = rows(0, 4), shifted = rows(6, 10);
    open_subject(&s);
    get(&s, 0, at_first, &first);
    tgi_loader_prefetch_at(s.loader, 1, at_first, &first);
    get(&s, 1, at_first, &first);
    tgi_loader_prefetch_at(s.loader, 2, further, &shifted);
    get(&s, 2, further, &shifted);
    CHECK_EQ(s.source.reads[0], 1);
    CHECK_EQ(s.source.reads[1], 2);
    tgi_loader_close(&s.loader);
}

static void test_what_was_foreseen_wrongly_is_read_again(void)
{
    subject s;
    const tgi_box first = rows(0, 4), other = rows(4, 8);
    open_subject(&s);
    tgi_loader_prefetch_at(s.loader, 1, at_first, &first);
    get(&s, 2, at_first, &first); /* another item */
    tgi_loader_prefetch_at(s.loader, 2, at_first, &other);
    get(&s, 2, further, &other); /* the same numbers of rows, elsewhere */
    CHECK_EQ(s.source.reads[0], 2);
    CHECK_EQ(s.source.reads[1], 2);
    tgi_loader_close(&s.loader);
}

int main(void)
{
    RUN(test_the_next_rows_of_an_item_are_read_by_the_readers_thread);
    RUN(test_so_are_the_first_of_the_next_item_and_of_another_place);
    RUN(test_what_was_foreseen_wrongly_is_read_again);
    return TEST_END();
}
