/* video_parts.h - what the readers of video_head.h share: the file, and one function a
 * container. */
#ifndef TGI_VIDEO_PARTS_H
#define TGI_VIDEO_PARTS_H

#include "io/rfile.h"
#include "io/video_head.h"

#include <stdbool.h>

typedef struct tgi_video_file {
    tgi_rfile f;
    tgi_window win;
    int64_t parts; /* boxes, chunks or elements seen */
} tgi_video_file;

/* `n` bytes at `at`, at most 4 KiB, valid until the next call. TG_E_FORMAT past the end. */
tg_status tgi_video_bytes(tgi_video_file *v, uint64_t at, size_t n, const uint8_t **out,
                          tgi_err *err);
/* Counts a part; TG_E_FORMAT when a file has more of them than any video. */
tg_status tgi_video_part(tgi_video_file *v, tgi_err *err);

/* Each fills width, height and frames, 0 where the file does not say. */
tg_status tgi_video_mp4(tgi_video_file *v, tgi_video_head *out, tgi_err *err);
tg_status tgi_video_mkv(tgi_video_file *v, tgi_video_head *out, tgi_err *err);
tg_status tgi_video_avi(tgi_video_file *v, tgi_video_head *out, tgi_err *err);
tg_status tgi_video_y4m(tgi_video_file *v, tgi_video_head *out, tgi_err *err);

#endif
