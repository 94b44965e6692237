/* disk_faults.c - a library to be loaded in front of a command (LD_PRELOAD): what TEGULA_FAIL_IO
 * cannot do, which counts what is written alone.
 *
 *     TG_FAULT=eio     read AT of a file whose path ends in TG_FAULT_IN fails with EIO, that one alone
 *     TG_FAULT=short   the file ends there, for that read
 *     TG_FAULT=zeros   from that read on all that is read is 0
 *     TG_FAULT=stop    SIGINT comes with that read
 *     TG_FAULT=full    a file that ends so gets no room, and no disk has any
 *     TG_FAULT=stay    such a file cannot be removed
 *     TG_FAULT=rename  SIGKILL where such a file would get another name (with -y: else it is no rename(3))
 *
 * TG_FAULT_TOLD names a file for two numbers: reads of such files, and syncs of OUT.partial while a
 * file that ends so was open and had no name any more. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int reads, held;

#define SEEN __attribute__((visibility("default"))) /* instead of libc's */
SEEN ssize_t pread(int fd, void *bytes, size_t n, off_t at);
SEEN int fdatasync(int fd);
SEEN int fallocate(int fd, int mode, off_t at, off_t bytes);
SEEN int statvfs(const char *path, struct statvfs *out);
SEEN int rename(const char *from, const char *to);
SEEN int unlink(const char *path);

static int is(const char *fault)
{
    const char *what = getenv("TG_FAULT");
    return what && strcmp(what, fault) == 0;
}

/* Does the path end as the files that are meant, and then in `more`? */
static int meant(const char *path, const char *more)
{
    const char *end = getenv("TG_FAULT_IN");
    const size_t n = strlen(path), m = end ? strlen(end) : 0, k = strlen(more);
    return m && n >= m + k && memcmp(path + n - m - k, end, m) == 0 &&
           memcmp(path + n - k, more, k) == 0;
}

static void path_of(int fd, char *buf, size_t cap)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, buf, cap - 1);
    buf[n < 0 ? 0 : n] = 0;
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    char path[4096];
    const char *k = getenv("TG_FAULT_AT");
    path_of(fd, path, sizeof path);
    if (meant(path, "")) {
        const int now = atomic_fetch_add(&reads, 1) + 1, when = k ? atoi(k) : 0;
        if (now == when && is("short"))
            return 0;
        if (now == when && is("eio")) {
            errno = EIO;
            return -1;
        }
        if (now == when && is("stop"))
            kill(getpid(), SIGINT);
        if (now >= when && is("zeros")) {
            memset(bytes, 0, n);
            return (ssize_t)n;
        }
    }
    return syscall(SYS_pread64, fd, bytes, n, at);
}

int fdatasync(int fd)
{
    char path[4096];
    path_of(fd, path, sizeof path);
    const size_t n = strlen(path);
    if (n > 8 && strcmp(path + n - 8, ".partial") == 0)
        for (int other = 3; other < 256; other++) {
            path_of(other, path, sizeof path);
            if (meant(path, " (deleted)"))
                atomic_fetch_add(&held, 1);
        }
    return (int)syscall(SYS_fdatasync, fd);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    char path[4096];
    path_of(fd, path, sizeof path);
    if (is("full") && meant(path, "")) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int statvfs(const char *path, struct statvfs *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int e = fd < 0 ? -1 : fstatvfs(fd, out);
    if (fd >= 0)
        close(fd);
    if (!e && is("full"))
        out->f_bavail = out->f_bfree = 0;
    return e;
}

int rename(const char *from, const char *to)
{
    if (is("rename") && meant(from, ""))
        kill(getpid(), SIGKILL);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    if (is("stay") && meant(path, "")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

__attribute__((destructor)) static void tell(void)
{
    const char *told = getenv("TG_FAULT_TOLD");
    FILE *f = told ? fopen(told, "we") : NULL;
    if (!f)
        return;
    fprintf(f, "%d %d\n", atomic_load(&reads), atomic_load(&held));
    fclose(f);
}
