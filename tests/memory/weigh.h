/* weigh.h - malloc is interposed: what a library takes while `weigh_begin` to `weigh_end` go
 * on. One file of a program may include it. */
#ifndef TG_WEIGH_H
#define TG_WEIGH_H

#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static atomic_int watching;
static atomic_llong held, most;

#if !TG_SANITIZED && defined(__GLIBC__)
#define TG_WEIGHS_MALLOC 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void free(void *p);

static void weigh(const void *p, int sign)
{
    if (!p || !atomic_load(&watching))
        return;
    const long long n = sign * (long long)malloc_usable_size((void *)(uintptr_t)p);
    const long long now = atomic_fetch_add(&held, n) + n;
    if (now > atomic_load(&most))
        atomic_store(&most, now);
}

__attribute__((visibility("default"))) void *malloc(size_t n)
{
    void *p = __libc_malloc(n);
    weigh(p, 1);
    return p;
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    void *p = __libc_calloc(n, size);
    weigh(p, 1);
    return p;
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
    weigh(p, -1);
    void *q = __libc_realloc(p, n);
    weigh(q, 1);
    return q;
}

__attribute__((visibility("default"))) void free(void *p)
{
    weigh(p, -1);
    __libc_free(p);
}
#endif

static inline void weigh_begin(void)
{
    atomic_store(&held, 0);
    atomic_store(&most, 0);
    atomic_store(&watching, 1);
}

/* The most bytes at once; *left: those that are still there. */
static inline size_t weigh_end(long long *left)
{
    atomic_store(&watching, 0);
    *left = atomic_load(&held);
    return (size_t)atomic_load(&most);
}

#endif
