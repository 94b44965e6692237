/* cu_library.cuh - cuBLASLt, opened when somebody asks for it, and the products it computes.
 *
 * Nothing is linked: libcublasLt.so of the plugin's own major version of CUDA, or what
 * TEGULA_CUBLASLT names ("none": nothing), is opened at run time.
 *
 * BITS. A result must not depend on where its pixel lies in a launch. So a product has one
 * algorithm, found for its form (cu_product.cuh), and that one
 *   - splits no sum: no reduction scheme, K in one part;
 *   - gets a workspace of 64 bytes: room to count tiles in, which products of more than a wave
 *     of blocks want on compute capability 9.0 (4 bytes), and no place where blocks could hand
 *     each other parts of a sum, whatever an algorithm's attributes leave unsaid (stream-K).
 *     Each queue has its own;
 *   - multiplies float32 numbers as such, on no matrix units.
 * It is named to the library in each call, which takes it or answers that it does not; it never
 * takes another. What is not able to compute the largest piece is refused when a program is
 * opened (TG_E_UNSUPPORTED: plan without the library); an answer during a run is the device's
 * failure.
 *
 * @source cuBLAS library reference: cublasLtMatmul, heuristics, algorithm attributes. */
#ifndef TGI_CU_LIBRARY_CUH
#define TGI_CU_LIBRARY_CUH

#include "kernels/cuda/cu_product.cuh"
#ifdef TG_CUDA_EMULATED
#include "tests/cuda/cuda_runtime_emulated.h"
#endif

#define CU_LIBRARY_WORKSPACE 64 /* bytes of a product on the device, aligned to 256 */

struct cu_library;
struct cu_library_product; /* a form's algorithm and descriptors */

/* Open the library of this major version, with a handle for the current device. It has computed
 * nothing yet. TG_E_UNSUPPORTED with the reason when it is not there or does not fit. */
tg_status cu_library_open(int major, cu_library **out, tgi_err *err);
int cu_library_products(const cu_library *l); /* that are open */
/* No product may be open. */
void cu_library_close(cu_library **l);
/* "cuBLASLt 13.1.0" */
const char *cu_library_name(const cu_library *l);

/* The algorithm for a product's form, able to compute its largest piece. TG_E_UNSUPPORTED:
 * there is none. `step` names it in errors. */
tg_status cu_library_product_open(cu_library *l, const cu_product *p, const char *step,
                                  cu_library_product **out, tgi_err *err);
void cu_library_product_close(cu_library_product **p);
/* Put all pieces into the stream. `workspace`: CU_LIBRARY_WORKSPACE bytes of the device that
 * nothing beside this stream uses. TG_E_INTERNAL: the form is another than when it was opened.
 */
tg_status cu_library_product_run(cu_library_product *o, const cu_product *p, void *workspace,
                                 cudaStream_t q, tgi_err *err);

#endif
