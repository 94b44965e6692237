"""Killed while several outputs get their names: the same command gives the rest of them theirs.

    names.py TEGULA SOURCE_DIR [all]

Outputs are images and arrays at once, pictures that are made of tiles, arrays alone, and those of an
input with damaged tiles. The run is killed in front of each of its file operations (TEGULA_FAIL_IO)
from a little before the first name to its end, and so is the run that goes on behind such a kill.
Then the same command ends as the undisturbed one did, byte for byte, and leaves nothing else; 73 is
for outputs that all have their names. What others do in between is theirs: exit 73 without a
change. 'all' stops what goes on behind each of the kills, not behind three. Standard library."""
import fcntl
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "attack"))
import crashlib as c  # noqa: E402
from crashlib import check, main, picture, read, write  # noqa: E402
from stopped_run import damaged_tiles  # noqa: E402
from truncated_input import array  # noqa: E402

DIARY = b"my diary\n" * 60
LIST = ".tegula.names"
BEFORE = 10  # operations in front of the list, which are looked at as well


def three(path):
    """One input; an image y, six numbers s, an image z."""
    conv = c._ints("kernel_shape", [3, 3]) + c._ints("pads", [1, 1, 1, 1])
    weights = [0.1 * (i % 7 - 3) for i in range(54)]
    flat = c._field(1, "s") + c._field(2, c._field(1, c._field(1, 1) + c._field(2, b"".join(
        c._field(1, c._field(1, n)) for n in (1, 6)))))
    graph = (c._node("Conv", ["x", "w"], "y", conv) + c._node("GlobalAveragePool", ["y"], "p")
             + c._node("Flatten", ["p"], "s") + c._node("Relu", ["y"], "z") + c._field(2, "three")
             + c._field(5, c._tensor("w", [6, 1, 3, 3], weights)) + c._field(11, c._value("x", 1))
             + c._field(12, c._value("y", 6)) + c._field(12, flat) + c._field(12, c._value("z", 6)))
    with open(path, "wb") as f:
        f.write(c._field(1, 8) + c._field(7, graph) + c._field(8, c._field(1, "") + c._field(2, 13)))
    return path


class Outputs:
    """A command, its folder, and what is in that when nobody disturbs it."""

    def __init__(self, lab, name, args, code=0):
        self.lab, self.name, self.args, self.code = lab, name, args, code
        self.dir = lab.path(name)
        self.clean()
        r = self.run()
        check(r.code == code, "%s: undisturbed: %s" % (name, r))
        self.want = self.files()
        self.names = sorted(n for n in self.want if n[0] != ".")
        check(len(self.names) == 3, "%s: %s" % (name, sorted(self.want)))
        self.span = self.window()

    def at(self, name):
        return os.path.join(self.dir, name)

    def run(self, more=(), k=0, how="kill", args=None):
        return self.lab.run((args or self.args) + ["-o", self.dir + "/"] + list(more),
                            {"TEGULA_FAIL_IO": "%d:%s" % (k, how)} if k else None)

    def clean(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)

    def files(self):
        return {n: read(self.at(n)) for n in os.listdir(self.dir)}

    def kill(self, k, how="kill", more=()):
        self.clean()
        r = self.run(more, k, how)
        # What a run has learnt of its speed is written now and then, when all else is done.
        check(r.code == -9 or self.files() == self.want, "%s: operation %d: %s" % (self.name, k, r))

    def named(self):
        return [n for n in self.names if os.path.exists(self.at(n))]

    def window(self):
        """Operations from before the first name to the last that there is; where all have theirs."""
        def dies(k):
            self.clean()
            return self.run(k=k).code == -9
        low, end = 0, 64
        while dies(end):
            low, end = end, 2 * end
        while end - low > 1:
            mid = (low + end) // 2
            low, end = (mid, end) if dies(mid) else (low, mid)
        k, self.all_named = end, 0
        while not dies(k) or self.named():
            if len(self.named()) == 3:
                self.all_named = k
            k -= 1
        check(self.all_named > k + 1, "%s: names are given from operation %d on, of %d" % (self.name, k, end))
        return range(max(1, k - BEFORE), end)

    def confirm(self, r, what):
        """It ended as the undisturbed run; or was told that all is there, by one that was killed behind that."""
        what = "%s: %s" % (self.name, what)
        check(self.files() == self.want, "%s: %s, then %s" % (what, r, sorted(self.files())))
        check(r.code == self.code, "%s: the same command: %s" % (what, r))

    def again(self, what, more=()):
        if self.files() == self.want:  # all was done, but to say so
            r = self.run(more)
            check(r.code == 73 and self.files() == self.want, "%s: %s: done, and then %s" % (self.name, what, r))
        else:
            self.confirm(self.run(more), what)

    def between(self):
        """Killed with one name given and another not."""
        for k in self.span:
            self.kill(k)
            if 0 < len(self.named()) < 3:
                return k
        check(False, "%s: no kill came between two names" % self.name)


def test_each(job, every):
    """Killed at each operation, and going on killed at each of its own; or the operation fails."""
    rolled, listed = 0, []
    for k in job.span:
        job.kill(k)
        if LIST in job.files():
            listed.append(k)
            torn = not job.files()[LIST]
        else:
            torn = every
        job.again("operation %d" % k)
        if torn:
            job.kill(k, "torn")
            job.again("operation %d, torn" % k)
        job.clean()
        r = job.run(k=k, how="")
        check(r.code in (74, job.code), "%s: operation %d fails: %s" % (job.name, k, r))
        if r.code == 74:
            job.again("operation %d failed" % k)
    check(len(listed) > 6, "%s: a list is there at %s" % (job.name, listed))
    for k in listed if every else (listed[3], job.between(), listed[-1]):
        for j in range(1, 60):
            job.kill(k)
            r = job.run(k=j)
            if r.code != -9:
                break
            job.again("operation %d, then %d of going on" % (k, j))
            rolled += 1
    check(rolled > 10, "%s: going on was killed at %d operations" % (job.name, rolled))
    return rolled


def test_others(job, other):
    """What somebody did to the files meanwhile stays, unless -y says otherwise."""
    k = job.between()
    named = job.named()[0]
    waits = [n for n in job.names if n not in job.named()][-1]

    def replace(path, data):
        write(path + ".new", data)
        os.rename(path + ".new", path)

    def flip(path):
        data = bytearray(read(path))
        data[len(data) // 2] ^= 16
        with open(path, "r+b") as f:
            f.write(data)
    growing = [n + e for n in job.names for e in (".partial", ".made") if n not in job.named() and os.path.exists(job.at(n + e))][-1]

    def flip_unseen(path):
        was = os.stat(path)
        flip(path)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    deeds = {
        "another file has the first name": lambda: replace(job.at(named), DIARY),
        "so has one of the same size": lambda: replace(job.at(named), bytes(len(job.want[named]))),
        "the first output is longer": lambda: open(job.at(named), "ab").write(b"more") and None,
        "a bit of it is another": lambda: flip(job.at(named)),
        "another file has a name that waits": lambda: write(job.at(waits), DIARY),
        "a bit of what waits is another": lambda: flip(job.at(growing)),
        "a bit of it, and its time is as it was": None if ".npy" in growing else lambda: flip_unseen(job.at(growing)),
        "what waits is gone": lambda: os.remove(job.at(growing)),
    }
    for what, deed in deeds.items():
        if not deed:  # arrays have no checksum
            continue
        job.kill(k)
        deed()
        before = {n: d for n, d in job.files().items() if n in job.names}
        r = job.run()
        check(r.code in (65, 73) and "-y" in r.err, "%s: %s: %s" % (job.name, what, r))  # 65: its journal is there
        check({n: d for n, d in job.files().items() if n in job.names} == before, "%s: %s: it was changed" % (job.name, what))
        job.confirm(job.run(["-y"]), what + ", -y")
    job.kill(k)  # another command: refused as ever, and the first one's list holds behind it
    before = {n: d for n, d in job.files().items() if n in job.names}
    r = job.run(args=other)
    check(r.code == 73 and {n: d for n, d in job.files().items() if n in job.names} == before,
          "%s: another command: %s" % (job.name, r))
    job.again("another command was refused")
    r = job.run(["-y"], args=other)
    theirs = job.files()
    check(r.code in (0, 65) and theirs != job.want, "%s: another command, -y: %s" % (job.name, r))
    for k in job.span:  # with nothing named yet it begins anew, and no list stays
        job.kill(k)
        if not job.named() and LIST in job.files():
            r = job.run(args=other)
            check(r.code in (0, 65) and job.files() == theirs, "%s: another command behind a list: %s, %s"
                  % (job.name, r, sorted(job.files())))
            return
    check(False, "%s: no kill left a list and no name" % job.name)


def test_replacing(job):
    """With -y, over older files: the same."""
    for k in job.span[BEFORE:]:
        job.clean()
        for n in job.names:
            write(job.at(n), DIARY)
        r = job.run(["-y"], k)
        check(r.code == -9 or job.files() == job.want, "%s -y: operation %d: %s" % (job.name, k, r))
        partly = LIST in job.files()
        r = job.run()
        old = [n for n in job.names if job.files()[n] == DIARY]
        check(r.code == 73 if old else True, "%s: older files and no -y: %s" % (job.name, r))
        check(all(job.files()[n] == DIARY for n in old), "%s: no -y, and an older file is gone" % job.name)
        job.confirm(job.run(["-y"]), "-y, operation %d%s" % (k, ", a list" if partly else ""))


def test_beside(job):
    """A log is in nobody's way; whoever holds a file, is."""
    log = ["--log", job.lab.path("l.csv")]
    for k in [k for k in job.span if k >= job.all_named - 2]:
        if os.path.exists(log[1]):
            os.remove(log[1])
        job.kill(k, more=log)
        if LIST in job.files():
            job.again("with a log, operation %d" % k, log)
    job.kill(job.between())
    before = job.files()
    for name in [n for n in before if n == LIST or n not in job.named() and n.endswith((".npy.partial", ".journal"))]:
        with open(job.at(name), "r+b") as f:
            fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            for more in ([], ["-y"]):
                r = job.run(more)
                check(r.code == 75 and job.files() == before, "%s: another holds %s: %s" % (job.name, name, r))
    job.again("nobody holds anything")


def test(lab, rest):
    net, image = three(lab.path("three.onnx")), picture(lab.path("in.tif"), 64, 48)
    numbers = array(lab.path("x.npy"), (1, 1, 32, 48))
    run = ["run", "-m", net, "--threads", "1"]
    fill = ["--on-bad-tile", "fill"]
    jobs = [Outputs(lab, "mixed", run + [image]), Outputs(lab, "made", run + [image, "--format", "imagej"]),
            Outputs(lab, "arrays", run + [numbers]),
            Outputs(lab, "filled", run + [damaged_tiles(lab.path("bad.tif")), *fill], 65)]
    other = [run + [image, "--normalize", "zscore"], run + [image, "--format", "imagej", "--normalize", "zscore"],
             run + [array(lab.path("x2.npy"), (1, 1, 48, 32))], run + [image, *fill]]
    n = [test_each(job, rest == ["all"]) for job in jobs]
    for job, unlike in zip(jobs, other):
        test_others(job, unlike)
    for job in jobs[:3] if rest == ["all"] else jobs[:1]:
        test_replacing(job)
    test_beside(jobs[0])
    print("going on was killed at %s operations" % n)


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
