/* cu_program.cu - the steps of a band as graphs of launches over one block of parameters.
 *
 * A variant's `run` does not launch: it notes (kernel, shape, arguments) through cu_put.
 * Opening a program notes all steps once, for the list of launches and the place of each
 * launch's arguments in the block; then every run notes them again, straight into pinned
 * memory, and must find the same list:
 *
 *     run k:   steps --cu_put--> slot k % SLOTS (pinned) --copy--> block (device)
 *                                                                     |
 *              compute queue:   copy, graph [launch 0 -> launch 1 -> ...], each reads its place
 *
 * The copy and the graph stand in one queue, so one block on the device is enough: the copy of
 * run k+1 begins when the graph of run k has ended. A slot is written again when its copy has
 * been done, which an event tells; with SLOTS of them the caller runs ahead by that many bands.
 *
 * A launch's only argument is the address of its place, which never changes: so nothing of the
 * graph does. Where a graph cannot be made the same launches are made one by one. With
 * TEGULA_CUDA_STEPS=1 they are too, each waited for: an error is then that of its step.
 *
 * PARTS. A product that a library computes (cu_product.cuh) is no launch that we know: it is
 * noted like one, its words lie in the slot like arguments, and the caller hands it to the
 * library between two graphs. Without such steps a program is one graph.
 *
 *              compute queue:   copy, graph [launch 0 ...], product, graph [... last launch]
 *
 * @source CUDA Runtime API reference: graph management, cudaLaunchKernel, cudaFuncSetAttribute.
 */
#include "kernels/cuda/cu_plugin.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4
#define ARGS_ALIGN 64u                 /* of each launch's arguments in the block */
#define PLAIN_SHARED (48u << 10)       /* what a kernel has without asking */
#define PAGE ((size_t)2 << 20)         /* the driver takes device memory in these */
#define NODE_BYTES ((size_t)4 << 10)   /* of a graph on the device, per launch, at most */
#define GRAPH_BYTES ((size_t)64 << 10) /* of each graph beside the first */

typedef struct cu_note {
    const void *kernel; /* NULL: a product */
    dim3 grid, block;
    unsigned shared_bytes;
    int step;
    size_t at, bytes; /* of its arguments in the block */
} cu_note;

/* What cu_put writes into. Without a list it only counts. */
typedef struct cu_recorder {
    cu_note *list;
    uint8_t *args;
    int cap, n; /* launches and products */
    int products;
    size_t args_cap, used; /* bytes of arguments */
    int compare;           /* 1: the list is there, and what is noted must equal it */
    int differs;           /* index of the first launch that does not, plus 1 */
    int step;              /* being noted */
} cu_recorder;

/* Launches in a row, or one product. */
typedef struct cu_part {
    int first, n;
    cudaGraphExec_t graph; /* NULL: one by one */
    cu_library_product *product;
} cu_part;

struct tgi_device_program {
    tgi_device *d;
    tgi_device_queue number;
    cudaStream_t queue; /* of that number */
    int n_steps, n;     /* steps, launches and products */
    int n_parts;
    const char **step_name; /* static texts */
    cu_note *list;
    cu_part *part;
    size_t args_bytes;
    uint8_t *block; /* device */
    uint8_t *slots; /* pinned: SLOTS times args_bytes */
    cudaEvent_t copied[SLOTS];
    unsigned next;
    int wait_for_each;
    int loose; /* parts that no graph was made of */
};

/* ---- Noting ------------------------------------------------------------------------------ */

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static int same_shape(dim3 a, dim3 b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

static int same_note(const cu_note *a, const cu_note *b)
{
    return a->kernel == b->kernel && same_shape(a->grid, b->grid) &&
           same_shape(a->block, b->block) && a->shared_bytes == b->shared_bytes &&
           a->step == b->step && a->at == b->at && a->bytes == b->bytes;
}

void cu_put(void *recorder, const void *kernel, dim3 grid, dim3 block, unsigned shared_bytes,
            const void *args, size_t args_bytes)
{
    cu_recorder *r = (cu_recorder *)recorder;
    const cu_note now = {kernel, grid, block, shared_bytes, r->step, r->used, args_bytes};
    const int i = r->n++;
    r->products += kernel == NULL;
    r->used = up(r->used + args_bytes, ARGS_ALIGN);
    if (!r->list || r->differs)
        return;
    if (i >= r->cap || r->used > r->args_cap || (r->compare && !same_note(&r->list[i], &now))) {
        r->differs = i + 1;
        return;
    }
    r->list[i] = now;
    memcpy(r->args + now.at, args, args_bytes);
}

void cu_put_product(void *recorder, const cu_product *p)
{
    cu_put(recorder, NULL, dim3(0), dim3(0), 0, p, sizeof *p);
}

static const char *name_of(const tgi_device_step *s)
{
    return s->kind == TGI_STEP_LOAD    ? "load"
           : s->kind == TGI_STEP_STORE ? "store"
                                       : s->variant->name;
}

static void note_steps(cu_recorder *r, const tgi_device_step *steps, int n)
{
    for (int i = 0; i < n; i++) {
        tgi_device_step s = steps[i];
        s.call.recorder = r;
        r->step = i;
        if (s.kind == TGI_STEP_NODE)
            s.variant->run(&s.call);
        else
            cu_pixels_put(&s);
    }
}

/* ---- Opening ----------------------------------------------------------------------------- */

/* What a launch asks beyond the ordinary, and what the device cannot give. */
static tg_status prepare_launch(tgi_device *d, const cu_note *l, const char *step,
                                size_t *stack_bytes, tgi_err *err)
{
    cudaFuncAttributes a;
    const unsigned threads = l->block.x * l->block.y * l->block.z;
    TGI_TRY(cu_answer(d, cudaFuncGetAttributes(&a, l->kernel), "cudaFuncGetAttributes", step,
                      err)); /* loads the kernel, where that was put off */
    if (l->grid.x == 0 || l->grid.y == 0 || l->grid.z == 0 || l->grid.x > 0x7fffffffu ||
        l->grid.y > 65535 || l->grid.z > 65535 || threads == 0 ||
        threads > (unsigned)a.maxThreadsPerBlock)
        return tgi_fail(err, TG_E_INTERNAL,
                        "%s: a launch of %u x %u x %u blocks of %u threads (at most %d)", step,
                        l->grid.x, l->grid.y, l->grid.z, threads, a.maxThreadsPerBlock);
    if (l->shared_bytes + a.sharedSizeBytes > d->shared_limit)
        return tgi_fail(err, TG_E_DEVICE,
                        "%s: a block wants %zu bytes of shared memory, GPU %d gives %zu", step,
                        l->shared_bytes + a.sharedSizeBytes, d->id, d->shared_limit);
    /* The most there is, not what this launch wants: another launch of the kernel, in this
     * program or the next, may want more. And of what a multiprocessor divides between shared
     * memory and first level, all that can be the former: such kernels count on two blocks. */
    if (l->shared_bytes + a.sharedSizeBytes > PLAIN_SHARED) {
        TGI_TRY(cu_answer(d,
                          cudaFuncSetAttribute(l->kernel,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)(d->shared_limit - a.sharedSizeBytes)),
                          "cudaFuncSetAttribute", step, err));
        TGI_TRY(cu_answer(d,
                          cudaFuncSetAttribute(l->kernel,
                                               cudaFuncAttributePreferredSharedMemoryCarveout,
                                               cudaSharedmemCarveoutMaxShared),
                          "cudaFuncSetAttribute", step, err));
    }
    if (a.localSizeBytes > *stack_bytes)
        *stack_bytes = a.localSizeBytes;
    return TG_OK;
}

static tg_status prepare_launches(const tgi_device_program *p, tgi_err *err)
{
    size_t stack = CU_STACK_BYTES;
    for (int i = 0; i < p->n; i++)
        if (p->list[i].kernel)
            TGI_TRY(
                prepare_launch(p->d, &p->list[i], p->step_name[p->list[i].step], &stack, err));
    if (stack > CU_STACK_BYTES)
        CU_TRY(p->d, cudaDeviceSetLimit(cudaLimitStackSize, stack), err);
    return TG_OK;
}

/* Nodes in a chain: what one step writes the next may read, and rings are overwritten. */
static cudaError_t add_launches(const tgi_device_program *p, const cu_part *part,
                                cudaGraph_t graph)
{
    cudaGraphNode_t last = NULL;
    for (int i = 0; i < part->n; i++) {
        const cu_note *l = &p->list[part->first + i];
        void *at = p->block + l->at;
        void *params[1] = {&at};
        cudaKernelNodeParams node = {};
        cudaGraphNode_t added;
        node.func = (void *)(uintptr_t)l->kernel;
        node.gridDim = l->grid;
        node.blockDim = l->block;
        node.sharedMemBytes = l->shared_bytes;
        node.kernelParams = params;
        const cudaError_t e =
            cudaGraphAddKernelNode(&added, graph, i ? &last : NULL, i ? 1 : 0, &node);
        if (e != cudaSuccess)
            return e;
        last = added;
    }
    return cudaSuccess;
}

/* A graph that cannot be made is no failure: the launches go one by one, and that is said. */
static void make_graph(tgi_device_program *p, cu_part *part)
{
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaGraphCreate(&graph, 0);
    if (e == cudaSuccess) {
        e = add_launches(p, part, graph);
        if (e == cudaSuccess)
            e = cudaGraphInstantiateWithFlags(&part->graph, graph, 0);
        (void)cudaGraphDestroy(graph);
    }
    if (e == cudaSuccess) /* what it takes on the device is taken now, not at the first run */
        e = cudaGraphUpload(part->graph, p->queue);
    if (e == cudaSuccess)
        return;
    (void)cudaGetLastError();
    if (part->graph)
        (void)cudaGraphExecDestroy(part->graph);
    part->graph = NULL;
    p->loose++;
}

static void find_parts(tgi_device_program *p)
{
    for (int i = 0; i < p->n; i++) {
        cu_part *last = p->n_parts ? &p->part[p->n_parts - 1] : NULL;
        if (p->list[i].kernel && last && p->list[last->first].kernel) {
            last->n++;
        } else {
            p->part[p->n_parts].first = i;
            p->part[p->n_parts++].n = 1;
        }
    }
}

static const cu_product *product_of(const tgi_device_program *p, const cu_part *part,
                                    const uint8_t *args)
{
    return (const cu_product *)(const void *)(args + p->list[part->first].at);
}

static tg_status open_products(tgi_device_program *p, tgi_err *err)
{
    for (int i = 0; i < p->n_parts; i++) {
        cu_part *part = &p->part[i];
        const char *step = p->step_name[p->list[part->first].step];
        if (p->list[part->first].kernel)
            continue;
        if (!p->d->library)
            return tgi_fail(err, TG_E_UNSUPPORTED, "%s: the library is not open", step);
        TGI_TRY(cu_library_product_open(p->d->library, product_of(p, part, p->slots), step,
                                        &part->product, err));
    }
    return TG_OK;
}

static tg_status take_memory(tgi_device_program *p, tgi_err *err)
{
    p->list = (cu_note *)tgi_calloc(TGI_TAG_PLAN, (size_t)p->n + 1, sizeof *p->list);
    p->part = (cu_part *)tgi_calloc(TGI_TAG_PLAN, (size_t)p->n + 1, sizeof *p->part);
    p->step_name =
        (const char **)tgi_calloc(TGI_TAG_PLAN, (size_t)p->n_steps + 1, sizeof *p->step_name);
    if (!p->list || !p->part || !p->step_name)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a program of %d launches", p->n);
    void *block = NULL, *slots = NULL;
    CU_TRY(p->d, cudaMalloc(&block, p->args_bytes + CU_ARGUMENTS_NEAR), err);
    p->block = (uint8_t *)block;
    CU_TRY(p->d, cudaHostAlloc(&slots, SLOTS * p->args_bytes, cudaHostAllocDefault), err);
    p->slots = (uint8_t *)slots;
    for (int i = 0; i < SLOTS; i++)
        CU_TRY(p->d,
               cudaEventCreateWithFlags(&p->copied[i],
                                        cudaEventDisableTiming | cudaEventBlockingSync),
               err);
    return TG_OK;
}

static tg_status prepare(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err)
{
    const char *one = getenv("TEGULA_CUDA_STEPS");
    TGI_TRY(take_memory(p, err));
    cu_recorder r;
    memset(&r, 0, sizeof r);
    r.list = p->list;
    r.cap = p->n;
    r.args = p->slots;
    r.args_cap = p->args_bytes;
    note_steps(&r, steps, p->n_steps);
    if (r.differs || r.n != p->n)
        return tgi_fail(err, TG_E_INTERNAL,
                        "a step's launches differ from one look to the next");
    for (int i = 0; i < p->n_steps; i++)
        p->step_name[i] = name_of(&steps[i]);
    find_parts(p);
    TGI_TRY(open_products(p, err));
    TGI_TRY(prepare_launches(p, err));
    p->wait_for_each = one && strcmp(one, "1") == 0;
    for (int i = 0; i < p->n_parts && !p->wait_for_each; i++)
        if (!p->part[i].product)
            make_graph(p, &p->part[i]);
    CU_TRY(p->d, cudaStreamSynchronize(p->queue), err);
    return TG_OK;
}

tg_status cu_program_open(tgi_device *d, tgi_device_queue q, const tgi_device_step *steps,
                          int n, tgi_device_program **out, size_t *bytes, tgi_err *err)
{
    cu_recorder count;
    memset(&count, 0, sizeof count);
    note_steps(&count, steps, n);
    const size_t args = count.used ? count.used : ARGS_ALIGN;
    *bytes = up(args + CU_ARGUMENTS_NEAR, PAGE) +
             up((size_t)count.n * NODE_BYTES + (size_t)count.products * GRAPH_BYTES, PAGE);
    if (!out)
        return TG_OK;
    *out = NULL;
    TGI_TRY(cu_enter(d, err));
    tgi_device_program *p =
        (tgi_device_program *)tgi_calloc(TGI_TAG_PLAN, 1, sizeof(tgi_device_program));
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a program");
    p->d = d;
    p->number = q;
    p->queue = d->queue[q];
    p->n_steps = n;
    p->n = count.n;
    p->args_bytes = args;
    const tg_status st = prepare(p, steps, err);
    if (st != TG_OK) {
        cu_program_close(&p);
        return st;
    }
    *out = p;
    return TG_OK;
}

void cu_program_close(tgi_device_program **at)
{
    tgi_device_program *p = *at;
    if (!p)
        return;
    (void)cudaSetDevice(p->d->id);
    (void)cudaStreamSynchronize(p->queue); /* it may still be running */
    for (int i = 0; i < p->n_parts; i++) {
        if (p->part[i].graph)
            (void)cudaGraphExecDestroy(p->part[i].graph);
        cu_library_product_close(&p->part[i].product);
    }
    for (int i = 0; i < SLOTS; i++)
        if (p->copied[i])
            (void)cudaEventDestroy(p->copied[i]);
    (void)cudaFreeHost(p->slots);
    (void)cudaFree(p->block);
    (void)cudaGetLastError();
    tgi_free(p->step_name);
    tgi_free(p->part);
    tgi_free(p->list);
    tgi_free(p);
    *at = NULL;
}

/* ---- Running ----------------------------------------------------------------------------- */

static tg_status launch_one_by_one(const tgi_device_program *p, const cu_part *part,
                                   tgi_err *err)
{
    const cudaStream_t q = p->queue;
    for (int i = 0; i < part->n; i++) {
        const cu_note *l = &p->list[part->first + i];
        const char *step = p->step_name[l->step];
        void *at = p->block + l->at;
        void *params[1] = {&at};
        TGI_TRY(cu_done(
            p->d, cudaLaunchKernel(l->kernel, l->grid, l->block, params, l->shared_bytes, q),
            "cudaLaunchKernel", step, err));
        if (p->wait_for_each)
            TGI_TRY(
                cu_done(p->d, cudaStreamSynchronize(q), "cudaStreamSynchronize", step, err));
    }
    return TG_OK;
}

static tg_status run_product(const tgi_device_program *p, const cu_part *part,
                             const uint8_t *args, tgi_err *err)
{
    const char *step = p->step_name[p->list[part->first].step];
    tgi_err why = {};
    const tg_status st =
        cu_library_product_run(part->product, product_of(p, part, args),
                               cu_device_workspace(p->d, p->number), p->queue, &why);
    if (st != TG_OK)
        return tgi_fail(err, cu_keep(p->d, st, &why), "%s", why.text);
    if (p->wait_for_each)
        TGI_TRY(
            cu_done(p->d, cudaStreamSynchronize(p->queue), "cudaStreamSynchronize", step, err));
    return TG_OK;
}

/* The parts in their order, `args` being what has been noted for this band. */
static tg_status put_parts(const tgi_device_program *p, const uint8_t *args, tgi_err *err)
{
    for (int i = 0; i < p->n_parts; i++) {
        const cu_part *part = &p->part[i];
        if (part->product)
            TGI_TRY(run_product(p, part, args, err));
        else if (part->graph)
            CU_DO(p->d, cudaGraphLaunch(part->graph, p->queue), err);
        else
            TGI_TRY(launch_one_by_one(p, part, err));
    }
    return TG_OK;
}

/* Between `from` and `to`, where those are given. */
static tg_status run_between(tgi_device_program *p, const tgi_device_step *steps,
                             cudaEvent_t from, cudaEvent_t to, tgi_err *err)
{
    tgi_device *d = p->d;
    const cudaStream_t q = p->queue;
    const unsigned slot = p->next++ % SLOTS;
    TGI_TRY(cu_enter(d, err));
    CU_DO(d, cudaEventSynchronize(p->copied[slot]), err);
    cu_recorder r;
    memset(&r, 0, sizeof r);
    r.list = p->list;
    r.cap = p->n;
    r.args = p->slots + slot * p->args_bytes;
    r.args_cap = p->args_bytes;
    r.compare = 1;
    note_steps(&r, steps, p->n_steps);
    if (r.differs || r.n != p->n) {
        const int i = r.differs ? r.differs - 1 : r.n; /* launched, or missing */
        const char *step = i < p->n ? p->step_name[p->list[i].step] : "the last step";
        return tgi_fail(err, TG_E_INTERNAL,
                        "%s: launch %d of %d is another than when the program was opened", step,
                        i, p->n);
    }
    if (p->n)
        CU_DO(d, cudaMemcpyAsync(p->block, r.args, p->args_bytes, cudaMemcpyHostToDevice, q),
              err);
    CU_DO(d, cudaEventRecord(p->copied[slot], q), err);
    if (from)
        CU_DO(d, cudaEventRecord(from, q), err);
    CU_DO(d, cu_times_begin(&d->times, p->number, q), err);
    TGI_TRY(put_parts(p, r.args, err));
    CU_DO(d, cu_times_end(&d->times, p->number, q), err);
    if (to)
        CU_DO(d, cudaEventRecord(to, q), err);
    return TG_OK;
}

tg_status cu_program_run(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err)
{
    return run_between(p, steps, NULL, NULL, err);
}

int cu_program_loose(const tgi_device_program *p)
{
    return p->loose;
}

tg_status cu_program_time(tgi_device_program *p, const tgi_device_step *steps, double *seconds,
                          tgi_err *err)
{
    cudaEvent_t at[2] = {};
    float ms = 0;
    cudaError_t e = cudaSuccess;
    TGI_TRY(cu_enter(p->d, err));
    for (int i = 0; i < 2 && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&at[i], cudaEventBlockingSync);
    tg_status st = cu_done(p->d, e, "cudaEventCreateWithFlags", NULL, err);
    if (st == TG_OK)
        st = run_between(p, steps, at[0], at[1], err);
    if (st == TG_OK)
        st = cu_done(p->d, cudaEventSynchronize(at[1]), "cudaEventSynchronize", NULL, err);
    if (st == TG_OK)
        st = cu_done(p->d, cudaEventElapsedTime(&ms, at[0], at[1]), "cudaEventElapsedTime",
                     NULL, err);
    for (int i = 0; i < 2; i++)
        if (at[i])
            (void)cudaEventDestroy(at[i]);
    *seconds = (double)ms / 1000;
    return st;
}
