#!/usr/bin/env python3
"""Every sample film, decoded by the plugin: the frames that ffmpeg decodes, in order and in any order.

    frames.py FILM_RAW PLUGIN VIDEOS

VIDEOS is the folder of sample films with its index.csv, whose framemd5 is the md5 of the md5 of each frame (in hex, by
lines), turned for viewing. In random order a frame must be the one that it was in order, and of a film with times one
that is far away. 77: the samples are not here."""
import hashlib
import os
import subprocess
import sys

from film_rows import rows_of

RAW, PLUGIN, FOLDER = sys.argv[1:4]
SEED, SOME = os.environ.get("TEGULA_SEED", "7"), "25"


def call(name, *words):
    return subprocess.run([RAW, PLUGIN, os.path.join(FOLDER, name), *words], capture_output=True, check=False)


def info(name):
    r = call(name, "info")
    if r.returncode not in (0, 75):
        return None, r.stderr.decode().strip()
    return dict(line.partition(" ")[::2] for line in r.stdout.decode().splitlines()), ""


def turned(data, width, height, degrees):
    """Planes of yuv420p, turned clockwise."""
    out, at = b"", 0
    for w, h in ((width, height), (width // 2, height // 2), (width // 2, height // 2)):
        rows = [data[at + y * w:at + (y + 1) * w] for y in range(h)]
        at += w * h
        for _ in range(degrees // 90):
            rows = [bytes(column) for column in zip(*reversed(rows))]
        out += b"".join(rows)
    return out


def check(row):
    """What is wrong with this film; "" nothing."""
    i, why = info(row["file"])
    if i is None:
        return why
    r = call(row["file"], "all")
    n = int(i["frames"])
    if r.returncode not in (0, 75) or n < 1 or len(r.stdout) % n:
        return f"exit {r.returncode}, {n} frames, {len(r.stdout)} bytes: {r.stderr.decode().strip()}"
    size = len(r.stdout) // n
    frames = [r.stdout[k * size:(k + 1) * size] for k in range(n)]
    degrees = int(i["rotation"])
    shown = [turned(f, int(i["width"]), int(i["height"]), degrees) for f in frames] if degrees else frames
    if hashlib.md5("\n".join(hashlib.md5(f).hexdigest() for f in shown).encode()).hexdigest() != row["framemd5"]:
        return f"{n} frames, the index has {row['frames_decoded']}; other bytes"
    if (r.returncode == 75) != (int(row["decode_errors"]) > 0):
        return f"{row['decode_errors']} errors in the index, exit {r.returncode}"
    if int(row["decode_errors"]):  # what a decoder makes up depends on what it decoded before
        return ""
    r = call(row["file"], SEED, SOME)
    numbers = [int(line.split()[0]) for line in r.stderr.decode().splitlines() if line.split()[0].isdigit()]
    if len(numbers) != int(SOME):
        return f"in random order: exit {r.returncode}: {r.stderr.decode().strip()[-200:]}"
    for at, k in enumerate(numbers):
        if r.stdout[at * size:(at + 1) * size] != frames[k]:
            return f"in random order frame {k} is another ({at} before it)"
    return ""


def main():
    rows = rows_of(FOLDER)
    if rows is None:
        return 77
    wrong = 0
    for row in rows:
        why = check(row)
        wrong += bool(why)
        print(f"{'NOT ' if why else 'ok  '} {row['file']:32s} {row['vcodec']:8s} {why}", flush=True)
    print(f"{len(rows) - wrong} of {len(rows)} films")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
