#!/usr/bin/env python3
"""What decoders and encoders hold, beside the lines of the plan: a table.

    film_memory.py TEGULA SOURCE VIDEOS FILM_RAW PLUGIN [SIZE ...]

Films are made with ffmpeg, of each codec, with as many frames waiting as encoders make by themselves, and of H.264 with as many as it
allows. Measured is what a process holds of its own at most while it decodes; an encoder's is what one that decodes and encodes holds
more than one that decodes. Exit 1 where a measured figure is more than its line. Without sizes: two, as a test does."""
import json
import os
import subprocess
import sys

from film_help import TEGULA, expect, ffmpeg, in_folder, network

RAW, PLUGIN = (os.path.abspath(a) for a in sys.argv[4:6])
SIZES = sys.argv[6:] or ["64x48", "640x360"]
X264, X265 = ["-c:v", "libx264", "-preset", "superfast"], ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params"]
FILMS = {
    "h264": (X264 + ["-x264-params", "ref=3:bframes=3:b-adapt=0"], "yuv420p"),
    "h264 most": (X264 + ["-x264-params", "ref=16:bframes=2:b-adapt=0"], "yuv420p"),
    "h264 10 bits": (X264 + ["-x264-params", "ref=4:bframes=3:b-adapt=0"], "yuv420p10le"),
    "hevc": (X265 + ["log-level=none:ref=3:bframes=4"], "yuv420p"),
    "hevc most": (X265 + ["log-level=none:ref=5:bframes=4:b-adapt=0"], "yuv420p"),
    "hevc 10 bits": (X265 + ["log-level=none:ref=3:bframes=4"], "yuv420p10le"),
    "vp9": (["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"], "yuv420p"),
    "vp9 alpha": (["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-auto-alt-ref", "0"], "yuva420p"),
    "vp8 alpha": (["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-auto-alt-ref", "0"], "yuva420p"),
    "av1": (["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime"], "yuv420p"),
    "mpeg2video": (["-c:v", "mpeg2video", "-q:v", "3", "-bf", "2"], "yuv420p"),
    "mpeg4": (["-c:v", "mpeg4", "-q:v", "3", "-bf", "2"], "yuv420p"),
    "ffv1": (["-c:v", "ffv1", "-level", "3"], "yuv420p"),
    "ffv1 rgb": (["-c:v", "ffv1", "-level", "3", "-slices", "24"], "gbrp16le"),
    "prores": (["-c:v", "prores_ks"], "yuv422p10le"),
    "mjpeg": (["-c:v", "mjpeg", "-q:v", "2"], "yuvj420p"),
}
ENCODERS = {"h264": ("yuv420p", "yuv420p10le", "yuv444p"), "hevc": ("yuv420p", "yuv420p10le"), "av1": ("yuv420p",), "vp9": ("yuv420p",),
            "ffv1": ("yuv420p", "gbrp16le"), "prores": ("yuv422p10le",)}
NAMES = "ultrafast superfast veryfast faster fast medium slow slower veryslow".split()
SPEEDS = {"h264": (1, 7, 8, 9), "hevc": (1, 7, 9), "av1": (7,), "vp9": (9,)}
MIB, FRAMES = 1 << 20, 60


def peak(*words):
    r = subprocess.run([RAW, PLUGIN, *words], capture_output=True, text=True, check=False)
    expect(r.returncode == 0, f"film_raw {words}: {r.returncode}: {r.stderr}")
    return int(r.stdout.split()[-1]) << 10 if r.returncode == 0 else 0


def line_of(film, line, *more):
    """Bytes of a line of the plan."""
    r = subprocess.run([TEGULA, "plan", "--json", "--ram", "16GiB", "-m", network(3, "three.onnx"), film, "-o", "x.mkv", *more],
                       capture_output=True, text=True, check=False)
    expect(r.returncode == 0, f"plan {film}: {r.stderr}")
    plan = json.loads(r.stdout.splitlines()[-1]) if r.returncode == 0 else {"lines": []}
    return next((e["bytes"] for e in plan["lines"] if e["name"] == line), 1)


def film(name, size, frames, options, form):
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v", str(frames), "-pix_fmt", form, *options, name)
    return name


def show(what, size, *columns):
    print(f"{what:26}{size:>12}" + "".join(f"{c:>14}" for c in columns), flush=True)


def mib(n):
    return f"{n / MIB:.1f} MiB"


def decoders():
    show("decoder", "frames of", "1 thread", "2 threads", "the plan's", "share")
    for name, (options, form) in FILMS.items():
        for size in SIZES:
            one = film("one.mkv", size, FRAMES, options, form)
            held = {n: peak(one, "decode", n) for n in "12"}
            line = line_of(one, "decoder", "--drop-alpha")
            show(name, size, mib(held["1"]), mib(held["2"]), mib(line), f"{held['1'] / line:.2f}")
            expect(max(held.values()) <= line, f"{name} {size}: {mib(held['1'])}, of two threads {mib(held['2'])}, of {mib(line)}")


def encoders():
    show("encoder", "frames of", "held", "the plan's", "share")
    for codec, forms in ENCODERS.items():
        for form, speed in [(f, 0) for f in forms] + [(forms[0], k) for k in SPEEDS.get(codec, ())]:
            for size in SIZES:
                one = film("raw.mkv", size, FRAMES, ["-c:v", "ffv1", "-level", "3"], form)
                held = peak(one, "encode", codec, str(speed)) - peak(one, "decode", "1")
                line = line_of(one, "encoder", "--codec", codec, "--pix-fmt", form, *(("--preset-speed", NAMES[speed - 1]) if speed else ()))
                show(f"{codec} {form}{' ' + NAMES[speed - 1] if speed else ''}", size, mib(held), mib(line), f"{held / line:.2f}")
                expect(held <= line, f"{codec} {form} {size}: {mib(held)} of {mib(line)}")


def tests(_rows):
    decoders()
    encoders()


if __name__ == "__main__":
    sys.exit(in_folder(tests, "ffmpeg"))
