/* fuzz_set.c - names of files, patterns that stand for some of them, and an OME-XML that names
 * them too: a folder is made of what the bytes say, opened as a stack, and read.
 *
 * Lines: what to open ("": the folder), --z, --c, --t, names of files up to an empty line; the
 * rest is the XML that lies in each .tif and .ome among them. */
#include "tests/fuzz/fuzz_image.h"

#include <fcntl.h>

enum { MOST_FILES = 8, MOST_NAME = 40, MOST_XML = 6000 };

static char folder[] = "/dev/shm/tg_fuzz_XXXXXX";

static void remove_folder(void)
{
    rmdir(folder);
}

/* ---- Files ---- */

static uint8_t *put(uint8_t *at, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (uint8_t)(v >> 8 * i);
    return at;
}

static uint8_t *put_tag(uint8_t *at, uint32_t tag, uint32_t type, uint32_t count, uint32_t v)
{
    return put(put(put(put(at, tag, 2), type, 2), count, 4), v, 4);
}

/* Two pages of 9 x 7 bytes; the first has a description. Returns its size. */
static size_t make_tiff(uint8_t *b, const char *xml)
{
    enum { TAGS = 9, DIRECTORY = 6 + 12 * TAGS, PIXELS = 8, TEXT = PIXELS + 64 };
    const uint32_t n = (uint32_t)strlen(xml) + 1;
    uint32_t at = (TEXT + n + 1) & ~1u;
    memset(b, 0, at);
    put(put(put(b, 0x4949, 2), 42, 2), at, 4);
    for (uint32_t i = 0; i < 63; i++)
        b[PIXELS + i] = (uint8_t)i;
    memcpy(b + TEXT, xml, n);
    for (int page = 0; page < 2; page++, at += DIRECTORY) {
        uint8_t *p = put(b + at, TAGS, 2);
        p = put_tag(p, 256, 4, 1, 9);
        p = put_tag(p, 257, 4, 1, 7);
        p = put_tag(p, 258, 3, 1, 8);
        p = put_tag(p, 259, 3, 1, 1);
        p = put_tag(p, 262, 3, 1, 1);
        p = put_tag(p, 270, 2, page ? 1 : n, page || n <= 4 ? 0 : TEXT);
        p = put_tag(p, 273, 4, 1, PIXELS);
        p = put_tag(p, 278, 4, 1, 7);
        p = put_tag(p, 279, 4, 1, 63);
        put(p, page ? 0 : at + DIRECTORY, 4);
    }
    return at;
}

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static void make_file(int dir, const char *name, const char *xml)
{
    static uint8_t bytes[MOST_XML + 512];
    size_t n = strlen(xml);
    if (ends_in(name, ".tif") || ends_in(name, ".tiff"))
        n = make_tiff(bytes, xml);
    else
        memcpy(bytes, xml, n);
    const int fd = openat(dir, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

/* ---- The text ---- */

/* The next line, cut to MOST_NAME, without slashes; false at the end. */
static bool next_line(const char **p, char *line)
{
    if (!**p)
        return false;
    const size_t n = strcspn(*p, "\n");
    snprintf(line, MOST_NAME, "%.*s", (int)tgi_min(n, MOST_NAME - 1), *p);
    for (char *c = line; *c; c++)
        *c = *c == '/' ? '_' : *c;
    *p += n + ((*p)[n] == '\n');
    return true;
}

/* What makes the C library's matcher run for ever is the user's to type, not a file's: counted
 * repeats and back references are left out. */
static char *tame(char *regex)
{
    for (char *c = regex; *c; c++)
        if (*c == '{' || (*c == '\\' && c[1] != 'd'))
            *c = '_';
    return *regex ? regex : NULL;
}

static bool is_name(const char *s)
{
    return *s && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

static void open_set(const char *what, char key[3][MOST_NAME], unsigned how)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, strcmp(what, "..") != 0 ? what : "");
    const tgi_open_opts o = {.threads = 1 + how % 2,
                             .series = how % 7 == 0,
                             .key = {tame(key[0]), tame(key[1]), tame(key[2])},
                             .axes = how % 11 == 0 ? "TYX" : NULL,
                             .decode_budget = 16u << 20};
    tgi_err err = {0};
    tgi_source *s = NULL;
    tg_status st = tgi_source_open(path, &o, &s, &err);
    fuzz_check(st, &err);
    if (st == TG_OK && s->ops->expect && s->ops->info(s)->n_planes > 1)
        st = s->ops->expect(s, 2, 1, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        fuzz_read(s);
    tgi_source_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static int dir = -1;
    if (dir < 0) {
        if (!mkdtemp(folder) || (dir = open(folder, O_DIRECTORY | O_CLOEXEC)) < 0)
            abort();
        atexit(remove_folder);
    }
    char *text = malloc(n + 1), what[MOST_NAME] = "", key[3][MOST_NAME] = {0};
    char name[MOST_FILES][MOST_NAME], line[MOST_NAME];
    const char *p = text;
    int files = 0;
    memcpy(text, data, n);
    text[n] = 0;
    next_line(&p, what);
    for (int k = 0; k < 3; k++)
        next_line(&p, key[k]);
    while (next_line(&p, line) && *line)
        if (files < MOST_FILES && is_name(line))
            memcpy(name[files++], line, sizeof line);
    if (strlen(p) < MOST_XML) {
        for (int i = 0; i < files; i++)
            make_file(dir, name[i], p);
        open_set(what, key, (unsigned)n);
        for (int i = 0; i < files; i++)
            unlinkat(dir, name[i], 0);
    }
    free(text);
    fuzz_check_leaks();
    return 0;
}
