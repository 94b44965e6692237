/* zip_file.h - the records of a ZIP archive that lies in memory, by libzip.
 *
 * A record that is stored as it is can be looked at where it lies: libzip says where by reading it (zip_file.c). Others are
 * unpacked by deflate, and are refused where they would become more than 100 times larger. Nothing is unpacked before somebody
 * asks for bytes of it. Without libzip tgi_zip_open answers TG_E_UNSUPPORTED. */
#ifndef TGI_ZIP_FILE_H
#define TGI_ZIP_FILE_H

#include "engine/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_zip tgi_zip;

typedef struct tgi_zip_record {
    const char *name; /* a view */
    uint64_t bytes;   /* unpacked */
    uint64_t packed;  /* in the archive */
    bool stored;      /* as it is: at `at` */
    uint64_t at;      /* first byte in the archive */
} tgi_zip_record;

/* `bytes` are borrowed for the life. Returned; tgi_zip_close. TG_E_FORMAT: no archive, more than 2 MiB of directory, two
 * records of one name. */
tg_status tgi_zip_open(const uint8_t *bytes, size_t n, tgi_zip **out, tgi_err *err);
void tgi_zip_close(tgi_zip **z);
/* The first record in the archive's directory; NULL: there is none. */
const char *tgi_zip_first(const tgi_zip *z);
/* The i-th name of the directory; NULL: there are no more. */
const char *tgi_zip_name(const tgi_zip *z, int64_t i);
/* The record with that name, or -1. */
int64_t tgi_zip_find(const tgi_zip *z, const char *name);
/* Look where a record lies, once: TG_E_FORMAT where that is not in the archive, TG_E_UNSUPPORTED other methods than deflate,
 * encryption. *out is a view. */
tg_status tgi_zip_locate(tgi_zip *z, int64_t i, const tgi_zip_record **out, tgi_err *err);
/* Bytes of the records that were located and are not stored, unpacked. */
uint64_t tgi_zip_unpacked(const tgi_zip *z);
/* TG_E_FORMAT where two of the records that were located share bytes. */
tg_status tgi_zip_check_apart(const tgi_zip *z, tgi_err *err);
/* Read all of a record, to compare its checksum. TG_E_FORMAT: damaged. */
tg_status tgi_zip_check(tgi_zip *z, int64_t i, tgi_err *err);
/* n bytes of a record, unpacked, from `from` on. TG_E_FORMAT: damaged, or shorter. */
tg_status tgi_zip_read(tgi_zip *z, int64_t i, uint64_t from, void *dst, size_t n, tgi_err *err);

#endif
