/* ome_xml.c - OME-XML through libxml2's streaming reader.
 *
 * The text comes from strangers: the network is off, documents with a DOCTYPE (the only door to
 * entities) are refused before the parser sees them, the size is capped, and the streaming
 * reader keeps one element in memory where a tree would hold a million. libxml2 compares every
 * attribute of an element with those before it, and looks a prefix up among all name spaces:
 * crowded elements are refused in front of it, and the reading has a limit of time.
 *
 * One Image is read, of the others name and size. Elements are recognised by their local
 * name, so every schema year reads the same. */
#include "io/ome_xml.h"

#include "engine/base/mem.h"
#include "io/imagej.h"
#include "io/ome_carry.h"
#include "io/ome_write.h"

#include <libxml/xmlreader.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define MAX_COMPARED 1000000000u   /* pairs of attributes: a second or two */
#define MAX_TEXT ((size_t)1 << 20) /* of one element */
#define MAX_SECONDS 5 /* of this thread; 64 MiB of honest text take less than one */

typedef struct parse {
    xmlTextReaderPtr r;
    tgi_ome *o;
    const char *file_name;
    int image; /* the one to read */
    char root_uuid[96];
    char first_uuid[96];  /* of the first TiffData: a renamed file has only that one, */
    char first_file[256]; /* and one name */
    bool in_pixels, in_uuid;
    bool uuid_wanted; /* of a TiffData that is taken */
    bool pixels_ended;
    tgi_ome_carry *carry;
    char uuid_file[256]; /* FileName of the UUID element being read */
    bool in_map;         /* within the annotation that is ours */
    char key[32];        /* of the M element being read; "" another element: */
    char **into;         /* NULL: none */
    char *said;          /* text of that element so far; owned */
    size_t n_said;
    bool saying;
    size_t cap;
    bool many_uuids;
    tgi_err *err;
    tg_status st;
} parse;

static bool attribute(parse *p, const char *name, char *out, size_t cap)
{
    xmlChar *v = xmlTextReaderGetAttribute(p->r, (const xmlChar *)name);
    out[0] = 0;
    if (!v)
        return false;
    strncat(out, (const char *)v, cap - 1);
    xmlFree(v);
    return true;
}

static int64_t integer(parse *p, const char *name, int64_t absent)
{
    char s[32];
    int64_t v;
    if (!attribute(p, name, s, sizeof s))
        return absent;
    if (!tgi_text_whole(s, strlen(s), &v) || v < 0 || v >= (INT64_C(1) << 40)) {
        if (p->st == TG_OK)
            p->st = tgi_fail(p->err, TG_E_FORMAT, "OME-XML: %s=\"%s\"", name, s);
        return absent;
    }
    return v;
}

/* Of a plane or a directory: no file has more of them. */
static int32_t number_of(parse *p, const char *name, int32_t absent)
{
    const int64_t v = integer(p, name, absent);
    if (v > INT32_MAX && p->st == TG_OK)
        p->st = tgi_fail(p->err, TG_E_FORMAT, "OME-XML: %s=\"%lld\"", name, (long long)v);
    return v > INT32_MAX ? absent : (int32_t)v;
}

/* A size or an interval, which no pixel depends on: what is no number is not there, and is told. */
static double number(parse *p, const char *name)
{
    char s[64];
    double v = 0;
    if (attribute(p, name, s, sizeof s) && (!tgi_text_number(s, strlen(s), &v) || v < 0))
        tgi_text_malformed(p->o->notes.malformed, name, s, strlen(s));
    return v > 0 ? v : 0;
}

static void physical(parse *p, int axis, const char *name, const char *unit_name)
{
    char unit[32];
    p->o->physical[axis] = number(p, name);
    if (p->o->physical[axis] <= 0)
        return;
    if (!attribute(p, unit_name, unit, sizeof unit))
        strcpy(unit, "\xc2\xb5m"); /* the schema's default */
    tgi_unit_canonical(unit, strlen(unit), p->o->unit[axis], sizeof p->o->unit[axis]);
    if (tgi_unit_is_known(p->o->unit[axis]))
        return;
    tgi_text_malformed(p->o->notes.malformed, unit_name, unit, strlen(unit));
    p->o->physical[axis] = 0; /* a number of nobody knows what */
    p->o->unit[axis][0] = 0;
}

/* Seconds in a unit of time; 0: it is none. */
static double seconds_in(const char *unit)
{
    static const struct {
        const char *name;
        double s;
    } of[] = {{"s", 1},     {"ms", 1e-3}, {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6},
              {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12},       {"min", 60},
              {"h", 3600},  {"d", 86400}, {"ds", 1e-1},        {"cs", 1e-2},
              {"das", 1e1}, {"hs", 1e2},  {"ks", 1e3},         {"fs", 1e-15}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(of[i].name, unit) == 0)
            return of[i].s;
    return 0;
}

static void interval(parse *p)
{
    char unit[16];
    p->o->time_increment = number(p, "TimeIncrement");
    if (!(p->o->time_increment > 0) || !attribute(p, "TimeIncrementUnit", unit, sizeof unit))
        return;
    p->o->time_increment *= seconds_in(unit);
    if (seconds_in(unit) > 0 && isfinite(p->o->time_increment))
        return;
    p->o->time_increment = 0;
    if (seconds_in(unit) > 0 &&
        attribute(p, "TimeIncrement", unit, sizeof unit)) /* too many of them */
        tgi_text_malformed(p->o->notes.malformed, "TimeIncrement", unit, strlen(unit));
    else
        tgi_text_malformed(p->o->notes.malformed, "TimeIncrementUnit", unit, strlen(unit));
}

static void take_pixels(parse *p)
{
    tgi_ome *o = p->o;
    attribute(p, "DimensionOrder", o->order, sizeof o->order);
    o->size_x = integer(p, "SizeX", 0);
    o->size_y = integer(p, "SizeY", 0);
    o->size_z = integer(p, "SizeZ", 1);
    o->size_c = integer(p, "SizeC", 1);
    o->size_t_ = integer(p, "SizeT", 1);
    physical(p, 0, "PhysicalSizeZ", "PhysicalSizeZUnit");
    physical(p, 1, "PhysicalSizeY", "PhysicalSizeYUnit");
    physical(p, 2, "PhysicalSizeX", "PhysicalSizeXUnit");
    interval(p);
}

/* 0xRRGGBBAA, signed in the schema. */
static uint32_t color(parse *p, const char *text)
{
    int64_t v;
    if (tgi_text_whole(text, strlen(text), &v) && v >= INT32_MIN && v <= UINT32_MAX)
        return (uint32_t)v;
    tgi_text_malformed(p->o->notes.malformed, "Color", text, strlen(text));
    return 0;
}

static void take_channel(parse *p)
{
    tgi_ome *o = p->o;
    char text[256];
    if (o->n_channels >= TGI_OME_MAX_CHANNELS)
        return;
    if ((o->n_channels & (o->n_channels - 1)) == 0) { /* room doubles at powers of two */
        void *q =
            tgi_realloc_n(TGI_TAG_IO, o->channels,
                          o->n_channels ? 2 * (size_t)o->n_channels : 1, sizeof *o->channels);
        if (!q) {
            p->st = tgi_fail(p->err, TG_E_NOMEM, "no memory for OME-XML channels");
            return;
        }
        o->channels = q;
    }
    tgi_ome_channel *c = &o->channels[o->n_channels++];
    *c = (tgi_ome_channel){0};
    if (attribute(p, "Color", text, sizeof text))
        c->color = color(p, text);
    c->samples = integer(p, "SamplesPerPixel", 1);
    if (attribute(p, "Name", text, sizeof text) && text[0] &&
        !(c->name = tgi_strdup(TGI_TAG_IO, text)))
        p->st = tgi_fail(p->err, TG_E_NOMEM, "no memory for OME-XML channels");
}

static void take_block(parse *p)
{
    tgi_ome *o = p->o;
    if (o->n_blocks == p->cap) {
        const size_t cap = p->cap ? 2 * p->cap : 16;
        void *q = tgi_realloc_n(TGI_TAG_IO, o->blocks, cap, sizeof *o->blocks);
        if (!q) {
            p->st = tgi_fail(p->err, TG_E_NOMEM, "no memory for OME-XML planes");
            return;
        }
        o->blocks = q;
        p->cap = cap;
    }
    o->blocks[o->n_blocks++] = (tgi_ome_block){
        .ifd = number_of(p, "IFD", -1),
        .z = number_of(p, "FirstZ", 0),
        .c = number_of(p, "FirstC", 0),
        .t = number_of(p, "FirstT", 0),
        .count = number_of(p, "PlaneCount", -1),
    };
}

/* Keep the name of another file; the text bounds them all. */
static void keep_name(parse *p, tgi_ome_block *b)
{
    tgi_ome *o = p->o;
    const size_t n = strlen(p->uuid_file) + 1;
    if (n == 1)
        return;
    if (o->names_len > n && strcmp(o->names + o->names_len - n, p->uuid_file) == 0 &&
        (o->names_len == n || !o->names[o->names_len - n - 1])) {
        b->name = (uint32_t)(o->names_len - n) + 1; /* the same as the last one */
        return;
    }
    if (o->names_len + n > o->names_cap) {
        const size_t cap = 2 * o->names_cap + n + 4096;
        void *q = tgi_realloc_n(TGI_TAG_IO, o->names, cap, 1);
        if (!q) {
            p->st = tgi_fail(p->err, TG_E_NOMEM, "no memory for the names of files");
            return;
        }
        o->names = q;
        o->names_cap = cap;
    }
    memcpy(o->names + o->names_len, p->uuid_file, n);
    b->name = (uint32_t)o->names_len + 1;
    o->names_len += n;
}

/* Of any Image: are there several, and which Image is the first in this file? */
static void see_uuid(parse *p, const char *id, bool same_id, bool same_name)
{
    tgi_ome *o = p->o;
    if (!p->first_uuid[0])
        strncat(p->first_uuid, id, sizeof p->first_uuid - 1);
    if (!p->first_file[0])
        memcpy(p->first_file, p->uuid_file, sizeof p->first_file);
    p->many_uuids |= strcmp(id, p->first_uuid) != 0 || strcmp(p->uuid_file, p->first_file) != 0;
    if (o->own < 0 && same_name)
        o->own = o->n_images - 1;
    if (o->own_id < 0 && same_id)
        o->own_id = o->n_images - 1;
}

/* The UUID of a TiffData: this file when the id is the root's, when the name is ours, or, for a
 * renamed file without a root id, when it is the only id in the text. */
static void take_uuid(parse *p, const char *id)
{
    const bool same_id = p->root_uuid[0] && strcasecmp(id, p->root_uuid) == 0;
    const bool same_name = p->uuid_file[0] && strcmp(p->uuid_file, p->file_name) == 0;
    see_uuid(p, id, same_id, same_name);
    if (!p->uuid_wanted)
        return;
    tgi_ome_block *b = &p->o->blocks[p->o->n_blocks - 1];
    b->elsewhere = !same_id && !same_name;
    if (b->elsewhere)
        keep_name(p, b);
}

static void take_image(parse *p)
{
    char title[256];
    const int k = p->o->n_images++;
    if (k < TGI_OME_MAX_IMAGES)
        attribute(p, "Name", p->o->images[k].name, sizeof p->o->images[k].name);
    if (k == p->image && attribute(p, "Name", title, sizeof title) && title[0] &&
        !(p->o->notes.title = tgi_strdup(TGI_TAG_IO, title)))
        p->st = tgi_fail(p->err, TG_E_NOMEM, "no memory for the name of an OME image");
}

/* ---- Elements that are texts ---- */

/* What is being said goes to where it belongs. */
static void end_text(parse *p)
{
    if (!p->saying)
        return;
    const char *said = p->said ? p->said : "";
    p->saying = false;
    if (p->into && !*p->into && said[0]) {
        *p->into = p->said;
        p->said = NULL;
    } else if (!p->into && p->key[0] && p->st == TG_OK) {
        p->st = tgi_ome_note(&p->o->notes, p->key, said, p->err);
    }
    tgi_free(p->said);
    p->said = NULL;
    p->n_said = 0;
}

static void begin_text(parse *p, char **into)
{
    end_text(p);
    p->saying = true;
    p->into = into;
    if (xmlTextReaderIsEmptyElement(p->r))
        end_text(p);
}

static void add_text(parse *p)
{
    const char *v = (const char *)xmlTextReaderConstValue(p->r);
    const size_t n = v ? strlen(v) : 0;
    if (!n || n > MAX_TEXT - p->n_said) /* a longer one is cut */
        return;
    char *q = tgi_realloc_n(TGI_TAG_IO, p->said, p->n_said + n + 1, 1);
    if (!q) {
        p->st = tgi_fail(p->err, TG_E_NOMEM, "no memory for a text of OME-XML");
        return;
    }
    memcpy(q + p->n_said, v, n + 1);
    p->said = q;
    p->n_said += n;
}

/* Elements that outputs do not carry are remembered by name. */
static void note_element(parse *p, const char *name)
{
    char v[32];
    const size_t n = strlen(name);
    if (n > 10 && strcmp(name + n - 10, "Annotation") == 0)
        name = strcmp(name, "MapAnnotation") == 0 && attribute(p, "Namespace", v, sizeof v) &&
                       strcmp(v, "imagej.net") == 0
                   ? ""               /* ours */
                   : "XMLAnnotation"; /* one kind stands for all */
    const char *const *which = tgi_ome_note_attributes(name);
    bool tells = !which;
    for (; which && *which && !tells; which++)
        tells = attribute(p, *which, v, sizeof v);
    if (tells)
        tgi_ome_note_element(&p->o->notes, name);
}

/* True when the element was one of them. */
static bool start_text(parse *p, const char *name, bool wanted)
{
    char space[32];
    if (strcmp(name, "MapAnnotation") == 0) {
        attribute(p, "Namespace", space, sizeof space);
        p->in_map = strcmp(space, "imagej.net") == 0;
    } else if (p->in_map && strcmp(name, "M") == 0) {
        attribute(p, "K", p->key, sizeof p->key);
        begin_text(p, NULL);
    } else if (wanted && !p->in_pixels &&
               (strcmp(name, "AcquisitionDate") == 0 || strcmp(name, "AcquiredDate") == 0)) {
        begin_text(p, &p->o->notes.acquired);
    } else if (wanted && !p->in_pixels && strcmp(name, "Description") == 0) {
        begin_text(p, &p->o->notes.about);
    } else {
        return false;
    }
    return true;
}

static void take_size(parse *p)
{
    tgi_ome *o = p->o;
    if (o->n_images < 1 || o->n_images > TGI_OME_MAX_IMAGES)
        return;
    o->images[o->n_images - 1].width = integer(p, "SizeX", 0);
    o->images[o->n_images - 1].height = integer(p, "SizeY", 0);
}

/* Elements of an older schema may be others in the one that is written. */
static void take_schema(parse *p)
{
    const char *space = (const char *)xmlTextReaderConstNamespaceUri(p->r);
    if (!space || strstr(space, "/2016-06"))
        return;
    p->o->notes.old = true;
    tgi_ome_carry_old(p->carry);
}

/* `wanted`: of a TiffData that is taken. */
static void start_uuid(parse *p, bool wanted)
{
    attribute(p, "FileName", p->uuid_file, sizeof p->uuid_file);
    p->uuid_wanted = wanted;
    p->in_uuid = !xmlTextReaderIsEmptyElement(p->r);
    if (!p->in_uuid)
        take_uuid(p, "");
}

static void start_element(parse *p, const char *name)
{
    tgi_ome *o = p->o;
    const bool wanted = o->n_images == p->image + 1;
    const tgi_ome_where at = {.before = o->n_images == 0,
                              .wanted = wanted,
                              .pixels = p->in_pixels && !p->pixels_ended,
                              .alone = o->n_images <= 1};
    note_element(p, name);
    if (tgi_ome_carry_start(p->carry, p->r, name, &at))
        return;
    if (at.pixels && strcmp(name, "AnnotationRef") == 0)
        tgi_ome_note_element(&o->notes, "Plane/AnnotationRef");
    if (start_text(p, name, wanted))
        return;
    if (strcmp(name, "OME") == 0) {
        attribute(p, "UUID", p->root_uuid, sizeof p->root_uuid);
        take_schema(p);
    } else if (strcmp(name, "BinaryOnly") == 0) {
        o->binary_only = true;
        attribute(p, "MetadataFile", o->metadata_file, sizeof o->metadata_file);
    } else if (strcmp(name, "Image") == 0) {
        take_image(p);
    } else if (strcmp(name, "Pixels") == 0) {
        take_size(p);
        if (wanted) {
            p->in_pixels = true;
            take_pixels(p);
        }
    } else if (wanted && p->in_pixels && strcmp(name, "Channel") == 0) {
        take_channel(p);
    } else if (wanted && p->in_pixels && strcmp(name, "TiffData") == 0) {
        take_block(p);
    } else if (strcmp(name, "UUID") == 0) {
        start_uuid(p, wanted && o->n_blocks);
    }
}

static void step(parse *p)
{
    const char *name = (const char *)xmlTextReaderConstLocalName(p->r);
    const char *said = (const char *)xmlTextReaderConstValue(p->r);
    switch (xmlTextReaderNodeType(p->r)) {
    case XML_READER_TYPE_ELEMENT:
        start_element(p, name ? name : "");
        break;
    case XML_READER_TYPE_END_ELEMENT:
        if (tgi_ome_carry_end(p->carry, name ? name : ""))
            break;
        if (p->in_uuid) /* it holds no id */
            take_uuid(p, "");
        p->in_uuid = false;
        end_text(p);
        p->pixels_ended |= p->in_pixels && name && strcmp(name, "Pixels") == 0;
        break;
    case XML_READER_TYPE_CDATA:
        if (tgi_ome_carry_text(p->carry, said ? said : ""))
            break;
        if (p->saying)
            add_text(p);
        break;
    case XML_READER_TYPE_TEXT:
        if (tgi_ome_carry_text(p->carry, said ? said : ""))
            break;
        if (p->saying)
            add_text(p);
        if (p->in_uuid) {
            const char *v = (const char *)xmlTextReaderConstValue(p->r);
            take_uuid(p, v ? v : "");
            p->in_uuid = false;
        }
        break;
    default:
        break;
    }
}

static void quiet(void *arg, const char *msg, xmlParserSeverities severity,
                  xmlTextReaderLocatorPtr where)
{
    (void)arg;
    (void)msg;
    (void)severity;
    (void)where;
}

/* What has no reader to report to, such as an unknown encoding, libxml2 prints. */
static void swallow(void *arg, xmlErrorPtr e)
{
    (void)arg;
    (void)e;
}

/* A renamed single file: one id and name throughout, no id at the root, and no image in a file of this name. */
static void settle_uuids(parse *p)
{
    if (p->root_uuid[0] || p->many_uuids || p->o->own >= 0)
        return;
    for (size_t i = 0; i < p->o->n_blocks; i++)
        p->o->blocks[i].elsewhere = false;
}

/* Could comparing attributes with each other take for ever? A start tag lies between two '<'
 * and has a '=' for every attribute; text has few. */
static bool is_crowded(const char *text)
{
    uint64_t pairs = 0, equals = 0;
    for (const char *p = text; *p && pairs <= MAX_COMPARED; p++) {
        equals += *p == '=';
        if (*p == '<' || !p[1]) {
            pairs += equals * equals;
            equals = 0;
        }
    }
    return pairs > MAX_COMPARED;
}

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* And what libxml2 says of bytes that do not belong to the encoding goes another way again. */
static void swallow_text(void *arg, const char *fmt, ...)
{
    (void)arg;
    (void)fmt;
}

/* Every node in turn; the reader's last answer. */
static int walk(parse *p)
{
    const double end = thread_seconds() + MAX_SECONDS;
    int rc = 0;
    for (unsigned i = 1; p->st == TG_OK && (rc = xmlTextReaderRead(p->r)) == 1; i++) {
        step(p);
        if (i % 256 == 0 && thread_seconds() > end)
            p->st = tgi_fail(p->err, TG_E_FORMAT,
                             "the OME-XML in ImageDescription takes longer than %d s to read",
                             MAX_SECONDS);
    }
    return rc;
}

static tg_status parse_text(parse *p, const char *text, size_t n, int image)
{
    tgi_err *err = p->err;
    tgi_ome *out = p->o;
    if (n > TGI_OME_MAX_BYTES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "OME-XML of %zu bytes (limit %u)", n,
                        TGI_OME_MAX_BYTES);
    if (strstr(text, "<!DOCTYPE") || strstr(text, "<!ENTITY"))
        return tgi_fail(err, TG_E_FORMAT, "OME-XML with a DOCTYPE is refused");
    if (is_crowded(text))
        return tgi_fail(
            err, TG_E_FORMAT,
            "OME-XML with tens of thousands of attributes in an element is refused");
    const xmlStructuredErrorFunc before = xmlStructuredError; /* of this thread */
    void *const before_arg = xmlStructuredErrorContext;
    const xmlGenericErrorFunc text_before = xmlGenericError;
    void *const text_before_arg = xmlGenericErrorContext;
    xmlSetStructuredErrorFunc(NULL, swallow);
    xmlSetGenericErrorFunc(NULL, swallow_text);
    p->r = xmlReaderForMemory(text, (int)n, NULL, "UTF-8",
                              XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (p->r)
        xmlTextReaderSetErrorHandler(p->r, quiet, NULL);
    const int rc = p->r ? walk(p) : -1;
    if (p->r)
        xmlFreeTextReader(p->r);
    else
        p->st = tgi_fail(err, TG_E_NOMEM, "no memory for an XML reader");
    xmlSetStructuredErrorFunc(before_arg, before);
    xmlSetGenericErrorFunc(text_before_arg, text_before);
    tgi_free(p->said);
    settle_uuids(p);
    if (p->st == TG_OK && rc != 0)
        p->st =
            tgi_fail(err, TG_E_FORMAT, "the OME-XML in ImageDescription is not well formed");
    if (p->st == TG_OK && !p->in_pixels && !out->binary_only && image > 0)
        p->st =
            tgi_fail(err, TG_E_ARG, "there is no series %d: the file has %d, counted from 0",
                     image, out->n_images);
    if (p->st == TG_OK && !p->in_pixels && !out->binary_only)
        p->st = tgi_fail(err, TG_E_FORMAT, "the OME-XML in ImageDescription has no Pixels");
    if (p->st == TG_OK)
        p->st = tgi_ome_carry_take(&p->carry, &out->notes.kept, &out->notes.too_much, err);
    if (p->st != TG_OK)
        tgi_ome_free(out);
    return p->st;
}

tg_status tgi_ome_parse(const char *text, size_t n, const char *file_name, int image,
                        tgi_ome *out, tgi_err *err)
{
    parse p = {.o = out, .file_name = file_name, .image = image, .err = err, .st = TG_OK};
    *out = (tgi_ome){.own = -1, .own_id = -1};
    if (!(p.carry = tgi_ome_carry_new(out->notes.malformed)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for OME-XML");
    const tg_status st = parse_text(&p, text, n, image);
    tgi_ome_carry_free(&p.carry);
    return st;
}
