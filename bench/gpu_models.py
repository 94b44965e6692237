#!/usr/bin/env python3
"""Whole networks on a GPU: tegula (bench_gpu_net, through the executor of jobs, copies included) beside
PyTorch in channels_last, FP16, cuDNN in benchmark mode, and compiled where torch.compile works (tensors on the
device, no copies counted). One row of JSON each, to standard output; and a large image file to file in budgets
of device memory.

    bench/gpu_models.py --build build-gpu [--data FOLDER] [--size 1024] [--no-compile] [--tiled 16384]

Networks: the project's own, and those of FOLDER/models. PyTorch runs the same file: node by node, by the
operators below. What it lacks (torch, onnx, an operator) is a row that says so. tegula's answer is compared with its
reference kernels before anything is timed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = ("unet2d_nuclei_broad", "fmd_noise2noise_unet", "kair_dncnn25", "span_x2_nomosuni", "compact_x2_nomosuni",
          "waifu2x_cunet_n1_x2")
ROUNDS = 9


def emit(**row):
    print(json.dumps(row, sort_keys=True), flush=True)


# ---- PyTorch: a network from the same file -----------------------------------------------------


def as_torch(path):
    """The network as a module that runs its nodes in order. KeyError: an operator is not below."""
    import onnx
    import torch
    import torch.nn.functional as F
    from onnx import numpy_helper

    graph = onnx.load(path).graph

    def pads(a, n):
        p = list(a.get("pads", [0] * (2 * n)))
        return p[:n], p[n:]

    def padded(x, a, n):
        before, after = pads(a, n)
        if before == after:
            return x, before
        return F.pad(x, [v for i in reversed(range(n)) for v in (before[i], after[i])]), [0] * n

    def conv(x, w, b=None, **a):
        x, p = padded(x, a, w.dim() - 2)
        return F.conv2d(x, w, b, a.get("strides", 1), p, a.get("dilations", 1), a.get("group", 1))

    def conv_transpose(x, w, b=None, **a):
        return F.conv_transpose2d(x, w, b, a.get("strides", 1), pads(a, 2)[0], a.get("output_padding", 0),
                                  a.get("group", 1), a.get("dilations", 1))

    def max_pool(x, **a):
        return F.max_pool2d(x, a["kernel_shape"], a.get("strides", a["kernel_shape"]), pads(a, 2)[0])

    def resize(x, *more, **a):
        scales = [float(v) for v in more[-1].tolist()]
        if len(more) == 3:  # the last are sizes
            scales = [s / d for s, d in zip(more[-1].tolist(), x.shape)]
        mode = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[a.get("mode", "nearest")]
        return F.interpolate(x, scale_factor=scales[2:], mode=mode, **({} if mode == "nearest" else
                             {"align_corners": a.get("coordinate_transformation_mode") == "align_corners"}))

    def cut(x, *lists, **a):
        starts, ends, axes, steps = ([int(v) for v in t.tolist()] for t in lists) if len(lists) == 4 else \
            ([int(v) for v in lists[0].tolist()], [int(v) for v in lists[1].tolist()],
             [int(v) for v in lists[2].tolist()] if len(lists) > 2 else list(range(len(lists[0]))),
             [1] * len(lists[0]))
        index = [slice(None)] * x.dim()
        for s, e, ax, st in zip(starts, ends, axes, steps):
            index[ax] = slice(s, e, st)
        return x[tuple(index)]

    def clip(x, lo=None, hi=None, **a):
        lo, hi = (a.get("min") if lo is None else float(lo)), (a.get("max") if hi is None else float(hi))
        return torch.clamp(x, lo, hi)

    ops = {"Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "Resize": resize, "Upsample": resize,
           "Slice": cut, "Clip": clip,
           "Relu": lambda x, **a: F.relu(x), "LeakyRelu": lambda x, **a: F.leaky_relu(x, a.get("alpha", 0.01)),
           "PRelu": lambda x, s, **a: F.prelu(x, s.reshape(-1)), "Sigmoid": lambda x, **a: torch.sigmoid(x),
           "Tanh": lambda x, **a: torch.tanh(x), "Abs": lambda x, **a: torch.abs(x),
           "Add": lambda x, y, **a: x + y, "Sub": lambda x, y, **a: x - y, "Mul": lambda x, y, **a: x * y,
           "Div": lambda x, y, **a: x / y, "Identity": lambda x, **a: x,
           "Concat": lambda *x, **a: torch.cat(x, a["axis"]),
           "DepthToSpace": lambda x, **a: F.pixel_shuffle(x, a["blocksize"]),
           "GlobalAveragePool": lambda x, **a: x.mean((2, 3), keepdim=True)}

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.input = next(i.name for i in graph.input if i.name not in {t.name for t in graph.initializer})
            self.output, self.steps, self.kept = graph.output[0].name, [], {}
            constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
            for n in graph.node:
                a = {v.name: onnx.helper.get_attribute_value(v) for v in n.attribute}
                if n.op_type == "Constant":
                    constants[n.output[0]] = numpy_helper.to_array(a["value"])
                    continue
                a = {k: v.decode() if isinstance(v, bytes) else v for k, v in a.items()}
                if n.op_type == "DepthToSpace" and a.get("mode", "DCR") == "DCR" and self.several(n, graph):
                    raise KeyError("DepthToSpace DCR of several channels")
                self.steps.append((ops[n.op_type], n.op_type, list(n.input), n.output[0], a))
            for name, v in constants.items():
                t = torch.from_numpy(v.copy())
                if t.is_floating_point() and not self.is_list(name):
                    self.register_parameter(self.slot(name), torch.nn.Parameter(t, requires_grad=False))
                else:
                    self.kept[name] = t

        def several(self, node, whole):
            """Whether DCR and CRD differ: they are the same for one channel out."""
            makers = {o: m for m in whole.node for o in m.output}
            maker = makers.get(node.input[0])
            weights = {t.name: t for t in whole.initializer}
            while maker is not None and maker.op_type != "Conv":
                maker = makers.get(maker.input[0])
            blocks = next(v.i for v in node.attribute if v.name == "blocksize") ** 2
            return maker is None or weights[maker.input[1]].dims[0] != blocks

        def is_list(self, name):
            return any(name in s[2][1:] and s[1] in ("Resize", "Upsample", "Slice", "Clip") for s in self.steps)

        @staticmethod
        def slot(name):
            return "p_" + "".join(c if c.isalnum() else f"_{ord(c)}_" for c in name)

        def forward(self, x):
            values = {self.input: x}

            def at(name):
                if name in values:
                    return values[name]
                return self.kept[name] if name in self.kept else getattr(self, self.slot(name))

            for op, _, names, out, a in self.steps:
                values[out] = op(*[at(n) for n in names if n], **a)
            return values[self.output]

    return Network().eval()


def torch_rows(name, path, size, compiled):
    import torch
    torch.backends.cudnn.benchmark = True
    channels = None
    net = as_torch(path)
    for p in net.parameters():
        if p.dim() == 4 and channels is None:
            channels = p.shape[1]
    net = net.cuda().half().to(memory_format=torch.channels_last)
    for batch in (1, 8):
        x = torch.rand(batch, channels, size, size, device="cuda").half().contiguous(memory_format=torch.channels_last)
        for kind in ("eager", "compiled") if compiled else ("eager",):
            row = {"family": "gpu_nets_torch", "model": name, "batch": batch, "kind": kind, "torch": torch.__version__}
            try:
                run = torch.compile(net) if kind == "compiled" else net
                emit(**row, size=size, **timed(run, x, batch * size * size * 1e-6))
            except Exception as e:  # pylint: disable=broad-except
                emit(**row, error=f"{type(e).__name__}: {e}"[:300])
        del x
        torch.cuda.empty_cache()


def timed(run, x, megapixels):
    import torch
    seconds = []
    with torch.inference_mode():
        for _ in range(3):
            run(x)
        torch.cuda.synchronize()
        for _ in range(ROUNDS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(5):
                run(x)
            end.record()
            torch.cuda.synchronize()
            seconds.append(begin.elapsed_time(end) * 1e-3 / 5)
    return {"mps": {"median": megapixels / statistics.median(seconds), "min": megapixels / max(seconds),
                    "max": megapixels / min(seconds), "rounds": ROUNDS}}


# ---- tegula ------------------------------------------------------------------------------------


def tegula_rows(a, name, path):
    for precision in ("fp16", "fp32"):
        for items in (1, 8):
            done = subprocess.run([os.path.join(a.build, "bench", "bench_gpu_net"), "--size", str(a.size), "--items",
                                   str(items), "--precision", precision, path], text=True, capture_output=True,
                                  check=False)
            if done.returncode == 77:
                print(done.stdout.strip())
                sys.exit(77)
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            for row in rows:
                emit(**{**row, "model": name})
            if not rows:
                emit(family="gpu_nets", model=name, element=precision, items=items, error=done.stderr.strip()[-300:])


def untiled_rate(a, model):
    """Megapixels a second of one pass over the image in memory; None where the device has no room for it."""
    done = subprocess.run([os.path.join(a.build, "bench", "bench_gpu_net"), "--size", str(a.tiled), "--items", "1",
                           "--rounds", "3", model], text=True, capture_output=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for row in rows:
        emit(**{**row, "model": "tegula_denoise"})
    return rows[0]["mpx_s"] if rows else None


def shares(done, rate):
    """How busy the device was while the bands went by, and the rate beside the untiled one."""
    bands = done.get("bands_seconds") or 0
    queues = [done.get(f"device_{q}_seconds", 0) for q in ("upload", "kernel", "download")]
    if not bands or not queues[1]:
        return {}
    return {"busy": queues[1] / bands, "overlap": sum(queues) / bands,
            "of_untiled": done["megapixels_per_second"] / rate if rate else None}


def tiled_rows(a):
    """A large image, file to file: the rate without a budget, then in budgets."""
    model = os.path.join(TOP, "models", "tegula_denoise.onnx")
    rate = untiled_rate(a, model)
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "in.tif")
        subprocess.run([os.path.join(a.build, "tools", "tegula-draw"), "--size", str(a.tiled), image,
                        os.path.join(folder, "clean.tif")], check=True, stdout=subprocess.DEVNULL)
        for budget in (None, "8GiB", "4GiB", "2GiB"):
            begin = time.time()
            done = subprocess.run([os.path.join(a.build, "cli", "tegula"), "run", "-y", "--json", "-m", model, image,
                                   "-o", os.path.join(folder, "out.tif"), "--device", "cuda", "--precision", "fp16"] +
                                  (["--vram", budget] if budget else []), text=True, capture_output=True, check=False,
                                  env={**os.environ, "TEGULA_CUDA_TIMES": "1"})
            last = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            emit(family="gpu_tiled", size=a.tiled, vram=budget, exit=done.returncode, seconds=time.time() - begin,
                 **(shares(last[-1], rate) if last else {}), done=last[-1] if last else None,
                 error=done.stderr.strip()[-300:] if done.returncode else None)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--data", help="folder that has models/NAME/model.onnx")
    p.add_argument("--size", type=int, default=1024)
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--tiled", type=int, default=16384, help="side of the large image; 0: none")
    a = p.parse_args()
    models = [("tegula_denoise", os.path.join(TOP, "models", "tegula_denoise.onnx"))]
    for name in MODELS:
        path = os.path.join(a.data or "", "models", name, "model.onnx")
        if a.data and os.path.exists(path):
            models.append((name, path))
    for name, path in models:
        tegula_rows(a, name, path)
        try:
            torch_rows(name, path, a.size, not a.no_compile)
        except Exception as e:  # pylint: disable=broad-except
            emit(family="gpu_nets_torch", model=name, error=f"{type(e).__name__}: {e}"[:300])
    if a.tiled:
        tiled_rows(a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
