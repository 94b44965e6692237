/* fuzz_journal.c - any bytes as OUT.journal, beside an OUT.partial that may fit it. Whatever
 * they say, the run that finds them goes on, starts over or refuses with a reason; what it
 * calls finished has all its tiles.
 *
 * Checksums would keep a fuzzer out, so the target writes them anew where the first byte asks
 * for it, those of tiles as if they were zeros. The rest of the first byte says whether
 * OUT.partial is there, and how it is. */
#include "engine/out/journal.h"
#include "engine/out/journal_file.h"
#include "io/crc32c.h"
#include "tests/fuzz/fuzz_target.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { TILES = 4, FIX = 1, NO_PARTIAL = 2, ZEROS = 4, IS_FINISHED = 8, OVERWRITE = 16 };
enum { FIX_TILES = 32 };
static uint8_t zeros[4096];
static char folder[] = "/dev/shm/tg_fuzz_XXXXXX", path[64], partial[80], name[80];
static tgi_sink_layout *layout;
static uint32_t front_check;

static void remove_all(void)
{
    unlink(path);
    unlink(partial);
    unlink(name);
    rmdir(folder);
}

static tg_status check_part(void *arg, const void *bytes, size_t n, tgi_err *err)
{
    (void)arg;
    (void)err;
    front_check = tgi_crc32c(front_check, bytes, n);
    return TG_OK;
}

static void set_up(void)
{
    static const tgi_sink_spec spec = {.dtype = TG_DTYPE_U8,
                                       .axes = "YX",
                                       .shape = {32, 32},
                                       .tile_h = 16,
                                       .tile_w = 16,
                                       .compression = TGI_COMPRESSION_LZW};
    static char scratch[TGI_SINK_SCRATCH];
    tgi_err err = {0};
    if (!mkdtemp(folder) || tgi_sink_layout_make(&spec, &layout, &err) != TG_OK ||
        tgi_sink_front(layout, NULL, NULL, scratch, check_part, NULL, &err) != TG_OK)
        abort();
    snprintf(path, sizeof path, "%s/o.tif", folder);
    snprintf(partial, sizeof partial, "%s.partial", path);
    snprintf(name, sizeof name, "%s.journal", path);
    atexit(remove_all);
}

static uint32_t part_check(const uint8_t *d, size_t n, uint64_t at, uint64_t bytes,
                           uint32_t old)
{
    return at <= n && bytes <= n - at ? tgi_crc32c(0, d + at, bytes) : old;
}

/* Tiles of zeros are what the slot's records tell of. */
static void fix_tiles(const tgi_journal_slot *s, uint8_t *d, size_t n)
{
    for (uint64_t i = 0; i < s->n_tiles && i < TILES; i++) {
        tgi_journal_record r;
        const uint64_t at = s->records_at + i * sizeof r;
        if (at > n || n - at < sizeof r)
            return;
        memcpy(&r, d + at, sizeof r);
        r.check = tgi_crc32c(0, zeros, r.length < sizeof zeros ? r.length : sizeof zeros);
        memcpy(d + at, &r, sizeof r);
    }
}

/* Make what the slots say about themselves true, as far as it lies in the file. */
static void fix_checks(uint8_t *d, size_t n, int tiles)
{
    for (size_t at = 4096; at <= 8192; at += 4096) {
        tgi_journal_slot s;
        if (n < at + sizeof s)
            return;
        memcpy(&s, d + at, sizeof s);
        if (tiles)
            fix_tiles(&s, d, n);
        s.job.check = part_check(d, n, s.job.at, s.job.bytes, s.job.check);
        s.stats.check = part_check(d, n, s.stats.at, s.stats.bytes, s.stats.check);
        if (s.n_tiles <= n)
            s.records_check = part_check(
                d, n, s.records_at, s.n_tiles * sizeof(tgi_journal_record), s.records_check);
        s.front_check = front_check;
        s.check = tgi_crc32c(0, &s, offsetof(tgi_journal_slot, check));
        memcpy(d + at, &s, sizeof s);
    }
}

static void write_file(const char *file, const void *bytes, size_t n)
{
    const int fd = open(file, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

/* What a run does with what it finds. */
static tg_status go_on(tgi_journal *j, tgi_err *err)
{
    static uint8_t tile[64];
    size_t n;
    (void)tgi_journal_job(j, &n);
    (void)tgi_journal_stats(j, &n);
    if (tgi_journal_state(j) == TGI_JOURNAL_FINISHED)
        return tgi_journal_clear_finished(j, err);
    if (tgi_journal_state(j) == TGI_JOURNAL_RESUME)
        TGI_TRY(tgi_journal_resume(j, layout, err));
    else
        TGI_TRY(tgi_journal_begin(j, layout, "job", 3, err));
    if (tgi_journal_appended(j) > TILES || tgi_journal_committed(j) > TILES)
        abort();
    for (int64_t id = 0; id < TILES; id++)
        if (!tgi_journal_has_tile(j, id))
            TGI_TRY(tgi_journal_append(j, id, tile, sizeof tile, err));
    int64_t damaged;
    TGI_TRY(tgi_journal_recheck(j, NULL, NULL, &damaged, err));
    for (int64_t id = 0; id < TILES; id++)
        if (!tgi_journal_has_tile(j, id))
            TGI_TRY(tgi_journal_append(j, id, tile, sizeof tile, err));
    TGI_TRY(tgi_journal_finish(j, err));
    struct stat st;
    if (stat(path, &st) || (uint64_t)st.st_size < layout->front_bytes + TILES)
        abort();
    return TG_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!layout)
        set_up();
    if (n < 1)
        return 0;
    const unsigned how = data[0];
    uint8_t *d = malloc(n);
    memcpy(d, data + 1, n - 1);
    if (how & FIX)
        fix_checks(d, n - 1, how & FIX_TILES);
    write_file(name, d, n - 1);
    free(d);
    if (!(how & NO_PARTIAL))
        write_file(partial, zeros, how & ZEROS ? sizeof zeros : 0);
    if (how & IS_FINISHED)
        write_file(path, zeros, sizeof zeros);
    tgi_err err = {0};
    tgi_journal *j = NULL;
    tg_status st = tgi_journal_open(path, how & OVERWRITE ? 1 : 0, NULL, &j, &err);
    if (st == TG_OK)
        st = go_on(j, &err);
    tgi_journal_close(&j);
    fuzz_check(st, &err);
    unlink(path);
    unlink(partial);
    unlink(name);
    tgi_mem_stats mem;
    tgi_mem_get_stats(&mem);
    if (mem.live_blocks > 4) /* the layout stays */
        abort();
    return 0;
}
