"""bench/gpu_models.py on a device that is emulated: a small image file to file and a network in memory, to the
last row, with what a reader of the rows looks for. What PyTorch is asked for, of one that only notes it.

usage: test_gpu_models.py BUILD

The plugin and what it pretends come with the environment.
"""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import types

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_models.py")
problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)


class Noted:
    """A network, tensors and torch itself: calls give it back; those of `said` are noted."""
    said = []

    def __getattr__(self, name):
        def call(*_, **words):
            if name in ("compile", "reset", "rand"):
                Noted.said.append((name, words.get("mode"), words.get("dynamic"))[:1 if name != "compile" else 3])
            return self
        return call

    def parameters(self):
        return [types.SimpleNamespace(dim=lambda: 4, shape=(8, 3))]


def a_peer(seconds):
    """(what was asked of PyTorch, rows): a network of 2 megapixels a second by tegula, 1 eager, 4 compiled, 3 autotuned."""
    spec = importlib.util.spec_from_file_location("gpu_models", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    torch, Noted.said = Noted(), []
    torch.backends, torch.cuda, torch._dynamo = types.SimpleNamespace(cudnn=Noted()), Noted(), Noted()
    torch.channels_last, torch.__version__ = None, "0"
    sys.modules.update({"torch": torch, "torch._dynamo": torch._dynamo})
    rates = iter([1, 1, 4, 4, 3, 3])
    script.as_torch = lambda path: Noted()
    script.timed = lambda *_: {"mps": {"median": next(rates)}}
    script.models = lambda data: [("a", "a.onnx")]
    script.bench_net = lambda *_: [{"items": n, "kernel_mps": {"median": 2}, "run_mps": {"median": 1}} for n in (1, 8)]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        script.network_rows(argparse.Namespace(data=None, size=8, rounds=1, seconds=seconds, no_torch=False,
                                               no_compile=False))
    return Noted.said, [json.loads(line) for line in out.getvalue().splitlines()]


def the_peer_is_at_its_best():
    said, rows = a_peer(400)
    each = [[("rand",)], [("rand",), ("reset",), ("compile", None, False)],
            [("rand",), ("reset",), ("compile", "max-autotune", False)]]
    expect(said == [s for kind in each for _ in range(2) for s in kind], f"asked of PyTorch: {said}")
    got = [(r["batch"], r["kind"], r["torch"], r["ratio"], r["run_ratio"]) for r in rows if r["family"] == "gpu_nets_against"]
    expect(got == [(1, "compiled", 4, 0.5, 0.25), (8, "compiled", 4, 0.5, 0.25)], f"beside its best: {got}")
    said, _ = a_peer(10)
    expect(("compile", None, False) in said and ("compile", "max-autotune", False) not in said, f"no time: {said}")


def main():
    the_peer_is_at_its_best()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--build", sys.argv[1], "--tiled", "64", "--size", "32",
                               "--rounds", "1", "--kinds", "all", "--no-torch"], text=True, capture_output=True,
                              check=False, env={**os.environ, "TMPDIR": folder})
    print(done.stdout)
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    tiled = [r for r in rows if r["family"] == "gpu_tiled"]
    expect([r["vram"] for r in tiled] == [None, "8GiB", "4GiB", "2GiB"], "a row without a budget and one of each")
    for r in tiled:
        expect(r["exit"] == 0, f"{r['vram']}: {r['error']}")
        # Of the emulated device one thread does everything: the queues' time is a part of the bands'.
        expect(0.5 < r.get("busy", 0) <= r.get("overlap", 0) < 1.01, f"{r['vram']}: shares of the time of the bands")
        expect(0 < (r.get("of_untiled") or 0) <= (r.get("bands_of_untiled") or 0),
               f"{r['vram']}: the rate beside the untiled one, of the run and of its bands")
    nets = [r for r in rows if r["family"] == "gpu_nets"]
    expect([(r.get("element"), r.get("items"), r["case"].rsplit(" ", 1)[-1]) for r in nets if "case" in r] ==
           [("float16", 1, "64x64")] + [(e, i, "32x32") for e in ("float16", "float32") for i in (1, 8)],
           "the untiled row, and the network alone and eight times")
    for r in nets:
        for rate, clock in (("kernel_mps", "events"), ("run_mps", "host")):
            expect(r.get(rate, {}).get("median", 0) > 0 and r[rate]["clock"] == clock, f"a rate, by its clock: {r}")
        expect(r.get("without_graph") == 0, f"graphs: {r}")
        expect(r.get("round_ms", 0) >= 5, f"a round of kernels that is long enough: {r}")
        expect(0 <= r.get("answer_relative_l2", -1) <= r.get("answer_worst", -1), f"an answer of the timed size: {r}")
        half = r.get("element") == "float16"  # its convolutions of 64 channels
        expect((r.get("kinds"), r.get("nodes_of_kinds", 0) > 0) == (("wgmma", True) if half else ("", False)),
               f"kinds of kernels: {r}")
    for p in problems:
        print(p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
