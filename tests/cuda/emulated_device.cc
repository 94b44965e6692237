/* emulated_device.cc - a device whose work is done when it is asked for, by the emulator:
 * memory is the host's, queues have nothing to wait for. Enough of kernels/device.h to test
 * kernels with; the plugin's own host side is tested elsewhere. */
#include "kernels/cuda/cu_library.cuh"

extern "C" {
#include "engine/base/mem.h"
#include "tests/cuda/device_run.h"
}

const tgi_kernel_set *cu_backend_of(tg_dtype element);
void cu_pixels_put(const tgi_device_step *step);

/* Launches that are only looked at. */
struct launch_log {
    uint64_t hash;
    int n;
};

void cu_put(void *recorder, const void *kernel, dim3 grid, dim3 block, unsigned shared_bytes,
            const void *args, size_t args_bytes)
{
    launch_log *log = (launch_log *)recorder;
    if (log) {
        const uint64_t what[] = {(uint64_t)(uintptr_t)kernel,
                                 grid.x,
                                 grid.y,
                                 grid.z,
                                 block.x,
                                 block.y,
                                 block.z,
                                 shared_bytes,
                                 args_bytes};
        for (uint64_t w : what)
            log->hash = (log->hash ^ w) * 1099511628211u;
        log->n++;
        return;
    }
    tg_emulate(kernel, grid, block, shared_bytes, args, args_bytes);
}

struct tgi_device_program {
    int n;
};

namespace
{

/* What the last step's product was answered, and what it was of. */
tg_status product_status;
tgi_err product_err;
cu_library *library;

void multiply(const cu_product *p)
{
    cu_library_product *o = NULL;
    if (!library)
        product_status = tgi_fail(&product_err, TG_E_UNSUPPORTED, "the library is not open");
    else
        product_status = cu_library_product_open(library, p, "a product", &o, &product_err);
    if (product_status == TG_OK)
        product_status = cu_library_product_run(o, p, NULL, NULL, &product_err);
    cu_library_product_close(&o);
}

} // namespace

/* A form is as good as a kernel's launch: it may not differ from band to band. */
void cu_put_product(void *recorder, const cu_product *p)
{
    launch_log *log = (launch_log *)recorder;
    if (!log) {
        multiply(p);
        return;
    }
    const unsigned char *form = (const unsigned char *)&p->form;
    for (size_t i = 0; i < sizeof p->form; i++)
        log->hash = (log->hash ^ form[i]) * 1099511628211u;
    log->n++;
}

namespace
{

tg_status alloc(tgi_device *, size_t bytes, void **at, tgi_err *err)
{
    *at = tgi_malloc(TGI_TAG_MISC, bytes); /* aligned to 64 bytes, and no byte longer */
    return *at ? TG_OK : tgi_fail(err, TG_E_NOMEM, "%zu bytes", bytes);
}
void release(tgi_device *, void *at)
{
    tgi_free(at);
}
tg_status copy_over(tgi_device *, tgi_device_queue, void *dst, const void *src, size_t bytes,
                    tgi_err *)
{
    memcpy(dst, src, bytes);
    return TG_OK;
}
tg_status sync(tgi_device *, tgi_device_event *, tgi_err *)
{
    return TG_OK;
}
tg_status program_open(tgi_device *, tgi_device_queue, const tgi_device_step *, int n,
                       tgi_device_program **out, size_t *bytes, tgi_err *)
{
    *bytes = 0;
    if (out)
        *out = new tgi_device_program{n};
    return TG_OK;
}
void program_close(tgi_device_program **p)
{
    delete *p;
    *p = NULL;
}
tg_status program_run(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err)
{
    product_status = TG_OK;
    product_err = {};
    for (int i = 0; i < p->n && product_status == TG_OK; i++)
        if (steps[i].kind == TGI_STEP_NODE)
            steps[i].variant->run(&steps[i].call);
        else
            cu_pixels_put(&steps[i]);
    return product_status == TG_OK ? TG_OK
                                   : tgi_fail(err, product_status, "%s", product_err.text);
}
tg_status open_library(tgi_device *, int open, tgi_err *err)
{
    cu_library_close(&library);
    return open ? cu_library_open(13, &library, err) : TG_OK;
}

tgi_device_ops table()
{
    tgi_device_ops t = {};
    t.abi = TGI_DEVICE_ABI;
    t.name = "emulated";
    t.backend = cu_backend_of;
    t.alloc = alloc;
    t.release = release;
    t.upload = copy_over;
    t.download = copy_over;
    t.sync = sync;
    t.program_open = program_open;
    t.program_close = program_close;
    t.program_run = program_run;
    t.library = open_library;
    return t;
}

} // namespace

uint64_t device_launches(const tgi_variant *v, const tgi_call *call, int *n)
{
    launch_log log = {14695981039346656037u, 0};
    tgi_call with = *call;
    with.recorder = &log;
    v->run(&with);
    *n = log.n;
    return log.hash;
}

const tgi_device_ops *device_of_test(tgi_device **d)
{
    static const tgi_device_ops ops = table();
    *d = NULL;
    return &ops;
}

void device_generation(int capability)
{
    tgi_emulated_ampere = capability >= 80;
    tg_emulated_shared_most = capability >= 90 ? 227 << 10 : 64 << 10;
}

void device_blocks(unsigned last)
{
    tg_emulated_last = last;
}

unsigned device_kinds(void)
{
    return (tgi_emulated_ampere ? TGI_KIND_TF32 : 0) |
           (tg_emulated_shared_most > 64 << 10 ? TGI_KIND_WGMMA : 0);
}

int device_has(tg_dtype element)
{
    return element != TGI_DTYPE_BF16 || tgi_emulated_ampere;
}
