#!/usr/bin/env python3
"""Many images in one process: none of them, and nothing between two of them, takes more than what was planned for the images.

    each.py TEGULA MODELS

The reservation of an image waits for the next one's, so the process is watched from outside all the while. 77: no sample
models."""
import json
import os
import sys
import tempfile

import tiffmade
import watch

ROWS = ((500, 500), (500, 500), (200, 300), (600, 700), (500, 500))


def main():
    tegula, models = sys.argv[1:]
    model = os.path.join(models, "fmd_noise2noise_unet", "model.onnx")
    if not os.path.exists(model):
        print("skipped: no " + model)
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for i, (h, w) in enumerate(ROWS):
            names.append(os.path.join(folder, f"{i}.tif"))
            tiffmade.fill(tiffmade.Made(names[-1], w, h, bytes_per=2), i)
        out = os.path.join(folder, "out")
        r = watch.run([tegula, "run", "-m", model, *names, "-o", out + "/", "--normalize", "none", "--threads", "1", "-q"])
        if r.code:
            print(f"WRONG: exit {r.code}: {r.stderr}")
            return 1
        planned = []
        for name in names:
            with open(os.path.join(out, os.path.basename(name) + ".tegula.json"), encoding="utf-8") as f:
                receipt = json.load(f)
            measured, planned = receipt["measured_peak_bytes"], [*planned, receipt["predicted_peak_bytes"]]
            print(f"{os.path.basename(name)}: {measured / planned[-1]:.3f} of {planned[-1]} bytes")
            wrong += measured > planned[-1]
        print(f"from outside: {r.peak / max(planned):.3f} of the largest plan, {r.seconds:.1f} s, longest gap {1000 * r.gap:.0f} ms")
        wrong += not 0.9 * max(planned) < r.peak <= max(planned)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
