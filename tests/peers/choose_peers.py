"""What --channels, --z, --t, --planes and the first part of --roi choose, as tifffile reads it: pixels, axes, names,
colours, sizes, times; by copy and by run, as OME-TIFF and as ImageJ's stack. And what is refused, with what to say instead.

    choose_peers.py TEGULA
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from meta_peers import network  # noqa: E402
from tiff_peers import drawn, expect, identity, numpy, run, tifffile  # noqa: E402

SHAPE = (2, 3, 12, 40, 56)  # TCZYX
NAMES = ["DAPI", "GFP", "405"]
COLOURS = [0x0000ffff, 0x00ff00ff, -0xff01]


def made(folder):
    a = drawn(SHAPE, "uint16", 7)
    path = os.path.join(folder, "day.ome.tif")
    tifffile.imwrite(path, a, metadata={
        "axes": "TCZYX", "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": "\u00b5m", "PhysicalSizeY": 0.2,
        "PhysicalSizeYUnit": "\u00b5m", "PhysicalSizeZ": 0.3, "PhysicalSizeZUnit": "\u00b5m", "TimeIncrement": 2.5,
        "TimeIncrementUnit": "s", "Channel": {"Name": NAMES, "Color": COLOURS}})
    return path, a


def ask(tegula, words):
    return subprocess.run([tegula, *words], capture_output=True, text=True, check=False)


def described(path):
    """(array TCZYX, attributes of Pixels, of each Channel) of an OME-TIFF."""
    with tifffile.TiffFile(path) as t:
        expect(t.is_ome, path + " is no OME-TIFF")
        root = xml.fromstring(t.ome_metadata.encode())
        pages = numpy.stack([p.asarray() for p in t.pages])
    space = root.tag[:root.tag.index("}") + 1]
    pixels = root.find("%sImage/%sPixels" % (space, space))
    size = {k: int(pixels.get("Size" + k)) for k in "TCZYX"}
    order = [k for k in reversed(pixels.get("DimensionOrder")) if k not in "XY"]
    stack = pages.reshape([size[k] for k in order] + [size["Y"], size["X"]])
    return (stack.transpose([order.index(k) for k in "TCZ"] + [3, 4]), pixels.attrib,
            [c.attrib for c in pixels.findall(space + "Channel")])


CHOICES = [  # words, entries of t, c, z
    (["--channels", "GFP"], None, [1], None),
    (["--channels", "gfp,DAPI"], None, [1, 0], None),
    (["--channels", "2"], None, [2], None),
    (["--channels", "name:405", "--z", "3:9"], None, [2], range(3, 9)),
    (["--channels", "1:", "--z", "3-9"], None, [1, 2], range(3, 10)),
    (["--z", "0,2,4"], None, None, [0, 2, 4]),
    (["--z", "0,1,4"], None, None, [0, 1, 4]),
    (["--z", "4,0,3,1"], None, None, [4, 0, 3, 1]),
    (["--z", "11"], None, None, [11]),
    (["--t", "1"], [1], None, None),
    (["--t", "1,0"], [1, 0], None, None),
    (["--t", "1", "--channels", "0-1", "--z", ":2"], [1], [0, 1], range(2)),
    (["--roi", "4:7,:,:"], None, None, range(4, 7)),
    (["--planes", "0-5"], [0], [0], range(6)),
    (["--planes", "3,15,27,39,51,63"], [0, 1], [0, 1, 2], [3]),
    (["--channels", "GFP", "--planes", "0-11"], [0], [1], None),
]


def distance(entries, each):
    steps = {b - a for a, b in zip(entries, entries[1:])}
    return each * min(steps) if len(steps) == 1 and min(steps) > 0 else each if not steps else None


def one(tegula, folder, path, a, choice, verb):
    words, *entries = choice
    t, c, z = (list(range(n) if e is None else e) for e, n in zip(entries, SHAPE))
    label, out = "%s %s" % (verb, " ".join(words)), os.path.join(folder, "out.ome.tif")
    model = ["-m", os.path.join(folder, "same.onnx"), "--normalize", "none", "--dtype", "same"] if verb == "run" else []
    r = ask(tegula, [verb, *model, path, "-o", out, "-y", "-q", *words])
    expect(r.returncode == 0, "%s: %s" % (label, r.stderr))
    got, pixels, channels = described(out)
    want = a[numpy.ix_(t, c, z)]
    expect(got.shape == want.shape and numpy.array_equal(got, want), "%s: pixels %s" % (label, got.shape))
    expect([k.get("Name") for k in channels] == [NAMES[k] for k in c], "%s: names %s" % (label, channels))
    expect([int(k.get("Color")) for k in channels] == [COLOURS[k] for k in c], "%s: colours %s" % (label, channels))
    for key, value in (("PhysicalSizeX", 0.1), ("PhysicalSizeY", 0.2), ("PhysicalSizeZ", distance(z, 0.3)),
                       ("TimeIncrement", distance(t, 2.5))):
        said = pixels.get(key)
        expect(said is None if value is None else said and abs(float(said) - value) < 1e-9,
               "%s: %s is %s, not %s" % (label, key, said, value))
    for entries in (z, t):
        back = len(entries) > 1 and all(b < a for a, b in zip(entries, entries[1:]))
        told = "go backwards: no distance" if back else "not equally far apart: no distance"
        expect((told in r.stderr) or distance(entries, 1) is not None, "%s: %s" % (label, r.stderr))
    expect(("no distance is said" in r.stderr) == (distance(z, 1) is None or distance(t, 1) is None), "%s: %s" % (label, r.stderr))


def imagej(tegula, folder, path, a):
    """Two slices of four channels: the counts and the spacing are those of what is there."""
    out = os.path.join(folder, "ij.tif")
    for words, t, c, z in ((["--t", "0", "--z", "1,3"], [0], [0, 1, 2], [1, 3]),
                           (["--channels", "GFP", "--z", "2:6"], [0, 1], [1], range(2, 6)),
                           (["--planes", "6-11,18-23"], [0], [0, 1], range(6, 12))):
        run([tegula, "copy", path, "-o", out, "-q", "-y", "--format", "imagej", *words], "imagej")
        with tifffile.TiffFile(out) as f:
            m, got = f.imagej_metadata, f.asarray()
        want = a[numpy.ix_(t, c, z)].transpose(0, 2, 1, 3, 4)
        expect(numpy.array_equal(got.reshape(want.shape), want), "imagej %s: pixels" % words)
        seen = tuple(m.get(k, 1) for k in ("frames", "channels", "slices"))
        expect(seen == (len(t), len(c), len(z)), "imagej %s: %s" % (words, m))
        expect(abs(m["spacing"] - 0.3 * (z[1] - z[0])) < 1e-9, "imagej %s: spacing %s" % (words, m["spacing"]))


def mixed(tegula, folder, path, a):
    """Planes that are no combinations: a plain axis, which is said."""
    out = os.path.join(folder, "mixed.tif")
    r = ask(tegula, ["copy", path, "-o", out, "-y", "--planes", "0,13,27"])
    expect(r.returncode == 0 and "not all combinations" in r.stderr, "mixed: " + r.stderr)
    with tifffile.TiffFile(out) as f:
        got = numpy.stack([p.asarray() for p in f.pages])
    expect(numpy.array_equal(got, a.reshape(-1, *SHAPE[3:])[[0, 13, 27]]), "mixed: pixels")


def networks(tegula, folder, path, a):
    """A network of two, or four, channels over an image of three: what the refusal says works."""
    out = os.path.join(folder, "net.tif")
    for channels in (2, 4):
        model = network(os.path.join(folder, "n%d.onnx" % channels), "Conv", 1, channels)
        words = ["run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", "--dtype", "same"]
        r = ask(tegula, words)
        expect(r.returncode == 64 and "--channels " in r.stderr and "1 GFP" in r.stderr, "network: " + r.stderr)
        said = r.stderr.split("--channels ")[1].split()[0].rstrip(",")
        r = ask(tegula, words + ["--channels", said])
        expect(r.returncode == 0, "network: --channels %s: %s" % (said, r.stderr))
    for said, order in (("GFP,DAPI", [1, 0]), ("2,0", [2, 0])):
        model = network(os.path.join(folder, "n2.onnx"), "Conv", 1, 2)
        run([tegula, "run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", "--dtype", "same",
             "--channels", said], "network of two")
        with tifffile.TiffFile(out) as f:
            got = numpy.stack([p.asarray() for p in f.pages])
        want = a[:, order].transpose(0, 2, 1, 3, 4).reshape(got.shape)
        expect(numpy.array_equal(got, want), "network: --channels %s gives other channels" % said)


def colours(tegula, folder):
    """Of a picture channels are its colours: alone, in another order, and one of them several times."""
    path, out = os.path.join(folder, "rgb.tif"), os.path.join(folder, "rgb-out.tif")
    rgb = drawn((40, 300, 3), "uint8", 5)
    for layout in ("contig", "separate"):
        tifffile.imwrite(path, rgb if layout == "contig" else rgb.transpose(2, 0, 1), photometric="rgb",
                         planarconfig=layout, metadata=None)
        for said, order in (("green", [1]), ("2,1,0", [2, 1, 0]), ("red,red,blue", [0, 0, 2]), ("0:2", [0, 1])):
            run([tegula, "copy", path, "-o", out, "-y", "-q", "--channels", said], "colours")
            got, attributes, channels = described(out)
            want = rgb[..., order].transpose(2, 0, 1)[None, :, None]
            expect(got.shape == want.shape and numpy.array_equal(got, want), "colours %s: %s" % (said, got.shape))
            expect([c.get("Name") for c in channels] == [("red", "green", "blue")[k] for k in order], "colours %s: %s" % (said, channels))
            expect([int(c.get("Color")) & 0xffffffff for c in channels] == [(0xff0000ff, 0xff00ff, 0xffff)[k] for k in order],
                   "colours %s: %s" % (said, channels))
        for said, order in (("red,green,blue", [0, 1, 2]), ("0:3", [0, 1, 2])):
            run([tegula, "copy", path, "-o", out, "-y", "-q", "--channels", said], "colours")
            expect(numpy.array_equal(tifffile.imread(out), rgb), "colours %s: a picture stays one" % said)
        for said, order in (("2,1,0", [2, 1, 0]), ("0:2", [0, 1])):
            run([tegula, "copy", path, "-o", out[:-3] + "npy", "-y", "-q", "--channels", said], "colours")
            want = rgb[..., order] if layout == "contig" else rgb[..., order].transpose(2, 0, 1)
            expect(numpy.array_equal(numpy.load(out[:-3] + "npy"), want), "colours %s: an array" % said)
        run([tegula, "copy", path, "-o", out, "-y", "-q", "--channels", "green,red", "--format", "imagej"], "colours")
        with tifffile.TiffFile(out) as t:
            expect(t.imagej_metadata["Labels"] == ["green", "red"] and numpy.array_equal(t.asarray(), rgb[..., [1, 0]].transpose(2, 0, 1)),
                   "colours: ImageJ: %s" % t.imagej_metadata)
        model = network(os.path.join(folder, "c3.onnx"), "Conv", 1, 3)
        run([tegula, "run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", "--dtype", "same",
             "--channels", "blue,green,red"], "colours")
        got = tifffile.imread(out)
        expect(numpy.array_equal(got, rgb[..., ::-1]), "colours: a network that takes them the other way round")
        for said, end, told in (("blue,green,red", "png", True), ("red,green,blue", "png", False), ("blue,green,red", "tif", False)):
            r = ask(tegula, ["run", "-m", model, path, "-o", out[:-3] + end, "-y", "-q", "--normalize", "none", "--dtype", "same", "--channels", said])
            expect(("viewers take" in r.stderr) == told, "colours: %s to %s: %s" % (said, end, r.stderr))


def pictures(tegula, folder):
    """A PNG or JPEG takes one sample, or the colours in their order, with alpha behind them or not: never one for another."""
    rgba, grey = os.path.join(folder, "rgba.tif"), os.path.join(folder, "greya.tif")
    a = drawn((20, 30, 4), "uint8", 5)
    tifffile.imwrite(rgba, a, photometric="rgb", extrasamples=["unassalpha"], metadata=None)
    tifffile.imwrite(grey, a[..., :2], photometric="minisblack", planarconfig="contig", extrasamples=["unassalpha"], metadata=None)
    for path, end, said, order in ((rgba, "png", "green", [1]), (rgba, "png", "alpha", [3]), (rgba, "png", "red,green,blue", [0, 1, 2]),
                                   (rgba, "png", "red,green,blue,alpha", [0, 1, 2, 3]), (rgba, "jpg", "0:3", None), (rgba, "jpg", "green", None),
                                   (grey, "png", "0", [0]), (grey, "png", "0,1", [0, 1])):
        out = os.path.join(folder, "shown." + end)
        run([tegula, "copy", path, "-o", out, "-y", "-q", "--channels", said], "pictures")
        run([tegula, "copy", out, "-o", out + ".npy", "-y", "-q"], "pictures: read")
        got = numpy.load(out + ".npy")
        want = None if order is None else a[..., order[0]] if len(order) == 1 else a[..., order]
        expect(want is None or numpy.array_equal(got, want), "pictures: %s: %s" % (said, got.shape))
    for path, said in ((rgba, "red,green"), (rgba, "red,green,alpha"), (rgba, "red,red"), (rgba, "blue,green,red"), (rgba, "alpha,red,green,blue"),
                       (rgba, "red,green,blue,blue"), (grey, "1,0"), (grey, "0,0")):
        for end in ("png", "jpg"):
            r = ask(tegula, ["copy", path, "-o", os.path.join(folder, "never." + end), "--channels", said])
            expect(r.returncode == 64 and "write .tif" in r.stderr, "pictures: %s: exit %d: %s" % (said, r.returncode, r.stderr))


def named_by_run(tegula, folder):
    """Colours that a network of one channel sees alone have the names that a copy gives them."""
    path, out = os.path.join(folder, "rgb.tif"), os.path.join(folder, "named.ome.tif")
    rgb = drawn((40, 50, 3), "uint8", 5)
    tifffile.imwrite(path, rgb, photometric="rgb", metadata=None)
    model = ["-m", network(os.path.join(folder, "n1.onnx"), "Conv", 1, 1), "--normalize", "none", "--dtype", "same"]
    for words, order in (([], [0, 1, 2]), (["--channels", "green"], [1]), (["--channels", "blue,red"], [2, 0])):
        for verb in (["run", *model], *([["copy"]] if words else [])):
            r = ask(tegula, [*verb, path, "-o", out, "-y", "-q", *words])
            expect(r.returncode == 0, "named: %s %s: %s" % (verb[0], words, r.stderr))
            got, _, channels = described(out)
            expect(numpy.array_equal(got[0, :, 0], rgb[..., order].transpose(2, 0, 1)), "named: %s %s: pixels" % (verb[0], words))
            expect([c.get("Name") for c in channels] == [("red", "green", "blue")[k] for k in order], "named: %s %s: %s" % (verb[0], words, channels))


def refusals(tegula, folder, path):
    out = os.path.join(folder, "never.tif")
    for words, says in ((["--channels", "3"], "0 DAPI, 1 GFP, 2 405"), (["--channels", "GFPP"], 'nearest is "GFP"'),
                        (["--channels", "name:4"], "no channel"), (["--channels", ""], "missing"),
                        (["--channels", "0,"], "empty"), (["--z", "3:13"], "0 to 11"), (["--z", "5:5"], "half open"),
                        (["--z", "a"], "no slice"), (["--t", "0,0"], "twice"), (["--z", "1", "--roi", "0:2,:,:"], "both"),
                        (["--z", "99999999999999999999"], "0 to 11"), (["--roi", "3:20,:,:"], "12")):
        r = ask(tegula, ["copy", path, "-o", out, *words])
        expect(r.returncode == 64 and says in r.stderr, "%s: exit %d: %s" % (words, r.returncode, r.stderr))
    both = os.path.join(folder, "both.ome.tif")
    tifffile.imwrite(both, drawn((3, 40, 56), "uint8", 1), metadata={"axes": "CYX", "Channel": {"Name": ["a", "2", "a"]}})
    for said, says in (("2", "name:2"), ("a", "more than one")):
        r = ask(tegula, ["copy", both, "-o", out, "--channels", said])
        expect(r.returncode == 64 and says in r.stderr, "both: %s: %s" % (said, r.stderr))
    run([tegula, "copy", both, "-o", out, "-q", "--channels", "name:2,2:3"], "both")
    expect(len(described(out)[2]) == 2, "both: two channels")
    plain = os.path.join(folder, "plain.tif")
    tifffile.imwrite(plain, drawn((40, 56), "uint8", 1), metadata=None)
    r = ask(tegula, ["copy", plain, "-o", os.path.join(folder, "p.tif"), "--z", "0"])
    expect(r.returncode == 64 and "no axis Z" in r.stderr, "plain: " + r.stderr)
    run([tegula, "copy", plain, "-o", os.path.join(folder, "p.tif"), "-q", "--channels", "0,0,0"], "the only channel")


def names_of_files(tegula, folder):
    """--z with a group is about the names of files, as it was before there were slices to choose; --name-z is the same."""
    files = os.path.join(folder, "files")
    os.mkdir(files)
    for z, c in itertools.product(range(4), "ab"):
        tifffile.imwrite(os.path.join(files, "z%d_%s.tif" % (z, c)), drawn((40, 56), "uint8", z * 2 + ord(c)), metadata=None)
    seen = []
    for words in (["--z", r"z(\d)", "--c", "_(a|b)"], ["--name-z", r"z(\d)", "--name-c", "_(a|b)"]):
        r = ask(tegula, ["info", files, "--json", *words])
        expect(r.returncode == 0, "files: " + r.stderr)
        seen.append(json.loads(r.stdout))
    expect(seen[0] == seen[1] and seen[0]["shape"][:2] == [2, 4], "files: %s" % seen)
    r = ask(tegula, ["info", files, "--json", *words, "--channels", "b", "--z", "1:3"])
    got = json.loads(r.stdout)
    expect(got["shape"][:2] == [1, 2] and got["channels"] == ["b"], "files: %s" % got)


def told_before(tegula, folder, path):
    """What info says of a choice is what info says of a copy of it."""
    out = os.path.join(folder, "told.ome.tif")
    for words in (["--channels", "GFP", "--roi", "5:20,3:33"], ["--roi", "3:9,0:10,:"], ["--planes", "12-23,48-59"], ["--planes", "0-11", "--roi", ":,:30"]):
        run([tegula, "copy", path, "-o", out, "-y", "-q", *words], "told: copy")
        said, is_ = (json.loads(ask(tegula, ["info", *x, "--json"]).stdout) for x in ([path, *words], [out]))
        for key in ("shape", "axes", "dtype", "planes", "levels", "physical_size", "channels", "time_increment_seconds"):
            expect(said.get(key) == is_.get(key), "told: %s: %s is %s, and of the copy %s" % (words, key, said.get(key), is_.get(key)))
    for words, code, text in ((["--planes", "0,13,27"], 0, "not all combinations"), (["--roi", "0:100,0:9"], 64, "not inside the image")):
        r = ask(tegula, ["info", path, *words])
        expect(r.returncode == code and text in r.stdout + r.stderr, "told: %s: exit %d: %s%s" % (words, r.returncode, r.stdout, r.stderr))


def main():
    tegula = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path, a = made(folder)
        identity(os.path.join(folder, "same.onnx"), 4)
        for choice in CHOICES:
            for verb in ("copy", "run"):
                one(tegula, folder, path, a, choice, verb)
        imagej(tegula, folder, path, a)
        mixed(tegula, folder, path, a)
        networks(tegula, folder, path, a)
        colours(tegula, folder)
        pictures(tegula, folder)
        named_by_run(tegula, folder)
        refusals(tegula, folder, path)
        names_of_files(tegula, folder)
        told_before(tegula, folder, path)
    print("%d choices, by copy and by run" % len(CHOICES))


if __name__ == "__main__":
    main()
