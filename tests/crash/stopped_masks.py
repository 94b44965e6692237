"""Objects (--post), stopped anywhere: killed in front of each file operation, each operation fails, the disk is full.
The same command then ends with the same bytes, the same table and nothing beside them.

    stopped_masks.py TEGULA SOURCE_DIR [all|big]

All: every operation, not each fourth. Big: a mask and a checkerboard of 16,384 x 16,384 pixels in 64 MiB, with --scratch; the peak is measured, and the numbers
are known without another program: those of a checkerboard are counted, those of a mask of boxes drawn."""
import json
import os
import re
import shutil
import struct
import tempfile
import time

from crashlib import Job, check, main, picture, read

ENDS = (".values.tif", ".values.tif.partial", ".values.tif.journal", ".values.tif.tegula.json", ".values.tif.tegula.json.tmp", ".values.tif.stages")


class Masks(Job):
    """A job with a table beside its output."""

    table = None

    def clean(self):
        super().clean()
        for path in [self.out + e for e in ENDS] + ([self.table, self.table + ".partial"] if self.table else []):
            if os.path.exists(path):
                os.unlink(path)

    def learn(self):
        self.table = self.lab.path(self.name + ".csv")
        self.args = self.args + ["--objects", self.table]
        self.clean()
        r = self.run()
        check(r.code == 0, "%s: undisturbed: %s" % (self.name, r))
        self.bytes, self.rows = read(self.out), read(self.table)
        self.tiles = None
        check(self.rows.count(b"\n") > 3, "%s: hardly an object: %r" % (self.name, self.rows[:300]))
        self.clean()
        return self

    def confirm(self, what):
        super().confirm(what)
        check(read(self.table) == self.rows, "%s: %s: another table" % (self.name, what))
        left = [e for e in ENDS if os.path.exists(self.out + e)]
        check(not left and not os.path.exists(self.table + ".partial"), "%s: %s: left %s" % (self.name, what, left))


def sweep(job, answer, code, step):
    """Operation k is the last of its run, for each k: then the job is gone on with."""
    k = 1
    while True:
        job.clean()
        r = job.run({"TEGULA_FAIL_IO": "%d:%s" % (k, answer) if answer else str(k)})
        if r.code == 0:
            job.confirm("without a failure")
            return k // step
        check(r.code == code, "%s: operation %d %s: expected exit %d, got %s" % (job.name, k, answer, code, r))
        job.finish("operation %d %s" % (k, answer))
        k += step
        check(k < 3000, "%s: no end of file operations" % job.name)


def killed_twice(job):
    """And while it goes on after the first kill."""
    for k in range(2, 40, 5):
        job.clean()
        first = job.run({"TEGULA_FAIL_IO": "%d:kill" % (3 * k)})
        if first.code == 0 and k > 8:
            return
        second = job.run({"TEGULA_FAIL_IO": "%d:torn" % k})
        check(first.code == -9 and second.code in (-9, 0, 73), "%s: not killed: %s, %s" % (job.name, first, second))
        job.finish("killed at %d and at %d" % (3 * k, k))


def other_steps(job):
    """What is made of the values may be another thing: the network's work is not lost, and -y says so."""
    job.clean()
    k = 1
    while not os.path.exists(job.out + ".values.tif"):
        job.clean()
        k += 1
        r = job.run({"TEGULA_FAIL_IO": "%d:kill" % k})
        check(r.code == -9, "%s: the values never stay: %s" % (job.name, r))
    at = os.stat(job.out + ".values.tif").st_ino
    other = job.args[:]
    other[other.index("--post") + 1] = "threshold:2500,label:4"
    r = job.lab.run(other + ["-o", job.out], {"TEGULA_FAIL_IO": "3:kill"})
    check(os.stat(job.out + ".values.tif").st_ino == at, "the values were made again: %s" % r)
    r = job.lab.run(other + ["-o", job.out, "-y"])
    check(r.code == 0 and read(job.out) != job.bytes, "other steps: %s" % r)
    job.clean()


def done_by_another(job):
    """Stopped when only the journal was left to remove: another command is not told that all is done."""
    k = 1
    while not (os.path.exists(job.out) and os.path.exists(job.out + ".journal")):
        job.clean()
        k += 1
        r = job.run({"TEGULA_FAIL_IO": "%d:kill" % k})
        check(r.code == -9, "%s: the journal never stays: %s" % (job.name, r))
    other = job.args[:]
    other[other.index("--post") + 1] = "threshold:2500,label:4"
    r = job.lab.run(other + ["-o", job.out])
    check(r.code == 65 and "another post" in r.err and read(job.out) == job.bytes, "another command found it done: %s" % r)
    job.finish("only the journal stays")
    job.clean()


def described(lab, image, job):
    """The list in a descriptor is that of the command line, which wins; and nothing of it is a preview's."""
    for end in (".onnx", ".json"):
        shutil.copy(lab.denoiser[:-5] + end, lab.path("says" + end))
    with open(lab.path("says.json")) as f:
        says = json.load(f)
    model, out = lab.path("says.onnx"), lab.path("says.tif")
    for list_, code in ((job.args[job.args.index("--post") + 1], 0), ("label,otsu", 65)):
        with open(lab.path("says.json"), "w") as f:
            json.dump(dict(says, post=list_), f)
        r = lab.run(["run", "-m", model, image, "-o", out, "--threads", "1", "-q", "-y"])
        check(r.code == code and (code == 0 or "label is the last step" in r.err), "a descriptor with %s: %s" % (list_, r))
        if code == 0:
            check(read(out) == job.bytes, "a descriptor with %s: other bytes" % list_)
            for more in (["run", "--post", "none", "-o", lab.path("plain.tif")], ["preview", "-o", lab.path("look.png")], ["verify"]):
                r = lab.run(more[:1] + ["-m", model, image, "-q"] + more[1:])
                check(r.code == 0, "%s: %s" % (more[0], r))
            check(len(read(lab.path("plain.tif"))) != len(job.bytes), "--post none gave objects")
            check(not [n for n in os.listdir(lab.dir) if ".values." in n], "values are left")


def test(lab, rest):
    if rest == ["big"]:
        return big(lab)
    scratch = tempfile.mkdtemp(prefix="tegula-crash-")  # on a disk, where the rest is not
    try:
        stops(lab, rest, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def stops(lab, rest, scratch):
    image = picture(lab.path("image.tif"), 200, 150, 2)
    wide = picture(lab.path("wide.tif"), 2000, 1500)
    few = {"TEGULA_SYNC_TILES": 1}
    small = Masks(lab, "copy", ["copy", image, "--post", "threshold:4000,min-size:3,label", "--compress", "deflate"], few, False).learn()
    stack = Masks(lab, "stack", ["copy", image, "--axes", "ZYX", "--post", "otsu,fill-holes,label:26", "--pyramid", "nearest"], few, False).learn()
    kept = Masks(lab, "kept", ["copy", wide, "--post", "otsu,min-size:2,label:4", "--ram", "18MiB", "--scratch", scratch], few, False)
    r = lab.run(kept.args[:kept.args.index("--scratch")] + ["-o", kept.out])
    check(r.code == 71 and "--scratch DIR" in r.err, "nothing goes to the scratch file: %s" % r)
    kept.learn()
    run = Masks(lab, "run", ["run", "-m", lab.denoiser, image, "--post", "threshold:3500,label", "--threads", "1"], few).learn()
    each = 1 if rest == ["all"] else 4
    n = [sweep(job, "kill", -9, step * each) for job, step in ((small, 1), (stack, 2), (kept, 40), (run, 1))]
    n += [sweep(job, "", 74, step * each) for job, step in ((small, 3), (stack, 5), (kept, 60), (run, 2))]
    n += [sweep(job, "full", 73, step * each) for job, step in ((small, 5), (stack, 7), (kept, 70), (run, 3))]
    for job in (small, run):
        killed_twice(job)
    other_steps(run)
    done_by_another(run)
    described(lab, image, run)
    print("moments: %s" % n)


# ---- Big ------------------------------------------------------------------------------------

SIDE = 16384


def rows_tiff(path, row):
    """One strip of SIDE rows of SIDE bytes; row(y) gives them."""
    tags = [(256, 4, SIDE), (257, 4, SIDE), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 512), (277, 3, 1), (278, 4, SIDE),
            (279, 4, SIDE * SIDE), (339, 3, 1)]
    with open(path, "wb") as f:
        f.write(b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)))
        for tag, form, value in tags:
            f.write(struct.pack("<HHII", tag, form, 1, value))
        f.write(b"\0" * (512 - f.tell()))
        for y in range(SIDE):
            f.write(row(y))
    return path


def measured(lab, args):
    """The most that the process held of its own, looked at every few milliseconds."""
    p = lab.start(args)
    peak = 0
    while p.poll() is None:
        try:
            with open("/proc/%d/status" % p.pid) as f:
                text = f.read()
        except FileNotFoundError:
            break
        found = re.findall(r"Rss(?:Anon|Shmem):\s+(\d+) kB", text)
        peak = max(peak, sum(map(int, found)))
        time.sleep(0.005)
    r = lab.wait(p)
    check(r.code == 0, "%s: %s" % (args, r))
    return peak


def row_of(lab, image, y):
    path = lab.path("row.npy")
    r = lab.run(["copy", image, "-o", path, "--roi", "%d:%d,:" % (y, y + 1), "-y", "-q"])
    check(r.code == 0, "no row: %s" % r)
    return struct.unpack("<%dI" % SIDE, read(path)[-4 * SIDE:])


def big(lab):
    os.mkdir(lab.path("scratch"))
    out = lab.path("labels.tif")
    limit = ["--ram", "64MiB", "--scratch", lab.path("scratch"), "-o", out, "-y", "-q"]
    some = [0, 1, 777, 8192, SIDE - 1]

    board = [bytes((x + y) % 2 for x in range(SIDE)) for y in range(2)]
    image = rows_tiff(lab.path("board.tif"), lambda y: board[y % 2])
    for list_, number in (("label:4", lambda y, x: y * (SIDE // 2) + x // 2 + 1), ("label:8", lambda y, x: 1)):
        peak = measured(lab, ["copy", image, "--post", list_] + limit)
        check(peak <= 65536, "the checkerboard, %s: %d KiB" % (list_, peak))
        for y in some:
            want = tuple(number(y, x) if (x + y) % 2 else 0 for x in range(SIDE))
            check(row_of(lab, out, y) == want, "the checkerboard, %s: row %d" % (list_, y))
        print("checkerboard, %s: %.1f MiB" % (list_, peak / 1024), flush=True)
    os.unlink(image)

    cell, boxes = 64, []  # a box in each cell, none touches another
    for top in range(0, SIDE, cell):
        for left in range(0, SIDE, cell):
            y, x = top + lab.rng.randrange(1, 30), left + lab.rng.randrange(1, 30)
            boxes.append((y, x, y + lab.rng.randrange(1, 30), x + lab.rng.randrange(1, 30)))
    boxes.sort()
    begins = {}
    for k, b in enumerate(boxes):
        begins.setdefault(b[0], []).append(k)
    open_, at = [], -1

    def row(y):
        nonlocal open_, at
        check(y == at + 1, "rows in order")
        at = y
        open_ = [k for k in open_ if boxes[k][2] > y] + begins.get(y, [])
        line = bytearray(SIDE)
        for k in open_:
            line[boxes[k][1]:boxes[k][3]] = b"\1" * (boxes[k][3] - boxes[k][1])
        return bytes(line)

    image = rows_tiff(lab.path("boxes.tif"), row)
    peak = measured(lab, ["copy", image, "--post", "fill-holes,label", "--objects", lab.path("boxes.csv")] + limit)
    check(peak <= 65536, "the mask of boxes: %d KiB" % peak)
    for y in some + [100, 5000]:
        want = [0] * SIDE
        for k, b in enumerate(boxes):
            if b[0] <= y < b[2]:
                want[b[1]:b[3]] = [k + 1] * (b[3] - b[1])
        check(row_of(lab, out, y) == tuple(want), "the mask of boxes: row %d" % y)
    with open(lab.path("boxes.csv")) as f:
        lines = f.read().splitlines()[1:]
    check(len(lines) == len(boxes), "the table has %d of %d objects" % (len(lines), len(boxes)))
    for line, b in zip(lines, boxes):
        v = line.split(",")
        check(int(v[1]) == (b[2] - b[0]) * (b[3] - b[1]) and tuple(map(int, v[4:8])) == b and float(v[8]) == 1.0,
              "the table has %s for %s" % (line, b))
    print("mask of boxes: %.1f MiB" % (peak / 1024))


if __name__ == "__main__":
    import sys
    main(test, sys.argv, in_memory="big" not in sys.argv)
