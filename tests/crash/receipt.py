"""The receipt names the bytes: the whole input's SHA-256, the whole output's CRC-32C, and whether
the input stayed as it was.

    receipt.py TEGULA SOURCE_DIR"""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

from crashlib import Job, check, crc32c, main, picture


def receipt(job):
    with open(job.out + ".tegula.json") as f:
        return json.load(f)


def sha256(path):
    """What sha256sum says, where there is one."""
    if shutil.which("sha256sum"):
        return subprocess.run(["sha256sum", path], capture_output=True, text=True).stdout.split()[0]
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def test_names_both_files(job, image, what):
    r = receipt(job)
    check(r["input_sha256"] == sha256(image), what + ": another SHA-256 of the input")
    check(r["input_bytes"] == os.path.getsize(image), what + ": another size of the input")
    check(r["input_changed"] is False and "input_trouble" not in r, what + ": trouble for nothing")
    with open(job.out, "rb") as f:
        data = f.read()
    check(r["output_bytes"] == len(data), what + ": another size of the output")
    check(r["output_crc32c"] == "%08x" % crc32c(data), what + ": another CRC-32C of the output")


def test_interrupted(job, image):
    """The checksums are of the whole, whichever run wrote which part."""
    for k in range(40, 2000, 7):
        job.clean()
        check(job.run({"TEGULA_FAIL_IO": "%d:kill" % k}).code == -9, "cannot be interrupted")
        if job.phase() == "bands" and job.slot()["tiles"] > 10:
            break
    check(job.finish("after a kill")["tiles_resumed"] > 10, "began from nothing")
    test_names_both_files(job, image, "after a kill")


def while_it_runs(job, change):
    """Hold the run in the midst of its tiles, change something, let it go on."""
    job.clean()
    p = job.start()
    until = time.monotonic() + 30
    while p.poll() is None and not (job.slot() or {}).get("tiles") and time.monotonic() < until:
        time.sleep(0.0002)
    p.send_signal(signal.SIGSTOP)
    check(p.poll() is None and not os.path.exists(job.out), "the run was over before it could be held: %s %s" % (p.poll(), job.slot()))
    change()
    p.send_signal(signal.SIGCONT)
    return job.lab.wait(p)


def test_change_is_told(job, image):
    old = os.stat(image)

    def write_a_byte():
        with open(image, "r+b") as f:
            f.seek(5000)  # a pixel
            f.write(b"x")
    r = while_it_runs(job, write_a_byte)
    check(r.code == 0 and "changed during the run" in r.err, "a changed input is not told: %s" % r)
    check(receipt(job)["input_changed"] is True, "a changed input is not in the receipt")
    os.utime(image, ns=(old.st_atime_ns, old.st_mtime_ns))

    def lose():
        os.rename(image, image + ".away")
    r = while_it_runs(job, lose)
    os.rename(image + ".away", image)
    check(r.code == 0 and receipt(job)["input_changed"] is True, "a lost input is not told: %s" % r)


def test(lab, rest):
    image = picture(lab.path("image.tif"), 512, 384)
    args = ["run", "-m", lab.denoiser, image, "--tile", "64x64", "--ram", "64MiB", "--threads", "1"]
    for codec in ("none", "zstd"):
        job = Job(lab, codec, args + ["--compress", codec], {"TEGULA_SYNC_TILES": 1}).learn()
        check(job.run().code == 0, "an undisturbed run")
        test_names_both_files(job, image, codec)
        test_interrupted(job, image)
    large = picture(lab.path("large.tif"), 1024, 1024)
    args[args.index(image)] = large
    test_change_is_told(Job(lab, "large", args, {"TEGULA_SYNC_TILES": 1}), large)
    print("checksums of both files hold, in one go and after a kill; a change is told")


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
