#!/usr/bin/env python3
"""Presets of ProPainter: those of its memory guide hold the published values and choose by memory as it says; those of ours keep what they promise, by
plans of a long film of 1920x1080.

    film_presets.py TEGULA SOURCE VIDEOS WEIGHTS

77: there is no ffmpeg."""
import json
import os
import sys

from film_help import expect, ffmpeg, in_folder, run

WEIGHTS = os.path.abspath(sys.argv[4])
GIB = 2**30
PUBLISHED = {"propainter-4gb": (320, 240, 20, 3, 30), "propainter-6gb": (480, 360, 40, 5, 20), "propainter-8gb": (640, 480, 50, 8, 15),
             "propainter-12gb": (1280, 720, 80, 10, 10)}
OURS = (4, 6, 8, 12, 16, 24, 32, 48, 80)


def make_films():
    ffmpeg("-f", "lavfi", "-i", "color=gray:size=1920x1080:rate=25", "-frames:v", "400", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p",
           "large.mp4")
    ffmpeg("-f", "lavfi", "-i", "color=gray:size=432x240:rate=25", "-frames:v", "50", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p",
           "small.mp4")


def machine(name, gib, gpu=None):
    """A machine of so much memory; GPU: of that much."""
    m = {"schema": "tegula.machine", "version": 1, "tegula": "0.1.0",
         "memory": {"budget_bytes": int(gib * GIB * 0.9), "free_bytes": int(gib * GIB), "total_bytes": int(gib * GIB)},
         "process": {"measured_bytes": 3 << 20},
         "processors": {"usable": 8, "instruction_sets": ["portable"]},
         "disks": [{"role": "temporary", "path": "/tmp", "free_bytes": 400 * GIB, "in_memory": False},
                   {"role": "current", "path": "/", "free_bytes": 400 * GIB, "in_memory": False}]}
    if gpu:
        m["gpus"] = [{"name": f"GPU of {gpu} GiB", "total_bytes": int(gpu * GIB), "free_bytes": int(gpu * GIB), "compute_capability": [8, 6]}]
    with open(name, "w", encoding="utf-8") as f:
        json.dump(m, f)
    return name


def plan(film, *words):
    code, text, err = run("inpaint", film, "--mask-box", "64,64,96,96", "--weights", WEIGHTS, "-o", "out.mp4", "--plan", "--json", *words)
    plans = [e for e in map(json.loads, text.splitlines()) if e["event"] == "plan"]
    expect(code == 0 and plans, f"{words}: {code}: {err}")
    if not plans:
        return None, {}, err
    return plans[0], {s["name"]: s["value"] for s in plans[0]["settings"]}, err


def published_ones_hold_the_published_values():
    names = ("width", "height", "subvideo-length", "neighbor-length", "ref-stride")
    for name, values in PUBLISHED.items():
        _, said, _ = plan("small.mp4", "--preset", name)
        expect(tuple(int(said[n]) for n in names) == values and said["fp16"] == "true", f"{name}: {said}")
    # The rule: below 6, below 12, more; of the GPU, and without one of what is free.
    for gib, gpu, of in ((64, 5.9, 320), (64, 6, 640), (64, 11.9, 640), (64, 12, None), (64, 24, None), (5, None, 320), (8, None, 640), (64, None, None)):
        _, said, err = plan("small.mp4", "--preset", "propainter-auto", "--machine", machine("m.json", gib, gpu))
        expect(said.get("width") == (str(of) if of else None) and (of is not None) == (said["fp16"] == "true"), f"{gib}, {gpu}: {said}")
        expect("propainter-" in err, f"{gib}, {gpu}: what was chosen is not said: {err}")


def ours_keep_what_they_promise():
    for gib in OURS:
        name = f"inpaint-{gib}gib"
        p, said, _ = plan("large.mp4", "--preset", name, "--machine", machine("m.json", 2 * gib))
        expect(p and p["peak_bytes"] <= 0.85 * gib * GIB and "width" not in said, f"{name}: {p and p['peak_bytes'] / GIB} GiB")
        print(f"  {name}: {p['peak_bytes'] / GIB:.2f} GiB, scratch {sum(r['bytes'] for r in p['lines'] if r['name'] == 'frames') / GIB:.1f} GiB", flush=True)


def scratch_is_where_temporary_files_go():
    p, said, _ = plan("large.mp4", "--ram", "8GiB", "--scratch", "auto", "--machine", machine("m.json", 64))
    expect(p and said["scratch"] == "auto" and any(r["name"] == "frames" for r in p["lines"]), f"scratch: {said}")


def all_rows(_):
    make_films()
    published_ones_hold_the_published_values()
    ours_keep_what_they_promise()
    scratch_is_where_temporary_files_go()


if __name__ == "__main__":
    sys.exit(in_folder(all_rows, "ffmpeg", samples=False))
