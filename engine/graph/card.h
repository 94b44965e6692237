/* card.h - what a description says of a network: which file it is, its axes and sizes, and what is done to pixels before
 * and to results behind it.
 *
 * Steps are either of constants, and become nodes of the graph (card_apply.c), or need numbers of the image, and then they
 * and those before them are done while pixels are loaded (tgi_normalize_spec). What a description says that is not done
 * here is refused by name: nothing is left out in silence.
 *
 * @source the formats 0.4 and 0.5 of bioimage.io's model description; nnU-Net's plans.json and dataset.json. */
#ifndef TGI_CARD_H
#define TGI_CARD_H

#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "engine/base/spec.h"
#include "engine/graph/graph.h"
#include "io/package.h"

#define TGI_GRAPH_PLAIN                                                                        \
    32u /* a package's network without its description: another one was named */

#define TGI_CARD_PORTS 8
#define TGI_CARD_AXES 6
#define TGI_CARD_STEPS TGI_NORM_STEPS
#define TGI_CARD_VALUES 4096 /* of a step, one for each channel */

typedef enum tgi_step_kind {
    TGI_STEP_LINEAR,   /* x * a + b */
    TGI_STEP_CLIP,     /* to [a, b]; either may be a percentile of the image */
    TGI_STEP_ZSCORE,   /* (x - mean) / (deviation + eps) */
    TGI_STEP_RANGE,    /* (x - low) / (high - low + eps), percentiles */
    TGI_STEP_BINARIZE, /* x > a: 1, else 0 */
    TGI_STEP_SIGMOID,
    TGI_STEP_SOFTMAX, /* over channels */
    TGI_STEP_CAST,    /* to `type` */
    TGI_STEP_MATCH /* (x - mean) / (deviation + eps) * (that of the input + eps) + its mean */
} tgi_step_kind;

typedef struct tgi_step {
    tgi_step_kind kind;
    const char *name; /* as the description calls it; static */
    int n;            /* values of a and b: 1, or one for each channel */
    double *a, *b;    /* owned, one block */
    double eps, low, high;
    int low_of, high_of; /* CLIP: the bound is a percentile of the image */
    int by_channel;      /* statistics of each channel for itself, else of all together */
    int whole_set;       /* statistics of all planes, else of each item */
    int of_input;        /* of an output: statistics are the unprocessed input's */
    tg_dtype type;
} tgi_step;

typedef struct tgi_card_axis {
    char letter;        /* b c z y x */
    int64_t size, step; /* size + k * step; step 0: this size alone. size 0: not said */
} tgi_card_axis;

typedef struct tgi_card_port {
    char name[64];
    int n_axes;
    tgi_card_axis axis[TGI_CARD_AXES];
    tg_dtype dtype; /* of the described tensor; TG_DTYPE_NONE: not said */
    int n_step;
    tgi_step step[TGI_CARD_STEPS];
    int n_loaded; /* of an input: steps that are done while pixels are loaded */
    int n_names;  /* channels that have names of their own: all or none */
    char **channel_name;
} tgi_card_port;

/* What nnU-Net trained with. */
typedef struct tgi_card_plan {
    int is;            /* there is one */
    double spacing[3]; /* z,y,x */
    int64_t patch[3];
} tgi_card_plan;

typedef struct tgi_card {
    char name[64], version[32], license[64];
    char format[24];           /* "bioimage.io 0.5", "nnU-Net plans" */
    char sum[TGI_SHA256_TEXT]; /* of the description */
    char source[1024];         /* the ONNX file inside the package; "" */
    char sha256[TGI_SHA256_TEXT];
    char beside[1024]; /* a file of weights beside it */
    int n_in, n_out;
    tgi_card_port *in, *out; /* TGI_CARD_PORTS each; owned */
    /* Of nnU-Net, for networks over images and over volumes: */
    tgi_card_plan plan[2];
    int planned; /* schemes of normalisation, one for each channel; 0: it is no plans.json */
} tgi_card;

/* Returned; tgi_card_free. `what` names the description. TG_E_FORMAT, TG_E_UNSUPPORTED: what of it is not done. */
tg_status tgi_card_of_package(const tgi_package *p, tgi_card **out, tgi_err *err);
/* The same of a document; `sum`: its SHA-256. */
tg_status tgi_card_of_yaml(const tgi_yaml *says, const char *what, const char *sum,
                           tgi_card **out, tgi_err *err);
/* 1: the document is nnU-Net's plans.json. Then its card; `what` names it. */
int tgi_card_is_plans(const tgi_json *doc);
tg_status tgi_card_of_plans(const tgi_json *doc, const char *what, tgi_card **out,
                            tgi_err *err);
/* The names of channels in nnU-Net's dataset.json; what it does not say is left out. */
tg_status tgi_card_add_dataset(tgi_card *card, const tgi_json *doc, tgi_err *err);
void tgi_card_free(tgi_card **card);
tg_status tgi_card_new(tgi_card **out, tgi_err *err);

/* Put the steps of constants into the graph before it is finished, unless `bare`: then those of outputs alone.
 * TG_E_FORMAT: description and network contradict each other. */
tg_status tgi_card_apply(const tgi_card *card, int bare, tgi_graph *g, tgi_err *err);
/* Once it is finished: axes are what the description says, and its sizes hold. */
tg_status tgi_card_check(const tgi_card *card, tgi_graph *g, tgi_err *err);

/* The normalisation that the loader does, which views the card; *text names all steps of the input. */
void tgi_card_normalize(const tgi_card *card, tgi_normalize_spec *out, char *text, size_t cap);
/* 1: a step behind the network measures the results of all items together. */
int tgi_card_measures_all(const tgi_card *card);
/* What output 0 is written as; TG_DTYPE_NONE: float32. */
tg_dtype tgi_card_out_type(const tgi_card *card);

/* ---- Among the files of the card ---- */

/* Steps of a list `pre` or `post`; format 4 or 5. */
tg_status tgi_card_steps(const tgi_yaml *list, int format, int output, const tgi_card *card,
                         tgi_card_port *port, tgi_err *err);
/* The names in a list, one for each channel; none where they only number the channels ("channel0"). */
tg_status tgi_card_names_of_list(const tgi_yaml *list, tgi_card_port *p, tgi_err *err);
void tgi_card_names_free(tgi_card_port *p);
/* 1: the step needs numbers of the image. */
int tgi_step_measures(const tgi_step *s);
int tgi_card_axis_of(const tgi_card_port *p, char letter); /* -1: it has none */

#endif
