/* A stop is not a loss: fail, kill and tear every system call of a run in turn; the next run
 * ends with the bytes of an undisturbed one and repeats no more than was not yet safe. */
#include "engine/out/commit.h"
#include "engine/out/journal.h"
#include "io/file_ops.h"
#include "tests/tg_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { N_TILES = 12, SYNC_EVERY = 3, ALWAYS_KILL = -2 };
static const char job[] = "{\"model\": 1}", stats[] = "{\"mean\": 0.5}";
static char folder[] = "/dev/shm/tg_journal_XXXXXX", other_folder[] = "/tmp/tg_journal_XXXXXX";
static char path[64], partial[80], name[80];

/* Shared with children: what happened before they died. */
static struct shared {
    int64_t calls;     /* file operations so far */
    int64_t appended;  /* tiles appended by this run */
    int64_t committed; /* of all runs, when last asked */
    int64_t first;     /* sequence number this run began with */
    int64_t damaged;   /* tiles of earlier runs that did not hold */
} * now;
static int64_t fail_at;
static int fail_with;

static int hook(tgi_file_op op, const char *file)
{
    (void)op;
    (void)file;
    if (++now->calls != fail_at)
        return 0;
    if (fail_with == ALWAYS_KILL) {
        kill(getpid(), SIGKILL);
        pause();
    }
    return fail_with;
}

static tgi_sink_layout *layout_of(tgi_compression c)
{
    tgi_err e = {0};
    tgi_sink_layout *l = NULL;
    const tgi_sink_spec s = {.dtype = TG_DTYPE_U8,
                             .axes = "ZYX",
                             .shape = {2, 40, 48},
                             .tile_h = 16,
                             .tile_w = 32,
                             .compression = c};
    CHECK_OK(tgi_sink_layout_make(&s, &l, &e), e);
    CHECK_EQ(l->n_tiles, N_TILES);
    return l;
}

/* The bytes of tile `id`; lengths differ when the layout says compressed (no codec runs here:
 * the journal does not care what the bytes mean). */
static size_t tile_of(const tgi_sink_layout *l, int64_t id, uint8_t *bytes)
{
    uint64_t seed = 99 + (uint64_t)id;
    const size_t n = l->compression ? 100 + (size_t)id * 13 : l->tile_bytes;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)tg_rand(&seed);
    return n;
}

/* Tile ids in an order that is not theirs: every plan has its own. */
static int64_t id_of(int64_t seq)
{
    return (seq * 5 + 3) % N_TILES;
}

static tg_status start(tgi_journal *j, const tgi_sink_layout *l, tgi_err *err)
{
    size_t n;
    const void *text = tgi_journal_job(j, &n);
    if (tgi_journal_state(j) == TGI_JOURNAL_RESUME) {
        CHECK(n == sizeof job && !memcmp(text, job, n));
        TGI_TRY(tgi_journal_resume(j, l, err));
    } else {
        TGI_TRY(tgi_journal_begin(j, l, job, sizeof job, err));
    }
    text = tgi_journal_stats(j, &n);
    if (!n && !tgi_journal_appended(j))
        return tgi_journal_set_stats(j, stats, sizeof stats, err);
    CHECK(n == sizeof stats && !memcmp(text, stats, n)); /* never lost once there are tiles */
    return TG_OK;
}

static tg_status append_all(tgi_journal *j, const tgi_sink_layout *l, int64_t stop,
                            tgi_err *err)
{
    static uint8_t bytes[4096];
    now->first = tgi_journal_appended(j);
    for (int64_t s = now->first; s < stop; s++) {
        CHECK(!tgi_journal_has_tile(j, id_of(s)));
        const size_t n = tile_of(l, id_of(s), bytes);
        TGI_TRY(tgi_journal_append(j, id_of(s), bytes, n, err));
        now->appended++;
        now->committed = tgi_journal_committed(j);
    }
    return TG_OK;
}

/* What earlier runs wrote and what was damaged since is appended once more. */
static tg_status mend(tgi_journal *j, const tgi_sink_layout *l, tgi_err *err)
{
    static uint8_t bytes[4096];
    TGI_TRY(tgi_journal_recheck(j, NULL, NULL, &now->damaged, err));
    int64_t missing = 0;
    for (int64_t id = 0; id < N_TILES; id++)
        if (!tgi_journal_has_tile(j, id)) {
            missing++;
            const size_t n = tile_of(l, id, bytes);
            TGI_TRY(tgi_journal_append(j, id, bytes, n, err));
            CHECK(tgi_journal_has_tile(j, id));
        }
    CHECK_EQ(missing, now->damaged);
    return TG_OK;
}

/* One run as the engine does it. */
static tg_status run_once(const tgi_sink_layout *l, int overwrite, tgi_err *err)
{
    const tgi_journal_policy policy = {.tiles = SYNC_EVERY, .seconds = 1e9};
    tgi_journal *j = NULL;
    now->appended = now->first = now->damaged = 0;
    tg_status st = tgi_journal_open(path, overwrite, &policy, &j, err);
    if (st != TG_OK)
        return st;
    if (tgi_journal_state(j) == TGI_JOURNAL_FINISHED) {
        st = tgi_journal_clear_finished(j, err);
    } else if ((st = start(j, l, err)) == TG_OK &&
               (st = append_all(j, l, N_TILES, err)) == TG_OK &&
               (st = mend(j, l, err)) == TG_OK) {
        st = tgi_journal_finish(j, err);
    }
    tgi_journal_close(&j);
    return st;
}

static void clean(void)
{
    unlink(path);
    unlink(partial);
    unlink(name);
}

static int there(const char *file)
{
    struct stat st;
    return !stat(file, &st);
}

static uint8_t *slurp(const char *file, size_t *n)
{
    FILE *f = fopen(file, "rb");
    *n = 0;
    uint8_t *p = malloc(1 << 20);
    if (f) {
        *n = fread(p, 1, 1 << 20, f);
        fclose(f);
    }
    return p;
}

static uint8_t *expected;
static size_t expected_bytes;

static int64_t undisturbed(const tgi_sink_layout *l)
{
    tgi_err e = {0};
    clean();
    free(expected);
    now->calls = fail_at = 0;
    CHECK_OK(run_once(l, 0, &e), e);
    expected = slurp(path, &expected_bytes);
    CHECK(expected_bytes > l->front_bytes);
    clean();
    return now->calls;
}

/* The output is there, equal, and nothing else is. */
static void check_done(void)
{
    size_t n;
    uint8_t *p = slurp(path, &n);
    CHECK(n == expected_bytes && !memcmp(p, expected, n));
    CHECK(!there(partial) && !there(name));
    free(p);
}

static void fail_every_call(tgi_compression c, int answer, tg_status want)
{
    tgi_sink_layout *l = layout_of(c);
    const int64_t calls = undisturbed(l);
    CHECK(calls > 30);
    for (int64_t k = 1; k <= calls; k++) {
        tgi_err e = {0};
        now->calls = 0;
        fail_at = k;
        fail_with = answer;
        const tg_status st = run_once(l, 0, &e);
        const int64_t safe = now->committed;
        /* The name appears by the rename alone: only syncing the folder and removing the
         * journal come behind it. */
        CHECK(st == want || st == TG_E_IO);
        CHECK(k >= calls - 1 || !there(path));
        fail_at = 0;
        memset(&e, 0, sizeof e);
        CHECK_OK(run_once(l, 0, &e), e);
        if (now->appended)
            CHECK(now->first >= (now->first ? safe : 0));
        check_done();
        clean();
    }
    tgi_sink_layout_free(&l);
}

static void test_every_call_may_fail_and_the_next_run_completes(void)
{
    fail_every_call(TGI_COMPRESSION_NONE, EIO, TG_E_IO);
    fail_every_call(TGI_COMPRESSION_LZW, EIO, TG_E_IO);
}

static void test_a_full_disk_is_named_and_resumed(void)
{
    fail_every_call(TGI_COMPRESSION_NONE, ENOSPC, TG_E_NO_SPACE);
    fail_every_call(TGI_COMPRESSION_LZW, EDQUOT, TG_E_NO_SPACE);
}

/* A run in a child that is killed in front of (or inside) its k-th call. */
static int killed_at(const tgi_sink_layout *l, int64_t k, int how)
{
    const pid_t child = fork();
    if (!child) {
        tgi_err e = {0};
        now->calls = 0;
        fail_at = k;
        fail_with = how;
        run_once(l, 0, &e);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static void kill_every_call(tgi_compression c, int how)
{
    tgi_sink_layout *l = layout_of(c);
    const int64_t calls = undisturbed(l);
    for (int64_t k = 1; k <= calls; k++) {
        now->committed = 0;
        CHECK(killed_at(l, k, how));
        const int64_t written = now->first + now->appended, safe = now->committed;
        tgi_err e = {0};
        now->calls = fail_at = 0;
        CHECK_OK(run_once(l, 0, &e), e);
        if (now->appended) {
            /* What is done twice: at most what lay behind the last sync. */
            CHECK(now->first >= safe);
            CHECK(written - now->first <= SYNC_EVERY);
        }
        check_done();
        clean();
    }
    tgi_sink_layout_free(&l);
}

static void test_a_kill_at_any_call_costs_at_most_what_was_not_synced(void)
{
    kill_every_call(TGI_COMPRESSION_NONE, ALWAYS_KILL);
    kill_every_call(TGI_COMPRESSION_LZW, ALWAYS_KILL);
    kill_every_call(TGI_COMPRESSION_LZW, TGI_FILE_TORN);
}

/* Killed again and again, at every call of the run that resumes. */
static void test_a_kill_during_resume_is_resumed(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    const int64_t calls = undisturbed(l);
    for (int64_t k = 1; k <= calls; k += 5)
        for (int64_t again = 1; again < 40; again += 3) {
            CHECK(killed_at(l, k, ALWAYS_KILL));
            killed_at(l, again, TGI_FILE_TORN); /* or it completes: nothing was left to do */
            tgi_err e = {0};
            now->calls = fail_at = 0;
            if (!there(path) || there(name))
                CHECK_OK(run_once(l, 0, &e), e);
            check_done();
            clean();
        }
    tgi_sink_layout_free(&l);
}

/* Before the first tile there may be work to go on with (job/stage_state.h). The records' place is then
 * behind the end of the file, unless the texts end there by chance. */
static void test_a_journal_without_tiles_is_gone_on_with(void)
{
    static const char text[200] = {'j'};
    tgi_err e = {0};
    tgi_journal *j = NULL;
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_NONE);
    for (size_t n = 1; n <= 130; n++) {
        clean();
        CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
        CHECK_OK(tgi_journal_begin(j, l, text, n, &e), e);
        tgi_journal_close(&j);
        CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
        CHECK_EQ(tgi_journal_state(j), TGI_JOURNAL_RESUME);
        tgi_journal_close(&j);
    }
    clean();
    tgi_sink_layout_free(&l);
}

/* ---- Damage ------------------------------------------------------------------------------ */

/* Leave a run stopped after `tiles`, all synced. */
static void stop_after(const tgi_sink_layout *l, int64_t tiles)
{
    tgi_err e = {0};
    const tgi_journal_policy policy = {.tiles = SYNC_EVERY, .seconds = 1e9};
    tgi_journal *j = NULL;
    clean();
    CHECK_OK(tgi_journal_open(path, 0, &policy, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    CHECK_OK(append_all(j, l, tiles, &e), e);
    CHECK_OK(tgi_journal_sync(j, &e), e);
    CHECK_EQ(tgi_journal_committed(j), tiles);
    tgi_journal_close(&j);
}

static void flip_bits(const char *file, off_t at, uint8_t bits)
{
    const int fd = open(file, O_RDWR);
    uint8_t b = 0;
    CHECK(pread(fd, &b, 1, at) == 1);
    b ^= bits;
    CHECK(pwrite(fd, &b, 1, at) == 1);
    close(fd);
}

static void flip(const char *file, off_t at)
{
    flip_bits(file, at, 0x10);
}

static void completes_from_at_least(const tgi_sink_layout *l, int64_t tiles)
{
    tgi_err e = {0};
    CHECK_OK(run_once(l, 0, &e), e);
    CHECK(now->first >= tiles);
    check_done();
    clean();
}

static void test_damage_to_one_slot_falls_back_to_the_other(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    undisturbed(l);
    for (int slot = 0; slot < 2; slot++)
        for (off_t at = 0; at < 144; at += 9) {
            stop_after(l, 7);
            flip(name, 4096 + 4096 * slot + at);
            completes_from_at_least(l, 6); /* the slot before counted six */
        }
    stop_after(l, 7);
    flip(name, 4100);
    flip(name, 8200);
    tgi_err e = {0};
    CHECK_STATUS(run_once(l, 0, &e), TG_E_FORMAT, e);
    CHECK(there(partial) && there(name)); /* a person decides */
    clean();
    tgi_sink_layout_free(&l);
}

/* All tiles of the stopped run are kept, but `damaged`, which are written again. */
static void completes_with(const tgi_sink_layout *l, int64_t first, int64_t damaged)
{
    completes_from_at_least(l, first);
    CHECK_EQ(now->first, first);
    CHECK_EQ(now->damaged, damaged);
}

static void damaged_tiles_are_written_again(tgi_compression c)
{
    tgi_sink_layout *l = layout_of(c);
    undisturbed(l);
    struct stat st;
    stop_after(l, 8);
    flip(partial, (off_t)l->front_bytes + 5); /* the first tile */
    completes_with(l, 8, 1);
    stop_after(l, 8);
    CHECK(!stat(partial, &st));
    flip(partial, (off_t)l->front_bytes + 5);
    flip(partial, st.st_size - 1); /* and the last */
    completes_with(l, 8, 2);
    stop_after(l, N_TILES);
    CHECK(!stat(partial, &st));
    for (off_t at = (off_t)l->front_bytes; at < st.st_size; at += 97) { /* each byte's tile */
        stop_after(l, N_TILES);
        flip_bits(partial, at, (uint8_t)(1u << at % 8));
        completes_with(l, N_TILES, 1);
    }
    stop_after(l, 8); /* somebody cut the data */
    CHECK(!stat(partial, &st) && !truncate(partial, st.st_size - 1));
    completes_with(l, 8, 1);
    stop_after(l, 8);
    CHECK(!truncate(partial, 0));
    completes_with(l, 8, 8);
    stop_after(l, N_TILES); /* garbage behind the end, as a crash may leave it */
    FILE *f = fopen(partial, "ab");
    CHECK(f && fwrite("garbage", 1, 7, f) == 7 && !fclose(f));
    completes_with(l, N_TILES, 0);
    stop_after(l, 8);
    unlink(partial); /* the data are gone: from the beginning */
    completes_with(l, 0, 0);
    tgi_sink_layout_free(&l);
}

static void test_damaged_tiles_are_written_again_in_their_places(void)
{
    damaged_tiles_are_written_again(TGI_COMPRESSION_NONE);
    damaged_tiles_are_written_again(TGI_COMPRESSION_LZW);
}

static void test_damaged_records_and_lengths_fall_back(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    undisturbed(l);
    struct stat st;
    stop_after(l, 8);
    CHECK(!stat(name, &st));
    flip(name, st.st_size - 3); /* the last record: only the slot before holds */
    completes_with(l, 6, 0);
    stop_after(l,
               8); /* the first record, now of another tile: no slot holds, a person decides */
    CHECK(!stat(name, &st));
    flip_bits(name, st.st_size - 8 * 16, 4);
    tgi_err e = {0};
    CHECK_STATUS(run_once(l, 0, &e), TG_E_FORMAT, e);
    stop_after(l, 8);
    CHECK(!stat(name, &st) && !truncate(name, st.st_size - 1));
    completes_with(l, 6, 0);
    tgi_sink_layout_free(&l);
}

/* Computed again, a tile must be what it was: else another input or program is at work. */
static void test_a_damaged_tile_takes_back_only_what_it_was(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    static uint8_t bytes[4096];
    tgi_journal *j = NULL;
    tgi_err e = {0};
    int64_t damaged = 0;
    size_t before, after;
    undisturbed(l);
    stop_after(l, 8);
    flip(partial, (off_t)l->front_bytes + 5);
    uint8_t *was = slurp(partial, &before);
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    CHECK_OK(append_all(j, l, N_TILES, &e), e);
    const int64_t id = id_of(0);
    CHECK(tgi_journal_has_tile(j, id)); /* until the check is through, it is taken for good */
    CHECK_STATUS(tgi_journal_finish(j, &e), TG_E_INTERNAL, e);
    memset(&e, 0, sizeof e);
    CHECK_OK(tgi_journal_recheck(j, NULL, NULL, &damaged, &e), e);
    CHECK(damaged == 1 && !tgi_journal_has_tile(j, id));
    const size_t n = tile_of(l, id, bytes);
    CHECK_STATUS(tgi_journal_append(j, id, bytes, n - 1, &e), TG_E_CHANGED, e);
    bytes[9] ^= 1;
    memset(&e, 0, sizeof e);
    CHECK_STATUS(tgi_journal_append(j, id, bytes, n, &e), TG_E_CHANGED, e);
    memset(&e, 0, sizeof e);
    CHECK_STATUS(tgi_journal_finish(j, &e), TG_E_INTERNAL, e);
    CHECK(!there(path));
    uint8_t *is = slurp(partial, &after);
    CHECK(after > before &&
          !memcmp(was + l->front_bytes, is + l->front_bytes, before - l->front_bytes));
    bytes[9] ^= 1;
    memset(&e, 0, sizeof e);
    CHECK_OK(tgi_journal_append(j, id, bytes, n, &e), e);
    CHECK_OK(tgi_journal_finish(j, &e), e);
    tgi_journal_close(&j);
    check_done();
    free(was);
    free(is);
    clean();
    tgi_sink_layout_free(&l);
}

/* A kill while damaged tiles are written again: at every call, in front of it and inside. */
static void test_a_kill_while_mending_is_resumed(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    undisturbed(l);
    for (int64_t k = 1; k < 60; k++) {
        stop_after(l, 8);
        for (off_t at = 0; at < 400; at += 100)
            flip(partial, (off_t)l->front_bytes + at);
        killed_at(l, k, TGI_FILE_TORN);
        tgi_err e = {0};
        now->calls = fail_at = 0;
        if (!there(path) || there(name))
            CHECK_OK(run_once(l, 0, &e), e);
        check_done();
        clean();
    }
    tgi_sink_layout_free(&l);
}

/* Between the rename and the end of the journal the output is read, all of it. */
static void test_a_finished_output_that_was_damaged_is_none(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    struct stat st;
    const int64_t calls = undisturbed(l);
    for (off_t at = 0; at < (off_t)expected_bytes; at += 61) {
        tgi_err e = {0};
        CHECK(killed_at(l, calls, ALWAYS_KILL)); /* in front of removing the journal */
        CHECK(there(path) && there(name) && !there(partial));
        flip(path, at);
        now->calls = fail_at = 0;
        CHECK_STATUS(run_once(l, 0, &e), TG_E_CHANGED, e);
        CHECK(there(name));
        memset(&e, 0, sizeof e);
        CHECK_OK(run_once(l, 1, &e), e);
        CHECK(!stat(path, &st));
        check_done();
        clean();
    }
    tgi_sink_layout_free(&l);
}

/* Journals of another number: a cure, and with -y a beginning. */
static void test_a_journal_of_another_form_is_not_gone_on_with(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    tgi_err e = {0};
    undisturbed(l);
    stop_after(l, 8);
    flip_bits(name, 7, 1); /* 03 -> 02 */
    CHECK_EQ(run_once(l, 0, &e), TG_E_CHANGED);
    CHECK(strstr(e.text, "another tegula") && strstr(e.text, "-y"));
    CHECK(there(partial) && there(name));
    memset(&e, 0, sizeof e);
    CHECK_OK(run_once(l, 1, &e), e);
    CHECK_EQ(now->first, 0);
    check_done();
    tgi_sink_layout_free(&l);
}

static void test_a_strangers_file_is_left_alone(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_NONE);
    tgi_err e = {0};
    clean();
    FILE *f = fopen(name, "wb");
    CHECK(f && fputs("dear diary", f) >= 0 && !fclose(f));
    CHECK_STATUS(run_once(l, 1, &e), TG_E_EXISTS, e);
    size_t n;
    uint8_t *p = slurp(name, &n);
    CHECK(n == 10 && !memcmp(p, "dear diary", 10));
    free(p);
    clean();
    tgi_sink_layout_free(&l);
}

static void test_another_layout_is_refused(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_NONE),
                    *other = layout_of(TGI_COMPRESSION_LZW);
    tgi_err e = {0};
    stop_after(l, 7);
    CHECK_STATUS(run_once(other, 0, &e), TG_E_CHANGED, e);
    undisturbed(l);
    stop_after(l, 7);
    completes_from_at_least(l, 7);
    tgi_sink_layout_free(&l);
    tgi_sink_layout_free(&other);
}

/* ---- Names and locks --------------------------------------------------------------------- */

static void test_an_existing_output_is_replaced_only_on_request_and_at_the_end(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_NONE);
    tgi_err e = {0};
    undisturbed(l);
    FILE *f = fopen(path, "wb");
    CHECK(f && fputs("old", f) >= 0 && !fclose(f));
    CHECK_STATUS(run_once(l, 0, &e), TG_E_EXISTS, e);
    CHECK(!there(name) && !there(partial));
    tgi_journal *j = NULL;
    CHECK_OK(tgi_journal_open(path, 1, NULL, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    CHECK_OK(append_all(j, l, N_TILES, &e), e);
    size_t n;
    uint8_t *p = slurp(path, &n);
    CHECK_EQ(n, 3);
    free(p);
    CHECK_OK(tgi_journal_finish(j, &e), e);
    tgi_journal_close(&j);
    check_done();
    /* And one that appears while we run is not overwritten. */
    clean();
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    CHECK_OK(append_all(j, l, N_TILES, &e), e);
    f = fopen(path, "wb");
    CHECK(f && !fclose(f));
    CHECK_STATUS(tgi_journal_finish(j, &e), TG_E_EXISTS, e);
    tgi_journal_close(&j);
    unlink(path);
    completes_from_at_least(l, N_TILES);
    tgi_sink_layout_free(&l);
}

static void test_a_second_process_finds_the_output_busy(void)
{
    tgi_err e = {0};
    tgi_journal *j = NULL, *second = NULL;
    clean();
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    const pid_t child = fork();
    if (!child)
        _exit(tgi_journal_open(path, 0, NULL, &second, &e) == TG_E_BUSY ? 42 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    CHECK_STATUS(tgi_journal_open(path, 0, NULL, &second, &e), TG_E_BUSY, e);
    tgi_journal_close(&j);
    CHECK(!there(name)); /* looked at, never begun: no trace */
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    tgi_journal_close(&j);
}

/* ---- The window -------------------------------------------------------------------------- */

static void test_an_error_of_the_disk_reaches_producers_and_keeps_what_was_safe(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_NONE);
    undisturbed(l);
    tgi_err e = {0};
    tgi_journal *j = NULL;
    tgi_commit *c = NULL;
    void *memory = NULL;
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    if (posix_memalign(&memory, 64, tgi_commit_bytes(l, 2, 1)))
        return;
    const tgi_commit_opts o = {tgi_journal_tiles(j), l, 2, 1, memory};
    now->calls = 0;
    fail_at = 5; /* four tiles fit, the fifth write does not */
    fail_with = ENOSPC;
    CHECK_OK(tgi_commit_open(&o, &c, &e), e);
    tg_status st = TG_OK;
    for (int64_t s = 0; s < N_TILES && st == TG_OK; s++) {
        void *slot = NULL;
        if ((st = tgi_commit_slot(c, s, &slot, &e)) == TG_OK) {
            tile_of(l, s, slot);
            st = tgi_commit_submit(c, s, s, &e);
        }
    }
    CHECK_EQ(st, TG_E_NO_SPACE);
    memset(&e, 0, sizeof e);
    CHECK_STATUS(tgi_commit_close(&c, &e), TG_E_NO_SPACE, e);
    CHECK_EQ(tgi_journal_committed(j), 4); /* saved although the policy asked for nothing yet */
    tgi_journal_close(&j);
    fail_at = 0;
    free(memory);
    clean();
    tgi_sink_layout_free(&l);
}

static void test_stop_wakes_waiters_and_flush_makes_safe_what_is_in_order(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_LZW);
    tgi_err e = {0};
    tgi_journal *j = NULL;
    tgi_commit *c = NULL;
    void *memory = NULL, *slot = NULL;
    clean();
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    if (posix_memalign(&memory, 64, tgi_commit_bytes(l, 4, 3)))
        return;
    const tgi_commit_opts o = {tgi_journal_tiles(j), l, 4, 3, memory};
    tgi_mem_stats before, after;
    CHECK_OK(tgi_commit_open(&o, &c, &e), e);
    tgi_mem_get_stats(&before);
    static const int64_t order[] = {2, 0, 1}; /* 3 is never filled */
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tgi_commit_slot(c, order[i], &slot, &e), e);
        memset(slot, (int)order[i], l->tile_bytes);
        CHECK_OK(tgi_commit_submit(c, order[i], order[i], &e), e);
    }
    CHECK_OK(tgi_commit_flush(c, &e), e);
    CHECK_EQ(tgi_commit_written(c), 3);
    CHECK_OK(tgi_commit_slot(c, 4, &slot, &e), e);
    CHECK_OK(tgi_commit_submit(c, 4, 4, &e), e); /* behind the gap: given up */
    CHECK_STATUS(tgi_commit_submit(c, 4, 4, &e), TG_E_INTERNAL, e);
    tgi_commit_stop(c);
    CHECK_STATUS(tgi_commit_slot(c, 20, &slot, &e), TG_E_CANCELLED, e);
    tgi_mem_get_stats(&after);
    CHECK_EQ(after.requests, before.requests); /* nothing allocated between open and close */
    CHECK_OK(tgi_commit_close(&c, &e), e);
    CHECK_EQ(tgi_journal_committed(j), 3);
    tgi_journal_close(&j);
    free(memory);
    clean();
    tgi_sink_layout_free(&l);
}

/* A tile that waits is made safe when its time has come, though no other follows. */
static void test_the_time_limit_syncs_without_another_tile(void)
{
    tgi_sink_layout *l = layout_of(TGI_COMPRESSION_NONE);
    tgi_err e = {0};
    tgi_journal *j = NULL;
    tgi_commit *c = NULL;
    void *memory = NULL, *slot = NULL;
    const tgi_journal_policy policy = {.seconds = 0.05};
    clean();
    CHECK_OK(tgi_journal_open(path, 0, &policy, &j, &e), e);
    CHECK_OK(start(j, l, &e), e);
    if (posix_memalign(&memory, 64, tgi_commit_bytes(l, 2, 1)))
        return;
    const tgi_commit_opts o = {tgi_journal_tiles(j), l, 2, 1, memory};
    CHECK_OK(tgi_commit_open(&o, &c, &e), e);
    CHECK_OK(tgi_commit_slot(c, 0, &slot, &e), e);
    CHECK_OK(tgi_commit_submit(c, 0, 0, &e), e);
    /* Seen from outside: the slot of sequence 3 (begin, statistics, this) stands in the file.
     */
    uint64_t sequence = 0;
    for (int i = 0; i < 200 && sequence != 3; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        const int fd = open(name, O_RDONLY);
        CHECK(pread(fd, &sequence, sizeof sequence, 8192 + 8) == sizeof sequence);
        close(fd);
    }
    CHECK_EQ(sequence, 3);
    CHECK_OK(tgi_commit_close(&c, &e), e);
    tgi_journal_close(&j);
    free(memory);
    clean();
    tgi_sink_layout_free(&l);
}

int main(void)
{
    /* In memory where that is possible: hundreds of real fdatasyncs are a minute of waiting. */
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, other_folder)))
        return 1;
    snprintf(path, sizeof path, "%s/out.tif", folder);
    snprintf(partial, sizeof partial, "%s.partial", path);
    snprintf(name, sizeof name, "%s.journal", path);
    now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tgi_file_set_hook(hook);
    RUN(test_every_call_may_fail_and_the_next_run_completes);
    RUN(test_a_full_disk_is_named_and_resumed);
    RUN(test_a_kill_at_any_call_costs_at_most_what_was_not_synced);
    RUN(test_a_kill_during_resume_is_resumed);
    RUN(test_a_journal_without_tiles_is_gone_on_with);
    RUN(test_damage_to_one_slot_falls_back_to_the_other);
    RUN(test_damaged_tiles_are_written_again_in_their_places);
    RUN(test_damaged_records_and_lengths_fall_back);
    RUN(test_a_damaged_tile_takes_back_only_what_it_was);
    RUN(test_a_kill_while_mending_is_resumed);
    RUN(test_a_finished_output_that_was_damaged_is_none);
    RUN(test_a_journal_of_another_form_is_not_gone_on_with);
    RUN(test_a_strangers_file_is_left_alone);
    RUN(test_another_layout_is_refused);
    RUN(test_an_existing_output_is_replaced_only_on_request_and_at_the_end);
    RUN(test_a_second_process_finds_the_output_busy);
    RUN(test_an_error_of_the_disk_reaches_producers_and_keeps_what_was_safe);
    RUN(test_stop_wakes_waiters_and_flush_makes_safe_what_is_in_order);
    RUN(test_the_time_limit_syncs_without_another_tile);
    clean();
    rmdir(folder);
    free(expected);
    return TEST_END();
}
