/* cu_modules.cu - loads every kernel of the plugin when a device is opened, so that what is free
 * afterwards stays free: a driver that loads them lazily takes their memory at the first launch.
 *
 * A source's kernels are one module. The runtime finds it by any kernel in it, here an empty one
 * (cu_modules.cuh); the driver, by its own library, names the others and loads them.
 * @source CUDA Driver API, Module Management: cuModuleEnumerateFunctions, cuFuncLoad (12.4). */
#include "kernels/cuda/cu_plugin.cuh"

#ifndef TG_CUDA_EMULATED
#include <dlfcn.h>
#endif

/* Calls of the driver, all of which answer 0 for success. */
struct module_calls {
    int (*of_kernel)(void **module, cudaFunction_t kernel);
    int (*count)(unsigned *n, void *module);
    int (*list)(cudaFunction_t *kernels, unsigned n, void *module);
    int (*load)(cudaFunction_t kernel);
};

#ifdef TG_CUDA_EMULATED
#define driver_call tg_emulated_driver_call
#else
static void *driver_call(const char *name)
{
    /* The runtime has opened it. It stays open: the handle is counted, nothing else. */
    static void *const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}
#endif

/* 0: the driver is older than these calls. */
static int find_calls(module_calls *c)
{
    *(void **)&c->of_kernel = driver_call("cuFuncGetModule");
    *(void **)&c->count = driver_call("cuModuleGetFunctionCount");
    *(void **)&c->list = driver_call("cuModuleEnumerateFunctions");
    *(void **)&c->load = driver_call("cuFuncLoad");
    return c->of_kernel && c->count && c->list && c->load;
}

static tg_status load_module(const module_calls *c, cudaFunction_t any, tgi_err *err)
{
    void *module = NULL;
    unsigned n = 0;
    if (c->of_kernel(&module, any) != 0 || c->count(&n, module) != 0)
        return TG_OK;
    cudaFunction_t *all =
        (cudaFunction_t *)tgi_calloc(TGI_TAG_MISC, n + 1, sizeof(cudaFunction_t));
    if (!all)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the names of %u kernels", n);
    int e = c->list(all, n, module);
    for (unsigned i = 0; i < n && e == 0; i++)
        e = c->load(all[i]);
    tgi_free(all);
    return TG_OK;
}

tg_status cu_modules_load(tgi_err *err)
{
    module_calls c;
    if (!find_calls(&c))
        return TG_OK;
    for (const cu_module *m = cu_modules; m; m = m->next) {
        cudaFunction_t any = NULL;
        if (cudaGetFuncBySymbol(&any, m->kernel) == cudaSuccess)
            TGI_TRY(load_module(&c, any, err));
        else
            (void)cudaGetLastError(); /* made for other devices */
    }
    return TG_OK;
}
