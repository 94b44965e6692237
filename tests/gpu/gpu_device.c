/* gpu_device.c - the device that tests of the label gpu run on: what the plugin has, opened
 * once. Without a driver or a device the reason is printed and the tests are skipped; a device
 * that is there and cannot be opened fails them.
 *
 * TEGULA_TEST_PLUGIN names another plugin (ctest clears TEGULA_CUDA_PLUGIN), TEGULA_TEST_DEVICE
 * another device. */
#include "engine/device/choice.h"
#include "tests/cuda/device_run.h"

#include <stdio.h>
#include <stdlib.h>

static const tgi_device_ops *ops;
static tgi_device *opened;
static tgi_device_info described;

static void close_device(void)
{
    ops->close(&opened);
}

const tgi_device_ops *device_of_test(tgi_device **d)
{
    static int asked;
    tgi_device_spec want;
    tgi_device_choice choice;
    tgi_err err = {0};
    const char *which = getenv("TEGULA_TEST_DEVICE"), *plugin = getenv("TEGULA_TEST_PLUGIN");
    if (!asked++) {
        if (plugin)
            setenv("TEGULA_CUDA_PLUGIN", plugin, 1);
        if (tgi_device_parse(which ? which : "cuda", &want, &err) != TG_OK ||
            tgi_device_choose(&want, &choice, &err) != TG_OK) {
            printf("skipped: %s\n", err.text);
        } else if (choice.ops->open(choice.info.id, &opened, &err) != TG_OK) {
            printf("%s\n", err.text);
            exit(1);
        } else {
            ops = choice.ops;
            described = choice.info;
            printf("on %s, compute capability %d.%d, %s\n", choice.info.name, choice.info.major,
                   choice.info.minor, choice.info.driver);
            atexit(close_device);
        }
    }
    *d = opened;
    return ops;
}

void device_generation(int capability)
{
    (void)capability;
}

void device_blocks(unsigned last)
{
    (void)last;
}

unsigned device_kinds(void)
{
    return described.kinds;
}

int device_has(tg_dtype element)
{
    return element != TGI_DTYPE_BF16 || described.bf16;
}

const tgi_device_info *device_described(void)
{
    return &described;
}
