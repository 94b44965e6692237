/* zip_absent.c - stands in for zip_file.c in a build without libzip: an archive is refused by name. */
#include "io/zip_file.h"

tg_status tgi_zip_open(const uint8_t *bytes, size_t n, tgi_zip **out, tgi_err *err)
{
    (void)bytes, (void)n, (void)out;
    return tgi_fail(
        err, TG_E_UNSUPPORTED,
        "a ZIP archive: this build was made without libzip; it reads safetensors, and "
        "what torch.save writes with _use_new_zipfile_serialization=False");
}

void tgi_zip_close(tgi_zip **z)
{
    (void)z;
}

const char *tgi_zip_first(const tgi_zip *z)
{
    (void)z;
    return NULL;
}

const char *tgi_zip_name(const tgi_zip *z, int64_t i)
{
    (void)z, (void)i;
    return NULL;
}

int64_t tgi_zip_find(const tgi_zip *z, const char *name)
{
    (void)z, (void)name;
    return -1;
}

static tg_status absent(tgi_err *err)
{
    return tgi_fail(err, TG_E_INTERNAL, "no archive is open without libzip");
}

tg_status tgi_zip_locate(tgi_zip *z, int64_t i, const tgi_zip_record **out, tgi_err *err)
{
    (void)z, (void)i, (void)out;
    return absent(err);
}

uint64_t tgi_zip_unpacked(const tgi_zip *z)
{
    (void)z;
    return 0;
}

tg_status tgi_zip_check_apart(const tgi_zip *z, tgi_err *err)
{
    (void)z;
    return absent(err);
}

tg_status tgi_zip_read(tgi_zip *z, int64_t i, uint64_t from, void *dst, size_t n, tgi_err *err)
{
    (void)z, (void)i, (void)from, (void)dst, (void)n;
    return absent(err);
}

tg_status tgi_zip_check(tgi_zip *z, int64_t i, tgi_err *err)
{
    (void)z, (void)i;
    return absent(err);
}
