/* journal_lost.c - files beside a journal that was lost or emptied: are they ours?
 *
 * No other file begins with the front that this command would write: sizes, types and the text
 * of its description stand in it. Offsets and lengths are those of tiles that nobody knows any
 * more, none at first and all of them when the file is complete; so they may be anything. */
#include "engine/out/journal_inside.h"

#include "io/file_ops.h"
#include "io/part.h"

#include <string.h>
#include <unistd.h>

/* A front, compared with a file as it is generated. */
typedef struct front_reader {
    const char *path;
    int fd;
    uint64_t at;
    char any; /* where this is expected, every byte is as good */
} front_reader;

static int is_such(const char *have, const char *want, size_t n, char any)
{
    for (size_t i = 0; i < n; i++)
        if (have[i] != want[i] && want[i] != any)
            return 0;
    return 1;
}

static tg_status compare(void *arg, const void *bytes, size_t n, tgi_err *err)
{
    front_reader *r = arg;
    char have[4096];
    for (size_t k = 0; k < n;) {
        const size_t part = n - k < sizeof have ? n - k : sizeof have;
        TGI_TRY(tgi_file_pread(r->fd, r->path, have, part, r->at, err));
        if (!is_such(have, (const char *)bytes + k, part, r->any))
            return tgi_fail(err, TG_E_CHANGED, "%s: begins otherwise", r->path);
        k += part;
        r->at += part;
    }
    return TG_OK;
}

/* A byte that is fixed is not 0 in the one front or not 0xff in the other, and held there. */
static tg_status compare_both(const tgi_journal *j, const tgi_sink_layout *l, int fd,
                              tgi_err *err)
{
    front_reader zeros = {.path = j->partial, .fd = fd, .any = 0};
    front_reader ones = {.path = j->partial, .fd = fd, .any = (char)0xff};
    TGI_TRY(tgi_sink_front(l, NULL, NULL, j->scratch, compare, &zeros, err));
    return tgi_sink_front_ones(l, j->scratch, compare, &ones, err);
}

static int partial_is_ours(const tgi_journal *j, const tgi_sink_layout *layout)
{
    const tgi_left growing = {.path = j->partial, .begins = TGI_PART_MARK};
    tgi_err none = {0};
    int fd = -1;
    if (tgi_file_is_ours(&growing))
        return 1;
    tg_status st = layout ? tgi_file_open(j->partial, &fd, &none) : TG_E_EXISTS;
    if (st == TG_OK)
        st = tgi_file_alone(fd, j->partial, &none);
    if (st == TG_OK)
        st = compare_both(j, layout, fd, &none);
    if (fd >= 0)
        close(fd);
    return st == TG_OK;
}

/* One that grows has its mark. A complete one begins as its format does, and lies beside the
 * tiles that it was made of. */
static int made_is_ours(const tgi_journal *j)
{
    static const struct {
        const char *bytes;
        size_t n;
    } heads[] = {
        {"", 0}, {"\x89PNG\r\n\x1a\n", 8}, {"\xff\xd8\xff", 3}, {"II*\0", 4}, {"MM\0*", 4}};
    const size_t n = tgi_journal_exists(j->partial) ? sizeof heads / sizeof heads[0] : 1;
    for (size_t i = 0; i < n; i++) {
        const tgi_left left = {.path = j->made,
                               .begins = TGI_PART_MARK,
                               .head = heads[i].bytes,
                               .head_bytes = heads[i].n};
        if (tgi_file_is_ours(&left))
            return 1;
    }
    return 0;
}

tg_status tgi_journal_know(tgi_journal *j, const tgi_sink_layout *layout, tgi_err *err)
{
    if (j->unknown && tgi_journal_exists(j->partial) && !partial_is_ours(j, layout))
        return tgi_file_in_the_way(j->partial, err);
    if (j->unknown && !made_is_ours(j))
        return tgi_file_in_the_way(j->made, err);
    j->unknown = 0;
    return TG_OK;
}
