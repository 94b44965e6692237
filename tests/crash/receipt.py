"""The receipt names the bytes: the whole input's SHA-256 and the whole output's CRC-32C. (An input
that is another one meanwhile: changed.py.)

    receipt.py TEGULA SOURCE_DIR"""
import hashlib
import json
import os
import shutil
import subprocess

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


def test_interrupted(job, image, also=None):
    """The checksums are of the whole, whichever run wrote which part. `also`: a file that goes with the output."""
    for k in range(40, 2000, 7):
        job.clean()
        if also and os.path.exists(also):
            os.remove(also)
        check(job.run({"TEGULA_FAIL_IO": "%d:kill" % k}).code == -9, "cannot be interrupted")
        if job.phase() == "bands" and job.slot()["tiles"] > 10:
            break
    check(job.finish("after a kill")["tiles_resumed"] > 10, "began from nothing")
    test_names_both_files(job, image, "after a kill")


def test(lab, rest):
    image = picture(lab.path("image.tif"), 512, 384)
    args = ["run", "-m", lab.denoiser, image, "--tile", "64x64", "--ram", "64MiB", "--threads", "1"]
    for codec in ("none", "zstd"):
        job = Job(lab, codec, args + ["--compress", codec], {"TEGULA_SYNC_TILES": 1}).learn()
        check(job.run().code == 0, "an undisturbed run")
        test_names_both_files(job, image, codec)
        test_interrupted(job, image)
    stats = lab.path("stats.json")
    job = Job(lab, "statistics", args + ["--normalize", "minmax", "--stats", stats], {"TEGULA_SYNC_TILES": 1}).learn()
    os.remove(stats)
    check(job.run().code == 0, "an undisturbed run")
    said = receipt(job)["methods"]
    test_interrupted(job, image, stats)  # the killed run wrote the file that the next one finds
    check("given in a file" not in said and receipt(job)["methods"] == said, "methods after a kill: " + receipt(job)["methods"])
    print("checksums of both files hold, in one go and after a kill")


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
