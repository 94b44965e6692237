/* cu_cublaslt.cuh - the few words of cuBLASLt that are spoken here: numbers, and the shapes of
 * functions. Written down, not included: the library is opened at run time, by a plugin that
 * may have been built where its header is not, and descriptors are made by the library itself,
 * whose sizes differ between its versions 11, 12 and 13. What is here is the same in all three;
 * where the header is, cu_library.cu compares.
 *
 * @source cuBLAS library reference: cuBLASLt data types and functions. */
#ifndef TGI_CU_CUBLASLT_CUH
#define TGI_CU_CUBLASLT_CUH

#include <stddef.h>
#include <stdint.h>

enum { CU_LT_SUCCESS = 0, CU_LT_ALLOC_FAILED = 3, CU_LT_NOT_SUPPORTED = 15 };
enum { CU_LT_MAJOR = 0, CU_LT_MINOR = 1, CU_LT_PATCH = 2 }; /* properties */
enum { CU_LT_F32 = 0, CU_LT_F16 = 2, CU_LT_BF16 = 14 };     /* numbers */
enum { CU_LT_COMPUTE_F32 = 68 };
enum { CU_LT_TRANSPOSED = 1 };
enum { CU_LT_EPILOGUE_NONE = 1, CU_LT_EPILOGUE_RELU = 2, CU_LT_EPILOGUE_BIAS = 4 };
enum { /* of a layout */
       CU_LT_COLUMNS = 3,
       CU_LT_BATCHES = 5,
       CU_LT_BATCH_STRIDE = 6
};
enum { /* of an operation */
       CU_LT_TRANSPOSE_A = 3,
       CU_LT_TRANSPOSE_B = 4,
       CU_LT_EPILOGUE = 7,
       CU_LT_BIAS = 8
};
enum { /* of a preference */
       CU_LT_MOST_WORKSPACE = 1,
       CU_LT_REDUCTIONS = 3,
       CU_LT_ALIGNMENT_A = 5,
       CU_LT_ALIGNMENT_B = 6,
       CU_LT_ALIGNMENT_C = 7,
       CU_LT_ALIGNMENT_D = 8,
       CU_LT_IMPLEMENTATIONS = 12
};
enum { CU_LT_REDUCTION_NONE = 0 };
enum { CU_LT_SPLIT_K = 2, CU_LT_REDUCTION = 3 }; /* of an algorithm */
/* Implementations that do not multiply float32 numbers as such: matrix units, and numbers cut
 * to fewer bits. */
#define CU_LT_NOT_FLOAT32                                                                      \
    ((uint64_t)0xfe | (uint64_t)0x01 << 16 | (uint64_t)0x02 << 16 | (uint64_t)0x04 << 16)

typedef struct cu_lt_algorithm {
    uint64_t data[8];
} cu_lt_algorithm;

typedef struct cu_lt_found {
    cu_lt_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} cu_lt_found;

typedef struct cublasLtContext *cu_lt_handle;
typedef void *cu_lt_layout, *cu_lt_operation,
    *cu_lt_preference; /* pointers to opaque structs */

/* X(member, symbol, result, arguments) for each function that is called. */
#define CU_LT_FUNCTIONS(X)                                                                     \
    X(property, cublasLtGetProperty, int, (int which, int *value))                             \
    X(status_name, cublasLtGetStatusName, const char *, (int status))                          \
    X(create, cublasLtCreate, int, (cu_lt_handle *))                                           \
    X(destroy, cublasLtDestroy, int, (cu_lt_handle))                                           \
    X(layout_new, cublasLtMatrixLayoutCreate, int,                                             \
      (cu_lt_layout *, int type, uint64_t rows, uint64_t columns, int64_t ld))                 \
    X(layout_free, cublasLtMatrixLayoutDestroy, int, (cu_lt_layout))                           \
    X(layout_set, cublasLtMatrixLayoutSetAttribute, int,                                       \
      (cu_lt_layout, int which, const void *value, size_t bytes))                              \
    X(operation_new, cublasLtMatmulDescCreate, int,                                            \
      (cu_lt_operation *, int compute, int scale))                                             \
    X(operation_free, cublasLtMatmulDescDestroy, int, (cu_lt_operation))                       \
    X(operation_set, cublasLtMatmulDescSetAttribute, int,                                      \
      (cu_lt_operation, int which, const void *value, size_t bytes))                           \
    X(preference_new, cublasLtMatmulPreferenceCreate, int, (cu_lt_preference *))               \
    X(preference_free, cublasLtMatmulPreferenceDestroy, int, (cu_lt_preference))               \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute, int,                               \
      (cu_lt_preference, int which, const void *value, size_t bytes))                          \
    X(find, cublasLtMatmulAlgoGetHeuristic, int,                                               \
      (cu_lt_handle, cu_lt_operation, cu_lt_layout a, cu_lt_layout b, cu_lt_layout c,          \
       cu_lt_layout d, cu_lt_preference, int most, cu_lt_found *, int *n))                     \
    X(check, cublasLtMatmulAlgoCheck, int,                                                     \
      (cu_lt_handle, cu_lt_operation, cu_lt_layout a, cu_lt_layout b, cu_lt_layout c,          \
       cu_lt_layout d, const cu_lt_algorithm *, cu_lt_found *))                                \
    X(configured, cublasLtMatmulAlgoConfigGetAttribute, int,                                   \
      (const cu_lt_algorithm *, int which, void *value, size_t bytes, size_t *written))        \
    X(multiply, cublasLtMatmul, int,                                                           \
      (cu_lt_handle, cu_lt_operation, const void *alpha, const void *a, cu_lt_layout,          \
       const void *b, cu_lt_layout, const void *beta, const void *c, cu_lt_layout, void *d,    \
       cu_lt_layout, const cu_lt_algorithm *, void *workspace, size_t workspace_bytes,         \
       void *stream))

#endif
