/* film_raw.c - writes frames of a film as they are stored to stdout, by the plugin that is named.
 *
 *     film_raw PLUGIN FILE info          what the film says of itself, a line "name value" each
 *     film_raw PLUGIN FILE all           every frame in order
 *     film_raw PLUGIN FILE SEED N        N frames in random order: a line "number bytes" to stderr
 *     film_raw PLUGIN FILE decode N      every frame, with N threads: a line of what it held at most, in KiB, looked at after each
 *     film_raw PLUGIN FILE encode CODEC  the same, and packets of them, which go nowhere
 *
 * Rows are written without gaps, plane by plane, as ffmpeg's rawvideo has them. Exit 0, or 65 with the
 * reason where it cannot be read; 75 where packets were refused or parts of frames made up. */
#include "io/av/av.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tgi_av_ops *ops;
static int concealed; /* frames, of those that were written */

static int width_of(const tgi_av_info *i, int component)
{
    const int chroma =
        !i->form.is_rgb && (component == 1 || component == 2) && i->form.n_components > 2;
    return chroma ? -((-i->width) >> i->form.log2_chroma_w) : i->width;
}

static int height_of(const tgi_av_info *i, int component)
{
    const int chroma =
        !i->form.is_rgb && (component == 1 || component == 2) && i->form.n_components > 2;
    return chroma ? -((-i->height) >> i->form.log2_chroma_h) : i->height;
}

/* Rows of plane p. Returns its bytes. */
static size_t write_plane(const tgi_av_info *i, const tgi_av_frame *f, int p)
{
    size_t row = 0;
    int rows = 0;
    for (int c = 0; c < i->form.n_components; c++)
        if (i->form.component[c].plane == p) {
            const size_t n = (size_t)width_of(i, c) * (size_t)i->form.component[c].step;
            row = n > row ? n : row;
            rows = height_of(i, c) > rows ? height_of(i, c) : rows;
        }
    for (int y = 0; y < rows; y++)
        if (fwrite(f->plane[p] + y * f->pitch[p], 1, row, stdout) != row)
            exit(74);
    return row * (size_t)rows;
}

static int write_frame(tgi_av_film *film, int64_t k, size_t *bytes)
{
    tgi_av_frame f;
    tgi_err err = {0};
    if (ops->frame(film, k, &f, &err) != TG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 65;
    }
    *bytes = 0;
    concealed += f.concealed;
    for (int p = 0; p < ops->info(film)->form.n_planes; p++)
        *bytes += write_plane(ops->info(film), &f, p);
    return 0;
}

static void print_info(const tgi_av_info *i)
{
    printf(
        "container %s\ncodec %s\nwidth %d\nheight %d\nrotation %d\nflipped %d\nframes %lld\n",
        i->container, i->codec, i->width, i->height, i->rotation, i->flipped,
        (long long)i->frames);
    printf("has_times %d\nform %s\nrange %s\nmatrix %s\ninterlaced %d\ndeclared %lld\n",
           i->has_times, i->form.name, i->form.range, i->form.matrix, i->interlaced,
           (long long)i->declared_frames);
    printf("time_base %lld/%lld\npixel_aspect %lld:%lld\n", (long long)i->time_base.num,
           (long long)i->time_base.den, (long long)i->pixel_aspect.num,
           (long long)i->pixel_aspect.den);
}

static int some_frames(tgi_av_film *film, uint64_t seed, int n)
{
    const int64_t frames = ops->info(film)->frames;
    int st = 0;
    for (int i = 0; i < n && !st; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const int64_t k = (int64_t)((seed >> 33) % (uint64_t)frames);
        size_t bytes;
        st = write_frame(film, k, &bytes);
        if (!st)
            fprintf(stderr, "%lld %zu\n", (long long)k, bytes);
    }
    return st;
}

static int all_frames(tgi_av_film *film)
{
    int st = 0;
    size_t bytes;
    for (int64_t k = 0; k < ops->info(film)->frames && !st; k++)
        st = write_frame(film, k, &bytes);
    return st;
}

/* ---- What it holds ------------------------------------------------------------------------ */

static long held_first, held_most;

/* Of its own, in KiB: no pages of files. */
static void look(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0) {
            const long now = atol(line + 8);
            held_first = held_first ? held_first : now;
            held_most = now > held_most ? now : held_most;
        }
    if (f)
        fclose(f);
}

static int print_peak(void)
{
    printf("%ld\n", held_most - held_first);
    return 0;
}

/* As far as both have the plane: what is in it is no matter. */
static void copy_planes(const tgi_av_info *i, const tgi_av_form *to, const tgi_av_frame *f,
                        const tgi_av_blank *b)
{
    for (int p = 0; p < to->n_planes; p++)
        for (int y = 0; y < height_of(i, p); y++) {
            const int from = p < i->form.n_planes ? p : 0;
            const int64_t a = f->pitch[from], c = b->pitch[p];
            memcpy(b->plane[p] + y * c, f->plane[from] + y * a, (size_t)(a < c ? a : c));
        }
}

static int take_all(tgi_av_encoder *e, tgi_err *err)
{
    tgi_av_packet p;
    int there = 1;
    while (there)
        if (ops->take(e, &p, &there, err) != TG_OK)
            return 65;
    return 0;
}

static int encode_all(tgi_av_film *film, tgi_av_encoder *e, const tgi_av_coding *c,
                      tgi_err *err)
{
    const tgi_av_info *i = ops->info(film);
    for (int64_t k = 0; k < i->frames; k++) {
        tgi_av_frame f;
        tgi_av_blank b;
        if (ops->frame(film, k, &f, err) != TG_OK || ops->blank(e, &b, err) != TG_OK)
            return 65;
        copy_planes(i, &c->form, &f, &b);
        if (ops->give(e, k, err) != TG_OK || take_all(e, err))
            return 65;
        look();
    }
    const int st = ops->give(e, -1, err) == TG_OK ? take_all(e, err) : 65;
    look();
    return st;
}

static int encode(tgi_av_film *film, const char *codec, int speed)
{
    const tgi_av_info *i = ops->info(film);
    tgi_av_coding c = {.width = i->width,
                       .height = i->height,
                       .rate = {25, 1},
                       .crf = -1,
                       .segment = 48,
                       .speed = speed};
    tgi_av_encoder *e = NULL;
    tgi_err err = {0};
    snprintf(c.codec, sizeof c.codec, "%s", codec);
    int st = ops->form_for(codec, i->form.name, &c.form, &err) == TG_OK &&
                     ops->encoder(&c, &e, &err) == TG_OK
                 ? encode_all(film, e, &c, &err)
                 : 65;
    if (st)
        fprintf(stderr, "%s\n", err.text);
    ops->encoder_close(&e);
    return st ? st : print_peak();
}

static int decode(tgi_av_film *film)
{
    tgi_av_frame f;
    tgi_err err = {0};
    for (int64_t k = 0; k < ops->info(film)->frames; k++)
        if (ops->frame(film, k, &f, &err) != TG_OK)
            return 65;
        else
            look();
    return print_peak();
}

int main(int argc, char **argv)
{
    const int threads = argc > 4 && strcmp(argv[3], "decode") == 0 ? atoi(argv[4]) : 1;
    const tgi_av_open o = {.threads = threads};
    tgi_av_plugin_fn ask = NULL;
    tgi_av_film *film = NULL;
    tgi_err err = {0};
    if (argc < 4)
        return 64;
    void *dl = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL),
         *at = dl ? dlsym(dl, TGI_AV_PLUGIN_SYMBOL) : NULL;
    memcpy(&ask, &at, sizeof ask);
    ops = ask ? ask(TGI_AV_ABI) : NULL;
    if (!ops) {
        fprintf(stderr, "%s\n", dl ? "no plugin of this version" : dlerror());
        return 69;
    }
    look();
    if (ops->open(argv[2], &o, &film, &err) != TG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 65;
    }
    int st = 0;
    if (strcmp(argv[3], "info") == 0)
        print_info(ops->info(film));
    else if (strcmp(argv[3], "decode") == 0)
        st = decode(film);
    else if (strcmp(argv[3], "encode") == 0 && argc > 4)
        st = encode(film, argv[4], argc > 5 ? atoi(argv[5]) : 0);
    else
        st = argc > 4 ? some_frames(film, strtoull(argv[3], NULL, 10), atoi(argv[4]))
                      : all_frames(film);
    if (!st && (ops->refused(film) || concealed))
        st = 75;
    ops->close(&film);
    return st;
}
