/* The emulated device itself: numbers, warps, barriers, shared memory and copies behave as the
 * language says, and the wrappers of cu_mma.cuh and cu_wgmma.cuh as fragments and descriptors
 * are defined. What it finds, it finds in toys that are wrong. */
#include "kernels/cuda/cu_gemm.cuh"
#include "kernels/cuda/cu_wgmma.cuh"

extern "C" {
#include "tests/tg_test.h"
}

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

template <class A>
static void launch(void (*kernel)(const A *), unsigned blocks, unsigned threads,
                   unsigned shared_bytes, const A &args)
{
    tg_emulate((const void *)kernel, dim3(blocks), dim3(threads), shared_bytes, &args,
               sizeof args);
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static void test_every_half_survives_the_way_to_float_and_back()
{
    int bad = 0;
    for (unsigned i = 0; i < 65536; i++) {
        const uint16_t bits = (uint16_t)i;
        const float f = tgi_half_bits_to_float(bits);
        bad +=
            isnan(f) ? tgi_float_to_half_bits(f) != 0x7fff : tgi_float_to_half_bits(f) != bits;
    }
    CHECK_EQ(bad, 0);
}

static void test_halves_round_to_the_nearest_ties_to_even()
{
    int bad = 0;
    for (unsigned i = 0; i < 0x7bff; i++) { /* between each two neighbours */
        const float lo = tgi_half_bits_to_float((uint16_t)i);
        const float hi = tgi_half_bits_to_float((uint16_t)(i + 1)), middle = (lo + hi) / 2;
        bad += tgi_float_to_half_bits(middle) != i + (i & 1);
        bad += tgi_float_to_half_bits(nextafterf(middle, 0)) != i;
        bad += tgi_float_to_half_bits(nextafterf(middle, 1e9f)) != i + 1;
    }
    CHECK_EQ(bad, 0);
    CHECK_EQ(tgi_float_to_half_bits(65519.99f), 0x7bff);
    CHECK_EQ(tgi_float_to_half_bits(-65520.0f), 0xfc00);
}

static void test_rows_of_a_ring_are_found_without_a_division()
{
    uint64_t seed = 88172645463325252ull;
    int bad = 0;
    for (int i = 0; i < 200000; i++) {
        const uint32_t ring = (uint32_t)tg_rand_in(&seed, 2, i % 2 ? 70 : INT32_MAX);
        const uint32_t magic = (uint32_t)(((uint64_t)1 << 32) / ring + 1);
        const int32_t most = i % 3 ? INT32_MAX : 100000;
        int32_t n = (int32_t)tg_rand_in(&seed, 0, most);
        n -= i % 5 ? 0 : n % (int32_t)ring; /* the first of a round */
        n -= i % 7 || n == 0 ? 0 : 1;       /* or the last */
        bad += cu_ring(n, ring, magic) != (int32_t)((uint32_t)n % ring);
    }
    CHECK_EQ(bad, 0);
}

/* ---- Threads ----------------------------------------------------------------------------- */

struct sum_args {
    const int *in;
    int *out;
};

CU_KERNEL(sum_kernel, sum_args, 96, 1)
{
    CU_SHARED(int, part, 3);
    int v = a->in[blockIdx.x * 96 + threadIdx.x];
    for (int by = 16; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, by);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 95)
        a->out[blockIdx.x] = part[0] + part[1] + part[2];
}

static void test_warps_and_blocks_meet()
{
    int in[4 * 96], out[4], want[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4 * 96; i++) {
        in[i] = i * i;
        want[i / 96] += i * i;
    }
    const sum_args args = {in, out};
    launch(sum_kernel, 4, 96, 0, args);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(out[i], want[i]);
}

struct poison_args {
    int *numbers;
};

CU_KERNEL(poison_kernel, poison_args, 32, 1)
{
    CU_SHARED(float, mine, 32);
    CU_DYNAMIC_SHARED(float, asked);
    a->numbers[0] += !isnan(mine[threadIdx.x]) + !isnan(asked[threadIdx.x]);
    mine[threadIdx.x] = asked[threadIdx.x] = 1;
}

static void test_shared_memory_holds_no_number_before_it_is_written()
{
    int numbers = 0;
    const poison_args args = {&numbers};
    launch(poison_kernel, 3, 32, 128, args);
    CHECK_EQ(numbers, 0);
}

struct copy_args {
    const float *in;
    int *early, *late, *zeros;
};

CU_KERNEL(copy_kernel, copy_args, 1, 1)
{
    CU_SHARED(float, to, 12);
    cu_copy16(to, a->in, true);
    cu_copy_commit();
    cu_copy16(to + 4, a->in + 4, true);
    cu_copy16(to + 8, a->in, false);
    cu_copy_commit();
    a->early[0] = isnan(to[0]);
    cu_copy_wait<1>();
    a->late[0] = to[3] == 3 && isnan(to[4]);
    cu_copy_wait<0>();
    a->zeros[0] = to[7] == 7 && to[8] == 0 && to[11] == 0;
}

static void test_copies_arrive_when_their_group_is_waited_for()
{
    const float in[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int early = 0, late = 0, zeros = 0;
    const copy_args args = {in, &early, &late, &zeros};
    launch(copy_kernel, 1, 1, 0, args);
    CHECK(early && late && zeros);
}

/* ---- Products ---------------------------------------------------------------------------- */

struct product_args {
    const __half *a, *b; /* 16 x 16 by rows, 16 x 8 by columns */
    float *c;            /* 16 x 8 */
};

CU_KERNEL(product_kernel, product_args, 32, 1)
{
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    uint32_t x[4], y[2];
    float c[4] = {1, 1, 1, 1};
    cu_ldmatrix4(x, a->a + lane % 16 * 16 + lane / 16 * 8);
    cu_ldmatrix2(y, a->b + lane % 8 * 16 + (lane / 8 & 1) * 8);
    cu_mma16(c, x, y);
    for (int i = 0; i < 4; i++)
        a->c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}

static void test_a_warp_multiplies_matrices()
{
    alignas(16) __half a[256], b[128];
    float c[128];
    uint64_t seed = 7;
    for (int i = 0; i < 256; i++)
        a[i] = __half((float)tg_rand_in(&seed, -9, 9));
    for (int i = 0; i < 128; i++)
        b[i] = __half((float)tg_rand_in(&seed, -9, 9));
    for (tgi_emulated_ampere = 0; tgi_emulated_ampere < 2; tgi_emulated_ampere++) {
        const product_args args = {a, b, c};
        int bad = 0;
        launch(product_kernel, 1, 32, 0, args);
        for (int m = 0; m < 16; m++)
            for (int n = 0; n < 8; n++) {
                float want = 1;
                for (int k = 0; k < 16; k++)
                    want += (float)a[m * 16 + k] * (float)b[n * 16 + k];
                bad += c[m * 8 + n] != want;
            }
        CHECK_EQ(bad, 0);
    }
    tgi_emulated_ampere = 1;
}

/* Numbers of a factor lie in core matrices of 8 rows and 8 columns, `across` bytes apart, the
 * second half of the columns `along` further. */
struct group_args {
    const __half *a, *b; /* [64][16], [256][16] */
    float *c;            /* [64][256] */
    int across, along;
};

CU_KERNEL(group_kernel, group_args, 128, 1)
{
    CU_DYNAMIC_SHARED(unsigned char, shared);
    const int t = (int)threadIdx.x, g = t % 32 / 4 + t / 32 * 16;
    unsigned char *left = shared + 48, *right = shared + 16384;
    float c[128];
    for (int row = t; row < 320; row += 128)
        for (int k = 0; k < 16; k += 8) {
            const __half *from = row < 256 ? a->b + row * 16 + k : a->a + (row - 256) * 16 + k;
            unsigned char *to = row < 256 ? right : left;
            cu_copy16(to + row % 256 / 8 * a->across + row % 8 * 16 + k / 8 * a->along, from,
                      true);
        }
    cu_copy_commit();
    cu_copy_wait<0>();
    cu_fence_async();
    __syncthreads();
    cu_wgmma_fence();
    for (int i = 0; i < 2; i++) /* set, then added to */
        cu_wgmma_64x256<__half>(c, cu_wgmma_matrix(left, a->along, a->across),
                                cu_wgmma_matrix(right, a->along, a->across), i);
    cu_wgmma_commit();
    cu_wgmma_finish(c);
    for (int i = 0; i < 128; i++)
        a->c[(g + i / 2 % 2 * 8) * 256 + i / 4 * 8 + t % 4 * 2 + i % 2] = c[i];
}

static void test_a_group_of_warps_multiplies_matrices_that_descriptors_name()
{
    static __half a[64 * 16], b[256 * 16];
    static float c[64 * 256];
    uint64_t seed = 9;
    for (__half &v : a)
        v = __half((float)tg_rand_in(&seed, -9, 9));
    for (__half &v : b)
        v = __half((float)tg_rand_in(&seed, -9, 9));
    for (int wide = 0; wide < 2; wide++) {
        const group_args args = {a, b, c, wide ? 272 : 128, wide ? 128 : 4096 + 16};
        int bad = 0;
        launch(group_kernel, 1, 128, 32768, args);
        for (int m = 0; m < 64; m++)
            for (int n = 0; n < 256; n++) {
                float want = 0;
                for (int k = 0; k < 16; k++)
                    want += 2 * (float)a[m * 16 + k] * (float)b[n * 16 + k];
                bad += c[m * 256 + n] != want;
            }
        CHECK_EQ(bad, 0);
    }
}

struct descriptor_args {
    uint64_t *out;
};

CU_KERNEL(descriptor_kernel, descriptor_args, 1, 1)
{
    CU_DYNAMIC_SHARED(unsigned char, shared);
    a->out[0] = cu_wgmma_matrix(shared + 32, 1024, 160);
    a->out[1] = cu_wgmma_moved(a->out[0], 4096);
}

/* Shared memory begins at 1024 here. */
static void test_a_descriptor_has_its_fields_where_the_manual_says()
{
    uint64_t out[2];
    const descriptor_args args = {out};
    launch(descriptor_kernel, 1, 1, 8192, args);
    CHECK_EQ(out[0], (uint64_t)(1056 / 16) | (uint64_t)64 << 16 | (uint64_t)10 << 32);
    CHECK_EQ(out[1], (uint64_t)(5152 / 16) | (uint64_t)64 << 16 | (uint64_t)10 << 32);
}

/* ---- What is wrong ----------------------------------------------------------------------- */

enum fault {
    READS,
    WRITES,
    READS_ONE,
    COPIES_FROM,
    COPIES_TO,
    MATRIX,
    MATRIX_TURNED,
    ENDS_EARLY,
    ENDS_LATE,
    OTHER_BARRIER,
    COPIES,
    BRAINS,
    TF32S
};

struct fault_args {
    float *numbers; /* 64, aligned to 16 bytes */
    int fault, by;  /* how many bytes beside where it should be */
};

CU_KERNEL(misplaced_kernel, fault_args, 32, 1)
{
    CU_DYNAMIC_SHARED(unsigned char, shared);
    uint32_t r[4] = {0, 0, 0, 0}, b[2] = {0, 0};
    float c[4] = {0, 0, 0, 0};
    unsigned char *at = (unsigned char *)a->numbers + a->by;
    if (a->fault == READS)
        c[0] = (float)cu_get_bits<cu_bits<16>>(at).at[0];
    else if (a->fault == WRITES)
        cu_put_bits(at, cu_bits<16>());
    else if (a->fault == READS_ONE)
        c[0] = __ldg((const float *)at);
    else if (a->fault == MATRIX)
        cu_ldmatrix4(r, shared + a->by);
    else if (a->fault == MATRIX_TURNED)
        cu_ldmatrix4_turned(r, shared + a->by);
    else if (a->fault == BRAINS)
        cu_mma_bf16(c, r, b);
    else if (a->fault == TF32S)
        cu_mma_tf32(c, r, b);
    else
        cu_copy16(shared + (a->fault == COPIES_TO ? a->by : 0),
                  a->fault == COPIES_FROM ? (void *)at : (void *)a->numbers, true);
}

CU_KERNEL(parted_kernel, fault_args, 64, 1)
{
    const int me = (int)threadIdx.x, with = a->by;
    if (with && me == (a->fault == ENDS_EARLY ? 0 : 63) && a->fault != OTHER_BARRIER)
        return;
    if (!with || a->fault != OTHER_BARRIER || me < 32)
        __syncthreads();
    else
        __syncthreads();
    a->numbers[me] = 1;
}

/* What the program says when such a launch ends it; "" where it does not. */
static const char *last_words(int fault, int by)
{
    static char said[8192]; /* sanitizers speak of the stack that is left */
    alignas(16) static float numbers[128];
    int pipes[2];
    ssize_t n = 0, more;
    fflush(NULL);
    CHECK_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        const fault_args args = {numbers, fault, by};
        setrlimit(RLIMIT_CORE, &none);
        dup2(pipes[1], 2);
        if (fault == ENDS_EARLY || fault == ENDS_LATE || fault == OTHER_BARRIER)
            launch(parted_kernel, 1, 64, 0, args);
        else
            launch(misplaced_kernel, 1, 32, 1024, args);
        _exit(0);
    }
    close(pipes[1]);
    while ((more = read(pipes[0], said + n, sizeof said - 1 - (size_t)n)) > 0)
        n += more;
    close(pipes[0]);
    said[n] = 0;
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(n == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                 : WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return said;
}

static void test_accesses_that_are_not_aligned_end_the_program()
{
    for (int fault = READS; fault <= MATRIX_TURNED; fault++) {
        CHECK_STR(last_words(fault, 0), "");
        CHECK_STR(last_words(fault, fault == READS_ONE ? 4 : 16), "");
        CHECK(strstr(last_words(fault, fault == READS_ONE ? 2 : 8), "not aligned") != NULL);
    }
}

static void test_threads_that_part_at_a_barrier_end_the_program()
{
    for (tg_emulated_order = 0; tg_emulated_order < 2; tg_emulated_order++)
        for (int fault = ENDS_EARLY; fault <= OTHER_BARRIER; fault++) {
            CHECK_STR(last_words(fault, 0), "");
            CHECK(strstr(last_words(fault, 1), "barrier") != NULL);
        }
    tg_emulated_order = 0;
}

static void test_the_first_tensor_cores_have_no_other_products_or_copies()
{
    for (int fault = COPIES; fault <= TF32S; fault++) {
        CHECK_STR(last_words(fault, 0), "");
        tgi_emulated_ampere = 0;
        CHECK(strstr(last_words(fault, 0), "on 7.5") != NULL);
        tgi_emulated_ampere = 1;
    }
}

struct order_args {
    int *unwritten; /* of each block */
};

/* Without a barrier each reads what the one before it wrote. */
CU_KERNEL(hasty_kernel, order_args, 64, 1)
{
    CU_SHARED(float, of, 65);
    of[0] = 0;
    of[threadIdx.x + 1] = 1;
    a->unwritten[blockIdx.x] += isnan(of[threadIdx.x]);
}

static void test_a_missing_barrier_shows_when_threads_begin_in_another_order()
{
    for (tg_emulated_order = 0; tg_emulated_order < 2; tg_emulated_order++) {
        int unwritten[2] = {0, 0};
        const order_args args = {unwritten};
        launch(hasty_kernel, 2, 64, 0, args);
        for (int b = 0; b < 2; b++)
            CHECK_EQ(unwritten[b] > 0, tg_emulated_order);
    }
    tg_emulated_order = 0;
}

int main()
{
    RUN(test_every_half_survives_the_way_to_float_and_back);
    RUN(test_halves_round_to_the_nearest_ties_to_even);
    RUN(test_rows_of_a_ring_are_found_without_a_division);
    RUN(test_warps_and_blocks_meet);
    RUN(test_shared_memory_holds_no_number_before_it_is_written);
    RUN(test_copies_arrive_when_their_group_is_waited_for);
    RUN(test_a_warp_multiplies_matrices);
    RUN(test_a_group_of_warps_multiplies_matrices_that_descriptors_name);
    RUN(test_a_descriptor_has_its_fields_where_the_manual_says);
    RUN(test_accesses_that_are_not_aligned_end_the_program);
    RUN(test_threads_that_part_at_a_barrier_end_the_program);
    RUN(test_the_first_tensor_cores_have_no_other_products_or_copies);
    RUN(test_a_missing_barrier_shows_when_threads_begin_in_another_order);
    return TEST_END();
}
