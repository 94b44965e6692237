/* tensors.h - arrays as the ends of a run: what feeds it and what takes its results.
 *
 * Inputs are arrays, as the model declares them, or one image, whose planes are samples (then
 * load.h reads it). Outputs are NAME.npy, or, of an image and in a folder, NAME.tif where the
 * output is an image too. Sources and sinks in the caller's memory take the place of files.
 *
 * All of it stands in one tgi_tensors. Who has one says once what is wanted (`set`), and with
 * each plan what was planned (`stage`, `info`): nothing here knows a job. */
#ifndef TGI_TENSORS_H
#define TGI_TENSORS_H

#include "engine/ends/stats.h"
#include "engine/ends/tensor_names.h"
#include "engine/ends/tensor_pieces.h"
#include "engine/out/bad_tiles.h"
#include "engine/plan/mapping.h"
#include "engine/plan/stage.h"
#include "engine/settings/opts.h"
#include "io/npy.h"
#include "tegula_array.h"

/* The program in the fingerprint of an image that is made of an array begins with it. */
#define TGI_ARRAY_IMAGE "array"

/* What is wanted of them; views, constant. */
typedef struct tgi_tensor_set {
    const tgi_graph *graph;
    const tg_opts *opts;        /* --input NAME=FILE, --format, arrays in memory (lent.h) */
    const char *input, *output; /* NULL: all inputs are named; a plan names no output */
    int overwrite;
    tg_dtype labels;            /* of an image of classes */
    tgi_compress_spec compress; /* of images */
    tgi_bad_tiles *bad;         /* or NULL */
    const tgi_mapping *map;     /* of the image that goes in; NULL: arrays do */
    const tgi_desc *image;      /* its shape as the network's input */
} tgi_tensor_set;

typedef struct tgi_tensor_in {
    const char *path;           /* a view of the options */
    tgi_npy_in npy;             /* .file.fd -1: not open */
    tgi_desc desc;              /* as it lies there, of the input's rank (tgi_tensor_widen) */
    int64_t step[TGI_MAX_RANK]; /* elements from one to the next along each axis of it */
    const tg_array *lent;       /* it lies in memory: the caller's, and how that is now */
    tg_array now;
    const char *port; /* of that: the input's name; view */
} tgi_tensor_in;

typedef struct tgi_tensor_out {
    char *path; /* of the array; it grows in PATH.partial */
    char *tiff; /* or NULL: the image that is made of an array without a name in the end */
    struct tgi_journal *journal; /* of that; open, so it is locked, while the run writes */
    char axes[TGI_IMAGE_MAX_AXES + 1];
    tgi_desc file;                /* as it lies there, all samples */
    int64_t stride[TGI_MAX_RANK]; /* elements, per axis of the graph's value */
    int64_t sample_stride;
    tgi_range keep[TGI_MAX_RANK]; /* what of an image is kept, per axis */
    tgi_npy_out npy;              /* open while the run writes; then the lock is ours */
    const tg_array *lent;         /* as of an input */
    tg_array now;
    const char *port;
    int dropped; /* nobody takes it */
} tgi_tensor_out;

typedef struct tgi_tensors {
    tgi_tensor_set set;
    const tgi_stage *stage;     /* the whole network, of the plan that holds; set with each */
    const tgi_image_info *info; /* of the image that goes in, as it is open for that plan */
    tgi_tensor_in in[TGI_MAX_PORTS];
    tgi_desc in_desc[TGI_MAX_PORTS]; /* graph order, N = 1 */
    int64_t batch;                   /* samples, looped over */
    tgi_tensor_out out[TGI_MAX_PORTS];
    tgi_names names;
} tgi_tensors;

/* tensor_in.c: each name given is one of the network's inputs, and each input has a file or a
 * source. `input` as in a tgi_tensor_set. Opens nothing. */
tg_status tgi_tensors_check(const tg_opts *opts, const tgi_graph *graph, const char *input,
                            tgi_err *err);
/* Look at the sources and open the files of what goes in. TG_E_ARG: something is
 * missing, or is not as the network declares it. */
tg_status tgi_tensors_open(const tgi_tensor_set *set, tgi_tensors **out, tgi_err *err);
void tgi_tensors_close(tgi_tensors **t);

/* Is it the name of one array, NAME.npy? */
int tgi_names_npy(const char *path);

/* Does this -o name arrays (NAME.npy, a folder)? */
int tgi_names_arrays(const char *output);

/* 1: a folder, there or by the slash behind it. */
int tgi_names_folder(const char *output);
/* FOLDER/NAME.suffix; what would lead out of the folder is replaced. */
tg_status tgi_name_in_folder(const char *folder, const char *name, const char *suffix,
                             char *buf, size_t cap, tgi_err *err);
/* TG_E_ARG when -o ends in something that names no format written here, or, for arrays going
 * in, one of images. NULL is fine: a plan needs no name. */
tg_status tgi_check_output_name(const char *output, int arrays_in, tgi_err *err);
/* 1: no ending says what is to be written: a TIFF of an image. */
int tgi_names_no_kind(const char *output);

/* tensor_rank.c: put axes of 1 in front that the array leaves out, take away those it has too
 * many, of its strides too; 0: that does not make it an array of the input's rank. */
int tgi_tensor_widen(const tgi_port *p, tgi_desc *f, int64_t *step);
/* TG_E_ARG: the array has more or fewer axes than the input; what would do. */
tg_status tgi_tensor_wrong_rank(const tgi_port *p, const char *path, const tgi_desc *f,
                                tgi_err *err);

/* Is output o, of this shape in the graph, an image for the model's file too: with axes y and
 * x? */
int tgi_output_is_image(const tgi_graph *g, int o, const tgi_desc *d);

/* tensor_out.c: is output o, of this shape in the graph, written as an image, and which type do
 * its elements have in the file? */
int tgi_tensor_makes_image(const tgi_tensors *all, int o, const tgi_desc *d);
tg_dtype tgi_tensor_out_type(const tgi_tensors *all, int o, const tgi_desc *d);
/* Bytes of output o while the run writes it, and of the image that is made of it, beside it; 0
 * for what cannot be told. Plan made. */
void tgi_tensor_disk(tgi_tensors *all, int o, uint64_t *array, uint64_t *image);
/* Their shapes; plan made. */
tg_status tgi_tensors_shape(tgi_tensors *all, tgi_err *err);
/* Name the outputs, and their shapes; plan made. Their folder is created. */
tg_status tgi_tensors_name(tgi_tensors *all, tgi_err *err);
/* Lock and create them. TG_E_BUSY: another run writes one of them. */
tg_status tgi_tensors_create(tgi_tensors *all, tgi_err *err);
/* All samples are stored: arrays are complete and on the disk. Images are then made of theirs by
 * a copy, which is the job's. */
tg_status tgi_tensors_seal(tgi_tensors *all, tgi_err *err);
/* What is known of the image that went in, as far as it holds for output o: as for the only
 * output of a run, at this one's scale. Plan made. */
void tgi_tensor_meta(const tgi_tensors *all, int o, tgi_image_meta *out);
/* The end of a run, also of one that failed: what has no name yet goes, since there is no
 * journal that says how far it is, unless it is complete and listed. Safe where nothing was
 * created. */
void tgi_tensors_drop(tgi_tensors *t);

/* tensor_copy.c: element strides of an input along the graph's axes. */
void tgi_tensor_strides(const tgi_port *p, const tgi_tensor_in *in, int rank, int64_t *stride);
/* n elements of an array, from `element` on. TG_E_FORMAT: its file ends before. */
tg_status tgi_tensor_read(const tgi_tensor_in *in, int64_t element, void *dst, int64_t n,
                          tgi_err *err);
tg_status tgi_tensor_write(tgi_tensor_out *out, int64_t element, const void *src, int64_t n,
                           tgi_err *err);
/* Input i of a sample into a view; a view into output o. `rows`: TGI_TENSOR_ROWS bytes. */
tg_status tgi_tensor_load(const tgi_tensors *all, int i, int64_t sample, const tgi_view *view,
                          const tgi_box *box, void *rows, tgi_err *err);
tg_status tgi_tensor_store(tgi_tensors *all, int o, int64_t sample, const tgi_affine *map,
                           const tgi_view *view, const tgi_box *box, void *rows, tgi_err *err);

#endif
