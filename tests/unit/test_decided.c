/* test_decided.c - what a run decided, as text and back. */
#include "engine/job/decided.h"
#include "tests/tg_test.h"

static void test_what_is_written_is_read(void)
{
    static const tgi_decided all[] = {{{1, 256, 256}, 64, 128, 96, 5, 0},
                                      {{0, 1, INT64_MAX}, 1, 16, 16, 0, 67108864},
                                      {{INT64_MAX, INT64_MAX, INT64_MAX},
                                       INT64_MAX,
                                       INT64_MAX / 16 * 16,
                                       INT64_MAX / 16 * 16,
                                       INT64_MAX,
                                       INT64_MAX}};
    char text[TGI_DECIDED_TEXT];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tgi_decided d = {{0}, 0, 0, 0, 0, 0};
        CHECK(tgi_decided_read(tgi_decided_text(&all[i], text, sizeof text), &d));
        CHECK(memcmp(&d, &all[i], sizeof d) == 0);
    }
}

/* Journals of earlier versions have this form. */
static void test_its_form_stays(void)
{
    const tgi_decided d = {{1, 256, 512}, 64, 128, 96, 5, 0},
                      stages = {{1, 256, 512}, 64, 128, 96, 5, 1000};
    char text[TGI_DECIDED_TEXT];
    CHECK_STR(tgi_decided_text(&d, text, sizeof text), "1,256,512,64,128,96,5");
    CHECK_STR(tgi_decided_text(&stages, text, sizeof text), "1,256,512,64,128,96,5,1000");
}

static void test_what_no_run_writes_is_not_read(void)
{
    static const char *const bad[] = {"",
                                      "1,256,512,64,128,96",
                                      "1,256,512,64,128,96,",
                                      "1,256,512,64,128,96,5,0",
                                      "1,256,512,64,128,96,5,-6",
                                      "1,256,512,64,128,96,5,",
                                      "1,256,512,64,128,96,5,6,7",
                                      "1,256,512,64,128,96,5 ",
                                      "1,256,512,64,128,96,x",
                                      "1;256,512,64,128,96,5",
                                      "1,,512,64,128,96,5",
                                      "-1,256,512,64,128,96,5",
                                      "1,0,512,64,128,96,5",
                                      "1,256,0,64,128,96,5",
                                      "1,256,512,0,128,96,5",
                                      "1,256,512,64,8,96,5",
                                      "1,256,512,64,128,0,5",
                                      "1,256,512,64,120,96,5",
                                      "1,256,512,64,128,97,5",
                                      "1,256,512,64,128,96,-1",
                                      "1,256,99999999999999999999,64,128,96,5"};
    const tgi_decided before = {{7, 7, 7}, 7, 7, 7, 7, 7};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tgi_decided d = before;
        if (tgi_decided_read(bad[i], &d))
            fprintf(stderr, "accepted: \"%s\"\n", bad[i]);
        CHECK(memcmp(&d, &before, sizeof d) == 0);
    }
}

int main(void)
{
    RUN(test_what_is_written_is_read);
    RUN(test_its_form_stays);
    RUN(test_what_no_run_writes_is_not_read);
    return TEST_END();
}
