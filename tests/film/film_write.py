#!/usr/bin/env python3
"""Films that are written, seen by ffprobe and ffmpeg.

    film_write.py TEGULA SOURCE VIDEOS [all]

Each sample goes through a network that hands out what it gets. Times, the packets of the other tracks, rotation,
the shape of a pixel and the tags of colour are what they were; what the container cannot hold is named. Pixels:
exact of RGB; luma within one of what goes in where RGB can show it (tests/unit/test_film_pixels.c has the conversion). `all`:
every sample. 77: no samples, or no ffprobe and ffmpeg."""
import json
import os
import random
import re
import struct
import subprocess
import sys
import time
from fractions import Fraction

from film_help import SANITIZED, TEGULA, alpha_film, bytes_of, expect, ffmpeg, in_folder, network, run, sample
from seeds import model, node, port  # noqa: E402

ALL = "all" in sys.argv[4:]
TAGS = ("sample_aspect_ratio", "color_range", "color_space", "color_transfer", "color_primaries", "width", "height")


# ---- What others see -----------------------------------------------------------------------------------------------------


def probe(path, *words):
    r = subprocess.run(["ffprobe", "-v", "error", "-of", "json", *words, path], capture_output=True, text=True, check=False)
    return json.loads(r.stdout or "{}")


def times(path):
    frames = probe(path, "-select_streams", "V:0", "-show_entries", "frame=best_effort_timestamp_time")["frames"]
    return [float(f["best_effort_timestamp_time"]) if "best_effort_timestamp_time" in f else None for f in frames]


def stream(path):
    """What the first film's stream says; its rotation."""
    s = probe(path, "-select_streams", "V:0", "-show_streams")["streams"][0]
    turned = [d["rotation"] for d in s.get("side_data_list", []) if "rotation" in d]
    return {k: s[k] for k in TAGS if s.get(k) not in (None, "N/A", "unknown", "1:1")}, (turned or [0])[0]


def packets(path):
    """Of all tracks that are no film: codec, times and hashes."""
    kinds = {s["index"]: s["codec_name"] for s in probe(path, "-show_streams")["streams"]
             if s["codec_type"] != "video" and "codec_name" in s}
    got = {}
    for p in probe(path, "-show_packets", "-show_data_hash", "md5")["packets"]:
        if p["stream_index"] in kinds:
            got.setdefault(p["stream_index"], []).append((p.get("pts_time"), p["data_hash"]))
    return [(kinds[i], rows) for i, rows in sorted(got.items())]


def pixels(path, form):
    return subprocess.run(["ffmpeg", "-v", "error", "-noautorotate", "-i", path, "-map", "0:V:0", "-f", "rawvideo", "-vsync",
                           "passthrough", "-pix_fmt", form, "-"], capture_output=True, check=False).stdout


# ---- A film becomes a film -----------------------------------------------------------------------------------------------


def write(row, out, *words):
    """The run's messages; None: it failed, which is told."""
    film = sample(row["file"])
    code, said, err = run("run", "-m", network(1 if row["pix_fmt"].startswith("gray") else 3), film, "-o", out, "-y", "--normalize",
                          "none", "--json", "--interlaced", "as-is", *words)
    expect(code == 0, f"{row['file']} to {out}: {code}: {err}")
    if code:
        return None
    d = json.loads(said.strip().splitlines()[-1])
    expect(SANITIZED or d["measured_peak_bytes"] <= d["predicted_peak_bytes"],
           f"{row['file']} to {out}: {d['measured_peak_bytes']} bytes measured, {d['predicted_peak_bytes']} planned")
    return err


def times_are_kept(row, out, within):
    was, is_ = times(sample(row["file"])), times(out)
    expect(len(was) == len(is_), f"{row['file']} to {out}: {len(is_)} frames of {len(was)}")
    expect(None not in is_, f"{row['file']} to {out}: {is_.count(None)} frames without a time")
    if len(was) != len(is_) or None in is_:
        return
    if None in was:  # its packets have no times, and what stands for them is when they are decoded; it has a rate
        every = 1 / Fraction(probe(sample(row["file"]), "-select_streams", "V:0", "-show_streams")["streams"][0]["avg_frame_rate"])
        off = max(abs(k * float(every) - t) for k, t in enumerate(is_))
        expect(off <= within + 2e-6, f"{row['file']} to {out}: a frame is {off} s off its rate, {is_[:4]}")
        return
    off = max(abs(a - b) for a, b in zip(was, is_))
    expect(off <= within, f"{row['file']} to {out}: a frame is {off} s off")


def other_tracks_are_kept(row, out, err, within):
    was, is_ = packets(sample(row["file"])), packets(out)
    for codec, rows in was:
        same = [r for c, r in is_ if c == codec and [h for _, h in r] == [h for _, h in rows]]
        if not same:
            expect(re.search(rf"track \d+ \(\w+, {codec}\)", err), f"{row['file']} to {out}: {codec} is missing, and nobody says so")
            continue
        when = [float(t) if t else None for t, _ in rows]
        if row["file"].endswith(".avi") and when[1:2] == when[:1]:  # packets of a chunk have one time there; each follows the one before
            every = float(probe(sample(row["file"]), "-select_streams", "a:0", "-show_packets")["packets"][0]["duration_time"])
            when = [when[0] + k * every for k in range(len(when))]
        off = max([abs(a - float(b[0])) for a, b in zip(when, same[0]) if a is not None and b[0]] or [0])
        expect(off <= within + 1e-6, f"{row['file']} to {out}: {codec} is {off} s off")


def tags_are_kept(row, out, more=()):
    (was, turned), (is_, turns) = stream(sample(row["file"])), stream(out)
    expect(turned % 360 == turns % 360, f"{row['file']} to {out}: turned by {turned}, now {turns}")
    for k in TAGS:
        same = was.get(k) == is_.get(k) or (k == "color_range" and {was.get(k), is_.get(k)} == {None, "tv"})
        expect(k in more or same, f"{row['file']} to {out}: {k} was {was.get(k)}, is {is_.get(k)}")


def luma_is_kept(row, out):
    """All but some samples, of colours that RGB does not have."""
    form = row["pix_fmt"]
    if form not in ("yuv420p", "yuv422p", "yuv444p", "gray"):
        return
    was, is_ = pixels(sample(row["file"]), form), pixels(out, form)
    w, h = stream(sample(row["file"]))[0]["width"], stream(sample(row["file"]))[0]["height"]
    share = {"yuv420p": (w + 1) // 2 * ((h + 1) // 2), "yuv422p": (w + 1) // 2 * h, "yuv444p": w * h, "gray": 0}[form]
    size = w * h + 2 * share
    expect(len(was) == len(is_), f"{row['file']} to {out}: {len(is_)} bytes of {len(was)}")
    n = off = 0
    for at in range(0, len(was), size):
        a, b = was[at:at + w * h], is_[at:at + w * h]
        inside = [(x, y) for x, y in zip(a, b) if 24 < x < 220]
        n += len(inside)
        off += sum(abs(x - y) > 1 for x, y in inside)
        if at > size:
            break
    colours_of_rgb = row["file"] not in ("theora_npot.ogv", "fragmented.mp4", "interlaced_mbaff.264")  # have others
    expect(off <= 0.02 * max(n, 1) or not colours_of_rgb, f"{row['file']} to {out}: {off} of {n} samples of luma differ by more than 1")


def without_loss_into_mov(row):
    err = write(row, "o.mov", "--codec", "ffv1")
    if err is None:
        return
    times_are_kept(row, "o.mov", 0)
    other_tracks_are_kept(row, "o.mov", err, 0)
    tags_are_kept(row, "o.mov", ("color_range",))  # neither FFV1 nor a MOV has a place for it
    if "full range" not in err and "its range is full" not in err:
        luma_is_kept(row, "o.mov")


def into_mkv(row):
    turned = stream(sample(row["file"]))[1] != 0
    err = write(row, "o.mkv", "--codec", "ffv1")
    if err is None:
        return
    times_are_kept(row, "o.mkv", 0.00051)
    beside = any(t is not None and abs(1000 * t - round(1000 * t)) > 0.001 for t in times(sample(row["file"])))
    expect(("counts milliseconds" in err) == beside or None in times(sample(row["file"])), f"{row['file']} to mkv: times are rounded: {beside}: {err}")
    other_tracks_are_kept(row, "o.mkv", err, 0.00051)
    expect(not turned or "pixels are turned" in err, f"{row['file']} to mkv: turned without a word: {err}")
    if not turned:
        tags_are_kept(row, "o.mkv")


def encoded(row, codec, out, *words):
    err = write(row, out, "--codec", codec, *words)
    if err is None:
        return
    s = probe(out, "-select_streams", "V:0", "-show_streams")["streams"][0]
    expect(s["codec_name"] == codec, f"{out}: {s['codec_name']}, not {codec}")
    times_are_kept(row, out, 0.00051 if out.endswith(("mkv", "webm")) else 0)
    if codec in ("h264", "hevc") and row["pix_fmt"].startswith("yuv"):
        tags_are_kept(row, out)


def some_tags_are_kept():
    """A film may say but some of its colours; what nobody says stays unsaid, also where the container says them alone."""
    for k, tags in enumerate((("-color_trc", "arib-std-b67", "-colorspace", "bt2020nc"), ("-colorspace", "smpte170m"), ("-color_primaries", "bt709"), ())):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=1", "-c:v", "libx264", "-pix_fmt", "yuv420p",
                        *tags, "some.mp4"], check=True)
        was = stream("some.mp4")[0]
        for out, codec in (("o.mov", "prores"), ("o.mov", "ffv1"), ("o.mkv", "ffv1"), ("o.mp4", "h264"), ("o.mov", "h264")):
            code, _, err = run("run", "-m", network(3), "some.mp4", "-o", out, "-y", "--normalize", "none", "--codec", codec)
            is_ = stream(out)[0] if code == 0 else {}
            for tag in ("color_transfer", "color_primaries", "color_space"):
                expect(is_.get(tag) == was.get(tag), f"{tags} in {codec} in {out}: {tag} {was.get(tag)} became {is_.get(tag)}: {code}: {err}")


def where_chroma_lies_is_said():
    """Or named, and then it lies on the left, where readers take it to lie."""
    for k, place in ((0, "left"), (1, "center"), (2, "topleft"), (4, "bottomleft")):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=1", "-c:v", "libx264", "-pix_fmt", "yuv420p",
                        "-x264-params", f"chromaloc={k}", "place.mp4"], check=True)
        for out, codec in (("o.mov", "ffv1"), ("o.mov", "prores"), ("o.mkv", "ffv1"), ("o.mp4", "h264"), ("o.mp4", "hevc"), ("o.mp4", "av1"), ("o.webm", "vp9")):
            quick = () if codec in ("ffv1", "prores") else ("--preset-speed", "ultrafast")
            code, _, err = run("run", "-m", network(3), "place.mp4", "-o", out, "-y", "--normalize", "none", "--codec", codec, *quick)
            is_ = probe(out, "-select_streams", "v", "-show_streams")["streams"][0].get("chroma_location", "left") if code == 0 else None
            named = f"does not say that chroma lies at {place}" in err
            expect(code == 0 and is_ == ("left" if named else place) and not (named and place == "left"), f"{place} in {codec} in {out}: {is_}: {code}: {err}")
            code, _, _ = run("plan", "-m", network(3), "place.mp4", "-o", out, "-y", "--normalize", "none", "--codec", codec, "--strict")
            expect(code == (65 if named else 0), f"{place} in {codec} in {out}, --strict: {code}")


def rgb_is_exact():
    """Frames of RGB into FFV1: the bytes that come out."""
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=61x43:rate=25:duration=1", "-pix_fmt", "bgr0",
                    "-c:v", "ffv1", "rgb.mkv"], check=True)
    for out in ("o.mkv", "o.mov"):
        code, _, err = run("run", "-m", network(3), "rgb.mkv", "-o", out, "-y", "--codec", "ffv1", "--normalize", "none")
        expect(code == 0 and pixels("rgb.mkv", "rgb24") == pixels(out, "rgb24"), f"RGB to {out}: {code}: {err}")


def a_rate_that_is_asked_for():
    """Of a film and of pictures; sound does not go with other times, which is said."""
    code, _, err = run("run", "-m", network(3), sample("realshort.mp4"), "-o", "o.mp4", "-y", "--normalize", "none", "--fps", "30000/1001")
    got = times("o.mp4")
    expect(code == 0 and all(abs(t - k * 1001 / 30000) < 1e-5 for k, t in enumerate(got)), f"--fps: {code}: {got[:4]}")
    expect(not packets("o.mp4") and "other tracks are left out" in err, f"--fps: {packets('o.mp4')}: {err}")
    with open("chapters", "w", encoding="ascii") as f:
        f.write(";FFMETADATA1\ntitle=A film\ndate=1999\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=900\ntitle=one\n")
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1", "-i", "chapters", "-map_metadata", "1",
                    "-metadata:s:v:0", "language=deu", "-metadata", "timecode=01:00:00:00", "-c:v", "ffv1", "words.mkv"], check=True)
    for words in (("--fps", "12"), ("--planes", "0,3-5")):
        for out in ("o.mkv", "o.mov"):
            code, _, err = run("run", "-m", network(3), "words.mkv", "-o", out, "-y", "--normalize", "none", *words)
            said = subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_chapters", out], capture_output=True,
                                  check=True).stdout
            said = json.loads(said)
            tags = {k.lower(): v for k, v in said["format"]["tags"].items()}
            expect(code == 0 and tags.get("title") == "A film" and tags.get("date") == "1999" and not said["chapters"] and "timecode" not in tags,
                   f"{words} into {out}: {code}: {said['format']['tags']}: {err}")
            expect(said["streams"][0]["tags"].get("language") in ("deu", "ger"), f"{words} into {out}: language: {said['streams'][0]['tags']}")
            expect("counts milliseconds" not in err and "its chapters are left out" in err and "the time code (01:00:00:00), which counts" in err, f"{words} into {out}: {err}")
    for k in range(5):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=64x48", "-vf", f"trim=start_frame={k}",
                        "-frames:v", "1", f"shot_{k:03}.png"], check=True)
    code, _, err = run("run", "-m", network(3), "shot_%03d.png", "-o", "o.mkv", "-y", "--normalize", "none", "--codec", "ffv1", "--fps", "12.5")
    expect(code == 0 and [round(t, 3) for t in times("o.mkv")] == [0, 0.08, 0.16, 0.24, 0.32], f"pictures: {code}: {err}")
    made = pixels("o.mkv", "rgb24")
    want = b"".join(pixels(f"shot_{k:03}.png", "rgb24") for k in range(5))
    expect(made == want, "pictures: other pixels")
    expect(run("run", "-m", network(3), "shot_%03d.png", "-o", "o.mkv", "-y", "--fps", "0")[0] == 64, "--fps 0")


def what_is_not_shown_is_no_damage():
    """A film cut by copying packets has frames in front that its edit list hides; one from the air begins at any time."""
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-ss", "1.03", "-i", sample("bikes.mp4"), "-t", "1", "-c", "copy", "cut.mp4"], check=True)
    code, _, err = run("run", "-m", network(3), "cut.mp4", "-o", "o.mp4", "-y", "--normalize", "none")
    expect(code == 0, f"a film that hides frames: {code}: {err}")
    same = code or max(abs(a - b) for a, b in zip(times("cut.mp4"), times("o.mp4"))) < 2e-6
    expect(same, f"a film that hides frames: {times('cut.mp4')[:3]}, {times('o.mp4')[:3]}")
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", sample("realshort.mp4"), "-c", "copy", "-output_ts_offset", "40000", "air.ts"], check=True)
    code, _, err = run("run", "-m", network(3), "air.ts", "-o", "o.mp4", "-y", "--normalize", "none")
    expect(code == 0 and times("o.mp4")[0] < 1 and len(times("o.mp4")) == 36, f"from the air: {code}: {err}")
    late = max(abs(a - times("air.ts")[0] - b) for a, b in zip(times("air.ts"), times("o.mp4")))
    expect(late < 2e-5, f"from the air: {late} s off")
    code, _, err = run("run", "-m", network(3), sample("bikes.mp4"), "-o", "o.mp4", "-y", "--normalize", "none", "--planes", "50-59")
    expect(code == 0 and times("o.mp4")[0] == 0 and len(times("o.mp4")) == 10, f"some frames: {code}: {err}")


def pictures_hours_apart():
    """Of a stack by its time increment, however long; ImageJ's finterval."""
    head = b"ImageJ=1.53k\nimages=3\nframes=3\nfinterval=%s\nunit=pixel\nloop=false\n\0"
    for every in (b"0.7", b"90", b"3600"):
        body, text = bytes(range(48)) * 3, head % every
        entries = [(256, 4, 1, 8), (257, 4, 1, 6), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (270, 2, len(text), 200),
                   (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 6), (279, 4, 1, 48)]
        data = b"II*\0" + struct.pack("<I", 500) + body
        data = data.ljust(200, b"\0") + text
        data = data.ljust(500, b"\0") + struct.pack("<H", len(entries))
        data += b"".join(struct.pack("<HHII", *e) for e in entries) + b"\0\0\0\0"
        with open("stack.tif", "wb") as f:
            f.write(data)
        code, _, err = run("run", "-m", network(1), "stack.tif", "-o", "o.mov", "-y", "--normalize", "none", "--codec", "ffv1")
        want = [k * float(every) for k in range(3)]
        expect(code == 0 and times("o.mov") == want, f"every {every} s: {code}: {times('o.mov') if code == 0 else err}")


# ---- Stops ---------------------------------------------------------------------------------------------------------------


def a_speed_is_kept_to():
    """--preset-speed: medium is the usual one; what has none refuses; another one is another file, and not another film."""
    film = sample("carphone_pristine.mp4")
    words = ("run", "-m", network(3), film, "--frames", "0:10", "--normalize", "none", "-y", "-o")
    sizes = {}
    for speed in ((), ("--preset-speed", "medium"), ("--preset-speed", "ultrafast"), ("--preset-speed", "veryslow")):
        code, _, err = run(*words, "s.mp4", *speed)
        expect(code == 0 and len(times("s.mp4")) == 10, f"{speed}: {code}: {err}")
        with open("s.mp4", "rb") as f:
            sizes[speed[-1:]] = f.read()
    with open("s.mp4.tegula.json", encoding="utf-8") as f:
        told = json.load(f)["film"]
    expect("libx264" in told["encoder"] and "-preset veryslow" in told["ffmpeg"] and "libavcodec" in told["libraries"], f"the receipt: {told}")
    expect(sizes[()] == sizes[("medium",)], "medium is the usual speed")
    expect(len(sizes[("ultrafast",)]) > len(sizes[()]) > len(sizes[("veryslow",)]), f"speeds: {[len(s) for s in sizes.values()]} bytes")
    for out, more, says in (("s.mkv", ("--codec", "ffv1"), "one speed"), ("s.tif", (), "for films"), ("s.mp4", ("--preset-speed", "quick"), "veryslow")):
        code, _, err = run(*words, out, "--preset-speed", "slow", *more)
        expect(code == 64 and says in err, f"a speed of {out} {more}: {code}: {err}")


def a_scale_of_eight_bits_is_told():
    code, _, err = run("plan", "-m", network(3), sample("h264_10bit.mp4"), "-o", "o.mp4", "--normalize", "scale:1/255,0")
    expect(code == 0 and "scale:1/65535,0" in err, f"10 bits and 1/255: {code}: {err}")
    _, _, err = run("plan", "-m", network(3), sample("h264_10bit.mp4"), "-o", "o.mp4", "--normalize", "scale:1/65535,0")
    expect("65535,0 up to" not in err, f"10 bits and 1/65535: {err}")


def other_containers_are_films():
    for name, codec in (("o.wmv", "wmv2"), ("o.nut", "ffv1"), ("o.ivf", "libvpx-vp9"), ("o.flv", "flv"), ("o.mxf", "mpeg2video")):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=128x96:rate=25:duration=0.4", "-c:v", codec, name)
        code, out, err = run("info", name, "--json")
        expect(code == 0 and json.loads(out)["film"]["container"] and json.loads(out)["shape"][0] == 10, f"{name}: {code}: {err}")


def plans_hold():
    """Encoders that held more than their line once: VP9, whose blocks stayed in the heaps of threads, and H.264 of two moments."""
    if SANITIZED:
        return
    for film, out, words in (("running_car.mp4", "p.webm", ("--frames", "10:14")), ("interlaced_paff_tt.264", "p.mp4", ("--interlaced", "as-is"))):
        code, told, err = run("run", "-m", network(3), sample(film), "-o", out, "-y", "--normalize", "none", "--json", *words)
        told = json.loads(told.splitlines()[-1])
        expect(code == 0 and told["measured_peak_bytes"] <= told["predicted_peak_bytes"], f"{out}: {told.get('measured_peak_bytes')} bytes: {err}")


def fonts_and_words():
    """Fonts stay in a Matroska, and memory for them is planned; words that an MP4 has codes for are not told as lost, however they are
    spelled."""
    font = random.randbytes(20 << 20)
    with open("a.ttf", "wb") as f:
        f.write(font)
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-attach", "a.ttf", "-metadata:s:t", "mimetype=application/x-truetype-font",
           "-metadata", "ARTIST=Me", "-c:v", "ffv1", "font.mkv")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-metadata", "location=+52.5+13.4/", "-c:v", "libx264", "-pix_fmt", "yuv420p", "place.mp4")
    code, _, err = run("run", "-m", network(3), "place.mp4", "-o", "there.mp4", "-y", "--normalize", "none", "--strict")
    expect(code == 0 and "+52.5" in str(probe("there.mp4", "-show_format")), f"a place: {code}: {err}")
    for out in ("f.mkv", "f.mp4"):
        code, told, err = run("run", "-m", network(3), "font.mkv", "-o", out, "-y", "--normalize", "none", "--json")
        told = json.loads(told.splitlines()[-1])
        expect(SANITIZED or told["measured_peak_bytes"] <= told["predicted_peak_bytes"], f"{out}: {told}")
        kinds = [s.get("codec_type") for s in probe(out, "-show_streams")["streams"]]
        expect(code == 0 and ("attachment" in kinds) == (out == "f.mkv") and "ARTIST" not in err, f"{out}: {code}: {kinds}: {err}")
        expect(out == "f.mp4" or font in bytes_of(out), f"{out}: the font is another")
        expect(out == "f.mkv" or told["predicted_peak_bytes"] < 2 * len(font), f"{out}: a font that does not go with it is planned: {told}")


def killed_at(args, out, at):
    """Where the run was when it was killed at its operation `at` on files: "segments", "join"; None: it came to its end first."""
    code, _, err = run(*args, "-o", out, TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")
    expect(code in (0, -9, 73), f"{out} to operation {at}: {code}: {err}")
    if code != -9:
        return None
    seen = json.loads(run("status", "--json", out)[1] or "{}")
    return "join" if seen.get("frames") and seen["frames"] == seen["frames_in_all"] else "segments"


def start_over(out):
    for name in [n for n in os.listdir(".") if n.startswith(out)]:
        os.unlink(name)


def operations_of(args, out):
    """How many a run does on files."""
    lo, hi = 1, 64
    while killed_at(args, out, hi):
        lo, hi = hi, 2 * hi
        start_over(out)
    while hi - lo > 1:
        start_over(out)
        middle = (lo + hi) // 2
        lo, hi = (middle, hi) if killed_at(args, out, middle) else (lo, middle)
    start_over(out)
    return lo


def killed_in_time(args, out, seconds):
    with subprocess.Popen([TEGULA, *args, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        time.sleep(random.uniform(0.02, seconds))
        p.kill()
        return "any" if p.wait() == -9 else None


def killed_runs_go_on(row, out, kills, *words, channels=3, net=None):
    """Three kills at a time: at an operation on files, from the first ones to those of the join, of which there are few; soon after that, while
    what is there is looked at; and at any time. Then the run goes on to its end."""
    args = ["run", "-m", net or network(channels), sample(row["file"]), "--normalize", "none", *words]
    began, met = time.monotonic(), []
    expect(run(*args, "-o", "whole" + out, "-y")[0] == 0, "the undisturbed run")
    seconds, whole, out = time.monotonic() - began, bytes_of("whole" + out), "killed" + out
    n, times_over = operations_of(args, out), -(-kills // 3)
    for k in range(times_over):
        at = n - random.randrange(6, 12) if k % 4 == 3 else 2 + k * (n - 8) // max(1, times_over - 1)
        met += [killed_at(args, out, at), killed_at(args, out, random.randrange(1, 4)),
                killed_in_time(args, out, seconds)]
        expect(met[-3] and met[-2], f"{out}: of {n} operations, {k}: {met[-3:]}")
        code, _, err = run(*args, "-o", out)
        expect(code in (0, 73), f"{out}: the last run: {code}: {err}")
        expect(bytes_of(out) == whole, f"{out}: other bytes after {met[-3:]}")
        left = [f for f in os.listdir(".") if f.startswith(out + ".") and not f.endswith(".tegula.json")]
        expect(not left, f"{out}: something is left: {left}")
        start_over(out)
    stops = {w: met.count(w) for w in ("segments", "join", "any")}
    expect(stops["segments"] and stops["join"] and sum(stops.values()) >= kills / 2, f"{out}: {stops}")
    print(f"  {out}: of {n} operations on files, kills: {stops}", flush=True)


def what_is_told_to_run_runs():
    """The command that takes interlaced frames apart, and the receipt's, with frames of ours."""
    film = sample("interlaced_mbaff.264")
    _, _, err = run("run", "-m", network(3), film, "-o", "o.mp4", "-y", "--normalize", "none")
    told = re.search(r"`(ffmpeg [^`]*)`", err)
    expect(told, f"no command: {err}")
    if told:
        subprocess.run([*told[1].replace("OUT.mkv", "apart.mkv").split(), "-v", "error", "-y"], check=True)
        code, _, err = run("run", "-m", network(3), "apart.mkv", "-o", "o.mp4", "-y", "--normalize", "none")
        expect(code == 0 and len(times("o.mp4")) == len(times("apart.mkv")), f"frames that were taken apart: {code}: {err}")
    film = sample("carphone_pristine.mp4")
    expect(run("run", "-m", network(3), film, "-o", "o.mp4", "-y", "--normalize", "none")[0] == 0, "a receipt")
    with open("o.mp4.tegula.json", encoding="utf-8") as f:
        words = json.load(f)["film"]["ffmpeg"].split()
    ours = stream("o.mp4"), len(times("o.mp4"))
    subprocess.run([film if w == "FRAMES" else "again.mp4" if w == "o.mp4" else w for w in words] + ["-v", "error", "-y"], check=True)
    expect((stream("again.mp4"), len(times("again.mp4"))) == ours, f"the receipt's command: {stream('again.mp4')}, {ours}")


def what_is_refused():
    film = sample("realshort.mp4")
    same = network(3)
    for out, words, code, says in (("o.mp4", ("--codec", "ffv1"), 64, "no mp4"), ("o.mp4", ("--dtype", "float32"), 64, "--dtype"),
                                   ("o.mov", ("--codec", "av1"), 64, "no mov"), ("o.mov", ("--codec", "vp9"), 64, "no mov"),
                                   ("o.mp4", ("--compress", "zstd"), 64, "TIFF"), ("o.mp4", ("--pix-fmt", "yuv411p"), 64, "--pix-fmt"),
                                   ("o.mp4", ("--ram", "12MiB"), 71, "--ram"),
                                   ("o.mp4", ("--crf", "60"), 64, "--crf"), ("o.mkv", ("--codec", "ffv1", "--crf", "3"), 64, "--crf"),
                                   ("o.mp4", ("--pix-fmt", "nonsense"), 64, "nonsense: h264 has no such frames; it takes yuv420p, "),
                                   ("o.mp4", ("--pix-fmt", "rgb48le"), 64, "nearest is yuv444p10le; it takes yuv420p, "),
                                   ("o.y4m", ("--pix-fmt", "nv12"), 64, "yuv444p"), ("o.ogv", (), 64, ".mkv"),
                                   ("o.mkv", ("--fps", "5000"), 64, "milliseconds"), ("o.mp4", ("--format", "imagej"), 64, "is a film"),
                                   ("o.mp4", ("--fps", "25.5/2"), 64, "--fps")):
        got, _, err = run("run", "-m", same, film, "-o", out, "-y", "--normalize", "none", *words)
        expect(got == code and says in err, f"{words}: {got}: {err}")
    got, _, err = run("run", "-m", same, sample("interlaced_mbaff.264"), "-o", "o.mp4", "-y", "--normalize", "none")
    expect(got == 65 and "-vf bwdif" in err, f"interlaced: {got}: {err}")
    got, _, err = run("run", "-m", same, "https://host.test/a.mp4", "-o", "o.mp4", "-y")
    expect(got == 66 and "download it first" in err, f"an address: {got}: {err}")
    got, _, err = run("run", "-m", same, film, "-o", "no.mkv", "-y", "--frames", "0:3", "--normalize", "none", "--codec", "ffv1")
    told = bytes_of("no.mkv.tegula.json") if got == 0 else b"crf"
    expect(b"crf" not in told, f"FFV1 has no crf: {got}: {err} {told}")
    for words in (("--codec", "h264"), ("--crf", "20"), ("--fps", "25"), ("--strict",)):
        got, _, err = run("run", "-m", same, film, "-o", "o.tif", "-y", "--normalize", "none", *words)
        expect(got == 64 and "is for films" in err, f"{words} of a TIFF: {got}: {err}")
    got, _, err = run("copy", film, "-o", "o.mp4", "-y")
    expect(got == 64 and "copy writes no films" in err, f"copy: {got}: {err}")


def the_range_is_said():
    """Of a film that says its range and no matrix: in the output as in the input, or it is told, and --strict refuses it."""
    for form, network_of in (("yuv420p", 3), ("gray", 1)):
        for wanted in ("pc", "tv"):
            ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", form, "-color_range", wanted, "r.mkv")
            for codec, out in RANGES if form == "yuv420p" else GREY:
                words = ("run", "-m", network(network_of), "r.mkv", "-o", out, "-y", "--normalize", "none", "--codec", codec)
                code, _, err = run(*words)
                got = stream(out)[0].get("color_range", "pc" if form == "gray" else "tv") if code == 0 else None
                told = "its range is" in err
                expect(code == 0 and got == (wanted if not told else {"pc": "tv", "tv": "pc"}[wanted]), f"{form} {wanted} by {codec} in {out}: {got}: {err}")
                expect(not told or codec in ("ffv1", "prores"), f"{form} {wanted} by {codec} in {out}: {err}")
                code, _, err = run(*words, "--strict")
                expect(code == (65 if told else 0), f"{form} {wanted} by {codec} in {out} --strict: {code}: {err}")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "yuv420p", "-color_range", "tv", "r.mkv")
    code, _, err = run("run", "-m", network(3), "r.mkv", "-o", "o.mp4", "-y", "--normalize", "none")
    expect(stream("o.mp4")[0].get("color_range") == "tv", f"H.264 in MP4 says nothing of a limited range: {code}: {err}")


RANGES = (("h264", "o.mp4"), ("h264", "o.mkv"), ("hevc", "o.mp4"), ("av1", "o.mp4"), ("vp9", "o.webm"), ("ffv1", "o.mov"), ("ffv1", "o.mkv"),
          ("prores", "o.mov"), ("prores", "o.mkv"))
GREY = (("h264", "o.mp4"), ("hevc", "o.mp4"), ("ffv1", "o.mov"), ("ffv1", "o.mkv"))  # others store grey as colours


def alpha_is_kept_or_refused():
    """H.264 and VP9 have none: 65, or without on request; colours as they were. FFV1 keeps it."""
    alpha_film("a.mkv", "bgra")
    words = ("run", "-m", network(4), "a.mkv", "-y", "--normalize", "none", "-o")
    for out, more in (("o.mp4", ()), ("o.webm", ())):
        code, _, err = run(*words, out, *more)
        expect(code == 65 and "--drop-alpha" in err, f"alpha into {out}: {code}: {err}")
        code, _, err = run(*words, out, "--drop-alpha")
        form = probe(out, "-show_streams")["streams"][0]["pix_fmt"] if not code else ""
        expect(code == 0 and form == "yuv420p", f"--drop-alpha into {out}: {code}: {form} {err}")
    for more in ((), ("--drop-alpha",)):
        code, _, err = run(*words, "o.mkv", "--codec", "ffv1", *more)
        expect(code == 0 and pixels("o.mkv", "rgba") == pixels("a.mkv", "rgba"), f"alpha by ffv1 {more}: {code}: {err}")


def chapters_are_no_track():
    """Through MP4 twice: chapters, and not a track of them more each time."""
    with open("chapters", "w", encoding="ascii") as f:
        f.write(";FFMETADATA1\n" + "".join(f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={a}\nEND={b}\ntitle=c{a}\n" for a, b in ((0, 500), (500, 1000))))
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-i", "chapters", "-map_metadata", "1", "-c:v", "libx264", "c0.mp4")
    for k in (1, 2):
        code, _, err = run("run", "-m", network(3), f"c{k - 1}.mp4", "-o", f"c{k}.mp4", "-y", "--normalize", "none")
        tags = [s.get("codec_tag_string") for s in probe(f"c{k}.mp4", "-show_streams")["streams"]]
        expect(code == 0 and sorted(tags) == ["avc1", "text"] and len(probe(f"c{k}.mp4", "-show_chapters")["chapters"]) == 2,
               f"chapters, pass {k}: {code}: {tags}: {err}")


def long_chapters_are_kept():
    """Beside sound of another clock, whose ticks and the film's have few in common."""
    with open("long.txt", "w", encoding="ascii") as f:
        f.write(";FFMETADATA1\n" + "".join(f"[CHAPTER]\nTIMEBASE=1/1\nSTART={a}\nEND={b}\ntitle=c{a}\n" for a, b in ((0, 100), (100, 390), (390, 400))))
    ffmpeg("-f", "lavfi", "-i", "color=size=32x32:rate=1/4:d=400", "-f", "lavfi", "-i", "anullsrc=r=44100:cl=mono:d=400", "-i", "long.txt", "-map", "0",
           "-map", "1", "-map_metadata", "2", "-c:v", "libx264", "-c:a", "pcm_u8", "-video_track_timescale", "12800", "long.mov")
    code, _, err = run("run", "-m", network(3), "long.mov", "-o", "l.mov", "-y", "--normalize", "none")
    told = [(float(c["start_time"]), float(c["end_time"]), c["tags"]["title"]) for c in probe("l.mov", "-show_chapters").get("chapters", [])]
    expect(code == 0 and told == [(0, 100, "c0"), (100, 390, "c100"), (390, 400, "c390")], f"long chapters: {code}: {told}: {err}")


def an_avi_may_hold_frames():
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=2", "-f", "lavfi", "-i", "sine=d=2", "-c:v", "mpeg4", "-c:a", "libmp3lame", "q.avi")
    code, _, err = run("info", "q.avi")
    expect(code == 0, f"an AVI with an empty chunk: {code}: {err}")
    with open("q.avi", "rb") as f:
        data = f.read()
    with open("cut.avi", "wb") as f:
        f.write(data[:len(data) * 2 // 3])
    code, _, err = run("plan", "-m", network(3), "cut.avi", "-o", "o.mkv", "--normalize", "none")
    expect(code == 65, f"an AVI that is cut: {code}: {err}")


def odd_sides_are_written():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=61x43:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "yuv444p", "odd.mkv")
    ffmpeg("-i", "odd.mkv", "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", "odd.y4m")
    code, _, err = run("run", "-m", network(3), "odd.y4m", "-o", "odd2.mkv", "-y", "--normalize", "none", "--codec", "ffv1")
    expect(code == 0 and probe("odd2.mkv", "-show_streams")["streams"][0]["width"] == 61, f"odd sides: {code}: {err}")


def damage_that_a_checksum_shows():
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48:r=5:d=1", "-c:v", "ffv1", "-level", "3", "-slicecrc", "1", "whole.mkv")
    with open("whole.mkv", "rb") as f:
        data = bytearray(f.read())
    data[len(data) // 2:len(data) // 2 + 8] = bytes(8)
    with open("hurt.mkv", "wb") as f:
        f.write(data)
    code, _, err = run("run", "-m", network(3), "hurt.mkv", "-o", "o.mkv", "-y", "--normalize", "none")
    expect(code == 65 and "damaged" in err, f"a slice of FFV1 with other bytes: {code}: {err}")
    for level in ("1", "3"):
        ffmpeg("-i", "whole.mkv", "-c:v", "ffv1", "-level", level, "-slicecrc", "0", "-strict", "-2", "plain.mkv")
        code, _, err = run("run", "-m", network(3), "plain.mkv", "-o", "o.mkv", "-y", "--normalize", "none")
        expect(code == 0, f"FFV1 of version {level} without checksums: {code}: {err}")


def more_colours_than_there_are():
    """A network that makes three channels of each colour."""
    shape = ["N", 1, "H", "W"]
    with open("three.onnx", "wb") as f:
        f.write(model([node("Concat", ["x", "x", "x"], ["y"], axis=1)], [], [port("x", shape)], [port("y", ["N", 3, "H", "W"])]))
    for out in ("o.mp4", "o.y4m", "o_%05d.png"):
        code, _, err = run("run", "-m", "three.onnx", sample("realshort.mp4"), "-o", out, "-y", "--normalize", "none")
        expect(code == 64 and "channels" in err, f"nine channels into {out}: {code}: {err}")


def fewer_bits_are_told():
    """Unless they were asked for."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=0.3", "-pix_fmt", "rgb48be", "deep_%02d.png")
    for bits in (10, 12):
        ffmpeg("-i", "deep_%02d.png", "-pix_fmt", f"yuv422p{bits}le", "-c:v", "ffv1", f"deep{bits}.mkv")
    less, asked = ("o.mp4", "o.mov", "o.webm", "o.mov --codec prores"), "o.mp4 --pix-fmt yuv420p10le"
    for name, told in (("deep_%02d.png", 16), ("deep12.mkv", 12), ("deep10.mkv", 0)):
        for out in (*less, asked, "o.mkv --codec ffv1", "o.y4m"):
            words = ("plan", "-m", network(3), name, "-y", "--normalize", "none", "-o", *out.split())
            code, _, err = run(*words)
            named = f"pixels of {told} bits are stored with 10" in err
            expect(code == 0 and named == (told > 0 and out in less and (told, out) != (12, "o.webm")), f"{name} into {out}: {code}: {err}")
            if named:
                expect(run(*words, "--strict")[0] == 65, f"{name} into {out}, --strict")


def another_length_is_told():
    """Where --fps shows a film faster or slower."""
    for fps, told in (("5", True), ("10", False), ("20", True)):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=2", "-c:v", "mpeg4", "even.mp4")
        code, _, err = run("plan", "-m", network(3), "even.mp4", "-y", "--normalize", "none", "-o", "o.mp4", "--fps", fps)
        expect(code == 0 and ("even.mp4 takes 2 s" in err) == told, f"--fps {fps}: {code}: {err}")
    err = run("plan", "-m", network(3), "even.mp4", "-y", "--normalize", "none", "-o", "o.mp4", "--fps", "20", "--frames", "5:15")[2]
    expect("it takes 0.5 s at --fps 20, and that part of even.mp4 takes 1 s" in err, err)
    err = run("plan", "-m", network(3), "even.mp4", "-y", "--normalize", "none", "-o", "o.mp4", "--fps", "10", "--planes", "2-5")[2]
    expect("at --fps" not in err, err)
    err = run("plan", "-m", network(3), sample("newtonscradle_vfr.gif"), "-y", "--normalize", "none", "-o", "o.mp4", "--fps", "25")[2]
    expect("takes 0.82 s, as its frames are not all shown as long" in err, err)


def ways_out_are_named():
    """Of a track that the container does not hold, of a codec that nobody writes, of a pattern that the shell took apart."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=0.3", "way_%d.png")
    code, _, err = run("run", "-m", network(3), "way_1.png", "way_2.png", "way_3.png", "-o", "o.mp4")
    expect(code == 64 and "these are 3" in err and "'*.png'" in err, f"{code}: {err}")
    code, _, err = run("run", "-m", network(3), "way_1.png", "out.png")
    expect(code == 64 and '"out.png" is one too many' in err, f"{code}: {err}")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1", "-f", "lavfi", "-i", "sine=r=8000:duration=1", "-c:v", "mjpeg", "-c:a", "libmp3lame",
           "mp3.avi")
    err = run("plan", "-m", network(3), "mp3.avi", "-y", "--normalize", "none", "-o", "o.mp4")[2]
    expect("track 1 (audio, mp3): mp4 does not hold it, a .mkv does" in err, err)
    code, _, err = run("run", "-m", network(3), "mp3.avi", "-y", "--normalize", "none", "-o", "o.mkv")
    expect(code == 0 and "does not hold" not in err and [c for c, _ in packets("o.mkv")] == ["mp3"], f"{code}: {err}")
    code, _, err = run("run", "-m", network(3), "mp3.avi", "-y", "--normalize", "none", "-o", "o.mkv", "--codec", "copy-like-input")
    expect(code == 64 and "--codec copy-like-input: the film that is read is mjpeg, and films are written as h264" in err, f"{code}: {err}")


def nothing_less_when_strict():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "ffv1",
           "-c:a", "flac", "f.mkv")
    words = ("run", "-m", network(3), "f.mkv", "-y", "--normalize", "none", "--strict", "-o")
    code, _, err = run(*words, "strict.webm")
    expect(code == 65 and "--strict" in err and "flac" in err, f"flac into webm: {code}: {err}")
    expect(not os.path.exists("strict.webm"), "--strict: there is an output")
    alpha_film("al.mkv", "bgra")
    ffmpeg("-i", "al.mkv", "-c:v", "copy", "-metadata:s:v", "rotate=90", "al.mov")
    code, _, err = run("run", "-m", network(3), "al.mov", "-y", "--normalize", "none", "--strict", "-o", "strict.mkv", "--codec", "ffv1", "--drop-alpha")
    expect(code == 65 and "alpha" in err, f"alpha that a network leaves out: {code}: {err}")
    code, _, err = run("run", "-m", network(3), sample("rot90.mov"), "-y", "--normalize", "none", "--strict", "-o", "turned.mkv")
    expect(code == 65 and "its pixels are turned" in err and not os.path.exists("turned.mkv"), f"turned, into mkv: {code}: {err}")
    code, _, err = run("run", "-m", network(3), sample("rot90.mov"), "-y", "--normalize", "none", "--strict", "-o", "turned.mov")
    expect(code == 0, f"turned, into mov: {code}: {err}")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "wrote.avi")
    ffmpeg("-i", "wrote.avi", "-c", "copy", "-metadata", "software=a program", "wrote.mkv")
    for name, refused in (("wrote.avi", False), ("wrote.mkv", True)):  # an AVI says so what wrote the file
        expect("software" in {k.lower() for k in probe(name, "-show_format")["format"]["tags"]}, f"{name} has no such word")
        code, _, err = run("run", "-m", network(3), name, "-y", "--normalize", "none", "--strict", "-o", "wrote.mp4")
        expect(code == (65 if refused else 0) and ("SOFTWARE" in err) == refused, f"{name} into mp4: {code}: {err}")
    code, _, err = run(*words, "o.mkv", "--codec", "copy-like-input")
    expect(code == 0 and [c for c, _ in packets("o.mkv")] == ["flac"], f"flac into mkv: {code}: {err}")
    expect(probe("o.mkv", "-show_streams")["streams"][0]["codec_name"] == "ffv1", "copy-like-input is another codec")


def all_of_it(rows):
    whole = [r for r in rows if not int(r.get("decode_errors") or 0)]
    few = ("realshort.mp4", "rot90.mov", "foreman_vp9.webm", "mjpeg_5x3.avi", "unordered_pts.mov")
    some = whole if ALL else [r for r in whole if r["file"] in few]
    by = {r["file"]: r for r in rows}
    for row in some:
        without_loss_into_mov(row)
        into_mkv(row)
        encoded(row, "h264", "o.mp4", *(["--drop-alpha"] if row["pix_fmt"] == "bgra" else []))
    some_tags_are_kept()
    where_chroma_lies_is_said()
    rgb_is_exact()
    a_rate_that_is_asked_for()
    what_is_not_shown_is_no_damage()
    pictures_hours_apart()
    for codec, out in (("hevc", "o.mp4"), ("vp9", "o.webm"), ("prores", "o.mov"), ("av1", "o.mkv")):
        encoded(by["realshort.mp4"], codec, out)
    chapters_are_no_track()
    long_chapters_are_kept()
    an_avi_may_hold_frames()
    odd_sides_are_written()
    a_speed_is_kept_to()
    other_containers_are_films()
    plans_hold()
    a_scale_of_eight_bits_is_told()
    fonts_and_words()
    damage_that_a_checksum_shows()
    the_range_is_said()
    alpha_is_kept_or_refused()
    more_colours_than_there_are()
    nothing_less_when_strict()
    fewer_bits_are_told()
    another_length_is_told()
    ways_out_are_named()
    what_is_told_to_run_runs()
    what_is_refused()


if __name__ == "__main__":
    random.seed(7)
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
