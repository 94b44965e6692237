/* tensor_out.c - arrays as outputs: their names, shapes and files.
 *
 * They grow in NAME.npy.partial, locked against a second run (io/part.h), and get their names
 * when all of them are complete. Where an image goes in and a folder comes out, the job turns
 * those that are images into NAME.tif then, planes in the order of the image's own; their
 * arrays never have a name, and NAME.tif is locked by its journal from the beginning, as by a
 * run that writes nothing else. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/ends/tensor_memory.h"
#include "engine/ends/tensors.h"
#include "engine/out/fingerprint_text.h"
#include "engine/out/journal.h"
#include "engine/plan/stream.h"
#include "io/file_ops.h"
#include "io/film_out.h"
#include "io/picture_out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tgi_names_folder(const char *path)
{
    struct stat s;
    const size_t n = strlen(path);
    return (n > 0 && path[n - 1] == '/') || (stat(path, &s) == 0 && S_ISDIR(s.st_mode));
}

int tgi_names_npy(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0;
}

int tgi_names_arrays(const char *output)
{
    return output && *output && (tgi_names_npy(output) || tgi_names_folder(output));
}

/* The letters behind the last dot of a name, or "" where it has none or only digits. */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    size_t letters = 0;
    for (const char *c = dot ? dot + 1 : ""; *c; c++)
        letters += (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    return dot && letters && strlen(dot) <= 6 ? dot + 1 : "";
}

int tgi_names_no_kind(const char *output)
{
    return output && !*ending_of(output) && !tgi_names_folder(output);
}

tg_status tgi_check_output_name(const char *output, int arrays_in, tgi_err *err)
{
    static const char *const tiff[] = {"tif", "tiff", "TIF", "TIFF", "tf8", "btf"};
    const char *end = output ? ending_of(output) : "";
    int image = output && (tgi_picture_writer_for(output) || tgi_film_container(output));
    for (size_t i = 0; i < sizeof tiff / sizeof tiff[0]; i++)
        image |= strcmp(end, tiff[i]) == 0;
    if (!*end || tgi_names_arrays(output) || (image && !arrays_in))
        return TG_OK;
    if (image)
        return tgi_fail(err, TG_E_ARG,
                        "%s: arrays go in, so arrays come out: -o OUT.npy or -o DIR/", output);
    return tgi_fail(err, TG_E_ARG,
                    "%s: .%s is no format that is written: .tif, .npy, .png, .jpg, .mp4, .mov, "
                    ".mkv, .webm, .y4m and .raw are, and DIR/ for several outputs",
                    output, end);
}

int tgi_output_is_image(const tgi_graph *g, int o, const tgi_desc *d)
{
    const int *perm = g->out[o].perm;
    return tgi_is_image(g, d) && perm[d->rank - 1] >= 0 && perm[d->rank - 2] >= 0;
}

int tgi_tensor_makes_image(const tgi_tensors *all, int o, const tgi_desc *d)
{
    const char *out = all->set.output;
    return all->set.map && out && tgi_names_folder(out) &&
           tgi_output_is_image(all->set.graph, o, d);
}

tg_dtype tgi_tensor_out_type(const tgi_tensors *all, int o, const tgi_desc *d)
{
    if (!tgi_tensor_makes_image(all, o, d))
        return d->dtype;
    return d->dtype == TG_DTYPE_BOOL            ? TG_DTYPE_U8
           : o == 0 && d->dtype == TG_DTYPE_I64 ? all->set.labels
                                                : TG_DTYPE_F32;
}

/* Output o in the graph, as planned. */
static const tgi_desc *desc_of(const tgi_tensors *all, int o)
{
    const tgi_net *net = all->stage->net;
    return &net->shapes.desc[net->out[o]];
}

/* ---- Names ------------------------------------------------------------------------------- */

static tg_status copy_name(const char *name, char **out, tgi_err *err)
{
    *out = tgi_strdup(TGI_TAG_IO, name);
    return *out ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a path");
}

tg_status tgi_name_in_folder(const char *folder, const char *name, const char *suffix,
                             char *buf, size_t cap, tgi_err *err)
{
    const size_t n = strlen(folder);
    const int at = snprintf(buf, cap, "%s%s", folder, n && folder[n - 1] == '/' ? "" : "/");
    const int all = at < 0 || (size_t)at >= cap
                        ? -1
                        : at + snprintf(buf + at, cap - (size_t)at, "%s%s", name, suffix);
    if (all < 0 || (size_t)all >= cap)
        return tgi_fail(err, TG_E_ARG, "%s: the name of the output \"%.60s\" is too long",
                        folder, name);
    for (char *c = buf + at; *c; c++)
        if (*c == '/')
            *c = '_';
    return TG_OK;
}

static tg_status name_output(tgi_tensors *all, int o, tgi_err *err)
{
    tgi_tensor_out *t = &all->out[o];
    const char *out = all->set.output, *name = all->set.graph->out[o].name;
    char path[4096];
    if (!out || !*out)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.npy or -o DIR/) is missing");
    if (!tgi_names_folder(out)) {
        if (all->set.graph->n_out > 1)
            return tgi_fail(err, TG_E_ARG, "the network has %d outputs: give a folder, -o DIR/",
                            all->set.graph->n_out);
        return copy_name(out, &t->path, err);
    }
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return tgi_fail(err, TG_E_EXISTS, "%s: cannot be created: %s", out, strerror(errno));
    TGI_TRY(tgi_name_in_folder(out, name, ".npy", path, sizeof path, err));
    TGI_TRY(copy_name(path, &t->path, err));
    for (int k = 0; k < o; k++)
        if (strcmp(all->out[k].path, path) == 0)
            return tgi_fail(err, TG_E_UNSUPPORTED, "two outputs would be written to %s", path);
    if (!tgi_tensor_makes_image(all, o, desc_of(all, o)))
        return TG_OK;
    TGI_TRY(tgi_name_in_folder(out, name, ".tif", path, sizeof path, err));
    return copy_name(path, &t->tiff, err);
}

/* ---- Shapes ------------------------------------------------------------------------------ */

/* What of an image's axes is wanted: the share of output 0's. */
static void set_keep(tgi_tensors *all, int o, const tgi_desc *d)
{
    const tgi_stage *s = all->stage;
    tgi_tensor_out *t = &all->out[o];
    for (int a = 0; a < d->rank; a++)
        t->keep[a] = (tgi_range){0, d->dim[a]};
    for (int a = TGI_STREAM_AXIS; a < d->rank && !s->net->values[s->net->out[o]].flat; a++) {
        const tgi_fit *f = &s->fit[a - TGI_STREAM_AXIS];
        t->keep[a] = tgi_axis_share(s, a, o, (tgi_range){f->crop, f->crop + f->out});
    }
}

/* The file has the axes of the model's own output; samples follow each other on the first. */
static tg_status shape_array(tgi_tensors *all, int o, const tgi_desc *d, tgi_err *err)
{
    tgi_tensor_out *t = &all->out[o];
    const tgi_port *p = &all->set.graph->out[o];
    int64_t step[TGI_MAX_RANK], n = 1;
    t->file = (tgi_desc){d->dtype, p->file_rank, {0}};
    for (int i = 0; i < p->file_rank; i++)
        t->file.dim[i] = 1;
    for (int a = 0; a < d->rank; a++)
        if (p->perm[a] >= 0)
            t->file.dim[p->perm[a]] = tgi_range_len(t->keep[a]);
    if (all->batch > 1) {
        if (d->rank == 0 || d->dim[0] != 1 || p->perm[0] < 0)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "the output \"%s\" has no axis along which %lld samples could be "
                            "put together: %s",
                            p->name, (long long)all->batch,
                            all->set.map ? "give one at a time (--planes)"
                                         : "give arrays of one");
        t->file.dim[p->perm[0]] = all->batch;
    }
    for (int i = t->file.rank - 1; i >= 0; n *= t->file.dim[i--])
        step[i] = n;
    for (int a = 0; a < d->rank; a++)
        t->stride[a] = p->perm[a] >= 0 ? step[p->perm[a]] : 0;
    t->sample_stride = d->rank ? t->stride[0] : 0;
    return TG_OK;
}

/* The file is a stack: the axes that the run loops over, channels, then z, y and x. */
static tg_status shape_stack(tgi_tensors *all, int o, const tgi_desc *d, tgi_err *err)
{
    const tgi_mapping *m = all->set.map;
    tgi_tensor_out *t = &all->out[o];
    int n = 0, has_c = 0;
    memset(t->axes, 0, sizeof t->axes);
    if (m->n_loop + d->rank > TGI_IMAGE_MAX_AXES || m->n_loop + d->rank > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the output \"%s\" would have more than %d axes",
                        all->set.graph->out[o].name, TGI_IMAGE_MAX_AXES);
    t->file.dtype = tgi_tensor_out_type(all, o, d);
    for (int i = 0; i < m->n_loop && m->planes.n == 0; i++) {
        has_c |= m->loop[i].letter == 'C';
        t->axes[n] = m->loop[i].letter;
        t->file.dim[n++] = m->loop[i].size;
    }
    if (m->planes.n > 0) {
        t->axes[n] = 'I';
        t->file.dim[n++] = m->n_items;
    }
    for (int a = 1; a < d->rank; a++) {
        if (a == 1 && d->dim[1] == 1)
            continue;
        t->axes[n] = a == 1 ? (has_c ? 'Q' : 'C') : "ZYX"[a - d->rank + 3];
        t->file.dim[n++] = tgi_range_len(t->keep[a]);
    }
    t->file.rank = n;
    int64_t step = 1;
    for (int a = d->rank - 1; a >= 0; step *= a ? tgi_range_len(t->keep[a]) : 1, a--)
        t->stride[a] = step;
    t->sample_stride = t->stride[0];
    return TG_OK;
}

static tg_status shape_output(tgi_tensors *all, int o, tgi_err *err)
{
    const tgi_desc *d = desc_of(all, o);
    set_keep(all, o, d);
    return tgi_tensor_makes_image(all, o, d) ? shape_stack(all, o, d, err)
                                             : shape_array(all, o, d, err);
}

/* ---- The image that is made of an array -------------------------------------------------- */

void tgi_tensor_meta(const tgi_tensors *all, int o, tgi_image_meta *out)
{
    const tgi_desc *d = desc_of(all, o);
    const tgi_tensor_out *first = &all->out[0], *t = &all->out[o];
    tgi_mapping m = *all->set.map;
    m.out_channels = d->dim[1];
    m.out_samples = 0;
    memcpy(m.out_axes, t->axes, sizeof m.out_axes);
    for (int a = TGI_STREAM_AXIS; a < d->rank && d->rank == all->in_desc[0].rank; a++) {
        tgi_place *p = &m.fit[3 - d->rank + a].place;
        p->up *= tgi_range_len(t->keep[a]); /* shares of output 0's: set_keep */
        p->down *= tgi_range_len(first->keep[a]);
    }
    tgi_mapping_meta(&m, all->info, out);
}

/* A picture is made of the tiles. */
static int is_picture(const tgi_tensors *all)
{
    return tgi_opts_choice(all->set.opts, TGI_OPT_FORMAT) == 1;
}

/* As the copy will lay it out that makes the image (tgi_copy_make_layout). */
static tg_status lay_out_image(const tgi_tensors *all, int o, tgi_sink_layout **out,
                               tgi_err *err)
{
    const tgi_tensor_out *t = &all->out[o];
    const tgi_compress_spec *z = &all->set.compress;
    tgi_image_meta meta;
    tgi_sink_spec spec = {.dtype = t->file.dtype, .meta = &meta};
    if (!is_picture(all)) {
        spec.compression = (tgi_compression)z->kind;
        spec.level = z->level > 0 ? z->level : 0;
    }
    spec.predictor = tgi_sink_predictor(spec.compression, spec.dtype);
    tgi_tensor_meta(all, o, &meta);
    memcpy(spec.axes, t->axes, sizeof t->axes);
    memcpy(spec.shape, t->file.dim, (size_t)t->file.rank * sizeof spec.shape[0]);
    return tgi_sink_layout_make(&spec, out, err);
}

/* ---- Files ------------------------------------------------------------------------------- */

static tg_status refuse_folder(const char *path, tgi_err *err)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode)
               ? tgi_fail(err, TG_E_EXISTS, "%s is a folder: move it away, or give another -o",
                          path)
               : TG_OK;
}

static tg_status refuse_existing(const tgi_tensors *all, const char *path, tgi_err *err)
{
    return path && access(path, F_OK) == 0 && !all->set.overwrite
               ? tgi_fail(err, TG_E_EXISTS, "%s exists: give -y to overwrite it", path)
               : TG_OK;
}

/* It tells of an image that is made of an array: nobody goes on with it. */
static int is_such_image(const tgi_journal *j)
{
    size_t n;
    char program[64];
    const char *stored = tgi_journal_job(j, &n);
    return n && tgi_fingerprint_get(stored, n, "tegula", program, sizeof program) &&
           strncmp(program, TGI_ARRAY_IMAGE, strlen(TGI_ARRAY_IMAGE)) == 0;
}

/* What is there of this image, if anything: only what such a run left may go without -y. */
static tg_status may_begin(const tgi_tensors *all, tgi_tensor_out *t, tgi_err *err)
{
    const tgi_journal_kind state = tgi_journal_state(t->journal);
    if (state == TGI_JOURNAL_FRESH)
        return TG_OK;
    if (!is_such_image(t->journal) && !all->set.overwrite)
        return tgi_fail(err, TG_E_CHANGED,
                        "%s.partial is the interrupted output of another job: finish that one, "
                        "or give -y to discard it",
                        t->tiff);
    if (state != TGI_JOURNAL_FINISHED)
        return TG_OK;
    TGI_TRY(tgi_journal_clear_finished(t->journal, err)); /* all but its name was done */
    TGI_TRY(refuse_existing(all, t->tiff, err));
    tgi_journal_close(&t->journal);
    return tgi_journal_open(t->tiff, all->set.overwrite, NULL, &t->journal, err);
}

/* The log comes before it begins. */
static tg_status claim(const tgi_tensors *all, int o, tgi_err *err)
{
    tgi_sink_layout *l = NULL;
    TGI_TRY(lay_out_image(all, o, &l, err));
    const tg_status st = tgi_journal_claim(all->out[o].journal, l, err);
    tgi_sink_layout_free(&l);
    return st;
}

static tg_status create_one(tgi_tensors *all, int o, tgi_err *err)
{
    tgi_tensor_out *t = &all->out[o];
    if (!t->tiff)
        return tgi_npy_create(t->path, &t->file, all->set.overwrite, &t->npy, err);
    TGI_TRY(tgi_journal_open(t->tiff, all->set.overwrite, NULL, &t->journal, err));
    TGI_TRY(may_begin(all, t, err));
    TGI_TRY(claim(all, o, err));
    return tgi_npy_create_unnamed(all->set.output, t->tiff, &t->file, &t->npy, err);
}

tg_status tgi_tensors_shape(tgi_tensors *all, tgi_err *err)
{
    const int sinks = tgi_memory_has_sinks(all->set.opts);
    for (int o = 0; o < all->set.graph->n_out; o++) {
        TGI_TRY(shape_output(all, o, err));
        all->out[o].dropped = sinks && !tgi_memory_sink(all, o);
    }
    return TG_OK;
}

tg_status tgi_tensors_name(tgi_tensors *all, tgi_err *err)
{
    for (int o = 0; o < all->set.graph->n_out; o++) {
        TGI_TRY(name_output(all, o, err));
        TGI_TRY(shape_output(all, o, err));
    }
    return TG_OK;
}

tg_status tgi_tensors_create(tgi_tensors *all, tgi_err *err)
{
    const int n = all->set.graph->n_out;
    tgi_tensor_out *out = all->out;
    for (int o = 0; o < n; o++)
        TGI_TRY(refuse_folder(out[o].tiff ? out[o].tiff : out[o].path, err));
    for (int o = 0; o < n; o++)
        TGI_TRY(refuse_existing(all, out[o].tiff ? NULL : out[o].path, err)); /* its journal
                                                                                 knows */
    for (int o = 0; o < n; o++)
        TGI_TRY(create_one(all, o, err));
    return tgi_names_forget(&all->names, err);
}

/* With the picture that is made of its tiles, if any. */
static uint64_t image_bytes(const tgi_tensors *all, int o)
{
    tgi_sink_layout *l = NULL;
    tgi_err none = {0};
    if (lay_out_image(all, o, &l, &none) != TG_OK)
        return 0;
    const uint64_t bytes = l->file_bytes;
    tgi_sink_layout_free(&l);
    return tgi_sat_mul(is_picture(all) ? 2 : 1, bytes);
}

void tgi_tensor_disk(tgi_tensors *all, int o, uint64_t *array, uint64_t *image)
{
    tgi_err none = {0};
    *array = *image = 0;
    if (shape_output(all, o, &none) != TG_OK)
        return;
    *array = tgi_npy_file_bytes(&all->out[o].file);
    if (tgi_tensor_makes_image(all, o, desc_of(all, o)))
        *image = image_bytes(all, o);
}

tg_status tgi_tensors_seal(tgi_tensors *all, tgi_err *err)
{
    for (int o = 0; o < all->set.graph->n_out; o++)
        TGI_TRY(tgi_npy_seal(&all->out[o].npy, err));
    return TG_OK;
}

void tgi_tensors_drop(tgi_tensors *t)
{
    for (int o = 0; o < TGI_MAX_PORTS; o++) {
        tgi_tensor_out *p = &t->out[o];
        if (t->names.listed)
            tgi_journal_close(&p->journal);
        tgi_journal_drop(&p->journal);
        tgi_npy_abandon(&p->npy);
        tgi_free(p->path);
        tgi_free(p->tiff);
        p->path = p->tiff = NULL;
    }
    tgi_names_close(&t->names);
}
