/* output_job.c - see output_job.h. */
#include "engine/job/output_job.h"

#include "engine/base/mem.h"
#include "engine/job/receipt.h"
#include "engine/out/fingerprint_text.h"
#include "engine/out/journal_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char *of_journal(const char *output)
{
    char name[PATH_MAX];
    struct stat st;
    tgi_err none = {0};
    tgi_journal_found found = {0};
    if (snprintf(name, sizeof name, "%s.journal", output) >= (int)sizeof name)
        return NULL;
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    const tgi_journal_file file = {.fd = fd, .name = name};
    const int there = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                      tgi_journal_file_look(&file, &found, &none) == TG_OK;
    close(fd);
    tgi_free(found.stats);
    if (there && found.found)
        return found.job;
    tgi_free(found.job);
    return NULL;
}

static char *of_receipt(const char *output)
{
    char *text = NULL;
    tgi_lines lines = {0};
    tgi_err none = {0};
    tgi_json *receipt = tgi_receipt_of(output);
    if (!receipt)
        return NULL;
    tgi_receipt_fingerprint(receipt, &lines);
    tgi_json_free(&receipt);
    return tgi_lines_take(&lines, &text, &none) == TG_OK ? text : NULL;
}

char *tgi_output_job(const char *output)
{
    char *text = of_journal(output);
    return text ? text : of_receipt(output);
}
