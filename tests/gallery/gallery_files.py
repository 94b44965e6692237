"""The files that the cases of the error gallery speak of: small, made on the spot, standard library
alone. `make(folder)` writes them; what each is stands in the cases (`given`)."""
import json
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
for part in ("fuzz", "hostile"):
    sys.path.insert(0, os.path.join(HERE, "..", part))
from hostile_made import described, external, lying  # noqa: E402
import weight_files as wf  # noqa: E402
from seeds import OME, Tiff, deflate, floats, ints, model, node, npy, page, pixels, port  # noqa: E402

W, H = 64, 48
GREY = [port("x", [1, 1, "H", "W"])]


def pages(n, w=W, h=H, **more):
    t = Tiff()
    for k in range(n):
        page(t, w, h, seed=k + 1, **more)
    return bytes(t.out)


def tiled(side=192, tile=32, bad=None):
    """Deflate tiles, one of them damaged in its middle."""
    t = Tiff()
    blocks = [deflate(pixels(tile * tile, k + 1)) for k in range((side // tile) ** 2)]
    if bad is not None:
        b = bytearray(blocks[bad])
        b[len(b) // 2] ^= 0x55
        blocks[bad] = bytes(b)
    at = [t.add(b) for b in blocks]
    t.directory({256: (4, side), 257: (4, side), 258: (3, 8), 259: (3, 8), 262: (3, 1), 277: (3, 1), 322: (3, tile),
                 323: (3, tile), 324: (4, at), 325: (4, [len(b) for b in blocks])})
    return bytes(t.out)


def repeated(side, rows):
    """An image of any size in a small file: all strips are the same bytes."""
    t = Tiff(big=True)
    block = zlib.compress(b"\0" * (side * rows), 9)
    at, n = t.add(block), -(-side // rows)
    t.directory({256: (4, side), 257: (4, side), 258: (3, 8), 259: (3, 8), 262: (3, 1), 277: (3, 1), 278: (4, rows),
                 273: (16, [at] * n), 279: (4, [len(block)] * n)})
    return bytes(t.out)


def loop():
    """The third page is followed by the first."""
    t = Tiff()
    first = page(t, W, H)
    page(t, W, H)
    page(t, W, H)
    t.point(t.link, first)
    return bytes(t.out)


def black(wide, high):
    """A PNG of 8-bit grey."""
    parts = ((b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(bytes((wide + 1) * high))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)


def channels():
    """Three channels of which one is called like a number."""
    text = ('<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image><Pixels DimensionOrder="XYZCT" Type="uint8" SizeX="%d" SizeY="%d" '
            'SizeZ="1" SizeC="3" SizeT="1"><Channel Name="DAPI"/><Channel Name="GFP"/><Channel Name="1"/><TiffData/></Pixels></Image></OME>' % (W, H))
    t = Tiff()
    for k in range(3):
        page(t, W, H, seed=k + 1, **({"t270": (2, text.encode() + b"\0")} if k == 0 else {}))
    return bytes(t.out)


def images():
    yield "channels.ome.tif", channels()
    whole = pages(1)
    yield "cells.tif", whole
    yield "rgb.tif", pages(1, samples=3)
    yield "stack.tif", pages(5)
    yield "half.tif", whole[:len(whole) // 2]
    yield "lost_pixels.tif", lying(W, H, count=W * H, data=b"\0" * 1000)
    yield "sparse.tif", lying(W, H, offset=0, code=8)
    yield "notes.tif", b"These are not the pixels that you are looking for.\n"
    yield "scan.czi", b"ZISRAWFILE".ljust(64, b"\0")
    yield "empty.tif", b""
    yield "jpeg2000.tif", lying(W, H, code=34712)
    yield "float20.tif", lying(W, H, t258=(3, 20), t339=(3, 3))
    yield "imagej.tif", described(b"ImageJ=1.53t\nimages=40\nslices=40\n")
    yield "doctype.tif", described(b'<?xml version="1.0"?><!DOCTYPE OME [<!ENTITY a "b">]>' + OME[38:])
    yield "cut.ome.tif", described(b"<OME><Image><Pixels SizeX=")
    yield "damaged.tif", tiled(bad=8)
    yield "good.tif", tiled()
    yield "wide.tif", repeated(1024, 64)
    yield "strip.tif", lying(2**31 - 1, 1, code=8)
    yield "survey.tif", repeated(1000000, 64)
    yield "tall.tif", repeated(8192, 64)
    yield "small.tif", pages(1, 9, 7)
    yield "photo.png", b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR"
    film = b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n" + 3 * (b"FRAME\n" + b"\x60" * 64 * 48 + b"\x80" * 32 * 48)
    yield "film.y4m", film
    yield "cut.y4m", film[:-1000]
    yield "frames.raw", bytes(1000)
    yield "woven.y4m", film.replace(b" Ip", b" It")
    yield "film.mp4", b"\0\0\0\x18ftypisom\0\0\2\0isommp41\0\0\0\x08mdat"
    yield "clip.y4m", b"YUV4MPEG2 W4 H4 F1:1 C420\n" + b"FRAME\n" + b"\0" * 24
    yield "none.png", black(64, 48)
    yield "loop.tif", loop()
    yield "tag.tif", lying(W, H, t339=(3, 1), count=W * H, data=b"\0" * (W * H)).replace(
        struct.pack("<HHI", 339, 3, 1), struct.pack("<HHI", 339, 3, 2**32 - 1))
    yield "thin.tif", lying(0, H)
    yield "huge.tif", lying(2**32 - 1, 2**32 - 1, code=8)
    yield "elsewhere.ome.tif", described(b'<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="9" SizeY="7" SizeZ="1" '
                                         b'SizeC="1" SizeT="1"><TiffData IFD="77"/></Pixels></Image></OME>')


def folders():
    for k in (1, 2, 4):
        yield f"frames/img_{k:03d}.tif", pages(1)
    yield "mixed/a.tif", pages(1)
    yield "mixed/b.tif", pages(1, 40, 30)
    yield "texts/readme.txt", b"no image\n"
    yield "named/cell_z1.tif", pages(1)
    yield "named/cell_z2.tif", pages(1)


def arrays():
    def ones(n):
        return struct.pack(f"<{n}f", *[1.0] * n)
    yield "plane.npy", npy("<f4", f"({H}, {W})", ones(H * W))
    yield "pixels.npy", npy("<f4", f"({H}, {W}, 1)", ones(H * W))
    yield "x.npy", npy("<f4", f"(1, 1, {H}, {W})", ones(H * W))
    yield "two.npy", npy("<f4", f"(2, 1, {H}, {W})", ones(2 * H * W))
    yield "pair.npy", npy("<f4", f"(1, 2, {H}, {W})", ones(2 * H * W))
    yield "rgb.npy", npy("<f4", f"(1, 3, {H}, {W})", ones(3 * H * W))
    yield "objects.npy", npy("|O", "(1,)", b"\x80\x03N.")
    yield "cut.npy", npy("<f4", f"({H}, {W})", ones(100))


def conv(cin=1, cout=1, x="x", y="y", w="w", rank=2):
    return node("Conv", [x, w], [y], kernel_shape=[3] * rank, pads=[1] * (2 * rank)), \
        floats(w, [cout, cin] + [3] * rank)


def deep(channels=16):
    """Convolutions between norms that are dearer than to keep what they yield."""
    nodes, consts, x, cin = [], [floats("one", [channels])], "x", 1
    for k in range(12):
        n, w = conv(cin, channels, x, f"c{k}", f"w{k}")
        nodes.append(n)
        consts.append(w)
        x, cin = f"c{k}", channels
        if k % 4 == 3:
            nodes.append(node("InstanceNormalization", [x, "one", "one"], [f"n{k}"]))
            x = f"n{k}"
    n, w = conv(channels, 1, x, "y", "last")
    return model(nodes + [n], consts + [w], GREY)


def net(cin=1, cout=1, ins=None, **more):
    n, w = conv(cin, cout)
    return model([n], [w], ins or [port("x", [1, cin, "H", "W"])], **more)


def models():
    plain = net()
    yield "net.onnx", plain
    yield "colour.onnx", net(3, 3)
    yield "scores.onnx", net(3, 9)
    yield "pair.onnx", net(2, 1)
    n, w = conv(rank=3)
    yield "volume.onnx", model([n], [w], [port("x", [1, 1, "D", "H", "W"])])
    c, w = conv(y="a")
    yield "norm.onnx", model([c, node("InstanceNormalization", ["a", "s", "s"], ["y"])], [w, floats("s", [1])], GREY)
    yield "columns.onnx", model([c, node("Softmax", ["a"], ["y"], axis=2)], [w], GREY)
    yield "classes.onnx", model([node("GlobalAveragePool", ["x"], ["g"]), node("Flatten", ["g"], ["y"])], [], GREY,
                                [port("y", [1, "C"])])
    yield "fixed.onnx", model(
        [c, node("InstanceNormalization", ["a", "s", "s"], ["n"]), node("Add", ["n", "place"], ["y"])],
        [w, floats("s", [1]), floats("place", [1, 1, 32, 32])], [port("x", [1, 1, 32, 32])])
    yield "three.onnx", net(3, 1)
    yield "blend.onnx", model([node("Add", ["x", "z"], ["y"])], [], GREY + [port("z", [1, 1, "H", "W"])])
    yield "halves.onnx", model([node("Split", ["x"], ["y", "z"], axis=1)], [], [port("x", [1, 2, "H", "W"])],
                               [port("y", [1, 1, "H", "W"]), port("z", [1, 1, "H", "W"])])
    yield "cut.onnx", plain[:len(plain) // 2]
    yield "unknown.onnx", model([node("RoiAlign", ["x", "x", "x"], ["y"])], [], GREY)
    yield "future.onnx", net(opset=999)
    yield "shapes.onnx", model([node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])], [floats("w", [1, 2, 3, 3])], GREY)
    yield "outside.onnx", external("../weights.bin")
    yield "weights_gone.onnx", external("weights.bin")
    yield "doubling.onnx", model(
        [node("Concat", [f"t{i}"] * 2, [f"t{i + 1}"], axis=1) for i in range(40)] + [node("Relu", ["t40"], ["y"])],
        [], [port("t0", [1, 1, "H", "W"])])
    yield "strict.onnx", plain
    yield "slip.onnx", plain
    yield "odd.onnx", plain


def weights():
    six = wf.storage("FloatStorage", "0", 6)
    good = wf.archive(wf.state([("conv.weight", wf.tensor(six, 0, (2, 3), (3, 1)))]), {"0": wf.FLOATS})
    yield "trained.pth", good
    yield "half.pth", good[:len(good) // 2]
    yield "pointer.pth", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 157800000\n"
    for name, value in (("trap", wf.call("os", "system", wf.text("echo trapped"))),
                        ("whole", wf.tup(wf.text("module"), wf.text("Net"), wf.text("net.py"), wf.text("code")) + b"Q"),
                        ("sparse", wf.call("torch._utils", "_rebuild_sparse_tensor", b"N")),
                        ("beyond", wf.tensor(six, 0, (7,), (1,)))):
        yield name + ".pth", wf.archive(wf.state([("conv.weight", value)]), {"0": wf.FLOATS})
    yield "settings.pth", wf.archive(wf.PROTO2 + b"}" + wf.text("epochs") + wf.num(30) + b"s.")


def texts():
    scale = json.dumps({"normalize": "scale:1/255"})
    for name in ("net", "colour", "pair", "volume", "norm", "fixed", "classes", "halves", "doubling", "blend", "unknown", "future", "shapes"):
        yield f"{name}.json", scale.encode()
    yield "strict.json", b'{"normalize": "scale:1/255", "output": "labels please"}'
    yield "slip.json", b'{"normalise": "zscore"}'
    yield "odd.json", b'{"normalize": "scale:1/255",}'
    yield "job.json", b'{"model": "net.onnx", "tiel": 256}'
    yield "list.json", b'["net.onnx"]'
    yield "stats.json", b'{"normalize": "minmax", "channels": []}'


def make(folder):
    for name, data in (*images(), *folders(), *arrays(), *models(), *weights(), *texts()):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
