/* verbs.c - the verbs, one row each: dispatch, --help and the manual page read it. */
#include "cli.h"

#include <string.h>

const cli_verb cli_verbs[] = {
    {"info", "FILE... [options]",
     "Say what an image, a film, an array, a model or a file of weights (.pth, .safetensors) "
     "is; reads headers only.",
     1, 4096, "", cli_cmd_info},
    {"plan", "-m MODEL INPUT [-o OUT] [options]",
     "Say what a run would need and how it would be cut; touches no pixel.", 1, 1, "model",
     cli_cmd_plan},
    {"run", "-m MODEL INPUT -o OUT [options] | -m MODEL INPUT... -o DIR/ [options]",
     "Run a network over an image or a film inside the memory budget. The same command "
     "continues "
     "after a stop or a crash; with .npy in and out, and out of or into a pipe, it starts "
     "over.",
     1, 1, "model output", cli_cmd_run},
    {"inpaint",
     "INPUT --mask FILE|--mask-box x,y,w,h|--mode outpainting -o OUT [options] | --batch "
     "JOBS.csv [options] | --video-dir DIR --mask-dir DIR -o OUTDIR/ [options]",
     "Remove something from a film or from pictures that follow each other, and show what lies "
     "behind it. The same "
     "command continues after a stop or a crash.",
     0, 1, "", cli_cmd_inpaint},
    {"preview", "-m MODEL INPUT -o OUT.png [options]",
     "Write three crops side by side, raw, result and difference, as the full run would show "
     "them. Where --post, --labels or the network makes objects, the third picture is the raw "
     "one with their outlines in yellow.",
     1, 1, "model output", cli_cmd_preview},
    {"verify", "-m MODEL INPUT [options]",
     "Run in tiles and as a whole and compare, images or arrays (.npy), every output; on a GPU "
     "also with the processor in fp32. Use --roi on images that do not fit.",
     1, 1, "model", cli_cmd_verify},
    {"copy", "INPUT -o OUT [options]",
     "Copy an image, frames of a film (into a TIFF) or an array through the reader and the "
     "writer, "
     "without a network.",
     1, 1, "output", cli_cmd_copy},
    {"convert-weights", "INPUT.pth -o OUT.safetensors [options]",
     "Write the tensors of a .pth or safetensors file as safetensors, types kept; nothing of "
     "the "
     "file is run.",
     1, 1, "output", cli_cmd_convert_weights},
    {"status", "OUT",
     "Say how far the run is that writes OUT, in this or another window, or whether the same "
     "command goes on with it; takes no lock and changes nothing.",
     1, 1, "", cli_cmd_status},
    {"mem", "[options]",
     "Show who has the memory: the machine, control groups, this process, GPUs and disks; "
     "once, or again and again with --watch.",
     0, 0, "", cli_cmd_mem},
    {"calibrate", "",
     "Measure the speeds of this machine once, so that plan can say how long a run will take.",
     0, 0, "", cli_cmd_calibrate},
    {"estimate", "data|batch|training|gpu|video [FILE...] [options]",
     "Say what a data set, a batch or training (-m MODEL, or the word propainter) would need "
     "and "
     "how to hold it, which GPUs can run a job (a job file, or -m MODEL IMAGE), and what "
     "ProPainter takes for a film of a size and length.",
     0, 4096, "", cli_cmd_estimate},
    {"plot", "LOG.csv -o OUT.svg|OUT.png",
     "Draw what run --log or --trace wrote: memory over time against budget and prediction.", 1,
     1, "output", cli_cmd_plot},
    {"doctor", "[JOB.json] [options]",
     "Check this machine, its limits and this build for problems, and name a remedy for each. "
     "With a job file also check whether the job fits.",
     0, 1, "", cli_cmd_doctor},
    {"preset", "list | show NAME | save NAME [options] | auto -m MODEL INPUT [-o NAME.json]",
     "Work with presets, the named settings that --preset takes: list them, show one, save one "
     "in your own folder, or find the settings with which a job is predicted to be fastest "
     "(auto), on this machine or on that of --machine.",
     0, 4096, "", cli_cmd_preset},
    {"version", "", "Print the version.", 0, 0, "", cli_cmd_version},
    {"help", "[VERB]", "Print the verbs, or one verb with its options.", 0, 1, "",
     cli_cmd_help},
};
const int cli_n_verbs = (int)(sizeof cli_verbs / sizeof cli_verbs[0]);

const cli_verb *cli_verb_find(const char *name)
{
    for (int i = 0; i < cli_n_verbs; i++)
        if (strcmp(cli_verbs[i].name, name) == 0)
            return &cli_verbs[i];
    return NULL;
}

#define LONGEST 24

/* Letters to add, leave out, change or swap with the next one. */
static int distance(const char *a, const char *b)
{
    const int n = (int)strlen(a), m = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int i = 0; i <= n; i++)
        for (int k = 0; k <= m; k++) {
            int best = i > k ? i : k; /* of the first row and column */
            if (i && k) {
                best = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
                best = d[i - 1][k] + 1 < best ? d[i - 1][k] + 1 : best;
                best = d[i][k - 1] + 1 < best ? d[i][k - 1] + 1 : best;
            }
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                d[i - 2][k - 2] + 1 < best)
                best = d[i - 2][k - 2] + 1;
            d[i][k] = best;
        }
    return d[n][m];
}

tg_status cli_no_verb(cli *c, const char *word)
{
    const char *near = NULL;
    int best = strlen(word) > 3 ? 3 : 2; /* nearer than that */
    for (int i = 0; i < cli_n_verbs; i++) {
        const int far = distance(word, cli_verbs[i].name);
        if (far < best) {
            best = far;
            near = cli_verbs[i].name;
        }
    }
    if (near)
        return cli_fail(
            c, TG_E_ARG,
            "there is no verb \"%s\"; the nearest is \"%s\"; tegula --help lists them", word,
            near);
    return cli_fail(c, TG_E_ARG, "there is no verb \"%s\"; tegula --help lists them", word);
}
