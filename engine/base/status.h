/* status.h - what went wrong, as a code for the program and one line for the person.
 *
 * The codes are public (tegula.h); this header adds the carrier of the detail line that every
 * internal function which can fail takes as its last argument. One `tgi_err` travels down from
 * the public call; the first failure fills it, later ones (from cleaning up) leave it alone. */
#ifndef TGI_STATUS_H
#define TGI_STATUS_H

#include "tegula.h"

#define TGI_ERR_TEXT 768

typedef struct tgi_err {
    tg_status code;          /* TG_OK while nothing failed */
    uint64_t tried_bytes;    /* of a memory refusal: what was asked for; 0: not noted */
    const char *asked_by;    /* of the same: who asked; static, or NULL */
    const char *try_option;  /* with which it would go, static, or NULL: */
    char try_value[240];     /* of it; several are a line each */
    char text[TGI_ERR_TEXT]; /* "what, where, expected, found, try" in one line, no newline */
} tgi_err;

#if defined(__GNUC__)
#define TGI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TGI_PRINTF(f, a)
#endif

/* Record `st` and its detail in `err` (NULL allowed) unless a failure is there already.
 * Returns `st`, so callers write `return tgi_fail(err, TG_E_FORMAT, "...", ...);`.
 * Bytes below 0x20 that came in through arguments are shown as '?': a file name or tag from a
 * stranger cannot forge a second line. */
tg_status tgi_fail(tgi_err *err, tg_status st, const char *fmt, ...) TGI_PRINTF(3, 4);

#ifdef __clang_analyzer__ /* tell the analyser what it cannot see: the status comes back */
#define tgi_fail(err, st, ...) ((void)tgi_fail(err, st, __VA_ARGS__), (st))
#endif

/* Note beside a recorded memory refusal (TG_E_BUDGET, TG_E_NOMEM) who asked for how much; the
 * first note stays. `asked_by` static. Returns the recorded code. */
tg_status tgi_err_tried(tgi_err *err, tg_status st, const char *asked_by, uint64_t bytes);
/* Note beside a recorded failure the option, without dashes and static, and what
 * values of it would do, a line each. Returns `st`. */
tg_status tgi_err_try(tgi_err *err, tg_status st, const char *option, const char *value);
#define TGI_TRY_CHANNELS "channels"
/* A reader at open: so many bytes for decoding would be enough (engine/job/job_open.h says of
 * which budget). A trial with more takes address space alone. */
#define TGI_DECODER_ASKS "the decoder"
#define TGI_HEADER_ASKS "the file's header" /* the same, which a trial would take at once */
#define TGI_CALLER_ASKS "a function of the caller's" /* it answered so: no figures of ours */

/* Put `prefix: ` before a recorded detail ("model.onnx: "), keeping its code. */
void tgi_err_prefix(tgi_err *err, const char *fmt, ...) TGI_PRINTF(2, 3);

/* Pass a failing status up unchanged. */
#define TGI_TRY(expr)                                                                          \
    do {                                                                                       \
        const tg_status tgi_try_st_ = (expr);                                                  \
        if (tgi_try_st_ != TG_OK)                                                              \
            return tgi_try_st_;                                                                \
    } while (0)

/* Behind tg_status_name and tg_status_sentence. */
const char *tgi_status_name(tg_status st);
const char *tgi_status_sentence(tg_status st);

#endif
