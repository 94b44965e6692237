"""What we write, read by Bio-Formats, and what Bio-Formats writes, read by us: sizes, types, pixels, and all that OME-XML says.

    bioformats_peers.py TEGULA

Bio-Formats is asked as bio_formats.py says; without it this is skipped. What tifffile can decode it reads, too."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiff_peers import drawn, expect, numpy, tifffile  # noqa: E402  (first: it looks for a Python that has these)
import bio_formats  # noqa: E402
import ome_peers  # noqa: E402
from meta_peers import network  # noqa: E402
from ome_peers import SPACE, ask, find, tree  # noqa: E402

BOX = {"T": 2, "C": 3, "Z": 4, "Y": 50, "X": 70, "S": 3}
SAID = {"uint8": "uint8", "int8": "int8", "uint16": "uint16", "int16": "int16", "uint32": "uint32", "int32": "int32", "float32": "float",
        "float64": "double"}


# ---- Comparing elements ------------------------------------------------------------------------

def value(text):
    """A number as a number, points as numbers; else the words."""
    try:
        return [float(v) for v in (text or "").replace(",", " ").split()]
    except ValueError:
        return text.split()


def key(element):
    """What an element is found by among those of its name; '' where its place says it."""
    return element.get("ID") or ",".join(element.get(k, "") for k in ("TheT", "TheC", "TheZ")).strip(",")


def contains(more, less, where):
    """Each attribute, text and element of `less` is in `more`, in which defaults may be written out."""
    for k, v in less.attrib.items():
        expect(value(more.get(k)) == value(v), "%s: %s is %r, not %r" % (where, k, more.get(k), v))
    expect(value(more.text) == value(less.text), "%s: %r, not %r" % (where, more.text, less.text))
    for name in {e.tag for e in less}:
        mine, theirs = ([e for e in x if e.tag == name] for x in (less, more))
        expect(len(mine) == len(theirs), "%s: %d of %s, not %d" % (where, len(theirs), name, len(mine)))
        by_key = {key(e): e for e in theirs if key(e)}
        for i, e in enumerate(mine):
            expect(not key(e) or key(e) in by_key, "%s: no %s %s" % (where, name, key(e)))
            contains(by_key[key(e)] if key(e) else theirs[i], e, "%s, %s %s" % (where, name.split("}")[-1], key(e)))


def without_layout(root):
    """The document without what is of the file and not of the image: where planes lie, in which order, who wrote it."""
    for k in ("Creator", "UUID", "{http://www.w3.org/2001/XMLSchema-instance}schemaLocation"):
        root.attrib.pop(k, None)
    pixels = find(root, "Image", "Pixels")
    for e in pixels.findall(SPACE + "TiffData"):
        pixels.remove(e)
    for k in ("DimensionOrder", "BigEndian", "Interleaved", "SignificantBits"):
        pixels.attrib.pop(k, None)
    for notes in root.findall(SPACE + "StructuredAnnotations"):
        for e in [e for e in notes if e.get("Namespace") == "openmicroscopy.org/PyramidResolution"]:
            notes.remove(e)
        if not len(notes):
            root.remove(notes)
    return root


def equal(a, b, label):
    """Two documents that Bio-Formats gave say the same."""
    contains(a, b, label)
    contains(b, a, label)


# ---- Files that we write -----------------------------------------------------------------------

class Asked:
    """The command, Bio-Formats and a folder."""

    def __init__(self, tegula, folder, program):
        self.tegula, self.folder, self.program, self.files = tegula, folder, program, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def array(self, a, axes, out, *words):
        """An array of these axes as the file `out`."""
        numpy.save(self.path("in.npy"), a)
        ask(self.tegula, ["copy", self.path("in.npy"), "-o", self.path(out), "--axes", axes, "-q", "-y", *words])
        return self.path(out)

    def look(self, path, want, label, kind="OME-TIFF", said=True):
        """Bio-Formats finds one image, its type, these pixels (axes TCZYX) and all that the file's OME-XML says; tifffile the pixels."""
        f = self.program.read(path)
        self.files += 1
        expect((f.format, len(f.images)) == (kind, 1), "%s: %s of %d images" % (label, f.format, len(f.images)))
        got = f.images[0].pixels()
        expect(f.images[0].said["type"] == SAID[want.dtype.name], "%s: type %s" % (label, f.images[0].said["type"]))
        expect(got.shape == want.shape, "%s: shape %s, not %s" % (label, got.shape, want.shape))
        expect(numpy.array_equal(got, want), label + ": other pixels")
        if kind == "OME-TIFF" and said:
            ours = tree(path)
            find(ours, "Image", "Pixels").attrib.pop("Interleaved", None)  # it says how it gives them out
            contains(f.tree, ours, label)
        if not path.endswith(".png"):
            in_tifffile(path, want, label)
        return f


def in_tifffile(path, want, label):
    with tifffile.TiffFile(path) as t:
        axes, shape = t.series[0].axes, t.series[0].shape
        try:
            a = t.series[0].asarray()
        except (ValueError, KeyError) as e:  # a codec that this one has not
            expect("imagecodecs" in str(e), "%s: tifffile: %s" % (label, e))
            return
    if "S" in axes:  # samples are channels
        a, axes = numpy.moveaxis(a, axes.index("S"), 0), "S" + axes.replace("S", "")
        if "C" in axes:
            a, axes = numpy.moveaxis(a, axes.index("C"), 0), "C" + axes.replace("C", "")
            a = a.reshape(-1, *a.shape[2:])
        axes = "C" + axes.replace("S", "").replace("C", "")
    for k in "TCZ":
        if k not in axes:
            a, axes = a[None], k + axes
    expect(len(axes) == 5, "%s: axes %s of shape %s in tifffile" % (label, axes, shape))
    a = a.transpose([axes.index(k) for k in "TCZYX"])
    expect(numpy.array_equal(a, want), label + ": other pixels in tifffile")


def kinds(at):
    """Types, codecs, orders of planes, samples of pixels, levels."""
    for dtype in SAID:
        for codec in ("none", "deflate", "zstd", "lzw"):
            a = drawn([BOX[k] for k in "TCZYX"], "uint8", 1).astype(dtype)
            a = a * 3 - 7 if dtype[0] != "u" else a
            a = a.astype(dtype)
            at.look(at.array(a, "TCZYX", "type.ome.tif", "--compress", codec), a, "%s, %s" % (dtype, codec))
    for axes in ("TZCYX", "CTZYX", "CZTYX", "ZCTYX", "ZTCYX"):
        a = drawn([BOX[k] for k in axes], "uint16", 1)
        at.look(at.array(a, axes, "order.ome.tif"), a.transpose([axes.index(k) for k in "TCZYX"]), axes)
    for axes, samples in (("YXS", 3), ("YXS", 4), ("YXS", 2), ("ZYXS", 3), ("CYXS", 3), ("ZCYXS", 3), ("SYX", 3)):
        a = drawn([samples if k == "S" else BOX[k] for k in axes], "uint8", 1)
        want = numpy.moveaxis(a, axes.index("S"), 0)
        want = want[:, None] if "Z" not in axes and "C" not in axes else want
        if "C" in axes:
            want = numpy.moveaxis(want, axes.index("C") + 1, 0).reshape(-1, *want.shape[1:axes.index("C") + 1], *want.shape[-2:])
            want = want[:, None] if "Z" not in axes else want
        at.look(at.array(a, axes, "samples.ome.tif"), want[None], "%d samples, %s" % (samples, axes))
    for how in ("mean", "nearest"):
        a = drawn((1, 2, 1, 700, 1100), "uint16", 1)
        f = at.look(at.array(a, "TCZYX", "pyramid.ome.tif", "--pyramid", how, "--compress", "deflate"), a, "pyramid, " + how)
        with tifffile.TiffFile(at.path("pyramid.ome.tif")) as t:
            levels = [k.asarray() for k in t.series[0].levels]
        expect([(k.shape[-1], k.shape[-2]) for k in levels] == f.images[0].levels and len(levels) > 2, "pyramid: levels %s" % f.images[0].levels)
        for i, k in enumerate(levels):
            expect(numpy.array_equal(f.images[0].pixels(i), k.reshape(1, 2, 1, *k.shape[-2:])), "pyramid: pixels of level %d" % i)


def elsewhere(at):
    """ImageJ's stacks, PNG and JPEG."""
    for dtype in ("uint8", "uint16", "int16", "float32"):
        a = drawn([BOX[k] for k in "TZCYX"], "uint8", 1).astype(dtype)
        at.look(at.array(a, "TZCYX", "ij.tif", "--format", "imagej"), a.transpose(0, 2, 1, 3, 4), "ImageJ, " + dtype, kind="Tagged Image File Format")
    path, out = at.path("sizes.ome.tif"), at.path("sizes-ij.tif")
    tifffile.imwrite(path, drawn((2, 4, 50, 70), "uint16", 1), ome=True, metadata={
        "axes": "TZYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 1.5, "TimeIncrement": 2.0})
    ask(at.tegula, ["copy", path, "-o", out, "-q", "--format", "imagej"])
    p = find(at.program.read(out).tree, "Image", "Pixels")
    got = [(float(p.get("PhysicalSize" + k)), p.get("PhysicalSize%sUnit" % k)) for k in "XYZ"]
    expect(got == [(0.25, "\u00b5m"), (0.5, "\u00b5m"), (1.5, "\u00b5m")] and float(p.get("TimeIncrement")) == 2, "ImageJ: sizes %s" % got)
    for axes, dtype in (("YX", "uint8"), ("YX", "uint16"), ("YXS", "uint8"), ("YXS", "uint16")):
        a = drawn([BOX[k] for k in axes], dtype, 1)
        want = a[None] if axes == "YX" else a.transpose(2, 0, 1)
        at.look(at.array(a, axes, "p.png"), want[None, :, None], "PNG, %s of %s" % (axes, dtype), kind="Animated PNG")
    f = at.program.read(at.array(drawn((50, 70), "uint8", 1), "YX", "p.jpg"))
    ask(at.tegula, ["copy", at.path("p.jpg"), "-o", at.path("p.npy"), "-q", "-y"])
    expect(f.format == "JPEG" and numpy.array_equal(f.images[0].pixels()[0, 0, 0], numpy.load(at.path("p.npy"))), "JPEG: pixels")


def big(at):
    """A BigTIFF of 17000 planes that are mostly zeros: first, middle and last plane."""
    shape, some = (17000, 256, 256), (0, 8499, 16999)
    with open(at.path("in.npy"), "wb") as f:
        numpy.lib.format.write_array_header_1_0(f, {"descr": "|u1", "fortran_order": False, "shape": shape})
        start = f.tell()
        for k in some:
            f.seek(start + k * 65536)
            f.write(drawn(shape[1:], "uint8", k).tobytes())
        f.truncate(start + shape[0] * 65536)
    out = at.path("big.ome.tif")
    ask(at.tegula, ["copy", at.path("in.npy"), "-o", out, "--axes", "TYX", "--dtype", "uint32", "--compress", "zstd:1", "-q"])
    with open(out, "rb") as f:
        expect(f.read(4) == b"II\x2b\0", "no BigTIFF")
    image = at.program.read(out, some).images[0]
    expect(image.said["t"] == shape[0] and image.said["type"] == "uint32", "BigTIFF: %s" % image.said)
    got = image.some()
    for i, k in enumerate(some):
        expect(numpy.array_equal(got[i], drawn(shape[1:], "uint8", k)), "BigTIFF: plane %d" % k)
    os.remove(out)


# ---- What OME-XML says -------------------------------------------------------------------------

def rich(at):
    """The file of ome_peers with its letters as they are: Bio-Formats takes no numbers of characters."""
    path = at.path("rich.ome.tif")
    ome_peers.made(path)
    with tifffile.TiffFile(path) as t:
        pages, text = numpy.stack([p.asarray() for p in t.pages]), t.pages[0].description
    tifffile.imwrite(path, pages, description=text.replace("&#233;", "\u00e9 \u00b5 \u4e2d").encode(), metadata=None)
    return path


def carried(at):
    """What Bio-Formats finds of the input it finds of the output, for each choice."""
    path, out = rich(at), at.path("out.ome.tif")
    was = at.program.read(path)
    a = was.images[0].pixels()
    every = [list(range(k)) for k in a.shape[:3]]
    for words, t, c, z in (([], *every), (["--channels", "GFP,DAPI"], every[0], [1, 0], every[2]),
                           (["--z", "3:6", "--t", "1"], [1], every[1], [3, 4, 5]), (["--z", "0,1,4"], every[0], every[1], [0, 1, 4]),
                           (["--planes", "6-11"], [0], [1], every[2]), (["--compress", "zstd"], *every)):
        label = "copy " + " ".join(words)
        ask(at.tegula, ["copy", path, "-o", out, "-y", "-q", *words])
        now = at.look(out, a[numpy.ix_(t, c, z)], label)
        ome_peers.same_elements(was.tree, now.tree, label)
        ome_peers.same_planes(was.tree, now.tree, t, c, z, label)
        ome_peers.same_channels(was.tree, now.tree, c, label)
        if words in ([], ["--compress", "zstd"]):
            equal(without_layout(at.program.read(path).tree), without_layout(now.tree), label)
    ask(at.tegula, ["copy", path, "-o", out, "-y", "-q", "--roi", "10:40,4:60"])
    at.look(out, a[..., 10:40, 4:60], "crop")
    model = network(at.path("twice.onnx"), "ConvTranspose", 2)
    ask(at.tegula, ["run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", "--dtype", "same"])
    f = at.look(out, a.repeat(2, 3).repeat(2, 4), "twice as large")
    expect(float(find(f.tree, "Image", "Pixels").get("PhysicalSizeX")) == 0.25, "twice as large: size")
    for words in ((), ("--compress", "zstd"), ("--compress", "lzw"), ("--compress", "deflate")):
        ask(at.tegula, ["run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", "--dtype", "float32", *words])
        at.look(out, a.repeat(2, 3).repeat(2, 4).astype("f4"), "float32 %s" % (words,))
    words_of_a_text(at)


def words_of_a_text(at):
    """Marks of XML, ends of lines and letters of others in a description; names of channels."""
    path, out = at.path("words.ome.tif"), at.path("words-out.ome.tif")
    said = "two\nlines & <more> \"quoted\" 'once' \u00b5\u4e2d"
    tifffile.imwrite(path, drawn((2, 40, 50), "uint8", 1), ome=True, metadata={
        "axes": "CYX", "Description": said, "Name": "Well <B7> & \u00b5", "Channel": {"Name": ["\u03b1-tubulin", "a & b"]}})
    ask(at.tegula, ["copy", path, "-o", out, "-q"])
    f = at.look(out, tifffile.imread(path)[None, :, None], "words")
    image = find(f.tree, "Image")
    expect(find(f.tree, "Image", "Description").text == said and image.get("Name") == "Well <B7> & \u00b5", "words: %r" % image.get("Name"))
    names = [k.get("Name") for k in find(f.tree, "Image", "Pixels").findall(SPACE + "Channel")]
    expect(names == ["\u03b1-tubulin", "a & b"], "words: channels %s" % names)


def results(at):
    """Numbers of objects as uint32; scores of classes, whose channels have names and no colour that nobody chose."""
    path, out = at.path("cells.ome.tif"), at.path("labels.ome.tif")
    a = numpy.zeros((2, 3, 60, 80), "uint8")
    a[:, :, 5:12, 6:20] = a[:, 1:, 30:50, 40:60] = a[1, 0, 55:, :9] = 9
    tifffile.imwrite(path, a, ome=True, metadata={"axes": "TZYX", "PhysicalSizeX": 0.1, "PhysicalSizeZ": 0.3})
    ask(at.tegula, ["copy", path, "-o", out, "-q", "--post", "threshold:4,label"])
    with tifffile.TiffFile(out) as t:
        labels = numpy.stack([p.asarray() for p in t.pages]).reshape(2, 1, 3, 60, 80)
    expect(labels.dtype == "uint32" and labels.max() > 1 and numpy.array_equal(labels[:, 0] > 0, a > 0), "labels: %s" % labels.max())
    at.look(out, labels, "labels")
    ome_peers.classes(at.tegula, at.folder, at.path("rich.ome.tif"))
    with tifffile.TiffFile(at.path("classes.ome.tif")) as t:
        axes, scores = t.series[0].axes, t.series[0].asarray()
    f = at.look(at.path("classes.ome.tif"), scores.transpose([axes.index(k) for k in "TCZYX"]), "scores")
    channels = find(f.tree, "Image", "Pixels").findall(SPACE + "Channel")
    expect([k.get("Name") for k in channels][:2] == ["GFP, scores 0", "GFP, scores 1"] and channels[0].get("Color") is None, "scores: channels")


# ---- Files that Bio-Formats writes -------------------------------------------------------------

MADE = {"sizeX": 90, "sizeY": 70, "sizeZ": 3, "sizeC": 2, "sizeT": 2, "pixelType": "uint16"}
SAYS = dict(MADE, physicalSizeX="0.25", physicalSizeY="500nm", physicalSizeZ="1.5", exposureTime=3, exposureTimeUnit="ms",
            acquisitionDate="2020-01-02_03-04-05", annLong=2, annMap=1, annDouble=1, annXml=1, annTag=1, annTerm=1, annTimestamp=1, annBool=1,
            annComment=1, rectangles=2, ellipses=1, points=1, polygons=1, lines=1, polylines=1, masks=1, labels=1, color_0=-16776961,
            color_1=16711935, PositionX_0=5, PositionX_1=6)


def convert(at, name, settings, out, *words):
    """A made image of these settings as `out`, a folder of its own; its first file."""
    folder = at.path(name)
    os.mkdir(folder)
    fake = os.path.join(folder, "made&%s.fake" % "&".join("%s=%s" % k for k in settings.items()))
    words = [w.replace("FOLDER", folder) for w in words]
    at.program.convert(*words, fake, os.path.join(folder, out))
    return sorted(os.path.join(folder, k) for k in os.listdir(folder))


def ours(at, path, series, level):
    """What we read, as TCZYX; samples of a pixel are channels."""
    out = at.path("ours.npy")
    ask(at.tegula, ["copy", path, "-o", out, "-q", "-y", "--series", str(series), "--level", str(level)])
    r = json.loads(told(at, path, series))
    a = numpy.load(out)
    axes = "".join(k for k, n in zip(r["axes"], r["shape"]) if n > 1 or len(r["axes"]) == a.ndim)
    if "S" in axes:
        a, axes = numpy.moveaxis(a, axes.index("S"), -1), axes.replace("S", "") + "S"
        if "C" in axes:
            a, axes = numpy.moveaxis(a, axes.index("C"), -2), axes.replace("C", "")[:-1] + "CS"
            a = a.reshape(*a.shape[:-2], -1)
        axes = axes.replace("CS", "C").replace("S", "C")
    for k in "TCZ":
        if k not in axes:
            a, axes = a[None], k + axes
    return a.transpose([axes.index(k) for k in "TCZYX"]), r


def told(at, path, series):
    r = subprocess.run([at.tegula, "info", path, "--json", "--series", str(series)], capture_output=True, text=True, check=False)
    expect(r.returncode == 0, "info: " + r.stderr)
    return r.stdout


def read_back(at, path, label, images=1, levels=1):
    """Each image and level has the pixels that Bio-Formats reads; sizes, names and colours are its own."""
    f = at.program.read(path)
    at.files += 1
    expect([len(i.levels) for i in f.images] == [levels] * images, "%s: %s" % (label, [i.levels for i in f.images]))
    for number, image in enumerate(f.images):
        for level in range(levels):
            want = image.pixels(level)
            got, r = ours(at, path, number, level)
            expect(got.dtype == want.dtype and got.shape == want.shape, "%s: %s %s, not %s %s" % (label, got.dtype, got.shape, want.dtype, want.shape))
            expect(numpy.array_equal(got, want), "%s: other pixels in image %d, level %d" % (label, number, level))
        same_info(r, f.tree.findall(SPACE + "Image")[number], label)
    return f


def same_info(r, image, label):
    pixels = image.find(SPACE + "Pixels")
    for k in "XYZ":
        size = pixels.get("PhysicalSize" + k)
        said = (r.get("physical_size") or {}).get(k.lower())
        expect((size is None) == (said is None), "%s: size along %s: %s" % (label, k, said))
        expect(size is None or (said["value"], said["unit"]) == (float(size), pixels.get("PhysicalSize%sUnit" % k)), "%s: size %s" % (label, said))
    channels = pixels.findall(SPACE + "Channel")
    expect(r.get("channels") is None or r["channels"] == [k.get("Name") for k in channels], "%s: channels %s" % (label, r.get("channels")))
    colours = ["#%08x" % (int(k.get("Color", -1)) & 0xffffffff) for k in channels]
    expect(r.get("channel_colors") is None or r["channel_colors"] == colours, "%s: colours %s" % (label, r.get("channel_colors")))
    expect(r["name"] == image.get("Name"), "%s: name %s" % (label, r["name"]))


def theirs(at):
    """OME-TIFFs of all forms that its converter writes."""
    large = dict(MADE, sizeX=700, sizeY=500)
    cases = [("plain", MADE, "a.ome.tif", (), 1, 1), ("bigtiff", MADE, "a.ome.tif", ("-bigtiff",), 1, 1), ("btf", MADE, "a.ome.btf", (), 1, 1),
             ("tf8", MADE, "a.ome.tf8", (), 1, 1), ("tiles", MADE, "a.ome.tif", ("-tilex", "32", "-tiley", "32"), 1, 1),
             ("LZW", MADE, "a.ome.tif", ("-compression", "LZW"), 1, 1), ("zlib", MADE, "a.ome.tif", ("-compression", "zlib"), 1, 1),
             ("JPEG", dict(MADE, pixelType="uint8"), "a.ome.tif", ("-compression", "JPEG"), 1, 1),
             ("pyramid", dict(large, resolutions=3, resolutionScale=2), "a.ome.tif", ("-noflat",), 1, 3),
             ("made_pyramid", large, "a.ome.tif", ("-noflat", "-pyramid-resolutions", "3", "-pyramid-scale", "2", "-tilex", "256", "-tiley", "256"), 1, 3),
             ("series", dict(MADE, series=3), "a.ome.tif", (), 3, 1),
             ("pyramids", dict(large, series=2, resolutions=3, resolutionScale=2), "a.ome.tif", ("-noflat",), 2, 3),
             ("planes", MADE, "a_z%z_c%c.ome.tif", (), 1, 1), ("times", MADE, "a_t%t.ome.tif", (), 1, 1),
             ("sets", dict(MADE, series=2), "a_s%s_t%t.ome.tif", (), 2, 1),
             ("companion", MADE, "b_t%t.ome.tif", ("-option", "ometiff.companion", "FOLDER/a.companion.ome"), 1, 1),
             ("rgb", dict(MADE, sizeC=3, rgb=3), "a.ome.tif", (), 1, 1),
             ("rgbs", dict(MADE, sizeC=6, rgb=3, interleaved="true", pixelType="uint8"), "a.ome.tif", (), 1, 1)]
    cases += [("big_endian_" + k, dict(MADE, little="false", pixelType=k), "a.ome.tif", (), 1, 1) for k in ("uint16", "float")]
    cases += [("order_" + k, dict(MADE, dimOrder=k), "a.ome.tif", (), 1, 1) for k in ("XYCZT", "XYTZC", "XYTCZ", "XYZTC", "XYCTZ")]
    cases += [("type_" + k, dict(MADE, pixelType=k), "a.ome.tif", (), 1, 1) for k in ("int8", "uint8", "int16", "int32", "uint32", "float", "double")]
    for name, settings, out, words, images, levels in cases:
        read_back(at, convert(at, name, settings, out, *words)[0], "Bio-Formats' " + name, images, levels)
        shutil.rmtree(at.path(name))


def theirs_carried(at):
    """All that its made images say goes through a copy; which levels there are is the output's own."""
    path = convert(at, "says", SAYS, "a.ome.tif")[0]
    out = at.path("says-out.ome.tif")
    was = read_back(at, path, "Bio-Formats' metadata")
    ask(at.tegula, ["copy", path, "-o", out, "-q"])
    now = at.look(out, was.images[0].pixels(), "metadata through a copy")
    expect(len(now.tree.findall(SPACE + "ROI")) == 9 and len(find(now.tree, "StructuredAnnotations")) == 9, "metadata: regions, annotations")
    equal(without_layout(was.tree), without_layout(now.tree), "metadata through a copy")
    path = convert(at, "levels", dict(MADE, sizeX=700, sizeY=500, resolutions=3, resolutionScale=2), "a.ome.tif", "-noflat")[0]
    ask(at.tegula, ["copy", path, "-o", out, "-q", "-y", "--level", "1"])
    now = at.look(out, at.program.read(path).images[0].pixels(1), "a level")
    expect(now.images[0].levels == [(350, 250)] and find(now.tree, "StructuredAnnotations") is None, "a level: notes of other levels")


def main():
    why = bio_formats.missing()
    if why:
        print("skipped: " + why)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, bio_formats.Program(folder) as program:
        at = Asked(sys.argv[1], folder, program)
        for part in (kinds, elsewhere, carried, results, theirs, theirs_carried, big):
            part(at)
    print("Bio-Formats and we agree on %d files" % at.files)


if __name__ == "__main__":
    main()
