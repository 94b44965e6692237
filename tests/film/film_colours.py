#!/usr/bin/env python3
"""Colours of films as their tags say, beside the formulas in double precision.

    film_colours.py TEGULA SOURCE VIDEOS

Films of 4:4:4 are tagged by ffmpeg with one of three matrices and two ranges, in Matroska, MP4 and MOV; ffmpeg decodes their numbers, and
the formula of the tag makes RGB of them, which is ours within half a step and what a float has. One that no tag speaks of is taken as
it is said. Source: ITU-T H.273, 8.3. 77: no ffmpeg."""
import array
import struct
import sys

from film_help import bytes_of, expect, ffmpeg, in_folder, run
from film_write import pixels

MATRICES = {"smpte170m": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020nc": (0.2627, 0.0593)}
WIDE, HIGH, FRAMES = 48, 32, 3
WAYS = (("c.mkv", ["-c:v", "ffv1"]), ("c.mp4", ["-c:v", "libx264", "-qp", "0"]), ("c.mov", ["-c:v", "libx264", "-qp", "0"]))


def numbers(data, wide):
    got = array.array("H" if wide else "B", data)
    if wide and sys.byteorder == "big":
        got.byteswap()
    return got


def rgb_of(planes, matrix, full, bits):
    """Unrounded, in steps of the output; outside of what it has they are cut off."""
    kr, kb = MATRICES[matrix]
    top, more, step = (1 << bits) - 1, 1 << (bits - 8), 255 if bits == 8 else 65535
    n, out = WIDE * HIGH, []
    for f in range(FRAMES):
        for i in range(n):
            y, u, v = (planes[(3 * f + k) * n + i] for k in range(3))
            luma = y / top if full else (y - 16 * more) / (219 * more)
            cb, cr = ((c - 128 * more) / (top if full else 224 * more) for c in (u, v))
            r, b = luma + 2 * (1 - kr) * cr, luma + 2 * (1 - kb) * cb
            out += [min(max(c, 0), 1) * step for c in (r, (luma - kr * r - kb * b) / (1 - kr - kb), b)]
    return out


def worst(path, matrix, full, form):
    """By how many steps our RGB is off."""
    code, _, err = run("copy", path, "-o", "c.npy", "-y", "--planes", f"0-{FRAMES - 1}")
    expect(code == 0 and ("matrix" in err) == (matrix is None), f"{path}: {code}: {err}")
    data, bits = bytes_of("c.npy"), 10 if "10" in form else 8
    ours = numbers(data[10 + struct.unpack_from("<H", data, 8)[0]:], bits > 8)
    stored = "yuvj444p" if full and bits == 8 and not path.endswith(".mkv") else form  # so that ffmpeg does not change the range
    want = rgb_of(numbers(pixels(path, stored), bits > 8), matrix or "smpte170m", full, bits)
    expect(len(ours) == len(want), f"{path}: {len(ours)} numbers of {len(want)}")
    return max(abs(a - b) for a, b in zip(ours, want))


def tests(_):
    off = {}
    for form in ("yuv444p", "yuv444p10le"):
        for matrix in (*MATRICES, None):
            for full in (False, True):
                for path, codec in WAYS:
                    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={WIDE}x{HIGH}:rate=5,noise=alls=60:allf=t", "-frames:v", str(FRAMES), "-pix_fmt", form,
                           "-color_range", "pc" if full else "tv", *(["-colorspace", matrix] if matrix else []), *codec, path)
                    off[form, matrix, full, path] = worst(path, matrix, full, form)
    for key, steps in off.items():
        expect(steps <= 0.505, f"{key}: {steps} steps off")
    print(f"  {len(off)} films, {max(off.values()):.4f} of a step off at most", flush=True)


if __name__ == "__main__":
    sys.exit(in_folder(tests, "ffmpeg", samples=False))
