/* lost.c - see lost.h. */
#include "engine/job/lost.h"

#include "io/imagej.h"
#include "io/imagej_meta.h"
#include "io/ome_write.h"
#include "io/resolution.h"

#include <stdio.h>
#include <string.h>

/* What an output has a place for, from the least on. */
typedef enum tgi_place_for { ARRAY, FILM, PICTURE, TIFF, IMAGEJ, OME } tgi_place_for;

static tgi_place_for place_of(tgi_lost_to to, const tgi_picture_writer *w,
                              const tgi_sink_layout *l)
{
    if (to != TGI_LOST_TO_IMAGE || !l)
        return to == TGI_LOST_TO_FILM ? FILM : ARRAY;
    if (w)
        return w->images ? IMAGEJ : PICTURE;
    return tgi_ome_can(l) ? OME : TIFF;
}

static int64_t channels_of(const tgi_sink_layout *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->n_axes; i++)
        n *= strchr("CQ", l->axes[i]) ? l->shape[i] : 1;
    return n;
}

static int any_name(const tgi_image_meta *m)
{
    for (int i = 0; m->channel_name && i < m->n_channels; i++)
        if (m->channel_name[i] && m->channel_name[i][0])
            return 1;
    return 0;
}

static int any_color(const tgi_image_meta *m)
{
    for (int i = 0; m->channel_color && i < m->n_channels; i++)
        if (m->channel_color[i])
            return 1;
    return 0;
}

static int any_settings(const tgi_image_meta *m)
{
    const tgi_ome_kept *k = m->ome;
    for (int i = 0; k && i < k->n_channels; i++)
        if (k->channel_said[i] || k->channel_parts[i])
            return 1;
    return 0;
}

/* Do the planes' names say it already? */
static int is_in_labels(const tgi_image_meta *m, const char *name)
{
    for (int64_t i = 0; i < m->n_labels; i++)
        if (m->label[i] && strcmp(m->label[i], name) == 0)
            return 1;
    return 0;
}

static int is_channel(const tgi_image_meta *m, const char *name)
{
    for (int i = 0; m->channel_name && i < m->n_channels; i++)
        if (m->channel_name[i] && strcmp(m->channel_name[i], name) == 0)
            return 1;
    return 0;
}

/* ImageJ's stack has names of planes, where it has planes and these have no others, or the same. */
static int imagej_names(const tgi_sink_layout *l, const tgi_image_meta *m)
{
    if (m->n_channels != channels_of(l))
        return 0;
    if (m->n_labels != l->n_planes)
        return l->n_planes > 1;
    for (int i = 0; m->channel_name && i < m->n_channels; i++)
        if (m->channel_name[i] && m->channel_name[i][0] && !is_in_labels(m, m->channel_name[i]))
            return 0;
    return 1;
}

typedef struct list {
    char *buf;
    size_t cap, n;
} list;

static void add(list *t, int there, const char *words)
{
    if (!there || t->n >= t->cap)
        return;
    t->n += (size_t)snprintf(t->buf + t->n, t->cap - t->n, "%s%s", t->n ? ", " : "", words);
}

/* A resolution, as pictures have, is of both directions. */
static int says_pixel(tgi_place_for p, const tgi_picture_writer *w, const tgi_image_meta *m)
{
    double per_unit[2];
    if (p <= FILM)
        return 0;
    if (p == IMAGEJ)
        return tgi_imagej_says_pixel(m);
    for (int i = 1; i < 3; i++)
        if (m->physical[i] > 0 && tgi_unit_micrometres(m->unit[i]) > 0)
            return tgi_resolution_of(m, per_unit) > 1 &&
                   (w != &tgi_jpeg_writer || tgi_jpeg_says(per_unit));
    return 1; /* none in a unit of length */
}

static void add_sizes(list *t, tgi_place_for p, const tgi_picture_writer *w,
                      const tgi_image_meta *m)
{
    const int pixel = m->physical[1] > 0 || m->physical[2] > 0;
    add(t, pixel && !says_pixel(p, w, m), "sizes of pixels");
    add(t, p <= FILM && !pixel && m->resolution_unit > 1 && m->resolution[1] > 0,
        "the resolution");
    add(t, m->physical[0] > 0 && (p < IMAGEJ || !tgi_imagej_says_spacing(m)),
        "the distance of slices");
    add(t, p < IMAGEJ && p != FILM && m->time_increment > 0, "the time between frames");
}

static void add_channels(list *t, tgi_place_for p, const tgi_sink_layout *l,
                         const tgi_image_meta *m)
{
    add(t, (p < IMAGEJ || !imagej_names(l, m)) && any_name(m), "names of channels");
    add(t,
        (p < IMAGEJ || (!m->channel_stem && m->n_channels != channels_of(l) &&
                        m->n_luts != channels_of(l))) &&
            any_color(m),
        "colours of channels"); /* of channels that a network made: tgi_lost_channels */
}

static void add_words(list *t, const tgi_image_meta *m, int has_text)
{
    const int about = m->about || (m->description && tgi_is_prose(m->description));
    add(t, m->title && m->title[0] && strcmp(m->title, "Image0") != 0, "the image's name");
    add(t, m->acquired != NULL, "the date of acquisition");
    add(t, about && (!has_text || m->info), "the description");
}

static void add_imagej(list *t, tgi_place_for p, const tgi_sink_layout *l,
                       const tgi_image_meta *m)
{
    add(t, p < IMAGEJ ? m->n_luts > 0 : m->n_luts && m->n_luts != channels_of(l),
        "lookup tables");
    add(t, p < IMAGEJ ? m->n_ranges > 0 : m->n_ranges && m->n_ranges != channels_of(l),
        "display ranges");
    add(t, p < IMAGEJ && (m->mode == TGI_MODE_COMPOSITE || m->mode == TGI_MODE_COLOR),
        "the display mode");
    add(t, p < IMAGEJ ? m->n_labels > 0 : m->n_labels && m->n_labels != l->n_planes,
        "names of planes");
    add(t, p < IMAGEJ && m->info, "ImageJ's Info");
}

/* What a picture or a TIFF says in tags, and an array has none for. */
static void add_form(list *t, const tgi_image_meta *m)
{
    add(t, m->icc_bytes > 0, "a colour profile");
    add(t, m->orientation > 1, "an orientation");
}

static int has_tables(const tgi_sink_layout *l, const tgi_image_meta *m)
{
    const int small =
        channels_of(l) == 1 && m->palette && m->n_palette <= 256 && l->dtype == TG_DTYPE_U8;
    return l->samples == 1 && (m->n_luts == channels_of(l) || small);
}

/* ImageJ has tables of 256 colours, and no inks. */
static void add_stored(list *t, tgi_place_for p, const tgi_sink_layout *l,
                       const tgi_image_meta *m)
{
    char text[48];
    const int table = p == IMAGEJ && m->stored_as == TGI_STORED_PALETTE && has_tables(l, m);
    if (!m->stored_as || table)
        return;
    snprintf(text, sizeof text, "pixels that are stored as %s", tgi_stored_name(m->stored_as));
    add(t, 1, text);
}

const char *tgi_lost_words(tgi_lost_to to, const tgi_picture_writer *w,
                           const tgi_sink_layout *l, const tgi_image_meta *m, char *buf,
                           size_t cap)
{
    const tgi_place_for p = place_of(to, w, l);
    char ome[320];
    list t = {buf, cap, 0};
    buf[0] = 0;
    if (p == OME)
        return buf;
    add_sizes(&t, p, w, m);
    add_channels(&t, p, l, m);
    add_words(&t, m, p == IMAGEJ);
    add_imagej(&t, p, l, m);
    if (p == ARRAY)
        add_form(&t, m);
    if (p == ARRAY || p == IMAGEJ)
        add_stored(&t, p, l, m);
    tgi_ome_kept_words(m->ome, &m->ome_place, ome, sizeof ome);
    add(&t, ome[0] != 0, ome);
    return buf;
}

const char *tgi_lost_channels(const tgi_image_meta *in, const tgi_image_meta *out, int64_t n,
                              char *buf, size_t cap)
{
    list t = {buf, cap, 0};
    buf[0] = 0;
    add(&t, any_name(in) && !out->n_channels, "names");
    add(&t, any_color(in) && out->n_channels != n, "colours");
    add(&t, in->n_luts && !out->n_luts, "lookup tables");
    add(&t, in->mode && in->mode != TGI_MODE_GREY && !out->mode && n > 1, "display mode");
    add(&t, any_settings(in) && (out->ome_place.any_channel || !any_settings(out)),
        "wavelengths and settings");
    return buf;
}

const char *tgi_image_title(const tgi_image_info *i)
{
    return i->at_series < TGI_IMAGE_MAX_SERIES ? i->series[i->at_series].name : "";
}

int tgi_more_images(const tgi_image_info *i, const tg_opts *o)
{
    return strcmp(i->flavor, "ome") == 0 && i->n_series > 1 &&
           tgi_opts_int(o, TGI_OPT_SERIES, -1) < 0;
}

int tgi_in_more_files(const tgi_image_info *i, const tg_opts *o)
{
    return strcmp(i->flavor, "ome") == 0 && i->n_files > 1 && tgi_opts_flag(o, TGI_OPT_EACH);
}

/* Where all planes are called as channels are, these are lost or not. */
int tgi_lost_labels(const tgi_image_meta *in, const tgi_image_meta *out)
{
    for (int64_t i = 0; i < in->n_labels && !out->n_labels; i++)
        if (in->label[i] && in->label[i][0] && !is_channel(in, in->label[i]))
            return 1;
    return 0;
}

int tgi_lost_nothing(tgi_lost_to to, const tgi_picture_writer *w, const tgi_sink_layout *l)
{
    return place_of(to, w, l) == OME;
}

const char *tgi_lost_why(tgi_lost_to to, const tgi_picture_writer *w)
{
    return to == TGI_LOST_TO_IMAGE && !w
               ? "OME-XML has no such pixels or axes, so the output does not say these"
               : "an OME-TIFF (-o OUT.tif) carries these, this output does not";
}
