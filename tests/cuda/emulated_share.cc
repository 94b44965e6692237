/* emulated_share.cc - see emulated_share.h. A process has the first place that is free or whose
 * process is gone, until it ends. */
#include "tests/cuda/emulated_share.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

struct place {
    std::atomic<int> pid; /* 0: free */
    std::atomic<uint64_t> bytes;
};
#define FILE_BYTES (TG_EMULATED_HOLDERS * sizeof(place))

static place *mine;

static void fail(const char *what, const char *file)
{
    fprintf(stderr, "TEGULA_EMULATED_SHARE: %s %s: %s\n", what, file, strerror(errno));
    abort();
}

/* NULL: nobody shares. */
static place *places(void)
{
    static place *all;
    const char *file = getenv("TEGULA_EMULATED_SHARE");
    if (all || !file)
        return all;
    const int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, FILE_BYTES) != 0)
        fail("opening", file);
    void *at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        fail("mapping", file);
    close(fd);
    return all = (place *)at;
}

static bool lives(int pid)
{
    return pid && (kill(pid, 0) == 0 || errno != ESRCH);
}

static void find_mine(place *all)
{
    for (int i = 0; i < TG_EMULATED_HOLDERS && !mine; i++) {
        int was = all[i].pid;
        if (!lives(was) && all[i].pid.compare_exchange_strong(was, getpid()))
            mine = &all[i];
    }
    if (!mine)
        fail("no place in", getenv("TEGULA_EMULATED_SHARE"));
}

uint64_t tg_emulated_share_tell(uint64_t bytes)
{
    tg_emulated_holder h[TG_EMULATED_HOLDERS];
    uint64_t others = 0;
    if (!places())
        return 0;
    if (!mine)
        find_mine(places());
    mine->bytes = bytes;
    const int n = tg_emulated_share_list(h);
    for (int i = 0; i < n; i++)
        others += h[i].pid != getpid() ? h[i].bytes : 0;
    return others;
}

int tg_emulated_share_list(tg_emulated_holder out[TG_EMULATED_HOLDERS])
{
    place *all = places();
    int n = 0;
    for (int i = 0; all && i < TG_EMULATED_HOLDERS; i++)
        if (lives(all[i].pid) && all[i].bytes)
            out[n++] = {all[i].pid, all[i].bytes};
    return n;
}

__attribute__((destructor)) static void leave(void)
{
    if (!mine)
        return;
    mine->bytes = 0;
    mine->pid = 0;
}

int tg_emulated_word(const char *name, int otherwise)
{
    const char *s = getenv("TEGULA_EMULATED");
    const size_t n = strlen(name);
    for (; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : "")
        if (strncmp(s, name, n) == 0 && (s[n] == '=' || s[n] == ',' || !s[n]))
            return s[n] == '=' ? atoi(s + n + 1) : 1;
    return otherwise;
}
