"""Objects of what StarDist and Cellpose give (--post stardist, cellpose), beside the labels of tests/post/post_tool, which are compared
with the packages' own: on drawn planes, for copy and run; memory, cuts and a kill change nothing; what is refused, by name.

    mask_networks.py TEGULA POST_TOOL"""
import json
import math
import os
import random
import struct
import subprocess
import sys

import masks
from masks import FAILED, check, load, save

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "fuzz"))
from seeds import model, node, port  # noqa: E402

HEIGHT, WIDTH, RAYS = 90, 120, 16


# ---- Planes ---------------------------------------------------------------------------------

def cells(rng, count):
    """Discs that hardly touch: row, column, radius."""
    found = []
    for _ in range(count * 30):
        r, y, x = rng.uniform(4, 9), rng.uniform(0, HEIGHT), rng.uniform(0, WIDTH)
        if len(found) < count and all(math.hypot(y - a, x - b) > r + c for a, b, c in found):
            found.append((y, x, r))
    return found


def inside(cell):
    """Pixels of a disc: place, row and column from its centre, distance from there."""
    a, b, r = cell
    for y in range(max(0, int(a - r)), min(HEIGHT, int(a + r) + 1)):
        for x in range(max(0, int(b - r)), min(WIDTH, int(b + r) + 1)):
            d = math.hypot(y - a, x - b)
            if d < r:
                yield y * WIDTH + x, y - a, x - b, d


def star(rng, count=40):
    """Probabilities, no two equal, and distances to the edge with noise."""
    prob, rays = [0.0] * (HEIGHT * WIDTH), [[0.0] * (HEIGHT * WIDTH) for _ in range(RAYS)]
    turns = [(math.sin(2 * math.pi * k / RAYS), math.cos(2 * math.pi * k / RAYS)) for k in range(RAYS)]
    for cell in cells(rng, count):
        for at, y, x, d in inside(cell):
            prob[at] = (1 - d / cell[2]) * rng.uniform(0.9, 1)
            for ray, (sin, cos) in zip(rays, turns):
                along = y * sin + x * cos
                ray[at] = math.sqrt(along * along + cell[2] ** 2 - d * d) - along + rng.uniform(-0.3, 0.3)
    return [prob] + rays


def flow(rng, count=40):
    """Flow to the centre, down and to the right, and how sure it is."""
    planes = [[0.0] * (HEIGHT * WIDTH), [0.0] * (HEIGHT * WIDTH), [-6.0] * (HEIGHT * WIDTH)]
    for cell in cells(rng, count):
        for at, y, x, d in inside(cell):
            for plane, v in zip(planes, (-5 * y / (d + 0.1) + rng.uniform(-0.5, 0.5), -5 * x / (d + 0.1), 3 + rng.uniform(0, 1))):
                plane[at] = v
    return planes


def joined(planes):
    return [v for plane in planes for v in plane]


class Lab(masks.Lab):
    def __init__(self, tegula, tool):
        super().__init__(tegula)
        self.tool = os.path.abspath(tool)

    def planes(self, name, planes):
        save(self.path(name), "<f4", (len(planes), HEIGHT, WIDTH), joined(planes))
        return self.path(name)

    def want(self, which, planes, *settings):
        out = self.path("want.npy")
        r = subprocess.run([self.tool, which, planes, out] + list(settings), capture_output=True, text=True, cwd=self.dir)
        check(r.returncode == 0, "post_tool %s %s: %s" % (which, settings, r.stdout + r.stderr))
        return load(out, "I")

    def got(self, image, *args, letter="I"):
        out = self.path("got.npy")
        code, _, err = self.run("copy", image, "-o", out, "-y", "-q", *args)
        check(code == 0, "%s: exit %d: %s" % (args, code, err))
        return load(out, letter) if code == 0 else []


# ---- Tests ----------------------------------------------------------------------------------

STAR = (("stardist", ()), ("stardist:prob=0.88:nms=0.1", ("prob=0.88", "nms=0.1")), ("stardist:grid=2", ("grid=2",)))
CELL = (("cellpose", ()), ("cellpose:prob=3.5:flow=0", ("cell=3.5", "flow=0")), ("cellpose:niter=20:min_size=90", ("niter=20", "min=90")))


def test_copy(lab, rng):
    """Labels as post_tool's; other settings give others."""
    for which, planes, lists in (("stardist", star(rng), STAR), ("cellpose", flow(rng), CELL)):
        image = lab.planes(which + ".npy", planes)
        seen = []
        for list_, settings in lists:
            want = lab.want(which, image, *settings)
            check(lab.got(image, "--axes", "CYX", "--post", list_) == want, list_)
            check(max(want) > 10 and want not in seen, "%s: %d objects, or those of other settings" % (list_, max(want)))
            seen.append(want)
        check(lab.got(image, "--axes", "CYX", "--post", which, "--dtype", "uint16", letter="H") == seen[0], "%s as uint16" % which)
        for more in (["--ram", "5MiB"], ["--threads", "3"], ["--ram", "5MiB", "--scratch", lab.dir]):
            check(lab.got(image, "--axes", "CYX", "--post", which, *more) == seen[0], "%s %s" % (which, more))
    image = lab.planes("last.npy", load_planes(lab.path("stardist.npy"))[1:] + load_planes(lab.path("stardist.npy"))[:1])
    check(lab.got(image, "--axes", "CYX", "--post", "stardist:rays-first") == lab.want("stardist", lab.path("stardist.npy")), "rays-first")


def load_planes(path):
    values = load(path, "f")
    return [values[k:k + HEIGHT * WIDTH] for k in range(0, len(values), HEIGHT * WIDTH)]


def test_places(lab, rng):
    """Several images in one, channels behind or in front of slices, samples, a part of it: each as alone."""
    two = [flow(rng, 20), flow(rng, 30)]
    alone = [lab.want("cellpose", lab.planes("one.npy", planes)) for planes in two]
    image, side = lab.path("in.npy"), HEIGHT * WIDTH
    for axes, shape, values in (("ZCYX", (2, 3, HEIGHT, WIDTH), joined(two[0]) + joined(two[1])),
                                ("CTYX", (3, 2, HEIGHT, WIDTH), joined([p for both in zip(*two) for p in both]))):
        save(image, "<f4", shape, values)
        check(lab.got(image, "--axes", axes, "--post", "cellpose") == alone[0] + alone[1], "axes " + axes)
    save(image, "<f4", (HEIGHT, WIDTH, 3), [two[0][c][k] for k in range(side) for c in range(3)])
    check(lab.got(image, "--axes", "YXS", "--post", "cellpose") == alone[0], "samples")
    extra = [[0.0] * side] + two[0]
    save(image, "<f4", (4, HEIGHT, WIDTH), joined(extra))
    check(lab.got(image, "--axes", "CYX", "--channels", "1-3", "--post", "cellpose") == alone[0], "channels 1-3 of 4")
    part = [[v for y in range(10, 70) for v in p[y * WIDTH + 20:y * WIDTH + 90]] for p in two[0]]
    save(lab.path("part.npy"), "<f4", (3, 60, 70), joined(part))
    save(image, "<f4", (3, HEIGHT, WIDTH), joined(two[0]))
    check(lab.got(image, "--axes", "CYX", "--roi", "10:70,20:90", "--post", "cellpose") == lab.want("cellpose", lab.path("part.npy")), "a part of it")


def rows_of(path):
    with open(path) as f:
        lines = [line.split(",") for line in f.read().splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def test_table(lab, rng):
    """Pixels and means of the channels; with a grid a value is that of its pixels."""
    for which, grid, planes in (("cellpose", 1, flow(rng)), ("stardist", 2, star(rng))):
        image, table = lab.planes("in.npy", planes), lab.path("t.csv")
        list_ = which if grid == 1 else "stardist:grid=2"
        number = lab.got(image, "--axes", "CYX", "--post", list_, "--objects", table, "--ram", "20MiB")
        values = load_planes(image)
        rows = rows_of(table)
        check(len(rows) == max(number), "%s: %d lines of %d objects" % (list_, len(rows), max(number)))
        for row in rows:
            pixels = [k for k, v in enumerate(number) if v == int(row["label"])]
            check(int(row["area"]) == len(pixels), "%s: area of object %s" % (list_, row["label"]))
            for c in (0, len(planes) - 1):
                mean = sum(values[c][k // (WIDTH * grid) // grid * WIDTH + k % (WIDTH * grid) // grid] for k in pixels) / len(pixels)
                check(abs(float(row["mean_%d" % c]) - mean) < 1e-6 * (1 + abs(mean)), "%s: mean %d of object %s" % (list_, c, row["label"]))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def stopped(lab, args, out, table, step):
    """Killed in front of operation k, for each step-th; the same command ends with the same bytes."""
    code, _, err = lab.run(*args, "-y")
    check(code == 0, "%s: %s" % (args, err))
    whole, lines, kills = read(out), read(table), 0
    for k in range(3, 400, step):
        for path in [os.path.join(lab.dir, n) for n in os.listdir(lab.dir) if n.startswith("stop.")]:
            os.unlink(path)
        r = subprocess.run([lab.tegula] + args, capture_output=True, text=True, env=dict(os.environ, TEGULA_FAIL_IO="%d:kill" % k, TEGULA_SYNC_TILES="1"))
        if r.returncode == 0:
            break
        kills += 1
        check(r.returncode == -9, "%s: operation %d: exit %d: %s" % (args, k, r.returncode, r.stderr))
        code, _, err = lab.run(*args)
        check(code == 0 and read(out) == whole and read(table) == lines, "%s: killed at operation %d, then exit %d: other bytes, or %s" % (args, k, code, err))
        left = sorted(n for n in os.listdir(lab.dir) if n.startswith("stop."))
        check(all(n in ("stop.tif", "stop.csv", "stop.tif.tegula.json") for n in left), "left: %s" % left)
    check(kills > 1, "%s: killed %d times only" % (args, kills))


def network(path, channels, half=False):
    """One that hands out what it gets, or each second value."""
    made = node("MaxPool", ["x"], ["y"], kernel_shape=[1, 1], strides=[2, 2]) if half else node("Identity", ["x"], ["y"])
    with open(path, "wb") as f:
        f.write(model([made], [], [port("x", ["N", channels, "H", "W"])], [port("y", ["N", channels, "H2" if half else "H", "W2" if half else "W"])]))
    return path


def test_run(lab, rng):
    """What a network gives, cut into tiles: the labels of the copy, and means of the network's input."""
    for which, half, planes in (("cellpose", False, flow(rng)), ("stardist", False, star(rng)), ("stardist:grid=2", True, star(rng))):
        image, out = lab.planes("in.npy", planes), lab.path("run.tif")
        code, _, err = lab.run("copy", image, "-o", lab.path("in.tif"), "--axes", "CYX", "-y", "-q")
        check(code == 0, err)
        net, values = network(lab.path("net.onnx"), len(planes), half), image
        if half:
            save(lab.path("half.npy"), "<f4", (len(planes), HEIGHT // 2, WIDTH // 2),
                 [p[y * WIDTH + x] for p in planes for y in range(0, HEIGHT, 2) for x in range(0, WIDTH, 2)])
            values = lab.path("half.npy")
        want = lab.want(which.split(":")[0], values, *(["grid=2"] if half else []))
        seen = set()
        for tile in ("48", "32x96"):
            code, _, err = lab.run("run", "-m", net, lab.path("in.tif"), "-o", out, "--post", which, "--tile", tile, "--objects", lab.path("run.csv"), "--ram", "20MiB", "--log", lab.path("run.log.csv"), "-y", "-q")
            check(code == 0, "run %s: exit %d: %s" % (which, code, err))
            seen.add(read(out))
            both_watched(lab, out, which)
            got = lab.got(out, "--axes", "YX") if code == 0 else []
            check(got == want and max(want) > 5, "run %s, tiles of %s" % (which, tile))
        check(len(seen) == 1, "run %s: bytes follow the tiles" % which)
        rows = rows_of(lab.path("run.csv"))
        mine = load_planes(image)
        pixels = [k for k, v in enumerate(want) if v == 3]
        mean = sum(mine[1][k] for k in pixels) / len(pixels)
        check(len(rows) == max(want) and abs(float(rows[2]["mean_1"]) - mean) < 1e-5 * (1 + abs(mean)), "run %s: the table" % which)
    stop = ["run", "-m", network(lab.path("net.onnx"), 3), lab.path("flow.tif"), "-o", lab.path("stop.tif"), "--post", "cellpose", "--objects", lab.path("stop.csv"), "--threads", "1", "--ram", "20MiB", "-q"]
    copied(lab, lab.planes("flow.npy", flow(rng)), "flow.tif")
    stopped(lab, stop, lab.path("stop.tif"), lab.path("stop.csv"), 53)


def both_watched(lab, out, which):
    """Memory, time and methods of a receipt, and the log, are those of the network and of what was made of its values."""
    with open(out + ".tegula.json", encoding="utf-8") as f:
        receipt = json.load(f)
    check(0 < receipt["measured_peak_bytes"] <= receipt["predicted_peak_bytes"], "memory: %s" % receipt)
    check(receipt["methods"].endswith("The output was made of its values by these steps: %s." % which), "methods: %s" % receipt["methods"])
    rows = rows_of(lab.path("run.log.csv"))
    phases = [r["phase"] for r in rows]
    check(phases[-1] == "objects" and "run" in phases, "log: %s" % phases)
    most = {"objects": 0, "run": 0}
    for r in rows:
        most[r["phase"]] = max(most.get(r["phase"], 0), int(r["peak_bytes"]))
    check(abs(max(most.values()) - receipt["measured_peak_bytes"]) <= 1 << 20,  # what is written after it
          "peaks of the log: %s, of the receipt %d" % (most, receipt["measured_peak_bytes"]))


def copied(lab, image, name):
    code, _, err = lab.run("copy", image, "-o", lab.path(name), "--axes", "CYX", "-y", "-q")
    check(code == 0, err)


def test_stops(lab, rng):
    for which, planes in (("cellpose", flow(rng)), ("stardist:grid=4", star(rng))):
        copied(lab, lab.planes("in.npy", planes), "in.tif")
        stopped(lab, ["copy", lab.path("in.tif"), "-o", lab.path("stop.tif"), "--post", which, "--objects", lab.path("stop.csv"), "--threads", "1", "--ram", "20MiB", "-q"],
                lab.path("stop.tif"), lab.path("stop.csv"), 29)


def test_table_of_others(lab, rng):
    """A copy that goes on replaces no table that it did not write."""
    image = lab.planes("in.npy", flow(rng))
    copied(lab, image, "in.tif")
    out, table = lab.path("mine.tif"), lab.path("mine.csv")
    args = ["copy", lab.path("in.tif"), "-o", out, "--post", "cellpose", "--objects", table, "--threads", "1", "--ram", "20MiB", "-q"]
    r = subprocess.run([lab.tegula] + args, capture_output=True, text=True, env=dict(os.environ, TEGULA_FAIL_IO="12:kill", TEGULA_SYNC_TILES="1"))
    check(r.returncode == -9 and not os.path.exists(table), "killed: exit %d: %s" % (r.returncode, r.stderr))
    with open(table, "w", encoding="utf-8") as f:
        f.write("of somebody else\n")
    code, _, err = lab.run(*args)
    check(code == 73 and "mine.csv: exists already, and is another table; -y replaces it" in err, "another's table: exit %d: %s" % (code, err))
    check(read(table) == b"of somebody else\n" and not os.path.exists(out), "another's table is gone")
    code, _, err = lab.run(*args, "-y")
    check(code == 0 and read(table).startswith(b"label,") and os.path.exists(out), "-y: exit %d: %s" % (code, err))


def ome_tiff(path, planes, attributes):
    """Planes as a file of pages, the first with OME-XML."""
    text = ('<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="float" '
            'SizeX="%d" SizeY="%d" SizeC="%d" SizeZ="1" SizeT="1" %s>%s<TiffData/></Pixels></Image></OME>'
            % (WIDTH, HEIGHT, len(planes), attributes, "".join('<Channel ID="Channel:0:%d" Name="ray %d" SamplesPerPixel="1"/>' % (c, c) for c in range(len(planes))))).encode() + b"\0"
    size, at = 4 * HEIGHT * WIDTH, 8
    first = at + len(text) + len(text) % 2
    with open(path, "wb") as f:
        f.write(b"II*\0" + struct.pack("<I", first) + text + b"\0" * (len(text) % 2))
        for k, plane in enumerate(planes):
            tags = [(256, 4, 1, WIDTH), (257, 4, 1, HEIGHT), (258, 3, 1, 32), (259, 3, 1, 1), (262, 3, 1, 1)] + [(270, 2, len(text), 8)] * (k == 0)
            ends = first + 2 + 12 * (len(tags) + 5) + 4
            tags += [(273, 4, 1, ends), (277, 3, 1, 1), (278, 4, 1, HEIGHT), (279, 4, 1, size), (339, 3, 1, 3)]
            first = ends + size
            f.write(struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *t) for t in tags) + struct.pack("<I", first if k + 1 < len(planes) else 0))
            f.write(struct.pack("<%df" % len(plane), *plane))
    return path


def test_sizes(lab, rng):
    """A grid makes pixels smaller, their unit stays; channels are those of the table alone."""
    image, out, table = lab.path("sized.tif"), lab.path("grid.tif"), lab.path("grid.csv")
    ome_tiff(image, star(rng), 'PhysicalSizeX="0.8" PhysicalSizeY="0.4"')
    code, _, err = lab.run("copy", image, "-o", out, "--post", "stardist:grid=4", "--objects", table, "--ram", "30MiB", "-y", "-q")
    check(code == 0, err)
    info = json.loads(lab.run("info", out, "--json")[1])
    size = info["physical_size"]
    check(all(abs(size[a]["value"] - v) < 1e-12 for a, v in (("x", 0.2), ("y", 0.1))), "sizes behind a grid of 4: %s" % (size,))
    check(info["shape"][-2:] == [4 * HEIGHT, 4 * WIDTH] and info["channels"] == [None], "behind a grid: %s" % info)
    rows = rows_of(table)
    check(rows and "mean_ray_%d" % RAYS in rows[0], "channels of the table: %s" % rows[:1])
    for row in rows:
        check(abs(float(row["area_um2"]) - int(row["area"]) * 0.02) < 1e-9 * int(row["area"]), "an area in micrometres: %s" % row)


def test_refusals(lab, rng):
    image, volume = lab.planes("in.npy", star(rng, 5)), lab.path("v.npy")
    three = lab.planes("three.npy", flow(rng, 5))
    save(volume, "<f4", (4, 5, 9, 8), [0.0] * (4 * 5 * 9 * 8))
    for path, args, code, says in (
            (three, ["--post", "stardist"], 64, "stardist takes a channel of probabilities and 3 to 512 of distances, and the image (axes CYX) has 3"),
            (image, ["--post", "cellpose"], 64, "cellpose takes 3 channels (flow down, flow to the right, cell probability), and the image (axes CYX) has 17"),
            (three, ["--post", "cellpose", "--axes", "ZYX"], 64, "has 1: name its axes with --axes"),
            (volume, ["--post", "cellpose", "--axes", "CZYX"], 65, "cellpose of volumes is not built"),
            (three, ["--post", "cellpose,label"], 64, "stardist and cellpose stand alone"),
            (three, ["--post", "cellpose,min-size:5"], 64, "cellpose:min-size=N leaves small ones out"),
            (three, ["--post", "sigmoid,cellpose"], 64, "stand alone"),
            (three, ["--post", "cellpose:nms=0.4"], 64, "cellpose[:prob=0][:flow=0.4]"),
            (image, ["--post", "stardist:grid=1.5"], 64, "stardist[:prob=0.5]"),
            (image, ["--post", "stardist:prob=1.5"], 64, "stardist[:prob=0.5]"),
            (image, ["--post", "stardist:grid="], 64, "stardist[:prob=0.5]"),
            (image, ["--post", "stardist:"], 64, "stardist[:prob=0.5]"),
            (image, ["--post", "stardit"], 64, 'the nearest is "stardist"'),
            (three, ["--post", "cellpose", "--dtype", "float32"], 64, "uint32, uint16 or uint8"),
            (three, ["--post", "cellpose", "--pyramid", "mean"], 64, "means of labels")):
        args = args if "--axes" in args else args + ["--axes", "CYX"]
        out = lab.path("r.tif" if "--pyramid" in args else "r.npy")
        got, _, err = lab.run("copy", path, "-o", out, "-y", "-q", *args)
        check(got == code and says in err, "%s: expected exit %d and \"%s\", got %d: %s" % (args, code, says, got, err))
    bad = [list(p) for p in flow(rng, 5)]
    bad[0][max(range(len(bad[2])), key=lambda k: bad[2][k])] = math.nan
    got, _, err = lab.run("copy", lab.planes("bad.npy", bad), "-o", lab.path("r.npy"), "--axes", "CYX", "--post", "cellpose", "-y", "-q")
    check(got == 65, "a flow that is no number: exit %d: %s" % (got, err))


def test_early(lab, rng):
    """What would fail when the objects are there fails before the network works: nothing of its values is left."""
    image = lab.path("early.tif")
    copied(lab, lab.planes("in.npy", flow(rng, 5)), "early.tif")
    out, mine, table = lab.path("early.out.tif"), lab.path("mine.csv.partial"), ["--post", "cellpose:flow=0", "--objects"]
    run = ["run", "-m", network(lab.path("net.onnx"), 3), image, "-o", out, "-q"]
    with open(mine, "w", encoding="ascii") as f:
        f.write("notes\n")
    os.makedirs(lab.path("folder"))
    for name, says in (("nowhere/t.csv", "there is no folder"), ("folder", "take the place of a folder"), ("folder/", "take the place of a folder"),
                       ("mine.csv", "in the way")):
        for args in (run, ["copy", image, "-o", out, "-q"]):
            got, _, err = lab.run(*args, *table, lab.path(name))
            left = [n for n in os.listdir(lab.dir) if n.startswith("early.out")]
            check(got == 73 and says in err and not left, "%s --objects %s: exit %d, %s, %s" % (args[0], name, got, err, left))
    check(read(mine) == b"notes\n", "what lay there is another")
    for k in range(3, 100):
        if not os.path.exists(lab.path("t.csv.partial")):
            subprocess.run([lab.tegula, "copy", image, "-o", out, "-q", "-y", *table, lab.path("t.csv")], env=dict(os.environ, TEGULA_FAIL_IO="%d:kill" % k))
    before = sorted(os.listdir(lab.dir))
    got, _, err = lab.run(*run, *table, lab.path("t.csv"))
    check(got == 65 and sorted(os.listdir(lab.dir)) == before, "objects of another command: exit %d: %s, %s" % (got, err, os.listdir(lab.dir)))


def test_memory(lab, rng):
    """A refusal has a name and a way out; above it the labels are the same."""
    side = 1200
    image = lab.path("large.npy")
    with open(image, "wb") as f:
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, %d, %d), }" % (side, side)
        head += " " * (-(len(head) + 11) % 64) + "\n"
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<f", -1.0) * (3 * side * side))
    args = ["copy", image, "-o", lab.path("r.npy"), "--axes", "CYX", "--post", "cellpose", "-y", "-q"]
    got, _, err = lab.run(*args, "--ram", "14MiB")
    check(got == 71 and "--scratch DIR" in err, "without scratch: exit %d: %s" % (got, err))
    got, _, err = lab.run(*args, "--ram", "14MiB", "--scratch", lab.dir)
    check(got == 0, "with it: exit %d: %s" % (got, err))
    planes = star(rng)
    planes[0] = [0.5 + 0.4 * rng.random() for _ in planes[0]]  # each value a candidate
    image = lab.planes("in.npy", planes)
    got, _, err = lab.run("copy", image, "-o", lab.path("r.npy"), "--axes", "CYX", "--post", "stardist", "-y", "-q", "--ram", "3MiB")
    check(got == 71 and "a higher threshold (prob=X)" in err, "stardist in 3 MiB: exit %d: %s" % (got, err))
    check(lab.got(image, "--axes", "CYX", "--post", "stardist", "--ram", "24MiB") == lab.want("stardist", image), "stardist in 24 MiB")


def main():
    seed = int(os.environ.get("TEGULA_SEED") or random.randrange(1000000))
    print("seed %d (TEGULA_SEED=%d repeats it)" % (seed, seed), flush=True)
    lab, rng = Lab(*sys.argv[1:3]), random.Random(seed)
    try:
        for test in (test_copy, test_places, test_table, test_sizes, test_stops, test_table_of_others, test_run, test_refusals, test_early, test_memory):
            test(lab, rng)
    finally:
        subprocess.run(["rm", "-rf", lab.dir])
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
