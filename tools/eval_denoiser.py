# SPDX-License-Identifier: Apache-2.0
"""Compare tegula's denoiser with classical filters on held-out synthetic images.

  python tools/eval_denoiser.py [--model models/tegula_denoise.onnx] [--images 60]

Prints mean PSNR of the noisy images, of Gaussian and median filters and of the
network. The filters are given the best parameter twice over: the one best for
the whole set, and, which no real user could know, the one best for each image
by itself. The network must beat the noisy images by 4 dB and the better of the
filters, tuned image by image, by 1 dB; otherwise the exit status is 1.

PSNR is 20 log10(range / rmse), where range is the brightest minus the darkest
pixel of the noiseless image. Each mean is the mean of the images' PSNRs.
Held-out images come from a seed family that training refuses to use.
Needs numpy, scipy and onnxruntime.
"""
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import synth  # noqa: E402

HELD_OUT_SEED = 777000777       # train_denoiser.py refuses this seed
SIGMAS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0)
SIZES = (3, 5, 7, 9, 11)
NEED_OVER_NOISY = 4.0
NEED_OVER_FILTER = 1.0
BINS = ((0, 30), (30, 110), (110, 1e9))     # photons in the brightest pixel


def psnr(estimate, truth):
    rmse = np.sqrt(np.mean((estimate.astype(np.float64) - truth) ** 2))
    return float(20 * np.log10((float(truth.max()) - float(truth.min())) / max(rmse, 1e-12)))


def held_out(index, size):
    """Image number index: kind, camera, noisy counts and expected counts."""
    rng = np.random.default_rng([HELD_OUT_SEED, index])
    clean, kind = synth.clean_image(rng, size, synth.KINDS[index % len(synth.KINDS)])
    camera = synth.draw_camera(rng)
    noisy, expected = synth.add_noise(rng, clean, camera)
    return kind, camera, noisy, expected


def open_model(path, threads=1):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def denoise(model, counts):
    """Normalise as the descriptor says, run, undo the normalisation."""
    lo, hi = synth.limits(counts)
    x = ((counts.astype(np.float32) - np.float32(lo)) / np.float32(hi - lo))[None, None]
    return model(x)[0, 0] * np.float32(hi - lo) + np.float32(lo)


def evaluate(path, images=60, size=256, threads=1):
    from scipy import ndimage
    model = open_model(path, threads)
    kinds, photons, rows, gauss, median = [], [], [], [], []
    for i in range(images):
        kind, camera, noisy, truth = held_out(i, size)
        raw = noisy.astype(np.float32)
        kinds.append(kind)
        photons.append(camera["photons"])
        gauss.append([psnr(ndimage.gaussian_filter(raw, s), truth) for s in SIGMAS])
        median.append([psnr(ndimage.median_filter(raw, n), truth) for n in SIZES])
        rows.append((psnr(raw, truth), max(gauss[-1]), max(median[-1]),
                     psnr(denoise(model, noisy), truth)))
    rows, gauss, median = np.array(rows), np.array(gauss), np.array(median)
    kinds, photons = np.array(kinds), np.array(photons)

    def means(pick):
        noisy, g, m, net = rows[pick].mean(0)
        return {"images": int(pick.sum()), "noisy": round(float(noisy), 2),
                "gaussian_tuned": round(float(g), 2), "median_tuned": round(float(m), 2),
                "network": round(float(net), 2)}

    gi, mi = int(gauss.mean(0).argmax()), int(median.mean(0).argmax())
    # Per image the better of the two filters, each tuned to that image.
    best = rows[:, 1:3].max(1)
    out = {
        "size": size,
        "psnr_db": dict(
            means(np.ones(images, bool)),
            gaussian_fixed=round(float(gauss.mean(0)[gi]), 2), gaussian_fixed_sigma=SIGMAS[gi],
            median_fixed=round(float(median.mean(0)[mi]), 2), median_fixed_size=SIZES[mi],
            best_filter_tuned=round(float(best.mean()), 2)),
        "gain_over_noisy_db": round(float((rows[:, 3] - rows[:, 0]).mean()), 2),
        "gain_over_best_filter_db": round(float((rows[:, 3] - best).mean()), 2),
        "images_better_than_best_filter": int((rows[:, 3] > best).sum()),
        "smallest_gain_over_best_filter_db": round(float((rows[:, 3] - best).min()), 2),
        "by_kind": {k: means(kinds == k) for k in synth.KINDS if (kinds == k).any()},
        "by_photons": {},
    }
    for a, b in BINS:
        pick = (photons >= a) & (photons < b)
        if pick.any():
            label = "%d and more" % a if b > 1e8 else "%d to %d" % (a, b)
            out["by_photons"][label] = means(pick)
    return out


def show(r):
    def line(label, m):
        print("%-24s %6d  %6.2f  %8.2f  %6.2f  %7.2f"
              % (label, m["images"], m["noisy"], m["gaussian_tuned"], m["median_tuned"],
                 m["network"]))
    print("mean PSNR in dB; filters tuned for each image by itself")
    print("%-24s %6s  %6s  %8s  %6s  %7s"
          % ("", "images", "noisy", "gaussian", "median", "network"))
    line("all", r["psnr_db"])
    for k, m in r["by_kind"].items():
        line(k, m)
    for k, m in r["by_photons"].items():
        line("photons " + k, m)
    p = r["psnr_db"]
    print("one parameter for all: gaussian sigma %g %.2f dB, median size %d %.2f dB"
          % (p["gaussian_fixed_sigma"], p["gaussian_fixed"], p["median_fixed_size"],
             p["median_fixed"]))
    print("network over noisy: %+.2f dB (need %+.1f)" % (r["gain_over_noisy_db"], NEED_OVER_NOISY))
    print("network over the better filter, tuned for each image: %+.2f dB (need %+.1f); "
          "better on %d of %d, smallest %+.2f dB"
          % (r["gain_over_best_filter_db"], NEED_OVER_FILTER, r["images_better_than_best_filter"],
             p["images"], r["smallest_gain_over_best_filter_db"]))


def passes(r):
    return (r["gain_over_noisy_db"] >= NEED_OVER_NOISY
            and r["gain_over_best_filter_db"] >= NEED_OVER_FILTER)


def picture(path, model, size, indices):
    """noisy | best-tuned Gaussian | network | clean, one row per image."""
    from PIL import Image
    from scipy import ndimage
    rows = []
    for i in indices:
        _, _, noisy, truth = held_out(i, size)
        raw = noisy.astype(np.float32)
        g = max((ndimage.gaussian_filter(raw, s) for s in SIGMAS), key=lambda a: psnr(a, truth))
        lo, hi = truth.min(), np.percentile(truth, 99.9)
        row = np.hstack([raw, g, denoise(model, noisy), truth])
        rows.append(np.clip((row - lo) / max(hi - lo, 1e-6), 0, 1) ** 0.7)
    Image.fromarray((255 * np.vstack(rows)).astype(np.uint8)).save(path)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--model", default="models/tegula_denoise.onnx")
    ap.add_argument("--images", type=int, default=60)
    ap.add_argument("--size", type=int, default=256, help="a multiple of 4")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--picture", metavar="PNG",
                    help="also draw noisy, Gaussian, network and clean side by side (needs pillow)")
    args = ap.parse_args()
    results = evaluate(args.model, args.images, args.size, args.threads)
    show(results)
    if args.picture:
        picture(args.picture, open_model(args.model, args.threads), args.size,
                range(min(args.images, len(synth.KINDS))))
    if not passes(results):
        print("FAIL")
        return 1
    print("PASS")
    return 0


if __name__ == "__main__":
    sys.exit(main())
