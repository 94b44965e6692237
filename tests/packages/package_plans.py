#!/usr/bin/env python3
"""nnU-Net's plans.json, named or beside the network: each scheme of normalisation against its formula, what is warned of, what is refused.

    package_plans.py TEGULA

Plans as nnU-Net version 2 writes them, cut to what matters."""
import json
import os
import sys
import tempfile

import package_help as h
from package_steps import compare, mean_std

H, W, N = 33, 41, 4


def plans(schemes, three=True, **more):
    def config(n):
        return {"data_identifier": "x", "preprocessor_name": "DefaultPreprocessor", "batch_size": 2, "patch_size": [4, 32, 32][3 - n:],
                "spacing": [0.5, 0.1, 0.1][3 - n:], "normalization_schemes": schemes, "use_mask_for_norm": [False] * len(schemes)}
    says = {"dataset_name": "Dataset042_made", "plans_name": "nnUNetPlans", "transpose_forward": [0, 1, 2], "transpose_backward": [0, 1, 2],
            "configurations": {"2d": config(2)},
            "foreground_intensity_properties_per_channel": {
                str(c): {"max": 4000, "mean": 700.25 + c, "median": 600, "min": 0, "percentile_00_5": 300.5, "percentile_99_5": 1500.5 + c,
                         "std": 210.5} for c in range(len(schemes))}}
    if three:
        says["configurations"]["3d_fullres"] = config(3)
        says["configurations"]["3d_cascade_fullres"] = {"inherits_from": "3d_fullres", "previous_stage": "3d_lowres"}
    says.update(more)
    return says


def scaled(name, x, c):
    m, s = mean_std(x)
    if name == "ZScoreNormalization":
        return [(v - m) / max(s, 1e-8) for v in x]
    if name == "RescaleTo01Normalization":
        lo = min(x)
        return [(v - lo) / max(max(x) - lo, 1e-8) for v in x]
    if name == "CTNormalization":
        return [(min(max(v, 300.5), 1500.5 + c) - 700.25 - c) / 210.5 for v in x]
    return [v / 255 for v in x] if name == "RGBTo01Normalization" else [float(v) for v in x]


def write(path, says):
    with open(path, "w", encoding="ascii") as f:
        json.dump(says, f)
    return path


def each_scheme(folder):
    z, r, ct, rgb, no = ("ZScoreNormalization", "RescaleTo01Normalization", "CTNormalization", "RGBTo01Normalization", "NoNormalization")
    image, net = os.path.join(folder, "in.tif"), os.path.join(folder, "net.onnx")
    for number, schemes in enumerate(([z], [r], [ct], [rgb], [no], [z, z], [r, r, r], [ct, no, rgb])):
        n = len(schemes)
        for depth in (False, True):
            planes = [h.draw(H * W, "u2", 40 * number + i) for i in range(n * N)]  # of each slice its channels
            planes = [[v + 100 * (i // n) for v in p] for i, p in enumerate(planes)]
            h.write_tiff(image, planes, H, W, "u2", channels=n, slices=N)
            with open(net, "wb") as f:
                f.write(h.same(n, depth))
            named = write(os.path.join(folder, "named.json"), plans(schemes))
            channel = [[v for i in range(N) for v in planes[i * n + c]] for c in range(n)]
            done = [scaled(s, x, c) for c, (s, x) in enumerate(zip(schemes, channel))]
            size = H * W
            want = [done[c][i * size:(i + 1) * size] for i in range(N) for c in range(n)]  # ZCYX
            compare(f"{schemes}, {'volume' if depth else 'planes'}", h.result_of(net, image, folder, "--descriptor", named)[1], want, "")


def beside_and_warned_of(folder):
    image, net = os.path.join(folder, "in.tif"), os.path.join(folder, "net.onnx")
    h.write_tiff(image, [h.draw(H * W, "u2", 1)], H, W, "u2")
    with open(net, "wb") as f:
        f.write(h.same())
    plain = h.result_of(net, image, folder)[1]
    write(os.path.join(folder, "plans.json"), plans(["ZScoreNormalization"], three=False))
    code, _, err = h.run("plan", "-m", net, image)
    for word in ("spacing of 0.1", "32x32", "mirrored"):
        h.expect(code == 0 and word in err, f"plans beside the network: no {word!r}: {code}: {err}")
    h.expect(h.result_of(net, image, folder)[1] != plain, "plans beside the network are taken")
    write(os.path.join(folder, "net.json"), {"normalize": "none", "output": "raw"})
    h.expect(h.result_of(net, image, folder)[1] == plain, "NET.json is the network's own")
    os.remove(os.path.join(folder, "net.json"))
    write(os.path.join(folder, "plans.json"), {"of": "somebody else"})
    code, _, err = h.run("plan", "-m", net, image)
    h.expect(code == 65 and "plans.json" in err, f"other plans: {code}: {err}")
    os.remove(os.path.join(folder, "plans.json"))


def refused(folder):
    image, net, named = (os.path.join(folder, n) for n in ("in.tif", "net.onnx", "named.json"))
    z = ["ZScoreNormalization"]
    turned, masked, no_patch, two = plans(z), plans(z), plans(z), plans(z)
    turned["transpose_forward"] = [2, 0, 1]
    masked["configurations"]["2d"]["use_mask_for_norm"] = [True]
    no_patch["configurations"]["2d"]["patch_size"] = [32]
    two["configurations"]["2d"]["normalization_schemes"] = ["NoNormalization"]
    truthy, no_list, no_axes = plans(z), plans(z), plans(z)
    truthy["configurations"]["2d"]["use_mask_for_norm"] = [1]
    no_list["configurations"]["2d"]["use_mask_for_norm"] = True
    no_axes["transpose_forward"] = "021"
    three = plans(z)
    del three["configurations"]["2d"]
    ct = plans(["CTNormalization"])
    del ct["foreground_intensity_properties_per_channel"]
    for says, word in ((turned, "transpose"), (masked, "mask"), (no_patch, "patch"), (two, "different ways"), (truthy, "neither true nor false"),
                       (no_list, "no list"), (no_axes, "no list of axes"), (three, "2 axes"), (ct, "percentile"),
                       (plans(["MyNormalization"]), "MyNormalization"), (plans(z * 2), "2 channels"),
                       (plans(["ZScoreNormalization", "CTNormalization"]), "of one channel")):
        write(named, says)
        code, _, err = h.run("plan", "-m", net, image, "--descriptor", named)
        h.expect(code == 65 and word in err and "named.json" in err or word in err and code == 65 and "net.onnx" in err, f"{word}: {code}: {err}")


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        each_scheme(folder)
        beside_and_warned_of(folder)
        refused(folder)
    print(f"{h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
