/* av_plugin.c - the table that libtegula_av.so gives. */
#include "io/av/av_heard.h"
#include "io/av/av_inside.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdio.h>

static const char *version(void)
{
    static char text[96];
    const unsigned f = avformat_version(), c = avcodec_version();
    snprintf(text, sizeof text, "libavformat %u.%u.%u, libavcodec %u.%u.%u", f >> 16,
             f >> 8 & 255, f & 255, c >> 16, c >> 8 & 255, c & 255);
    return text;
}

static const tgi_av_ops table = {.abi = TGI_AV_ABI,
                                 .version = version,
                                 .open = tgi_av_film_open,
                                 .info = tgi_av_film_info,
                                 .track = tgi_av_film_track,
                                 .word = tgi_av_film_word,
                                 .chapter = tgi_av_film_chapter,
                                 .time = tgi_av_film_time,
                                 .frame = tgi_av_film_frame,
                                 .refused = tgi_av_film_refused,
                                 .beside = tgi_av_film_beside,
                                 .close = tgi_av_film_close,
                                 .form_for = tgi_av_encoder_form,
                                 .forms = tgi_av_encoder_forms,
                                 .holds = tgi_av_encoder_fits,
                                 .encoder = tgi_av_encoder_open,
                                 .encoder_bytes = tgi_av_encoder_bytes,
                                 .encoder_words = tgi_av_encoder_words,
                                 .blank = tgi_av_encoder_blank,
                                 .give = tgi_av_encoder_give,
                                 .take = tgi_av_encoder_take,
                                 .encoder_close = tgi_av_encoder_close,
                                 .join = tgi_av_join_film,
                                 .join_look = tgi_av_join_look};

__attribute__((visibility("default"))) const tgi_av_ops *tgi_av_plugin(uint32_t abi);
const tgi_av_ops *tgi_av_plugin(uint32_t abi)
{
    tgi_av_hear();
    return abi == TGI_AV_ABI ? &table : NULL;
}
