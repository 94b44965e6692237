"""What jobs take of a device with --vram, seen from outside: never more than that, and never more than they say.

usage: gpu_vram.py BUILD [--emulated PLUGIN NVML]

The driver's management library is asked every few milliseconds how much of the device is used, by everybody. Where
somebody else changes it meanwhile nothing can be said of a run: after some attempts it is skipped, with the reason.
With --emulated it runs on the device that is played on the processor, whose memory NVML tells; there this also shows
that a device which takes more than it says is found out, and that others are. Else on a real one; without one, or
without that library, it is skipped (77). Standard library only; the network is made here.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, own_folder, played  # noqa: E402
from gpu_made import broad, numbers, write  # noqa: E402
from nvml import Nvml, Watch  # noqa: E402

sys.argv += played("libtg_emulated_nvml.so")
EMULATED, NVML = map(os.path.abspath, sys.argv[3:5]) if sys.argv[2:3] == ["--emulated"] else (None, None)
C = Command(sys.argv[1], EMULATED, mib="256,context=40,first=3")  # a context is much of what a real job takes
H, W = (48, 1200) if EMULATED else (2048, 4096)
ATTEMPTS = 3
MIB = 1 << 20
JOB = ("-m", "broad.onnx", "in.npy", "-y", "--device", "cuda")
FP32 = ("--precision", "fp32", "--no-cublas")
skipped = []
nvml = device = None


def out(*words):
    return (*JOB, "-o", "out.npy", *words)


def tight(*words):
    """A budget in MiB that a plan without one goes beyond, by much."""
    code, plan, said = C.run(*out(*words), verb="plan")
    C.expect(code == 0, f"a plan: exit {code}: {said}")
    context = next(line["bytes"] for line in plan["lines"] if line["kind"] == "device" and line["name"] == "context")
    size = context + (plan["device_peak_bytes"] - context) * 6 // 10
    return -(-size // MIB)


def watched(*words, order=None):
    """(watch, exit code, last JSON object, stderr) of a run."""
    with Watch(nvml, device) as w:
        return w, *C.run(*out(*words), order=order)


def undisturbed(run, attempts=ATTEMPTS):
    """`run` until nobody disturbs it; None, and the reason kept, where somebody always does."""
    for _ in range(attempts):
        got = run()
        if not got[0].others:
            return got
    print(f"  skipped: {got[0].others}", flush=True)
    skipped.append(got[0].others)
    return None


# ---- Runs --------------------------------------------------------------------------------------


def runs_keep_to_their_budget():
    for name, words in (("fp32", FP32), ("fp16", ("--precision", "fp16")), ("auto", ())):
        size = tight(*words)
        got = undisturbed(lambda: watched("--vram", f"{size}MiB", *words))
        if got:
            keeps(name, size * MIB, *got)


def keeps(name, size, w, code, done, said):
    C.expect(code == 0, f"{name} in {size} bytes: exit {code}: {said}")
    if code:
        return
    planned, measured = done["device_predicted_bytes"], done["device_measured_bytes"]
    print(f"  {name}: --vram {size}, planned {planned}, measured {measured}, seen {w.highest} in {w.samples} samples", flush=True)
    C.expect(0 < w.highest <= size, f"{name}: {w.highest} bytes were used of {size}")
    C.expect(w.highest <= planned <= size, f"{name}: {w.highest} bytes were used, and {planned} planned")
    C.expect(not EMULATED or w.highest == measured, f"{name}: {w.highest} bytes were used, and {measured} measured")


def measuring_keeps_to_it_too():
    """A first run on a device measures what it computes with, before it plans."""
    kept = os.path.join(os.environ["TEGULA_CACHE"], "devices.json")
    size = tight()

    def first():
        os.unlink(kept)
        return watched("--vram", f"{size}MiB")
    got = undisturbed(first)
    if got:
        w, code, _, said = got
        C.expect(code == 0 and 0 < w.highest <= size * MIB, f"a first run: exit {code}, {w.highest} of {size} MiB: {said}")


def two_at_once_keep_to_both():
    """... and neither counts as its own what the other takes, where the driver names both."""
    size = tight(*FP32)

    def both():
        with Watch(nvml, device, ours=2) as w:
            runs = [subprocess.Popen([C.tegula, "run", "--json", *JOB, "-o", f"both{i}.npy", "--vram", f"{size}MiB", *FP32],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=C.environment())
                    for i in range(2)]
            said = [(*r.communicate(), r.returncode) for r in runs]
            named = all(r.pid in w.seen for r in runs)
        return w, said, named
    got = undisturbed(both)
    if not got:
        return
    w, said, named = got
    C.expect(0 < w.highest <= 2 * size * MIB, f"two at once: {w.highest} bytes were used of twice {size} MiB")
    if not named:
        print("  the driver names no process of ours, so that each takes the other's memory for its own", flush=True)
        return
    for result, why, code in said:
        C.expect(code == 0, f"two at once: exit {code}: {why}")
        done = json.loads(result.splitlines()[-1]) if code == 0 else {}
        C.expect(done.get("device_measured_bytes", 0) <= done.get("device_predicted_bytes", -1), f"two at once: {done}")
        print(f"  planned {done.get('device_predicted_bytes')}, measured {done.get('device_measured_bytes')}", flush=True)


# ---- What the watch finds ----------------------------------------------------------------------


def what_is_taken_and_not_told_is_seen():
    size = tight(*FP32)
    w, code, done, said = watched("--vram", f"{size}MiB", *FP32, order="hidden=50")
    C.expect(code == 0 and not w.others, f"a device that hides what it takes: exit {code}, {w.others}: {said}")
    C.expect(w.highest == done["device_measured_bytes"] + 50 * MIB > size * MIB, f"... {w.highest} bytes are seen")


def neighbour():
    """One that holds memory until it gets a line."""
    p = subprocess.Popen([os.path.join(C.build, "tests", "gpu", "gpu_device"), "--hold", "64"], env=C.environment(),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        if line.startswith("holding"):
            return p
    raise RuntimeError("gpu_device --hold holds nothing")


def others_are_seen():
    """... and what they disturb is skipped: who goes, comes, comes and goes, or is not named."""
    def beside(order):
        there = neighbour() if order == "goes" else None
        with Watch(nvml, device, ours=0) as w:
            there = there or neighbour()
            w.look()
            if order != "comes":
                there.communicate("\n")
        if order == "comes":
            there.communicate("\n")
        return w, order

    def unnamed():
        os.environ["TEGULA_EMULATED"] = f"mib={C.mib},nobody"
        try:
            return beside("goes")
        finally:
            del os.environ["TEGULA_EMULATED"]
    for run, why in ((lambda: beside("goes"), "a process went"), (lambda: beside("comes"), "another process came"),
                     (lambda: beside("comes and goes"), "another process came"), (unnamed, "bytes were used before")):
        C.expect(undisturbed(run, 1) is None and why in "".join(skipped), f"{why}: {skipped}")
        skipped.clear()


def find_device():
    """The one that jobs are computed on, in the management library; False: it cannot be watched."""
    global nvml, device  # pylint: disable=global-statement
    try:
        nvml = Nvml()
    except OSError as e:
        print(f"skipped: {e}")
        return False
    code, _, said = C.run(*out())  # what is measured at first use is measured now
    C.expect(code == 0, f"a first run: exit {code}: {said}")
    with open(os.path.join(os.environ["TEGULA_CACHE"], "devices.json"), encoding="utf-8") as f:
        name = json.load(f)["devices"][0]["device"]
    device = nvml.device(name.split()[-1])
    if device is None:
        print(f"skipped: the management library has no device {name}")
    elif nvml.processes(device) is None:
        print("  processes are not told: others are seen by what they leave alone", flush=True)
    return device is not None


def main():
    if not C.there():
        return 77
    with own_folder() as folder:
        if EMULATED:
            Watch.PATIENCE = 0.2  # what ends there has given back
            os.environ.update(TEGULA_NVML=NVML, TEGULA_EMULATED_SHARE=os.path.join(folder, "share"))
        write("broad.onnx", broad())
        write("in.npy", numbers((1, 1, H, W)))
        if not find_device():
            return 1 if C.problems else 77
        more = [what_is_taken_and_not_told_is_seen, others_are_seen] if EMULATED else []
        failed = C.steps(runs_keep_to_their_budget, measuring_keeps_to_it_too, two_at_once_keep_to_both, *more)
        return failed or (77 if skipped else 0)


if __name__ == "__main__":
    sys.exit(main())
