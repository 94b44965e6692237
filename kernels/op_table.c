/* op_table.c - op_list.h, expanded. */
#include "kernels/op.h"

#include <string.h>

#define TG_OP(symbol) extern const tgi_op tgi_op_##symbol;
#include "kernels/op_list.h"
#undef TG_OP

static const tgi_op *const table[] = {
#define TG_OP(symbol) &tgi_op_##symbol,
#include "kernels/op_list.h"
#undef TG_OP
    NULL};

const tgi_op *tgi_op_at(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof table[0]) ? table[i] : NULL;
}

const tgi_op *tgi_op_find(const char *name)
{
    for (const tgi_op *const *p = table; *p; p++)
        if (strcmp((*p)->name, name) == 0)
            return *p;
    return NULL;
}
