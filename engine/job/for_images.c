/* for_images.c - see for_images.h. */
#include "engine/job/for_images.h"
#include "engine/ends/tensor_memory.h"
#include "engine/job/ends.h"
#include "engine/job/job_film.h"

#include <string.h>

/* What has to be there for an option to change anything. */
typedef enum need {
    AN_IMAGE_IN, /* --input IMAGE */
    IMAGES_OUT,  /* -o OUT.tif, or of an image -o DIR/ */
    ONE_IMAGE,   /* -o OUT.tif */
    A_FILM       /* -o OUT.mp4 */
} need;

static const struct {
    tgi_opt id;
    need of;
} for_images[] = {{TGI_OPT_ROI, AN_IMAGE_IN},      {TGI_OPT_PLANES, AN_IMAGE_IN},
                  {TGI_OPT_CHANNELS, AN_IMAGE_IN}, {TGI_OPT_C, AN_IMAGE_IN},
                  {TGI_OPT_Z, AN_IMAGE_IN},        {TGI_OPT_T, AN_IMAGE_IN},
                  {TGI_OPT_SERIES, AN_IMAGE_IN},   {TGI_OPT_LEVEL, AN_IMAGE_IN},
                  {TGI_OPT_RAW, AN_IMAGE_IN},      {TGI_OPT_FRAMES, AN_IMAGE_IN},
                  {TGI_OPT_START, AN_IMAGE_IN},    {TGI_OPT_END, AN_IMAGE_IN},
                  {TGI_OPT_WINDOW, AN_IMAGE_IN},   {TGI_OPT_PAD, AN_IMAGE_IN},
                  {TGI_OPT_COMPRESS, IMAGES_OUT},  {TGI_OPT_PYRAMID, ONE_IMAGE},
                  {TGI_OPT_CODEC, A_FILM},         {TGI_OPT_CRF, A_FILM},
                  {TGI_OPT_PIX_FMT, A_FILM},       {TGI_OPT_FPS, A_FILM},
                  {TGI_OPT_DROP_ALPHA, A_FILM},    {TGI_OPT_PRESET_SPEED, A_FILM},
                  {TGI_OPT_STRICT, A_FILM},        {TGI_OPT_ON, A_FILM}};
#define N_OPTIONS (sizeof for_images / sizeof for_images[0])

static const char *const why[] = {
    [AN_IMAGE_IN] = "is for images: an array goes to the network as it is (tegula copy "
                    "makes a TIFF of it)",
    [IMAGES_OUT] = "is for images: arrays are written as the network gives them",
    [ONE_IMAGE] = "is for one image, -o OUT.tif",
    [A_FILM] = "is for films, -o OUT.mp4, .mov, .mkv, .webm, .y4m or .raw"};

static int has(const tg_job *job, need of)
{
    const char *out = job->set.output;
    if (of == A_FILM)
        return !out || tgi_job_wants_film(job); /* a plan names none */
    if (job->ends->image_out || (of == AN_IMAGE_IN && job->source))
        return 1;
    return of == IMAGES_OUT && job->source && !tgi_memory_has_sinks(job->opts) &&
           (!out || tgi_names_folder(out)); /* a plan names none */
}

static const char *default_of(tgi_opt id)
{
    size_t n;
    const char *text = tgi_option_table(&n)[id].fallback;
    return text ? text : "none";
}

static int differs(const tg_job *job, tgi_opt id)
{
    return tgi_opts_given(job->opts, id) &&
           strcmp(tgi_opts_str(job->opts, id), default_of(id)) != 0;
}

tg_status tgi_for_images_check(const tg_job *job, tgi_err *err)
{
    size_t n;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const tgi_opt id = for_images[i].id;
        if (tgi_opts_asked(job->opts, id) && differs(job, id) && !has(job, for_images[i].of))
            return tgi_fail(err, TG_E_ARG, "--%s %s", tgi_option_table(&n)[id].name,
                            why[for_images[i].of]);
    }
    return TG_OK;
}

const char *tgi_for_images_idle(const tg_job *job, tgi_opt id)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (for_images[i].id == id && differs(job, id) && !has(job, for_images[i].of))
            return default_of(id);
    return NULL;
}
