/* The order in which ProPainter's frames and windows are made (engine/inpaint/pp_order.h) has the frame numbers of the
 * published rules, as a program that knows nothing of it states them (propainter_schedule.py --draw 500; arguments: a
 * Python, that program). On the way each act finds what it reads, made and not forgotten; a film whose length is
 * not known gives the same; what is alive at once is no more than the table of the conformance data has. */
#include "engine/base/arith.h"
#include "engine/inpaint/pp_extent.h"
#include "tests/tg_test.h"

#include <stdarg.h>

#define MOST 512

typedef struct watch {
    char *text[3]; /* completions, propagations, steps */
    size_t n[3];
    int64_t length, oldest[TGI_PP_KEPT], made[TGI_PP_KEPT], most[TGI_PP_KEPT];
    int wrong;
    int64_t last_step;
} watch;

static void say(watch *w, int i, const char *fmt, ...) TGI_PRINTF(3, 4);
static void say(watch *w, int i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    w->n[i] += (size_t)vsnprintf(w->text[i] + w->n[i], ((size_t)1 << 20) - w->n[i], fmt, ap);
    va_end(ap);
}

/* [from, until) is there. */
static void need(watch *w, tgi_pp_kept kind, int64_t from, int64_t until)
{
    if (from < until && (from < w->oldest[kind] || until > w->made[kind]))
        w->wrong++;
}

static void add(watch *w, tgi_pp_kept kind, int64_t from, int64_t until)
{
    if (w->made[kind] == 0)
        w->made[kind] = w->oldest[kind] = from;
    if (from != w->made[kind])
        w->wrong++;
    w->made[kind] = until;
    w->most[kind] = tgi_max(w->most[kind], until - w->oldest[kind]);
}

static tg_status frame(void *user, int64_t k, int *end, tgi_err *err)
{
    watch *w = user;
    (void)err;
    *end = k >= w->length;
    if (!*end)
        add(w, TGI_PP_FRAMES, k, k + 1);
    return TG_OK;
}

static tg_status motion(void *user, int64_t k, tgi_err *err)
{
    (void)err;
    need(user, TGI_PP_FRAMES, k, k + 2);
    add(user, TGI_PP_MOTIONS, k, k + 1);
    return TG_OK;
}

static void say_window(watch *w, int i, const char *what, const tgi_pp_window *v)
{
    say(w, i, "%s %lld %lld %lld %lld\n", what, (long long)v->s, (long long)v->e,
        (long long)v->keep0, (long long)v->keep1);
}

static tg_status complete(void *user, const tgi_pp_window *v, tgi_err *err)
{
    (void)err;
    need(user, TGI_PP_MOTIONS, v->s, v->e);
    need(user, TGI_PP_FRAMES, v->s, v->e + 1); /* masks */
    add(user, TGI_PP_COMPLETED, v->keep0, v->keep1);
    say_window(user, 0, "completion", v);
    return TG_OK;
}

static tg_status propagate(void *user, const tgi_pp_window *v, tgi_err *err)
{
    (void)err;
    need(user, TGI_PP_FRAMES, v->s, v->e);
    need(user, TGI_PP_COMPLETED, v->s, v->e - 1);
    add(user, TGI_PP_UPDATED, v->keep0, v->keep1);
    say_window(user, 1, "propagation", v);
    return TG_OK;
}

static tg_status step(void *user, const tgi_pp_step *s, tgi_err *err)
{
    watch *w = user;
    (void)err;
    need(w, TGI_PP_UPDATED, s->lo, s->hi);
    need(w, TGI_PP_COMPLETED, s->lo, s->hi - 1);
    say(w, 2, "step %lld neighbours %lld %lld refs", (long long)s->mid, (long long)s->lo,
        (long long)s->hi);
    for (int i = 0; i < s->n_refs; i++) {
        need(w, TGI_PP_UPDATED, s->ref[i], s->ref[i] + 1);
        say(w, 2, " %lld", (long long)s->ref[i]);
    }
    say(w, 2, "\n");
    w->last_step = s->mid;
    return TG_OK;
}

static void forget(void *user, tgi_pp_kept kind, int64_t k)
{
    watch *w = user;
    w->oldest[kind] = tgi_max(w->oldest[kind], k);
}

static void open_watch(watch *w, int64_t length)
{
    *w = (watch){.length = length};
    for (int i = 0; i < 3; i++)
        w->text[i] = calloc(1, (size_t)1 << 20);
}

static void close_watch(watch *w)
{
    for (int i = 0; i < 3; i++)
        free(w->text[i]);
}

static void begin(tgi_pp_order *o, const tgi_pp_settings *s, watch *w, int64_t length,
                  int64_t first)
{
    const tgi_pp_acts acts = {w, frame, motion, complete, propagate, step, forget};
    tgi_pp_begin(o, s, &acts, length, first);
}

/* The whole text of a setting, or with `first` that of a film that begins there. */
static char *walk(const tgi_pp_settings *s, int64_t length, int known, watch *w)
{
    tgi_pp_order o;
    tgi_err e = {0};
    char *text = calloc(1, (size_t)4 << 20);
    size_t n = 0;
    int64_t *final = calloc((size_t)length, sizeof *final);
    open_watch(w, length);
    begin(&o, s, w, known ? length : -1, 0);
    for (int64_t k = 0; k < length; k++) {
        CHECK_OK(tgi_pp_until(&o, k, &e), e);
        final[k] = w->last_step;
    }
    for (int i = 0; i < 3; i++)
        n += (size_t)snprintf(text + n, ((size_t)4 << 20) - n, "%s", w->text[i]);
    for (int64_t k = 0; k < length; k++)
        n += (size_t)snprintf(text + n, ((size_t)4 << 20) - n, "final %lld %lld\n",
                              (long long)k, (long long) final[k]);
    free(final);
    return text;
}

/* Steps from the one that frame `first` needs on are the last ones of the whole film. */
static void check_part(const tgi_pp_settings *s, int64_t length, int64_t first,
                       const watch *whole)
{
    tgi_pp_order o;
    tgi_err e = {0};
    watch w;
    open_watch(&w, length);
    begin(&o, s, &w, length, first);
    CHECK_OK(tgi_pp_until(&o, length - 1, &e), e);
    CHECK(w.n[2] <= whole->n[2] && w.wrong == 0);
    CHECK_STR(w.text[2], whole->text[2] + (whole->n[2] - w.n[2]));
    close_watch(&w);
}

/* A walk that begins amidst the film, as after a stop, has no more alive at once than one from its beginning. */
static void check_starts(const tgi_pp_settings *s, int64_t length, int known)
{
    tgi_pp_extent whole, part;
    tgi_err e = {0};
    int64_t more = 0;
    CHECK_OK(tgi_pp_measure(s, length, known, 0, length, &whole, &e), e);
    for (int64_t first = 1; first < length; first++) {
        CHECK_OK(tgi_pp_measure(s, length, known, first, length, &part, &e), e);
        for (int k = 0; k < TGI_PP_KEPT; k++)
            more += part.span[k] > whole.span[k];
        for (int n = 1; n <= TGI_PP_MOST_FRAMES; n++)
            more += (part.has[n] & ~whole.has[n]) != 0;
        more += part.completion > whole.completion || part.propagation > whole.propagation;
    }
    if (more)
        printf("setting %lld %lld %lld %lld, length %s: %lld starts need more\n",
               (long long)length, (long long)s->subvideo_length, (long long)s->neighbor_length,
               (long long)s->ref_stride, known ? "known" : "not known", (long long)more);
    CHECK_EQ(more, 0);
}

static int has_fit(const tgi_pp_settings *s, int64_t length)
{
    tgi_pp_extent x;
    tgi_err e = {0};
    return tgi_pp_measure(s, length, 1, 0, length, &x, &e) == TG_OK;
}

static void check_setting(const tgi_pp_settings *s, int64_t length, const char *wanted)
{
    for (int known = 0; known < 2; known++) {
        watch w;
        char *got = walk(s, length, known, &w);
        if (strcmp(got, wanted) != 0 || w.wrong)
            printf("setting %lld %lld %lld %lld, length %s: %d acts without what they read\n",
                   (long long)length, (long long)s->subvideo_length,
                   (long long)s->neighbor_length, (long long)s->ref_stride,
                   known ? "known" : "not known", w.wrong);
        CHECK(strcmp(got, wanted) == 0);
        CHECK_EQ(w.wrong, 0);
        for (int part = 1; known && part < 4; part++)
            check_part(s, length, length * part / 4, &w);
        if (has_fit(s, length))
            check_starts(s, length, known);
        free(got);
        close_watch(&w);
    }
}

static char command[1024];

static void test_numbers_are_the_published_ones(void)
{
    FILE *said = popen(command, "r");
    char line[8192], *wanted = calloc(1, (size_t)4 << 20);
    tgi_pp_settings s = {0};
    long long v[4];
    int64_t length = 0;
    size_t n = 0;
    int settings = 0;
    while (said && fgets(line, sizeof line, said)) {
        if (sscanf(line, "setting %lld %lld %lld %lld", &v[0], &v[1], &v[2], &v[3]) != 4) {
            n += (size_t)snprintf(wanted + n, ((size_t)4 << 20) - n, "%s", line);
            continue;
        }
        if (settings++)
            check_setting(&s, length, wanted);
        length = v[0];
        s = (tgi_pp_settings){v[1], v[2], v[3]};
        *wanted = 0;
        n = 0;
    }
    if (settings)
        check_setting(&s, length, wanted);
    CHECK(settings == 500 && said && pclose(said) == 0);
    free(wanted);
}

/* What is planned for a film that may end anywhere is enough for each end. */
static void test_every_end_is_planned(void)
{
    static const tgi_pp_settings set[] = {{80, 10, 10}, {6, 60, 10},  {5, 40, 1},  {10, 50, 10},
                                          {1, 24, 1},   {20, 60, 10}, {12, 20, 13}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        tgi_pp_extent any, x;
        tgi_err e = {0};
        int64_t more = 0;
        CHECK_OK(tgi_pp_measure_any(&set[i], &any, &e), e);
        for (int64_t length = 2; length < 400; length++) {
            CHECK_OK(tgi_pp_measure(&set[i], length, 0, 0, length, &x, &e), e);
            for (int n = 1; n <= TGI_PP_MOST_FRAMES; n++)
                more += (x.has[n] & ~any.has[n]) != 0;
            for (int k = 0; k < TGI_PP_KEPT; k++)
                more += x.span[k] > any.span[k];
        }
        if (more)
            printf("     subvideo_length %lld: %lld ends need more\n",
                   (long long)set[i].subvideo_length, (long long)more);
        CHECK_EQ(more, 0);
    }
}

/* The rows of the table in SPEC.md, section 9. */
static void test_no_more_is_alive_than_the_table_has(void)
{
    static const struct {
        int64_t length;
        tgi_pp_settings s;
        int64_t frames, completed, updated;
    } row[] = {{500, {80, 10, 10}, 201, 195, 150},
               {2000, {80, 10, 10}, 201, 195, 150},
               {2000, {40, 10, 10}, 101, 95, 70},
               {2000, {120, 10, 10}, 281, 275, 210},
               {2000, {80, 20, 5}, 206, 200, 150}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int known = 0; known < 2; known++) {
            watch w;
            free(walk(&row[i].s, row[i].length, known, &w));
            printf("     %lld frames, subvideo %lld: alive %lld frames (%lld), %lld motions, "
                   "%lld completed "
                   "(%lld), %lld updated (%lld)\n",
                   (long long)row[i].length, (long long)row[i].s.subvideo_length,
                   (long long)w.most[0], (long long)row[i].frames, (long long)w.most[1],
                   (long long)w.most[2], (long long)row[i].completed, (long long)w.most[3],
                   (long long)row[i].updated);
            CHECK(w.most[TGI_PP_FRAMES] <= row[i].frames);
            CHECK(w.most[TGI_PP_COMPLETED] <= row[i].completed);
            CHECK(w.most[TGI_PP_UPDATED] <= row[i].updated);
            close_watch(&w);
        }
}

int main(int argc, char **argv)
{
    snprintf(command, sizeof command, "'%s' -B '%s' --draw 500 --seed 20261129",
             argc > 2 ? argv[1] : "", argc > 2 ? argv[2] : "");
    if (argc > 2)
        RUN(test_numbers_are_the_published_ones);
    RUN(test_every_end_is_planned);
    RUN(test_no_more_is_alive_than_the_table_has);
    return TEST_END();
}
