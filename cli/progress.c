/* progress.c - what is shown while a job runs.
 *
 * On a terminal: one line, redrawn in place, as wide as fits, the most useful fields first. In
 * a file or a pipe: a plain line about every ten seconds, so a log stays short and a watcher
 * knows it lives. With --json also {"event":"progress"} lines on stdout, at most one a second.
 * The clock is the library's `seconds`; numbers are never guessed: what is unknown is left out.
 */
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PLAIN_EVERY = 10, EVENT_EVERY = 1, LINE_MAX_CHARS = 200 };

void cli_progress_open(cli *c)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    cli_progress *g = &c->progress;
    g->shown_at = g->event_at = -1.0;
    g->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    g->color = g->terminal && !(no_color && *no_color);
}

static size_t terminal_width(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        return w.ws_col;
    const char *columns = getenv("COLUMNS");
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (size_t)n : 80;
}

void cli_progress_clear(cli *c)
{
    cli_progress *g = &c->progress;
    if (!g->width_drawn)
        return;
    fprintf(stderr, "\r%*s\r", (int)g->width_drawn, "");
    g->width_drawn = 0;
}

/* Append ", field" when it still fits in `room` characters. */
static void field(char *line, size_t room, const char *text)
{
    const size_t n = strlen(line), more = strlen(text) + (n ? 2 : 0);
    if (n + more > room)
        return;
    memcpy(line + n, n ? ", " : "", n ? 2 : 0);
    memcpy(line + n + (n ? 2 : 0), text, strlen(text) + 1);
}

/* ", 128 of 300 frames, 24.1 fps"; of a film through a pipe nobody knows how many there will be. */
static void compose_frames(const tg_progress *p, char line[LINE_MAX_CHARS], size_t room)
{
    char text[96];
    const int64_t made = p->frames_done - p->frames_resumed;
    if (p->frames_total > 0)
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " frames", p->frames_done,
                 p->frames_total);
    else
        snprintf(text, sizeof text, "%" PRId64 " frame%s", p->frames_done,
                 p->frames_done == 1 ? "" : "s");
    field(line, room, text);
    if (made <= 0 || p->seconds < 1.0 || strcmp(p->phase, "run") != 0)
        return;
    snprintf(text, sizeof text, "%.1f fps", (double)made / p->seconds);
    field(line, room, text);
}

static void compose_tiles(const tg_progress *p, char line[LINE_MAX_CHARS], size_t room)
{
    char text[96];
    if (p->tiles_total > 0) {
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " tiles", p->tiles_done,
                 p->tiles_total);
        field(line, room, text);
    }
    /* Of this run's own tiles, while they are made. */
    const int64_t made = p->tiles_done - p->tiles_resumed;
    if (made > 0 && p->seconds >= 1.0 && strcmp(p->phase, "run") == 0) {
        snprintf(text, sizeof text, "%.1f/s", (double)made / p->seconds);
        field(line, room, text);
    }
}

/* "run 43 %, 1 min 23 s left, stage 2 of 5, memory 412.0 of 1.0 GiB, 128 of 300 tiles, 2.1/s"; of a film frames come
 * before the memory, in place of tiles. */
static void compose(const tg_progress *p, char line[LINE_MAX_CHARS], size_t room)
{
    char text[96], a[CLI_TEXT], b[CLI_TEXT];
    double percent = p->fraction * 100.0;
    percent = percent > 0.0 ? percent : 0.0;
    /* 100 % is said when it is done, not when it rounds up. */
    const int shown = percent >= 100.0 ? 100 : percent > 99.0 ? 99 : (int)percent;
    line[0] = 0;
    if (p->fraction < 0)
        snprintf(text, sizeof text, "%.20s", p->phase);
    else
        snprintf(text, sizeof text, "%.20s %d %%", p->phase, shown);
    field(line, room, text);
    if (p->eta_seconds >= 0.0 && shown < 100) {
        snprintf(text, sizeof text, "%s left", cli_seconds(p->eta_seconds, a));
        field(line, room, text);
    }
    if (p->stages > 0) {
        snprintf(text, sizeof text, "stage %" PRId64 " of %" PRId64, p->stage, p->stages);
        field(line, room, text);
    }
    const bool is_film = p->frames_total > 0 || p->frames_done > 0;
    if (is_film)
        compose_frames(p, line, room);
    if (p->memory_bytes && p->budget_bytes) {
        snprintf(text, sizeof text, "memory %s of %s", cli_size(p->memory_bytes, a),
                 cli_size(p->budget_bytes, b));
        field(line, room, text);
    }
    if (!is_film)
        compose_tiles(p, line, room);
}

/* Once, as soon as it is known. */
static void say_resumed(cli *c, const tg_progress *p)
{
    char done[CLI_TEXT], all[CLI_TEXT];
    if (c->progress.resumed || (p->tiles_resumed <= 0 && p->stage_resumed <= 0))
        return;
    c->progress.resumed = true;
    cli_progress_clear(c);
    if (p->stage_resumed > 0)
        fprintf(stderr, "continuing: in stage %s\n", cli_count(p->stage_resumed, done));
    const bool is_film = p->frames_total > 0;
    if (p->tiles_resumed > 0)
        fprintf(stderr, "continuing: %s of %s %s done\n",
                cli_count(is_film ? p->frames_resumed : p->tiles_resumed, done),
                cli_count(is_film ? p->frames_total : p->tiles_total, all),
                is_film ? "frames" : "tiles");
}

static void draw(cli *c, const tg_progress *p)
{
    cli_progress *g = &c->progress;
    char line[LINE_MAX_CHARS];
    size_t width = terminal_width() - 1; /* the last column would wrap on some terminals */
    width = width < LINE_MAX_CHARS ? width : LINE_MAX_CHARS - 1;
    compose(p, line, width);
    const size_t n = strlen(line);
    const size_t pad = g->width_drawn > n && g->width_drawn <= width ? g->width_drawn - n : 0;
    const bool over = g->color && p->budget_bytes && p->memory_bytes > p->budget_bytes;
    fprintf(stderr, "\r%s%s%s%*s", over ? "\033[31m" : "", line, over ? "\033[0m" : "",
            (int)pad, "");
    fflush(stderr);
    g->width_drawn = n;
}

static void event(const tg_progress *p)
{
    fputs("{\"event\":\"progress\"", stdout);
    cli_json_text(stdout, "phase", p->phase);
    cli_json_real(stdout, "fraction", p->fraction < 0 ? (double)NAN : p->fraction);
    cli_json_real(stdout, "seconds", p->seconds);
    cli_json_key(stdout, "eta_seconds");
    if (p->eta_seconds >= 0.0)
        cli_json_number(stdout, p->eta_seconds);
    else
        fputs("null", stdout);
    cli_json_uint(stdout, "memory_bytes", p->memory_bytes);
    cli_json_uint(stdout, "predicted_bytes", p->predicted_bytes);
    cli_json_uint(stdout, "budget_bytes", p->budget_bytes);
    cli_json_int(stdout, "tiles_done", p->tiles_done);
    cli_json_int(stdout, "tiles_total", p->tiles_total);
    cli_json_int(stdout, "tiles_resumed", p->tiles_resumed);
    if (p->frames_total > 0 || p->frames_done > 0) {
        cli_json_int(stdout, "frames_done", p->frames_done);
        cli_json_int(stdout, "frames_total", p->frames_total);
        cli_json_int(stdout, "frames_resumed", p->frames_resumed);
    }
    if (p->stages > 0) {
        cli_json_int(stdout, "stage", p->stage);
        cli_json_int(stdout, "stages", p->stages);
        cli_json_int(stdout, "stage_resumed", p->stage_resumed);
    }
    fputs("}\n", stdout);
    fflush(stdout);
}

void cli_on_progress(void *user, const tg_progress *p)
{
    cli *c = user;
    cli_progress *g = &c->progress;
    g->memory = p->memory_bytes > g->memory ? p->memory_bytes : g->memory;
    g->budget = p->budget_bytes ? p->budget_bytes : g->budget;
    if (strncmp(g->phase, p->phase, sizeof g->phase - 1) != 0) {
        cli_progress_clear(c);
        snprintf(g->phase, sizeof g->phase, "%s", p->phase);
        g->shown_at = 0.0; /* a plain line comes after ten seconds of a phase, not before */
        g->event_at = -1.0;
    }
    if (c->json && (g->event_at < 0.0 || p->seconds - g->event_at >= EVENT_EVERY)) {
        g->event_at = p->seconds;
        event(p);
    }
    if (c->quiet)
        return;
    say_resumed(c, p);
    if (g->terminal) {
        draw(c, p);
    } else if (p->seconds - g->shown_at >= PLAIN_EVERY) {
        char line[LINE_MAX_CHARS];
        g->shown_at = p->seconds;
        compose(p, line, LINE_MAX_CHARS - 1);
        fprintf(stderr, "%s\n", line);
    }
}

void cli_on_log(void *user, tg_log_level level, const char *line)
{
    static const char *const word[] = {"error", "warning", "info", "debug"};
    cli *c = user;
    const int at = (int)level < 0 ? 0 : (int)level > 3 ? 3 : (int)level;
    if (c->asks || at > TG_LOG_WARN + c->verbose)
        return;
    cli_progress_clear(c);
    fprintf(stderr, "tegula: %s: ", word[at]);
    cli_put_clean(stderr, line);
    fputc('\n', stderr);
    if (!c->json)
        return;
    fputs("{\"event\":\"log\"", stdout);
    cli_json_text(stdout, "level", word[at]);
    cli_json_text(stdout, "line", line);
    fputs("}\n", stdout);
    fflush(stdout);
}
