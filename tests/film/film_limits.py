#!/usr/bin/env python3
"""What a film may ask of its reader: films made here that name more than they hold, or another file.

    film_limits.py TEGULA SOURCE VIDEOS FILM_RAW PLUGIN

A header of two kilobytes can name 2^32 samples in four ways; each is refused before memory is taken for them. 65 tracks are refused
by their number, as is what comes to no pictures. Playlists and descriptions of streams are no films, for the plugin either, which
is asked without the command. With ffmpeg: a decoder gets no more frames than the plan counts, what was made of a damaged frame is
damaged, and a Matroska that is cut is told so."""
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

from film_help import SANITIZED, TEGULA, WRONG, expect, network, sample
from seeds import box, ffmpeg  # noqa: E402

RAW, PLUGIN = (os.path.abspath(a) for a in sys.argv[4:6])
MIB = 600 if SANITIZED else 250
HEAD = box(b"ftyp", b"isom", bytes(4))


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)
    return name


def words32(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def call(*words):
    """(exit code, stdout, stderr, MiB)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return p.returncode, out.read().decode(), err.read().decode(), usage.ru_maxrss >> 10


def refused(name, data, *said):
    code, _, err, mib = call(TEGULA, "info", put(name, data))
    expect(code == 65 and all(w in err for w in said) and mib < MIB, f"{name}: exit {code}, {mib} MiB: {err}")


# ---- More than it holds --------------------------------------------------------------------------------------------------


def track(number, kind, samples, size=1, times=((1, 1),), chunks=1, in_chunk=1, edits=0):
    """A track of samples of one size; `times`: (how many, ticks) of them."""
    entry = box(b"mp4a", bytes(28)) if kind == b"soun" else box(b"avc1", bytes(24), struct.pack(">HH", 64, 48), bytes(50))
    stbl = box(b"stbl", box(b"stsd", words32(0, 1), entry), box(b"stts", words32(0, len(times)), *(words32(*t) for t in times)),
               box(b"stsc", words32(0, 1, 1, in_chunk, 1)), box(b"stsz", words32(0, size, samples)),
               box(b"stco", words32(0, chunks), words32(*[40] * chunks)))
    shown = box(b"edts", box(b"elst", words32(0, edits), *[words32(samples, 0, 0x10000)] * edits)) if edits else b""
    return box(b"trak", box(b"tkhd", bytes(12), words32(number), bytes(68)), shown,
               box(b"mdia", box(b"mdhd", bytes(12), words32(1000, samples, 0)), box(b"hdlr", bytes(8), kind, bytes(13)), box(b"minf", stbl)))


def film(*tracks, more=b""):
    return HEAD + box(b"moov", box(b"mvhd", bytes(12), words32(1000, 1000), bytes(80)), *tracks) + more


def more_samples_than_bytes():
    refused("samples.mp4", film(track(1, b"vide", 80 << 20, times=((80 << 20, 1),), in_chunk=80 << 20)), "names", "samples")
    refused("sound.mp4", film(track(1, b"soun", 9, chunks=400, in_chunk=1 << 25)), "names", "samples")
    refused("edits.mp4", film(track(1, b"vide", 1 << 20, times=((1 << 20, 1),), in_chunk=1 << 20, edits=100)), "edits")
    refused("free.mp4", HEAD + box(b"free", film(track(1, b"vide", 80 << 20, in_chunk=80 << 20))[len(HEAD) + 8:]), "names", "samples")
    run = box(b"moof", box(b"traf", box(b"tfhd", words32(0x38, 1, 1, 2, 0)), box(b"trun", words32(0, 80 << 20))))
    refused("fragment.mp4", film(track(1, b"vide", 0), box(b"mvex", box(b"trex", words32(0, 1, 1, 1, 0, 0))), more=run), "names", "samples")
    refused("packed.mov", HEAD + box(b"moov", box(b"cmov", bytes(40))), "compressed")


def sound_of_a_mov_has_samples_of_a_tick():
    """Its `minf` has a `hdlr` of its own, of where its data are."""
    program = shutil.which("ffmpeg")
    if program:
        subprocess.run([program, "-v", "error", "-y", "-f", "lavfi", "-i", "color=size=16x16:rate=1:duration=720", "-f", "lavfi", "-i",
                        "anullsrc=r=48000:cl=mono:d=720", "-c:v", "mjpeg", "-c:a", "pcm_u8", "long.mov"], check=True)
        code, _, err, _ = call(TEGULA, "info", "long.mov")
        expect(code == 0, f"720 s of sound: {code}: {err}")
        os.unlink("long.mov")


def element(name, *inside):
    data = b"".join(inside)
    return name + struct.pack(">Q", 1 << 56 | len(data)) + data


HOLE = b"here is a hole.."  # in place of so many bytes of 0, which take no memory of this test's, and no room


def with_hole(name, data, n, heads, form=">I", before=-4):
    """The file `name`; the sizes of the parts `heads` that the hole lies in stand `before` bytes behind their names."""
    data, hole = bytearray(data), data.index(HOLE)
    for head in heads:
        at = data.rindex(head, 0, hole) + before
        size, = struct.unpack_from(form, data, at)
        struct.pack_into(form, data, at, size + n - len(HOLE))
    with open(name, "wb") as f:
        f.write(data[:hole])
        f.seek(n, os.SEEK_CUR)
        f.write(data[hole + len(HOLE):])
        f.truncate(max(f.tell(), hole + n))


def headers_are_weighed():
    """Of a codec, 120 MiB: libavformat would hold three copies before anybody could ask. A cover of 400 MiB is not read to its end."""
    n = 120 << 20
    one = track(1, b"vide", 1)
    codec = box(b"avc1", bytes(24), struct.pack(">HH", 64, 48), bytes(50), box(b"avcC", HOLE))
    at = one.index(b"stsd") - 4
    big = one[:at] + box(b"stsd", words32(0, 1), codec) + one[at + struct.unpack_from(">I", one, at)[0]:]
    more = len(big) - len(one)
    for head in (b"trak", b"mdia", b"minf", b"stbl"):
        place = big.index(head) - 4
        big = big[:place] + struct.pack(">I", struct.unpack_from(">I", big, place)[0] + more) + big[place + 4:]
    with_hole("header.mp4", film(big), n, (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"avc1", b"avcC"))
    video = element(b"\xae", element(b"\xd7", b"\1"), element(b"\x73\xc5", b"\1"), element(b"\x83", b"\1"), element(b"\x86", b"V_MPEG4/ISO/AVC"),
                    element(b"\xe0", element(b"\xb0", b"\x40"), element(b"\xba", b"\x30")), element(b"\x63\xa2", HOLE))
    whole = element(b"\x1a\x45\xdf\xa3", element(b"\x42\x82", b"matroska")) + element(b"\x18\x53\x80\x67", element(b"\x16\x54\xae\x6b", video))
    with_hole("header.mkv", whole, n, (b"\x18\x53\x80\x67\1", b"\x16\x54\xae\x6b\1"), ">I", 8)
    lists = struct.pack("<4sI4s", b"LIST", 12 + len(HOLE), b"hdrl") + struct.pack("<4sI", b"strf", len(HOLE)) + HOLE
    with_hole("header.avi", struct.pack("<4sI4s", b"RIFF", 4 + len(lists), b"AVI ") + lists, n, (b"RIFF", b"LIST", b"strf"), "<I", 4)
    with_hole("cover.mp4", film(track(1, b"vide", 1), box(b"udta", box(b"meta", bytes(4), box(b"ilst", box(b"covr", box(b"data", words32(13, 0), HOLE)))))),
              400 << 20, (b"moov", b"udta", b"meta", b"ilst", b"covr", b"data"))
    for name in ("header.mp4", "header.mkv", "header.avi", "cover.mp4"):
        code, _, err, mib = call(TEGULA, "info", name)
        cover = name == "cover.mp4"
        says = "its headers have no end" if cover else "headers of its tracks have 120.00 MiB: 16.00 MiB are read at most"
        expect(code == 65 and says in err and mib < MIB + 272 * cover, f"{name}: exit {code}, {mib} MiB: {err}")
        os.unlink(name)


def tracks_are_counted():
    refused("65.mp4", film(*(track(i + 1, b"vide", 1) for i in range(65))), "65 tracks", "64")
    code, _, err, _ = call(TEGULA, "info", put("2000.mp4", film(*(track(i + 1, b"vide", 1) for i in range(2000)))))
    expect(code in (65, 71), f"2000 tracks: exit {code}: {err}")
    code, _, err, _ = call(TEGULA, "info", put("64.mp4", film(*(track(i + 1, b"vide", 1) for i in range(64)))))
    expect(code == 65 and "tracks" not in err, f"64 tracks: exit {code}: {err}")


def large_frames_take_no_memory(gif):
    refused("large.gif", gif[:6] + struct.pack("<HH", 16000, 16000) + gif[10:], "large.gif")


def frames_are_those_of_the_plan():
    """H.264 of which a second header asks for sixteen frames to refer to, where the first one said one. ffmpeg decodes it."""
    for name, refs in (("one.h264", 1), ("two.h264", 16)):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=320x192:rate=25", "-frames:v", "25", "-c:v",
                        "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-x264-params",
                        f"ref={refs}:bframes=0:keyint=25:scenecut=0", name], check=True)
    with open("one.h264", "rb") as one, open("two.h264", "rb") as two:
        put("both.h264", one.read() + two.read())
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "h264", "-i", "both.h264", "-c", "copy", "both.mp4"], check=True)
    code, _, err, _ = call(TEGULA, "copy", "both.mp4", "-o", "a.npy", "-y", "--planes", "0-24")
    expect(code == 0, f"before the second header: exit {code}: {err}")
    for name in ("both.mp4", "both.h264"):
        code, _, err, _ = call(TEGULA, "copy", name, "-o", "a.npy", "-y", "--planes", "0-49")
        expect(code == 65 and "more frames at once" in err, f"{name}, behind it: exit {code}: {err}")


def narrow_films_have_padded_rows():
    """Rows of 16 pixels take as much as those of 128, and H.264 may refer to sixteen frames."""
    for size, codec in (("144x1080", ["libx264", "-x264-params", "ref=16:bframes=0:keyint=99:scenecut=0"]), ("16x1080", ["libx264"]),
                        ("16x1080", ["mpeg4", "-bf", "2"]), ("16x1080", ["ffv1"])):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v", "30", "-pix_fmt", "yuv420p",
                        "-c:v", *codec, "narrow.mkv"], check=True)
        code, _, err, _ = call(TEGULA, "copy", "narrow.mkv", "-o", "a.npy", "-y", "--planes", "0-29")
        expect(code == 0, f"{codec[0]}, {size}: {code}: {err}")


def tracks_beside_the_film_are_counted():
    """libavformat opens a decoder for each: what 31 tracks more take is no more than the plan has for them."""
    for codec, channels in (("aac", 2), ("aac", 6), ("ac3", 2), ("libopus", 2)):
        took, lines = [], []
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1", "-f", "lavfi", "-i",
                        "sine=duration=1:r=48000", "-c:v", "mpeg4", "-c:a", codec, "-ac", str(channels), "one.mkv"], check=True)
        for n in (1, 32):
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", "one.mkv", "-map", "0:v", *["-map", "0:a"] * n, "-c", "copy", "tracks.mkv"], check=True)
            code, out, err, mib = call(TEGULA, "plan", "-m", network(3), "tracks.mkv", "-o", "o.mkv", "--json")
            expect(code == 0, f"{n} tracks of {codec}: {code}: {err}")
            plan = json.loads(out.splitlines()[-1])
            took.append(mib)
            lines += [line["bytes"] / 2**20 for line in plan["lines"] if line["name"] == "decoder"]
        expect(took[1] - took[0] <= lines[1] - lines[0] + 1 or SANITIZED, f"{codec}, {channels} channels: {took} MiB of RSS, lines {lines}")


# ---- Another file --------------------------------------------------------------------------------------------------------


def no_other_file(other):
    for name, text in (("a.m3u8", f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{other}\n#EXT-X-ENDLIST\n"),
                       ("a.txt", f"ffconcat version 1.0\nfile {other}\n"),
                       ("a.sdp", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\n"
                                 "a=rtpmap:96 H264/90000\n"),
                       ("a.mpd", f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period><AdaptationSet>'
                                 f"<Representation><BaseURL>{other}</BaseURL></Representation></AdaptationSet></Period></MPD>")):
        code, _, err, _ = call(RAW, PLUGIN, put(name, text.encode()), "info")
        expect(code == 65 and "not a film" in err, f"{name}: exit {code}: {err}")
        code, _, err, _ = call(TEGULA, "info", name)
        expect(code == 65, f"{name}: exit {code}: {err}")


# ---- Damage --------------------------------------------------------------------------------------------------------------


def what_is_made_of_damage_is_damaged(whole):
    """The first frame of an FLV is damaged where only its decoder sees it; the other two are made of it."""
    for at in range(500, len(whole) // 2):
        put("mpeg4.flv", whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
        if "parts of it are damaged" in call(TEGULA, "copy", "mpeg4.flv", "-o", "a.npy", "-y", "--planes", "0")[2]:
            code, _, err, _ = call(TEGULA, "copy", "mpeg4.flv", "-o", "a.npy", "-y", "--planes", "1-2")
            expect(code == 65 and "frame 1: parts of it are damaged" in err, f"behind a damaged frame: exit {code}: {err}")
            return
    expect(False, "no byte damages the first frame alone")


def a_cut_matroska_is_told(name):
    with open(name, "rb") as f:
        data = f.read()
    code, out, err, _ = call(TEGULA, "info", name)
    expect(code == 0 and "cut" not in out, f"whole: {code}: {out} {err}")
    code, out, err, _ = call(TEGULA, "info", put("cut.webm", data[:len(data) // 2]))
    expect(code == 0 and "it is cut" in out, f"half of it: {code}: {out} {err}")


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    other, webm = sample("rot0.mov"), sample("foreman_vp9.webm")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        more_samples_than_bytes()
        sound_of_a_mov_has_samples_of_a_tick()
        headers_are_weighed()
        tracks_are_counted()
        no_other_file(other)
        program = shutil.which("ffmpeg")
        if program:
            large_frames_take_no_memory(ffmpeg(program, folder, "gif"))
            frames_are_those_of_the_plan()
            narrow_films_have_padded_rows()
            tracks_beside_the_film_are_counted()
            what_is_made_of_damage_is_damaged(ffmpeg(program, folder, "flv"))
        if os.path.exists(webm):
            a_cut_matroska_is_told(webm)
        os.chdir("/")
    print("failed" if WRONG else "all well")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
