/* ways_text.c - the ways in which a film can be inpainted on a machine, as a table: one line each, and below it what is
 * another than at best. */
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t number(const char *row, const char *key)
{
    size_t n = 0;
    const char *v = cli_json_member(row, key, &n);
    return v ? strtoll(v, NULL, 10) : 0;
}

static double real(const char *row, const char *key)
{
    size_t n = 0;
    const char *v = cli_json_member(row, key, &n);
    return v ? strtod(v, NULL) : 0;
}

static bool is_true(const char *row, const char *key)
{
    size_t n = 0;
    const char *v = cli_json_member(row, key, &n);
    return v && n == 4 && memcmp(v, "true", 4) == 0;
}

/* A string member without its quotes and escapes, of those that have none but in words for people. */
static void text(const char *row, const char *key, char *out, size_t cap)
{
    size_t n = 0, k = 0;
    const char *v = cli_json_member(row, key, &n);
    const bool is_text = v && n > 0 && v[0] == '"'; /* null is none */
    for (size_t i = 1; is_text && i + 1 < n && k + 1 < cap; i++)
        if (v[i] != '\\' || v[i + 1] == '\\')
            out[k++] = v[i];
    out[k] = 0;
}

/* `compared`: a GPU may compute, so what one would hold is no matter where the processor does. */
static void print_way(FILE *to, const char *row, bool compared)
{
    char what[48], kind[8], differs[512], peak[CLI_TEXT], scratch[CLI_TEXT], gpu[CLI_TEXT],
        time[3 * CLI_TEXT], frames[48], set[64] = "", on[24];
    text(row, "what", what, sizeof what);
    text(row, "precision", kind, sizeof kind);
    text(row, "differs", differs, sizeof differs);
    text(row, "device", on, sizeof on);
    const bool far = strcmp(on, "computes") == 0;
    snprintf(frames, sizeof frames, "%" PRId64 "x%" PRId64, number(row, "width"),
             number(row, "height"));
    if (kind[0])
        snprintf(set, sizeof set, "%" PRId64 "/%" PRId64 "/%" PRId64 " %s%s%s",
                 number(row, "subvideo_length"), number(row, "neighbor_length"),
                 number(row, "ref_stride"), kind, is_true(row, "exact") ? " exact" : "",
                 far && compared ? " GPU" : "");
    fprintf(to, "%c %-22s ", is_true(row, "chosen") ? '*' : ' ', what);
    if (is_true(row, "fits")) {
        const int64_t disk = number(row, "scratch_bytes"), device = number(row, "device_bytes");
        fprintf(to, "%-11s %-19s %10s %10s %10s  %s\n", frames, set,
                cli_size((uint64_t)number(row, "peak_bytes"), peak),
                disk ? cli_size((uint64_t)disk, scratch) : "-",
                device && (far || !compared) ? cli_size((uint64_t)device, gpu) : "-",
                cli_span(real(row, "seconds_least"), real(row, "seconds"), time));
    } else {
        fprintf(to, "%-11s %-19s does not fit\n", "", set);
    }
    fputs("    ", to);
    cli_put_wrapped(to, differs, 4, 4);
}

static void print_device(FILE *to, const char *json, const char *compared)
{
    char gpu[128], device[64], notice[256];
    text(json, "gpu", gpu, sizeof gpu);
    text(json, "device", device, sizeof device);
    text(json, "device_notice", notice, sizeof notice);
    if (device[0] && compared[0])
        fprintf(
            to,
            "%s computes the networks, by prediction the faster one; unverified: no GPU has "
            "been seen at it (--device cpu leaves it out)\n",
            compared);
    else if (device[0])
        fprintf(to, "--device %s computes the networks; GPU: what is planned of its memory\n",
                device);
    else if (compared[0])
        fprintf(to, "the processor computes the networks; --device cuda: %s does\n", compared);
    else
        fprintf(to,
                "the processor computes%s%s; GPU: what one would hold, planned, not run%s%s\n",
                notice[0] ? ": " : "", notice, gpu[0] ? "; here is " : "", gpu);
}

void cli_print_ways(FILE *to, const char *json)
{
    char size[CLI_TEXT], compared[128];
    size_t n = 0;
    const char *list = cli_json_member(json, "ways", &n);
    if (!list)
        return;
    text(json, "device_compared", compared, sizeof compared);
    const int64_t budget = number(json, "budget_bytes");
    fprintf(to, "ways%s%s, the best first; * is taken\n", budget ? " in " : "",
            budget ? cli_size((uint64_t)budget, size) : "");
    fprintf(to, "  %-22s %-11s %-19s %10s %10s %10s  %s\n", "", "frames", "settings", "RAM",
            "scratch", "GPU", "time");
    const char *at = list + 1, *end = list + n, *row;
    while ((row = cli_json_next(&at, end, &n))) {
        char one[2048];
        if (n >= sizeof one)
            continue;
        memcpy(one, row, n);
        one[n] = 0;
        print_way(to, one, compared[0]);
    }
    print_device(to, json, compared);
}
