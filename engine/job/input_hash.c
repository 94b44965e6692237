#include "engine/job/input_hash.h"

#include "engine/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (128u * 1024u)
/* ioprio_set(2): of a thread; class best effort, its lowest level. Not class idle: on a disk
 * that is never idle that would be never. */
#define IO_WHO_THREAD 1
#define IO_LOWEST (2 << 13 | 7)

struct tgi_input_hash {
    const char *path;
    void *buffer;
    int fd, running; /* running: the thread is there to be joined */
    pthread_t thread;
    atomic_int stop;
    /* The thread's until it is joined. */
    tgi_sha256 sha;
    int error; /* errno of the first failure */
    struct stat before;
};

/* Read and mix the next piece; 0 at the end of the file and after a failure. */
static int step(tgi_input_hash *h)
{
    ssize_t n;
    if (h->error)
        return 0;
    do
        n = pread(h->fd, h->buffer, TGI_INPUT_HASH_BYTES, (off_t)h->sha.bytes);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        h->error = errno;
    if (n > 0)
        tgi_sha256_add(&h->sha, h->buffer, (size_t)n);
    return n > 0;
}

static void *hash_main(void *arg)
{
    tgi_input_hash *h = arg;
    setpriority(PRIO_PROCESS, 0, 19); /* on Linux: of this thread alone */
    syscall(SYS_ioprio_set, IO_WHO_THREAD, 0, IO_LOWEST);
    while (!atomic_load(&h->stop) && step(h))
        ;
    return NULL;
}

tg_status tgi_input_hash_open(const char *path, void *buffer, tgi_input_hash **out,
                              tgi_err *err)
{
    tgi_input_hash *h = tgi_calloc(TGI_TAG_IO, 1, sizeof *h);
    if (!h)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the input's checksum");
    h->path = path;
    h->buffer = buffer;
    tgi_sha256_begin(&h->sha);
    h->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (h->fd < 0 || fstat(h->fd, &h->before))
        h->error = errno;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, STACK_BYTES);
    /* Without a thread it is all done at the end. */
    h->running = !h->error && pthread_create(&h->thread, &a, hash_main, h) == 0;
    pthread_attr_destroy(&a);
    *out = h;
    return TG_OK;
}

static void stop_thread(tgi_input_hash *h)
{
    atomic_store(&h->stop, 1);
    if (h->running)
        pthread_join(h->thread, NULL);
    h->running = 0;
}

static int differs(const struct stat *a, const struct stat *b)
{
    return a->st_dev != b->st_dev || a->st_ino != b->st_ino || a->st_size != b->st_size ||
           a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

tg_status tgi_input_hash_finish(tgi_input_hash *h,
                                tg_status (*tick)(void *user, double fraction, tgi_err *err),
                                void *user, tgi_input_digest *out, tgi_err *err)
{
    struct stat after;
    stop_thread(h);
    while (step(h)) {
        const double all = h->before.st_size > 0 ? (double)h->before.st_size : 1;
        TGI_TRY(tick(user, (double)h->sha.bytes / all, err));
    }
    *out = (tgi_input_digest){.bytes = h->sha.bytes};
    if (h->error) {
        snprintf(out->trouble, sizeof out->trouble, "reading it whole: %s", strerror(h->error));
        return TG_OK;
    }
    out->changed = stat(h->path, &after) != 0 || differs(&h->before, &after) ||
                   h->sha.bytes != (uint64_t)h->before.st_size;
    if (out->changed)
        snprintf(out->trouble, sizeof out->trouble,
                 "it was changed during the run: the checksum is of what was read, perhaps of "
                 "no single state");
    tgi_sha256_end(&h->sha, out->sha256);
    return TG_OK;
}

void tgi_input_hash_close(tgi_input_hash **hp)
{
    tgi_input_hash *h = *hp;
    if (!h)
        return;
    stop_thread(h);
    if (h->fd >= 0)
        close(h->fd);
    tgi_free(h);
    *hp = NULL;
}
