/* in_turn.c - see in_turn.h. */
#include "io/in_turn.h"

#include "engine/base/mem.h"
#include "io/picked.h"

#include <string.h>

typedef struct axes {
    char letter[TGI_IMAGE_MAX_AXES];
    int64_t size[TGI_IMAGE_MAX_AXES];
    int n;
} axes;

static axes axes_of(const tgi_image_info *in, const char *letters)
{
    axes a = {.n = 0};
    for (int i = 0; i < in->n_axes; i++)
        if (!strchr("YXS", in->axes[i]) && (!letters || strchr(letters, in->axes[i]))) {
            a.letter[a.n] = in->axes[i];
            a.size[a.n++] = in->shape[i];
        }
    return a;
}

/* z, c or t; -1: another axis. */
static int number_of(char letter)
{
    const char *at = letter ? strchr("ZCT", letter) : NULL;
    return at ? (int)(at - "ZCT") : -1;
}

/* An axis that the image has not has one entry, which all planes are of. */
static void look_along(const tgi_image_info *in, const axes *a, tgi_in_turn *out)
{
    static const char letters[] = {'Z', 'C', 'T'};
    for (int k = 0; k < 3; k++)
        out->along[k] = strchr(in->axes, letters[k]) == NULL;
    for (int i = 0; i < a->n; i++)
        if (number_of(a->letter[i]) >= 0)
            out->along[number_of(a->letter[i])] = 1;
}

static void place(const axes *a, int64_t plane, int32_t at[3])
{
    for (int i = a->n - 1; i >= 0; i--) {
        const int k = number_of(a->letter[i]);
        if (k >= 0)
            at[k] = (int32_t)(plane % a->size[i]);
        plane /= a->size[i];
    }
}

static int64_t channel_of(const tgi_image_info *in, const tgi_ome_spots *s)
{
    if (!s->along[1] || !strchr(in->axes, 'C'))
        return -1;
    for (int64_t i = 1; i < s->n; i++)
        if (s->at[i][1] != s->at[0][1])
            return -1;
    return s->at[0][1];
}

static tg_status take_labels(const tgi_image_info *in, const tgi_planes_spec *planes,
                             tgi_in_turn *out, tgi_err *err)
{
    if (!in->meta.label || in->meta.n_labels != in->n_planes)
        return TG_OK;
    out->label = tgi_calloc(TGI_TAG_IO, (size_t)out->n, sizeof *out->label);
    if (!out->label)
        return tgi_fail(err, TG_E_NOMEM, "no memory for names of planes");
    for (int64_t i = 0; i < out->n; i++)
        out->label[i] = in->meta.label[tgi_planes_at(planes, i)];
    return TG_OK;
}

tg_status tgi_in_turn_make(const tgi_image_info *in, const char *letters,
                           const tgi_planes_spec *planes, int64_t count, tgi_in_turn *out,
                           tgi_err *err)
{
    const axes a = axes_of(in, letters);
    *out = (tgi_in_turn){.n = count, .channel = -1};
    look_along(in, &a, out);
    tgi_ome_spots s = {.n = count};
    memcpy(s.along, out->along, sizeof s.along);
    s.at = tgi_calloc(TGI_TAG_IO, (size_t)count, sizeof *s.at);
    if (!s.at)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the planes that are chosen");
    for (int64_t i = 0; i < count; i++)
        place(&a, tgi_planes_at(planes, i), s.at[i]);
    out->channel = channel_of(in, &s);
    tg_status st = tgi_ome_kept_in_turn(in->meta.ome, &s, &out->ome, err);
    tgi_free(s.at);
    int all = 1;
    for (int k = 0; k < 3; k++)
        all &= out->along[k];
    if (st == TG_OK && all)
        st = take_labels(in, planes, out, err);
    if (st != TG_OK)
        tgi_in_turn_free(out);
    return st;
}

void tgi_in_turn_meta(const tgi_in_turn *t, const tgi_image_info *in, tgi_image_meta *meta)
{
    const tgi_image_meta *m = &in->meta;
    const int64_t c = t->channel,
                  all = c >= 0 ? in->shape[strchr(in->axes, 'C') - in->axes] : 0;
    meta->in_turn = 1;
    meta->time_increment = 0;
    if (t->along[0])
        meta->physical[0] = 0;
    meta->ome = t->ome;
    meta->label = t->label;
    meta->n_labels = t->label ? t->n : 0;
    if (!t->along[1])
        return;
    meta->n_channels = meta->n_luts = meta->n_ranges = meta->mode = 0;
    if (c < 0)
        return;
    if (m->n_channels == all) {
        meta->n_channels = 1;
        meta->channel_name = m->channel_name ? m->channel_name + c : NULL;
        meta->channel_color = m->channel_color ? m->channel_color + c : NULL;
    }
    if (m->n_luts == all && m->lut) {
        meta->n_luts = 1;
        meta->lut = m->lut + 768 * c;
    }
    if (m->n_ranges == all && m->range) {
        meta->n_ranges = 1;
        meta->range = m->range + 2 * c;
    }
}

const char *tgi_in_turn_told(const tgi_in_turn *t, const tgi_image_info *in)
{
    return t->along[1] && t->channel < 0 && strchr(in->axes, 'C') ? TGI_PLANES_MIXED_CHANNELS
                                                                  : "";
}

void tgi_in_turn_free(tgi_in_turn *t)
{
    tgi_ome_kept_free(&t->ome);
    tgi_free(t->label);
    *t = (tgi_in_turn){0};
}
