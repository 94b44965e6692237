/* ome_notes.c - see ome_notes.h. The annotation's form is ome_write.c's. */
#include "io/ome_notes.h"

#include "engine/base/mem.h"
#include "io/imagej.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHANNELS 4096
#define MAX_LABELS (INT64_C(1) << 24) /* each has an element of its own in a text of 64 MiB */

/* ---- Our annotation ---------------------------------------------------------------------- */

/* The number behind `name` in the key; -1: another key. */
static int64_t number_of(const char *key, const char *name)
{
    const size_t n = strlen(name);
    char *end;
    if (strncmp(key, name, n) != 0 || key[n] < '0' || key[n] > '9')
        return -1;
    const long long v = strtoll(key + n, &end, 10);
    return *end ? -1 : v;
}

/* Room for one more of `n` elements: it doubles at powers of two. */
static tg_status grow(void **p, int64_t n, size_t size, tgi_err *err)
{
    if (n & (n - 1))
        return TG_OK;
    void *q = tgi_realloc_n(TGI_TAG_IO, *p, n ? 2 * (size_t)n : 1, size);
    if (!q)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an OME-XML annotation");
    *p = q;
    return TG_OK;
}

static tg_status take_range(tgi_ome_notes *n, const char *value, tgi_err *err)
{
    void *p = n->range;
    double low, high;
    const size_t first = strcspn(value, " ");
    if (n->n_ranges >= MAX_CHANNELS || !tgi_text_number(value, first, &low) ||
        !tgi_text_number(value + first, strlen(value + first), &high))
        return TG_OK;
    TGI_TRY(grow(&p, n->n_ranges, 2 * sizeof *n->range, err));
    n->range = p;
    n->range[2 * n->n_ranges] = low;
    n->range[2 * n->n_ranges++ + 1] = high;
    return TG_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tg_status take_lut(tgi_ome_notes *n, const char *value, tgi_err *err)
{
    void *p = n->lut;
    if (n->n_luts >= MAX_CHANNELS || strlen(value) != 2 * 768)
        return TG_OK;
    for (int i = 0; i < 2 * 768; i++)
        if (hex_digit(value[i]) < 0)
            return TG_OK;
    TGI_TRY(grow(&p, n->n_luts, 768, err));
    n->lut = p;
    for (size_t i = 0; i < 768; i++)
        n->lut[(size_t)n->n_luts * 768 + i] =
            (uint8_t)(hex_digit(value[2 * i]) << 4 | hex_digit(value[2 * i + 1]));
    n->n_luts++;
    return TG_OK;
}

static tg_status take_label(tgi_ome_notes *n, const char *value, tgi_err *err)
{
    void *p = n->label;
    if (n->n_labels >= MAX_LABELS)
        return TG_OK;
    TGI_TRY(grow(&p, n->n_labels, sizeof *n->label, err));
    n->label = p;
    if (!(n->label[n->n_labels] = tgi_strdup(TGI_TAG_IO, value)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for an OME-XML annotation");
    n->n_labels++;
    return TG_OK;
}

tg_status tgi_ome_note(tgi_ome_notes *n, const char *key, const char *value, tgi_err *err)
{
    if (number_of(key, "Range ") == n->n_ranges)
        return take_range(n, value, err);
    if (number_of(key, "LUT ") == n->n_luts)
        return take_lut(n, value, err);
    if (number_of(key, "Label ") == n->n_labels)
        return take_label(n, value, err);
    if (strcmp(key, "Mode") == 0)
        n->mode = tgi_imagej_mode_of(value, strlen(value));
    if (strcmp(key, "Info") == 0 && !n->info && !(n->info = tgi_strdup(TGI_TAG_IO, value)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for an OME-XML annotation");
    return TG_OK;
}

/* ---- What is not carried over ------------------------------------------------------------ */

static const char *const plane[] = {"DeltaT", "ExposureTime", "PositionX", NULL};
static const char *const channel[] = {"EmissionWavelength", "ExcitationWavelength", "Fluor",
                                      NULL};

static const char *const pixels[] = {"SignificantBits", NULL};

static const struct {
    const char *element, *words;
    const char *const *attributes;
    int carried; /* unless it is too much: ome_carry.h; 2: also of an older schema */
} kinds[] = {
    {"Instrument", "the instrument", NULL, 1},
    {"ObjectiveSettings", "objective settings", NULL, 1},
    {"ImagingEnvironment", "the environment", NULL, 1},
    {"Experimenter", "the experimenter", NULL, 1},
    {"Channel", "wavelengths and dyes", channel, 2},
    {"Plane", "times and positions of planes", plane, 2},
    {"Pixels", "the number of significant bits", pixels, 2},
    {"ROI", "regions of interest", NULL, 1},
    {"XMLAnnotation", "annotations", NULL, 1},
    {"Plate", "plates and wells", NULL, 0},
    {"Screen", "screens", NULL, 0},
    {"Project", "projects", NULL, 0},
    {"Dataset", "data sets", NULL, 0},
    {"Folder", "folders", NULL, 0},
    {"Experiment", "experiments", NULL, 0},
    {"MicrobeamManipulationRef", "microbeam manipulations", NULL, 0},
    {"Rights", "rights", NULL, 0},
    {"Plane/AnnotationRef", "annotations of single planes", NULL, 0},
};

void tgi_ome_note_element(tgi_ome_notes *n, const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].element, name) == 0)
            n->left_behind |= 1u << i;
}

const char *const *tgi_ome_note_attributes(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].element, name) == 0)
            return kinds[i].attributes;
    return NULL;
}

static void name_left_behind(const tgi_ome_notes *notes, char *text, size_t cap)
{
    text[0] = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (notes->left_behind & 1u << i &&
            (!kinds[i].carried || notes->too_much || (notes->old && kinds[i].carried < 2))) {
            const size_t n = strlen(text);
            snprintf(text + n, cap - n, "%s%s", n ? ", " : "", kinds[i].words);
        }
}

/* ---- All of it --------------------------------------------------------------------------- */

void tgi_ome_notes_take(tgi_ome_notes *n, tgi_image_meta *m)
{
    m->title = n->title;
    m->acquired = n->acquired;
    m->about = n->about;
    m->info = n->info;
    m->lut = n->lut;
    m->range = n->range;
    m->label = n->label;
    m->n_luts = n->n_luts;
    m->n_ranges = n->n_ranges;
    m->mode = n->mode;
    m->n_labels = n->n_labels;
    m->ome = n->kept;
    memcpy(m->malformed, n->malformed, sizeof m->malformed);
    name_left_behind(n, m->left_behind, sizeof m->left_behind);
    *n = (tgi_ome_notes){0};
}

void tgi_ome_notes_free(tgi_ome_notes *n)
{
    for (int64_t i = 0; i < n->n_labels; i++)
        tgi_free(n->label[i]);
    tgi_free(n->label);
    tgi_free(n->range);
    tgi_free(n->lut);
    tgi_free(n->info);
    tgi_free(n->about);
    tgi_free(n->acquired);
    tgi_free(n->title);
    tgi_ome_kept_free(&n->kept);
    *n = (tgi_ome_notes){0};
}
