/* preset auto: no point of its grid is predicted to be faster than what it chose, on five
 * machines that are not here and for four jobs, by a search that plans every point and knows
 * nothing of auto.c; and what it says of GPUs. */
#include "engine/auto/auto.h"
#include "engine/job/job_plan.h"
#include "engine/job/plan_report.h"

#include "engine/base/mem.h"
#include "tegula_memory.h"
#include "tegula_preset.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-9

/* ---- Machines and jobs ------------------------------------------------------------------- */

static const struct machine {
    const char *name;
    int processors, bf16;
    const char *sets[4];
} machines[] = {
    {"laptop", 8, 0, {"avx2", "portable"}},
    {"container", 4, 0, {"avx2", "portable"}},
    {"workstation", 24, 0, {"avx2", "portable"}},
    {"server", 64, 0, {"avx512", "avx2", "portable"}},
    {"node", 32, 1, {"avx512", "avx2", "portable"}},
};
#define N_MACHINES (sizeof machines / sizeof machines[0])

/* `side`: the larger side of the image; `also`: options of the job, pairs. */
static const struct job {
    const char *model, *input;
    int64_t side;
    int volume, bf16;
    const char *also[4][2];
} jobs[] = {
    {"denoise", "a.npy", 600, 0, 0, {{"ram", "24MiB"}}},
    {"unet.onnx", "b.npy", 1500, 0, 1, {{"normalize", "zscore"}, {"compress", "deflate"}}},
    {"unet.onnx", "c.png", 1500, 0, 0, {{"normalize", "zscore"}, {"ram", "12MiB"}}},
    {"volume.onnx", "d.npy", 200, 1, 0, {{"dtype", "uint16"}, {"ram", "16MiB"}}},
};
#define N_JOBS (sizeof jobs / sizeof jobs[0])

static const char *machine_file(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/machines/%s.json", TG_SOURCE_DIR, name);
    return path;
}

static const char *model_of(const struct job *j)
{
    return strcmp(j->model, "denoise") == 0 ? TG_SOURCE_DIR "/models/tegula_denoise.onnx"
                                            : in_folder(j->model);
}

static void save_npy(const char *name, int rank, int64_t z, int64_t y, int64_t x)
{
    const tgi_desc d = {TG_DTYPE_U16, rank, {rank == 3 ? z : y, rank == 3 ? y : x, x}};
    tgi_err e = {0};
    uint16_t *p = calloc((size_t)(z * y * x), sizeof *p);
    CHECK(p != NULL);
    CHECK_OK(tgi_npy_save(in_folder(name), &d, p, &e), e);
    free(p);
}

/* Arrays of images, so that they are images here: as TIFF, and one PNG. */
static void make_files(void)
{
    static const int64_t open3[3] = {0, 0, 0}, k33[3] = {3, 3, 3};
    save_npy("a.raw.npy", 2, 1, 72, 600);
    save_npy("b.raw.npy", 2, 1, 96, 1500);
    save_npy("d.raw.npy", 3, 12, 40, 200);
    CHECK_COPY(TG_OK, "input", in_folder("a.raw.npy"), "output", in_folder("a.tif"));
    CHECK_COPY(TG_OK, "input", in_folder("b.raw.npy"), "output", in_folder("b.tif"));
    CHECK_COPY(TG_OK, "input", in_folder("b.raw.npy"), "output", in_folder("c.png"));
    CHECK_COPY(TG_OK, "input", in_folder("d.raw.npy"), "output", in_folder("d.tif"), "axes",
               "ZYX");
    made u = made_begin(2, 1, open3);
    const char *top = made_conv(&u, "x", 1, 16, k33, 1, 1, NULL);
    const char *low = made_conv(&u, made_pool(&u, top, 2), 16, 16, k33, 1, 1, NULL);
    const char *both = made_concat(&u, 1, made_up(&u, low, 16, 8, 2), top);
    made_conv(&u, both, 24, 1, k33, 1, 1, "y");
    made_end(&u, in_folder("unet.onnx"));
    made v = made_begin(3, 1, open3);
    made_conv(&v, made_conv(&v, "x", 1, 8, k33, 1, 1, NULL), 8, 1, k33, 1, 1, "y");
    made_end(&v, in_folder("volume.onnx"));
}

static const char *input_of(const struct job *j)
{
    char name[16];
    snprintf(name, sizeof name, "%.1s%s", j->input, strstr(j->input, ".png") ? ".png" : ".tif");
    return in_folder(name);
}

static void set(tg_opts *o, const char *name, const char *value)
{
    const tg_status st = tg_opts_set(o, name, value);
    if (st != TG_OK)
        fprintf(stderr, "%s=%s: %s\n", name, value, tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
}

static tg_opts *options(const struct machine *m, const struct job *j)
{
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    set(o, "model", model_of(j));
    set(o, "input", input_of(j));
    set(o, "machine", machine_file(m->name));
    for (int i = 0; i < 4 && j->also[i][0]; i++)
        set(o, j->also[i][0], j->also[i][1]);
    return o;
}

/* ---- Every point ------------------------------------------------------------------------- */

typedef struct search {
    const struct machine *m;
    const struct job *j;
    const char *ram; /* what auto was to do with */
    double best;
    int planned;
    char what[160];
} search;

/* The disks of the files: enough room for a scratch file, as the plan counts it. */
static int scratch_fits(const tg_plan_info *p)
{
    for (size_t i = 0; i < p->n_lines; i++)
        if (strcmp(p->lines[i].name, "scratch") == 0 && p->lines[i].kind == TG_PLAN_DISK &&
            p->lines[i].bytes > p->lines[i].free_bytes)
            return 0;
    return 1;
}

static void try_point(search *s, const char *const (*pair)[2], int n)
{
    tg_plan_info p = {.size = sizeof p};
    tg_job *job = NULL;
    tg_opts *o = options(s->m, s->j);
    set(o, "ram", s->ram);
    for (int i = 0; i < n; i++)
        set(o, pair[i][0], pair[i][1]);
    tg_status st = tg_job_open(ctx, o, &job);
    if (st == TG_OK) { /* tg_job_plan would go and look for remedies */
        tgi_err e = {0};
        st = tgi_job_plan_output(job, &e);
        if (st == TG_OK)
            tgi_job_plan_info(job, &p);
        else if (st != TG_E_BUDGET)
            fprintf(stderr, "%s\n", e.text);
    }
    CHECK(st == TG_OK || st == TG_E_BUDGET);
    s->planned++;
    if (st == TG_OK && scratch_fits(&p) && (s->best < 0 || p.seconds_estimate < s->best)) {
        s->best = p.seconds_estimate;
        s->what[0] = 0;
        for (int i = 0; i < n; i++)
            snprintf(s->what + strlen(s->what), sizeof s->what - strlen(s->what), "%s=%s ",
                     pair[i][0], pair[i][1]);
    }
    tg_job_close(&job);
    tg_opts_free(&o);
}

static void try_places(search *s, const char *set_name, const char *precision,
                       const char *threads, const char *tile)
{
    const char *const pair[][2] = {{"isa", set_name},
                                   {"precision", precision},
                                   {"threads", threads},
                                   {"tile", tile},
                                   {"scratch", "/tmp"}};
    try_point(s, pair, 4);
    if (s->j == &jobs[0] || s->j == &jobs[2]) /* of files without scratch, and with */
        try_point(s, pair, 5);
}

static void try_threads(search *s, const char *set_name, const char *precision, int threads)
{
    char n[16], tile[72];
    const int64_t least = s->j->volume ? 64 : 256;
    snprintf(n, sizeof n, "%d", threads);
    try_places(s, set_name, precision, n, "auto");
    for (int64_t t = least; t < s->j->side && t <= (s->j->volume ? 256 : 8192); t *= 2) {
        const long long v = (long long)t;
        if (s->j->volume)
            snprintf(tile, sizeof tile, "%lldx%lldx%lld", v, v, v);
        else
            snprintf(tile, sizeof tile, "%lld", v);
        try_places(s, set_name, precision, n, tile);
    }
}

static void try_everything(search *s)
{
    const int p = s->m->processors;
    const int threads[] = {p, p - 1, p * 3 / 4, p / 2, p / 4, 1};
    for (int k = 0; s->m->sets[k]; k++)
        for (int i = 0; i < 6; i++) {
            if (i && threads[i] == threads[i - 1])
                continue;
            try_threads(s, s->m->sets[k], "fp32", threads[i]);
            if (s->j->bf16 && s->m->bf16 && k == 0)
                try_threads(s, s->m->sets[k], "bf16", threads[i]);
        }
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* What was chosen is planned again: the prediction is that plan's. */
static double planned_seconds(const tg_opts *chosen)
{
    tg_plan_info p = {.size = sizeof p};
    tg_job *job = NULL;
    CHECK_EQ(tg_job_open(ctx, chosen, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, &p), TG_OK);
    tg_job_close(&job);
    return p.seconds_estimate;
}

static void check_row(const struct machine *m, const struct job *j, int *planned)
{
    tgi_auto *a = NULL;
    tgi_err e = {0};
    tg_opts *o = options(m, j);
    tg_opts *chosen = NULL;
    search s = {.m = m, .j = j, .best = -1};
    if (j->bf16)
        set(o, "precision", "bf16"); /* allowed, also where it is not there */
    CHECK_EQ(tg_opts_new(ctx, &chosen), TG_OK);
    CHECK_OK(tgi_auto_search(ctx, o, &a, &e), e);
    tg_opts_free(&o);
    if (!a || a->best < 0)
        return;
    const double seconds = a->tried[a->best].seconds;
    CHECK(a->calibrated);
    CHECK_OK(tgi_auto_options(a, &a->tried[a->best], chosen, &e), e);
    int own = 0;
    for (int i = 0; i < a->n_tried; i++)
        own += !a->tried[i].skipped;
    tgi_auto_free(&a); /* what it holds would count as the process's */
    CHECK_NEAR(planned_seconds(chosen), seconds, ROUNDING * seconds);
    s.ram = tgi_opts_str(chosen, TGI_OPT_RAM);
    try_everything(&s);
    CHECK_NEAR(s.best, seconds, ROUNDING * seconds);
    if (!(s.best >= seconds * (1 - ROUNDING)))
        fprintf(stderr, "%s, %s: %g by auto, %g by %s\n", m->name, j->input, seconds, s.best,
                s.what);
    CHECK(own < s.planned); /* bounds save plans */
    *planned += s.planned;
    tg_opts_free(&chosen);
}

static void no_point_of_the_grid_is_predicted_to_be_faster_than_what_auto_chose(void)
{
    int planned = 0;
    for (size_t m = 0; m < N_MACHINES; m++)
        for (size_t j = 0; j < N_JOBS; j++)
            check_row(&machines[m], &jobs[j], &planned);
    printf("%d plans\n", planned);
    CHECK(planned > 1000);
}

/* ---- What it says ------------------------------------------------------------------------ */

static const struct machine *machine_of(const char *name)
{
    for (size_t i = 0; i < N_MACHINES; i++)
        if (strcmp(machines[i].name, name) == 0)
            return &machines[i];
    return NULL;
}

static tgi_auto *found(const char *machine, const struct job *j)
{
    tgi_auto *a = NULL;
    tgi_err e = {0};
    tg_opts *o = options(machine_of(machine), j);
    CHECK_OK(tgi_auto_search(ctx, o, &a, &e), e);
    tg_opts_free(&o);
    return a;
}

static void scratch_is_chosen_where_decoding_once_is_faster_and_has_room(void)
{
    struct job j = jobs[2]; /* a PNG: one stream of rows, which every strip begins again */
    j.also[2][0] = "tile";
    j.also[2][1] = "128";
    tgi_auto *a = found("laptop", &j);
    CHECK(a && a->tried[a->best].scratch);
    CHECK(strstr(a->scratch_why, "decoded once instead of") != NULL);
    tgi_auto_free(&a);
    j = jobs[1]; /* not compressed */
    a = found("laptop", &j);
    CHECK(a && !a->tried[a->best].scratch);
    CHECK(strstr(a->scratch_why, "not compressed") != NULL);
    tgi_auto_free(&a);
}

static void a_gpu_gets_the_largest_tile_of_the_least_projected_time(void)
{
    tgi_auto *a = found("server", &jobs[1]);
    if (a) {
        CHECK(a->device.there);
        CHECK_STR(a->device.gpu, "NVIDIA A100-PCIE-40GB");
        CHECK_EQ(a->device.alike, 2);
        CHECK_EQ(a->device.tile, 2048); /* covers 1500 */
        CHECK_EQ(a->device.batch, 1);   /* there is one */
        CHECK(a->device.seconds > 0 && a->device.needed_bytes < (uint64_t)1 << 30);
    }
    tgi_auto_free(&a);
    a = found("laptop", &jobs[1]);
    CHECK(a && !a->device.there && strcmp(a->device.why_not, "the machine has no GPU") == 0);
    tgi_auto_free(&a);
}

static void what_is_given_is_kept_and_what_does_not_fit_is_refused(void)
{
    tgi_auto *a = NULL;
    tgi_err e = {0};
    struct job j = jobs[0];
    j.also[1][0] = "threads";
    j.also[1][1] = "3";
    j.also[2][0] = "tile";
    j.also[2][1] = "128";
    j.also[3][0] = "isa";
    j.also[3][1] = "portable";
    a = found("node", &j);
    CHECK(a && a->n_tried == 1 && a->tried[0].threads == 3 && a->tried[0].tile == 0);
    CHECK(a && a->tried[0].isa == TGI_ISA_PORTABLE);
    tgi_auto_free(&a);
    j = jobs[0];
    j.also[0][1] = "2MiB";
    tg_opts *o = options(machine_of("node"), &j);
    CHECK_EQ(tgi_auto_search(ctx, o, &a, &e), TG_E_BUDGET);
    CHECK(strstr(e.text, "the budget is 2.00 MiB") != NULL);
    CHECK(a && a->best < 0);
    tgi_auto_free(&a);
    char *json = NULL;
    CHECK_EQ(tg_preset_auto(ctx, o, &json), TG_E_BUDGET);
    CHECK(json == NULL);
    const tg_refusal *r = tg_ctx_refusal(ctx);
    CHECK(r && r->n_remedies > 0);
    tg_opts_free(&o);
}

/* Points in bf16 that were tried on a machine that has it, where nothing fits. */
static int tried_in_bf16(const char *descriptor)
{
    tgi_auto *a = NULL;
    tgi_err e = {0};
    struct job j = jobs[0];
    int n = 0;
    j.also[0][1] = "2MiB";
    FILE *f = fopen(in_folder("says.json"), "w");
    CHECK(f != NULL && fputs(descriptor, f) >= 0 && fclose(f) == 0);
    tg_opts *o = options(machine_of("node"), &j);
    set(o, "descriptor", in_folder("says.json"));
    CHECK_EQ(tgi_auto_search(ctx, o, &a, &e), TG_E_BUDGET);
    for (int i = 0; a && i < a->n_tried; i++)
        n += a->tried[i].bf16;
    tgi_auto_free(&a);
    tg_opts_free(&o);
    return n;
}

static void bf16_is_no_way_out_where_the_descriptor_says_fp32(void)
{
    CHECK(tried_in_bf16("{}") > 0);
    CHECK_EQ(tried_in_bf16("{\"precision\": \"fp32\"}"), 0);
}

static void the_preset_that_is_written_can_be_taken_and_plans_the_same(void)
{
    char *json = NULL;
    tg_opts *o = options(machine_of("container"), &jobs[2]);
    set(o, "output", in_folder("auto.json"));
    CHECK_EQ(tg_preset_auto(ctx, o, &json), TG_OK);
    CHECK(json && strstr(json, "\"reasons\":[\"precision fp32"));
    tgi_json *doc = NULL;
    tgi_err e = {0};
    double seconds = 0;
    CHECK_OK(tgi_json_parse(json, strlen(json), "auto", &doc, &e), e);
    CHECK(tgi_json_num(tgi_json_get(doc, "predicted_seconds"), &seconds));
    tgi_json_free(&doc);
    tg_text_free(json);
    CHECK_EQ(tg_preset_auto(ctx, o, &json), TG_E_EXISTS); /* without "yes" */
    tg_opts_free(&o);
    o = options(machine_of("container"), &jobs[2]);
    set(o, "preset", in_folder("auto.json"));
    tg_plan_info p = {.size = sizeof p};
    tg_job *job = NULL;
    CHECK_EQ(tg_job_open(ctx, o, &job), TG_OK);
    CHECK_EQ(tg_job_plan(job, &p), TG_OK);
    CHECK_NEAR(p.seconds_estimate, seconds, ROUNDING * seconds);
    tg_job_close(&job);
    tg_opts_free(&o);
}

int main(void)
{
    help_open();
    make_files();
    RUN(no_point_of_the_grid_is_predicted_to_be_faster_than_what_auto_chose);
    RUN(scratch_is_chosen_where_decoding_once_is_faster_and_has_room);
    RUN(a_gpu_gets_the_largest_tile_of_the_least_projected_time);
    RUN(what_is_given_is_kept_and_what_does_not_fit_is_refused);
    RUN(bf16_is_no_way_out_where_the_descriptor_says_fp32);
    RUN(the_preset_that_is_written_can_be_taken_and_plans_the_same);
    help_close();
    return TEST_END();
}
