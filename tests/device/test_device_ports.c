/* How many inputs and outputs there may be: a network of more is refused when it is read, and a
 * pass of more (a stage that hands out what a later one reads) before anything of a device is
 * taken. Up to the limit each has its own place in a band's buffers. */
#include "engine/exec/device_exec.h"
#include "tests/device/fake_device.h"
#include "tests/made_nets.h"

#include <unistd.h>

static char path[64];

/* y1 = Abs(x1) and so on; the first is named x. */
static tg_status import(int n_in, int n_out, tgi_graph **g, tgi_err *err)
{
    static const int64_t open2[2] = {0, 0}, any[4] = {1, 1, 0, 0};
    made m = made_begin(2, 1, open2);
    char name[2][16];
    for (int k = 1; k < n_in; k++) {
        snprintf(name[0], sizeof name[0], "x%d", k);
        b_port(&m.g, 11, name[0], 4, any);
    }
    const int n = n_in > n_out ? n_in : n_out;
    for (int k = 1; k < n; k++) {
        snprintf(name[0], sizeof name[0], k < n_in ? "x%d" : "x", k);
        snprintf(name[1], sizeof name[1], "y%d", k);
        made_node(&m, "Abs", name[0], NULL, NULL, NULL, NULL, name[1]);
        if (k < n_out)
            b_port(&m.g, 12, name[1], 4, any);
    }
    made_node(&m, "Abs", "x", NULL, NULL, NULL, NULL, "y");
    made_end(&m, path);
    const tg_status st = tgi_graph_import_onnx(path, g, err);
    unlink(path);
    return st;
}

static void test_a_network_of_more_is_refused_when_it_is_read(void)
{
    for (int side = 0; side < 2; side++) {
        tgi_graph *g = NULL;
        tgi_err err = {0};
        const int n = TGI_MAX_PORTS + 1;
        const tg_status st = import(side ? 1 : n, side ? n : 1, &g, &err);
        CHECK_EQ(st, TG_E_UNSUPPORTED);
        CHECK(strstr(err.text, side ? "more than 16 outputs" : "more than 16 inputs"));
        tgi_graph_free(&g);
    }
}

typedef struct planned {
    tgi_graph *g;
    tgi_net *net;
    tgi_stages *stages;
    tgi_tiling t;
    tgi_device_form form;
} planned;

static planned plan_of_most(void)
{
    static const int64_t uncut[3] = {0, 0, 0};
    planned p = {0};
    tgi_err err = {0};
    tgi_desc in[TGI_MAX_PORTS];
    for (int k = 0; k < TGI_MAX_PORTS; k++)
        in[k] = (tgi_desc){TG_DTYPE_F32, 4, {1, 1, 32, 48}};
    CHECK_OK(import(TGI_MAX_PORTS, TGI_MAX_PORTS, &p.g, &err), err);
    CHECK_OK(tgi_graph_finish(p.g, 0, &err), err);
    CHECK_OK(tgi_net_new(p.g, fake_backend(TG_DTYPE_F32), in, 0, &p.net, &err), err);
    CHECK_OK(tgi_stages_new(p.net, &p.stages, &err), err);
    CHECK_OK(tgi_tiling_make(&p.stages->one, uncut, 32, 1, NULL, &p.t, &err), err);
    for (int k = 0; k < TGI_MAX_PORTS; k++) {
        p.form.in[k] =
            (tgi_device_port){.type = TG_DTYPE_F32, .bytes = 32 * 48 * sizeof(float)};
        p.form.out[k] = (tgi_device_port){.type = TG_DTYPE_F32, .channels = 1, .together = 1};
    }
    return p;
}

static void close_plan(planned *p)
{
    tgi_tiling_free(&p->t);
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
    tgi_graph_free(&p->g);
}

static void test_each_port_up_to_the_limit_has_its_place(void)
{
    planned p = plan_of_most();
    tgi_device_need need;
    tgi_err err = {0};
    fake_reset();
    CHECK_EQ(p.t.stage->n_loaded, TGI_MAX_PORTS);
    CHECK_EQ(p.t.stage->n_out, TGI_MAX_PORTS);
    CHECK_OK(tgi_device_need_of(fake_device_ops(), &p.t, &p.form, &need, &err), err);
    CHECK(need.pixels >= (size_t)2 * 2 * TGI_MAX_PORTS * 32 * 48 * sizeof(float));
    close_plan(&p);
}

/* The stage is said to have one more: nothing of it may be looked at. */
static void test_a_pass_of_more_is_refused_before_anything_is_taken(void)
{
    planned p = plan_of_most();
    const tgi_device_ops *ops = fake_device_ops();
    for (int side = 0; side < 2; side++) {
        tgi_stage wide = *p.t.stage;
        tgi_tiling t = p.t;
        tgi_device *device = NULL;
        tgi_device_exec *e = NULL;
        tgi_device_need need;
        const tgi_device_io io = {0};
        tgi_err err = {0};
        *(side ? &wide.n_out : &wide.n_loaded) = TGI_DEVICE_PORTS + 1;
        t.stage = &wide;
        fake_reset();
        CHECK_EQ(tgi_device_need_of(ops, &t, &p.form, &need, &err), TG_E_UNSUPPORTED);
        CHECK(strstr(err.text, side ? "16 inputs and 33 outputs" : "33 inputs and 16 outputs"));
        CHECK(strstr(err.text, "--device cpu"));
        CHECK_OK(ops->open(0, &device, &err), err);
        err = (tgi_err){0};
        CHECK_STATUS(tgi_device_exec_open(ops, device, &t, &p.form, &io, &e, &err),
                     TG_E_UNSUPPORTED, err);
        CHECK(e == NULL);
        ops->close(&device);
        CHECK_EQ(fake_open_things(), 0);
        CHECK_EQ(fake_peak_bytes(), 0);
    }
    close_plan(&p);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/tegula_ports_%d.onnx", (int)getpid());
    RUN(test_a_network_of_more_is_refused_when_it_is_read);
    RUN(test_each_port_up_to_the_limit_has_its_place);
    RUN(test_a_pass_of_more_is_refused_before_anything_is_taken);
    return TEST_END();
}
