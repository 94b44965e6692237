/* av_form.c - see av_form.h. */
#include "io/av/av_form.h"

#include <libavutil/pixdesc.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void tgi_av_name(char *to, size_t cap, const char *name)
{
    const int says = name && strcmp(name, "unknown") != 0 && strcmp(name, "unspecified") != 0;
    snprintf(to, cap, "%s", says ? name : "");
}

/* Their numbers are floats, bits of a colour filter, or of more than 16 bits. */
static tg_status refuse(const AVPixFmtDescriptor *d, tgi_err *err)
{
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "a film of pixels %s, which are not read: decode it to another film first "
                    "(ffmpeg -i IN -pix_fmt gbrp16le -c:v ffv1 OUT.mkv)",
                    d ? d->name : "of no name");
}

tg_status tgi_av_form_of(enum AVPixelFormat format, tgi_av_form *o, tgi_err *err)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(format);
    const uint64_t strange = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BITSTREAM |
                             AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER |
                             AV_PIX_FMT_FLAG_FLOAT;
    if (!d || d->flags & strange)
        return refuse(d, err);
    tgi_av_name(o->name, sizeof o->name, d->name);
    o->n_components = d->nb_components;
    o->n_planes = av_pix_fmt_count_planes(format);
    o->is_rgb = (d->flags & AV_PIX_FMT_FLAG_RGB) != 0;
    o->has_alpha = (d->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
    o->big_endian = (d->flags & AV_PIX_FMT_FLAG_BE) != 0;
    o->log2_chroma_w = d->log2_chroma_w;
    o->log2_chroma_h = d->log2_chroma_h;
    o->wide = 0;
    for (int i = 0; i < d->nb_components; i++) {
        const AVComponentDescriptor *c = &d->comp[i];
        o->component[i] = (tgi_av_component){c->plane, c->step, c->offset, c->shift, c->depth};
        o->wide |= c->depth + c->shift > 8;
        if (c->depth + c->shift > 16)
            return refuse(d, err);
    }
    return TG_OK;
}

void tgi_av_tags_of(const AVFrame *f, tgi_av_form *o)
{
    tgi_av_name(o->range, sizeof o->range, av_color_range_name(f->color_range));
    tgi_av_name(o->matrix, sizeof o->matrix, av_color_space_name(f->colorspace));
    tgi_av_name(o->primaries, sizeof o->primaries, av_color_primaries_name(f->color_primaries));
    tgi_av_name(o->transfer, sizeof o->transfer, av_color_transfer_name(f->color_trc));
    tgi_av_name(o->chroma_place, sizeof o->chroma_place,
                av_chroma_location_name(f->chroma_location));
}

/* Number of a name; `none` where it is none. */
static int number_of(int (*of)(const char *), const char *name, int none)
{
    const int n = name[0] ? of(name) : none;
    return n < 0 ? none : n;
}

void tgi_av_set_tags(const tgi_av_form *f, AVCodecContext *to)
{
    to->color_range = (enum AVColorRange)number_of(av_color_range_from_name, f->range,
                                                   AVCOL_RANGE_UNSPECIFIED);
    to->colorspace = (enum AVColorSpace)number_of(av_color_space_from_name, f->matrix,
                                                  AVCOL_SPC_UNSPECIFIED);
    to->color_primaries = (enum AVColorPrimaries)number_of(av_color_primaries_from_name,
                                                           f->primaries, AVCOL_PRI_UNSPECIFIED);
    to->color_trc = (enum AVColorTransferCharacteristic)number_of(
        av_color_transfer_from_name, f->transfer, AVCOL_TRC_UNSPECIFIED);
    to->chroma_sample_location = (enum AVChromaLocation)number_of(
        av_chroma_location_from_name, f->chroma_place, AVCHROMA_LOC_UNSPECIFIED);
}

tgi_av_ratio tgi_av_ratio_of(AVRational r)
{
    return r.num > 0 && r.den > 0 ? (tgi_av_ratio){r.num, r.den} : (tgi_av_ratio){0, 1};
}

AVRational tgi_av_rational(tgi_av_ratio r)
{
    AVRational out = {0, 1};
    if (r.num > 0 && r.den > 0)
        av_reduce(&out.num, &out.den, r.num, r.den, INT_MAX);
    return out;
}
