# SPDX-License-Identifier: Apache-2.0
"""Train tegula's own optical-flow network on drawn moving scenes and export it as ONNX.

  python tools/train_flow.py                   trains, exports, measures, writes the descriptor
  python tools/train_flow.py --steps 200 ...   a quick try
  python tools/train_flow.py --measure         measures the file --out, writes its descriptor anew
  python tools/train_flow.py --golden DIR      writes the small arrays the tests compare with

Needs numpy, torch (the CPU build is enough), onnx and onnxruntime. Every random choice comes from
--seed, and the held-out scenes use a seed the training refuses.

The network is a chain of 3x3 convolutions on the grid of half a picture's resolution. It is given
two pictures of one level of a pyramid, the second warped by the flow known so far, and that flow;
it gives what is to be added. estimate() below is the whole procedure around it, in numpy.
"""
import argparse
import json
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import flow_scenes  # noqa: E402

WIDTH = 48
DILATIONS = (1, 1, 2, 4, 1, 1)      # of the convolutions in turn; the last one gives the flow
SLOPE = 0.1                         # of the leaky ReLU
OPSET = 17
HELD_OUT_SEED = 9090

MOST_HALVINGS = 5
COARSEST = 16                       # the coarsest level's smaller side is at least this
STOP = 1                            # the finest level the network runs on
REPEAT = 1                          # runs of the network on a level
FLOW_SCALE = 8.0                    # the network is told flow / 8
WINDOW = 17                         # pixels, of the local mean and deviation
FLOOR = 0.02                        # added to the deviation, in squares


def convs():
    """Name, input channels, output channels, dilation."""
    last = len(DILATIONS) - 1
    for i, d in enumerate(DILATIONS):
        yield "conv%d" % i, 10 if i == 0 else WIDTH, 2 if i == last else WIDTH, d


def parameters():
    return sum(9 * ci * co + co for _, ci, co, _ in convs())


def flop_per_pixel(stop, repeat):
    """Multiplications and additions of the convolutions, per pixel of the whole picture."""
    cell = sum(2 * 9 * ci * co for _, ci, co, _ in convs())
    return cell * repeat / 4 * sum(4.0 ** -l for l in range(stop, MOST_HALVINGS + 1))


# ----------------------------------------------- the procedure, numpy and onnxruntime

def luma(rgb):
    """(H, W, 3) bytes or (H, W) floats in [0, 1] -> (H, W) float32 in [0, 1]."""
    if rgb.ndim == 2:
        return rgb.astype(np.float32)
    y = rgb[..., 0] * np.float32(0.299) + rgb[..., 1] * np.float32(0.587) \
        + rgb[..., 2] * np.float32(0.114)
    return (y / np.float32(255)).astype(np.float32)


def halvings(height, width):
    n = 0
    while n < MOST_HALVINGS and min(height, width) >> (n + 1) >= COARSEST:
        n += 1
    return n


def continued(image, multiple):
    h, w = image.shape
    return np.pad(image, ((0, -h % multiple), (0, -w % multiple)), mode="edge")


def halved(image):
    """Half the size: weights 1 3 3 1 over 8 along each axis, the border repeated."""
    image = np.pad(image, 1, mode="edge")
    image = (image[0:-3:2] + 3 * (image[1:-2:2] + image[2:-1:2]) + image[3::2]) * np.float32(0.125)
    return (image[:, 0:-3:2] + 3 * (image[:, 1:-2:2] + image[:, 2:-1:2]) + image[:, 3::2]) \
        * np.float32(0.125)


def box_mean(image):
    """Mean over WINDOW x WINDOW pixels, of those that lie in the image."""
    out = image.astype(np.float64)
    for axis in (0, 1):
        n = out.shape[axis]
        sums = np.cumsum(np.insert(out, 0, 0, axis), axis)
        hi = np.minimum(np.arange(n) + WINDOW // 2 + 1, n)
        lo = np.maximum(np.arange(n) - WINDOW // 2, 0)
        count = (hi - lo)[:, None] if axis == 0 else hi - lo
        out = (np.take(sums, hi, axis) - np.take(sums, lo, axis)) / count
    return out


def evened(image):
    """Minus the local mean, over the local deviation: light and contrast no longer matter."""
    mean = box_mean(image)
    spread = np.maximum(box_mean(np.square(image.astype(np.float64))) - mean * mean, 0)
    return ((image - mean) / np.sqrt(spread + FLOOR * FLOOR)).astype(np.float32)


def enlarged(field, factor):
    """Bilinear, pixel centres at halves, the border repeated. field is (..., h, w)."""
    for axis in (-2, -1):
        n = field.shape[axis]
        at = (np.arange(n * factor, dtype=np.float32) + np.float32(0.5)) / np.float32(factor) \
            - np.float32(0.5)
        at = np.clip(at, 0, n - 1)
        i = np.minimum(at.astype(np.int64), max(n - 2, 0))
        f = (at - i).astype(np.float32)
        f = f[:, None] if axis == -2 else f
        a, b = np.take(field, i, axis), np.take(field, np.minimum(i + 1, n - 1), axis)
        field = a + f * (b - a)
    return field


def taps(f):
    """Weights of the pixels -1, 0, 1, 2 around a place f behind pixel 0: Lagrange's cubic."""
    return (-f * (f - 1) * (f - 2) / 6, (f + 1) * (f - 1) * (f - 2) / 2,
            -(f + 1) * f * (f - 2) / 2, (f + 1) * f * (f - 1) / 6)


def warped(image, flow):
    """image at p + flow(p): cubic, coordinates and then taps clamped to the image."""
    h, w = image.shape
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    x = np.clip(x + flow[0], 0, w - 1)
    y = np.clip(y + flow[1], 0, h - 1)
    x0 = np.minimum(x.astype(np.int64), w - 2)
    y0 = np.minimum(y.astype(np.int64), h - 2)
    wx, wy = taps((x - x0).astype(np.float32)), taps((y - y0).astype(np.float32))
    out = np.zeros_like(image)
    for j in range(4):
        row = np.clip(y0 + j - 1, 0, h - 1)
        out += wy[j] * sum(wx[i] * image[row, np.clip(x0 + i - 1, 0, w - 1)] for i in range(4))
    return out


def quarters(image):
    """Space to depth: channel 2 * dy + dx holds image[2y + dy][2x + dx]."""
    return np.stack([image[dy::2, dx::2] for dy in (0, 1) for dx in (0, 1)])


def refine(image1, image2, flow, session):
    """One run of the network on one level; flow is (2, h / 2, w / 2)."""
    moved = warped(image2, enlarged(flow, 2))
    fed = np.concatenate([quarters(image1), quarters(moved), flow / np.float32(FLOW_SCALE)])
    return flow + session.run(None, {"pair": fed[None]})[0][0]


def estimate(image1, image2, session, stop=STOP, repeat=REPEAT, trace=None):
    """Flow (2, H, W), in pixels: image1 at p matches image2 at p + flow(p). Channel 0 is x."""
    image1, image2 = luma(image1), luma(image2)
    height, width = image1.shape
    n = halvings(height, width)
    levels = [(continued(image1, 2 << n), continued(image2, 2 << n))]
    for _ in range(n):
        levels.append(tuple(halved(i) for i in levels[-1]))
    stop = min(stop, n)
    flow = None
    for level in range(n, stop - 1, -1):
        a, b = (evened(i) for i in levels[level])
        if flow is None:
            flow = np.zeros((2, a.shape[0] // 2, a.shape[1] // 2), np.float32)
        else:
            flow = 2 * enlarged(flow, 2)
        for _ in range(repeat):
            flow = refine(a, b, flow, session)
        if trace is not None:
            trace.append(flow)
    flow = enlarged(flow, 2 << stop) * np.float32(1 << stop)
    return flow[:, :height, :width]


def session_of(path, threads):
    import onnxruntime
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])


# ------------------------------------------------------------------- network

def build(torch):
    nn = torch.nn

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            for name, ci, co, d in convs():
                conv = nn.Conv2d(ci, co, 3, padding=d, dilation=d)
                nn.init.kaiming_normal_(conv.weight, a=SLOPE, nonlinearity="leaky_relu")
                nn.init.zeros_(conv.bias)
                setattr(self, name, conv)
            nn.init.normal_(conv.weight, std=1e-3)      # starts by adding next to nothing

        def forward(self, x):
            for name, _, co, _ in convs():
                x = getattr(self, name)(x)
                if co != 2:
                    x = nn.functional.leaky_relu(x, SLOPE)
            return x

    return Flow()


def export(weights, path, version):
    """Write the ONNX file node by node; weights maps "conv0.weight" to arrays."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, inits = [], []
    x = "pair"
    for name, _, co, d in convs():
        for part in ("weight", "bias"):
            inits.append(numpy_helper.from_array(
                np.ascontiguousarray(weights[name + "." + part], np.float32), name + "." + part))
        y = "change" if co == 2 else name + "_out"
        nodes.append(helper.make_node(
            "Conv", [x, name + ".weight", name + ".bias"], [y], name=name, kernel_shape=[3, 3],
            dilations=[d, d], pads=[d] * 4, strides=[1, 1]))
        x = y
        if co != 2:
            nodes.append(helper.make_node("LeakyRelu", [x], [name + "_relu"], name=name + "_relu",
                                          alpha=SLOPE))
            x = name + "_relu"
    graph = helper.make_graph(
        nodes, "tegula_flow",
        [helper.make_tensor_value_info("pair", TensorProto.FLOAT, ["N", 10, "H", "W"])],
        [helper.make_tensor_value_info("change", TensorProto.FLOAT, ["N", 2, "H", "W"])], inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                              producer_name="tegula tools/train_flow.py",
                              producer_version=version)
    model.ir_version = 8
    model.doc_string = "Optical flow, one step of a pyramid; see flow.json."
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path + ".new")
    os.replace(path + ".new", path)


# ------------------------------------------------------------------ training

class Batches:
    """Endless batches: new scenes, and recent ones again, turned and mirrored."""

    def __init__(self, args):
        self.rng = np.random.default_rng([args.seed, 2])
        self.stock = flow_scenes.Stock(args.seed, args.canvases)
        self.batch, self.fresh, self.crop = args.batch, args.fresh, args.crop
        self.recent = []

    def target(self, flow, layer):
        """Flow and how much a pixel counts: what leaves the frame can only be guessed."""
        h, w = layer.shape
        y, x = np.mgrid[0:h, 0:w].astype(np.float32)
        x, y = x + flow[0], y + flow[1]
        inside = (x >= 0) & (x <= w - 1) & (y >= 0) & (y <= h - 1)
        return np.concatenate([flow, np.where(inside, 1, 0.2).astype(np.float32)[None],
                               layer.astype(np.float32)[None]])

    def __call__(self, small):
        rng = self.rng
        for _ in range(self.fresh if self.recent else 8 * self.batch):
            frames, flow, layer = self.stock.scene(rng, self.crop, self.crop)
            self.recent.append(np.concatenate([frames, flow, layer[None].astype(np.float32)]))
        self.recent = self.recent[-8 * self.batch:]
        out = []
        n = len(self.recent)
        for i in range(self.batch):
            k = n - 1 - i if i < self.fresh else int(rng.integers(n))
            s = self.recent[k]
            if small:
                c = self.crop * 2 // 3
                y, x = rng.integers(0, self.crop - c + 1, 2)
                s = s[:, y:y + c, x:x + c]
            s = np.concatenate([s[:2], self.target(s[2:4], s[4])])
            if rng.random() < 0.5:
                s = s[:, :, ::-1].copy()
                s[2] *= -1
            if rng.random() < 0.5:
                s = s[:, ::-1].copy()
                s[3] *= -1
            if rng.random() < 0.5:
                s = s.transpose(0, 2, 1)[[0, 1, 3, 2, 4, 5]]
            out.append(s)
        return np.stack(out)


def warped_batch(torch, image, x, y):
    """warped() of a batch: image (N, 1, h, w) at x, y (N, h, w)."""
    n, _, h, w = image.shape
    flat = image.reshape(n, h * w)
    x, y = x.clamp(0, w - 1), y.clamp(0, h - 1)
    x0, y0 = x.long().clamp(max=w - 2), y.long().clamp(max=h - 2)
    wx, wy = taps(x - x0), taps(y - y0)
    columns = [(x0 + i - 1).clamp(0, w - 1) for i in range(4)]
    out = torch.zeros_like(x)
    for j in range(4):
        row = (y0 + j - 1).clamp(0, h - 1) * w
        for i in range(4):
            seen = flat.gather(1, (row + columns[i]).reshape(n, -1)).reshape(n, h, w)
            out += wy[j] * wx[i] * seen
    return out[:, None]


def halved_batch(torch, images):
    fn = torch.nn.functional
    n, c, h, w = images.shape
    k = torch.tensor([1.0, 3.0, 3.0, 1.0]) / 8
    p = fn.pad(images.reshape(n * c, 1, h, w), (1, 1, 1, 1), mode="replicate")
    return fn.conv2d(p, (k[:, None] * k)[None, None], stride=2).reshape(n, c, h // 2, w // 2)


def unrolled(torch, net, batch, stop, repeats):
    """Loss over all levels; each level starts from the flow the one before arrived at."""
    fn = torch.nn.functional
    n = halvings(*batch.shape[-2:])
    pictures = [batch[:, :2]]
    for _ in range(n):
        pictures.append(halved_batch(torch, pictures[-1]))

    def mean(i):
        return fn.avg_pool2d(i, WINDOW, 1, WINDOW // 2, count_include_pad=False)

    def even(i):
        i = i - 0.5                                     # so that squares cancel less
        m = mean(i)
        return (i - m) / torch.sqrt((mean(i * i) - m * m).clamp(min=0) + FLOOR * FLOOR)

    loss, errors, flow = 0.0, [], None
    for level in range(n, stop - 1, -1):
        a, b = pictures[level][:, :1], pictures[level][:, 1:]
        a, b = even(a), even(b)
        h, w = a.shape[-2:]
        if flow is None:
            flow = a.new_zeros((len(a), 2, h // 2, w // 2))
        else:
            flow = 2 * fn.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)
        cell = 2 << level
        truth = fn.avg_pool2d(batch[:, 2:4], cell) / (1 << level)
        weight = fn.avg_pool2d(batch[:, 4:5], cell)[:, 0]
        top = fn.max_pool2d(batch[:, 5:6], cell)
        low = -fn.max_pool2d(-batch[:, 5:6], cell)
        weight = weight * torch.where(top == low, 1.0, 0.2)[:, 0]
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        for _ in range(repeats[level]):
            with torch.no_grad():
                f = fn.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)
                moved = warped_batch(torch, b, x + f[:, 0], y + f[:, 1])
                fed = torch.cat([fn.pixel_unshuffle(a, 2), fn.pixel_unshuffle(moved, 2),
                                 flow / FLOW_SCALE], 1)
            fed = fed.contiguous(memory_format=torch.channels_last)
            after = flow + net(fed)
            error = torch.sqrt(((after - truth) ** 2).sum(1) + 1e-6)
            loss = loss + (weight * (error + 0.01) ** 0.6).sum() / weight.sum() / repeats[level]
            flow = after.detach()
        with torch.no_grad():
            errors.append(float((weight * error).sum() / weight.sum()) * (1 << level))
    return loss, errors


def train(args):
    import torch
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    started = time.time()
    batches = Batches(args)
    print("%d canvases drawn in %.0f s" % (args.canvases, time.time() - started), flush=True)

    net = build(torch).to(memory_format=torch.channels_last)
    if args.resume:
        net.load_state_dict(torch.load(args.resume))
    params = list(net.parameters())
    mean = [p.detach().clone() for p in params]         # running mean of the weights
    optimiser = torch.optim.Adam(params, lr=args.rate)
    warm = min(200, args.steps // 10 + 1)
    seen, n_seen = 0.0, 0
    rng = np.random.default_rng([args.seed, 3])
    for step in range(1, args.steps + 1):
        t = max(0.0, (step - warm) / max(1, args.steps - warm))
        if args.minutes:
            t = min(1.0, max(t, (time.time() - started) / 60 / args.minutes))
        rate = args.rate * min(1.0, step / warm) * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * t)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        repeats = [1] + [int(rng.integers(1, 3)) for _ in range(MOST_HALVINGS)]
        stop = step % 2                                 # every other step: smaller, to level 0
        batch = torch.from_numpy(batches(stop == 0))
        loss, errors = unrolled(torch, net, batch, stop, repeats)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimiser.step()
        with torch.no_grad():
            keep = min(0.998, step / (step + 10.0))
            for m, p in zip(mean, params):
                m.lerp_(p, 1 - keep)
        seen, n_seen = (seen + np.array(errors), n_seen + 1) if stop == 0 else (seen, n_seen)
        if step % 100 == 0 or step == args.steps or t == 1:
            print("step %5d  pixels off per level, coarse to fine: %s  rate %.1e  %.0f s"
                  % (step, " ".join("%.3f" % e for e in seen / n_seen), rate,
                     time.time() - started), flush=True)
            seen, n_seen = 0.0, 0
        if step % 500 == 0 or step == args.steps or t == 1:
            state = {k: m for (k, _), m in zip(net.named_parameters(), mean)}
            export({k: v.contiguous().numpy().copy() for k, v in state.items()},
                   args.out, args.version)
            torch.save({k: v.clone() for k, v in state.items()},
                       os.path.splitext(args.out)[0] + ".pt")
        if t == 1:
            return step


# ----------------------------------------------------------------- measuring

HELD_OUT = {"pan": (0.3, 8.0), "still": 0.0, "noise": (2.0, 2.0), "objects": (1, 3),
            "turn": 0.003, "zoom": 0.003, "shear": 0.0}


def held_out(count, size):
    """Scenes of the seed kept apart: the camera moves 0.3 to 8 pixels, noise 2 of 255."""
    stock = flow_scenes.Stock(HELD_OUT_SEED, count, size=640)
    scenes = []
    for i in range(count):
        rng = np.random.default_rng([HELD_OUT_SEED, 2, i])
        frames, flow, layer = stock.scene(rng, size[0], size[1], HELD_OUT)
        scenes.append((frames, flow, away(layer, flow)))
    return scenes


def away(layer, flow, distance=16):
    """Background more than distance from an object, and not leaving the frame."""
    h, w = layer.shape
    near = layer > 0
    for axis in (0, 1):
        sums = np.cumsum(np.insert(near.astype(np.int32), 0, 0, axis), axis)
        n = near.shape[axis]
        hi = np.minimum(np.arange(n) + distance + 1, n)
        lo = np.maximum(np.arange(n) - distance, 0)
        near = np.take(sums, hi, axis) > np.take(sums, lo, axis)
    y, x = np.mgrid[0:h, 0:w]
    x, y = x + flow[0], y + flow[1]
    return ~near & (x >= 0) & (x <= w - 1) & (y >= 0) & (y <= h - 1)


def measure(scenes, session, stop, repeat):
    """Errors in pixels over all scenes; the bias is a scene's mean error vector."""
    means, medians, biases, along, seconds = [], [], [], [], 0.0
    for frames, flow, where in scenes:
        started = time.process_time()
        found = estimate(frames[0], frames[1], session, stop, repeat)
        seconds += time.process_time() - started
        off = (found - flow)[:, where]
        error = np.hypot(off[0], off[1])
        means.append(error.mean())
        medians.append(np.median(error))
        bias = off.mean(1)
        biases.append(np.hypot(bias[0], bias[1]))
        pan = flow[:, where].mean(1)
        along.append(float(bias @ pan / (pan @ pan)))
    means, medians, biases = np.array(means), np.array(medians), np.array(biases)
    return {
        "stop": stop, "repeat": repeat,
        "mean_error": round(float(means.mean()), 4),
        "median_of_scenes_mean_error": round(float(np.median(means)), 4),
        "median_error": round(float(np.median(medians)), 4),
        "mean_bias": round(float(biases.mean()), 4),
        "median_bias": round(float(np.median(biases)), 4),
        "median_bias_along_pan": round(float(np.median(along)), 5),
        "worst_tenth_mean_error": round(float(np.quantile(means, 0.9)), 4),
        "cpu_seconds": round(seconds / len(scenes), 3),
    }


def real_frames(folder, session, pairs, stop, repeat):
    """Photometric error of neighbouring frames, of 255: as they are, and warped by the flow."""
    from PIL import Image
    names = sorted(n for n in os.listdir(folder) if n.endswith((".jpg", ".png")))
    still, after = [], []
    for i in np.linspace(0, len(names) - 2, min(pairs, len(names) - 1)).astype(int):
        a, b = (luma(np.asarray(Image.open(os.path.join(folder, n)).convert("RGB")))
                for n in names[i:i + 2])
        still.append(np.abs(a - b).mean() * 255)
        after.append(np.abs(a - warped(b, estimate(a, b, session, stop, repeat))).mean() * 255)
    return {"pairs": len(still), "stop": stop, "repeat": repeat,
            "zero_flow": round(float(np.mean(still)), 3),
            "warped": round(float(np.mean(after)), 3)}


def show(row):
    print("  ".join("%s %s" % (k, v) for k, v in row.items()), flush=True)


def measure_all(args):
    session = session_of(args.out, args.threads)
    scenes = held_out(args.scenes, (384, 512))
    rows = []
    for stop, repeat in ((1, 1), (1, 2), (0, 1)):
        rows.append(measure(scenes, session, stop, repeat))
        show(rows[-1])
    for folder in args.frames or ():
        for stop in (1, 0):
            show(real_frames(folder, session, 20, stop, REPEAT))
    return rows


def how_trained(args, path):
    """The command for the descriptor; measuring anew keeps the one that is there."""
    if args.command:
        return args.command
    if args.measure and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            return json.load(f)["about"]["command"]
    return "python " + " ".join(["tools/train_flow.py"] + sys.argv[1:])


def describe(args):
    """Measure the exported file on held-out scenes and write the descriptor."""
    rows = measure_all(args)
    how = flow_scenes.HOW
    path = os.path.splitext(args.out)[0] + ".json"
    about = {
        "task": "optical flow",
        "model": os.path.basename(args.out),
        "input": "pair [1, 10, h/2, w/2]: channels 0..3 the first picture of a level, space to "
                 "depth (channel 2 * dy + dx is picture[2y + dy][2x + dx]), 4..7 the second one, "
                 "warped by the flow known so far, 8..9 that flow (x, y) / %g" % FLOW_SCALE,
        "output": "change [1, 2, h/2, w/2]: what is added to that flow, pixels of the level",
        "pictures": "luma 0.299 R + 0.587 G + 0.114 B in 0..1; on each level minus the mean of "
                    "%d x %d pixels, over sqrt(variance of them + %g^2)" % (WINDOW, WINDOW, FLOOR),
        "halvings": "at most %d, the coarsest level's smaller side at least %d"
                    % (MOST_HALVINGS, COARSEST),
        "stop": STOP,
        "repeat": REPEAT,
        "procedure": "estimate() in tools/train_flow.py",
        "parameters": parameters(),
        "flop_per_pixel": int(round(flop_per_pixel(STOP, REPEAT))),
        "trained_on": "scenes drawn by tools/flow_scenes.py, nothing photographed: pans of up to "
                      "%g pixels, objects' of up to %g, noise %g to %g of 255"
                      % (how["pan"][1], how["object_pan"][1], how["noise"][0], how["noise"][1]),
        "command": how_trained(args, path),
        "held_out": {
            "command": "python tools/train_flow.py --measure --scenes %d" % args.scenes,
            "size": [384, 512],
            "what": "pixels of background more than 16 from an object, pans of 0.3 to 8 pixels, "
                    "noise 2 of 255; errors in pixels, the bias is a scene's mean error vector",
            "results": rows,
        },
    }
    card = {"name": "tegula_flow", "version": args.version, "license": "Apache-2.0",
            "about": about}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(card, f, indent=2)
        f.write("\n")
    print("wrote", path, "for", args.out, "(%d bytes)" % os.path.getsize(args.out))


# -------------------------------------------------------------------- golden

def golden(args):
    """A small pair of frames, and what estimate() makes of it step by step."""
    import onnxruntime
    os.makedirs(args.golden, exist_ok=True)
    rng = np.random.default_rng([HELD_OUT_SEED, 4])
    stock = flow_scenes.Stock(HELD_OUT_SEED + 1, 3, 4)
    height, width = 75, 98                      # neither is a multiple of anything
    how = dict(HELD_OUT, pan=(3.0, 5.0), objects=(1, 1))
    frames, truth, _ = stock.scene(rng, height, width, how)
    tint = np.array([0.9, 1.0, 0.8])
    rgb = [np.clip(np.round(f[..., None] * tint * 255), 0, 255).astype(np.uint8) for f in frames]

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(args.out, options, providers=["CPUExecutionProvider"])
    trace = []
    results = {"flow_stop0": estimate(*rgb, session, 0, 1, trace),
               "flow_stop1": estimate(*rgb, session, 1, 1),
               "flow_stop1_repeat2": estimate(*rgb, session, 1, 2)}
    n = halvings(height, width)
    for i, flow in enumerate(trace[:-1]):       # the finest one is flow_stop0, as it were
        results["level%d" % (n - i)] = flow
    picture = continued(luma(rgb[0]), 2 << n)
    for _ in range(n):
        picture = halved(picture)
    results["evened%d" % n] = evened(picture)
    fed = rng.standard_normal((1, 10, 9, 14)).astype(np.float32)
    results["network_in"], results["network_out"] = fed, session.run(None, {"pair": fed})[0]

    other = session_of(args.out, 1)
    spread = float(np.abs(estimate(*rgb, other, 0, 1) - results["flow_stop0"]).max())
    results["image1"], results["image2"] = rgb
    for name, array in results.items():
        np.save(os.path.join(args.golden, name + ".npy"), np.ascontiguousarray(array))
    off = np.hypot(*(results["flow_stop1"] - truth))
    with open(os.path.join(args.golden, "golden.json"), "w", encoding="utf-8") as f:
        json.dump({
            "model": "configs/networks/flow.onnx",
            "made_by": "python tools/train_flow.py --golden tests/golden/flow",
            "reference": "estimate() in tools/train_flow.py, onnxruntime %s CPU, graph "
                         "optimisations off, float32" % onnxruntime.__version__,
            "licence": "Apache-2.0",
            "optimised_against_plain_max_abs": spread,
            "median_error_against_truth": round(float(np.median(off)), 4),
            "halvings": n,
            "files": {
                "image1.npy, image2.npy": "the frames, bytes, (75, 98, 3)",
                "evened%d.npy" % n: "the first frame on the coarsest level, evened",
                "network_in.npy, network_out.npy": "the network alone, on random numbers",
                "level<l>.npy": "flow after level l (one run a level), on its grid",
                "flow_stop<s>.npy": "the result where s is the finest level, (2, 75, 98)",
                "flow_stop1_repeat2.npy": "the same with two runs on every level",
            },
        }, f, indent=1)
        f.write("\n")
    print("optimised against plain %g, median error %.4f, %d bytes" % (
        spread, np.median(off), sum(os.path.getsize(os.path.join(args.golden, n))
                                    for n in os.listdir(args.golden))))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default="configs/networks/flow.onnx")
    ap.add_argument("--version", default="1.0.0")
    ap.add_argument("--seed", type=int, default=20250)
    ap.add_argument("--steps", type=int, default=12000)
    ap.add_argument("--minutes", type=float, default=0,
                    help="end after so many minutes if --steps takes longer")
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--fresh", type=int, default=2, help="new scenes in each batch")
    ap.add_argument("--crop", type=int, default=192)
    ap.add_argument("--canvases", type=int, default=500, help="pictures drawn before training")
    ap.add_argument("--rate", type=float, default=1.5e-3)
    ap.add_argument("--resume", help="start from these weights (a .pt file)")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--no-eval", action="store_true", help="export only, write no descriptor")
    ap.add_argument("--measure", action="store_true",
                    help="do not train: measure the file --out and write its descriptor anew")
    ap.add_argument("--scenes", type=int, default=40, help="held-out scenes to measure on")
    ap.add_argument("--frames", action="append", help="also a folder of neighbouring frames")
    ap.add_argument("--command", help="how the file was trained, for the descriptor")
    ap.add_argument("--golden", help="do not train: write the tests' arrays into this folder")
    args = ap.parse_args()
    if args.seed in (HELD_OUT_SEED, HELD_OUT_SEED + 1):
        ap.error("that seed draws the held-out scenes")
    if args.crop % 48:
        ap.error("--crop must be a multiple of 48")
    if args.golden:
        golden(args)
        return
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    print("%d parameters, %.1f kFLOP per pixel"
          % (parameters(), flop_per_pixel(STOP, REPEAT) / 1e3))
    if not args.measure:
        train(args)
    if not args.no_eval:
        describe(args)


if __name__ == "__main__":
    main()
