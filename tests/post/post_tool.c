/* post_tool - makes objects of planes in a .npy file, so that scripts can compare them with those of the users' own
 * programs:
 *
 *     post_tool stardist PLANES.npy OUT.npy [prob=X] [nms=X] [grid=N] [border=N] [height=N] [width=N] [band=N] [paint=N]
 *
 *     post_tool cellpose PLANES.npy OUT.npy [cell=X] [flow=X] [niter=N] [min=N] [band=N] [margin=N] [threads=N] [scratch=1]
 *
 * PLANES.npy: float32, planes x height x width. OUT.npy: uint32, height x width. Prints one line: objects, peak bytes,
 * seconds. */
#include "engine/base/clock.h"
#include "engine/post/cellpose.h"
#include "engine/post/stardist.h"
#include "tests/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct planes {
    int64_t n[3]; /* planes, height, width */
    float *values;
} planes;

static tg_status rows_of(void *user, int64_t plane, int64_t y0, int64_t y1, float *dst,
                         tgi_err *err)
{
    const planes *p = user;
    (void)err;
    memcpy(dst, p->values + (plane * p->n[1] + y0) * p->n[2],
           (size_t)((y1 - y0) * p->n[2]) * sizeof *dst);
    return TG_OK;
}

static int read_planes(const char *path, planes *p)
{
    char head[65536] = "";
    unsigned char pre[10];
    FILE *f = fopen(path, "rb");
    if (!f || fread(pre, 1, 10, f) != 10 || fread(head, 1, pre[8] + 256u * pre[9], f) == 0)
        return 0;
    const char *shape = strstr(head, "'shape': (");
    long long n[3];
    if (!strstr(head, "'<f4'") || !strstr(head, "'fortran_order': False") || !shape ||
        sscanf(shape, "'shape': (%lld, %lld, %lld)", &n[0], &n[1], &n[2]) != 3)
        return 0;
    const size_t count = (size_t)(n[0] * n[1] * n[2]);
    for (int i = 0; i < 3; i++)
        p->n[i] = n[i];
    p->values = malloc(count * sizeof(float));
    const int whole = p->values && fread(p->values, sizeof(float), count, f) == count;
    fclose(f);
    return whole;
}

static FILE *begin_labels(const char *path, int64_t height, int64_t width)
{
    char head[128];
    FILE *f = fopen(path, "wb");
    const int n = snprintf(head, sizeof head,
                           "{'descr': '<u4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                           (long long)height, (long long)width);
    memset(head + n, ' ', sizeof head - (size_t)n);
    head[117] = '\n';
    if (f) {
        fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
        fwrite(head, 1, 118, f);
    }
    return f;
}

static double option(int n, char **v, const char *name, double otherwise)
{
    const size_t len = strlen(name);
    for (int i = 0; i < n; i++)
        if (strncmp(v[i], name, len) == 0 && v[i][len] == '=')
            return strtod(v[i] + len + 1, NULL);
    return otherwise;
}

static int refused(tg_status st, const tgi_err *err)
{
    fprintf(stderr, "%s: %s\n", tg_status_name(st), err->text);
    return 1;
}

static int stardist(planes *p, const char *out, int n, char **v)
{
    tgi_stardist_how how = TGI_STARDIST_HOW;
    how.prob_threshold = (float)option(n, v, "prob", 0.5);
    how.nms_threshold = (float)option(n, v, "nms", 0.4);
    how.grid = (int)option(n, v, "grid", 1);
    how.border = (int)option(n, v, "border", 2);
    how.height = (int64_t)option(n, v, "height", (double)p->n[1] * how.grid);
    how.width = (int64_t)option(n, v, "width", (double)p->n[2] * how.grid);
    how.band_rows = (int64_t)option(n, v, "band", 0);
    how.limit_bytes = (size_t)option(n, v, "limit", 0);
    const tgi_post_rows rows = {rows_of, p, p->n[1], p->n[2], (int)p->n[0]};
    tgi_err err = {0};
    tgi_stardist *s = NULL;
    const double t0 = tgi_seconds();
    const tg_status st = tgi_stardist_open(&rows, &how, &s, &err);
    if (st != TG_OK)
        return refused(st, &err);
    const double t1 = tgi_seconds();
    const int64_t band = (int64_t)option(n, v, "paint", 64);
    uint32_t *labels = malloc((size_t)(band * how.width) * sizeof *labels);
    FILE *f = begin_labels(out, how.height, how.width);
    for (int64_t y = 0; f && labels && y < how.height; y += band) {
        const int64_t y1 = y + band < how.height ? y + band : how.height;
        tgi_stardist_paint(s, y, y1, labels);
        fwrite(labels, sizeof *labels, (size_t)((y1 - y) * how.width), f);
    }
    printf("objects=%u peak=%zu find=%.3f paint=%.3f\n", tgi_stardist_count(s),
           tgi_stardist_peak(s), t1 - t0, tgi_seconds() - t1);
    free(labels);
    tgi_stardist_close(&s);
    return !f || fclose(f) != 0;
}

static int cellpose(planes *p, const char *out, int n, char **v)
{
    tgi_cellpose_how how = TGI_CELLPOSE_HOW;
    how.cell_threshold = (float)option(n, v, "cell", 0);
    how.flow_threshold = option(n, v, "flow", 0.4);
    how.niter = (int)option(n, v, "niter", 200);
    how.min_size = (int)option(n, v, "min", 15);
    how.band_rows = (int64_t)option(n, v, "band", 0);
    how.margin_rows = (int64_t)option(n, v, "margin", 0);
    how.n_threads = (int)option(n, v, "threads", 1);
    how.scratch = option(n, v, "scratch", 0) != 0 ? "." : NULL;
    how.limit_bytes = (size_t)option(n, v, "limit", 0);
    const tgi_post_rows rows = {rows_of, p, p->n[1], p->n[2], (int)p->n[0]};
    tgi_err err = {0};
    tgi_cellpose *c = NULL;
    const double t0 = tgi_seconds();
    tg_status st = tgi_cellpose_open(&rows, &how, &c, &err);
    if (st != TG_OK)
        return refused(st, &err);
    const double t1 = tgi_seconds();
    uint32_t *labels = malloc((size_t)(p->n[1] * p->n[2]) * sizeof *labels);
    FILE *f = begin_labels(out, p->n[1], p->n[2]);
    for (int64_t y = 0; f && labels && st == TG_OK && y < p->n[1]; y += 13) {
        const int64_t y1 = y + 13 < p->n[1] ? y + 13 : p->n[1];
        st = tgi_cellpose_paint(c, y, y1, labels, &err);
        fwrite(labels, sizeof *labels, (size_t)((y1 - y) * p->n[2]), f);
    }
    printf("objects=%u peak=%zu find=%.3f paint=%.3f\n", tgi_cellpose_count(c),
           tgi_cellpose_peak(c), t1 - t0, tgi_seconds() - t1);
    free(labels);
    tgi_cellpose_close(&c);
    return !f || fclose(f) != 0 || st != TG_OK;
}

static int make(planes *p, int argc, char **argv)
{
    if (strcmp(argv[1], "stardist") == 0)
        return stardist(p, argv[3], argc - 4, argv + 4);
    return strcmp(argv[1], "cellpose") == 0 ? cellpose(p, argv[3], argc - 4, argv + 4) : 64;
}

int main(int argc, char **argv)
{
    planes p = {0};
    if (argc < 4 || !read_planes(argv[2], &p)) {
        fprintf(stderr,
                "usage: post_tool stardist|cellpose PLANES.npy OUT.npy [name=value ...]\n");
        return 64;
    }
    CHECK_EQ(make(&p, argc, argv), 0);
    free(p.values);
    return TEST_END();
}
