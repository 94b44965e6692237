/* axis_list.h - which entries of an axis somebody chose, by number or by name: "0,2", "3:9", "GFP,DAPI".
 *
 * Items are separated by commas and keep their order. "5" is an index from 0; "a:b" is half open, "a-b"
 * inclusive, either end may be left out; anything else is a name, in its own case or, where one name alone
 * fits, in any. "name:405" is a name whatever it looks like, and "\,"
 * a comma of a name. */
#ifndef TGI_AXIS_LIST_H
#define TGI_AXIS_LIST_H

#include "engine/base/status.h"

#include <stdint.h>

/* The axis as it is. */
typedef struct tgi_axis_entries {
    const char *option; /* for messages: "--channels" */
    const char *one;    /* "channel", "slice", "time" */
    int64_t n;
    char **name; /* n entries, each may be NULL; or NULL */
    int repeats; /* 1: an entry may be taken more than once */
} tgi_axis_entries;

typedef struct tgi_axis_list {
    int64_t n;
    int64_t *at; /* tgi_free */
} tgi_axis_list;

/* What `text` takes of it, at least one entry. TG_E_ARG: what is not there, or both a number and a name. */
tg_status tgi_axis_list_parse(const char *text, const tgi_axis_entries *of, tgi_axis_list *out,
                              tgi_err *err);
/* How far entries are apart, where each is as far from the one before as the others; 1 for one entry; 0: not
 * always the same, or backwards. */
int64_t tgi_axis_list_step(const tgi_axis_list *l);
/* 1: all n entries of an axis in their order. */
int tgi_axis_list_is_all(const tgi_axis_list *l, int64_t n);
/* The entries as "0,3-8", in one spelling whatever they were written as; what does not fit is summed. Returns buf. */
const char *tgi_axis_list_text(const tgi_axis_list *l, char *buf, size_t cap);
/* "0 DAPI, 1 GFP, 2" or "0 to 11": what can be chosen. Cut to cap; returns buf. */
const char *tgi_axis_list_offer(const tgi_axis_entries *of, char *buf, size_t cap);
/* The word that takes entry i alone: its name where that is no other's and looks like nothing else, "name:405",
 * or its number. Returns buf. */
const char *tgi_axis_list_word(const tgi_axis_entries *of, int64_t i, char *buf, size_t cap);

#endif
