/* av_open.h - the plugin that reads films, found and opened at the first question (av.h). */
#ifndef TGI_AV_OPEN_H
#define TGI_AV_OPEN_H

#include "io/av/av.h"

/* Its table. TG_E_DEVICE with the reason in one line; later calls answer the same. */
tg_status tgi_av_ops_get(const tgi_av_ops **out, tgi_err *err);
/* Where it was found; "" nowhere. Static. */
const char *tgi_av_path(void);

#endif
