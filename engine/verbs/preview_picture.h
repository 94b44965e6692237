/* preview_picture.h - crops as one picture: a row for each place, columns raw | result |
 * difference, or of objects their outlines over the raw pixels. Knows nothing of jobs; pixels are float32 in the network's units. */
#ifndef TGI_PREVIEW_PICTURE_H
#define TGI_PREVIEW_PICTURE_H

#include "engine/base/status.h"

/* One crop; channel c, row y, column x at data[(c * h + y) * w + x]. */
typedef struct tgi_panel {
    float *data;
    int64_t h, w;
    int channels; /* 1 or 3 */
    /* Of a result: its values tell objects, by their own number, or what is above `level` is one, which may
     * be Otsu's threshold of the crop. */
    enum { TGI_PANEL_VALUES, TGI_PANEL_NUMBERS, TGI_PANEL_ABOVE, TGI_PANEL_OTSU } objects;
    int sigmoid; /* stands in front of the threshold; `level` is for values before it */
    float level;
} tgi_panel;

/* Where things lie, for crops of these sizes: panels are as large as the larger of the two, the
 * smaller is enlarged by repeating pixels. */
typedef struct tgi_picture {
    int64_t panel_h, panel_w, height, width;
    int samples; /* 1 or 3 */
    int rows;
    uint8_t *pixels; /* height * width * samples; the caller's */
} tgi_picture;

/* Everything but `pixels`. */
tgi_picture tgi_picture_layout(int rows, const tgi_panel *raw, const tgi_panel *result);
/* Floats of scratch that drawing needs. */
size_t tgi_picture_scratch(const tgi_panel *raw, const tgi_panel *result);
/* Paint the gaps; once, before the rows. */
void tgi_picture_begin(tgi_picture *p);
/* Paint row i. Raw is shown between its 0.5 and 99.5 percentiles, the result in the same range
 * unless it lies on quite another scale (a probability, a score); then between its own. The
 * difference of the two as shown is centred on middle grey and stretched to what it holds; of objects it is
 * the raw crop in grey, and a pixel that has another one beside it or below it is yellow. */
void tgi_picture_row(tgi_picture *p, int i, const tgi_panel *raw, const tgi_panel *result,
                     float *scratch);

#endif
