/* pipe.h - bytes that go to who reads them now: a pipe, or what standard output is. */
#ifndef TGI_PIPE_H
#define TGI_PIPE_H

#include "engine/base/status.h"

#include <stddef.h>

/* Standard output, a descriptor of its own: 1 in *out. TG_E_ARG: it is a terminal; TG_E_IO: it is closed. */
tg_status tgi_pipe_open_stdout(int *out, tgi_err *err);
/* All n bytes; waits for who reads, and is no signal when he is gone. TG_E_IO; TG_E_NO_SPACE: it is a file, and
 * the disk is full; TG_E_CANCELLED. */
tg_status tgi_pipe_write(int fd, const void *bytes, size_t n, tgi_err *err);

#endif
