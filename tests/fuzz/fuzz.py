#!/usr/bin/env python3
"""Builds the fuzz targets with clang and runs them: a planted bug first, then for real.

    fuzz.py --build FOLDER [--seconds N [--processor]] [--only TARGET,...] [--keep FOLDER] [--shared FOLDER]

For each target the fuzzer must find every bug that plant.py put into a copy of the code, within
PLANTED processor seconds; then it runs N seconds on the code as it is and must find nothing. Prints
executions and processor seconds of each. --processor: N are processor seconds, for campaigns on a
machine that does other work too. --keep: corpora that grow from run to run. --shared: the
sample data, whose small ONNX models are read in place as further seeds. Exit 77: no clang."""
import argparse
import os
import re
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAX_LEN = {"tiff": 8192, "png": 8192, "jpeg": 8192, "codec": 8192, "set": 4096, "ome": 8192, "onnx": 20000,
           "npy": 2048, "json": 4096, "config": 4096, "journal": 16384, "memlog": 4096, "video": 2048, "film": 16384, "weights": 4096, "yaml": 4096}
PLANTED = 120
LIMITS = ["-rss_limit_mb=1024", "-timeout=10", "-print_final_stats=1", "-close_fd_mask=1"]
MALLOC = {"film": 2048}  # MiB of a block; libav asks for what a header names, up to 2 GiB, before it reads, and gives it back


def build(folder, targets):
    cc = shutil.which("clang")
    if not cc or not shutil.which("cmake"):
        sys.exit(77)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    r = subprocess.run(["cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        f"-DCMAKE_C_COMPILER={cc}", "-DTG_FUZZ=ON", "-DTG_SANITIZE=address,undefined",
                        "-DTG_BENCH=OFF"], capture_output=True, text=True)
    if r.returncode:
        print(r.stdout + r.stderr)
        return False
    names = [f"fuzz_{t}" for t in targets] + [f"fuzz_planted_{p}" for p, t in plants() if t in targets]
    r = subprocess.run(["cmake", "--build", folder, "--target", *names], capture_output=True, text=True)
    if r.returncode:
        print((r.stdout + r.stderr)[-4000:])
    return r.returncode == 0


def plants():
    r = subprocess.run([sys.executable, "-B", os.path.join(HERE, "plant.py"), "--list"], capture_output=True,
                       text=True, check=True)
    return [tuple(line.split()[:2]) for line in r.stdout.splitlines()]


def models(folder, shared):
    """A folder of links to the models that are small enough, or None."""
    links = os.path.join(folder, "models")
    found = [os.path.join(at, n) for at, _, names in os.walk(shared or "") for n in names
             if n.endswith(".onnx") and os.path.getsize(os.path.join(at, n)) <= MAX_LEN["onnx"]]
    shutil.rmtree(links, ignore_errors=True)
    os.makedirs(links)
    for i, path in enumerate(sorted(found)):
        os.symlink(os.path.abspath(path), os.path.join(links, str(i)))
    return links if found else None


def processor_seconds():
    """Of all children so far, the system's work for them included: targets that open files are half of it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fuzz(folder, program, target, seconds, corpus, more=None):
    """(exit code, executions, processor seconds, last lines). What it finds lies in FOLDER/found."""
    bin_dir = os.path.join(folder, "tests", "fuzz")
    found = os.path.join(folder, "found", "")
    os.makedirs(found, exist_ok=True)
    os.makedirs(corpus, exist_ok=True)
    args = [os.path.join(bin_dir, program), f"-max_total_time={seconds}", f"-max_len={MAX_LEN[target]}",
            f"-malloc_limit_mb={MALLOC.get(target, 256)}",
            f"-artifact_prefix={found}{program}-", f"-dict={bin_dir}/seeds/{target}.dict", *LIMITS, corpus,
            f"{bin_dir}/seeds/{target}"]
    cases = os.path.join(HERE, "cases", target)
    args += [f for f in (cases, more) if f and os.path.isdir(f)]
    # Freed megabytes are recycled at once: three times the executions where readers have windows.
    env = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=4:allocator_release_to_os_interval_ms=-1"}
    start = processor_seconds()
    r = subprocess.run(args, capture_output=True, text=True, errors="replace", env=env)
    text = r.stderr
    m = re.search(r"number_of_executed_units: (\d+)", text)
    n = int(m.group(1)) if m else max([int(x) for x in re.findall(r"^#(\d+)", text, re.M)] or [0])
    return r.returncode, n, processor_seconds() - start, text[-3000:]


def campaign(folder, program, target, limit, corpus, more=None):
    """fuzz() again and again, from the grown corpus, until the processor seconds are spent."""
    total, used = 0, 0.0
    while True:
        code, n, s, text = fuzz(folder, program, target, max(1, round(limit - used)), corpus, more)
        total, used = total + n, used + s
        if code or used >= limit:
            return code, total, used, text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--processor", action="store_true")
    p.add_argument("--only", default=",".join(MAX_LEN))
    p.add_argument("--keep")
    p.add_argument("--shared")
    a = p.parse_args()
    only = a.only.split(",")
    if not build(a.build, only):
        return 1
    failed = 0
    links = models(a.build, a.shared)
    corpora = a.keep or os.path.join(a.build, "corpora")
    for name, target in plants():
        if target not in only:
            continue
        code, n, s, _ = campaign(a.build, f"fuzz_planted_{name}", target, PLANTED,
                                 os.path.join(a.build, "planted", name))
        print(f"planted {name}: {'found' if code else 'NOT FOUND'} after {n} executions, {s:.1f} s", flush=True)
        failed += not code
    for target in only:
        code, n, s, text = (campaign if a.processor else fuzz)(
            a.build, f"fuzz_{target}", target, a.seconds, os.path.join(corpora, target), links if target == "onnx" else None)
        print(f"fuzz_{target}: {n} executions, {s:.0f} s, {'nothing found' if not code else 'FAILED'}", flush=True)
        if code:
            print(text)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
