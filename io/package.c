/* package.c - see package.h. */
#include "io/package.h"

#include "engine/base/mem.h"
#include "io/zip_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAME 1024

static const char *const descriptions[] = {"rdf.yaml", "bioimageio.yaml"};

struct tgi_package {
    char *path;   /* as it was named */
    char *folder; /* that holds the description, "dir/" or ""; NULL: an archive */
    char *text;   /* the description's name for people */
    char *below;  /* "dir/" or "": the folder of the archive that holds the description */
    char sum[TGI_SHA256_TEXT];
    const uint8_t *bytes; /* of the archive, mapped */
    size_t n_bytes;
    tgi_zip *zip;
    tgi_yaml_doc *doc;
};

/* ---- Names ------------------------------------------------------------------------------- */

static int ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);
    return n > k && strcasecmp(path + n - k, end) == 0;
}

static int is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int tgi_package_named(const char *path)
{
    return ends_in(path, ".zip") || ends_in(path, ".yaml") || ends_in(path, ".yml") ||
           is_folder(path);
}

int tgi_package_file(const char *path, int i, char *out, size_t cap)
{
    const size_t n = strlen(path);
    if (i >= (int)(sizeof descriptions / sizeof descriptions[0]) || !is_folder(path))
        return 0;
    return (size_t)snprintf(out, cap, "%s%s%s", path, n && path[n - 1] == '/' ? "" : "/",
                            descriptions[i]) < cap;
}

int tgi_package_is(const char *path)
{
    char name[4096];
    if (!is_folder(path))
        return tgi_package_named(path);
    for (int i = 0; tgi_package_file(path, i, name, sizeof name); i++)
        if (access(name, F_OK) == 0)
            return 1;
    return 0;
}

static tg_status leads_out(const char *source, const char *why, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT,
                    "\"%.200s\" %s: what a description names is a file inside its package",
                    source, why);
}

tg_status tgi_package_inside(const char *source, const char **name, tgi_err *err)
{
    const char *s = source;
    if (strstr(s, "://"))
        return leads_out(source, "is a URL", err);
    while (s[0] == '.' && s[1] == '/')
        s += 2;
    if (!*s || *s == '/' || strchr(s, '\\') || strchr(s, ':'))
        return leads_out(source, "is empty, absolute or no plain path", err);
    if (strlen(s) >= MAX_NAME)
        return leads_out(source, "is too long", err);
    *name = s;
    for (;;) {
        const size_t n = strcspn(s, "/");
        if (n == 0 || n > 255 || (n <= 2 && strncmp(s, "..", n) == 0))
            return leads_out(source, "has an empty, overlong, \".\" or \"..\" part", err);
        s += n;
        if (!*s++)
            return TG_OK;
    }
}

/* ---- Folders ----------------------------------------------------------------------------- */

/* Opens `name` below the folder; symbolic links are not followed. */
static tg_status open_below(const char *folder, const char *name, int *out, tgi_err *err)
{
    char part[256];
    int dir = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *s = name; dir >= 0;) {
        const size_t n = strcspn(s, "/");
        const int last = s[n] == 0;
        memcpy(part, s, n);
        part[n] = 0;
        /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
        const int fd = openat(
            dir, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY));
        const int e = errno;
        close(dir);
        errno = e;
        dir = fd;
        if (last)
            break;
        s += n + 1;
    }
    if (dir < 0 && (errno == ELOOP || errno == ENOTDIR))
        return leads_out(name, "goes through a symbolic link or a file", err);
    if (dir < 0)
        return tgi_fail(err, errno == ENOENT ? TG_E_NOT_FOUND : TG_E_IO, "%s%s: %s", folder,
                        name, strerror(errno));
    *out = dir;
    return TG_OK;
}

static tg_status read_all(int fd, const char *what, char **out, size_t *n, tgi_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return tgi_fail(err, TG_E_FORMAT, "%s: no regular file", what);
    if (st.st_size > (off_t)TGI_YAML_BYTES)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: %lld bytes; descriptions of at most %zu are read", what,
                        (long long)st.st_size, TGI_YAML_BYTES);
    char *text = tgi_malloc(TGI_TAG_MISC, (size_t)st.st_size + 1);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %s", what);
    size_t at = 0;
    for (ssize_t k = 1; k > 0 && at < (size_t)st.st_size;) {
        k = pread(fd, text + at, (size_t)st.st_size - at, (off_t)at);
        at += k > 0 ? (size_t)k : 0;
    }
    *out = text;
    *n = at;
    return TG_OK;
}

/* ---- The description --------------------------------------------------------------------- */

static tg_status take_text(tgi_package *p, const char *text, size_t n, tgi_err *err)
{
    tgi_sha256 h;
    tgi_sha256_begin(&h);
    tgi_sha256_add(&h, text, n);
    tgi_sha256_end(&h, p->sum);
    return tgi_yaml_parse(text, n, p->text, &p->doc, err);
}

static tg_status name_it(tgi_package *p, const char *folder, const char *name, tgi_err *err)
{
    char text[4096];
    if (snprintf(text, sizeof text, "%s%s", folder, name) >= (int)sizeof text)
        return tgi_fail(err, TG_E_ARG, "a path that is too long");
    p->text = tgi_strdup(TGI_TAG_MISC, text);
    return p->text ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a path");
}

static tg_status read_file(tgi_package *p, int fd, tgi_err *err)
{
    char *text = NULL;
    size_t n = 0;
    tg_status st = read_all(fd, p->text, &text, &n, err);
    close(fd);
    if (st == TG_OK)
        st = take_text(p, text, n, err);
    tgi_free(text);
    return st;
}

static tg_status two_of_them(const char *path, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT,
                    "%s holds both %s and %s: name the one that is meant, or remove the other",
                    path, descriptions[0], descriptions[1]);
}

static tg_status none_there(const char *path, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT,
                    "%s holds no description (%s or %s): name the ONNX file itself, or a "
                    "bioimage.io package",
                    path, descriptions[0], descriptions[1]);
}

static tg_status open_folder(tgi_package *p, tgi_err *err)
{
    char folder[4096];
    const size_t n = strlen(p->path);
    int found = -1;
    struct stat st;
    snprintf(folder, sizeof folder, "%s%s", p->path, p->path[n - 1] == '/' ? "" : "/");
    char name[4096];
    for (int i = 0; tgi_package_file(p->path, i, name, sizeof name); i++) {
        if (lstat(name, &st) != 0)
            continue;
        if (found >= 0)
            return two_of_them(p->path, err);
        found = i;
    }
    if (found < 0)
        return none_there(p->path, err);
    if (!(p->folder = tgi_strdup(TGI_TAG_MISC, folder)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
    TGI_TRY(name_it(p, folder, descriptions[found], err));
    int fd;
    TGI_TRY(open_below(folder, descriptions[found], &fd, err));
    return read_file(p, fd, err);
}

static tg_status open_named(tgi_package *p, tgi_err *err)
{
    char folder[4096];
    const char *slash = strrchr(p->path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - p->path) + 1 : 0, p->path);
    if (!(p->folder = tgi_strdup(TGI_TAG_MISC, folder)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
    TGI_TRY(name_it(p, p->path, "", err));
    const int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", p->path, strerror(errno));
    return read_file(p, fd, err);
}

/* ---- Archives ---------------------------------------------------------------------------- */

static tg_status map_archive(tgi_package *p, tgi_err *err)
{
    struct stat st;
    const int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", p->path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
        close(fd);
        return tgi_fail(err, TG_E_FORMAT, "%s: no regular file, or an empty one", p->path);
    }
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int e = errno;
    close(fd);
    if (at == MAP_FAILED)
        return tgi_fail(err, TG_E_IO, "%s: %s", p->path, strerror(e));
    p->bytes = at;
    p->n_bytes = (size_t)st.st_size;
    return TG_OK;
}

/* Nothing is unpacked to names, but an archive that has such names was made to do harm. */
static tg_status check_names(const tgi_zip *z, tgi_err *err)
{
    const char *name, *inside;
    char folder[MAX_NAME];
    for (int64_t i = 0; (name = tgi_zip_name(z, i)); i++) {
        const size_t n = strlen(name);
        if (n > 1 && n < sizeof folder && name[n - 1] == '/') { /* an entry of a folder */
            memcpy(folder, name, n - 1);
            folder[n - 1] = 0;
            name = folder;
        }
        TGI_TRY(tgi_package_inside(name, &inside, err));
    }
    return TG_OK;
}

static tg_status read_record(tgi_package *p, int64_t i, tgi_err *err)
{
    const tgi_zip_record *r;
    TGI_TRY(tgi_zip_locate(p->zip, i, &r, err));
    if (r->bytes > TGI_YAML_BYTES)
        return tgi_fail(err, TG_E_FORMAT,
                        "\"%s\" has %llu bytes; descriptions of at most %zu are read", r->name,
                        (unsigned long long)r->bytes, TGI_YAML_BYTES);
    const size_t n = (size_t)r->bytes;
    char *text = tgi_malloc(TGI_TAG_MISC, n + 1);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for \"%s\"", r->name);
    tg_status st = tgi_zip_read(p->zip, i, 0, text, n, err);
    if (st == TG_OK)
        st = take_text(p, text, n, err);
    tgi_free(text);
    return st;
}

/* What a program for archives adds to them, not their maker. */
static int is_extra(const char *name)
{
    return strncmp(name, "__MACOSX/", 9) == 0;
}

/* The one folder that all of the archive lies in, "dir/"; "": there is none. */
static void only_folder(const tgi_zip *z, char out[MAX_NAME])
{
    const char *name;
    size_t n = 0;
    out[0] = 0;
    for (int64_t i = 0; (name = tgi_zip_name(z, i)); i++) {
        if (is_extra(name))
            continue;
        if (!n) {
            n = strcspn(name, "/") + 1;
            snprintf(out, MAX_NAME, "%.*s", name[n - 1] ? (int)n : 0, name);
        }
        if (!*out || strncmp(name, out, n) != 0) {
            out[0] = 0;
            return;
        }
    }
}

static int64_t find_below(const tgi_package *p, const char *name)
{
    char full[2 * MAX_NAME];
    snprintf(full, sizeof full, "%s%s", p->below, name);
    return tgi_zip_find(p->zip, full);
}

static tg_status find_description(const tgi_package *p, int *found, tgi_err *err)
{
    *found = -1;
    for (int i = 0; i < 2; i++) {
        if (find_below(p, descriptions[i]) < 0)
            continue;
        if (*found >= 0)
            return two_of_them("it", err);
        *found = i;
    }
    return TG_OK;
}

static tg_status set_below(tgi_package *p, const char *folder, tgi_err *err)
{
    tgi_free(p->below);
    p->below = tgi_strdup(TGI_TAG_MISC, folder);
    return p->below ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a path");
}

/* At the top, or in the one folder that was packed. */
static tg_status open_archive(tgi_package *p, tgi_err *err)
{
    char inside[2 * MAX_NAME], folder[MAX_NAME];
    int found;
    TGI_TRY(map_archive(p, err));
    TGI_TRY(tgi_zip_open(p->bytes, p->n_bytes, &p->zip, err));
    TGI_TRY(check_names(p->zip, err));
    TGI_TRY(set_below(p, "", err));
    TGI_TRY(find_description(p, &found, err));
    if (found < 0) {
        only_folder(p->zip, folder);
        TGI_TRY(set_below(p, folder, err));
        TGI_TRY(find_description(p, &found, err));
    }
    if (found < 0)
        return none_there("it", err);
    snprintf(inside, sizeof inside, ": %s%s", p->below, descriptions[found]);
    TGI_TRY(name_it(p, p->path, inside, err));
    return read_record(p, find_below(p, descriptions[found]), err);
}

tg_status tgi_package_open(const char *path, tgi_package **out, tgi_err *err)
{
    tgi_package *p = tgi_calloc(TGI_TAG_MISC, 1, sizeof *p);
    if (!p || !(p->path = tgi_strdup(TGI_TAG_MISC, path))) {
        tgi_free(p);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a package");
    }
    tgi_err e = {0};
    const int archive = !is_folder(path) && ends_in(path, ".zip");
    const tg_status st = archive           ? open_archive(p, &e)
                         : is_folder(path) ? open_folder(p, &e)
                                           : open_named(p, &e);
    if (st != TG_OK) {
        tgi_package_close(&p);
        return strncmp(e.text, path, strlen(path)) == 0
                   ? tgi_fail(err, st, "%s", e.text)
                   : tgi_fail(err, st, "%s: %s", path, e.text);
    }
    *out = p;
    return TG_OK;
}

void tgi_package_close(tgi_package **pp)
{
    tgi_package *p = pp ? *pp : NULL;
    if (!p)
        return;
    tgi_yaml_free(&p->doc);
    tgi_zip_close(&p->zip);
    if (p->bytes)
        munmap((void *)(uintptr_t)p->bytes, p->n_bytes);
    tgi_free(p->path);
    tgi_free(p->folder);
    tgi_free(p->below);
    tgi_free(p->text);
    tgi_free(p);
    *pp = NULL;
}

const tgi_yaml *tgi_package_says(const tgi_package *p)
{
    return tgi_yaml_root(p->doc);
}

const char *tgi_package_text(const tgi_package *p)
{
    return p->text;
}

const char *tgi_package_sum(const tgi_package *p)
{
    return p->sum;
}

const char *tgi_package_folder(const tgi_package *p)
{
    return p->folder;
}

/* ---- What it names ----------------------------------------------------------------------- */

static tg_status compare(const char *name, const char *said, const char *is, tgi_err *err)
{
    return strcasecmp(said, is) == 0
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT,
                          "\"%s\" has SHA-256 %.16s..., the description says %.16s...: it is "
                          "another file, or damaged",
                          name, is, said);
}

/* Of the open file, which is closed. */
static tg_status check_file(int fd, const char *name, const char *said, tgi_err *err)
{
    unsigned char some[16384];
    char is[TGI_SHA256_TEXT];
    struct stat st;
    tgi_sha256 h;
    ssize_t n = 0;
    const int regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    tgi_sha256_begin(&h);
    for (off_t at = 0; regular && *said && (n = pread(fd, some, sizeof some, at)) > 0; at += n)
        tgi_sha256_add(&h, some, (size_t)n);
    tgi_sha256_end(&h, is);
    close(fd);
    if (!regular || n < 0)
        return tgi_fail(err, n < 0 ? TG_E_IO : TG_E_FORMAT, "\"%s\": no regular file", name);
    return *said ? compare(name, said, is, err) : TG_OK;
}

static tg_status from_folder(const tgi_package *p, const char *name, const char *sha256,
                             const char *beside, tgi_onnx_model **out, tgi_err *err)
{
    char path[4096 + MAX_NAME];
    int fd;
    tgi_err e = {0};
    tg_status st = open_below(p->folder, name, &fd, &e);
    if (st == TG_E_NOT_FOUND) /* it is the description that is wrong */
        return tgi_fail(err, TG_E_FORMAT, "it names \"%s\", which is not there", name);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", e.text);
    TGI_TRY(check_file(fd, name, sha256, err));
    snprintf(path, sizeof path, "%s%s", p->folder, name);
    (void)beside; /* the ONNX file itself names it, inside its own folder */
    return tgi_onnx_open(path, out, err);
}

static tg_status from_archive(const tgi_package *p, const char *name, const char *sha256,
                              const char *beside, tgi_onnx_model **out, tgi_err *err)
{
    if (*beside)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the weights of \"%s\" lie in another record, \"%.100s\": unpack the "
                        "archive and name the folder",
                        name, beside);
    char full[2 * MAX_NAME];
    if (find_below(p, name) < 0)
        return tgi_fail(err, TG_E_FORMAT, "it names \"%s\", which is not in the archive", name);
    snprintf(full, sizeof full, "%s%s", p->below, name);
    return tgi_onnx_open_record(p->path, full, sha256, out, err);
}

tg_status tgi_package_onnx(const tgi_package *p, const char *source, const char *sha256,
                           const char *beside, tgi_onnx_model **out, tgi_err *err)
{
    const char *name;
    TGI_TRY(tgi_package_inside(source, &name, err));
    return p->folder ? from_folder(p, name, sha256, beside, out, err)
                     : from_archive(p, name, sha256, beside, out, err);
}
