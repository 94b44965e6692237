/* networks.h - the networks of ProPainter, each as a graph of one size, over the tensors of the three published files.
 *
 *   raft-things.pth                  features, context, update, upsample
 *   recurrent_flow_completion.pth    lead, blend (4), back/forward step and first step, decode
 *   ProPainter.pth                   encode, propagate, join, split, keys, queries, attend, mix, compose
 *
 * H x W is the size of the frames, a multiple of 8. Names of tensors and constants:
 * @source Zhou, Li, Chan, Loy: ProPainter, ICCV 2023; Teed, Deng: RAFT, ECCV 2020; their published checkpoints.
 *
 * Each function: `w` is borrowed by *out, which is returned; tgi_graph_free. TG_E_FORMAT: a tensor is missing or of another
 * shape. Inputs and outputs are listed as `name [channels, rows, columns]`, in order. */
#ifndef TGI_PROPAINTER_NETWORKS_H
#define TGI_PROPAINTER_NETWORKS_H

#include "engine/models/trained.h"

#define TGI_PP_FEATURES 256 /* of RAFT, for likeness */
#define TGI_PP_LEVELS 4     /* of them, each half the size of the one before */
#define TGI_PP_STATE 128
#define TGI_PP_COMPLETION 128 /* features of the completion */
#define TGI_PP_CHANNELS 128   /* features of the generator */
#define TGI_PP_TOKEN 512      /* channels of a token */
#define TGI_PP_BLOCKS 8       /* of the transformer */
#define TGI_PP_HEADS 4
#define TGI_PP_WINDOW_H 5
#define TGI_PP_WINDOW_W 9
#define TGI_PP_POOL 4

/* ---- Motion: h x w is H/8 x W/8 ----------------------------------------------------------- */

/* frame [3,H,W] of -1..1 -> features [256,h,w], and their means over 2 x 2, 4 x 4, 8 x 8 (a row that is left over falls away) */
tg_status tgi_pp_features(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                          tgi_err *err);
/* frame [3,H,W] -> state [128,h,w], and what the GRU's gates get of the context, once for all iterations: gates of the
 * rows' pass (update and reset together) [256,h,w], its candidate [128,h,w], gates and candidate of the columns'. */
tg_status tgi_pp_context(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                         tgi_err *err);
/* state, flow [2,h,w] in pixels of h x w, features of the first frame, those of the second and their three means, the four
 * of the context -> state, flow */
tg_status tgi_pp_update(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                        tgi_err *err);
/* state, flow -> flow [2,H,W] in pixels of H x W */
tg_status tgi_pp_upsample(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                          tgi_err *err);

/* ---- Completion of motion ------------------------------------------------------------------ */

/* dx, dy, mask [3,H,W] -> [32,H/2,W/2] */
tg_status tgi_pp_lead(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                      tgi_err *err);
/* Number 0 to 3: what lead or the one before gave of the steps t-2, t, t+2 -> what the next one gets:
 * 0 [64,H/4,W/4]; 1 the edge e1 [64,H/4,W/4], then [64,H/4,W/4]; 2 [128,H/8,W/8]; 3 s [128,H/8,W/8] */
tg_status tgi_pp_blend(const tgi_weights *w, int number, int64_t high, int64_t wide,
                       tgi_graph **out, tgi_err *err);
/* s, (`forward`: what the way back gave,) the two results before [128,H/8,W/8] -> the result. `first`: there are no
 * results before, s (and what the way back gave) alone. */
tg_status tgi_pp_recur(const tgi_weights *w, int forward, int first, int64_t high, int64_t wide,
                       tgi_graph **out, tgi_err *err);
/* s, the way back, the way forward [128,H/8,W/8], e1 -> flow [2,H,W] */
tg_status tgi_pp_decode(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                        tgi_err *err);

/* ---- Generator: h x w is H/4 x W/4, tokens fh x fw ----------------------------------------- */

typedef struct tgi_pp_tokens {
    int64_t high, wide;     /* of tokens */
    int64_t full_h, full_w; /* whole windows */
    int64_t win_h, win_w;   /* windows */
    int64_t pool_h, pool_w; /* pooled tokens */
} tgi_pp_tokens;
tgi_pp_tokens tgi_pp_tokens_of(int64_t high, int64_t wide);

/* rgb [3,H,W], mask and mask of what is not filled [2,H,W] -> features [128,h,w] */
tg_status tgi_pp_encode(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                        tgi_err *err);
/* features, result before [128,h,w], flow to it, flow back from it [2,h,w], both masks [2,h,w] -> result [128,h,w].
 * `first`: features, both masks. */
tg_status tgi_pp_propagate(const tgi_weights *w, int forward, int first, int64_t high,
                           int64_t wide, tgi_graph **out, tgi_err *err);
/* features, both ways' results [128,h,w], both masks [2,h,w] -> features */
tg_status tgi_pp_join(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                      tgi_err *err);
/* features -> tokens [512,fh,fw] */
tg_status tgi_pp_split(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                       tgi_err *err);
/* Of one frame, in block `b`: tokens -> keys, values [512,fh,fw], pooled keys, pooled values [512,ph,pw]. */
tg_status tgi_pp_keys(const tgi_weights *w, int b, int64_t high, int64_t wide, tgi_graph **out,
                      tgi_err *err);
/* tokens -> queries [512,fh,fw] */
tg_status tgi_pp_queries(const tgi_weights *w, int b, int64_t high, int64_t wide,
                         tgi_graph **out, tgi_err *err);
/* Of n frames one behind the other in channels: queries of the first `asked` of them [asked*512,fh,fw], keys and values
 * [n*512,fh,fw], pooled keys and values [n*512,ph,pw], masked windows [1,wh,ww] -> [asked*512,fh,fw] */
tg_status tgi_pp_attend(const tgi_weights *w, int b, int n, int asked, int64_t high,
                        int64_t wide, tgi_graph **out, tgi_err *err);
/* Of one frame: what attention gave, tokens -> tokens behind the block */
tg_status tgi_pp_mix(const tgi_weights *w, int b, int64_t high, int64_t wide, tgi_graph **out,
                     tgi_err *err);
/* Of one frame: tokens, features -> picture [3,H,W] of -1..1 */
tg_status tgi_pp_compose(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                         tgi_err *err);

#endif
