/* video_head.h - what a video says of itself: pixels of a frame, number of frames.
 *
 * Only headers are read, in small windows; no frame is decoded, so codecs do not matter. For
 * estimates of data sets: a reader of frames is another thing. */
#ifndef TGI_VIDEO_HEAD_H
#define TGI_VIDEO_HEAD_H

#include "engine/base/status.h"

typedef struct tgi_video_head {
    const char *container;         /* "MP4", "Matroska", "AVI", "YUV4MPEG"; static */
    int64_t width, height, frames; /* of the first video track; as stored, before a rotation */
    uint64_t file_bytes;
} tgi_video_head;

/* TG_E_UNSUPPORTED: a kind of file that does not say (streams such as .264, .ts, .ogv), or no
 * video in it; TG_E_FORMAT: damaged; TG_E_NOT_FOUND, TG_E_IO, TG_E_NOMEM. The detail names the
 * file. */
tg_status tgi_video_head_read(const char *path, tgi_video_head *out, tgi_err *err);

#endif
