/* emulated_plugin.cc - the plugin as a shared library whose device is emulated: with
 * TEGULA_CUDA_PLUGIN naming it, the command and the tests of a device run where there is none.
 *
 * What is pretended comes from the environment variable TEGULA_EMULATED, words apart by commas:
 *
 *   driver=N      its version, 13000 for 13.0; 0: none
 *   devices=N     how many (1)
 *   mib=N         memory of each (256)
 *   context=N     MiB that a context takes (8)
 *   hidden=N      MiB more that it takes, and that cudaMemGetInfo does not see
 *   first=N       MiB that the driver takes when it is first asked anything (0)
 *   capability=N  the compute capability, 90 for 9.0
 *   wgmma         blocks may have the shared memory that groups of warps want (of 9.0 alone)
 *   nographs      graphs cannot be made
 *   many=N        multiprocessors (4)
 *   launch=N      the N-th launch fails while it runs
 *   call=N        the N-th call of the runtime fails
 *   nomemory=N    ... for want of memory
 *
 * TEGULA_EMULATED_SHARE names a file: processes that name the same have one device together. */
#include "tests/cuda/cuda_runtime_emulated.h"
#include "tests/cuda/emulated_share.h"

__attribute__((constructor)) static void set_up(void)
{
    tg_emulated_begin();
    tg_emulated.driver = tg_emulated_word("driver", 13000);
    tg_emulated.major = tg_emulated_word("capability", 90) / 10;
    tg_emulated.minor = tg_emulated_word("capability", 90) % 10;
    tgi_emulated_ampere = tg_emulated.major >= 8;
    if (tg_emulated_word("wgmma", 0))
        tg_emulated_shared_most = 227 << 10;
    tg_emulated.devices = tg_emulated_word("devices", 1);
    tg_emulated.memory_bytes = (size_t)tg_emulated_word("mib", 256) << 20;
    tg_emulated.context_bytes = (size_t)tg_emulated_word("context", 8) << 20;
    tg_emulated.hidden_bytes = (size_t)tg_emulated_word("hidden", 0) << 20;
    tg_emulated.first_bytes = (size_t)tg_emulated_word("first", 0) << 20;
    tg_emulated.no_graphs = tg_emulated_word("nographs", 0);
    tg_emulated.multiprocessors = tg_emulated_word("many", 4);
    tg_emulated_fail_launch(tg_emulated_word("launch", 0), cudaErrorIllegalAddress);
    if (tg_emulated_word("call", 0))
        tg_emulated_fail_call(tg_emulated_word("call", 0), cudaErrorUnknown);
    if (tg_emulated_word("nomemory", 0))
        tg_emulated_fail_call(tg_emulated_word("nomemory", 0), cudaErrorMemoryAllocation);
}
