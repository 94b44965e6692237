#!/usr/bin/env python3
"""Networks of thousands of nodes: described and planned in seconds.

    many_nodes.py TEGULA SOURCE_DIR [NODES]

Every pass over a graph and a plan is to take time in proportion to the nodes; what is quadratic shows here:
a chain of 8,000 convolutions took 43 s to be described. Processor time is held against the limit, the
fastest of three tries. The limit is meant for 10,000 NODES, on an idle machine; fewer of them (the default
run has 3,000) leave room for a busy or slow one, on which processor time grows, too."""
import os
import resource
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from seeds import floats, ints, model, node, npy  # noqa: E402

SLOW = 20 if any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS")) else 1
SECONDS = 2 * SLOW
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


NETS = {"convolutions": lambda: chain(NODES, "Conv", W, ["w"], **K3), "pointwise": lambda: chain(NODES, "Sigmoid"),
        "fan": lambda: fan(NODES), "pointwise fan": lambda: pointwise_fan(NODES), "residual": lambda: residual(NODES),
        "normed": lambda: normed(NODES), "joined": lambda: joined(NODES), "lines": lambda: lines(NODES),
        "shapes": lambda: shapes(NODES)}


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
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("x.npy", "wb") as f:
            f.write(npy("<f4", "(1, 2, 256, 256)", bytes(4 * 2 * 256 * 256)))
        with open("line.npy", "wb") as f:
            f.write(npy("<f4", "(1, 2, 4096)", bytes(4 * 2 * 4096)))
        for name, make in NETS.items():
            file = name.replace(" ", "_") + ".onnx"
            with open(file, "wb") as f:
                f.write(make())
            # `info` plans an image of 65536 rows in bands, `plan` an array at once.
            check.within(f"info, {name}", SECONDS, "info", file)
            check.within(f"plan, {name}", SECONDS, "plan", "-m", file, "line.npy" if name == "lines" else "x.npy")
    print("failed" if check.failed else "all well")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
