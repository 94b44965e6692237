#!/usr/bin/env python3
"""What stands beside the frames of a film that is written, seen by ffprobe: light for a display, and how it is placed for viewing.

    film_side.py TEGULA SOURCE VIDEOS

Mastering display and light levels go with the film, whether the container or only a frame says them; Dolby Vision and
HDR10+ are named as left out. The nine numbers of the display matrix stay as they are, and are moved with the size. Boxes
and SEI are put into films by hand. 77: no samples, or no ffprobe and ffmpeg."""
import json
import os
import re
import struct
import subprocess
import sys
from fractions import Fraction

from film_help import TEGULA, bytes_of, expect, ffmpeg, in_folder, network, run, sample
from seeds import blk, model, node, num, port  # noqa: E402

SOURCE_OF_HDR = ("-f", "lavfi", "-i", "testsrc=size=128x96:rate=5:duration=1", "-pix_fmt", "yuv420p10le", "-color_primaries", "bt2020",
                 "-color_trc", "smpte2084", "-colorspace", "bt2020nc", "-c:v", "libx265")
DISPLAY = "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50):max-cll=1000,400"
LIGHT = {"green_x": 0.265, "green_y": 0.69, "blue_x": 0.15, "blue_y": 0.06, "red_x": 0.68, "red_y": 0.32, "white_point_x": 0.3127,
         "white_point_y": 0.329, "max_luminance": 1000, "min_luminance": 0.005, "max_content": 1000, "max_average": 400}
LUMINANCE = ("max_luminance", "min_luminance")


# ---- Films, by hand ------------------------------------------------------------------------------------------------------


def box(kind, data):
    return struct.pack(">I4s", 8 + len(data), kind) + data


def boxes(data, at, end):
    while at + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, at)
        yield at, size, kind
        at += size


def with_boxes(path, out, more):
    """`more` behind the other boxes of the film's sample entry; the samples lie before all of them."""
    data = bytearray(bytes_of(path))
    at, end, above = 0, len(data), []
    for want in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd"):
        place, size, _ = next(b for b in boxes(data, at, end) if b[2] == want)
        above.append(place)
        at, end = place + 8, place + size
    entry = at + 8  # behind version and count
    above.append(entry)
    place = entry + struct.unpack_from(">I", data, entry)[0]
    data[place:place] = more
    for b in above:
        struct.pack_into(">I", data, b, struct.unpack_from(">I", data, b)[0] + len(more))
    if data.index(b"mdat") > data.index(b"moov"):
        raise ValueError("its samples lie behind its header")
    with open(out, "wb") as f:
        f.write(data)


def with_unit(path, out, unit, last, since=0):
    """A unit before each frame of raw HEVC, or behind it, from one of them on."""
    data, new = bytes_of(path), b""
    starts = [m.start() for m in re.finditer(b"\0\0\1", data)] + [len(data)]
    for a, b in zip(starts, starts[1:]):
        body, frame = data[a:b].rstrip(b"\0"), (data[a + 3] >> 1 & 63) < 32
        since -= frame
        frame &= since < 0
        new += (unit if frame and not last else b"") + body + (unit if frame and last else b"")
    with open(out, "wb") as f:
        f.write(new)


def unit_of(kind, payload):
    safe = re.sub(b"\0\0(?=[\0-\3])", b"\0\0\3", payload)
    return b"\0\0\1" + bytes([kind << 1, 1]) + safe


def hdr10_plus():
    """SMPTE ST 2094-40 of one window, in an SEI."""
    bits = "".join(f"{v:0{n}b}" for v, n in ((1, 2), (400, 27), (0, 1), (9000, 17), (8000, 17), (7000, 17), (500, 17), (0, 4), (5, 10), (0, 1), (0, 1), (0, 1)))
    bits += "0" * (-len(bits) % 8)
    message = bytes([0xB5, 0, 0x3C, 0, 1, 4, 1]) + int(bits, 2).to_bytes(len(bits) // 8, "big")
    return unit_of(39, bytes([4, len(message)]) + message + b"\x80")


def captions():
    """Closed captions of a frame (ATSC A/53), two empty pairs, in an SEI."""
    message = bytes([0xB5, 0, 0x31]) + b"GA94" + bytes([3, 0x42, 0xFF, 0xFC, 0x80, 0x80, 0xFD, 0x80, 0x80, 0xFF])
    return unit_of(39, bytes([4, len(message)]) + message + b"\x80")


def ue(n):
    return f"{n + 1:b}".rjust(2 * (n + 1).bit_length() - 1, "0")


def rpu():
    """What Dolby Vision says of a frame, as profile 8.1 has it: colours are as they are, and no second layer."""
    head = f"{25:08b}{2:06b}{18:011b}{1:04b}{0:04b}1" + "0" + "00" + ue(23) + "01" + "0" + 3 * ue(2) + "0" + "000" + "0" + "1"
    pivots = 3 * (ue(0) + f"{0:010b}{1023:010b}")
    curves = 3 * (ue(0) + ue(0) + "0" + ue(0) + f"{0:023b}" + ue(1) + f"{0:023b}")  # 0 + 1 x
    bits = head + "0" + "0" + ue(0) + ue(0) + ue(0) + pivots + ue(0) + ue(0) + curves
    bits += "0" * (-len(bits) % 8)
    return unit_of(62, int(bits, 2).to_bytes(len(bits) // 8, "big") + bytes(4) + b"\x80")


def dolby(profile, kind, compatible):
    """The record of 24 bytes: version 1.0, level 1, with RPU and base layer."""
    return box(kind, struct.pack(">BBHB19x", 1, 0, profile << 9 | 1 << 3 | 0b101, compatible << 4))


def plain_hevc(out, *more):
    ffmpeg(*SOURCE_OF_HDR, "-x265-params", ":".join(("log-level=none", *more)), out)


def placed(path, out, matrix):
    """These nine numbers in its track's header."""
    data = bytearray(bytes_of(path))
    at = data.index(b"tkhd") + 4
    struct.pack_into(">9i", data, at + (52 if data[at] else 40), *matrix)
    with open(out, "wb") as f:
        f.write(data)


# ---- What others see -----------------------------------------------------------------------------------------------------


def beside(path):
    r = subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-show_streams", "-select_streams", "V:0", path], capture_output=True, text=True,
                       check=False)
    s = (json.loads(r.stdout or "{}").get("streams") or [{}])[0]
    return s, s.get("side_data_list", [])


def light(path):
    got = {}
    for d in beside(path)[1]:
        if "Mastering" in d["side_data_type"] or "light" in d["side_data_type"]:
            got.update({k: float(Fraction(v)) for k, v in d.items() if k != "side_data_type"})
    return got


def numbers(text):
    return [int(n) for row in text.strip().splitlines() for n in row.split(":")[1].split()]


def matrix_of(path):
    for d in beside(path)[1]:
        if "displaymatrix" in d:
            return numbers(d["displaymatrix"])
    return None


def luma(path, turn=""):
    return subprocess.run(["ffmpeg", "-v", "error", "-noautorotate", "-i", path, "-map", "0:V:0", "-vf", turn + "format=gray", "-frames:v", "3", "-f",
                           "rawvideo", "-"], capture_output=True, check=True).stdout


def write(film, out, *words, net=None):
    if os.path.exists(out):
        os.remove(out)
    code, _, err = run("run", "-m", net or network(3), film, "-o", out, "-y", "--normalize", "none", *words)
    expect(code == 0, f"{film} to {out}: {code}: {err}")
    return err


# ---- Light ---------------------------------------------------------------------------------------------------------------


def same_light(film, out, is_, words=""):
    near = is_.keys() == LIGHT.keys() and all(abs(is_[k] - v) < 1e-7 for k, v in LIGHT.items())
    expect(near, f"light of {film} in {out} {words}: {is_}")


def light_goes_with_the_film():
    plain_hevc("sei.mkv", "hdr10=1", DISPLAY)
    expect(not light("sei.mkv"), "only frames say it")
    plain_hevc("plain.mp4")
    mdcv = struct.pack(">8H2I", 13250, 34500, 7500, 3000, 34000, 16000, 15635, 16450, 10000000, 50)
    with_boxes("plain.mp4", "boxes.mp4", box(b"mdcv", mdcv) + box(b"clli", struct.pack(">2H", 1000, 400)))
    same_light("a film by hand", "ffprobe", light("boxes.mp4"))
    for film in ("sei.mkv", "boxes.mp4"):
        for out, *words in (("o.mp4", "--codec", "hevc"), ("o.mp4",), ("o.mov", "--codec", "prores"), ("o.mkv", "--codec", "ffv1"), ("o.webm",),
                            ("o.mov", "--planes", "1-3"), ("o.mp4", "--fps", "10")):
            parts = not words or words[0] not in ("--planes", "--fps")
            err = write(film, out, *words, *(["--strict"] if parts else []))
            same_light(film, out, light(out), words)
            expect("light" not in err, f"{film} to {out}: {err}")
        err = write(film, "o.y4m")
        expect(re.search(r"o\.y4m.*light", err), f"{film} into a .y4m: {err}")
        code, _, err = run("run", "-m", network(3), film, "-o", "s.y4m", "--normalize", "none", "--strict")
        expect(code == 65 and "light" in err, f"{film} into a .y4m, --strict: {code}: {err}")
    write("plain.mp4", "o.mp4", "--codec", "hevc", "--strict")
    expect(not light("o.mp4"), "light of a film that says none")


def half_of_it():
    """A Matroska may say colours without luminance; an MP4 does not."""
    write("sei.mkv", "whole.mkv", "--codec", "hevc")
    ffmpeg("-i", "whole.mkv", "-c", "copy", "-write_crc32", "0", "bare.mkv")
    data = bytes_of("bare.mkv")
    for key in (b"\x55\xD9\x88", b"\x55\xDA\x88"):  # LuminanceMax, LuminanceMin: a Void of the same size
        expect(data.count(key) == 1, f"{key.hex()} in a Matroska")
        at = data.index(key)
        data = data[:at] + b"\xEC\x89" + bytes(9) + data[at + 11:]
    with open("half.mkv", "wb") as f:
        f.write(data)
    write("half.mkv", "o.mkv", "--codec", "ffv1", "--strict")
    expect(light("o.mkv").keys() == LIGHT.keys() - set(LUMINANCE), f"colours alone: {light('o.mkv')}")
    err = write("half.mkv", "o.mp4")
    expect("without its luminance: it is left out" in err and light("o.mp4").keys() == {"max_content", "max_average"}, f"colours alone, mp4: {err}")


def what_is_said_of_each_scene_is_named():
    plain_hevc("raw.hevc", "repeat-headers=1")
    with_unit("raw.hevc", "plus.hevc", hdr10_plus(), last=False)
    with_unit("raw.hevc", "rpu.hevc", rpu(), last=True)
    with_boxes("plain.mp4", "five.mp4", dolby(5, b"dvcC", 0))
    with_boxes("plain.mp4", "eight.mp4", dolby(8, b"dvvC", 1))
    for film, word, key in (("plus.hevc", r"HDR10\+", "hdr10_plus"), ("rpu.hevc", "Dolby Vision", "dolby_vision"),
                            ("five.mp4", "Dolby Vision.*look wrong", "dolby_vision"), ("eight.mp4", "Dolby Vision", "dolby_vision")):
        told = json.loads(run("info", film, "--json")[1])["film"]
        expect(told["hdr"] == {key: True}, f"info of {film}: {told['hdr']}")
        for out in ("o.mp4", "o.mkv", "o.y4m"):
            err = write(film, out)
            expect(re.search(f"warning: {out}: .*{word}.*", err), f"{film} to {out}: {err}")
        expect(("look wrong" in err) == (film == "five.mp4"), f"{film}: {err}")
        code, _, err = run("run", "-m", network(3), film, "-o", "s.mp4", "--normalize", "none", "--strict")
        expect(code == 65 and re.search(word, err) and not os.path.exists("s.mp4"), f"{film}, --strict: {code}: {err}")
    expect("times of their own" not in write("raw.hevc", "o.y4m"), "times of a film that has none")
    err = write("raw.hevc", "o.mp4", "--strict")
    expect("Dolby" not in err and "HDR10" not in err, f"neither of them: {err}")


def what_changes_midway_is_named():
    """Two raw films behind each other, of other tags; captions of later frames also where frames go through a pipe."""
    for name, more in (("a", "tff=0"), ("b", "tff=0:colormatrix=bt709"), ("i", "tff=1")):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=2", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-x264-params", more, f"{name}.264")
    for other, word in (("b", "another range, matrix"), ("i", "rows of two moments"), ("a", None)):
        with open("both.264", "wb") as f:
            f.write(bytes_of("a.264") + bytes_of(other + ".264"))
        err = write("both.264", "o.mkv")
        expect(("later frames say" in err) == (word is not None) and (word or "") in err, f"a and {other}: {err}")
    what_changes_of_viewing_is_named()
    plain_hevc("raw.hevc", "repeat-headers=1")
    with_unit("raw.hevc", "late.hevc", captions(), last=False, since=3)
    for more, code in (((), 0), (("--strict",), 65)):
        p = subprocess.run([TEGULA, "run", "-m", network(3), "late.hevc", "-o", "-", "--normalize", "none", *more], capture_output=True, check=False)
        expect(p.returncode == code and b"closed captions" in p.stderr, f"into a pipe {more}: {p.returncode}: {p.stderr}")


def what_changes_of_viewing_is_named():
    """Shape of a pixel and rotation of raw films and transport streams behind each other; and what a container says of all frames."""
    turned = ["-bsf:v", "h264_metadata=display_orientation=insert:rotate=90"]
    for name, more in (("wide", ["-vf", "setsar=4/3"]), ("square", ["-vf", "setsar=1"]), ("turned", turned), ("none", [])):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=2", *more, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-x264-params", "tff=0", f"{name}.264")
    for name in ("4:3", "16:9"):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=25:duration=1", "-c:v", "mpeg2video", "-g", "6", "-aspect", name, name.replace(":", "to") + ".ts")
    aspect, turn = "another shape of a pixel", "turned or mirrored otherwise"
    for first, second, word in (("none.264", "wide.264", aspect), ("wide.264", "none.264", aspect), ("none.264", "square.264", None),
                                ("wide.264", "wide.264", None), ("none.264", "turned.264", turn), ("turned.264", "none.264", turn),
                                ("turned.264", "turned.264", None), ("4to3.ts", "16to9.ts", aspect), ("4to3.ts", "4to3.ts", None)):
        both = "both" + os.path.splitext(first)[1]
        with open(both, "wb") as f:
            f.write(bytes_of(first) + bytes_of(second))
        err = write(both, "o.mp4")
        expect(("later frames say" in err) == (word is not None) and (word or "") in err, f"{first} and {second}: {err}")
        code, _, err = run("run", "-m", network(3), both, "-o", "s.mp4", "-y", "--normalize", "none", "--strict")
        expect(code == (65 if word else 0), f"{first} and {second}, --strict: {code}: {err}")
    with open("both.txt", "w", encoding="utf-8") as f:
        for sar in (1, 2):
            f.write(f"file sar{sar}.ts\n")
            ffmpeg("-f", "lavfi", "-i", f"testsrc=size=64x48:rate=5:duration=2,setsar={sar}", "-c:v", "libx264", "-pix_fmt", "yuv420p", f"sar{sar}.ts")
    ffmpeg("-f", "concat", "-i", "both.txt", "-c", "copy", "-aspect", "2:1", "said.mkv")
    err = write("said.mkv", "o.mp4")
    expect("later frames" not in err, f"a container says the shape of all: {err}")


def what_a_track_is_for_stays():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-f", "lavfi", "-i", "sine=duration=1",
           "-map", "0", "-map", "1", "-map", "2", "-c:v", "ffv1", "-c:a", "aac", "-disposition:v:0", "original+hearing_impaired", "-disposition:a:0", "0",
           "-disposition:a:1", "default+comment", "for.mkv")
    write("for.mkv", "o.mkv", "--codec", "ffv1")
    was, is_ = ([{k for k, v in s["disposition"].items() if v} for s in json.loads(subprocess.run(
        ["ffprobe", "-v", "error", "-of", "json", "-show_streams", film], capture_output=True, check=True).stdout)["streams"]] for film in ("for.mkv", "o.mkv"))
    expect(was == is_ and {"original", "hearing_impaired"} <= was[0] and "comment" in was[2], f"{was} became {is_}")
    for out, lost in (("o.mkv", []), ("o.mov", ["comment", "hearing_impaired", "original"]), ("o.mp4", ["original"])):
        err = write("for.mkv", out)
        expect(sorted(re.findall(r'is marked "(\w+)", which \w+ does not say', err)) == lost, f"into {out}: {err}")
    code, _, err = run("run", "-m", network(3), "for.mkv", "-o", "s.mov", "--normalize", "none", "--strict")
    expect(code == 65 and "comment" in err, f"into a .mov, --strict: {code}: {err}")
    write("o.mp4", "back.mkv", "--strict")  # an MP4 says captions for the hearing impaired


def words_of(path):
    said = subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-show_streams", path], capture_output=True, check=True).stdout
    return [s.get("tags", {}) for s in json.loads(said)["streams"]]


def a_track_keeps_its_language_and_title():
    """libavformat writes no language into a .mov but those of the old list, and reads no title of a track."""
    tongues, titles = ("gsw", "deu", "hat", "eng"), ("Bild", "Kommentar", None, "Ton \u2013 drei")
    words = [w for k, t in enumerate(tongues) for w in (f"-metadata:s:{k}", f"language={t}")] + [
        w for k, t in enumerate(titles) if t for w in (f"-metadata:s:{k}", f"title={t}")]
    sounds = [w for _ in range(3) for w in ("-f", "lavfi", "-i", "sine=duration=1")]
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", *sounds, "-map", "0", "-map", "1", "-map", "2", "-map", "3", "-c:v", "libx264", "-c:a",
           "aac", *words, "said.mkv")
    for film in ("said.mkv", "o.mp4", "o.mov"):
        for out in ("to.mov", "to.mp4", "to.mkv"):
            err = write(film, out, "--strict")
            spoken = [t.get("language", "eng") for t in words_of(out)]  # a Matroska need not say this one
            expect(tuple(spoken) == tongues if out != "to.mkv" else spoken[1] in ("deu", "ger"), f"{film} to {out}: languages {spoken}: {err}")
            told = json.loads(run("info", "--json", out)[1])["film"]["tracks"]
            expect(tuple(t.get("title") for t in told) == titles, f"{film} to {out}: titles {told}")
        if film == "said.mkv":
            os.replace("to.mp4", "o.mp4")
            os.replace("to.mov", "o.mov")
    expect([t.get("title") for t in words_of("to.mkv")] == list(titles), f"titles as ffprobe reads them: {words_of('to.mkv')}")
    ffmpeg("-i", "said.mkv", "-map", "0", "-c", "copy", "-metadata:s:1", "language=pt-BR", "region.mkv")
    for out, lost in (("to.mp4", True), ("to.mov", True), ("to.mkv", False)):
        err = write("region.mkv", out)
        expect(('in the language "pt-BR"' in err) == lost, f"a language of a region into {out}: {err}")


def words_about_the_film_stay_in_a_mov():
    """QuickTime has codes for few: then all are said by their names. What mkvmerge counted is not true of other packets."""
    words = {"title": "A", "description": "B", "synopsis": "C", "composer": "D", "keywords": "E", "show": "F", "my_word": "G"}
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "libx264", *(w for k, v in words.items() for w in ("-metadata", f"{k}={v}")),
           "-metadata:s:v", "BPS=1234", "-metadata:s:v", "_STATISTICS_TAGS=BPS", "-metadata:s:v", "NUMBER_OF_FRAMES-eng=999", "words.mkv")
    for out in ("w.mov", "w.mkv"):
        write("words.mkv", out, "--strict")
        got = json.loads(subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-show_format", out], capture_output=True, check=True).stdout)["format"]["tags"]
        got = {k.lower(): v for k, v in got.items()}
        expect({k: got.get(k) for k in words} == words, f"{out}: {got}")
        counted = [k for k in words_of(out)[0] if k.startswith(("BPS", "NUMBER", "_STAT"))]
        expect(not counted, f"{out}: {counted}")


def sound_ends_as_early():
    """Opus has packets of 20 ms: of the last one some samples are not heard. A Matroska says how many, an MP4 that it is shorter."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-f", "lavfi", "-i", "sine=duration=1:sample_rate=48000", "-c:v", "ffv1", "-c:a",
           "libopus", "opus.mkv")

    def last(film):
        said = subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-select_streams", "a", "-show_packets", film], capture_output=True, check=True).stdout
        p = json.loads(said)["packets"][-1]
        return float(p["duration_time"]), next((int(d["discard_padding"]) for d in p.get("side_data_list", []) if "discard_padding" in d), 0)
    unheard = last("opus.mkv")[1]
    expect(0 < unheard < 960, f"samples that are not heard: {unheard}")
    write("opus.mkv", "opus_to.mkv", "--codec", "ffv1")
    write("opus.mkv", "opus_to.mp4")
    expect(last("opus_to.mkv")[1] == unheard, f"in a .mkv: {last('opus_to.mkv')}")
    expect(abs(last("opus_to.mp4")[0] - (960 - unheard) / 48000) < 1e-5, f"in an .mp4: {last('opus_to.mp4')}")


def a_track_of_another_day_is_named():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "libx264", "-metadata", "creation_time=2020-01-02T03:04:05Z", "day.mp4")
    expect("made at" not in write("day.mp4", "o.mkv", "--strict"), "all of one day")
    data = bytearray(bytes_of("day.mp4"))
    at = data.index(b"mdhd") + 8
    struct.pack_into(">I", data, at, struct.unpack_from(">I", data, at)[0] + 86400)
    with open("days.mp4", "wb") as f:
        f.write(data)
    for out in ("o.mkv", "o.mp4"):
        err = write("days.mp4", out)
        expect("track 0 (video) was made at 2020-01-03T03:04:05" in err, f"{out}: {err}")


def a_shape_that_a_webm_cannot_say_is_named():
    """It says how wide frames are shown, in whole pixels."""
    for width, out, shape, told in ((90, "o.webm", "131:90", "131 of them, not 130.91"), (88, "o.webm", "16:11", None), (90, "o.mkv", "16:11", None)):
        ffmpeg("-f", "lavfi", "-i", f"testsrc=size={width}x48:rate=5:duration=1", "-vf", "setsar=16/11", "-c:v", "ffv1", "shape.mkv")
        err = write("shape.mkv", out, "--preset-speed", "ultrafast")
        said = subprocess.run(["ffprobe", "-v", "error", "-of", "csv=p=0", "-show_entries", "stream=sample_aspect_ratio", out], capture_output=True, text=True,
                              check=True).stdout.strip()
        expect(said == shape and ("whole columns" in err) == (told is not None) and (told or "") in err, f"{width} columns into {out}: {said}: {err}")
        code, _, err = run("run", "-m", network(3), "shape.mkv", "-o", "s" + out, "--normalize", "none", "--strict", "-y", "--preset-speed", "ultrafast")
        expect(code == (65 if told else 0), f"{width} columns into {out}, --strict: {code}: {err}")


def attached_files_stay():
    """Of any size, beside each other and a cover; only of what is copied are their bytes read."""
    files = {"a.bin": b"1", "b.ttf": os.urandom(4095), "c.ttf": os.urandom(4096), "d.ttf": os.urandom(3 << 20), "e.txt": b"font " * 4000}
    attached = []
    for i, (name, data) in enumerate(files.items()):
        with open(name, "wb") as f:
            f.write(data)
        attached += ["-attach", name, f"-metadata:s:t:{i}", "mimetype=" + ("application/octet-stream" if name.endswith(("bin", "txt")) else "font/ttf")]
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-frames:v", "1", "cover.png")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", *attached, "-attach", "cover.png", "-metadata:s:t:5",
           "mimetype=image/png", "files.mkv")
    told = json.loads(run("info", "files.mkv", "--json")[1])["film"]
    expect([(t["kind"], t.get("width")) for t in told["tracks"][-6:]] == [("attachment", None)] * 5 + [("cover", 64)], f"{told['tracks']}")
    err = write("files.mkv", "o.mkv", "--codec", "ffv1")
    expect("a.bin" not in err and "attachment" not in err, err)
    for i, (name, data) in enumerate(files.items()):
        subprocess.run(["ffmpeg", "-v", "quiet", "-y", f"-dump_attachment:t:{i}", "dumped", "-i", "o.mkv"], check=False)
        expect(bytes_of("dumped") == data, f"{name} is another")
        os.remove("dumped")
    err = write("files.mkv", "o.mp4")
    expect(len(re.findall("attachment.*does not hold it", err)) == 5, err)
    write("o.mp4", "back.mkv", "--codec", "ffv1")  # a cover of an MP4 has no name
    for film in ("o.mkv", "o.mp4", "back.mkv"):
        tracks = json.loads(run("info", film, "--json")[1])["film"]["tracks"]
        expect([(t["kind"], t["width"]) for t in tracks if t["kind"] == "cover"] == [("cover", 64)], f"the cover of {film}: {tracks}")
        expect(bytes_of("cover.png") in bytes_of(film), f"the cover in {film} is another")


def what_only_later_frames_have_is_named_when_they_were_read():
    plain_hevc("raw.hevc", "repeat-headers=1")
    for unit, word in ((hdr10_plus(), r"HDR10\+"), (captions(), "closed captions")):
        with_unit("raw.hevc", "all.hevc", unit, last=False)
        with_unit("raw.hevc", "late.hevc", unit, last=False, since=3)
        for film, out in (("all.hevc", "o.mp4"), ("late.hevc", "o.mkv"), ("late.hevc", "o_%02d.png")):
            err = write(film, out)
            expect(len(re.findall(f"warning: .*left out: .*{word}", err)) == 1, f"{film} to {out}: {err}")
        words = ["run", "-m", network(3), "late.hevc", "-o", "s.mp4", "--normalize", "none"]
        code, _, err = run(*words, "--strict")
        expect(code == 65 and "--strict" in err and re.search(word, err) and not os.path.exists("s.mp4"), f"late, --strict: {code}: {err}")
        code, _, err = run(*words)  # all frames are there
        expect(code == 0 and "continuing" in err and re.search(word, err), f"late, without --strict: {code}: {err}")
        os.remove("s.mp4")


def what_a_display_does_with_frames_is_named():
    """Two views in a frame; a sphere: a Matroska keeps the first one's word, and nothing else has a place for them."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-metadata:s:v:0", "stereo_mode=left_right", "two.mkv")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "libx264", "-pix_fmt", "yuv420p", "flat.mp4")
    sv3d = box(b"sv3d", box(b"svhd", bytes(4) + b"by hand\0") + box(b"proj", box(b"prhd", bytes(16)) + box(b"equi", bytes(20))))
    with_boxes("flat.mp4", "sphere.mp4", sv3d)
    for film, out, word in (("two.mkv", "o.mp4", "two views"), ("two.mkv", "o.mkv", None), ("sphere.mp4", "o.mp4", "a sphere"), ("sphere.mp4", "o.mkv", "a sphere"),
                            ("flat.mp4", "o.mkv", None)):
        err = write(film, out)
        expect(re.search(rf"warning: {out}: .*{word}.*left out", err) if word else "two views" not in err and "a sphere" not in err, f"{film} to {out}: {err}")
    code, _, err = run("run", "-m", network(3), "sphere.mp4", "-o", "strict.mp4", "--normalize", "none", "--strict")
    expect(code == 65 and "a sphere" in err and not os.path.exists("strict.mp4"), f"--strict: {code}: {err}")
    write("two.mkv", "o.mkv")
    expect("stereo_mode=left_right" in subprocess.run(["ffprobe", "-v", "error", "-show_streams", "o.mkv"], capture_output=True, text=True, check=True).stdout,
           "two views in a Matroska")


# ---- The display matrix --------------------------------------------------------------------------------------------------


def larger(name, down, right):
    """A network that repeats each pixel."""
    weights = b"".join(struct.pack("<f", float(i == k)) * (down * right) for i in range(3) for k in range(3))
    tensor = b"".join(num(1, d) for d in (3, 3, down, right)) + num(2, 1) + blk(8, "w") + blk(9, weights)
    shape = ["N", 3, "H", "W"]
    with open(name, "wb") as f:
        f.write(model([node("ConvTranspose", ["x", "w"], ["y"], kernel_shape=[down, right], strides=[down, right])], [tensor], [port("x", shape)],
                      [port("y", shape)]))
    return name


ONE, FULL = 1 << 16, 1 << 30


def the_matrix_stays():
    w, h = (int(beside(sample("rot0.mov"))[0][k]) for k in ("width", "height"))
    by_hand = {"hflip.mov": ((-1, 0, 0, 1, w, 0), "hflip,"), "vflip.mov": ((1, 0, 0, -1, 0, h), "vflip,"),
               "transpose.mov": ((0, 1, 1, 0, 0, 0), "transpose=0,"), "transverse.mov": ((0, -1, -1, 0, h, w), "transpose=3,"),
               "moved.mov": ((1, 0, 0, 1, 7, 9), "")}
    for name, ((a, b, c, d, x, y), _) in by_hand.items():
        placed(sample("rot0.mov"), name, (a * ONE, b * ONE, 0, c * ONE, d * ONE, 0, x * ONE, y * ONE, FULL))
        expect(matrix_of(name) == [a * ONE, b * ONE, 0, c * ONE, d * ONE, 0, x * ONE, y * ONE, FULL], f"{name} by hand: {matrix_of(name)}")
    for film in [sample(f"rot{n}.mov") for n in (90, 180, 270)] + list(by_hand):
        was = matrix_of(film)
        for out in ("o.mp4", "o.mov"):
            write(film, out)
            expect(matrix_of(out) == was, f"{film} to {out}: {was} became {matrix_of(out)}")
        write(film, "o.mov", net=larger("two.onnx", 2, 2))
        twice = was[:6] + [2 * was[6], 2 * was[7], was[8]]
        expect(matrix_of("o.mov") == twice, f"{film}, twice as large: {was} became {matrix_of('o.mov')}")
        write(film, "o.mov", net=larger("wide.onnx", 1, 3))  # of what is seen
        wide = was[:6] + [3 * was[6], was[7], was[8]]
        expect(matrix_of("o.mov") == wide, f"{film}, three times as wide: {was} became {matrix_of('o.mov')}")
    write(sample("rot0.mov"), "o.mov")
    expect(matrix_of("o.mov") is None, "a matrix of a film without one")
    for film, (_, turn) in by_hand.items():
        err = write(film, "o.mkv", "--codec", "ffv1")
        was, is_ = luma(film, turn), luma("o.mkv")
        off = sum(abs(a - b) for a, b in zip(was, is_)) / len(was)
        expect(matrix_of("o.mkv") is None and len(was) == len(is_) and off < 1, f"{film} to mkv: {off} off, {matrix_of('o.mkv')}")
        expect(("its pixels are turned" in err) == (film != "moved.mov"), f"{film} to mkv: {err}")


def an_angle_is_told():
    for name, (a, b, c, d) in (("angle.mov", (46341, 46341, -46341, 46341)), ("scaled.mov", (2 * ONE, 0, 0, ONE))):
        placed(sample("rot0.mov"), name, (a, b, 0, c, d, 0, 0, 0, FULL))
        err = write(name, "o.mov", "--strict")
        expect(matrix_of("o.mov") == [a, b, 0, c, d, 0, 0, 0, FULL] and "angles" not in err, f"{name}: {matrix_of('o.mov')}: {err}")
        expect("more than right angles" in write(name, "o.mkv"), f"{name} into mkv, and nobody says so")
    expect("angles" not in write(sample("rot90.mov"), "o.mkv"), "a right angle")


def a_frame_may_say_it():
    """Raw H.264 with an SEI of its orientation."""
    for i, (how, turn) in enumerate((("rotate=90", "transpose=2,"), ("rotate=180", "hflip,vflip,"), ("flip=horizontal", "hflip,"))):
        film = f"said{i}.264"
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=128x96:rate=5:duration=1", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-bsf:v",
               f"h264_metadata=display_orientation=insert:{how}", film)
        r = subprocess.run(["ffprobe", "-v", "error", "-of", "json", "-show_frames", "-read_intervals", "%+#1", film], capture_output=True, text=True,
                           check=True)
        sides = json.loads(r.stdout)["frames"][0]["side_data_list"]
        was = numbers([d["displaymatrix"] for d in sides if "displaymatrix" in d][0])
        write(film, "o.mp4")
        expect(matrix_of(film) is None and matrix_of("o.mp4") == was, f"{how}: {was} became {matrix_of('o.mp4')}")
        write(film, "o.mkv", "--codec", "ffv1")
        seen, is_ = luma(film, turn), luma("o.mkv")
        off = sum(abs(a - b) for a, b in zip(seen, is_)) / len(seen)
        expect(len(seen) == len(is_) and off < 1, f"{how}, into mkv: {off} off")


def all_of_it(rows):
    del rows
    light_goes_with_the_film()
    half_of_it()
    what_is_said_of_each_scene_is_named()
    what_only_later_frames_have_is_named_when_they_were_read()
    what_changes_midway_is_named()
    what_a_track_is_for_stays()
    a_track_keeps_its_language_and_title()
    words_about_the_film_stay_in_a_mov()
    sound_ends_as_early()
    a_track_of_another_day_is_named()
    a_shape_that_a_webm_cannot_say_is_named()
    attached_files_stay()
    what_a_display_does_with_frames_is_named()
    the_matrix_stays()
    an_angle_is_told()
    a_frame_may_say_it()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", "ffprobe"))
