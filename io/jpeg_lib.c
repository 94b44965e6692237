/* jpeg_lib.c - error handling and memory for libjpeg.
 *
 * The manager is two stacks in one block that grow towards each other: tables, which outlive an
 * image, from the start, everything else from the end. Freeing an image is moving one number.
 * Rows are rounded up to, and begin on, 64 bytes: vector code reads and writes that far. */
#include "io/jpeg_lib.h"

#include "engine/base/arith.h"

#include <jerror.h>
#include <string.h>

#define ALIGN ((size_t)64)

/* ---- Errors ---- */

static void give_up(j_common_ptr info)
{
    tgi_jpeg *j = (tgi_jpeg *)info->err;
    j->starved = info->err->msg_code == JERR_OUT_OF_MEMORY;
    info->err->format_message(info, j->text);
    longjmp(j->escape, 1);
}

/* Bytes behind the last pixel that may be padding; libjpeg does not show which they are. More of
 * them are rows that the header does not claim, or a scan whose mark is lost. */
#define PADDING 64

/* Warnings about pixels that are there and right all the same. */
static bool is_harmless(const struct jpeg_error_mgr *e)
{
    if (e->msg_code == JWRN_EXTRANEOUS_DATA)
        return e->msg_parm.i[1] == 0xd9 && e->msg_parm.i[0] <= PADDING;
    return e->msg_code == JWRN_JFIF_MAJOR || e->msg_code == JWRN_ADOBE_XFORM;
}

static void note(j_common_ptr info, int level)
{
    tgi_jpeg *j = (tgi_jpeg *)info->err;
    if (level >= 0 || is_harmless(info->err) || j->damaged)
        return;
    j->damaged = true;
    info->err->format_message(info, j->text);
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

void tgi_jpeg_errors(tgi_jpeg *j, j_common_ptr info)
{
    info->err = jpeg_std_error(&j->errors);
    j->errors.error_exit = give_up;
    j->errors.emit_message = note;
    j->errors.output_message = say_nothing;
}

/* Of a component, what no scan has brought: all of it, or of a progressive file some coefficients or
 * their last bits. */
static bool is_missing(const struct jpeg_decompress_struct *z, int component)
{
    if (!z->comp_info[component].quant_table) /* kept when its first scan begins */
        return true;
    for (int k = 0; z->coef_bits && k < DCTSIZE2; k++)
        if (z->coef_bits[component][k] != 0)
            return true;
    return false;
}

void tgi_jpeg_check_scans(tgi_jpeg *j, const struct jpeg_decompress_struct *z)
{
    for (int i = 0; i < z->num_components && !j->damaged; i++)
        if (is_missing(z, i)) {
            j->damaged = true;
            snprintf(j->text, sizeof j->text, "no scan brings all bits of component %d of %d",
                     i + 1, z->num_components);
        }
}

/* ---- Memory ---- */

static void *take(j_common_ptr info, int pool, size_t n)
{
    tgi_jpeg *j = info->client_data;
    if (n > j->cap || (n = (n + ALIGN - 1) / ALIGN * ALIGN) > j->high - j->low) {
        info->err->msg_code = JERR_OUT_OF_MEMORY;
        info->err->msg_parm.i[0] = 0;
        info->err->error_exit(info);
        return NULL; /* not reached */
    }
    void *p = pool == JPOOL_PERMANENT ? j->block + j->low : j->block + j->high - n;
    if (pool == JPOOL_PERMANENT)
        j->low += n;
    else
        j->high -= n;
    const size_t used = j->low + (j->cap - j->high);
    j->most = used > j->most ? used : j->most;
    return p;
}

/* `rows` pointers and as many rows of n bytes. */
static void *take_rows(j_common_ptr info, int pool, size_t n, size_t rows)
{
    const size_t pitch = tgi_sat_add(n, ALIGN - 1) / ALIGN * ALIGN;
    uint8_t **list = take(info, pool, tgi_sat_mul(rows, sizeof *list));
    uint8_t *data = take(info, pool, tgi_sat_mul(rows, pitch));
    for (size_t i = 0; i < rows; i++)
        list[i] = data + i * pitch;
    return list;
}

static JSAMPARRAY take_samples(j_common_ptr info, int pool, JDIMENSION n, JDIMENSION rows)
{
    return take_rows(info, pool, n * sizeof(JSAMPLE), rows);
}

static JBLOCKARRAY take_blocks(j_common_ptr info, int pool, JDIMENSION n, JDIMENSION rows)
{
    return take_rows(info, pool, n * sizeof(JBLOCK), rows);
}

/* "Virtual" arrays are libjpeg's word for what may lie in a file; ours lie in the block. */
struct jvirt_barray_control {
    JBLOCKARRAY rows;
};

static jvirt_barray_ptr ask_blocks(j_common_ptr info, int pool, boolean zero, JDIMENSION n,
                                   JDIMENSION rows, JDIMENSION at_once)
{
    (void)at_once;
    jvirt_barray_ptr a = take(info, pool, sizeof *a);
    a->rows = take_blocks(info, pool, n, rows);
    for (JDIMENSION i = 0; zero && i < rows; i++)
        memset(a->rows[i], 0, n * sizeof(JBLOCK));
    return a;
}

static JBLOCKARRAY get_blocks(j_common_ptr info, jvirt_barray_ptr a, JDIMENSION first,
                              JDIMENSION n, boolean writes)
{
    (void)info, (void)n, (void)writes;
    return a->rows + first;
}

static jvirt_sarray_ptr ask_samples(j_common_ptr info, int pool, boolean zero, JDIMENSION n,
                                    JDIMENSION rows, JDIMENSION at_once)
{
    (void)pool, (void)zero, (void)n, (void)rows, (void)at_once;
    info->err->msg_code = JERR_NOT_COMPILED; /* only colour quantisation asks */
    info->err->error_exit(info);
    return NULL;
}

static JSAMPARRAY get_samples(j_common_ptr info, jvirt_sarray_ptr a, JDIMENSION first,
                              JDIMENSION n, boolean writes)
{
    (void)info, (void)a, (void)first, (void)n, (void)writes;
    return NULL;
}

static void realize(j_common_ptr info)
{
    (void)info; /* asking was getting */
}

static void free_pool(j_common_ptr info, int pool)
{
    tgi_jpeg *j = info->client_data;
    if (pool == JPOOL_PERMANENT)
        j->low = 0;
    else
        j->high = j->cap;
}

void tgi_jpeg_memory(tgi_jpeg *j, j_common_ptr info, void *block, size_t cap)
{
    j->block = block;
    j->cap = j->high = cap / ALIGN * ALIGN;
    j->low = j->most = 0;
    if (info->mem != &j->memory)
        j->theirs = info->mem;
    j->memory = (struct jpeg_memory_mgr){
        .alloc_small = take,
        .alloc_large = take,
        .alloc_sarray = take_samples,
        .alloc_barray = take_blocks,
        .request_virt_sarray = ask_samples,
        .request_virt_barray = ask_blocks,
        .realize_virt_arrays = realize,
        .access_virt_sarray = get_samples,
        .access_virt_barray = get_blocks,
        .free_pool = free_pool,
        .self_destruct = realize,
        .max_alloc_chunk = 1000000000L,
    };
    info->client_data = j;
    info->mem = &j->memory;
}

void tgi_jpeg_reset(tgi_jpeg *j, j_common_ptr info)
{
    jpeg_abort(info);
    if (info->is_decompressor) {
        j_decompress_ptr d = (j_decompress_ptr)info;
        memset(d->quant_tbl_ptrs, 0, sizeof d->quant_tbl_ptrs);
        memset(d->dc_huff_tbl_ptrs, 0, sizeof d->dc_huff_tbl_ptrs);
        memset(d->ac_huff_tbl_ptrs, 0, sizeof d->ac_huff_tbl_ptrs);
        j->low = 0;
    }
    j->damaged = j->starved = false;
}

void tgi_jpeg_destroy(tgi_jpeg *j, j_common_ptr info)
{
    if (j->theirs)
        info->mem = j->theirs;
    jpeg_destroy(info);
}

size_t tgi_jpeg_rows_bytes(size_t width)
{
    return ((size_t)24 << 10) + 64 * (width + 128);
}
