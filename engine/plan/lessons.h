/* lessons.h - what finished runs took, beside what was estimated: it corrects the next
 * estimate.
 *
 * Times are kept per kernel, as speeds are filed (speed.h), and in one sum for all that is
 * beside the kernels. They lie in the user's cache folder, and belong to this processor and to
 * the speeds that the estimate used (usual ones, or a calibration's).
 *
 * They change what people are told and nothing else. No plan, kernel or cell is chosen by them,
 * so bits do not depend on what ran yesterday. With TEGULA_LEARN=no they are neither read nor
 * written. */
#ifndef TGI_LESSONS_H
#define TGI_LESSONS_H

#include "engine/plan/speed.h"

#define TGI_MAX_LESSONS 160
#define TGI_LESSON_BESIDE "beside" /* what a run takes beside its kernels */
#define TGI_LESSON_STAGES "stages" /* the same of one in stages */
#define TGI_LESSON_FILMS "films"   /* and of one that reads or writes a film */

typedef struct tgi_lesson {
    char key[40];
    double took, said; /* seconds; each run halves what earlier ones left */
} tgi_lesson;

typedef struct tgi_lessons { /* some kilobytes: not for the stack */
    int64_t runs;
    int n;
    tgi_lesson row[TGI_MAX_LESSONS];
} tgi_lessons;

void tgi_lessons_add(tgi_lessons *l, const char *key, double took, double said);
/* Seconds take this times what is said: of the key, else of all like it (tuned kernels, or
 * operators without one); 1 where nothing is known. */
double tgi_lessons_factor(const tgi_lessons *l, const char *key);
/* Of all keys together; 1 where nothing is known. */
double tgi_lessons_overall(const tgi_lessons *l);
/* Seconds of all bands' kernels, as tgi_speed_kernels, corrected. */
double tgi_lessons_kernels(const tgi_lessons *l, const tgi_speeds *s, const tgi_tiling *t,
                           int threads);

/* Those that belong to these speeds here; none (all zero) where there are none. `calibrated`:
 * they were measured. */
void tgi_lessons_load(const tgi_speeds *s, int calibrated, tgi_lessons *out);
tg_status tgi_lessons_save(const tgi_speeds *s, int calibrated, const tgi_lessons *l,
                           tgi_err *err);
/* 0: the user wants none. */
int tgi_lessons_wanted(void);

#endif
