/* shapes.c - how the structs lie that the library hands out in arrays, or in the middle of
 * others: they have no size of their own, so they never change. Printed by a program of each
 * header. */
#include "shapes.h"

#include <stddef.h>
#include <stdio.h>
#include <tegula.h>
#include <tegula_estimate.h>
#include <tegula_memory.h>
#include <tegula_pool.h>
#include <tegula_preset.h>

#define LINE(type, member) printf("%s.%s at %zu\n", #type, #member, offsetof(type, member))
#define END(type) printf("%s is %zu bytes\n", #type, sizeof(type))

void print_shapes(void)
{
    LINE(tg_plan_line, bytes);
    LINE(tg_plan_line, kind);
    LINE(tg_plan_line, free_bytes);
    END(tg_plan_line);
    LINE(tg_verify_output, max);
    LINE(tg_verify_output, bit_equal);
    LINE(tg_verify_output, device_nonfinite);
    END(tg_verify_output);
    LINE(tg_option, help);
    END(tg_option);
    LINE(tg_setting, is_default);
    END(tg_setting);
    LINE(tg_preset_info, from);
    LINE(tg_preset_info, device);
    END(tg_preset_info);
    LINE(tg_progress, memory_bytes);
    LINE(tg_progress, budget_bytes);
    LINE(tg_progress, tiles_total); /* handed to a callback: what comes behind is new */
    LINE(tg_cgroup_memory, free_bytes);
    END(tg_cgroup_memory);
    LINE(tg_batch_size, shortfall_bytes);
    END(tg_batch_size);
    LINE(tg_raw, alloc); /* the order of its calls */
    LINE(tg_raw, is_pinned);
    LINE(tg_pool_opts, segment_bytes);
    END(tg_gpu); /* of tg_gpu_memory_all */
}

#ifdef SHAPES_ALONE
int main(void)
{
    print_shapes();
    return 0;
}
#endif
