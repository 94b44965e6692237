"""Every file operation of a run fails once: exit 74, no file that is not whole, and it goes on.

    failing.py TEGULA SOURCE_DIR

Operation k of the writing side (open, pwrite, fdatasync, rename ..., io/file_ops.h) answers EIO,
for every k of an undisturbed run; then the disk is "full" at every third one."""
import os

from crashlib import Job, check, main, picture, upscaler, uses_scratch


def fail_at(job, k, answer, code):
    job.clean()
    r = job.run({"TEGULA_FAIL_IO": "%d%s" % (k, answer)})
    what = "operation %d%s" % (k, answer)
    if r.code == 0:
        return False
    check(r.code == code, "%s: %s: expected exit %d, got %s" % (job.name, what, code, r))
    check(r.err.strip(), "%s: %s: no sentence" % (job.name, what))
    if os.path.exists(job.out):  # only when it is whole: what failed came after the rename
        check(not os.path.exists(job.out + ".partial"), "%s: %s: two results" % (job.name, what))
        with open(job.out, "rb") as f:
            check(f.read() == job.bytes, "%s: %s: a wrong file got the name" % (job.name, what))
    slot = job.slot()
    done = job.finish(what)
    if done and slot and job.is_run and not slot["final"]:
        check(done["tiles_resumed"] >= slot["tiles"], "%s: %s: safe tiles were lost"
              % (job.name, what))
    return True


def sweep(job, answer, code, step):
    k = failed = 0
    while k == 0 or fail_at(job, k, answer, code):
        failed += k > 0
        k += 1 if k == 0 else step
        check(k < 2000, "%s: no end of file operations" % job.name)
    job.confirm("without a failure")
    return failed


def test(lab, rest):
    image = picture(lab.path("image.tif"), 200, 120)
    packed = picture(lab.path("packed.tif"), 640, 512, packed=True)
    os.mkdir(lab.path("scratch"))
    net = upscaler(lab.path("up.onnx"))
    few = {"TEGULA_SYNC_TILES": 4}
    run = Job(lab, "run", ["run", "-m", net, image, "--normalize", "percentile:1,99", "--tile",
                           "128x128", "--compress", "zstd", "--ram", "64MiB"], few).learn()
    plain = Job(lab, "plain", ["run", "-m", net, image, "--normalize", "zscore", "--tile",
                               "128x128", "--dtype", "uint16", "--ram", "64MiB"], few).learn()
    kept = Job(lab, "scratch", uses_scratch(lab, [
        "run", "-m", lab.denoiser, packed, "--tile", "256x256", "--ram", "64MiB", "--scratch",
        lab.path("scratch")]), few).learn()
    copy = Job(lab, "copy", ["copy", image, "--compress", "deflate"], few, False).learn()
    n = [sweep(job, "", 74, 1) for job in (run, plain, kept, copy)]
    n += [sweep(job, ":full", 73, 3) for job in (run, plain, kept, copy)]
    print("operations that failed, each once: %s" % n)


if __name__ == "__main__":
    import sys
    main(test, sys.argv, in_memory=True)
