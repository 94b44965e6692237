/* gpu_tiers.c - the presets gpu-*: what the planner's device plan gives, by memory.
 *
 * For each tier the device plan (engine/job/roofline.h: half precision, margin and context
 * taken off) of the reference U-Net over one plane of 65536 x 65536 pixels: the largest square
 * tile, and how many of them fit together, as engine/auto chooses them. Kernels are the
 * portable ones with direct convolutions, so every machine gives the same.
 *
 *   gpu_tiers               compares the files in configs/presets with that
 *   gpu_tiers write FOLDER  writes them */
#include "engine/estimate/estimate.h"
#include "engine/job/roofline.h"
#include "tests/memory/ref_unet.h"

#define SIDE 65536
#define LEAST_TILE 256 /* those of engine/auto */
#define MOST_TILE 16384
#define MOST_BATCH 64
#define GIB ((uint64_t)1 << 30)

static const int tiers[] = {4, 6, 8, 12, 16, 24, 32, 40, 48, 80};
#define N_TIERS (sizeof tiers / sizeof tiers[0])

/* Staging, window and tables of such a job on the host: tegula estimate gpu, host_bytes, is
 * 303 MiB with two threads; the rest is for the windows of more. */
#define HOST_RAM "1GiB"

typedef struct tier {
    int64_t tile, batch;
} tier;

/* The largest tile that fits, and the power of two of them that fit together. */
static tier tier_of(const tgi_device_job *d, int gib)
{
    for (int64_t side = MOST_TILE; side >= LEAST_TILE; side /= 2) {
        tgi_device_plan p = {0};
        tgi_err err = {0};
        CHECK_OK(tgi_device_plan_tile(d, (uint64_t)gib * GIB, side, &p, &err), err);
        if (!p.fits)
            continue;
        CHECK(p.needed_bytes > d->weights_bytes && p.needed_bytes <= p.usable_bytes);
        const uint64_t one = p.needed_bytes - d->weights_bytes;
        const uint64_t most = tgi_power_of_two((p.usable_bytes - d->weights_bytes) / one);
        return (tier){side, (int64_t)(most < MOST_BATCH ? most : MOST_BATCH)};
    }
    return (tier){0, 0};
}

static void file_text(int gib, tier t, char *buf, size_t cap)
{
    snprintf(buf, cap,
             "{\n"
             "  \"schema\": 1,\n"
             "  \"description\": \"images on a GPU of %d GiB: tiles of %lld x %lld, "
             "batch %lld, fp16\",\n"
             "  \"why\": \"The planner's device plan for the reference U-Net over a plane of "
             "%d x %d pixels; gpu_tiers in tests/estimate makes and checks it "
             "(docs/reference/presets.md). Planned, not measured. The host stages rows and "
             "writes tiles: "
             "303 MiB with two threads, more with more.\",\n"
             "  \"settings\": {\n"
             "    \"ram\": \"" HOST_RAM "\"\n"
             "  },\n"
             "  \"device\": {\n"
             "    \"gib\": %d,\n"
             "    \"tile\": %lld,\n"
             "    \"batch\": %lld,\n"
             "    \"precision\": \"fp16\"\n"
             "  }\n"
             "}\n",
             gib, (long long)t.tile, (long long)t.tile, (long long)t.batch, SIDE, SIDE, gib,
             (long long)t.tile, (long long)t.batch);
}

static void check_file(const char *path, const char *want)
{
    char got[2048] = "";
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(got, 1, sizeof got - 1, f) : 0;
    if (f)
        fclose(f);
    got[n] = 0;
    CHECK_STR(got, want);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    CHECK(f && fclose(f) == 0);
}

static void make_tiers(const tgi_device_job *d, const char *folder)
{
    int64_t most = 0;
    for (size_t i = 0; i < N_TIERS; i++) {
        char path[1024], text[2048];
        const tier t = tier_of(d, tiers[i]);
        CHECK(t.batch >= 1 && t.tile * t.batch >= most); /* more memory never does less */
        most = t.tile * t.batch;
        file_text(tiers[i], t, text, sizeof text);
        snprintf(path, sizeof path, "%s/gpu-%dgib.json",
                 folder ? folder : TG_SOURCE_DIR "/configs/presets", tiers[i]);
        if (folder)
            write_file(path, text);
        else
            check_file(path, text);
    }
}

int main(int argc, char **argv)
{
    const char *folder = argc == 3 && strcmp(argv[1], "write") == 0 ? argv[2] : NULL;
    const int64_t extent[3] = {1, SIDE, SIDE};
    tgi_device_job d = {.items = 1};
    tgi_desc in[TGI_MAX_PORTS];
    tgi_err err = {0};
    tgi_graph *g = ref_unet(4);
    if (argc != 1 && !folder) {
        fprintf(stderr, "usage: gpu_tiers [write FOLDER]\n");
        tgi_graph_free(&g);
        return 64;
    }
    tgi_graph_input_descs(g, extent, in);
    CHECK_OK(tgi_net_new(g, tgi_backend_for(TGI_ISA_PORTABLE), in, TGI_NET_EXACT, &d.net, &err),
             err);
    CHECK_OK(tgi_stages_new(d.net, &d.stages, &err), err);
    d.weights_bytes = d.net->packed_bytes / 2;
    make_tiers(&d, folder);
    tgi_stages_free(&d.stages);
    tgi_net_free(&d.net);
    tgi_graph_free(&g);
    return TEST_END();
}
