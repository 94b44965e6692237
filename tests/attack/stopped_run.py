#!/usr/bin/env python3
"""A stopped run whose files were damaged: the same command ends with the same bytes, or refuses.

    stopped_run.py TEGULA SOURCE_DIR [CHANGES [all]]

'all' takes more kinds of jobs.

A run is killed at four places: before its first tile is safe, on its way, with all tiles written, and
between giving the output its name and removing the journal. Then one of the files that it left (OUT.partial, OUT.journal, and with
--on-bad-tile fill OUT.errors.partial; at the last place OUT itself) is changed: a bit is flipped, a page
zeroed, the end cut off, rubbish appended: CHANGES times each file, of outputs without and with
compression; once each is removed. The same command must end as the undisturbed run did: its code, its bytes, its list of filled regions, its
checksum in the receipt. Or it refuses, says why, and gives nothing the output's name.

A change of OUT.partial is never a reason to refuse: what is damaged is computed again. Unless another input
is found then. Standard library."""
import collections
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("crash", "fuzz", "hostile"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import seeds  # noqa: E402
from crashlib import Job, check, main, picture, upscaler  # noqa: E402

PAGE = 4096
REFUSED = (65, 73)
PLACES = ("first", "bands", "finish", "rename")
NAMES = {".partial": "OUT.partial", ".journal": "OUT.journal", ".errors.partial": "OUT.errors.partial", "": "OUT"}


def damaged_tiles(path, side=160, tile=32, bad=(3, 8, 17)):
    """An image of deflate tiles, some of which cannot be decoded."""
    t = seeds.Tiff()
    blocks = [bytearray(seeds.deflate(seeds.pixels(tile * tile, k + 1))) for k in range((side // tile) ** 2)]
    for k in bad:
        blocks[k][len(blocks[k]) // 2] ^= 0x55
    at = [t.add(bytes(b)) for b in blocks]
    t.directory({256: (4, side), 257: (4, side), 258: (3, 8), 259: (3, 8), 262: (3, 1), 277: (3, 1), 322: (3, tile),
                 323: (3, tile), 324: (4, at), 325: (4, [len(b) for b in blocks])})
    with open(path, "wb") as f:
        f.write(bytes(t.out))
    return path


class Attacked(Job):
    """A job, what it leaves when it is killed, and what it must come to."""
    ends = ("", ".partial", ".journal", ".made", ".tegula.json", ".tegula.json.tmp", ".errors.partial", ".errors.json")

    def __init__(self, lab, name, args, out="tif", code=0):
        super().__init__(lab, name, args, {"TEGULA_SYNC_TILES": 1 if code else 5}, needs_stats=False)
        self.out = lab.path("%s-out.%s" % (name, out))
        self.code, self.stops = code, {}

    def clean(self):
        for end in self.ends:
            if os.path.lexists(self.out + end):
                os.unlink(self.out + end)

    def read(self, end):
        try:
            with open(self.out + end, "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def receipt(self):
        """Of a run; a copy writes none."""
        r = json.loads(self.read(".tegula.json") or "{}")
        return r.get("output_crc32c"), r.get("bad_regions")

    def prepare(self):
        self.clean()
        r = self.run()
        check(r.code == self.code, "%s: undisturbed: %s" % (self.name, r))
        self.bytes, self.listed, self.said = self.read(""), self.read(".errors.json"), self.receipt()
        n = self.operations()
        k = next(k for k in range(1, n) if self._dies_at(k) and self.slot())
        self.stop("first", k + 1)
        self.stop("bands", n * 2 // 3)
        for back in range(1, 14):  # from the end: journal removed, folder synced, renamed, FINAL slot ...
            if self._dies_at(n + 1 - back) and self.read(".journal") and self.read("") is not None:
                self.keep("rename")
            if self.read(".partial") and self.slot() and not self.slot()["final"]:
                self.keep("finish")
                break
        check(set(self.stops) == set(PLACES), "%s: stopped at %s" % (self.name, sorted(self.stops)))

    def stop(self, place, k):
        check(self._dies_at(k), "%s: not killed at operation %d" % (self.name, k))
        self.keep(place)

    def keep(self, place):
        self.stops[place] = {end: self.read(end) for end in self.ends if self.read(end) is not None}

    def put(self, place):
        self.clean()
        for end, data in self.stops[place].items():
            with open(self.out + end, "wb") as f:
                f.write(data)

    def places(self, end):
        """Where this file is among what was left, to be changed; OUT may be an older one before."""
        return [p for p in PLACES if self.stops[p].get(end) and (end or p == "rename")]


def spot(rng, end, data, unit):
    """Where: anywhere, or where the journal's head, slots and texts are, which is little of it."""
    size = len(data)
    at = rng.randrange(size)
    if end == ".journal" and rng.random() < 0.6:
        start, n = rng.choice(((0, 24), (4096, 192), (8192, 192), (12288, size - 12288)))
        at = min(size - 1, start + rng.randrange(max(1, n)))
    return at // unit * unit


def change(rng, end, data, how):
    """(the changed bytes, what was done) of a file."""
    data = bytearray(data)
    if how == "flip":
        at, bit = spot(rng, end, data, 1), rng.randrange(8)
        data[at] ^= 1 << bit
        return data, "bit %d of byte %d flipped" % (bit, at)
    if how == "zero":
        at = spot(rng, end, data, PAGE)
        n = min(PAGE, len(data) - at)
        data[at:at + n] = bytes(n)
        return data, "page at %d zeroed" % at
    if how == "cut":
        n = spot(rng, end, data, 1)
        return data[:n], "cut to %d of %d bytes" % (n, len(data))
    more = rng.randrange(1, 3 * PAGE)
    return data + bytes(rng.randrange(256) for _ in range(more)), "%d bytes appended" % more


def check_memory(where, r):
    """Reading back and mending are in the plan. Nothing is measured where nothing was left to do; a
    sanitizer's memory is in no plan."""
    if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
        return
    for d in (json.loads(line) for line in r.out.splitlines()):
        if d["event"] == "done" and d.get("predicted_peak_bytes"):
            check(d["measured_peak_bytes"] <= d["predicted_peak_bytes"], "%s: more memory than planned: %s" % (where, d))


def judge(job, place, end, what, r):
    """'same' or 'refused'; anything else is a broken promise."""
    where = "%s, %s: %s: %s" % (job.name, place, NAMES[end], what)
    out = job.read("")
    if out is None:
        check(r.code in REFUSED, "%s: no output, and %s" % (where, r))
        check(end != ".partial", "%s: refused: %s" % (where, r))
        check(os.path.basename(job.out) in r.err, "%s: refused without a name: %s" % (where, r))
        return "refused"
    if place == "rename" and (r.code == 73 or r.code == 65 and job.read(".journal") is not None):
        return "refused"  # the run before gave the name; this one says that something is wrong
    check(r.code == job.code, "%s: %s" % (where, r))
    check(out == job.bytes, "%s: other bytes, exit %s" % (where, r.code))
    check(job.read(".errors.json") == job.listed, "%s: another list of filled regions" % where)
    check(job.receipt() == job.said, "%s: the receipt says %s, not %s" % (where, job.receipt(), job.said))
    check_memory(where, r)
    return "same"


def hit(job, place, end, how):
    """Change or remove the file, give the command again."""
    job.put(place)
    what = "removed"
    if how == "gone":
        os.unlink(job.out + end)
    else:
        data, what = change(job.lab.rng, end, job.stops[place][end], how)
        with open(job.out + end, "wb") as f:
            f.write(data)
    return judge(job, place, end, what, job.run())


def attack(work, end, changes, count):
    """The same file of several jobs."""
    where = [(job, place) for job in work for place in job.places(end)]
    if not where:
        return
    for job, place in where:
        if end != "" and (end, place) != (".journal", "rename"):  # else nothing is left to go on with
            count[(end, hit(job, place, end, "gone"))] += 1
    for k in range(changes):
        job, place = where[k % len(where)]
        how = ("flip", "zero", "cut", "grow", "flip")[k // len(where) % 5]
        count[(end, hit(job, place, end, how))] += 1


def another_input(job, image):
    """Written to between the runs so that its name, size, time and ends are as they were: no output of
    two inputs comes of it."""
    was = os.stat(image)
    with open(image, "rb") as f:
        data = f.read()
    job.put("finish")
    os.truncate(job.out + ".partial", len(job.stops["finish"][".partial"]) // 2)
    with open(image, "wb") as f:
        f.write(data[:30000] + bytes(b ^ 1 for b in data[30000:-30000]) + data[-30000:])
    os.utime(image, ns=(was.st_atime_ns, was.st_mtime_ns))
    r = job.run()
    check(r.code == 65 and job.read("") is None, "another input: %s" % r)
    with open(image, "wb") as f:
        f.write(data)
    os.utime(image, ns=(was.st_atime_ns, was.st_mtime_ns))
    r = job.run()
    check(r.code == 0 and job.read("") == job.bytes, "the input is as it was: %s" % r)


def jobs(lab, every):
    """Jobs whose tiles are not compressed, and such whose are."""
    image = picture(lab.path("noisy.tif"), 256, 192)
    net = upscaler(lab.path("up.onnx"), 4)
    bad = damaged_tiles(lab.path("bad.tif"))
    run = ["run", "-m", net, image, "--ram", "64MiB", "--threads", "2", "--tile", "64x64"]
    fill = ["run", "-m", net, bad, "--ram", "64MiB", "--threads", "2", "--tile", "64x64", "--on-bad-tile", "fill"]
    lzw = ["--compress", "lzw"]
    plain = [Attacked(lab, "none", run), Attacked(lab, "fill", fill, code=65)]
    packed = [Attacked(lab, "deflate", run + ["--compress", "deflate"])]
    if every:
        plain.append(Attacked(lab, "picture", run + ["--dtype", "uint8"], "png"))
        packed += [Attacked(lab, "levels", run + lzw + ["--pyramid", "mean"]),
                   Attacked(lab, "scores", run + ["--normalize", "zscore", "--compress", "deflate"]),
                   Attacked(lab, "filled", fill + lzw, code=65),
                   Attacked(lab, "copy", ["copy", image, "--threads", "2", "--pyramid", "mean"] + lzw)]
    return plain, packed


def test(lab, rest):
    changes = int(rest[0]) if rest else 40
    begun = time.monotonic()
    for kind, work in zip(("not compressed", "compressed"), jobs(lab, "all" in rest)):
        count = collections.Counter()
        for job in work:
            job.prepare()
        another_input(work[0], lab.path("noisy.tif"))
        for end in NAMES:
            attack(work, end, changes, count)
        for end, name in NAMES.items():
            same, refused = count[(end, "same")], count[(end, "refused")]
            if same + refused:
                print("%s, %s: %d changes, %d ended with the same bytes, %d were refused"
                      % (kind, name, same + refused, same, refused), flush=True)
        check(count[(".partial", "same")] > 0 and count[(".journal", "same")] > 0, "nothing was tested")
    print("%.0f s" % (time.monotonic() - begun))


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
