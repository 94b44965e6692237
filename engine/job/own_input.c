/* own_input.c - an output never replaces what it is made of, whatever -y says: a picture that
 * was taken once is not to be had again. Names may differ and mean the same file (links), so
 * files are compared, not names. */
#include "engine/job/job.h"

#include <sys/stat.h>

static int is_same(const struct stat *a, const char *path)
{
    struct stat b;
    return path && stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

tg_status tgi_refuse_own_input(const char *output, const tg_source *source, const char *input,
                               const char *model, tgi_err *err)
{
    struct stat out;
    if (!output || stat(output, &out) != 0 || !S_ISREG(out.st_mode))
        return TG_OK;
    int own = is_same(&out, model) || (!source && is_same(&out, input));
    const char *file = NULL;
    for (int64_t i = 0; source && !own && (file = tgi_source_file(source, input, i)); i++)
        own = is_same(&out, file);
    return own ? tgi_fail(err, TG_E_ARG,
                          "%s: the output is the input itself, which is never replaced: choose "
                          "another name",
                          output)
               : TG_OK;
}
