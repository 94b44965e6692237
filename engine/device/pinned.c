/* pinned.c - takes pinned host memory from a device, or ordinary memory where none is to be
 * had. */
#include "engine/device/pinned.h"

#include "engine/base/mem.h"

tg_status tgi_pinned_get(const tgi_device_ops *ops, tgi_device *d, size_t bytes,
                         tgi_pinned *out, tgi_err *err)
{
    tgi_err why = {0};
    *out = (tgi_pinned){0};
    const tg_status st = ops->pin(d, bytes, &out->at, &why);
    if (st == TG_OK)
        return TG_OK;
    if (st != TG_E_NOMEM) {
        if (err)
            *err = why;
        return st;
    }
    out->at = tgi_malloc(TGI_TAG_PLAN, bytes ? bytes : 1);
    out->ordinary = 1;
    return out->at ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for copies: %s", why.text);
}

void tgi_pinned_drop(const tgi_device_ops *ops, tgi_device *d, tgi_pinned *p)
{
    if (p->ordinary)
        tgi_free(p->at);
    else if (p->at)
        ops->unpin(d, p->at);
    *p = (tgi_pinned){0};
}
