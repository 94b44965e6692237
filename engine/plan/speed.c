/* speed.c - keys, sums, and the file of measured speeds. */
#include "engine/plan/speed.h"

#include "engine/memory/monitor_machine.h"
#include "io/text_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Convolutions of few channels reach another share of the peak than those of many. */
#define FEW_CHANNELS 24

/* ---- Keys and work ----------------------------------------------------------------------- */

static int is_conv(const tgi_variant *v)
{
    return v->work == TGI_WORK_CONV || v->work == TGI_WORK_CONV_FEW ||
           v->work == TGI_WORK_CONV_CLASSES;
}

/* 1x1 layers read a weight for each product, those of few channels are mostly overhead: classes
 * of their own. */
static const char *class_of(const tgi_net_node *n)
{
    const tgi_desc *w = &n->src[1];
    if (n->variant->work != TGI_WORK_CONV_CLASSES)
        return "";
    int64_t taps = 1;
    for (int i = 2; i < w->rank; i++)
        taps *= w->dim[i];
    const int few = n->src[0].dim[1] <= FEW_CHANNELS || n->dst[0].dim[1] <= FEW_CHANNELS;
    if (taps == 1)
        return few ? "/1x1/16" : "/1x1";
    return few ? "/16" : "";
}

static const char *const untuned[] = {"flat", "reference"};

void tgi_speed_key(const tgi_net_node *n, char *out, size_t size)
{
    if (n->flat || !n->variant)
        snprintf(out, size, "%s %s", untuned[n->flat ? 0 : 1], n->node->op->name);
    else
        snprintf(out, size, "%s %s%s", n->net->be->name, n->variant->name, class_of(n));
}

int tgi_speed_key_untuned(const char *key)
{
    const size_t n = strcspn(key, " ");
    for (size_t i = 0; i < sizeof untuned / sizeof untuned[0]; i++)
        if (strlen(untuned[i]) == n && memcmp(key, untuned[i], n) == 0)
            return 1;
    return 0;
}

static double elements(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (double)n : 0;
}

/* Channels that are there for each one of the network's: vectors are filled up. */
static double filled(const tgi_desc *d, int lanes)
{
    const int64_t c = d->dim[1];
    const int64_t blocks = lanes > 1 ? (c + lanes - 1) / lanes : 0;
    return blocks > 0 ? (double)(blocks * lanes) / (double)c : 1;
}

/* Of one pass over the whole image. */
static double bytes_moved(const tgi_net *net, const tgi_net_node *n)
{
    double sum = 0;
    for (int j = 0; j < n->n_operands; j++)
        for (int s = 0; s < n->operand[j].n_seg; s++) {
            const tgi_net_value *v = &net->values[n->operand[j].value[s]];
            sum += elements(&v->ext) * filled(&v->ext, v->cb);
        }
    for (int d = 0; d < n->ctx.n_dst; d++)
        sum += elements(&n->dst[d]) * filled(&n->dst[d], n->hint.dst_cb);
    return sum * (double)sizeof(float);
}

void tgi_speed_bytes_key(const tgi_net_node *n, char *out, size_t size)
{
    out[0] = 0;
    if (!n->flat && n->variant && is_conv(n->variant))
        snprintf(out, size, "%s bytes", n->net->be->name);
}

double tgi_speed_bytes(const tgi_tiling *t, int k)
{
    const double all = t->node_flops[2 * k], once = t->node_flops[2 * k + 1];
    return bytes_moved(t->net, tgi_stage_node(t->stage, k)) * (once > 0 ? all / once : 1);
}

/* Of an operator without a tuned kernel: its operations, and a step for each element that it
 * reads or writes. */
static double steps(const tgi_tiling *t, int k, const tgi_net_node *n)
{
    double sum = t->node_flops[2 * k];
    for (int j = 0; j < n->ctx.n_src; j++)
        sum += elements(&n->src[j]);
    for (int d = 0; d < n->ctx.n_dst; d++)
        sum += elements(&n->dst[d]);
    return sum;
}

double tgi_speed_work(const tgi_tiling *t, int k)
{
    const tgi_net_node *n = tgi_stage_node(t->stage, k);
    if (n->flat || !n->variant)
        return steps(t, k, n);
    if (n->variant && is_conv(n->variant))
        return t->node_flops[2 * k] * n->cost * filled(&n->dst[0], n->hint.dst_cb);
    if (n->variant && n->variant->work == TGI_WORK_ATTENTION)
        return t->node_flops[2 * k] * n->cost;
    return tgi_speed_bytes(t, k);
}

/* ---- Figures ----------------------------------------------------------------------------- */

void tgi_speed_set(tgi_speeds *s, const char *key, double one, double all)
{
    int i = 0;
    while (i < s->n_kernels && strcmp(s->kernel[i].key, key) != 0)
        i++;
    if (i == TGI_MAX_SPEEDS)
        return;
    if (i == s->n_kernels)
        s->n_kernels++;
    snprintf(s->kernel[i].key, sizeof s->kernel[i].key, "%s", key);
    s->kernel[i].one = one;
    s->kernel[i].all = all;
}

static const tgi_kernel_speed *find(const tgi_speeds *s, const char *key)
{
    for (int i = 0; i < s->n_kernels; i++)
        if (strcmp(s->kernel[i].key, key) == 0)
            return &s->kernel[i];
    return NULL;
}

static const tgi_kernel_speed *find_of(const tgi_speeds *s, const char *set, const char *kernel)
{
    char key[48];
    snprintf(key, sizeof key, "%s %s", set, kernel);
    return find(s, key);
}

/* Of a node's key, else of what is most like it: the same kernel without its class, convolutions of
 * few channels among themselves, attention and convolutions of many, and whatever moves numbers among
 * itself. */
static const tgi_kernel_speed *nearest(const tgi_speeds *s, const tgi_net_node *n)
{
    char key[48];
    tgi_speed_key(n, key, sizeof key);
    const tgi_kernel_speed *k = find(s, key);
    if (k)
        return k;
    if (n->flat || !n->variant)
        return find(s, untuned[n->flat ? 0 : 1]);
    const char *set = n->net->be->name;
    k = find_of(s, set, n->variant->name);
    if (!k && n->variant->work == TGI_WORK_BYTES)
        return find_of(s, set, "eltwise");
    if (!k && n->variant->work == TGI_WORK_CONV_FEW)
        k = find_of(s, set, "conv_few");
    return k ? k : find_of(s, set, "conv_direct");
}

/* Between one thread and all processors the rate is taken to grow evenly; more threads than
 * processors gain nothing. */
static double rate(const tgi_speeds *s, const tgi_kernel_speed *k, int threads)
{
    if (threads >= s->processors || s->processors < 2)
        return k->all;
    return k->one + (k->all - k->one) * (threads - 1) / (s->processors - 1);
}

double tgi_speed_both(double arithmetic, double memory)
{
    return sqrt(arithmetic * arithmetic + memory * memory);
}

double tgi_speed_alone(double both, double memory)
{
    return memory < both ? sqrt(both * both - memory * memory) : 0;
}

double tgi_speed_node(const tgi_speeds *s, const tgi_tiling *t, int k, int threads)
{
    char bytes[48];
    const tgi_net_node *n = tgi_stage_node(t->stage, k);
    const tgi_kernel_speed *speed = nearest(s, n);
    if (!speed || !(rate(s, speed, threads) > 0))
        return -1;
    const double seconds = tgi_speed_work(t, k) / rate(s, speed, threads);
    tgi_speed_bytes_key(n, bytes, sizeof bytes);
    const tgi_kernel_speed *memory = find(s, bytes);
    if (!memory || !(rate(s, memory, threads) > 0))
        return seconds;
    return tgi_speed_both(seconds, tgi_speed_bytes(t, k) / rate(s, memory, threads));
}

double tgi_speed_kernels(const tgi_speeds *s, const tgi_tiling *t, int threads)
{
    double sum = 0;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const double seconds = tgi_speed_node(s, t, k, threads);
        if (seconds < 0)
            return -1;
        sum += seconds;
    }
    return sum;
}

/* Measured of 320 and 1280 pixels a row, one of the network's bands each: processor seconds. */
#define SECONDS_OF_A_ROW 8e-6
/* Of a film: the library that codes it is loaded, encoders begin, and packets are joined. */
#define SECONDS_OF_A_FILM 0.1

static double of_rows(const tgi_speed_io *io)
{
    return SECONDS_OF_A_ROW * io->rows;
}

/* Of a film. Frames pass a decoder, the network and an encoder, which work at the same time: it takes what
 * the slowest of them takes, or what all take on the processors that there are. */
static double film_bands(const tgi_speeds *s, double kernels, double beside,
                         const tgi_speed_io *io, int threads)
{
    const int all = s->processors > 0 ? s->processors : 1;
    const int busy = threads < all ? threads : all;
    const double converting = 0.5 * (beside - io->decoding - io->encoding);
    const double shared = (kernels * (busy > 0 ? busy : 1) + beside) / all;
    const double slowest =
        fmax(kernels + converting,
             fmax(io->decoding, io->encoding / (io->encoders > 1 ? io->encoders : 1)));
    return fmax(shared, slowest);
}

double tgi_speed_job(const tgi_speeds *s, double kernels, const tgi_speed_io *io, int threads)
{
    const double beside = s->sample * (io->samples_in + io->samples_out) +
                          s->decode[io->in] * io->bytes_in +
                          s->encode[io->out] * (io->is_film ? 0 : io->bytes_out) +
                          io->decoding + io->encoding + of_rows(io);
    /* What is beside the kernels takes the processors that they leave, or takes turns. */
    const int spare = s->processors - threads;
    const double bands = io->decoding + io->encoding > 0
                             ? SECONDS_OF_A_FILM + film_bands(s, kernels, beside, io, threads)
                         : spare > 0 && beside / spare < kernels
                             ? kernels
                             : kernels + beside / (s->processors > 0 ? s->processors : 1);
    return s->fixed + s->clear * io->arena_bytes + s->statistics * io->samples_statistics +
           bands + s->finish * (io->is_film ? 0 : io->bytes_out);
}

/* ---- As JSON ----------------------------------------------------------------------------- */

static const char *const codec_name[TGI_CODEC_COUNT] = {"none", "deflate", "zstd", "lzw"};

static const struct {
    const char *name;
    size_t at;
} number[] = {{"clear_seconds_per_byte", offsetof(tgi_speeds, clear)},
              {"fixed_seconds", offsetof(tgi_speeds, fixed)},
              {"finish_seconds_per_byte", offsetof(tgi_speeds, finish)},
              {"statistics_seconds_per_sample", offsetof(tgi_speeds, statistics)},
              {"processor_seconds_per_sample", offsetof(tgi_speeds, sample)}};
#define N_NUMBERS (sizeof number / sizeof number[0])

static double *number_of(tgi_speeds *s, size_t i)
{
    return (double *)(void *)((char *)s + number[i].at);
}

static void write_codecs(tgi_jw *w, const char *key, const double *v)
{
    tgi_jw_begin(w, key, '{');
    for (int i = 0; i < TGI_CODEC_COUNT; i++)
        tgi_jw_num(w, codec_name[i], v[i]);
    tgi_jw_end(w, '}');
}

void tgi_speeds_write(tgi_jw *w, const tgi_speeds *s)
{
    tgi_speeds copy = *s;
    tgi_jw_str(w, "processor", s->processor);
    tgi_jw_int(w, "processors", s->processors);
    for (size_t i = 0; i < N_NUMBERS; i++)
        tgi_jw_num(w, number[i].name, *number_of(&copy, i));
    write_codecs(w, "decode_seconds_per_byte", s->decode);
    write_codecs(w, "encode_seconds_per_byte", s->encode);
    tgi_jw_begin(w, "kernels", '{');
    for (int i = 0; i < s->n_kernels; i++) {
        tgi_jw_begin(w, s->kernel[i].key, '[');
        tgi_jw_num(w, NULL, s->kernel[i].one);
        tgi_jw_num(w, NULL, s->kernel[i].all);
        tgi_jw_end(w, ']');
    }
    tgi_jw_end(w, '}');
}

static int positive(const tgi_json *v, double *out)
{
    return tgi_json_num(v, out) && *out >= 0 && *out <= 1e15;
}

static int read_codecs(const tgi_json *object, const char *key, double *v)
{
    const tgi_json *o = tgi_json_get(object, key);
    for (int i = 0; i < TGI_CODEC_COUNT; i++)
        if (!o || !positive(tgi_json_get(o, codec_name[i]), &v[i]))
            return 0;
    return 1;
}

static int read_kernels(const tgi_json *object, tgi_speeds *out)
{
    const tgi_json *all = tgi_json_get(object, "kernels");
    if (!tgi_json_is_object(all))
        return 0;
    for (const tgi_json *k = tgi_json_first(all); k; k = tgi_json_next(k)) {
        double one = 0, every = 0;
        const tgi_json *a = tgi_json_is_array(k) ? tgi_json_first(k) : NULL;
        if (!positive(a, &one) || !positive(tgi_json_next(a), &every))
            return 0;
        tgi_speed_set(out, tgi_json_key(k), one, every);
    }
    return 1;
}

tg_status tgi_speeds_read(const tgi_json *object, tgi_speeds *out, tgi_err *err)
{
    const char *text = NULL;
    int64_t n = 0;
    memset(out, 0, sizeof *out);
    int good = tgi_json_is_object(object) &&
               tgi_json_str(tgi_json_get(object, "processor"), &text) &&
               tgi_json_int(tgi_json_get(object, "processors"), &n) && n >= 1 && n <= 65536;
    for (size_t i = 0; good && i < N_NUMBERS; i++)
        good = positive(tgi_json_get(object, number[i].name), number_of(out, i));
    good = good && read_codecs(object, "decode_seconds_per_byte", out->decode) &&
           read_codecs(object, "encode_seconds_per_byte", out->encode) &&
           read_kernels(object, out);
    if (!good)
        return tgi_fail(err, TG_E_FORMAT, "these are no speeds that tegula calibrate wrote");
    snprintf(out->processor, sizeof out->processor, "%s", text);
    out->processors = (int)n;
    return TG_OK;
}

/* ---- The file ---------------------------------------------------------------------------- */

tg_status tgi_speeds_path(char *out, size_t size, tgi_err *err)
{
    return tgi_cache_path("calibration.json", out, size, err);
}

tg_status tgi_speeds_load(tgi_speeds *out, tgi_err *err)
{
    char path[1024];
    tgi_processors here;
    tgi_json *doc = NULL;
    TGI_TRY(tgi_speeds_path(path, sizeof path, err));
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = tgi_speeds_read(doc, out, err);
    tgi_json_free(&doc);
    if (st != TG_OK)
        return st;
    tgi_processors_read("", &here);
    if (strcmp(here.model, out->processor) != 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s was measured on another processor, %s", path,
                        out->processor);
    return TG_OK;
}
