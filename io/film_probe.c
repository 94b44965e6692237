/* film_probe.c - which files are films: by their first bytes, and where they have no head by their names. */
#include "io/io_formats.h"
#include "io/y4m.h"

#include <string.h>
#include <strings.h>

static int begins(const uint8_t *head, size_t n, size_t at, const char *bytes, size_t m)
{
    return at + m <= n && memcmp(head + at, bytes, m) == 0;
}

/* An MP4 or MOV that is no still image (HEIF, AVIF, JPEG 2000). */
static int is_mp4(const uint8_t *head, size_t n)
{
    static const char still[][5] = {"heic", "heix", "mif1", "msf1", "avif",
                                    "avis", "jp2 ", "jpx ", "crx "};
    if (begins(head, n, 4, "moov", 4) || begins(head, n, 4, "mdat", 4) ||
        begins(head, n, 4, "wide", 4))
        return 1;
    if (!begins(head, n, 4, "ftyp", 4))
        return 0;
    for (size_t i = 0; i < sizeof still / sizeof still[0]; i++)
        if (begins(head, n, 8, still[i], 4))
            return 0;
    return 1;
}

static int ends_in(const char *path, const char *const *ends)
{
    const size_t n = strlen(path);
    for (; *ends; ends++) {
        const size_t m = strlen(*ends);
        if (n > m && strcasecmp(path + n - m, *ends) == 0)
            return 1;
    }
    return 0;
}

/* Streams without a head of their own go by their names, too. */
int tgi_film_probe(const uint8_t *head, size_t n, const char *path)
{
    static const char *const raw[] = {".264", ".h264", ".avc", ".265", ".h265", ".hevc", NULL};
    static const char *const tape[] = {".dv", ".dif", NULL};
    static const char *const streams[] = {".ts",   ".m2ts", ".mts", ".mpg",
                                          ".mpeg", ".vob",  NULL};
    const int start = begins(head, n, 0, "\0\0\0\1", 4) || begins(head, n, 0, "\0\0\1", 3);
    return is_mp4(head, n) || begins(head, n, 0, "\x1a\x45\xdf\xa3", 4) ||
           (begins(head, n, 0, "RIFF", 4) && begins(head, n, 8, "AVI ", 4)) ||
           begins(head, n, 0, "GIF8", 4) || begins(head, n, 0, "OggS", 4) ||
           begins(head, n, 0, "FLV\1", 4) || begins(head, n, 0, "DKIF", 4) ||
           begins(head, n, 0, "nut/multimedia", 14) ||
           begins(head, n, 0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11", 8) || /* ASF: .wmv */
           begins(head, n, 0, "\x06\x0e\x2b\x34\x02\x05\x01\x01", 8) || /* MXF */
           begins(head, n, 0, TGI_Y4M_BEGINS, strlen(TGI_Y4M_BEGINS)) ||
           (start && ends_in(path, raw)) ||
           (begins(head, n, 0, "\x1f\x07\0", 3) && ends_in(path, tape)) ||
           ((start || begins(head, n, 0, "\x47", 1) || begins(head, n, 4, "\x47", 1)) &&
            ends_in(path, streams)); /* .m2ts: four bytes of time before each packet */
}
