"""What is known beside the pixels, opened by programs that others wrote: tifffile and libvips, Pillow
and GDAL where they are there. ImageJ's stacks; sizes of pixels at another scale, level and region.

    meta_peers.py TEGULA
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiff_peers import MICRON, block, drawn, expect, identity, ints, number, numpy, run, tifffile  # noqa: E402


def fails(words, text, label):
    r = subprocess.run(words, capture_output=True, text=True)
    expect(r.returncode == 64, "%s: exit %d: %s" % (label, r.returncode, r.stderr))
    expect(text in r.stderr, "%s: %s" % (label, r.stderr))


# ---- ImageJ's stacks


def tables():
    lut = numpy.zeros((2, 3, 256), "uint8")
    lut[0, 1] = lut[1, 0] = lut[1, 2] = numpy.arange(256)
    return lut


def imagej_file(out, label):
    """Opened as ImageJ's and as nothing else; the planes lie behind each other where ImageJ looks."""
    t = tifffile.TiffFile(out)
    expect(t.is_imagej and not t.is_ome and not t.is_bigtiff, label + ": no ImageJ file")
    expect(t.series[0].kind == "imagej" and len(t.series) == 1, label + ": series")
    expect(t.series[0].dataoffset is not None, label + ": not contiguous")
    return t


def sizes_of(t):
    """Width and height of a pixel by the resolution, in its unit."""
    r = [t.pages[0].tags[n].value for n in ("XResolution", "YResolution")]
    return tuple(den / num for num, den in r)


def imagej_round_trip(tegula, folder):
    """A stack of ImageJ's goes through OME-TIFF and comes back with everything it had."""
    a = drawn((3, 4, 2, 65, 81), "uint16", 3)
    lut, label = tables(), ["plane %d \u00b5" % i for i in range(24)]
    path, ome, out = (os.path.join(folder, n) for n in ("ij.tif", "ij-ome.tif", "ij-out.tif"))
    tifffile.imwrite(path, a, imagej=True, resolution=(1 / 0.325, 1 / 0.25), metadata={
        "axes": "TZCYX", "unit": "um", "spacing": 1.5, "finterval": 0.5, "LUTs": list(lut), "Labels": label,
        "Ranges": (10.0, 200.0, 5.0, 100.5), "Info": "some\nwords", "mode": "composite"})
    run([tegula, "copy", path, "-o", ome, "-q", "--compress", "zstd"], "to OME")
    run([tegula, "copy", path, "-o", out, "-q", "--format", "imagej"], "to ImageJ")
    with imagej_file(out, "imagej") as t:
        m, s = t.imagej_metadata, t.series[0]
        expect(s.axes == "TZCYX" and numpy.array_equal(t.asarray(), a), "imagej: axes %s" % s.axes)
        expect((m["images"], m["channels"], m["slices"], m["frames"]) == (24, 2, 4, 3), "imagej: %s" % m)
        expect(m["spacing"] == 1.5 and m["finterval"] == 0.5, "imagej: %s" % m)
        expect(m["unit"].encode().decode("unicode_escape") == "\u00b5m", "imagej: unit %s" % m["unit"])
        expect(m["Labels"] == label and m["Info"] == "some\nwords", "imagej: labels, info")
        expect(tuple(m["Ranges"]) == (10.0, 200.0, 5.0, 100.5), "imagej: ranges %s" % (m["Ranges"],))
        expect(all(numpy.array_equal(x, y) for x, y in zip(m["LUTs"], lut)), "imagej: tables")
        expect(m["mode"] == "composite" and m["hyperstack"], "imagej: %s" % m)
        sizes = sizes_of(t)
        expect(numpy.allclose(sizes, (0.325, 0.25), rtol=1e-9), "imagej: sizes %s" % (sizes,))
        expect(len(t.pages) == 24, "imagej: %d pages" % len(t.pages))
        expect(numpy.array_equal(t.pages[23].asarray(), a[2, 3, 1]), "imagej: the last page")
    r = subprocess.run(["vipsheader", "-f", "n-pages", out], capture_output=True, text=True)
    expect(r.stdout.strip() == "24", "imagej: pages in vips: " + r.stdout + r.stderr)
    r = subprocess.run([tegula, "info", out, "--json"], capture_output=True, text=True)
    expect('"flavor":"imagej"' in r.stdout.replace(" ", ""), "our own reader: " + r.stdout)


    again = os.path.join(folder, "ij-again.tif")
    run([tegula, "copy", ome, "-o", again, "-q", "--format", "imagej"], "out of our OME-TIFF")
    with open(out, "rb") as x, open(again, "rb") as y:
        expect(x.read() == y.read(), "imagej: by way of OME-TIFF other bytes than directly")


def words_of_an_image(tegula, folder):
    """Name, date and description of an OME image; what is not carried is named, and only that."""
    path, out = os.path.join(folder, "words.ome.tif"), os.path.join(folder, "words-out.tif")
    a = drawn((2, 40, 50), "uint8", 1)
    said = {"Name": "Well <B7> \u00b5", "AcquisitionDate": "2024-05-06T07:08:09", "Description": "two\nlines & more"}
    for extra, warned in (({}, ""), ({"Plane": {"DeltaT": [0.0, 1.5]}, "Channel": {"Fluor": ["a", "b"]}}, "")):
        tifffile.imwrite(path, a, ome=True, metadata=dict(said, axes="CYX", **extra))
        r = subprocess.run([tegula, "copy", path, "-o", out, "-y"], capture_output=True, text=True)
        expect(r.returncode == 0 and ("also has " + warned in r.stderr if warned else "also has" not in r.stderr),
               "words: " + r.stderr)
        with tifffile.TiffFile(out) as t:
            image = tifffile.xml2dict(t.ome_metadata)["OME"]["Image"]
            got = {k: image.get(k) for k in said}
            expect(got == said, "words: %s" % got)


def chosen_planes_keep_their_axis(tegula, folder, models):
    """Planes that differ in one axis are along that axis, at its distance; no others are."""
    path, out = os.path.join(folder, "chosen.ome.tif"), os.path.join(folder, "chosen-out.tif")
    a = drawn((3, 2, 5, 40, 50), "uint16", 1)
    tifffile.imwrite(path, a, ome=True, metadata=dict(
        MICRON, axes="TCZYX", PhysicalSizeZ=1.5, PhysicalSizeZUnit="\u00b5m", TimeIncrement=2.0, TimeIncrementUnit="s"))
    flat = a.reshape(30, 40, 50)
    for verb in (["copy"], ["run", "-m", models["run2"], "--normalize", "none", "--dtype", "same"]):
        for planes, axes, key, size in (("5-9", "ZYX", "PhysicalSizeZ", 1.5), ("0,2,4", "ZYX", "PhysicalSizeZ", 3),
                                        ("3,13,23", "TYX", "TimeIncrement", 2), ("1,6", "CYX", None, None),
                                        ("7", "YX", None, None), ("0-9", "CZYX", "PhysicalSizeZ", 1.5), ("0,5,10", "TYX", None, None)):
            label = "%s --planes %s" % (verb[0], planes)
            run([tegula, *verb, path, "-o", out, "-q", "-y", "--planes", planes], label)
            lo, _, hi = planes.partition("-")
            which = list(range(int(lo), int(hi) + 1)) if hi else [int(p) for p in planes.split(",")]
            with tifffile.TiffFile(out) as t:
                expect(t.series[0].axes == axes, "%s: axes %s" % (label, t.series[0].axes))
                expect(numpy.array_equal(t.asarray().reshape(-1, 40, 50), flat[which]), label + ": pixels")
                pixels = tifffile.xml2dict(t.ome_metadata)["OME"]["Image"]["Pixels"] if t.is_ome else {}
                expect(not key or pixels[key] == size, "%s: %s is %s" % (label, key, pixels.get(key)))
                expect(t.is_ome and pixels.get("TimeIncrement") == (None if planes == "0,5,10" else 2), label + ": times")


def imagej_orders(tegula, folder):
    """Whatever the order of the planes in the file, ImageJ's is channels, slices, frames; unknown axes and
    samples find a place; colours of channels become tables."""
    path, out = os.path.join(folder, "order.tif"), os.path.join(folder, "order-ij.tif")
    words = [tegula, "copy", path, "-o", out, "-q", "-y", "--format", "imagej"]
    a = drawn((3, 2, 4, 33, 40), "uint8", 5)
    colours = [0xff0000ff - (1 << 32), 0x00ff00ff]
    tifffile.imwrite(path, a, ome=True, metadata=dict(
        MICRON, axes="TCZYX", Channel={"Name": ["DAPI", "GFP"], "Color": colours}))
    run(words, "TCZYX")
    with imagej_file(out, "TCZYX") as t:
        expect(numpy.array_equal(t.asarray(), a.transpose(0, 2, 1, 3, 4)), "TCZYX: pixels")
        m = t.imagej_metadata
        expect(m["Labels"] == ["DAPI", "GFP"] * 12, "TCZYX: labels %s" % m["Labels"])
        expect(m["LUTs"][0][0, 255] == 255 and m["LUTs"][0][1].max() == 0, "TCZYX: red")
        expect(m["LUTs"][1][1, 128] == 128 and m["LUTs"][1][0].max() == 0, "TCZYX: green")
    a = drawn((5, 33, 40), "float32", 5)
    tifffile.imwrite(path, a, metadata=None)
    run(words, "pages")
    with imagej_file(out, "pages") as t:
        expect(t.series[0].axes == "ZYX" and numpy.array_equal(t.asarray(), a), "pages: %s" % t.series[0].axes)
        expect(t.imagej_metadata["slices"] == 5, "pages: slices")
    rgb = drawn((3, 33, 40, 3), "uint8", 6)
    tifffile.imwrite(path, rgb, photometric="rgb", ome=True, metadata={"axes": "ZYXS"})
    run(words, "rgb")
    with imagej_file(out, "rgb") as t:
        expect(t.series[0].axes == "ZYXS" and numpy.array_equal(t.asarray(), rgb), "rgb: %s" % t.series[0].axes)
    run(words + ["--dtype", "uint16"], "wide rgb")
    with imagej_file(out, "wide rgb") as t:
        want = rgb.transpose(0, 3, 1, 2).astype("uint16")
        expect(t.series[0].axes == "ZCYX" and numpy.array_equal(t.asarray(), want), "wide rgb: channels")
    one = drawn((31, 47), "int16", 7)
    tifffile.imwrite(path, one)
    run(words, "one plane")
    with imagej_file(out, "one plane") as t:
        expect(t.asarray().dtype == "int16" and numpy.array_equal(t.asarray(), one), "one plane")


def imagej_refusals(tegula, folder):
    path, out = os.path.join(folder, "no.tif"), os.path.join(folder, "no-ij.tif")
    words = [tegula, "copy", path, "-o", out, "-q", "--format", "imagej"]
    tifffile.imwrite(path, drawn((31, 47), "uint16", 7).astype("float64"))
    fails(words, "an ImageJ stack holds uint8, uint16, int16 or float32, not float64", "float64")
    tifffile.imwrite(path, drawn((31, 47), "uint16", 7))
    fails(words + ["--compress", "zstd"], "leave out --compress", "compressed")
    fails(words + ["--pyramid", "mean"], "no smaller levels", "pyramid")
    fails([tegula, "copy", path, "-o", os.path.join(folder, "no.png"), "--format", "imagej"], "is named otherwise",
          "png")
    tifffile.imwrite(path, drawn((2, 2, 2, 2, 3, 16, 16), "uint8", 7), metadata={"axes": "PTZCQYX"})
    fails(words, "no room for axis", "seven axes")
    with open(path, "wb") as f: # the header of 5 GB, and no pixels
        f.truncate(5 << 30)
    tifffile.imwrite(path, shape=(5, 32768, 32768), dtype="uint8", bigtiff=True)
    fails(words, "an ImageJ stack ends at 4 GiB, this one would take 5.00 GiB", "5 GiB")
    expect(not any(n.startswith("no-ij") for n in os.listdir(folder)), "refusals left something behind")


def imagej_run(tegula, folder, models):
    """A run, and the same bytes when it was killed on the way."""
    a = drawn((2, 3, 200, 311), "uint16", 3)
    path, out, again = (os.path.join(folder, n) for n in ("run.tif", "run-ij.tif", "run-again.tif"))
    tifffile.imwrite(path, a, ome=True, metadata=dict(MICRON, axes="CTYX", TimeIncrement=2.0, TimeIncrementUnit="s"))
    words = [tegula, "run", "-m", models["run2"], path, "--normalize", "none", "--dtype", "same", "--ram", "256MiB",
             "--format", "imagej", "-q"]
    run(words + ["-o", out], "imagej run")
    with imagej_file(out, "imagej run") as t:
        expect(t.series[0].axes == "TCYX" and numpy.array_equal(t.asarray(), a.transpose(1, 0, 2, 3)), "run: pixels")
        expect(t.imagej_metadata["finterval"] == 2, "run: %s" % t.imagej_metadata)
        expect(t.pages[0].tags["XResolution"].value == (40, 13), "run: 1/0.325 is 40/13")
    with open(out, "rb") as f:
        whole = f.read()
    kills = 0
    for k in range(2, 80, 7):
        env = dict(os.environ, TEGULA_FAIL_IO="%d:kill" % k, TEGULA_SYNC_TILES="1")
        r = subprocess.run(words + ["-o", again, "-y"], capture_output=True, text=True, env=env)
        kills += r.returncode == -9
        if r.returncode == -9 and not os.path.exists(again):
            run(words + ["-o", again], "imagej run, again")
        with open(again, "rb") as f:
            expect(f.read() == whole, "imagej run: other bytes after a kill at operation %d" % k)
        os.unlink(again)
    expect(kills >= 5, "imagej run: killed only %d times" % kills)


# ---- Sizes of pixels


def network(path, op, side, channels=1, twice=False):
    """Conv or ConvTranspose of side x side pixels without overlap, of as many channels as it gives; `twice`:
    with the input itself as a second output."""
    eye = numpy.zeros((channels, channels, side, side), "<f4")
    eye[range(channels), range(channels)] = 1 if op == "ConvTranspose" else 1 / side ** 2
    nodes = [block(1, "x") + block(1, "w") + block(2, "y") + block(3, "c") + block(4, op)
             + block(5, ints("kernel_shape", [side] * 2)) + block(5, ints("strides", [side] * 2))]
    if twice:
        nodes.append(block(1, "x") + block(2, "same") + block(3, "r") + block(4, "Relu"))
    weight = b"".join(number(1, n) for n in eye.shape) + number(2, 1) + block(8, "w") + block(9, eye.tobytes())

    def port(name):
        dims = block(1, number(1, 1)) + block(1, number(1, channels)) + b"".join(
            block(1, block(2, name + d)) for d in "hw")
        return block(1, name) + block(2, block(1, number(1, 1) + block(2, dims)))
    graph = b"".join(block(1, n) for n in nodes) + block(2, "g") + block(5, weight) + block(11, port("x"))
    graph += block(12, port("y")) + (block(12, port("same")) if twice else b"")
    with open(path, "wb") as f:
        f.write(number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 13)))
    return path


def ome_of(out):
    with tifffile.TiffFile(out) as t:
        return tifffile.xml2dict(t.ome_metadata)["OME"]["Image"]["Pixels"], sizes_of(t)


def sizes_follow_the_scale(tegula, folder):
    """Twice as large, a quarter, a level, a region: a pixel's size is divided accordingly, in OME-XML, in the
    resolution and in ImageJ's units; times, z and channels stay."""
    path, out = os.path.join(folder, "sizes.ome.tif"), os.path.join(folder, "sizes-out.tif")
    a = drawn((2, 3, 128, 192), "uint8", 4)
    meta = dict(MICRON, axes="TCYX", TimeIncrement=0.5, TimeIncrementUnit="s", Channel={"Name": ["a", "b", "c"]})
    with tifffile.TiffWriter(path, ome=True) as t:
        t.write(a, subifds=1, metadata=meta, tile=(64, 64))
        t.write(a[..., ::2, ::2], subfiletype=1, tile=(64, 64))
    models = {2: network(os.path.join(folder, "x2.onnx"), "ConvTranspose", 2),
              0.25: network(os.path.join(folder, "quarter.onnx"), "Conv", 4)}
    copy, base = [tegula, "copy", path], (0.325, 0.25)
    cases = [("copy", copy, 1), ("level", copy + ["--level", "1"], 0.5), ("roi", copy + ["--roi", "16:80,32:100"], 1)]
    for scale, model in models.items():
        words = [tegula, "run", "-m", model, path, "--normalize", "none", "--dtype", "same"]
        cases += [("%g" % scale, words, scale), ("%g of a level" % scale, words + ["--level", "1"], scale / 2),
                  ("%g of a region" % scale, words + ["--roi", "16:80,32:96"], scale)]
    for label, words, scale in cases:
        want = [v / scale for v in base]
        run(words + ["-o", out, "-q", "-y"], label)
        pixels, sizes = ome_of(out)
        got = [pixels["PhysicalSizeX"], pixels["PhysicalSizeY"]]
        expect(numpy.allclose(got, want, rtol=1e-12), "%s: %s, expected %s" % (label, got, want))
        expect(numpy.allclose(sizes, [v / 1e4 for v in want], rtol=1e-9), "%s: resolution %s" % (label, sizes))
        expect(pixels["TimeIncrement"] == 0.5, label + ": time")
        expect([c.get("Name") for c in pixels["Channel"]] == ["a", "b", "c"], label + ": channels")
        run(words + ["-o", out, "-q", "-y", "--format", "imagej"], label + " for ImageJ")
        with imagej_file(out, label) as t:
            expect(numpy.allclose(sizes_of(t), want, rtol=1e-9), "%s: ImageJ %s" % (label, sizes_of(t)))
            expect(t.imagej_metadata["finterval"] == 0.5, label + ": ImageJ's time")


def folders_carry_it_too(tegula, folder):
    """Two outputs of different scale in a folder: each has its own sizes."""
    path, out = os.path.join(folder, "two.ome.tif"), os.path.join(folder, "two") + os.sep
    a = drawn((2, 64, 96), "uint8", 4)
    tifffile.imwrite(path, a, ome=True, metadata=dict(MICRON, axes="CYX", Channel={"Name": ["a", "b"]}))
    model = network(os.path.join(folder, "two.onnx"), "ConvTranspose", 2, twice=True)
    for extra in ([], ["--format", "imagej"]):
        run([tegula, "run", "-m", model, path, "-o", out, "-q", "-y"] + extra, "folder")
        for name, scale in (("y", 2), ("same", 1)):
            file = out + name + ".tif"
            want = a.repeat(scale, 1).repeat(scale, 2).astype("float32")
            with tifffile.TiffFile(file) as t:
                expect(numpy.array_equal(t.asarray(), want), "folder: %s" % name)
                unit = 1 if extra else 1e4
                expect(numpy.allclose(sizes_of(t), [0.325 / scale / unit, 0.25 / scale / unit], rtol=1e-9),
                       "folder: %s of %s" % (sizes_of(t), name))
                if not extra:
                    pixels, _ = ome_of(file)
                    expect([c["Name"] for c in pixels["Channel"]] == ["a", "b"], "folder: names")


# ---- What the numbers mean


def forms_survive_a_copy(tegula, folder):
    """Orientation, kinds of samples, palettes, inks: what a file says of its numbers stands in the copy."""
    path, out = os.path.join(folder, "form.tif"), os.path.join(folder, "form-out.tif")
    rng = numpy.random.default_rng(1)
    colours = rng.integers(0, 65535, (3, 256)).astype("uint16")
    cases = [
        ("palette", drawn((40, 50), "uint8", 1), dict(photometric="palette", colormap=colours), 3),
        ("miniswhite", drawn((40, 50), "uint16", 1), dict(photometric="miniswhite"), 0),
        ("cmyk", drawn((40, 50, 4), "uint8", 1), dict(photometric="separated"), 5),
        ("cielab", drawn((40, 50, 3), "uint8", 1), dict(photometric="cielab"), 8),
        ("icclab", drawn((40, 50, 3), "uint16", 1), dict(photometric="icclab"), 9),
        ("rgba", drawn((40, 50, 4), "uint8", 1), dict(photometric="rgb", extrasamples=["unassalpha"]), 2),
        ("premultiplied", drawn((40, 50, 4), "uint16", 1), dict(photometric="rgb", extrasamples=["assocalpha"]), 2),
        ("grey and alpha", drawn((40, 50, 2), "uint8", 1),
         dict(photometric="minisblack", planarconfig="contig", extrasamples=["unassalpha"]), 1),
        ("turned", drawn((40, 50), "uint8", 1), dict(extratags=[(274, 3, 1, 6, True)]), 1),
    ]
    for label, a, how, photometric in cases:
        tifffile.imwrite(path, a, metadata=None, **how)
        for extra in ([], ["--compress", "deflate", "--pyramid", "nearest"]):
            run([tegula, "copy", path, "-o", out, "-q", "-y"] + extra, label)
            with tifffile.TiffFile(path) as was, tifffile.TiffFile(out) as t:
                old, new = was.pages[0], t.pages[0]
                expect(numpy.array_equal(t.asarray(), a), label + ": pixels")
                expect(int(new.photometric) == photometric, "%s: photometric %s" % (label, new.photometric))
                expect(tuple(new.extrasamples) == tuple(old.extrasamples), "%s: %s" % (label, new.extrasamples))
                for tag in (274, 320):
                    x, y = (p.tags[tag].value if tag in p.tags else None for p in (old, new))
                    same = numpy.array_equal(x, y) or (tag == 274 and {x, y} == {None, 1})
                    expect(same, "%s: tag %d is %s" % (label, tag, y))
        r = subprocess.run(["vipsheader", out], capture_output=True, text=True)
        expect(r.returncode == 0 and "50x40" in r.stdout, "%s: vips: %s%s" % (label, r.stdout, r.stderr))
    run([tegula, "copy", path, "-o", out, "-q", "-y", "--format", "imagej"], "turned, imagej")
    with tifffile.TiffFile(out) as t:
        expect(t.pages[0].tags[274].value == 6, "turned, imagej")
    a = drawn((40, 50), "uint8", 1)
    tifffile.imwrite(path, a, metadata=None, photometric="palette", colormap=colours)
    run([tegula, "copy", path, "-o", out, "-q", "-y", "--format", "imagej"], "palette, imagej")
    with imagej_file(out, "palette") as t:
        expect(numpy.array_equal(t.imagej_metadata["LUTs"], colours >> 8), "palette: ImageJ's table")


def alpha_is_no_channel(tegula, folder):
    """Colours go to the network, alpha does not, and this is said; all samples go where all are asked for."""
    path, out = os.path.join(folder, "alpha.tif"), os.path.join(folder, "alpha-out.tif")
    models = {n: network(os.path.join(folder, "a%d.onnx" % n), "Conv", 1, n) for n in (1, 2, 3, 4)}
    rgba, grey = drawn((40, 50, 4), "uint8", 1), drawn((40, 50, 2), "uint8", 1)

    def ask(n, words=(), file=path):
        return subprocess.run([tegula, "run", "-m", models[n], file, "-o", out, "--normalize", "none", "--dtype", "same",
                               "-y", *words], capture_output=True, text=True)

    def check(r, want, warned, label):
        expect(r.returncode == 0, "%s: %s" % (label, r.stderr))
        with tifffile.TiffFile(out) as t:
            got = t.asarray()
            expect(got.shape == want.shape and numpy.array_equal(got, want), "%s: %s" % (label, got.shape))
            expect(not any(int(e) for e in t.pages[0].extrasamples) or not warned, label + ": alpha in the output")
        expect(("left out" in r.stderr) == warned, "%s: %s" % (label, r.stderr))
    for kind in (["unassalpha"], ["assocalpha"], ["unspecified"]):
        label = "rgba %s" % kind
        tifffile.imwrite(path, rgba, metadata=None, photometric="rgb", extrasamples=kind)
        check(ask(3), rgba[..., :3], True, label)
        check(ask(4), rgba, False, label + ", four")
        if kind != ["unspecified"]:
            check(ask(1), rgba[..., :3].transpose(2, 0, 1), True, label + ", one")
    tifffile.imwrite(path, grey, metadata=None, photometric="minisblack", planarconfig="contig",
                     extrasamples=["unassalpha"])
    check(ask(1), grey[..., 0], True, "grey and alpha")
    check(ask(2), grey, False, "grey and alpha, two")
    tifffile.imwrite(path, rgba, metadata=None, photometric="separated")
    r = ask(3)
    expect(r.returncode == 64 and "CMYK" in r.stderr and "RGB" in r.stderr, "cmyk: " + r.stderr)
    fails([tegula, "copy", path, "-o", os.path.join(folder, "inks.png")], "CMYK inks", "inks as a picture")
    levels = [tegula, "copy", path, "-o", os.path.join(folder, "levels.tif"), "-y", "--pyramid"]
    tifffile.imwrite(path, rgba[..., :3], metadata=None, photometric="cielab")
    fails([tegula, "copy", path, "-o", os.path.join(folder, "lab.png")], "the samples are Lab", "Lab as a picture")
    fails(levels + ["mean"], "CIE Lab", "means of Lab")
    run(levels + ["nearest"], "levels of Lab")
    tifffile.imwrite(path, rgba[..., 0], metadata=None, photometric="palette", colormap=numpy.zeros((3, 256), "uint16"))
    fails(levels + ["mean"], "palette", "means of a palette")


def stacks_of_files_keep_them(tegula, folder):
    """A folder of files as one stack: what the first says of its numbers holds for all."""
    files, out = os.path.join(folder, "frames"), os.path.join(folder, "frames.tif")
    os.mkdir(files)
    rgba, icc = drawn((3, 40, 50, 4), "uint8", 1), bytes(range(256)) * 2
    for i in range(3):
        tifffile.imwrite(os.path.join(files, "f%d.tif" % i), rgba[i], photometric="rgb", extrasamples=["unassalpha"],
                         resolution=(400, 200, "CENTIMETER"), metadata=None,
                         extratags=[(274, 3, 1, 3, True), (34675, 7, len(icc), icc, True)])
    run([tegula, "copy", files, "-o", out, "-q"], "files")
    with tifffile.TiffFile(out) as t:
        p = t.pages[0]
        expect(numpy.array_equal(t.asarray(), rgba), "files: pixels")
        expect([int(e) for e in p.extrasamples] == [2] and p.tags[274].value == 3, "files: %s" % (p.extrasamples,))
        expect(p.tags[34675].value == icc and numpy.allclose(sizes_of(t), (1 / 400, 1 / 200)), "files: profile, sizes")
    model = network(os.path.join(folder, "files.onnx"), "Conv", 1, 3)
    run([tegula, "run", "-m", model, files, "-o", out, "-q", "-y", "--dtype", "same", "--normalize", "none"], "files")
    with tifffile.TiffFile(out) as t:
        expect(numpy.array_equal(t.asarray(), rgba[..., :3]), "files: a network of three channels")


def gdal(tegula, folder):
    """GDAL's reading, where it is installed: pixels by checksum, kinds of bands, the palette."""
    if not shutil.which("gdalinfo"):
        print("no gdalinfo: GDAL is left out")
        return
    path, out = os.path.join(folder, "g.tif"), os.path.join(folder, "g-out.tif")
    colours = numpy.random.default_rng(1).integers(0, 255, (3, 256)).astype("uint16") * 257
    cases = [(drawn((60, 70), "uint8", 1), dict(photometric="palette", colormap=colours)),
             (drawn((60, 70, 4), "uint8", 1), dict(photometric="rgb", extrasamples=["unassalpha"])),
             (drawn((60, 70), "uint16", 1), dict(photometric="miniswhite"))]
    for a, how in cases:
        tifffile.imwrite(path, a, metadata=None, compression=None, **how)
        run([tegula, "copy", path, "-o", out, "-q", "-y", "--compress", "deflate"], "gdal")
        seen = []
        for file in (path, out):
            r = subprocess.run(["gdalinfo", "-checksum", file], capture_output=True, text=True)
            expect(r.returncode == 0, "gdalinfo: " + r.stderr)
            seen.append([line.split("Block=")[0] + line.split("Type=")[-1] if "Band" in line else line
                         for line in r.stdout.splitlines()
                         if any(w in line for w in ("Band", "Checksum", "Size is")) or line[:3].strip().isdigit()])
        expect(seen[0] == seen[1] and len(seen[0]) > 2, "gdal: %s and %s" % tuple(seen))


def pictures(tegula, folder):
    """PNG and JPEG: profile and orientation come in and go out; the forms of PNG with alpha and palettes."""
    try:
        from PIL import Image, ImageCms
    except ImportError:
        print("no Pillow: pictures are left out")
        return
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    profile += bytes(range(256)) * 400 # as large as needs two segments; the size stands in front
    profile = len(profile).to_bytes(4, "big") + profile[4:]
    rgb = drawn((40, 50, 3), "uint8", 1)
    exif = Image.Exif()
    exif[274] = 6
    tif, files = os.path.join(folder, "p.tif"), [os.path.join(folder, n) for n in ("p.png", "p.jpg")]
    for file in files:
        Image.fromarray(rgb).save(file, icc_profile=profile, exif=exif, quality=95)
        label = os.path.basename(file)
        r = subprocess.run([tegula, "info", file, "--json"], capture_output=True, text=True)
        expect('"orientation":6' in r.stdout.replace(" ", ""), label + ": info " + r.stdout)
        run([tegula, "copy", file, "-o", tif, "-q", "-y"], label)
        with tifffile.TiffFile(tif) as t:
            expect(t.pages[0].tags[34675].value == profile, label + ": profile in the TIFF")
            expect(t.pages[0].tags[274].value == 6, label + ": orientation in the TIFF")
        for to in files:
            run([tegula, "copy", tif, "-o", to + ".again" + to[-4:], "-q", "-y"], label)
            with Image.open(to + ".again" + to[-4:]) as i:
                expect(i.info.get("icc_profile") == profile, "%s: profile in %s" % (label, i.format))
                expect(i.getexif().get(274) == 6, "%s: orientation in %s" % (label, i.format))
    png = os.path.join(folder, "form.png")
    wide = numpy.random.default_rng(2).integers(0, 65535, (33, 41)).astype("uint16")
    tifffile.imwrite(tif, wide, metadata=None)
    run([tegula, "copy", tif, "-o", png, "-q", "-y"], "16 bits")
    with Image.open(png) as i:
        expect(numpy.array_equal(numpy.asarray(i).astype("uint16"), wide), "16 bits: %s" % i.mode)
    Image.fromarray(drawn((33, 41, 4), "uint8", 2), "RGBA").save(png)
    run([tegula, "copy", png, "-o", tif, "-q", "-y"], "rgba png")
    with tifffile.TiffFile(tif) as t:
        expect([int(e) for e in t.pages[0].extrasamples] == [2], "rgba png: %s" % (t.pages[0].extrasamples,))


def main(tegula):
    folder = tempfile.mkdtemp(prefix="tegula-peers-")
    try:
        models = {"run2": identity(os.path.join(folder, "2d.onnx"), 4)}
        imagej_round_trip(tegula, folder)
        words_of_an_image(tegula, folder)
        chosen_planes_keep_their_axis(tegula, folder, models)
        imagej_orders(tegula, folder)
        imagej_refusals(tegula, folder)
        imagej_run(tegula, folder, models)
        sizes_follow_the_scale(tegula, folder)
        folders_carry_it_too(tegula, folder)
        forms_survive_a_copy(tegula, folder)
        alpha_is_no_channel(tegula, folder)
        stacks_of_files_keep_them(tegula, folder)
        gdal(tegula, folder)
        pictures(tegula, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("metadata as tifffile %s reads them" % tifffile.__version__)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
