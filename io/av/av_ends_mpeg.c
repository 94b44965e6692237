/* av_ends_mpeg.c - whether an MPEG stream ends behind a packet (av_ends.h).
 *
 * Transport streams are packets of one size; those of a recording may begin anywhere, so it is the last of them that count.
 * Of what they carry the last packet is whole or not, as far as it says its length: sound does, and most pictures do not. A
 * recorder stops anywhere, too, so this is no more than a sign. Program streams are packets that say their lengths. Nothing says
 * that a stream goes on behind its last packet.
 * Source: ISO/IEC 13818-1:2015, sections 2.4.3.2 and 2.5.3; ISO/IEC 11172-1:1993, section 2.4.3.2. */
#include "io/av/av_ends.h"

#include "engine/base/arith.h"
#include "io/bytes.h"

#include <stddef.h>
#include <string.h>

#define SYNC 0x47
#define MOST_PACKETS 8 /* at the end of a file, that are looked at */
#define LEAST_PACKETS 3
#define PACKET 188
#define MOST_PIDS 64
#define MOST_CARRIED 20000 /* packets before the end that are looked at for what they carry */

/* 1: from `at` on there is a sync byte each `size` bytes, up to the end, and three of them at least. */
static int is_row(tgi_av_ends *e, int64_t at, int size)
{
    int n = 0;
    for (; at < e->size; at += size, n++) {
        const uint8_t *b = tgi_av_ends_at(e, at, 1);
        if (!b || b[0] != SYNC)
            return 0;
    }
    return n >= LEAST_PACKETS;
}

/* ---- What a transport stream carries ------------------------------------------------------- */

typedef struct carried {
    int pid;
    int64_t lacks; /* of its last packet */
} carried;

/* Bytes that the packet at b, of a PES packet, says to follow and has not. */
static int64_t pes_lacks(const uint8_t *b, int at)
{
    const int n = at + 6 <= PACKET ? tgi_load16(b + at + 4, true) : 0;
    return n && !b[at] && !b[at + 1] && b[at + 2] == 1 ? n + 6 - (PACKET - at) : 0;
}

static void take_packet(const uint8_t *b, carried *of, int *n)
{
    const int pid = (b[1] & 0x1f) << 8 | b[2], starts = b[1] & 0x40;
    const int at = b[3] & 0x20 ? 5 + b[4] : 4; /* of its payload, behind an adaptation field */
    int i = 0;
    while (i < *n && of[i].pid != pid)
        i++;
    if (!(b[3] & 0x10) || at >= PACKET || i == MOST_PIDS || (i == *n && !starts))
        return;
    if (i == *n)
        of[(*n)++].pid = pid;
    of[i].lacks = starts ? pes_lacks(b, at) : of[i].lacks - (PACKET - at);
}

/* Packets of `size` bytes up to `end`, of which the first `lead` are a time. */
static void look_at_carried(tgi_av_ends *e, int64_t end, int size, int lead)
{
    carried of[MOST_PIDS];
    int n = 0;
    for (int64_t k = tgi_min(MOST_CARRIED, end / size); k > 0; k--) {
        const uint8_t *b = tgi_av_ends_at(e, end - k * size + lead, PACKET);
        if (!b || b[0] != SYNC)
            return;
        take_packet(b, of, &n);
    }
    for (int i = 0; i < n; i++)
        if (of[i].lacks > 0)
            e->unended = "the last packet of a track is not whole";
}

/* ---- Streams ----------------------------------------------------------------------------- */

static int ts_ends(tgi_av_ends *e)
{
    static const struct {
        int size, lead;
    } kinds[] = {{188, 0}, {204, 0}, {192, 4}}; /* the last: of discs and camcorders */
    const uint8_t *b = tgi_av_ends_at(e, 0, 5);
    if (!b || (b[0] != SYNC && b[4] != SYNC))
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int k = 0; k < kinds[i].size; k++) {
            const int size = kinds[i].size, lead = kinds[i].lead;
            const int64_t at = tgi_max(0, e->size - MOST_PACKETS * size) + k;
            if (!is_row(e, at, size))
                continue;
            const int64_t more = (e->size - at + lead) % size;
            look_at_carried(e, e->size - more, size, lead);
            if (more)
                tgi_av_ends_in(e, e->size - more, e->size - more + size, "its last packet");
            return 1;
        }
    return 0;
}

/* Behind what begins at `at` with a start code; 0: nobody knows what it is, -1: the file ends in its head. */
static int64_t ps_behind(tgi_av_ends *e, int64_t at)
{
    const uint8_t *b = tgi_av_ends_at(e, at, 4);
    const int code = b ? b[3] : 0;
    if (code == 0xb9) /* the end, behind which another may follow */
        return at + 4;
    if (code < 0xba)
        return 0;
    b = tgi_av_ends_at(e, at, 6);
    if (!b)
        return -1;
    if (code != 0xba)
        return at + 6 + tgi_load16(b + 4, true);
    if (b[4] >> 4 == 2) /* a pack of MPEG-1 */
        return at + 12;
    b = tgi_av_ends_at(e, at, 14);
    return b ? at + 14 + (b[13] & 7) : -1;
}

static int ps_ends(tgi_av_ends *e)
{
    static const uint8_t start[] = {0, 0, 1, 0xba};
    const uint8_t *b = tgi_av_ends_at(e, 0, 4);
    if (!b || memcmp(b, start, 4) != 0)
        return 0;
    int in_zeros = 0;
    for (int64_t at = 0; at < e->size && !e->of;) {
        const int n = (int)tgi_min(e->size - at, 4), m = n < 3 ? n : 3;
        b = tgi_av_ends_at(e, at, n);
        if (b && (memcmp(b, start, (size_t)m) != 0 || (in_zeros && n < 4))) {
            if (b[0])
                break;
            in_zeros = 1; /* between packs */
            at++;
            continue;
        }
        in_zeros = 0;
        const int64_t next = b && n == 4 ? ps_behind(e, at) : -1;
        if (next == 0)
            break;
        if (next < 0 || next > e->size)
            tgi_av_ends_in(e, at, next, "its last packet");
        at = next;
    }
    return 1;
}

int tgi_av_ends_mpeg(tgi_av_ends *e)
{
    return ts_ends(e) || ps_ends(e);
}
