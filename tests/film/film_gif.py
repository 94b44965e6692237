#!/usr/bin/env python3
"""GIFs whose frames are all opaque are films without alpha.

    film_gif.py TEGULA SOURCE VIDEOS

GIFs of any images, disposals and transparent colours, written here, and ffmpeg's: what counts as one without alpha has no
pixel with alpha, as ffmpeg decodes it. 77: no samples, or no ffprobe and ffmpeg."""
import json
import random
import struct
import subprocess
import sys

from film_help import expect, ffmpeg, in_folder, network, run, sample
from film_part import hashes

STAYS, TO_NOTHING, TO_WHAT_WAS = 1, 2, 3
SIDE = 12


def codes_of(pixels):
    """Numbers of 8 bits as an LZW of 9 bits a code, which begins anew before it needs more."""
    bits, n = 256, 9
    for i, p in enumerate(pixels):
        if i and i % 250 == 0:
            bits |= 256 << n
            n += 9
        bits |= p << n
        n += 9
    bits |= 257 << n
    data = bits.to_bytes((n + 9 + 7) // 8, "little")
    return b"\x08" + b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b"\0"


def image(at, size, pixels, disposal=STAYS, transparent=None, local=0):
    """`local`: colours of a table of its own; 0: it has none."""
    control = b"\x21\xf9\x04" + struct.pack("<BHBB", disposal << 2 | (transparent is not None), 10, transparent or 0, 0)
    table = bytes(range(3, 3 + 3 * local)) if local else b""
    flags = 0x80 | (local.bit_length() - 2) if local else 0
    return control + b"," + struct.pack("<HHHHB", *at, *size, flags) + table + codes_of(pixels)


def gif(path, *images, colours=8):
    table = bytes((40 * i + c * 30) % 256 for i in range(colours) for c in range(3))
    with open(path, "wb") as f:
        f.write(b"GIF89a" + struct.pack("<HHBBB", SIDE, SIDE, 0x80 | (colours.bit_length() - 2), 0, 0) + table + b"".join(images) + b";")
    return path


def whole(colour, **how):
    return image((0, 0), (SIDE, SIDE), [colour] * SIDE * SIDE, **how)


def part(colours, **how):
    """A square of 4 x 4 inside, of these colours in turn."""
    return image((3, 3), (4, 4), [colours[i % len(colours)] for i in range(16)], **how)


def counts_as_opaque(path):
    code, out, err = run("info", "--json", path)
    expect(code == 0, f"{path}: {code}: {err}")
    told = json.loads(out) if code == 0 else {"shape": [0]}
    return told["shape"][-1] == 3


def decoded(path, form):
    """All its frames, by ffmpeg."""
    r = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", form, "-"],
                       capture_output=True, check=True)
    expect(r.stdout, f"{path} has frames")
    return r.stdout


def is_opaque(path):
    return set(decoded(path, "rgba")[3::4]) == {255}


def what_counts():
    for name, images, want in (
            ("one that stays, and parts with holes", [whole(1), part([2, 3], transparent=3), part([4])], True),
            ("a transparent colour that the first image does not use", [whole(1, transparent=3), part([2, 3], transparent=3)], True),
            ("a first image with a hole", [image((0, 0), (SIDE, SIDE), [1, 3] * (SIDE * SIDE // 2), transparent=3), part([2])], False),
            ("a first image that does not cover all", [part([1], transparent=3), whole(2)], False),
            ("a part that goes to nothing", [whole(1), part([2], disposal=TO_NOTHING, transparent=3), part([4, 3], transparent=3)], False),
            ("a part that goes to what was", [whole(1), part([2], disposal=TO_WHAT_WAS), part([4], transparent=3)], True),
            ("a first one that goes to what was", [whole(1, disposal=TO_WHAT_WAS, transparent=3), part([2], transparent=3)], False),
            ("whole ones that go to nothing", [whole(1, disposal=TO_NOTHING), whole(2, disposal=TO_NOTHING), whole(3)], True),
            ("the last one goes to nothing", [whole(1), part([2], disposal=TO_NOTHING)], True),
            ("a whole one covers what went", [whole(1, disposal=TO_NOTHING, transparent=3), whole(2), part([3, 4], transparent=4)], True)):
        path = gif("o.gif", *images)
        expect(is_opaque(path) == want, f"{name}: what ffmpeg decodes")
        expect(counts_as_opaque(path) == want, f"{name}: opaque {not want}")


def nothing_is_opaque_that_is_not(n):
    """Whatever stands in it."""
    random.seed(5)
    seen = {}
    for _ in range(n):
        images = []
        for k in range(random.randrange(2, 5)):
            how = {"disposal": random.choice((0, 1, 1, 2, 3)), "transparent": random.choice((None, 7))}
            if random.random() < (0.8 if k == 0 else 0.3):
                images.append(image((0, 0), (SIDE, SIDE), [random.choice((1, 2, random.choice((1, 7)))) for _ in range(SIDE * SIDE)]
                                    if random.random() < 0.3 else [random.randrange(7)] * SIDE * SIDE, **how))
            else:
                images.append(part([random.randrange(7), random.choice((5, 7))], **how))
        path = gif("any.gif", *images)
        told, true = counts_as_opaque(path), is_opaque(path)
        seen[told, true] = seen.get((told, true), 0) + 1
        expect(not told or true, f"it counts as opaque, and is not: {open(path, 'rb').read().hex()}")
    expect(all(seen.get(k, 0) > n / 10 for k in ((True, True), (False, False))), f"both kinds: {seen}")


def ffmpegs_are_opaque():
    palette = "split[a][b];[a]palettegen{}[p];[b][p]paletteuse"
    for words, want in ((["-filter_complex", palette.format("")], True), (["-filter_complex", palette.format("=reserve_transparent=0")], True), ([], True),
                        (["-gifflags", "0"], True),
                        (["-filter_complex", "format=rgba,colorkey=black:0.2," + palette.format("")], False)):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=0.5", *words, "f.gif")
        expect(is_opaque("f.gif") == want and counts_as_opaque("f.gif") == want, f"ffmpeg's {words}")
    expect(counts_as_opaque(sample("newtonscradle_vfr.gif")), "the sample")


def a_film_of_colours():
    """Without a word of alpha, and its pixels are what they were."""
    path = gif("in.gif", whole(1), part([2, 3], transparent=3), part([4, 5]))
    words = ("-m", network(3), "--normalize", "none", "-y")
    code, _, err = run("run", path, "-o", "out.mkv", "--codec", "ffv1", "--strict", *words)
    expect(code == 0 and "alpha" not in err and decoded("out.mkv", "rgb24") == decoded(path, "rgb24"), f"without loss: {code}: {err}")
    for net in (3, 1):
        code, _, err = run("run", path, "-o", "out.mp4", "-m", network(net, "n.onnx"), "--normalize", "none", "-y")
        expect(code == 0 and "alpha" not in err, f"H.264, {net} channels: {code}: {err}")
    r = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "stream=pix_fmt", "-of", "csv=p=0", "out.mp4"], capture_output=True, text=True, check=True)
    expect(r.stdout.strip() == "yuv420p", f"pixels that players take: {r.stdout}")
    code, _, err = run("plan", path, "-o", "plan.mp4", *words)
    expect(code == 0 and "alpha" not in err, f"plan: {code}: {err}")
    code, _, err = run("preview", path, "-o", "look.png", *words)
    expect(code == 0 and "alpha" not in err, f"preview: {code}: {err}")
    code, _, err = run("run", gif("in.gif", whole(1), part([2], disposal=TO_NOTHING, transparent=3), part([4, 3], transparent=3)), "-o", "out.mp4", *words)
    expect(code == 65 and "--drop-alpha" in err, f"one with alpha: {code}: {err}")


def a_colour_of_no_table_is_damage():
    """The headers leave no pixel out, and one names a colour that its table has not."""
    path = gif("odd.gif", whole(1), part([2]), part([4, 200]), part([3]))
    expect(counts_as_opaque(path) and not is_opaque(path), "a colour beyond the table is no colour")
    words = ("-m", network(3), "-o", "odd.mkv", "--codec", "ffv1", "--normalize", "none", "-y")
    code, _, err = run("run", path, *words)
    expect(code == 65 and "frame 2" in err, f"a colour beyond the table: {code}: {err}")
    code, _, err = run("run", path, *words, "--on-bad-tile", "keep")
    expect(code == 65 and len(hashes("odd.mkv")) == 4, f"it is kept: {code}: {err}")


def all_of_it(_):
    what_counts()
    nothing_is_opaque_that_is_not(80)
    ffmpegs_are_opaque()
    a_film_of_colours()
    a_colour_of_no_table_is_damage()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
