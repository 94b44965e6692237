/* node_attrs.c - attributes by name, for the importer and the rewrites. Kernels never come
 * here: they read their op's struct. */
#include "engine/graph/graph_priv.h"

#include <string.h>

const tg_attr *tgi_attr_row(const tg_op *op, const char *name)
{
    for (const tg_attr *r = op ? op->attrs : NULL; r && r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r;
    return NULL;
}

/* Where the attribute of this type lives, or NULL. */
static void *at(const tg_node *n, const char *name, tg_attr_type type, const tg_attr **row)
{
    const tg_attr *r = tgi_attr_row(n->op, name);
    if (!r || r->type != type)
        return NULL;
    if (row)
        *row = r;
    return (char *)n->attrs + r->offset;
}

int64_t tgi_attr_int(const tg_node *n, const char *name, int64_t absent)
{
    const int64_t *p = at(n, name, TG_ATTR_INT, NULL);
    return p ? *p : absent;
}

float tgi_attr_float(const tg_node *n, const char *name, float absent)
{
    const float *p = at(n, name, TG_ATTR_FLOAT, NULL);
    return p ? *p : absent;
}

const tg_ints *tgi_attr_ints(const tg_node *n, const char *name)
{
    const tg_ints *p = at(n, name, TG_ATTR_INTS, NULL);
    return p && p->n >= 0 ? p : NULL;
}

int tgi_attr_enum_is(const tg_node *n, const char *name, const char *choice)
{
    const tg_attr *r;
    const int *p = at(n, name, TG_ATTR_ENUM, &r);
    return p && strcmp(r->choices[*p], choice) == 0;
}

static int in_range(const tg_attr *r, double v)
{
    return r->min == r->max || (v >= r->min && v <= r->max);
}

int tgi_attr_set_int(tg_node *n, const char *name, int64_t v)
{
    const tg_attr *r;
    int64_t *p = at(n, name, TG_ATTR_INT, &r);
    if (!p || !in_range(r, (double)v))
        return 0;
    *p = v;
    return 1;
}

int tgi_attr_set_float(tg_node *n, const char *name, float v)
{
    const tg_attr *r;
    float *p = at(n, name, TG_ATTR_FLOAT, &r);
    if (!p || !in_range(r, (double)v))
        return 0;
    *p = v;
    return 1;
}

int tgi_attr_set_enum(tg_node *n, const char *name, const char *choice)
{
    const tg_attr *r;
    int *p = at(n, name, TG_ATTR_ENUM, &r);
    for (int i = 0; p && r->choices[i]; i++)
        if (strcmp(r->choices[i], choice) == 0) {
            *p = i;
            return 1;
        }
    return 0;
}
