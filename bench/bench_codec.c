/* bench_codec.c - blocks of a TIFF through our decoders and through libtiff's.
 *
 *     bench_codec [--rounds N] FILE...
 *
 * The packed blocks of the first page are in memory. A round decodes all of them, each into the
 * same place, with predictor and byte order undone, but bits left packed: once by our decoders,
 * once by libtiff (TIFFReadFromUserBuffer of one open handle). The two take turns; printed are
 * medians in MB/s of pixels, and our rate over libtiff's. Pixels must be equal. */
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "io/tiff_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

enum { MAX_ROUNDS = 99 };

typedef struct file {
    tgi_tiff_file t;
    tgi_tiff_page page;
    tgi_packing packing;
    tgi_form form;
    tgi_unpack *unpack;
    TIFF *tiff;
    uint8_t **packed;
    size_t *n;
    uint8_t *ours, *theirs, *tmp;
} file;

static void must(bool good, const char *path, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "bench_codec: %s: %s\n", path, why);
    exit(1);
}

static size_t stored_bytes(const file *f, uint64_t block)
{
    const tgi_tiff_page *p = &f->page;
    const uint64_t row = block / p->across % p->down * p->block_h;
    const uint64_t rows =
        p->tiled || row + p->block_h <= p->height ? p->block_h : p->height - row;
    return (size_t)rows * p->stored_row;
}

static void open_file(const char *path, file *f)
{
    tgi_err e = {0};
    uint8_t *tables = NULL;
    tgi_tiff_page *p = &f->page;
    must(tgi_rfile_open(path, &f->t.f, &e) == TG_OK, path, e.text);
    must(tgi_window_init(&f->t.win, 65536, &e) == TG_OK, path, e.text);
    must(tgi_tiff_header(&f->t, &e) == TG_OK, path, e.text);
    must(tgi_tiff_page_parse(&f->t, f->t.first_ifd, p, &e) == TG_OK, path, e.text);
    must(tgi_tiff_page_layout(p, f->t.f.size, &e) == TG_OK, path, e.text);
    must(tgi_packing_of(p, f->t.big_endian, &f->t.f, &f->packing, &tables, &e) == TG_OK, path,
         e.text);
    f->packing = tgi_packing_whole(&f->packing);
    f->form = tgi_form_of(p, f->t.big_endian);
    must(tgi_unpack_open(&f->packing, &f->unpack, &e) == TG_OK, path, e.text);
    f->packed = calloc(p->n_blocks, sizeof *f->packed);
    f->n = calloc(p->n_blocks, sizeof *f->n);
    f->ours = malloc(p->block_bytes);
    f->theirs = malloc(p->block_bytes);
    f->tmp = malloc(p->row_bytes);
    f->tiff = TIFFOpen(path, "r");
    must(f->packed && f->n && f->ours && f->theirs && f->tmp && f->tiff, path, "not opened");
    for (uint64_t i = 0; i < p->n_blocks; i++) {
        uint64_t at = 0, n = 0;
        must(tgi_tiff_value(&f->t, &f->t.win, &p->offsets, i, &at, &e) == TG_OK &&
                 tgi_tiff_value(&f->t, &f->t.win, &p->counts, i, &n, &e) == TG_OK,
             path, e.text);
        f->packed[i] = malloc((size_t)n);
        f->n[i] = (size_t)n;
        must(f->packed[i] && tgi_rfile_read(&f->t.f, at, f->packed[i], f->n[i], &e) == TG_OK,
             path, e.text);
    }
}

static void by_us(const char *path, const file *f, uint64_t block)
{
    tgi_err e = {0};
    const size_t want = stored_bytes(f, block);
    must(tgi_unpack_run(f->unpack, f->packed[block], f->n[block], f->ours, f->page.block_bytes,
                        want, &e) == TG_OK,
         path, e.text);
    if (!f->form.packed)
        tgi_form_block(&f->form, f->ours, want / f->page.stored_row, f->tmp);
}

static void by_libtiff(const char *path, const file *f, uint64_t block)
{
    must(TIFFReadFromUserBuffer(f->tiff, (uint32_t)block, f->packed[block],
                                (tmsize_t)f->n[block], f->theirs,
                                (tmsize_t)stored_bytes(f, block)) == 1,
         path, "libtiff does not decode it");
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench(const char *path, int rounds)
{
    file f = {.t = {.f = {.fd = -1}}};
    double seconds[2][MAX_ROUNDS], bytes = 0;
    open_file(path, &f);
    for (uint64_t i = 0; i < f.page.n_blocks; i++) {
        by_us(path, &f, i);
        by_libtiff(path, &f, i);
        /* the bits that fill a row's last byte mean nothing */
        must(f.page.width * f.page.bits % 8 ||
                 memcmp(f.ours, f.theirs, stored_bytes(&f, i)) == 0,
             path, "pixels differ");
        bytes += (double)stored_bytes(&f, i);
    }
    const int times = (int)tgi_clamp((int64_t)(2e7 / bytes), 1, 1000);
    for (int r = 0; r < 2 * rounds; r++) {
        const double from = tgi_seconds();
        for (int k = 0; k < times; k++)
            for (uint64_t i = 0; i < f.page.n_blocks; i++)
                (r % 2 ? by_libtiff : by_us)(path, &f, i);
        seconds[r % 2][r / 2] = tgi_seconds() - from;
    }
    for (int k = 0; k < 2; k++)
        qsort(seconds[k], (size_t)rounds, sizeof(double), ascending);
    const double us = seconds[0][rounds / 2], them = seconds[1][rounds / 2];
    const char *name = strrchr(path, '/');
    printf("%-44s %-8s %8.1f %8.1f MB/s  %.2f\n", name ? name + 1 : path,
           tgi_unpack_name(f.unpack), bytes * times / us / 1e6, bytes * times / them / 1e6,
           them / us);
    for (uint64_t i = 0; i < f.page.n_blocks; i++)
        free(f.packed[i]);
    free(f.packed);
    free(f.n);
    free(f.ours);
    free(f.theirs);
    free(f.tmp);
    TIFFClose(f.tiff);
    tgi_unpack_close(&f.unpack);
    tgi_window_free(&f.t.win);
    tgi_rfile_close(&f.t.f);
}

int main(int n, char **words)
{
    int rounds = 11, i = 1;
    if (n > 2 && !strcmp(words[1], "--rounds")) {
        rounds = (int)tgi_clamp(atoi(words[2]), 1, MAX_ROUNDS);
        i = 3;
    }
    printf("%-44s %-8s %8s %8s       ours over libtiff's\n", "", "", "ours", "libtiff");
    for (; i < n; i++)
        bench(words[i], rounds);
    return 0;
}
