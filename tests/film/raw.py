#!/usr/bin/env python3
"""Frames without a header, read and written, by file and by pipe.

    raw.py TEGULA SOURCE VIDEOS

Each kind of pixels comes back byte by byte through a network that hands out what it gets. What is said of frames and does
not fit is refused. Beside ffmpeg, where it is there: what it writes is read, and what is written it reads."""
import os
import random
import shutil
import subprocess
import sys
from importlib.util import find_spec

from film_help import SOURCE, TEGULA, bytes_of, expect, ffmpeg, in_folder, network, run
from seeds import floats, model, node, port  # noqa: E402

W, H, N = 33, 18, 5
FFMPEG = shutil.which("ffmpeg") and shutil.which("ffprobe")
PLANAR = {"gray": (), "yuv420p": (1, 1), "yuv422p": (1, 0), "yuv444p": (0, 0), "yuv411p": (2, 0), "yuva420p": (1, 1),
          "yuva422p": (1, 0), "yuva444p": (0, 0), "gbrp": (0, 0), "gbrap": (0, 0)}
PACKED = {"rgb24": (3, 1), "bgr24": (3, 1), "rgba": (4, 1), "bgra": (4, 1), "argb": (4, 1), "abgr": (4, 1), "rgb48le": (3, 2), "bgr48le": (3, 2),
          "rgba64le": (4, 2), "bgra64le": (4, 2), "ya8": (2, 1), "ya16le": (2, 2)}
PAIRED = {"nv12": (8, 0), "nv21": (8, 0), "p010le": (10, 6), "p016le": (16, 0)}
DEPTHS = {"": 8, "9le": 9, "10le": 10, "12le": 12, "14le": 14, "16le": 16}


def numbers(dice, n, depth, limited, shift=0):
    """n samples of that many bits, in limited range where it is said."""
    low, high = (16 << depth - 8, (235 << depth - 8) + 1) if limited else (0, 1 << depth)
    some = (dice.randrange(low, high) << shift for _ in range(n))
    return bytes(some) if depth == 8 else b"".join(v.to_bytes(2, "little") for v in some)


def frames_of(form, w=W, h=H, n=N):
    """n frames of noise, drawn from the form's name."""
    dice, got = random.Random(form), b""
    if form in PACKED:
        many, size = PACKED[form]
        return dice.randbytes(w * h * n * many * size)
    pair = (w + 1) // 2 * 2 * ((h + 1) // 2)
    if form in PAIRED:
        return b"".join(numbers(dice, k, PAIRED[form][0], True, PAIRED[form][1]) for _ in range(n) for k in (w * h, pair))
    base = max((b for b in PLANAR if form.startswith(b)), key=len)
    depth, yuv = DEPTHS[form[len(base):]], base.startswith("yuv")
    for _ in range(n):
        got += numbers(dice, w * h, depth, yuv)
        for _ in range(2 if PLANAR[base] else 0):
            got += numbers(dice, -(-w >> PLANAR[base][0]) * -(-h >> PLANAR[base][1]), depth, yuv)
        if base in ("gbrap", "yuva420p", "yuva422p", "yuva444p"):
            got += numbers(dice, w * h, depth, False)
    return got


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)


def piped(data, *words, **more):
    r = subprocess.run([TEGULA, *words], input=data, capture_output=True, timeout=120, check=False, env={**os.environ, **more})
    return r.returncode, r.stdout, r.stderr.decode(errors="replace")


def all_forms():
    return [b + d for b in PLANAR for d in DEPTHS] + list(PACKED) + list(PAIRED)


def channels_of(form):
    """Of the network that gets all of it, or luma alone."""
    return 3 if form in PACKED and not form.startswith("ya") or form.startswith("gb") else 1


SAME = ("--normalize", "none", "-q", "-y")


def every_form_comes_back():
    """What the list of a refusal names is what is tried."""
    code, _, err = run("plan", "-m", network(3), "no.raw", "--raw", "4x4,what", "-o", "o.raw")
    said = err.split("one of ")[1].split(", and those")[0].split(", ") if code == 64 else []
    expect(sorted(said) == sorted([*PLANAR, *PACKED, *PAIRED]), f"the list of forms: {code}: {err}")
    for form in all_forms():
        data = frames_of(form)
        put("in.bin", data)
        words = ("-m", network(channels_of(form), f"n{channels_of(form)}.onnx"), *SAME, "--raw", f"{W}x{H},{form},30000/1001")
        code, got, err = piped(b"", "run", *words, "in.bin", "-o", "-", "--format", "raw")
        expect(code == 0 and got == data, f"{form}: {code}: {len(got)} bytes of {len(data)}: {err}")
        if form in ("gray16le", "bgr24", "rgba", "yuv420p10le", "nv12"):
            code, _, err = run("run", *words, "in.bin", "-o", "out.raw")
            expect(code == 0 and bytes_of("out.raw") == data, f"{form} from file to file: {code}: {err}")
            for more in ((), ("--tile", "16"), ("--threads", "1")):
                code, got, err = piped(data, "run", *words, "-", "-o", "-", "--format", "raw", *more)
                expect(code == 0 and got == data, f"{form} {more} by pipes: {code}: {len(got)} bytes of {len(data)}: {err}")


def refused(code, says, *words, data=None):
    got, _, err = run(*words) if data is None else piped(data, *words)
    missing = [t for t in says if t not in err]
    expect(got == code and not missing, f"{words}: exit {got}, not {code}, or not {missing}: {err}")


def frames_win_that_only_look_like_another_format(words, size):
    """A JPEG's first bytes, a MOV's, a TIFF's, a GIF's, a Y4M's: where whole frames are there, or a film that is cut is taken."""
    frames = frames_of("rgb24")
    for begin in (b"\xff\xd8\xff\xe0", b"\0\0\0\x10moov", b"II*\0\x08\0\0\0", b"GIF89a", b"YUV4MPEG2 W4 H2\n", b"\x89PNG\r\n\x1a\n"):
        data = begin + frames[len(begin):]
        put("looks.bin", data)
        code, _, err = run(*words[:-1], "looks.raw", "looks.bin", "--raw", size + ",rgb24", "-y")
        expect(code == 0 and bytes_of("looks.raw") == data, f"frames that begin {begin}: {code}: {err}")
        put("looks.bin", data[:-1])
        refused(64, ("leave --raw out",), *words, "looks.bin", "--raw", size + ",rgb24")
        code, _, err = run(*words[:-1], "looks.raw", "looks.bin", "--raw", size + ",rgb24", "-y", "--allow-truncated")
        expect(code == 0 and bytes_of("looks.raw") == data[:-W * H * 3], f"cut frames that begin {begin}: {code}: {err}")


def what_does_not_fit_is_refused():
    put("in.bin", frames_of("rgb24"))
    put("in.y4m", b"YUV4MPEG2 W4 H2 C444\nFRAME\n" + bytes(24))
    words = ("run", "-m", network(3), *SAME, "-o", "o.raw")
    size = f"{W}x{H}"
    for text, why in (("33,rgb24", "no size"), ("rgb24", "no size"), ("0x18,rgb24", "no size"), ("33x,rgb24", "no size"), ("-3x18,rgb24", "no size"),
                      ("99999x2,rgb24", "no size"), ("33x18x3,rgb24", "no size"), (size, "no FORMAT"), (size + ",", "no FORMAT"),
                      (size + ",rgb25", "no FORMAT that is known"), (size + ",gray11le", "no FORMAT that is known"), (size + ",rgb24,fast", "FPS is as"),
                      (size + ",rgb24,0", "FPS is as"), (size + ",rgb24,25/", "FPS is as"), (size + ",rgb24,25,2", "FPS is as")):
        refused(64, (f"--raw {text}:", why, "640x360,rgb24,25", "rgb48le", "yuv420p", "10le"), *words, "in.bin", "--raw", text)
    refused(64, ("in.y4m", "leave --raw out, which is for frames without a header, of rgb24"), *words, "in.y4m", "--raw", size + ",rgb24")
    refused(64, ("--raw is for one file",), *words, ".", "--raw", size + ",rgb24")
    frames_win_that_only_look_like_another_format(words, size)
    for other in ("rgb48le", "gray16le", "yuv420p"):
        refused(65, ("in.bin", "is cut, or --raw says another size or FORMAT", "--allow-truncated"), *words, "in.bin", "--raw", f"{W}x{H + 1},{other}")
    refused(65, ("without frames",), *words, "/dev/null", "--raw", size + ",rgb24")
    put("none.bin", b"")
    refused(65, ("without frames",), *words, "none.bin", "--raw", size + ",rgb24")
    refused(65, ("not a TIFF",), *words, "in.bin")
    put("in.raw", bytes_of("in.bin"))
    refused(65, ("not a TIFF", "--raw WIDTHxHEIGHT,FORMAT"), *words, "in.raw")
    for out in ("o.tif", "o.y4m", "o.npy"):
        refused(64, ("--format raw is for a film's frames", out), "run", "-m", network(3), *SAME, "in.bin", "--raw", size + ",rgb24", "-o", out, "--format", "raw")
    refused(64, ("no such frames", "nearest is rgb24", "it takes rgb24"), *words, "in.bin", "--raw", size + ",rgb24", "--pix-fmt", "rgb8")
    put("in.rgba", frames_of("rgba"))
    refused(64, ("--pix-fmt rgb24 has no alpha", "--drop-alpha"), *words, "in.rgba", "--raw", size + ",rgba", "--pix-fmt", "rgb24")
    expect(not os.path.exists("o.raw") and not os.path.exists("o.tif"), "a refusal left an output")


def what_is_cut():
    data, one = frames_of("rgb24"), W * H * 3
    raw = ("--raw", f"{W}x{H},rgb24")
    words = ("-m", network(3), *SAME, *raw)
    put("cut.bin", data[:-7])
    refused(65, (f"frame {N - 1} has {one - 7} bytes of {one}", "is cut"), "run", *words, "cut.bin", "-o", "cut.raw")
    code, _, err = run("run", *words, "cut.bin", "-o", "cut.raw", "--allow-truncated")
    expect(code == 0 and bytes_of("cut.raw") == data[:-one] and "it is cut" in err, f"a cut one that is taken: {code}: {err}")
    code, got, err = piped(data[:-7], "run", *words, "-", "-o", "-", "--format", "raw")
    expect(code == 65 and got == data[:-one] and "is cut" in err, f"a cut pipe: {code}: {len(got)}: {err}")
    refused(65, ("without frames",), "run", *words, "-", "-o", "-", "--format", "raw", data=b"")
    refused(64, ("come once",), "run", "-m", network(3), *raw, "-", "-o", "-", "--format", "raw", "--normalize", "percentile:1,99", data=data)
    refused(65, ("no YUV4MPEG2", "--raw"), "run", "-m", network(3), *SAME, "-", "-o", "-", data=data)


def twice(path="twice.onnx"):
    """Each pixel four times."""
    with open(path, "wb") as f:
        f.write(model([node("Concat", ["x"] * 4, ["a"], axis=1), node("DepthToSpace", ["a"], ["y"], blocksize=2, mode="DCR")], [],
                      [port("x", ["N", 3, "H", "W"])], [port("y", ["N", 3, "H2", "W2"])]))
    return path


def a_network_of_twice_the_size():
    data, row = frames_of("bgr24"), W * 3
    want = b""
    for y in range(N * H):
        line = data[y * row:(y + 1) * row]
        want += 2 * b"".join(2 * line[x:x + 3] for x in range(0, row, 3))
    words = ("run", "-m", twice(), *SAME, "--raw", f"{W}x{H},bgr24")
    put("in.bin", data)
    code, _, err = run(*words, "in.bin", "-o", "big.raw")
    expect(code == 0 and bytes_of("big.raw") == want, f"x2 by file: {code}: {err}")
    code, got, err = piped(data, *words, "-", "-o", "-", "--format", "raw")
    expect(code == 0 and got == want, f"x2 by pipe: {code}: {len(got)} of {len(want)}: {err}")
    code, _, err = piped(data, *words, "-", "-o", "spooled.raw")
    expect(code == 0 and bytes_of("spooled.raw") == want, f"x2 from a pipe to a file: {code}: {err}")
    code, got, err = piped(b"", *words, "in.bin", "-o", "-", "--format", "raw", "--pix-fmt", "rgb24")
    swapped = bytearray(want)
    swapped[0::3], swapped[2::3] = want[2::3], want[0::3]
    expect(code == 0 and got == swapped, f"--pix-fmt rgb24: {code}: {err}")


def frames_come_as_they_are_done():
    data, one = frames_of("rgb24"), W * H * 3
    with subprocess.Popen([TEGULA, "run", "-m", network(3), *SAME, "--raw", f"{W}x{H},rgb24", "-", "-o", "-", "--format", "raw"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        p.stdin.write(data[:4 * one])
        p.stdin.flush()
        got = p.stdout.read(2 * one)  # waits for ever where nothing comes
        p.stdin.write(data[4 * one:])
        p.stdin.close()
        got += p.stdout.read()
        code = p.wait()
    expect(code == 0 and got == data, f"in time: {code}: {len(got)}")


def beside_y4m():
    """The same planes with lines and without: the same pixels, windows, parts and rates."""
    data = frames_of("yuv444p", 32, 16)
    one = len(data) // N
    put("in.bin", data)
    put("in.y4m", b"YUV4MPEG2 W32 H16 F30:1 Ip C444\n" + b"".join(b"FRAME\n" + data[k * one:(k + 1) * one] for k in range(N)))
    with open("window.onnx", "wb") as f:
        f.write(model([node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])], [floats("w", [3, 9, 1, 1])], [port("x", ["N", 9, "H", "W"])],
                      [port("y", ["N", 3, "H", "W"])]))
    raw = ("in.bin", "--raw", "32x16,yuv444p,30")
    for net, more in ((network(3), ()), ("window.onnx", ("--window", "3")), (network(3), ("--frames", "1:4")), (network(3), ("--planes", "0,3"))):
        words = ("run", "-m", net, *SAME, "--dtype", "uint8", *more)
        a, b = run(*words, *raw, "-o", "a.raw", "--pix-fmt", "rgb24"), run(*words, "in.y4m", "-o", "b.raw")
        expect(a[0] == b[0] == 0 and bytes_of("a.raw") == bytes_of("b.raw"), f"{more}: others than of a .y4m: {a} {b}")
        a, b = run(*words, *raw, "-o", "a.y4m"), run(*words, "in.y4m", "-o", "b.y4m")
        expect(a[0] == b[0] == 0 and bytes_of("a.y4m") == bytes_of("b.y4m") and b" F30:1 " in bytes_of("a.y4m"), f"{more} to .y4m: {a} {b}")
    a, b = run("copy", *raw, "-o", "a.tif", "-y"), run("copy", "in.y4m", "-o", "b.tif", "-y")
    expect(a[0] == b[0] == 0 and bytes_of("a.tif") == bytes_of("b.tif"), f"copy: {a} {b}")
    for verb, *out in (("verify",), ("preview", "-o", "p.png"), ("plan", "-o", "o.raw")):
        code, _, err = run(verb, "-m", network(3), "--normalize", "none", *raw, *out, *(("-y",) if out else ()))
        expect(code == 0, f"{verb}: {code}: {err}")
    code, said, _ = run("plan", "-m", network(3), "--normalize", "none", *raw, "-o", "o.raw")
    expect("yuv444p in rawvideo" in said and "raw" in said, f"plan: {code}: {said}")


def killed_runs_go_on():
    """To the same bytes, and not with frames that are said to lie in another way."""
    data = frames_of("rgb24")
    put("in.bin", data)
    words = ("run", "-m", network(3), *SAME, "in.bin", "-o", "killed.raw", "--raw")
    for at in (12, 20, 26):
        code = run(*words, f"{W}x{H},rgb24", TEGULA_FAIL_IO=f"{at}:kill")[0]
        expect(code == -9, f"killed at operation {at}: {code}")
        if at == 20 and os.path.exists("killed.raw.partial"):
            code, _, err = run(*(w for w in words if w != "-y"), f"{W}x{H},bgr24")
            expect(code == 65 and "another raw (33x18,rgb24, now 33x18,bgr24)" in err, f"another --raw went on: {code}: {err}")
        code, _, err = run(*(w for w in words if w != "-y"), f"{W}x{H},rgb24")
        expect(code == 0 and bytes_of("killed.raw") == data, f"killed at operation {at}: {code}: {err}")
        expect(b"rgb24 in rawvideo" in bytes_of("killed.raw.tegula.json"), "no receipt")
        os.unlink("killed.raw")
        os.unlink("killed.raw.tegula.json")


def what_the_page_says_of_numpy():
    """Its Python, as it stands."""
    with open(os.path.join(SOURCE, "docs/howto/films.md"), encoding="utf-8") as f:
        text = f.read().split("```python\n")[1].split("```")[0]
    twice("up2x.onnx")
    before, os.environ["PATH"] = os.environ["PATH"], os.path.dirname(TEGULA) + os.pathsep + os.environ["PATH"]
    names = {}
    exec(text, names)  # pylint: disable=exec-used
    os.environ["PATH"] = before
    expect(names["big"].shape == (24, 216, 384, 3) and not names["big"].any(), "the page's Python")


def beside_ffmpeg():
    """Through two pipes of ffmpeg's; and into a film."""
    source = ("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10:duration=1")
    for form in ("rgb24", "gray16le", "rgb48le", "gbrp10le", "ya8"):
        ffmpeg(*source, "-pix_fmt", form, "-f", "rawvideo", "want.bin")
        same = network(channels_of(form))
        line = (f"ffmpeg -v error {' '.join(source)} -pix_fmt {form} -f rawvideo - | '{TEGULA}' run -q -m {same} --raw 64x48,{form},10 - -o - --format raw "
                f"--normalize none | ffmpeg -v error -y -f rawvideo -pix_fmt {form} -video_size 64x48 -framerate 10 -i - -f rawvideo -pix_fmt {form} got.bin")
        r = subprocess.run(["bash", "-c", "set -o pipefail; " + line], capture_output=True, text=True, timeout=120, check=False)
        expect(r.returncode == 0 and bytes_of("got.bin") == bytes_of("want.bin"), f"{form} through ffmpeg: {r}")
    ffmpeg(*source, "-pix_fmt", "yuv420p", "-f", "rawvideo", "in.bin")
    code, _, err = run("run", "-m", network(3), *SAME, "--raw", "64x48,yuv420p,10", "in.bin", "-o", "film.mp4", "--fps", "30000/1001")
    if code == 69:  # no plugin is built
        return
    said = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,r_frame_rate,nb_frames,pix_fmt", "-of", "csv=p=0", "film.mp4"],
                          capture_output=True, text=True, check=False).stdout if code == 0 else ""
    expect(said.strip() == "h264,yuv420p,30000/1001,10", f"into a film: {code}: {said}: {err}")
    refused(64, ("film.mp4: a film that says itself", "leave --raw out, which is for frames without a header, of rgb24"), "run", "-m", network(3), *SAME, "--raw", "64x48,rgb24", "film.mp4",
            "-o", "o.raw")
    code, _, err = run("run", "-m", network(3), *SAME, "film.mp4", "-o", "rgb.raw")
    expect(code == 0 and len(bytes_of("rgb.raw")) == 10 * 64 * 48 * 3, f"a film without its header is rgb24: {code}: {err}")
    code, _, err = run("run", "-m", network(1), *SAME, "film.mp4", "-o", "luma.raw")
    expect(code == 0 and len(bytes_of("luma.raw")) == 10 * 64 * 48 * 3 // 2, f"luma of a film: {code}: {err}")


def main(_=None):
    for test in (every_form_comes_back, what_does_not_fit_is_refused, what_is_cut, a_network_of_twice_the_size, frames_come_as_they_are_done, beside_y4m,
                 killed_runs_go_on, *([beside_ffmpeg] if FFMPEG else []),
                 *([what_the_page_says_of_numpy] if find_spec("numpy") else [])):
        test()


if __name__ == "__main__":
    sys.exit(in_folder(main, samples=False))
