/* calibrate_pipeline.c - what a run costs beside its kernels, from runs: one network that gives
 * back what it gets, over pictures like a microscope's, with every codec before and behind it.
 * What remains of a run's processor time when its kernels' is taken off is what is looked for.
 */
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/job/copy.h"
#include "engine/job/job.h"
#include "engine/job/job_open.h"
#include "engine/job/run.h"
#include "engine/verbs/calibrate.h"
#include "io/npy.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL 512
#define LARGE 2048
#define CLEARINGS 3
#define STEPS (3 + 2 * (TGI_CODEC_COUNT - 1))

/* y = Conv(x, w), w = 1 of 1x1: the protobuf of an ONNX model, field by field. */
static const char identity[] =
    "\x08\x08"                         /* ir_version 8 */
    "\x42\x02\x10\x0d"                 /* opset_import: version 13 */
    "\x3a\x67"                         /* graph, 103 bytes */
    "\x0a\x0f"                         /* node, 15 bytes */
    "\x0a\x01x\x0a\x01w"               /* input x, input w */
    "\x12\x01y"                        /* output y */
    "\x22\x04"                         /* op_type */
    "Conv"                             /* */
    "\x12\x01g"                        /* name */
    "\x2a\x13"                         /* initializer, 19 bytes */
    "\x08\x01\x08\x01\x08\x01\x08\x01" /* dims 1,1,1,1 */
    "\x10\x01"                         /* float */
    "\x42\x01w"                        /* name */
    "\x4a\x04\x00\x00\x80\x3f"         /* raw_data 1.0f */
    "\x5a\x1d"                         /* input, 29 bytes */
    "\x0a\x01x\x12\x18\x0a\x16\x08\x01\x12\x12"
    "\x0a\x02\x08\x01\x0a\x02\x08\x01\x0a\x03\x12\x01h\x0a\x03\x12\x01w"
    "\x62\x1d" /* output, 29 bytes */
    "\x0a\x01y\x12\x18\x0a\x16\x08\x01\x12\x12"
    "\x0a\x02\x08\x01\x0a\x02\x08\x01\x0a\x03\x12\x01h\x0a\x03\x12\x01w";

static const char *const codec[TGI_CODEC_COUNT] = {"none", "deflate", "zstd", "lzw"};

typedef struct trial {
    tg_ctx *ctx; /* told how far it is; the jobs below it run without: their progress is not
                    the caller's */
    double began;
    int done; /* of STEPS */
    char folder[1024];
    int threads;
    int has[TGI_CODEC_COUNT]; /* the pictures of a codec are there */
} trial;

typedef struct cost {
    double beside;     /* seconds of the run that are not its bands */
    double processors; /* processor seconds within the bands that are not kernels */
} cost;

static const char *path_of(const trial *t, const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", t->folder, name);
    return buf;
}

/* ---- Files ------------------------------------------------------------------------------- */

static tg_status write_model(const trial *t, tgi_err *err)
{
    char path[1200];
    const int fd = open(path_of(t, "identity.onnx", path, sizeof path),
                        O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int good =
        fd >= 0 && write(fd, identity, sizeof identity - 1) == (ssize_t)(sizeof identity - 1);
    if (fd >= 0)
        close(fd);
    return good ? TG_OK : tgi_fail(err, TG_E_IO, "%s cannot be written", path);
}

/* Soft blobs, with noise in half of the columns: the upper bits repeat, the lower do not, as in
 * a camera's pictures; and none, as in what a network makes of them. */
static tg_status write_picture(const trial *t, int64_t side, tgi_err *err)
{
    char path[1200], name[32];
    const tgi_desc d = {TG_DTYPE_U16, 2, {side, side}};
    uint16_t *p = tgi_calloc(TGI_TAG_MISC, (size_t)(side * side), sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a picture to measure with");
    uint32_t s = 7;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            s = s * 1664525u + 1013904223u;
            const double blob = sin((double)x * 0.031) * sin((double)y * 0.027);
            const uint32_t noise = x < side / 2 ? s >> 26 : 0;
            p[y * side + x] = (uint16_t)(400 + 600 * blob * blob + noise);
        }
    snprintf(name, sizeof name, "%lld.npy", (long long)side);
    const tg_status st = tgi_npy_save(path_of(t, name, path, sizeof path), &d, p, err);
    tgi_free(p);
    return st;
}

static tg_status make_opts(const char *const (*pair)[2], int n, tg_opts **out, tgi_err *err)
{
    TGI_TRY(tgi_opts_new(out, err));
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < n; i++)
        if (pair[i][1])
            st = tgi_opts_set(*out, pair[i][0], pair[i][1], err);
    if (st != TG_OK) {
        tgi_opts_free(out);
    }
    return st;
}

/* side.npy as TIFF of a codec: "SIDE-CODEC.tif". */
static tg_status write_tiff(const trial *t, int64_t side, const char *how, tgi_err *err)
{
    char from[1200], to[1200], name[40];
    tg_opts *o = NULL;
    snprintf(name, sizeof name, "%lld.npy", (long long)side);
    path_of(t, name, from, sizeof from);
    snprintf(name, sizeof name, "%lld-%s.tif", (long long)side, how);
    path_of(t, name, to, sizeof to);
    const char *const pair[][2] = {{"input", from}, {"output", to}, {"compress", how}};
    TGI_TRY(make_opts(pair, 3, &o, err));
    const tg_status st = tgi_copy(NULL, o, NULL, err);
    tgi_opts_free(&o);
    return st;
}

/* Every name that was made; those that are not there are no failure. */
static void remove_all(const trial *t)
{
    static const char *const fixed[] = {"identity.onnx", "out.tif", "out.tif.tegula.json",
                                        "out.tif.partial", "out.tif.journal"};
    static const int64_t side[] = {SMALL, LARGE};
    char path[1200], name[64];
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        unlink(path_of(t, fixed[i], path, sizeof path));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%lld.npy", (long long)side[i]);
        unlink(path_of(t, name, path, sizeof path));
        for (int c = 0; c < TGI_CODEC_COUNT; c++)
            for (int part = 0; part < 3; part++) {
                static const char *const end[] = {"", ".partial", ".journal"};
                snprintf(name, sizeof name, "%lld-%s.tif%s", (long long)side[i], codec[c],
                         end[part]);
                unlink(path_of(t, name, path, sizeof path));
            }
    }
    rmdir(t->folder);
}

/* ---- Runs -------------------------------------------------------------------------------- */

static tg_status run_once(const trial *t, int64_t side, const char *in, const char *out,
                          const char *normalize, cost *c, tgi_err *err)
{
    char model[1200], from[1200], to[1200], name[40], threads[16];
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_run_result res = {.size = sizeof res};
    snprintf(name, sizeof name, "%lld-%s.tif", (long long)side, in);
    snprintf(threads, sizeof threads, "%d", t->threads);
    const char *const pair[][2] = {{"model", path_of(t, "identity.onnx", model, sizeof model)},
                                   {"input", path_of(t, name, from, sizeof from)},
                                   {"output", path_of(t, "out.tif", to, sizeof to)},
                                   {"compress", out},
                                   {"normalize", normalize},
                                   {"dtype", "same"},
                                   {"threads", threads},
                                   {"ram", "512MiB"},
                                   {"yes", ""}};
    TGI_TRY(make_opts(pair, (int)(sizeof pair / sizeof pair[0]), &o, err));
    tg_status st = tgi_job_open(NULL, o, &job, err);
    if (st == TG_OK)
        st = tgi_job_run(job, &res, err);
    tgi_job_close(&job);
    tgi_opts_free(&o);
    c->beside = res.seconds - res.bands_seconds;
    c->processors = res.processor_seconds - res.compute_seconds * t->threads;
    return st;
}

static double middle(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* The middle of three rounds, each figure by itself. */
static tg_status run_some(trial *t, int64_t side, const char *in, const char *out,
                          const char *normalize, cost *usual, tgi_err *err)
{
    cost c[3];
    for (int r = 0; r < 3; r++)
        TGI_TRY(run_once(t, side, in, out, normalize, &c[r], err));
    usual->beside = middle(c[0].beside, c[1].beside, c[2].beside);
    usual->processors = middle(c[0].processors, c[1].processors, c[2].processors);
    tgi_calibrate_progress(t->ctx, t->began,
                           TGI_KERNELS_SHARE + (1 - TGI_KERNELS_SHARE) * ++t->done / STEPS);
    return TG_OK;
}

static tg_status measure(trial *t, tgi_speeds *s, tgi_err *err)
{
    const double samples = (double)LARGE * LARGE, bytes = 2 * samples;
    const double small_bytes = 2.0 * SMALL * SMALL;
    cost small, plain, counted, c;
    TGI_TRY(run_some(t, SMALL, "none", "none", "none", &small, err));
    TGI_TRY(run_some(t, LARGE, "none", "none", "none", &plain, err));
    TGI_TRY(run_some(t, LARGE, "none", "none", "zscore", &counted, err));
    s->finish = fmax(0, (plain.beside - small.beside) / (bytes - small_bytes));
    s->fixed = fmax(0, small.beside - s->finish * small_bytes);
    s->statistics = fmax(0, (counted.beside - plain.beside) / samples);
    s->sample = fmax(0, plain.processors / (2 * samples));
    for (int k = 1; k < TGI_CODEC_COUNT; k++) {
        if (!t->has[k])
            continue;
        TGI_TRY(run_some(t, LARGE, codec[k], "none", "none", &c, err));
        s->decode[k] = fmax(0, (c.processors - plain.processors) / bytes);
        TGI_TRY(run_some(t, LARGE, "none", codec[k], "none", &c, err));
        s->encode[k] = fmax(0, (c.processors - plain.processors) / bytes);
    }
    return TG_OK;
}

/* Seconds per byte of a reservation as a run makes it. */
static tg_status measure_clearing(tgi_speeds *s, tgi_err *err)
{
    const size_t bytes = (size_t)128 << 20;
    for (int r = 0; r < CLEARINGS; r++) {
        tgi_reserve *m = NULL;
        const double t0 = tgi_seconds();
        TGI_TRY(tgi_reserve_open(bytes, &m, err));
        const double per_byte = (tgi_seconds() - t0) / (double)bytes;
        tgi_reserve_close(&m);
        s->clear = !r || per_byte < s->clear ? per_byte : s->clear;
    }
    return TG_OK;
}

tg_status tgi_calibrate_pipeline(tg_ctx *ctx, double began, const char *folder, tgi_speeds *s,
                                 tgi_err *err)
{
    trial t = {.ctx = ctx, .began = began, .threads = s->processors};
    if (snprintf(t.folder, sizeof t.folder, "%s/calibrate-XXXXXX", folder) >=
            (int)sizeof t.folder ||
        !mkdtemp(t.folder))
        return tgi_fail(err, TG_E_IO, "%s: no folder can be made there to measure in", folder);
    tg_status st = write_model(&t, err);
    if (st == TG_OK)
        st = write_picture(&t, SMALL, err);
    if (st == TG_OK)
        st = write_picture(&t, LARGE, err);
    if (st == TG_OK)
        st = write_tiff(&t, SMALL, "none", err);
    for (int k = 0; st == TG_OK && k < TGI_CODEC_COUNT; k++) {
        st = write_tiff(&t, LARGE, codec[k], err);
        t.has[k] = st == TG_OK;
        if (k && st == TG_E_UNSUPPORTED) { /* not in this build: its speed stays 0 */
            st = TG_OK;
            memset(err, 0, sizeof *err);
        }
    }
    if (st == TG_OK)
        st = measure(&t, s, err);
    if (st == TG_OK)
        st = measure_clearing(s, err);
    remove_all(&t);
    return st;
}
