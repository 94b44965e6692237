/* mask_kit.h - files of small masks, drawn as text, in a folder of their own, and what tgi_masks makes
 * of them. Its checks count for the test that includes it, so all of it is static. */
#ifndef TGI_MASK_KIT_H
#define TGI_MASK_KIT_H

#include "io/masks.h"
#include "io/npy.h"
#include "io/png.h"
#include "tests/tg_test.h"
#include "tests/unit/png_maker.h"

#include <stdlib.h>
#include <sys/stat.h>

static char folder[64] = "/tmp/tegula-masks-XXXXXX";

static inline const char *in_folder(const char *name)
{
    static char path[4][320];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static inline const char *sub_folder(const char *name)
{
    const char *path = in_folder(name);
    mkdir(path, 0700);
    return path;
}

static inline void remove_all(void)
{
    char command[80];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_EQ(system(command), 0);
}

/* ---- Files of masks ---- */

#define W 6
#define H 4

/* Drawn as "......|..#...|......|......": # is `on`, any other sign 0. */
static inline void draw(const char *art, int on, uint8_t *to)
{
    for (int i = 0; *art; art++)
        if (*art != '|')
            to[i++] = *art == '#' ? (uint8_t)on : 0;
}

static inline void save_png(const char *name, const char *art, int on)
{
    uint8_t v[W * H];
    tgi_err err = {0};
    draw(art, on, v);
    CHECK_OK(tgi_png_write(in_folder(name), v, H, W, 1, W, &err), err);
}

/* PNG of these numbers, whatever its form. */
static inline void save_form(const char *name, const png_form *f, const uint16_t *v,
                             const uint8_t *palette)
{
    const pic_bytes b = png_make(f, v, palette);
    FILE *file = fopen(in_folder(name), "wb");
    CHECK(file && fwrite(b.p, 1, b.n, file) == b.n);
    if (file)
        fclose(file);
    free(b.p);
}

static inline void save_npy(const char *name, tg_dtype t, int64_t planes, int64_t h, int64_t w,
                            const void *v)
{
    tgi_err err = {0};
    const tgi_desc many = {t, 3, {planes, h, w}}, one = {t, 2, {h, w}};
    CHECK_OK(tgi_npy_save(in_folder(name), planes ? &many : &one, v, &err), err);
}

/* A film whose frames are drawn; art NULL: there are no more. */
static inline void save_film(const char *name, const char *const *art)
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

/* ---- Asking ---- */

static inline tgi_masks_how of(const char *path, int64_t frames)
{
    return (tgi_masks_how){.path = path,
                           .threshold = -1,
                           .frames = frames,
                           .whole = frames,
                           .height = H,
                           .width = W};
}

/* Opened and read from end to end, within the bytes that it says. */
static inline tgi_masks *opened(const tgi_masks_how *how)
{
    tgi_err err = {0};
    tgi_masks *m = NULL;
    const size_t n = (size_t)(how->height * how->width), before = tgi_mem_held();
    size_t most = 0;
    CHECK_OK(tgi_masks_open(how, &m, &err), err);
    uint8_t *mask = malloc(n);
    for (int64_t k = 0; m && k < how->frames; k++) {
        CHECK_OK(tgi_masks_read(m, k, mask, &err), err);
        for (size_t i = 0; i < n; i++)
            if (mask[i] > 1)
                CHECK_EQ(mask[i], 1);
        most = tgi_mem_held() - before > most ? tgi_mem_held() - before : most;
    }
    free(mask);
    CHECK(!m || most <= tgi_masks_bytes(m));
    if (m && most > tgi_masks_bytes(m))
        fprintf(stderr, "  held %zu, said %zu: %s\n", most, tgi_masks_bytes(m), how->path);
    return m;
}

static inline void frame_is(tgi_masks *m, int64_t k, const char *art, int line)
{
    uint8_t want[W * H], got[W * H];
    tgi_err err = {0};
    if (!m)
        return;
    draw(art, 1, want);
    CHECK_OK(tgi_masks_read(m, k, got, &err), err);
    CHECK(memcmp(want, got, sizeof want) == 0);
    if (memcmp(want, got, sizeof want) == 0)
        return;
    fprintf(stderr, "  line %d, frame %lld, expected %s, found ", line, (long long)k, art);
    for (int i = 0; i < W * H; i++)
        fprintf(stderr, "%s%c", i && i % W == 0 ? "|" : "", got[i] ? '#' : '.');
    fprintf(stderr, "\n");
}
#define FRAME_IS(m, k, art) frame_is(m, k, art, __LINE__)

/* A note has these words; "": there is none at all. */
static inline void notes(const tgi_masks *m, const char *words, int line)
{
    int found = 0, n = 0;
    if (!m)
        return;
    for (; tgi_masks_note(m, n); n++)
        found |= *words && strstr(tgi_masks_note(m, n), words) != NULL;
    CHECK(*words ? found : n == 0);
    for (int i = 0; (*words ? !found : n > 0) && i < n; i++)
        fprintf(stderr, "  line %d, noted: %s\n", line, tgi_masks_note(m, i));
}
#define NOTES(m, words) notes(m, words, __LINE__)

static inline void refused(const tgi_masks_how *how, tg_status want, const char *words)
{
    tgi_err err = {0};
    tgi_masks *m = NULL;
    CHECK_EQ(tgi_masks_open(how, &m, &err), want);
    CHECK(m == NULL);
    CHECK(strstr(err.text, words) != NULL);
    if (!strstr(err.text, words))
        fprintf(stderr, "  said: %s\n", err.text);
    tgi_masks_close(&m);
}

/* The one picture at `name` as a mask of one frame. */
static inline void shows(const char *name, const char *art)
{
    const tgi_masks_how how = of(in_folder(name), 1);
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, art);
    tgi_masks_close(&m);
}

#define DOT "......|..#...|......|......"
#define CORNER "#.....|......|......|......"
#define NONE "......|......|......|......"
#define ALL "######|######|######|######"

#endif
