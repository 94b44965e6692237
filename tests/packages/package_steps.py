#!/usr/bin/env python3
"""Each step of processing that descriptions of bioimage.io ask for, against its formula written down here.

    package_steps.py TEGULA SOURCE

A network that gives what it gets stands between the steps, so what comes out is what they make of the image. Both
formats, several types of pixels, channels, planes and volumes."""
import math
import os
import struct
import sys
import tempfile

import package_help as h

H, W = 37, 45


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


# ---- What steps do, on a list of channels that are lists of numbers ---------------------------

def rank_linear(x, q):
    s, at = sorted(x), (len(x) - 1) * q / 100
    lo = math.floor(at)
    return s[lo] + (s[min(lo + 1, len(s) - 1)] - s[lo]) * (at - lo)


def rank_value(x, q):
    return sorted(x)[max(0, math.ceil(len(x) * (q / 100) - 1))]


def mean_std(x):
    m = math.fsum(x) / len(x)
    return m, math.sqrt(math.fsum((v - m) ** 2 for v in x) / len(x))


def groups(raw, by_channel):
    """For each channel, what is measured with it."""
    return raw if by_channel else [[v for c in raw for v in c]] * len(raw)


def listed(v, n):
    return v if isinstance(v, list) else [v] * n


def trunc(v):
    return float(math.trunc(v))


def apply_step(name, k, x, raw, by_channel, whole):
    n = len(x)
    of = groups(whole if whole else raw, by_channel)
    eps = k.get("eps", 1e-6)
    if name == "scale_linear":
        g, o = listed(k.get("gain", 1), n), listed(k.get("offset", 0), n)
        return [[v * g[c] + o[c] for v in x[c]] for c in range(n)]
    if name == "fixed_zero_mean_unit_variance":
        m, s = listed(k["mean"], n), listed(k["std"], n)
        return [[(v - m[c]) / (s[c] + eps) for v in x[c]] for c in range(n)]
    if name == "zero_mean_unit_variance":
        return [[(v - m) / (s + eps) for v in c] for c, (m, s) in zip(x, map(mean_std, of))]
    if name == "scale_range":
        lo = [rank_linear(g, k.get("min_percentile", 0)) for g in of]
        hi = [rank_linear(g, k.get("max_percentile", 100)) for g in of]
        return [[(v - lo[c]) / (hi[c] - lo[c] + eps) for v in x[c]] for c in range(n)]
    if name == "clip":
        rank = rank_linear if whole or "axes" not in k else rank_value
        out = []
        for c in range(n):
            lo = rank(of[c], k["min_percentile"]) if "min_percentile" in k else k.get("min", -math.inf)
            hi = rank(of[c], k["max_percentile"]) if "max_percentile" in k else k.get("max", math.inf)
            out.append([min(max(v, lo), hi) for v in x[c]])
        return out
    if name == "binarize":
        t = listed(k["threshold"], n)
        return [[float(f32(v) > f32(t[c])) for v in x[c]] for c in range(n)]
    if name == "sigmoid":
        return [[1 / (1 + math.exp(-v)) for v in c] for c in x]
    if name == "softmax":
        out = [[] for _ in x]
        for pixel in zip(*x):
            top = max(pixel)
            e = [math.exp(v - top) for v in pixel]
            for c in range(n):
                out[c].append(e[c] / sum(e))
        return out
    if name == "ensure_dtype":
        return [[trunc(v) for v in c] for c in x] if not k["dtype"].startswith("float") else x
    raise ValueError(name)


def match(x, raw, k):
    """scale_mean_variance: (x - mean) / (std + eps) * (ref_std + eps) + ref_mean."""
    eps = k.get("eps", 1e-6)
    m, s = mean_std([v for c in x for v in c])
    rm, rs = mean_std([v for c in raw for v in c])
    return [[(v - m) / (s + eps) * (rs + eps) + rm for v in c] for c in x]


YX, ALL = {"axes": ["y", "x"]}, {"axes": ["channel", "y", "x"]}

# (steps before, steps behind, channels, type of pixels, statistics of each channel)
CASES5 = [
    ([("scale_linear", {"gain": 0.004, "offset": -0.25})], [], 1, "u1", 0),
    ([("scale_linear", {"gain": [0.5, 2.0, -1.0], "offset": [1, 2, 3], "axis": "channel"})], [], 3, "u2", 0),
    ([("zero_mean_unit_variance", YX)], [], 1, "u2", 0),
    ([("zero_mean_unit_variance", None)], [], 1, "f4", 0),
    ([("zero_mean_unit_variance", {**YX, "eps": 0.1})], [], 3, "u1", 1),
    ([("zero_mean_unit_variance", ALL)], [], 3, "u2", 0),
    ([("fixed_zero_mean_unit_variance", {"mean": 800.5, "std": 33.25})], [], 1, "u2", 0),
    ([("fixed_zero_mean_unit_variance", {"mean": [10, 20], "std": [3, 4], "axis": "channel"})], [], 2, "u1", 0),
    ([("scale_range", {**YX, "min_percentile": 1, "max_percentile": 99.8})], [], 1, "u2", 0),
    ([("scale_range", {**YX, "min_percentile": 5, "max_percentile": 90})], [], 2, "f4", 1),
    ([("scale_range", {})], [], 1, "i2", 0),
    ([("scale_range", {**ALL, "min_percentile": 2, "max_percentile": 98}), ("clip", {"min": 0.0, "max": 1.0})], [], 2, "u1", 0),
    ([("scale_range", {**YX, "max_percentile": 99}), ("clip", {"max": 0.75})], [], 2, "u2", 1),
    ([("clip", {"min": 300, "max": 900}), ("zero_mean_unit_variance", YX)], [], 1, "u2", 0),
    ([("clip", {"min_percentile": 3, "max_percentile": 97.5, **YX})], [], 1, "u2", 0),
    ([("clip", {"min_percentile": 3, "max_percentile": 97.5})], [], 1, "u2", 0),
    ([("clip", {"min_percentile": 1, **YX}), ("zero_mean_unit_variance", YX)], [], 2, "f4", 1),
    ([("scale_linear", {"gain": -2.0}), ("clip", {"min_percentile": 3, "max_percentile": 97, **YX}),
      ("scale_linear", {"offset": 5.0})], [], 1, "u1", 0),
    ([("clip", {"min_percentile": 10, "max_percentile": 90, **YX}), ("scale_range", YX)], [], 1, "f4", 0),
    ([("binarize", {"threshold": 800})], [], 1, "u2", 0),
    ([("binarize", {"threshold": [40, 60], "axis": "channel"})], [], 2, "u1", 0),
    ([("scale_linear", {"gain": 0.01}), ("sigmoid", None)], [], 1, "u1", 0),
    ([("zero_mean_unit_variance", ALL), ("softmax", {"axis": "channel"})], [], 3, "u2", 0),
    ([("zero_mean_unit_variance", YX), ("scale_linear", {"gain": 37.5, "offset": 3.0}), ("ensure_dtype", {"dtype": "int16"})], [], 1, "u2", 0),
    ([("ensure_dtype", {"dtype": "float32"}), ("scale_linear", {"gain": 2.0})], [], 1, "u1", 0),
    ([("ensure_dtype", {"dtype": "float32"}), ("zero_mean_unit_variance", YX), ("ensure_dtype", {"dtype": "float32"})], [], 1, "u2", 0),
    ([], [("sigmoid", None)], 1, "f4", 0),
    ([("scale_linear", {"gain": 0.02})], [("softmax", {})], 3, "u1", 0),
    ([("zero_mean_unit_variance", YX)], [("sigmoid", None), ("binarize", {"threshold": 0.5})], 1, "u2", 0),
    ([], [("binarize", {"threshold": [30, 50, 70], "axis": "channel"})], 3, "u1", 0),
    ([], [("clip", {"min": 20, "max": 60.5})], 1, "u1", 0),
    ([], [("scale_linear", {"gain": 0.125, "offset": 2})], 1, "i2", 0),
    ([], [("scale_linear", {"gain": [1, 3], "offset": [-1, 0.5], "axis": "channel"})], 2, "u1", 0),
    ([], [("fixed_zero_mean_unit_variance", {"mean": 100, "std": 7})], 1, "u1", 0),
    ([], [("scale_linear", {"gain": 1.7}), ("ensure_dtype", {"dtype": "uint16"})], 1, "u2", 0),
    ([], [("zero_mean_unit_variance", YX)], 1, "u2", 0),
    ([], [("zero_mean_unit_variance", YX), ("clip", {"min": -1, "max": 1})], 2, "u1", 1),
    ([("scale_linear", {"gain": 0.5})], [("scale_range", {"reference_tensor": "raw", **YX, "min_percentile": 2, "max_percentile": 98})], 1, "u2", 0),
    ([("scale_range", YX)], [("sigmoid", None), ("scale_mean_variance", {"reference_tensor": "raw", **YX})], 1, "u2", 0),
]


def four(steps):
    """The same in format 0.4; None: it has no such step."""
    out = []
    for name, k in steps:
        k = dict(k or {})
        axes = k.pop("axes", None)
        measured = name in ("zero_mean_unit_variance", "scale_range", "scale_mean_variance")
        if name in ("ensure_dtype", "softmax") or any("percentile" in x for x in k) and name == "clip":
            return None
        if name == "clip" and len(k) != 2 or name == "binarize" and isinstance(k["threshold"], list):
            return None
        if measured:
            if axes is None:
                return None
            k.update(mode="per_sample", axes="".join(a[0] for a in axes))
        if name == "fixed_zero_mean_unit_variance":
            name = "zero_mean_unit_variance"
            k.update(mode="fixed", axes="yx" if k.pop("axis", None) else "cyx")
        if name == "scale_linear" and k.pop("axis", None):
            k["axes"] = "yx"
        out.append((name, k or None))
    return out


def computed(pre, post, raw, by_channel, whole=None):
    x = raw
    for name, k in pre:
        x = apply_step(name, k or {}, x, raw, by_channel, whole)
    x = [[f32(v) for v in c] for c in x]
    for name, k in post:
        if name == "scale_mean_variance":
            x = match(x, raw, k)
        elif (k or {}).get("reference_tensor"):
            x = apply_step(name, k, x, raw, by_channel, whole)
        else:
            x = apply_step(name, k or {}, x, x, by_channel, whole)
    return x


def compare(what, got, want, kind):
    flat = [v for c in want for v in c]
    h.expect(len(got) == len(flat), f"{what}: {len(got)} numbers, not {len(flat)}")
    size = max(1.0, max(abs(v) for v in flat))
    worst = max((abs(a - b) for a, b in zip(got, flat)), default=0)
    whole = all(v == math.trunc(v) for v in flat) and len(set(flat)) < 3
    # Sums of steps in float32: some units of the last place of the largest number on the way. Truth values are the same.
    h.expect(worst <= (0 if whole else 4e-6 * size), f"{what}: {worst} apart, of numbers up to {size}")


def one_case(folder, number, case):
    pre, post, channels, kind, by_channel = case
    raw = [h.draw(H * W, kind, 100 * number + c) for c in range(channels)]
    image = os.path.join(folder, "in.tif")
    h.write_tiff(image, raw, H, W, kind, channels=channels)
    net = h.same(channels)
    want = computed(pre, post, [[float(v) for v in c] for c in raw], by_channel)
    for version, describe, steps in ((5, h.describe5, lambda s: s), (4, h.describe4, four)):
        before, behind = steps(pre), steps(post)
        if before is None or behind is None:
            continue
        where = h.write_package(os.path.join(folder, f"p{version}_{number}"), describe(before, behind, channels, data=net), net)
        got = h.result_of(where, image, folder)
        compare(f"0.{version}, case {number}: {before} {behind}, {kind}", got[1], want, got[0])
        last = post[-1][0] if post else ""
        kinds = {"binarize": "|u1", "ensure_dtype": "<u2"}
        h.expect(got[0] == kinds.get(last, "<f4"), f"case {number}: written as {got[0]}")


def scopes_of_statistics(folder):
    """per_sample measures each plane, per_dataset all of them; a volume is one sample."""
    planes = [h.draw(H * W, "u2", 7 + i) for i in range(3)]
    planes = [[v * (i + 1) for v in p] for i, p in enumerate(planes)]
    image = os.path.join(folder, "stack.tif")
    h.write_tiff(image, planes, H, W, "u2", slices=3)
    net = h.same()
    z = "zero_mean_unit_variance"
    lone = [apply_step(z, {}, [p], [p], 0, None)[0] for p in planes]
    everything = [[v for p in planes for v in p]]
    together = [apply_step(z, {}, [p], [p], 0, everything)[0] for p in planes]
    for steps, describe, want in (([(z, YX)], h.describe5, lone), ([(z, {"axes": ["batch", "y", "x"]})], h.describe5, together),
                                  ([(z, None)], h.describe5, together), ([(z, {"mode": "per_sample", "axes": "yx"})], h.describe4, lone),
                                  ([(z, {"mode": "per_dataset", "axes": "yx"})], h.describe4, together)):
        where = h.write_package(os.path.join(folder, "scope"), describe(steps, data=net), net)
        compare(f"planes, {steps}", h.result_of(where, image, folder)[1], want, "")
    net = h.same(depth=True)
    where = h.write_package(os.path.join(folder, "volume"), h.describe5([(z, {"axes": ["z", "y", "x"]})], space="zyx", data=net), net)
    compare("a volume", h.result_of(where, image, folder)[1], together, "")
    where = h.write_package(os.path.join(folder, "behind"), h.describe5([], [(z, None)], data=h.same()), h.same())
    code, _, err = h.run("run", "-y", "-m", where, image, "-o", os.path.join(folder, "o.tif"))
    h.expect(code == 65 and "--planes" in err, f"results of all planes together: {code}: {err}")


def cuts_change_nothing(folder, source):
    """The project's own network as a package: in bands, and by its own way of saying the same."""
    with open(os.path.join(source, "models", "tegula_denoise.onnx"), "rb") as f:
        net = f.read()
    image = os.path.join(folder, "in.tif")
    h.write_tiff(image, [h.draw(230 * 180, "u2", 5)], 230, 180, "u2")
    says = h.describe5([("scale_range", {**YX, "min_percentile": 1, "max_percentile": 99.8})], [], size={"min": 4, "step": 4}, data=net)
    where = h.write_package(os.path.join(folder, "denoise"), says, net)
    whole = h.result_of(where, image, folder)
    h.expect(h.result_of(where, image, folder, "--tile", "64x64") == whole, "tiles change the result")
    h.expect(h.result_of(where, image, folder, "--threads", "1", "--isa", "portable")[0] == "<f4", "a portable run")
    plain = h.result_of(os.path.join(source, "models", "tegula_denoise.onnx"), image, folder, "--normalize", "percentile:1,99.8", "--dtype", "float32",
                        "--descriptor", raw_descriptor(folder))
    worst = max(abs(a - b) for a, b in zip(whole[1], plain[1]))
    h.expect(worst < 1e-5, f"--normalize percentile of the same network: {worst}")
    code, _, err = h.run("verify", "-m", where, image)
    h.expect(code == 0, f"verify: {code}: {err}")
    steps = h.write_package(os.path.join(folder, "steps"), h.describe5([("scale_linear", {"gain": 3.0})], [("sigmoid", None)], data=net), net)
    none = h.result_of(steps, image, folder, "--descriptor", raw_descriptor(folder))
    bare_net = h.result_of(os.path.join(steps, "net.onnx"), image, folder, "--descriptor", raw_descriptor(folder))
    h.expect(none == bare_net, "another description than the package's: nothing of its own is done")
    h.expect(h.result_of(os.path.join(steps, "net.onnx"), image, folder, "--descriptor", steps) == h.result_of(steps, image, folder),
             "--descriptor PACKAGE")
    bare = h.result_of(where, image, folder, "--normalize", "percentile:1,99.8")
    h.expect(max(abs(a - b) for a, b in zip(bare[1], whole[1])) < 1e-5, "--normalize in place of the description's")


def arrays_and_stops(folder):
    """An array has no numbers of its own to be normalised by; a killed run goes on, with the same description alone."""
    net, image = h.same(), os.path.join(folder, "stack.tif")
    where = h.write_package(os.path.join(folder, "stops"), h.describe5([("zero_mean_unit_variance", YX)], data=net), net)
    out = os.path.join(folder, "o.tif")
    h.expect(h.run("copy", "-y", image, "-o", os.path.join(folder, "in.npy"))[0] == 0, "an array")
    code, _, err = h.run("run", "-y", "-m", where, os.path.join(folder, "in.npy"), "-o", os.path.join(folder, "o.npy"))
    h.expect(code == 65 and "--normalize none" in err, f"an array: {code}: {err}")
    whole = h.result_of(where, image, folder)
    for at in range(60, 3, -1):  # the last moment at which it can be killed
        for name in os.listdir(folder):
            if name.startswith("o.tif"):
                os.remove(os.path.join(folder, name))
        os.environ["TEGULA_FAIL_IO"], os.environ["TEGULA_SYNC_TILES"] = f"{at}:kill", "1"
        code, _, err = h.run("run", "-m", where, image, "-o", out, "--threads", "1")
        del os.environ["TEGULA_FAIL_IO"], os.environ["TEGULA_SYNC_TILES"]
        if code == -9 and os.path.exists(out + ".partial"):
            break
    h.expect(code == -9, f"a kill: {code}: {err}")
    other = h.write_package(os.path.join(folder, "other"), h.describe5([("zero_mean_unit_variance", YX)], [("sigmoid", None)], data=net), net)
    code, _, err = h.run("run", "-m", other, image, "-o", out)
    h.expect(code != 0 and "interrupted" in err, f"another description goes on: {code}: {err}")
    code, _, err = h.run("run", "-m", where, image, "-o", out)
    h.run("copy", "-y", out, "-o", os.path.join(folder, "out.npy"))
    h.expect(code == 0 and h.read_npy(os.path.join(folder, "out.npy"))[1] == whole[1], f"a killed run: {code}: {err}")


def steps_of_a_second_input(folder):
    """Constants are applied to any input; numbers of what is read only to the first, and the others are refused by name."""
    axes = ["N", 1, "H", "W"]
    net = h.model([h.node("Add", ["raw", "more"], ["out"])], [], [h.port("raw", axes), h.port("more", axes)], [h.port("out", axes)])
    for name, kwargs, code in (("scale_linear", {"gain": 3.0, "offset": 1.0}, 0), ("zero_mean_unit_variance", YX, 65)):
        says = h.describe5(data=net)
        says["inputs"].append({"id": "more", "axes": h.axes5(1, "yx"), "data": {"type": "float32"}, "preprocessing": [{"id": name, "kwargs": kwargs}]})
        where, a, out = h.write_package(os.path.join(folder, "two_" + name), says, net), os.path.join(folder, "two.npy"), os.path.join(folder, "sum.npy")
        with open(a, "wb") as f:
            head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2, 3), }"
            f.write(b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117) + b"\n" + struct.pack("<6f", *range(6)))
        is_, _, err = h.run("run", "-y", "-m", where, "--input", "raw=" + a, "--input", "more=" + a, "-o", out)
        h.expect(is_ == code and (code == 0 or '"more": zero_mean_unit_variance' in err), f"{name} of a second input: {is_}: {err}")
        if code == 0:
            h.expect(h.read_npy(out)[1] == [4.0 * v + 1 for v in range(6)], f"{name} of a second input: {h.read_npy(out)}")
        else:
            is_, _, err = h.run("run", "-y", "-m", where, "--input", "raw=" + a, "--input", "more=" + a, "-o", out, "--normalize", "none")
            h.expect(is_ == 0 and h.read_npy(out)[1] == [2.0 * v for v in range(6)], f"bare: {is_}: {err}")


def raw_descriptor(folder):
    path = os.path.join(folder, "raw.json")
    with open(path, "w", encoding="ascii") as f:
        f.write('{"output": "raw"}')
    return path


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        for number, case in enumerate(CASES5):
            one_case(folder, number, case)
        scopes_of_statistics(folder)
        arrays_and_stops(folder)
        steps_of_a_second_input(folder)
        cuts_change_nothing(folder, sys.argv[2])
    print(f"{len(CASES5)} cases of steps, {h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
