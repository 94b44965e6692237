# SPDX-License-Identifier: Apache-2.0
"""Train tegula's own denoiser on synthetic images and export it as ONNX.

  python tools/train_denoiser.py                  trains, exports, measures, writes the descriptor
  python tools/train_denoiser.py --steps 200 ...  a quick try

Needs numpy, torch (the CPU build is enough) and onnx; measuring also needs
onnxruntime and scipy. Every random choice comes from --seed, and the held-out
images use seeds the training never touches (see tools/eval_denoiser.py), so
the same versions on the same machine type give the same file.

The network is a U-Net of three scales with 16, 32 and 48 channels that
estimates the noise; the result is input minus noise. It is blind: it is told
neither gain nor read noise. Height and width must be multiples of 4.

    image ─ conv16 conv16 ─────────────────────────── cat conv16 conv16 conv1 ─(image - .)
                └ pool conv32 conv32 ─────── cat conv32 conv32 ┘ (resize x2)
                           └ pool conv48 conv48 ┘ (resize x2)
"""
import argparse
import json
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import eval_denoiser  # noqa: E402
import synth  # noqa: E402

WIDTHS = (16, 32, 48)
OPSET = 17
DIVISOR = 4

# Convolutions in the order they run: name, input channels, output channels, scale.
CONVS = (
    ("enc0_a", 1, WIDTHS[0], 0),
    ("enc0_b", WIDTHS[0], WIDTHS[0], 0),
    ("enc1_a", WIDTHS[0], WIDTHS[1], 1),
    ("enc1_b", WIDTHS[1], WIDTHS[1], 1),
    ("mid_a", WIDTHS[1], WIDTHS[2], 2),
    ("mid_b", WIDTHS[2], WIDTHS[2], 2),
    ("dec1_a", WIDTHS[2] + WIDTHS[1], WIDTHS[1], 1),
    ("dec1_b", WIDTHS[1], WIDTHS[1], 1),
    ("dec0_a", WIDTHS[1] + WIDTHS[0], WIDTHS[0], 0),
    ("dec0_b", WIDTHS[0], WIDTHS[0], 0),
    ("noise", WIDTHS[0], 1, 0),
)


def flop_per_pixel():
    """Multiplications and additions of the convolutions, per input pixel."""
    return sum(2 * 9 * ci * co / 4 ** scale for _, ci, co, scale in CONVS)


# ------------------------------------------------------------------- network

def build(torch):
    nn = torch.nn
    fn = nn.functional

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            for name, ci, co, _ in CONVS:
                conv = nn.Conv2d(ci, co, 3, padding=1)
                nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
                nn.init.zeros_(conv.bias)
                setattr(self, name, conv)
            nn.init.zeros_(self.noise.weight)   # starts as the identity

        def step(self, name, x):
            return fn.relu(getattr(self, name)(x))

        def forward(self, image):
            e0 = self.step("enc0_b", self.step("enc0_a", image))
            e1 = self.step("enc1_b", self.step("enc1_a", fn.max_pool2d(e0, 2)))
            m = self.step("mid_b", self.step("mid_a", fn.max_pool2d(e1, 2)))
            u1 = fn.interpolate(m, scale_factor=2, mode="nearest")
            d1 = self.step("dec1_b", self.step("dec1_a", torch.cat([u1, e1], 1)))
            u0 = fn.interpolate(d1, scale_factor=2, mode="nearest")
            d0 = self.step("dec0_b", self.step("dec0_a", torch.cat([u0, e0], 1)))
            return image - self.noise(d0)

    return Denoiser()


def export(weights, path, version):
    """Write the ONNX file node by node; weights maps "enc0_a.weight" to arrays."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, inits = [], []

    def conv(name, x, relu=True):
        for part in ("weight", "bias"):
            inits.append(numpy_helper.from_array(
                np.ascontiguousarray(weights[name + "." + part], np.float32), name + "." + part))
        y = name if relu else name + "_estimate"
        nodes.append(helper.make_node(
            "Conv", [x, name + ".weight", name + ".bias"], [name + "_conv" if relu else y],
            name=name, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]))
        if relu:
            nodes.append(helper.make_node("Relu", [name + "_conv"], [y], name=name + "_relu"))
        return y

    def pool(x, name):
        nodes.append(helper.make_node("MaxPool", [x], [name], name=name,
                                      kernel_shape=[2, 2], strides=[2, 2]))
        return name

    def up_cat(x, skip, name):
        nodes.append(helper.make_node(
            "Resize", [x, "", "twice"], [name], name=name, mode="nearest",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor"))
        nodes.append(helper.make_node("Concat", [name, skip], [name + "_cat"],
                                      name=name + "_cat", axis=1))
        return name + "_cat"

    inits.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice"))
    e0 = conv("enc0_b", conv("enc0_a", "image"))
    e1 = conv("enc1_b", conv("enc1_a", pool(e0, "down1")))
    m = conv("mid_b", conv("mid_a", pool(e1, "down2")))
    d1 = conv("dec1_b", conv("dec1_a", up_cat(m, e1, "up1")))
    d0 = conv("dec0_b", conv("dec0_a", up_cat(d1, e0, "up0")))
    noise = conv("noise", d0, relu=False)
    nodes.append(helper.make_node("Sub", ["image", noise], ["denoised"], name="subtract"))

    shape = ["N", 1, "H", "W"]
    graph = helper.make_graph(
        nodes, "tegula_denoise",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("denoised", TensorProto.FLOAT, shape)], inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                              producer_name="tegula tools/train_denoiser.py",
                              producer_version=version)
    model.ir_version = 8
    model.doc_string = "Blind denoiser for fluorescence images; see tegula_denoise.json."
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


# ---------------------------------------------------------------------- data

class Batches:
    """Endless training batches: a fixed pool of clean images, fresh noise each time."""

    def __init__(self, seed, pool, size, crop, batch):
        self.rng = np.random.default_rng([seed, 1])
        self.crop, self.batch = crop, batch
        self.pool = []
        for i in range(pool):
            rng = np.random.default_rng([seed, 0, i])
            self.pool.append(synth.clean_image(rng, size, synth.KINDS[i % len(synth.KINDS)])[0])

    def __call__(self):
        rng, c = self.rng, self.crop
        xs = np.empty((self.batch, 1, c, c), np.float32)
        ts = np.empty_like(xs)
        for b in range(self.batch):
            clean = self.pool[int(rng.integers(len(self.pool)))]
            noisy, expected = synth.add_noise(rng, clean, synth.draw_camera(rng))
            lo, hi = synth.limits(noisy)
            # The percentiles of a large, mostly empty image lie elsewhere than
            # those of a full one, so scale and zero are shaken.
            scale = synth.log_uniform(rng, 0.6, 1.8) / (hi - lo)
            zero = lo + rng.uniform(-0.1, 0.1) * (hi - lo)
            y, x = rng.integers(0, clean.shape[0] - c + 1, 2)
            turn, flip = int(rng.integers(4)), bool(rng.integers(2))
            for dst, src in ((xs, noisy), (ts, expected)):
                p = (src[y:y + c, x:x + c].astype(np.float32) - zero) * scale
                p = np.rot90(p, turn)
                dst[b, 0] = p[:, ::-1] if flip else p
        return xs, ts


def train(args):
    import torch
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    started = time.time()
    batches = Batches(args.seed, args.pool, 256, args.crop, args.batch)
    print("pool of %d clean images drawn in %.0f s" % (args.pool, time.time() - started), flush=True)

    net = build(torch).to(memory_format=torch.channels_last)
    params = list(net.parameters())
    mean = [p.detach().clone() for p in params]         # running mean of the weights
    optimiser = torch.optim.Adam(params, lr=args.rate)
    warm = min(100, args.steps // 10 + 1)
    loss_sum = 0.0
    for step in range(1, args.steps + 1):
        # learning rate: linear rise, then half a cosine down to 1 %
        t = max(0.0, (step - warm) / max(1, args.steps - warm))
        rate = args.rate * min(1.0, step / warm) * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * t)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        x, target = (torch.from_numpy(a).contiguous(memory_format=torch.channels_last)
                     for a in batches())
        mse = ((net(x) - target) ** 2).mean(dim=(1, 2, 3))
        loss = torch.sqrt(mse + 1e-6).mean()    # root per patch: dim and bright ones count alike
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimiser.step()
        with torch.no_grad():
            keep = min(0.998, step / (step + 10.0))
            for m, p in zip(mean, params):
                m.lerp_(p, 1 - keep)
        loss_sum += float(loss.detach())
        if step % 100 == 0 or step == args.steps:
            print("step %5d  rmse %.5f  rate %.1e  %.0f s"
                  % (step, loss_sum / (step % 100 or 100), rate, time.time() - started), flush=True)
            loss_sum = 0.0
        if step % 500 == 0 or step == args.steps:
            with torch.no_grad():
                backup = [p.detach().clone() for p in params]
                for p, m in zip(params, mean):
                    p.copy_(m)
                weights = {k: v.contiguous().numpy().copy() for k, v in net.state_dict().items()}
                for p, b in zip(params, backup):
                    p.copy_(b)
            export(weights, args.out, args.version)


def describe(args):
    """Measure the exported file on held-out images and write the descriptor."""
    results = eval_denoiser.evaluate(args.out, threads=args.threads)
    eval_denoiser.show(results)
    command = ("python tools/train_denoiser.py --seed %d --steps %d --batch %d --crop %d --pool %d"
               " --rate %g" % (args.seed, args.steps, args.batch, args.crop, args.pool, args.rate))
    about = {  # for people: tegula reads nothing of it
        "task": "denoise",
        "model": os.path.basename(args.out),
        "axes": "YX",
        "channels": 1,
        "divisor": DIVISOR,
        "normalize_help": "x = (raw - p1) / (p99.8 - p1), not clipped; the percentiles are taken "
                          "over the whole image, with linear interpolation between ranks",
        "output_help": "raw = y * (p99.8 - p1) + p1; round and clip for integer outputs",
        "flop_per_pixel": int(round(flop_per_pixel())),
        "parameters": sum(9 * ci * co + co for _, ci, co, _ in CONVS),
        "trained_on": "synthetic images alone, drawn by tools/synth.py: nuclei, cells, filaments, "
                      "beads and mixtures over uneven backgrounds; Poisson-Gaussian noise, "
                      "%g to %g photons in the brightest pixel, read noise %g to %g electrons, "
                      "gain %g to %g" % (synth.PEAK_PHOTONS + synth.READ_NOISE + synth.GAIN),
        "command": command,
        "held_out": dict(results, command="python tools/eval_denoiser.py"),
    }
    card = {
        "name": "tegula_denoise",
        "version": args.version,
        "license": "Apache-2.0",
        "normalize": "percentile:1,99.8",
        "output": "denormalize",
        "about": about,
    }
    path = os.path.splitext(args.out)[0] + ".json"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(card, f, indent=2)
        f.write("\n")
    print("wrote", args.out, "(%d bytes) and" % os.path.getsize(args.out), path)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default="models/tegula_denoise.onnx")
    ap.add_argument("--version", default="1.0.0")
    ap.add_argument("--seed", type=int, default=20240)
    ap.add_argument("--steps", type=int, default=12000)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--crop", type=int, default=96)
    ap.add_argument("--pool", type=int, default=800, help="clean images drawn before training")
    ap.add_argument("--rate", type=float, default=2e-3)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--no-eval", action="store_true", help="export only, write no descriptor")
    ap.add_argument("--measure", action="store_true",
                    help="do not train: measure the file --out and write its descriptor anew")
    args = ap.parse_args()
    if args.crop % DIVISOR:
        ap.error("--crop must be a multiple of %d" % DIVISOR)
    if args.seed == eval_denoiser.HELD_OUT_SEED:
        ap.error("that seed draws the held-out images")
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    print("%.1f kFLOP per pixel" % (flop_per_pixel() / 1e3))
    if not args.measure:
        train(args)
    if not args.no_eval:
        describe(args)


if __name__ == "__main__":
    main()
