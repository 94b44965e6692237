"""The real command with a network of two inputs: arrays by name.

    arrays.py TEGULA SOURCE_DIR"""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(sys.argv[2], "tests", "memory"))
from onnxmade import block, number, port  # noqa: E402

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


def npy(path, values, height=HEIGHT, width=WIDTH):
    """NPY 1.0, float32 [1, 1, height, width]; the head fills 128 bytes."""
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, %d, %d), }" % (height, width)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n")
        f.write(struct.pack("<%df" % len(values), *values))


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
        r = run(*named[:2])
        expect(r.returncode == 64 and '"right"' in r.stderr, "a missing array is not named: %s" % r)
        r = run(*(named + ["--input", "centre=" + at("left.npy")]))
        expect(r.returncode == 64 and "centre" in r.stderr, "an unknown input is not named: %s" % r)
        check_stop(tegula, folder)
        print("two inputs by name, in either order; a missing and an unknown one are named")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
