/* ome_grid.c - see ome_grid.h. Source: OME-TIFF specification, "TiffData". */
#include "io/ome_grid.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <string.h>

static int axis_of(int letter)
{
    return letter == 'Z' ? 0 : letter == 'C' ? 1 : letter == 'T' ? 2 : -1;
}

static void add_axis(tgi_image_info *info, char letter, int64_t n)
{
    info->axes[info->n_axes] = letter;
    info->shape[info->n_axes++] = n;
    info->axes[info->n_axes] = 0;
}

/* The schema has FirstC count channels; where pixels have several samples some writers count these. */
static int64_t step_of_c(const tgi_ome *o, int64_t channels, int64_t spp)
{
    int64_t most = 0;
    for (size_t i = 0; i < o->n_blocks; i++)
        most = o->blocks[i].c > most ? o->blocks[i].c : most;
    return channels > 1 && most >= channels ? spp : 1;
}

tg_status tgi_ome_grid_make(const tgi_ome *o, int64_t width, int64_t height, int64_t spp,
                            tgi_image_info *info, tgi_ome_grid *g, tgi_err *err)
{
    int seen = 0;
    if (o->size_x != width || o->size_y != height)
        return tgi_fail(
            err, TG_E_FORMAT, "OME-XML says %lld x %lld pixels, page 0 has %lld x %lld",
            (long long)o->size_x, (long long)o->size_y, (long long)width, (long long)height);
    if (o->size_z < 1 || o->size_t_ < 1 || o->size_c < 1 || o->size_c % spp)
        return tgi_fail(err, TG_E_FORMAT,
                        "OME-XML says SizeZ %lld, SizeC %lld, SizeT %lld "
                        "with %lld samples per pixel",
                        (long long)o->size_z, (long long)o->size_c, (long long)o->size_t_,
                        (long long)spp);
    *g = (tgi_ome_grid){.n = {o->size_z, o->size_c / spp, o->size_t_}, .total = 1};
    g->per_c = step_of_c(o, g->n[1], spp);
    for (int i = 2; i < 5; i++) {
        const int a = strncmp(o->order, "XY", 2) == 0 ? axis_of(o->order[i]) : -1;
        if (a < 0 || (seen & 1 << a))
            return tgi_fail(err, TG_E_FORMAT, "OME-XML DimensionOrder \"%s\"", o->order);
        seen |= 1 << a;
        g->stride[a] = g->total;
        if (!tgi_mul64_ok(g->total, g->n[a], &g->total))
            return tgi_fail(err, TG_E_FORMAT, "OME-XML describes too many planes");
    }
    for (int i = 4; i >= 2; i--)
        add_axis(info, o->order[i], g->n[axis_of(o->order[i])]);
    return TG_OK;
}

tg_status tgi_ome_grid_block(const tgi_ome_grid *g, const tgi_ome_block *b, int64_t all,
                             int64_t *placed, int64_t *from, int64_t *n, tgi_err *err)
{
    const int64_t c = b->c / g->per_c;
    const int64_t count = b->count >= 0 ? b->count : b->ifd < 0 ? all : 1;
    if (b->z >= g->n[0] || c >= g->n[1] || b->t >= g->n[2])
        return tgi_fail(err, TG_E_FORMAT,
                        "OME-XML TiffData at z=%lld c=%lld t=%lld lies "
                        "outside the image",
                        (long long)b->z, (long long)b->c, (long long)b->t);
    *from = b->z * g->stride[0] + c * g->stride[1] + b->t * g->stride[2];
    *n = tgi_min(count, g->total - *from);
    *placed += *n;
    if (*placed > 2 * g->total)
        return tgi_fail(err, TG_E_FORMAT, "OME-XML TiffData places planes more than once");
    return TG_OK;
}

tg_status tgi_ome_take_meta(tgi_ome *o, tgi_image_meta *m, tgi_err *err)
{
    memcpy(m->physical, o->physical, sizeof m->physical);
    memcpy(m->unit, o->unit, sizeof m->unit);
    m->time_increment = o->time_increment;
    tgi_ome_notes_take(&o->notes, m);
    if (!o->n_channels)
        return TG_OK;
    const size_t n = (size_t)o->n_channels;
    m->channel_name = tgi_calloc(TGI_TAG_IO, n, sizeof *m->channel_name);
    m->channel_color = tgi_calloc(TGI_TAG_IO, n, sizeof *m->channel_color);
    if (!m->channel_name || !m->channel_color)
        return tgi_fail(err, TG_E_NOMEM, "no memory for names of channels");
    m->n_channels = o->n_channels;
    for (size_t i = 0; i < n; i++) {
        m->channel_name[i] = o->channels[i].name;
        m->channel_color[i] = o->channels[i].color;
        o->channels[i].name = NULL;
    }
    return TG_OK;
}
