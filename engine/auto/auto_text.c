/* auto_text.c - what was found, as a preset file and as an answer with its reasons. */
#include "engine/auto/auto.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/settings/opts_internal.h"
#include "io/text_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REASON 240

/* ---- What came second -------------------------------------------------------------------- */

/* Of the points that differ from the best in one axis: the least seconds that were planned and
 * fit, or the least bound of those that were skipped. */
typedef struct second {
    const tgi_auto_try *planned, *skipped;
} second;

typedef enum axis { THREADS, SET, TILE, SCRATCH, PRECISION } axis;

static int64_t place(const tgi_auto_try *t, axis of)
{
    return of == THREADS   ? t->threads
           : of == SET     ? (int64_t)t->isa
           : of == TILE    ? t->tile
           : of == SCRATCH ? t->scratch
                           : t->bf16;
}

static second second_in(const tgi_auto *a, axis of)
{
    const tgi_auto_try *best = &a->tried[a->best];
    second s = {NULL, NULL};
    for (int i = 0; i < a->n_tried; i++) {
        const tgi_auto_try *t = &a->tried[i];
        if (place(t, of) == place(best, of))
            continue;
        if (t->skipped && (!s.skipped || t->seconds < s.skipped->seconds))
            s.skipped = t;
        if (t->fits && (!s.planned || t->seconds < s.planned->seconds))
            s.planned = t;
    }
    return s;
}

/* ---- Words ------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "arrays";
}

/* Three digits: "0.0123 s", "12.3 s", "4560 s". */
static const char *seconds_text(double s, char buf[32])
{
    const int digits = s > 0 ? (int)floor(log10(s)) : 0;
    snprintf(buf, 32, "%.*f s", digits < 2 ? 2 - digits : 0, s);
    return buf;
}

static void name_of(const tgi_auto_try *t, axis of, char buf[32])
{
    if (of == THREADS)
        snprintf(buf, 32, "%d", t->threads);
    else if (of == SET)
        snprintf(buf, 32, "%s", tgi_isa_name(t->isa));
    else if (of == TILE && t->tile)
        snprintf(buf, 32, "%lld", (long long)t->tile);
    else if (of == SCRATCH)
        snprintf(buf, 32, "%s", t->scratch ? "with it" : "without it");
    else if (of == PRECISION)
        snprintf(buf, 32, "%s", t->bf16 ? "bf16" : "fp32");
    else
        snprintf(buf, 32, "auto");
}

/* "; next is 7, 12.9 s" or what a bound says of the others; "" where nothing else was tried. */
static const char *next_text(const tgi_auto *a, axis of, char *buf, size_t cap)
{
    char name[32], time[32];
    const second s = second_in(a, of);
    buf[0] = 0;
    if (s.planned) {
        name_of(s.planned, of, name);
        snprintf(buf, cap, "; next is %s, %s", name, seconds_text(s.planned->seconds, time));
    } else if (s.skipped) {
        name_of(s.skipped, of, name);
        snprintf(buf, cap, "; next would be %s, not below %s", name,
                 seconds_text(s.skipped->seconds, time));
    }
    return buf;
}

static int is_given(const tgi_auto *a, tgi_opt id)
{
    const char *v = tgi_opts_given(a->opts, id) ? tgi_opts_str(a->opts, id) : NULL;
    return v && strcmp(v, "auto") != 0;
}

typedef struct lines {
    tgi_jw *w;
} lines;

static void say(lines *l, const char *fmt, ...) TGI_PRINTF(2, 3);

static void say(lines *l, const char *fmt, ...)
{
    char text[REASON];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tgi_jw_str(l->w, NULL, text);
}

/* ---- Reasons ----------------------------------------------------------------------------- */

static void say_precision(lines *l, const tgi_auto *a)
{
    char next[96];
    const tgi_auto_try *b = &a->tried[a->best];
    if (a->bf16_needed)
        say(l, "precision bf16: nothing fits in fp32, whose weights are twice as large");
    else if (a->bf16_asked)
        say(l, "precision %s: both were allowed%s", b->bf16 ? "bf16" : "fp32",
            next_text(a, PRECISION, next, sizeof next));
    else
        say(l, "precision fp32: it fits, and bf16, which errs by some 3e-3, was not allowed");
}

static void say_kernels(lines *l, const tgi_auto *a)
{
    char next[96];
    const tgi_auto_try *b = &a->tried[a->best];
    if (is_given(a, TGI_OPT_ISA))
        say(l, "isa %s: given", tgi_isa_name(b->isa));
    else
        say(l, "isa %s: of what %s has%s", tgi_isa_name(b->isa), base_name(a->machine.name),
            next_text(a, SET, next, sizeof next));
    if (is_given(a, TGI_OPT_THREADS))
        say(l, "threads %d: given", b->threads);
    else
        say(l, "threads %d: of %d processors%s", b->threads, a->machine.processors,
            next_text(a, THREADS, next, sizeof next));
}

static void say_memory(lines *l, const tgi_auto *a)
{
    char next[96], name[32], peak[32];
    const tgi_auto_try *b = &a->tried[a->best];
    name_of(b, TILE, name);
    tgi_size_text(b->peak_bytes, peak, sizeof peak);
    if (is_given(a, TGI_OPT_TILE))
        say(l, "tile %s: given", tgi_opts_str(a->opts, TGI_OPT_TILE));
    else
        say(l, "tile %s: %.1f %% is computed twice%s", name, 100 * a->recomputed,
            next_text(a, TILE, next, sizeof next));
    say(l, "ram %s: %s; the plan's peak is %s", tgi_opts_str(a->opts, TGI_OPT_RAM),
        a->ram_given ? "given" : "what there is less the margin, in whole MiB", peak);
}

static void say_files(lines *l, const tgi_auto *a)
{
    char next[96];
    const tgi_auto_try *b = &a->tried[a->best];
    if (is_given(a, TGI_OPT_SCRATCH))
        say(l, "scratch %s: given", tgi_opts_str(a->opts, TGI_OPT_SCRATCH));
    else if (b->scratch)
        say(l, "scratch %s: %s%s", a->scratch, a->scratch_why,
            next_text(a, SCRATCH, next, sizeof next));
    else
        say(l, "scratch none: %s%s", a->scratch_why[0] ? a->scratch_why : "an array is read",
            next_text(a, SCRATCH, next, sizeof next));
    if (is_given(a, TGI_OPT_IO))
        say(l, "io %s: given", tgi_opts_str(a->opts, TGI_OPT_IO));
    else
        say(l, "io auto: inputs are read, never mapped");
}

static void say_device(lines *l, const tgi_auto *a)
{
    char time[32];
    const tgi_auto_device *d = &a->device;
    if (!d->there) {
        say(l, "no device part: %s", d->why_not);
        return;
    }
    say(l,
        "device %s: tile %lld, batch %lld, fp16 with sums in fp32; %s projected, not measured",
        d->gpu, (long long)d->tile, (long long)d->batch,
        d->seconds >= 0 ? seconds_text(d->seconds, time) : "time unknown,");
    if (d->alike > 1)
        say(l, "device: %d GPUs are alike; the time is of one", d->alike);
}

static void say_all(lines *l, const tgi_auto *a)
{
    int planned = 0;
    for (int i = 0; i < a->n_tried; i++)
        planned += !a->tried[i].skipped;
    say_precision(l, a);
    say_kernels(l, a);
    say_memory(l, a);
    say_files(l, a);
    say_device(l, a);
    say(l, "%d plans were compared, %d more left out whose bound was not below the best",
        planned, a->n_tried - planned);
    if (!a->calibrated)
        say(l, "the times are of a usual processor: %s was not calibrated",
            base_name(a->machine.name));
}

/* ---- The preset -------------------------------------------------------------------------- */

/* All that is set of what presets may have: what the command gave, and what was chosen. */
static tg_status put_settings(tgi_jw *w, const tgi_auto *a, tgi_err *err)
{
    const tgi_auto_try *b = &a->tried[a->best];
    tg_opts *o = NULL;
    tg_status st = tgi_opts_new(&o, err);
    if (st == TG_OK)
        st = tgi_auto_options(a, b, o, err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "tile", tgi_opts_str(o, TGI_OPT_TILE), err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "io", tgi_opts_str(o, TGI_OPT_IO), err);
    tgi_jw_begin(w, "settings", '{');
    if (st == TG_OK)
        (void)tgi_opts_write(w, o, tgi_opt_in_preset);
    tgi_jw_end(w, '}');
    tgi_opts_free(&o);
    return st;
}

static tg_status put_preset(tgi_jw *w, const tgi_auto *a, tgi_err *err)
{
    char text[300], time[32];
    const tgi_auto_device *d = &a->device;
    tgi_jw_int(w, "schema", 1);
    snprintf(text, sizeof text, "%.80s over %.80s on %.80s",
             base_name(tgi_opts_str(a->opts, TGI_OPT_MODEL)),
             base_name(tgi_opts_str(a->opts, TGI_OPT_INPUT)), base_name(a->machine.name));
    tgi_jw_str(w, "description", text);
    snprintf(text, sizeof text,
             "chosen by preset auto: of all that fit the least predicted time, %s%s%s",
             seconds_text(a->tried[a->best].seconds, time),
             a->calibrated ? " by the speeds of that machine"
                           : " by those of a usual processor",
             d->there ? "; the device part is projected, not measured" : "");
    tgi_jw_str(w, "why", text);
    TGI_TRY(put_settings(w, a, err));
    if (!d->there)
        return TG_OK;
    tgi_jw_begin(w, "device", '{');
    tgi_jw_num(w, "gib", round(100 * d->gib) / 100);
    tgi_jw_int(w, "tile", d->tile);
    tgi_jw_int(w, "batch", d->batch);
    tgi_jw_str(w, "precision", "fp16");
    tgi_jw_end(w, '}');
    return TG_OK;
}

tg_status tgi_auto_preset_json(const tgi_auto *a, char **json, tgi_err *err)
{
    tgi_jw w = {0};
    char *unused = NULL;
    tgi_jw_begin(&w, NULL, '{');
    const tg_status st = put_preset(&w, a, err);
    tgi_jw_end(&w, '}');
    const tg_status taken = tgi_jw_take(&w, st == TG_OK ? json : &unused, err);
    tgi_free(unused);
    return st == TG_OK ? taken : st;
}

/* ---- The answer -------------------------------------------------------------------------- */

static void put_device(tgi_jw *w, const tgi_auto_device *d)
{
    tgi_jw_begin(w, "device", '{');
    tgi_jw_str(w, "gpu", d->gpu);
    tgi_jw_int(w, "alike", d->alike);
    tgi_jw_int(w, "tile", d->tile);
    tgi_jw_int(w, "batch", d->batch);
    tgi_jw_str(w, "precision", "fp16");
    tgi_jw_uint(w, "needed_bytes", d->needed_bytes);
    tgi_jw_num(w, "projected_seconds", d->seconds >= 0 ? d->seconds : NAN);
    tgi_jw_end(w, '}');
}

tg_status tgi_auto_json(const tgi_auto *a, char **json, tgi_err *err)
{
    char machine[256], *unused = NULL;
    const tgi_auto_try *b = &a->tried[a->best];
    tgi_jw w = {0};
    lines l = {&w};
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "machine", tgi_machine_text(&a->machine, machine, sizeof machine));
    tgi_jw_num(&w, "predicted_seconds", b->seconds);
    tgi_jw_bool(&w, "calibrated", a->calibrated);
    tgi_jw_uint(&w, "peak_bytes", b->peak_bytes);
    tgi_jw_begin(&w, "preset", '{');
    const tg_status st = put_preset(&w, a, err);
    tgi_jw_end(&w, '}');
    if (a->device.there)
        put_device(&w, &a->device);
    tgi_jw_begin(&w, "reasons", '[');
    say_all(&l, a);
    tgi_jw_end(&w, ']');
    tgi_jw_end(&w, '}');
    const tg_status taken = tgi_jw_take(&w, st == TG_OK ? json : &unused, err);
    tgi_free(unused);
    return st == TG_OK ? taken : st;
}

tg_status tgi_auto_finish(const tgi_auto *a, const tg_opts *o, char **json, tgi_err *err)
{
    char *preset = NULL, *answer = NULL;
    const char *path = tgi_auto_output(o);
    TGI_TRY(tgi_auto_json(a, &answer, err));
    tg_status st = path ? tgi_auto_preset_json(a, &preset, err) : TG_OK;
    if (st == TG_OK && path)
        st = tgi_write_text(path, preset, tgi_opts_flag(o, TGI_OPT_YES), err);
    tgi_free(preset);
    if (st == TG_OK)
        *json = answer;
    else
        tgi_free(answer);
    return st;
}
