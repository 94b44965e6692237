#!/usr/bin/env python3
"""An image much larger than memory: an 8 GiB BigTIFF through a network, in a memory cgroup of
512 MiB, then with the address space limited to 2 GiB.

    big_tiff.py TEGULA [--small]

The image is 16-bit, 65536 wide, sparse on disk, with noise along its borders, in its corners and
in random boxes, most of them beyond 4 GiB. The network is one 3x3 convolution with small whole
weights, so its exact answer is integer arithmetic: 200 random patches of the output, the borders
among them, are computed here from the input file and compared bit by bit. --small takes an image of
64 MiB and is over in seconds.
"""
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import zlib

import onnxmade
import tiffmade
import watch

MIB = 1 << 20
LIMIT = 512 * MIB
BUDGET = 384
WEIGHTS = [1, -2, 3, 2, 1, 0, -1, 1, 2]
PATCH = 24
PATCHES = 200


# ---- The group --------------------------------------------------------------------------------

def make_group():
    """Folder of a fresh memory cgroup limited to LIMIT, or None where that cannot be made."""
    name = f"tegula-test-{os.getpid()}"
    for parent, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                          ("/sys/fs/cgroup", "memory.max")):
        folder = os.path.join(parent, name)
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            with open(os.path.join(folder, limit), "r+") as f:
                f.write(str(LIMIT))
            return folder
        except OSError:
            os.rmdir(folder)
    return None


def group_peak(folder):
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        try:
            with open(os.path.join(folder, name)) as f:
                return int(f.read())
        except OSError:
            pass
    return None


# ---- The image --------------------------------------------------------------------------------

def draw(made, rng):
    """Noise of 0..79 where seams and 32-bit offsets would show. Returns the boxes (y, x, h, w)."""
    w, h = made.width, made.height
    boxes = [(0, 0, 3, w), (h - 3, 0, 3, w), (h // 2 - 1, 0, 2, w)]
    boxes += [(y, x, 96, 96) for y in (0, h - 96) for x in (0, w - 96)]
    for _ in range(200):
        y = rng.randrange(h // 2 if rng.random() < 0.7 else 0, h - 64)
        x = rng.choice((0, w - 64, rng.randrange(w - 64)))
        boxes.append((y, x, 64, 64))
    with open(made.path, "r+b") as f:
        for y, x, bh, bw in boxes:
            made.box(f, y, x, [struct.pack(f"<{bw}H", *(rng.randrange(80) for _ in range(bw)))
                               for _ in range(bh)])
    return boxes


def patch_places(boxes, made, rng):
    places = []
    for k in range(PATCHES):
        y, x, bh, bw = rng.choice(boxes) if k % 4 else (rng.randrange(made.height), rng.randrange(made.width), 1, 1)
        y += rng.randrange(bh) - rng.randrange(PATCH)
        x += rng.randrange(bw) - rng.randrange(PATCH)
        places.append((min(max(y, 0), made.height - PATCH), min(max(x, 0), made.width - PATCH)))
    return places


# ---- The independent pass ---------------------------------------------------------------------

def expected(made, f, y0, x0):
    """Rows of the patch: the convolution, clipped to 0..255 (all values are whole)."""
    lo, hi = max(x0 - 1, 0), min(x0 + PATCH + 1, made.width)
    rows = []
    for y in range(y0 - 1, y0 + PATCH + 1):
        row = [0] * (PATCH + 2)
        if 0 <= y < made.height:
            f.seek(made.data + y * made.row_bytes + 2 * lo)
            row[lo - x0 + 1:hi - x0 + 1] = struct.unpack(f"<{hi - lo}H", f.read(2 * (hi - lo)))
        rows.append(row)
    return [bytes(min(max(sum(WEIGHTS[3 * i + j] * rows[y + i][x + j] for i in range(3) for j in range(3)), 0), 255)
                  for x in range(PATCH)) for y in range(PATCH)]


class Output:
    """Our own TIFF, tiled, 8-bit, deflate with horizontal differences, read by hand."""

    def __init__(self, path):
        self.f = open(path, "rb")
        order, version = struct.unpack("<2sH", self.f.read(4))
        assert order == b"II" and version in (42, 43), "the output is no little-endian TIFF"
        big = version == 43
        at = struct.unpack("<4xQ" if big else "<I", self.f.read(12 if big else 4))[0]
        self.f.seek(at)
        self.offset = "<Q" if big else "<I"
        entry = "<HHQ8s" if big else "<HHI4s"
        self.tags = {}
        for _ in range(struct.unpack("<Q" if big else "<H", self.f.read(8 if big else 2))[0]):
            tag, kind, count, value = struct.unpack(entry, self.f.read(struct.calcsize(entry)))
            self.tags[tag] = (kind, count, value)
        self.width, self.height = self.one(256), self.one(257)
        self.tw, self.th = self.one(322), self.one(323)
        assert self.one(258) == 8 and self.one(259) == 8
        self.differences = 317 in self.tags and self.one(317) == 2
        self.across = -(-self.width // self.tw)
        self.kept = (None, None)

    def one(self, tag, index=0):
        kind, count, value = self.tags[tag]
        size, form = {3: (2, "<H"), 4: (4, "<I"), 16: (8, "<Q")}[kind]
        if count * size <= len(value):
            return struct.unpack_from(form, value, index * size)[0]
        self.f.seek(struct.unpack(self.offset, value)[0] + index * size)
        return struct.unpack(form, self.f.read(size))[0]

    def tile(self, k):
        if self.kept[0] != k:
            at, n = self.one(324, k), self.one(325, k)
            self.f.seek(at)
            raw = bytearray(zlib.decompress(self.f.read(n)))
            for at in range(0, len(raw), self.tw) if self.differences else ():
                for x in range(at + 1, at + self.tw):
                    raw[x] = (raw[x] + raw[x - 1]) & 255
            self.kept = (k, bytes(raw))
        return self.kept[1]

    def patch(self, y0, x0):
        rows = [bytearray(PATCH) for _ in range(PATCH)]
        for ty in range(y0 // self.th, (y0 + PATCH - 1) // self.th + 1):
            for tx in range(x0 // self.tw, (x0 + PATCH - 1) // self.tw + 1):
                t = self.tile(ty * self.across + tx)
                for y in range(max(y0, ty * self.th), min(y0 + PATCH, (ty + 1) * self.th)):
                    a, b = max(x0, tx * self.tw), min(x0 + PATCH, (tx + 1) * self.tw)
                    at = (y - ty * self.th) * self.tw + a - tx * self.tw
                    rows[y - y0][a - x0:b - x0] = t[at:at + b - a]
        return [bytes(r) for r in rows]


# ---- The two runs -----------------------------------------------------------------------------

def check_output(made, path, boxes, rng):
    out = Output(path)
    assert (out.width, out.height) == (made.width, made.height)
    wrong = nonzero = 0
    with open(made.path, "rb") as f:
        for y, x in patch_places(boxes, made, rng):
            want = expected(made, f, y, x)
            nonzero += any(any(r) for r in want)
            if out.patch(y, x) != want:
                wrong += 1
                print(f"patch at y {y}, x {x} differs")
    out.f.close()
    print(f"{PATCHES} patches, {nonzero} with content, {wrong} wrong")
    assert nonzero >= PATCHES // 2
    return wrong


def run(name, tegula, model, made, out, boxes, rng, before, group):
    args = [tegula, "run", "-m", model, made.path, "-o", out, "--json", "-q", "--ram", f"{BUDGET}MiB",
            "--dtype", "uint8", "--compress", "deflate", "--normalize", "none", "-y"]
    r = watch.run(args, limit=900, before=before)
    if r.code != 0:
        print(f"{name}: exit {r.code}: {r.stderr.strip()[-400:]}")
        return 1
    whole = group_peak(group) if group else None
    print(f"{name}: {r.seconds:.1f} s, {r.done['megapixels_per_second']:.1f} MPix/s, peak "
          f"{r.peak / MIB:.1f} MiB of {BUDGET} MiB (predicted {r.done['predicted_peak_bytes'] / MIB:.1f}), "
          f"the group {'-' if whole is None else f'{whole / MIB:.1f} MiB'}")
    bad = r.peak > BUDGET * MIB
    if whole is not None:
        bad = bad or whole > LIMIT
    return bad + check_output(made, out, boxes, rng)


def main():
    tegula, small = sys.argv[1], "--small" in sys.argv
    width, height = (8192, 4096) if small else (65536, 65536)
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    rng = random.Random(seed)
    tmp = tempfile.mkdtemp(dir=os.environ.get("TG_BIG_DIR"))
    group = make_group()
    bad = 0
    try:
        if not small and shutil.disk_usage(tmp).free < 12 << 30:
            print("skipped: 12 GiB of disk are needed")
            return 77
        model, out = os.path.join(tmp, "conv.onnx"), os.path.join(tmp, "out.tif")
        onnxmade.conv3x3(model, WEIGHTS)
        made = tiffmade.Made(os.path.join(tmp, "in.tif"), width, height, 1, 2, 8)
        boxes = draw(made, rng)

        def join_group():
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))

        def limit_space():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        if group:
            bad += run("cgroup of 512 MiB", tegula, model, made, out, boxes, rng, join_group, group)
        else:
            print("no memory cgroup can be made here: that run is left out")
        bad += run("RLIMIT_AS of 2 GiB", tegula, model, made, out, boxes, rng, limit_space, None)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
        if group:
            try:
                os.rmdir(group)
            except OSError:
                pass
    return 1 if bad else 0 if group else 77


if __name__ == "__main__":
    sys.exit(main())
