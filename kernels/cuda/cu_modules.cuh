/* cu_modules.cuh - each source that includes this is known to cu_modules.cu by an empty kernel. */
#ifndef TGI_CU_MODULES_CUH
#define TGI_CU_MODULES_CUH

struct cu_module {
    const void *kernel;
    const cu_module *next;
    explicit inline cu_module(const void *a_kernel);
};
inline const cu_module *cu_modules = nullptr; /* all of them */

cu_module::cu_module(const void *a_kernel) : kernel(a_kernel), next(cu_modules)
{
    cu_modules = this;
}

static __global__ void cu_module_kernel(void)
{
}
static const cu_module cu_module_here((const void *)cu_module_kernel);

#endif
