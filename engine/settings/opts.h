/* opts.h - a set of options: text in, checked when set, typed out.
 *
 * The rows come from opts_list.h. Values are kept as the text they were given (so a job file
 * says what the user said) and are known to parse: the typed getters cannot fail. The public
 * tg_opts_* calls are thin wrappers of these (opts_api.c). A set belongs to one thread.
 *
 * Each value knows where it is from, and what it is from decides who wins, in whatever order
 * they come: what was set by name over a job file over a preset over the table's default. Two
 * of a rank: the later tgi_opts_set; the earlier job file. Setting "preset" reads the preset
 * there and then and takes the place of what another one left. */
#ifndef TGI_OPTS_H
#define TGI_OPTS_H

#include "engine/base/json.h"
#include "engine/base/post_spec.h"
#include "engine/base/spec.h"
#include "engine/device/choice.h"

typedef enum tgi_opt {
#define TGI_OPT(id, name, alias, arg, fallback, verbs, rule, lo, hi, choices, keep, help)      \
    TGI_OPT_##id,
#include "engine/settings/opts_list.h"
#undef TGI_OPT
    TGI_OPT_COUNT
} tgi_opt;

/* Choices of "precision". */
typedef enum tgi_precision {
    TGI_PRECISION_AUTO,
    TGI_PRECISION_FP32,
    TGI_PRECISION_FP16,
    TGI_PRECISION_BF16,
    TGI_PRECISION_O1,
    TGI_PRECISION_O2
} tgi_precision;

/* Row of a name or alias, or TGI_OPT_COUNT. */
tgi_opt tgi_opt_find(const char *name);
/* Of the first n characters; an underscore is a hyphen. */
tgi_opt tgi_opt_find_n(const char *word, size_t n);
/* The known name nearest to a misspelt one, or NULL when nothing is near. */
const char *tgi_opt_nearest(const char *name);
/* 1 when the option is part of the job (job files, fingerprints), 0 for --json, --yes, ... */
bool tgi_opt_in_job(tgi_opt id);
/* 1 when it is part of any job: not of one model, image or place in it (presets). */
bool tgi_opt_in_preset(tgi_opt id);

tg_status tgi_opts_new(tg_opts **out, tgi_err *err); /* returned; close with tgi_opts_free */
/* Copy every option of `from` into the empty set `to`. On failure free `to` as usual. */
tg_status tgi_opts_copy(tg_opts *to, const tg_opts *from, tgi_err *err);
/* Read the pipes that options name (a descriptor, statistics, a machine) before the set is
 * copied or asked twice: what they give is in it from then on, and in its copies. */
tg_status tgi_opts_keep_pipes(const tg_opts *o, tgi_err *err);
/* The document in the file that the option names, or what its pipe gave. */
tg_status tgi_opts_json(const tg_opts *o, tgi_opt id, tgi_json **doc, tgi_err *err);
/* As tg_opts_set; NULL or "" turns a switch on and is refused for all others. */
tg_status tgi_opts_set(tg_opts *o, const char *name, const char *value, tgi_err *err);
/* Set what is not set yet from a job file / from its text (n bytes). On failure nothing or a
 * part may have been set: throw the set away. `what` names the text in details. */
tg_status tgi_opts_load(tg_opts *o, const char *path, tgi_err *err);
tg_status tgi_opts_from_json(tg_opts *o, const char *text, size_t n, const char *what,
                             tgi_err *err);
/* The options of the job that were set, as the text of a job file. Returned; tgi_free. */
tg_status tgi_opts_to_json(const tg_opts *o, char **json, tgi_err *err);

bool tgi_opts_given(const tg_opts *o, tgi_opt id); /* set, not defaulted */
bool tgi_opts_asked(const tg_opts *o, tgi_opt id); /* set, and by no preset */
/* Where the value is from: "default", "program" (or what tg_opts_set_by says), a job file's
 * path, "preset NAME". View until the next set. */
const char *tgi_opts_origin(const tg_opts *o, tgi_opt id);
/* What --allow-lower-quality made of what was asked; "": nothing. View. */
const char *tgi_opts_lowered(const tg_opts *o);
const char *tgi_opts_str(const tg_opts *o, tgi_opt id); /* value, default or NULL; view */
bool tgi_opts_flag(const tg_opts *o, tgi_opt id);       /* switches */
/* Whole numbers; `auto` or no value gives `otherwise` ("level", "threads"). */
int64_t tgi_opts_int(const tg_opts *o, tgi_opt id, int64_t otherwise);
/* Index in the row's choices: "io" auto|map|read = 0,1,2; "pad" reflect|edge|zero; "isa"
 * auto|portable|avx2|avx512; "precision" tgi_precision. */
int tgi_opts_choice(const tg_opts *o, tgi_opt id);
/* The i-th NAME=FILE of input-tensor in the order given; false when i is past the end. `name`
 * is cut to cap. */
bool tgi_opts_tensor(const tg_opts *o, int i, char *name, size_t cap, const char **file);
int tgi_opts_n_tensors(const tg_opts *o);

/* Specs of one option each; false (and *out untouched) when there is neither value nor default.
 */
bool tgi_opts_ram(const tg_opts *o, tgi_ram_spec *out);
bool tgi_opts_vram(const tg_opts *o, tgi_ram_spec *out);
void tgi_opts_device(const tg_opts *o, tgi_device_spec *out);
void tgi_opts_tile(const tg_opts *o, tgi_tile_spec *out);
bool tgi_opts_roi(const tg_opts *o, tgi_roi_spec *out);
void tgi_opts_planes(const tg_opts *o, tgi_planes_spec *out); /* n = 0: all */
bool tgi_opts_normalize(const tg_opts *o, tgi_normalize_spec *out);
bool tgi_opts_dtype(const tg_opts *o, tg_dtype *out);
void tgi_opts_compress(const tg_opts *o, tgi_compress_spec *out);
bool tgi_opts_interval(const tg_opts *o, tgi_opt id, tgi_interval_spec *out);
bool tgi_opts_post(const tg_opts *o, tgi_post_spec *out);
bool tgi_opts_at(const tg_opts *o, int64_t out[3]);

/* Behind tg_option_table and tg_opts_free. */
const tg_option *tgi_option_table(size_t *n);
void tgi_opts_free(tg_opts **o);

#endif
