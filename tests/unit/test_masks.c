/* Masks of a film: pictures, folders, films and boxes of every kind, at other sizes and counts than the frames. */
#include "io/av/av_open.h"
#include "io/masks.h"
#include "tests/unit/mask_kit.h"
#include "tests/unit/tiff_by_hand.h"

/* ---- Boxes ---- */

static void test_boxes_are_read_from_text(void)
{
    tgi_err err = {0};
    tgi_mask_box b = {0};
    CHECK_OK(tgi_mask_box_parse("410,220,90,160", &b, &err), err);
    CHECK(b.x == 410 && b.y == 220 && b.width == 90 && b.height == 160);
    CHECK(b.from == 0 && b.until == INT64_MAX);
    CHECK_OK(tgi_mask_box_parse("-4,0,9,1@120-480", &b, &err), err);
    CHECK(b.x == -4 && b.from == 120 && b.until == 481);
    CHECK_OK(tgi_mask_box_parse("1,2,3,4@7", &b, &err), err);
    CHECK(b.from == 7 && b.until == 8);
    CHECK_OK(tgi_mask_box_parse("1,2,3,4@7-", &b, &err), err);
    CHECK(b.from == 7 && b.until == INT64_MAX);
    static const char *const wrong[] = {"",
                                        "1,2,3",
                                        "1,2,3,4,5",
                                        "1,2,0,4",
                                        "1,2,3,-4",
                                        "a,2,3,4",
                                        "1 2 3 4",
                                        "1,2,3,4@",
                                        "1,2,3,4@x",
                                        "1,2,3,4@9-3",
                                        "1,2,3,4@3-x",
                                        "1,2,3,4@-3",
                                        "1.5,2,3,4",
                                        "99999999999999999999,2,3,4",
                                        "1,2,3,4 "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(tgi_mask_box_parse(wrong[i], &b, &err), TG_E_ARG);
        CHECK(strstr(err.text, "410,220,90,160@120-480") != NULL);
        err = (tgi_err){0};
    }
}

static void test_boxes_alone_are_cut_and_have_their_frames(void)
{
    const tgi_mask_box b[] = {{-2, -2, 3, 3, 0, INT64_MAX}, {4, 3, 2, 1, 11, 13}};
    tgi_masks_how how = of(NULL, 4);
    how.box = b;
    how.n_boxes = 2;
    how.first = 10;
    how.whole = 20;
    tgi_masks *m = opened(&how);
    NOTES(m, "box -2,-2,3,3: what lies outside of the frames, which are 6 x 4, is left out");
    FRAME_IS(m, 0, CORNER);
    FRAME_IS(m, 1, "#.....|......|......|....##");
    FRAME_IS(m, 2, "#.....|......|......|....##");
    FRAME_IS(m, 3, CORNER);
    tgi_held held;
    CHECK(m && !tgi_masks_is_still(m) && !tgi_masks_held(m, 0, &held));
    uint8_t mask[W * H];
    tgi_err err = {0};
    if (m)
        CHECK_EQ(tgi_masks_read(m, 10, mask, &err), TG_E_ARG);
    tgi_masks_close(&m);
    how.n_boxes = 1;
    m = opened(&how);
    CHECK(m && tgi_masks_is_still(m));
    tgi_masks_close(&m);
}

static void test_boxes_of_other_frames_cover_all_they_touch(void)
{
    const tgi_mask_box b[] = {{3, 3, 5, 2, 0, INT64_MAX}, {11, 7, 4, 1, 0, INT64_MAX}};
    tgi_masks_how how = of(NULL, 2);
    how.box = b;
    how.n_boxes = 2;
    how.box_height = 2 * H;
    how.box_width = 2 * W;
    tgi_masks *m = opened(&how);
    NOTES(m, "box 11,7,4,1: what lies outside of the frames, which are 12 x 8, is left out");
    FRAME_IS(m, 0, "......|.###..|.###..|.....#");
    tgi_masks_close(&m);
}

static void test_notes_of_boxes_come_to_an_end(void)
{
    tgi_mask_box b[20];
    for (int i = 0; i < 20; i++)
        b[i] = (tgi_mask_box){-1, 0, 2, 1, 0, INT64_MAX};
    tgi_masks_how how = of(NULL, 2);
    how.box = b;
    how.n_boxes = 20;
    tgi_masks *m = opened(&how);
    NOTES(m, "there are more boxes");
    CHECK(m && tgi_masks_note(m, 4) && !tgi_masks_note(m, 5));
    tgi_masks_close(&m);
}

static void test_boxes_that_are_nowhere_are_refused(void)
{
    const tgi_mask_box outside = {6, 0, 2, 2, 0, INT64_MAX}, late = {0, 0, 1, 1, 20, 30},
                       not_read = {0, 0, 1, 1, 3, 6}, all = {0, 0, 9, 9, 0, INT64_MAX};
    tgi_masks_how how = of(NULL, 4);
    how.first = 10;
    how.whole = 20;
    refused(&how, TG_E_ARG, "nothing is masked: give masks or boxes");
    how.n_boxes = 1;
    how.box = &outside;
    refused(&how, TG_E_ARG, "box 6,0,2,2 lies outside of the frames, which are 6 x 4");
    how.box = &late;
    refused(&how, TG_E_ARG, "box 0,0,1,1@20-29: the film has frames 0 to 19");
    how.box = &not_read;
    refused(&how, TG_E_ARG, "no box is there in the frames that are read");
    how.box = &all;
    refused(&how, TG_E_ARG, "every pixel is masked");
}

/* ---- Frames ---- */

static void test_a_folder_has_a_mask_for_each_frame(void)
{
    sub_folder("masks");
    save_png("masks/m1.png", NONE, 255);
    save_png("masks/m2.png", DOT, 255);
    save_png("masks/m10.png", CORNER, 255);
    tgi_masks_how how = of(in_folder("masks"), 3);
    tgi_masks *m = opened(&how);
    NOTES(m, "masks: the numbers of the files have a gap: after 2 comes 10");
    FRAME_IS(m, 2, CORNER); /* in any order */
    FRAME_IS(m, 0, NONE);
    FRAME_IS(m, 1, DOT);
    tgi_held held;
    CHECK(m && !tgi_masks_is_still(m));
    CHECK(m && tgi_masks_held(m, 2, &held) && strstr(held.path, "m10.png"));
    CHECK(m && !tgi_masks_held(m, 3, &held));
    tgi_masks_close(&m);
    char pattern[400];
    snprintf(pattern, sizeof pattern, "%s/masks/m?.png", folder);
    how = of(pattern, 2);
    m = opened(&how);
    NOTES(m, "");
    FRAME_IS(m, 1, DOT);
    tgi_masks_close(&m);
}

static void test_other_counts(void)
{
    static const char *const art[] = {DOT, CORNER, NULL};
    save_film("two.y4m", art);
    tgi_masks_how how = of(in_folder("two.y4m"), 5);
    tgi_masks *m = opened(&how);
    NOTES(m, "two.y4m: 2 masks for 5 frames: the last one is held for the rest");
    FRAME_IS(m, 0, DOT);
    FRAME_IS(m, 1, CORNER);
    FRAME_IS(m, 4, CORNER);
    tgi_masks_close(&m);
    how = of(in_folder("two.y4m"), 1);
    m = opened(&how);
    NOTES(m, "two.y4m: 2 masks for 1 frame: those behind mask 0 are not looked at");
    FRAME_IS(m, 0, DOT);
    CHECK(m && tgi_masks_is_still(m));
    tgi_masks_close(&m);
}

static void test_a_cut_film_takes_the_masks_of_its_frames(void)
{
    static const char *const art[] = {NONE, NONE, DOT, CORNER, NULL};
    save_film("four.y4m", art);
    tgi_masks_how how = of(in_folder("four.y4m"), 2);
    how.first = 2;
    how.whole = 4;
    tgi_masks *m = opened(&how);
    NOTES(m, "");
    FRAME_IS(m, 0, DOT);
    FRAME_IS(m, 1, CORNER);
    tgi_masks_close(&m);
    how.whole = 9; /* so they are of the part, and there are too many */
    refused(&how, TG_E_ARG, "nothing is masked: no number in any of its masks is above 0");
    how.frames = 4;
    m = opened(&how);
    NOTES(m, "");
    FRAME_IS(m, 2, DOT);
    tgi_masks_close(&m);
    how.frames = 5;
    m = opened(&how);
    NOTES(m, "4 masks for 5 frames (the whole film has 9): the last one is held");
    tgi_masks_close(&m);
}

static void test_a_film_and_a_folder_of_one_are_for_all_frames(void)
{
    static const char *const art[] = {DOT, NULL};
    save_film("one.y4m", art);
    sub_folder("one");
    save_png("one/m.png", DOT, 1);
    static const char *const names[] = {"one.y4m", "one"};
    for (int i = 0; i < 2; i++) {
        const tgi_masks_how how = of(in_folder(names[i]), 4);
        tgi_masks *m = opened(&how);
        NOTES(m, "");
        FRAME_IS(m, 3, DOT);
        CHECK(m && tgi_masks_is_still(m));
        tgi_masks_close(&m);
    }
}

static void test_pages_of_a_tiff_are_masks(void)
{
    const hand_page p[] = {{.w = W, .h = H, .bits = 8, .samples = 1, .fill = 241},
                           {.w = W, .h = H, .bits = 8, .samples = 1, .fill = 242}};
    hand_tiff(in_folder("pages.tif"), p, 2);
    tgi_masks_how how = of(in_folder("pages.tif"), 2);
    how.threshold = 254;
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, "......|......|......|.....#");
    FRAME_IS(m, 1, "......|......|......|....#.");
    tgi_masks_close(&m);
}

static void test_boxes_join_what_the_file_says(void)
{
    const tgi_mask_box b = {0, 0, 1, 1, 0, INT64_MAX};
    save_png("inv.png", "######|##.###|######|######", 255);
    tgi_masks_how how = of(in_folder("inv.png"), 3);
    how.invert = 1;
    how.box = &b;
    how.n_boxes = 1;
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 2, "#.....|..#...|......|......");
    CHECK(m && tgi_masks_is_still(m));
    tgi_masks_close(&m);
    save_png("none.png", NONE, 255);
    how = of(in_folder("none.png"), 3);
    how.box = &b;
    how.n_boxes = 1;
    m = opened(&how);
    FRAME_IS(m, 0, CORNER);
    NOTES(m, "none.png: nothing is masked in it, boxes alone are");
    tgi_masks_close(&m);
}

static void test_masks_of_nothing_and_of_everything_are_refused(void)
{
    save_png("none.png", NONE, 255);
    save_png("all.png", ALL, 255);
    tgi_masks_how how = of(in_folder("none.png"), 3);
    refused(&how, TG_E_ARG, "none.png: nothing is masked: no number in it is above 0");
    how.invert = 1;
    refused(&how, TG_E_ARG,
            "every pixel is masked, so nothing is left to fill it from: it may");
    how.path = in_folder("all.png");
    refused(&how, TG_E_ARG, "nothing is masked: all of it is above 0");
    how.invert = 0;
    refused(&how, TG_E_ARG,
            "every pixel is masked, so nothing is left to fill it from: "
            "--mask-threshold 127");
    save_png("dot.png", DOT, 255);
    how.path = in_folder("dot.png");
    how.dilation = 9;
    refused(&how, TG_E_ARG, "a smaller --mask-dilation leaves some");
    static const char *const art[] = {NONE, ALL, NULL}; /* one frame may be masked as a whole */
    save_film("all.y4m", art);
    how = of(in_folder("all.y4m"), 2);
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 1, ALL);
    tgi_masks_close(&m);
    static const char *const empty[] = {NONE, NONE, NULL};
    save_film("none.y4m", empty);
    how = of(in_folder("none.y4m"), 2);
    refused(&how, TG_E_ARG, "nothing is masked: no number in any of its masks is above 0");
}

static void test_what_is_wrong_with_files_names_them(void)
{
    tgi_masks_how how = of(in_folder("absent.png"), 2);
    refused(&how, TG_E_NOT_FOUND, "absent.png");
    sub_folder("odd");
    save_png("odd/1.png", DOT, 255);
    save_png("odd/2.png", DOT, 255);
    CHECK_EQ(truncate(in_folder("odd/2.png"), 60), 0);
    how.path = in_folder("odd");
    tgi_err err = {0};
    uint8_t mask[W * H];
    tgi_masks *m = NULL;
    CHECK_OK(tgi_masks_open(&how, &m, &err), err);
    if (m)
        CHECK_OK(tgi_masks_read(m, 0, mask, &err), err);
    CHECK(m && tgi_masks_read(m, 1, mask, &err) == TG_E_FORMAT);
    CHECK(strstr(err.text, "odd/2.png") != NULL);
    err = (tgi_err){0};
    FRAME_IS(m, 0, DOT); /* what was begun does not count */
    tgi_masks_close(&m);
    const uint8_t other[4] = {1};
    CHECK_OK(tgi_png_write(in_folder("odd/2.png"), other, 2, 2, 1, 2, &err), err);
    refused(&how, TG_E_FORMAT, "odd/2.png has 2 x 2 pixels");
    const uint8_t channels[2 * 3 * 4] = {1};
    const tgi_desc d = {TG_DTYPE_U8, 5, {1, 1, 2, 3, 4}};
    CHECK_OK(tgi_npy_save(in_folder("c.npy"), &d, channels, &err), err);
    how.path = in_folder("c.npy");
    refused(&how, TG_E_UNSUPPORTED, "c.npy: 2 channels in planes of their own (axes TZCYX)");
}

static int stopped(void)
{
    return 1;
}

static void test_looking_for_the_first_mask_can_be_stopped(void)
{
    static const char *const art[] = {NONE, NONE, DOT, NULL};
    save_film("late.y4m", art);
    tgi_masks_how how = of(in_folder("late.y4m"), 3);
    how.open.cancelled = stopped;
    refused(&how, TG_E_CANCELLED, "stopped");
}

static void test_requests_for_memory_that_fail(void)
{
    save_png("dot.png", DOT, 255);
    const tgi_mask_box b = {0, 0, 1, 1, 0, 1};
    tgi_masks_how how = of(in_folder("dot.png"), 3);
    how.box = &b;
    how.n_boxes = 1;
    int ends = 0;
    for (uint64_t k = 1; k < 100 && !ends; k++) {
        tgi_err err = {0};
        tgi_masks *m = NULL;
        tgi_mem_fail_at(k);
        const tg_status st = tgi_masks_open(&how, &m, &err);
        tgi_mem_fail_at(0);
        ends = st == TG_OK;
        CHECK(ends || st == TG_E_NOMEM);
        CHECK(ends == (m != NULL));
        tgi_masks_close(&m);
    }
    CHECK(ends);
}

/* ---- Sizes ---- */

static void test_other_sizes_are_resized(void)
{
    save_png("dot.png", DOT, 255); /* at (2, 1) of 6 x 4 */
    tgi_masks_how how = of(in_folder("dot.png"), 1);
    how.height = 8;
    how.width = 12;
    tgi_masks *m = opened(&how);
    uint8_t got[12 * 8];
    tgi_err err = {0};
    NOTES(m, "dot.png: masks of 6 x 4 for frames of 12 x 8: resized to the nearest pixel");
    if (m) {
        CHECK(strstr(tgi_masks_note(m, 0), "shapes") == NULL);
        CHECK_OK(tgi_masks_read(m, 0, got, &err), err);
        for (int i = 0; i < 12 * 8; i++)
            if (got[i] != (i % 12 / 2 == 2 && i / 12 / 2 == 1))
                CHECK_EQ(i, -1);
    }
    tgi_masks_close(&m);
    how.height = 4;
    m = opened(&how);
    NOTES(m, "their shapes differ by 100 %, so masks are stretched");
    tgi_masks_close(&m);
    how.width = 3; /* the nearest of each two is the second one */
    how.height = 2;
    refused(&how, TG_E_ARG, "nothing is masked");
}

/* An array of the goldens; NULL: not there. */
static uint8_t *golden(const char *name, int64_t *h, int64_t *w)
{
    char path[600];
    tgi_desc d;
    void *data = NULL;
    tgi_err err = {0};
    snprintf(path, sizeof path, "%s/conformance/propainter/ops/%s", TG_SHARED_DATA, name);
    CHECK_OK(tgi_npy_load(path, 0, &d, &data, &err), err);
    if (!data)
        return NULL;
    CHECK(d.rank == 2 && d.dtype == TG_DTYPE_U8);
    *h = d.dim[0];
    *w = d.dim[1];
    return data;
}

static void against_golden(const char *mask, int dilation, const char *name)
{
    char path[600];
    int64_t h = 0, w = 0;
    uint8_t *want = golden(name, &h, &w);
    snprintf(path, sizeof path, "%s/conformance/propainter/ops/%s", TG_SHARED_DATA, mask);
    if (!want)
        return;
    tgi_masks_how how = of(path, 1);
    how.height = h;
    how.width = w;
    how.dilation = dilation;
    tgi_masks *m = opened(&how);
    uint8_t *got = malloc((size_t)(h * w));
    tgi_err err = {0};
    int64_t other = 0;
    if (m)
        CHECK_OK(tgi_masks_read(m, 0, got, &err), err);
    for (int64_t i = 0; m && i < h * w; i++)
        other += got[i] != (want[i] != 0);
    CHECK_EQ(other, 0);
    free(got);
    tgi_free(want);
    tgi_masks_close(&m);
}

static void test_goldens_of_propainter(void)
{
    if (!tg_has(TG_SHARED_DATA "/conformance/propainter/ops/index.json"))
        return;
    against_golden("pil_resize_mask/mask.npy", 0, "pil_resize_mask/nearest_160x128.npy");
    against_golden("pil_resize_mask/mask.npy", 0, "pil_resize_mask/nearest_232x128.npy");
    against_golden("pil_resize_mask/mask.npy", 0, "pil_resize_mask/nearest_237x132.npy");
    against_golden("pil_resize_mask/nearest_232x128.npy", 1, "mask_dilation/it1.npy");
    against_golden("pil_resize_mask/nearest_232x128.npy", 4, "mask_dilation/it4.npy");
    against_golden("pil_resize_mask/nearest_232x128.npy", 8, "mask_dilation/it8.npy");
}

/* Masks that others made. */
static void test_masks_of_others(void)
{
    static const char *const names[] = {"bmx-trees_mask", "running_car_mask_square.png",
                                        "running_car_mask_logo.png"};
    for (int i = 0; i < 3; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/data/video/%s", TG_SHARED_DATA, names[i]);
        if (!tg_has(path))
            continue;
        tgi_masks_how how = of(path, 80);
        how.height = 240;
        how.width = 432;
        tgi_masks *m = opened(&how);
        CHECK(m && tgi_masks_is_still(m) == (i > 0));
        for (int k = 0; m && tgi_masks_note(m, k); k++)
            printf("     %s\n", tgi_masks_note(m, k));
        tgi_masks_close(&m);
    }
}

/* What a lossy codec made of a mask is grey around its edges. */
static void test_a_lossy_film_has_a_threshold(void)
{
    const tgi_av_ops *ops;
    tgi_err err = {0};
    const char *path = TG_SHARED_DATA "/data/video/carphone_pristine.mp4";
    if (tgi_av_ops_get(&ops, &err) != TG_OK || !tg_has(path)) {
        printf("     without films: %s\n", err.text);
        return;
    }
    tgi_masks_how how = of(path, 2);
    how.open.budget = (size_t)1 << 30;
    tgi_masks *m = opened(&how);
    NOTES(m, "numbers above 127 of 255 are masked; --mask-threshold N");
    tgi_masks_close(&m);
    how.threshold = 30;
    m = opened(&how);
    NOTES(m, "different numbers in mask 0: those above 30 are masked");
    tgi_masks_close(&m);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    RUN(test_boxes_are_read_from_text);
    RUN(test_boxes_alone_are_cut_and_have_their_frames);
    RUN(test_boxes_of_other_frames_cover_all_they_touch);
    RUN(test_notes_of_boxes_come_to_an_end);
    RUN(test_boxes_that_are_nowhere_are_refused);
    RUN(test_a_folder_has_a_mask_for_each_frame);
    RUN(test_other_counts);
    RUN(test_a_cut_film_takes_the_masks_of_its_frames);
    RUN(test_a_film_and_a_folder_of_one_are_for_all_frames);
    RUN(test_pages_of_a_tiff_are_masks);
    RUN(test_boxes_join_what_the_file_says);
    RUN(test_masks_of_nothing_and_of_everything_are_refused);
    RUN(test_what_is_wrong_with_files_names_them);
    RUN(test_looking_for_the_first_mask_can_be_stopped);
    RUN(test_requests_for_memory_that_fail);
    RUN(test_other_sizes_are_resized);
    RUN(test_goldens_of_propainter);
    RUN(test_masks_of_others);
    RUN(test_a_lossy_film_has_a_threshold);
    remove_all();
    return TEST_END();
}
