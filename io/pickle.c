/* pickle.c - the machine: a stack, marks on it, a memo, and opcodes that push, pop and collect.
 *
 * See pickle.h. Each opcode is one line of a table: what may follow it in the file, and the function that does it. */
#include "io/pickle.h"

#include "engine/base/mem.h"
#include "io/bytes.h"

#include <string.h>

#define MAX_STACK ((size_t)1 << 18)
#define MAX_MEMO ((size_t)1 << 18)
#define MAX_MARKS 512

typedef struct machine {
    tgi_cursor in;
    tgi_onnx_arena *arena;
    tgi_pickle **stack, **memo;
    size_t n_stack, cap_stack, n_memo, cap_memo;
    uint32_t mark[MAX_MARKS];
    int n_mark;
    const tgi_pickle_storage *storages; /* the last one */
    uint8_t line[256]; /* of an opcode in the table, from 1 on; 0: it is not there */
    size_t op_at;      /* of the opcode at work */
    bool stopped;
    tgi_err *err;
} machine;

static tg_status why(const tgi_err *err)
{
    return err && err->code != TG_OK ? err->code : TG_E_FORMAT;
}

static tg_status bad(machine *m, const char *what)
{
    return tgi_fail(m->err, TG_E_FORMAT, "the pickle is damaged at byte %zu: %s", m->op_at,
                    what);
}

/* ---- Values ------------------------------------------------------------------------------ */

tgi_pickle *tgi_pickle_new(tgi_onnx_arena *a, tgi_pickle_kind kind, tgi_err *err)
{
    tgi_pickle *v = tgi_onnx_alloc(a, 1, sizeof *v, err);
    if (v)
        v->kind = kind;
    return v;
}

tg_status tgi_pickle_append(tgi_onnx_arena *a, tgi_pickle *to, tgi_pickle *key,
                            tgi_pickle *value, tgi_err *err)
{
    tgi_pickle_item *item = tgi_onnx_alloc(a, 1, sizeof *item, err);
    if (!item)
        return why(err);
    *item = (tgi_pickle_item){.key = key, .value = value};
    if (to->u.items.last)
        to->u.items.last->next = item;
    else
        to->u.items.first = item;
    to->u.items.last = item;
    to->n++;
    return TG_OK;
}

int tgi_pickle_is_text(const tgi_pickle *v, const char *text)
{
    return v && v->kind == TGI_PICKLE_TEXT && v->n == strlen(text) &&
           memcmp(v->u.text, text, v->n) == 0;
}

const tgi_pickle *tgi_pickle_get(const tgi_pickle *v, const char *key)
{
    if (v->kind != TGI_PICKLE_DICT)
        return NULL;
    for (const tgi_pickle_item *i = v->u.items.first; i; i = i->next)
        if (tgi_pickle_is_text(i->key, key))
            return i->value;
    return NULL;
}

/* ---- Stack and memo ---------------------------------------------------------------------- */

static tg_status grow(machine *m, tgi_pickle ***array, size_t need, size_t *cap, size_t max)
{
    size_t cap2 = *cap ? *cap : 256;
    if (need <= *cap)
        return TG_OK;
    if (need > max)
        return tgi_fail(m->err, TG_E_FORMAT, "the pickle has more than %zu values at once",
                        max);
    while (cap2 < need)
        cap2 *= 2;
    tgi_pickle **more = tgi_realloc_n(TGI_TAG_IO, *array, cap2, sizeof(tgi_pickle *));
    if (!more)
        return tgi_fail(m->err, TG_E_NOMEM, "no memory for %zu values of a pickle", cap2);
    memset(more + *cap, 0, (cap2 - *cap) * sizeof(tgi_pickle *));
    *array = more;
    *cap = cap2;
    return TG_OK;
}

static tg_status push(machine *m, tgi_pickle *v)
{
    if (!v)
        return why(m->err);
    TGI_TRY(grow(m, &m->stack, m->n_stack + 1, &m->cap_stack, MAX_STACK));
    m->stack[m->n_stack++] = v;
    return TG_OK;
}

static tg_status push_new(machine *m, tgi_pickle_kind kind)
{
    return push(m, tgi_pickle_new(m->arena, kind, m->err));
}

static tg_status push_int(machine *m, tgi_pickle_kind kind, int64_t value)
{
    TGI_TRY(push_new(m, kind));
    m->stack[m->n_stack - 1]->u.integer = value;
    return TG_OK;
}

static tg_status push_text(machine *m, tgi_pickle_kind kind, uint64_t n)
{
    const uint8_t *p = n <= TGI_PICKLE_BYTES ? tgi_cursor_take(&m->in, (size_t)n) : NULL;
    if (!p)
        return bad(m, "a text goes past the end");
    TGI_TRY(push_new(m, kind));
    m->stack[m->n_stack - 1]->u.text = (const char *)p;
    m->stack[m->n_stack - 1]->n = (uint32_t)n;
    return TG_OK;
}

/* So many values can be taken: above the last mark. */
static bool has(const machine *m, size_t n)
{
    const size_t floor = m->n_mark ? m->mark[m->n_mark - 1] : 0;
    return m->n_stack - floor >= n;
}

static tgi_pickle *top(const machine *m)
{
    return m->stack[m->n_stack - 1];
}

static tg_status put(machine *m, size_t place)
{
    if (!has(m, 1))
        return bad(m, "nothing to keep");
    TGI_TRY(grow(m, &m->memo, place + 1, &m->cap_memo, MAX_MEMO));
    m->memo[place] = top(m);
    if (place >= m->n_memo)
        m->n_memo = place + 1;
    return TG_OK;
}

static tg_status get(machine *m, size_t place)
{
    if (place >= m->n_memo || !m->memo[place])
        return bad(m, "a value that was not kept");
    return push(m, m->memo[place]);
}

/* How many values are above the last mark, which goes. */
static tg_status since_mark(machine *m, size_t *n)
{
    if (!m->n_mark)
        return bad(m, "no mark");
    *n = m->n_stack - m->mark[--m->n_mark];
    return TG_OK;
}

/* ---- Opcodes ----------------------------------------------------------------------------- */

static tg_status op_proto(machine *m, uint64_t v)
{
    return v >= 2 && v <= 5 ? TG_OK
                            : tgi_fail(m->err, TG_E_FORMAT,
                                       "a pickle of protocol %d; 2 to 5 are read", (int)v);
}

static tg_status op_frame(machine *m, uint64_t v)
{
    return v <= m->in.n - m->in.at ? TG_OK : bad(m, "a frame goes past the end");
}

static tg_status op_stop(machine *m, uint64_t v)
{
    (void)v;
    if (m->n_stack != 1 || m->n_mark)
        return bad(m, "it ends with more or less than one value");
    m->stopped = true;
    return TG_OK;
}

static tg_status op_mark(machine *m, uint64_t v)
{
    (void)v;
    if (m->n_mark == MAX_MARKS)
        return bad(m, "values nest too deep");
    m->mark[m->n_mark++] = (uint32_t)m->n_stack;
    return TG_OK;
}

static tg_status op_none(machine *m, uint64_t v)
{
    (void)v;
    return push_new(m, TGI_PICKLE_NONE);
}

static tg_status op_true(machine *m, uint64_t v)
{
    (void)v;
    return push_int(m, TGI_PICKLE_BOOL, 1);
}

static tg_status op_false(machine *m, uint64_t v)
{
    (void)v;
    return push_int(m, TGI_PICKLE_BOOL, 0);
}

static tg_status op_int(machine *m, uint64_t v)
{
    return push_int(m, TGI_PICKLE_INT, (int64_t)v);
}

static tg_status op_int32(machine *m, uint64_t v)
{
    return push_int(m, TGI_PICKLE_INT, (int32_t)(uint32_t)v);
}

/* An integer of any length, two's complement. */
static tg_status op_long(machine *m, uint64_t n)
{
    uint64_t v = 0;
    if (n > 8)
        return push_text(m, TGI_PICKLE_BYTES_OF, n);
    const uint8_t *p = tgi_cursor_take(&m->in, (size_t)n);
    if (!p)
        return bad(m, "an integer goes past the end");
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    if (n && n < 8 && p[n - 1] & 0x80)
        v |= UINT64_MAX << 8 * n;
    return push_int(m, TGI_PICKLE_INT, (int64_t)v);
}

static tg_status op_float(machine *m, uint64_t v)
{
    (void)v;
    return push_new(m, TGI_PICKLE_INERT);
}

static tg_status op_text(machine *m, uint64_t n)
{
    return push_text(m, TGI_PICKLE_TEXT, n);
}

static tg_status op_bytes(machine *m, uint64_t n)
{
    return push_text(m, TGI_PICKLE_BYTES_OF, n);
}

static tg_status op_dict(machine *m, uint64_t v)
{
    (void)v;
    return push_new(m, TGI_PICKLE_DICT);
}

static tg_status op_list(machine *m, uint64_t v)
{
    (void)v;
    return push_new(m, TGI_PICKLE_LIST);
}

/* A tuple of the last n values. */
static tg_status tuple_of(machine *m, size_t n)
{
    tgi_pickle *t = tgi_pickle_new(m->arena, TGI_PICKLE_TUPLE, m->err);
    if (!t)
        return why(m->err);
    for (size_t i = m->n_stack - n; i < m->n_stack; i++)
        TGI_TRY(tgi_pickle_append(m->arena, t, NULL, m->stack[i], m->err));
    m->n_stack -= n;
    return push(m, t);
}

static tg_status op_tuple(machine *m, uint64_t v)
{
    size_t n = 0;
    (void)v;
    TGI_TRY(since_mark(m, &n));
    return tuple_of(m, n);
}

static tg_status small_tuple(machine *m, size_t n)
{
    return has(m, n) ? tuple_of(m, n) : bad(m, "a tuple of values that are not there");
}

static tg_status op_tuple0(machine *m, uint64_t v)
{
    (void)v;
    return tuple_of(m, 0);
}

static tg_status op_tuple1(machine *m, uint64_t v)
{
    (void)v;
    return small_tuple(m, 1);
}

static tg_status op_tuple2(machine *m, uint64_t v)
{
    (void)v;
    return small_tuple(m, 2);
}

static tg_status op_tuple3(machine *m, uint64_t v)
{
    (void)v;
    return small_tuple(m, 3);
}

/* The last n values go into the list below them, or as pairs into the dictionary. */
static tg_status collect(machine *m, tgi_pickle_kind kind, size_t n)
{
    const size_t step = kind == TGI_PICKLE_DICT ? 2 : 1;
    if (!has(m, n + 1) || n % step)
        return bad(m, "items that are not there");
    tgi_pickle **item = m->stack + m->n_stack - n, *to = item[-1];
    if (to->kind != kind)
        return bad(m, "items for what is no list or dictionary");
    for (size_t i = 0; i < n; i += step)
        TGI_TRY(tgi_pickle_append(m->arena, to, step == 2 ? item[i] : NULL, item[i + step - 1],
                                  m->err));
    m->n_stack -= n;
    return TG_OK;
}

static tg_status collect_all(machine *m, tgi_pickle_kind kind)
{
    size_t n = 0;
    TGI_TRY(since_mark(m, &n));
    return collect(m, kind, n);
}

static tg_status op_append(machine *m, uint64_t v)
{
    (void)v;
    return collect(m, TGI_PICKLE_LIST, 1);
}

static tg_status op_appends(machine *m, uint64_t v)
{
    (void)v;
    return collect_all(m, TGI_PICKLE_LIST);
}

static tg_status op_setitem(machine *m, uint64_t v)
{
    (void)v;
    return collect(m, TGI_PICKLE_DICT, 2);
}

static tg_status op_setitems(machine *m, uint64_t v)
{
    (void)v;
    return collect_all(m, TGI_PICKLE_DICT);
}

static tg_status push_name(machine *m, const char *module, size_t n_module, const char *name,
                           size_t n_name)
{
    const struct tgi_pickle_name *found =
        tgi_pickle_find_name(module, n_module, name, n_name, m->err);
    if (!found)
        return why(m->err);
    TGI_TRY(push_new(m, TGI_PICKLE_NAME));
    top(m)->u.name = found;
    return TG_OK;
}

/* "module\nname\n" */
static tg_status op_global(machine *m, uint64_t v)
{
    const char *word[2];
    size_t n[2];
    (void)v;
    for (int i = 0; i < 2; i++) {
        const uint8_t *from = m->in.p + m->in.at;
        const uint8_t *end = memchr(from, '\n', m->in.n - m->in.at);
        if (!end)
            return bad(m, "a name goes past the end");
        word[i] = (const char *)from;
        n[i] = (size_t)(end - from);
        m->in.at += n[i] + 1;
    }
    return push_name(m, word[0], n[0], word[1], n[1]);
}

static tg_status op_stack_global(machine *m, uint64_t v)
{
    (void)v;
    if (!has(m, 2))
        return bad(m, "a name that is not there");
    const tgi_pickle *module = m->stack[m->n_stack - 2], *name = top(m);
    if (module->kind != TGI_PICKLE_TEXT || name->kind != TGI_PICKLE_TEXT)
        return bad(m, "a name that is no text");
    m->n_stack -= 2;
    return push_name(m, module->u.text, module->n, name->u.text, name->n);
}

/* name, arguments: the two below. */
static tg_status take_call(machine *m, const struct tgi_pickle_name **name, tgi_pickle **args)
{
    if (!has(m, 2))
        return bad(m, "a call without arguments");
    const tgi_pickle *f = m->stack[m->n_stack - 2];
    *args = top(m);
    if (f->kind != TGI_PICKLE_NAME || (*args)->kind != TGI_PICKLE_TUPLE)
        return bad(m, "a call of what is no name");
    *name = f->u.name;
    m->n_stack -= 2;
    return TG_OK;
}

static tg_status op_reduce(machine *m, uint64_t v)
{
    const struct tgi_pickle_name *name = NULL;
    tgi_pickle *args = NULL, *out;
    (void)v;
    TGI_TRY(take_call(m, &name, &args));
    TGI_TRY(tgi_pickle_call(m->arena, name, args, &out, m->err));
    return push(m, out);
}

static tg_status op_newobj(machine *m, uint64_t v)
{
    const struct tgi_pickle_name *name = NULL;
    tgi_pickle *args = NULL, *out;
    (void)v;
    TGI_TRY(take_call(m, &name, &args));
    TGI_TRY(tgi_pickle_object(m->arena, name, args, &out, m->err));
    return push(m, out);
}

/* A state for the value below: attributes of an object; what torch notes of a dictionary or tensor is not asked for. */
static tg_status op_build(machine *m, uint64_t v)
{
    (void)v;
    if (!has(m, 2))
        return bad(m, "a state without a value");
    const tgi_pickle *state = top(m);
    tgi_pickle *to = m->stack[m->n_stack - 2];
    m->n_stack--;
    if (to->kind == TGI_PICKLE_OBJECT) {
        if (to->n || state == to)
            return bad(m, "an object with two states");
        if (state->kind == TGI_PICKLE_DICT) {
            to->u = state->u;
            to->n = state->n;
        }
        return TG_OK;
    }
    return to->kind == TGI_PICKLE_DICT || to->kind == TGI_PICKLE_TENSOR ||
                   to->kind == TGI_PICKLE_INERT
               ? TG_OK
               : bad(m, "a state for what has none");
}

static tg_status op_persid(machine *m, uint64_t v)
{
    tgi_pickle *out;
    (void)v;
    if (!has(m, 1))
        return bad(m, "no persistent id");
    const tgi_pickle *id = m->stack[--m->n_stack];
    TGI_TRY(tgi_pickle_storage_of(m->arena, id, m->storages, &out, m->err));
    m->storages = out->u.storage;
    return push(m, out);
}

static tg_status op_put(machine *m, uint64_t v)
{
    return put(m, (size_t)v);
}

static tg_status op_get(machine *m, uint64_t v)
{
    return get(m, (size_t)v);
}

static tg_status op_memoize(machine *m, uint64_t v)
{
    (void)v;
    return put(m, m->n_memo);
}

/* ---- The table --------------------------------------------------------------------------- */

/* `n` bytes behind the opcode are a little-endian number. */
static const struct opcode {
    uint8_t code, n;
    tg_status (*run)(machine *m, uint64_t v);
} opcodes[] = {
    {0x80, 1, op_proto},  {0x95, 8, op_frame},        {'.', 0, op_stop},
    {'(', 0, op_mark},    {'N', 0, op_none},          {0x88, 0, op_true},
    {0x89, 0, op_false},  {'J', 4, op_int32},         {'K', 1, op_int},
    {'M', 2, op_int},     {0x8a, 1, op_long},         {'G', 8, op_float},
    {'X', 4, op_text},    {0x8c, 1, op_text},         {0x8d, 8, op_text},
    {'T', 4, op_text},    {'U', 1, op_text},          {'B', 4, op_bytes},
    {'C', 1, op_bytes},   {')', 0, op_tuple0},        {0x85, 0, op_tuple1},
    {0x86, 0, op_tuple2}, {0x87, 0, op_tuple3},       {'t', 0, op_tuple},
    {']', 0, op_list},    {'a', 0, op_append},        {'e', 0, op_appends},
    {'}', 0, op_dict},    {'s', 0, op_setitem},       {'u', 0, op_setitems},
    {'c', 0, op_global},  {0x93, 0, op_stack_global}, {'R', 0, op_reduce},
    {0x81, 0, op_newobj}, {'b', 0, op_build},         {'Q', 0, op_persid},
    {'q', 1, op_put},     {'r', 4, op_put},           {0x94, 0, op_memoize},
    {'h', 1, op_get},     {'j', 4, op_get},
};

#define N_OPCODES (sizeof opcodes / sizeof opcodes[0])

static tg_status step(machine *m)
{
    uint64_t v = 0;
    m->op_at = m->in.at;
    const uint8_t code = tgi_cursor_u8(&m->in);
    const struct opcode *op = m->line[code] ? &opcodes[m->line[code] - 1] : NULL;
    if (m->in.failed)
        return bad(m, "it ends without STOP");
    if (!op)
        return tgi_fail(m->err, TG_E_FORMAT,
                        "the pickle has opcode 0x%02x at byte %zu, which no tensor needs: "
                        "nothing of it was run",
                        code, m->op_at);
    const uint8_t *p = tgi_cursor_take(&m->in, op->n);
    if (!p)
        return bad(m, "it ends inside an opcode");
    for (int i = 0; i < op->n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return op->run(m, v);
}

tg_status tgi_pickle_read(const uint8_t *bytes, size_t n, tgi_onnx_arena *arena,
                          tgi_pickled *out, tgi_err *err)
{
    machine *m = tgi_calloc(TGI_TAG_IO, 1, sizeof *m);
    if (!m)
        return tgi_fail(err, TG_E_NOMEM, "no memory to read a pickle");
    m->in = (tgi_cursor){.p = bytes, .n = n < TGI_PICKLE_BYTES ? n : TGI_PICKLE_BYTES};
    m->arena = arena;
    m->err = err;
    for (size_t i = 0; i < N_OPCODES; i++)
        m->line[opcodes[i].code] = (uint8_t)(i + 1);
    tg_status st = TG_OK;
    while (st == TG_OK && !m->stopped)
        st = step(m);
    if (st == TG_OK)
        *out = (tgi_pickled){m->stack[0], m->storages, m->in.at};
    tgi_free(m->stack);
    tgi_free(m->memo);
    tgi_free(m);
    return st;
}
