#include "engine/job/go_on.h"

tg_status tgi_may_go_on(const tg_journal *j, const tgi_bad_tiles *bad, const char *output,
                        tgi_err *err)
{
    if (bad || (!tgi_journal_bad(j)->regions && !tgi_bad_tiles_left(output)))
        return TG_OK;
    return tgi_fail(err, TG_E_CHANGED,
                    "the interrupted output of %s has regions filled by --on-bad-tile fill: "
                    "go on with it, or give -y to discard that output and start over",
                    output);
}

tg_status tgi_go_on(tg_journal *j, const tg_sink_layout *layout, tgi_bad_tiles *bad,
                    tgi_err *err)
{
    if (bad)
        TGI_TRY(tgi_bad_tiles_begin(bad, tgi_journal_bad(j), err));
    return tgi_journal_resume(j, layout, err);
}

tg_status tgi_settle(tg_journal *j, tgi_bad_tiles *bad, const char *input, const char *output,
                     int *settled, tgi_err *err)
{
    const tgi_bad_state was = *tgi_journal_bad(j);
    *settled = 0;
    if (was.regions) { /* so there is a list: tgi_may_go_on */
        TGI_TRY(tgi_bad_tiles_begin(bad, &was, err));
        TGI_TRY(tgi_bad_tiles_write(bad, input, err));
    }
    TGI_TRY(tgi_journal_clear_finished(j, err));
    if (bad)
        tgi_bad_tiles_clear(bad);
    *settled = 1;
    return tgi_bad_tiles_verdict(was.regions, input, output, err);
}
