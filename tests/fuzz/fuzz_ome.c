/* fuzz_ome.c - any text as the OME-XML of a TIFF's ImageDescription, and what is carried of it into another one. Nothing
 * may be printed. */
#include "io/ome_xml.h"
#include "tests/fuzz/fuzz_target.h"

#include <libxml/xmlerror.h>

/* libxml2 would print here what nobody takes from it. */
static void printed(void *arg, const char *fmt, ...)
{
    (void)arg;
    (void)fmt;
    abort();
}

static void count(void *user, char c)
{
    (void)c;
    ++*(size_t *)user;
}

/* A choice of slices and channels, and another scale. */
static void carry(const tgi_ome_kept *k)
{
    int64_t at[2] = {1, 0}, lost;
    size_t n = 0;
    const tgi_axis_list l = {2, at};
    const tgi_ome_place p = {
        .scale = {2, 0.5}, .shift = {3, -4}, .first_z = 1, .extent = {0, 9, 9}};
    int32_t place[2][3] = {{1, 0, 0}, {0, 0, 1}};
    const tgi_ome_spots spots = {2, place, {1, 0, 1}};
    tgi_ome_kept *few = NULL, *turn = NULL;
    char words[240];
    tgi_err err = {0};
    (void)tgi_ome_kept_words(k, &p, words, sizeof words);
    const tg_status st = tgi_ome_kept_pick(k, &l, &l, NULL, &few, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        fuzz_check(tgi_ome_kept_in_turn(k, &spots, &turn, &err), &err);
    const tgi_ome_kept *const all[] = {k, few, turn};
    for (int i = 0; i < 3; i++) {
        const tgi_ome_kept *of = all[i];
        if (!of)
            continue;
        (void)tgi_rois_write(of->rois, &p, NULL, count, &n, &lost);
        tgi_rois_refs(of->rois, &p, count, &n);
        (void)tgi_plane_note_at(of, &p, 0, 0, 0);
    }
    tgi_ome_kept_free(&few);
    tgi_ome_kept_free(&turn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    tgi_ome ome = {0};
    tgi_err err = {0};
    xmlSetGenericErrorFunc(NULL, printed);
    /* As tgi_tiff_text hands it over: a text with a 0 behind it, cut at its first 0. */
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    memcpy(text, data, n);
    text[n] = 0;
    (void)tgi_ome_probe(text);
    const tg_status st = tgi_ome_parse(text, strlen(text), "made.ome.tif", 0, &ome, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        carry(ome.notes.kept);
    if (st == TG_OK)
        tgi_ome_free(&ome);
    free(text);
    fuzz_check_leaks();
    return 0;
}
