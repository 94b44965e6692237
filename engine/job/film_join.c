/* film_join.c - the file that is made of a film's packets, when each frame is shown in it, and what of the film that was
 * read does not go with it (job_film.h). */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "io/raw_frames.h"
#include "io/y4m.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_MILLISECONDS 1e-4 /* that a clock of doubles is off */
#define MANY_FRAMES 1000     /* of a pipe: what the times of all are like */

typedef struct joining {
    tg_job *job;
    const tgi_journal *packets; /* or */
    tgi_film_spool *spool;
    void *room;
    size_t room_bytes;
    int delay;
    void (*tick)(void *user, double fraction);
    void *tick_user;
} joining;

static tg_status packet(void *user, int64_t i, tgi_av_packet *out, tgi_err *err)
{
    const joining *w = user;
    if (w->spool)
        return tgi_film_spooled_packet(w->spool, i, w->room, w->room_bytes, out, err);
    if (w->tick)
        w->tick(w->tick_user, (double)i / (double)w->job->film->out.frames);
    return tgi_film_packet(w->packets, i, w->room, w->room_bytes, out, err);
}

/* All frames of a film, in their order. */
static int is_whole(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    return from && !tgi_film_source_is_stream(job->source) && !job->map.planes.n &&
           from->frames == job->film->out.frames && !tgi_opts_str(job->opts, TGI_OPT_FPS);
}

/* The film whose words go with it, and other tracks if it is whole; NULL: it is none, or has frames alone. */
static const char *others_of(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    return from && !tgi_film_source_is_stream(job->source) && !tgi_film_is_bare(from->container)
               ? job->set.input
               : NULL;
}

/* In ticks of the film that is written: when frame k of the whole part that was read is shown in the one it is of. Where
 * frames have no times each comes when its number says. */
static int64_t was_shown(const tg_job *job, int64_t k)
{
    return tgi_film_source_info(job->source)->has_times
               ? tgi_film_source_time(job->source, k)
               : tgi_film_source_first(job->source) + k;
}

/* It went on air, or came from a disc: its times count from when a station did. */
static int is_on_air(const tgi_av_info *from)
{
    return strcmp(from->container, "mpegts") == 0 || strcmp(from->container, "mpeg") == 0;
}

/* The same in ticks of `base`, by the clock that the other tracks have. */
static int64_t on_clock(const tg_job *job, int64_t k, tgi_av_ratio *base)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_av_ratio tick = job->film->out.time_base;
    *base = tick;
    if (!from || from->has_times || !is_on_air(from) || from->begins == TGI_AV_NO_TIME)
        return was_shown(job, k);
    *base = from->time_base;
    return from->begins + llround((double)was_shown(job, k) * (double)tick.num /
                                  (double)tick.den * (double)base->den / (double)base->num);
}

/* Frames that the film is shown later by, so that sound which comes in front of a film without times has a place. */
static int64_t waits(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_av_ratio base = from->time_base, tick = job->film->out.time_base;
    if (!is_on_air(from) || from->begins == TGI_AV_NO_TIME ||
        from->sound_begins == TGI_AV_NO_TIME || from->sound_begins >= from->begins)
        return 0;
    return (int64_t)ceil((double)(from->begins - from->sound_begins) * (double)base.num /
                         (double)base.den * (double)tick.den / (double)tick.num);
}

/* When the film begins, in ticks of `base`: as the one that was read, but for some of its frames alone, and where its times
 * count from when a station went on air, which is when its first frame or its first sound does. */
static int64_t origin_of(const tg_job *job, tgi_av_ratio *base)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    *base = job->film->out.time_base;
    if (!from || tgi_opts_str(job->opts, TGI_OPT_FPS))
        return 0;
    const int part = tgi_film_source_is_part(job->source), all = is_whole(job) && !part;
    if (!from->has_times && all && is_on_air(from) && from->begins != TGI_AV_NO_TIME) {
        *base = from->time_base;
        return from->begins -
               llround((double)waits(job) * (double)job->film->out.time_base.num /
                       (double)job->film->out.time_base.den * (double)base->den /
                       (double)base->num);
    }
    if (!from->has_times)
        return is_whole(job) ? on_clock(job, 0, base) : 0;
    if (!is_on_air(from) && is_whole(job) && !part)
        return 0;
    const int64_t first = tgi_film_source_time(job->source, tgi_job_film_plane(job, 0));
    return all && from->sound_begins != TGI_AV_NO_TIME ? tgi_min(first, from->sound_begins)
                                                       : first;
}

static int64_t time_of(void *user, int64_t k)
{
    const tg_job *job = ((const joining *)user)->job;
    const int64_t n = job->film->out.frames;
    const tgi_av_info *from = tgi_film_source_info(job->source);
    tgi_av_ratio base;
    if (!from || tgi_opts_str(job->opts, TGI_OPT_FPS))
        return k; /* each frame a tick */
    if (!from->has_times)
        return k + (is_whole(job) && !tgi_film_source_is_part(job->source) ? waits(job) : 0);
    return (k < n ? tgi_film_source_time(job->source, tgi_job_film_plane(job, k))
                  : tgi_film_source_time(job->source, tgi_job_film_plane(job, n - 1) + 1)) -
           origin_of(job, &base);
}

/* Something does not go with the film: in words. */
static void leave_out(tg_job *job, const char *fmt, ...) TGI_PRINTF(2, 3);
static void leave_out(tg_job *job, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    job->film->left_out++;
    tgi_job_warn(job, "%s", text);
}

static void dropped(void *user, const char *what)
{
    tg_job *job = ((const joining *)user)->job;
    leave_out(job, "%s: %s: it is left out", job->set.output, what);
}

static tgi_av_light light_of(const tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    return from ? from->hdr : (tgi_av_light){.most = 0};
}

/* How it is placed for viewing is said of the film that was read; of another size it is moved as much farther. */
static void put_turn(const tg_job *job, tgi_av_join *j)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_av_coding *c = j->coding;
    if (!from || !from->has_turn || !tgi_film_says_turns(job->set.output))
        return;
    j->has_turn = 1;
    memcpy(j->turn, from->turn, sizeof j->turn);
    const int lies = from->rotation % 180 != 0; /* x of what is seen is y of what is stored */
    const int64_t was[2] = {lies ? from->height : from->width,
                            lies ? from->width : from->height},
                  is[2] = {lies ? c->height : c->width, lies ? c->width : c->height};
    for (int a = 0; a < 2; a++)
        j->turn[6 + a] =
            (int32_t)tgi_clamp(from->turn[6 + a] * is[a] / was[a], INT32_MIN, INT32_MAX);
}

/* Frames that were shown before the part's first one; at a varying rate as many as a clock of that rate counts. */
static int64_t skipped(const tg_job *job)
{
    const int64_t first = tgi_film_source_first(job->source);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_av_ratio base = job->film->out.time_base, rate = job->film->out.coding.rate;
    if (!from->has_times || base.den <= 0 || rate.den <= 0)
        return first;
    const int64_t ticks =
        tgi_film_source_time(job->source, 0) - tgi_film_source_time(job->source, -first);
    return llround((double)ticks * (double)base.num / (double)base.den * (double)rate.num /
                   (double)rate.den);
}

static tgi_av_join join_of(const joining *w, int fd)
{
    const tg_job *job = w->job;
    const tgi_film_out *f = &job->film->out;
    const int part = is_whole(job) && tgi_film_source_is_part(job->source);
    tgi_av_ratio base = f->time_base;
    tgi_av_join j = {.fd = fd,
                     .container = f->container,
                     .coding = &f->coding,
                     .from = others_of(job),
                     .words_alone = !is_whole(job),
                     .frames = f->frames,
                     .delay = w->delay,
                     .time_base = f->time_base,
                     .begin = part ? on_clock(job, 0, &base) : 0,
                     .until = !part ? 0
                              : tgi_film_source_has_last(job->source)
                                  ? INT64_MAX
                                  : on_clock(job, f->frames, &base),
                     .skipped = part ? skipped(job) : 0,
                     .light = light_of(job),
                     .user = (void *)(uintptr_t)w,
                     .packet = packet,
                     .time = time_of,
                     .dropped = dropped,
                     .cancelled = tgi_cancel_signal};
    j.origin = origin_of(job, &j.origin_base);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    j.restarts = from && from->restarts;
    put_turn(job, &j);
    return j;
}

/* Frames are not all shown as long. */
static int varies(const tgi_source *s)
{
    const tgi_av_info *i = tgi_film_source_info(s);
    int64_t least = INT64_MAX, most = 0;
    if (!i || tgi_film_is_bare(i->container))
        return 0;
    for (int64_t k = 1; i->has_times && k < i->frames; k++) {
        const int64_t by = tgi_film_source_time(s, k) - tgi_film_source_time(s, k - 1);
        least = tgi_min(least, by);
        most = tgi_max(most, by);
    }
    return most - 2 > least; /* a coarse clock rounds */
}

/* Other times than the film's own were asked for: is it shown faster or slower by them? */
static void tell_of_rate(tg_job *job)
{
    const tgi_film_out *o = &job->film->out;
    const tgi_av_info *i = tgi_film_source_info(job->source);
    if (!tgi_opts_str(job->opts, TGI_OPT_FPS) || !i || !i->has_times || o->endless ||
        i->end == TGI_AV_NO_TIME || job->map.planes.n || i->frames != o->frames)
        return;
    const double was = (double)(i->end - tgi_film_source_time(job->source, 0)) *
                       (double)i->time_base.num / (double)i->time_base.den,
                 each = (double)o->coding.rate.den / (double)o->coding.rate.num,
                 now = (double)o->frames * each;
    if (was > 0 && fabs(now - was) > fmax(2 * each, 0.01 * was))
        tgi_job_warn(job, "%s: it takes %.4g s at --fps %s, and %s%s takes %.4g s%s",
                     job->set.output, now, tgi_opts_str(job->opts, TGI_OPT_FPS),
                     tgi_film_source_is_part(job->source) ? "that part of " : "",
                     job->set.input, was,
                     varies(job->source) ? ", as its frames are not all shown as long" : "");
}

/* A Matroska counts milliseconds. */
static void tell_of_milliseconds(const joining *w)
{
    tg_job *job = w->job;
    const tgi_film_out *o = &job->film->out;
    const double ms = 1000.0 * (double)o->time_base.num / (double)o->time_base.den;
    const int64_t n = o->endless ? MANY_FRAMES : o->frames;
    double most = 0;
    if (!tgi_film_source_info(job->source) || tgi_opts_str(job->opts, TGI_OPT_FPS) ||
        (strcmp(o->container, "matroska") != 0 && strcmp(o->container, "webm") != 0))
        return;
    for (int64_t k = 0; k < n; k++) {
        const double at = (double)(o->endless ? k : time_of((void *)(uintptr_t)w, k)) * ms;
        most = fmax(most, fabs(at - round(at)));
    }
    if (most > NO_MILLISECONDS)
        leave_out(job,
                  "%s: a .%s counts milliseconds: frames are shown up to %.2g ms beside their "
                  "times in %s",
                  job->set.output, strcmp(o->container, "webm") == 0 ? "webm" : "mkv", most,
                  job->set.input);
}

static const char *end_of_bare(const tg_job *job)
{
    return strcmp(job->film->out.container, TGI_Y4M_CONTAINER) == 0 ? ".y4m" : ".raw";
}

/* A .y4m has one rate, and nothing but frames; a .raw has the frames. */
static void tell_of_bare(tg_job *job)
{
    const char *end = end_of_bare(job);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    const tgi_av_ratio rate = job->film->out.coding.rate;
    if (!tgi_film_is_bare(job->film->out.container) || !from)
        return;
    if (varies(job->source) && !tgi_opts_str(job->opts, TGI_OPT_FPS))
        leave_out(job,
                  "%s: frames of %s are shown at times of their own, and a %s has one "
                  "rate: %.6g frames a second, their mean",
                  job->set.output, job->set.input, end, (double)rate.num / (double)rate.den);
    if (is_whole(job) && from->n_streams > 1)
        leave_out(job, "%s: a %s has frames alone: the other tracks of %s are left out",
                  job->set.output, end, job->set.input);
}

/* What frames have beside their pixels, as far as they were read, and nobody told yet. */
static void tell_of_beside(tg_job *job, unsigned now)
{
    static const char *const how[] = {
        "%s: what frames of %s say beside their pixels is left out: %s",
        "%s: all frames of %s are taken as the first says, and later frames say %s"};
    static const struct {
        unsigned bit;
        int how;
        const char *what;
    } known[] = {{TGI_AV_DOLBY_VISION, 0, "the Dolby Vision metadata"},
                 {TGI_AV_HDR10_PLUS, 0, "the HDR10+ metadata (light of each scene)"},
                 {TGI_AV_CAPTIONS, 0, "the closed captions"},
                 {TGI_AV_TIME_CODES, 0, "the time codes"},
                 {TGI_AV_TWO_VIEWS, 0, "that they are two views (stereo)"},
                 {TGI_AV_SPHERE, 0, "that they are of a sphere (360 degrees)"},
                 {TGI_AV_ICC_PROFILE, 0, "the ICC profile of their colours"},
                 {TGI_AV_OTHER_COLOURS, 1, "another range, matrix, transfer or primaries"},
                 {TGI_AV_OTHER_FIELDS, 1, "that they have the rows of two moments"},
                 {TGI_AV_OTHER_ASPECT, 1, "another shape of a pixel"},
                 {TGI_AV_OTHER_TURN, 1, "that they are turned or mirrored otherwise"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (now & ~job->film->told & known[i].bit)
            leave_out(job, how[known[i].how], job->set.output, job->set.input, known[i].what);
    job->film->told |= now;
}

tg_status tgi_job_film_tell_rest(tg_job *job, unsigned earlier, tgi_err *err)
{
    const int before = job->film->left_out;
    tell_of_beside(job, earlier | tgi_film_source_beside(job->source));
    if (!tgi_opts_flag(job->opts, TGI_OPT_STRICT) || job->film->left_out == before)
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s: --strict, and later frames of %s have what it would not: the warning "
                    "says what",
                    job->set.output, job->set.input);
}

/* What a display is told of all frames goes with them; what it is told of each does not. */
static void tell_of_light(tg_job *job)
{
    const tgi_av_light l = light_of(job);
    if (l.dolby_vision) {
        leave_out(job, "%s: the Dolby Vision metadata of %s is left out%s", job->set.output,
                  job->set.input,
                  l.dolby_alone
                      ? "; colours of frames are made for it alone, and look wrong without"
                      : "");
        job->film->told |= TGI_AV_DOLBY_VISION;
    }
    tell_of_beside(job, tgi_film_source_beside(job->source));
    if ((l.has_luminance || l.has_primaries || l.has_levels) &&
        tgi_film_is_bare(job->film->out.container))
        leave_out(job,
                  "%s: a %s does not tell a display of its light, as %s does (HDR mastering "
                  "display, light levels)",
                  job->set.output, end_of_bare(job), job->set.input);
}

/* Where pixels are turned instead, it is by right angles, and their size stays. */
static void tell_of_turn(tg_job *job)
{
    const tgi_av_info *from = tgi_film_source_info(job->source);
    int more = 0;
    if (!from || !from->has_turn || tgi_film_says_turns(job->set.output))
        return;
    for (int k = 0; k < 4; k++) {
        const int64_t m = from->turn[k + k / 2];
        more |= m != 0 && m != 65536 && m != -65536;
    }
    if (more)
        leave_out(
            job,
            "%s: %s is turned or scaled for viewing by more than right angles, which only "
            ".mp4 and .mov say",
            job->set.output, job->set.input);
}

/* What the film that is written will not have of the one that was read. */
tg_status tgi_job_film_tell(tg_job *job, tgi_err *err)
{
    const joining w = {.job = job};
    const tgi_av_join j = join_of(&w, -1);
    job->film->left_out += job->film->out.lost;
    if (job->film->out.note[0])
        tgi_job_warn(job, "%s: %s", job->set.output, job->film->out.note);
    const tgi_av_info *from = tgi_film_source_info(job->source);
    if (j.words_alone && from && (from->n_streams > 1 || from->n_chapters))
        leave_out(job, "%s: %s of %s: its %s are left out", job->set.output,
                  tgi_opts_str(job->opts, TGI_OPT_FPS) ? "not the times" : "only some frames",
                  job->set.input,
                  from->n_streams == 1 ? "chapters"
                  : from->n_chapters   ? "other tracks and chapters"
                                       : "other tracks");
    if (j.from && j.begin != j.until && !from->has_times && from->n_streams > 1)
        tgi_job_warn(
            job,
            "%s: frames of %s have no times: its other tracks are cut as if each came at "
            "the rate of its header, %.6g frames a second",
            job->set.output, job->set.input,
            (double)job->film->out.coding.rate.num / (double)job->film->out.coding.rate.den);
    tell_of_rate(job);
    tell_of_milliseconds(&w);
    tell_of_light(job);
    tell_of_turn(job);
    if (from && from->interlaced == 1 && !job->film->out.coding.fields)
        leave_out(
            job, "%s: frames of %s have the rows of two moments, and this film does not say so",
            job->set.output, job->set.input);
    job->film->left_out += job->map.left_out != 0; /* alpha: told already */
    job->film->left_out += from && from->no_alpha; /* and this, with the film */
    tell_of_bare(job);
    TGI_TRY(job->film->out.ops->join_look(&j, err));
    if (!tgi_opts_flag(job->opts, TGI_OPT_STRICT) || !job->film->left_out)
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s: --strict, and it would not have all of %s: the warnings say what",
                    job->set.output, job->set.input);
}

static tg_status join_packets(joining *w, int fd, const char *made, tgi_err *err)
{
    if (w->spool) {
        w->room_bytes = w->spool->longest;
        w->delay = (int)w->spool->delay;
    } else {
        TGI_TRY(tgi_film_measure(w->packets, w->job->film->out.frames, &w->room_bytes,
                                 &w->delay, err));
    }
    w->room = tgi_malloc(TGI_TAG_IO, w->room_bytes);
    if (!w->room)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for a frame", made);
    const tgi_av_join j = join_of(w, fd);
    const tg_status st = w->job->film->out.ops->join(&j, err);
    tgi_free(w->room);
    return st;
}

static tg_status make(void *arg, const char *partial, const char *made, tgi_err *err)
{
    joining *w = arg;
    tgi_part to = TGI_PART_CLOSED;
    const tgi_part_spec part = {
        .path = made, .ending = "", .bytes = TGI_PART_GROWS, .replace = 1, .at_once = 1};
    (void)partial;
    tg_status st = tgi_part_create(&part, &to, err);
    if (st == TG_OK)
        st = w->job->set.pictures ? tgi_job_film_list(w->job, w->packets, to.fd, made, err)
                                  : join_packets(w, to.fd, made, err);
    if (st == TG_E_NO_SPACE || st == TG_E_IO) {
        const tgi_err why = *err;
        st = tgi_fail(err, st, "%.200s: %.200s: make room, then run the same command again",
                      made, why.text);
    }
    if (st == TG_OK)
        st = tgi_part_sync(&to, err);
    to.keep = st == TG_OK; /* the journal gives it its name */
    tgi_part_drop(&to);
    return st;
}

tg_status tgi_job_film_join(tg_job *job, tgi_journal *packets,
                            void (*tick)(void *user, double fraction), void *user, tgi_err *err)
{
    joining w = {.job = job, .packets = packets, .tick = tick, .tick_user = user};
    if (!job->film)
        return TG_OK;
    TGI_TRY(tgi_job_film_tell_rest(job, (unsigned)tgi_journal_beside(packets), err));
    return tgi_journal_make(packets, make, &w, err);
}

tg_status tgi_job_film_join_spool(tg_job *job, tgi_film_spool *packets, tgi_part *to,
                                  tgi_err *err)
{
    joining w = {.job = job, .spool = packets};
    TGI_TRY(tgi_job_film_tell_rest(job, 0, err));
    const tgi_part_spec part = {.path = job->set.output,
                                .ending = ".made",
                                .bytes = TGI_PART_GROWS,
                                .replace = job->set.overwrite,
                                .at_once = 1};
    TGI_TRY(tgi_film_spool_clear_made(packets, err));
    TGI_TRY(tgi_part_create(&part, to, err));
    TGI_TRY(join_packets(&w, to->fd, job->set.output, err));
    return tgi_part_sync(to, err);
}
