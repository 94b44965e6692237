/* in_memory.c - run a network over pixels in memory: one job for many frames.
 *
 *     in_memory MODEL WIDTH HEIGHT FRAMES
 *
 * The network takes and gives one channel. Exit code: 0 done, 1 anything else. */
#include <stdio.h>
#include <stdlib.h>

#include <tegula_array.h>

static int failed(tg_ctx *ctx, tg_status st)
{
    if (st != TG_OK)
        fprintf(stderr, "%s: %s\n", tg_status_name(st), tg_ctx_detail(ctx));
    return st != TG_OK;
}

/* A gradient that moves, with noise. */
static void draw(float *pixels, long width, long height, long frame)
{
    for (long y = 0; y < height; y++)
        for (long x = 0; x < width; x++)
            pixels[y * width + x] =
                (float)((x + y + frame) % 256) / 256 + 0.1f * (float)rand() / (float)RAND_MAX;
}

static double mean_of(const float *pixels, long n)
{
    double sum = 0;

    for (long i = 0; i < n; i++)
        sum += pixels[i];
    return sum / (double)n;
}

static int run_frames(tg_ctx *ctx, tg_opts *o, long width, long height, long frames)
{
    float *pixels = malloc((size_t)(width * height) * sizeof *pixels), *result = NULL;
    tg_array in = {.size = sizeof in,
                   .dtype = TG_DTYPE_F32,
                   .rank = 2,
                   .shape = {height, width},
                   .data = pixels};
    tg_array out = {.size = sizeof out};
    tg_job *job = NULL;
    int bad = !pixels || failed(ctx, tg_opts_set_source(o, NULL, &in)) ||
              failed(ctx, tg_opts_set_sink(o, NULL, &out)) ||
              failed(ctx, tg_job_open(ctx, o, &job)) ||
              failed(ctx, tg_job_output(job, 0, NULL, &out));

    if (!bad) {
        long n = 1;
        for (int i = 0; i < out.rank; i++)
            n *= (long)out.shape[i];
        out.data = result = malloc((size_t)n * sizeof *result);
        bad = !result;
        for (long k = 0; k < frames && !bad; k++) {
            draw(pixels, width, height, k);
            bad = failed(ctx, tg_job_run(job, NULL));
            if (!bad)
                printf("frame %ld: %ld pixels, mean %.2f\n", k, n, mean_of(result, n));
        }
    }
    tg_job_close(&job);
    free(pixels);
    free(result);
    return bad;
}

int main(int argc, char **argv)
{
    tg_ctx *ctx = NULL;
    tg_opts *o = NULL;
    int bad = argc != 5 || tg_ctx_open(NULL, &ctx) != TG_OK ||
              failed(ctx, tg_opts_new(ctx, &o)) ||
              failed(ctx, tg_opts_set(o, "model", argv[1])) ||
              failed(ctx, tg_opts_set(o, "ram", "64MiB"));

    if (!bad)
        bad = run_frames(ctx, o, atol(argv[2]), atol(argv[3]), atol(argv[4]));
    tg_opts_free(&o);
    tg_ctx_close(&ctx);
    return bad;
}
