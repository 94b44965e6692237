/* text.c - numbers for people, and values for JSON (text.h). */
#include "text.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include <tegula_memory.h>

const char *cli_size(uint64_t bytes, char buf[CLI_TEXT])
{
    return tg_size_text(bytes, buf, CLI_TEXT);
}

const char *cli_seconds(double s, char buf[CLI_TEXT])
{
    if (!(s >= 0.0) || s > 1e9)
        snprintf(buf, CLI_TEXT, "an unknown time");
    else if (s < 0.0995)
        snprintf(buf, CLI_TEXT, "%.0f ms", s < 0.001 ? 1.0 : 1e3 * s);
    else if (s < 9.95)
        snprintf(buf, CLI_TEXT, "%.1f s", s);
    else if (s < 59.5)
        snprintf(buf, CLI_TEXT, "%.0f s", s);
    else {
        const long long t = (long long)(s + 0.5);
        if (t < 3600)
            snprintf(buf, CLI_TEXT, "%lld min %lld s", t / 60, t % 60);
        else if (t < 86400)
            snprintf(buf, CLI_TEXT, "%lld h %lld min", t / 3600, t / 60 % 60);
        else
            snprintf(buf, CLI_TEXT, "%lld d %lld h", t / 86400, t / 3600 % 24);
    }
    return buf;
}

const char *cli_span(double least, double most, char buf[3 * CLI_TEXT])
{
    char from[CLI_TEXT], to[CLI_TEXT];
    cli_seconds(least, from);
    cli_seconds(most, to);
    if (!(least > 0) || strcmp(from, to) == 0) /* 0: a library that does not tell */
        snprintf(buf, 3 * CLI_TEXT, "%s", to);
    else
        snprintf(buf, 3 * CLI_TEXT, "%s to %s", from, to);
    return buf;
}

const char *cli_metric(double v, char buf[CLI_TEXT])
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    int i = 0;
    while (fabs(v) >= 999.95 && i < 6) {
        v /= 1000.0;
        i++;
    }
    snprintf(buf, CLI_TEXT, "%.1f %s", v, unit[i]);
    return buf;
}

const char *cli_count(int64_t n, char buf[CLI_TEXT])
{
    char digits[CLI_TEXT];
    const int all = snprintf(digits, sizeof digits, "%" PRId64, n);
    size_t to = 0;
    for (int i = 0; i < all; i++) {
        buf[to++] = digits[i];
        if (i + 1 < all && (all - 1 - i) % 3 == 0 && digits[i] != '-')
            buf[to++] = ',';
    }
    buf[to] = 0;
    return buf;
}

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_put_clean(FILE *to, const char *s)
{
    for (size_t n; *s; s += n ? n : 1) {
        n = cli_control(s, strlen(s));
        fputc(n ? '?' : *s, to);
    }
}

size_t cli_control(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    if (n && (p[0] < 0x20 || p[0] == 0x7f))
        return 1;
    return n > 1 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0 ? 2 : 0;
}

/* Length of the well-formed UTF-8 sequence at s, or 0. @source RFC 3629, section 4. */
static int utf8_length(const unsigned char *s)
{
    const unsigned char a = s[0];
    if (a < 0x80)
        return 1;
    const int n = a >= 0xc2 && a <= 0xdf   ? 2
                  : a >= 0xe0 && a <= 0xef ? 3
                  : a >= 0xf0 && a <= 0xf4 ? 4
                                           : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) /* also stops at the NUL */
            return 0;
    if ((a == 0xe0 && s[1] < 0xa0) || (a == 0xed && s[1] > 0x9f) ||
        (a == 0xf0 && s[1] < 0x90) || (a == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void cli_json_string(FILE *to, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', to);
    while (*s) {
        const int n = utf8_length(s);
        if (n == 0)
            fputs("\\ufffd", to);
        else if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(to, "\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)n, to);
        s += n ? n : 1;
    }
    fputc('"', to);
}

void cli_json_number(FILE *to, double v)
{
    char buf[40];
    if (!isfinite(v)) {
        fputs("null", to);
        return;
    }
    snprintf(buf, sizeof buf, "%.15g", v);
    if (strtod(buf, NULL) != v)
        snprintf(buf, sizeof buf, "%.17g", v);
    fputs(buf, to);
}

void cli_json_key(FILE *to, const char *key)
{
    fputc(',', to);
    cli_json_string(to, key);
    fputc(':', to);
}

void cli_json_int(FILE *to, const char *key, int64_t v)
{
    cli_json_key(to, key);
    fprintf(to, "%" PRId64, v);
}

void cli_json_uint(FILE *to, const char *key, uint64_t v)
{
    cli_json_key(to, key);
    fprintf(to, "%" PRIu64, v);
}

void cli_json_real(FILE *to, const char *key, double v)
{
    cli_json_key(to, key);
    cli_json_number(to, v);
}

void cli_json_text(FILE *to, const char *key, const char *v)
{
    cli_json_key(to, key);
    if (v)
        cli_json_string(to, v);
    else
        fputs("null", to);
}

const char *cli_memory(size_t most, size_t budget, char buf[3 * CLI_TEXT])
{
    char a[CLI_TEXT], b[CLI_TEXT];
    buf[0] = 0;
    if (most && budget)
        snprintf(buf, 3 * CLI_TEXT, ", memory up to %s of %s", cli_size(most, a),
                 cli_size(budget, b));
    return buf;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* By what lies in it: images, arrays or both. */
static const char *folder_opens_in(const char *path)
{
    int tiffs = 0, arrays = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        tiffs |= dot && strcmp(dot, ".tif") == 0;
        arrays |= dot && strcmp(dot, ".npy") == 0;
    }
    if (d)
        closedir(d);
    if (tiffs && arrays)
        return "open its .tif files with tifffile, libvips or Fiji, its .npy files with "
               "numpy.load";
    return tiffs ? "open its .tif files with tifffile, libvips or Fiji"
                 : "open with numpy.load, one file per output";
}

const char *cli_opens_in(const char *path)
{
    static const char *const films[] = {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".y4m"};
    const char *dot = strrchr(path, '.');
    const size_t n = strlen(path);
    if ((n && path[n - 1] == '/') || is_folder(path))
        return folder_opens_in(path);
    if (dot && strcmp(dot, ".npy") == 0)
        return "open with numpy.load(path, mmap_mode=\"r\")";
    if (dot && (strcmp(dot, ".tif") == 0 || strcmp(dot, ".tiff") == 0))
        return "open with tifffile, libvips or Bio-Formats (checked), Fiji, QuPath or napari";
    if (!dot || strchr(dot, '/'))
        return "a TIFF: open with tifffile, libvips or Bio-Formats (checked), Fiji, QuPath or "
               "napari";
    if (strcmp(dot, ".frames") == 0)
        return "a list of the pictures beside it";
    if (strcasecmp(dot, ".raw") == 0)
        return "open with numpy.fromfile or ffmpeg -f rawvideo";
    for (size_t i = 0; i < sizeof films / sizeof films[0]; i++)
        if (strcasecmp(dot, films[i]) == 0)
            return "play it with mpv, VLC or ffplay";
    return "open with any image viewer";
}
