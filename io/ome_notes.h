/* ome_notes.h - what an OME-XML says beside sizes, channels and planes: the image's name, date
 * and description; the annotation in which we keep what ImageJ knows; and the names of what is
 * read by nobody here, so that it is not dropped in silence. */
#ifndef TGI_OME_NOTES_H
#define TGI_OME_NOTES_H

#include "engine/base/status.h"
#include "io/image.h"

#include <stdbool.h>

typedef struct tgi_ome_notes {
    char *title, *acquired,
        *about;   /* Name, AcquisitionDate, Description of the Image; or NULL */
    char *info;   /* ImageJ's text, or NULL */
    uint8_t *lut; /* as in tgi_image_meta */
    double *range;
    char **label;
    int n_luts, n_ranges, mode;
    int64_t n_labels;
    char malformed[TGI_MALFORMED]; /* numbers that are none */
    unsigned left_behind;          /* a bit for each kind of element that is not carried over */
    bool too_much;                 /* nothing of what could be carried is: it is too large */
    bool old; /* of another schema than the one that is written: elements are not carried */
    tgi_ome_kept *kept; /* or NULL */
} tgi_ome_notes;

/* One value of our annotation ("Range 0", "LUT 0", "Label 0", "Info", "Mode"). Tables, ranges and
 * labels are taken in their order; what does not fit it, or cannot be read, is left out.
 * TG_E_NOMEM. */
tg_status tgi_ome_note(tgi_ome_notes *n, const char *key, const char *value, tgi_err *err);
/* Remember that there is an element of this name, if outputs do not carry it. */
void tgi_ome_note_element(tgi_ome_notes *n, const char *name);
/* Does an element of this name tell something by itself, or only with some of its attributes
 * (NULL: by itself)? The attributes, ended by NULL. */
const char *const *tgi_ome_note_attributes(const char *name);
/* All of it moves to the metadata. */
void tgi_ome_notes_take(tgi_ome_notes *n, tgi_image_meta *m);
void tgi_ome_notes_free(tgi_ome_notes *n);

#endif
