/* cpu_backend.h - the tables that the compiled instruction sets export; nothing else of
 * kernels/cpu is visible outside it. */
#ifndef TGI_CPU_BACKEND_H
#define TGI_CPU_BACKEND_H

#include "kernels/backend.h"

extern const tgi_kernel_set tgi_backend_portable, tgi_backend_avx2, tgi_backend_avx512;
/* The same for plans alone, on processors that do not have the set. */
extern const tgi_kernel_set tgi_backend_avx2_plan, tgi_backend_avx512_plan;

#endif
