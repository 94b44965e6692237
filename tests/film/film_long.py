#!/usr/bin/env python3
"""Films of any length in the same memory, and large ones in little.

    film_long.py TEGULA SOURCE VIDEOS [all [MODEL]]

400 and 4,000 small frames, with `all` 20,000: the peak is equal within 2 % apart from the plan's lines `packet index` and
`container tables`, and so are the plan's other lines. What fits runs: a budget that is refused names the line that is too large or the smallest
--ram that is enough, in which the command then runs, and in a MiB less it does not. The disk line counts tracks that are copied. With
MODEL, a network of one channel: 3840 x 2160 pixels in 512 MiB, into FFV1 and YUV4MPEG2."""
import json
import os
import re
import subprocess
import sys

from film_help import TEGULA, expect, ffmpeg, in_folder, network

ALL, MODEL = sys.argv[4:5] == ["all"], (sys.argv[5:6] or [""])[0]
GROWING = ("packet index", "container tables")
MIB = 1 << 20


def call(verb, film, out, *more, model):
    """(exit code, last event, what was said)."""
    r = subprocess.run([TEGULA, verb, "--json", "-m", model, film, "-o", out, "-y", "--threads", "2", *more], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, check=False)
    events = [json.loads(line) for line in r.stdout.splitlines() if line.startswith("{")]
    return r.returncode, events[-1] if events else {}, r.stdout + r.stderr


def small_film(frames):
    name = f"{frames}.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-frames:v", str(frames), "-c:v", "libx264", "-preset", "ultrafast", "-g", "50", name)
    return name


def planned(film, out, model, *more):
    code, plan, said = call("plan", film, out, *more, model=model)
    expect(code == 0, f"plan {film}: {code}: {said}")
    return {e["name"]: e["bytes"] for e in plan.get("lines", [])}, plan.get("peak_bytes", 0)


def any_length_takes_the_same(same):
    for out in ("out.mp4", "out.mkv"):
        seen = []
        for frames in (400, 20000 if ALL else 4000):  # 200 are gone before buffers of all kinds were full: 0.9 MiB less, here and there
            film = small_film(frames)
            lines, peak = planned(film, out, same)
            code, done, said = call("run", film, out, model=same)
            held, grows = done.get("measured_peak_bytes", 0), sum(lines.get(g, 0) for g in GROWING)
            expect(code == 0 and 0 < held <= peak, f"{film}: exit {code}, {held} of {peak} bytes: {said}")
            expect(grows > 50 * frames, f"{film}: {lines} do not grow with it")
            seen.append((held, peak - grows, grows))
        short, long = seen
        expect(long[0] <= 1.02 * short[0] + long[2], f"{out}: {short[0]} bytes for 400 frames, {long[0]}; lines that grow: {long[2]}")
        expect(abs(long[1] - short[1]) <= 0.02 * short[1] + MIB, f"{out}: other lines: {short[1]} and {long[1]} bytes")


def what_fits_runs(same):
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-frames:v", "12", "-c:v", "libx264", "-pix_fmt", "yuv420p", "fits.mp4")
    for out in ("fits.mkv", "fits.y4m"):
        code, _, said = call("plan", "fits.mp4", out, "--ram", "4MiB", model=same)
        expect(code == 71 and "line `decoder`" in said, f"{out} in 4 MiB: {code}: {said}")
        code, _, said = call("plan", "fits.mp4", out, "--ram", "16MiB", model=same)
        enough = re.search(r"give --ram (\d+)MiB", said)
        expect(code == 71 and enough, f"{out} in 16 MiB: {code}: {said}")
        if not enough:
            continue
        least = int(enough[1])
        code, done, said = call("run", "fits.mp4", out, "--ram", f"{least}MiB", model=same)
        expect(code == 0 and done.get("measured_peak_bytes", MIB << 20) <= least * MIB, f"{out} in {least} MiB: {code}: {said}")
        code, _, said = call("plan", "fits.mp4", out, "--ram", f"{least - 2}MiB", model=same)
        expect(code == 71, f"{out} in {least - 2} MiB: {code}: {said}")


def copied_tracks_are_counted(same):
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-f", "lavfi", "-i", "anoisesrc=r=48000", "-t", "4", "-c:v", "libx264", "-c:a",
           "pcm_s16le", "sound.mov")
    ffmpeg("-i", "sound.mov", "-an", "-c", "copy", "mute.mov")
    both = [planned(f, "out.mov", same)[0]["output"] for f in ("sound.mov", "mute.mov")]
    expect(both[0] - both[1] == 4 * 48000 * 2, f"with sound {both[0]} bytes of disk, without {both[1]}")


def large_frames_in_little():
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=3840x2160:rate=25", "-frames:v", "3", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt",
           "yuv420p", "large.mp4")
    for out, more in (("large.mkv", ("--codec", "ffv1")), ("large.y4m", ())):
        code, done, said = call("run", "large.mp4", out, "--on", "luma", "--ram", "512MiB", *more, model=MODEL)
        held = done.get("measured_peak_bytes", 0)
        print(f"3840x2160 into {out}: {held / MIB:.0f} MiB", flush=True)
        expect(code == 0 and 0 < held <= 512 * MIB, f"{out}: exit {code}, {held} bytes: {said}")


def tests(_rows):
    same = network(3)
    any_length_takes_the_same(same)
    what_fits_runs(same)
    copied_tracks_are_counted(same)
    if MODEL and os.path.exists(MODEL):
        large_frames_in_little()


if __name__ == "__main__":
    sys.exit(in_folder(tests, "ffmpeg"))
