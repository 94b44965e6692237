"""Networks that read whole images, stage by stage on a device with less memory than one pass takes.

usage: gpu_stages.py BUILD [--emulated PLUGIN]

Every pixel is that of one pass on the same device, at the smallest --vram that a refusal names and above it, with values
that pass between stages in memory and in --scratch, and after kill -9 at random moments. With --emulated it runs on the
device that is played on the processor, else on a real one; without one it is skipped (77). Standard library only.
"""
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, distance, own_folder, pixels, played  # noqa: E402
from gpu_made import write  # noqa: E402
from seeds import floats, model, node, port  # noqa: E402

sys.argv += played()
EMULATED = sys.argv[3] if sys.argv[2:3] == ["--emulated"] else None
C = Command(sys.argv[1], EMULATED)
SIDE = 200 if EMULATED else 3000
CHANNELS = 12
KILLS = 6
CONTEXT = 8 << 20  # of the emulated device: it alone is no memory of this process
SEED = int(os.environ.get("TEGULA_TEST_SEED", time.time()))
GREY = [port("x", ["N", 1, "H", "W"])], [port("y", ["N", 1, "H", "W"])]


def conv(name, x, y, cin, cout, side):
    return (node("Conv", [x, name], [y], kernel_shape=[side] * 2, pads=[side // 2] * 4),
            floats(name, [cout, cin, side, side], 40 * side))


def norms(side):
    """Two norms; behind kernels of 7 x 7 it is cheaper to keep a value than to make it again."""
    a, w0 = conv("w0", "x", "a", 1, CHANNELS, 3)
    b, w1 = conv("w1", "r", "b", CHANNELS, CHANNELS, side)
    y, w2 = conv("w2", "s", "y", CHANNELS, 1, 3)
    return model([a, node("InstanceNormalization", ["a", "g", "h"], ["n"]), node("Relu", ["n"], ["r"]), b,
                  node("GroupNormalization", ["b", "g", "h"], ["m"], num_groups=3), node("Add", ["m", "r"], ["s"]), y],
                 [w0, w1, w2, floats("g", [CHANNELS], 9), floats("h", [CHANNELS], 90)], *GREY, opset=21)


def excite():
    a, w0 = conv("w0", "x", "a", 1, CHANNELS, 3)
    t, w1 = conv("w1", "p", "t", CHANNELS, CHANNELS, 1)
    y, w2 = conv("w2", "v", "y", CHANNELS, 1, 3)
    return model([a, node("GlobalAveragePool", ["a"], ["p"]), t, node("Sigmoid", ["t"], ["u"]),
                  node("Mul", ["a", "u"], ["v"]), y], [w0, w1, w2], *GREY)


def make():
    write("norms.onnx", norms(3))
    write("deep.onnx", norms(7))
    write("excite.onnx", excite())
    subprocess.run([os.path.join(C.build, "tools", "tegula-draw"), "--size", str(SIDE), "in.tif", "clean.tif"],
                   check=True, stdout=subprocess.DEVNULL)


def job(net, precision):
    return ["-m", f"{net}.onnx", "in.tif", "--normalize", "zscore", "--device", "cuda", "--precision", precision]


def run(out, net, precision, *words):
    code, done, said = C.run(*job(net, precision), "-y", "-o", out, *words)
    C.expect(code == 0, f"{net} {precision} {words}: exit {code}: {said}")
    return done


def plan(net, precision, *words):
    return C.run(*job(net, precision), "-o", "plan.tif", *words, verb="plan")


def smallest(net, precision, *words):
    """MiB of --vram that a refusal names."""
    code, _, said = plan(net, precision, "--vram", "1MiB", *words)
    named = re.search(r"--vram (\d+)MiB", said)
    C.expect(code and named, f"{net} {precision}: a refusal that names --vram: {code}: {said}")
    return int(named[1]) if named else 0


def compare(net, precision, *words):
    """One run in stages against one pass, its plan against what was taken."""
    code, planned, said = plan(net, precision, *words)
    C.expect(code == 0 and planned.get("staged"), f"{net} {precision} {words}: a plan in stages: {code}: {said}")
    done = run("staged.tif", net, precision, *words)
    C.expect(pixels("staged.tif") == pixels(f"{net}.{precision}.tif"), f"{net} {precision} {words}: pixels of one pass")
    taken = done.get("device_measured_bytes", 0)
    C.expect(0 < taken <= planned["device_peak_bytes"] <= done["device_budget_bytes"],
             f"{net} {precision} {words}: {taken} bytes taken, {planned['device_peak_bytes']} planned")
    if EMULATED:
        here = done["measured_peak_bytes"] - (taken - CONTEXT)
        C.expect(here <= done["predicted_peak_bytes"],
                 f"{net} {precision} {words}: {here} bytes here, {done['predicted_peak_bytes']} planned")
    return planned["staged"]


def stages_have_the_pixels_of_one_pass():
    for net in ("norms", "deep", "excite"):
        run("processor.tif", net, "fp32", "--device", "cpu")
        for precision in ("fp32", "fp16") if net != "deep" else ("fp32",):
            one = run(f"{net}.{precision}.tif", net, precision)
            least = smallest(net, precision)
            print(f"  {net} {precision}: one pass takes {one['device_predicted_bytes'] / 2**20:.1f} MiB, stages "
                  f"{least} MiB", flush=True)
            C.expect(least < one["device_predicted_bytes"] / 2**20, f"{net} {precision}: stages take less")
            for mib in (least, least + 1):
                if mib < one["device_predicted_bytes"] >> 20:
                    compare(net, precision, "--vram", f"{mib}MiB")
            off = distance(pixels(f"{net}.{precision}.tif"), pixels("processor.tif"))
            C.expect(off < {"fp32": 1e-5, "fp16": 1e-2}[precision], f"{net} {precision}: {off} from the processor's")


def values_lie_in_memory_or_on_disk():
    least = smallest("deep", "fp32")
    where = set()
    for ram in (None, *range(8, 40)):
        words = ["--vram", f"{least + 1}MiB", "--scratch", "scratch"] + (["--ram", f"{ram}MiB"] if ram else [])
        code, planned, _ = plan("deep", "fp32", *words)
        if code or not planned["staged"]["kept_values"]:
            continue
        kept = "disk" if planned["staged"]["kept_disk_bytes"] else "memory"
        if kept not in where:
            compare("deep", "fp32", *words)
            C.expect(not os.listdir("scratch"), f"left in --scratch: {os.listdir('scratch')}")
        where.add(kept)
    C.expect(where == {"memory", "disk"}, f"values were kept in {sorted(where)}")


def a_killed_run_goes_on():
    rng = random.Random(SEED)
    vram = f"{smallest('norms', 'fp32') + 1}MiB"
    words = [C.tegula, "run", *job("norms", "fp32"), "--vram", vram, "-o", "killed.tif"]
    start = time.monotonic()
    run("timed.tif", "norms", "fp32", "--vram", vram)
    whole = time.monotonic() - start
    killed = 0
    for _ in range(KILLS):
        run_ = subprocess.Popen(words, env=C.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            run_.wait(rng.uniform(0.1, 0.7) * whole)
        except subprocess.TimeoutExpired:
            run_.send_signal(signal.SIGKILL)
            killed += run_.wait() == -signal.SIGKILL
        if os.path.exists("killed.tif"):
            break
    else:
        done = subprocess.run(words, env=C.environment(), capture_output=True, text=True, check=False)
        C.expect(done.returncode == 0, f"goes on: {done.returncode}: {done.stderr}")
    C.expect(killed > 0, "no run was killed")
    C.expect(pixels("killed.tif") == pixels("norms.fp32.tif"), f"pixels of one pass after {killed} kills (seed {SEED})")
    left = [name for name in os.listdir(".") if name.startswith("killed.tif.") and not name.endswith(".json")]
    C.expect(not left, f"left beside the output: {left}")


def main():
    if not C.there():
        return 77
    with own_folder():
        os.mkdir("scratch")
        make()
        return C.steps(stages_have_the_pixels_of_one_pass, values_lie_in_memory_or_on_disk, a_killed_run_goes_on)


if __name__ == "__main__":
    sys.exit(main())
