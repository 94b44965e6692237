/* preset.h - named sets of settings: files, folders, and putting one into a set of options.
 *
 *   {"schema": 1, "description": "...", "why": "...",
 *    "settings": {"ram": "256MiB", ...},
 *    "device": {"gib": 8, "tile": 2048, "batch": 4, "precision": "fp16"}}
 *
 * In the place of settings, presets of which the memory of the machine chooses one: that of its first GPU, else what is
 * free:
 *
 *   "by_memory": [{"below_gib": 6, "preset": "propainter-4gb"}, ..., {"preset": "..."}]
 *
 * `settings` are rows of opts_list.h whose `keep` is 1, read by the rules of job files. Files
 * come from strangers: at most 256 KiB, regular ones only, unknown keys are errors. */
#ifndef TGI_PRESET_H
#define TGI_PRESET_H

#include "engine/base/status.h"
#include "tegula_preset.h"

/* A file that was read. Zero-initialise; release with tgi_preset_close. */
typedef struct tgi_preset {
    tg_preset_info info;
    tg_opts *settings;
    const tg_opts *of; /* borrowed: whose machine chooses (--machine); NULL: this one */
    char chosen[64];   /* by memory; "": it has settings of its own */
    uint64_t memory;   /* that chose */
    int nested;        /* it was chosen so: no second choice */
} tgi_preset;

/* preset_file.c */

/* Read info->path into `out`: what the file says, its settings checked. */
tg_status tgi_preset_read(tgi_preset *out, tgi_err *err);
void tgi_preset_close(tgi_preset *p);
/* "8.00 GiB: tile 2048, batch 4, fp16"; returns buf. */
const char *tgi_preset_device_text(const tg_preset_device *d, char *buf, size_t cap);

/* preset_find.c */

/* Fill name, path, from and hides: of a name the user's folder comes first. TG_E_ARG when there
 * is none, naming the nearest; a path need not be there. */
tg_status tgi_preset_find(const char *name, tg_preset_info *info, tgi_err *err);
/* Path of the user's preset of that name; `name` is checked. */
tg_status tgi_preset_user_path(const char *name, char *out, size_t cap, tgi_err *err);
/* All of them, sorted by name; those that do not load have a `problem`. Returned; tgi_free. */
tg_status tgi_preset_list(tg_preset_info **list, size_t *n, tgi_err *err);

/* preset_use.c */

/* Find and read. Release with tgi_preset_close, also after a failure. */
tg_status tgi_preset_open(const char *name, tgi_preset *out, tgi_err *err);
/* Put its settings where nothing of a higher rank is, in place of those of an earlier preset;
 * on failure only TG_E_NOMEM leaves a part. `by_name`: it was asked for, so what loses to a job
 * file is told. */
tg_status tgi_preset_apply(tg_opts *o, const char *name, int by_name, tgi_err *err);

/* preset_save.c: as tg_preset_save. */
tg_status tgi_preset_save(const char *name, const tg_opts *o, tg_preset_info *info,
                          tgi_err *err);

#endif
