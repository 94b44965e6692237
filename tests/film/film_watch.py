#!/usr/bin/env python3
"""Looking at films: progress and status in frames, a preview of a moment, all that info says.

    film_watch.py TEGULA SOURCE VIDEOS

77 without the sample films, ffmpeg and ffprobe."""
import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading

from film_help import SANITIZED, SOURCE, TEGULA, expect, ffmpeg, in_folder, network, run, sample

SLOW = ["-m", os.path.join(SOURCE, "models", "tegula_denoise.onnx"), "--normalize", "none", "-y"]
MANY = 6 if SANITIZED else 120  # frames for the network that takes its time; the thread sanitizer takes seconds for one
SAME = ["-m", "same.onnx", "--normalize", "none"]


def events_of(stdout, kind):
    return [e for e in map(json.loads, stdout.splitlines()) if e["event"] == kind]


def drawn(words, stdin):
    """What a command draws on a terminal."""
    parent, child = pty.openpty()
    with open(stdin, "rb") as given:
        p = subprocess.Popen([TEGULA, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=child,
                             env={**os.environ, "TERM": "xterm", "COLUMNS": "200"})
        os.close(child)
        feed = threading.Thread(target=lambda: (p.stdin.write(given.read()), p.stdin.close()))
        feed.start()
        text = b""
        while True:
            try:
                chunk = os.read(parent, 65536)
            except OSError:
                break
            text += chunk
        feed.join()
    os.close(parent)
    expect(p.wait() == 0, f"{words}: exit {p.returncode}: {text[-300:]}")
    return text.decode("utf-8", "replace").replace("\r", "\n").split("\n")


def progress_says_frames():
    film = "some.mp4"
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", str(MANY), "-c", "copy", film)
    for out in ("slow.mkv", "slow.tif"):
        code, text, err = run("run", *SLOW, film, "-o", out, "--json", "--threads", "1", *(["--codec", "ffv1", "--on", "each"] if out.endswith("mkv") else []))
        seen = [e for e in events_of(text, "progress") if e["phase"] == "run"]
        expect(code == 0 and seen and all(e["frames_total"] == MANY for e in seen), f"{out}: {code}: {err}: {seen}")
        expect(all(0 <= e["frames_done"] <= 120 for e in seen) and any(e["frames_done"] > 0 for e in seen), f"{out}: frames done: {seen}")
        expect(all(abs(e["frames_done"] / MANY - e["fraction"]) <= 1 / MANY for e in seen), f"{out}: the share is that of frames")
    ffmpeg("-i", film, "-f", "yuv4mpegpipe", "in.y4m")
    lines = [x for x in drawn(["run", *SLOW, "-", "-o", "-", "--on", "each", "--threads", "1"], "in.y4m") if x.startswith("run")]
    expect(any(" frames" in x and " fps" in x for x in lines), f"a pipe: {lines}")
    expect(not any("%" in x or "tiles" in x for x in lines), f"a pipe: nobody knows how many frames: {lines}")


def joining_is_a_phase():
    """Of the log, of its picture, and of progress."""
    code, text, err = run("run", *SAME, sample("carphone_pristine.mp4"), "-o", "join.mkv", "-y", "--json", "--log", "join.csv", "--codec", "ffv1")
    joins = [e for e in events_of(text, "progress") if e["phase"] == "join"]
    expect(code == 0 and joins and all(0 <= e["fraction"] <= 1 for e in joins), f"progress: {code}: {err}: {joins}")
    with open("join.csv", encoding="ascii") as f:
        phases = [line.split(",")[1] for line in f][1:]
    expect("join" in phases and phases.index("run") < phases.index("join") < phases.index("finish"), f"phases of the log: {sorted(set(phases))}")
    code, _, err = run("plot", "join.csv", "-o", "join.svg")
    with open("join.svg", encoding="utf-8") as f:
        expect(code == 0 and "join: " in f.read(), f"plot: {code}: {err}")


def work_of(log):
    """Seconds of decoding, computing, encoding, and of the log."""
    with open(log, encoding="ascii") as f:
        rows = list(csv.DictReader(f))
    return [sum(int(r[k]) for r in rows) / 1000 for k in ("decode_ms", "compute_ms", "encode_ms")] + [float(rows[-1]["seconds"])]


def the_picture_shows_the_work():
    """What the log has of it is what the receipt has; a row for each, of films alone."""
    film = sample("carphone_pristine.mp4")
    ffmpeg("-i", film, "-frames:v", str(MANY), "-c", "copy", "some.mp4")
    code, text, err = run("run", *SLOW, "some.mp4", "-o", "work.mkv", "--json", "--threads", "1", "--on", "each", "--codec", "ffv1", "--log", "work.csv", "--plot=work.svg")
    decode, compute, encode, seconds = work_of("work.csv")
    told = events_of(text, "done")[-1]["compute_seconds"] if code == 0 else 0
    expect(code == 0 and abs(compute - told) <= 0.01 + 0.02 * told, f"computing: {code}: {err}: {compute} s of the log, {told} s of the run")
    expect(0 < decode <= seconds and 0 < encode <= seconds and compute <= seconds, f"{decode} + {compute} + {encode} s in {seconds} s")
    with open("work.svg", encoding="utf-8") as f:
        picture = f.read()
    expect(all(f">{x}<" in picture for x in ("decoding", "computing", "encoding")), "a row for each")
    for words, works in ((["some.mp4", "-o", "work.tif"], (True, False)), (["work.tif", "--planes", "0-1", "-o", "again.tif"], (False, False)),
                         (["work.tif", "--planes", "0-1", "-o", "work%d.png"], (False, True))):
        code, text, err = run("run", *SLOW, *words, "--log", "work.csv", "--plot=work.svg")
        decode, compute, encode, seconds = work_of("work.csv")
        with open("work.svg", encoding="utf-8") as f:
            expect((">decoding<" in f.read()) == any(works), f"{words}: rows of the picture")
        expect(code == 0 and (decode > 0, encode > 0) == works and compute > 0, f"{words}: {code}: {err}: {decode}, {compute}, {encode} s")
    ffmpeg("-i", "some.mp4", "-f", "yuv4mpegpipe", "work.y4m")
    with open("work.y4m", "rb") as f:
        r = subprocess.run([TEGULA, "run", *SAME, "-", "-o", "piped.mkv", "-y", "--log", "work.csv"], stdin=f, capture_output=True, text=True, check=False)
    decode, compute, encode, seconds = work_of("work.csv")
    with open("work.csv", encoding="ascii") as f:
        phases = {line.split(",")[1] for line in f}
    expect(r.returncode == 0 and decode > 0 and encode > 0 and phases >= {"run", "join", "finish"}, f"a pipe: {r.stderr}: {decode}, {encode} s, {phases}")


def status_says_frames():
    code, _, err = run("run", *SAME, sample("carphone_pristine.mp4"), "-o", "killed.mkv", "--codec", "ffv1", "-q", "--on", "each",
                       TEGULA_FAIL_IO="120:kill", TEGULA_SYNC_TILES="1")
    expect(code == -9, f"it is killed: {code}: {err}")
    code, text, err = run("status", "killed.mkv", "--json")
    s = json.loads(text)
    expect(code == 130 and 0 < s["frames"] < 120 and s["frames_in_all"] == 120, f"{code}: {err}: {s}")
    text = run("status", "killed.mkv")[1]
    expect(f"frames   {s['frames']} of 120" in text and "tiles" not in text, f"as text: {text}")


def both_count_frames_alike():
    """Frames done are those that the encoder has, of the line and of status; safe are those of whole segments on the disk."""
    ffmpeg("-stream_loop", "1", "-i", sample("carphone_pristine.mp4"), "-frames:v", str(2 * MANY), "-c", "copy", "twice.mp4")
    words = ["run", *SLOW, "twice.mp4", "-o", "halfway.mkv", "--codec", "h264", "--on", "each", "--threads", "1", "--json"]
    with subprocess.Popen([TEGULA, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, "TEGULA_SYNC_TILES": "1"}) as p:
        told = 0
        for line in p.stdout:
            e = json.loads(line)
            told = e["frames_done"] if e["event"] == "progress" and e["phase"] == "run" else told
            if told:
                p.send_signal(signal.SIGSTOP)
                break
        code, text, err = run("status", "halfway.mkv", "--json")
        s = json.loads(text)
        expect(code == 0 and told and told <= s["frames"] <= 2 * MANY and s["frames_safe"] <= s["frames"], f"{told} frames done, and status: {code}: {err}: {s}")
        expect(abs(s["fraction"] - s["frames"] / (2 * MANY)) < 1e-9 and s["frames_per_second"] > 0, f"its share: {s}")
        p.kill()
    code, text, err = run("status", "halfway.mkv", "--json")
    s = json.loads(text)
    expect(code == 130 and s["frames"] == s["frames_safe"], f"what a stop leaves: {code}: {err}: {s}")
    code, text, err = run(*[w for w in words if w != "-y"], "--quiet")
    last = events_of(text, "done")[-1]
    expect(code == 0 and last["frames_resumed"] == s["frames_safe"] and last["frames"] == 2 * MANY - s["frames_safe"], f"{s}, then {code}: {err}: {last}")


def the_last_line_counts_frames():
    words = ["run", *SAME, sample("carphone_pristine.mp4"), "-o", "lines.mkv", "--codec", "ffv1", "--on", "each"]
    code, _, err = run(*words, "-q", TEGULA_FAIL_IO="120:kill", TEGULA_SYNC_TILES="1")
    expect(code == -9, f"it is killed: {code}: {err}")
    code, text, err = run(*words)
    found = re.search(r"done in .*, (\d+) frames, [0-9.]+ fps, .*, (\d+) of 120 frames were done before", text)
    expect(code == 0 and found and int(found[1]) + int(found[2]) == 120 and "tiles" not in text, f"the last line: {code}: {err}: {text}")
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", "7", "-f", "yuv4mpegpipe", "seven.y4m")
    with open("seven.y4m", "rb") as f:
        r = subprocess.run([TEGULA, "run", *SAME, "-", "-o", "seven.mkv", "-y"], stdin=f, capture_output=True, text=True, check=False)
    expect(r.returncode == 0 and ", 7 frames, " in r.stdout, f"of a pipe: {r.returncode}: {r.stderr}: {r.stdout}")


def the_estimate_counts_films():
    """Of a machine that measured nothing and learned nothing: more frames, more pixels and slower codecs take longer."""
    film = sample("carphone_pristine.mp4")
    ffmpeg("-i", film, "-frames:v", "60", "-vf", "scale=704:576", "-c:v", "ffv1", "large.mkv")
    ffmpeg("-i", film, "-frames:v", "60", "-c:v", "ffv1", "small.mkv")

    def said(*words):
        code, text, err = run("plan", *SAME, *words, "-o", "said.mkv", "-y", "--json", "--threads", "1", TEGULA_LEARN="no", TEGULA_CACHE=os.getcwd())
        expect(code == 0, f"{words}: {code}: {err}")
        return events_of(text, "plan")[0]["seconds_estimate"] if code == 0 else 0

    codecs = [said("small.mkv", "--codec", c) for c in ("ffv1", "h264", "hevc", "av1")]
    expect(codecs == sorted(set(codecs)), f"codecs: {codecs}")
    base = said("small.mkv", "--codec", "av1", "--frames", "0:1")
    few, all_of = said("small.mkv", "--codec", "av1", "--frames", "0:20") - base, said("small.mkv", "--codec", "av1") - base
    expect(few > 0 and abs(all_of / few - 59 / 19) < 0.1, f"frames: {base}, {few}, {all_of} seconds")
    expect(said("large.mkv", "--codec", "h264") > 4 * (said("small.mkv", "--codec", "h264") - base), "pixels")


def rows_of_png(path):
    """The bytes of the picture, as ffmpeg decodes it."""
    r = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    return r.stdout


def the_rate_is_the_mean():
    """A Matroska of frames at any times names the rate of its clock."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=60:duration=3,select='lt(random(0),0.4)'", "-fps_mode", "vfr", "-c:v", "libx264", "-bf", "2", "vfr.mkv")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=30000/1001:duration=3", "-c:v", "libx264", "cfr.mkv")
    for film, lo, hi in (("vfr.mkv", 20, 35), ("cfr.mkv", 29.97, 29.9701)):
        told = json.loads(run("info", film, "--json")[1])["film"]
        n, d = map(int, told["frames_per_second"].split("/"))
        expect(lo <= n / d <= hi, f"{film}: {told['frames_per_second']}")
        if film == "vfr.mkv":
            frames = len(subprocess.run(["ffprobe", "-v", "error", "-show_entries", "packet=pts", "-of", "csv=p=0", film], capture_output=True, check=True).stdout.split())
            expect(abs(frames * d / n - told["duration_seconds"]) < 0.03, f"{frames} frames at {n}/{d} take {told['duration_seconds']}")


def a_preview_shows_a_moment():
    """A bar that grows, at a rate that varies: the picture tells which frame it is of."""
    ffmpeg("-f", "lavfi", "-i", "nullsrc=size=64x48:rate=10,geq=lum='if(lt(X,2*N+4),200,20)':cb=128:cr=128,select='not(eq(mod(n,5),3))'", "-frames:v", "20",
           "-fps_mode", "vfr", "-c:v", "ffv1", "-pix_fmt", "yuv420p", "moments.mkv")
    times = [0.1 * n for n in range(25) if n % 5 != 3]

    def shown(frame):
        run("preview", *SAME, "moments.mkv", "-o", "frame.png", "-y", "--at", f"{frame},24,32")
        return rows_of_png("frame.png")
    pictures = [shown(k) for k in (0, 2, 3, 19)]
    expect(len(set(pictures)) == 4, "frames differ")
    for time, frame in (("0", 0), ("0.2", 2), ("0.39", 2), ("00:00:00.4", 3), ("0:02.4", 19), (f"{times[19] + 0.05:.2f}", 19)):
        code, _, err = run("preview", *SAME, "moments.mkv", "-o", "moment.png", "-y", "--time", time, "--at", "24,32")
        expect(code == 0 and rows_of_png("moment.png") == pictures[(0, 2, 3, 19).index(frame)], f"--time {time}: {code}: {err}")
    code, _, err = run("preview", *SAME, "moments.mkv", "-o", "moment.png", "-y", "--time", "0.4", "--start", "0.3", "--at", "24,32")
    expect(code == 0 and rows_of_png("moment.png") == pictures[2], f"of a part: {code}: {err}")
    code, _, err = run("preview", *SAME, "moments.mkv", "-o", "moment.png", "-y", "--time", "0.4")
    expect(code == 0, f"the densest places of that frame: {code}: {err}")
    for words, said in ((["--time", "1:00"], "no frame is shown then"), (["--time", "soon"], "--time soon: a time"),
                        (["--time", "1", "--at", "3,4,5"], "--at y,x"), (["--time", "0.1", "--start", "0.3"], "no frame is shown then")):
        code, _, err = run("preview", *SAME, "moments.mkv", "-o", "moment.png", "-y", *words)
        expect(code == 64 and said in err, f"{words}: {code}: {err}")
    ffmpeg("-i", "moments.mkv", "-frames:v", "1", "still.tif")
    for film, said in (("moments.mkv", False), ("luma.mkv", True)):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "yuv420p", "luma.mkv")
        code, _, err = run("preview", "-m", network(1 if said else 3), "--normalize", "none", film, "-o", "moment.png", "-y")
        expect(code == 0 and ("gives it luma" in err) == said, f"a network of one channel is shown red: {film}: {code}: {err}")
    code, _, err = run("preview", *SAME, "still.tif", "-o", "moment.png", "-y", "--time", "0")
    expect(code == 64 and "for films" in err, f"a picture: {code}: {err}")


CHAPTERS = """;FFMETADATA1
[CHAPTER]
TIMEBASE=1/1000
START=0
END=1000
title=One
[CHAPTER]
TIMEBASE=1/1000
START=1000
END=2000
title=Two
"""


def told(path):
    code, text, err = run("info", path, "--json")
    expect(code == 0, f"info {path}: {code}: {err}")
    return json.loads(text)["film"] if code == 0 else {}


def info_tells_all():
    for name, text in (("chapters.txt", CHAPTERS), ("s.srt", "1\n00:00:00,000 --> 00:00:01,000\nhello\n"), ("font.ttf", "x")):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=128x96:rate=25:duration=2,setsar=4/3", "-f", "lavfi", "-i", "sine=duration=2:sample_rate=44100", "-i",
           "s.srt", "-i", "chapters.txt", "-map", "0:v", "-map", "1:a", "-map", "2:s", "-map_chapters", "3", "-c:v", "libx265", "-x265-params",
           "log-level=none:hdr10=1:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1):max-cll=1000,400",
           "-pix_fmt", "yuv420p10le", "-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc", "-c:a", "aac", "-ac", "2", "-c:s", "srt",
           "-metadata:s:a:0", "language=deu", "-metadata:s:a:0", "title=T\u00f6ne", "-metadata:s:s:0", "language=eng", "-attach", "font.ttf",
           "-metadata:s:t:0", "mimetype=application/x-truetype-font", "-metadata", "title=The film\u009b2J", "-metadata", "date=1999-02-03", "-metadata",
           "a_key\u009b1m=x", "-disposition:a:0", "default+original", "-disposition:s:0", "forced", "all.mkv")
    f = told("all.mkv")
    expect([(t["kind"], t["codec"], t.get("language"), t["read"]) for t in f["tracks"]] ==
           [("video", "hevc", None, True), ("audio", "aac", "deu", False), ("subtitle", "subrip", "eng", False), ("attachment", "ttf", None, False)],
           f"tracks: {f['tracks']}")
    sound = f["tracks"][1]
    expect((sound["channels"], sound["samples_per_second"], sound["title"]) == (2, 44100, "T\u00f6ne"), f"sound: {sound}")
    expect([(c["start_seconds"], c["end_seconds"], c.get("title")) for c in f["chapters"]] == [(0, 1, "One"), (1, 2, "Two")], f"chapters: {f['chapters']}")
    expect([t["dispositions"] for t in f["tracks"]] == [[], ["default", "original"], ["forced"], []], f"dispositions: {f['tracks']}")
    expect((f["metadata"]["title"], f["metadata"]["DATE"]) == ("The film\u009b2J", "1999-02-03"), f"words about the film: {f['metadata']}")
    expect(f["tracks"][3]["metadata"]["filename"] == "font.ttf" and "language" not in sound["metadata"], f"words about tracks: {f['tracks']}")
    expect((f["attachments"], f["pixel_aspect"], f["interlaced"], f["varying_rate"]) == (1, "4/3", False, False), f"{f}")
    expect((f["matrix"], f["primaries"], f["transfer"], f["assumed"]) == ("bt2020nc", "bt2020", "smpte2084", []), f"tags: {f}")
    pts = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts", "-read_intervals", "%+#1", "-of", "csv=p=0",
                          "all.mkv"], capture_output=True, text=True, check=True).stdout.strip().strip(",")
    expect(f["first_pts"] == int(pts) and f["time_base"] == "1/1000", f"first pts: {f['first_pts']}, ffprobe {pts}")
    light = {"display_min_luminance": 0.0001, "display_max_luminance": 1000, "red": [0.68, 0.32], "green": [0.265, 0.69], "blue": [0.15, 0.06],
             "white": [0.3127, 0.329], "max_content_light": 1000, "max_frame_average_light": 400}
    expect(f["hdr"] == light, f"light: {f['hdr']}")
    text = run("info", "all.mkv")[1]
    expect("kind audio, codec aac, language deu, title T\u00f6ne, channels 2" in text and "max content light 1000" in text, f"as text: {text}")
    expect("title           The film?2J" in text and "end_seconds 2.0 s, title Two" in text and "dispositions default, original" in text and "\u009b" not in text,
           f"words as text: {text}")
    expect(told(sample("carphone_pristine.mp4"))["assumed"] == ["matrix of BT.601", "limited range"], "what is assumed")
    expect(told(sample("newtonscradle_vfr.gif"))["varying_rate"] and told(sample("rot90.mov"))["rotation"] == 90, "rate and rotation")
    expect([told(sample("interlaced_paff_tt.264"))[k] for k in ("interlaced", "first_field")] == [True, "top"] and told(sample("carphone_pristine.mp4"))["hdr"] == {}, "rows of two moments")
    expect([t["read"] for t in told(sample("nasa_two_video_streams.mp4"))["tracks"]] == [True] + 5 * [False], "the film of two that is read")
    expect([t["kind"] for t in told("in.y4m")["tracks"]] == ["video"], "a y4m")


def all_of_it(rows):
    del rows
    network(3)
    progress_says_frames()
    status_says_frames()
    both_count_frames_alike()
    the_last_line_counts_frames()
    the_estimate_counts_films()
    joining_is_a_phase()
    the_picture_shows_the_work()
    the_rate_is_the_mean()
    a_preview_shows_a_moment()
    info_tells_all()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", "ffprobe"))
