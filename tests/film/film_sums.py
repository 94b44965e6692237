#!/usr/bin/env python3
"""Checksums of a Matroska: what lies where one does not hold is damaged, and no whole film is.

    film_sums.py TEGULA SOURCE VIDEOS

With ffmpeg; 77 without it or the sample films."""
import json
import os
import random
import re
import struct
import subprocess
import sys
import zlib

from film_help import bytes_of, expect, ffmpeg, in_folder, network, run, sample

SEED = int(os.environ.get("TEGULA_SEED", "7"))
SAME = ["run", "-m", "same.onnx", "--normalize", "none", "-y", "-q"]
SOURCE = ["-f", "lavfi", "-i", "testsrc2=size=160x96:rate=25,noise=alls=10:allf=t:all_seed=1"]
FRAMES = 60
CLUSTER, SEGMENT = b"\x1f\x43\xb6\x75", b"\x18\x53\x80\x67"
# Decoders that take almost any bits for pictures, and how they hold frames back.
CODECS = {
    "VP8": ["libvpx", "-b:v", "300k", "-deadline", "realtime", "-g", "20"],
    "VP9": ["libvpx-vp9", "-b:v", "300k", "-deadline", "good", "-cpu-used", "6", "-g", "20", "-auto-alt-ref", "1", "-lag-in-frames", "16"],
    "VP9, alpha": ["libvpx-vp9", "-b:v", "300k", "-deadline", "realtime", "-g", "20", "-pix_fmt", "yuva420p"],
    "MPEG-2": ["mpeg2video", "-q:v", "4", "-bf", "2", "-g", "15"],
    "MPEG-4": ["mpeg4", "-q:v", "4", "-bf", "2", "-g", "15"],
    "H.264": ["libx264", "-g", "20"],
    "HEVC": ["libx265", "-g", "20", "-x265-params", "log-level=none:pools=none:frame-threads=1"],
    "MJPEG": ["mjpeg", "-q:v", "4", "-pix_fmt", "yuvj420p"],
    "FFV1": ["ffv1", "-level", "3", "-slicecrc", "0"],
}


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def flipped(data, at, bit=0):
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:]


def number(data, at, marked):
    """(value, behind it) of an EBML number."""
    n = 1
    while not data[at] & 0x100 >> n:
        n += 1
    value = int.from_bytes(data[at:at + n], "big")
    return (value if marked else value & (1 << 7 * n) - 1), at + n


def elements(data):
    """Of the top of a Matroska: (name, begin, begin of what it holds, end)."""
    at, out = 0, []
    while at < len(data):
        _, behind = number(data, at, True)
        name = data[at:behind]
        size, holds = number(data, behind, False)
        out.append((name, at, holds, holds + size))
        at = holds if name == SEGMENT else holds + size
    return out


def clusters(data):
    return [(begin, holds, end) for name, begin, holds, end in elements(data) if name == CLUSTER]


def copied(path, *more):
    """(exit code, frames, numbers of those that are listed, words)."""
    code, _, err = run("copy", path, "-o", "o.npy", "-y", "-q", *more)
    frames, bad = [], set()
    if os.path.exists("o.npy"):
        data = bytes_of("o.npy")
        n = int(re.search(rb"\((\d+),", data[:128])[1])
        size = (len(data) - 128) // n
        frames = [data[128 + k * size:128 + (k + 1) * size] for k in range(n)]
    if os.path.exists("o.npy.errors.json"):
        bad = {r["frame"] for r in json.loads(bytes_of("o.npy.errors.json"))["regions"]}
    for name in [x for x in os.listdir(".") if x.startswith("o.npy")]:
        os.remove(name)
    return code, frames, bad, err


def any_bit_of_a_cluster_is_told():
    """Whatever the codec: each frame that is another is listed, with those behind it up to a key frame, and no others."""
    for name, words in CODECS.items():
        pixels = [] if "-pix_fmt" in words else ["-pix_fmt", "yuv420p"]
        ffmpeg(*SOURCE, "-frames:v", str(FRAMES), "-threads", "1", "-c:v", *words, *pixels, "-cluster_time_limit", "300", "film.mkv")
        whole, r = bytes_of("film.mkv"), random.Random(f"{SEED} {name}")
        code, good, bad, err = copied("film.mkv")
        expect(code == 0 and len(good) == FRAMES and "checksum" not in err, f"{name}, whole: {code}: {err}")
        all_of = clusters(whole)
        expect(len(all_of) > 5, f"{name}: {len(all_of)} clusters")
        for k in range(8):
            begin, holds, end = r.choice(all_of)
            at = r.randrange(holds + 6, end)  # behind the checksum
            write("bad.mkv", flipped(whole, at, r.randrange(8)))
            code, frames, bad, err = copied("bad.mkv", "--on-bad-tile", "keep")
            what = f"{name}, {k}: byte {at} of the cluster from {begin} to {end}"
            expect(code == 65 and (bad or "--allow-truncated" in err), f"{what}: {code}: {err}")
            if len(frames) == FRAMES:
                expect(all(frames[n] == good[n] or n in bad for n in range(FRAMES)), f"{what}: listed {sorted(bad)}")
                expect(len(bad) < FRAMES * 2 // 3, f"{what}: listed {sorted(bad)}")
        print(f"  {name}: {len(all_of)} clusters", flush=True)


def a_run_ends_in_65_and_says_how_to_go_on():
    ffmpeg(*SOURCE, "-frames:v", str(FRAMES), "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "4", "sums.mkv")
    ffmpeg("-i", "sums.mkv", "-c", "copy", "-write_crc32", "0", "none.mkv")
    whole = bytes_of("sums.mkv")
    begin, holds, end = clusters(whole)[0]
    for at in (end - 2, holds + 2):  # what a frame holds; the checksum itself
        write("bad.mkv", flipped(whole, at))
        n = len(copied("bad.mkv", "--on-bad-tile", "keep")[2])
        expect(0 < n <= FRAMES, f"byte {at}: {n} frames")
        code, _, err = run(*SAME, "bad.mkv", "-o", "o.mkv", "--codec", "ffv1")
        expect(code == 65 and "parts of it are damaged; --on-bad-tile keep" in err, f"byte {at}: {code}: {err}")
        expect(f"{n} of its frames lie where a checksum of its file does not hold" in err, f"byte {at}, {n} frames: {err}")
        code, text, err = run("info", "bad.mkv", "--json")
        expect(code == 0 and f"{n} of its frames lie where a checksum" in json.loads(text).get("note", ""), f"info: {code}: {err}")
        code, _, err = run(*SAME, "bad.mkv", "-o", "o.mkv", "--codec", "ffv1", "--on-bad-tile", "keep")
        expect(code == 65 and len(json.loads(bytes_of("o.mkv.errors.json"))["regions"]) == n, f"byte {at}: {code}: {err}")
    # The same bit, and a checksum that says so; and none.
    good = zlib.crc32(flipped(whole, end - 2)[holds + 6:end])
    data = whole[:holds + 2] + struct.pack("<I", good) + whole[holds + 6:]
    expect(zlib.crc32(whole[holds + 6:end]) == struct.unpack("<I", whole[holds + 2:holds + 6])[0], "this test's own checksum")
    write("right.mkv", flipped(data, end - 2))
    without = bytes_of("none.mkv")
    write("other.mkv", flipped(without, clusters(without)[0][2] - 2))
    for name in ("none.mkv", "right.mkv", "other.mkv"):
        code, frames, _, err = copied(name)
        expect(code == 0 and len(frames) == FRAMES and "checksum" not in err, f"{name}: {code}: {err}")


def a_part_has_its_own_clusters():
    """Those that its frames, and the ones that these are made of, lie in."""
    ffmpeg(*SOURCE, "-frames:v", str(FRAMES), "-c:v", *CODECS["VP9"], "-cluster_time_limit", "300", "film.mkv")
    whole = bytes_of("film.mkv")
    begin, _, end = clusters(whole)[2]
    write("bad.mkv", flipped(whole, (begin + end) // 2))
    all_bad = copied("bad.mkv", "--on-bad-tile", "keep")[2]
    first, last = min(all_bad), max(all_bad)
    expect(first > 10 and last < FRAMES - 10, f"frames {sorted(all_bad)}")
    for a, b, want in ((0, first, 0), (last + 1, FRAMES, 0), (first, first + 1, 65), (last, last + 1, 65), (first - 1, last + 2, 65)):
        code, _, _, err = copied("bad.mkv", "--frames", f"{a}:{b}")
        expect(code == want, f"frames {a} to {b}, {first} to {last} are damaged: {code}: {err}")
        _, _, bad, err = copied("bad.mkv", "--frames", f"{a}:{b}", "--on-bad-tile", "keep")
        expect(bad == {n for n in all_bad if a <= n < b}, f"frames {a} to {b}: listed {sorted(bad)}: {err}")


def what_no_frame_tells_is_of_the_film():
    """A cluster of sound alone, one whose name is another, and what else has a checksum."""
    ffmpeg("-t", "1.6", *SOURCE, "-f", "lavfi", "-i", "sine=duration=6", "-metadata", "title=Rooftiles", "-metadata", "comment=Slates", "-c:v", "mjpeg",
           "-pix_fmt", "yuvj420p", "-c:a", "flac", "-cluster_time_limit", "300", "sound.mkv")
    whole = bytes_of("sound.mkv")
    all_of = elements(whole)
    last = clusters(whole)[-1]
    cases = {"a cluster": flipped(whole, last[2] - 1), "an element of no known name": flipped(whole, clusters(whole)[3][0] + 1, 4),
             "its information": flipped(whole, whole.index(b"Rooftiles")), "its tags": flipped(whole, whole.rindex(b"Slates"))}
    for name, what in ((b"\x11\x4d\x9b\x74", "its seek head"), (b"\x1c\x53\xbb\x6b", "its cues"), (b"\x16\x54\xae\x6b", "its tracks")):
        holds = [e for e in all_of if e[0] == name][0][2]
        cases[what] = flipped(whole, holds + 3, 5)  # of the checksum
    for what, data in cases.items():
        write("bad.mkv", data)
        code, _, err = run(*SAME, "bad.mkv", "-o", "o.mkv")
        wrong = "" if "known name" in what else "wrong checksum of "
        expect(code == 65 and f"{wrong}{what}, bytes " in err and "--allow-truncated" in err, f"{what}: {code}: {err}")
        code, _, err = run(*SAME, "bad.mkv", "-o", "o.mkv", "--allow-truncated")
        expect(code == 0 and what in err and "container is damaged" in err, f"{what}, taken: {code}: {err}")


def more_than_are_kept():
    """Each second cluster of 600: those behind the last one that is kept count as damaged up to the last that is."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-frames:v", "600", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-cluster_time_limit", "20", "many.mkv")
    data = bytes_of("many.mkv")
    all_of = clusters(data)
    expect(len(all_of) == 600, f"{len(all_of)} clusters of 600")
    for _, _, end in all_of[1:580:2]:
        data = flipped(data, end - 2)
    write("bad.mkv", data)
    code, _, bad, err = copied("bad.mkv", "--on-bad-tile", "keep")
    expect(code == 65 and bad == set(range(1, 511, 2)) | set(range(511, 580)), f"{code}: {len(bad)} frames: {err}")


def whole_films_are_fine():
    """Whatever the writer was told."""
    sound = [*SOURCE, "-f", "lavfi", "-i", "sine=duration=2", "-t", "2"]
    h264, vp9 = ["-c:v", "libx264", "-g", "12", "-c:a", "aac"], ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"]
    with open("font.ttf", "wb") as f:
        f.write(bytes(range(256)) * 400)
    for name, words in (("limit.mkv", [*h264, "-cluster_time_limit", "200"]), ("small.mkv", [*h264, "-cluster_size_limit", "2000"]),
                        ("room.mkv", [*h264, "-reserve_index_space", "4000"]), ("cues.mkv", [*h264, "-cues_to_front", "1"]), ("live.mkv", [*h264, "-live", "1"]),
                        ("live.webm", [*vp9, "-live", "1"]), ("dash.webm", [*vp9, "-an", "-dash", "1"]), ("film.webm", vp9), ("none.mkv", [*h264, "-write_crc32", "0"]),
                        ("flac.mkv", ["-c:v", "ffv1", "-c:a", "flac"]), ("font.mkv", [*h264, "-attach", "font.ttf", "-metadata:s:t", "mimetype=font/ttf"])):
        ffmpeg(*sound, *words, name)
    for kind, words in (("matroska", h264), ("webm", vp9)):
        with open("piped." + kind, "wb") as f:
            subprocess.run(["ffmpeg", "-v", "error", *sound, *words, "-f", kind, "-"], stdout=f, stdin=subprocess.DEVNULL, check=True)
    for name in [x for x in sorted(os.listdir(".")) if x != "font.ttf" and x.split(".")[0] in ("limit", "small", "room", "cues", "live", "dash", "film", "none", "flac", "font", "piped")]:
        code, _, _, err = copied(name)
        expect(code == 0 and "damage" not in err and "checksum" not in err, f"{name}: {code}: {err}")


def samples_are_fine(rows):
    for name in [row["file"] for row in rows if row["file"].endswith((".mkv", ".webm"))]:
        code, text, err = run("info", sample(name), "--json")
        note = json.loads(text).get("note", "") if code == 0 else ""
        expect(code == 0 and "checksum" not in note and "damage" not in note, f"{name}: {code}: {note} {err}")


def all_of_it(rows):
    network(3)
    whole_films_are_fine()
    samples_are_fine(rows)
    a_run_ends_in_65_and_says_how_to_go_on()
    a_part_has_its_own_clusters()
    what_no_frame_tells_is_of_the_film()
    more_than_are_kept()
    any_bit_of_a_cluster_is_told()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg"))
