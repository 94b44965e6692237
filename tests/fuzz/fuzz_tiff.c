/* fuzz_tiff.c - any bytes, opened as a TIFF and read: directories, index, series, strips,
 * tiles, codecs. The last byte, which a TIFF does not use, says how. */
#include "tests/fuzz/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_image(data, n, n ? data[n - 1] : 0);
    return 0;
}
