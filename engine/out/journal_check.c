/* journal_check.c - reads tiles back on a thread of the lowest priority and compares their
 * checksums. */
#include "engine/out/journal_check.h"
#include "engine/base/cancel.h"

#include "io/crc32c.h"
#include "io/file_ops.h"

#include <tegula.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The buffer: some records, then room for a piece of a tile. */
#define RECORDS 256
#define RECORD_BYTES (RECORDS * sizeof(tgi_journal_record))
#define PIECE (TGI_CHECK_BUFFER - RECORD_BYTES)
#define TICK_EVERY 64 /* pieces: some megabytes */

/* ---- Tiles, beside the run --------------------------------------------------------------- */

/* Record i, out of the buffer's records. */
static tg_status load_record(tgi_journal_check *c, int64_t i, tgi_journal_record *out,
                             tgi_err *err)
{
    if (c->loaded < 0 || i < c->loaded || i >= c->loaded + RECORDS) {
        const int64_t first = i / RECORDS * RECORDS;
        const size_t n = (size_t)(c->n - first < RECORDS ? c->n - first : RECORDS);
        c->loaded = -1;
        TGI_TRY(tgi_file_pread(c->file->fd, c->file->name, c->buffer, n * sizeof *out,
                               c->records_at + (uint64_t)first * sizeof *out, err));
        c->loaded = first;
    }
    memcpy(out, c->buffer + (size_t)(i - c->loaded) * sizeof *out, sizeof *out);
    return TG_OK;
}

/* The tile of this record has been read, or cannot be. */
static void end_tile(tgi_journal_check *c, const tgi_journal_record *r, int holds)
{
    if (!holds) {
        c->length[r->tile] |= TGI_TILE_DAMAGED;
        c->damaged++;
    }
    c->records_sum = tgi_crc32c(c->records_sum, r, sizeof *r);
    c->at += c->left;
    c->left = c->sum = 0;
    c->next++;
}

/* A piece of a tile. A part of the file that cannot be read, or is not there, is damaged. */
static int step(void *arg)
{
    tgi_journal_check *c = arg;
    tgi_journal_record r;
    if (c->next == c->n)
        return 0;
    if (load_record(c, c->next, &r, NULL) != TG_OK) {
        c->failed = 1;
        return 0;
    }
    if (!c->left)
        c->left = r.length;
    const uint32_t n = c->left < PIECE ? c->left : PIECE;
    char *piece = c->buffer + RECORD_BYTES;
    if (tgi_file_pread(c->data, c->partial, piece, n, c->at, NULL) != TG_OK) {
        end_tile(c, &r, 0);
        return 1;
    }
    c->sum = tgi_crc32c(c->sum, piece, n);
    c->at += n;
    c->left -= n;
    if (!c->left)
        end_tile(c, &r, c->sum == r.check);
    return 1;
}

void tgi_check_begin(tgi_journal_check *c)
{
    c->loaded = -1;
    if (c->n)
        tgi_beside_start(&c->beside, step, c);
}

tg_status tgi_check_finish(tgi_journal_check *c,
                           tg_status (*tick)(void *user, double fraction, tgi_err *err),
                           void *user, tgi_err *err)
{
    tgi_beside_stop(&c->beside);
    c->failed = 0; /* what the thread could not read is tried once more */
    for (int64_t k = 1; step(c); k++)
        if (tick && k % TICK_EVERY == 0)
            TGI_TRY(tick(user, (double)c->next / (double)c->n, err));
    tgi_journal_record r;
    if (c->failed)
        TGI_TRY(load_record(c, c->next, &r, err));
    if (c->next < c->n || c->records_sum != c->records_check)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: its records changed while the run went on; run the same command "
                        "again",
                        c->file->name);
    return TG_OK;
}

void tgi_check_stop(tgi_journal_check *c)
{
    tgi_beside_stop(&c->beside);
}

tg_status tgi_check_record(tgi_journal_check *c, int64_t tile, tgi_journal_record *out,
                           tgi_err *err)
{
    for (int64_t k = 0; k < c->n; k++) {
        c->next = c->next < c->n ? c->next : 0;
        TGI_TRY(load_record(c, c->next++, out, err));
        if (out->tile == (uint64_t)tile)
            return TG_OK;
    }
    return tgi_fail(err, TG_E_INTERNAL, "%s: no record of tile %lld", c->file->name,
                    (long long)tile);
}

/* ---- Whole files ------------------------------------------------------------------------- */

/* Checksum of the next n bytes. */
static tg_status sum_of(int fd, const char *path, void *buffer, uint64_t *at, uint64_t n,
                        uint32_t *check, tgi_err *err)
{
    *check = 0;
    while (n) {
        const size_t piece = n < TGI_CHECK_BUFFER ? (size_t)n : TGI_CHECK_BUFFER;
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "stopped by %s", tgi_cancel_by());
        TGI_TRY(tgi_file_pread(fd, path, buffer, piece, *at, err));
        *check = tgi_crc32c(*check, buffer, piece);
        *at += piece;
        n -= piece;
    }
    return TG_OK;
}

tg_status tgi_check_file(const char *path, void *buffer, uint32_t *check, uint64_t *bytes,
                         tgi_err *err)
{
    int fd;
    uint64_t at = 0;
    TGI_TRY(tgi_file_open(path, &fd, err));
    tg_status st = tgi_file_size(fd, path, bytes, err);
    if (st == TG_OK)
        st = sum_of(fd, path, buffer, &at, *bytes, check, err);
    close(fd);
    return st;
}

static tg_status read_record(const tgi_journal_file *f, const tgi_journal_slot *s, int64_t i,
                             tgi_journal_record *out, tgi_err *err)
{
    return tgi_file_pread(f->fd, f->name, out, sizeof *out, tgi_journal_record_at(s, i), err);
}

/* The front, which carries all offsets and lengths and ends where the first tile begins; then
 * tile by tile. */
static tg_status tiles_hold(const tgi_journal_file *f, const tgi_journal_slot *s, int fd,
                            const char *path, void *buffer, int *yes, tgi_err *err)
{
    tgi_journal_record r;
    uint64_t total = 0, at = 0;
    uint32_t check;
    const int64_t n = (int64_t)s->n_tiles;
    for (int64_t i = 0; i < n; i++) {
        TGI_TRY(read_record(f, s, i, &r, err));
        total += r.length;
    }
    if (total > s->file_bytes)
        return TG_OK;
    TGI_TRY(sum_of(fd, path, buffer, &at, s->file_bytes - total, &check, err));
    *yes = check == s->final_check;
    for (int64_t i = 0; i < n && *yes; i++) {
        TGI_TRY(read_record(f, s, i, &r, err));
        TGI_TRY(sum_of(fd, path, buffer, &at, r.length, &check, err));
        *yes = check == r.check;
    }
    return TG_OK;
}

tg_status tgi_check_output(const tgi_journal_file *f, const tgi_journal_slot *s,
                           const char *path, void *buffer, int *yes, tgi_err *err)
{
    struct stat st;
    uint32_t check;
    uint64_t bytes;
    int fd;
    *yes = 0;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return TG_OK;
    if (s->final == 2) { /* made of the tiles */
        if ((uint32_t)st.st_size != s->made_bytes)
            return TG_OK;
        TGI_TRY(tgi_check_file(path, buffer, &check, &bytes, err));
        *yes = check == s->final_check;
        return TG_OK;
    }
    if ((uint64_t)st.st_size != s->file_bytes)
        return TG_OK;
    TGI_TRY(tgi_file_open(path, &fd, err));
    const tg_status t = tiles_hold(f, s, fd, path, buffer, yes, err);
    close(fd);
    return t;
}
