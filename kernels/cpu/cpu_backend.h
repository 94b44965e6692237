/* cpu_backend.h - the tables that the compiled instruction sets export; nothing else of
 * kernels/cpu is visible outside it. */
#ifndef TG_CPU_BACKEND_H
#define TG_CPU_BACKEND_H

#include "kernels/backend.h"

extern const tg_backend tgi_backend_portable, tgi_backend_avx2, tgi_backend_avx512;

#endif
