/* journal_file.h - what stands in OUT.journal, and how it is read and written. Private to
 * journal.c, which decides when.
 *
 *     0      head: "TGJRNL" and two digits           tells our files from strangers, and their
 *                                                    format (TGI_JOURNAL_FORMAT) from others
 *     8      tiles begun, 8 bytes and the same inverted: a running count, not part of any
 *            promise (see below)
 *     24     frames of a film that are done, in the same way: with the encoder, maybe lost by a stop
 *     40     what frames of the film that was read have beside their pixels (bits), in the same way
 *     3584   checksum of the whole input, once it was read to its end
 *     4096   slot 0 \  {sequence, tiles, file length, places of the texts, checksums};
 *     8192   slot 1 /  written in turn, the valid one with the higher sequence counts
 *     12288  job text, statistics text, then one record per tile:
 *            {tile id, length, checksum}, in the order of the tiles in OUT.partial
 *
 * The count says how many tiles were begun by all the runs that worked on this output; what
 * exceeds its tiles was computed more than once. It is kept while the run computes, so it
 * survives a kill; nothing syncs it, so after a power failure it may be behind.
 *
 * Whoever changes what stands here, or what it means, raises the number: a run goes on with
 * journals of its own number only. */
#ifndef TGI_JOURNAL_FILE_H
#define TGI_JOURNAL_FILE_H

#include "engine/base/sha256.h"
#include "engine/out/bad_tiles.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_JOURNAL_HEAD "TGJRNL"
#define TGI_JOURNAL_TEXTS 12288u

typedef struct tgi_journal_record {
    uint64_t tile;
    uint32_t length, check;
} tgi_journal_record;

typedef struct tgi_journal_text {
    uint64_t at, bytes;
    uint32_t check, pad;
} tgi_journal_text;

/* On disk as in memory: a journal does not travel between machines of other byte order (the
 * magic number would not match, and it would be refused as damaged). */
typedef struct tgi_journal_slot {
    uint64_t magic, sequence;
    uint64_t n_tiles, file_bytes;
    uint64_t records_at;
    tgi_journal_text job, stats;
    tgi_bad_state bad;      /* of OUT.errors.partial, when the slot was written */
    uint32_t records_check; /* of all n records */
    uint32_t front_check;   /* of the front of zeros: the layout */
    uint32_t final;         /* 1: OUT.partial is complete and durable; 2: so is OUT.made */
    uint32_t final_check;   /* then: of the front with the offsets; 2: of all of OUT.made */
    uint32_t made_bytes;    /* 2: the size of OUT.made, its low 32 bits */
    uint32_t check;         /* of all above */
} tgi_journal_slot;
_Static_assert(sizeof(tgi_journal_record) == 16 && sizeof(tgi_journal_slot) <= 512,
               "records and slots are tight");

/* What the run that worked on the output last said of itself when it began. Nobody goes on with it; it
 * is synced with the next slot. */
typedef struct tgi_journal_about {
    int64_t process, tiles_before, tiles_in_all;
    double began;                  /* by the clock of the day */
    char input[1024], model[1024]; /* as the command named them, cut where they are longer */
    uint32_t segment; /* of a film: frames that are made again together; 0: no film */
    uint32_t check;   /* of all above */
} tgi_journal_about;
_Static_assert(sizeof(tgi_journal_about) <= 3584 - 64, "it ends before the input's checksum");

/* Of all of the input as the runs have read it: what the whole must still be where time and ends do
 * not tell. It lies in one sector, and is synced with the next slot. */
typedef struct tgi_journal_input {
    char sha256[TGI_SHA256_TEXT];
    char zero[3];
    uint32_t check; /* of all above */
} tgi_journal_input;
_Static_assert(sizeof(tgi_journal_input) <= 512,
               "one sector, which ends before the first slot");

typedef struct tgi_journal_file {
    int fd;     /* -1: closed */
    char *name; /* OUT.journal */
} tgi_journal_file;

/* What a look at the file found. `slot` holds when `found`; the texts are the finder's to free,
 * with a 0 behind them. */
typedef struct tgi_journal_found {
    int head; /* it has one: a run of ours was here, and what lies beside it is of that */
    int found;
    int tried;  /* places of slots that are not zero; 2 also where the head is damaged */
    int format; /* another than ours, which is not read; 0: ours, or nothing */
    tgi_journal_slot slot;
    void *job, *stats;
} tgi_journal_found;

/* Open (or create) and lock the file. TG_E_BUSY another process holds it, the detail names
 * `output`; TG_E_EXISTS it is no journal. On a filesystem without locks: TG_OK without one. */
tg_status tgi_journal_file_lock(tgi_journal_file *f, const char *output, tgi_err *err);
/* Find the newest slot that holds, with its records and texts. Where the head is damaged none is looked
 * for. TG_E_FORMAT: not our file: neither its head is near to ours, nor has it a slot of ours. */
tg_status tgi_journal_file_look(const tgi_journal_file *f, tgi_journal_found *out,
                                tgi_err *err);

/* 0: there is none that holds. */
int tgi_journal_file_about(const tgi_journal_file *f, tgi_journal_about *out);
/* What cannot be written is lost. The checksum is filled in. */
void tgi_journal_file_set_about(const tgi_journal_file *f, tgi_journal_about *a);

/* The same of the input's checksum; 0: it is not known. */
int tgi_journal_file_input(const tgi_journal_file *f, char sha256[TGI_SHA256_TEXT]);
void tgi_journal_file_set_input(const tgi_journal_file *f, const char *sha256);

/* Write the head, and nothing else stays in the file. */
tg_status tgi_journal_file_head(const tgi_journal_file *f, tgi_err *err);
/* Write the slot into the place that its sequence number says, with magic and checksum. */
tg_status tgi_journal_file_slot(const tgi_journal_file *f, tgi_journal_slot *s, tgi_err *err);
/* Write a text at `at` and say in *ref where it is. */
tg_status tgi_journal_file_text(const tgi_journal_file *f, const void *text, size_t n,
                                uint64_t at, tgi_journal_text *ref, tgi_err *err);
/* Where record i of a slot stands. */
uint64_t tgi_journal_record_at(const tgi_journal_slot *s, int64_t i);

/* The running counts. None fails: what cannot be read is 0, what cannot be written is lost. */
int64_t tgi_journal_file_begun(const tgi_journal_file *f);
void tgi_journal_file_set_begun(const tgi_journal_file *f, int64_t n);
int64_t tgi_journal_file_frames(const tgi_journal_file *f);
void tgi_journal_file_set_frames(const tgi_journal_file *f, int64_t n);
int64_t tgi_journal_file_beside(const tgi_journal_file *f);
void tgi_journal_file_set_beside(const tgi_journal_file *f, int64_t bits);

#endif
