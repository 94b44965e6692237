/* A network that runs stage by stage gives the bits of the same network over the whole image at
 * once, for networks nobody drew: norms, reductions, pools, softmax over pixels and attention
 * among convolutions, in two and three dimensions, alone and as gates, at the image's resolution,
 * below and above it, of several values joined; deformable convolutions. Whole jobs from memory to
 * memory, with budgets that are too small for the uncut network.
 *
 * Both ways share the code of the reductions. So each reduction is also held against float64 sums
 * that are written out here.
 *
 * What a run reserves is full of NaN before it begins: what is read and was not computed shows. */
#include "tegula_array.h"
#include "tests/unit/job_help.h"
#include "tests/whole_nets.h"

/* ---- Running ----------------------------------------------------------------------------- */

#define MAX_OUT 3

typedef struct outcome {
    tg_array out[MAX_OUT];
    char name[MAX_OUT][16];
    size_t bytes[MAX_OUT];
    int n_out, staged;
    uint64_t peak;
} outcome;

static void drop(outcome *r)
{
    for (int i = 0; i < r->n_out; i++)
        free(r->out[i].data);
    *r = (outcome){0};
}

static tg_opts *options(const tg_array *in, uint64_t ram_kib, int threads, int scratch)
{
    char text[32];
    tg_opts *o = NULL;
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", in_folder("net.onnx")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "exact", "true"), TG_OK);
    snprintf(text, sizeof text, "%lluKiB", (unsigned long long)ram_kib);
    CHECK_EQ(tg_opts_set(o, "ram", text), TG_OK);
    snprintf(text, sizeof text, "%d", threads);
    CHECK_EQ(tg_opts_set(o, "threads", text), TG_OK);
    if (scratch)
        CHECK_EQ(tg_opts_set(o, "scratch", folder), TG_OK);
    CHECK_EQ(tg_opts_set_source(o, "x", in), TG_OK);
    return o;
}

/* An array for each output of the job. They count to what the process holds when a job is opened,
 * so they are made and touched before any budget is asked for. */
static void make_arrays(tg_job *job, outcome *r)
{
    const char *name;
    for (r->n_out = 0; r->n_out < MAX_OUT; r->n_out++) {
        tg_array *a = &r->out[r->n_out];
        *a = (tg_array){.size = sizeof *a};
        if (tg_job_output(job, r->n_out, &name, a) != TG_OK)
            return;
        now(r->name[r->n_out], name);
        size_t size = sizeof(float);
        for (int i = 0; i < a->rank; i++)
            size *= (size_t)a->shape[i];
        r->bytes[r->n_out] = size;
        a->data = malloc(size);
        memset(a->data, 0xff, size);
    }
}

static tg_status make_outcome(const tg_array *in, outcome *r)
{
    tg_job *job = NULL;
    tg_opts *o = options(in, 1 << 20, 1, 0);
    *r = (outcome){0};
    const tg_status st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        make_arrays(job, r);
    CHECK(st != TG_OK || r->n_out > 0);
    tg_job_close(&job);
    tg_opts_free(&o);
    return st;
}

static void give_arrays(tg_opts *o, outcome *r)
{
    for (int i = 0; i < r->n_out; i++) {
        memset(r->out[i].data, 0xff, r->bytes[i]);
        CHECK_EQ(tg_opts_set_sink(o, r->name[i], &r->out[i]), TG_OK);
    }
}

static int is_staged(const tg_plan_info *p)
{
    for (size_t i = 0; i < p->n_lines; i++)
        if (strcmp(p->lines[i].name, "reductions") == 0)
            return 1;
    return 0;
}

/* Stages that load a value at once, beside rows of others. */
static void count_looks(tg_job *job)
{
    char *json = NULL;
    CHECK_EQ(tg_job_plan_json(job, 0, &json), TG_OK);
    for (const char *at = json; at && (at = strstr(at, "\"reads_at_once\":[\"")); at++)
        n.looks++;
    tg_text_free(json);
}

/* A job in that much memory, into the arrays of `r`. */
static tg_status run(const tg_array *in, uint64_t ram_kib, int threads, int scratch, outcome *r)
{
    tg_plan_info plan = {.size = sizeof plan};
    tg_job *job = NULL;
    tg_opts *o = options(in, ram_kib, threads, scratch);
    give_arrays(o, r);
    r->staged = 0;
    tg_status st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        st = tg_job_plan(job, &plan);
    if (st == TG_OK) {
        r->staged = is_staged(&plan);
        r->peak = plan.peak_bytes;
        n.stages += r->staged ? (int)plan.stages : 0;
        count_looks(job);
        st = tg_job_run(job, NULL);
    }
    tg_job_close(&job);
    tg_opts_free(&o);
    return st;
}

/* KiB that the last refusal told to give. */
static uint64_t told_ram(void)
{
    const char *at = strstr(tg_ctx_detail(ctx), "--ram ");
    return at ? strtoull(at + 6, NULL, 10) << 10 : 0;
}

static uint64_t least_of(const tg_array *in, int threads, int scratch, outcome *r)
{
    const tg_status st = run(in, 64, threads, scratch, r);
    CHECK_EQ(st, TG_E_BUDGET);
    return st == TG_E_BUDGET ? told_ram() : 0;
}

static void check_same(const outcome *want, const outcome *got, const char *how)
{
    CHECK_EQ(got->n_out, want->n_out);
    for (int i = 0; i < want->n_out && i < got->n_out; i++) {
        const int same = got->bytes[i] == want->bytes[i] &&
                         memcmp(got->out[i].data, want->out[i].data, want->bytes[i]) == 0;
        CHECK(same);
        if (!same)
            fprintf(stderr, "     output %s, %s\n", want->name[i], how);
    }
}

static void check_finite(const outcome *r)
{
    for (int i = 0; i < r->n_out; i++) {
        size_t bad = 0;
        for (size_t k = 0; k < r->bytes[i] / sizeof(float); k++)
            bad += !isfinite(((const float *)r->out[i].data)[k]);
        CHECK_EQ(bad, 0);
        if (bad)
            fprintf(stderr, "     output %s\n", r->name[i]);
    }
}

/* ---- What a reduction is, in float64 ------------------------------------------------------ */

typedef struct sums {
    double mean, variance, magnitude, largest, smallest;
} sums;

static sums sums_of(const float *x, int64_t count)
{
    sums s = {.largest = -INFINITY, .smallest = INFINITY};
    for (int64_t i = 0; i < count; i++) {
        s.mean += (double)x[i] / (double)count;
        s.magnitude += fabs((double)x[i]) / (double)count;
        s.largest = fmax(s.largest, (double)x[i]);
        s.smallest = fmin(s.smallest, (double)x[i]);
    }
    for (int64_t i = 0; i < count; i++)
        s.variance += ((double)x[i] - s.mean) * ((double)x[i] - s.mean) / (double)count;
    return s;
}

/* Within what rounding to a float32 once, or a few times, loses; a sum of float64 loses 1e-13 of
 * its terms. */
static void check_value(double got, double want, double slack, const char *what)
{
    static int told;
    const int near = fabs(got - want) <= slack;
    CHECK(near);
    if (!near && told++ < 10)
        fprintf(stderr, "     %s is %.9g, in float64 %.9g\n", what, got, want);
}

/* A number of each channel, or of all. */
static void check_numbers(const whole *w, const float *x, int64_t per, const float *got)
{
    const int all = w->kind == MEAN_ALL || w->kind == MAX_ALL;
    const int64_t parts = all ? 1 : w->c, count = all ? per * w->c : per;
    for (int64_t p = 0; p < parts; p++) {
        const sums s = sums_of(x + p * count, count);
        const double times = w->kind == SUM ? (double)count : 1;
        const double want = w->kind == MAX || w->kind == MAX_ALL || w->kind == MAX_POOL
                                ? s.largest
                            : w->kind == MIN ? s.smallest
                                             : s.mean * times;
        check_value((double)got[p], want, 6e-8 * fabs(want) + 1e-13 * s.magnitude * times,
                    kind_names[w->kind]);
    }
}

/* The mean is subtracted as a float32 and what that lost, so the slack goes with the result, and
 * with what float64 loses of a mean beside the deviation. */
static void check_norm(const whole *w, const float *x, int64_t per, const float *got)
{
    const int64_t wide = w->c / w->groups;
    for (int64_t g = 0; g < w->groups; g++) {
        const sums s = sums_of(x + g * wide * per, wide * per);
        const double factor = 1 / sqrt(s.variance + 1e-5);
        for (int64_t i = g * wide * per; i < (g + 1) * wide * per; i++) {
            const double scale = (double)w->scale[i / per], shift = (double)w->shift[i / per];
            const double normed = ((double)x[i] - s.mean) * factor * scale;
            check_value((double)got[i], normed + shift,
                        3e-7 * (fabs(normed) + fabs(shift)) +
                            1e-12 * s.magnitude * factor * fabs(scale),
                        kind_names[w->kind]);
        }
    }
}

/* exp of a float32's difference from the largest loses that much of it. */
static void check_softmax(const whole *w, const float *x, int64_t per, const float *got)
{
    for (int64_t c = 0; c < w->c; c++) {
        const float *at = x + c * per;
        const sums s = sums_of(at, per);
        double sum = 0;
        for (int64_t i = 0; i < per; i++)
            sum += exp((double)at[i] - s.largest);
        for (int64_t i = 0; i < per; i++) {
            const double want = exp((double)at[i] - s.largest) / sum;
            check_value((double)got[c * per + i], want,
                        want * (1e-6 + 2e-7 * (s.largest - (double)at[i])) + 1e-40, "Softmax");
        }
    }
}

static const float *output_named(const outcome *r, const char *name)
{
    for (int i = 0; i < r->n_out; i++)
        if (strcmp(r->name[i], name) == 0)
            return r->out[i].data;
    return NULL;
}

/* Of the first sample. */
static void check_held(const whole *w, int spatial, const float *in, const outcome *r)
{
    const float *x = strcmp(w->operand, "x") == 0 ? in : output_named(r, w->operand);
    const float *got = output_named(r, w->result);
    const int64_t per = pixels(w->ext, spatial);
    CHECK(x && got);
    if (!x || !got || w->kind >= CHANNELS_ATTEND)
        return;
    n.held[w->kind]++;
    if (w->kind <= GROUP)
        check_norm(w, x, per, got);
    else if (w->kind == SOFTMAX)
        check_softmax(w, x, per, got);
    else
        check_numbers(w, x, per, got);
}

/* ---- A network --------------------------------------------------------------------------- */

/* Some lie far from zero: a mean of 1e4 beside a deviation of 1. */
static float *draw_input(drawn *d, const int64_t *ext, int64_t c, int64_t samples)
{
    static const float offsets[] = {0, 0, 3, 1e4f};
    const float offset = offsets[tg_rand_in(&d->seed, 0, 3)];
    const int64_t count = samples * c * pixels(ext, d->m.spatial);
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = offset + 1.7f * tg_rand_unit(&d->seed);
    return x;
}

/* What the process holds may have grown since the refusal that told `ram`: then a second one tells
 * more, and that has to do. */
static void check_budget(const tg_array *in, uint64_t ram, int threads, int scratch,
                         const outcome *want, outcome *got)
{
    char how[64];
    tg_status st = run(in, ram, threads, scratch, got);
    if (st == TG_E_BUDGET) {
        const uint64_t told = told_ram();
        CHECK(told > ram && told <= ram + 2048);
        ram = told;
        st = run(in, ram, threads, scratch, got);
    }
    snprintf(how, sizeof how, "--ram %lluKiB --threads %d%s", (unsigned long long)ram, threads,
             scratch ? " --scratch" : "");
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK)
        fprintf(stderr, "     %s: %s\n", how, tg_ctx_detail(ctx));
    else
        check_same(want, got, how);
    n.runs++;
    n.staged += got->staged;
}

/* The least, and one between it and what the uncut network takes. */
static void check_budgets(drawn *d, const tg_array *in, const outcome *want, outcome *got)
{
    for (int scratch = 0; scratch < 2; scratch++) {
        const int threads = (int)tg_rand_in(&d->seed, 1, 3);
        const uint64_t least = least_of(in, threads, scratch, got), uncut = want->peak >> 10;
        for (int i = 0; i < 2 && least && least < uncut; i++)
            check_budget(in, least + (uncut - least) * (uint64_t)i / 2, threads, scratch, want,
                         got);
    }
}

static void check_drawn(drawn *d, const whole *held)
{
    outcome want = {0}, got = {0};
    write_model(d, held, in_folder("net.onnx"));
    tg_array in = {.size = sizeof in, .dtype = TG_DTYPE_F32, .rank = d->m.spatial + 2};
    in.shape[0] = tg_rand_in(&d->seed, 0, 3) ? 1 : 2; /* samples: each by itself */
    in.shape[1] = d->in_c;
    memcpy(in.shape + 2, d->ext, (size_t)d->m.spatial * sizeof *d->ext);
    float *x = draw_input(d, d->ext, d->in_c, in.shape[0]);
    in.data = x;
    tg_status st = make_outcome(&in, &want);
    if (st == TG_OK)
        st = make_outcome(&in, &got);
    if (st == TG_OK)
        st = run(&in, 1 << 20, 2, 0, &want);
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK) {
        fprintf(stderr, "     %s\n", tg_ctx_detail(ctx));
    } else {
        CHECK(!want.staged);
        check_finite(&want);
        if (held)
            check_held(held, d->m.spatial, x, &want);
        check_budgets(d, &in, &want, &got);
    }
    drop(&want);
    drop(&got);
    free(x);
}

static void check_network(uint64_t seed)
{
    static drawn d;
    draw(&d, seed);
    const int hold = (int)tg_rand_in(&d.seed, 0, 1) || !d.second[0];
    check_drawn(&d, hold ? &d.whole[tg_rand_in(&d.seed, 0, d.n_whole - 1)] : NULL);
}

static void check_joined(uint64_t seed)
{
    static drawn d;
    draw_joined(&d, seed);
    check_drawn(&d, NULL);
}

static void check_deformed(uint64_t seed)
{
    static drawn d;
    draw_deformed(&d, seed);
    check_drawn(&d, NULL);
}

static void check_seed(uint64_t seed)
{
    const int before = tg_failures;
    check_network(seed);
    if (tg_failures > before)
        printf("FAIL seed %llu\n", (unsigned long long)seed);
}

/* Networks that once were wrong: 159, a reduction of joined values, the larger one last. */
static const uint64_t found[] = {159};

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261125;
    const int count = argc > 2 ? atoi(argv[2]) : 25;
    tg_env poison;
    printf("seed %llu, %d networks; one again: test_stages_run SEED 1\n",
           (unsigned long long)seed, count);
    tg_env_lend(&poison, "TEGULA_POISON", "nan");
    help_open();
    for (int i = 0; argc < 2 && i < (int)(sizeof found / sizeof *found); i++)
        check_seed(found[i]);
    for (int i = 0; i < count; i++)
        check_seed(seed + (uint64_t)i);
    for (int i = 0; i < 1 + count / 6; i++)
        check_joined(seed + (uint64_t)i);
    for (int i = 0; i < 2 + count / 12; i++)
        check_deformed(seed + (uint64_t)i);
    help_close();
    tg_env_back(&poison);
    printf(
        "     %d volumes; %d of %d runs in stages, %d stages, %d with values loaded at once\n",
        n.volumes, n.staged, n.runs, n.stages, n.looks);
    for (int k = 0; k < KINDS; k++) {
        printf("     %-22s %d times, %d in float64\n", kind_names[k], n.seen[k], n.held[k]);
        CHECK(count < 100 || n.seen[k] > 0);
        CHECK(count < 100 || k >= CHANNELS_ATTEND || n.held[k] > 0);
    }
    CHECK(count < 25 || (n.staged > count && n.looks > 0));
    return TEST_END();
}
