/* fake_device_plugin.c - the fake device as a plugin. FAKE_DEVICE in the environment sets it
 * up, for commands: "devices=1 MiB=64 context=8 halves fail=run:5:-7"; "counts": when it is closed it says how many bytes were
 * sent and came back. Tests in C reach into it by dlsym. */
#include "tests/device/fake_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FAKE_API const tgi_device_ops *tgi_device_plugin(uint32_t abi);

static int call_of(const char *name)
{
    static const char *const names[FAKE_CALLS] = {
        "open", "alloc", "pin", "upload", "download", "run", "sync", "program", "library"};
    for (int i = 0; i < FAKE_CALLS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    abort();
}

static void set_up(const char *text)
{
    char word[64];
    int used = 0;
    for (; sscanf(text, "%63s%n", word, &used) == 1; text += used) {
        char call[16];
        int at, with;
        size_t n;
        if (sscanf(word, "devices=%d", &at) == 1)
            fake.devices = at;
        else if (sscanf(word, "MiB=%zu", &n) == 1)
            fake.bytes = n << 20;
        else if (sscanf(word, "context=%zu", &n) == 1)
            fake.context_bytes = n << 20;
        else if (strcmp(word, "told") == 0)
            fake.told = 1;
        else if (strcmp(word, "counts") == 0)
            fake.counts = 1;
        else if (strcmp(word, "halves") == 0)
            fake.halves = 1;
        else if (sscanf(word, "taken=%zu", &n) == 1)
            fake.taken = n << 20;
        else if (sscanf(word, "fail=%15[a-z]:%d:%d", call, &at, &with) == 3) {
            fake.fail_at[call_of(call)] = at;
            fake.fail_with[call_of(call)] = (tg_status)with;
        } else {
            abort();
        }
    }
}

const tgi_device_ops *tgi_device_plugin(uint32_t abi)
{
    const char *text = getenv("FAKE_DEVICE");
    if (abi != TGI_DEVICE_ABI)
        return NULL;
    if (text)
        set_up(text);
    return fake_device_ops();
}
