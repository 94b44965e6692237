/* describe_weights.c - see describe_weights.h. */
#include "engine/verbs/describe_weights.h"

#include "engine/base/cancel.h"
#include "io/weights.h"

#include <string.h>

int tgi_names_weights(const char *path)
{
    static const char *const end[] = {".pth", ".pt", ".ckpt", ".safetensors"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++) {
        const size_t k = strlen(end[i]);
        if (n > k && strcmp(path + n - k, end[i]) == 0)
            return 1;
    }
    return 0;
}

static void put_tensor(tgi_jw *w, const tgi_weight *t)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "name", t->name);
    tgi_jw_str(w, "dtype", tgi_dtype_name(t->desc.dtype));
    tgi_jw_begin(w, "shape", '[');
    for (int k = 0; k < t->desc.rank; k++)
        tgi_jw_int(w, NULL, t->desc.dim[k]);
    tgi_jw_end(w, ']');
    tgi_jw_end(w, '}');
}

static tg_status put_all(tgi_jw *w, const tgi_weights *f, tgi_err *err)
{
    const int n = tgi_weights_count(f);
    int64_t elements = 0;
    uint64_t bytes = 0, mapped = 0;
    tgi_held held;
    for (int i = 0; i < n; i++) {
        const tgi_weight *t = tgi_weights_at(f, i);
        elements += (int64_t)(t->bytes / tgi_dtype_size(t->desc.dtype));
        bytes += t->bytes;
        mapped += tgi_weights_mapped(f, i) ? t->bytes : 0;
    }
    tgi_weights_held(f, &held);
    tgi_jw_str(w, "kind", "weights");
    tgi_jw_str(w, "format", tgi_weights_format(f));
    tgi_jw_int(w, "tensors", n);
    tgi_jw_int(w, "elements", elements);
    tgi_jw_uint(w, "tensor_bytes", bytes);
    tgi_jw_uint(w, "mapped_bytes", mapped);
    tgi_jw_uint(w, "file_bytes", held.was.size);
    tgi_jw_begin(w, "tensor_list", '[');
    for (int i = 0; i < n; i++) {
        TGI_TRY(tgi_check_cancel(err));
        put_tensor(w, tgi_weights_at(f, i));
    }
    tgi_jw_end(w, ']');
    return TG_OK;
}

tg_status tgi_describe_weights(const char *path, tgi_jw *w, tgi_err *err)
{
    tgi_weights *f = NULL;
    TGI_TRY(tgi_weights_open(path, &f, err));
    const tg_status st = put_all(w, f, err);
    tgi_weights_close(&f);
    return st;
}
