#!/usr/bin/env python3
"""Things that are removed from a part of the frames (--region): the same bytes as from frames that were cut to it, pasted into the film; and
what does not go is told.

    film_region.py TEGULA SOURCE VIDEOS WEIGHTS

WEIGHTS: drawn ones of ProPainter (tegula-draw-weights). 77: there is no ffmpeg."""
import os
import re
import subprocess
import sys

from film_help import TEGULA, expect, ffmpeg, in_folder, run

WEIGHTS = os.path.abspath(sys.argv[4])
WIDTH, HEIGHT, FRAMES = 320, 240, 5
DRAWN = ("--weights", WEIGHTS, "--raft-iter", "1")


def rgb(name, width=None, height=None, x=0, y=0):
    """A picture's bytes, or those of a part of it."""
    cut = ("-vf", f"crop={width}:{height}:{x}:{y}") if width else ()
    return subprocess.run(["ffmpeg", "-v", "error", "-i", name, *cut, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout


def make_frames():
    for folder in ("in", "cut"):
        os.makedirs(folder, exist_ok=True)
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=5", "-frames:v", str(FRAMES), "-pix_fmt", "rgb24", "in/%d.png")


def inpaint(into, words, name="in/%d.png", code=0):
    os.makedirs(into, exist_ok=True)
    got, text, err = run("inpaint", name, *words, "-o", f"{into}/%d.png", "-q")
    expect(got == code, f"{into} {words}: {got}: {err}")
    return text, err


def a_region_is_the_film_cut_to_it():
    """With networks and without: what frames give that were cut to the region, and around it what was there."""
    make_frames()
    for name, words in (("drawn", DRAWN), ("followed", ("--reach", "4")), ("smooth", ("--method", "smooth"))):
        _, err = inpaint(name, ("--mask-box", "120,90,40,30", "--region", "auto", *words))
        told = re.search(r"sees (\d+) x (\d+) pixels at column (\d+), row (\d+)", err)
        expect(told, f"{name}: the region is not told: {err}")
        w, h, x, y = map(int, told.groups())
        expect(w < WIDTH and h < HEIGHT and x <= 120 - 64 and y <= 90 - 64 and x + w >= 160 + 64 and y + h >= 120 + 64, f"{name}: {told.group(0)}")
        expect(name != "drawn" or (w % 8 == 0 and h % 8 == 0), f"{name}: {told.group(0)}")
        ffmpeg("-y", "-i", "in/%d.png", "-vf", f"crop={w}:{h}:{x}:{y}", "cut/%d.png")
        inpaint(name + "_cut", ("--mask-box", f"{120 - x},{90 - y},40,30", *words), "cut/%d.png")
        for k in range(1, FRAMES + 1):
            was, now = rgb(f"in/{k}.png"), rgb(f"{name}/{k}.png")
            expect(rgb(f"{name}/{k}.png", w, h, x, y) == rgb(f"{name}_cut/{k}.png"), f"{name}: frame {k} is not what the cut one gives")
            rest = all(was[3 * (r * WIDTH + c):][:3] == now[3 * (r * WIDTH + c):][:3] for r in range(HEIGHT) for c in range(0, WIDTH, 7)
                       if not (y <= r < y + h and x <= c < x + w))
            expect(rest and was != now, f"{name}: frame {k} differs around the region, or not at all")


def a_part_has_the_whole_films_region():
    """Masks that move: a part is what the whole is there, so its region is the whole film's."""
    make_frames()
    ffmpeg("-y", "-i", "in/%d.png", "-pix_fmt", "yuv420p", "-c:v", "ffv1", "in.mkv")
    box = ("--mask-box", "60,60,20,20@0-2;200,100,20,20@3-4", "--method", "smooth", "--region", "auto", "--codec", "ffv1", "-q")
    seen, size = [], WIDTH * HEIGHT * 3 // 2
    for name, words in (("whole.mkv", ()), ("part.mkv", ("--frames", "1:3"))):
        code, _, err = run("inpaint", "in.mkv", *box, *words, "-o", name)
        told = re.search(r"sees (.*?) of", err)
        expect(code == 0 and told, f"{name}: {code}: {err}")
        bits = subprocess.run(["ffmpeg", "-v", "error", "-i", name, "-f", "rawvideo", "-"], capture_output=True, check=True).stdout
        seen.append((told and told.group(1), bits[size:3 * size] if name == "whole.mkv" else bits))
    expect(seen[0] == seen[1] and len(seen[1][1]) == 2 * size, f"a part: {seen[0][0]}, {seen[1][0]}, {len(seen[1][1])} bytes")


def a_film_keeps_its_samples():
    """YUV into FFV1: outside of what is removed the very samples, and the region at half the size is pasted as large as it is."""
    make_frames()
    ffmpeg("-y", "-i", "in/%d.png", "-pix_fmt", "yuv420p", "-c:v", "ffv1", "in.mkv")
    for words in ((), ("--resize-ratio", "0.5"), ("--width", "160", "--height", "160", "--compose", "official")):
        code, _, err = run("inpaint", "in.mkv", "--mask-box", "120,90,40,30", "--mask-dilation", "0", "--region", "auto", *words, "-o", "out.mkv", "--codec", "ffv1",
                           "-q", "-y")
        expect(code == 0, f"{words}: {code}: {err}")
        luma = [subprocess.run(["ffmpeg", "-v", "error", "-i", n, "-f", "rawvideo", "-pix_fmt", "gray", "-vf", "extractplanes=y", "-"], capture_output=True,
                               check=True).stdout for n in ("in.mkv", "out.mkv")]
        off = [i % (WIDTH * HEIGHT) for i in range(len(luma[0])) if luma[0][i] != luma[1][i]]
        inside = sum(120 <= i % WIDTH < 160 and 90 <= i // WIDTH < 120 for i in off)
        expect(len(luma[0]) == len(luma[1]) and off, f"{words}: nothing was removed")
        expect("official" in words or inside == len(off), f"{words}: {len(off) - inside} samples differ where nothing is removed")


def frames_are_saved_beside_the_film():
    """--save-frames: the pictures that -o 'out/%d.png' writes, by their numbers in the film; a folder that is there is no run's."""
    make_frames()
    ffmpeg("-y", "-i", "in/%d.png", "-pix_fmt", "yuv444p", "-c:v", "ffv1", "in.mkv")
    words = ("in.mkv", "--mask-box", "120,90,40,30", "--method", "smooth", "--frames", "2:5", "-q")
    code, _, err = run("inpaint", *words, "--save_frames", "-o", "clean.mkv", "--codec", "ffv1", "--compose", "official")
    expect(code == 0 and sorted(os.listdir("clean_frames")) == [f"{k:05}.png" for k in range(2, 5)], f"frames: {code}: {err}")
    film = subprocess.run(["ffmpeg", "-v", "error", "-i", "clean.mkv", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
    saved = b"".join(rgb(f"clean_frames/{k:05}.png") for k in range(2, 5))
    off = max(abs(a - b) for a, b in zip(film, saved))
    print(f"  {off}")
    expect(len(film) == len(saved) and off <= 3, f"saved frames are up to {off} off what the film decodes to")  # RGB of 8 bits, as YUV and back
    code, _, err = run("inpaint", *words, "--save-frames", "-o", "clean.mkv", "-y")
    expect(code == 0, f"its own folder is there: {code}: {err}")
    os.makedirs("other_frames", exist_ok=True)
    with open("other_frames/00002.png", "w", encoding="utf-8") as f:
        f.write("somebody's")
    p = subprocess.Popen([TEGULA, "inpaint", "in.mkv", "--mask-box", "120,90,40,30", *DRAWN, "-o", "other.mkv", "--codec", "ffv1"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and not os.path.exists("other.mkv.journal"):
        pass
    p.kill()
    p.wait()
    code, _, err = run("inpaint", "in.mkv", "--mask-box", "120,90,40,30", *DRAWN, "-o", "other.mkv", "--codec", "ffv1", "--save-frames")
    with open("other_frames/00002.png", encoding="utf-8") as f:
        expect(code == 73 and p.returncode == -9 and f.read() == "somebody's", f"a folder of somebody else's, {p.returncode}: {code}: {err}")
    code, _, err = run("inpaint", *words, "--save-frames", "-o", "x/%d.png")
    expect(code == 64 and "beside a film" in err, f"pictures: {code}: {err}")


def what_does_not_go_is_told():
    make_frames()
    box = ("--mask-box", "120,90,40,30", "--method", "smooth")
    for region, words in (("100,80,60,50", "116,86,48,38"), ("0,0,400,100", "320 x 240"), ("1,2,3", "auto, or"), ("9,9,90,90@3", "auto, or"),
                          ("here", "auto, or")):
        _, err = inpaint("none", (*box, "--region", region), code=64)
        expect(words in err, f"--region {region}: {err}")
    _, err = inpaint("own", (*box, "--region", "100,70,90,80"))
    expect("90 x 80 pixels at column 100, row 70" in err, f"a region of one's own: {err}")
    ffmpeg("-y", "-i", "in/%d.png", "-pix_fmt", "yuv444p", "in.y4m")
    with open("in.y4m", "rb") as f:
        p = subprocess.run([TEGULA, "inpaint", "-", "--mask-box", "120,90,40,30", *DRAWN, "--region", "auto", "-o", "x.y4m"], stdin=f, capture_output=True,
                           text=True, check=False, timeout=60)
    expect(p.returncode == 64 and "--region" in p.stderr and "pipe" in p.stderr, f"through a pipe: {p.returncode}: {p.stderr}")


def all_rows(_):
    a_region_is_the_film_cut_to_it()
    a_part_has_the_whole_films_region()
    a_film_keeps_its_samples()
    frames_are_saved_beside_the_film()
    what_does_not_go_is_told()


if __name__ == "__main__":
    sys.exit(in_folder(all_rows, "ffmpeg", samples=False))
