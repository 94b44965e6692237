/* fuzz_npy.c - any bytes as a .npy array: loaded whole, opened to be read in pieces, and read
 * as an image. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "io/npy.h"
#include "tests/fuzz/fuzz_target.h"

static void as_image(const char *path)
{
    static uint8_t buf[64 * 8 * 4 * 8];
    const tgi_open_opts o = {.threads = 1, .decode_budget = 16u << 20};
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tg_status st = tgi_source_open(path, &o, &s, &err);
    fuzz_check(st, &err);
    if (st == TG_OK) {
        const tgi_image_info *i = s->ops->info(s);
        const int64_t w = tgi_min(i->width, 64), h = tgi_min(i->height, 4);
        const size_t row = (size_t)w * tgi_dtype_size(i->dtype);
        fuzz_check(s->ops->read(s, 0, i->n_planes - 1, 0, (int)tgi_min(i->samples, 8),
                                i->height - h, i->height, i->width - w, i->width, buf, row,
                                row * 4, &err),
                   &err);
    }
    tgi_source_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    fuzz_file(data, n, path);
    tgi_err err = {0};
    tgi_desc desc;
    void *values = NULL;
    tgi_npy_in in = {.file.fd = -1};
    fuzz_check(tgi_npy_load(path, 1u << 20, &desc, &values, &err), &err);
    tgi_free(values);
    err = (tgi_err){0};
    fuzz_check(tgi_npy_open(path, &in, &err), &err);
    tgi_npy_close(&in);
    as_image(path);
    fuzz_check_leaks();
    return 0;
}
