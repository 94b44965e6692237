/* formulas.c - the plain formulas of tegula_estimate.h: bytes of data sets, strategies,
 * batches.
 *
 * @source docs/reference/estimators.md, where each is worked by hand. */
#include "engine/base/arith.h"
#include "engine/base/sized.h"
#include "engine/base/tensor.h"
#include "engine/estimate/estimate.h"

#include <math.h>

tg_status tgi_product(const char *what, const int64_t *factor, int n, uint64_t *out,
                      tgi_err *err)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        if (factor[i] < 1 || !tgi_mul64_ok(p, factor[i], &p))
            return tgi_fail(err, TG_E_ARG, "%s: %s", what,
                            factor[i] < 1 ? "every factor is at least 1"
                                          : "more than 2^63 bytes");
    *out = (uint64_t)p;
    return TG_OK;
}

tg_status tgi_estimate_image_bytes(int64_t n, int64_t height, int64_t width, int64_t channels,
                                   tg_dtype dtype, uint64_t *out)
{
    const int64_t f[] = {n, height, width, channels, (int64_t)tgi_dtype_size(dtype)};
    return out ? tgi_product("images", f, 5, out, NULL) : TG_E_ARG;
}

tg_status tgi_estimate_text_bytes(int64_t n, int64_t length, tg_dtype dtype, uint64_t *out)
{
    const int64_t f[] = {n, 2, length, (int64_t)tgi_dtype_size(dtype)};
    return out ? tgi_product("texts", f, 4, out, NULL) : TG_E_ARG;
}

static int64_t or_default(int64_t v, int64_t otherwise)
{
    return v ? v : otherwise;
}

static tg_dtype type_or(tg_dtype t, tg_dtype otherwise)
{
    return t == TG_DTYPE_NONE ? otherwise : t;
}

tg_status tgi_estimate_vqa(const tg_vqa_spec *spec, tg_vqa_size *out)
{
    tg_vqa_spec own;
    tg_vqa_size r;
    const tg_vqa_spec *s = &own;
    if (!tgi_sized_take(spec, &own, sizeof own) || !tgi_sized_take(out, &r, sizeof r))
        return TG_E_ARG;
    r = (tg_vqa_size){.size = sizeof r};
    const tg_dtype token = type_or(s->token_dtype, TG_DTYPE_I64);
    const int64_t meta[] = {s->samples, or_default(s->metadata_bytes, TG_DATA_METADATA_BYTES)};
    TGI_TRY(tgi_estimate_image_bytes(s->samples, or_default(s->height, TG_DATA_HEIGHT),
                                     or_default(s->width, TG_DATA_WIDTH),
                                     or_default(s->channels, TG_DATA_CHANNELS),
                                     type_or(s->dtype, TG_DTYPE_F32), &r.image_bytes));
    TGI_TRY(tgi_estimate_text_bytes(s->samples,
                                    or_default(s->question_length, TG_DATA_QUESTION_LENGTH),
                                    token, &r.question_bytes));
    TGI_TRY(tgi_estimate_text_bytes(s->samples,
                                    or_default(s->answer_length, TG_DATA_ANSWER_LENGTH), token,
                                    &r.answer_bytes));
    if (s->metadata_bytes != -1)
        TGI_TRY(tgi_product("metadata", meta, 2, &r.metadata_bytes, NULL));
    r.total_bytes =
        tgi_sat_add(tgi_sat_add(r.question_bytes, r.answer_bytes),
                    tgi_sat_add(r.metadata_bytes, s->images_on_disk ? 0 : r.image_bytes));
    if (r.total_bytes > INT64_MAX)
        return TG_E_ARG;
    tgi_sized_give(out, &r);
    return TG_OK;
}

/* Written so that nothing wraps: n < a / 2 is n < a - n, and n < 2 a is n / 2 < a for an even
 * n.
 */
tg_data_strategy tgi_estimate_strategy(uint64_t needed, uint64_t available)
{
    if (needed < available && needed < available - needed)
        return TG_DATA_SMALL;
    if (needed / 2 < available)
        return TG_DATA_MEDIUM;
    return TG_DATA_LARGE;
}

const char *tgi_data_strategy_name(tg_data_strategy s)
{
    return s == TG_DATA_SMALL ? "small" : s == TG_DATA_MEDIUM ? "medium" : "large";
}

/* ---- Batches ----------------------------------------------------------------------------- */

uint64_t tgi_power_of_two(uint64_t v)
{
    uint64_t p = v ? 1 : 0;
    while (p && p <= v / 2)
        p *= 2;
    return p;
}

/* floor((memory - weights) x share / sample), and what is missing for one sample. */
static tg_batch_size batch_of(double memory, double weights, double sample)
{
    tg_batch_size b = {.weights_bytes = (uint64_t)weights};
    const double left = (memory - weights) * TG_BATCH_SHARE;
    b.raw = left >= sample ? (uint64_t)(left / sample) : 0;
    b.batch = tgi_power_of_two(b.raw);
    if (!b.batch)
        b.shortfall_bytes = (uint64_t)ceil(weights + sample / TG_BATCH_SHARE - memory);
    return b;
}

tg_status tgi_formula_batch(const tg_batch_spec *spec, tg_batch_result *out)
{
    tg_batch_spec own;
    tg_batch_result r;
    const tg_batch_spec *s = &own;
    if (!tgi_sized_take(spec, &own, sizeof own) || !tgi_sized_take(out, &r, sizeof r) ||
        s->parameters < 1 || s->parameters > (int64_t)1e15 || s->memory_bytes < 1 ||
        s->length < -1)
        return TG_E_ARG;
    const int64_t image[] = {or_default(s->height, TG_DATA_HEIGHT),
                             or_default(s->width, TG_DATA_WIDTH), 3, 4};
    const int64_t text[] = {or_default(s->length, TG_BATCH_LENGTH),
                            or_default(s->hidden, TG_BATCH_HIDDEN), 4};
    uint64_t pixels = 0, tokens = 0;
    TGI_TRY(tgi_product("sample", image, 4, &pixels, NULL));
    if (s->length != -1)
        TGI_TRY(tgi_product("text", text, 3, &tokens, NULL));
    r = (tg_batch_result){.size = sizeof r, .sample_bytes = pixels + tokens};
    const double sample = (double)r.sample_bytes, memory = (double)s->memory_bytes;
    const double p = (double)s->parameters;
    /* The published formula says GB for millions x 4 / 1000 and subtracts it from GiB. */
    r.published = batch_of(memory, p / 1e6 * 4 / 1000 * TGI_GIB, sample);
    r.exact = batch_of(memory, p * 4, sample);
    tgi_sized_give(out, &r);
    return r.exact.batch ? TG_OK : TG_E_BUDGET;
}
