"""--preset auto of inpaint on a machine with a GPU, which the fake device plays: what is planned there is compared, taken, or done without; an
output is gone on with by what began it; what does not fit is told with commands that do; previews are the device's, too.

usage: device_auto.py BUILD WEIGHTS PLUGIN [all]

Without `all` what takes long for what it finds is left out. 77: no weights that the build draws, or it reads no films. Standard library only."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
from gpu_command import Command, own_folder  # noqa: E402
from gpu_inpaint import blank_film, draw, mask_of  # noqa: E402

WEIGHTS, PLUGIN = (os.path.abspath(p) for p in sys.argv[2:4])
command = Command(sys.argv[1], PLUGIN)
expect = command.expect
SMALL = ("in.y4m", "--mask", "mask.png", "--weights", WEIGHTS, "--raft-iter", "1")
LARGE = ("1280.y4m", "--mask", "large.png", "--weights", WEIGHTS)
MIDDLE = ("256.y4m", "--mask", "middle.png", "--weights", WEIGHTS)
AUTO = ("--preset", "auto")
NONE = "devices=0"
GIB = 2**30


def environment(device="MiB=8000", **more):
    return {**os.environ, "TEGULA_CUDA_PLUGIN": PLUGIN, "FAKE_DEVICE": device, **more}


def inpaint(*words, out="out.y4m", env=None, code=0):
    """(events by name, stderr)"""
    done = subprocess.run([command.tegula, "inpaint", *words, "-o", out, "--json"], text=True, capture_output=True, check=False, env=env or environment())
    expect(done.returncode == code, f"{words}: exit {done.returncode}: {done.stderr}")
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {e["event"]: e for e in events}, done.stderr


def plan(*words, **how):
    """What --preset auto tells, the way that it takes, those of the device and of the processor, the plan."""
    told, _ = inpaint(*words, *AUTO, "--plan", **how)
    ways = told.get("inpaint_auto", {"ways": []})
    chosen = [w for w in ways["ways"] if w["chosen"]]
    expect(len(chosen) == 1, f"{words}: one way is taken: {ways}")
    far = [w for w in ways["ways"] if w.get("device") == "computes"]
    return ways, chosen[0] if chosen else {}, far, [w for w in ways["ways"] if w not in far], told.get("plan", {})


def the_device_is_compared_and_taken():
    ways, taken, far, near, planned = plan(*LARGE)
    expect(taken in far and taken["what"] == "whole frames", f"it is faster: {taken}")
    other = [w for w in near if w["what"] == "whole frames"]
    expect(len(other) == 1 and other[0]["device"] == "planned, not run" and other[0]["seconds"] > taken["seconds"], f"the processor's way beside it: {near}")
    expect(ways["device"] == "cuda" and "Fake" in ways["device_compared"] and taken["precision"] == "fp32", f"{ways}")
    expect(0 < taken["device_bytes"] == planned["device_peak_bytes"] and "Fake" in planned["device"], f"its memory is the plan's: {taken}, {planned}")
    origin = {s["name"]: s["origin"] for s in planned["settings"]}
    expect(origin["device"] == "preset auto", f"who chose it: {origin}")
    done = subprocess.run([command.tegula, "inpaint", *LARGE, "-o", "out.y4m", *AUTO, "--plan"], text=True, capture_output=True, check=False, env=environment())
    expect("unverified" in done.stdout and "--device cpu" in done.stdout and "fp32 GPU" in done.stdout, f"as text: {done.stdout[:1500]}")


def where_it_is_refused_or_missing_the_processor_computes():
    for words, env, notice in ((("--device", "cpu"), None, None), ((), environment(NONE), "no cuda device"), ((), environment("MiB=8000 fail=open:1:-7"), "told to fail"),
                               ((), environment(TEGULA_CUDA_PLUGIN="none"), None)):
        ways, taken, far, _, planned = plan(*LARGE, *words, env=env)
        expect(not far and taken.get("device") == "planned, not run" and ways["device"] is None, f"{words}, {notice}: {ways}")
        expect("device_peak_bytes" not in planned, f"{words}, {notice}: the plan has no device: {planned.get('device')}")
        expect(notice in ways.get("device_notice", "") if notice else "device_notice" not in ways, f"why: {ways.get('device_notice')}")


def a_device_without_room_is_left():
    ways, taken, far, _, _ = plan(*LARGE, env=environment("MiB=200"))
    expect(ways["device"] is None and taken["what"] == "whole frames" and taken["device"] == "planned, not run", f"{taken}")
    expect(any(w["what"] == "whole frames" and not w["fits"] for w in far), f"why is told: {far}")


def a_context_that_cannot_be_made_any_more():
    """Three ways of the device were planned by then. The plan says why it is the processor's; a run looks once more before it takes the way."""
    env = environment("MiB=8000 fail=open:-4:-7")
    _, taken, far, _, planned = plan(*SMALL, env=env)
    expect(taken in far and "device_peak_bytes" not in planned and "told to fail" in planned.get("device_notice", ""), f"{taken}, {planned.get('device_notice')}")
    events, said = inpaint(*SMALL, *AUTO, out="made.y4m", env=env)
    ways = events["inpaint_auto"]
    expect(ways["device"] is None and "told to fail" in ways.get("device_notice", "") and events["done"].get("device") is None, f"{ways} {said}")


def begun(out, *words):
    """A run that was killed when its journal stood, and nothing was made."""
    p = subprocess.Popen([command.tegula, "inpaint", *SMALL, *AUTO, *words, "--json", "-o", out], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, env=environment())
    at_work = any('"progress"' in line for line in p.stdout)
    p.send_signal(signal.SIGKILL)
    p.wait()
    p.stdout.close()
    expect(at_work and p.returncode == -9, f"{out}: it was at work: {p.returncode}")


def an_output_is_gone_on_with_by_what_began_it():
    begun("cuda.y4m", "--device", "cuda")
    for words in ((*SMALL, *AUTO), SMALL):
        events, said = inpaint(*words, out="cuda.y4m", env=environment(NONE), code=65)
        remedy = events["error"].get("remedies", [{}])[0].get("options", {})
        expect("computed with cuda fp32" in said and remedy == {"device": "cuda"}, f"the device is gone: {remedy} {said}")
    _, said = inpaint(*SMALL, *AUTO, out="cuda.y4m", env=environment("MiB=8000 fail=open:1:-7"), code=65)
    expect("computed by the processor: the fake device" in said and "--device cuda" in said, f"it cannot be opened: {said}")
    ways, taken, far, _, _ = plan(*SMALL, out="cuda.y4m")
    expect(ways["kept"] and taken in far, f"the device began it: {ways}")
    begun("cpu.y4m", "--device", "cpu")
    _, said = inpaint(*SMALL, "--device", "cuda", out="cpu.y4m", code=65)
    expect("--device cpu" in said, f"the processor began it: {said}")
    events, said = inpaint(*SMALL, *AUTO, out="cpu.y4m")
    ways = events["inpaint_auto"]
    expect(ways["kept"] and ways["device"] is None and events["done"].get("device") is None, f"the processor goes on: {ways} {said}")


def a_refusal_names_commands_that_do():
    for words, vram in ((("--vram", "1MiB"), True), ((), False)):
        device = "MiB=8000" if vram else "MiB=4"
        events, said = inpaint(*MIDDLE, *AUTO, "--device", "cuda", "--plan", *words, env=environment(device), code=71)
        remedies = events["error"].get("remedies", [])
        options = [r["options"] for r in remedies]
        least = [int(re.fullmatch(r"(\d+)MiB", o["vram"]).group(1)) for o in options if "vram" in o]
        expect({"device": "cpu"} in options and (len(least) == 2 and least[0] > least[1]) == vram, f"{words}: {options} {said}")
        for r in remedies:
            done = subprocess.run(shlex.split(r["command"]), text=True, capture_output=True, check=False, env=environment(device))
            expect(done.returncode == 0, f"{r['command']}: exit {done.returncode}: {done.stderr}")
        if vram:
            inpaint(*MIDDLE, *AUTO, "--device", "cuda", "--plan", "--vram", f"{least[1] - 1}MiB", code=71)
    events, _ = inpaint(*MIDDLE, "--preset", "inpaint-4gib", "--device", "cuda", "--plan", "--vram", "1MiB", code=71)
    expect([r["options"] for r in events["error"]["remedies"]][1:] == [{"device": "cpu"}], f"of a preset: {events['error']}")


def a_preview_is_the_devices():
    _, said = inpaint(*SMALL, "--preview", "0", "--device", "cuda", out="strip.png", env=environment("MiB=8000 fail=open:1:-7"), code=69)
    expect("told to fail" in said, f"the device was asked: {said}")
    _, said = inpaint(*SMALL, "--preview", "0", "--device", "cuda", "--vram", "1MiB", out="strip.png", code=71)
    expect("--vram" in said, f"too little: {said}")
    inpaint(*SMALL, "--preview", "0", *AUTO, out="strip.png", env=environment("MiB=8000 fail=open:1:-7"))


def memory_that_is_not_pinned_is_said():
    """Of each method that a device computes, and of none where it is."""
    followed = (*SMALL[:3], "--method", "propagate")
    for words, fails in ((SMALL, " fail=pin:-1:-2"), (followed, " fail=pin:-1:-2"), (followed, "")):
        p = subprocess.Popen([command.tegula, "inpaint", *words, "--device", "cuda", "-y", "-o", "pinned.y4m"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, env=environment("MiB=8000" + fails))
        said = any("pins no memory" in line for line in p.stderr)
        p.kill()
        p.wait()
        p.stderr.close()
        expect(said == bool(fails), f"{words}{fails}: said: {said}")


def machine(ram, gpu):
    name = f"machine_{gpu}.json"
    with open(name, "w", encoding="utf-8") as f:
        json.dump({"schema": "tegula.machine", "version": 1, "memory": {"total_bytes": ram * GIB, "free_bytes": ram * GIB, "budget_bytes": int(0.9 * ram * GIB)},
                   "processors": {"usable": 4, "instruction_sets": ["portable"]},
                   "disks": [{"role": "temporary", "path": "/tmp", "free_bytes": 100 * GIB, "in_memory": False}],
                   "gpus": [{"name": f"GPU of {gpu} GiB", "total_bytes": gpu * GIB, "free_bytes": gpu * GIB, "compute_capability": [8, 6], "multiprocessors": 20}]}, f)
    return name


def made_machines_keep_the_size():
    """720p in GPUs of 4, 6, 8 and 12 GiB: nothing is lowered, whether the device is named or not."""
    for ram, gpu in ((8, 4), (8, 6), (16, 8), (16, 12)):
        for words in (("--device", "cuda"), ()):
            _, taken, far, _, planned = plan(*LARGE, *words, "--machine", machine(ram, gpu))
            expect(taken in far and (taken["what"], taken["width"], taken["height"]) == ("whole frames", 1280, 720), f"{gpu} GiB, {words}: {taken}")
            expect(taken["subvideo_length"] == 80 and taken["device_bytes"] <= 0.85 * gpu * GIB and planned["device_peak_bytes"] == taken["device_bytes"],
                   f"{gpu} GiB, {words}: {taken}, {planned.get('device_peak_bytes')}")
            expect(planned["peak_bytes"] <= planned["budget_bytes"], f"{ram} GiB of the host: {planned['peak_bytes']}")


def main():
    if not os.path.exists(os.path.join(WEIGHTS, "ProPainter.pth")):
        print("skipped: no drawn weights")
        return 77
    with own_folder():
        draw()
        if "films need" in subprocess.run([command.tegula, "inpaint", *SMALL, "-o", "out.y4m", "--plan"], text=True, capture_output=True, check=False,
                                          env=environment(NONE)).stderr:
            print("skipped: this build reads no films")
            return 77
        blank_film("1280.y4m", 1280, 720)
        mask_of(1280, 720, "large.png")
        blank_film("256.y4m", 256, 192, 8)
        mask_of(256, 192, "middle.png")
        steps = [the_device_is_compared_and_taken, where_it_is_refused_or_missing_the_processor_computes, a_device_without_room_is_left,
                 an_output_is_gone_on_with_by_what_began_it, a_preview_is_the_devices, memory_that_is_not_pinned_is_said]
        if "all" in sys.argv[4:]:
            steps += [a_context_that_cannot_be_made_any_more, a_refusal_names_commands_that_do, made_machines_keep_the_size]
        return command.steps(*steps)


if __name__ == "__main__":
    sys.exit(main())
