#!/usr/bin/env python3
"""Things that are removed from films by the command: what is outside the mask is the decoder's, the rest of the film is
as with any network, and what is left of a stop is gone on with. Seen by ffmpeg.

    film_inpaint.py TEGULA SOURCE VIDEOS [stops|peaks]

`stops`: 20 kills and disks that are full at any operation, instead. `peaks`: peaks as planned and as measured, of three sizes and
of 200 and 2,000 frames. 77: no samples, or no ffprobe and ffmpeg."""
import json
import os
import random
import signal
import subprocess
import sys
import time

from film_help import SANITIZED, TEGULA, expect, ffmpeg, in_folder, png, run, sample
from film_write import killed_at, operations_of, pixels, probe, start_over, times

SMOOTH = ("--method", "smooth")
FFV1 = ("--codec", "ffv1")


def inpaint(film, out, *words, code=0, **more):
    got, text, err = run("inpaint", film, "-o", out, "-y", *words, **more)
    expect(got == code, f"inpaint {film} to {out} {words}: {got}: {err}")
    return text, err


# ---- Samples outside the mask --------------------------------------------------------------------------------------------


def hidden_by(boxes, w, h, grown):
    """Rows of a mask of boxes (x, y, width, height), grown by the 3x3 cross."""
    def far(v, lo, n):
        return max(lo - v, v - (lo + n - 1), 0)
    return [[any(far(x, b[0], b[2]) + far(y, b[1], b[3]) <= grown for b in boxes) for x in range(w)] for y in range(h)]


def planes_of(form, w, h):
    """(columns, rows, pixels across, pixels down that a sample stands for) of each component."""
    across, down = {"yuv420": (2, 2), "yuv422": (2, 1), "yuv444": (1, 1)}[form[:6]]
    chroma = (-(-w // across), -(-h // down), across, down)
    return [(w, h, 1, 1), chroma, chroma]


def outside_is_the_same(film, boxes, *words, grown=4):
    """All samples that stand for no hidden pixel are the decoder's; of those that do some are others."""
    out = "outside.mkv"
    at = [w for b in boxes for w in ("--mask-box", ",".join(map(str, b)))]
    inpaint(film, out, *at, *FFV1, "--mask-dilation", str(grown), *words)
    s = probe(film, "-select_streams", "V:0", "-show_streams")["streams"][0]
    form, w, h = s["pix_fmt"].replace("yuvj", "yuv"), s["width"], s["height"]
    got = probe(out, "-select_streams", "V:0", "-show_streams")["streams"][0]
    expect(got["pix_fmt"] == form, f"{film}: {got['pix_fmt']} of {form}")
    is_, was = pixels(out, form), pixels(film, form)[:len(pixels(out, form))]
    size = 2 if "10le" in form else 1
    mask, places, bad, other = hidden_by(boxes, w, h, grown), 0, 0, 0
    kept = []
    for n, m, across, down in planes_of(form, w, h):
        for y in range(m):
            for x in range(n):
                hides = any(mask[i][j] for i in range(y * down, min(h, (y + 1) * down)) for j in range(x * across, min(w, (x + 1) * across)))
                kept += [not hides] * size
        places += n * m * size
    frames = len(is_) // places
    for k in range(frames):
        for keep, a, b in zip(kept, was[k * places:(k + 1) * places], is_[k * places:(k + 1) * places]):
            if a != b:
                bad += keep
                other += not keep
    expect(frames and not bad, f"{film}: {bad} bytes outside the mask are others, of {frames} frames")
    expect(other, f"{film}: nothing was changed")
    print(f"  {os.path.basename(film)}: {form}, {frames} frames, {other} bytes under the mask are others, {bad} outside", flush=True)


def made(name, form):
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=96x80:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", form, name)
    return name


def samples_outside_the_mask():
    outside_is_the_same(sample("carphone_pristine.mp4"), [(61, 41, 33, 27), (0, 0, 9, 9)], "--frames", "0:3", *SMOOTH)
    for form in ("yuv420p", "yuv444p", "yuv420p10le", "yuv444p10le", "yuv422p"):
        outside_is_the_same(made(form + ".mkv", form), [(31, 21, 13, 17)], *SMOOTH)
    outside_is_the_same("yuv420p.mkv", [(31, 21, 13, 17)], grown=0)
    outside_is_the_same("yuv420p.mkv", [(90, 70, 6, 10)], grown=9)


def another_size_is_pasted():
    """The method works on smaller frames: outside the mask samples are the film's all the same, a part is what the whole has, and the
    plan holds. All of the frame is what came back, where it is asked for so."""
    for form in ("yuv420p", "yuv444p10le"):
        outside_is_the_same(form + ".mkv", [(31, 21, 13, 17)], "--resize-ratio", "0.5", "--reach", "3")
    film = sample("carphone_pristine.mp4")
    words = ("--mask-box", "60,50,30,30", "--reach", "4", "--width", "120", "--height", "98", *FFV1)
    text, _ = inpaint(film, "size.mkv", *words, "--frames", "0:12", "--json")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
    expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"], f"another size: peak: {done}")
    inpaint(film, "size_part.mkv", *words, "--frames", "5:8")
    inpaint(film, "own_size.mkv", *words[:4], *FFV1, "--frames", "0:12")
    whole, part, own = (pixels(p, "yuv420p") for p in ("size.mkv", "size_part.mkv", "own_size.mkv"))
    n = len(whole) // 12
    expect(part == whole[5 * n:8 * n], "another size: a part has other frames than the whole")
    expect(whole != own, "another size: nothing is other than at the film's own")
    inpaint(film, "official_size.mkv", *words, "--frames", "0:12", "--compose", "official")
    official, was = pixels("official_size.mkv", "yuv420p"), pixels(film, "yuv420p")[:12 * n]
    expect(sum(a != b for a, b in zip(official, was)) > len(was) // 2, "--compose official of another size: most samples are the film's")
    code, _, err = run("inpaint", film, "-o", "no.mkv", "--mask-box", "60,50,30,30", "--width", "120")
    expect(code == 64 and "--height" in err, f"--width alone: {code}: {err}")


def outputs_have_the_size_that_is_asked_for():
    """Frames are resized first: what is removed of a film at that size is what is removed of pictures that have it, boxes are said in the
    film's own pixels, and the network's way holds its plan."""
    film, words = made("sized.mkv", "yuv444p"), ("--mask-box", "30,20,16,16", "--mask-dilation", "0", *SMOOTH)
    inpaint(film, "dot_%d.png", "--mask-box", "36,26,1,1", "--mask-dilation", "0", *SMOOTH, "--output-size", "48x40")
    inpaint(film, "sized_%d.png", *words, "--output-size", "48x40")
    inpaint("dot_%d.png", "again_%d.png", "--mask-box", "15,10,8,8", "--mask-dilation", "0", *SMOOTH)
    a, b, c = (pixels(p, "rgb24") for p in ("sized_%d.png", "again_%d.png", "dot_%d.png"))
    expect(len(a) == 5 * 48 * 40 * 3 and a == b != c, f"--output-size: {len(a)} samples, {sum(x != y for x, y in zip(a, b))} are others")
    text, _ = inpaint(sample("carphone_pristine.mp4"), "sized.mp4", "--mask-box", "60,50,30,30", "--reach", "4", "--frames", "0:12", "--output-size", "200x120",
                      "--json")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
    expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"], f"--output-size: peak: {done}")
    s = next(s for s in probe("sized.mp4", "-show_streams")["streams"] if s["codec_type"] == "video")
    expect((s["width"], s["height"]) == (200, 120), f"--output-size: {s['width']} x {s['height']}")
    for wrong in ("200", "200x", "0x10", "200x120x3"):
        code, _, err = run("inpaint", film, "-o", "no.mkv", *words, "--output-size", wrong)
        expect(code == 64 and "1280x720" in err, f"--output-size {wrong}: {code}: {err}")


def official_pictures_are_cubic():
    """Beside an edge a cubic one goes beyond what a linear one, which is for films, can reach."""
    ffmpeg("-f", "lavfi", "-i", "color=0x3c3c3c:size=96x64", "-f", "lavfi", "-i", "color=0xc8c8c8:size=48x64", "-filter_complex", "[0][1]overlay=48:0,format=rgb24",
           "-frames:v", "2", "edge_%d.png")
    words = ("--mask-box", "4,4,8,8", "--resize-ratio", "0.5", "--compose", "official", *SMOOTH)
    inpaint("edge_%d.png", "cubic_%d.png", *words)
    inpaint("edge_%d.png", "linear.mkv", *words, "--codec", "ffv1", "--pix-fmt", "bgr0")
    cubic, linear = max(pixels("cubic_1.png", "rgb24")), max(pixels("linear.mkv", "rgb24"))
    expect(cubic > linear > 200, f"--compose official: at most {cubic} in pictures, {linear} in a film")


def the_official_way_converts_all():
    """--compose official: all of a frame went to RGB and back; under the mask it is what --compose source has."""
    film = made("official.mkv", "yuv420p")
    words = ("--mask-box", "30,20,16,16", *FFV1, *SMOOTH)
    inpaint(film, "source.mkv", *words)
    inpaint(film, "official_out.mkv", *words, "--compose", "official")
    was, a, b = (pixels(p, "yuv420p") for p in (film, "source.mkv", "official_out.mkv"))
    at = 25 * 96 + 38  # luma, amidst the box
    expect(len(a) == len(b) and a[at] == b[at] != was[at], f"--compose official: {a[at]}, {b[at]} under the mask, {was[at]} before")
    expect(sum(x != y for x, y in zip(was, b)) > 2 * sum(x != y for x, y in zip(was, a)), "--compose official: most samples are those of the film")


def upright(path):
    """The first frame, as it is seen."""
    return subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-map", "0:V:0", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"],
                          capture_output=True, check=True).stdout


def turned_films_are_kept_turned():
    """The mask is of what is seen; an .mp4 says that its frames are turned."""
    film = sample("rot90.mov")
    text, _ = inpaint(film, "turned.mp4", "--mask-box", "4,4,16,12", "--frames", "0:2", *SMOOTH)
    turn = [d.get("rotation") for f in (film, "turned.mp4")
            for d in probe(f, "-select_streams", "V:0", "-show_streams")["streams"][0].get("side_data_list", []) if "rotation" in d]
    expect(len(turn) == 2 and turn[0] == turn[1], f"turned: {turn} {text}")
    for name in ("rot90.mov", "rot180.mov", "rot270.mov"):
        inpaint(sample(name), "turned.mov", "--mask-box", "4,10,16,12", "--frames", "0:1", *FFV1, *SMOOTH)
        s = probe(sample(name), "-select_streams", "V:0", "-show_streams")["streams"][0]
        w, h = (s["height"], s["width"]) if "180" not in name else (s["width"], s["height"])  # as it is seen
        a, b = (upright(f)[:w * h] for f in (sample(name), "turned.mov"))
        other = [(i % w, i // w) for i in range(w * h) if a[i] != b[i]]
        far = [max(max(4 - x, x - 19, 0) + max(10 - y, y - 21, 0) for x, y in other)] if other else []
        expect(far and far[0] <= 4, f"{name}: {len(other)} samples are others, up to {far} pixels from the box")


# ---- Masks ---------------------------------------------------------------------------------------------------------------


def same_frames(a, b):
    return pixels(a, "rgb24") == pixels(b, "rgb24")


def masks_of_every_form():
    """A box, a picture, a folder, a film: the same frames. Of masks that go along each is of its own frame."""
    film = made("forms.mkv", "yuv444p")
    rows = [[255 * (20 <= x < 36 and 30 <= y < 42) for x in range(96)] for y in range(80)]
    png("mask.png", 96, 80, rows)
    os.makedirs("masks", exist_ok=True)
    for k in range(5):
        png(f"masks/{k:03d}.png", 96, 80, rows)
    ffmpeg("-i", "masks/%03d.png", "-c:v", "ffv1", "-pix_fmt", "gray", "mask.mkv")
    ffmpeg("-i", "masks/%03d.png", "-c:v", "libx264", "-qp", "18", "-pix_fmt", "yuv420p", "mask.mp4")
    png("inverse.png", 96, 80, [[255 - v for v in r] for r in rows])
    inpaint(film, "box.mkv", "--mask-box", "20,30,16,12", *FFV1, *SMOOTH)
    for mask, words in (("mask.png", ()), ("masks", ()), ("masks/%03d.png", ()), ("mask.mkv", ()), ("mask.mp4", ()),
                        ("inverse.png", ("--mask-invert",))):
        inpaint(film, "form.mkv", "--mask", mask, *words, *FFV1, *SMOOTH)
        expect(same_frames("form.mkv", "box.mkv"), f"--mask {mask}: other frames than by the box")
    os.makedirs("going", exist_ok=True)
    for k in range(5):
        png(f"going/{k:03d}.png", 96, 80, [[255 * (10 + 9 * k <= x < 26 + 9 * k and 30 <= y < 42) for x in range(96)] for y in range(80)])
    ffmpeg("-i", "going/%03d.png", "-c:v", "ffv1", "-pix_fmt", "gray", "going.mkv")
    boxes = [w for k in range(5) for w in ("--mask-box", f"{10 + 9 * k},30,16,12@{k}")]
    inpaint(film, "goes.mkv", *boxes, *FFV1, *SMOOTH)
    for mask in ("going", "going.mkv"):
        inpaint(film, "form.mkv", "--mask", mask, *FFV1, *SMOOTH)
        expect(same_frames("form.mkv", "goes.mkv"), f"--mask {mask}: other frames than by boxes that go along")
    expect(not same_frames("goes.mkv", "box.mkv"), "boxes that go along and one that stays are alike")
    grey = [[90 * (10 <= x < 50 and 20 <= y < 60) + 110 * (20 <= x < 36 and 30 <= y < 42) for x in range(96)] for y in range(80)]
    png("grey.png", 96, 80, grey)
    _, err = inpaint(film, "form.mkv", "--mask", "grey.png", *FFV1, *SMOOTH)
    expect("--mask-threshold" in err, f"many grey values: {err}")
    inpaint(film, "form.mkv", "--mask", "grey.png", "--mask-threshold", "127", *FFV1, *SMOOTH)
    expect(same_frames("form.mkv", "box.mkv"), "--mask-threshold: other frames than by the box")


def masks_that_do_not_fit_are_told():
    film = made("told.mkv", "yuv444p")
    png("half.png", 48, 40, [[255 * (x > 30) for x in range(48)] for _ in range(40)])
    _, err = inpaint(film, "told_out.mkv", "--mask", "half.png", *SMOOTH)
    expect("48" in err and "96" in err, f"another size: {err}")
    os.makedirs("few", exist_ok=True)
    for k in range(3):
        png(f"few/{k}.png", 96, 80, [[255 * (x > 60 + k) for x in range(96)] for _ in range(80)])
    _, err = inpaint(film, "told_out.mkv", "--mask", "few", *SMOOTH)
    expect("3 masks" in err and "5 frames" in err, f"another count: {err}")
    for words, what in ((("--mask", "none.png"), "none.png"), (("--mask-box", "200,0,9,9"), "200,0,9,9"), (("--mask-box", "1,2,3"), "410,220,90,160"), ((), "--mask")):
        code, _, err = run("inpaint", film, "-o", "no.mkv", *words)
        expect(code in (64, 66) and what in err, f"{words}: {code}: {err}")
        expect(not os.path.exists("no.mkv"), f"{words}: there is an output")


def boxes_have_frames():
    """A box of frames 2 to 3 changes those alone."""
    film = made("some.mkv", "yuv444p")
    inpaint(film, "some_out.mkv", "--mask-box", "20,20,30,30@2-3", *FFV1, *SMOOTH)
    a, b = pixels(film, "yuv444p"), pixels("some_out.mkv", "yuv444p")
    n = len(a) // 5
    expect([k for k in range(5) if a[k * n:(k + 1) * n] != b[k * n:(k + 1) * n]] == [2, 3], "boxes of frames")


# ---- Frames --------------------------------------------------------------------------------------------------------------


def a_part_is_what_the_whole_has():
    """Frames around a part are looked at, so a part has the frames that the whole has; so do one thread and two."""
    film = sample("carphone_pristine.mp4")
    box = ("--mask-box", "60,50,30,30", "--reach", "6", *FFV1)
    inpaint(film, "whole.mkv", *box, "--frames", "0:40")
    inpaint(film, "part.mkv", *box, "--frames", "17:22")
    inpaint(film, "one.mkv", *box, "--frames", "0:40", "--threads", "1")
    whole, part = pixels("whole.mkv", "yuv420p"), pixels("part.mkv", "yuv420p")
    n = len(whole) // 40
    expect(len(part) == 5 * n and part == whole[17 * n:22 * n], "a part has other frames than the whole")
    expect(pixels("one.mkv", "yuv420p") == whole, "one thread makes other frames than two")


def budgets_hold():
    """The least that a refusal names is enough; with a scratch folder less is; the frames are the same."""
    film = sample("carphone_pristine.mp4")
    words = ("--mask-box", "60,50,30,30", "--frames", "0:60", *FFV1)
    text, _ = inpaint(film, "much.mkv", *words, "--json")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
    expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"], f"peak: {done}")
    code, _, err = run("inpaint", film, "-o", "less.mkv", *words, "--ram", "8MiB")
    least = err.split("give --ram ")[1].split()[0].rstrip(":,;") if "give --ram " in err else "none"
    expect(code == 66 or code == 71 and least != "none", f"8 MiB: {code}: {err}")
    os.makedirs("scratch", exist_ok=True)
    code, _, err = run("inpaint", film, "-o", "less.mkv", *words, "--ram", "8MiB", "--scratch", "scratch")
    fewer = err.split("give --ram ")[1].split()[0].rstrip(":,;") if "give --ram " in err else "none"
    for ram, more in ((least, ()), (fewer, ("--scratch", "scratch"))):
        text, _ = inpaint(film, "less.mkv", *words, "--ram", ram, *more, "--json")
        done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"]
        expect(done and done[0]["measured_peak_bytes"] <= done[0]["budget_bytes"], f"{ram} {more}: {done}")
        expect(pixels("less.mkv", "yuv420p") == pixels("much.mkv", "yuv420p"), f"{ram} {more}: other frames")
    expect(not os.listdir("scratch"), f"scratch: {os.listdir('scratch')}")
    print(f"  the least: {least}, with a scratch folder {fewer}", flush=True)


def the_rest_of_the_film_is_kept():
    """Times, sound, tags."""
    film = sample("realshort.mp4")
    inpaint(film, "rest.mp4", "--mask-box", "10,10,40,40", *SMOOTH)
    expect(times("rest.mp4") == times(film), "other times")
    kinds = [[s["codec_type"] for s in probe(f, "-show_streams")["streams"]] for f in (film, "rest.mp4")]
    expect(sorted(kinds[0]) == sorted(kinds[1]), f"tracks: {kinds}")


def pictures_come_out_and_go_in():
    """A folder of pictures, and one picture for each frame of a film."""
    film = made("in.mkv", "yuv444p")
    expect(run("copy", film, "-o", "in.tif", "-y")[0] == 0, "copy")
    ffmpeg("-i", film, "in_%03d.png")
    os.makedirs("frames", exist_ok=True)
    ffmpeg("-i", film, "frames/%03d.png")
    inpaint("frames", "p_%03d.png", "--mask-box", "20,20,16,16", *SMOOTH)
    inpaint("in_%03d.png", "p.mkv", "--mask-box", "20,20,16,16", *FFV1, *SMOOTH)
    ffmpeg("-start_number", "1", "-i", "p_%03d.png", "-c:v", "ffv1", "-pix_fmt", "gbrp", "q.mkv")
    a, b, c = (pixels(p, "rgb24") for p in ("q.mkv", "p.mkv", "in_%03d.png"))
    expect(a == b, "pictures and film differ")
    row, bad = 96 * 3, 0
    for k in range(5):
        for y in range(80):
            at = (k * 80 + y) * row
            for x in range(96):
                far = max(20 - x, x - 35, 0) + max(20 - y, y - 35, 0)
                bad += far > 4 and a[at + 3 * x:at + 3 * x + 3] != c[at + 3 * x:at + 3 * x + 3]
    expect(not bad, f"pictures: {bad} pixels outside the mask are others")


# ---- Stops ---------------------------------------------------------------------------------------------------------------


def stopped_runs_go_on():
    """20 kills at operations on files, then one more at once each time."""
    args = ["inpaint", sample("carphone_pristine.mp4"), "--mask-box", "60,50,30,30", "--reach", "5", *FFV1]
    expect(run(*args, "-o", "whole.mkv", "-y")[0] == 0, "the undisturbed run")
    whole, n, met = pixels("whole.mkv", "yuv420p"), operations_of(args, "killed.mkv"), []
    for k in range(10):
        at = n - random.randrange(6, 12) if k % 4 == 3 else 2 + k * (n - 8) // 9
        met += [killed_at(args, "killed.mkv", at), killed_at(args, "killed.mkv", random.randrange(1, 6))]
        code, _, err = run(*args, "-o", "killed.mkv")
        expect(code in (0, 73), f"the last run: {code}: {err}")
        expect(pixels("killed.mkv", "yuv420p") == whole, f"other frames after {met[-2:]}")
        start_over("killed.mkv")
    print(f"  of {n} operations, kills: {[met.count(w) for w in ('segments', 'join', None)]}", flush=True)


def a_mask_that_changes_is_noticed():
    """It is as much of the input as the film is: a run that saw two of them leaves nothing to go on with."""
    w, h, n = 256, 192, 60
    head = b"YUV4MPEG2 W%d H%d F25:1 C420jpeg\n" % (w, h)
    noise = random.Random(1)
    grey, shown = bytes(noise.randrange(256) for _ in range(w * h)), bytearray(w * h)
    for y in range(40, 120):
        shown[y * w + 60:y * w + 140] = b"\xff" * 80
    for name, luma in (("noisy.y4m", grey), ("walks.y4m", bytes(shown))):
        with open(name, "wb") as f:
            f.write(head + n * (b"FRAME\n" + luma + b"\x80" * (w * h // 2)))
    os.makedirs("seen")
    with subprocess.Popen([TEGULA, "inpaint", "noisy.y4m", "--mask", "walks.y4m", *SMOOTH, "--threads", "1", "-q", "-o", "seen/%05d.png"],
                          stderr=subprocess.PIPE) as p:
        while p.poll() is None and not os.path.exists("seen/00003.png"):
            time.sleep(0.001)
        p.send_signal(signal.SIGSTOP)
        early = not os.path.exists("seen/00040.png")
        with open("walks.y4m", "r+b") as f:
            f.seek(len(head) + 50 * (6 + w * h * 3 // 2) + 6 + 10 * w)
            f.write(b"\xff" * (8 * w))
        p.send_signal(signal.SIGCONT)
        _, err = p.communicate(timeout=100)
    expect(early and p.returncode == 65 and b"walks.y4m" in err and not os.path.exists("seen/%05d.png.frames.journal"),
           f"a mask that changes: {early}, {p.returncode}: {err} {os.listdir('seen')}")


def a_full_scratch_disk():
    """Somewhere in the run the disk is full: 73, or 74, and the same command goes on when it is not."""
    os.makedirs("scratch", exist_ok=True)
    film = sample("carphone_pristine.mp4")
    words = ["--mask-box", "60,50,30,30", "--frames", "0:60", *FFV1, "--scratch", "scratch", "--ram"]
    code, _, err = run("inpaint", film, "-o", "full.mkv", *words, "8MiB")
    words.append(err.split("give --ram ")[1].split()[0].rstrip(":,;"))
    args = ["inpaint", film, *words]
    expect(run(*args, "-o", "whole.mkv", "-y")[0] == 0, f"the undisturbed run: {words}")
    whole, stops = pixels("whole.mkv", "yuv420p"), 0
    for at in (3, 9, 20, 40, 80, 120, 160):
        code, _, err = run(*args, "-o", "full.mkv", TEGULA_FAIL_IO=f"{at}:full")
        expect(code in (0, 73, 74), f"full at operation {at}: {code}: {err}")
        stops += code != 0
        if code:
            code, _, err = run(*args, "-o", "full.mkv")
            expect(code == 0, f"after a full disk at {at}: {code}: {err}")
        expect(pixels("full.mkv", "yuv420p") == whole, f"full at operation {at}: other frames")
        start_over("full.mkv")
    expect(stops >= 3, f"a full disk stopped {stops} runs")
    print(f"  full disks: {stops} stops", flush=True)


# ---- Memory --------------------------------------------------------------------------------------------------------------


def peak_of(film, *words):
    """As planned, as measured."""
    text, _ = inpaint(film, "peak.y4m", "--mask-box", "40,30,32,24", "--json", *words)
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
    os.unlink("peak.y4m")
    return done["predicted_peak_bytes"], done["measured_peak_bytes"]


def peaks_are_as_planned():
    """Of films that tegula itself reads and writes: what libav's decoders hold is told by the bound of their standard."""
    for size, words in (("432x240", ()), ("1280x720", ("--reach", "8")), ("1920x1080", ("--reach", "6"))):
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v", "20" if words else "90", "-pix_fmt", "yuv420p", "size.y4m")
        planned, measured = peak_of("size.y4m", *words)
        expect(SANITIZED or 1 <= planned / measured <= 1.10, f"{size}: planned {planned}, measured {measured}: {planned / measured:.3f}")
        print(f"  {size}: planned {planned / 2**20:.1f} MiB, measured {measured / 2**20:.1f} MiB, {planned / measured:.3f}", flush=True)


def peaks_do_not_grow():
    peaks = {}
    for frames in (200, 2000):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=192x108:rate=25", "-frames:v", str(frames), "-pix_fmt", "yuv420p", "long.y4m")
        peaks[frames] = peak_of("long.y4m")
    for k, what in enumerate(("planned", "measured")):
        a, b = peaks[200][k], peaks[2000][k]
        expect(SANITIZED or abs(b - a) <= 0.02 * a, f"200 and 2,000 frames: {what} {a} and {b}")
    print(f"  200 and 2,000 frames: {peaks}", flush=True)


def tests(_rows):
    if sys.argv[4:] == ["peaks"]:
        peaks_are_as_planned()
        peaks_do_not_grow()
        return
    if sys.argv[4:] == ["stops"]:
        stopped_runs_go_on()
        a_full_scratch_disk()
        return
    for test in (samples_outside_the_mask, the_official_way_converts_all, another_size_is_pasted, outputs_have_the_size_that_is_asked_for,
                 official_pictures_are_cubic, turned_films_are_kept_turned, masks_of_every_form, masks_that_do_not_fit_are_told, boxes_have_frames,
                 a_part_is_what_the_whole_has, budgets_hold, the_rest_of_the_film_is_kept, pictures_come_out_and_go_in, a_mask_that_changes_is_noticed):
        test()


sys.exit(in_folder(tests, "ffmpeg", "ffprobe"))
