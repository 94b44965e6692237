/* cuda_emulated.cc - see cuda_emulated.h.
 *
 * A *carrier* is a stack. It takes the block's next thread that has not begun, runs it to its
 * end and takes another; so threads that never wait need one carrier and no switch. A thread
 * that has to wait keeps its carrier, and another one goes on: one whose wait is over, or a
 * fresh one for the threads not begun. Waiting lists are served first come, first served.
 *
 * A warp's exchange has two sets of slots in turn: a lane can be one exchange ahead of another
 * at most. */
#include "tests/cuda/emulated_wgmma.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
unsigned tg_emulated_shared_most = 64 << 10; /* compute capability 7.5 */

int tgi_emulated_ampere = 1;
int tg_emulated_order = getenv("TEGULA_EMULATED_ORDER") != NULL;

unsigned tg_emulated_last = 0;

namespace
{

const size_t stack_bytes = 256 << 10; /* committed as it is touched */
const size_t slot_bytes = 128;
const size_t readable = 1024; /* from the beginning of arguments on: CU_ARGUMENTS_NEAR */

struct copy {
    void *to;
    const void *from;
    int bytes, zeros;
    unsigned group;
};

struct thread_state {
    uint3 at;
    unsigned group;           /* that its next copy belongs to */
    int unfenced;             /* copies have come that products may not see yet */
    std::vector<copy> copies; /* not waited for, oldest first */
};

struct carrier {
    ucontext_t context;
    void *jump[5]; /* where it waits, without a system call's cost */
    void *stack;
    int has_run;
    unsigned thread;
};

struct warp {
    unsigned size, live;          /* lanes there are, lanes not ended */
    unsigned arrived;             /* mask, of the barrier or exchange that is gathering */
    unsigned mask;                /* who is expected there */
    unsigned phase;               /* exchanges done */
    std::vector<carrier *> waits; /* of this warp, at that barrier */
    alignas(16) unsigned char slot[2][32 * slot_bytes];
};

struct shared_array {
    const void *key;
    std::vector<uint64_t> words;
};

typedef void (*entry)(const void *);

struct machine {
    entry kernel;
    const void *args;
    std::vector<thread_state> threads;
    std::vector<warp> warps;
    unsigned next, ended; /* threads begun, threads that came to their end */
    std::vector<carrier *> at_barrier;
    const char *barrier_file; /* where it is */
    int barrier_line;
    std::deque<carrier *> ready;
    std::vector<std::unique_ptr<carrier>> carriers;
    std::vector<carrier *> idle;
    carrier *now;
    ucontext_t home;
    std::deque<shared_array> shared;
    std::unique_ptr<uint64_t[]> dynamic_shared;
    size_t dynamic_words;
    uint64_t block; /* how many have begun */
} m;

[[noreturn]] void stop(const std::string &why)
{
    fprintf(stderr, "emulated device: block (%u,%u,%u) of (%u,%u,%u), thread %u: %s\n",
            blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x, gridDim.y, gridDim.z,
            m.now ? m.now->thread : 0, why.c_str());
    abort();
}

/* All have come: who has ended comes no more. */
void block_barrier_check()
{
    if (m.at_barrier.size() == m.threads.size()) {
        m.ready.insert(m.ready.end(), m.at_barrier.begin(), m.at_barrier.end());
        m.at_barrier.clear();
    }
}

/* The thread that begins as the nth. */
unsigned thread_of(unsigned nth)
{
    const unsigned n = (unsigned)m.threads.size();
    if (!tg_emulated_order)
        return nth;
    return m.block % 2 && n % 37 ? (nth * 37 + 11) % n : n - 1 - nth; /* 37: a prime */
}

void run_threads()
{
    while (m.next < m.threads.size()) {
        carrier *c = m.now;
        c->thread = thread_of(m.next++);
        thread_state &t = m.threads[c->thread];
        threadIdx = t.at;
        m.kernel(m.args);
        m.warps[c->thread / 32].live &= ~(1u << c->thread % 32);
        m.ended++;
    }
}

void carrier_main();

carrier *fresh_carrier()
{
    if (m.idle.empty()) {
        m.carriers.emplace_back(new carrier());
        carrier *c = m.carriers.back().get();
        c->stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (c->stack == MAP_FAILED)
            stop("no stack");
        m.idle.push_back(c);
    }
    carrier *c = m.idle.back();
    m.idle.pop_back();
    c->has_run = 0;
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = stack_bytes;
    c->context.uc_link = NULL;
    makecontext(&c->context, carrier_main, 0);
    return c;
}

/* Who runs now that the one who did cannot; NULL: the block is done. */
carrier *next_carrier()
{
    if (!m.ready.empty()) {
        carrier *c = tg_emulated_order ? m.ready.back() : m.ready.front();
        if (tg_emulated_order)
            m.ready.pop_back();
        else
            m.ready.pop_front();
        return c;
    }
    if (m.next < m.threads.size())
        return fresh_carrier();
    if (m.ended < m.threads.size())
        stop("its threads wait for each other for ever (a barrier not all of them reach)");
    return NULL;
}

__attribute__((noinline)) void go(carrier *to)
{
    m.now = to;
    threadIdx = m.threads[to->thread].at;
    if (SANITIZED || !to->has_run) {
        to->has_run = 1;
        setcontext(&to->context);
    }
    __builtin_longjmp(to->jump, 1);
}

/* Leave the running carrier until somebody puts it among the ready ones. */
__attribute__((noinline)) void wait_turn()
{
    carrier *me = m.now;
    carrier *to = next_carrier();
    if (to == me) {
        m.now = me;
        return;
    }
    if (SANITIZED) {
        m.now = to;
        to->has_run = 1;
        swapcontext(&me->context, &to->context);
    } else if (!__builtin_setjmp(me->jump)) {
        go(to);
    }
    threadIdx = m.threads[m.now->thread].at;
}

void carrier_main()
{
    run_threads();
    m.idle.push_back(m.now);
    carrier *to = next_carrier();
    if (!to)
        setcontext(&m.home);
    go(to);
    abort();
}

/* Arrive at the warp's meeting; returns when all of `mask` have. */
void meet(unsigned mask)
{
    carrier *me = m.now;
    warp &w = m.warps[me->thread / 32];
    const unsigned bit = 1u << me->thread % 32,
                   size_mask = w.size == 32 ? ~0u : (1u << w.size) - 1;
    mask &= size_mask;
    if (!(mask & bit))
        stop("a lane meets others that do not expect it");
    if (!w.arrived)
        w.mask = mask;
    else if (w.mask != mask)
        stop("lanes meet with different masks");
    w.arrived |= bit;
    if (w.arrived == mask) {
        w.arrived = 0;
        w.phase++;
        m.ready.insert(m.ready.end(), w.waits.begin(), w.waits.end());
        w.waits.clear();
        return;
    }
    if ((w.live | w.arrived) != (w.live | w.arrived | mask))
        stop("a lane that others wait for has ended");
    w.waits.push_back(me);
    wait_turn();
}

void start_block(dim3 block)
{
    const unsigned n = block.x * block.y * block.z;
    m.threads.resize(n);
    for (unsigned i = 0; i < n; i++) {
        thread_state &t = m.threads[i];
        t.at = make_uint3(i % block.x, i / block.x % block.y, i / (block.x * block.y));
        t.group = 0;
        t.unfenced = 0;
        t.copies.clear();
    }
    m.warps.resize((n + 31) / 32);
    for (unsigned i = 0; i < m.warps.size(); i++) {
        warp &w = m.warps[i];
        w.size = std::min(32u, n - 32 * i);
        w.live = w.size == 32 ? ~0u : (1u << w.size) - 1;
        w.arrived = w.phase = 0;
        w.waits.clear();
    }
    m.block++;
    m.next = m.ended = 0;
    m.at_barrier.clear();
    m.ready.clear();
    m.shared.clear();
    memset(m.dynamic_shared.get(), 0xff, m.dynamic_words * sizeof(uint64_t));
}

void run_block(dim3 block)
{
    start_block(block);
    volatile int done = 0;
    getcontext(&m.home);
    if (!done) {
        done = 1;
        go(fresh_carrier());
    }
    if (tg_emulated_wgmma_pending())
        stop("it ended with products that nobody waited for");
}

void check_launch(dim3 grid, dim3 block, unsigned shared_bytes)
{
    m.now = NULL;
    gridDim = grid;
    const unsigned n = block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 ||
        grid.z > 65535)
        stop("a grid that no device takes");
    if (!n || n > 1024 || block.z > 64)
        stop("a block that no device takes");
    if (shared_bytes > tg_emulated_shared_most)
        stop("more shared memory than a block can have");
}

} // namespace

void tg_emulate(const void *kernel, dim3 grid, dim3 block, unsigned shared_bytes,
                const void *args, size_t args_bytes)
{
    check_launch(grid, block, shared_bytes);
    const std::unique_ptr<unsigned char[]> copy_of(new unsigned char[args_bytes + readable]);
    if (args_bytes)
        memcpy(copy_of.get(), args, args_bytes);
    m.kernel = (entry)(uintptr_t)kernel;
    m.args = args_bytes ? copy_of.get() : args;
    m.dynamic_words = (shared_bytes + 7) / 8;
    m.dynamic_shared.reset(new uint64_t[m.dynamic_words + 2]);
    blockDim = block;
    const bool some = tg_emulated_last && tg_emulated_last < grid.x;
    const unsigned first = some ? grid.x - tg_emulated_last : 0;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = first; x < grid.x; x++) {
                blockIdx = make_uint3(x, y, z);
                run_block(block);
            }
    m.now = NULL;
}

void tg_emulated_block_barrier(const char *file, int line)
{
    if (m.at_barrier.empty()) {
        m.barrier_file = file;
        m.barrier_line = line;
    } else if (line != m.barrier_line || strcmp(file, m.barrier_file) != 0) {
        stop("it waits at a barrier while others wait at another");
    }
    m.at_barrier.push_back(m.now);
    carrier *me = m.now;
    block_barrier_check();
    if (!m.ready.empty() && m.ready.back() == me && m.at_barrier.empty())
        m.ready.pop_back(); /* the last to come goes on */
    else
        wait_turn();
}

void tg_emulated_warp_barrier(unsigned mask)
{
    meet(mask);
}

int tgi_emulated_lane(void)
{
    return (int)(m.now->thread % 32);
}

const void *tg_emulated_exchange(unsigned mask, const void *mine, size_t bytes)
{
    if (bytes > slot_bytes)
        stop("an exchange of more than 128 bytes");
    const unsigned at = m.now->thread;
    warp &w = m.warps[at / 32];
    unsigned char *slots = w.slot[w.phase % 2];
    if (!w.arrived)
        memset(slots, 0xff, sizeof w.slot[0]);
    memcpy(slots + bytes * (at % 32), mine, bytes);
    meet(mask);
    return slots;
}

void *tg_emulated_shared(const void *key, size_t bytes)
{
    for (shared_array &s : m.shared)
        if (s.key == key)
            return (void *)(((uintptr_t)s.words.data() + 15) & ~(uintptr_t)15);
    m.shared.push_back({key, std::vector<uint64_t>((bytes + 7) / 8 + 2, ~(uint64_t)0)});
    return (void *)(((uintptr_t)m.shared.back().words.data() + 15) & ~(uintptr_t)15);
}

void *tg_emulated_dynamic_shared(void)
{
    return (void *)(((uintptr_t)m.dynamic_shared.get() + 15) & ~(uintptr_t)15);
}

void tgi_emulated_copy_async(void *to, const void *from, int bytes, int zeros)
{
    thread_state &t = m.threads[m.now->thread];
    tgi_emulated_from_ampere("a copy beside the arithmetic on 7.5");
    tgi_emulated_aligned(to, 16);
    tgi_emulated_aligned(from, 16);
    t.copies.push_back({to, from, bytes, zeros, t.group});
    memset(to, 0xff, (size_t)(bytes + zeros)); /* a device may write it from now on */
}

void tgi_emulated_copy_commit(void)
{
    m.threads[m.now->thread].group++;
}

void tgi_emulated_copy_wait(int groups_left)
{
    thread_state &t = m.threads[m.now->thread];
    size_t n = 0;
    for (; n < t.copies.size() && t.copies[n].group + (unsigned)groups_left < t.group; n++) {
        const copy &c = t.copies[n];
        memcpy(c.to, c.from, (size_t)c.bytes);
        memset((char *)c.to + c.bytes, 0, (size_t)c.zeros);
        t.unfenced = 1;
    }
    t.copies.erase(t.copies.begin(), t.copies.begin() + (ptrdiff_t)n);
}

void tgi_emulated_fence_async(void)
{
    m.threads[m.now->thread].unfenced = 0;
}

int tg_emulated_unfenced(void)
{
    for (const thread_state &t : m.threads)
        if (t.unfenced)
            return 1;
    return 0;
}

/* Dynamic shared memory does not begin at 0 on a device either. */
static const unsigned shared_base = 1024;

unsigned tgi_emulated_shared_address(const void *p)
{
    const char *from = (const char *)tg_emulated_dynamic_shared();
    const size_t at = (size_t)((const char *)p - from);
    if ((const char *)p < from || at > 8 * m.dynamic_words)
        stop("an address that is none of dynamic shared memory");
    return shared_base + (unsigned)at;
}

const void *tg_emulated_shared_at(unsigned address, size_t bytes)
{
    if (address < shared_base || address - shared_base + bytes > 8 * m.dynamic_words)
        stop("a matrix that reaches out of dynamic shared memory");
    return (const char *)tg_emulated_dynamic_shared() + (address - shared_base);
}

unsigned tg_emulated_thread(void)
{
    return m.now->thread;
}

uint64_t tg_emulated_block(void)
{
    return m.block;
}

void tg_emulated_stop(const char *why)
{
    stop(why);
}
