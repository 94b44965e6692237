/* mask_kit.h - files of small masks, drawn as text, in a folder of their own. Its checks count for the test that includes
 * it, so all of it is static. */
#ifndef TGI_MASK_KIT_H
#define TGI_MASK_KIT_H

#include "io/npy.h"
#include "io/png.h"
#include "tests/tg_test.h"
#include "tests/unit/png_maker.h"

#include <dirent.h>
#include <sys/stat.h>

static char folder[64] = "/tmp/tegula-masks-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][320];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static const char *sub_folder(const char *name)
{
    const char *path = in_folder(name);
    mkdir(path, 0700);
    return path;
}

static void remove_all(const char *path)
{
    char inside[600];
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (remove(inside) != 0)
            remove_all(inside);
    }
    if (d)
        closedir(d);
    remove(path);
}

/* ---- Files of masks ---- */

#define W 6
#define H 4

/* Drawn as "......|..#...|......|......": # is `on`, any other sign 0. */
static void draw(const char *art, int on, uint8_t *to)
{
    for (int i = 0; *art; art++)
        if (*art != '|')
            to[i++] = *art == '#' ? (uint8_t)on : 0;
}

static void save_png(const char *name, const char *art, int on)
{
    uint8_t v[W * H];
    tgi_err err = {0};
    draw(art, on, v);
    CHECK_OK(tgi_png_write(in_folder(name), v, H, W, 1, W, &err), err);
}

/* PNG of these numbers, whatever its form. */
static void save_form(const char *name, const png_form *f, const uint16_t *v,
                      const uint8_t *palette)
{
    const pic_bytes b = png_make(f, v, palette);
    FILE *file = fopen(in_folder(name), "wb");
    CHECK(file && fwrite(b.p, 1, b.n, file) == b.n);
    if (file)
        fclose(file);
    free(b.p);
}

static void save_npy(const char *name, tg_dtype t, int64_t planes, int64_t h, int64_t w,
                     const void *v)
{
    tgi_err err = {0};
    const tgi_desc many = {t, 3, {planes, h, w}}, one = {t, 2, {h, w}};
    CHECK_OK(tgi_npy_save(in_folder(name), planes ? &many : &one, v, &err), err);
}

/* A film whose frames are drawn; art NULL: there are no more. */
static void save_film(const char *name, const char *const *art)
{
    FILE *f = fopen(in_folder(name), "wb");
    CHECK(f != NULL);
    if (!f)
        return;
    fprintf(f, "YUV4MPEG2 W%d H%d F25:1 Ip Cmono XCOLORRANGE=FULL\n", W, H);
    for (; *art; art++) {
        uint8_t v[W * H];
        draw(*art, 255, v);
        fprintf(f, "FRAME\n");
        fwrite(v, 1, sizeof v, f);
    }
    fclose(f);
}

#endif
