/* text.h - numbers for people, and values for JSON. */
#ifndef TGI_CLI_TEXT_H
#define TGI_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_TEXT 32 /* enough for each of these */

/* "412.00 MiB", tg_size_text; returns buf. */
const char *cli_size(uint64_t bytes, char buf[CLI_TEXT]);
/* "0.8 s", "42 s", "4 min 12 s", "2 h 5 min", "3 d 4 h"; returns buf. */
const char *cli_seconds(double s, char buf[CLI_TEXT]);
/* "8 min 10 s to 9 min 2 s"; one time where both read the same. */
const char *cli_span(double least, double most, char buf[3 * CLI_TEXT]);
/* "1.3 G" for 1.3e9; returns buf. */
const char *cli_metric(double v, char buf[CLI_TEXT]);
/* "1,344"; returns buf. */
const char *cli_count(int64_t n, char buf[CLI_TEXT]);
/* ", memory up to 12.0 MiB of 1.0 GiB", or "" where none was seen; returns buf. */
const char *cli_memory(size_t most, size_t budget, char buf[3 * CLI_TEXT]);
/* How a person opens what was written at `path`. */
const char *cli_opens_in(const char *path);
/* Monotonic seconds. */
double cli_now(void);

/* Bytes of the control character that s[0, n) begins with, C0 or C1; 0: of none. */
size_t cli_control(const char *s, size_t n);

/* Write text with control characters shown as '?': a file name cannot move the cursor. */
void cli_put_clean(FILE *to, const char *s);

/* JSON: a quoted string (bytes that are not UTF-8 become U+FFFD), the shortest number that
 * reads back as the same double (null when not finite). */
void cli_json_string(FILE *to, const char *s);
void cli_json_number(FILE *to, double v);
/* ,"key": then a value. */
void cli_json_key(FILE *to, const char *key);
void cli_json_int(FILE *to, const char *key, int64_t v);
void cli_json_uint(FILE *to, const char *key, uint64_t v);
void cli_json_real(FILE *to, const char *key, double v);
void cli_json_text(FILE *to, const char *key, const char *v); /* NULL: null */

/* json_text.c: print a JSON value as indented "key  value" lines; text that is not JSON is
 * printed as it is. */
void cli_print_json(FILE *to, const char *json);
/* The same with the first entries of each list alone, and how many more there are. */
void cli_print_json_page(FILE *to, const char *json);
/* The value of a member of the top object, as a view of *n characters; NULL when not there. */
const char *cli_json_member(const char *json, const char *key, size_t *n);
/* Step to the next element of an array that *at is inside of (just behind '[' at first): a view
 * of *n characters; NULL: no more. */
const char *cli_json_next(const char **at, const char *end, size_t *n);
/* A string, number or word, without quotes. */
void cli_put_json(FILE *to, const char *json, size_t n);
/* As cli_print_json for a view. */
void cli_print_json_n(FILE *to, const char *json, size_t n);

#endif
