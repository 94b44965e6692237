/* op_case.c - see op_case.h. */
#include "tests/unit/op_case.h"

#include "kernels/ops/op_shared.h"

#include <ctype.h>

const char *case_where;

/* The caller counts it. */
static int say(const char *what)
{
    fprintf(stderr, "%s: %s\n", case_where, what);
    return 0;
}

char *case_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    for (char *e = s + strlen(s); e > s && isspace((unsigned char)e[-1]);)
        *--e = 0;
    return s;
}

/* Numbers separated by `sep`; returns how many. */
int case_numbers(const char *s, char sep, double *v, int max)
{
    int n = 0;
    while (*s && n < max) {
        char *end;
        v[n++] = strtod(s, &end);
        if (end == s)
            return -1;
        s = *end == sep ? end + 1 : end;
    }
    return n;
}

int case_shape(const char *s, tgi_desc *d)
{
    double v[TGI_MAX_RANK];
    d->rank = strcmp(s, "scalar") == 0 ? 0 : case_numbers(s, 'x', v, TGI_MAX_RANK);
    for (int k = 0; k < d->rank; k++)
        d->dim[k] = (int64_t)v[k];
    return d->rank >= 0;
}

static int set_attr(op_node *n, const char *name, const char *value)
{
    double v[64];
    for (const tgi_attr *r = n->op->attrs; r && r->name; r++) {
        if (strcmp(r->name, name) != 0)
            continue;
        void *at = (char *)n->attrs + r->offset;
        const int count = r->type == TGI_ATTR_ENUM || r->type == TGI_ATTR_STRING
                              ? 0
                              : case_numbers(value, ',', v, TGI_ATTR_MAX_INTS);
        if (count < 0)
            return 0;
        if (r->type == TGI_ATTR_INT) {
            *(int64_t *)at = (int64_t)v[0];
        } else if (r->type == TGI_ATTR_FLOAT) {
            *(float *)at = (float)v[0];
        } else if (r->type == TGI_ATTR_INTS) {
            ((tgi_ints *)at)->n = count;
            for (int i = 0; i < count; i++)
                ((tgi_ints *)at)->v[i] = (int64_t)v[i];
        } else if (r->type == TGI_ATTR_FLOATS) {
            ((tgi_floats *)at)->n = count;
            for (int i = 0; i < count; i++)
                ((tgi_floats *)at)->v[i] = (float)v[i];
        } else if (r->type == TGI_ATTR_STRING) {
            snprintf(at, TGI_ATTR_TEXT, "%s", value);
        } else {
            for (int i = 0; r->choices && r->choices[i]; i++)
                if (strcmp(r->choices[i], value) == 0) {
                    *(int *)at = i;
                    return 1;
                }
            return 0;
        }
        return 1;
    }
    return 0;
}

static tg_dtype type_of(char kind)
{
    switch (kind) {
    case 'i':
    case 'I':
        return TG_DTYPE_I64;
    case 'u':
        return TG_DTYPE_U8;
    case 'w':
        return TG_DTYPE_U16;
    case 'j':
        return TG_DTYPE_I16;
    case 'b':
        return TG_DTYPE_BOOL;
    case 'd':
        return TG_DTYPE_F64;
    case 'h':
        return TG_DTYPE_F16;
    default:
        return TG_DTYPE_F32;
    }
}

static int parse_list(op_node *n, int i, char kind, char *body)
{
    tgi_desc *d = &n->src[i];
    double v[64];
    char *list = strchr(body, '=');
    if (list)
        *list++ = 0;
    const int count = case_numbers(list ? list : body, ',', v, 64);
    n->is_const[i] = 1;
    d->rank = kind == 'I' || kind == 'F' ? 0 : 1;
    d->dim[0] = count;
    if (list && !case_shape(body, d))
        return 0;
    void *data = node_data(n, i);
    for (int k = 0; k < count; k++)
        tgi_num_put(d->dtype, data, k, v[k]);
    return count >= 0 && desc_floats(d) == (size_t)count;
}

static int parse_input(op_node *n, int i, char *s, uint64_t *seed)
{
    tgi_desc *d = &n->src[i];
    if (strcmp(s, "none") == 0)
        return 1;
    n->is_const[i] = i > 0;
    const char kind = s[1] == ':' ? s[0] : 's';
    char *body = s[1] == ':' ? s + 2 : s;
    *d = (tgi_desc){.dtype = type_of(kind)};
    if (!strchr("sacm", kind))
        return parse_list(n, i, kind, body);
    if (kind != 's')
        n->is_const[i] = kind == 'c';
    if (!case_shape(body, d))
        return 0;
    float *f = node_data(n, i);
    for (size_t k = 0; k < desc_floats(d); k++)
        f[k] = kind == 'm' ? (float)tg_rand_in(seed, 0, 1) : 2.0f * tg_rand_unit(seed);
    return 1;
}

/* Attributes and inputs of one line into a node. */
int case_node(op_node *n, const tgi_op *op, char *attrs, char *inputs, uint64_t *seed)
{
    char *save = NULL, *parts[TGI_OP_MAX_SRC];
    int n_src = 0, ok = 1;
    for (char *p = strtok_r(inputs, ";", &save); p && n_src < TGI_OP_MAX_SRC;
         p = strtok_r(NULL, ";", &save))
        parts[n_src++] = case_trim(p);
    node_open(n, op, 18, n_src, 1);
    for (char *p = strtok_r(attrs, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        char *value = strchr(p, '=');
        if (!value)
            return say("an attribute without =");
        *value++ = 0;
        if (strcmp(p, "opset") == 0)
            n->ctx.opset = atoi(value);
        else if (strcmp(p, "outputs") == 0)
            n->ctx.n_dst = atoi(value);
        else if (!set_attr(n, p, value))
            return say("no such attribute or choice");
    }
    for (int i = 0; i < n_src; i++)
        ok &= parse_input(n, i, parts[i], seed);
    return ok ? 1 : say("an input does not parse");
}

int case_each_line(const char *symbol, case_fn *fn, const tgi_op *op)
{
    char path[512], line[1024], place[600];
    snprintf(path, sizeof path, "%s/tests/cases/%s.case", TG_SOURCE_DIR, symbol);
    FILE *f = fopen(path, "r");
    int number = 0, cases = 0;
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        uint64_t seed = 88172645463325252ull + (uint64_t)++number;
        char *s = case_trim(line);
        if (!*s || *s == '#')
            continue;
        snprintf(place, sizeof place, "%s.case:%d", symbol, number);
        case_where = place;
        fn(op, s, &seed);
        cases++;
    }
    fclose(f);
    return cases;
}

const char *const case_symbols[] = {
#define TG_OP(symbol) #symbol,
#include "kernels/op_list.h"
#undef TG_OP
    NULL};

void case_every_op(const char *only, case_fn *fn)
{
    for (int i = 0; case_symbols[i]; i++)
        if (!only || strcmp(only, case_symbols[i]) == 0)
            case_each_line(case_symbols[i], fn, tgi_op_at(i));
}
