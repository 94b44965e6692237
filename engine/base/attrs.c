#include "engine/base/attrs.h"

void tgi_attrs_default(const tg_attr *rows, void *blob)
{
    for (const tg_attr *r = rows; r && r->name; r++) {
        void *at = (char *)blob + r->offset;
        switch (r->type) {
        case TG_ATTR_INT:
            *(int64_t *)at = (int64_t)r->def;
            break;
        case TG_ATTR_FLOAT:
            *(float *)at = (float)r->def;
            break;
        case TG_ATTR_INTS:
            ((tg_ints *)at)->n = -1;
            break;
        case TG_ATTR_FLOATS:
            ((tg_floats *)at)->n = -1;
            break;
        case TG_ATTR_ENUM:
            *(int *)at = (int)r->def;
            break;
        case TG_ATTR_STRING:
            *(char *)at = 0;
            break;
        case TG_ATTR_IGNORED:
            break;
        }
    }
}
