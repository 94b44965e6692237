#!/usr/bin/env python3
"""Builds the fuzz targets with clang and runs them: a planted bug first, then for real.

    fuzz.py --build FOLDER [--seconds N] [--only TARGET,...] [--keep FOLDER]

For each target the fuzzer must find every bug that plant.py put into a copy of the code, within
PLANTED seconds; then it runs N seconds on the code as it is and must find nothing. Prints
executions and seconds of each. --keep: corpora that grow from run to run. Exit 77: no clang."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAX_LEN = {"tiff": 8192, "onnx": 20000, "ome": 8192, "npy": 2048, "json": 4096, "journal": 16384}
PLANTED = 120
LIMITS = ["-rss_limit_mb=1024", "-malloc_limit_mb=256", "-timeout=10", "-print_final_stats=1", "-close_fd_mask=1"]


def build(folder):
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
    names = [f"fuzz_{t}" for t in MAX_LEN] + [f"fuzz_planted_{p}" for p, _ in plants()]
    r = subprocess.run(["cmake", "--build", folder, "--target", *names], capture_output=True, text=True)
    if r.returncode:
        print((r.stdout + r.stderr)[-4000:])
    return r.returncode == 0


def plants():
    r = subprocess.run([sys.executable, "-B", os.path.join(HERE, "plant.py"), "--list"], capture_output=True,
                       text=True, check=True)
    return [tuple(line.split()[:2]) for line in r.stdout.splitlines()]


def fuzz(folder, program, target, seconds, corpus):
    """(exit code, executions, seconds, last lines). What it finds lies in FOLDER/found."""
    bin_dir = os.path.join(folder, "tests", "fuzz")
    found = os.path.join(folder, "found", "")
    os.makedirs(found, exist_ok=True)
    os.makedirs(corpus, exist_ok=True)
    args = [os.path.join(bin_dir, program), f"-max_total_time={seconds}", f"-max_len={MAX_LEN[target]}",
            f"-artifact_prefix={found}{program}-", f"-dict={bin_dir}/seeds/{target}.dict", *LIMITS, corpus,
            f"{bin_dir}/seeds/{target}"]
    cases = os.path.join(HERE, "cases", target)
    if os.path.isdir(cases):
        args.append(cases)
    # Freed megabytes are recycled at once: three times the executions where readers have windows.
    env = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=4:allocator_release_to_os_interval_ms=-1"}
    start = time.monotonic()
    r = subprocess.run(args, capture_output=True, text=True, errors="replace", env=env)
    text = r.stderr
    m = re.search(r"number_of_executed_units: (\d+)", text)
    n = int(m.group(1)) if m else max([int(x) for x in re.findall(r"^#(\d+)", text, re.M)] or [0])
    return r.returncode, n, time.monotonic() - start, text[-3000:]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--only", default=",".join(MAX_LEN))
    p.add_argument("--keep")
    a = p.parse_args()
    if not build(a.build):
        return 1
    failed = 0
    only = a.only.split(",")
    corpora = a.keep or os.path.join(a.build, "corpora")
    for name, target in plants():
        if target not in only:
            continue
        code, n, s, _ = fuzz(a.build, f"fuzz_planted_{name}", target, PLANTED,
                             os.path.join(a.build, "planted", name))
        print(f"planted {name}: {'found' if code else 'NOT FOUND'} after {n} executions, {s:.1f} s", flush=True)
        failed += not code
    for target in only:
        code, n, s, text = fuzz(a.build, f"fuzz_{target}", target, a.seconds, os.path.join(corpora, target))
        print(f"fuzz_{target}: {n} executions, {s:.0f} s, {'nothing found' if not code else 'FAILED'}", flush=True)
        if code:
            print(text)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
