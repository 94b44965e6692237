/* mask_box.c - see mask_box.h. */
#include "io/mask_box.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FAR ((int64_t)1 << 40) /* no box reaches that far */

/* A number at *text, which goes behind it; 0: there is none. */
static int take_number(const char **text, int may_be_negative, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)(*text)[may_be_negative && **text == '-']))
        return 0;
    errno = 0;
    *out = strtoll(*text, &end, 10);
    *text = end;
    return !errno && *out > -FAR && *out < FAR;
}

static tg_status bad_box(const char *text, const char *why, tgi_err *err)
{
    return tgi_fail(err, TG_E_ARG,
                    "box %.60s: %s: X,Y,WIDTH,HEIGHT in pixels, and frames where it is not for "
                    "all of them, as 410,220,90,160 or 410,220,90,160@120-480",
                    text, why);
}

tg_status tgi_mask_box_parse(const char *text, tgi_mask_box *out, tgi_err *err)
{
    const char *p = text;
    tgi_mask_box b = {.until = INT64_MAX};
    int64_t *const side[] = {&b.x, &b.y, &b.width, &b.height};
    for (int i = 0; i < 4; i++) {
        if ((i && *p++ != ',') || !take_number(&p, i < 2, side[i]))
            return bad_box(text, "four numbers with commas between them are needed", err);
    }
    if (b.width < 1 || b.height < 1)
        return bad_box(text, "it has no pixel", err);
    if (*p == '@') {
        p++;
        if (!take_number(&p, 0, &b.from))
            return bad_box(text, "no number of a frame follows the @", err);
        b.until = b.from + 1;
        if (*p == '-') {
            p++;
            b.until = INT64_MAX;
            if (*p && !take_number(&p, 0, &b.until))
                return bad_box(text, "no number of a frame follows the -", err);
            b.until += b.until < INT64_MAX;
        }
        if (b.until <= b.from)
            return bad_box(text, "its last frame is before its first one", err);
    }
    if (*p)
        return bad_box(text, "something else follows its numbers", err);
    *out = b;
    return TG_OK;
}

const char *tgi_mask_box_text(const tgi_mask_box *b, char to[TGI_MASK_BOX_TEXT])
{
    const size_t cap = TGI_MASK_BOX_TEXT;
    const int n = snprintf(to, cap, "box %lld,%lld,%lld,%lld", (long long)b->x, (long long)b->y,
                           (long long)b->width, (long long)b->height);
    if (b->until < INT64_MAX && b->until == b->from + 1)
        snprintf(to + n, cap - (size_t)n, "@%lld", (long long)b->from);
    else if (b->until < INT64_MAX)
        snprintf(to + n, cap - (size_t)n, "@%lld-%lld", (long long)b->from,
                 (long long)b->until - 1);
    else if (b->from)
        snprintf(to + n, cap - (size_t)n, "@%lld-", (long long)b->from);
    return to;
}

tg_status tgi_mask_box_check(const tgi_mask_box *b, tgi_err *err)
{
    char text[TGI_MASK_BOX_TEXT];
    if (b->width > 0 && b->height > 0 && b->width < FAR && b->height < FAR && b->x > -FAR &&
        b->x < FAR && b->y > -FAR && b->y < FAR && b->from >= 0 && b->until > b->from)
        return TG_OK;
    return tgi_fail(err, TG_E_ARG, "%s has no pixel or no frame", tgi_mask_box_text(b, text));
}
