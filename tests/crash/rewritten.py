"""An input whose bytes were changed in its midst between a stop and the same command, its time put back.

    rewritten.py TEGULA SOURCE_DIR [more]   more: a large input of a copy, and one of several files, too

Size, time and both ends are then what they were. Of a small input all bytes are compared before the first
pixel; of a large one the time of any change (ctime) tells, and the checksum of the whole decides, which the
stopped run wrote down once it had read all. So 65, or what an undisturbed run writes. A file that was moved,
copied with its time or given other rights goes on; where nobody knows all of its bytes that is said."""
import os
import random
import shutil
import struct
import sys

from crashlib import Job, check, crc32c, main, picture, read, tiff_bytes, upscaler

INPUT_AT = 3584  # of the journal: the checksum (engine/out/journal_file.h)


def noise(path, width, height):
    with open(path, "wb") as f:
        f.write(tiff_bytes([(width, height, random.Random(4).randbytes(2 * width * height))], 16, 1))
    return path


# ---- What somebody does, and puts the time back ------------------------------------------------

def rewrite(path, share=0.5):
    """A block in the midst."""
    was = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(int(was.st_size * share))
        old = f.read(64)
        f.seek(int(was.st_size * share))
        f.write(bytes(b ^ 0x55 for b in old))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def copied(path):
    """cp -p, and the copy in its place."""
    shutil.copy2(path, path + ".new")
    os.rename(path + ".new", path)


def moved(path):
    os.rename(path, path + ".away")
    os.rename(path + ".away", path)


def given_rights(path):
    os.chmod(path, 0o600)


class Stopped(Job):
    """A job that is stopped on its way; `victim`: the file of its input that something is done to."""

    def __init__(self, lab, name, args, victim, **more):
        super().__init__(lab, name, args, needs_stats=False, **more)
        self.victim, self.good = victim, []
        self.env["TEGULA_SYNC_TILES"] = 1
        self.learn()

    def stop_early(self, share=0.6):
        """Killed at a file operation: tiles are there. Of a large input the checksum may be, too."""
        k = int(self.operations() * share)
        check(self._dies_at(k) and self.slot()["tiles"] > 0, "%s: not killed with tiles" % self.name)

    def knows_input(self):
        try:
            with open(self.out + ".journal", "rb") as f:
                f.seek(INPUT_AT)
                return any(f.read(64))
        except FileNotFoundError:
            return False

    def stop_when(self, ready):
        """Killed at a file operation in front of which there are tiles, not all, and `ready` says so: near the end,
        by which another thread has read all of the input; what was good once is tried first."""
        if not self.good:
            end = self.operations()
            self.good = [int(end * share) for share in (0.9, 0.95, 0.8, 0.97, 0.985, 0.7, 0.6)]
        for k in self.good * 6:
            self.clean()
            r = self.run({"TEGULA_FAIL_IO": "%d:kill" % k})
            s = self.slot()
            if r.code == -9 and s and 0 < s["tiles"] < (self.tiles or 1 << 60) and ready():
                self.good.sort(key=lambda other: other != k)
                return
        check(False, "%s: never stopped where it should be: %s" % (self.name, self.good))

    def refused(self, what, word="another input"):
        """65 with a cure, and no output."""
        r = self.run()
        check(r.code == 65 and word in r.err and "-y" in r.err, "%s: %s: %s" % (self.name, what, r))
        check(not os.path.exists(self.out), "%s: %s: an output" % (self.name, what))

    def goes_on(self, what):
        r = self.run()
        check(r.code == 0, "%s: %s: %s" % (self.name, what, r))
        check("continuing" in r.err or not self.is_run, "%s: %s: began anew: %s" % (self.name, what, r))
        check(read(self.out) == self.bytes, "%s: %s: other bytes" % (self.name, what))
        self.clean()


def test_small(lab, job):
    for share in (0.3, 0.5, 0.7):
        job.stop_early()
        rewrite(job.victim, share)
        job.refused("bytes at %g of it" % share)
        rewrite(job.victim, share)  # and back
        job.goes_on("restored")
    for change in (copied, moved, given_rights):
        job.stop_early()
        change(job.victim)
        job.goes_on(change.__name__)


def test_large(lab, job):
    """Once all was read the checksum tells; before that nobody can, and a warning says so."""
    for change in (copied, moved, given_rights, rewrite):
        job.stop_when(job.knows_input)
        change(job.victim)
        if change is rewrite:
            job.refused("rewritten, the checksum known")
            r = job.run(more=["-y"])
            check(r.code == 0 and read(job.out) != job.bytes, "%s: -y: %s" % (job.name, r))
            job.clean()
            rewrite(job.victim)
        else:
            job.goes_on("%s, the checksum known" % change.__name__)
    job.stop_when(job.knows_input)
    job.goes_on("nothing was done")
    job.stop_when(job.knows_input)
    with open(job.out + ".journal", "r+b") as f:  # as if the stop had come before
        f.seek(INPUT_AT)
        f.write(bytes(72))
    job.goes_on("no checksum, and nothing was done")
    for change in (given_rights, rewrite):
        job.stop_when(job.knows_input)
        with open(job.out + ".journal", "r+b") as f:
            f.seek(INPUT_AT)
            f.write(bytes(72))
        change(job.victim)
        r = job.run()
        check(r.code == 0 and "had not read all of it" in r.err, "%s: %s, no checksum: %s" % (job.name, change.__name__, r))
        check(change is rewrite or read(job.out) == job.bytes, "%s: %s: other bytes" % (job.name, change.__name__))
        job.clean()
    k = job.operations() // 4
    for _ in range(2):  # who goes on without knowing does not say that he knows
        job.stop_when(job.knows_input)
        with open(job.out + ".journal", "r+b") as f:
            f.seek(INPUT_AT)
            f.write(bytes(72))
        rewrite(job.victim)
        r = job.run({"TEGULA_FAIL_IO": "%d:kill" % k})
        if r.code == -9:
            check(not job.knows_input(), "%s: it says that it knows: %s" % (job.name, r))
            r = job.run()
        check(r.code == 0 and "had not read all of it" in r.err, "%s: stopped twice: %s" % (job.name, r))
        job.clean()
    rewrite(job.victim)
    check(job.run().code == 0 and read(job.out) == job.bytes, "%s: in the end" % job.name)
    job.clean()


def test_unseen_by_time(lab, job):
    """A filesystem that has no time of its own for changes: the checksum that is made anyway tells, and what was made
    goes. Here the journal has another sum."""
    for _ in range(8):  # a copy does not wait for the checksum: what is left must take longer than that
        job.stop_early(0.15)
        with open(job.out + ".journal", "r+b") as f:
            record = b"5" * 64 + bytes(4)
            f.seek(INPUT_AT)
            f.write(record + struct.pack("<I", crc32c(record)))
        r = job.run()
        if r.code:
            break
        job.clean()
    check(r.code == 65 and "other bytes than the interrupted run read" in r.err, "%s: another sum: %s" % (job.name, r))
    for end in ("", ".partial", ".journal"):
        check(not os.path.exists(job.out + end), "%s: another sum: left %s" % (job.name, end))
    check(job.run().code == 0 and read(job.out) == job.bytes, "%s: does not start again" % job.name)
    job.clean()


def test_more(lab, large, slow):
    copy = Stopped(lab, "large-copy", ["copy", large, "--compress", "lzw", "--threads", "1"], large)
    test_large(lab, copy)
    test_unseen_by_time(lab, copy)
    files = lab.path("files")
    os.mkdir(files)
    for k in range(5):
        noise(os.path.join(files, "p%d.tif" % k), 2048, 4100)
    test_large(lab, Stopped(lab, "large-stack", slow + ["--roi", "1800:2400,0:512", files], os.path.join(files, "p2.tif")))


def test(lab, rest):
    net = upscaler(lab.path("net.onnx"), 8)
    run = ["run", "-m", net, "--threads", "1", "--tile", "64x64", "--ram", "64MiB"]
    large = noise(lab.path("large.tif"), 4096, 8200)
    check(os.path.getsize(large) > 64 << 20, "it is hashed whole")
    slow = upscaler(lab.path("slow.onnx"), 32)
    slow = ["run", "-m", slow] + run[3:]
    if "more" in rest:
        return test_more(lab, large, slow)
    image = picture(lab.path("im.tif"), 500, 400)
    test_small(lab, Stopped(lab, "run", run + [image], image))
    test_small(lab, Stopped(lab, "copy", ["copy", image], image))
    stack = lab.path("stack")
    os.mkdir(stack)
    for k in range(5):
        picture(os.path.join(stack, "p%d.tif" % k), 200, 150, seed=k)
    test_small(lab, Stopped(lab, "stack", run + [stack], os.path.join(stack, "p2.tif")))

    job = Stopped(lab, "large", slow + ["--roi", "3584:4608,0:1792", large], large)
    test_large(lab, job)
    test_unseen_by_time(lab, job)
    print("bytes changed in the midst of an input are found between a stop and the same command, whatever its time says")


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
