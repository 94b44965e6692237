#!/usr/bin/env python3
"""Networks that hand values from one frame to the next (--state), on a device that is played by reference kernels: what is handed on stays
there, and all is as from the processor.

    film_state_device.py TEGULA SOURCE VIDEOS PLUGIN

What lies in the device's memory before it is written is no number, and what waits in its queues is done as late as it may be. 77: no
samples, or no ffprobe and ffmpeg."""
import json
import os
import struct
import subprocess
import sys

import film_state as states
from film_help import TEGULA, bytes_of, expect, ffmpeg, in_folder, run, sample
from film_state import npy, numbers, tensor, write_net
from seeds import node  # noqa: E402

DEVICE = ("--device", "cuda")
PLAYED = {"TEGULA_CUDA_PLUGIN": os.path.abspath(sys.argv[4]), "FAKE_DEVICE": "MiB=800"}
FRAMES = 20


def floats(path):
    got = numbers(path)
    n = FRAMES * 3 * 144 * 176
    return struct.unpack(f"<{n}f", got[-4 * n:])


def made(net, out, *words, state="t=s"):
    code, told, err = run("run", "-m", net, "film.mkv", "-o", out, "-y", "--json", "--state", state, "--normalize", "scale:1/255,0", *words, **PLAYED)
    expect(code == 0, f"{net} {words}: {code}: {err}")
    return json.loads(told.splitlines()[-1]) if code == 0 else {}


def in_any_memory():
    """The processor's numbers but for the order of sums (one last place of 1), the same bits however small a cell is; it takes what was planned."""
    for net, least in ((states.delays(), 0), (states.smaller(), 2.5e-7)):
        made(net, "here.tif", "--device", "cpu")
        done = made(net, "there.tif", *DEVICE)
        expect(0 < done.get("device_measured_bytes", 0) <= done.get("device_predicted_bytes", 0) and "cuda" in done.get("device", ""), f"its memory: {done}")
        off = max(abs(a - b) for a, b in zip(floats("here.tif"), floats("there.tif")))
        expect(off <= least, f"{net}: {off} from the processor's")
        there = numbers("there.tif")
        for words in (("--tile", "48x64"), ("--tile", "32x176"), ("--precision", "fp32", "--tile", "16x16")):
            made(net, "cut.tif", *DEVICE, *words)
            expect(numbers("cut.tif") == there, f"{net} {words}: other numbers")
        print(f"  {net}: off by {off:.1e}, {done.get('device_measured_bytes')} of {done.get('device_predicted_bytes')} bytes", flush=True)


def its_line_adds_up():
    code, out, err = run("plan", "-m", "delay.onnx", "film.mkv", "--state", "t=s", "--normalize", "none", "--json", *DEVICE, **PLAYED)
    plan = json.loads(out.splitlines()[-1]) if code == 0 else {"lines": []}
    lines = {line["name"]: line["bytes"] for line in plan["lines"] if line["kind"] == "device"}
    expect(code == 0 and lines.get("state") == 2 * 3 * 144 * 176 * 4 and sum(lines.values()) == plan.get("device_peak_bytes"), f"the plan: {code}: {lines} {err}")


def several_and_files():
    """Two of them, of which one begins with a file, and one input that is the same for each frame."""
    write_net("three.onnx", [node("Add", ["x", "s"], ["a"]), node("Add", ["a", "u"], ["b"]), node("Add", ["b", "c"], ["d"]), node("Mul", ["d", "h"], ["y"]),
                             node("Identity", ["x"], ["t"]), node("Identity", ["s"], ["v"])], [tensor("h", [1], [.5])],
              [(n, ["N", 3, "H", "W"]) for n in "xsuc"], [(n, ["N", 3, "H", "W"]) for n in "ytv"])
    npy("start.npy", [1, 3, 144, 176], [k % 5 for k in range(3 * 144 * 176)])
    npy("same.npy", [1, 3, 144, 176], [k % 7 for k in range(3 * 144 * 176)])
    words = ("--state-init", "s=start.npy", "--constant", "c=same.npy")
    made("three.onnx", "here.tif", "--device", "cpu", *words, state="t=s,v=u")
    for more in ((), ("--tile", "48x64")):
        made("three.onnx", "there.tif", *DEVICE, *words, *more, state="t=s,v=u")
        expect(numbers("here.tif") == numbers("there.tif"), f"two states and files {more}")


def what_is_written_is_handed_on():
    """The picture itself, at its full precision; one output for two inputs; numbers of classes of it."""
    image = ["N", 3, "H", "W"]
    write_net("own.onnx", [node("Mul", ["s", "h"], ["k"]), node("Add", ["x", "k"], ["y"])], [tensor("h", [1], [.3])], [("x", image), ("s", image)], [("y", image)])
    write_net("both.onnx", [node("Mul", ["s", "h"], ["k"]), node("Add", ["x", "k"], ["a"]), node("Sub", ["a", "u"], ["y"]), node("Mul", ["x", "h"], ["t"])],
              [tensor("h", [1], [.3])], [(n, image) for n in "xsu"], [(n, image) for n in "yt"])
    for net, state, words in (("own.onnx", "y=s", ()), ("both.onnx", "t=s,t=u", ()), ("both.onnx", "y=s,y=u", ()), ("own.onnx", "y=s", ("--labels",)),
                              ("own.onnx", "y=s", ("--dtype", "uint8"))):
        made(net, "here.tif", "--device", "cpu", *words, state=state)
        for more in ((), ("--tile", "48x64")):
            done = made(net, "there.tif", *DEVICE, *words, *more, state=state)
            expect(numbers("here.tif") == numbers("there.tif"), f"{net} {state} {words} {more}")
            expect(0 < done.get("device_measured_bytes", 0) <= done.get("device_predicted_bytes", 0), f"its memory: {done}")


def stopped_runs_go_on():
    """What was handed on is read back to the device, and the first frames are not computed again."""
    words = ("run", "-m", "half.onnx", "film.mkv", "--normalize", "scale:1/255,0", "--state", "t=s", *DEVICE)
    expect(run(*words, "-o", "whole.tif", "-y", **PLAYED)[0] == 0, "the undisturbed run")
    whole, went_on = bytes_of("whole.tif"), 0
    for k in range(6):
        for name in os.listdir("."):
            if name.startswith("k.tif"):
                os.unlink(name)
        run(*words, "-o", "k.tif", TEGULA_FAIL_IO=f"{20 + 16 * k}:kill", TEGULA_SYNC_TILES="1", **PLAYED)
        code, _, err = run(*words, "-o", "k.tif", "-v", TEGULA_SYNC_TILES="1", **PLAYED)
        went_on += "goes on with frame" in err
        expect(code in (0, 73) and bytes_of("k.tif") == whole, f"stop {k}: {code}: {err}")
    print(f"  {went_on} of 6 went on amid the film", flush=True)
    expect(went_on >= 3, f"{went_on} of 6 went on amid the film")


def what_is_the_processors():
    """Refused by name; where no device was named the processor computes."""
    write_net("mask.onnx", [node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])],
              [tensor("w", [3, 4, 1, 1], [float(i in (c, 3)) for c in range(3) for i in range(4)])], [("x", ["N", 4, "H", "W"])], [("y", ["N", 3, "H", "W"])])
    npy("mask.npy", [1, 144, 176], [k % 7 for k in range(144 * 176)])
    all_words = ("run", "-m", "mask.onnx", "--constant", "x=mask.npy", "film.mkv", "-o", "o.tif", "-y", "--normalize", "none")
    code, _, err = run(*all_words, *DEVICE, **PLAYED)
    expect(code in (65, 69, 71) and "appends no channels" in err, f"{code}: {err}")
    code, _, err = run(*all_words, **PLAYED)
    expect(code == 0, f"by the processor: {code}: {err}")


def memory_that_is_short_is_told():
    """Of a network that reads whole images, too: the least --vram is one that does. What somebody else took meanwhile no --ram brings back."""
    def job(net, *words, played="MiB=800"):
        return run("run", "-m", net, "film.mkv", "-o", "short.tif", "-y", "--json", "--state", "t=s", "--normalize", "scale:1/255,0", *words,
                   **{**PLAYED, "FAKE_DEVICE": played})

    def remedies(told):
        return [r["options"] for line in told.splitlines() for r in json.loads(line).get("remedies", [])]
    net = states.normed()
    code, told, err = job(net, *DEVICE, "--vram", "1MiB")
    least = [int(o["vram"].removesuffix("MiB")) for o in remedies(told) if "vram" in o]
    expect(code == 71 and len(least) == 1 and f"--vram {least[0]}MiB" in err and {"device": "cpu"} in remedies(told), f"{code}: {least} {err}")
    for mib, wants in ((least[0], 0), (least[0] - 1, 71)) if least else ():
        code, _, err = job(net, *DEVICE, "--vram", f"{mib}MiB")
        expect(code == wants, f"--vram {mib}MiB: {code}: {err}")
    for played, name in (("fail=alloc:1:-2", net), ("fail=alloc:-1:-2", "half.onnx"), ("fail=open:1:-2", "half.onnx")):
        code, told, err = job(name, *DEVICE, played=f"MiB=800 {played}")
        expect(code == 71 and remedies(told) == [{"device": "cpu"}] and "Fake" in err and "MemAvailable" not in err, f"{played}, {name}: {code}: {remedies(told)} {err}")


def a_pipe_that_breaks():
    """All frames in front of the break, as from the processor."""
    ffmpeg("-i", "film.mkv", "-frames:v", "9", "broken.y4m")
    broken, got = bytes_of("broken.y4m")[:-100], []
    for where in (("--device", "cpu"), DEVICE):
        words = (TEGULA, "run", "-m", "delay.onnx", "-", "-o", "-", "--dtype", "uint8", "--state", "t=s", "--normalize", "none", *where)
        done = subprocess.run(words, input=broken, capture_output=True, check=False, env={**os.environ, **PLAYED})
        expect(done.returncode == 65, f"{where}: {done.returncode}: {done.stderr}")
        got.append(done.stdout)
    expect(got[0].count(b"FRAME\n") == 8 and got[1] == got[0], f"{[len(g) for g in got]} bytes in front of the break")


def all_of_it(_):
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", str(FRAMES), "-c:v", "ffv1", "film.mkv")
    for each in (in_any_memory, its_line_adds_up, several_and_files, what_is_written_is_handed_on, stopped_runs_go_on, what_is_the_processors, memory_that_is_short_is_told, a_pipe_that_breaks):
        each()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", "ffprobe"))
