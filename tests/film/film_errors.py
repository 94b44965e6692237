#!/usr/bin/env python3
"""What a film lacks, by the command: frames that are damaged are listed, films that are cut are taken on request.

    film_errors.py TEGULA SOURCE VIDEOS

With ffmpeg and ffprobe; 77 without them or the sample films."""
import json
import os
import re
import subprocess
import sys

from film_help import TEGULA, bytes_of, expect, ffmpeg, in_folder, network, run, sample

SAME = ["-m", "same.onnx", "--normalize", "none", "-y", "-q"]


def probed(path, what):
    r = subprocess.run(["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v:0", "-of", "csv=p=0", "-show_entries", what, path],
                       capture_output=True, text=True, check=True)
    return [x for x in r.stdout.replace(",", "\n").split("\n") if x]


def frames_of(npy, n):
    data = bytes_of(npy)
    size = (len(data) - 128) // n
    return [data[len(data) - (n - i) * size:len(data) - (n - i - 1) * size] for i in range(n)]


def listed(name, n):
    code_list = json.loads(bytes_of(name + ".errors.json"))
    expect(code_list["more"] is False and all(0 <= r["frame"] < n for r in code_list["regions"]), f"{name}: {code_list}")
    return code_list["regions"]


def damaged_frames_are_listed():
    """A packet of an MPEG-4 film has other bytes: its frame and those that are made of it are listed, black or as the decoder
    has them; no other frame changes."""
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", "40", "-an", "-c:v", "mpeg4", "-g", "10", "-q:v", "4", "good.mp4")
    at = [int(x) for x in probed("good.mp4", "packet=pos")][14]
    data = bytearray(bytes_of("good.mp4"))
    for i in range(at + 40, at + 140):
        data[i] ^= 0x5a
    with open("bad.mp4", "wb") as f:
        f.write(data)
    code, _, err = run("copy", "bad.mp4", "-o", "bad.npy", "-y")
    expect(code == 65 and "frame 14" in err and "--on-bad-tile keep" in err, f"a damaged frame: {code}: {err}")
    expect(run("copy", "good.mp4", "-o", "good.npy", "-y")[0] == 0, "the good film")
    good, times = frames_of("good.npy", 40), [int(x) for x in probed("good.mp4", "packet=pts")]
    for how in ("fill", "keep"):
        code, _, err = run("copy", "bad.mp4", "-o", f"{how}.npy", "-y", "--on-bad-tile", how)
        expect(code == 65 and f"{how}.npy.errors.json" in err and "frames are damaged" in err, f"{how}: {code}: {err}")
        bad = listed(f"{how}.npy", 40)
        numbers = [r["frame"] for r in bad]
        expect(numbers == list(range(14, 20)), f"{how}: frames {numbers}")
        expect([r["pts"] for r in bad] == [times[k] for k in numbers], f"{how}: times {bad}")
        expect(all(r["kept"] is (how == "keep") and r["what"] in ("concealed", "refused packet") for r in bad), f"{how}: {bad}")
        made = frames_of(f"{how}.npy", 40)
        expect(all(made[k] == good[k] for k in range(40) if k not in numbers), f"{how}: a good frame is another")
        expect(all(any(made[k]) is (how == "keep") for k in numbers), f"{how}: what damaged frames are")
    code, _, err = run("run", *SAME, "bad.mp4", "-o", "bad.mkv", "--codec", "ffv1", "--on-bad-tile", "keep")
    expect(code == 65 and [r["frame"] for r in listed("bad.mkv", 40)] == list(range(14, 20)), f"into a film: {code}: {err}")
    expect(probed("bad.mkv", "stream=nb_read_packets") == ["40"], "frames of the film that is written")
    code, _, err = run("run", *SAME, "bad.mp4", "-o", "part.mkv", "--codec", "ffv1", "--on-bad-tile", "keep", "--frames", "16:30")
    expect(code == 65 and [(r["plane"], r["frame"]) for r in listed("part.mkv", 40)] == [(k - 16, k) for k in range(16, 20)],
           f"a part: {code}: {err}")
    code, _, err = run("copy", "bad.mp4", "-o", "part.npy", "-y", "--frames", "16:18", "--on-bad-tile", "keep")
    expect(frames_of("part.npy", 2) == frames_of("keep.npy", 40)[16:18], "what is made up depends on where reading begins")


def a_frame_that_does_not_come_is_missing():
    """A packet of which nothing can be decoded."""
    at, size = [int(x) for x in probed("good.mp4", "packet=pos")][10], [int(x) for x in probed("good.mp4", "packet=size")][10]
    data = bytearray(bytes_of("good.mp4"))
    data[at:at + size] = bytes(size)
    with open("gone.mp4", "wb") as f:
        f.write(data)
    code, _, err = run("copy", "gone.mp4", "-o", "gone.npy", "-y", "--on-bad-tile", "keep")
    bad = listed("gone.npy", 40)
    expect(code == 65 and bad[0]["frame"] == 10 and bad[0]["what"] == "missing" and not bad[0]["kept"], f"{code}: {err}: {bad}")
    expect(not any(frames_of("gone.npy", 40)[10]), "a missing frame is black")


def cut_fragments():
    """An MP4 of fragments that ends amid one: in its head, or in what follows it."""
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", "40", "-c:v", "libx264", "-bf", "0", "-g", "8", "-an", "-movflags", "frag_keyframe+empty_moov",
           "whole.mp4")
    whole = bytes_of("whole.mp4")
    at = [i for i in range(len(whole)) if whole.startswith(b"moof", i)]
    expect(len(at) == 5, f"fragments: {at}")
    run("copy", "whole.mp4", "-o", "whole.npy", "-y", "--planes", "0-15")
    data = whole.index(b"mdat", at[2]) - 4
    # In a head; in what follows it; behind the whole head, and in the head of what follows; in the next head.
    for end, least, most in ((at[2] + 60, 16, 16), (at[3] - 100, 20, 23), (data, 16, 16), (data + 3, 16, 16), (at[3] - 4 + 5, 24, 24)):
        with open("cut.mp4", "wb") as f:
            f.write(whole[:end])
        code, _, err = run("run", *SAME, "cut.mp4", "-o", "cut.mkv", "--codec", "ffv1")
        expect(code == 65 and re.search("its last (fragment|box) lacks", err) and "--allow-truncated" in err and not os.path.exists("cut.mkv"), f"cut at {end}: {code}: {err}")
        code, _, err = run("run", *SAME, "cut.mp4", "-o", "cut.mkv", "--codec", "ffv1", "--allow-truncated")
        there = int(probed("cut.mkv", "stream=nb_read_packets")[0]) if code == 0 else 0
        expect(code == 0 and "it is cut" in err and least <= there <= most, f"cut at {end}: {code}: {there} frames: {err}")
        code, text, err = run("info", "cut.mp4", "--json")
        expect(code == 0 and "it is cut" in json.loads(text)["note"], f"info of one cut at {end}: {code}: {err}")
        run("copy", "cut.mp4", "-o", "some.npy", "-y", "--planes", "0-15", "--allow-truncated")
        expect(bytes_of("some.npy") == bytes_of("whole.npy"), f"cut at {end}: other pixels")
        os.remove("cut.mkv")


def cut_films():
    """The index stands in front: the frames that are there, if one asks for them; else 65."""
    car = sample("running_car.mp4")
    ffmpeg("-i", car, "-t", "2", "-c", "copy", "-movflags", "+faststart", "front.mp4")
    ffmpeg("-i", car, "-t", "2", "-c", "copy", "front.mkv")
    for name in ("front.mp4", "front.mkv"):
        whole, cut = bytes_of(name), "cut_" + name
        with open(cut, "wb") as f:
            f.write(whole[:len(whole) * 6 // 10])
        n = len(probed(name, "packet=pts"))
        run("copy", name, "-o", "whole.npy", "-y", "--planes", "0-9")
        code, _, err = run("run", *SAME, cut, "-o", "cut.mp4")
        told = re.search(rf"declares {n} frames, (\d+) are there: it is cut" if name.endswith("mp4") else
                         r"its segment lacks \d+ bytes: the film is cut; .* there, (\d+) of them", err)
        expect(code == 65 and told and "--allow-truncated" in err and not os.path.exists("cut.mp4"), f"{cut}: {code}: {err}")
        said = int(told[1]) if told else 0
        code, _, err = run("run", *SAME, cut, "-o", "cut.mp4", "--allow-truncated")
        there = int(probed("cut.mp4", "stream=nb_read_packets")[0]) if code == 0 else 0
        expect(code == 0 and "it is cut" in err and n // 3 < there < n, f"{cut}: {code}: {there} of {n} frames: {err}")
        expect(said == there and (name.endswith("mkv") or f"{there} of the {n} frames" in err), f"{cut}: {said}, {there}: {err}")
        expect(not os.path.exists("cut.mp4.errors.json"), f"{cut}: nothing is damaged")
        code, text, err = run("info", cut, "--json")
        expect(code == 0 and "it is cut" in json.loads(text)["note"], f"info {cut}: {code}: {err}")
        run("copy", cut, "-o", "some.npy", "-y", "--planes", "0-9", "--allow-truncated")
        expect(bytes_of("some.npy") == bytes_of("whole.npy"), f"{cut}: other pixels")
        os.remove("cut.mp4")
    whole = bytes_of(car)
    for what, data in (("behind the frames", whole[:len(whole) // 2]), ("in it", whole[:-9000])):
        with open("noindex.mp4", "wb") as f:
            f.write(data)
        for more in ([], ["--allow-truncated"]):
            code, _, err = run("copy", "noindex.mp4", "-o", "noindex.npy", "-y", *more)
            expect(code == 65 and "its index (the moov box) is missing or cut" in err and "Copy the whole file again" in err,
                   f"cut {what}: {code}: {err}")


def cut_amid_a_frame():
    """Whatever its header declares, info and a run that takes what is there count the same frames, whole ones, and both say that it is
    cut: an MP4 of fragments, and one whose index stands in front."""
    ffmpeg("-i", sample("carphone_pristine.mp4"), "-frames:v", "40", "-an", "-c", "copy", "-movflags", "+faststart", "front.mp4")
    for name in (sample("fragmented.mp4"), "front.mp4"):
        whole, end, n = bytes_of(name), "part" + os.path.splitext(name)[1], 0
        for part in range(40, 97, 8):
            with open(end, "wb") as f:
                f.write(whole[:len(whole) * part // 100])
            code, text, err = run("info", end, "--json")
            told = json.loads(text) if code == 0 else {"shape": [0], "note": ""}
            code, _, err = run("copy", end, "-o", "strict.npy", "-y")
            there = re.search(r"its file ends amid a frame, behind (\d+) whole ones: it is cut; --allow-truncated", err)
            there = there or re.search(r"header declares \d+ frames, (\d+) are there: it is cut; --allow-truncated", err)
            there = there or re.search(r"its (?:last|mdat) [a-z]+ lacks \d+ bytes?: the film is cut; --allow-truncated .* there, (\d+) of them", err)
            expect(code == (65 if there else 0), f"{end}, {part} %: {code}: {err}")
            n += there is not None
            same = not there or not there.groups() or int(there[1]) == told["shape"][0]
            expect(same and (not there or "it is cut" in told.get("note", "")), f"{end}, {part} %: {err}: {told}")
            code, _, err = run("copy", end, "-o", "part.npy", "-y", "--allow-truncated")
            expect(code == 0 and bytes_of("part.npy")[:128].count(b"(%d, " % told["shape"][0]) == 1,
                   f"{end}, {part} %, taken: {code}: {err}: {told['shape']}")
        expect(n > 3, f"{end}: {n} of them end amid a frame")


def a_new_film_has_no_old_list():
    """What was damaged in the film that a pipe's frames replace is no damage of theirs; a strange file of that name stays without -y."""
    code, _, err = run("run", *SAME, "bad.mp4", "-o", "piped.mkv", "-y", "--on-bad-tile", "keep")
    expect(code == 65 and os.path.exists("piped.mkv.errors.json"), f"a list: {code}: {err}")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-f", "yuv4mpegpipe", "-pix_fmt", "yuv420p", "good.y4m")
    words = [TEGULA, "run", *SAME, "-", "-o", "piped.mkv"]
    with open("good.y4m", "rb") as f:
        r = subprocess.run(words, stdin=f, capture_output=True, text=True, check=False)
    expect(r.returncode == 0 and not os.path.exists("piped.mkv.errors.json"), f"{r.returncode}: {r.stderr}: the list stays")
    os.remove("piped.mkv")
    with open("piped.mkv.errors.json", "w", encoding="ascii") as f:
        f.write("my notes")
    with open("good.y4m", "rb") as f:
        r = subprocess.run([w for w in words if w != "-y"], stdin=f, capture_output=True, text=True, check=False)
    expect(r.returncode == 73 and bytes_of("piped.mkv.errors.json") == b"my notes", f"{r.returncode}: {r.stderr}: a strange file")
    os.remove("piped.mkv.errors.json")


def packet(path, n):
    """(offset, bytes) of packet n."""
    return int(probed(path, "packet=pos")[n]), int(probed(path, "packet=size")[n])


def changed(path, out, at, new):
    data = bytearray(bytes_of(path))
    expect(0 <= at < len(data) - len(new) and data[at:at + len(new)] != new, f"{path}: nothing changes at {at}")
    data[at:at + len(new)] = new
    with open(out, "wb") as f:
        f.write(data)


def what_libav_only_logs_is_damage():
    """Demuxers that find their way behind bytes that make no sense, decoders that make up what they cannot read: told to nobody
    but libav's log."""
    film = ["-i", sample("carphone_pristine.mp4"), "-an", "-frames:v", "12"]
    ffmpeg(*film, "-c:v", "libx264", "-bf", "2", "-g", "6", "-write_crc32", "0", "whole.mkv")
    ffmpeg(*film, "-c:v", "libtheora", "whole.ogv")
    ffmpeg(*film, "-c:v", "ffv1", "-level", "3", "-slicecrc", "1", "-write_crc32", "0", "ffv1.mkv")
    ffmpeg(*film, "-c:v", "mjpeg", "mjpeg.avi")
    ffmpeg(*film, "-vf", "scale=64:-2", "whole.gif")
    whole = bytes_of("whole.mkv")
    at, _ = packet("whole.mkv", 4)
    changed("whole.mkv", "block.mkv", whole.rindex(b"\xa3", 0, at), b"\0")
    changed("whole.ogv", "page.ogv", len(bytes_of("whole.ogv")) * 2 // 3, b"\x55\xaa")
    at, size = packet("ffv1.mkv", 5)
    changed("ffv1.mkv", "zeros.mkv", at + size - 512, bytes(512))
    changed("ffv1.mkv", "middle.mkv", at + size // 2, bytes(4096))
    at, size = packet("mjpeg.avi", 3)
    changed("mjpeg.avi", "zeros.avi", at + size // 2, b"\xff\x01" * 100)
    at, size = packet("whole.gif", 5)
    changed("whole.gif", "zeros.gif", at + size // 2, bytes(16))
    for name, word, cure in (("block.mkv", "container is damaged", "--allow-truncated"), ("page.ogv", "container is damaged", "--allow-truncated"),
                             ("zeros.mkv", "frame 5", "--on-bad-tile=keep"), ("middle.mkv", "frame 5", "--on-bad-tile=keep"),
                             ("zeros.avi", "frame 3", "--on-bad-tile=keep"), ("zeros.gif", "frame 5", "--on-bad-tile=keep")):
        words = ("run", *SAME, name, "-o", "o.mkv", "--codec", "ffv1", "--drop-alpha")
        code, _, err = run(*words)
        expect(code == 65 and word in err, f"{name}: {code}: {err}")
        code, _, err = run(*words, cure)
        expect(code == (65 if "keep" in cure else 0) and os.path.exists("o.mkv"), f"{name}, {cure}: {code}: {err}")
        expect("keep" in cure or "damaged" in err, f"{name}, {cure}, without a word: {err}")
        if "keep" in cure and not name.endswith("gif"):  # the others are as they were
            expect([r["frame"] for r in listed("o.mkv", 12)] == [int(word.split()[1])], f"{name}: {listed('o.mkv', 12)}")
        os.remove("o.mkv")
    exif = b"\xff\xe1\0\x20Exif\0\0MM\0\x2a\0\0\0\x08\0\x05\xff\xff\0\x02\0\0\xff\xff\xff\xff\xff\xf0"
    at, size = packet("mjpeg.avi", 0)
    with open("notes.mjpeg", "wb") as f:  # pictures behind each other, as cameras send them, with notes that make no sense
        for n in range(3):
            at, size = packet("mjpeg.avi", n)
            jpeg = bytes_of("mjpeg.avi")[at:at + size] if bytes_of("mjpeg.avi")[at:at + 2] == b"\xff\xd8" else bytes_of("mjpeg.avi")[at + 8:at + 8 + size]
            f.write(jpeg[:2] + exif + jpeg[2:])
    ffmpeg("-f", "mjpeg", "-i", "notes.mjpeg", "-c:v", "copy", "notes.avi")
    spoke = subprocess.run(["ffmpeg", "-v", "error", "-i", "notes.avi", "-f", "null", "-"], capture_output=True, text=True, check=True).stderr
    expect("EXIF" in spoke, f"notes that a decoder complains of: {spoke}")
    with open("behind.gif", "wb") as f:
        f.write(bytes_of("whole.gif") + b"a line of text")
    for name in ("whole.mkv", "whole.ogv", "ffv1.mkv", "mjpeg.avi", "whole.gif", "notes.avi", "behind.gif"):
        code, _, err = run("run", *SAME, name, "-o", "o.mkv", "--codec", "ffv1", "--drop-alpha")
        expect(code == 0 and "damage" not in err, f"{name}, which is whole: {code}: {err}")


def what_lax_decoders_know_of_damage_is_asked_for():
    """One bit of a packet is another: formats without checksums cannot show all of it, and the decoders of Microsoft's MPEG-4 show
    nothing unless they are asked to. The whole films are fine."""
    for codec, least in (("wmv2", 6), ("wmv1", 3), ("msmpeg4", 5)):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=176x144:rate=25,noise=alls=10:allf=t", "-frames:v", "40", "-c:v", codec, "-g", "12", "-q:v", "4", "lax.avi")
        code, _, err = run("copy", "lax.avi", "-o", "o.npy", "-y")
        expect(code == 0 and "damage" not in err, f"{codec}, whole: {code}: {err}")
        whole, told = bytes_of("o.npy"), 0
        for k in range(16):
            at, size = packet("lax.avi", 1 + 2 * k)
            changed("lax.avi", "bit.avi", at + 8 + size * (k + 1) // 20, bytes([bytes_of("lax.avi")[at + 8 + size * (k + 1) // 20] ^ 4]))
            code, _, err = run("copy", "bit.avi", "-o", "o.npy", "-y")
            told += code == 65 and "parts of it are damaged" in err
            expect(code == 65 or bytes_of("o.npy") != whole, f"{codec}, {k}: a bit changes nothing")
        expect(told >= least, f"{codec}: of 16 films with another bit {told} are told")
        print(f"  {codec}: {told} of 16 films with another bit", flush=True)


def a_pipe_that_was_killed_blocks_nobody():
    """Killed while it joined; then another run fails; then the same command works."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=4", "-f", "yuv4mpegpipe", "-pix_fmt", "yuv420p", "in.y4m")
    words, whole, killed = [TEGULA, "run", *SAME[:-2], "-", "-o", "spooled.mkv", "--codec", "ffv1"], bytes_of("in.y4m"), 0
    for k in range(200, 10, -2):
        r = subprocess.run(words, input=whole, capture_output=True, check=False, env={**os.environ, "TEGULA_FAIL_IO": f"{k}:kill"})
        if r.returncode == 0:
            os.remove("spooled.mkv")
            continue
        killed += os.path.exists("spooled.mkv.made")
        r = subprocess.run(words, input=whole[:20000], capture_output=True, check=False)
        expect(r.returncode == 65, f"killed at {k}, then cut: {r.returncode}: {r.stderr}")
        r = subprocess.run(words, input=whole, capture_output=True, check=False)
        expect(r.returncode == 0, f"killed at {k}, cut, then whole: {r.returncode}: {r.stderr}")
        expect(not [x for x in os.listdir(".") if x.startswith("spooled.mkv.") and x != "spooled.mkv.tegula.json"], f"killed at {k}: {os.listdir('.')}")
        os.remove("spooled.mkv")
        if killed > 2:
            break
    expect(killed > 0, "never killed while it joined")


def what_an_encoder_does_not_take_is_refused_with_a_way():
    """A quality that a codec has not, sizes of which chroma is no whole number, frames that are grey, networks of one frame: all of it
    64, before anything is written."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=33x27:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "yuv444p", "odd.mkv")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "gray", "grey.mkv")
    one, three, fifteen = network(1, "one.onnx"), network(3), network(15, "fifteen.onnx")
    for net, film, words, says in (
            (three, "odd.mkv", ("--crf", "52"), "--crf 52: h264 has 0 to 51"),
            (three, "odd.mkv", ("--codec", "hevc", "--crf", "63"), "hevc has 0 to 51"),
            (three, "odd.mkv", ("--codec", "ffv1", "--crf", "0"), "ffv1 loses nothing, and has no such setting: leave it out"),
            (three, "odd.mkv", ("--codec", "prores", "--crf", "9"), "prores has no such setting: leave it out"),
            (three, "odd.mkv", ("--pix-fmt", "yuv420p"), "does not take 33 x 27 yuv420p, whose chroma is one for 2 x 2 pixels: leave --pix-fmt out"),
            (three, "odd.mkv", ("--codec", "hevc", "--pix-fmt", "yuv422p"), "one for 2 x 1 pixels"),
            (one, "grey.mkv", ("--on", "luma"), "frames of grey.mkv are grey"),
            (three, "odd.mkv", ("--on", "luma"), "the network takes 3 channels, and luma is one: leave --on out"),
            (three, "grey.mkv", (), "frames of the film are grey: make colours of it first"),
            (fifteen, "grey.mkv", ("--window", "5"), "3 channels of each frame, the input has 1: give --window 15"),
            (fifteen, "odd.mkv", ("--window", "3"), "5 channels of each frame, the input has 3: give --window 5"),
            (fifteen, "odd.mkv", ("--window", "4"), "15 channels, no whole number for each of 4 frames: --window 5"),
            (one, "odd.mkv", ("--window", "3"), "1 channel, no whole number for each of 3 frames: leave --window out"),
            (three, "odd.mkv", ("--window", "3"), "leave --window out, and it gets the colours of a frame")):
        code, _, err = run("run", "-m", net, film, "-o", "no.mov", "--normalize", "none", *words)
        expect(code == 64 and says in err and not [x for x in os.listdir(".") if x.startswith("no.mov")], f"{net} {film} {words}: {code}: {err}")
    for words in (("--crf", "51"), ("--codec", "prores", "--pix-fmt", "yuv422p10le"), ("--pix-fmt", "yuv444p"), ("--pix-fmt", "yuv420p", "--roi", "0:26,0:32")):
        code, _, err = run("run", "-m", three, "odd.mkv", "-o", "yes.mov", "-y", "--normalize", "none", *words)
        expect(code == 0, f"{words}: {code}: {err}")


def all_of_it(rows):
    del rows
    network(3)
    what_an_encoder_does_not_take_is_refused_with_a_way()
    damaged_frames_are_listed()
    a_frame_that_does_not_come_is_missing()
    cut_films()
    cut_fragments()
    cut_amid_a_frame()
    a_new_film_has_no_old_list()
    what_libav_only_logs_is_damage()
    what_lax_decoders_know_of_damage_is_asked_for()
    a_pipe_that_was_killed_blocks_nobody()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", "ffprobe"))
