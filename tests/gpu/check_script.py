"""scripts/gpu-check, told of a device that is emulated: rows of what passed, failed and was skipped,
and the exit code that says so. Its benchmarks, with programs that print rows at once, and its sanitizer, with one that
starts them; what runs past its time; that tests of the label see the machine's device at all.

usage: check_script.py gpu-check BUILD EMULATED_PLUGIN
"""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

SCRIPT, BUILD, PLUGIN = sys.argv[1:4]
problems = []


def expect(what, got, want):
    if got != want:
        problems.append(f"{what}: {got!r}, expected {want!r}")


def check(plugin, emulated, folder):
    """(exit code, rows by record and name)."""
    out = os.path.join(folder, "rows.jsonl")
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--no-build", "--quick", "--build", BUILD, "--tests",
                           "^gpu_device$", "--out", out, "--commit", "0123abc"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "TEGULA_TEST_PLUGIN": plugin, "TEGULA_EMULATED": emulated})
    with open(out, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return done.returncode, {(r["record"], r.get("name")): r for r in rows}


NET = '{"family": "gpu_nets", "mps": {"median": 4.0}}'
DONE = ('{"bands_seconds": 2.0, "device_upload_seconds": 0.5, "device_kernel_seconds": 1.5, '
        '"device_download_seconds": 1.0, "megapixels_per_second": 3.0, "seconds": 2.5}')
PROGRAMS = {"bench/gpu_peak": """echo '{"family": "gpu_peak", "copy_gbs": 5.0}'""",
            "bench/bench_gpu": """echo '{"family": "gpu_ops", "told": "'"$*"'"}'""",
            "bench/bench_gpu_net": f"echo '{NET}'", "tools/tegula-draw": "exit 0", "cli/tegula": f"echo '{DONE}'"}


def benchmarks(folder, *words):
    """Rows of the benchmarks, of a build that has PROGRAMS, and of a collection of one network."""
    build, out = os.path.join(folder, "build"), os.path.join(folder, "bench.jsonl")
    model = os.path.join(folder, "shared", "data", "models", "kair_dncnn25", "model.onnx")
    for path, text in [(os.path.join(build, p), f"#!/bin/sh\n{t}\n") for p, t in PROGRAMS.items()] + [
            (model, ""), (os.path.join(folder, "torch.py"), "raise ImportError('not in this test')\n")]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--steps", "bench", "--build", build, "--out", out, "--data",
                           os.path.join(folder, "shared"), *words], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": folder})
    with open(out, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    expect(f"benchmarks {words}: exit", done.returncode, 0)
    names = [r["name"] for r in rows if "status" in r]
    return names, [r for r in rows if r["record"] == "bench" and "family" in r]


def every_benchmark_runs(folder):
    names, rows = benchmarks(folder)
    expect("benchmarks", names, ["gpu_peak", "bench_gpu", "gpu_tiled", "gpu_nets"])
    expect("ceilings are handed on", [r["told"] for r in rows if r["family"] == "gpu_ops"], ["--copy 5.0"])
    tiled = [(r["vram"], r["of_untiled"], r["bands_of_untiled"], r["bands_mps"], r["busy"], r["overlap"]) for r in rows if r["family"] == "gpu_tiled"]
    expect("the large image", tiled, [(v, 0.75, 0.9375, 3.75, 0.75, 1.5) for v in (None, "8GiB", "4GiB", "2GiB")])
    nets = [r["model"] for r in rows if r["family"] == "gpu_nets"]
    expect("networks", nets, ["tegula_denoise"] * 5 + ["kair_dncnn25"] * 4)
    expect("some benchmarks", benchmarks(folder, "--benches", "peak")[0], ["gpu_peak"])


def as_module():
    loader = importlib.machinery.SourceFileLoader("gpu_check", SCRIPT)
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(script)
    return script


def executable(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)


def sanitized(folder, tool):
    """Rows of a sanitizer that starts what it is given, and how the summary counts them."""
    script, out = as_module(), os.path.join(folder, "rows.jsonl")
    script.sanitizer = lambda: tool
    a = argparse.Namespace(build=os.path.join(folder, "build"), tests=".", sanitizer_seconds=20)
    results = script.Results(out, False)
    script.sanitize(a, results)
    with open(out, encoding="utf-8") as f:
        return results, [json.loads(line) for line in f]


def nothing_is_broken_on_purpose_under_the_sanitizer(folder):
    tool = os.path.join(folder, "compute-sanitizer")
    executable(tool, 'while [ "${1#*/tests/gpu/}" = "$1" ]; do shift; done; exec "$@"')
    for name in ("gpu_device", "gpu_pixels"):  # errors, but for what it is told
        executable(os.path.join(folder, "build", "tests", "gpu", name),
                   f'[ {name} = gpu_pixels ] || [ "$*" = --watched ] || exit 99')
    results, rows = sanitized(folder, tool)
    expect("sanitizer", sorted((r["name"], r["status"]) for r in rows),
           [(f"{check} {name}", "passed") for check in ("memcheck", "racecheck") for name in ("gpu_device", "gpu_pixels")])
    results, rows = sanitized(folder, None)
    expect("no sanitizer", [(r["name"], r["status"], results.skipped) for r in rows], [("compute-sanitizer", "skipped", 1)])
    expect("no sanitizer: the summary", ["compute-sanitizer is not there" in line for line in results.missing], [True])


def what_runs_past_its_time_is_ended_whole():
    script = as_module()
    script.PATIENCE = 1
    # A child that does not listen, and does not hold the output either.
    code, said = script.run(["sh", "-c", "(trap '' TERM; exec >/dev/null 2>&1; sleep 60; sleep 60) & echo $!; wait"], 1)
    expect("past its time: exit", code, 124)
    expect("past its time: what it had said", said.strip().isdigit(), True)
    gone = not os.path.exists(f"/proc/{said.strip()}")
    for _ in range(20):  # whoever adopts it takes a moment
        gone = gone or is_dead(said.strip())
        time.sleep(0 if gone else 0.1)
    expect("past its time: children are gone", gone, True)


def every_test_sees_the_machines_device():
    """Tests of other labels do not (tests/CMakeLists.txt): those of this one would be skipped like them."""
    done = subprocess.run(["ctest", "--test-dir", BUILD, "-L", "^gpu$", "--show-only=json-v1"], check=True,
                          capture_output=True, text=True)
    tests = json.loads(done.stdout)["tests"]
    sees = [t["name"] for t in tests for p in t["properties"]
            if p["name"] == "ENVIRONMENT_MODIFICATION" and "TEGULA_CUDA_PLUGIN=unset:" in p["value"]]
    expect("tests that see the device", sees, [t["name"] for t in tests])
    expect("tests of jobs", {"gpu_run", "gpu_arrays", "gpu_goldens", "gpu_library"} <= set(sees), True)


def is_dead(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def main():
    with tempfile.TemporaryDirectory() as folder:
        every_benchmark_runs(folder)
    with tempfile.TemporaryDirectory() as folder:
        nothing_is_broken_on_purpose_under_the_sanitizer(folder)
    what_runs_past_its_time_is_ended_whole()
    every_test_sees_the_machines_device()
    with tempfile.TemporaryDirectory() as folder:
        code, rows = check(PLUGIN, "mib=256", folder)
        expect("a device: exit", code, 0)
        expect("a device: status", rows["test", "gpu_device"]["status"], "passed")
        expect("a device: commit", rows["gpu-check", None]["commit"], "0123abc")
        code, rows = check(PLUGIN, "mib=256,launch=5", folder)
        expect("a launch that fails: exit", code, 1)
        expect("a launch that fails: status", rows["test", "gpu_device"]["status"], "failed")
        expect("a launch that fails: why", "illegal memory access" in rows["test", "gpu_device"]["output"], True)
        code, rows = check("none", "", folder)
        expect("no device: exit", code, 77)
        expect("no device: status", rows["test", "gpu_device"]["status"], "skipped")
    for p in problems:
        print(p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
