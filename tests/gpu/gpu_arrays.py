"""Jobs of arrays on a device, by the command: several inputs, outputs at several scales, both orders of axes,
volumes, batches, every type of element; near the processor's result, tiles with the bits of the whole, inside
--vram, and what is left when the device fails.

usage: gpu_arrays.py BUILD [--emulated PLUGIN]

With --emulated it runs on the device that is played on the processor (small arrays, failures on demand), else on
a real one; without one it is skipped (77). Standard library only; the networks are made here.
"""
import json
import math
import os
import shlex
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, distance, played, read  # noqa: E402
from seeds import floats, ints, model, node, npy, port  # noqa: E402

sys.argv += played()
EMULATED = sys.argv[3] if len(sys.argv) > 3 and sys.argv[2] == "--emulated" else None
C = Command(sys.argv[1], EMULATED)
H, W = (40, 56) if EMULATED else (400, 520)
TILE = "8" if EMULATED else "64"  # of the first output
BUDGET = ("--vram", "200MiB") if EMULATED else ()  # the context of a real device may take more than that
# A real context is measured by what is free before and after: two of them need not take the same.
CONTEXT_MOVES = 0 if EMULATED else 64 << 20
K3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


# ---- Networks and arrays -----------------------------------------------------------------------


def conv(x, y, w, **more):
    return node("Conv", [x, w], [y], **{**K3, **more})


def forked():
    """Two inputs; the outputs are a half and an eighth of them."""
    return model([conv("a", "p", "wa", strides=[2, 2]), conv("b", "q", "wb"),
                  node("MaxPool", ["q"], ["r"], kernel_shape=[2, 2], strides=[2, 2]),
                  node("Concat", ["p", "r"], ["s"], axis=1), conv("s", "fine", "wf"), node("LeakyRelu", ["fine"], ["t"]),
                  node("MaxPool", ["t"], ["u"], kernel_shape=[4, 4], strides=[4, 4]), conv("u", "coarse", "wc")],
                 [floats("wa", [5, 3, 3, 3]), floats("wb", [4, 2, 3, 3]), floats("wf", [3, 9, 3, 3]),
                  floats("wc", [2, 3, 3, 3])],
                 [port("a", ["N", 3, "H", "W"]), port("b", ["N", 2, "H", "W"])],
                 [port("fine", ["N", 3, "h", "w"]), port("coarse", ["N", 2, "i", "j"])])


def last():
    """Channels are the last axis, in and out."""
    return model([node("Transpose", ["x"], ["a"], perm=[0, 3, 1, 2]), conv("a", "b", "w"),
                  node("Transpose", ["b"], ["y"], perm=[0, 2, 3, 1])], [floats("w", [4, 3, 3, 3])],
                 [port("x", ["N", "H", "W", 3])], [port("y", ["N", "H", "W", 4])])


def volume():
    return model([node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3, 3], pads=[1] * 6), node("Relu", ["a"], ["y"])],
                 [floats("w", [2, 1, 3, 3, 3])], [port("x", ["N", 1, "D", "H", "W"])],
                 [port("y", ["N", 2, "D", "H", "W"])])


def line():
    """One spatial axis, an image of one row inside."""
    return model([node("Conv", ["x", "w"], ["a"], kernel_shape=[5], pads=[2, 2]), node("Relu", ["a"], ["b"]),
                  node("MaxPool", ["b"], ["c"], kernel_shape=[2], strides=[2]),
                  node("Conv", ["c", "v"], ["d"], kernel_shape=[3], pads=[2, 2], dilations=[2]),
                  node("ConvTranspose", ["d", "u"], ["e"], kernel_shape=[2], strides=[2]),
                  node("Concat", ["e", "b"], ["f"], axis=1), node("Conv", ["f", "o"], ["y"], kernel_shape=[1])],
                 [floats("w", [16, 8, 5]), floats("v", [24, 16, 3]), floats("u", [24, 16, 2]), floats("o", [3, 32, 1])],
                 [port("x", ["N", 8, "L"])], [port("y", ["N", 3, "M"])])


def classes():
    """Integers come out. The weights are 16ths, so that channels may be equal but for the order of their sums."""
    return model([conv("x", "a", "w"), node("ArgMax", ["a"], ["y"], axis=1, keepdims=1)], [floats("w", [7, 3, 3, 3])],
                 [port("x", ["N", 3, "H", "W"])], [port("y", ["N", 1, "H", "W"], 7)])


def pooled():
    """Largest pixels go back to where they came from: integers between two nodes."""
    two = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return model([conv("x", "a", "w"), node("MaxPool", ["a"], ["b", "at"], **two), node("LeakyRelu", ["b"], ["c"]),
                  node("MaxUnpool", ["c", "at"], ["d"], **two), conv("d", "y", "v")],
                 [floats("w", [4, 3, 3, 3]), floats("v", [2, 4, 3, 3])], [port("x", ["N", 3, "H", "W"])],
                 [port("y", ["N", 2, "H", "W"])])


def attention():
    """Pixels attend to pixels, in two heads."""
    heads = [node("Reshape", [x, "apart"], [x + "r"]) for x in "qkv"]
    turned = [node("Transpose", [x + "r"], [x + "t"], perm=[0, 1, 3, 2]) for x in "qv"]
    return model([conv("x", "f", "w")] + [node("Conv", ["f", "w" + x], [x], kernel_shape=[1, 1]) for x in "qkv"] + heads
                 + turned + [node("MatMul", ["qt", "kr"], ["l"]), node("Softmax", ["l"], ["s"], axis=-1),
                             node("MatMul", ["s", "vt"], ["m"]), node("Transpose", ["m"], ["mt"], perm=[0, 1, 3, 2]),
                             node("Shape", ["q"], ["e"]), node("Reshape", ["mt", "e"], ["n"]), node("Add", ["f", "n"], ["y"])],
                 [floats("w", [4, 3, 3, 3]), *(floats("w" + x, [4, 4, 1, 1]) for x in "qkv"), ints("apart", [1, 2, 2, -1])],
                 [port("x", ["N", 3, "H", "W"])], [port("y", ["N", 4, "H", "W"])])


def deformed():
    """A convolution whose taps lie where two inputs say, which are float32 on a device whatever the precision is."""
    return model([conv("x", "f", "w"), node("DeformConv", ["f", "v", "offset", "b", "mask"], ["y"], offset_group=2, **K3)],
                 [floats("w", [16, 3, 3, 3]), floats("v", [9, 16, 3, 3]), floats("b", [9])],
                 [port("x", ["N", 3, "H", "W"]), port("offset", ["N", 36, "H", "W"]), port("mask", ["N", 18, "H", "W"])],
                 [port("y", ["N", 9, "H", "W"])])


def led():
    """The same with offsets that a convolution makes, which are not float32 on a device in 16 bits."""
    return model([conv("x", "offset", "w"), node("DeformConv", ["x", "v", "offset"], ["y"], **K3)],
                 [floats("w", [18, 3, 3, 3]), floats("v", [9, 3, 3, 3])], [port("x", ["N", 3, "H", "W"])],
                 [port("y", ["N", 9, "H", "W"])])


def plain():
    return model([conv("x", "y", "w")], [floats("w", [2, 3, 3, 3])], [port("x", ["N", 3, "H", "W"])])


def numbers(shape, descr="<f4", seed=0):
    n, code = 1, {"<f4": "f", "<f2": "e", "<f8": "d", "|u1": "B", "|i1": "b", "<u2": "H", "<i2": "h", "<i4": "i",
                  "<i8": "q"}[descr]
    for s in shape:
        n *= s
    whole = [(i * 7919 + seed * 104729) % 251 for i in range(n)]
    values = [v / 251 - 0.4 for v in whole] if descr[1] == "f" else [v % 100 for v in whole]
    return npy(descr, repr(tuple(shape)), struct.pack(f"<{n}{code}", *values))


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def make():
    for name, net in (("forked", forked()), ("last", last()), ("volume", volume()), ("line", line()),
                      ("classes", classes()), ("plain", plain()), ("pooled", pooled()), ("attention", attention()),
                      ("deformed", deformed()), ("led", led())):
        write(name + ".onnx", net)
    write("a.npy", numbers([1, 3, H, W]))
    write("small.npy", numbers([1, 3, H // 2, W // 2]))
    write("b.npy", numbers([1, 2, H, W], seed=1))
    write("offset.npy", numbers([1, 36, H // 2, W // 2], seed=2))
    write("mask.npy", numbers([1, 18, H // 2, W // 2], seed=3))
    write("last.npy", numbers([1, H, W, 3]))
    write("volume.npy", numbers([1, 1, 9, H // 2, W // 2]))
    write("line.npy", numbers([1, 8, 10 * W]))
    write("three.npy", numbers([3, 3, H, W]))
    write("pair.npy", numbers([3, 2, H, W], seed=1))


FORKED = ("-m", "forked.onnx", "--input", "a=a.npy", "--input", "b=b.npy")
JOBS = {"two inputs and outputs": (FORKED, ("fine", "coarse")),
        "channels last": (("-m", "last.onnx", "last.npy"), ("y",)),
        "a volume": (("-m", "volume.onnx", "volume.npy"), ("y",)),
        "a line": (("-m", "line.onnx", "line.npy"), ("y",)),
        "classes": (("-m", "classes.onnx", "a.npy"), ("y",))}
WHOLE = {"attention": (("-m", "attention.onnx", "small.npy"), ("y",)),  # the image at once
         "deformed": (("-m", "deformed.onnx", "--input", "x=small.npy", "--input", "offset=offset.npy", "--input",
                       "mask=mask.npy"), ("y",))}


def on_device(folder, *words, order=None, precision="fp32", vram=None):
    return C.run(*words, "-y", "-o", folder + "/", "--device", "cuda", "--precision", precision,
                 *(("--vram", vram) if vram else BUDGET), order=order)


def result(folder, names):
    try:
        return [read(os.path.join(folder, n + ".npy")) for n in names]
    except OSError:
        return []


# ---- Results -----------------------------------------------------------------------------------


def near_the_processor():
    for what, (words, names) in {**JOBS, **WHOLE}.items():
        code, _, said = C.run(*words, "-y", "-o", "cpu/", "--device", "cpu", "--exact")
        cpu = result("cpu", names)
        C.expect(code == 0 and len(cpu) == len(names), f"{what} on the processor: exit {code}: {said}")
        for precision, most in (("fp32", 1e-5), ("fp16", 5e-3)):
            code, done, said = on_device("device", *words, precision=precision)
            got = result("device", names)
            C.expect(code == 0 and len(got) == len(names), f"{what}, {precision}: exit {code}: {said}")
            for name, (shape, values), (want_shape, want) in zip(names, got, cpu):
                C.expect(shape == want_shape, f"{what}, {name}: shape {shape}, not {want_shape}")
                off = distance(values, want)
                wrong = sum(x != y for x, y in zip(values, want)) / len(want)
                if what == "classes":
                    print(f"  {what}, {precision}: {wrong:.2%} another class", flush=True)
                    C.expect(wrong < 0.01, f"{what}: {wrong} are another class")
                else:
                    print(f"  {what}, {name}, {precision}: relative L2 {off:.3g}", flush=True)
                    C.expect(off < most, f"{what}, {name}, {precision}: {off} from the processor")
            C.expect(0 < done.get("device_measured_bytes", 0) <= done["device_predicted_bytes"]
                     <= done["device_budget_bytes"], f"{what}: {done} tells the device's memory")


def offsets_are_never_rounded():
    words = ("-m", "led.onnx", "small.npy")
    code, _, said = on_device("led", *words)
    C.expect(code == 0, f"computed offsets, fp32: exit {code}: {said}")
    code, _, said = on_device("led", *words, precision="fp16")
    C.expect(code == 65 and "reads float32 numbers as input 2" in said, f"computed offsets, fp16: exit {code}: {said}")


def tiles_have_the_bits_of_the_whole():
    for what, (words, names) in JOBS.items():
        for precision in ("fp32", "fp16"):
            on_device("whole", *words, precision=precision)
            code, done, said = on_device("tiles", *words, "--tile", TILE, precision=precision)
            C.expect(code == 0 and done.get("tiles", 0) > 1, f"{what} in tiles: exit {code}, {done}: {said}")
            C.expect(code == 0 and result("tiles", names) == result("whole", names),
                     f"{what}, {precision}: tiles equal the whole")


def far(got, want):
    """What verify says of two results, worked out here: the largest difference, relative L2, PSNR."""
    most = max(abs(x - y) for x, y in zip(got, want))
    squares, of = sum((x - y) ** 2 for x, y in zip(got, want)), sum(y * y for y in want)
    span = max(want) - min(want)
    return most, math.sqrt(squares / of), 10 * math.log10(span * span * len(want) / squares) if squares else None


def verify_says_how_far_every_output_is():
    """... from the processor, as two runs say it."""
    for what, (words, names) in JOBS.items():
        for precision in ("fp32", "fp16"):
            C.run(*words, "-y", "-o", "cpu/", "--device", "cpu")
            on_device("device", *words, precision=precision)
            code, said, err = C.run(*words, "--device", "cuda", "--precision", precision, *BUDGET, verb="verify")
            outputs = said.get("outputs", [])
            C.expect(code == 0 and [o["name"] for o in outputs] == list(names) and said["device_precision"] == precision
                     and said["device_bit_equal"] and said["device_tiles"] > 1 and said["bit_equal"],
                     f"verify of {what}, {precision}: exit {code}, {said}: {err}")
            for o, (_, got), (_, want) in zip(outputs, result("device", names), result("cpu", names)):
                most, relative, psnr = far(got, want)
                told = o["device_max_abs_difference"], o["device_relative_l2"], o["device_psnr"]
                C.expect(math.isclose(told[0], most, rel_tol=1e-6) and math.isclose(told[1], relative, rel_tol=1e-6)
                         and (told[2] is psnr is None or math.isclose(told[2], psnr, rel_tol=1e-6)),
                         f"verify of {what}, {o['name']}, {precision}: {told}, but {(most, relative, psnr)}")
    n = 3 * H * W
    write("large.npy", npy("<f4", repr((1, 3, H, W)), struct.pack(f"<{n}f", *[1e6 + i for i in range(n)])))
    code, said, err = C.run("-m", "plain.onnx", "large.npy", "--device", "cuda", "--precision", "fp16", verb="verify")
    C.expect(code == 0 and said["outputs"][0]["device_nonfinite"] > 0 and said["device_psnr"] is None,
             f"verify of large numbers: exit {code}, {said}: {err}")
    code, said, err = C.run("-m", "plain.onnx", "three.npy", "--device", "cuda", verb="verify")
    C.expect(code == 0 and said["items"] == 3, f"verify of a batch: exit {code}, {said}: {err}")


def samples_of_a_batch_are_what_each_is_alone():
    words = ("-m", "forked.onnx", "--input", "a=three.npy", "--input", "b=pair.npy")
    code, done, said = on_device("batch", *words)
    all_three = result("batch", ("fine", "coarse"))
    C.expect(code == 0 and all_three and all_three[0][0][0] == 3, f"a batch of three: exit {code}, {done}: {said}")
    with open("three.npy", "rb") as f, open("pair.npy", "rb") as g:
        a, b = f.read()[-3 * 3 * H * W * 4:], g.read()[-3 * 2 * H * W * 4:]
    for k in range(3):
        write("a1.npy", npy("<f4", repr((1, 3, H, W)), a[k * len(a) // 3:(k + 1) * len(a) // 3]))
        write("b1.npy", npy("<f4", repr((1, 2, H, W)), b[k * len(b) // 3:(k + 1) * len(b) // 3]))
        on_device("alone", "-m", "forked.onnx", "--input", "a=a1.npy", "--input", "b=b1.npy")
        for (_, values), (_, one) in zip(all_three, result("alone", ("fine", "coarse"))):
            n = len(one)
            C.expect(values[k * n:(k + 1) * n] == one, f"sample {k} of a batch is what it is alone")


def every_type_of_element_goes_in():
    for descr in ("<f2", "<f8", "|u1", "|i1", "<u2", "<i2", "<i4", "<i8"):
        write("typed.npy", numbers([1, 3, H, W], descr))
        words = ("-m", "plain.onnx", "typed.npy")
        C.run(*words, "-y", "-o", "cpu/", "--device", "cpu", "--exact")
        code, _, said = on_device("device", *words)
        off = distance(result("device", ["y"])[0][1], result("cpu", ["y"])[0][1]) if code == 0 else said
        C.expect(code == 0 and off < 1e-5, f"elements {descr}: {off}")


def what_half_precision_does_not_hold_is_told():
    n = 3 * H * W
    write("large.npy", npy("<f4", repr((1, 3, H, W)), struct.pack(f"<{n}f", *[1e6 + i for i in range(n)])))
    words = ("-m", "plain.onnx", "large.npy")
    code, done, said = on_device("large", *words)
    C.expect(code == 0 and not done["nonfinite"] and "infinite" not in said, f"large numbers, fp32: exit {code}: {said}")
    code, done, said = on_device("large", *words, precision="fp16")
    C.expect(code == 0 and done["nonfinite"] and "--precision fp32" in said, f"large numbers, fp16: exit {code}: {said}")


def places_are_counted_where_elements_count_them():
    words = ("-m", "pooled.onnx", "a.npy")
    C.run(*words, "-y", "-o", "cpu/", "--device", "cpu", "--exact")
    code, _, said = on_device("pooled", *words)
    off = distance(result("pooled", ["y"])[0][1], result("cpu", ["y"])[0][1]) if code == 0 else said
    C.expect(code == 0 and off < 1e-5, f"pixels back in their places: exit {code}, {off}")
    code, _, said = on_device("refused", *words, precision="fp16")
    C.expect(code == 65 and "MaxPool" in said, f"places beyond 2048 in halves: exit {code}: {said}")


def an_image_goes_in_and_arrays_come_out():
    """... in a folder, and as one; a plane of the stack is a sample."""
    subprocess.run([os.path.join(C.build, "tools", "tegula-draw"), "--size", str(H), "in.tif", "clean.tif"], check=True,
                   stdout=subprocess.DEVNULL)
    write("one.onnx", model([conv("x", "y", "w", strides=[2, 2]), conv("y", "z", "v")],
                            [floats("w", [2, 1, 3, 3]), floats("v", [1, 2, 3, 3])],
                            [port("x", ["N", 1, "H", "W"])],
                            [port("y", ["N", 2, "h", "w"]), port("z", ["N", 1, "h", "w"])]))
    words = ("-m", "one.onnx", "in.tif", "--normalize", "scale:1/65535")
    write("half.onnx", model([conv("x", "y", "w", strides=[2, 2])], [floats("w", [2, 1, 3, 3])],
                             [port("x", ["N", 1, "H", "W"])], [port("y", ["N", 2, "h", "w"])]))
    code, done, said = C.run("-m", "half.onnx", *words[2:], "-y", "-o", "image.npy", "--device", "cuda", "--precision",
                             "fp32")
    cpu = C.run("-m", "half.onnx", *words[2:], "-y", "-o", "image_cpu.npy", "--device", "cpu", "--exact")
    C.expect(code == 0 and cpu[0] == 0, f"an image into one array: exit {code}: {said}, {cpu}")
    off = distance(read("image.npy")[1], read("image_cpu.npy")[1]) if code == 0 else said
    C.expect(code == 0 and off < 1e-5, f"an image into one array: {off}")
    code, done, said = on_device("images", *words)
    C.expect(code == 0 and os.path.exists("images/y.tif") and os.path.exists("images/z.tif"),
             f"an image into a folder: exit {code}, {done}: {said}")


def plans_say_what_the_device_takes():
    code, plan, said = C.run(*FORKED, "--device", "cuda", "--precision", "fp32", verb="plan")
    lines = {line["name"] for line in plan.get("lines", [])}
    C.expect(code == 0 and {"context", "pinned", "staging", "program"} <= lines, f"plan: exit {code}, {lines}: {said}")
    code, _, said = on_device("refused", *FORKED, vram="1MiB")
    C.expect(code == 71 and "--vram" in said, f"--vram 1MiB: exit {code}: {said}")
    C.expect(not result("refused", ["fine"]), "nothing is written by a job that does not fit")


def what_a_refusal_tells_works():
    """Of a device with too little memory: every command that is told, as it stands."""
    def answer(verb, words, vram):
        env = dict(C.environment(), TEGULA_LEAKS="")
        done = subprocess.run([C.tegula, verb, "--json", *words, "--device", "cuda", "--precision", "fp32", "--vram", vram],
                              text=True, capture_output=True, check=False, env=env)
        return done.returncode, json.loads(done.stdout.splitlines()[-1])

    def do(told):
        """The command as it stands; where a real context has grown since, with as much more. 1: it had not."""
        words, room = shlex.split(told["command"])[1:], told["options"].get("vram", "")
        more = [f"{int(w[:-3]) + (CONTEXT_MOVES >> 20)}MiB" if w == room and w.endswith("MiB") else w for w in words]
        for these in (words, more):
            done = subprocess.run([C.tegula, *these, "--json"], text=True, capture_output=True, check=False,
                                  env=C.environment())
            if done.returncode != 71 or more == words or not CONTEXT_MOVES:
                break
        return done, these is words

    for verb, words in (("plan", FORKED), ("run", (*FORKED, "-o", "told/", "-y")), ("verify", FORKED),
                        ("plan", (*FORKED, "--tile", "40"))):
        code, said = answer(verb, words, "1MiB")
        told = said.get("remedies", [])
        C.expect(code == 71 and said["budget_bytes"] == 1 << 20 and len(told) >= 2, f"{verb} in 1 MiB: {code}, {said}")
        C.expect({"vram", "device"} <= {name for t in told for name in t["options"]}, f"{verb}: told {told}")
        for t in told:
            done, as_told = do(t)
            C.expect(done.returncode == 0, f"told, and does not do: {t['command']}: {done.stderr}")
            last = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
            if done.returncode == 0 and as_told and verb != "verify" and "device" not in t["options"]:
                peak = last.get("device_predicted_bytes", last.get("device_peak_bytes"))
                C.expect(abs(peak - t["peak_bytes"]) <= CONTEXT_MOVES,
                         f"{t['command']}: peak {peak}, told {t['peak_bytes']}")


# ---- What goes wrong ---------------------------------------------------------------------------


def a_failed_launch_leaves_nothing():
    for number in (2, 9, 20):
        code, _, said = on_device("failed", *FORKED, "--tile", TILE, order=f"launch={number}")
        C.expect(code == 75 and "starts over" in said, f"launch {number} fails: exit {code}: {said}")
        C.expect(not os.listdir("failed"), f"launch {number} fails: {os.listdir('failed')}")


def memory_that_a_neighbour_took():
    codes = set()
    on_device("whole", *FORKED)
    for number in range(1, 120, 9):
        code, _, said = on_device("squeezed", *FORKED, order=f"nomemory={number}")
        codes.add(code)
        C.expect(code in (0, 69, 71, 75), f"no memory at call {number}: exit {code}: {said}")
        if code == 0:
            C.expect(result("squeezed", ("fine", "coarse")) == result("whole", ("fine", "coarse")),
                     f"no memory at call {number}: the numbers are right")
        else:
            C.expect(not os.path.isdir("squeezed") or not os.listdir("squeezed"),
                     f"no memory at call {number}: nothing is left")
        subprocess.run(["rm", "-rf", "squeezed"], check=True)
    print("  exit codes:", sorted(codes), flush=True)
    C.expect(0 in codes, "a job that finds no memory for its arena is planned smaller and ends well")


def main():
    if not C.there():
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make()
        more = [a_failed_launch_leaves_nothing, memory_that_a_neighbour_took] if EMULATED else []
        return C.steps(near_the_processor, offsets_are_never_rounded, tiles_have_the_bits_of_the_whole,
                       verify_says_how_far_every_output_is, samples_of_a_batch_are_what_each_is_alone,
                       every_type_of_element_goes_in, what_half_precision_does_not_hold_is_told,
                       places_are_counted_where_elements_count_them, an_image_goes_in_and_arrays_come_out,
                       plans_say_what_the_device_takes, what_a_refusal_tells_works, *more)


if __name__ == "__main__":
    sys.exit(main())
