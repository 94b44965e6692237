/* journal_look.c - what a journal knows, and what it is told that no tile depends on: of an open one (journal.h). */
#include "engine/base/clock.h"
#include "engine/out/journal_inside.h"
#include "io/file_ops.h"

#include <stdio.h>
#include <unistd.h>

/* ---- How far it is ----------------------------------------------------------------------- */

const tgi_bad_state *tgi_journal_bad(const tgi_journal *j)
{
    return &j->s.bad;
}

int64_t tgi_journal_begun(const tgi_journal *j)
{
    return j->begun;
}

int64_t tgi_journal_appended(const tgi_journal *j)
{
    return j->appended;
}

int64_t tgi_journal_committed(const tgi_journal *j)
{
    return (int64_t)j->s.n_tiles;
}

uint64_t tgi_journal_file_bytes(const tgi_journal *j)
{
    return j->file_bytes;
}

/* ---- Its tiles --------------------------------------------------------------------------- */

tg_status tgi_journal_read_tile(const tgi_journal *j, int64_t tile_id, void *bytes, size_t cap,
                                size_t *n, tgi_err *err)
{
    if (!tgi_journal_has_tile(j, tile_id) || j->length[tile_id] > cap)
        return tgi_fail(err, TG_E_INTERNAL, "tile %lld is not there", (long long)tile_id);
    *n = j->length[tile_id];
    return tgi_file_pread(j->data, j->partial, bytes, *n, j->offset[tile_id], err);
}

tg_status tgi_journal_read_head(const tgi_journal *j, int64_t tile_id, void *bytes, size_t n,
                                tgi_err *err)
{
    if (tgi_journal_tile_bytes(j, tile_id) < n)
        return tgi_fail(err, TG_E_FORMAT, "tile %lld is not there", (long long)tile_id);
    return tgi_file_pread(j->data, j->partial, bytes, n, j->offset[tile_id], err);
}

size_t tgi_journal_tile_bytes(const tgi_journal *j, int64_t tile_id)
{
    return tgi_journal_has_tile(j, tile_id) ? j->length[tile_id] : 0;
}

int tgi_journal_has_tile(const tgi_journal *j, int64_t tile_id)
{
    return j->offset && tile_id >= 0 && tile_id < j->layout->n_tiles &&
           j->offset[tile_id] != 0 && !tgi_journal_is_damaged(j, tile_id);
}

/* ---- What others may read meanwhile ------------------------------------------------------ */

void tgi_journal_say_frames(const tgi_journal *j, int64_t n)
{
    tgi_journal_file_set_frames(&j->file, n);
}

int64_t tgi_journal_beside(const tgi_journal *j)
{
    return tgi_journal_file_beside(&j->file);
}

void tgi_journal_say_beside(const tgi_journal *j, int64_t bits)
{
    tgi_journal_file_set_beside(&j->file, bits);
}

void tgi_journal_input_sum(const tgi_journal *j, char sha256[TGI_SHA256_TEXT])
{
    if (!tgi_journal_file_input(&j->file, sha256))
        sha256[0] = 0;
}

void tgi_journal_say_input(const tgi_journal *j, const char *sha256)
{
    tgi_journal_file_set_input(&j->file, sha256);
}

int tgi_journal_is_sealed(const tgi_journal *j)
{
    return j->s.final != 0;
}

void tgi_journal_introduce(const tgi_journal *j, const char *input, const char *model,
                           int segment)
{
    tgi_journal_about a = {.process = getpid(),
                           .tiles_before = j->appended,
                           /* of a finished one nobody asks */
                           .tiles_in_all = j->layout ? j->layout->n_tiles : j->appended,
                           .began = tgi_day_seconds(),
                           .segment = (uint32_t)segment};
    snprintf(a.input, sizeof a.input, "%s", input ? input : "");
    snprintf(a.model, sizeof a.model, "%s", model ? model : "");
    tgi_journal_file_set_about(&j->file, &a);
}
