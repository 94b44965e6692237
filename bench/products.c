/* products.c - oneDNN 2.x as a peer: see bench_op.c. */
#include "bench/products.h"

#include "bench/measure.h"

#ifdef TG_HAVE_DNNL
#include <dnnl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCTS_MAX 4
#define MOST_FLOATS ((int64_t)1 << 24)
#define TRIALS 5

typedef struct one {
    product p;
    int64_t here; /* of p.count */
    float *a, *b, *c, *bias;
    dnnl_primitive_t prim, soft; /* NULL: none */
    dnnl_memory_t mem[4];        /* source, weights, bias, result */
    int by_sgemm;
} one;

struct products {
    one one[PRODUCTS_MAX];
    int n;
    char ways[160];
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

static void ok(dnnl_status_t s, const char *what)
{
    if (s != dnnl_success) {
        fprintf(stderr, "bench: oneDNN: %s: %d\n", what, (int)s);
        exit(1);
    }
}

static float *numbers(int64_t n)
{
    float *p = measure_room((size_t)n * sizeof *p);
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)((i * 2654435761u) % 1000u) / 500.0f - 1.0f;
    return p;
}

static dnnl_memory_desc_t shape(int64_t batch, int64_t rows, int64_t columns,
                                dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;
    const dnnl_dims_t dims = {batch, rows, columns};
    ok(dnnl_memory_desc_init_by_tag(&d, 3, dims, dnnl_f32, tag), "shape");
    return d;
}

static dnnl_memory_t memory(const products *all, const dnnl_memory_desc_t *d, void *data)
{
    dnnl_memory_t m;
    ok(dnnl_memory_create(&m, d, all->engine, data), "memory");
    return m;
}

/* The weights in the form that the primitive likes. */
static dnnl_memory_t packed(const products *all, dnnl_primitive_desc_t pd,
                            const dnnl_memory_desc_t *plain, float *data)
{
    dnnl_primitive_desc_t order;
    dnnl_primitive_t p;
    const dnnl_memory_desc_t *like = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl_memory_t from = memory(all, plain, data), to = memory(all, like, DNNL_MEMORY_ALLOCATE);
    ok(dnnl_reorder_primitive_desc_create(&order, plain, all->engine, like, all->engine, NULL),
       "reorder");
    ok(dnnl_primitive_create(&p, order), "reorder");
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    ok(dnnl_primitive_execute(p, all->stream, 2, args), "reorder");
    ok(dnnl_stream_wait(all->stream), "wait");
    dnnl_primitive_destroy(p);
    dnnl_primitive_desc_destroy(order);
    dnnl_memory_destroy(from);
    return to;
}

static void make_primitive(products *all, one *o, const char **name)
{
    const product *p = &o->p;
    const dnnl_memory_desc_t a = shape(o->here, p->m, p->k, dnnl_abc),
                             b = shape(o->here, p->k, p->n, p->turned ? dnnl_acb : dnnl_abc),
                             any = shape(o->here, p->k, p->n, dnnl_format_tag_any),
                             bias = shape(1, 1, p->n, dnnl_abc),
                             c = shape(o->here, p->m, p->n, dnnl_abc);
    dnnl_matmul_desc_t d;
    dnnl_primitive_desc_t pd;
    ok(dnnl_matmul_desc_init(&d, &a, p->constant ? &any : &b, p->constant ? &bias : NULL, &c),
       "matmul");
    ok(dnnl_primitive_desc_create(&pd, &d, NULL, all->engine, NULL), "matmul");
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)name);
    ok(dnnl_primitive_create(&o->prim, pd), "matmul");
    o->mem[0] = memory(all, &a, o->a);
    o->mem[1] = p->constant ? packed(all, pd, &b, o->b) : memory(all, &b, o->b);
    o->mem[2] = p->constant ? memory(all, &bias, o->bias) : NULL;
    o->mem[3] = memory(all, &c, o->c);
    dnnl_primitive_desc_destroy(pd);
}

static void make_softmax(const products *all, one *o)
{
    const dnnl_memory_desc_t c = shape(o->here, o->p.m, o->p.n, dnnl_abc);
    dnnl_softmax_desc_t d;
    dnnl_primitive_desc_t pd;
    ok(dnnl_softmax_forward_desc_init(&d, dnnl_forward_inference, &c, 2), "softmax");
    ok(dnnl_primitive_desc_create(&pd, &d, NULL, all->engine, NULL), "softmax");
    ok(dnnl_primitive_create(&o->soft, pd), "softmax");
    dnnl_primitive_desc_destroy(pd);
}

static void by_softmax(const products *all, const one *o)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, o->mem[3]}, {DNNL_ARG_DST, o->mem[3]}};
    ok(dnnl_primitive_execute(o->soft, all->stream, 2, args), "execute");
    ok(dnnl_stream_wait(all->stream), "wait");
}

static void by_primitive(const products *all, const one *o)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, o->mem[0]},
                                    {DNNL_ARG_WEIGHTS, o->mem[1]},
                                    {DNNL_ARG_DST, o->mem[3]},
                                    {DNNL_ARG_BIAS, o->mem[2]}};
    ok(dnnl_primitive_execute(o->prim, all->stream, o->mem[2] ? 4 : 3, args), "execute");
    ok(dnnl_stream_wait(all->stream), "wait");
}

/* Without the bias: its way has none. */
static void by_sgemm(const one *o)
{
    const product *p = &o->p;
    for (int64_t i = 0; i < o->here; i++)
        ok(dnnl_sgemm('N', p->turned ? 'T' : 'N', p->m, p->n, p->k, 1.0f,
                      o->a + i * p->m * p->k, p->k, o->b + i * p->k * p->n,
                      p->turned ? p->k : p->n, 0.0f, o->c + i * p->m * p->n, p->n),
           "sgemm");
}

static double seconds_of(const products *all, const one *o, int softmax)
{
    const double from = measure_now();
    if (softmax)
        by_softmax(all, o);
    else if (o->by_sgemm)
        by_sgemm(o);
    else
        by_primitive(all, o);
    return (measure_now() - from) * (double)o->p.count / (double)o->here;
}

static void open_one(products *all, one *o)
{
    const product *p = &o->p;
    const int64_t floats = p->m * p->k + p->k * p->n + p->m * p->n;
    const char *name = "";
    double t[2][TRIALS];
    o->here = p->count < MOST_FLOATS / floats ? p->count : MOST_FLOATS / floats;
    o->here += o->here == 0;
    o->a = numbers(o->here * p->m * p->k);
    o->b = numbers(o->here * p->k * p->n);
    o->c = numbers(o->here * p->m * p->n);
    o->bias = numbers(p->n);
    make_primitive(all, o, &name);
    if (p->softmax)
        make_softmax(all, o);
    for (int i = -1; i < TRIALS; i++)
        for (int way = 0; way < 2; way++) {
            o->by_sgemm = way;
            const double took = seconds_of(all, o, 0);
            t[way][i < 0 ? 0 : i] = took;
        }
    o->by_sgemm = measure_median(t[1], TRIALS) < measure_median(t[0], TRIALS);
    const size_t used = strlen(all->ways);
    snprintf(all->ways + used, sizeof all->ways - used, "%s%s", used ? ", " : "",
             o->by_sgemm ? "sgemm" : name);
}

int products_there(void)
{
    return 1;
}

products *products_open(const product *p, int n, int threads, tgi_isa isa)
{
    void (*set)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    products *all = calloc(1, sizeof *all);
    if (!all || n > PRODUCTS_MAX)
        exit(1);
    if (set)
        set(threads);
    if (isa == TGI_ISA_AVX2)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    ok(dnnl_engine_create(&all->engine, dnnl_cpu, 0), "engine");
    ok(dnnl_stream_create(&all->stream, all->engine, dnnl_stream_default_flags), "stream");
    for (all->n = 0; all->n < n; all->n++) {
        all->one[all->n].p = p[all->n];
        open_one(all, &all->one[all->n]);
    }
    return all;
}

void products_close(products *all)
{
    for (int i = 0; all && i < all->n; i++) {
        one *o = &all->one[i];
        dnnl_primitive_destroy(o->prim);
        if (o->soft)
            dnnl_primitive_destroy(o->soft);
        for (int k = 0; k < 4; k++)
            if (o->mem[k])
                dnnl_memory_destroy(o->mem[k]);
        free(o->a);
        free(o->b);
        free(o->c);
        free(o->bias);
    }
    if (all) {
        dnnl_stream_destroy(all->stream);
        dnnl_engine_destroy(all->engine);
    }
    free(all);
}

double products_seconds(const products *all, int softmax)
{
    double sum = 0;
    for (int i = 0; i < all->n; i++)
        if (!softmax || all->one[i].soft)
            sum += seconds_of(all, &all->one[i], softmax);
    return sum;
}

double products_flops(const products *all)
{
    double sum = 0;
    for (int i = 0; i < all->n; i++) {
        const product *p = &all->one[i].p;
        sum += 2.0 * (double)p->count * (double)p->m * (double)p->n * (double)p->k;
    }
    return sum;
}

const char *products_ways(const products *all)
{
    return all->ways;
}

#else

int products_there(void)
{
    return 0;
}

products *products_open(const product *p, int n, int threads, tgi_isa isa)
{
    (void)p, (void)n, (void)threads, (void)isa;
    return NULL;
}

void products_close(products *all)
{
    (void)all;
}

double products_seconds(const products *all, int softmax)
{
    (void)all, (void)softmax;
    return 0;
}

double products_flops(const products *all)
{
    (void)all;
    return 0;
}

const char *products_ways(const products *all)
{
    (void)all;
    return "";
}
#endif
