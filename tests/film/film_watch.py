#!/usr/bin/env python3
"""Looking at films: progress and status in frames, a preview of a moment, all that info says.

    film_watch.py TEGULA SOURCE VIDEOS

77 without the sample films, ffmpeg and ffprobe."""
import json
import os
import pty
import subprocess
import sys
import threading

from film_help import SOURCE, TEGULA, expect, ffmpeg, in_folder, network, run, sample

SLOW = ["-m", os.path.join(SOURCE, "models", "tegula_denoise.onnx"), "--normalize", "none", "-y"]
SAME = ["-m", "same.onnx", "--normalize", "none"]


def events_of(stdout, kind):
    return [e for e in map(json.loads, stdout.splitlines()) if e["event"] == kind]


def drawn(words, stdin):
    """What a command draws on a terminal."""
    parent, child = pty.openpty()
    with open(stdin, "rb") as given:
        p = subprocess.Popen([TEGULA, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=child,
                             env={**os.environ, "TERM": "xterm", "COLUMNS": "200"})
        os.close(child)
        feed = threading.Thread(target=lambda: (p.stdin.write(given.read()), p.stdin.close()))
        feed.start()
        text = b""
        while True:
            try:
                chunk = os.read(parent, 65536)
            except OSError:
                break
            text += chunk
        feed.join()
    os.close(parent)
    expect(p.wait() == 0, f"{words}: exit {p.returncode}: {text[-300:]}")
    return text.decode("utf-8", "replace").replace("\r", "\n").split("\n")


def progress_says_frames():
    film = sample("carphone_pristine.mp4")
    for out in ("slow.mkv", "slow.tif"):
        code, text, err = run("run", *SLOW, film, "-o", out, "--json", "--threads", "1", *(["--codec", "ffv1", "--on", "each"] if out.endswith("mkv") else []))
        seen = [e for e in events_of(text, "progress") if e["phase"] == "run"]
        expect(code == 0 and seen and all(e["frames_total"] == 120 for e in seen), f"{out}: {code}: {err}: {seen}")
        expect(all(0 <= e["frames_done"] <= 120 for e in seen) and any(e["frames_done"] > 0 for e in seen), f"{out}: frames done: {seen}")
        expect(all(abs(e["frames_done"] / 120 - e["fraction"]) <= 1 / 120 for e in seen), f"{out}: the share is that of frames")
    ffmpeg("-i", film, "-f", "yuv4mpegpipe", "in.y4m")
    lines = [x for x in drawn(["run", *SLOW, "-", "-o", "-", "--on", "each", "--threads", "1"], "in.y4m") if x.startswith("run")]
    expect(any(" frames" in x and " fps" in x for x in lines), f"a pipe: {lines}")
    expect(not any("%" in x or "tiles" in x for x in lines), f"a pipe: nobody knows how many frames: {lines}")


def status_says_frames():
    code, _, err = run("run", *SAME, sample("carphone_pristine.mp4"), "-o", "killed.mkv", "--codec", "ffv1", "-q", "--on", "each",
                       TEGULA_FAIL_IO="120:kill", TEGULA_SYNC_TILES="1")
    expect(code == -9, f"it is killed: {code}: {err}")
    code, text, err = run("status", "killed.mkv", "--json")
    s = json.loads(text)
    expect(code == 130 and 0 < s["frames"] < 120 and s["frames_in_all"] == 120, f"{code}: {err}: {s}")
    text = run("status", "killed.mkv")[1]
    expect(f"frames   {s['frames']} of 120" in text and "tiles" not in text, f"as text: {text}")


def all_of_it(rows):
    del rows
    network(3)
    progress_says_frames()
    status_says_frames()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", "ffprobe"))
