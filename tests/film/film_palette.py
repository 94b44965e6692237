#!/usr/bin/env python3
"""Films whose pixels are numbers of colours, or bits: as ffmpeg shows them.

    film_palette.py TEGULA SOURCE VIDEOS

AVIs as Fiji writes stacks of 8 bits (rows from below, a palette of greys or of a lookup table) are written here; 1 bit, PNG and
QuickTime's animations are ffmpeg's. 77: no ffmpeg."""
import os
import random
import struct
import subprocess
import sys

from film_help import expect, ffmpeg, in_folder, network, run

WIDTH, HEIGHT, FRAMES = 37, 22, 5
GREYS = [(k, k, k) for k in range(256)]


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def group(name, kind, data):
    return chunk(name, kind + data)


def avi(path, palette, frames, changes=None):
    """Uncompressed, 8 bits a pixel; `changes`: a frame before which a palette comes, and the palette."""
    pitch = (WIDTH + 3) // 4 * 4
    entries = b"".join(struct.pack("<BBBB", b, g, r, 0) for r, g, b in palette)
    head = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 8, 0, pitch * HEIGHT, 0, 0, 256, 0) + entries
    main = struct.pack("<14I", 100000, 0, 0, 0x10, len(frames), 0, 1, 0, WIDTH, HEIGHT, 0, 0, 0, 0)
    stream = b"vids" + b"DIB " + struct.pack("<IHHIIIIIIIIHHHH", 0, 0, 0, 0, 1, 10, 0, len(frames), pitch * HEIGHT, 0, 0, 0, 0, WIDTH, HEIGHT)
    body, index, at = b"", b"", 4
    for k, f in enumerate(frames):
        if changes and changes[0] == k:
            new = struct.pack("<BBH", 0, 0, 0) + b"".join(bytes((*c, 0)) for c in changes[1])
            body += chunk(b"00pc", new)
            at += 8 + len(new)
        rows = b"".join(f[y * WIDTH:(y + 1) * WIDTH] + b"\0" * (pitch - WIDTH) for y in reversed(range(HEIGHT)))
        body += chunk(b"00db", rows)
        index += b"00db" + struct.pack("<III", 0x10, at, len(rows))
        at += 8 + len(rows)
    data = group(b"LIST", b"hdrl", chunk(b"avih", main) + group(b"LIST", b"strl", chunk(b"strh", stream) + chunk(b"strf", head)))
    data += group(b"LIST", b"movi", body) + chunk(b"idx1", index)
    with open(path, "wb") as f:
        f.write(group(b"RIFF", b"AVI ", data))


def shown(film, form):
    return subprocess.run(["ffmpeg", "-v", "error", "-i", film, "-pix_fmt", form, "-f", "rawvideo", "-"], capture_output=True, check=True).stdout


def same(film, channels, form, *words, told=""):
    """What a network gets of it, and what a film without loss has of that."""
    if os.path.exists("o.mkv"):
        os.remove("o.mkv")
    code, _, err = run("run", "-m", network(channels), film, "-o", "o.mkv", "--normalize", "none", "--codec", "ffv1", *words)
    expect(code == 0 and told in err, f"{film}, {channels} channels: {code}: {err}")
    if code == 0:
        expect(shown("o.mkv", form) == shown(film, form), f"{film}: others as {form}")


def an_avi_of_fiji():
    rng = random.Random(5)
    frames = [rng.randbytes(WIDTH * HEIGHT) for _ in range(FRAMES)]
    avi("grey.avi", GREYS, frames)
    same("grey.avi", 1, "rgb24")
    expect(shown("o.mkv", "gray") == b"".join(frames), "grey values: not those that were written")
    code, said, _ = run("info", "grey.avi")
    expect(code == 0 and "gray" in said, f"info: {said}")
    avi("fire.avi", [(k, 255 - k, k * k % 256) for k in range(256)], frames)
    same("fire.avi", 3, "rgb24")
    inverse = [(255 - k,) * 3 for k in range(256)]
    avi("inverse.avi", inverse, frames)
    same("inverse.avi", 1, "rgb24")
    expect(shown("o.mkv", "gray") == bytes(255 - v for f in frames for v in f), "a lookup table of greys")
    code, _, err = run("run", "-m", network(3), "fire.avi", "-o", "fire.mp4", "--normalize", "none")
    expect(code == 0 and os.path.getsize("fire.mp4") > 500, f"into an .mp4: {code}: {err}")


def a_palette_that_changes():
    frames = [bytes((k + x) % 256 for x in range(WIDTH * HEIGHT)) for k in range(FRAMES)]
    avi("later.avi", GREYS, frames, (3, [(k, 0, 0) for k in range(256)]))
    code, _, err = run("run", "-m", network(1), "later.avi", "-o", "later.mkv", "--normalize", "none", "--codec", "ffv1")
    expect(code == 65 and "a palette with colours, which the first had not" in err, f"colours behind grey: {code}: {err}")
    avi("red.avi", [(0, k, 0) for k in range(256)], frames, (3, [(k, 0, 0) for k in range(256)]))
    same("red.avi", 3, "rgb24")
    same("red.avi", 3, "rgb24", "--tile", "16")


def those_of_ffmpeg():
    source = ("-f", "lavfi", "-i", "testsrc=size=61x33:rate=5:duration=1")
    for form, name in (("monow", "white.nut"), ("monob", "black.nut")):
        ffmpeg(*source, "-c:v", "rawvideo", "-pix_fmt", form, name)
        same(name, 1, "rgb24")
    ffmpeg(*source, "-vf", "split[a][b];[a]palettegen=reserve_transparent=0[p];[b][p]paletteuse", "-c:v", "png", "-pix_fmt", "pal8", "png.mkv")
    same("png.mkv", 3, "rgb24")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1,format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='255*gt(X,20)'", "-vf",
           "split[a][b];[a]palettegen[p];[b][p]paletteuse", "-c:v", "png", "-pix_fmt", "pal8", "hole.mkv")
    same("hole.mkv", 4, "rgba")
    ffmpeg(*source, "-c:v", "exr", "-pix_fmt", "gbrpf32le", "float.mkv")
    code, _, err = run("run", "-m", network(3), "float.mkv", "-o", "f.mkv", "--normalize", "none")
    expect(code == 65 and "gbrpf32le, which are not read" in err and "ffmpeg -i" in err, f"floats: {code}: {err}")


def all_of_it(rows):
    del rows
    an_avi_of_fiji()
    a_palette_that_changes()
    those_of_ffmpeg()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", samples=False))
