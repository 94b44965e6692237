/* op_list.h - one line per operator: TG_OP(symbol). The source is kernels/ops/op_<symbol>.c and
 * defines `const tg_op tg_op_<symbol>`. CMake reads this file; keep it alphabetical. */
