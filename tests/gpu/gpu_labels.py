"""Labels on a device, and a network whose author asks for float32.

usage: gpu_labels.py BUILD [--emulated PLUGIN]

A label is the number of the largest channel, the first of equals, so it is known from the channels themselves: those
that the same job writes without --labels. Another processor's channels c, all within e of these at a pixel, make
another label there only where their largest two are within 2 e of each other: no more labels may differ, and how many
do is counted. With --emulated it runs on the device that is played on the processor, else on a real one; without one
it is skipped (77). Standard library only; the network is made here.
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, distance, own_folder, pixels, played, read  # noqa: E402
from gpu_made import content, write  # noqa: E402
from seeds import floats, model, node, port  # noqa: E402

sys.argv += played()
EMULATED = sys.argv[3] if sys.argv[2:3] == ["--emulated"] else None
C = Command(sys.argv[1], EMULATED)
SIDE, TILE = (96, "40") if EMULATED else (700, "160")
CLASSES = 5
# Relative L2 of the channels from the processor's, as in gpu_run.py
NEAR = {"fp32": 1e-5, "fp16": 5e-3}


def make():
    k3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    write("classes.onnx", model(
        [node("Conv", ["x", "w"], ["a"], **k3), node("Relu", ["a"], ["b"]), node("Conv", ["b", "v", "c"], ["y"], **k3)],
        [floats("w", [16, 1, 3, 3], 7), floats("v", [CLASSES, 16, 3, 3], 31), floats("c", [CLASSES], 500)],
        [port("x", ["N", 1, "H", "W"])], [port("y", ["N", CLASSES, "H", "W"])]))
    shutil.copy("classes.onnx", "strict.onnx")
    write("strict.json", b'{"precision": "fp32", "output": "argmax"}')
    subprocess.run([os.path.join(C.build, "tools", "tegula-draw"), "--size", str(SIDE), "in.tif", "clean.tif"],
                   check=True, stdout=subprocess.DEVNULL)


def run(out, *words, net="classes.onnx", device="cuda"):
    code, done, said = C.run("-m", net, "in.tif", "-y", "-o", out, "--normalize", "zscore", "--device", device, *words)
    C.expect(code == 0, f"{net} {words} on {device}: exit {code}: {said}")
    return done, said


def channels(*words, device="cuda"):
    """Of each, its pixels."""
    run("channels.npy", *words, device=device)
    shape, values = read("channels.npy")
    C.expect(shape == (1, CLASSES, SIDE, SIDE), f"channels {words}: {shape}")
    n = SIDE * SIDE
    return [values[c * n:(c + 1) * n] for c in range(CLASSES)]


def largest(planes):
    """The first of the largest, pixel by pixel; and pixels where that is one of several."""
    found, equals = [], 0
    for values in zip(*planes):
        top = max(values)
        found.append(values.index(top))
        equals += values.count(top) > 1
    return found, equals


def labels_are_the_largest_channel():
    cpu = channels("--exact", device="cpu")
    want, _ = largest(cpu)
    run("cpu.tif", "--exact", "--labels", device="cpu")
    C.expect(list(pixels("cpu.tif")) == want, "labels of the processor are those of its channels")
    share = min(want.count(c) for c in range(CLASSES)) / len(want)
    C.expect(share > 0.05, f"every class is there: the rarest has {share:.2%}")
    for precision, most in NEAR.items():
        run(f"{precision}.tif", "--labels", "--precision", precision)
        got = list(pixels(f"{precision}.tif"))
        own = channels("--precision", precision)
        off = max(distance(a, b) for a, b in zip(own, cpu))
        C.expect(off < most, f"{precision}: channels are {off} from the processor's")
        here, equals = largest(own)
        C.expect(got == here, f"{precision}: labels are those of the device's channels but for "
                              f"{sum(a != b for a, b in zip(got, here))} of {len(got)}")
        run("array.npy", "--labels", "--precision", precision)
        C.expect(list(read("array.npy")[1]) == got, f"{precision}: an array has the labels of the image")
        compare(precision, got, want, own, cpu, equals)


def compare(precision, got, want, own, cpu, equals):
    """Labels of the device with those of the processor, given the channels of both."""
    near = other = wrong = 0
    for a, b, mine, theirs in zip(got, want, zip(*own), zip(*cpu)):
        e = max(abs(x - y) for x, y in zip(mine, theirs))
        second = max(v for c, v in enumerate(theirs) if c != b)
        near += theirs[b] - second <= 2 * e
        other += a != b
        wrong += theirs[b] - theirs[a] > 2 * e
    n = len(want)
    print(f"  {precision}: {1 - other / n:.4%} of the labels are the processor's; at least {1 - near / n:.4%} have to be; "
          f"{equals} pixels have several largest channels", flush=True)
    C.expect(wrong == 0, f"{precision}: {wrong} labels differ where the channels are far apart")
    C.expect(other <= near < n / 100, f"{precision}: {other} of {n} labels differ, {near} may")


def tiles_have_the_labels_of_the_whole():
    for precision in NEAR:
        done, said = run("tiles.tif", "--labels", "--precision", precision, "--tile", TILE)
        C.expect(done.get("tiles", 0) > 1, f"{precision} in tiles: {done}: {said}")
        C.expect(pixels("tiles.tif") == pixels(f"{precision}.tif"), f"{precision}: tiles have the labels of the whole")


def pretend_that_halves_are_faster():
    """In what was measured: so `auto` is fp16, on any device."""
    run("first.tif")
    name = os.path.join(os.environ["TEGULA_CACHE"], "devices.json")
    kept = json.loads(content(name))
    kept["devices"][0]["half_gain"] = 3.0
    write(name, json.dumps(kept, separators=(",", ":")).encode())


def precision_of(tif):
    return json.loads(content(tif + ".tegula.json"))["precision"]


def a_descriptor_that_says_fp32_has_it():
    pretend_that_halves_are_faster()
    run("auto.tif", "--labels")
    C.expect(precision_of("auto.tif") == "fp16", "auto is fp16 where no descriptor says otherwise")
    run("strict.tif", net="strict.onnx")
    C.expect(precision_of("strict.tif") == "fp32", f"the descriptor says fp32, the receipt {precision_of('strict.tif')}")
    C.expect(pixels("strict.tif") == pixels("fp32.tif"), "pixels are those of --precision fp32")
    _, said = run("asked.tif", "--precision", "fp16", net="strict.onnx")
    C.expect(precision_of("asked.tif") == "fp16" and "needs fp32" in said, f"fp16 that is asked for, and told: {said}")
    C.expect(pixels("asked.tif") == pixels("fp16.tif"), "its pixels are those of --precision fp16")


def main():
    if not C.there():
        return 77
    with own_folder():
        make()
        return C.steps(labels_are_the_largest_channel, tiles_have_the_labels_of_the_whole,
                       a_descriptor_that_says_fp32_has_it)


if __name__ == "__main__":
    sys.exit(main())
