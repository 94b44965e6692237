/* pp_weights.c - see pp_weights.h. */
#include "engine/inpaint/pp_weights.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[3] = {"raft-things", "recurrent_flow_completion", "ProPainter"};
static const char *const ends[2] = {"pth", "safetensors"};

int tgi_pp_weights_path(const char *folder, int i, char *buf, size_t cap)
{
    for (int k = 0; k < 2; k++)
        if ((size_t)snprintf(buf, cap, "%s/%s.%s", folder, names[i], ends[k]) < cap &&
            access(buf, F_OK) == 0)
            return 1;
    return 0;
}

static tg_status open_one(const char *folder, int i, tgi_weights **out, tgi_err *err)
{
    char path[4096];
    struct stat st;
    if (strlen(folder) + 64 > sizeof path)
        return tgi_fail(err, TG_E_ARG, "--weights: the name of the folder is too long");
    if (tgi_pp_weights_path(folder, i, path, sizeof path))
        return tgi_weights_open(path, out, err);
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode))
        return tgi_fail(err, TG_E_ARG,
                        "--weights %s: a file; it is the folder with %s.pth, %s.pth and %s.pth",
                        folder, names[0], names[1], names[2]);
    return tgi_fail(err, TG_E_NOT_FOUND,
                    "%s/%s.pth: not found. ProPainter's authors publish it at "
                    "https://github.com/sczhou/ProPainter/releases/tag/v0.1.0 under the NTU "
                    "S-Lab License 1.0 (no commercial use)",
                    folder, names[i]);
}

tg_status tgi_pp_weights_open(const char *folder, tgi_weights *out[3], tgi_err *err)
{
    for (int i = 0; i < 3; i++) {
        const tg_status st = open_one(folder, i, &out[i], err);
        if (st == TG_OK)
            continue;
        while (i-- > 0)
            tgi_weights_close(&out[i]);
        return st;
    }
    return TG_OK;
}
