/* ome_xml.h - one Image of an OME-XML text as plain structs.
 *
 * Source: OME-XML schema 2016-06 and the OME-TIFF specification ("TiffData"). */
#ifndef TGI_OME_XML_H
#define TGI_OME_XML_H

#include "engine/base/status.h"
#include "io/ome_notes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TGI_OME_MAX_BYTES (64u << 20)
#define TGI_OME_MAX_CHANNELS 4096

/* One <TiffData>: `count` planes from directory `ifd`, beginning at z,c,t. */
typedef struct tgi_ome_block {
    int32_t ifd, z, c, t, count; /* ifd, count: -1 when not stated */
    uint32_t name;               /* names + name - 1; 0: without a name */
    bool elsewhere;              /* its UUID names another file: that one */
} tgi_ome_block;

typedef struct tgi_ome_channel {
    char *name;      /* owned, or NULL */
    uint32_t color;  /* 0: not stated */
    int64_t samples; /* SamplesPerPixel; 1 when not stated */
} tgi_ome_channel;

#define TGI_OME_MAX_IMAGES 16

/* Enough of every Image to choose one. */
typedef struct tgi_ome_image {
    char name[32];
    int64_t width, height;
} tgi_ome_image;

typedef struct tgi_ome {
    int n_images;
    tgi_ome_image images[TGI_OME_MAX_IMAGES]; /* the first of them */
    int own;          /* the first that has planes in the file of that name; -1: none */
    int own_id;       /* the same of the file of the text's own id: of a renamed one */
    bool binary_only; /* the metadata is in another file */
    char metadata_file[256];
    char order[8]; /* DimensionOrder, "XYZCT" */
    int64_t size_x, size_y, size_z, size_c, size_t_;
    double physical[3]; /* z,y,x; 0 unknown */
    char unit[3][16];
    double time_increment; /* seconds */
    tgi_ome_channel *channels;
    int n_channels;
    tgi_ome_block *blocks;
    size_t n_blocks;
    tgi_ome_notes notes;
    char *names; /* of other files, one after the other */
    size_t names_len, names_cap;
} tgi_ome;

/* What XML has instead of a character where it would mean something else; NULL: nothing, it stands
 * as it is. Numbers ("&#181;") are left to what has no other way, since Bio-Formats reads " #181;"
 * and then takes a unit of that name for no OME-XML. */
typedef enum tgi_xml_place { TGI_XML_TEXT, TGI_XML_ATTRIBUTE } tgi_xml_place;
const char *tgi_xml_as(char c, tgi_xml_place place);

/* True when the text looks like OME-XML. */
bool tgi_ome_probe(const char *text);
/* Parse Image `image` (0: the first). `file_name` (without folder) decides which TiffData lie
 * in this file. Returned in *out; release with tgi_ome_free. TG_E_FORMAT: not well formed, no
 * Pixels, DOCTYPE present; TG_E_ARG: no such Image. What is described elsewhere has no images. */
tg_status tgi_ome_parse(const char *text, size_t n, const char *file_name, int image,
                        tgi_ome *out, tgi_err *err);
void tgi_ome_free(tgi_ome *o);

#endif
