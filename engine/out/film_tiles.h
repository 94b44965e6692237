/* film_tiles.h - finished tiles become the frames of a film, and these packets in a journal.
 *
 * The tiles of a frame are put together, the frame is encoded, and each packet is a tile of the
 * journal: packet i in the order of decoding is its tile i. Frames are encoded in segments that need no
 * other, with a new encoder each, and where a segment ends depends on the number of its frames alone. So a
 * run that goes on computes the frames of the segments that are not complete, and gets the packets that
 * an undisturbed one has; those that are there already must be the same.
 *
 *   journal's tile:  [number 8 | flags 8 | header's bytes 8 | header | packet]
 *
 * all little endian; flags: 1 key frame; the codec's header stands in a segment's first packet alone. */
#ifndef TGI_FILM_TILES_H
#define TGI_FILM_TILES_H

#include "engine/base/busy.h"
#include "engine/out/film_spool.h"
#include "engine/out/frame_files.h"
#include "engine/out/journal.h"
#include "io/film_out.h"

typedef struct tgi_film_tiles tgi_film_tiles;

/* Where something passes by the network (film_bypass.h): fills that of frame k. */
typedef struct tgi_film_rest {
    void *user;
    tg_status (*put)(void *user, int64_t k, const tgi_av_blank *to, tgi_err *err);
} tgi_film_rest;

/* The layout of a journal that holds that many packets. Returned; tgi_sink_layout_free. */
tg_status tgi_film_packets_layout(int64_t frames, tgi_sink_layout **out, tgi_err *err);

/* What it holds beside libav's memory: tables, and a packet. */
size_t tgi_film_tiles_bytes(const tgi_film_out *film);

/* `layout` of the tiles, the axis of channels last of its planes or none; `packets` begun or resumed.
 * All borrowed until close. */
tg_status tgi_film_tiles_open(const tgi_film_out *film, const tgi_sink_layout *layout,
                              tgi_journal *packets, tgi_film_rest rest, tgi_film_tiles **out,
                              tgi_err *err);
/* The same where each frame becomes a file; borrowed until close. */
tg_status tgi_film_tiles_open_files(const tgi_film_out *film, const tgi_sink_layout *layout,
                                    tgi_journal *packets, const tgi_frame_files *files,
                                    tgi_film_tiles **out, tgi_err *err);
/* The same where film->pipe says so: a packet goes to `fd`, borrowed, when its turn comes, and nothing is
 * remembered. The film's first line goes there at once. TG_E_IO: nobody reads any more. */
tg_status tgi_film_tiles_open_pipe(const tgi_film_out *film, const tgi_sink_layout *layout,
                                   int fd, tgi_film_rest rest, tgi_film_tiles **out,
                                   tgi_err *err);
/* The same where film->endless says so: packets go into `spool`, borrowed. */
tg_status tgi_film_tiles_open_spool(const tgi_film_out *film, const tgi_sink_layout *layout,
                                    tgi_film_spool *spool, tgi_film_rest rest,
                                    tgi_film_tiles **out, tgi_err *err);
/* Of an endless one all frames came, and film->frames says how many: the last segment ends. */
tg_status tgi_film_tiles_end(tgi_film_tiles *f, tgi_err *err);
void tgi_film_tiles_close(tgi_film_tiles **f);
/* What the writer gives its tiles to. A view. */
tgi_tiles tgi_film_tiles_to(tgi_film_tiles *f);
/* Runs while a frame that is complete is encoded, and what comes of it is put down. A view. */
tgi_busy *tgi_film_tiles_busy(tgi_film_tiles *f);
/* The journal's packets were read back: those of a segment with a damaged one are made again.
 * Returns how many tiles that are. */
int64_t tgi_film_tiles_look_again(tgi_film_tiles *f);

/* Packet i of the journal, as tgi_av_join asks for it; `room` has `cap` bytes. */
tg_status tgi_film_packet(const tgi_journal *packets, int64_t i, void *room, size_t cap,
                          tgi_av_packet *out, tgi_err *err);
/* The same of a spool, in the order of packets. */
tg_status tgi_film_spooled_packet(tgi_film_spool *s, int64_t i, void *room, size_t cap,
                                  tgi_av_packet *out, tgi_err *err);
/* Bytes of the longest packet; and how many places one comes after that of its number, at most. */
tg_status tgi_film_measure(const tgi_journal *packets, int64_t frames, size_t *longest,
                           int *delay, tgi_err *err);

#endif
