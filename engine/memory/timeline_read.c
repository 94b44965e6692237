/* timeline_read.c - see timeline_read.h. */
#include "engine/memory/timeline_read.h"

#include "engine/base/json.h"
#include "engine/base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char first[] = "{\"tegula_timeline\":1,";

struct tgi_timeline {
    tgi_timeline_step *step;
    int64_t n, cap;
    int ended;
};

int tgi_timeline_begins(const char *line, size_t n)
{
    return n >= sizeof first - 1 && memcmp(line, first, sizeof first - 1) == 0;
}

static tg_status add(tgi_timeline *t, int64_t ns, int64_t bytes, const char *name, tgi_err *err)
{
    if (t->n == t->cap) {
        const int64_t cap = t->cap ? 2 * t->cap : 1024;
        tgi_timeline_step *more =
            tgi_realloc_n(TGI_TAG_MISC, t->step, (size_t)cap, sizeof *more);
        if (!more)
            return tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", name);
        t->step = more;
        t->cap = cap;
    }
    t->step[t->n++] = (tgi_timeline_step){ns, bytes};
    return TG_OK;
}

/* The numbers of one allocation; 0: it is none. end < 0: in use at the end. */
static int read_event(const tgi_json *doc, int64_t *begin, int64_t *end, int64_t *bytes)
{
    const tgi_json *e = tgi_json_get(doc, "end_ns");
    *end = -1;
    return tgi_json_int(tgi_json_get(doc, "begin_ns"), begin) && *begin >= 0 &&
           tgi_json_int(tgi_json_get(doc, "bytes"), bytes) && *bytes >= 0 &&
           (tgi_json_is_null(e) || (tgi_json_int(e, end) && *end >= *begin));
}

static tg_status take_event(tgi_timeline *t, const char *name, int64_t number, const char *line,
                            size_t n, tgi_err *err)
{
    int64_t begin = 0, end = 0, bytes = 0;
    tgi_json *doc = NULL;
    const int good = tgi_json_parse(line, n, name, &doc, NULL) == TG_OK &&
                     read_event(doc, &begin, &end, &bytes);
    tgi_json_free(&doc);
    if (!good)
        return tgi_fail(
            err, TG_E_FORMAT,
            "%s: line %lld is no allocation of a timeline: begin_ns, end_ns and bytes are "
            "expected",
            name, (long long)number);
    if (t->n >= 2 * TGI_TIMELINE_MOST - 1)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: more than %d allocations", name,
                        (long long)number, TGI_TIMELINE_MOST);
    TGI_TRY(add(t, begin, bytes, name, err));
    return end < 0 ? TG_OK : add(t, end, -bytes, name, err);
}

tg_status tgi_timeline_line(tgi_timeline **out, const char *name, int64_t number,
                            const char *line, size_t n, tgi_err *err)
{
    if (!*out) {
        *out = tgi_calloc(TGI_TAG_MISC, 1, sizeof **out);
        return *out ? TG_OK : tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", name);
    }
    if ((*out)->ended)
        return tgi_fail(err, TG_E_FORMAT, "%s: line %lld: the timeline has ended", name,
                        (long long)number);
    if (n == 2 && memcmp(line, "]}", 2) == 0) {
        (*out)->ended = 1;
        return TG_OK;
    }
    if (n && line[n - 1] == ',')
        n--;
    return take_event(*out, name, number, line, n, err);
}

int tgi_timeline_ended(const tgi_timeline *t)
{
    return t->ended;
}

static int by_time(const void *a, const void *b)
{
    const tgi_timeline_step *s = a, *t = b;
    if (s->ns != t->ns)
        return s->ns < t->ns ? -1 : 1;
    return (s->bytes > t->bytes) - (s->bytes < t->bytes);
}

const tgi_timeline_step *tgi_timeline_steps(tgi_timeline *t, int64_t *n)
{
    if (t->n)
        qsort(t->step, (size_t)t->n, sizeof *t->step, by_time);
    *n = t->n;
    return t->step;
}

void tgi_timeline_free(tgi_timeline **t)
{
    if (*t)
        tgi_free((*t)->step);
    tgi_free(*t);
    *t = NULL;
}
