/* ome_carry.c - see ome_carry.h.
 *
 * Elements are written again here, one event of the reader after the other, so nothing is ever held as a tree:
 * local names, attributes without a prefix, other name spaces than OME's as xmlns where they begin. What is
 * kept is bounded; where it would be more, nothing is kept, so that no reference points nowhere. */
#include "io/ome_carry.h"

#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "io/id_set.h"
#include "io/ome_write.h"
#include "io/ome_xml.h"

#include <libxml/xmlreader.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)8 << 20)
#define MOST_DEPTH 32
#define MOST_PLANES (1 << 20)
#define MOST_CHANNELS 65536

typedef struct text {
    char *p;
    size_t n, cap;
} text;

enum {
    HEAD,
    PERSON,
    REFS,
    TAIL,
    NOTES,
    ROIS,
    PARTS,
    PLANE_REFS,
    ROI_REFS,
    OTHERS,
    N_TEXTS
}; /* OTHERS: of another Image, left out */

struct tgi_ome_carry {
    text into[N_TEXTS];
    text *now;  /* the element that is taken goes there */
    int depth;  /* of elements within it; 0: none is taken */
    int deeper; /* elements beyond MOST_DEPTH, which are passed over */
    bool open;  /* its start tag has no > yet */
    const xmlChar *space[MOST_DEPTH + 1];
    bool shape; /* in a shape of a ROI */
    int shape_depth;
    size_t bytes;
    bool too_much, no_memory, old;
    char *malformed;
    tgi_ome_kept kept;
    tgi_id_set rois; /* that the Image names as its own */
    int64_t room;
    int channel; /* number of the one that is read; -1: none */
    bool plane;  /* the last one of `kept` is being read: */
    size_t refs; /* its references begin there */
};

tgi_ome_carry *tgi_ome_carry_new(char *malformed)
{
    tgi_ome_carry *c = tgi_calloc(TGI_TAG_IO, 1, sizeof *c);
    if (!c)
        return NULL;
    c->channel = -1;
    c->malformed = malformed;
    return c;
}

/* ---- Text -------------------------------------------------------------------------------- */

static void add_bytes(tgi_ome_carry *c, text *t, const char *s, size_t n)
{
    if (c->too_much || c->no_memory)
        return;
    if (c->bytes + n > MOST_BYTES) {
        c->too_much = true;
        return;
    }
    if (t->n + n + 1 > t->cap) {
        const size_t cap = 2 * t->cap + n + 256;
        char *q = tgi_realloc_n(TGI_TAG_IO, t->p, cap, 1);
        if (!q) {
            c->no_memory = true;
            return;
        }
        t->p = q;
        t->cap = cap;
    }
    memcpy(t->p + t->n, s, n);
    t->n += n;
    t->p[t->n] = 0;
    c->bytes += n;
}

static void add(tgi_ome_carry *c, const char *s)
{
    add_bytes(c, c->now, s, strlen(s));
}

static void add_char(tgi_ome_carry *c, char ch)
{
    add_bytes(c, c->now, &ch, 1);
}

/* There are many of them, and no more is added. */
static char *without_room(text *t)
{
    char *less = t->p ? tgi_realloc_n(TGI_TAG_IO, t->p, t->n + 1, 1) : NULL;
    char *p = less ? less : t->p;
    *t = (text){0};
    return p;
}

/* libxml2 hands out UTF-8 that XML allows. */
static void add_escaped(tgi_ome_carry *c, const char *s, tgi_xml_place place)
{
    for (; *s; s++) {
        const char *as = tgi_xml_as(*s, place);
        if (as)
            add(c, as);
        else
            add_char(c, *s);
    }
}

static void add_attribute(tgi_ome_carry *c, const char *name, const char *value)
{
    add_char(c, ' ');
    add(c, name);
    add(c, "=\"");
    add_escaped(c, value, TGI_XML_ATTRIBUTE);
    add_char(c, '"');
}

/* ---- Shapes ------------------------------------------------------------------------------ */

static const char *const shapes[] = {"Point",   "Line",     "Rectangle", "Ellipse",
                                     "Polygon", "Polyline", "Label",     "Mask"};

static bool is_among(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static const struct {
    const char *name;
    char kind;
} numbers[] = {{"X", 'X'},      {"X1", 'X'},      {"X2", 'X'},    {"Y", 'Y'},
               {"Y1", 'Y'},     {"Y2", 'Y'},      {"Width", 'W'}, {"RadiusX", 'W'},
               {"Height", 'H'}, {"RadiusY", 'H'}, {"TheZ", 'z'},  {"TheC", 'k'},
               {"TheT", 't'}};
static const struct {
    const char *name;
    char kind;
} of_transform[] = {{"A00", 'a'}, {"A10", 'b'}, {"A01", 'c'},
                    {"A11", 'd'}, {"A02", 'e'}, {"A12", 'f'}};

static void add_marked(tgi_ome_carry *c, char kind, double v)
{
    char s[TGI_NUMBER_TEXT];
    tgi_number_digits(v, 17, s);
    add_char(c, TGI_ROI_MARK);
    add_char(c, kind);
    add(c, s);
    add_char(c, TGI_ROI_MARK);
}

#define BLANK " \n\t\r"

/* The next of "x,y x,y ..."; *v goes behind it. False: there is none. */
static bool next_point(const char **v, double *x, double *y)
{
    const char *s = *v + strspn(*v, BLANK);
    const size_t n = strcspn(s, BLANK), nx = strcspn(s, ",");
    *v = s + n;
    return nx < n && tgi_text_number(s, nx, x) && tgi_text_number(s + nx + 1, n - nx - 1, y);
}

/* False: something in it is no number, and nothing was added. */
static bool add_points(tgi_ome_carry *c, const char *v)
{
    double x, y;
    for (const char *p = v; p[strspn(p, BLANK)];)
        if (!next_point(&p, &x, &y))
            return false;
    add(c, " Points=\"");
    for (bool first = true; v[strspn(v, BLANK)]; first = false) {
        (void)next_point(&v, &x, &y);
        if (!first)
            add_char(c, ' ');
        add_marked(c, 'X', x);
        add_char(c, ',');
        add_marked(c, 'Y', y);
    }
    add_char(c, '"');
    return true;
}

/* Of a slice, a channel or a time. */
static bool is_index(double v)
{
    return v >= 0 && v <= INT32_MAX && v == floor(v);
}

/* True when the attribute is a number that moves with the image. */
static bool add_number(tgi_ome_carry *c, const char *element, const char *name,
                       const char *value)
{
    char kind = 0;
    double v;
    if (strcmp(element, "Transform") == 0)
        for (size_t i = 0; i < sizeof of_transform / sizeof *of_transform; i++)
            if (strcmp(name, of_transform[i].name) == 0)
                kind = of_transform[i].kind;
    if (c->depth == c->shape_depth)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (strcmp(name, numbers[i].name) == 0)
                kind = numbers[i].kind;
    if (c->depth == c->shape_depth && strcmp(name, "Points") == 0) {
        if (add_points(c, value))
            return true;
        tgi_text_malformed(c->malformed, name, value, strlen(value));
        return false;
    }
    if (!kind)
        return false;
    if (!tgi_text_number(value, strlen(value), &v) || (strchr("zkt", kind) && !is_index(v))) {
        tgi_text_malformed(c->malformed, name, value, strlen(value));
        return false;
    }
    add_char(c, ' ');
    add(c, name);
    add(c, "=\"");
    add_marked(c, kind, v);
    add_char(c, '"');
    return true;
}

/* Attributes that are numbers in the schema, in instruments, settings and channels, and which of them are lengths. */
static const struct {
    const char *name;
    bool length;
} numeric[] = {{"EmissionWavelength", true},
               {"ExcitationWavelength", true},
               {"PinholeSize", true},
               {"Wavelength", true},
               {"WorkingDistance", true},
               {"X", true},
               {"Y", true},
               {"Z", true},
               {"CutIn", true},
               {"CutOut", true},
               {"AmplificationGain", false},
               {"Attenuation", false},
               {"AirPressure", false},
               {"CO2Percent", false},
               {"ExposureTime", false},
               {"Gain", false},
               {"Humidity", false},
               {"Integration", false},
               {"LensNA", false},
               {"NDFilter", false},
               {"NominalMagnification", false},
               {"CalibratedMagnification", false},
               {"Offset", false},
               {"Power", false},
               {"ReadOutRate", false},
               {"RefractiveIndex", false},
               {"RepetitionRate", false},
               {"Temperature", false},
               {"Transmittance", false},
               {"Voltage", false},
               {"Zoom", false}};

/* Which of them, or which of them has this unit; -1: another attribute. */
static int numeric_of(const char *name, bool *is_unit)
{
    const size_t n = strlen(name);
    *is_unit = n > 4 && strcmp(name + n - 4, "Unit") == 0;
    const size_t base = n - (*is_unit ? 4 : 0);
    for (size_t i = 0; i < sizeof numeric / sizeof *numeric; i++)
        if (strlen(numeric[i].name) == base && memcmp(numeric[i].name, name, base) == 0)
            return (int)i;
    return -1;
}

/* A bit for each that is no number, or has a unit that is none: they are told, and not written. */
static uint64_t malformed_of(tgi_ome_carry *c, xmlTextReaderPtr r)
{
    uint64_t bad = 0;
    while (xmlTextReaderMoveToNextAttribute(r) == 1) {
        const char *name = (const char *)xmlTextReaderConstName(r),
                   *value = (const char *)xmlTextReaderConstValue(r);
        bool is_unit;
        double v;
        const int i = name && value ? numeric_of(name, &is_unit) : -1;
        if (i < 0 || (is_unit ? !numeric[i].length || tgi_unit_is_known(value)
                              : tgi_text_number(value, strlen(value), &v)))
            continue;
        tgi_text_malformed(c->malformed, name, value, strlen(value));
        bad |= UINT64_C(1) << i;
    }
    xmlTextReaderMoveToElement(r);
    return bad;
}

/* ---- Elements ---------------------------------------------------------------------------- */

static bool is_ome(const xmlChar *space)
{
    return !space || strstr((const char *)space, "openmicroscopy.org/Schemas/") != NULL;
}

static void add_attributes(tgi_ome_carry *c, xmlTextReaderPtr r, const char *element,
                           const char *const *but, size_t n_but)
{
    const bool free_form =
        c->now == &c->into[ROIS] || c->now == &c->into[OTHERS] || c->now == &c->into[NOTES];
    const uint64_t bad = free_form ? 0 : malformed_of(c, r);
    bool is_unit;
    while (xmlTextReaderMoveToNextAttribute(r) == 1) {
        const char *name = (const char *)xmlTextReaderConstName(r),
                   *value = (const char *)xmlTextReaderConstValue(r);
        if (!name || !value || strchr(name, ':') || strncmp(name, "xmlns", 5) == 0 ||
            is_among(name, but, n_but))
            continue;
        const int k = bad ? numeric_of(name, &is_unit) : -1;
        if (k >= 0 && bad & UINT64_C(1) << k)
            continue;
        if (c->now == &c->into[ROIS] && c->shape && add_number(c, element, name, value))
            continue;
        add_attribute(c, name, value);
    }
    xmlTextReaderMoveToElement(r);
}

static void close_tag(tgi_ome_carry *c)
{
    if (c->open)
        add_char(c, '>');
    c->open = false;
}

/* Write the element that begins, with its attributes. */
static void begin_element(tgi_ome_carry *c, xmlTextReaderPtr r, const char *name)
{
    const xmlChar *space = xmlTextReaderConstNamespaceUri(r), *around = c->space[c->depth];
    const bool empty = xmlTextReaderIsEmptyElement(r) == 1;
    close_tag(c);
    if (c->depth + 1 > MOST_DEPTH) {
        c->too_much = true;
        c->deeper += !empty;
        return;
    }
    c->space[++c->depth] = space;
    const bool is_roi = c->now == &c->into[ROIS];
    if (is_roi && c->depth == 1)
        add_char(c, TGI_ROI_ROI);
    if (is_roi && !c->shape && is_among(name, shapes, sizeof shapes / sizeof *shapes)) {
        c->shape = true;
        c->shape_depth = c->depth;
        add_char(c, TGI_ROI_SHAPE);
        if (strcmp(name, "Mask") == 0)
            add_char(c, TGI_ROI_MASK);
    }
    if (is_roi && c->shape && strcmp(name, "Transform") == 0)
        add_char(c, TGI_ROI_TRANSFORM);
    add_char(c, '<');
    add(c, name);
    if (!is_ome(space) && (!around || !xmlStrEqual(space, around)))
        add_attribute(c, "xmlns", (const char *)space);
    else if (is_ome(space) && !is_ome(around))
        add_attribute(c, "xmlns", "http://www.openmicroscopy.org/Schemas/OME/2016-06");
    add_attributes(c, r, name, NULL, 0);
    c->open = true;
    if (empty)
        tgi_ome_carry_end(c, name);
}

bool tgi_ome_carry_text(tgi_ome_carry *c, const char *s)
{
    if (!c->depth)
        return false;
    close_tag(c);
    add_escaped(c, s, TGI_XML_TEXT);
    return true;
}

static void end_channel(tgi_ome_carry *c)
{
    if (c->channel < 0 || !c->into[PARTS].p)
        return;
    c->kept.channel_parts[c->channel] = without_room(&c->into[PARTS]);
}

/* A plane that says nothing is none. */
static void end_plane(tgi_ome_carry *c)
{
    tgi_plane_note *n = c->plane ? &c->kept.plane[c->kept.n_planes - 1] : NULL;
    if (!n)
        return;
    if (c->into[PLANE_REFS].n > c->refs) {
        c->now = &c->into[PLANE_REFS];
        add_char(c, 0);
        n->refs = (uint32_t)c->refs + 1;
    }
    c->kept.n_planes -= !n->has && !n->refs;
    c->plane = false;
}

bool tgi_ome_carry_end(tgi_ome_carry *c, const char *name)
{
    if (!c->depth && strcmp(name, "Plane") == 0)
        end_plane(c);
    if (!c->depth && strcmp(name, "Channel") == 0) {
        end_channel(c);
        c->channel = -1;
    }
    if (!c->depth)
        return false;
    if (c->deeper) {
        c->deeper--;
        return true;
    }
    if (c->open) {
        add(c, "/>");
        c->open = false;
    } else {
        add(c, "</");
        add(c, name);
        add_char(c, '>');
    }
    if (c->shape && c->depth == c->shape_depth) {
        add_char(c, TGI_ROI_SHAPE_END);
        c->shape = false;
    }
    if (c->now == &c->into[ROIS] && c->depth == 1)
        add_char(c, TGI_ROI_ROI_END);
    if (--c->depth == 0 && c->now == &c->into[OTHERS]) {
        c->bytes -= c->now->n;
        c->now->n = 0;
    }
    return true;
}

void tgi_ome_carry_old(tgi_ome_carry *c)
{
    c->old = true;
}

/* ---- What goes where --------------------------------------------------------------------- */

static const struct {
    const char *name;
    int into;
} of_image[] = {{"ExperimenterRef", PERSON},  {"ExperimenterGroupRef", REFS},
                {"InstrumentRef", REFS},      {"ObjectiveSettings", REFS},
                {"ImagingEnvironment", REFS}, {"StageLabel", REFS},
                {"ROIRef", ROI_REFS},         {"AnnotationRef", TAIL}};
static const char *const of_ome[] = {"Experimenter", "ExperimenterGroup", "Instrument"};
static const char *const notes[] = {
    "XMLAnnotation",    "FileAnnotation",    "ListAnnotation",    "LongAnnotation",
    "DoubleAnnotation", "CommentAnnotation", "BooleanAnnotation", "TimestampAnnotation",
    "TagAnnotation",    "TermAnnotation",    "MapAnnotation"};
static const char *const of_channel[] = {"LightSourceSettings", "DetectorSettings",
                                         "FilterSetRef", "LightPath", "AnnotationRef"};
static const char *const our_own[] = {"ID", "Name", "Color", "SamplesPerPixel"};

static bool take(tgi_ome_carry *c, int into, xmlTextReaderPtr r, const char *name)
{
    c->now = &c->into[into];
    c->space[0] = NULL;
    c->shape = false;
    begin_element(c, r, name);
    return true;
}

static void begin_channel(tgi_ome_carry *c, xmlTextReaderPtr r)
{
    tgi_ome_kept *k = &c->kept;
    text said = {0};
    end_channel(c);
    c->too_much |= k->n_channels >= MOST_CHANNELS;
    if (c->too_much)
        return;
    if ((k->n_channels & (k->n_channels - 1)) == 0) { /* room doubles at powers of two */
        const size_t room = k->n_channels ? 2 * (size_t)k->n_channels : 1;
        void *a = tgi_realloc_n(TGI_TAG_IO, k->channel_said, room, sizeof *k->channel_said);
        if (a)
            k->channel_said = a;
        void *b = tgi_realloc_n(TGI_TAG_IO, k->channel_parts, room, sizeof *k->channel_parts);
        if (b)
            k->channel_parts = b;
        c->no_memory |= !a || !b;
        if (!a || !b)
            return;
    }
    c->channel = k->n_channels++;
    c->now = &said;
    add_attributes(c, r, "Channel", our_own, sizeof our_own / sizeof *our_own);
    k->channel_said[c->channel] = without_room(&said);
    k->channel_parts[c->channel] = NULL;
    c->now = NULL;
    if (xmlTextReaderIsEmptyElement(r) == 1)
        c->channel = -1;
}

static bool value_of(xmlTextReaderPtr r, const char *name, char *buf, size_t cap)
{
    xmlChar *v = xmlTextReaderGetAttribute(r, (const xmlChar *)name);
    buf[0] = 0;
    if (!v)
        return false;
    strncat(buf, (const char *)v, cap - 1);
    xmlFree(v);
    return true;
}

static bool index_of(tgi_ome_carry *c, xmlTextReaderPtr r, const char *name, int32_t *out)
{
    char s[32];
    int64_t v;
    if (!value_of(r, name, s, sizeof s))
        return false;
    if (!tgi_text_whole(s, strlen(s), &v) || v < 0 || v > INT32_MAX) {
        tgi_text_malformed(c->malformed, name, s, strlen(s));
        return false;
    }
    *out = (int32_t)v;
    return true;
}

static void take_plane(tgi_ome_carry *c, xmlTextReaderPtr r)
{
    static const struct {
        const char *name, *unit;
    } of[TGI_PLANE_VALUES] = {{"DeltaT", "DeltaTUnit"},
                              {"ExposureTime", "ExposureTimeUnit"},
                              {"PositionX", "PositionXUnit"},
                              {"PositionY", "PositionYUnit"},
                              {"PositionZ", "PositionZUnit"}};
    tgi_plane_note n = {0};
    char s[64];
    end_plane(c);
    if (!index_of(c, r, "TheZ", &n.z) || !index_of(c, r, "TheC", &n.c) ||
        !index_of(c, r, "TheT", &n.t))
        return;
    for (int i = 0; i < TGI_PLANE_VALUES; i++) {
        if (!value_of(r, of[i].name, s, sizeof s))
            continue;
        if (!tgi_text_number(s, strlen(s), &n.value[i])) {
            tgi_text_malformed(c->malformed, of[i].name, s, strlen(s));
            continue;
        }
        n.unit[i] = 0; /* the schema's default, which writers leave out */
        if (value_of(r, of[i].unit, s, sizeof s) &&
            !(n.unit[i] = (uint8_t)tgi_plane_unit_of(i, s))) { /* a unit that nobody knows */
            tgi_text_malformed(c->malformed, of[i].unit, s, strlen(s));
            continue;
        }
        n.has |= (uint8_t)(1u << i);
    }
    const bool empty = xmlTextReaderIsEmptyElement(r) == 1;
    if (!n.has && empty)
        return;
    if (c->kept.n_planes >= MOST_PLANES) {
        c->too_much = true;
        return;
    }
    if (c->kept.n_planes == c->room) {
        const int64_t room = c->room ? 2 * c->room : 64;
        void *q = tgi_realloc_n(TGI_TAG_IO, c->kept.plane, (size_t)room, sizeof *c->kept.plane);
        c->no_memory |= !q;
        if (!q)
            return;
        c->kept.plane = q;
        c->room = room;
    }
    c->kept.plane[c->kept.n_planes++] = n;
    c->plane = !empty;
    c->refs = c->into[PLANE_REFS].n;
}

/* SignificantBits: a number that the type of the pixels, "uint16" or "float", has room for. */
static void take_bits(tgi_ome_carry *c, xmlTextReaderPtr r)
{
    char type[32];
    int32_t bits;
    if (c->kept.significant_bits || !index_of(c, r, "SignificantBits", &bits) ||
        !value_of(r, "Type", type, sizeof type))
        return;
    const int of_type = strcmp(type, "float") == 0 ? 32
                        : strcmp(type, "double") == 0
                            ? 64
                            : atoi(type + strcspn(type, "0123456789"));
    if (bits < 1 || bits > of_type || of_type > 64)
        return;
    c->kept.significant_bits = bits;
    c->kept.type_bits = of_type;
}

/* What ImageJ knows is written again out of what was read; which levels a file has, Bio-Formats
 * notes, and the output has its own. */
static bool is_of_this_file(xmlTextReaderPtr r)
{
    char s[64];
    return value_of(r, "Namespace", s, sizeof s) &&
           (strcmp(s, "imagej.net") == 0 ||
            strcmp(s, "openmicroscopy.org/PyramidResolution") == 0);
}

/* Does the Image that is read name this region as its own? */
static bool is_referenced(const tgi_ome_carry *c, xmlTextReaderPtr r)
{
    xmlChar *id = xmlTextReaderGetAttribute(r, (const xmlChar *)"ID");
    const bool is = id && tgi_id_set_has(&c->rois, (const char *)id);
    xmlFree(id);
    return is;
}

static void note_reference(tgi_ome_carry *c, xmlTextReaderPtr r)
{
    xmlChar *id = xmlTextReaderGetAttribute(r, (const xmlChar *)"ID");
    if (id)
        c->no_memory |= !tgi_id_set_add(&c->rois, (const char *)id);
    xmlFree(id);
}

/* The reference to what is_imagej leaves out, which is written anew with what it refers to. */
static bool is_our_note(xmlTextReaderPtr r, const char *name)
{
    char s[32];
    return strcmp(name, "AnnotationRef") == 0 && value_of(r, "ID", s, sizeof s) &&
           strcmp(s, "Annotation:imagej") == 0;
}

bool tgi_ome_carry_start(tgi_ome_carry *c, void *reader, const char *name,
                         const tgi_ome_where *at)
{
    xmlTextReaderPtr r = reader;
    if (c->depth) {
        begin_element(c, r, name);
        return true;
    }
    if (at->wanted && !at->pixels && strcmp(name, "Pixels") == 0)
        take_bits(c, r);
    if (c->old && !(at->wanted && at->pixels))
        return false;
    if (at->before && is_among(name, of_ome, sizeof of_ome / sizeof *of_ome))
        return take(c, HEAD, r, name);
    if (at->wanted && at->pixels) {
        if (strcmp(name, "Channel") == 0)
            begin_channel(c, r);
        else if (strcmp(name, "Plane") == 0)
            take_plane(c, r);
        else if (c->plane && !c->old && strcmp(name, "AnnotationRef") == 0)
            return take(c, PLANE_REFS, r, name);
        else if (c->channel >= 0 && !c->old &&
                 is_among(name, of_channel, sizeof of_channel / sizeof *of_channel) &&
                 !(xmlTextReaderIsEmptyElement(r) == 1 &&
                   xmlTextReaderHasAttributes(r) != 1)) /* it says nothing */
            return take(c, PARTS, r, name);
        return false;
    }
    if (at->wanted && strcmp(name, "ROIRef") == 0)
        note_reference(c, r);
    if (at->wanted && !is_our_note(r, name))
        for (size_t i = 0; i < sizeof of_image / sizeof *of_image; i++)
            if (strcmp(name, of_image[i].name) == 0)
                return take(c, of_image[i].into, r, name);
    if (is_among(name, notes, sizeof notes / sizeof *notes) &&
        (strcmp(name, "MapAnnotation") != 0 || !is_of_this_file(r)))
        return take(c, NOTES, r, name);
    if (strcmp(name, "ROI") == 0)
        return take(c, at->alone || is_referenced(c, r) ? ROIS : OTHERS, r, name);
    return false;
}

tg_status tgi_ome_carry_take(tgi_ome_carry **carry, tgi_ome_kept **out, bool *dropped,
                             tgi_err *err)
{
    tgi_ome_carry *c = *carry;
    *out = NULL;
    *dropped = c->too_much;
    end_channel(c);
    end_plane(c);
    tg_status st = c->no_memory ? tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML") : TG_OK;
    tgi_ome_kept *k = st == TG_OK && !c->too_much ? tgi_malloc(TGI_TAG_IO, sizeof *k) : NULL;
    if (st == TG_OK && !c->too_much && !k)
        st = tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML");
    if (k) {
        char **const to[] = {&c->kept.head,       &c->kept.person_ref,  &c->kept.image_refs,
                             &c->kept.image_tail, &c->kept.annotations, &c->kept.rois};
        for (int i = 0; i < PARTS; i++) {
            *to[i] = c->into[i].p;
            c->into[i] = (text){0};
        }
        c->kept.plane_refs = c->into[PLANE_REFS].p;
        c->kept.plane_refs_bytes = c->into[PLANE_REFS].n;
        c->into[PLANE_REFS] = (text){0};
        *k = c->kept;
        c->kept = (tgi_ome_kept){0};
        tgi_plane_notes_sort(k->plane, (size_t)k->n_planes);
        *out = k;
    }
    tgi_ome_carry_free(carry);
    return st;
}

void tgi_ome_carry_free(tgi_ome_carry **carry)
{
    tgi_ome_carry *c = *carry;
    if (!c)
        return;
    for (int i = 0; i < N_TEXTS; i++)
        tgi_free(c->into[i].p);
    tgi_ome_kept_clear(&c->kept);
    tgi_id_set_clear(&c->rois);
    tgi_free(c);
    *carry = NULL;
}
