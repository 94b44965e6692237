/* emulated_plugin.cc - the plugin as a shared library whose device is emulated: with
 * TEGULA_CUDA_PLUGIN naming it, the command and the tests of a device run where there is none.
 *
 * What is pretended comes from the environment variable TEGULA_EMULATED, words apart by commas:
 *
 *   driver=N     its version, 13000 for 13.0; 0: none     devices=N    how many (1)
 *   mib=N        memory of each (256)                     context=N    MiB that a context takes
 * (8) launch=N     the N-th launch fails while it runs      nographs     graphs cannot be made
 *   capability=N the compute capability, 90 for 9.0       wgmma        blocks may have the
 * shared memory that groups of warps want (of 9.0 alone) call=N       the N-th call of the
 * runtime fails       nomemory=N   ... for want of memory
 */
#include "tests/cuda/cuda_runtime_emulated.h"

#include <stdlib.h>

static int word(const char *name, int otherwise)
{
    const char *s = getenv("TEGULA_EMULATED");
    const size_t n = strlen(name);
    for (; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : "")
        if (strncmp(s, name, n) == 0 && (s[n] == '=' || s[n] == ',' || !s[n]))
            return s[n] == '=' ? atoi(s + n + 1) : 1;
    return otherwise;
}

__attribute__((constructor)) static void set_up(void)
{
    tg_emulated_begin();
    tg_emulated.driver = word("driver", 13000);
    tg_emulated.major = word("capability", 90) / 10;
    tg_emulated.minor = word("capability", 90) % 10;
    tg_emulated_ampere = tg_emulated.major >= 8;
    if (word("wgmma", 0))
        tg_emulated_shared_most = 227 << 10;
    tg_emulated.devices = word("devices", 1);
    tg_emulated.memory_bytes = (size_t)word("mib", 256) << 20;
    tg_emulated.context_bytes = (size_t)word("context", 8) << 20;
    tg_emulated.no_graphs = word("nographs", 0);
    tg_emulated_fail_launch(word("launch", 0), cudaErrorIllegalAddress);
    if (word("call", 0))
        tg_emulated_fail_call(word("call", 0), cudaErrorUnknown);
    if (word("nomemory", 0))
        tg_emulated_fail_call(word("nomemory", 0), cudaErrorMemoryAllocation);
}
