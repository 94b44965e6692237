# SPDX-License-Identifier: Apache-2.0
"""Draw pairs of moving scenes whose optical flow is known exactly, with numpy and torch.

Nothing is photographed: a canvas is noise, stripes, polygons, gradients, strokes or a mixture of
them, and a scene is one canvas behind and up to four cut-out ones before it, each under an affine
motion of its own. A pixel of a frame is the mean of 2x2 linear samples of the canvases, which were
enlarged by their spectrum before, so a movement by a fraction of a pixel is as true as one by
whole pixels.

  canvas(rng, size)                      -> float32 picture in [0, 1]
  shape(rng, size)                       -> float32 coverage in [0, 1], the outline of an object
  Stock(seed, canvases, shapes)          canvases and shapes drawn once, scenes made from them
  Stock.scene(rng, height, width, how)   -> frames (2, H, W), flow (2, H, W), layer (H, W)

Run as a program it writes pictures of some scenes:

  python tools/flow_scenes.py --seed 7 --out scenes
"""
import argparse
import math

import numpy as np

CANVAS = 448
SHAPE = 128
KINDS = ("fractal", "band", "stripes", "polygons", "leaves", "gradient", "strokes")

# What a scene may do. "how" of Stock.scene overrides some of it, as the held-out scenes do.
HOW = {
    "pan": (0.05, 12.0),     # pixels per frame, drawn evenly in the logarithm
    "still": 0.05,           # share of backgrounds that do not move at all
    "turn": 0.012,           # radians, standard deviation
    "zoom": 0.012,
    "shear": 0.005,
    "objects": (0, 4),
    "object_pan": (0.2, 14.0),
    "noise": (0.0, 4.0),     # standard deviation, of 255
    "gain": 0.02,            # change of contrast between the frames, standard deviation
    "offset": 0.01,          # change of brightness
    "blur": 0.8,             # largest Gaussian blur, pixels
}


# ------------------------------------------------------------------ canvases

def spectrum(rng, size, power, low, high):
    """Noise with amplitude frequency^-power between two wavelengths, mean 0, deviation 1."""
    f = np.fft.rfft2(rng.standard_normal((size, size)).astype(np.float32))
    fy = np.fft.fftfreq(size)[:, None]
    fx = np.fft.rfftfreq(size)[None, :]
    r = np.sqrt(fy * fy + fx * fx) + 1e-6
    gain = r ** -power * np.exp(-(r * low) ** 4) * (1 - np.exp(-(r * high) ** 4))
    out = np.fft.irfft2(f * gain, (size, size)).astype(np.float32)
    return (out - out.mean()) / (out.std() + 1e-9)


def fractal(rng, size):
    return spectrum(rng, size, rng.uniform(0.7, 2.0), 2.0, size * rng.uniform(0.3, 2))


def band(rng, size):
    low = 2.5 * 2 ** rng.uniform(0, 4)
    out = spectrum(rng, size, 0, low, low * rng.uniform(1.3, 4))
    if rng.random() < 0.5:                      # spots with sharp rims
        out = np.tanh(out * rng.uniform(1, 6))
    return out


def stripes(rng, size):
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    a = rng.uniform(0, math.pi)
    t = x * math.cos(a) + y * math.sin(a)
    t = t + rng.uniform(0, 12) * spectrum(rng, size, 1.5, 40, size)
    out = np.sin(t * (2 * math.pi / (5 * 2 ** rng.uniform(0, 3.5))) + 6 * rng.random())
    if rng.random() < 0.5:
        out = np.tanh(out * rng.uniform(1, 4))
    if rng.random() < 0.6:                      # crossed: a chequered cloth
        u = y * math.cos(a) - x * math.sin(a)
        out = out + np.sin(u * (2 * math.pi / (5 * 2 ** rng.uniform(0, 3.5))))
    return out


def paint(out, y0, y1, x0, x1, distance, grey):
    """Lay a grey over out where distance (pixels, negative inside) says so, its rim smooth."""
    a = np.clip(0.5 - distance, 0, 1)
    out[y0:y1, x0:x1] += a * (grey - out[y0:y1, x0:x1])


def box(cy, cx, r, size):
    y0, y1 = max(0, int(cy - r - 2)), min(size, int(cy + r + 3))
    x0, x1 = max(0, int(cx - r - 2)), min(size, int(cx + r + 3))
    if y0 >= y1 or x0 >= x1:
        return None
    y, x = np.mgrid[y0:y1, x0:x1].astype(np.float32)
    return y0, y1, x0, x1, y - np.float32(cy), x - np.float32(cx)


def convex(rng, y, x, r):
    """Distance to a random convex polygon of radius about r around the origin."""
    n = int(rng.integers(3, 7))
    a0 = rng.uniform(0, 2 * math.pi)
    d = None
    for i in range(n):
        a = a0 + (i + rng.uniform(-0.25, 0.25)) * 2 * math.pi / n
        side = x * math.cos(a) + y * math.sin(a) - r * rng.uniform(0.4, 0.8)
        d = side if d is None else np.maximum(d, side)
    return d


def pieces(rng, size, count, smallest, largest, draw):
    out = np.full((size, size), rng.uniform(-1, 1), np.float32)
    radius = np.sort(smallest * (largest / smallest) ** rng.random(count))[::-1]
    for r in radius:
        b = box(rng.uniform(0, size), rng.uniform(0, size), r, size)
        if b is not None:
            y0, y1, x0, x1, y, x = b
            grey = rng.uniform(-1.7, 1.7) + rng.uniform(-1, 1) * x / r + rng.uniform(-1, 1) * y / r
            paint(out, y0, y1, x0, x1, draw(y, x, r), grey)
    return out


def polygons(rng, size):
    return pieces(rng, size, int(rng.integers(60, 350)), 4, 70,
                  lambda y, x, r: convex(rng, y, x, r))


def leaves(rng, size):
    def leaf(y, x, r):
        a, k = rng.uniform(0, math.pi), rng.uniform(1, 3)
        u, v = x * math.cos(a) + y * math.sin(a), (y * math.cos(a) - x * math.sin(a)) * k
        return np.sqrt(u * u + v * v) - r
    return pieces(rng, size, int(rng.integers(150, 700)), 3, 45, leaf)


def gradient(rng, size):
    return (spectrum(rng, size, rng.uniform(1, 2), 60, 2 * size)
            + rng.uniform(0.02, 0.25) * spectrum(rng, size, rng.uniform(0, 1), 2.5, 60))


def strokes(rng, size):
    """Lines of short strokes, as writing has them."""
    out = rng.uniform(0, 0.5) * spectrum(rng, size, 1.5, 20, size)
    step = rng.uniform(10, 40)
    for line in np.arange(step / 2, size, step):
        at = rng.uniform(0, step)
        while at < size:
            for _ in range(int(rng.integers(1, 4))):
                h = step * rng.uniform(0.1, 0.4)
                b = box(line + rng.uniform(-0.1, 0.1) * step, at, h + 3, size)
                if b is not None:
                    y0, y1, x0, x1, y, x = b
                    a, w = rng.uniform(0, math.pi), rng.uniform(0.5, 0.12 * step)
                    u = np.clip(x * math.cos(a) + y * math.sin(a), -h, h)
                    d = np.hypot(x - u * math.cos(a), y - u * math.sin(a)) - w
                    paint(out, y0, y1, x0, x1, d, rng.choice((-1.5, 1.5)))
            at += step * (rng.uniform(0.3, 0.6) if rng.random() < 0.85 else 1.2)
    return out


DRAW = dict(zip(KINDS, (fractal, band, stripes, polygons, leaves, gradient, strokes)))


def canvas(rng, size=CANVAS):
    kind = str(rng.choice(KINDS, p=(0.22, 0.14, 0.1, 0.16, 0.16, 0.08, 0.14)))
    out = DRAW[kind](rng, size)
    out = (out - out.mean()) / (out.std() + 1e-6)
    if rng.random() < 0.5:                      # a second kind: added, or on one side of a border
        other = DRAW[str(rng.choice(KINDS))](rng, size)
        other = (other - other.mean()) / (other.std() + 1e-6)
        if rng.random() < 0.6:
            out = out + other * rng.uniform(0.1, 0.8)
        else:
            side = np.clip(0.5 + 20 * spectrum(rng, size, 2, 60, 2 * size), 0, 1)
            out = out + side * (other - out)
    if rng.random() < 0.6:                      # the light is uneven
        out = out * (1 + 0.3 * np.clip(spectrum(rng, size, 2, 80, 2 * size), -2, 2))
        out = out + rng.uniform(0, 0.7) * spectrum(rng, size, 2, 80, 2 * size)
    if rng.random() < 0.7:                      # fine grain of the surface
        out = out + rng.uniform(0.02, 0.3) * spectrum(rng, size, rng.uniform(0, 1), 2.2, 30)
    out = out / (out.std() + 1e-6) * (0.02 * 10 ** rng.uniform(0, 1.08))
    return np.clip(out + rng.uniform(0.2, 0.8), 0, 1).astype(np.float32)


def enlarged(picture):
    """Twice the size, with the same spectrum: linear samples of it are nearly exact."""
    n = picture.shape[0]
    f = np.fft.fft2(picture)
    g = np.zeros((2 * n, 2 * n), np.complex128)
    h = n // 2
    for rows in (slice(0, h), slice(-h, None)):
        for columns in (slice(0, h), slice(-h, None)):
            g[rows, columns] = f[rows, columns]
    return (4 * np.fft.ifft2(g).real).astype(np.float32)


def shape(rng, size=SHAPE):
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) - (size - 1) / 2
    r = 0.42 * size
    kind = int(rng.integers(4))
    if kind == 0:
        d = np.sqrt(x * x + (y * rng.uniform(1, 2.5)) ** 2) - r
    elif kind == 1:
        d = convex(rng, y, x, r * 1.2)
    elif kind == 2:
        a = np.arctan2(y, x)
        rim = sum(rng.normal(0, 0.25 / k) * np.cos(k * a + 6 * rng.random()) for k in range(2, 7))
        d = np.sqrt(x * x + y * y) - r * 0.75 * (1 + rim)
    else:
        d = np.maximum(np.abs(x) - r * rng.uniform(0.2, 1), np.abs(y) - r)
    d = np.maximum(d, np.maximum(np.abs(x), np.abs(y)) - (size / 2 - 3))    # nothing at the rim
    return np.clip(0.5 - d, 0, 1).astype(np.float32)


# -------------------------------------------------------------------- scenes

def affine(turn, zoom_y, zoom_x, shear, ty, tx, cy, cx):
    """3x3 matrix on (x, y, 1): turns, scales and shears around (cx, cy), then moves by (tx, ty)."""
    c, s = math.cos(turn), math.sin(turn)
    a = np.array([[c, -s], [s, c]]) @ np.array([[zoom_x, shear], [0, zoom_y]])
    m = np.eye(3)
    m[:2, :2] = a
    m[:2, 2] = np.array([cx + tx, cy + ty]) - a @ np.array([cx, cy])
    return m


def motion(rng, pan, how, cy, cx, still=0.0):
    """Where a point of the first frame lies in the second."""
    if rng.random() < still:
        return np.eye(3)
    length = math.exp(rng.uniform(math.log(pan[0]), math.log(pan[1])))
    a = rng.uniform(0, 2 * math.pi)
    if rng.random() < 0.25:                     # straight along an axis, as many pans are
        a = round(a / (math.pi / 2)) * math.pi / 2
    quiet = 0.0 if rng.random() < 0.3 else 1.0  # nothing but a pan
    return affine(quiet * rng.normal(0, how["turn"]), 1 + quiet * rng.normal(0, how["zoom"]),
                  1 + quiet * rng.normal(0, how["zoom"]), quiet * rng.normal(0, how["shear"]),
                  length * math.sin(a), length * math.cos(a), cy, cx)


class Stock:
    def __init__(self, seed, canvases, shapes=64, size=CANVAS):
        import torch
        self.torch = torch
        self.size = size
        self.canvases = [
            torch.from_numpy(enlarged(canvas(np.random.default_rng([seed, 0, i]), size)))
            for i in range(canvases)]
        self.shapes = [torch.from_numpy(shape(np.random.default_rng([seed, 1, i])))
                       for i in range(shapes)]

    def sample(self, picture, m, height, width, fine=2, outside="reflection"):
        """The picture seen through m (frame to picture), each pixel a mean of 2x2 samples.

        fine: how many of its pixels the picture has for one of m's."""
        torch = self.torch
        h, w = (n // fine for n in picture.shape)
        y = (torch.arange(2 * height, dtype=torch.float64) - 0.5) / 2
        x = (torch.arange(2 * width, dtype=torch.float64) - 0.5) / 2
        px = (m[0, 0] * x)[None, :] + (m[0, 1] * y + m[0, 2])[:, None]
        py = (m[1, 0] * x)[None, :] + (m[1, 1] * y + m[1, 2])[:, None]
        grid = torch.stack([(2 * px + 1) / w - 1, (2 * py + 1) / h - 1], -1)[None].float()
        out = torch.nn.functional.grid_sample(picture[None, None], grid, "bilinear", outside, False)
        return torch.nn.functional.avg_pool2d(out, 2)[0, 0]

    def scene(self, rng, height, width, how=None):
        torch = self.torch
        how = dict(HOW, **(how or {}))
        y, x = np.mgrid[0:height, 0:width].astype(np.float64)
        here = np.stack([x, y, np.ones_like(x)])

        back = self.canvases[int(rng.integers(len(self.canvases)))]
        cy, cx = (height - 1) / 2, (width - 1) / 2
        move = motion(rng, how["pan"], how, cy, cx, how["still"])
        scale = rng.uniform(1.0, 2.0)
        look = affine(rng.uniform(0, 2 * math.pi), scale, scale * rng.uniform(0.9, 1.1), 0,
                      rng.uniform(0, self.size) - cy, rng.uniform(0, self.size) - cx, cy, cx)
        frames = [self.sample(back, look, height, width),
                  self.sample(back, look @ np.linalg.inv(move), height, width)]
        flow = (np.tensordot(move, here, 1) - here)[:2]
        layer = np.zeros((height, width), np.uint8)

        for k in range(int(rng.integers(how["objects"][0], how["objects"][1] + 1))):
            face = self.canvases[int(rng.integers(len(self.canvases)))]
            outline = self.shapes[int(rng.integers(len(self.shapes)))]
            n = outline.shape[0]
            oy, ox = rng.uniform(0, height), rng.uniform(0, width)
            big = math.exp(rng.uniform(math.log(16), math.log(0.6 * min(height, width)))) / n
            turn = rng.uniform(0, 2 * math.pi)
            put = affine(turn, 1 / big, 1 / big, 0, n / 2 - oy, n / 2 - ox, oy, ox)
            scale = rng.uniform(1.0, 2.0)
            look = affine(turn, scale, scale, 0, self.size / 2 - oy, self.size / 2 - ox, oy, ox)
            own = motion(rng, how["object_pan"], how, oy, ox)
            if rng.random() < 0.5:              # carried along by the camera
                own = own @ move
            back_to = np.linalg.inv(own)
            for i, t in enumerate((np.eye(3), back_to)):
                cover = self.sample(outline, put @ t, height, width, 1, "zeros")
                seen = self.sample(face, look @ t, height, width)
                frames[i] = frames[i] + cover * (seen - frames[i])
                if i == 0:
                    on = cover.numpy() > 0.5
            flow = np.where(on, (np.tensordot(own, here, 1) - here)[:2], flow)
            layer[on] = k + 1

        frames = torch.stack(frames)
        sigma = rng.uniform(0, how["blur"])
        if sigma > 0.25 and rng.random() < 0.6:
            t = torch.arange(-3, 4, dtype=torch.float32)
            g = torch.exp(-0.5 * (t / sigma) ** 2)
            g = g / g.sum()
            f = torch.nn.functional.pad(frames[:, None], (3, 3, 3, 3), mode="replicate")
            f = torch.nn.functional.conv2d(f, g[None, None, None, :])
            frames = torch.nn.functional.conv2d(f, g[None, None, :, None])[:, 0]
        frames = frames.clamp(0, 1).numpy()
        if rng.random() < 0.5:
            frames[1] = (frames[1] - 0.5) * (1 + rng.normal(0, how["gain"])) + 0.5
            frames[1] += rng.normal(0, how["offset"])
        noise = rng.uniform(*how["noise"]) / 255
        frames = frames + noise * rng.standard_normal(frames.shape, np.float32)
        frames = np.clip(np.round(frames * 255), 0, 255).astype(np.float32) / 255
        return frames, flow.astype(np.float32), layer


def main():
    from PIL import Image
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--count", type=int, default=12)
    ap.add_argument("--size", type=int, default=160)
    ap.add_argument("--out", default="scenes")
    args = ap.parse_args()
    stock = Stock(args.seed, args.count)
    rng = np.random.default_rng([args.seed, 2])
    rows = []
    for _ in range(args.count):
        frames, flow, _ = stock.scene(rng, args.size, args.size)
        shown = np.clip(np.concatenate([frames, flow / 24 + 0.5]), 0, 1)
        rows.append(np.concatenate(list(shown), 1))
    Image.fromarray((np.concatenate(rows) * 255).astype(np.uint8)).save(args.out + ".png")


if __name__ == "__main__":
    main()
