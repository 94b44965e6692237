/* y4m.c - see y4m.h. */
#include "io/y4m.h"

#include "engine/base/arith.h"
#include "engine/base/input.h"
#include "engine/base/mem.h"
#include "io/file_ops.h"
#include "io/rfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 512                       /* bytes of a line at most */
#define MOST_SIDE 65536                /* columns, rows */
#define MOST_PIXELS ((int64_t)1 << 28) /* of a frame */

/* ---- How frames lie ---------------------------------------------------------------------- */

/* What stands behind C, without a depth; and the forms that are close to it. */
static const struct {
    const char *word, *name; /* name: of 8 bits, as ffmpeg spells it */
    int components, log2_w, log2_h;
} kinds[] = {{"420", "yuv420p", 3, 1, 1},
             {"422", "yuv422p", 3, 1, 0},
             {"444", "yuv444p", 3, 0, 0},
             {"411", "yuv411p", 3, 2, 0},
             {"mono", "gray", 1, 0, 0}};

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

static void make_form(int kind, int depth, tgi_av_form *out)
{
    const int wide = depth > 8, chroma = kinds[kind].components > 1;
    *out = (tgi_av_form){.n_components = kinds[kind].components,
                         .n_planes = kinds[kind].components,
                         .wide = wide,
                         .log2_chroma_w = kinds[kind].log2_w,
                         .log2_chroma_h = kinds[kind].log2_h};
    for (int c = 0; c < out->n_components; c++)
        out->component[c] =
            (tgi_av_component){.plane = c, .step = wide ? 2 : 1, .depth = depth};
    if (wide)
        snprintf(out->name, sizeof out->name, "%s%dle", kinds[kind].name, depth);
    else
        snprintf(out->name, sizeof out->name, "%s", kinds[kind].name);
    if (chroma && out->log2_chroma_w && !wide && out->log2_chroma_h)
        snprintf(out->chroma_place, sizeof out->chroma_place, "left");
}

/* Bytes of a row of component c, and its rows. */
static size_t plane_of(const tgi_av_form *f, int c, int width, int height, int64_t *rows)
{
    *rows = c ? columns(f->log2_chroma_h, height) : height;
    return (size_t)(c ? columns(f->log2_chroma_w, width) : width) * (f->wide ? 2 : 1);
}

size_t tgi_y4m_frame_bytes(const tgi_av_form *f, int width, int height)
{
    size_t all = 0;
    int64_t rows;
    for (int c = 0; c < f->n_components; c++) {
        const size_t row = plane_of(f, c, width, height, &rows);
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
static tg_status read_form(const char *word, tgi_av_form *out, tgi_err *err)
{
    for (int k = 0; k < N_KINDS; k++) {
        const size_t n = strlen(kinds[k].word);
        if (strncmp(word, kinds[k].word, n) != 0)
            continue;
        const int chroma = kinds[k].components > 1;
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

static int is_420(const tgi_av_form *f)
{
    return f->n_components == 3 && f->log2_chroma_w && f->log2_chroma_h;
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

size_t tgi_y4m_head(const tgi_av_coding *c, char *text, size_t cap)
{
    char rate[64], aspect[64], depth[16] = "";
    const char *word = "mono", *place = "";
    const tgi_av_form *f = &c->form;
    for (int k = 0; k < N_KINDS; k++)
        if (kinds[k].components == f->n_components && kinds[k].log2_w == f->log2_chroma_w &&
            kinds[k].log2_h == f->log2_chroma_h)
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

/* ---- The first line ---------------------------------------------------------------------- */

/* "30000:1001"; what is none is unknown. */
static tgi_av_ratio read_ratio(const char *text)
{
    char *end;
    const long long a = strtoll(text, &end, 10),
                    b = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    return !*end && a > 0 && b > 0 && a <= INT32_MAX && b <= INT32_MAX ? (tgi_av_ratio){a, b}
                                                                       : (tgi_av_ratio){0, 1};
}

static int read_side(const char *text)
{
    char *end;
    const long n = strtol(text, &end, 10);
    return !*end && n > 0 && n <= MOST_SIDE ? (int)n : 0;
}

/* `line` without its end; spoiled. */
static tg_status read_head(char *line, tgi_av_info *i, tgi_err *err)
{
    char *save = NULL;
    const char *colour = "420", *range = "";
    *i = (tgi_av_info){.codec = "rawvideo",
                       .container = TGI_Y4M_CONTAINER,
                       .rate = {0, 1},
                       .pixel_aspect = {0, 1},
                       .interlaced = -1,
                       .n_streams = 1};
    for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (*w == 'W')
            i->width = read_side(w + 1);
        else if (*w == 'H')
            i->height = read_side(w + 1);
        else if (*w == 'F')
            i->rate = read_ratio(w + 1);
        else if (*w == 'A')
            i->pixel_aspect = read_ratio(w + 1);
        else if (*w == 'I') {
            i->interlaced = w[1] == 'p' ? 0 : w[1] == '?' ? -1 : 1;
            i->fields = w[1] == 't' ? 1 : w[1] == 'b' ? 2 : 0;
        } else if (*w == 'C')
            colour = w + 1;
        else if (strcmp(w, "XCOLORRANGE=FULL") == 0)
            range = "pc";
        else if (strcmp(w, "XCOLORRANGE=LIMITED") == 0)
            range = "tv";
    }
    if (!i->width || !i->height || (int64_t)i->width * i->height > MOST_PIXELS)
        return tgi_fail(err, TG_E_FORMAT,
                        "its first line says no size of frames, or one beyond %d", MOST_SIDE);
    TGI_TRY(read_form(colour, &i->form, err));
    snprintf(i->form.range, sizeof i->form.range, "%s", range);
    i->has_times = i->rate.num > 0;
    i->time_base =
        i->has_times ? (tgi_av_ratio){i->rate.den, i->rate.num} : (tgi_av_ratio){0, 1};
    return TG_OK;
}

/* ---- A film that is read ----------------------------------------------------------------- */

struct tgi_av_film {
    tgi_rfile file; /* or */
    tgi_input pipe; /* fd -1: it is a file */
    uint8_t *ahead; /* of a pipe: bytes that were read behind a line */
    size_t n_ahead, at_ahead;
    int64_t next, ended; /* of a pipe: the frame that comes next; frames that it had, or -1 */
    tgi_av_info info;
    size_t frame_bytes;
    uint64_t first;   /* where the first frame's line is */
    uint64_t *planes; /* where each frame's planes are; NULL: all lines are "FRAME" */
    int64_t room;     /* of that table */
    tgi_av_open how;
    uint8_t *pixels; /* of a frame */
    int64_t shown;   /* the frame that they are of; -1: none */
};

static void close_film(tgi_av_film **pf)
{
    tgi_av_film *f = *pf;
    if (!f)
        return;
    tgi_rfile_close(&f->file);
    tgi_input_close(&f->pipe);
    tgi_free(f->ahead);
    tgi_free(f->planes);
    tgi_free(f->pixels);
    tgi_free(f);
    *pf = NULL;
}

/* The line at `at`, a 0 in the place of its end; *n its bytes with the end. TG_E_FORMAT: none ends there. */
static tg_status line_at(const tgi_rfile *f, uint64_t at, char line[LINE], size_t *n,
                         tgi_err *err)
{
    const uint64_t rest = f->size - at;
    const size_t some = rest < LINE ? (size_t)rest : LINE;
    TGI_TRY(tgi_rfile_read(f, at, line, some, err));
    char *end = memchr(line, '\n', some);
    if (!end)
        return tgi_fail(err, TG_E_FORMAT, "no line ends within %d bytes of byte %llu", LINE,
                        (unsigned long long)at);
    *end = 0;
    *n = (size_t)(end - line) + 1;
    return TG_OK;
}

static int is_frame(const char *line)
{
    return strncmp(line, "FRAME", 5) == 0 && (!line[5] || line[5] == ' ');
}

/* Frame k's planes are at `at`: remembered from the first one on whose line has more than a word. */
static tg_status note_place(tgi_av_film *f, int64_t k, uint64_t at, size_t line, tgi_err *err)
{
    if (!f->planes && line == strlen(TGI_Y4M_FRAME))
        return TG_OK;
    if (k >= f->room) {
        const int64_t room = 2 * k + 64;
        if (f->how.most_bytes && (size_t)room > f->how.most_bytes / sizeof(uint64_t))
            return tgi_fail(err, TG_E_BUDGET,
                            "the places of more than %lld frames need more than the bytes "
                            "allowed: give a larger --ram",
                            (long long)k);
        uint64_t *to = tgi_realloc_n(TGI_TAG_IO, f->planes, (size_t)room, sizeof *to);
        if (!to)
            return tgi_fail(err, TG_E_NOMEM, "no memory for the places of %lld frames",
                            (long long)k);
        for (int64_t i = 0; !f->planes && i < k; i++)
            to[i] = f->first + (uint64_t)i * (strlen(TGI_Y4M_FRAME) + f->frame_bytes) +
                    strlen(TGI_Y4M_FRAME);
        f->planes = to;
        f->room = room;
    }
    f->planes[k] = at;
    return TG_OK;
}

/* Go from line to line, to the end of the file. */
static tg_status find_frames(tgi_av_film *f, tgi_err *err)
{
    char line[LINE];
    size_t n = 0;
    int64_t k = 0;
    for (uint64_t at = f->first; at < f->file.size; k++) {
        tgi_err why = {0};
        if (k % 4096 == 0 && f->how.cancelled && f->how.cancelled())
            return tgi_fail(err, TG_E_CANCELLED, "stopped while its frames were counted");
        if (line_at(&f->file, at, line, &n, &why) != TG_OK || !is_frame(line))
            return tgi_fail(err, TG_E_FORMAT, "no FRAME at byte %llu, behind %lld frames",
                            (unsigned long long)at, (long long)k);
        at += n;
        if (f->file.size - at < f->frame_bytes && f->how.truncated && k) {
            f->info.declared_frames = k + 1; /* it has begun, so there was one */
            break;
        }
        if (f->file.size - at < f->frame_bytes)
            return tgi_fail(
                err, TG_E_FORMAT,
                "frame %lld has %llu bytes of %zu: the film is cut; --allow-truncated takes "
                "those before it",
                (long long)k, (unsigned long long)(f->file.size - at), f->frame_bytes);
        TGI_TRY(note_place(f, k, at, n, err));
        at += f->frame_bytes;
    }
    f->info.frames = f->info.end = k;
    return k ? TG_OK : tgi_fail(err, TG_E_FORMAT, "a film without frames");
}

/* ---- A film that comes through a pipe ---------------------------------------------------- */

#define AHEAD 65536

/* n bytes that come next, or fewer where it ends before. */
static tg_status pull(tgi_av_film *f, void *to, size_t n, size_t *got, tgi_err *err)
{
    for (*got = 0; *got < n;) {
        const size_t there = f->n_ahead - f->at_ahead,
                     some = n - *got < there ? n - *got : there;
        memcpy((char *)to + *got, f->ahead + f->at_ahead, some);
        f->at_ahead += some;
        *got += some;
        if (*got == n)
            break;
        size_t more = 0;
        if (n - *got >= AHEAD) { /* straight to where it belongs */
            TGI_TRY(tgi_input_read(&f->pipe, (char *)to + *got, n - *got, &more, err));
            *got += more;
        } else {
            TGI_TRY(tgi_input_read(&f->pipe, f->ahead, AHEAD, &more, err));
            f->n_ahead = more;
            f->at_ahead = 0;
        }
        if (!more)
            break;
    }
    return TG_OK;
}

/* The next line, a 0 in the place of its end. *there 0: nothing comes any more. */
static tg_status pull_line(tgi_av_film *f, char line[LINE], int *there, tgi_err *err)
{
    size_t got = 0;
    *there = 0;
    for (size_t n = 0; n < LINE; n++) {
        TGI_TRY(pull(f, line + n, 1, &got, err));
        if (!got && !n)
            return TG_OK;
        if (!got)
            return tgi_fail(err, TG_E_FORMAT, "it ends in the midst of a line");
        *there = 1;
        if (line[n] == '\n') {
            line[n] = 0;
            return TG_OK;
        }
    }
    return tgi_fail(err, TG_E_FORMAT, "no line ends within %d bytes", LINE);
}

static tg_status open_pipe(tgi_av_film *f, const char *path, tgi_err *err)
{
    char line[LINE];
    size_t got = 0, word = strlen(TGI_Y4M_BEGINS);
    int there = 0;
    TGI_TRY(strcmp(path, "-") == 0 ? tgi_input_open_stdin(&f->pipe, err)
                                   : tgi_input_open(path, &f->pipe, err));
    f->pipe.patient = 1;
    f->ahead = tgi_malloc(TGI_TAG_IO, AHEAD);
    if (!f->ahead)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader of films");
    TGI_TRY(pull(f, line, word, &got, err));
    if (!got)
        return tgi_fail(err, TG_E_FORMAT, "nothing came");
    if (got < word || memcmp(line, TGI_Y4M_BEGINS, word) != 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "no YUV4MPEG2 comes: only that is read from a pipe (ffmpeg ... -f "
                        "yuv4mpegpipe -)");
    TGI_TRY(pull_line(f, line, &there, err));
    TGI_TRY(read_head(line, &f->info, err));
    f->info.frames = f->info.end = TGI_Y4M_ENDLESS;
    f->frame_bytes = tgi_y4m_frame_bytes(&f->info.form, f->info.width, f->info.height);
    f->info.decoder_bytes = f->frame_bytes;
    return TG_OK;
}

/* Frame k of a pipe is the next one. */
static tg_status load_next(tgi_av_film *f, int64_t k, tgi_err *err)
{
    char line[LINE];
    size_t got = 0;
    int there = 0;
    if (k != f->next)
        return tgi_fail(
            err, TG_E_ARG,
            "frame %lld comes through a pipe, which is at frame %lld: write it to a "
            "file first",
            (long long)k, (long long)f->next);
    f->shown = -1;
    if (f->ended < 0)
        TGI_TRY(pull_line(f, line, &there, err));
    if (!there && k == 0)
        return tgi_fail(err, TG_E_FORMAT, "a film without frames");
    if (!there) {
        f->ended = k;
        return tgi_fail(err, TG_E_CANCELLED, "it ends behind %lld frames", (long long)k);
    }
    if (!is_frame(line))
        return tgi_fail(err, TG_E_FORMAT, "no FRAME behind %lld frames", (long long)k);
    TGI_TRY(pull(f, f->pixels, f->frame_bytes, &got, err));
    if (got < f->frame_bytes)
        return tgi_fail(err, TG_E_FORMAT, "frame %lld has %zu bytes of %zu: the film is cut",
                        (long long)k, got, f->frame_bytes);
    f->shown = k;
    f->next++;
    return TG_OK;
}

int tgi_y4m_is_stream(const tgi_av_film *f)
{
    return f->pipe.fd >= 0;
}

int64_t tgi_y4m_ended(const tgi_av_film *f)
{
    return f->ended;
}

/* ---- Either ------------------------------------------------------------------------------ */

static tg_status open_file(tgi_av_film *f, const char *path, tgi_err *err)
{
    char line[LINE];
    size_t n = 0;
    TGI_TRY(tgi_rfile_open(path, &f->file, err));
    TGI_TRY(line_at(&f->file, 0, line, &n, err));
    TGI_TRY(read_head(line, &f->info, err));
    f->first = n;
    f->frame_bytes = tgi_y4m_frame_bytes(&f->info.form, f->info.width, f->info.height);
    f->info.decoder_bytes = f->frame_bytes;
    return find_frames(f, err);
}

static tg_status open_parts(tgi_av_film *f, const char *path, tgi_err *err)
{
    TGI_TRY(strcmp(path, "-") == 0 || tgi_input_is_stream(path) ? open_pipe(f, path, err)
                                                                : open_file(f, path, err));
    f->pixels = tgi_malloc(TGI_TAG_IO, f->frame_bytes);
    return f->pixels ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a frame");
}

static tg_status open_film(const char *path, const tgi_av_open *o, tgi_av_film **out,
                           tgi_err *err)
{
    tgi_av_film *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader of films");
    f->how = *o;
    f->file.fd = f->pipe.fd = -1;
    f->shown = f->ended = -1;
    const tg_status st = open_parts(f, path, err);
    if (st != TG_OK) {
        close_film(&f);
        return st;
    }
    *out = f;
    return TG_OK;
}

static const tgi_av_info *info_of(const tgi_av_film *f)
{
    return &f->info;
}

/* Its frames are all that it has. */
static int track(const tgi_av_film *f, int i, tgi_av_track *out)
{
    if (i != 0)
        return 0;
    *out = (tgi_av_track){.kind = "video",
                          .codec = "rawvideo",
                          .width = info_of(f)->width,
                          .height = info_of(f)->height};
    return 1;
}

static int64_t time_of(const tgi_av_film *f, int64_t k)
{
    return f->info.has_times ? k : TGI_AV_NO_TIME;
}

static tg_status load(tgi_av_film *f, int64_t k, tgi_err *err)
{
    const size_t line = strlen(TGI_Y4M_FRAME);
    const uint64_t at =
        f->planes ? f->planes[k] : f->first + (uint64_t)k * (line + f->frame_bytes) + line;
    f->shown = -1;
    TGI_TRY(tgi_rfile_read(&f->file, at, f->pixels, f->frame_bytes, err));
    f->shown = k;
    return TG_OK;
}

/* Planes of a frame that lies at `pixels`, one behind the other. */
static void point(const tgi_av_form *f, int width, int height, uint8_t *pixels,
                  uint8_t *plane[], int64_t pitch[])
{
    int64_t rows;
    for (int c = 0; c < f->n_components; c++) {
        const size_t row = plane_of(f, c, width, height, &rows);
        plane[c] = pixels;
        pitch[c] = (int64_t)row;
        pixels += row * (size_t)rows;
    }
}

static tg_status frame(tgi_av_film *f, int64_t k, tgi_av_frame *out, tgi_err *err)
{
    uint8_t *plane[TGI_AV_COMPONENTS] = {NULL};
    if (k < 0 || k >= f->info.frames)
        return tgi_fail(err, TG_E_ARG, "frame %lld of %lld", (long long)k,
                        (long long)f->info.frames);
    if (f->shown != k)
        TGI_TRY(tgi_y4m_is_stream(f) ? load_next(f, k, err) : load(f, k, err));
    *out = (tgi_av_frame){.time = time_of(f, k)};
    point(&f->info.form, f->info.width, f->info.height, f->pixels, plane, out->pitch);
    for (int c = 0; c < TGI_AV_COMPONENTS; c++)
        out->plane[c] = plane[c];
    return TG_OK;
}

static int64_t refused(const tgi_av_film *f)
{
    (void)f;
    return 0;
}

/* ---- A film that is written -------------------------------------------------------------- */

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
static tg_status form_for(const char *codec, const char *like, tgi_av_form *out, tgi_err *err)
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
    (void)codec;
    (void)err;
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

static void forms(const char *codec, char *to, size_t cap)
{
    size_t n = 0;
    (void)codec;
    to[0] = 0;
    for (int k = 0; k < N_KINDS; k++)
        for (int depth = 8; depth <= 16; depth++) {
            tgi_av_form form;
            make_form(k, depth, &form);
            if ((depth == 8 || is_depth(depth)) && n < cap)
                n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? ", " : "", form.name);
        }
}

static int holds(const char *container, const char *codec)
{
    return strcmp(container, TGI_Y4M_CONTAINER) == 0 && strcmp(codec, "rawvideo") == 0;
}

struct tgi_av_encoder {
    tgi_av_coding coding;
    uint8_t *pixels; /* of a frame */
    size_t bytes;
    int64_t number;
    int waits; /* it was given, and not taken yet */
};

static void encoder_close(tgi_av_encoder **pe)
{
    if (*pe)
        tgi_free((*pe)->pixels);
    tgi_free(*pe);
    *pe = NULL;
}

static tg_status encoder(const tgi_av_coding *c, tgi_av_encoder **out, tgi_err *err)
{
    tgi_av_encoder *e = tgi_calloc(TGI_TAG_IO, 1, sizeof *e);
    if (e) {
        e->coding = *c;
        e->bytes = tgi_y4m_frame_bytes(&c->form, c->width, c->height);
        e->pixels = tgi_malloc(TGI_TAG_IO, e->bytes);
    }
    if (!e || !e->pixels) {
        encoder_close(&e);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a frame of a film");
    }
    *out = e;
    return TG_OK;
}

static size_t encoder_bytes(const tgi_av_coding *c)
{
    return tgi_sat_add(sizeof(tgi_av_encoder),
                       tgi_y4m_frame_bytes(&c->form, c->width, c->height));
}

static void encoder_words(const tgi_av_coding *c, char *to, size_t cap)
{
    snprintf(to, cap, "-f yuv4mpegpipe -pix_fmt %s", c->form.name);
}

static tg_status blank(tgi_av_encoder *e, tgi_av_blank *out, tgi_err *err)
{
    (void)err;
    *out = (tgi_av_blank){{NULL}, {0}};
    point(&e->coding.form, e->coding.width, e->coding.height, e->pixels, out->plane,
          out->pitch);
    return TG_OK;
}

static tg_status give(tgi_av_encoder *e, int64_t number, tgi_err *err)
{
    (void)err;
    e->waits |= number >= 0;
    e->number = number < 0 ? e->number : number;
    return TG_OK;
}

static tg_status take(tgi_av_encoder *e, tgi_av_packet *out, int *there, tgi_err *err)
{
    (void)err;
    *there = e->waits;
    if (e->waits)
        *out =
            (tgi_av_packet){.bytes = e->pixels, .n = e->bytes, .number = e->number, .key = 1};
    e->waits = 0;
    return TG_OK;
}

static tg_status join(const tgi_av_join *j, tgi_err *err)
{
    static const char path[] = "the film";
    char line[LINE];
    uint64_t at = tgi_y4m_head(j->coding, line, sizeof line);
    TGI_TRY(tgi_file_pwrite(j->fd, path, line, (size_t)at, 0, err));
    for (int64_t k = 0; k < j->frames; k++) {
        tgi_av_packet p;
        if (j->cancelled && j->cancelled())
            return tgi_fail(err, TG_E_CANCELLED, "stopped; the same command goes on");
        TGI_TRY(j->packet(j->user, k, &p, err));
        TGI_TRY(tgi_file_pwrite(j->fd, path, TGI_Y4M_FRAME, strlen(TGI_Y4M_FRAME), at, err));
        at += strlen(TGI_Y4M_FRAME);
        TGI_TRY(tgi_file_pwrite(j->fd, path, p.bytes, p.n, at, err));
        at += p.n;
    }
    return TG_OK;
}

/* It has one track, and who asks knows that. */
static tg_status join_look(const tgi_av_join *j, tgi_err *err)
{
    (void)j;
    (void)err;
    return TG_OK;
}

static const char *version(void)
{
    return "tegula's own";
}

const tgi_av_ops tgi_y4m_ops = {.abi = TGI_AV_ABI,
                                .encoder_bytes = encoder_bytes,
                                .encoder_words = encoder_words,
                                .version = version,
                                .open = open_film,
                                .info = info_of,
                                .track = track,
                                .time = time_of,
                                .frame = frame,
                                .refused = refused,
                                .close = close_film,
                                .form_for = form_for,
                                .forms = forms,
                                .holds = holds,
                                .encoder = encoder,
                                .blank = blank,
                                .give = give,
                                .take = take,
                                .encoder_close = encoder_close,
                                .join = join,
                                .join_look = join_look};
