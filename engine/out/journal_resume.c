/* journal_resume.c - an interrupted output: its records taken over, its tiles read back, the
 * damaged ones written again (invariants 3 and 7 of journal.c). */
#include "engine/out/journal_inside.h"

#include "engine/base/mem.h"
#include "io/crc32c.h"
#include "io/file_ops.h"

#include <string.h>

/* ---- Go on ------------------------------------------------------------------------------- */

/* Take over records [0, n) up to the first that is no tile of this layout. */
static tg_status take_records(tgi_journal *j, int64_t n, tgi_err *err)
{
    memset(j->offset, 0, (size_t)j->layout->n_tiles * sizeof *j->offset);
    memset(j->length, 0, (size_t)j->layout->n_tiles * sizeof *j->length);
    j->appended = 0;
    j->records_check = j->data_check = 0;
    j->file_bytes = j->layout->front_bytes;
    for (int64_t i = 0; i < n; i++) {
        tgi_journal_record *r = &j->pending[i % TGI_JOURNAL_PENDING];
        if (i % TGI_JOURNAL_PENDING == 0) {
            const size_t many =
                (size_t)(n - i < TGI_JOURNAL_PENDING ? n - i : TGI_JOURNAL_PENDING);
            TGI_TRY(tgi_file_pread(j->file.fd, j->file.name, r, many * sizeof *r,
                                   tgi_journal_record_at(&j->s, i), err));
        }
        if (r->tile >= (uint64_t)j->layout->n_tiles || j->offset[r->tile] || !r->length ||
            r->length > j->layout->tile_bound)
            return TG_OK;
        j->offset[r->tile] = j->file_bytes;
        j->length[r->tile] = r->length;
        j->file_bytes += r->length;
        j->records_check = tgi_crc32c(j->records_check, r, sizeof *r);
        j->data_check = tgi_crc32c_join(j->data_check, r->check, r->length);
        j->appended++;
    }
    return TG_OK;
}

/* Begin to read back what is there. */
static void check_tiles(tgi_journal *j)
{
    j->check = (tgi_journal_check){.file = &j->file,
                                   .records_at = j->s.records_at,
                                   .n = j->appended,
                                   .records_check = j->records_check,
                                   .data = j->data,
                                   .partial = j->partial,
                                   .at = j->layout->front_bytes,
                                   .length = j->length,
                                   .buffer = j->scratch};
    j->open_check = j->appended > 0;
    tgi_check_begin(&j->check);
}

tg_status tgi_journal_recheck(tgi_journal *j,
                              tg_status (*tick)(void *user, double fraction, tgi_err *err),
                              void *user, int64_t *n_damaged, tgi_err *err)
{
    if (j->open_check)
        TGI_TRY(tgi_check_finish(&j->check, tick, user, err));
    if (j->open_check)
        j->damaged = j->check.damaged;
    j->mending = j->damaged > 0;
    j->open_check = 0;
    *n_damaged = j->damaged;
    return TG_OK;
}

tg_status tgi_journal_resume(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err)
{
    if (j->ready || j->state != TGI_JOURNAL_RESUME)
        return tgi_fail(err, TG_E_INTERNAL, "%s: nothing to resume", j->file.name);
    TGI_TRY(tgi_journal_tables(j, layout, err));
    uint32_t check;
    TGI_TRY(tgi_journal_front(j, 0, 1, &check, err));
    if (check != j->s.front_check)
        return tgi_fail(err, TG_E_CHANGED,
                        "%s: begun with another size, type, tile or compression of the output; "
                        "give -y to discard it and start over",
                        j->partial);
    TGI_TRY(tgi_journal_unlink_there(j->made,
                                     err)); /* of a run that was stopped while it made it */
    TGI_TRY(tgi_file_open(j->partial, &j->data, err));
    TGI_TRY(tgi_file_alone(j->data, j->partial, err));
    /* The slot may have been read from a page that never reached the disk (invariant 3). */
    TGI_TRY(tgi_journal_file_slot(&j->file, &j->s, err));
    TGI_TRY(tgi_journal_sync_file(j, err));
    const int64_t n = (int64_t)j->s.n_tiles;
    TGI_TRY(take_records(j, n, err));
    if (j->appended < n || j->s.final) {
        tgi_journal_slot s = j->s;
        s.n_tiles = (uint64_t)j->appended;
        s.file_bytes = j->file_bytes;
        s.records_check = j->records_check;
        s.final = s.final_check = s.made_bytes = 0;
        TGI_TRY(tgi_journal_next_slot(j, &s, err));
    }
    TGI_TRY(tgi_file_truncate(j->file.fd, j->file.name,
                              tgi_journal_record_at(&j->s, j->appended), err));
    /* Where it is too short, the tiles that are not there are damaged ones. */
    TGI_TRY(tgi_file_truncate(j->data, j->partial, j->file_bytes, err));
    TGI_TRY(tgi_journal_reserve(j, err));
    TGI_TRY(tgi_journal_front(j, 0, 0, &check, err)); /* finish() may have begun to fill it */
    j->hinted = j->file_bytes;
    j->n_pending = 0;
    j->ready = 1;
    if (j->begun < n) /* lost with the power */
        j->begun = n;
    check_tiles(j);
    return TG_OK;
}

/* ---- Mending ----------------------------------------------------------------------------- */

/* Known once the check is through; until then nobody but that looks at the marks. */
int tgi_journal_is_damaged(const tgi_journal *j, int64_t tile_id)
{
    return j->mending && tile_id >= 0 && tile_id < j->layout->n_tiles &&
           (j->length[tile_id] & TGI_TILE_DAMAGED);
}

static tg_status is_another(tgi_journal *j, int64_t tile_id, const char *how, tgi_err *err)
{
    j->another = 1;
    return tgi_fail(err, TG_E_CHANGED,
                    "%s: tile %lld %s, and computing it again gave other bytes: the "
                    "input, the network or the program is not the one that began it; give "
                    "-y to discard that output and start over",
                    j->partial, (long long)tile_id, how);
}

tg_status tgi_journal_same_tile(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                                tgi_err *err)
{
    tgi_journal_record r;
    TGI_TRY(tgi_file_pread(j->file.fd, j->file.name, &r, sizeof r,
                           tgi_journal_record_at(&j->s, tile_id), err));
    if (r.tile != (uint64_t)tile_id)
        return tgi_fail(err, TG_E_INTERNAL, "%s: tile %lld has another's record", j->file.name,
                        (long long)tile_id);
    return n == r.length && tgi_crc32c(0, bytes, n) == r.check
               ? TG_OK
               : is_another(j, tile_id, "is there", err);
}

/* Write a damaged tile, computed again, into its place; refused where it is not the bytes that
 * its record tells of. */
tg_status tgi_journal_mend(tgi_journal *j, int64_t tile_id, const void *bytes, size_t n,
                           tgi_err *err)
{
    tgi_journal_record r;
    TGI_TRY(tgi_check_record(&j->check, tile_id, &r, err));
    if (n != r.length || tgi_crc32c(0, bytes, n) != r.check)
        return is_another(j, tile_id, "was damaged", err);
    TGI_TRY(tgi_file_pwrite(j->data, j->partial, bytes, n, j->offset[tile_id], err));
    j->length[tile_id] = r.length;
    j->damaged--;
    return TG_OK;
}
