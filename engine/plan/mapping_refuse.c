/* mapping_refuse.c - see mapping_refuse.h. Each refusal has the choices that would do, so that commands can be made of them. */
#include "engine/plan/mapping_refuse.h"

#include "engine/base/arith.h"
#include "io/axis_list.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TEXT_BYTES 240 /* "GFP,DAPI,...", and of several choices a line each */
#define MOST 64        /* channels that are offered */
#define CHOICES 4      /* that are offered, at most */

/* The channels there are, and what is known of them. */
typedef struct there {
    tgi_axis_entries all;
    const int64_t *chosen; /* of them, or NULL */
    int64_t n_chosen;
} there;

static there there_of(const tgi_image_meta *meta, int64_t has)
{
    const int named = meta->channel_name && meta->n_channels == has;
    return (there){
        {"--channels", "channel", has, named ? meta->channel_name : NULL, 1}, NULL, 0};
}

/* ---- Which channels ---------------------------------------------------------------------- */

/* The one channel that is called `name`, in its own case or else in any; -1: none, or several. */
static int64_t called(const char *name, const tgi_axis_entries *all)
{
    int64_t exact = -1, any = -1, n_exact = 0, n_any = 0;
    for (int64_t i = 0; i < all->n; i++) {
        const char *own = all->name[i] ? all->name[i] : "";
        if (strcmp(own, name) == 0 && !n_exact++)
            exact = i;
        if (strcasecmp(own, name) == 0 && !n_any++)
            any = i;
    }
    return n_exact ? (n_exact == 1 ? exact : -1) : n_any == 1 ? any : -1;
}

static int is_among(const int64_t *list, int64_t n, int64_t v)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == v)
            return 1;
    return 0;
}

/* Those that the network's description names, in its order. 0: not all of them are there. */
static int take_named(int64_t channels, const tgi_mapping_opts *o, const there *t, int64_t *at)
{
    int known = t->all.name && o->n_names >= channels;
    for (int64_t i = 0; i < channels && known; i++)
        known = (at[i] = called(o->channel_name[i], &t->all)) >= 0 && !is_among(at, i, at[i]);
    return known;
}

/* Those that can be chosen, the chosen ones first: MOST at most. Where too many were chosen it is of them. */
static int64_t candidates(int64_t channels, const there *t, int64_t *list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_chosen && n < MOST; i++)
        if (!is_among(list, n, t->chosen[i]))
            list[n++] = t->chosen[i];
    for (int64_t i = 0; i < t->all.n && n < MOST && t->n_chosen <= channels; i++)
        if (!is_among(list, n, i))
            list[n++] = i;
    return n;
}

/* The next `k` of `n` in their order, of which the first `fixed` stay. 0: there is none. */
static int next_choice(int64_t *pick, int64_t k, int64_t n, int64_t fixed)
{
    int64_t i = k - 1;
    while (i >= fixed && pick[i] == n - k + i)
        i--;
    if (i < fixed)
        return 0;
    for (pick[i]++; ++i < k;)
        pick[i] = pick[i - 1] + 1;
    return 1;
}

/* ---- As words ---------------------------------------------------------------------------- */

/* 0: it does not fit. */
static int add_words(int64_t channels, const there *t, const int64_t *at, char *buf)
{
    const size_t before = strlen(buf);
    size_t n = before;
    if (before)
        buf[n++] = '\n';
    for (int64_t i = 0; i < channels; i++) {
        char word[TEXT_BYTES];
        tgi_axis_list_word(&t->all, at[i], word, sizeof word);
        const int put = snprintf(buf + n, TEXT_BYTES - n, "%s%s", i ? "," : "", word);
        n += (size_t)put;
        if (n >= TEXT_BYTES) {
            buf[before] = 0;
            return 0;
        }
    }
    return 1;
}

/* What would do, a line each, the likeliest first: what the description names; else some of the channels in
 * the image's order, and where it has too few the last one again and again. */
static void offer(int64_t channels, const tgi_mapping_opts *o, const there *t, char *buf)
{
    int64_t at[MOST], list[MOST], pick[MOST];
    buf[0] = 0;
    if (take_named(channels, o, t, at)) {
        add_words(channels, t, at, buf);
        return;
    }
    const int64_t n = candidates(channels, t, list);
    const int64_t fixed = t->n_chosen < channels ? tgi_min(t->n_chosen, n) : 0;
    for (int64_t i = 0; i < channels; i++)
        pick[i] = tgi_min(i, n - 1);
    for (int k = 0; k < CHOICES; k++) {
        for (int64_t i = 0; i < channels; i++)
            at[i] = list[pick[i]];
        if (!add_words(channels, t, at, buf) || channels > n ||
            !next_choice(pick, channels, n, fixed))
            return;
    }
}

/* "--channels 0,1, 0,2 or 1,2" */
static const char *listed(const char *choices, char *buf, size_t cap)
{
    size_t n = (size_t)snprintf(buf, cap, "--channels ");
    for (const char *at = choices; *at && n < cap;) {
        const size_t len = strcspn(at, "\n");
        const int is_last = !at[len] || !strchr(at + len + 1, '\n');
        n += (size_t)snprintf(buf + n, cap - n, "%.*s%s", (int)len, at,
                              !at[len]  ? ""
                              : is_last ? " or "
                                        : ", ");
        at += len + (at[len] != 0);
    }
    return buf;
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

static tg_status with_choices(tgi_err *err, tg_status st, const char *choices)
{
    return choices[0] ? tgi_err_try(err, st, TGI_TRY_CHANNELS, choices) : st;
}

tg_status tgi_mapping_refuse_channels(const tgi_mapping *m, const tgi_mapping_opts *o,
                                      const tgi_image_info *info, int64_t has, tgi_err *err)
{
    char choice[TEXT_BYTES], all[600], takes[TEXT_BYTES], some[TEXT_BYTES + 40];
    const there t = there_of(&info->meta, has);
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
        "in the network's order, such as %s%s, or name its axes with --axes",
        (long long)m->channels, names_of(o, m->channels, takes), info->axes, (long long)has,
        tgi_axis_list_offer(&t.all, all, sizeof all), listed(choice, some, sizeof some),
        has < m->channels ? " (one may come several times)" : "");
    return with_choices(err, st, choice);
}

tg_status tgi_mapping_refuse_samples(const tgi_mapping *m, const tgi_mapping_opts *o,
                                     const tgi_image_info *info, tgi_err *err)
{
    static const tgi_image_meta nameless = {0};
    char choice[TEXT_BYTES], takes[TEXT_BYTES], some[TEXT_BYTES + 40];
    const there t = there_of(&nameless, info->samples);
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
                 "%s",
                 (long long)m->channels, names_of(o, m->channels, takes), info->axes,
                 info->samples, listed(choice, some, sizeof some));
    return with_choices(err, st, choice);
}

tg_status tgi_mapping_refuse_choice(const tgi_mapping *m, const tgi_mapping_opts *o,
                                    tgi_err *err)
{
    char choice[TEXT_BYTES], all[600], takes[TEXT_BYTES], some[TEXT_BYTES + 40];
    const tgi_image_info *i = o->choice.of;
    const char *c = strchr(i->axes, 'C');
    const int64_t has = i->samples > 1 ? i->samples : c ? i->shape[c - i->axes] : 1;
    there t = there_of(&i->meta, has);
    t.chosen = o->choice.at;
    t.n_chosen = o->choice.n;
    if (m->channels > MOST)
        return tgi_fail(err, TG_E_ARG,
                        "the network takes %lld channels, and --channels %.100s chooses %lld",
                        (long long)m->channels, o->choice.text, (long long)o->choice.n);
    offer(m->channels, o, &t, choice);
    const tg_status st = tgi_fail(
        err, TG_E_ARG,
        "the network takes %lld channels%s, and --channels %.100s chooses %lld of the image's "
        "%lld (%s): choose as many as it takes, in its order, such as %s",
        (long long)m->channels, names_of(o, m->channels, takes), o->choice.text,
        (long long)o->choice.n, (long long)has, tgi_axis_list_offer(&t.all, all, sizeof all),
        listed(choice, some, sizeof some));
    return with_choices(err, st, choice);
}

int tgi_mapping_other_names(const tgi_mapping *m, const tgi_mapping_opts *o,
                            const tgi_image_info *info, char *buf, size_t cap)
{
    const there t = there_of(&info->meta, m->channels);
    int64_t known = 0;
    size_t n = 0;
    if (m->channels < 2 || !t.all.name || o->n_names < m->channels)
        return 0;
    for (int64_t i = 0; i < m->channels; i++) {
        if (!t.all.name[i])
            return 0;
        known += called(o->channel_name[i], &t.all) >= 0;
    }
    for (int64_t i = 0; i < m->channels; i++) {
        char one[136];
        snprintf(one, sizeof one, "%s%.60s for %.60s", i ? ", " : "", t.all.name[i],
                 o->channel_name[i]);
        if (n + strlen(one) + sizeof ", and 9223372036854775807 more" > cap) {
            snprintf(buf + n, cap - n, ", and %lld more", (long long)(m->channels - i));
            break;
        }
        n += (size_t)snprintf(buf + n, cap - n, "%s", one);
    }
    return known > 0 && known < m->channels;
}

int tgi_mapping_other_order(const tgi_mapping *m, const tgi_mapping_opts *o,
                            const tgi_image_info *info, char *buf, size_t cap)
{
    int64_t at[MOST];
    char choice[TEXT_BYTES] = "";
    const there t = there_of(&info->meta, m->channels);
    if (m->channels < 2 || m->channels > MOST || info->meta.n_channels != m->channels ||
        !take_named(m->channels, o, &t, at))
        return 0;
    int64_t same = 0;
    while (same < m->channels && at[same] == same)
        same++;
    if (same == m->channels || !add_words(m->channels, &t, at, choice))
        return 0;
    snprintf(buf, cap, "%s", choice);
    return 1;
}
