/* y4m_form.c - see y4m_form.h, and y4m.h. */
#include "io/y4m_form.h"

#include "engine/base/arith.h"
#include "io/raw_frames.h"
#include "io/y4m.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- How frames lie ---------------------------------------------------------------------- */

/* What stands behind C, without a depth; and the form of 8 bits (raw_frames.h). */
static const struct {
    const char *word, *name;
} kinds[] = {{"420", "yuv420p"},
             {"422", "yuv422p"},
             {"444", "yuv444p"},
             {"411", "yuv411p"},
             {"mono", "gray"}};

#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

/* Where chroma of C420 with 8 bits lies. */
static const struct {
    const char *word, *place;
} places[] = {{"jpeg", "center"}, {"mpeg2", "left"}, {"paldv", "topleft"}, {"", "center"}};

static const int depths[] = {8, 9, 10, 12, 14, 16};

static int64_t columns(int log2, int64_t n)
{
    return -((-n) >> log2);
}

static int is_grey(int kind)
{
    return strcmp(kinds[kind].word, "mono") == 0;
}

static int is_420(const tgi_av_form *f)
{
    return f->n_components == 3 && f->log2_chroma_w && f->log2_chroma_h;
}

static void make_form(int kind, int depth, tgi_av_form *out)
{
    char name[sizeof out->name];
    snprintf(name, sizeof name, depth > 8 ? "%s%dle" : "%s", kinds[kind].name, depth);
    *out = (tgi_av_form){0};
    (void)tgi_raw_form(name, out); /* it knows all of these */
    if (is_420(out) && !out->wide)
        snprintf(out->chroma_place, sizeof out->chroma_place, "left");
}

/* Bytes of a row of a plane, and its rows. */
static size_t plane_of(const tgi_av_form *f, int plane, int width, int height, int64_t *rows)
{
    int c = 0;
    while (c + 1 < f->n_components && f->component[c].plane != plane)
        c++;
    const int chroma = !f->is_rgb && f->n_components > 2 && (c == 1 || c == 2);
    *rows = chroma ? columns(f->log2_chroma_h, height) : height;
    return (size_t)(chroma ? columns(f->log2_chroma_w, width) : width) *
           (size_t)f->component[c].step;
}

size_t tgi_y4m_frame_bytes(const tgi_av_form *f, int width, int height)
{
    size_t all = 0;
    int64_t rows;
    for (int p = 0; p < f->n_planes; p++) {
        const size_t row = plane_of(f, p, width, height, &rows);
        all = tgi_sat_add(all, tgi_sat_mul(row, (size_t)rows));
    }
    return all;
}

static int is_depth(int depth)
{
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        if (depths[i] == depth)
            return 1;
    return 0;
}

/* "420p10", "mono16", "420jpeg": what stands behind C. */
tg_status tgi_y4m_read_form(const char *word, tgi_av_form *out, tgi_err *err)
{
    for (int k = 0; k < N_KINDS; k++) {
        const size_t n = strlen(kinds[k].word);
        if (strncmp(word, kinds[k].word, n) != 0)
            continue;
        const int chroma = !is_grey(k);
        const char *rest = word + n, *number = rest + (chroma && *rest == 'p');
        char *end = NULL;
        const long depth = strtol(number, &end, 10);
        if (end != number && !*end && number > rest - !chroma && depth > 8 &&
            is_depth((int)depth)) {
            make_form(k, (int)depth, out);
            return TG_OK;
        }
        make_form(k, 8, out);
        if (!*rest && k != 0)
            return TG_OK;
        for (size_t i = 0; k == 0 && i < sizeof places / sizeof places[0]; i++)
            if (strcmp(rest, places[i].word) == 0) {
                snprintf(out->chroma_place, sizeof out->chroma_place, "%s", places[i].place);
                return TG_OK;
            }
    }
    return tgi_fail(err, TG_E_UNSUPPORTED, "pixels of kind C%.40s, which are not read", word);
}

static int depth_of(const tgi_av_form *f)
{
    return f->component[0].depth;
}

const char *tgi_y4m_place(const tgi_av_form *f)
{
    if (f->n_components < 3 || !f->log2_chroma_w)
        return "";
    for (size_t i = 0; is_420(f) && !f->wide && i < sizeof places / sizeof places[0]; i++)
        if (strcmp(f->chroma_place, places[i].place) == 0)
            return places[i].place;
    return "left"; /* what readers assume where it is not said */
}

/* Planes of a frame that lies at `pixels`, one behind the other. */
void tgi_y4m_point(const tgi_av_form *f, int width, int height, uint8_t *pixels,
                   uint8_t *plane[], int64_t pitch[])
{
    int64_t rows;
    for (int p = 0; p < f->n_planes; p++) {
        const size_t row = plane_of(f, p, width, height, &rows);
        plane[p] = pixels;
        pitch[p] = (int64_t)row;
        pixels += row * (size_t)rows;
    }
}

static int is_raw(const char *codec)
{
    return strcmp(codec, TGI_RAW_CODEC) == 0;
}

/* ---- The form for what is written --------------------------------------------------------- */

/* Bits of a sample in a form that ffmpeg names so: the number that its name ends in, or 8. */
static int depth_named(const char *like)
{
    static const struct {
        const char *begins;
        int depth;
    } known[] = {{"rgb48", 16}, {"bgr48", 16}, {"rgba64", 16}, {"bgra64", 16}, {"x2rgb10", 10},
                 {"p010", 10},  {"p012", 12},  {"p016", 16},   {"p210", 10},   {"p212", 12},
                 {"p216", 16},  {"p410", 10},  {"p412", 12},   {"p416", 16},   {"nv20", 10}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(like, known[i].begins, strlen(known[i].begins)) == 0)
            return known[i].depth;
    size_t n = strlen(like);
    if (n > 2 && (strcmp(like + n - 2, "le") == 0 || strcmp(like + n - 2, "be") == 0))
        n -= 2;
    size_t at = n;
    while (at && like[at - 1] >= '0' && like[at - 1] <= '9')
        at--;
    const int depth = at < n && n - at <= 2 ? (int)strtol(like + at, NULL, 10) : 8;
    return is_depth(depth) ? depth : depth > 8 && depth < 16 ? depth + 1 : 8;
}

/* The nearest: grey of what is grey, the chroma of what has some, else a chroma for each pixel. */
tg_status tgi_y4m_form_for(const char *codec, const char *like, tgi_av_form *out, tgi_err *err)
{
    static const struct {
        const char *begins, *kind;
    } near[] = {{"yuv420", "420"},  {"yuvj420", "420"}, {"yuva420", "420"}, {"nv12", "420"},
                {"nv21", "420"},    {"p01", "420"},     {"yuv422", "422"},  {"yuvj422", "422"},
                {"yuva422", "422"}, {"nv16", "422"},    {"nv20", "422"},    {"p21", "422"},
                {"yuyv422", "422"}, {"uyvy422", "422"}, {"yuv411", "411"},  {"yuvj411", "411"},
                {"gray", "mono"},   {"ya", "mono"},     {"mono", "mono"}};
    const char *word = "444";
    const int packed = (strncmp(like, "nv", 2) == 0 && strncmp(like, "nv20", 4) != 0) ||
                       strstr(like, "yv") != NULL;
    (void)err;
    if (is_raw(codec) && (tgi_raw_form(like, out) || tgi_raw_form_near(like, out)))
        return TG_OK;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
        if (strncmp(like, near[i].begins, strlen(near[i].begins)) == 0) {
            word = near[i].kind;
            break;
        }
    for (int k = 0; k < N_KINDS; k++)
        if (strcmp(kinds[k].word, word) == 0)
            make_form(k, packed ? 8 : depth_named(like), out);
    return TG_OK;
}

void tgi_y4m_forms(const char *codec, char *to, size_t cap)
{
    size_t n = 0;
    to[0] = 0;
    if (is_raw(codec)) {
        tgi_raw_forms(to, cap);
        return;
    }
    for (int k = 0; k < N_KINDS; k++)
        for (int depth = 8; depth <= 16; depth++) {
            tgi_av_form form;
            make_form(k, depth, &form);
            if (is_depth(depth) && n < cap)
                n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "", form.name);
        }
}

/* ---- What stands in front of frames ------------------------------------------------------- */

static int64_t shared_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a > 0 ? a : 1;
}

static void put_ratio(char *to, size_t cap, char letter, tgi_av_ratio r)
{
    const int64_t d = shared_divisor(r.num, r.den);
    snprintf(to, cap, " %c%lld:%lld", letter, (long long)(r.num / d),
             (long long)(r.num ? r.den / d : 0));
}

const char *tgi_y4m_line(const tgi_av_coding *c)
{
    return is_raw(c->codec) ? "" : TGI_Y4M_FRAME;
}

size_t tgi_y4m_head(const tgi_av_coding *c, char *text, size_t cap)
{
    char rate[64], aspect[64], depth[16] = "";
    const char *word = "mono", *place = "";
    const tgi_av_form *f = &c->form;
    if (is_raw(c->codec))
        return 0;
    for (int k = 0; k < N_KINDS; k++)
        if (strncmp(f->name, kinds[k].name, strlen(kinds[k].name)) == 0)
            word = kinds[k].word;
    if (f->wide)
        snprintf(depth, sizeof depth, "%s%d", f->n_components > 1 ? "p" : "", depth_of(f));
    for (size_t i = 0; is_420(f) && !f->wide && !*place; i++)
        if (strcmp(places[i].place, tgi_y4m_place(f)) == 0)
            place = places[i].word;
    put_ratio(rate, sizeof rate, 'F', c->rate);
    put_ratio(aspect, sizeof aspect, 'A', c->pixel_aspect);
    const int n = snprintf(text, cap, TGI_Y4M_BEGINS "W%d H%d%s I%c%s C%s%s%s%s\n", c->width,
                           c->height, rate, "ptb"[c->fields], aspect, word, place, depth,
                           strcmp(f->range, "pc") == 0   ? " XCOLORRANGE=FULL"
                           : strcmp(f->range, "tv") == 0 ? " XCOLORRANGE=LIMITED"
                                                         : "");
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}
