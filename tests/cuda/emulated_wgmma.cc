/* emulated_wgmma.cc - see emulated_wgmma.h. */
#include "tests/cuda/emulated_wgmma.h"

#include <deque>
#include <vector>

namespace
{

const int group_threads = 128, rows = 64, depth = 16;

/* A factor as it lay in shared memory: numbers [row][depth]. */
typedef std::vector<uint16_t> factor;

struct product {
    uint64_t a, b;
    int n, brains, add;
    factor left, right;
    std::vector<float> left_values, right_values;
    int issued, done; /* threads */
};

struct pending {
    size_t product; /* of the group's */
    float *c;
    unsigned in; /* which of the thread's groups of products */
};

struct thread_products {
    size_t issued;
    unsigned open; /* number of the group that is being filled */
    int fenced;
    std::deque<pending> waits;
};

struct warp_group {
    std::vector<product> products;
};

struct block_products {
    uint64_t block; /* of tg_emulated_block */
    std::vector<thread_products> threads;
    std::vector<warp_group> groups;
} m;

/* A barrier of bulk copies. */
struct bulk_copy {
    void *to;
    const void *from;
    unsigned bytes;
};
struct bulk_barrier {
    uint64_t *at;
    unsigned done; /* copies */
    std::deque<bulk_copy> waits;
};
struct block_copies {
    uint64_t block;
    std::vector<bulk_barrier> barriers;
} bulk;

bulk_barrier &barrier_of(uint64_t *at)
{
    for (bulk_barrier &b : bulk.barriers)
        if (b.at == at && bulk.block == tg_emulated_block())
            return b;
    tg_emulated_stop("a barrier of copies that nobody began");
}

/* The calling thread's, of the block that is running. */
thread_products &mine()
{
    const uint64_t now = tg_emulated_block();
    const size_t n = blockDim.x * blockDim.y * blockDim.z;
    if (m.block != now) {
        m.block = now;
        m.threads.assign(n, thread_products());
        m.groups.assign(n / group_threads, warp_group());
    }
    const unsigned at = tg_emulated_thread();
    if (at / group_threads >= m.groups.size())
        tg_emulated_stop("a product by less than four warps");
    return m.threads[at];
}
warp_group &my_group()
{
    return m.groups[tg_emulated_thread() / group_threads];
}

/* Bits 0-13 start, 16-29 from one core matrix to the next along K, 32-45 across K, each over
 * 16; 49-51 where the pattern of exchanged units begins, 62-63 which pattern that is. */
factor read_factor(uint64_t matrix, int n)
{
    const unsigned start = (unsigned)(matrix & 0x3fffu) << 4;
    const unsigned along = (unsigned)(matrix >> 16 & 0x3fffu) << 4;
    const unsigned across = (unsigned)(matrix >> 32 & 0x3fffu) << 4;
    factor f((size_t)n * depth);
    if (matrix >> 49 & 7u || matrix >> 62)
        tg_emulated_stop("a matrix whose units are exchanged: not emulated");
    for (int row = 0; row < n; row++)
        for (int k = 0; k < depth; k += 8)
            memcpy(&f[(size_t)row * depth + k],
                   tg_emulated_shared_at(start + (unsigned)(row / 8) * across +
                                             (unsigned)(row % 8) * 16 +
                                             (unsigned)(k / 8) * along,
                                         16),
                   16);
    return f;
}

std::vector<float> values_of(const factor &f, int brains)
{
    std::vector<float> v(f.size());
    for (size_t i = 0; i < f.size(); i++)
        v[i] = brains ? __uint_as_float((uint32_t)f[i] << 16) : tgi_half_bits_to_float(f[i]);
    return v;
}

void look_again(const product &p)
{
    if (read_factor(p.a, rows) != p.left || read_factor(p.b, p.n) != p.right)
        tg_emulated_stop("shared memory changed under a product that reads it");
}

/* The part of thread `at` of the group: products of 16-bit numbers are exact in float32. */
void compute(const product &p, int at, float *c)
{
    const int top = at / 32 * 16 + at % 32 / 4, left = at % 4 * 2;
    for (int j = 0; j < p.n / 8; j++)
        for (int i = 0; i < 4; i++) {
            const float *a = &p.left_values[(size_t)(top + i / 2 * 8) * depth];
            const float *b = &p.right_values[(size_t)(8 * j + left + i % 2) * depth];
            float sum = p.add ? c[4 * j + i] : 0.0f;
            for (int k = 0; k < depth; k++)
                sum += a[k] * b[k];
            c[4 * j + i] = sum;
        }
}

} // namespace

void tgi_emulated_bulk_begin(uint64_t *barrier)
{
    tgi_emulated_aligned(barrier, 8);
    if (bulk.block != tg_emulated_block()) {
        bulk.block = tg_emulated_block();
        bulk.barriers.clear();
    }
    bulk.barriers.push_back({barrier, 0, {}});
}

void tgi_emulated_bulk_copy(void *to, const void *from, unsigned bytes, uint64_t *barrier)
{
    tgi_emulated_aligned(to, 16);
    tgi_emulated_aligned(from, 16);
    if (bytes % 16 || bytes == 0)
        tg_emulated_stop("a bulk copy of odd length");
    barrier_of(barrier).waits.push_back({to, from, bytes});
    memset(to, 0xff, bytes);
}

void tgi_emulated_bulk_wait(uint64_t *barrier, unsigned parity)
{
    bulk_barrier &b = barrier_of(barrier);
    while (b.done % 2 == parity) {
        if (b.waits.empty())
            tg_emulated_stop("it waits for a copy that nobody began");
        memcpy(b.waits.front().to, b.waits.front().from, b.waits.front().bytes);
        b.waits.pop_front();
        b.done++;
    }
}

void tgi_emulated_stmatrix_turned(void *column, const uint32_t (&r)[4])
{
    struct piece {
        uint32_t r[4];
        void *column;
    } mine = {{r[0], r[1], r[2], r[3]}, column};
    tgi_emulated_aligned(column, 16);
    const piece *all = tgi_emulated_lanes(0xffffffffu, mine);
    const int lane = tgi_emulated_lane();
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++)
            memcpy((char *)all[8 * i + 2 * (lane % 4) + k].column + 2 * (lane / 4),
                   (const char *)&r[i] + 2 * k, 2);
}

void tgi_emulated_wgmma_fence(void)
{
    mine().fenced = 1;
}

void tgi_emulated_wgmma(float *c, int n, uint64_t a, uint64_t b, int add, int brains)
{
    thread_products &t = mine();
    std::vector<product> &all = my_group().products;
    if (!t.fenced)
        tg_emulated_stop("a first product without a fence of its registers");
    if (t.issued == all.size()) {
        product fresh = {a,  b,  n, brains, add, read_factor(a, rows), read_factor(b, n),
                         {}, {}, 0, 0};
        if (tg_emulated_unfenced())
            tg_emulated_stop("a product after copies that no fence.proxy.async follows");
        fresh.left_values = values_of(fresh.left, brains);
        fresh.right_values = values_of(fresh.right, brains);
        all.push_back(fresh);
    }
    product &p = all[t.issued];
    if (p.a != a || p.b != b || p.n != n || p.add != add || p.brains != brains)
        tg_emulated_stop("threads of a group of warps multiply different matrices");
    t.waits.push_back({t.issued++, c, t.open});
    if (++p.issued == group_threads)
        look_again(p);
}

void tgi_emulated_wgmma_commit(void)
{
    mine().open++;
}

void tgi_emulated_wgmma_wait(int groups_left)
{
    thread_products &t = mine();
    std::vector<product> &all = my_group().products;
    while (!t.waits.empty() && t.waits.front().in + (unsigned)groups_left < t.open) {
        product &p = all[t.waits.front().product];
        compute(p, (int)tg_emulated_thread() % group_threads, t.waits.front().c);
        t.waits.pop_front();
        if (++p.done < group_threads)
            continue;
        look_again(p);
        p.left = p.right = factor();
        p.left_values = p.right_values = std::vector<float>();
    }
}

int tg_emulated_wgmma_pending(void)
{
    for (const thread_products &t : m.threads)
        if (m.block == tg_emulated_block() && !t.waits.empty())
            return 1;
    return 0;
}
