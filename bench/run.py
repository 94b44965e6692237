"""Measure tegula beside its peers, in turns, and keep the figures.

    bench/run.py [FAMILY ...] [--build DIR] [--threads N] [--rounds N] [--only TEXT] [--full] ...

Families: ops (kernels against oneDNN), tokens (linears and attention against its matrix products), nets (warm networks against ONNX Runtime), process (file to
file against a tifffile + ONNX Runtime script), stream (row streaming against untiled passes), overlap
(how busy kernels are while cold files are read and written), pool (the allocations of a run, replayed), film (film
to film against ffmpeg, Python and ONNX Runtime), inpaint (something is removed from films: inpaint.py), propainter (stages and a film against PyTorch; by name alone). Without a
family: all others, short. bench/README.md says how it is measured and what the columns
mean. Rows go to bench/results/DATE-MACHINE.jsonl, one JSON object per line."""
import argparse
import datetime
import json
import os
import sys

import lab
import table
from families import BY_NAME, FAMILIES, Bench


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("family", nargs="*", help="ops, tokens, nets, process, stream, overlap, estimate, pool, film, film_small, inpaint (all of these), propainter")
    p.add_argument("--build", default=os.path.join(lab.ROOT, "build-release"), help="folder with the programs")
    p.add_argument("--data", default=os.path.join(lab.ROOT, "..", "shared"), help="folder with data/models")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--isa", default="auto", help="cap tegula (and oneDNN): portable, avx2, avx512")
    p.add_argument("--sizes", default="512,1024", help="sides of the images of `nets`")
    p.add_argument("--side", type=int, default=4096, help="side of the image of `process`")
    p.add_argument("--ram", default="", help="budget that `process` gives tegula (its own default)")
    p.add_argument("--exact", action="store_true", help="`process` and `stream` with --exact; `nets` shows both")
    p.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains TEXT")
    p.add_argument("--full", action="store_true", help="every network in `process`, all rounds")
    p.add_argument("--no-peers", action="store_true", help="tegula's own columns only")
    p.add_argument("--out", default="", help="results file; '-' keeps nothing")
    args = p.parse_args()
    unknown = [f for f in args.family if f not in FAMILIES]
    if unknown:
        p.error(f"unknown family {unknown[0]}; there are {', '.join(FAMILIES)}")
    args.build = os.path.abspath(args.build)
    return args


def say(text):
    print(text, file=sys.stderr, flush=True)


def results_path(args):
    if args.out:
        return "" if args.out == "-" else args.out
    name = f"{datetime.date.today().isoformat()}-{lab.machine_name()}.jsonl"
    return os.path.join(lab.ROOT, "bench", "results", name)


def keep(path, row):
    if path:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "a") as f:
            f.write(json.dumps(row, sort_keys=True) + "\n")


def measure(bench, family, fixed, path):
    """Rows of a family, printed as they come; how many cases failed."""
    rows, failed = [], 0
    try:
        for row in FAMILIES[family](bench):
            if isinstance(row, lab.Failure):
                say(f"{family}: {row}")
                failed += 1
                continue
            row = {**fixed, "time": datetime.datetime.now().isoformat(timespec="seconds"),
                   "load": round(lab.load_average(), 1), **row}
            rows.append(row)
            print(table.text_line(row), flush=True)
            keep(path, row)
    except lab.Failure as e:
        say(f"{family}: {e}")
        failed += 1
    return rows, failed


def main():
    args = arguments()
    python = None if args.no_peers else lab.peer_python(args.build, say)
    if not python:
        say("without peers: no ratios in nets and process")
    cores = lab.pin(args.threads)
    fixed = {"schema": 1, "commit": lab.commit(), "machine": lab.machine()}
    path = results_path(args)
    say(f"{fixed['machine']['cpu']}, {args.threads} threads on {cores} processors, commit {fixed['commit']}, "
        f"load {lab.load_average():.1f}; results in {path or 'nothing'}")
    if lab.load_average() > 0.5:
        say("the machine is busy: good enough to see that it works, not for figures to keep")
    bench, rows, failures = Bench(args, python, say), [], 0
    for family in args.family or [f for f in FAMILIES if f not in BY_NAME]:
        print(table.text_head(family), flush=True)
        got, failed = measure(bench, family, fixed, path)
        rows, failures = rows + got, failures + failed
    print(table.text_means(rows))
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
