#!/usr/bin/env python3
"""YUV4MPEG2 that is read and written, beside ffmpeg.

    y4m.py TEGULA SOURCE VIDEOS [own]    own: only what needs no plugin, without it, without ffmpeg and samples

Read: each kind of pixels gives the picture that the plugin reads out of a .mkv with the same frames. Written: the
planes are those of a .mkv without loss, and ffmpeg reads them. No plugin is needed for either. What is cut is damage,
and what a .y4m cannot say is told. Through pipes the bytes are those of files, and pictures those of a film. 77: no samples, or no ffprobe and ffmpeg."""
import os
import shutil
import signal
import subprocess
import sys
import time

from film_help import TEGULA, alpha_film, bytes_of, expect, ffmpeg, in_folder, network, run, sample
from film_write import killed_runs_go_on, pixels, stream, times
from seeds import model, node, port  # noqa: E402

NO_PLUGIN = {"TEGULA_AV_PLUGIN": "/nowhere/libtegula_av.so"}
OWN = "own" in sys.argv[4:]
RGB = "rgb.y4m" if OWN else "rgb.mkv"
SOURCE = ("-f", "lavfi", "-i", "testsrc=size=66x44:rate=30000/1001:duration=0.3")
ODD = (*SOURCE[:-1], SOURCE[-1].replace("66x44", "67x45"))
KINDS = {"420jpeg": ("yuv420p", "center"), "420mpeg2": ("yuv420p", "left"), "420paldv": ("yuv420p", "topleft"), "422": ("yuv422p", ""),
         "444": ("yuv444p", ""), "411": ("yuv411p", ""), "mono": ("gray", ""), "420p9": ("yuv420p9le", ""),
         "420p10": ("yuv420p10le", ""), "422p10": ("yuv422p10le", ""), "444p10": ("yuv444p10le", ""), "420p12": ("yuv420p12le", ""),
         "422p12": ("yuv422p12le", ""), "444p12": ("yuv444p12le", ""), "420p14": ("yuv420p14le", ""), "420p16": ("yuv420p16le", ""),
         "422p16": ("yuv422p16le", ""), "444p16": ("yuv444p16le", ""), "mono10": ("gray10le", ""), "mono12": ("gray12le", ""),
         "mono16": ("gray16le", "")}


def head_of(path):
    return bytes_of(path).split(b"\n", 1)[0].decode().split(" ")


def frames_of(path):
    """The planes of its frames, one behind the other, as the file has them."""
    data, got = bytes_of(path), b""
    w, h = (int(next(x[1:] for x in head_of(path) if x[0] == k)) for k in "WH")
    kind = next(x[1:] for x in head_of(path) if x[0] == "C")
    cw, ch = {"420": ((w + 1) // 2, (h + 1) // 2), "422": ((w + 1) // 2, h), "444": (w, h), "411": ((w + 3) // 4, h), "mon": (0, 0)}[kind[:3]]
    size = (w * h + 2 * cw * ch) * (2 if KINDS[kind][0].endswith("le") else 1)
    at = data.index(b"\n") + 1
    while at < len(data):
        assert data[at:at + 5] == b"FRAME", data[at:at + 20]
        at = data.index(b"\n", at) + 1
        got += data[at:at + size]
        at += size
    return got


def draw(path, kind, size, frames):
    """A film whose colours move, without ffmpeg."""
    w, h = size
    wide = 2 if KINDS[kind][0].endswith("le") else 1
    cw, ch = {"420": ((w + 1) // 2, (h + 1) // 2), "444": (w, h), "mon": (0, 0)}[kind[:3]]
    with open(path, "wb") as f:
        f.write(f"YUV4MPEG2 W{w} H{h} F30000:1001 Ip A1:1 C{kind} XCOLORRANGE=LIMITED\n".encode())
        for k in range(frames):
            f.write(b"FRAME\n")
            for c, (a, b) in enumerate(((w, h), (cw, ch), (cw, ch))):
                one = bytes(40 + (x * (c + 2) + 7 * k) % 180 for x in range(a * wide)) if wide == 1 else b"".join(
                    (200 + (x * (c + 2) + 7 * k) % 600).to_bytes(2, "little") for x in range(a))
                f.write(b"".join(one[y % 5:] + one[:y % 5] if wide == 1 else one for y in range(b)))


def film_of(path, w, h, rate, seconds, form="yuv444p"):
    """A test film in a .y4m."""
    if OWN:
        draw(path, "444", (w, h), rate * seconds)
    else:
        ffmpeg("-f", "lavfi", "-i", f"testsrc=size={w}x{h}:rate={rate}:duration={seconds}", "-pix_fmt", form, "-f", "yuv4mpegpipe", path)


def make(kind, y4m, mkv, source=SOURCE):
    """The same frames in both."""
    form, place = KINDS[kind]
    if OWN:
        draw(y4m, kind, (67, 45) if source == ODD else (66, 44), 9)
        return
    said = ["-chroma_sample_location", place] if place else []
    wide = [] if form.startswith("gray") else ["-color_range", "tv"]
    ffmpeg(*source, "-pix_fmt", form, *wide, *said, "-c:v", "ffv1", mkv)
    ffmpeg("-i", mkv, "-strict", "-1", *said, "-f", "yuv4mpegpipe", y4m)


def every_kind_is_read():
    for kind, (form, _) in KINDS.items():  # of odd sides and two bytes ffmpeg itself does not read what it writes
        make(kind, "in.y4m", "in.mkv", SOURCE if form.endswith("le") else ODD)
        expect(f"C{kind}" in head_of("in.y4m"), f"{kind}: ffmpeg wrote {head_of('in.y4m')}")
        a = run("copy", "in.y4m", "-o", "a.tif", "-y", **NO_PLUGIN)
        b = run("copy", "in.mkv", "-o", "b.tif", "-y")
        expect(a[0] == b[0] == 0 and bytes_of("a.tif") == bytes_of("b.tif"), f"{kind}: other pixels than of a .mkv: {a} {b}")


def every_kind_is_written():
    for kind, (form, _) in KINDS.items():
        make(kind, "in.y4m", "in.mkv")
        words = ("-m", network(1 if form.startswith("gray") else 3), "--normalize", "none", "-y")
        code, _, err = run("run", "in.y4m", "-o", "out.y4m", *words, **NO_PLUGIN)
        expect(code == 0 and f"C{kind}" in head_of("out.y4m") and "F30000:1001" in head_of("out.y4m"), f"{kind}: {code}: {err}")
        code, _, err = run("run", "in.y4m", "-o", "out.mkv", *words, "--codec", "ffv1")
        expect(code == 0, f"{kind} to .mkv: {code}: {err}")
        same = frames_of("out.y4m")
        expect(same == pixels("out.mkv", form) and same == pixels("out.y4m", form), f"{kind}: other planes than in a .mkv")
        if form in ("gray", "gray16le"):
            expect(same == frames_of("in.y4m"), f"{kind}: grey is not what it was")
        code, _, err = run("run", "in.mkv", "-o", "back.y4m", *words)
        expect(code == 0 and frames_of("back.y4m") == same, f"{kind}: .mkv to .y4m: {code}: {err}")


def pixels_that_are_asked_for():
    make("444", "in.y4m", "in.mkv")
    words = ("-m", network(3), "--normalize", "none", "-y")
    for form, kind in (("yuv420p", "420mpeg2"), ("yuv422p10le", "422p10"), ("yuv444p16le", "444p16")):
        code, _, err = run("run", "in.y4m", "-o", "out.y4m", *words, "--pix-fmt", form, **NO_PLUGIN)
        expect(code == 0 and f"C{kind}" in head_of("out.y4m"), f"{form}: {code}: {err}")
        run("run", "in.y4m", "-o", "out.mkv", *words, "--pix-fmt", form, "--codec", "ffv1")
        expect(frames_of("out.y4m") == pixels("out.mkv", form), f"{form}: other planes than in a .mkv")
    for word, says in (("rgb24", "nearest is yuv444p; it takes"), ("yuva420p", "nearest is yuv420p; it takes")):
        code, _, err = run("run", "in.y4m", "-o", "out.y4m", *words, "--pix-fmt", word)
        expect(code == 64 and says in err, f"{word}: {code}: {err}")
    code, _, err = run("run", "in.y4m", "-o", "out.y4m", *words, "--codec", "ffv1")
    expect(code == 64 and "ffv1" in err, f"a codec: {code}: {err}")


def rgb_is_within_one():
    """4:4:4 of 16 bits, of colours that RGB has: the planes come back, but for how RGB is rounded."""
    ffmpeg(*SOURCE, "-vf", "lutrgb=r=val/2+64:g=val/2+64:b=val/2+64", "-pix_fmt", "yuv444p16le", "-color_range", "pc", "-strict", "-1", "-f", "yuv4mpegpipe", "in.y4m")
    code, _, err = run("run", "in.y4m", "-o", "out.y4m", "-m", network(3), "--normalize", "none", "-y", **NO_PLUGIN)
    a, b = (memoryview(frames_of(n)).cast("H") for n in ("in.y4m", "out.y4m"))
    off = max(abs(x - y) for x, y in zip(a, b))
    expect(code == 0 and "XCOLORRANGE=FULL" in head_of("out.y4m") and off <= 1, f"4:4:4 of 16 bits: {off} off: {code}: {err}")


def words_of_frames():
    """FRAME may have words behind it, each other ones."""
    make("420jpeg", "in.y4m", "in.mkv")
    data = bytes_of("in.y4m")
    parts = data.split(b"FRAME\n")
    with open("words.y4m", "wb") as f:
        f.write(parts[0])
        for k, p in enumerate(parts[1:]):
            f.write((b"FRAME\n" if k < 2 else b"FRAME X" + b"y" * k + b" Ip\n") + p)
    for name in ("in", "words"):
        expect(run("copy", name + ".y4m", "-o", name + ".tif", "-y", **NO_PLUGIN)[0] == 0, f"{name}.y4m")
    expect(bytes_of("in.tif") == bytes_of("words.tif"), "words behind FRAME: other pixels")


def damage():
    make("420jpeg", "in.y4m", "in.mkv", ODD)
    data = bytes_of("in.y4m")
    size = data.index(b"\n", data.index(b"FRAME")) + 1
    later = data.index(b"FRAME", size)
    expect(b" W67 H45 " in data, f"no odd sides: {head_of('in.y4m')}")
    cases = {"in the midst of a frame": (data[:-100], 65, "cut"), "in the midst of a line": (data[:later + 3], 65, "no FRAME"),
             "no frame": (data[:data.index(b"FRAME")], 65, "without frames"), "a line without end": (data[:20], 65, "no line ends"),
             "no size": (data.replace(b" W67", b" W0", 1), 65, "no size"), "another size": (data.replace(b" W67", b" W66", 1), 65, "no FRAME"),
             "pixels that nobody knows": (data.replace(b"C420jpeg", b"C499jpeg", 1), 65, "C499jpeg"),
             "alpha": (data.replace(b"C420jpeg", b"C444alpha", 1), 65, "C444alpha"),
             "no line between": (data[:later] + b"G" + data[later + 1:], 65, "no FRAME")}
    for what, (made, code, says) in cases.items():
        with open("bad.y4m", "wb") as f:
            f.write(made)
        got, _, err = run("run", "bad.y4m", "-o", "bad.tif", "-m", network(3), "-y", **NO_PLUGIN)
        expect(got == code and says in err, f"{what}: {got}: {err}")
        expect(not os.path.exists("bad.tif"), f"{what}: an output")
    with open("bad.y4m", "wb") as f:
        f.write(data[:-100])
    got, _, err = run("run", "bad.y4m", "-o", "o.y4m", "-m", network(3), "-y", "--normalize", "none", "--allow-truncated", **NO_PLUGIN)
    expect(got == 0 and bytes_of("o.y4m").count(b"FRAME") == data.count(b"FRAME") - 1 and "it is cut" in err, f"a cut one that is taken: {got}: {err}")
    with open("slow.y4m", "wb") as f:
        f.write(data.replace(b" F30000:1001", b" F0:0", 1).replace(b" Ip", b" It", 1))
    got, _, err = run("run", "slow.y4m", "-o", "bad.tif", "-m", network(3), "-y")
    expect(got == 65 and "ffmpeg -i slow.y4m -vf bwdif" in err, f"interlaced: {got}: {err}")
    got, sent, err = piped(bytes_of("slow.y4m"), "run", "-m", network(3), "-", "-o", "-")
    expect(got == 65 and not sent and "in what sends it (ffmpeg -vf bwdif)" in err and "-i -" not in err, f"interlaced, out of a pipe: {got}: {err}")
    got, sent, err = piped(bytes_of("bad.y4m"), "run", "-m", network(3), "-", "-o", "-", "--allow-truncated")
    expect(got == 65 and "takes such from a file alone" in err, f"a cut pipe: {got}: {err}")
    got, said, _ = run("info", "in.y4m", "--json")
    expect(got == 0 and '"frames_per_second":"30000/1001"' in said.replace(" ", ""), f"info: {said}")


def times_are_told():
    alpha_film("alpha.mkv", "bgra")
    code, _, err = run("run", "alpha.mkv", "-o", "o.y4m", "-m", network(4), "--normalize", "none", "-y")
    expect(code == 65 and "alpha" in err, f"alpha: {code}: {err}")
    ffmpeg(*SOURCE, "-f", "lavfi", "-i", "anullsrc", "-shortest", "-vf", "setpts=N*if(lt(N\\,4)\\,1\\,2)/25/TB", "-vsync", "vfr", "-c:v", "ffv1",
           "vfr.mkv")
    code, _, err = run("run", "vfr.mkv", "-o", "o.y4m", "-m", network(3), "--normalize", "none", "-y")
    expect(code == 0 and "times of their own" in err and "tracks" in err, f"varying times: {code}: {err}")
    code, _, err = run("run", sample("realshort.mp4"), "-o", "o.y4m", "-m", network(3), "--normalize", "none", "-y")
    expect(code == 0 and "times of their own" not in err, f"one rate: {code}: {err}")
    was = times(sample("realshort.mp4"))
    expect(max(abs(a - was[0] - b) for a, b in zip(was, times("o.y4m"))) < 1e-4, "times of one rate")
    code, _, err = run("run", "o.y4m", "-o", "o.mp4", "-m", network(3), "--normalize", "none", "-y")
    expect(code == 0 and len(times("o.mp4")) == len(was), f".y4m to .mp4: {code}: {err}")
    code, _, err = run("run", "o.y4m", "-o", "p.y4m", "-m", network(3), "--normalize", "none", "-y", "--fps", "25", **NO_PLUGIN)
    expect(code == 0 and "F25:1" in head_of("p.y4m"), f"--fps: {code}: {err}: {head_of('p.y4m')}")
    code, _, err = run("run", sample("bt709_full_range_yuvj.mp4"), "-o", "o.y4m", "-m", network(3), "--normalize", "none", "-y")
    said = stream(sample("bt709_full_range_yuvj.mp4"))[0]
    expect(code == 0 and "XCOLORRANGE=FULL" in head_of("o.y4m"), f"full range: {code}: {err}")
    expect(("matrix is bt709" in err) == (said["height"] < 720), f"a matrix that is not said: {err}")


# ---- Pipes ---------------------------------------------------------------------------------------------------------------


def piped(source, *words, **more):
    """Bytes of `source` through the command: exit code, what came out, messages."""
    r = subprocess.run([TEGULA, *words], input=source, capture_output=True, timeout=300, check=False, env={**os.environ, **NO_PLUGIN, **more})
    return r.returncode, r.stdout, r.stderr.decode()


def nothing_less_when_strict():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "ffv1", "-c:a", "flac", "snd.mkv")
    code, _, err = run("run", "-m", network(3), "snd.mkv", "-o", "strict.y4m", "--normalize", "none", "--strict")
    expect(code == 65 and "frames alone" in err and not os.path.exists("strict.y4m"), f"--strict with sound: {code}: {err}")


def frames_through_pipes():
    """The bytes are those of files, whatever the cut; nothing else goes to standard output."""
    for kind in ("420jpeg", "444p10", "mono"):
        make(kind, "in.y4m", "in.mkv")
        words = ("-m", network(1 if kind == "mono" else 3), "--normalize", "none")
        expect(run("run", "in.y4m", "-o", "out.y4m", "-y", *words)[0] == 0, f"{kind}: a file")
        want, data = bytes_of("out.y4m"), bytes_of("in.y4m")
        for more in ((), ("--tile", "16"), ("-v",), ("-q",), ("--threads", "1")):
            code, out, err = piped(data, "run", "-", "-o", "-", *words, *more)
            expect(code == 0 and out == want, f"{kind} {more}: {code}: {len(out)} bytes of {len(want)}: {err}")
        code, out, err = piped(b"", "run", "in.y4m", "-o", "-", *words)
        expect(code == 0 and out == want and "without a journal" in err, f"{kind}: a file to a pipe: {code}: {err}")
        with open("sent.y4m", "wb") as f:
            code = subprocess.run([TEGULA, "run", "in.y4m", "-o", "-", *words], stdout=f, stderr=subprocess.DEVNULL, check=False).returncode
        expect(code == 0 and bytes_of("sent.y4m") == want, f"{kind}: a file behind >: {code}")
    left = [n for n in os.listdir(".") if n.startswith("-")]
    expect(not left, f"files that nobody named: {left}")


def a_network_of_films_in_a_pipeline():
    """ffmpeg, tegula, ffmpeg."""
    same = network(3)
    line = (f"ffmpeg -v error -i '{sample('realshort.mp4')}' -f yuv4mpegpipe - | '{TEGULA}' run -q -m {same} - -o - --normalize none | "
            "ffmpeg -v error -y -i - -c:v ffv1 line.mkv")
    r = subprocess.run(["bash", "-c", "set -o pipefail; " + line], capture_output=True, text=True, timeout=120, check=False)
    ffmpeg("-i", sample("realshort.mp4"), "-f", "yuv4mpegpipe", "line.y4m")
    code, _, err = run("run", "-m", same, "line.y4m", "-o", "line2.y4m", "--normalize", "none", "-y")
    expect(r.returncode == 0 and code == 0 and pixels("line.mkv", "yuv420p") == frames_of("line2.y4m"), f"a pipeline: {r}: {code}: {err}")


def frames_come_as_they_are_done():
    """While the input is silent, all but the last frames are there."""
    make("444", "in.y4m", "in.mkv")
    data = bytes_of("in.y4m")
    first = data.index(b"FRAME")
    size = len(b"FRAME\n") + 66 * 44 * 3
    with subprocess.Popen([TEGULA, "run", "-q", "-m", network(3), "-", "-o", "-", "--normalize", "none"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        p.stdin.write(data[:first + 5 * size])
        p.stdin.flush()
        got = p.stdout.read(first + 3 * size)  # waits for ever where nothing comes
        p.stdin.write(data[first + 5 * size:])
        p.stdin.close()
        rest = p.stdout.read()
        code = p.wait()
    expect(code == 0 and len(got) == first + 3 * size and len(got + rest) >= len(data) - 20, f"in time: {code}: {len(got)}, {len(rest)}")


def what_needs_more_than_a_stream():
    """Volumes of nobody knows how many frames; and what else would go where the film goes."""
    shape = ["N", 3, "D", "H", "W"]
    with open("volume.onnx", "wb") as f:
        f.write(model([node("Identity", ["x"], ["y"])], [], [port("x", shape)], [port("y", shape)]))
    make("444", "in.y4m", "in.mkv")
    code, got, err = piped(bytes_of("in.y4m"), "run", "-m", "volume.onnx", "-", "-o", "-", "--normalize", "none")
    expect(code == 64 and not got and "volumes" in err, f"volumes out of a pipe: {code}: {len(got)}: {err}")
    words = ("run", "-m", network(3), "in.y4m", "-o", "-", "--normalize", "none")
    for more in (("--log", "/dev/stdout"), ("--trace", "/dev/stdout"), ("--log", "-")):
        code, got, err = piped(b"", *words, *more)
        expect(code == 64 and not got and more[0] in err, f"{more} beside -o -: {code}: {err}")
    before = bytes_of("in.y4m")
    with open("in.y4m", "ab") as f:
        p = subprocess.run([TEGULA, *words], stdout=f, stderr=subprocess.PIPE, check=False)
    expect(p.returncode == 64 and bytes_of("in.y4m") == before, f"standard output is the input: {p.returncode}: {p.stderr[-200:]}")


def one_file_at_both_ends():
    """Before anything is written; where the shell emptied it, the words say so."""
    make("444", "in.y4m", "in.mkv")
    data, net = bytes_of("in.y4m"), network(3)
    for line, says, left in (("- -o - <ends.y4m >ends.y4m", "it is empty: `>`", b""), ("- -o - <ends.y4m >>ends.y4m", "standard output is the input", data),
                             ("ends.y4m -o - >ends.y4m", "it is empty: `>`", b""), ("ends.y4m -o - >>ends.y4m", "the input, ends.y4m", data),
                             ("- -o - <ends.y4m 1<>ends.y4m", "standard output is the input", data),
                             ("--raw 6x4,rgb24 - -o - --format raw <ends.y4m >>ends.y4m", "standard output is the input", data),
                             ("- -o ends.y4m -y <ends.y4m", "the input itself", data),
                             *((f"- -o others.y4m -y --{o} ends.y4m <ends.y4m", "is the input itself", data) for o in ("trace", "save", "log")), ("ends.y4m -o ends.y4m -y", "the input itself", data)):
        with open("ends.y4m", "wb") as f:
            f.write(data)
        code, _, err = in_shell(f"'{TEGULA}' run -m {net} --normalize none {line}")
        expect(code == 64 and says in err and bytes_of("ends.y4m") == left, f"{line}: {code}: {len(bytes_of('ends.y4m'))} bytes: {err}")
    code, _, err = in_shell(f"'{TEGULA}' run -q -m {net} --normalize none - -o - <in.y4m >other.y4m && cmp in.y4m in.y4m")
    expect(code == 0 and bytes_of("other.y4m").count(b"FRAME") == data.count(b"FRAME"), f"two files: {code}: {err}")


def in_shell(line):
    r = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False,
                       env={**os.environ, **NO_PLUGIN})
    return r.returncode, r.stdout, r.stderr


def streams_that_are_closed():
    """A film has nowhere to go, and no file of the run takes the number of a stream."""
    make("444", "in.y4m", "in.mkv")
    words = f"-m {network(3)} --normalize none"
    data = bytes_of("in.y4m")
    for line, says in (("in.y4m -o - >&-", "standard output is closed"), ("- -o - <in.y4m >&-", "standard output is closed"),
                       ("- -o closed.y4m <&-", "standard input"), ("in.y4m -o - </dev/null 1</dev/null", "standard output is closed")):
        code, out, err = in_shell(f"'{TEGULA}' run {words} {line}")
        expect(code == 74 and says in err and not out and bytes_of("in.y4m") == data, f"{line}: {code}: {err}")
        expect(not os.path.exists("closed.y4m"), line)
    expect(run("run", *words.split(), "in.y4m", "-o", "open.y4m", "-y", **NO_PLUGIN)[0] == 0, "a run")
    for line, want in (("2>&-", 0), (">&-", 74), (">&- 2>&-", 74), ("<&- >&- 2>&-", 74)):
        code, _, err = in_shell(f"'{TEGULA}' run -v {words} in.y4m -o shut.y4m -y {line}")
        expect(code == want and bytes_of("shut.y4m") == bytes_of("open.y4m"), f"{line}: {code}: {err}")
        expect(bytes_of("in.y4m") == data, f"{line}: the input")


def any_film_goes_out():
    """Into the pipe of what reads it: an H.264, a part of a film, frames that are chosen."""
    film = sample("carphone_pristine.mp4")
    for words in ((), ("--frames", "5:20"), ("--planes", "3-9"), ("--normalize", "percentile:1,99")):
        words = ("-m", network(3), film, "-y", "--pix-fmt", "yuv444p", *(() if "--normalize" in words else ("--normalize", "none")), *words)
        code, _, err = run("run", *words, "-o", "file.y4m")
        p = subprocess.run([TEGULA, "run", *words, "-o", "-"], capture_output=True, check=False)
        expect(code == 0 and p.returncode == 0 and p.stdout == bytes_of("file.y4m"), f"{words[4:]}: {code}, {p.returncode}: {err} {p.stderr[-300:]}")


def luma_goes_through_pipes():
    """With any number of threads, and while the input is silent: chroma of a frame is there until it is sent."""
    film_of("small.y4m", 32, 32, 25, 8)
    words = ("-m", network(1), "-q", "--normalize", "none")
    expect(run("run", *words, "small.y4m", "-o", "luma.y4m", "-y")[0] == 0, "luma of a .y4m")
    data, want = bytes_of("small.y4m"), bytes_of("luma.y4m")
    for threads in ("1", "3", "4", "8"):
        code, got, err = piped(data, "run", *words, "-", "-o", "-", "--threads", threads)
        expect(code == 0 and got == want, f"luma with {threads} threads: {code}: {err[-300:]}")
    first, size = data.index(b"FRAME"), len(b"FRAME\n") + 3 * 32 * 32
    begin = want.index(b"FRAME")
    with subprocess.Popen([TEGULA, "run", *words, "-", "-o", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        p.stdin.write(data[:first + 6 * size])
        p.stdin.flush()
        got = p.stdout.read(begin + 5 * size)  # waits for ever where nothing comes
        p.stdin.close()
        got += p.stdout.read()
    expect(p.returncode == 0 and got == want[:begin + 6 * size], f"luma in time: {p.returncode}: {len(got)}")


def peak_of(pid):
    """Its largest resident set so far, KiB. (What wait4 tells has this process in it, from before exec.)"""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(next((x.split()[1] for x in f if x.startswith("VmHWM")), 0))


def memory_is_flat():
    """As much of 2,000 frames as of 50."""
    film_of("few.y4m", 64, 48, 25, 2)
    few = bytes_of("few.y4m")
    first = few.index(b"FRAME")
    most = {}
    for n in (1, 40):
        with open("many.y4m", "wb") as f:
            f.write(few[:first] + few[first:] * n)
        with subprocess.Popen(["cat", "many.y4m"], stdout=subprocess.PIPE) as feeder, subprocess.Popen(
                [TEGULA, "run", "-q", "-m", network(3), "-", "-o", "-", "--normalize", "none"], stdin=feeder.stdout,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
            want, got = n * (len(few) - first) - 140000, 0  # more than a pipe holds
            while got < want:  # it waits with what is left
                got += len(p.stdout.read(4096))
            most[n] = peak_of(p.pid)
            p.stdout.read()
        expect(p.returncode == 0 and most[n] > 1000, f"{50 * n} frames: {p.returncode}: {most}")
    expect(most[40] < most[1] + 1024, f"memory grows with frames: {most} KiB")
    print(f"  memory: {most} KiB", flush=True)


def pipes_that_break():
    make("444", "in.y4m", "in.mkv")
    data = bytes_of("in.y4m")
    same = network(3)
    words = ("run", "-m", same, "-", "-o", "-")
    none = ("--normalize", "none")
    cases = {"the midst of a frame": (data[:-100], none, 65, "cut"), "the midst of a line": (data[:data.index(b"FRAME") + 3], none, 65, "midst"),
             "nothing": (b"", none, 65, "nothing came"), "no frame": (data[:data.index(b"FRAME")], none, 65, "without frames"),
             "another film": (b"\x1aE\xdf\xa3" * 99, none, 65, "no YUV4MPEG2"), "junk": (data[:-1] + b"xFRAMX\n", none, 65, "no FRAME"),
             "statistics": (data, ("--normalize", "percentile:1,99"), 64, "before the first one is computed: write it to a file first (ffmpeg"), "planes": (data, (*none, "--planes", "0-3"), 64, "--planes"),
             "events": (data, (*none, "--json"), 64, "--json")}
    for what, (made, more, want, says) in cases.items():
        code, out, err = piped(made, *words, *more)
        expect(code == want and says in err, f"{what}: {code}: {err}")
        expect(want != 64 or not out, f"{what}: {len(out)} bytes on standard output")
    code, out, err = piped(data[:-100], *words, *none)
    expect(out.count(b"FRAME") == data.count(b"FRAME") - 1, f"frames before a cut: {out.count(b'FRAME')} of {data.count(b'FRAME')}: {code}")
    for verb in ("verify", "preview"):
        code, _, err = piped(data, verb, "-m", same, "-", *none, *(("-o", "p.png") if verb == "preview" else ()))
        expect(code == 64 and "write it to a file" in err, f"{verb}: {code}: {err}")
    for out in ("out.tif", "out%03d.png"):
        code, _, err = piped(data, "run", "-m", same, "-", "-o", out, *none, "-y")
        expect(code == 64 and "write it to a file" in err, f"from a pipe to {out}: {code}: {err}")
    code, out, err = piped(data, "plan", "-m", same, "-", "-o", "-", *none)
    expect(code == 0 and b"nobody knows how many" in out and b"no journal" in out, f"plan: {code}: {out}: {err}")


def a_pipe_becomes_a_file():
    """The bytes are those of a run from file to file; nothing else stays, whatever stops it."""
    outs = ("p.y4m",) if OWN else ("p.y4m", "p.mkv", "p.mp4", "p.mov")
    draw("long.y4m", "444", (66, 44), 101)
    data, words = bytes_of("long.y4m"), ("-m", network(3), "--normalize", "none")
    if not OWN:
        del NO_PLUGIN["TEGULA_AV_PLUGIN"]
    for out in outs:
        for net in (3, 1):  # of one channel: luma, and chroma passes by
            args = ("-m", network(net, f"n{net}.onnx"), "--normalize", "none")
            expect(run("run", "long.y4m", "-o", "file" + out, "-y", *args)[0] == 0, f"{out}: file to file")
            code, said, err = piped(data, "run", "-", "-o", out, "-y", *args)
            expect(code == 0 and bytes_of(out) == bytes_of("file" + out), f"{out}, {net} channels: {code}: {err}")
            expect("a stop starts over" in err and b"done in" in said, f"{out}: {said} {err}")
        receipt = bytes_of(out + ".tegula.json")
        expect(b'"input_sha256":null' in receipt and b"came through a pipe" in receipt, f"{out}: receipt")
        code, _, err = piped(data, "run", "-", "-o", out, *words)
        expect(code == 73 and "-y" in err, f"{out} is there: {code}: {err}")
        os.unlink(out)
        before = sorted(os.listdir("."))
        code, _, err = piped(data[:-100], "run", "-", "-o", out, *words)
        expect(code == 65 and "cut" in err and sorted(os.listdir(".")) == before, f"{out} of a cut film: {code}: {err} {os.listdir('.')}")
        code, got, err = piped(data, "plan", "-", "-o", out, *words)
        expect(code == 0 and b"for 1000 frames; no journal" in got, f"plan: {code}: {got} {err}")
        stops = 0
        whole = bytes_of("file" + out) if run("run", "long.y4m", "-o", "file" + out, "-y", *words)[0] == 0 else b""
        for at in (5, 60, 205, 215) if out != "p.mov" else (210, 220):
            code = piped(data, "run", "-", "-o", out, *words, TEGULA_FAIL_IO=f"{at}:kill")[0]
            stops += code == -9
            code, _, err = piped(data, "run", "-", "-o", out, "-y", *words)
            left = [n for n in os.listdir(".") if n.startswith(out + ".") and not n.endswith(".tegula.json")]
            expect(code == 0 and not left, f"{out} killed at operation {at}: {code}: {left}: {err}")
            expect(bytes_of(out) == whole, f"{out} killed at operation {at}: other bytes")
            os.unlink(out)
        expect(stops > 1 - (out == "p.mov"), f"{out}: {stops} stops")
        code = run("run", "long.y4m", "-o", out, *words, TEGULA_FAIL_IO="30:kill", TEGULA_SYNC_TILES="1")[0]
        then, _, err = piped(data, "run", "-", "-o", out, *words, "-y")
        expect(code == -9 and then == 73 and ".journal is of an interrupted run" in err, f"{out} of a stopped run: {code}, {then}: {err}")
        code, _, err = run("run", "long.y4m", "-o", out, *words)
        expect(code == 0 and bytes_of(out) == whole, f"{out} goes on: {code}: {err}")
        os.unlink(out)
        code, _, err = piped(data, "run", "-", "-o", out, *words, TEGULA_FAIL_IO="40:full")
        expect(code in (73, 74) and not os.path.exists(out + ".partial"), f"{out}: a full disk: {code}: {err}")
        with subprocess.Popen([TEGULA, "run", "-", "-o", out, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
            p.stdin.write(data[:data.rindex(b"FRAME")])
            p.stdin.flush()
            time.sleep(0.3)
            p.send_signal(signal.SIGINT)
            err = p.stderr.read().decode()  # it does not wait for who sends
        expect(p.returncode == 130 and "starts over" in err and not os.path.exists(out) and not os.path.exists(out + ".partial"),
               f"{out}: stopped: {p.returncode}: {err}")
    NO_PLUGIN["TEGULA_AV_PLUGIN"] = "/nowhere/libtegula_av.so"


def readers_that_leave():
    """Exit 74 and no signal; a stop is 143, and what reads gets whole words of a film until then."""
    film_of("long.y4m", 320, 240, 25, 8)
    args = [TEGULA, "run", "-q", "-m", network(3), "long.y4m", "-o", "-", "--normalize", "none"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdout.read(100)
        p.stdout.close()
        err = p.stderr.read().decode()
        expect(p.wait() == 74 and "nobody reads it any more" in err, f"a reader that left: {p.returncode}: {err}")
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:  # nobody reads: it waits
        p.stdout.read(100)
        p.send_signal(signal.SIGTERM)
        err = p.stderr.read().decode()
        expect(p.wait(timeout=60) == 143 and "stopped by signal 15" in err, f"a stop: {p.returncode}: {err}")


# ---- Pictures ------------------------------------------------------------------------------------------------------------


def pictures_of(folder):
    return {n: bytes_of(os.path.join(folder, n)) for n in sorted(os.listdir(folder)) if n.endswith((".png", ".jpg"))}


def a_file_for_each_frame():
    """What ffmpeg reads is what a film without loss has; numbers go on from those that are read."""
    if OWN:
        draw(RGB, "444", (66, 44), 9)
    else:
        ffmpeg(*SOURCE, "-pix_fmt", "bgr0", "-c:v", "ffv1", RGB)
    os.makedirs("out", exist_ok=True)
    words = ("-m", network(3), "--normalize", "none")
    code, said, err = run("run", RGB, "-o", "out/%05d.png", *words)
    expect(code == 0 and "list of the pictures" in said, f"pictures: {code}: {said}{err}")
    got = pictures_of("out")
    expect(len(got) > 5 and sorted(got) == [f"{k + 1:05}.png" for k in range(len(got))], f"names: {sorted(got)}")
    if OWN:
        for what, name in ((RGB, "film.npy"), ("out/%05d.png", "pictures.npy")):
            expect(run("copy", what, "-o", name, "-y")[0] == 0, f"copy {what}")
        expect(bytes_of("film.npy") == bytes_of("pictures.npy"), "pictures: other pixels")
    else:
        expect(pixels("out/%05d.png", "rgb24") == pixels(RGB, "rgb24"), "pictures: other pixels")
    listed = bytes_of("out/%05d.png.frames").decode().splitlines()
    expect([x.split()[0] for x in listed] == sorted(got), f"the list: {listed}")
    expect([int(x.split()[1]) for x in listed] == [len(b) for _, b in sorted(got.items())], f"the list: {listed}")
    rest = sorted(n for n in os.listdir("out") if not n.endswith(".png"))
    expect(rest == ["%05d.png.frames", "%05d.png.frames.tegula.json"], f"beside them: {rest}")
    os.makedirs("shots", exist_ok=True)
    for k in range(3):
        shutil.copy(f"out/0000{k + 1}.png", f"shots/shot_{k + 7:03}.png")
    code, _, err = run("run", "shots/shot_%03d.png", "-o", "shots/big_%04d.png", *words)
    expect(code == 0 and bytes_of("shots/big_0007.png") == got["00001.png"] and os.path.exists("shots/big_0009.png"), f"from 7: {code}: {err}")
    os.makedirs("gaps", exist_ok=True)
    for k in (7, 9):
        shutil.copy(f"shots/shot_{k:03}.png", "gaps")
    code, _, err = run("run", "gaps/shot_%03d.png", "-o", "gaps/gap_%d.png", *words)
    gap = {n: b for n, b in pictures_of("gaps").items() if n.startswith("gap_")}
    expect(code == 0 and gap == {"gap_7.png": got["00001.png"], "gap_9.png": got["00003.png"]}, f"a gap: {code}: {err}: {sorted(gap)}")
    expect([x.split()[0] for x in bytes_of("gaps/gap_%d.png.frames").decode().splitlines()] == sorted(gap), "the list of files with a gap")
    code, _, err = run("run", "gaps/shot_%03d.png", "-o", "gaps/shot_%03d.png", *words, "-y")
    expect(code == 64 and "is never replaced" in err, f"over the files that are read: {code}: {err}")
    code, _, err = run("run", "gaps/shot_%03d.png", "-o", "gaps/last_%d.png", *words, "--planes", "1")
    expect(code == 0 and bytes_of("gaps/last_9.png") == got["00003.png"], f"the second one, number 9: {code}: {err}")
    code, _, err = run("run", RGB, "-o", "shots/j%d.jpg", *words, "--planes", "4-5")
    expect(code == 0 and os.path.exists("shots/j5.jpg") and os.path.exists("shots/j6.jpg"), f"JPEG: {code}: {err}: {os.listdir('shots')}")
    code, said, _ = run("status", "out/%05d.png")
    expect(code == 73, f"status: {code}: {said}")


def pictures_of_other_numbers_are_named():
    """They stay, since nobody knows whose they are: of a run that stopped, of one that had more frames."""
    words = ("-m", network(3), "--normalize", "none")
    os.makedirs("more", exist_ok=True)
    code, _, err = run("run", RGB, "-o", "more/%03d.png", *words)
    expect(code == 0 and "other numbers" not in err, f"into an empty folder: {code}: {err}")
    whole = pictures_of("more")
    code, _, err = run("run", RGB, "-o", "more/%03d.png", *words, "-y", "--planes", "0,2")
    expect(code == 0 and f"{len(whole) - 2} pictures of other numbers are there already (003.png, ...) and stay" in err, f"over a longer one: {code}: {err}")
    expect(sorted(pictures_of("more")) == sorted(whole), f"what is there then: {sorted(pictures_of('more'))}")
    for name in list(whole)[4:]:
        os.remove(f"more/{name}")
    code, _, err = run("run", RGB, "-o", "more/%03d.png", *words, "-y", "--planes", "0-2")
    expect(code == 0 and "1 picture of other numbers is there already (004.png) and stays" in err, f"one is left: {code}: {err}")


def a_tiff_for_each_frame():
    """The same pixels, by other readers, too; numbers of any type; killed, it goes on."""
    words = ("-m", network(3), "--normalize", "none")
    os.makedirs("tiff", exist_ok=True)
    code, said, err = run("run", RGB, "-o", "tiff/%03d.tif", *words)
    names = sorted(n for n in os.listdir("tiff") if n.endswith(".tif"))
    expect(code == 0 and len(names) == len(pictures_of("out")), f"TIFFs: {code}: {names}: {said}{err}")
    run("copy", "tiff/%03d.tif", "-o", "t.npy", "-y")
    run("copy", "out/%05d.png", "-o", "p.npy", "-y")
    expect(bytes_of("t.npy") == bytes_of("p.npy") and len(bytes_of("t.npy")) > 5000, "TIFFs: other pixels")
    if not OWN:
        expect(pixels("tiff/%03d.tif", "rgb24") == pixels(RGB, "rgb24"), "TIFFs: other pixels for ffmpeg")
    for at in (20, 45, 90):
        os.makedirs("tkill")
        first = run("run", RGB, "-o", "tkill/%03d.tif", *words, TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")[0]
        code, _, err = run("run", RGB, "-o", "tkill/%03d.tif", *words)
        got = {n: bytes_of("tkill/" + n) for n in os.listdir("tkill") if n.endswith((".tif", ".partial", ".made"))}
        expect(first == -9 and code == 0 and got == {n: bytes_of("tiff/" + n) for n in names}, f"killed at {at}: {first}, {code}: {sorted(got)}: {err}")
        shutil.rmtree("tkill")
    code, _, err = run("run", RGB, "-o", "tiff/f%d.tiff", *words, "--dtype", "float32", "--planes", "0-1")
    code2, info, _ = run("info", "tiff/f1.tiff")
    expect(code == code2 == 0 and "float32" in info, f"float32: {code}: {err}{info}")
    draw("grey.y4m", "mono", (33, 21), 2)
    code, _, err = run("run", "grey.y4m", "-o", "tiff/g%d.tif", "-m", network(1), "--normalize", "none")
    plane = bytes_of("grey.y4m").split(b"FRAME\n")[1]
    run("copy", "grey.y4m", "-o", "grey.npy", "-y", "--planes", "0")
    run("copy", "tiff/g1.tif", "-o", "g1.npy", "-y")
    expect(code == 0 and len(plane) == 33 * 21 and bytes_of("g1.npy")[-33 * 21:] == bytes_of("grey.npy")[-33 * 21:], f"grey: {code}: {err}")
    code, _, err = run("run", RGB, "-o", "tiff/z%d.tif", *words, "--compress", "zstd")
    expect(code == 64 and "one TIFF of all" in err, f"--compress: {code}: {err}")


def pictures_that_are_there():
    words = ("-m", network(3), "--normalize", "none")
    code, _, err = run("run", RGB, "-o", "out/%05d.png", *words)
    expect(code == 73 and ".frames: exists" in err, f"finished: {code}: {err}")
    code, _, err = run("run", RGB, "-o", "shots/shot_%03d.png", *words)
    expect(code == 73 and "shot_007.png: exists" in err and len(os.listdir("shots")) == 12, f"another's: {code}: {err}: {os.listdir('shots')}")
    was = pictures_of("shots")
    code, _, err = run("run", "shots/shot_%03d.png", "-o", "shots/../shots/shot_%03d.png", *words, "-y")
    expect(code == 64 and "never replaced" in err and pictures_of("shots") == was, f"the input: {code}: {err}")
    for more, says in ((("--codec", "ffv1"), "--codec"), (("--fps", "25"), "--fps"), (("--dtype", "float32"), "float32")):
        code, _, err = run("run", RGB, "-o", "shots/x%d.png", *words, *more)
        expect(code == 64 and says in err, f"{more}: {code}: {err}")
    code, _, err = run("run", RGB, "-o", "nowhere/x%d.png", *words)
    expect(code == 73, f"no folder: {code}: {err}")


def no_input_is_replaced():
    """Nor through links, nor the network."""
    os.makedirs("D")
    os.makedirs("E")
    for k in range(1, 4):
        shutil.copy(f"out/{k:05d}.png", f"D/{k:05d}.png")
        os.symlink(f"../D/{k:05d}.png", f"E/{k:05d}.png")
    before = pictures_of("D")
    code, _, err = run("run", "-m", network(3), "E/%05d.png", "-o", "D/%05d.png", "-y", "--normalize", "none")
    expect(code == 64 and pictures_of("D") == before, f"frames over the input: {code}: {err}")
    network(3, "E/00009.png")
    code, _, err = run("run", "-m", "E/00009.png", RGB, "-o", "E/%05d.png", "-y", "--normalize", "none")
    expect(code == 64 and "00009.png" in err, f"a frame over the network: {code}: {err}")
    shutil.rmtree("D")
    shutil.rmtree("E")


def a_picture_that_goes_is_told():
    """While others are still written: no run ends in 0 without it, and the same command makes it again."""
    draw("many.y4m", "444", (320, 180), 300)
    args = ["run", "-q", "many.y4m", "-o", "gone/%05d.png", "-m", network(3), "--normalize", "none"]
    os.makedirs("gone")
    with subprocess.Popen([TEGULA, *args], stderr=subprocess.PIPE) as p:
        while p.poll() is None and not os.path.exists("gone/00003.png"):
            time.sleep(0.001)
        os.unlink("gone/00002.png")
        early = not os.path.exists("gone/00300.png")
        _, err = p.communicate(timeout=100)
    expect(early and p.returncode == 73 and b"00002.png is gone" in err and not os.path.exists("gone/%05d.png.frames"),
           f"a picture that goes: {early}, {p.returncode}: {err}")
    code, _, err = run(*args)
    expect(code == 0 and len(pictures_of("gone")) == 300, f"and the same command: {code}: {err}")
    shutil.rmtree("gone")


def killed_pictures_go_on():
    """At one operation after the other. Pictures that are there stay the files they are; one that is gone, or whose bytes are others, is made again."""
    args = ["run", RGB, "-m", network(3), "--normalize", "none"]
    whole, listed = pictures_of("out"), bytes_of("out/%05d.png.frames")
    stops = kept = 0
    for at in range(3, 200, 7):
        os.makedirs("kill")
        code = run(*args, "-o", "kill/%05d.png", TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")[0]
        stops += code == -9
        there = {n: os.stat("kill/" + n).st_ino for n in os.listdir("kill") if n.endswith(".png")}
        expect(all(bytes_of("kill/" + n) == whole[n] for n in there), f"killed at operation {at}: a picture that is not whole")
        gone = sorted(there)[0] if len(there) > 3 else None
        hurt = sorted(there)[2] if gone else None
        if gone:
            os.unlink("kill/" + gone)
            with open("kill/" + hurt, "r+b") as f:
                f.seek(len(whole[hurt]) // 2)
                f.write(bytes([whole[hurt][len(whole[hurt]) // 2] ^ 1]))
        code, _, err = run(*args, "-o", "kill/%05d.png")
        expect(code == 0 or (code == 73 and not gone), f"killed at operation {at}: {code}: {err}")
        if code == 0:
            expect(pictures_of("kill") == whole and bytes_of("kill/%05d.png.frames") == listed, f"killed at operation {at}: others")
            kept += sum(os.stat("kill/" + n).st_ino == i for n, i in there.items() if n not in (gone, hurt))
        left = [n for n in os.listdir("kill") if n.endswith((".partial", ".journal", ".made"))]
        expect(not left, f"killed at operation {at}: {left} stay")
        shutil.rmtree("kill")
        if code == 73:
            break
    expect(stops > 5 and kept > 10, f"{stops} stops, {kept} pictures kept")
    print(f"  pictures: {stops} stops, {kept} kept", flush=True)


def pipes_and_pictures():
    what_needs_more_than_a_stream()
    one_file_at_both_ends()
    streams_that_are_closed()
    luma_goes_through_pipes()
    memory_is_flat()
    pipes_that_break()
    a_pipe_becomes_a_file()
    readers_that_leave()
    a_file_for_each_frame()
    pictures_of_other_numbers_are_named()
    a_tiff_for_each_frame()
    pictures_that_are_there()
    no_input_is_replaced()
    a_picture_that_goes_is_told()
    killed_pictures_go_on()


def own(_):
    words_of_frames()
    damage()
    frames_through_pipes()
    frames_come_as_they_are_done()
    pipes_and_pictures()


def all_of_it(rows):
    by = {r["file"]: r for r in rows}
    every_kind_is_read()
    every_kind_is_written()
    pixels_that_are_asked_for()
    rgb_is_within_one()
    words_of_frames()
    damage()
    times_are_told()
    nothing_less_when_strict()
    frames_through_pipes()
    a_network_of_films_in_a_pipeline()
    frames_come_as_they_are_done()
    any_film_goes_out()
    pipes_and_pictures()
    killed_runs_go_on(by["carphone_pristine.mp4"], ".y4m", 6)


if __name__ == "__main__":
    if OWN:
        os.environ.update(NO_PLUGIN)
    sys.exit(in_folder(own, samples=False) if OWN else in_folder(all_of_it, "ffprobe", "ffmpeg"))
