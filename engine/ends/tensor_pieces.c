/* tensor_pieces.c - orders the axes by their step in the file and walks the pieces of a box. */
#include "engine/ends/tensor_pieces.h"

#include "engine/base/arith.h"

#define NEAR 256 /* elements of a gap that are cheaper to read than to leave out */

static void sort_axes(tgi_file_walk *w)
{
    const tgi_file_box *b = w->box;
    for (int k = 0; k < b->rank; k++) {
        int i = k;
        for (; i > 0 && b->step[w->order[i - 1]] > b->step[k]; i--)
            w->order[i] = w->order[i - 1];
        w->order[i] = k;
    }
}

void tgi_file_walk_begin(tgi_file_walk *w, const tgi_file_box *box, int64_t room,
                         tgi_file_gaps gaps, const int64_t *also)
{
    int64_t span = 1;
    int open = 1; /* all axes so far are in a piece as a whole */
    *w = (tgi_file_walk){.box = box, .more = 1};
    sort_axes(w);
    for (int k = 0; k < box->rank; k++) {
        const int a = w->order[k];
        const int64_t n = box->n[a], step = box->step[a];
        const int64_t most = gaps == TGI_FILE_DENSE ? span : tgi_max(2 * span, NEAR);
        w->part[a] = 1;
        w->more &= n > 0;
        if (n <= 1 || !open)
            continue;
        open = step <= most && step > 0 && (!also || also[a] == step);
        if (open)
            w->part[a] = tgi_clamp((room - span) / step + 1, 1, n);
        span += (w->part[a] - 1) * step;
        open &= w->part[a] == n;
    }
}

int tgi_file_walk_next(tgi_file_walk *w, tgi_file_piece *out)
{
    const tgi_file_box *b = w->box;
    if (!w->more)
        return 0;
    *out = (tgi_file_piece){.span = 1};
    for (int a = 0; a < b->rank; a++) {
        out->lo[a] = w->at[a];
        out->n[a] = tgi_min(w->part[a], b->n[a] - w->at[a]);
        out->first += w->at[a] * b->step[a];
        out->span += (out->n[a] - 1) * b->step[a];
    }
    w->more = 0;
    for (int k = 0; k < b->rank && !w->more; k++) {
        const int a = w->order[k];
        w->at[a] += w->part[a];
        w->more = w->at[a] < b->n[a];
        if (!w->more)
            w->at[a] = 0;
    }
    return 1;
}
