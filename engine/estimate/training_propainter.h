/* training_propainter.h - what one training step of ProPainter's generator keeps for its backward pass. */
#ifndef TGI_TRAINING_PROPAINTER_H
#define TGI_TRAINING_PROPAINTER_H

#include "engine/estimate/saved.h"

#define TGI_PPT_LOCAL                                                                          \
    10 /* frames of a sample, as the published configuration has them: in a row */
#define TGI_PPT_REFS 6 /* and from elsewhere in its film */

typedef enum tgi_ppt_part {
    TGI_PPT_ENCODER,
    TGI_PPT_PROPAGATION,
    TGI_PPT_SPLIT,
    TGI_PPT_TRANSFORMER, /* all eight blocks */
    TGI_PPT_DECODER,
    TGI_PPT_PARTS
} tgi_ppt_part;

typedef struct tgi_ppt_kept {
    uint64_t part[TGI_PPT_PARTS]; /* bytes of a sample */
    uint64_t all;
    uint64_t stored, largest; /* with a checkpoint before each part and each block */
    int segments;
} tgi_ppt_kept;

const char *tgi_ppt_part_name(tgi_ppt_part part);
typedef struct tgi_ppt_sample {
    int64_t wide, high; /* multiples of 4 */
    int64_t local, refs;
} tgi_ppt_sample;

/* `masked`: each window of the attention hides something, which keeps the most; 0: none does. */
void tgi_ppt_find(const tgi_ppt_sample *f, tg_train_precision precision, int masked,
                  tgi_ppt_kept *out);
/* Its parameters; buffers: the networks of motion and of completion, which are not trained. */
tgi_saved tgi_ppt_parameters(void);

#endif
