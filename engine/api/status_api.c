/* status_api.c - what a status is called; of tegula.h. */
#include "engine/base/status.h"

const char *tg_status_name(tg_status st)
{
    return tgi_status_name(st);
}

const char *tg_status_sentence(tg_status st)
{
    return tgi_status_sentence(st);
}
