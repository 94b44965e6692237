/* onnx.c - ModelProto to plain structs.
 *
 * A dozen messages, read with the bounded cursor of onnx_wire.h. Each message is counted first
 * and parsed second, so arrays have their final size at once. What we do not know is skipped,
 * as protobuf intends; what would change the meaning (functions, sparse tensors, foreign
 * domains) is refused by name. Element data are onnx_tensor.c's.
 *
 * Bounds: graphs nest at most 8 deep, parts (nodes, names, attributes, tensors) number at most
 * a million, all structs and strings together fit in 96 MiB + 8x the file.
 * @source onnx.proto3, IR version 10. */
#include "io/onnx_parse.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/sha256.h"
#include "io/zip_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_DEPTH 8
#define MAX_OPSET 28 /* the newest operator set whose semantics were read for this build */
#define STRUCT_BYTES ((size_t)96 << 20)

static tg_status read_graph(tgi_onnx_priv *p, const tgi_field *f, int depth, tgi_onnx_graph *g,
                            tgi_err *err);

static tg_status malformed(const char *what, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT, "not an ONNX model: malformed %s", what);
}

/* Array of n elements of `size`; NULL with err filled. Counted. */
static void *array(tgi_onnx_priv *p, int64_t n, size_t size, tgi_err *err)
{
    if (n > INT_MAX || tgi_onnx_more(p, (size_t)n, err) != TG_OK)
        return NULL;
    return tgi_onnx_alloc(&p->arena, (size_t)n, size, err);
}

static tg_status why(const tgi_err *err)
{
    return err && err->code != TG_OK ? err->code : TG_E_FORMAT;
}

#define TEXT(dst, field)                                                                       \
    do {                                                                                       \
        if (!((dst) = tgi_onnx_text(&p->arena, (field), err)))                                 \
            return why(err);                                                                   \
    } while (0)

/* ---- Attributes -------------------------------------------------------------------------- */

enum {
    A_NAME = 1,
    A_F = 2,
    A_I = 3,
    A_S = 4,
    A_T = 5,
    A_G = 6,
    A_FLOATS = 7,
    A_INTS = 8,
    A_TYPE = 20,
    A_REF = 21
};

static size_t list_len(const tgi_field *f, size_t width)
{
    size_t n = 0;
    if (f->type != TGI_WIRE_BYTES)
        return 1;
    if (width)
        return f->n / width;
    for (size_t i = 0; i < f->n; i++)
        n += !(f->p[i] & 0x80); /* last byte of each varint */
    return n;
}

/* ints or floats, packed or one by one. */
static tg_status read_numbers(tgi_onnx_priv *p, tgi_wire msg, uint32_t num, tgi_onnx_attr *a,
                              tgi_err *err)
{
    tgi_wire w = msg;
    tgi_field f;
    size_t n = 0, at = 0;
    while (tgi_wire_next(&w, &f) > 0)
        if (f.num == num)
            n += list_len(&f, num == A_FLOATS ? 4 : 0);
    int64_t *ints = num == A_INTS ? array(p, (int64_t)n, sizeof *ints, err) : NULL;
    float *floats = num == A_FLOATS ? array(p, (int64_t)n, sizeof *floats, err) : NULL;
    if (!ints && !floats)
        return why(err);
    for (w = msg; tgi_wire_next(&w, &f) > 0;) {
        tgi_wire in = tgi_wire_in(&f);
        if (f.num != num)
            continue;
        if (f.type != TGI_WIRE_BYTES) { /* a single, unpacked element */
            if (f.type != (ints ? TGI_WIRE_VARINT : TGI_WIRE_32) || at >= n)
                return malformed("attribute list", err);
            if (ints)
                ints[at] = (int64_t)f.v;
            else
                memcpy(&floats[at], &f.v, sizeof *floats);
            at++;
        } else if (floats) {
            if (f.n % 4 || f.n / 4 > n - at)
                return malformed("attribute list", err);
            if (f.n)
                memcpy(floats + at, f.p, f.n);
            at += f.n / 4;
        } else {
            for (uint64_t v; in.p < in.end; ints[at++] = (int64_t)v)
                if (at >= n || !tgi_wire_varint(&in, &v))
                    return malformed("attribute list", err);
        }
    }
    a->n = at;
    a->ints = ints;
    a->floats = floats;
    return TG_OK;
}

static tg_status attr_field(tgi_onnx_priv *p, const tgi_field *f, int depth, tgi_onnx_attr *a,
                            int *type, tgi_err *err)
{
    switch (f->num) {
    case A_NAME:
        TEXT(a->name, f);
        return TG_OK;
    case A_F: {
        const uint32_t bits = (uint32_t)f->v;
        if (f->type != TGI_WIRE_32)
            return malformed("attribute", err);
        memcpy(&a->f, &bits, sizeof a->f);
        *type = *type ? *type : TGI_ONNX_FLOAT;
        return TG_OK;
    }
    case A_I:
        a->i = (int64_t)f->v;
        *type = *type ? *type : TGI_ONNX_INT;
        return f->type == TGI_WIRE_VARINT ? TG_OK : malformed("attribute", err);
    case A_S:
        /* Strings may hold any bytes; those with NULs are nothing we understand. */
        if (f->type == TGI_WIRE_BYTES && f->n && memchr(f->p, 0, f->n)) {
            a->s = "";
            return TG_OK;
        }
        TEXT(a->s, f);
        *type = *type ? *type : TGI_ONNX_STRING;
        return TG_OK;
    case A_T: {
        tgi_onnx_tensor *t = array(p, 1, sizeof *t, err);
        *type = *type ? *type : TGI_ONNX_TENSOR;
        a->t = t;
        return t ? tgi_onnx_read_tensor(p, f, t, err) : why(err);
    }
    case A_G: {
        tgi_onnx_graph *g = array(p, 1, sizeof *g, err);
        *type = *type ? *type : TGI_ONNX_GRAPH;
        if (a->g)
            return malformed("attribute with two graphs", err);
        a->g = g;
        return g ? read_graph(p, f, depth + 1, g, err) : why(err);
    }
    case A_REF:
        return tgi_fail(err, TG_E_UNSUPPORTED, "attribute by reference (model functions)");
    default:
        return TG_OK;
    }
}

static tg_status read_attr(tgi_onnx_priv *p, const tgi_field *msg, int depth, tgi_onnx_attr *a,
                           tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f;
    int type = 0, declared = 0;
    if (msg->type != TGI_WIRE_BYTES)
        return malformed("attribute", err);
    a->name = "";
    a->s = "";
    const int64_t n_ints = tgi_wire_count(w, A_INTS), n_floats = tgi_wire_count(w, A_FLOATS);
    while (tgi_wire_next(&w, &f) > 0) {
        if (f.num == A_TYPE)
            declared = f.v <= 99 ? (int)f.v : 99;
        TGI_TRY(attr_field(p, &f, depth, a, &type, err));
    }
    if (n_ints < 0)
        return malformed("attribute", err);
    if (declared) /* without a type (IR 1) the member that is there tells */
        type = declared;
    else if (!type)
        type = n_ints ? TGI_ONNX_INTS : n_floats ? TGI_ONNX_FLOATS : TGI_ONNX_OTHER;
    a->kind = type >= TGI_ONNX_FLOAT && type <= TGI_ONNX_STRINGS ? (tgi_onnx_attr_kind)type
                                                                 : TGI_ONNX_OTHER;
    if (a->kind == TGI_ONNX_INTS)
        return read_numbers(p, tgi_wire_in(msg), A_INTS, a, err);
    if (a->kind == TGI_ONNX_FLOATS)
        return read_numbers(p, tgi_wire_in(msg), A_FLOATS, a, err);
    if ((a->kind == TGI_ONNX_TENSOR && !a->t) || (a->kind == TGI_ONNX_GRAPH && !a->g))
        return malformed("attribute: its value is missing", err);
    return TG_OK;
}

/* ---- Nodes and ports --------------------------------------------------------------------- */

static int foreign(const char *domain)
{
    return domain[0] && strcmp(domain, "ai.onnx") != 0;
}

static tg_status read_node(tgi_onnx_priv *p, const tgi_field *msg, int depth, tgi_onnx_node *n,
                           tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f;
    if (msg->type != TGI_WIRE_BYTES)
        return malformed("node", err);
    const int64_t n_in = tgi_wire_count(w, 1), n_out = tgi_wire_count(w, 2);
    const int64_t n_attr = tgi_wire_count(w, 5);
    if (n_in < 0)
        return malformed("node", err);
    n->name = n->op_type = n->domain = "";
    if (!(n->in = array(p, n_in, sizeof *n->in, err)) ||
        !(n->out = array(p, n_out, sizeof *n->out, err)) ||
        !(n->attr = array(p, n_attr, sizeof *n->attr, err)))
        return why(err);
    while (tgi_wire_next(&w, &f) > 0) {
        if (f.num == 1)
            TEXT(n->in[n->n_in++], &f);
        else if (f.num == 2)
            TEXT(n->out[n->n_out++], &f);
        else if (f.num == 3)
            TEXT(n->name, &f);
        else if (f.num == 4)
            TEXT(n->op_type, &f);
        else if (f.num == 5)
            TGI_TRY(read_attr(p, &f, depth, &n->attr[n->n_attr++], err));
        else if (f.num == 7)
            TEXT(n->domain, &f);
    }
    if (!n->op_type[0])
        return malformed("node without an operator", err);
    if (foreign(n->domain))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "operator %s.%s (node \"%s\") is not of the ONNX "
                        "domain",
                        n->domain, n->op_type, n->name);
    return TG_OK;
}

static tg_status read_shape(tgi_onnx_priv *p, const tgi_field *msg, tgi_onnx_port *port,
                            tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f, d;
    int r;
    port->rank = 0;
    while ((r = tgi_wire_next(&w, &f)) > 0) {
        if (f.num != 1)
            continue;
        if (f.type != TGI_WIRE_BYTES)
            return malformed("shape", err);
        if (port->rank >= TGI_MAX_RANK)
            return tgi_fail(err, TG_E_UNSUPPORTED, "\"%s\" has more than %d axes", port->name,
                            TGI_MAX_RANK);
        const int i = port->rank++;
        tgi_wire in = tgi_wire_in(&f);
        int q;
        port->dim[i] = -1;
        while ((q = tgi_wire_next(&in, &d)) > 0) {
            /* A zero extent is how some exporters spell "unknown". */
            if (d.num == 1 && d.type == TGI_WIRE_VARINT)
                port->dim[i] = d.v > 0 && d.v <= INT64_MAX ? (int64_t)d.v : -1;
            else if (d.num == 2)
                TEXT(port->symbol[i], &d);
        }
        if (q < 0)
            return malformed("shape", err);
    }
    return r < 0 ? malformed("shape", err) : TG_OK;
}

static tg_status read_type(tgi_onnx_priv *p, const tgi_field *msg, tgi_onnx_port *port,
                           tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f, t;
    int r, q = 0;
    while ((r = tgi_wire_next(&w, &f)) > 0) {
        if (f.num != 1 || f.type != TGI_WIRE_BYTES)
            continue; /* sequences, maps, optionals: the importer refuses a port without dtype
                       */
        tgi_wire in = tgi_wire_in(&f);
        while ((q = tgi_wire_next(&in, &t)) > 0) {
            if (t.num == 1 && t.type == TGI_WIRE_VARINT)
                port->dtype = tgi_onnx_dtype(t.v);
            else if (t.num == 2 && t.type == TGI_WIRE_BYTES)
                TGI_TRY(read_shape(p, &t, port, err));
        }
        if (q < 0)
            break;
    }
    return r < 0 || q < 0 ? malformed("type", err) : TG_OK;
}

static tg_status read_port(tgi_onnx_priv *p, const tgi_field *msg, tgi_onnx_port *port,
                           tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f;
    int r;
    port->name = "";
    port->rank = -1;
    if (msg->type != TGI_WIRE_BYTES)
        return malformed("value description", err);
    while ((r = tgi_wire_next(&w, &f)) > 0) {
        if (f.num == 1)
            TEXT(port->name, &f);
        else if (f.num == 2 && f.type == TGI_WIRE_BYTES)
            TGI_TRY(read_type(p, &f, port, err));
    }
    return r < 0 ? malformed("value description", err) : TG_OK;
}

/* ---- Graph and model --------------------------------------------------------------------- */

enum { G_NODE = 1, G_NAME = 2, G_INIT = 5, G_IN = 11, G_OUT = 12, G_INFO = 13, G_SPARSE = 15 };

static tg_status graph_field(tgi_onnx_priv *p, const tgi_field *f, int depth, tgi_onnx_graph *g,
                             tgi_err *err)
{
    switch (f->num) {
    case G_NODE:
        return read_node(p, f, depth, &g->node[g->n_node++], err);
    case G_NAME:
        TEXT(g->name, f);
        return TG_OK;
    case G_INIT:
        return tgi_onnx_read_tensor(p, f, &g->init[g->n_init++], err);
    case G_IN:
        return read_port(p, f, &g->in[g->n_in++], err);
    case G_OUT:
        return read_port(p, f, &g->out[g->n_out++], err);
    case G_INFO:
        return read_port(p, f, &g->info[g->n_info++], err);
    case G_SPARSE:
        return tgi_fail(err, TG_E_UNSUPPORTED, "sparse initializers");
    default:
        return TG_OK;
    }
}

static tg_status read_graph(tgi_onnx_priv *p, const tgi_field *msg, int depth,
                            tgi_onnx_graph *g, tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f;
    if (msg->type != TGI_WIRE_BYTES || tgi_wire_count(w, 0) < 0)
        return malformed("graph", err);
    if (depth > MAX_DEPTH)
        return tgi_fail(err, TG_E_FORMAT, "graphs nest more than %d deep", MAX_DEPTH);
    g->name = "";
    if (!(g->node = array(p, tgi_wire_count(w, G_NODE), sizeof *g->node, err)) ||
        !(g->init = array(p, tgi_wire_count(w, G_INIT), sizeof *g->init, err)) ||
        !(g->in = array(p, tgi_wire_count(w, G_IN), sizeof *g->in, err)) ||
        !(g->out = array(p, tgi_wire_count(w, G_OUT), sizeof *g->out, err)) ||
        !(g->info = array(p, tgi_wire_count(w, G_INFO), sizeof *g->info, err)))
        return why(err);
    while (tgi_wire_next(&w, &f) > 0)
        TGI_TRY(graph_field(p, &f, depth, g, err));
    return TG_OK;
}

static tg_status read_opset(tgi_onnx_priv *p, const tgi_field *msg, tgi_onnx_model *m,
                            tgi_err *err)
{
    tgi_wire w = tgi_wire_in(msg);
    tgi_field f;
    const char *domain = "";
    uint64_t version = 0;
    int r;
    if (msg->type != TGI_WIRE_BYTES)
        return malformed("operator set", err);
    while ((r = tgi_wire_next(&w, &f)) > 0) {
        if (f.num == 1)
            TEXT(domain, &f);
        else if (f.num == 2)
            version = f.v;
    }
    if (r < 0)
        return malformed("operator set", err);
    if (!foreign(domain))
        m->opset = version <= INT_MAX ? (int64_t)version : INT_MAX;
    return TG_OK;
}

static tg_status check_model(const tgi_onnx_model *m, int n_graph, tgi_err *err)
{
    if (n_graph != 1)
        return tgi_fail(err, TG_E_FORMAT, "not an ONNX model: it holds %d graphs", n_graph);
    if (m->opset < 1)
        return tgi_fail(err, TG_E_FORMAT, "the model names no operator set");
    if (m->opset > MAX_OPSET)
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "operator set %lld; this build knows up to %d: export with an older one",
            (long long)m->opset, MAX_OPSET);
    return TG_OK;
}

static tg_status read_model(tgi_onnx_priv *p, tgi_wire w, tgi_onnx_model *m, tgi_err *err)
{
    tgi_field f;
    int n_graph = 0;
    m->producer = "";
    if (tgi_wire_count(w, 0) < 0)
        return malformed("message, or cut off", err);
    while (tgi_wire_next(&w, &f) > 0) {
        if (f.num == 1 && f.type == TGI_WIRE_VARINT)
            m->ir_version = (int64_t)f.v;
        else if (f.num == 2)
            TEXT(m->producer, &f);
        else if (f.num == 7 && n_graph++ == 0)
            TGI_TRY(read_graph(p, &f, 0, &m->graph, err));
        else if (f.num == 8)
            TGI_TRY(read_opset(p, &f, m, err));
        else if (f.num == 25)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "the model defines functions of its own; "
                            "inline them before export");
    }
    return check_model(m, n_graph, err);
}

static tg_status parse(tgi_onnx_model *m, const void *bytes, size_t n, tgi_err *err)
{
    tgi_onnx_priv *p = m->priv_;
    tgi_err local = {0}; /* `why` needs one even when the caller does not */
    m->file_bytes = n;
    p->arena.limit = tgi_sat_add(STRUCT_BYTES, tgi_sat_mul(n, 8));
    const tg_status st =
        read_model(p, (tgi_wire){bytes, (const uint8_t *)bytes + n}, m, &local);
    return st == TG_OK ? TG_OK : tgi_fail(err, st, "%s", local.text);
}

static tgi_onnx_model *new_model(tgi_err *err)
{
    tgi_onnx_model *m = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof *m);
    if (m && !(m->priv_ = tgi_calloc(TGI_TAG_GRAPH, 1, sizeof(tgi_onnx_priv)))) {
        tgi_free(m);
        m = NULL;
    }
    if (!m)
        tgi_fail(err, TG_E_NOMEM, "no memory for a model");
    else
        ((tgi_onnx_priv *)m->priv_)->dir_fd = -1;
    return m;
}

tg_status tgi_onnx_parse(const void *bytes, size_t n, tgi_onnx_model **out, tgi_err *err)
{
    tgi_onnx_model *m = new_model(err);
    if (!m)
        return TG_E_NOMEM;
    const tg_status st = parse(m, bytes, n, err);
    if (st != TG_OK) {
        tgi_onnx_close(&m);
        return st;
    }
    *out = m;
    return TG_OK;
}

/* The folder that holds `path`, opened; -1 with errno. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof dir) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(dir, path, n);
    dir[n] = 0;
    return open(!slash ? "." : n ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static tg_status open_model(const char *path, tgi_onnx_model *m, tgi_err *err)
{
    tgi_onnx_priv *p = m->priv_;
    tgi_onnx_map *map;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s", strerror(errno));
    TGI_TRY(tgi_onnx_map_fd(p, fd, NULL, &map, err));
    p->path = tgi_strdup(TGI_TAG_GRAPH, path);
    if (!p->path)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
    p->dir_fd = open_folder(path);
    const tg_status st = parse(m, map->data, map->size, err);
    if (p->dir_fd >= 0)
        close(p->dir_fd);
    p->dir_fd = -1;
    return st;
}

tg_status tgi_onnx_open(const char *path, tgi_onnx_model **out, tgi_err *err)
{
    tgi_onnx_model *m = new_model(err);
    if (!m)
        return TG_E_NOMEM;
    const tg_status st = open_model(path, m, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "%s", path);
        tgi_onnx_close(&m);
        return st;
    }
    *out = m;
    return TG_OK;
}

/* ---- Records of archives ----------------------------------------------------------------- */

static tg_status check_sum(const void *bytes, size_t n, const char *said, tgi_err *err)
{
    char is[TGI_SHA256_TEXT];
    tgi_sha256 h;
    if (!*said)
        return TG_OK;
    tgi_sha256_begin(&h);
    tgi_sha256_add(&h, bytes, n);
    tgi_sha256_end(&h, is);
    return strcasecmp(is, said) == 0
               ? TG_OK
               : tgi_fail(err, TG_E_FORMAT,
                          "the record has SHA-256 %.16s..., the description says %.16s...: it "
                          "is another file, or damaged",
                          is, said);
}

/* The record's bytes: where they lie, or unpacked. */
static tg_status record_bytes(tgi_onnx_priv *p, tgi_zip *z, const char *record,
                              const uint8_t **at, size_t *n, tgi_err *err)
{
    const tgi_zip_record *r;
    const int64_t i = tgi_zip_find(z, record);
    if (i < 0)
        return tgi_fail(err, TG_E_FORMAT, "it is not in the archive");
    TGI_TRY(tgi_zip_locate(z, i, &r, err));
    *n = (size_t)r->bytes;
    if (r->stored) {
        *at = p->maps->data + r->at;
        return TG_OK;
    }
    if (!(p->unpacked = tgi_malloc(TGI_TAG_GRAPH, *n + 1)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes that are packed", *n);
    *at = p->unpacked;
    return tgi_zip_read(z, i, 0, p->unpacked, *n, err);
}

static tg_status open_record(const char *archive, const char *record, const char *sha256,
                             tgi_onnx_model *m, tgi_err *err)
{
    tgi_onnx_priv *p = m->priv_;
    tgi_onnx_map *map;
    tgi_zip *z = NULL;
    const uint8_t *at = NULL;
    size_t n = 0;
    const int fd = open(archive, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s", strerror(errno));
    TGI_TRY(tgi_onnx_map_fd(p, fd, NULL, &map, err));
    if (!(p->path = tgi_strdup(TGI_TAG_GRAPH, archive)))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
    TGI_TRY(tgi_zip_open(map->data, map->size, &z, err));
    tg_status st = record_bytes(p, z, record, &at, &n, err);
    if (st == TG_OK) /* a stored one is looked at where it lies, and nobody else compares */
        st = tgi_zip_check(z, tgi_zip_find(z, record), err);
    tgi_zip_close(&z);
    if (st == TG_OK)
        st = check_sum(at, n, sha256, err);
    return st == TG_OK ? parse(m, at, n, err) : st;
}

tg_status tgi_onnx_open_record(const char *archive, const char *record, const char *sha256,
                               tgi_onnx_model **out, tgi_err *err)
{
    tgi_onnx_model *m = new_model(err);
    if (!m)
        return TG_E_NOMEM;
    const tg_status st = open_record(archive, record, sha256, m, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "%s: %s", archive, record);
        tgi_onnx_close(&m);
        return st;
    }
    *out = m;
    return TG_OK;
}

const char *tgi_onnx_path(const tgi_onnx_model *m)
{
    return ((const tgi_onnx_priv *)m->priv_)->path;
}

const char *tgi_onnx_file(const tgi_onnx_model *m, int i)
{
    const tgi_onnx_priv *p = m->priv_;
    for (const tgi_onnx_map *f = p->maps; f; f = f->next)
        if (f->location && i-- == 0)
            return f->location;
    return NULL;
}

void tgi_onnx_close(tgi_onnx_model **m)
{
    if (!m || !*m)
        return;
    tgi_onnx_priv *p = (*m)->priv_;
    tgi_onnx_unmap_all(p);
    tgi_onnx_arena_free(&p->arena);
    tgi_free(p->unpacked);
    tgi_free(p->path);
    tgi_free(p);
    tgi_free(*m);
    *m = NULL;
}
