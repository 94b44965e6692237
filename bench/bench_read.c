/* bench_read.c - the pixels of a file through its reader, warm and cold; and of arrays what a
 * mapping would give.
 *
 *     bench_read [--rounds N] [--rows N] [--columns N] FILE...
 *
 * Every row of every plane is read once, by one thread, in bands of --rows and strips of
 * --columns (0: the whole width), into one buffer, as a run does. Beside it stands, for .npy
 * files, the same copy out of a mapping of the whole file: the least that a reader which maps
 * does. Cold: the file's pages are dropped from the page cache first (posix_fadvise), which
 * needs a filesystem on a disk. The two take turns; printed are medians in MB/s of pixels. */
#include "engine/base/mem.h"
#include "io/image.h"
#include "io/npy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 99 };

typedef struct shape {
    int64_t rows, columns;
} shape;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(tg_status st, const tgi_err *e)
{
    if (st == TG_OK)
        return;
    fprintf(stderr, "bench_read: %s\n", e->text);
    exit(1);
}

static void make_cold(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

typedef struct image {
    tgi_source *source;
    const tgi_image_info *info;
    const char *map; /* of an array: its first element; or NULL */
    void *base;
    size_t mapped;
} image;

static void open_image(const char *path, image *m)
{
    tgi_err e = {0};
    tgi_npy_in in;
    const tgi_open_opts o = {.threads = 1};
    *m = (image){0};
    must(tgi_source_open(path, &o, &m->source, &e), &e);
    m->info = m->source->ops->info(m->source);
    if (strcmp(m->info->format, "npy") != 0)
        return;
    must(tgi_npy_open(path, &in, &e), &e);
    m->mapped = (size_t)in.file.size;
    m->base = mmap(NULL, m->mapped, PROT_READ, MAP_SHARED, in.file.fd, 0);
    m->map = m->base == MAP_FAILED ? NULL : (const char *)m->base + in.head.data_off;
    tgi_npy_close(&in);
}

static void close_image(image *m)
{
    if (m->map)
        munmap(m->base, m->mapped);
    tgi_source_close(&m->source);
}

/* Rows [y,y1) x columns [x,x1) of a plane. */
static void copy_box(const image *m, int mapped, int64_t p, int64_t y, int64_t y1, int64_t x,
                     int64_t x1, char *dst, size_t pitch)
{
    const tgi_image_info *i = m->info;
    const size_t size = tgi_dtype_size(i->dtype);
    tgi_err e = {0};
    if (!mapped) {
        must(tgi_source_read(m->source, 0, p, 0, i->samples, y, y1, x, x1, dst, pitch,
                             pitch * (size_t)(y1 - y), &e),
             &e);
        return;
    }
    for (int64_t r = y; r < y1; r++)
        memcpy(dst + (size_t)(r - y) * pitch,
               m->map + (size_t)((p * i->height + r) * i->width + x) * size,
               (size_t)(x1 - x) * size);
}

/* Seconds for all pixels, the file opened anew; their bytes in *bytes. < 0: not to be had. */
static double pass(const char *path, int mapped, shape s, uint64_t *bytes)
{
    image m;
    open_image(path, &m);
    const tgi_image_info *i = m.info;
    const int64_t w = s.columns && s.columns < i->width ? s.columns : i->width;
    const size_t pitch = (size_t)w * tgi_dtype_size(i->dtype);
    const size_t room = (size_t)s.rows * pitch * (size_t)i->samples;
    char *dst = malloc(room);
    const int can = !mapped || (m.map && i->samples == 1);
    memset(dst, 1, room);
    const double t0 = now();
    for (int64_t p = 0; can && p < i->n_planes; p++)
        for (int64_t x = 0; x < i->width; x += w)
            for (int64_t y = 0; y < i->height; y += s.rows)
                copy_box(&m, mapped, p, y, y + s.rows < i->height ? y + s.rows : i->height, x,
                         x + w < i->width ? x + w : i->width, dst, pitch);
    const double took = can ? now() - t0 : -1;
    *bytes = (uint64_t)i->n_planes * (uint64_t)i->width * (uint64_t)i->height *
             (uint64_t)i->samples * tgi_dtype_size(i->dtype);
    free(dst);
    close_image(&m);
    return took;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *path, shape s, int rounds)
{
    double t[2][2][MAX_ROUNDS];
    uint64_t bytes = 0;
    for (int r = 0; r < rounds; r++)
        for (int mapped = 0; mapped < 2; mapped++) {
            make_cold(path);
            t[1][mapped][r] = pass(path, mapped, s, &bytes);
            t[0][mapped][r] = pass(path, mapped, s, &bytes);
        }
    for (int cold = 0; cold < 2; cold++) {
        for (int mapped = 0; mapped < 2; mapped++)
            qsort(t[cold][mapped], (size_t)rounds, sizeof(double), by_size);
        const double read = t[cold][0][rounds / 2], map = t[cold][1][rounds / 2];
        const char *slash = strrchr(path, '/');
        printf("%-24s %5lld %6lld  %s  read %6.0f MB/s", slash ? slash + 1 : path,
               (long long)s.rows, (long long)s.columns, cold ? "cold" : "warm",
               (double)bytes / read / 1e6);
        if (map > 0)
            printf("  mapped %6.0f  read/mapped %.2f", (double)bytes / map / 1e6, map / read);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    shape s = {32, 0};
    int rounds = 5;
    printf("%-24s %5s %6s\n", "file", "rows", "columns");
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--rows") == 0)
            s.rows = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--columns") == 0)
            s.columns = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[++i]);
        else
            measure(argv[i], s, rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds);
    }
    return 0;
}
