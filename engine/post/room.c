/* room.c - see room.h. While an array moves, the new one is counted before the old one is given back. */
#include "engine/post/room.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

tg_status tgi_room_take(tgi_room *r, size_t bytes, tgi_err *err)
{
    const size_t now = tgi_sat_add(r->held, bytes);
    if (r->limit && now > r->limit)
        return tgi_err_tried(
            err,
            tgi_fail(err, TG_E_BUDGET,
                     "%s: objects take more than the %zu bytes there are for them; "
                     "try more memory, or %s",
                     r->who, r->limit, r->remedy),
            r->who, now);
    r->held = now;
    r->peak = now > r->peak ? now : r->peak;
    return TG_OK;
}

void tgi_room_give(tgi_room *r, size_t bytes)
{
    r->held -= bytes;
}

static tg_status refused(tgi_room *r, size_t bytes, tgi_err *err)
{
    tgi_room_give(r, bytes);
    return tgi_fail(err, TG_E_NOMEM, "%s: the system refused %zu bytes", r->who, bytes);
}

tg_status tgi_room_new(tgi_room *r, void **out, size_t n, size_t size, tgi_err *err)
{
    const size_t bytes = tgi_sat_mul(n, size);
    TGI_TRY(tgi_room_take(r, bytes, err));
    *out = tgi_calloc(TGI_TAG_MISC, n, size);
    return *out ? TG_OK : refused(r, bytes, err);
}

tg_status tgi_room_resize(tgi_room *r, void **p, size_t *have, size_t n, size_t size,
                          tgi_err *err)
{
    const size_t bytes = tgi_sat_mul(n, size);
    TGI_TRY(tgi_room_take(r, bytes, err));
    void *moved = tgi_realloc_n(TGI_TAG_MISC, *p, n, size);
    if (!moved)
        return refused(r, bytes, err);
    tgi_room_give(r, *have * size);
    *p = moved;
    *have = n;
    return TG_OK;
}

tg_status tgi_room_grow(tgi_room *r, void **p, size_t *have, size_t need, size_t size,
                        tgi_err *err)
{
    if (need <= *have)
        return TG_OK;
    return tgi_room_resize(r, p, have, tgi_sat_add(need, need / 2 + 256), size, err);
}

void tgi_room_free(tgi_room *r, void **p, size_t n, size_t size)
{
    if (*p)
        tgi_room_give(r, n * size);
    tgi_free(*p);
    *p = NULL;
}
