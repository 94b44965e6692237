#!/usr/bin/env python3
"""A network of one channel over films of colours: luma goes through it, and the rest passes by. By one of three channels
alpha passes. Seen by ffmpeg.

    film_luma.py TEGULA SOURCE VIDEOS

Chroma and alpha of a film of the same size are the same numbers; of one twice as large they are within one of linear
interpolation in doubles. Luma is within its range (16 to 235) the same. 77: no samples, or no ffprobe and ffmpeg."""
import json
import struct
import subprocess
import sys

from film_help import alpha_film, expect, ffmpeg, in_folder, network, run, sample
from film_write import killed_runs_go_on, pixels, probe
from seeds import blk, model, node, num, port  # noqa: E402


def larger(channels=1, name="twice.onnx"):
    """Each pixel becomes four."""
    weights = struct.pack(f"<{channels ** 2 * 4}f", *(float(i == k) for i in range(channels) for k in range(channels) for _ in range(4)))
    tensor = b"".join(num(1, d) for d in (channels, channels, 2, 2)) + num(2, 1) + blk(8, "w") + blk(9, weights)
    shape = ["N", channels, "H", "W"]
    with open(name, "wb") as f:
        f.write(model([node("ConvTranspose", ["x", "w"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], [tensor],
                      [port("x", shape)], [port("y", ["N", channels, "H2", "W2"])]))
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
    alpha_film("a.mkv", "yuva420p")
    the_rest_is_the_same("a.mkv", "o.mkv")
    code, _, err = run("run", "-m", network(1), "a.mkv", "-o", "o.mp4", "-y", "--normalize", "none", "--drop-alpha")
    expect(code == 0 and stored("o.mp4")[0] == "yuv420p", f"--drop-alpha: {code}: {err}")


def alpha_of(path, w, h):
    """Of the first frame, 16 bits."""
    ffmpeg("-i", path, "-vf", "format=yuva444p16le,alphaextract", "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray16le", "alpha.raw")
    with open("alpha.raw", "rb") as f:
        return struct.unpack(f"<{w * h}H", f.read())


# The alpha of a film of colours that no network changes: of these codecs, as they store it.
ALPHA = (("ffv1", "bgra", "a.mov"), ("ffv1", "yuva420p", "a.mov"), ("ffv1", "yuva444p10le", "a.mkv"), ("png", "rgba", "a.mov"),
         ("qtrle", "argb", "a.mov"), ("prores_ks", "yuva444p10le", "a.mov"))


def alpha_passes_by_a_network_of_colours():
    for codec, form, film in ALPHA:
        alpha_film("any.mkv", form if codec == "ffv1" else "bgra")
        ffmpeg("-i", "any.mkv", "-c:v", codec, "-pix_fmt", form, film)
        told = write(film, "o.mov", net=network(3))
        was, got = (alpha_of(f, 64, 48) for f in (film, "o.mov"))
        expect("alpha" not in told and min(was) < max(was), f"{codec} {form}: {told}")
        other = stored("o.mov")[0] != stored(film)[0]  # of 12 bits FFV1 makes 16: rounded, where ffmpeg fills up
        off = max(abs(a - b) for a, b in zip(was, got))
        expect(off <= other, f"{codec} {form}: alpha is off by {off} of 65535")
        if form == "bgra":
            expect(pixels("o.mov", "bgra") == pixels(film, "bgra"), "bgra: colours are not what they were")
            write(film, "each.mov", "--on", "each")
            expect(pixels("each.mov", "bgra") == pixels(film, "bgra"), "bgra --on each: other colours or alpha")


def alpha_becomes_as_large_as_the_colours():
    alpha_film("a.mov", "bgra")
    write("a.mov", "big.mov", net=larger(3))
    expect(stored("big.mov") == ("bgra", 128, 96), f"twice as large: {stored('big.mov')}")
    was, got = (pixels(f, "rgba")[3::4] for f in ("a.mov", "big.mov"))
    plane = (64, 48, was[:64 * 48])
    off = max(abs(got[y * 128 + x] - sampled(plane, (x + 0.5) / 2 - 0.5, (y + 0.5) / 2 - 0.5)) for y in range(96) for x in range(128))
    expect(off <= 0.51, f"twice as large: alpha is off by {off}")


def a_film_without_alpha_is_asked_for():
    alpha_film("a.mov", "bgra")
    for out in ("o.mp4", "o.y4m"):
        words = ("run", "-m", network(3), "a.mov", "-o", out, "-y", "--normalize", "none")
        code, _, err = run(*words)
        expect(code == 65 and "--drop-alpha" in err and "ffv1" in err, f"alpha into {out}: {code}: {err}")
        code, _, err = run(*words, "--drop-alpha")
        expect(code == 0 and "a" not in stored(out)[0], f"{out} --drop-alpha: {code}: {err}")
    ffmpeg("-i", "a.mov", "-pix_fmt", "rgba", "-frames:v", "2", "in_%02d.png")
    for film, out in (("a.mov", "o_%02d.png"), ("in_%02d.png", "o.mkv"), ("in_%02d.png", "o_%02d.tif")):
        words = ("run", "-m", network(3), film, "-o", out, "-y", "--normalize", "none")
        code, _, err = run(*words)
        expect(code == 65 and "--drop-alpha" in err, f"alpha of {film} into {out}: {code}: {err}")
        code, _, err = run(*words, "--drop-alpha")
        expect(code == 0 and "alpha of the image is left out" in err, f"{film} into {out}, --drop-alpha: {code}: {err}")
    ffmpeg("-i", "a.mov", "-c:v", "copy", "-metadata:s:v", "rotate=90", "t.mov")
    words = ("run", "-m", network(3), "t.mov", "-o", "t.mkv", "-y", "--normalize", "none", "--codec", "ffv1")
    code, _, err = run(*words)
    expect(code == 65 and "turned" in err and "--drop-alpha" in err, f"alpha that is turned: {code}: {err}")
    code, _, err = run(*words, "--drop-alpha")
    expect(code == 0 and "alpha of the image is left out" in err, f"alpha that is turned, --drop-alpha: {code}: {err}")


def encoders():
    return subprocess.run(["ffmpeg", "-v", "error", "-encoders"], capture_output=True, text=True, check=True).stdout.split()


def alpha_of_a_webm_is_seen():
    """It lies beside the blocks, for libvpx alone."""
    alpha_film("any.mkv", "yuva420p")
    for codec in {"libvpx", "libvpx-vp9"} & set(encoders()):
        ffmpeg("-i", "any.mkv", "-c:v", codec, "-auto-alt-ref", "0", "-pix_fmt", "yuva420p", "a.webm")
        ffmpeg("-c:v", codec, "-i", "a.webm", "-c:v", "ffv1", "want.mkv")
        code, out, err = run("info", "a.webm", "--json")
        expect(code == 0 and json.loads(out.splitlines()[-1]).get("alpha") == "unassociated", f"info of {codec}: {code}: {out}{err}")
        write("a.webm", "o.mkv", net=network(3))
        was, got = (pixels(f, "yuva420p") for f in ("want.mkv", "o.mkv"))
        size = 64 * 48 * 5 // 2
        expect(len(got) == len(was) == 5 * size, f"{codec}: {len(got)} bytes of {len(was)}")
        for at in range(0, len(was), size):
            a = was[at + size - 64 * 48:at + size]
            expect(max(a) - min(a) > 100 and got[at + size - 64 * 48:at + size] == a, f"{codec}: other alpha in frame {at // size}")
        code, _, err = run("run", "-m", network(3), "a.webm", "-o", "o.webm", "-y", "--normalize", "none", "--drop-alpha")
        tags = probe("o.webm", "-select_streams", "V:0", "-show_streams")["streams"][0].get("tags", {}) if code == 0 else {"": err}
        expect(not {"", "alpha_mode"} & {k.lower() for k in tags}, f"{codec}: without alpha, and it is said: {tags}")


def what_cannot_pass_by():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "bgr0", "rgb.mkv")
    for film, out, says in (("rgb.mkv", "o.mkv", "not stored as luma"), (sample("rot90.mov"), "o.mkv", "turned")):
        words = ("run", "-m", network(1), film, "-o", out, "-y", "--normalize", "none", "--codec", "ffv1")
        code, _, err = run(*words, "--on", "luma")
        expect(code == 65 and says in err and "--on each" in err, f"{film} --on luma: {code}: {err}")
        for more in ((), ("--on", "each")):
            code, _, err = run(*words, *more)
            expect(code == 0, f"{film} {more}: {code}: {err}")
    code, _, err = run("run", "-m", network(1), sample("carphone_pristine.mp4"), "-o", "o.mkv", "-y", "--codec", "ffv1", "--pix-fmt", "bgr0")
    expect(code == 64 and "--on each" in err, f"luma into RGB: {code}: {err}")
    write("rgb.mkv", "e.mkv", "--on", "each")
    expect(pixels("e.mkv", "gbrp") == pixels("rgb.mkv", "gbrp"), "each of red, green and blue is not what it was")


def grey_with_alpha_has_no_colour():
    alpha_film("ya.mkv", "ya8")
    code, _, err = run("run", "-m", network(1), "ya.mkv", "-o", "ya.mp4", "-y", "--normalize", "none", "--drop-alpha")
    form, w, h = stored("ya.mp4") if code == 0 else ("none", 0, 0)
    expect(form == "yuv420p", f"grey and alpha without alpha: {code}: {form}: {err}")
    colours = {v for p in planes(pixels("ya.mp4", form), form, w, h)[0][1:] for v in p[2]} if form == "yuv420p" else ()
    expect(colours and all(127 <= v <= 129 for v in colours), f"grey has colours {sorted(colours)[:5]}")


def of_a_part_it_is_that_part():
    """--roi: the same chroma as of a film that is cut so, at the same size and at twice that."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x96:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "yuv444p", "p.mkv")
    ffmpeg("-i", "p.mkv", "-vf", "crop=64:48:32:24:exact=1", "-c:v", "ffv1", "cut.mkv")
    write("p.mkv", "roi.mkv", "--roi", "24:72,32:96")
    want, got = (planes(pixels(f, "yuv444p"), "yuv444p", 64, 48)[0] for f in ("cut.mkv", "roi.mkv"))
    expect([p[2] for p in got[1:]] == [p[2] for p in want[1:]], "--roi: other chroma")
    write("p.mkv", "big.mkv", "--roi", "0:48,0:64", net=larger())
    was, got = planes(pixels("p.mkv", "yuv444p"), "yuv444p", 128, 96)[0], planes(pixels("big.mkv", "yuv444p"), "yuv444p", 128, 96)[0]
    off = max(abs(got[1][2][y * 128 + x] - sampled(was[1], (x + 0.5) / 2 - 0.5, (y + 0.5) / 2 - 0.5)) for y in range(0, 96, 5) for x in range(128))
    expect(off <= 0.51, f"--roi twice as large: chroma is off by {off}")


def a_frame_that_shrinks_is_cut():
    """--raw-size of a network without borders: chroma of what is left."""
    tensor = b"".join(num(1, d) for d in (1, 1, 5, 5)) + num(2, 1) + blk(8, "w") + blk(9, struct.pack("<25f", *(float(k == 12) for k in range(25))))
    shape = ["N", 1, "H", "W"]
    with open("shrink.onnx", "wb") as f:
        f.write(model([node("Conv", ["x", "w"], ["y"], kernel_shape=[5, 5])], [tensor], [port("x", shape)], [port("y", ["N", 1, "H2", "W2"])]))
    ffmpeg("-i", "p.mkv", "-vf", "crop=124:92:2:2:exact=1", "-c:v", "ffv1", "cut.mkv")
    for words, film, w, h in ((("--raw-size",), "cut.mkv", 124, 92), ((), "p.mkv", 128, 96)):
        write("p.mkv", "less.mkv", *words, net="shrink.onnx")
        want, got = (planes(pixels(f, "yuv444p"), "yuv444p", w, h)[0] for f in (film, "less.mkv"))
        expect([p[2] for p in got[1:]] == [p[2] for p in want[1:]], f"a network without borders {words}: other chroma")


def the_place_of_chroma_counts():
    """From the corner to the left: it moves by half a row."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=5:duration=1", "-c:v", "ffv1", "-pix_fmt", "yuv420p10le", "-chroma_sample_location", "topleft", "t.mkv")
    code, _, err = run("run", "-m", network(1), "t.mkv", "-o", "t.y4m", "-y", "--normalize", "none")
    expect(code == 0, f"into a .y4m: {code}: {err}")
    was, got = (planes(pixels(f, "yuv420p10le"), "yuv420p10le", 64, 48)[0] for f in ("t.mkv", "t.y4m"))
    off = max(abs(got[1][2][y * 32 + x] - sampled(was[1], x, y + 0.25)) for y in range(24) for x in range(32))
    expect(off <= 0.51, f"chroma that lies elsewhere is off by {off}")


def all_of_it(rows):
    for film in ("carphone_pristine.mp4", "h264_10bit.mp4", "rot90.mov"):
        the_rest_is_the_same(sample(film), "o.mov")
    of_a_larger_film_it_is_linear(sample("carphone_pristine.mp4"))
    alpha_passes_by_too()
    alpha_passes_by_a_network_of_colours()
    alpha_becomes_as_large_as_the_colours()
    a_film_without_alpha_is_asked_for()
    alpha_of_a_webm_is_seen()
    what_cannot_pass_by()
    grey_with_alpha_has_no_colour()
    of_a_part_it_is_that_part()
    a_frame_that_shrinks_is_cut()
    the_place_of_chroma_counts()
    row = next(r for r in rows if r["file"] == "carphone_pristine.mp4")
    killed_runs_go_on(row, ".mov", 6, "--codec", "ffv1", channels=1)


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
