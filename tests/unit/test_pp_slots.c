/* Places on a device for what frames show: what a step asks for is never given away in it, and what lies there is found again. */
#include "engine/inpaint/pp_slots.h"
#include "tests/tg_test.h"

#define FRAMES 40
#define LOCAL 5

static tgi_pp_slots slots_of(int n)
{
    tgi_pp_slots s = {.n = n};
    for (int i = 0; i < n; i++)
        s.at[i] = (tgi_sched_at){(const float *)(uintptr_t)(64 * (i + 1)), 0, TG_DTYPE_F16};
    tgi_pp_slots_forget(&s);
    return s;
}

/* Steps of LOCAL frames, two apart, as the generator walks; how many were to be filled, and how many had no place. */
static void walk(tgi_pp_slots *s, int *filled, int *without)
{
    *filled = *without = 0;
    for (int64_t lo = 0; lo + LOCAL <= FRAMES; lo += 2) {
        int64_t frame[LOCAL];
        const float *place[LOCAL];
        for (int i = 0; i < LOCAL; i++)
            frame[i] = lo + i;
        for (int i = 0; i < LOCAL; i++) {
            tgi_sched_at at = {NULL, 0, TG_DTYPE_NONE};
            int there = 0;
            int64_t *is = tgi_pp_slots_take(s, frame[i], frame, LOCAL, &at, &there);
            place[i] = is ? at.at : NULL;
            CHECK(is || !there);
            CHECK(!there || *is == frame[i]);
            *without += !is;
            *filled += is && !there;
            if (is)
                *is = frame[i];
            for (int k = 0; k < i; k++)
                CHECK(!place[i] || place[k] != place[i]);
        }
    }
}

/* With a place for each frame of a step every frame is filled once. */
static void test_each_is_filled_once(void)
{
    int filled, without;
    tgi_pp_slots s = slots_of(LOCAL);
    walk(&s, &filled, &without);
    CHECK_EQ(without, 0);
    CHECK_EQ(filled, FRAMES - 1); /* the last step ends at the last but one */
    tgi_pp_slots_forget(&s);
    walk(&s, &filled, &without);
    CHECK_EQ(filled, FRAMES - 1);
}

static void test_few_places_are_not_given_away(void)
{
    for (int n = 0; n < LOCAL; n++) {
        int filled, without;
        tgi_pp_slots s = slots_of(n);
        walk(&s, &filled, &without);
        CHECK(without >= (LOCAL - n) * (FRAMES - LOCAL) / 2);
        CHECK(n == 0 ? filled == 0 : filled >= n);
    }
}

int main(void)
{
    RUN(test_each_is_filled_once);
    RUN(test_few_places_are_not_given_away);
    return TEST_END();
}
