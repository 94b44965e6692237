/* draw_demo.c - tegula-draw: a large synthetic microscope image for `make demo`, and what it
 * takes to judge a result.
 *
 *     tegula-draw [--size N] [--seed S] [--photons P] NOISY.tif CLEAN.tif
 *     tegula-draw --psnr CLEAN.tif A.tif ...
 *
 * The scene is a list of nuclei, filaments and beads; bands of rows are painted from it one
 * after the other, so memory does not grow with the image. The camera counts Poisson photons,
 * adds Gaussian read noise, gain and offset. CLEAN holds what a noiseless camera would give.
 * All numbers follow from the seed; noise is seeded per row. Files are uncompressed BigTIFF
 * strips (source: the BigTIFF design page), read back through tegula's own reader.
 *
 * Sources: Poisson by multiplication (Knuth, TAOCP 2, 3.4.1), in parts of at most 16; normal
 * deviates by Box and Muller; splitmix64 (Vigna). */
#include "io/image.h"

#include "engine/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAND 128       /* rows painted together; also rows of a strip */
#define OFFSET 100.0   /* counts in the dark */
#define GAIN 8.0       /* counts per photon */
#define READ_NOISE 1.5 /* photons */
#define OUTLINE 128    /* directions in which a nucleus' radius is known */
#define TWO_PI 6.283185307179586

/* ---- Random numbers ---------------------------------------------------------------------- */

typedef struct rng {
    uint64_t state;
    double spare;
    int has_spare;
} rng;

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static rng seeded(uint64_t seed, uint64_t stream)
{
    return (rng){.state = mix(seed ^ mix(stream))};
}

static double unit(rng *r) /* (0,1) */
{
    r->state += 0x9e3779b97f4a7c15ull;
    return ((double)(mix(r->state) >> 11) + 0.5) / 9007199254740992.0;
}

static double between(rng *r, double lo, double hi)
{
    return lo + (hi - lo) * unit(r);
}

static double normal(rng *r)
{
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    const double m = sqrt(-2.0 * log(unit(r))), a = TWO_PI * unit(r);
    r->spare = m * sin(a);
    r->has_spare = 1;
    return m * cos(a);
}

static int poisson(rng *r, double mean)
{
    int n = 0;
    for (double left = mean; left > 0; left -= 16.0) {
        const double stop = exp(-(left < 16.0 ? left : 16.0));
        for (double p = unit(r); p > stop; p *= unit(r))
            n++;
    }
    return n;
}

/* Smooth field in [0,1] that varies over `cell` pixels: lattice noise, cubic between points. */
static float field(uint64_t seed, double y, double x, double cell)
{
    const double fy = y / cell + 4096.0, fx = x / cell + 4096.0;
    const int64_t iy = (int64_t)fy, ix = (int64_t)fx;
    double ty = fy - (double)iy, tx = fx - (double)ix, v[4];
    ty = ty * ty * (3 - 2 * ty);
    tx = tx * tx * (3 - 2 * tx);
    for (int k = 0; k < 4; k++) {
        const uint64_t at = (uint64_t)(iy + k / 2) << 32 | (uint64_t)(uint32_t)(ix + k % 2);
        v[k] = (double)(mix(seed ^ mix(at)) >> 40) / 16777216.0;
    }
    const double a = v[0] + (v[1] - v[0]) * tx, b = v[2] + (v[3] - v[2]) * tx;
    return (float)(a + (b - a) * ty);
}

/* ---- The scene --------------------------------------------------------------------------- */

typedef struct nucleus {
    float y, x, reach, value, edge, turn, stretch;
    float radius[OUTLINE];
} nucleus;

typedef struct dot { /* a bead, or one step of a filament */
    float y, x, value, sigma;
} dot;

typedef struct scene {
    uint64_t seed;
    int64_t size;
    nucleus *nuclei;
    size_t n_nuclei;
    dot *dots;
    size_t n_dots, cap_dots;
} scene;

/* Where tissue is: nuclei and filaments gather there. */
static float tissue(const scene *s, double y, double x)
{
    return 0.7f * field(s->seed + 1, y, x, 900) + 0.3f * field(s->seed + 2, y, x, 260);
}

static void add_nucleus(scene *s, rng *r, double y, double x)
{
    nucleus *n = &s->nuclei[s->n_nuclei++];
    const double radius = between(r, 11, 24);
    double wave[5], phase[5], most = 0;
    for (int k = 0; k < 5; k++) {
        wave[k] = radius * 0.1 * normal(r) / (k + 2);
        phase[k] = between(r, 0, TWO_PI);
    }
    for (int i = 0; i < OUTLINE; i++) {
        double v = radius;
        for (int k = 0; k < 5; k++)
            v += wave[k] * cos((k + 2) * TWO_PI * i / OUTLINE + phase[k]);
        n->radius[i] = (float)v;
        most = v > most ? v : most;
    }
    n->y = (float)y;
    n->x = (float)x;
    n->edge = (float)between(r, 0.8, 1.8);
    n->reach = (float)most + 6 * n->edge;
    n->value = (float)between(r, 0.3, 0.95);
    n->turn = (float)between(r, 0, TWO_PI / 2);
    n->stretch = (float)between(r, 0.72, 1.0);
}

static int add_dot(scene *s, double y, double x, double value, double sigma)
{
    if (s->n_dots == s->cap_dots) {
        const size_t cap = s->cap_dots ? 2 * s->cap_dots : 1 << 16;
        dot *d = realloc(s->dots, cap * sizeof *d);
        if (!d)
            return 0;
        s->dots = d;
        s->cap_dots = cap;
    }
    s->dots[s->n_dots++] = (dot){(float)y, (float)x, (float)value, (float)sigma};
    return 1;
}

/* A bent path of one-pixel steps; neighbours overlap, so its crest is `value`. */
static int add_filament(scene *s, rng *r)
{
    const double size = (double)s->size, sigma = between(r, 1.0, 1.5);
    const double value = between(r, 0.25, 0.8) / (sigma * 2.5066);
    double y = between(r, 0, size), x = between(r, 0, size), heading = between(r, 0, TWO_PI);
    double bend = 0;
    const int steps = (int)between(r, 150, 900);
    for (int i = 0; i < steps; i++) {
        bend = 0.97 * bend + 0.004 * normal(r);
        heading += bend;
        y += sin(heading);
        x += cos(heading);
        if (y > -8 && x > -8 && y < size + 8 && x < size + 8 && tissue(s, y, x) > 0.38f &&
            !add_dot(s, y, x, value, sigma))
            return 0;
    }
    return 1;
}

static int by_row(const void *a, const void *b)
{
    const float x = ((const dot *)a)->y, y = ((const dot *)b)->y;
    return (x > y) - (x < y);
}

static int make_scene(scene *s, uint64_t seed, int64_t size)
{
    rng r = seeded(seed, 0);
    const double area = (double)size * (double)size;
    const size_t tries = (size_t)(area / 2200.0) + 8;
    const int filaments = (int)(area / 26000.0) + 4, beads = (int)(area / 9000.0) + 8;
    *s = (scene){.seed = seed, .size = size};
    s->nuclei = malloc(tries * sizeof *s->nuclei);
    if (!s->nuclei)
        return 0;
    for (size_t i = 0; i < tries; i++) {
        const double y = between(&r, -10, (double)size + 10),
                     x = between(&r, -10, (double)size + 10);
        if (tissue(s, y, x) > 0.46f + 0.12f * (float)unit(&r))
            add_nucleus(s, &r, y, x);
    }
    for (int i = 0; i < filaments; i++)
        if (!add_filament(s, &r))
            return 0;
    for (int i = 0; i < beads; i++)
        if (!add_dot(s, between(&r, 0, (double)size), between(&r, 0, (double)size),
                     0.25 + 0.75 * pow(unit(&r), 2), between(&r, 1.1, 1.7)))
            return 0;
    qsort(s->dots, s->n_dots, sizeof *s->dots, by_row);
    return 1;
}

/* ---- Painting ---------------------------------------------------------------------------- */

typedef struct band {
    int64_t y0, rows, size;
    float *v; /* rows x size, photons relative to the brightest */
} band;

static void paint_nucleus(const band *b, const nucleus *n, uint64_t seed)
{
    const int64_t ya = (int64_t)fmax(floor(n->y - n->reach), (double)b->y0);
    const int64_t yb = (int64_t)fmin(ceil(n->y + n->reach), (double)(b->y0 + b->rows - 1));
    const int64_t xa = (int64_t)fmax(floor(n->x - n->reach), 0);
    const int64_t xb = (int64_t)fmin(ceil(n->x + n->reach), (double)(b->size - 1));
    const float c = cosf(n->turn), s = sinf(n->turn);
    for (int64_t y = ya; y <= yb; y++)
        for (int64_t x = xa; x <= xb; x++) {
            const float dy = (float)y - n->y, dx = (float)x - n->x;
            const float u = dy * c + dx * s, w = (dx * c - dy * s) / n->stretch;
            const float at = (atan2f(u, w) / (float)TWO_PI + 1.0f) * OUTLINE;
            const int i = (int)at;
            const float t = at - (float)i, ra = n->radius[i % OUTLINE];
            const float rad = ra + (n->radius[(i + 1) % OUTLINE] - ra) * t;
            const float d = (rad - sqrtf(u * u + w * w)) / n->edge;
            if (d < -5.0f)
                continue;
            const float inside = 1.0f / (1.0f + expf(-2.0f * d));
            const float fine = field(seed + 3, (double)y, (double)x, 4.5);
            const float coarse = field(seed + 4, (double)y, (double)x, 13);
            b->v[(y - b->y0) * b->size + x] +=
                n->value * inside * (0.55f + 0.35f * fine + 0.4f * coarse);
        }
}

static void paint_dot(const band *b, const dot *d)
{
    enum { REACH = 6 };
    float gx[2 * REACH + 1];
    const int64_t cy = (int64_t)floorf(d->y), cx = (int64_t)floorf(d->x);
    const float k = -0.5f / (d->sigma * d->sigma);
    for (int i = -REACH; i <= REACH; i++) {
        const float e = (float)(cx + i) - d->x;
        gx[i + REACH] = expf(k * e * e);
    }
    for (int64_t y = cy - REACH; y <= cy + REACH; y++) {
        if (y < b->y0 || y >= b->y0 + b->rows)
            continue;
        const float e = (float)y - d->y, g = d->value * expf(k * e * e);
        for (int i = -REACH; i <= REACH; i++)
            if (cx + i >= 0 && cx + i < b->size)
                b->v[(y - b->y0) * b->size + cx + i] += g * gx[i + REACH];
    }
}

static void paint_haze(const band *b, const scene *s)
{
    for (int64_t y = 0; y < b->rows; y++)
        for (int64_t x = 0; x < b->size; x += 4) { /* smooth: every fourth pixel is enough */
            const double gy = (double)(b->y0 + y), gx = (double)x;
            const float t = tissue(s, gy, gx);
            const float v = 0.03f + 0.05f * field(s->seed + 5, gy, gx, 1500) + 0.16f * t * t;
            for (int64_t i = x; i < x + 4 && i < b->size; i++)
                b->v[y * b->size + i] = v;
        }
}

static void paint(const band *b, const scene *s)
{
    paint_haze(b, s);
    const float top = (float)b->y0, end = (float)(b->y0 + b->rows);
    for (size_t i = 0; i < s->n_nuclei; i++)
        if (s->nuclei[i].y + s->nuclei[i].reach >= top &&
            s->nuclei[i].y - s->nuclei[i].reach < end)
            paint_nucleus(b, &s->nuclei[i], s->seed);
    for (size_t i = 0; i < s->n_dots; i++)
        if (s->dots[i].y > top - 8 && s->dots[i].y < end + 8)
            paint_dot(b, &s->dots[i]);
}

static uint16_t counts(double photons)
{
    const double v = rint(photons * GAIN + OFFSET);
    return v <= 0 ? 0 : v >= 65535 ? 65535 : (uint16_t)v;
}

/* ---- BigTIFF ----------------------------------------------------------------------------- */

/* [16-byte header | rows ... | directory | strip offsets | strip byte counts], little-endian;
 * host order is little-endian on every machine tegula has kernels for. */
static int put(FILE *f, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        if (fputc((int)(v >> (8 * i) & 255), f) == EOF)
            return 0;
    return 1;
}

static int put_tag(FILE *f, int tag, int type, uint64_t count, uint64_t value)
{
    return put(f, (uint64_t)tag, 2) && put(f, (uint64_t)type, 2) && put(f, count, 8) &&
           put(f, value, 8);
}

static FILE *tiff_begin(const char *path, int64_t size)
{
    FILE *f = fopen(path, "wb");
    const uint64_t directory = 16 + 2 * (uint64_t)size * (uint64_t)size;
    if (f && fwrite("II\x2b\0\x08\0\0\0", 1, 8, f) == 8 && put(f, directory, 8))
        return f;
    if (f)
        fclose(f);
    return NULL;
}

static int tiff_end(FILE *f, int64_t size)
{
    enum { SHORT = 3, LONG8 = 16, TAGS = 9 };
    const uint64_t n = (uint64_t)size, strips = (n + BAND - 1) / BAND;
    const uint64_t lists = 16 + 2 * n * n + 8 + TAGS * 20 + 8;
    int ok = put(f, TAGS, 8) && put_tag(f, 256, LONG8, 1, n) && put_tag(f, 257, LONG8, 1, n) &&
             put_tag(f, 258, SHORT, 1, 16) && put_tag(f, 259, SHORT, 1, 1) &&
             put_tag(f, 262, SHORT, 1, 1) &&
             put_tag(f, 273, LONG8, strips, strips == 1 ? 16 : lists) &&
             put_tag(f, 277, SHORT, 1, 1) && put_tag(f, 278, SHORT, 1, BAND) &&
             put_tag(f, 279, LONG8, strips, strips == 1 ? 2 * n * n : lists + 8 * strips) &&
             put(f, 0, 8);
    for (uint64_t i = 0; ok && strips > 1 && i < strips; i++)
        ok = put(f, 16 + i * BAND * n * 2, 8);
    for (uint64_t i = 0; ok && strips > 1 && i < strips; i++)
        ok = put(f, (i + 1 < strips ? BAND : n - i * BAND) * n * 2, 8);
    return fclose(f) == 0 && ok;
}

/* ---- Draw -------------------------------------------------------------------------------- */

static int expose(const band *b, double photons, uint64_t seed, uint16_t *row, FILE *noisy,
                  FILE *clean)
{
    for (int64_t y = 0; y < b->rows; y++) {
        const float *v = b->v + y * b->size;
        rng r = seeded(seed, 1000 + (uint64_t)(b->y0 + y));
        for (int64_t x = 0; x < b->size; x++)
            row[x] = counts(v[x] * photons);
        if (fwrite(row, 2, (size_t)b->size, clean) != (size_t)b->size)
            return 0;
        for (int64_t x = 0; x < b->size; x++)
            row[x] = counts(poisson(&r, v[x] * photons) + READ_NOISE * normal(&r));
        if (fwrite(row, 2, (size_t)b->size, noisy) != (size_t)b->size)
            return 0;
    }
    return 1;
}

static int draw(int64_t size, uint64_t seed, double photons, const char *noisy_path,
                const char *clean_path)
{
    scene s = {0};
    band b = {.size = size, .v = malloc((size_t)(BAND * size) * sizeof *b.v)};
    uint16_t *row = malloc((size_t)size * sizeof *row);
    FILE *noisy = tiff_begin(noisy_path, size), *clean = tiff_begin(clean_path, size);
    int ok = b.v && row && noisy && clean && make_scene(&s, seed, size);
    for (; ok && b.y0 < size; b.y0 += BAND) {
        b.rows = size - b.y0 < BAND ? size - b.y0 : BAND;
        paint(&b, &s);
        ok = expose(&b, photons, seed, row, noisy, clean);
    }
    if (noisy)
        ok = tiff_end(noisy, size) && ok;
    if (clean)
        ok = tiff_end(clean, size) && ok;
    if (!ok)
        fprintf(stderr, "tegula-draw: %s, %s: %s\n", noisy_path, clean_path, strerror(errno));
    free(s.nuclei);
    free(s.dots);
    free(b.v);
    free(row);
    return ok ? 0 : 1;
}

/* ---- Judge ------------------------------------------------------------------------------- */

static int read_rows(tgi_source *s, int64_t y0, int64_t y1, void *rows, size_t pitch)
{
    tgi_err err = {0};
    const int64_t w = s->ops->info(s)->width;
    if (s->ops->read(s, 0, 0, 0, 1, y0, y1, 0, w, rows, pitch, 0, &err) == TG_OK)
        return 1;
    fprintf(stderr, "tegula-draw: %s\n", err.text);
    return 0;
}

static tgi_source *open_image(const char *path)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts o = {.threads = 1};
    if (tgi_source_open(path, &o, &s, &err) != TG_OK) {
        fprintf(stderr, "tegula-draw: %s\n", err.text);
        return NULL;
    }
    if (s->ops->info(s)->dtype != TG_DTYPE_U16) {
        fprintf(stderr, "tegula-draw: %s is not 16 bit\n", path);
        tgi_source_close(&s);
    }
    return s;
}

/* Peak signal-to-noise ratio in dB; the peak is the span of the clean image. */
static int psnr(tgi_source *clean, const char *path)
{
    const tgi_image_info *i = clean->ops->info(clean);
    tgi_source *s = open_image(path);
    uint16_t *a = malloc((size_t)(BAND * i->width) * 4), *b = a + BAND * i->width;
    double squares = 0, lo = 65535, hi = 0;
    int ok = s && a;
    if (ok && (s->ops->info(s)->width != i->width || s->ops->info(s)->height != i->height)) {
        fprintf(stderr, "tegula-draw: %s has another size than the clean image\n", path);
        ok = 0;
    }
    for (int64_t y = 0; ok && y < i->height; y += BAND) {
        const int64_t y1 = y + BAND < i->height ? y + BAND : i->height;
        ok = read_rows(clean, y, y1, a, (size_t)i->width * 2) &&
             read_rows(s, y, y1, b, (size_t)i->width * 2);
        for (int64_t k = 0; ok && k < (y1 - y) * i->width; k++) {
            const double d = (double)b[k] - a[k];
            squares += d * d;
            lo = a[k] < lo ? a[k] : lo;
            hi = a[k] > hi ? a[k] : hi;
        }
    }
    const double mean = squares / ((double)i->width * (double)i->height);
    if (ok)
        printf("%.2f %s\n", 10 * log10((hi - lo) * (hi - lo) / mean), path);
    free(a);
    if (s)
        tgi_source_close(&s);
    return ok ? 0 : 1;
}

static int usage(void)
{
    fputs("usage: tegula-draw [--size N] [--seed S] [--photons P] NOISY.tif CLEAN.tif\n"
          "       tegula-draw --psnr CLEAN.tif A.tif ...\n",
          stderr);
    return 2;
}

static int judge(int n, char **path)
{
    tgi_source *clean = open_image(path[0]);
    int rc = clean ? 0 : 1;
    for (int i = 1; i < n && rc == 0; i++)
        rc = psnr(clean, path[i]);
    if (clean)
        tgi_source_close(&clean);
    return rc;
}

int main(int argc, char **argv)
{
    double size = 8192, seed = 7, photons = 16;
    int i = 1;
    if (argc >= 4 && strcmp(argv[1], "--psnr") == 0)
        return judge(argc - 2, argv + 2);
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        double *to = strcmp(argv[i], "--size") == 0      ? &size
                     : strcmp(argv[i], "--seed") == 0    ? &seed
                     : strcmp(argv[i], "--photons") == 0 ? &photons
                                                         : NULL;
        char *end;
        if (!to)
            return usage();
        *to = strtod(argv[i + 1], &end);
        if (*end || !(*to >= 1) || *to > 1e6)
            return usage();
    }
    if (argc - i != 2)
        return usage();
    return draw((int64_t)size, (uint64_t)seed, photons, argv[i], argv[i + 1]);
}
