/* weights.c - see weights.h: which format a file has, and what all formats share.
 *
 * Rules that keep a hostile file harmless:
 *  1. Names are text of at most 512 bytes, and no two are equal.
 *  2. Each tensor lies inside the file, or inside a record whose unpacked size the container bounds.
 *  3. All tensors together are at most 16 times what the file holds: shared storages and repeated elements (stride 0)
 *     make more tensors than bytes, and somebody is going to have room for them. */
#include "io/weights_inside.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/utf8.h"
#include "io/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TIMES 16
#define NAMES_BYTES ((size_t)16 << 20)

static const tgi_weights_ops *const formats[] = {
    &tgi_pth_ops,
    &tgi_pth_legacy_ops,
    &tgi_safetensors_ops,
};

/* What people have in the place of weights, by the first bytes. */
static const struct {
    const char *bytes, *name;
} foreign[] = {
    {"version https://git-lfs",
     "a pointer of Git LFS, not the file itself: fetch it with git lfs pull"},
    {"<!DOCTYPE", "a page of the web: fetch the file itself"},
    {"<html", "a page of the web: fetch the file itself"},
    {"\x89HDF\r\n", "an HDF5 file (Keras), which is not read"},
    {"GGUF", "a GGUF file, which is not read"},
    {"\x93NUMPY", "an array of numpy, which has no names"},
    {"\x1f\x8b", "compressed with gzip: unpack it first"},
};

/* ---- Opening ----------------------------------------------------------------------------- */

static tg_status refuse(const uint8_t *head, size_t n, tgi_err *err)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const size_t m = strlen(foreign[i].bytes);
        if (m <= n && memcmp(head, foreign[i].bytes, m) == 0)
            return tgi_fail(err, TG_E_FORMAT, "%s", foreign[i].name);
    }
    return tgi_fail(err, TG_E_FORMAT, "neither a .pth file of torch.save nor safetensors");
}

static tg_status map_file(tgi_weights *w, tgi_err *err)
{
    if (w->file.size == 0)
        return tgi_fail(err, TG_E_FORMAT, "the file is empty");
    if (w->file.size > SIZE_MAX / 4)
        return tgi_fail(err, TG_E_FORMAT, "%llu bytes", (unsigned long long)w->file.size);
    void *map = mmap(NULL, (size_t)w->file.size, PROT_READ, MAP_PRIVATE, w->file.fd, 0);
    if (map == MAP_FAILED)
        return tgi_fail(err, errno == ENOMEM ? TG_E_NOMEM : TG_E_IO, "mmap of %llu bytes: %s",
                        (unsigned long long)w->file.size, strerror(errno));
    w->map = map;
    w->size = (size_t)w->file.size;
    return TG_OK;
}

static tg_status find_format(tgi_weights *w, tgi_err *err)
{
    const size_t n = w->size < 64 ? w->size : 64;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i]->probe(w->map, n)) {
            w->ops = formats[i];
            return tgi_untrusted_check(w->ops->fuzzed, w->ops->format, err);
        }
    return refuse(w->map, n, err);
}

static int by_name(const void *a, const void *b, void *w)
{
    const tgi_weight *at = ((const tgi_weights *)w)->at;
    return strcmp(at[*(const int *)a].name, at[*(const int *)b].name);
}

/* Names of a network that was trained on several devices all begin so. */
static void strip_module(tgi_weights *w)
{
    static const char prefix[] = "module.";
    const size_t n = sizeof prefix - 1;
    for (int i = 0; i < w->n; i++)
        if (strncmp(w->at[i].name, prefix, n) != 0 || !w->at[i].name[n])
            return;
    for (int i = 0; i < w->n; i++)
        w->at[i].name += n;
}

static tg_status sort_names(tgi_weights *w, tgi_err *err)
{
    w->by_name = tgi_calloc(TGI_TAG_IO, (size_t)w->n, sizeof *w->by_name);
    if (!w->by_name)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d names", w->n);
    for (int i = 0; i < w->n; i++)
        w->by_name[i] = i;
    qsort_r(w->by_name, (size_t)w->n, sizeof *w->by_name, by_name, w);
    for (int i = 1; i < w->n; i++)
        if (by_name(&w->by_name[i - 1], &w->by_name[i], w) == 0)
            return tgi_fail(err, TG_E_FORMAT, "two tensors are called \"%s\"",
                            w->at[w->by_name[i]].name);
    return TG_OK;
}

static tg_status check_sum_of_bytes(const tgi_weights *w, tgi_err *err)
{
    const size_t held = tgi_sat_add(w->size, (size_t)w->stored_bytes);
    size_t all = 0;
    for (int i = 0; i < w->n; i++)
        all = tgi_sat_add(all, w->at[i].bytes);
    if (all / TIMES > held)
        return tgi_fail(err, TG_E_FORMAT,
                        "the tensors have %zu bytes, more than %d times what the file holds",
                        all, TIMES);
    return TG_OK;
}

static tg_status read_file(tgi_weights *w, tgi_err *err)
{
    TGI_TRY(map_file(w, err));
    TGI_TRY(find_format(w, err));
    TGI_TRY(w->ops->open(w, err));
    if (w->n == 0)
        return tgi_fail(err, TG_E_FORMAT, "the file holds no tensors");
    TGI_TRY(check_sum_of_bytes(w, err));
    strip_module(w);
    return sort_names(w, err);
}

static tg_status open_file(const char *path, tgi_weights *w, tgi_err *err)
{
    TGI_TRY(tgi_rfile_open(path, &w->file, err)); /* what it says names the file */
    w->path = tgi_strdup(TGI_TAG_IO, path);
    const tg_status st =
        w->path ? read_file(w, err) : tgi_fail(err, TG_E_NOMEM, "no memory for its name");
    if (st != TG_OK)
        tgi_err_prefix(err, "%s", path);
    return st;
}

tg_status tgi_weights_open(const char *path, tgi_weights **out, tgi_err *err)
{
    tgi_weights *w = tgi_calloc(TGI_TAG_IO, 1, sizeof *w);
    if (!w)
        return tgi_fail(err, TG_E_NOMEM, "no memory for weights");
    w->file.fd = -1;
    w->arena.limit = NAMES_BYTES;
    const tg_status st = open_file(path, w, err);
    if (st == TG_OK)
        *out = w;
    else
        tgi_weights_close(&w);
    return st;
}

void tgi_weights_close(tgi_weights **out)
{
    tgi_weights *w = out ? *out : NULL;
    if (!w)
        return;
    if (w->ops && w->ops->close)
        w->ops->close(w);
    if (w->map)
        munmap((void *)(uintptr_t)w->map, w->size);
    tgi_rfile_close(&w->file);
    tgi_onnx_arena_free(&w->arena);
    tgi_free(w->at);
    tgi_free(w->place);
    tgi_free(w->by_name);
    tgi_free(w->path);
    tgi_free(w);
    *out = NULL;
}

/* ---- What a format adds ------------------------------------------------------------------ */

static tg_status grow(tgi_weights *w, tgi_err *err)
{
    const int cap = w->cap ? 2 * w->cap : 256;
    if (w->n < w->cap)
        return TG_OK;
    if (w->n >= TGI_WEIGHTS_MAX)
        return tgi_fail(err, TG_E_FORMAT, "more than %d tensors", TGI_WEIGHTS_MAX);
    tgi_weight *at = tgi_realloc_n(TGI_TAG_IO, w->at, (size_t)cap, sizeof *at);
    if (at)
        w->at = at;
    tgi_weight_place *place =
        at ? tgi_realloc_n(TGI_TAG_IO, w->place, (size_t)cap, sizeof *place) : NULL;
    if (!place)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d tensors", cap);
    w->place = place;
    w->cap = cap;
    return TG_OK;
}

static tg_status copy_name(tgi_weights *w, const char *name, size_t n, const char **out,
                           tgi_err *err)
{
    if (n == 0 || n > TGI_WEIGHTS_NAME)
        return tgi_fail(err, TG_E_FORMAT, "a tensor's name has %zu bytes, 1 to %d are read", n,
                        TGI_WEIGHTS_NAME);
    for (size_t i = 0, len; i < n; i += len) {
        len = tgi_utf8_length(name + i, n - i);
        if (len == 0 || (unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return tgi_fail(err, TG_E_FORMAT, "a tensor's name is not text");
    }
    char *s = tgi_onnx_alloc(&w->arena, n + 1, 1, err);
    if (!s)
        return err ? err->code : TG_E_NOMEM;
    memcpy(s, name, n);
    *out = s;
    return TG_OK;
}

/* The strides are those of a row-major array; an extent of 1 has any. */
static bool is_dense(const tgi_desc *d, const int64_t *stride)
{
    int64_t step = 1;
    for (int k = d->rank - 1; k >= 0; k--) {
        if (d->dim[k] != 1 && stride[k] != step)
            return false;
        step *= d->dim[k];
    }
    return true;
}

/* Bytes from the first element to behind the last; false where that overflows. */
static bool span_of(const tgi_desc *d, const int64_t *stride, int64_t count, uint64_t *out)
{
    int64_t last = 0, part;
    for (int k = 0; k < d->rank && count > 0; k++)
        if (stride[k] < 0 || !tgi_mul64_ok(d->dim[k] - 1, stride[k], &part) ||
            !tgi_add64_ok(last, part, &last))
            return false;
    if (!tgi_mul64_ok(count > 0 ? last + 1 : 0, (int64_t)tgi_dtype_size(d->dtype), &part))
        return false;
    *out = (uint64_t)part;
    return true;
}

tg_status tgi_weights_add(tgi_weights *w, const char *name, size_t n_name, const tgi_desc *desc,
                          const tgi_weight_place *place, tgi_err *err)
{
    tgi_weight t = {.desc = *desc};
    tgi_weight_place p = *place;
    int64_t count;
    TGI_TRY(copy_name(w, name, n_name, &t.name, err));
    if (!tgi_desc_count(desc, &count) ||
        !tgi_mul_ok((size_t)count, tgi_dtype_size(desc->dtype), &t.bytes) ||
        !span_of(desc, p.stride, count, &p.span) || t.bytes > SIZE_MAX / 2)
        return tgi_fail(err, TG_E_FORMAT, "\"%s\": its extents overflow", t.name);
    if (p.span > p.room)
        return tgi_fail(err, TG_E_FORMAT,
                        "\"%s\": its elements span %llu bytes, its storage has %llu", t.name,
                        (unsigned long long)p.span, (unsigned long long)p.room);
    if (p.record == TGI_IN_FILE && (p.at > w->size || p.room > w->size - p.at))
        return tgi_fail(err, TG_E_FORMAT,
                        "\"%s\": %llu bytes at %llu lie past the end of the file (%zu)", t.name,
                        (unsigned long long)p.room, (unsigned long long)p.at, w->size);
    p.dense = is_dense(desc, p.stride);
    TGI_TRY(grow(w, err));
    w->at[w->n] = t;
    w->place[w->n++] = p;
    return TG_OK;
}

/* ---- Asking ------------------------------------------------------------------------------ */

void tgi_weights_rest(const tgi_weights *w)
{
    if (w->map)
        (void)madvise((void *)(uintptr_t)w->map, w->size, MADV_DONTNEED);
}

const char *tgi_weights_path(const tgi_weights *w)
{
    return w->path;
}

const char *tgi_weights_format(const tgi_weights *w)
{
    return w->ops->format;
}

int tgi_weights_count(const tgi_weights *w)
{
    return w->n;
}

const tgi_weight *tgi_weights_at(const tgi_weights *w, int i)
{
    return &w->at[i];
}

int tgi_weights_find(const tgi_weights *w, const char *name)
{
    int lo = 0, hi = w->n;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2, i = w->by_name[mid];
        const int c = strcmp(w->at[i].name, name);
        if (c == 0)
            return i;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

void tgi_weights_held(const tgi_weights *w, tgi_held *out)
{
    tgi_rfile_held(&w->file, out);
    out->path = w->path;
}

tg_status tgi_weights_unchanged(const tgi_weights *w, tgi_err *err)
{
    tgi_stamp now;
    if (tgi_stamp_fd(w->file.fd, &now) == 0 && tgi_stamp_same_state(&now, &w->file.was))
        return TG_OK;
    return tgi_fail(
        err, TG_E_FORMAT,
        "%s was changed while it was read: the same command starts again; move a new "
        "version over the old one",
        w->path);
}

/* ---- Elements ---------------------------------------------------------------------------- */

/* Bytes that lie one behind the other in the file, in our byte order, whatever their alignment. */
static bool lies_in_file(const tgi_weights *w, int i)
{
    const tgi_weight_place *p = &w->place[i];
    return p->record == TGI_IN_FILE && p->dense && !p->swap;
}

const void *tgi_weights_mapped(const tgi_weights *w, int i)
{
    const uint8_t *p = w->map + w->place[i].at;
    const size_t size = tgi_dtype_size(w->at[i].desc.dtype);
    return lies_in_file(w, i) && (uintptr_t)p % size == 0 ? p : NULL;
}

/* Elements of `size` bytes from src, where the first one lies, to the dense dst. */
static void gather(const tgi_desc *d, const int64_t *stride, size_t size, const uint8_t *src,
                   uint8_t *dst)
{
    int64_t index[TGI_MAX_RANK] = {0}, at = 0;
    for (;;) {
        memcpy(dst, src + (size_t)at * size, size);
        dst += size;
        int k = d->rank - 1;
        for (; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < d->dim[k])
                break;
            at -= stride[k] * d->dim[k];
            index[k] = 0;
        }
        if (k < 0)
            return;
    }
}

static tg_status read_from(const tgi_weights *w, int i, const uint8_t *src, void *dst)
{
    const tgi_weight *t = &w->at[i];
    const tgi_weight_place *p = &w->place[i];
    const size_t size = tgi_dtype_size(t->desc.dtype);
    if (!p->dense)
        gather(&t->desc, p->stride, size, src, dst);
    else if (src != dst)
        memcpy(dst, src, t->bytes);
    if (p->swap)
        tgi_swap_copy(dst, dst, t->bytes / size, size);
    return TG_OK;
}

tg_status tgi_weights_read(const tgi_weights *w, int i, void *dst, tgi_err *err)
{
    const tgi_weight_place *p = &w->place[i];
    if (w->at[i].bytes == 0)
        return TG_OK;
    if (p->record == TGI_IN_FILE)
        return read_from(w, i, w->map + p->at, dst);
    void *span = p->dense ? dst : tgi_malloc(TGI_TAG_IO, (size_t)p->span);
    tg_status st = span ? w->ops->unpack(w, p->record, p->at, span, (size_t)p->span, err)
                        : tgi_fail(err, TG_E_NOMEM, "no memory for %llu bytes of \"%s\"",
                                   (unsigned long long)p->span, w->at[i].name);
    if (st == TG_OK)
        st = read_from(w, i, span, dst);
    else
        tgi_err_prefix(err, "%s: \"%s\"", w->path, w->at[i].name);
    if (span != dst)
        tgi_free(span);
    return st;
}

/* ---- The sum ----------------------------------------------------------------------------- */

static tg_status sum_one(const tgi_weights *w, int i, tgi_sha256 *h, tgi_err *err)
{
    const tgi_weight *t = &w->at[i];
    uint8_t head[8 * (TGI_MAX_RANK + 1)];
    const char *type = tgi_dtype_name(t->desc.dtype);
    tgi_sha256_add(h, t->name, strlen(t->name) + 1);
    tgi_sha256_add(h, type, strlen(type) + 1);
    tgi_save64(head, (uint64_t)t->desc.rank, false);
    for (int k = 0; k < t->desc.rank; k++)
        tgi_save64(head + 8 * (k + 1), (uint64_t)t->desc.dim[k], false);
    tgi_sha256_add(h, head, 8 * ((size_t)t->desc.rank + 1));
    if (lies_in_file(w, i)) {
        tgi_sha256_add(h, w->map + w->place[i].at, t->bytes);
        return TG_OK;
    }
    void *copy = tgi_malloc(TGI_TAG_IO, t->bytes + 1);
    if (!copy)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes of \"%s\"", t->bytes,
                        t->name);
    const tg_status st = tgi_weights_read(w, i, copy, err);
    if (st == TG_OK)
        tgi_sha256_add(h, copy, t->bytes);
    tgi_free(copy);
    return st;
}

tg_status tgi_weights_sum(const tgi_weights *w, char text[TGI_SHA256_TEXT], tgi_err *err)
{
    tgi_sha256 h;
    tgi_sha256_begin(&h);
    for (int k = 0; k < w->n; k++)
        TGI_TRY(sum_one(w, w->by_name[k], &h, err));
    tgi_sha256_end(&h, text);
    tgi_weights_rest(w);
    return tgi_weights_unchanged(w, err);
}
