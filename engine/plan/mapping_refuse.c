/* mapping_refuse.c - see mapping_refuse.h. Each refusal has the option that would do, so that a command can be made of it. */
#include "engine/plan/mapping_refuse.h"

#include "io/axis_list.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TEXT_BYTES 400 /* "GFP,DAPI,..." */
#define MOST 64        /* channels that are offered */

/* The channels there are, and what is known of them. */
typedef struct there {
    const tgi_image_meta *meta;
    int64_t has;
    const int64_t *chosen; /* of them, or NULL */
    int64_t n_chosen;
} there;

/* Names that stand for nothing else, of all. */
static int are_named(const there *t)
{
    int named = t->meta->channel_name && t->meta->n_channels == t->has;
    for (int64_t i = 0; i < t->has && named; i++) {
        const char *n = t->meta->channel_name[i];
        named = n && n[0] && !n[strcspn(n, " ,:'\"")] && strspn(n, "0123456789-") == 0;
        for (int64_t k = 0; k < i && named; k++)
            named = strcmp(n, t->meta->channel_name[k]) != 0;
    }
    return named;
}

/* The channel of the image that is called `name`, in any case; -1: none. */
static int64_t called(const char *name, const there *t)
{
    for (int64_t i = 0; i < t->has; i++)
        if (strcasecmp(t->meta->channel_name[i], name) == 0)
            return i;
    return -1;
}

static int is_among(const int64_t *list, int64_t n, int64_t v)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == v)
            return 1;
    return 0;
}

/* Those that the network's description names, where they are there; else the chosen ones, then the others, and the last one again
 * and again. */
static void guess(int64_t channels, const tgi_mapping_opts *o, const there *t, int named,
                  int64_t *at)
{
    int64_t n = 0;
    int known = named && o->n_names >= channels;
    for (int64_t i = 0; i < channels && known; i++)
        known = (at[i] = called(o->channel_name[i], t)) >= 0;
    if (known)
        return;
    for (int64_t i = 0; i < t->n_chosen && n < channels; i++)
        if (!is_among(at, n, t->chosen[i]))
            at[n++] = t->chosen[i];
    for (int64_t i = 0; i < t->has && n < channels; i++)
        if (!is_among(at, n, i))
            at[n++] = i;
    for (; n < channels; n++)
        at[n] = n ? at[n - 1] : 0;
}

static void offer(int64_t channels, const tgi_mapping_opts *o, const there *t, char *buf)
{
    int64_t at[MOST];
    size_t n = 0;
    const int named = are_named(t);
    guess(channels, o, t, named, at);
    for (int64_t i = 0; i < channels && n < TEXT_BYTES - 1; i++)
        n += named ? (size_t)snprintf(buf + n, TEXT_BYTES - n, "%s%s", i ? "," : "",
                                      t->meta->channel_name[at[i]])
                   : (size_t)snprintf(buf + n, TEXT_BYTES - n, "%s%lld", i ? "," : "",
                                      (long long)at[i]);
}

/* " (DAPI, GFP)", as the network's description calls them; "" it does not. */
static const char *names_of(const tgi_mapping_opts *o, int64_t channels, char *buf)
{
    size_t n = 0;
    buf[0] = 0;
    for (int64_t i = 0; o->n_names >= channels && i < channels && n < TEXT_BYTES - 1; i++)
        n += (size_t)snprintf(buf + n, TEXT_BYTES - n, "%s%s%s", i ? ", " : " (",
                              o->channel_name[i], i + 1 < channels ? "" : ")");
    return buf;
}

static const char *all_of(const there *t, char *buf, size_t cap)
{
    const int named = t->meta->channel_name && t->meta->n_channels == t->has;
    const tgi_axis_entries of = {"--channels", "channel", t->has,
                                 named ? t->meta->channel_name : NULL, 1};
    return tgi_axis_list_offer(&of, buf, cap);
}

tg_status tgi_mapping_refuse_channels(const tgi_mapping *m, const tgi_mapping_opts *o,
                                      const tgi_image_info *info, int64_t has, tgi_err *err)
{
    char choice[TEXT_BYTES], all[600], takes[TEXT_BYTES];
    const there t = {&info->meta, has, NULL, 0};
    if (m->channels > MOST)
        return tgi_fail(
            err, TG_E_ARG,
            "the network takes %lld channels, the image (axes %s) has %lld: choose an "
            "image that matches, or name its axes with --axes",
            (long long)m->channels, info->axes, (long long)has);
    offer(m->channels, o, &t, choice);
    const tg_status st = tgi_fail(
        err, TG_E_ARG,
        "the network takes %lld channels%s, the image (axes %s) has %lld (%s): say which, "
        "in the network's order, such as --channels %s%s, or name its axes with --axes",
        (long long)m->channels, names_of(o, m->channels, takes), info->axes, (long long)has,
        all_of(&t, all, sizeof all), choice,
        has < m->channels ? " (one may come several times)" : "");
    return tgi_err_try(err, st, TGI_TRY_CHANNELS, choice);
}

tg_status tgi_mapping_refuse_samples(const tgi_mapping *m, const tgi_mapping_opts *o,
                                     const tgi_image_info *info, tgi_err *err)
{
    static const tgi_image_meta nameless = {0};
    char choice[TEXT_BYTES], takes[TEXT_BYTES];
    const there t = {&nameless, info->samples, NULL, 0};
    if (m->channels > MOST)
        return tgi_fail(err, TG_E_ARG,
                        "the network takes %lld channels, the image (axes %s) has pixels of "
                        "%d: choose an image that matches",
                        (long long)m->channels, info->axes, info->samples);
    offer(m->channels, o, &t, choice);
    const tg_status st =
        tgi_fail(err, TG_E_ARG,
                 "the network takes %lld channels%s, the image (axes %s) has pixels of %d: "
                 "choose an image that matches, or say which, in the network's order, such as "
                 "--channels %s",
                 (long long)m->channels, names_of(o, m->channels, takes), info->axes,
                 info->samples, choice);
    return tgi_err_try(err, st, TGI_TRY_CHANNELS, choice);
}

tg_status tgi_mapping_refuse_choice(const tgi_mapping *m, const tgi_mapping_opts *o,
                                    tgi_err *err)
{
    char choice[TEXT_BYTES], all[600], takes[TEXT_BYTES];
    const tgi_image_info *i = o->choice.of;
    const char *c = strchr(i->axes, 'C');
    const int64_t has = i->samples > 1 ? i->samples : c ? i->shape[c - i->axes] : 1;
    const there t = {&i->meta, has, o->choice.at, o->choice.n};
    if (m->channels > MOST)
        return tgi_fail(err, TG_E_ARG,
                        "the network takes %lld channels, and --channels %.100s chooses %lld",
                        (long long)m->channels, o->choice.text, (long long)o->choice.n);
    offer(m->channels, o, &t, choice);
    const tg_status st = tgi_fail(
        err, TG_E_ARG,
        "the network takes %lld channels%s, and --channels %.100s chooses %lld of the image's "
        "%lld (%s): choose as many as it takes, in its order, such as --channels %s",
        (long long)m->channels, names_of(o, m->channels, takes), o->choice.text,
        (long long)o->choice.n, (long long)has, all_of(&t, all, sizeof all), choice);
    return tgi_err_try(err, st, TGI_TRY_CHANNELS, choice);
}
