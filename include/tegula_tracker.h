/*
 * tegula_tracker.h - memory over time: sampled while work goes on, kept as CSV, drawn.
 *
 * EXPERIMENTAL: the declarations of this header may still change from one version to the next.
 *
 * A *tracker* takes samples of this process, of the machine and of its GPUs, by time or by
 * updates (units of work that the program counts), labels them with a phase and a tile or
 * frame, and keeps the maxima with the label they had. It works without a file; with one it
 * appends a line per sample that survives any kill (docs/reference/tracker.md has the columns).
 * `tegula run --log` is this tracker. A *plot* is a picture of such a file.
 *
 *     tg_tracker_opts o = {.size = sizeof o, .csv = "memory.csv"};
 *     tg_tracker *t = NULL;
 *     tg_tracker_row row = {.size = sizeof row};
 *     tg_status st = tg_tracker_open(ctx, &o, &t);
 *     for (int64_t frame = 0; st == TG_OK && frame < n; frame++) {
 *         work_on(frame);
 *         st = tg_tracker_update(t, "inpaint", frame, &row);
 *     }
 *     tg_tracker_close(&t, NULL);
 *     if (st == TG_OK)
 *         st = tg_plot(ctx, "memory.csv", "memory.svg", NULL, NULL);
 *
 * All sizes are bytes and all times are seconds of the monotonic clock. Structs begin with
 * `size`, set by the caller to sizeof; a size this version does not know is TG_E_ARG. Ownership
 * words and statuses as in tegula.h. One thread at a time may call what takes a `tg_tracker *`;
 * the tracker's own thread, where there is one, is its own affair.
 */
#ifndef TEGULA_TRACKER_H
#define TEGULA_TRACKER_H

#include <tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tracker ----------------------------------------------------------------------------- */

typedef struct tg_tracker tg_tracker;

#define TG_TRACKER_GPUS 16  /* GPUs that are followed; further ones are not */
#define TG_TRACKER_PHASE 32 /* bytes of a phase's name, the end included; longer ones are cut */

/** Options of a tracker. Zero means default in every field; `size` is
 * sizeof(tg_tracker_opts). */
typedef struct tg_tracker_opts {
    size_t size;
    const char *csv;   /* file to write; NULL: none. Borrowed for the call */
    const char *every; /* how far samples are apart: "500ms", "2s", "10u" (every tenth update).
                          NULL: "10u". Borrowed for the call */
    int peak_ms; /* > 0: a thread also looks at this process every so many milliseconds between
                    the samples, for the maxima and for peak_bytes; 1 to 60000 */
    int go_on;   /* 1: append to a log that is there, its time goes on from its last line; 0, or
                    a file that is no log of these columns: begin anew */
} tg_tracker_opts;

/** One sample. All sizes are bytes, as they were at `seconds`. */
typedef struct tg_tracker_row {
    size_t size;
    int fresh; /* 1: taken by this update; 0: an earlier one, this update was between two */
    double seconds; /* since the log began */
    char phase[TG_TRACKER_PHASE];
    int64_t tile; /* or frame: what the last update said; 0 before the first */
    /* This process. */
    uint64_t measured_bytes; /* anonymous + shared + swapped + page tables: what counts against
                                a budget. File pages never do */
    uint64_t peak_bytes; /* largest measured_bytes since the sample before, this one included:
                            with peak_ms nothing hides between two samples */
    uint64_t anonymous_bytes, file_bytes, shared_bytes, swapped_bytes, page_table_bytes;
    uint64_t high_water_bytes; /* the kernel's own (VmHWM): largest anonymous + file + shared
                                  together since the process began */
    /* Inside it. */
    uint64_t pool_allocated_bytes, pool_reserved_bytes; /* tegula's own blocks; what it holds
                                                           for them */
    /* Around it. */
    uint64_t available_bytes; /* what could be had: the least of the machine, control groups
                                 and limits */
    uint64_t predicted_bytes, budget_bytes; /* as told by tg_tracker_expect; 0: not told */
    int n_gpus;                             /* found when the tracker was opened */
    uint64_t gpu_used_bytes[TG_TRACKER_GPUS], gpu_free_bytes[TG_TRACKER_GPUS];
} tg_tracker_row;

/** A maximum and what was going on. All zero while there is no sample. */
typedef struct tg_tracker_maximum {
    uint64_t bytes;
    double seconds;
    char phase[TG_TRACKER_PHASE];
    int64_t tile;
} tg_tracker_maximum;

/** The maxima of this tracker's samples (of an earlier run's, see go_on, they know nothing). */
typedef struct tg_tracker_maxima {
    size_t size;
    int64_t samples, updates;
    tg_tracker_maximum measured;
    tg_tracker_maximum resident; /* anonymous + file + shared, to be held against VmHWM */
    tg_tracker_maximum pool_allocated;
    int n_gpus;
    tg_tracker_maximum gpu_used[TG_TRACKER_GPUS];
    uint64_t least_available_bytes; /* what was left, at the least */
    char problem[160]; /* why the file was given up before the end; "": it was not */
} tg_tracker_maxima;

/**
 * Open a tracker and take the first sample, in phase "start". Nothing is allocated afterwards.
 * A file that can no longer be written ends, and `problem` says why: a log never stops the
 * work.
 * @param ctx for the detail line; NULL: none. @param opts NULL for defaults. @param out written
 * only on TG_OK; returned, close with tg_tracker_close.
 * @return TG_E_ARG (an option, no `every`), TG_E_EXISTS (the file cannot be created), TG_E_IO
 * (it cannot be written; a pipe that nobody reads), TG_E_CANCELLED, TG_E_NOMEM.
 */
TG_API tg_status tg_tracker_open(tg_ctx *ctx, const tg_tracker_opts *opts, tg_tracker **out);

/** Tell the tracker the predicted peak and the budget, which later samples carry. 0: unknown. A
 * NULL tracker is allowed. */
TG_API void tg_tracker_expect(tg_tracker *t, uint64_t predicted_bytes, uint64_t budget_bytes);

/**
 * Count one unit of work, label what follows, and take a sample when one is due.
 *
 * By updates the 1st, the 11th, ... is due. By time one is due when the interval has passed;
 * the tracker's thread takes it if no update comes. A change of phase always takes one.
 *
 * @param phase  "decode"; copied; bytes that would need quotes in CSV become '_'. NULL: as
 * before.
 * @param row    the sample taken, or the latest one (see `fresh`); `size` set; NULL allowed.
 * @return TG_E_ARG.
 */
TG_API tg_status tg_tracker_update(tg_tracker *t, const char *phase, int64_t tile,
                                   tg_tracker_row *row);

/** Read the maxima so far. @param out `size` set. @return TG_E_ARG. */
TG_API tg_status tg_tracker_maxima_now(tg_tracker *t, tg_tracker_maxima *out);

/** Take a last sample, close the file and set to NULL; NULL allowed. @param out the maxima;
 * `size` set; NULL allowed. @return TG_E_ARG (the tracker is closed nevertheless). */
TG_API tg_status tg_tracker_close(tg_tracker **t, tg_tracker_maxima *out);

/* ---- Plot -------------------------------------------------------------------------------- */

/** Colours of a picture. */
typedef enum tg_theme {
    TG_THEME_AUTO, /* SVG: as the viewer prefers; PNG: light */
    TG_THEME_LIGHT,
    TG_THEME_DARK
} tg_theme;

/** Options of a picture. Zero means default in every field; `size` is sizeof(tg_plot_opts). */
typedef struct tg_plot_opts {
    size_t size;
    int width;    /* of the picture in points, 480 to 4000; 0: 960 */
    double scale; /* PNG: pixels a point, 0.5 to 8; 0: 2 */
    tg_theme theme;
    const char *title; /* NULL: "Memory over time"; borrowed for the call */
} tg_plot_opts;

/** What was drawn. */
typedef struct tg_plot_result {
    size_t size;
    int64_t samples; /* lines of the log */
    double seconds;  /* of its last line */
    tg_tracker_maximum maximum;
    uint64_t predicted_bytes, budget_bytes; /* as the last line has them */
    int unfinished; /* 1: the log ends inside of a line, which was left out */
} tg_plot_result;

/**
 * Draw a log: memory over time against budget and prediction, phases shaded, the maximum
 * marked; a panel for each GPU. The picture is deterministic: the same log gives the same
 * bytes.
 * @param csv a log of a tracker, from whomever: it is read in bounded memory, and more lines
 * than the picture has columns are drawn by their least and largest values. Or a timeline of
 * `--trace`: what was in use after every allocation and release.
 * @param out FILE.svg (self-contained, no scripts, light and dark) or FILE.png; replaced only
 * when complete. @param opts, result NULL allowed.
 * @return TG_E_ARG (options; another suffix), TG_E_NOT_FOUND, TG_E_FORMAT (not such a log; the
 * detail names the line), TG_E_UNSUPPORTED (a PNG, built without zlib), TG_E_IO, TG_E_EXISTS,
 * TG_E_NO_SPACE, TG_E_NOMEM.
 */
TG_API tg_status tg_plot(tg_ctx *ctx, const char *csv, const char *out,
                         const tg_plot_opts *opts, tg_plot_result *result);

#ifdef __cplusplus
}
#endif

#endif
