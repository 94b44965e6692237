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

/* Of a pixel along both axes: value[0,n) times um. */
static void set_both(tgi_image_meta *m, const char *name, const char *value, size_t n,
                     double um)
{
    double v;
    if (tgi_text_number(value, n, &v))
        set_sizes(m, v * um, v * um);
    else
        tgi_text_malformed(m->malformed, name, value, n);
}

static void aperio(const char *text, tgi_image_meta *m)
{
    for (const char *p = strchr(text, '|'); p; p = strchr(p, '|')) {
        p += 1 + strspn(p + 1, " ");
        if (strncmp(p, "MPP", 3) != 0)
            continue;
        const char *value = p + 3 + strspn(p + 3, " ");
        if (*value == '=')
            set_both(m, "MPP", value + 1, strcspn(value + 1, "|\r\n"), 1);
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
    const size_t nx = x ? strcspn(x, "\r\n") : 0, ny = y ? strcspn(y, "\r\n") : 0;
    double wide, high;
    if (!x || !y)
        return;
    if (tgi_text_number(x, nx, &wide) && tgi_text_number(y, ny, &high))
        set_sizes(m, 1e6 * high, 1e6 * wide);
    else
        tgi_text_malformed(m->malformed, "PixelWidth, PixelHeight", x, nx);
}

static void zeiss(const char *text, tgi_image_meta *m)
{
    static const struct {
        const char *name;
        double um;
    } units[] = {{"pm", 1e-6}, {"nm", 1e-3}, {"mm", 1e3},
                 {"um", 1},    {"\xb5m", 1}, {"\xc2\xb5m", 1}};
    const char *p = line_of(text, "Image Pixel Size =");
    if (!p)
        p = line_of(text, "Pixel Size =");
    if (!p)
        return;
    p += strspn(p, " ");
    const size_t n = strspn(p, "+-.0123456789eE");
    const char *unit = p + n + strspn(p + n, " ");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strncmp(unit, units[i].name, strlen(units[i].name)) == 0) {
            set_both(m, "Pixel Size", p, n, units[i].um);
            return;
        }
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
