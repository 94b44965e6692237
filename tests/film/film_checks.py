#!/usr/bin/env python3
"""Promises on films that a look at an output shows: full disks, Ctrl-C, times to the tick, frames in any order, bits.

    film_checks.py TEGULA SOURCE VIDEOS FILM_RAW PLUGIN [TEST...]

What is made is read by ffprobe and ffmpeg. 77: no samples, or no ffprobe and ffmpeg."""
import glob
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

from film_help import SANITIZED, TEGULA, bytes_of, expect, ffmpeg, in_folder, network, run, sample
from film_write import pixels, probe, times

RAW, PLUGIN = sys.argv[4:6]
SEED = int(os.environ.get("TEGULA_SEED", "7"))
NONE = ("--normalize", "none")
FFV1 = ("--codec", "ffv1")


def same(film, out, *words, **env):
    """Exit code and messages of a run whose network hands out what it gets."""
    code, _, err = run("run", "-m", "same.onnx", film, "-o", out, "-q", *NONE, *words, **env)
    return code, err


def made(film, out, *words):
    code, err = same(film, out, "-y", *words)
    expect(code == 0, f"{film} to {out} {words}: {code}: {err}")


def numbered(path, frames, *words):
    """A film whose luma says the frame's number."""
    ffmpeg("-f", "lavfi", "-i", "nullsrc=size=64x48:rate=25,geq=lum=16+N:cb=128:cr=128,format=yuv420p", "-frames:v", str(frames), *words, path)


def numbers_of(luma):
    """Of each frame, by its first sample of luma; None: its samples are not all one."""
    return [f[0] - 16 if len(set(f)) == 1 else None for f in luma]


def planes_of(data):
    """The luma of each frame of 64 x 48 pixels of yuv420p."""
    return [data[at:at + 64 * 48] for at in range(0, len(data), 64 * 48 * 3 // 2)]


def luma_of(path):
    return planes_of(pixels(path, "yuv420p"))


def left_of(out):
    return sorted(n for n in glob.glob(out + "*") if n not in (out, out + ".tegula.json"))


def remove(out):
    for name in glob.glob(out + "*"):
        os.unlink(name)


def frames_done(out):
    """Of a run that stopped, and all: what `status` says; None: nothing was begun."""
    code, text, _ = run("status", out, "--json")
    s = json.loads(text) if code == 130 else {}
    return (s["frames"], s["frames_in_all"]) if "frames" in s else None


# ---- Full disks ----------------------------------------------------------------------------------------------------------


def goes_on(film, out, whole, what, *words):
    code, err = same(film, out, *words)
    expect(code == 0 and bytes_of(out) == whole and not left_of(out), f"{what}: the same command: {code}: {left_of(out)}: {err}")


def no_room_at(out, whole, words, at):
    """Did it stop at that operation on files, and in the join?"""
    code, err = same("full.mp4", out, *words, TEGULA_FAIL_IO=f"{at}:full", TEGULA_SYNC_TILES="1")
    there = not os.path.exists(out) or bytes_of(out) == whole
    expect(code in (0, 73, 74) and there and (code == 0 or "No space left" in err), f"{out}: no room at operation {at}: {code}: {err}")
    done = frames_done(out) if code else None
    if code:
        goes_on("full.mp4", out, whole, f"{out}: no room at operation {at}", *words)
    expect(bytes_of(out) == whole, f"{out}: no room at operation {at}: other bytes")
    remove(out)
    return code != 0, done is not None and done[0] == done[1]


def no_file_beyond(out, whole, words, size, joined):
    """By ulimit -f, in blocks of 512 bytes, which also the muxer meets."""
    args = [TEGULA, "run", "-m", "same.onnx", "full.mp4", "-o", out, "-q", *NONE, *words]
    r = subprocess.run(["sh", "-c", 'ulimit -f "$0" && exec "$@"', str(size // 512), *args], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    done = frames_done(out)
    expect(r.returncode in (73, 74) and not os.path.exists(out), f"{out}: no file beyond {size} bytes: {r.returncode}: {r.stderr}")
    expect((done is not None and done[0] == done[1]) == joined, f"{out}: no file beyond {size} bytes: {done} frames")
    goes_on("full.mp4", out, whole, f"{out}: no file beyond {size} bytes", *words)
    remove(out)


def full_disks(out, words):
    """The last operation is found by halves, so that many stops are in the join."""
    made("full.mp4", "whole_" + out, *words)
    whole, stops, joins = bytes_of("whole_" + out), 0, 0
    first, end = 5, 420
    points = [5, 33, 150, 260]  # of some 330
    while points or end - first > 1:
        at = points.pop() if points else (first + end) // 2
        stop, join = no_room_at(out, whole, words, at)
        stops, joins = stops + stop, joins + join
        first, end = (max(first, at), end) if stop else (first, min(end, at))
    for at in (first - 6, first - 4, first - 2):
        stop, join = no_room_at(out, whole, words, at)
        stops, joins = stops + stop, joins + join
    expect(stops >= 7 and joins >= 3, f"{out}: {stops} stops, {joins} of them in the join, the last at {first}")
    print(f"  full disk: {out}: {stops} stops, {joins} in the join, the last at operation {first}", flush=True)
    no_file_beyond(out, whole, words, len(whole) * 2 // 5, False)  # less than the packets take
    no_file_beyond(out, whole, words, len(whole) - 2500, True)  # enough for them, and not for the film


def a_full_disk():
    """At one operation on files after the other, and where no file may be larger."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-f", "lavfi", "-i", "sine", "-t", "2.4", "-c:v", "libx264", "-c:a", "aac", "-pix_fmt",
           "yuv420p", "full.mp4")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(full_disks, ("full_h264.mp4", "full_ffv1.mov"), ((), FFV1)))


# ---- Ctrl-C --------------------------------------------------------------------------------------------------------------


def size_of(name):
    try:
        return os.path.getsize(name)
    except FileNotFoundError:
        return 0


def interrupted(film, out, growing, until, *words):
    """The run's exit code, the seconds from Ctrl-C to its end, and how large the file `growing` was at last, where Ctrl-C comes as soon
    as it is larger than `until`."""
    with subprocess.Popen([TEGULA, "run", "-m", "same.onnx", film, "-o", out, "-q", *NONE, *words], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None and size_of(growing) <= until:
            time.sleep(0.0005)
        p.send_signal(signal.SIGINT)
        began, most = time.monotonic(), 0
        while p.poll() is None:
            most = max(most, size_of(growing))
            time.sleep(0.0005)
        return p.returncode, time.monotonic() - began, most


def ctrl_c():
    """In the midst of a large film, behind its first segment, and while the file is made of its packets."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25,noise=alls=9:allf=t", "-frames:v", "56", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt",
           "yuv420p", "large.mp4")
    for out, growing, words in (("stop.mp4", "stop.mp4.partial", ("--preset-speed", "ultrafast")), ("stop.mov", "stop.mov.made", (*FFV1, "--frames", ":24"))):
        uses_planned_disk("large.mp4", "whole_" + out, *words)
        whole, join = bytes_of("whole_" + out), growing.endswith("made")
        for _ in range(8):  # what comes too late is tried again
            remove(out)
            code, seconds, size = interrupted("large.mp4", out, growing, 0 if join else len(whole) * 15 // 16, *words)
            if code != 0 and size < len(whole):
                break
        done = frames_done(out)
        expect(code == 130 and seconds < (60 if SANITIZED else 5), f"{out}: Ctrl-C: {code} after {seconds} s")
        expect(size < len(whole), f"{out}: Ctrl-C: {growing} became {size} bytes, the film has {len(whole)}")
        expect(done and 0 < done[0] <= done[1] and (done[0] == done[1]) == join, f"{out}: Ctrl-C: {done} frames")
        goes_on("large.mp4", out, whole, f"{out}: behind Ctrl-C", *words)
        print(f"  Ctrl-C: {out}: {code} after {seconds:.3f} s, {done} frames, {size} bytes of {growing}", flush=True)
        remove(out)
        os.unlink("whole_" + out)


# ---- Disk ----------------------------------------------------------------------------------------------------------------


def guesses_by_the_film_read():
    """What a lossy film takes is guessed of the bytes of the one that is read: not as if its pixels were noise."""
    for name in ("bikes.mp4", "foreman_vp9.webm"):
        for crf in ((), ("--crf", "30")):
            uses_planned_disk(sample(name), "near.mp4", *crf)
            os.unlink("near.mp4")


def uses_planned_disk(film, out, *words):
    """The most that lies in the output's folder beside what was there, looked at again and again, is no more than the plan says,
    which is less than six times that."""
    folder = "folder"
    os.makedirs(folder)
    args = ["-m", "same.onnx", film, "-o", os.path.join(folder, out), *NONE, *words]
    code, text, err = run("plan", *args, "--json")
    expect(code == 0, f"plan of {film} to {out}: {code}: {err}")
    planned = [x["bytes"] for e in map(json.loads, text.splitlines()) if e["event"] == "plan" for x in e["lines"] if x["kind"] == "disk"]
    most, over = 0, threading.Event()

    def look():
        nonlocal most
        while not over.is_set():
            now = 0
            for entry in os.scandir(folder):
                try:
                    now += entry.stat().st_blocks * 512
                except FileNotFoundError:
                    pass
            most = max(most, now)
            time.sleep(0.001)
    looks = threading.Thread(target=look)
    looks.start()
    code, _, err = run("run", *args, "-q")
    over.set()
    looks.join()
    expect(code == 0, f"{film} to {out}: {code}: {err}")
    size = os.path.getsize(os.path.join(folder, out))
    expect(size <= most <= sum(planned) < 6 * most, f"{out}: {most} bytes on the disk at most, {sum(planned)} planned, {size} in the end")
    print(f"  disk: {out}: {most} bytes at most, {sum(planned)} planned, {size} in the end", flush=True)
    os.rename(os.path.join(folder, out), out)
    shutil.rmtree(folder)


# ---- Times ---------------------------------------------------------------------------------------------------------------


def ticks(path):
    """When each packet is shown, exactly; when the last one and the film are over; do packets stand in the order of frames?"""
    d = probe(path, "-select_streams", "V:0", "-show_entries", "packet=pts,duration,flags:stream=time_base:format=duration")
    base = Fraction(d["streams"][0]["time_base"])
    packets = [(p["pts"] * base, p["duration"] * base) for p in d["packets"] if "D" not in p["flags"]]
    shown = sorted(packets)
    return [t for t, _ in shown], sum(shown[-1]), Fraction(d["format"]["duration"]), shown == packets


def times_to_the_tick():
    """Where each frame is shown as long as it likes, the first one late, and where an edit list hides some: into FFV1 and H.264, with
    no rounding; the last frame and the film are over when they were."""
    drawn = ("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=30000/1001", "-vf", "select='not(eq(mod(n,7),3))*lt(mod(n,5),4)'", "-frames:v", "60", "-vsync",
             "passthrough", "-pix_fmt", "yuv420p", "-c:v", "libx264")
    ffmpeg("-ss", "1.04", "-i", sample("bikes.mp4"), "-t", "1", "-c", "copy", "edits.mp4")
    ffmpeg(*drawn, "-video_track_timescale", "30000", "varying.mp4")
    ffmpeg(*drawn, "-bf", "0", "-video_track_timescale", "90000", "-movie_timescale", "90000", "-output_ts_offset", "0.0333333", "late.mp4")
    for film in (sample("newtonscradle_vfr.gif"), sample("unordered_pts.mov"), "edits.mp4", "varying.mp4", "late.mp4"):
        was, last, over, in_order = ticks(film)
        for out, words in (("ticks.mov", FFV1), ("ticks.mp4", ())):
            made(film, out, *words)
            is_, its_last, ends, plain = ticks(out)
            expect(was == is_ and len(set(was)) > 2, f"{film} to {out}: shown at {is_[:4]}, was {was[:4]}; {len(is_)} frames, {len(was)}")
            if was[0] == 0:  # libavformat says of one that begins late that its last frame is shorter than it is
                expect(not (plain and in_order) or its_last == last, f"{film} to {out}: the last frame is over at {its_last}, was at {last}")
                expect(abs(over - ends) <= Fraction(1, 1000), f"{film} to {out}: over at {ends}, was at {over}")
        lengths = len({b - a for a, b in zip(was, was[1:])})
        expect(lengths > 1 or "unordered" in film, f"{film}: each frame is shown as long")
        expect((was[0] > 0) == ("late" in film), f"{film}: begins at {was[0]}")
        print(f"  times: {os.path.basename(film)}: {len(was)} frames, {lengths} lengths, from {was[0]} to {over}", flush=True)


# ---- Frames --------------------------------------------------------------------------------------------------------------


def copied(film, *words):
    """The numbers of the frames that `copy` reads."""
    code, _, err = run("copy", film, "-o", "part.npy", "-y", *words)
    expect(code == 0, f"copy {film} {words}: {code}: {err}")
    data = bytes_of("part.npy") if code == 0 else b""
    pixels = data[10 + struct.unpack_from("<H", data, 8)[0]:] if data else b""
    size = 64 * 48 * 3
    return [round(pixels[at] * 219 / 255) for at in range(0, len(pixels), size)]


def any_order():
    """A transport stream, and groups of frames that lean on the next one (open GOP): any frame is the one of its number."""
    dice = random.Random(SEED)
    for film, words in (("closed.ts", ("-bf", "2")), ("open.ts", ("-bf", "3", "-x264-params", "open-gop=1:keyint=12:min-keyint=12:scenecut=0")),
                        ("open.mp4", ("-bf", "3", "-x264-params", "open-gop=1:keyint=12:min-keyint=12:scenecut=0"))):
        numbered(film, 60, "-c:v", "libx264", "-qp", "1", "-g", "12", *words)
        expect(copied(film) == list(range(60)), f"{film}: frames in order: {copied(film)}")
        parts = [(at, min(at + dice.randrange(1, 9), 60)) for at in dice.sample(range(60), 5)] + [(11, 13), (12, 13)]
        for a, b in parts:
            if a % 2:
                got = copied(film, "--planes", f"{a}-{b - 1}")
            else:
                made(film, "part.mov", *FFV1, "--frames", f"{a}:{b}")
                got = numbers_of(luma_of("part.mov"))
            expect(got == list(range(a, b)), f"{film}: frames {a} to {b} are {got}")
        r = subprocess.run([RAW, PLUGIN, film, str(SEED), "60"], capture_output=True, check=False)
        wanted = [int(line.split()[0]) for line in r.stderr.decode().splitlines() if line.split()[0].isdigit()]
        got = numbers_of(planes_of(r.stdout))
        expect(r.returncode == 0 and len(wanted) == 60 and got == wanted and wanted != sorted(wanted), f"{film}: in random order {got}, asked for {wanted}")


def few_frames_of(codec):
    out = f"few_{codec}.{'mov' if codec == 'ffv1' else 'mp4'}"
    for n in (1, 2, 49, 50):
        made("fifty.mkv", out, "--codec", codec, "--frames", f":{n}", *(("--preset-speed", "ultrafast") if codec != "ffv1" else ()))
        got = numbers_of(luma_of(out)) if codec == "ffv1" else [round(sum(f) / len(f)) - 16 for f in luma_of(out)]
        expect(got == list(range(n)), f"{n} frames of {codec}: {got}")
        expect(times(out) == [k / 25 for k in range(n)], f"{n} frames of {codec}: shown at {times(out)}")


def few_frames():
    """One frame, and one more and less than encoders take for a segment and its next ones."""
    numbered("fifty.mkv", 50, "-c:v", "ffv1")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(few_frames_of, ("h264", "hevc", "ffv1")))


def another_size_in_the_midst():
    """Is damage, which names the frame and both sizes."""
    for end, late in (("h264", ()), ("ts", ("-output_ts_offset", "1.4"))):
        for name, size, more in (("a", "64x48", ()), ("b", "96x64", late)):
            ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v", "10", "-c:v", "libx264", "-pix_fmt", "yuv420p", *more, f"{name}.{end}")
        with open(f"sizes.{end}", "wb") as f:
            f.write(bytes_of(f"a.{end}") + bytes_of(f"b.{end}"))
        for words in (("copy", f"sizes.{end}", "-o", "s.npy"), ("run", "-m", "same.onnx", f"sizes.{end}", "-o", "s.mp4", *NONE)):
            code, _, err = run(*words)
            expect(code == 65 and re.search(r"frame 10 is 96 x 64 .* 64 x 48", err) and not os.path.exists(words[-1]), f"{words}: {code}: {err}")
            remove("s.")


# ---- Sound and tags ------------------------------------------------------------------------------------------------------


def of_sound(path, *words):
    return subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-map", "0:a", *words, "-"], capture_output=True, check=True).stdout


def heard(path):
    """Samples of sound, and when the first of them comes, counted from the first frame."""
    frames = probe(path, "-show_entries", "frame=media_type,pts_time")["frames"]
    first = {kind: min(float(f["pts_time"]) for f in frames if f["media_type"] == kind) for kind in ("audio", "video")}
    return of_sound(path, "-f", "s16le"), first["audio"] - first["video"]


def sound_is_the_same():
    """Byte by byte, and what is heard comes when it came. A Matroska does not say which samples an encoder put in front: they
    come before the first frame there."""
    for end, outs in (("mp4", ("heard.mp4", "heard.mkv")), ("mkv", ("heard.mp4", "heard.mkv"))):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "libx264", "-pix_fmt", "yuv420p",
               "-c:a", "aac", f"sound.{end}")
        packets, (samples, begin) = of_sound(f"sound.{end}", "-c", "copy", "-f", "data"), heard(f"sound.{end}")
        expect(len(packets) > 3000 and len(samples) > 80000, f"sound: {len(packets)} bytes, {len(samples)} decoded")
        for out in outs:
            made(f"sound.{end}", out)
            expect(of_sound(out, "-c", "copy", "-f", "data") == packets, f"sound of {end} into {out}: other packets")
            is_, starts = heard(out)
            front = len(is_) - len(samples)  # bytes; of 44,100 samples a second
            expect(front >= 0 and is_[front:] == samples and abs(starts + front / 2 / 44100 - begin) < 0.0011 and (front == 0 or out.endswith("mkv")),
                   f"sound of {end} into {out}: {len(is_)} bytes, were {len(samples)}; begins at {starts}, was {begin}")


def tags_are_the_same():
    """Where samples of chroma lie, and what a track is for, as far as the container that is read says it."""
    with open("s.srt", "w", encoding="ascii") as f:
        f.write("1\n00:00:00,100 --> 00:00:00,500\nline\n\n")
    for place, number, end, words in (("topleft", 2, "mkv", "srt"), ("center", 1, "mp4", "mov_text")):
        film = "tags." + end
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-i", "s.srt", "-map", "0", "-map", "1",
               "-map", "1", "-map", "2", "-map", "2", "-c:v", "libx264", "-x264-params", f"chromaloc={number}", "-pix_fmt", "yuv420p", "-c:a", "aac", "-c:s",
               words, "-disposition:a:0", "default", "-disposition:a:1", "comment", "-disposition:s:0", "forced", "-disposition:s:1", "hearing_impaired", film)
        for out, more in (("out." + end, ()), ("hevc." + end, ("--codec", "hevc", "--preset-speed", "ultrafast"))):
            made(film, out, *more)
            was, is_ = (probe(p, "-show_streams")["streams"] for p in (film, out))
            expect(was[0]["chroma_location"] == is_[0].get("chroma_location") == place, f"{out}: chroma at {is_[0].get('chroma_location')}, was {place}")
            uses = [[[k for k, v in s["disposition"].items() if v] for s in x[1:]] for x in (was, is_)]
            told = {k for track in uses[0] for k in track}
            expect(uses[0] == uses[1] and told >= {"comment", "forced", "hearing_impaired"}, f"{out}: tracks are for {uses[1]}, were for {uses[0]}")


# ---- Bits ----------------------------------------------------------------------------------------------------------------


def bits_are_the_same():
    """Whatever the threads and the memory, also where a stopped run goes on with others."""
    film = "larger.mp4"  # so large that one strip takes megabytes more than the least: --ram is told in whole ones
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", "64", "-vf", "scale=528:432", film)
    args = ("-m", "same.onnx", film, *NONE, "--frames", ":64")
    told = re.search(r"--ram (\d+)MiB", run("plan", *args, "-o", "bits.mp4", "--ram", "3MiB", "--threads", "1")[2])
    expect(told, "a refusal that names --ram")
    small, larger = (f"{int(told[1]) + k if told and not SANITIZED else 512}MiB" for k in (0, 2))
    whole = None
    for threads, ram in (("1", small), ("1", "1GiB"), ("2", "1GiB"), ("4", small)):
        code, _, err = run("run", *args, "-o", "bits.mp4", "-y", "--threads", threads, "--ram", ram)
        expect(code == 0, f"{threads} threads in {ram}: {code}: {err}")
        whole = whole or bytes_of("bits.mp4")
        expect(bytes_of("bits.mp4") == whole, f"{threads} threads in {ram}: other bytes")
        expect(" strips" in err or (threads, ram) != ("1", small) or SANITIZED, f"{threads} threads in {ram}: no strips: {err}")
    remove("bits.mp4")
    for at, first, then in ((300, ("1", small), ("4", "1GiB")), (300, ("4", "1GiB"), ("1", larger))):
        words = [("--threads", t, "--ram", r) for t, r in (first, then)]
        code, _, err = run("run", *args, "-o", "bits.mp4", *words[0], TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")
        done = frames_done("bits.mp4")
        expect(code == -9 and done and 48 <= done[0] < 64, f"killed at {at}: {code}: {done}: {err}")
        code, text, err = run("run", *args, "-o", "bits.mp4", *words[1])
        expect(code == 0 and "were done before" in text and bytes_of("bits.mp4") == whole, f"{first}, then {then}: {code}: {text}{err}")
        remove("bits.mp4")


# ---- The plugin ----------------------------------------------------------------------------------------------------------


def doctor_tells_of_films():
    def films(**env):
        rows = [f for f in json.loads(run("doctor", "--json", **env)[1])["findings"] if f["about"] == "films"]
        expect(len(rows) == 1, f"doctor: {rows}")
        return rows[0]
    said = films(TEGULA_AV_PLUGIN=PLUGIN)
    expect(said["state"] == "ok" and PLUGIN in said["says"] and re.search(r"libavformat \d+\.\d+\.\d+, libavcodec \d+\.\d+\.\d+", said["says"]), f"doctor: {said}")
    said = films(TEGULA_AV_PLUGIN="/nowhere/libtegula_av.so")
    expect(said["state"] != "ok" and "/nowhere/libtegula_av.so" in said["says"], f"doctor without the plugin: {said}")


def all_of_it(_):
    network(3)
    for test in (a_full_disk, ctrl_c, guesses_by_the_film_read, times_to_the_tick, any_order, few_frames, another_size_in_the_midst, sound_is_the_same, tags_are_the_same,
                 bits_are_the_same, doctor_tells_of_films):
        if test.__name__ in (sys.argv[6:] or [test.__name__]):
            began = time.monotonic()
            test()
            print(f"{test.__name__}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
