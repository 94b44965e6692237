"""A disk that is full: said at once where it can be known, else later; and no byte is lost by it.

    disk.py TEGULA SOURCE_DIR

Needs a small tmpfs, hence root; skipped (77) where mounting is refused."""
import os
import struct
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


def disk_line(lab, args):
    r = lab.run(["plan"] + args[1:] + ["--json"])
    check(r.code == 0, "no plan: %s" % r)
    return [line for line in r.done()["lines"] if line["kind"] == "disk"][0]


def test_arrays(lab, disk):
    """Arrays, and images in a folder, which are made of arrays: the plan has the byte, and 73 comes before
    anything is computed."""
    image = picture(lab.path("small.pixels"), 320, 256)  # called small.tif its output would be, too, and no array
    net = upscaler(lab.path("up1.onnx"), 4)
    for name, more, ends in (("o.npy", [], {"o.npy": 1}), ("new/", [], {"y.tif": 1}), ("old/", ["--compress", "lzw"], {"y.tif": 1}),
                             ("new/", ["--format", "imagej"], {"y.tif": 1})):
        out = os.path.join(disk, name)
        args = ["run", "-m", net, image, "--threads", "1", "-o", out] + more
        what = " ".join([name] + more)
        resize(disk, 16384)
        line = disk_line(lab, args)
        array = 128 + 640 * 512 * 4
        if name == "old/":
            os.mkdir(out)
        r = lab.run(args)
        check(r.code == 0, "%s: there is room: %s" % (what, r))
        folder = out if out.endswith("/") else disk
        size = os.path.getsize(os.path.join(folder, *ends))
        if not more:
            check(line["bytes"] == size + (0 if name == "o.npy" else array), "%s: the plan says %d, the file has %d" % (what, line["bytes"], size))
        check(line["bytes"] >= size + (0 if name == "o.npy" else array), "%s: the plan says less: %d" % (what, line["bytes"]))
        os.unlink(os.path.join(folder, *ends))
        need = array if "lzw" in more else line["bytes"]
        if name == "new/":
            os.rmdir(out)
        resize(disk, need // 1024 - 8)
        r = lab.run(args + ["--log", lab.path("never.csv")])
        check(r.code == 73 and "the disk has" in r.err and "another folder" in r.err, "%s: no room: %s" % (what, r))
        check(("--compress" in r.err) == (name == "new/" and not more), "%s: the remedy: %s" % (what, r))
        check(os.listdir(disk) == (["old"] if name == "old/" else []), "%s: left %s" % (what, os.listdir(disk)))
        check(not os.path.exists(lab.path("never.csv")), what + ": was begun")
        if name == "old/":
            os.rmdir(out)
    resize(disk, 16384)
    r = lab.run(["run", "-m", net, image, "-o", os.path.join(disk, "d/")], {"TEGULA_FAIL_IO": "5:full"})
    check(r.code == 73 and "d/y.tif: " in r.err and "/dev/fd" not in r.err, "an array without a name has no room: %s" % r)
    os.rmdir(os.path.join(disk, "d"))


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


def test_array_to_array(lab, disk):
    """What has no pixels of a type either: 73, no signal."""
    array, out = lab.path("in.npy"), os.path.join(disk, "o.npy")
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 256, 256), }"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(array, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(4 * 256 * 256))
    args = ["run", "-m", upscaler(lab.path("up2.onnx"), 1), array, "--threads", "1", "-o", out]
    resize(disk, 256)
    r = lab.run(args)
    check(r.code == 73 and "the disk has" in r.err, "no room for an array: %s" % r)
    check(os.listdir(disk) == [], "an array without room: left %s" % os.listdir(disk))


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
        test_arrays(lab, disk)
        test_array_to_array(lab, disk)
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
