/* av.h - films, as the plugin libtegula_av.so reads and writes them: what it gives the engine.
 *
 * The plugin alone knows libav (linking it costs 135 libraries); this header knows nothing of it.
 * A film is a row of frames in the order in which they are shown. Frame k is the k-th that the
 * decoder yields from the beginning of the stream; packets say beforehand how many there are, when
 * each is shown, and where decoding can begin.
 *
 * Frames come as they are stored: components in planes, not turned, not converted to RGB. What that
 * takes is told (matrix, range, place of chroma, rotation), and assumed by nobody here.
 *
 * A film is written in two steps. An encoder makes packets of the frames of a segment, which needs no
 * other: one packet for each frame, in the order in which they are decoded. When all packets are there
 * they are joined, with times of our own and the other tracks of the film that was read. */
#ifndef TGI_AV_H
#define TGI_AV_H

#include "engine/base/status.h"

#include <stdint.h>

#define TGI_AV_ABI 18u /* rises with any change of this header */
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

/* What it tells a display of its light (HDR); 0: it does not say. */
typedef struct tgi_av_light {
    double least, most;     /* cd/m^2 of the display that it was mastered on */
    double primaries[4][2]; /* and its red, green, blue and white, CIE x and y */
    int content, average;   /* cd/m^2 of the brightest pixel, of the brightest frame's mean */
    /* 1: it says the first, the second, the third of these lines. */
    int has_luminance, has_primaries, has_levels;
    int dolby_vision, hdr10_plus;
    int dolby_alone; /* 1: its colours are made for Dolby Vision alone (profile 5) */
} tgi_av_light;

/* A track of its file. */
typedef struct tgi_av_track {
    char kind[16];  /* "video", "audio", "subtitle", "data", "attachment", "cover" */
    char codec[32]; /* as ffmpeg names it */
    char uses[160]; /* "default, forced": its dispositions, as ffmpeg names them */
    int width, height, channels, rate; /* 0: it has none */
} tgi_av_track;

/* What somebody wrote about a film or a track ("title", "date", "language"). Views of the film; bytes as in its file. */
typedef struct tgi_av_word {
    const char *key, *text;
} tgi_av_word;

typedef struct tgi_av_chapter {
    double begin, end; /* seconds on the clock of its film */
    const char *title; /* view of the film; NULL: it has none */
} tgi_av_chapter;

typedef struct tgi_av_info {
    char container[64], codec[32], profile[48]; /* as ffmpeg names them */
    int width, height;                          /* as stored */
    int rotation; /* degrees clockwise by which it is turned for viewing: 0, 90, 180, 270 */
    int flipped;  /* 1: mirrored, left and right, before it is turned */
    /* Nine numbers, that rotation and flipped are taken from; rows of a matrix. Columns 0 and 1 count 65536ths (in
     * row 2 of a pixel), column 2 counts 2^-30. */
    int32_t turn[9];
    int has_turn; /* 0: nobody says them */
    int64_t frames;
    int has_times; /* 0: packets say no times; frames can only be read from the first on */
    tgi_av_ratio time_base; /* seconds of a tick */
    tgi_av_ratio rate;      /* frames a second, as the header says; */
    tgi_av_ratio mean;      /* and as they are shown, mean; of a film without times the same */
    tgi_av_ratio pixel_aspect;
    int interlaced; /* what header or first frame say: 1 interlaced, 0 progressive, -1 nothing */
    int fields; /* of an interlaced one, which rows are shown first: 1 the top one and each second, 2 the others;
                   0: nobody says */
    int64_t lacks;        /* bytes that its file has not, at least; 0: nothing in it says so */
    const char *lacks_of; /* what of it is not whole, "its last fragment"; NULL */
    const char *unended;  /* what speaks for a cut, and may be so in a whole file, too; NULL */
    int another;          /* 1: another film stands behind it in its file, which is not read */
    char damage
        [128]; /* what libavformat said first that it could not make sense of, or a checksum that does not hold; "": nothing */
    int64_t
        unsound; /* frames that lie where a checksum of the file does not hold: they come concealed */
    int64_t declared_frames; /* what the header says; 0: nothing */
    int no_alpha;            /* 1: frames have alpha, which no decoder here gives */
    int64_t cut;    /* packets that the file ends in: not whole; with `truncated` no frames */
    int64_t hidden; /* frames that the film has and does not show (edit lists) */
    int64_t
        lost; /* packets that the decoder refused while it counted, of a film without times */
    /* Of a raw stream that begins amid pictures which need earlier ones: those of which the decoder makes no frame. */
    int64_t skipped;
    /* When the header says that the last of all tracks is over, and when it is: microseconds; 0: not said. */
    int64_t declared_end, seen_end;
    int64_t own_bytes;     /* of the film's packets; 0: nobody counted them */
    int64_t other_packets; /* of the other tracks, */
    int64_t other_bytes;   /* and their bytes */
    size_t header_bytes;   /* of all tracks' headers, attachments too; */
    size_t attached_bytes; /* of these, of large attached files, which only a Matroska takes */
    int64_t end;           /* when the last frame is over, in ticks; TGI_AV_NO_TIME */
    int64_t
        sound_begins; /* the first packet of all tracks of sound, in ticks; TGI_AV_NO_TIME */
    int64_t
        begins; /* the first frame, as packets say, also where has_times is 0; TGI_AV_NO_TIME */
    int restarts; /* 1: its clock goes back by a second or more: films behind each other, so frames have no times */
    int n_streams;        /* of all kinds */
    size_t decoder_bytes; /* that the decoder holds at most, its frames included */
    size_t index_bytes; /* of the tables that grow with the film: places and times of packets */
    int stream;         /* which of them is this film */
    int n_chapters;
    tgi_av_light hdr;
    tgi_av_form form;
} tgi_av_info;

/* A decoded frame. Planes stay until the next call for the film. */
typedef struct tgi_av_frame {
    const uint8_t *plane[TGI_AV_COMPONENTS];
    int64_t pitch[TGI_AV_COMPONENTS]; /* bytes from row to row; may be negative */
    int64_t time;                     /* in ticks; TGI_AV_NO_TIME */
    /* Bits: the decoder made up parts of it, or of one before that it is made of; a packet before it was
     * refused, and it may be made of that. */
    int concealed;
} tgi_av_frame;

#define TGI_AV_MADE_UP 1
#define TGI_AV_REFUSED 2

/* What frames have beside their pixels, and no film that is written takes over; bits. Not what the film's stream says,
 * too: tgi_av_join tells that. */
#define TGI_AV_HDR10_PLUS 1u
#define TGI_AV_DOLBY_VISION 2u
#define TGI_AV_CAPTIONS 4u /* closed ones, CEA-608 and 708 */
#define TGI_AV_TIME_CODES 8u
#define TGI_AV_TWO_VIEWS 16u
#define TGI_AV_SPHERE 32u
#define TGI_AV_ICC_PROFILE 64u
#define TGI_AV_OTHER_COLOURS 128u /* tags that the first frame has not */
#define TGI_AV_OTHER_FIELDS 256u  /* the rows of two moments, and the first has not */
#define TGI_AV_OTHER_ASPECT 512u  /* another shape of a pixel */
#define TGI_AV_OTHER_TURN 1024u   /* another rotation or mirroring */

typedef struct tgi_av_film tgi_av_film;

typedef struct tgi_av_open {
    int threads;         /* of the decoder, of codecs that hold no more for it */
    int64_t most_pixels; /* of a frame; 0: 2^28 */
    size_t
        most_bytes; /* of tables that grow with the film, where the reader counts them; 0: any */
    int (*cancelled)(void); /* asked now and then; or NULL */
    /* 1: a frame of which parts are made up is decoded from the first frame on, so that it is the same
     * whatever was read before it. */
    int steady;
    int truncated; /* 1: a packet of which the file has the beginning alone is none */
} tgi_av_open;

/* How much an encoder tries, least first, as x264 names it. */
#define TGI_AV_SPEEDS "ultrafast|superfast|veryfast|faster|fast|medium|slow|slower|veryslow"
#define TGI_AV_MEDIUM 6

/* What an encoder is asked for; what its packets hold depends on this, the frames and the version of
 * the libraries alone. */
typedef struct tgi_av_coding {
    char codec[16];    /* "h264", "hevc", "av1", "vp9", "ffv1", "prores" */
    tgi_av_form form;  /* of the frames, one that the codec takes (form_for) */
    int width, height; /* as stored */
    tgi_av_ratio rate, pixel_aspect;
    int fields;  /* a frame has the rows of two moments, as in tgi_av_info; 0: of one */
    int crf;     /* of codecs that have it; < 0: the codec's usual one */
    int segment; /* frames for one encoder at most */
    int speed;   /* TGI_AV_SPEEDS, from 1 on; 0: the codec's usual one */
} tgi_av_coding;

/* A frame that is to be filled: planes and pitches as in tgi_av_frame. */
typedef struct tgi_av_blank {
    uint8_t *plane[TGI_AV_COMPONENTS];
    int64_t pitch[TGI_AV_COMPONENTS];
} tgi_av_blank;

/* An encoded frame. Its bytes stay until the next call for the encoder. */
typedef struct tgi_av_packet {
    const uint8_t *bytes;
    size_t n;
    int64_t number; /* of the frame */
    int key;
    const uint8_t *header; /* of the codec, for the container; the same for all segments */
    size_t header_bytes;
} tgi_av_packet;

typedef struct tgi_av_encoder tgi_av_encoder;

/* A file that is made of packets. */
typedef struct tgi_av_join {
    int fd;                /* of the file, empty */
    const char *container; /* as ffmpeg spells it: "mp4", "mov", "matroska", "webm" */
    const tgi_av_coding *coding;
    const char
        *from; /* the film whose other tracks, chapters and words go with it; NULL: none */
    int words_alone; /* of it the words go, and neither tracks nor chapters, as times are others */
    int64_t frames;
    int delay; /* places by which a packet comes after that of its frame's number, at most */
    tgi_av_ratio time_base; /* of `time` */
    int64_t
        origin; /* taken off the times of the other tracks, in ticks of origin_base; off `time`, too */
    tgi_av_ratio origin_base;
    int restarts; /* as in tgi_av_info */
    /* Of the other tracks and chapters only what is shown in [begin, until), in ticks of origin_base before
     * `origin` is taken off; both 0: all; until INT64_MAX: to the end. */
    int64_t begin, until;
    int64_t
        skipped; /* frames at the coding's rate before the part's first: its time code is later by these */
    int32_t turn[9]; /* for viewing, as in tgi_av_info; only where the container says it */
    int has_turn;
    tgi_av_light light; /* of each scene (Dolby Vision, HDR10+) nothing is written */
    void *user;
    /* Packet i in the order of decoding, its bytes there until the next call. */
    tg_status (*packet)(void *user, int64_t i, tgi_av_packet *out, tgi_err *err);
    /* When frame k is shown, in ticks, each later than the one before; of k = frames: the end. */
    int64_t (*time)(void *user, int64_t k);
    /* Something of `from` does not go with it: in words. NULL: nobody asks. */
    void (*dropped)(void *user, const char *what);
    int (*cancelled)(void); /* or NULL */
} tgi_av_join;

typedef struct tgi_av_ops {
    uint32_t abi;
    const char *(*version)(void); /* "libavformat 59.27.100, libavcodec 59.37.100" */
    /* Read the header and all packets' places and times; no frame is decoded but the first.
     * TG_E_FORMAT: damaged, or no film; TG_E_UNSUPPORTED: a codec or pixels that are not read;
     * TG_E_BUDGET: more than most_pixels. */
    tg_status (*open)(const char *path, const tgi_av_open *o, tgi_av_film **out, tgi_err *err);
    const tgi_av_info *(*info)(const tgi_av_film *f);
    /* Track i of the film's file. 0: there is none. */
    int (*track)(const tgi_av_film *f, int i, tgi_av_track *out);
    /* Word i about that track; -1: about the film. 0: there is none. */
    int (*word)(const tgi_av_film *f, int track, int i, tgi_av_word *out);
    /* Chapter i. 0: there is none. */
    int (*chapter)(const tgi_av_film *f, int i, tgi_av_chapter *out);
    /* When frame k is shown, in ticks; TGI_AV_NO_TIME. */
    int64_t (*time)(const tgi_av_film *f, int64_t k);
    /* Decode frame k. The one behind the last costs one frame; any other is found from the key frame
     * before it. TG_E_FORMAT: packets that cannot be decoded, or there are fewer frames. */
    tg_status (*frame)(tgi_av_film *f, int64_t k, tgi_av_frame *out, tgi_err *err);
    /* Packets that the decoder refused so far. */
    int64_t (*refused)(const tgi_av_film *f);
    /* TGI_AV_HDR10_PLUS and so on, of the first frame and those that were asked for. */
    unsigned (*beside)(const tgi_av_film *f);
    void (*close)(tgi_av_film **f);

    /* The form in which `codec` takes frames that are stored like `like` (ffmpeg's spelling), with the
     * least loss; its tags stay as they are. TG_E_UNSUPPORTED: libavcodec has no such encoder here. */
    tg_status (*form_for)(const char *codec, const char *like, tgi_av_form *out, tgi_err *err);
    /* All forms that it takes, "yuv420p, yuv422p, ..."; "": there is no such encoder here. */
    void (*forms)(const char *codec, char *to, size_t cap);
    /* 1: a file of this container can hold it. */
    int (*holds)(const char *container, const char *codec);
    tg_status (*encoder)(const tgi_av_coding *c, tgi_av_encoder **out, tgi_err *err);
    size_t (*encoder_bytes)(const tgi_av_coding *c); /* that it holds at most */
    /* What it is told, as ffmpeg spells it: "-c:v libx264 -crf 18 ...". */
    void (*encoder_words)(const tgi_av_coding *c, char *to, size_t cap);
    /* The next frame, to be filled; then given, by its number, from 0 on in each segment; -1: there
     * is none any more. */
    tg_status (*blank)(tgi_av_encoder *e, tgi_av_blank *out, tgi_err *err);
    tg_status (*give)(tgi_av_encoder *e, int64_t number, tgi_err *err);
    /* The next packet. *there 0: it takes another frame first, or all have come. */
    tg_status (*take)(tgi_av_encoder *e, tgi_av_packet *out, int *there, tgi_err *err);
    void (*encoder_close)(tgi_av_encoder **e);
    /* TG_E_IO, TG_E_NO_SPACE: the file cannot be written; TG_E_UNSUPPORTED: not in this container. */
    tg_status (*join)(const tgi_av_join *j, tgi_err *err);
    /* Only tell `dropped` what would be left out; of *j, fd, packet and time are not used. */
    tg_status (*join_look)(const tgi_av_join *j, tgi_err *err);
} tgi_av_ops;

/* The one symbol of the plugin: its table, or NULL when it was built for another ABI. */
#define TGI_AV_PLUGIN_SYMBOL "tgi_av_plugin"
typedef const tgi_av_ops *(*tgi_av_plugin_fn)(uint32_t abi);

#endif
