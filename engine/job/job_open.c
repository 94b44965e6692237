/* job_open.c - options to a bound job: the model, the input's headers, the mapping. */
#include "engine/job/job_open.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/ends/tensor_memory.h"
#include "engine/ends/tensors.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/descriptor.h"
#include "engine/job/ends.h"
#include "engine/job/for_images.h"
#include "engine/job/go_on.h"
#include "engine/job/job_device.h"
#include "engine/job/job_film.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_graph.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_names.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_post.h"
#include "engine/job/job_settings.h"
#include "engine/job/job_standard.h"
#include "engine/job/job_state.h"
#include "engine/job/job_window.h"
#include "engine/job/norm_scope.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/plan_seconds.h"
#include "engine/job/stats_file.h"
#include "engine/settings/lent.h"
#include "engine/settings/opts_source.h"
#include "io/picked.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Settings ---------------------------------------------------------------------------- */

static tg_status copy_text(const char *text, char **out, tgi_err *err)
{
    *out = text ? tgi_strdup(TGI_TAG_MISC, text) : NULL;
    return *out || !text ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a path");
}

static tg_status required(const tg_opts *o, tgi_opt id, const char *what, char **out,
                          tgi_err *err)
{
    const char *v = tgi_opts_str(o, id);
    if (!v)
        return tgi_fail(err, TG_E_ARG, "%s is missing", what);
    return copy_text(v, out, err);
}

static tg_status pick_backend(const tg_opts *o, const tgi_machine *m, tgi_settings *s,
                              tgi_err *err)
{
    tgi_isa isa = m->isa, cap = TGI_ISA_COUNT;
    const char *name = tgi_opts_str(o, TGI_OPT_ISA);
    if (name && strcmp(name, "auto") != 0 && !tgi_isa_parse(name, &cap))
        return tgi_fail(err, TG_E_ARG, "--isa %s: unknown instruction set", name);
    s->isa_given = cap != TGI_ISA_COUNT;
    if (cap != TGI_ISA_COUNT)
        isa = cap;
    s->backend = tgi_backend_for(isa);
    if (!s->backend || !(m->sets >> isa & 1))
        return tgi_fail(err, TG_E_DEVICE, "%s or build has no %s kernels", m->name,
                        tgi_isa_name(isa));
    s->bf16 = tgi_opts_choice(o, TGI_OPT_PRECISION) == TGI_PRECISION_BF16;
    if (tgi_opts_choice(o, TGI_OPT_PRECISION) > TGI_PRECISION_BF16)
        return tgi_fail(err, TG_E_ARG,
                        "--precision %s is of training; a run knows fp32, fp16 and bf16",
                        tgi_opts_str(o, TGI_OPT_PRECISION));
    s->bf16_here = m->bf16 && isa == m->isa;
    s->tf32 = tgi_opts_flag(o, TGI_OPT_TF32);
    s->no_library = tgi_opts_flag(o, TGI_OPT_NO_CUBLAS);
    if (s->tf32 && s->exact)
        return tgi_fail(err, TG_E_ARG, "--exact and --tf32 exclude each other");
    if (s->tf32 && tgi_opts_choice(o, TGI_OPT_PRECISION) > TGI_PRECISION_FP32)
        return tgi_fail(err, TG_E_ARG, "--tf32 is of fp32: leave it out, or --precision %s",
                        tgi_opts_str(o, TGI_OPT_PRECISION));
    return TG_OK;
}

/* Which normalisation holds: the option, else the descriptor's, else none. */
static tg_status pick_normalisation(const tg_opts *o, tgi_settings *s, tgi_err *err)
{
    const tgi_descriptor *d = &s->descriptor;
    const char *text = tgi_opts_str(o, TGI_OPT_NORMALIZE);
    s->normalize_given = text || d->normalize[0] || s->card;
    s->bare = text && s->card;
    if (!text && s->card) {
        tgi_card_normalize(s->card, &s->normalize, s->normalize_text, sizeof s->normalize_text);
        return TG_OK;
    }
    if (!text)
        text = d->normalize[0] ? d->normalize : "none";
    if (strlen(text) >= sizeof s->normalize_text)
        return tgi_fail(err, TG_E_ARG, "the normalisation \"%.40s...\" is too long", text);
    snprintf(s->normalize_text, sizeof s->normalize_text, "%s", text);
    return tgi_normalize_parse(text, &s->normalize, err);
}

/* Output type, and whether values go back to the input's scale: a descriptor says so; without
 * one an integer output would be meaningless in normalised units, so it is mapped back. */
static void pick_output(const tg_opts *o, tgi_settings *s, tg_dtype input)
{
    tg_dtype asked = TG_DTYPE_NONE;
    const int given = tgi_opts_dtype(o, &asked);
    if (given)
        s->dtype = asked == TG_DTYPE_NONE ? input : asked;
    else
        s->dtype = s->descriptor.denormalize ? input
                   : s->descriptor.type      ? s->descriptor.type
                                             : TG_DTYPE_F32;
    if (s->dtype == TG_DTYPE_BOOL)
        s->dtype = TG_DTYPE_U8;
    s->invert =
        s->descriptor.denormalize || (!s->descriptor.present && !tgi_dtype_is_float(s->dtype));
}

static tg_status read_model(const tg_opts *o, tgi_settings *s, tgi_err *err)
{
    const char *preset = tgi_opts_str(o, TGI_OPT_PRESET);
    if (preset && strcmp(preset, "auto") == 0 && !tgi_job_inpaints(o))
        return tgi_fail(err, TG_E_ARG,
                        "--preset auto is of inpaint; tegula preset auto -m MODEL IMAGE finds "
                        "settings for a network and an image");
    if (tgi_job_inpaints(o) && tgi_opts_str(o, TGI_OPT_MODEL))
        return tgi_fail(
            err, TG_E_ARG,
            "masks are of tegula inpaint, a model is of tegula run: one of them, also "
            "in a job file");
    if (tgi_job_inpaints(o))
        return tgi_job_inpaint_settings(o, s, err);
    TGI_TRY(required(o, TGI_OPT_MODEL, "the model (-m MODEL.onnx)", &s->model, err));
    TGI_TRY(tgi_descriptor_load(s->model, o, &s->descriptor, err));
    return tgi_descriptor_card(s->model, o, &s->descriptor, &s->card, err);
}

const char *tgi_scratch_folder(const tg_opts *o, const tgi_machine *m)
{
    const char *folder = tgi_opts_str(o, TGI_OPT_SCRATCH);
    int in_memory = 0;
    uint64_t room = 0;
    if (!folder || strcmp(folder, "auto") != 0)
        return folder;
    folder = tgi_machine_temp(m, &in_memory, &room);
    return in_memory ? NULL : folder;
}

static tg_status read_settings(const tg_opts *o, const tgi_machine *m, tgi_settings *s,
                               tgi_err *err)
{
    TGI_TRY(read_model(o, s, err));
    const int sources = tgi_opts_lent(o, TGI_LENT_SOURCE, 0) != NULL;
    if (tgi_opts_str(o, TGI_OPT_INPUT) || (tgi_opts_n_tensors(o) == 0 && !sources))
        TGI_TRY(required(o, TGI_OPT_INPUT, "the input image", &s->input, err));
    TGI_TRY(copy_text(tgi_opts_str(o, TGI_OPT_OUTPUT), &s->output, err));
    TGI_TRY(copy_text(tgi_scratch_folder(o, m), &s->scratch, err));
    TGI_TRY(tgi_picture_choose(o, &s->writer, err));
    s->threads = (int)tgi_opts_int(o, TGI_OPT_THREADS, m->processors);
    tgi_opts_tile(o, &s->tile);
    tgi_opts_compress(o, &s->compress);
    s->pad = (tgi_pad_mode)tgi_opts_choice(o, TGI_OPT_PAD);
    s->raw_size = tgi_opts_flag(o, TGI_OPT_RAW_SIZE);
    if (s->raw_size && tgi_opts_flag(o, TGI_OPT_SAME_SIZE))
        return tgi_fail(err, TG_E_ARG, "--same-size and --raw-size exclude each other");
    s->overwrite = tgi_opts_flag(o, TGI_OPT_YES);
    s->exact = tgi_opts_flag(o, TGI_OPT_EXACT);
    s->labels = s->descriptor.labels || tgi_opts_flag(o, TGI_OPT_LABELS);
    if (s->labels && tgi_opts_pyramid(o) == TGI_PYRAMID_MEAN)
        return tgi_fail(err, TG_E_ARG,
                        "means of labels are no labels: --pyramid nearest, or leave it out");
    TGI_TRY(pick_normalisation(o, s, err));
    tgi_job_window_pick(o, s);
    TGI_TRY(tgi_job_state_pick(o, s, err));
    return pick_backend(o, m, s, err);
}

/* ---- Files ------------------------------------------------------------------------------- */

tg_status tgi_decode_refused(tg_status st, tgi_err *err)
{
    if (st != TG_E_BUDGET || !err || !err->asked_by ||
        strcmp(err->asked_by, TGI_HEADER_ASKS) != 0)
        return st;
    const uint64_t mib = (uint64_t)1 << 20, least = tgi_decode_needs(err->tried_bytes);
    const size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, ", %lluMiB or more",
             (unsigned long long)((least - 1) / mib + 1));
    return st;
}

static tg_status open_reader(tg_job *job, tgi_source **out, tgi_err *err)
{
    int among = 0;
    tgi_leave_out(job->set.input, job->set.output, &job->but);
    const size_t budget = tgi_machine_budget(&job->machine, job->opts, NULL);
    tgi_open_opts opts = {
        .threads = TGI_JOB_READERS,
        .but = job->but,
        .but_found = &among,
        .decode_budget = tgi_decode_budget(budget),
        .decoders = (int)tgi_opts_int(job->opts, TGI_OPT_THREADS, job->machine.processors),
        .budget = budget,
        .text_budget = tgi_text_budget(budget),
        .spare = job->spare,
        .stream = tgi_film_container(job->set.output) != NULL,
        .cancelled = tgi_cancel_signal,
        .on_bad = job->bad ? tgi_bad_tiles_note : NULL,
        .on_bad_arg = job->bad,
        .keep_bad = tgi_opts_choice(job->opts, TGI_OPT_ON_BAD_TILE) == 2,
        .truncated = tgi_opts_flag(job->opts, TGI_OPT_ALLOW_TRUNCATED),
        .surplus = &job->surplus};
    TGI_TRY(tgi_opts_source_check(job->opts, err));
    tgi_opts_source(job->opts, &opts);
    if (job->graph && job->graph->spatial == 2)
        tgi_opts_source_slices(job->opts, &opts);
    opts.pick.apart = tgi_job_sets_colours_apart(job);
    const tg_status st =
        tgi_decode_refused(tgi_source_open(job->set.input, &opts, out, err), err);
    if (!among) /* it lies elsewhere */
        job->but = NULL;
    return st;
}

static tg_status expect_planes(tg_job *job, tgi_source *source, tgi_err *err)
{
    return source->ops->expect && job->map.channel_stride > 0
               ? source->ops->expect(source, job->map.channels, job->map.channel_stride, err)
               : TG_OK;
}

/* Windows of frames, luma alone, or frames without what is removed: what the network gets. */
static tg_status shape_source(tg_job *job, tgi_err *err)
{
    if (tgi_job_inpaints(job->opts))
        return tgi_job_inpaint_open(job, open_reader, err);
    TGI_TRY(tgi_job_film_split(job, err));
    return tgi_job_window_open(job, &job->source, err);
}

static tg_status open_source(tg_job *job, tgi_err *err)
{
    if (tgi_opts_choice(job->opts, TGI_OPT_ON_BAD_TILE) > 0)
        TGI_TRY(tgi_bad_tiles_new(job->set.output ? job->set.output : "", &job->bad, err));
    const size_t before = tgi_mem_held();
    TGI_TRY(open_reader(job, &job->source, err));
    TGI_TRY(shape_source(job, err));
    job->source_bytes = tgi_mem_held() - before;
    TGI_TRY(tgi_job_gate(job, err));
    job->info = job->source->ops->info(job->source);
    TGI_TRY(tgi_job_film_check_input(job, err));
    tgi_job_tell_input(job);
    return TG_OK;
}

/* The same image: what was planned of the one holds for the other. */
static int same_image(const tgi_source *a, const tgi_source *b)
{
    const tgi_image_info *i = a->ops->info(a), *k = b->ops->info(b);
    tgi_held f, g;
    for (int64_t n = 0;; n++) {
        const int more = tgi_source_held(a, n, &f);
        if (more != tgi_source_held(b, n, &g))
            return 0;
        if (!more)
            break;
        if (!tgi_stamp_same_file(&f.was, &g.was) || !tgi_stamp_same_state(&f.was, &g.was))
            return 0;
    }
    return i->dtype == k->dtype && strcmp(i->axes, k->axes) == 0 &&
           memcmp(i->shape, k->shape, (size_t)i->n_axes * sizeof *i->shape) == 0;
}

int tgi_job_spare_source(tg_job *job)
{
    tgi_source *least = NULL;
    tgi_err ignored = {0};
    if (tgi_inpaint_is(job->source))
        return tgi_inpaint_shrink(job->source);
    if (job->spare || !job->source || job->set.window > 1 ||
        tgi_film_source_is_stream(job->source))
        return 0;
    job->spare = 1;
    const size_t before = tgi_mem_held(), was = job->source->ops->codec_bytes(job->source);
    tg_status st = open_reader(job, &least, &ignored);
    if (st == TG_OK)
        st = tgi_job_planes_again(job, &least, &ignored);
    if (st == TG_OK)
        st = expect_planes(job, least, &ignored);
    if (st == TG_OK && !same_image(job->source, least))
        st = TG_E_CHANGED;
    if (st == TG_OK && least->ops->codec_bytes(least) < was && job->in_turn.n)
        st = tgi_job_planes_in_turn(job, least->ops->info(least), &ignored);
    if (st != TG_OK || least->ops->codec_bytes(least) >= was) {
        if (least)
            tgi_source_close(&least);
        return 0;
    }
    job->source_bytes = tgi_mem_held() - before;
    tgi_source_close(&job->source);
    job->source = least;
    job->info = least->ops->info(least);
    return 1;
}

/* Outputs that an image leaves out, and that are not handed from frame to frame. */
static int others_of(const tgi_graph *g)
{
    int n = g->n_out - 1;
    for (int o = 1; o < g->n_out; o++)
        n -= tgi_graph_is_carried(g, o);
    return n;
}

/* As the file has them: one that is handed on as well is listed again (tgi_graph_tie). */
static int outputs_of(const tgi_graph *g)
{
    int n = 0;
    for (int o = 0; o < g->n_out; o++) {
        int k = 0;
        while (k < o && strcmp(g->out[k].name, g->out[o].name) != 0)
            k++;
        n += k == o;
    }
    return n;
}

int tgi_job_is_one_image(const tg_job *job)
{
    const tgi_graph *g = job->graph;
    return g && job->source && others_of(g) == 0 && tgi_output_is_image(g, 0, &job->out_desc);
}

static const char as_given[] = "arrays are written as the network gives them";

/* What the job writes: an image, with the axes of the input, or arrays. */
static tg_status bind_output(tg_job *job, tgi_err *err)
{
    char text[96];
    const tgi_graph *g = job->graph;
    const int image = tgi_output_is_image(g, 0, &job->out_desc),
              arrays = tgi_names_arrays(job->set.output) || tgi_memory_has_sinks(job->opts);
    if (arrays)
        TGI_TRY(tgi_job_post_check(job, err));
    if (arrays && tgi_job_hands_on(job))
        return tgi_fail(err, TG_E_ARG,
                        "--state and --constant are of frames in their order: write an image "
                        "or a film, no arrays");
    if (arrays || (!image && !job->set.output))
        job->ends = &tgi_array_ends;
    const int tiled = job->ends->image_out;
    if (!image && tiled)
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "the network's output \"%s\" is %s, which is no image: give -o OUT.npy, "
            "or -o DIR/ for a file for each output",
            g->out[0].name, tgi_desc_text(&job->out_desc, text, sizeof text));
    for (int k = 0; k < 3 && !image; k++)
        if (job->map.fit[k].size != job->map.extent[k])
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "the network takes %lld pixels where the image has %lld, and its "
                            "output is no image that padding could be cropped from: give an "
                            "image of a size it takes, or choose --roi; images are not resized",
                            (long long)job->map.fit[k].size, (long long)job->map.extent[k]);
    if (!tiled && tgi_mapping_boxed(&job->map))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s; in boxes an image is written, no arrays: give -o OUT.tif",
                        job->set.norm_tiles
                            ? "--norm-scope tile runs the network in boxes"
                            : "the network works at one size, smaller than the image");
    TGI_TRY(tgi_for_images_check(job, err));
    if (!image)
        return TG_OK;
    tg_dtype asked = TG_DTYPE_NONE;
    if (!tiled && tgi_opts_dtype(job->opts, &asked) && asked != TG_DTYPE_F32)
        return tgi_fail(err, TG_E_ARG, "--dtype is for images: %s", as_given);
    if (tiled && others_of(g) > 0 && job->set.output)
        tgi_job_warn(job,
                     "the network has %d outputs; \"%.60s\" is written: -o DIR/ writes a file "
                     "for each",
                     outputs_of(g), g->out[0].name);
    return tgi_mapping_output(&job->map, job->info, &job->in_desc, &job->out_desc, err);
}

/* Numbers of channels, made here (--labels) or by the network itself, are of no scale, and
 * small integers hold them. */
static tg_status type_labels(tg_job *job, const tgi_shapes *s, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    const int made_by = g->values[g->out[0].value].producer;
    const tgi_node *n = made_by >= 0 ? &g->nodes[made_by] : NULL;
    tg_dtype asked;
    double lo, hi;
    if (!n || (strcmp(n->op->name, "ArgMax") != 0 && strcmp(n->op->name, "ArgMin") != 0) ||
        !tgi_is_image(g, &job->out_desc))
        return TG_OK;
    const int64_t channels = s->desc[n->src[0]].dim[1];
    job->set.invert = 0;
    if (!tgi_opts_dtype(job->opts, &asked))
        job->set.dtype = channels <= 256     ? TG_DTYPE_U8
                         : channels <= 65536 ? TG_DTYPE_U16
                                             : TG_DTYPE_F32;
    tgi_dtype_range(job->set.dtype, &lo, &hi);
    if (!tgi_dtype_is_float(job->set.dtype) && (double)(channels - 1) > hi)
        return tgi_fail(err, TG_E_ARG, "%s does not hold the numbers of %lld channels",
                        tgi_dtype_name(job->set.dtype), (long long)channels);
    return TG_OK;
}

/* A network that says what its output is, masks and integers of up to 16 bits: no scale of the
 * input's is put on them, and they are written as what they are. */
static void type_integers(tg_job *job)
{
    const tg_dtype d = job->graph->out[0].file_dtype;
    tg_dtype asked;
    if (d != TG_DTYPE_BOOL && d != TG_DTYPE_U8 && d != TG_DTYPE_I8 && d != TG_DTYPE_U16 &&
        d != TG_DTYPE_I16)
        return;
    job->set.invert = 0;
    if (!tgi_opts_dtype(job->opts, &asked) ||
        job->post) /* float32 is asked for in front of --post */
        job->set.dtype = d == TG_DTYPE_BOOL ? TG_DTYPE_U8 : d;
}

/* A network of one size that looks at all of it sees what a smaller image is padded with. */
static void warn_of_padding(tg_job *job)
{
    for (int k = 0; k < 3; k++) {
        const tgi_fit *f = &job->map.fit[k];
        if (tgi_graph_fixed_extent(job->graph, k) && f->place.step_in == 0 &&
            f->size > job->map.extent[k]) {
            tgi_job_warn(
                job,
                "the image has %lld pixels where the network takes %lld and looks at all "
                "of them: it is padded, and what is padded counts too",
                (long long)job->map.extent[k], (long long)f->size);
            return;
        }
    }
}

/* Samples that the network does not take. Of pictures that become a film, or of a film that becomes pictures, alpha
 * is left out only if somebody says so. */
static tg_status tell_left_out(tg_job *job, tgi_err *err)
{
    const int is_alpha = job->info->meta.alpha != 0;
    if (!job->map.left_out)
        return TG_OK;
    if (is_alpha && tgi_job_wants_film(job) && !tgi_opts_flag(job->opts, TGI_OPT_DROP_ALPHA))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s: the network takes %lld channels, and alpha passes by it only from "
                        "film to film "
                        "(.mkv with --codec ffv1, .mov with --codec prores): give "
                        "--drop-alpha, and it is left "
                        "out",
                        job->set.input, (long long)job->map.channels);
    tgi_job_warn(job,
                 "%s of the image is left out: the network takes %lld channels, and there "
                 "is none in the output",
                 is_alpha ? "alpha" : "what follows the colours", (long long)job->map.channels);
    return TG_OK;
}

/* Shapes of the network at the job's size, and the mapping of axes. */
static tg_status bind_image(tg_job *job, tgi_err *err)
{
    tgi_roi_spec roi;
    tgi_planes_spec planes;
    const int has_roi = tgi_opts_roi(job->opts, &roi);
    if (has_roi && job->graph->spatial == 2) /* slices were chosen when the image was opened */
        roi.ax[0] = (tgi_range){0, TGI_ROI_OPEN};
    tgi_opts_planes(job->opts, &planes);
    if (job->graph->n_in != 1 && !job->set.n_ties)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "the network takes %d inputs; an image feeds one: give .npy arrays, or "
                        "--state OUT=IN for what it hands from frame to frame",
                        job->graph->n_in);
    tgi_mapping_opts how = {.roi = has_roi ? &roi : NULL,
                            .planes = &planes,
                            .pad = job->set.pad,
                            .same_size = !job->set.raw_size,
                            .stats_by_channel = job->set.normalize.by_channel,
                            .stats_by_item = job->set.normalize.by_item,
                            .appended = job->set.appended};
    if (job->set.card && job->set.card->in[0].n_names) {
        how.channel_name = job->set.card->in[0].channel_name;
        how.n_names = job->set.card->in[0].n_names;
    }
    if (tgi_opts_pick(job->opts, 0))
        how.choice.at = tgi_picked_choice(job->source, &how.choice.n, &how.choice.of);
    how.choice.text = how.choice.at ? tgi_opts_pick(job->opts, 0) : NULL;
    TGI_TRY(tgi_norm_scope_ask(job, &how, err));
    tgi_err e = {0};
    int again = 0;
    tg_status st = tgi_mapping_input(job->graph, job->info, &how, &job->map, &job->in_desc, &e);
    if (st == TG_OK)
        st = tgi_job_planes_pick(job, &again, &e);
    if (st == TG_OK && again) {
        how.planes = NULL;
        st = tgi_mapping_input(job->graph, job->info, &how, &job->map, &job->in_desc, &e);
    }
    if (st != TG_OK) { /* of a network that works at one size the file is to be named */
        tgi_fail(err, st, "%s%s%s", job->graph->fixed_size ? job->set.model : "",
                 job->graph->fixed_size ? ": " : "", e.text);
        return e.try_option ? tgi_err_try(err, st, e.try_option, e.try_value) : st;
    }
    tgi_norm_scope_note(job, &how);
    tgi_job_warn_of_names(job, &how);
    if (job->set.card && tgi_card_measures_all(job->set.card) && job->map.n_items > 1)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "what the description does behind the network measures the results of "
                        "all planes or volumes together, and here each is measured by itself: "
                        "choose one with --planes");
    tgi_job_window_map(job);
    TGI_TRY(tell_left_out(job, err));
    const size_t before = tgi_mem_held();
    TGI_TRY(expect_planes(job, job->source, err));
    job->source_bytes += tgi_mem_held() - before; /* or less than it was */
    tgi_shapes shapes = {0};
    tgi_job_state_shapes(job, job->in_descs);
    TGI_TRY(tgi_graph_infer(job->graph, job->in_descs, &shapes, err));
    job->out_desc = shapes.desc[job->graph->out[0].value];
    warn_of_padding(job);
    type_integers(job);
    tg_status bound = type_labels(job, &shapes, err);
    if (bound == TG_OK)
        bound = tgi_job_state_bind(job, &shapes, err);
    tgi_shapes_free(&shapes);
    TGI_TRY(bound);
    TGI_TRY(bind_output(job, err));
    return tgi_job_state_check(job, err);
}

/* What the file says of its pixels, and the network is not told. */
static void warn_of_form(tg_job *job)
{
    const tgi_image_info *i = job->info;
    if (i->meta.orientation > 1)
        tgi_job_warn(job,
                     "the file says orientation %d; pixels are read and written as stored, not "
                     "turned",
                     i->meta.orientation);
    if (i->meta.stored_as && strcmp(i->flavor, "imagej") != 0)
        tgi_job_warn(job, "the pixels are stored as %s and go to the network as they are",
                     tgi_stored_name(i->meta.stored_as));
}

/* Who asks for half precision by name gets it, also where the network's author says that it
 * would not do: to see what it costs, he must. */
static void warn_of_precision(tg_job *job)
{
    const int asked = tgi_opts_choice(job->opts, TGI_OPT_PRECISION);
    if (job->set.descriptor.fp32_only &&
        (asked == TGI_PRECISION_FP16 || asked == TGI_PRECISION_BF16))
        tgi_job_warn(
            job,
            "the descriptor says that this network needs fp32; --precision %s is taken "
            "all the same: tegula verify says what it costs",
            tgi_opts_str(job->opts, TGI_OPT_PRECISION));
}

/* Films of 9 bits and more are numbers up to 65535 here, and a scale of 1/255 is of those that are not. */
static void warn_of_scale(tg_job *job)
{
    const tgi_normalize_spec *n = &job->set.normalize;
    if (strcmp(job->info->format, "film") != 0 || job->info->dtype != TG_DTYPE_U16 ||
        n->kind != TGI_NORM_SCALE || n->a * 65535 + n->b < 16 || n->a * 255 + n->b > 16)
        return;
    tgi_job_warn(
        job,
        "%s: its frames have more than 8 bits, so numbers of 0 to 65535 here: --normalize %s "
        "makes up to %.4g of them, and scale:1/65535,0 up to 1",
        job->set.input, job->set.normalize_text, n->a * 65535 + n->b);
}

static tg_status bind(tg_job *job, const tg_opts *o, tgi_err *err)
{
    tg_dtype asked = TG_DTYPE_NONE;
    TGI_TRY(tgi_opts_keep_pipes(o, err)); /* a refusal asks them again */
    TGI_TRY(tgi_opts_new(&job->opts, err));
    TGI_TRY(tgi_opts_copy(job->opts, o, err));
    TGI_TRY(tgi_machine_of(job->opts, &job->machine, err));
    tgi_machine_text(&job->machine, job->machine_text, sizeof job->machine_text);
    TGI_TRY(tgi_job_post_open(job, err));
    TGI_TRY(read_settings(job->opts, &job->machine, &job->set, err));
    warn_of_precision(job);
    if (*tgi_opts_lowered(o))
        tgi_job_warn(job, "--allow-lower-quality: %s", tgi_opts_lowered(o));
    if (job->set.scratch)
        TGI_TRY(tgi_job_look_at_scratch(job, err));
    if (!tgi_job_inpaints(o))
        TGI_TRY(tgi_job_graph_load(job, err));
    const int arrays = tgi_opts_n_tensors(job->opts) > 0 ||
                       tgi_opts_lent(job->opts, TGI_LENT_SOURCE, 0) ||
                       (tgi_names_npy(job->set.input) && !tgi_source_is_set(job->set.input));
    job->ends = arrays                    ? &tgi_array_ends
                : tgi_job_wants_pipe(job) ? &tgi_pipe_ends
                                          : &tgi_tile_ends;
    if (arrays && tgi_job_hands_on(job))
        return tgi_fail(err, TG_E_ARG,
                        "--state and --constant are of frames, and arrays go in");
    if (arrays && tgi_job_wants_pipe(job))
        return tgi_fail(err, TG_E_ARG,
                        "-o -: arrays go in, and a film goes through standard output");
    if (arrays && tgi_opts_flag(job->opts, TGI_OPT_SAME_SIZE))
        return tgi_fail(err, TG_E_ARG,
                        "--same-size pads images; an array goes to the network as it is");
    TGI_TRY(tgi_check_output_name(job->set.output, 0, err));
    TGI_TRY(tgi_job_standard_check(job, err));
    TGI_TRY(tgi_job_film_name_files(job, err));
    if (job->set.output && tgi_memory_has_sinks(job->opts))
        return tgi_fail(err, TG_E_ARG,
                        "the job has a sink and an output file: %s; it writes no files",
                        job->set.output);
    if (arrays && tgi_opts_dtype(job->opts, &asked) && asked != TG_DTYPE_F32)
        return tgi_fail(err, TG_E_ARG, "--dtype is for images: %s", as_given);
    TGI_TRY(tgi_job_stats_check(job, arrays, err));
    if (arrays)
        TGI_TRY(tgi_norm_scope_check_arrays(job, err));
    if (arrays && job->set.normalize.kind == TGI_NORM_CHAIN)
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "the description normalises images by their own numbers, and an array "
            "goes to the network as it is: give an image, or --normalize none for an "
            "array that was normalised before");
    if (job->graph)
        TGI_TRY(tgi_memory_check_names(job->opts, job->graph, err));
    if (arrays && !job->graph)
        return tgi_fail(err, TG_E_ARG,
                        "something is removed from films and pictures, no arrays");
    if (arrays) {
        TGI_TRY(tgi_for_images_check(job, err));
        TGI_TRY(tgi_tensors_check(job->opts, job->graph, job->set.input, err));
        return tgi_job_gate(job, err); /* they are opened by the plan */
    }
    TGI_TRY(open_source(job, err));
    if (tgi_film_source_is_stream(job->source))
        job->ends = &tgi_pipe_ends;
    TGI_TRY(tgi_job_film_check_stream(job, err));
    pick_output(job->opts, &job->set, job->info->dtype);
    if (tgi_inpaint_is(job->source)) { /* pixels stay what they are */
        job->set.dtype = job->info->dtype;
        job->set.normalize_given = 1;
    }
    warn_of_scale(job);
    const int as_declared = job->graph->in[0].file_dtype == job->info->dtype;
    if (!tgi_dtype_is_float(job->info->dtype) && !job->set.normalize_given && !as_declared) {
        double lo, hi;
        tgi_dtype_range(job->info->dtype, &lo, &hi);
        tgi_job_warn(job,
                     "the pixels are %s (%.0f to %.0f) and go to the network as they are: no "
                     "descriptor and no --normalize says what it expects",
                     tgi_dtype_name(job->info->dtype), lo, hi);
    }
    warn_of_form(job);
    if (job->set.card && job->set.card->planned)
        tgi_job_plans_bind(job);
    TGI_TRY(tgi_job_post_check(job, err));
    return bind_image(job, err);
}

size_t tgi_job_process_bytes(tg_job *job)
{
    /* The source's bytes are a part of the plan of their own, as `codec_bytes` tells them. */
    const size_t codec = job->source ? job->source->ops->codec_bytes(job->source) : 0;
    const size_t source = job->source_bytes < codec ? job->source_bytes : codec;
    const size_t now = tgi_mem_held(), others = tgi_sat_add(job->known.others_bytes, source);
    const size_t held = now > others ? now - others : 0;
    if (job->known.program_bytes)
        return tgi_machine_process_of(job->known.program_bytes, held);
    if (job->goes_on && job->planned_held)
        return tgi_machine_process_of(job->program_bytes, job->planned_held);
    job->planned_held = held;
    if (job->program_measured)
        return tgi_machine_process_of(job->program_bytes, held);
    job->program_measured = 1;
    return tgi_machine_process(&job->machine, held, &job->program_bytes, &job->program_more);
}

tg_status tgi_job_needs_here(const tg_job *job, const char *act, tgi_err *err)
{
    if (job->machine.here)
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "--machine %s is for planning: a job can %s only on the machine it is "
                    "started on",
                    job->machine.name, act);
}

tg_status tgi_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out, tgi_err *err)
{
    tg_job *job = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *job);
    if (!job)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a job");
    job->held_before = tgi_mem_held() - sizeof *job;
    job->ctx = ctx;
    const tg_status st = bind(job, o, err);
    if (st != TG_OK) {
        tgi_job_close(&job);
        return st;
    }
    *out = job;
    return TG_OK;
}

static void free_plan(tgi_plan_part *p)
{
    tgi_choice_free(&p->choice);
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
    tgi_sink_layout_free(&p->layout);
    memset(p, 0, sizeof *p);
}

void tgi_job_close(tg_job **jobp)
{
    if (!jobp || !*jobp)
        return;
    tg_job *job = *jobp;
    free_plan(&job->plan);
    tgi_job_film_free(job);
    tgi_job_device_close(job);
    tgi_tensors_close(&job->tensors);
    if (job->source)
        tgi_source_close(&job->source);
    tgi_bad_tiles_free(&job->bad);
    tgi_in_turn_free(&job->in_turn);
    tgi_job_graph_leave(job);
    tgi_job_post_free(job);
    tgi_opts_free(&job->opts);
    tgi_free(job->settings);
    tgi_free(job->given);
    tgi_free(job->lessons);
    tgi_job_learn_drop(job);
    tgi_card_free(&job->set.card);
    tgi_free(job->set.model);
    tgi_free(job->set.input);
    tgi_free(job->set.output);
    tgi_free(job->set.pictures);
    tgi_free(job->set.scratch);
    tgi_free(job->set.save_frames);
    tgi_free(job->set.stays_for);
    tgi_free(job);
    *jobp = NULL;
}

const char *tgi_surplus_text(enum tgi_surplus bit)
{
    return bit == TGI_SURPLUS_DATA
               ? "blocks of it hold far more data than pixels: what lies behind the pixels was "
                 "not read, and may be damaged"
               : "behind its pixels stands what belongs before them (transparency, a colour "
                 "profile, a resolution or Exif), and is passed over";
}

void tgi_job_warn_of_surplus(tg_job *job)
{
    const int found = atomic_exchange(&job->surplus, 0);
    for (int bit = 1; bit <= found; bit *= 2)
        if (found & bit)
            tgi_job_warn(job, "%s: %s", job->set.input, tgi_surplus_text(bit));
}

void tgi_job_warn(tg_job *job, const char *fmt, ...)
{
    char text[sizeof job->warning[0]];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (job->n_warnings < (int)(sizeof job->warning / sizeof job->warning[0]))
        memcpy(job->warning[job->n_warnings++], text, sizeof text);
    tgi_ctx_log(job->ctx, TG_LOG_WARN, "%s", text);
}

void tgi_job_turn(const tg_job *job, const tgi_stats *sets, int64_t item, tgi_loader *loader,
                  tgi_affine *out)
{
    const tgi_normalize_spec *norm = &job->set.normalize;
    const tgi_mapping *m = &job->map;
    tgi_affine in = {.mul = 1};
    *out = in;
    if (sets) {
        sets += tgi_mapping_stats_of(m, item);
        in = tgi_stats_affine(norm, sets, 0);
    }
    if (sets && job->set.invert && in.mul != 0)
        *out = (tgi_affine){.mul = 1 / in.mul, .add = -in.add / in.mul};
    if (sets && norm->has_back)
        *out = tgi_stats_back(norm, sets);
    if (!loader)
        return;
    tgi_loader_item(loader, item, in);
    for (int64_t c = 0; sets && norm->kind == TGI_NORM_CHAIN && c < m->channels; c++)
        tgi_loader_channel(loader, c,
                           tgi_stats_affine(norm, sets + (m->stats_each > 1 ? c : 0), c));
}
