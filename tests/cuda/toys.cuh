/* toys.cuh - kernels that host-side tests put into programs: y[i] = i + add, and y[i] = 2 *
 * x[i]. */
#ifndef TG_CUDA_TOYS_CUH
#define TG_CUDA_TOYS_CUH

#include "kernels/cuda/cu_common.cuh"

struct toy_args {
    const float *x;
    float *y;
    int64_t n;
    float add;
};

CU_KERNEL(toy_count_kernel, toy_args, 64, 1)
{
    const int64_t i = (int64_t)blockIdx.x * 64 + threadIdx.x;
    if (i < a->n)
        a->y[i] = (float)i + a->add;
}

CU_KERNEL(toy_double_kernel, toy_args, 64, 1)
{
    const int64_t i = (int64_t)blockIdx.x * 64 + threadIdx.x;
    if (i < a->n)
        a->y[i] = 2 * a->x[i];
}

static unsigned shared_wanted;

static void launch_toy(const tgi_call *c, void (*kernel)(const toy_args *))
{
    const toy_args a = {c->src[0].seg[0].base, c->dst[0].base, tgi_range_len(c->box.ax[3]),
                        (float)c->box.ax[3].lo};
    cu_launch(c, kernel, dim3((unsigned)((c->most[3] + 63) / 64)), dim3(64), shared_wanted, a);
}

static void toy_count(const tgi_call *c)
{
    launch_toy(c, toy_count_kernel);
}

static void toy_double(const tgi_call *c)
{
    launch_toy(c, toy_double_kernel);
}

static tgi_variant toy_variant(const char *name, void (*run)(const tgi_call *))
{
    tgi_variant v = {};
    v.name = name;
    v.op = "Toy";
    v.run = run;
    return v;
}

static const tgi_variant count_variant = toy_variant("toy_count", toy_count),
                         double_variant = toy_variant("toy_double", toy_double);

#endif
