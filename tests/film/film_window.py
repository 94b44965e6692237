#!/usr/bin/env python3
"""Networks that take several frames at once (--window).

    film_window.py TEGULA SOURCE VIDEOS

A network that hands out one frame of its window gives the film's frames, moved: the first and the last one
repeated or mirrored. Hashes of frames by ffmpeg. 77: no samples, or no ffprobe and ffmpeg."""
import json
import os
import struct
import subprocess
import sys

from film_help import SANITIZED, TEGULA, bytes_of, expect, ffmpeg, in_folder, network, run, sample
from film_part import hashes
from film_write import killed_runs_go_on
from y4m import draw
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


def sent(source, *words, cut=0, **more):
    """The film through a pipe: exit code, standard output, messages; peak of memory and the planned one, where words ask for events."""
    with subprocess.Popen(["cat" if not cut else "head", *(["-c", str(-cut)] if cut else []), source], stdout=subprocess.PIPE) as feeder:
        r = subprocess.run([TEGULA, "run", "-y", "--normalize", "none", *words], stdin=feeder.stdout, capture_output=True, timeout=300, check=False,
                           env={**os.environ, **more})
        feeder.stdout.close()
    return r.returncode, r.stdout, r.stderr.decode()


def out_of_a_pipe():
    """The bytes are those of the same frames out of a file, of films shorter than a window, too; to a file and to a pipe."""
    for n in (1, 2, 4, 13):
        for kind, channels in (("444", 3), ("444", 1), ("mono", 1)):  # of one channel: luma, and chroma passes by
            draw("in.y4m", kind, (66, 44), n)
            for slot, frames, edge, depth in ((0, 5, "repeat", 0), (4, 5, "mirror", 0), (0, 5, "mirror", 0), (1, 2, "mirror", 0), (8, 9, "mirror", 1), (0, 3, "repeat", 1)):
                words = ("-m", picks(slot, frames, channels, depth), "--window", str(frames), "--window-edge", edge, "-q")
                code, _, err = run("run", *words, "in.y4m", "-o", "file.y4m", "-y", "--normalize", "none")
                expect(code == 0, f"{n} frames of {kind}, {words}: {code}: {err}")
                code, got, err = sent("in.y4m", *words, "-", "-o", "-")
                expect(code == 0 and got == bytes_of("file.y4m"), f"{n} frames of {kind} through pipes, {words}: {code}: {len(got)} bytes: {err}")
                code, _, err = sent("in.y4m", *words, "-", "-o", "sent.y4m", "--tile", "1x16x32" if depth else "16x32", "--threads", "4")
                expect(code == 0 and bytes_of("sent.y4m") == bytes_of("file.y4m"), f"{n} frames of {kind} into a file, {words}: {code}: {err}")
    words = ("-m", picks(4, 5, 3), "--window", "5", "-q")
    data = bytes_of(draw_rgb("in.raw", 13))
    code, got, err = sent("in.raw", *words, "--raw", "66x44,rgb24", "-", "-o", "-", "--format", "raw")
    size = 66 * 44 * 3
    frames = [data[k * size:(k + 1) * size] for k in range(13)]
    expect(code == 0 and got == b"".join([*frames[2:], frames[-1], frames[-1]]), f"frames without a header: {code}: {len(got)}: {err}")


def draw_rgb(path, n):
    with open(path, "wb") as f:
        f.write(b"".join(bytes((x * 7 + k * 11 + x // 66) % 256 for x in range(66 * 44 * 3)) for k in range(n)))
    return path


def a_pipe_that_breaks():
    """What came before is written where all of its window came; the plan says what is kept, and it holds."""
    draw("in.y4m", "444", (66, 44), 13)
    words = ("-m", picks(0, 5, 3), "--window", "5")
    code, got, err = sent("in.y4m", *words, "-", "-o", "-", cut=100)
    expect(code == 65 and "-: frame 12" in err and got.count(b"FRAME") == 10, f"a cut: {code}: {got.count(b'FRAME')} frames: {err}")
    code, _, err = sent("in.y4m", *words, "-", "-o", "cut.y4m", "--on-bad-tile", "keep", cut=100)
    expect(code == 65 and "the film is cut" in err and not os.path.exists("cut.y4m"), f"a cut, to a file: {code}: {err}")
    with subprocess.Popen([TEGULA, "run", "-q", *words, "-", "-o", "-", "--normalize", "none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as p:  # of 8 frames 6 have all of their window
        data, size = bytes_of("in.y4m"), len(b"FRAME\n") + 66 * 44 * 3
        first = data.index(b"FRAME")
        p.stdin.write(data[:first + 8 * size])
        p.stdin.flush()
        early = p.stdout.read(first + 5 * size)  # waits for ever where nothing comes
        p.stdin.close()
        late = p.stdout.read()
    expect(p.returncode == 0 and (early + late).count(b"FRAME") == 8, f"in time: {p.returncode}: {len(early)}, {len(late)}")
    draw("in.y4m", "444", (320, 240), 60)
    told = []
    for frames in ("5", "25"):
        net = picks(0, int(frames), 3)
        code, out, err = sent("in.y4m", "-m", net, "--window", frames, "-", "-o", "sent.y4m", "--json")
        told.append(json.loads(out.splitlines()[-1]) if code == 0 else {})
        expect(code == 0 and (SANITIZED or told[-1]["measured_peak_bytes"] <= told[-1]["predicted_peak_bytes"]), f"memory: {code}: {err} {told}")
        with open("in.y4m", "rb") as f:
            text = subprocess.run([TEGULA, "plan", "-m", net, "--window", frames, "--normalize", "none", "-", "-o", "-"], stdin=f, capture_output=True, text=True,
                                  check=False).stdout
        expect(f"{int(frames) + 1} that are kept" in text, f"the plan's line: {text}")
    more = told[1].get("predicted_peak_bytes", 0) - told[0].get("predicted_peak_bytes", 0)
    expect(more >= 20 * 320 * 240 * 3, f"20 frames more are kept: {more} bytes")


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
    out_of_a_pipe()
    a_pipe_that_breaks()
    killed_runs_go_on({"file": os.path.abspath("film.mkv")}, "k.mov", 4, "--codec", "ffv1", "--window", "3", net=picks(0, 3, 3))


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
