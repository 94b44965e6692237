"""Tables of what small made files show: codecs, depths, kinds of numbers, foreign formats, and which
metadata come through which way."""
import os
import re
import struct
import sys

from tool import table

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "fuzz"))
from seeds import PACK, Tiff, jpeg, jpeg_tables, model, node, old_jpeg, page, port, thunder, webp  # noqa: E402

SAFE = {"TEGULA_BLOCK_UNTRUSTED": "1"}


def source(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def one_page(w=16, h=16, order="<", **more):
    t = Tiff(order)
    page(t, w, h, **more)
    return bytes(t.out)


# ---- Codecs


def known_compressions():
    """(number, name) of all that have a name in the reader."""
    text = source("io", "tiff_ifd.c")
    names = dict(re.findall(r"(TGI_TIFF_[A-Z0-9_]+) = (\d+)", source("io", "tiff_ifd.h")))
    part = text[text.index("tgi_tiff_compression_name(uint32_t code)"):]
    part = part[:part.index("};")]
    return [(int(names.get(n, n)), name) for n, name in re.findall(r'\{(\w+), "([^"]+)"\}', part)]


FAX = {2: "10101000", 3: "000000000001101010", 4: "1", 32771: "1010100000000000"}  # a white row of 16 pixels


def fax(code):
    bits = FAX[code] * 16
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


# 16 x 16 pixels in rare codecs, all but one of which libtiff decodes: what the page says, the block.
LIBTIFF = {
    32766: (dict(bits=2), b"\0abcd" * 16),
    32809: (dict(bits=4), thunder(16, 16)),
    32909: (dict(), PACK[8](bytes(512))),
    34661: (dict(bits=1), bytes.fromhex(
        "000080000000000800000008000000401000c0383d5106ff4001ff40af6cff4003ff40ff40ff402bff40ff40")),
    34676: (dict(bits=16, fmt=2, t262=(3, 32844)), bytes([0x8e, 0x40, 0x8e, 0x11]) * 16),
    34677: (dict(bits=16, fmt=2, samples=3, t262=(3, 32845)), bytes(768)),
    34887: (dict(t50674=(4, [4, 0])), bytes.fromhex(
        "4c6572633220040000003471a79110000000100000000100000000010000080000008900000001000000000000000000e03f"
        "0000000000000000000000000080464000000000002d00010400000000010000000000000300000082032600000028ffbfff"
        "3fffefffdffffbfff7fffefffdbfff7fffefffdffffbfff7fffefffdff0000ffff00000000")),
}


def packed(code):
    """16 x 16 bytes, or RGB of them, in a codec; bytes that mean nothing where we have no packer."""
    if code in FAX:
        return one_page(bits=1, code=code, packer=lambda b: fax(code))
    if code == 7:
        return one_page(code=7, packer=lambda b: jpeg(16, 16))
    if code == 50001:
        return one_page(samples=3, code=50001, packer=lambda b: webp(16, 16))
    if code == 6:
        return bytes(old_jpeg(w=16, h=16).out)
    if code in LIBTIFF:
        more, block = LIBTIFF[code]
        return one_page(code=code, packer=lambda b: block, **more)
    return one_page(code=code, packer=PACK.get(code, bytes))


def written_as(t, name):
    """Compression of a copy made with --compress NAME; "" refused."""
    code, _, _ = t.run("copy", "plain.tif", "-o", "packed.tif", "-q", "-y", "--compress", name)
    info = t.info("packed.tif") if code == 0 else None
    t.drop("packed.tif")
    return info["compression"] if info else ""


def codecs(t):
    t.write("plain.tif", one_page())
    rows = []
    for number, name in known_compressions():
        t.write("codec.tif", packed(number))
        code, _, line = t.run("copy", "codec.tif", "-o", "codec.npy", "-q", "-y")
        t.expect(code == 0 or (code == 65 and name in line), "compression %d: exit %d: %s" % (number, code, line))
        read = "yes" if code == 0 else "no"
        fuzzed = "-"
        if code == 0:
            fuzzed = "read" if t.run("info", "codec.tif", env=SAFE)[0] == 0 else "refused"
        rows.append([name, number, read, "yes" if written_as(t, name.lower()) == name else "no", fuzzed])
        t.drop("codec.npy")
    rows.sort(key=lambda r: (r[2] != "yes", r[1]))
    return table(["compression", "in TIFF", "read", "written", "with `TEGULA_BLOCK_UNTRUSTED=1`"], rows)


# ---- Kinds of numbers


def ranges(found):
    """[(depth, answer)] -> rows of "from to" with the same answer."""
    rows = []
    for depth, answer in found:
        if rows and rows[-1][2] == answer and rows[-1][1] == depth - 1:
            rows[-1][1] = depth
        else:
            rows.append([depth, depth, answer])
    return [["%d" % a if a == b else "%d to %d" % (a, b), what] for a, b, what in rows]


def depths(t):
    rows = []
    for fmt, name in ((1, "unsigned"), (2, "signed"), (3, "floating point")):
        found = []
        for bits in range(1, 65):
            t.write("depth.tif", one_page(bits=bits, fmt=fmt))
            info = t.info("depth.tif")
            found.append((bits, info["dtype"] if info else "refused"))
        rows += [[name, *r] for r in ranges(found)]
    return table(["numbers", "bits", "delivered as"], rows)


def kinds(t):
    palette = {"t320": (3, list(range(0, 768 * 80, 80)))}
    tries = [("white is 0", dict(t262=(3, 0))), ("black is 0", {}), ("RGB", dict(samples=3)),
             ("palette", dict(t262=(3, 3), **palette)), ("transparency mask", dict(t262=(3, 4))),
             ("CMYK", dict(samples=4, t262=(3, 5))), ("YCbCr, not JPEG, to RGB", dict(samples=3, t262=(3, 6))),
             ("YCbCr in JPEG, to RGB", dict(samples=3, code=7, t262=(3, 6), t530=(3, [2, 1]),
                                    t347=(7, b"\xff\xd8" + jpeg_tables() + b"\xff\xd9"),
                                    packer=lambda b: jpeg(16, 16, (0x21, 0x11, 0x11), tables=False))),
             ("CIE Lab", dict(samples=3, t262=(3, 8))), ("ICC Lab", dict(samples=3, t262=(3, 9))),
             ("ITU Lab", dict(samples=3, t262=(3, 10))), ("Log L without SGILog", dict(t262=(3, 32844))),
             ("Log Luv without SGILog", dict(samples=3, t262=(3, 32845))), ("sensor mosaic", dict(t262=(3, 32803))),
             ("linear raw", dict(samples=3, t262=(3, 34892))),
             ("RGB and alpha", dict(samples=4, t262=(3, 2), t338=(3, [2]))),
             ("grey and alpha", dict(samples=2, t338=(3, [1]))),
             ("complex numbers", dict(bits=64, fmt=6)), ("samples in planes", dict(samples=3, planar=2)),
             ("a volume in one directory", dict(t32997=(4, 4)))]
    rows = []
    for name, more in tries:
        t.write("kind.tif", one_page(**more))
        i = t.info("kind.tif")
        said = "refused: " + t.reason("kind.tif") if not i else "%s of axes %s" % (i["dtype"], i["axes"])
        if i and "stored_as" in i:
            said += ", as stored (`%s`)" % i["stored_as"]
        if i and "alpha" in i:
            said += ", %s alpha" % i["alpha"]
        rows.append([name, said])
    return table(["photometric, samples", "delivered"], rows)


# ---- Other formats


def foreign(t):
    text = source("io", "io_table.c")
    part = text[text.index("} foreign[] = {"):]
    part = part[:part.index("};")]
    rows = []
    for raw, n, at, name in re.findall(r'\{"((?:[^"\\]|\\.)*)", (\d+), (\d+), "([^"]+)"\}', part):
        head = raw.encode().decode("unicode_escape").encode("latin-1")
        t.expect(len(head) == int(n), "%s: %d bytes, the table says %s" % (name, len(head), n))
        t.write("foreign", b"\1" * int(at) + head + bytes(200))
        code, _, line = t.run("info", "foreign")
        t.expect(code == 65 and name in line, "%s: exit %d: %s" % (name, code, line))
        rows.append(["`%s`" % raw + (" at %s" % at if at != "0" else ""), re.sub("^(a|an) ", "", name)])
    return table(["first bytes", "refused as"], rows)


# ---- Metadata

OME = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
       '<Instrument ID="Instrument:0"><Objective ID="Objective:0" LensNA="1.4"/></Instrument>'
       '<Image ID="Image:0" Name="Position 7"><AcquisitionDate>2024-05-06T07:08:09</AcquisitionDate>'
       '<Description>two words</Description><InstrumentRef ID="Instrument:0"/><Pixels ID="Pixels:0" DimensionOrder="XYCZT" '
       'Type="uint8" SignificantBits="7" SizeX="32" SizeY="32" SizeC="2" SizeZ="2" SizeT="2" PhysicalSizeX="0.25" PhysicalSizeY="0.5" '
       'PhysicalSizeZ="1.5" TimeIncrement="2.5"><Channel ID="Channel:0:0" Name="DAPI" Color="65535" '
       'SamplesPerPixel="1"/><Channel ID="Channel:0:1" Name="GFP" Color="16711935" SamplesPerPixel="1" '
       'EmissionWavelength="510"/><TiffData/><Plane TheZ="0" TheC="1" TheT="0" DeltaT="0.25" PositionX="5"><AnnotationRef ID="Annotation:5"/></Plane></Pixels>'
       '<ROIRef ID="ROI:0"/></Image><StructuredAnnotations><CommentAnnotation ID="Annotation:5"><Value>a note</Value>'
       '</CommentAnnotation></StructuredAnnotations><ROI ID="ROI:0"><Union><Point ID="Shape:0" X="3" Y="4"/></Union></ROI></OME>')


def imagej():
    """Two channels with tables, ranges, names of planes and an Info text, as ImageJ writes them."""
    t = Tiff(">")
    text = lambda s: s.encode("utf-16-be")
    info, labels = text("some info"), [text("first"), text("second")]
    ranges_ = struct.pack(">4d", 1, 100, 2, 200)
    luts = [bytes(k * i // 255 for k in (255, 0, 0) for i in range(256)), bytes(k * i // 255 for k in (0, 255, 0) for i in range(256))]
    head = b"IJIJ" + b"".join(k + struct.pack(">I", n) for k, n in ((b"info", 1), (b"labl", 2), (b"rang", 1), (b"luts", 2)))
    parts = [head, info, *labels, ranges_, *luts]
    said = "ImageJ=1.54f\nimages=2\nchannels=2\nmode=composite\nunit=micron\nfinterval=3\nloop=false\n\0"
    for seed in (1, 2):
        more = dict(t270=(2, said.encode()), t50838=(4, [len(p) for p in parts]), t50839=(1, list(b"".join(parts))),
                    t282=(5, (4, 1)), t283=(5, (2, 1)), t296=(3, 1)) if seed == 1 else {}
        page(t, 32, 32, seed=seed, **more)
    return bytes(t.out)


def ome(text):
    t = Tiff()
    for k in range(8):
        page(t, 32, 32, seed=k + 1, **({"t270": (2, text.encode() + b"\0")} if k == 0 else {}))
    return bytes(t.out)


def same(*keys):
    """Does `info` say the same of both files?"""
    def check(a, b, data):
        for k in keys:
            a, b = a.get(k) if a else None, b.get(k) if b else None
        return "yes" if a is not None and a == b else ""
    return check


def within(text):
    return lambda a, b, data: "yes" if text.encode() in data or text.encode("utf-16-le") in data or text.encode(
        "utf-16-be") in data else ""


def either(first, key, value, words):
    return lambda a, b, data: first(a, b, data) or (words if b.get(key) == value else "")


def per_metre(info, key):
    """Pixels a metre that the resolution of a file says; 0 unknown."""
    r = info.get("resolution") or {"unit": "none"}
    return {"inch": 1 / 0.0254, "centimetre": 100, "none": 0}[r["unit"]] * r.get(key, 0)


def resolution(a, b, data):
    return "yes" if all(abs(per_metre(a, k) - per_metre(b, k)) <= 0.003 * per_metre(a, k) for k in "xy") else ""


def size(a, b, data):
    """The size itself, or (in pictures) its inverse."""
    um = {k: a["physical_size"][k]["value"] for k in "xy"}
    if b.get("physical_size", {}).get("x"):
        return "yes" if all(b["physical_size"][k] == a["physical_size"][k] for k in "xy") else ""
    return "as resolution" if all(abs(per_metre(b, k) * um[k] * 1e-6 - 1) < 0.001 for k in "xy") else ""


# What, how it is named where an output does not carry it, of which file, and how it is found.
CARRIED = [
    ("size of a pixel, y and x", "sizes of pixels", "ome.tif", size),
    ("distance of slices", "the distance of slices", "ome.tif", same("physical_size", "z")),
    ("time between frames", "the time between frames", "ome.tif", same("time_increment_seconds")),
    ("names of channels", "names of channels", "ome.tif", either(same("channels"), "first_label", "DAPI", "as names of planes")),
    ("colours of channels", "colours of channels", "ome.tif", same("channel_colors")),
    ("name of the image", "the image's name", "ome.tif", within("Position 7")),
    ("date of acquisition", "the date of acquisition", "ome.tif", within("2024-05-06T07:08:09")),
    ("description", "the description", "ome.tif", within("two words")),
    ("instruments, objectives", "instrument", "ome.tif", within('LensNA="1.4"')),
    ("wavelengths, settings of channels", "wavelengths", "ome.tif", within('EmissionWavelength="510"')),
    ("times and positions of planes", "times and positions of planes", "ome.tif", within('DeltaT="0.25" PositionX="5"')),
    ("significant bits", "significant bits", "ome.tif", within('SignificantBits="7"')),
    ("annotations", "annotations", "ome.tif", within("a note")),
    ("annotations of single planes", "annotations", "ome.tif", within('PositionX="5"><AnnotationRef ID="Annotation:5"/></Plane>')),
    ("regions of interest", "regions of interest", "ome.tif", within('<Point ID="Shape:0" X="3" Y="4"/>')),
    ("lookup tables", "lookup tables", "ij.tif", same("lookup_tables")),
    ("display ranges", "display ranges", "ij.tif", same("display_ranges")),
    ("display mode", "the display mode", "ij.tif", same("display_mode")),
    ("names of planes", "names of planes", "ij.tif", same("first_label")),
    ("ImageJ's Info", "ImageJ's Info", "ij.tif", within("some info")),
    ("resolution in dpi", "the resolution", "rgb.tif", resolution),
    ("colour profile (ICC)", "colour profile", "rgb.tif", same("icc_profile_bytes")),
    ("orientation", "orientation", "rgb.tif", same("orientation")),
    ("alpha and its kind", "alpha", "rgba.tif", same("alpha")),
    ("palette", "palette", "palette.tif", either(same("stored_as"), "lookup_tables", 1, "as a table")),
    ("CMYK inks", "cmyk", "cmyk.tif", same("stored_as")),
    ("Lab", "cielab", "lab.tif", same("stored_as")),
    ("white is 0", "miniswhite", "miniswhite.tif", same("stored_as")),
]
OLDER = "copy, OME-XML before 2016"
SAMPLES = {"rgb.tif": 3, "rgba.tif": 4, "cmyk.tif": 4, "lab.tif": 3}  # a network for them all; the others' planes in turn
WAYS = [("copy to TIFF", ["copy"], "out.tif", []), (OLDER, ["copy"], "out.tif", []), ("run to TIFF", ["run", "-m", "same%d.onnx"], "out.tif", []),
        ("`--format imagej`", ["copy"], "out.tif", ["--format", "imagej"]), (".png", ["copy"], "out.png", []),
        (".jpg", ["copy"], "out.jpg", []), (".npy", ["copy"], "out.npy", [])]


# What goes without a word: a run gives other values, which the page says; an array has alpha among its numbers; one channel is shown in one way.
UNSAID = {(".png", "display mode"), (".jpg", "display mode"), ("run to TIFF", "significant bits"), ("run to TIFF", "display ranges"), (".npy", "alpha and its kind")}


def make_carriers(t):
    # What libpng looks at: size, class, spaces, mark, no tags.
    icc = struct.pack(">I", 512) + bytes(8) + b"mntrRGB XYZ " + bytes(12) + b"acsp" + bytes(92) + bytes(range(190)) * 2
    t.write("ome.tif", ome(OME))
    t.write("old.tif", ome(OME.replace("2016-06", "2010-06")))
    t.write("ij.tif", imagej())
    t.write("rgb.tif", one_page(samples=3, t34675=(7, icc), t274=(3, 6), t282=(5, (300, 1)), t283=(5, (150, 1)), t296=(3, 2)))
    t.write("rgba.tif", one_page(samples=4, t262=(3, 2), t338=(3, [2])))
    t.write("palette.tif", one_page(t262=(3, 3), t320=(3, list(range(0, 768 * 80, 80)))))
    t.write("cmyk.tif", one_page(samples=4, t262=(3, 5)))
    t.write("lab.tif", one_page(samples=3, t262=(3, 8)))
    t.write("miniswhite.tif", one_page(t262=(3, 0)))
    for n in (1, 3, 4):
        ports = [[port(p, [1, n, "H", "W"])] for p in "xy"]
        t.write("same%d.onnx" % n, model([node("Relu", ["x"], ["y"])], [], *ports))


def one_way(t, way, file):
    """(info of the file, info of the output, its bytes) or None where it is refused, and what was said."""
    name, verb, out, more = way
    words = [w % SAMPLES.get(file, 1) if "%" in w else w for w in verb]
    words += ["old.tif" if name == OLDER and file == "ome.tif" else file, "-o", out, "-q", "-y", *more]
    words += ["--normalize", "none", "--dtype", "same"] if "run" in verb else []
    words += ["--planes", "1"] if out[-3:] in ("png", "jpg") and file in ("ome.tif", "ij.tif") else []
    code, _, line = t.run(*words)
    t.expect(code in (0, 64), "%s to %s: exit %d: %s" % (file, out, code, line))
    said = t.errors
    seen = (t.info(file), t.info(out), t.read(out)) if code == 0 else None
    t.drop(out, out + ".tegula.json")
    return seen, said


def carried(t):
    make_carriers(t)
    meanings(t)
    rows = [[row[0]] for row in CARRIED]
    for way in WAYS:
        seen = {}
        for row, (name, words, file, find) in zip(rows, CARRIED):
            if file not in seen:
                seen[file] = one_way(t, way, file)
            found, said = seen[file]
            row.append("refused" if not found else find(*found) or "-")
            if row[-1] == "-" and (way[0], name) not in UNSAID:
                t.expect(words in said, "%s: %s is lost in silence: %s" % (way[0], name, said))
    return table(["", *[w[0] for w in WAYS]], rows)


def meanings(t):
    """In another type nothing says that numbers are indices or Lab: that is told, and means of them stay refused."""
    for file, what in (("palette.tif", "palette"), ("lab.tif", "cielab")):
        words = ["copy", file, "-o", "other.tif", "-y", "--dtype", "float32"]
        code, _, line = t.run(*words)
        t.expect(code == 0 and "stored as %s" % what in t.errors, "%s as float32: exit %d: %s" % (file, code, t.errors))
        code, _, line = t.run(*words, "--pyramid", "mean")
        t.expect(code == 64 and "other colours" in line, "means of %s as float32: exit %d: %s" % (file, code, line))
        t.drop("other.tif")


def tables(t):
    return [("codecs", codecs(t)), ("depths", depths(t)), ("kinds", kinds(t)), ("foreign", foreign(t)),
            ("carried", carried(t))]
