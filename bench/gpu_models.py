#!/usr/bin/env python3
"""Whole networks on a GPU: tegula (bench_gpu_net, through the executor of jobs, copies included) beside PyTorch in
channels_last, FP16, cuDNN in benchmark mode, and compiled where torch.compile works, with its choices measured too
while there is time (tensors on the device, by its events, no copies counted). One row of JSON each, to standard
output, and one for each network and batch beside the best of PyTorch's; and a large image file to file in budgets of
device memory.

    bench/gpu_models.py --build build-gpu [--data FOLDER] [--size 1024] [--no-torch] [--no-compile]
    bench/gpu_models.py --build build-gpu --only tiled [--tiled 16384]

Networks: the project's own, and those of FOLDER/data/models or FOLDER/models. PyTorch runs the same file: node by
node, by the operators below. What it lacks (torch, onnx, an operator) is a row that says so. tegula's answer is compared
with its reference kernels before anything is timed, and at that size with the processor's own. What may take longest comes last: who ends this early has the rest.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = ("unet2d_nuclei_broad", "fmd_noise2noise_unet", "kair_dncnn25", "span_x2_nomosuni", "compact_x2_nomosuni",
          "waifu2x_cunet_n1_x2")
COMPILED = {"compiled": {}, "autotuned": {"mode": "max-autotune"}}  # words for torch.compile
ROUND = 0.02  # seconds between two events, of the peer as of bench_gpu_net
SHORTEST = 45  # seconds of which an autotuned network is tried


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


def torch_runner(net, kind):
    """For the batch that comes next and no other: asked for a second one, it would compile for any."""
    if kind == "eager":
        return net
    import torch
    import torch._dynamo
    torch._dynamo.reset()  # pylint: disable=protected-access
    return torch.compile(net, dynamic=False, **COMPILED[kind])


def torch_rows(name, path, a, kind, medians):
    """... whose medians go by batch."""
    import torch
    size = a.size
    torch.backends.cudnn.benchmark = True
    channels = None
    net = as_torch(path)
    for p in net.parameters():
        if p.dim() == 4 and channels is None:
            channels = p.shape[1]
    net = net.cuda().half().to(memory_format=torch.channels_last)
    for batch in (1, 8):
        x = torch.rand(batch, channels, size, size, device="cuda").half().contiguous(memory_format=torch.channels_last)
        row = {"family": "gpu_nets_torch", "model": name, "batch": batch, "kind": kind, "torch": torch.__version__}
        try:
            rate = timed(torch_runner(net, kind), x, batch * size * size * 1e-6, a.rounds)
            emit(**row, size=size, **rate)
            medians[batch] = rate["mps"]["median"]
        except TimeoutError:
            raise
        except Exception as e:  # pylint: disable=broad-except
            emit(**row, error=f"{type(e).__name__}: {e}"[:300])
        del x
        torch.cuda.empty_cache()


def timed(run, x, megapixels, rounds):
    import torch
    seconds = []
    with torch.inference_mode():
        def once(times):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(times):
                run(x)
            end.record()
            torch.cuda.synchronize()
            return begin.elapsed_time(end) * 1e-3 / times

        once(3)
        times = int(ROUND / once(3)) + 1
        for _ in range(rounds):
            seconds.append(once(times))
    return {"mps": {"median": megapixels / statistics.median(seconds), "min": megapixels / max(seconds),
                    "max": megapixels / min(seconds), "rounds": rounds}}


# ---- tegula ------------------------------------------------------------------------------------


def bench_net(a, name, path, size, *options):
    """Rows of bench_gpu_net, written as they are, but for the network's name; or what it says instead."""
    done = subprocess.run([os.path.join(a.build, "bench", "bench_gpu_net"), "--size", str(size), "--rounds",
                           str(a.rounds), "--kinds", a.kinds, *options, path], text=True, capture_output=True, check=False)
    if done.returncode == 77:
        print(done.stdout.strip())
        sys.exit(77)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for row in rows:
        emit(**{**row, "model": name})
    if not rows:
        emit(family="gpu_nets", model=name, size=size, options=options, error=done.stderr.strip()[-300:])
    return rows


def tegula_rows(a, name, path):
    """FP16 by batch: medians of kernels by the device's events, and of whole runs with copies by the host's clock."""
    medians = {}
    for precision in ("fp16", "fp32"):
        for row in bench_net(a, name, path, a.size, "--items", "1,8", "--precision", precision):
            if precision == "fp16" and "kernel_mps" in row:
                medians[row["items"]] = (row["kernel_mps"]["median"], row["run_mps"]["median"])
    return medians


def shares(done, rate):
    """How busy the device was while the bands went by, and the rate beside the untiled one: of the whole run, with
    its look at the pixels before (statistics) and its end, and of the bands alone."""
    bands = done.get("bands_seconds") or 0
    queues = [done.get(f"device_{q}_seconds", 0) for q in ("upload", "kernel", "download")]
    if not bands or not queues[1]:
        return {}
    mps = {"of_untiled": done["megapixels_per_second"]}
    mps["bands_of_untiled"] = mps["of_untiled"] * done["seconds"] / bands
    return {"busy": queues[1] / bands, "overlap": sum(queues) / bands, "bands_mps": mps["bands_of_untiled"],
            **{of: value / rate if rate else None for of, value in mps.items()}}


def tiled_rows(a):
    """A large image, file to file: the rate without a budget, then in budgets."""
    model = os.path.join(TOP, "models", "tegula_denoise.onnx")
    whole = bench_net(a, "tegula_denoise", model, a.tiled, "--items", "1")
    rate = whole[0]["run_mps"]["median"] if whole else None  # None: the device has no room for the whole image
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "in.tif")

        def draw(size):
            subprocess.run([os.path.join(a.build, "tools", "tegula-draw"), "--size", str(size), image,
                            os.path.join(folder, "clean.tif")], check=True, stdout=subprocess.DEVNULL)

        def run(budget):
            return subprocess.run([os.path.join(a.build, "cli", "tegula"), "run", "-y", "--json", "-m", model, image,
                                   "-o", os.path.join(folder, "out.tif"), "--device", "cuda", "--precision", "fp16"] +
                                  (["--vram", budget] if budget else []), text=True, capture_output=True, check=False,
                                  env={**os.environ, "TEGULA_CUDA_TIMES": "1", "TEGULA_CACHE": folder})

        draw(64)
        run(None)  # what is measured when a device is first used would count as work of its queues
        draw(a.tiled)
        for budget in (None, "8GiB", "4GiB", "2GiB"):
            begin = time.time()
            done = run(budget)
            last = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            emit(family="gpu_tiled", clock="host", size=a.tiled, vram=budget, exit=done.returncode, seconds=time.time() - begin,
                 **(shares(last[-1], rate) if last else {}), done=last[-1] if last else None,
                 error=done.stderr.strip()[-300:] if done.returncode else None)


def models(data):
    """(name, path): the project's own network, and those of the collection that are there."""
    yield "tegula_denoise", os.path.join(TOP, "models", "tegula_denoise.onnx")
    places = [os.path.join(data, *up, "models") for up in (["data"], [])] if data else []
    folder = next((p for p in places if os.path.isdir(p)), None)
    for name in MODELS if folder else ():
        path = os.path.join(folder, name, "model.onnx")
        if os.path.exists(path):
            yield name, path


def peer_rows(a, networks, begin):
    """(network, kind, medians by batch), kind after kind: what may take longest comes last, and ends in time."""
    for kind in () if a.no_torch else ("eager",) if a.no_compile else ("eager", *COMPILED):
        for name, path in networks:
            left = int(a.seconds - (time.time() - begin))
            if kind == "autotuned" and left < SHORTEST:
                return
            medians = {}
            try:
                signal.alarm(left if kind == "autotuned" else 0)
                torch_rows(name, path, a, kind, medians)
            except Exception as e:  # pylint: disable=broad-except
                emit(family="gpu_nets_torch", model=name, kind=kind, error=f"{type(e).__name__}: {e}"[:300])
            finally:
                signal.alarm(0)
            yield name, kind, medians


def too_late(*_):
    raise TimeoutError("no time is left for it")


def beside_the_best(ours, theirs):
    """tegula's FP16 over the fastest of what PyTorch did, for each network and batch that both have: kernels by events on
    both sides, and whole runs with our copies, by the host's clock, over the same."""
    for name, medians in ours.items():
        for batch, (kernels, runs) in medians.items():
            rates = {kind: of[batch] for (model, kind), of in theirs.items() if model == name and batch in of}
            if rates:
                best = max(rates, key=rates.get)
                emit(family="gpu_nets_against", model=name, batch=batch, kind=best, torch=rates[best], tegula=kernels,
                     ratio=kernels / rates[best], run_ratio=runs / rates[best])


def network_rows(a):
    begin, networks = time.time(), list(models(a.data))
    ours, theirs = {}, {}
    signal.signal(signal.SIGALRM, too_late)
    try:
        for name, path in networks:
            ours[name] = tegula_rows(a, name, path)
        for name, kind, medians in peer_rows(a, networks, begin):
            theirs[name, kind] = medians
    finally:  # ended early, too
        beside_the_best(ours, theirs)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--data", help="folder that has data/models/NAME/model.onnx, or models/NAME/model.onnx")
    p.add_argument("--only", choices=("tiled", "nets"), help="the large image, or the networks in memory")
    p.add_argument("--size", type=int, default=1024, help="side of images in memory")
    p.add_argument("--rounds", type=int, default=9, help="of a row; its median counts")
    p.add_argument("--kinds", choices=("measured", "all", "none"), default="measured",
                   help="variants that tegula uses where they pay: as bench_gpu_net has it")
    p.add_argument("--no-torch", action="store_true", help="without the peer")
    p.add_argument("--no-compile", action="store_true", help="the peer eager alone")
    p.add_argument("--seconds", type=int, default=400, help="until when the peer's choices may be measured, for networks")
    p.add_argument("--tiled", type=int, default=16384, help="side of the large image")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the large image is removed then too
    if a.only != "nets":
        tiled_rows(a)
    if a.only != "tiled":
        network_rows(a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
