/* replay.c - stored inputs through a fuzz target in an ordinary build: what once crashed does
 * not again, with any compiler, and with whatever sanitizers the build has. */
#include "tests/fuzz/fuzz_target.h"

#include <dirent.h>

#define MAX_FILE ((size_t)1 << 20)

static void replay(const char *folder, const char *name)
{
    static uint8_t bytes[MAX_FILE];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        exit(1);
    }
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    /* A copy of just this size: reading past it is seen by the address sanitizer. */
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    fprintf(stderr, "%s (%zu bytes)\n", path, n); /* the last line names the culprit */
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        for (struct dirent *e; d && (e = readdir(d));)
            if (e->d_name[0] != '.') {
                replay(argv[i], e->d_name);
                n++;
            }
        if (d)
            closedir(d);
    }
    printf("%d inputs\n", n);
    return n ? 0 : 1; /* an empty corpus proves nothing */
}
