"""ONNX files that the benchmarks need: a copy of a model whose declared image size is free, and
the reference U-Net of tests/memory/ref_unet.h. Standard library only; the wire format is that of
tests/memory/onnxmade.py (source: onnx.proto3 for the field numbers)."""
import array
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "memory"))
from onnxmade import block, ints, number, port  # noqa: E402

GRAPH, INPUT, OUTPUT, VALUE_INFO = 7, 11, 12, 13  # of ModelProto; the others of GraphProto
LEVELS = (32, 64, 128, 256, 512)


# ---- Reading the wire ----------------------------------------------------------------------

def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, kind, value, raw bytes) of each field; value: an int, or the bytes of a block."""
    at = 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
        else:
            size, at = read_varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, kind, value, data[start:at]


def change(data, path, edit):
    """`data` with every block at `path` (field numbers) replaced by edit(block)."""
    out = []
    for field, kind, value, raw in fields(data):
        if field == path[0] and kind == 2:
            inner = edit(value) if len(path) == 1 else change(value, path[1:], edit)
            raw = block(field, inner)
        out.append(raw)
    return b"".join(out)


# ---- A declared size set free --------------------------------------------------------------

def free_spatial(shape):
    """TensorShapeProto: dimensions from the third on get names instead of numbers."""
    out = b""
    for i, (_, _, dim, raw) in enumerate(fields(shape)):
        fixed = any(field == 1 for field, _, _, _ in fields(dim))
        out += block(1, block(2, "side%d" % i)) if i >= 2 and fixed else raw
    return out


def without_inner_shapes(graph):
    """Outputs lose their declared shapes, value_info goes: both hold the old size."""
    out = []
    for field, _, value, raw in fields(graph):
        if field == OUTPUT:
            raw = block(OUTPUT, change(value, (2, 1), lambda t: b"".join(
                r for f, _, _, r in fields(t) if f != 2)))
        if field != VALUE_INFO:
            out.append(raw)
    return b"".join(out)


def free_size(source, target):
    with open(source, "rb") as f:
        model = f.read()
    model = change(model, (GRAPH, INPUT, 2, 1, 2), free_spatial)
    model = change(model, (GRAPH,), without_inner_shapes)
    with open(target, "wb") as f:
        f.write(model)


# ---- The reference U-Net -------------------------------------------------------------------

class Draft:
    """Nodes and weights of a graph under construction."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def name(self):
        self.count += 1
        return "v%d" % self.count

    def weight(self, shape, scale):
        name, n = self.name(), 1
        for d in shape:
            n *= d
        values = array.array("f", (scale * (2 * self.random.random() - 1) for _ in range(n)))
        self.weights.append(b"".join(number(1, d) for d in shape) + number(2, 1) + block(8, name) +
                            block(9, values.tobytes()))
        return name

    def node(self, op, inputs, attributes=b""):
        out = self.name()
        self.nodes.append(b"".join(block(1, i) for i in inputs) + block(2, out) + block(3, out) +
                          block(4, op) + attributes)
        return out

    def conv(self, x, ci, co, k, relu=True):
        weights = self.weight((co, ci, k, k), (6 / (ci * k * k)) ** 0.5)
        y = self.node("Conv", [x, weights, self.weight((co,), 0.05)],
                      block(5, ints("kernel_shape", [k, k])) + block(5, ints("pads", [k // 2] * 4)))
        return self.node("Relu", [y]) if relu else y

    def pool(self, x):
        return self.node("MaxPool", [x], block(5, ints("kernel_shape", [2, 2])) + block(5, ints("strides", [2, 2])))

    def up(self, x, skip, ci, co):
        weights = self.weight((ci, co, 2, 2), (3 / ci) ** 0.5)
        y = self.node("ConvTranspose", [x, weights, self.weight((co,), 0.05)],
                      block(5, ints("kernel_shape", [2, 2])) + block(5, ints("strides", [2, 2])))
        axis = block(1, "axis") + number(3, 1) + number(20, 2)
        return self.node("Concat", [y, skip], block(5, axis))


def reference_unet(target, seed=4):
    """7.76 million parameters, 367 GFLOP per megapixel, random weights."""
    d = Draft(seed)
    x, channels, skips = "x", 1, []
    for width in LEVELS:
        x = d.pool(x) if skips else x
        x = d.conv(d.conv(x, channels, width, 3), width, width, 3)
        skips.append(x)
        channels = width
    for width, skip in zip(LEVELS[-2::-1], skips[-2::-1]):
        x = d.up(x, skip, 2 * width, width)
        x = d.conv(d.conv(x, 2 * width, width, 3), width, width, 3)
    y = d.conv(x, LEVELS[0], 1, 1, relu=False)
    graph = (b"".join(block(1, n) for n in d.nodes) + block(2, "reference_unet") +
             b"".join(block(5, w) for w in d.weights) + block(11, port("x", 1)) + block(12, port(y, 1)))
    with open(target, "wb") as f:
        f.write(number(1, 8) + block(GRAPH, graph) + block(8, block(1, "") + number(2, 13)))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "unet":
        reference_unet(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "free":
        free_size(sys.argv[2], sys.argv[3])
    else:
        sys.exit("usage: onnx_edit.py unet OUT.onnx | free IN.onnx OUT.onnx")
