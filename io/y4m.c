/* y4m.c - see y4m.h. */
#include "io/y4m.h"

#include "engine/base/arith.h"
#include "engine/base/input.h"
#include "engine/base/mem.h"
#include "io/file_ops.h"
#include "io/raw_frames.h"
#include "io/rfile.h"
#include "io/y4m_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 512 /* bytes of a line at most */

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
    return !*end && n > 0 && n <= TGI_RAW_MOST_SIDE ? (int)n : 0;
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
    if (!i->width || !i->height || (int64_t)i->width * i->height > TGI_RAW_MOST_PIXELS)
        return tgi_fail(err, TG_E_FORMAT,
                        "its first line says no size of frames, or one beyond %d",
                        TGI_RAW_MOST_SIDE);
    TGI_TRY(tgi_y4m_read_form(colour, &i->form, err));
    snprintf(i->form.range, sizeof i->form.range, "%s", range);
    i->has_times = i->rate.num > 0;
    i->mean = i->rate;
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
    int bare; /* no lines: somebody said how its frames lie (raw_frames.h) */
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

/* Frames without lines: as many as its bytes are. */
static tg_status count_frames(tgi_av_film *f, tgi_err *err)
{
    const int64_t n = (int64_t)(f->file.size / f->frame_bytes);
    const size_t rest = (size_t)(f->file.size % f->frame_bytes);
    f->info.frames = f->info.end = n;
    if (!f->file.size)
        return tgi_fail(err, TG_E_FORMAT, "a film without frames");
    if (rest && !(f->how.truncated && n))
        return tgi_fail(err, TG_E_FORMAT,
                        "frame %lld has %zu bytes of %zu: the film is cut, or --raw says "
                        "another size or FORMAT than it has; --allow-truncated takes the "
                        "frames before it",
                        (long long)n, rest, f->frame_bytes);
    f->info.declared_frames = rest ? n + 1 : 0; /* it has begun, so there was one */
    return TG_OK;
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

/* The pixels of the next frame. *there 0: nothing comes any more. */
static tg_status pull_pixels(tgi_av_film *f, int64_t k, int *there, tgi_err *err)
{
    size_t got = 0;
    TGI_TRY(pull(f, f->pixels, f->frame_bytes, &got, err));
    *there = got > 0;
    if (got == f->frame_bytes || (!got && f->bare))
        return TG_OK;
    return tgi_fail(err, TG_E_FORMAT, "frame %lld has %zu bytes of %zu: the film is cut%s%s",
                    (long long)k, got, f->frame_bytes,
                    f->bare ? ", or --raw says another size or FORMAT than it has" : "",
                    f->how.truncated
                        ? "; --allow-truncated takes such from a file alone, as nobody "
                          "knows it of a pipe before its end"
                        : "");
}

static tg_status pull_head(tgi_av_film *f, tgi_err *err)
{
    char line[LINE];
    size_t got = 0, word = strlen(TGI_Y4M_BEGINS);
    int there = 0;
    TGI_TRY(pull(f, line, word, &got, err));
    if (!got)
        return tgi_fail(err, TG_E_FORMAT, "nothing came");
    if (got < word || memcmp(line, TGI_Y4M_BEGINS, word) != 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "no YUV4MPEG2 comes: only that is read from a pipe (ffmpeg ... -f "
                        "yuv4mpegpipe -), and frames without a header that --raw describes");
    TGI_TRY(pull_line(f, line, &there, err));
    return read_head(line, &f->info, err);
}

static tg_status open_pipe(tgi_av_film *f, const char *path, tgi_err *err)
{
    TGI_TRY(strcmp(path, "-") == 0 ? tgi_input_open_stdin(&f->pipe, err)
                                   : tgi_input_open(path, &f->pipe, err));
    f->pipe.patient = 1;
    f->ahead = tgi_malloc(TGI_TAG_IO, AHEAD);
    if (!f->ahead)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader of films");
    if (!f->bare)
        TGI_TRY(pull_head(f, err));
    f->info.frames = f->info.end = TGI_Y4M_ENDLESS;
    f->frame_bytes = tgi_y4m_frame_bytes(&f->info.form, f->info.width, f->info.height);
    f->info.decoder_bytes = f->frame_bytes;
    return TG_OK;
}

/* Frame k of a pipe is the next one. */
static tg_status load_next(tgi_av_film *f, int64_t k, tgi_err *err)
{
    char line[LINE];
    int there = 0;
    if (k != f->next)
        return tgi_fail(
            err, TG_E_ARG,
            "frame %lld comes through a pipe, which is at frame %lld: write it to a "
            "file first",
            (long long)k, (long long)f->next);
    f->shown = -1;
    if (f->ended < 0)
        TGI_TRY(f->bare ? pull_pixels(f, k, &there, err) : pull_line(f, line, &there, err));
    if (!there && k == 0)
        return tgi_fail(err, TG_E_FORMAT, "a film without frames");
    if (!there) {
        f->ended = k;
        return tgi_fail(err, TG_E_CANCELLED, "it ends behind %lld frames", (long long)k);
    }
    if (!f->bare && !is_frame(line))
        return tgi_fail(err, TG_E_FORMAT, "no FRAME behind %lld frames", (long long)k);
    if (!f->bare)
        TGI_TRY(pull_pixels(f, k, &there, err));
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
    if (!f->bare) {
        TGI_TRY(line_at(&f->file, 0, line, &n, err));
        TGI_TRY(read_head(line, &f->info, err));
    }
    f->first = n;
    f->frame_bytes = tgi_y4m_frame_bytes(&f->info.form, f->info.width, f->info.height);
    f->info.decoder_bytes = f->frame_bytes;
    return f->bare ? count_frames(f, err) : find_frames(f, err);
}

static tg_status open_parts(tgi_av_film *f, const char *path, tgi_err *err)
{
    TGI_TRY(strcmp(path, "-") == 0 || tgi_input_is_stream(path) ? open_pipe(f, path, err)
                                                                : open_file(f, path, err));
    f->pixels = tgi_malloc(TGI_TAG_IO, f->frame_bytes);
    return f->pixels ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a frame");
}

tg_status tgi_y4m_open_raw(const char *path, const tgi_av_info *raw, const tgi_av_open *o,
                           tgi_av_film **out, tgi_err *err)
{
    tgi_av_film *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader of films");
    f->how = *o;
    f->file.fd = f->pipe.fd = -1;
    f->shown = f->ended = -1;
    f->bare = raw != NULL;
    if (raw)
        f->info = *raw;
    const tg_status st = open_parts(f, path, err);
    if (st != TG_OK) {
        close_film(&f);
        return st;
    }
    *out = f;
    return TG_OK;
}

static tg_status open_film(const char *path, const tgi_av_open *o, tgi_av_film **out,
                           tgi_err *err)
{
    return tgi_y4m_open_raw(path, NULL, o, out, err);
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
    const size_t line = f->bare ? 0 : strlen(TGI_Y4M_FRAME);
    const uint64_t at =
        f->planes ? f->planes[k] : f->first + (uint64_t)k * (line + f->frame_bytes) + line;
    f->shown = -1;
    TGI_TRY(tgi_rfile_read(&f->file, at, f->pixels, f->frame_bytes, err));
    f->shown = k;
    return TG_OK;
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
    tgi_y4m_point(&f->info.form, f->info.width, f->info.height, f->pixels, plane, out->pitch);
    for (int c = 0; c < TGI_AV_COMPONENTS; c++)
        out->plane[c] = plane[c];
    return TG_OK;
}

static int64_t refused(const tgi_av_film *f)
{
    (void)f;
    return 0;
}

static unsigned beside(const tgi_av_film *f)
{
    (void)f;
    return 0;
}

/* ---- A film that is written -------------------------------------------------------------- */

static int is_raw(const char *codec)
{
    return strcmp(codec, TGI_RAW_CODEC) == 0;
}

static int holds(const char *container, const char *codec)
{
    return is_raw(codec)
               ? strcmp(container, TGI_RAW_CONTAINER) == 0
               : strcmp(container, TGI_Y4M_CONTAINER) == 0 && strcmp(codec, "rawvideo") == 0;
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
    snprintf(to, cap, "-f %s -pix_fmt %s",
             is_raw(c->codec) ? TGI_RAW_CONTAINER : TGI_Y4M_CONTAINER, c->form.name);
}

static tg_status blank(tgi_av_encoder *e, tgi_av_blank *out, tgi_err *err)
{
    (void)err;
    *out = (tgi_av_blank){{NULL}, {0}};
    tgi_y4m_point(&e->coding.form, e->coding.width, e->coding.height, e->pixels, out->plane,
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
    const char *before = tgi_y4m_line(j->coding);
    uint64_t at = tgi_y4m_head(j->coding, line, sizeof line);
    if (at)
        TGI_TRY(tgi_file_pwrite(j->fd, path, line, (size_t)at, 0, err));
    for (int64_t k = 0; k < j->frames; k++) {
        tgi_av_packet p;
        if (j->cancelled && j->cancelled())
            return tgi_fail(err, TG_E_CANCELLED, "stopped; the same command goes on");
        TGI_TRY(j->packet(j->user, k, &p, err));
        if (*before)
            TGI_TRY(tgi_file_pwrite(j->fd, path, before, strlen(before), at, err));
        at += strlen(before);
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
                                .beside = beside,
                                .close = close_film,
                                .form_for = tgi_y4m_form_for,
                                .forms = tgi_y4m_forms,
                                .holds = holds,
                                .encoder = encoder,
                                .blank = blank,
                                .give = give,
                                .take = take,
                                .encoder_close = encoder_close,
                                .join = join,
                                .join_look = join_look};
