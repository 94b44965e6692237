/* job_scenes.c - see job_scenes.h. */
#include "engine/job/job_scenes.h"

#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/out/gate.h"
#include "engine/settings/config.h"
#include "io/film_out.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *asked(const tg_opts *o)
{
    return tgi_opts_str(o, TGI_OPT_SPLIT_SCENES);
}

int tgi_job_splits(const tg_opts *o)
{
    return asked(o) && strcmp(asked(o), "off") != 0;
}

/* Where what was found lies; "": nowhere. */
static void list_path(const tg_job *job, char path[4096])
{
    const tgi_settings *s = &job->set;
    const char *out = s->pictures ? s->pictures : s->output;
    *path = 0;
    if (out && strcmp(out, TGI_FILM_STDOUT) != 0)
        snprintf(path, 4096, "%s.cuts.csv", out);
}

static int writes_nothing(const tg_opts *o)
{
    return tgi_opts_flag(o, TGI_OPT_PLAN_ONLY) || tgi_opts_given(o, TGI_OPT_PREVIEW);
}

static int is_written(const char *path, const char *text)
{
    FILE *f = fopen(path, "re");
    const size_t all = strlen(text);
    size_t at = 0, n;
    char some[4096];
    int same = f != NULL;
    while (same && (n = fread(some, 1, sizeof some, f)) > 0) {
        same = n <= all - at && memcmp(text + at, some, n) == 0;
        at += n;
    }
    if (f)
        fclose(f);
    return same && at == all;
}

/* A list that somebody changed is not replaced. */
static tg_status write_list(const tg_job *job, const char *path, const tgi_cuts *c,
                            tgi_err *err)
{
    int64_t lo = 0, hi = job->source->ops->info(job->source)->n_planes;
    if (!*path || writes_nothing(job->opts))
        return TG_OK;
    tgi_film_source_around(job->source, &lo, &hi);
    char *text = tgi_cuts_text(c, hi - lo);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a list of scenes");
    tg_status st = TG_OK;
    if (access(path, F_OK) == 0 && !is_written(path, text) && !job->set.overwrite)
        st = tgi_fail(err, TG_E_EXISTS,
                      "%s: other scenes are listed there than were found: --split-scenes %s "
                      "takes them, -y replaces the list",
                      path, path);
    else
        st = tgi_write_text(path, text, 1, err);
    tgi_free(text);
    return st;
}

/* A run that goes on has the list that it began with. */
static tg_status find(const tg_job *job, tgi_cuts *out, tgi_err *err)
{
    char path[4096];
    list_path(job, path);
    if (*path && access(path, R_OK) == 0 && !job->set.overwrite &&
        tgi_gate_interrupted(job->set.output))
        return tgi_cuts_read(path, job->source, out, err);
    TGI_TRY(tgi_cuts_find(job->source, tgi_check_cancel, out, err));
    return write_list(job, path, out, err);
}

tg_status tgi_job_cuts(const tg_job *job, tgi_cuts *out, tgi_err *err)
{
    *out = (tgi_cuts){0};
    if (!tgi_job_splits(job->opts))
        return TG_OK;
    if (tgi_film_source_is_stream(job->source))
        return tgi_fail(err, TG_E_ARG,
                        "%s: its frames come once, through a pipe, and --split-scenes asks how "
                        "many there are: write it to a file first",
                        job->set.input);
    const tg_status st = strcmp(asked(job->opts), "auto") == 0
                             ? find(job, out, err)
                             : tgi_cuts_read(asked(job->opts), job->source, out, err);
    for (int64_t i = 0; i < out->n; i++)
        out->first[i] -= tgi_film_source_first(job->source);
    if (st != TG_OK)
        tgi_cuts_free(out);
    return st;
}
