"""ProPainter at 432x240 beside PyTorch, the family `propainter`: motion of all pairs, a completion window, a step of the generator,
each by `propainter_stage` and by `propainter_peer.py --serve` in turns over the same arrays; and a whole film, where tegula is the
command from PNGs to PNGs, start and end included, and the peer a call in memory, warm.

TG_TORCH_PYTHON: a Python with torch and torchvision; else the peers' Python is tried."""
import json
import os
import subprocess

import lab

SIZE = "432x240"
SETTINGS = "80,10,10,20"  # subvideo_length, neighbor_length, ref_stride, iterations: as published
STAGES = {"raft": ("RAFT, 3 pairs, both ways", 4, 0), "completion": ("completion of 11 motions, both ways", 12, 0),
          "generator": ("a generator step, 11 frames and 7 references", 18, 7)}  # frames, of them references
FILM = 12
APART = 1e-3  # relative L2 of answers; what the published precision allows is in the goldens, by stage
OFF = 1e-3    # share of a film's samples that may differ by 1


def torch_python(bench):
    for python in (os.environ.get("TG_TORCH_PYTHON"), bench.python):
        if python and subprocess.run([python, "-c", "import torch, torchvision"], capture_output=True).returncode == 0:
            return python
    raise lab.Failure("no Python with torch and torchvision (TG_TORCH_PYTHON)")


def drawn_weights(bench):
    table, folder = os.path.join(bench.args.data, "conformance", "propainter", "weights.csv"), bench.file("propainter-weights")
    if not os.path.exists(table):
        raise lab.Failure(f"{table} is not there: no weights")
    os.makedirs(folder, exist_ok=True)
    code, _, _, _, err = lab.run_process([bench.program("tools/tegula-draw-weights"), table, folder])
    if code != 0:
        raise lab.Failure(f"tegula-draw-weights: {lab.last_words(err)}")
    return folder


def peer_command(bench, python, stage, frames, refs, weights):
    script, folder = os.path.join(lab.ROOT, "bench", "propainter_peer.py"), bench.file(f"propainter-{stage}")
    return [python, script, "--weights", weights, "--time", stage, "--serve", "--size", SIZE, "--frames", str(frames), "--refs", str(refs),
            "--settings", SETTINGS, "--threads", str(bench.args.threads), "--keep", folder], folder


def row_of(bench, case, own, seconds, peer, end):
    row = {"family": "propainter", "case": f"{SIZE}, {case}", "config": bench.config(),
           "tegula": {"seconds": lab.summary(seconds["tegula"]), **own},
           "peer": {"name": "PyTorch", "version": peer.ready["version"], "seconds": lab.summary(seconds["peer"]),
                    "peak_rss_bytes": end["peak_rss_bytes"]}}
    row.update(lab.ratios(seconds["peer"], seconds["tegula"]))
    row["memory_ratio"] = own["peak_rss_bytes"] / end["peak_rss_bytes"]
    return row


def stage_row(bench, python, weights, stage):
    case, frames, refs = STAGES[stage]
    command, folder = peer_command(bench, python, stage, frames, refs, weights)
    peer = lab.Served(command)
    own = None
    try:
        own = lab.Served([bench.program("bench/propainter_stage"), *bench.common(), "--refs", str(refs), stage, folder, weights])
        off = own.ready["answer_relative_l2"]
        if not 0 <= off < APART:
            raise lab.Failure(f"{stage}: the answer is {off:.1e} away (relative L2)")
        bench.say(f"{stage}: {off:.1e} away (relative L2)")
        seconds = lab.take_turns({"tegula": own.turn, "peer": peer.turn}, bench.few_rounds())
        return row_of(bench, case, {"peak_rss_bytes": own.end()["peak_rss_bytes"], "relative_l2": off}, seconds, peer, peer.end())
    finally:
        peer.close()
        if own:
            own.close()


# ---- A whole film ------------------------------------------------------------------------------------------------------------

def raw(path):
    """The bytes of a .npy of version 1."""
    with open(path, "rb") as f:
        data = f.read()
    return data[10 + int.from_bytes(data[8:10], "little"):]


def pictures(data, pixels, folder, scale=1):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pixel_format", pixels, "-video_size", SIZE, "-i", "-", "-start_number", "0",
                    os.path.join(folder, "%05d.png")], input=bytes(255 * b for b in data) if scale == 255 else data, check=True)


def unpacked(folder):
    return subprocess.run(["ffmpeg", "-v", "error", "-start_number", "0", "-i", os.path.join(folder, "%05d.png"), "-f", "rawvideo", "-pix_fmt", "rgb24",
                           "-"], capture_output=True, check=True).stdout


def share_off(got, want):
    if len(got) != len(want):
        raise lab.Failure(f"{len(got)} samples where the peer has {len(want)}")
    far = [abs(a - b) for a, b in zip(got, want) if a != b]
    if far and max(far) > 1:
        raise lab.Failure(f"a sample is {max(far)} away")
    return len(far) / len(want)


def film_row(bench, python, weights):
    command, folder = peer_command(bench, python, "e2e", FILM, 0, weights)
    peer, runs = lab.Served(command), []
    try:
        frames, masks, out = (os.path.join(folder, name) for name in ("frames", "masks", "out"))
        pictures(raw(os.path.join(folder, "frames.npy")), "rgb24", frames)
        pictures(raw(os.path.join(folder, "masks.npy")), "gray", masks, 255)
        options = dict(zip(("--subvideo-length", "--neighbor-length", "--ref-stride", "--raft-iter"), SETTINGS.split(",")))

        def turn():
            lab.remove(out)
            os.makedirs(out)
            code, seconds, peak, text, err = lab.run_process(
                [bench.program("cli/tegula"), "inpaint", "-q", "-y", frames, "--mask", masks, "--mask-dilation", "0", "--weights", weights, "--compose",
                 "official", "-o", os.path.join(out, "%05d.png"), "--json", *bench.common(), *(w for pair in options.items() for w in pair)])
            if code != 0:
                raise lab.Failure(f"inpaint: ended with {code}: {lab.last_words(err)}")
            runs.append((peak, json.loads(text.splitlines()[-1])))
            return seconds

        turn()
        off = share_off(unpacked(out), raw(os.path.join(folder, "out0.npy")))
        if off > OFF:
            raise lab.Failure(f"{off:.1e} of the samples differ")
        bench.say(f"film: {off:.1e} of the samples differ, each by 1")
        seconds = lab.take_turns({"tegula": turn, "peer": peer.turn}, bench.few_rounds())
        own = {"peak_rss_bytes": max(p for p, _ in runs), "own_peak_bytes": max(e["measured_peak_bytes"] for _, e in runs),
               "planned_peak_bytes": runs[-1][1]["predicted_peak_bytes"], "samples_off_by_one": off}
        return row_of(bench, f"a film of {FILM} frames", own, seconds, peer, peer.end())
    finally:
        peer.close()


def propainter(bench):
    python, weights = torch_python(bench), drawn_weights(bench)
    for stage in [*STAGES, "e2e"]:
        if not bench.wanted(stage):
            continue
        try:
            yield film_row(bench, python, weights) if stage == "e2e" else stage_row(bench, python, weights, stage)
        except lab.Failure as e:
            yield e
