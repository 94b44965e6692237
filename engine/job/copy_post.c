/* copy_post.c - a copy of what --post makes of an image: its source stands in front of the image's. */
#include "engine/job/copy_priv.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/job/job_open.h"
#include "engine/job/job_settings.h"
#include "engine/job/lost.h"
#include "engine/out/scratch.h"
#include "engine/post/objects.h"
#include "engine/post/post.h"
#include "io/ome_write.h"

#include <string.h>
#include <unistd.h>

#define LEAST_SUMS ((size_t)1 << 20)
#define MOST_SUMS ((size_t)64 << 20)

/* Numbers of objects have a type of their own; others are converted from 0 and 1, or from floats. */
static tg_status choose_dtype(const tgi_copying *c, const tgi_post_spec *s, tg_dtype *out,
                              tgi_err *err)
{
    *out = TG_DTYPE_NONE;
    if (!tgi_post_gives_numbers(s) || !tgi_opts_dtype(c->opts, out) || !*out)
        return TG_OK;
    if (*out == TG_DTYPE_U8 || *out == TG_DTYPE_U16 || *out == TG_DTYPE_U32)
        return TG_OK;
    return tgi_fail(
        err, TG_E_ARG,
        "--dtype %s: numbers of objects are uint32, uint16 or uint8 (default: uint32)",
        tgi_dtype_name(*out));
}

static tg_status check_pyramid(const tgi_copying *c, const tgi_post_spec *s, tgi_err *err)
{
    return tgi_post_gives_classes(s) && tgi_opts_pyramid(c->opts) == TGI_PYRAMID_MEAN
               ? tgi_fail(err, TG_E_ARG,
                          "means of labels are no labels: --pyramid nearest, or leave it out")
               : TG_OK;
}

/* Where a network gives one value for some pixels: where these lie in what comes out. */
static void follow_grid(tgi_image_meta *m, int grid)
{
    for (int k = 0; k < 2; k++) {
        tgi_ome_place *p = &m->ome_place;
        p->shift[k] *= grid;
        p->scale[k] = (p->scale[k] > 0 ? p->scale[k] : 1) * grid;
        p->extent[k + 1] *= grid;
        m->physical[k + 1] /= grid;
        m->resolution[k] *= grid;
    }
}

/* Channels become one. */
static void drop_channels(tgi_copying *c)
{
    const tgi_image_meta was = c->meta;
    char words[160];
    c->meta.n_channels = c->meta.n_made = 0;
    c->meta.n_labels = 0;
    c->meta.ome_place.any_channel = 1;
    tgi_lost_channels(&was, &c->meta, 1, words, sizeof words);
    if (words[0])
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_LOST_CHANNELS, c->output, words);
    if (tgi_lost_labels(&was, &c->meta))
        tgi_ctx_log(c->ctx, TG_LOG_WARN, TGI_LOST_LABELS, c->output);
}

/* From here on the copy is one of all that the source gives. */
static void stand_in_front(tgi_copying *c, tgi_source *source)
{
    tg_dtype asked = TG_DTYPE_NONE;
    c->source = source;
    c->info = source->ops->info(source);
    c->post = 1;
    c->planes = (tgi_planes_spec){.n = 1, .range = {{0, c->info->n_planes}}};
    c->n_planes = c->info->n_planes;
    c->n_axes = c->info->n_axes;
    memcpy(c->axes, c->info->axes, sizeof c->axes);
    memcpy(c->shape, c->info->shape, sizeof c->shape);
    c->y = (tgi_range){0, c->info->height};
    c->x = (tgi_range){0, c->info->width};
    c->dtype =
        tgi_opts_dtype(c->opts, &asked) && asked != TG_DTYPE_NONE ? asked : c->info->dtype;
    c->meta.stored_as = TGI_STORED_LIGHT;
    c->meta.palette = NULL;
    c->meta.n_palette = c->meta.n_luts = c->meta.n_ranges = c->meta.mode = 0;
    c->meta.icc_bytes = 0;
    c->meta.ome_place.other_values = 1;
}

tg_status tgi_objects_need_label(const tgi_post_spec *s, const tg_opts *o, tgi_err *err)
{
    return tgi_opts_str(o, TGI_OPT_OBJECTS) && !tgi_post_gives_numbers(s)
               ? tgi_fail(err, TG_E_ARG,
                          "--objects lists what label numbers: --post threshold:X,label (or "
                          "stardist, "
                          "cellpose)")
               : TG_OK;
}

tg_status tgi_copy_add_post(tgi_copying *c, tgi_err *err)
{
    tgi_post_opts o = {.tick = tgi_copy_post_tick,
                       .user = c,
                       .volume = c->part && c->part->volume,
                       .n_threads = tgi_copy_encoders_of(c),
                       .objects = tgi_opts_str(c->opts, TGI_OPT_OBJECTS) != NULL,
                       .image = c->part ? c->part->image : NULL};
    tgi_source *source = NULL;
    (void)tgi_opts_post(c->opts, &o.spec);
    TGI_TRY(tgi_objects_need_label(&o.spec, c->opts, err));
    if (!o.spec.n)
        return TG_OK;
    TGI_TRY(choose_dtype(c, &o.spec, &o.dtype, err));
    TGI_TRY(check_pyramid(c, &o.spec, err));
    o.view = (tgi_post_view){.planes = c->planes,
                             .n_planes = c->n_planes,
                             .y = c->y,
                             .x = c->x,
                             .n_axes = c->n_axes};
    memcpy(o.view.axes, c->axes, sizeof o.view.axes);
    memcpy(o.view.shape, c->shape, sizeof o.view.shape);
    const size_t before = tgi_mem_held();
    TGI_TRY(tgi_post_open(c->source, &o, &source, err));
    c->source_bytes += tgi_mem_held() - before;
    c->n_channels = c->meta.n_channels;
    c->channel_name = c->meta.channel_name;
    if (tgi_post_network(&o.spec))
        drop_channels(c);
    follow_grid(&c->meta, tgi_post_grid(&o.spec));
    stand_in_front(c, source);
    return TG_OK;
}

/* The folder of --scratch, where it is a disk. */
static tg_status look_at_scratch(tgi_copying *c, tgi_err *err)
{
    tgi_scratch_place place;
    const char *folder = tgi_scratch_folder(c->opts, c->machine);
    c->post_folder = NULL;
    if (!folder)
        return TG_OK;
    TGI_TRY(tgi_scratch_look(folder, &place, err));
    c->post_folder = place.in_memory ? NULL : folder;
    return TG_OK;
}

/* Of blocks in RAM: all the room that there is; of a part of a job what the job took before, or a
 * few times the least. */
static size_t enough(const tgi_copying *c, uint64_t others, size_t least, size_t room)
{
    const uint64_t planned = c->part ? c->part->planned : 0;
    const uint64_t before = planned > others ? planned - others : 0;
    const uint64_t few = tgi_sat_mul(4, least);
    const uint64_t want = before > few ? before : few;
    return planned && want < room ? (size_t)want : room;
}

/* Sums of --objects, and what lies beside them. */
static size_t table_bytes(const tgi_copying *c, uint64_t room)
{
    const uint64_t sums = room / 8;
    if (!tgi_opts_str(c->opts, TGI_OPT_OBJECTS))
        return 0;
    return tgi_objects_rest(c->source) + (size_t)(sums < LEAST_SUMS  ? LEAST_SUMS
                                                  : sums > MOST_SUMS ? MOST_SUMS
                                                                     : sums);
}

/* Where nobody knows before what it takes: all the room that --ram gives, and without it what images take. */
static void choose_room(tgi_copying *c, size_t room)
{
    const size_t most = tgi_post_most(c->source);
    if (most <= room || !tgi_post_scratch(c->source))
        c->post_folder = NULL;
    const size_t least =
        c->post_folder ? tgi_post_least(c->source) : tgi_post_beside(c->source);
    const size_t want = most < room && !tgi_opts_given(c->opts, TGI_OPT_RAM) ? most : room;
    c->post_bytes = want > least ? want : least;
}

tg_status tgi_copy_choose_post(tgi_copying *c, uint64_t others, uint64_t budget, tgi_err *err)
{
    if (!c->post)
        return TG_OK;
    const size_t table = table_bytes(c, budget > others ? budget - others : 0);
    const uint64_t beside = tgi_sat_add(others, table);
    const uint64_t room = budget > beside ? budget - beside : 0;
    const size_t most = tgi_post_most(c->source), least = tgi_post_least(c->source);
    TGI_TRY(look_at_scratch(c, err));
    c->table_bytes = table;
    if (tgi_post_takes_room(c->source)) {
        choose_room(c, (size_t)room);
        return TG_OK;
    }
    c->post_bytes = most;
    if (most > room && c->post_folder)
        c->post_bytes = least > room ? least : enough(c, beside, least, (size_t)room);
    if (c->post_bytes >= most)
        c->post_folder = NULL;
    return TG_OK;
}

int tgi_copy_post_needs_scratch(const tgi_copying *c)
{
    return c->post && !c->post_folder && c->post_bytes > tgi_post_least(c->source);
}

uint64_t tgi_copy_post_scratch(const tgi_copying *c)
{
    return c->post ? tgi_post_scratch(c->source) : 0;
}

tg_status tgi_copy_begin_post(tgi_copying *c, tgi_err *err)
{
    return c->post ? tgi_post_settle(c->source, c->post_bytes, c->post_folder, err) : TG_OK;
}

tg_status tgi_copy_check_objects(const tgi_copying *c, int afresh, tgi_err *err)
{
    const char *path = tgi_opts_str(c->opts, TGI_OPT_OBJECTS);
    if (path)
        TGI_TRY(tgi_objects_place(path, err));
    return path && afresh && !tgi_opts_flag(c->opts, TGI_OPT_YES) && access(path, F_OK) == 0
               ? tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path)
               : TG_OK;
}

/* A run that goes on may find what it wrote itself. */
tg_status tgi_copy_write_objects(tgi_copying *c, int goes_on, tgi_err *err)
{
    const tgi_image_meta *m = &c->meta;
    const int other = c->part && c->part->image;
    const double size[3] = {tgi_size_in_x(m, 0), tgi_size_in_x(m, 1), tgi_size_in_x(m, 2)};
    const tgi_objects_opts o = {
        .post = c->source,
        .path = tgi_opts_str(c->opts, TGI_OPT_OBJECTS),
        .replace = tgi_opts_flag(c->opts, TGI_OPT_YES),
        .goes_on = goes_on,
        .bytes = c->table_bytes ? c->table_bytes - tgi_objects_rest(c->source) : 0,
        .physical = size,
        .unit = m->unit[2],
        .channel = other ? c->part->channel : c->channel_name,
        .channels = other ? c->part->n_channels : c->n_channels};
    const int made =
        c->part && c->part->info; /* all is there, and was written before it was sealed */
    if (!o.path || !c->post || made)
        return TG_OK;
    TGI_TRY(tgi_objects_write(&o, err));
    c->table = o.path;
    return TG_OK;
}

void tgi_copy_forget_objects(const tgi_copying *c, tg_status st)
{
    if (st == TG_E_FORMAT && c->changed && c->table)
        (void)unlink(c->table);
}
