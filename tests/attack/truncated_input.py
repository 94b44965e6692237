"""An input that is cut short while it is read: exit 65, never a signal, and a journal that holds.

    truncated_input.py TEGULA SOURCE_DIR [MOMENTS]

Of each kind of input a command is started, stopped (SIGSTOP) at MOMENTS random moments, most of them
after it began its output, and goes on with the file cut to a random length, which is the middle of it most of the
time. It must end in 65, or in 0 with the undisturbed bytes where all was read by then. Then the file
is whole again, with its old time of change, and the same command ends with the undisturbed bytes."""
import os
import random
import re
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from crashlib import check, main, read, tiff_bytes  # noqa: E402


def array(path, shape, seed=3):
    """float32 out of a ramp and noise."""
    rng = random.Random(seed)
    n = 1
    for d in shape:
        n *= d
    row = struct.pack("<%df" % shape[-1], *(rng.random() for _ in range(shape[-1])))
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    head = text + " " * (-(len(text) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for y in range(n // shape[-1]):
            k = y * 7 % shape[-1] * 4
            f.write(row[k:] + row[:k])
    return path


def noise(path, width, height, bits, packed=False, seed=4):
    """A TIFF in one strip that no codec makes much smaller."""
    data = random.Random(seed).randbytes(width * height * bits // 8)
    with open(path, "wb") as f:
        f.write(tiff_bytes([(width, height, data)], bits, 1, packed))
    return path


class Case:
    """A command, its input, and the output of it that counts."""

    def __init__(self, lab, name, args, source, out):
        self.lab, self.name, self.source = lab, name, source
        self.result = lab.path(name + out)
        self.args = args + [source, "-o", self.result]
        self.env = {"TEGULA_SYNC_TILES": 5}
        self.whole = read(source)
        self.stat = os.stat(source)
        self.began = self.result + ".partial"

    def clean(self):
        for end in ("", ".partial", ".journal", ".tegula.json", ".made"):
            if os.path.exists(self.result + end):
                os.unlink(self.result + end)

    def wait_for_output(self, p):
        until = time.monotonic() + 30
        while p.poll() is None and not os.path.exists(self.began) and time.monotonic() < until:
            time.sleep(0.0002)

    def learn(self):
        """What is written when nobody disturbs it, and how long each part takes."""
        t0 = time.monotonic()
        p = self.lab.start(self.args, self.env)
        self.wait_for_output(p)
        t1 = time.monotonic()
        r = self.lab.wait(p)
        self.opening, self.writing = t1 - t0, time.monotonic() - t1
        check(r.code == 0, "%s: undisturbed: %s" % (self.name, r))
        self.bytes = read(self.result)
        self.clean()

    def cut(self, p, moment, opening):
        """Stop the process there, cut its input, and let it go on."""
        if not opening:
            self.wait_for_output(p)
        time.sleep(moment * (self.opening if opening else self.writing))
        if p.poll() is not None:
            return
        p.send_signal(signal.SIGSTOP)
        n = len(self.whole)
        length = n // 2 if self.lab.rng.random() < 0.7 else self.lab.rng.randrange(n)
        os.truncate(self.source, length)
        p.send_signal(signal.SIGCONT)

    def mend(self):
        with open(self.source, "r+b") as f:
            f.write(self.whole)
        os.utime(self.source, ns=(self.stat.st_atime_ns, self.stat.st_mtime_ns))

    def attack(self, moment, opening):
        """The exit code."""
        p = self.lab.start(self.args, self.env)
        self.cut(p, moment, opening)
        r = self.lab.wait(p)
        self.mend()
        what = "%s: cut at %.2f of the %s" % (self.name, moment, "opening" if opening else "writing")
        check(r.code in (0, 65), "%s: %s" % (what, r))
        if r.code == 65:
            check(opening or re.search("while it was read|past the end|ends|ended", r.err),
                  "%s: says something else: %s" % (what, r))
            if self.result.endswith(".npy"):
                left = [e for e in (".partial", ".journal") if os.path.exists(self.result + e)]
                check(not left and not os.path.exists(self.result), "%s: left %s" % (what, left))
            again = self.lab.run(self.args, self.env)
            check(again.code == 0, "%s: does not go on when the file is whole: %s" % (what, again))
        check(read(self.result) == self.bytes, "%s: other bytes than undisturbed" % what)
        self.clean()
        return r.code


def cases(lab, side):
    raw = noise(lab.path("raw.tif"), side, side, 16)
    grey = noise(lab.path("grey.tif"), side, 2 * side, 8)
    packed = noise(lab.path("packed.tif"), 2048, side, 16, packed=True)  # one strip, streamed
    x = array(lab.path("x.npy"), (1, 1, side, side))
    plane = array(lab.path("plane.npy"), (4 * side, 2048))
    tiles, png, jpeg = (lab.path(n) for n in ("tiles.tif", "photo.png", "photo.jpg"))
    for args in ([raw, "-o", tiles, "--compress", "deflate"], [grey, "-o", png], [grey, "-o", jpeg]):
        r = lab.run(["copy"] + args)
        check(r.code == 0, "an input cannot be made: %s" % r)
    run = ["run", "-m", lab.denoiser, "--ram", "96MiB", "--threads", "1"]
    percent = run + ["--normalize", "percentile:1,99"]
    return [
        Case(lab, "array", run, x, ".npy"),
        Case(lab, "strips-to-array", run, raw, ".npy"),
        Case(lab, "strips", run, raw, ".tif"),
        Case(lab, "deflated-strip", percent, packed, ".tif"),
        Case(lab, "deflated-tiles", run, tiles, ".tif"),
        Case(lab, "png", run, png, ".tif"),
        Case(lab, "jpeg", run, jpeg, ".tif"),
        Case(lab, "copy-strips", ["copy"], raw, ".tif"),
        Case(lab, "copy-deflated", ["copy", "--compress", "deflate"], packed, ".tif"),
        Case(lab, "copy-array", ["copy"], plane, ".tif"),
        Case(lab, "copy-to-array", ["copy"], plane, ".npy"),
        Case(lab, "copy-deflated-to-array", ["copy"], packed, ".npy"),
    ]


def test(lab, rest):
    moments = int(rest[0]) if rest else 2
    count = {}
    failed = []
    for case in cases(lab, 512 if moments < 9 else 1024):
        case.learn()
        codes = []
        for k in range(moments):
            try:
                # Some while it opens its files, where some readers decode everything.
                opening = k > 0 and lab.rng.random() < 0.4
                codes.append(case.attack(lab.rng.random() if k else 0, opening))
            except Exception as e:
                codes.append(str(e))
                failed.append(e)
                case.mend()
                case.clean()
        count[case.name] = codes
    for name, codes in count.items():
        print("%-24s %s" % (name, codes))
    check(not failed, "%d of %d moments: %s" % (len(failed), moments * len(count),
                                                failed[0] if failed else ""))
    for name, codes in count.items():
        check(65 in codes or moments < 9, "%s: no cut was met: %s" % (name, codes))


if __name__ == "__main__":
    main(test, sys.argv, in_memory=int((sys.argv + ["2"])[3]) < 10)
