/* file_ops.h - the few system calls that durability depends on, in one place.
 *
 * Each does its whole work or fails with a status: EINTR is repeated, short writes are
 * continued, ENOSPC and EDQUOT become TG_E_NO_SPACE, everything else TG_E_IO with path and
 * reason. Tests (or TEGULA_FAIL_IO) can make the k-th call fail, or kill the process in front
 * of or inside it. */
#ifndef TGI_FILE_OPS_H
#define TGI_FILE_OPS_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tgi_file_op {
    TGI_FILE_OPEN,
    TGI_FILE_PWRITE,
    TGI_FILE_SYNC,
    TGI_FILE_TRUNCATE,
    TGI_FILE_RESERVE,
    TGI_FILE_RENAME,
    TGI_FILE_UNLINK,
    TGI_FILE_SYNC_DIR
} tgi_file_op;

/* Open an existing file for reading and writing. Symbolic links are not followed.
 * @return TG_E_NOT_FOUND  it is not there
 *         TG_E_EXISTS     it is no regular file */
tg_status tgi_file_open(const char *path, int *fd, tgi_err *err);
/* Make a file, for reading and writing.
 * @return TG_E_EXISTS  something is there, or it cannot be created */
tg_status tgi_file_create(const char *path, int *fd, tgi_err *err);

/* What a stopped run may have left at a name that is made from another one. */
typedef struct tgi_left {
    const char *path;   /* OUT.partial */
    const char *output; /* that the user named: OUT */
    const char *begins; /* what one that grows has at its beginning; NULL: only an empty one is
                           ours */
    const void *head;   /* or what one that was complete, and had no name yet; NULL: none */
    size_t head_bytes;
    int (*known)(
        int fd); /* or what tells it though its beginning is damaged; NULL: nothing does */
} tgi_left;

/* Is the file ours? 1: nothing is there, or a regular file that has no second name and is empty
 * or begins so (`output` does not matter); of `begins` TGI_FEW_BITS may be others. Such a file may be
 * written over. No other is, whatever -y says, because the user never named it. */
int tgi_file_is_ours(const tgi_left *left);
/* A mark of six bytes or more that is so near to ours was ours, before a disk or a hand damaged it. Of
 * 48 random bits one in 10^10 is so near. */
#define TGI_FEW_BITS 3
/* Does the file begin with these n bytes (64 at most)? 1: yes, and it is a regular file, not a
 * link to one. */
int tgi_file_begins(const char *path, const void *with, size_t n);
/* The same where TGI_FEW_BITS may be others. */
int tgi_file_nearly_begins(const char *path, const void *with, size_t n);
/* How many bits of n bytes are others. */
int tgi_bits_differ(const void *a, const void *b, size_t n);
/* Make the file, or open it if it is ours, and lock it. Nobody else can open it in this way
 * before it is closed, or its holder dies. Its content stays. On a filesystem without locks it
 * is opened without one.
 * @return TG_E_BUSY    another process has it
 *         TG_E_EXISTS  it is not ours */
tg_status tgi_file_open_locked(const tgi_left *left, int *fd, tgi_err *err);
/* TG_E_EXISTS: the open file has a second name (hard link), under which it would change, too.
 */
tg_status tgi_file_alone(int fd, const char *path, tgi_err *err);
/* TG_E_EXISTS, and what can be done about a file that stands where one of ours should. */
tg_status tgi_file_in_the_way(const char *path, tgi_err *err);
/* A file without a name in `folder`, for reading and writing: it is gone when it is closed,
 * also by a kill.
 * @return TG_E_NOT_FOUND  there is no such folder
 *         TG_E_EXISTS     nothing can be created there */
tg_status tgi_file_open_unnamed(const char *folder, int *fd, tgi_err *err);
tg_status tgi_file_pwrite(int fd, const char *path, const void *bytes, size_t n,
                          uint64_t offset, tgi_err *err);
/* Exactly n bytes; TG_E_FORMAT when the file ends before. */
tg_status tgi_file_pread(int fd, const char *path, void *bytes, size_t n, uint64_t offset,
                         tgi_err *err);
/* Data and size on the disk (fdatasync). */
tg_status tgi_file_sync(int fd, const char *path, tgi_err *err);
tg_status tgi_file_truncate(int fd, const char *path, uint64_t size, tgi_err *err);
/* Take disk space for [0, bytes) without changing the file's size. A filesystem that cannot
 * reserve is asked for its free space instead. */
tg_status tgi_file_reserve(int fd, const char *path, uint64_t bytes, tgi_err *err);
/* Rename; with replace == 0 an existing `to` is TG_E_EXISTS, and one that is a device or a pipe
 * always is. */
tg_status tgi_file_rename(const char *from, const char *to, int replace, tgi_err *err);
/* Remove; a file that is not there is no error. */
tg_status tgi_file_unlink(const char *path, tgi_err *err);
/* Make the names in the folder that holds `path` durable. */
tg_status tgi_file_sync_dir(const char *path, tgi_err *err);
tg_status tgi_file_size(int fd, const char *path, uint64_t *size, tgi_err *err);

/* Called in front of each of the operations above (reading and size apart). Answers 0 to go on,
 * an errno value to fail with, or TGI_FILE_TORN to write the first half of a pwrite and be
 * killed. */
#define TGI_FILE_TORN (-1)
typedef int tgi_file_hook(tgi_file_op op, const char *path);
/* NULL: none. For tests; set it while no other thread does file operations.
 *
 * The environment variable TEGULA_FAIL_IO does the same for a whole program: "K" lets the K-th
 * operation fail with EIO, "K:full" with ENOSPC, "K:kill" is SIGKILL in front of it, "K:torn"
 * in the middle of it. */
void tgi_file_set_hook(tgi_file_hook *hook);

#endif
