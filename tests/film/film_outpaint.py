#!/usr/bin/env python3
"""Frames that become larger (--mode outpainting): where the film lies in them and what its masks are by the published script's rule, the film's
samples stay what they are, what is around is drawn, and a stop is gone on with.

    film_outpaint.py TEGULA SOURCE VIDEOS WEIGHTS CANVAS_MASKS [more]

WEIGHTS: the drawn weights of ProPainter; CANVAS_MASKS: the program that prints masks. `more`: ProPainter, other sizes, kills. 77: no ffmpeg."""
import json
import os
import subprocess
import sys

from film_help import TEGULA, expect, ffmpeg, in_folder, run
from film_write import killed_at, operations_of, pixels, probe, start_over, times

WEIGHTS, CANVAS_MASKS = (os.path.abspath(a) for a in sys.argv[4:6])
OUT = ("--mode", "outpainting")
SMOOTH = ("--method", "smooth")


def draw(size, path, *words, frames=12, form="yuv420p", scene="testsrc2"):
    ffmpeg("-f", "lavfi", "-i", f"{scene}=size={size}:rate=25", "-frames:v", str(frames), "-pix_fmt", form, *words, path)


def extend(film, out, *words, code=0):
    got, text, err = run("inpaint", film, *OUT, *words, "-o", out, "-y")
    expect(got == code, f"extend {film} to {out} {words}: {got}: {err}")
    return text, err


def pictures(pattern, n):
    return [pixels(pattern % k, "rgb24") for k in range(1, n + 1)]


# ---- The rule --------------------------------------------------------------------------------------------------------------


def script_masks(h, w, by_h, by_w):
    """(height, width, row, column), what is hidden, and where motions are completed, as SPEC.md says of the published script."""
    high, wide = int(by_h * h), int(by_w * w)
    high, wide = high - high % 8, wide - wide % 8
    y0, x0 = int((high - h) / 2), int((wide - w) / 2)
    dh, dw = 4 if y0 > 10 else 0, 4 if x0 > 10 else 0

    def outside(dy, dx):
        return ["".join("01"[not (y0 + dy <= y < y0 + h - dy and x0 + dx <= x < x0 + w - dx)] for x in range(wide)) for y in range(high)]
    return (high, wide, y0, x0), outside(0, 0), outside(dh, dw)


def masks_of(h, w, by_h, by_w):
    text = subprocess.run([CANVAS_MASKS, str(h), str(w), str(by_h), str(by_w)], capture_output=True, text=True, check=True).stdout.splitlines()
    at = tuple(map(int, text[0].split()))
    return at, text[1:1 + at[0]], text[1 + at[0]:]


def masks_are_the_scripts():
    for h, w in ((128, 128), (240, 432), (136, 200), (360, 640)):
        for by in ((1.0, 1.2), (1.2, 1.0), (1.1, 1.1), (1.0, 1.05), (1.33, 1.77), (2.0, 1.0), (1.5, 1.01), (1.0, 1.17)):
            got, want = masks_of(h, w, *by), script_masks(h, w, *by)
            expect(got == want, f"{w}x{h} by {by}: {got[0]} for {want[0]}, masks {[a == b for a, b in zip(got[1:], want[1:])]}")


def sides_of_any_length_hold_the_film():
    """What the script resizes first is kept here: no side shrinks, and no sample of chroma falls between two."""
    for h, w in ((270, 427), (190, 240), (133, 131)):
        for by in ((1.0, 1.2), (1.0, 1.0), (1.3, 1.1), (1.02, 1.02)):
            (high, wide, y0, x0), hidden, _ = masks_of(h, w, *by)
            inside = sum(row.count("0") for row in hidden)
            expect(high >= h and wide >= w and inside == h * w and y0 % 4 == x0 % 4 == 0 and high % 8 in (0, h % 8), f"{w}x{h} by {by}: {high, wide, y0, x0}")
            expect(abs(2 * y0 + h - high) <= 8 and abs(2 * x0 + w - wide) <= 8, f"{w}x{h} by {by}: not in the middle: {high, wide, y0, x0}")


# ---- Samples ---------------------------------------------------------------------------------------------------------------


def planes(data, form, w, h, frame):
    """Rows of each component of a frame; (rows, bytes of a sample, pixels across, pixels down)."""
    each = 2 if form.endswith("10le") else 1
    across, down = {"yuv420": (2, 2), "yuv422": (2, 1)}.get(form[:6], (1, 1))
    shapes = [(w, h, 1, 1)] + ([] if form.startswith("gray") else 2 * [(-(-w // across), -(-h // down), across, down)])
    at = frame * each * sum(a * b for a, b, _, _ in shapes)
    out = []
    for a, b, dx, dy in shapes:
        out.append(([data[at + y * a * each:at + (y + 1) * a * each] for y in range(b)], each, dx, dy))
        at += a * b * each
    return out


def inside_is_the_same(film, out, form, before, after, at, frames=12, whole=True):
    """Samples that stand for the film's pixels alone are those that it has; of the border not all are one number."""
    (w, h), (wide, high), (x0, y0) = before, after, at
    a, b = pixels(film, form), pixels(out, form)
    size = {k: sum(len(r) for p in planes(d, form, *s, 0) for r in p[0]) for k, d, s in (("a", a, before), ("b", b, after))}
    expect(len(a) == frames * size["a"] and len(b) == frames * size["b"], f"{film}: {len(a)} and {len(b)} bytes of {size}")
    wrong = samples = 0
    border = set()
    for k in (0, frames - 1):
        for (rows, each, dx, dy), (large, _, _, _) in zip(planes(a, form, w, h, k), planes(b, form, wide, high, k)):
            for y, row in enumerate(rows):
                n = len(row) // each if whole else w // dx
                if whole or (y + 1) * dy <= h:
                    left = x0 // dx * each
                    wrong += row[:n * each] != large[y0 // dy + y][left:left + n * each]
                    samples += n
                    border.update(large[y0 // dy + y][:left])
    expect(wrong == 0 and samples > 0, f"{film} {form} to {out}: {wrong} rows differ")
    return border


def the_films_samples_stay():
    for form, words in (("yuv420p", ()), ("yuv422p10le", ()), ("yuv444p", ()), ("gray", ())):
        draw("192x128", "in.mkv", "-c:v", "ffv1", form=form)
        extend("in.mkv", "out.mkv", "--scale_h", "1.25", "--scale_w", "1.2", *SMOOTH, "--codec", "ffv1", *words)
        border = inside_is_the_same("in.mkv", "out.mkv", form, (192, 128), (224, 160), (16, 16))
        expect(len(border) > 8, f"{form}: around it {len(border)} numbers")


def frames_of_any_size_stay():
    """Odd sides: samples of chroma that stand for a pixel beside the frame, too, are drawn."""
    draw("151x131", "odd.mkv", "-c:v", "ffv1", scene="testsrc")
    extend("odd.mkv", "out.mkv", *SMOOTH, "--codec", "ffv1", "--scale-h", "1.2")
    inside_is_the_same("odd.mkv", "out.mkv", "yuv420p", (151, 131), (176, 152), (12, 8), whole=False)


def turned_films_stay():
    """The border is of what is seen; samples are compared as they are stored."""
    draw("160x96", "flat.mkv", "-c:v", "libx264", "-qp", "0", "-g", "4")
    for turn in (90, 180, 270):
        ffmpeg("-i", "flat.mkv", "-c", "copy", "-metadata:s:v:0", f"rotate={turn}", "turned.mov")
        extend("turned.mov", "out.mov", *SMOOTH, "--codec", "ffv1", "--scale-h", "1.0", "--scale-w", "1.5")
        s = probe("out.mov", "-select_streams", "V:0", "-show_entries", "stream=width,height")["streams"][0]
        size = (s["width"], s["height"])
        want = ((160, 144), (0, 24)) if turn % 180 else ((240, 96), (40, 0))
        expect(size == want[0], f"turned by {turn}: {size}")
        if size == want[0]:
            inside_is_the_same("turned.mov", "out.mov", "yuv420p", (160, 96), *want)


def what_is_around_is_drawn():
    """Each method leaves no black border, of a film that has no black edges."""
    ffmpeg("-f", "lavfi", "-i", "gradients=size=160x128:rate=10:c0=0xC08040:c1=0x4080C0:seed=7", "-frames:v", "6", "g_%d.png")
    for words in (SMOOTH, ("--method", "propagate"), ("--weights", WEIGHTS, "--raft-iter", "1")):
        os.makedirs("drawn", exist_ok=True)
        extend("g_%d.png", "drawn/%d.png", *words)
        for k, p in enumerate(pictures("drawn/%d.png", 6)):
            rows = [p[y * 192 * 3:(y + 1) * 192 * 3] for y in range(128)]
            black = sum(r[3 * x:3 * x + 3] == b"\0\0\0" for r in rows for x in (*range(16), *range(176, 192)))
            expect(len(p) == 3 * 192 * 128 and black < 41, f"{words} frame {k}: {len(p)} bytes, {black} of 4096 pixels of the border are black")
        expect([b"".join(r[48:528] for r in (p[y * 576:(y + 1) * 576] for y in range(128))) for p in pictures("drawn/%d.png", 6)]
               == pictures("g_%d.png", 6), f"{words}: the frames themselves are others")


def the_rest_of_the_film_goes_with_it():
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x96:rate=10", "-f", "lavfi", "-i", "sine=duration=1.2", "-frames:v", "12", "-c:v", "ffv1", "-c:a", "flac",
           "sound.mkv")
    extend("sound.mkv", "out.mkv", *SMOOTH, "--codec", "ffv1")
    kinds = [s["codec_type"] for s in probe("out.mkv", "-show_streams")["streams"]]
    expect(kinds == ["video", "audio"] and times("out.mkv") == times("sound.mkv"), f"{kinds}, {times('out.mkv')}")


# ---- Options ---------------------------------------------------------------------------------------------------------------


def size_of(path):
    s = probe(path, "-select_streams", "V:0", "-show_entries", "stream=width,height")["streams"][0]
    return s["width"], s["height"]


def sizes_that_are_asked_for():
    """The film is resized before it is extended; a method that works on smaller frames gets a border of its own."""
    draw("192x128", "in.mkv", "-c:v", "ffv1")
    extend("in.mkv", "out.mkv", *SMOOTH, "--output-size", "128x96", "--codec", "ffv1")
    expect(size_of("out.mkv") == (152, 96), f"--output-size 128x96: {size_of('out.mkv')}")
    extend("in.mkv", "out.mkv", *SMOOTH, "--resize-ratio", "0.5", "--codec", "ffv1")
    expect(size_of("out.mkv") == (224, 128), f"--resize-ratio: {size_of('out.mkv')}")
    inside_is_the_same("in.mkv", "out.mkv", "yuv420p", (192, 128), (224, 128), (16, 0))
    extend("in.mkv", "whole.mkv", *SMOOTH, "--compose", "official", "--codec", "ffv1")
    expect(size_of("whole.mkv") == (224, 128), f"--compose official: {size_of('whole.mkv')}")
    extend("in.mkv", "squeezed.mkv", *SMOOTH, "--squeeze", "--codec", "ffv1", "--resize-ratio", "0.5")
    expect(size_of("squeezed.mkv") == (192, 128), f"--squeeze: {size_of('squeezed.mkv')}")
    text, _ = extend("in.mkv", "out.mkv", *SMOOTH, "--plan")
    expect("peak" in text, f"--plan: {text}")
    extend("in.mkv", "strip.png", *SMOOTH, "--preview", "0.2")
    extend("in.mkv", "shown%d.png", "--method", "show")
    shown = pixels("shown1.png", "rgb24")[:3 * 224]
    expect(shown[:3 * 16] == b"\0\x99\0" * 16, f"shown: {shown[:12]}")


def what_was_extended_is_squeezed():
    """Into the film's size, as pictures by OpenCV's cubic: what the larger frame is."""
    draw("192x128", "s_%d.png", frames=3, form="rgb24")
    extend("s_%d.png", "large%d.png", *SMOOTH)
    extend("s_%d.png", "small%d.png", *SMOOTH, "--squeeze")
    for k, (large, small) in enumerate(zip(pictures("large%d.png", 3), pictures("small%d.png", 3))):
        off = [abs(a - b) for a, b in zip(small, squeezed(large, 224, 128, 192))]  # weights are floats there: 58 samples of 73728
        expect(len(small) == len(off) and max(off) <= 1 and sum(off) <= 74, f"squeezed, frame {k}: {len(small)} bytes, {max(off)}, {sum(off)}")


def squeezed(large, wide, high, width):
    """Rows of RGB made shorter as OpenCV's cubic does in 11 bits: a = -0.75, the edge repeated."""
    taps = []
    for x in range(width):
        at = (x + 0.5) * wide / width - 0.5
        i = int(at // 1)
        t, a = at - i, -0.75
        w = [((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1,
             ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1]
        w.append(1 - sum(w))
        taps.append([(min(max(i - 1 + k, 0), wide - 1), round(v * 2048)) for k, v in enumerate(w)])
    out = bytearray()
    for y in range(high):
        row = large[y * wide * 3:(y + 1) * wide * 3]
        for tap in taps:
            for c in range(3):
                out.append(min(max((2048 * sum(v * row[3 * at + c] for at, v in tap) + (1 << 21)) >> 22, 0), 255))
    return bytes(out)


def what_does_not_go_is_told():
    draw("192x128", "in.mkv", "-c:v", "ffv1", frames=2)
    for words, told in (((*OUT, "--mask-box", "1,1,9,9"), "--mask-box"), ((*OUT, "--mask", "m.png"), "--mask "), ((*OUT, "--scale-w", "0.9"), "1.2"),
                        ((*OUT, "--scale-w", "wide"), "--scale-w wide"), ((*OUT, "--scale-h", "9"), "1 to 8"), ((*OUT, "--scale-w", "1.01"), "larger factor"),
                        (("--mode", "outward", "--mask-box", "1,1,9,9"), "outpainting"), ((), "--mode outpainting")):
        code, _, err = run("inpaint", "in.mkv", *words, *SMOOTH, "-o", "none.mkv")
        expect(code == 64 and told in err and not os.path.exists("none.mkv"), f"{words}: {code}: {err}")
    _, err = extend("in.mkv", "out.mkv", *SMOOTH, "--mask-dilation", "8")
    expect("--mask-dilation is not used" in err, f"--mask-dilation: {err}")
    code, _, err = run("inpaint", "in.mkv", "--mask-box", "1,1,9,9", "--scale-w", "1.5", *SMOOTH, "-o", "out.mkv", "-y")
    expect(code == 0 and "--scale-w is not used" in err, f"--scale-w: {code}: {err}")


# ---- ProPainter ------------------------------------------------------------------------------------------------------------


def motions_have_their_own_mask():
    """Beside a narrow border both masks are one, and the frames are those of a black border that boxes hide; beside a wide one they are not."""
    draw("144x128", "n_%d.png", frames=9, form="rgb24")
    words = ("--weights", WEIGHTS, "--raft-iter", "2")
    for by, x0, alike in ((1.12, 8, True), (1.25, 16, False)):
        wide = 144 + 2 * x0
        for folder in ("in", "by_mode", "by_boxes"):
            os.makedirs(f"{folder}{x0}", exist_ok=True)
        ffmpeg("-i", "n_%d.png", "-vf", f"pad={wide}:128:{x0}:0:black", f"in{x0}/%d.png")
        extend("n_%d.png", f"by_mode{x0}/%d.png", *words, "--scale_w", str(by))
        code, _, err = run("inpaint", f"in{x0}/%d.png", *words, "--mask-box", f"0,0,{x0},128", "--mask-box", f"{144 + x0},0,{x0},128", "--mask-dilation", "0",
                           "-o", f"by_boxes{x0}/%d.png", "-y")
        a, b = pictures(f"by_mode{x0}/%d.png", 9), pictures(f"by_boxes{x0}/%d.png", 9)
        expect(code == 0 and len(a[0]) == 3 * wide * 128, f"boxes beside {by}: {code}: {err}, {len(a[0])} bytes")
        expect((a == b) == alike, f"a border of {x0}: {sum(p != q for p, q in zip(a, b))} frames differ from those of boxes")


def a_pipe_ends_with_its_film():
    draw("144x128", "in.y4m", frames=7, form="yuv444p")
    words = (*OUT, "--weights", WEIGHTS, "--raft-iter", "1", "--compose", "official", "-q")
    code, _, err = run("inpaint", "in.y4m", *words, "-o", "file.y4m", "-y")
    expect(code == 0, f"from a file: {code}: {err}")
    with open("in.y4m", "rb") as f, open("piped.y4m", "wb") as to:
        piped = subprocess.run([TEGULA, "inpaint", "-", *words, "-o", "-"], stdin=f, stdout=to, stderr=subprocess.PIPE, check=False, timeout=200)
    with open("file.y4m", "rb") as a, open("piped.y4m", "rb") as b:
        expect(piped.returncode == 0 and a.read() == b.read(), f"through a pipe: {piped.returncode}: {piped.stderr.decode()}")
    with open("in.y4m", "rb") as f:
        piped = subprocess.run([TEGULA, "inpaint", "-", *words, "--squeeze", "-o", "-"], stdin=f, capture_output=True, check=False, timeout=200)
    expect(piped.returncode == 64 and b"write them to a file" in piped.stderr, f"squeezed through a pipe: {piped.returncode}: {piped.stderr.decode()}")


def a_smaller_size_is_drawn_at():
    """What networks work at is the resized film, extended; the film's own pixels stay."""
    draw("320x256", "l_%d.png", frames=5, form="rgb24")
    os.makedirs("half", exist_ok=True)
    extend("l_%d.png", "half/%d.png", "--weights", WEIGHTS, "--raft-iter", "1", "--resize-ratio", "0.5")
    for k, (p, q) in enumerate(zip(pictures("half/%d.png", 5), pictures("l_%d.png", 5))):
        expect(len(p) == 3 * 384 * 256 and b"".join(p[(y * 384 + 32) * 3:(y * 384 + 352) * 3] for y in range(256)) == q, f"half, frame {k}")


def stopped_runs_go_on():
    draw("192x128", "in.mkv", "-c:v", "ffv1", frames=40)
    args = ("inpaint", "in.mkv", *OUT, "--reach", "5", "--codec", "ffv1")
    code, _, err = run(*args, "-o", "once.mkv", "-y")
    expect(code == 0, f"without a stop: {code}: {err}")
    last = operations_of(args, "again.mkv")
    for at in range(3, last, max(1, last // 8)):
        start_over("again.mkv")
        killed_at(args, "again.mkv", at)
        code, _, err = run(*args, "-o", "again.mkv")
        expect(code in (0, 73) and pixels("again.mkv", "yuv420p") == pixels("once.mkv", "yuv420p"), f"after a stop at {at} of {last}: {code}: {err}")
    start_over("again.mkv")
    killed_at(args, "again.mkv", last - 2)
    code, _, err = run(*args, "--scale-w", "1.4", "-o", "again.mkv")
    expect(code != 0, f"another size is gone on with: {code}: {err}")


def a_budget_holds():
    draw("192x128", "in.y4m", frames=30)
    text, _ = extend("in.y4m", "out.y4m", "--reach", "5", "--json")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
    expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"], f"peak: {done}")


def tests(_):
    if "more" in sys.argv[6:]:
        motions_have_their_own_mask()
        a_smaller_size_is_drawn_at()
        a_pipe_ends_with_its_film()
        what_is_around_is_drawn()
        frames_of_any_size_stay()
        turned_films_stay()
        stopped_runs_go_on()
        a_budget_holds()
        return
    masks_are_the_scripts()
    sides_of_any_length_hold_the_film()
    the_films_samples_stay()
    the_rest_of_the_film_goes_with_it()
    sizes_that_are_asked_for()
    what_was_extended_is_squeezed()
    what_does_not_go_is_told()


if __name__ == "__main__":
    sys.exit(in_folder(tests, "ffmpeg", "ffprobe", samples=False))
