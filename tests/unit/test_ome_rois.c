/* test_ome_rois.c - regions of interest of a choice, against a search through all that is chosen. */
#include "engine/base/mem.h"
#include "io/ome_kept.h"
#include "tests/tg_test.h"

#include <stdio.h>
#include <string.h>

#define SHAPES 300
#define PLANES 24

/* Slice, channel, time of each shape; -1: it does not say. */
typedef struct made {
    int at[SHAPES][3];
    char text[SHAPES * 96];
} made;

/* As ome_carry.c writes it. */
static void make(made *m, uint64_t *seed)
{
    static const char *const name[] = {" TheZ", " TheC", " TheT"};
    static const char kind[] = "zkt";
    size_t n = (size_t)snprintf(m->text, sizeof m->text, "%c<ROI ID=\"R\">", TGI_ROI_ROI);
    for (int i = 0; i < SHAPES; i++) {
        n += (size_t)snprintf(m->text + n, sizeof m->text - n, "%c<Point", TGI_ROI_SHAPE);
        for (int k = 0; k < 3; k++) {
            m->at[i][k] = (int)(tg_rand(seed) % 5) - 1;
            if (m->at[i][k] >= 0)
                n +=
                    (size_t)snprintf(m->text + n, sizeof m->text - n, "%s=\"%c%c%d%c\"",
                                     name[k], TGI_ROI_MARK, kind[k], m->at[i][k], TGI_ROI_MARK);
        }
        n += (size_t)snprintf(m->text + n, sizeof m->text - n, " ID=\"%d\"/>%c", i,
                              TGI_ROI_SHAPE_END);
    }
    snprintf(m->text + n, sizeof m->text - n, "</ROI>%c", TGI_ROI_ROI_END);
}

typedef struct out {
    char text[SHAPES * 128];
    size_t n;
} out;

static void put(void *user, char c)
{
    out *o = user;
    if (o->n + 1 < sizeof o->text)
        o->text[o->n++] = c;
}

/* The shape's number of that axis in what was written, -1: it says none, -2: the shape is not there. */
static int said(const out *o, int shape, const char *name)
{
    char id[24], key[16];
    int v = -1;
    snprintf(id, sizeof id, " ID=\"%d\"/>", shape);
    const char *end = strstr(o->text, id), *at = end;
    if (!end)
        return -2;
    while (at > o->text && *at != '<')
        at--;
    snprintf(key, sizeof key, "%s=\"%c", name, TGI_ROI_MARK);
    const char *found = strstr(at, key);
    if (found && found < end)
        sscanf(found + strlen(key) + 1, "%d", &v);
    return v;
}

static void test_shapes_of_chosen_entries_keep_their_places(void)
{
    static made m;
    static out o;
    uint64_t seed = 7;
    int64_t chosen[3][3] = {{3, 1, 0}, {2, 2, 0}, {1, 0, 0}}, lost = 0, gone = 0;
    const tgi_axis_list z = {.n = 3, .at = chosen[0]}, c = {.n = 3, .at = chosen[1]},
                        t = {.n = 1, .at = chosen[2]};
    const tgi_axis_list *const pick[3] = {&z, &c, &t};
    static const char *const name[] = {"TheZ", "TheC", "TheT"};
    static const tgi_ome_place here;
    make(&m, &seed);
    o = (out){.n = 0};
    CHECK_EQ(tgi_rois_write(m.text, &here, pick, put, &o, &lost), 1);
    for (int i = 0; i < SHAPES; i++) {
        int now[3], stays = 1;
        for (int k = 0; k < 3; k++) {
            now[k] = m.at[i][k] < 0 ? -1 : -2;
            for (int64_t e = pick[k]->n - 1; e >= 0 && m.at[i][k] >= 0; e--)
                now[k] = pick[k]->at[e] == m.at[i][k] ? (int)e : now[k];
            stays &= now[k] > -2;
        }
        gone += !stays;
        for (int k = 0; k < 3; k++)
            CHECK_EQ(said(&o, i, name[k]), stays ? now[k] : -2);
    }
    CHECK_EQ(lost, gone);
    CHECK(gone > 0 && gone < SHAPES);
}

static void check_in_turn(const made *m, const tgi_ome_spots *s)
{
    static out o;
    int64_t lost = 0, gone = 0;
    o = (out){.n = 0};
    (void)tgi_rois_in_turn(m->text, s, put, &o, &lost);
    for (int i = 0; i < SHAPES; i++) {
        int64_t n = 0, now = -1;
        for (int64_t p = s->n - 1; p >= 0; p--) {
            int on = 1;
            for (int k = 0; k < 3; k++)
                on &= !s->along[k] || m->at[i][k] < 0 || s->at[p][k] == m->at[i][k];
            n += on;
            now = on ? p : now;
        }
        gone += n != 1 && n != s->n;
        if (n == 1 || n == s->n)
            CHECK_EQ(said(&o, i, "TheT"), n == s->n ? (s->along[2] ? -1 : m->at[i][2]) : now);
        else
            CHECK_EQ(said(&o, i, "TheT"), -2);
    }
    CHECK_EQ(lost, gone);
}

static void test_shapes_follow_planes_in_turn(void)
{
    static made m;
    uint64_t seed = 11;
    int32_t at[PLANES][3];
    for (int round = 0; round < 40; round++) {
        tgi_ome_spots s = {.n = 1 + (int64_t)(tg_rand(&seed) % PLANES), .at = at};
        make(&m, &seed);
        for (int k = 0; k < 3; k++)
            s.along[k] = k == 2 || tg_rand(&seed) % 2;
        for (int64_t p = 0; p < s.n; p++)
            for (int k = 0; k < 3; k++)
                at[p][k] = s.along[k] ? (int32_t)(tg_rand(&seed) % (round < 20 ? 4 : 2)) : 0;
        check_in_turn(&m, &s);
    }
}

static void test_without_memory_nothing_is_kept(void)
{
    static made m;
    uint64_t seed = 3;
    int64_t entry = 1;
    const tgi_axis_list z = {.n = 1, .at = &entry};
    make(&m, &seed);
    const tgi_ome_kept k = {.rois = m.text};
    tgi_err e = {0};
    tgi_ome_kept *o = NULL;
    int failed = 0;
    for (uint64_t at = 1; at < 50; at++) {
        tgi_mem_fail_at(at);
        const tg_status st = tgi_ome_kept_pick(&k, &z, NULL, NULL, &o, &e);
        tgi_mem_fail_at(0);
        if (st == TG_OK)
            break;
        CHECK_EQ(st, TG_E_NOMEM);
        CHECK(o == NULL);
        failed++;
    }
    CHECK_EQ(failed, 4); /* itself, what is chosen twice, the text */
    tgi_ome_kept_free(&o);
}

int main(void)
{
    RUN(test_shapes_of_chosen_entries_keep_their_places);
    RUN(test_shapes_follow_planes_in_turn);
    RUN(test_without_memory_nothing_is_kept);
    return TEST_END();
}
