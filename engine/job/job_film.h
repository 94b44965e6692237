/* job_film.h - a film as a job's output: what of the job becomes its frames, when each is shown, and the
 * file that is made of their packets (film_tiles.h) at the end. */
#ifndef TGI_JOB_FILM_H
#define TGI_JOB_FILM_H

#include "engine/job/job.h"
#include "engine/out/film_tiles.h"

typedef struct tgi_job_film {
    tgi_film_out out;
    tgi_sink_layout *packets; /* of the journal */
    int left_out;  /* things that the film that was read has, and this one will not */
    unsigned told; /* those of them that frames have beside their pixels (TGI_AV_HDR10_PLUS) */
    tgi_frame_files files; /* where each frame is one, */
    int64_t *
        numbers; /* and has the number of the file that it is made of, if these have gaps; NULL */
} tgi_job_film;

/* 1: the output's name is that of a film. */
int tgi_job_wants_film(const tg_job *job);
/* The output names a file for each frame: settings are changed so that the list of them is the output. */
tg_status tgi_job_film_name_files(tg_job *job, tgi_err *err);
/* 1: it goes through standard output, as a film. */
int tgi_job_wants_pipe(const tg_job *job);
/* TG_E_ARG: what the job wants needs its input twice, and that comes through a pipe. */
tg_status tgi_job_film_check_stream(const tg_job *job, tgi_err *err);
/* TG_E_UNSUPPORTED: the film that is read is interlaced, and --interlaced does not say how to take it. */
tg_status tgi_job_film_check_input(const tg_job *job, tgi_err *err);
/* Into a film, a network of one channel over a film of colours: the source gives luma, and the rest passes by. One of all
 * channels but alpha: that passes by. */
tg_status tgi_job_film_split(tg_job *job, tgi_err *err);
/* 1: into a film this network would get luma, and into pictures it gets each colour. */
int tgi_job_film_has_luma(const tg_job *job);
/* 1: a device gets the frames of the film that is read as Y, U and V, and *out says what they mean. */
int tgi_job_film_yuv(const tg_job *job, tgi_yuv *out);
/* The rest of frame k of the output into a frame that is written. */
tg_status tgi_job_film_rest(void *job, int64_t k, const tgi_av_blank *to, tgi_err *err);
/* Make job->film anew, of the mapping and the settings, if the output is a film. TG_E_ARG: these
 * planes are no frames, or a film is to become what no ending says. */
tg_status tgi_job_film_make(tg_job *job, tgi_err *err);
void tgi_job_film_free(tg_job *job);
/* TG_E_UNSUPPORTED: as it is planned, frames do not come one after the other. */
tg_status tgi_job_film_check(const tg_job *job, tgi_err *err);
/* The layout that the journal of the job's output has. */
const tgi_sink_layout *tgi_job_stored(const tg_job *job);
/* Begin with nothing: no file of a frame may be there without -y, and none is the input. */
tg_status tgi_job_film_begin_files(tg_job *job, tgi_err *err);
/* Make the film out of the packets: before tgi_journal_finish. `tick` is told how far it is, packet by packet. */
tg_status tgi_job_film_join(tg_job *job, tgi_journal *packets,
                            void (*tick)(void *user, double fraction), void *user,
                            tgi_err *err);
/* The same of a spool, when all frames came: complete in *to, without its name. */
tg_status tgi_job_film_join_spool(tg_job *job, tgi_film_spool *packets, tgi_part *to,
                                  tgi_err *err);
/* Frames whose tiles wait for the writer at most, where their rest passes by. */
#define TGI_REST_FRAMES 3
/* Frames of the film that is written, or of the film that is read where each becomes a plane; 0: none, or nobody knows. */
int64_t tgi_job_frames(const tg_job *job);
/* How many of them so many tiles are, of those that the plan counts. */
int64_t tgi_job_frames_of(const tg_job *job, int64_t tiles);
/* Memory that encoding takes; joining takes less, and comes when the encoders are gone. */
size_t tgi_job_film_bytes(const tg_job *job);

/* ---- Its parts --------------------------------------------------------------------------- */

/* The plane of the source that frame k of the output was made of. */
int64_t tgi_job_film_plane(const tg_job *job, int64_t k);
/* film_files.c: job->film as a picture for each frame; the list of them, of their records. */
tg_status tgi_job_film_files(tg_job *job, const tgi_film_frames *of, tgi_err *err);
tg_status tgi_job_film_list(const tg_job *job, const tgi_journal *packets, int fd,
                            const char *made, tgi_err *err);
/* film_join.c: warn of what the film that is written will not have; with --strict TG_E_UNSUPPORTED. */
tg_status tgi_job_film_tell(tg_job *job, tgi_err *err);
/* When all frames were read: what only later ones have. `earlier`: what a run which was stopped knew of it. */
tg_status tgi_job_film_tell_rest(tg_job *job, unsigned earlier, tgi_err *err);

#endif
