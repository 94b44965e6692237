/* tensor_out.c - arrays as outputs: their names, shapes and files.
 *
 * They grow in NAME.npy.partial, locked against a second run (io/part.h), and get their names
 * when all of them are complete. A job that reads an image and writes into a folder turns those
 * that are images into NAME.tif then, planes in the order of the image's own; their arrays
 * never have a name, and NAME.tif is locked by its journal from the beginning, as by a run that
 * writes nothing else. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/job/copy.h"
#include "engine/job/tensor_memory.h"
#include "engine/job/tensors.h"
#include "engine/out/journal.h"
#include "io/file_ops.h"
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

int tgi_names_arrays(const char *output)
{
    const size_t n = output ? strlen(output) : 0;
    return n && ((n > 4 && strcmp(output + n - 4, ".npy") == 0) || tgi_names_folder(output));
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

tg_status tgi_check_output_name(const char *output, int arrays_in, tgi_err *err)
{
    static const char *const tiff[] = {"tif", "tiff", "TIF", "TIFF", "tf8", "btf"};
    const char *end = output ? ending_of(output) : "";
    int image = output && tgi_picture_writer_for(output) != NULL;
    for (size_t i = 0; i < sizeof tiff / sizeof tiff[0]; i++)
        image |= strcmp(end, tiff[i]) == 0;
    if (!*end || tgi_names_arrays(output) || (image && !arrays_in))
        return TG_OK;
    if (image)
        return tgi_fail(err, TG_E_ARG,
                        "%s: arrays go in, so arrays come out: -o OUT.npy or -o DIR/", output);
    return tgi_fail(err, TG_E_ARG,
                    "%s: .%s is no format that is written: .tif, .npy, .png and .jpg are, and "
                    "DIR/ for several outputs",
                    output, end);
}

int tgi_output_is_image(const tgi_graph *g, int o, const tgi_desc *d)
{
    const int *perm = g->out[o].perm;
    return tgi_is_image(g, d) && perm[d->rank - 1] >= 0 && perm[d->rank - 2] >= 0;
}

int tgi_tensor_makes_image(const tg_job *job, int o)
{
    const tgi_net *net = job->plan.net;
    return job->tensors->from_image && job->set.output && tgi_names_folder(job->set.output) &&
           tgi_output_is_image(job->graph, o, &net->shapes.desc[net->out[o]]);
}

tg_dtype tgi_tensor_out_type(const tg_job *job, int o)
{
    const tgi_net *net = job->plan.net;
    const tg_dtype type = net->shapes.desc[net->out[o]].dtype;
    if (!tgi_tensor_makes_image(job, o))
        return type;
    return type == TG_DTYPE_BOOL            ? TG_DTYPE_U8
           : o == 0 && type == TG_DTYPE_I64 ? job->set.dtype /* labels */
                                            : TG_DTYPE_F32;
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

static tg_status name_output(const tg_job *job, int o, tgi_err *err)
{
    tgi_tensor_out *t = &job->tensors->out[o];
    const char *out = job->set.output, *name = job->graph->out[o].name;
    char path[4096];
    if (!out || !*out)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.npy or -o DIR/) is missing");
    if (!tgi_names_folder(out)) {
        if (job->graph->n_out > 1)
            return tgi_fail(err, TG_E_ARG, "the network has %d outputs: give a folder, -o DIR/",
                            job->graph->n_out);
        return copy_name(out, &t->path, err);
    }
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return tgi_fail(err, TG_E_EXISTS, "%s: cannot be created: %s", out, strerror(errno));
    TGI_TRY(tgi_name_in_folder(out, name, ".npy", path, sizeof path, err));
    TGI_TRY(copy_name(path, &t->path, err));
    for (int k = 0; k < o; k++)
        if (strcmp(job->tensors->out[k].path, path) == 0)
            return tgi_fail(err, TG_E_UNSUPPORTED, "two outputs would be written to %s", path);
    if (!tgi_tensor_makes_image(job, o))
        return TG_OK;
    TGI_TRY(tgi_name_in_folder(out, name, ".tif", path, sizeof path, err));
    return copy_name(path, &t->tiff, err);
}

/* ---- Shapes ------------------------------------------------------------------------------ */

/* What of an image's axes the job wants: the share of output 0's. */
static void set_keep(const tg_job *job, int o, const tgi_desc *d)
{
    const tgi_stage *s = &job->plan.stages->one;
    tgi_tensor_out *t = &job->tensors->out[o];
    for (int a = 0; a < d->rank; a++)
        t->keep[a] = (tgi_range){0, d->dim[a]};
    for (int a = TGI_STREAM_AXIS; a < d->rank && !s->net->values[s->net->out[o]].flat; a++) {
        const tgi_fit *f = &s->fit[a - TGI_STREAM_AXIS];
        t->keep[a] = tgi_axis_share(s, a, o, (tgi_range){f->crop, f->crop + f->out});
    }
}

/* The file has the axes of the model's own output; samples follow each other on the first. */
static tg_status shape_array(const tg_job *job, int o, const tgi_desc *d, tgi_err *err)
{
    struct tgi_tensors *all = job->tensors;
    tgi_tensor_out *t = &all->out[o];
    const tgi_port *p = &job->graph->out[o];
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
                            "put together: give one at a time (--planes)",
                            p->name, (long long)all->batch);
        t->file.dim[p->perm[0]] = all->batch;
    }
    for (int i = t->file.rank - 1; i >= 0; n *= t->file.dim[i--])
        step[i] = n;
    for (int a = 0; a < d->rank; a++)
        t->stride[a] = p->perm[a] >= 0 ? step[p->perm[a]] : 0;
    t->sample_stride = d->rank ? t->stride[0] : 0;
    return TG_OK;
}

/* The file is a stack: the axes that the job loops over, channels, then z, y and x. */
static tg_status shape_stack(const tg_job *job, int o, const tgi_desc *d, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    tgi_tensor_out *t = &job->tensors->out[o];
    int n = 0, has_c = 0;
    memset(t->axes, 0, sizeof t->axes);
    if (m->n_loop + d->rank > TGI_IMAGE_MAX_AXES || m->n_loop + d->rank > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the output \"%s\" would have more than %d axes",
                        job->graph->out[o].name, TGI_IMAGE_MAX_AXES);
    t->file.dtype = tgi_tensor_out_type(job, o);
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

static tg_status shape_output(const tg_job *job, int o, tgi_err *err)
{
    const tgi_net *net = job->plan.net;
    const tgi_desc *d = &net->shapes.desc[net->out[o]];
    set_keep(job, o, d);
    return tgi_tensor_makes_image(job, o) ? shape_stack(job, o, d, err)
                                          : shape_array(job, o, d, err);
}

/* ---- The image that is made of an array -------------------------------------------------- */

/* What is known of the image, as far as it holds for output o: as for the only output of a run,
 * at this one's scale. */
static void meta_of(const tg_job *job, int o, tgi_image_meta *out)
{
    const tgi_net *net = job->plan.net;
    const tgi_desc *d = &net->shapes.desc[net->out[o]];
    const tgi_tensor_out *first = &job->tensors->out[0], *t = &job->tensors->out[o];
    tgi_mapping m = job->map;
    m.out_channels = d->dim[1];
    m.out_samples = 0;
    memcpy(m.out_axes, t->axes, sizeof m.out_axes);
    for (int a = TGI_STREAM_AXIS; a < d->rank && d->rank == job->in_desc.rank; a++) {
        tgi_place *p = &m.fit[3 - d->rank + a].place;
        p->up *= tgi_range_len(t->keep[a]); /* shares of output 0's: set_keep */
        p->down *= tgi_range_len(first->keep[a]);
    }
    tgi_mapping_meta(&m, job->info, out);
}

/* A picture is made of the tiles. */
static int is_picture(const tg_job *job)
{
    return tgi_opts_choice(job->opts, TGI_OPT_FORMAT) == 1;
}

/* As the copy will lay it out (make_image, tgi_copy_make_layout). */
static tg_status lay_out_image(const tg_job *job, int o, tgi_sink_layout **out, tgi_err *err)
{
    const tgi_tensor_out *t = &job->tensors->out[o];
    const tgi_compress_spec *z = &job->set.compress;
    tgi_image_meta meta;
    tgi_sink_spec spec = {.dtype = t->file.dtype, .meta = &meta};
    if (!is_picture(job)) {
        spec.compression = (tgi_compression)z->kind;
        spec.level = z->level > 0 ? z->level : 0;
    }
    if (spec.compression != TGI_COMPRESSION_NONE)
        spec.predictor = tgi_dtype_is_float(spec.dtype) ? 3 : 2;
    meta_of(job, o, &meta);
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

static tg_status refuse_existing(const tg_job *job, const char *path, tgi_err *err)
{
    return path && access(path, F_OK) == 0 && !job->set.overwrite
               ? tgi_fail(err, TG_E_EXISTS, "%s exists: give -y to overwrite it", path)
               : TG_OK;
}

/* What is there of this image, if anything: only what such a run left may go without -y. */
static tg_status may_begin(const tg_job *job, tgi_tensor_out *t, tgi_err *err)
{
    const tgi_journal_kind state = tgi_journal_state(t->journal);
    if (state == TGI_JOURNAL_FRESH)
        return TG_OK;
    if (!tgi_copy_was_part(t->journal) && !job->set.overwrite)
        return tgi_fail(err, TG_E_CHANGED,
                        "%s.partial is the interrupted output of another job: finish that one, "
                        "or give -y to discard it",
                        t->tiff);
    if (state != TGI_JOURNAL_FINISHED)
        return TG_OK;
    TGI_TRY(tgi_journal_clear_finished(t->journal, err)); /* all but its name was done */
    TGI_TRY(refuse_existing(job, t->tiff, err));
    tgi_journal_close(&t->journal);
    return tgi_journal_open(t->tiff, job->set.overwrite, NULL, &t->journal, err);
}

/* The log comes before it begins. */
static tg_status claim(const tg_job *job, int o, tgi_err *err)
{
    tgi_sink_layout *l = NULL;
    TGI_TRY(lay_out_image(job, o, &l, err));
    const tg_status st = tgi_journal_claim(job->tensors->out[o].journal, l, err);
    tgi_sink_layout_free(&l);
    return st;
}

static tg_status create_one(const tg_job *job, int o, tgi_err *err)
{
    tgi_tensor_out *t = &job->tensors->out[o];
    if (!t->tiff)
        return tgi_npy_create(t->path, &t->file, job->set.overwrite, &t->npy, err);
    TGI_TRY(tgi_journal_open(t->tiff, job->set.overwrite, NULL, &t->journal, err));
    TGI_TRY(may_begin(job, t, err));
    TGI_TRY(claim(job, o, err));
    return tgi_npy_create_unnamed(job->set.output, t->tiff, &t->file, &t->npy, err);
}

tg_status tgi_tensors_shape(tg_job *job, tgi_err *err)
{
    const int sinks = tgi_job_has_sinks(job);
    for (int o = 0; o < job->plan.net->n_out; o++) {
        TGI_TRY(shape_output(job, o, err));
        job->tensors->out[o].dropped = sinks && !tgi_memory_sink(job, o);
    }
    return TG_OK;
}

tg_status tgi_tensors_name(tg_job *job, tgi_err *err)
{
    const tgi_net *net = job->plan.net;
    for (int o = 0; o < net->n_out; o++) {
        TGI_TRY(name_output(job, o, err));
        TGI_TRY(shape_output(job, o, err));
    }
    return TG_OK;
}

tg_status tgi_tensors_create(tg_job *job, tgi_err *err)
{
    const int n = job->plan.net->n_out;
    tgi_tensor_out *out = job->tensors->out;
    for (int o = 0; o < n; o++)
        TGI_TRY(refuse_folder(out[o].tiff ? out[o].tiff : out[o].path, err));
    for (int o = 0; o < n; o++)
        TGI_TRY(refuse_existing(job, out[o].tiff ? NULL : out[o].path, err)); /* its journal
                                                                                 knows */
    for (int o = 0; o < n; o++)
        TGI_TRY(create_one(job, o, err));
    return tgi_names_forget(job, err);
}

/* With the picture that is made of its tiles, if any. */
static uint64_t image_bytes(const tg_job *job, int o)
{
    tgi_sink_layout *l = NULL;
    tgi_err none = {0};
    if (lay_out_image(job, o, &l, &none) != TG_OK)
        return 0;
    const uint64_t bytes = l->file_bytes;
    tgi_sink_layout_free(&l);
    return tgi_sat_mul(is_picture(job) ? 2 : 1, bytes);
}

void tgi_tensor_disk(const tg_job *job, int o, uint64_t *array, uint64_t *image)
{
    tgi_err none = {0};
    *array = *image = 0;
    if (shape_output(job, o, &none) != TG_OK)
        return;
    *array = tgi_npy_file_bytes(&job->tensors->out[o].file);
    if (tgi_tensor_makes_image(job, o))
        *image = image_bytes(job, o);
}

/* The array is complete: what remains is another format. */
static tg_status make_image(const tg_job *job, int index, tgi_err *err)
{
    static const struct {
        tgi_opt id;
        const char *name;
    } handed_on[] = {{TGI_OPT_COMPRESS, "compress"}, {TGI_OPT_FORMAT, "format"}};
    const tgi_tensor_out *t = &job->tensors->out[index];
    tgi_image_meta meta;
    tg_opts *o = NULL;
    meta_of(job, index, &meta);
    TGI_TRY(tgi_opts_new(&o, err));
    tg_status st = tgi_opts_set(o, "input", t->npy.part.partial, err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "output", t->tiff, err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "axes", t->axes, err);
    for (size_t i = 0; i < sizeof handed_on / sizeof handed_on[0] && st == TG_OK; i++)
        if (tgi_opts_str(job->opts, handed_on[i].id))
            st = tgi_opts_set(o, handed_on[i].name, tgi_opts_str(job->opts, handed_on[i].id),
                              err);
    const tgi_copy_part part = {&meta, t->journal};
    if (st == TG_OK)
        st = tgi_copy(job->ctx, o, &part, err);
    tgi_opts_free(&o);
    return st;
}

/* First all of them are complete and on the disk, then they get their names: a kill before that
 * leaves none, and the same command starts over. */
tg_status tgi_tensors_finish(tg_job *job, tgi_err *err)
{
    const int n = job->graph->n_out;
    tgi_tensor_out *out = job->tensors->out;
    for (int o = 0; o < n; o++)
        TGI_TRY(tgi_npy_seal(&out[o].npy, err));
    for (int o = 0; o < n; o++)
        if (out[o].tiff)
            TGI_TRY(make_image(job, o, err));
    return tgi_names_give(job, err);
}

void tgi_tensors_drop(struct tgi_tensors *t)
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
