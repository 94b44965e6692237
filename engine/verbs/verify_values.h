/* verify_values.h - what verify holds of one item: its inputs, and two results of every output,
 * as dense arrays; and how far results are apart.
 *
 * The inputs are a plane of an image, or the first sample of arrays. Images among them are
 * float32 in the graph's order of axes; values that are none (flat) have their own type. */
#ifndef TGI_VERIFY_VALUES_H
#define TGI_VERIFY_VALUES_H

#include "engine/job/job.h"
#include "engine/verbs/distance.h"

typedef struct tgi_verify_values {
    const tgi_net *net; /* the processor's */
    float *in[TGI_MAX_PORTS], *whole[TGI_MAX_PORTS], *other[TGI_MAX_PORTS];
} tgi_verify_values;

/* Of all inputs and of one result of all outputs; SIZE_MAX: more than can be counted. */
size_t tgi_verify_in_bytes(const tgi_net *net);
size_t tgi_verify_out_bytes(const tgi_net *net);
/* Take room for them from `mem`, which has tgi_verify_room of it. */
size_t tgi_verify_room(const tgi_net *net);
tg_status tgi_verify_take(tgi_reserve *mem, const tgi_net *net, tgi_verify_values *v,
                          tgi_err *err);

/* `other` against `whole` in output o over `box` (NULL, and of flat values: all of it), added
 * to *s; returns how many numbers. */
int64_t tgi_verify_distance(const tgi_verify_values *v, int o, const tgi_box *box,
                            tgi_distance *s);
/* Every bit of output o is alike. */
int tgi_verify_equal(const tgi_verify_values *v, int o);
/* Values of `other` that are NaN or infinite. */
int64_t tgi_verify_nonfinite(const tgi_verify_values *v, int o);
/* Smallest and largest finite number of `whole`; 0 and 0 where there is none. */
void tgi_verify_range(const tgi_verify_values *v, int o, double *lo, double *hi);
/* Peak signal-to-noise ratio in dB of a distance over n numbers, the peak being the output's
 * range: infinite where nothing differs, NaN where a difference is no number or the output is
 * one number everywhere. */
double tgi_verify_psnr(const tgi_distance *s, int64_t n, const tg_verify_output *of);

#endif
