"""Two runs on one array, or on one folder of arrays: one of them computes, the other is told so (75).

    two_runs.py TEGULA SOURCE_DIR

The first is stopped (SIGSTOP) while it has its output open, the second is started and must end in 75
without a change to the first one's files; then the first goes on, and its output is what it is when
nobody disturbs it. After a kill -9 nobody holds the output. At last several start at the same time."""
import fcntl
import os
import shutil
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truncated_input import array, read  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from crashlib import check, main, picture  # noqa: E402


GROWING = b"tegula: growing\n"  # what a file of ours begins with until it is complete


def hold(path, text=GROWING, make=True):
    """Open and locked as a run of ours does it; OSError where another has it."""
    fd = os.open(path, os.O_RDWR | (os.O_CREAT if make else 0), 0o666)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        os.write(fd, text)
    except OSError:
        os.close(fd)
        raise
    return fd


class Case:
    """A command whose outputs are arrays, or end in a folder."""

    def __init__(self, lab, name, args, out, began):
        self.lab, self.name, self.args = lab, name, args
        self.out = lab.path(out)
        self.began = lab.path(began)
        self.folder = self.out if out.endswith("/") else None

    def command(self, more=()):
        return self.args + ["-o", self.out] + list(more)

    def files(self):
        """What is there, by name."""
        if not self.folder:
            names = [self.out + e for e in ("", ".partial", ".journal", ".lock")]
        elif os.path.isdir(self.folder):
            names = [os.path.join(self.folder, n) for n in sorted(os.listdir(self.folder))]
        else:
            names = []
        return {n: read(n) for n in names if os.path.exists(n) and not n.endswith(".tegula.json")}

    def clean(self):
        for n in self.files():
            os.unlink(n)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def learn(self):
        r = self.lab.run(self.command())
        check(r.code == 0, "%s: undisturbed: %s" % (self.name, r))
        self.want = self.files()
        self.clean()
        return self

    def is_held(self):
        """Locked, not only there: between both the run is not in its way yet."""
        try:
            os.close(hold(self.began, b"", False))
        except OSError:
            return os.path.exists(self.began)
        return False

    def start_and_stop(self):
        """Running, and stopped where its output is open."""
        for _ in range(20):
            p = self.lab.start(self.command())
            until = time.monotonic() + 30
            while p.poll() is None and not os.path.exists(self.began) and time.monotonic() < until:
                time.sleep(0.0002)
            p.send_signal(signal.SIGSTOP)
            if p.poll() is None and self.is_held():
                return p
            p.send_signal(signal.SIGCONT)
            self.lab.wait(p)
            self.clean()
        check(False, "%s: never caught with its output open" % self.name)

    def who(self):
        return {n: (os.stat(n).st_ino, os.stat(n).st_size) for n in self.files()}


def test_held(case):
    p = case.start_and_stop()
    before = case.who()
    for more in ([], ["-y"]):
        r = case.lab.run(case.command(more))
        check(r.code == 75, "%s: a second run%s: %s" % (case.name, " with -y" if more else "", r))
        check("another run" in r.err, "%s: does not say why: %s" % (case.name, r))
        check(case.who() == before, "%s: the second run changed the first one's files: %s, then %s"
              % (case.name, before, case.who()))
    p.send_signal(signal.SIGCONT)
    r = case.lab.wait(p)
    check(r.code == 0, "%s: the first of two: %s" % (case.name, r))
    check(case.files() == case.want, "%s: other bytes than undisturbed" % case.name)
    r = case.lab.run(case.command())
    check(r.code == 73, "%s: a finished output without -y: %s" % (case.name, r))
    check(case.files() == case.want, "%s: changed by a run that was refused" % case.name)
    case.clean()


def test_killed(case):
    p = case.start_and_stop()
    p.kill()
    case.lab.wait(p)
    r = case.lab.run(case.command())
    check(r.code == 0, "%s: after a kill: %s" % (case.name, r))
    check(case.files() == case.want, "%s: after a kill: other bytes" % case.name)
    case.clean()


def test_all_at_once(case):
    codes = []
    for _ in range(4):
        ps = [case.lab.start(case.command(["-y"])) for _ in range(4)]
        got = [case.lab.wait(p) for p in ps]
        codes += [r.code for r in got]
        check(all(r.code in (0, 75) for r in got), "%s: of four at once: %s" % (case.name, got[0] if
              got[0].code not in (0, 75) else [str(r) for r in got]))
        check(any(r.code == 0 for r in got), "%s: none of four finished" % case.name)
        check(case.files() == case.want, "%s: of four at once: other bytes" % case.name)
        case.clean()
    print("%s: %d of %d finished, the others were told" % (case.name, codes.count(0), len(codes)))


def test_pictures_and_small_files(lab, image):
    """What is made under another name first: whoever comes second does not write into it."""
    shown, stats = lab.path("p.png"), lab.path("stats.json")
    preview = ["preview", "-m", lab.denoiser, image, "-o", shown, "-y"]
    fd = hold(shown + ".made")
    r = lab.run(preview)
    check(r.code == 75, "a second preview: %s" % r)
    check(read(shown + ".made") == GROWING, "a second preview wrote into the first one's")
    os.close(fd)
    r = lab.run(preview)
    check(r.code == 0 and read(shown)[:4] == b"\x89PNG", "a preview after that: %s" % r)
    check(not os.path.exists(shown + ".made"), "a preview left what it made")
    run = ["run", "-m", lab.denoiser, image, "-o", lab.path("s.tif"), "--normalize", "zscore",
           "--stats", stats]
    fd = hold(stats + ".tmp", b'{"normalize":')
    p = lab.start(run)
    time.sleep(0.5)
    check(read(stats + ".tmp") == b'{"normalize":', "a text was written into another's")
    os.close(fd)  # a moment later it is free: the second waited
    r = lab.wait(p)
    check(r.code == 0 and os.path.exists(stats), "a second text: %s" % r)


def test(lab, rest):
    heads = os.path.join(lab.source, "tests", "golden", "heads", "model.onnx")
    x = array(lab.path("x.npy"), (1, 1, 512, 768))
    rgb = array(lab.path("rgb.npy"), (1, 512, 512, 3))
    plane = array(lab.path("plane.npy"), (4096, 2048))
    image = lab.path("image.tif")
    rgb_plane = array(lab.path("rgb_plane.npy"), (512, 512, 3))
    r = lab.run(["copy", rgb_plane, "--axes", "YXS", "-o", image])
    check(r.code == 0, "an input cannot be made: %s" % r)
    test_pictures_and_small_files(lab, picture(lab.path("grey.tif"), 256, 256))
    slow = ["--ram", "256MiB", "--threads", "1"]
    cases = [Case(lab, "array", ["run", "-m", lab.denoiser, x] + slow, "y.npy", "y.npy.partial"),
             Case(lab, "folder", ["run", "-m", heads, rgb] + slow, "all/", "all/enhanced.npy.partial"),
             Case(lab, "images", ["run", "-m", heads, image] + slow, "tif/", "tif/enhanced.tif.journal"),
             Case(lab, "copy", ["copy", plane], "c.npy", "c.npy.partial")]
    for case in cases:
        case.learn()
        test_held(case)
        test_killed(case)
        test_all_at_once(case)


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
