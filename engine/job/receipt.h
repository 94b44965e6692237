/* receipt.h - OUT.tegula.json: what was done, with what, and what it took. */
#ifndef TGI_RECEIPT_H
#define TGI_RECEIPT_H

#include "engine/ends/input_hash.h"
#include "engine/job/job.h"
#include "engine/out/fingerprint_text.h"

/* Which bytes went in and came out. The output's checksum is joined from its tiles': it covers
 * the whole file as it will be, but is no cryptographic one. */
typedef struct tgi_receipt_files {
    tgi_input_digest input;
    uint64_t output_bytes;
    uint32_t output_crc32c;
} tgi_receipt_files;

/* Written just before the output gets its name. `sets`: statistics used; `fingerprint`: the
 * job's. */
tg_status tgi_receipt_write(const tg_job *job, const tg_run_result *res, const tgi_stats *sets,
                            const char *fingerprint, const tgi_receipt_files *files,
                            tgi_err *err);

/* The receipt beside an output, if it tells of the file that is there; NULL. Returned; tgi_json_free. */
tgi_json *tgi_receipt_of(const char *output);
/* The fingerprint of the job that wrote it, line by line. */
void tgi_receipt_fingerprint(const tgi_json *receipt, tgi_lines *t);

#endif
