"""bench/gpu_models.py on a device that is emulated: a small image file to file and a network in memory, to the
last row, with what a reader of the rows looks for.

usage: test_gpu_models.py BUILD

The plugin and what it pretends come with the environment.
"""
import json
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_models.py")
problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)


def main():
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
        expect((r.get("of_untiled") or 0) > 0, f"{r['vram']}: the rate beside the untiled one")
    nets = [r for r in rows if r["family"] == "gpu_nets"]
    expect([(r.get("element"), r.get("items"), r["case"].rsplit(" ", 1)[-1]) for r in nets if "case" in r] ==
           [("float16", 1, "64x64")] + [(e, i, "32x32") for e in ("float16", "float32") for i in (1, 8)],
           "the untiled row, and the network alone and eight times")
    for r in nets:
        expect(r.get("mps", {}).get("median", 0) > 0, f"a rate: {r}")
        half = r.get("element") == "float16"  # its convolutions of 64 channels
        expect((r.get("kinds"), r.get("nodes_of_kinds", 0) > 0) == (("wgmma", True) if half else ("", False)),
               f"kinds of kernels: {r}")
    for p in problems:
        print(p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
