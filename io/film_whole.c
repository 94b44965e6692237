/* film_whole.c - see film_whole.h. */
#include "io/film_whole.h"

#include "engine/base/arith.h"
#include "io/bytes.h"
#include "io/rfile.h"

#include <stdio.h>
#include <string.h>

#define ENDS_EARLY 200000 /* microseconds that a header may be wrong by */

void tgi_film_tell_losses(const tgi_av_info *a, int64_t there, char *to, size_t cap)
{
    const int64_t frame = a->rate.num ? 1000000 * a->rate.den / a->rate.num : 0;
    to[0] = 0;
    if (there)
        snprintf(to, cap,
                 "%lld of the %lld frames that its header declares are there: it is cut",
                 (long long)there, (long long)a->declared_frames);
    else if (a->lacks)
        snprintf(to, cap, "%s lacks %lld byte%s: it is cut", a->lacks_of, (long long)a->lacks,
                 a->lacks == 1 ? "" : "s");
    else if (a->cut)
        snprintf(to, cap, "its file ends amid a frame: it is cut");
    else if (a->damage[0])
        snprintf(to, cap, "its container is damaged, and frames may be missing (%.72s)",
                 a->damage);
    else if (a->unsound)
        snprintf(to, cap,
                 "%lld of its frames lie where a checksum of its file does not hold: they are "
                 "damaged",
                 (long long)a->unsound);
    else if (a->skipped)
        snprintf(to, cap, "it begins amid pictures that need earlier ones: %lld frames missing",
                 (long long)a->skipped);
    else if (a->another)
        snprintf(to, cap, "another film stands behind it in its file, and is not read");
    else if (a->lost)
        snprintf(to, cap, "%lld packets are damaged, and their frames missing",
                 (long long)a->lost);
    else if (a->hidden)
        snprintf(to, cap, "%lld frames more are there and not shown, as its edit list says",
                 (long long)a->hidden);
    else if (!a->declared_frames && a->declared_end > a->seen_end + ENDS_EARLY + frame)
        snprintf(to, cap, "it ends after %.1f s, and its header says %.1f s: it is cut",
                 (double)a->seen_end / 1e6, (double)a->declared_end / 1e6);
    else if (a->unended)
        snprintf(to, cap, "%s: it may be cut", a->unended);
}

/* An AVI that is as long as it says it is. It may hold a frame longer by an empty chunk, which its header counts. */
static int is_all_of_an_avi(const tgi_av_info *a, const char *path)
{
    uint8_t head[8];
    tgi_rfile file;
    tgi_err none = {0};
    if (strcmp(a->container, "avi") != 0 || tgi_rfile_open(path, &file, &none) != TG_OK)
        return 0;
    const int whole = tgi_rfile_read(&file, 0, head, sizeof head, &none) == TG_OK &&
                      file.size >= 8 + (uint64_t)tgi_load32(head + 4, false);
    tgi_rfile_close(&file);
    return whole;
}

/* Frames of which all is there: what info counts, and a run that takes a cut film. */
static int64_t whole_frames(const tgi_av_info *a, int truncated)
{
    return a->frames - (truncated ? 0 : a->cut);
}

tg_status tgi_film_check_whole(const tgi_av_info *a, const char *path, int truncated,
                               int64_t *empty, int64_t *of_cut, tgi_err *err)
{
    const int fewer = a->declared_frames > a->frames + a->hidden;
    const int is_cut = a->cut || a->lacks || a->damage[0] || a->skipped;
    if (!fewer && (!is_cut || truncated))
        return TG_OK;
    *empty = fewer && !a->lacks && is_all_of_an_avi(a, path)
                 ? a->declared_frames - a->frames - a->hidden
                 : 0;
    if (*empty)
        return TG_OK;
    if (fewer && truncated) {
        *of_cut = a->frames;
        return TG_OK;
    }
    if (fewer)
        return tgi_fail(err, TG_E_FORMAT,
                        "the film's header declares %lld frames, %lld are there: it is cut; "
                        "--allow-truncated takes those",
                        (long long)a->declared_frames, (long long)whole_frames(a, truncated));
    if (a->lacks)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s lacks %lld byte%s: the film is cut; --allow-truncated takes the "
                        "frames that are there, %lld of them",
                        a->lacks_of, (long long)a->lacks, a->lacks == 1 ? "" : "s",
                        (long long)whole_frames(a, truncated));
    if (a->skipped && !a->cut && !a->damage[0])
        return tgi_fail(
            err, TG_E_FORMAT,
            "it begins amid pictures that need earlier ones, and of %lld no frame is made; "
            "--allow-truncated takes the %lld frames that are there",
            (long long)a->skipped, (long long)a->frames);
    if (a->damage[0] && !a->cut)
        return tgi_fail(err, TG_E_FORMAT,
                        "its container is damaged, and frames may be missing (%s); "
                        "--allow-truncated takes the %lld frames that are there",
                        a->damage, (long long)a->frames);
    return tgi_fail(err, TG_E_FORMAT,
                    "its file ends amid a frame, behind %lld whole ones: it is cut; "
                    "--allow-truncated takes those",
                    (long long)whole_frames(a, truncated));
}
