/* png_lib.c - errors, warnings and memory of libpng.
 *
 * The arena is a stack of which only the top can be given back. That is enough: all that libpng
 * takes for a picture it keeps, but for one buffer of input that grows on top. */
#include "io/png_lib.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/bytes.h"

#include <stdio.h>
#include <string.h>

#define ALIGN ((size_t)64)

/* ---- Memory ---- */

static png_voidp take(png_structp z, png_alloc_size_t n)
{
    tgi_png *p = png_get_mem_ptr(z);
    if (n > p->cap || (n = (n + ALIGN - 1) / ALIGN * ALIGN) > p->cap - p->used) {
        if (!p->starved)
            p->lacked = tgi_sat_add(p->used, n);
        p->starved = true;
        return NULL;
    }
    uint8_t *at = p->arena ? p->arena + p->used : tgi_malloc(TGI_TAG_IO, n);
    p->refused |= !at;
    p->used += n;
    p->most = tgi_max(p->most, p->used);
    return p->last = at;
}

static void give(png_structp z, png_voidp at)
{
    tgi_png *p = png_get_mem_ptr(z);
    if (!p->arena)
        tgi_free(at);
    else if (at && at == p->last)
        p->used = (size_t)(p->last - p->arena);
}

/* ---- Errors ---- */

static void keep_text(tgi_png *p, const char *text)
{
    if (!p->text[0])
        snprintf(p->text, sizeof p->text, "%s", text);
}

static PNG_NORETURN void give_up(png_structp z, png_const_charp text)
{
    tgi_png *p = png_get_error_ptr(z);
    keep_text(p, text);
    longjmp(p->escape, 1);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Warnings about what no pixel depends on. Chunks with a wrong checksum are errors, so what is
 * left are chunks that somebody wrote like that: those with a small first letter say nothing
 * about pixels, and colours of a palette mean nothing where pixels are no indices. Data behind
 * the last pixel were read to their checksum. Who gets no memory and needs it, gives up. */
static bool is_harmless(const tgi_png *p, const char *text)
{
    const bool indexed = png_get_color_type(p->z, p->info) == PNG_COLOR_TYPE_PALETTE;
    if (begins(text, "tRNS: ") || begins(text, "PLTE: "))
        return !indexed;
    if (text[0] >= 'a' && text[0] <= 'z' && strlen(text) > 4 && text[4] == ':')
        return true;
    return begins(text, "IDAT: Extra compressed data") ||
           begins(text, "IDAT: Too much image data") ||
           begins(text, "IDAT: chunk data is too large") || begins(text, "Out of memory");
}

static void note(png_structp z, png_const_charp text)
{
    tgi_png *p = png_get_error_ptr(z);
    if (p->damaged || is_harmless(p, text))
        return;
    keep_text(p, text);
    p->damaged = true;
}

/* Memory that was not there counts where the text says that libpng gave up for it, or where
 * there is none: it goes on without a profile, and may meet damage later. */
tg_status tgi_png_failed(const tgi_png *p, tgi_err *err)
{
    const bool for_memory = !p->text[0] || strstr(p->text, "memory");
    if (p->refused && for_memory)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a PNG");
    if (p->starved && for_memory)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a PNG that needs more memory than planned");
    return tgi_fail(err, TG_E_FORMAT, "PNG: %s", p->text);
}

/* ---- Begin and end ---- */

static void create_reader(void *arg)
{
    tgi_png *p = arg;
    p->z = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, p, give_up, note, p, take, give);
}

static void create_writer(void *arg)
{
    tgi_png *p = arg;
    p->z = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, p, give_up, note, p, take, give);
}

static void create_info(void *arg)
{
    tgi_png *p = arg;
    p->info = png_create_info_struct(p->z);
}

bool tgi_png_begin(tgi_png *p, bool writes)
{
    tgi_png_end(p);
    return tgi_png_step(p, writes ? create_writer : create_reader, p) && p->z &&
           tgi_png_step(p, create_info, p) && p->info;
}

void tgi_png_end(tgi_png *p)
{
    if (p->z && !p->arena)
        png_destroy_read_struct(&p->z, &p->info, NULL);
    p->z = NULL;
    p->info = NULL;
    p->last = NULL;
    p->used = 0;
    p->text[0] = 0;
    p->starved = p->refused = p->damaged = false;
}

bool tgi_png_step(tgi_png *p, void (*step)(void *), void *arg)
{
    if (setjmp(p->escape))
        return false;
    step(arg);
    return true;
}

/* ---- Reading ---- */

/* Two rows, each of whole groups of eight pixels and one pixel more, and 49 bytes around them.
 * A pixel is as stored or as made, the larger of the two; grey of few bits that has a
 * transparent colour gets room for alpha, which nobody asks for. */
size_t tgi_png_read_bytes(size_t width, int colour, int bits)
{
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    const size_t pixel = colour == PNG_COLOR_TYPE_PALETTE ? 1
                         : bits < 8                       ? 2
                                                          : channels[colour] * (size_t)bits / 8;
    const size_t row = tgi_sat_add(tgi_sat_mul(tgi_sat_add(width, 8), pixel), 64 + ALIGN);
    return tgi_sat_add(TGI_PNG_READ_BESIDE, tgi_sat_mul(2, row));
}

void tgi_png_read_header(tgi_png *p, bool all)
{
    png_set_user_limits(p->z, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(p->z, 0); /* p->cap is the limit */
    png_set_crc_action(p->z, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(p->z, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    if (all)
        png_set_keep_unknown_chunks(p->z, PNG_HANDLE_CHUNK_AS_DEFAULT,
                                    (png_const_bytep) "pHYs\0iCCP", 2);
    png_read_info(p->z, p->info);
}

void tgi_png_start_rows(tgi_png *p)
{
    png_set_packing(p->z);
    if (png_get_bit_depth(p->z, p->info) < 8 &&
        png_get_color_type(p->z, p->info) == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(p->z);
    if (!TGI_HOST_BIG)
        png_set_swap(p->z);
    png_set_interlace_handling(p->z);
    png_read_update_info(p->z, p->info);
}

/* ---- Writing ---- */

#define BUFFER ((size_t)256 << 10) /* packed pixels of a chunk */
/* 268 KB by zconf.h; the rest is what other implementations of zlib take more. */
#define DEFLATE_STATE ((size_t)384 << 10)

/* The row, the one above, the filtered one; deflate and its output. A profile is copied and
 * packed into buffers of its own, by a deflate that is made again for pixels if its window was
 * smaller. */
size_t tgi_png_write_bytes(size_t row, size_t profile)
{
    const size_t beside = ((size_t)16 << 10) + DEFLATE_STATE + BUFFER;
    const size_t rows = tgi_sat_mul(3, tgi_sat_add(row, 64 + ALIGN));
    const size_t packed = tgi_sat_add(profile, profile / 8);
    const size_t buffers = tgi_sat_mul(packed / BUFFER + 1, BUFFER + 2 * ALIGN);
    const size_t more = tgi_sat_add(tgi_sat_add(profile, ALIGN), buffers);
    return tgi_sat_add(tgi_sat_add(beside, rows),
                       profile ? tgi_sat_add(DEFLATE_STATE, more) : 0);
}

void tgi_png_start_writing(tgi_png *p, uint32_t width, uint32_t height, int colour, int bits)
{
    png_set_user_limits(p->z, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_benign_errors(p->z, 1); /* a profile that it finds fault with is left out */
    png_set_compression_level(p->z, 6);
    png_set_compression_strategy(p->z, 0); /* zlib's default: 3 % smaller than "filtered" */
    png_set_compression_buffer_size(p->z, BUFFER);
    png_set_filter(p->z, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_IHDR(p->z, p->info, width, height, bits, colour, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
}
