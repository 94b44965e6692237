#!/usr/bin/env python3
"""Runs that are killed: the same command goes on, to the bytes of an undisturbed run.

    film_stops.py TEGULA SOURCE VIDEOS [all]
    film_stops.py TEGULA SOURCE VIDEOS phases KILL_MOMENTS

Killed at operations on files (TEGULA_FAIL_IO), and after any time. `phases`: instead, by a library (kill_moments.c), nine times in each of
five phases, from its first moment to its last: in a call of the decoder, in one of the encoder, in the network (where it computes one of its values),
between two segments (behind the last packet of one, up to the next one's encoder), and while packets are joined. Each of these is alone, and the
run that goes on is the next one. Moments are counted, and no time is waited for. 77: no samples, no ffprobe and ffmpeg."""
import json
import os
import random
import subprocess
import sys

from film_help import SANITIZED, bytes_of, expect, ffmpeg, in_folder, network, run, sample
from film_write import killed_runs_go_on, probe, start_over, times
from seeds import model, node, port  # noqa: E402

ALL = "all" in sys.argv[4:]
LIBRARY = os.path.abspath(sys.argv[5]) if sys.argv[4:5] == ["phases"] else None
PHASES = ("decode", "encode", "network", "between", "join")  # in the order of kill_moments.c
KILLS = 9  # of each
SEGMENT = 48  # frames of H.264


# ---- Phases --------------------------------------------------------------------------------------------------------------


def moments_of(args):
    """How many an undisturbed run has, by phase, and its bytes."""
    code, _, err = run(*args, "-o", "whole.mp4", "-y", LD_PRELOAD=LIBRARY, TG_KILL_TOLD=os.path.abspath("told"))
    expect(code == 0, f"the undisturbed run: {code}: {err}")
    with open("told", encoding="ascii") as f:
        n = dict(zip(PHASES, (int(line) for line in f)))
    n["between"] -= 3  # behind the last segment
    return n, bytes_of("whole.mp4")


def stopped_there(args, phase, at):
    """Was it, and did it leave what there is at that moment?"""
    code, _, err = run(*args, "-o", "killed.mp4", LD_PRELOAD=LIBRARY, TG_KILL=f"{phase}:{at}", TEGULA_SYNC_TILES="1")
    expect(code == -9, f"{phase} {at}: {code}: {err}")
    seen = json.loads(run("status", "--json", "killed.mp4")[1] or "{}")
    if phase == "between":
        expect(seen.get("tiles") == (at + 2) // 3 * SEGMENT, f"{phase} {at}: {seen.get('tiles')} packets")
    if phase == "join":
        expect(seen.get("frames") and seen["frames"] == seen["frames_in_all"], f"{phase} {at}: {seen}")
    return code == -9


def frames_of(path):
    """With their times, and a checksum of each."""
    told = probe(path, "-select_streams", "V:0", "-show_entries", "frame=pts,best_effort_timestamp_time")["frames"]
    sums = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-map", "0:V:0", "-vsync", "passthrough", "-f", "framemd5", "-"], capture_output=True, check=True)
    return told, sums.stdout


def goes_on(args, whole, where):
    code, _, err = run(*args, "-o", "killed.mp4")
    expect(code == 0, f"{where}: the run that goes on: {code}: {err}")
    expect(bytes_of("killed.mp4") == whole, f"{where}: other bytes")
    left = [f for f in os.listdir(".") if f.startswith("killed.mp4.") and not f.endswith(".tegula.json")]
    expect(not left, f"{where}: something is left: {left}")
    return "continuing" in err


def killed_in_every_phase(_):
    shape = ["N", 3, "H", "W"]
    with open("slow.onnx", "wb") as f:
        f.write(model([node("Asinh", ["x"], ["h"]), node("Sinh", ["h"], ["y"])], [], [port("x", shape)], [port("y", shape)]))
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=6", "-f", "lavfi", "-i", "sine=duration=6", "-c:v", "libx264", "-pix_fmt", "yuv420p",
           "-g", "12", "-c:a", "aac", "film.mp4")
    args = ("run", "-m", "slow.onnx", "film.mp4", "--normalize", "none", "--device", "cpu")
    n, whole = moments_of(args)
    expect(n["between"] == 9 and n["network"] == 150 * 3 * 64 * 48 and n["join"] > 150, f"moments: {n}")
    kills, went_on = dict.fromkeys(PHASES, 0), 0
    for phase in PHASES:
        for k in range(KILLS):
            at = 1 + k * (n[phase] - 1) // (KILLS - 1)
            kills[phase] += stopped_there(args, phase, at)
            went_on += goes_on(args, whole, f"{phase} {at}")
            if k == KILLS // 2:
                expect(frames_of("killed.mp4") == frames_of("whole.mp4"), f"{phase} {at}: other frames or times")
            start_over("killed.mp4")
    expect(times("whole.mp4") == times("film.mp4"), "other times than the film's")
    expect(sum(kills.values()) >= 40 and min(kills.values()) >= 6, f"kills: {kills}")
    print(f"  of moments {n}, kills: {kills}, {sum(kills.values())} in all; {went_on} runs went on with frames that were there", flush=True)


# ---- Any moment ----------------------------------------------------------------------------------------------------------


def any_moment_will_do(row):
    """Killed at one operation on files after the other, from the journal's first byte on."""
    args = ["run", "-m", network(3), sample(row["file"]), "--normalize", "none", "--codec", "ffv1"]
    run(*args, "-o", "whole.mov", "-y")
    with open("whole.mov", "rb") as f:
        whole = f.read()
    stops = 0
    for at in range(1, 400, 2 if ALL else 9):
        stops += run(*args, "-o", "any.mov", TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")[0] == -9
        code, _, err = run(*args, "-o", "any.mov")
        expect(code in (0, 73), f"killed at operation {at}: {code}: {err}")
        with open("any.mov", "rb") as f:
            expect(f.read() == whole, f"killed at operation {at}: other bytes")
        os.unlink("any.mov")
        if not stops or at > 12 * stops:
            break
    expect(stops > 3, f"{stops} stops")
    print(f"  any moment: {stops} stops", flush=True)


def a_damaged_packet_is_made_again(row):
    """A bit of OUT.partial behind a kill: the segment is computed again, and the bytes are the same."""
    film = sample(row["file"])
    args = ["run", "-m", network(3), film, "--normalize", "none", "--codec", "ffv1"]
    run(*args, "-o", "whole.mkv", "-y")
    for at in range(40, 400, 20):
        code, _, err = run(*args, "-o", "bit.mkv", TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")
        if os.path.exists("bit.mkv.partial") and os.path.getsize("bit.mkv.partial") > 100000:
            break
    size = os.path.getsize("bit.mkv.partial") if os.path.exists("bit.mkv.partial") else 0
    expect(size > 50000, f"a run killed in its midst: {code}: {err}")
    with open("bit.mkv.partial", "r+b") as f:
        f.seek(size * 2 // 3)
        b = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([b[0] ^ 4]))
    code, _, err = run(*args, "-o", "bit.mkv")
    with open("bit.mkv", "rb") as a, open("whole.mkv", "rb") as b:
        expect(code == 0 and a.read() == b.read() and "damaged" in err, f"a damaged packet: {code}: {err}")


def stopped_in_every_way(rows):
    by = {r["file"]: r for r in rows}
    killed_runs_go_on(by["carphone_pristine.mp4"], ".mp4", 40)
    killed_runs_go_on(by["realshort.mp4"], ".mov", 40, "--codec", "ffv1")
    any_moment_will_do(by["rot0.mov"] if ALL else by["unordered_pts.mov"])
    a_damaged_packet_is_made_again(by["carphone_pristine.mp4"])


if __name__ == "__main__":
    random.seed(7)
    if LIBRARY and SANITIZED:
        print("skipped: a sanitizer's runtime wants to be the first library")
        sys.exit(77)
    sys.exit(in_folder(killed_in_every_phase if LIBRARY else stopped_in_every_way, "ffprobe", "ffmpeg"))
