/* post_made.c - see post_made.h. */
#include "engine/post/post_made.h"

#include "engine/base/arith.h"
#include "kernels/pixels.h"

static const tgi_post_made_ops *made(const tgi_source *s)
{
    return ((const tgi_post_made *)s)->made;
}

tg_status tgi_post_open(tgi_source *inner, const tgi_post_opts *o, tgi_source **out,
                        tgi_err *err)
{
    return tgi_post_network(&o->spec) ? tgi_post_open_network(inner, o, out, err)
                                      : tgi_post_open_steps(inner, o, out, err);
}

tgi_post_shape tgi_post_shape_of(const tgi_source *s)
{
    return made(s)->shape(s);
}

int64_t tgi_post_plane(const tgi_source *s, const tgi_post_place *at)
{
    return made(s)->plane(s, at);
}

tg_status tgi_post_numbers(tgi_source *s, const tgi_post_place *at, const uint32_t **row,
                           tgi_err *err)
{
    return made(s)->numbers(s, at, row, err);
}

tg_status tgi_post_intensity(tgi_source *s, const tgi_post_place *at, int channel, double *dst,
                             tgi_err *err)
{
    return made(s)->intensity(s, at, channel, dst, err);
}

tg_status tgi_post_tick(tgi_source *s, const char *phase, double fraction, tgi_err *err)
{
    return made(s)->tick(s, phase, fraction, err);
}

size_t tgi_post_least(const tgi_source *s)
{
    return made(s)->least(s);
}

size_t tgi_post_most(const tgi_source *s)
{
    return made(s)->most(s);
}

int tgi_post_takes_room(const tgi_source *s)
{
    return made(s)->beside != NULL;
}

size_t tgi_post_beside(const tgi_source *s)
{
    return made(s)->beside ? made(s)->beside(s) : made(s)->least(s);
}

size_t tgi_post_scratch(const tgi_source *s)
{
    return made(s)->scratch(s);
}

tg_status tgi_post_settle(tgi_source *s, size_t bytes, const char *folder, tgi_err *err)
{
    return made(s)->settle(s, bytes, folder, err);
}

int tgi_post_is_whole(tg_dtype type)
{
    return !tgi_dtype_is_float(type) && tgi_dtype_size(type) <= 2;
}

void tgi_post_to_double(tg_dtype type, const void *src, int64_t n, double *dst)
{
#define EACH(T)                                                                                \
    for (int64_t i = 0; i < n; i++)                                                            \
        dst[i] = (double)((const T *)src)[i];                                                  \
    return
    float some[256];
    switch (type) {
    case TG_DTYPE_I8:
        EACH(int8_t);
    case TG_DTYPE_U16:
        EACH(uint16_t);
    case TG_DTYPE_I16:
        EACH(int16_t);
    case TG_DTYPE_U32:
        EACH(uint32_t);
    case TG_DTYPE_I32:
        EACH(int32_t);
    case TG_DTYPE_U64:
        EACH(uint64_t);
    case TG_DTYPE_I64:
        EACH(int64_t);
    case TG_DTYPE_F32:
        EACH(float);
    case TG_DTYPE_F64:
        EACH(double);
    case TG_DTYPE_U8:
    case TG_DTYPE_BOOL:
        EACH(uint8_t);
    default:
        break;
    }
#undef EACH
    for (int64_t at = 0; at < n; at += 256) {
        const int64_t k = tgi_min(256, n - at);
        tgi_pixels_load(type, (const char *)src + (size_t)at * tgi_dtype_size(type), k, 1.0f,
                        0.0f, some, 1);
        for (int64_t i = 0; i < k; i++)
            dst[at + i] = (double)some[i];
    }
}
