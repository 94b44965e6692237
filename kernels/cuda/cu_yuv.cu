/* cu_yuv.cu - frames that are staged as Y, U and V to activations: the LOAD step of a film.
 *
 * Numbers are those of engine/base/yuv.h, which the reader of films computes with, too, to the bit: one rounding for each
 * operation, then R, G and B as whole numbers, then `mul` and `add` as of any pixel. Borders are cu_pixels.cu's.
 *
 * A thread makes a pixel: of half of the bytes that RGB has, in some 150 instructions. It reads one number of Y, and four of
 * U and of V, which its neighbours read as well, out of the cache. Bound by the bus that brings the next frame. */
#include "kernels/cuda/cu_staged.cuh"

struct cu_yuv_args {
    cu_cells cells;
    cu_view view;
    const char *at;
    tgi_yuv yuv;
    tgi_yuv_staged staged;
    int32_t shift[2], extent[2]; /* y, x */
    int32_t pad;                 /* tgi_load_pad */
    float mul, add;
    int32_t unused;
};

template <class T, int V>
__global__ void __launch_bounds__(256, 4) cu_load_yuv(const cu_yuv_args *__restrict__ a)
{
    cu_place p;
    if (!cu_offered<T>() || !cu_place_of<V>(a->cells, &p))
        return;
    const int32_t y = cu_pad_index(a->pad, p.y - a->shift[0], a->extent[0]);
    const int32_t x = cu_pad_index(a->pad, p.x - a->shift[1], a->extent[1]);
    float v[V];
#pragma unroll
    for (int i = 0; i < V; i++)
        v[i] = 0.0f;
    if (y >= 0 && x >= 0 && p.c < 3) {
        uint32_t rgb[3];
        tgi_yuv_pixel(&a->yuv, &a->staged, a->at, y + a->yuv.y0, x + a->yuv.x0, rgb);
#pragma unroll
        for (int c = 0; c < 3; c++)
#pragma unroll
            for (int i = 0; i < V; i++)
                if (p.c + i == c)
                    v[i] = cu_affine((float)rgb[c], a->mul, a->add);
    }
    cu_store<T, V>(a->view, p, v);
}

template <class T> static void put(const tgi_device_step *step)
{
    const tgi_call *call = &step->call;
    const tgi_device_pixels *px = &step->pixels;
    const tgi_view *view = &call->dst[0];
    const int lanes = cu_lanes(view->cb);
    cu_shape shape;
    cu_yuv_args a;
    a.cells = cu_cells_of(call, view->cb / lanes, &shape);
    a.view = cu_view_of(view);
    a.at = (const char *)px->at;
    a.yuv = px->yuv;
    a.staged = tgi_yuv_stage(&px->yuv, px->rows, px->cols);
    for (int i = 0; i < 2; i++) {
        a.shift[i] = (int32_t)px->shift[1 + i];
        a.extent[i] = (int32_t)px->extent[1 + i];
    }
    a.pad = px->pad;
    a.mul = px->mul;
    a.add = px->add;
    a.unused = 0;
    void (*const kernel)(const cu_yuv_args *) = lanes == 8   ? cu_load_yuv<T, 8>
                                                : lanes == 4 ? cu_load_yuv<T, 4>
                                                : lanes == 2 ? cu_load_yuv<T, 2>
                                                             : cu_load_yuv<T, 1>;
    cu_launch(call, kernel, shape.grid, shape.block, 0, a);
}

void cu_yuv_put(const tgi_device_step *step)
{
    if (step->pixels.element == TG_DTYPE_F16)
        put<__half>(step);
    else if (step->pixels.element == TGI_DTYPE_BF16)
        put<__nv_bfloat16>(step);
    else
        put<float>(step);
}
