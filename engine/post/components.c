/* components.c - see components.h. There is no run 0; of holes run 1 is what lies around the image. */
#include "engine/post/components.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/post/paged.h"

#include <string.h>

typedef struct run {
    uint32_t lo, hi; /* columns */
    uint64_t
        root; /* a run of its component, its root when it was last looked for; 0: none yet */
} run;

/* The runs of a row. */
typedef struct row {
    int64_t n;
    run *runs;
} row;

enum { PARENT, FIRST, SIZE, BITS, N_ARRAYS };

#define AROUND 1 /* the run around an image whose holes are looked for */

struct tgi_components {
    tgi_components_spec spec;
    tgi_paged *array[N_ARRAYS];
    uint64_t next; /* run */
    uint64_t most; /* components of a part */
    uint8_t *mask;
    row at, above, below[3]; /* this row, the one before; those beside it in the plane before */
    run *memory;
};

/* ---- Sizes ------------------------------------------------------------------------------- */

static int is_volume(const tgi_components_spec *s)
{
    return s->neighbours == 6 || s->neighbours == 26;
}

/* Runs that touch where their corners do. */
static int by_corners(const tgi_components_spec *s)
{
    return s->neighbours == 8 || s->neighbours == 26;
}

static uint64_t rows_of(const tgi_components_spec *s)
{
    return tgi_sat_mul(tgi_sat_mul((size_t)s->parts, (size_t)s->depth), (size_t)s->height);
}

static size_t runs_of_row(const tgi_components_spec *s)
{
    return (size_t)s->width / 2 + 1;
}

/* How many numbers an array has; 0: it is not needed. */
static uint64_t length_of(const tgi_components_spec *s, int array)
{
    const uint64_t runs = tgi_sat_add(tgi_sat_mul(rows_of(s), (size_t)(s->width + 1) / 2), 2);
    switch (array) {
    case PARENT:
        return runs;
    case FIRST:
        return rows_of(s) + 1;
    case SIZE:
        return s->min_size > 1 ? runs : 0;
    default:
        return is_volume(s) && s->depth > 1
                   ? tgi_sat_mul((size_t)s->height, (size_t)(s->width + 31) / 32)
                   : 0;
    }
}

/* Sizes are counted up to the smallest that matters. */
static int width_of(const tgi_components_spec *s, int array)
{
    if (array == BITS)
        return 4;
    if (array == SIZE)
        return s->min_size > UINT32_MAX ? 8 : 4;
    return length_of(s, PARENT) > UINT32_MAX ? 8 : 4;
}

static size_t all_of(const tgi_components_spec *s, int array)
{
    const uint64_t n = length_of(s, array);
    return n ? tgi_paged_all(n, width_of(s, array)) : 0;
}

size_t tgi_components_most(const tgi_components_spec *s)
{
    size_t n = 0;
    for (int i = 0; i < N_ARRAYS; i++)
        n = tgi_sat_add(n, all_of(s, i));
    return n;
}

size_t tgi_components_least(const tgi_components_spec *s)
{
    size_t n = 0;
    for (int i = 0; i < N_ARRAYS; i++) {
        const size_t all = all_of(s, i);
        n += all < TGI_PAGED_LEAST ? all : TGI_PAGED_LEAST;
    }
    return n;
}

size_t tgi_components_rest(const tgi_components_spec *s)
{
    size_t n = sizeof(tgi_components) + (size_t)s->width + 64;
    for (int i = 0; i < N_ARRAYS; i++)
        if (length_of(s, i))
            n = tgi_sat_add(n, tgi_paged_tables(length_of(s, i), width_of(s, i)));
    return tgi_sat_add(n, 5 * sizeof(run) * runs_of_row(s));
}

/* ---- Open -------------------------------------------------------------------------------- */

/* Each has its least; what is left is shared by the large ones, so much to each as it is long. */
static size_t share(const tgi_components_spec *s, int array, size_t cache)
{
    const size_t all = all_of(s, array), least = tgi_components_least(s);
    size_t large = 0;
    if (cache >= tgi_components_most(s) || all <= TGI_PAGED_LEAST)
        return all;
    for (int i = 0; i < N_ARRAYS; i++)
        if (all_of(s, i) > TGI_PAGED_LEAST)
            large = tgi_sat_add(large, all_of(s, i));
    const double left = cache > least ? (double)(cache - least) : 0;
    const size_t more = (size_t)(left * ((double)all / (double)large));
    const size_t part = TGI_PAGED_LEAST + more / TGI_PAGED_BLOCK * TGI_PAGED_BLOCK;
    return part < all ? part : all;
}

static tg_status open_parts(tgi_components *c, size_t cache, const char *folder, tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    const size_t n = runs_of_row(s);
    c->mask = tgi_malloc(TGI_TAG_IO, (size_t)s->width);
    c->memory = tgi_calloc(TGI_TAG_IO, 5 * n, sizeof(run));
    if (!c->mask || !c->memory)
        return tgi_fail(err, TG_E_NOMEM, "no memory for runs of rows");
    row *rows[] = {&c->at, &c->above, &c->below[0], &c->below[1], &c->below[2]};
    for (size_t i = 0; i < 5; i++)
        rows[i]->runs = c->memory + i * n;
    for (int i = 0; i < N_ARRAYS; i++) {
        const tgi_paged_opts o = {.n = length_of(s, i),
                                  .width = width_of(s, i),
                                  .cache = share(s, i, cache),
                                  .folder = folder};
        if (o.n)
            TGI_TRY(tgi_paged_open(&o, &c->array[i], err));
    }
    return TG_OK;
}

tg_status tgi_components_open(const tgi_components_spec *s, size_t cache, const char *folder,
                              tgi_components **out, tgi_err *err)
{
    if (s->width >= UINT32_MAX)
        return tgi_fail(err, TG_E_UNSUPPORTED, "rows of %lld pixels", (long long)s->width);
    tgi_components *c = tgi_calloc(TGI_TAG_IO, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory for components");
    c->spec = *s;
    const tg_status st = open_parts(c, cache, folder, err);
    if (st != TG_OK)
        tgi_components_close(&c);
    *out = c;
    return st;
}

void tgi_components_close(tgi_components **cp)
{
    tgi_components *c = *cp;
    if (!c)
        return;
    for (int i = 0; i < N_ARRAYS; i++)
        tgi_paged_close(&c->array[i]);
    tgi_free(c->mask);
    tgi_free(c->memory);
    tgi_free(c);
    *cp = NULL;
}

/* ---- Runs -------------------------------------------------------------------------------- */

/* The first column from x on whose byte is `value`; eight are looked at together. */
static int64_t seek(const uint8_t *mask, int64_t x, int64_t n, uint8_t value)
{
    const uint64_t other = value ? 0 : 0x0101010101010101u;
    while (x < n && mask[x] != value) {
        uint64_t eight;
        x++;
        while (x + 8 <= n && (memcpy(&eight, mask + x, 8), eight == other))
            x += 8;
    }
    return x;
}

static uint8_t looked_for(const tgi_components_spec *s)
{
    return s->want != TGI_WANT_HOLES;
}

static void runs_of(const tgi_components_spec *s, const uint8_t *mask, row *r)
{
    const uint8_t value = looked_for(s);
    r->n = 0;
    for (int64_t x = seek(mask, 0, s->width, value); x < s->width;) {
        const int64_t end = seek(mask, x, s->width, !value);
        r->runs[r->n++] = (run){(uint32_t)x, (uint32_t)end, 0};
        x = seek(mask, end, s->width, value);
    }
}

static int64_t row_index(const tgi_components_spec *s, int64_t part, int64_t z, int64_t y)
{
    return (part * s->depth + z) * s->height + y;
}

/* ---- Joining ----------------------------------------------------------------------------- */

/* Every run on the way then points two further. */
static tg_status find_root(tgi_components *c, uint64_t id, uint64_t *root, tgi_err *err)
{
    tgi_paged *parent = c->array[PARENT];
    uint64_t p, g;
    for (;;) {
        TGI_TRY(tgi_paged_get(parent, id, &p, err));
        if (p == id)
            break;
        TGI_TRY(tgi_paged_get(parent, p, &g, err));
        if (g == p) {
            id = p;
            break;
        }
        TGI_TRY(tgi_paged_set(parent, id, g, err));
        id = g;
    }
    *root = id;
    return TG_OK;
}

static tg_status add_size(tgi_components *c, uint64_t root, uint64_t more, tgi_err *err)
{
    uint64_t n;
    TGI_TRY(tgi_paged_get(c->array[SIZE], root, &n, err));
    const uint64_t enough = (uint64_t)c->spec.min_size;
    n = more >= enough || n >= enough - more ? enough : n + more;
    return tgi_paged_set(c->array[SIZE], root, n, err);
}

/* Two roots become one: the smaller. */
static tg_status unite(tgi_components *c, uint64_t a, uint64_t b, uint64_t *root, tgi_err *err)
{
    const uint64_t small = a < b ? a : b, large = a < b ? b : a;
    uint64_t size = 0;
    *root = small;
    if (small == large)
        return TG_OK;
    TGI_TRY(tgi_paged_set(c->array[PARENT], large, small, err));
    if (!c->array[SIZE])
        return TG_OK;
    TGI_TRY(tgi_paged_get(c->array[SIZE], large, &size, err));
    return add_size(c, small, size, err);
}

/* The run at hand touches `other`. */
static tg_status touch(tgi_components *c, run *at, run *other, tgi_err *err)
{
    TGI_TRY(find_root(c, other->root, &other->root, err));
    if (!at->root) {
        at->root = other->root;
        return TG_OK;
    }
    TGI_TRY(find_root(c, at->root, &at->root, err));
    return unite(c, at->root, other->root, &at->root, err);
}

/* Runs of this row with those of a row beside it. */
static tg_status join(tgi_components *c, row *beside, uint32_t reach, tgi_err *err)
{
    int64_t i = 0, j = 0;
    while (i < c->at.n && j < beside->n) {
        run *a = &c->at.runs[i], *b = &beside->runs[j];
        if (a->lo < b->hi + reach && b->lo < a->hi + reach)
            TGI_TRY(touch(c, a, b, err));
        if (a->hi < b->hi)
            i++;
        else
            j++;
    }
    return TG_OK;
}

/* Of holes: what lies at the border is a part of what is around the image. */
static tg_status touch_border(tgi_components *c, int64_t z, int64_t y, run *r, uint64_t *parent,
                              tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    const int face = is_volume(s) && (z == 0 || z == s->depth - 1);
    if (!face && y != 0 && y != s->height - 1 && r->lo != 0 && r->hi != (uint32_t)s->width)
        return TG_OK;
    if (r->root) {
        TGI_TRY(find_root(c, r->root, &r->root, err));
        TGI_TRY(tgi_paged_set(c->array[PARENT], r->root, AROUND, err));
    }
    *parent = AROUND;
    return TG_OK;
}

/* The runs of this row get their numbers. */
static tg_status enter(tgi_components *c, int64_t part, int64_t z, int64_t y, tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    TGI_TRY(tgi_paged_set(c->array[FIRST], (uint64_t)row_index(s, part, z, y), c->next, err));
    for (int64_t i = 0; i < c->at.n; i++) {
        run *r = &c->at.runs[i];
        const uint64_t id = c->next++;
        uint64_t parent = r->root ? r->root : id;
        if (s->want == TGI_WANT_HOLES)
            TGI_TRY(touch_border(c, z, y, r, &parent, err));
        TGI_TRY(tgi_paged_set(c->array[PARENT], id, parent, err));
        if (c->array[SIZE]) {
            TGI_TRY(find_root(c, parent, &parent, err));
            TGI_TRY(add_size(c, parent, r->hi - r->lo, err));
        }
        r->root = id;
    }
    return TG_OK;
}

/* ---- The plane before -------------------------------------------------------------------- */

static tg_status keep_bits(tgi_components *c, int64_t y, tgi_err *err)
{
    const int64_t w = c->spec.width, words = (w + 31) / 32;
    for (int64_t i = 0; i < words; i++) {
        uint32_t bits = 0;
        const int64_t n = tgi_min(32, w - 32 * i);
        for (int64_t k = 0; k < n; k++)
            bits |= (uint32_t)c->mask[32 * i + k] << k;
        TGI_TRY(tgi_paged_set(c->array[BITS], (uint64_t)(y * words + i), bits, err));
    }
    return TG_OK;
}

/* Runs of row y of the plane before z. c->mask is spoiled. */
static tg_status load_below(tgi_components *c, int64_t part, int64_t z, int64_t y, row *r,
                            tgi_err *err)
{
    const int64_t w = c->spec.width, words = (w + 31) / 32;
    uint64_t first, bits = 0;
    r->n = 0;
    if (y < 0 || y >= c->spec.height)
        return TG_OK;
    for (int64_t x = 0; x < w; x++) {
        if (x % 32 == 0)
            TGI_TRY(tgi_paged_get(c->array[BITS], (uint64_t)(y * words + x / 32), &bits, err));
        c->mask[x] = bits >> x % 32 & 1;
    }
    runs_of(&c->spec, c->mask, r);
    TGI_TRY(tgi_paged_get(c->array[FIRST], (uint64_t)row_index(&c->spec, part, z - 1, y),
                          &first, err));
    for (int64_t i = 0; i < r->n; i++)
        r->runs[i].root = first + (uint64_t)i;
    return TG_OK;
}

/* below[1] is row y of the plane before, the others those beside it. */
static tg_status move_below(tgi_components *c, int64_t part, int64_t z, int64_t y, tgi_err *err)
{
    const int64_t corners = by_corners(&c->spec);
    const row oldest = c->below[0];
    if (!corners)
        return load_below(c, part, z, y, &c->below[1], err);
    c->below[0] = c->below[1];
    c->below[1] = c->below[2];
    c->below[2] = oldest;
    if (y == 0) {
        c->below[0].n = 0;
        TGI_TRY(load_below(c, part, z, 0, &c->below[1], err));
    }
    return load_below(c, part, z, y + 1, &c->below[2], err);
}

/* ---- Passes ------------------------------------------------------------------------------ */

static tg_status one_row(tgi_components *c, const tgi_mask_rows *rows, int64_t part, int64_t z,
                         int64_t y, tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    const uint32_t reach = by_corners(s) ? 1 : 0;
    const int below = c->array[BITS] && z > 0;
    const row was = c->above;
    c->above = c->at;
    c->at = was;
    if (y == 0)
        c->above.n = 0;
    if (below)
        TGI_TRY(move_below(c, part, z, y, err));
    TGI_TRY(rows->row(rows->user, part, z, y, c->mask, err));
    runs_of(s, c->mask, &c->at);
    TGI_TRY(join(c, &c->above, reach, err));
    for (int i = 0; i < 3 && below; i++)
        if (i == 1 || reach)
            TGI_TRY(join(c, &c->below[i], reach, err));
    if (c->array[BITS])
        TGI_TRY(keep_bits(c, y, err));
    return enter(c, part, z, y, err);
}

static uint64_t first_run(const tgi_components_spec *s)
{
    return s->want == TGI_WANT_HOLES ? AROUND + 1 : 1;
}

/* What pixels of the component get whose root is `id`. */
static tg_status answer(tgi_components *c, uint64_t id, uint64_t *number, uint64_t *out,
                        tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    uint64_t size = (uint64_t)s->min_size;
    if (c->array[SIZE])
        TGI_TRY(tgi_paged_get(c->array[SIZE], id, &size, err));
    *out = size >= (uint64_t)s->min_size;
    if (s->want != TGI_WANT_NUMBERS || !*out)
        return TG_OK;
    if (*number == UINT32_MAX)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "more than %u objects: their numbers do not fit uint32; cut the image "
                        "with --roi, or raise min-size",
                        UINT32_MAX);
    *out = ++*number;
    return TG_OK;
}

/* Parents become answers. */
static tg_status answer_all(tgi_components *c, const tgi_mask_rows *rows, tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    uint64_t id = first_run(s);
    TGI_TRY(
        tgi_paged_set(c->array[PARENT], AROUND, s->want == TGI_WANT_HOLES ? 0 : AROUND, err));
    for (int64_t part = 0; part < s->parts; part++) {
        uint64_t end, number = 0;
        TGI_TRY(
            tgi_paged_get(c->array[FIRST], (uint64_t)row_index(s, part + 1, 0, 0), &end, err));
        for (; id < end; id++) {
            uint64_t parent, what;
            TGI_TRY(tgi_paged_get(c->array[PARENT], id, &parent, err));
            if (parent == id)
                TGI_TRY(answer(c, id, &number, &what, err));
            else
                TGI_TRY(tgi_paged_get(c->array[PARENT], parent, &what, err));
            TGI_TRY(tgi_paged_set(c->array[PARENT], id, what, err));
            if (id % 65536 == 0)
                TGI_TRY(rows->tick(rows->user, 1, err));
        }
        c->most = number > c->most ? number : c->most;
    }
    return TG_OK;
}

static tg_status forget(tgi_components *c, tgi_err *err)
{
    const uint64_t runs = c->array[SIZE] ? c->next : 0;
    c->most = 0;
    c->next = first_run(&c->spec);
    for (uint64_t i = 0; i < runs; i++)
        TGI_TRY(tgi_paged_set(c->array[SIZE], i, 0, err));
    return tgi_paged_set(c->array[PARENT], AROUND, AROUND, err);
}

tg_status tgi_components_find(tgi_components *c, const tgi_mask_rows *rows, tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    const double all = (double)s->parts * (double)s->depth * (double)s->height;
    double done = 0;
    TGI_TRY(forget(c, err));
    for (int64_t part = 0; part < s->parts; part++)
        for (int64_t z = 0; z < s->depth; z++)
            for (int64_t y = 0; y < s->height; y++) {
                TGI_TRY(one_row(c, rows, part, z, y, err));
                TGI_TRY(rows->tick(rows->user, ++done / all, err));
            }
    TGI_TRY(
        tgi_paged_set(c->array[FIRST], (uint64_t)row_index(s, s->parts, 0, 0), c->next, err));
    return answer_all(c, rows, err);
}

uint64_t tgi_components_count(const tgi_components *c)
{
    return c->most;
}

tg_status tgi_components_row(tgi_components *c, int64_t part, int64_t z, int64_t y,
                             const uint8_t *mask, uint32_t *out, tgi_err *err)
{
    const tgi_components_spec *s = &c->spec;
    const uint8_t value = looked_for(s);
    uint64_t id, what;
    TGI_TRY(tgi_paged_get(c->array[FIRST], (uint64_t)row_index(s, part, z, y), &id, err));
    memset(out, 0, (size_t)s->width * sizeof *out);
    for (int64_t x = seek(mask, 0, s->width, value); x < s->width;) {
        const int64_t end = seek(mask, x, s->width, !value);
        TGI_TRY(tgi_paged_get(c->array[PARENT], id++, &what, err));
        for (; x < end; x++)
            out[x] = (uint32_t)what;
        x = seek(mask, end, s->width, value);
    }
    return TG_OK;
}
