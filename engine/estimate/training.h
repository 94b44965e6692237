/* training.h - what the parts of `tegula estimate training` share: a model's file (training.c), ProPainter's generator
 * (training_film.c). */
#ifndef TGI_TRAINING_H
#define TGI_TRAINING_H

#include "engine/estimate/estimate.h"
#include "engine/estimate/saved.h"

/* Bytes of weights, gradients and moments, from parameters, half_read and buffers of `s`. */
void tgi_training_count(const tgi_saved *s, const tg_train_spec *spec, tg_train_size *r);
/* The sum, once activations are known too. */
void tgi_training_total(tg_train_size *r);

void tgi_training_put_settings(tgi_jw *w, const tgi_question *q, const tg_train_spec *s,
                               const char *size, double loss_scale);
void tgi_training_put_bytes(tgi_jw *w, const tg_train_size *r);
/* Member "gpus", where some are asked about: TG_E_BUDGET when one has no room. */
tg_status tgi_training_put_gpus(tgi_jw *w, const tgi_question *q, const tg_train_spec *s,
                                const tg_train_size *r, tgi_err *err);

/* `tegula estimate training propainter`. */
tg_status tgi_training_propainter(const tgi_question *q, const tg_train_spec *s,
                                  double loss_scale, tgi_jw *w, tgi_err *err);

#endif
