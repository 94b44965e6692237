#!/usr/bin/env python3
"""Settings that are chosen for a film: --preset auto on six made machines has golden rows, runs, and goes on after a stop with what it began with;
--allow-lower-quality goes down as far as it takes, and says so; memory that is gone when a run begins is done without.

    film_auto.py TEGULA SOURCE VIDEOS WEIGHTS

Machines have the portable kernels alone, so that their figures are the same everywhere. 77: there is no ffmpeg."""
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys

from film_help import SANITIZED, TEGULA, expect, ffmpeg, in_folder, run

WEIGHTS = os.path.abspath(sys.argv[4])
GIB, FRAMES = 2**30, 100
BOX = ("--mask-box", "400,300,200,150")

LESS = (("--region auto", "416x368", "80/10/10 fp32", 1.73), ("fewer frames together", "1280x720", "50/6/10 fp32", 7.21),
        ("smaller frames", "960x536", "80/10/10 fp32", 4.59))
# RAM, GPU: ways that are shown, the best first: what, the size, settings, GiB; None: it does not fit; * is taken.
MACHINES = {
    (2, None): [("whole frames", None, "80/10/10 fp32", None), ("* whole frames", "1280x720", "50/3/10 fp32", 1.7),
                ("--region auto", "416x368", "80/10/10 fp32", 1.73), ("fewer frames together", "1280x720", "30/3/10 fp32", 1.7),
                ("smaller frames", "960x536", "80/10/10 fp32", 1.8)],
    (4, 4): [("* whole frames", "1280x720", "80/10/10 fp32", 3.51), ("--region auto", "416x368", "80/10/10 fp32", 1.73),
             ("fewer frames together", "1280x720", "80/8/15 fp32", 3.28), ("smaller frames", "960x536", "80/10/10 fp32", 3.3)],
    (8, None): [("* whole frames", "1280x720", "80/10/10 fp32", 7.07), ("--region auto", "416x368", "80/10/10 fp32", 1.73),
                ("fewer frames together", "1280x720", "50/6/10 fp32", 6.69), ("smaller frames", "960x536", "80/10/10 fp32", 4.59)],
    (16, 6): [("* whole frames", "1280x720", "80/10/10 fp32", 7.79), *LESS],
    (32, 24): [("* whole frames", "1280x720", "80/10/10 fp32", 7.79), *LESS],
    (80, 80): [("* whole frames", "1280x720", "80/10/10 fp32", 7.79), *LESS],
}


def machine(name, gib, gpu):
    m = {"schema": "tegula.machine", "version": 1, "tegula": "0.1.0",
         "memory": {"budget_bytes": int(gib * GIB * 0.9), "free_bytes": int(gib * GIB), "total_bytes": int(gib * GIB)},
         "process": {"measured_bytes": 3 << 20}, "processors": {"usable": 4, "instruction_sets": ["portable"]},
         "disks": [{"role": "temporary", "path": "/tmp", "free_bytes": 100 * GIB, "in_memory": False},
                   {"role": "current", "path": "/", "free_bytes": 100 * GIB, "in_memory": False}]}
    if gpu:
        m["gpus"] = [{"name": f"GPU of {gpu} GiB", "total_bytes": int(gpu * GIB), "free_bytes": int(gpu * GIB), "compute_capability": [8, 6]}]
    with open(name, "w", encoding="utf-8") as f:
        json.dump(m, f)
    return name


def make_frames():
    """Of 1280x720 many that are one, and a few small ones."""
    for folder in ("large", "small", "out"):
        os.makedirs(folder, exist_ok=True)
    ffmpeg("-y", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=5", "-frames:v", "1", "-pix_fmt", "rgb24", "one.png")
    for k in range(FRAMES):
        os.symlink("../one.png", f"large/{k:03}.png")
    ffmpeg("-y", "-f", "lavfi", "-i", "testsrc2=size=256x192:rate=5", "-frames:v", "12", "-pix_fmt", "rgb24", "small/%02d.png")


def ways_of(*words, code=0):
    got, text, err = run("inpaint", *words, "--json")
    expect(got == code, f"{words}: {got}: {err}")
    events = [json.loads(line) for line in text.splitlines()]
    return [e for e in events if e["event"] == "inpaint_auto"], events, err


def row_of(way):
    """As in MACHINES."""
    size = f"{way['width']}x{way['height']}" if way["fits"] else None
    return (("* " if way["chosen"] else "") + way["what"], size, f"{way['subvideo_length']}/{way['neighbor_length']}/{way['ref_stride']} {way['precision']}",
            round(way["peak_bytes"] / GIB, 2) if way["fits"] else None)


def six_machines():
    for (gib, gpu), golden in MACHINES.items():
        found, events, err = ways_of("large", *BOX, "--weights", WEIGHTS, "-o", "out/%03d.png", "--plan", "--preset", "auto", "--machine", machine("m.json", gib, gpu))
        rows = [row_of(w) for w in found[0]["ways"]]
        same = len(rows) == len(golden) and all(a[:3] == b[:3] and (a[3] == b[3] or (a[3] and b[3] and abs(a[3] - b[3]) <= 0.02 * b[3])) for a, b in zip(rows, golden))
        expect(same and len(rows) >= 3, f"{gib} GiB, GPU of {gpu}:\n" + ",\n".join(f"        {r!r}" for r in rows))
        chosen = [w for w in found[0]["ways"] if w["chosen"]]
        plan = next(e for e in events if e["event"] == "plan")
        expect(len(chosen) == 1 and plan["peak_bytes"] <= plan["budget_bytes"] and abs(plan["peak_bytes"] - chosen[0]["peak_bytes"]) <= 4 << 20, f"{gib}: {plan['peak_bytes']}, {chosen}")
        for w in found[0]["ways"]:
            expect(w["differs"] and (not w["fits"] or (w["seconds"] >= w["seconds_least"] > 0 and w["device"] == "planned, not run")), f"{gib}: {w}")
            expect(not w["fits"] or not gpu or w["device_fits"] == (w["device_bytes"] <= gpu * GIB * 0.93) or 0.8 < w["device_bytes"] / (gpu * GIB) < 1, f"{gib}, {gpu}: {w}")
        expect(not err, f"{gib}: {err}")


def as_text():
    code, text, err = run("inpaint", "large", *BOX, "--weights", WEIGHTS, "-o", "out/%03d.png", "--plan", "--preset", "auto", "--machine", machine("m.json", 16, 6))
    expect(code == 0 and re.search(r"^\* whole frames +1280x720 ", text, re.M) and "--region auto" in text and "GPU of 6 GiB" in text, f"{code}: {text[:900]} {err}")
    code, text, err = run("inpaint", "large", *BOX, "--weights", WEIGHTS, "-o", "out/%03d.png", "--plan", "--preset", "auto", "--machine", machine("m.json", 16, None))
    expect(code == 0 and "here is" not in text, f"no GPU: {code}: {text[:900]}")
    code, _, err = run("run", "-m", "x.onnx", "one.png", "-o", "x.png", "--preset", "auto")
    expect(code == 64 and "tegula preset auto" in err, f"run: {code}: {err}")


SMALL = ("small", "--mask-box", "60,60,50,40", "--weights", WEIGHTS, "--raft-iter", "1", "--exact")


def it_goes_on_with_what_it_began_with():
    """The first run has little memory, and works at less; the same command with more memory goes on all the same."""
    words = (*SMALL, "--preset", "auto", "-o", "out/s%02d.png")
    _, events, err = ways_of(*SMALL, "--preset", "auto", "-o", "out/x%02d.png", "--ram", "8MiB", "--plan", code=71)
    told = re.search(r"--ram (\d+)MiB", err)
    expect(told and events, f"8 MiB: {err}")
    full = int(told.group(1)) if told else 700
    found, _, _ = ways_of(*words, "--ram", f"{full - 40}MiB", "--plan")
    began = [w for w in found[0]["ways"] if w["chosen"]][0]
    expect((began["width"], began["subvideo_length"]) != (256, 80), f"{full - 40} MiB: {began}")
    p = subprocess.Popen([TEGULA, "inpaint", *words, "--ram", f"{full - 40}MiB", "-q"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    while p.poll() is None and not os.path.exists("out/s06.png"):
        pass
    p.send_signal(signal.SIGKILL)
    p.wait()
    found, events, err = ways_of(*words)
    done = [e for e in events if e["event"] == "done"]
    now = [w for w in found[0]["ways"] if w["chosen"]][0]
    keys = ("width", "height", "subvideo_length", "neighbor_length", "ref_stride")
    expect(found[0]["kept"] and [now[k] for k in keys] == [began[k] for k in keys], f"gone on with {now}, begun with {began}: {err}")
    expect(p.returncode in (0, -9) and done and done[0]["tiles_begun"] > 12, f"{done}: {err}")


def lower_quality_is_said():
    """Where what is asked does not fit it is refused; with the option it is lowered, and the warning and the receipt say what to."""
    asked = (*SMALL, "-o", "out/l%02d.png", "--resize-ratio", "1")
    code, _, err = run("inpaint", *asked, "--ram", "8MiB", "--plan")
    told = re.search(r"--ram (\d+)MiB", err)
    expect(code == 71 and told, f"8 MiB: {code}: {err}")
    less = f"{int(told.group(1)) - 60}MiB"
    code, _, err = run("inpaint", *asked, "--ram", less, "--scratch", ".")
    lowered, _, _ = ways_of(*asked, "--ram", less, "--scratch", ".", "--allow-lower-quality")
    expect(code == 71 and lowered, f"{less}: {code}: {err}")
    with open("out/l%02d.png.frames.tegula.json", encoding="utf-8") as f:
        receipt = json.load(f)
    said = [w for w in receipt["warnings"] if "--allow-lower-quality" in w]
    chosen = [w for w in lowered[0]["ways"] if w["chosen"]][0]
    expect(said and (f"subvideo-length {chosen['subvideo_length']}" in said[0] or "resize-ratio" in said[0]), f"the receipt: {receipt['warnings']}, {chosen}")
    expect(receipt["fingerprint"]["subvideo-length"] == str(chosen["subvideo_length"]), f"{receipt['fingerprint']}")
    code, _, err = run("inpaint", *asked, "--ram", less, "--scratch", ".", "--allow-lower-quality")
    expect(code == 73 and "exists already" in err, f"once more: {code}: {err}")
    code, _, err = run("inpaint", *SMALL, "-o", "out/m%02d.png", "--allow-lower-quality", "--plan")
    expect(code == 0 and "lower" not in err, f"nothing is lowered: {code}: {err}")


def memory_that_is_gone():
    """More is planned than the system gives: with less of it kept it runs, with the same frames; else what would do is told, and does."""
    many = ("large_few", "--mask-box", "40,40,60,50", "--weights", WEIGHTS, "--raft-iter", "1", "--scratch", ".")
    os.makedirs("large_few", exist_ok=True)
    ffmpeg("-y", "-f", "lavfi", "-i", "testsrc2=size=160x128:rate=5", "-frames:v", "16", "-pix_fmt", "rgb24", "large_few/%02d.png")
    code, text, err = run("inpaint", *many, "-o", "out/a%02d.png", "--ram", "4GiB", "--json")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"]
    expect(code == 0 and done, f"with all: {code}: {err}")
    peak = done[0]["predicted_peak_bytes"]

    def limited(out, allowed, *more):
        return subprocess.run([TEGULA, "inpaint", *many, "-o", out, "--ram", "4GiB", *(more or ("-q",))], capture_output=True, text=True, check=False, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed)))
    ran = limited("out/b%02d.png", 700 << 20)
    told = [shlex.split(line)[1:] for line in ran.stderr.splitlines() if line.strip().startswith(TEGULA)]
    expect(ran.returncode == 71 and not os.path.exists("out/b%02d.png.frames.partial"), f"700 MiB: {ran.returncode}: {ran.stderr}")
    for words in told:
        code, _, err = run(*words, "--plan")
        expect(code == 0, f"{words} was told: {code}: {err}")
    allowed = 700 << 20
    while ran.returncode == 71 and allowed < 2 * peak:
        allowed += 5 << 20 # a part of what the way takes that is less by one step
        ran = limited("out/b%02d.png", allowed)
    expect(ran.returncode == 0 and "planned again" in ran.stderr, f"{allowed >> 20} MiB of addresses: {ran.returncode}: {ran.stderr}")
    lower = limited("out/d%02d.png", allowed - (120 << 20), "--allow-lower-quality")
    with open("out/d%02d.png.frames.tegula.json", encoding="utf-8") as f:
        said = [w for w in json.load(f)["warnings"] if "--allow-lower-quality" in w]
    expect(lower.returncode == 0 and "memory that was free is gone: settings for" in lower.stderr and said, f"lower: {lower.returncode}: {lower.stderr}, {said}")
    for k in range(1, 17):
        with open(f"out/a{k:02}.png", "rb") as a, open(f"out/b{k:02}.png", "rb") as b:
            expect(a.read() == b.read(), f"frame {k} is another one")


def all_rows(_):
    make_frames()
    six_machines()
    as_text()
    it_goes_on_with_what_it_began_with()
    lower_quality_is_said()
    if not SANITIZED:
        memory_that_is_gone()


if __name__ == "__main__":
    sys.exit(in_folder(all_rows, "ffmpeg", samples=False))
