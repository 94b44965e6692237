/* ome_common.c - what of OME-XML needs no XML parser. */
#include "engine/base/mem.h"
#include "io/ome_xml.h"

#include <string.h>

bool tgi_ome_probe(const char *text)
{
    const char *root = strstr(text, "<OME");
    if (!root)
        root = strstr(text, ":OME ");
    return text[strspn(text, " \t\r\n\xef\xbb\xbf")] == '<' && root && root - text < 16384;
}

const char *tgi_xml_as(char c, tgi_xml_place place)
{
    const bool attribute = place == TGI_XML_ATTRIBUTE;
    return c == '<'                 ? "&lt;"
           : c == '>'               ? "&gt;"
           : c == '&'               ? "&amp;"
           : c == '"' && attribute  ? "&quot;"
           : c == '\n' && attribute ? "&#10;" /* a line's end there is read as a blank */
           : c == '\t' && attribute ? "&#9;"
           : c == '\r'              ? "&#13;"
                                    : NULL;
}

void tgi_ome_free(tgi_ome *o)
{
    for (int i = 0; i < o->n_channels; i++)
        tgi_free(o->channels[i].name);
    tgi_free(o->channels);
    tgi_free(o->blocks);
    tgi_free(o->names);
    tgi_ome_notes_free(&o->notes);
    *o = (tgi_ome){0};
}
