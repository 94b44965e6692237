/* onnx_tensor.c - element data of an ONNX tensor: raw bytes in the file, typed lists, or a file
 * of their own.
 *
 * Rules that keep a hostile file harmless:
 *  1. The number of elements follows from dims, with checked products; whatever holds the data
 *     must have exactly that many, and each element takes at least a byte of some file, so no
 *     allocation exceeds eight times what was read.
 *  2. An external location is walked component by component below the model's folder, never
 *     following a symbolic link; "..", absolute paths, hard links and anything but a regular
 *     file are refused. A hard link counts because it may be another user's file under a new
 *     name.
 * Fixed-width data are views of the mapping. @source onnx.proto3 TensorProto; ONNX
 * ExternalData. */
#include "io/onnx_parse.h"

#include "engine/base/arith.h"
#include "engine/base/fnv.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_MAPS 4096

enum {
    F_DIMS = 1,
    F_TYPE = 2,
    F_SEGMENT = 3,
    F_FLOATS = 4,
    F_INT32S = 5,
    F_STRINGS = 6,
    F_INT64S = 7,
    F_NAME = 8,
    F_RAW = 9,
    F_DOUBLES = 10,
    F_UINT64S = 11,
    F_EXTERNAL = 13,
    F_LOCATION = 14
};

typedef struct raw_tensor {
    tgi_wire msg;
    uint64_t type_code;
    int external, has_raw;
    const uint8_t *raw;
    size_t n_raw;
} raw_tensor;

tg_dtype tgi_onnx_dtype(uint64_t code)
{
    static const tg_dtype of[] = {TG_DTYPE_NONE, TG_DTYPE_F32,  TG_DTYPE_U8,  TG_DTYPE_I8,
                                  TG_DTYPE_U16,  TG_DTYPE_I16,  TG_DTYPE_I32, TG_DTYPE_I64,
                                  TG_DTYPE_NONE, TG_DTYPE_BOOL, TG_DTYPE_F16, TG_DTYPE_F64,
                                  TG_DTYPE_U32,  TG_DTYPE_U64};
    return code < sizeof of / sizeof of[0] ? of[code] : TG_DTYPE_NONE;
}

tg_status tgi_onnx_map_fd(tgi_onnx_priv *p, int fd, const char *location, tgi_onnx_map **out,
                          tgi_err *err)
{
    struct stat sb;
    void *data = MAP_FAILED;
    tgi_onnx_map *m = NULL;
    tgi_stamp was = {0};
    tg_status st = TG_OK;
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode) || tgi_stamp_fd(fd, &was) != 0)
        st = tgi_fail(err, TG_E_FORMAT, "not a regular file");
    else if (sb.st_size <= 0)
        st = tgi_fail(err, TG_E_FORMAT, "the file is empty");
    else if (location && sb.st_nlink != 1)
        st = tgi_fail(err, TG_E_FORMAT,
                      "external data \"%s\" is a hard link; copy the file instead", location);
    else if (p->n_maps >= MAX_MAPS)
        st = tgi_fail(err, TG_E_FORMAT, "more than %d external data files", MAX_MAPS);
    else if (!(m = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof *m)))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for a mapping");
    else if ((data = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) ==
             MAP_FAILED)
        st = tgi_fail(err, errno == ENOMEM ? TG_E_NOMEM : TG_E_IO, "mmap of %lld bytes: %s",
                      (long long)sb.st_size, strerror(errno));
    close(fd);
    if (st != TG_OK) {
        tgi_free(m);
        return st;
    }
    *m = (tgi_onnx_map){.next = p->maps,
                        .location = location,
                        .data = data,
                        .size = (size_t)sb.st_size,
                        .was = was};
    p->maps = m;
    p->n_maps++;
    *out = m;
    return TG_OK;
}

void tgi_onnx_unmap_all(tgi_onnx_priv *p)
{
    while (p->maps) {
        tgi_onnx_map *m = p->maps;
        p->maps = m->next;
        munmap((void *)(uintptr_t)m->data, m->size);
        tgi_free(m);
    }
}

/* The path of a mapped file; "" when it is too long. */
static void path_of(const tgi_onnx_priv *p, const tgi_onnx_map *m, char *buf, size_t cap)
{
    const char *slash = strrchr(p->path, '/');
    const int folder = slash ? (int)(slash + 1 - p->path) : 0;
    const int n = m->location ? snprintf(buf, cap, "%.*s%s", folder, p->path, m->location)
                              : snprintf(buf, cap, "%s", p->path);
    if (n < 0 || (size_t)n >= cap)
        buf[0] = 0;
}

/* Size and time of change of what we mapped; of a file whose name another has, as they were. */
static tgi_stamp state_now(const tgi_onnx_priv *p, const tgi_onnx_map *m, char *path,
                           size_t cap)
{
    tgi_stamp is;
    path_of(p, m, path, cap);
    return tgi_stamp_path(path, &is) == 0 && tgi_stamp_same_file(&is, &m->was) ? is : m->was;
}

int tgi_onnx_part_at(const tgi_onnx_model *model, int i, tgi_onnx_part *out)
{
    const tgi_onnx_priv *p = model->priv_;
    const tgi_onnx_map *m = p->path ? p->maps : NULL;
    while (m && i-- > 0)
        m = m->next;
    if (m)
        *out = (tgi_onnx_part){m->location, m->was, m->sum};
    return m != NULL;
}

void tgi_onnx_sum(const tgi_onnx_model *model)
{
    const tgi_onnx_priv *p = model->priv_;
    char path[PATH_MAX];
    for (tgi_onnx_map *m = p->path ? p->maps : NULL; m; m = m->next) {
        if (m->summed)
            continue;
        m->sum = tgi_fnv(TGI_FNV_BEGIN, m->data, m->size);
        const tgi_stamp is = state_now(p, m, path, sizeof path);
        m->summed = tgi_stamp_same_state(&is, &m->was);
    }
}

/* Only its time of change is another: somebody touched it, or copied it over itself. */
static int bytes_same(tgi_onnx_map *m, const tgi_stamp *is)
{
    if (!m->summed || is->size != m->was.size ||
        tgi_fnv(TGI_FNV_BEGIN, m->data, m->size) != m->sum)
        return 0;
    m->was = *is;
    return 1;
}

tg_status tgi_onnx_unchanged(const tgi_onnx_model *model, tgi_err *err)
{
    const tgi_onnx_priv *p = model->priv_;
    char path[PATH_MAX];
    for (tgi_onnx_map *m = p->path ? p->maps : NULL; m; m = m->next) {
        const tgi_stamp is = state_now(p, m, path, sizeof path);
        if (tgi_stamp_same_state(&is, &m->was) || bytes_same(m, &is))
            continue;
        return tgi_fail(err, TG_E_FORMAT,
                        "%s was changed while it was read (%lld bytes, then %lld): the same "
                        "command starts again; give a new version of a model another name, or "
                        "move it over the old one",
                        path, (long long)m->was.size, (long long)is.size);
    }
    return TG_OK;
}

tg_status tgi_onnx_more(tgi_onnx_priv *p, size_t n, tgi_err *err)
{
    enum { MAX_ITEMS = 1000000 };
    if (n > MAX_ITEMS || p->n_items > MAX_ITEMS - n)
        return tgi_fail(err, TG_E_FORMAT, "the model holds more than %d parts", MAX_ITEMS);
    p->n_items += n;
    return TG_OK;
}

/* ---- External files ---------------------------------------------------------------------- */

static tg_status bad_path(const char *location, const char *why, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT,
                    "external data location \"%s\" %s; it must name a file inside the model's "
                    "folder",
                    location, why);
}

/* Open `location` below the model's folder without ever leaving it. */
static tg_status open_inside(const tgi_onnx_priv *p, const char *location, int *out,
                             tgi_err *err)
{
    char part[256];
    if (location[0] == '/' || location[0] == '\\' || !location[0])
        return bad_path(location, "is absolute or empty", err);
    int dir = dup(p->dir_fd);
    for (const char *s = location;;) {
        const size_t n = strcspn(s, "/");
        const int last = s[n] == 0;
        if (dir < 0)
            return tgi_fail(err, TG_E_IO, "external data \"%s\": %s", location,
                            strerror(errno));
        if (n == 0 || n >= sizeof part || (n == 2 && memcmp(s, "..", 2) == 0)) {
            close(dir);
            return bad_path(location, "has an empty, overlong or \"..\" component", err);
        }
        memcpy(part, s, n);
        part[n] = 0;
        /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
        const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
        const int fd = openat(dir, part, flags);
        const int e = errno;
        close(dir);
        if (fd < 0 && e == ELOOP)
            return bad_path(location, "goes through a symbolic link", err);
        if (fd < 0)
            return tgi_fail(err, TG_E_FORMAT, "external data \"%s\", which the model needs: %s",
                            location, strerror(e));
        if (last) {
            *out = fd;
            return TG_OK;
        }
        dir = fd;
        s += n + 1;
    }
}

static tg_status find_map(tgi_onnx_priv *p, const char *location, tgi_onnx_map **out,
                          tgi_err *err)
{
    int fd = -1;
    for (tgi_onnx_map *m = p->maps; m; m = m->next)
        if (m->location && strcmp(m->location, location) == 0) {
            *out = m;
            return TG_OK;
        }
    TGI_TRY(open_inside(p, location, &fd, err));
    return tgi_onnx_map_fd(p, fd, location, out, err);
}

/* Decimal digits of a BYTES field; 0 when it is anything else. */
static int digits(const tgi_field *f, uint64_t *out)
{
    uint64_t v = 0;
    if (f->n == 0 || f->n > 19)
        return 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->p[i] < '0' || f->p[i] > '9')
            return 0;
        v = v * 10 + (uint64_t)(f->p[i] - '0');
    }
    *out = v;
    return 1;
}

typedef struct external {
    const char *location;
    uint64_t offset, length;
    int has_length;
} external;

/* One {key, value} pair of external_data. */
static tg_status read_pair(tgi_onnx_priv *p, const tgi_field *entry, external *x, tgi_err *err)
{
    tgi_wire w = tgi_wire_in(entry);
    tgi_field f, key = {0}, val = {0};
    int r;
    while ((r = tgi_wire_next(&w, &f)) > 0) {
        if (f.num == 1)
            key = f;
        if (f.num == 2)
            val = f;
    }
    if (r < 0 || key.type != TGI_WIRE_BYTES || val.type != TGI_WIRE_BYTES)
        return tgi_fail(err, TG_E_FORMAT, "malformed external data entry");
#define IS(s) (key.n == sizeof s - 1 && memcmp(key.p, s, sizeof s - 1) == 0)
    if (IS("location")) {
        x->location = tgi_onnx_text(&p->arena, &val, err);
        return x->location ? TG_OK : err ? err->code : TG_E_FORMAT;
    }
    if (IS("offset") && !digits(&val, &x->offset))
        return tgi_fail(err, TG_E_FORMAT, "external data offset is not a number");
    if (IS("length") && !(x->has_length = digits(&val, &x->length)))
        return tgi_fail(err, TG_E_FORMAT, "external data length is not a number");
#undef IS
    return TG_OK; /* checksum and unknown keys carry nothing we need */
}

static tg_status read_external(tgi_onnx_priv *p, raw_tensor *t, size_t bytes, tgi_err *err)
{
    external x = {0};
    tgi_wire w = t->msg;
    tgi_field f;
    tgi_onnx_map *m;
    if (p->dir_fd < 0)
        return tgi_fail(err, TG_E_UNSUPPORTED, "external data in a model without a folder");
    while (tgi_wire_next(&w, &f) > 0)
        if (f.num == F_EXTERNAL && f.type == TGI_WIRE_BYTES)
            TGI_TRY(read_pair(p, &f, &x, err));
    if (!x.location)
        return tgi_fail(err, TG_E_FORMAT, "external data without a location");
    TGI_TRY(find_map(p, x.location, &m, err));
    if (x.offset > m->size || bytes > m->size - x.offset)
        return tgi_fail(err, TG_E_FORMAT,
                        "external data \"%s\": %zu bytes at offset %llu, but it has %zu",
                        x.location, bytes, (unsigned long long)x.offset, m->size);
    if (x.has_length && x.length != bytes)
        return tgi_fail(err, TG_E_FORMAT, "external data \"%s\": length %llu, expected %zu",
                        x.location, (unsigned long long)x.length, bytes);
    t->raw = m->data + x.offset;
    t->n_raw = bytes;
    return TG_OK;
}

/* ---- Typed lists ------------------------------------------------------------------------- */

/* Which list holds elements of this type, and how wide its fixed encoding is (0: varints). */
static uint32_t list_of(tg_dtype t, int *width)
{
    *width = 0;
    switch (t) {
    case TG_DTYPE_F32:
        *width = 4;
        return F_FLOATS;
    case TG_DTYPE_F64:
        *width = 8;
        return F_DOUBLES;
    case TG_DTYPE_I64:
        return F_INT64S;
    case TG_DTYPE_U32:
    case TG_DTYPE_U64:
        return F_UINT64S;
    default:
        return F_INT32S; /* half floats as their 16 bits, too */
    }
}

/* Append the elements of one list field (packed or single); 0 when malformed or too many. */
static int append(const tgi_field *f, int width, size_t size, uint8_t *dst, size_t cap,
                  size_t *at)
{
    tgi_wire w = tgi_wire_in(f);
    uint64_t v;
    if (f->type != TGI_WIRE_BYTES) {
        if (f->type != (width == 4   ? TGI_WIRE_32
                        : width == 8 ? TGI_WIRE_64
                                     : TGI_WIRE_VARINT) ||
            *at + size > cap)
            return 0;
        memcpy(dst + *at, &f->v, size); /* little-endian hosts only, as everywhere here */
        *at += size;
        return 1;
    }
    if (width) {
        if (f->n % (size_t)width || f->n > cap - *at)
            return 0;
        if (f->n)
            memcpy(dst + *at, f->p, f->n);
        *at += f->n;
        return 1;
    }
    while (w.p < w.end) {
        if (!tgi_wire_varint(&w, &v) || *at + size > cap)
            return 0;
        memcpy(dst + *at, &v, size);
        *at += size;
    }
    return 1;
}

static tg_status read_list(tgi_onnx_priv *p, const raw_tensor *t, size_t bytes,
                           tgi_onnx_tensor *out, tgi_err *err)
{
    int width;
    const size_t size = tgi_dtype_size(out->desc.dtype);
    const uint32_t num = list_of(out->desc.dtype, &width);
    tgi_wire w = t->msg;
    tgi_field f;
    size_t held = 0, at = 0;
    while (tgi_wire_next(&w, &f) > 0)
        if (f.num == num)
            held += f.type == TGI_WIRE_BYTES ? f.n : 1;
    if (bytes / size > held) /* every element takes at least a byte of the file */
        return tgi_fail(err, TG_E_FORMAT,
                        "tensor \"%s\": %zu elements declared, data for %zu "
                        "at most",
                        out->name, bytes / size, held);
    uint8_t *dst = tgi_onnx_alloc(&p->arena, bytes, 1, err);
    if (!dst)
        return err ? err->code : TG_E_NOMEM;
    for (w = t->msg; tgi_wire_next(&w, &f) > 0;)
        if (f.num == num && !append(&f, width, size, dst, bytes, &at))
            return tgi_fail(err, TG_E_FORMAT, "tensor \"%s\": malformed element list",
                            out->name);
    if (at != bytes)
        return tgi_fail(err, TG_E_FORMAT, "tensor \"%s\": %zu bytes of data, dims ask for %zu",
                        out->name, at, bytes);
    out->data = dst;
    return TG_OK;
}

/* ---- The message ------------------------------------------------------------------------- */

static tg_status add_dim(tgi_desc *d, uint64_t v, tgi_err *err)
{
    if (d->rank >= TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a tensor has more than %d axes", TGI_MAX_RANK);
    if (v > INT64_MAX)
        return tgi_fail(err, TG_E_FORMAT, "a tensor has a negative extent");
    d->dim[d->rank++] = (int64_t)v;
    return TG_OK;
}

static tg_status read_dims(const tgi_field *f, tgi_desc *d, tgi_err *err)
{
    tgi_wire w = tgi_wire_in(f);
    uint64_t v;
    if (f->type == TGI_WIRE_VARINT)
        return add_dim(d, f->v, err);
    if (f->type != TGI_WIRE_BYTES)
        return tgi_fail(err, TG_E_FORMAT, "malformed tensor dims");
    while (w.p < w.end) {
        if (!tgi_wire_varint(&w, &v))
            return tgi_fail(err, TG_E_FORMAT, "malformed tensor dims");
        TGI_TRY(add_dim(d, v, err));
    }
    return TG_OK;
}

/* Everything but the elements. */
static tg_status read_head(tgi_onnx_priv *p, raw_tensor *t, tgi_onnx_tensor *out, tgi_err *err)
{
    tgi_wire w = t->msg;
    tgi_field f;
    int r;
    out->name = "";
    while ((r = tgi_wire_next(&w, &f)) > 0) {
        if (f.num == F_DIMS)
            TGI_TRY(read_dims(&f, &out->desc, err));
        else if (f.num == F_TYPE && f.type == TGI_WIRE_VARINT)
            t->type_code = f.v;
        else if (f.num == F_NAME && !(out->name = tgi_onnx_text(&p->arena, &f, err)))
            return err ? err->code : TG_E_FORMAT;
        else if (f.num == F_LOCATION && f.type == TGI_WIRE_VARINT)
            t->external = f.v == 1;
        else if (f.num == F_SEGMENT)
            return tgi_fail(err, TG_E_UNSUPPORTED, "a tensor stored in segments");
        else if (f.num == F_RAW && f.type == TGI_WIRE_BYTES) {
            t->has_raw = 1;
            t->raw = f.p;
            t->n_raw = f.n;
        }
    }
    if (r < 0)
        return tgi_fail(err, TG_E_FORMAT, "malformed tensor message");
    return TG_OK;
}

tg_status tgi_onnx_read_tensor(tgi_onnx_priv *p, const tgi_field *f, tgi_onnx_tensor *out,
                               tgi_err *err)
{
    raw_tensor t = {.msg = tgi_wire_in(f)};
    int64_t count;
    size_t bytes;
    *out = (tgi_onnx_tensor){0};
    if (f->type != TGI_WIRE_BYTES)
        return tgi_fail(err, TG_E_FORMAT, "malformed tensor message");
    TGI_TRY(tgi_onnx_more(p, 1, err));
    TGI_TRY(read_head(p, &t, out, err));
    out->desc.dtype = tgi_onnx_dtype(t.type_code);
    if (out->desc.dtype == TG_DTYPE_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED, "tensor \"%s\" has element type %llu", out->name,
                        (unsigned long long)t.type_code);
    if (!tgi_desc_count(&out->desc, &count) ||
        !tgi_mul_ok((size_t)count, tgi_dtype_size(out->desc.dtype), &bytes))
        return tgi_fail(err, TG_E_FORMAT, "tensor \"%s\": its extents overflow", out->name);
    out->bytes = bytes;
    if (t.external)
        TGI_TRY(read_external(p, &t, bytes, err));
    else if (!t.has_raw)
        return read_list(p, &t, bytes, out, err);
    if (t.n_raw != bytes)
        return tgi_fail(err, TG_E_FORMAT, "tensor \"%s\": %zu bytes of data, dims ask for %zu",
                        out->name, t.n_raw, bytes);
    out->data = t.raw;
    return TG_OK;
}
