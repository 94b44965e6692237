/* Frames of videos by their headers: files made here byte by byte, the sample videos against
 * what a decoder counted in them, and damage. */
#include "io/video_head.h"
#include "tests/tg_test.h"

#include <dirent.h>
#include <sys/mman.h>

/* ---- Files ------------------------------------------------------------------------------- */

typedef struct made {
    uint8_t at[4096];
    size_t n;
} made;

static void put(made *m, const void *bytes, size_t n)
{
    CHECK(m->n + n <= sizeof m->at);
    if (n && m->n + n <= sizeof m->at)
        memcpy(m->at + m->n, bytes, n);
    m->n += n;
}

/* `n` bytes of a number, the highest first (big) or last. */
static void num(made *m, uint64_t v, int n, int big)
{
    uint8_t b[8];
    for (int i = 0; i < n; i++)
        b[big ? n - 1 - i : i] = (uint8_t)(v >> 8 * i);
    put(m, b, (size_t)n);
}

static void pad(made *m, size_t n)
{
    static const uint8_t zeros[256];
    put(m, zeros, n);
}

/* In memory, for thousands of files. */
static const char *file_name(void)
{
    static char name[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("video", MFD_CLOEXEC);
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    }
    return name;
}

static void write_file(const uint8_t *bytes, size_t n)
{
    CHECK_EQ(truncate(file_name(), 0), 0);
    FILE *f = fopen(file_name(), "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    if (f)
        fclose(f);
}

/* A box, or a chunk, whose length is known when it ends. */
static size_t begin_box(made *m, const char *name)
{
    const size_t at = m->n;
    num(m, 0, 4, 1);
    put(m, name, 4);
    return at;
}

static void end_box(made *m, size_t at)
{
    const uint32_t n = (uint32_t)(m->n - at);
    for (int i = 0; i < 4; i++)
        m->at[at + (size_t)i] = (uint8_t)(n >> 8 * (3 - i));
}

static void mp4_track(made *m, uint32_t id, const char *kind, int w, int h, uint32_t samples)
{
    const size_t trak = begin_box(m, "trak"), tkhd = begin_box(m, "tkhd");
    pad(m, 12);
    num(m, id, 4, 1);
    pad(m, 68);
    end_box(m, tkhd);
    const size_t mdia = begin_box(m, "mdia"), hdlr = begin_box(m, "hdlr");
    pad(m, 8);
    put(m, kind, 4);
    pad(m, 13);
    end_box(m, hdlr);
    const size_t minf = begin_box(m, "minf"), stbl = begin_box(m, "stbl");
    const size_t stsd = begin_box(m, "stsd");
    num(m, 1, 8, 1);
    const size_t entry = begin_box(m, "avc1");
    pad(m, 24);
    num(m, (uint64_t)w, 2, 1);
    num(m, (uint64_t)h, 2, 1);
    pad(m, 50);
    end_box(m, entry);
    end_box(m, stsd);
    const size_t stsz = begin_box(m, "stsz");
    num(m, 0, 8, 1);
    num(m, samples, 4, 1);
    for (uint32_t i = 0; i < samples; i++)
        num(m, 10, 4, 1);
    end_box(m, stsz);
    end_box(m, stbl);
    end_box(m, minf);
    end_box(m, mdia);
    end_box(m, trak);
}

static void mp4_fragment(made *m, uint32_t id, uint32_t samples)
{
    const size_t moof = begin_box(m, "moof"), traf = begin_box(m, "traf");
    const size_t tfhd = begin_box(m, "tfhd");
    num(m, 0, 4, 1);
    num(m, id, 4, 1);
    end_box(m, tfhd);
    const size_t trun = begin_box(m, "trun");
    num(m, 0, 4, 1);
    num(m, samples, 4, 1);
    end_box(m, trun);
    end_box(m, traf);
    end_box(m, moof);
}

/* Sound first, then a video of 7 frames and one of 9; pixels in front, behind a 64-bit length.
 */
static made an_mp4(int fragments)
{
    made m = {.n = 0};
    const size_t ftyp = begin_box(&m, "ftyp");
    put(&m, "isom\0\0\0\0", 8);
    end_box(&m, ftyp);
    num(&m, 1, 4, 1);
    put(&m, "mdat", 4);
    num(&m, 16 + 40, 8, 1);
    pad(&m, 40);
    const size_t moov = begin_box(&m, "moov");
    mp4_track(&m, 5, "soun", 0, 0, 3);
    mp4_track(&m, 6, "vide", 640, 360, fragments ? 0 : 7);
    mp4_track(&m, 7, "vide", 320, 180, 9);
    end_box(&m, moov);
    for (int i = 0; i < fragments; i++) {
        mp4_fragment(&m, 6, 4);
        mp4_fragment(&m, 5, 40);
    }
    return m;
}

/* An element of Matroska: a length of two bytes; 0: unknown. */
static void element(made *m, uint32_t id, int id_bytes, const void *bytes, size_t n)
{
    num(m, id, id_bytes, 1);
    num(m, 0x4000 | n, 2, 1);
    put(m, bytes, n);
}

static void mkv_track(made *m, int number, int type, int w, int h)
{
    made t = {.n = 0}, v = {.n = 0};
    num(&t, 0xD781, 2, 1), num(&t, (uint64_t)number, 1, 1);
    num(&t, 0x8381, 2, 1), num(&t, (uint64_t)type, 1, 1);
    num(&v, 0xB082, 2, 1), num(&v, (uint64_t)w, 2, 1);
    num(&v, 0xBA82, 2, 1), num(&v, (uint64_t)h, 2, 1);
    if (w)
        element(&t, 0xE0, 1, v.at, v.n);
    element(m, 0xAE, 1, t.at, t.n);
}

/* Segment and clusters without lengths, as live streams have them; 5 frames, 2 of sound. */
static made an_mkv(void)
{
    static const uint8_t unknown[] = {0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    made m = {.n = 0}, tracks = {.n = 0}, group = {.n = 0};
    element(&m, 0x1A45DFA3, 4, "\x42\x86\x81\x01", 4);
    num(&m, 0x18538067, 4, 1), put(&m, unknown, 8);
    mkv_track(&tracks, 1, 2, 0, 0);
    mkv_track(&tracks, 2, 1, 400, 300);
    element(&m, 0x1654AE6B, 4, tracks.at, tracks.n);
    num(&m, 0x1F43B675, 4, 1), put(&m, unknown, 8);
    element(&m, 0xA3, 1, "\x82\0\0\x80xx", 6);
    element(&m, 0xA3, 1, "\x81\0\0\x80", 4);
    element(&m, 0xA3, 1, "\x82\0\1\x00yy", 6);
    num(&m, 0x1F43B675, 4, 1), put(&m, unknown, 8);
    element(&group, 0xA1, 1, "\x82\0\2\x00zz", 6);
    element(&m, 0xA0, 1, group.at, group.n);
    element(&m, 0xA3, 1, "\x82\0\3\x02\x01zz", 7); /* laced: one frame more */
    element(&m, 0xA3, 1, "\x81\0\3\x80s", 5);
    return m;
}

static size_t begin_list(made *m, const char *name)
{
    put(m, "LIST", 4);
    const size_t at = m->n;
    num(m, 0, 4, 0);
    put(m, name, 4);
    return at;
}

static void end_list(made *m, size_t at)
{
    const uint32_t n = (uint32_t)(m->n - at - 4);
    for (int i = 0; i < 4; i++)
        m->at[at + (size_t)i] = (uint8_t)(n >> 8 * i);
}

static void avi_stream(made *m, const char *kind, uint32_t length, int w, int h)
{
    const size_t strl = begin_list(m, "strl");
    put(m, "strh", 4), num(m, 56, 4, 0);
    put(m, kind, 4), pad(m, 28), num(m, length, 4, 0), pad(m, 20);
    put(m, "strf", 4), num(m, 17, 4, 0); /* odd: a byte of padding follows */
    num(m, 40, 4, 0), num(m, (uint64_t)w, 4, 0), num(m, (uint64_t)(int64_t)h, 4, 0), pad(m, 6);
    end_list(m, strl);
}

static made an_avi(uint32_t whole)
{
    made m = {.n = 0};
    put(&m, "RIFF\0\0\0\0AVI ", 12); /* a length that nobody filled in */
    const size_t hdrl = begin_list(&m, "hdrl");
    put(&m, "avih", 4), num(&m, 56, 4, 0), pad(&m, 56);
    avi_stream(&m, "auds", 777, 1, 1);
    avi_stream(&m, "vids", 12, 160, -120); /* rows from the top */
    if (whole) {
        const size_t odml = begin_list(&m, "odml");
        put(&m, "dmlh", 4), num(&m, 4, 4, 0), num(&m, whole, 4, 0);
        end_list(&m, odml);
    }
    end_list(&m, hdrl);
    const size_t movi = begin_list(&m, "movi");
    pad(&m, 64);
    end_list(&m, movi);
    return m;
}

static made a_y4m(const char *head, size_t frame, int frames)
{
    made m = {.n = 0};
    put(&m, head, strlen(head));
    for (int i = 0; i < frames; i++) {
        put(&m, "FRAME\n", 6);
        pad(&m, frame);
    }
    return m;
}

/* ---- Right ones -------------------------------------------------------------------------- */

static void expect(const made *m, const char *container, int w, int h, int frames)
{
    tgi_err e = {0};
    tgi_video_head v;
    write_file(m->at, m->n);
    CHECK_OK(tgi_video_head_read(file_name(), &v, &e), e);
    CHECK_STR(v.container, container);
    CHECK_EQ(v.width, w);
    CHECK_EQ(v.height, h);
    CHECK_EQ(v.frames, frames);
    CHECK_EQ(v.file_bytes, m->n);
}

static void test_each_container_says_pixels_and_frames_of_its_first_video(void)
{
    made m = an_mp4(0);
    expect(&m, "MP4", 640, 360, 7);
    m = an_mp4(3);
    expect(&m, "MP4", 640, 360, 12);
    m = an_mp4(0);
    put(&m, "\x7fgarbage behind it", 18);
    expect(&m, "MP4", 640, 360, 7);
    m = an_mkv();
    expect(&m, "Matroska", 400, 300, 5);
    m = an_avi(0);
    expect(&m, "AVI", 160, 120, 12);
    m = an_avi(30); /* of several pieces of a gigabyte */
    expect(&m, "AVI", 160, 120, 30);
}

static void test_frames_of_yuv4mpeg_are_counted_by_their_size(void)
{
    static const struct {
        const char *head;
        int frame;
    } rows[] = {{"YUV4MPEG2 W5 H3 F25:1\n", 15 + 2 * 3 * 2}, /* 420, odd sides */
                {"YUV4MPEG2 W5 H3 F25:1 C420jpeg\n", 15 + 2 * 3 * 2},
                {"YUV4MPEG2 W5 H3 C422\n", 15 + 2 * 3 * 3},
                {"YUV4MPEG2 W5 H3 C444\n", 45},
                {"YUV4MPEG2 W5 H3 C444alpha\n", 60},
                {"YUV4MPEG2 W5 H3 C420p10 XCOLOR=full\n", 2 * (15 + 2 * 3 * 2)},
                {"YUV4MPEG2 W5 H3 Cmono\n", 15},
                {"YUV4MPEG2 W5 H3 Cmono16\n", 30}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const made m = a_y4m(rows[i].head, (size_t)rows[i].frame, 6);
        expect(&m, "YUV4MPEG", 5, 3, 6);
    }
}

/* ---- Wrong ones -------------------------------------------------------------------------- */

static void refused(const made *m, tg_status want, const char *says)
{
    tgi_err e = {0};
    tgi_video_head v;
    write_file(m->at, m->n);
    CHECK_EQ(tgi_video_head_read(file_name(), &v, &e), want);
    if (!strstr(e.text, says))
        fprintf(stderr, "%s\n", e.text);
    CHECK(strstr(e.text, says) && strncmp(e.text, file_name(), strlen(file_name())) == 0);
}

static void test_what_does_not_say_is_refused_by_name(void)
{
    made m = {.n = 0};
    refused(&m, TG_E_UNSUPPORTED, "only a decoder can count");
    put(&m, "\0\0\0\1\x67stream of bytes", 20);
    refused(&m, TG_E_UNSUPPORTED, "only a decoder can count");
    m = (made){.n = 0};
    size_t box = begin_box(&m, "ftyp");
    put(&m, "avif\0\0\0\0", 8);
    end_box(&m, box);
    refused(&m, TG_E_UNSUPPORTED, "no video track");
    m = a_y4m("YUV4MPEG2 W5 H3\n", 0, 0);
    refused(&m, TG_E_UNSUPPORTED, "how many frames");
    m = a_y4m("YUV4MPEG2 W5 H3 C411\n", 9, 1);
    refused(&m, TG_E_UNSUPPORTED, "C411");
    m = a_y4m("YUV4MPEG2 W-5 H3\n", 9, 1);
    refused(&m, TG_E_FORMAT, "-5 x 3 pixels");
    setenv("TEGULA_BLOCK_UNTRUSTED", "1", 1);
    m = an_avi(0);
    refused(&m, TG_E_UNSUPPORTED, "fuzzed for less than ten minutes");
    unsetenv("TEGULA_BLOCK_UNTRUSTED");
    tgi_err e = {0};
    tgi_video_head v;
    CHECK_STATUS(tgi_video_head_read("no_such_file.mp4", &v, &e), TG_E_NOT_FOUND, e);
}

static void test_numbers_that_cannot_be_are_refused(void)
{
    made m = an_avi(4000000000u); /* more frames than bytes */
    refused(&m, TG_E_FORMAT, "4000000000 frames");
    m = an_mp4(0);
    m.at[0] = 0x7f;
    refused(&m, TG_E_FORMAT, "goes past the end");
    m = an_mp4(0);
    for (size_t i = 0; i + 4 < m.n; i++)
        if (memcmp(m.at + i, "stsz", 4) == 0)
            memset(m.at + i + 12, 0x7f, 4); /* a table of 2 G samples */
    refused(&m, TG_E_FORMAT, "samples in a table");
    m = (made){.n = 0}; /* boxes within boxes */
    for (int i = 0; i < 20; i++) {
        num(&m, 20 * 8 - (uint64_t)i * 8, 4, 1);
        put(&m, "moov", 4);
    }
    refused(&m, TG_E_FORMAT, "deep");
}

/* Every file cut at each byte, and with each byte changed: an answer, whatever it is. */
static void test_damage_ends_in_an_answer(void)
{
    const made all[] = {an_mp4(0), an_mp4(2), an_mkv(), an_avi(30),
                        a_y4m("YUV4MPEG2 W5 H3 C444\n", 45, 2)};
    static const uint8_t other[] = {0x00, 0x7f, 0x80, 0xff};
    int64_t strange = 0;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        for (size_t i = 0; i < all[k].n; i++)
            for (size_t j = 0; j <= sizeof other; j++) {
                made m = all[k];
                tgi_err e = {0};
                tgi_video_head v;
                if (j == sizeof other)
                    m.n = i;
                else
                    m.at[i] = other[j];
                write_file(m.at, m.n);
                const tg_status st = tgi_video_head_read(file_name(), &v, &e);
                strange += st == TG_OK
                               ? v.width < 1 || v.frames < 1 || e.text[0]
                               : !e.text[0] || (st != TG_E_FORMAT && st != TG_E_UNSUPPORTED);
            }
    CHECK_EQ(strange, 0);
}

static void test_no_memory_is_an_answer(void)
{
    tgi_err e = {0};
    tgi_video_head v;
    const made m = an_mkv();
    write_file(m.at, m.n);
    tgi_mem_fail_at(1);
    CHECK_STATUS(tgi_video_head_read(file_name(), &v, &e), TG_E_NOMEM, e);
    tgi_mem_fail_at(0);
}

/* ---- Sample videos ----------------------------------------------------------------------- */

/* The next field of a line of CSV, quotes taken off; NULL at its end. */
static char *field(char **line)
{
    char *p = *line, *out = p;
    if (!p)
        return NULL;
    if (*p == '"') {
        out = ++p;
        p = strchr(p, '"');
        if (p)
            *p++ = 0;
    }
    p = p ? strchr(p, ',') : NULL;
    if (p)
        *p++ = 0;
    *line = p;
    return out;
}

static int has_headers(const char *name)
{
    static const char *const ends[] = {".mp4", ".mov", ".mkv", ".webm", ".avi"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(dot, ends[i]) == 0)
            return 1;
    return 0;
}

/* index.csv says what a decoder found: column 7 width, 8 height, 16 frames decoded. */
static void test_sample_videos_have_the_frames_that_a_decoder_counted(void)
{
    char line[4096];
    int checked = 0;
    const char *index = TG_SHARED_DATA "/data/video/index.csv";
    FILE *f = tg_has(index) ? fopen(index, "r") : NULL;
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        char *rest = line, *col[17] = {NULL}, path[512];
        for (int i = 0; i < 17; i++)
            col[i] = field(&rest);
        if (!col[15] || !has_headers(col[0]))
            continue;
        if (strcmp(col[0], "mjpeg_5x3.avi") == 0) { /* its headers say 0 x 0 */
            tgi_err none = {0};
            CHECK_EQ(tgi_video_head_read(TG_SHARED_DATA "/data/video/mjpeg_5x3.avi",
                                         &(tgi_video_head){0}, &none),
                     TG_E_UNSUPPORTED);
            CHECK(strstr(none.text, "how large its frames are") != NULL);
            continue;
        }
        tgi_err e = {0};
        tgi_video_head v;
        snprintf(path, sizeof path, TG_SHARED_DATA "/data/video/%s", col[0]);
        if (!tg_has(path))
            continue;
        CHECK_OK(tgi_video_head_read(path, &v, &e), e);
        if (v.width != atoi(col[6]) || v.height != atoi(col[7]) || v.frames != atoi(col[15]))
            fprintf(stderr, "%s: %lld x %lld, %lld frames\n", col[0], (long long)v.width,
                    (long long)v.height, (long long)v.frames);
        CHECK_EQ(v.width, atoi(col[6]));
        CHECK_EQ(v.height, atoi(col[7]));
        CHECK_EQ(v.frames, atoi(col[15]));
        checked++;
    }
    fclose(f);
    CHECK(checked >= 20 || tg_lacking);
    printf("     %d sample videos\n", checked);
}

static void test_broken_sample_videos_get_an_answer(void)
{
    const char *folder = TG_SHARED_DATA "/data/bad/video";
    DIR *d = tg_has(folder) ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        tgi_err err = {0};
        tgi_video_head v;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, TG_SHARED_DATA "/data/bad/video/%s", e->d_name);
        const tg_status st = tgi_video_head_read(path, &v, &err);
        CHECK(st == TG_OK || ((st == TG_E_FORMAT || st == TG_E_UNSUPPORTED) && err.text[0]));
    }
    if (d)
        closedir(d);
}

int main(void)
{
    RUN(test_each_container_says_pixels_and_frames_of_its_first_video);
    RUN(test_frames_of_yuv4mpeg_are_counted_by_their_size);
    RUN(test_what_does_not_say_is_refused_by_name);
    RUN(test_numbers_that_cannot_be_are_refused);
    RUN(test_damage_ends_in_an_answer);
    RUN(test_no_memory_is_an_answer);
    RUN(test_sample_videos_have_the_frames_that_a_decoder_counted);
    RUN(test_broken_sample_videos_get_an_answer);
    return TEST_END();
}
