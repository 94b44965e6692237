/* gpu_tiers.c - the presets gpu-*: what the planner's device plan gives, by memory.
 *
 * For each tier the device plan (engine/estimate/roofline.h: half precision, margin and context
 * taken off) of the reference U-Net over one plane of 65536 x 65536 pixels: the widest strip,
 * and of how many planes such strips fit beside each other. Kernels are the portable ones with
 * direct convolutions, so every machine gives the same.
 *
 *   gpu_tiers               compares the files in configs/presets with that
 *   gpu_tiers write FOLDER  writes them */
#include "engine/estimate/roofline.h"
#include "tests/memory/ref_unet.h"

#define SIDE 65536
#define GIB ((uint64_t)1 << 30)

static const int tiers[] = {4, 6, 8, 12, 16, 24, 32, 40, 48, 80};
#define N_TIERS (sizeof tiers / sizeof tiers[0])

/* Staging, window and tables of such a job on the host: tegula estimate gpu, host_bytes, is
 * 303 MiB with two threads; the rest is for the windows of more. */
#define HOST_RAM "1GiB"

static void file_text(int gib, const tgi_device_plan *p, char *buf, size_t cap)
{
    snprintf(buf, cap,
             "{\n"
             "  \"schema\": 1,\n"
             "  \"description\": \"images on a GPU of %d GiB: strips of %lld columns, %lld "
             "plane%s at a time, fp16\",\n"
             "  \"why\": \"The planner's device plan for the reference U-Net over a plane of "
             "%d x %d pixels; gpu_tiers in tests/estimate makes and checks it "
             "(docs/presets.md). Planned, not measured. The host stages rows and writes tiles: "
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
             gib, (long long)p->tile[2], (long long)p->batch, p->batch == 1 ? "" : "s", SIDE,
             SIDE, gib, (long long)p->tile[2], (long long)p->batch);
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
        tgi_device_plan p = {0};
        tgi_err err = {0};
        CHECK_OK(tgi_device_plan_make(d, (uint64_t)tiers[i] * GIB, NULL, &p, &err), err);
        CHECK(p.fits && p.batch >= 1 && p.needed_bytes <= p.usable_bytes);
        CHECK(p.tile[2] * p.batch >= most); /* more memory never does less at once */
        most = p.tile[2] * p.batch;
        file_text(tiers[i], &p, text, sizeof text);
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
    tg_desc in[TG_MAX_PORTS];
    tgi_err err = {0};
    tg_graph *g = ref_unet(4);
    if (argc != 1 && !folder) {
        fprintf(stderr, "usage: gpu_tiers [write FOLDER]\n");
        tgi_graph_free(&g);
        return 64;
    }
    tgi_graph_input_descs(g, extent, in);
    CHECK_OK(tgi_net_new(g, tgi_backend_for(TG_ISA_PORTABLE), in, TG_NET_EXACT, &d.net, &err),
             err);
    CHECK_OK(tgi_stages_new(d.net, &d.stages, &err), err);
    d.weights_bytes = d.net->packed_bytes / 2;
    make_tiers(&d, folder);
    tgi_stages_free(&d.stages);
    tgi_net_free(&d.net);
    tgi_graph_free(&g);
    return TEST_END();
}
