/* tensor_names.c - see tensor_names.h. The list is lines "key=value": those of a fingerprint,
 * then how many regions were filled, then one for each output: number, bytes and time of the
 * last change of its file, which a rename leaves as they are. The device is not among them, it
 * may have another number after a start of the machine. A list that did not come to the disk
 * whole misses lines, and no output had its name by then. */
#include "engine/ends/tensor_names.h"

#include "engine/out/gate.h"

#include "engine/base/held.h"
#include "engine/base/mem.h"
#include "engine/ends/tensors.h"
#include "engine/out/journal.h"
#include "io/file_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES ((size_t)128) /* of a line behind the fingerprint, at most */
#define FILLED "filled"          /* the first of these */
#define NPY "\x93NUMPY"

static int exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- The file ---------------------------------------------------------------------------- */

static tg_status open_list(const char *folder, tgi_names *n, tgi_err *err)
{
    const size_t cap = strlen(folder) + sizeof TGI_NAMES_FILE;
    if (!n->path && !(n->path = tgi_malloc(TGI_TAG_IO, cap)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
    snprintf(n->path, cap, "%s%s", folder, TGI_NAMES_FILE);
    const tgi_left left = {.path = n->path, .output = folder, .begins = TGI_NAMES_HEAD};
    return tgi_file_open_locked(&left, &n->fd, err);
}

static int is_there(const char *folder)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s%s", folder, TGI_NAMES_FILE) < (int)sizeof path &&
           exists(path);
}

/* Removed by its holder, while nobody else can have it. */
static tg_status remove_list(tgi_names *n, tgi_err *err)
{
    const tg_status st = tgi_file_unlink(n->path, err);
    n->listed = 0;
    tgi_names_close(n);
    return st;
}

void tgi_names_close(tgi_names *n)
{
    if (n->fd >= 0)
        close(n->fd);
    tgi_free(n->path);
    *n = TGI_NAMES_CLOSED;
}

/* ---- What stands in it ------------------------------------------------------------------- */

/* The file that waits for its name. */
static const char *complete_file(const tgi_tensor_out *t)
{
    return t->tiff ? tgi_journal_complete(t->journal) : t->npy.part.partial;
}

void tgi_names_begin(const tgi_tensors *all, tgi_lines *out)
{
    tgi_lines_add(out, "tegula: names", "%d", all->set.graph->n_out);
}

/* What tells the file, whatever its name. */
static void put_file(const tgi_stamp *is, char *buf, size_t cap)
{
    snprintf(buf, cap, "%llu %llu %lld.%09lld", (unsigned long long)is->ino,
             (unsigned long long)is->size, (long long)is->sec, (long long)is->nsec);
}

static tg_status add_outputs(const tgi_tensors *all, tgi_lines *t, tgi_err *err)
{
    tgi_stamp is;
    char which[LINE_BYTES];
    tgi_lines_add(t, FILLED, "%lld", (long long)tgi_bad_tiles_count(all->set.bad));
    for (int o = 0; o < all->set.graph->n_out; o++) {
        const char *file = complete_file(&all->out[o]);
        if (tgi_stamp_path(file, &is) != 0)
            return tgi_fail(err, TG_E_IO, "%s: cannot be looked at", file);
        put_file(&is, which, sizeof which);
        tgi_lines_add(t, "output", "%s", which);
    }
    return TG_OK;
}

/* The list as it was read. */
typedef struct found {
    char *text; /* to be freed */
    int64_t filled;
    tgi_line file[TGI_MAX_PORTS]; /* views of the text */
} found;

/* What stands behind the fingerprint; 0: it is not whole. */
static int take_lines(const tgi_tensors *all, const char *at, found *f)
{
    const char *end = at + strlen(at);
    char *stop;
    tgi_line l;
    if (!tgi_lines_next(&at, end, &l) || strncmp(l.key, FILLED "=", sizeof FILLED) != 0)
        return 0;
    f->filled = strtoll(l.value, &stop, 10);
    if (stop != l.value + l.value_n || !l.value_n)
        return 0;
    for (int o = 0; o < all->set.graph->n_out; o++)
        if (!tgi_lines_next(&at, end, &f->file[o]))
            return 0;
    return at == end && end[-1] == '\n';
}

/* 1 in *ours: the list is of this job. */
static tg_status read_list(const tgi_tensors *all, tgi_lines *front, int *ours, found *f,
                           tgi_err *err)
{
    const tgi_names *n = &all->names;
    const size_t front_n = front->n, most = front_n + (TGI_MAX_PORTS + 1) * LINE_BYTES;
    char *mine = NULL;
    uint64_t size = 0;
    *ours = 0;
    tg_status st = tgi_lines_take(front, &mine, err);
    if (st == TG_OK)
        st = tgi_file_size(n->fd, n->path, &size, err);
    if (st == TG_OK && size > front_n && size <= most) {
        f->text = tgi_calloc(TGI_TAG_IO, (size_t)size + 1, 1);
        st = f->text ? tgi_file_pread(n->fd, n->path, f->text, (size_t)size, 0, err)
                     : tgi_fail(err, TG_E_NOMEM, "no memory for a list of outputs");
        *ours = st == TG_OK && memcmp(f->text, mine, front_n) == 0 &&
                take_lines(all, f->text + front_n, f);
    }
    tgi_free(mine);
    return st;
}

/* ---- Outputs that an earlier run completed ----------------------------------------------- */

static int is_same(const tgi_stamp *is, const tgi_line *was)
{
    char which[LINE_BYTES];
    put_file(is, which, sizeof which);
    return strlen(which) == was->value_n && memcmp(which, was->value, was->value_n) == 0;
}

/* An array that waits: open, locked and as the list has it. */
static tg_status take_array(const tgi_tensors *all, tgi_tensor_out *t, const tgi_line *was,
                            int *yes, tgi_err *err)
{
    tgi_stamp is;
    tgi_err why = {0};
    const tgi_part_spec spec = {.path = t->path,
                                .ending = ".partial",
                                .replace = all->set.overwrite,
                                .head = NPY,
                                .head_bytes = sizeof NPY - 1};
    const tg_status st = tgi_part_open_complete(&spec, &t->npy.part, &why);
    *yes = st == TG_OK && tgi_stamp_fd(t->npy.part.fd, &is) == 0 && is_same(&is, was);
    return st == TG_OK || st == TG_E_EXISTS || st == TG_E_NOT_FOUND
               ? TG_OK
               : tgi_fail(err, st, "%s", why.text);
}

/* An image's journal knows whether it waits, or has its name and left the journal. */
static tg_status take_image(const tgi_tensors *all, tgi_tensor_out *t, const tgi_line *was,
                            int named, int *yes, tgi_err *err)
{
    tgi_stamp is;
    tgi_err why = {0};
    *yes = 0;
    tg_status st = tgi_journal_open(t->tiff, all->set.overwrite, NULL, &t->journal, &why);
    if (st == TG_OK && named)
        *yes = tgi_journal_state(t->journal) == TGI_JOURNAL_FINISHED;
    else if (st == TG_OK)
        st = tgi_journal_take_complete(t->journal, yes, &why);
    if (*yes && !named)
        *yes = tgi_stamp_path(complete_file(t), &is) == 0 && is_same(&is, was);
    return st == TG_OK || st == TG_E_EXISTS || st == TG_E_CHANGED || st == TG_E_FORMAT
               ? TG_OK
               : tgi_fail(err, st, "%s", why.text);
}

static int has_journal(const tgi_tensor_out *t)
{
    char path[4096];
    return t->tiff && snprintf(path, sizeof path, "%s.journal", t->tiff) < (int)sizeof path &&
           exists(path);
}

/* 1 in *yes: it has its name, or can have it; what it takes is locked. */
static tg_status take_one(const tgi_tensors *all, tgi_tensor_out *t, const tgi_line *was,
                          int *yes, tgi_err *err)
{
    tgi_stamp is;
    const char *name = t->tiff ? t->tiff : t->path;
    const int there = exists(name);
    const int named = there && tgi_stamp_path(name, &is) == 0 && is_same(&is, was);
    *yes = named;
    if (there && !named && !all->set.overwrite)
        return TG_OK;
    if (has_journal(t))
        return take_image(all, t, was, named, yes, err);
    return named || t->tiff ? TG_OK : take_array(all, t, was, yes, err);
}

/* All of them, or none. */
static tg_status take_all(tgi_tensors *all, const tgi_line *was, int *yes, tgi_err *err)
{
    tgi_tensor_out *out = all->out;
    tg_status st = TG_OK;
    *yes = 1;
    for (int o = 0; o < all->set.graph->n_out && st == TG_OK && *yes; o++)
        st = take_one(all, &out[o], &was[o], yes, err);
    for (int o = 0; o < all->set.graph->n_out && (st != TG_OK || !*yes); o++) {
        tgi_journal_close(&out[o].journal);
        tgi_part_drop(&out[o].npy.part);
    }
    return st;
}

/* ---- Names ------------------------------------------------------------------------------- */

static tg_status give_one(tgi_tensor_out *t, tgi_err *err)
{
    if (t->journal)
        return tgi_journal_state(t->journal) == TGI_JOURNAL_FINISHED
                   ? tgi_journal_clear_finished(t->journal, err)
                   : tgi_journal_name(t->journal, err);
    return t->npy.part.fd < 0 ? TG_OK : tgi_part_name(&t->npy.part, err);
}

/* Those that have none yet; behind that nothing is left but to say so. */
tg_status tgi_names_give(tgi_tensors *all, tgi_err *err)
{
    tgi_names *n = &all->names;
    if (all->set.bad) /* its list is written, and behind the last name nobody would know it */
        tgi_bad_tiles_clear(all->set.bad);
    for (int o = 0; o < all->set.graph->n_out; o++)
        TGI_TRY(give_one(&all->out[o], err));
    TGI_TRY(tgi_file_sync_dir(all->out[0].path, err));
    return n->listed ? remove_list(n, err) : TG_OK;
}

static tg_status write_list(tgi_tensors *all, tgi_lines *t, tgi_err *err)
{
    tgi_names *n = &all->names;
    char *text = NULL;
    tg_status st = add_outputs(all, t, err);
    const size_t bytes = t->n;
    if (st != TG_OK)
        tgi_free(t->p);
    else
        st = tgi_lines_take(t, &text, err);
    if (st == TG_OK)
        st = open_list(all->set.output, n, err);
    if (st == TG_OK)
        st = tgi_file_truncate(n->fd, n->path, 0, err);
    if (st == TG_OK)
        st = tgi_file_pwrite(n->fd, n->path, text, bytes, 0, err);
    if (st == TG_OK)
        st = tgi_file_sync(n->fd, n->path, err);
    if (st == TG_OK)
        st = tgi_file_sync_dir(n->path, err);
    tgi_free(text);
    if (st != TG_OK && n->fd >= 0) {
        tgi_err none = {0};
        (void)remove_list(n, &none);
    }
    return st;
}

tg_status tgi_names_list(tgi_tensors *all, tgi_lines *front, tgi_err *err)
{
    TGI_TRY(write_list(all, front, err));
    all->names.listed = 1;
    for (int o = 0; o < all->set.graph->n_out; o++)
        all->out[o].npy.part.keep = 1;
    return TG_OK;
}

tg_status tgi_names_find(tgi_tensors *all, int *there, tgi_err *err)
{
    const char *out = all->set.output;
    *there = tgi_names_folder(out) && is_there(out);
    return *there ? open_list(out, &all->names, err) : TG_OK;
}

tg_status tgi_names_go_on(tgi_tensors *all, tgi_lines *front, int *named, int64_t *bad,
                          tgi_err *err)
{
    found f = {0};
    tg_status st = read_list(all, front, named, &f, err);
    if (st == TG_OK && *named)
        st = take_all(all, f.file, named, err);
    *bad = f.filled;
    tgi_free(f.text);
    if (st != TG_OK || !*named)
        return st;
    all->names.listed = 1;
    return tgi_names_give(all, err);
}

tg_status tgi_names_forget(tgi_names *n, tgi_err *err)
{
    return n->fd < 0 ? TG_OK : remove_list(n, err);
}
