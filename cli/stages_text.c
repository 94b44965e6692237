/* stages_text.c - the stages of a plan, for plan --why: what each reads, computes and hands
 * out. */
#include "cli.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Member of an object that is a view of the plan's JSON: 1 and its view. */
static bool member(const char *object, const char *key, const char **value, size_t *n)
{
    *value = cli_json_member(object, key, n);
    return *value != NULL;
}

static uint64_t number(const char *object, const char *key)
{
    size_t n = 0;
    const char *v = cli_json_member(object, key, &n);
    return v ? (uint64_t)strtoull(v, NULL, 10) : 0;
}

static void put_text(const char *object, const char *key)
{
    size_t n = 0;
    const char *v = cli_json_member(object, key, &n);
    if (v)
        cli_put_json(stdout, v, n);
}

typedef void (*item)(const char *value, size_t n);

static void put_input(const char *value, size_t n)
{
    fputs("input \"", stdout);
    cli_put_json(stdout, value, n);
    putchar('"');
}

static void put_name(const char *value, size_t n)
{
    putchar('"');
    cli_put_json(stdout, value, n);
    putchar('"');
}

static void put_node(const char *value)
{
    fputs(" \"", stdout);
    put_text(value, "node");
    putchar('"');
}

static bool same_operator(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    const char *of_a = cli_json_member(a, "operator", &n);
    const char *of_b = cli_json_member(b, "operator", &m);
    return of_a && of_b && n == m && memcmp(of_a, of_b, n) == 0;
}

/* `count` reductions of one operator, in the network's order: a long network has dozens. */
static void put_numbers(const char *first, const char *last, int count)
{
    if (count > 1)
        printf("%d x ", count);
    fputs("numbers of ", stdout);
    put_text(first, "operator");
    put_node(first);
    if (count > 1)
        fputs(count > 2 ? " to" : " and", stdout);
    if (count > 1)
        put_node(last);
}

static void put_output(const char *value, size_t n)
{
    fputs("output \"", stdout);
    cli_put_json(stdout, value, n);
    putchar('"');
}

static void put_kept(const char *value, size_t n)
{
    char a[CLI_TEXT];
    const char *disk;
    putchar('"');
    put_text(value, "value");
    printf("\" (%s %s)", cli_size(number(value, "bytes"), a),
           member(value, "on_disk", &disk, &n) && *disk == 't' ? "on disk" : "in memory");
}

/* Each element of a list behind `*between`, which is a comma from then on. */
static void put_list(const char *stage, const char *key, const char **between, item put)
{
    size_t n = 0;
    const char *list, *value;
    if (!member(stage, key, &list, &n))
        return;
    const char *end = list + n;
    for (list++; (value = cli_json_next(&list, end, &n)) != NULL; *between = ", ") {
        fputs(*between, stdout);
        put(value, n);
    }
}

/* Those of one operator that follow each other are one. */
static void put_number_list(const char *stage, const char *key, const char **between)
{
    size_t n = 0;
    const char *list, *value, *first = NULL, *last = NULL;
    int count = 0;
    if (!member(stage, key, &list, &n))
        return;
    const char *end = list + n;
    list++;
    do {
        value = cli_json_next(&list, end, &n);
        if (first && !(value && same_operator(first, value))) {
            fputs(*between, stdout);
            put_numbers(first, last, count);
            *between = ", ";
            first = NULL;
            count = 0;
        }
        first = first ? first : value;
        last = value;
        count++;
    } while (value);
}

static void print_stage(const char *stage)
{
    char a[CLI_TEXT];
    const char *reads = "      reads ", *gives = "\n      hands out ";
    const char *looks = "; at once ", *pieces = "; in pieces ";
    printf("  %2d  nodes %d", (int)number(stage, "stage"), (int)number(stage, "nodes"));
    if (number(stage, "recomputed_nodes"))
        printf(" (%d recomputed)", (int)number(stage, "recomputed_nodes"));
    printf(", strips %d, bands %d, arena %s\n", (int)number(stage, "strips"),
           (int)number(stage, "bands"), cli_size(number(stage, "arena_bytes"), a));
    put_list(stage, "reads_inputs", &reads, put_input);
    put_list(stage, "reads_kept", &reads, put_name);
    put_number_list(stage, "reads_numbers", &reads);
    put_list(stage, "reads_at_once", &looks, put_name);
    put_list(stage, "reads_in_pieces", &pieces, put_name);
    put_list(stage, "keeps", &gives, put_kept);
    put_number_list(stage, "gathers", &gives);
    put_list(stage, "outputs", &gives, put_output);
    putchar('\n');
}

void cli_print_stages(const char *staged, size_t n)
{
    const char *stages, *stage;
    if (!member(staged, "stages", &stages, &n))
        return;
    const char *end = stages + n;
    puts("stages");
    for (stages++; (stage = cli_json_next(&stages, end, &n)) != NULL;)
        print_stage(stage);
}
