"""Something is removed from a film with ProPainter's networks on a device: its plan adds up and holds, and the frames are those
of the processor within one step of 8 bits.

usage: gpu_inpaint.py BUILD WEIGHTS [--emulated PLUGIN] [plans]

With `plans` nothing is computed. Skipped (77) without a device, or without the weights that the build draws. Standard
library only."""
import json
import os
import re
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_command import Command, own_folder, played  # noqa: E402

PLAYED = played()  # a device that would take half an hour
sys.argv += PLAYED
WEIGHTS = os.path.abspath(sys.argv[2])
EMULATED = sys.argv[sys.argv.index("--emulated") + 1] if "--emulated" in sys.argv else None
PLANS = bool(PLAYED) or sys.argv[-1] == "plans"
SIDE, FRAMES = 128, 2
LARGE = "many=132"  # multiprocessors of an emulated device: the more, the taller are bands, and what they take
command = Command(sys.argv[1], EMULATED, 8000)
expect = command.expect
halves = []  # that the device has


def frame(k):
    """Its planes, 4:4:4."""
    return b"".join(bytes(16 + (a * x + b * y + x // 8 * y // 8 + 5 * k) % 220 for y in range(SIDE) for x in range(SIDE))
                    for a, b in ((2, 3), (1, 0), (0, 1)))


def draw():
    """A film."""
    with open("in.y4m", "wb") as f:
        f.write(b"YUV4MPEG2 W%d H%d F10:1 Ip A1:1 C444\n" % (SIDE, SIDE) + b"".join(b"FRAME\n" + frame(k) for k in range(FRAMES)))
    mask_of(SIDE, SIDE, "mask.png")


def mask_of(width, height, name):
    """What is hidden of each frame."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + (bytes(40) + b"\xff" * 40 + bytes(width - 80) if 40 <= y < 70 else bytes(width)) for y in range(height))
    with open(name, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def blank_film(name, width, height, frames=80):
    size = 6 + width * height
    with open(name, "wb") as f:
        head = b"YUV4MPEG2 W%d H%d F24:1 Ip A1:1 Cmono\n" % (width, height)
        for k in range(frames):
            f.seek(len(head) + k * size)
            f.write(b"FRAME\n")
        f.truncate(len(head) + frames * size)
        f.seek(0)
        f.write(head)


def inpaint(out, *words, **how):
    return command.run("in.y4m", "--mask", "mask.png", "--weights", WEIGHTS, "--raft-iter", "1", "-y",
                       "-o", out, *words, verb="inpaint", **how)


def device_lines(plan):
    return {line["name"]: line["bytes"] for line in plan.get("lines", []) if line["kind"] == "device"}


def the_plan_adds_up():
    code, plan, said = inpaint("out.y4m", "--device", "cuda", "--plan")
    lines = device_lines(plan)
    expect(code == 0 and set(lines) >= {"context", "weights", "networks", "buffers", "program"}, f"the plan has lines of the device: {code}: {lines} {said}")
    expect(sum(lines.values()) == plan.get("device_peak_bytes"), f"they add up to the peak: {lines}, {plan.get('device_peak_bytes')}")


def too_little_is_refused_with_the_least():
    code, _, said = inpaint("out.y4m", "--device", "cuda", "--vram", "1MiB", "--plan")
    least = re.search(r"give --vram (\d+)MiB", said)
    expect(code == 71 and least, f"1 MiB: exit {code}: {said}")
    if not least:
        return
    code, plan, said = inpaint("out.y4m", "--device", "cuda", "--vram", f"{least.group(1)}MiB", "--plan")
    expect(code == 0 and plan["device_peak_bytes"] <= int(least.group(1)) << 20, f"the least: exit {code}: {said}")
    code, _, said = inpaint("out.y4m", "--device", "cuda", "--vram", f"{int(least.group(1)) - 1}MiB", "--plan")
    expect(code == 71, f"less than that: exit {code}: {said}")


def halves_take_less():
    code, single, said = inpaint("out.y4m", "--device", "cuda", "--plan", "--precision", "fp32")
    code2, half, said2 = inpaint("out.y4m", "--device", "cuda", "--plan", "--precision", "fp16")
    if code2 == 65 and "no kernels of that precision" in said2:
        print("  this device has no halves", flush=True)
        return
    halves.append("fp16")
    expect(code == 0 and code2 == 0, f"fp32 and fp16: exit {code}, {code2}: {said}{said2}")
    a, b = device_lines(single), device_lines(half)
    expect(a and b and b["weights"] < 0.7 * a["weights"] and b["networks"] < a["networks"], f"halves: {b}, single: {a}")
    published_sizes_fit()
    mask_of(1280, 720, "large.png")
    an_estimate_is_the_plan()
    if not PLANS:  # minutes on a played device
        halves_are_taken_where_nothing_else_fits()
    mask_of(1920, 1080, "large.png")
    presets_hold_on_a_device()


def published_sizes_fit():
    """80 frames, fp16: what PyTorch's table says takes 25 GB takes a quarter at most, and cards of 2 to 8 GiB do."""
    for width, height, vram, most in ((640, 480, 2, None), (1280, 720, 4, 25e9 / 4), (1280, 720, 6, None), (1280, 720, 8, None),
                                      (1280, 720, 12, None), (1920, 1080, 6, None), (3840, 2160, 8, None)):
        name = f"{width}.y4m"
        blank_film(name, width, height)
        mask_of(width, height, "large.png")
        code, plan, said = command.run(name, "--mask", "large.png", "--weights", WEIGHTS, "-o", "out.y4m", "-y", "--plan", "--device", "cuda",
                                       "--precision", "fp16", "--vram", f"{vram}GiB", "--ram", "64GiB", verb="inpaint", order=LARGE)
        peak = plan.get("device_peak_bytes", 0)
        stay = device_lines(plan).get("buffers", 0)
        print(f"  {width}x{height}: {peak / 2**30:.2f} of {vram} GiB, {stay / 2**30:.2f} of these for buffers that stay, {plan.get('peak_bytes', 0) / 2**30:.2f} GiB of the host", flush=True)
        expect(code == 0 and 0 < peak <= (most or vram << 30), f"{width}x{height} in {vram} GiB: exit {code}: {said}")


def an_estimate_is_the_plan():
    """The least of a GPU's memory that `estimate video` tells is what a refusal asks for, but for the context."""
    done = subprocess.run([command.tegula, "estimate", "video", "--json", "--device", "cuda", "--size", "1280x720", "--frames", "80"], text=True,
                          capture_output=True, check=False, env=command.environment())
    told = json.loads(done.stdout) if done.returncode == 0 else {}
    rows = {row["precision"]: row for row in told.get("device", [])}
    expect("least_device_bytes" in rows.get("fp16", {}) and "refused" in rows["bf16"]["state"], f"estimate video: {done.returncode}: {rows} {done.stderr}")
    for row in told.get("beside", []):
        print(f"  {row['size']}, {row['frames']} frames, fp16: {row['device_fp16_bytes'] / 2**20:.0f} MiB; published: {row['published_fp16_gb']} GB", flush=True)
        expect(0 < row["device_fp16_bytes"] < row["device_bytes"] and row["device_fp16_bytes"] <= row["published_fp16_gb"] * 1e9 / 3, f"a published size: {row}")
    code, plan, said = command.run("1280.y4m", "--mask", "large.png", "--weights", WEIGHTS, "-o", "out.y4m", "-y", "--plan", "--device", "cuda",
                                   "--precision", "fp16", "--vram", "1MiB", verb="inpaint")
    asks = re.search(r"give --vram (\d+)MiB", said)
    context = device_lines(command.run("1280.y4m", "--mask", "large.png", "--weights", WEIGHTS, "-o", "out.y4m", "-y", "--plan", "--device", "cuda",
                                       "--precision", "fp16", verb="inpaint")[1])["context"]
    expect(code == 71 and asks and int(asks.group(1)) == -(-(rows["fp16"]["least_device_bytes"] + context) // 2**20), f"the least: {rows}, {context}, {said}")


def the_built_in_method():
    """Its motions' network on the device: the processor's frames, but for roundings of motions."""
    def made(out, *words):
        code, _, said = command.run("in.y4m", "--mask", "mask.png", "-y", "-o", out, *words, verb="inpaint")
        expect(code == 0, f"the built-in method {words}: exit {code}: {said}")
        with open(out, "rb") as f:
            return f.read()
    here, there = made("here.y4m", "--device", "cpu"), made("there.y4m", "--device", "cuda")
    steps = [abs(a - b) for a, b in zip(here, there)]
    print(f"  the built-in method: {sum(map(bool, steps))} of {len(steps)} samples differ, by {max(steps)} at most", flush=True)
    expect(len(here) == len(there) and max(steps) <= 1 and sum(steps) <= len(steps) // 1000, "the built-in method: frames of the processor")


def halves_are_taken_where_nothing_else_fits():
    """--preset auto rounds nothing before all else was tried at the size, and not where a precision is asked for."""
    blank_film("256.y4m", 256, 192)
    mask_of(256, 192, "middle.png")
    film = ("256.y4m", "--mask", "middle.png", "--weights", WEIGHTS, "-o", "out.y4m", "-y", "--plan", "--device", "cuda")
    last = ("--subvideo-length", "30", "--neighbor-length", "3", "--ref-stride", "10")
    least = []
    for exact in ((), ("--exact",)):
        _, _, said = command.run(*film, *last, *exact, "--precision", "fp32", "--vram", "1MiB", verb="inpaint")
        least += [int(mib) for mib in re.findall(r"give --vram (\d+)MiB", said)[:1]]
    expect(len(least) == 2, f"what fp32 takes at least: {least}")
    for more, precision, code in ((0, "fp32", 0), (-1, "fp16", 0), (-1, None, 71)):
        words = ("--preset", "auto", "--width", "256", "--height", "192", "--vram", f"{min(least, default=0) + more}MiB")
        done = subprocess.run([command.tegula, "inpaint", "--json", *film, *words, *(() if precision else ("--precision", "fp32"))], text=True, capture_output=True,
                              check=False, env=command.environment())
        told = {e["event"]: e for e in map(json.loads, done.stdout.splitlines())}
        way = [w for w in told["inpaint_auto"]["ways"] if w["chosen"]]
        expect(done.returncode == code and (not precision or way[0]["precision"] == told["plan"]["precision"] == precision), f"{words}: {done.returncode}: {way} {done.stderr}")
        expect(precision != "fp16" or "float16" in way[0]["differs"], f"it is said: {way}")


def presets_hold_on_a_device():
    """1920x1080 of 80 frames in the memory that their names say, of the device and of the host."""
    for gib in (4, 6, 8, 12, 16, 24, 32, 48, 80):
        for precision in ("fp16", "fp32") if gib < 12 else ("fp16",):
            code, plan, said = command.run("1920.y4m", "--mask", "large.png", "--weights", WEIGHTS, "-o", "out.y4m", "-y", "--plan", "--device", "cuda",
                                           "--precision", precision, "--preset", f"inpaint-{gib}gib", verb="inpaint", order=LARGE)
            peak, most = plan.get("device_peak_bytes", 0), 0.85 * gib * 2**30
            print(f"  inpaint-{gib}gib, {precision}: {peak / 2**30:.2f} GiB, {plan.get('peak_bytes', 0) / 2**30:.2f} GiB of the host", flush=True)
            expect(code == 0 and 0 < peak <= most and plan["peak_bytes"] <= most, f"inpaint-{gib}gib, {precision}: exit {code}: {said}")


def ways(*words):
    """What --preset auto found: exit code, events by name, stderr."""
    done = subprocess.run([command.tegula, "inpaint", "--json", "in.y4m", "--mask", "mask.png", "--weights", WEIGHTS, "--raft-iter", "1",
                           "-y", "-o", "out.y4m", "--device", "cuda", "--plan", "--preset", "auto", *words],
                          text=True, capture_output=True, check=False, env=command.environment())
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, {e["event"]: e for e in events}, done.stderr


def a_preset_tells_what_the_device_takes():
    code, told, said = ways()
    chosen = [way for way in told.get("inpaint_auto", {}).get("ways", []) if way["chosen"]]
    expect(code == 0 and len(chosen) == 1, f"--preset auto: exit {code}: {said}")
    if chosen:
        expect(chosen[0]["device_bytes"] == told["plan"]["device_peak_bytes"], f"its memory is the plan's: {chosen}, {told['plan']}")
        expect(told["inpaint_auto"]["device"] == "cuda" and chosen[0]["device_fits"], f"it computes: {told['inpaint_auto']}")


def a_preset_has_no_bf16_of_the_processor():
    """Nothing fits: the last way would be products of bfloat16, which no device has here."""
    with open("machine.json", "w", encoding="utf-8") as f:
        json.dump({"schema": "tegula.machine", "version": 1, "memory": {"total_bytes": 32 << 30, "available_bytes": 28 << 30},
                   "processors": {"usable": 8, "instruction_sets": ["portable", "avx2", "avx512"], "bf16": True},
                   "gpus": [{"name": "NVIDIA GeForce RTX 3060", "total_bytes": 12 << 30}]}, f)
    code, told, said = ways("--machine", "machine.json", "--ram", "40MiB")
    expect(code == 71 and "inpaint_auto" in told, f"--ram 40MiB: exit {code}: {said}")


def what_no_device_has_is_refused():
    code, _, said = inpaint("out.y4m", "--device", "cuda", "--plan", "--precision", "bf16")
    expect(code == 69 and "--precision fp16" in said, f"bf16: exit {code}: {said}")
    code, _, said = command.run("in.y4m", "--mask", "mask.png", "-o", "out.y4m", "--method", "smooth", "--device", "cuda", "--plan", verb="inpaint")
    expect(code == 69 and "--method propagate" in said, f"--method smooth: exit {code}: {said}")
    followed = ("in.y4m", "--mask", "mask.png", "-o", "out.y4m", "--method", "propagate", "--device", "cuda", "--plan")
    code, _, said = command.run(*followed, "--precision", "fp16", verb="inpaint")
    expect(code == 69 and "--precision fp32" in said, f"motions in halves: exit {code}: {said}")
    code, plan, said = command.run(*followed, "--fp16", verb="inpaint")
    expect(code == 0 and plan.get("precision") == "fp32", f"--fp16, which is not used: exit {code}: {plan.get('precision')} {said}")


def frames_are_those_of_the_processor(precision="fp32", most=1):
    code, _, said = inpaint("cpu.y4m", "--device", "cpu")
    expect(code == 0, f"the processor: exit {code}: {said}")
    code, done, said = inpaint("cuda.y4m", "--device", "cuda", "--precision", precision)
    expect(code == 0 and "cuda" in (done.get("device") or ""), f"the device: exit {code}: {done} {said}")
    if command.problems:
        return
    expect(0 < done["device_measured_bytes"] <= done["device_predicted_bytes"], f"it took what was planned: {done}")
    with open("cpu.y4m", "rb") as a, open("cuda.y4m", "rb") as b:
        a, b = a.read(), b.read()
    a, b = (text[text.index(b"\n"):] for text in (a, b))
    other = [abs(x - y) for x, y in zip(a, b) if x != y]
    print(f"  {len(other)} of {len(a)} samples differ from the processor's, by {max(other, default=0)} at most", flush=True)
    expect(len(a) == len(b) > 3 * SIDE * SIDE * FRAMES and max(other, default=0) <= most, f"frames are the processor's: {precision}")


def halves_are_near():
    if halves:
        frames_are_those_of_the_processor("fp16", 2)


def main():
    if not command.there():
        return 77
    if not any(os.path.exists(os.path.join(WEIGHTS, f"ProPainter.{end}")) for end in ("pth", "safetensors")):
        print("skipped: no drawn weights")
        return 77
    with own_folder():
        draw()
        if "films need" in inpaint("out.y4m", "--plan")[2]:
            print("skipped: this build reads no films")
            return 77
        steps = [the_plan_adds_up, too_little_is_refused_with_the_least, a_preset_tells_what_the_device_takes,
                 a_preset_has_no_bf16_of_the_processor, what_no_device_has_is_refused, the_built_in_method, halves_take_less]
        if not PLANS:
            steps += [frames_are_those_of_the_processor, halves_are_near]
        return command.steps(*steps)


if __name__ == "__main__":
    sys.exit(main())
