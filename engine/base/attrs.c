/* attrs.c - fills an operator's attributes with the defaults of its rows. */
#include "engine/base/attrs.h"

void tgi_attrs_default(const tgi_attr *rows, void *blob)
{
    for (const tgi_attr *r = rows; r && r->name; r++) {
        void *at = (char *)blob + r->offset;
        switch (r->type) {
        case TGI_ATTR_INT:
            *(int64_t *)at = (int64_t)r->def;
            break;
        case TGI_ATTR_FLOAT:
            *(float *)at = (float)r->def;
            break;
        case TGI_ATTR_INTS:
            ((tgi_ints *)at)->n = -1;
            break;
        case TGI_ATTR_FLOATS:
            ((tgi_floats *)at)->n = -1;
            break;
        case TGI_ATTR_ENUM:
            *(int *)at = (int)r->def;
            break;
        case TGI_ATTR_STRING:
            *(char *)at = 0;
            break;
        case TGI_ATTR_IGNORED:
            break;
        }
    }
}
