/* output_job.c - see output_job.h. */
#include "engine/verbs/output_job.h"

#include "engine/base/json.h"
#include "engine/base/mem.h"
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
    char name[PATH_MAX], *text = NULL;
    tgi_json *doc = NULL;
    tgi_lines lines = {0};
    tgi_err none = {0};
    if (access(output, F_OK) != 0 ||
        snprintf(name, sizeof name, "%s.tegula.json", output) >= (int)sizeof name ||
        tgi_json_load(name, &doc, &none) != TG_OK)
        return NULL;
    for (const tgi_json *v = tgi_json_first(tgi_json_get(doc, "fingerprint")); v;
         v = tgi_json_next(v)) {
        const char *value;
        if (tgi_json_str(v, &value))
            tgi_lines_add(&lines, tgi_json_key(v), "%s", value);
    }
    tgi_json_free(&doc);
    return tgi_lines_take(&lines, &text, &none) == TG_OK ? text : NULL;
}

char *tgi_output_job(const char *output)
{
    char *text = of_journal(output);
    return text ? text : of_receipt(output);
}
