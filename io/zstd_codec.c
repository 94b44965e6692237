/* zstd_codec.c - libzstd behind zstd_codec.h. The context is "static": it lives in our block
 * and never allocates. The parameters are fixed for the tile size at open, so that the size we
 * book is the size it uses. Source: zstd.h, sections "static allocation" and "advanced API". */
#include "io/zstd_codec.h"

#ifdef TG_HAVE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticCCtx and the size estimates */
#include <zstd.h>

static int level_or_default(int level)
{
    return level ? level : TGI_ZSTD_LEVEL;
}

int tgi_zstd_available(void)
{
    return 1;
}

const char *tgi_zstd_version(void)
{
    return ZSTD_versionString();
}

size_t tgi_zstd_bound(size_t n)
{
    return ZSTD_compressBound(n);
}

size_t tgi_zstd_state_bytes(int level, size_t n)
{
    const ZSTD_compressionParameters p = ZSTD_getCParams(level_or_default(level), n, 0);
    return (ZSTD_estimateCCtxSize_usingCParams(p) + 63) / 64 * 64;
}

void *tgi_zstd_open(void *memory, int level, size_t n)
{
    const ZSTD_compressionParameters p = ZSTD_getCParams(level_or_default(level), n, 0);
    /* A static context has no defaults: not the size in each frame either, which Bio-Formats needs. */
    ZSTD_CCtx *c = ZSTD_initStaticCCtx(memory, tgi_zstd_state_bytes(level, n));
    if (!c)
        return NULL;
    const struct {
        ZSTD_cParameter which;
        unsigned value;
    } set[] = {{ZSTD_c_windowLog, p.windowLog}, {ZSTD_c_hashLog, p.hashLog},
               {ZSTD_c_chainLog, p.chainLog},   {ZSTD_c_searchLog, p.searchLog},
               {ZSTD_c_minMatch, p.minMatch},   {ZSTD_c_targetLength, p.targetLength},
               {ZSTD_c_strategy, p.strategy},   {ZSTD_c_checksumFlag, 1},
               {ZSTD_c_contentSizeFlag, 1}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        if (ZSTD_isError(ZSTD_CCtx_setParameter(c, set[i].which, (int)set[i].value)))
            return NULL;
    return c;
}

size_t tgi_zstd(void *state, const void *src, size_t n, void *dst, size_t cap)
{
    const size_t got = ZSTD_compress2(state, dst, cap, src, n);
    return ZSTD_isError(got) ? 0 : got;
}

#else

int tgi_zstd_available(void)
{
    return 0;
}

const char *tgi_zstd_version(void)
{
    return "absent";
}

size_t tgi_zstd_bound(size_t n)
{
    return n;
}

size_t tgi_zstd_state_bytes(int level, size_t n)
{
    (void)level, (void)n;
    return 0;
}

void *tgi_zstd_open(void *memory, int level, size_t n)
{
    (void)memory, (void)level, (void)n;
    return NULL;
}

size_t tgi_zstd(void *state, const void *src, size_t n, void *dst, size_t cap)
{
    (void)state, (void)src, (void)n, (void)dst, (void)cap;
    return 0;
}

#endif
