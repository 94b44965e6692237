/* axis_list.c - see axis_list.h. */
#include "io/axis_list.h"

#include "engine/base/fnv.h"
#include "engine/base/mem.h"
#include "engine/base/spec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAMES_SHOWN 12
#define ITEM_BYTES 256
#define MOST (1 << 24)

typedef struct reading {
    const tgi_axis_entries *of;
    tgi_axis_list *out;
    int64_t room;
} reading;

const char *tgi_axis_list_offer(const tgi_axis_entries *of, char *buf, size_t cap)
{
    size_t n = 0;
    buf[0] = 0;
    if (!of->name) {
        if (of->n == 1)
            snprintf(buf, cap, "0");
        else
            snprintf(buf, cap, "0 to %lld", (long long)(of->n - 1));
        return buf;
    }
    for (int64_t i = 0; i < of->n && n < cap; i++) {
        if (i == NAMES_SHOWN) {
            snprintf(buf + n, cap - n, ", ... %lld", (long long)(of->n - 1));
            break;
        }
        n += (size_t)snprintf(buf + n, cap - n, "%s%lld%s%.60s", i ? ", " : "", (long long)i,
                              of->name[i] ? " " : "", of->name[i] ? of->name[i] : "");
    }
    return buf;
}

/* The sentence with it. */
static const char *there_are(const tgi_axis_entries *of, char *buf, size_t cap)
{
    char offer[600];
    tgi_axis_list_offer(of, offer, sizeof offer);
    snprintf(buf, cap, "there %s %s", of->n == 1 ? "is one," : "are", offer);
    return buf;
}

/* ---- Items ------------------------------------------------------------------------------- */

static tg_status add(reading *r, int64_t at, tgi_err *err)
{
    if (r->out->n >= MOST)
        return tgi_fail(err, TG_E_ARG, "%s: more than %d entries", r->of->option, MOST);
    if (r->out->n == r->room) {
        const int64_t room = r->room ? 2 * r->room : 16;
        void *p = tgi_realloc_n(TGI_TAG_IO, r->out->at, (size_t)room, sizeof *r->out->at);
        if (!p)
            return tgi_fail(err, TG_E_NOMEM, "no memory for the entries of %s", r->of->option);
        r->out->at = p;
        r->room = room;
    }
    r->out->at[r->out->n++] = at;
    return TG_OK;
}

static tg_status not_there(const reading *r, const char *item, tgi_err *err)
{
    char offer[640], near[120], steps[80];
    const char *comma = "";
    tgi_nearest n = tgi_nearest_to(item);
    for (int64_t i = 0; r->of->name && i < r->of->n; i++)
        if (r->of->name[i]) {
            tgi_nearest_offer(&n, r->of->name[i], r->of->name[i]);
            if (strchr(r->of->name[i], ','))
                comma = "; a comma of a name is written \\,";
        }
    return tgi_fail(err, TG_E_ARG, "%s: there is no %s \"%.80s\": %s%s%s%s", r->of->option,
                    r->of->one, item, there_are(r->of, offer, sizeof offer),
                    tgi_nearest_text(&n, near, sizeof near), comma,
                    tgi_steps_text(item, steps, sizeof steps));
}

/* The entries of that name: how many, and the first. */
static int64_t find_name(const tgi_axis_entries *of, const char *name,
                         int (*differ)(const char *, const char *), int64_t *first)
{
    int64_t found = 0;
    for (int64_t i = 0; of->name && i < of->n; i++)
        if (of->name[i] && differ(of->name[i], name) == 0 && found++ == 0)
            *first = i;
    return found;
}

static tg_status several(const tgi_axis_entries *of, const char *name, int64_t first,
                         tgi_err *err)
{
    char offer[600];
    return tgi_fail(err, TG_E_ARG,
                    "%s: more than one %s is called \"%.80s\": give their numbers, such as %s "
                    "%lld, of %s",
                    of->option, of->one, name, of->option, (long long)first,
                    tgi_axis_list_offer(of, offer, sizeof offer));
}

static tg_status add_name(reading *r, const char *name, tgi_err *err)
{
    int64_t at = 0;
    int64_t n = find_name(r->of, name, strcmp, &at);
    if (!n)
        n = find_name(r->of, name, strcasecmp, &at);
    if (n > 1)
        return several(r->of, name, at, err);
    return n ? add(r, at, err) : not_there(r, name, err);
}

/* Is this digits alone, none among them too? */
static int is_digits(const char *s, size_t n)
{
    return strspn(s, "0123456789") >= n;
}

static int64_t number(const char *s, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v > INT64_MAX / 16 ? v : v * 10 + (s[i] - '0');
    return v;
}

/* "5", "3:9", "3-8", and those with an end left out: [*lo, *hi). 0: it looks like none. */
static int is_range(const char *item, int64_t n, int64_t *lo, int64_t *hi)
{
    const size_t all = strlen(item), before = strspn(item, "0123456789");
    if (before == all) {
        *lo = number(item, all);
        *hi = *lo + 1;
        return 1;
    }
    const char sep = item[before];
    const size_t behind = all - before - 1;
    if ((sep != ':' && sep != '-') || !is_digits(item + before + 1, behind) ||
        (sep == '-' && !before))
        return 0;
    *lo = number(item, before);
    *hi = behind ? number(item + before + 1, behind) + (sep == '-') : n;
    return 1;
}

static tg_status add_range(reading *r, const char *item, int64_t lo, int64_t hi, tgi_err *err)
{
    const tgi_axis_entries *of = r->of;
    char offer[640];
    if (lo >= hi)
        return tgi_fail(err, TG_E_ARG, "%s: \"%s\" is empty: a:b is half open, a-b inclusive",
                        of->option, item);
    if (hi > of->n)
        return tgi_fail(err, TG_E_ARG, "%s: \"%s\" reaches beyond the last %s: %s", of->option,
                        item, of->one, there_are(of, offer, sizeof offer));
    for (int64_t i = lo; i < hi; i++)
        TGI_TRY(add(r, i, err));
    return TG_OK;
}

/* The range in a spelling that is neither `item` nor a name. */
static const char *as_numbers(const tgi_axis_entries *of, const char *item, int64_t lo,
                              int64_t hi, char *buf, size_t cap)
{
    int64_t named;
    for (int way = 0; way < 3; way++) {
        if (way == 2 && hi != lo + 1)
            break;
        snprintf(buf, cap,
                 way == 0   ? "%lld:%lld"
                 : way == 1 ? "%lld-%lld"
                            : "%lld",
                 (long long)lo, (long long)(way == 0 ? hi : hi - 1));
        if (strcmp(buf, item) != 0 && !find_name(of, buf, strcmp, &named))
            break;
    }
    return buf;
}

static tg_status add_item(reading *r, const char *item, tgi_err *err)
{
    char numbers[64];
    int64_t lo, hi, named = 0;
    if (!item[0])
        return tgi_fail(err, TG_E_ARG, "%s: an item between commas is empty", r->of->option);
    if (strncmp(item, "name:", 5) == 0)
        return add_name(r, item + 5, err);
    if (!is_range(item, r->of->n, &lo, &hi))
        return add_name(r, item, err);
    const int64_t n = find_name(r->of, item, strcmp, &named);
    const int there = lo < hi && hi <= r->of->n;
    if (n && there)
        return tgi_fail(
            err, TG_E_ARG,
            "%s: \"%s\" is a number and the name of %s %lld: %s name:%s is the name, "
            "%s %s the number",
            r->of->option, item, r->of->one, (long long)named, r->of->option, item,
            r->of->option, as_numbers(r->of, item, lo, hi, numbers, sizeof numbers));
    return n ? add_name(r, item, err) : add_range(r, item, lo, hi, err);
}

static tg_status refuse_repeats(const tgi_axis_entries *of, const tgi_axis_list *l,
                                tgi_err *err)
{
    int64_t twice = -1;
    if (of->repeats || l->n < 2)
        return TG_OK;
    uint8_t *seen = tgi_calloc(TGI_TAG_IO, (size_t)of->n, 1);
    if (!seen)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the entries of %s", of->option);
    for (int64_t i = 0; i < l->n && twice < 0; i++)
        if (seen[l->at[i]]++)
            twice = l->at[i];
    tgi_free(seen);
    return twice < 0 ? TG_OK
                     : tgi_fail(err, TG_E_ARG, "%s: %s %lld is there twice", of->option,
                                of->one, (long long)twice);
}

/* The item at `at`, up to a comma that no backslash stands before, without blanks in front: its end, and what it says. NULL:
 * too long. */
static const char *take_item(const char *at, char item[ITEM_BYTES])
{
    size_t n = 0;
    at += strspn(at, " "); /* "GFP, DAPI" */
    for (; *at && *at != ','; at++) {
        if (at[0] == '\\' && at[1] == ',')
            at++;
        if (n + 1 >= ITEM_BYTES)
            return NULL;
        item[n++] = *at;
    }
    item[n] = 0;
    return at;
}

tg_status tgi_axis_list_parse(const char *text, const tgi_axis_entries *of, tgi_axis_list *out,
                              tgi_err *err)
{
    char item[ITEM_BYTES];
    tg_status st = TG_OK;
    *out = (tgi_axis_list){0};
    reading r = {of, out, 0};
    for (const char *at = text; st == TG_OK; at++) {
        const char *end = take_item(at, item);
        if (!end) {
            st = tgi_fail(err, TG_E_ARG, "%s: \"%.40s...\" is too long", of->option, at);
            break;
        }
        st = add_item(&r, item, err);
        at = end;
        if (!*at)
            break;
    }
    if (st == TG_OK)
        st = refuse_repeats(of, out, err);
    if (st != TG_OK) {
        tgi_free(out->at);
        *out = (tgi_axis_list){0};
    }
    return st;
}

int64_t tgi_axis_list_step(const tgi_axis_list *l)
{
    if (l->n < 2)
        return 1;
    const int64_t step = l->at[1] - l->at[0];
    for (int64_t i = 2; i < l->n; i++)
        if (l->at[i] - l->at[i - 1] != step)
            return 0;
    return step > 0 ? step : 0;
}

/* 1: this word takes entry i and no other. */
static int takes_alone(const tgi_axis_entries *of, const char *word, int64_t i)
{
    tgi_axis_list l = {0};
    tgi_err unused = {0};
    const int is_it =
        tgi_axis_list_parse(word, of, &l, &unused) == TG_OK && l.n == 1 && l.at[0] == i;
    tgi_free(l.at);
    return is_it;
}

const char *tgi_axis_list_word(const tgi_axis_entries *of, int64_t i, char *buf, size_t cap)
{
    static const char *const front[] = {"", "name:"};
    const char *name = of->name && of->name[i] ? of->name[i] : "";
    /* A name that begins with a digit may be an index of a longer axis. */
    for (size_t k = strspn(name, "0123456789") ? 1 : 0; k < 2 && name[0]; k++) {
        size_t n = (size_t)snprintf(buf, cap, "%s", front[k]);
        for (const char *p = name; *p && n < cap; p++)
            n += (size_t)snprintf(buf + n, cap - n, "%s%c", *p == ',' ? "\\" : "", *p);
        if (n < cap && name[0] != ' ' && !strpbrk(name, "\n\r\t'\"") && takes_alone(of, buf, i))
            return buf;
    }
    /* A number may be another one's name, too. */
    snprintf(buf, cap, "%lld", (long long)i);
    if (!takes_alone(of, buf, i))
        snprintf(buf, cap, "%lld:%lld", (long long)i, (long long)i + 1);
    if (!takes_alone(of, buf, i))
        snprintf(buf, cap, "%lld-%lld", (long long)i, (long long)i);
    return buf;
}

int tgi_axis_list_is_all(const tgi_axis_list *l, int64_t n)
{
    for (int64_t i = 0; i < l->n; i++)
        if (l->at[i] != i)
            return 0;
    return l->n == n;
}

const char *tgi_axis_list_text(const tgi_axis_list *l, char *buf, size_t cap)
{
    size_t n = 0;
    for (int64_t i = 0; i < l->n && n < cap; i++) {
        const int64_t lo = l->at[i];
        while (i + 1 < l->n && l->at[i + 1] == l->at[i] + 1)
            i++;
        n += (size_t)snprintf(buf + n, cap - n, "%s%lld", n ? "," : "", (long long)lo);
        if (n < cap && l->at[i] != lo)
            n += (size_t)snprintf(buf + n, cap - n, "-%lld", (long long)l->at[i]);
    }
    if (n >= cap)
        snprintf(
            buf, cap, "%lld entries, hash %016llx", (long long)l->n,
            (unsigned long long)tgi_fnv(TGI_FNV_BEGIN, l->at, (size_t)l->n * sizeof *l->at));
    return buf;
}
