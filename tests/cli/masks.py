"""Objects (--post) beside other programs: scipy.ndimage and scikit-image where they can be imported, else a fill from
each pixel that is written here; and what is refused, by name.

    masks.py TEGULA [VOLUMES]      default 24

Volumes are drawn. Arrays go in and out as .npy, which needs no library."""
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import scipy.ndimage
except ImportError:
    numpy = scipy = None
try:
    import skimage.filters
    import skimage.measure
except ImportError:
    skimage = None

FAILED = []


def check(truth, text):
    if not truth:
        FAILED.append(text)
        print("FAILED: " + text, flush=True)


def save(path, code, shape, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (code, "".join("%d, " % n for n in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), {"|u1": "B", "<f4": "f", "<u2": "H"}[code]), *values))


def load(path, letter):
    with open(path, "rb") as f:
        data = f.read()
    at = 10 + struct.unpack_from("<H", data, 8)[0]
    return list(struct.unpack("<%d%s" % ((len(data) - at) // struct.calcsize(letter), letter), data[at:]))


def neighbours(n):
    """Steps to the neighbours, z, y, x."""
    near = [(z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1) if (z, y, x) != (0, 0, 0)]
    return [s for s in near if (n > 8 or n == 6 or s[0] == 0) and (n in (8, 26) or sum(map(abs, s)) == 1)]


def fill(mask, shape, n):
    """Numbers in the order of first pixels; planes by themselves where n is 4 or 8."""
    d, h, w = shape
    out, steps, number = [0] * len(mask), neighbours(n), 0
    for at in range(len(mask)):
        if n < 6 or n == 8:
            number = 0 if at % (h * w) == 0 else number
        if not mask[at] or out[at]:
            continue
        number += 1
        out[at], todo = number, [at]
        while todo:
            k = todo.pop()
            z, y, x = k // (h * w), k // w % h, k % w
            for dz, dy, dx in steps:
                if 0 <= z + dz < d and 0 <= y + dy < h and 0 <= x + dx < w:
                    m = ((z + dz) * h + y + dy) * w + x + dx
                    if mask[m] and not out[m]:
                        out[m] = number
                        todo.append(m)
    return out


def by_scipy(mask, shape, n):
    a = numpy.array(mask).reshape(shape)
    full = n in (8, 26)
    if n in (6, 26):
        found = scipy.ndimage.label(a, numpy.ones((3, 3, 3)) if full else None)[0]
        return in_order(found)
    return [v for plane in a for v in in_order(scipy.ndimage.label(plane, numpy.ones((3, 3)) if full else None)[0])]


def in_order(found):
    """Numbers as they are met."""
    seen, out = {0: 0}, []
    for v in found.ravel().tolist():
        out.append(seen.setdefault(v, len(seen)))
    return out


class Lab:
    def __init__(self, tegula):
        self.tegula = os.path.abspath(tegula)
        self.dir = tempfile.mkdtemp(prefix="tegula-masks-")

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, *args):
        r = subprocess.run([self.tegula] + list(args), capture_output=True, text=True)
        return r.returncode, r.stdout, r.stderr

    def post(self, list_, *more, out="out.npy"):
        code, _, err = self.run("copy", self.path("in.npy"), "-o", self.path(out), "--post", list_, "-y", "-q", *more)
        check(code == 0, "%s: exit %d: %s" % (list_, code, err))


def test_volumes(lab, rng):
    for k in range(int(sys.argv[2]) if len(sys.argv) > 2 else 24):
        shape = (rng.randrange(1, 7), rng.randrange(1, 30), rng.randrange(1, 40))
        share = rng.random()
        mask = [int(rng.random() < share) for _ in range(shape[0] * shape[1] * shape[2])]
        save(lab.path("in.npy"), "|u1", shape, [v * rng.randrange(1, 256) for v in mask])
        n = (4, 8, 6, 26)[k % 4]
        lab.post("label:%d" % n, "--axes", "ZYX")
        got = load(lab.path("out.npy"), "I")
        check(got == fill(mask, shape, n), "label:%d of %s" % (n, shape))
        if scipy:
            check(got == by_scipy(mask, shape, n), "label:%d of %s: scipy has others" % (n, shape))


def test_probabilities(lab, rng):
    shape, n = (2, 40, 50), 2 * 40 * 50
    values = [rng.gauss(0, 3) for _ in range(n)]
    save(lab.path("in.npy"), "<f4", shape, values)
    values = list(struct.unpack("<%df" % n, struct.pack("<%df" % n, *values)))
    e = 2.718281828459045
    lab.post("sigmoid", "--axes", "CYX")
    got = load(lab.path("out.npy"), "f")
    check(all(abs(g - 1 / (1 + e ** -v)) < 6e-8 for g, v in zip(got, values)), "sigmoid")  # half a step of float32 below 1
    lab.post("softmax", "--axes", "CYX")
    got, half = load(lab.path("out.npy"), "f"), n // 2
    want = [1 / (1 + e ** (values[(i + half) % n] - v)) for i, v in enumerate(values)]
    check(all(abs(g - v) < 6e-8 for g, v in zip(got, want)), "softmax")
    lab.post("softmax,threshold:0.5", "--axes", "CYX")
    check(load(lab.path("out.npy"), "B") == [int(v > 0.5) for v in got], "softmax,threshold:0.5")
    lab.post("threshold:-1.5", "--axes", "CYX", "--dtype", "uint16")
    check(load(lab.path("out.npy"), "H") == [int(v > -1.5) for v in values], "threshold:-1.5 as uint16")


def test_otsu(lab, rng):
    """Two groups of values: between them; and the very threshold of scikit-image."""
    for code, scale in (("|u1", 1), ("<u2", 200), ("<f4", 0.01)):
        values = [rng.randrange(20, 60) if rng.random() < 0.6 else rng.randrange(120, 240) for _ in range(3000)]
        values = [v * scale if code == "<f4" else int(v * scale) for v in values]
        save(lab.path("in.npy"), code, (50, 60), values)
        lab.post("otsu", "--axes", "YX")
        got = load(lab.path("out.npy"), "B")
        low, high = [max(v for v, g in zip(values, got) if g == 0), min(v for v, g in zip(values, got) if g == 1)]
        check(low < high and 58 * scale <= high <= 240 * scale, "otsu of %s: between %s and %s" % (code, low, high))  # a bin of 256 may be cut
        if skimage:
            a = numpy.load(lab.path("in.npy"))
            check((numpy.load(lab.path("out.npy")) == (a > skimage.filters.threshold_otsu(a))).all(), "otsu of %s: scikit-image has another" % code)


def test_holes(lab, rng):
    shape = (6, 20, 24)
    mask = [int(rng.random() < 0.7) for _ in range(6 * 20 * 24)]
    save(lab.path("in.npy"), "|u1", shape, mask)
    for list_, near in (("fill-holes", 4), ("fill-holes,label:6", 6)):
        holes = fill([1 - v for v in mask], shape, near)
        outside = {(0 if near == 6 else k // 480, v) for k, v in enumerate(holes)
                   if k % 24 in (0, 23) or k // 24 % 20 in (0, 19) or (near == 6 and k // 480 in (0, 5))}
        want = [int(v or (0 if near == 6 else k // 480, h) not in outside) for k, (v, h) in enumerate(zip(mask, holes))]
        check(sum(want) > sum(mask), "there are holes")
        lab.post(list_, "--axes", "ZYX")
        got = load(lab.path("out.npy"), "I" if "label" in list_ else "B")
        check([int(v > 0) for v in got] == want, list_)
        if scipy:
            a = numpy.array(mask).reshape(shape)
            b = scipy.ndimage.binary_fill_holes(a) if near == 6 else numpy.array([scipy.ndimage.binary_fill_holes(p) for p in a])
            check(b.ravel().astype(int).tolist() == want, list_ + ": scipy has others")


def test_table(lab, rng):
    """Sums of the pixels of each number, here and in the table."""
    shape = (3, 2, 30, 40)
    n = 3 * 2 * 30 * 40
    values = [rng.randrange(0, 60000) for _ in range(n)]
    save(lab.path("in.npy"), "<u2", shape, values)
    lab.post("threshold:54000,min-size:2,label:26", "--axes", "ZCYX", "--objects", lab.path("t.csv"))
    number = load(lab.path("out.npy"), "I")
    want = {}
    for k, v in enumerate(number):
        z, c, y, x = k // 2400, k // 1200 % 2, k // 40 % 30, k % 40
        if v:
            o = want.setdefault((c, v), [0, 0, 0, 0, [], 0, 0])
            for i, p in enumerate((1, z, y, x)):
                o[i] += p
            o[4].append((z, y, x))
            for i in range(2):
                o[5 + i] += values[((z * 2 + i) * 30 + y) * 40 + x]
    with open(lab.path("t.csv")) as f:
        lines = f.read().splitlines()
    check(lines[0] == "label,c,area,centroid_z,centroid_y,centroid_x,bbox_z0,bbox_y0,bbox_x0,bbox_z1,bbox_y1,bbox_x1,mean_0,mean_1", lines[0])
    check(len(lines) == len(want) + 1 and len(want) > 20, "the table has %d lines of %d objects" % (len(lines), len(want)))
    for line, (c, v) in zip(lines[1:], sorted(want)):
        o, got = want[c, v], line.split(",")
        low = [min(p[i] for p in o[4]) for i in range(3)]
        high = [max(p[i] for p in o[4]) + 1 for i in range(3)]
        check(list(map(int, got[:3])) == [v, c, o[0]] and list(map(int, got[6:12])) == low + high
              and [float(g) for g in got[3:6] + got[12:]] == [t / o[0] for t in o[1:4] + o[5:7]], "object %d of channel %d: %s" % (v, c, line))


def test_refusals(lab):
    save(lab.path("in.npy"), "<f4", (20, 1, 30), [float(k % 30 % 2) for k in range(600)])
    image = lab.path("in.npy")
    for args, code, says in ((["--post", "lable"], 64, 'the nearest is "label"'),
                             (["--post", "label"], 64, "threshold:X or otsu in front of it"),
                             (["--post", "softmax"], 64, "softmax is over channels"),
                             (["--post", "threshold:0.5,label:6", "--axes", "YXS"], 64, "no axis Z"),
                             (["--post", "threshold:0.5,label", "--dtype", "float32"], 64, "uint32, uint16 or uint8"),
                             (["--post", "threshold:0.5,label:26", "--dtype", "uint8", "--axes", "ZYX"], 0, None),
                             (["--post", "threshold:0.5,label:6", "--dtype", "uint8", "--axes", "YXZ"], 64, None),
                             (["--post", "threshold:0.5", "--objects", lab.path("o.csv")], 64, "--objects lists what label numbers"),
                             (["--objects", lab.path("o.csv")], 64, "--objects lists what label numbers"),
                             (["--post", "threshold:0.5,label", "--objects", image], 64, "")):
        args = args if "--axes" in args else args + ["--axes", "ZYX"]
        got, _, err = lab.run("copy", image, "-o", lab.path("r.npy"), "-y", "-q", *args)
        check(says is None or (got == code and says in err), "%s: expected exit %d and \"%s\", got %d: %s" % (args, code, says, got, err))
    save(lab.path("in.npy"), "|u1", (2, 400), [k % 2 for k in range(400)] * 2)
    got, _, err = lab.run("copy", image, "-o", lab.path("r.npy"), "-y", "-q", "--post", "label", "--dtype", "uint8", "--axes", "YX")
    check(got == 0, "200 objects fit uint8: %s" % err)
    save(lab.path("in.npy"), "|u1", (2, 600), [k % 2 for k in range(600)] + [0] * 600)
    got, _, err = lab.run("copy", image, "-o", lab.path("r.npy"), "-y", "-q", "--post", "label", "--dtype", "uint8", "--axes", "YX")
    check(got == 64 and "there are 300 objects" in err, "300 objects do not fit uint8: exit %d: %s" % (got, err))


def main():
    seed = int(os.environ.get("TEGULA_SEED") or random.randrange(1000000))
    print("seed %d (TEGULA_SEED=%d repeats it); beside%s" % (seed, seed, " scipy" * bool(scipy) + " scikit-image" * bool(skimage) or " what is written here"), flush=True)
    lab, rng = Lab(sys.argv[1]), random.Random(seed)
    try:
        for test in (test_volumes, test_probabilities, test_otsu, test_holes, test_table):
            test(lab, rng)
        test_refusals(lab)
    finally:
        subprocess.run(["rm", "-rf", lab.dir])
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
