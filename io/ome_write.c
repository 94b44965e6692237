/* ome_write.c - OME-XML written by hand: one Image, one Pixels, all planes of this file in
 * order.
 *
 * The text is UTF-8, as the specification of OME-TIFF demands, and holds nothing that changes
 * from run to run (no dates, no UUIDs).
 * Source: OME-XML schema 2016-06; tifffile's reading of it and of its own shape line. */
#include "io/ome_write.h"

#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "io/imagej.h"
#include "io/ome_xml.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Text under construction. Run twice: first to count (p NULL), then to write. */
typedef struct text {
    char *p;
    size_t n;
} text;

static void add_char(text *t, char c)
{
    if (t->p)
        t->p[t->n] = c;
    t->n++;
}

TGI_PRINTF(2, 3)
static void add(text *t, const char *fmt, ...)
{
    char line[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (const char *s = line; *s; s++)
        add_char(t, *s);
}

/* The next code point of UTF-8 text; bytes that are no UTF-8 are taken as Latin-1, which is
 * what old microscope files hold. */
static uint32_t next_point(const unsigned char **s)
{
    const unsigned char *p = *s;
    int more = p[0] >= 0xf0 && p[0] < 0xf5 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc2 ? 1 : 0;
    if (p[0] >= 0xf5)
        more = 0;
    uint32_t c = more == 3 ? p[0] & 7u : more == 2 ? p[0] & 15u : more == 1 ? p[0] & 31u : p[0];
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *s = p + 1;
            return p[0];
        }
        c = c << 6 | (p[i] & 63u);
    }
    *s = p + more + 1;
    return c;
}

/* XML 1.0 allows no control characters but these three, no surrogates, no U+FFFE and U+FFFF. */
static bool is_xml(uint32_t c)
{
    return c >= 0x20
               ? !(c >= 0xd800 && c < 0xe000) && c != 0xfffe && c != 0xffff && c < 0x110000
               : c == '\t' || c == '\n' || c == '\r';
}

static void add_point(text *t, uint32_t c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint32_t first[] = {0, 0xc0, 0xe0, 0xf0};
    add_char(t, (char)(first[more] | c >> (6 * more)));
    for (int i = more - 1; i >= 0; i--)
        add_char(t, (char)(0x80 | (c >> (6 * i) & 63u)));
}

static void add_escaped(text *t, const char *s, tgi_xml_place place)
{
    const unsigned char *p = (const unsigned char *)s;
    while (*p) {
        const uint32_t c = next_point(&p);
        const char *as = c < 0x80 ? tgi_xml_as((char)c, place) : NULL;
        if (!is_xml(c))
            add_char(t, '?');
        else if (as)
            add(t, "%s", as);
        else
            add_point(t, c);
    }
}

/* Length units: as found in files, as OME spells them, in micrometres. */
static const struct {
    const char *seen, *ome;
    double um;
} units[] = {{"um", "\xc2\xb5m", 1},
             {"\xc2\xb5m", "\xc2\xb5m", 1},
             {"\xce\xbcm", "\xc2\xb5m", 1},
             {"micron", "\xc2\xb5m", 1},
             {"microns", "\xc2\xb5m", 1},
             {"\\u00B5m", "\xc2\xb5m", 1},
             {"\xb5m", "\xc2\xb5m", 1},
             {"micrometer", "\xc2\xb5m", 1},
             {"nm", "nm", 1e-3},
             {"pm", "pm", 1e-6},
             {"mm", "mm", 1e3},
             {"cm", "cm", 1e4},
             {"m", "m", 1e6},
             {"km", "km", 1e9},
             {"fm", "fm", 1e-9},
             {"dm", "dm", 1e5},
             {"dam", "dam", 1e7},
             {"hm", "hm", 1e8},
             {"thou", "thou", 25.4},
             {"pt", "pt", 25400.0 / 72},
             {"ft", "ft", 304800},
             {"yd", "yd", 914400},
             {"mi", "mi", 1609344000},
             {"in", "in", 25400},
             {"inch", "in", 25400},
             {"\xc3\x85", "\xc3\x85", 1e-4},
             {"pixel", "pixel", 0},
             {"reference frame", "reference frame", 0}};

double tgi_unit_micrometres(const char *unit)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(units[i].seen, unit))
            return units[i].um;
    return 0;
}

bool tgi_unit_is_known(const char *unit)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(units[i].seen, unit))
            return true;
    return false;
}

double tgi_size_in_x(const tgi_image_meta *m, int i)
{
    const double from = tgi_unit_micrometres(m->unit[i]), to = tgi_unit_micrometres(m->unit[2]);
    if (!strcmp(m->unit[i], m->unit[2]))
        return m->physical[i];
    const double size = from > 0 && to > 0 ? m->physical[i] * from / to : 0;
    return isfinite(size) ? size : 0;
}

/* The schema's spelling; what it does not know is a length in nobody's unit. */
static const char *ome_unit(const char *unit)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(units[i].seen, unit))
            return units[i].ome;
    return *unit ? "reference frame" : "pixel";
}

/* Pixel type by the schema; NULL: OME has none (half floats, 64-bit integers). */
static const char *ome_type(tg_dtype t)
{
    switch (t) {
    case TG_DTYPE_BOOL:
    case TG_DTYPE_U8:
        return "uint8";
    case TG_DTYPE_I8:
        return "int8";
    case TG_DTYPE_U16:
        return "uint16";
    case TG_DTYPE_I16:
        return "int16";
    case TG_DTYPE_U32:
        return "uint32";
    case TG_DTYPE_I32:
        return "int32";
    case TG_DTYPE_F32:
        return "float";
    case TG_DTYPE_F64:
        return "double";
    default:
        return NULL;
    }
}

static int64_t extent(const tgi_sink_layout *l, char axis)
{
    const char *at = strchr(l->axes, axis);
    return at ? l->shape[at - l->axes] : 1;
}

/* What a network made of each channel (axis Q) are channels for OME. */
static int64_t channels_of(const tgi_sink_layout *l)
{
    return extent(l, 'C') * extent(l, 'Q');
}

/* "XYCZT" from "TZCYX": fastest first, axes the image lacks behind. */
static bool dimension_order(const tgi_sink_layout *l, char *order)
{
    int n = 0;
    order[n++] = 'X';
    order[n++] = 'Y';
    for (int i = l->n_axes - 1; i >= 0; i--) {
        const char a = l->axes[i];
        if (a == 'Y' || a == 'X' || a == 'S' || (a == 'Q' && strchr(l->axes, 'C')))
            continue;
        if (!strchr("CZT", a))
            return false;
        order[n++] = a;
    }
    for (const char *a = "CZT"; *a; a++)
        if (!strchr(l->axes, *a))
            order[n++] = *a;
    order[n] = 0;
    return true;
}

static void add_shape_line(text *t, const tgi_sink_layout *l)
{
    add(t, "{\"shape\": [");
    for (int i = 0; i < l->n_axes; i++)
        add(t, "%s%lld", i ? ", " : "", (long long)l->shape[i]);
    add(t, "], \"axes\": \"%s\"}", l->axes);
}

static void add_sizes(text *t, const tgi_image_meta *m)
{
    static const char name[3] = {'Z', 'Y', 'X'};
    char v[TGI_NUMBER_TEXT];
    for (int i = 2; m && i >= 0; i--) {
        if (!(m->physical[i] > 0) || m->physical[i] > 1e300)
            continue;
        tgi_number_digits(m->physical[i], 17, v);
        add(t, " PhysicalSize%c=\"%s\" PhysicalSize%cUnit=\"", name[i], v, name[i]);
        add_escaped(t, ome_unit(m->unit[i]), TGI_XML_ATTRIBUTE);
        add(t, "\"");
    }
    if (!m || !(m->time_increment > 0) || m->time_increment > 1e300)
        return;
    tgi_number_digits(m->time_increment, 17, v);
    add(t, " TimeIncrement=\"%s\" TimeIncrementUnit=\"s\"", v);
}

static void add_plain(text *t, const char *s)
{
    for (; s && *s; s++)
        add_char(t, *s);
}

/* Its attributes are written; `inside`: what stands in it, or NULL. */
static void end_element(text *t, const char *inside, const char *name)
{
    if (!inside) {
        add(t, "/>");
        return;
    }
    add(t, ">");
    add_plain(t, inside);
    add(t, "</%s>", name);
}

/* What else was said of the channel. */
static void end_channel(text *t, const tgi_ome_kept *k, int64_t c)
{
    const int there = k && c < k->n_channels;
    if (there)
        add_plain(t, k->channel_said[c]);
    end_element(t, there ? k->channel_parts[c] : NULL, "Channel");
}

/* Channel c of n. Where the network made it, what it calls it stands behind; or, of several, its own name and a number. */
static void name_channel(text *t, const tgi_image_meta *m, int64_t n, int64_t c)
{
    const int made = m->n_made > 0 && n % m->n_made == 0;
    const int64_t each = made                                          ? m->n_made
                         : m->n_channels > 0 && n % m->n_channels == 0 ? n / m->n_channels
                                                                       : n;
    const char *name =
        m->channel_name && c / each < m->n_channels ? m->channel_name[c / each] : NULL;
    const bool several = !made && each > 1 && m->channel_stem;
    const bool alone = !made && n == 1 && !name && m->channel_stem;
    if (!several && !made && !alone && (!name || m->n_channels != n))
        return;
    add(t, " Name=\"");
    if (name)
        add_escaped(t, name, TGI_XML_ATTRIBUTE);
    if (made) {
        add(t, name ? ", " : "");
        add_escaped(t, m->made_name[c % each], TGI_XML_ATTRIBUTE);
    }
    if (alone)
        add_escaped(t, m->channel_stem, TGI_XML_ATTRIBUTE);
    if (several) {
        add(t, name ? ", " : "");
        add_escaped(t, m->channel_stem, TGI_XML_ATTRIBUTE);
        add(t, " %lld", (long long)(c % each));
    }
    add(t, "\"");
}

static void add_channels(text *t, const tgi_sink_layout *l, const tgi_image_meta *m)
{
    const int64_t n = channels_of(l);
    for (int64_t c = 0; c < n; c++) {
        add(t, "<Channel ID=\"Channel:0:%lld\" SamplesPerPixel=\"%d\"", (long long)c,
            l->samples);
        if (m)
            name_channel(t, m, n, c);
        if (m && m->n_channels == n && m->channel_color && m->channel_color[c])
            add(t, " Color=\"%d\"", (int)(int32_t)m->channel_color[c]);
        end_channel(t, m && !m->ome_place.any_channel ? m->ome : NULL, c);
    }
}

/* A description that is prose is kept; the XML, JSON or key lists of other programs describe
 * the layout of another file, and what they say about the image has been taken from them
 * already. */
bool tgi_is_prose(const char *s)
{
    while (*s == ' ' || *s == '\n' || *s == '\r' || *s == '\t')
        s++;
    return *s && *s != '<' && *s != '{' && strncmp(s, "ImageJ=", 7) != 0;
}

/* "K": one value of the map of what ImageJ knows. */
static void add_value(text *t, const char *key, int64_t number, const char *value)
{
    add(t, "<M K=\"%s%lld\">", key, (long long)number);
    add_escaped(t, value ? value : "", TGI_XML_TEXT);
    add(t, "</M>");
}

/* ImageJ's tables, ranges and names of planes, which OME has no place of their own for. */
static void add_imagej(text *t, const tgi_sink_layout *l, const tgi_image_meta *m)
{
    char v[80], low[TGI_NUMBER_TEXT], high[TGI_NUMBER_TEXT];
    add(t, "<MapAnnotation ID=\"Annotation:imagej\" "
           "Namespace=\"imagej.net\"><Value>");
    if (m->info) {
        add(t, "<M K=\"Info\">");
        add_escaped(t, m->info, TGI_XML_TEXT);
        add(t, "</M>");
    }
    if (m->mode)
        add(t, "<M K=\"Mode\">%s</M>", tgi_imagej_mode(m->mode));
    for (int i = 0; i < m->n_ranges; i++) {
        if (!isfinite(m->range[2 * i]) || !isfinite(m->range[2 * i + 1]))
            break; /* a reader takes those in front of the first that is not there */
        tgi_number_digits(m->range[2 * i], 17, low);
        tgi_number_digits(m->range[2 * i + 1], 17, high);
        snprintf(v, sizeof v, "%s %s", low, high);
        add_value(t, "Range ", i, v);
    }
    for (int i = 0; i < m->n_luts; i++) {
        add(t, "<M K=\"LUT %d\">", i);
        for (int k = 0; k < 768; k++)
            add(t, "%02x", m->lut[(size_t)i * 768 + (size_t)k]);
        add(t, "</M>");
    }
    for (int64_t i = 0; i < m->n_labels && m->n_labels == l->n_planes; i++)
        add_value(t, "Label ", i, m->label[i]);
    add(t, "</Value></MapAnnotation>");
}

static void add_planes(text *t, const tgi_sink_layout *l, const tgi_image_meta *m)
{
    static const char *const name[TGI_PLANE_VALUES] = {"DeltaT", "ExposureTime", "PositionX",
                                                       "PositionY", "PositionZ"};
    char v[TGI_NUMBER_TEXT];
    if (!m || !m->ome || !m->ome->n_planes)
        return;
    for (int64_t ti = 0; ti < extent(l, 'T'); ti++)
        for (int64_t c = 0; c < channels_of(l); c++)
            for (int64_t z = 0; z < extent(l, 'Z'); z++) {
                const tgi_plane_note *n = tgi_plane_note_at(m->ome, &m->ome_place, z, c, ti);
                if (!n)
                    continue;
                add(t, "<Plane TheZ=\"%lld\" TheC=\"%lld\" TheT=\"%lld\"", (long long)z,
                    (long long)c, (long long)ti);
                for (int i = 0; i < TGI_PLANE_VALUES; i++) {
                    if (!(n->has & 1u << i))
                        continue;
                    tgi_number_digits(n->value[i], 17, v);
                    add(t, " %s=\"%s\"", name[i], v);
                    if (!n->unit[i])
                        continue;
                    add(t, " %sUnit=\"", name[i]);
                    add_escaped(t, tgi_plane_unit(i, n->unit[i]), TGI_XML_ATTRIBUTE);
                    add(t, "\"");
                }
                end_element(t, tgi_plane_refs(m->ome, n), "Plane");
            }
}

static void add_roi_char(void *user, char c)
{
    add_char(user, c);
}

/* The image's name, when it was taken, and what was said about it. */
static void add_about(text *t, const tgi_image_meta *m)
{
    const char *about = m && m->about                                         ? m->about
                        : m && m->description && tgi_is_prose(m->description) ? m->description
                                                                              : NULL;
    add(t, "<Image ID=\"Image:0\" Name=\"");
    add_escaped(t, m && m->title && m->title[0] ? m->title : "Image0", TGI_XML_ATTRIBUTE);
    add(t, "\">");
    if (m && m->acquired) {
        add(t, "<AcquisitionDate>");
        add_escaped(t, m->acquired, TGI_XML_TEXT);
        add(t, "</AcquisitionDate>");
    }
    if (m && m->ome)
        add_plain(t, m->ome->person_ref);
    if (about) {
        add(t, "<Description>");
        add_escaped(t, about, TGI_XML_TEXT);
        add(t, "</Description>");
    }
}

/* Where two axes number the channels: the place of each plane. */
static void place_planes(text *t, const tgi_sink_layout *l)
{
    for (int64_t p = 0; p < l->n_planes; p++) {
        int64_t left = p, at[128] = {0};
        for (int i = l->n_axes - 1; i >= 0; i--) {
            if (strchr("YXS", l->axes[i]))
                continue;
            at[l->axes[i] & 127] = left % l->shape[i];
            left /= l->shape[i];
        }
        add(t,
            "<TiffData IFD=\"%lld\" FirstZ=\"%lld\" FirstC=\"%lld\" FirstT=\"%lld\" "
            "PlaneCount=\"1\"/>",
            (long long)p, (long long)at['Z'], (long long)(at['C'] * extent(l, 'Q') + at['Q']),
            (long long)at['T']);
    }
}

static void add_ome(text *t, const tgi_sink_layout *l, const tgi_image_meta *m,
                    const char *order)
{
    add(t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
           "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" ");
    add(t, "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
           "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
           "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" ");
    add(t, "Creator=\"tegula\">");
    const tgi_ome_kept *k = m ? m->ome : NULL;
    if (k)
        add_plain(t, k->head);
    add_about(t, m);
    if (k)
        add_plain(t, k->image_refs);
    add(t, "<Pixels ID=\"Pixels:0\" DimensionOrder=\"%s\" Type=\"%s\"", order,
        ome_type(l->dtype));
    add(t, " SizeX=\"%lld\" SizeY=\"%lld\" SizeC=\"%lld\"", (long long)l->width,
        (long long)l->height, (long long)(channels_of(l) * l->samples));
    add(t, " SizeZ=\"%lld\" SizeT=\"%lld\"", (long long)extent(l, 'Z'),
        (long long)extent(l, 'T'));
    if (l->samples > 1)
        add(t, " Interleaved=\"true\"");
    if (k && k->significant_bits && !m->ome_place.other_values)
        add(t, " SignificantBits=\"%d\"", k->significant_bits);
    add_sizes(t, m);
    add(t, ">");
    add_channels(t, l, m);
    const bool imagej = m && (m->info || m->n_ranges || m->n_luts || m->mode ||
                              (m->n_labels && m->n_labels == l->n_planes));
    if (extent(l, 'Q') > 1)
        place_planes(t, l);
    else
        add(t, "<TiffData IFD=\"0\" PlaneCount=\"%lld\"/>", (long long)l->n_planes);
    add_planes(t, l, m);
    add(t, "</Pixels>");
    if (k && k->rois)
        tgi_rois_refs(k->rois, &m->ome_place, add_roi_char, t);
    if (k)
        add_plain(t, k->image_tail);
    add(t, imagej ? "<AnnotationRef ID=\"Annotation:imagej\"/></Image>" : "</Image>");
    const bool notes = imagej || (k && k->annotations);
    if (notes)
        add(t, "<StructuredAnnotations>");
    if (imagej)
        add_imagej(t, l, m);
    if (k)
        add_plain(t, k->annotations);
    if (notes)
        add(t, "</StructuredAnnotations>");
    int64_t lost;
    if (k && k->rois)
        (void)tgi_rois_write(k->rois, &m->ome_place, NULL, add_roi_char, t, &lost);
    add(t, "</OME>");
}

bool tgi_ome_can(const tgi_sink_layout *l)
{
    char order[TGI_IMAGE_MAX_AXES + 8];
    return ome_type(l->dtype) && dimension_order(l, order);
}

bool tgi_is_named_ome(const char *path)
{
    const size_t n = path ? strlen(path) : 0;
    return (n >= 8 && strcasecmp(path + n - 8, ".ome.tif") == 0) ||
           (n >= 9 && strcasecmp(path + n - 9, ".ome.tiff") == 0);
}

void tgi_ome_letters(const char *path, char *axes)
{
    for (char *a = axes; tgi_is_named_ome(path) && *a; a++) {
        const bool q = *a == 'Q' && strchr(axes, 'C');
        if (q || strchr("CZTYXS", *a))
            continue;
        *a = !strchr(axes, 'T') ? 'T' : !strchr(axes, 'Z') ? 'Z' : *a;
    }
}

tg_status tgi_ome_may(const char *path, tg_dtype dtype, const char *axes, tgi_err *err)
{
    tgi_sink_layout l = {.n_axes = (int)strlen(axes)};
    char order[TGI_IMAGE_MAX_AXES + 8];
    if (!tgi_is_named_ome(path))
        return TG_OK;
    memcpy(l.axes, axes, (size_t)l.n_axes + 1);
    if (!ome_type(dtype))
        return tgi_fail(
            err, TG_E_ARG,
            "%s: OME-XML has no pixels of %s, and the name says that there is some: "
            "name it OUT.tif, or choose --dtype float32",
            path, tgi_dtype_name(dtype));
    if (!dimension_order(&l, order))
        return tgi_fail(err, TG_E_ARG,
                        "%s: OME-XML has slices, times and channels, no other axes beside them "
                        "(%s), and the name says that there is some: name it OUT.tif, or name "
                        "the axes with --axes",
                        path, axes);
    return TG_OK;
}

tg_status tgi_ome_describe(const tgi_sink_layout *l, const tgi_image_meta *meta, char **out,
                           tgi_err *err)
{
    char order[TGI_IMAGE_MAX_AXES + 8];
    const bool ome = ome_type(l->dtype) && dimension_order(l, order);
    text t = {NULL, 0};
    for (int pass = 0; pass < 2; pass++) {
        t.n = 0;
        if (ome)
            add_ome(&t, l, meta, order);
        else
            add_shape_line(&t, l);
        add_char(&t, 0);
        if (!t.p && !(t.p = tgi_malloc(TGI_TAG_IO, t.n)))
            return tgi_fail(err, TG_E_NOMEM, "no memory for the image description: %zu bytes",
                            t.n);
    }
    *out = t.p;
    return TG_OK;
}
