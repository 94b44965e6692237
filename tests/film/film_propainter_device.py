#!/usr/bin/env python3
"""What ProPainter's networks remove on a device that is played by reference kernels: frames are those of the processor, after kills, after a
device that was lost and one that has less memory than it said, in the least memory and through a pipe; it takes what was planned.

    film_propainter_device.py TEGULA SOURCE VIDEOS CONFORMANCE WEIGHTS PLUGIN [goldens|steps]

What lies in the device's memory before it is written is no number, and what waits in its queues is done as late as it may be.
goldens: the published frames of a real film, by all iterations (half an hour). steps: that part alone. 77: no weights or no ffmpeg."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import film_propainter as pp
from film_help import TEGULA, bytes_of, expect, ffmpeg, in_folder

os.environ["TEGULA_CUDA_PLUGIN"] = os.path.abspath(sys.argv[6])
WORDS = ("inpaint", "in.y4m", "--mask-box", "40,40,30,30", "--weights", pp.WEIGHTS, "--raft-iter", "1", "--subvideo-length", "2", "--neighbor-length", "2",
         "--ref-stride", "2")
DEVICE = ("--device", "cuda")
FRAMES = 4


def played(**how):
    """The environment in which there is such a device: MiB of memory, calls that fail (fake_device_plugin.c)."""
    return {**os.environ, "FAKE_DEVICE": " ".join(f"{k}={v}" for k, v in {"MiB": 8000, **how}.items())}


def inpaint(out, *words, env=None):
    """(exit, events `done`, stderr); pictures in a folder."""
    os.makedirs(out, exist_ok=True)
    r = subprocess.run([TEGULA, *WORDS, *words, "-o", f"{out}/%05d.png", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                       env=env or played())
    return r.returncode, [e for e in map(json.loads, r.stdout.splitlines()) if e["event"] == "done"], r.stderr


def pictures(folder):
    """What was written so far, and when."""
    names = sorted(n for n in os.listdir(folder) if n.endswith(".png"))
    return {n: (os.stat(f"{folder}/{n}").st_mtime_ns, bytes_of(f"{folder}/{n}")) for n in names}


def are_near_the_processors():
    """Sums are in another order there."""
    got, want = pp.pixels("cuda"), pp.pixels("cpu")
    off = [abs(a - b) for a, b in zip(got, want) if a != b]
    print(f"  {len(off)} of {len(want)} samples are off, by {max(off, default=0)} at most", flush=True)
    expect(len(got) == len(want) == 3 * 128 * 128 * FRAMES and max(off, default=0) <= 1 and len(off) <= 1e-4 * len(want), "frames of the device")


def are_the_same(folder):
    got, want = pictures(folder), pictures("cuda")
    expect(len(want) == FRAMES and {n: b for n, (_, b) in got.items()} == {n: b for n, (_, b) in want.items()}, f"frames of {folder}")


def frames_are_the_processors():
    code, _, err = inpaint("cpu")
    expect(code == 0, f"the processor: {code}: {err}")
    code, done, err = inpaint("cuda", *DEVICE)
    expect(code == 0 and done, f"the device: {code}: {err}")
    if code:
        return 0
    took, planned = done[0]["device_measured_bytes"], done[0]["device_predicted_bytes"]
    print(f"  {FRAMES} frames: {took / 2**20:.2f} of {planned / 2**20:.2f} MiB of the device, {done[0]['seconds']:.0f} s", flush=True)
    expect(0 < took <= planned and "cuda" in done[0]["device"], f"it takes what was planned: {done}")
    are_near_the_processors()
    return done[0]["seconds"]


def killed(out, after):
    """It was at work for so long, or until the first picture was there."""
    p = subprocess.Popen([TEGULA, *WORDS, *DEVICE, "-q", "-o", f"{out}/%05d.png"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, env=played())
    until = time.monotonic() + after if after else float("inf")
    while p.poll() is None and time.monotonic() < until and (after or not pictures(out)):
        time.sleep(0.05)
    there = p.poll() is None
    p.send_signal(signal.SIGKILL)
    p.wait()
    return there


def a_stop_is_no_loss(seconds):
    """Killed early, and when a picture is there; then the device is lost in the midst; then it ends."""
    os.makedirs("stopped", exist_ok=True)
    kills = killed("stopped", seconds / 4) + killed("stopped", 0)
    kept = pictures("stopped")
    expect(kills == 2 and 0 < len(kept) < FRAMES, f"{kills} kills of {seconds:.0f} s, {len(kept)} pictures")
    code, _, err = inpaint("stopped", *DEVICE, env=played(fail="run:300:-15"))
    expect(code == 75, f"a device that is lost: {code}: {err}")
    code, done, err = inpaint("stopped", *DEVICE)
    expect(code == 0, f"gone on with: {code}: {err}")
    are_the_same("stopped")
    print(f"  after 2 kills, with {len(kept)} pictures, and a lost device: {done[0]['seconds'] if done else 0:.0f} s of {seconds:.0f}", flush=True)


def least_memory(*words):
    """The --vram in MiB that a refusal names."""
    r = subprocess.run([TEGULA, *words, *DEVICE, "--vram", "1MiB", "--plan"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                       env=played())
    least = re.search(r"give --vram (\d+)MiB", r.stderr)
    expect(least, f"--vram 1MiB: {r.stderr}")
    return int(least.group(1)) if least else 0


def nothing_that_stays_gives_the_same():
    """In the least memory all buffers lie with the host."""
    least = least_memory(*WORDS, "-o", "least/%05d.png")
    if least:
        code, done, err = inpaint("least", *DEVICE, "--vram", f"{least}MiB")
        expect(code == 0 and done[0]["device_measured_bytes"] <= least << 20, f"--vram {least}MiB: {code}: {err} {done}")
        are_the_same("least")


def a_pipe_gives_the_same():
    """Frames that come once, and go as soon as they are made, beside the processor's of the same pipe: four times as many samples may be off as
    were when it was measured."""
    films = []
    for where in (("--device", "cpu"), DEVICE):
        with open("in.y4m", "rb") as frames:
            r = subprocess.run([TEGULA, *WORDS[:1], "-", *WORDS[2:], *where, "-o", "-"], stdin=frames, capture_output=True, check=False, env=played())
        expect(r.returncode == 0, f"through a pipe, {where}: {r.returncode}: {r.stderr}")
        films.append(r.stdout)
    off = [abs(a - b) for a, b in zip(*films)]
    print(f"  through a pipe {sum(d > 0 for d in off)} of {len(off)} samples are off, by {max(off, default=0)} at most", flush=True)
    expect(len(films[0]) == len(films[1]) > FRAMES * 128 * 128 * 3 and sum(d > 0 for d in off) <= 8 and max(off, default=2) <= 1, "frames of a pipe")


def steps_hand_on_what_they_show():
    """Frames that are neighbours of several steps, and references of others: what they show stays on the device from step to step, as far as there is
    room; with as many places as that needs, with fewer, and with none. The processor keeps all of it."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x128:rate=5", "-frames:v", "8", "-pix_fmt", "yuv444p", "steps.y4m")
    words = ("inpaint", "steps.y4m", *WORDS[2:8], "--neighbor-length", "4", "--ref-stride", "2")
    films = {}
    least = least_memory(*words, "-o", "steps-least.y4m")
    for name, room in (("cpu", 0), ("all", 8000), ("some", 2 * least), ("least", least)):
        r = subprocess.run([TEGULA, *words, *((*DEVICE, "--vram", f"{room}MiB") if room else ("--device", "cpu")), "-o", f"steps-{name}.y4m"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=played())
        expect(r.returncode == 0, f"steps, {name}: {r.returncode}: {r.stderr}")
        films[name] = bytes_of(f"steps-{name}.y4m")
    off = [abs(a - b) for a, b in zip(films["cpu"], films["all"])]
    print(f"  of several steps {sum(d > 0 for d in off)} of {len(off)} samples are off, by {max(off, default=0)} at most", flush=True)
    expect(sum(d > 0 for d in off) <= 1e-4 * len(off) and max(off, default=2) <= 1, "frames of several steps")
    expect(films["all"] == films["some"] == films["least"], "what stays changes no frame")


def memory_that_is_gone_is_planned_again():
    code, done, err = inpaint("less", *DEVICE, env=played(fail="alloc:3:-2"))
    expect(code == 0 and "planned again" in err, f"memory that is gone: {code}: {err}")
    if code == 0:
        print(f"  planned again: {done[0]['device_predicted_bytes'] / 2**20:.2f} MiB", flush=True)
        expect(0 < done[0]["device_measured_bytes"] <= done[0]["device_predicted_bytes"], f"planned again: {done}")
    are_the_same("less")


def tests(_):
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x128:rate=5", "-frames:v", str(FRAMES), "-pix_fmt", "yuv444p", "in.y4m")
    if "goldens" in sys.argv[7:]:
        os.environ.update(played())
        pp.lay_out("bmx12")
        pp.draw("bmx12", "whole12", *DEVICE)
        pp.frames_are_the_published_ones("bmx12", "whole12")
        return
    if "steps" in sys.argv[7:]:
        steps_hand_on_what_they_show()
        return
    a_stop_is_no_loss(frames_are_the_processors())
    memory_that_is_gone_is_planned_again()
    nothing_that_stays_gives_the_same()
    a_pipe_gives_the_same()
    steps_hand_on_what_they_show()


if __name__ == "__main__":
    if not os.path.exists(os.path.join(pp.WEIGHTS, "ProPainter.pth")):
        print("skipped: no drawn weights")
        sys.exit(77)
    sys.exit(in_folder(tests, "ffmpeg", samples=False))
