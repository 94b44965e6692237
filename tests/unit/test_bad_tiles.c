/* The list of what could not be decoded: it is as long as the journal knows, or it is refused.
 */
#include "engine/out/bad_tiles.h"
#include "tests/tg_test.h"

#include <sys/stat.h>

enum { ROOM = 4096 }; /* regions that a list has */
static char folder[] = "/dev/shm/tg_bad_XXXXXX", other_folder[] = "/tmp/tg_bad_XXXXXX";
static char path[64], partial[96], list[96];

static void note(tgi_bad_tiles *b, int64_t i)
{
    tgi_err e = {0};
    const tgi_bad_region r = {.plane = i / 100,
                              .sample = -1,
                              .y0 = 16 * (i % 100),
                              .y1 = 16 * (i % 100) + 16,
                              .x1 = 16,
                              .reason = "deflate: cut off"};
    CHECK_OK(tgi_bad_tiles_note(b, &r, &e), e);
}

static tgi_bad_tiles *begun(const tgi_bad_state *from)
{
    tgi_err e = {0};
    tgi_bad_tiles *b = NULL;
    CHECK_OK(tgi_bad_tiles_new(path, &b, &e), e);
    CHECK_OK(tgi_bad_tiles_begin(b, from, &e), e);
    return b;
}

/* What stands in a file, with a 0 behind it; "" when it is not there. */
static char *text_of(const char *file)
{
    char *p = calloc(1, 1 << 20);
    FILE *f = fopen(file, "rb");
    if (f) {
        CHECK(fread(p, 1, (1 << 20) - 1, f) > 0);
        fclose(f);
    }
    return p;
}

static int64_t lines_of(const char *file)
{
    char *p = text_of(file);
    int64_t n = 0;
    for (const char *c = p; *c; c++)
        n += *c == '\n';
    struct stat st;
    CHECK(stat(file, &st) != 0 || (size_t)st.st_size == strlen(p)); /* no hole of zeros */
    free(p);
    return n;
}

/* Three regions, of which the journal knows two. */
static tgi_bad_state three_noted(void)
{
    tgi_bad_state two;
    tgi_bad_tiles *b = begun(NULL);
    note(b, 0);
    note(b, 1);
    note(b, 1); /* met again */
    tgi_bad_tiles_state(b, &two);
    note(b, 2);
    CHECK(two.regions == 2 && tgi_bad_tiles_count(b) == 3 && lines_of(partial) == 3);
    tgi_bad_tiles_free(&b);
    return two;
}

static void test_what_the_journal_knows_is_taken_over_and_no_more(void)
{
    const tgi_bad_state two = three_noted();
    tgi_bad_state now;
    tgi_bad_tiles *b = begun(&two);
    tgi_bad_tiles_state(b, &now);
    CHECK(tgi_bad_tiles_count(b) == 2 && lines_of(partial) == 2);
    CHECK(now.bytes == two.bytes && now.check == two.check && now.regions == 2);
    note(b, 2); /* its tile is computed again, so it is met again */
    CHECK(tgi_bad_tiles_count(b) == 3 && lines_of(partial) == 3);
    tgi_bad_tiles_free(&b);
}

static void test_a_second_attempt_of_one_process_begins_where_the_first_did(void)
{
    tgi_err e = {0};
    tgi_bad_state two = three_noted(), now;
    tgi_bad_tiles *b = begun(&two);
    note(b, 2);
    for (int attempt = 0; attempt < 3; attempt++) {
        CHECK_OK(tgi_bad_tiles_begin(b, &two, &e), e);
        CHECK(tgi_bad_tiles_count(b) == 2 && lines_of(partial) == 2);
        note(b, 3 + attempt);
        CHECK(tgi_bad_tiles_count(b) == 3 && lines_of(partial) == 3);
    }
    tgi_bad_tiles_state(b, &now);
    CHECK_OK(tgi_bad_tiles_begin(b, &now, &e), e); /* all of it can be read back */
    CHECK_EQ(tgi_bad_tiles_count(b), 3);
    CHECK_OK(tgi_bad_tiles_begin(b, NULL, &e), e);
    CHECK(tgi_bad_tiles_count(b) == 0 && lines_of(partial) == 0);
    tgi_bad_tiles_free(&b);
}

static void refused(const tgi_bad_state *from)
{
    tgi_err e = {0};
    tgi_bad_tiles *b = NULL;
    CHECK_OK(tgi_bad_tiles_new(path, &b, &e), e);
    CHECK_STATUS(tgi_bad_tiles_begin(b, from, &e), TG_E_CHANGED, e);
    tgi_bad_tiles_free(&b);
}

static void test_a_list_that_was_changed_is_refused(void)
{
    for (uint64_t at = 0;; at++) {
        const tgi_bad_state two = three_noted();
        if (at == two.bytes)
            break;
        FILE *f = fopen(partial, "r+b");
        CHECK(f && !fseek(f, (long)at, SEEK_SET));
        const int c = fgetc(f);
        CHECK(!fseek(f, (long)at, SEEK_SET) && fputc(c ^ 1 << at % 7, f) != EOF && !fclose(f));
        refused(&two);
        three_noted();
        CHECK(!truncate(partial, (off_t)at));
        refused(&two);
    }
    const tgi_bad_state two = three_noted();
    unlink(partial);
    refused(&two);
    CHECK(lines_of(partial) == 0);
}

static void test_that_there_were_more_is_not_forgotten(void)
{
    tgi_err e = {0};
    tgi_bad_state all;
    tgi_bad_tiles *b = begun(NULL);
    for (int64_t i = 0; i < ROOM; i++)
        note(b, i);
    tgi_bad_tiles_state(b, &all);
    CHECK(all.regions == ROOM && !all.beyond);
    note(b, ROOM);
    tgi_bad_tiles_state(b, &all);
    CHECK(all.regions == ROOM && all.beyond);
    tgi_bad_tiles_free(&b);
    b = begun(&all);
    CHECK_OK(tgi_bad_tiles_write(b, "in.tif", NULL, &e), e);
    char *text = text_of(list);
    CHECK(strstr(text, "\"more\":true") != NULL);
    free(text);
    tgi_bad_tiles_clear(b);
    tgi_bad_tiles_free(&b);
}

/* The first line may have been torn when it was written; what else lies there is a stranger's.
 */
/* Who only looks at the input, before a run or behind it, leaves nothing beside the output. */
static void test_without_a_run_nothing_is_written(void)
{
    tgi_err e = {0};
    tgi_bad_tiles *b = NULL;
    CHECK_OK(tgi_bad_tiles_new(path, &b, &e), e);
    unlink(partial);
    note(b, 0);
    CHECK(access(partial, F_OK) != 0);
    CHECK_OK(tgi_bad_tiles_begin(b, NULL, &e), e);
    note(b, 0); /* met before, and new to the run */
    CHECK_EQ(lines_of(partial), 1);
    tgi_bad_tiles_end(b);
    note(b, 1);
    CHECK_EQ(lines_of(partial), 1);
    unlink(partial);
    tgi_bad_tiles_free(&b);
}

static void test_a_torn_first_line_is_ours(void)
{
    static const struct {
        const char *text;
        int ours;
    } file[] = {{"", 1},
                {"0 -1 16 32 0 16 deflate: cut off\n", 1},
                {"0 -1 16 32 0 16 deflate: cu", 1},
                {"0 -1 16 3", 1},
                {"0 -", 1},
                {"0", 0},
                {"4711", 0},
                {"0 -1 x", 0},
                {"0 -1 16 32 \n", 0},
                {"my list\n", 0}};
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        FILE *f = fopen(partial, "wb");
        CHECK(f && fputs(file[i].text, f) >= 0 && fclose(f) == 0);
        if (tgi_bad_tiles_ours(partial) != file[i].ours)
            fprintf(stderr, "\"%s\": ours %d\n", file[i].text, !file[i].ours);
        CHECK_EQ(tgi_bad_tiles_ours(partial), file[i].ours);
        unlink(partial);
    }
}

int main(void)
{
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, other_folder)))
        return 1;
    snprintf(path, sizeof path, "%s/out.tif", folder);
    snprintf(partial, sizeof partial, "%s.errors.partial", path);
    snprintf(list, sizeof list, "%s.errors.json", path);
    RUN(test_what_the_journal_knows_is_taken_over_and_no_more);
    RUN(test_a_second_attempt_of_one_process_begins_where_the_first_did);
    RUN(test_a_list_that_was_changed_is_refused);
    RUN(test_that_there_were_more_is_not_forgotten);
    RUN(test_without_a_run_nothing_is_written);
    RUN(test_a_torn_first_line_is_ours);
    unlink(partial);
    unlink(list);
    rmdir(folder);
    return TEST_END();
}
