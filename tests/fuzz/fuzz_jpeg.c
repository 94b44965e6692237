/* fuzz_jpeg.c - any bytes behind the mark of a JPEG file, opened and read. The last byte says
 * how. */
#include "tests/fuzz/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 3 || data[0] != 0xff || data[1] != 0xd8)
        return -1; /* another format's, not kept in the corpus */
    fuzz_image(data, n, data[n - 1] & ~1u);
    return 0;
}
