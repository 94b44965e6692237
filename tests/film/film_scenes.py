#!/usr/bin/env python3
"""A film treated as scenes (--split-scenes): each is what it is alone, cuts are found where they are, lists are read in every form.

    film_scenes.py TEGULA SOURCE VIDEOS WEIGHTS [more]

WEIGHTS: the drawn weights of ProPainter. `more`: cuts of the sample films, kills, memory. 77: no samples, no ffmpeg."""
import json
import os
import re
import sys

from film_help import expect, ffmpeg, in_folder, run, sample
from film_write import killed_at, operations_of, pixels, start_over

WEIGHTS = os.path.abspath(sys.argv[4])
BOX = ("--mask-box", "40,30,30,30", "--mask-dilation", "0")
NETWORKS = ("--weights", WEIGHTS, "--raft-iter", "1", "--subvideo-length", "6", "--ref-stride", "3", "--neighbor-length", "4")
SCENES = ("testsrc2=size=160x128:rate=25", "mandelbrot=size=160x128:rate=25", "testsrc=size=160x128:rate=25", "smptebars=size=160x128:rate=25")


def scenes(folder, *frames):
    """Pictures of scenes of so many frames, numbered on."""
    os.makedirs(folder, exist_ok=True)
    at = 0
    for scene, n in zip(SCENES, frames):
        ffmpeg("-f", "lavfi", "-i", scene, "-frames:v", str(n), "-pix_fmt", "rgb24", "-start_number", str(at), f"{folder}/%03d.png")
        at += n
    return at


def inpaint(film, out, *words, code=0):
    got, text, err = run("inpaint", film, *words, "-o", out, "-y")
    expect(got == code, f"{film} to {out} {words}: {got}: {err}")
    return text, err


def drawn(folder, out, *words):
    """Bytes of the pictures that come of those in a folder."""
    os.makedirs(out, exist_ok=True)
    for name in os.listdir(out):
        os.unlink(f"{out}/{name}")
    inpaint(folder, f"{out}/%03d.png", *BOX, *words)
    return [pixels(f"{out}/{n}", "rgb24") for n in sorted(os.listdir(out)) if n.endswith(".png")]


def write(path, *lines):
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))
    return path


# ---- Each by itself ----------------------------------------------------------------------------------------------------------


def each_is_what_it_is_alone():
    """Pictures of two scenes joined, by each method."""
    scenes("both", 9, 7)
    for i, (first, n) in enumerate(((0, 9), (9, 7))):
        os.makedirs(f"one{i}", exist_ok=True)
        for k in range(n):
            os.symlink(os.path.abspath(f"both/{first + k:03d}.png"), f"one{i}/{k:03d}.png")
    cuts = write("two.txt", "9")
    for words in (("--method", "propagate"), NETWORKS, ("--method", "smooth")):
        alone = drawn("one0", "out0", *words) + drawn("one1", "out1", *words)
        split, whole = drawn("both", "split", *words, "--split-scenes", cuts), drawn("both", "whole", *words)
        expect(len(split) == 16 and split == alone, f"{words}: {sum(a != b for a, b in zip(split, alone))} of {len(split)} frames are others")
        if words is NETWORKS:
            expect(split != whole, f"{words}: the list changes nothing")


def a_part_is_what_the_whole_has():
    ffmpeg("-framerate", "25", "-i", "both/%03d.png", "-c:v", "ffv1", "-pix_fmt", "bgr0", "both.mkv")
    words = (*BOX, "--split-scenes", "two.txt", "--codec", "ffv1")
    inpaint("both.mkv", "all.mkv", *words)
    inpaint("both.mkv", "part.mkv", *words, "--frames", "7:12")
    all_, part = pixels("all.mkv", "rgb24"), pixels("part.mkv", "rgb24")
    one = 160 * 128 * 3
    expect(len(part) == 5 * one and part == all_[7 * one:12 * one], f"a part: {len(part) / one} frames")


def behind_a_cut():
    """Twelve frames, of one picture and then of a brighter one, and a box that hides something of the first six."""
    ffmpeg("-f", "lavfi", "-i", "smptebars=size=96x64:rate=25", "-vf", "lutrgb=r='val+40':g='val+30':b='val+20':enable='gte(n,6)'", "-frames:v", "12", "-c:v",
           "ffv1", "-pix_fmt", "bgr0", "same.mkv")
    return ("same.mkv", "out.mkv", "--mask-box", "30,20,24,16@0-5", "--mask-dilation", "0", "--codec", "ffv1")


def nothing_comes_from_behind_a_cut():
    """What no frame of its scene shows is filled from around, as by the method that looks at no other frame."""
    film, out, *words = behind_a_cut()
    made = []
    for more in ((), ("--split-scenes", write("six.txt", "6")), ("--method", "smooth")):
        inpaint(film, out, *words, *more)
        made.append(pixels(out, "rgb24"))
    expect(made[0] != made[1] == made[2] and len(made[1]) == 12 * 96 * 64 * 3, f"{[len(m) for m in made]} bytes, {made[0] == made[1]}, {made[1] == made[2]}")


# ---- Lists -------------------------------------------------------------------------------------------------------------------


def lists_have_many_forms():
    film, out, *words = behind_a_cut()
    forms = {"numbers": ("# first frames", "0", "6"), "timecodes": ("00:00:00.000", "00:00:00.240"), "seconds": ("0.24",), "minutes": ("0:00.252",), "signed": (" +0.24",),
             "table": ("Timecode List:,00:00:00.240", "Scene Number,Start Frame,Start Timecode,Start Time (seconds),End Frame,End Timecode",
                       "1,1,00:00:00.000,0.000,6,00:00:00.240", "2,7,00:00:00.240,0.240,12,00:00:00.480"),
             "crlf": ("0\r", "6\r")}
    inpaint(film, out, *words, "--split-scenes", write("seven.txt", "7"))
    want, other = None, pixels(out, "rgb24")
    for name, lines in forms.items():
        inpaint(film, out, *words, "--split-scenes", write(name + ".csv", *lines))
        got = pixels(out, "rgb24")
        want = want or got
        expect(got == want != other and len(got) == 12 * 96 * 64 * 3, f"{name}: other frames")


def lists_that_say_nothing():
    ffmpeg("-i", "same.mkv", "still%02d.png")
    for lines, told in ((("9", "9"), "order"), (("11", "9"), "order"), (("12",), "begins there"), (("nine",), "no number"), (("-1",), "no number"),
                        (("0:xx",), "no time"), (("+-0.5",), "no time"), (("Scene Number,Start Frame", "1,0"), "from 1 on"), (("Scene Number,Start Frame", "1"), "without that column")):
        code, _, err = run("inpaint", "same.mkv", *BOX, "--split-scenes", write("bad.txt", *lines), "-o", "none.mkv")
        expect(code == 65 and told in err and "bad.txt, line" in err, f"{lines}: {code}: {err}")
    code, _, err = run("inpaint", "still%02d.png", *BOX, "--split-scenes", write("bad.txt", "0:01.5"), "-o", "none%d.png")
    expect(code == 65 and "numbered" in err, f"times of pictures: {code}: {err}")
    code, _, err = run("inpaint", "same.mkv", *BOX, "--split-scenes", "nowhere.txt", "-o", "none.mkv")
    expect(code == 66 and "nowhere.txt" in err, f"no list: {code}: {err}")
    os.mkfifo("endless")
    for name in ("endless", "/dev/zero"):
        code, _, err = run("inpaint", "same.mkv", *BOX, "--split-scenes", name, "-o", "none.mkv")
        expect(code == 65 and "is a file" in err, f"{name}: {code}: {err}")
    code, _, err = run("inpaint", "-", *BOX, "--split-scenes", "auto", *NETWORKS, "-o", "-")
    expect(code != 0 and not os.path.exists("-.cuts.csv"), f"a pipe: {code}: {err}")


def frames_alone_are_joined():
    """ProPainter draws from other frames."""
    scenes("singles", 1, 5, 1, 1)
    joined = drawn("singles", "out_joined", *NETWORKS, "--split-scenes", write("singles.txt", "1", "6", "7"))
    _, err = inpaint("singles", "out_joined/%03d.png", *BOX, *NETWORKS, "--split-scenes", "singles.txt", "--plan")
    want = drawn("singles", "out_two", *NETWORKS, "--split-scenes", write("joined.txt", "6"))
    expect(joined == want and "2 scenes of one frame joined" in err, f"joined: {err}")
    inpaint("singles", "out_joined/%03d.png", *BOX, "--split-scenes", "singles.txt")


# ---- Cuts that are found -------------------------------------------------------------------------------------------------------


def starts(path):
    with open(path, encoding="utf-8") as f:
        return [int(line.split(",")[1]) for line in f.read().splitlines()[1:]]


def found(film, *words):
    """Frames before which it is cut, from 0 on."""
    inpaint(film, "found.mkv", "--mask-box", "0,0,2,2", "--mask-dilation", "0", "--method", "smooth", "--frames", "0:2", "--codec", "ffv1", "--split-scenes",
            "auto", "--interlaced", "as-is", *words)
    return [k - 1 for k in starts("found.mkv.cuts.csv")[1:]]


def pan(path, of, dx, dy, frames):
    """Over a larger picture, so many pixels a frame."""
    ffmpeg("-f", "lavfi", "-i", f"{of}:size=1280x720:rate=25", "-frames:v", "1", "large.png")
    ffmpeg("-loop", "1", "-i", "large.png", "-vf", f"crop=320:180:{dx}*n:{dy}*n", "-frames:v", str(frames), "-c:v", "ffv1", "-pix_fmt", "yuv420p", path)


def cuts_are_found():
    """Hard cuts between drawn scenes; none in pans of any speed, in zooms, flashes and fades."""
    scenes("four", 20, 15, 12, 9)
    ffmpeg("-framerate", "25", "-i", "four/%03d.png", "-c:v", "ffv1", "-pix_fmt", "bgr0", "four.mkv")
    expect(found("four.mkv") == [20, 35, 47], f"four scenes: {found('four.mkv')}")
    for dx, dy in ((2, 0), (8, 0), (16, 8), (30, 0)):
        for of in ("testsrc2=rate=25", "mandelbrot=start_scale=0.4"):
            pan("pan.mkv", of, dx, dy, 30)
            expect(found("pan.mkv") == [], f"a pan of {dx, dy} over {of}: {found('pan.mkv')}")
    ffmpeg("-f", "lavfi", "-i", "mandelbrot=size=320x180:rate=25", "-vf", "fade=in:0:12,fade=out:30:12", "-frames:v", "44", "-c:v", "ffv1", "-pix_fmt", "yuv420p",
           "fades.mkv")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-vf", "lutyuv=y=255:enable='eq(n,12)'", "-frames:v", "25", "-c:v", "ffv1", "-pix_fmt",
           "yuv420p", "flash.mkv")
    for name in ("fades.mkv", "flash.mkv"):
        expect(found(name) == [], f"{name}: {found(name)}")
    pan("a.mkv", "testsrc2=rate=25", 12, 4, 25)
    pan("b.mkv", "mandelbrot=start_scale=0.4", 12, 4, 25)
    ffmpeg("-i", "a.mkv", "-i", "b.mkv", "-filter_complex", "concat=n=2", "-c:v", "ffv1", "pans.mkv")
    expect(found("pans.mkv") == [25], f"a cut between pans: {found('pans.mkv')}")


def the_list_comes_back():
    """What was found is a list that is read, the same frames come of it, and one that was changed stays."""
    words = (*BOX, "--codec", "ffv1")
    inpaint("four.mkv", "auto.mkv", *words, "--split-scenes", "auto")
    by_auto = pixels("auto.mkv", "rgb24")
    inpaint("four.mkv", "file.mkv", *words, "--split-scenes", "auto.mkv.cuts.csv")
    expect(pixels("file.mkv", "rgb24") == by_auto, "the list that was written: other frames")
    for name in ("auto.mkv", "plan.mkv.cuts.csv"):
        if os.path.exists(name):
            os.unlink(name)
    write("auto.mkv.cuts.csv", "Scene Number,Start Frame", "1,1", "2,21")
    code, _, err = run("inpaint", "four.mkv", *words, "--split-scenes", "auto", "-o", "auto.mkv")
    expect(code == 73 and "--split-scenes auto.mkv.cuts.csv" in err and starts("auto.mkv.cuts.csv") == [1, 21], f"a list that was changed: {code}: {err}")
    text, _ = inpaint("four.mkv", "plan.mkv", *words, "--split-scenes", "auto", "--plan")
    expect("4 scenes" in text and not os.path.exists("plan.mkv.cuts.csv"), f"a plan: {text}")


def cuts_of_sample_films():
    """Seen by eye; films without cuts have none."""
    cuts = {"bikes.mp4": [30, 76, 137, 187, 242], "nasa_two_video_streams.mp4": [202], "lavafalls_indeo4.avi": [68],
            "subtitle_test2.mp4": [20, 42, 90, 134, 151, 166, 178, 191, 229]}
    none = ("carphone_pristine.mp4", "cockatoo_yuv444_mp3.mp4", "flipping_a_pancake.mkv", "fragmented.mp4", "running_car.mp4", "test-sample0.mp4",
            "av1_video.mkv", "h264_9bit.mkv", "mpeg4_odd_190x240.mp4", "foreman_vp9.webm", "realshort.mp4", "newtonscradle_vfr.gif", "mpeg4asp_mp3.avi")
    for name, want in {**cuts, **{n: [] for n in none}}.items():
        got = found(sample(name))
        expect(got == want, f"{name}: {got}, not {want}")


# ---- Memory, stops -------------------------------------------------------------------------------------------------------------


def the_longest_scene_is_planned():
    """No more is taken than of the longest alone, and as promised."""
    ffmpeg("-f", "lavfi", "-i", SCENES[0], "-frames:v", "60", "-pix_fmt", "yuv420p", "long.y4m")
    peaks = {}
    for name, cuts in (("whole", ()), ("one", ("40",)), ("many", [str(k) for k in range(10, 60, 10)])):
        text, _ = inpaint("long.y4m", "long_out.y4m", *BOX, "--reach", "30", "--json", *(("--split-scenes", write("long.txt", *cuts)) if cuts else ()))
        done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
        expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"] <= 1.1 * done["measured_peak_bytes"], f"{name}: {done}")
        peaks[name] = done["predicted_peak_bytes"]
    expect(peaks["many"] < peaks["one"] < peaks["whole"], f"peaks: {peaks}")
    text, _ = inpaint("both", "less/%03d.png", *BOX, *NETWORKS, "--split-scenes", "two.txt", "--json", "--ram", "1GiB")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"][0]
    expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"], f"networks: {done}")


def the_least_memory_is_enough_for_each():
    """Scenes of other lengths have other schedules: in the least that is promised each is what it is alone, or in all memory."""
    scenes("uneven", 13, 5, 16)
    os.makedirs("keep", exist_ok=True)
    words = (*NETWORKS, "--split-scenes", write("uneven.txt", "13", "18"))
    roomy = drawn("uneven", "roomy", *words)
    _, err = inpaint("uneven", "tight/%03d.png", *BOX, *words, "--ram", "8MiB", "--scratch", "keep", code=71)
    least = re.search(r"--ram (\d+MiB)", err)
    expect(least, f"8 MiB: {err}")
    tight = drawn("uneven", "tight", *words, "--ram", least.group(1), "--scratch", "keep")
    expect(len(roomy) == 34 and tight == roomy and not os.listdir("keep"), f"{least.group(1)}: {sum(a != b for a, b in zip(tight, roomy))} frames are others")


def stopped_runs_go_on():
    args = ("inpaint", "four.mkv", *BOX, "--reach", "5", "--codec", "ffv1", "--split-scenes", "auto")
    code, _, err = run(*args, "-o", "once.mkv", "-y")
    expect(code == 0, f"without a stop: {code}: {err}")
    last = operations_of(args, "again.mkv")
    for at in range(3, last, max(1, last // 8)):
        start_over("again.mkv")
        killed_at(args, "again.mkv", at)
        code, _, err = run(*args, "-o", "again.mkv")
        expect(code in (0, 73) and pixels("again.mkv", "rgb24") == pixels("once.mkv", "rgb24"), f"after a stop at {at} of {last}: {code}: {err}")
    start_over("again.mkv")
    killed_at(args, "again.mkv", last - 2)
    code, _, err = run(*args[:-1], write("other.txt", "7"), "-o", "again.mkv")
    expect(code != 0, f"gone on with by another list: {code}: {err}")


def tests(_):
    if "more" in sys.argv[5:]:
        each_is_what_it_is_alone()
        a_part_is_what_the_whole_has()
        frames_alone_are_joined()
        cuts_are_found()
        the_list_comes_back()
        cuts_of_sample_films()
        os.makedirs("less", exist_ok=True)
        the_longest_scene_is_planned()
        the_least_memory_is_enough_for_each()
        stopped_runs_go_on()
        return
    nothing_comes_from_behind_a_cut()
    lists_have_many_forms()
    lists_that_say_nothing()


if __name__ == "__main__":
    sys.exit(in_folder(tests, "ffmpeg"))
