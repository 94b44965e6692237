/* tensor_rank.c - an array whose axes are not as many as the network's input has: what would
 * do. */
#include "engine/ends/tensors.h"

#include <stdio.h>
#include <string.h>

/* Extents as numpy writes a shape; "any" where the network takes any. */
static void shape_text(const int64_t *dim, int rank, char *buf, size_t cap)
{
    size_t n = (size_t)snprintf(buf, cap, "[");
    for (int a = 0; a < rank && n < cap; a++)
        n += dim[a] >= 0
                 ? (size_t)snprintf(buf + n, cap - n, "%s%lld", a ? "," : "", (long long)dim[a])
                 : (size_t)snprintf(buf + n, cap - n, "%sany", a ? "," : "");
    if (n < cap)
        snprintf(buf + n, cap - n, "]");
}

static int fits(const tgi_port *p, const int64_t *dim)
{
    for (int a = 0; a < p->file_rank; a++)
        if (p->file_dim[a] >= 0 && dim[a] != p->file_dim[a])
            return 0;
    return 1;
}

/* 1: the same bytes with axes of 1 in front, or without some that are there, are what the
 * network takes. */
static int reshaped(const tgi_port *p, const tgi_desc *f, int64_t *dim)
{
    const int more = p->file_rank - f->rank;
    for (int a = 0; a < -more; a++)
        if (f->dim[a] != 1)
            return 0;
    for (int a = 0; a < p->file_rank; a++)
        dim[a] = a < more ? 1 : f->dim[a - more];
    return fits(p, dim);
}

/* Samples and channels may be left out where there is one, pixels not: a row is no image. */
static int may_be_missing(const tgi_port *p, int axis)
{
    return axis == p->perm[0] || axis == p->perm[1];
}

int tgi_tensor_widen(const tgi_port *p, tgi_desc *f, int64_t *step)
{
    int64_t dim[TGI_MAX_RANK];
    const int more = p->file_rank - f->rank;
    if (more == 0)
        return 1;
    for (int a = 0; a < more; a++)
        if (!may_be_missing(p, a))
            return 0;
    if (!reshaped(p, f, dim))
        return 0;
    if (more > 0) {
        memmove(step + more, step, (size_t)f->rank * sizeof *step);
        for (int a = 0; a < more; a++)
            step[a] = 0; /* there is one element */
    } else {
        memmove(step, step - more, (size_t)p->file_rank * sizeof *step);
    }
    f->rank = p->file_rank;
    memcpy(f->dim, dim, (size_t)f->rank * sizeof *dim);
    return 1;
}

/* 1: rows of pixels, [H,W,C], where [N,C,H,W] is wanted. */
static int pixels_last(const tgi_port *p, const tgi_desc *f)
{
    return f->rank == 3 && p->file_rank == 4 &&
           fits(p, (const int64_t[]){1, f->dim[2], f->dim[0], f->dim[1]});
}

/* 1: planes behind each other, [P,H,W], where each is a sample of one channel, [N,1,H,W]. */
static int planes_first(const tgi_port *p, const tgi_desc *f, int64_t *dim)
{
    if (f->rank != 3 || p->file_rank != 4)
        return 0;
    const int64_t each[4] = {f->dim[0], 1, f->dim[1], f->dim[2]};
    memcpy(dim, each, sizeof each);
    return fits(p, each);
}

tg_status tgi_tensor_wrong_rank(const tgi_port *p, const char *path, const tgi_desc *f,
                                tgi_err *err)
{
    char have[96], want[160], other[160], cure[256];
    int64_t dim[TGI_MAX_RANK];
    shape_text(p->file_dim, p->file_rank, want, sizeof want);
    if (reshaped(p, f, dim)) {
        shape_text(dim, p->file_rank, other, sizeof other);
        snprintf(cure, sizeof cure,
                 "reshape it to %s, which is the same bytes: numpy's a.reshape(%.*s)", other,
                 (int)strcspn(other + 1, "]"), other + 1);
    } else if (pixels_last(p, f)) {
        snprintf(cure, sizeof cure,
                 "put its channels in front: numpy's a.transpose(2, 0, 1)[None]");
    } else if (planes_first(p, f, dim)) {
        snprintf(cure, sizeof cure,
                 "planes are samples of one channel: numpy's a.reshape(%lld,1,%lld,%lld)",
                 (long long)dim[0], (long long)dim[2], (long long)dim[3]);
    } else {
        snprintf(cure, sizeof cure, "give an array of these axes");
    }
    return tgi_fail(err, TG_E_ARG, "%s holds %s, the network's input \"%s\" is %s: %s", path,
                    tgi_desc_text(f, have, sizeof have), p->name, want, cure);
}
