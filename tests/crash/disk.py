"""A disk that is full: said at once where it can be known, else later; and no byte is lost by it.

    disk.py TEGULA SOURCE_DIR

Needs a small tmpfs, hence root; skipped (77) where mounting is refused."""
import os
import subprocess

from crashlib import Job, check, main, picture, upscaler, uses_scratch


def mount(path, kib):
    os.makedirs(path, exist_ok=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "tegula-test", path],
                          capture_output=True).returncode == 0


def resize(path, kib):
    r = subprocess.run(["mount", "-o", "remount,size=%dk" % kib, path], capture_output=True)
    check(r.returncode == 0, "tmpfs cannot be resized: %r" % r.stderr)


def test_plain(lab, image, disk):
    """Uncompressed: 73 before anything is computed; and the space is there for the whole run."""
    args = ["run", "-m", lab.denoiser, image, "--tile", "64x64", "--ram", "64MiB"]
    job = Job(lab, "plain", args).learn()
    job.out = os.path.join(disk, "plain.tif")
    need = len(job.bytes) // 1024
    resize(disk, need // 2)
    r = job.run()
    check(r.code == 73, "no room for the output: %s" % r)
    check(r.done().get("event") == "error" and "--compress" in r.err, "no remedy: %s" % r)
    check(os.listdir(disk) == [], "left on the full disk: %s" % os.listdir(disk))
    resize(disk, need + 96)  # the output, its journal and receipt, and hardly more
    r = job.run({"TEGULA_FAIL_IO": "60:kill"})
    check(r.code == -9 and job.slot()["tiles"] > 0, "not interrupted: %s" % r)
    done = job.finish("what it reserved itself is not in its way")
    check(done["tiles_resumed"] > 0, "began from nothing")
    job.clean()


def test_compressed(lab, args, disk, name, part):
    """Compressed: how much it takes is known when it is full; then 73, and it goes on later."""
    job = Job(lab, name, args).learn()
    job.out = os.path.join(disk, name + ".tif")
    resize(disk, 32 + int(len(job.bytes) * part) // 1024)
    r = job.run()
    check(r.code in (73, 74), "full in the middle: %s" % r)
    check("room" in r.err or "space" in r.err, "does not say what is wrong: %s" % r)
    check(not os.path.exists(job.out), "a file that is not whole got the name")
    again = job.run()
    check(again.code in (73, 74), "full still: %s" % again)
    check(not os.path.exists(job.out), "a file that is not whole got the name")
    slot = job.slot()
    resize(disk, 4 * len(job.bytes) // 1024 + 512)
    done = job.finish("after space was made")
    safe = slot["tiles"] if slot else 0
    if args[0] == "run":
        check(done["tiles_resumed"] == safe, "%d tiles were safe, %d were used"
              % (safe, done["tiles_resumed"]))
    job.clean()
    return safe


def test_scratch(lab, disk):
    """No room for the decoded input: 73 before anything is computed, with what to do."""
    packed = picture(lab.path("packed.tif"), 640, 512, packed=True)
    resize(disk, 1024)
    args = ["run", "-m", lab.denoiser, packed, "--tile", "64x64", "--ram", "64MiB", "--scratch", disk]
    job = Job(lab, "scratch", uses_scratch(lab, args)).learn()
    resize(disk, 400)
    r = job.run()
    check(r.code == 73 and "--scratch" in r.err, "no room for scratch: %s" % r)
    check(os.listdir(disk) == [] and job.slot() is None, "something is left")
    resize(disk, 1024)
    job.finish("after space was made")
    job.clean()


def test(lab, rest):
    disk = lab.path("disk")
    if not mount(disk, 1024):
        print("no tmpfs may be mounted here")
        return 77
    try:
        image = picture(lab.path("image.tif"), 640, 512)
        stack = picture(lab.path("stack.tif"), 320, 256, 3, "float32", 3)
        net = upscaler(lab.path("up.onnx"))
        test_plain(lab, image, disk)
        test_scratch(lab, disk)
        up = ["run", "-m", net, stack, "--normalize", "zscore", "--tile", "64x64",
              "--compress", "zstd", "--ram", "64MiB"]
        safe = [test_compressed(lab, up, disk, "up%d" % i, part)
                for i, part in enumerate((0.02, 0.3, 0.7, 0.99))]
        copy = ["copy", stack, "--compress", "deflate"]
        test_compressed(lab, copy, disk, "copy", 0.5)
        check(max(safe) > 0, "no tile was ever safe on a full disk")
        print("tiles safe when the disk was full: %s" % safe)
    finally:
        subprocess.run(["umount", disk], capture_output=True)
    return 0


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
