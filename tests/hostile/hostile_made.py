"""Hostile files, made on the spot: small or sparse, standard library alone.

`make(folder)` writes them and returns [(path, kind, what it tries)], kind "image" or "model".
The builders are those of the fuzz seeds."""
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import seeds  # noqa: E402
from seeds import OME, Tiff, attr, blk, floats, ints, model, node, num, page, port, varint  # noqa: E402

SECRET = b"the secret that an external entity is after"


def tags(w, h, offset, count, code=1, rows=None, **more):
    """The tags of a one-block page, for files whose blocks lie about themselves."""
    t = {256: (4, w), 257: (4, h), 258: (3, 8), 259: (3, code), 262: (3, 1), 273: (4, offset),
         277: (3, 1), 278: (4, rows or h), 279: (4, count)}
    t.update({int(k[1:]): v for k, v in more.items()})
    return t


def lying(w, h, offset=None, count=100, code=1, data=b"\0" * 100, big=False, **more):
    t = Tiff(big=big)
    at = t.add(data)
    page_tags = tags(w, h, at if offset is None else offset, count, code, **more)
    if big:
        page_tags[273], page_tags[279] = (16, page_tags[273][1]), (16, page_tags[279][1])
    t.directory(page_tags)
    return bytes(t.out)


def loops():
    t = Tiff()
    first = page(t, 9, 7)
    t.point(t.link, first)
    yield "ifd_loop_self.tif", bytes(t.out), "the second directory is the first"
    t = Tiff()
    page(t, 9, 7)
    second = page(t, 9, 7)
    page(t, 9, 7)
    t.point(t.link, second)
    yield "ifd_loop_back.tif", bytes(t.out), "the fourth directory is the second"
    t = Tiff()
    at = page(t, 9, 7, t330=(13, 8))
    i = bytes(t.out).index(struct.pack("<HHII", 330, 13, 1, 8))
    struct.pack_into("<I", t.out, i + 8, at)
    yield "subifd_is_its_parent.tif", bytes(t.out), "a SubIFD that is its own parent"


def sizes():
    yield "sides_4g.tif", lying(2**32 - 1, 2**32 - 1), "4G x 4G pixels in 100 bytes"
    yield "sides_4g_deflate.tif", lying(2**32 - 1, 2**32 - 1, code=8), "4G x 4G pixels, deflate"
    yield "strip_60000.tif", lying(60000, 60000, code=8, data=zlib.compress(b"\0" * 4000), count=20), \
        "60000 x 60000 pixels in one deflate strip of 20 bytes"
    yield "strip_60000_stored.tif", lying(60000, 60000), "60000 x 60000 pixels in one strip of 100 bytes"
    yield "row_2g.tif", lying(2**31 - 1, 1, code=8), "one row of 2 GiB"
    t = Tiff()
    at = t.add(b"\0" * 100)
    t.directory({256: (4, 60000), 257: (4, 60000), 258: (3, 8), 259: (3, 5), 262: (3, 1), 277: (3, 1),
                 322: (4, 60000), 323: (4, 60000), 324: (4, at), 325: (4, 100)})
    yield "tile_60000.tif", bytes(t.out), "one LZW tile of 60000 x 60000 pixels in 100 bytes"
    yield "tile_zero.tif", lying(64, 64, t322=(3, 0), t323=(3, 0)), "tiles of 0 x 0 pixels"
    yield "no_pixels.tif", lying(0, 64), "0 pixels wide"
    yield "samples_65535.tif", lying(64, 64, t277=(3, 65535), t284=(3, 2)), "65535 samples a pixel, one strip"
    yield "bits_4096.tif", lying(64, 64, t258=(3, 4096)), "4096 bits a sample"


def offsets():
    yield "offset_past_end.tif", lying(10, 10, offset=2**32 - 1), "a strip that begins past the end of the file"
    yield "offset_overflow.tif", lying(10, 10, offset=2**64 - 8, big=True), "offset + length pass 2^64"
    yield "count_past_end.tif", lying(10, 10, count=2**32 - 1, code=8), "a strip of 4 GiB"
    yield "offset_zero.tif", lying(10, 10, offset=0), "a strip at offset 0"
    yield "strip_short.tif", lying(10, 10, count=99), "a stored strip one byte too short"
    t = Tiff()
    page(t, 10, 10, t273=(4, struct.pack("<I", 8)), t278=(4, 1))
    yield "one_offset_ten_strips.tif", bytes(t.out), "1 offset for 10 strips"
    yield "directory_past_end.tif", b"II*\0" + struct.pack("<I", 4096), "the first directory lies past the end"
    yield "directory_65535.tif", b"II*\0" + struct.pack("<IH", 8, 65535) + b"\0" * 600, "65535 entries in 600 bytes"
    yield "directory_2_63.tif", b"II" + struct.pack("<HHHQQ", 43, 8, 0, 16, 2**63) + b"\0" * 64, "2^63 entries"
    yield "tag_4g_values.tif", lying(10, 10, t339=(3, 1)).replace(struct.pack("<HHI", 339, 3, 1),
                                                                 struct.pack("<HHI", 339, 3, 2**32 - 1)), \
        "a tag of 4G values"
    yield "cut_in_header.tif", b"II*\0", "4 bytes"
    yield "empty.tif", b"", "no bytes"


def data():
    yield "deflate_garbage.tif", lying(64, 64, code=8, data=b"\x78\x9c" + b"\xff" * 98), "deflate data that is none"
    good = zlib.compress(seeds.pixels(4096))
    bad = good[:-1] + bytes([good[-1] ^ 1])
    yield "deflate_checksum.tif", lying(64, 64, code=8, data=bad, count=len(bad)), "a wrong Adler-32"
    yield "deflate_short.tif", lying(64, 64, code=8, data=zlib.compress(b"\0" * 100), count=11), \
        "deflate data that ends after 100 of 4096 pixels"
    yield "lzw_garbage.tif", lying(64, 64, code=5, data=b"\x80" + b"\xff" * 99), "LZW codes that were never defined"
    yield "packbits_short.tif", lying(64, 64, code=32773, data=b"\x81\0" * 2, count=4), "PackBits that ends early"
    zs = b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xff]) + b"\1\0\0" + b"\0" * 92
    yield "zstd_window_3_tib.tif", lying(64, 64, code=50000, data=zs), "a zstd frame that asks for a window of 3.75 TiB"
    yield "zstd_garbage.tif", lying(64, 64, code=50000, data=b"\x28\xb5\x2f\xfd" + b"\xff" * 96), "zstd data that is none"


def described(text, **more):
    t = Tiff()
    page(t, 9, 7, t270=(2, text + b"\0"), **more)
    return bytes(t.out)


def texts(folder, url):
    yield "imagej_beyond.tif", described(b"ImageJ=1.53t\nimages=100000\nslices=100000\n"), \
        "100000 ImageJ planes in a file of one"
    yield "imagej_2_62.tif", described(b"ImageJ=1.53t\nimages=4611686018427387904\n"), "2^62 ImageJ planes"
    bomb = b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol">' + b"".join(
        b'<!ENTITY %c "%s">' % (c, b"&%c;" % (c - 1) * 10) for c in range(ord("b"), ord("k"))) + \
        b']><OME><Image><Pixels SizeX="9" SizeY="7"/><x>&j;</x></Image></OME>'
    yield "ome_entity_bomb.tif", described(bomb), "an OME-XML entity that expands to gigabytes"
    secret = os.path.join(folder, "secret.txt")
    with open(secret, "wb") as f:
        f.write(SECRET)
    for name, where in (("file", "file://" + secret), ("http", url)):
        xml = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "{where}">]><OME><Image Name="&x;"><Pixels SizeX="9" ' \
              'SizeY="7"><Channel Name="&x;"/></Pixels></Image></OME>'
        yield f"ome_external_{name}.tif", described(xml.encode()), f"an external entity, {name}://"
    yield "ome_many_attributes.tif", described(b"<OME " + b"".join(b'a%d="" ' % i for i in range(300000)) + b"/>"), \
        "300000 attributes in one element"
    yield "ome_many_namespaces.tif", described(
        b"<OME " + b"".join(b'xmlns:a%d="" ' % i for i in range(100000)) + b">" + b"<a1:b/>" * 100000 + b"</OME>"), \
        "100000 name spaces, 100000 elements"
    yield "ome_deep.tif", described(b"<OME>" + b"<a>" * 20000 + b"</a>" * 20000 + b"</OME>"), "20000 elements deep"
    yield "ome_planes_2_39.tif", described(b'<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="9" SizeY="7" '
                                           b'SizeZ="8192" SizeC="8192" SizeT="8192"/></Image></OME>'), "2^39 OME planes"
    yield "ome_ifd_beyond.tif", described(b'<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="9" SizeY="7" SizeZ="1" '
                                          b'SizeC="1" SizeT="1"><TiffData IFD="77"/></Pixels></Image></OME>'), \
        "an OME plane in directory 77 of 1"
    yield "ome_many_blocks.tif", described(
        b'<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="9" SizeY="7" SizeZ="1" SizeC="1" SizeT="1">' +
        b'<TiffData IFD="9"/>' * 200000 + b"</Pixels></Image></OME>"), "200000 TiffData for one plane"
    yield "ome_encoding.tif", described(OME.replace(b"UTF-8", b"UTF-7").replace(b'SizeX="9"', b'SizeX="8"')), \
        "an encoding that no text of 8 bits has"
    yield "ome_cut.tif", described(b"<OME><Image><Pixels SizeX="), "OME-XML that ends in an attribute"
    yield "shaped_beyond.tif", described(b'{"shape": [4611686018427387904, 7, 9]}', t305=(2, b"tifffile.py\0")), \
        "2^62 planes by a JSON description"


def npys():
    npy = seeds.npy
    yield "shape_overflow.npy", npy("<f4", "(4294967296, 4294967296, 2)", b"\0" * 64), "a shape that passes 2^64 bytes"
    yield "shape_negative.npy", npy("<f4", "(-1, 4)", b"\0" * 64), "a negative extent"
    yield "objects.npy", npy("|O", "(1,)", b"\x80\x03cos\nsystem\nq\0."), "pickled objects"
    yield "cut.npy", npy("<f4", "(64, 64)", b"\0" * 64), "64 of 16384 bytes"
    yield "header_4g.npy", b"\x93NUMPY\2\0" + struct.pack("<I", 2**32 - 1) + b"{'descr': '<f4'", "a header of 4 GiB"


X = [port("x", [1, 1, "H", "W"])]


def nested(depth):
    """If in If in If: graphs `depth` deep, written from the inside out."""
    g = b""
    for _ in range(depth):
        n = blk(4, "If") + blk(5, blk(1, "then_branch") + blk(6, g) + num(20, 5))
        g = blk(1, n)
    return num(1, 8) + blk(7, g) + blk(8, num(2, 13))


def external(location, **more):
    entries = {"location": location, **more}
    t = (b"".join(num(1, d) for d in (1, 1, 3, 3)) + num(2, 1) + blk(8, "w") +
         b"".join(blk(13, blk(1, k) + blk(2, str(v))) for k, v in entries.items()) + num(14, 1))
    return model([node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])], [t], X)


def big_constant(op, values, out="k", **attrs):
    return [node(op, values, [out], **attrs), node("Add", ["x", out], ["y"])]


def graphs():
    yield "nested_20000.onnx", nested(20000), "graphs in graphs, 20000 deep"
    yield "empty_nodes_8_mib.onnx", num(1, 8) + blk(7, b"\x0a\0" * (4 << 20)) + blk(8, num(2, 13)), "4M empty nodes"
    yield "empty_inits_8_mib.onnx", num(1, 8) + blk(7, b"\x2a\0" * (4 << 20)) + blk(8, num(2, 13)), "4M empty initializers"
    yield "name_forges_line.onnx", model([node("Evil\ntegula: all is well", ["x"], ["y"])], [], X), \
        "a line break in an operator's name"
    yield "petabyte_in_graph.onnx", model(big_constant("ConstantOfShape", ["s"]), [ints("s", [1, 1, 2**25, 2**25])], X), \
        "ConstantOfShape of 2^50 floats"
    yield "expand_petabyte.onnx", model(
        [node("Expand", ["f", "s"], ["k"]), node("Add", ["x", "k"], ["y"])],
        [ints("s", [1, 1, 2**25, 2**25]), floats("f", [1])], X), "Expand to 2^50 floats"
    yield "range_2_62.onnx", model(big_constant("Range", ["a", "b", "c"]),
                                   [scalar("a", 0), scalar("b", 2**62), scalar("c", 1)], X), "Range of 2^62 numbers"
    yield "channels_double_40.onnx", model(
        [node("Concat", [f"t{i}"] * 2, [f"t{i + 1}"], axis=1) for i in range(40)] + [node("Relu", ["t40"], ["y"])],
        [], [port("t0", [1, 1, "H", "W"])]), "40 Concats, each doubles the channels"
    yield "resize_2_30.onnx", model([node("Resize", ["x", "", "sc"], ["y"], mode="nearest")],
                                    [num(1, 4) + num(2, 1) + blk(8, "sc") + blk(4, struct.pack("<4f", 1, 1, 2**30, 2**30))],
                                    X), "Resize by 2^30"
    yield "pad_2_40.onnx", model([node("Pad", ["x", "p"], ["y"])], [ints("p", [0, 0, 2**40, 2**40, 0, 0, 2**40, 2**40])], X), \
        "a pad of 2^40 pixels"
    yield "kernel_2_31.onnx", model([node("MaxPool", ["x"], ["y"], kernel_shape=[2**31, 2**31])], [], X), "a kernel of 2^31"
    yield "dilation_2_40.onnx", model([node("Conv", ["x", "w"], ["y"], dilations=[2**40, 2**40])],
                                      [floats("w", [1, 1, 3, 3])], X), "a dilation of 2^40"
    yield "dims_overflow.onnx", model([node("Conv", ["x", "w"], ["y"])],
                                      [b"".join(num(1, 2**32) for _ in range(4)) + num(2, 1) + blk(8, "w") + blk(9, b"")],
                                      X), "weights of 2^128 floats"
    yield "weights_negative.onnx", model([node("Conv", ["x", "w"], ["y"])],
                                         [b"".join(num(1, -1) for _ in range(4)) + num(2, 1) + blk(8, "w") + blk(9, b"")],
                                         X), "weights with dims of -1"
    yield "cycle.onnx", model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])],
                              [], X), "two nodes that wait for each other"
    yield "loop_2_62.onnx", model([node("Loop", ["n", "", "x"], ["y"], body=[1])], [scalar("n", 2**62)], X), "a Loop of 2^62 turns"


def scalar(name, v):
    return num(2, 7) + blk(7, varint(v)) + blk(8, name)


def externals(folder):
    """Models whose weights point out of their folder, one trick each."""
    outside = os.path.join(folder, "outside.bin")
    with open(outside, "wb") as f:
        f.write(b"\0" * 4096)
    inside = os.path.join(folder, "ext")
    os.mkdir(inside)
    os.symlink(outside, os.path.join(inside, "link.bin"))
    os.link(outside, os.path.join(inside, "hard.bin"))
    os.mkfifo(os.path.join(inside, "fifo.bin"))
    os.symlink("/dev/zero", os.path.join(inside, "zero.bin"))
    os.symlink(folder, os.path.join(inside, "up"))
    with open(os.path.join(inside, "short.bin"), "wb") as f:
        f.write(b"\0" * 8)
    for name, data, what in (
            ("dotdot.onnx", external("../outside.bin"), "external data by .."),
            ("absolute.onnx", external("/etc/passwd"), "external data by an absolute path"),
            ("symlink.onnx", external("link.bin"), "external data through a symbolic link"),
            ("hardlink.onnx", external("hard.bin"), "external data through a hard link"),
            ("folder_link.onnx", external("up/outside.bin"), "external data through a linked folder"),
            ("fifo.onnx", external("fifo.bin"), "external data in a FIFO: opening it waits for ever"),
            ("device.onnx", external("zero.bin"), "external data in /dev/zero"),
            ("short.onnx", external("short.bin"), "external data of 8 bytes for 36"),
            ("offset.onnx", external("short.bin", offset=2**63 - 1, length=36), "external data at offset 2^63 - 1"),
            ("no_name.onnx", external(""), "external data without a name")):
        yield os.path.join("ext", name), data, what


def make(folder, url):
    out = []
    for kind, files in (("image", loops()), ("image", sizes()), ("image", offsets()), ("image", data()),
                        ("image", texts(folder, url)), ("image", npys()), ("model", graphs()),
                        ("model", externals(folder))):
        for name, content, what in files:
            path = os.path.join(folder, name)
            with open(path, "wb") as f:
                f.write(content)
            out.append((path, kind, what))
    return out
