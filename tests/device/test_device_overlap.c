/* A whole job keeps a device busy: what test_device_exec.c shows of the executor, of the loops
 * above it. On the fake clock kernels, uploads and downloads of a band take times of one size,
 * so a job that waited for each band, or put everything into one queue, would leave the device
 * idle for half of its time. */
#include "tests/device/device_job.h"

static char array_in[128], array_out[128];
static int (*log_of)(const fake_work **out);

/* From the first kernel to the last one's end. */
typedef struct busy {
    double window, kernels, up, down;
    int bands, queues; /* compute queues that had work */
} busy;

static busy look(void)
{
    const fake_work *w;
    const int n = log_of(&w);
    double from = -1, to = 0, used[TGI_QUEUE_COUNT] = {0};
    busy b = {0};
    for (int i = 0; i < n; i++)
        if (w[i].queue >= TGI_QUEUE_COMPUTE) {
            from = from < 0 ? w[i].from : from;
            to = fmax(to, w[i].to);
        }
    for (int i = 0; i < n; i++) {
        const double s = w[i].to - w[i].from;
        used[w[i].queue] += w[i].from >= from ? s : 0;
        b.bands += w[i].queue >= TGI_QUEUE_COMPUTE;
    }
    for (int q = TGI_QUEUE_COMPUTE; q < TGI_QUEUE_COUNT; q++) {
        b.kernels += used[q];
        b.queues += used[q] > 0;
    }
    b.window = to - from;
    b.up = used[TGI_QUEUE_UPLOAD];
    b.down = used[TGI_QUEUE_DOWNLOAD];
    return b;
}

static busy run_job(const char *from, const char *to, double up, double down,
                    const char *const *extra)
{
    unlink(to);
    reset();
    settings->hollow = 1;
    settings->run_seconds = 1;
    settings->upload_per_byte = up;
    settings->download_per_byte = down;
    const outcome o = run_from(from, to, extra);
    CHECK_EQ(o.st, TG_OK);
    CHECK(o.on_device);
    if (o.st != TG_OK)
        fprintf(stderr, "  %s\n", o.detail);
    unlink(to);
    forget_output();
    return look();
}

/* Copies of a band take two thirds of its kernels' time, each way. */
static busy run_balanced(const char *from, const char *to, const char *const *extra)
{
    const double byte = 1e-9;
    const busy b = run_job(from, to, byte, byte, extra);
    return run_job(from, to, byte * 0.66 * b.bands / b.up, byte * 0.66 * b.bands / b.down,
                   extra);
}

/* One image, or two samples of arrays, in bands, cells of some bands, cells of one band. */
static void keeps_busy(const char *what, const char *from, const char *to)
{
    static const char *const cut[][2] = {
        {"auto", "700KiB"}, {"32x32", "700KiB"}, {"16x16", "700KiB"}};
    for (int i = 0; i < 3; i++) {
        const busy b = run_balanced(from, to,
                                    OPTIONS("device", "cuda", "precision", "fp32", "tile",
                                            cut[i][0], "vram", cut[i][1]));
        printf("  %s, tile %s: %d bands, %.3f of the kernels' time\n", what, cut[i][0], b.bands,
               b.window / b.kernels);
        CHECK(b.bands >= 40);
        CHECK_EQ(b.queues, 1);
        CHECK(b.window < 1.12 * b.kernels); /* in turn: 2.32 */
    }
}

static void test_an_image_keeps_a_device_busy(void)
{
    if (TG_READS_OME)
        keeps_busy("image", input, output);
}

static void test_arrays_keep_a_device_busy(void)
{
    keeps_busy("arrays", array_in, array_out);
}

/* Small cells and memory enough: several at a time, until copies take longest. */
static void lanes_are_used(const char *what, const char *from, const char *to)
{
    const busy b = run_balanced(
        from, to,
        OPTIONS("device", "cuda", "precision", "fp32", "tile", "16x16", "vram", "64MiB"));
    printf("  %s: %d queues, %.3f of the kernels' time, %.3f of the uploads'\n", what, b.queues,
           b.window / b.kernels, b.window / b.up);
    CHECK_EQ(b.queues, TGI_DEVICE_LANES);
    CHECK(b.window < 0.75 * b.kernels);
    CHECK(b.window < 1.1 * b.up);
}

static void test_small_cells_of_a_job_are_computed_beside_each_other(void)
{
    if (TG_READS_OME)
        lanes_are_used("image", input, output);
    lanes_are_used("arrays", array_in, array_out);
}

int main(void)
{
    begin_in("device_overlap", FAKE_PLUGIN, TG_SOURCE_DIR "/models/tegula_denoise.onnx");
    snprintf(array_in, sizeof array_in, "%s/array.npy", folder);
    snprintf(array_out, sizeof array_out, "%s/result.npy", folder);
    *(void **)&log_of = dlsym(dlopen(FAKE_PLUGIN, RTLD_NOW | RTLD_LOCAL), "fake_log");
    make_array_of(array_in, 2);
    if (TG_READS_OME)
        make_input();
    RUN(test_an_image_keeps_a_device_busy);
    RUN(test_arrays_keep_a_device_busy);
    RUN(test_small_cells_of_a_job_are_computed_beside_each_other);
    unlink(input);
    unlink(array_in);
    rmdir(folder);
    return TEST_END();
}
