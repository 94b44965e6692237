"""Metadata is never lost in silence: what an output does not carry is named on standard error, what is carried is true.

    lost_peers.py TEGULA

Each part makes a file with tifffile, converts it, and looks at both the output and what was said."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from meta_peers import fails  # noqa: E402
from tiff_peers import block, drawn, expect, identity, ints, number, numpy, tifffile  # noqa: E402
from ome_peers import SPACE, find, tree  # noqa: E402


def ask(tegula, words, code=0):
    r = subprocess.run([tegula, *words], capture_output=True, text=True, check=False)
    expect(r.returncode == code, "%s: exit %d: %s" % (words, r.returncode, r.stderr))
    return r.stderr


def ome(path, pixels, inside="", more="", behind="", shape=(1, 20, 30)):
    """A file with this OME-XML: attributes of Pixels, what stands in it, behind it, and behind the Image."""
    text = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="%s"><Image ID="Image:0" Name="day"><Pixels ID="Pixels:0" '
            'DimensionOrder="XYZCT" Type="uint8" SizeX="%d" SizeY="%d" %s>%s</Pixels>%s</Image>%s</OME>'
            % (SPACE[1:-1], shape[2], shape[1], pixels, inside, more, behind))
    tifffile.imwrite(path, drawn(shape, "uint8", 3), description=text, metadata=None, photometric="minisblack")
    return path


# ---- Numbers that are none

NUMBERS = [  # attributes of Pixels, what stands in it, what is told
    ('PhysicalSizeX="0.1x" PhysicalSizeY="0.25"', "", 'PhysicalSizeX="0.1x"'),
    ('PhysicalSizeX="0,1" PhysicalSizeY="0.25"', "", 'PhysicalSizeX="0,1"'),
    ('PhysicalSizeX="-1" PhysicalSizeY="0.25"', "", 'PhysicalSizeX="-1"'),
    ('TimeIncrement="2 s" PhysicalSizeY="0.25"', "", 'TimeIncrement="2 s"'),
    ('SignificantBits="7b" PhysicalSizeY="0.25"', "", 'SignificantBits="7b"'),
    ('PhysicalSizeY="0.25"', '<Channel ID="Channel:0:0" Color="12z"/>', 'Color="12z"'),
    ('PhysicalSizeY="0.25"', '<TiffData/><Plane TheZ="0" TheC="0" TheT="0" DeltaT="1.5s" ExposureTime="2"/>', 'DeltaT="1.5s"'),
    ('PhysicalSizeX="0.1" PhysicalSizeXUnit="furlong" PhysicalSizeY="0.25"', "", 'PhysicalSizeXUnit="furlong"'),
    ('TimeIncrement="2" TimeIncrementUnit="moon" PhysicalSizeY="0.25"', "", 'TimeIncrementUnit="moon"'),
    ('PhysicalSizeY="0.25"', '<Channel ID="Channel:0:0" EmissionWavelength="500nm" EmissionWavelengthUnit="nm"/>', 'EmissionWavelength="500nm"'),
    ('PhysicalSizeY="0.25"', '<Channel ID="Channel:0:0" PinholeSize="2" PinholeSizeUnit="yard"/>', 'PinholeSizeUnit="yard"'),
    ('PhysicalSizeY="0.25"', '<Channel ID="Channel:0:0"><DetectorSettings ID="Detector:0" Gain="x" Voltage="5"/></Channel>', 'Gain="x"'),
    ('PhysicalSizeY="0.25"', '<TiffData/><Plane TheZ="0" TheC="0" TheT="0" DeltaT="2" DeltaTUnit="moon"/>', 'DeltaTUnit="moon"'),
    ('PhysicalSizeY="0.25"', '<TiffData/><Plane TheZ="0q" TheC="0" TheT="0" DeltaT="1.5"/>', 'TheZ="0q"')]


def numbers(tegula, folder):
    """A number with something behind it is none: it is named and not written; where pixels depend on it, it is damage."""
    out = os.path.join(folder, "out.ome.tif")
    sizes = 'SizeC="1" SizeZ="1" SizeT="1" '
    for pixels, inside, told in NUMBERS:
        path = ome(os.path.join(folder, "n.ome.tif"), sizes + pixels, inside)
        said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"])
        expect("no number" in said and told in said, "numbers: %s: %s" % (told, said))
        got = find(tree(out), "Image", "Pixels")
        name = told.split("=")[0]
        expect(got.get("PhysicalSizeY") == "0.25", "numbers: %s: %s" % (told, got.attrib))
        for key in (name, name[:-4] if name.endswith("Unit") else name + "Unit"):
            expect(name.startswith("The") or all(e.get(key) is None for e in got.iter()), "numbers: %s: %s is written" % (told, key))
        expect("Gain" not in told or find(got, "Channel", "DetectorSettings").attrib == {"ID": "Detector:0", "Voltage": "5"}, "numbers: " + told)
    for index in ("1e300", "-1", "0.5"):
        roi = '<ROI ID="ROI:0"><Union><Point ID="Shape:0" X="3" Y="4" TheZ="%s"/></Union></ROI>' % index
        path = ome(os.path.join(folder, "n.ome.tif"), sizes, "", '<ROIRef ID="ROI:0"/>', roi)
        said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"])
        expect('TheZ="%s"' % index in said, "numbers: a shape on slice %s: %s" % (index, said))
    for good in ('PhysicalSizeX=" 1e-1 "', 'PhysicalSizeX="+0.1"', 'PhysicalSizeX="0.1"', 'PhysicalSizeX="0"'):
        path = ome(os.path.join(folder, "n.ome.tif"), sizes + good)
        expect("no number" not in ask(tegula, ["copy", path, "-o", out, "-q", "-y"]), "numbers: " + good)
        got = find(tree(out), "Image", "Pixels").get("PhysicalSizeX")
        expect(got is None if good.endswith('"0"') else abs(float(got) - 0.1) < 1e-12, "numbers: %s: %s" % (good, got))
    path = ome(os.path.join(folder, "n.ome.tif"), 'SizeC="1x" SizeZ="1" SizeT="1"')
    said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"], 65)
    expect('SizeC="1x"' in said, "numbers: " + said)
    points = '<ROI ID="ROI:0"><Union><Polygon ID="Shape:0" Points="1,2 30,x 5,6"/></Union></ROI>'
    path = ome(os.path.join(folder, "n.ome.tif"), sizes, more='<ROIRef ID="ROI:0"/>', behind=points)
    said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"])
    got = find(tree(out), "ROI", "Union", "Polygon")
    expect("Points" in said and got.get("Points") == "1,2 30,x 5,6", "numbers: points: %s, %s" % (said, got.attrib))


def instruments(tegula, folder):
    """The same in an instrument, of which the rest stays; units of the schema stay as they are."""
    path, out = os.path.join(folder, "i.ome.tif"), os.path.join(folder, "i-out.ome.tif")
    ome(path, 'SizeC="1" SizeZ="1" SizeT="1" PhysicalSizeX="2" PhysicalSizeXUnit="thou" TimeIncrement="2500" TimeIncrementUnit="&#181;s"')
    text = tifffile.TiffFile(path).pages[0].description.replace(
        "<Image ", '<Instrument ID="Instrument:0"><Objective ID="Objective:0" LensNA="1,4" WorkingDistance="0.2" WorkingDistanceUnit="mm"/>'
        '</Instrument><Image ')
    tifffile.imwrite(path, drawn((1, 20, 30), "uint8", 3), description=text.encode(), metadata=None, photometric="minisblack")
    said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"])
    got, pixels = find(tree(out), "Instrument", "Objective").attrib, find(tree(out), "Image", "Pixels")
    expect('LensNA="1,4"' in said and got == {"ID": "Objective:0", "WorkingDistance": "0.2", "WorkingDistanceUnit": "mm"}, "instruments: %s, %s" % (said, got))
    expect(pixels.get("PhysicalSizeXUnit") == "thou" and abs(float(pixels.get("TimeIncrement")) - 0.0025) < 1e-9, "instruments: %s" % pixels.attrib)


HALVES = [  # what is known of a pixel that ImageJ and pictures cannot say
    'PhysicalSizeX="0.25" PhysicalSizeZ="2"', 'PhysicalSizeX="q" PhysicalSizeY="0.25" PhysicalSizeZ="2"',
    'PhysicalSizeX="3" PhysicalSizeXUnit="pixel" PhysicalSizeY="0.25" PhysicalSizeZ="2"']


def half_sizes(tegula, folder):
    """Where one direction alone is known nothing says 1 of the other: no size is written, and that is told."""
    path, out = os.path.join(folder, "half.ome.tif"), os.path.join(folder, "half-out.")
    for pixels in HALVES:
        ome(path, 'SizeC="1" SizeZ="2" SizeT="1" ' + pixels, shape=(2, 20, 30))
        for end, extra, words in (("tif", ["--format", "imagej"], ["sizes of pixels", "the distance of slices"]),
                                  ("png", ["--z", "0"], ["sizes of pixels", "the distance of slices"]),
                                  ("jpg", ["--z", "0"], ["sizes of pixels", "the distance of slices"]), ("ome.tif", [], [])):
            said = ask(tegula, ["copy", path, "-o", out + end, "-q", "-y", *extra])
            expect(all(w in said for w in words) and ("sizes of pixels" in said) == bool(words), "half sizes: %s to %s: %s" % (pixels, end, said))
        with tifffile.TiffFile(out + "tif") as t:
            p = t.pages[0]
            said = [t.imagej_metadata.get("unit"), t.imagej_metadata.get("spacing"), p.tags.get(282), p.tags.get(283)]
            expect(said == [None] * 4, "half sizes: %s: %s" % (pixels, said))
        got = find(tree(out + "ome.tif"), "Image", "Pixels").attrib
        expect(got.get("PhysicalSizeZ") == "2" and ('X="q"' in pixels) == ("PhysicalSizeX" not in got), "half sizes: %s" % got)


def numbers_of_others(tegula, folder):
    """The same in ImageJ's lines and in the words of Aperio's slides."""
    path, out = os.path.join(folder, "ij.tif"), os.path.join(folder, "ij-out.ome.tif")
    for lines, told in (("slices=3\nunit=um\nspacing=0.5x", 'spacing="0.5x"'), ("slices=3z\nunit=um\nspacing=0.5", 'slices="3z"'),
                        ("slices=3\nunit=um\nfinterval=2s", 'finterval="2s"'), ("slices=3.0\nunit=um\nspacing=0.5", "")):
        tifffile.imwrite(path, drawn((3, 20, 30), "uint8", 2), metadata=None, photometric="minisblack",
                         description="ImageJ=1.53t\nimages=3\n%s\nloop=false\n" % lines)
        said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"])
        expect(told in said and ("no number" in said) == bool(told), "ImageJ: %s: %s" % (lines, said))
        if "slices" in told:
            continue  # an axis of anything, which OME has not
        got = find(tree(out), "Image", "Pixels")
        if not told:
            expect(got.get("SizeZ") == "3" and got.get("PhysicalSizeZ") == "0.5", "ImageJ: %s" % got.attrib)
        elif "spacing" in told:
            expect(got.get("PhysicalSizeZ") is None, "ImageJ: %s" % got.attrib)
    for mpp, told in (("0.5y", 'MPP="0.5y"'), ("0.5", "")):
        tifffile.imwrite(path, drawn((20, 30), "uint8", 2), metadata=None,
                         description="Aperio Image Library\r\n30x20|AppMag = 20|MPP = %s|Left = 1" % mpp)
        said = ask(tegula, ["copy", path, "-o", out, "-q", "-y"])
        got = find(tree(out), "Image", "Pixels").get("PhysicalSizeX")
        expect(("no number" in said) == bool(told) and got == (None if told else "0.5"), "Aperio: %s: %s, %s" % (mpp, said, got))


def names(tegula, folder):
    """A file that is named .ome.tif has OME-XML in it, or is not written."""
    path = ome(os.path.join(folder, "a.ome.tif"), 'SizeC="1" SizeZ="1" SizeT="1"')
    for end in ("ome.tif", "ome.tiff", "OME.TIF"):
        out = os.path.join(folder, "stack." + end)
        fails([tegula, "copy", path, "-o", out, "--format", "imagej"], "leave out --format imagej", "names")
        expect(not os.path.exists(out), "names: it was written")
        fails([tegula, "copy", path, "-o", out, "--dtype", "float16"], "no pixels of float16", "names")
        fails([tegula, "run", "-m", identity_of(folder), path, "-o", out, "--dtype", "float16", "--normalize", "none"], "no pixels of float16", "names")
    plain, out = os.path.join(folder, "plain.tif"), os.path.join(folder, "named.ome.tif")
    pixels = drawn((3, 20, 30), "uint8", 4)
    tifffile.imwrite(plain, pixels, metadata={"axes": "QYX"}, photometric="minisblack")
    stack = os.path.join(folder, "ij.tif")
    tifffile.imwrite(stack, drawn((2, 3, 2, 20, 30), "uint8", 1), imagej=True, resolution=(4, 2), metadata={"axes": "TZCYX", "unit": "um", "spacing": 1.5})
    model = ["-m", identity_of(folder), "--normalize", "none", "--dtype", "same"]
    for verb in (["copy"], ["run", *model]):
        ask(tegula, [*verb, plain, "-o", out, "-q", "-y"])
        got = find(tree(out), "Image", "Pixels")
        expect([got.get("Size" + k) for k in "TCZ"] == ["3", "1", "1"] and got.get("TimeIncrement") is None, "names: %s" % got.attrib)
        expect(numpy.array_equal(tifffile.imread(out), pixels), "names: pixels")
        ask(tegula, [*verb, stack, "-o", out, "-q", "-y", "--planes", "0,3,7"])
        got = find(tree(out), "Image", "Pixels")
        expect([got.get("Size" + k) for k in "TCZ"] == ["3", "1", "1"] and got.get("PhysicalSizeX") == "0.25" and
               got.get("PhysicalSizeZ") is None, "names: planes: %s" % got.attrib)


# ---- Choices and crops

T, C, Z, Y, X = 2, 3, 4, 40, 60
SHAPES = ('<ROI ID="ROI:0"><Union><Rectangle ID="Shape:0" X="40" Y="5" Width="10" Height="10" TheZ="2" TheC="1" TheT="0"/></Union></ROI>'
          '<ROI ID="ROI:1"><Union><Rectangle ID="Shape:1" X="2" Y="20" Width="10" Height="10"/><Point ID="Shape:2" X="50" Y="35"/></Union></ROI>'
          '<ROI ID="ROI:2"><Union><Polygon ID="Shape:3" Points="4,4 20,4 9,18" TheC="2"/></Union></ROI>'
          '<ROI ID="ROI:3"><Union><Ellipse ID="Shape:4" X="5" Y="5" RadiusX="4" RadiusY="4">'
          '<Transform A00="1" A10="0" A01="0" A11="1" A02="40" A12="20"/></Ellipse></Union></ROI>')


def rich(path):
    """t, c, z = 2, 3, 4: names, colours, dyes, times of planes, shapes on planes, on channels and everywhere."""
    said = "".join('<Channel ID="Channel:0:%d" Name="%s" Color="%d" Fluor="F%d"/>' % (c, name, color, c)
                   for c, (name, color) in enumerate((("DAPI", 65535), ("GFP", 16711935), ("405", -16776961))))
    planes = "".join('<Plane TheZ="%d" TheC="%d" TheT="%d" DeltaT="%g"/>' % (z, c, t, 100 * t + 10 * c + z)
                     for t in range(T) for c in range(C) for z in range(Z))
    return ome(path, 'SizeC="%d" SizeZ="%d" SizeT="%d" PhysicalSizeX="0.1" PhysicalSizeY="0.1" PhysicalSizeZ="0.5" TimeIncrement="60"' % (C, Z, T),
               said + "<TiffData/>" + planes, "".join('<ROIRef ID="ROI:%d"/>' % i for i in range(4)), SHAPES, (T * C * Z, Y, X))


def shapes_of(root):
    return {s.get("ID")[6:]: s for s in root.iter() if s.get("ID", "").startswith("Shape:")}


def in_turn(tegula, folder):
    """Planes that are no combinations: no distance, no time between them; what is said of a channel where all are of one; the
    time of each plane, and shapes that are on one of them or on all."""
    path, out = rich(os.path.join(folder, "rich.ome.tif")), os.path.join(folder, "turn.ome.tif")
    model = ["-m", identity_of(folder), "--normalize", "none", "--dtype", "same"]
    for planes, channel, kept in (([0, 6, 17], None, {"0": "1", "1": None, "2": None, "4": None}),
                                  ([4, 6, 17], 1, {"0": "1", "1": None, "2": None, "4": None}),
                                  ([8, 9, 20 + 3], 2, {"1": None, "2": None, "3": None, "4": None})):
        for verb in (["copy"], ["run", *model]):
            label = "%s %s" % (verb[0], planes)
            said = ask(tegula, [*verb, path, "-o", out, "-q", "-y", "--planes", ",".join(map(str, planes))])
            expect("not all combinations" in said and ("said of channels" in said) == (channel is None), "%s: %s" % (label, said))
            expect("%d shape" % (5 - len(kept)) in said, "%s: %s" % (label, said))
            root = tree(out)
            pixels = find(root, "Image", "Pixels")
            expect([pixels.get("Size" + k) for k in "TCZ"] == ["3", "1", "1"], "%s: %s" % (label, pixels.attrib))
            expect(pixels.get("PhysicalSizeZ") is None and pixels.get("TimeIncrement") is None, "%s: %s" % (label, pixels.attrib))
            said = pixels.findall(SPACE + "Channel")
            want = (None, None, None) if channel is None else (["DAPI", "GFP", "405"][channel], "F%d" % channel, [65535, 16711935, -16776961][channel])
            got = (said[0].get("Name"), said[0].get("Fluor"), said[0].get("Color"))
            expect(len(said) == 1 and got == (want[0], want[1], want[2] and str(want[2])), "%s: %s" % (label, got))
            times = {int(p.get("TheT")): float(p.get("DeltaT")) for p in pixels.findall(SPACE + "Plane")}
            want = {i: 100 * (p // 12) + 10 * (p // 4 % 3) + p % 4 for i, p in enumerate(planes)}
            expect(times == want, "%s: times %s" % (label, times))
            left = {k: s.get("TheT") for k, s in shapes_of(root).items()}
            expect(left == kept and all(s.get("TheZ") is None and s.get("TheC") is None for s in shapes_of(root).values()),
                   "%s: shapes %s" % (label, left))
    stack = os.path.join(folder, "turn.tif")
    for verb in (["copy"], ["run", *model]):
        ask(tegula, [*verb, path, "-o", stack, "-q", "-y", "--planes", "0,6,17", "--format", "imagej"])
        with tifffile.TiffFile(stack) as t:
            m = t.imagej_metadata
        expect((m["images"], m.get("slices"), m.get("frames"), m.get("spacing")) == (3, 3, None, None), "%s: %s" % (verb, m))


def identity_of(folder):
    path = os.path.join(folder, "same.onnx")
    identity(path, 4)
    return path


def shapes(tegula, folder):
    """Shapes follow a choice or are left out with a word; those outside of a crop are, too, whatever their transform."""
    path, out = rich(os.path.join(folder, "rich.ome.tif")), os.path.join(folder, "shapes.ome.tif")
    model = ["-m", identity_of(folder), "--normalize", "none", "--dtype", "same"]
    for words, left, lost in (([], "01234", 0), (["--channels", "GFP"], "0124", 1), (["--channels", "405,GFP", "--z", "2"], "01234", 0),
                              (["--t", "1"], "1234", 1), (["--z", "0:2"], "1234", 1), (["--roi", "0:16,30:60"], "0", 4),
                              (["--roi", "20:40,0:60"], "124", 2), (["--roi", "0:5,:"], "3", 4), (["--roi", "0:4,5:20"], "", 5)):
        for verb in (["copy"], ["run", *model]):
            label = "%s %s" % (verb[0], " ".join(words))
            said = ask(tegula, [*verb, path, "-o", out, "-q", "-y", *words])
            told = [x for x in said.splitlines() if "shape" in x]
            expect(len(told) == (lost > 0) and all(": %d shape" % lost in x for x in told), "%s: %s" % (label, said))
            root = tree(out)
            expect("".join(sorted(shapes_of(root))) == left, "%s: %s" % (label, sorted(shapes_of(root))))
            refs = [e.get("ID") for e in find(root, "Image").findall(SPACE + "ROIRef")]
            expect(refs == [e.get("ID") for e in root.findall(SPACE + "ROI")], "%s: references %s" % (label, refs))
            if "405,GFP" in words:
                expect([shapes_of(root)["0"].get(k) for k in ("TheZ", "TheC", "TheT")] == ["0", "1", "0"] and
                       shapes_of(root)["3"].get("TheC") == "0", label + ": numbers")


# ---- What is named

OF_OME = ["sizes of pixels", "the distance of slices", "the time between frames", "names of channels", "colours of channels", "the image's name",
          "wavelengths and settings of channels", "times and positions of planes", "regions of interest"]
OF_IMAGEJ = ["sizes of pixels", "the distance of slices", "the time between frames", "colours of channels", "lookup tables", "display ranges",
             "names of planes", "ImageJ's Info"]


def named(said, words, label):
    """Exactly these, in one warning."""
    lines = [x for x in said.splitlines() if "the input also has " in x]
    got = lines[0].split("also has ")[1].split(": ")[0].split(", ") if lines else []
    expect(len(lines) == (len(words) > 0) and got == words, "%s: %s" % (label, said))


def warnings(tegula, folder):
    """Each output names all kinds that it has no place for, in copy, run and plan; none names what it carries."""
    path = rich(os.path.join(folder, "rich.ome.tif"))
    model = ["-m", identity_of(folder), "--normalize", "none", "--dtype", "same"]
    for end, less, extra in (("npy", 0, []), ("png", 1, ["--planes", "0"]), ("jpg", 0, ["--planes", "0"]), ("tif", 5, ["--format", "imagej"]),
                             ("ome.tif", 9, []), ("tif", 9, [])):
        out = os.path.join(folder, "named." + end)
        words = ["the image's name"] + OF_OME[6:] if less == 5 else OF_OME[less:]
        for verb in (["copy"], ["run", *model], ["plan", *model]):
            verb = verb[:-2] if end == "npy" and len(verb) > 1 else verb
            said = ask(tegula, [*verb, path, "-o", out, *([] if verb[0] == "plan" else ["-y"]), "-q", *extra])
            named(said, words, "%s to %s" % (verb[0], end))
    said = ask(tegula, ["copy", path, "-o", os.path.join(folder, "half.tif"), "-q", "-y", "--dtype", "float16"])
    named(said, OF_OME[1:], "half floats")
    expect("no such pixels" in said, "half floats: " + said)


def warnings_of_imagej(tegula, folder):
    """An ImageJ stack has no OME-XML, and is named in the same words."""
    path = os.path.join(folder, "stack.tif")
    lut = numpy.zeros((2, 3, 256), "uint8")
    lut[0, 1] = lut[1, 0] = numpy.arange(256)
    tifffile.imwrite(path, drawn((2, 3, 2, 20, 30), "uint16", 1), imagej=True, resolution=(4, 2), metadata={
        "axes": "TZCYX", "unit": "um", "spacing": 1.5, "finterval": 0.5, "LUTs": list(lut), "Labels": ["p%d" % i for i in range(12)],
        "Ranges": (1.0, 20.0, 5.0, 100.5), "Info": "words"})
    model = ["-m", identity_of(folder), "--normalize", "none", "--dtype", "same"]
    for verb in (["copy"], ["run", *model]):
        for end, less in (("npy", 0), ("png", 1), ("tif", 8)):
            verb = verb[:5] if end == "npy" else [*verb[:5], "--dtype", "same"][:7 if len(verb) > 1 else 1]
            words = [w for w in OF_IMAGEJ[less:] if verb == ["copy"] or w != "display ranges"]
            said = ask(tegula, [*verb, path, "-o", os.path.join(folder, "named." + end), "-q", "-y", *(["--planes", "0"] if end == "png" else [])])
            named(said, words, "%s of ImageJ to %s" % (verb[0], end))
    plain = os.path.join(folder, "plain.tif")
    tifffile.imwrite(plain, drawn((20, 30), "uint8", 1), metadata=None)
    named(ask(tegula, ["copy", plain, "-o", os.path.join(folder, "named.npy"), "-q", "-y"]), [], "a plain TIFF")


def false_warnings(tegula, folder):
    """What an output carries, or a run never does, is not named."""
    path, out = os.path.join(folder, "false.tif"), os.path.join(folder, "false-out.tif")
    labels = ["a", "b"] * 3
    lut = numpy.zeros((2, 3, 256), "uint8")
    lut[0, 1] = lut[1, 0] = numpy.arange(256)
    tifffile.imwrite(path, drawn((3, 2, 20, 30), "uint8", 1), imagej=True, metadata={"axes": "ZCYX", "Labels": labels, "LUTs": list(lut)})
    for words in (["--channels", "b"], ["--channels", "1,0"], []):
        named(ask(tegula, ["copy", path, "-o", out, "-q", "-y", "--format", "imagej", *words]), [], "names in labels: %s" % words)
    mapped = os.path.join(folder, "mapped.tif")
    with tifffile.TiffWriter(mapped, imagej=True) as t:
        t.write(drawn((2, 20, 30), "uint8", 1), metadata={"axes": "CYX", "LUTs": list(lut)}, colormap=numpy.repeat(lut[:1].astype("uint16") * 257, 1, 0)[0])
    for words in (["--channels", "1,0"], []):
        named(ask(tegula, ["copy", mapped, "-o", out, "-q", "-y", "--format", "imagej", *words]), [], "palette as tables: %s" % words)
    bits = ome(os.path.join(folder, "bits.ome.tif"), 'SizeC="1" SizeZ="1" SizeT="1" SignificantBits="7"')
    named(ask(tegula, ["run", "-m", identity_of(folder), "--normalize", "none", bits, "-o", os.path.join(folder, "bits.npy"), "-q", "-y"]), ["the image's name"], "bits of a run")


def names_of_planes(tegula, folder):
    """A network with other channels, or over volumes, has other planes: that ImageJ's names of planes are gone is told, and
    colours of channels that it makes are in no other output either."""
    path, out = os.path.join(folder, "planes.tif"), os.path.join(folder, "planes-out.tif")
    lut = numpy.zeros((2, 3, 256), "uint8")
    lut[0, 1] = lut[1, 0] = numpy.arange(256)
    scores, volumes = net(os.path.join(folder, "scores.onnx"), 1, 3), os.path.join(folder, "volumes.onnx")
    identity(volumes, 5)
    told = "whose names it does not say"
    for labels, lost in ((list("abcdef"), True), (list("ababab"), False), (None, False)):  # the second are channels' names
        more = {"Labels": labels} if labels else {}
        tifffile.imwrite(path, drawn((3, 2, 20, 30), "uint8", 1), imagej=True, metadata={"axes": "ZCYX", "LUTs": list(lut), **more})
        for model in (scores, volumes, identity_of(folder)):
            for extra in ([], ["--format", "imagej", "--channels", "1"]):
                said = ask(tegula, ["run", "-m", model, "--normalize", "none", path, "-o", out, "-q", "-y", *extra])
                label = "names of planes: %s, %s" % (labels, os.path.basename(model))
                expect((told in said) == (lost and model != identity_of(folder)), "%s: %s" % (label, said))
                expect("also has colours" not in said, "%s: %s" % (label, said))
    fails([tegula, "run", "-m", scores, "--normalize", "none", several_channels(folder), "-o", out, "-y", "--format", "imagej"], "choose --dtype, --channels",
          "no room in a stack")
    ask(tegula, ["run", "-m", scores, "--normalize", "none", several_channels(folder), "-o", out, "-y", "-q", "--format", "imagej", "--channels", "1"])


def several_channels(folder):
    path = os.path.join(folder, "several.tif")
    tifffile.imwrite(path, drawn((2, 3, 2, 20, 30), "uint8", 1), imagej=True, metadata={"axes": "TZCYX"})
    return path


def more_images(tegula, folder):
    """A file of several images gives the first; unless --series says which, that is told. Of files that are one image, each
    that --each takes says so."""
    path, out, same = os.path.join(folder, "places.ome.tif"), os.path.join(folder, "places-out.ome.tif"), identity_of(folder)
    with tifffile.TiffWriter(path) as t:
        for name in ("here", "there"):
            t.write(drawn((2, 20, 30), "uint8", 1), photometric="minisblack", metadata={"axes": "ZYX", "Name": name})
    for verb in (["copy"], ["run", "-m", same, "--normalize", "none"], ["plan", "-m", same, "--normalize", "none"]):
        for words, told in (([], True), (["--series", "0"], False), (["--series", "1"], False)):
            said = ask(tegula, [*verb, path, "-o", out, "-q", *([] if verb[0] == "plan" else ["-y"]), *words])
            expect(('holds 2 images, of which this is the first, "here"' in said) == told, "more images: %s %s: %s" % (verb[0], words, said))
    files = os.path.join(folder, "files")
    os.mkdir(files)
    for i in range(2):
        ome(os.path.join(files, "z%d.ome.tif" % i), 'SizeC="1" SizeZ="2" SizeT="1"', "".join(
            '<TiffData FirstZ="%d" IFD="0" PlaneCount="1"><UUID FileName="z%d.ome.tif">urn:uuid:%d</UUID></TiffData>' % (z, z, z) for z in range(2)))
    model = ["-m", same, "--normalize", "none", "-q"]
    said = ask(tegula, ["run", *model, files, "--each", "-o", os.path.join(folder, "each")])
    expect(said.count("one of 2 files of an image") == 2, "files of an image: " + said)
    said = ask(tegula, ["run", *model, os.path.join(files, "z0.ome.tif"), "-o", os.path.join(folder, "one.ome.tif")])
    expect("files of an image" not in said, "files of an image: " + said)


def modes(tegula, folder):
    """How ImageJ shows channels stays while they do, also by way of an OME-TIFF, and is named where it does not."""
    path, out, back = (os.path.join(folder, n) for n in ("mode.tif", "mode.ome.tif", "mode-back.tif"))
    model = ["-m", identity_of(folder), "--normalize", "none", "--dtype", "same"]
    for mode in ("composite", "color", "grayscale"):
        tifffile.imwrite(path, drawn((3, 2, 20, 30), "uint8", 1), imagej=True, metadata={"axes": "ZCYX", "mode": mode})
        for verb in (["copy"], ["run", *model]):
            for way in ([path], [out]):
                ask(tegula, [*verb, path, "-o", out, "-q", "-y"])
                said = ask(tegula, [*verb, *way, "-o", back, "-q", "-y", "--format", "imagej"])
                with tifffile.TiffFile(back) as t:
                    expect(t.imagej_metadata["mode"] == mode and "display mode" not in said, "modes: %s: %s" % (mode, t.imagej_metadata))
        said = ask(tegula, ["copy", path, "-o", os.path.join(folder, "mode.npy"), "-q", "-y"])
        expect(("display mode" in said) == (mode != "grayscale"), "modes: %s: %s" % (mode, said))


def channels_of(path):
    return [c.attrib for c in find(tree(path), "Image", "Pixels").findall(SPACE + "Channel")]


def names_through_imagej(tegula, folder):
    """Channels of an OME-TIFF are names of planes in ImageJ's stack, and channels of an OME-TIFF that is made of it."""
    path, stack, back = rich(os.path.join(folder, "rich.ome.tif")), os.path.join(folder, "by.tif"), os.path.join(folder, "back.ome.tif")
    for words, want in (([], ["DAPI", "GFP", "405"]), (["--channels", "405,GFP", "--t", "0"], ["405", "GFP"])):
        ask(tegula, ["copy", path, "-o", stack, "-q", "-y", "--format", "imagej", *words])
        ask(tegula, ["copy", stack, "-o", back, "-q", "-y"])
        expect([c.get("Name") for c in channels_of(back)] == want, "ImageJ and back: %s" % channels_of(back))
    tifffile.imwrite(stack, drawn((2, 3, 20, 30), "uint8", 1), imagej=True, metadata={"axes": "ZCYX", "Labels": ["p%d" % i for i in range(6)]})
    ask(tegula, ["copy", stack, "-o", back, "-q", "-y"])
    expect([c.get("Name") for c in channels_of(back)] == [None] * 3, "labels of planes are no channels: %s" % channels_of(back))


def net(path, takes, gives):
    """y: sums of channels, 1x1."""
    weight = b"".join(number(1, n) for n in (gives, takes, 1, 1)) + number(2, 1) + block(8, "w") + block(
        9, numpy.ones((gives, takes), "<f4").tobytes())
    node = block(1, "x") + block(1, "w") + block(2, "y") + block(3, "c") + block(4, "Conv") + block(5, ints("kernel_shape", [1, 1]))

    def port(name, n):
        return block(1, name) + block(2, block(1, number(1, 1) + block(2, block(1, number(1, 1)) + block(1, number(1, n)) + b"".join(
            block(1, block(2, name + d)) for d in "hw"))))
    with open(path, "wb") as f:
        f.write(number(1, 8) + block(7, block(1, node) + block(2, "g") + block(5, weight) + block(11, port("x", takes)) + block(12, port("y", gives)))
                + block(8, block(1, "") + number(2, 13)))
    return path


def networks(tegula, folder):
    """A network that makes other channels says which kinds of the image's are gone; what it makes is called as the network calls it."""
    path, out = rich(os.path.join(folder, "rich.ome.tif")), os.path.join(folder, "net.ome.tif")
    for takes, gives, names, lost in (
            (1, 1, ["DAPI", "GFP", "405"], None), (3, 1, ["y"], "names, colours, wavelengths and settings"),
            (3, 3, ["y 0", "y 1", "y 2"], "names, colours, wavelengths and settings"),
            (1, 2, ["DAPI, y 0", "DAPI, y 1", "GFP, y 0", "GFP, y 1", "405, y 0", "405, y 1"], "colours, wavelengths and settings")):
        model = net(os.path.join(folder, "n.onnx"), takes, gives)
        said = ask(tegula, ["run", "-m", model, path, "-o", out, "-q", "-y", "--normalize", "none"])
        told = [x for x in said.splitlines() if "its channels are others" in x]
        expect(len(told) == (lost is not None) and all("whose %s it does not say" % lost in x for x in told), "%d to %d: %s" % (takes, gives, said))
        got = channels_of(out)
        expect([c.get("Name") for c in got] == names, "%d to %d: %s" % (takes, gives, got))
        expect(all((c.get("Color") is None and c.get("Fluor") is None) == (lost is not None) for c in got), "%d to %d: %s" % (takes, gives, got))


def behind_post(tegula, folder):
    """What --post makes of a run is the output that is named, once."""
    path, out = rich(os.path.join(folder, "rich.ome.tif")), os.path.join(folder, "post.ome.tif")
    model = ["-m", net(os.path.join(folder, "n.onnx"), 3, 1), "--normalize", "none"]
    said = ask(tegula, ["run", *model, path, "-o", out, "-q", "-y", "--t", "1", "--post", "threshold:9,label"])
    lines = [x for x in said.splitlines() if "warning" in x]
    expect(len(lines) == 2 and all(out + ": " in x for x in lines) and "channels are others" in said and ": 1 shape " in said, "post: " + said)


def main():
    tegula = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for part in (numbers, instruments, half_sizes, numbers_of_others, names, in_turn, shapes, warnings,
                     warnings_of_imagej, false_warnings, modes, names_through_imagej, networks, behind_post, names_of_planes, more_images):
            part(tegula, folder)
    print("nothing is lost in silence")


if __name__ == "__main__":
    main()
