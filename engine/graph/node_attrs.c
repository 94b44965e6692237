/* node_attrs.c - attributes by name, for the importer and the rewrites. Kernels never come
 * here: they read their op's struct. */
#include "engine/graph/graph_priv.h"

#include <string.h>

const tgi_attr *tgi_attr_row(const tgi_op *op, const char *name)
{
    for (const tgi_attr *r = op ? op->attrs : NULL; r && r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r;
    return NULL;
}

/* Where the attribute of this type lives, or NULL. */
static void *at(const tgi_node *n, const char *name, tgi_attr_type type, const tgi_attr **row)
{
    const tgi_attr *r = tgi_attr_row(n->op, name);
    if (!r || r->type != type)
        return NULL;
    if (row)
        *row = r;
    return (char *)n->attrs + r->offset;
}

int64_t tgi_attr_int(const tgi_node *n, const char *name, int64_t absent)
{
    const int64_t *p = at(n, name, TGI_ATTR_INT, NULL);
    return p ? *p : absent;
}

float tgi_attr_float(const tgi_node *n, const char *name, float absent)
{
    const float *p = at(n, name, TGI_ATTR_FLOAT, NULL);
    return p ? *p : absent;
}

const tgi_ints *tgi_attr_ints(const tgi_node *n, const char *name)
{
    const tgi_ints *p = at(n, name, TGI_ATTR_INTS, NULL);
    return p && p->n >= 0 ? p : NULL;
}

int tgi_attr_enum_is(const tgi_node *n, const char *name, const char *choice)
{
    const tgi_attr *r;
    const int *p = at(n, name, TGI_ATTR_ENUM, &r);
    return p && strcmp(r->choices[*p], choice) == 0;
}

static int in_range(const tgi_attr *r, double v)
{
    return r->min == r->max || (v >= r->min && v <= r->max);
}

int tgi_attr_set_int(tgi_node *n, const char *name, int64_t v)
{
    const tgi_attr *r;
    int64_t *p = at(n, name, TGI_ATTR_INT, &r);
    if (!p || !in_range(r, (double)v))
        return 0;
    *p = v;
    return 1;
}

int tgi_attr_set_float(tgi_node *n, const char *name, float v)
{
    const tgi_attr *r;
    float *p = at(n, name, TGI_ATTR_FLOAT, &r);
    if (!p || !in_range(r, (double)v))
        return 0;
    *p = v;
    return 1;
}

int tgi_attr_set_enum(tgi_node *n, const char *name, const char *choice)
{
    const tgi_attr *r;
    int *p = at(n, name, TGI_ATTR_ENUM, &r);
    for (int i = 0; p && r->choices[i]; i++)
        if (strcmp(r->choices[i], choice) == 0) {
            *p = i;
            return 1;
        }
    return 0;
}
