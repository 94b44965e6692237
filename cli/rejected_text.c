/* rejected_text.c - the plans that lost, for plan --why: a row for each, with rounded numbers. */
#include "cli.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static double number(const char *object, const char *key)
{
    size_t n = 0;
    const char *v = cli_json_member(object, key, &n);
    return v ? strtod(v, NULL) : 0;
}

/* "1100x1300" of [1,1100,1300]. */
static void put_tile(const char *object)
{
    size_t n = 0;
    char text[80], *end;
    const char *v = cli_json_member(object, "tile", &n);
    long long side[3] = {1, 0, 0};
    for (int i = 0; v && i < 3; i++) {
        side[i] = strtoll(v + 1, &end, 10); /* behind '[' or ',' */
        v = end;
    }
    if (side[0] > 1)
        snprintf(text, sizeof text, "%lldx%lldx%lld", side[0], side[1], side[2]);
    else
        snprintf(text, sizeof text, "%lldx%lld", side[1], side[2]);
    printf("  %-18s", text);
}

void cli_print_rejected(const char *list, size_t n)
{
    const char *at = list + 1, *end = list + n, *row;
    char a[CLI_TEXT];
    size_t len;
    puts("rejected             memory is that of cells and rows: weights, decoder and process "
         "come on top");
    if (!cli_json_next(&at, end, &len)) {
        puts("  none");
        return;
    }
    printf("  %-18s %9s %13s %16s  %10s  why\n", "tile in pixels", "band rows", "memory",
           "estimate", "recomputed");
    for (at = list + 1; (row = cli_json_next(&at, end, &len)) != NULL;) {
        put_tile(row);
        printf(" %9.0f", number(row, "band"));
        printf(" %13s", cli_size((uint64_t)number(row, "bytes"), a));
        printf(" %16s", cli_seconds(number(row, "seconds_estimate"), a));
        printf("  %8.1f %%  ", 100 * number(row, "recomputed_fraction"));
        const char *why = cli_json_member(row, "why", &len);
        if (why)
            cli_put_json(stdout, why, len);
        putchar('\n');
    }
}
