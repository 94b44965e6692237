/* bench_png.c - the rows of a PNG through our reader, which is libpng in an arena behind a ring
 * of rows that are checked first, and through a plain loop of libpng.
 *
 *     bench_png [--spare] [--rounds N] FILE...
 *
 * Every row is read once, in bands of 32, into one buffer: by our reader, and by libpng
 * (png_read_row, 16 bits turned to the machine's order). The two take turns; printed are
 * medians in MB/s of pixels, and what each takes of memory: ours as the plan has it (--spare:
 * as it has it when memory is short), libpng's as counted by its own hooks. Pixels must be
 * equal. Not for interlaced files. */
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "io/image.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 99, BAND = 32 };

static size_t held, most; /* of libpng */
static int spare;

static png_voidp take(png_structp png, png_alloc_size_t n)
{
    size_t *p = malloc(n + 16);
    (void)png;
    if (!p)
        return NULL;
    *p = n;
    held += n;
    most = held > most ? held : most;
    return (char *)p + 16;
}

static void give(png_structp png, png_voidp p)
{
    (void)png;
    if (!p)
        return;
    held -= *(size_t *)(void *)((char *)p - 16);
    free((char *)p - 16);
}

static void must(bool good, const char *path, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "bench_png: %s: %s\n", path, why);
    exit(1);
}

static uint32_t sum_of(uint32_t sum, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + p[i];
    return sum;
}

/* Bytes of pixels; *sum of them when it is asked for. */
static size_t by_us(const char *path, uint8_t *rows, uint32_t *sum, size_t *planned)
{
    const tgi_open_opts o = {.threads = 1, .spare = spare};
    tgi_err e = {0};
    tgi_source *s = NULL;
    must(tgi_source_open(path, &o, &s, &e) == TG_OK, path, e.text);
    const tgi_image_info *i = s->ops->info(s);
    const size_t pitch = (size_t)i->width * (size_t)i->samples * tgi_dtype_size(i->dtype);
    for (int64_t y = 0; y < i->height; y += BAND) {
        const int64_t end = tgi_min(i->height, y + BAND);
        must(s->ops->read(s, 0, 0, 0, i->samples, y, end, 0, i->width, rows, pitch,
                          TGI_INTERLEAVED, &e) == TG_OK,
             path, e.text);
        if (sum)
            *sum = sum_of(*sum, rows, (size_t)(end - y) * pitch);
    }
    const size_t bytes = pitch * (size_t)i->height;
    *planned = s->ops->codec_bytes(s);
    tgi_source_close(&s);
    return bytes;
}

static void by_libpng(const char *path, uint8_t *rows, uint32_t *sum)
{
    png_structp png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL, NULL, take, give);
    png_infop info = png_create_info_struct(png);
    FILE *f = fopen(path, "rb");
    must(f && !setjmp(png_jmpbuf(png)), path, "libpng does not read it");
    png_init_io(png, f);
    png_read_info(png, info);
    if (png_get_bit_depth(png, info) == 16)
        png_set_swap(png);
    png_read_update_info(png, info);
    const size_t pitch = png_get_rowbytes(png, info);
    for (uint32_t y = 0; y < png_get_image_height(png, info); y++) {
        png_read_row(png, rows + y % BAND * pitch, NULL);
        if (sum)
            *sum = sum_of(*sum, rows + y % BAND * pitch, pitch);
    }
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
    fclose(f);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench(const char *path, int rounds)
{
    static uint8_t rows[64 << 20];
    double seconds[2][MAX_ROUNDS];
    uint32_t sums[2] = {0};
    size_t planned = 0;
    const size_t bytes = by_us(path, rows, &sums[0], &planned);
    by_libpng(path, rows, &sums[1]);
    must(sums[0] == sums[1], path, "pixels differ");
    const int times = (int)tgi_clamp((int64_t)(2e7 / (double)bytes), 1, 1000);
    for (int r = 0; r < 2 * rounds; r++) {
        const double from = tgi_seconds();
        for (int k = 0; k < times; k++)
            if (r % 2)
                by_libpng(path, rows, NULL);
            else
                by_us(path, rows, NULL, &planned);
        seconds[r % 2][r / 2] = tgi_seconds() - from;
    }
    for (int k = 0; k < 2; k++)
        qsort(seconds[k], (size_t)rounds, sizeof(double), ascending);
    const double us = seconds[0][rounds / 2], them = seconds[1][rounds / 2];
    const char *name = strrchr(path, '/');
    printf("%-32s %8.1f %8.1f MB/s  %.2f  %8zu %8zu bytes\n", name ? name + 1 : path,
           (double)bytes * times / us / 1e6, (double)bytes * times / them / 1e6, them / us,
           planned, most);
}

int main(int n, char **words)
{
    int rounds = 11, i = 1;
    if (i < n && !strcmp(words[i], "--spare"))
        spare = i++;
    if (i + 1 < n && !strcmp(words[i], "--rounds")) {
        rounds = (int)tgi_clamp(atoi(words[i + 1]), 1, MAX_ROUNDS);
        i += 2;
    }
    printf("%-32s %8s %8s       ours over libpng's\n", "", "ours", "libpng");
    for (; i < n; i++)
        bench(words[i], rounds);
    return 0;
}
