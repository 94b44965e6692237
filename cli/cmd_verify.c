/* cmd_verify.c - tegula verify: tiled against whole, on the user's own file.
 *
 * A difference is our bug (promise 2) and ends in exit 70, after the numbers were printed. */
#include "cli.h"
#include "text.h"

#include <inttypes.h>

static void print_event(const tg_verify_result *r)
{
    fputs("{\"event\":\"verify\"", stdout);
    cli_json_real(stdout, "max_abs_difference", r->max_abs_difference);
    cli_json_key(stdout, "output_range");
    putchar('[');
    cli_json_number(stdout, r->output_min);
    putchar(',');
    cli_json_number(stdout, r->output_max);
    putchar(']');
    cli_json_real(stdout, "relative_l2", r->relative_l2);
    cli_json_key(stdout, "bit_equal");
    fputs(r->bit_equal ? "true" : "false", stdout);
    cli_json_int(stdout, "tiles", r->tiles);
    if (r->not_tiled[0])
        cli_json_text(stdout, "not_tiled", r->not_tiled);
    cli_json_real(stdout, "reference_max_abs_difference", r->reference_max_abs);
    cli_json_real(stdout, "reference_relative_l2", r->reference_relative_l2);
    if (r->device[0]) {
        cli_json_text(stdout, "device", r->device);
        cli_json_text(stdout, "device_precision", r->device_precision);
        cli_json_real(stdout, "device_max_abs_difference", r->device_max_abs);
        cli_json_real(stdout, "device_relative_l2", r->device_relative_l2);
        cli_json_real(stdout, "device_psnr", r->device_psnr);
        cli_json_key(stdout, "device_bit_equal");
        fputs(r->device_bit_equal ? "true" : "false", stdout);
        cli_json_int(stdout, "device_tiles", r->device_tiles);
    }
    fputs("}\n", stdout);
}

static void print_device(const tg_verify_result *r)
{
    cli_put_clean(stdout, r->device);
    printf(" in %s against the processor in fp32: at most %.3g, relative L2 %.3g, PSNR %.1f dB",
           r->device_precision, r->device_max_abs, r->device_relative_l2, r->device_psnr);
    if (r->device_tiles)
        printf("; other tiles there %s: %" PRId64,
               r->device_bit_equal ? "give the same bits" : "DIFFER", r->device_tiles);
    putchar('\n');
}

static void print_text(const tg_verify_result *r, double seconds)
{
    char t[CLI_TEXT];
    printf("distance to the reference kernels: at most %.3g, relative L2 %.3g\n",
           r->reference_max_abs, r->reference_relative_l2);
    if (r->device[0])
        print_device(r);
    if (r->not_tiled[0])
        printf("not tiled: whole image only, %s;", r->not_tiled);
    else if (r->bit_equal)
        printf("tiled equals whole, bit for bit: %" PRId64 " tiles", r->tiles);
    else
        printf("tiled DIFFERS from whole: at most %.9g, relative L2 %.3g, %" PRId64 " tiles",
               r->max_abs_difference, r->relative_l2, r->tiles);
    printf(" in %s; output from %.6g to %.6g\n", cli_seconds(seconds, t), r->output_min,
           r->output_max);
}

tg_status cli_cmd_verify(cli *c)
{
    tg_job *job = NULL;
    tg_verify_result r = {.size = sizeof r};
    const double start = cli_now();
    tg_status st = tg_job_open(c->ctx, c->opts, &job);
    if (st == TG_OK)
        st = tg_job_verify(job, &r);
    tg_job_close(&job);
    if (st != TG_OK)
        return st;
    cli_progress_clear(c);
    if (c->json)
        print_event(&r);
    else if (!c->quiet)
        print_text(&r, cli_now() - start);
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
