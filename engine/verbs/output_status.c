/* output_status.c - see output_status.h. */
#include "engine/verbs/output_status.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/job/job_post.h"
#include "engine/job/stage_state.h"
#include "engine/out/frame_files.h"
#include "engine/out/journal_file.h"
#include "engine/out/stage_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECEIPT ".tegula.json" /* behind the output's name */

typedef struct looking {
    const char *output;
    char name[PATH_MAX];
    tgi_journal_file file;
    tgi_journal_found found;
    tgi_journal_about about;
    int introduced; /* `about` holds */
    int held;       /* a process has the lock */
    int64_t frames; /* of a film, done */
    tgi_stage_record record;
    int has_record; /* it is there, of whatever run */
    double written; /* when the journal changed */
} looking;

/* ---- Files ------------------------------------------------------------------------------- */

static int is_there(const looking *l, const char *end)
{
    char path[PATH_MAX];
    struct stat st;
    const int n = snprintf(path, sizeof path, "%s%s", l->output, end);
    return n > 0 && (size_t)n < sizeof path && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Does the receipt beside it tell of this file? It is there before the output gets its name, and of
 * another file that got the name since it tells another size. */
static int has_receipt(const looking *l, uint64_t bytes)
{
    char path[PATH_MAX + 16];
    tgi_json *doc = NULL;
    tgi_err none = {0};
    const char *made_by;
    int64_t told = -1;
    snprintf(path, sizeof path, "%s" RECEIPT, l->output);
    if (!is_there(l, RECEIPT) || tgi_json_load(path, &doc, &none) != TG_OK)
        return 0;
    const int ours = tgi_json_str(tgi_json_get(doc, "tegula"), &made_by) &&
                     tgi_json_int(tgi_json_get(doc, "output_bytes"), &told) && told >= 0 &&
                     (uint64_t)told == bytes;
    tgi_json_free(&doc);
    return ours;
}

static tg_status no_journal(const looking *l, tg_output_status *out, tgi_err *err)
{
    struct stat st;
    char partial[PATH_MAX + 16];
    snprintf(partial, sizeof partial, "%s.partial", l->output);
    if (stat(partial, &st) == 0)
        return tgi_fail(
            err, TG_E_NOT_FOUND,
            "%s.partial is there and no journal to look at: arrays, which keep none, are "
            "being written, or were when their run was stopped",
            l->output);
    if (stat(l->output, &st) != 0)
        return tgi_fail(err, TG_E_NOT_FOUND,
                        "%s: there is no such output, finished or not: is the name that of -o?",
                        l->output);
    if (!S_ISREG(st.st_mode))
        return tgi_fail(
            err, TG_E_NOT_FOUND,
            "%s: is no image file; arrays and outputs in a folder have no journal to "
            "look at",
            l->output);
    if (!has_receipt(l, (uint64_t)st.st_size))
        return tgi_fail(
            err, TG_E_NOT_FOUND,
            "%s: is there, and no run works on it; whether one made it cannot be told: no "
            "OUT" RECEIPT " beside it tells of this file (copies and arrays have none)",
            l->output);
    out->state = TG_STATE_FINISHED;
    out->fraction = 1;
    return TG_OK;
}

static void stale(tg_output_status *out, const char *why)
{
    out->state = TG_STATE_STALE;
    snprintf(out->why, sizeof out->why, "%s", why);
}

/* A file that is none of ours is not waited for, whatever it is. */
static int open_journal(looking *l)
{
    struct stat st;
    const int fd = open(l->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        l->written = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
        l->file = (tgi_journal_file){.fd = fd, .name = l->name};
        return 0;
    }
    const int e = fd >= 0 ? EEXIST : errno;
    if (fd >= 0)
        close(fd);
    return e;
}

/* The lock that a run has (tgi_file_open_locked) is asked for, not taken. Where a filesystem has none
 * the process is. */
static int is_held(const looking *l)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(l->file.fd, F_OFD_GETLK, &lock) == 0)
        return lock.l_type != F_UNLCK;
    return l->introduced && (kill((pid_t)l->about.process, 0) == 0 || errno == EPERM);
}

/* ---- What it says ------------------------------------------------------------------------ */

static void settle_state(const looking *l, tg_status st, tg_output_status *out)
{
    const tgi_journal_slot *s = &l->found.slot;
    char why[128];
    if (l->held) {
        out->state = TG_STATE_RUNNING;
    } else if (st == TG_E_FORMAT) {
        stale(out, "OUT.journal is no journal of tegula");
    } else if (l->found.format) {
        snprintf(why, sizeof why, "OUT.journal has format %d, this tegula goes on with others",
                 l->found.format);
        stale(out, why);
    } else if (!l->found.found) {
        stale(out, l->found.tried > 1
                       ? "OUT.journal is damaged"
                       : "it was stopped before there was anything to go on with");
    } else if (!is_there(l, ".partial") && !s->final) {
        stale(out, "OUT.partial is gone");
    } else {
        out->state = TG_STATE_STOPPED;
    }
}

/* Seconds of the run so far: up to now, or to what it wrote last. */
static double spent(const looking *l, double written)
{
    const double until = l->held ? tgi_day_seconds() : written;
    return until > l->about.began ? until - l->about.began : 0;
}

static void tell_tiles(const looking *l, tg_output_status *out)
{
    const tgi_journal_slot *s = &l->found.slot;
    out->tiles = l->found.found ? (int64_t)s->n_tiles : 0;
    if (!l->introduced)
        return;
    out->process = l->about.process;
    memcpy(out->input, l->about.input, sizeof out->input);
    memcpy(out->model, l->about.model, sizeof out->model);
    out->tiles_in_all = l->about.tiles_in_all;
    out->seconds = spent(l, l->written);
    out->stages = 1;
    const int64_t did = out->tiles - l->about.tiles_before,
                  left = out->tiles_in_all - out->tiles;
    if (out->tiles_in_all > 0)
        out->fraction =
            (double)tgi_min(out->tiles, out->tiles_in_all) / (double)out->tiles_in_all;
    if (did <= 0 || out->seconds <= 0)
        return;
    out->tiles_per_second = (double)did / out->seconds;
    out->seconds_left = (double)tgi_max(0, left) / out->tiles_per_second;
}

/* Of so many packets, those of complete segments. */
static int64_t whole_segments(const looking *l, int64_t packets)
{
    const int64_t all = l->about.tiles_in_all;
    return packets >= all ? all : packets - packets % l->about.segment;
}

/* The tiles of a film's journal are packets, a frame each. While a run works its own count holds; what is
 * not safe it loses when it stops. */
static void tell_frames(const looking *l, tg_output_status *out)
{
    if (!l->introduced || !l->about.segment || out->tiles_in_all <= 0)
        return;
    const int64_t all = out->tiles_in_all, before = whole_segments(l, l->about.tiles_before);
    out->frames_in_all = all;
    out->frames_safe = whole_segments(l, out->tiles);
    out->frames =
        l->held ? tgi_min(all, tgi_max(l->frames, out->frames_safe)) : out->frames_safe;
    out->fraction = (double)out->frames / (double)all;
    out->seconds_left = -1;
    if (out->frames <= before || out->seconds <= 0)
        return;
    out->frames_per_second = (double)(out->frames - before) / out->seconds;
    out->seconds_left = (double)(all - out->frames) / out->frames_per_second;
}

/* Its checksum tells of damage, not of who wrote it. */
static int is_possible(const tgi_stage_record *r)
{
    return r->items > 0 && r->item >= 0 && r->item < r->items && r->stages > 0 && r->at >= 0 &&
           r->at < r->stages && r->at_cell >= 0 && r->at_cells > 0 &&
           r->at_cell <= r->at_cells && r->rows >= 0 && isfinite(r->item_work) &&
           r->item_work > 0 && isfinite(r->left) && isfinite(r->did);
}

/* A record of the run that is at hand; one of an earlier run says nothing about this one. */
static void tell_stages(const looking *l, tg_output_status *out)
{
    const tgi_stage_record r = l->record;
    if (!l->introduced || !l->has_record || r.process != l->about.process ||
        r.written < l->about.began || !is_possible(&r))
        return;
    const int64_t after = tgi_max(0, r.items - r.item - 1);
    const double left = r.left + (double)after * r.item_work;
    const double took = r.written - l->about.began, all = (double)r.items * r.item_work;
    out->item = r.item + 1;
    out->items = r.items;
    out->stage = r.at + 1;
    out->stages = r.stages;
    out->again = r.again != 0;
    out->cell = r.at_cell + 1;
    out->cells = r.at_cells;
    out->rows = r.rows;
    out->rows_in_all = r.rows_in_all;
    out->fraction = left < all ? 1 - left / all : 0;
    out->seconds = spent(l, r.written);
    out->seconds_left = -1;
    out->tiles_per_second = 0; /* they come with the last stage */
    if (r.did > 0 && took > 0) {
        const double since = out->seconds - took; /* it was written a while ago */
        const double need = left / r.did * took - since;
        out->seconds_left = need > 0 ? need : 0;
    }
}

/* A run that begins has made the journal and locks it in a moment; one that ends has removed it. */
static int is_passing(const looking *l)
{
    struct stat st;
    return !l->held && fstat(l->file.fd, &st) == 0 && (!st.st_nlink || !st.st_size);
}

static tg_status look_inside(looking *l, tg_output_status *out, tgi_err *err)
{
    tgi_err why = {0};
    /* Before the journal: a run that ends removes it, and its journal has all tiles by then. */
    l->has_record = tgi_stage_log_look(l->output, NULL, &l->record, sizeof l->record);
    const tg_status st = tgi_journal_file_look(&l->file, &l->found, &why);
    l->introduced =
        st == TG_OK && !l->found.format && tgi_journal_file_about(&l->file, &l->about);
    l->held = is_held(l);
    l->frames = tgi_journal_file_frames(&l->file);
    if (st != TG_OK && st != TG_E_FORMAT)
        return tgi_fail(err, st, "%s", why.text);
    settle_state(l, st, out);
    tell_tiles(l, out);
    tell_frames(l, out);
    tell_stages(l, out);
    return TG_OK;
}

static tg_status look_once(looking *l, int *passing, tg_output_status *out, tgi_err *err)
{
    const int e = open_journal(l);
    *passing = 0;
    if (e == ENOENT || e == ENOTDIR)
        return no_journal(l, out, err);
    if (e == ELOOP || e == EEXIST) {
        stale(out, "OUT.journal is no file");
        return TG_OK;
    }
    if (e)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", l->name, strerror(e));
    const tg_status st = look_inside(l, out, err);
    *passing = is_passing(l);
    close(l->file.fd);
    tgi_free(l->found.job);
    tgi_free(l->found.stats);
    return st;
}

/* A run with --post works on the network's values first, beside an output that is not there yet. */
static const char *values_of(const char *output, char *buf, size_t cap)
{
    static const char end[] = ".journal";
    const int n = snprintf(buf, cap, "%s" TGI_POST_VALUES "%s", output, end);
    if (access(output, F_OK) == 0)
        return output;
    if (n >= (int)cap || access(buf, F_OK) != 0)
        return output;
    buf[n - (int)(sizeof end - 1)] = 0;
    return buf;
}

tg_status tgi_output_look(const char *output, tg_output_status *out, tgi_err *err)
{
    char list[PATH_MAX];
    const char *values = values_of(output, list, sizeof list);
    output = values != output ? values : tgi_frames_list_of(output, list, sizeof list);
    const struct timespec moment = {.tv_nsec = 20000000};
    int passing = 1;
    tg_status st = TG_OK;
    for (int tries = 0; passing && tries < 3; tries++) {
        looking l = {.output = output, .file = {.fd = -1}};
        const int n = snprintf(l.name, sizeof l.name, "%s.journal", output);
        if (n < 0 || (size_t)n >= sizeof l.name)
            return tgi_fail(err, TG_E_NOT_FOUND, "%.80s...: the name is too long", output);
        if (tries)
            nanosleep(&moment, NULL);
        *out = (tg_output_status){
            .size = sizeof *out, .fraction = -1, .seconds = -1, .seconds_left = -1};
        st = look_once(&l, &passing, out, err);
    }
    return st;
}
