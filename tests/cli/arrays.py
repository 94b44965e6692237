"""The real command with a network of two inputs: arrays by name.

    arrays.py TEGULA SOURCE_DIR"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(sys.argv[2], "tests", "memory"))
sys.path.insert(0, os.path.join(sys.argv[2], "tests", "fuzz"))
from onnxmade import block, number, port  # noqa: E402
from seeds import floats, model, node  # noqa: E402
from seeds import port as seed_port  # noqa: E402

HEIGHT, WIDTH = 37, 53


def expect(truth, text):
    if not truth:
        print("FAILED: " + text, flush=True)
        sys.exit(1)


def difference(path):
    """y = left - right: which array went where shows."""
    node = block(1, "left") + block(1, "right") + block(2, "y") + block(3, "sub") + block(4, "Sub")
    graph = (block(1, node) + block(2, "difference") + block(11, port("left", 1))
             + block(11, port("right", 1)) + block(12, port("y", 1)))
    with open(path, "wb") as f:
        f.write(number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 13)))


def npy(path, values, height=HEIGHT, width=WIDTH, fortran=False, axes="1, 1, "):
    """NPY 1.0, float32 [1, 1, height, width]; the head fills 128 bytes."""
    head = "{'descr': '<f4', 'fortran_order': %s, 'shape': (%s%d, %d), }" % (fortran, axes, height, width)
    if fortran:
        values = [values[y * width + x] for x in range(width) for y in range(height)]
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n")
        f.write(struct.pack("<%df" % len(values), *values))


def deep(path):
    """Two outputs of one input; the layers in between have channels for bfloat16 products."""
    k3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    with open(path, "wb") as f:
        f.write(model([node("Conv", ["x", "a"], ["p"], **k3), node("Conv", ["p", "b"], ["q"], **k3),
                       node("Conv", ["q", "c"], ["fine"], **k3),
                       node("MaxPool", ["q"], ["r"], kernel_shape=[2, 2], strides=[2, 2]),
                       node("Conv", ["r", "c"], ["coarse"], **k3)],
                      [floats("a", [32, 1, 3, 3]), floats("b", [32, 32, 3, 3]), floats("c", [2, 32, 3, 3])],
                      [seed_port("x", ["N", 1, "H", "W"])],
                      [seed_port("fine", ["N", 2, "H", "W"]), seed_port("coarse", ["N", 2, "h", "w"])]))


def check_verify(tegula, at, want):
    def verify(*words):
        r = subprocess.run([tegula, "verify", "--json", "--device", "cpu"] + list(words), capture_output=True, text=True)
        return r, json.loads(r.stdout.splitlines()[-1])
    r, said = verify("-m", at("sub.onnx"), "--input", "left=" + at("left.npy"), "--input", "right=" + at("right.npy"))
    expect(r.returncode == 0 and said["bit_equal"] and said["tiles"] > 1, "verify of two arrays: %s" % r)
    one, = said["outputs"]
    expect(one["name"] == "y" and one["reference_max_abs_difference"] == 0 and one["output_range"] == [min(want), max(want)],
           "verify of a difference: %s" % said)
    deep(at("deep.onnx"))
    words = ["-m", at("deep.onnx"), at("two.npy")]
    npy(at("two.npy"), [((i * 7919) % 251) / 251 - 0.4 for i in range(256 * 256)], 256, 256)
    fast, exact = verify(*words)[1], verify(*words, "--exact")[1]
    for said in (fast, exact):
        expect([o["name"] for o in said.get("outputs", [])] == ["fine", "coarse"], "verify of two outputs: %s" % said)
        for o in said["outputs"]:
            expect(o["bit_equal"] and 0 <= o["reference_relative_l2"] < 1e-5 and o["reference_psnr"] > 100,
                   "fast against the reference: %s" % o)
    expect(fast != exact, "Winograd's sums are others than those of --exact")
    r, said = verify(*words, "--exact", "--precision", "bf16")
    if r.returncode != 69:  # the processor has them
        for o in said["outputs"]:
            expect(o["bit_equal"] and 1e-4 < o["reference_relative_l2"] < 2e-2 and 40 < o["reference_psnr"] < 90,
                   "bf16 against the reference: %s" % o)
    # What does not fit names what does.
    r, said = verify(*words, "--ram", "9MiB")
    least = re.search(r"--ram (\d+)MiB", r.stderr)
    expect(r.returncode == 71 and "a whole sample takes" in r.stderr and least, "verify in 9 MiB: %s" % r)
    r, said = verify(*words, "--ram", least.group(1) + "MiB")
    expect(r.returncode == 0 and said["event"] == "verify", "verify with what was named: %s" % r)


def check_stop(tegula, folder):
    """Stopped, a run of arrays says that it will start over, and leaves nothing behind."""
    large, out = os.path.join(folder, "large.npy"), os.path.join(folder, "stopped.npy")
    npy(large, [0.0] * (2048 * 2048), 2048, 2048)
    p = subprocess.Popen([tegula, "run", "-m", os.path.join(folder, "sub.onnx"), "--input", "left=" + large,
                          "--input", "right=" + large, "-o", out, "-q"], stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not os.path.exists(out + ".partial"):
        time.sleep(0.0002)
    for s in (signal.SIGSTOP, signal.SIGINT, signal.SIGCONT):
        p.send_signal(s)
    err = p.communicate(timeout=60)[1]
    expect(p.returncode == 130 and "starts over" in err, "stopped: exit %d: %s" % (p.returncode, err))
    expect(not os.path.exists(out) and not os.path.exists(out + ".partial"), "stopped: something is left")


def main(tegula):
    folder = tempfile.mkdtemp(prefix="tegula-arrays-")

    def at(name):
        return os.path.join(folder, name)

    def run(*words):
        return subprocess.run([tegula, "run", "-m", at("sub.onnx"), "-o", at("y.npy"), "-q", "-y"] + list(words),
                              capture_output=True, text=True)
    try:
        difference(at("sub.onnx"))
        left = [float(i % 97) for i in range(HEIGHT * WIDTH)]
        right = [float(i % 31) / 4 for i in range(HEIGHT * WIDTH)]
        npy(at("left.npy"), left)
        npy(at("right.npy"), right)
        want = struct.pack("<%df" % len(left), *[a - b for a, b in zip(left, right)])
        # In either order, in bands of a small tile too: the names decide.
        named = ["--input", "left=" + at("left.npy"), "--input", "right=" + at("right.npy")]
        for words in (named, named[2:] + named[:2], named + ["--tile", "16x16"]):
            r = run(*words)
            expect(r.returncode == 0, "two named arrays: exit %d: %s" % (r.returncode, r.stderr))
            with open(at("y.npy"), "rb") as f:
                expect(f.read()[-len(want):] == want, "%s: another difference" % words)
        # Columns that lie behind each other, and no axes of 1: the same numbers.
        npy(at("columns.npy"), right, fortran=True, axes="")
        for words in (named[:2], named[:2] + ["--tile", "16x16"]):
            r = run(*words, "--input", "right=" + at("columns.npy"))
            expect(r.returncode == 0, "Fortran order: exit %d: %s" % (r.returncode, r.stderr))
            with open(at("y.npy"), "rb") as f:
                expect(f.read()[-len(want):] == want, "Fortran order: another difference")
        r = run(*named[:2])
        expect(r.returncode == 64 and '"right"' in r.stderr, "a missing array is not named: %s" % r)
        r = run(*(named + ["--input", "centre=" + at("left.npy")]))
        expect(r.returncode == 64 and "centre" in r.stderr, "an unknown input is not named: %s" % r)
        check_verify(tegula, at, [a - b for a, b in zip(left, right)])
        check_stop(tegula, folder)
        print("two inputs by name, in either order; a missing and an unknown one are named; verify of every output")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
