/* film_tiles.c - see film_tiles.h. */
#include "engine/out/film_tiles.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/out/pipe.h"
#include "io/bytes.h"
#include "io/y4m.h"

#include <stdatomic.h>
#include <string.h>

#define HEAD 24
#define KEY 1u

struct tgi_film_tiles {
    const tgi_film_out *film;
    const tgi_sink_layout *layout;
    tgi_journal *packets;  /* or, of an endless film, */
    tgi_film_spool *spool; /* or, where film->pipe, */
    int fd;
    const tgi_frame_files *files; /* or each frame is a file, and its packet a record of it */
    atomic_llong sent;            /* frames */
    tgi_film_rest rest;
    int64_t planes; /* of a frame, each of layout->samples channels */
    int64_t tiles;  /* of a frame */
    int64_t n_segments;
    atomic_uchar *done; /* segments whose packets are all there */
    char *picture;      /* the frame that is being put together */
    int64_t frame, got; /* its number, and tiles of it; -1: none */
    int64_t made;       /* frames of complete segments, and those that the encoder got since */
    tgi_av_encoder *encoder;
    int64_t segment, given, taken; /* of the encoder; frames and packets */
    void *room;                    /* to convert a row */
    uint8_t *packet;               /* with its head */
    size_t packet_room;
    tgi_busy busy;
};

/* ---- The journal's side ------------------------------------------------------------------ */

/* One image of tiles of 16 x 16 bytes: a tile of it has room for any packet. */
tg_status tgi_film_packets_layout(int64_t frames, tgi_sink_layout **out, tgi_err *err)
{
    const tgi_sink_spec s = {.dtype = TG_DTYPE_U8,
                             .axes = "YX",
                             .shape = {16 * frames, 16},
                             .tile_h = 16,
                             .tile_w = 16,
                             .compression = TGI_COMPRESSION_DEFLATE};
    TGI_TRY(tgi_sink_layout_make(&s, out, err));
    (*out)->tile_bound = (size_t)1 << 30;
    return TG_OK;
}

static int64_t first_of(const tgi_film_tiles *f, int64_t segment)
{
    return segment * f->film->coding.segment;
}

static int64_t frames_of(const tgi_film_tiles *f, int64_t segment)
{
    return tgi_min(f->film->coding.segment, f->film->frames - first_of(f, segment));
}

/* The journal has the record of frame k, and the file is there as it was written. */
static int has_file(const tgi_film_tiles *f, int64_t k)
{
    uint8_t record[TGI_FRAME_RECORD];
    size_t n = 0;
    tgi_err none = {0};
    return tgi_journal_read_tile(f->packets, k, record, sizeof record, &n, &none) == TG_OK &&
           n == sizeof record && tgi_frame_is_same(f->files, k, record);
}

/* For those who look at the journal meanwhile. */
static void say_made(tgi_film_tiles *f, int64_t n)
{
    f->made = n;
    if (f->packets)
        tgi_journal_say_frames(f->packets, n);
}

/* Which segments the journal has. Returns tiles of the others. */
static int64_t look(tgi_film_tiles *f)
{
    int64_t missing = 0;
    for (int64_t s = 0; s < f->n_segments; s++) {
        int all = 1;
        for (int64_t k = 0; k < frames_of(f, s); k++)
            all &= tgi_journal_has_tile(f->packets, first_of(f, s) + k) &&
                   (!f->files || has_file(f, first_of(f, s) + k));
        atomic_store(&f->done[s], (unsigned char)all);
        missing += all ? 0 : frames_of(f, s) * f->tiles;
    }
    say_made(f, f->film->frames - missing / f->tiles);
    return missing;
}

int64_t tgi_film_tiles_look_again(tgi_film_tiles *f)
{
    return look(f);
}

/* The packet of n bytes at p. */
static tg_status take_apart(const uint8_t *p, size_t n, int64_t i, tgi_av_packet *out,
                            tgi_err *err)
{
    const size_t header = n < HEAD ? 0 : (size_t)tgi_load64(p + 16, false);
    if (n < HEAD || header > n - HEAD)
        return tgi_fail(err, TG_E_FORMAT, "packet %lld is not one of ours", (long long)i);
    *out = (tgi_av_packet){.number = (int64_t)tgi_load64(p, false),
                           .key = (tgi_load64(p + 8, false) & KEY) != 0,
                           .header = p + HEAD,
                           .header_bytes = header,
                           .bytes = p + HEAD + header,
                           .n = n - HEAD - header};
    return TG_OK;
}

tg_status tgi_film_packet(const tgi_journal *packets, int64_t i, void *room, size_t cap,
                          tgi_av_packet *out, tgi_err *err)
{
    size_t n;
    TGI_TRY(tgi_journal_read_tile(packets, i, room, cap, &n, err));
    return take_apart(room, n, i, out, err);
}

tg_status tgi_film_spooled_packet(tgi_film_spool *s, int64_t i, void *room, size_t cap,
                                  tgi_av_packet *out, tgi_err *err)
{
    size_t n;
    TGI_TRY(tgi_film_spool_read(s, i, room, cap, &n, err));
    return take_apart(room, n, i, out, err);
}

tg_status tgi_film_measure(const tgi_journal *packets, int64_t frames, size_t *longest,
                           int *delay, tgi_err *err)
{
    *longest = 0;
    *delay = 0;
    for (int64_t i = 0; i < frames; i++) {
        uint8_t head[HEAD];
        const size_t n = tgi_journal_tile_bytes(packets, i);
        TGI_TRY(tgi_journal_read_head(packets, i, head, sizeof head, err));
        const int64_t late = i - (int64_t)tgi_load64(head, false);
        *longest = n > *longest ? n : *longest;
        *delay = late > *delay ? (int)late : *delay;
    }
    return TG_OK;
}

/* ---- Open -------------------------------------------------------------------------------- */

/* A packet may be longer than the frame that it was made of, by little. */
static size_t packet_room(const tgi_film_out *film)
{
    if (film->pictures)
        return TGI_FRAME_RECORD;
    return 2 * tgi_y4m_frame_bytes(&film->coding.form, film->coding.width,
                                   film->coding.height) +
           65536;
}

size_t tgi_film_tiles_bytes(const tgi_film_out *film)
{
    const size_t flags =
        film->pipe || film->endless ? 0 : (size_t)(film->frames / film->coding.segment + 1);
    return sizeof(tgi_film_tiles) + (film->pipe ? 0 : packet_room(film)) + flags;
}

void tgi_film_tiles_close(tgi_film_tiles **pf)
{
    tgi_film_tiles *f = *pf;
    if (!f)
        return;
    if (f->encoder)
        f->film->ops->encoder_close(&f->encoder);
    tgi_free(f->done);
    tgi_free(f->picture);
    tgi_free(f->room);
    tgi_free(f->packet);
    tgi_free(f);
    *pf = NULL;
}

/* All but what remembers packets. */
static tg_status open_frames(const tgi_film_out *film, const tgi_sink_layout *layout,
                             tgi_film_rest rest, tgi_film_tiles **out, tgi_err *err)
{
    tgi_film_tiles *f = tgi_calloc(TGI_TAG_IO, 1, sizeof *f);
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a film");
    f->film = film;
    f->layout = layout;
    f->rest = rest;
    f->planes = film->samples / layout->samples;
    f->tiles = f->planes * layout->tiles_y * layout->tiles_x;
    f->n_segments = tgi_ceil_div(film->frames, film->coding.segment);
    f->frame = f->segment = -1;
    f->picture = tgi_malloc(TGI_TAG_IO, film->frame_bytes);
    f->room = film->pictures ? NULL : tgi_malloc(TGI_TAG_IO, tgi_film_row_room(&film->pixels));
    if (!f->picture || (!f->room && !film->pictures)) {
        tgi_film_tiles_close(&f);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the frames of a film");
    }
    *out = f;
    return TG_OK;
}

static tg_status open_journalled(const tgi_film_out *film, const tgi_sink_layout *layout,
                                 tgi_journal *packets, const tgi_frame_files *files,
                                 tgi_film_rest rest, tgi_film_tiles **out, tgi_err *err)
{
    tgi_film_tiles *f = NULL;
    TGI_TRY(open_frames(film, layout, rest, &f, err));
    f->packets = packets;
    f->files = files;
    f->packet_room = packet_room(film);
    f->done = tgi_calloc(TGI_TAG_IO, (size_t)f->n_segments, sizeof *f->done);
    f->packet = tgi_malloc(TGI_TAG_IO, f->packet_room);
    if (!f->done || !f->packet) {
        tgi_film_tiles_close(&f);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the frames of a film");
    }
    look(f);
    *out = f;
    return TG_OK;
}

tg_status tgi_film_tiles_open(const tgi_film_out *film, const tgi_sink_layout *layout,
                              tgi_journal *packets, tgi_film_rest rest, tgi_film_tiles **out,
                              tgi_err *err)
{
    return open_journalled(film, layout, packets, NULL, rest, out, err);
}

tg_status tgi_film_tiles_open_files(const tgi_film_out *film, const tgi_sink_layout *layout,
                                    tgi_journal *packets, const tgi_frame_files *files,
                                    tgi_film_tiles **out, tgi_err *err)
{
    return open_journalled(film, layout, packets, files, (tgi_film_rest){0}, out, err);
}

tg_status tgi_film_tiles_open_pipe(const tgi_film_out *film, const tgi_sink_layout *layout,
                                   int fd, tgi_film_rest rest, tgi_film_tiles **out,
                                   tgi_err *err)
{
    char head[512];
    tgi_film_tiles *f = NULL;
    TGI_TRY(open_frames(film, layout, rest, &f, err));
    f->fd = fd;
    const tg_status st =
        tgi_pipe_write(fd, head, tgi_y4m_head(&film->coding, head, sizeof head), err);
    if (st != TG_OK)
        tgi_film_tiles_close(&f);
    *out = f;
    return st;
}

tg_status tgi_film_tiles_open_spool(const tgi_film_out *film, const tgi_sink_layout *layout,
                                    tgi_film_spool *spool, tgi_film_rest rest,
                                    tgi_film_tiles **out, tgi_err *err)
{
    tgi_film_tiles *f = NULL;
    TGI_TRY(open_frames(film, layout, rest, &f, err));
    f->spool = spool;
    f->packet_room = packet_room(film);
    f->packet = tgi_malloc(TGI_TAG_IO, f->packet_room);
    if (!f->packet) {
        tgi_film_tiles_close(&f);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the frames of a film");
    }
    *out = f;
    return TG_OK;
}

/* ---- Packets ----------------------------------------------------------------------------- */

/* The packet, with its head, becomes a tile of the journal, or a record; one that is there must be the same. */
static tg_status keep_packet(tgi_film_tiles *f, const tgi_av_packet *p, tgi_err *err)
{
    const int64_t id = first_of(f, f->segment) + f->taken;
    const size_t header = f->taken ? 0 : p->header_bytes, n = HEAD + header + p->n;
    if (f->taken >= frames_of(f, f->segment) || n > f->packet_room)
        return tgi_fail(err, TG_E_INTERNAL,
                        "the encoder %s gave more than a packet for a frame",
                        f->film->coding.codec);
    uint8_t *to = f->packet;
    tgi_save64(to, (uint64_t)(first_of(f, f->segment) + p->number), false);
    tgi_save64(to + 8, p->key ? KEY : 0, false);
    tgi_save64(to + 16, header, false);
    if (header)
        memcpy(to + HEAD, p->header, header);
    memcpy(to + HEAD + header, p->bytes, p->n);
    f->taken++;
    if (f->spool)
        return tgi_film_spool_add(f->spool, to, n, f->taken - 1 - p->number, err);
    return tgi_journal_has_tile(f->packets, id)
               ? tgi_journal_same_tile(f->packets, id, to, n, err)
               : tgi_journal_append(f->packets, id, to, n, err);
}

static tg_status send_packet(tgi_film_tiles *f, const tgi_av_packet *p, tgi_err *err)
{
    const char *line = tgi_y4m_line(&f->film->coding);
    TGI_TRY(tgi_pipe_write(f->fd, line, strlen(line), err));
    TGI_TRY(tgi_pipe_write(f->fd, p->bytes, p->n, err));
    f->taken++;
    atomic_fetch_add(&f->sent, 1);
    return TG_OK;
}

static tg_status take_packets(tgi_film_tiles *f, tgi_err *err)
{
    tgi_av_packet p;
    int there;
    for (;;) {
        TGI_TRY(f->film->ops->take(f->encoder, &p, &there, err));
        if (!there)
            return TG_OK;
        TGI_TRY(f->packets || f->spool ? keep_packet(f, &p, err) : send_packet(f, &p, err));
    }
}

static tg_status end_segment(tgi_film_tiles *f, tgi_err *err)
{
    TGI_TRY(f->film->ops->give(f->encoder, -1, err));
    TGI_TRY(take_packets(f, err));
    f->film->ops->encoder_close(&f->encoder);
    if (f->taken != frames_of(f, f->segment))
        return tgi_fail(err, TG_E_INTERNAL, "the encoder %s gave %lld packets for %lld frames",
                        f->film->coding.codec, (long long)f->taken,
                        (long long)frames_of(f, f->segment));
    if (f->done)
        atomic_store(&f->done[f->segment], 1);
    f->segment = -1;
    return TG_OK;
}

tg_status tgi_film_tiles_end(tgi_film_tiles *f, tgi_err *err)
{
    tgi_busy_begin(&f->busy);
    const tg_status st = f->encoder ? end_segment(f, err) : TG_OK;
    tgi_busy_end(&f->busy);
    return st;
}

/* The picture is complete: a file, and then its record. What the journal has already was the same. */
static tg_status write_file(tgi_film_tiles *f, tgi_err *err)
{
    const int64_t k = f->frame;
    TGI_TRY(tgi_frame_write(f->files, k, f->picture, f->packet, err));
    TGI_TRY(tgi_journal_has_tile(f->packets, k)
                ? tgi_journal_same_tile(f->packets, k, f->packet, TGI_FRAME_RECORD, err)
                : tgi_journal_append(f->packets, k, f->packet, TGI_FRAME_RECORD, err));
    atomic_store(&f->done[k], 1);
    say_made(f, f->made + 1);
    return TG_OK;
}

/* The picture is complete. */
static tg_status encode(tgi_film_tiles *f, tgi_err *err)
{
    tgi_av_blank blank;
    const tgi_film_out *film = f->film;
    const int64_t segment = f->frame / film->coding.segment,
                  k = f->frame - first_of(f, segment);
    if (!f->encoder) {
        f->segment = segment;
        f->given = f->taken = 0;
        TGI_TRY(film->ops->encoder(&film->coding, &f->encoder, err));
    }
    if (segment != f->segment || k != f->given)
        return tgi_fail(err, TG_E_INTERNAL, "frame %lld of a film came out of order",
                        (long long)f->frame);
    TGI_TRY(film->ops->blank(f->encoder, &blank, err));
    tgi_film_planes(&film->pixels, film->samples, f->picture, &blank, f->room);
    if (film->passing)
        TGI_TRY(f->rest.put(f->rest.user, f->frame, &blank, err));
    TGI_TRY(film->ops->give(f->encoder, k, err));
    f->given++;
    say_made(f, f->made + 1);
    if (f->spool)
        atomic_fetch_add(&f->sent, 1);
    TGI_TRY(take_packets(f, err));
    return f->given == frames_of(f, segment) ? end_segment(f, err) : TG_OK;
}

/* ---- Tiles ------------------------------------------------------------------------------- */

static int64_t segment_of_tile(const tgi_film_tiles *f, int64_t tile)
{
    return tile / f->tiles / f->film->coding.segment;
}

static int64_t count_done(const tgi_film_tiles *f)
{
    int64_t n = f->packets ? 0 : (int64_t)atomic_load(&f->sent) * f->tiles;
    for (int64_t s = 0; f->done && s < f->n_segments; s++)
        n += atomic_load(&f->done[s]) ? frames_of(f, s) * f->tiles : 0;
    return n;
}

static int64_t appended(const void *user)
{
    return count_done(user);
}

static int has(const void *user, int64_t tile)
{
    const tgi_film_tiles *f = user;
    return f->done && atomic_load(&f->done[segment_of_tile(f, tile)]);
}

/* n pixels of `size` bytes among samples of others: a byte, a word, or some. */
static void place_apart(char *to, size_t step, const char *from, size_t size, int64_t n)
{
    if (size == 1)
        for (int64_t x = 0; x < n; x++, to += step)
            *to = from[x];
    else if (size == 2)
        for (int64_t x = 0; x < n; x++, to += step)
            memcpy(to, from + 2 * x, 2);
    else
        for (int64_t x = 0; x < n; x++, from += size, to += step)
            memcpy(to, from, size);
}

/* A tile's pixels to their place among the samples of the picture. */
static void place_tile(tgi_film_tiles *f, int64_t tile, const char *bytes)
{
    const tgi_sink_layout *l = f->layout;
    const tgi_tile_place at = tgi_sink_tile_place(l, tile);
    const size_t size = tgi_dtype_size(l->dtype), pixel = (size_t)f->film->samples * size;
    char *to = f->picture + (size_t)(at.plane % f->planes) * l->pixel_bytes;
    for (int64_t y = 0; y < at.height; y++) {
        const char *from = bytes + (size_t)(y * l->tile_w) * l->pixel_bytes;
        char *row = to + (size_t)((at.y + y) * l->width + at.x) * pixel;
        if (l->pixel_bytes == pixel)
            memcpy(row, from, (size_t)at.width * pixel);
        else
            place_apart(row, pixel, from, l->pixel_bytes, at.width);
    }
}

static tg_status append(void *user, int64_t tile, const void *bytes, size_t n, tgi_err *err)
{
    tgi_film_tiles *f = user;
    const int64_t frame = tile / f->tiles;
    (void)n;
    if (f->frame < 0) {
        f->frame = frame;
        f->got = 0;
    }
    if (frame != f->frame)
        return tgi_fail(err, TG_E_INTERNAL,
                        "tiles of frame %lld came before frame %lld was there",
                        (long long)frame, (long long)f->frame);
    place_tile(f, tile, bytes);
    if (++f->got < f->tiles)
        return TG_OK;
    tgi_busy_begin(&f->busy);
    const tg_status st = f->files ? write_file(f, err) : encode(f, err);
    tgi_busy_end(&f->busy);
    TGI_TRY(st);
    f->frame = -1;
    return TG_OK;
}

static tg_status sync(void *user, tgi_err *err)
{
    const tgi_film_tiles *f = user;
    return f->packets ? tgi_journal_sync(f->packets, err) : TG_OK;
}

static double sync_due(const void *user)
{
    const tgi_film_tiles *f = user;
    return f->packets ? tgi_journal_sync_due(f->packets) : -1;
}

static void begin(void *user)
{
    const tgi_film_tiles *f = user;
    if (f->packets)
        tgi_journal_begin_tile(f->packets);
}

tgi_busy *tgi_film_tiles_busy(tgi_film_tiles *f)
{
    return &f->busy;
}

tgi_tiles tgi_film_tiles_to(tgi_film_tiles *f)
{
    return (tgi_tiles){.user = f,
                       .appended = appended,
                       .safe = appended,
                       .has = has,
                       .append = append,
                       .sync = sync,
                       .sync_due = sync_due,
                       .begin = begin};
}
