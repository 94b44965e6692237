#!/usr/bin/env python3
"""Small files that ask for much arithmetic at import: answered in time, stopped in time.

    work.py TEGULA

Constants of a network are computed at import only within a budget of work; what is beyond it is
a node of the network like any other, so `info` and `plan` answer at once. SIGINT is answered
within a second, by whatever the command is busy with."""
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from seeds import floats, ints, model, node, npy  # noqa: E402

SLOW = 4 if any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS")) else 1
ANSWER = 4 * SLOW  # seconds for an answer; the budget is about one
STOP = 1 * SLOW  # seconds for the end after SIGINT


def filled(shape, out):
    """A constant of a few bytes in the file and of many in memory."""
    return node("ConstantOfShape", [shape], [out])


def einsum():
    """10^12 products for one number."""
    return model([filled("s", "a"), node("Einsum", ["a", "a"], ["c"], equation="ab,cd->"),
                  node("Mul", ["x", "c"], ["y"])], [ints("s", [1000, 1000])])


def mat_muls(n=1500, times=4):
    """2.7 * 10^10 operations, each product as large as the factors."""
    nodes = [filled("s", "m0")] + [node("MatMul", [f"m{i}", "m0"], [f"m{i + 1}"]) for i in range(times)]
    nodes += [node("ReduceSum", [f"m{times}"], ["sum"], keepdims=0), node("Mul", ["x", "sum"], ["y"])]
    return model(nodes, [ints("s", [n, n])])


def conv():
    """A convolution of constants, which are shaped as an image is: kernels for images wait for images."""
    return model([filled("s", "a"), filled("t", "w"), node("Conv", ["a", "w"], ["b"]),
                  node("ReduceSum", ["b"], ["sum"], keepdims=0), node("Mul", ["x", "sum"], ["y"])],
                 [ints("s", [1, 32, 400, 400]), ints("t", [32, 32, 15, 15])])


def small():
    """What exporters leave behind: folded as before."""
    return model([node("MatMul", ["a", "b"], ["w0"]), node("Reshape", ["w0", "to"], ["w"]),
                  node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
                 [floats("a", [4, 16]), floats("b", [16, 18]), ints("to", [4, 2, 3, 3])])


class Check:
    def __init__(self, tegula):
        self.tegula, self.failed = tegula, 0

    def expect(self, good, what):
        if not good:
            self.failed += 1
            print("WRONG:", what, flush=True)

    def run(self, *words, limit=60):
        begin = time.monotonic()
        try:
            done = subprocess.run([self.tegula, *words], capture_output=True, text=True, check=False, timeout=limit,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, "", limit
        return done.returncode, done.stdout + done.stderr, time.monotonic() - begin

    def answers(self, what, codes, *words):
        code, said, took = self.run(*words, limit=10 * ANSWER)
        print(f"  {what}: exit {code} after {took:.2f} s", flush=True)
        self.expect(code in codes, f"{what}: exit {code}: {said[-400:]}")
        self.expect(took < ANSWER, f"{what}: {took:.1f} s")
        return said

    def stops(self, what, after, *words):
        """SIGINT when it has been busy for a while ends it."""
        with subprocess.Popen([self.tegula, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL) as p:
            time.sleep(after)
            busy = p.poll() is None
            begin = time.monotonic()
            p.send_signal(signal.SIGINT)
            try:
                p.communicate(timeout=20 * STOP)
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
        took = time.monotonic() - begin
        print(f"  {what}: exit {p.returncode}, {took:.2f} s after SIGINT", flush=True)
        self.expect(busy, f"{what}: done before it could be stopped (exit {p.returncode})")
        self.expect(p.returncode == 130 and took < STOP, f"{what}: exit {p.returncode}, {took:.1f} s after SIGINT")


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def main():
    check = Check(os.path.abspath(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, net in (("einsum", einsum()), ("mat_muls", mat_muls()), ("conv", conv()), ("small", small())):
            write(name + ".onnx", net)
        print(f"  einsum.onnx has {os.path.getsize('einsum.onnx')} bytes")
        n = 2 * 64 * 48
        write("x.npy", npy("<f4", "(1, 2, 64, 48)", struct.pack(f"<{n}f", *[i / n for i in range(n)])))
        said = check.answers("info conv", (65,), "info", "conv.onnx")
        check.expect("computes a constant" in said, f"a convolution of constants alone: {said}")
        for name in ("einsum", "mat_muls"):
            check.answers(f"info {name}", (0,), "info", name + ".onnx")
            check.answers(f"plan {name}", (0,), "plan", "-m", name + ".onnx", "x.npy", "-o", "y.npy")
            check.stops(f"run {name}", 1.5, "run", "-m", name + ".onnx", "x.npy", "-o", "y.npy", "-y")
        said = check.answers("info small", (0,), "info", "small.onnx")
        check.expect("MatMul" not in said, f"small constants are folded: {said}")
    print("failed" if check.failed else "all well")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
