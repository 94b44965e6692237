/* decided.h - what a run decided and the next one has to keep to: kernels, cells and the file's
 * grid. As numbers, and as the text of the fingerprint's line "plan". */
#ifndef TGI_DECIDED_H
#define TGI_DECIDED_H

#include <stddef.h>
#include <stdint.h>

typedef struct tgi_decided {
    int64_t cut[3], band;   /* of the cells; cut as in tgi_tiling */
    int64_t tile_h, tile_w; /* of the output file */
    int64_t fast;           /* nodes that use their fast kernel */
    int64_t staged; /* the budget in which it runs in stages (plan/staged.h); 0: in one */
} tgi_decided;

#define TGI_DECIDED_TEXT 160 /* room for any */

/* "0,256,256,64,128,128,5", and ",N" of a run in stages; returns buf. */
const char *tgi_decided_text(const tgi_decided *d, char *buf, size_t cap);
/* 0, and *out is as it was: the text is not what a run writes. */
int tgi_decided_read(const char *text, tgi_decided *out);

#endif
