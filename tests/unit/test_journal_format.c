/* The bytes of a journal, and of what a run in stages writes beside it, change together with the
 * number of their format: whoever changes the first without the second lets an older tegula's files
 * be read as what they are not. */
#include "engine/base/versions.h"
#include "engine/job/stage_state.h"
#include "engine/out/journal.h"
#include "engine/out/journal_file.h"
#include "engine/out/stage_log.h"
#include "io/crc32c.h"
#include "tests/tg_test.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* A checksum of what the journal below holds, for each number. A new number gets a new line, an
 * old line is never changed. */
static const struct {
    int format;
    uint32_t check;
} known[] = {{1, 0xbd76aaeau}, {2, 0x8ef3ef34u},  {3, 0xe274bf36u}, {4, 0x6a10fb65u},
             {5, 0x0697ab67u}, {6, 0xb31e5b61u},  {7, 0x83cff2e7u}, {8, 0xf9ebf1a2u},
             {9, 0x956ca1a0u}, {10, 0x72b21d06u}, {11, 0x1e354d04u}};

enum { TILES = 4 };

static void write_tiles(tgi_journal *j, const tgi_sink_layout *l, tgi_err *e)
{
    uint8_t tile[64 * 64];
    for (int i = 0; i < TILES; i++) {
        memset(tile, 10 * i + 1, sizeof tile);
        CHECK_OK(tgi_journal_append(j, (i + 1) % TILES, tile, l->tile_bytes, e), *e);
    }
    CHECK_OK(tgi_journal_sync(j, e), *e);
}

/* The front of an output names this version of tegula, and where it lies depends on that: both
 * are no matter of the journal's format. */
static void forget_front(uint8_t *bytes, size_t n)
{
    for (size_t at = 4096; at <= 8192; at += 4096) {
        tgi_journal_slot s;
        if (n < at + sizeof s)
            continue;
        memcpy(&s, bytes + at, sizeof s);
        s.front_check = s.check = 0;
        s.file_bytes = 0;
        memcpy(bytes + at, &s, sizeof s);
    }
}

/* Of a fixed process and time. */
static void write_about(const char *output)
{
    char name[80];
    tgi_journal_about a = {
        .process = 7, .tiles_in_all = TILES, .began = 1, .input = "i", .model = "m"};
    snprintf(name, sizeof name, "%s.journal", output);
    const tgi_journal_file f = {.fd = open(name, O_RDWR), .name = name};
    CHECK(f.fd >= 0);
    tgi_journal_file_set_about(&f, &a);
    tgi_journal_file_set_frames(&f, 3);
    tgi_journal_file_set_beside(&f, 5);
    tgi_journal_file_set_input(
        &f, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
    close(f.fd);
}

static void test_bytes_and_number_agree(void)
{
    tgi_err e = {0};
    char folder[] = "/tmp/tg_format_XXXXXX", path[64], name[80];
    tgi_sink_layout *l = NULL;
    tgi_journal *j = NULL;
    const tgi_sink_spec spec = {
        .dtype = TG_DTYPE_U8, .axes = "YX", .shape = {32, 32}, .tile_h = 16, .tile_w = 16};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/out.tif", folder);
    CHECK_OK(tgi_sink_layout_make(&spec, &l, &e), e);
    CHECK_EQ(l->n_tiles, TILES);
    CHECK_OK(tgi_journal_open(path, 0, NULL, &j, &e), e);
    CHECK_OK(tgi_journal_begin(j, l, "job=1\n", 6, &e), e);
    CHECK_OK(tgi_journal_set_stats(j, "statistics", 10, &e), e);
    write_tiles(j, l, &e);
    tgi_journal_close(&j);
    write_about(path);

    static uint8_t bytes[65536];
    snprintf(name, sizeof name, "%s.journal", path);
    FILE *f = fopen(name, "rb");
    CHECK(f != NULL);
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    forget_front(bytes, n);
    const uint32_t check = tgi_crc32c(0, bytes, n);
    int found = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].format == TGI_JOURNAL_FORMAT) {
            found = 1;
            if (known[i].check != check)
                printf("the bytes of a journal are others (%08x): raise TGI_JOURNAL_FORMAT and "
                       "add a line here\n",
                       (unsigned)check);
            CHECK_EQ(known[i].check, check);
        }
    CHECK(found);
    unlink(name);
    snprintf(name, sizeof name, "%s.partial", path);
    unlink(name);
    rmdir(folder);
    tgi_sink_layout_free(&l);
}

/* The same of OUT.stages, since 5. A record is its owner's: here its size, and where things stand in
 * it, are written. */
static const struct {
    int format;
    uint32_t check;
} stages[] = {{5, 0x3294d6b0u}, {6, 0x7b067364u},  {7, 0xbf2c3d87u}, {8, 0xd51879f2u},
              {9, 0x11323711u}, {10, 0x58a092c5u}, {11, 0x9c8adc26u}};

static void test_stages_and_number_agree(void)
{
    tgi_err e = {0};
    char folder[] = "/tmp/tg_format_XXXXXX", path[64], name[80];
    static uint8_t bytes[65536];
    tgi_stage_log *l = NULL;
    const tgi_stage_owner owner = {.job = 5, .kept = "/scratch/out.kept"};
    uint32_t record[] = {sizeof(tgi_stage_record),
                         offsetof(tgi_stage_record, plan),
                         offsetof(tgi_stage_record, stage),
                         offsetof(tgi_stage_record, cut),
                         offsetof(tgi_stage_record, at_cell),
                         offsetof(tgi_stage_record, process)};
    const tgi_stage_part part = {record, sizeof record};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/out.tif", folder);
    snprintf(name, sizeof name, "%s" TGI_STAGES_END, path);
    CHECK_OK(tgi_stage_log_open(path, &owner, sizeof record, &l, &e), e);
    for (int i = 0; i < 2; i++)
        CHECK_OK(tgi_stage_log_write(l, &part, 1, &e), e);
    tgi_stage_log_close(&l);
    FILE *f = fopen(name, "rb");
    CHECK(f != NULL);
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    const uint32_t check = tgi_crc32c(0, bytes, n);
    const int at = TGI_JOURNAL_FORMAT - stages[0].format;
    CHECK(at >= 0 && at < (int)(sizeof stages / sizeof stages[0]));
    if (stages[at].check != check)
        printf("the bytes of OUT.stages are others (%08x): raise TGI_JOURNAL_FORMAT and add a "
               "line here\n",
               (unsigned)check);
    CHECK_EQ(stages[at].check, check);
    CHECK_OK(tgi_stage_log_discard(path, &e), e);
    CHECK(rmdir(folder) == 0); /* nothing is left */
}

int main(void)
{
    RUN(test_stages_and_number_agree);
    RUN(test_bytes_and_number_agree);
    return TEST_END();
}
