/* libFuzzer target: any bytes, opened as a TIFF and read, end in a status. The reader works on
 * files, so the bytes go to an anonymous one. */
#include "engine/base/arith.h"
#include "io/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_some(tg_source *s, tgi_err *err)
{
    const tg_image_info *i = s->ops->info(s);
    const size_t row = (size_t)tgi_min(i->width, 512) * tgi_dtype_size(i->dtype);
    const int samples = (int)tgi_min(i->samples, 8);
    const int64_t rows = tgi_min(i->height, 16);
    uint8_t *buf = malloc(row * (size_t)rows * (size_t)samples);
    for (int64_t p = 0; p < tgi_min(i->n_planes, 3); p++)
        for (int64_t y = 0; y < tgi_min(i->height, 200); y += rows)
            (void)s->ops->read(s, 0, p, 0, samples, y, tgi_min(i->height, y + rows), 0,
                               tgi_min(i->width, 512), buf, row, row * (size_t)rows, err);
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[64];
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const tg_open_opts o = {.threads = 1,
                            .level = n & 1,
                            .io = n & 2 ? TG_IO_MAP : TG_IO_READ,
                            .decode_budget = 16u << 20};
    tgi_err err = {0};
    tg_source *s = NULL;
    if (tgi_source_open(path, &o, &s, &err) == TG_OK)
        read_some(s, &err);
    tgi_source_close(&s);
    close(fd);
    return 0;
}
