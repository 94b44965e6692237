#!/usr/bin/env python3
"""Films that end early, in each container: what says so ends in 65, and no film that is whole does.

    film_cuts.py TEGULA SOURCE VIDEOS

The table of docs/reference/formats.md ("Films that are cut") is what is looked for. With ffmpeg; 77 without it or the samples."""
import os
import re
import struct
import subprocess
import sys

from film_help import SOURCE, bytes_of, expect, ffmpeg, in_folder, run, sample

H264 = ["-c:v", "libx264", "-g", "12", "-pix_fmt", "yuv420p", "-c:a", "aac"]
VP9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "12", "-c:a", "libopus"]
MPEG2 = ["-c:v", "mpeg2video", "-g", "12", "-c:a", "mp2"]
WMV = ["-c:v", "wmv2", "-g", "12", "-c:a", "wmav2"]
FRAGMENTS = "frag_keyframe+empty_moov"

# A row of the table: a film of it, and how ffmpeg makes it.
ROWS = {
    "MP4, MOV, index in front": ("front.mp4", [*H264, "-movflags", "+faststart"]),
    "MP4, MOV, index behind": ("behind.mp4", H264),
    "MP4 of fragments": ("fragments.mp4", [*H264, "-movflags", FRAGMENTS]),
    "Matroska, WebM": ("film.mkv", H264),
    "Matroska, WebM, live": ("live.webm", [*VP9, "-live", "1"]),
    "AVI": ("film.avi", ["-c:v", "mpeg4", "-g", "12", "-c:a", "libmp3lame"]),
    "MPEG-TS": ("film.ts", H264),
    "MPEG-PS": ("film.mpg", MPEG2),
    "FLV": ("film.flv", H264),
    "IVF": ("film.ivf", ["-an", *VP9[:-2]]),
    "Ogg": ("film.ogv", ["-c:v", "libtheora", "-c:a", "libvorbis"]),
    "ASF, WMV": ("film.wmv", WMV),
    "MXF": ("film.mxf", ["-c:v", "mpeg2video", "-g", "12", "-s", "720x576", "-c:a", "pcm_s16le", "-ar", "48000", "-t", "1"]),
    "GIF": ("film.gif", ["-an"]),
    "NUT": ("film.nut", H264),
    "DV": ("film.dv", ["-c:v", "dvvideo", "-s", "720x576", "-pix_fmt", "yuv420p", "-c:a", "pcm_s16le", "-ar", "48000", "-ac", "2", "-t", "1"]),
    "YUV4MPEG2": ("film.y4m", ["-an", "-pix_fmt", "yuv420p", "-t", "1"]),
    "raw H.264, HEVC": ("film.264", ["-an", *H264[:-2]]),
}

# Whole ones: settings of writers, some of which leave sizes out.
WHOLE = {
    "limit.mkv": [*H264, "-cluster_time_limit", "200"], "small.mkv": [*H264, "-cluster_size_limit", "2000"],
    "room.mkv": [*H264, "-reserve_index_space", "4000"], "cues.mkv": [*H264, "-cues_to_front", "1"],
    "live.mkv": [*H264, "-live", "1"], "film.webm": VP9, "lossless.mkv": ["-c:v", "ffv1", "-c:a", "flac"],
    "dash.mp4": [*H264, "-movflags", "dash", "-frag_duration", "300000"], "cmaf.mp4": [*H264, "-movflags", "cmaf+frag_keyframe"],
    "apart.mp4": [*H264, "-movflags", FRAGMENTS + "+separate_moof"], "bare.mp4": [*H264, "-movflags", FRAGMENTS + "+default_base_moof+skip_trailer"],
    "each.mp4": [*H264, "-movflags", "frag_every_frame+empty_moov"], "late.mov": [*H264, "-movflags", "frag_keyframe+delay_moov"],
    "jpeg.avi": ["-c:v", "mjpeg", "-c:a", "pcm_s16le"], "mpeg2.ts": MPEG2, "film.vob": [*MPEG2, "-f", "vob"], "mpeg1.mpg": ["-c:v", "mpeg1video", "-c:a", "mp2"],
    "old.flv": ["-c:v", "flv1", "-c:a", "libmp3lame"], "lossless.nut": ["-c:v", "ffv1", "-c:a", "pcm_s16le"],
}
# And through a pipe, where a writer cannot go back.
PIPED = {"piped.mkv": ("matroska", H264), "piped.webm": ("webm", VP9), "piped.avi": ("avi", ROWS["AVI"][1]), "piped.flv": ("flv", H264),
         "piped.wmv": ("asf", WMV), "piped.nut": ("nut", H264), "piped.ts": ("mpegts", H264), "piped.ogv": ("ogg", ROWS["Ogg"][1]),
         "piped.mp4": ("mp4", [*H264, "-movflags", FRAGMENTS])}
SOURCES = ["-f", "lavfi", "-i", "testsrc=size=128x96:rate=25:duration=2", "-f", "lavfi", "-i", "sine=frequency=440:duration=2"]


def make(name, words):
    if not os.path.exists(name):
        ffmpeg(*SOURCES, *words, name)
    return bytes_of(name)


def told(data, name, *more):
    """What is said of these bytes: "65", "warning" or "nothing", and the words."""
    path = "cut" + os.path.splitext(name)[1]
    with open(path, "wb") as f:
        f.write(data)
    code, _, err = run("copy", path, "-o", "cut.npy", "-y", "--planes", "0", *more)
    expect(code in (0, 65), f"{name}, {len(data)} bytes: {code}: {err}")
    return "65" if code == 65 else "warning" if "be cut" in err or "is cut" in err else "nothing", err


def the_table_is_true():
    """Cut at half of it, at 99 %, 10 bytes and 1 byte before the end; places are odd, so that no packet of even size ends there."""
    text = bytes_of(os.path.join(SOURCE, "docs", "reference", "formats.md")).decode()
    rows = {m[1]: m[2].split(", ") for m in re.finditer(r"^\| ([^|]+) \| ((?:65|warning|nothing)(?:, [a-z0-9]+){3}) \|", text, re.M)}
    expect(set(rows) == set(ROWS), f"rows of the table: {sorted(set(rows) ^ set(ROWS))}")
    for row, (name, words) in ROWS.items():
        data = make(name, words)
        ends = (len(data) // 2 | 1, len(data) * 99 // 100 | 1, len(data) - 10, len(data) - 1)
        seen = [told(data[:end], name) for end in ends]
        expect([s for s, _ in seen] == rows.get(row), f"{row}: {seen}, the table has {rows.get(row)}")
        for end, (said, err) in zip(ends, seen):
            taken, more = told(data[:end], name, "--allow-truncated")
            index = "index (the moov box)" in err
            expect(taken == ("65" if index else said if said != "65" else "warning"), f"{row}, {end} bytes, taken: {more}")
            expect(said != "65" or index or "--allow-truncated takes" in err, f"{row}, {end} bytes: {err}")


def whole_films_are_whole(rows):
    films = [sample(row["file"]) for row in rows]
    for name, words in WHOLE.items():
        make(name, words)
        films.append(name)
    for name, (form, words) in PIPED.items():
        with open(name, "wb") as f:
            subprocess.run(["ffmpeg", "-v", "error", *SOURCES, *words, "-f", form, "-"], stdout=f, check=True)
        films.append(name)
    for name, _ in ROWS.values():
        films.append(name)
    for name in films:
        code, _, err = run("copy", name, "-o", "whole.npy", "-y", "--planes", "0")
        expect(code == 0 and "cut" not in err.replace(name, ""), f"{name}: {code}: {err}")


def what_stands_behind_a_film_is_no_cut():
    """Line ends of a mail, zeros, an ID3 tag."""
    tag = b"TAG" + b"a title".ljust(125, b" ")
    for row, (name, words) in ROWS.items():
        if row in ("YUV4MPEG2", "raw H.264, HEVC") or "live" in row:
            continue
        data = make(name, words)
        for more in (b"\n", b"\r\n--boundary--\r\n", tag, *([b"\0" * 3] * ("fragments" not in name))):
            said, err = told(data + more, name)
            expect(said != "65", f"{row} and {more!r:.20}: {err}")


def another_film_behind_it_is_named():
    """The first one is read, with its frames and times; zeros behind a live one may be a cut, other bytes there are damage."""
    other = ["-f", "lavfi", "-i", "testsrc2=size=128x96:rate=25:duration=1"]
    for name, words in (("live.webm", [*VP9[:-2], "-live", "1"]), ("first.mkv", H264[:-2]), ("first.ogv", ["-c:v", "libtheora"]), ("first.flv", ["-c:v", "flv1"])):
        ffmpeg(*SOURCES[:4], "-an", *words, "1" + name)
        ffmpeg(*other, *words, "2" + name)
        for more, word in ((bytes_of("2" + name), "another film stands behind it"), (bytes_of("1" + name), "another film stands behind it"), (b"", None)):
            with open("both_" + name, "wb") as f:
                f.write(bytes_of("1" + name) + more)
            code, _, err = run("copy", "both_" + name, "-o", "o.npy", "-y")
            expect(code == 0 and (word or "") in err and ("another" in err) == (word is not None), f"{name} and {len(more)} bytes: {code}: {err}")
            i = run("info", "both_" + name, "--json")[1]
            expect('"shape": [50, 96, 128, 3]' in i or '"shape":[50,96,128,3]' in i, f"{name} and {len(more)} bytes: {i}")
    with open("both_first.flv", "wb") as f:
        f.write(bytes_of("1first.flv") + b"FLV")  # no head of another
    code, _, err = run("copy", "both_first.flv", "-o", "o.npy", "-y")
    expect("another" not in err, f"three bytes behind an FLV: {code}: {err}")
    for more, want, word in ((bytes(1000), 0, "zeros stand behind its last cluster"), (bytes(999) + b"x", 65, "damaged"), (b"\0x", 65, "damaged")):
        with open("both_live.webm", "wb") as f:
            f.write(bytes_of("1live.webm") + more)
        code, _, err = run("copy", "both_live.webm", "-o", "o.npy", "-y")
        expect(code == want and word in err, f"a live one and {more[-4:]}: {code}: {err}")


def packets_of_camcorders():
    """192 bytes each: a time, and a packet of 188."""
    data = make("disc.m2ts", [*H264, "-f", "mpegts", "-mpegts_m2ts_mode", "1"])
    expect(len(data) % 192 == 0 and data[4] == 0x47, "packets of 192 bytes")
    for name in ("disc.m2ts", "DISC.MTS"):
        for less, want in ((0, "nothing"), (1, "65"), (100, "65"), (189, "65")):
            said, err = told(data[:len(data) - less], name)
            expect(said == want, f"{name}, {less} bytes less: {said}, {err}")
    said, err = told(b"\x47" + data[1:], "disc.m2ts")
    expect(said == "nothing", f"a time that begins as a packet does: {err}")


def boxes_of(data):
    """Where each outer box of an MP4 begins, and the end."""
    at = [0]
    while at[-1] < len(data):
        at.append(at[-1] + struct.unpack_from(">I", data, at[-1])[0])
    return at


def any_place_in_an_mp4():
    """Around the head of each box, and all over the last kilobytes: nothing but a whole fragment, with nothing behind it, is a whole film."""
    for name, words in (("fragments.mp4", ROWS["MP4 of fragments"][1]), ("dash.mp4", WHOLE["dash.mp4"]), ("front.mp4", ROWS["MP4, MOV, index in front"][1])):
        data = make(name, words)
        at = boxes_of(data)
        kinds = [data[a + 4:a + 8] for a in at[:-1]]
        # Where fragments end, and no index of the next one stands there, too.
        fine = {at[i + 1] for i, kind in enumerate(kinds) if kind == b"mdat" and b"moof" in kinds}
        first = at[kinds.index(b"moov") + 1]
        places = {a + k for a in at for k in (-1, 0, 1, 7, 8, 9)} | set(range(len(data) - 12, len(data))) | set(range(len(data) - 6000, len(data), 397))
        for end in sorted(p for p in places if first < p < len(data)):
            said, err = told(data[:end], name)
            expect(said == "65" or end in fine, f"{name}, {end} bytes: {said}: {err}")


def elements_of(data, at, end):
    """(name, where it begins, where its contents do, where it ends; None: it does not say) of the elements of a Matroska in a row."""
    while at < end:
        n = next(k for k in range(1, 5) if data[at] & 0x100 >> k)
        m = next(k for k in range(1, 9) if data[at + n] & 0x100 >> k)
        size = int.from_bytes(data[at + n:at + n + m], "big") & (1 << 7 * m) - 1
        is_open = size == (1 << 7 * m) - 1
        yield data[at:at + n], at, at + n + m, None if is_open else at + n + m + size
        at = end if is_open else at + n + m + size


def any_place_in_a_matroska():
    """One that says how long it is: any place. A live one: any place but the ends of its clusters; and where it does not say the
    lengths of those either, of their blocks."""
    live = make("live.webm", ROWS["Matroska, WebM, live"][1])
    segment = next(e for e in elements_of(live, 0, len(live)) if e[3] is None)
    clusters = [e for e in elements_of(live, segment[2], len(live)) if e[0] == b"\x1f\x43\xb6\x75"]
    expect(len(clusters) > 3, f"clusters: {clusters}")
    blocks = [b[3] for c in clusters for b in elements_of(live, c[2], c[3])]
    name_of_size = [(c[1] + 4, c[2]) for c in clusters]
    opened = bytearray(live)
    for a, b in name_of_size:
        opened[a:b] = bytes([(0x1ff >> b - a) & 0xff]) + b"\xff" * (b - a - 1)
    first = clusters[0][1] + 200
    for name, data, fine in (("film.mkv", make("film.mkv", H264), ()), ("live.webm", live, {c[3] for c in clusters}),
                             ("opened.webm", bytes(opened), set(blocks) | {c[2] for c in clusters})):
        expect(told(data, name)[0] == "nothing", f"{name}, whole: {told(data, name)}")
        places = set(range(len(data) - 12, len(data))) | set(range(first, len(data), 1231)) | \
            {c[3] + k for c in clusters[:2] for k in range(-1, 13)} | {b + k for b in blocks[4:60:14] for k in (-1, 0, 1, 2)}
        for end in sorted(p for p in places if first < p < len(data)):
            said, err = told(data[:end], name)
            expect(said == "65" or end in fine, f"{name}, {end} bytes: {said}: {err}")


def an_index_that_names_more():
    """A Matroska of no length whose cues, in front, name a cluster that is not there; and an index of fragments (sidx), in front."""
    cues = bytearray(make("cues.mkv", WHOLE["cues.mkv"]))
    _, at, inner, end = next(e for e in elements_of(cues, 0, len(cues)) if e[0] == b"\x18\x53\x80\x67")
    cues[at + 4:inner] = b"\x01" + b"\xff" * 7 if inner - at == 12 else b"\xff"
    clusters = [e for e in elements_of(cues, inner, end) if e[0] == b"\x1f\x43\xb6\x75"]
    expect(told(bytes(cues), "open.mkv")[0] == "nothing", "a segment of no length")
    data = bytes(cues[:clusters[-1][1]])
    said, err = told(data, "open.mkv")
    expect(len(clusters) < 2 or (said == "65" and "its segment lacks" in err), f"cues that name more: {said}: {err}")
    whole = make("bare.mp4", WHOLE["bare.mp4"])
    at = boxes_of(whole)
    moofs = [a for a in at[:-1] if whole[a + 4:a + 8] == b"moof"]
    sizes = [b - a for a, b in zip(moofs, moofs[1:] + [len(whole)])]
    body = struct.pack(">IIIII", 0, 1, 12800, 0, 0) + struct.pack(">HH", 0, len(sizes)) + b"".join(struct.pack(">III", n, 5000, 0x90000000) for n in sizes)
    index = struct.pack(">I", 8 + len(body)) + b"sidx" + body
    # Fragments say their places by themselves here, so they may move.
    for end, good in ((len(whole), "nothing"), (moofs[-1], "65"), (moofs[2], "65")):
        said, err = told(whole[:moofs[0]] + index + whole[moofs[0]:end], "sidx.mp4")
        expect(said == good and (good != "65" or "its last fragment lacks" in err), f"an index of fragments, {end} bytes: {said}: {err}")


def what_may_be_cut_is_told():
    """Places where nothing lacks, and something speaks for a cut all the same."""
    ts = make("film.ts", H264)
    said = [told(ts[:188 * k], "film.ts")[0] for k in range(len(ts) // 376, len(ts) // 376 + 12)]
    expect("warning" in said and "65" not in said, f"ends of packets: {said}")
    ogg = make("film.ogv", ROWS["Ogg"][1])
    pages = [i for i in range(len(ogg)) if ogg.startswith(b"OggS", i)]
    said = [told(ogg[:p], "film.ogv") for p in pages[4:]]
    expect(said and all(s in ("warning", "65") for s, _ in said) and "no page ends its streams" in said[-1][1], f"ends of pages: {said}")


def all_of_it(rows):
    the_table_is_true()
    whole_films_are_whole(rows)
    what_stands_behind_a_film_is_no_cut()
    another_film_behind_it_is_named()
    packets_of_camcorders()
    any_place_in_an_mp4()
    any_place_in_a_matroska()
    an_index_that_names_more()
    what_may_be_cut_is_told()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg"))
