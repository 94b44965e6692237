/* chosen.c - see chosen.h. */
#include "engine/plan/chosen.h"

/* The axis in which two planes differ and by how much; -1: in none, n: in several. */
static int differ_in(int64_t a, int64_t b, int n, const int64_t *size, int64_t *by)
{
    int axis = -1;
    for (int i = n - 1; i >= 0; i--) {
        const int64_t d = b % size[i] - a % size[i];
        a /= size[i];
        b /= size[i];
        if (!d)
            continue;
        axis = axis < 0 ? i : n;
        *by = d;
    }
    return axis;
}

tgi_chosen tgi_chosen_axis(const tgi_planes_spec *p, int64_t count, int n, const char *letter,
                           const int64_t *size)
{
    const int64_t first = tgi_planes_at(p, 0);
    tgi_chosen c = {0, 0};
    int axis = -1;
    int64_t last = 0;
    for (int64_t k = 1; k < count; k++) {
        int64_t at = 0;
        const int a = differ_in(first, tgi_planes_at(p, k), n, size, &at);
        if (a < 0 || a == n || (axis >= 0 && a != axis))
            return (tgi_chosen){'I', 0};
        axis = a;
        c.step = k == 1 || at - last == c.step ? at - last : 0;
        last = at;
    }
    if (axis >= 0)
        c.letter = letter[axis];
    return c;
}

double tgi_chosen_scale(const tgi_chosen *c, char letter, double each)
{
    return c->letter == letter ? each * (double)c->step : each;
}
