#!/usr/bin/env python3
"""Is a build as fast as another one? The command of both over an image, file to file, warm, in turns.

    python3 bench/two_builds.py OLD/cli/tegula NEW/cli/tegula MODEL.onnx ... [--side 1024] [--rounds 7]

For each network the median of new over old, and the least and the most of it: below 1 the new one is faster."""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

from large_stages import draw


def once(tegula, model, folder):
    began = time.monotonic()
    subprocess.run([tegula, "run", "-q", "-y", "-m", model, os.path.join(folder, "in.tif"), "-o", os.path.join(folder, "out.tif"),
                    "--normalize", "none", "--ram", "1GiB", "--threads", "2"], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("model", nargs="+")
    p.add_argument("--side", type=int, default=1024)
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        draw(os.path.join(folder, "in.tif"), a.side)
        for model in a.model:
            once(a.old, model, folder)
            once(a.new, model, folder)
            ratio = []
            for k in range(a.rounds):
                turn = (a.old, a.new) if k % 2 else (a.new, a.old)
                took = {t: once(t, model, folder) for t in turn}
                ratio.append(took[a.new] / took[a.old])
            print(f"{model}: new over old {statistics.median(ratio):.3f} of {a.rounds} ({min(ratio):.3f} to {max(ratio):.3f})", flush=True)


if __name__ == "__main__":
    main()
