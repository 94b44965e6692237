/* .npy arrays: what numpy writes is read, what we write is read back, damage is named. */
#include "io/image.h"
#include "io/npy.h"
#include "tests/tg_test.h"

#include <dirent.h>

static char path[256];

static void write_file(const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(p, 1, n, f) == n);
    if (f)
        fclose(f);
}

/* A file of version `major` with this literal and data behind it. */
static void write_npy(int major, const char *literal, const void *data, size_t n)
{
    char buf[1024];
    const size_t len = strlen(literal), at = major == 1 ? 10 : 12;
    memset(buf, 0, sizeof buf);
    memcpy(buf, "\x93NUMPY", 6);
    buf[6] = (char)major;
    buf[8] = (char)(len & 255);
    buf[9] = (char)(len >> 8);
    memcpy(buf + at, literal, len);
    memcpy(buf + at + len, data, n);
    write_file(buf, at + len + n);
}

static void test_every_type_goes_out_and_comes_back(void)
{
    for (int t = TG_DTYPE_U8; t <= TG_DTYPE_BOOL; t++) {
        const tgi_desc d = {(tg_dtype)t, 3, {2, 3, 5}};
        uint8_t data[30 * 8];
        tgi_desc got = {0};
        void *back = NULL;
        tgi_npy_in in = {.file.fd = -1};
        uint8_t piece[30 * 8];
        tgi_err err = {0};
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)(t == TG_DTYPE_BOOL ? i & 1 : i * 37);
        CHECK_OK(tgi_npy_save(path, &d, data, &err), err);
        CHECK_OK(tgi_npy_load(path, 0, &got, &back, &err), err);
        CHECK_EQ(got.dtype, t);
        CHECK(tgi_desc_same_shape(&got, &d));
        CHECK(back && memcmp(back, data, 30 * tgi_dtype_size(d.dtype)) == 0);
        CHECK_OK(tgi_npy_open(path, &in, &err), err);
        CHECK_EQ(in.head.data_bytes, 30 * tgi_dtype_size(d.dtype));
        CHECK_OK(tgi_rfile_read(&in.file, in.head.data_off, piece, in.head.data_bytes, &err),
                 err);
        CHECK(memcmp(piece, data, in.head.data_bytes) == 0);
        tgi_npy_close(&in);
        tgi_free(back);
    }
}

static void test_scalars_vectors_and_empty_arrays_keep_their_shape(void)
{
    const tgi_desc shapes[] = {
        {TG_DTYPE_F32, 0, {0}}, {TG_DTYPE_F32, 1, {1}}, {TG_DTYPE_F32, 2, {0, 4}}};
    for (size_t i = 0; i < 3; i++) {
        const float one = 1;
        tgi_desc got;
        void *p = NULL;
        tgi_err err = {0};
        CHECK_OK(tgi_npy_save(path, &shapes[i], &one, &err), err);
        CHECK_OK(tgi_npy_load(path, 0, &got, &p, &err), err);
        CHECK(tgi_desc_same_shape(&got, &shapes[i]));
        tgi_free(p);
    }
}

static void test_versions_byte_orders_and_loose_spelling_are_read(void)
{
    const uint8_t big[] = {0x01, 0x02, 0x03, 0x04}; /* two >u2: 258, 772 */
    static const char *const literals[] = {
        "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n",
        "{\"shape\":(2,),\"descr\":\">u2\",\"fortran_order\":False}",
        "  { 'fortran_order' : True , 'shape' : ( 2 , ) , 'descr' : '>u2' }   \n",
    };
    for (int major = 1; major <= 3; major++) {
        tgi_desc d;
        void *p = NULL;
        tgi_err err = {0};
        write_npy(major, literals[major - 1], big, 4);
        CHECK_OK(tgi_npy_load(path, 0, &d, &p, &err), err);
        if (p) {
            CHECK_EQ(((uint16_t *)p)[0], 258);
            CHECK_EQ(((uint16_t *)p)[1], 772);
        }
        tgi_free(p);
        tgi_npy_in in;
        CHECK_STATUS(tgi_npy_open(path, &in, &err), TG_E_UNSUPPORTED, err);
    }
}

static void test_fortran_order_has_its_first_axis_fastest(void)
{
    const float values[6] = {0, 1, 2, 3, 4, 5};
    int64_t step[TGI_MAX_RANK];
    tgi_npy_in in;
    tgi_err err = {0};
    write_npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", values,
              sizeof values);
    CHECK_OK(tgi_npy_open(path, &in, &err), err);
    CHECK(in.head.fortran);
    tgi_npy_steps(&in.head, step);
    CHECK_EQ(step[0], 1);
    CHECK_EQ(step[1], 2);
    CHECK_STATUS(tgi_npy_check_order(&in.head, path, &err), TG_E_UNSUPPORTED, err);
    tgi_npy_close(&in);
    err = (tgi_err){0};
    write_npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", values,
              sizeof values);
    CHECK_OK(tgi_npy_open(path, &in, &err), err);
    CHECK(!in.head.fortran); /* one axis has one order */
    tgi_npy_close(&in);
}

static void test_damage_and_strange_types_are_named(void)
{
    static const struct {
        const char *literal;
        tg_status st;
        const char *words;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", TG_E_UNSUPPORTED,
         "Fortran order"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", TG_E_UNSUPPORTED, "<c8"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", TG_E_UNSUPPORTED, "|O"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }{", TG_E_FORMAT, "behind"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", TG_E_UNSUPPORTED,
         "structured"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", TG_E_FORMAT,
         "more bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }",
         TG_E_FORMAT, "more bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
         TG_E_FORMAT, "number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", TG_E_FORMAT, "number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", TG_E_FORMAT, "shape"},
        {"{'descr': '<f4', 'fortran_order': False, }", TG_E_FORMAT, "lacks"},
        {"{'descr': '<f4', 'descr': '<f4', }", TG_E_FORMAT, "unexpected key"},
        {"{'descr': '<f4", TG_E_FORMAT, "descr"},
        {"", TG_E_FORMAT, "dictionary"},
    };
    const float one = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tgi_desc d;
        void *p = NULL;
        tgi_err err = {0};
        write_npy(1, cases[i].literal, &one, 4);
        CHECK_EQ(tgi_npy_load(path, 0, &d, &p, &err), cases[i].st);
        CHECK(strstr(err.text, cases[i].words) != NULL);
        if (!strstr(err.text, cases[i].words))
            fprintf(stderr, "  case %zu: %s\n", i, err.text);
    }
}

static void test_a_cut_file_is_damage_at_every_length(void)
{
    const tgi_desc d = {TG_DTYPE_U16, 2, {3, 4}};
    uint8_t bytes[256];
    uint16_t data[12] = {0};
    tgi_err err = {0};
    CHECK_OK(tgi_npy_save(path, &d, data, &err), err);
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    CHECK_EQ(n, 128 + 24);
    for (size_t k = 0; k < n; k++) {
        tgi_desc got;
        void *p = NULL;
        write_file(bytes, k);
        CHECK_STATUS(tgi_npy_load(path, 0, &got, &p, &err), TG_E_FORMAT, err);
    }
}

static void test_an_array_over_the_limit_is_refused_before_it_is_loaded(void)
{
    const tgi_desc d = {TG_DTYPE_U8, 1, {1000}};
    uint8_t data[1000] = {0};
    tgi_desc got;
    void *p = NULL;
    tgi_err err = {0};
    CHECK_OK(tgi_npy_save(path, &d, data, &err), err);
    CHECK_STATUS(tgi_npy_load(path, 999, &got, &p, &err), TG_E_BUDGET, err);
    CHECK_OK(tgi_npy_load(path, 1000, &got, &p, &err), err);
    tgi_free(p);
}

static void test_a_stream_must_be_complete_and_inside(void)
{
    const tgi_desc d = {TG_DTYPE_U16, 2, {4, 3}};
    const uint16_t row[3] = {7, 8, 9};
    tgi_npy_out o = {.part = TGI_PART_CLOSED}, second = o;
    tgi_desc got;
    void *p = NULL;
    tgi_err err = {0};
    unlink(path);
    CHECK_OK(tgi_npy_create(path, &d, 0, &o, &err), err);
    CHECK(access(path, F_OK) != 0); /* no name before it is whole */
    CHECK_STATUS(tgi_npy_create(path, &d, 1, &second, &err), TG_E_BUSY, err);
    tgi_npy_abandon(&second); /* nothing of the first one's */
    for (uint64_t y = 4; y-- > 0;)
        CHECK_OK(tgi_npy_write(&o, y * 6, row, 6, &err), err);
    CHECK_STATUS(tgi_npy_write(&o, 20, row, 6, &err), TG_E_ARG, err);
    CHECK_OK(tgi_npy_finish(&o, &err), err);
    CHECK_OK(tgi_npy_load(path, 0, &got, &p, &err), err);
    CHECK(p && ((uint16_t *)p)[11] == 9);
    tgi_free(p);
    CHECK_STATUS(tgi_npy_create(path, &d, 0, &o, &err), TG_E_EXISTS, err);
    CHECK_OK(tgi_npy_create(path, &d, 1, &o, &err), err);
    CHECK_OK(tgi_npy_write(&o, 0, row, 6, &err), err);
    CHECK_STATUS(tgi_npy_finish(&o, &err), TG_E_INTERNAL, err);
    tgi_npy_abandon(&o);
    tgi_npy_abandon(&o);                                  /* safe again */
    CHECK_OK(tgi_npy_load(path, 0, &got, &p, &err), err); /* the older one is as it was */
    CHECK(p && ((uint16_t *)p)[11] == 9);
    tgi_free(p);
}

static void test_a_file_that_came_meanwhile_is_not_replaced(void)
{
    const tgi_desc d = {TG_DTYPE_U8, 1, {3}};
    char partial[300];
    tgi_npy_out o = {.part = TGI_PART_CLOSED};
    tgi_desc got;
    void *p = NULL;
    tgi_err err = {0};
    snprintf(partial, sizeof partial, "%s.partial", path);
    unlink(path);
    CHECK_OK(tgi_npy_create(path, &d, 0, &o, &err), err);
    CHECK_OK(tgi_npy_write(&o, 0, "abc", 3, &err), err);
    write_file("other", 5);
    CHECK_EQ(tgi_npy_finish(&o, &err), TG_E_EXISTS);
    CHECK(strstr(err.text, partial) != NULL); /* says where the result stays, */
    tgi_npy_abandon(&o);
    CHECK_OK(tgi_npy_load(partial, 0, &got, &p, &err), err); /* and it does */
    CHECK(p && memcmp(p, "abc", 3) == 0);
    CHECK_EQ(tgi_npy_load(path, 0, &got, &p, &err), TG_E_FORMAT); /* the other's */
    tgi_free(p);
    unlink(partial);
}

static void test_an_array_is_an_image_by_rank_or_by_named_axes(void)
{
    static const struct {
        const char *axes, *want;
        int64_t planes;
        int samples, planar;
    } cases[] = {{NULL, "TZYX", 6, 1, 0},
                 {"ZYXS", "ZYXS", 2, 5, 0},
                 {"ZSYX", "ZSYX", 2, 3, 1},
                 {"SYZX", "SYZX", 4, 2, 1}};
    const tgi_desc d = {TG_DTYPE_I16, 4, {2, 3, 4, 5}};
    int16_t data[120];
    tgi_err err = {0};
    for (int i = 0; i < 120; i++)
        data[i] = (int16_t)i;
    CHECK_OK(tgi_npy_save(path, &d, data, &err), err);
    for (size_t c = 0; c < 4; c++) {
        const tgi_open_opts o = {.threads = 1, .axes = cases[c].axes};
        tgi_source *s = NULL;
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        if (!s)
            continue;
        const tgi_image_info *i = s->ops->info(s);
        CHECK_STR(i->axes, cases[c].want);
        CHECK_EQ(i->n_planes, cases[c].planes);
        CHECK_EQ(i->samples, cases[c].samples);
        CHECK_EQ(i->planar_samples, cases[c].planar);
        int16_t v[2];
        /* last plane, last sample, last row, last two columns */
        CHECK_OK(s->ops->read(s, 0, i->n_planes - 1, i->samples - 1, i->samples, i->height - 1,
                              i->height, i->width - 2, i->width, v, 4, 4, &err),
                 err);
        CHECK_EQ(v[1], 119);
        CHECK_EQ(v[0], i->axes[3] == 'S' ? 114 : 118);
        int16_t all[10], last; /* of the last two columns, all samples side by side */
        CHECK_OK(s->ops->read(s, 0, i->n_planes - 1, 0, i->samples, i->height - 1, i->height,
                              i->width - 2, i->width, all, 0, TGI_INTERLEAVED, &err),
                 err);
        CHECK_OK(s->ops->read(s, 0, i->n_planes - 1, 0, 1, i->height - 1, i->height,
                              i->width - 1, i->width, &last, 2, 2, &err),
                 err);
        CHECK_EQ(all[2 * i->samples - 1], 119);
        CHECK_EQ(all[i->samples - 1], v[0]);
        CHECK_EQ(all[i->samples], last);
        tgi_source_close(&s);
    }
    const tgi_open_opts bad = {.threads = 1, .axes = "ZYXT"},
                        twice = {.threads = 1, .axes = "ZZYX"};
    tgi_source *s = NULL;
    CHECK_STATUS(tgi_source_open(path, &bad, &s, &err), TG_E_UNSUPPORTED, err);
    CHECK_STATUS(tgi_source_open(path, &twice, &s, &err), TG_E_ARG, err);
}

/* The golden tensors of the sample models were written by numpy itself. */
static void test_arrays_that_numpy_wrote_are_read(void)
{
    char dir[512];
    int n = 0;
    DIR *models = tg_has(TG_SHARED_DATA "/data/models/index.csv")
                      ? opendir(TG_SHARED_DATA "/data/models")
                      : NULL;
    for (struct dirent *m; models && (m = readdir(models));) {
        snprintf(dir, sizeof dir, "%s/data/models/%s", TG_SHARED_DATA, m->d_name);
        DIR *d = m->d_name[0] == '.' ? NULL : opendir(dir);
        for (struct dirent *e; d && (e = readdir(d));) {
            char file[1024]; /* folder and name */
            tgi_desc desc;
            void *p = NULL;
            tgi_err err = {0};
            if (!strstr(e->d_name, ".npy"))
                continue;
            snprintf(file, sizeof file, "%s/%s", dir, e->d_name);
            CHECK_OK(tgi_npy_load(file, 64u << 20, &desc, &p, &err), err);
            CHECK_EQ(desc.dtype, TG_DTYPE_F32);
            tgi_free(p);
            n++;
        }
        if (d)
            closedir(d);
    }
    if (models) {
        closedir(models);
        CHECK(n > 20);
    }
    printf("%d golden arrays\n", n);
}

static void read_all(const tgi_open_opts *o, int16_t all[120], int interleaved)
{
    tgi_source *s = NULL;
    tgi_err err = {0};
    CHECK_OK(tgi_source_open(path, o, &s, &err), err);
    if (!s)
        return;
    const tgi_image_info *i = s->ops->info(s);
    const int64_t plane = i->height * i->width * i->samples;
    const size_t row = (size_t)i->width * 2;
    for (int64_t k = 0; k < i->n_planes; k++)
        CHECK_OK(s->ops->read(s, 0, k, 0, i->samples, 0, i->height, 0, i->width,
                              all + k * plane, interleaved ? row * (size_t)i->samples : row,
                              interleaved ? TGI_INTERLEAVED : row * (size_t)i->height, &err),
                 err);
    tgi_source_close(&s);
}

/* The same numbers in the other order of axes are the same image. */
static void test_an_image_in_fortran_order(void)
{
    static const char *const axes[] = {NULL, "ZYXS", "ZSYX", "SYZX", "TZYX"};
    const tgi_desc d = {TG_DTYPE_I16, 4, {2, 3, 4, 5}};
    int16_t data[120], turned[120], want[120], got[120];
    tgi_err err = {0};
    for (int i = 0; i < 120; i++) {
        data[i] = (int16_t)(7 * i);
        const int a = i / 60, b = i / 20 % 3, c = i / 5 % 4, e = i % 5;
        turned[a + 2 * b + 6 * c + 24 * e] = data[i];
    }
    for (size_t k = 0; k < sizeof axes / sizeof axes[0]; k++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            const tgi_open_opts o = {.threads = 1, .axes = axes[k]};
            memset(want, 0, sizeof want);
            memset(got, 1, sizeof got);
            CHECK_OK(tgi_npy_save(path, &d, data, &err), err);
            read_all(&o, want, interleaved);
            write_npy(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4, 5), }",
                      turned, sizeof turned);
            read_all(&o, got, interleaved);
            CHECK(memcmp(want, got, sizeof want) == 0);
        }
}

int main(void)
{
    snprintf(path, sizeof path, "test_npy.%d.npy", (int)getpid());
    RUN(test_every_type_goes_out_and_comes_back);
    RUN(test_scalars_vectors_and_empty_arrays_keep_their_shape);
    RUN(test_versions_byte_orders_and_loose_spelling_are_read);
    RUN(test_fortran_order_has_its_first_axis_fastest);
    RUN(test_an_image_in_fortran_order);
    RUN(test_damage_and_strange_types_are_named);
    RUN(test_a_cut_file_is_damage_at_every_length);
    RUN(test_an_array_over_the_limit_is_refused_before_it_is_loaded);
    RUN(test_a_stream_must_be_complete_and_inside);
    RUN(test_a_file_that_came_meanwhile_is_not_replaced);
    RUN(test_an_array_is_an_image_by_rank_or_by_named_axes);
    RUN(test_arrays_that_numpy_wrote_are_read);
    unlink(path);
    return TEST_END();
}
