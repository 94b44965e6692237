"""Jobs on a device, by the command: near the processor's result, tiles with the bits of the whole,
inside --vram, beside a neighbour, and what happens when the device is not there, ends or fails.

usage: gpu_run.py BUILD MODEL [--emulated PLUGIN [WORDS]]

With --emulated it runs on the device that is played on the processor (small image, failures on
demand; of WORDS of TEGULA_EMULATED, results alone), else on a real one; without one it is skipped
(77). Standard library only.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import distance, pixels, played  # noqa: E402
from seeds import floats, model, node, port  # noqa: E402

sys.argv += played()
BUILD, MODEL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
EMULATED = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 and sys.argv[3] == "--emulated" else None
WORDS = sys.argv[5] if len(sys.argv) > 5 else None
SIDE = 40 if EMULATED else 1500
TILE = 24 if EMULATED else 400
MOST = (5e-3, 4e-2) if EMULATED else (1.2e-2, 9.6e-2)  # fp16 and tf32, bf16: eight times that
TEGULA = os.path.join(BUILD, "cli", "tegula")
problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)
        print(f"NOT: {what}", flush=True)


def environment(emulated=None, plugin=None):
    env = dict(os.environ, TEGULA_CACHE=os.path.abspath("cache"))
    if EMULATED:
        env["TEGULA_CUDA_PLUGIN"] = EMULATED
        env["TEGULA_EMULATED"] = ",".join(filter(None, ("mib=256", WORDS, emulated)))
    if plugin:
        env["TEGULA_CUDA_PLUGIN"] = plugin
    return env


def offered():
    """Precisions that the device multiplies in, by its generation as the doctor names it."""
    done = subprocess.run([TEGULA, "doctor", "--json"], text=True, capture_output=True, check=False, env=environment())
    said = re.search(r"compute capability (\d+)\.", done.stdout)
    expect(said, f"doctor names the device's compute capability: {done.stdout}{done.stderr}")
    return ("fp32", "fp16", "bf16", "tf32") if said and int(said.group(1)) >= 8 else ("fp32", "fp16")


def command(out, *options, device="cuda", net=MODEL):
    return [TEGULA, "run", "-y", "--json", "-m", net, "in.tif", "-o", out, "--dtype", "float32", "--normalize",
            "scale:1/65535", "--device", device, *options]


def run(out, *options, env=None, device="cuda", net=MODEL):
    """(exit code, the last JSON object, stderr)"""
    done = subprocess.run(command(out, *options, device=device, net=net), text=True, capture_output=True, check=False,
                          env=env or environment())
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, lines[-1] if lines else {}, done.stderr


# ---- Results -----------------------------------------------------------------------------------


def near_the_processor():
    code, _, said = run("cpu.tif", "--exact", device="cpu")
    expect(code == 0, f"a run on the processor: exit {code}: {said}")
    cpu = pixels("cpu.tif")
    has = offered()
    # An image of 1500 is darker than one of 40, and what its values are off by weighs more: on the emulated device its
    # parts of 96 x 96 are off by 5.7e-6 to 8.5e-6 (fp32) and 0.0076 to 0.0112 (fp16), one of 40 by a third of that.
    for precision, most in (("fp32", 1e-5), ("fp16", MOST[0]), ("bf16", MOST[1])):
        if precision not in has:
            continue
        code, _, said = run(f"{precision}.tif", "--precision", precision)
        expect(code == 0, f"{precision}: exit {code}: {said}")
        off = distance(pixels(f"{precision}.tif"), cpu) if code == 0 else math.inf
        print(f"  {precision}: relative L2 {off:.3g} from the processor", flush=True)
        expect(off < most, f"{precision} is within {most} of the processor: {off}")
        expect(off > 0 or precision == "fp32", f"{precision} rounds at all")
        expect_receipt(f"{precision}.tif", precision)
    if "tf32" not in has:
        return
    code, _, said = run("tf32.tif", "--precision", "fp32", "--tf32")
    off = distance(pixels("tf32.tif"), cpu) if code == 0 else math.inf
    print(f"  tf32: relative L2 {off:.3g} from the processor", flush=True)
    expect(1e-5 < off < MOST[0], f"--tf32 errs by some 1e-3, and errs: {off} {said}")
    expect_receipt("tf32.tif", "tf32")


def expect_receipt(tif, precision):
    """The receipt names what was multiplied."""
    with open(f"{tif}.tegula.json", encoding="utf-8") as f:
        text = f.read()
    holds = f"cuda {precision} " in text and f"{precision} products" in text
    expect(holds, f"{tif}.tegula.json says {precision}: {text[:600]}")
    return holds


def tiles_have_the_bits_of_the_whole():
    for precision in offered():
        asked = ("fp32", "--tf32") if precision == "tf32" else (precision,)
        code, done, said = run("tiles.tif", "--precision", *asked, "--tile", str(TILE))
        expect(code == 0 and done.get("tiles", 0) > 1, f"{precision} in tiles: exit {code}: {said}")
        expect(code == 0 and pixels("tiles.tif") == pixels(f"{precision}.tif"), f"{precision}: tiles equal the whole")


def wide_network():
    """64 channels in the middle, which groups of warps are for; weights that are no short fractions, or sums would be
    exact in any order."""
    nodes = [node("Conv", [x, w], [y], kernel_shape=[3, 3], pads=[1] * 4) for x, w, y in
             (("x", "w0", "a"), ("a", "w1", "b"), ("b", "w2", "y"))]
    with open("wide.onnx", "wb") as f:
        f.write(model(nodes, [floats("w0", [64, 1, 3, 3]), floats("w1", [64, 64, 3, 3], 29), floats("w2", [1, 64, 3, 3])],
                      [port("x", ["N", 1, "H", "W"])], [port("y", ["N", 1, "H", "W"])]))


def groups_of_warps_compute_what_the_others_do():
    """Where their kind was measured to be faster, and to compute the same: the receipt says so."""
    env = dict(environment("wgmma"), TEGULA_CACHE=os.path.abspath("cache-of-groups"))
    wide_network()
    code, _, said = run("wide.tif", "--exact", device="cpu", net="wide.onnx")
    expect(code == 0, f"a wide network on the processor: exit {code}: {said}")
    cpu = pixels("wide.tif")
    code, _, said = run("plain.tif", "--precision", "fp16", net="wide.onnx")
    expect(code == 0, f"a wide network: exit {code}: {said}")
    code, _, said = run("groups.tif", "--precision", "fp16", env=env, net="wide.onnx")
    expect(code == 0, f"groups of warps: exit {code}: {said}")
    whole = pixels("groups.tif")
    off = distance(whole, cpu)
    print(f"  groups of warps: relative L2 {off:.3g} from the processor", flush=True)
    expect(off < 5e-3, f"groups of warps are within 5e-3 of the processor: {off}")
    expect(whole != pixels("plain.tif"), "groups of warps sum in another order")
    with open("groups.tif.tegula.json", encoding="utf-8") as f:
        expect("cuda fp16 9.0 wgmma" in f.read(), "the receipt says wgmma")
    code, done, said = run("tiles.tif", "--precision", "fp16", "--tile", str(TILE), env=env, net="wide.onnx")
    expect(code == 0 and done.get("tiles", 0) > 1, f"groups of warps, in tiles: exit {code}: {said}")
    expect(code == 0 and pixels("tiles.tif") == whole, "groups of warps: tiles equal the whole")


def budgets_are_kept_or_refused():
    code, done, said = run("refused.tif", "--vram", "1MiB")
    expect(code == 71, f"--vram 1MiB: exit {code}: {said}")
    expect(not os.path.exists("refused.tif"), "nothing is written by a job that does not fit")
    code, done, said = run("narrow.tif", "--precision", "fp16", "--vram", "80%")
    expect(code == 0 and pixels("narrow.tif") == pixels("fp16.tif"), f"--vram 80%: exit {code}: {said}")
    expect(0 < done.get("device_measured_bytes", 0) <= done.get("device_predicted_bytes", 0)
           <= done.get("device_budget_bytes", 0), f"--vram 80%: measured, predicted and budget: {done}")


def two_at_once():
    both = [subprocess.Popen(command(f"both{i}.tif", "--precision", "fp16"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, env=environment()) for i in range(2)]
    for i, p in enumerate(both):
        said = p.communicate()[1]
        expect(p.returncode == 0, f"run {i} of two at once: exit {p.returncode}: {said}")
    expect(pixels("both0.tif") == pixels("both1.tif") == pixels("fp16.tif"), "two at once give what one gives")


def an_older_device_says_what_it_lacks():
    """7.5 has neither bfloat16 nor TF32."""
    old = environment("capability=75")
    code, _, said = run("old.tif", "--precision", "bf16", env=old)
    expect(code == 65 and "bfloat16" in said and "fp16" in said, f"bf16 on 7.5: exit {code}: {said}")
    code, _, said = run("old.tif", "--precision", "fp32", "--tf32", "-v", env=old)
    expect(code == 0 and "no TF32" in said, f"--tf32 on 7.5: exit {code}: {said}")
    expect(code == 0 and pixels("old.tif") == pixels("fp32.tif"), "--tf32 on 7.5 is true float32")


def options_that_exclude_each_other():
    for options in (("--tf32", "--exact"), ("--tf32", "--precision", "fp16"), ("--tf32", "--precision", "bf16")):
        code, _, said = run("never.tif", *options)
        expect(code == 64 and "--tf32" in said, f"{options}: exit {code}: {said}")


def auto_measures_once():
    """... and keeps it; a file that is damaged is measured again. In a cache of its own: measured again, another kind
    of kernels may pay, whose sums are others."""
    env = dict(environment(), TEGULA_CACHE=os.path.abspath("cache-of-auto"))
    kept = os.path.join("cache-of-auto", "devices.json")
    seen = []
    for i in range(3):
        code, _, said = run("auto.tif", "-v", env=env)
        expect(code == 0, f"auto, time {i + 1}: exit {code}: {said}")
        seen.append("times as fast as fp32" in said)
        if i == 1:
            with open(kept, "w", encoding="utf-8") as f:
                f.write("{")
    expect(seen == [True, False, True], f"measured, kept, and measured again: {seen}")
    with open(kept, encoding="utf-8") as f:
        row = json.load(f)["devices"][0]
    precision = "fp16" if row["half_gain"] >= 1.15 else "fp32"
    expect_receipt("auto.tif", precision)
    code, _, said = run("asked.tif", "--precision", precision, env=env)
    expect(code == 0 and pixels("auto.tif") == pixels("asked.tif"), f"auto goes by it: {row}: {said}")
    done = subprocess.run([TEGULA, "doctor"], text=True, capture_output=True, check=False, env=env)
    expect("times as fast as fp32" in done.stdout, f"doctor shows it: {done.stdout}")


# ---- What goes wrong ---------------------------------------------------------------------------


def without_a_device():
    none = environment(plugin="none")
    code, _, said = run("none.tif", env=none)
    expect(code == 69 and "TEGULA_CUDA_PLUGIN" in said, f"--device cuda without a plugin: exit {code}: {said}")
    expect(not os.path.exists("none.tif"), "nothing is written without the device asked for")
    code, _, said = run("auto.tif", "--exact", env=none, device="auto")
    expect(code == 0 and pixels("auto.tif") == pixels("cpu.tif"), f"auto goes on without: exit {code}: {said}")


def a_failed_launch_ends_the_attempt():
    """... with the code for "try again", and the next attempt finishes with the same pixels."""
    for number in (2, 9, 20):
        code, _, said = run("failed.tif", "--precision", "fp32", "--tile", str(TILE),
                            env=environment(f"launch={number}"))
        expect(code == 75, f"launch {number} fails: exit {code}: {said}")
        expect("illegal memory access" in said, f"launch {number} fails: the reason is said: {said}")
        expect(not os.path.exists("failed.tif"), f"launch {number} fails: no output has its name")
    code, _, said = run("failed.tif", "--precision", "fp32", "--tile", str(TILE))
    expect(code == 0 and pixels("failed.tif") == pixels("fp32.tif"), f"the same command then: exit {code}: {said}")


def memory_that_a_neighbour_took():
    """The k-th call of the runtime finds no memory: the run ends well or says so; pixels are right."""
    codes = set()
    for number in (*range(1, 180, 15), *range(60, 100, 3)):
        if os.path.exists("squeezed.tif"):
            os.unlink("squeezed.tif")
        code, _, said = run("squeezed.tif", "--precision", "fp32", env=environment(f"nomemory={number}"))
        codes.add(code)
        expect(code in (0, 69, 71, 75), f"no memory at call {number}: exit {code}: {said}")
        if code == 0:
            expect(pixels("squeezed.tif") == pixels("fp32.tif"), f"no memory at call {number}: pixels are right")
        else:
            expect(not os.path.exists("squeezed.tif"), f"no memory at call {number}: no output")
    print("  exit codes:", sorted(codes), flush=True)
    expect(0 in codes, "a job that finds no memory for its arena is planned smaller and ends well")


def beside_a_neighbour():
    """A neighbour leaves little: the job fits what is left."""
    holder = subprocess.Popen([os.path.join(BUILD, "tests", "gpu", "gpu_device"), "--hold", "1200"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in holder.stdout:
        if line.startswith("holding"):
            break
    code, _, said = run("beside.tif", "--precision", "fp16")
    expect(code == 0, f"beside a neighbour: exit {code}: {said}")
    expect(code == 0 and pixels("beside.tif") == pixels("fp16.tif"), "beside a neighbour: pixels are right")
    holder.communicate("\n")


def main():
    if not EMULATED:
        there = subprocess.run([os.path.join(BUILD, "tests", "gpu", "gpu_device"), "--there"], text=True,
                               capture_output=True, check=False)
        if there.returncode == 77:
            print(there.stdout.strip())
            return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([os.path.join(BUILD, "tools", "tegula-draw"), "--size", str(SIDE), "in.tif", "clean.tif"],
                       check=True, stdout=subprocess.DEVNULL)
        steps = [near_the_processor, tiles_have_the_bits_of_the_whole, budgets_are_kept_or_refused, two_at_once,
                 auto_measures_once, options_that_exclude_each_other, without_a_device]
        if WORDS:
            steps = steps[:3]
        elif EMULATED:
            steps += [groups_of_warps_compute_what_the_others_do, a_failed_launch_ends_the_attempt,
                      memory_that_a_neighbour_took]
        else:
            steps.append(beside_a_neighbour)
        if EMULATED or "bf16" not in offered():
            steps.append(an_older_device_says_what_it_lacks)
        for step in steps:
            before = len(problems)
            step()
            print(f"{'ok  ' if len(problems) == before else 'FAIL'} {step.__name__}", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
