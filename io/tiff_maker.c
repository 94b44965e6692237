/* tiff_maker.c - sizes of pixels in the words of three makers:
 *
 *   Aperio  ImageDescription, fields between bars: "...|AppMag = 20|MPP = 0.4990|...":
 *           micrometres of the slide itself; its thumbnail, label and macro have others
 *   FEI     tags 34680 and 34682, an INI file: "[Scan]", "PixelWidth=7.70833e-09": metres
 *   Zeiss   tag 34118 of electron microscopes, lines: "AP_IMAGE_PIXEL_SIZE", and below it
 *           "Image Pixel Size = 10.2 nm" (newer ones call it "AP_PIXEL_SIZE", "Pixel Size")
 *
 * They stand in no tag that TIFF knows of, and the resolution tags beside them say 96 dpi or
 * nothing. Texts are looked through, bounded, and believed only where a number is plausible.
 *
 * Source: the texts of such files; tifffile's reading of them (svs, fei_metadata,
 * sem_metadata). */
#include "io/tiff_maker.h"

#include "engine/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_CAP (1u << 20)

/* Micrometres along x or y that a microscope can have. */
static double plausible(double um)
{
    return isfinite(um) && um > 1e-9 && um < 1e6 ? um : 0;
}

static void set_sizes(tgi_image_meta *m, double y, double x)
{
    const double size[2] = {plausible(y), plausible(x)};
    for (int i = 0; i < 2; i++) {
        if (size[i] <= 0 || m->physical[i + 1] > 0)
            continue;
        m->physical[i + 1] = size[i];
        snprintf(m->unit[i + 1], sizeof m->unit[i + 1], "\xc2\xb5m");
    }
}

static void aperio(const char *text, tgi_image_meta *m)
{
    for (const char *p = strchr(text, '|'); p; p = strchr(p, '|')) {
        p += 1 + strspn(p + 1, " ");
        if (strncmp(p, "MPP", 3) != 0)
            continue;
        const char *value = p + 3 + strspn(p + 3, " ");
        if (*value == '=')
            set_sizes(m, strtod(value + 1, NULL), strtod(value + 1, NULL));
        return;
    }
}

/* What follows `key` at the beginning of a line; NULL: no such line. */
static const char *line_of(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *p = text; *p;) {
        if (strncmp(p, key, n) == 0)
            return p + n;
        p += strcspn(p, "\r\n");
        p += strspn(p, "\r\n");
    }
    return NULL;
}

static void fei(const char *text, tgi_image_meta *m)
{
    const char *scan = line_of(text, "[Scan]");
    const char *x = scan ? line_of(scan, "PixelWidth=") : NULL;
    const char *y = scan ? line_of(scan, "PixelHeight=") : NULL;
    if (x && y)
        set_sizes(m, 1e6 * strtod(y, NULL), 1e6 * strtod(x, NULL));
}

static void zeiss(const char *text, tgi_image_meta *m)
{
    static const struct {
        const char *name;
        double um;
    } units[] = {{"pm", 1e-6}, {"nm", 1e-3}, {"mm", 1e3},
                 {"um", 1},    {"\xb5m", 1}, {"\xc2\xb5m", 1}};
    char *end;
    const char *p = line_of(text, "Image Pixel Size =");
    if (!p)
        p = line_of(text, "Pixel Size =");
    if (!p)
        return;
    const double v = strtod(p, &end);
    end += strspn(end, " ");
    for (size_t i = 0; end != p && i < sizeof units / sizeof units[0]; i++)
        if (strncmp(end, units[i].name, strlen(units[i].name)) == 0)
            set_sizes(m, v * units[i].um, v * units[i].um);
}

static void name_flavor(tgi_image_info *i, const char *name)
{
    if (!i->flavor[0])
        snprintf(i->flavor, sizeof i->flavor, "%s", name);
}

tg_status tgi_tiff_maker_sizes(const tgi_tiff_file *t, const tgi_tiff_page *first, int series,
                               tgi_image_info *info, tgi_err *err)
{
    tgi_image_meta *m = &info->meta;
    char *text = NULL;
    if (m->description && strncmp(m->description, "Aperio", 6) == 0) {
        name_flavor(info, "svs");
        if (series == 0)
            aperio(m->description, m);
    }
    if (!first->maker.count)
        return TG_OK;
    TGI_TRY(tgi_tiff_text(t, &first->maker, TEXT_CAP, &text, err));
    if (!text)
        return TG_OK;
    name_flavor(info, first->maker_tag == TGI_TIFF_ZEISS_SEM ? "zeiss sem" : "fei");
    (first->maker_tag == TGI_TIFF_ZEISS_SEM ? zeiss : fei)(text, m);
    tgi_free(text);
    return TG_OK;
}
