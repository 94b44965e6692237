#!/usr/bin/env python3
"""A network of one channel over films of colours: luma goes through it, and the rest passes by. Seen by ffmpeg.

    film_luma.py TEGULA SOURCE VIDEOS

Chroma and alpha of a film of the same size are the same numbers; of one twice as large they are within one of linear
interpolation in doubles. Luma is within its range (16 to 235) the same. 77: no samples, or no ffprobe and ffmpeg."""
import os
import signal
import struct
import subprocess
import sys
import time

from film_help import TEGULA, expect, in_folder, run, sample
from film_write import ffmpeg, network, pixels, probe
from seeds import blk, model, node, num, port  # noqa: E402


def larger(name="twice.onnx"):
    """Each pixel becomes four."""
    tensor = b"".join(num(1, d) for d in (1, 1, 2, 2)) + num(2, 1) + blk(8, "w") + blk(9, struct.pack("<4f", 1, 1, 1, 1))
    shape = ["N", 1, "H", "W"]
    with open(name, "wb") as f:
        f.write(model([node("ConvTranspose", ["x", "w"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], [tensor],
                      [port("x", shape)], [port("y", ["N", 1, "H2", "W2"])]))
    return name


def write(film, out, *words, net=None):
    code, _, err = run("run", "-m", net or network(1), film, "-o", out, "-y", "--normalize", "none", "--codec", "ffv1", *words)
    expect(code == 0, f"{film} to {out} {words}: {code}: {err}")
    return err


def stored(path):
    s = probe(path, "-select_streams", "V:0", "-show_streams")["streams"][0]
    return s["pix_fmt"], s["width"], s["height"]


def planes(data, form, w, h):
    """Of the first frame: (width, height, numbers) for each component."""
    wide = 2 if "10le" in form else 1
    cw, ch = {"yuv420p": ((w + 1) // 2, (h + 1) // 2), "yuva420p": ((w + 1) // 2, (h + 1) // 2), "yuv422p": ((w + 1) // 2, h)}.get(
        form.replace("10le", ""), (w, h))
    sizes = [(w, h), (cw, ch), (cw, ch)] + ([(w, h)] if "yuva" in form else [])
    got, at = [], 0
    for a, b in sizes:
        got.append((a, b, struct.unpack_from(f"<{a * b}{'BH'[wide - 1]}", data, at)))
        at += a * b * wide
    return got, at


def the_rest_is_the_same(film, out, *words):
    write(film, out, *words)
    form, w, h = stored(film)
    expect(stored(out) == (form, w, h), f"{film} to {out}: {stored(out)} of {(form, w, h)}")
    was, is_ = pixels(film, form), pixels(out, form)
    expect(len(was) == len(is_), f"{film} to {out}: {len(is_)} bytes of {len(was)}")
    size = planes(was, form, w, h)[1]
    unit = 4 if "10le" in form else 1
    for at in range(0, min(len(was), 4 * size), size):
        a, b = planes(was[at:], form, w, h)[0], planes(is_[at:], form, w, h)[0]
        expect([p[2] for p in a[1:]] == [p[2] for p in b[1:]], f"{film} to {out}: chroma or alpha differ in frame {at // size}")
        off = sum(y != min(max(x, 16 * unit), 235 * unit) for x, y in zip(a[0][2], b[0][2]))
        expect(off == 0, f"{film} to {out}: {off} of {len(a[0][2])} samples of luma differ in frame {at // size}")


def sampled(plane, x, y):
    w, h, v = plane
    def inside(k, n):
        return min(max(k, 0), n - 1)
    x0, y0 = int(x // 1), int(y // 1)
    u, t = x - x0, y - y0
    def row(k):
        k = inside(k, h) * w
        return (1 - u) * v[k + inside(x0, w)] + u * v[k + inside(x0 + 1, w)]
    return (1 - t) * row(y0) + t * row(y0 + 1)


def of_a_larger_film_it_is_linear(film):
    """4:2:0: chroma sample k lies on luma column 2k, between rows 2k and 2k + 1."""
    write(film, "big.mov", "--frames", "0:3", net=larger())
    form, w, h = stored(film)
    expect(stored("big.mov") == (form, 2 * w, 2 * h), f"{film}: {stored('big.mov')}")
    was, is_ = planes(pixels(film, form), form, w, h)[0], planes(pixels("big.mov", form), form, 2 * w, 2 * h)[0]
    for c in (1, 2):
        cw, ch, v = is_[c]
        most = 0
        for k in range(0, cw * ch, 7):
            x, y = 2 * (k % cw), 2 * (k // cw) + 0.5  # in luma of the larger film
            x, y = (x + 0.5) / 2 - 0.5, (y + 0.5) / 2 - 0.5
            most = max(most, abs(v[k] - sampled(was[c], x / 2, (y - 0.5) / 2)))
        expect(most <= 0.51, f"{film} twice as large: chroma {c} is off by {most}")


def alpha_passes_by_too():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1,format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='X*4'",
           "-c:v", "ffv1", "-pix_fmt", "yuva420p", "a.mkv")
    the_rest_is_the_same("a.mkv", "o.mkv")
    code, _, err = run("run", "-m", network(1), "a.mkv", "-o", "o.mp4", "-y", "--normalize", "none", "--drop-alpha")
    expect(code == 0 and stored("o.mp4")[0] == "yuv420p", f"--drop-alpha: {code}: {err}")


def what_cannot_pass_by():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "bgr0", "rgb.mkv")
    for film, out, says in (("rgb.mkv", "o.mkv", "not stored as luma"), (sample("rot90.mov"), "o.mkv", "turned")):
        words = ("run", "-m", network(1), film, "-o", out, "-y", "--normalize", "none", "--codec", "ffv1")
        code, _, err = run(*words, "--on", "luma")
        expect(code == 65 and says in err and "--on each" in err, f"{film} --on luma: {code}: {err}")
        for more in ((), ("--on", "each")):
            code, _, err = run(*words, *more)
            expect(code == 0, f"{film} {more}: {code}: {err}")
    expect(pixels("o.mkv", "gbrp"), "no pixels")
    write("rgb.mkv", "e.mkv", "--on", "each")
    expect(pixels("e.mkv", "gbrp") == pixels("rgb.mkv", "gbrp"), "each of red, green and blue is not what it was")


def a_stopped_run_goes_on():
    film = sample("carphone_pristine.mp4")
    write(film, "whole.mov")
    words = [TEGULA, "run", "-m", network(1), film, "-o", "stop.mov", "--normalize", "none", "--codec", "ffv1"]
    stops = 0
    for wait in (0.03, 0.06, 0.1, 0.15):
        p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        p.send_signal(signal.SIGKILL)
        stops += p.wait() != 0
        if os.path.exists("stop.mov"):
            break
    if not os.path.exists("stop.mov"):
        code, _, err = run(*words[1:])
        expect(code == 0, f"does not go on: {code}: {err}")
    with open("stop.mov", "rb") as a, open("whole.mov", "rb") as b:
        expect(a.read() == b.read(), f"after {stops} stops: other bytes")


def all_of_it(_):
    for film in ("carphone_pristine.mp4", "h264_10bit.mp4", "rot90.mov"):
        the_rest_is_the_same(sample(film), "o.mov")
    of_a_larger_film_it_is_linear(sample("carphone_pristine.mp4"))
    alpha_passes_by_too()
    what_cannot_pass_by()
    a_stopped_run_goes_on()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
