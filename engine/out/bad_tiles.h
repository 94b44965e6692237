/* bad_tiles.h - what of the input could not be decoded, for --on-bad-tile fill.
 *
 * The reader fills such a region with zeros and reports it here. Each new region is written to
 * OUT.errors.partial, durably, before the reading goes on. So it is on the disk before any tile
 * that was computed from it can be safe in the journal.
 *
 * The journal keeps with each of its states how long that file was, and its checksum, and so does
 * each record of a run in stages, where rows are used long before there is a tile. So a
 * resumed run knows all regions without reading them again, or refuses. Lines behind that
 * length belong to tiles that are computed again. At the end the list becomes OUT.errors.json.
 *
 * Nothing is allocated after open: there is room for LISTED regions, further ones are
 * counted. */
#ifndef TGI_BAD_TILES_H
#define TGI_BAD_TILES_H

#include "io/image.h"

typedef struct tgi_bad_tiles tgi_bad_tiles;

/* How far the list is. As it stands in the journal. */
typedef struct tgi_bad_state {
    uint64_t bytes;   /* of OUT.errors.partial that are on the disk */
    uint32_t check;   /* of these */
    uint32_t regions; /* that they list */
    uint32_t beyond;  /* 1: there were more, for which the list has no room */
    uint32_t pad;
} tgi_bad_state;

/* `output` is copied. */
tg_status tgi_bad_tiles_new(const char *output, tgi_bad_tiles **out, tgi_err *err);
/* Before the first read: forget what an earlier, discarded run left (`from` NULL), or go on
 * from there. TG_E_CHANGED  OUT.errors.partial is not what the journal knows of it. */
/* Of a run that writes no files: regions are counted, nothing is listed on the disk. */
void tgi_bad_tiles_only_count(tgi_bad_tiles *b);
tg_status tgi_bad_tiles_begin(tgi_bad_tiles *b, const tgi_bad_state *from, tgi_err *err);
/* The callback of tgi_open_opts; `arg` is the tgi_bad_tiles. Any thread. */
tg_status tgi_bad_tiles_note(void *arg, const tgi_bad_region *r, tgi_err *err);
int64_t tgi_bad_tiles_count(const tgi_bad_tiles *b);
void tgi_bad_tiles_state(tgi_bad_tiles *b, tgi_bad_state *out); /* any thread */
/* Write OUT.errors.json when there are any, naming `input`; `of` is its source, or NULL. A film's frames are named by
 * their own numbers, with their times. */
tg_status tgi_bad_tiles_write(tgi_bad_tiles *b, const char *input, const tgi_source *of,
                              tgi_err *err);
/* The run is over: what is met from here on, by who only looks, is not written. */
void tgi_bad_tiles_end(tgi_bad_tiles *b);
/* OUT.errors.partial is of no use any more: the output is finished, or abandoned. */
void tgi_bad_tiles_clear(tgi_bad_tiles *b);
tg_status tgi_bad_tiles_remove(const tgi_bad_tiles *b, tgi_err *err); /* the same */
void tgi_bad_tiles_free(tgi_bad_tiles **b);                           /* NULL is fine */

/* The output is begun anew, with (`b`) or without (NULL) a list: what an earlier one left is
 * removed. */
tg_status tgi_bad_tiles_begin_output(tgi_bad_tiles *b, const char *output, tgi_err *err);
/* 1: nothing is there, or a list of ours, under this name of OUT.errors.partial. */
int tgi_bad_tiles_ours(const char *path);
/* 1 when an interrupted run has filled regions of this output. */
int tgi_bad_tiles_left(const char *output);
/* 1: the list is OUT.errors.json, and OUT.errors.partial is gone: the output had its name. */
int tgi_bad_tiles_settled(const tgi_bad_tiles *b);
/* What the run that filled n regions answers, its output in place. */
tg_status tgi_bad_tiles_verdict(int64_t n, const char *input, const tgi_source *of,
                                const char *output, tgi_err *err);

#endif
