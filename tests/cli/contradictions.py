"""What the real command says in one place, it says in every place.

    contradictions.py TEGULA SOURCE_DIR [EMULATED_PLUGIN]

Each check is of something that was told twice, and differently."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TEGULA, SOURCE = map(os.path.abspath, sys.argv[1:3])
PLUGIN = sys.argv[3] if len(sys.argv) > 3 else None
sys.path.insert(0, os.path.join(SOURCE, "tests", "memory"))
from tiffmade import Made  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "tests", "fuzz"))
from seeds import model, node, port  # noqa: E402

MODEL = os.path.join(SOURCE, "models", "tegula_denoise.onnx")
JOB = ["-m", MODEL, "x.tif"]
GIB = 1 << 30
LAB = {"schema": "tegula.machine", "version": 1, "memory": {"total_bytes": 8 * GIB, "available_bytes": 6 * GIB},
       "processors": {"usable": 4, "instruction_sets": ["portable"]},
       "gpus": [{"name": "NVIDIA GeForce RTX 4070", "total_bytes": 12 * GIB, "free_bytes": 3 * GIB},
                {"name": "NVIDIA GeForce RTX 3060 Laptop GPU", "total_bytes": 6 * GIB}]}
failures = 0


def expect(truth, text):
    global failures
    if not truth:
        failures += 1
        print("FAILED: %s" % (text,), flush=True)


def tegula(*words, code=0, env=None):
    """Both streams; the exit code must be `code`."""
    r = subprocess.run([TEGULA] + list(words), capture_output=True, text=True,
                       env=dict(os.environ, TEGULA_CACHE=".", **(env or {})))
    expect(r.returncode == code, "%s: exit %d, not %d: %s" % (" ".join(words), r.returncode, code, r.stderr))
    return r.stdout + r.stderr


def event(*words, **how):
    lines = [json.loads(line) for line in tegula(*words, "--json", **how).splitlines() if line.startswith("{")]
    return lines[0] if lines else {}


def write(name, value):
    with open(name, "w") as f:
        json.dump(value, f)
    return name


def a_gpu_is_a_thing_that_is_computed_on():
    said = "(build|version) has no GPU|there is no GPU " + "backend|when there is a GPU " + "backend"
    for path in ("README.md", "docs", "engine", "cli", "include", "configs"):
        r = subprocess.run(["grep", "-rniE", said, os.path.join(SOURCE, path)],
                           capture_output=True, text=True)
        expect(r.returncode == 1, "there is a backend: %s" % r.stdout)


def sizes_of_gpus_that_are_given_are_those_asked_about():
    rows = event("estimate", "gpu", *JOB, "--vram", "16GiB,24GiB")
    expect([r["gpu"] for r in rows.get("fits", [])] == ["16GiB", "24GiB"], rows)
    expect(all(r["projected_seconds"] is None for r in rows.get("fits", [])), "a size has no speed")
    small = event("estimate", "gpu", *JOB, "--vram", "600MiB", code=71)
    expect(small.get("does_not_fit") == ["600MiB"], small)
    said = tegula("estimate", "gpu", "--vram", "16GiB", code=64)
    expect("-m MODEL" in said, said)


def a_gpu_is_found_by_the_name_on_its_box():
    for name, row in (("RTX 3060", "RTX 3060 12GB"), ("gtx 1080 ti", "GTX 1080 Ti"), ("RTX 3050 8GB", "RTX 3050 8GB"),
                      ("RTX 4060 Laptop", "RTX 4060 Laptop"), ("H200", "H200")):
        batch = event("estimate", "batch", "--params", "1M", "--gpu", name)
        expect(batch.get("batches", [{}])[0].get("gpu") == row, "%s: %s" % (name, batch))
    said = tegula("estimate", "batch", "--params", "1M", "--gpu", "A100", code=64)
    expect("A100 40GB or A100 80GB" in said, said)
    answer = event("estimate", "gpu", *JOB, "--deadline", "200h")
    expect("V100 32GB" in answer["without_kernels"] and "GTX 1080" in answer["without_kernels"], answer)
    expect(answer["least_for_deadline"] not in answer["without_kernels"], answer["least_for_deadline"])


def a_plan_for_a_machine_with_a_gpu_is_for_that_gpu():
    write("lab.json", LAB)
    of = ["--machine", "lab.json"]
    said = tegula("plan", *JOB, *of, "--device", "cuda", code=69)  # the tests' environment has no plugin
    expect("the kernels of the plugin" in said, said)
    if not PLUGIN:
        print("no emulated plugin here: plans for GPUs of machine files are not checked")
        return
    here = {"TEGULA_CUDA_PLUGIN": PLUGIN}
    plan = event("plan", *JOB, *of, "--device", "cuda", env=here)
    expect("RTX 3060 Laptop" in plan.get("device", ""), "the one with most free memory: %s" % plan.get("device"))
    expect(plan["device_budget_bytes"] < 6 * GIB, plan["device_budget_bytes"])
    plan = event("plan", *JOB, *of, "--device", "cuda:0", env=here)
    expect("RTX 4070" in plan.get("device", "") and plan["device_budget_bytes"] < 3 * GIB, plan)
    expect(plan["device_peak_bytes"] > 0 and plan["precision"] == "fp16", plan)
    expect("there is no device cuda:2" in tegula("plan", *JOB, *of, "--device", "cuda:2", env=here, code=69), "cuda:2")
    old = write("old.json", dict(LAB, gpus=[{"name": "GeForce GTX 1080", "total_bytes": 8 * GIB}]))
    expect("begin at 7.5" in tegula("plan", *JOB, "--machine", old, "--device", "cuda", env=here, code=69), "6.1")
    none = write("none.json", dict(LAB, gpus=[]))
    expect("has no GPU" in tegula("plan", *JOB, "--machine", none, "--device", "cuda", env=here, code=69), "none")
    odd = {"name": "Odd", "total_bytes": 8 * GIB}
    said = tegula("plan", *JOB, "--machine", write("odd.json", dict(LAB, gpus=[odd])), "--device", "cuda", env=here, code=69)
    expect("multiprocessors" in said, said)
    odd.update(compute_capability=[8, 6], multiprocessors=20)
    plan = event("plan", *JOB, "--machine", write("odd.json", dict(LAB, gpus=[odd])), "--device", "cuda", env=here)
    expect("Odd" in plan.get("device", ""), plan)


def a_disk_that_nobody_named_is_not_full():
    write("lab.json", LAB)
    text = tegula("plan", *JOB, "-o", "y.tif", "--machine", "lab.json")
    expect("0 B free" not in text and "not known" in text, text)
    disk = [l for l in event("plan", *JOB, "-o", "y.tif", "--machine", "lab.json")["lines"] if l["kind"] == "disk"]
    expect(disk and disk[0]["free_bytes"] is None, disk)


def images_that_are_not_held_are_not_preloaded():
    said = event("estimate", "data", "--kind", "vqa", "--samples", "100000", "--preload", "no", "--ram", "4GiB")
    expect(said["loader"] != "preload" and not [r for r in said["reasons"] if "preloaded" in r], said["reasons"])


def what_was_tried_is_not_advised():
    train = ["estimate", "training", "-m", MODEL, "--size", "4096x4096", "--vram", "1GiB"]
    expect("--checkpointing" in tegula(*train, code=71), "the way is there")
    for extra, gone in ((["--checkpointing"], "--checkpointing"), (["--precision", "O2"], "--precision O2"),
                        (["--batch", "1"], "--batch")):
        said = tegula(*train, *extra, code=71).splitlines()[-1]
        expect(gone not in said, "%s: %s" % (extra, said))
    said = tegula(*train, "--checkpointing", "--precision", "O2", "--batch", "1", code=71).splitlines()[-1]
    expect("larger GPU" in said, said)


BY_NAME = ("operators", "kernels", "settings")  # their keys are names of other things


def names_of(value, found):
    """Every key of an object, of those in it too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            found.add(key)
            if key not in BY_NAME or isinstance(inner, list):
                names_of(inner, found)
    elif isinstance(value, list):
        for inner in value:
            names_of(inner, found)
    return found


def every_member_of_a_plan_has_its_line():
    with open(os.path.join(SOURCE, "docs", "reference", "json.md")) as f:
        known = set(re.findall(r"`([a-z_0-9]+)`", f.read()))
    write("lab.json", LAB)
    jobs = [["plan", *JOB, "--why", "-o", "y.tif"], ["plan", *JOB, "--machine", "lab.json", "-o", "y.tif"],
            ["info", MODEL], ["info", "x.tif"], ["estimate", "gpu"], ["estimate", "gpu", *JOB, "--gpu", "T4"],
            ["estimate", "training", "-m", MODEL, "--checkpointing", "--vram", "8GiB"], ["doctor"], ["mem"],
            ["run", *JOB, "-o", "z.tif"], ["preset", "auto", *JOB, "--machine", "lab.json"]]
    for words in jobs:
        found = set()
        for line in tegula(*words, "--json").splitlines():
            if line.startswith("{"):
                names_of(json.loads(line), found)
        unknown = sorted(found - known)
        expect(not unknown, "%s: not in docs/reference/json.md: %s" % (" ".join(words[:2]), ", ".join(unknown)))


def every_member_of_a_receipt_has_its_line():
    with open(os.path.join(SOURCE, "docs", "reference", "files.md")) as f:
        known = set(re.findall(r"`([a-z_0-9]+)`", f.read()))
    tegula("run", *JOB, "-o", "r.tif", "--normalize", "zscore", "--stats", "r.stats.json")
    for name in ("r.tif.tegula.json", "r.stats.json"):
        with open(name) as f:
            members = json.load(f)
        members.pop("fingerprint", None)  # its keys are settings
        unknown = sorted(names_of(members, set()) - known)
        expect(len(members) > 2 and not unknown, "%s: not in docs/reference/files.md: %s" % (name, ", ".join(unknown)))


def a_timeline_is_drawn():
    tegula("run", *JOB, "-o", "t.tif", "--trace", "t.json")
    done = event("plot", "t.json", "-o", "t.svg")
    events = json.load(open("t.json"))["events"]
    steps = sorted([(e["begin_ns"], e["bytes"]) for e in events] +
                   [(e["end_ns"], -e["bytes"]) for e in events if e["end_ns"] is not None])
    held = most = 0
    for _, size in steps:
        held += size
        most = max(most, held)
    expect(done.get("maximum_bytes") == most and done["samples"] == len(steps) and not done["unfinished"], done)
    expect("<svg" in open("t.svg").read(), "no picture")
    with open("cut.json", "w") as f:
        f.write(open("t.json").read()[:-100])
    expect(event("plot", "cut.json", "-o", "cut.svg").get("unfinished") is True, "a cut timeline")
    for bad in ('{"begin_ns":-1,"end_ns":2,"bytes":3}', '{"begin_ns":5,"end_ns":2,"bytes":3}', '{"bytes":3}', "x", "]}\n1"):
        with open("bad.json", "w") as f:
            f.write('{"tegula_timeline":1,"pool":"engine","recorded":1,"dropped":0,"events":[\n%s\n]}\n' % bad)
        expect("line" in tegula("plot", "bad.json", "-o", "bad.svg", code=65), bad)


def a_descriptor_says_what_is_read():
    job = ["plan", *JOB, "--descriptor", "d.json"]
    for text, said in (('{"normalise": "zscore"}', "the nearest is \"normalize\""), ('{"task": "denoise"}', "about for all else"),
                       ('{"normalize": 3}', "must be a text"), ('{"about": "text"}', "must be an object")):
        with open("d.json", "w") as f:
            f.write(text)
        expect(said in tegula(*job, code=65), text)
    write("d.json", {"name": "n", "version": "1", "license": "MIT", "normalize": "zscore", "output": "raw", "precision": "fp32",
                     "about": {"anything": [1, {"at": "all"}]}})
    expect("normalize=zscore" in tegula(*job), "all keys")


def axes_that_are_missing_are_named_with_their_cure():
    def array(name, *shape):
        count = 1
        for n in shape:
            count *= n
        head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)).ljust(117).encode() + b"\n"
        with open(name, "wb") as f:
            f.write(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + bytes(4 * count))
    for shape, cure in (((30, 40, 1), "a.transpose(2, 0, 1)[None]"), ((3, 30, 40), "a.reshape(3,1,30,40)"), ((40,), "a.reshape(1,1,1,40)"), ((2, 1, 1, 30, 40), "give an array of these axes")):
        array("a.npy", *shape)
        said = tegula("run", "-m", MODEL, "a.npy", "-o", "b.npy", code=64)
        expect("[any,1,any,any]" in said and cure in said, "%s: %s" % (shape, said))
    results = set()
    for shape in ((1, 1, 32, 40), (32, 40), (1, 32, 40), (1, 1, 1, 32, 40)):  # the same numbers
        array("a.npy", *shape)
        tegula("run", "-m", MODEL, "a.npy", "-o", "b.npy", "-y")
        with open("b.npy", "rb") as f:
            results.add(f.read())
    expect(len(results) == 1 and b"(1, 1, 32, 40)" in results.pop(), "shapes of one array give different results")


def a_window_as_large_as_the_image_is_no_norm():
    nodes = [node("AveragePool", ["x"], ["p"], kernel_shape=[16, 16]), node("Add", ["x", "p"], ["y"])]
    with open("window.onnx", "wb") as f:
        f.write(model(nodes, [], [port("x", [1, 1, 16, 16])]))
    said = tegula("plan", "-m", "window.onnx", "x.tif", code=65)
    expect("has a window as large as the image" in said and "--norm-scope" not in said, said)
    info = tegula("info", "window.onnx")
    expect("reads the whole image" not in info and "has a window as large as the image" in info, info)


def main():
    folder = tempfile.mkdtemp(prefix="tegula-contradictions-")
    home = os.getcwd()
    os.chdir(folder)
    try:
        Made("x.tif", 300, 200)
        for check in (a_gpu_is_a_thing_that_is_computed_on, sizes_of_gpus_that_are_given_are_those_asked_about,
                      a_gpu_is_found_by_the_name_on_its_box, a_plan_for_a_machine_with_a_gpu_is_for_that_gpu,
                      a_disk_that_nobody_named_is_not_full, images_that_are_not_held_are_not_preloaded,
                      what_was_tried_is_not_advised, every_member_of_a_plan_has_its_line, every_member_of_a_receipt_has_its_line,
                      a_timeline_is_drawn, a_descriptor_says_what_is_read,
                      axes_that_are_missing_are_named_with_their_cure, a_window_as_large_as_the_image_is_no_norm):
            before = failures
            try:
                check()
            except (KeyError, IndexError, OSError, ValueError) as e:
                expect(False, "%s: %r" % (check.__name__, e))
            print("%s %s" % ("ok  " if failures == before else "FAIL", check.__name__), flush=True)
    finally:
        os.chdir(home)
        shutil.rmtree(folder)
    sys.exit(1 if failures else 0)


main()
