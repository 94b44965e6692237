"""The real command planning for machines by their files.

    machine.py TEGULA SOURCE_DIR FAKE_NVML

A machine file made here must give the plan made here; one of another machine the plan of that
machine; and a job runs on no machine but this one. The presets that `preset auto` chooses for the
machines of tests/golden/machines are those of tests/golden/presets, which --accept writes."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TEGULA, SOURCE, NVML = sys.argv[1:4]
ACCEPT = "--accept" in sys.argv
sys.path.insert(0, os.path.join(SOURCE, "tests", "memory"))
from tiffmade import Made  # noqa: E402

MODEL = os.path.join(SOURCE, "models", "tegula_denoise.onnx")
LAPTOP = {"schema": "tegula.machine", "version": 1,
          "memory": {"total_bytes": 8 << 30, "available_bytes": 6 << 30},
          "processors": {"model": "laptop", "usable": 4, "instruction_sets": ["portable", "avx2"]},
          "gpus": [{"name": "NVIDIA GeForce RTX 4070", "total_bytes": 12 << 30, "free_bytes": 11 << 30}]}
KIB = 1024


def expect(truth, text):
    if not truth:
        print("FAILED: " + text, flush=True)
        sys.exit(1)


def tegula(*words, env=None, code=0):
    """Standard output; the exit code must be `code`."""
    r = subprocess.run([TEGULA] + list(words), capture_output=True, text=True,
                       env=dict(os.environ, TEGULA_CACHE=".", **(env or {})))
    expect(r.returncode == code, "%s: exit %d: %s" % (" ".join(words), r.returncode, r.stderr))
    return r.stdout + (r.stderr if code else "")


def event(*words, **how):
    return json.loads(tegula(*words, "--json", **how).splitlines()[-1])


def write(name, value):
    with open(name, "w") as f:
        json.dump(value, f)
    return name


def of_process(plan):
    """Take out what depends on the process that plans: its own bytes and their sum; and what other
    programs change between two plans."""
    process = [line for line in plan["lines"] if line["name"] == "process"][0]
    peak, own = plan.pop("peak_bytes"), process.pop("bytes")
    expect(peak > own > 0, "a plan without a process")
    for line in plan["lines"]:
        line.pop("free_bytes", None)
    return peak, own


def check_own_file():
    """--ram makes the budget no matter of the moment. What the process holds differs by pages
    between two runs of one command too, in a sanitizer's build by MiB."""
    pages = (4096 if "ASAN_OPTIONS" in os.environ else 512) * KIB
    with open("here.json", "w") as f:
        f.write(tegula("mem", "--json"))
    for extra in (["--ram", "1GiB"], ["--ram", "48MiB"], ["--ram", "1GiB", "--threads", "3", "--isa", "portable"],
                  ["--ram", "1GiB", "--exact", "-o", "y.npy"]):
        if "48MiB" in extra and "ASAN_OPTIONS" in os.environ:
            continue  # MiB more or less of the process are another plan there
        job = ["plan", "-m", MODEL, "x.tif", "--why"] + extra
        here, there = event(*job), event(*job, "--machine", "here.json")
        machine = there.pop("machine", None)
        expect(machine and machine["file"] == "here.json" and "machine" not in here, "which machine: %s" % machine)
        (peak_here, own_here), (peak_there, own_there) = of_process(here), of_process(there)
        expect(abs(own_here - own_there) < pages, "process %d here, %d there" % (own_here, own_there))
        expect(peak_here - own_here == peak_there - own_there, "the rest of the peak differs")
        expect(json.dumps(here) == json.dumps(there), "%s: another plan\n%s\n%s" % (extra, here, there))
    whole, budget = event("mem")["memory"]["free_bytes"], event("plan", "-m", MODEL, "x.tif")["budget_bytes"]
    there = event("plan", "-m", MODEL, "x.tif", "--machine", "here.json")["budget_bytes"]
    expect(abs(budget - there) < whole / 4, "budget %d here, %d by the file" % (budget, there))


def check_laptop():
    write("laptop.json", LAPTOP)
    plan = event("plan", "-m", MODEL, "x.tif", "--machine", "laptop.json")
    expect(plan["isa"] == "avx2" and plan["threads"] == 4, "laptop: %s, %s threads" % (plan["isa"], plan["threads"]))
    expect(plan["machine"]["processor"] == "laptop", "laptop: %s" % plan["machine"])
    all_there = (6 << 30) + (4 << 20)
    expect(plan["budget_bytes"] == all_there - all_there // 10, "laptop: a budget of %d" % plan["budget_bytes"])
    text = tegula("plan", "-m", MODEL, "x.tif", "--machine", "laptop.json").splitlines()
    expect(text[0] == "for the machine of laptop.json: 4 processors, avx2, laptop", text[0])
    tegula("plan", "-m", MODEL, "x.tif", "--machine", "laptop.json", "--isa", "avx512", code=69)
    tegula("plan", "-m", MODEL, "x.tif", "--machine", "laptop.json", "--precision", "bf16", code=69)
    small = dict(LAPTOP, memory={"budget_bytes": 3 << 20})
    said = tegula("plan", "-m", MODEL, "x.tif", "--machine", write("small.json", small), code=71)
    expect("the budget is 3.00 MiB" in said, said)


def check_other_verbs():
    for verb in ("run", "verify", "preview", "copy"):
        said = tegula(verb, "x.tif", "--machine", "laptop.json", code=64)
        expect("a job runs on the machine it is started on" in said, said)
    expect(not os.path.exists("y.tif"), "something ran")
    tegula("plan", "-m", MODEL, "x.tif", "--machine", "none.json", code=66)
    said = tegula("plan", "-m", MODEL, "x.tif", "--machine", write("bad.json", dict(LAPTOP, gpu=1)), code=65)
    expect("bad.json: there is no key \"gpu\"; the nearest is \"gpus\"" in said, said)


def check_estimates():
    of = ["--machine", "laptop.json"]
    gpu = event("estimate", "gpu", "-m", MODEL, "x.tif", *of)
    expect([r["gpu"] for r in gpu["fits"]] == ["NVIDIA GeForce RTX 4070 #0"], "gpu: %s" % gpu["fits"])
    expect(gpu["fits"][0]["memory_bytes"] == 11 << 30 and gpu["fits"][0]["projected_seconds"] > 0, "gpu: %s" % gpu)
    expect(gpu["host_fits"] is True and gpu["machine"].startswith("laptop.json"), "gpu: %s" % gpu)
    named = event("estimate", "gpu", "-m", MODEL, "x.tif")
    like = [r for r in named["fits"] if r["gpu"] == "RTX 4070"][0]
    expect(like["roofline_seconds"] == gpu["fits"][0]["roofline_seconds"], "gpu: of another row")
    batch = event("estimate", "batch", "--params", "110M", *of)
    expect([b["memory_bytes"] for b in batch["batches"]] == [11 << 30] * 2, "batch: %s" % batch)
    expect(event("estimate", "data", "--samples", "1000", *of)["available_memory_gib"] == 6, "data")
    expect(event("estimate", "training", "-m", MODEL, *of)["gpus"][0]["fits"] is True, "training")
    said = tegula("estimate", "batch", "--params", "110M", "--vram", "16GiB", *of, code=64)
    expect("leave out --vram" in said, said)
    write("none.gpu.json", dict(LAPTOP, gpus=[]))
    expect("has no GPU" in tegula("estimate", "gpu", "-m", MODEL, "x.tif", "--machine", "none.gpu.json", code=64),
           "a machine without GPUs")
    # GPUs that a driver tells of come into the file, and back.
    with open("gpus.json", "w") as f:
        f.write(tegula("mem", "--json", env={"TEGULA_NVML": NVML}))
    rows = event("estimate", "batch", "--params", "110M", "--machine", "gpus.json")["batches"]
    expect(len(rows) >= 2, "GPUs of the driver: %s" % rows)


def check_presets():
    """Five machines, five presets of one job."""
    golden = os.path.join(SOURCE, "tests", "golden")
    seen = {}
    for name in sorted(os.listdir(os.path.join(golden, "machines"))):
        machine = os.path.join(golden, "machines", name)
        answer = event("preset", "auto", "-m", MODEL, "large.tif", "--machine", machine, "-o", "auto." + name)
        with open("auto." + name) as f:
            chosen = json.load(f)
        expect(chosen == answer["preset"] and answer["calibrated"], "%s: another answer than file" % name)
        path = os.path.join(golden, "presets", name)
        if ACCEPT:
            with open(path, "w") as f:
                f.write(json.dumps(chosen, indent=1) + "\n")
        with open(path) as f:
            want = json.load(f)
        expect(chosen == want, "%s: not the golden preset (--accept writes it): %s" % (name, json.dumps(chosen)))
        part = json.dumps([chosen["settings"], chosen.get("device")])
        expect(part not in seen, "%s and %s have the same preset" % (name, seen.get(part)))
        seen[part] = name
        plan = event("plan", "-m", MODEL, "large.tif", "--machine", machine, "--preset", "auto." + name)
        expect(plan["seconds_estimate"] == answer["predicted_seconds"], "%s: planned otherwise" % name)
    expect(len(seen) == 5, "machines: %s" % seen)
    tegula("preset", "auto", "-m", MODEL, "large.tif", "-o", "auto.laptop.json", code=73)
    expect(not os.path.exists("auto.laptop.json.tmp"), "something is left of what was not written")
    with open("job.json", "w") as f:
        json.dump({"model": MODEL, "input": "x.tif", "output": "y.tif", "threads": 2}, f)
    answer = event("preset", "auto", "--config", "job.json", "--machine", machine)
    expect(answer["preset"]["settings"]["threads"] == "2", "job file: %s" % answer)
    expect(not os.path.exists("y.tif"), "the preset went where the job's output goes")
    said = tegula("preset", "auto", "-m", MODEL, code=64)
    expect("the input image is missing" in said, said)
    said = tegula("preset", "auto", "-m", MODEL, "x.tif", "--ram", "3MiB", code=71)
    expect("what would do, least loss first" in said, said)
    text = tegula("preset", "auto", "-m", MODEL, "x.tif", "--machine", machine)
    expect("reasons" in text and "threads 24: of 24 processors" in text, text)


def main():
    folder = tempfile.mkdtemp(prefix="tegula-machine-")
    home = os.getcwd()
    os.chdir(folder)
    try:
        Made("x.tif", 700, 600)
        check_own_file()
        check_laptop()
        check_other_verbs()
        check_estimates()
        Made("large.tif", 4000, 2000, bytes_per=2)
        check_presets()
    finally:
        os.chdir(home)
        shutil.rmtree(folder)
    print("ok")


main()
