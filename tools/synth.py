# SPDX-License-Identifier: Apache-2.0
"""Draw synthetic fluorescence images and add camera noise, with numpy alone.

Everything here is a function of an explicit numpy Generator, so an image is
named by its seed: the same seed gives the same pixels.

  clean_image(rng, size)   -> (float32 image in [0, 1], name of its kind)
  add_noise(rng, clean, c) -> (noisy camera counts uint16, expected counts float32)

Run as a program it writes one clean and one noisy TIFF:

  python tools/synth.py --seed 7 --size 512 --out example
"""
import argparse
import os

import numpy as np

KINDS = ("nuclei", "cells", "filaments", "beads", "mixed")

# Ranges of the camera model; training and evaluation draw from the same ones.
PEAK_PHOTONS = (8.0, 400.0)     # expected photons in the brightest pixel
READ_NOISE = (0.7, 6.0)         # electrons, standard deviation
GAIN = (0.5, 8.0)               # camera counts per electron
OFFSET = (90.0, 500.0)          # camera counts in the dark


# --------------------------------------------------------------- small tools

def blur(img, sigma):
    """Gaussian blur, separable, edges reflected."""
    if sigma <= 0:
        return img
    r = max(1, int(np.ceil(3.5 * sigma)))
    x = np.arange(-r, r + 1)
    k = np.exp(-0.5 * (x / sigma) ** 2)
    k = (k / k.sum()).astype(np.float32)
    for axis in (0, 1):
        n = img.shape[axis]
        pad = [(0, 0), (0, 0)]
        pad[axis] = (r, r)
        p = np.pad(img, pad, mode="symmetric")
        out = np.zeros_like(img)
        for i, w in enumerate(k):
            out += w * np.take(p, range(i, i + n), axis=axis)
        img = out
    return img


def smooth_field(rng, size, cells):
    """Random field in [0, 1] that varies over about size/cells pixels."""
    n = int(cells) + 3
    grid = rng.random((n, n))
    t = np.linspace(0.5, n - 2.5, size)
    i = t.astype(int)
    f = t - i
    f = f * f * (3 - 2 * f)
    rows = grid[i] * (1 - f)[:, None] + grid[i + 1] * f[:, None]
    out = rows[:, i] * (1 - f) + rows[:, i + 1] * f
    return out.astype(np.float32)


def splat(img, ys, xs, values):
    """Add point sources at sub-pixel places (bilinear weights)."""
    size = img.shape[0]
    y0 = np.floor(ys).astype(int)
    x0 = np.floor(xs).astype(int)
    fy, fx = ys - y0, xs - x0
    values = np.broadcast_to(values, ys.shape)
    for dy, wy in ((0, 1 - fy), (1, fy)):
        for dx, wx in ((0, 1 - fx), (1, fx)):
            yy, xx = y0 + dy, x0 + dx
            ok = (yy >= 0) & (yy < size) & (xx >= 0) & (xx < size)
            np.add.at(img, (yy[ok], xx[ok]), (values * wy * wx)[ok])


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


# ------------------------------------------------------------------- drawing

def blob(rng, img, cy, cx, radius, wobble, value, edge):
    """One filled body whose outline is a circle bent by a few harmonics.

    Returns the slice of img it covers and its soft mask there."""
    size = img.shape[0]
    r = int(np.ceil(radius * (1 + 3 * wobble) * 1.5 + 3 * edge)) + 2
    y0, y1 = max(0, int(cy) - r), min(size, int(cy) + r + 1)
    x0, x1 = max(0, int(cx) - r), min(size, int(cx) + r + 1)
    if y0 >= y1 or x0 >= x1:
        return None
    yy, xx = np.mgrid[y0:y1, x0:x1]
    yy, xx = yy - cy, xx - cx
    turn = rng.uniform(0, np.pi)
    stretch = rng.uniform(0.7, 1.0)
    u = yy * np.cos(turn) + xx * np.sin(turn)
    v = (xx * np.cos(turn) - yy * np.sin(turn)) / stretch
    rho = np.hypot(u, v)
    phi = np.arctan2(u, v)
    outline = np.full_like(rho, radius)
    for k in range(2, 7):
        outline += (radius * wobble * rng.normal() / k
                    * np.cos(k * phi + rng.uniform(0, 2 * np.pi)))
    d = np.clip((outline - rho) / max(edge, 0.3), -30, 30)
    mask = (1 / (1 + np.exp(-2 * d))).astype(np.float32)
    where = (slice(y0, y1), slice(x0, x1))
    img[where] += value * mask
    return where, mask


def draw_nuclei(rng, size):
    img = np.zeros((size, size), np.float32)
    radius = log_uniform(rng, 5, 36)
    count = max(2, int(rng.uniform(0.08, 0.45) * size * size / (np.pi * radius ** 2)))
    for _ in range(min(count, 300)):
        cy, cx = rng.uniform(-10, size + 10, 2)
        blob(rng, img, cy, cx, radius * rng.uniform(0.7, 1.25), 0.12,
             rng.uniform(0.35, 1.0), rng.uniform(0.6, 2.0))
    # chromatin: texture at two scales, inside the bodies only
    fine = smooth_field(rng, size, size / rng.uniform(3, 7))
    coarse = smooth_field(rng, size, size / rng.uniform(8, 20))
    depth = rng.uniform(0.1, 0.6)
    img *= 1 - depth + depth * (fine + coarse)
    return blur(img, rng.uniform(0.7, 1.8))


def draw_cells(rng, size):
    img = np.zeros((size, size), np.float32)
    radius = log_uniform(rng, 14, 70)
    count = max(2, int(rng.uniform(0.2, 0.8) * size * size / (np.pi * radius ** 2)))
    for _ in range(min(count, 120)):
        cy, cx = rng.uniform(-20, size + 20, 2)
        value = rng.uniform(0.2, 0.8)
        body = np.zeros_like(img)
        got = blob(rng, body, cy, cx, radius * rng.uniform(0.7, 1.3), 0.3,
                   value, rng.uniform(1.0, radius * 0.3))
        if got is None:
            continue
        where, mask = got
        img[where] += body[where]
        style = rng.random()
        if style < 0.4:         # bright membrane
            img[where] += value * rng.uniform(0.5, 2.0) * 4 * mask * (1 - mask)
        elif style < 0.7:       # dark nucleus
            hole = np.zeros_like(img)
            blob(rng, hole, cy, cx, radius * rng.uniform(0.3, 0.45), 0.08, 1.0, 1.0)
            img *= 1 - rng.uniform(0.3, 0.8) * np.clip(hole, 0, 1)
    depth = rng.uniform(0.1, 0.6)
    img *= 1 - depth + depth * 2 * smooth_field(rng, size, size / rng.uniform(3, 16))
    return blur(img, rng.uniform(0.7, 1.6))


def draw_filaments(rng, size):
    img = np.zeros((size, size), np.float32)
    count = int(log_uniform(rng, 6, 110) * (size / 256) ** 2) + 1
    bend = log_uniform(rng, 0.004, 0.06)
    for _ in range(count):
        steps = int(rng.uniform(0.3, 1.4) * size * 2)   # half a pixel each
        curvature = blur(rng.normal(size=(steps, 1)).astype(np.float32), 12)[:, 0] * 5
        heading = rng.uniform(0, 2 * np.pi) + np.cumsum(curvature * bend)
        y, x = rng.uniform(-0.1 * size, 1.1 * size, 2)
        ys = y + np.cumsum(0.5 * np.sin(heading))
        xs = x + np.cumsum(0.5 * np.cos(heading))
        splat(img, ys, xs, rng.uniform(0.25, 1.0))
    if rng.random() < 0.4:      # patchy labelling along the filaments
        img *= 0.3 + 1.2 * smooth_field(rng, size, size / rng.uniform(4, 20))
    return blur(img, rng.uniform(0.8, 1.9))


def draw_beads(rng, size):
    img = np.zeros((size, size), np.float32)
    count = int(log_uniform(rng, 15, 500) * (size / 256) ** 2) + 1
    ys, xs = rng.uniform(-2, size + 1, (2, count))
    splat(img, ys, xs, rng.uniform(0.3, 1.0, count) ** rng.uniform(0.5, 3))
    img = blur(img, rng.uniform(0.8, 2.2))
    img /= max(float(img.max()), 1e-6)
    if rng.random() < 0.5:      # a few resolved discs and rings besides
        r = rng.uniform(2.5, 7)
        for _ in range(int(rng.uniform(3, 25) * (size / 256) ** 2) + 1):
            cy, cx = rng.uniform(0, size, 2)
            got = blob(rng, img, cy, cx, r * rng.uniform(0.8, 1.2), 0.0,
                       rng.uniform(0.3, 0.9), 0.8)
            if got is not None and rng.random() < 0.4:
                where, mask = got
                img[where] *= 1 - 0.7 * mask ** 6
        img = blur(img, 0.7)
    return img


def draw_background(rng, size):
    """Gradient, vignetting and out-of-focus haze, at most a few tenths."""
    y, x = np.mgrid[0:size, 0:size] / float(size) - 0.5
    a = rng.uniform(0, 2 * np.pi)
    g = 0.5 + rng.uniform(0, 0.5) * (y * np.sin(a) + x * np.cos(a))
    g -= rng.uniform(0, 0.6) * (y * y + x * x)
    g += rng.uniform(0, 0.6) * smooth_field(rng, size, rng.uniform(1, 5))
    return (rng.uniform(0.01, 0.25) * np.clip(g, 0.05, None)).astype(np.float32)


def unit(img):
    return img / max(float(img.max()), 1e-6)


def clean_image(rng, size=256, kind=None):
    """A clean image in [0, 1] (brightest pixel 1) and the name of its kind."""
    if kind is None:
        kind = KINDS[int(rng.integers(len(KINDS)))]
    if kind == "nuclei":
        img = unit(draw_nuclei(rng, size))
    elif kind == "cells":
        img = unit(draw_cells(rng, size))
    elif kind == "filaments":
        img = unit(draw_filaments(rng, size))
    elif kind == "beads":
        img = unit(draw_beads(rng, size))
    elif kind == "mixed":
        layers = [draw_nuclei, draw_cells, draw_filaments, draw_beads]
        pick = rng.permutation(4)[: int(rng.integers(2, 4))]
        img = sum(rng.uniform(0.3, 1.0) * unit(layers[i](rng, size)) for i in pick)
        img = unit(img)
    else:
        raise ValueError("unknown kind " + kind)
    img = img + draw_background(rng, size)
    return unit(img).astype(np.float32), kind


# --------------------------------------------------------------------- noise

def draw_camera(rng):
    """One camera setting from the ranges above."""
    return {
        "photons": log_uniform(rng, *PEAK_PHOTONS),
        "read": log_uniform(rng, *READ_NOISE),
        "gain": log_uniform(rng, *GAIN),
        "offset": float(rng.uniform(*OFFSET)),
    }


def add_noise(rng, clean, camera):
    """Poisson photons, Gaussian read noise, gain, offset, 16-bit rounding.

    Returns the noisy counts and the counts a noiseless camera would give."""
    electrons = clean * camera["photons"]
    noisy = rng.poisson(electrons) + rng.normal(0, camera["read"], clean.shape)
    counts = np.rint(noisy * camera["gain"] + camera["offset"])
    expected = electrons * camera["gain"] + camera["offset"]
    return np.clip(counts, 0, 65535).astype(np.uint16), expected.astype(np.float32)


# ------------------------------------------------------------- normalisation

PERCENTILES = (1.0, 99.8)


def limits(counts):
    """The two percentiles (linear interpolation) the network's input is scaled by."""
    lo, hi = np.percentile(counts, PERCENTILES)
    return float(lo), float(max(hi, lo + 1e-6))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--size", type=int, default=512)
    ap.add_argument("--kind", choices=KINDS, default=None)
    ap.add_argument("--photons", type=float, help="photons in the brightest pixel")
    ap.add_argument("--out", default="example", help="prefix of the two files")
    args = ap.parse_args()
    import tifffile
    rng = np.random.default_rng(args.seed)
    clean, kind = clean_image(rng, args.size, args.kind)
    camera = draw_camera(rng)
    if args.photons:
        camera["photons"] = args.photons
    noisy, expected = add_noise(rng, clean, camera)
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    tifffile.imwrite(args.out + "_noisy.tif", noisy)
    tifffile.imwrite(args.out + "_clean.tif", expected)
    print(kind, " ".join("%s=%.2f" % kv for kv in camera.items()))


if __name__ == "__main__":
    main()
