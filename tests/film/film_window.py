#!/usr/bin/env python3
"""Networks that take several frames at once (--window).

    film_window.py TEGULA SOURCE VIDEOS

A network that hands out one frame of its window gives the film's frames, moved: the first and the last one
repeated or mirrored. Hashes of frames by ffmpeg. 77: no samples, or no ffprobe and ffmpeg."""
import json
import os
import struct
import sys

from film_help import SANITIZED, expect, ffmpeg, in_folder, network, run, sample
from film_part import hashes
from film_write import killed_runs_go_on
from seeds import blk, model, node, num, port  # noqa: E402

FILM = "carphone_pristine.mp4"
N = 16  # of its frames


def picks(slot, frames, channels, depth=0, name="pick.onnx"):
    """Frame `slot` of a window; depth: of volumes, of which the network gives so many slices."""
    k = [1, 1] if not depth else [frames if depth == 1 else 1, 1, 1]
    taps = frames if not depth else k[0]
    w = []
    for c in range(channels):
        if depth:
            w += [float(i == c and z == (slot if k[0] > 1 else 0)) for i in range(channels) for z in range(taps)]
        else:
            w += [float(i == slot * channels + c) for i in range(frames * channels)]
    shape = [channels, channels if depth else frames * channels, *k]
    tensor = b"".join(num(1, d) for d in shape) + num(2, 1) + blk(8, "w") + blk(9, struct.pack(f"<{len(w)}f", *w))
    into = ["N", channels, frames, "H", "W"] if depth else ["N", frames * channels, "H", "W"]
    out = ["N", channels, depth, "H", "W"] if depth else ["N", channels, "H", "W"]
    with open(name, "wb") as f:
        f.write(model([node("Conv", ["x", "w"], ["y"], kernel_shape=k)], [tensor], [port("x", into)], [port("y", out)]))
    return name


def frame_for(k, n, edge):
    if edge == "repeat":
        return min(max(k, 0), n - 1)
    k %= 2 * (n - 1)
    return k if k < n else 2 * (n - 1) - k


def write(net, film, out, *words):
    code, _, err = run("run", "-m", net, film, "-o", out, "-y", "--normalize", "none", "--codec", "ffv1", *words)
    expect(code == 0, f"{net} {film} {words}: {code}: {err}")
    return err


def frames_are_moved(film, was):
    for slot, frames, edge, depth in ((0, 5, "repeat", 0), (4, 5, "mirror", 0), (0, 5, "mirror", 0), (3, 4, "repeat", 0), (1, 2, "repeat", 0),
                                      (0, 3, "repeat", 1), (2, 3, "mirror", 1)):
        write(picks(slot, frames, 3, depth), film, "o.mov", "--window", str(frames), "--window-edge", edge)
        want = [was[frame_for(k + slot - (frames - 1) // 2, len(was), edge)] for k in range(len(was))]
        expect(hashes("o.mov") == want, f"frame {slot} of {frames}, {edge}, depth {depth}")
    write(picks(0, 3, 3, 3), film, "o.mov", "--window", "3")
    expect(hashes("o.mov") == was, "the middle one of three slices")


def whatever_the_plan(film, was):
    write(picks(0, 3, 3), film, "o.mov", "--window", "3", "--tile", "48x64", "--threads", "1")
    expect(hashes("o.mov") == [was[0], *was[:-1]], "in tiles")
    write(picks(2, 3, 3, 1), film, "o.mov", "--window", "3", "--tile", "1x64x64")
    expect(hashes("o.mov") == [*was[1:], was[-1]], "volumes in tiles")


def a_part_sees_what_is_around_it(film, was):
    write(picks(0, 5, 3), film, "o.mov", "--window", "5", "--frames", "6:10")
    expect(hashes("o.mov") == was[4:8], "a part: its first frames are made of those before it")
    write(picks(4, 5, 3), film, "o.mov", "--window", "5", "--frames", "1:16")
    expect(hashes("o.mov") == [*was[3:16], was[15], was[15]], "a part to the end")


def luma_passes_by(film):
    """Luma is that of another frame, chroma is not."""
    def part(path, which):
        ffmpeg("-i", path, "-vf", f"extractplanes={which}", "-c:v", "ffv1", "part.mkv")
        return hashes("part.mkv")
    write(network(1), film, "same.mkv")
    write(picks(0, 3, 1), film, "o.mkv", "--window", "3")
    y, u = part("same.mkv", "y"), part("same.mkv", "u")
    expect(part("o.mkv", "y") == [y[0], *y[:-1]] and part("o.mkv", "u") == u, "luma of a window")


def a_stack_has_windows_too(film, was):
    expect(run("copy", film, "-o", "stack.tif", "-y")[0] == 0, "a copy")
    write(picks(0, 3, 3), "stack.tif", "o.mov", "--window", "3")
    write(network(3), "stack.tif", "same.mov")
    same = hashes("same.mov")
    expect(hashes("o.mov") == [same[0], *same[:-1]] and len(same) == len(was), "a stack")
    code, out, err = run("run", "-m", network(9, "nine.onnx"), "stack.tif", "-o", "n.tif", "-y", "--window", "3", "--normalize", "none", "--json")
    expect(code == 0, f"windows as they are: {code}: {err}")
    told = json.loads(run("info", "n.tif", "--json")[1])
    expect(dict(zip(told["axes"], told["shape"])).get("C") == 9 and dict(zip(told["axes"], told["shape"])).get("T") == len(was),
           f"windows as they are: {told['axes']} {told['shape']}")


def statistics_are_of_frames(film):
    """Each frame counts once, as without windows."""
    for words, net in ((("--window", "3"), picks(1, 3, 3)), ((), network(3))):
        write(net, film, "o.mov", "--normalize", "minmax", "--stats", f"s{len(words)}.json", "--dtype", "uint8", *words)
    def numbers(path):
        with open(path, encoding="utf-8") as f:
            return [{k: c[k] for k in ("min", "max", "mean", "std") if k in c} for c in json.load(f)["channels"]]
    expect(numbers("s0.json") == numbers("s2.json"), f"statistics: {numbers('s0.json')} and {numbers('s2.json')}")


def a_descriptor_says_it(film, was):
    with open("said.json", "w", encoding="ascii") as f:
        json.dump({"normalize": "none", "output": "denormalize", "window": 3, "window_edge": "mirror"}, f)
    write(picks(0, 3, 3, name="said.onnx"), film, "o.mov")
    expect(hashes("o.mov") == [was[1], *was[:-1]], "a descriptor")
    write("said.onnx", film, "o.mov", "--window-edge", "repeat")
    expect(hashes("o.mov") == [was[0], *was[:-1]], "the option, not the descriptor")
    with open("said.json", "w", encoding="ascii") as f:
        json.dump({"window": 2.5}, f)
    expect(run("plan", "-m", "said.onnx", film)[0] == 65, "half a frame")


def what_is_refused(film):
    for words, code, says in ((("-m", picks(0, 3, 3), film, "--window", "2"), 64, "--window 2"), (("-m", "pick.onnx", film, "--window", "9"), 64, "of each frame"),
                              (("-m", "pick.onnx", film, "--window", "65"), 64, "64"), (("-m", "pick.onnx", film, "--window-edge", "zero"), 64, "repeat"),
                              (("-m", "pick.onnx", film), 64, "--window"), (("-m", network(3), "f.png", "--window", "3"), 64, "axis of frames")):
        got, _, err = run("plan", "-o", "o.mov", "--normalize", "none", *words)
        expect(got == code and says in err, f"{words}: {got}: {err}")


def memory_is_planned(film):
    if SANITIZED:
        return
    code, out, err = run("run", "-m", picks(0, 9, 3), film, "-o", "m.tif", "-y", "--normalize", "none", "--window", "9", "--json")
    told = json.loads(out.splitlines()[-1])
    expect(code == 0 and told["measured_peak_bytes"] <= told["predicted_peak_bytes"], f"memory: {code}: {err} {out}")


def all_of_it(_):
    ffmpeg("-i", sample(FILM), "-frames:v", str(N), "-an", "-c:v", "ffv1", "-pix_fmt", "gbrp", "film.mkv")
    ffmpeg("-i", sample(FILM), "-frames:v", str(N), "-an", "-c:v", "ffv1", "yuv.mkv")
    ffmpeg("-i", sample(FILM), "-frames:v", "1", "f.png")
    was = hashes("film.mkv")
    frames_are_moved("film.mkv", was)
    whatever_the_plan("film.mkv", was)
    a_part_sees_what_is_around_it("film.mkv", was)
    luma_passes_by("yuv.mkv")
    a_stack_has_windows_too("film.mkv", was)
    statistics_are_of_frames("film.mkv")
    a_descriptor_says_it("film.mkv", was)
    what_is_refused("film.mkv")
    memory_is_planned("film.mkv")
    killed_runs_go_on({"file": os.path.abspath("film.mkv")}, "k.mov", 4, "--codec", "ffv1", "--window", "3", net=picks(0, 3, 3))


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
