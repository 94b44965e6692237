/* convert_weights.c - weights of any file that is read, as safetensors.
 *
 * Types and elements stay as they are, names are those that `tegula info` shows. Tensors of wide elements come first, as the
 * format's own writer has them, so that each one is aligned and can be used where it lies. The output grows as OUT.partial and
 * gets its name when it is whole (io/part.h); the input is never replaced (engine/out/gate.h).
 *
 * @source the README of safetensors. */
#include "engine/verbs/convert_weights.h"

#include "engine/base/cancel.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/out/gate.h"
#include "io/bytes.h"
#include "io/part.h"
#include "io/weights.h"

#include <stdio.h>
#include <string.h>

#define WIDEST 8

static const char *type_of(tg_dtype t)
{
    static const char *const names[] = {
        [TG_DTYPE_U8] = "U8",     [TG_DTYPE_I8] = "I8",   [TG_DTYPE_U16] = "U16",
        [TG_DTYPE_I16] = "I16",   [TG_DTYPE_U32] = "U32", [TG_DTYPE_I32] = "I32",
        [TG_DTYPE_U64] = "U64",   [TG_DTYPE_I64] = "I64", [TG_DTYPE_F16] = "F16",
        [TG_DTYPE_F32] = "F32",   [TG_DTYPE_F64] = "F64", [TG_DTYPE_BOOL] = "BOOL",
        [TGI_DTYPE_BF16] = "BF16"};
    return names[t];
}

static int is_wide(const tgi_weights *w, int i, size_t width)
{
    return tgi_dtype_size(tgi_weights_at(w, i)->desc.dtype) == width;
}

static void put_tensor(tgi_jw *j, const tgi_weight *t, uint64_t at)
{
    tgi_jw_begin(j, t->name, '{');
    tgi_jw_str(j, "dtype", type_of(t->desc.dtype));
    tgi_jw_begin(j, "shape", '[');
    for (int k = 0; k < t->desc.rank; k++)
        tgi_jw_int(j, NULL, t->desc.dim[k]);
    tgi_jw_end(j, ']');
    tgi_jw_begin(j, "data_offsets", '[');
    tgi_jw_uint(j, NULL, at);
    tgi_jw_uint(j, NULL, at + t->bytes);
    tgi_jw_end(j, ']');
    tgi_jw_end(j, '}');
}

/* The length, the JSON and blanks up to a multiple of 8. *data: bytes of all tensors. Returned; tgi_free. */
static tg_status make_head(const tgi_weights *w, char **head, size_t *n, uint64_t *data,
                           tgi_err *err)
{
    tgi_jw j = {0};
    char *text = NULL;
    *data = 0;
    tgi_jw_begin(&j, NULL, '{');
    tgi_jw_begin(&j, "__metadata__", '{');
    tgi_jw_str(&j, "format", "pt");
    tgi_jw_end(&j, '}');
    for (size_t width = WIDEST; width > 0; width /= 2)
        for (int i = 0; i < tgi_weights_count(w); i++)
            if (is_wide(w, i, width)) {
                put_tensor(&j, tgi_weights_at(w, i), *data);
                *data += tgi_weights_at(w, i)->bytes;
            }
    tgi_jw_end(&j, '}');
    TGI_TRY(tgi_jw_take(&j, &text, err));
    const size_t len = strlen(text), padded = (len + 7) / 8 * 8;
    *head = tgi_malloc(TGI_TAG_IO, 8 + padded);
    if (*head) {
        tgi_save64((uint8_t *)*head, padded, false);
        memset(*head + 8, ' ', padded);
        memcpy(*head + 8, text, len);
        *n = 8 + padded;
    }
    tgi_free(text);
    return *head ? TG_OK
                 : tgi_fail(err, TG_E_NOMEM, "no memory for a header of %zu bytes", len);
}

/* Room for the largest tensor that does not lie in the file as it is wanted. */
static tg_status make_room(const tgi_weights *w, void **room, tgi_err *err)
{
    size_t most = 0;
    for (int i = 0; i < tgi_weights_count(w); i++)
        if (!tgi_weights_mapped(w, i) && tgi_weights_at(w, i)->bytes > most)
            most = tgi_weights_at(w, i)->bytes;
    *room = most ? tgi_malloc(TGI_TAG_IO, most) : NULL;
    return !most || *room
               ? TG_OK
               : tgi_fail(err, TG_E_NOMEM, "no memory for a tensor of %zu bytes", most);
}

static tg_status write_tensors(const tgi_weights *w, tgi_part *p, uint64_t at, void *room,
                               tgi_err *err)
{
    for (size_t width = WIDEST; width > 0; width /= 2)
        for (int i = 0; i < tgi_weights_count(w); i++) {
            const tgi_weight *t = tgi_weights_at(w, i);
            const void *bytes = tgi_weights_mapped(w, i);
            if (!is_wide(w, i, width) || !t->bytes)
                continue;
            TGI_TRY(tgi_check_cancel(err));
            if (!bytes)
                TGI_TRY(tgi_weights_read(w, i, room, err));
            TGI_TRY(tgi_part_write(p, at, bytes ? bytes : room, t->bytes, err));
            at += t->bytes;
        }
    return tgi_weights_unchanged(w, err);
}

static tg_status check_names(const tgi_weights *w, const char *in, const char *out, int replace,
                             tgi_err *err)
{
    static const char end[] = ".safetensors";
    const size_t n = strlen(out), k = sizeof end - 1;
    tgi_gate g = {.yes = replace};
    if (n <= k || strcmp(out + n - k, end) != 0)
        return tgi_fail(err, TG_E_ARG, "%s: weights are written as safetensors: name it %s%s",
                        out, "NAME", end);
    if (tgi_weights_find(w, "__metadata__") >= 0)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s: safetensors has no place for a tensor called __metadata__", in);
    tg_status st = tgi_is_stream(out) /* it is written at any place, so not into a pipe */
                       ? tgi_gate_writes(&g, out, "the output", TGI_GATE_FILE, err)
                       : tgi_gate_writes_whole(&g, out, "the output", ".partial", NULL, err);
    if (st == TG_OK)
        st = tgi_gate_reads(&g, in, "the input", err);
    tgi_gate_close(&g);
    return st;
}

static tg_status write_file(const tgi_weights *w, const char *out, int replace, tgi_err *err)
{
    tgi_part p = TGI_PART_CLOSED;
    char *head = NULL;
    void *room = NULL;
    size_t n = 0;
    uint64_t data;
    TGI_TRY(make_head(w, &head, &n, &data, err));
    const tgi_part_spec spec = {.path = out,
                                .ending = ".partial",
                                .bytes = n + data,
                                .replace = replace,
                                .head = head,
                                .head_bytes = n < 64 ? n : 64};
    tg_status st = make_room(w, &room, err);
    if (st == TG_OK)
        st = tgi_part_create(&spec, &p, err);
    if (st == TG_OK)
        st = tgi_part_write(&p, 0, head, n, err);
    if (st == TG_OK)
        st = write_tensors(w, &p, n, room, err);
    if (st == TG_OK)
        st = tgi_part_sync(&p, err);
    if (st == TG_OK)
        st = tgi_part_name(&p, err);
    tgi_part_drop(&p);
    tgi_free(room);
    tgi_free(head);
    return st;
}

tg_status tgi_convert_weights(const tg_opts *o, tgi_err *err)
{
    const char *in = tgi_opts_str(o, TGI_OPT_INPUT), *out = tgi_opts_str(o, TGI_OPT_OUTPUT);
    const int replace = tgi_opts_flag(o, TGI_OPT_YES);
    tgi_weights *w = NULL;
    if (!in || !out)
        return tgi_fail(err, TG_E_ARG, "convert-weights: name the input and the output");
    TGI_TRY(tgi_weights_open(in, &w, err));
    tg_status st = check_names(w, in, out, replace, err);
    if (st == TG_OK)
        st = write_file(w, out, replace, err);
    tgi_weights_close(&w);
    return st;
}
