/* yaml_absent.c - stands in for yaml_tree.c in a build without libyaml: a description in YAML is refused by name. */
#include "io/yaml_tree.h"

tg_status tgi_yaml_parse(const void *bytes, size_t n, const char *what, tgi_yaml_doc **out,
                         tgi_err *err)
{
    (void)bytes, (void)n, (void)out;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s: a description in YAML; this build was made without libyaml", what);
}

void tgi_yaml_free(tgi_yaml_doc **doc)
{
    (void)doc;
}

const tgi_yaml *tgi_yaml_root(const tgi_yaml_doc *doc)
{
    (void)doc;
    return NULL;
}

const tgi_yaml *tgi_yaml_get(const tgi_yaml *map, const char *key)
{
    (void)map, (void)key;
    return NULL;
}

const tgi_yaml *tgi_yaml_first(const tgi_yaml *v)
{
    (void)v;
    return NULL;
}

const tgi_yaml *tgi_yaml_next(const tgi_yaml *v)
{
    (void)v;
    return NULL;
}

const char *tgi_yaml_key(const tgi_yaml *v)
{
    (void)v;
    return NULL;
}

int tgi_yaml_count(const tgi_yaml *v)
{
    (void)v;
    return 0;
}

bool tgi_yaml_is_map(const tgi_yaml *v)
{
    (void)v;
    return false;
}

bool tgi_yaml_is_list(const tgi_yaml *v)
{
    (void)v;
    return false;
}

bool tgi_yaml_is_null(const tgi_yaml *v)
{
    return !v;
}

bool tgi_yaml_text(const tgi_yaml *v, const char **out)
{
    (void)v, (void)out;
    return false;
}

bool tgi_yaml_num(const tgi_yaml *v, double *out)
{
    (void)v, (void)out;
    return false;
}

bool tgi_yaml_int(const tgi_yaml *v, int64_t *out)
{
    (void)v, (void)out;
    return false;
}
