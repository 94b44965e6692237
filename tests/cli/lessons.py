"""What finished runs teach: the next estimate, and nothing else.

    lessons.py TEGULA SOURCE_DIR

The real command with a cache folder of its own: a plan before and after runs differs in what it says of time alone,
the bytes of results do not differ, and `doctor` tells. A network with an operator that has no kernel is estimated by
what that takes: it is no hundred times off."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TEGULA, SOURCE = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests", "fuzz"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "memory"))
from seeds import floats, ints, model, node, port  # noqa: E402
from tiffmade import Made  # noqa: E402

MODEL = os.path.join(SOURCE, "models", "tegula_denoise.onnx")
OF_TIME = ("seconds_estimate", "seconds_least", "lessons")


def expect(truth, text):
    if not truth:
        print("FAILED: %s" % (text,), flush=True)
        sys.exit(1)


def tegula(*words, learn="yes"):
    r = subprocess.run([TEGULA] + list(words) + ["--json"], capture_output=True, text=True,
                       env=dict(os.environ, TEGULA_CACHE="cache", TEGULA_LEARN=learn))
    expect(r.returncode == 0, "%s: exit %d: %s" % (" ".join(words), r.returncode, r.stderr))
    return json.loads(r.stdout.splitlines()[-1])


def plan(*words, **how):
    """What is said of time, and all the rest but what the process itself holds."""
    p = tegula("plan", *words, **how)
    time = {key: p.pop(key) for key in OF_TIME}
    p.pop("peak_bytes")
    p["lines"] = [(line["name"], line["note"]) for line in p["lines"] if line["name"] != "process"]
    return time, p


def result(*words, **how):
    tegula("run", *words, "-o", "y.tif", "-y", **how)
    with open("y.tif", "rb") as f:
        return f.read()


def speeds():
    return [f["says"] for f in tegula("doctor")["findings"] if f["about"] == "speeds"][0]


def check_runs():
    job = ["-m", MODEL, "x.tif", "--ram", "256MiB"]
    before, first = plan(*job)
    expect(before["lessons"] == 0 and "no finished run" in speeds(), "something was known: %s" % before)
    bytes_before = result(*job, learn="no")
    expect(not os.path.exists("cache/lessons.json"), "TEGULA_LEARN=no wrote a file")
    bytes_first, bytes_then = result(*job), result(*job)
    expect(bytes_before == bytes_first == bytes_then, "lessons changed the result")
    after, then = plan(*job)
    expect(after["lessons"] == 2 and after["seconds_estimate"] != before["seconds_estimate"], "nothing was learned: %s" % after)
    expect(then == first, "lessons changed the plan")
    expect(plan(*job, learn="no")[0] == before, "TEGULA_LEARN=no reads the file")
    expect("corrected by 2 finished runs" in speeds(), speeds())
    with open("cache/lessons.json") as f:
        lessons = json.load(f)
    # Wrong lessons, by a factor of fifty either way: still the same plan.
    for factor in (1 / 50, 50):
        wrong = dict(lessons, seconds={k: [took * factor, said] for k, (took, said) in lessons["seconds"].items()})
        with open("cache/lessons.json", "w") as f:
            json.dump(wrong, f)
        time, again = plan(*job)
        expect(again == first, "wrong lessons changed the plan")
        expect(0.5 < time["seconds_estimate"] / after["seconds_estimate"] / factor < 2, "lessons are not used: %s" % time)
        chosen = tegula("preset", "auto", *job)
        expect(chosen["predicted_seconds"] < 10, "preset auto asks what ran here: %s" % chosen["predicted_seconds"])
    with open("cache/lessons.json", "w") as f:
        f.write("{damaged")
    expect(plan(*job)[0] == before, "a damaged file is a lesson")


def check_stages():
    """A run in stages teaches: the kernels of all its stages, and what it takes beside them."""
    if os.path.exists("cache/lessons.json"):
        os.unlink("cache/lessons.json")
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    with open("norms.onnx", "wb") as f:
        f.write(model([node("Conv", ["x", "w0"], ["a"], **conv), node("InstanceNormalization", ["a", "one", "one"], ["b"]),
                       node("Conv", ["b", "w1"], ["c"], **conv), node("InstanceNormalization", ["c", "one", "one"], ["d"]),
                       node("Conv", ["d", "w2"], ["y"], **conv)],
                      [floats("w0", [16, 1, 3, 3]), floats("w1", [16, 16, 3, 3]), floats("w2", [1, 16, 3, 3]), floats("one", [16])],
                      [port("x", [1, 1, "H", "W"])]))
    job = ["-m", "norms.onnx", "x.tif", "--ram", "24MiB"]
    before, first = plan(*job)
    expect("staged" in first, "in one pass")
    result(*job)
    after, then = plan(*job)
    expect(then == first and after["lessons"] == 1 and after["seconds_estimate"] != before["seconds_estimate"], "%s" % after)
    with open("cache/lessons.json") as f:
        lessons = json.load(f)
    expect("stages" in lessons["seconds"] and len(lessons["seconds"]) > 2, "keys: %s" % list(lessons["seconds"]))
    wrong = dict(lessons, seconds={k: [took * 50, said] for k, (took, said) in lessons["seconds"].items()})
    with open("cache/lessons.json", "w") as f:
        json.dump(wrong, f)
    time = plan(*job)[0]
    expect(0.5 < time["seconds_estimate"] / after["seconds_estimate"] / 50 < 2, "lessons are not used: %s" % time)


def check_operators():
    """Without a time of its own the product of tokens was as fast as a convolution: nothing."""
    with open("attention.onnx", "wb") as f:
        f.write(model([node("Reshape", ["x", "flat"], ["q"]), node("Transpose", ["q"], ["t"], perm=[0, 2, 1]),
                       node("MatMul", ["t", "q"], ["s"]), node("Softmax", ["s"], ["p"], axis=2),
                       node("MatMul", ["p", "t"], ["m"]), node("Transpose", ["m"], ["y"], perm=[0, 2, 1])],
                      [ints("flat", [1, 4, 32 * 32])], [port("x", [1, 4, 32, 32])], [port("y", [1, 4, 32 * 32])]))
    with open("x.npy", "wb") as f:
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 32, 32), }".ljust(117)
        f.write(b"\x93NUMPY\1\0" + (118).to_bytes(2, "little") + head.encode() + b"\n" + bytes(4 * 4 * 32 * 32))
    said = plan("-m", "attention.onnx", "x.npy", "-o", "y.npy", "--threads", "1", learn="no")[0]["seconds_estimate"]
    # 1024 x 1024 products of 4, a million exponentials, and the same again: more than a tenth of that at 10 GFLOP/s.
    expect(4e-3 < said < 1, "attention over 1024 tokens in %g s" % said)


def main():
    folder = tempfile.mkdtemp(prefix="tegula-lessons-")
    home = os.getcwd()
    os.chdir(folder)
    try:
        Made("x.tif", 900, 700)
        check_runs()
        check_stages()
        check_operators()
    finally:
        os.chdir(home)
        shutil.rmtree(folder)
    print("runs correct what is said of time; plans and bytes stay as they are")


main()
