/* journal_file.c - bytes of OUT.journal: lock, slots, texts, the count. A slot is believed only
 * when its own checksum, its records' and its texts' agree (invariant 2 of journal.c). */
#include "engine/out/journal_file.h"

#include "engine/base/mem.h"
#include "engine/base/versions.h"
#include "io/crc32c.h"
#include "io/file_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES 8
#define BEGUN_AT 8
#define FRAMES_AT 24
#define BESIDE_AT 40
#define ABOUT_AT 64
#define INPUT_AT 3584
#define SLOT_AT(sequence) (4096u + 4096u * (uint64_t)((sequence) % 2))
#define SLOT_MAGIC 0x746f6c732d6a6774ull

/* ---- Whose it is ------------------------------------------------------------------------- */

static uint32_t slot_check(const tgi_journal_slot *s)
{
    return tgi_crc32c(0, s, offsetof(tgi_journal_slot, check));
}

/* Has it a slot with our number and its own checksum? Nobody else writes one. */
static int has_slot(int fd)
{
    tgi_journal_slot s;
    for (unsigned i = 0; i < 2; i++)
        if (pread(fd, &s, sizeof s, (off_t)SLOT_AT(i)) == (ssize_t)sizeof s &&
            s.magic == SLOT_MAGIC && s.check == slot_check(&s))
            return 1;
    return 0;
}

/* ---- Lock -------------------------------------------------------------------------------- */

tg_status tgi_journal_file_lock(tgi_journal_file *f, const char *output, tgi_err *err)
{
    const tgi_left left = {
        .path = f->name, .output = output, .begins = TGI_JOURNAL_HEAD, .known = has_slot};
    return tgi_file_open_locked(&left, &f->fd, err);
}

/* ---- Reading ----------------------------------------------------------------------------- */

uint64_t tgi_journal_record_at(const tgi_journal_slot *s, int64_t i)
{
    return s->records_at + (uint64_t)i * sizeof(tgi_journal_record);
}

/* Read a text a slot points to; *ok = 0 when it is not what the slot promises. */
static tg_status read_text(const tgi_journal_file *f, const tgi_journal_text *ref,
                           uint64_t size, void **out, int *ok, tgi_err *err)
{
    *ok = ref->at <= size && ref->bytes <= size - ref->at;
    if (!*ok)
        return TG_OK;
    char *p = tgi_malloc(TGI_TAG_JOURNAL, ref->bytes + 1);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for %llu bytes", f->name,
                        (unsigned long long)ref->bytes);
    const tg_status st = tgi_file_pread(f->fd, f->name, p, ref->bytes, ref->at, err);
    p[ref->bytes] = 0;
    *ok = st == TG_OK && tgi_crc32c(0, p, ref->bytes) == ref->check;
    tgi_free(*out);
    *out = p;
    return st;
}

/* Are the records a slot counts all there, and as it says? Where there is none yet, the file may end
 * before their place. */
static tg_status records_hold(const tgi_journal_file *f, const tgi_journal_slot *s,
                              uint64_t size, int *ok, tgi_err *err)
{
    *ok = !s->n_tiles || (s->records_at <= size &&
                          s->n_tiles <= (size - s->records_at) / sizeof(tgi_journal_record));
    if (!*ok)
        return TG_OK;
    uint32_t check = 0;
    char part[4096];
    uint64_t at = s->records_at;
    for (uint64_t left = s->n_tiles * sizeof(tgi_journal_record); left;) {
        const size_t n = left < sizeof part ? (size_t)left : sizeof part;
        TGI_TRY(tgi_file_pread(f->fd, f->name, part, n, at, err));
        check = tgi_crc32c(check, part, n);
        at += n;
        left -= n;
    }
    *ok = check == s->records_check;
    return TG_OK;
}

/* Read both slots and take the newest that holds. */
static tg_status find_slot(const tgi_journal_file *f, uint64_t size, tgi_journal_found *out,
                           tgi_err *err)
{
    static const tgi_journal_slot zero;
    tgi_journal_slot s[2];
    memset(s, 0, sizeof s);
    for (unsigned i = 0; i < 2; i++)
        if (size >= SLOT_AT(i) + sizeof s[i]) {
            TGI_TRY(tgi_file_pread(f->fd, f->name, &s[i], sizeof s[i], SLOT_AT(i), err));
            out->tried += memcmp(&s[i], &zero, sizeof zero) != 0;
        }
    const unsigned first = s[1].sequence > s[0].sequence;
    for (unsigned k = 0; k < 2 && !out->found; k++) {
        const tgi_journal_slot *c = &s[first ^ k];
        if (c->magic != SLOT_MAGIC || c->check != slot_check(c) ||
            c->sequence % 2 != (first ^ k))
            continue;
        int ok;
        TGI_TRY(records_hold(f, c, size, &ok, err));
        if (ok)
            TGI_TRY(read_text(f, &c->job, size, &out->job, &ok, err));
        if (ok)
            TGI_TRY(read_text(f, &c->stats, size, &out->stats, &ok, err));
        if (ok) {
            out->slot = *c;
            out->found = 1;
        }
    }
    return TG_OK;
}

static void make_head(char out[HEAD_BYTES + 1])
{
    _Static_assert(TGI_JOURNAL_FORMAT > 0 && TGI_JOURNAL_FORMAT < 100, "two digits");
    snprintf(out, HEAD_BYTES + 1, TGI_JOURNAL_HEAD "%02d", TGI_JOURNAL_FORMAT % 100);
}

/* The format that a head of another tegula names; 0: it is none. */
static int other_format(const char head[HEAD_BYTES])
{
    const int tens = head[6] - '0', ones = head[7] - '0';
    const int is_head = memcmp(head, TGI_JOURNAL_HEAD, 6) == 0 && tens >= 0 && tens <= 9 &&
                        ones >= 0 && ones <= 9;
    return is_head ? 10 * tens + ones : 0;
}

static int is_damaged_head(const tgi_journal_file *f, const char *head, size_t n)
{
    return n == HEAD_BYTES &&
           (tgi_bits_differ(head, TGI_JOURNAL_HEAD, 6) <= TGI_FEW_BITS || has_slot(f->fd));
}

tg_status tgi_journal_file_look(const tgi_journal_file *f, tgi_journal_found *out, tgi_err *err)
{
    uint64_t size;
    *out = (tgi_journal_found){0};
    TGI_TRY(tgi_file_size(f->fd, f->name, &size, err));
    char head[HEAD_BYTES] = {0}, want[HEAD_BYTES + 1];
    const size_t n = size < sizeof head ? (size_t)size : sizeof head;
    make_head(want);
    TGI_TRY(tgi_file_pread(f->fd, f->name, head, n, 0, err));
    out->head = n == sizeof head;
    if (memcmp(head, want, n) == 0)
        return find_slot(f, size, out, err);
    out->format = n == sizeof head ? other_format(head) : 0;
    if (!out->format && is_damaged_head(f, head, n))
        out->tried = 2;
    return out->format || out->tried
               ? TG_OK
               : tgi_fail(
                     err, TG_E_FORMAT,
                     "%s: is not a journal of tegula; move it away or choose another output",
                     f->name);
}

/* ---- Writing ----------------------------------------------------------------------------- */

/* Never shorter than the head in between: by that the files beside it are known for ours. */
tg_status tgi_journal_file_head(const tgi_journal_file *f, tgi_err *err)
{
    char head[HEAD_BYTES + 1];
    uint64_t size;
    make_head(head);
    TGI_TRY(tgi_file_size(f->fd, f->name, &size, err));
    if (size > HEAD_BYTES)
        TGI_TRY(tgi_file_truncate(f->fd, f->name, HEAD_BYTES, err));
    return tgi_file_pwrite(f->fd, f->name, head, HEAD_BYTES, 0, err);
}

tg_status tgi_journal_file_slot(const tgi_journal_file *f, tgi_journal_slot *s, tgi_err *err)
{
    s->magic = SLOT_MAGIC;
    s->check = slot_check(s);
    return tgi_file_pwrite(f->fd, f->name, s, sizeof *s, SLOT_AT(s->sequence), err);
}

tg_status tgi_journal_file_text(const tgi_journal_file *f, const void *text, size_t n,
                                uint64_t at, tgi_journal_text *ref, tgi_err *err)
{
    *ref = (tgi_journal_text){.at = at, .bytes = n, .check = tgi_crc32c(0, text, n)};
    return n ? tgi_file_pwrite(f->fd, f->name, text, n, at, err) : TG_OK;
}

/* ---- The counts -------------------------------------------------------------------------- */

static int64_t read_count(const tgi_journal_file *f, off_t at)
{
    int64_t n[2] = {0};
    return pread(f->fd, n, sizeof n, at) == sizeof n && n[0] > 0 && n[1] == ~n[0] ? n[0] : 0;
}

/* Not through file_ops.h: it is no operation that durability depends on, and one count comes from the
 * computing thread, whose place among the committer's operations is chance. */
static void write_count(const tgi_journal_file *f, off_t at, int64_t n)
{
    const int64_t both[2] = {n, ~n};
    if (pwrite(f->fd, both, sizeof both, at) != sizeof both)
        return; /* a number less in a report */
}

int64_t tgi_journal_file_begun(const tgi_journal_file *f)
{
    return read_count(f, BEGUN_AT);
}

void tgi_journal_file_set_begun(const tgi_journal_file *f, int64_t n)
{
    write_count(f, BEGUN_AT, n);
}

int64_t tgi_journal_file_frames(const tgi_journal_file *f)
{
    return read_count(f, FRAMES_AT);
}

void tgi_journal_file_set_frames(const tgi_journal_file *f, int64_t n)
{
    write_count(f, FRAMES_AT, n);
}

int64_t tgi_journal_file_beside(const tgi_journal_file *f)
{
    return read_count(f, BESIDE_AT);
}

void tgi_journal_file_set_beside(const tgi_journal_file *f, int64_t bits)
{
    write_count(f, BESIDE_AT, bits);
}

/* ---- About ------------------------------------------------------------------------------- */

static uint32_t about_check(const tgi_journal_about *a)
{
    return tgi_crc32c(0, a, offsetof(tgi_journal_about, check));
}

int tgi_journal_file_about(const tgi_journal_file *f, tgi_journal_about *out)
{
    return pread(f->fd, out, sizeof *out, ABOUT_AT) == sizeof *out && out->began > 0 &&
           out->check == about_check(out) && !out->input[sizeof out->input - 1] &&
           !out->model[sizeof out->model - 1];
}

void tgi_journal_file_set_about(const tgi_journal_file *f, tgi_journal_about *a)
{
    a->check = about_check(a);
    if (pwrite(f->fd, a, sizeof *a, ABOUT_AT) != sizeof *a)
        return; /* a line less in a report */
}

/* ---- The input --------------------------------------------------------------------------- */

static uint32_t input_check(const tgi_journal_input *in)
{
    return tgi_crc32c(0, in, offsetof(tgi_journal_input, check));
}

int tgi_journal_file_input(const tgi_journal_file *f, char sha256[TGI_SHA256_TEXT])
{
    tgi_journal_input in;
    if (pread(f->fd, &in, sizeof in, INPUT_AT) != sizeof in || in.check != input_check(&in) ||
        strnlen(in.sha256, sizeof in.sha256) != sizeof in.sha256 - 1)
        return 0;
    memcpy(sha256, in.sha256, sizeof in.sha256);
    return 1;
}

void tgi_journal_file_set_input(const tgi_journal_file *f, const char *sha256)
{
    tgi_journal_input in = {.sha256 = ""};
    snprintf(in.sha256, sizeof in.sha256, "%s", sha256);
    in.check = input_check(&in);
    if (pwrite(f->fd, &in, sizeof in, INPUT_AT) != sizeof in)
        return; /* then only times tell */
}
