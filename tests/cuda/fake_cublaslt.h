/* fake_cublaslt.h - what the emulated device gives the pretended cuBLASLt (fake_cublaslt.cc): a
 * queue to work in and memory to take. The library shows one function beside those of the real
 * one, tg_fake_device, by which the emulated runtime introduces itself. */
#ifndef TG_FAKE_CUBLASLT_H
#define TG_FAKE_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

typedef struct tg_fake_device_calls {
    /* fn on a copy of `arg`, when the stream comes there; at once without a stream. */
    void (*put)(void *stream, void (*fn)(void *arg), const void *arg, size_t bytes);
    /* Take (or, negative, give back) device memory; 0: there is not so much. */
    int (*take)(int64_t bytes);
} tg_fake_device_calls;

#define TG_FAKE_DEVICE_SYMBOL "tg_fake_device"
typedef void (*tg_fake_device_fn)(const tg_fake_device_calls *calls);

#endif
