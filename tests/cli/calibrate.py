"""tegula calibrate, and who uses what it measured.

    calibrate.py TEGULA SOURCE_DIR"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

TEGULA, SOURCE = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "tests", "memory"))
from tiffmade import Made  # noqa: E402

MODEL = os.path.join(SOURCE, "models", "tegula_denoise.onnx")
MOST_PROCESSOR_SECONDS = 30  # of one processor; on the clock it is no more unless others want it too


def expect(truth, text):
    if not truth:
        print("FAILED: " + text, flush=True)
        sys.exit(1)


def tegula(folder, *words):
    r = subprocess.run([TEGULA] + list(words), capture_output=True, text=True, cwd=folder,
                       env=dict(os.environ, TEGULA_CACHE=os.path.join(folder, "cache")))
    expect(r.returncode == 0, "%s: exit %d: %s" % (" ".join(words), r.returncode, r.stderr))
    return r.stdout


def last(text):
    return json.loads(text.splitlines()[-1])


def check_state(folder, calibrated, when):
    job = ["plan", "-m", MODEL, "x.tif"]
    expect(last(tegula(folder, *job, "--json"))["calibrated"] is calibrated, "%s: \"calibrated\"" % when)
    said = "uncalibrated: see tegula calibrate" in tegula(folder, *job)
    expect(said is not calibrated, "%s: what plan says" % when)
    mem = tegula(folder, "mem", "--json")
    expect(("speeds" in last(mem)) is calibrated, "%s: speeds of mem --json" % when)
    with open(os.path.join(folder, "here.json"), "w") as f:
        f.write(mem)
    there = last(tegula(folder, *job, "--json", "--machine", "here.json"))
    here = last(tegula(folder, *job, "--json"))
    expect(there["seconds_estimate"] == here["seconds_estimate"], "%s: by the machine file" % when)
    chosen = last(tegula(folder, "preset", "auto", "-m", MODEL, "x.tif", "--json"))
    expect(chosen["calibrated"] is calibrated, "%s: preset auto" % when)
    expect(calibrated or "was not calibrated" in chosen["reasons"][-1], "%s: %s" % (when, chosen["reasons"]))


def check_calibrate(folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    events = [json.loads(x) for x in tegula(folder, "calibrate", "--json").splitlines()]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    expect(took < MOST_PROCESSOR_SECONDS, "calibrate took %.1f s of the processor" % took)
    expect({e["event"] for e in events} == {"progress", "calibrate"}, "events: %s" % events)
    expect({e["phase"] for e in events[:-1]} == {"calibrate"}, "its own jobs show: %s" % events)
    kernels = events[-1]["kernels"]
    sets = last(tegula(folder, "mem", "--json"))["processors"]["instruction_sets"]
    for name in sets:
        for kernel in ("conv_direct", "conv_stem", "eltwise", "max_pool"):
            rates = kernels.get("%s %s" % (name, kernel))
            expect(rates and min(rates) > 0, "%s %s: %s" % (name, kernel, rates))
    expect(os.listdir(os.path.join(folder, "cache")) == ["calibration.json"], "it left something behind")
    print("calibrate took %.1f s of the processor" % took)


def check_another_processor(folder):
    path = os.path.join(folder, "cache", "calibration.json")
    with open(path) as f:
        of = json.load(f)
    own, of["processor"] = of["processor"], "of another machine"
    with open(path, "w") as f:
        json.dump(of, f)
    check_state(folder, False, "measured on another processor")
    of["processor"] = own
    with open(path, "w") as f:
        json.dump(of, f)
    check_state(folder, True, "measured on this one again")


def main():
    folder = tempfile.mkdtemp(prefix="tegula-calibrate-")
    try:
        Made(os.path.join(folder, "x.tif"), 700, 600)
        check_state(folder, False, "before")
        check_calibrate(folder)
        check_state(folder, True, "after")
        check_another_processor(folder)
    finally:
        shutil.rmtree(folder)
    print("ok")


main()
