/* fuzz_tiff.c - any bytes, opened as a TIFF and read: directories, index, series, strips,
 * tiles, codecs. The reader works on files, so the bytes go to an anonymous one; what varies
 * beside them (level, mapping, threads, budget) follows from the last byte, which a TIFF does
 * not use. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/fuzz/fuzz_target.h"

#define WIDE 512
#define ROWS 16

static void read_some(tg_source *s)
{
    static uint8_t buf[WIDE * 8 * ROWS * 8];
    const tg_image_info *i = s->ops->info(s);
    const int64_t width = tgi_min(i->width, WIDE);
    const size_t row = (size_t)width * tgi_dtype_size(i->dtype);
    const int samples = (int)tgi_min(i->samples, 8);
    for (int64_t p = 0; p < tgi_min(i->n_planes, 3); p++)
        for (int64_t y = 0; y < tgi_min(i->height, 200); y += ROWS) {
            tgi_err err = {0};
            fuzz_check(s->ops->read(s, 0, p, 0, samples, y, tgi_min(i->height, y + ROWS),
                                    i->width - width, i->width, buf, row, row * ROWS, &err),
                       &err);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    const int fd = fuzz_file(data, n, path);
    const unsigned how = n ? data[n - 1] : 0;
    const tg_open_opts o = {.threads = how & 8 ? 2 : 1,
                            .level = how & 1,
                            .io = how & 2 ? TG_IO_MAP : TG_IO_READ,
                            .decode_budget = how & 4 ? 64u << 10 : 16u << 20};
    tgi_err err = {0};
    tg_source *s = NULL;
    const tg_status st = tgi_source_open(path, &o, &s, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        read_some(s);
    tgi_source_close(&s);
    close(fd);
    fuzz_check_leaks();
    return 0;
}
