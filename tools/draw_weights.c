/* draw_weights.c - tegula-draw-weights: files of weights in every form in which networks are published, drawn from a table.
 *
 *     tegula-draw-weights [--form zip|legacy|safetensors] [--model raft|rfc|gen] TABLE.csv DIR
 *
 * The table names each tensor with its type, shape, formula and CRC-32. The file of each model gets its published name:
 * raft-things, recurrent_flow_completion and ProPainter, with .pth or .safetensors. Names of raft begin with "module.", as
 * they do in the published file, and what one module has under two names is one storage there.
 *
 * zip is what torch.save writes today: stored records that begin at multiples of 64 bytes, sizes behind them. legacy is what it
 * wrote before version 1.6: five pickles, then the storages. Each tensor is drawn, checked and written before the next one.
 *
 * Sources: RECIPE.md beside the table for the numbers (FNV-1a, splitmix64); torch/serialization.py and caffe2/serialize for
 * both forms of .pth; pickletools.py for the opcodes; PKWARE's APPNOTE.TXT; the README of safetensors. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TENSORS 512
#define MAX_RANK 5
#define NAME 160

typedef struct tensor {
    char model[8], name[NAME], kind[16];
    int is_i64, rank, n_const;
    int64_t dim[MAX_RANK];
    size_t count, bytes;
    float offset, a, constant[4];
    uint32_t crc;
    int storage; /* of the tensor with that number */
} tensor;

static const struct {
    const char *key, *file, *prefix;
} models[] = {{"raft", "raft-things", "module."},
              {"rfc", "recurrent_flow_completion", ""},
              {"gen", "ProPainter", ""}};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "tegula-draw-weights: %s: %s\n", what, why);
    return 1;
}

/* ---- The table --------------------------------------------------------------------------- */

static int read_shape(const char *s, tensor *t)
{
    t->count = 1;
    while (strcmp(s, "scalar") != 0) {
        char *end;
        const long long v = strtoll(s, &end, 10);
        if (end == s || v < 1 || v > 1 << 20 || t->rank == MAX_RANK)
            return 0;
        t->dim[t->rank++] = v;
        t->count *= (size_t)v;
        if (*end != 'x')
            break;
        s = end + 1;
    }
    t->bytes = t->count * (t->is_i64 ? 8 : 4);
    return t->count <= (size_t)1 << 26;
}

/* model,tensor,dtype,shape,kind,offset,a,a_decimal,crc32 */
static int read_row(char *line, tensor *t)
{
    char *col[9] = {line};
    line[strcspn(line, "\r\n")] = 0;
    for (int n = 1; n < 9; n++) {
        char *comma = strchr(col[n - 1], ',');
        if (!comma)
            return 0;
        *comma = 0;
        col[n] = comma + 1;
    }
    if (strlen(col[0]) >= sizeof t->model || strlen(col[1]) >= sizeof t->name ||
        strlen(col[4]) >= sizeof t->kind)
        return 0;
    *t = (tensor){.is_i64 = strcmp(col[2], "int64") == 0,
                  .offset = strtof(col[5], NULL),
                  .a = strtof(col[6], NULL),
                  .crc = (uint32_t)strtoul(col[8], NULL, 16)};
    memcpy(t->model, col[0], strlen(col[0]) + 1);
    memcpy(t->name, col[1], strlen(col[1]) + 1);
    memcpy(t->kind, col[4], strlen(col[4]) + 1);
    for (char *p = col[5]; t->n_const < 4; p++) {
        t->constant[t->n_const++] = strtof(p, &p);
        if (*p != ';')
            break;
    }
    return read_shape(col[3], t);
}

/* The rows of one model; -1 where the file is no such table. */
static int read_table(const char *path, const char *model, tensor *t)
{
    char line[512];
    int n = 0, good = 1;
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f) || strncmp(line, "model,tensor,dtype,", 19) != 0)
        good = 0;
    while (good && fgets(line, sizeof line, f)) {
        good = n < MAX_TENSORS && read_row(line, &t[n]);
        if (good && strcmp(t[n].model, model) == 0)
            n++;
    }
    if (f)
        fclose(f);
    return good ? n : -1;
}

/* ---- Numbers ----------------------------------------------------------------------------- */

/* cnet.layerK.0.norm3 is the module that is called downsample.1 too. */
static void name_of_module(const tensor *t, char *buf)
{
    int k;
    snprintf(buf, NAME, "%s", t->name);
    if (strcmp(t->model, "raft") == 0 && sscanf(t->name, "cnet.layer%d.0.norm3.", &k) == 1 &&
        (k == 2 || k == 3) && strstr(t->name, ".norm3."))
        snprintf(buf, NAME, "cnet.layer%d.0.downsample.1.%.100s", k, strrchr(t->name, '.') + 1);
}

static uint64_t seed_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
    return h;
}

/* -1 to 1, a multiple of 2^-23. */
static float unit(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

static void put(uint8_t *dst, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        dst[i] = (uint8_t)(v >> 8 * i);
}

/* The keys that a window of 5x9 sees beside its own, of four windows around it. */
static int rolled(int64_t *out)
{
    int n = 0;
    for (int q = 0; q < 4; q++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 9; x++) {
                const int row = q < 2 ? y < 2 : y >= 3, column = q % 2 == 0 ? x < 4 : x >= 5;
                if (!row || !column)
                    out[n++] = q * 45 + y * 9 + x;
            }
    return n;
}

static int draw_numbers(const tensor *t, uint8_t *dst)
{
    char name[NAME];
    int64_t index[180];
    const int is_abs = strcmp(t->kind, "abs") == 0, is_const = strcmp(t->kind, "const") == 0;
    name_of_module(t, name);
    const uint64_t seed = seed_of(name);
    if (t->is_i64) {
        const int list = strcmp(t->kind, "rolled_i64") == 0, n = list ? rolled(index) : 0;
        if (list && (size_t)n != t->count)
            return 0;
        for (size_t i = 0; i < t->count; i++)
            put(dst + 8 * i, list ? (uint64_t)index[i] : 0, 8);
        return 1;
    }
    if (is_const && (size_t)t->n_const < t->count)
        return 0;
    for (size_t i = 0; i < t->count; i++) {
        const float u = unit(seed, i), p = t->a * (is_abs ? fabsf(u) : u);
        const float v = is_const ? t->constant[i] : t->offset != 0 ? t->offset + p : p;
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        put(dst + 4 * i, bits, 4);
    }
    return 1;
}

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    static uint32_t table[256];
    uint32_t c = 0xffffffffu;
    for (uint32_t i = 0; i < 256 && !table[255]; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++)
            v = v & 1 ? 0xedb88320u ^ v >> 1 : v >> 1;
        table[i] = v;
    }
    for (size_t i = 0; i < n; i++)
        c = table[(c ^ p[i]) & 255] ^ c >> 8;
    return ~c;
}

/* NULL: no memory, or not what the table says. */
static uint8_t *draw(const tensor *t)
{
    uint8_t *bytes = malloc(t->bytes);
    if (bytes && draw_numbers(t, bytes) && crc_of(bytes, t->bytes) == t->crc)
        return bytes;
    fail(t->name, bytes ? "its numbers are not those of the table" : "no memory");
    free(bytes);
    return NULL;
}

/* ---- Bytes that grow --------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t *p;
    size_t n, cap;
    int failed;
} bytes;

static void add(bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        const size_t cap = 2 * (b->n + n) + 4096;
        uint8_t *more = realloc(b->p, cap);
        b->failed |= !more;
        if (!more)
            return;
        b->p = more;
        b->cap = cap;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void add_number(bytes *b, uint64_t v, int n)
{
    uint8_t raw[8];
    put(raw, v, n);
    add(b, raw, (size_t)n);
}

static void add_text(bytes *b, const char *s)
{
    add(b, s, strlen(s));
}

/* ---- Pickles ----------------------------------------------------------------------------- */

typedef struct pickle {
    bytes out;
    uint32_t n_memo;
    char known[16][64]; /* what comes again, and its place in the memo */
    uint32_t place[16];
    int n_known;
} pickle;

static void op(pickle *p, char c)
{
    add(&p->out, &c, 1);
}

static uint32_t memoize(pickle *p)
{
    op(p, p->n_memo < 256 ? 'q' : 'r');
    add_number(&p->out, p->n_memo, p->n_memo < 256 ? 1 : 4);
    return p->n_memo++;
}

static void get(pickle *p, uint32_t place)
{
    op(p, place < 256 ? 'h' : 'j');
    add_number(&p->out, place, place < 256 ? 1 : 4);
}

/* 1: it was there before. */
static int again(pickle *p, const char *what)
{
    for (int i = 0; i < p->n_known; i++)
        if (strcmp(p->known[i], what) == 0) {
            get(p, p->place[i]);
            return 1;
        }
    return 0;
}

static void know(pickle *p, const char *what, uint32_t place)
{
    if (p->n_known == 16)
        return;
    snprintf(p->known[p->n_known], sizeof p->known[0], "%s", what);
    p->place[p->n_known++] = place;
}

static void text(pickle *p, const char *s)
{
    op(p, 'X');
    add_number(&p->out, strlen(s), 4);
    add_text(&p->out, s);
    memoize(p);
}

static void known_text(pickle *p, const char *s)
{
    if (again(p, s))
        return;
    know(p, s, p->n_memo);
    text(p, s);
}

/* "module\nname\n" */
static void global(pickle *p, const char *s)
{
    if (again(p, s))
        return;
    op(p, 'c');
    add_text(&p->out, s);
    know(p, s, memoize(p));
}

static void integer(pickle *p, uint64_t v)
{
    if (v < 256) {
        op(p, 'K');
        add_number(&p->out, v, 1);
    } else if (v < 65536) {
        op(p, 'M');
        add_number(&p->out, v, 2);
    } else {
        op(p, 'J');
        add_number(&p->out, v, 4);
    }
}

static void integers(pickle *p, const int64_t *v, int n)
{
    static const char code[] = {')', '\x85', '\x86', '\x87'};
    if (n > 3)
        op(p, '(');
    for (int i = 0; i < n; i++)
        integer(p, (uint64_t)v[i]);
    op(p, n > 3 ? 't' : code[n]);
    if (n)
        memoize(p);
}

static void empty_dict(pickle *p)
{
    global(p, "collections\nOrderedDict\n");
    op(p, ')');
    op(p, 'R');
    memoize(p);
}

static void one_tensor(pickle *p, const tensor *t, int legacy)
{
    int64_t stride[MAX_RANK], step = 1;
    char key[16];
    for (int k = t->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= t->dim[k];
    }
    snprintf(key, sizeof key, "%d", t->storage);
    global(p, "torch._utils\n_rebuild_tensor_v2\n");
    op(p, '(');
    op(p, '(');
    known_text(p, "storage");
    global(p, t->is_i64 ? "torch\nLongStorage\n" : "torch\nFloatStorage\n");
    text(p, key);
    known_text(p, "cpu");
    integer(p, t->count);
    if (legacy)
        op(p, 'N');
    op(p, 't');
    memoize(p);
    op(p, 'Q');
    integer(p, 0);
    integers(p, t->dim, t->rank);
    integers(p, stride, t->rank);
    op(p, '\x89');
    empty_dict(p);
    op(p, 't');
    memoize(p);
    op(p, 'R');
    memoize(p);
}

/* The dictionary of all, with what torch notes about modules. */
static void state_dict(pickle *p, const tensor *t, int n, const char *prefix, int legacy)
{
    add(&p->out, "\x80\2", 2);
    empty_dict(p);
    op(p, '(');
    for (int i = 0; i < n; i++) {
        char name[NAME + 16];
        snprintf(name, sizeof name, "%s%s", prefix, t[i].name);
        text(p, name);
        one_tensor(p, &t[i], legacy);
    }
    op(p, 'u');
    op(p, '}');
    memoize(p);
    text(p, "_metadata");
    empty_dict(p);
    text(p, "");
    op(p, '}');
    memoize(p);
    text(p, "version");
    integer(p, 1);
    add_text(&p->out, "sssb.");
}

/* ---- The zip form ------------------------------------------------------------------------ */

typedef struct archive {
    FILE *f;
    const char *folder;
    uint64_t at;
    bytes central;
    int n, good;
} archive;

static void write_bytes(archive *z, const void *p, size_t n)
{
    z->good &= n == 0 || fwrite(p, n, 1, z->f) == 1;
    z->at += n;
}

/* What the header in front of a record and the one in the directory have in common. */
static void add_head(bytes *b, uint32_t crc, size_t n, const char *name, size_t extra)
{
    add_number(b, 0x0808, 2); /* names are UTF-8, sizes stand behind the bytes */
    add_number(b, 0, 6);      /* stored; no time */
    add_number(b, crc, 4);
    add_number(b, n, 4);
    add_number(b, n, 4);
    add_number(b, strlen(name), 2);
    add_number(b, extra, 2);
}

static void record(archive *z, const char *name, const void *p, size_t n)
{
    char path[256];
    bytes head = {0};
    const uint64_t at = z->at;
    const uint32_t crc = crc_of(p, n);
    snprintf(path, sizeof path, "%s/%s", z->folder, name);
    const size_t used = (size_t)at + 30 + strlen(path) + 4, extra = (64 - used % 64) % 64;
    add(&head, "PK\3\4\0\0", 6);
    add_head(&head, 0, 0, path, extra + 4);
    add_text(&head, path);
    add(&head, "FB", 2);
    add_number(&head, extra, 2);
    for (size_t i = 0; i < extra; i++)
        add(&head, "Z", 1);
    write_bytes(z, head.p, head.n);
    write_bytes(z, p, n);
    head.n = 0;
    add(&head, "PK\7\10", 4);
    add_number(&head, crc, 4);
    add_number(&head, n, 4);
    add_number(&head, n, 4);
    write_bytes(z, head.p, head.n);
    add(&z->central, "PK\1\2\0\0\0\0", 8);
    add_head(&z->central, crc, n, path, 0);
    add_number(&z->central, 0, 8);
    add_number(&z->central, 0, 2);
    add_number(&z->central, at, 4);
    add_text(&z->central, path);
    z->n++;
    z->good &= !head.failed && !z->central.failed;
    free(head.p);
}

static void end_archive(archive *z)
{
    const uint64_t begin = z->at, size = z->central.n, end = begin + size;
    bytes *b = &z->central;
    add(b, "PK\6\6", 4);
    add_number(b, 44, 8);
    add_number(b, 0x002d031e, 4);
    add_number(b, 0, 8);
    add_number(b, (uint64_t)z->n, 8);
    add_number(b, (uint64_t)z->n, 8);
    add_number(b, size, 8);
    add_number(b, begin, 8);
    add(b, "PK\6\7\0\0\0\0", 8);
    add_number(b, end, 8);
    add_number(b, 1, 4);
    add(b, "PK\5\6\0\0\0\0", 8);
    add_number(b, (uint64_t)z->n, 2);
    add_number(b, (uint64_t)z->n, 2);
    add_number(b, size, 4);
    add_number(b, begin, 4);
    add_number(b, 0, 2);
    write_bytes(z, b->p, b->n);
    z->good &= !b->failed;
    free(b->p);
}

static int write_zip(FILE *f, const tensor *t, int n, int model)
{
    archive z = {.f = f, .folder = models[model].file, .good = 1};
    pickle p = {0};
    state_dict(&p, t, n, models[model].prefix, 0);
    record(&z, "data.pkl", p.out.p, p.out.n);
    z.good &= !p.out.failed;
    free(p.out.p);
    record(&z, ".format_version", "1", 1);
    record(&z, ".storage_alignment", "64", 2);
    record(&z, "byteorder", "little", 6);
    for (int i = 0; i < n && z.good; i++) {
        char name[32];
        uint8_t *bytes_of = draw(&t[i]);
        snprintf(name, sizeof name, "data/%d", i);
        z.good = bytes_of != NULL;
        if (z.good && t[i].storage == i)
            record(&z, name, bytes_of, t[i].bytes);
        free(bytes_of);
    }
    record(&z, "version", "3\n", 2);
    record(&z, ".data/serialization_id", "0000000000000000000000000000000000000000", 40);
    end_archive(&z);
    return z.good;
}

/* ---- The legacy form --------------------------------------------------------------------- */

static void system_info(pickle *p)
{
    static const char *const name[] = {"short", "int", "long"};
    add(&p->out, "\x80\2}", 3);
    memoize(p);
    op(p, '(');
    text(p, "protocol_version");
    integer(p, 1001);
    text(p, "little_endian");
    op(p, '\x88');
    text(p, "type_sizes");
    op(p, '}');
    memoize(p);
    op(p, '(');
    for (int i = 0; i < 3; i++) {
        text(p, name[i]);
        integer(p, i ? 4 : 2);
    }
    add_text(&p->out, "uu.");
}

static void storage_keys(pickle *p, const tensor *t, int n)
{
    add(&p->out, "\x80\2]", 3);
    memoize(p);
    op(p, '(');
    for (int i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        if (t[i].storage == i)
            text(p, key);
    }
    add_text(&p->out, "e.");
}

static int write_legacy(FILE *f, const tensor *t, int n, int model)
{
    static const char magic[] =
        "\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2M\xe9\3.";
    pickle p[3] = {{.n_memo = 0}};
    int good = fwrite(magic, sizeof magic - 1, 1, f) == 1;
    system_info(&p[0]);
    state_dict(&p[1], t, n, models[model].prefix, 1);
    storage_keys(&p[2], t, n);
    for (int i = 0; i < 3; i++) {
        good &= !p[i].out.failed && fwrite(p[i].out.p, p[i].out.n, 1, f) == 1;
        free(p[i].out.p);
    }
    for (int i = 0; i < n && good; i++) {
        uint8_t count[8], *bytes_of = draw(&t[i]);
        put(count, t[i].count, 8);
        good = bytes_of != NULL;
        if (good && t[i].storage == i)
            good = fwrite(count, 8, 1, f) == 1 && fwrite(bytes_of, t[i].bytes, 1, f) == 1;
        free(bytes_of);
    }
    return good;
}

/* ---- safetensors ------------------------------------------------------------------------- */

/* Integers first: they are wider, and so each tensor begins at a multiple of its element. */
static int write_safetensors(FILE *f, const tensor *t, int n, int model)
{
    bytes b = {0};
    size_t at = 0;
    int good = 1;
    add_number(&b, 0, 8);
    add_text(&b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int wide = 1; wide >= 0; wide--)
        for (int i = 0; i < n; i++) {
            char line[512];
            if (t[i].is_i64 != wide)
                continue;
            snprintf(line, sizeof line, ",\"%s%s\":{\"dtype\":\"%s\",\"shape\":[",
                     models[model].prefix, t[i].name, wide ? "I64" : "F32");
            add_text(&b, line);
            for (int k = 0; k < t[i].rank; k++) {
                snprintf(line, sizeof line, "%s%lld", k ? "," : "", (long long)t[i].dim[k]);
                add_text(&b, line);
            }
            snprintf(line, sizeof line, "],\"data_offsets\":[%zu,%zu]}", at, at + t[i].bytes);
            add_text(&b, line);
            at += t[i].bytes;
        }
    add_text(&b, "}");
    while (b.n % 8 && !b.failed)
        add_text(&b, " ");
    good = !b.failed;
    if (good) {
        put(b.p, b.n - 8, 8);
        good = fwrite(b.p, b.n, 1, f) == 1;
    }
    free(b.p);
    for (int wide = 1; wide >= 0; wide--)
        for (int i = 0; i < n && good; i++) {
            uint8_t *bytes_of = t[i].is_i64 == wide ? draw(&t[i]) : NULL;
            if (t[i].is_i64 == wide)
                good = bytes_of && fwrite(bytes_of, t[i].bytes, 1, f) == 1;
            free(bytes_of);
        }
    return good;
}

/* ---- The command ------------------------------------------------------------------------- */

typedef int writer(FILE *f, const tensor *t, int n, int model);

static const struct {
    const char *name, *ending;
    writer *write;
} forms[] = {{"zip", ".pth", write_zip},
             {"legacy", ".pth", write_legacy},
             {"safetensors", ".safetensors", write_safetensors}};

/* A tensor of a module that has an earlier name shares what the earlier one stores. */
static void share(tensor *t, int n)
{
    for (int i = 0; i < n; i++) {
        char own[NAME], other[NAME];
        t[i].storage = i;
        name_of_module(&t[i], own);
        for (int k = 0; k < i && t[i].storage == i; k++) {
            name_of_module(&t[k], other);
            if (strcmp(own, other) == 0)
                t[i].storage = k;
        }
    }
}

static int make(const char *table, const char *dir, int model, int form)
{
    tensor *t = calloc(MAX_TENSORS, sizeof *t);
    const int n = t ? read_table(table, models[model].key, t) : -1;
    char path[4096];
    int good = 0;
    snprintf(path, sizeof path, "%s/%s%s", dir, models[model].file, forms[form].ending);
    if (n < 1) {
        free(t);
        return fail(table, "no table of weights");
    }
    share(t, n);
    FILE *f = fopen(path, "wb");
    if (f) {
        good = forms[form].write(f, t, n, model);
        good &= fclose(f) == 0;
    }
    free(t);
    return good ? 0 : fail(path, errno ? strerror(errno) : "not written");
}

static int usage(void)
{
    fputs("usage: tegula-draw-weights [--form zip|legacy|safetensors] [--model raft|rfc|gen] "
          "TABLE.csv DIR\n",
          stderr);
    return 64;
}

int main(int argc, char **argv)
{
    int form = 0, only = -1, i = 1, bad = 0;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        int found = 0;
        for (int k = 0; k < 3; k++)
            if (strcmp(argv[i], "--form") == 0 && strcmp(argv[i + 1], forms[k].name) == 0) {
                form = k;
                found = 1;
            } else if (strcmp(argv[i], "--model") == 0 &&
                       strcmp(argv[i + 1], models[k].key) == 0) {
                only = k;
                found = 1;
            }
        if (!found)
            return usage();
    }
    if (argc - i != 2)
        return usage();
    for (int k = 0; k < 3; k++)
        if (only < 0 || only == k)
            bad |= make(argv[i], argv[i + 1], k, form);
    return bad;
}
