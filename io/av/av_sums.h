/* av_sums.h - checksums that a Matroska or WebM has of its elements, and libavformat does not look at. Inside the plugin
 * alone. */
#ifndef TGI_AV_SUMS_H
#define TGI_AV_SUMS_H

#include "io/av/av_input.h"

#define TGI_AV_SUMS 256

/* Clusters that follow each other and whose checksums do not hold. */
typedef struct tgi_av_bad {
    int64_t at, end; /* in the file */
    int has_frames;  /* of the film: they are known to be damaged */
} tgi_av_bad;

typedef struct tgi_av_sums {
    int n; /* in the order of the file; the last of TGI_AV_SUMS goes on up to the end of the last such cluster */
    tgi_av_bad bad[TGI_AV_SUMS];
    const char *of; /* what else has such a checksum, the first: "its tracks"; NULL */
    int is_none; /* 1: `of` is not told by its checksum; it is what stands where an element should */
    int64_t at, end; /* where that lies */
} tgi_av_sums;

/* All of the file, once. TG_E_NOMEM, TG_E_IO, TG_E_CANCELLED. */
tg_status tgi_av_sums_look(tgi_av_input *in, tgi_av_sums *out, tgi_err *err);
/* What is damaged at this place of the file; NULL: nothing that is known. */
tgi_av_bad *tgi_av_sums_at(tgi_av_sums *s, int64_t place);
/* What is damaged and no frame tells, in words of `cap` bytes; "": nothing. */
void tgi_av_sums_tell(const tgi_av_sums *s, char *to, size_t cap);

#endif
