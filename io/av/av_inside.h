/* av_inside.h - what the plugin's table names (av.h says what it does), a file each: av_film.c reads,
 * av_encode.c makes packets of frames, av_join.c files of packets. */
#ifndef TGI_AV_INSIDE_H
#define TGI_AV_INSIDE_H

#include "io/av/av.h"

struct AVCodecContext;

/* av_bytes.c: what the decoder holds, once it has a frame. `changes`: later headers may ask for more references
 * than the first one. `each`: what a frame took of our memory; 0: none of it. *frames: the bytes of it that are frames. */
size_t tgi_av_decoder_bytes(const struct AVCodecContext *c, const tgi_av_form *f, int changes,
                            size_t each, size_t *frames);
size_t tgi_av_encoder_bytes(const tgi_av_coding *c);
void tgi_av_encoder_words(const tgi_av_coding *c, char *to, size_t cap);
/* av_encode.c: FFV1's encoder zeroes so many bytes for each pixel; 0: it does not do with less. */
#define TGI_AV_FFV1_PER_PIXEL 148
int tgi_av_ffv1_is_lean(void);

tg_status tgi_av_film_open(const char *path, const tgi_av_open *o, tgi_av_film **out,
                           tgi_err *err);
const tgi_av_info *tgi_av_film_info(const tgi_av_film *f);
int tgi_av_film_track(const tgi_av_film *f, int i, tgi_av_track *out);
int tgi_av_film_word(const tgi_av_film *f, int track, int i, tgi_av_word *out);
int tgi_av_film_chapter(const tgi_av_film *f, int i, tgi_av_chapter *out);
int64_t tgi_av_film_time(const tgi_av_film *f, int64_t k);
tg_status tgi_av_film_frame(tgi_av_film *f, int64_t k, tgi_av_frame *out, tgi_err *err);
int64_t tgi_av_film_refused(const tgi_av_film *f);
unsigned tgi_av_film_beside(const tgi_av_film *f);
void tgi_av_film_close(tgi_av_film **f);

tg_status tgi_av_encoder_form(const char *codec, const char *like, tgi_av_form *out,
                              tgi_err *err);
void tgi_av_encoder_forms(const char *codec, char *to, size_t cap);
int tgi_av_encoder_fits(const char *container, const char *codec);
tg_status tgi_av_encoder_open(const tgi_av_coding *c, tgi_av_encoder **out, tgi_err *err);
tg_status tgi_av_encoder_blank(tgi_av_encoder *e, tgi_av_blank *out, tgi_err *err);
tg_status tgi_av_encoder_give(tgi_av_encoder *e, int64_t number, tgi_err *err);
tg_status tgi_av_encoder_take(tgi_av_encoder *e, tgi_av_packet *out, int *there, tgi_err *err);
void tgi_av_encoder_close(tgi_av_encoder **e);

tg_status tgi_av_join_film(const tgi_av_join *j, tgi_err *err);
tg_status tgi_av_join_look(const tgi_av_join *j, tgi_err *err);

#endif
