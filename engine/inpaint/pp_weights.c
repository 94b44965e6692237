/* pp_weights.c - see pp_weights.h. */
#include "engine/inpaint/pp_weights.h"

#include <stdio.h>
#include <unistd.h>

static const char *const names[3] = {"raft-things", "recurrent_flow_completion", "ProPainter"};
static const char *const ends[2] = {"pth", "safetensors"};

static tg_status open_one(const char *folder, const char *name, tgi_weights **out, tgi_err *err)
{
    char path[4096];
    for (int i = 0; i < 2; i++) {
        if (snprintf(path, sizeof path, "%s/%s.%s", folder, name, ends[i]) >= (int)sizeof path)
            return tgi_fail(err, TG_E_ARG, "--weights: the name of the folder is too long");
        if (access(path, F_OK) == 0)
            return tgi_weights_open(path, out, err);
    }
    return tgi_fail(err, TG_E_NOT_FOUND,
                    "%s/%s.pth: not found. ProPainter's authors publish it at "
                    "https://github.com/sczhou/ProPainter/releases/tag/v0.1.0 under the NTU "
                    "S-Lab License 1.0 (no commercial use)",
                    folder, name);
}

tg_status tgi_pp_weights_open(const char *folder, tgi_weights *out[3], tgi_err *err)
{
    for (int i = 0; i < 3; i++) {
        const tg_status st = open_one(folder, names[i], &out[i], err);
        if (st == TG_OK)
            continue;
        while (i-- > 0)
            tgi_weights_close(&out[i]);
        return st;
    }
    return TG_OK;
}
