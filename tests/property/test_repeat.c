/* A job that is run again and again on one handle takes no more than it took the first time:
 * the mappings of this process, its open files, and disk blocks of files that have no name any
 * more are counted before and after. */
#include "tests/unit/job_help.h"

#include <sys/stat.h>

#define HEADS TG_SOURCE_DIR "/tests/golden/heads/"

typedef struct held {
    int64_t mappings, mapped_nameless; /* bytes of files without a name that are mapped, */
    int64_t files, nameless;           /* or open */
    size_t bytes;                      /* of our own memory */
} held;

static void count_mappings(held *h)
{
    char line[4600];
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long from = 0, to = 0;
        if (!strchr(line, '/') || sscanf(line, "%llx-%llx", &from, &to) != 2)
            continue; /* the allocator's own come and go */
        h->mappings++;
        h->mapped_nameless += strstr(line, "(deleted)") ? (int64_t)(to - from) : 0;
    }
    if (f)
        fclose(f);
}

#define MOST_FILES 1024
static unsigned char inherited[MOST_FILES]; /* whoever started the test may write to them */

static void find_inherited(void)
{
    struct stat st;
    for (int fd = 0; fd < MOST_FILES; fd++)
        inherited[fd] = fstat(fd, &st) == 0;
}

static void count_files(held *h)
{
    for (int fd = 0; fd < MOST_FILES; fd++) {
        struct stat st;
        if (inherited[fd] || fstat(fd, &st) != 0)
            continue;
        h->files++;
        h->nameless +=
            S_ISREG(st.st_mode) && st.st_nlink == 0 ? (int64_t)st.st_blocks * 512 : 0;
    }
}

static held look(void)
{
    held h = {0};
    tgi_mem_stats m;
    tgi_mem_trim();
    count_mappings(&h);
    count_files(&h);
    tgi_mem_get_stats(&m);
    h.bytes = m.live_bytes;
    return h;
}

/* Run the job of NAME, VALUE pairs on one handle until nothing new is opened for the first
 * time, then many times more. */
static void check_repeats(tg_status want, const char *name, ...)
{
    enum { FIRST = 2, MORE = 12 };
    va_list ap;
    tg_job *job = NULL;
    held before = {0};
    va_start(ap, name);
    tg_opts *o = opts_of(ap);
    va_end(ap);
    (void)name;
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    for (int i = 0; job && i < FIRST + MORE; i++) {
        tg_run_result r = {.size = sizeof r};
        if (i == FIRST)
            before = look();
        const tg_status st = tg_job_run(job, &r);
        if (st != (i ? want : TG_OK))
            fprintf(stderr, "run %d: %s\n", i, tg_ctx_detail(ctx));
        CHECK_EQ(st, i ? want : TG_OK);
    }
    const held after = look();
    CHECK_EQ(after.mappings, before.mappings);
    CHECK_EQ(after.mapped_nameless, before.mapped_nameless);
    CHECK_EQ(after.files, before.files);
    CHECK_EQ(after.nameless, before.nameless);
    CHECK_EQ(after.bytes, before.bytes);
    tg_job_close(&job);
    tg_opts_free(&o);
}

static void make_inputs(void)
{
    const tgi_desc d = {TG_DTYPE_F32, 4, {1, 64, 96, 3}},
                   image = {TG_DTYPE_F32, 3, {64, 96, 3}};
    static float x[64 * 96 * 3];
    tgi_err err = {0};
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(in_folder("x.npy"), &d, x, &err), err);
    CHECK_OK(tgi_npy_save(in_folder("picture.npy"), &image, x, &err), err);
    CHECK_COPY(TG_OK, "input", in_folder("picture.npy"), "axes", "YXS", "output",
               in_folder("picture.tif"));
}

static const char *out_folder(void)
{
    static char dir[160];
    snprintf(dir, sizeof dir, "%s/out/", folder);
    return dir;
}

static void empty_out_folder(void)
{
    static const char *const names[] = {"enhanced", "mask", "mean", "table"};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            char path[256];
            snprintf(path, sizeof path, "%s%s.%s", out_folder(), names[i], k ? "tif" : "npy");
            unlink(path);
        }
    CHECK_EQ(rmdir(out_folder()), 0); /* nothing else was left in it */
}

static void test_arrays_to_a_folder(void)
{
    check_repeats(TG_OK, "", "model", HEADS "model.onnx", "input", in_folder("x.npy"), "output",
                  out_folder(), "yes", "true", "ram", "1GiB", NULL);
    empty_out_folder();
}

static void test_an_image_to_a_folder(void)
{
    check_repeats(TG_OK, "", "model", HEADS "model.onnx", "input", in_folder("picture.tif"),
                  "output", out_folder(), "yes", "true", "ram", "1GiB", NULL);
    empty_out_folder();
}

static void test_an_image_to_an_image(void)
{
    check_repeats(TG_OK, "", "model", HEADS "model.onnx", "input", in_folder("picture.tif"),
                  "output", in_folder("y.tif"), "yes", "true", "ram", "1GiB", NULL);
}

static void test_runs_that_are_refused(void)
{
    check_repeats(TG_E_EXISTS, "", "model", HEADS "model.onnx", "input", in_folder("x.npy"),
                  "output", out_folder(), "ram", "1GiB", NULL);
    empty_out_folder();
    check_repeats(TG_E_EXISTS, "", "model", HEADS "model.onnx", "input",
                  in_folder("picture.tif"), "output", in_folder("z.tif"), "ram", "1GiB", NULL);
}

/* A folder where an output would be: said before anything is computed, -y or not. */
static void test_a_folder_in_an_outputs_place(void)
{
    char path[256];
    snprintf(path, sizeof path, "%smask.npy", out_folder());
    CHECK(mkdir(out_folder(), 0777) == 0 && mkdir(path, 0777) == 0);
    tg_opts *o = NULL;
    tg_job *job = NULL;
    const char *const set[][2] = {{"model", HEADS "model.onnx"},
                                  {"input", in_folder("x.npy")},
                                  {"output", out_folder()},
                                  {"yes", "true"}};
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        CHECK_EQ(tg_opts_set(o, set[i][0], set[i][1]), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_run(job, NULL), TG_E_EXISTS);
    CHECK(strstr(tg_ctx_detail(ctx), "is a folder") != NULL);
    tg_job_close(&job);
    tg_opts_free(&o);
    CHECK(rmdir(path) == 0 && rmdir(out_folder()) == 0); /* nothing else is there */
}

int main(void)
{
    find_inherited();
    help_open();
    make_inputs();
    RUN(test_arrays_to_a_folder);
    RUN(test_an_image_to_a_folder);
    RUN(test_an_image_to_an_image);
    RUN(test_runs_that_are_refused);
    RUN(test_a_folder_in_an_outputs_place);
    help_close();
    return TEST_END();
}
