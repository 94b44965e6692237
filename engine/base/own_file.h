/* own_file.h - where this library lies on the disk, and what lies beside it: an installation, a
 * packed folder and a build folder are found the same way, wherever they were put. */
#ifndef TGI_OWN_FILE_H
#define TGI_OWN_FILE_H

#include <stddef.h>

/* The shared library that holds this code, or the program that it is linked into; 0 when the
 * system does not tell (then `out` is ""). */
int tgi_own_file(char *out, size_t cap);

/* bin/tegula needs one step up to share/ and lib/, lib/x86_64-linux-gnu/libtegula.so two, a
 * test of the build folder (tests/unit/test_x) three. */
#define TGI_STEPS_UP 3

/* `relative` in the folder of the file `from`, or in one of up to `steps` above it; 1 when
 * there is one that can be read, with its path in `out`. */
int tgi_find_beside(const char *from, int steps, const char *relative, char *out, size_t cap);

/* A plugin: the file that the variable `environment` names, or `file` beside this library, or in
 * lib/tegula of an installation. 0: there is none ("none" switches it off), with `why` in a line;
 * what was named is in `path` then, too. */
int tgi_plugin_file(const char *file, const char *environment, char *path, size_t cap,
                    char *why, size_t why_cap);

#endif
