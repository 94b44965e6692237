/*
 * tegula_preset.h - named sets of settings, and where the settings of a job are from.
 *
 * A preset is a small JSON file: what it is for, settings of any job, and what it says of a
 * GPU. It never names a file or a place in one image. Presets are shipped with tegula and kept
 * in the user's folder, $XDG_CONFIG_HOME/tegula/presets or ~/.config/tegula/presets. Where both
 * have a name, the user's counts. Setting the option "preset" (tg_opts_set) takes one. Options
 * that are set by name, and those of a job file, win over it. docs/reference/presets.md has the
 * format.
 */
#ifndef TEGULA_PRESET_H
#define TEGULA_PRESET_H

#include <tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where settings are from ------------------------------------------------------------- */

/** Say where the value of an option is from: "default", "program", the path of a job file or
 * "preset NAME"; NULL for an unknown name. View until the next set. */
TG_API const char *tg_opts_origin(const tg_opts *o, const char *name);
/** Name who sets options: tg_opts_origin says this instead of "program" for values that
 * tg_opts_set has set. Copied, 31 bytes. */
TG_API void tg_opts_set_by(tg_opts *o, const char *who);

/** A setting of a job that is planned. */
typedef struct tg_setting {
    const char *name;   /* of the option */
    const char *value;  /* what holds */
    const char *origin; /* as tg_opts_origin; "descriptor"; "worked out": by the engine */
    int is_default;     /* 1: the value is the option's default, whoever said so */
} tg_setting;

/**
 * List every setting of a job that has a value, except for the files that it reads and writes.
 * Plans the job if that is not done yet. @param list view of the job.
 * @return what tg_job_plan returns.
 */
TG_API tg_status tg_job_settings(tg_job *job, const tg_setting **list, size_t *n);

/* ---- Presets ----------------------------------------------------------------------------- */

/** Where a preset lies. */
typedef enum tg_preset_from {
    TG_PRESET_BUILT_IN, /* shipped with tegula */
    TG_PRESET_USER,     /* in the user's folder */
    TG_PRESET_FILE      /* a file that was named by its path */
} tg_preset_from;

/** What a preset says of the GPU it is for; not used by a build without a GPU backend. */
typedef struct tg_preset_device {
    uint64_t memory_bytes; /* 0: the preset has no device part */
    int64_t tile;          /* side of a square tile, pixels; its rows are streamed */
    int64_t batch;         /* tiles computed together */
    char precision[8];     /* "fp32", "fp16" or "bf16" */
} tg_preset_device;

/** What a preset says of itself. */
typedef struct tg_preset_info {
    char name[64];
    char path[1024];
    char description[256]; /* one line */
    char why[768];         /* what justifies its values, or "" */
    char problem[256];     /* "": it loads; else why it does not (tg_preset_list only) */
    tg_preset_from from;
    int hides; /* 1: the user's, where a shipped one has the same name */
    tg_preset_device device;
} tg_preset_info;

/**
 * List all presets by name. Of two with the same name only the one that counts is listed.
 * @param list returned; release with tg_preset_list_free.
 * @return TG_E_NOT_FOUND (the shipped ones are not installed), TG_E_NOMEM
 */
TG_API tg_status tg_preset_list(tg_ctx *ctx, tg_preset_info **list, size_t *n);
/** Release a list of presets; NULL is allowed. */
TG_API void tg_preset_list_free(tg_preset_info *list);

/**
 * Read one preset. @param name a name, or a path: with '/' in it or ending in .json.
 * @param info may be NULL. @param settings may be NULL; a set of options that holds what the
 * preset sets (tg_opts_origin tells those from defaults), returned; tg_opts_free.
 * @return TG_E_ARG        there is no such preset (the detail names the nearest), or a setting
 *                         that no preset may have or that does not parse
 *         TG_E_NOT_FOUND  a path where no file is
 *         TG_E_FORMAT     not such a file
 */
TG_API tg_status tg_preset_load(tg_ctx *ctx, const char *name, tg_preset_info *info,
                                tg_opts **settings);

/**
 * Write the settings of `o` into the user's folder as NAME. The file is there whole or not at
 * all.
 *
 * An option that was set by name and that no preset may have is an error; one that came from
 * elsewhere is left out. With option "preset" its device part is taken too. "about" is the
 * description.
 *
 * @param info filled as tg_preset_load does; may be NULL.
 * @return TG_E_ARG     no name for a preset, nothing to save, or an option was set by name that
 *                      no preset may have
 *         TG_E_EXISTS  it is there already and option "yes" is not set
 *         TG_E_NOT_FOUND (no folder is named), TG_E_IO, TG_E_NO_SPACE, TG_E_NOMEM
 */
TG_API tg_status tg_preset_save(tg_ctx *ctx, const char *name, const tg_opts *o,
                                tg_preset_info *info);

/**
 * Choose settings of a job that removes something from a film, and set them in `o`: with "preset"
 * auto those of the highest quality that fit, and "device" where a GPU is there and predicted to be
 * faster; with "allow-lower-quality" the next ones below what was asked, if that does not fit.
 * Nothing is done where `o` has neither. An output that an earlier run began is gone on with by its
 * settings.
 *
 * @param o     options of the job, before tg_job_open.
 * @param json  the ways that were planned, one object (docs/reference/json.md, "inpaint_auto");
 *              returned, tg_text_free. NULL: there was nothing to choose.
 * @return TG_E_BUDGET  none fits; tg_ctx_refusal has remedies, *json what was tried
 *         and what tg_job_open returns
 * @source engine/auto/inpaint_choice.h
 */
TG_API tg_status tg_inpaint_auto(tg_ctx *ctx, tg_opts *o, char **json);

/**
 * Choose the preset of one job on one machine: the settings that fit and are predicted to take
 * the least time. Reads no pixel.
 *
 * Tries a grid of threads, tile, instruction set and scratch; bf16 only where --precision
 * allows it or nothing else fits. Every prediction is a plan's. Settings that `o` has are kept.
 *
 * @param o     options of the job, borrowed. "machine" names the machine file; without it, it
 * is
 *              this machine. "output", set by name, is where the preset is written (with "yes"
 *              over what is there), and not the job's output; one of a job file is left alone.
 * @param json  the preset, its predictions and reasons, one object (docs/reference/json.md);
 *              returned, tg_text_free.
 * @return TG_E_BUDGET  nothing fits; tg_ctx_refusal has remedies
 *         TG_E_EXISTS, TG_E_IO, TG_E_NO_SPACE  the file
 *         and what tg_job_open returns
 * @source grid: engine/auto/auto.h; held against an exhaustive search by tests/unit/test_auto.
 */
TG_API tg_status tg_preset_auto(tg_ctx *ctx, const tg_opts *o, char **json);

#ifdef __cplusplus
}
#endif

#endif
