/* sized.h - structs of the API that begin with their size, so that a program built with another
 * header than this library's goes on running: one with an older, smaller struct gives and gets
 * what it knows of; one with a newer, larger struct is answered as long as it asks for nothing
 * that this library does not know.
 *
 *     tg_disk own;                                            a caller's `out`, or NULL
 *     if (!tgi_sized_take(out, &own, sizeof own)) return TG_E_ARG;
 *     ... fill or read own ...
 *     tgi_sized_give(out, &own);
 */
#ifndef TGI_SIZED_H
#define TGI_SIZED_H

#include <stddef.h>

/* What `given` has of a struct of `bytes` bytes, and zeros for the rest; own's size is `bytes`.
 * 0: it is NULL, its size is none, or it has more than we know of and sets it. */
int tgi_sized_take(const void *given, void *own, size_t bytes);
/* Why tgi_sized_take answered 0, in words that follow the name of the struct. Static. */
const char *tgi_sized_wrong(const void *given);
/* Back into `given`, as far as it goes; its size stays. After tgi_sized_take answered 1. */
void tgi_sized_give(void *given, const void *own);

#endif
