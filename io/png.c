/* png.c - signature, IHDR, one IDAT per band of rows, IEND. Every row uses filter 2 ("up"),
 * which costs nothing and halves smooth pictures. Source: PNG specification, 2nd edition (ISO
 * 15948). */
#include "io/png.h"

#include "engine/base/mem.h"
#include "io/deflate.h"
#include "io/file_ops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROOM (1u << 18) /* filtered bytes of a band, unless one row needs more */

typedef struct png {
    int fd;
    const char *path;
    uint64_t at;
    void *deflate;
    uint8_t *rows;  /* filtered rows of a band */
    uint8_t *chunk; /* 8 bytes of head, data, 4 of checksum */
    size_t cap;     /* of the data */
} png;

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* Write the chunk whose data stand in p->chunk + 8 already. */
static tg_status write_chunk(png *p, const char *type, size_t n, tgi_err *err)
{
    put32(p->chunk, (uint32_t)n);
    memcpy(p->chunk + 4, type, 4);
    put32(p->chunk + 8 + n, tgi_crc32(0, p->chunk + 4, n + 4));
    const uint64_t at = p->at;
    p->at += n + 12;
    return tgi_file_pwrite(p->fd, p->path, p->chunk, n + 12, at, err);
}

static tg_status write_head(png *p, int64_t height, int64_t width, int channels, tgi_err *err)
{
    TGI_TRY(tgi_file_pwrite(p->fd, p->path, "\x89PNG\r\n\x1a\n", 8, 0, err));
    p->at = 8;
    uint8_t *d = p->chunk + 8;
    put32(d, (uint32_t)width);
    put32(d + 4, (uint32_t)height);
    memcpy(d + 8, "\x08\x00\x00\x00\x00",
           5); /* 8 bit, grey, deflate, filters, not interlaced */
    d[9] = channels == 3 ? 2 : 0;
    return write_chunk(p, "IHDR", 13, err);
}

static void filter_up(uint8_t *dst, const uint8_t *row, const uint8_t *above, size_t n)
{
    *dst++ = 2;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(row[i] - (above ? above[i] : 0));
}

static tg_status write_rows(png *p, const uint8_t *pixels, int64_t height, size_t row_bytes,
                            size_t pitch, tgi_err *err)
{
    const int64_t band = row_bytes + 1 > ROOM ? 1 : (int64_t)(ROOM / (row_bytes + 1));
    for (int64_t y0 = 0; y0 < height; y0 += band) {
        const int64_t n = height - y0 < band ? height - y0 : band;
        for (int64_t y = y0; y < y0 + n; y++) {
            const uint8_t *row = pixels + (size_t)y * pitch;
            filter_up(p->rows + (size_t)(y - y0) * (row_bytes + 1), row, y ? row - pitch : NULL,
                      row_bytes);
        }
        const size_t got = tgi_deflate_part(p->deflate, p->rows, (size_t)n * (row_bytes + 1),
                                            y0 + n == height, p->chunk + 8, p->cap);
        if (got == SIZE_MAX)
            return tgi_fail(err, TG_E_INTERNAL, "%s: deflate failed", p->path);
        if (got)
            TGI_TRY(write_chunk(p, "IDAT", got, err));
    }
    return write_chunk(p, "IEND", 0, err);
}

static tg_status make_buffers(png *p, size_t row_bytes, void **block, tgi_err *err)
{
    const size_t band = row_bytes + 1 > ROOM ? row_bytes + 1 : ROOM;
    /* Parts may hold back what the parts before gave: room for both, and the window. */
    p->cap = 2 * tgi_deflate_bound(band) + (1u << 18);
    const size_t state = tgi_deflate_state_bytes();
    char *m = *block = tgi_malloc(TGI_TAG_IO, 64 + state + band + p->cap + 16);
    if (!m)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", p->path);
    m += (64 - (uintptr_t)m % 64) % 64;
    p->deflate = tgi_deflate_open(m, 6);
    p->rows = (uint8_t *)m + state;
    p->chunk = p->rows + band;
    return p->deflate ? TG_OK : tgi_fail(err, TG_E_INTERNAL, "%s: deflate", p->path);
}

static tg_status write_file(png *p, const uint8_t *pixels, int64_t height, int64_t width,
                            int channels, size_t pitch, tgi_err *err)
{
    const size_t row_bytes = (size_t)width * (size_t)channels;
    void *block = NULL;
    tg_status st = make_buffers(p, row_bytes, &block, err);
    if (st == TG_OK && (st = tgi_file_open(p->path, 1, &p->fd, err)) == TG_OK) {
        if ((st = tgi_file_truncate(p->fd, p->path, 0, err)) == TG_OK &&
            (st = write_head(p, height, width, channels, err)) == TG_OK)
            st = write_rows(p, pixels, height, row_bytes, pitch, err);
        close(p->fd);
    }
    tgi_free(block);
    return st;
}

tg_status tgi_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                        int channels, size_t pitch, tgi_err *err)
{
    if (height < 1 || width < 1 || height > 1 << 20 || width > 1 << 20 ||
        (channels != 1 && channels != 3))
        return tgi_fail(err, TG_E_ARG, "%s: a picture of %lldx%lldx%d", path, (long long)height,
                        (long long)width, channels);
    if (!tgi_deflate_available())
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s: this build has no zlib to write PNG with",
                        path);
    const size_t n = strlen(path) + sizeof ".partial";
    char *partial = tgi_malloc(TGI_TAG_IO, n);
    if (!partial)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory", path);
    snprintf(partial, n, "%s.partial", path);
    png p = {.fd = -1, .path = partial};
    tg_status st = write_file(&p, pixels, height, width, channels, pitch, err);
    if (st == TG_OK)
        st = tgi_file_rename(partial, path, 1, err);
    if (st != TG_OK && p.fd >= 0)
        tgi_file_unlink(partial, NULL);
    tgi_free(partial);
    return st;
}
