/* job_standard.c - see job_standard.h. */
#include "engine/job/job_standard.h"

#include "engine/job/job_film.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The regular file of that name, "-" of a stream that is open. */
static int file_of(const char *path, int stream, struct stat *st)
{
    const int there = path && strcmp(path, "-") == 0 ? fstat(stream, st) : stat(path, st);
    return there == 0 && S_ISREG(st->st_mode);
}

/* -o - into a file that the run reads. */
static tg_status spare_others(const tg_job *job, tgi_err *err)
{
    static const tgi_opt others[] = {TGI_OPT_MODEL, TGI_OPT_STATS, TGI_OPT_DESCRIPTOR,
                                     TGI_OPT_CONFIG};
    struct stat in, out;
    if (!tgi_job_wants_pipe(job) || !file_of("-", STDOUT_FILENO, &out))
        return TG_OK;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *path = tgi_opts_str(job->opts, others[i]);
        if (path && stat(path, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return tgi_fail(err, TG_E_ARG, "-o -: standard output is %s: choose another name",
                            path);
    }
    return TG_OK;
}

tg_status tgi_job_standard_check(const tg_job *job, tgi_err *err)
{
    struct stat in, out;
    const char *from = job->set.input, *to = job->set.output;
    const int sends = tgi_job_wants_pipe(job), gets = from && strcmp(from, "-") == 0;
    TGI_TRY(spare_others(job, err));
    if (!from || !to || !(sends || gets) || !file_of(from, STDIN_FILENO, &in) ||
        !file_of(to, STDOUT_FILENO, &out) || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
        return TG_OK;
    if (!sends)
        return tgi_fail(err, TG_E_ARG,
                        "%s: the output is the input itself, which is never replaced: choose "
                        "another name",
                        to);
    if (!in.st_size)
        return tgi_fail(err, TG_E_ARG,
                        "-o -: standard output is the input, %s, and it is empty: `>` empties "
                        "its file before a command begins. Choose another name",
                        gets ? "the file of standard input" : from);
    return tgi_fail(err, TG_E_ARG,
                    "-o -: standard output is the input, %s: choose another name",
                    gets ? "the file of standard input" : from);
}
