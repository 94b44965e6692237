/* fuzz_weights.c - any bytes as a file of weights, and as a pickle alone: every tensor that is listed lies inside the file and
 * can be read; what is mapped and what is read are the same. */
#include "io/pickle.h"
#include "io/weights_inside.h"
#include "tests/fuzz/fuzz_target.h"

#include <dlfcn.h>

#define MOST ((size_t)1 << 20)

static void must(int good)
{
    if (!good)
        abort();
}

/* Opened once more by each archive, and closed with it: that would take most of the time. */
static void hold_libzip(void)
{
    static int held;
    if (!held++)
        for (char name[] = "libzip.so.4"; name[10] < '7'; name[10]++)
            (void)!dlopen(name, RTLD_NOW);
}

static void look_at(const tgi_weights *w, int i, size_t *left)
{
    const tgi_weight *t = tgi_weights_at(w, i);
    const tgi_weight_place *p = &w->place[i];
    const uint8_t *mapped = tgi_weights_mapped(w, i);
    tgi_err err = {0};
    int64_t count;
    /* What lies behind a mapping is often another one: reading there need not crash. */
    must(p->record != TGI_IN_FILE || (p->at <= w->size && p->span <= w->size - p->at));
    must(tgi_weights_find(w, t->name) == i);
    must(tgi_desc_count(&t->desc, &count) &&
         t->bytes == (size_t)count * tgi_dtype_size(t->desc.dtype));
    if (mapped)
        must(mapped >= w->map && (size_t)(mapped - w->map) <= w->size &&
             t->bytes <= w->size - (size_t)(mapped - w->map));
    if (t->bytes > *left)
        return;
    *left -= t->bytes;
    uint8_t *copy = malloc(t->bytes + 1);
    must(copy != NULL);
    const tg_status st = tgi_weights_read(w, i, copy, &err);
    fuzz_check(st, &err);
    if (mapped)
        must(st == TG_OK && memcmp(mapped, copy, t->bytes) == 0);
    free(copy);
}

static void as_file(const uint8_t *data, size_t n)
{
    char path[64], sum[TGI_SHA256_TEXT];
    tgi_err err = {0};
    tgi_weights *w = NULL;
    size_t left = MOST, bytes = 0;
    fuzz_file(data, n, path);
    const tg_status st = tgi_weights_open(path, &w, &err);
    fuzz_check(st, &err);
    if (st != TG_OK)
        return;
    for (int i = 0; i < tgi_weights_count(w); i++) {
        look_at(w, i, &left);
        bytes += tgi_weights_at(w, i)->bytes;
    }
    if (bytes <= MOST)
        fuzz_check(tgi_weights_sum(w, sum, &err), &err);
    tgi_weights_close(&w);
}

static void as_pickle(const uint8_t *data, size_t n)
{
    tgi_onnx_arena arena = {.limit = 4 * MOST};
    tgi_pickled p;
    tgi_err err = {0};
    const tg_status st = tgi_pickle_read(data, n, &arena, &p, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        must(p.value && p.bytes > 0 && p.bytes <= n);
    tgi_onnx_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    hold_libzip();
    as_file(data, n);
    as_pickle(data, n);
    fuzz_check_leaks();
    return 0;
}
