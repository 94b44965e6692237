/* io_table.c - one line per image format; a file is opened by the first that knows its bytes.
 */
#include "engine/base/input.h"
#include "engine/base/mem.h"
#include "io/film_out.h"
#include "io/io_formats.h"
#include "io/picked.h"
#include "io/raw_frames.h"
#include "io/rfile.h"
#include "io/stack.h"
#include "io/y4m.h"

#include <stdlib.h>
#include <string.h>

static const tgi_source_ops *const formats[] = {
    &tgi_tiff_source_ops, &tgi_npy_source_ops,     &tgi_png_source_ops,
    &tgi_jpeg_source_ops, &tgi_ome_set_source_ops, &tgi_film_source_ops,
};

tg_status tgi_untrusted_check(tgi_fuzzed fuzzed, const char *what, tgi_err *err)
{
    const char *v = getenv("TEGULA_BLOCK_UNTRUSTED");
    if (fuzzed == TGI_FUZZED || !v || !*v || strcmp(v, "0") == 0)
        return TG_OK;
    if (fuzzed == TGI_FUZZED_BLIND)
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "the decoder of %s is libtiff's, which was fuzzed without coverage, and "
            "TEGULA_BLOCK_UNTRUSTED refuses such",
            what);
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "the reader of %s was fuzzed for less than ten minutes, and "
                    "TEGULA_BLOCK_UNTRUSTED refuses such",
                    what);
}

/* Microscopes' and other containers that people take for images, by their first bytes. */
static const struct {
    const char *bytes;
    size_t n, at;
    const char *name;
} foreign[] = {
    {"ZISRAWFILE", 10, 0, "a Zeiss CZI file"},
    {"\x89HDF\r\n", 6, 0, "an HDF5 file (Imaris .ims, .h5)"},
    {"\xda\xce\xbe\x0a", 4, 0, "a Nikon ND2 file"},
    {"jP  ", 4, 4, "a JPEG 2000 file (ND2, .jp2)"},
    {"\x70\0\0\0", 4, 0, "a Leica LIF file"},
    {"\xd0\xcf\x11\xe0", 4, 0, "an OLE file (Olympus .oib, Zeiss .zvi)"},
    {"DICM", 4, 128, "a DICOM file"},
    {"PK\3\4", 4, 0, "a ZIP archive"},
    {"\x1f\x8b", 2, 0, "compressed with gzip"},
    {"\x28\xb5\x2f\xfd", 4, 0, "compressed with zstd"},
    {"BM", 2, 0, "a Windows bitmap"},
    {"WEBP", 4, 8, "a WebP file"},
    {"ftypheic", 8, 4, "a HEIF image"},
    {"ftypmif1", 8, 4, "a HEIF image"},
    {"ftypavif", 8, 4, "an AVIF image"},
};

static tg_status refuse_foreign(const char *path, const uint8_t *head, size_t n, uint64_t bytes,
                                tgi_err *err)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const size_t m = foreign[i].n;
        if (foreign[i].at + m <= n && memcmp(head + foreign[i].at, foreign[i].bytes, m) == 0)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "%s, which is not read: save or export it as TIFF or OME-TIFF",
                            foreign[i].name);
    }
    return tgi_fail(err, TG_E_FORMAT, "not a TIFF, PNG, JPEG, NPY file or film (%llu bytes)%s",
                    (unsigned long long)bytes,
                    tgi_film_container(path)
                        ? ": --raw WIDTHxHEIGHT,FORMAT tells plan, run and "
                          "copy how frames without a header lie"
                        : "");
}

int tgi_jpeg_probe(const uint8_t *head, size_t n, const char *path)
{
    (void)path;
    return n >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff;
}

int tgi_png_probe(const uint8_t *head, size_t n, const char *path)
{
    (void)path;
    return n >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static tg_status keep_path(const char *path, tgi_source **s, tgi_err *err)
{
    (*s)->path = tgi_strdup(TGI_TAG_IO, path);
    if ((*s)->path)
        return TG_OK;
    tgi_source_close(s);
    return tgi_fail(err, TG_E_NOMEM, "no memory for the name %s", path);
}

/* What chooses frames of a film is of no other source. */
static tg_status check_cut(const tgi_open_opts *o, const tgi_source_ops *ops, tgi_err *err)
{
    if (!o || ops == &tgi_film_source_ops || (!o->cut.frames && !o->cut.start && !o->cut.end))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG, "--%s is for films; --planes chooses images of a stack",
                    o->cut.frames  ? "frames"
                    : o->cut.start ? "start"
                                   : "end");
}

/* What --raw says is of frames without a header, and `ops` reads files that have one. */
static tg_status refuse_raw(const tgi_source_ops *ops, tgi_err *err)
{
    char all[TGI_RAW_LIST];
    tgi_raw_forms(all, sizeof all);
    return tgi_fail(err, TG_E_ARG,
                    "a %s that says itself what it has: leave --raw out, which is for frames "
                    "without a header, of %s",
                    ops->format, all);
}

/* It may begin like another format by chance: that there are only whole frames of that size decides, or that somebody takes a
 * film that is cut. */
static int is_raw(const tgi_av_info *raw, const tgi_open_opts *o, uint64_t bytes)
{
    const size_t frame = tgi_y4m_frame_bytes(&raw->form, raw->width, raw->height);
    return o->truncated || (bytes && frame && bytes % frame == 0);
}

static int is_pipe(const char *path)
{
    return strcmp(path, "-") == 0 || tgi_input_is_stream(path);
}

/* A film that comes through a pipe, or is known to be one. */
static tg_status open_film(const char *path, const tgi_open_opts *opts, tgi_source **out,
                           tgi_err *err)
{
    tg_status st =
        tgi_untrusted_check(tgi_film_source_ops.fuzzed, tgi_film_source_ops.format, err);
    if (st == TG_OK)
        st = tgi_film_source_ops.open(path, opts, out, err);
    if (st == TG_OK)
        return keep_path(path, out, err);
    tgi_err_prefix(err, "%s", path);
    return st;
}

/* "https://...", of whatever protocol. */
static int is_address(const char *path)
{
    const size_t n =
        strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return n > 1 && strncmp(path + n, "://", 3) == 0;
}

static tg_status open_all(const char *path, const tgi_open_opts *opts, tgi_source **out,
                          tgi_err *err)
{
    const tgi_open_opts defaults = {.threads = 1};
    uint8_t head[160];
    tgi_rfile f;
    tgi_open_opts of_file = opts ? *opts : defaults;
    tgi_av_info raw;
    if (of_file.raw)
        TGI_TRY(tgi_raw_info(of_file.raw, &raw, err));
    if (!(opts && opts->member) && tgi_source_is_set(path)) {
        TGI_TRY(check_cut(opts, NULL, err));
        if (opts && opts->raw)
            return tgi_fail(err, TG_E_ARG, "%s: --raw is for one file, or -", path);
        return tgi_file_set_open(path, opts ? opts : &defaults, out, err);
    }
    if (opts && !opts->member && (opts->key[0] || opts->key[1] || opts->key[2]))
        return tgi_fail(
            err, TG_E_ARG,
            "%s is one file: --name-z, --name-c and --name-t are about the names of many",
            path);
    if (opts && opts->stream && is_pipe(path))
        return open_film(path, opts, out, err);
    of_file.stream = 0;
    if (strcmp(path, "-") == 0)
        return tgi_fail(
            err, TG_E_ARG,
            "-: standard input is a film whose frames come once, for `run` and `inpaint "
            "--weights` into a film (-o -, -o OUT.mkv) alone: write it to a file first");
    const tg_status found = tgi_rfile_open(path, &f, err);
    if (found == TG_E_NOT_FOUND && is_address(path)) {
        *err = (tgi_err){0};
        return tgi_fail(err, TG_E_NOT_FOUND,
                        "%s: files alone are read, nothing is taken from the network: download "
                        "it first, `curl -LO %s`, and give the file's name",
                        path, path);
    }
    TGI_TRY(found);
    const size_t n = f.size < sizeof head ? (size_t)f.size : sizeof head;
    tg_status st = tgi_rfile_read(&f, 0, head, n, err);
    tgi_rfile_close(&f);
    if (st == TG_OK && of_file.raw && is_raw(&raw, &of_file, f.size))
        return open_film(path, &of_file, out, err);
    for (size_t i = 0; st == TG_OK && i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i]->probe(head, n, path)) {
            if (of_file.raw) {
                st = refuse_raw(formats[i], err);
                break;
            }
            st = tgi_untrusted_check(formats[i]->fuzzed, formats[i]->format, err);
            if (st == TG_OK)
                st = check_cut(opts, formats[i], err);
            if (st == TG_OK)
                st = formats[i]->open(path, &of_file, out, err);
            if (st == TG_OK)
                return keep_path(path, out, err);
            if (st != TG_E_NOT_FOUND)
                tgi_err_prefix(err, "%s", path);
            return st;
        }
    if (st == TG_OK && of_file.raw)
        return open_film(path, &of_file, out, err);
    if (st == TG_OK)
        st = refuse_foreign(path, head, n, f.size, err);
    tgi_err_prefix(err, "%s", path);
    return st;
}

tg_status tgi_source_open(const char *path, const tgi_open_opts *opts, tgi_source **out,
                          tgi_err *err)
{
    if (!opts || !tgi_axis_pick_any(&opts->pick))
        return open_all(path, opts, out, err);
    tgi_source *all = NULL;
    tgi_open_opts o = *opts;
    o.pick = (tgi_axis_pick){0};
    TGI_TRY(open_all(path, &o, &all, err));
    const tg_status st = tgi_picked_open(all, &opts->pick, out, err);
    if (st == TG_OK)
        return TG_OK;
    tgi_source_close(&all);
    tgi_err_prefix(err, "%s", path);
    return st;
}

uint64_t tgi_inner_decoded(const tgi_source *s)
{
    const tgi_source *in = s->ops->inner(s);
    return in->ops->decoded_bytes ? in->ops->decoded_bytes(in) : 0;
}

const char *tgi_inner_file(const tgi_source *s, int64_t i)
{
    const tgi_source *in = s->ops->inner(s);
    return tgi_source_file(in, in->path, i);
}

int tgi_inner_held(const tgi_source *s, int64_t i, tgi_held *out)
{
    return tgi_source_held(s->ops->inner(s), i, out);
}

void tgi_pick_row(tg_dtype dtype, int samples, const void *row, int s0, int s1, int64_t x0,
                  int64_t x1, void *dst, size_t sample_pitch)
{
    const size_t size = tgi_dtype_size(dtype), all = (size_t)samples * size;
    const size_t n = (size_t)(s1 - s0), to = sample_pitch == TGI_INTERLEAVED ? n * size : size;
    const char *first = (const char *)row + (size_t)x0 * all;
    if (to == all) { /* side by side as they are wanted */
        memcpy(dst, first, (size_t)(x1 - x0) * all);
        return;
    }
    for (size_t k = 0; k < n; k++) {
        const char *from = first + ((size_t)s0 + k) * size;
        char *at = (char *)dst + k * (sample_pitch == TGI_INTERLEAVED ? size : sample_pitch);
        if (size == 1)
            for (int64_t x = x0; x < x1; x++, from += all, at += to)
                *at = *from;
        else
            for (int64_t x = x0; x < x1; x++, from += all, at += to)
                memcpy(at, from, sizeof(uint16_t)); /* frames have nothing else */
    }
}

const tgi_source *tgi_source_inmost(const tgi_source *s)
{
    while (s && s->ops->inner)
        s = s->ops->inner(s);
    return s;
}

void tgi_source_close(tgi_source **s)
{
    if (!*s)
        return;
    char *path = (*s)->path;
    (*s)->ops->close(s);
    tgi_free(path);
}

tg_status tgi_source_read(tgi_source *s, int thread, int64_t plane, int s0, int s1, int64_t y0,
                          int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                          size_t sample_pitch, tgi_err *err)
{
    const tg_status st = s->ops->read(s, thread, plane, s0, s1, y0, y1, x0, x1, dst, row_pitch,
                                      sample_pitch, err);
    if (st != TG_OK && st != TG_E_CANCELLED && s->path)
        tgi_err_prefix(err, "%s", s->path);
    return st;
}

const char *tgi_source_file(const tgi_source *s, const char *path, int64_t i)
{
    return s && s->ops->file ? s->ops->file(s, i) : i ? NULL : path;
}

int tgi_source_held(const void *source, int64_t i, tgi_held *out)
{
    const tgi_source *s = source;
    *out = (tgi_held){.path = s->path, .fd = -1};
    if (s->ops->held)
        return s->ops->held(s, i, out);
    return i == 0 && s->path && tgi_stamp_path(s->path, &out->was) == 0;
}

void tgi_image_meta_free(tgi_image_meta *m)
{
    tgi_ome_kept_free(&m->ome);
    for (int i = 0; m->channel_name && i < m->n_channels; i++)
        tgi_free(m->channel_name[i]);
    tgi_free(m->channel_name);
    tgi_free(m->channel_color);
    for (int64_t i = 0; m->label && i < m->n_labels; i++)
        tgi_free(m->label[i]);
    tgi_free(m->label);
    tgi_free(m->icc);
    tgi_free(m->lut);
    tgi_free(m->range);
    tgi_free(m->info);
    tgi_free(m->description);
    tgi_free(m->title);
    tgi_free(m->acquired);
    tgi_free(m->about);
    tgi_free(m->software);
    tgi_free(m->palette);
    *m = (tgi_image_meta){0};
}

const char *tgi_stored_name(tgi_stored s)
{
    static const char *const name[] = {NULL,   "miniswhite", "palette",
                                       "cmyk", "cielab",     "icclab"};
    return (unsigned)s < sizeof name / sizeof name[0] ? name[s] : NULL;
}

static int is_fixed(char a)
{
    return a == 'Y' || a == 'X' || a == 'S';
}

/* New letters for the plane axes of `info`, singletons left out when `drop`; 0: does not fit.
 */
static int relabel(tgi_image_info *info, const char *axes, int drop)
{
    tgi_image_info r = *info;
    const char *a = axes;
    r.n_axes = 0;
    for (int i = 0; i < info->n_axes; i++) {
        const char old = info->axes[i];
        char letter = old;
        if (!is_fixed(old) && drop && info->shape[i] == 1)
            continue;
        if (old != 'S' || *a == 'S') {
            letter = *a;
            if (!letter || letter < 'A' || letter > 'Z' ||
                (is_fixed(letter) || is_fixed(old) ? letter != old
                                                   : strchr(a + 1, letter) != NULL))
                return 0;
            a++;
        }
        r.axes[r.n_axes] = letter;
        r.shape[r.n_axes++] = info->shape[i];
    }
    r.axes[r.n_axes] = 0;
    if (*a)
        return 0;
    *info = r;
    return 1;
}

tg_status tgi_image_relabel(tgi_image_info *info, const char *axes, tgi_err *err)
{
    if (relabel(info, axes, 0) || relabel(info, axes, 1))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "axes \"%.20s\" do not fit the file's \"%s\": name each axis "
                    "once, Y, X and S where they are",
                    axes, info->axes);
}
