/* The model behind seconds_estimate: its sums against numbers worked out by hand, and its file.
 */
#include "engine/plan/speed.h"

#include "engine/base/mem.h"
#include "engine/memory/monitor_machine.h"
#include "kernels/ops/op_attrs.h"
#include "tests/tg_test.h"

#include <stdlib.h>
#include <string.h>

/* Ten processor seconds beside the kernels, 2 fixed, 4 of a first pass, 1 of clearing, 3 at the
 * end. */
static tgi_speeds figures(void)
{
    tgi_speeds s = {.processors = 4,
                    .clear = 1e-9,
                    .fixed = 2,
                    .finish = 1e-9,
                    .statistics = 4e-9,
                    .sample = 1e-9};
    s.decode[TGI_CODEC_ZSTD] = 2e-9;
    s.encode[TGI_CODEC_DEFLATE] = 1e-9;
    return s;
}

static const tgi_speed_io work = {.samples_in = 1e9,
                                  .samples_out = 2e9,
                                  .bytes_in = 2e9,
                                  .bytes_out = 3e9,
                                  .samples_statistics = 1e9,
                                  .arena_bytes = 1e9,
                                  .in = TGI_CODEC_ZSTD,
                                  .out = TGI_CODEC_DEFLATE};

static void what_is_beside_the_kernels_shares_all_processors_with_them(void)
{
    const tgi_speeds s = figures();
    /* beside: 3e9 samples * 1 ns + 2e9 bytes * 2 ns + 3e9 bytes * 1 ns = 10 s on 4 processors
     */
    CHECK_NEAR(tgi_speed_job(&s, 8, &work, 4), 2 + 1 + 4 + (8 + 2.5) + 3, 1e-9);
}

static void what_is_beside_the_kernels_hides_on_processors_that_they_leave(void)
{
    const tgi_speeds s = figures();
    CHECK_NEAR(tgi_speed_job(&s, 8, &work, 2), 2 + 1 + 4 + 8 + 3, 1e-9); /* 5 s on two */
    CHECK_NEAR(tgi_speed_job(&s, 4, &work, 2), 2 + 1 + 4 + (4 + 2.5) + 3, 1e-9); /* too many */
}

static void a_film_takes_what_its_slowest_thread_takes_or_what_all_take(void)
{
    const tgi_speeds s = figures();
    tgi_speed_io film = {.samples_in = 1e9, .samples_out = 1e9, .encoders = 1, .is_film = 1};
    film.decoding = 3;
    film.encoding = 9;
    CHECK_NEAR(tgi_speed_job(&s, 1, &film, 1), 2.1 + 9, 1e-9);
    film.encoders =
        2; /* 1 + 2 + 3 + 9 s on four processors; the encoder's two threads take 4.5 s */
    CHECK_NEAR(tgi_speed_job(&s, 1, &film, 1), 2.1 + 4.5, 1e-9);
    CHECK_NEAR(tgi_speed_job(&s, 8, &film, 4), 2.1 + (4 * 8 + 14) / 4.0, 1e-9);
    film.encoders = 1;
    film.encoding *= 2;
    CHECK_NEAR(tgi_speed_job(&s, 1, &film, 1), 2.1 + 18, 1e-9); /* twice the frames */
    film.rows = 4e6; /* 32 s, half of them and of 2 s of samples by the thread of the kernels */
    CHECK_NEAR(tgi_speed_job(&s, 20, &film, 1), 2.1 + 20 + 17, 1e-9);
}

static void a_first_pass_and_codecs_cost_only_where_they_are(void)
{
    const tgi_speeds s = figures();
    tgi_speed_io plain = work;
    plain.in = plain.out = TGI_CODEC_NONE;
    plain.samples_statistics = 0;
    CHECK_NEAR(tgi_speed_job(&s, 8, &plain, 4), 2 + 1 + (8 + 0.75) + 3, 1e-9);
}

static void the_last_figure_of_a_key_counts_and_the_table_has_an_end(void)
{
    tgi_speeds s = {.processors = 2};
    char key[16];
    tgi_speed_set(&s, "a", 1, 2);
    tgi_speed_set(&s, "a", 3, 4);
    CHECK_EQ(s.n_kernels, 1);
    CHECK(s.kernel[0].one == 3 && s.kernel[0].all == 4);
    for (int i = 0; i < 2 * TGI_MAX_SPEEDS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        tgi_speed_set(&s, key, 1, 1);
    }
    CHECK_EQ(s.n_kernels, TGI_MAX_SPEEDS);
}

/* Conv 3x3, 12 to 12 channels, direct, as the portable backend (8 lanes) runs it on 64x32. */
static tgi_graph *twelve_channels(void)
{
    static const int64_t dims[4] = {1, 12, 64, 32};
    static const float w[12 * 12 * 9];
    const tgi_desc d = {TG_DTYPE_F32, 4, {12, 12, 3, 3}};
    tgi_graph *g = NULL;
    tgi_node *node = NULL;
    tgi_err e = {0};
    int src[2], y;
    CHECK_OK(tgi_graph_new(&g, &e), e);
    CHECK_OK(tgi_graph_add_value(g, "x", &src[0], &e), e);
    CHECK_OK(tgi_graph_add_input(g, src[0], 4, dims, &e), e);
    CHECK_OK(tgi_graph_add_const(g, "w", &d, w, 0, &src[1], &e), e);
    CHECK_OK(tgi_graph_add_value(g, "y", &y, &e), e);
    CHECK_OK(tgi_graph_add_node(g, "Conv", "c", 2, src, 1, &y, &node, &e), e);
    conv_attrs *a = node->attrs;
    a->kernel_shape.n = 2;
    a->pads.n = 4;
    for (int i = 0; i < 4; i++)
        a->kernel_shape.v[i % 2] = 3, a->pads.v[i] = 1;
    CHECK_OK(tgi_graph_add_output(g, y, &e), e);
    CHECK_OK(tgi_graph_finish(g, 0, &e), e);
    return g;
}

static void a_convolution_takes_time_for_full_vectors_and_for_its_bytes(void)
{
    const double operations = 2.0 * 9 * 12 * 16 * 64 * 32, bytes = 4.0 * (16 + 16) * 64 * 32;
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, 12, 64, 32}};
    const int64_t uncut[3] = {0, 0, 0};
    tgi_speeds s = {.processors = 1};
    tgi_graph *g = twelve_channels();
    tgi_net *net = NULL;
    tgi_stages *stages = NULL;
    tgi_tiling t = {0};
    tgi_err e = {0};
    CHECK_OK(tgi_net_new(g, tgi_backend_for(TGI_ISA_PORTABLE), &in, TGI_NET_EXACT, &net, &e),
             e);
    CHECK_OK(tgi_stages_new(net, &stages, &e), e);
    CHECK_OK(tgi_tiling_make(&stages->one, uncut, 64, 1, NULL, &t, &e), e);
    CHECK(tgi_speed_kernels(&s, &t, 1) < 0); /* nothing is known of it */
    tgi_speed_set(&s, "portable conv_direct/16", operations / 3, operations / 3);
    CHECK_NEAR(tgi_speed_kernels(&s, &t, 1), 3, 1e-9);
    tgi_speed_set(&s, "portable bytes", bytes / 4, bytes / 4);
    CHECK_NEAR(tgi_speed_kernels(&s, &t, 1), 5, 1e-9); /* 3 and 4 s, added as squares */
    CHECK_NEAR(tgi_speed_alone(5, 4), 3, 1e-9);
    CHECK(tgi_speed_alone(4, 5) == 0);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    tgi_net_free(&net);
    tgi_graph_free(&g);
}

static void a_kernel_says_what_it_spends_its_time_on(void)
{
    int sets = 0;
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++) {
        const tgi_kernel_set *set = tgi_backend_for_plans((tgi_isa)isa);
        for (size_t i = 0; set && set->variants[i]; i++) {
            const tgi_variant *v = set->variants[i];
            const int conv = strcmp(v->op, "Conv") == 0 ||
                             strcmp(v->op, "ConvTranspose") == 0 ||
                             strcmp(v->op, "DeformConv") == 0;
            const int attention =
                strstr(v->op, "Attention") != NULL || strcmp(v->op, "CorrelationLookup") == 0;
            const int said = attention ? v->work == TGI_WORK_ATTENTION
                             : conv    ? v->work >= TGI_WORK_CONV
                                       : v->work == TGI_WORK_BYTES;
            CHECK_STR(said ? "" : v->name, "");
        }
        sets += set != NULL;
    }
    CHECK(sets > 0);
}

static void keys_of_operators_without_a_tuned_kernel_are_known(void)
{
    CHECK(tgi_speed_key_untuned("flat MatMul"));
    CHECK(tgi_speed_key_untuned("reference Where"));
    CHECK(tgi_speed_key_untuned("reference"));
    CHECK(!tgi_speed_key_untuned("flatter MatMul"));
    CHECK(!tgi_speed_key_untuned("avx512 conv_direct/16"));
    CHECK(!tgi_speed_key_untuned(""));
}

static char *text_of(const tgi_speeds *s)
{
    tgi_jw w = {0};
    char *text = NULL;
    tgi_err e = {0};
    tgi_jw_begin(&w, NULL, '{');
    tgi_speeds_write(&w, s);
    tgi_jw_end(&w, '}');
    CHECK_OK(tgi_jw_take(&w, &text, &e), e);
    return text;
}

static void figures_come_back_as_they_were_written(void)
{
    tgi_speeds s = figures(), back;
    tgi_json *doc = NULL;
    tgi_err e = {0};
    snprintf(s.processor, sizeof s.processor, "Some Processor");
    tgi_speed_set(&s, "avx2 conv_direct/16", 1.25e11, 2.5e11);
    tgi_speed_set(&s, "reference", 1e9, 1e9);
    char *text = text_of(&s);
    CHECK_OK(tgi_json_parse(text, strlen(text), "speeds", &doc, &e), e);
    CHECK_OK(tgi_speeds_read(doc, &back, &e), e);
    CHECK(memcmp(&s, &back, sizeof s) == 0);
    tgi_json_free(&doc);
    tgi_free(text);
}

static void what_is_no_file_of_speeds_is_refused(void)
{
    static const char *const bad[] = {
        "[]", "{}", "{\"processor\":\"x\",\"processors\":0}",
        "{\"processor\":\"x\",\"processors\":2,\"clear_seconds_per_byte\":-1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tgi_json *doc = NULL;
        tgi_speeds s;
        tgi_err e = {0};
        CHECK_OK(tgi_json_parse(bad[i], strlen(bad[i]), "speeds", &doc, &e), e);
        CHECK_EQ(tgi_speeds_read(doc, &s, &e), TG_E_FORMAT);
        tgi_json_free(&doc);
    }
}

static void figures_of_another_processor_are_not_used(void)
{
    char folder[] = "/tmp/tegula-speed-XXXXXX", path[256];
    tgi_speeds s = figures(), back;
    tgi_err e = {0};
    tgi_processors here;
    tgi_processors_read("", &here);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/calibration.json", folder);
    setenv("TEGULA_CACHE", folder, 1);
    CHECK_EQ(tgi_speeds_load(&back, &e), TG_E_NOT_FOUND);
    for (int own = 0; own < 2; own++) {
        snprintf(s.processor, sizeof s.processor, "of no machine");
        if (own)
            snprintf(s.processor, sizeof s.processor, "%s", here.model);
        char *text = text_of(&s);
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
        tgi_free(text);
        CHECK_EQ(tgi_speeds_load(&back, &e), own ? TG_OK : TG_E_NOT_FOUND);
    }
    remove(path);
    remove(folder);
    unsetenv("TEGULA_CACHE");
}

int main(void)
{
    RUN(what_is_beside_the_kernels_shares_all_processors_with_them);
    RUN(what_is_beside_the_kernels_hides_on_processors_that_they_leave);
    RUN(a_film_takes_what_its_slowest_thread_takes_or_what_all_take);
    RUN(a_first_pass_and_codecs_cost_only_where_they_are);
    RUN(the_last_figure_of_a_key_counts_and_the_table_has_an_end);
    RUN(a_convolution_takes_time_for_full_vectors_and_for_its_bytes);
    RUN(a_kernel_says_what_it_spends_its_time_on);
    RUN(keys_of_operators_without_a_tuned_kernel_are_known);
    RUN(figures_come_back_as_they_were_written);
    RUN(what_is_no_file_of_speeds_is_refused);
    RUN(figures_of_another_processor_are_not_used);
    return TEST_END();
}
