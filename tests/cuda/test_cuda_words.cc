/* The words that are spoken of cuBLASLt (kernels/cuda/cu_cublaslt.cuh), to the real library
 * where one is installed: descriptors are made without a device, and a number that means
 * something else there, or is of another size, is refused. Without a library it is skipped. */
#include "kernels/cuda/cu_cublaslt.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

extern "C" {
#include "tests/tg_test.h"
}

#define MEMBER(member, symbol, result, arguments) static result(*member) arguments;
CU_LT_FUNCTIONS(MEMBER)
#undef MEMBER

/* The newest there is. */
static void *open_library(int *major)
{
    for (*major = 13; *major >= 11; (*major)--) {
        char file[32];
        snprintf(file, sizeof file, "libcublasLt.so.%d", *major);
        void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (so)
            return so;
    }
    return NULL;
}

static int library_major;

static void test_it_has_every_function_and_the_version_of_its_name(void)
{
    int value = 0;
    CHECK_EQ(property(CU_LT_MAJOR, &value), CU_LT_SUCCESS);
    CHECK_EQ(value, library_major);
    CHECK_EQ(property(CU_LT_MINOR, &value), CU_LT_SUCCESS);
    CHECK_EQ(property(CU_LT_PATCH, &value), CU_LT_SUCCESS);
    CHECK_STR(status_name(CU_LT_SUCCESS), "CUBLAS_STATUS_SUCCESS");
    CHECK_STR(status_name(CU_LT_ALLOC_FAILED), "CUBLAS_STATUS_ALLOC_FAILED");
    CHECK_STR(status_name(CU_LT_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
}

static void test_layouts_know_columns_batches_and_their_distance(void)
{
    const int types[] = {CU_LT_F32, CU_LT_F16, CU_LT_BF16};
    for (int type : types) {
        cu_lt_layout l = NULL;
        const uint64_t columns = 77;
        const int32_t batches = 3;
        const int64_t stride = 7777;
        CHECK_EQ(layout_new(&l, type, 64, 1024, 64), CU_LT_SUCCESS);
        CHECK_EQ(layout_set(l, CU_LT_COLUMNS, &columns, sizeof columns), CU_LT_SUCCESS);
        CHECK_EQ(layout_set(l, CU_LT_BATCHES, &batches, sizeof batches), CU_LT_SUCCESS);
        CHECK_EQ(layout_set(l, CU_LT_BATCH_STRIDE, &stride, sizeof stride), CU_LT_SUCCESS);
        CHECK(layout_set(l, CU_LT_BATCHES, &stride, sizeof stride) != CU_LT_SUCCESS);
        CHECK_EQ(layout_free(l), CU_LT_SUCCESS);
    }
}

static void test_operations_know_transposing_and_what_follows(void)
{
    cu_lt_operation o = NULL;
    const int32_t turned = CU_LT_TRANSPOSED;
    const uint32_t both = CU_LT_EPILOGUE_BIAS | CU_LT_EPILOGUE_RELU;
    const void *bias = &both;
    CHECK_EQ(operation_new(&o, CU_LT_COMPUTE_F32, CU_LT_F32), CU_LT_SUCCESS);
    CHECK_EQ(operation_set(o, CU_LT_TRANSPOSE_A, &turned, sizeof turned), CU_LT_SUCCESS);
    CHECK_EQ(operation_set(o, CU_LT_TRANSPOSE_B, &turned, sizeof turned), CU_LT_SUCCESS);
    CHECK_EQ(operation_set(o, CU_LT_EPILOGUE, &both, sizeof both), CU_LT_SUCCESS);
    CHECK_EQ(operation_set(o, CU_LT_BIAS, &bias, sizeof bias), CU_LT_SUCCESS);
    CHECK(operation_set(o, CU_LT_BIAS, &turned, sizeof turned) != CU_LT_SUCCESS);
    CHECK_EQ(operation_free(o), CU_LT_SUCCESS);
}

static void test_preferences_know_all_that_is_wished(void)
{
    cu_lt_preference p = NULL;
    const uint64_t none = 0, float32 = ~CU_LT_NOT_FLOAT32;
    const uint32_t reductions = CU_LT_REDUCTION_NONE, aligned = 16;
    CHECK_EQ(preference_new(&p), CU_LT_SUCCESS);
    CHECK_EQ(preference_set(p, CU_LT_MOST_WORKSPACE, &none, sizeof none), CU_LT_SUCCESS);
    CHECK_EQ(preference_set(p, CU_LT_REDUCTIONS, &reductions, sizeof reductions),
             CU_LT_SUCCESS);
    for (int i = CU_LT_ALIGNMENT_A; i <= CU_LT_ALIGNMENT_D; i++)
        CHECK_EQ(preference_set(p, i, &aligned, sizeof aligned), CU_LT_SUCCESS);
    CHECK_EQ(preference_set(p, CU_LT_IMPLEMENTATIONS, &float32, sizeof float32), CU_LT_SUCCESS);
    CHECK(preference_set(p, CU_LT_IMPLEMENTATIONS, &aligned, sizeof aligned) != CU_LT_SUCCESS);
    CHECK_EQ(preference_free(p), CU_LT_SUCCESS);
}

static void test_algorithms_say_how_they_split(void)
{
    cu_lt_algorithm a;
    int32_t parts = 7;
    uint32_t reduction = 7;
    size_t n = 0;
    memset(&a, 0, sizeof a);
    CHECK_EQ(configured(&a, CU_LT_SPLIT_K, &parts, sizeof parts, &n), CU_LT_SUCCESS);
    CHECK(n == sizeof parts && parts == 0);
    CHECK_EQ(configured(&a, CU_LT_REDUCTION, &reduction, sizeof reduction, &n), CU_LT_SUCCESS);
    CHECK(n == sizeof reduction && reduction == CU_LT_REDUCTION_NONE);
}

int main(void)
{
    void *so = open_library(&library_major);
    if (!so) {
        printf("skipped: there is no libcublasLt.so of 11 to 13\n");
        return 77;
    }
#define FIND(member, symbol, result, arguments)                                                \
    *(void **)(void *)&member = dlsym(so, #symbol);                                            \
    CHECK(member != NULL);
    CU_LT_FUNCTIONS(FIND)
#undef FIND
    if (!tg_failures) {
        RUN(test_it_has_every_function_and_the_version_of_its_name);
        RUN(test_layouts_know_columns_batches_and_their_distance);
        RUN(test_operations_know_transposing_and_what_follows);
        RUN(test_preferences_know_all_that_is_wished);
        RUN(test_algorithms_say_how_they_split);
    }
    (void)dlclose(so);
    return TEST_END();
}
