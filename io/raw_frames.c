/* raw_frames.c - see raw_frames.h. */
#include "io/raw_frames.h"

#include "engine/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- How pixels lie ---------------------------------------------------------------------- */

/* A plane for each component; behind the name comes a depth, none of 8 bits. */
static const struct {
    const char *name;
    int components, is_rgb, has_alpha, log2_w, log2_h;
} planar[] = {{"gray", 1, 0, 0, 0, 0},     {"yuv420p", 3, 0, 0, 1, 1},
              {"yuv422p", 3, 0, 0, 1, 0},  {"yuv444p", 3, 0, 0, 0, 0},
              {"yuv411p", 3, 0, 0, 2, 0},  {"yuva420p", 4, 0, 1, 1, 1},
              {"yuva422p", 4, 0, 1, 1, 0}, {"yuva444p", 4, 0, 1, 0, 0},
              {"gbrp", 3, 1, 0, 0, 0},     {"gbrap", 4, 1, 1, 0, 0}};

static const struct {
    const char *word;
    int depth;
} depths[] = {{"", 8}, {"9le", 9}, {"10le", 10}, {"12le", 12}, {"14le", 14}, {"16le", 16}};

/* All components of a pixel side by side, in this order. */
static const struct {
    const char *name, *order;
    int bytes; /* of each */
} packed[] = {{"rgb24", "rgb", 1},     {"bgr24", "bgr", 1},   {"rgba", "rgba", 1},
              {"bgra", "bgra", 1},     {"argb", "argb", 1},   {"abgr", "abgr", 1},
              {"rgb48le", "rgb", 2},   {"bgr48le", "bgr", 2}, {"rgba64le", "rgba", 2},
              {"bgra64le", "bgra", 2}, {"ya8", "ya", 1},      {"ya16le", "ya", 2}};

/* A plane of luma, and one of both chromas, each for two columns and two rows. */
static const struct {
    const char *name;
    int first, depth, shift; /* which chroma comes first, 1 or 2 */
} in_pairs[] = {
    {"nv12", 1, 8, 0}, {"nv21", 2, 8, 0}, {"p010le", 1, 10, 6}, {"p016le", 1, 16, 0}};

#define N(table) ((int)(sizeof(table) / sizeof *(table)))

static void make_planar(int kind, int depth, tgi_av_form *out)
{
    static const int of_rgb[] = {2, 0, 1, 3}; /* the planes are green, blue, red */
    const int wide = depth > 8;
    *out = (tgi_av_form){.n_components = planar[kind].components,
                         .n_planes = planar[kind].components,
                         .is_rgb = planar[kind].is_rgb,
                         .has_alpha = planar[kind].has_alpha,
                         .wide = wide,
                         .log2_chroma_w = planar[kind].log2_w,
                         .log2_chroma_h = planar[kind].log2_h};
    for (int c = 0; c < out->n_components; c++)
        out->component[c] = (tgi_av_component){
            .plane = out->is_rgb ? of_rgb[c] : c, .step = wide ? 2 : 1, .depth = depth};
}

static void make_packed(int kind, tgi_av_form *out)
{
    const char *order = packed[kind].order, *has_alpha = strchr(order, 'a');
    const int n = (int)strlen(order), bytes = packed[kind].bytes, grey = *order == 'y';
    const char *roles = grey ? "ya" : "rgba";
    *out = (tgi_av_form){.n_components = n,
                         .n_planes = 1,
                         .is_rgb = !grey,
                         .has_alpha = has_alpha != NULL,
                         .wide = bytes > 1};
    for (int c = 0; c < n; c++)
        out->component[c] =
            (tgi_av_component){.step = n * bytes,
                               .offset = (int)(strchr(order, roles[c]) - order) * bytes,
                               .depth = 8 * bytes};
}

static void make_in_pairs(int kind, tgi_av_form *out)
{
    const int wide = in_pairs[kind].depth > 8, bytes = wide ? 2 : 1;
    *out = (tgi_av_form){
        .n_components = 3, .n_planes = 2, .wide = wide, .log2_chroma_w = 1, .log2_chroma_h = 1};
    for (int c = 0; c < 3; c++)
        out->component[c] =
            (tgi_av_component){.plane = c > 0,
                               .step = c ? 2 * bytes : bytes,
                               .offset = c && c != in_pairs[kind].first ? bytes : 0,
                               .shift = in_pairs[kind].shift,
                               .depth = in_pairs[kind].depth};
}

static int look_up(const char *name, tgi_av_form *out)
{
    for (int k = 0; k < N(planar); k++) {
        const size_t n = strlen(planar[k].name);
        for (int d = 0; strncmp(name, planar[k].name, n) == 0 && d < N(depths); d++)
            if (strcmp(name + n, depths[d].word) == 0) {
                make_planar(k, depths[d].depth, out);
                return 1;
            }
    }
    for (int k = 0; k < N(packed); k++)
        if (strcmp(name, packed[k].name) == 0) {
            make_packed(k, out);
            return 1;
        }
    for (int k = 0; k < N(in_pairs); k++)
        if (strcmp(name, in_pairs[k].name) == 0) {
            make_in_pairs(k, out);
            return 1;
        }
    return 0;
}

int tgi_raw_form(const char *name, tgi_av_form *out)
{
    const int known = look_up(name, out);
    if (known)
        snprintf(out->name, sizeof out->name, "%s", name);
    return known;
}

int tgi_raw_form_near(const char *like, tgi_av_form *out)
{
    static const char *const colours[] = {"rgb", "bgr", "gbr", "argb", "abgr", "0rgb", "0bgr"};
    static const char *const wide[] = {"48",     "64",     "p9",  "p1",
                                       "2rgb10", "2bgr10", "f32", "f16"};
    const char *from = like + (*like == 'x'); /* x2rgb10le */
    int is_rgb = *like == 'x', many = 0;
    for (int i = 0; i < N(colours); i++)
        is_rgb |= strncmp(from, colours[i], strlen(colours[i])) == 0;
    for (int i = 0; i < N(wide); i++)
        many |= strstr(like, wide[i]) != NULL;
    return is_rgb && tgi_raw_form(many ? "rgb48le" : "rgb24", out);
}

/* One more word. */
static void add(char *to, size_t cap, const char *before, const char *word)
{
    const size_t n = strlen(to);
    snprintf(to + n, cap - n, "%s%s", n ? before : "", word);
}

void tgi_raw_forms(char *to, size_t cap)
{
    to[0] = 0;
    for (int k = 0; k < N(packed); k++)
        add(to, cap, ", ", packed[k].name);
    for (int k = 0; k < N(in_pairs); k++)
        add(to, cap, ", ", in_pairs[k].name);
    for (int k = 0; k < N(planar); k++)
        add(to, cap, ", ", planar[k].name);
    for (int d = 1; d < N(depths); d++)
        add(to, cap,
            d == 1              ? ", and those from gray on with "
            : d + 1 < N(depths) ? ", "
                                : " or ",
            depths[d].word);
    add(to, cap, "", " behind");
}

/* ---- What is said of them ---------------------------------------------------------------- */

int tgi_raw_rate(const char *text, tgi_av_ratio *out)
{
    double n = 0, by = 1;
    const char *end = text + tgi_number_begin(text, &n);
    *out = (tgi_av_ratio){0, 1};
    if (end != text && *end == '/' && n == floor(n)) {
        by = 0; /* nothing behind it is no rate */
        end += 1 + tgi_number_begin(end + 1, &by);
    }
    if (end == text || *end || !(n > 0) || !(by >= 1) || by != floor(by) ||
        !(n / by >= 0.001) || !(n / by <= 10000) || n > 1e9 || by > 1e9)
        return 0;
    *out = by == 1 ? (tgi_av_ratio){llrint(n * 1000), 1000}
                   : (tgi_av_ratio){llrint(n), llrint(by)};
    return 1;
}

/* A number of columns or rows, digits alone; 0: none. */
static int read_side(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9')
        return 0;
    const long n = strtol(*at, &end, 10);
    *at = end;
    return n > 0 && n <= TGI_RAW_MOST_SIDE ? (int)n : 0;
}

static tg_status refuse(const char *text, const char *why, tgi_err *err)
{
    char all[TGI_RAW_LIST];
    tgi_raw_forms(all, sizeof all);
    return tgi_fail(err, TG_E_ARG,
                    "--raw %.60s: %s: it is WIDTHxHEIGHT,FORMAT or WIDTHxHEIGHT,FORMAT,FPS, as "
                    "in 640x360,rgb24,25, and FORMAT one of %s",
                    text, why, all);
}

tg_status tgi_raw_info(const char *text, tgi_av_info *out, tgi_err *err)
{
    char form[sizeof out->form.name];
    const char *at = text;
    tgi_av_info *i = out;
    *i = (tgi_av_info){.codec = "rawvideo",
                       .container = TGI_RAW_CONTAINER,
                       .rate = {25, 1},
                       .pixel_aspect = {0, 1},
                       .interlaced = -1,
                       .has_times = 1,
                       .n_streams = 1};
    i->width = read_side(&at);
    if (*at == 'x')
        at++;
    else
        i->width = 0;
    i->height = read_side(&at);
    if (!i->width || !i->height || (*at && *at != ',') ||
        (int64_t)i->width * i->height > TGI_RAW_MOST_PIXELS)
        return refuse(text, "no size of frames", err);
    at += *at == ',';
    const size_t n = strcspn(at, ",");
    snprintf(form, sizeof form, "%.*s", n < sizeof form ? (int)n : 0, at);
    if (!tgi_raw_form(form, &i->form))
        return refuse(text, n ? "no FORMAT that is known" : "no FORMAT", err);
    if (at[n] && !tgi_raw_rate(at + n + 1, &i->rate))
        return refuse(text, "FPS is as 25, 29.97 or 30000/1001", err);
    i->mean = i->rate;
    i->time_base = (tgi_av_ratio){i->rate.den, i->rate.num};
    return TG_OK;
}
