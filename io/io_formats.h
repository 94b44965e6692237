/* io_formats.h - the formats that io_table.c lists, and what their readers share. */
#ifndef TGI_IO_FORMATS_H
#define TGI_IO_FORMATS_H

#include "io/image.h"

extern const tgi_source_ops tgi_film_source_ops, tgi_jpeg_source_ops, tgi_npy_source_ops,
    tgi_ome_set_source_ops, tgi_png_source_ops, tgi_tiff_source_ops;

/* Their `probe`, also where this build has no library for them. */
int tgi_jpeg_probe(const uint8_t *head, size_t n, const char *path);
int tgi_png_probe(const uint8_t *head, size_t n, const char *path);
int tgi_film_probe(const uint8_t *head, size_t n, const char *path);

/* Give the plane axes of `info` other letters ("TZYX" for "QQYX"). `axes` names every axis, or
 * every axis longer than 1; Y, X (and S, which may be left out) stay where they are.
 * TG_E_ARG when it does not fit. */
tg_status tgi_image_relabel(tgi_image_info *info, const char *axes, tgi_err *err);

#endif
