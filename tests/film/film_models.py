#!/usr/bin/env python3
"""Real networks of several frames, over stacks of them: the answers are ONNX Runtime's.

    film_models.py TEGULA SOURCE VIDEOS MODELS

nanoflownet takes two grey frames, viper's inpainter six frames, a mask and its complement (its weights are made here, by the
rule of its golden.json). 77: no models."""
import array
import hashlib
import json
import os
import shutil
import struct
import sys
import tempfile

from film_help import WRONG, bytes_of, expect, run

MODELS = os.path.abspath(sys.argv[4])
WEIGHTS = "video_inpainter_dynamic.onnx.data"


def load(path):
    """Shape and numbers of a float32 array."""
    data = bytes_of(path)
    n = struct.unpack_from("<H", data, 8)[0]
    head = data[10:10 + n].decode()
    shape = [int(k) for k in head.split("(", 1)[1].split(")", 1)[0].split(",") if k.strip()]
    values = array.array("f")
    values.frombytes(data[10 + n:])
    return shape, values


def save(path, shape, values):
    head = str({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + values.tobytes())


def stack(values, shape, axes):
    save("frames.npy", shape, values)
    code, _, err = run("copy", "frames.npy", "-o", "frames.tif", "-y", "--axes", axes)
    expect(code == 0, f"a stack of frames: {code}: {err}")


def worst(out, golden, frame):
    """The largest difference of a frame of the stack to the golden array."""
    expect(run("copy", out, "-o", "out.npy", "-y")[0] == 0, f"{out} as an array")
    _, want = load(golden)
    shape, got = load("out.npy")
    n = len(want)
    expect(len(got) % n == 0, f"{out}: {shape}")
    return max(abs(a - b) for a, b in zip(got[frame * n:(frame + 1) * n], want)), max(map(abs, want))


def flow():
    folder = os.path.join(MODELS, "nanoflownet")
    (_, _, h, w), values = load(os.path.join(folder, "s128x160.in.npy"))
    stack(values, (2, h, w), "TYX")
    for words in ((), ("--tile", "16x16")):
        code, _, err = run("run", "-m", os.path.join(folder, "model.onnx"), "frames.tif", "--window", "2", "-o", "flow.tif", "-y", *words)
        expect(code == 0, f"nanoflownet {words}: {code}: {err}")
        by, most = worst("flow.tif", os.path.join(folder, "s128x160.out0.npy"), 0)
        expect(by <= 1e-4 + 1e-3 * most, f"nanoflownet {words}: {by} of {most}")


def make_weights(told):
    out = array.array("f", bytes(told["bytes"]))
    for k in range(len(out)):
        u = (k * 2654435761 + 12345) & 0xffffffff
        u ^= u >> 16
        u = u * 2246822519 & 0xffffffff
        u ^= u >> 13
        out[k] = (u / 4294967296.0 - 0.5) * 0.5
    data = out.tobytes()
    expect(hashlib.sha256(data).hexdigest() == told["sha256"], "the weights are others")
    with open(WEIGHTS, "wb") as f:
        f.write(data)


def inpainter():
    folder = os.path.join(MODELS, "viper_video_inpainter_graph")
    shutil.copy(os.path.join(folder, "model.onnx"), "model.onnx")
    with open(os.path.join(folder, "golden.json"), encoding="utf-8") as f:
        make_weights(json.load(f)["weights"])
    (_, _, h, w), values = load(os.path.join(folder, "s64x96.in.npy"))
    stack(values[:18 * h * w], (6, 3, h, w), "TCYX")
    save("mask.npy", (2, h, w), values[18 * h * w:])
    for words in ((), ("--tile", "32x48")):
        code, _, err = run("run", "-m", "model.onnx", "frames.tif", "--window", "6", "--constant", "input=mask.npy", "-o", "o.tif", "-y", *words)
        expect(code == 0, f"the inpainter {words}: {code}: {err}")
        by, most = worst("o.tif", os.path.join(folder, "s64x96.out0.npy"), 2)
        expect(by <= 1e-4 + 1e-3 * most, f"the inpainter {words}: {by} of {most}")


if __name__ == "__main__":
    if not os.path.isdir(os.path.join(MODELS, "nanoflownet")):
        print("skipped: no models")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        flow()
        inpainter()
        os.chdir("/")
    print(f"{len(WRONG)} wrong")
    sys.exit(1 if WRONG else 0)
