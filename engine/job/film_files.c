/* film_files.c - a picture for each frame as a job's output: which they are, and the list of them (job_film.h). */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/inpaint/inpaint.h"
#include "engine/inpaint/pp_weights.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "engine/settings/opts_source.h"
#include "io/file_ops.h"
#include "io/numbered.h"

#include <stdio.h>
#include <string.h>

/* The number of the first one: that of the first file that is read, where its name has one; else 1. */
static int64_t first_number(const tg_job *job)
{
    tgi_numbered n;
    const char *file = tgi_source_file(job->source, job->set.input, 0);
    const int64_t number = file && tgi_numbered_find(job->set.input, &n)
                               ? tgi_number_of(job->set.input, file)
                               : -1;
    return number < 0 ? 1 : number;
}

/* Where numbers of the files have gaps: of each frame that of its file, if a file is a frame. */
static tg_status take_numbers(tg_job *job, int64_t frames, tgi_err *err)
{
    const char *in = job->set.input;
    const tgi_source *of = tgi_source_inmost(job->source);
    tgi_numbered n;
    int64_t *numbers, files = 0, next = first_number(job), gaps = 0;
    const char *file;
    for (int i = 0; i < 3; i++)
        if (tgi_opts_name_key(job->opts, i) || tgi_opts_pick(job->opts, i))
            return TG_OK;
    for (; tgi_numbered_find(in, &n) && (file = tgi_source_file(job->source, in, files));
         files++, next++)
        gaps += tgi_number_of(in, file) != next;
    if (!gaps || files != of->ops->info(of)->n_planes)
        return TG_OK;
    numbers = tgi_malloc(TGI_TAG_PLAN, (size_t)frames * sizeof *numbers);
    if (!numbers)
        return tgi_fail(err, TG_E_NOMEM, "no memory for numbers of %lld files",
                        (long long)files);
    job->film->numbers = numbers;
    for (int64_t k = 0; k < frames; k++) {
        numbers[k] =
            tgi_number_of(in, tgi_source_file(job->source, in, tgi_job_film_plane(job, k)));
        if (k && numbers[k] <= numbers[k - 1])
            return TG_OK;
    }
    job->film->files.numbers = numbers;
    return TG_OK;
}

tg_status tgi_job_film_files(tg_job *job, const tgi_film_frames *of, tgi_err *err)
{
    tgi_film_out *o = &job->film->out;
    tgi_frame_files *f = &job->film->files;
    const tg_opts *opts = job->opts;
    static const tgi_opt of_films[] = {TGI_OPT_PIX_FMT, TGI_OPT_FPS,          TGI_OPT_CRF,
                                       TGI_OPT_CODEC,   TGI_OPT_PRESET_SPEED, TGI_OPT_ON,
                                       TGI_OPT_STRICT};
    const char *odd = NULL;
    size_t n;
    for (size_t i = 0; i < sizeof of_films / sizeof of_films[0]; i++)
        if (tgi_opts_asked(opts, of_films[i]))
            odd = tgi_option_table(&n)[of_films[i]].name;
    if (odd)
        return tgi_fail(err, TG_E_ARG, "%s: --%s is for films, and these are pictures",
                        job->set.pictures, odd);
    *f = (tgi_frame_files){.pattern = job->set.pictures,
                           .first = first_number(job) + tgi_job_film_plane(job, 0) +
                                    tgi_film_source_first(job->source),
                           .frames = of->frames,
                           .writer = tgi_frame_writer_for(job->set.pictures),
                           .spec = {.height = of->height,
                                    .width = of->width,
                                    .samples = of->samples,
                                    .dtype = of->dtype,
                                    .axes = "YXS",
                                    .shape = {of->height, of->width, of->samples},
                                    .meta = &job->info->meta}};
    TGI_TRY(take_numbers(job, of->frames, err));
    tgi_err why = {0};
    const tg_status st = f->writer->may(&f->spec, &why);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s: %s", job->set.pictures, why.text);
    *o = (tgi_film_out){.container = "pictures",
                        .samples = of->samples,
                        .frames = of->frames,
                        .pictures = 1,
                        .coding = {.segment = 1}};
    o->frame_bytes = tgi_sat_mul(tgi_sat_mul((size_t)of->width, (size_t)of->height),
                                 (size_t)of->samples * tgi_dtype_size(of->dtype));
    o->bytes = tgi_sat_add(o->frame_bytes, f->writer->bytes(&f->spec));
    o->disk =
        1.05 * (double)o->frame_bytes * (double)of->frames / 2; /* counted twice: films are */
    snprintf(o->text, sizeof o->text, "a %s for each frame, %s %lld on", f->writer->name,
             f->numbers ? "numbered as the files that are read, from" : "from number",
             (long long)(f->numbers ? f->numbers[0] : f->first));
    return TG_OK;
}

/* Of an earlier run, which stopped, or had more frames: who takes the whole folder takes them, too. */
static void tell_of_others(tg_job *job)
{
    char least[256] = "";
    const int64_t n = tgi_frames_others(&job->film->files, least, sizeof least);
    if (n)
        tgi_job_warn(
            job,
            "%s: %lld picture%s of other numbers %s there already (%s%s) and stay%s: this "
            "run does not write them",
            job->set.pictures, (long long)n, n == 1 ? "" : "s", n == 1 ? "is" : "are", least,
            n == 1 ? "" : ", ...", n == 1 ? "s" : "");
}

static tg_status spare_weights(const tg_job *job, const tgi_frame_files *f, tgi_err *err)
{
    const char *folder = tgi_opts_str(job->opts, TGI_OPT_WEIGHTS);
    char path[4096];
    for (int i = 0; folder && i < 3; i++)
        if (tgi_pp_weights_path(folder, i, path, sizeof path))
            TGI_TRY(tgi_frames_spare(f, path, err));
    return TG_OK;
}

tg_status tgi_job_film_begin_files(tg_job *job, tgi_err *err)
{
    if (!job->film || !job->film->out.pictures)
        return TG_OK;
    const tgi_frame_files *f = &job->film->files;
    const char *file;
    for (int64_t i = 0; (file = tgi_source_file(job->source, job->set.input, i)); i++)
        TGI_TRY(tgi_frames_spare(f, file, err));
    TGI_TRY(spare_weights(job, f, err));
    static const tgi_opt others[] = {
        TGI_OPT_MODEL, TGI_OPT_STATS,  TGI_OPT_DESCRIPTOR, TGI_OPT_LOG,  TGI_OPT_PLOT,
        TGI_OPT_TRACE, TGI_OPT_CONFIG, TGI_OPT_MASK,       TGI_OPT_LIVE, TGI_OPT_PRESET};
    const tgi_masks *masks = tgi_inpaint_masks(job->source);
    tgi_held mask;
    for (int64_t i = 0; masks && tgi_masks_held(masks, i, &mask); i++)
        TGI_TRY(tgi_frames_spare(f, mask.path, err));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if ((file = tgi_opts_str(job->opts, others[i])))
            TGI_TRY(tgi_frames_spare(f, file, err));
    if (!job->set.overwrite)
        TGI_TRY(tgi_frames_are_new(f, err));
    tell_of_others(job);
    return TG_OK;
}

/* Bytes of the name in a line of the list, which may have blanks: four words stand behind it. */
static int name_in(const char *line)
{
    int n = (int)strlen(line);
    for (int words = 0; n > 0 && words < 4;)
        words += line[--n] == ' ';
    return n;
}

/* The list of the files, out of their records. */
tg_status tgi_job_film_list(const tg_job *job, const tgi_journal *packets, int fd,
                            const char *made, tgi_err *err)
{
    const tgi_frame_files *f = &job->film->files;
    uint8_t record[TGI_FRAME_RECORD];
    char line[4200];
    uint64_t at = 0;
    tg_status st = TG_OK;
    for (int64_t k = 0; st == TG_OK && k < f->frames; k++) {
        size_t n = 0;
        st = tgi_journal_read_tile(packets, k, record, sizeof record, &n, err);
        if (st == TG_OK)
            n = tgi_frame_line(f, k, record, line, sizeof line);
        if (st == TG_OK && !tgi_frame_is_there(f, k, record))
            st = tgi_fail(err, TG_E_EXISTS,
                          "%s: %.*s is gone, or of another size than it was written with: the "
                          "same command writes it again",
                          job->set.pictures, name_in(line), line);
        if (st == TG_OK)
            st = tgi_file_pwrite(fd, made, line, n, at, err);
        at += n;
    }
    return st;
}
