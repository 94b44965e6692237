#!/usr/bin/env python3
"""Makes the seed corpora of the fuzz targets, one folder per target: `seeds.py FOLDER`.

Small valid files of every shape that the parsers know, and dictionaries (TARGET.dict) of words
that a fuzzer would be long in guessing. Standard library alone; the same bytes on every run."""
import os
import struct
import sys
import zlib

# ---- TIFF ----------------------------------------------------------------------------------------

def lzw(data):
    """Literals only, cleared before codes grow beyond 9 bits: LZW that any reader takes."""
    codes = []
    for i, b in enumerate(data):
        if i % 250 == 0:
            codes.append(256)
        codes.append(b)
    codes.append(257)
    bits = "".join(f"{c:09b}" for c in codes)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def packbits(data):
    """A run of the first byte, then literals."""
    out = b""
    n = len(data) - len(data.lstrip(data[:1])) if data else 0
    n = min(n, 128)
    if n > 1:
        out, data = bytes([257 - n, data[0]]), data[n:]
    for i in range(0, len(data), 128):
        part = data[i:i + 128]
        out += bytes([len(part) - 1]) + part
    return out


def zstd(data):
    """One frame, one raw block: no compressor needed."""
    return (b"\x28\xb5\x2f\xfd" + bytes([0xa0]) + struct.pack("<I", len(data)) +
            struct.pack("<I", len(data) << 3 | 1)[:3] + data)


def deflate(data):
    return zlib.compress(data, 9)


PACK = {1: bytes, 5: lzw, 8: deflate, 32773: packbits, 32946: deflate, 50000: zstd}
SIZE = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 13: 4, 16: 8, 12: 8}
CODE = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 12: "d"}


class Tiff:
    """Directories and data appended to a classic or big TIFF of either byte order."""

    def __init__(self, order="<", big=False):
        self.order, self.big = order, big
        mark = b"II" if order == "<" else b"MM"
        self.out = bytearray(mark + (struct.pack(order + "HHHQ", 43, 8, 0, 0) if big else
                                     struct.pack(order + "HI", 42, 0)))
        self.link = 8 if big else 4

    def add(self, data):
        at = len(self.out)
        self.out += data + b"\0" * (len(data) % 2)
        return at

    def point(self, at, value):
        struct.pack_into(self.order + ("Q" if self.big else "I"), self.out, at, value)

    def value(self, kind, v):
        if isinstance(v, bytes):
            return len(v) // SIZE[kind], v
        if kind == 5:
            return 1, struct.pack(self.order + "II", *v)
        v = v if isinstance(v, (list, tuple)) else [v]
        return len(v), struct.pack(f"{self.order}{len(v)}{CODE[kind]}", *v)

    def directory(self, tags, linked=True):
        """tags: {tag: (type, value)}; returns where it lies."""
        room = 8 if self.big else 4
        entries = b""
        for tag in sorted(tags):
            count, raw = self.value(tags[tag][0], tags[tag][1])
            field = raw.ljust(room, b"\0") if len(raw) <= room else struct.pack(
                self.order + ("Q" if self.big else "I"), self.add(raw))
            entries += struct.pack(self.order + ("HHQ" if self.big else "HHI"), tag,
                                   tags[tag][0], count) + field
        at = self.add(struct.pack(self.order + ("Q" if self.big else "H"), len(tags)) + entries +
                      b"\0" * room)
        if linked:
            self.point(self.link, at)
            self.link = at + (8 if self.big else 2) + len(entries)
        return at


def pixels(n, seed=1):
    return bytes((i * 7 + seed * 13 + (i >> 3)) & 255 for i in range(n))


def page(t, w, h, samples=1, bits=8, fmt=1, code=1, rows=None, tile=None, planar=1, predictor=1,
         seed=1, linked=True, **more):
    """One page of w x h; `more`: tNUMBER=(type, value)."""
    blocks, size = [], samples * bits // 8
    inner = size if planar == 1 else bits // 8
    for _ in range(1 if planar == 1 else samples):
        if tile:
            for _ in range(-(-h // tile) * -(-w // tile)):
                blocks.append(pixels(tile * tile * inner, seed))
        else:
            step = rows or h
            for y in range(0, h, step):
                blocks.append(pixels(min(step, h - y) * w * inner, seed + y))
    packed = [PACK[code](b) for b in blocks]
    at = [t.add(b) for b in packed]
    wide = 16 if t.big else 4
    tags = {256: (4, w), 257: (4, h), 258: (3, [bits] * samples), 259: (3, code),
            262: (3, 2 if samples == 3 else 1), 277: (3, samples), 284: (3, planar),
            339: (3, [fmt] * samples)}
    if predictor > 1:
        tags[317] = (3, predictor)
    if tile:
        tags.update({322: (3, tile), 323: (3, tile), 324: (wide, at), 325: (wide, [len(b) for b in packed])})
    else:
        tags.update({273: (wide, at), 278: (4, rows or h), 279: (wide, [len(b) for b in packed])})
    for k, v in more.items():
        tags[int(k[1:])] = v
    return t.directory(tags, linked)


OME = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
       'UUID="urn:uuid:1"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" '
       'SizeX="9" SizeY="7" SizeZ="2" SizeC="1" SizeT="1" PhysicalSizeX="0.5" PhysicalSizeXUnit="\u00b5m" '
       'PhysicalSizeZ="2" TimeIncrement="3" TimeIncrementUnit="ms"><Channel ID="Channel:0:0" Name="a" '
       'Color="-1" SamplesPerPixel="1"/><TiffData IFD="0" FirstZ="0" FirstC="0" FirstT="0" PlaneCount="2">'
       '<UUID FileName="made.ome.tif">urn:uuid:1</UUID></TiffData></Pixels></Image></OME>').encode()
OME_OTHER = (b'<OME UUID="urn:uuid:2"><BinaryOnly MetadataFile="other.companion.ome" UUID="urn:uuid:3"/></OME>')


def tiffs():
    for name, code in (("none", 1), ("lzw", 5), ("deflate", 8), ("packbits", 32773), ("zstd", 50000)):
        t = Tiff()
        page(t, 21, 13, code=code, rows=5)
        yield f"strips_{name}", t
        t = Tiff(">")
        page(t, 21, 13, code=code, tile=16, bits=16, predictor=2 if code in (5, 8, 50000) else 1)
        yield f"tiles_{name}", t
        t = Tiff()
        page(t, 70, 300, code=code, samples=3)
        yield f"one_strip_{name}", t
    t = Tiff(big=True)
    page(t, 17, 9, samples=3, planar=2, rows=4)
    yield "big_planar", t
    t = Tiff()
    page(t, 17, 9, bits=32, fmt=3, code=8, predictor=3)
    page(t, 17, 9, bits=32, fmt=3, code=8, predictor=3, seed=2)
    yield "float_pages", t
    t = Tiff()
    page(t, 9, 7, t270=(2, OME + b"\0"))
    page(t, 9, 7, seed=2)
    yield "ome", t
    t = Tiff()
    page(t, 9, 7, t270=(2, b"ImageJ=1.53t\nimages=2\nslices=2\nunit=micron\nspacing=2.0\nloop=false\n\0"),
         t282=(5, (20000, 10000)), t283=(5, (20000, 10000)), t296=(3, 1))
    t.add(pixels(63, 2))
    yield "imagej", t
    t = Tiff()
    page(t, 9, 7, t270=(2, b'{"shape": [2, 7, 9], "axes": "ZYX"}\0'), t305=(2, b"tifffile.py\0"))
    page(t, 9, 7, seed=2)
    yield "shaped", t
    t = Tiff()
    small = page(t, 16, 16, tile=16, linked=False, t254=(4, 1))
    page(t, 32, 32, tile=16, t330=(13, small))
    yield "subifd", t
    t = Tiff()
    page(t, 40, 24, rows=8)
    page(t, 20, 12, rows=8, t254=(4, 1))
    yield "pyramid", t


# ---- ONNX ----------------------------------------------------------------------------------------

def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n)


def blk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attr(name, v):
    if isinstance(v, float):
        return blk(1, name) + varint(2 << 3 | 5) + struct.pack("<f", v) + num(20, 1)
    if isinstance(v, int):
        return blk(1, name) + num(3, v) + num(20, 2)
    if isinstance(v, str):
        return blk(1, name) + blk(4, v) + num(20, 3)
    if isinstance(v, bytes):
        return blk(1, name) + blk(5, v) + num(20, 4)
    if isinstance(v, tuple):
        return blk(1, name) + b"".join(varint(7 << 3 | 5) + struct.pack("<f", x) for x in v) + num(20, 6)
    return blk(1, name) + b"".join(num(8, x) for x in v) + num(20, 7)


def node(op, ins, outs, **attrs):
    return (b"".join(blk(1, i) for i in ins) + b"".join(blk(2, o) for o in outs) + blk(3, outs[0]) +
            blk(4, op) + b"".join(blk(5, attr(k, v)) for k, v in attrs.items()))


def floats(name, dims):
    n = 1
    for d in dims:
        n *= d
    return (b"".join(num(1, d) for d in dims) + num(2, 1) + blk(8, name) +
            blk(9, struct.pack(f"<{n}f", *[((i * 37) % 11 - 5) / 16 for i in range(n)])))


def ints(name, values):
    return num(1, len(values)) + num(2, 7) + blk(7, b"".join(varint(v) for v in values)) + blk(8, name)


def port(name, dims, kind=1):
    shape = b"".join(blk(1, blk(2, d) if isinstance(d, str) else num(1, d)) for d in dims)
    return blk(1, name) + blk(2, blk(1, num(1, kind) + blk(2, shape)))


def model(nodes, inits=(), ins=None, outs=None, opset=13):
    graph = (b"".join(blk(1, n) for n in nodes) + blk(2, "made") + b"".join(blk(5, i) for i in inits) +
             b"".join(blk(11, p) for p in ins or [port("x", [1, 2, "H", "W"])]) +
             b"".join(blk(12, p) for p in outs or [port("y", ["N", "C", "H", "W"])]))
    return num(1, 8) + blk(2, "made") + blk(7, graph) + blk(8, blk(1, "") + num(2, opset))


def onnxes():
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield "conv_relu", model([node("Conv", ["x", "w", "b"], ["a"], **conv), node("Relu", ["a"], ["y"])],
                             [floats("w", [3, 2, 3, 3]), floats("b", [3])])
    yield "unet", model([
        node("Conv", ["x", "w"], ["a"], strides=[2, 2], **conv), node("LeakyRelu", ["a"], ["b"], alpha=0.1),
        node("ConvTranspose", ["b", "v"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", ["c", "x"], ["d"], axis=1), node("MaxPool", ["d"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        [floats("w", [4, 2, 3, 3]), floats("v", [4, 2, 2, 2])])
    yield "shapes", model([
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "two"], ["h"], axis=0),
        node("Unsqueeze", ["h", "zero"], ["hs"]), node("Concat", ["lead", "hs", "minus"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]), node("Slice", ["r", "zero", "one", "one"], ["y"])],
        [num(2, 7) + blk(7, varint(2)) + blk(8, "two"), ints("zero", [0]), ints("one", [1]), ints("lead", [1, 2]), ints("minus", [-1])])
    yield "slice", model([node("Slice", ["x", "one", "nine", "two", "one"], ["y"])],
                         [ints("one", [1]), ints("nine", [9]), ints("two", [2])], [port("x", [1, 2, 32, 32])])
    yield "resize", model([node("Resize", ["x", "", "sc"], ["r"], mode="linear", coordinate_transformation_mode="half_pixel"),
                           node("Concat", ["r", "r"], ["q"], axis=1),
                           node("DepthToSpace", ["q"], ["y"], blocksize=2, mode="CRD")],
                          [num(1, 4) + num(2, 1) + blk(8, "sc") + blk(4, struct.pack("<4f", 1, 1, 2, 2))])
    yield "norm", model([node("BatchNormalization", ["x", "a", "b", "c", "d"], ["n"], epsilon=1e-5),
                         node("InstanceNormalization", ["n", "a", "b"], ["i"]), node("PRelu", ["i", "a3"], ["p"]),
                         node("Split", ["p"], ["u", "v"], axis=1), node("Mul", ["u", "v"], ["y"])],
                        [floats("a", [2]), floats("b", [2]), floats("c", [2]), floats("d", [2]), floats("a3", [2, 1, 1])])
    yield "nhwc", model([node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w"], ["c"], **conv),
                         node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])], [floats("w", [2, 3, 3, 3])],
                        [port("x", [1, 32, 32, 3])], [port("y", [1, 32, 32, 2])])
    yield "pads", model([node("Pad", ["x", "p"], ["a"], mode="reflect"), node("AveragePool", ["a"], ["b"], kernel_shape=[3, 3]),
                         node("Clip", ["b", "lo", "hi"], ["y"])],
                        [ints("p", [0, 0, 1, 1, 0, 0, 1, 1]), floats("lo", []), floats("hi", [])])
    yield "constant", model([node("Constant", [], ["k"], value=floats("v", [1])), node("Add", ["x", "k"], ["a"]),
                             node("ConstantOfShape", ["s"], ["z"]), node("Sub", ["a", "z"], ["y"])], [ints("s", [1, 2, 1, 1])])
    yield "old_upsample", model([node("Upsample", ["x"], ["y"], mode="nearest", scales=(1.0, 1.0, 2.0, 2.0))], opset=7)


# ---- The rest ------------------------------------------------------------------------------------

def npy(descr, shape, data, version=1, order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    pad = -(10 + (version > 1) * 2 + len(text) + 1) % 64
    text = text.encode() + b" " * pad + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def npys():
    yield "u1", npy("|u1", "(3, 5)", pixels(15))
    yield "f4", npy("<f4", "(1, 2, 3, 4)", pixels(96))
    yield "u2_swapped", npy(">u2", "(2, 3, 4)", pixels(48))
    yield "v2", npy("<i8", "(2,)", pixels(16), version=2)
    yield "fortran", npy("<f8", "(2, 2)", pixels(32), order="True")
    yield "scalar", npy("|b1", "()", b"\1")


JSON = {
    "descriptor": b'{"format": 1, "axes": "NCHW", "channels": ["a", "b"], "scale": [0.5, -1.25e-3], "k": null}',
    "job": b'{\n "model": "m.onnx",\n "ram": "1GiB", "yes": true, "tile": 256, "big": 9223372036854775807}',
    "strings": '{"\\u00e9": "\\ud83d\\ude00 \\n\\t\\"\u00b5", "": ["", [], {}, [[1], [2]]], "x": -0.0}'.encode(),
    "array": b"[1, 2.5, true, false, null, \"s\", [[[[[[[[]]]]]]]]]",
    "deep": b"[" * 60 + b"]" * 60,
}

XML = {"full": OME, "binary_only": OME_OTHER,
       "many": (b'<ome:OME xmlns:ome="x"><ome:Image><ome:Pixels SizeX="4" SizeY="4" SizeC="3" SizeT="2">' +
                b'<ome:Channel Name="c"/>' * 3 + b'<ome:TiffData IFD="1" FirstC="2"/>' * 4 +
                b"</ome:Pixels></ome:Image><ome:Image/></ome:OME>"),
       "cdata": b"<OME><!-- c --><Image><Pixels SizeX='1'><![CDATA[x]]>&amp;&#65;</Pixels></Image></OME>"}


def journals():
    """The first byte says how (see fuzz_journal.c); checksums are left to the target."""
    def slot(seq, tiles, final=0):
        texts = struct.pack("<QQII", 12288, 3, 0, 0) + struct.pack("<QQII", 12291, 0, 0, 0)
        return (struct.pack("<QQQQQ", 0x746f6c732d6a6774, seq, tiles, 4096 + 64 * tiles, 12352) + texts +
                struct.pack("<IIIIII", 0, 0, final, 0, 0, 0))
    records = b"".join(struct.pack("<QII", i, 64, 0) for i in range(4))
    def journal(a, b):
        out = bytearray(12352) + records
        out[0:8] = b"TGJRNL01"
        out[12288:12291] = b"job"
        out[4096:4096 + len(a)] = a
        out[8192:8192 + len(b)] = b
        return bytes(out)
    yield "begun", b"\1" + journal(slot(2, 0), b"")
    yield "two_tiles", b"\5" + journal(slot(2, 2), slot(3, 3))
    yield "final", b"\1" + journal(slot(4, 4, 1), slot(3, 3))
    yield "renamed", b"\x0b" + journal(slot(4, 4, 1), b"")
    yield "damaged", b"\0" + journal(slot(2, 2), slot(3, 3))
    yield "empty", b"\0"


TAGS = (254, 256, 257, 258, 259, 262, 266, 270, 273, 277, 278, 279, 282, 284, 305, 317, 322, 323, 324, 325, 330, 339)
OPS = ("Conv ConvTranspose Relu Reshape Resize Slice Split Concat Transpose Gather Shape Expand Pad MaxPool AveragePool "
       "Unsqueeze Squeeze Flatten ConstantOfShape Range Cast Clip Upsample DepthToSpace SpaceToDepth Softmax MatMul Gemm "
       "ReduceMean Einsum Loop If Constant Identity GlobalAveragePool axes axis starts ends steps perm pads strides "
       "dilations group kernel_shape auto_pad SAME_UPPER ceil_mode scales mode nearest linear value").split()


def quoted(data):
    return '"' + "".join(f"\\x{b:02x}" for b in data) + '"'


DICTS = {
    "tiff": [quoted(struct.pack("<HH", t, k)) for t in TAGS for k in (3, 4)] +
            [quoted(struct.pack("<H", c)) for c in (5, 8, 32773, 32946, 50000)] +
            [quoted(w) for w in (b"II*\0", b"MM\0*", b"II+\0", b"ImageJ=", b"images=", b"slices=", b"<OME", b'{"shape": [')],
    "ome": [quoted(w.encode()) for w in (
        "<OME ", "<Image ", "<Pixels ", "<Channel ", "<TiffData ", "<UUID ", "<BinaryOnly ", "<!DOCTYPE", "<!ENTITY",
        "<![CDATA[", "xmlns:", " SizeX=\"", " DimensionOrder=\"", " PhysicalSizeX=\"", " FileName=\"", "&lt;", "&#x41;",
        " PlaneCount=\"", "99999999999999", " Color=\"", "</OME>", "/>", "<?xml version=\"1.0\" encoding=\"UTF-16\"?>")],
    "onnx": [quoted(w.encode()) for w in OPS] + [quoted(b) for b in (b"\xff" * 9 + b"\1", b"\x80" * 9 + b"\1", b"\x08\x08")],
    "npy": [quoted(w.encode()) for w in ("'descr': ", "'fortran_order': ", "'shape': ", "'<f4'", "'>u2'", "'|O'", "True",
                                         "False", "(", ",)", "9223372036854775807", "4294967296")],
    "json": [quoted(w.encode()) for w in ("true", "false", "null", "\\u", "\\ud83d", "\\udc80", "1e308", "-0", "[[[[", "]]]]")],
    "journal": [quoted(b"TGJRNL01"), quoted(struct.pack("<Q", 0x746f6c732d6a6774)), quoted(struct.pack("<Q", 12288)),
                quoted(struct.pack("<Q", 12352))],
}


def main(folder):
    corpora = {"tiff": [(n, bytes(t.out)) for n, t in tiffs()], "ome": list(XML.items()), "onnx": list(onnxes()),
               "npy": list(npys()), "json": list(JSON.items()), "journal": list(journals())}
    for target, files in corpora.items():
        os.makedirs(os.path.join(folder, target), exist_ok=True)
        for name, data in files:
            with open(os.path.join(folder, target, name), "wb") as f:
                f.write(data)
        with open(os.path.join(folder, target + ".dict"), "w", encoding="ascii") as f:
            f.write("".join(f"w{i}={w}\n" for i, w in enumerate(DICTS[target])))


if __name__ == "__main__":
    main(sys.argv[1])
