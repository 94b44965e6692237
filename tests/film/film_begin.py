#!/usr/bin/env python3
"""Raw streams that begin amid pictures which need earlier ones: what the decoder makes up of them is damage, and no other frame is.

    film_begin.py TEGULA SOURCE VIDEOS

H.264 and HEVC of closed and open groups of pictures and of an intra refresh, cut behind a key picture, in front of a later one, and at a
byte. The frames of the whole film say which of a cut one are right. With ffmpeg; 77 without it."""
import json
import os
import re
import subprocess
import sys

from film_help import bytes_of, expect, ffmpeg, in_folder, run, sample

FRAMES, GROUP = 40, 12
X264 = f"scenecut=0:bframes=3:b-adapt=0:keyint={GROUP}:min-keyint=1"
X265 = f"log-level=none:scenecut=0:bframes=3:b-adapt=0:keyint={GROUP}:min-keyint={GROUP}"
# A film, its encoder and that one's words; the last: the right frames of a cut one may be said to be damaged, too.
FILMS = (("closed.h264", "libx264", X264 + ":open-gop=0", False), ("open.h264", "libx264", X264 + ":open-gop=1", False),
         ("refresh.h264", "libx264", X264 + ":intra-refresh=1", True), ("closed.hevc", "libx265", X265 + ":open-gop=0", False),
         ("open.hevc", "libx265", X265 + ":open-gop=1", False))


def units(data, hevc):
    """(where it begins, whether it is a picture, whether it is a parameter set that others follow) of each unit."""
    at = [m.start() for m in re.finditer(b"\0\0\1", data)]
    kinds = [data[a + 3] >> 1 & 63 if hevc else data[a + 3] & 31 for a in at]
    return [(a, k < 32 if hevc else k in (1, 5), k == (32 if hevc else 7)) for a, k in zip(at, kinds)]


def cut_ones(name):
    """What is left of a film, by how it is cut."""
    data = bytes_of(name)
    all_units = units(data, name.endswith("hevc"))
    pictures = [i for i, u in enumerate(all_units) if u[1]]
    heads = [u[0] for u in all_units if u[2]]
    first, second = all_units[pictures[0]][0], all_units[pictures[0] + 1][0]
    start = data[:all_units[pictures[0] - 1][0]]  # parameter sets without notes
    return {"behind its first picture": data[:first] + data[second:], "amid a group": start + data[all_units[pictures[GROUP + 4]][0]:],
            "at a byte": start + data[all_units[pictures[5]][0] + 40:], "at a later group": data[heads[1]:]}


def frames(path, *words):
    """Exit code, what was said, frames, and those that are listed."""
    for name in ("o.npy", "o.npy.errors.json"):
        if os.path.exists(name):
            os.remove(name)
    code, _, err = run("copy", path, "-o", "o.npy", *words)
    if not os.path.exists("o.npy"):
        return code, err, [], []
    data = bytes_of("o.npy")
    n = int(data[:128].split(b"'shape': (")[1].split(b",")[0])
    size = (len(data) - 128) // n
    listed = [r["frame"] for r in json.loads(bytes_of("o.npy.errors.json"))["regions"]] if os.path.exists("o.npy.errors.json") else []
    return code, err, [data[128 + i * size:128 + (i + 1) * size] for i in range(n)], listed


def a_cut_begin_is_told(name, more):
    """Frames that the whole film has not are listed, or there are none."""
    code, err, whole, _ = frames(name)
    expect(code == 0 and len(whole) == FRAMES and "damage" not in err, f"{name}, which is whole: {code}, {len(whole)} frames: {err}")
    end = os.path.splitext(name)[1]
    for how, data in cut_ones(name).items():
        with open("cut" + end, "wb") as f:
            f.write(data)
        code, err, there, listed = frames("cut" + end, "--on-bad-tile", "keep", "--allow-truncated")
        wrong = [k for k, frame in enumerate(there) if frame not in whole]
        expect(set(wrong) <= set(listed) and (more or wrong == listed), f"{name} {how}: frames {wrong} are others, {listed} are listed: {err}")
        lost = re.search(r"begins amid pictures that need earlier ones: (\d+) frames missing", err)
        expect((code == 65) == bool(listed), f"{name} {how}, kept: {code}: {err}")
        bad = bool(listed or lost)
        expect(bad == (how != "at a later group" or "closed" not in name), f"{name} {how}: {listed}: {err}")
        expect(there and there[-1] == whole[-1] or more, f"{name} {how}: the last of {len(there)} frames is another")
        code, err, _, _ = frames("cut" + end)
        expect(code == (65 if bad else 0), f"{name} {how}: {code}: {err}")
        expect(not lost or f"of {lost[1]} no frame is made; --allow-truncated takes the {len(there)} frames" in err, f"{name} {how}: {err}")


def what_comes_in_any_order_is_told_alike():
    """HEVC in a Matroska: a packet in its midst is missing; a frame is damaged whether those before it were read or not."""
    words = ["-c:v", "libx265", "-pix_fmt", "yuv420p", "-x265-params", X265 + ":open-gop=0"]
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25", "-frames:v", str(FRAMES), *words, "all.mkv")
    ffmpeg("-i", "all.mkv", "-c", "copy", "-bsf:v", f"noise=drop=eq(n\\,{GROUP + 1})", "gone.mkv")
    listed = frames("gone.mkv", "--on-bad-tile", "keep")[3]
    expect(listed and set(listed) <= set(range(GROUP, 2 * GROUP)), f"a packet is missing: {listed}")
    for k in (2 * GROUP + 3, GROUP, GROUP + 5, 3):
        code, _, err = run("copy", "gone.mkv", "-o", "o.npy", "-y", "--planes", str(k))
        expect((code == 65) == (k in listed), f"frame {k} alone: {code}: {err}")


def sets_in(data, begin=0):
    """Where sequence parameter sets of the main profile begin, those that begin like the first."""
    first = re.compile(rb"\x67\x4d..", re.S).search(data, begin)
    return [m.start() for m in re.finditer(re.escape(first[0]), data) if m.start() >= begin]


def allowing_gaps(data, sets):
    """Those sets say that pictures may be left out, or, where sets[n] is 0, that none may."""
    data = bytearray(data)
    places = sets_in(data)
    expect(len(places) >= len(sets), f"{len(places)} sets of parameters")
    for at, allows in zip(places, sets):
        at, bit = at + 4, 0

        def golomb(at=at):
            nonlocal bit
            zeros = 0
            while not data[at + bit // 8] >> (7 - bit % 8) & 1:
                zeros, bit = zeros + 1, bit + 1
            bit += zeros + 1
            return zeros
        golomb()  # its number
        golomb()  # bits of frame numbers
        if golomb() == 0:  # the order of pictures: 0, and how many bits it has, or 2
            golomb()
        golomb()  # reference frames
        mask = 0x80 >> bit % 8
        data[at + bit // 8] = data[at + bit // 8] & ~mask | (mask if allows else 0)
    return bytes(data)


def sets_of(path):
    """What libavcodec's reader of headers says of each."""
    said = subprocess.run(["ffmpeg", "-v", "trace", "-i", path, "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"], capture_output=True, text=True, check=True).stderr
    return [int(k) for k in re.findall(r"gaps_in_frame_num_allowed_flag +[01] = ([01])", said)]


def what_an_h264_lacks_is_told():
    """Frames that are made of a picture which is missing are others, and damage, all but those that were shown around it; of pictures that no
    other is made of nothing tells."""
    source = ("-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25,noise=alls=12:allf=t", "-frames:v", str(FRAMES))
    found = 0
    for words in ("bframes=3:b-pyramid=normal:b-adapt=0", "bframes=0", "bframes=2:open-gop=1:b-adapt=0"):
        ffmpeg(*source, "-c:v", "libx264", "-profile:v", "main", "-pix_fmt", "yuv420p", "-x264-params", f"scenecut=0:keyint=20:{words}", "all.mkv")
        whole = frames("all.mkv")[2]
        for n in (2, 5, 6, 7, 8, 9, 25):
            ffmpeg("-i", "all.mkv", "-c", "copy", "-bsf:v", f"noise=drop=eq(n\\,{n})", "gone.mkv")
            code, err, there, listed = frames("gone.mkv", "--on-bad-tile", "keep")
            wrong = [k for k, frame in enumerate(there) if frame not in whole]
            expect(len(there) == FRAMES - 1 and set(listed) <= set(wrong) and len(wrong) - len(listed) <= 3, f"{words} without packet {n}: {wrong} are others, {listed} listed")
            expect((code == 65) == bool(wrong), f"{words} without packet {n}: {code}: {err}")
            found += bool(wrong)
            for k in (listed[-1], 3) if listed and n == 6 else ():
                code, _, err = run("copy", "gone.mkv", "-o", "o.npy", "-y", "--planes", str(k))
                expect((code == 65) == (k in listed), f"{words} without packet {n}, frame {k} alone: {code}: {err}")
    expect(found > 9, f"{found} films with other frames")
    ffmpeg(*source, "-c:v", "libx264", "-profile:v", "main", "-pix_fmt", "yuv420p", "-x264-params", "scenecut=0:keyint=20:bframes=0", "all.mkv")
    ffmpeg("-i", "all.mkv", "-c", "copy", "-bsf:v", "noise=drop=eq(n\\,6)", "-write_crc32", "0", "gone.mkv")
    with open("may.mkv", "wb") as f:
        f.write(allowing_gaps(bytes_of("gone.mkv"), [1]))
    expect(sets_of("may.mkv")[:1] == [1], "the header that was made says no gaps")
    code, err, _, listed = frames("may.mkv")
    expect(code == 0 and not listed, f"pictures that may be left out: {code}: {err}")


def headers_in_packets():
    """Sets of parameters in packets say it, too, each up to the next: of a raw stream, a transport stream, and an MP4 whose own header has another or none
    (avc3). A picture of the second group is missing."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25,noise=alls=12:allf=t", "-frames:v", str(FRAMES), "-c:v", "libx264", "-profile:v", "main", "-pix_fmt", "yuv420p",
           "-x264-params", "scenecut=0:keyint=20:bframes=0:aud=1", "all.h264")
    data = bytes_of("all.h264")
    at = [m.start() for m in re.finditer(b"\0\0\0\1\x09", data)] + [len(data)]
    data = data[:at[26]] + data[at[27]:]
    expect(len(at) == FRAMES + 1 and len(sets_in(data)) == 2, f"{len(at) - 1} pictures, {len(sets_in(data))} sets")
    for sets, want in (((0, 0), 65), ((0, 1), 0), ((1, 0), 65), ((1, 1), 0)):
        with open("in.h264", "wb") as f:
            f.write(allowing_gaps(data, sets))
        ffmpeg("-i", "in.h264", "-c", "copy", "in.ts")
        ffmpeg("-i", "in.ts", "-c", "copy", "in.mp4")
        mp4 = bytes_of("in.mp4")
        head = mp4.rindex(b"avcC") + 9  # how many sets it has
        none = mp4.replace(b"avc1", b"avc3")
        with open("none.mp4", "wb") as f:
            f.write(none[:head] + b"\xe0\0" + none[head + 2:])
        last = sets_in(mp4, head)[0]
        with open("other.mp4", "wb") as f:
            f.write(mp4[:last] + allowing_gaps(mp4[last:], [not sets[1]]))
        for name, said in (("in.h264", [*sets]), ("in.ts", [*sets]), ("none.mp4", [*sets]), ("other.mp4", [int(not sets[1]), *sets])):
            got = sets_of(name)
            expect(got[-len(said):] == said, f"{name}, {sets}: its sets say {got}")
            code, err, there, listed = frames(name, "--on-bad-tile", "keep")
            expect(code == want and len(there) == FRAMES - 1 and bool(listed) == (want == 65), f"{name}, {sets}: {code}, not {want}: {listed} listed: {err}")
    code, _, err = run("copy", "none.mp4", "-o", "o.npy", "-y", "--planes", "30")
    expect(code == 0, f"frame 30 alone: {code}: {err}")


def what_is_no_picture_is_none_that_lacks():
    """Ends of a sequence and of the bits, a delimiter: packets of their own, behind the last picture of a whole HEVC."""
    whole = bytes_of("closed.hevc")
    for more in ("000000014801000000014a01", "00000001460150"):
        with open("tail.hevc", "wb") as f:
            f.write(whole + bytes.fromhex(more))
        code, err, _, _ = frames("tail.hevc")
        expect(code == 0, f"{more} behind it: {code}: {err}")


def all_of_it(_):
    for name, codec, words, more in FILMS:
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25,noise=alls=12:allf=t", "-frames:v", str(FRAMES), "-c:v", codec, "-pix_fmt", "yuv420p",
               "-preset", "veryfast", f"-{codec[3:]}-params", words, name)
        a_cut_begin_is_told(name, more)
    what_comes_in_any_order_is_told_alike()
    what_an_h264_lacks_is_told()
    headers_in_packets()
    what_is_no_picture_is_none_that_lacks()
    for name in ("interlaced_mbaff.264", "interlaced_paff_tt.264"):  # a packet for each field
        if os.path.exists(sample(name)):
            code, err, _, _ = frames(sample(name))
            expect(code == 0, f"{name}: {code}: {err}")


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", samples=False))
