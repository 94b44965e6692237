/* fuzz_ome.c - any text as the OME-XML of a TIFF's ImageDescription. Nothing may be printed. */
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
        tgi_ome_free(&ome);
    free(text);
    fuzz_check_leaks();
    return 0;
}
