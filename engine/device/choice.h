/* choice.h - which device a job runs on: the option's words, and the devices there are. */
#ifndef TGI_CHOICE_H
#define TGI_CHOICE_H

#include "engine/device/plugin.h"

/* "auto", "cpu", "cuda", "cuda:1" */
typedef enum tgi_device_kind {
    TGI_DEVICE_AUTO,     /* a device where one can be used, else the processor */
    TGI_DEVICE_CPU,      /* the processor: nothing else is asked */
    TGI_DEVICE_OF_PLUGIN /* a device or an error */
} tgi_device_kind;

#define TGI_DEVICE_ANY (-1)

typedef struct tgi_device_spec {
    tgi_device_kind kind;
    const char *plugin; /* static; of AUTO and OF_PLUGIN */
    int id;             /* or TGI_DEVICE_ANY: the one with most free memory */
} tgi_device_spec;

/* TG_E_ARG with the nearest word. `out` is written on TG_OK only. */
tg_status tgi_device_parse(const char *text, tgi_device_spec *out, tgi_err *err);

typedef struct tgi_device_choice {
    const tgi_device_ops *ops; /* NULL: the processor */
    tgi_device_info info;
    char notice[320]; /* of auto: why there is no device although one is expected; or "" */
} tgi_device_choice;

/* TG_E_DEVICE, for OF_PLUGIN only: no such device, with the reason and what would be there. */
tg_status tgi_device_choose(const tgi_device_spec *want, tgi_device_choice *out, tgi_err *err);

#endif
