/* fuzz_video.c - any bytes as a video, whose headers are read. */
#include "io/video_head.h"
#include "tests/fuzz/fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    tgi_video_head v;
    tgi_err err = {0};
    fuzz_file(data, n, path);
    const tg_status st = tgi_video_head_read(path, &v, &err);
    fuzz_check(st, &err);
    if (st == TG_OK && (!v.container || v.width < 1 || v.height < 1 || v.frames < 1 ||
                        (uint64_t)v.frames > n || err.text[0]))
        abort();
    fuzz_check_leaks();
    return 0;
}
