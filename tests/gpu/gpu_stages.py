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
from gpu_command import Command, distance, own_folder, pixels, played, read  # noqa: E402
from gpu_made import numbers, write  # noqa: E402
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


def two_sizes():
    """A norm at half the size: its granules are not those of the output's cells."""
    a, w0 = conv("w0", "x", "a", 1, CHANNELS, 3)
    y, w2 = conv("w2", "u", "y", CHANNELS, 1, 3)
    half, w1 = node("Conv", ["a", "w1"], ["b"], kernel_shape=[2, 2], strides=[2, 2]), floats("w1", [CHANNELS, CHANNELS, 2, 2], 90)
    up, w3 = node("ConvTranspose", ["n", "w3"], ["u"], kernel_shape=[2, 2], strides=[2, 2]), floats("w3", [CHANNELS, CHANNELS, 2, 2], 90)
    return model([a, half, node("InstanceNormalization", ["b", "g", "h"], ["n"]), up, y],
                 [w0, w1, w2, w3, floats("g", [CHANNELS], 9), floats("h", [CHANNELS], 90)], *GREY)


def many():
    """Twenty norms: a late stage that makes values again loads the numbers of all earlier ones."""
    nodes, consts, x = [], [floats("g", [CHANNELS], 9), floats("h", [CHANNELS], 90)], "x"
    for k in range(20):
        n, w = conv(f"w{k}", x, f"c{k}", 1 if k == 0 else CHANNELS, CHANNELS, 1)
        nodes += [n, node("InstanceNormalization", [f"c{k}", "g", "h"], [f"n{k}"])]
        consts.append(w)
        x = f"n{k}"
    n, w = conv("last", x, "y", CHANNELS, 1, 1)
    return model(nodes + [n], consts + [w], *GREY)


def volume():
    sides = {"kernel_shape": [3, 3, 3], "pads": [1] * 6}
    return model([node("Conv", ["x", "w0"], ["a"], **sides), node("InstanceNormalization", ["a", "g", "h"], ["n"]),
                  node("Conv", ["n", "w1"], ["y"], **sides)],
                 [floats("w0", [CHANNELS, 1, 3, 3, 3], 90), floats("w1", [1, CHANNELS, 3, 3, 3], 90), floats("g", [CHANNELS], 9),
                  floats("h", [CHANNELS], 90)], [port("x", ["N", 1, "D", "H", "W"])], [port("y", ["N", 1, "D", "H", "W"])])


def make():
    write("norms.onnx", norms(3))
    write("two.onnx", two_sizes())
    write("volume.onnx", volume())
    write("volume.npy", numbers((3, 130, 140)))
    subprocess.run([C.tegula, "copy", "volume.npy", "-o", "volume.tif", "--axes", "ZYX"], check=True, capture_output=True)
    write("batch.npy", numbers((2, 1, SIDE, SIDE)))
    write("many.onnx", many())
    write("deep.onnx", norms(7))
    write("excite.onnx", excite())
    subprocess.run([os.path.join(C.build, "tools", "tegula-draw"), "--size", str(SIDE), "in.tif", "clean.tif"],
                   check=True, stdout=subprocess.DEVNULL)


def job(net, precision):
    image = ["volume.tif", "--axes", "ZYX"] if net == "volume" else ["in.tif"]
    return ["-m", f"{net}.onnx", *image, "--normalize", "zscore" if net == "norms" else "none", "--device", "cuda",
            "--precision", precision]


def all_of(tif):
    """Every plane."""
    subprocess.run([C.tegula, "copy", tif, "-o", "all.npy", "-y"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return list(read("all.npy")[1])


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
    of = all_of if net == "volume" else pixels
    C.expect(of("staged.tif") == of(f"{net}.{precision}.tif"), f"{net} {precision} {words}: pixels of one pass")
    taken = done.get("device_measured_bytes", 0)
    C.expect(0 < taken <= planned["device_peak_bytes"] <= done["device_budget_bytes"],
             f"{net} {precision} {words}: {taken} bytes taken, {planned['device_peak_bytes']} planned")
    if EMULATED and net != "many":  # whose sixty launches the emulation keeps here, not among what was taken there
        here = done["measured_peak_bytes"] - (taken - CONTEXT)
        C.expect(here <= done["predicted_peak_bytes"],
                 f"{net} {precision} {words}: {here} bytes here, {done['predicted_peak_bytes']} planned")
    return planned["staged"]


def stages_have_the_pixels_of_one_pass():
    for net in ("norms", "deep", "excite", "two", "many", "volume"):
        run("processor.tif", net, "fp32", "--device", "cpu")
        for precision in ("fp32", "fp16") if net in ("norms", "excite") else ("fp32",):
            one = run(f"{net}.{precision}.tif", net, precision)
            least = smallest(net, precision)
            print(f"  {net} {precision}: one pass takes {one['device_predicted_bytes'] / 2**20:.1f} MiB, stages "
                  f"{least} MiB", flush=True)
            C.expect(least < one["device_predicted_bytes"] / 2**20, f"{net} {precision}: stages take less")
            for kib in (1024 * least, 1024 * least + 300, 1024 * least + 700):
                if kib < one["device_predicted_bytes"] >> 10:
                    compare(net, precision, "--vram", f"{kib}KiB")
            off = distance(pixels(f"{net}.{precision}.tif"), pixels("processor.tif"))
            most = 5e-5 if net == "many" else {"fp32": 1e-5, "fp16": 1e-2}[precision]  # twenty norms make 3e-5 of 1e-6
            C.expect(off < most, f"{net} {precision}: {off} from the processor's")


def bytes_of(name):
    with open(name, "rb") as f:
        return f.read()


def arrays_and_whole_numbers_too():
    """Samples of an array, an array made of an image, and an image whose normalisation is taken back."""
    for name, ends, to in (("arrays", ["batch.npy"], "npy"), ("an image into an array", ["in.tif", "--normalize", "zscore"], "npy"),
                           ("numbers", ["in.tif", "--normalize", "zscore", "--dtype", "uint8", "--tile", "64x64"], "tif")):
        words = ["-m", "norms.onnx", *ends, "--device", "cuda"]
        refused = C.run(*words, "-o", f"stages.{to}", "--vram", "1MiB", verb="plan")[2]
        named = re.search(r"--vram (\d+)MiB", refused)
        C.expect(named, f"{name}: a refusal that names --vram: {refused}")
        C.expect(C.run(*words, "-y", "-o", f"one.{to}")[0] == 0, f"{name}: one pass")
        small = ["--vram", f"{named[1]}MiB"]
        code, planned, said = C.run(*words, *small, "-o", f"stages.{to}", verb="plan")
        C.expect(code == 0 and planned.get("staged"), f"{name}: a plan in stages: {code}: {said}")
        code, done, said = C.run(*words, *small, "-y", "-o", f"stages.{to}")
        of = bytes_of if to == "npy" else all_of  # tiles of a TIFF lie in the order in which they came
        C.expect(code == 0 and of(f"one.{to}") == of(f"stages.{to}"), f"{name}: other values than in one pass: {code}: {said}")
        taken = done.get("device_measured_bytes", 0)
        C.expect(0 < taken <= planned["device_peak_bytes"], f"{name}: {taken} bytes taken, {planned['device_peak_bytes']} planned")
        if EMULATED and name != "arrays":  # of which so little is planned that the emulation's own code would show
            here = done["measured_peak_bytes"] - (taken - CONTEXT)
            C.expect(here <= done["predicted_peak_bytes"], f"{name}: {here} bytes here, {done['predicted_peak_bytes']} planned")


def values_lie_in_memory_or_on_disk():
    least = smallest("deep", "fp32")
    where = set()
    for ram in (None, *range(5000, 9000, 250)):
        words = ["--vram", f"{least + 1}MiB", "--scratch", "scratch", "--threads", "1"] + (["--ram", f"{ram}KiB"] if ram else [])
        code, planned, _ = plan("deep", "fp32", *words)
        if code or not planned["staged"]["kept_values"]:
            continue
        kept = "disk" if planned["staged"]["kept_disk_bytes"] else "memory"
        if kept not in where:
            compare("deep", "fp32", *words)
            C.expect(not os.listdir("scratch"), f"left in --scratch: {os.listdir('scratch')}")
        where.add(kept)
    C.expect(where == {"memory", "disk"}, f"values were kept in {sorted(where)}")


def forget_killed():
    for name in os.listdir("."):
        if name.startswith("killed.tif"):
            os.remove(name)


def kill_runs(net, words, env, rng, most):
    """Runs of `most` seconds each, until one ends: how many were killed, and began with what another left."""
    killed = went_on = 0
    forget_killed()
    for k in range(KILLS + 1):
        went_on += os.path.exists("killed.tif.stages")
        with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as one:
            try:
                _, said = one.communicate(timeout=rng.uniform(0.4, 1) * most if k < KILLS else 20 * most + 60)
                C.expect(one.returncode == 0, f"{net}: goes on: {one.returncode}: {said}")
                break
            except subprocess.TimeoutExpired:
                one.send_signal(signal.SIGKILL)
                one.communicate()
                if os.path.exists("killed.tif"):  # it was complete when the signal came
                    break
                killed += 1
                C.expect(k < KILLS, f"{net} {words}: it does not end")
    return killed, went_on


def stop_and_go_on(net, *words):
    """kill -9 again and again: at least one run goes on with what another has written down."""
    rng = random.Random(SEED)
    words = [C.tegula, "run", *job(net, "fp32"), "--threads", "1", *words, "-o", "killed.tif"]
    env = dict(C.environment(), TEGULA_SYNC_TILES="1")
    start = time.monotonic()
    subprocess.run(words[:-1] + ["timed.tif", "-y"], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    whole = time.monotonic() - start
    for patience in (0.8, 0.4, 0.2, 0.1):  # where the first run was held up the others are through too early
        killed, went_on = kill_runs(net, words, env, rng, patience * whole)
        if killed and went_on:
            break
    C.expect(killed and went_on, f"{net}: {killed} runs were killed, {went_on} went on (seed {SEED})")
    C.expect(os.path.exists("killed.tif") and pixels("killed.tif") == pixels(f"{net}.fp32.tif"),
             f"{net}: pixels of one pass after {killed} kills (seed {SEED})")
    left = [name for name in os.listdir(".") if name.startswith("killed.tif.") and not name.endswith(".json")]
    C.expect(not left and not os.listdir("scratch"), f"left: {left} {os.listdir('scratch')}")
    forget_killed()


def killed_runs_go_on():
    vram = f"{smallest('norms', 'fp32') + 1}MiB"
    stop_and_go_on("norms", "--vram", vram)
    for kib in range(5000, 9000, 250):  # as much as leaves what is kept no room in memory
        words = ["--vram", vram, "--scratch", "scratch", "--ram", f"{kib}KiB", "--threads", "1"]
        code, planned, _ = plan("deep", "fp32", *words)
        if code == 0 and planned["staged"]["kept_disk_bytes"]:
            stop_and_go_on("deep", *words)
            return
    C.expect(False, "values on disk")


def more_memory_is_enough_where_less_is():
    """Each --ram, and the one that a refusal names. What the program itself holds is not the same at each start (by some
    hundred KiB), so that a budget is refused when it is refused each time of six."""
    enough = None
    for kib in range(4000, 9000, 250):
        words = ["--vram", "14MiB", "--scratch", "scratch", "--threads", "1"]
        code, _, said = plan("deep", "fp32", "--ram", f"{kib}KiB", *words)
        for _ in range(5 if enough else 0):
            if code:
                code, _, said = plan("deep", "fp32", "--ram", f"{kib}KiB", *words)
        C.expect(code == 0 or enough is None, f"--ram {kib}KiB is refused, {enough}KiB was enough: {said}")
        enough = enough or (kib if code == 0 else None)
        named = re.search(r"give --ram (\d+)MiB", said)
        C.expect(code == 0 or named, f"--ram {kib}KiB: a refusal that names one: {said}")
        if named:
            C.expect(plan("deep", "fp32", "--ram", f"{named[1]}MiB", *words)[0] == 0, f"--ram {named[1]}MiB, named at {kib}KiB: {said}")


def main():
    if not C.there():
        return 77
    with own_folder():
        os.mkdir("scratch")
        make()
        return C.steps(stages_have_the_pixels_of_one_pass, arrays_and_whole_numbers_too, values_lie_in_memory_or_on_disk, killed_runs_go_on,
                       more_memory_is_enough_where_less_is)


if __name__ == "__main__":
    sys.exit(main())
