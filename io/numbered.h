/* numbered.h - names with a number in them, "img_%05d.tif", as ffmpeg and ImageJ write them. */
#ifndef TGI_NUMBERED_H
#define TGI_NUMBERED_H

#include <stddef.h>
#include <stdint.h>

/* Where the number stands, and how many digits it has at least. */
typedef struct tgi_numbered {
    const char *base, *from, *to; /* of the pattern: name, '%', behind 'd' */
    size_t width;
} tgi_numbered;

/* 1: the name of the file has one place for a number. */
int tgi_numbered_find(const char *path, tgi_numbered *n);
/* 1: this name of a file is one of them. */
int tgi_numbered_fits(const tgi_numbered *n, const char *name);
/* The path with that number; 0: it does not fit into `cap`. */
int tgi_numbered_name(const char *pattern, int64_t number, char *path, size_t cap);
/* The number in the name of `path`, whatever its folder; -1: its name is none of these. */
int64_t tgi_number_of(const char *pattern, const char *path);

#endif
