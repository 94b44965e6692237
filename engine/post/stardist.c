/* stardist.c - reading the planes of StarDist: what the longest ray is, then the candidates, band by band. */
#include "engine/post/stardist.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/post/star_window.h"

#include <math.h>
#include <stdlib.h>

#define BAND_ROWS 64
#define SHORTEST 1e-3f /* theirs raises what a network says to this */
#define LONGEST (float)(1 << 20)
#define SIDE_MOST                                                                              \
    ((int64_t)1 << 23) /* of an image: beyond, single precision has no whole pixels */

/* Candidates of one band, and what they are read through. */
typedef struct gathering {
    const tgi_post_rows *rows;
    tgi_stardist *s;
    tgi_star_window window;
    float *prob, *plane; /* a band each */
    int64_t band;
    size_t bytes;
} gathering;

static tg_status check(const tgi_post_rows *rows, const tgi_stardist_how *how, tgi_err *err)
{
    if (rows->planes < 4 || rows->planes > TGI_STARDIST_RAYS + 1)
        return tgi_fail(
            err, TG_E_ARG,
            "stardist: expected 1 plane of probabilities and 3 to %d of distances, found "
            "%d in all",
            TGI_STARDIST_RAYS, rows->planes);
    if (how->grid < 1 || how->grid > 64 || how->border < 0 || isnan(how->prob_threshold) ||
        isnan(how->nms_threshold))
        return tgi_fail(err, TG_E_ARG,
                        "stardist: grid %d, border %d: grid is 1 to 64, border not "
                        "below 0, thresholds are numbers",
                        how->grid, how->border);
    if (rows->height < 1 || rows->width < 1 || how->height > SIDE_MOST ||
        how->width > SIDE_MOST || rows->height > SIDE_MOST / how->grid ||
        rows->width > SIDE_MOST / how->grid)
        return tgi_fail(err, TG_E_ARG,
                        "stardist: %lld x %lld values: a side of the image has 1 to "
                        "2^23 pixels",
                        (long long)rows->width, (long long)rows->height);
    return TG_OK;
}

/* Above the threshold, and not at the border. */
static int is_candidate(const gathering *g, int64_t y, int64_t x, float prob)
{
    const int64_t b = g->s->how.border;
    return prob > g->s->how.prob_threshold && y >= b && y < g->rows->height - b && x >= b &&
           x < g->rows->width - b;
}

static tg_status distance_of(int64_t plane, int64_t y, int64_t x, float *d, tgi_err *err)
{
    if (!(fabsf(*d) <= LONGEST))
        return tgi_fail(err, TG_E_FORMAT,
                        "stardist: the distance along ray %lld at row %lld, column %lld is %g; "
                        "expected a number of pixels up to 2^20",
                        (long long)plane - 1, (long long)y, (long long)x, (double)*d);
    *d = *d < SHORTEST ? SHORTEST : *d;
    return TG_OK;
}

/* The longest ray of all candidates, so that one can say what is far enough away. */
static tg_status longest_ray(gathering *g, tgi_err *err)
{
    const int64_t width = g->rows->width;
    for (int64_t y0 = 0; y0 < g->rows->height; y0 += g->band) {
        const int64_t y1 = tgi_min(y0 + g->band, g->rows->height), n = (y1 - y0) * width;
        TGI_TRY(g->rows->rows(g->rows->user, 0, y0, y1, g->prob, err));
        int any = 0;
        for (int64_t i = 0; i < n; i++)
            any |= is_candidate(g, y0 + i / width, i % width, g->prob[i]);
        for (int k = 1; any && k < g->rows->planes; k++) {
            TGI_TRY(g->rows->rows(g->rows->user, k, y0, y1, g->plane, err));
            for (int64_t i = 0; i < n; i++) {
                float d = g->plane[i];
                if (!(g->prob[i] > g->s->how.prob_threshold) ||
                    !is_candidate(g, y0 + i / width, i % width, g->prob[i]))
                    continue;
                TGI_TRY(distance_of(k, y0 + i / width, i % width, &d, err));
                g->window.longest = d > g->window.longest ? d : g->window.longest;
            }
        }
    }
    return TG_OK;
}

static tg_status gather_band(gathering *g, int64_t y0, int64_t y1, tgi_err *err)
{
    tgi_star_window *w = &g->window;
    const int64_t width = g->rows->width, grid = g->s->how.grid;
    const size_t first = w->n_waiting, rays = (size_t)g->s->rays;
    TGI_TRY(g->rows->rows(g->rows->user, 0, y0, y1, g->prob, err));
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = 0; x < width; x++) {
            const float prob = g->prob[(y - y0) * width + x];
            if (is_candidate(g, y, x, prob))
                TGI_TRY(tgi_star_window_add(w, y * grid, x * grid, prob, err));
        }
    for (int k = 1; w->n_waiting > first && k < g->rows->planes; k++) {
        TGI_TRY(g->rows->rows(g->rows->user, k, y0, y1, g->plane, err));
        for (size_t i = first; i < w->n_waiting; i++) {
            const tgi_star_candidate *c = &w->waiting[i];
            float d = g->plane[(c->y / grid - y0) * width + c->x / grid];
            TGI_TRY(distance_of(k, c->y / grid, c->x / grid, &d, err));
            w->distances[c->slot * rays + (size_t)k - 1] = d;
        }
    }
    for (size_t i = first; i < w->n_waiting; i++)
        tgi_star_window_measure(w, &w->waiting[i]);
    return TG_OK;
}

static int by_rank(const void *pa, const void *pb)
{
    const tgi_stardist_object *a = pa, *b = pb;
    if (a->prob != b->prob)
        return a->prob > b->prob ? -1 : 1;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    return (a->x > b->x) - (a->x < b->x);
}

static tg_status find(gathering *g, tgi_err *err)
{
    const tgi_post_rows *rows = g->rows;
    g->bytes =
        tgi_sat_mul(tgi_sat_mul(2 * (size_t)g->band, (size_t)rows->width), sizeof(float));
    TGI_TRY(tgi_room_take(&g->s->memory, g->bytes, err));
    g->prob = tgi_malloc(TGI_TAG_MISC, g->bytes);
    if (!g->prob)
        return tgi_fail(err, TG_E_NOMEM, "stardist: no memory for %lld rows",
                        (long long)g->band);
    g->plane = g->prob + g->band * rows->width;
    TGI_TRY(tgi_star_window_open(&g->window, g->s, err));
    if (g->band < rows->height) /* with all of it at once there is nothing to be far from */
        TGI_TRY(longest_ray(g, err));
    for (int64_t y0 = 0; y0 < rows->height; y0 += g->band) {
        const int64_t y1 = tgi_min(y0 + g->band, rows->height);
        TGI_TRY(gather_band(g, y0, y1, err));
        const int64_t read_to = y1 == rows->height ? INT64_MAX : y1 * g->s->how.grid;
        TGI_TRY(tgi_star_window_decide(&g->window, read_to, err));
    }
    if (g->s->n > 1)
        qsort(g->s->objects, g->s->n, sizeof *g->s->objects, by_rank);
    return TG_OK;
}

tg_status tgi_stardist_open(const tgi_post_rows *rows, const tgi_stardist_how *how,
                            tgi_stardist **out, tgi_err *err)
{
    TGI_TRY(check(rows, how, err));
    tgi_stardist *s = tgi_calloc(TGI_TAG_MISC, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "stardist: no memory");
    s->how = *how;
    s->how.height = how->height ? how->height : rows->height * how->grid;
    s->how.width = how->width ? how->width : rows->width * how->grid;
    s->rays = rows->planes - 1;
    s->memory = (tgi_room){
        .who = "stardist", .limit = how->limit_bytes, .remedy = "a higher threshold (prob=X)"};
    gathering g = {.rows = rows, .s = s};
    g.band = tgi_min(how->band_rows > 0 ? how->band_rows : BAND_ROWS, rows->height);
    tg_status st = find(&g, err);
    tgi_star_window_close(&g.window);
    if (g.prob)
        tgi_room_give(&s->memory, g.bytes);
    tgi_free(g.prob);
    if (st == TG_OK)
        st = tgi_star_paint_open(s, err);
    if (st != TG_OK)
        tgi_stardist_close(&s);
    else
        *out = s;
    return st;
}

void tgi_stardist_close(tgi_stardist **s)
{
    if (!*s)
        return;
    tgi_free((*s)->objects);
    tgi_free((*s)->distances);
    tgi_free((*s)->corner_y);
    tgi_free((*s)->sines);
    tgi_free((*s)->turns);
    tgi_free((*s)->near);
    tgi_free(*s);
    *s = NULL;
}

size_t tgi_stardist_bytes(const tgi_stardist_how *how, int64_t width, int rays, double reach,
                          uint64_t n_objects)
{
    const size_t band = (size_t)(how->band_rows > 0 ? how->band_rows : BAND_ROWS),
                 w = (size_t)width;
    const size_t waits = band + 2 * ((size_t)ceil(reach / how->grid) + 2); /* rows */
    const size_t each =
        sizeof(tgi_star_candidate) + sizeof(uint32_t) + (size_t)rays * sizeof(float);
    const size_t across = (size_t)ceil(2 * reach / 32) + 2; /* cells that one object touches */
    const size_t object = sizeof(tgi_stardist_object) + sizeof(tgi_star_candidate) + 8 +
                          sizeof(uint32_t) + (size_t)rays * sizeof(float) + 8 * across * across;
    size_t all = tgi_sat_mul(2 * sizeof(float) * band, w);
    /* Arrays grow by half more, and for a moment old and new ones are there. */
    all = tgi_sat_add(all, tgi_sat_mul(tgi_sat_mul(waits, w), 5 * each / 2));
    all = tgi_sat_add(all, tgi_sat_mul(n_objects, 5 * object / 2));
    return tgi_sat_add(all, 65536 + 8 * w +
                                8 * (waits * (size_t)how->grid / 32 + 2) *
                                    (w * (size_t)how->grid / 32 + 2));
}

uint32_t tgi_stardist_count(const tgi_stardist *s)
{
    return s->n;
}

const tgi_stardist_object *tgi_stardist_object_at(const tgi_stardist *s, uint32_t id)
{
    return &s->objects[id - 1];
}

const float *tgi_stardist_distances(const tgi_stardist *s, uint32_t id)
{
    return s->distances + (size_t)s->objects[id - 1].at * (size_t)s->rays;
}

size_t tgi_stardist_peak(const tgi_stardist *s)
{
    return s->memory.peak;
}
