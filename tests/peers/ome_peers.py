"""What OME-XML says beside sizes and channels goes through copy and run, field by field: instruments, settings, times and
positions of planes, annotations, regions of interest; through choices of planes, crops and another scale.

    ome_peers.py TEGULA

Where ome-types and xmlschema can be imported, what is written is also valid by OME's own schema."""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from meta_peers import network  # noqa: E402
from tiff_peers import drawn, expect, numpy, tifffile  # noqa: E402

SPACE = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"
T, C, Z, Y, X = 2, 3, 6, 40, 60
INSTRUMENT = ('<Instrument ID="Instrument:0"><Microscope Manufacturer="Z" Model="880"/><Laser ID="LightSource:0" Wavelength="488"/>'
              '<Detector ID="Detector:0" Gain="2.5"/><Objective ID="Objective:0" NominalMagnification="63" LensNA="1.4"/>'
              '<FilterSet ID="FilterSet:0"/></Instrument>')
ROIS = ('<ROI ID="ROI:0" Name="n"><Union><Rectangle ID="Shape:0" X="20" Y="30" Width="10" Height="12.5" TheZ="4" TheC="1" TheT="1"/>'
        '<Polygon ID="Shape:1" Points="1,2 30.5,40 50,60"/></Union></ROI>'
        '<ROI ID="ROI:1"><Union><Ellipse ID="Shape:2" X="16" Y="24" RadiusX="5" RadiusY="6" TheZ="5">'
        '<Transform A00="2" A10="0" A01="0" A11="1" A02="7" A12="3"/></Ellipse></Union></ROI>'
        '<ROI ID="ROI:2"><Union><Mask ID="Shape:3" X="1" Y="12" Width="8" Height="1"><BinData Length="4" BigEndian="false">/w==</BinData>'
        '</Mask></Union></ROI>')


def marks(t, c, z):
    """Annotations of a plane: none of most."""
    return ["Annotation:1", "Annotation:2"] if (t, c, z) == (0, 1, 3) else ["Annotation:1"] if z == 4 else []


def planes():
    return "".join('<Plane TheZ="%d" TheC="%d" TheT="%d" DeltaT="%s" ExposureTime="%s" ExposureTimeUnit="ms" PositionX="%d" PositionY="-3.5" '
                   'PositionZ="%s" PositionZUnit="nm">%s</Plane>'
                   % (z, c, t, 2.5 * t + 0.125 * z + 0.5 * c, 0.5 * (c + 1), 10 + z, 0.25 * z,
                      "".join('<AnnotationRef ID="%s"/>' % m for m in marks(t, c, z)))
                   for t in range(T) for c in range(C) for z in range(Z))


def made(path):
    text = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="%s"><Experimenter ID="Experimenter:0" LastName="L&#233;&amp;o"/>%s'
            '<Image ID="Image:0" Name="day"><ExperimenterRef ID="Experimenter:0"/><Description>a &lt; b</Description>'
            '<InstrumentRef ID="Instrument:0"/><ObjectiveSettings ID="Objective:0" RefractiveIndex="1.518"/><ImagingEnvironment Temperature="37"/>'
            '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="%d" SizeY="%d" SizeC="%d" SizeZ="%d" SizeT="%d" '
             'SignificantBits="12" PhysicalSizeX="0.5"><Channel ID="Channel:0:0" Name="DAPI" SamplesPerPixel="1" EmissionWavelength="460" Fluor="D"/>'
             '<Channel ID="Channel:0:1" Name="GFP" SamplesPerPixel="1" Color="-1" EmissionWavelength="510" AcquisitionMode="Other">'
            '<LightSourceSettings ID="LightSource:0" Attenuation="0.5"/><DetectorSettings ID="Detector:0" Gain="3"/><FilterSetRef ID="FilterSet:0"/>'
            '</Channel><Channel ID="Channel:0:2" SamplesPerPixel="1"/><TiffData IFD="0" PlaneCount="%d"/>%s</Pixels><ROIRef ID="ROI:0"/>'
            '<ROIRef ID="ROI:1"/><ROIRef ID="ROI:2"/><AnnotationRef ID="Annotation:0"/></Image><StructuredAnnotations>'
            '<XMLAnnotation ID="Annotation:0" Namespace="lab"><Value><my:a xmlns:my="urn:lab" y="2">text<my:b/></my:a></Value></XMLAnnotation>'
            '<CommentAnnotation ID="Annotation:1"><Value>of a plane</Value></CommentAnnotation><LongAnnotation ID="Annotation:2"><Value>7</Value>'
            '</LongAnnotation></StructuredAnnotations>%s</OME>' % (SPACE[1:-1], INSTRUMENT, X, Y, C, Z, T, T * C * Z, planes(), ROIS))
    tifffile.imwrite(path, drawn((T * C * Z, Y, X), "uint16", 3), description=text, metadata=None)


def text_of(path):
    with tifffile.TiffFile(path) as t:
        return t.pages[0].description


def tree(path):
    return xml.fromstring(text_of(path).encode())


def find(root, *names):
    return root.find("/".join(SPACE + n for n in names))


def flat(element):
    """An element with all in it, as something that can be compared."""
    return (element.tag, sorted(element.attrib.items()), (element.text or "").strip(), [flat(e) for e in element])


def valid(path, label):
    try:
        import ome_types
        import xmlschema  # noqa: F401
    except ImportError:
        return 0
    ome_types.from_xml(text_of(path), validate=True)
    return 1


def ask(tegula, words):
    r = subprocess.run([tegula, *words], capture_output=True, text=True, check=False)
    expect(r.returncode == 0, "%s: %s" % (words, r.stderr))
    return r.stderr


def same_elements(a, b, label):
    for names in (("Experimenter",), ("Instrument",), ("Image", "ExperimenterRef"), ("Image", "InstrumentRef"),
                  ("Image", "ObjectiveSettings"), ("Image", "ImagingEnvironment"), ("Image", "AnnotationRef"),
                  ("StructuredAnnotations", "XMLAnnotation")):
        x, y = find(a, *names), find(b, *names)
        expect(y is not None and flat(x) == flat(y), "%s: %s" % (label, names))
    order = [e.tag[len(SPACE):] for e in find(b, "Image")]
    want = ["ExperimenterRef", "Description", "InstrumentRef", "ObjectiveSettings", "ImagingEnvironment", "Pixels"]
    expect(order[:6] == want, "%s: order %s" % (label, order))


def plane_values(root):
    return {tuple(int(p.get(k)) for k in ("TheT", "TheC", "TheZ")): {
        "marks": [e.get("ID") for e in p.findall(SPACE + "AnnotationRef")],
        **{k: (v if k.endswith("Unit") else float(v)) for k, v in p.attrib.items() if not k.startswith("The")}}
            for p in find(root, "Image", "Pixels").findall(SPACE + "Plane")}


def same_planes(a, b, t, c, z, label):
    was, now = plane_values(a), plane_values(b)
    want = {(i, j, k): was[(t[i], c[j], z[k])] for i in range(len(t)) for j in range(len(c)) for k in range(len(z))}
    expect(now == want, "%s: planes" % label)


def same_channels(a, b, c, label):
    was = find(a, "Image", "Pixels").findall(SPACE + "Channel")
    now = find(b, "Image", "Pixels").findall(SPACE + "Channel")
    expect(len(now) == len(c), "%s: %d channels" % (label, len(now)))
    for i, k in enumerate(c):
        for key in ("Name", "Color", "EmissionWavelength", "Fluor", "AcquisitionMode"):
            expect(now[i].get(key) == was[k].get(key), "%s: channel %d: %s" % (label, i, key))
        expect([flat(e) for e in now[i]] == [flat(e) for e in was[k]], "%s: settings of channel %d" % (label, i))


def shapes(root):
    return {s.get("ID"): s for s in root.iter() if s.get("ID", "").startswith("Shape:")}


def refs(root):
    return [e.get("ID") for e in find(root, "Image").findall(SPACE + "ROIRef")]


def near(element, **want):
    return all(abs(float(element.get(k)) - v) < 1e-9 for k, v in want.items())


def choices(tegula, folder, path):
    a, out, checked = tree(path), os.path.join(folder, "out.ome.tif"), 0
    every = (list(range(T)), list(range(C)), list(range(Z)))
    for words, t, c, z in (([], *every), (["--channels", "GFP,DAPI"], every[0], [1, 0], every[2]),
                           (["--z", "3:6", "--t", "1"], [1], every[1], [3, 4, 5]), (["--z", "0,1,4"], every[0], every[1], [0, 1, 4]),
                           (["--planes", "6-11"], [0], [1], every[2]), (["--channels", "0,0"], every[0], [0, 0], every[2])):
        label = "copy " + " ".join(words)
        told = ask(tegula, ["copy", path, "-o", out, "-y", "-q", *words])
        expect("also has" not in told, "%s: %s" % (label, told))
        b = tree(out)
        same_elements(a, b, label)
        same_planes(a, b, t, c, z, label)
        same_channels(a, b, c, label)
        checked += valid(out, label)
    return checked


def bits(tegula, folder, path):
    """How many bits of a pixel are used holds while pixels are what they were; a PNG says that it has no place for it."""
    def said(words):
        out = os.path.join(folder, "bits.ome.tif")
        told = ask(tegula, [*words, path, "-o", out, "-y", "-q"])
        expect("significant" not in told, "bits: %s: %s" % (words, told))
        valid(out, "bits")
        return find(tree(out), "Image", "Pixels").get("SignificantBits")

    model = network(os.path.join(folder, "same.onnx"), "ConvTranspose", 1)
    for words, want in ((["copy"], "12"), (["copy", "--planes", "3"], "12"), (["copy", "--dtype", "float32"], None),
                        (["copy", "--dtype", "uint8"], None), (["copy", "--post", "threshold:9"], None),
                        (["run", "-m", model, "--normalize", "none", "--dtype", "same"], None)):
        got = said(words)
        expect(got == want, "bits: %s: %s" % (words, got))
    png = os.path.join(folder, "bits.png")
    told = ask(tegula, ["copy", path, "-o", png, "-q", "-y", "--planes", "0"])
    expect("the number of significant bits" in told, "bits: " + told)
    told = ask(tegula, ["run", "-m", model, path, "-o", png, "-q", "-y", "--planes", "0", "--normalize", "none", "--dtype", "same"])
    expect("instruments" in told and "significant" not in told, "bits: " + told)


def regions(tegula, folder, path):
    """Regions follow crops, choices and scales; of those that are left the Image has references, of others none."""
    out, checked = os.path.join(folder, "roi.ome.tif"), 0
    ask(tegula, ["copy", path, "-o", out, "-y", "-q", "--roi", "10:40,4:60"])
    s = shapes(tree(out))
    expect(near(s["Shape:0"], X=16, Y=20, Width=10, Height=12.5, TheZ=4), "crop: rectangle")
    expect(s["Shape:1"].get("Points").split()[1] == "26.5,30", "crop: polygon %s" % s["Shape:1"].get("Points"))
    expect(near(s["Shape:2"], X=16, Y=24, RadiusX=5) and near(s["Shape:2"][0], A00=2, A02=3, A12=-7), "crop: transform")
    expect(near(s["Shape:3"], X=-3, Y=2), "crop: mask")
    expect(refs(tree(out)) == ["ROI:0", "ROI:1", "ROI:2"], "crop: references")
    checked += valid(out, "crop")
    ask(tegula, ["copy", path, "-o", out, "-y", "-q", "--z", "4:5", "--channels", "1", "--t", "1"])
    s = shapes(tree(out))
    expect(near(s["Shape:0"], TheZ=0, TheC=0, TheT=0) and "Shape:2" not in s, "choice: %s" % list(s))
    expect(refs(tree(out)) == ["ROI:0", "ROI:2"], "choice: references %s" % refs(tree(out)))
    model = network(os.path.join(folder, "twice.onnx"), "ConvTranspose", 2)
    ask(tegula, ["run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", "--dtype", "same", "--roi", "10:40,4:60"])
    b = tree(out)
    s = shapes(b)
    expect(near(s["Shape:0"], X=32, Y=40, Width=20, Height=25), "scale: rectangle")
    expect(near(s["Shape:2"][0], A00=4, A11=2, A02=2 * 7 - 8, A12=2 * 3 - 20), "scale: transform")
    expect("Shape:3" not in s and refs(b) == ["ROI:0", "ROI:1"], "scale: a mask of pixels has no other scale")
    expect(plane_values(b) == plane_values(tree(path)), "scale: planes")
    same_elements(tree(path), b, "scale")
    return checked + valid(out, "scale")


def classes(tegula, folder, path):
    """Scores of classes are channels with names, also where a network makes several of each channel."""
    out, model = os.path.join(folder, "classes.ome.tif"), os.path.join(folder, "classes.onnx")
    from tiff_peers import block, ints, number
    weight = b"".join(number(1, n) for n in (2, 1, 1, 1)) + number(2, 1) + block(8, "w") + block(9, numpy.array([1, 2], "<f4").tobytes())
    node = block(1, "x") + block(1, "w") + block(2, "scores") + block(3, "c") + block(4, "Conv") + block(5, ints("kernel_shape", [1, 1]))

    def port(name, n):
        return block(1, name) + block(2, block(1, number(1, 1) + block(2, block(1, number(1, 1)) + block(1, number(1, n)) + b"".join(
            block(1, block(2, name + d)) for d in "hw"))))
    with open(model, "wb") as f:
        f.write(number(1, 8) + block(7, block(1, node) + block(2, "g") + block(5, weight) + block(11, port("x", 1)) + block(12, port("scores", 2)))
                + block(8, block(1, "") + number(2, 13)))
    pixels = tifffile.imread(path).reshape(T, C, Z, Y, X)
    for words, names, c in ((["--channels", "GFP"], ["GFP, scores 0", "GFP, scores 1"], [1]),
                            (["--channels", "GFP,DAPI"], ["GFP, scores 0", "GFP, scores 1", "DAPI, scores 0", "DAPI, scores 1"], [1, 0])):
        ask(tegula, ["run", "-m", model, path, "-o", out, "-y", "-q", "--normalize", "none", *words])
        with tifffile.TiffFile(out) as t:
            expect(t.is_ome and t.series[0].axes.replace("S", "") in ("TZCYX", "TCZYX"), "classes: axes %s" % t.series[0].axes)
            got, axes = t.series[0].asarray(), t.series[0].axes
        got = got.transpose([axes.index(k) for k in "TCZYX"])
        want = numpy.stack([pixels[:, k] * f for k in c for f in (1.0, 2.0)], 1)
        expect(got.shape == want.shape and numpy.array_equal(got, want), "classes: pixels %s" % (got.shape,))
        said = [e.get("Name") for e in find(tree(out), "Image", "Pixels").findall(SPACE + "Channel")]
        expect(said == names, "classes: %s" % said)
        same_elements(tree(path), tree(out), "classes")
        valid(out, "classes")


def others(tegula, folder, path):
    """Outputs that have no place for these say which; a file that has more of them than is kept keeps none, and says so."""
    for name, extra in (("a.png", ["--planes", "0"]), ("a.npy", []), ("a.tif", ["--format", "imagej"])):
        told = ask(tegula, ["copy", path, "-o", os.path.join(folder, name), "-q", *extra])
        for words in ("instruments", "wavelengths", "times and positions of planes", "regions of interest", "annotations"):
            expect(words in told, "%s: %s" % (name, told))
    text = text_of(path).replace("a &lt; b", "plain").replace(
        "</StructuredAnnotations>", '<CommentAnnotation ID="Annotation:9"><Value>%s</Value></CommentAnnotation></StructuredAnnotations>' % ("x" * (9 << 20)))
    big, out = os.path.join(folder, "big.ome.tif"), os.path.join(folder, "big-out.ome.tif")
    tifffile.imwrite(big, drawn((T * C * Z, Y, X), "uint16", 3), description=text, metadata=None)
    told = ask(tegula, ["copy", big, "-o", out, "-q"])
    expect("also has" in told and "annotations" in told and find(tree(out), "Instrument") is None, "too much: " + told)


def old_schema(tegula, folder, path):
    """Elements of an older schema may be others in the one that is written: they are named, not written."""
    old, out = os.path.join(folder, "old.ome.tif"), os.path.join(folder, "old-out.ome.tif")
    text = text_of(path).replace("2016-06", "2013-06")
    tifffile.imwrite(old, drawn((T * C * Z, Y, X), "uint16", 3), description=text, metadata=None)
    told = ask(tegula, ["copy", old, "-o", out, "-q"])
    b = tree(out)
    expect("also has" in told and "the instrument" in told and "regions of interest" in told and "wavelengths" not in told, "old: " + told)
    expect(find(b, "Instrument") is None and find(b, "ROI") is None and find(b, "Image", "InstrumentRef") is None, "old: elements")
    expect("annotations of single planes" in told, "old: " + told)
    was = {k: {**v, "marks": []} for k, v in plane_values(tree(path)).items()}
    expect(plane_values(b) == was, "old: planes")
    expect(find(b, "Image", "Pixels", "Channel").get("EmissionWavelength") == "460", "old: wavelengths")
    return valid(out, "old")


def units(tegula, folder):
    """A pixel of 250 x 500 nm and slices 1 micrometre apart: volumes and centres are in the unit of columns."""
    path, table = os.path.join(folder, "units.ome.tif"), os.path.join(folder, "units.csv")
    a = numpy.zeros((4, 20, 30), "uint8")
    a[1:4, 5, 7] = 1
    tifffile.imwrite(path, a, metadata={"axes": "ZYX", "PhysicalSizeX": 250, "PhysicalSizeXUnit": "nm", "PhysicalSizeY": 500, "PhysicalSizeYUnit": "nm",
                                        "PhysicalSizeZ": 1, "PhysicalSizeZUnit": "\u00b5m"})
    ask(tegula, ["copy", path, "-o", os.path.join(folder, "units-out.tif"), "--post", "label:6", "--objects", table, "-q"])
    with open(table, encoding="utf-8") as f:
        head, line = (x.split(",") for x in f.read().splitlines())
    got = dict(zip(head, line))
    expect(float(got["volume_nm3"]) == 3 * 250 * 500 * 1000 and float(got["centroid_z_nm"]) == 2000, "units: %s" % got)


def columns(tegula, folder):
    """Channels of one name are different columns, and none of them is that of a channel which is called so."""
    path, table = os.path.join(folder, "columns.ome.tif"), os.path.join(folder, "columns.csv")
    for names, want in ((["DAPI", "GFP", "GFP_1"], ["DAPI", "GFP", "GFP_1"]), (["GFP", "DAPI", "GFP"], ["GFP_0", "DAPI", "GFP_2"]),
                        (["a b", "a.b", "a_b_0"], ["a_b_0", "a_b_1", "a_b_0_2"]), (["x" * 70, "x" * 70 + "y", "y"], ["x" * 63 + "_0", "x" * 63 + "_1", "y"])):
        a = numpy.zeros((3, 20, 30), "uint8")
        a[:, 5, 7] = (3, 5, 7)
        tifffile.imwrite(path, a, metadata={"axes": "CYX", "Channel": {"Name": names}})
        ask(tegula, ["copy", path, "-o", os.path.join(folder, "columns-out.tif"), "--post", "threshold:1,label", "--objects", table, "-q", "-y"])
        with open(table, encoding="utf-8") as f:
            head, *lines = (x.split(",") for x in f.read().splitlines())
        expect(head[-3:] == ["mean_" + w for w in want], "columns: %s: %s" % (names, head))
        expect(all([float(v) for v in line[-3:]] == [3, 5, 7] for line in lines), "columns: %s" % lines)


def main():
    tegula = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rich.ome.tif")
        made(path)
        checked = choices(tegula, folder, path)
        checked += regions(tegula, folder, path)
        bits(tegula, folder, path)
        classes(tegula, folder, path)
        others(tegula, folder, path)
        units(tegula, folder)
        columns(tegula, folder)
        checked += old_schema(tegula, folder, path)
    print("all is there; %s" % ("%d files are valid by OME's schema" % checked if checked else "no ome-types: nothing was held against the schema"))


if __name__ == "__main__":
    main()
