/* npy.c - header parser, loading and writing of .npy files.
 *
 * The header is a Python dictionary literal. It is read by a scanner for exactly the three keys
 * that the format prescribes, in any order; anything else is an error. Lengths are bounded
 * before anything is allocated: the header by 64 KiB, the data by the file. */
#include "io/npy.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"
#include "io/file_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEAD 65536
#define MAGIC "\x93NUMPY"

/* ---- Header ---- */

typedef struct literal {
    const char *p;
    tgi_npy_head *h;
    bool descr, order, shape; /* keys seen */
    tgi_err *err;
} literal;

static void skip_space(literal *l)
{
    l->p += strspn(l->p, " \t\n\r");
}

static bool accept(literal *l, char c)
{
    skip_space(l);
    if (*l->p != c)
        return false;
    l->p++;
    return true;
}

/* A quoted string without escapes into buf. */
static bool quoted(literal *l, char *buf, size_t cap)
{
    skip_space(l);
    const char q = *l->p;
    if (q != '\'' && q != '"')
        return false;
    const char *end = strchr(l->p + 1, q);
    if (!end || (size_t)(end - l->p - 1) >= cap)
        return false;
    memcpy(buf, l->p + 1, (size_t)(end - l->p - 1));
    buf[end - l->p - 1] = 0;
    l->p = end + 1;
    return true;
}

static tg_status take_descr(literal *l)
{
    static const struct {
        const char *code;
        tg_dtype dtype;
    } codes[] = {{"u1", TG_DTYPE_U8},  {"i1", TG_DTYPE_I8},  {"u2", TG_DTYPE_U16},
                 {"i2", TG_DTYPE_I16}, {"u4", TG_DTYPE_U32}, {"i4", TG_DTYPE_I32},
                 {"u8", TG_DTYPE_U64}, {"i8", TG_DTYPE_I64}, {"f2", TG_DTYPE_F16},
                 {"f4", TG_DTYPE_F32}, {"f8", TG_DTYPE_F64}, {"b1", TG_DTYPE_BOOL}};
    char s[32];
    skip_space(l);
    if (*l->p == '[')
        return tgi_fail(l->err, TG_E_UNSUPPORTED, "npy: structured arrays are not supported");
    if (!quoted(l, s, sizeof s) || !s[0] || !strchr("<>|=", s[0]))
        return tgi_fail(l->err, TG_E_FORMAT, "npy: a header without a valid 'descr'");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(s + 1, codes[i].code) == 0)
            l->h->desc.dtype = codes[i].dtype;
    if (l->h->desc.dtype == TG_DTYPE_NONE)
        return tgi_fail(l->err, TG_E_UNSUPPORTED, "npy: element type '%s' is not supported", s);
    l->h->swap = tgi_dtype_size(l->h->desc.dtype) > 1 &&
                 ((s[0] == '>' && !TGI_HOST_BIG) || (s[0] == '<' && TGI_HOST_BIG));
    l->descr = true;
    return TG_OK;
}

static tg_status take_shape(literal *l)
{
    tgi_desc *d = &l->h->desc;
    if (!accept(l, '('))
        return tgi_fail(l->err, TG_E_FORMAT, "npy: a shape that is no tuple");
    while (!accept(l, ')')) {
        char *end;
        skip_space(l);
        errno = 0;
        const long long v = strtoll(l->p, &end, 10);
        if (end == l->p || v < 0 || errno)
            return tgi_fail(l->err, TG_E_FORMAT, "npy: a shape with a bad number");
        if (d->rank == TGI_MAX_RANK)
            return tgi_fail(l->err, TG_E_UNSUPPORTED, "npy: more than %d dimensions",
                            TGI_MAX_RANK);
        d->dim[d->rank++] = v;
        l->p = end;
        skip_space(l);
        if (!accept(l, ',') && *l->p != ')')
            return tgi_fail(l->err, TG_E_FORMAT, "npy: a shape that does not end");
    }
    l->shape = true;
    return TG_OK;
}

static tg_status take_order(literal *l, bool *fortran)
{
    skip_space(l);
    *fortran = strncmp(l->p, "True", 4) == 0;
    if (!*fortran && strncmp(l->p, "False", 5) != 0)
        return tgi_fail(l->err, TG_E_FORMAT, "npy: 'fortran_order' is neither True nor False");
    l->p += *fortran ? 4 : 5;
    l->order = true;
    return TG_OK;
}

static tg_status parse_literal(const char *text, tgi_npy_head *h, tgi_err *err)
{
    literal l = {.p = text, .h = h, .err = err};
    bool fortran = false;
    char key[32];
    if (!accept(&l, '{'))
        return tgi_fail(err, TG_E_FORMAT, "npy: the header is no dictionary");
    while (!accept(&l, '}')) {
        if (!quoted(&l, key, sizeof key) || !accept(&l, ':'))
            return tgi_fail(err, TG_E_FORMAT, "npy: the header is damaged");
        if (strcmp(key, "descr") == 0 && !l.descr)
            TGI_TRY(take_descr(&l));
        else if (strcmp(key, "shape") == 0 && !l.shape)
            TGI_TRY(take_shape(&l));
        else if (strcmp(key, "fortran_order") == 0 && !l.order)
            TGI_TRY(take_order(&l, &fortran));
        else
            return tgi_fail(err, TG_E_FORMAT, "npy: unexpected key '%s' in the header", key);
        skip_space(&l);
        if (!accept(&l, ',') && *l.p != '}')
            return tgi_fail(err, TG_E_FORMAT, "npy: the header is damaged");
    }
    if (!l.descr || !l.shape || !l.order)
        return tgi_fail(err, TG_E_FORMAT,
                        "npy: the header lacks descr, shape or fortran_order");
    skip_space(&l);
    if (*l.p)
        return tgi_fail(err, TG_E_FORMAT,
                        "npy: there is something behind the header's dictionary");
    h->fortran = fortran && h->desc.rank > 1;
    return TG_OK;
}

void tgi_npy_steps(const tgi_npy_head *h, int64_t *step)
{
    const tgi_desc *d = &h->desc;
    int64_t n = 1;
    for (int i = 0; i < d->rank; i++) {
        const int a = h->fortran ? i : d->rank - 1 - i;
        step[a] = n;
        n *= d->dim[a];
    }
}

tg_status tgi_npy_check_order(const tgi_npy_head *h, const char *path, tgi_err *err)
{
    return h->fortran ? tgi_fail(err, TG_E_UNSUPPORTED,
                                 "%s: npy: Fortran order is not taken here; save "
                                 "numpy.ascontiguousarray(a)",
                                 path)
                      : TG_OK;
}

tg_status tgi_npy_read_head(const tgi_rfile *f, tgi_npy_head *out, tgi_err *err)
{
    uint8_t fix[12] = {0};
    int64_t count;
    size_t bytes;
    *out = (tgi_npy_head){0};
    if (f->size < 10)
        return tgi_fail(err, TG_E_FORMAT, "npy: the file ends in its header");
    TGI_TRY(tgi_rfile_read(f, 0, fix, f->size < 12 ? 10 : 12, err));
    if (memcmp(fix, MAGIC, 6) != 0)
        return tgi_fail(err, TG_E_FORMAT, "not an npy file");
    if (fix[6] < 1 || fix[6] > 3)
        return tgi_fail(err, TG_E_UNSUPPORTED, "npy: version %u is not supported", fix[6]);
    const size_t at = fix[6] == 1 ? 10 : 12;
    const uint32_t len = fix[6] == 1 ? tgi_load16(fix + 8, false) : tgi_load32(fix + 8, false);
    if (len > MAX_HEAD || at + len > f->size)
        return tgi_fail(err, TG_E_FORMAT, "npy: a header of %u bytes in a file of %llu", len,
                        (unsigned long long)f->size);
    char *text = tgi_malloc(TGI_TAG_IO, (size_t)len + 1);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an npy header");
    tg_status st = tgi_rfile_read(f, at, text, len, err);
    text[len] = 0;
    if (st == TG_OK)
        st = parse_literal(text, out, err);
    tgi_free(text);
    if (st != TG_OK)
        return st;
    out->data_off = at + len;
    if (!tgi_desc_count(&out->desc, &count) ||
        !tgi_mul_ok((size_t)count, tgi_dtype_size(out->desc.dtype), &bytes) ||
        bytes > f->size - out->data_off)
        return tgi_fail(err, TG_E_FORMAT,
                        "npy: the shape needs more bytes than the file's %llu",
                        (unsigned long long)f->size);
    out->data_bytes = bytes;
    return TG_OK;
}

/* ---- Whole arrays ---- */

tg_status tgi_npy_load(const char *path, size_t max_bytes, tgi_desc *desc, void **data,
                       tgi_err *err)
{
    tgi_rfile f;
    tgi_npy_head h;
    void *p = NULL;
    TGI_TRY(tgi_rfile_open(path, &f, err));
    tg_status st = tgi_npy_read_head(&f, &h, err);
    if (st == TG_OK)
        st = tgi_npy_check_order(&h, path, err);
    if (st == TG_OK && max_bytes && h.data_bytes > max_bytes)
        st = tgi_fail(err, TG_E_BUDGET, "an array of %zu bytes, %zu are allowed", h.data_bytes,
                      max_bytes);
    if (st == TG_OK && !(p = tgi_malloc(TGI_TAG_IO, h.data_bytes ? h.data_bytes : 1)))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for an array of %zu bytes", h.data_bytes);
    if (st == TG_OK)
        st = tgi_rfile_read(&f, h.data_off, p, h.data_bytes, err);
    tgi_rfile_close(&f);
    if (st != TG_OK) {
        tgi_free(p);
        tgi_err_prefix(err, "%s", path);
        return st;
    }
    const size_t size = tgi_dtype_size(h.desc.dtype);
    if (h.swap)
        tgi_swap_copy(p, p, h.data_bytes / size, size);
    *desc = h.desc;
    *data = p;
    return TG_OK;
}

tg_status tgi_npy_open(const char *path, tgi_npy_in *out, tgi_err *err)
{
    tgi_npy_in in = {.file.fd = -1};
    TGI_TRY(tgi_rfile_open(path, &in.file, err));
    tg_status st = tgi_npy_read_head(&in.file, &in.head, err);
    if (st == TG_OK && in.head.swap)
        st = tgi_fail(err, TG_E_UNSUPPORTED,
                      "npy: foreign byte order; save a.astype(a.dtype.newbyteorder('='))");
    if (st != TG_OK) {
        tgi_npy_close(&in);
        tgi_err_prefix(err, "%s", path);
        return st;
    }
    *out = in;
    return TG_OK;
}

void tgi_npy_close(tgi_npy_in *in)
{
    tgi_rfile_close(&in->file);
}

/* ---- Writing ---- */

tg_status tgi_npy_make_head(const tgi_desc *desc, char *buf, size_t cap, size_t *n,
                            tgi_err *err)
{
    static const char *const codes[] = {
        [TG_DTYPE_U8] = "u1",  [TG_DTYPE_I8] = "i1",  [TG_DTYPE_U16] = "u2",
        [TG_DTYPE_I16] = "i2", [TG_DTYPE_U32] = "u4", [TG_DTYPE_I32] = "i4",
        [TG_DTYPE_U64] = "u8", [TG_DTYPE_I64] = "i8", [TG_DTYPE_F16] = "f2",
        [TG_DTYPE_F32] = "f4", [TG_DTYPE_F64] = "f8", [TG_DTYPE_BOOL] = "b1"};
    char text[448], shape[256];
    size_t k = 0;
    const size_t size = tgi_dtype_size(desc->dtype);
    if (!size || desc->rank < 0 || desc->rank > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_ARG, "npy: no such element type or rank %d", desc->rank);
    shape[0] = 0;
    for (int i = 0; i < desc->rank; i++)
        k += (size_t)snprintf(shape + k, sizeof shape - k, i ? ", %lld" : "%lld",
                              (long long)desc->dim[i]);
    const int len = snprintf(text, sizeof text,
                             "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
                             size == 1      ? '|'
                             : TGI_HOST_BIG ? '>'
                                            : '<',
                             codes[desc->dtype], shape, desc->rank == 1 ? "," : "");
    const size_t all = (10 + (size_t)len + 1 + 63) / 64 * 64; /* ends with a newline */
    if (len < 0 || (size_t)len >= sizeof text || all > cap)
        return tgi_fail(err, TG_E_ARG, "npy: no room for a header of %zu bytes", all);
    memset(buf, ' ', all);
    memcpy(buf, MAGIC "\x01", 8); /* version 1.0: the literal's own NUL is the minor number */
    buf[8] = (char)((all - 10) & 255);
    buf[9] = (char)((all - 10) >> 8);
    memcpy(buf + 10, text, (size_t)len);
    buf[all - 1] = '\n';
    *n = all;
    return TG_OK;
}

/* Head and sizes. */
static tg_status describe(const tgi_desc *desc, char head[512], tgi_npy_out *out, tgi_err *err)
{
    size_t n = 0, bytes;
    int64_t count;
    TGI_TRY(tgi_npy_make_head(desc, head, 512, &n, err));
    if (!tgi_desc_count(desc, &count) ||
        !tgi_mul_ok((size_t)count, tgi_dtype_size(desc->dtype), &bytes) ||
        bytes > INT64_MAX / 2)
        return tgi_fail(err, TG_E_ARG, "npy: the shape overflows");
    out->data_off = n;
    out->data_bytes = bytes;
    out->written = 0;
    return TG_OK;
}

uint64_t tgi_npy_file_bytes(const tgi_desc *desc)
{
    char head[512];
    tgi_npy_out out;
    tgi_err none = {0};
    return describe(desc, head, &out, &none) == TG_OK ? out.data_off + out.data_bytes : 0;
}

static tg_status write_head(tgi_npy_out *out, const char *head, tgi_err *err)
{
    const tg_status st = tgi_part_write(&out->part, 0, head, out->data_off, err);
    if (st != TG_OK)
        tgi_npy_abandon(out);
    return st;
}

tg_status tgi_npy_create(const char *path, const tgi_desc *desc, int replace, tgi_npy_out *out,
                         tgi_err *err)
{
    char head[512];
    TGI_TRY(describe(desc, head, out, err));
    const tgi_part_spec part = {.path = path,
                                .ending = ".partial",
                                .bytes = out->data_off + out->data_bytes,
                                .replace = replace,
                                .head = head,
                                .head_bytes = out->data_off};
    TGI_TRY(tgi_part_create(&part, &out->part, err));
    return write_head(out, head, err);
}

tg_status tgi_npy_create_unnamed(const char *folder, const char *of, const tgi_desc *desc,
                                 tgi_npy_out *out, tgi_err *err)
{
    char head[512];
    TGI_TRY(describe(desc, head, out, err));
    TGI_TRY(tgi_part_unnamed(folder, of, out->data_off + out->data_bytes, &out->part, err));
    return write_head(out, head, err);
}

tg_status tgi_npy_write(tgi_npy_out *o, uint64_t off, const void *src, size_t n, tgi_err *err)
{
    if (off > o->data_bytes || n > o->data_bytes - off)
        return tgi_fail(err, TG_E_ARG, "npy: %zu bytes at %llu of an array of %llu", n,
                        (unsigned long long)off, (unsigned long long)o->data_bytes);
    TGI_TRY(tgi_part_write(&o->part, o->data_off + off, src, n, err));
    o->written += n;
    return TG_OK;
}

tg_status tgi_npy_seal(const tgi_npy_out *o, tgi_err *err)
{
    const uint64_t written = o->written;
    if (written < o->data_bytes)
        return tgi_fail(err, TG_E_INTERNAL, "npy: %llu of %llu bytes were written",
                        (unsigned long long)written, (unsigned long long)o->data_bytes);
    return tgi_part_sync(&o->part, err);
}

tg_status tgi_npy_finish(tgi_npy_out *o, tgi_err *err)
{
    TGI_TRY(tgi_npy_seal(o, err));
    TGI_TRY(tgi_part_name(&o->part, err));
    const tg_status st = tgi_file_sync_dir(o->part.path, err);
    tgi_npy_abandon(o);
    return st;
}

void tgi_npy_abandon(tgi_npy_out *o)
{
    tgi_part_drop(&o->part);
}

tg_status tgi_npy_save(const char *path, const tgi_desc *desc, const void *data, tgi_err *err)
{
    tgi_npy_out o = {.part = TGI_PART_CLOSED};
    TGI_TRY(tgi_npy_create(path, desc, 1, &o, err));
    tg_status st = tgi_npy_write(&o, 0, data, (size_t)o.data_bytes, err);
    if (st == TG_OK)
        st = tgi_npy_finish(&o, err);
    tgi_npy_abandon(&o);
    return st;
}
