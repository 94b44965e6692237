#!/usr/bin/env python3
"""Types of pixels. What a network declares of its own ends is believed: integers in without a warning,
masks and small integers out as what they are, pixel by pixel. Values that the type of the output does not
hold are counted.

    declared.py TEGULA"""
import array
import os
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fuzz"))
from seeds import Tiff, model, node, num, page, pixels, port, blk  # noqa: E402
from tool import Tool  # noqa: E402

FLOAT, UINT8, INT8, BOOL = 1, 2, 3, 9
SIDE = 48


def scalar(name, value):
    return num(2, FLOAT) + blk(8, name) + blk(9, struct.pack("<f", value))


def networks():
    """(name, input's type, output's type, nodes, what becomes of a pixel, type of the output file)."""
    to = lambda t: dict(to=t)
    yield "takes_u8", UINT8, FLOAT, [node("Cast", ["x"], ["a"], **to(FLOAT)), node("Neg", ["a"], ["y"])], \
        lambda v: -float(v), "float32"
    yield "gives_mask", FLOAT, BOOL, [node("Greater", ["x", "k"], ["y"])], lambda v: int(v > 100), "uint8"
    yield "gives_u8", UINT8, UINT8, [node("Cast", ["x"], ["a"], **to(FLOAT)), node("Div", ["a", "two"], ["b"]),
                                     node("Floor", ["b"], ["c"]), node("Cast", ["c"], ["y"], **to(UINT8))], \
        lambda v: v // 2, "uint8"
    yield "gives_i8", FLOAT, INT8, [node("Div", ["x", "two"], ["b"]), node("Floor", ["b"], ["c"]), node("Neg", ["c"], ["d"]),
                                    node("Cast", ["d"], ["y"], **to(INT8))], lambda v: -(v // 2), "int8"


def clipping(t):
    """A quarter of the values is above 255: a copy and a run into uint8 say so, into uint16 they do not."""
    wide, n = Tiff(), SIDE * SIDE
    at = wide.add(struct.pack("<%dH" % n, *[300 if i % 4 == 0 else 200 for i in range(n)]))
    wide.directory({256: (4, SIDE), 257: (4, SIDE), 258: (3, 16), 259: (3, 1), 262: (3, 1), 273: (4, at), 277: (3, 1),
                    278: (4, SIDE), 279: (4, 2 * n)})
    t.write("wide.tif", bytes(wide.out))
    t.write("same.onnx", model([node("Relu", ["x"], ["y"])], [], [port("x", [1, 1, "H", "W"])], [port("y", [1, 1, "H", "W"])]))
    for verb in (["copy"], ["run", "-m", "same.onnx", "--normalize", "scale:1/1"]):
        for dtype, said in (("uint8", True), ("uint16", False), ("float32", False)):
            code, _, _ = t.run(*verb, "wide.tif", "-o", "clipped.tif", "-y", "--dtype", dtype)
            t.expect(code == 0 and ("25 % of the values do not fit" in t.errors) == said,
                     "%s to %s: %d, %s" % (verb[0], dtype, code, t.errors))


def main():
    with tempfile.TemporaryDirectory(prefix="tegula-declared-") as folder:
        t = Tool(os.path.abspath(sys.argv[1]), folder)
        image = Tiff()
        page(image, SIDE, SIDE)
        t.write("cells.tif", bytes(image.out))
        raw = pixels(SIDE * SIDE)
        for name, kind_in, kind_out, nodes, want, dtype in networks():
            ends = [port(n, [1, 1, "H", "W"], k) for n, k in (("x", kind_in), ("y", kind_out))]
            t.write("net.onnx", model(nodes, [scalar("k", 100), scalar("two", 2)], ends[:1], ends[1:]))
            words = ["--normalize", "scale:1/1"] if kind_in == FLOAT else []
            code, out, line = t.run("run", "-m", "net.onnx", "cells.tif", "-o", "out.tif", "-y", "--json", *words)
            t.expect(code == 0, "%s: exit %d: %s" % (name, code, line))
            t.expect("as they are" not in out, name + ": a warning about what the network declares")
            t.expect(t.info("out.tif")["dtype"] == dtype, "%s: %s" % (name, t.info("out.tif")["dtype"]))
            t.run("copy", "out.tif", "-o", "out.npy", "-y", "-q")
            data = t.read("out.npy")
            got = array.array({"float32": "f", "uint8": "B", "int8": "b"}[dtype], data[10 + data[8] + 256 * data[9]:])
            t.expect(list(got) == [want(v) for v in raw], name + ": other pixels")
        clipping(t)
        print("%d commands, %d failures" % (t.commands, t.failed))
        return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
