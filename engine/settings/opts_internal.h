/* opts_internal.h - the inside of a set of options, for opts*.c and engine/preset. */
#ifndef TGI_OPTS_INTERNAL_H
#define TGI_OPTS_INTERNAL_H

#include "engine/base/json.h"
#include "engine/settings/opts.h"

/* Where a value is from; the larger one wins. */
typedef enum tgi_from {
    TGI_FROM_DEFAULT,
    TGI_FROM_PRESET,
    TGI_FROM_JOB,
    TGI_FROM_SET
} tgi_from;

typedef struct tgi_kept {
    char *text;
    size_t n;
} tgi_kept;

struct tg_opts {
    tg_ctx *ctx; /* where the public calls leave details; NULL for sets the engine makes */
    char *value[TGI_OPT_COUNT];
    unsigned char from[TGI_OPT_COUNT]; /* tgi_from; DEFAULT where there is no value */
    char *file[TGI_OPT_COUNT];         /* which job file or preset; NULL for the other two */
    char lowered
        [200]; /* what --allow-lower-quality made of what was asked (inpaint_choice.h); "": nothing */
    char set_by[32]; /* who calls tg_opts_set; "": a program */
    char **tensor;   /* "NAME=FILE" */
    int n_tensor;
    struct tgi_lent *lent; /* lent.h */
    int n_lent;
    tgi_kept *kept; /* TGI_OPT_COUNT: what pipes that options name gave, once */
};

bool tgi_opt_is_switch(tgi_opt id);
bool tgi_opt_is_number(tgi_opt id); /* a JSON number is fine: level, threads, tile */
/* As tgi_opts_set without keeping the value. */
tg_status tgi_opt_check(const char *name, const char *value, tgi_opt *id, tgi_err *err);
/* As tgi_opts_set for a value that `file` gives; the caller has seen that it wins. */
tg_status tgi_opts_set_from(tg_opts *o, const char *name, const char *value, tgi_from from,
                            const char *file, tgi_err *err);
/* Forget all values of one origin. */
void tgi_opts_drop(tg_opts *o, tgi_from from);
/* Forget one value, but of input-tensor. */
void tgi_opts_forget(tg_opts *o, tgi_opt id);
/* Set what the object says and what no value of the same or a higher rank is there for.
 * `file` names it in details and as the origin. From a preset only options that presets may
 * hold. */
tg_status tgi_opts_read(tg_opts *o, const tgi_json *object, tgi_from from, const char *file,
                        tgi_err *err);
/* Tell the context's watcher, when there is one, which values of a preset that was set by name
 * lose against the job file: `ids`, n of them. */
void tgi_opts_tell_lost(const tg_opts *o, const char *job, const char *preset,
                        const tgi_opt *ids, int n);
/* Members of the open object for the options that were set and that `which` says yes to;
 * returns how many. */
int tgi_opts_write(tgi_jw *w, const tg_opts *o, bool (*which)(tgi_opt id));

#endif
