"""Removing something from films: seconds a frame and memory at three sizes, the family `inpaint`; and how much of a known
background comes back, beside three baselines:

    bench/inpaint.py [--build DIR] [--seeds 20] [--first 1001] [--frames 60] [--size 432x240] [--python PYTHON]

For each seed `tegula-draw-film` draws a scene that training and tests never saw (camera 1 to 8 pixels a frame, noise of sigma 2), the
command removes what moves in it, and the tool says the PSNR inside the mask, against the background without noise, of those pixels that a
frame at most 40 away shows. Baselines: the film as it is, each frame filled smoothly by itself (`--method smooth`), the temporal
median, and OpenCV's Telea and Navier-Stokes where PYTHON has cv2."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import lab

# ---- Time and memory -----------------------------------------------------------------------------------------------------

SIZES = {"432x240": 160, "1280x720": 90, "1920x1080": 60}  # frames


def ffmpeg(*words):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *words], check=True)


def clip(bench, size, frames):
    """A sample film, enlarged, where there is one, else a test picture."""
    path = bench.file(f"inpaint{size}.mp4")
    sample = os.path.join(bench.args.data, "data", "video", "bikes.mp4")
    source = ["-stream_loop", "9", "-i", sample] if os.path.exists(sample) else ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25"]
    if not os.path.exists(path):
        ffmpeg(*source, "-frames:v", str(frames), "-an", "-vf", f"scale={size.replace('x', ':')},setsar=1,format=yuv420p", "-c:v", "libx264", "-crf", "18",
               "-colorspace", "bt709", "-color_range", "tv", path)
    return path


def box(size):
    """In the middle, a fifth of each side."""
    w, h = map(int, size.split("x"))
    return f"{w * 2 // 5},{h * 2 // 5},{w // 5},{h // 5}"


def inpaint(bench):
    if not shutil.which("ffmpeg"):
        raise lab.Failure("there is no ffmpeg here")
    for size, frames in SIZES.items():
        film, out, runs = clip(bench, size, frames), bench.file("inpainted.mp4"), []

        def turn():
            lab.remove(out)
            code, seconds, peak, text, err = lab.run_process(
                [bench.program("cli/tegula"), "inpaint", "-q", "-y", film, "--mask-box", box(size), "-o", out, "--json", *bench.common()])
            if code != 0:
                raise lab.Failure(f"inpaint {size}: ended with {code}: {lab.last_words(err)}")
            runs.append((peak, lab.json_lines(text)[-1]))
            return seconds / frames

        seconds = lab.take_turns({"tegula": turn}, bench.few_rounds())["tegula"]
        done = runs[-1][1]
        yield {"family": "inpaint", "case": f"{size}, a frame of {frames}", "config": bench.config(),
               "tegula": {"seconds": lab.summary(seconds), "peak_rss_bytes": max(p for p, _ in runs),
                          "own_peak_bytes": max(e["measured_peak_bytes"] for _, e in runs), "planned_peak_bytes": done["predicted_peak_bytes"]}}
        bench.say(f"inpaint {size}: planned {done['predicted_peak_bytes'] / max(e['measured_peak_bytes'] for _, e in runs):.3f} of what was measured")
        lab.remove(out)


# ---- Quality -------------------------------------------------------------------------------------------------------------

OPENCV = r"""
import sys, cv2, numpy as np
film, mask, out, how = sys.argv[1:]
def frames(path, planes):
    with open(path, "rb") as f:
        head = f.readline()
        w, h = (int(k[1:]) for k in head.decode().split()[1:3])
        while f.readline():
            yield np.frombuffer(f.read(w * h * planes), np.uint8).reshape(planes, h, w)
with open(out, "wb") as f:
    f.write(open(film, "rb").readline())
    for a, m in zip(frames(film, 3), frames(mask, 1)):
        r = cv2.inpaint(np.ascontiguousarray(a.transpose(1, 2, 0)), m[0], 3, cv2.INPAINT_TELEA if how == "telea" else cv2.INPAINT_NS)
        f.write(b"FRAME\n" + np.ascontiguousarray(r.transpose(2, 0, 1)).tobytes())
"""


def has_opencv(python):
    return bool(python) and subprocess.run([python, "-c", "import cv2"], capture_output=True, check=False).returncode == 0


def scene(args, seed, folder):
    """Decibels by name of the method, and the share that is shown within 40 frames."""
    def at(name):
        return os.path.join(folder, name + ".y4m")
    tegula, draw = os.path.join(args.build, "cli", "tegula"), os.path.join(args.build, "tools", "tegula-draw-film")
    which = ["--size", args.size, "--frames", str(args.frames), "--seed", str(seed)]
    subprocess.run([draw, *which, at("no fill"), at("mask"), at("known")], check=True)
    for name, words in (("propagate", ()), ("smooth", ("--method", "smooth"))):
        subprocess.run([tegula, "inpaint", "-q", "-y", at("no fill"), "--mask", at("mask"), "-o", at(name), *words], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([draw, "--median", at("no fill"), at("mask"), at("median")], check=True)
    names = ["no fill", "smooth", "median", "propagate"]
    for how in ("telea", "ns") if has_opencv(args.python) else ():
        subprocess.run([args.python, "-c", OPENCV, at("no fill"), at("mask"), at(how), how], check=True)
        names.insert(-1, how)
    said = subprocess.run([draw, "--psnr", *which, *map(at, names)], check=True, capture_output=True, text=True).stdout.splitlines()
    return {n: float(re.match(r"-?[\d.]+", line)[0]) for n, line in zip(names, said)}, re.search(r"\((\d+) %\)", said[0])[1]


def quality(args):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.seeds):
            db, shown = scene(args, seed, folder)
            rows.append(db)
            if len(rows) == 1:
                print(f"{'seed':>6} {'shown':>6} " + " ".join(f"{n:>10}" for n in db))
            print(f"{seed:>6} {shown:>4} % " + " ".join(f"{v:>10.2f}" for v in db.values()), flush=True)
    mean = {n: statistics.mean(r[n] for r in rows) for n in rows[0]}
    least = {n: min(r["propagate"] - r[n] for r in rows) for n in rows[0] if n != "propagate"}
    print(f"{'mean':>6} {'':>6} " + " ".join(f"{v:>10.2f}" for v in mean.values()))
    print(f"{'least gain':>13} " + " ".join(f"{v:>10.2f}" for v in least.values()))
    print(json.dumps({"seeds": len(rows), "mean": mean, "least_gain": least}))
    return 0 if all(v >= 3 for v in least.values()) else 1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.path.join(lab.ROOT, "build-release"))
    p.add_argument("--seeds", type=int, default=20)
    p.add_argument("--first", type=int, default=1001)
    p.add_argument("--frames", type=int, default=60)
    p.add_argument("--size", default="432x240")
    p.add_argument("--python", default=os.environ.get("TG_PEER_PYTHON", ""))
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    return quality(args)


if __name__ == "__main__":
    sys.exit(main())
