/* picture_out.c - which format a name asks for. */
#include "io/picture_out.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const tgi_picture_writer *const writers[] = {&tgi_png_writer, &tgi_jpeg_writer,
                                                    &tgi_tiff_picture_writer};

/* The first n of them. */
static const tgi_picture_writer *writer_for(const char *path, size_t of)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    char suffix[8];
    if (!dot || strlen(dot + 1) > 4 || !dot[1])
        return NULL;
    const int n = snprintf(suffix, sizeof suffix, "|%s|", dot + 1);
    for (int i = 0; i < n; i++)
        suffix[i] = (char)tolower((unsigned char)suffix[i]);
    for (size_t i = 0; i < of; i++)
        if (strstr(writers[i]->suffixes, suffix))
            return writers[i];
    return NULL;
}

const tgi_picture_writer *tgi_picture_writer_for(const char *path)
{
    return writer_for(path, 2); /* other TIFFs are no pictures */
}

const tgi_picture_writer *tgi_frame_writer_for(const char *path)
{
    return writer_for(path, sizeof writers / sizeof writers[0]);
}

/* Bytes 16 to 19 name the colour space of the device. Source: ICC.1:2010, 7.2.6. */
bool tgi_icc_fits(const tgi_image_meta *m, int samples)
{
    if (!m->icc || m->icc_bytes < 128)
        return false;
    const char *space = (const char *)m->icc + 16;
    return samples >= 3 ? !memcmp(space, "RGB ", 4) : !memcmp(space, "GRAY", 4);
}
