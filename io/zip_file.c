/* zip_file.c - see zip_file.h.
 *
 * libzip reads through a source of ours, which is bytes in memory, and has no call that says where a record lies. It has to
 * ask the source for the first bytes of a record, though, and the place it asks for is that. What it reads there is
 * compared with the bytes in memory, so another way of reading in some version of libzip is a refusal, never wrong data.
 *
 * libzip is opened when an archive is, and closed with the last one: linked with it, every process would hold 450 KiB more, nearly
 * all of them of libcrypto.
 *
 * While the archive is opened the source gives no more than OPEN_BYTES: the directory is held in memory, about eight times as
 * large, so that a file of a million empty records is a refusal, too. */
#include "io/zip_file.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#define OPEN_BYTES ((uint64_t)2 << 20) /* some 25,000 records */
#define MAX_RATIO 100
#define SMALL ((uint64_t)1 << 16) /* unpacked: no bomb, whatever its ratio */
#define LOOK 64

/* ---- The library ------------------------------------------------------------------------- */

#define FUNCTIONS(X)                                                                           \
    X(zip_discard)                                                                             \
    X(zip_error_code_zip)                                                                      \
    X(zip_error_fini)                                                                          \
    X(zip_error_init)                                                                          \
    X(zip_error_set)                                                                           \
    X(zip_error_strerror)                                                                      \
    X(zip_error_to_data)                                                                       \
    X(zip_fclose)                                                                              \
    X(zip_fopen_index)                                                                         \
    X(zip_fread)                                                                               \
    X(zip_get_error)                                                                           \
    X(zip_get_name)                                                                            \
    X(zip_get_num_entries)                                                                     \
    X(zip_open_from_source)                                                                    \
    X(zip_source_free)                                                                         \
    X(zip_source_function_create)                                                              \
    X(zip_source_make_command_bitmap)                                                          \
    X(zip_source_seek_compute_offset)                                                          \
    X(zip_stat_index)                                                                          \
    X(zip_stat_init)

#define MEMBER(name) __typeof__(&name) name;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *dl;
    int users;
    FUNCTIONS(MEMBER)
} lib;

static int find_functions(void)
{
    void *at;
#define FIND(name)                                                                             \
    if (!(at = dlsym(lib.dl, #name)))                                                          \
        return 0;                                                                              \
    memcpy(&lib.name, &at, sizeof at); /* POSIX says that a function may be had from it */
    FUNCTIONS(FIND)
    return 1;
}

static void give_back(void)
{
    pthread_mutex_lock(&lock);
    if (--lib.users == 0) {
        dlclose(lib.dl);
        lib.dl = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static tg_status take(tgi_err *err)
{
    tg_status st = TG_OK;
    pthread_mutex_lock(&lock);
    if (!lib.dl)
        lib.dl = dlopen(TG_LIBZIP, RTLD_NOW | RTLD_LOCAL);
    if (!lib.dl)
        st = tgi_fail(err, TG_E_UNSUPPORTED,
                      "a ZIP archive needs libzip, which cannot be opened: %s", dlerror());
    else if (!lib.users && !find_functions())
        st = tgi_fail(err, TG_E_UNSUPPORTED,
                      "a ZIP archive needs another version of " TG_LIBZIP);
    lib.users += lib.dl != NULL;
    pthread_mutex_unlock(&lock);
    if (st != TG_OK && lib.dl)
        give_back();
    return st;
}

struct tgi_zip {
    const uint8_t *bytes;
    size_t n, at; /* of the source */
    uint64_t allowed;
    size_t asked; /* where libzip read last */
    zip_error_t error;
    zip_t *zip;
    int64_t count;
    tgi_zip_record *record;
    bool *located;
    int64_t *by_name;
};

/* ---- The source -------------------------------------------------------------------------- */

static int64_t refuse(tgi_zip *z, int code)
{
    lib.zip_error_set(&z->error, code, 0);
    return -1;
}

static int64_t source_read(tgi_zip *z, void *dst, uint64_t want)
{
    const uint64_t left = z->n - z->at, n = want < left ? want : left;
    if (n > z->allowed)
        return refuse(z, ZIP_ER_OPNOTSUPP);
    z->allowed -= n;
    z->asked = z->at;
    if (n)
        memcpy(dst, z->bytes + z->at, (size_t)n);
    z->at += (size_t)n;
    return (int64_t)n;
}

static int64_t source_seek(tgi_zip *z, void *args, uint64_t n)
{
    const int64_t to = lib.zip_source_seek_compute_offset(z->at, z->n, args, n, &z->error);
    if (to < 0 || (uint64_t)to > z->n)
        return -1;
    z->at = (size_t)to;
    return 0;
}

static int64_t source_stat(const tgi_zip *z, zip_stat_t *s)
{
    lib.zip_stat_init(s);
    s->size = z->n;
    s->valid |= ZIP_STAT_SIZE;
    return (int64_t)sizeof *s;
}

static zip_int64_t source(void *user, void *data, zip_uint64_t n, zip_source_cmd_t what)
{
    tgi_zip *z = user;
    switch (what) {
    case ZIP_SOURCE_SUPPORTS:
        return lib.zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
            ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, -1);
    case ZIP_SOURCE_OPEN:
        z->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return source_read(z, data, n);
    case ZIP_SOURCE_STAT:
        return source_stat(z, data);
    case ZIP_SOURCE_SEEK:
        return source_seek(z, data, n);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)z->at;
    case ZIP_SOURCE_ERROR:
        return lib.zip_error_to_data(&z->error, data, n);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return refuse(z, ZIP_ER_OPNOTSUPP);
    }
}

/* ---- Opening ----------------------------------------------------------------------------- */

static tg_status no_memory(tgi_err *err)
{
    return tgi_fail(err, TG_E_NOMEM, "no memory for the directory of a ZIP archive");
}

static tg_status failed(zip_error_t *e, const char *what, tgi_err *err)
{
    const int code = lib.zip_error_code_zip(e);
    if (code == ZIP_ER_MEMORY)
        return no_memory(err);
    if (code == ZIP_ER_NOZIP)
        return tgi_fail(err, TG_E_FORMAT,
                        "a ZIP archive that is cut off or damaged: its end has no directory");
    return tgi_fail(err, TG_E_FORMAT, "a ZIP archive that is damaged: %s (%s)",
                    lib.zip_error_strerror(e), what);
}

/* libzip makes room for as many records as the end of 64 bits states, before it reads one. So each place is looked at where
 * it may find such an end. */
static tg_status check_ends(const tgi_zip *z, tgi_err *err)
{
    const size_t tail = 70000, first = z->n > tail ? z->n - tail : 0;
    for (size_t p = first < 20 ? 20 : first; p + 22 <= z->n; p++) {
        if (memcmp(z->bytes + p, "PK\5\6", 4) != 0 ||
            memcmp(z->bytes + p - 20, "PK\6\7", 4) != 0)
            continue;
        const uint64_t at = tgi_load64(z->bytes + p - 12, false);
        if (at > z->n || z->n - at < 56 || memcmp(z->bytes + at, "PK\6\6", 4) != 0)
            continue;
        const uint64_t count = tgi_load64(z->bytes + at + 32, false);
        if (count > OPEN_BYTES / 46)
            return tgi_fail(err, TG_E_FORMAT, "an archive that states %llu records",
                            (unsigned long long)count);
    }
    return TG_OK;
}

static tg_status open_archive(tgi_zip *z, tgi_err *err)
{
    zip_error_t e;
    lib.zip_error_init(&e);
    zip_source_t *s = lib.zip_source_function_create(source, z, &e);
    if (s)
        z->zip = lib.zip_open_from_source(s, ZIP_RDONLY, &e);
    if (s && !z->zip)
        lib.zip_source_free(s);
    const tg_status st = z->zip ? TG_OK
                         : z->allowed < 65536
                             ? tgi_fail(err, TG_E_FORMAT,
                                        "the directory of the archive has more than "
                                        "%llu bytes",
                                        (unsigned long long)OPEN_BYTES)
                             : failed(&e, "its directory", err);
    lib.zip_error_fini(&e);
    return st;
}

static int by_name(const void *a, const void *b, void *z)
{
    const tgi_zip_record *r = ((const tgi_zip *)z)->record;
    return strcmp(r[*(const int64_t *)a].name, r[*(const int64_t *)b].name);
}

static tg_status sort_names(tgi_zip *z, tgi_err *err)
{
    for (int64_t i = 0; i < z->count; i++)
        z->by_name[i] = i;
    qsort_r(z->by_name, (size_t)z->count, sizeof *z->by_name, by_name, z);
    for (int64_t i = 1; i < z->count; i++)
        if (by_name(&z->by_name[i - 1], &z->by_name[i], z) == 0)
            return tgi_fail(err, TG_E_FORMAT, "two records of the archive are called \"%s\"",
                            z->record[z->by_name[i]].name);
    return TG_OK;
}

static tg_status list_records(tgi_zip *z, tgi_err *err)
{
    z->count = lib.zip_get_num_entries(z->zip, 0);
    if (z->count <= 0)
        return tgi_fail(err, TG_E_FORMAT, "a ZIP archive without records");
    z->record = tgi_calloc(TGI_TAG_IO, (size_t)z->count, sizeof *z->record);
    z->located = tgi_calloc(TGI_TAG_IO, (size_t)z->count, sizeof *z->located);
    z->by_name = tgi_calloc(TGI_TAG_IO, (size_t)z->count, sizeof *z->by_name);
    if (!z->record || !z->located || !z->by_name)
        return no_memory(err);
    for (int64_t i = 0; i < z->count; i++)
        if (!(z->record[i].name = lib.zip_get_name(z->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW)))
            return failed(lib.zip_get_error(z->zip), "a name", err);
    return sort_names(z, err);
}

tg_status tgi_zip_open(const uint8_t *bytes, size_t n, tgi_zip **out, tgi_err *err)
{
    tgi_zip *z = tgi_calloc(TGI_TAG_IO, 1, sizeof *z);
    if (!z)
        return no_memory(err);
    if (take(err) != TG_OK) {
        tgi_free(z);
        return err ? err->code : TG_E_UNSUPPORTED;
    }
    z->bytes = bytes;
    z->n = n;
    z->allowed = OPEN_BYTES;
    lib.zip_error_init(&z->error);
    tg_status st = check_ends(z, err);
    if (st == TG_OK)
        st = open_archive(z, err);
    z->allowed = UINT64_MAX;
    if (st == TG_OK)
        st = list_records(z, err);
    if (st != TG_OK) {
        tgi_zip_close(&z);
        return st;
    }
    *out = z;
    return TG_OK;
}

void tgi_zip_close(tgi_zip **out)
{
    tgi_zip *z = out ? *out : NULL;
    if (!z)
        return;
    if (z->zip)
        lib.zip_discard(z->zip);
    lib.zip_error_fini(&z->error);
    tgi_free(z->record);
    tgi_free(z->located);
    tgi_free(z->by_name);
    tgi_free(z);
    give_back();
    *out = NULL;
}

/* ---- Records ----------------------------------------------------------------------------- */

const char *tgi_zip_first(const tgi_zip *z)
{
    return z->count ? z->record[0].name : NULL;
}

const char *tgi_zip_name(const tgi_zip *z, int64_t i)
{
    return i >= 0 && i < z->count ? z->record[i].name : NULL;
}

int64_t tgi_zip_find(const tgi_zip *z, const char *name)
{
    int64_t lo = 0, hi = z->count;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const int c = strcmp(z->record[z->by_name[mid]].name, name);
        if (c == 0)
            return z->by_name[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

static tg_status check_record(const tgi_zip *z, const zip_stat_t *s, const char *name,
                              tgi_err *err)
{
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if ((s->valid & needed) != needed)
        return tgi_fail(err, TG_E_FORMAT, "record \"%s\" has no size", name);
    if ((s->valid & ZIP_STAT_ENCRYPTION_METHOD) && s->encryption_method != ZIP_EM_NONE)
        return tgi_fail(err, TG_E_UNSUPPORTED, "record \"%s\" is encrypted", name);
    if (s->comp_method != ZIP_CM_STORE && s->comp_method != ZIP_CM_DEFLATE)
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "record \"%s\" is packed by method %d; stored ones and deflate are read", name,
            (int)s->comp_method);
    if (s->comp_size > z->n || (s->comp_method == ZIP_CM_STORE && s->size != s->comp_size))
        return tgi_fail(err, TG_E_FORMAT, "record \"%s\" is larger than the archive", name);
    if (s->size > SMALL && s->size / MAX_RATIO > s->comp_size)
        return tgi_fail(err, TG_E_FORMAT,
                        "record \"%s\" unpacks from %llu to %llu bytes, more than %d times",
                        name, (unsigned long long)s->comp_size, (unsigned long long)s->size,
                        MAX_RATIO);
    return TG_OK;
}

/* Where libzip reads the first bytes of a record that is as large as its packed bytes. */
static tg_status find_bytes(tgi_zip *z, int64_t i, tgi_err *err)
{
    uint8_t look[LOOK];
    tgi_zip_record *r = &z->record[i];
    const uint64_t n = r->packed < LOOK ? r->packed : LOOK;
    zip_file_t *f = lib.zip_fopen_index(z->zip, (zip_uint64_t)i, ZIP_FL_COMPRESSED);
    const zip_int64_t got = f ? lib.zip_fread(f, look, n) : -1;
    if (f)
        lib.zip_fclose(f);
    if (got < 0)
        return failed(lib.zip_get_error(z->zip), r->name, err);
    r->at = z->asked;
    if ((uint64_t)got != n || r->at > z->n || r->packed > z->n - r->at ||
        memcmp(look, z->bytes + r->at, (size_t)n) != 0)
        return tgi_fail(err, TG_E_FORMAT, "record \"%s\" does not lie in the archive", r->name);
    return TG_OK;
}

tg_status tgi_zip_locate(tgi_zip *z, int64_t i, const tgi_zip_record **out, tgi_err *err)
{
    tgi_zip_record *r = &z->record[i];
    zip_stat_t s;
    *out = r;
    if (z->located[i])
        return TG_OK;
    if (lib.zip_stat_index(z->zip, (zip_uint64_t)i, 0, &s) != 0)
        return failed(lib.zip_get_error(z->zip), r->name, err);
    TGI_TRY(check_record(z, &s, r->name, err));
    r->bytes = s.size;
    r->packed = s.comp_size;
    r->stored = s.comp_method == ZIP_CM_STORE;
    if (r->packed)
        TGI_TRY(find_bytes(z, i, err));
    z->located[i] = true;
    return TG_OK;
}

uint64_t tgi_zip_unpacked(const tgi_zip *z)
{
    size_t n = 0;
    for (int64_t i = 0; i < z->count; i++)
        if (z->located[i] && !z->record[i].stored)
            n = tgi_sat_add(n, (size_t)z->record[i].bytes);
    return n;
}

static int by_place(const void *a, const void *b, void *z)
{
    const tgi_zip_record *r = ((const tgi_zip *)z)->record;
    const uint64_t p = r[*(const int64_t *)a].at, q = r[*(const int64_t *)b].at;
    return p < q ? -1 : p > q;
}

tg_status tgi_zip_check_apart(const tgi_zip *z, tgi_err *err)
{
    int64_t *order = tgi_calloc(TGI_TAG_IO, (size_t)z->count, sizeof *order);
    int64_t n = 0;
    tg_status st = TG_OK;
    if (!order)
        return no_memory(err);
    for (int64_t i = 0; i < z->count; i++)
        if (z->located[i] && z->record[i].packed)
            order[n++] = i;
    qsort_r(order, (size_t)n, sizeof *order, by_place, (void *)(uintptr_t)z);
    for (int64_t k = 1; k < n && st == TG_OK; k++) {
        const tgi_zip_record *a = &z->record[order[k - 1]], *b = &z->record[order[k]];
        if (a->packed > b->at - a->at)
            st = tgi_fail(err, TG_E_FORMAT, "records \"%s\" and \"%s\" share bytes", a->name,
                          b->name);
    }
    tgi_free(order);
    return st;
}

/* Reads on to `n` bytes, or to the end, where libzip compares the checksum. */
static int read_all(zip_file_t *f, uint8_t *dst, size_t n)
{
    for (size_t done = 0; done < n;) {
        const zip_int64_t k = lib.zip_fread(f, dst + done, n - done);
        if (k <= 0)
            return 0;
        done += (size_t)k;
    }
    return 1;
}

static int skip(zip_file_t *f, uint64_t n)
{
    uint8_t some[4096];
    for (size_t k; n > 0; n -= k) {
        k = n < sizeof some ? (size_t)n : sizeof some;
        if (!read_all(f, some, k))
            return 0;
    }
    return 1;
}

tg_status tgi_zip_check(tgi_zip *z, int64_t i, tgi_err *err)
{
    const tgi_zip_record *r;
    uint8_t more;
    TGI_TRY(tgi_zip_locate(z, i, &r, err));
    zip_file_t *f = lib.zip_fopen_index(z->zip, (zip_uint64_t)i, 0);
    if (!f)
        return failed(lib.zip_get_error(z->zip), r->name, err);
    const int good = skip(f, r->bytes) && lib.zip_fread(f, &more, 1) == 0;
    lib.zip_fclose(f);
    return good ? TG_OK
                : tgi_fail(err, TG_E_FORMAT,
                           "record \"%s\" is damaged: its checksum is another", r->name);
}

tg_status tgi_zip_read(tgi_zip *z, int64_t i, uint64_t from, void *dst, size_t n, tgi_err *err)
{
    const tgi_zip_record *r;
    uint8_t more;
    TGI_TRY(tgi_zip_locate(z, i, &r, err));
    if (from > r->bytes || n > r->bytes - from)
        return tgi_fail(err, TG_E_FORMAT, "record \"%s\" has %llu bytes, not %zu from %llu on",
                        r->name, (unsigned long long)r->bytes, n, (unsigned long long)from);
    zip_file_t *f = lib.zip_fopen_index(z->zip, (zip_uint64_t)i, 0);
    if (!f)
        return failed(lib.zip_get_error(z->zip), r->name, err);
    const int good = skip(f, from) && read_all(f, dst, n) &&
                     (from + n < r->bytes || lib.zip_fread(f, &more, 1) == 0);
    lib.zip_fclose(f);
    return good ? TG_OK
                : tgi_fail(err, TG_E_FORMAT,
                           "record \"%s\" is damaged or shorter than %llu bytes", r->name,
                           (unsigned long long)r->bytes);
}
