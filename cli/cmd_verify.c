/* cmd_verify.c - tegula verify: tiled against whole, on the user's own file.
 *
 * A difference is our bug (promise 2) and ends in exit 70, after the numbers were printed. */
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put_flag(const char *key, int on)
{
    cli_json_key(stdout, key);
    fputs(on ? "true" : "false", stdout);
}

static void put_range(double lo, double hi)
{
    cli_json_key(stdout, "output_range");
    putchar('[');
    cli_json_number(stdout, lo);
    putchar(',');
    cli_json_number(stdout, hi);
    putchar(']');
}

/* The same members as of the event, of one output. */
static void put_output(const tg_verify_output *o, int device)
{
    fputs("{\"name\":", stdout);
    cli_json_string(stdout, o->name);
    cli_json_real(stdout, "max_abs_difference", o->max_abs_difference);
    put_range(o->min, o->max);
    cli_json_real(stdout, "relative_l2", o->relative_l2);
    put_flag("bit_equal", o->bit_equal);
    cli_json_real(stdout, "reference_max_abs_difference", o->reference_max_abs);
    cli_json_real(stdout, "reference_relative_l2", o->reference_relative_l2);
    cli_json_real(stdout, "reference_psnr", o->reference_psnr);
    if (device) {
        cli_json_real(stdout, "device_max_abs_difference", o->device_max_abs);
        cli_json_real(stdout, "device_relative_l2", o->device_relative_l2);
        cli_json_real(stdout, "device_psnr", o->device_psnr);
        put_flag("device_bit_equal", o->device_bit_equal);
        cli_json_int(stdout, "device_nonfinite", o->device_nonfinite);
    }
    putchar('}');
}

static void print_event(const tg_verify_result *r)
{
    fputs("{\"event\":\"verify\"", stdout);
    cli_json_real(stdout, "max_abs_difference", r->max_abs_difference);
    put_range(r->output_min, r->output_max);
    cli_json_real(stdout, "relative_l2", r->relative_l2);
    put_flag("bit_equal", r->bit_equal);
    cli_json_int(stdout, "tiles", r->tiles);
    if (r->stages)
        cli_json_int(stdout, "stages", r->stages);
    if (r->not_tiled[0])
        cli_json_text(stdout, "not_tiled", r->not_tiled);
    cli_json_real(stdout, "reference_max_abs_difference", r->reference_max_abs);
    cli_json_real(stdout, "reference_relative_l2", r->reference_relative_l2);
    cli_json_real(stdout, "reference_psnr", r->reference_psnr);
    if (r->device[0]) {
        cli_json_text(stdout, "device", r->device);
        cli_json_text(stdout, "device_precision", r->device_precision);
        cli_json_real(stdout, "device_max_abs_difference", r->device_max_abs);
        cli_json_real(stdout, "device_relative_l2", r->device_relative_l2);
        cli_json_real(stdout, "device_psnr", r->device_psnr);
        put_flag("device_bit_equal", r->device_bit_equal);
        cli_json_int(stdout, "device_tiles", r->device_tiles);
    }
    cli_json_int(stdout, "items", r->items);
    cli_json_key(stdout, "outputs");
    for (size_t o = 0; o < r->n_outputs; o++) {
        putchar(o ? ',' : '[');
        put_output(&r->outputs[o], r->device[0] != 0);
    }
    fputs(r->n_outputs ? "]}\n" : "[]}\n", stdout);
}

/* Which output a line is about, where there are several. */
static void put_name(const tg_verify_result *r, const tg_verify_output *o)
{
    if (r->n_outputs < 2)
        return;
    putchar('"');
    cli_put_clean(stdout, o->name);
    fputs("\": ", stdout);
}

static void put_distance(double most, double relative, double psnr)
{
    printf("at most %.3g, relative L2 %.3g, ", most, relative);
    if (isnan(psnr))
        fputs("PSNR unknown", stdout);
    else
        printf("PSNR %.1f dB", psnr);
}

static void print_device(const tg_verify_result *r, const tg_verify_output *o)
{
    put_name(r, o);
    cli_put_clean(stdout, r->device);
    printf(" in %s against the processor in fp32: ", r->device_precision);
    put_distance(o->device_max_abs, o->device_relative_l2, o->device_psnr);
    if (r->device_tiles)
        printf("; other tiles there %s: %" PRId64,
               o->device_bit_equal ? "give the same bits" : "DIFFER", r->device_tiles);
    putchar('\n');
    if (!o->device_nonfinite)
        return;
    put_name(r, o);
    printf("%" PRId64 " values there are NaN or infinite%s\n", o->device_nonfinite,
           strcmp(r->device_precision, "fp16") == 0 ? "; --precision fp32 has a larger range"
                                                    : "");
}

static void print_output(const tg_verify_result *r, const tg_verify_output *o)
{
    put_name(r, o);
    fputs("distance to the reference kernels: ", stdout);
    put_distance(o->reference_max_abs, o->reference_relative_l2, o->reference_psnr);
    putchar('\n');
    if (r->device[0])
        print_device(r, o);
    if (r->n_outputs < 2 || o->bit_equal)
        return;
    put_name(r, o);
    printf("tiled DIFFERS from whole: at most %.9g, relative L2 %.3g\n", o->max_abs_difference,
           o->relative_l2);
}

static void print_text(const tg_verify_result *r, double seconds)
{
    char t[CLI_TEXT];
    for (size_t o = 0; o < r->n_outputs; o++)
        print_output(r, &r->outputs[o]);
    if (r->not_tiled[0])
        printf("not tiled: whole image only, %s;", r->not_tiled);
    else if (r->bit_equal)
        printf("tiled equals whole, bit for bit: %" PRId64 " tiles", r->tiles);
    else
        printf("tiled DIFFERS from whole: at most %.9g, relative L2 %.3g, %" PRId64 " tiles",
               r->max_abs_difference, r->relative_l2, r->tiles);
    if (r->stages)
        printf(" in %" PRId64 " stages", r->stages);
    printf("%s in %s; output from %.6g to %.6g", r->stages ? "," : "", cli_seconds(seconds, t),
           r->output_min, r->output_max);
    if (r->items > 1)
        printf("; the first of %" PRId64, r->items);
    putchar('\n');
}

static void print(cli *c, const tg_verify_result *r, double seconds)
{
    cli_progress_clear(c);
    if (c->json)
        print_event(r);
    else if (!c->quiet)
        print_text(r, seconds);
    const char *picture = tg_opts_get(c->opts, "picture");
    if (picture && !c->json && !c->quiet)
        printf("%s: whole, tiled and their difference; below, tiles normalised by themselves\n",
               picture);
}

tg_status cli_cmd_verify(cli *c)
{
    tg_job *job = NULL;
    tg_verify_result r = {.size = sizeof r};
    const double start = cli_now();
    tg_status st = tg_job_open(c->ctx, c->opts, &job);
    c->opened = st == TG_OK;
    if (st == TG_OK)
        st = tg_job_verify(job, &r);
    if (st == TG_OK)
        print(c, &r, cli_now() - start);
    tg_job_close(&job); /* the result points into it */
    if (st != TG_OK)
        return st;
    if (r.device[0] && !r.device_bit_equal)
        return cli_fail(c, TG_E_INTERNAL,
                        "%s: two ways of cutting the image differ; please report the model and "
                        "the output of tegula plan",
                        r.device);
    if (!r.bit_equal)
        return cli_fail(c, TG_E_INTERNAL,
                        "tiled and whole differ by up to %.9g; please report the model and the "
                        "output of tegula plan",
                        r.max_abs_difference);
    return TG_OK;
}
