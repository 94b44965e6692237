/* package.h - a network with its description: a folder, a ZIP archive, or the description itself beside what it names.
 *
 * What a description names is a file inside the package: no URL, no absolute path, no "..", no symbolic link on the way.
 * Nothing is unpacked to the disk. */
#ifndef TGI_PACKAGE_H
#define TGI_PACKAGE_H

#include "engine/base/sha256.h"
#include "engine/base/status.h"
#include "io/onnx.h"
#include "io/yaml_tree.h"

typedef struct tgi_package tgi_package;

/* 1: the path is a folder, or ends in .zip, .yaml or .yml: it is no ONNX file but a package. */
int tgi_package_named(const char *path);
/* 1: it is one of those and no folder, or a folder with a description. */
int tgi_package_is(const char *path);
/* The i-th name that a description may have in the folder `path`; 0: there are no more, or it is no folder. */
int tgi_package_file(const char *path, int i, char *out, size_t cap);
/* Returned; tgi_package_close. TG_E_NOT_FOUND, TG_E_FORMAT: no description in it, or a damaged one. */
tg_status tgi_package_open(const char *path, tgi_package **out, tgi_err *err);
void tgi_package_close(tgi_package **p);

const tgi_yaml *tgi_package_says(const tgi_package *p); /* the description */
const char *tgi_package_text(const tgi_package *p);     /* its name, for people */
const char *tgi_package_sum(const tgi_package *p);      /* its SHA-256 */
const char *tgi_package_folder(const tgi_package *p);   /* "dir/"; NULL: an archive */
/* The ONNX file that it calls `source`. `sha256`: "" or what the bytes must have. `beside`: the file of weights beside it
 * that the description names, or "". */
tg_status tgi_package_onnx(const tgi_package *p, const char *source, const char *sha256,
                           const char *beside, tgi_onnx_model **out, tgi_err *err);
/* The name below the folder, without "./"; TG_E_FORMAT where it leads out of the package. */
tg_status tgi_package_inside(const char *source, const char **name, tgi_err *err);

#endif
