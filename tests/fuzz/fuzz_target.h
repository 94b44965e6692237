/* fuzz_target.h - what the fuzz targets share: bytes as a file, and what no answer may be.
 *
 * A target is one function, LLVMFuzzerTestOneInput, for clang's libFuzzer; replay.c calls the
 * same function with stored files in an ordinary build. A crash, a leak, a status that is our
 * own fault, a refusal without a reason or with a forged second line: all of them end in
 * abort(). */
#ifndef TG_FUZZ_TARGET_H
#define TG_FUZZ_TARGET_H

#include "engine/base/mem.h"
#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The bytes as an anonymous file, which `path` (64 bytes) names until the next call. One file
 * for all calls: making one costs more than most parsers take. */
static inline void fuzz_file(const uint8_t *data, size_t n, char *path)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, data, n, 0) != (ssize_t)n || ftruncate(fd, (off_t)n))
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
}

/* `st` is an answer that a stranger's bytes may get. */
static inline void fuzz_check(tg_status st, const tgi_err *err)
{
    if (st == TG_E_INTERNAL || (st != TG_OK && !err->text[0]) || strpbrk(err->text, "\n\r"))
        abort();
}

/* Everything was given back. */
static inline void fuzz_check_leaks(void)
{
    tgi_mem_stats mem;
    tgi_mem_get_stats(&mem);
    if (mem.live_blocks)
        abort();
}

/* What malloc gave and has not got back, and the most of it: under the address sanitizer, which
 * tells. Elsewhere `most` stays 0. */
typedef struct fuzz_weight {
    size_t now, most;
} fuzz_weight;
static fuzz_weight fuzz_weighed;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && defined(__clang__)
#include <sanitizer/allocator_interface.h>

static inline void fuzz_on_malloc(const volatile void *p, size_t n)
{
    (void)p;
    fuzz_weighed.now += n;
    if (fuzz_weighed.now > fuzz_weighed.most)
        fuzz_weighed.most = fuzz_weighed.now;
}

static inline void fuzz_on_free(const volatile void *p)
{
    if (p)
        fuzz_weighed.now -= __sanitizer_get_allocated_size(p);
}
#define FUZZ_WEIGHS 1
#endif
#endif

/* From here on: nothing is weighed yet. */
static inline size_t fuzz_weigh(void)
{
#ifdef FUZZ_WEIGHS
    static int installed;
    if (!installed)
        installed = __sanitizer_install_malloc_and_free_hooks(fuzz_on_malloc, fuzz_on_free);
#endif
    fuzz_weighed.most = fuzz_weighed.now;
    return fuzz_weighed.now;
}

#endif
