/* text_number.h - numbers in attributes and lines that strangers wrote. All of the text is one, or there is none:
 * what would read "0.1x" as 0.1 makes up a size. */
#ifndef TGI_TEXT_NUMBER_H
#define TGI_TEXT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TGI_MALFORMED 192 /* room for a list of them */

/* A number in s[0,n), blanks around it and a plus in front of it allowed; *out untouched where there is none. */
bool tgi_text_number(const char *s, size_t n, double *out);
/* The same for a whole number; "3.0" is one. What int64_t or a double does not hold exactly is its least or greatest. */
bool tgi_text_whole(const char *s, size_t n, int64_t *out);
/* Add name="value" to a list of what could not be read; where it has no more room, it says how many more there are. */
void tgi_text_malformed(char list[TGI_MALFORMED], const char *name, const char *value,
                        size_t n);

#endif
