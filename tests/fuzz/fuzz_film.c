/* fuzz_film.c - any bytes as a film: opened, its frames in and out of order, its other tracks into another
 * film. The plugin's sources are linked in, so that one runtime sees all of it, libav included.
 *
 * The last byte says how: 1 by its tracks into a Matroska, 2 into a MOV; 4 a small budget; the rest of it is not in
 * the file. Streams that go by their names have both. Frames are of 2^20 pixels at most here. */
#include "engine/base/arith.h"
#include "io/av/av_open.h"
#include "io/film_out.h"
#include "io/io_formats.h"
#include "tests/fuzz/fuzz_target.h"

#include <fcntl.h>

enum { MOST_FRAMES = 6, ROWS = 16, WIDE = 512, DEEP = 4 * 2 };

/* ---- The plugin -------------------------------------------------------------------------- */

const tgi_av_ops *tgi_av_plugin(uint32_t abi);

static tg_status open_small(const char *path, const tgi_av_open *o, tgi_av_film **out,
                            tgi_err *err)
{
    tgi_av_open small = *o;
    small.most_pixels = 1 << 20;
    return tgi_av_plugin(TGI_AV_ABI)->open(path, &small, out, err);
}

/* Instead of av_open.c, which would look for the file. */
tg_status tgi_av_ops_get(const tgi_av_ops **out, tgi_err *err)
{
    static tgi_av_ops ops;
    (void)err;
    ops = *tgi_av_plugin(TGI_AV_ABI);
    ops.open = open_small;
    *out = &ops;
    return TG_OK;
}

const char *tgi_av_path(void)
{
    return "";
}

/* ---- Frames ------------------------------------------------------------------------------ */

/* The first and last rows of frame k. */
static void read_frame(tgi_source *s, int64_t k)
{
    static uint8_t rows[WIDE * DEEP * ROWS];
    const tgi_image_info *i = s->ops->info(s);
    const int64_t wide = tgi_min(i->width, WIDE), high = tgi_min(i->height, ROWS);
    const size_t row = (size_t)wide * (size_t)i->samples * tgi_dtype_size(i->dtype);
    for (int end = 0; end < 2; end++) {
        tgi_err err = {0};
        const int64_t y = end ? i->height - high : 0, x = end ? i->width - wide : 0;
        fuzz_check(s->ops->read(s, 0, k, 0, i->samples, y, y + high, x, x + wide, rows, row,
                                TGI_INTERLEAVED, &err),
                   &err);
    }
}

/* In order, then back and forth. (That a frame is the same then cannot be asked: decoders conceal damage that they do
 * not tell of with what they decoded before.) */
static void read_frames(tgi_source *s)
{
    const int64_t n = s->ops->info(s)->n_planes;
    const int64_t some[] = {n - 1, 0, n / 2, tgi_min(n, MOST_FRAMES) - 1};
    for (int64_t k = 0; k < n && k < MOST_FRAMES; k++)
        read_frame(s, k);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        read_frame(s, some[i]);
}

static void check_info(const tgi_source *s)
{
    const tgi_image_info *i = s->ops->info(s);
    const tgi_av_info *a = tgi_film_source_info(s);
    if (i->n_planes < 1 || i->width < 1 || i->height < 1 || i->samples < 1 || i->samples > 4 ||
        a->frames != i->n_planes || a->declared_frames > a->frames + a->hidden ||
        (int64_t)a->width * a->height > 1 << 20)
        abort();
    for (int64_t k = 0; a->has_times && k < tgi_min(a->frames, 100); k++)
        if (tgi_film_source_time(s, k) >= tgi_film_source_time(s, k + 1))
            abort();
}

static int open_film(const char *path, unsigned how)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = how & 4 ? 14u << 20 : 64u << 20};
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tg_status st = tgi_film_source_ops.open(path, &o, &s, &err);
    fuzz_check(st, &err);
    if (st == TG_OK) {
        check_info(s);
        read_frames(s);
    }
    tgi_source_close(&s);
    return st == TG_OK;
}

/* ---- The other tracks -------------------------------------------------------------------- */

static const tgi_av_coding coding = {.codec = "ffv1",
                                     .form = {.name = "gray", .n_components = 1, .n_planes = 1},
                                     .width = 16,
                                     .height = 16,
                                     .rate = {25, 1},
                                     .crf = -1,
                                     .segment = 1};
static tgi_av_packet one; /* of a film of one frame */

static void must(tg_status st)
{
    if (st != TG_OK)
        abort();
}

static void keep_packet(const tgi_av_packet *p)
{
    uint8_t *bytes = malloc(p->n), *header = malloc(p->header_bytes + 1);
    memcpy(bytes, p->bytes, p->n);
    if (p->header_bytes)
        memcpy(header, p->header, p->header_bytes);
    one = *p;
    one.bytes = bytes;
    one.header = header;
}

static void make_packet(const tgi_av_ops *ops)
{
    tgi_err err = {0};
    tgi_av_encoder *e = NULL;
    tgi_av_blank frame;
    tgi_av_packet p;
    int there;
    must(ops->encoder(&coding, &e, &err));
    must(ops->blank(e, &frame, &err));
    for (int y = 0; y < 16; y++)
        memset(frame.plane[0] + y * frame.pitch[0], y, 16);
    must(ops->give(e, 0, &err));
    must(ops->give(e, -1, &err));
    must(ops->take(e, &p, &there, &err));
    if (!there)
        abort();
    keep_packet(&p);
    ops->encoder_close(&e);
}

static tg_status get_packet(void *user, int64_t i, tgi_av_packet *out, tgi_err *err)
{
    (void)user, (void)i, (void)err;
    *out = one;
    return TG_OK;
}

static int64_t get_time(void *user, int64_t k)
{
    (void)user;
    return 40 * k;
}

static void dropped(void *user, const char *what)
{
    (void)user;
    if (!what[0] || strpbrk(what, "\n\r"))
        abort();
}

static void join(const char *path, const char *container)
{
    static int fd = -1;
    const tgi_av_ops *ops = tgi_av_plugin(TGI_AV_ABI);
    tgi_err err = {0};
    if (!one.bytes)
        make_packet(ops);
    if (fd < 0)
        fd = memfd_create("joined", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0))
        abort();
    const tgi_av_join j = {.fd = fd,
                           .container = container,
                           .coding = &coding,
                           .from = path,
                           .frames = 1,
                           .time_base = {1, 1000},
                           .origin = 7,
                           .packet = get_packet,
                           .time = get_time,
                           .dropped = dropped};
    tg_status st = ops->join_look(&j, &err);
    fuzz_check(st, &err);
    if (st != TG_OK)
        return;
    err = (tgi_err){0};
    st = ops->join(&j, &err);
    fuzz_check(st, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    if (n < 2)
        return -1;
    const unsigned how = data[--n];
    if (!tgi_film_source_ops.probe(data, n, "a.264") &&
        !tgi_film_source_ops.probe(data, n, "a.ts"))
        return -1;
    fuzz_file(data, n, path);
    if (open_film(path, how) && how & 3)
        join(path, how & 1 ? "matroska" : "mov");
    fuzz_check_leaks();
    return 0;
}
