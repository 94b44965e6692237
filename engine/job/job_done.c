/* job_done.c - see job_done.h. The receipt has the fingerprint of the job that wrote the output: line by line it is
 * compared with this job's, as the journal's of an interrupted output is. */
#include "engine/job/job_done.h"

#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/job/fingerprint.h"
#include "engine/job/job_plan.h"
#include "engine/job/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The receipt of what is finished; NULL: there is none of this file, or a run left a journal. */
static tgi_json *receipt_of(const char *output)
{
    struct stat st;
    char path[4096];
    return snprintf(path, sizeof path, "%s.journal", output) >= (int)sizeof path ||
                   lstat(path, &st) == 0
               ? NULL
               : tgi_receipt_of(output);
}

static tg_status stored_text(const tgi_json *receipt, char **text, tgi_err *err)
{
    tgi_lines t = {0};
    tgi_receipt_fingerprint(receipt, &t);
    tgi_lines_add(&t, "plan", "%s", ""); /* so that there is a line */
    return tgi_lines_take(&t, text, err);
}

static tg_status compare(tg_job *job, const tgi_json *receipt, tgi_err *err)
{
    char *was = NULL, *now = NULL;
    TGI_TRY(tgi_job_plan_to_run(job, err));
    TGI_TRY(stored_text(receipt, &was, err));
    tg_status st = tgi_fingerprint_make(job, &now, err);
    if (st == TG_OK)
        st = tgi_fingerprint_compare_done(was, strlen(was), now, job->set.output, err);
    tgi_free(was);
    tgi_free(now);
    return st;
}

/* Of pictures the output is their list, "NAME 1234 bytes, ..." each: all are there, of that size. */
static int pictures_are_there(const tg_job *job)
{
    char line[4096 + 64], path[8192];
    const char *list = job->set.output, *slash = strrchr(list, '/');
    const int folder = slash ? (int)(slash - list) + 1 : 0;
    int good = 1;
    struct stat st;
    FILE *f = job->set.pictures ? fopen(list, "re") : NULL;
    while (f && good && fgets(line, sizeof line, f)) {
        char *end = strstr(line, " bytes, "), *size = end;
        while (size && size > line && size[-1] != ' ')
            size--;
        if (!size || size == line) /* of another tegula */
            continue;
        size[-1] = 0;
        snprintf(path, sizeof path, "%.*s%s", folder, list, line);
        good = stat(path, &st) == 0 && st.st_size == strtoll(size, NULL, 10);
    }
    if (f)
        fclose(f);
    return good;
}

tg_status tgi_job_is_done(tg_job *job, int *done, int64_t *bad, tgi_err *err)
{
    const char *output = job->set.output;
    *done = 0;
    *bad = 0;
    if (!output || !tgi_opts_flag(job->opts, TGI_OPT_SKIP_DONE))
        return TG_OK;
    tgi_json *receipt = receipt_of(output);
    if (!receipt)
        return TG_OK;
    tg_status st = compare(job, receipt, err);
    if (st == TG_OK && !pictures_are_there(job))
        st = tgi_fail(
            err, TG_E_EXISTS,
            "%s: exists already, and pictures that it lists are gone or are others; -y "
            "makes them again",
            output);
    *done = st == TG_OK;
    if (*done)
        (void)tgi_json_int(tgi_json_get(receipt, "bad_regions"), bad);
    if (st == TG_E_EXISTS && job->set.overwrite) {
        *err = (tgi_err){0};
        st = TG_OK;
    }
    tgi_json_free(&receipt);
    return st;
}

tg_status tgi_output_is_done(const char *output, const char *now, int *there, int64_t *bad,
                             tgi_err *err)
{
    char *was = NULL;
    tgi_json *receipt = receipt_of(output);
    *there = receipt != NULL;
    *bad = 0;
    if (!receipt)
        return TG_OK;
    tg_status st = stored_text(receipt, &was, err);
    if (st == TG_OK)
        st = tgi_fingerprint_compare_done(was, strlen(was), now, output, err);
    tgi_free(was);
    (void)tgi_json_int(tgi_json_get(receipt, "bad_regions"), bad);
    tgi_json_free(&receipt);
    return st;
}
