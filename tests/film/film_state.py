#!/usr/bin/env python3
"""Networks that hand values from one frame to the next (--state).

    film_state.py TEGULA SOURCE VIDEOS

A network that hands out the frame before, or keeps a sum, has an answer that can be counted. Hashes of frames by
ffmpeg. 77: no samples, or no ffprobe and ffmpeg."""
import json
import os
import random
import struct
import subprocess
import sys

from film_help import TEGULA, bytes_of, expect, ffmpeg, in_folder, run, sample
from film_part import hashes
from film_write import killed_runs_go_on
from seeds import blk, model, node, num, port  # noqa: E402

FILM = "carphone_pristine.mp4"


def tensor(name, shape, values):
    return b"".join(num(1, d) for d in shape) + num(2, 1) + blk(8, name) + blk(9, struct.pack(f"<{len(values)}f", *values))


def write_net(name, nodes, tensors, ins, outs):
    with open(name, "wb") as f:
        f.write(model(nodes, tensors, [port(*p) for p in ins], [port(*p) for p in outs]))
    return name


def delays(name="delay.onnx"):
    """The frame before; the input for it comes first, and is of no declared size."""
    return write_net(name, [node("Identity", ["s"], ["y"]), node("Identity", ["x"], ["t"])], [],
                     [("s", ["N", 3, "h", "w"]), ("x", ["N", 3, "H", "W"])], [("t", ["N", 3, "h", "w"]), ("y", ["N", 3, "H", "W"])])


def smaller(name="half.onnx"):
    """What is handed on has half the size and 3 channels, by a convolution of 3 x 3, and comes back as pixels of 2 x 2."""
    rnd = random.Random(3)
    down = [rnd.uniform(-1, 1) / 9 for _ in range(3 * 3 * 9)]
    mix = [rnd.uniform(-1, 1) / 20 for _ in range(3 * 6 * 9)]
    up = [rnd.uniform(0, 1) / 3 for _ in range(3 * 3 * 4)]
    return write_net(name, [node("Conv", ["x", "d"], ["f"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), node("Concat", ["f", "s"], ["c"], axis=1),
                            node("Conv", ["c", "m"], ["n"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Tanh", ["n"], ["t"]),
                            node("ConvTranspose", ["t", "u"], ["v"], kernel_shape=[2, 2], strides=[2, 2]), node("Add", ["v", "x"], ["y"])],
                     [tensor("d", [3, 3, 3, 3], down), tensor("m", [3, 6, 3, 3], mix), tensor("u", [3, 3, 2, 2], up)],
                     [("x", ["N", 3, "H", "W"]), ("s", ["N", 3, "h", "w"])], [("y", ["N", 3, "H", "W"]), ("t", ["N", 3, "h", "w"])])


def normed(name="normed.onnx"):
    """What is handed on is normalised over the whole frame: computed in stages where it does not fit."""
    return write_net(name, [node("Add", ["x", "s"], ["a"]), node("InstanceNormalization", ["a", "g", "b"], ["t"]), node("Add", ["x", "t"], ["y"])],
                     [tensor("g", [3], [.5, .25, .125]), tensor("b", [3], [.1, .2, .3])],
                     [("x", ["N", 3, "H", "W"]), ("s", ["N", 3, "H", "W"])], [("y", ["N", 3, "H", "W"]), ("t", ["N", 3, "H", "W"])])


def write(net, film, out, *words, state="t=s"):
    code, _, err = run("run", "-m", net, film, "-o", out, "-y", "--normalize", "none", "--state", state, *words)
    expect(code == 0, f"{net} {film} {words}: {code}: {err}")
    return err


def npy(path, shape, values):
    head = str({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(values)}f", *values))


def numbers(path):
    """Of a float32 stack, as bytes."""
    expect(run("copy", path, "-o", "numbers.npy", "-y")[0] == 0, f"{path} as an array")
    return bytes_of("numbers.npy")


def the_frame_before(was):
    err = write(delays(), "film.mkv", "o.mov", "--codec", "ffv1")
    got = hashes("o.mov")
    expect(got[1:] == was[:-1] and got[0] not in was, "the frame before")
    expect("2 outputs" not in err, f"what is handed on is told as left out: {err}")
    write(delays(), "film.mkv", "o.mov", "--codec", "ffv1", "--tile", "48x64", "--threads", "1")
    expect(hashes("o.mov") == got, "the frame before, in tiles")
    npy("start.npy", [1, 3, 144, 176], [255 if k % 5 == 0 else 0 for k in range(3 * 144 * 176)])
    write(delays(), "film.mkv", "o.mov", "--codec", "ffv1", "--state-init", "s=start.npy")
    first = hashes("o.mov")
    expect(first[1:] == got[1:] and first[0] != got[0], "a file in front of the first frame")
    write(delays(), "film.mkv", "o.mov", "--codec", "ffv1", "--frames", "4:9")
    expect(hashes("o.mov")[1:] == was[4:8], "a part begins with zeros")


def whatever_the_plan():
    for net in (smaller(), normed()):
        write(net, "film.mkv", "a.tif", "--threads", "1", "--normalize", "scale:1/255,0")
        whole = numbers("a.tif")
        for words in (("--tile", "32x176"), ("--tile", "48x64", "--threads", "3"), ("--ram", least(net))):
            write(net, "film.mkv", "b.tif", "--normalize", "scale:1/255,0", *words)
            expect(numbers("b.tif") == whole, f"{net} {words}: other numbers")


def least(net):
    """The smallest memory that is enough."""
    low, high = 8 << 10, 64 << 10
    while low < high:
        mid = (low + high) // 2
        good = run("plan", "-m", net, "film.mkv", "--state", "t=s", "--normalize", "scale:1/255,0", "--ram", f"{mid}KiB")[0] == 0
        low, high = (low, mid) if good else (mid + 1, high)
    return f"{low}KiB"


def memory_is_planned():
    for net in (smaller(), normed()):
        code, out, err = run("run", "-m", net, "film.mkv", "-o", "m.tif", "-y", "--normalize", "scale:1/255,0", "--state", "t=s", "--json", "--ram", least(net))
        told = json.loads(out.splitlines()[-1])
        expect(code == 0 and told["measured_peak_bytes"] <= told["predicted_peak_bytes"], f"memory of {net}: {code}: {err} {out}")
    code, out, _ = run("plan", "-m", delays(), "film.mkv", "--state", "t=s", "--normalize", "none")
    expect(code == 0 and "from frame to frame" in out, f"its line: {out}")


def a_pipe_has_the_same():
    write(smaller(), "film.mkv", "o.y4m", "--normalize", "scale:1/255,0", "--dtype", "uint8")
    got = subprocess.run([TEGULA, "run", "-m", "half.onnx", "film.mkv", "-o", "-", "--normalize", "scale:1/255,0", "--dtype", "uint8", "--state", "t=s"],
                         capture_output=True, check=False).stdout
    expect(got == bytes_of("o.y4m") and got, "through a pipe")


def stopped_runs_go_on():
    """A stack: what was handed on is read back, and the first frames are not computed again. Then damaged, and of another job."""
    words = ("run", "-m", smaller(), "film.mkv", "--normalize", "scale:1/255,0", "--state", "t=s")
    expect(run(*words, "-o", "whole.tif", "-y")[0] == 0, "the undisturbed run")
    whole, went_on = bytes_of("whole.tif"), 0
    for k in range(9):
        for name in os.listdir("."):
            if name.startswith("k.tif"):
                os.unlink(name)
        code, _, _ = run(*words, "-o", "k.tif", TEGULA_FAIL_IO=f"{10 + 14 * k}:kill", TEGULA_SYNC_TILES="1")
        there = os.path.exists("k.tif.stages")
        if k % 3 == 2 and there:  # damaged in its last place, or cut
            with open("k.tif.stages", "r+b") as f:
                size = f.seek(0, 2)
                f.seek(max(4096, size - 300000 * (k % 2) - 2000))
                f.write(random.randbytes(1500))
            if k == 5:
                os.truncate("k.tif.stages", 5000)
        expect(run("status", "k.tif")[0] in (0, 66, 130) or not there, "status")
        code, out, err = run(*words, "-o", "k.tif", "-v", TEGULA_SYNC_TILES="1")
        went_on += "goes on with frame" in err
        expect(code in (0, 73) and bytes_of("k.tif") == whole, f"stop {k}: {code}: {err}")
        expect(not os.path.exists("k.tif.stages"), f"stop {k}: k.tif.stages stays")
    expect(went_on >= 3, f"{went_on} of 9 went on amid the film")


def a_descriptor_says_it(was):
    delays("said.onnx")
    with open("said.json", "w", encoding="ascii") as f:
        json.dump({"normalize": "none", "output": "denormalize", "state": "t=s"}, f)
    code, _, err = run("run", "-m", "said.onnx", "film.mkv", "-o", "o.mov", "-y", "--codec", "ffv1")
    expect(code == 0 and hashes("o.mov")[1:] == was[:-1], f"a descriptor: {code}: {err}")
    with open("said.json", "w", encoding="ascii") as f:
        json.dump({"state": "t=s"}, f)  # and nothing of its values
    code, _, err = run("run", "-m", "said.onnx", "film.mkv", "-o", "o.mov", "-y", "--codec", "ffv1", "--normalize", "none")
    expect(code == 0 and hashes("o.mov")[1:] == was[:-1], f"a descriptor of frames alone: {code}: {err}")


def what_is_padded_is_handed_on(lost=(22, 19)):
    """Frames that the network takes no earlier than padded: what it hands on is computed under the padding, too. y = mean of eight neighbours
    of what the frame before was, padded by mirroring to multiples of four."""
    w, h = lost
    pw, ph = (w + 3) // 4 * 4, (h + 3) // 4 * 4
    ring = [0.125 if k != 4 else 0.0 for k in range(9)]
    zeros = [0.0] * (3 * 3 * 16)
    write_net("odd.onnx", [node("Conv", ["x", "z"], ["d"], kernel_shape=[4, 4], strides=[4, 4]), node("ConvTranspose", ["d", "z"], ["n"], kernel_shape=[4, 4], strides=[4, 4]),
                           node("Conv", ["s", "r"], ["m"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Add", ["m", "n"], ["y"]), node("Add", ["x", "n"], ["t"])],
              [tensor("z", [3, 3, 4, 4], zeros), tensor("r", [3, 3, 3, 3], [v * (i == c) for c in range(3) for i in range(3) for v in ring])],
              [("x", ["N", 3, "H", "W"]), ("s", ["N", 3, "H", "W"])], [("y", ["N", 3, "H", "W"]), ("t", ["N", 3, "H", "W"])])
    ffmpeg("-i", "film.mkv", "-frames:v", "4", "-vf", f"crop={w}:{h}:40:30", "-c:v", "ffv1", "odd.mkv")
    expect(run("copy", "odd.mkv", "-o", "c.npy", "-y")[0] == 0, "the frames")
    was = bytes_of("c.npy")[-4 * h * w * 3:]

    def before(t, c, y, x):
        if not (t >= 0 and 0 <= y < ph and 0 <= x < pw):
            return 0
        y, x = (k if k < n else 2 * (n - 1) - k for k, n in ((y, h), (x, w)))
        return was[((t * h + y) * w + x) * 3 + c]
    want = [sum(before(t - 1, c, y + a, x + b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b) / 8
            for t in range(4) for y in range(h) for x in range(w) for c in range(3)]
    for more in ((), ("--tile", "16x16"), ("--threads", "1")):
        write("odd.onnx", "odd.mkv", "odd.tif", *more)
        got = list(struct.unpack(f"<{len(want)}f", numbers("odd.tif")[-4 * len(want):]))
        expect(got == want, f"under the padding {more}: {sum(a != b for a, b in zip(got, want))} of {len(want)} numbers differ")


def several_states_go_on():
    """Two of them, and a constant: a stopped run goes on; with another file it does not."""
    write_net("two.onnx", [node("Add", ["x", "s"], ["a"]), node("Add", ["a", "u"], ["b"]), node("Mul", ["b", "h"], ["y"]), node("Identity", ["x"], ["t"]),
                           node("Identity", ["s"], ["v"])], [tensor("h", [1], [.5])],
              [(n, ["N", 3, "H", "W"]) for n in "xsu"], [(n, ["N", 3, "H", "W"]) for n in "ytv"])
    npy("c.npy", [3, 144, 176], [1] * (3 * 144 * 176))
    words = ("run", "-m", "two.onnx", "film.mkv", "--frames", "0:20", "--normalize", "none", "-o")
    both = ("--state", "t=s,v=u", "--state-init", "s=start.npy,u=start.npy")
    expect(run(*words, "two.tif", "-y", *both)[0] == 0, "two states")
    expect(run(*words, "k2.tif", *both, TEGULA_FAIL_IO="60:kill", TEGULA_SYNC_TILES="1")[0] == -9, "a kill")
    code, _, err = run(*words, "k2.tif", "--state", "t=s,v=u", "--state-init", "s=start.npy")
    expect(code == 65 and "state_init" in err, f"without a file: {code}: {err}")
    code, _, err = run(*words, "k2.tif", *both)
    expect(code == 0 and bytes_of("k2.tif") == bytes_of("two.tif"), f"two states go on: {code}: {err}")
    expect(run(*words, "k3.tif", "--state", "t=s", "--constant", "u=start.npy", TEGULA_FAIL_IO="60:kill", TEGULA_SYNC_TILES="1")[0] == -9, "a kill")
    at = os.stat("start.npy")
    npy("start.npy", [1, 3, 144, 176], [7] * (3 * 144 * 176))
    os.utime("start.npy", ns=(at.st_atime_ns, at.st_mtime_ns))
    code, _, err = run(*words, "k3.tif", "--state", "t=s", "--constant", "u=start.npy")
    expect(code == 65 and "another constant" in err, f"another file of the same time: {code}: {err}")


def the_same_for_each_frame():
    """A mask behind the colours, and a map as an input of its own: y = x + mask + map, in tiles and padded, too."""
    write_net("plus.onnx", [node("Conv", ["x", "w"], ["a"], kernel_shape=[1, 1]), node("Add", ["a", "m"], ["y"])],
              [tensor("w", [3, 4, 1, 1], [float(i == c or i == 3) for c in range(3) for i in range(4)])],
              [("m", ["N", 1, "H", "W"]), ("x", ["N", 4, "H", "W"])], [("y", ["N", 3, "H", "W"])])
    h, w = 144, 176
    mask, chart = [k % 7 for k in range(h * w)], [k % 11 * .5 for k in range(h * w)]
    npy("mask.npy", [1, h, w], mask)
    npy("map.npy", [1, 1, h, w], chart)
    words = ("-m", "plus.onnx", "film.mkv", "--frames", "0:3", "--normalize", "none", "--constant", "x=mask.npy,m=map.npy")
    expect(run("run", "-m", "half.onnx", "film.mkv", "--state", "t=s", "-o", "h.tif", "-y")[0] == 0, "another network first")
    for more in ((), ("--tile", "48x64")):
        code, _, err = run("run", *words, "-o", "p.tif", "-y", *more)
        expect(code == 0, f"constants: {code}: {err}")
        got = struct.unpack(f"<{3 * 3 * h * w}f", numbers("p.tif")[-3 * 3 * h * w * 4:])
        expect(run("copy", "film.mkv", "--frames", "0:3", "-o", "c.npy", "-y")[0] == 0, "the frames")
        was = bytes_of("c.npy")[-3 * h * w * 3:]
        want = [was[k] + mask[k // 3 % (h * w)] + chart[k // 3 % (h * w)] for k in range(len(was))]
        expect(list(got) == want, f"constants {more}: {list(got)[:6]} for {want[:6]}")
    for what, code, says in (("x=mask.npy,q=map.npy", 64, "no input"), ("x=mask.npy", 64, "mask.npy"), ("x=mask.npy,x=mask.npy", 64, "twice"), ("x=map.npy,m=start.npy", 64, "[1,1,144,176]"), ("x=film.mkv,m=map.npy", 65, "film.mkv"),
                             ("x", 64, "IN=FILE.npy")):
        got, _, err = run("run", "-m", "plus.onnx", "film.mkv", "-o", "p.tif", "-y", "--normalize", "none", "--constant", what)
        expect(got == code and says in err, f"{what}: {got}: {err}")


def what_is_written_is_handed_on():
    """A sum of all frames, written as it is and as the number of its largest channel: what is handed on is the sum."""
    image = ["N", 3, "H", "W"]
    write_net("one.onnx", [node("Add", ["x", "s"], ["y"])], [], [("x", image), ("s", image)], [("y", image)])
    write("one.onnx", "film.mkv", "sum.tif", state="y=s")
    write("one.onnx", "film.mkv", "most.tif", "--labels", state="y=s")
    expect(run("copy", "most.tif", "-o", "most.npy", "-y")[0] == 0, "labels as an array")
    n, frames = 144 * 176, 40
    sums, most = struct.unpack(f"<{frames * n * 3}f", numbers("sum.tif")[-12 * frames * n:]), bytes_of("most.npy")[-frames * n:]
    pixels = [sums[3 * k:3 * k + 3] for k in range(frames * n)]
    wrong = sum(v.index(max(v)) != label for v, label in zip(pixels, most))
    expect(wrong == 0, f"{wrong} labels that are not of the sum")
    write_net("three.onnx", [node("Add", ["x", "s"], ["a"]), node("Add", ["a", "u"], ["y"]), node("Neg", ["x"], ["z"]), node("Relu", ["x"], ["w"])], [],
              [("x", image), ("s", image), ("u", image)], [("y", image), ("z", image), ("w", image)])
    err = write("three.onnx", "film.mkv", "z.tif", state="y=s,y=u")
    expect("3 outputs" in err and '"z" is written' in err, f"an output for two inputs is one: {err}")


def what_is_refused():
    delays()
    for words, code, says in ((("--state", "t"), 64, "OUT=IN"), (("--state", "q=s"), 64, "no output \"q\""), (("--state", "t=q"), 64, "no input \"q\""),
                              (("--state", "t=s,y=s"), 64, "named twice"), (("--state", "t=s,y=x"), 64, "none is left"), (("--state", ","), 64, "OUT=IN"),
                              (("--state", "t=s", "-o", "o.npy"), 64, "no arrays"), (("--state", "t=s", "--state-init", "s=film.mkv"), 65, ""),
                              (("--state", "t=s", "--state-init", "x=start.npy"), 64, "no input that"), (("--state-init", "s=start.npy"), 64, "--state"),
                              (("--state", "t=s", "--on", "each"), 0, ""), ((), 65, "--state")):
        got, _, err = run("run", "-m", "delay.onnx", "film.mkv", *(() if "-o" in words else ("-o", "o.mov")), "-y", "--normalize", "none", *words)
        expect(got == code and says in err, f"{words}: {got}: {err}")
    expect(not os.path.exists("o.mov.journal"), "a file that does not fit is noticed with the run begun")
    npy("other.npy", [1, 3, 72, 88], [0] * (3 * 72 * 88))
    got, _, err = run("run", "-m", "delay.onnx", "film.mkv", "-o", "o.mov", "-y", "--normalize", "none", "--state", "t=s", "--state-init", "s=other.npy")
    expect(got == 64 and "[1,3,72,88]" in err, f"a file of another shape: {got}: {err}")


def all_of_it(_):
    random.seed(1)
    ffmpeg("-i", sample(FILM), "-frames:v", "40", "-an", "-c:v", "ffv1", "-pix_fmt", "gbrp", "film.mkv")
    was = hashes("film.mkv")
    the_frame_before(was)
    whatever_the_plan()
    memory_is_planned()
    a_pipe_has_the_same()
    stopped_runs_go_on()
    a_descriptor_says_it(was)
    what_is_padded_is_handed_on()
    several_states_go_on()
    the_same_for_each_frame()
    what_is_written_is_handed_on()
    what_is_refused()
    killed_runs_go_on({"file": os.path.abspath("film.mkv")}, "k.mov", 4, "--codec", "ffv1", "--state", "t=s", net=smaller())


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
