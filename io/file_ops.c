/* file_ops.c - see file_ops.h. Source: POSIX.1-2017; Linux fallocate(2), renameat2(2). */
#include "io/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/fs.h> /* RENAME_NOREPLACE */
#include <sys/syscall.h>
#endif

static _Atomic(tgi_file_hook *) the_hook;
static atomic_int env_state; /* 0: not read yet, 1: nothing asked for, 2: active */
static atomic_llong env_left;
static int env_answer;

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* "K", "K:full", "K:kill", "K:torn" as file_ops.h says. */
static void read_env(void)
{
    const char *s = getenv("TEGULA_FAIL_IO");
    char *end = NULL;
    const long long k = s ? strtoll(s, &end, 10) : 0;
    if (k > 0) {
        env_answer = !strcmp(end, ":full")   ? ENOSPC
                     : !strcmp(end, ":kill") ? -2
                     : !strcmp(end, ":torn") ? TGI_FILE_TORN
                                             : EIO;
        atomic_store(&env_left, k);
    }
    atomic_store(&env_state, k > 0 ? 2 : 1);
}

/* What this operation shall suffer: 0, an errno value or TGI_FILE_TORN. */
static int ask(tgi_file_op op, const char *path)
{
    if (!atomic_load(&env_state))
        read_env();
    int answer = 0;
    if (atomic_load(&env_state) == 2 && atomic_fetch_sub(&env_left, 1) == 1)
        answer = env_answer;
    tgi_file_hook *hook = atomic_load(&the_hook);
    if (!answer && hook)
        answer = hook(op, path);
    if (answer == -2 || (answer == TGI_FILE_TORN && op != TGI_FILE_PWRITE))
        die();
    return answer;
}

void tgi_file_set_hook(tgi_file_hook *hook)
{
    atomic_store(&the_hook, hook);
}

static tg_status failed(tgi_err *err, const char *doing, const char *path, int e)
{
    const int full = e == ENOSPC || e == EDQUOT;
    return tgi_fail(err, full ? TG_E_NO_SPACE : TG_E_IO, "%s: %s: %s%s", path, doing,
                    strerror(e), full ? "; make room, then run the same command again" : "");
}

/* Open what is a regular file and no link to one: names of ours can be foreseen, and somebody
 * may have been there before. -1: *e says why, -1 in it that it is no file. */
static int open_regular(const char *path, int flags, int *e)
{
    struct stat st;
    int f;
    do
        f = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0666);
    while (f < 0 && errno == EINTR);
    *e = f < 0 ? errno : 0;
    if (f >= 0 && fstat(f, &st) == 0 && !S_ISREG(st.st_mode)) {
        close(f);
        *e = -1;
        return -1;
    }
    return f;
}

static tg_status cannot_open(const char *path, int create, int e, tgi_err *err)
{
    const char *slash = strrchr(path, '/');
    if (e == -1 || e == ELOOP || e == ENXIO)
        return tgi_fail(err, TG_E_EXISTS,
                        "%s: is %s, which is not written to: remove it, or choose another name",
                        path, e == ELOOP ? "a symbolic link" : "no regular file");
    if (e == ENOSPC || e == EDQUOT || e == EIO)
        return failed(err, "open", path, e);
    if (e == EEXIST)
        return tgi_file_in_the_way(path, err);
    if (e == ENOENT && create)
        return tgi_fail(err, TG_E_EXISTS, "%s: cannot be created: there is no folder %.*s",
                        path, slash ? (int)(slash - path) : 1, slash ? path : ".");
    return tgi_fail(err, create ? TG_E_EXISTS : TG_E_NOT_FOUND, "%s: cannot be %s: %s", path,
                    create ? "created" : "opened", strerror(e));
}

static tg_status open_file(const char *path, int flags, int *fd, tgi_err *err)
{
    int e = ask(TGI_FILE_OPEN, path), f = -1;
    if (!e)
        f = open_regular(path, flags, &e);
    if (e)
        return cannot_open(path, flags & O_CREAT, e, err);
    *fd = f;
    return TG_OK;
}

tg_status tgi_file_open(const char *path, int *fd, tgi_err *err)
{
    return open_file(path, 0, fd, err);
}

tg_status tgi_file_create(const char *path, int *fd, tgi_err *err)
{
    return open_file(path, O_CREAT | O_EXCL, fd, err);
}

/* ---- Names of ours ----------------------------------------------------------------------- */

#define FEWEST 4 /* bytes that tell a file */

/* Does the file begin as this does, as far as the shorter of both goes? */
static int begins(int fd, const void *with, size_t n)
{
    char have[256];
    n = n < sizeof have ? n : sizeof have;
    const ssize_t got = with ? pread(fd, have, n, 0) : 0;
    return got >= (ssize_t)(n < FEWEST ? n : FEWEST) && got > 0 &&
           memcmp(have, with, (size_t)got) == 0;
}

int tgi_bits_differ(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;
    int bits = 0;
    for (size_t i = 0; i < n && bits < 1 << 20; i++)
        for (unsigned x = p[i] ^ q[i]; x; x &= x - 1)
            bits++;
    return bits;
}

/* As this mark, but for few bits? */
static int is_near(int fd, const char *mark, size_t n)
{
    char have[64];
    return n >= 6 && n <= sizeof have && pread(fd, have, n, 0) == (ssize_t)n &&
           tgi_bits_differ(have, mark, n) <= TGI_FEW_BITS;
}

/* One was being replaced by the other, from the front, when the power went. */
static int is_torn(int fd, const char *mark, const void *head, size_t n)
{
    char have[32];
    const size_t all = mark ? strlen(mark) : 0;
    size_t k = 0;
    if (!head || n < all || all > sizeof have || pread(fd, have, all, 0) != (ssize_t)all)
        return 0;
    while (k < all && have[k] == ((const char *)head)[k])
        k++;
    return k > 0 && memcmp(have + k, mark + k, all - k) == 0;
}

static int is_ours(int fd, const tgi_left *l)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink > 1)
        return 0;
    return st.st_size == 0 || begins(fd, l->begins, l->begins ? strlen(l->begins) : 0) ||
           begins(fd, l->head, l->head_bytes) ||
           is_torn(fd, l->begins, l->head, l->head_bytes) ||
           (l->begins && is_near(fd, l->begins, strlen(l->begins))) ||
           (l->known && l->known(fd));
}

int tgi_file_is_ours(const tgi_left *left)
{
    struct stat st;
    if (lstat(left->path, &st))
        return 1;
    const int f = open(left->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const int ours = f >= 0 && is_ours(f, left);
    if (f >= 0)
        close(f);
    return ours;
}

/* Opened to look at, if it is a regular file; else -1. */
static int open_to_look(const char *path)
{
    struct stat st;
    const int f = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (f < 0 || (fstat(f, &st) == 0 && S_ISREG(st.st_mode)))
        return f;
    close(f);
    return -1;
}

int tgi_file_begins(const char *path, const void *with, size_t n)
{
    char have[64];
    const int f = open_to_look(path);
    const int so = f >= 0 && n <= sizeof have && pread(f, have, n, 0) == (ssize_t)n &&
                   memcmp(have, with, n) == 0;
    if (f >= 0)
        close(f);
    return so;
}

int tgi_file_nearly_begins(const char *path, const void *with, size_t n)
{
    const int f = open_to_look(path), so = f >= 0 && is_near(f, with, n);
    if (f >= 0)
        close(f);
    return so;
}

tg_status tgi_file_alone(int fd, const char *path, tgi_err *err)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink > 1
               ? tgi_fail(err, TG_E_EXISTS,
                          "%s: has a second name (a hard link), under which it would change, "
                          "too: put a copy in its place, or remove the other name",
                          path)
               : TG_OK;
}

tg_status tgi_file_in_the_way(const char *path, tgi_err *err)
{
    return tgi_fail(err, TG_E_EXISTS,
                    "%s: is in the way, and not a file that a stopped run left: move it away, "
                    "or choose another output",
                    path);
}

/* 1: `path` still names this open file, which somebody may have renamed or removed. */
static int has_name(int fd, const char *path)
{
    struct stat held, named;
    return !fstat(fd, &held) && !stat(path, &named) && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

/* The holder before us renames or removes the file when it is done; then the one we locked has
 * not this name any more, and another, or none, has: begin again. */
tg_status tgi_file_open_locked(const tgi_left *left, int *fd, tgi_err *err)
{
    for (int tries = 0; tries < 100; tries++) {
        int f = -1;
        TGI_TRY(open_file(left->path, O_CREAT, &f, err));
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        const int e = fcntl(f, F_OFD_SETLK, &lock) ? errno : 0;
        /* A filesystem without locks: run without one, as everything there does. */
        const int none = e == ENOLCK || e == EOPNOTSUPP || e == ENOSYS || e == EINVAL;
        const int held = (!e || none) && has_name(f, left->path);
        if (held && is_ours(f, left)) {
            *fd = f;
            return TG_OK;
        }
        const int second = held && tgi_file_alone(f, left->path, err) != TG_OK;
        close(f);
        if (held)
            return second ? TG_E_EXISTS : tgi_file_in_the_way(left->path, err);
        if (e == EAGAIN || e == EACCES)
            return tgi_fail(err, TG_E_BUSY, "%s: another run is writing this output",
                            left->output);
        if (e && !none)
            return tgi_fail(err, TG_E_IO, "%s: lock: %s", left->path, strerror(e));
    }
    return tgi_fail(err, TG_E_BUSY, "%s: other runs keep coming and going", left->path);
}

/* Filesystems without O_TMPFILE: a name nobody else has, removed at once. */
static int open_and_unlink(const char *folder)
{
    char name[PATH_MAX];
    const int n = snprintf(name, sizeof name, "%s/.tegula-scratch-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

tg_status tgi_file_open_unnamed(const char *folder, int *fd, tgi_err *err)
{
    int e = ask(TGI_FILE_OPEN, folder);
    int f = -1;
    if (!e) {
#ifdef O_TMPFILE
        f = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
#endif
        if (f < 0)
            f = open_and_unlink(folder);
        e = f < 0 ? errno : 0;
    }
    if (e == ENOSPC || e == EDQUOT || e == EIO)
        return failed(err, "open a temporary file", folder, e);
    if (e)
        return tgi_fail(err, e == ENOENT || e == ENOTDIR ? TG_E_NOT_FOUND : TG_E_EXISTS,
                        "%s: no temporary file can be made there: %s", folder, strerror(e));
    *fd = f;
    return TG_OK;
}

tg_status tgi_file_pwrite(int fd, const char *path, const void *bytes, size_t n,
                          uint64_t offset, tgi_err *err)
{
    const int e = ask(TGI_FILE_PWRITE, path);
    if (e > 0)
        return failed(err, "write", path, e);
    const char *p = bytes;
    size_t left = e == TGI_FILE_TORN ? n / 2 : n;
    while (left) {
        const ssize_t w = pwrite(fd, p, left, (off_t)offset);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return failed(err, "write", path, w < 0 ? errno : EIO);
        p += w;
        left -= (size_t)w;
        offset += (uint64_t)w;
    }
    if (e == TGI_FILE_TORN)
        die();
    return TG_OK;
}

tg_status tgi_file_pread(int fd, const char *path, void *bytes, size_t n, uint64_t offset,
                         tgi_err *err)
{
    char *p = bytes;
    while (n) {
        const ssize_t r = pread(fd, p, n, (off_t)offset);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return failed(err, "read", path, errno);
        if (r == 0)
            return tgi_fail(err, TG_E_FORMAT, "%s: ends at byte %llu, %zu bytes too early",
                            path, (unsigned long long)offset, n);
        p += r;
        n -= (size_t)r;
        offset += (uint64_t)r;
    }
    return TG_OK;
}

tg_status tgi_file_sync(int fd, const char *path, tgi_err *err)
{
    const int e = ask(TGI_FILE_SYNC, path);
    if (e)
        return failed(err, "sync", path, e);
    /* Never repeated after an error: the kernel may have dropped the pages it could not write.
     */
    return fdatasync(fd) ? failed(err, "sync", path, errno) : TG_OK;
}

tg_status tgi_file_truncate(int fd, const char *path, uint64_t size, tgi_err *err)
{
    int e = ask(TGI_FILE_TRUNCATE, path);
    if (!e)
        while (ftruncate(fd, (off_t)size))
            if (errno != EINTR) {
                e = errno;
                break;
            }
    return e ? failed(err, "set the size", path, e) : TG_OK;
}

/* For filesystems without fallocate: the room is there now, which is the best one can know. */
static int enough_free(int fd, uint64_t bytes)
{
    struct statvfs v;
    struct stat st;
    if (fstatvfs(fd, &v) || fstat(fd, &st))
        return 1;
    const uint64_t have = (uint64_t)st.st_blocks * 512u;
    return have >= bytes || (bytes - have) / (v.f_frsize ? v.f_frsize : 1) <= v.f_bavail;
}

tg_status tgi_file_reserve(int fd, const char *path, uint64_t bytes, tgi_err *err)
{
    int e = ask(TGI_FILE_RESERVE, path);
#ifdef __linux__
    if (!e)
        while (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes))
            if (errno != EINTR) {
                e = errno;
                break;
            }
#else
    if (!e)
        e = EOPNOTSUPP;
#endif
    if (e == EOPNOTSUPP || e == ENOSYS || e == EINVAL)
        e = enough_free(fd, bytes) ? 0 : ENOSPC;
    if (e == ENOSPC || e == EDQUOT)
        return tgi_fail(err, TG_E_NO_SPACE,
                        "%s: no room for %llu bytes (%s); free some, write elsewhere, "
                        "or compress",
                        path, (unsigned long long)bytes, strerror(e));
    return e ? failed(err, "reserve", path, e) : TG_OK;
}

static int rename_exclusive(const char *from, const char *to)
{
#if defined(__linux__) && defined(SYS_renameat2)
    if (!syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
#endif
    if (!access(to, F_OK)) /* some network filesystems: a small window stays open */
        return EEXIST;
    return rename(from, to) ? errno : 0;
}

/* Only files are replaced, and links to something; a device's node stays. */
static int is_node(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) &&
           !S_ISDIR(st.st_mode);
}

tg_status tgi_file_rename(const char *from, const char *to, int replace, tgi_err *err)
{
    int e = ask(TGI_FILE_RENAME, to);
    if (!e && is_node(to))
        return tgi_fail(err, TG_E_EXISTS,
                        "%s: is no regular file and is not replaced; the result stays in %s",
                        to, from);
    if (!e)
        e = !replace ? rename_exclusive(from, to) : rename(from, to) ? errno : 0;
    if (e == EEXIST)
        return tgi_fail(err, TG_E_EXISTS, "%s: exists already; the result stays in %s", to,
                        from);
    return e ? failed(err, "rename", to, e) : TG_OK;
}

tg_status tgi_file_unlink(const char *path, tgi_err *err)
{
    int e = ask(TGI_FILE_UNLINK, path);
    if (!e && unlink(path))
        e = errno == ENOENT ? 0 : errno;
    return e ? failed(err, "remove", path, e) : TG_OK;
}

tg_status tgi_file_sync_dir(const char *path, tgi_err *err)
{
    int e = ask(TGI_FILE_SYNC_DIR, path);
    if (e)
        return failed(err, "sync the folder of", path, e);
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof dir)
        return failed(err, "sync the folder of", path, ENAMETOOLONG);
    memcpy(dir, path, n);
    if (n == 0)
        dir[0] = slash ? '/' : '.';
    dir[n ? n : 1] = 0;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(err, "open the folder of", path, errno);
    e = fsync(fd) ? errno : 0;
    close(fd);
    /* Filesystems that cannot sync a folder say EINVAL; there is nothing more to be done. */
    return e && e != EINVAL ? failed(err, "sync the folder of", path, e) : TG_OK;
}

tg_status tgi_file_size(int fd, const char *path, uint64_t *size, tgi_err *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return failed(err, "look at", path, errno);
    *size = (uint64_t)st.st_size;
    return TG_OK;
}
