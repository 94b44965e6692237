/* fit.c - finds the extent to run at, axis by axis, and the grid of a network of one size. */
#include "engine/plan/fit.h"

#include "engine/base/arith.h"

/* Cells end on tiles of the file, whose sides are these. */
static const int64_t file_units[] = {256, 128, 64, 32, 16};
#define N_UNITS ((int)(sizeof file_units / sizeof file_units[0]))

/* What an axis is like to those who look for its size. */
typedef struct axis {
    const tgi_place *place;
    int64_t fixed; /* the one extent that it runs at, or 0 */
} axis;

/* Smallest extent >= n that the network takes. */
static tg_status extent_for(const tgi_graph *g, int k, const axis *a, int64_t n, int64_t *out,
                            tgi_err *err)
{
    const int64_t fixed = a->fixed;
    const tgi_place *p = a->place;
    if (!fixed || n <= fixed) {
        *out = fixed ? fixed : tgi_graph_extent(g, k, n);
        return TG_OK;
    }
    if (p->step_in == 0)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the network works at one size only (%lld; %s), the image has %lld "
                        "pixels there, and fixed boxes are not possible: %s; choose --roi%s",
                        (long long)fixed, g->fixed_why ? g->fixed_why : "fixed export",
                        (long long)n, p->why,
                        p->whole ? ", or --norm-scope tile, which may show seams" : "");
    *out = fixed + tgi_align_up(n - fixed, p->step_in);
    return TG_OK;
}

/* Output extent at an input extent that extent_for gave. */
static tg_status output_for(const tgi_graph *g, int k, const axis *a, int64_t n, int64_t *out,
                            tgi_err *err)
{
    const int64_t fixed = a->fixed;
    const tgi_place *p = a->place;
    TGI_TRY(tgi_graph_output_extent(g, k, fixed ? fixed : n, out, err));
    if (fixed && n > fixed)
        *out += (n - fixed) / p->step_in * p->step_out;
    return TG_OK;
}

static tg_status fit_raw(const tgi_graph *g, int k, int64_t fixed, int64_t extent, tgi_fit *f,
                         tgi_err *err)
{
    const tgi_place *p = &f->place;
    const axis a = {p, fixed};
    int64_t q;
    TGI_TRY(extent_for(g, k, &a, extent, &f->size, err));
    TGI_TRY(output_for(g, k, &a, f->size, &q, err));
    if (p->up == 0 && q > 1 && f->size != extent)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the network turns %lld pixels into %lld: padding cannot be cropped; "
                        "choose a --roi whose size it takes",
                        (long long)f->size, (long long)q);
    f->out = q - tgi_floor_div((f->size - extent) * p->up, p->down);
    if (f->out < 1)
        return tgi_fail(
            err, TG_E_ARG,
            "%lld pixels are fewer than the network needs for one of output: choose "
            "a larger image or --same-size",
            (long long)extent);
    return TG_OK;
}

/* Grow f->size until the output covers f->out pixels from f->crop on. */
static tg_status cover(const tgi_graph *g, int k, int64_t fixed, int64_t extent, tgi_fit *f,
                       tgi_err *err)
{
    const axis a = {&f->place, fixed};
    int64_t q;
    for (;; f->size++) {
        TGI_TRY(extent_for(g, k, &a, f->size, &f->size, err));
        TGI_TRY(output_for(g, k, &a, f->size, &q, err));
        if (q >= f->crop + f->out)
            return TG_OK;
        if (f->size > 4 * (f->before + extent) + ((int64_t)1 << 20))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "no padding makes the output cover the image: give --raw-size");
    }
}

static tg_status fit_padded(const tgi_graph *g, int k, int64_t fixed, int64_t extent,
                            tgi_fit *f, tgi_err *err)
{
    const tgi_place *p = &f->place;
    const int64_t tail = tgi_max(0, p->lost - p->lead);
    /* `before` is a multiple of `down`, so that the output's grid meets the image's. */
    f->before = p->lead > 0 ? p->down * tgi_ceil_div(p->lead, p->up) : 0;
    f->crop = f->before / p->down * p->up - p->lead;
    f->out = tgi_ceil_div(extent * p->up, p->down);
    f->size = f->before + extent + tgi_ceil_div(tail * p->down, p->up);
    return cover(g, k, fixed, extent, f, err);
}

/* As many pixels as the image has, times the scale; where that is no whole number the network
 * says whether it rounds up or down. What it gives beyond them is cropped: at the far side where
 * it rounds sizes up, by its place where it adds a border. */
static tg_status fit_same(const tgi_graph *g, int k, int64_t fixed, int64_t extent, tgi_fit *f,
                          tgi_err *err)
{
    const tgi_place *p = &f->place;
    const int64_t least = extent * p->up / p->down,
                  most = tgi_ceil_div(extent * p->up, p->down);
    if (p->lost > 0)
        return fit_padded(g, k, fixed, extent, f, err);
    TGI_TRY(fit_raw(g, k, fixed, extent, f, err));
    if (f->out < least)
        return fit_padded(g, k, fixed, extent, f, err);
    if (f->out > most) {
        f->crop = p->lost < 0 ? tgi_clamp(-p->lead, 0, f->out - most) : 0;
        f->out = most;
    }
    return TG_OK;
}

/* ---- Boxes ------------------------------------------------------------------------------- */

static int64_t floor_mod(int64_t a, int64_t b)
{
    return a - tgi_floor_div(a, b) * b;
}

/* Most pixels <= room that end on file tiles and on steps; large tiles where they waste little.
 * Slabs of a volume (k = 0) are not tiled. */
static int64_t core_in(int k, int64_t room, int64_t step)
{
    int64_t core = 0;
    for (int i = 0; i < N_UNITS && 4 * core < 3 * room; i++) {
        const int64_t file = k == 0 ? 1 : file_units[i];
        int64_t unit = file;
        while (unit % step)
            unit += file;
        core = room / unit * unit;
    }
    return core;
}

/* The grid of cells that boxes compute: as large as every box keeps, or as was asked for. */
static tg_status lay_grid(const tgi_graph *g, int k, int64_t fixed, tgi_fit *f, tgi_err *err)
{
    const tgi_place *p = &f->place;
    const int64_t room = tgi_range_len(p->keep) - floor_mod(f->crop - p->keep.lo, p->step_out);
    f->box = fixed;
    f->last = (f->size - f->box) / p->step_in;
    if (f->core == 0)
        f->core = room > 0 ? core_in(k, room, p->step_out) : 0;
    if (f->core > 0 && f->core <= room)
        return TG_OK;
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "the network works at one size only (%lld; %s), and of a box of that size "
        "%lld output pixels are free of its border, fewer than boxes can advance by: "
        "choose --roi",
        (long long)f->box, g->fixed_why ? g->fixed_why : "fixed export",
        (long long)tgi_max(0, room));
}

void tgi_fit_shift(const tgi_fit *f, int64_t o, int64_t *in, int64_t *out)
{
    const tgi_place *p = &f->place;
    int64_t box = 0;
    if (f->box) {
        const int64_t cell = f->crop + o / f->core * f->core;
        box = tgi_clamp(tgi_floor_div(cell - p->keep.lo, p->step_out), 0, f->last);
    }
    *in = f->before - box * p->step_in;
    *out = f->crop - box * p->step_out;
}

/* `out`: as many pixels of output are to be kept; 0: as the network gives, or the image has. */
static tg_status fit(const tgi_graph *g, int k, int64_t fixed, int64_t extent, int same_size,
                     int64_t out, tgi_fit *f, tgi_err *err)
{
    TGI_TRY(same_size && f->place.up > 0 ? fit_same(g, k, fixed, extent, f, err)
                                         : fit_raw(g, k, fixed, extent, f, err));
    if (out && out != f->out) {
        f->out = out;
        TGI_TRY(cover(g, k, fixed, extent, f, err));
    }
    if (fixed && f->size > fixed)
        TGI_TRY(lay_grid(g, k, fixed, f, err));
    return TG_OK;
}

static tg_status check_axis(const tgi_graph *g, int k, int64_t extent, tgi_err *err)
{
    if (extent == 1 || tgi_graph_has_axis(g, k))
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "the network works on lines and the image has %lld rows: choose one, "
                    "--roi",
                    (long long)extent);
}

tg_status tgi_fit_axis(const tgi_graph *g, int k, int64_t extent, int same_size, tgi_fit *out,
                       tgi_err *err)
{
    *out = (tgi_fit){0};
    TGI_TRY(check_axis(g, k, extent, err));
    TGI_TRY(tgi_graph_place(g, k, &out->place, err));
    return fit(g, k, tgi_graph_fixed_extent(g, k), extent, same_size, 0, out, err);
}

/* ---- Boxes that somebody asks for -------------------------------------------------------- */

#define BOX_MOST ((int64_t)1 << 15)

/* Cells end on tiles of the file, and on steps. */
static int64_t core_on_steps(int k, int64_t core, const tgi_place *p)
{
    while (core % tgi_max(1, p->step_out))
        core += k == 0 ? 1 : 16;
    return core;
}

/* The smallest box that keeps f->core output pixels wherever its grid lies, and its place. 0: the
 * image is no larger. */
static tg_status find_box(const tgi_graph *g, int k, int64_t extent, int64_t *box, tgi_fit *f,
                          tgi_err *err)
{
    tgi_place *p = &f->place;
    TGI_TRY(tgi_graph_place(g, k, p, err));
    int64_t n =
        tgi_graph_extent(g, k, p->up ? tgi_ceil_div(f->core * p->down, p->up) : f->core);
    for (;;) {
        *box = n < extent ? n : 0;
        if (n >= extent)
            return tgi_graph_place(g, k, p, err);
        TGI_TRY(tgi_graph_place_box(g, k, n, p, err));
        const int64_t core = core_on_steps(k, f->core, p);
        const int64_t lacks = core + p->step_out - 1 - tgi_range_len(p->keep);
        if (p->step_in > 0 && lacks <= 0) {
            f->core = core;
            return TG_OK;
        }
        if (n > BOX_MOST)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "no tile of this network is free of its borders (%s): leave out "
                            "--norm-scope tile",
                            p->step_in ? "its layers read too far" : p->why);
        n = tgi_graph_extent(g, k,
                             p->step_in ? n + tgi_ceil_div(lacks * p->down, p->up) : 2 * n);
    }
}

tg_status tgi_fit_axis_in_boxes(const tgi_graph *g, int k, int64_t extent, int same_size,
                                int64_t core, tgi_fit *out, tgi_err *err)
{
    int64_t box = tgi_graph_fixed_extent(g, k);
    tgi_fit whole = {0};
    if (!box && !core)
        return tgi_fit_axis(g, k, extent, same_size, out, err);
    *out = (tgi_fit){.core = core};
    TGI_TRY(check_axis(g, k, extent, err));
    if (box) {
        TGI_TRY(tgi_graph_place_box(g, k, box, &out->place, err));
    } else {
        TGI_TRY(find_box(g, k, extent, &box, out, err));
        TGI_TRY(tgi_fit_axis(g, k, extent, same_size, &whole, err));
    }
    TGI_TRY(fit(g, k, box, extent, same_size, whole.out, out, err));
    if (!out->box)
        out->core = 0;
    return TG_OK;
}
