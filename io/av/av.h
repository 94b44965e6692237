/* av.h - films, as the plugin libtegula_av.so reads them: what it gives the engine.
 *
 * The plugin alone knows libav (linking it costs 135 libraries); this header knows nothing of it.
 * A film is a row of frames in the order in which they are shown. Frame k is the k-th that the
 * decoder yields from the beginning of the stream; packets say beforehand how many there are, when
 * each is shown, and where decoding can begin.
 *
 * Frames come as they are stored: components in planes, not turned, not converted to RGB. What that
 * takes is told (matrix, range, place of chroma, rotation), and assumed by nobody here. */
#ifndef TGI_AV_H
#define TGI_AV_H

#include "engine/base/status.h"

#include <stdint.h>

#define TGI_AV_ABI 1u /* rises with any change of this header */
#define TGI_AV_COMPONENTS 4
#define TGI_AV_NO_TIME INT64_MIN

typedef struct tgi_av_ratio {
    int64_t num, den; /* 0, 1: unknown */
} tgi_av_ratio;

/* One component of a pixel (luma, a chroma, red, alpha, ...): in which plane it lies, and how. */
typedef struct tgi_av_component {
    int plane, step, offset; /* bytes from one to the next, and before the first one */
    int shift, depth; /* of the bits in its element: the low ones are no part of it; bits */
} tgi_av_component;

/* How pixels are stored; of all frames of a film. */
typedef struct tgi_av_form {
    char name[32]; /* "yuv420p10le", as ffmpeg spells it */
    int n_components,
        n_planes; /* components: grey; grey, alpha; Y, U, V or R, G, B; and alpha */
    int is_rgb, has_alpha, wide; /* wide: elements of 16 bits */
    int big_endian;
    int log2_chroma_w, log2_chroma_h; /* components 1 and 2 of YUV are smaller by these */
    tgi_av_component component[TGI_AV_COMPONENTS];
    /* As ffmpeg spells them; "" where the film does not say. */
    char range[16], matrix[24], primaries[24], transfer[24], chroma_place[16];
} tgi_av_form;

typedef struct tgi_av_info {
    char container[64], codec[32], profile[48]; /* as ffmpeg names them */
    int width, height;                          /* as stored */
    int rotation; /* degrees clockwise by which it is turned for viewing: 0, 90, 180, 270 */
    int flipped;  /* 1: mirrored, left and right, before it is turned */
    int64_t frames;
    int has_times; /* 0: packets say no times; frames can only be read from the first on */
    tgi_av_ratio time_base; /* seconds of a tick */
    tgi_av_ratio rate;      /* frames a second, mean; */
    tgi_av_ratio pixel_aspect;
    int interlaced;          /* what the header says: 1 interlaced, 0 progressive, -1 nothing */
    int64_t declared_frames; /* what the header says; 0: nothing */
    int n_streams;           /* of all kinds */
    tgi_av_form form;
} tgi_av_info;

/* A decoded frame. Planes stay until the next call for the film. */
typedef struct tgi_av_frame {
    const uint8_t *plane[TGI_AV_COMPONENTS];
    int64_t pitch[TGI_AV_COMPONENTS]; /* bytes from row to row; may be negative */
    int64_t time;                     /* in ticks; TGI_AV_NO_TIME */
    int concealed;                    /* 1: the decoder made up parts of it */
} tgi_av_frame;

typedef struct tgi_av_film tgi_av_film;

typedef struct tgi_av_open {
    int threads;            /* of the decoder */
    int64_t most_pixels;    /* of a frame; 0: 2^28 */
    int (*cancelled)(void); /* asked now and then; or NULL */
} tgi_av_open;

typedef struct tgi_av_ops {
    uint32_t abi;
    const char *(*version)(void); /* "libavformat 59.27.100, libavcodec 59.37.100" */
    /* Read the header and all packets' places and times; no frame is decoded but the first.
     * TG_E_FORMAT: damaged, or no film; TG_E_UNSUPPORTED: a codec or pixels that are not read. */
    tg_status (*open)(const char *path, const tgi_av_open *o, tgi_av_film **out, tgi_err *err);
    const tgi_av_info *(*info)(const tgi_av_film *f);
    /* When frame k is shown, in ticks; TGI_AV_NO_TIME. */
    int64_t (*time)(const tgi_av_film *f, int64_t k);
    /* Decode frame k. The one behind the last costs one frame; any other is found from the key frame
     * before it. TG_E_FORMAT: packets that cannot be decoded, or there are fewer frames. */
    tg_status (*frame)(tgi_av_film *f, int64_t k, tgi_av_frame *out, tgi_err *err);
    /* Packets that the decoder refused so far. */
    int64_t (*refused)(const tgi_av_film *f);
    void (*close)(tgi_av_film **f);
} tgi_av_ops;

/* The one symbol of the plugin: its table, or NULL when it was built for another ABI. */
#define TGI_AV_PLUGIN_SYMBOL "tgi_av_plugin"
typedef const tgi_av_ops *(*tgi_av_plugin_fn)(uint32_t abi);

#endif
