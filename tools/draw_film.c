/* draw_film.c - tegula-draw-film: a drawn film in which something moves in front of a background that is known, and what it
 * takes to judge who removes it.
 *
 *     tegula-draw-film [--size WxH] [--frames N] [--seed S] [--noise SIGMA] FILM.y4m MASK.y4m BACKGROUND.y4m
 *     tegula-draw-film --psnr [the same options] A.y4m ...      of what the film hides and shows within 40 frames
 *     tegula-draw-film --median FILM.y4m MASK.y4m OUT.y4m       a baseline: the median of what other frames have there
 *
 * The background is a plane of smooth noise, discs, bars and rings; the camera moves over it, 1 to 8 pixels a frame, turns and
 * zooms a little. Something with a pattern of its own crosses the picture. All numbers follow from the seed. FILM has
 * noise, BACKGROUND has none. Films are YUV4MPEG2 with 4:4:4, read back as the tool writes them and no other.
 *
 * Sources: splitmix64 (Vigna); normal deviates by Box and Muller; ITU-R BT.601 (Y, U, V in limited range). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REACH 40
#define TWO_PI 6.283185307179586

typedef struct scene {
    int width, height, frames;
    uint64_t seed;
    double noise;
    double speed[2], turn, zoom; /* of the camera, each frame */
    double sway[2];              /* it does not go straight: pixels, and turns a frame */
    double at[2], going[2];      /* of the thing, in the picture */
    double radius;
    int corners; /* its outline waves so often */
} scene;

/* ---- Random numbers ---------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static double unit_of(uint64_t z)
{
    return ((double)(mix(z) >> 11) + 0.5) / 9007199254740992.0;
}

static double between(uint64_t *state, double lo, double hi)
{
    *state += 0x9e3779b97f4a7c15ull;
    return lo + (hi - lo) * unit_of(*state);
}

/* ---- The background ---------------------------------------------------------------------- */

static double knot(uint64_t seed, int64_t y, int64_t x)
{
    return unit_of(seed ^ mix((uint64_t)y * 0x100000001b3ull) ^ (uint64_t)x);
}

static double smooth(double t)
{
    return t * t * t * (t * (t * 6 - 15) + 10);
}

/* Noise of that size, 0 to 1. */
static double field(uint64_t seed, double y, double x, double cell)
{
    const double v = floor(y / cell), u = floor(x / cell);
    const double t = smooth(y / cell - v), s = smooth(x / cell - u);
    const int64_t i = (int64_t)v, j = (int64_t)u;
    const double top = knot(seed, i, j) * (1 - s) + knot(seed, i, j + 1) * s,
                 low = knot(seed, i + 1, j) * (1 - s) + knot(seed, i + 1, j + 1) * s;
    return top * (1 - t) + low * t;
}

/* 1 inside, 0 outside, over two pixels. */
static double edge(double inside)
{
    return inside > 1 ? 1 : inside < -1 ? 0 : smooth((inside + 1) / 2);
}

/* One drawn thing in each cell of 56 pixels: a disc, a bar or a ring. */
static void draw_shape(const scene *s, int64_t i, int64_t j, double y, double x, double rgb[3])
{
    uint64_t r = mix(s->seed ^ 0x51ab ^ mix((uint64_t)i * 7919 + (uint64_t)j * 104729));
    const double cell = 56, cy = ((double)i + between(&r, 0.3, 0.7)) * cell,
                 cx = ((double)j + between(&r, 0.3, 0.7)) * cell;
    const double size = between(&r, 6, 18), turn = between(&r, 0, TWO_PI),
                 kind = between(&r, 0, 3);
    const double dy = y - cy, dx = x - cx, far = hypot(dy, dx);
    const double along = dx * cos(turn) + dy * sin(turn),
                 across = dy * cos(turn) - dx * sin(turn);
    double in = kind < 1   ? size - far
                : kind < 2 ? fmin(1.4 * size - fabs(along), 3 - fabs(across))
                           : 2.5 - fabs(far - size);
    const double share = 0.8 * edge(in);
    for (int c = 0; c < 3; c++)
        rgb[c] += share * (between(&r, 0, 1) - rgb[c]);
}

static void background(const scene *s, double y, double x, double rgb[3])
{
    for (int c = 0; c < 3; c++) {
        const uint64_t seed = s->seed * 31 + (uint64_t)c;
        rgb[c] = 0.5 * field(seed, y, x, 61) + 0.3 * field(seed ^ 0x77, y, x, 17) +
                 0.2 * field(s->seed ^ 0x1234, y, x, 5);
    }
    const int64_t i = (int64_t)floor(y / 56), j = (int64_t)floor(x / 56);
    for (int64_t v = i - 1; v <= i + 1; v++)
        for (int64_t u = j - 1; u <= j + 1; u++)
            draw_shape(s, v, u, y, x, rgb);
}

/* Where pixel (y, x) of frame t lies on the background; and back. */
static void to_world(const scene *s, double t, double y, double x, double *v, double *u)
{
    const double z = exp(s->zoom * t), a = s->turn * t;
    const double dy = (y - s->height / 2.0) * z, dx = (x - s->width / 2.0) * z;
    const double sway = s->sway[0] * sin(TWO_PI * s->sway[1] * t);
    *u = dx * cos(a) - dy * sin(a) + s->speed[1] * t + sway;
    *v = dx * sin(a) + dy * cos(a) + s->speed[0] * t + sway / 2;
}

static void to_picture(const scene *s, double t, double v, double u, double *y, double *x)
{
    const double z = exp(-s->zoom * t), a = -s->turn * t;
    const double sway = s->sway[0] * sin(TWO_PI * s->sway[1] * t);
    const double du = u - s->speed[1] * t - sway, dv = v - s->speed[0] * t - sway / 2;
    *x = (du * cos(a) - dv * sin(a)) * z + s->width / 2.0;
    *y = (du * sin(a) + dv * cos(a)) * z + s->height / 2.0;
}

/* ---- What is in front -------------------------------------------------------------------- */

/* Goes to and fro between the borders. */
static double bounce(double at, double lo, double hi)
{
    const double n = hi - lo, k = fmod(fmod(at - lo, 2 * n) + 2 * n, 2 * n);
    return lo + (k < n ? k : 2 * n - k);
}

/* Pixels inside its outline; below 0 outside. */
static double inside(const scene *s, double t, double y, double x, double *oy, double *ox)
{
    *oy = y - bounce(s->at[0] + s->going[0] * t, s->radius, s->height - s->radius);
    *ox = x - bounce(s->at[1] + s->going[1] * t, s->radius, s->width - s->radius);
    const double turn = atan2(*oy, *ox) + 0.05 * t;
    return s->radius * (0.85 + 0.15 * sin(s->corners * turn)) - hypot(*oy, *ox);
}

static int is_hidden(const scene *s, double t, double y, double x)
{
    double oy, ox;
    return inside(s, t, y, x, &oy, &ox) > -1.5;
}

static void thing(const scene *s, double y, double x, double rgb[3])
{
    const double stripe = 0.5 + 0.5 * sin((x + y) / 3);
    for (int c = 0; c < 3; c++)
        rgb[c] = 0.2 + 0.6 * (c == (int)(s->seed % 3) ? stripe : 1 - stripe) *
                           field(s->seed ^ 0xbeef, y, x, 9);
}

static scene make_scene(int width, int height, int frames, uint64_t seed, double noise)
{
    scene s = {
        .width = width, .height = height, .frames = frames, .seed = seed, .noise = noise};
    uint64_t r = mix(seed ^ 0xcafe);
    const double speed = between(&r, 1, 8), way = between(&r, 0, TWO_PI);
    s.speed[0] = 0.5 * speed * sin(way);
    s.speed[1] = speed * (cos(way) < 0 ? -1 : 1) * sqrt(1 - 0.25 * sin(way) * sin(way));
    s.turn = between(&r, -0.001, 0.001);
    s.zoom = between(&r, -0.001, 0.001);
    s.sway[0] = between(&r, 0, 3);
    s.sway[1] = between(&r, 0.01, 0.04);
    s.radius = height * between(&r, 0.10, 0.16);
    s.at[0] = height * between(&r, 0.3, 0.7);
    s.at[1] = width * between(&r, 0.3, 0.7);
    s.going[0] = between(&r, -0.8, 0.8);
    s.going[1] = between(&r, -2, 2);
    s.corners = (int)between(&r, 2, 7);
    return s;
}

/* ---- Films ------------------------------------------------------------------------------- */

static void put_pixel(uint8_t *yuv, size_t n, size_t at, const double rgb[3])
{
    const double y = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    const double v[3] = {16 + 219 * y, 128 + 224 * (rgb[2] - y) / 1.772,
                         128 + 224 * (rgb[0] - y) / 1.402};
    for (int c = 0; c < 3; c++)
        yuv[(size_t)c * n + at] = (uint8_t)lrint(fmin(255, fmax(0, v[c])));
}

static void get_pixel(const uint8_t *yuv, size_t n, size_t at, double rgb[3])
{
    const double y = (yuv[at] - 16) / 219.0, u = (yuv[n + at] - 128) / 224.0,
                 v = (yuv[2 * n + at] - 128) / 224.0;
    rgb[0] = y + 1.402 * v;
    rgb[2] = y + 1.772 * u;
    rgb[1] = (y - 0.299 * rgb[0] - 0.114 * rgb[2]) / 0.587;
}

/* Of the film's own noise, Gaussian, in steps of 1/255. */
static void add_noise(const scene *s, int t, size_t at, double rgb[3])
{
    for (int c = 0; c < 3; c++) {
        const uint64_t k = mix(s->seed ^ 0xd1ce) ^ ((uint64_t)t << 40) ^ (at * 3 + (uint64_t)c);
        const double m = sqrt(-2 * log(unit_of(k))), a = TWO_PI * unit_of(k ^ 0x5555555555ull);
        rgb[c] += s->noise / 255 * m * sin(a);
    }
}

static void draw_frame(const scene *s, int t, uint8_t *film, uint8_t *mask, uint8_t *known)
{
    const size_t n = (size_t)s->width * (size_t)s->height;
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++) {
            const size_t at = (size_t)y * (size_t)s->width + (size_t)x;
            double v, u, oy, ox, rgb[3], front[3];
            to_world(s, t, y, x, &v, &u);
            background(s, v, u, rgb);
            put_pixel(known, n, at, rgb);
            const double in = inside(s, t, y, x, &oy, &ox);
            thing(s, oy, ox, front);
            for (int c = 0; c < 3 && in > -1; c++)
                rgb[c] += edge(in) * (front[c] - rgb[c]);
            add_noise(s, t, at, rgb);
            put_pixel(film, n, at, rgb);
            mask[at] = in > -1.5 ? 255 : 0;
        }
}

static int draw(const scene *s, char **path)
{
    const size_t n = (size_t)s->width * (size_t)s->height;
    uint8_t *frame[3] = {malloc(3 * n), malloc(n), malloc(3 * n)};
    FILE *f[3] = {fopen(path[0], "wb"), fopen(path[1], "wb"), fopen(path[2], "wb")};
    int good = frame[0] && frame[1] && frame[2] && f[0] && f[1] && f[2];
    for (int k = 0; k < 3 && good; k++)
        fprintf(f[k], "YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C%s\n", s->width, s->height,
                k == 1 ? "mono" : "444");
    for (int t = 0; t < s->frames && good; t++) {
        draw_frame(s, t, frame[0], frame[1], frame[2]);
        for (int k = 0; k < 3; k++)
            good &= fputs("FRAME\n", f[k]) >= 0 &&
                    fwrite(frame[k], k == 1 ? n : 3 * n, 1, f[k]) == 1;
    }
    for (int k = 0; k < 3; k++) {
        free(frame[k]);
        if (f[k])
            good &= fclose(f[k]) == 0;
    }
    if (!good)
        fprintf(stderr, "tegula-draw-film: %s, %s or %s cannot be written\n", path[0], path[1],
                path[2]);
    return good ? 0 : 1;
}

/* A film of ours is open behind its first line, which says its size; `planes` of a frame. */
static FILE *open_film(const char *path, int *width, int *height, int *planes)
{
    char line[256] = "";
    FILE *f = fopen(path, "rb");
    const int good = f && fgets(line, sizeof line, f) &&
                     sscanf(line, "YUV4MPEG2 W%d H%d", width, height) == 2 && *width > 0 &&
                     *height > 0 && *width <= 16384 && *height <= 16384 &&
                     (strstr(line, " C444") || strstr(line, " Cmono"));
    if (!good) {
        fprintf(stderr, "tegula-draw-film: %s is no film of 4:4:4\n", path);
        if (f)
            fclose(f);
        return NULL;
    }
    *planes = strstr(line, " Cmono") ? 1 : 3;
    return f;
}

static int read_frame(FILE *f, uint8_t *frame, size_t n)
{
    char line[256];
    return fgets(line, sizeof line, f) && strncmp(line, "FRAME", 5) == 0 &&
           fread(frame, n, 1, f) == 1;
}

/* ---- Judging ----------------------------------------------------------------------------- */

/* A frame at most REACH away shows what pixel (y, x) of frame t hides, grown by `grown` pixels. */
static int is_revealed(const scene *s, int t, int y, int x)
{
    double v, u;
    to_world(s, t, y, x, &v, &u);
    for (int k = t - REACH; k <= t + REACH; k++) {
        double py, px;
        if (k < 0 || k >= s->frames || k == t)
            continue;
        to_picture(s, k, v, u, &py, &px);
        if (py >= 2 && px >= 2 && py < s->height - 3 && px < s->width - 3 &&
            !is_hidden(s, k, py - 8, px) && !is_hidden(s, k, py + 8, px) &&
            !is_hidden(s, k, py, px - 8) && !is_hidden(s, k, py, px + 8) &&
            !is_hidden(s, k, py, px))
            return 1;
    }
    return 0;
}

static double decibels(double squares, double n)
{
    return -10 * log10(squares / fmax(n, 1));
}

/* Squares of what the film errs by, red, green and blue, where it hides; [1]: of what is never shown. */
static int judge(const scene *s, const char *path)
{
    int w, h, planes, good = 1;
    FILE *f = open_film(path, &w, &h, &planes);
    double sum[2] = {0, 0}, n[2] = {0, 0};
    const size_t all = (size_t)s->width * (size_t)s->height;
    uint8_t *frame = malloc(3 * all), *known = malloc(3 * all), *film = malloc(3 * all),
            *mask = malloc(all);
    if (!f || w != s->width || h != s->height || planes != 3 || !frame || !known || !film ||
        !mask)
        return 1;
    for (int t = 0; t < s->frames && good; t++) {
        good = read_frame(f, frame, 3 * all);
        draw_frame(s, t, film, mask, known);
        for (size_t i = 0; i < all && good; i++) {
            double a[3], b[3];
            if (!mask[i])
                continue;
            const int hidden = !is_revealed(s, t, (int)(i / (size_t)w), (int)(i % (size_t)w));
            get_pixel(frame, all, i, a);
            get_pixel(known, all, i, b);
            for (int c = 0; c < 3; c++)
                sum[hidden] += (a[c] - b[c]) * (a[c] - b[c]);
            n[hidden] += 3;
        }
    }
    if (good) {
        printf("%.2f dB where it is shown within %d frames (%.0f %%)", decibels(sum[0], n[0]),
               REACH, 100 * n[0] / fmax(n[0] + n[1], 1));
        if (n[1] > 0)
            printf(", %.2f dB elsewhere", decibels(sum[1], n[1]));
        printf(": %s\n", path);
    } else {
        fprintf(stderr, "tegula-draw-film: %s: too few frames\n", path);
    }
    fclose(f);
    free(frame);
    free(known);
    free(film);
    free(mask);
    return !good;
}

/* ---- The baseline ------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

/* Of each component that is hidden in frame t the median of the frames around that do not hide the place. */
static void median_of(uint8_t *const *film, uint8_t *const *mask, int frames, size_t n, int t,
                      uint8_t *out)
{
    uint8_t v[2 * REACH + 1];
    memcpy(out, film[t], 3 * n);
    for (size_t i = 0; i < n; i++)
        for (int c = 0; mask[t][i] && c < 3; c++) {
            int m = 0;
            for (int k = t < REACH ? 0 : t - REACH; k < frames && k <= t + REACH; k++)
                if (!mask[k][i])
                    v[m++] = film[k][(size_t)c * n + i];
            qsort(v, (size_t)m, 1, by_value);
            if (m)
                out[(size_t)c * n + i] = v[m / 2];
        }
}

static int median(char **path)
{
    enum { MOST = 1000 };
    static uint8_t *film[MOST], *mask[MOST];
    int w, h, planes, frames = 0, good = 1;
    FILE *f = open_film(path[0], &w, &h, &planes), *m = open_film(path[1], &w, &h, &planes);
    FILE *to = f && m ? fopen(path[2], "wb") : NULL;
    const size_t n = to ? (size_t)w * (size_t)h : 0;
    if (!to)
        return 1;
    for (; frames < MOST; frames++) {
        film[frames] = malloc(3 * n);
        mask[frames] = malloc(n);
        if (!film[frames] || !mask[frames] || !read_frame(f, film[frames], 3 * n) ||
            !read_frame(m, mask[frames], n))
            break;
    }
    uint8_t *out = malloc(3 * n);
    fprintf(to, "YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C444\n", w, h);
    for (int t = 0; t < frames && out && good; t++) {
        median_of(film, mask, frames, n, t, out);
        good = fputs("FRAME\n", to) >= 0 && fwrite(out, 3 * n, 1, to) == 1;
    }
    for (int t = 0; t <= frames && t < MOST; t++) {
        free(film[t]);
        free(mask[t]);
    }
    free(out);
    fclose(f);
    fclose(m);
    return fclose(to) == 0 && good ? 0 : 1;
}

/* ---- The command ------------------------------------------------------------------------- */

static int usage(void)
{
    fputs("usage: tegula-draw-film [--size WxH] [--frames N] [--seed S] [--noise SIGMA] "
          "FILM.y4m MASK.y4m "
          "BACKGROUND.y4m\n"
          "       tegula-draw-film --psnr [the same options] A.y4m ...\n"
          "       tegula-draw-film --median FILM.y4m MASK.y4m OUT.y4m\n",
          stderr);
    return 64;
}

int main(int argc, char **argv)
{
    int width = 432, height = 240, frames = 80, i = 1, psnr = 0;
    double seed = 1, noise = 2;
    if (argc == 5 && strcmp(argv[1], "--median") == 0)
        return median(argv + 2);
    if (argc > 1 && strcmp(argv[1], "--psnr") == 0)
        psnr = i++;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--size") == 0 &&
            sscanf(argv[i + 1], "%dx%d", &width, &height) == 2)
            continue;
        if (strcmp(argv[i], "--frames") == 0)
            frames = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--noise") == 0)
            noise = atof(argv[i + 1]);
        else
            return usage();
    }
    if (width < 32 || height < 32 || width > 8192 || height > 8192 || frames < 1 ||
        frames > 100000 || seed < 0 || noise < 0 || (psnr ? argc == i : argc - i != 3))
        return usage();
    const scene s = make_scene(width, height, frames, (uint64_t)seed, noise);
    if (!psnr)
        return draw(&s, argv + i);
    for (; i < argc; i++)
        if (judge(&s, argv[i]) != 0)
            return 1;
    return 0;
}
