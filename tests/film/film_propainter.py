#!/usr/bin/env python3
"""Things that are removed by ProPainter's networks: the frames are those of the published script, whatever the memory, through a pipe and
after a stop, too.

    film_propainter.py TEGULA SOURCE VIDEOS CONFORMANCE WEIGHTS [more]

CONFORMANCE: the folder of the conformance data, WEIGHTS: the three files of the weights that its goldens were made with (tegula-draw-weights).
`more`: the longer film, memory, a pipe, kills. 77: there are none of these, or no ffmpeg."""
import csv
import json
import math
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import zlib

from film_help import SANITIZED, TEGULA, expect, ffmpeg, in_folder, run

CONFORMANCE, WEIGHTS = (os.path.abspath(a) for a in sys.argv[4:6])
GOLDENS = os.path.join(CONFORMANCE, "propainter", "e2e")


def png(path, width, height, rows, colours):
    """Rows of bytes as a PNG, grey or RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 if colours == 3 else 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows), 1)) + chunk(b"IEND", b""))


def npy(path):
    """(shape, bytes) of an array of uint8."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<H", data[8:10])[0]
    head = data[10:10 + n].decode()
    assert "'|u1'" in head, head
    shape = tuple(int(v) for v in re.search(r"\(([^)]*)\)", head).group(1).split(",") if v.strip())
    return shape, data[10 + n:]


def case(name):
    with open(os.path.join(GOLDENS, "index.json"), encoding="utf-8") as f:
        return [c for c in json.load(f)["cases"] if c["name"] == name][0]


def lay_out(name):
    """Its frames and masks as pictures."""
    for what, colours in (("frames", 3), ("masks", 1)):
        shape, data = npy(os.path.join(GOLDENS, name, what + ".npy"))
        os.makedirs(f"{name}/{what}", exist_ok=True)
        h, w = shape[1:3]
        for i in range(shape[0]):
            at, row = i * h * w * colours, w * colours
            rows = [bytes(255 * (v != 0) for v in data[at + y * row:at + (y + 1) * row]) if colours == 1 else data[at + y * row:at + (y + 1) * row]
                    for y in range(h)]
            png(f"{name}/{what}/{i:05d}.png", w, h, rows, colours)


def words_of(name, *more):
    p = case(name)["params"]
    return ("inpaint", f"{name}/frames", "--mask", f"{name}/masks", "--mask-dilation", "0", "--weights", WEIGHTS, "--subvideo-length",
            str(p["subvideo_length"]), "--neighbor-length", str(p["neighbor_length"]), "--ref-stride", str(p["ref_stride"]), *more)


def pixels(folder):
    """RGB of the pictures in a folder, in their order."""
    names = sorted(n for n in os.listdir(folder) if n.endswith(".png"))
    got = [subprocess.run(["ffmpeg", "-v", "error", "-i", f"{folder}/{n}", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True,
                          check=False).stdout for n in names]
    return b"".join(got)


def draw(name, out, *more, code=0):
    os.makedirs(out, exist_ok=True)
    got, text, err = run(*words_of(name, *more), "-o", f"{out}/%05d.png", "--json")
    expect(got == code, f"{name} {more}: {got}: {err}")
    done = [e for e in map(json.loads, text.splitlines()) if e["event"] == "done"]
    return done[0] if done else None, err


# ---- The published result ------------------------------------------------------------------------------------------------


def frames_are_the_published_ones(name, out):
    """Shares of samples that are off by any, and by more than one; outside of the mask none is."""
    allowed = case(name)["tolerance"]["comp"]
    _, want = npy(os.path.join(GOLDENS, name, "comp.npy"))
    _, was = npy(os.path.join(GOLDENS, name, "frames.npy"))
    _, mask = npy(os.path.join(GOLDENS, name, "masks.npy"))
    got = pixels(out)
    expect(len(got) == len(want), f"{name}: {len(got)} bytes of {len(want)}")
    off = [abs(a - b) for a, b in zip(got, want)]
    any_off, more = sum(d > 0 for d in off) / len(off), sum(d > 1 for d in off) / len(off)
    outside = sum(a != b and not mask[i // 3] for i, (a, b) in enumerate(zip(got, was)))
    print(f"  {name}: {any_off:.2g} of the samples are off ({allowed['max_fraction_diff_gt0']}), {more:.2g} by more than one "
          f"({allowed['max_fraction_diff_gt1']}), {outside} outside of the mask", flush=True)
    expect(any_off <= allowed["max_fraction_diff_gt0"] and more <= allowed["max_fraction_diff_gt1"] and outside == 0, f"{name} differs")


def the_short_film():
    lay_out("bmx12")
    done, _ = draw("bmx12", "whole12")
    frames_are_the_published_ones("bmx12", "whole12")
    if not SANITIZED:
        expect(done["measured_peak_bytes"] <= done["predicted_peak_bytes"] <= 1.1 * done["measured_peak_bytes"], f"peak: {done}")


def halves_are_close():
    """--precision bf16, where the processor has it: near float32 (twice what was measured), and not the same. Elsewhere it is refused."""
    lay_out("bmx12")
    os.makedirs("half12", exist_ok=True)
    has = "with bf16" in run("doctor")[1]  # of the processor, or of the set that TEGULA_ISA leaves of it
    code, _, err = run(*words_of("bmx12", "--precision", "bf16"), "-o", "half12/%05d.png")
    if not has:
        expect(code == 69, f"bf16: {code}: {err}")
        return
    off = [abs(a - b) for a, b in zip(pixels("half12"), pixels("whole12"))]
    more = sum(d > 1 for d in off) / max(1, len(off))
    print(f"  bf16: at most {max(off)} of 255 off, {more:.4f} by more than 1", flush=True)
    expect(code == 0 and 0 < max(off) <= 10 and more <= 0.003, f"bf16: {code}: {err} {max(off)}, {more}")


def what_would_do_does():
    """The commands that a refusal tells are taken: more memory, and kernels whose weights are smaller."""
    lay_out("bmx12")
    code, _, err = run(*words_of("bmx12", "--ram", "400MiB", "--plan"), "-o", "plan/%05d.png")
    told = [shlex.split(line)[1:] for line in err.splitlines() if line.strip().startswith(TEGULA)]
    expect(code == 71 and len(told) >= 2 and any("--exact" in words for words in told), f"400 MiB: {code}: {err}")
    for words in told:
        code, _, err = run(*words)
        expect(code == 0, f"{words} was told: {code}: {err}")


def time_is_a_span_until_masks_are_read():
    """Masked windows of the attention are most of what it takes: a plan says both ends."""
    lay_out("bmx12")
    code, text, err = run(*words_of("bmx12", "--plan", "--json"), "-o", "plan/%05d.png")
    plan = next((e for e in map(json.loads, text.splitlines()) if e["event"] == "plan"), {})
    expect(0 < plan.get("seconds_least", 0) < 0.98 * plan.get("seconds_estimate", 0), f"time: {code}: {plan} {err}")
    code, text, _ = run(*words_of("bmx12", "--plan"), "-o", "plan/%05d.png")
    expect(re.search(r"estimate +[\d.]+ \w+.* to [\d.]+ \w+", text), f"time: {text}")


def planned(*words):
    """(the event of a plan, its lines by name)."""
    code, text, err = run(*words, "--plan", "--json")
    plan = next((e for e in map(json.loads, text.splitlines()) if e["event"] == "plan"), {})
    expect(code == 0, f"{words}: {code}: {err}")
    return plan, {line["name"]: line["bytes"] for line in plan["lines"]}


def estimated(*words):
    code, text, err = run("estimate", "video", *words, "--json")
    expect(code == 0, f"{words}: {code}: {err}")
    return json.loads(text)


def what_is_estimated_is_planned():
    """Without weights and without a film: what `inpaint --plan` says of frames and networks, but for masks and rows in flight."""
    lay_out("bmx12")
    says = estimated("--size", "160x128", "--frames", "12")
    rows = [r for r in says["processor"] if "state" not in r]
    expect([r["precision"] for r in says["processor"]] == ["fp32", "bf16"] and rows[0]["precision"] == "fp32", f"{says['processor']}")
    for row in rows:
        plan, lines = planned(*words_of("bmx12", "--precision", row["precision"]), "-o", "plan/%05d.png")
        expect(0.98 * lines["inpaint"] <= row["peak_bytes"] <= lines["inpaint"], f"{row} of {lines}")
        for ours, its in (("least_seconds", "seconds_least"), ("most_seconds", "seconds_estimate")):  # a plan counts decoder, encoder and start, too
            expect(0.97 * plan[its] <= row[ours] <= plan[its], f"{row}: {plan[its]}")
    share = {"1280x720": 1 / 4, "640x480": 1 / 2}
    beside = [r for r in says["beside"] if r["size"] in share and r["published_fp32_gb"] != "out of memory"]
    expect(len(says["beside"]) == 8 and len(beside) == 3 and all(r["peak_bytes"] <= r["published_fp32_gb"] * 2**30 * share[r["size"]] for r in beside),
           f"beside what is published: {beside}")
    least = [r for r in says["beside"] if r["size"] in share]
    expect(len(least) == 4 and all(r["least_bytes"] <= r["published_fp16_gb"] * 2**30 * share[r["size"]] for r in least), f"in half precision, with scratch: {least}")


def the_least_ram_is_enough():
    """A film of H.264 goes with what `estimate video` says, with scratch, and not with 3 % less; so much scratch is planned."""
    row = estimated("--size", "320x240", "--frames", "12")["processor"][0]
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=24", "-frames:v", "12", "-c:v", "libx264", "-pix_fmt", "yuv420p", "film.mp4")
    masks = [bytes(255 * (40 <= x < 80 <= y < 120) for x in range(320)) for y in range(240)]
    png("mask.png", 320, 240, masks, 1)
    os.makedirs("least", exist_ok=True)
    words = ("inpaint", "film.mp4", "--mask", "mask.png", "--weights", WEIGHTS, "-o", "least.mp4", "--scratch", "least", "--plan", "--json", "--ram")
    got = [run(*words, f"{int(share * row['least_ram_bytes']) >> 10}KiB") for share in (1, 0.97)]
    expect([code for code, _, _ in got] == [0, 71], f"{row}: {got}")
    plan = next(e for e in map(json.loads, got[0][1].splitlines()) if e["event"] == "plan")
    disks = {line["name"]: line["bytes"] for line in plan["lines"] if line["kind"] == "disk"}
    expect(row["scratch_bytes"] == disks.get("frames"), f"{row} of {disks}")


def what_is_trained_lies_in_the_files():
    """`estimate training propainter` counts the elements of the three files: those of the generator are trained, the others held."""
    elements = {}
    with open(os.path.join(CONFORMANCE, "propainter", "weights.csv"), encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if row["dtype"] == "float32":
                elements[row["model"]] = elements.get(row["model"], 0) + math.prod(int(n) for n in row["shape"].split("x"))
    code, text, err = run("estimate", "training", "propainter", "--json")
    says = json.loads(text) if code == 0 else {}
    expect(says.get("parameters") == elements["gen"] and says["needed"]["weights_bytes"] == 4 * sum(elements.values()), f"{elements}: {says}: {err}")


def what_would_be_removed_is_shown():
    """--method show: masked_in of the published script, to the bit."""
    for name in ("bmx12", "bmx24"):
        lay_out(name)
        os.makedirs(f"shown_{name}", exist_ok=True)
        code, _, err = run("inpaint", f"{name}/frames", "--mask", f"{name}/masks", "--mask-dilation", "0", "--method", "show", "-o",
                           f"shown_{name}/%05d.png", "-q")
        shape, want = npy(os.path.join(GOLDENS, name, "masked_in.npy"))
        got, stored = pixels(f"shown_{name}"), case(name)["outputs"]["masked_in"]["stored_index"]
        n = len(want) // shape[0]
        code_seen, _, seen = run("inpaint", f"{name}/frames", "--mask", f"{name}/masks", "--method", "show", "--preview", "1", "-o", "strip.png", "-y")
        expect(code_seen == 0, f"{name}, a preview of what is shown: {code_seen}: {seen}")
        expect(code == 0 and b"".join(got[k * n:(k + 1) * n] for k in stored) == want, f"{name} shown: {code}: {err}: {len(got)} bytes, {stored}")


# ---- What is refused -----------------------------------------------------------------------------------------------------


def what_does_not_go_is_told():
    lay_out("bmx12")
    os.makedirs("none", exist_ok=True)
    film = ("inpaint", "bmx12/frames", "--mask", "bmx12/masks", "-o", "x/%d.png")
    code, _, err = run(*film, "--weights", "none")
    expect(code != 0 and "raft-things.pth" in err and "S-Lab" in err and "releases" in err, f"no weights: {code}: {err}")
    code, _, err = run(*film, "--method", "propainter")
    expect(code == 64 and "--weights" in err, f"no --weights: {code}: {err}")
    code, _, err = run(*film, "--method", "smooth", "--weights", WEIGHTS)
    expect(code == 64 and "propainter" in err, f"--weights of another method: {code}: {err}")
    for name in ("raft-things", "recurrent_flow_completion", "ProPainter"):
        with open(f"none/{name}.pth", "wb") as f:
            f.write(b"\x80\x02cos\nsystem\nX\x05\0\0\0ls >xq\x85R.")
    code, _, err = run(*film, "--weights", "none")
    expect(code == 65 and not os.path.exists("xq"), f"a file that runs a command: {code}: {err}")
    for name, other in (("raft-things", "ProPainter"), ("recurrent_flow_completion", "raft-things"), ("ProPainter", "raft-things")):
        os.unlink(f"none/{name}.pth")
        os.symlink(os.path.join(WEIGHTS, other + ".pth"), f"none/{name}.pth")
    code, _, err = run(*film, "--weights", "none")
    expect(code == 65 and "tensor" in err and "none/raft-things.pth" in err, f"another network's weights: {code}: {err}")
    os.makedirs("own", exist_ok=True)
    for name in os.listdir(WEIGHTS):
        os.symlink(os.path.join(WEIGHTS, name), f"own/{name}")
    os.unlink("own/raft-things.pth")
    shutil.copy(os.path.join(WEIGHTS, "raft-things.pth"), "own/raft-things.pth")
    for side in ("--log", "--trace"):
        code, _, err = run(*film, "--weights", "own", side, "own/raft-things.pth", "-y")
        expect(code == 64 and "weights" in err and os.path.getsize("own/raft-things.pth") > 2**20, f"{side} over weights: {code}: {err}")
    os.makedirs("own/out", exist_ok=True)
    os.rename("own/raft-things.pth", "own/out/00001.png")
    os.symlink("out/00001.png", "own/raft-things.pth")
    code, _, err = run("inpaint", "bmx12/frames", "--mask", "bmx12/masks", "--weights", "own", "-o", "own/out/%05d.png", "-y")
    expect(code == 64 and os.path.getsize("own/out/00001.png") > 2**20, f"pictures over weights: {code}: {err}")
    code, _, err = run("inpaint", "bmx12/frames/00000.png", "--mask-box", "9,9,20,20", "--weights", WEIGHTS, "-o", "one.png")
    expect(code == 64 and "one frame" in err, f"one frame: {code}: {err}")
    code, _, err = run(*film, "--weights", WEIGHTS, "--neighbor_length", "1")
    expect(code == 64 and "neighbor-length" in err and "2" in err, f"neighbor_length 1: {code}: {err}")
    code, _, err = run(*film, "--weights", WEIGHTS, "--device", "cuda")
    expect(code == 69 and "no cuda device" in err, f"--device cuda: {code}: {err}")
    code, _, err = run(*film, "--weights", WEIGHTS, "--fp16", "--plan")
    expect(code == 0 and "float32" in err, f"--fp16: {code}: {err}")
    code, _, err = run(*film, "--weights", WEIGHTS, "--resize-ratio", "0.5")
    expect(code == 64 and "128" in err, f"80 x 64: {code}: {err}")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=128x128:rate=25", "-frames:v", "70", "-c:v", "ffv1", "long.mkv")
    code, _, err = run("inpaint", "long.mkv", "--mask-box", "9,9,20,20", "--weights", WEIGHTS, "-o", "x.mkv", "--ref-stride", "1", "--subvideo-length", "90",
                       "--neighbor-length", "2", "--plan")
    expect(code == 64 and "64 are possible" in err, f"every frame a reference: {code}: {err}")
    for stride, alone in (("30", 35), ("10", 0)):
        code, _, err = run("inpaint", "long.mkv", "--mask-box", "9,9,20,20", "--weights", WEIGHTS, "-o", "x.mkv", "--ref_stride", stride, "--subvideo_length", "20",
                           "--neighbor_length", "4", "--plan")
        expect(code == 0 and (f"{alone} of 35 steps have no reference" in err) == (alone > 0), f"references each {stride}: {code}: {err}")


# ---- Memory, pipes, stops ------------------------------------------------------------------------------------------------


def memory_changes_no_bit():
    """The least memory that is promised, with items in a scratch folder, and all of it."""
    lay_out("bmx24")
    done, _ = draw("bmx24", "whole24")
    frames_are_the_published_ones("bmx24", "whole24")
    os.makedirs("scratch", exist_ok=True)
    os.makedirs("least24", exist_ok=True)
    code, _, err = run(*words_of("bmx24", "--ram", "8MiB", "--scratch", "scratch"), "-o", "least24/%05d.png")
    promised = re.search(r"--ram (\d+MiB)\n *peak", err)
    least = promised.group(1) if promised else "none"
    expect(code == 71 and promised, f"8 MiB: {code}: {err}")
    less, _ = draw("bmx24", "least24", "--ram", least, "--scratch", "scratch")
    if not SANITIZED:
        expect(less["measured_peak_bytes"] <= less["budget_bytes"], f"{least}: {less}")
    expect(pixels("least24") == pixels("whole24"), f"{least}: other frames")
    expect(not os.listdir("scratch"), f"scratch: {os.listdir('scratch')}")
    print(f"  {done['measured_peak_bytes'] >> 20} MiB, the least: {least}", flush=True)


def features_made_again_are_the_same():
    """--feature-cache off: less memory, more time, the same frames."""
    lay_out("bmx24")
    peaks = {}
    for cache in ("auto", "off"):
        done, _ = draw("bmx24", f"cache_{cache}", "--raft-iter", "1", "--feature-cache", cache)
        peaks[cache] = (done["predicted_peak_bytes"], done["seconds"])
    print(f"  with features kept {peaks['auto']}, without {peaks['off']}", flush=True)
    expect(pixels("cache_auto") == pixels("cache_off") and peaks["off"][0] < peaks["auto"][0], f"features: {peaks}")


def a_pipe_has_no_end_before_it_ends():
    """A film whose length nobody knows: the same frames as from the file."""
    lay_out("bmx24")
    ffmpeg("-i", "bmx24/frames/%05d.png", "-pix_fmt", "yuv444p", "-f", "yuv4mpegpipe", "in.y4m")
    rest = [w for w in words_of("bmx24", "--raft-iter", "1", "--compose", "official", "-q")][2:]
    code, _, err = run("inpaint", "in.y4m", *rest, "-o", "file.y4m")
    expect(code == 0, f"from a file: {code}: {err}")
    with open("in.y4m", "rb") as f, open("piped.y4m", "wb") as out:
        piped = subprocess.run([TEGULA, "inpaint", "-", *rest, "-o", "-"], stdin=f, stdout=out, stderr=subprocess.PIPE, check=False, timeout=300)
    with open("file.y4m", "rb") as a, open("piped.y4m", "rb") as b:
        expect(piped.returncode == 0 and a.read() == b.read(), f"through a pipe: {piped.returncode}: {piped.stderr.decode()}")


def a_stop_is_gone_on_with():
    """20 kills over the whole run; the frames are those of a run without a stop."""
    lay_out("bmx24")
    words = ("--raft-iter", "1")
    draw("bmx24", "unstopped", *words)
    seconds, kills = 0.3, 0
    os.makedirs("stopped", exist_ok=True)
    all_words = [TEGULA, *words_of("bmx24", *words, "-q"), "-o", "stopped/%05d.png"]
    while kills < 20:
        p = subprocess.Popen(all_words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            p.wait(seconds)
            expect(p.returncode == 0, f"after {kills} kills: {p.returncode}")
            for n in os.listdir("stopped"): # it came to its end: from the beginning
                os.unlink(os.path.join("stopped", n))
            seconds = 0.3
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGKILL)
            p.wait()
            kills += 1
            seconds *= 1.25
    draw("bmx24", "stopped", *words)
    expect(pixels("stopped") == pixels("unstopped"), "stopped: other frames")


def frames_of_other_forms():
    """Grey of 16 bits, sides that are no multiples of 8: what is not hidden stays as it was, to the bit."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=154x130:rate=5:duration=1", "-pix_fmt", "gray16be", "wide%d.png")
    os.makedirs("wide", exist_ok=True)
    code, _, err = run("inpaint", "wide%d.png", "--mask-box", "20,20,30,30", "--mask-dilation", "0", "--weights", WEIGHTS, "--raft-iter", "1", "-o",
                       "wide/%d.png")
    expect(code == 0, f"grey of 16 bits: {code}: {err}")
    for k in range(1, 6):
        a, b = (subprocess.run(["ffmpeg", "-v", "error", "-i", n, "-f", "rawvideo", "-pix_fmt", "gray16be", "-"], capture_output=True, check=False).stdout
                for n in (f"wide{k}.png", f"wide/{k}.png"))
        rows = [[a[2 * (y * 154 + x):][:2] != b[2 * (y * 154 + x):][:2] for x in range(154)] for y in range(130)]
        inside = sum(rows[y][x] for y in range(20, 50) for x in range(20, 50))
        expect(len(a) == len(b) == 2 * 154 * 130 and sum(map(sum, rows)) == inside and inside > 100, f"frame {k}: {sum(map(sum, rows))}, {inside}")


def quick(_):
    what_does_not_go_is_told()
    the_short_film()
    time_is_a_span_until_masks_are_read()
    what_would_do_does()
    halves_are_close()
    what_is_estimated_is_planned()
    the_least_ram_is_enough()
    what_is_trained_lies_in_the_files()
    what_would_be_removed_is_shown()


def more(_):
    memory_changes_no_bit()
    features_made_again_are_the_same()
    a_pipe_has_no_end_before_it_ends()
    a_stop_is_gone_on_with()
    frames_of_other_forms()


if __name__ == "__main__":
    if not os.path.exists(GOLDENS):
        print("skipped: no conformance data")
        sys.exit(77)
    sys.exit(in_folder(more if "more" in sys.argv[6:] else quick, "ffmpeg", samples=False))
