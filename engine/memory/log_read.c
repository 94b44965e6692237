/* log_read.c - parses a memory log of any length into as many groups as a picture has
 * columns. */
#include "engine/memory/log_read.h"

#include "engine/base/arith.h"
#include "engine/base/input.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/base/utf8.h"
#include "engine/memory/timeline_read.h"

#include <stdio.h>
#include <string.h>

/* What a field of a row may mean. GPU columns follow: used and free of each. */
enum {
    SECONDS,
    PHASE,
    TILE,
    MEASURED,
    PEAK,
    FILE_PAGES,
    POOL,
    AVAILABLE,
    PREDICTED,
    BUDGET,
    BUSY,
    GPU = BUSY + TGI_BUSY_KINDS,
    N_SLOTS = GPU + 2 * TG_TRACKER_GPUS,
    UNKNOWN = -1
};

static const char *const slot_name[GPU] = {"seconds",
                                           "phase",
                                           "tile",
                                           "measured_bytes",
                                           "peak_bytes",
                                           "file_bytes",
                                           "pool_reserved_bytes",
                                           "available_bytes",
                                           "predicted_bytes",
                                           "budget_bytes",
                                           "decode_ms",
                                           "compute_ms",
                                           "encode_ms"};

typedef struct reader {
    const char *name;
    int64_t line;
    int n_columns; /* 0: the header has not come yet */
    signed char column[TGI_MEMLOG_COLUMNS];
    int has[N_SLOTS];
    uint64_t value[N_SLOTS]; /* of the row being read */
    double seconds;
    char phase[TG_TRACKER_PHASE];
    int64_t stride, in_last; /* rows that a full group has; that the last one has */
    char text[TGI_MEMLOG_LINE + 1];
    size_t n;               /* of text: a line that has not ended yet */
    tgi_timeline *timeline; /* the file is one, and no log */
    tgi_memlog *log;
} reader;

/* ---- Fields ---- */

static tg_status bad_field(const reader *r, int slot, const char *s, size_t n, tgi_err *err)
{
    return tgi_fail(
        err, TG_E_FORMAT, "%s: line %lld: %s%s is \"%.*s%s\", not a number", r->name,
        (long long)r->line, slot < GPU ? slot_name[slot] : "a GPU's memory",
        slot < GPU ? "" : " in bytes", n < 40 ? (int)n : 40, s, n < 40 ? "" : "...");
}

/* 1 for a decimal number that a size may be: below 2^63. */
static int read_uint(const char *s, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    if (n == 0 || n > 19)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return 0;
        v = v * 10 + (uint64_t)(s[i] - '0');
    }
    *out = v;
    return v <= INT64_MAX;
}

/* Names are drawn and written into XML: whole characters, none that moves the cursor. */
static void take_phase(reader *r, const char *s, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        const size_t len = tgi_utf8_length(s + i, n - i);
        const int plain = len && (unsigned char)s[i] >= 0x20 && s[i] != 0x7f;
        const size_t put = plain ? len : 1;
        if (at + put >= sizeof r->phase)
            break;
        memcpy(r->phase + at, plain ? s + i : "_", put);
        at += put;
        i += plain ? len : 1;
    }
    r->phase[at] = 0;
}

static tg_status take_seconds(reader *r, const char *s, size_t n, tgi_err *err)
{
    const double before = r->seconds;
    double v;
    if (!tgi_number_parse(s, n, &v) || !(v >= 0 && v <= 1e10))
        return bad_field(r, SECONDS, s, n, err);
    if (r->log->rows && v < before)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: time goes back, to \"%.*s\" seconds",
                        r->name, (long long)r->line, (int)n, s);
    r->seconds = v;
    return TG_OK;
}

static tg_status take_field(reader *r, int slot, const char *s, size_t n, tgi_err *err)
{
    if (slot == SECONDS)
        return take_seconds(r, s, n, err);
    if (slot == PHASE)
        take_phase(r, s, n);
    else if (slot >= 0 && !read_uint(s, n, &r->value[slot]))
        return bad_field(r, slot, s, n, err);
    return TG_OK;
}

/* ---- The header ---- */

/* "gpu3_used_bytes" and "gpu3_free_bytes". */
static int gpu_slot(const char *s, size_t n)
{
    uint64_t id;
    const size_t digits = n == 15 || n == 16 ? n - 14 : 0;
    if (!digits || memcmp(s, "gpu", 3) != 0 || !read_uint(s + 3, digits, &id) ||
        id >= TG_TRACKER_GPUS)
        return UNKNOWN;
    if (memcmp(s + 3 + digits, "_used_bytes", 11) == 0)
        return GPU + 2 * (int)id;
    return memcmp(s + 3 + digits, "_free_bytes", 11) == 0 ? GPU + 2 * (int)id + 1 : UNKNOWN;
}

static int slot_of(const char *s, size_t n)
{
    for (int i = 0; i < GPU; i++)
        if (strlen(slot_name[i]) == n && memcmp(slot_name[i], s, n) == 0)
            return i;
    return gpu_slot(s, n);
}

static tg_status take_column(reader *r, const char *s, size_t n, tgi_err *err)
{
    const int slot = slot_of(s, n);
    if (r->n_columns == TGI_MEMLOG_COLUMNS)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: more than %d columns", r->name,
                        (long long)r->line, TGI_MEMLOG_COLUMNS);
    if (slot >= 0 && r->has[slot]++)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: column %.*s is there twice", r->name,
                        (long long)r->line, (int)n, s);
    r->column[r->n_columns++] = (signed char)slot;
    return TG_OK;
}

static tg_status end_header(reader *r, tgi_err *err)
{
    for (int i = 0; i <= MEASURED; i += MEASURED)
        if (!r->has[i])
            return tgi_fail(err, TG_E_FORMAT,
                            "%s: line %lld: no column %s: this is no memory log of tegula",
                            r->name, (long long)r->line, slot_name[i]);
    r->log->has_tile = r->has[TILE];
    for (int i = 0; i < TG_TRACKER_GPUS; i++)
        if (r->has[GPU + 2 * i])
            r->log->n_gpus = i + 1;
    return TG_OK;
}

/* ---- Rows ---- */

static int phase_of_row(reader *r)
{
    tgi_memlog *l = r->log;
    tgi_memlog_phase *last = l->n_phases ? &l->phase[l->n_phases - 1] : NULL;
    if (last)
        last->to = r->seconds;
    if (last && (strcmp(last->name, r->phase) == 0 || l->n_phases == TGI_MEMLOG_PHASES)) {
        if (strcmp(last->name, r->phase) != 0)
            strcpy(last->name, "...");
        return l->n_phases - 1;
    }
    last = &l->phase[l->n_phases++];
    memcpy(last->name, r->phase, sizeof last->name);
    last->from = last->to = r->seconds;
    return l->n_phases - 1;
}

/* What follows `a` becomes part of it. */
static void join(tgi_memlog_group *a, const tgi_memlog_group *b)
{
    a->to = b->to;
    if (b->low < a->low) {
        a->low = b->low;
        a->low_at = b->low_at;
    }
    if (b->high > a->high) {
        a->high = b->high;
        a->high_at = b->high_at;
        a->phase = b->phase;
        a->tile = b->tile;
    }
    a->file = tgi_larger(a->file, b->file);
    a->pool = tgi_larger(a->pool, b->pool);
    a->available = b->available < a->available ? b->available : a->available;
    a->predicted = b->predicted;
    a->budget = b->budget;
    for (int k = 0; k < TGI_BUSY_KINDS; k++)
        a->busy_ms[k] += b->busy_ms[k];
    for (int i = 0; i < TG_TRACKER_GPUS; i++) {
        a->gpu_used[i] = tgi_larger(a->gpu_used[i], b->gpu_used[i]);
        a->gpu_total[i] = tgi_larger(a->gpu_total[i], b->gpu_total[i]);
    }
}

int tgi_memlog_columns(const tgi_memlog *log, int columns, tgi_memlog_group *out)
{
    const double span = log->to - log->from;
    int n = 0, last = -1;
    for (int i = 0; i < log->n_groups; i++) {
        const tgi_memlog_group *g = &log->group[i];
        const double at = span > 0 ? (g->from - log->from) / span : 0;
        const int k = at < 1 ? (int)(at * columns) : columns - 1;
        if (k == last)
            join(&out[n - 1], g);
        else
            out[n++] = *g;
        last = k;
    }
    return n;
}

static void halve_groups(reader *r)
{
    tgi_memlog *l = r->log;
    for (int i = 0; i < l->n_groups; i += 2) {
        l->group[i / 2] = l->group[i];
        join(&l->group[i / 2], &l->group[i + 1]);
    }
    l->n_groups /= 2;
    r->stride *= 2;
}

static void add_group(reader *r, const tgi_memlog_group *g)
{
    tgi_memlog *l = r->log;
    if (l->n_groups && r->in_last < r->stride) {
        join(&l->group[l->n_groups - 1], g);
        r->in_last++;
        return;
    }
    if (l->n_groups == TGI_MEMLOG_GROUPS)
        halve_groups(r);
    l->group[l->n_groups++] = *g;
    r->in_last = 1;
}

static void end_row(reader *r)
{
    tgi_memlog *l = r->log;
    const uint64_t *v = r->value;
    const uint64_t high = r->has[PEAK] ? tgi_larger(v[PEAK], v[MEASURED]) : v[MEASURED];
    tgi_memlog_group g = {.from = r->seconds,
                          .to = r->seconds,
                          .low = high,
                          .high = high,
                          .low_at = r->seconds,
                          .high_at = r->seconds,
                          .phase = phase_of_row(r),
                          .tile = (int64_t)v[TILE],
                          .file = v[FILE_PAGES],
                          .pool = v[POOL],
                          .available = v[AVAILABLE],
                          .predicted = v[PREDICTED],
                          .budget = v[BUDGET]};
    for (int k = 0; k < TGI_BUSY_KINDS; k++) {
        g.busy_ms[k] = v[BUSY + k];
        l->busy_ms[k] += v[BUSY + k];
    }
    for (int i = 0; i < l->n_gpus; i++) {
        g.gpu_used[i] = v[GPU + 2 * i];
        g.gpu_total[i] = v[GPU + 2 * i] + v[GPU + 2 * i + 1];
    }
    if (high > l->max.bytes || !l->rows) {
        l->max.bytes = high;
        l->max.seconds = r->seconds;
        l->max.tile = g.tile;
        memcpy(l->max.phase, r->phase, sizeof l->max.phase);
    }
    if (!l->rows++)
        l->from = r->seconds;
    l->to = r->seconds;
    add_group(r, &g);
}

/* A timeline's steps as rows: what is held after each moment. */
static tg_status rows_of_timeline(reader *r, tgi_err *err)
{
    int64_t n, held = 0;
    const tgi_timeline_step *s = tgi_timeline_steps(r->timeline, &n);
    memcpy(r->phase, "command", sizeof "command");
    for (int64_t i = 0; i < n; i++) {
        if (s[i].bytes > 0 && held > INT64_MAX - s[i].bytes)
            return tgi_fail(err, TG_E_FORMAT, "%s: its allocations overflow", r->name);
        held += s[i].bytes;
        r->seconds = 1e-9 * (double)s[i].ns;
        r->value[MEASURED] = (uint64_t)(held > 0 ? held : 0);
        end_row(r);
    }
    r->log->unfinished = !tgi_timeline_ended(r->timeline);
    return TG_OK;
}

/* One line without its end. */
static tg_status take_line(reader *r, const char *s, size_t n, tgi_err *err)
{
    const int header = r->n_columns == 0;
    int k = 0;
    r->line++;
    if (n && s[n - 1] == '\r')
        n--;
    if (n == 0)
        return TG_OK;
    if (r->timeline || (header && tgi_timeline_begins(s, n)))
        return tgi_timeline_line(&r->timeline, r->name, r->line, s, n, err);
    for (size_t at = 0; at <= n; k++) {
        const char *comma = memchr(s + at, ',', n - at);
        const size_t len = comma ? (size_t)(comma - (s + at)) : n - at;
        if (header)
            TGI_TRY(take_column(r, s + at, len, err));
        else if (k < r->n_columns)
            TGI_TRY(take_field(r, r->column[k], s + at, len, err));
        at += len + 1;
    }
    if (header)
        return end_header(r, err);
    if (k != r->n_columns)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld has %d fields, the header has %d",
                        r->name, (long long)r->line, k, r->n_columns);
    end_row(r);
    return TG_OK;
}

/* ---- Bytes to lines ---- */

static tg_status feed(reader *r, const char *s, size_t n, tgi_err *err)
{
    while (n) {
        const char *end = memchr(s, '\n', n);
        const size_t len = end ? (size_t)(end - s) : n;
        if (len > TGI_MEMLOG_LINE - r->n)
            return tgi_fail(err, TG_E_FORMAT, "%s: line %lld is longer than %d bytes", r->name,
                            (long long)r->line + 1, TGI_MEMLOG_LINE);
        memcpy(r->text + r->n, s, len);
        r->n += len;
        s += len;
        n -= len;
        if (!end)
            break;
        const size_t whole = r->n;
        r->n = 0;
        s++;
        n--;
        TGI_TRY(take_line(r, r->text, whole, err));
    }
    return TG_OK;
}

static tg_status end_of_text(reader *r, tgi_err *err)
{
    r->log->unfinished = r->n > 0;
    if (r->timeline)
        TGI_TRY(rows_of_timeline(r, err));
    else if (r->n_columns == 0)
        return tgi_fail(err, TG_E_FORMAT, "%s: no header: this is no memory log of tegula",
                        r->name);
    if (!r->log->rows)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: the log has no sample", r->name,
                        (long long)r->line + 1);
    return TG_OK;
}

static tg_status begin(const char *name, reader **out, tgi_err *err)
{
    reader *r = tgi_calloc(TGI_TAG_MISC, 1, sizeof *r);
    if (r)
        r->log = tgi_calloc(TGI_TAG_MISC, 1, sizeof *r->log);
    if (!r || !r->log) {
        tgi_free(r);
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", name);
    }
    r->name = name;
    r->stride = 1;
    *out = r;
    return TG_OK;
}

static tg_status finish(reader *r, tg_status st, tgi_memlog **out, tgi_err *err)
{
    if (st == TG_OK)
        st = end_of_text(r, err);
    if (st == TG_OK)
        *out = r->log;
    else
        tgi_free(r->log);
    tgi_timeline_free(&r->timeline);
    tgi_free(r);
    return st;
}

tg_status tgi_memlog_parse(const char *text, size_t n, const char *name, tgi_memlog **out,
                           tgi_err *err)
{
    reader *r = NULL;
    TGI_TRY(begin(name, &r, err));
    return finish(r, feed(r, text, n, err), out, err);
}

static tg_status feed_all(reader *r, tgi_input *in, tgi_err *err)
{
    char block[1 << 13];
    for (size_t n = 1; n;) {
        TGI_TRY(tgi_input_read(in, block, sizeof block, &n, err));
        TGI_TRY(feed(r, block, n, err));
    }
    return TG_OK;
}

tg_status tgi_memlog_read(const char *path, tgi_memlog **out, tgi_err *err)
{
    reader *r = NULL;
    tgi_input in;
    TGI_TRY(tgi_input_open(path, &in, err));
    tg_status st = begin(path, &r, err);
    if (st == TG_OK)
        st = finish(r, feed_all(r, &in, err), out, err);
    tgi_input_close(&in);
    return st;
}
