"""The script that one writes without tegula: read a TIFF, normalise it, run the network over it,
write a TIFF.

    tifffile_ort.py [--threads N] [--normalize scale:A|percentile:LO,HI] [--dtype TYPE]
                    [--tile N --halo N] [--compare FILE.tif] MODEL.onnx IN.tif OUT.tif

Whole image in one session.run; with --tile in square tiles of N kept pixels with `halo` around
each, for networks whose activations do not fit. With percentiles the output is mapped back.
Memory that the system refuses ends with exit code 71. Python with numpy, onnxruntime, tifffile."""
import argparse
import json
import sys

import numpy as np
import onnxruntime as ort
import tifffile


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--normalize", default="scale:1")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--tile", type=int, default=0)
    p.add_argument("--halo", type=int, default=128)
    p.add_argument("--compare")
    p.add_argument("model")
    p.add_argument("source")
    p.add_argument("target")
    return p.parse_args()


def affine(image, spec):
    """(scale, offset): the network sees image * scale + offset."""
    kind, _, values = spec.partition(":")
    if kind == "scale":
        top, _, bottom = values.partition("/")
        return float(top) / float(bottom or 1), 0.0
    low, high = np.percentile(image, [float(v) for v in values.split(",")])
    return 1 / (high - low), -low / (high - low)


def run_whole(session, x):
    return session.run(None, {session.get_inputs()[0].name: x[None, None]})[0][0, 0]


def run_tiles(session, x, tile, halo):
    """`tile` and `halo` must suit the network: its divisor, its receptive field."""
    out = np.empty_like(x)
    height, width = x.shape
    for y in range(0, height, tile):
        for x0 in range(0, width, tile):
            top, left = max(y - halo, 0), max(x0 - halo, 0)
            part = x[top:y + tile + halo, left:x0 + tile + halo]
            got = run_whole(session, np.ascontiguousarray(part))
            out[y:y + tile, x0:x0 + tile] = got[y - top:y - top + tile, x0 - left:x0 - left + tile]
    return out


def to_dtype(y, dtype):
    if dtype == "float32":
        return y
    limits = np.iinfo(dtype)
    return np.clip(np.rint(y), limits.min, limits.max).astype(dtype)


def compare(got, want):
    """Relative L2 distance of another's result, as a line of JSON; never in a timed run."""
    want = want.astype(np.float64)
    off = np.linalg.norm(got.astype(np.float64) - want) / max(np.linalg.norm(want), 1e-30)
    print(json.dumps({"relative_l2": float(off)}))


def main():
    args = arguments()
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.log_severity_level = 3
    session = ort.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    image = tifffile.imread(args.source)
    scale, offset = affine(image, args.normalize)
    x = image.astype(np.float32) * np.float32(scale) + np.float32(offset)
    y = run_tiles(session, x, args.tile, args.halo) if args.tile else run_whole(session, x)
    if args.normalize.startswith("percentile"):
        y = (y - np.float32(offset)) / np.float32(scale)
    tifffile.imwrite(args.target, to_dtype(y, args.dtype))
    if args.compare:
        compare(tifffile.imread(args.compare), tifffile.imread(args.target))


if __name__ == "__main__":
    try:
        main()
    except (MemoryError, ort.capi.onnxruntime_pybind11_state.RuntimeException,
            ort.capi.onnxruntime_pybind11_state.Fail) as e:
        if "alloc" not in str(e).lower() and not isinstance(e, MemoryError):
            raise
        print("does not fit:", e, file=sys.stderr)
        sys.exit(71)
