/* tensor_names.h - several outputs get their names one after the other, as if at once.
 *
 * When all outputs are complete and on the disk, a list of them is written into their folder,
 * durably, before the first one gets its name. The list is removed after the last one has its
 * own. A run that was killed in between leaves the list, and the same command then names the
 * rest.
 *
 * The list says which job it was (a fingerprint). In the order of the network's outputs it says
 * of each which file it is, and when that was last written. If a file is not as listed, it is
 * somebody else's or was changed, and the list is ignored.
 *
 * Whoever writes the list or acts on it holds its lock; nobody else removes it. */
#ifndef TGI_TENSOR_NAMES_H
#define TGI_TENSOR_NAMES_H

#include "engine/out/fingerprint_text.h"

#include <stdint.h>

struct tgi_tensors;

/* What a run holds of it; begin with TGI_NAMES_CLOSED. */
typedef struct tgi_names {
    char *path;
    int fd;     /* -1: none; else it is locked */
    int listed; /* the outputs are in it: who has no name yet stays for the next run */
} tgi_names;

#define TGI_NAMES_CLOSED ((tgi_names){.fd = -1})

/* The first line of a list; those that say which job it is follow. */
void tgi_names_begin(const struct tgi_tensors *all, tgi_lines *out);

/* Before the outputs are created, with their names made: is such a list there? Then it is
 * locked. TG_E_BUSY, TG_E_EXISTS, TG_E_IO, TG_E_NOMEM. */
tg_status tgi_names_find(struct tgi_tensors *all, int *there, tgi_err *err);
/* Does the list that was found hold? Then all have their names now (*named), and *bad is how
 * many regions of the input that run filled. Else nothing was changed. `front`, taken: the
 * lines before the outputs. TG_E_BUSY, TG_E_IO, TG_E_NOMEM, TG_E_CANCELLED. */
tg_status tgi_names_go_on(struct tgi_tensors *all, tgi_lines *front, int *named, int64_t *bad,
                          tgi_err *err);
/* The outputs are created: a list that an earlier run left holds no more. */
tg_status tgi_names_forget(tgi_names *n, tgi_err *err);
/* All outputs are sealed: list them, behind the lines `front`, which are taken. One output
 * alone needs no list: there is no time between its name and the last one's. */
tg_status tgi_names_list(struct tgi_tensors *all, tgi_lines *front, tgi_err *err);
/* Give them their names. */
tg_status tgi_names_give(struct tgi_tensors *all, tgi_err *err);
/* At any time. A list stays where outputs wait for their names. */
void tgi_names_close(tgi_names *n);

#endif
