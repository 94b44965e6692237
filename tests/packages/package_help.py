"""Packages of bioimage.io made for tests, images for them, and runs. Python's standard library: a description in JSON is one in YAML."""
import array
import hashlib
import json
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from seeds import blk, model, node, num, port  # noqa: E402

TEGULA = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
failed = 0


def expect(ok, what):
    global failed
    if not ok:
        failed += 1
        print("not so:", what)


def run(*words, cwd=None, timeout=120):
    r = subprocess.run([TEGULA, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout, cwd=cwd)
    return r.returncode, r.stdout, r.stderr


# ---- Networks ------------------------------------------------------------------------------

def tensor(name, dims, values):
    return b"".join(num(1, d) for d in dims) + num(2, 1) + blk(8, name) + blk(9, struct.pack(f"<{len(values)}f", *values))


def same(channels=1, depth=False):
    """A network that gives what it gets."""
    k = [1] * (3 if depth else 2)
    w = [float(i == j) for i in range(channels) for j in range(channels)]
    space = ["D", "H", "W"] if depth else ["H", "W"]
    return model([node("Conv", ["x", "w"], ["y"], kernel_shape=k)], [tensor("w", [channels, channels, *k], w)],
                 [port("x", ["N", channels, *space])], [port("y", ["N", channels, *space])])


# ---- Descriptions --------------------------------------------------------------------------

def axes5(channels, space, size=None, of=None):
    out = [{"type": "batch"}, {"type": "channel", "channel_names": [f"c{i}" for i in range(channels)]}]
    for a in space:
        out.append({"type": "space", "id": a, "size": {"tensor_id": of, "axis_id": a} if of else size or {"min": 1, "step": 1}})
    return out


def describe5(pre=(), post=(), channels=1, space="yx", size=None, onnx="net.onnx", data=b"", **more):
    def steps(given):
        return [{"id": name, **({"kwargs": kwargs} if kwargs is not None else {})} for name, kwargs in given]
    says = {"format_version": "0.5.3", "type": "model", "name": "made for a test", "version": "0.1.0", "license": "Apache-2.0",
            "inputs": [{"id": "raw", "axes": axes5(channels, space, size), "data": {"type": "float32"}, "preprocessing": steps(pre)}],
            "outputs": [{"id": "out", "axes": axes5(channels, space, of="raw"), "data": {"type": "float32"},
                         "postprocessing": steps(post)}],
            "weights": {"onnx": {"source": onnx, "opset_version": 13, "sha256": hashlib.sha256(data).hexdigest()}}}
    says.update(more)
    return says


def describe4(pre=(), post=(), channels=1, space="yx", size=None, onnx="net.onnx", data=b"", **more):
    def steps(given):
        return [{"name": name, **({"kwargs": kwargs} if kwargs is not None else {})} for name, kwargs in given]
    n = len(space)
    says = {"format_version": "0.4.10", "type": "model", "name": "made for a test", "version": "0.1.0", "license": "Apache-2.0",
            "inputs": [{"name": "raw", "axes": "bc" + space, "data_type": "float32", "preprocessing": steps(pre),
                        "shape": size or {"min": [1, channels] + [1] * n, "step": [0, 0] + [1] * n}}],
            "outputs": [{"name": "out", "axes": "bc" + space, "data_type": "float32", "postprocessing": steps(post),
                         "shape": {"reference_tensor": "raw", "scale": [1.0] * (n + 2), "offset": [0.0] * (n + 2)}}],
            "weights": {"onnx": {"source": onnx, "opset_version": 13, "sha256": hashlib.sha256(data).hexdigest()}}}
    says.update(more)
    return says


def write_package(folder, says, data, name="rdf.yaml"):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(says, f, indent=1)
    with open(os.path.join(folder, "net.onnx"), "wb") as f:
        f.write(data)
    return folder


# ---- Images --------------------------------------------------------------------------------

TYPES = {"u1": ("B", 8, 1), "u2": ("H", 16, 1), "i2": ("h", 16, 2), "f4": ("f", 32, 3)}


def draw(n, kind, seed):
    r = random.Random(seed)
    if kind == "f4":
        return [struct.unpack("<f", struct.pack("<f", r.gauss(3, 40)))[0] for _ in range(n)]
    top = 255 if kind == "u1" else 4000
    low = -500 if kind == "i2" else 0
    return [min(top, max(low, int(r.gauss(top * 0.2, top * 0.11)) + (top // 2 if r.random() < 0.03 else 0))) for _ in range(n)]


def write_tiff(path, planes, h, w, kind, channels=1, slices=1, frames=1):
    """Planes as an ImageJ stack: c fastest, then z, then t."""
    code, bits, fmt = TYPES[kind]
    note = b"ImageJ=1.52\nimages=%d\nchannels=%d\nslices=%d\nframes=%d\nhyperstack=true\n\0" % (len(planes), channels, slices, frames)
    out = bytearray(b"II*\0\0\0\0\0")
    at, last = [], 4
    for p in planes:
        at.append(len(out))
        out += struct.pack(f"<{h * w}{code}", *p)
    said = len(out)
    out += note + b"\0" * (len(note) % 2)
    for i in range(len(planes)):
        tags = [(256, 4, 1, w), (257, 4, 1, h), (258, 3, 1, bits), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, at[i]), (277, 3, 1, 1),
                (278, 4, 1, h), (279, 4, 1, h * w * bits // 8), (339, 3, 1, fmt)]
        if i == 0:
            tags.insert(5, (270, 2, len(note), said))
        struct.pack_into("<I", out, last, len(out))
        out += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *t) for t in tags)
        last = len(out)
        out += b"\0\0\0\0"
    with open(path, "wb") as f:
        f.write(out)


def read_npy(path):
    """(shape, numbers)"""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<H", data[8:10])[0] if data[6] == 1 else struct.unpack("<I", data[8:12])[0]
    first = 10 if data[6] == 1 else 12
    head = eval(data[first:first + n].decode())  # noqa: S307, a header that the command wrote
    a = array.array({"<f4": "f", "|u1": "B", "<u2": "H", "<i2": "h", "|i1": "b", "<f8": "d"}[head["descr"]])
    a.frombytes(data[first + n:])
    return head["shape"], a.tolist(), head["descr"]


def result_of(model_path, image, folder, *words):
    """(type, numbers) of the TIFF that a run writes."""
    out = os.path.join(folder, "out.tif")
    code, _, err = run("run", "-y", "-m", model_path, image, "-o", out, *words)
    expect(code == 0, f"run of {model_path}: {code}: {err}")
    if code:
        return "", []
    code, _, err = run("copy", "-y", out, "-o", os.path.join(folder, "out.npy"))
    expect(code == 0, f"copy of {out}: {code}: {err}")
    shape, numbers, kind = read_npy(os.path.join(folder, "out.npy"))
    return kind, numbers
