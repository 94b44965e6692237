/* frame_store.h - what is kept of the frames of a film while later ones need it: in memory, then in a scratch
 * file.
 *
 * An item is of a kind (pixels, a motion) and of a frame; all items of a kind have one size, and those that are alive
 * at once are frames no farther apart than the kind's span. So every item has its place in the scratch
 * file beforehand, and memory holds a fixed number of slots for each kind. Where there are fewer
 * slots than items, the one that is needed again last makes room: it is written unless the file has it
 * already. With as many slots as items nothing is ever written.
 *
 * One thread. Nothing is allocated after the opening. What is in the file is of no use to another run. */
#ifndef TGI_FRAME_STORE_H
#define TGI_FRAME_STORE_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_FRAME_KINDS 8

typedef struct tgi_frame_kind {
    size_t bytes; /* of an item */
    int64_t span; /* items alive at once, at most; the file has as many places */
    int slots;    /* in memory: 1 to span */
    int drop; /* 1: what makes room is forgotten: the user can make it again (tgi_frame_store_has) */
} tgi_frame_kind;

typedef struct tgi_frame_store_how {
    tgi_frame_kind kind[TGI_FRAME_KINDS];
    int n_kinds;
    const char *scratch; /* a folder, where a kind has fewer slots than items; borrowed */
    /* When an item is needed next, on any scale that grows; INT64_MAX: never again. */
    int64_t (*next)(void *user, int kind, int64_t frame);
    void *user;
} tgi_frame_store_how;

typedef struct tgi_frame_store tgi_frame_store;

/* Memory that slots take, 64-byte aligned; bytes of the file, 0: there is none. */
size_t tgi_frame_store_bytes(const tgi_frame_store_how *how);
uint64_t tgi_frame_store_disk(const tgi_frame_store_how *how);

/* Fewer slots of every kind that has more than `fewest`, by a quarter; 0: there is none. */
int tgi_frame_store_shrink(tgi_frame_store_how *how, int fewest);

/* `memory`: tgi_frame_store_bytes, borrowed. Returned; tgi_frame_store_close. TG_E_NO_SPACE, TG_E_IO. */
tg_status tgi_frame_store_open(const tgi_frame_store_how *how, void *memory,
                               tgi_frame_store **out, tgi_err *err);
void tgi_frame_store_close(tgi_frame_store **s);

/* 1: the item is there. */
int tgi_frame_store_has(const tgi_frame_store *s, int kind, int64_t frame);
/* Room for a new item, held: to be filled and let go. TG_E_INTERNAL: all slots are held. */
tg_status tgi_frame_store_add(tgi_frame_store *s, int kind, int64_t frame, void **out,
                              tgi_err *err);
/* The item, held until it is let go. */
tg_status tgi_frame_store_get(tgi_frame_store *s, int kind, int64_t frame, const void **out,
                              tgi_err *err);
/* The same, to be changed: what the file has of it is of no use then. */
tg_status tgi_frame_store_edit(tgi_frame_store *s, int kind, int64_t frame, void **out,
                               tgi_err *err);
void tgi_frame_store_let_go(tgi_frame_store *s, int kind, int64_t frame);
/* Forget items of frames below `frame`, which nobody holds; all: INT64_MAX. */
void tgi_frame_store_forget(tgi_frame_store *s, int64_t frame);
void tgi_frame_store_forget_of(tgi_frame_store *s, int kind, int64_t frame); /* of one kind */
/* Items that were written to the file, and read from it. */
void tgi_frame_store_moved(const tgi_frame_store *s, int64_t *written, int64_t *read);

#endif
