/* own_file.c - see own_file.h. */
#include "engine/base/own_file.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Cut the last component of a path; 0 when there is none. */
static int cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    *slash = 0;
    return 1;
}

int tgi_find_beside(const char *from, int steps, const char *relative, char *out, size_t cap)
{
    char folder[1024];
    if (snprintf(folder, sizeof folder, "%s", from) >= (int)sizeof folder)
        return 0;
    for (int i = 0; i <= steps && cut_last(folder); i++)
        if (snprintf(out, cap, "%s/%s", folder, relative) < (int)cap && access(out, R_OK) == 0)
            return 1;
    return 0;
}

/* dladdr repeats what the program was called by, so a bare name is looked up in /proc. */
int tgi_own_file(char *out, size_t cap)
{
    static const int here = 0;
    Dl_info info;
    if (dladdr(&here, &info) && info.dli_fname && strchr(info.dli_fname, '/')) {
        char full[PATH_MAX];
        if (realpath(info.dli_fname, full) && snprintf(out, cap, "%s", full) < (int)cap)
            return 1;
    }
    const ssize_t n = readlink("/proc/self/exe", out, cap - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

int tgi_plugin_file(const char *file, const char *environment, char *path, size_t cap,
                    char *why, size_t why_cap)
{
    const char *named = getenv(environment);
    char own[1024] = "", relative[128];
    path[0] = 0;
    if (named && strcmp(named, "none") == 0) {
        snprintf(why, why_cap, "switched off by %s", environment);
        return 0;
    }
    if (named && *named) {
        if (snprintf(path, cap, "%s", named) < (int)cap)
            return 1;
        path[0] = 0;
        snprintf(why, why_cap, "%s names a path of %zu characters", environment, strlen(named));
        return 0;
    }
    snprintf(relative, sizeof relative, "lib/tegula/%s", file);
    if (tgi_own_file(own, sizeof own) &&
        (tgi_find_beside(own, 0, file, path, cap) ||
         tgi_find_beside(own, TGI_STEPS_UP, relative, path, cap)))
        return 1;
    path[0] = 0;
    snprintf(why, why_cap, "this installation has no %s", file);
    return 0;
}
