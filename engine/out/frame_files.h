/* frame_files.h - a film as pictures, a file for each frame: "frames/%05d.png".
 *
 * A frame is written beside its name and renamed when it is whole. What the journal keeps of it is a record of
 * its bytes and checksum. The journal's output is the list of all files, PATTERN.frames, made of these records
 * at the end: it is the name that tells a finished run. */
#ifndef TGI_FRAME_FILES_H
#define TGI_FRAME_FILES_H

#include "io/picture_out.h"

#define TGI_FRAMES_LIST ".frames"     /* behind the pattern */
#define TGI_FRAME_RECORD ((size_t)12) /* bytes of a record */

/* The list of an output that is such a pattern, in buf; any other output itself. */
const char *tgi_frames_list_of(const char *output, char *buf, size_t cap);

typedef struct tgi_frame_files {
    const char *pattern; /* borrowed */
    int64_t first;       /* number of frame 0 */
    const int64_t *
        numbers; /* borrowed: of all frames, each larger than the one before; NULL: they go on from `first` */
    int64_t frames;
    const tgi_picture_writer *writer;
    tgi_picture_spec spec; /* of one */
} tgi_frame_files;

/* Write frame k, rows of `picture` without gaps, and its record. TG_E_IO, TG_E_NO_SPACE, TG_E_EXISTS. */
tg_status tgi_frame_write(const tgi_frame_files *f, int64_t k, const void *picture,
                          uint8_t record[TGI_FRAME_RECORD], tgi_err *err);
/* 1: the file of frame k is there, of as many bytes as the record says. */
int tgi_frame_is_there(const tgi_frame_files *f, int64_t k,
                       const uint8_t record[TGI_FRAME_RECORD]);
/* 1: and of the bytes that were written. It is read; 0 when a signal asks to stop meanwhile. */
int tgi_frame_is_same(const tgi_frame_files *f, int64_t k,
                      const uint8_t record[TGI_FRAME_RECORD]);
/* TG_E_EXISTS: a file of one of the frames is there. */
tg_status tgi_frames_are_new(const tgi_frame_files *f, tgi_err *err);
/* How many pictures of other numbers the pattern has in its folder; the least of them, its name without the folder, in
 * `least`. */
int64_t tgi_frames_others(const tgi_frame_files *f, char *least, size_t cap);
/* TG_E_ARG: `path` is the name of one of them. */
tg_status tgi_frames_spare(const tgi_frame_files *f, const char *path, tgi_err *err);
/* A line of the list: "00001.png 1234 bytes, crc32c 89abcdef\n". Returns its length. */
size_t tgi_frame_line(const tgi_frame_files *f, int64_t k,
                      const uint8_t record[TGI_FRAME_RECORD], char *text, size_t cap);

#endif
