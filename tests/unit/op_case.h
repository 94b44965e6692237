/* op_case.h - reading tests/cases/NAME.case (NAME: the symbol in op_list.h). A line:
 *
 *   attributes | inputs | what must hold
 *
 *   attributes  name=value or name=v,v,v; opset=N (18), outputs=N (1) set the node itself
 *   inputs      separated by ';'. 1x8x33x47: random float32, the first an activation, the
 *               others constants; a:SHAPE an activation, m:SHAPE one of zeros and ones, c:SHAPE a
 *               constant; none; a list i:1,2
 *               or f:2x2=1,2,3,4 (rank 1 without a shape) of f float32, d float64, h float16,
 *               i int64, u uint8, w uint16, j int16, b bool; I:3 or F:3 a scalar
 *   must hold   test_ops.c says which words there are
 *
 * Random numbers come from a seed per line, so a case replays. */
#ifndef TG_OP_CASE_H
#define TG_OP_CASE_H

#include "tests/unit/op_harness.h"

extern const char *case_where; /* file:line of the case, for messages */
/* Count a failure and say where; 0. */
static inline int case_complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", case_where, what);
    tg_failures++;
    return 0;
}

/* Blanks at both ends gone. */
char *case_trim(char *s);
/* Numbers separated by `sep`; returns how many, -1: not a number. */
int case_numbers(const char *s, char sep, double *v, int max);
/* "1x3x7x9" or "scalar". */
int case_shape(const char *s, tgi_desc *d);
/* Attributes and inputs of one line into a node, which is open then (node_close). 0 and a
 * message: they do not parse. */
int case_node(op_node *n, const tgi_op *op, char *attrs, char *inputs, uint64_t *seed);
/* What is done with a line; `line` is taken apart. */
typedef void case_fn(const tgi_op *op, char *line, uint64_t *seed);

/* The names of the operators' files, in tgi_op_at's order; NULL ends it. */
extern const char *const case_symbols[];

/* fn for every line of one op's file. Returns the number of cases. */
int case_each_line(const char *symbol, case_fn *fn, const tgi_op *op);
/* ... of every op's; `only` not NULL: of that one. */
void case_every_op(const char *only, case_fn *fn);

/* A line that stands in a test. */
typedef struct case_line {
    const char *symbol, *text;
} case_line;

/* fn for it, which has to count it as one of *runs at least. (Inline like case_complain: checks
 * are counted where the test is.) */
static inline void case_one(const case_line *l, case_fn *fn, uint64_t seed, const int *runs)
{
    const int before = *runs;
    char line[256];
    for (int i = 0; case_symbols[i]; i++)
        if (strcmp(case_symbols[i], l->symbol) == 0) {
            snprintf(line, sizeof line, "%s", l->text);
            case_where = l->text;
            fn(tgi_op_at(i), line, &seed);
        }
    tg_checks++;
    if (*runs == before)
        case_complain("did not run");
}

/* ... for each of n lines; `only` not NULL: for those of one operator. */
static inline void case_lines(const char *only, const case_line *lines, size_t n, case_fn *fn,
                              const int *runs)
{
    for (size_t i = 0; i < n; i++)
        if (!only || strcmp(only, lines[i].symbol) == 0)
            case_one(&lines[i], fn, 7 + i, runs);
}

#endif
