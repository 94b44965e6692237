/* number.h - decimal numbers as text, whatever the locale of the host program: the point is
 * '.'.
 *
 * strtod and printf use the decimal point of setlocale, which belongs to the program that
 * loaded us; files and options do not change with it. */
#ifndef TGI_NUMBER_H
#define TGI_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#define TGI_NUMBER_TEXT 32

/* Read the n characters at text as one decimal number ([-]digits[.digits][e[+-]digits], a digit
 * on at least one side of the point). False, *out untouched, for anything else, for more than
 * 300 characters and for what a double cannot hold. */
bool tgi_number_parse(const char *text, size_t n, double *out);

/* The same for what `text`, which a 0 ends, begins with. Returns its length; 0, *out untouched: it begins with none. */
size_t tgi_number_begin(const char *text, double *out);

/* As "%.*g" in the C locale ("0.10000000000000001" of 17 digits); finite values. Returns the number of characters. */
size_t tgi_number_digits(double value, int digits, char buf[TGI_NUMBER_TEXT]);

/* The shortest decimal that reads back as the same double ("0.1", "1e+300"); finite values.
 * Returns the number of characters. */
size_t tgi_number_text(double value, char buf[TGI_NUMBER_TEXT]);

#endif
