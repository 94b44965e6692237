/*
 * tegula_array.h - inputs and outputs of a job in the caller's memory: no files, no journal.
 *
 *     tg_array in = {.size = sizeof in, .dtype = TG_DTYPE_F32, .rank = 2,
 *                    .shape = {height, width}, .data = pixels};
 *     tg_array out = {.size = sizeof out};
 *     tg_opts_set(o, "model", "denoise.onnx");
 *     tg_opts_set_source(o, NULL, &in);
 *     tg_opts_set_sink(o, NULL, &out);
 *     tg_job_open(ctx, o, &job);
 *     tg_job_output(job, 0, NULL, &out);  shape and type, from the plan
 *     out.data = malloc(...);
 *     tg_job_run(job, NULL);              again, with other pixels or another `data`
 *
 * The planner, the budget and the kernels are those of files: the same plan gives the same
 * bytes. Less memory may mean other kernels, whose last bits differ, and what the program itself
 * holds is part of the budget. With the option "exact" every budget gives the same bytes.
 *
 * Memory of the caller that is touched before the job is planned is in the plan, in the line
 * "process"; what is touched afterwards is not, and is measured all the same (tegula.h, RULES,
 * Memory). An output of 1 GiB that malloc gave after tg_job_output adds 1 GiB to
 * measured_peak_bytes: leave that room when you set "ram".
 *
 * ONE RULE holds for arrays in memory and arrays in .npy files: the network gets the numbers as
 * they are, converted to float32, along the axes that the model declares; what a descriptor or
 * the option "normalize" say is for images. Axes of 1 in front may be missing or too many:
 * [H,W] goes into [N,C,H,W] where C may be 1, and so do [C,H,W] and [1,N,C,H,W] with N 1.
 */
#ifndef TEGULA_ARRAY_H
#define TEGULA_ARRAY_H

#include <tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TG_ARRAY_RANK 8

/**
 * Copy `n` elements, from element `first` of the array in C order on: into `elements` when the
 * array is a source, out of them when it is a sink. A callback (tegula.h, RULES, Callbacks): on
 * the thread that runs the job, never two at once. Elements of a source may be asked for more
 * than once. Those of a sink come once each, in no order that is promised; all of them come again
 * where a GPU ran out of memory and the run began anew. Of its job it may call tg_job_cancel: the
 * rest answers TG_E_BUSY, and closing the job is not allowed.
 * @return TG_OK, or the status that the run then ends with (TG_E_IO for a number that is none);
 * the detail names the array and the elements.
 */
typedef tg_status (*tg_array_move)(void *user, int64_t first, int64_t n, void *elements);

/** An array in memory, or one that is made or taken piece by piece. */
typedef struct tg_array {
    size_t size;                   /* sizeof(tg_array) */
    tg_dtype dtype;                /* elements, in native byte order */
    int rank;                      /* axes, 0 to TG_ARRAY_RANK */
    int64_t shape[TG_ARRAY_RANK];  /* elements along each axis, outermost first */
    int64_t stride[TG_ARRAY_RANK]; /* bytes from one to the next; all 0: C order. See below */
    void *data; /* first element, aligned to its size; of a source only read; or NULL and: */
    tg_array_move move; /* with C order: strides all 0 */
    void *user;         /* handed to `move` */
} tg_array;

/**
 * Take an input of the network from memory. @param input its name, NULL: the first.
 * @param array borrowed until the job is closed; NULL takes the source back. Its type and shape
 * are read when the job is planned and have to stay; `data`, `move` and `user` when it runs.
 * Strides are multiples of the element's size and not negative, in any order; `data` is aligned
 * to the element's size. Elements of a source may lie in one place. One element that stands for
 * all of them has strides 0, which would mean C order: put an axis of 1 in front and give it the
 * element's size as its stride. That the memory is as large as shape and strides say cannot be
 * checked.
 * @return TG_E_ARG (checked here: size, type, rank, shape, strides, alignment, `data` and `move`
 * both set), TG_E_NOMEM
 */
TG_API tg_status tg_opts_set_source(tg_opts *o, const char *input, const tg_array *array);

/**
 * Give an output of the network to memory. @param output its name, NULL: the first.
 * @param array borrowed until the job is closed; NULL takes the sink back. Read when the job
 * runs: then it has the type and the shape of tg_job_output, and no two elements in one place.
 * From its first byte to its last, gaps of strides included, it overlaps no source and no other
 * sink. A job with a sink writes no files: outputs without one are dropped, and the option
 * "output" is refused. A run that fails leaves the sink filled in part.
 */
TG_API tg_status tg_opts_set_sink(tg_opts *o, const char *output, const tg_array *array);

/**
 * Type and shape of the network's output `i` as an array, all samples; plans the job where that
 * is not done. @param name view of the job, or NULL. @param out `size` set; its type, rank and
 * shape are filled, strides cleared, the rest stays. The array that is a sink will do.
 * @return TG_E_NOT_FOUND  there are no more outputs
 *         TG_E_ARG        the job makes an image, no arrays
 *         and what tg_job_plan returns
 */
TG_API tg_status tg_job_output(tg_job *job, int i, const char **name, tg_array *out);

/**
 * Ask what an open job makes: 1, where the network has one output beside what is handed from frame to frame, and that is an
 * image, of an image; 0: several outputs, arrays, numbers.
 */
TG_API int tg_job_is_one_image(const tg_job *job);

#ifdef __cplusplus
}
#endif

#endif
