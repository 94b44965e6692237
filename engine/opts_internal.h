/* opts_internal.h - the inside of a set of options, for opts.c, opts_json.c and opts_api.c. */
#ifndef TGI_OPTS_INTERNAL_H
#define TGI_OPTS_INTERNAL_H

#include "engine/opts.h"

struct tg_opts {
    tg_ctx *ctx; /* where the public calls leave details; NULL for sets the engine makes */
    char *value[TGI_OPT_COUNT];
    char **tensor; /* "NAME=FILE" */
    int n_tensor;
};

bool tgi_opt_is_switch(tgi_opt id);
bool tgi_opt_is_number(tgi_opt id); /* a JSON number is fine: level, threads, tile */
/* As tgi_opts_set without keeping the value. */
tg_status tgi_opt_check(const char *name, const char *value, tgi_opt *id, tgi_err *err);

#endif
