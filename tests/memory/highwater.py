#!/usr/bin/env python3
"""Does the log know the maximum? Runs the command with --log and holds the largest memory in it
against the kernel's own high-water mark, VmHWM.

    highwater.py TEGULA OWN_MODEL

VmHWM is the largest sum of anonymous, shared and *file* pages; swap and page tables are not in it,
and what a run measures against its budget has no file pages. So two numbers are compared: the log's
largest anonymous + file + shared with VmHWM, within 2 %; and, of a run that reads its input into its
own memory (--io read), so that file pages are the program's few own ones, the receipt's measured peak
less page tables with VmHWM less those few, within 2 % as well. VmHWM comes from two places that have
to agree: ru_maxrss of the finished process, and the last line of its own log."""
import json
import os
import subprocess
import sys
import tempfile

import tiffmade

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "fuzz"))
from seeds import floats, model, node, npy  # noqa: E402

CLOSE = 0.02
DEEP = 3000  # layers: planning takes megabytes for a while


def run(args):
    """(events on stdout, VmHWM as the kernel counted it for the finished process)"""
    # The child is made by a small process of its own: ru_maxrss survives exec, and Python is large.
    code = ("import os,sys\np=os.posix_spawn(sys.argv[1],sys.argv[1:],os.environ)\n"
            "_,st,ru=os.wait4(p,0)\nprint('MAXRSS',ru.ru_maxrss*1024,os.waitstatus_to_exitcode(st))")
    p = subprocess.run([sys.executable, "-S", "-c", code] + args, stdin=subprocess.DEVNULL,
                       capture_output=True, text=True)
    lines = p.stdout.splitlines()
    word, most, status = lines[-1].split()
    if word != "MAXRSS" or status != "0":
        sys.exit(f"exit {status}: {p.stderr.strip()[-300:]}")
    return [json.loads(line) for line in lines[:-1]], int(most)


def rows_of(path):
    with open(path, encoding="utf-8") as f:
        header = f.readline().strip().split(",")
        return [dict(zip(header, line.strip().split(","))) for line in f]


def kind_of(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False).stdout.strip()


def off(a, b):
    return abs(a - b) / b


def beside_the_plan(tegula, tmp):
    """What planning took for itself is not there any more when the run takes its memory."""
    names = ["x"] + [f"t{i}" for i in range(1, DEEP)] + ["y"]
    nodes = [node("Conv", [names[i], "w"], [names[i + 1]], kernel_shape=[1, 1]) for i in range(DEEP)]
    net, x, log = (os.path.join(tmp, n) for n in ("deep.onnx", "x.npy", "deep.csv"))
    with open(net, "wb") as f:
        f.write(model(nodes, [floats("w", [2, 2, 1, 1])]))
    with open(x, "wb") as f:
        f.write(npy("<f4", "(1, 2, 512, 512)", bytes(4 * 2 * 512 * 512)))
    words = [tegula, "run", "-m", net, x, "-o", os.path.join(tmp, "y.npy"), "--json", "--ram", "64MiB", "--log", log, "--log-interval", "2ms",
             "-y"]
    traced, _ = run(words + ["--trace", os.path.join(tmp, "timeline.json")])
    if all(kind_of(d) in ("tmpfs", "ramfs") for d in (tmp, "/var/tmp")):
        traced = None  # no disk: the timeline lies in memory after all
    events, most = run(words)
    own, files = events[-1]["measured_peak_bytes"], max(int(r["file_bytes"]) for r in rows_of(log))
    print(f"deep   VmHWM less file pages is {(most - files) / own:.4f} of the measured peak")
    if (most - files) / own > 1 + CLOSE:
        print("   WRONG: more memory was there than was measured")
        return 1
    if not traced:
        print("deep   --trace: skipped, there is no disk for temporary files")
        return 0
    with_trace = traced[-1]["measured_peak_bytes"] / own
    print(f"deep   with --trace the measured peak is {with_trace:.4f} of that without")
    if with_trace > 1.005:  # 1.012 when the timeline lay in memory, 0.9999 since it lies in a file
        print("   WRONG: a timeline of allocations is memory that no plan knows")
        return 1
    return 0


def main():
    tegula, model = sys.argv[1:3]
    bad = 0
    print(f"{'input':6}{'log':>12}{'VmHWM':>12}{'ratio':>8}{'own peak':>12}{'ratio':>8}   (MiB)")
    with tempfile.TemporaryDirectory() as tmp:
        made = tiffmade.Made(os.path.join(tmp, "in.tif"), 2048, 3072, 1)
        tiffmade.fill(made)
        for how in ("map", "read"):
            log, out = os.path.join(tmp, how + ".csv"), os.path.join(tmp, how + ".tif")
            events, most = run([tegula, "run", "-m", model, made.path, "-o", out, "--json", "--ram",
                                "300MiB", "--io", how, "--log", log, "--log-interval", "2ms"])
            rows = rows_of(log)
            n = {k: [int(r[k + "_bytes"]) for r in rows] for k in (
                "anonymous", "file", "shared", "high_water", "page_table", "peak")}
            resident = max(sum(v) for v in zip(n["anonymous"], n["file"], n["shared"]))
            own = events[-1]["measured_peak_bytes"]
            # The program's own file pages: the least that any row after the first had.
            own_there = own - max(n["page_table"]) + min(n["file"][1:])
            mib = 1 << 20
            print(f"{how:6}{resident / mib:12.2f}{most / mib:12.2f}{resident / most:8.4f}"
                  f"{own / mib:12.2f}{own_there / most:8.4f}")
            for what, wrong in (
                    ("the log's maximum is not VmHWM", off(resident, most) > CLOSE),
                    ("the log's VmHWM is not the kernel's", off(n["high_water"][-1], most) > CLOSE),
                    ("the log's largest row is not the receipt's peak", max(n["peak"]) != own),
                    ("the measured peak is not VmHWM less file pages",
                     how == "read" and off(own_there, most) > CLOSE)):
                if wrong:
                    print(f"   WRONG: {what}")
                    bad += 1
        bad += beside_the_plan(tegula, tmp)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
