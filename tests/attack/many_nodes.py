#!/usr/bin/env python3
"""Networks of thousands of nodes: described and planned in seconds.

    many_nodes.py TEGULA SOURCE_DIR [NODES [all | NET...]]

Every pass over a graph and a plan is to take time in proportion to the nodes; what is quadratic shows here:
a chain of 8,000 convolutions took 43 s to be described. Processor time is held against the limit, the
fastest of three tries. The limit is meant for 10,000 NODES, on an idle machine; fewer of them (the default
run has 3,000 and some nets) leave room for a busy or slow one, on which processor time grows, too. `all`: nets of
operators that read unevenly, join many or wait for all of an image, too; those may take somewhat longer."""
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from seeds import floats, ints, model, node, npy  # noqa: E402

SLOW = 20 if any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS")) else 1
SECONDS = 2 * SLOW
MORE_SECONDS = 4 * SLOW
NODES = int((sys.argv[3:] or [10000])[0])
K3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
W = [floats("w", [2, 2, 3, 3])]


def chain(n, op, inits=(), weights=(), **attrs):
    """One operator after the other."""
    names = ["x"] + [f"t{i}" for i in range(1, n)] + ["y"]
    return model([node(op, [names[i], *weights], [names[i + 1]], **attrs) for i in range(n)], inits)


def tree(names, op, make):
    """Pairs of values joined until one is left, which is y."""
    nodes, k = [], 0
    while len(names) > 1:
        joined = []
        for a, b in zip(names[::2], names[1::2]):
            out = "y" if len(names) == 2 else f"{make}{k}"
            nodes.append(node(op, [a, b], [out]))
            joined.append(out)
            k += 1
        names = joined + (names[-1:] if len(names) % 2 else [])
    return nodes


def fan(n):
    """Half of the nodes read one value, the other half add them up."""
    leaves = [f"f{i}" for i in range(n // 2)]
    return model([node("Conv", ["x", "w"], [f], **K3) for f in leaves] + tree(leaves, "Add", "s"), W)


def pointwise_fan(n):
    """The same without a convolution: an operator reads, or is read by, as many as may."""
    leaves = [f"f{i}" for i in range(n // 2)]
    return model([node("Sigmoid", ["x"], [f]) for f in leaves] + tree(leaves, "Mul", "s"))


def residual(n):
    """Blocks of two convolutions around which the value goes."""
    nodes, now = [], "x"
    for i in range(0, n, 4):
        to = "y" if i + 4 >= n else f"d{i}"
        nodes += [node("Conv", [now, "w"], [f"a{i}"], **K3), node("Relu", [f"a{i}"], [f"b{i}"]),
                  node("Conv", [f"b{i}", "w"], [f"c{i}"], **K3), node("Add", [f"c{i}", now], [to])]
        now = to
    return model(nodes, W)


def normed(n):
    """Convolutions with a scale and a shift to fold into them, and an activation of two readers."""
    nodes, now = [], "x"
    for i in range(0, n, 5):
        to = "y" if i + 5 >= n else f"d{i}"
        nodes += [node("Conv", [now, "w"], [f"a{i}"], **K3), node("Mul", [f"a{i}", "s"], [f"b{i}"]),
                  node("Add", [f"b{i}", "s"], [f"c{i}"]), node("Sigmoid", [f"c{i}"], [f"e{i}"]),
                  node("Mul", [f"c{i}", f"e{i}"], [to])]
        now = to
    return model(nodes, W + [floats("s", [2, 1, 1])])


def joined(n):
    """Concats, which a plan takes out, and upsampling, which it takes out too."""
    nodes, now = [], "x"
    two = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for i in range(0, n, 4):
        to = "y" if i + 4 >= n else f"d{i}"
        nodes += [node("MaxPool", [now], [f"a{i}"], **two), node("Resize", [f"a{i}", "", "by"], [f"b{i}"], mode="nearest"),
                  node("Concat", [f"b{i}", now], [f"c{i}"], axis=1), node("Conv", [f"c{i}", "v"], [to], **K3)]
        now = to
    by = b"".join([b"\x08\x04", b"\x10\x01", b"\x42\x02by", b"\x4a\x10" + struct.pack("<4f", 1, 1, 2, 2)])
    return model(nodes, [floats("v", [2, 4, 3, 3]), by])


def lines(n):
    """Convolutions over [N,C,L]."""
    from seeds import port
    names = ["x"] + [f"t{i}" for i in range(1, n)] + ["y"]
    return model([node("Conv", [names[i], "w"], [names[i + 1]], kernel_shape=[3], pads=[1, 1]) for i in range(n)],
                 [floats("w", [2, 2, 3])], [port("x", ["N", 2, "L"])], [port("y", ["N", 2, "M"])])


def shapes(n):
    """Shape arithmetic, evaluated at each size that is tried."""
    nodes = [node("Shape", ["x"], ["s0"])]
    nodes += [node("Mul", [f"s{i}", "one"], [f"s{i + 1}"]) for i in range(n - 2)]
    nodes.append(node("Reshape", ["x", f"s{n - 2}"], ["y"]))
    return model(nodes, [ints("one", [1])])


def resized(n, mode, factors, between=None, **attrs):
    """Resize by each of the factors in turn, so that sizes stay bounded, and perhaps what brings a size back."""
    nodes, now = [], "x"
    step = len(factors) * (2 if between else 1)
    for i in range(0, n, step):
        for k, _ in enumerate(factors):
            last = i + step >= n and k == len(factors) - 1
            to = "y" if last and not between else f"r{i}_{k}"
            nodes.append(node("Resize", [now, "", f"by{k}"], [to], mode=mode, **attrs))
            now = to
            if between:
                to = "y" if last else f"c{i}_{k}"
                nodes.append(node(between[0], [now, *between[1]], [to], **between[2]))
                now = to
    return model(nodes, W + [scales(f"by{k}", f) for k, f in enumerate(factors)])


def scales(name, by):
    return b"".join([b"\x08\x04", b"\x10\x01", b"\x42" + bytes([len(name)]) + name.encode(),
                     b"\x4a\x10" + struct.pack("<4f", 1, 1, by, by)])


def scaled_and_back(n, factor):
    """Each Resize by a factor that float64 has not, and one to the size of the image."""
    nodes, inits, now = [], [], "x"
    for i in range(0, n, 2):
        to = "y" if i + 2 >= n else f"b{i}"
        nodes += [node("Resize", [now, "", f"u{i}"], [f"a{i}"], mode="linear"),
                  node("Resize", [f"a{i}", "", "", "size"], [to], mode="linear")]
        inits.append(scales(f"u{i}", factor(i)))
        now = to
    return model([node("Shape", ["x"], ["size"])] + nodes, inits)


def shape_resize(n):
    """Sizes that each Resize computes for itself."""
    nodes, now = [], "x"
    two = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for i in range(0, n, 3):
        to = "y" if i + 3 >= n else f"d{i}"
        nodes += [node("Shape", [now], [f"s{i}"]), node("MaxPool", [now], [f"a{i}"], **two),
                  node("Resize", [f"a{i}", "", "", f"s{i}"], [to], mode="linear")]
        now = to
    return model(nodes)


def padded(n, mode):
    """Margins of pixels of the image, and convolutions that take them away."""
    nodes, now = [], "x"
    for i in range(0, n, 2):
        to = "y" if i + 2 >= n else f"d{i}"
        nodes += [node("Pad", [now, "p"], [f"a{i}"], mode=mode),
                  node("Conv", [f"a{i}", "w"], [to], kernel_shape=[3, 3])]
        now = to
    return model(nodes, W + [ints("p", [0, 0, 1, 1, 0, 0, 1, 1])], opset=19)


def gated(n, make):
    """A value times what `make` computes of it."""
    nodes, now = [], "x"
    for i in range(0, n, 3):
        to = "y" if i + 3 >= n else f"d{i}"
        nodes += [make(now, f"a{i}"), node("Mul", [now, f"a{i}"], [f"b{i}"]),
                  node("Conv", [f"b{i}", "w"], [to], **K3)]
        now = to
    return model(nodes, W)


def normalised(n, op, opset, **attrs):
    nodes, now = [], "x"
    for i in range(0, n, 2):
        to = "y" if i + 2 >= n else f"d{i}"
        nodes += [node("Conv", [now, "w"], [f"a{i}"], **K3), node(op, [f"a{i}", "g", "g"], [to], **attrs)]
        now = to
    return model(nodes, W + [floats("g", [2])], opset=opset)


def blocks_of(n, join, size, tail):
    """`size` convolutions of one value, joined, and what makes two channels of that."""
    nodes, now = [], "x"
    step = size + 1 + len(tail)
    for i in range(0, n, step):
        to = "y" if i + step >= n else f"d{i}"
        parts = [f"a{i}_{k}" for k in range(size)]
        nodes += [node("Conv", [now, "w"], [a], **K3) for a in parts]
        nodes.append(node(join[0], parts, [f"c{i}"] if tail else [to], **join[1]))
        nodes += [node(op, [f"c{i}", *more], [to], **attrs) for op, more, attrs in tail]
        now = to
    return model(nodes, W + [floats("many", [2, 2 * size, 1, 1])])


def dense_blocks(n, size=14):
    """Each convolution reads all before it in its block."""
    nodes, now = [], "x"
    inits = [floats(f"w{k}", [2, 2 * k + 2, 3, 3]) for k in range(size)]
    step = 2 * size
    for i in range(0, n, step):
        have = [now]
        for k in range(size):
            c = f"c{i}_{k}" if k else now
            if k:
                nodes.append(node("Concat", have, [c], axis=1))
            now = "y" if i + step >= n and k == size - 1 else f"a{i}_{k}"
            nodes.append(node("Conv", [c, f"w{k}"], [now], **K3))
            have.append(now)
    return model(nodes, inits)


def split_towers(n):
    """Each half of the channels for itself."""
    nodes, now = [], "x"
    for i in range(0, n, 4):
        to = "y" if i + 4 >= n else f"d{i}"
        nodes += [node("Split", [now], [f"a{i}", f"b{i}"], axis=1), node("Conv", [f"a{i}", "u"], [f"e{i}"], **K3),
                  node("Conv", [f"b{i}", "u"], [f"f{i}"], **K3), node("Concat", [f"e{i}", f"f{i}"], [to], axis=1)]
        now = to
    return model(nodes, [floats("u", [1, 1, 3, 3])])


def concat_towers(n):
    """A Concat of a Concat of a Concat: sixteen times as many channels, and back."""
    nodes, now = [], "x"
    for i in range(0, n, 4):
        to = "y" if i + 4 >= n else f"d{i}"
        nodes += [node("Concat", [now, now], [f"a{i}"], axis=1), node("Concat", [f"a{i}", f"a{i}"], [f"b{i}"], axis=1),
                  node("Concat", [f"b{i}", f"b{i}"], [f"c{i}"], axis=1), node("Conv", [f"c{i}", "v"], [to], **K3)]
        now = to
    return model(nodes, [floats("v", [2, 16, 3, 3])])


def there_and_back(n, there, back, inits, **how):
    """Two nodes, the second of which undoes the first."""
    nodes, now = [], "x"
    for i in range(0, n, 2):
        to = "y" if i + 2 >= n else f"d{i}"
        for (op, more, attrs), a, b in ((there, now, f"a{i}"), (back, f"a{i}", to)):
            nodes.append(node(op, [a, *more], [b], **attrs))
        now = to
    return model(nodes, W + inits, **how)


def long_skips(n, far=1000):
    """Each node reads the one before it and one far away."""
    names = ["x"]
    nodes = []
    for i in range(n):
        to = "y" if i == n - 1 else f"t{i}"
        if i % 2:
            nodes.append(node("Add", [names[-1], names[max(0, len(names) - far)]], [to]))
        else:
            nodes.append(node("Conv", [names[-1], "w"], [to], **K3))
        names.append(to)
    return model(nodes, W)


def attention(n):
    """Products of channels with channels."""
    nodes, now = [node("Shape", ["x"], ["s"])], "x"
    for i in range(0, n, 6):
        to = "y" if i + 6 >= n else f"d{i}"
        nodes += [node("Reshape", [now, "flat"], [f"q{i}"]), node("Transpose", [f"q{i}"], [f"k{i}"], perm=[0, 2, 1]),
                  node("MatMul", [f"q{i}", f"k{i}"], [f"a{i}"]), node("Softmax", [f"a{i}"], [f"b{i}"], axis=2),
                  node("MatMul", [f"b{i}", f"q{i}"], [f"v{i}"]), node("Reshape", [f"v{i}", "s"], [to])]
        now = to
    return model(nodes, [ints("flat", [1, 2, -1])])


TWO = {"kernel_shape": [2, 2], "strides": [2, 2]}
THREE = {"kernel_shape": [3, 3], "strides": [3, 3]}
CONV = ("Conv", ["w"], K3)
STRIDE3 = ("Conv", ["w"], THREE)
NETS = {"convolutions": lambda n: chain(n, "Conv", W, ["w"], **K3), "pointwise": lambda n: chain(n, "Sigmoid"),
        "fan": fan, "pointwise fan": pointwise_fan, "residual": residual, "normed": normed, "joined": joined,
        "lines": lines, "shapes": shapes}
MORE = {
    "cubic": lambda n: resized(n, "cubic", [3], STRIDE3), "linear": lambda n: resized(n, "linear", [3], STRIDE3),
    "nearest": lambda n: resized(n, "nearest", [3], STRIDE3),
    "up and down": lambda n: resized(n, "linear", [3, 1 / 3]),
    "cubic up and down": lambda n: resized(n, "cubic", [5, 1 / 5]),
    "fifths": lambda n: scaled_and_back(n, lambda i: 5 / 3),
    "aligned": lambda n: resized(n, "linear", [3, 1 / 3], coordinate_transformation_mode="align_corners"),
    "many scales": lambda n: scaled_and_back(n, lambda i: 1 + (i % 997 + 1) / 1000), "shape resize": shape_resize,
    "pad edge": lambda n: padded(n, "edge"), "pad reflect": lambda n: padded(n, "reflect"),
    "pad wrap": lambda n: padded(n, "wrap"),
    "reduce max": lambda n: gated(n, lambda a, b: node("ReduceMax", [a], [b], axes=[1])),
    "squeeze": lambda n: gated(n, lambda a, b: node("GlobalAveragePool", [a], [b])),
    "instance norm": lambda n: normalised(n, "InstanceNormalization", 13),
    "group norm": lambda n: normalised(n, "GroupNormalization", 21, num_groups=1),
    "concat 16": lambda n: blocks_of(n, ("Concat", {"axis": 1}), 16, [("Conv", ["many"], {})]),
    "max 16": lambda n: blocks_of(n, ("Max", {}), 16, []), "dense blocks": dense_blocks,
    "split towers": split_towers, "concat towers": concat_towers,
    "tile": lambda n: there_and_back(n, ("Tile", ["two"], {}), ("MaxPool", [], TWO), [ints("two", [1, 1, 2, 2])]),
    "gather": lambda n: there_and_back(n, ("Gather", ["swap"], {"axis": 1}), CONV, [ints("swap", [1, 0])]),
    "transpose": lambda n: there_and_back(n, ("Transpose", [], {"perm": [0, 1, 3, 2]}), CONV, []),
    "strided slice": lambda n: there_and_back(
        n, ("Slice", ["from", "to", "at", "by"], {}), ("Resize", ["", "up"], {"mode": "nearest"}),
        [ints("from", [0, 0]), ints("to", [1 << 40, 1 << 40]), ints("at", [2, 3]), ints("by", [2, 2]), scales("up", 2)]),
    "flip": lambda n: there_and_back(
        n, ("Slice", ["from", "to", "at", "by"], {}), CONV,
        [ints("from", [-1, -1]), ints("to", [-(1 << 40), -(1 << 40)]), ints("at", [2, 3]), ints("by", [-1, -1])]),
    "long skips": long_skips, "attention": attention}


class Check:
    def __init__(self, tegula):
        self.tegula, self.failed = tegula, 0

    def expect(self, good, what):
        if not good:
            self.failed += 1
            print("WRONG:", what, flush=True)

    def once(self, words, limit):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run([self.tegula, *words], capture_output=True, text=True, check=False, timeout=limit,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, f"not after {limit} s"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.printed = done.stdout
        self.took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done.returncode, done.stderr

    def within(self, what, seconds, *words):
        best = None
        for _ in range(3):
            code, said = self.once(words, 10 * seconds)
            if code != 0:
                break
            best = self.took if best is None else min(best, self.took)
            if best < seconds:
                break
        print(f"  {what}: exit {code}, {best if best is None else round(best, 2)} s", flush=True)
        self.expect(code == 0, f"{what}: exit {code}: {said[-300:]}")
        self.expect(best is None or best < seconds, f"{what}: {best} s of {seconds}")


def main():
    check = Check(os.path.abspath(sys.argv[1]))
    every = {**NETS, **MORE}
    names = sys.argv[4:] or NETS
    chosen = every if "all" in names else {k: every[k] for k in names}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("x.npy", "wb") as f:
            f.write(npy("<f4", "(1, 2, 256, 256)", bytes(4 * 2 * 256 * 256)))
        with open("line.npy", "wb") as f:
            f.write(npy("<f4", "(1, 2, 4096)", bytes(4 * 2 * 4096)))
        for name, make in chosen.items():
            file = name.replace(" ", "_") + ".onnx"
            with open(file, "wb") as f:
                f.write(make(NODES))
            seconds = SECONDS if name in NETS else MORE_SECONDS
            # `info` plans an image of 65536 rows in bands, `plan` an array at once.
            check.within(f"info, {name}", seconds, "info", file)
            if name == "convolutions":  # a pixel more on each side for each node
                halo = re.search("halo +(.*)", check.printed)
                check.expect(halo and halo[1] == f"0, {NODES}, {NODES}", f"halo of {name}: {halo and halo[1]}")
            check.within(f"plan, {name}", seconds, "plan", "-m", file, "line.npy" if name == "lines" else "x.npy")
    print("failed" if check.failed else "all well")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
