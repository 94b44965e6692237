/* image.h - what the engine asks of an image file, whatever its format.
 *
 * An image is a series of planes, each Y x X pixels of S samples; the other axes (T, Z, C, ...)
 * number the planes in the order of `axes`, last fastest. A format is one file with one
 * tgi_source_ops and one line in io_table.c. */
#ifndef TGI_IMAGE_H
#define TGI_IMAGE_H

#include "engine/base/held.h"
#include "engine/base/region.h"
#include "engine/base/status.h"
#include "engine/base/tensor.h"
#include "io/ome_kept.h"
#include "io/text_number.h"

#include <stdatomic.h>
#include <stdint.h>

#define TGI_IMAGE_MAX_AXES 8
#define TGI_IMAGE_MAX_LEVELS 16
#define TGI_IMAGE_MAX_SERIES 16
#define TGI_WHITE 0xffffffffu /* the colour of a channel of which none is stated */

/* What the numbers of pixels are, where they are not plain light. */
typedef enum tgi_stored {
    TGI_STORED_LIGHT,
    TGI_STORED_MINISWHITE,
    TGI_STORED_PALETTE,
    TGI_STORED_CMYK,
    TGI_STORED_CIELAB, /* a and b with a sign, whatever the type of the samples, */
    TGI_STORED_ICCLAB  /* or half their range added */
} tgi_stored;

/* Everything about an image that is not pixels, owned strings (tgi_free). Zero = unknown. */
typedef struct tgi_image_meta {
    double physical[3];    /* size of a pixel, z,y,x; 0: unknown */
    char unit[3][16];      /* "um" as UTF-8 "µm" etc.; "" unknown */
    double time_increment; /* seconds; 0 unknown */
    int n_channels;
    char **channel_name;     /* n_channels entries or NULL; entries may be NULL */
    uint32_t *channel_color; /* 0xRRGGBBAA, 0 not stated; n_channels entries or NULL */
    /* Of an output whose network made several channels of each: what these are called, with a number behind it
     * ("scores" for "scores 0"); or NULL. A view. */
    const char *channel_stem;
    char *const *made_name; /* or what each of the n_made of them is called; a view */
    int n_made;
    char *description;              /* ImageDescription as found; may be OME-XML */
    char *title, *acquired, *about; /* of OME-XML: the image's name, date, description */
    char left_behind[352]; /* what of OME-XML no output carries, in words; "" nothing */
    char
        malformed[TGI_MALFORMED]; /* numbers of the metadata that are none, and were not read */
    struct tgi_ome_kept *ome;     /* what only OME-TIFF has a place for, or NULL */
    tgi_ome_place ome_place;      /* where that lies in this image */
    char *software;
    uint8_t *icc; /* colour profile, icc_bytes */
    size_t icc_bytes;
    uint8_t *lut;  /* ImageJ's lookup tables, a channel each: 256 red, 256 green, 256 blue */
    double *range; /* and its display ranges: low and high of each channel */
    char **label;  /* and its names of planes; entries may be NULL */
    char *info;    /* and its text */
    int n_luts, n_ranges;
    int mode; /* how it shows channels, TGI_MODE_* of imagej.h; 0: not said */
    int64_t n_labels;
    int resolution_unit;  /* TIFF ResolutionUnit; 0: none */
    double resolution[2]; /* y,x pixels per unit */
    int orientation;      /* as TIFF's tag: above 1 the rows and columns are to be turned for
                             viewing; they are read and written as stored */
    tgi_stored stored_as;
    uint16_t *palette; /* TGI_STORED_PALETTE: n_palette red, then green, then blue */
    int n_palette;
    int in_turn; /* planes along T are in turn: there are no times between them */
    int colours; /* samples that are colours where the file says so: 3 of RGB and Lab, 4 of CMYK; others
                    follow them; 0: not said */
    int alpha; /* as TIFF's ExtraSamples: the last sample is alpha, 1 multiplied into the
                    others, 2 not; 0: it is not */
} tgi_image_meta;

/* One of the images that a file holds: pages of one size and type, with their levels. */
typedef struct tgi_series_info {
    char name[32]; /* of an OME Image; "baseline", "thumbnail", "label", "macro" of a slide; ""
                      unknown */
    int64_t height, width, pages;
    int samples, n_levels;
} tgi_series_info;

typedef struct tgi_image_info {
    const char *format; /* "tiff", "npy"; static */
    char flavor[24];    /* "ome", "imagej", "shaped", "lsm", "svs", "fei", "bigtiff", "" */
    int n_axes;
    char axes[TGI_IMAGE_MAX_AXES + 1]; /* e.g. "TZCYX" or "ZYXS"; Y and X always there,
                                         singleton axes kept as the file states them */
    int64_t shape[TGI_IMAGE_MAX_AXES];
    tg_dtype dtype;
    int bits;                /* of integers: those in use, where the type has more; 0: all */
    const char *compression; /* "none", "lzw", "deflate", "zstd", "packbits"; static */
    int predictor;
    int planar_samples; /* 1: samples stored apart (PLANARCONFIG_SEPARATE) */
    int tiled;
    int64_t block_h, block_w; /* tile or strip size of the file */
    int big_endian, bigtiff;
    int64_t n_planes; /* product of all axes but Y, X, S */
    int64_t height, width;
    int samples;  /* S; 1 if there is no S axis */
    int n_levels; /* resolution levels; 1: only full size */
    int64_t level_h[TGI_IMAGE_MAX_LEVELS], level_w[TGI_IMAGE_MAX_LEVELS];
    int n_series;  /* images in the file; the first TGI_IMAGE_MAX_SERIES are described */
    int at_series; /* which of them this is */
    tgi_series_info series[TGI_IMAGE_MAX_SERIES];
    int64_t n_files;     /* 1, or the files of a set */
    uint64_t file_bytes; /* of all of them */
    int plain;           /* rows can be read without decoding */
    char note[200];      /* what the user should know about the file; "" nothing */
    tgi_image_meta meta;
} tgi_image_info;

#define TGI_INTERLEAVED SIZE_MAX /* a sample_pitch, see read */

/* A region that cannot be decoded, in pixels of the level that is read; `sample` -1: of all. */
typedef struct tgi_bad_region {
    int64_t plane, sample, y0, y1, x0, x1;
    const char *reason;
} tgi_bad_region;
/* Called for such a region, perhaps several times for the same one, from any reading thread. On
 * TG_OK the region counts as zeros and reading goes on. */
typedef tg_status tgi_bad_region_fn(void *arg, const tgi_bad_region *r, tgi_err *err);

typedef struct tgi_source tgi_source;

/* What of a file was passed over, which only shows when its pixels are read. */
enum tgi_surplus {
    /* A block has far more data than pixels: the rest is not read, so nobody knows whether it
     * is whole. */
    TGI_SURPLUS_DATA = 1,
    /* Transparency, a profile, Exif or a resolution behind the pixels of a PNG. */
    TGI_SURPLUS_BEHIND = 2,
};

/* Which frames of a film: numbers "120:480", or times "1:30"; NULL: not said. */
typedef struct tgi_film_cut {
    const char *frames, *start, *end;
} tgi_film_cut;

/* What of the axes is taken, as tgi_axis_list_parse reads it; NULL: all. */
typedef struct tgi_axis_pick {
    const char *channels, *z, *t;
    tgi_range slices; /* of Z, the same in numbers; empty: not said */
    int apart;        /* 1: some of the colours of a pixel become channels with their names */
    int picture; /* 1: it becomes a PNG or JPEG, which takes them all in their order, or one */
} tgi_axis_pick;

typedef struct tgi_open_opts {
    int series;     /* which image of the file, 0 = the first */
    int any_series; /* 1: nobody said which: of an image of several files the one that is in this */
    int level;      /* resolution level, 0 = full */
    int threads;        /* readers at the same time: handles are opened for each (>= 1) */
    const char *axes;   /* override of the axes of the planes ("TZCYX"), or NULL */
    const char *key[3]; /* of a set of files: regular expressions for z, c, t, or NULL */
    tgi_film_cut cut;   /* of a film alone, else TG_E_ARG */
    tgi_axis_pick pick; /* of anything else */
    const char *raw;    /* the file is frames without a header: "640x360,rgb24,25"; or NULL */
    const char *but;    /* of a folder or a pattern: this file is none of its files; or NULL */
    int *but_found;     /* set to 1 when it was there; or NULL */
    int pages;          /* 1: plain pages, whatever the description says (files of a set) */
    int stream; /* 1: "-" and other pipes are read, too: a film whose planes come once, in order */
    int member;           /* 1: of a set, so never a set itself */
    size_t decode_budget; /* bytes a reader may allocate for decoding; 0: 1 GiB. A strip or tile
                             that needs more even as a stream of rows is refused at open, before
                             any allocation. */
    int decoders;         /* threads of a film's decoder, where they change nothing; 0: 1 */
    size_t budget;        /* of the whole job, which a film's reader has to fit: the plan counts
                             it. 0: decode_budget */
    size_t text_budget;   /* bytes that reading what the file says of itself may take; 0: any */
    /* 1: decoders hold as little as they can, whatever decode_budget allows: pixels are decoded
     * again rather than kept. What is held is then the same for each budget that the file opens
     * with. */
    int spare;
    /* Asked while rows are decoded only to reach later ones, which can take long. Anything but
     * 0 ends the reading with TG_E_CANCELLED. Or NULL. */
    int (*cancelled)(void);
    /* Told of regions that cannot be decoded. NULL: they end the reading. (Formats that decode
     * a whole file at once end in any case.) */
    tgi_bad_region_fn *on_bad;
    void *on_bad_arg;
    int keep_bad;  /* 1: of a film: then what its decoder made up is taken, in place of zeros */
    int truncated; /* 1: of a film: one that ends before its header says so is read */
    /* Gets bits of tgi_surplus while pixels are read. Or NULL. */
    atomic_int *surplus;
} tgi_open_opts;

/* How long a fuzz target has read by it, as tests/fuzz/README.md lists: what decides where the
 * environment says TEGULA_BLOCK_UNTRUSTED=1. */
typedef enum tgi_fuzzed {
    TGI_FUZZED_LITTLE, /* less than ten minutes: refused then */
    TGI_FUZZED_BLIND, /* libtiff decodes, built without coverage: refused, however long it was */
    TGI_FUZZED /* ten minutes or more; or it refuses everything, as this build lacks it */
} tgi_fuzzed;

typedef struct tgi_source_ops {
    const char *format;
    tgi_fuzzed fuzzed;
    /* 1 when the first bytes look like this format (n >= 16 unless the file is shorter). */
    int (*probe)(const uint8_t *head, size_t n, const char *path);
    /* Open, check every size and offset against the file, build the index once.
     * TG_E_FORMAT damaged, TG_E_UNSUPPORTED named, TG_E_NOT_FOUND, TG_E_BUDGET one block over
     * decode_budget. Allocates everything it will ever need (also the library's, as far as it
     * can be told). */
    tg_status (*open)(const char *path, const tgi_open_opts *opts, tgi_source **out,
                      tgi_err *err);
    const tgi_image_info *(*info)(const tgi_source *s); /* view */
    /* Read rows [y0,y1) x columns [x0,x1) of samples [s0,s1) of one plane in native dtype and
     * native byte order, sample-planar: sample k, row r, column c goes to
     * dst + ((k-s0) * sample_pitch + (r-y0) * row_pitch) + (c-x0) * dtype size; pitches in
     * bytes. With sample_pitch TGI_INTERLEAVED the samples [s0,s1) of a pixel lie side by side,
     * pixel after pixel: what a file that stores them so costs least. `thread` in [0,
     * opts.threads): calls with different numbers may run at once. */
    tg_status (*read)(tgi_source *s, int thread, int64_t plane, int s0, int s1, int64_t y0,
                      int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                      size_t sample_pitch, tgi_err *err);
    void (*close)(tgi_source **s);
    /* Bytes of decoder state that `open` and reading hold at most, for the plan. */
    size_t (*codec_bytes)(const tgi_source *s);
    /* The rest may be NULL: pixels are then read without decoding.
     *
     * Before the first read: `planes` planes, `stride` apart, are read in turn, a few rows
     * each, so the reader keeps decoders for all of them. As `open`; changes codec_bytes. */
    tg_status (*expect)(tgi_source *s, int64_t planes, int64_t stride, tgi_err *err);
    /* > 0: rows are decoded in order out of blocks too large to hold; going back by more rows
     * than this decodes the block from its start. 0: blocks are held whole, or not compressed.
     */
    int64_t (*stream_rows)(const tgi_source *s);
    /* Bytes of pixels decoded since open. */
    uint64_t (*decoded_bytes)(const tgi_source *s);
    /* Path of the i-th file of a set, NULL behind the last; NULL: there is one file. */
    const char *(*file)(const tgi_source *s, int64_t i);
    /* The i-th file as it was opened; 0 behind the last. `out` has the source's path. NULL: the
     * name is looked up when somebody asks. */
    int (*held)(const tgi_source *s, int64_t i, tgi_held *out);
    /* What its planes are made of, frame by frame; NULL: it is no source over another one. */
    const tgi_source *(*inner)(const tgi_source *s);
} tgi_source_ops;

/* Each tgi_source starts with this, so generic code can call it. */
struct tgi_source {
    const tgi_source_ops *ops;
    char *path; /* as given to tgi_source_open; NULL: made otherwise */
};

/* io_table.c: find the format by its first bytes and open; a folder, a glob or a numbered name
 * ("img_%05d.tif") is opened as one stack. */
tg_status tgi_source_open(const char *path, const tgi_open_opts *opts, tgi_source **out,
                          tgi_err *err);
void tgi_source_close(tgi_source **s);
/* Of a source over another one: what that one answers, for the tables of such sources. */
uint64_t tgi_inner_decoded(const tgi_source *s);
const char *tgi_inner_file(const tgi_source *s, int64_t i);
int tgi_inner_held(const tgi_source *s, int64_t i, tgi_held *out);
/* Columns [x0,x1) of samples [s0,s1) of a row of pixels with `samples` side by side, as `read` hands them out. */
void tgi_pick_row(tg_dtype dtype, int samples, const void *row, int s0, int s1, int64_t x0,
                  int64_t x1, void *dst, size_t sample_pitch);
/* What it is made of in the end; `s` itself where that is nothing else. */
const tgi_source *tgi_source_inmost(const tgi_source *s);
/* TG_E_UNSUPPORTED where TEGULA_BLOCK_UNTRUSTED asks that only what was fuzzed at length reads what
 * strangers made, and `what` was not. */
tg_status tgi_untrusted_check(tgi_fuzzed fuzzed, const char *what, tgi_err *err);
/* 1 when no file has this name, and it stands for many: a folder, a glob, a numbered name. */
int tgi_source_is_set(const char *path);
/* The i-th file that `s`, opened as `path`, is read from; NULL behind the last. */
const char *tgi_source_file(const tgi_source *s, const char *path, int64_t i);
/* The i-th file that `source`, a tgi_source, is read from, as it was opened (tgi_held_files).
 */
int tgi_source_held(const void *source, int64_t i, tgi_held *out);
/* ops->read; what goes wrong names the file. */
tg_status tgi_source_read(tgi_source *s, int thread, int64_t plane, int s0, int s1, int64_t y0,
                          int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                          size_t sample_pitch, tgi_err *err);
void tgi_image_meta_free(tgi_image_meta *m);
/* "palette", "miniswhite", "cmyk", "cielab", "icclab"; NULL for light. Static. */
const char *tgi_stored_name(tgi_stored s);

#endif
