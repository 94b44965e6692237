/* doctor_api.c - tg_doctor, apart from the rest of tegula_memory.h: it opens jobs, and who only
 * asks for memory need not link them. */
#include "engine/base/ctx.h"
#include "engine/verbs/doctor.h"
#include "tegula_memory.h"

tg_status tg_doctor(tg_ctx *ctx, const char *root, const tg_opts *job, tg_finding **list,
                    size_t *n)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!list || !n)
        return tgi_fail(err, TG_E_ARG, "tg_doctor: NULL argument");
    return tgi_doctor(root ? root : "", job, list, n, err);
}
