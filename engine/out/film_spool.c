/* film_spool.c - see film_spool.h. */
#include "engine/out/film_spool.h"

#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/file_ops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 8 /* bytes in front of a record */

static char *joined(const char *output, const char *ending)
{
    const size_t cap = strlen(output) + strlen(ending) + 1;
    char *to = tgi_malloc(TGI_TAG_IO, cap);
    if (to)
        snprintf(to, cap, "%s%s", output, ending);
    return to;
}

/* What a run from a file to a file left is no spool, and nothing of it is thrown away unasked. */
static tg_status refuse_interrupted(const char *output, tgi_err *err)
{
    char *journal = joined(output, ".journal");
    if (!journal)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of an output");
    const int there = access(journal, F_OK) == 0;
    tgi_free(journal);
    return there
               ? tgi_fail(err, TG_E_EXISTS,
                          "%s.journal is of an interrupted run out of a file: give its command "
                          "again, or remove it and %s.partial",
                          output, output)
               : TG_OK;
}

tg_status tgi_film_spool_open(const char *output, int replace, tgi_film_spool *out,
                              tgi_err *err)
{
    *out = TGI_FILM_SPOOL_CLOSED;
    TGI_TRY(refuse_interrupted(output, err));
    char *partial = joined(output, ".partial");
    out->made = joined(output, ".made");
    if (!partial || !out->made) {
        tgi_free(partial);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of an output");
    }
    out->left = tgi_file_nearly_begins(partial, TGI_PART_MARK, TGI_PART_MARK_BYTES);
    tgi_free(partial);
    if (!out->left && access(out->made, F_OK) == 0)
        return tgi_file_in_the_way(out->made, err);
    const tgi_part_spec part = {
        .path = output, .ending = ".partial", .bytes = TGI_PART_GROWS, .replace = replace};
    TGI_TRY(tgi_part_create(&part, &out->part, err));
    out->end = out->at = TGI_PART_MARK_BYTES;
    return TG_OK;
}

tg_status tgi_film_spool_add(tgi_film_spool *s, const void *record, size_t n, int64_t late,
                             tgi_err *err)
{
    uint8_t length[LENGTH];
    tgi_save64(length, n, false);
    TGI_TRY(tgi_part_write(&s->part, s->end, length, sizeof length, err));
    TGI_TRY(tgi_part_write(&s->part, s->end + LENGTH, record, n, err));
    s->end += LENGTH + n;
    s->longest = n > s->longest ? n : s->longest;
    s->delay = late > s->delay ? late : s->delay;
    s->n++;
    return TG_OK;
}

tg_status tgi_film_spool_read(tgi_film_spool *s, int64_t i, void *room, size_t cap, size_t *n,
                              tgi_err *err)
{
    uint8_t length[LENGTH];
    if (i == 0) {
        s->next = 0;
        s->at = TGI_PART_MARK_BYTES;
    }
    if (i != s->next || i >= s->n)
        return tgi_fail(err, TG_E_INTERNAL, "%s: record %lld of %lld, and %lld is next",
                        s->part.told, (long long)i, (long long)s->n, (long long)s->next);
    TGI_TRY(tgi_file_pread(s->part.fd, s->part.told, length, sizeof length, s->at, err));
    const uint64_t bytes = tgi_load64(length, false);
    if (bytes > cap)
        return tgi_fail(err, TG_E_CHANGED, "%s was changed while it was in use", s->part.told);
    *n = (size_t)bytes;
    TGI_TRY(tgi_file_pread(s->part.fd, s->part.told, room, *n, s->at + LENGTH, err));
    s->at += LENGTH + bytes;
    s->next++;
    return TG_OK;
}

tg_status tgi_film_spool_clear_made(const tgi_film_spool *s, tgi_err *err)
{
    return s->left && tgi_file_begins(s->made, "", 0) ? tgi_file_unlink(s->made, err) : TG_OK;
}

/* What a stopped run left goes together: without its .partial nobody would know whose the other is. */
void tgi_film_spool_close(tgi_film_spool *s)
{
    tgi_err ignored = {0};
    if (s->part.fd >= 0 && s->made)
        (void)tgi_film_spool_clear_made(s, &ignored);
    tgi_part_drop(&s->part);
    tgi_free(s->made);
    *s = TGI_FILM_SPOOL_CLOSED;
}
