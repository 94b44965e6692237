/* machine_read.c - a machine file, from somebody else's machine or somebody's hand
 * (machine.h): every object is checked against its keys before a figure is taken from it. */
#include "engine/base/arith.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_machine.h"
#include "engine/settings/config.h"
#include "engine/settings/machine.h"
#include "tegula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 1152921504606846976.0 /* an EiB: sums of a few do not overflow */
#define MOST_ROWS 256
/* What the program holds, where a file made by hand does not say. */
#define PROGRAM_BYTES ((uint64_t)4 << 20)

#define TEXT(name)                                                                             \
    {                                                                                          \
        name, TGI_KEY_TEXT, 0, 0, 0                                                            \
    }
#define TEXT_NULL(name)                                                                        \
    {                                                                                          \
        name, TGI_KEY_TEXT_OR_NULL, 0, 0, 0                                                    \
    }
#define BYTES(name)                                                                            \
    {                                                                                          \
        name, TGI_KEY_NUMBER, 0, 0, MOST_BYTES                                                 \
    }
#define BYTES_NULL(name)                                                                       \
    {                                                                                          \
        name, TGI_KEY_NUMBER_OR_NULL, 0, 0, MOST_BYTES                                         \
    }
#define COUNT(name, most)                                                                      \
    {                                                                                          \
        name, TGI_KEY_NUMBER, 0, 0, most                                                       \
    }
#define N(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const tgi_key top_keys[] = {
    {"schema", TGI_KEY_TEXT, 1, 0, 0},
    {"version", TGI_KEY_NUMBER, 1, 1, 1e9},
    {"memory", TGI_KEY_OBJECT, 1, 0, 0},
    {"processors", TGI_KEY_OBJECT, 1, 0, 0},
    {"process", TGI_KEY_OBJECT, 0, 0, 0},
    {"cgroups", TGI_KEY_ARRAY, 0, 0, 0},
    {"disks", TGI_KEY_ARRAY, 0, 0, 0},
    {"gpu_driver", TGI_KEY_OBJECT, 0, 0, 0},
    {"gpus", TGI_KEY_ARRAY, 0, 0, 0},
    {"speeds", TGI_KEY_OBJECT, 0, 0, 0},
    TEXT("event"),
    TEXT("note"),
    TEXT("tegula"),
    TEXT_NULL("system"),
};
static const tgi_key memory_keys[] = {
    BYTES("total_bytes"),      BYTES("available_bytes"),   BYTES("used_bytes"),
    BYTES("swap_total_bytes"), BYTES("swap_free_bytes"),   BYTES_NULL("free_bytes"),
    TEXT_NULL("limited_by"),   BYTES_NULL("rlimit_bytes"), BYTES("margin_bytes"),
    BYTES("budget_bytes"),
};
static const tgi_key process_keys[] = {
    BYTES("anonymous_bytes"), BYTES("file_bytes"),       BYTES("shared_bytes"),
    BYTES("swapped_bytes"),   BYTES("page_table_bytes"), BYTES("virtual_bytes"),
    BYTES("measured_bytes"),
};
static const tgi_key cgroup_keys[] = {
    COUNT("version", 2),        TEXT("path"),
    BYTES_NULL("limit_bytes"),  BYTES("used_bytes"),
    BYTES("reclaimable_bytes"), BYTES_NULL("free_bytes"),
};
static const tgi_key processor_keys[] = {
    TEXT("model"),
    COUNT("online", 65536),
    {"usable", TGI_KEY_NUMBER, 1, 1, 65536},
    {"caches", TGI_KEY_ARRAY, 0, 0, 0},
    {"instruction_sets", TGI_KEY_ARRAY, 1, 0, 0},
    TEXT("best"),
    {"bf16", TGI_KEY_BOOL, 0, 0, 0},
};
static const tgi_key cache_keys[] = {
    COUNT("level", 16),
    TEXT("type"),
    BYTES("bytes"),
    COUNT("shared_by", 65536),
};
static const tgi_key disk_keys[] = {
    TEXT("role"),
    {"path", TGI_KEY_TEXT, 1, 0, 0},
    BYTES("total_bytes"),
    {"free_bytes", TGI_KEY_NUMBER, 1, 0, MOST_BYTES},
    {"in_memory", TGI_KEY_BOOL, 0, 0, 0},
};
static const tgi_key driver_keys[] = {
    TEXT_NULL("library"),
    TEXT_NULL("version"),
    TEXT_NULL("problem"),
};
static const tgi_key gpu_keys[] = {
    COUNT("id", 65536),
    {"name", TGI_KEY_TEXT, 1, 0, 0},
    TEXT("uuid"),
    TEXT("pci"),
    {"compute_capability", TGI_KEY_ARRAY, 0, 0, 0},
    COUNT("multiprocessors", 4096),
    {"total_bytes", TGI_KEY_NUMBER, 1, 0, MOST_BYTES},
    BYTES("free_bytes"),
    BYTES("used_bytes"),
    BYTES("pool_allocated_bytes"),
    BYTES("pool_reserved_bytes"),
    {"processes", TGI_KEY_ARRAY, 0, 0, 0},
    TEXT_NULL("problem"),
};

typedef struct reader {
    const char *what; /* the file, for details */
    int newer;        /* of a later tegula: keys unknown here are skipped */
    tgi_machine *m;
    tgi_err *err;
} reader;

/* ---- Values ------------------------------------------------------------------------------ */

static tg_status check(const reader *r, const tgi_json *object, const char *part,
                       const tgi_key *keys, int n)
{
    char what[1200];
    snprintf(what, sizeof what, "%.1100s%s%s", r->what, part[0] ? ": " : "", part);
    return r->newer ? tgi_config_check_newer(object, keys, n, what, r->err)
                    : tgi_config_check(object, keys, n, what, r->err);
}

/* Each row of an array; `take` gets those that are as they should be. NULL array: none. */
static tg_status each_row(reader *r, const tgi_json *array, const char *part,
                          const tgi_key *keys, int n,
                          void (*take)(reader *r, const tgi_json *row))
{
    char name[48];
    int k = 0;
    for (const tgi_json *row = tgi_json_first(array); row; row = tgi_json_next(row)) {
        if (++k > MOST_ROWS)
            return tgi_fail(r->err, TG_E_FORMAT, "%s: %s: more than %d rows", r->what, part,
                            MOST_ROWS);
        snprintf(name, sizeof name, "%s: row %d", part, k);
        TGI_TRY(check(r, row, name, keys, n));
        take(r, row);
    }
    return TG_OK;
}

/* 1 and the bytes when the member is there and no null; checked to be in range. */
static int bytes_of(const tgi_json *object, const char *key, uint64_t *out)
{
    const tgi_json *v = tgi_json_get(object, key);
    int64_t whole = 0;
    double number = 0;
    if (tgi_json_int(v, &whole) && whole >= 0) /* all digits of it */
        *out = (uint64_t)whole;
    else if (tgi_json_num(v, &number))
        *out = (uint64_t)number;
    else
        return 0;
    return 1;
}

static void text_of(const tgi_json *object, const char *key, char *out, size_t cap)
{
    const char *text = "";
    (void)tgi_json_str(tgi_json_get(object, key), &text);
    snprintf(out, cap, "%s", text);
}

/* ---- Parts ------------------------------------------------------------------------------- */

static void take_nothing(reader *r, const tgi_json *row)
{
    (void)r, (void)row;
}

static void take_cgroup(reader *r, const tgi_json *row)
{
    uint64_t room;
    if (!bytes_of(row, "free_bytes", &room) && !bytes_of(row, "limit_bytes", &room))
        return;
    if (room >= r->m->free_bytes)
        return;
    r->m->free_bytes = room;
    snprintf(r->m->limited_by, sizeof r->m->limited_by, "a cgroup of %.200s", r->what);
}

static void take_disk(reader *r, const tgi_json *row)
{
    tgi_machine *m = r->m;
    bool in_memory = false;
    if (m->n_disks == TGI_MACHINE_DISKS)
        return;
    tgi_machine_disk *d = &m->disk[m->n_disks++];
    text_of(row, "role", d->role, sizeof d->role);
    text_of(row, "path", d->path, sizeof d->path);
    (void)bytes_of(row, "free_bytes", &d->free_bytes);
    (void)tgi_json_bool(tgi_json_get(row, "in_memory"), &in_memory);
    d->in_memory = in_memory;
}

/* [major, minor]; anything else says nothing. */
static void take_capability(const tgi_json *major, tgi_machine_gpu *g)
{
    int64_t a = 0, b = 0;
    if (major && tgi_json_int(major, &a) && tgi_json_int(tgi_json_next(major), &b) && a > 0 &&
        a < 100 && b >= 0 && b < 10) {
        g->major = (int)a;
        g->minor = (int)b;
    }
}

/* Without free_bytes, as by hand, all of it is free. */
static void take_gpu(reader *r, const tgi_json *row)
{
    tgi_machine *m = r->m;
    tgi_machine_gpu g = {.total_bytes = 0};
    double number = 0;
    (void)tgi_json_num(tgi_json_get(row, "multiprocessors"), &number);
    (void)bytes_of(row, "total_bytes", &g.total_bytes);
    if (!g.total_bytes || m->n_gpus == TGI_MACHINE_GPUS)
        return; /* it could not be read there */
    if (!bytes_of(row, "free_bytes", &g.free_bytes) || g.free_bytes > g.total_bytes)
        g.free_bytes = g.total_bytes;
    text_of(row, "name", g.name, sizeof g.name);
    take_capability(tgi_json_first(tgi_json_get(row, "compute_capability")), &g);
    g.multiprocessors = (int)number;
    m->gpu[m->n_gpus++] = g;
}

/* After the cgroups, which may say less than the machine. */
static tg_status read_memory(reader *r, const tgi_json *doc)
{
    tgi_machine *m = r->m;
    const tgi_json *memory = tgi_json_get(doc, "memory");
    uint64_t given = 0;
    m->own_bytes = PROGRAM_BYTES;
    TGI_TRY(check(r, memory, "memory", memory_keys, N(memory_keys)));
    if (tgi_json_get(doc, "process")) {
        TGI_TRY(
            check(r, tgi_json_get(doc, "process"), "process", process_keys, N(process_keys)));
        (void)bytes_of(tgi_json_get(doc, "process"), "measured_bytes", &m->own_bytes);
    }
    const int there =
        bytes_of(memory, "available_bytes", &given) || bytes_of(memory, "total_bytes", &given);
    m->free_bytes = there ? given : UINT64_MAX;
    snprintf(m->limited_by, sizeof m->limited_by, "%.220s", r->what);
    TGI_TRY(each_row(r, tgi_json_get(doc, "cgroups"), "cgroups", cgroup_keys, N(cgroup_keys),
                     take_cgroup));
    if (bytes_of(memory, "free_bytes", &given)) {
        m->free_bytes = given;
        if (tgi_json_get(memory, "limited_by"))
            text_of(memory, "limited_by", m->limited_by, sizeof m->limited_by);
    }
    const int budget = bytes_of(memory, "budget_bytes", &m->budget_bytes);
    if (m->free_bytes == UINT64_MAX && !budget)
        return tgi_fail(r->err, TG_E_FORMAT,
                        "%s: memory: none of \"budget_bytes\", \"free_bytes\", "
                        "\"available_bytes\" and \"total_bytes\" is there",
                        r->what);
    if (m->free_bytes == UINT64_MAX)
        m->free_bytes = m->budget_bytes;
    if (!budget)
        m->budget_bytes = tgi_budget_of(m->free_bytes, m->own_bytes);
    if (!bytes_of(memory, "margin_bytes", &m->margin_bytes))
        m->margin_bytes = tgi_margin_of(m->free_bytes, m->own_bytes);
    return TG_OK;
}

/* Sets by name; names of sets that kernels are not written for yet are skipped. */
static tg_status read_processors(reader *r, const tgi_json *object)
{
    tgi_machine *m = r->m;
    uint64_t usable = 0;
    bool bf16 = false;
    TGI_TRY(check(r, object, "processors", processor_keys, N(processor_keys)));
    TGI_TRY(each_row(r, tgi_json_get(object, "caches"), "caches", cache_keys, N(cache_keys),
                     take_nothing));
    text_of(object, "model", m->processor, sizeof m->processor);
    (void)bytes_of(object, "usable", &usable);
    m->processors = usable < 1024 ? (int)usable : 1024; /* most that --threads takes */
    for (const tgi_json *v = tgi_json_first(tgi_json_get(object, "instruction_sets")); v;
         v = tgi_json_next(v)) {
        const char *name = NULL;
        tgi_isa isa;
        if (!tgi_json_str(v, &name))
            return tgi_fail(r->err, TG_E_FORMAT,
                            "%s: processors: \"instruction_sets\" is a list of names", r->what);
        if (tgi_isa_parse(name, &isa)) {
            m->sets |= 1u << isa;
            m->isa = isa > m->isa ? isa : m->isa;
        }
    }
    if (!m->sets)
        return tgi_fail(r->err, TG_E_FORMAT,
                        "%s: processors: none of \"instruction_sets\" is portable, avx2 or "
                        "avx512",
                        r->what);
    (void)tgi_json_bool(tgi_json_get(object, "bf16"), &bf16);
    m->bf16 = bf16 && m->isa == TGI_ISA_AVX512;
    return TG_OK;
}

static tg_status read_speeds(reader *r, const tgi_json *object)
{
    tgi_machine *m = r->m;
    if (!object)
        return TG_OK;
    const tg_status st = tgi_speeds_read(object, &m->speeds, r->err);
    if (st != TG_OK)
        return tgi_err_prefix(r->err, "%s: speeds", r->what), st;
    m->calibrated = m->speeds.n_kernels > 0 && strcmp(m->speeds.processor, m->processor) == 0;
    return TG_OK;
}

/* ---- The file ---------------------------------------------------------------------------- */

/* 1: version `text`, "1.10.2", is later than this program's. */
static int is_newer(const char *text)
{
    const char *own = TG_VERSION_STRING;
    for (int part = 0; part < 3; part++) {
        char *end, *own_end;
        const long a = strtol(text, &end, 10), b = strtol(own, &own_end, 10);
        if (a != b || end == text)
            return a > b;
        text = end + (*end == '.');
        own = own_end + (*own_end == '.');
    }
    return 0;
}

/* Schema, version and age, before anything else is believed. */
static tg_status read_head(reader *r, const tgi_json *doc)
{
    const char *schema = NULL, *made_by = NULL;
    int64_t version = 0;
    if (!tgi_json_is_object(doc) || !tgi_json_str(tgi_json_get(doc, "schema"), &schema) ||
        strcmp(schema, TGI_MACHINE_SCHEMA) != 0)
        return tgi_fail(r->err, TG_E_FORMAT,
                        "%s: no machine file: \"schema\" is not \"%s\"; tegula mem --json "
                        "writes one",
                        r->what, TGI_MACHINE_SCHEMA);
    if (!tgi_json_int(tgi_json_get(doc, "version"), &version) || version < 1)
        return tgi_fail(r->err, TG_E_FORMAT, "%s: \"version\" must be a whole number from 1",
                        r->what);
    if (version > TGI_MACHINE_VERSION)
        return tgi_fail(r->err, TG_E_FORMAT,
                        "%s: a machine file of version %lld; this tegula reads version %d",
                        r->what, (long long)version, TGI_MACHINE_VERSION);
    r->newer = tgi_json_str(tgi_json_get(doc, "tegula"), &made_by) && is_newer(made_by);
    return check(r, doc, "", top_keys, N(top_keys));
}

static tg_status read_all(reader *r, const tgi_json *doc)
{
    TGI_TRY(read_head(r, doc));
    TGI_TRY(read_memory(r, doc));
    TGI_TRY(read_processors(r, tgi_json_get(doc, "processors")));
    TGI_TRY(
        each_row(r, tgi_json_get(doc, "disks"), "disks", disk_keys, N(disk_keys), take_disk));
    if (tgi_json_get(doc, "gpu_driver"))
        TGI_TRY(check(r, tgi_json_get(doc, "gpu_driver"), "gpu_driver", driver_keys,
                      N(driver_keys)));
    TGI_TRY(each_row(r, tgi_json_get(doc, "gpus"), "gpus", gpu_keys, N(gpu_keys), take_gpu));
    return read_speeds(r, tgi_json_get(doc, "speeds"));
}

tg_status tgi_machine_read(const tgi_json *doc, const char *what, tgi_machine *out,
                           tgi_err *err)
{
    reader r = {.what = what, .m = out, .err = err};
    *out = (tgi_machine){.here = 0};
    snprintf(out->name, sizeof out->name, "%s", what);
    return read_all(&r, doc);
}

tg_status tgi_machine_parse(const char *text, size_t n, const char *what, tgi_machine *out,
                            tgi_err *err)
{
    tgi_json *doc = NULL;
    TGI_TRY(tgi_json_parse(text, n, what, &doc, err));
    const tg_status st = tgi_machine_read(doc, what, out, err);
    tgi_json_free(&doc);
    return st;
}

tg_status tgi_machine_load(const char *path, tgi_machine *out, tgi_err *err)
{
    tgi_json *doc = NULL;
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = tgi_machine_read(doc, path, out, err);
    tgi_json_free(&doc);
    return st;
}
