"""Jobs that a neighbour takes the device's memory from, between their plan and their first allocation: the device
refuses what was planned, the job says so, is planned smaller and ends with the bytes of one that nobody disturbed.

usage: gpu_neighbour.py BUILD NEIGHBOUR [--emulated PLUGIN NVML]

NEIGHBOUR is the plugin that plays the neighbour (neighbour_plugin.c). With --emulated it runs on the device that is
played on the processor, and NVML tells of that, else on a real one; without one it is skipped (77). Standard library
only; the network is made here.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, own_folder, played  # noqa: E402
from gpu_made import broad, content, numbers, write  # noqa: E402

sys.argv += played("libtg_emulated_nvml.so")
EMULATED, NVML = map(os.path.abspath, sys.argv[4:6]) if sys.argv[3:4] == ["--emulated"] else (None, None)
C = Command(sys.argv[1], EMULATED)
NEIGHBOUR = os.path.abspath(sys.argv[2])
SIDE = 256 if EMULATED else 2048
H, W = (48, 1200) if EMULATED else (SIDE, SIDE)  # of the array
OUT_OF_MEMORY = -2  # TG_E_NOMEM
# What is measured first would allocate first.
WORDS = ("-m", "broad.onnx", "-y", "--device", "cuda", "--precision", "fp32", "--no-cublas")
JOBS = {"an array": ("in.npy", "out.npy"), "an image": ("in.tif", "out.tif")}


def make():
    write("broad.onnx", broad())
    write("in.npy", numbers((1, 1, H, W)))
    subprocess.run([os.path.join(C.build, "tools", "tegula-draw"), "--size", str(SIDE), "in.tif", "clean.tif"],
                   check=True, stdout=subprocess.DEVNULL)


def planned(job, *words):
    """What of the device a plan takes for itself, in all and in its one block; and what its context takes."""
    code, plan, said = C.run(*WORDS, job[0], "-o", "none" + job[1][-4:], *words, verb="plan")
    C.expect(code == 0, f"a plan of {job}: exit {code}: {said}")
    lines = {line["name"]: line["bytes"] for line in plan["lines"] if line["kind"] == "device"}
    own = plan["device_peak_bytes"] - lines["context"]
    return own, own - lines["program"], lines["context"]


def told(name):
    """(bytes that the neighbour left, [(bytes asked for, answer)])."""
    rows = [line.split() for line in content(name).decode().splitlines()]
    left = [int(r[1]) for r in rows if r[0] == "left"]
    return left[0] if left else None, [(int(r[1]), int(r[2])) for r in rows if r[0] == "alloc"]


def squeezed(job, leaves, *words):
    """A run beside the neighbour: as Command.run, and what `told` of it."""
    said = os.path.abspath("said")
    if os.path.exists(said):
        os.unlink(said)
    plugin = EMULATED or os.environ.get("TEGULA_CUDA_PLUGIN") or os.path.join(C.build, "lib", "tegula", "libtegula_cuda.so")
    more = {"TEGULA_NEIGHBOUR_PLUGIN": plugin, "TEGULA_NEIGHBOUR_LEAVES": str(leaves >> 20),
            "TEGULA_NEIGHBOUR_SAYS": said, "TEGULA_CUDA_PLUGIN": NEIGHBOUR}
    return *C.run(*WORDS, job[0], "-o", job[1], *words, more=more), *told(said)


def alone(what):
    """What a job writes that nobody disturbs."""
    _, out = JOBS[what]
    code, _, said = C.run(*WORDS, JOBS[what][0], "-o", out)
    C.expect(code == 0, f"{what}: exit {code}: {said}")
    return content(out)


def ends_as_if_nobody_had_come(what, bytes_alone, *words):
    job = JOBS[what]
    own, block, context = planned(job, *words)
    if os.path.exists(job[1]):
        os.unlink(job[1])
    code, done, said, left, asked = squeezed(job, block * 3 // 4, *words)
    what = f"{what}, {' '.join(words) or 'no budget'}"
    print(f"  {what}: {block} bytes planned, {left} left, asked for {asked}", flush=True)
    C.expect(code == 0 and os.path.exists(job[1]), f"{what}: exit {code}: {said}")
    C.expect(left is not None and left < block and asked[:1] == [(block, OUT_OF_MEMORY)],
             f"{what}: the block of the plan is what the device refused, of {left} bytes left: {asked}")
    C.expect(len(asked) > 1 and asked[-1][1] == 0 and all(n < block for n, _ in asked[1:]),
             f"{what}: less is asked for then, and given: {asked}")
    C.expect("planned again with less than" in said, f"{what}: it says so: {said}")
    if code:
        return
    C.expect(content(job[1]) == bytes_alone, f"{what}: bytes are those of a job that nobody disturbed")
    for figure in ("device_predicted_bytes", "device_measured_bytes"):
        C.expect(context < done[figure] <= context + left < context + own,
                 f"{what}: {figure} {done[figure]} is more than what was left, {left}, and the context, {context}")
    if job[1].endswith(".tif"):
        receipt = json.loads(content(job[1] + ".tegula.json"))
        C.expect(any("planned again" in w for w in receipt["warnings"])
                 and receipt["device_measured_bytes"] == done["device_measured_bytes"], f"{what}: receipt: {receipt}")


def memory_that_a_neighbour_took_is_planned_without():
    """... by a job that takes what is free, and by one that keeps to a budget which its plan fills."""
    for what, job in JOBS.items():
        bytes_alone = alone(what)
        ends_as_if_nobody_had_come(what, bytes_alone)
        own, _, context = planned(job)
        ends_as_if_nobody_had_come(what, bytes_alone, "--vram", f"{(context + own >> 20) + 1}MiB")


def with_nothing_left_it_is_refused():
    """... before anything is written, with the reason; where the processor may compute, it does."""
    job = JOBS["an array"]
    if os.path.exists(job[1]):
        os.unlink(job[1])
    code, _, said, left, asked = squeezed(job, 0)
    C.expect(code == 71 and "planned again" in said, f"nothing is left ({left}, {asked}): exit {code}: {said}")
    C.expect(not os.path.exists(job[1]), "nothing is written")


def main():
    if not C.there():
        return 77
    with own_folder() as folder:
        if EMULATED:
            os.environ.update(TEGULA_NVML=NVML, TEGULA_EMULATED_SHARE=os.path.join(folder, "share"))
        make()
        return C.steps(memory_that_a_neighbour_took_is_planned_without,
                       with_nothing_left_it_is_refused)


if __name__ == "__main__":
    sys.exit(main())
