#!/usr/bin/env python3
"""What `plan` says of a run over what it takes: before anything ran here, and after one run of the same command.

    python3 bench/plan_time.py --build build-release [--data ../shared/data/models] [--threads N] [MODEL...]

A drawn array of --side pixels, or twice or four times as many until the plan says --least seconds (what takes milliseconds is as
disturbed as it is long; a model that takes no drawn array: its stored one), goes through `tegula run`, twice, with a cache folder of its own. Time is processor
time of the command where there is one thread, less what planning alone takes: neighbours disturb it less; with more, what the command itself
measured from start to end. `load`: of the machine, at the end of each row."""
import argparse
import array
import ast
import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile


def tegula(build, words, cache):
    r = subprocess.run([os.path.join(build, "cli", "tegula")] + words + ["--json"], capture_output=True, text=True,
                       env=dict(os.environ, TEGULA_CACHE=cache, TEGULA_LEARN="yes", TEGULA_CUDA_PLUGIN="none"))
    if r.returncode:
        said = [line for line in r.stderr.splitlines() if line.startswith("tegula: ")]
        raise RuntimeError(said[0][8:] if said else "exit %d" % r.returncode)
    return json.loads(r.stdout.splitlines()[-1])


def processor_seconds():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def stored_array(folder):
    arrays = [os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".in.npy")]
    return max(arrays, key=os.path.getsize) if arrays else None


def drawn_array(inputs, side, path):
    """[1,C,side,side] or [1,side,side,C] of numbers in [0,1], or None where the model takes neither."""
    ports = ast.literal_eval(inputs)
    shape = ports[0][1]
    if len(ports) != 1 or len(shape) != 4:
        return None
    where = [k for k in (1, 3) if isinstance(shape[k], int) and shape[k] <= 4]
    if not where:
        return None
    channels, drawn = shape[where[0]], [1, side, side, side]
    drawn[where[0]] = channels
    values = array.array("f", [(i * 2654435761 % 4096) / 4096 for i in range(side * side)])
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (tuple(drawn),)).ljust(117)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + (118).to_bytes(2, "little") + head.encode() + b"\n" + values.tobytes() * channels)
    return path


def array_of(build, model, inputs, a, folder):
    """The smallest drawn array that takes the plan's word for --least seconds, or the stored one."""
    path, takes = os.path.join(folder, "in.npy"), None
    for side in (a.side, 2 * a.side, 4 * a.side):
        if not drawn_array(inputs, side, path):
            break
        try:
            said = tegula(build, ["plan", "-m", model, path, "--threads", str(a.threads), "--dtype", "float32"],
                          os.path.join(folder, "none"))["seconds_estimate"]
        except RuntimeError:
            break
        takes = side
        if said >= a.least:
            break
    return drawn_array(inputs, takes, path) if takes else stored_array(os.path.dirname(model))


def measure(build, model, pixels, threads, folder):
    """Estimates before and after, and what the runs took."""
    cache = os.path.join(folder, "cache")
    shutil.rmtree(cache, ignore_errors=True)
    job = ["-m", model, pixels, "--threads", str(threads), "--dtype", "float32"]
    out = ["-o", os.path.join(folder, "out.npy"), "-y"]
    said, took = [], []
    for _ in range(2):
        begin = processor_seconds()
        said.append(tegula(build, ["plan"] + job, cache)["seconds_estimate"])
        opening = processor_seconds() - begin
        done = tegula(build, ["run"] + job + out, cache)
        spent = processor_seconds() - begin - 2 * opening
        took.append(spent if threads == 1 else done["seconds"])
    return said, took


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default=os.path.join(here, "..", "build-release"))
    p.add_argument("--data", default=os.path.join(here, "..", "..", "shared", "data", "models"))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--side", type=int, default=768)
    p.add_argument("--least", type=float, default=0.25)
    p.add_argument("--keep", help="a folder that gets the lessons of each model")
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    folder = tempfile.mkdtemp(prefix="tegula-lessons-")
    with open(os.path.join(a.data, "index.csv"), newline="") as f:
        rows = {row["name"]: row for row in csv.DictReader(f)}
    print("%-30s %9s %9s %7s %7s %6s" % ("network", "said", "took", "before", "after", "load"), flush=True)
    try:
        for name in a.models or sorted(os.listdir(a.data)):
            model = os.path.join(a.data, name, "model.onnx")
            if not os.path.isfile(model):
                continue
            pixels = array_of(a.build, model, rows[name]["inputs"], a, folder)
            try:
                said, took = measure(a.build, model, pixels, a.threads, folder)
            except RuntimeError as e:
                print("%-30s %s" % (name, e), flush=True)
                continue
            print("%-30s %9.3f %9.3f %7.2f %7.2f %6.1f"
                  % (name, said[0], took[0], said[0] / took[0], said[1] / took[1], os.getloadavg()[0]), flush=True)
            if a.keep:
                os.makedirs(a.keep, exist_ok=True)
                lessons = os.path.join(folder, "cache", "lessons.json")
                if os.path.isfile(lessons):
                    shutil.copy(lessons, os.path.join(a.keep, name + ".json"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
