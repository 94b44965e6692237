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
from tiff_peers import MICRON, drawn, expect, identity, numpy, run, tifffile, upscale  # noqa: E402


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
        "Ranges": (10.0, 200.0, 5.0, 100.5), "Info": "some\nwords"})
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


def main(tegula):
    folder = tempfile.mkdtemp(prefix="tegula-peers-")
    try:
        models = {"run2": identity(os.path.join(folder, "2d.onnx"), 4),
                  "up": upscale(os.path.join(folder, "up.onnx"))}
        imagej_round_trip(tegula, folder)
        imagej_orders(tegula, folder)
        imagej_refusals(tegula, folder)
        imagej_run(tegula, folder, models)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("metadata as tifffile %s reads them" % tifffile.__version__)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
