/* text_file.c - small files, whole or not at all (text_file.h). */
#include "io/text_file.h"

#include "engine/base/input.h"
#include "io/part.h"
#include "io/side_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

tg_status tgi_make_folders(char *path, tgi_err *err)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        const int failed = mkdir(path, 0777) != 0 && errno != EEXIST;
        const int why = errno;
        if (failed)
            (void)tgi_fail(err, TG_E_IO, "%s cannot be made: %s", path, strerror(why));
        *slash = '/';
        if (failed)
            return TG_E_IO;
    }
    return TG_OK;
}

/* Into a pipe or a terminal: there is nothing to be replaced. */
static tg_status write_through(const char *path, const char *text, tgi_err *err)
{
    tgi_side s;
    TGI_TRY(tgi_side_open(path, TGI_SIDE_KEEP, &s, err));
    const int good = tgi_side_write(&s, text, strlen(text));
    const int why = errno;
    tgi_side_close(&s);
    return good ? TG_OK : tgi_fail(err, TG_E_IO, "%s: %s", path, strerror(why));
}

/* Two who write the same file at the same time would mix their texts. One is written in
 * milliseconds, so the second waits: a second at most. */
static tg_status open_alone(const tgi_part_spec *s, tgi_part *out, tgi_err *err)
{
    const struct timespec a_moment = {0, 10000000};
    tgi_err e = {0};
    tg_status st = tgi_part_create(s, out, &e);
    for (int i = 0; i < 100 && st == TG_E_BUSY; i++) {
        nanosleep(&a_moment, NULL);
        e = (tgi_err){0};
        st = tgi_part_create(s, out, &e);
    }
    return st == TG_OK ? st : tgi_fail(err, st, "%s", e.text);
}

tg_status tgi_write_text(const char *path, const char *text, int replace, tgi_err *err)
{
    const size_t n = strlen(text);
    const char *colon = strchr(text, ':'); /* a text is known for ours by its first key */
    const tgi_part_spec spec = {.path = path,
                                .ending = ".tmp",
                                .bytes = n,
                                .replace = replace,
                                .at_once = 1,
                                .head = text,
                                .head_bytes = colon ? (size_t)(colon - text) + 1 : n};
    tgi_part p;
    if (tgi_is_stream(path))
        return write_through(path, text, err);
    TGI_TRY(open_alone(&spec, &p, err));
    tgi_err e = {0};
    tg_status st = tgi_part_write(&p, 0, text, n, &e);
    if (st == TG_OK)
        st = tgi_part_sync(&p, &e);
    if (st == TG_OK)
        st = tgi_part_name(&p, &e);
    if (st == TG_E_EXISTS)
        (void)tgi_fail(err, st, "%s: exists already and is not replaced", path);
    else if (st != TG_OK)
        (void)tgi_fail(err, st, "%s", e.text);
    p.keep &= st == TG_OK; /* of a text nothing stays under another name */
    tgi_part_drop(&p);
    return st;
}

tg_status tgi_cache_path(const char *name, char *out, size_t size, tgi_err *err)
{
    const char *own = getenv("TEGULA_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n;
    if (own && own[0])
        n = snprintf(out, size, "%s/%s", own, name);
    else if (xdg && xdg[0] == '/')
        n = snprintf(out, size, "%s/tegula/%s", xdg, name);
    else if (home && home[0])
        n = snprintf(out, size, "%s/.cache/tegula/%s", home, name);
    else
        return tgi_fail(err, TG_E_NOT_FOUND,
                        "no folder for what was measured: set HOME, XDG_CACHE_HOME or "
                        "TEGULA_CACHE");
    if (n <= 0 || (size_t)n >= size)
        return tgi_fail(err, TG_E_ARG, "the name of the cache folder is too long");
    if (tgi_input_is_stream(out)) /* nobody named it: nobody waits for it */
        return tgi_fail(err, TG_E_FORMAT, "%s: no file, but a pipe or a device: move it away",
                        out);
    return TG_OK;
}
