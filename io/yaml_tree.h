/* yaml_tree.h - a YAML document as a tree of plain values, by libyaml.
 *
 * Scalars are text; what they mean is asked for by type. Tags are not looked at, and keys of mappings are scalars, each
 * once. An alias is the value that its anchor names, once that is complete: it is not copied, but it counts as often as
 * it is named, so a document that would unfold to more than TGI_YAML_NODES values is refused, and so is one that contains
 * itself. Without libyaml tgi_yaml_parse answers TG_E_UNSUPPORTED. */
#ifndef TGI_YAML_TREE_H
#define TGI_YAML_TREE_H

#include "engine/base/status.h"

#include <stdbool.h>

#define TGI_YAML_BYTES ((size_t)1 << 20) /* of a document */
#define TGI_YAML_NODES 50000             /* values in it, aliases unfolded */
#define TGI_YAML_DEPTH 64

typedef struct tgi_yaml_doc tgi_yaml_doc;
typedef struct tgi_yaml tgi_yaml; /* a value inside a document; a view */

/* `what` names the bytes in details. Returned; tgi_yaml_free. TG_E_FORMAT: no YAML, or past a limit. */
tg_status tgi_yaml_parse(const void *bytes, size_t n, const char *what, tgi_yaml_doc **out,
                         tgi_err *err);
void tgi_yaml_free(tgi_yaml_doc **doc);

/* The value of the document; of an empty one a scalar without text. */
const tgi_yaml *tgi_yaml_root(const tgi_yaml_doc *doc);
/* All of these take NULL for a value that is not there. */
const tgi_yaml *tgi_yaml_get(const tgi_yaml *map, const char *key); /* NULL when absent */
const tgi_yaml *tgi_yaml_first(const tgi_yaml *v); /* of a list or mapping; NULL: empty */
const tgi_yaml *tgi_yaml_next(const tgi_yaml *v);
const char *tgi_yaml_key(const tgi_yaml *v); /* in its mapping; else NULL */
int tgi_yaml_count(const tgi_yaml *v);       /* values of a list or mapping */
bool tgi_yaml_is_map(const tgi_yaml *v);
bool tgi_yaml_is_list(const tgi_yaml *v);
bool tgi_yaml_is_null(const tgi_yaml *v); /* absent, or a plain "", "~" or "null" */
/* False, *out untouched, where the value is of another kind. Numbers are plain: digits, a point, an exponent, or .inf
 * and -.inf, which `num` takes. */
bool tgi_yaml_text(const tgi_yaml *v, const char **out);
bool tgi_yaml_num(const tgi_yaml *v, double *out);
bool tgi_yaml_int(const tgi_yaml *v, int64_t *out);

#endif
