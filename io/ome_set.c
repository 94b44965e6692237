/* ome_set.c - an OME-TIFF whose planes lie in several files of one folder.
 *
 * Every TiffData names its file (UUID FileName); the XML is in each of the files, or in a
 * metadata file of its own ("x.companion.ome") that the files point to. Whichever is opened,
 * the image is the whole set, as in Bio-Formats. A file that is missing is named; nothing is
 * made up for it. Names must be plain: a set never reaches out of its folder.
 * Source: OME-TIFF specification, "Distribution of an image across multiple files". */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/io_formats.h"
#include "io/ome_grid.h"
#include "io/rfile.h"
#include "io/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct named {
    const char *name;
    size_t block;
} named;

typedef struct set {
    const char *path; /* of the file that was opened */
    size_t folder;    /* length of its folder, slash included */
    tgi_ome o;
    uint32_t *file; /* of each block */
    uint64_t bytes; /* of all files */
    tgi_stack_spec spec;
    tgi_err *err;
} set;

static bool is_plain(const char *name)
{
    return name[0] && !strchr(name, '/') && !strchr(name, '\\') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static tg_status add_file(set *s, const char *name)
{
    const size_t n = s->folder + strlen(name) + 1;
    char *path = tgi_malloc(TGI_TAG_IO, n);
    if (!path)
        return tgi_fail(s->err, TG_E_NOMEM, "no memory for the names of files");
    snprintf(path, n, "%.*s%s", (int)s->folder, s->path, name);
    s->spec.path[s->spec.n_files++] = path;
    return TG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static const char *block_name(const set *s, const tgi_ome_block *b, const char *self)
{
    return b->elsewhere && b->name ? s->o.names + b->name - 1 : b->elsewhere ? NULL : self;
}

/* The distinct files, in the order of their names. */
static tg_status list_files(set *s, named *n)
{
    const char *slash = strrchr(s->path, '/'), *self = slash ? slash + 1 : s->path;
    for (size_t i = 0; i < s->o.n_blocks; i++) {
        n[i] = (named){block_name(s, &s->o.blocks[i], self), i};
        if (!n[i].name)
            return tgi_fail(s->err, TG_E_UNSUPPORTED,
                            "OME-XML: a TiffData is in another file, and does not name it");
        if (!is_plain(n[i].name))
            return tgi_fail(s->err, TG_E_FORMAT,
                            "OME-XML: a TiffData names \"%.100s\", outside the file's folder",
                            n[i].name);
    }
    qsort(n, s->o.n_blocks, sizeof *n, by_name);
    for (size_t i = 0; i < s->o.n_blocks; i++) {
        if (i == 0 || strcmp(n[i].name, n[i - 1].name) != 0)
            TGI_TRY(add_file(s, n[i].name));
        s->file[n[i].block] = (uint32_t)s->spec.n_files - 1;
    }
    return TG_OK;
}

static tg_status find_files(set *s)
{
    int64_t missing = 0;
    const char *first = NULL;
    for (int64_t i = 0; i < s->spec.n_files; i++) {
        struct stat sb;
        if (stat(s->spec.path[i], &sb) == 0 && S_ISREG(sb.st_mode))
            s->bytes += (uint64_t)sb.st_size;
        else if (!missing++)
            first = s->spec.path[i];
    }
    if (!missing)
        return TG_OK;
    return tgi_fail(s->err, TG_E_FORMAT,
                    "a multi-file OME-TIFF: %lld of its %lld files %s missing%s %s",
                    (long long)missing, (long long)s->spec.n_files, missing > 1 ? "are" : "is",
                    missing > 1 ? ", the first is" : ":", first);
}

static tg_status name_files(set *s)
{
    const size_t n = s->o.n_blocks;
    if (!n)
        return tgi_fail(s->err, TG_E_FORMAT, "the OME-XML names no file: there is no TiffData");
    if (n > TGI_STACK_MAX_FILES)
        return tgi_fail(s->err, TG_E_UNSUPPORTED, "OME-XML with %zu TiffData in many files", n);
    named *names = tgi_malloc(TGI_TAG_IO, n * sizeof *names);
    s->file = tgi_malloc(TGI_TAG_IO, n * sizeof *s->file);
    s->spec.path = tgi_calloc(TGI_TAG_IO, n + 1, sizeof *s->spec.path);
    tg_status st = names && s->file && s->spec.path
                       ? list_files(s, names)
                       : tgi_fail(s->err, TG_E_NOMEM, "no memory for %zu files", n);
    tgi_free(names);
    return st == TG_OK ? find_files(s) : st;
}

static tg_status open_pages(const set *s, uint32_t file, const tgi_open_opts *o,
                            tgi_source **out)
{
    tgi_open_opts one = *o;
    one.pages = one.member = 1;
    one.threads = 1;
    one.series = 0;
    one.axes = NULL;
    return tgi_source_open(s->spec.path[file], &one, out, s->err);
}

static tg_status place_block(set *s, const tgi_ome_grid *g, const tgi_ome_block *b,
                             uint32_t file, const tgi_open_opts *o, int64_t *placed)
{
    int64_t from, n, all = 1;
    if (b->ifd < 0 && b->count < 0) { /* all that the file has */
        tgi_source *m = NULL;
        TGI_TRY(open_pages(s, file, o, &m));
        all = m->ops->info(m)->n_planes;
        tgi_source_close(&m);
    }
    TGI_TRY(tgi_ome_grid_block(g, b, all, placed, &from, &n, s->err));
    const int64_t ifd = b->ifd < 0 ? 0 : b->ifd;
    if (ifd + n > UINT32_MAX - 1)
        return tgi_fail(s->err, TG_E_FORMAT, "OME-XML names directory %lld", (long long)ifd);
    for (int64_t k = 0; k < n; k++)
        s->spec.planes[from + k] = (tgi_stack_plane){file, (uint32_t)(ifd + k)};
    return TG_OK;
}

static void add_page_axes(tgi_image_info *i, const tgi_image_info *page)
{
    for (const char *a = page->planar_samples ? "SYX" : "YXS"; *a; a++) {
        if (*a == 'S' && page->samples == 1)
            continue;
        i->axes[i->n_axes] = *a;
        i->shape[i->n_axes++] = *a == 'Y'   ? page->height
                                : *a == 'X' ? page->width
                                            : page->samples;
    }
    i->axes[i->n_axes] = 0;
}

static tg_status lay_out(set *s, const tgi_image_info *page, const tgi_open_opts *o)
{
    tgi_image_info *i = &s->spec.info;
    tgi_ome_grid g;
    int64_t placed = 0;
    /* At a level the XML's size is that of level 0. */
    const int64_t w = o->level ? s->o.size_x : page->width,
                  h = o->level ? s->o.size_y : page->height;
    TGI_TRY(tgi_ome_grid_make(&s->o, w, h, page->samples, i, &g, s->err));
    add_page_axes(i, page);
    i->n_planes = g.total;
    i->height = page->height;
    i->width = page->width;
    i->samples = page->samples;
    i->dtype = page->dtype;
    i->n_series = s->o.n_images;
    i->at_series = o->series;
    snprintf(i->flavor, sizeof i->flavor, "ome");
    for (int k = 0; k < s->o.n_images && k < TGI_OME_MAX_IMAGES; k++) {
        i->series[k] =
            (tgi_series_info){.height = s->o.images[k].height, .width = s->o.images[k].width};
        snprintf(i->series[k].name, sizeof i->series[k].name, "%s", s->o.images[k].name);
    }
    if ((uint64_t)g.total > s->bytes / 16) /* a directory takes more */
        return tgi_fail(s->err, TG_E_FORMAT,
                        "OME-XML describes %lld planes, in files of %llu bytes together",
                        (long long)g.total, (unsigned long long)s->bytes);
    s->spec.planes = tgi_malloc(TGI_TAG_IO, (size_t)g.total * sizeof *s->spec.planes);
    if (!s->spec.planes)
        return tgi_fail(s->err, TG_E_NOMEM, "no memory for %lld planes", (long long)g.total);
    memset(s->spec.planes, 0xff, (size_t)g.total * sizeof *s->spec.planes);
    for (size_t b = 0; b < s->o.n_blocks; b++)
        TGI_TRY(place_block(s, &g, &s->o.blocks[b], s->file[b], o, &placed));
    for (int64_t p = 0; p < g.total; p++)
        if (s->spec.planes[p].plane == UINT32_MAX)
            return tgi_fail(s->err, TG_E_FORMAT, "OME-XML: no TiffData for plane %lld of %lld",
                            (long long)p, (long long)g.total);
    return tgi_ome_take_meta(&s->o, &i->meta, s->err);
}

/* The metadata file belongs to the input too: it decides which plane is which. */
static tg_status add_extra(set *s)
{
    for (int64_t i = 0; i < s->spec.n_files; i++)
        if (strcmp(s->spec.path[i], s->path) == 0)
            return TG_OK;
    char *copy = tgi_strdup(TGI_TAG_IO, s->path);
    if (!copy)
        return tgi_fail(s->err, TG_E_NOMEM, "no memory for the names of files");
    s->spec.path[s->spec.n_files] = copy;
    s->spec.n_extra = 1;
    return TG_OK;
}

tg_status tgi_ome_set_open(const char *path, const char *xml, const tgi_open_opts *o,
                           tgi_source **out, tgi_err *err)
{
    const char *slash = strrchr(path, '/'), *self = slash ? slash + 1 : path;
    set s = {.path = path, .folder = (size_t)(self - path), .err = err};
    tgi_source *page = NULL;
    /* Asked here, too: a TIFF's own XML leads here without the table. */
    TGI_TRY(tgi_untrusted_check(tgi_ome_set_source_ops.fuzzed, "OME sets", err));
    TGI_TRY(tgi_ome_parse(xml, strlen(xml), self, o->series, &s.o, err));
    tg_status st = name_files(&s);
    if (st == TG_OK)
        st = open_pages(&s, s.file[0], o, &page);
    if (st == TG_OK)
        st = lay_out(&s, page->ops->info(page), o);
    if (st == TG_OK)
        st = add_extra(&s);
    tgi_source_close(&page);
    tgi_ome_free(&s.o);
    tgi_free(s.file);
    s.spec.pages = true;
    if (st == TG_OK)
        return tgi_stack_open(&s.spec, o, out, err);
    tgi_stack_spec_free(&s.spec);
    return st;
}

/* Nobody said which image: the one in the file `of`. */
static tg_status find_own(const char *xml, const char *of, tgi_open_opts *o, tgi_err *err)
{
    tgi_ome ome;
    TGI_TRY(tgi_ome_parse(xml, strlen(xml), of, 0, &ome, err));
    const int own = ome.own, n = ome.n_images;
    tgi_ome_free(&ome);
    if (own < 0 && n > 1)
        return tgi_fail(err, TG_E_FORMAT, TGI_OME_IN_NONE, n);
    o->series = own > 0 ? own : 0;
    return TG_OK;
}

/* `of`: the file that points here; NULL: none does. */
static tg_status open_described(const char *path, const char *xml, const char *of,
                                const tgi_open_opts *o, tgi_source **out, tgi_err *err)
{
    tgi_open_opts own = *o;
    if (of && o->any_series)
        TGI_TRY(find_own(xml, of, &own, err));
    return tgi_ome_set_open(path, xml, &own, out, err);
}

/* The first file of a set may describe the others (as Micro-Manager's does). */
static tg_status open_by_tiff(const char *path, const char *of, const tgi_open_opts *o,
                              tgi_source **out, tgi_err *err)
{
    tgi_open_opts one = *o;
    tgi_source *first = NULL;
    one.pages = one.member = one.threads = 1;
    one.series = one.level = 0;
    one.axes = NULL;
    TGI_TRY(tgi_source_open(path, &one, &first, err));
    const char *xml = first->ops->info(first)->meta.description;
    const tg_status st =
        xml ? open_described(path, xml, of, o, out, err)
            : tgi_fail(err, TG_E_FORMAT, "%s, which is to describe it, has no OME-XML", path);
    tgi_source_close(&first);
    return st;
}

static bool is_tiff(const tgi_rfile *f)
{
    char head[4];
    tgi_err ignored = {0};
    return f->size >= sizeof head &&
           tgi_rfile_read(f, 0, head, sizeof head, &ignored) == TG_OK &&
           (memcmp(head, "II", 2) == 0 || memcmp(head, "MM", 2) == 0);
}

static tg_status open_companion(const char *path, const char *of, const tgi_open_opts *o,
                                tgi_source **out, tgi_err *err)
{
    tgi_rfile f;
    TGI_TRY(tgi_rfile_open(path, &f, err));
    if (of && is_tiff(&f)) {
        tgi_rfile_close(&f);
        return open_by_tiff(path, of, o, out, err);
    }
    if (f.size > TGI_OME_MAX_BYTES) {
        tgi_rfile_close(&f);
        return tgi_fail(err, TG_E_UNSUPPORTED, "OME-XML of %llu bytes (limit %u)",
                        (unsigned long long)f.size, TGI_OME_MAX_BYTES);
    }
    char *xml = tgi_malloc(TGI_TAG_IO, (size_t)f.size + 1);
    tg_status st = xml ? tgi_rfile_read(&f, 0, xml, (size_t)f.size, err)
                       : tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML");
    if (st == TG_OK) {
        xml[f.size] = 0;
        st = open_described(path, xml, of, o, out, err);
    }
    tgi_rfile_close(&f);
    tgi_free(xml);
    return st;
}

tg_status tgi_ome_set_open_companion(const char *path, const char *metadata_file,
                                     const tgi_open_opts *o, tgi_source **out, tgi_err *err)
{
    char beside[4096];
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash + 1 - path) : 0;
    if (!is_plain(metadata_file))
        return tgi_fail(err, TG_E_FORMAT,
                        "OME-XML names the metadata file \"%.100s\", outside the file's folder",
                        metadata_file);
    if (snprintf(beside, sizeof beside, "%.*s%s", n, path, metadata_file) >= (int)sizeof beside)
        return tgi_fail(err, TG_E_ARG, "the name of the metadata file is too long");
    return open_companion(beside, slash ? slash + 1 : path, o, out, err);
}

/* A metadata file given by itself. As a file of a set it may name itself, or one that names it,
 * and so on for ever. */
static tg_status ome_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                          tgi_err *err)
{
    return o->member ? tgi_fail(err, TG_E_FORMAT, "OME-XML, where a file with pixels should be")
                     : open_companion(path, NULL, o, out, err);
}

static int ome_probe(const uint8_t *head, size_t n, const char *path)
{
    const size_t k = strlen(path);
    (void)head;
    (void)n;
    return (k > 4 && strcmp(path + k - 4, ".ome") == 0) ||
           (k > 8 && strcmp(path + k - 8, ".ome.xml") == 0);
}

const tgi_source_ops tgi_ome_set_source_ops = {
    .format = "ome", .fuzzed = TGI_FUZZED, .probe = ome_probe, .open = ome_open};
