/* Describe: the JSON of networks, images and arrays says what they are. */
#include "engine/base/json.h"
#include "job_help.h"

#define MODEL TG_SOURCE_DIR "/models/tegula_denoise.onnx"
#define MODEL_DIR TG_SHARED_DATA "/data/models/"
#define TIFF_DIR TG_SHARED_DATA "/data/tiff/"

static tgi_json *describe(const char *path)
{
    char *text = NULL;
    tgi_json *doc = NULL;
    tgi_err err = {0};
    const tg_status st = tg_describe(ctx, path, &text);
    if (st != TG_OK)
        fprintf(stderr, "%s: %s\n", path, tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
    if (text)
        CHECK_OK(tgi_json_parse(text, strlen(text), path, &doc, &err), err);
    tg_text_free(text);
    return doc;
}

static double number(const tgi_json *o, const char *key)
{
    double v = -1;
    CHECK(tgi_json_num(tgi_json_get(o, key), &v));
    return v;
}

static const char *text_of(const tgi_json *o, const char *key)
{
    const char *v = NULL;
    CHECK(tgi_json_str(tgi_json_get(o, key), &v));
    return v;
}

/* Entry i of a list of numbers; -1 when it is none. */
static double entry(const tgi_json *list, int i)
{
    const tgi_json *v = tgi_json_first(list);
    double n = -1;
    while (v && i-- > 0)
        v = tgi_json_next(v);
    return tgi_json_num(v, &n) ? n : -1;
}

static void test_the_shipped_network_is_what_its_descriptor_says(void)
{
    tgi_err err = {0};
    tgi_json *m = describe(MODEL), *d = NULL;
    CHECK_OK(tgi_json_load(TG_SOURCE_DIR "/models/tegula_denoise.json", &d, &err), err);
    CHECK_STR(text_of(m, "kind"), "model");
    CHECK_EQ(number(m, "parameters"), number(tgi_json_get(d, "about"), "parameters"));
    const tgi_json *about = tgi_json_get(d, "about");
    CHECK_EQ(entry(tgi_json_get(m, "divisor"), 1), number(about, "divisor"));
    CHECK_EQ(entry(tgi_json_get(m, "divisor"), 2), number(about, "divisor"));
    CHECK_EQ(number(tgi_json_get(m, "operators"), "Conv"), 11);
    CHECK_EQ(entry(tgi_json_get(m, "halo"), 1), entry(tgi_json_get(m, "halo"), 2));
    /* The descriptor counts convolutions alone, describe every operation. */
    CHECK_NEAR(number(m, "flops_per_pixel"), number(about, "flop_per_pixel"),
               0.01 * number(about, "flop_per_pixel"));
    CHECK(number(m, "smallest_bytes_for_gigapixel") < 64e6);
    CHECK(tgi_json_first(tgi_json_get(m, "whole_extent_operators")) == NULL);
    CHECK_EQ(number(m, "stages"), 1);
    CHECK(tgi_json_first(tgi_json_get(m, "stage_cuts")) == NULL);
    tgi_json_free(&m);
    tgi_json_free(&d);
}

static void check_halo(const char *name, double rf)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s/model.onnx", MODEL_DIR, name);
    tgi_json *m = describe(path);
    const double halo = entry(tgi_json_get(m, "halo"), 2);
    const double period = entry(tgi_json_get(m, "divisor"), 2);
    printf("     %s: halo %g, receptive field %g\n", name, halo, rf);
    /* Without strides every pixel reads as far to each side. With them the field that was
     * measured holds for one phase of the strides and the halo is the largest of all. */
    if (period == 1)
        CHECK_EQ(2 * halo + 1, rf);
    CHECK(2 * halo + 1 >= rf);
    CHECK(2 * halo + 1 <= rf + 2 * period);
    tgi_json_free(&m);
}

/* The receptive fields were measured by perturbing inputs of a foreign runtime. */
static void test_halos_agree_with_measured_receptive_fields(void)
{
    static const struct {
        const char *name;
        double rf;
    } nets[] = {{"kair_dncnn25", 35},         {"span_x2_nomosuni", 43},
                {"compact_x2_nomosuni", 37},  {"super_resolution_10", 11},
                {"sci_low_light", 7},         {"fsrcnn_x2", 13},
                {"unet2d_nuclei_broad", 110}, {"fmd_noise2noise_unet", 286}};
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++)
        check_halo(nets[i].name, nets[i].rf);
}

static void test_operators_that_read_the_whole_image_are_named(void)
{
    tgi_json *m = describe(MODEL_DIR "fns_candy_nc16/model.onnx");
    const tgi_json *w = tgi_json_get(m, "whole_extent_operators");
    const char *first = NULL;
    CHECK(tgi_json_str(tgi_json_first(w), &first));
    CHECK(first && strstr(first, "InstanceNormalization") != NULL);
    CHECK_EQ(number(m, "stages"), 16); /* 15 of them, one after the other */
    const tgi_json *cut = tgi_json_first(tgi_json_get(m, "stage_cuts"));
    CHECK_EQ(number(cut, "after_stage"), 1);
    CHECK_STR(text_of(cut, "operator"), "InstanceNormalization");
    CHECK_STR(text_of(cut, "node"), first);
    const double least = number(m, "smallest_bytes_for_gigapixel");
    CHECK(least > 1e6 && least < 8e6);
    tgi_json_free(&m);
}

/* Rows of a matrix become pixels, and means a norm; people are told of what the model has. */
static void test_operators_are_those_of_the_model(void)
{
    tgi_json *m = describe(MODEL_DIR "iat_lol_v1/model.onnx");
    const tgi_json *ops = tgi_json_get(m, "operators");
    const char *name, *before = "";
    CHECK_EQ(number(ops, "MatMul"), 9);
    CHECK_EQ(number(ops, "Einsum"), 13);
    CHECK(!tgi_json_get(m, "smallest_bytes_for_gigapixel")); /* products of all pixels */
    CHECK(!tgi_json_get(ops, "PixelMatMul") && !tgi_json_get(ops, "ChannelNorm"));
    const tgi_json *w = tgi_json_first(tgi_json_get(m, "whole_extent_operators"));
    for (; w && tgi_json_str(w, &name); w = tgi_json_next(w)) {
        CHECK(strstr(name, "_output_") == NULL); /* a value */
        CHECK(strcmp(name, before) != 0);
        for (const tgi_json *v = tgi_json_next(w); v; v = tgi_json_next(v)) {
            CHECK(tgi_json_str(v, &before) && strcmp(before, name) != 0); /* each once */
        }
        before = name;
    }
    int named = 0;
    w = tgi_json_first(tgi_json_get(m, "whole_image_only_operators"));
    for (before = ""; w && tgi_json_str(w, &name); w = tgi_json_next(w), named++) {
        CHECK(strcmp(name, before) != 0);
        before = name;
    }
    char count[32]; /* the words name one of them */
    snprintf(count, sizeof count, " and %d more need ", named - 1);
    CHECK(named > 1 && strstr(text_of(m, "whole_image_only"), count) != NULL);
    tgi_json_free(&m);
}

static void test_an_array_and_the_image_made_of_it(void)
{
    const tgi_desc d = {TG_DTYPE_I16, 3, {2, 30, 40}};
    int16_t *data = calloc(2400, sizeof *data);
    tgi_err err = {0};
    CHECK_OK(tgi_npy_save(in_folder("a.npy"), &d, data, &err), err);
    free(data);
    tgi_json *a = describe(in_folder("a.npy"));
    CHECK_STR(text_of(a, "kind"), "array");
    CHECK_STR(text_of(a, "dtype"), "int16");
    CHECK_EQ(entry(tgi_json_get(a, "shape"), 0), 2);
    CHECK_EQ(entry(tgi_json_get(a, "shape"), 2), 40);
    tgi_json_free(&a);
    CHECK_COPY(TG_OK, "input", in_folder("a.npy"), "output", in_folder("a.tif"), "axes", "ZYX",
               "compress", "deflate");
    a = describe(in_folder("a.tif"));
    CHECK_STR(text_of(a, "kind"), "image");
    CHECK_STR(text_of(a, "format"), "tiff");
    CHECK_STR(text_of(a, "dtype"), "int16");
    CHECK_STR(text_of(a, "axes"), "TCZYX"); /* OME-XML states all five */
    CHECK_STR(text_of(a, "compression"), "deflate");
    CHECK_EQ(number(a, "planes"), 2);
    CHECK_EQ(entry(tgi_json_get(a, "shape"), 2), 2);
    CHECK_EQ(entry(tgi_json_get(a, "shape"), 3), 30);
    CHECK_EQ(entry(tgi_json_first(tgi_json_get(a, "levels")), 1), 40);
    tgi_json_free(&a);
}

static void test_a_real_stack_is_described(void)
{
    tgi_json *a = describe(TIFF_DIR "derived_imagej_hyperstack_t20_z6_c2_u16.tif");
    const char *axes = text_of(a, "axes");
    CHECK_STR(text_of(a, "flavor"), "imagej");
    CHECK_STR(text_of(a, "dtype"), "uint16");
    CHECK_EQ(number(a, "planes"), 240);
    CHECK(axes && strncmp(axes, "TZCYX", 5) == 0);
    tgi_json_free(&a);
}

static void test_what_is_no_such_file_is_refused(void)
{
    char *text = NULL;
    FILE *f = fopen(in_folder("junk.onnx"), "wb");
    CHECK(f && fputs("this is no network at all", f) >= 0 && fclose(f) == 0);
    CHECK_EQ(tg_describe(ctx, in_folder("junk.onnx"), &text), TG_E_FORMAT);
    CHECK_EQ(tg_describe(ctx, in_folder("absent.onnx"), &text), TG_E_NOT_FOUND);
    CHECK_EQ(tg_describe(ctx, in_folder("absent.tif"), &text), TG_E_NOT_FOUND);
    CHECK(strstr(tg_ctx_detail(ctx), "absent.tif") != NULL);
    CHECK_EQ(tg_describe(ctx, NULL, &text), TG_E_ARG);
    CHECK(text == NULL);
}

int main(void)
{
    help_open();
    RUN(test_the_shipped_network_is_what_its_descriptor_says);
    RUN(test_an_array_and_the_image_made_of_it);
    RUN(test_what_is_no_such_file_is_refused);
    if (tg_has(MODEL_DIR "index.csv") && tg_has(TIFF_DIR "index.csv")) {
        RUN(test_halos_agree_with_measured_receptive_fields);
        RUN(test_operators_that_read_the_whole_image_are_named);
        RUN(test_operators_are_those_of_the_model);
        RUN(test_a_real_stack_is_described);
    }
    help_close();
    return TEST_END();
}
