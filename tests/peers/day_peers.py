"""A microscopist's day: the commands, on made data, and what others read of the results.

    day_peers.py TEGULA DENOISE.onnx [--large]

An OME-TIFF of 2 times, 3 channels, 12 slices; GFP and slices 3 to 8 are chosen, denoised, go through a U-Net over volumes,
become objects and a table; a run is killed and goes on; a pyramid is made. tifffile reads all of it; libvips, ome-types and
Bio-Formats (bio_formats.py) where they are there. Metadata are compared field by field with the first file's, as we and as Bio-Formats read
them."""
import contextlib
import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ome_peers import SPACE, find, flat, tree  # noqa: E402
from tiff_peers import expect, numpy, tifffile  # noqa: E402
import bio_formats  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from seeds import floats, model, node, port  # noqa: E402

T, C, Z = 2, 3, 12
NAMES = ["DAPI", "GFP", "mCherry"]


def spots(side):
    """Blobs that go on from slice to slice, over noise; GFP is the brightest."""
    rng = numpy.random.default_rng(5)
    a = rng.normal(400, 40, (T, C, Z, side, side))
    y, x = numpy.mgrid[:side, :side]
    for _ in range(side * side // 2500):
        cy, cx, cz, r = rng.uniform(0, side), rng.uniform(0, side), rng.uniform(0, Z), rng.uniform(3, 7)
        for z in range(Z):
            d = (y - cy) ** 2 + (x - cx) ** 2 + 9 * (z - cz) ** 2
            a[:, :, z] += numpy.array([300, 900, 200]).reshape(1, 3, 1, 1) * (d < r * r)
    return a.clip(0, 65535).astype("uint16")


def made(path, a):
    planes = "".join('<Plane TheZ="%d" TheC="%d" TheT="%d" DeltaT="%s" PositionX="%d"/>' % (z, c, t, 30 * t + z, 5 + z)
                     for t in range(T) for c in range(C) for z in range(Z))
    channels = "".join('<Channel ID="Channel:0:%d" Name="%s" SamplesPerPixel="1" EmissionWavelength="%d"/>' % (i, n, 460 + 50 * i)
                       for i, n in enumerate(NAMES))
    text = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="%s"><Instrument ID="Instrument:0"><Objective ID="Objective:0" LensNA="1.4"/>'
            '</Instrument><Image ID="Image:0" Name="day"><AcquisitionDate>2026-01-02T03:04:05</AcquisitionDate><InstrumentRef ID="Instrument:0"/>'
            '<ObjectiveSettings ID="Objective:0"/><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="%d" SizeY="%d" SizeC="%d" '
            'SizeZ="%d" SizeT="%d" PhysicalSizeX="0.1" PhysicalSizeY="0.1" PhysicalSizeZ="0.3" TimeIncrement="30">%s<TiffData IFD="0" '
            'PlaneCount="%d"/>%s</Pixels></Image></OME>' % (SPACE[1:-1], a.shape[4], a.shape[3], C, Z, T, channels, T * C * Z, planes))
    tifffile.imwrite(path, a.reshape(-1, *a.shape[3:]), description=text, metadata=None)


def unet(path):
    """Over volumes: down by 2 in y and x, up again, joined, one channel that is bright where the input is."""
    conv = dict(kernel_shape=[3, 3, 3], pads=[1, 1, 1, 1, 1, 1])
    half = dict(kernel_shape=[1, 2, 2], strides=[1, 2, 2])
    one = floats("w1", [4, 1, 3, 3, 3], 40)
    nodes = [node("Conv", ["x", "w1"], ["a"], **conv), node("Relu", ["a"], ["b"]), node("MaxPool", ["b"], ["c"], **half),
             node("Conv", ["c", "w2"], ["d"], **conv), node("Relu", ["d"], ["e"]), node("ConvTranspose", ["e", "w3"], ["f"], **half),
             node("Concat", ["b", "f"], ["g"], axis=1), node("Conv", ["g", "w4"], ["h"], kernel_shape=[1, 1, 1]), node("Add", ["h", "x"], ["y"])]
    with open(path, "wb") as f:
        f.write(model(nodes, [one, floats("w2", [4, 4, 3, 3, 3], 90), floats("w3", [4, 4, 1, 2, 2], 40), floats("w4", [1, 8, 1, 1, 1], 900)],
                      [port("x", [1, 1, "D", "H", "W"])], [port("y", [1, 1, "D", "H", "W"])]))


def ask(words, label, code=0):
    r = subprocess.run(words, capture_output=True, text=True, check=False)
    expect(r.returncode == code, "%s: exit %d: %s" % (label, r.returncode, r.stderr))
    return r


def same_metadata(first, path, program, t, c, z, label):
    """What the file says of axes, sizes, names, wavelengths, times and positions is what the first one says of what was chosen."""
    same_fields(tree(first), tree(path), t, c, z, label)
    if program:
        same_fields(program.read(first).tree, program.read(path).tree, t, c, z, label + " in Bio-Formats")


def same_fields(a, b, t, c, z, label):
    was, now = find(a, "Image", "Pixels"), find(b, "Image", "Pixels")
    for key in ("PhysicalSizeX", "PhysicalSizeY", "PhysicalSizeZ", "TimeIncrement"):
        expect(abs(float(was.get(key)) - float(now.get(key))) < 1e-12, "%s: %s" % (label, key))
    expect([int(now.get("Size" + k)) for k in "TCZ"] == [len(t), len(c), len(z)], "%s: sizes" % label)
    expect(find(b, "Image").get("Name") == "day" and find(b, "Image", "AcquisitionDate").text == "2026-01-02T03:04:05", label + ": name, date")
    for names in (("Instrument",), ("Image", "InstrumentRef"), ("Image", "ObjectiveSettings")):
        expect(flat(find(a, *names)) == flat(find(b, *names)), "%s: %s" % (label, names))
    said = [(k.get("Name"), float(k.get("EmissionWavelength"))) for k in now.findall(SPACE + "Channel")]
    expect(said == [(NAMES[k], 460 + 50 * k) for k in c], "%s: channels %s" % (label, said))
    planes = {tuple(int(p.get(k)) for k in ("TheT", "TheC", "TheZ")): (float(p.get("DeltaT")), float(p.get("PositionX")))
              for p in now.findall(SPACE + "Plane")}
    want = {(i, j, k): (30 * t[i] + z[k], 5 + z[k]) for i in range(len(t)) for j in range(len(c)) for k in range(len(z))}
    expect({k: tuple(map(float, v)) for k, v in want.items()} == planes, "%s: planes" % label)


def readers(path, array, program, label):
    """How many programs of others gave the same pixels."""
    seen = 1
    expect(numpy.array_equal(numpy.squeeze(tifffile.imread(path)), numpy.squeeze(array)), label + ": tifffile")
    if shutil.which("vipsheader"):
        r = ask(["vipsheader", "-f", "n-pages", path], label)
        expect(int(r.stdout) == numpy.prod(array.shape[:-2]), "%s: pages in vips: %s" % (label, r.stdout))
        r = ask(["vips", "avg", path + "[n=-1]"], label)
        expect(abs(float(r.stdout) - float(array.mean())) <= 1e-6 * abs(float(array.mean())) + 1e-9, "%s: mean in vips: %s" % (label, r.stdout))
        seen += 1
    try:
        import ome_types
        ome_types.from_xml(tifffile.TiffFile(path).pages[0].description)
        seen += 1
    except ImportError:
        pass
    if program:
        f = program.read(path)
        expect((f.format, len(f.images)) == ("OME-TIFF", 1), "%s: %s of %d images in Bio-Formats" % (label, f.format, len(f.images)))
        got = f.images[0].pixels()
        expect(got.dtype == array.dtype and numpy.array_equal(got.squeeze(), array.squeeze()), label + ": Bio-Formats")
        seen += 1
    return seen


def number_objects(mask):
    """Objects of a volume, joined at sides, edges and corners, numbered by their first pixel."""
    labels, n = numpy.zeros(mask.shape, "uint32"), 0
    todo = mask.copy()
    for start in numpy.argwhere(mask):
        if not todo[tuple(start)]:
            continue
        n += 1
        stack = [tuple(start)]
        todo[tuple(start)] = False
        while stack:
            z, y, x = stack.pop()
            labels[z, y, x] = n
            lo = [max(0, k - 1) for k in (z, y, x)]
            box = tuple(slice(a, b + 2) for a, b in zip(lo, (z, y, x)))
            for p in numpy.argwhere(todo[box]):
                q = tuple(int(a + b) for a, b in zip(lo, p))
                todo[q] = False
                stack.append(q)
    return labels, n


def objects(tegula, folder, prob, net):
    """Masks, numbers and a table; then the same of a run that was killed."""
    labels, table = os.path.join(folder, "labels.ome.tif"), os.path.join(folder, "objects.csv")
    level = float(numpy.percentile(prob, 92))
    post = "threshold:%r,min-size:30,label:26" % level
    words = [tegula, "run", "-m", net, os.path.join(folder, "clean.ome.tif"), "--normalize", "none", "--post", post, "-o", labels,
             "--objects", table, "-q"]
    ask(words, "objects")
    got = tifffile.imread(labels).reshape(T, *prob.shape[-3:])
    with open(table, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    total = 0
    for t in range(T):
        want, n = number_objects(prob.reshape(T, *prob.shape[-3:])[t] > level)
        sizes = numpy.bincount(want.ravel())
        keep = [k for k in range(1, n + 1) if sizes[k] >= 30]
        table_of = numpy.zeros(n + 1, "uint32")
        table_of[keep] = numpy.arange(1, len(keep) + 1)
        expect(numpy.array_equal(table_of[want], got[t]), "objects: other labels at time %d" % t)
        total += len(keep)
    expect(len(rows) == total > 2, "objects: %d rows, %d objects" % (len(rows), total))
    expect(sum(int(k["area"] if "area" in k else k["volume"]) for k in rows) == int((got > 0).sum()), "objects: areas")
    with open(labels, "rb") as f:
        first = f.read()
    again = [w if w not in (labels, table) else w.replace("labels", "again").replace("objects.csv", "again.csv") for w in words]
    for wait in (0.02, 0.05, 0.1):
        p = subprocess.Popen(again, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        p.send_signal(signal.SIGKILL)
        p.wait()
    ask(again + (["-y"] if os.path.exists(again[again.index("-o") + 1]) else []), "goes on")
    with open(again[again.index("-o") + 1], "rb") as f:
        expect(f.read() == first, "a run that was killed gives other bytes")
    return labels, got


def the_day(tegula, denoise, folder, program, side):
    """How many programs of others read each file."""
    day, gfp, clean, prob, pyramid = (os.path.join(folder, n) for n in ("day.ome.tif", "gfp.ome.tif", "clean.ome.tif", "prob.ome.tif", "pyramid.ome.tif"))
    a, seen, chosen = spots(side), [], (program, [0, 1], [1], list(range(3, 9)))
    made(day, a)
    r = ask([tegula, "info", day], "info")
    expect("GFP" in r.stdout and "TCZYX" in r.stdout, "info: " + r.stdout)
    choice = ["--channels", "GFP", "--z", "3:9"]
    ask([tegula, "copy", day, "-o", gfp, *choice, "-q"], "choose")
    seen.append(readers(gfp, a[:, 1:2, 3:9], program, "choose"))
    same_metadata(day, gfp, *chosen, "choose")
    ask([tegula, "run", "-m", denoise, day, "-o", clean, *choice, "-q"], "denoise")
    same_metadata(day, clean, *chosen, "denoise")
    seen.append(readers(clean, tifffile.imread(clean), program, "denoise"))
    net = os.path.join(folder, "unet3d.onnx")
    unet(net)
    ask([tegula, "run", "-m", net, clean, "-o", prob, "--normalize", "none", "--dtype", "float32", "-q"], "volumes")
    same_metadata(day, prob, *chosen, "volumes")
    seen.append(readers(prob, tifffile.imread(prob), program, "volumes"))
    labels, got = objects(tegula, folder, tifffile.imread(prob), net)
    same_metadata(day, labels, *chosen, "objects")
    seen.append(readers(labels, got, program, "objects"))
    ask([tegula, "copy", labels, "-o", pyramid, "--pyramid", "nearest", "-q"], "pyramid")
    same_levels(pyramid, got, program)
    same_metadata(day, pyramid, *chosen, "pyramid")
    return seen


def same_levels(path, full, program):
    with tifffile.TiffFile(path) as f:
        levels = [k.asarray() for k in f.series[0].levels]
    expect(numpy.array_equal(levels[0].squeeze(), full.squeeze()), "pyramid: full size")
    if not program:
        return
    image = program.read(path).images[0]
    expect(image.levels == [k.shape[:-3:-1] for k in levels], "pyramid: levels in Bio-Formats: %s" % image.levels)
    for i, k in enumerate(levels):
        expect(numpy.array_equal(image.pixels(i).squeeze(), k.squeeze()), "pyramid: level %d in Bio-Formats" % i)


def main():
    tegula, denoise = sys.argv[1:3]
    side = 2048 if "--large" in sys.argv else 96
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.nullcontext() if bio_formats.missing() else bio_formats.Program(folder) as program:
            seen = the_day(tegula, denoise, folder, program, side)
    print("the day is done; readers of others for each file: %s%s" % (seen, ", Bio-Formats among them" if program else "; " + bio_formats.missing()))


if __name__ == "__main__":
    main()
