"""An input that is another one while it is read: replaced, overwritten, touched.

    changed.py TEGULA SOURCE_DIR

Runs, runs over arrays and copies are stopped (SIGSTOP) with their output begun, something is done to the
input, and they go on. What takes the input's name (a file, a pipe, /dev/zero) is no harm: the output is
that of the file that was opened, and a warning and the receipt say so. Bytes written into it end in 65,
with nothing left to go on with. A touch costs nothing once the checksum of the whole is there."""
import hashlib
import json
import os
import random
import signal
import struct
import sys
import time

from crashlib import check, main, picture, read, tiff_bytes, upscaler

LIMIT = 60


def noise(path, width, height):
    with open(path, "wb") as f:
        f.write(tiff_bytes([(width, height, random.Random(4).randbytes(2 * width * height))], 16, 1))
    return path


def array(path, shape):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    head = text + " " * (-(len(text) + 11) % 64) + "\n"
    n = 1
    for d in shape:
        n *= d
    rng = random.Random(3)
    row = struct.pack("<4096f", *(rng.random() for _ in range(4096)))
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for _ in range(n // 4096):
            f.write(row)
    return path


def sums(process):
    """The thread that sums the input is there: the only one of the lowest priority. Where we have that
    ourselves, any second thread is taken for it."""
    if os.getpriority(os.PRIO_PROCESS, 0) == 19:
        return len(os.listdir("/proc/%d/task/" % process.pid)) > 1
    tasks = "/proc/%d/task/" % process.pid
    for task in os.listdir(tasks):
        try:
            with open(tasks + task + "/stat") as f:
                if f.read().rpartition(")")[2].split()[16] == "19":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            pass
    return False


def wrote(process):
    """Bytes; -1: it is over."""
    try:
        with open("/proc/%d/io" % process.pid) as f:
            return int(f.read().split("wchar: ")[1].split()[0])
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return -1


class Case:
    """A command over one input; `victim`: the file of it that something is done to."""

    def __init__(self, lab, name, args, source, out, victim=None):
        self.lab, self.name, self.victim = lab, name, victim or source
        self.out, self.beside = lab.path(name + out), []
        self.args = args + [source, "-o", self.out]
        self.whole, self.was = read(self.victim), os.stat(self.victim)
        check(self.run().code == 0, "%s: undisturbed: %s" % (name, self.run()))
        self.bytes = read(self.out)
        self.clean()

    def run(self):
        self.clean()
        return self.lab.run(self.args, {"TEGULA_SYNC_TILES": 1}, LIMIT)

    def left(self):
        return [e for e in ("", ".partial", ".journal", ".tegula.json") if os.path.exists(self.out + e)]

    def clean(self):
        for path in [self.out + end for end in self.left()] + [p for p in self.beside if os.path.exists(p)]:
            os.unlink(path)

    def mend(self):
        for path in (self.victim, self.victim + ".new", self.victim + ".away"):
            if os.path.lexists(path):
                os.unlink(path)
        with open(self.victim, "wb") as f:
            f.write(self.whole)
        os.utime(self.victim, ns=(self.was.st_atime_ns, self.was.st_mtime_ns))

    def disturbed(self, change, late=False):
        """late: when the checksum is there."""
        for _ in range(60):
            self.clean()
            p = self.held = self.lab.start(self.args, {"TEGULA_SYNC_TILES": 1})
            until = time.monotonic() + 30
            while p.poll() is None and not os.path.exists(self.out + ".partial") and time.monotonic() < until:
                time.sleep(0.0002)
            calm = 0 if late else 3
            while calm < 3 and p.poll() is None and time.monotonic() < until:
                time.sleep(0.004)
                calm = calm + 1 if wrote(p) > 200000 and not sums(p) else 0  # what is done before that has begun
            p.send_signal(signal.SIGSTOP)
            if p.poll() is None and 0 <= wrote(p) < len(self.bytes) * 3 // 4:  # so there is more to read
                break
            p.send_signal(signal.SIGCONT)
            self.lab.wait(p)
        else:
            check(False, "%s: never held in its midst" % self.name)
        change(self.victim)
        p.send_signal(signal.SIGCONT)
        try:
            r = self.lab.wait(p, LIMIT)
        except Exception as e:  # the one that hangs is ours to end
            p.kill()
            check(False, "%s: %s: does not end: %s" % (self.name, change.__name__, e))
        return r

    def kept(self, change):
        """Done to the input of a run that is stopped at once: its tiles stay, and who goes on knows more."""
        def both(path):
            change(path)
            self.held.send_signal(signal.SIGINT)
        r = self.disturbed(both, late=True)
        what = "%s: %s, and a stop" % (self.name, change.__name__)
        check(r.code == 130, "%s: %s" % (what, r))
        check(self.left() == [".partial", ".journal"], "%s: left %s" % (what, self.left()))
        self.mend()  # with its time: the same file as before
        r = self.lab.run(self.args, {"TEGULA_SYNC_TILES": 1}, LIMIT)
        check(r.code == 0 and read(self.out) == self.bytes, "%s: the same command: %s" % (what, r))
        check("continuing" in r.err, "%s: began anew: %s" % (what, r))

    def receipt(self):
        return json.loads(read(self.out + ".tegula.json"))

    def survives(self, change, word, late=False):
        """Another file, or a touch: the same output, and a line about it."""
        r = self.disturbed(change, late)
        what = "%s: %s" % (self.name, change.__name__)
        check(r.code == 0, "%s: %s" % (what, r))
        check(read(self.out) == self.bytes, what + ": other bytes than undisturbed")
        if word:
            check(word in r.err and self.victim in r.err, "%s: is not told: %s" % (what, r))
        if os.path.exists(self.out + ".tegula.json"):
            got = self.receipt()
            check(got["input_changed"] == (word == "its name"), what + ": the receipt: %s" % got["input_changed"])
            summed = got["input_sha256"]
            check(summed == hashlib.sha256(self.whole).hexdigest(), "%s: the receipt has the sum of another file: %s" % (what, summed))
        self.mend()

    def refused(self, change, late=False):
        """Nobody knows what was read."""
        r = self.disturbed(change, late)
        what = "%s: %s" % (self.name, change.__name__)
        check(r.code == 65 and "was changed while it was read" in r.err and self.victim in r.err, "%s: %s" % (what, r))
        check(not self.left(), "%s: left %s" % (what, self.left()))
        again = self.run()
        check(again.code == 0, "%s: does not start again: %s" % (what, again))
        self.mend()


# ---- What somebody does -----------------------------------------------------------------------

def replaced(path):
    with open(path + ".new", "wb") as f:
        f.write(b"another file\n" * 100)
    os.rename(path + ".new", path)


def by_a_pipe(path):
    os.mkfifo(path + ".new")
    os.rename(path + ".new", path)


def by_zeros(path):
    os.symlink("/dev/zero", path + ".new")
    os.rename(path + ".new", path)


def lost(path):
    os.rename(path, path + ".away")


def overwritten(path):
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) // 2)
        f.write(b"\x55" * 4096)


def touched(path):
    os.utime(path)


def grown(path):
    with open(path, "ab") as f:
        f.write(b"\0" * 4096)


def test(lab, rest):
    net = upscaler(lab.path("net.onnx"), 32)
    image = picture(lab.path("im.tif"), 900, 1400)
    large = noise(lab.path("large.tif"), 4096, 8192)
    x = array(lab.path("x.npy"), (1, 1, 1024, 1024))
    plane = array(lab.path("plane.npy"), (4096, 4096))
    stack = lab.path("stack")
    os.mkdir(stack)
    for k in range(12):  # so many that a fast machine is still at it when it is held
        picture(os.path.join(stack, "p%02d.tif" % k), 300, 200, seed=k)
    run = ["run", "-m", net, "--threads", "1", "--tile", "128x128", "--ram", "64MiB"]

    whole = Case(lab, "run", run, image, ".tif")
    for change in (replaced, by_a_pipe, by_zeros, lost):
        whole.survives(change, "its name", late=True)
    whole.survives(touched, "touched", late=True)
    for change in (overwritten, grown):
        whole.refused(change, late=True)
    for change in (touched, overwritten):
        whole.kept(change)

    stats = lab.path("stats.json")
    counted = Case(lab, "statistics", run + ["--normalize", "percentile:1,99", "--stats", stats], image, ".tif")
    counted.beside = [stats]
    r = counted.disturbed(overwritten, late=True)
    check(r.code == 65 and not os.path.exists(stats), "statistics of an input that was changed stay: %s" % r)
    counted.mend()

    part = Case(lab, "part-of-much", run + ["--roi", "0:512,0:512"], large, ".tif")
    for change in (replaced, by_a_pipe, by_zeros):  # the rest of the checksum is still to be read
        part.survives(change, "its name")
    part.refused(overwritten)

    arrays = Case(lab, "arrays", ["run", "-m", net, "--threads", "1", "--ram", "64MiB"], x, ".npy")
    arrays.survives(by_a_pipe, "its name", late=True)
    arrays.survives(touched, "touched", late=True)
    arrays.refused(overwritten, late=True)
    Case(lab, "image-to-array", run[:5], image, ".npy").refused(overwritten, late=True)

    member = os.path.join(stack, "p11.tif")
    files = Case(lab, "stack", run, stack, ".tif", member)
    files.refused(overwritten, late=True)

    r = files.disturbed(replaced, late=True)  # its readers may have it open to their end, or not
    check(r.code == 0 and read(files.out) == files.bytes or r.code == 65 and "was replaced" in r.err, "stack: replaced: %s" % r)
    files.mend()

    for name, source, out in (("copy", large, ".tif"), ("copy-array", plane, ".npy"), ("copy-to-array", large, ".npy")):
        copy = Case(lab, name, ["copy"], source, out)
        copy.survives(by_a_pipe, "its name")
        copy.refused(overwritten)
    slow = Case(lab, "copy-packed", ["copy", "--compress", "lzw", "--threads", "1"], large, ".tif")
    slow.survives(touched, "touched", late=True)
    slow.survives(by_zeros, "its name", late=True)
    slow.refused(overwritten, late=True)
    scaled = Case(lab, "copy-scaled", ["copy", "--dtype", "float32"], large, ".npy")
    scaled.refused(grown)
    print("a name given to others is no harm, bytes written into an input end in 65, a touch costs nothing")


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
