"""Our TIFF output opens in tifffile and in libvips, pixel for pixel.

    tiff_peers.py TEGULA

Each case draws an array, writes it as somebody's TIFF (tifffile does), and lets the command write
it again - `copy`, and `run` with a network that gives back what it gets - with every codec. Then
both readers must find the pixels; tifffile also the axes, the physical sizes and that the file is a
BigTIFF; libvips the resolution. Packages: scripts/deps-debian test. Debian's tifffile brings no
codec for zstd and LZW; there its part is the structure, and the pixels are for libvips alone.

Sources: tifffile's axes letters; libvips' pages one above the other with [n=-1]."""
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy
    import tifffile
except ImportError as missing:
    # A Python ahead of the system's in PATH does not see the distribution's packages.
    system = "/usr/bin/python3"
    if os.path.exists(system) and os.path.realpath(sys.executable) != os.path.realpath(system):
        os.execv(system, [system, "-B"] + sys.argv)
    print("skipped: %s (scripts/deps-debian test installs it)" % missing)
    sys.exit(77)
if not shutil.which("vips"):
    print("skipped: no vips command (scripts/deps-debian test installs it)")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "memory"))
from onnxmade import block, ints, number  # noqa: E402
from tiffmade import Made  # noqa: E402

CODECS = {"none": 1, "deflate": 8, "zstd": 50000, "lzw": 5}
MICRON = {"PhysicalSizeX": 0.325, "PhysicalSizeY": 0.25, "PhysicalSizeXUnit": "\u00b5m",
          "PhysicalSizeYUnit": "\u00b5m"}


def expect(truth, text):
    if not truth:
        print("FAILED: " + text, flush=True)
        sys.exit(1)


def drawn(shape, dtype, seed):
    """A ramp with noise: neither constant nor incompressible, different in every plane."""
    rng = numpy.random.default_rng(seed)
    top = 1000 if dtype == "uint16" else 200
    a = rng.integers(0, top // 4, shape) + numpy.arange(shape[-1]) % (top // 2)
    return (a + numpy.arange(shape[0]).reshape([-1] + [1] * (len(shape) - 1)) % 7).astype(dtype)


def identity(path, rank):
    """y = 1 * x, a 1x1 convolution of one channel over rank - 2 axes."""
    ones = [1] * (rank - 2)
    node = (block(1, "x") + block(1, "w") + block(2, "y") + block(3, "c") + block(4, "Conv")
            + block(5, ints("kernel_shape", ones)))
    weight = b"".join(number(1, 1) for _ in range(rank)) + number(2, 1) + block(8, "w") + block(
        9, numpy.ones(1, "<f4").tobytes())
    dims = block(1, number(1, 1)) * 2 + b"".join(block(1, block(2, "d%d" % i)) for i in range(rank - 2))

    def port(name):
        return block(1, name) + block(2, block(1, number(1, 1) + block(2, dims)))
    graph = (block(1, node) + block(2, "identity") + block(5, weight) + block(11, port("x"))
             + block(12, port("y")))
    with open(path, "wb") as f:
        f.write(number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 13)))
    return path


class Case:
    """An array and how it gets into a TIFF that somebody else wrote."""

    def __init__(self, name, shape, dtype, axes, want_axes=None, how="copy", sizes=None, **write):
        self.name, self.axes, self.how = name, axes, how
        self.want_axes = want_axes or axes
        self.sizes = sizes or {}
        self.array = drawn(shape, dtype, len(name))
        self.write = write

    def make(self, folder):
        self.input = os.path.join(folder, self.name + ".tif")
        tifffile.imwrite(self.input, self.array, **self.write)


def cases():
    def ome(axes, **more):
        return {"ome": True, "metadata": dict(MICRON, axes=axes, **more)}
    z = {"PhysicalSizeZ": 1.5, "PhysicalSizeZUnit": "\u00b5m"}
    sizes = {"X": 0.325, "Y": 0.25}
    return [
        Case("plane", (300, 211), "uint16", "YX", sizes=sizes, **ome("YX")),
        Case("ome_planes", (3, 2, 130, 70), "uint16", "TCYX", sizes=sizes, **ome("TCYX")),
        Case("rgb", (150, 201, 3), "uint8", "YXS", photometric="rgb"),
        Case("volume", (9, 65, 130), "uint8", "ZYX", sizes=dict(sizes, Z=1.5), **ome("ZYX", **z)),
        Case("run_planes", (4, 90, 111), "uint16", "TYX", how="run2", sizes=sizes, **ome("TYX")),
        Case("run_volume", (5, 64, 90), "uint16", "ZYX", how="run3", sizes=dict(sizes, Z=1.5),
             **ome("ZYX", **z)),
    ]


def command(tegula, case, codec, out, models):
    if case.how == "copy":
        words = [tegula, "copy", case.input]
    else:
        words = [tegula, "run", "-m", models[case.how], case.input, "--normalize", "none", "--dtype",
                 "same", "--tile", "64x64", "--ram", "256MiB"]
    r = subprocess.run(words + ["-o", out, "--compress", codec, "-q", "-y"], capture_output=True, text=True)
    expect(r.returncode == 0, "%s with %s: exit %d: %s" % (case.name, codec, r.returncode, r.stderr))


def in_tifffile(case, codec, out, label):
    """Structure always; pixels when this tifffile has the codec. 1 when they were compared."""
    with tifffile.TiffFile(out) as t:
        s = t.series[0]
        expect(len(t.series) == 1, "%s: %d series" % (label, len(t.series)))
        expect(s.axes == case.want_axes, "%s: axes %s, expected %s" % (label, s.axes, case.want_axes))
        expect(s.shape == case.array.shape, "%s: shape %s" % (label, s.shape))
        expect(s.dtype == case.array.dtype, "%s: type %s" % (label, s.dtype))
        expect(int(t.pages[0].compression) == CODECS[codec], "%s: codec %s" % (label, t.pages[0].compression))
        if codec == "zstd":
            t.filehandle.seek(t.pages[0].dataoffsets[0])
            head = t.filehandle.read(5)
            expect(head[4] & 0xe0, "%s: frames without their size, which Bio-Formats does not read: %s" % (label, head))
        if case.sizes:
            expect(t.is_ome, label + ": no OME")
            pixels = tifffile.xml2dict(t.ome_metadata)["OME"]["Image"]["Pixels"]
            for axis, size in case.sizes.items():
                expect(abs(pixels["PhysicalSize" + axis] - size) < 1e-12, "%s: size along %s is %s" % (
                    label, axis, pixels.get("PhysicalSize" + axis)))
                expect(pixels.get("PhysicalSize%sUnit" % axis, "\u00b5m") == "\u00b5m", label + ": unit")
        try:
            got = s.asarray()
        except (ValueError, KeyError) as e:
            expect("imagecodecs" in str(e) and codec in ("zstd", "lzw"), "%s: tifffile: %s" % (label, e))
            return 0
        expect(numpy.array_equal(got, case.array), label + ": other pixels in tifffile")
        return 1


def in_vips(case, out, label):
    raw = out + ".raw"
    r = subprocess.run(["vips", "rawsave", out + "[n=-1]", raw], capture_output=True, text=True)
    expect(r.returncode == 0, "%s: vips: %s" % (label, r.stderr))
    with open(raw, "rb") as f:
        got = f.read()
    expect(got == case.array.tobytes(), label + ": other pixels in vips")
    if case.sizes:
        for axis in "xy":
            r = subprocess.run(["vipsheader", "-f", axis + "res", out], capture_output=True, text=True)
            per_mm = 1000 / case.sizes[axis.upper()]
            expect(abs(float(r.stdout) - per_mm) < 1e-4 * per_mm, "%s: %s pixels/mm along %s, expected %g" % (
                label, r.stdout.strip(), axis, per_mm))


def big(tegula, folder):
    """A file whose tiles could take more than 4 GiB is a BigTIFF, however little they take: one
    column of tiles, mostly beyond the image, packs into a few megabytes."""
    made = Made(os.path.join(folder, "tall.tif"), 8, 4300000, rows_per_strip=4096)
    want = drawn((made.height, made.width), "uint8", 5)
    with open(made.path, "r+b") as f:
        made.rows(f, 0, want.tobytes())
    out = os.path.join(folder, "big.tif")
    r = subprocess.run([tegula, "copy", made.path, "-o", out, "--compress", "zstd:1", "--dtype", "float32", "-q"],
                       capture_output=True, text=True)
    expect(r.returncode == 0, "BigTIFF: exit %d: %s" % (r.returncode, r.stderr))
    with tifffile.TiffFile(out) as t:
        page = t.pages[0]
        expect(t.is_bigtiff, "tifffile sees no BigTIFF")
        expect(page.shape == (made.height, made.width) and page.dtype == "float32", "BigTIFF: %s" % page)
        expect(all(page.dataoffsets) and all(page.databytecounts), "BigTIFF: an empty tile")
    raw = os.path.join(folder, "big.raw")
    for y in (0, made.height // 2 - 100, made.height - 400):
        r = subprocess.run(["vips", "crop", out, raw, "0", str(y), str(made.width), "400"],
                           capture_output=True, text=True)
        expect(r.returncode == 0, "BigTIFF: vips: %s" % r.stderr)
        got = numpy.fromfile(raw, "f4").reshape(400, made.width)
        expect(numpy.array_equal(got, want[y:y + 400]), "BigTIFF: other pixels in vips at row %d" % y)


def upscale(path):
    """y = x with every pixel four times: a transposed 2x2 convolution of stride 2."""
    node = (block(1, "x") + block(1, "w") + block(2, "y") + block(3, "c") + block(4, "ConvTranspose")
            + block(5, ints("kernel_shape", [2, 2])) + block(5, ints("strides", [2, 2])))
    weight = (number(1, 1) + number(1, 1) + number(1, 2) + number(1, 2) + number(2, 1) + block(8, "w")
              + block(9, numpy.ones(4, "<f4").tobytes()))

    def port(name, extra):
        dims = block(1, number(1, 1)) * 2 + b"".join(block(1, block(2, extra + d)) for d in "hw")
        return block(1, name) + block(2, block(1, number(1, 1) + block(2, dims)))
    graph = (block(1, node) + block(2, "up") + block(5, weight) + block(11, port("x", "")) + block(12, port("y", "o")))
    with open(path, "wb") as f:
        f.write(number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 13)))
    return path


def run(words, label):
    r = subprocess.run(words, capture_output=True, text=True)
    expect(r.returncode == 0, "%s: exit %d: %s" % (label, r.returncode, r.stderr))


def metadata(tegula, folder):
    """What is known beside the pixels arrives: ImageJ's tables, ranges, names; profiles; the sizes of
    pixels of an output that is twice as large, of a file of names and times."""
    a = drawn((4, 2, 64, 80), "uint8", 3)
    lut = numpy.zeros((2, 3, 256), "uint8")
    lut[0, 1] = lut[1, 0] = lut[1, 2] = numpy.arange(256)
    label = ["plane %d \u00b5" % i for i in range(8)]
    path, out = os.path.join(folder, "ij.tif"), os.path.join(folder, "ij-out.tif")
    tifffile.imwrite(path, a, imagej=True, resolution=(4, 4), metadata={
        "axes": "TCYX", "unit": "um", "finterval": 0.5, "LUTs": list(lut), "Labels": label,
        "Ranges": (10.0, 200.0, 5.0, 100.5)})
    run([tegula, "copy", path, "-o", out, "-q"], "imagej")
    with tifffile.TiffFile(out) as t:
        ome = tifffile.xml2dict(t.ome_metadata)["OME"]
        pixels = ome["Image"]["Pixels"]
        expect(t.series[0].axes == "TCYX" and numpy.array_equal(t.asarray(), a), "imagej: pixels")
        expect(pixels["PhysicalSizeX"] == 0.25 and pixels["TimeIncrement"] == 0.5, "imagej: sizes %s" % pixels)
        colours = [c["Color"] & 0xffffffff for c in pixels["Channel"]]
        expect(colours == [0x00ff00ff, 0xff00ffff], "imagej: colours %s" % colours)
        kept = {m["K"]: m["value"] for m in ome["StructuredAnnotations"]["MapAnnotation"]["Value"]["M"]}
        expect([kept["Label %d" % i] for i in range(8)] == label, "imagej: labels %s" % kept)
        expect(kept["Range 1"] == "5 100.5", "imagej: ranges %s" % kept)
        expect(bytes.fromhex(str(kept["LUT 1"])) == lut[1].tobytes(), "imagej: tables")
    icc = bytes(range(200)) * 3
    rgb = drawn((64, 80, 3), "uint8", 4)
    tifffile.imwrite(path, rgb, photometric="rgb", resolution=(300, 300, "INCH"),
                     extratags=[(34675, 7, len(icc), icc, True)])
    run([tegula, "copy", path, "-o", out, "-q", "-y"], "profile")
    with tifffile.TiffFile(out) as t:
        expect(t.pages[0].tags[34675].value == icc and numpy.array_equal(t.asarray(), rgb), "the profile")
    r = subprocess.run(["vipsheader", "-f", "xres", out], capture_output=True, text=True)
    expect(abs(float(r.stdout) - 300 / 25.4) < 1e-3, "resolution in vips: " + r.stdout)
    tifffile.imwrite(path, a[0, 0], ome=True, metadata=dict(MICRON, axes="YX"))
    run([tegula, "run", "-m", upscale(os.path.join(folder, "up.onnx")), path, "--dtype", "same", "-o", out,
         "-q", "-y"], "upscaled")
    with tifffile.TiffFile(out) as t:
        pixels = tifffile.xml2dict(t.ome_metadata)["OME"]["Image"]["Pixels"]
        expect(numpy.array_equal(t.asarray(), a[0, 0].repeat(2, 0).repeat(2, 1)), "upscaled: pixels")
        expect(pixels["PhysicalSizeX"] == 0.1625 and pixels["PhysicalSizeY"] == 0.125, "upscaled: %s" % pixels)


def half(a, how):
    if how == "nearest":
        return a[..., ::2, ::2]
    p = numpy.pad(a, [(0, 0)] * (a.ndim - 2) + [(0, a.shape[-2] % 2), (0, a.shape[-1] % 2)], mode="edge")
    q = [p[..., i::2, j::2].astype("f8") for i in (0, 1) for j in (0, 1)]
    return numpy.floor(sum(q) / 4 + 0.5).astype(a.dtype)


def pyramid(tegula, folder, models):
    """Levels in SubIFDs: those that numpy makes of the image, for a copy and a run, and the same bytes
    when it was killed on the way, be it in the levels."""
    a = drawn((2, 401, 603), "uint16", 8)
    path, out, again = (os.path.join(folder, n) for n in ("pyramid.tif", "pyramid-out.tif", "pyramid-again.tif"))
    tifffile.imwrite(path, a, ome=True, metadata=dict(MICRON, axes="TYX"))
    network = [tegula, "run", "-m", models["run2"], path, "--normalize", "none", "--dtype", "same", "--ram", "256MiB"]
    for words, how in (([tegula, "copy", path], "mean"), ([tegula, "copy", path], "nearest"), (network, "mean")):
        words = words + ["--pyramid", how, "--compress", "deflate", "-q"]
        label = "pyramid, %s, %s" % (words[1], how)
        run(words + ["-o", out, "-y"], label)
        with tifffile.TiffFile(out) as t:
            expect(len(t.series) == 1 and len(t.series[0].levels) == 3, "%s: levels %s" % (label, t.series[0].levels))
            want = a
            for level in t.series[0].levels:
                expect(numpy.array_equal(level.asarray(), want), "%s: level %s" % (label, level.shape))
                want = half(want, how)
        r = subprocess.run(["vipsheader", "-f", "width", out + "[subifd=1]"], capture_output=True, text=True)
        expect(r.stdout.strip() == "151", label + ": level 2 in vips: " + r.stdout + r.stderr)
        with open(out, "rb") as f:
            whole = f.read()
        kills = 0
        for k in range(2, 60, 5):
            env = dict(os.environ, TEGULA_FAIL_IO="%d:kill" % k, TEGULA_SYNC_TILES="1")
            r = subprocess.run(words + ["-o", again, "-y"], capture_output=True, text=True, env=env)
            kills += r.returncode == -9
            if r.returncode == -9 and not os.path.exists(again):
                run(words + ["-o", again], label + ", again")
            with open(again, "rb") as f:
                expect(f.read() == whole, "%s: other bytes after a kill at operation %d" % (label, k))
            os.unlink(again)
        expect(kills >= 8, "%s: killed only %d times" % (label, kills))


def main(tegula):
    folder = tempfile.mkdtemp(prefix="tegula-peers-")
    files = by_tifffile = 0
    try:
        models = {"run2": identity(os.path.join(folder, "2d.onnx"), 4),
                  "run3": identity(os.path.join(folder, "3d.onnx"), 5)}
        for case in cases():
            case.make(folder)
            for codec in CODECS:
                out = os.path.join(folder, "%s-%s.tif" % (case.name, codec))
                label = "%s, %s" % (case.name, codec)
                command(tegula, case, codec, out, models)
                by_tifffile += in_tifffile(case, codec, out, label)
                in_vips(case, out, label)
                files += 1
        metadata(tegula, folder)
        pyramid(tegula, folder, models)
        big(tegula, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    expect(by_tifffile >= files // 2, "tifffile %s read only %d" % (tifffile.__version__, by_tifffile))
    print("%d files and a BigTIFF: pixels equal in libvips, in tifffile %s for %d of them, structure for all"
          % (files, tifffile.__version__, by_tifffile))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
