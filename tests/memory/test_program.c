/* What the program holds beside the library is part of every figure, whatever buffers of the
 * library there are that nobody has touched yet: decoders, rows of a copy, another job's. */
#include "engine/job/copy.h"
#include "engine/job/job.h"
#include "tests/unit/job_help.h"

#define MODEL TG_SOURCE_DIR "/models/tegula_denoise.onnx"
#define MIB ((uint64_t)1 << 20)
#define THEIRS (48 * MIB) /* of the program */
#define MORE (4 * MIB)    /* in what is not touched, at least: it would show */

/* Rows of tiles that take 8 MiB to decode. */
static void make_images(void)
{
    enum { H = 512, W = 16384 };
    const tgi_desc d = {TG_DTYPE_U16, 2, {H, W}};
    tgi_err err = {0};
    void *pixels = calloc((size_t)H * W, 2);
    CHECK(pixels != NULL);
    if (pixels)
        CHECK_OK(tgi_npy_save(in_folder("wide.npy"), &d, pixels, &err), err);
    free(pixels);
    CHECK_COPY(TG_OK, "input", in_folder("wide.npy"), "output", in_folder("wide.tif"),
               "compress", "deflate");
}

static char *hold(void)
{
    char *theirs = malloc(THEIRS);
    for (size_t i = 0; theirs && i < THEIRS; i += 4096)
        ((volatile char *)theirs)[i] = 1;
    CHECK(theirs != NULL);
    return theirs;
}

static tg_job *open_job(void)
{
    tg_opts *o = NULL;
    tg_job *job = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", MODEL), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("wide.tif")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "device", "cpu"), TG_OK);
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    tg_opts_free(&o);
    return job;
}

static uint64_t line_of(tg_job *job, const char *name)
{
    tg_plan_info p = {.size = sizeof p};
    CHECK_EQ(tg_job_plan(job, &p), TG_OK);
    for (size_t i = 0; i < p.n_lines; i++)
        if (strcmp(p.lines[i].name, name) == 0)
            return p.lines[i].bytes;
    return 0;
}

/* Of a job that is opened, with the decoder it has. */
static uint64_t process_of(void)
{
    tg_job *job = open_job();
    CHECK(job && line_of(job, "decoder") >= MORE);
    const uint64_t bytes = line_of(job, "process");
    tg_job_close(&job);
    return bytes;
}

static void a_job_counts_what_the_program_holds(void)
{
    const uint64_t alone = process_of();
    char *theirs = hold();
    const uint64_t with = process_of();
    CHECK(with >= alone + THEIRS - MIB && with <= alone + THEIRS + MIB);
    free(theirs);
}

static void so_does_one_beside_another_job(void)
{
    tg_job *first = open_job();
    const uint64_t alone = process_of();
    char *theirs = hold();
    const uint64_t with = process_of();
    CHECK(with >= alone + THEIRS - MIB && with <= alone + THEIRS + MIB);
    free(theirs);
    tg_job_close(&first);
}

static uint64_t copy_peak(const char *input)
{
    tg_opts *o = NULL;
    uint64_t peak = 0;
    tgi_err err = {0};
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder(input)), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", in_folder("copy.tif")), TG_OK);
    CHECK_OK(tgi_copy_peak(o, &peak, &err), err);
    tg_opts_free(&o);
    return peak;
}

static void a_copy_counts_it_too(void)
{
    static const char *const of[] = {"wide.npy", "wide.tif"};
    for (int i = 0; i < 2; i++) {
        const uint64_t alone = copy_peak(of[i]);
        char *theirs = hold();
        const uint64_t with = copy_peak(of[i]);
        CHECK(with >= alone + THEIRS - MIB && with <= alone + THEIRS + MIB);
        free(theirs);
    }
}

int main(void)
{
    if (TG_SANITIZED)
        return 77; /* its runtime's memory counts as the program's */
    help_open();
    make_images();
    RUN(a_job_counts_what_the_program_holds);
    RUN(so_does_one_beside_another_job);
    RUN(a_copy_counts_it_too);
    help_close();
    return TEST_END();
}
