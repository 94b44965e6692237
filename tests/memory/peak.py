#!/usr/bin/env python3
"""Does the plan tell the truth? Runs the command for each model and budget and compares the peak
it predicted with the peak seen from outside: 1.00 <= predicted/measured <= 1.10, and measured
within the budget.

    peak.py TEGULA MODELS OWN_MODEL [--long]

MODELS is the folder of the sample models (absent ones are left out), OWN_MODEL our network. A
budget that the command refuses (exit 71) is fine only below 512 MiB. Sizes are chosen so that
each run takes memory worth the name and few seconds; --long takes larger images, so that 2 GiB
is filled too.
"""
import json
import os
import subprocess
import sys
import tempfile

import tiffmade
import watch

MIB = 1 << 20
# name, channels, (height, width) of the short run, of the long run
MODELS = [
    ("unet2d_nuclei_broad", 1, (1024, 2048), (1536, 6144)),
    ("fmd_noise2noise_unet", 1, (384, 1024), (1536, 4096)),
    ("kair_dncnn25", 1, (256, 1024), (1024, 4096)),
    ("span_x2_nomosuni", 3, (256, 768), (768, 4096)),
    ("compact_x2_nomosuni", 3, (192, 768), (768, 4096)),
    ("fsrcnn_x2", 1, (1024, 4096), (4096, 8192)),
    ("super_resolution_10", 1, (512, 2048), (2048, 4096)),
    ("sci_low_light", 3, (1024, 4096), (4096, 8192)),
    # Whole image only, but for deeplab, which takes 257x257 pixels.
    ("waifu2x_cunet_n1_x2", 3, (256, 384), (320, 512)),
    ("fns_candy_nc16", 3, (448, 640), (1024, 1536)),
    ("mosaic_nc8", 3, (640, 896), (1280, 2048)),
    ("nanoflownet", 2, (512, 768), (2048, 3072)),
    ("iat_lol_v1", 3, (256, 352), (448, 608)),
    ("yolox_nano", 3, (640, 960), (1920, 2560)),
    ("deeplab_v3", 3, (257, 257), (200, 257)),
]
ARRAYS = ("yolox_nano",)  # what they give is no image
SHORT = {("unet2d_nuclei_broad", 192), ("fmd_noise2noise_unet", 512), ("kair_dncnn25", 192),
         ("span_x2_nomosuni", 512), ("compact_x2_nomosuni", 192), ("fsrcnn_x2", 512),
         ("super_resolution_10", 192), ("sci_low_light", 2048), ("own", 512),
         ("waifu2x_cunet_n1_x2", 512), ("fns_candy_nc16", 512), ("mosaic_nc8", 512),
         ("nanoflownet", 192), ("iat_lol_v1", 512), ("yolox_nano", 512), ("deeplab_v3", 192)}
# What else takes memory: encoders and their state, statistics, stacks of many threads.
WAYS = [["--compress", "zstd", "--threads", "8"], ["--compress", "deflate", "--dtype", "uint8"],
        ["--normalize", "percentile:1,99.8"], ["--io", "read"], ["--tile", "256"]]


def one(tegula, model, image, budget, tmp, more):
    is_array = os.path.basename(os.path.dirname(model)) in ARRAYS
    out = os.path.join(tmp, "out.npy" if is_array else "out.tif")
    job = ["-m", model, image, "-o", out, "-y", "--json", "--ram", f"{budget}MiB"] + more
    r = watch.run([tegula, "run"] + job)
    p = subprocess.run([tegula, "plan"] + job, stdin=subprocess.DEVNULL, capture_output=True)
    r.plan = json.loads(p.stdout.splitlines()[-1]) if p.returncode == 0 and p.stdout else {}
    for path in (out, out + ".tegula.json"):
        if os.path.exists(path):
            os.remove(path)
    return r


def judge(name, budget, r):
    """(row of the table, what is wrong or None)"""
    if r.code == 71 and budget < 512:
        return f"{name:24}{budget:6} MiB   refused: does not fit", None
    if r.code != 0 or not r.done:
        return f"{name:24}{budget:6} MiB   exit {r.code}: {r.stderr.strip()[-200:]}", "failed"
    told, seen = r.done["predicted_peak_bytes"], r.peak
    own = r.done["measured_peak_bytes"]
    ratio = told / seen
    row = (f"{name:24}{budget:6} MiB {told / MIB:10.2f} {seen / MIB:10.2f} {own / MIB:10.2f} "
           f"{ratio:7.3f} {r.seconds:7.1f} s")
    if seen > budget * MIB:
        return row, "measured is above the budget"
    if not 1.0 <= ratio <= 1.10:
        return row, "predicted/measured is outside 1.00..1.10"
    # The program itself is counted in steps of 512 KiB, and plan and run may be on two sides of one: engine/settings/machine.c.
    promised = r.plan.get("peak_bytes", 0)
    if promised < seen or promised > max(1.10 * seen, told + MIB // 2 + MIB // 256):
        return row, f"plan promised {r.plan.get('peak_bytes', 0) / MIB:.2f} MiB"
    if r.seconds > 0.2 and own < 0.97 * seen:
        return row, "the program's own measurement is more than 3 % below ours"
    return row, None


def compressed(tegula, path, tmp):
    """The same image as tiles of 256 in zstd: the reader's decoders and caches come into play."""
    out = os.path.join(tmp, "packed.tif")
    r = subprocess.run([tegula, "copy", path, "-o", out, "--compress", "zstd", "-q"],
                       stdin=subprocess.DEVNULL, capture_output=True)
    return out if r.returncode == 0 else None


def one_strip(tegula, model, made, tmp):
    """A plane in one compressed strip, with little memory: (name, budget, run, image, options)."""
    path = tiffmade.pack(made, os.path.join(tmp, "strip.tif"))
    for more in ([], ["--scratch", tmp]):
        r = one(tegula, model, path, 40, tmp, more)
        if r.code == 0 and r.plan.get("scratch", {}).get("used") != bool(more):
            r.code = -1  # the row is about scratch
        yield r, os.path.basename(path), more


def main():
    tegula, models, own = sys.argv[1:4]
    long_run = "--long" in sys.argv
    only = os.environ.get("TG_PEAK_ONLY")
    bad = ran = 0
    print(f"{'model':24}{'budget':>10} {'predicted':>10} {'measured':>10} {'by itself':>10} "
          f"{'ratio':>7} {'time':>9}   (MiB)")
    with tempfile.TemporaryDirectory() as tmp:
        for name, channels, small, large in MODELS + [("own", 1, (1024, 2048), (2048, 8192))]:
            model = own if name == "own" else os.path.join(models, name, "model.onnx")
            if not os.path.exists(model) or (only and only not in name):
                continue
            height, width = large if long_run else small
            made = tiffmade.Made(os.path.join(tmp, "in.tif"), width, height, channels)
            tiffmade.fill(made)
            for budget in (192, 512, 2048):
                if not long_run and (name, budget) not in SHORT:
                    continue
                cases = [(made.path, [])]
                if (name, budget) == ("own", 512):
                    cases += [(made.path, way) for way in WAYS]
                    packed = compressed(tegula, made.path, tmp)
                    cases += [(packed, []), (packed, ["--io", "read"])] if packed else []
                for image, more in cases:
                    r = one(tegula, model, image, budget, tmp, more)
                    row, wrong = judge(name, budget, r)
                    print(row, os.path.basename(image), *more,
                          f"   WRONG: {wrong}" if wrong else "", flush=True)
                    ran += 1
                    bad += wrong is not None
            if name != "own":
                continue
            for r, image, more in one_strip(tegula, model, made, tmp):
                row, wrong = judge(name, 40, r)
                wrong = wrong or ("refused" if r.code else None)
                print(row, image, *more[:1], f"   WRONG: {wrong}" if wrong else "", flush=True)
                ran += 1
                bad += wrong is not None
    if not ran:
        print("skipped: no model found")
        return 77
    print(f"{ran} runs, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
