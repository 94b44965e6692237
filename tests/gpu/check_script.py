"""scripts/gpu-check, told of a device that is emulated: rows of what passed, failed and was skipped,
and the exit code that says so. Its benchmarks, with programs that print rows at once, and its sanitizer, with one that
starts them; what runs past its time; a budget that ends in the middle, and what goes on behind it, of the same sources
alone; that it runs every test of the label, and that they see the machine's device at all.

usage: check_script.py gpu-check BUILD EMULATED_PLUGIN [--budget SECONDS]

With --budget all that it does on a machine with a GPU, of that device and what is built, within those seconds: it ends
in time with all that it had started, and has a row for everything.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
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
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--no-build", "--quick", "--build", BUILD, "--only",
                           "^gpu_device$", "--out", out, "--commit", "0123abc"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "TEGULA_TEST_PLUGIN": plugin, "TEGULA_EMULATED": emulated})
    with open(out, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return done.returncode, {(r["record"], r.get("name")): r for r in rows}


NET = '{"family": "gpu_nets", "items": 1, "kernel_mps": {"median": 8.0}, "run_mps": {"median": 4.0}}'
DONE = ('{"bands_seconds": 2.0, "device_upload_seconds": 0.5, "device_kernel_seconds": 1.5, '
        '"device_download_seconds": 1.0, "megapixels_per_second": 3.0, "seconds": 2.5, "event": "done", '
        '"device_measured_bytes": 7, "device_predicted_bytes": 8}')
PROGRAMS = {"bench/gpu_peak": """echo '{"family": "gpu_peak", "copy_gbs": 5.0, "copy_gbs_sustained": 4.0}'""",
            "bench/bench_gpu": """echo '{"family": "gpu_ops", "told": "'"$*"'"}'""",
            "bench/bench_gpu_net": f"echo '{NET}'", "tools/tegula-draw": "exit 0",
            "tools/tegula-draw-weights": "exit 0", "cli/tegula": f"echo '{DONE}'"}


def benchmarks(folder, *words):
    """Rows of the benchmarks, of a build that has PROGRAMS, and of a collection of one network."""
    build, out = os.path.join(folder, "build"), os.path.join(folder, "bench.jsonl")
    model = os.path.join(folder, "shared", "data", "models", "kair_dncnn25", "model.onnx")
    for path, text in [(os.path.join(build, p), f"#!/bin/sh\n{t}\n") for p, t in PROGRAMS.items()] + [
            (model, ""), (os.path.join(folder, "shared", "conformance", "propainter", "weights.csv"), ""),
            (os.path.join(folder, "torch.py"), "raise ImportError('not in this test')\n")]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--no-build", "--only", "^bench ", "--build", build, "--out", out, "--data",
                           os.path.join(folder, "shared"), *words], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": folder})
    with open(out, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    expect(f"benchmarks {words}: exit", done.returncode, 0)
    names = [r["name"] for r in rows if "status" in r]
    return names, [r for r in rows if r["record"] == "bench" and "family" in r]


def every_benchmark_runs(folder):
    names, rows = benchmarks(folder)
    expect("benchmarks", names, ["one_convolution", "gpu_peak", "bench_gpu", "gpu_nets", "gpu_tiled", "gpu_film"])
    films = [(r["size"], r["precision"], r["frames"], r["fps"], r["device_bytes"], r["planned_bytes"]) for r in rows if r["family"] == "gpu_film"]
    expect("films", films, [(s, p, 24, 9.6, 7, 8) for s in ("432x240", "1280x720") for p in ("fp16", "fp32")] + [("432x240", "fp32", 6, 2.4, 7, 8)])
    expect("beside the processor", [r["ratio"] for r in rows if r["family"] == "gpu_film_against" and r["peer"] == "processor"], [{"fp16": 4.0, "fp32": 4.0}])
    expect("ceilings are handed on", [r["told"] for r in rows if r["family"] == "gpu_ops"][1:], ["--copy 5.0 --copy-sustained 4.0"])
    tiled = [(r["vram"], r["of_untiled"], r["bands_of_untiled"], r["bands_mps"], r["busy"], r["overlap"]) for r in rows if r["family"] == "gpu_tiled"]
    expect("the large image", tiled, [(v, 0.75, 0.9375, 3.75, 0.75, 1.5) for v in (None, "8GiB", "4GiB", "2GiB")])
    nets = [r["model"] for r in rows if r["family"] == "gpu_nets"]
    expect("networks", nets, ["tegula_denoise"] * 2 + ["kair_dncnn25"] * 2 + ["tegula_denoise"])
    expect("some benchmarks", benchmarks(folder, "--only", "peak")[0], ["gpu_peak"])


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


def told(script, order, *words):
    """(exit code, rows) of the script with another order."""
    script.ORDER, script.LEAST, script.PATIENCE = order, 0.3, 1
    before, sys.argv = sys.argv, ["gpu-check", *words]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            code = script.main()
    finally:
        sys.argv = before
    out = words[words.index("--out") + 1]
    with open(out if out.endswith(".jsonl") else os.path.join(out, "rows.jsonl"), encoding="utf-8") as f:
        return code, [json.loads(line) for line in f]


def nothing_is_broken_on_purpose_under_the_sanitizer(folder):
    tool, build, out = (os.path.join(folder, n) for n in ("compute-sanitizer", "build", "rows.jsonl"))
    executable(tool, 'while [ "${1#*/tests/gpu/}" = "$1" ]; do shift; done; exec "$@"')
    for name in ("gpu_device", "gpu_pixels"):  # errors, but for what it is told
        executable(os.path.join(build, "tests", "gpu", name),
                   f'[ {name} = gpu_pixels ] || [ "$*" = --watched ] || exit 99')
    script = as_module()
    order = [o for o in script.ORDER if o[0] == "sanitizer" and ("device" in o[1] or "pixels" in o[1] or "flat" in o[1])]
    script.find_sanitizer = lambda: tool
    code, rows = told(script, order, "--no-build", "--build", build, "--out", out)
    expect("sanitizer", sorted((r["name"], r["status"]) for r in rows[1:-1]),
           sorted((f"{check} {name}", "skipped" if "flat" in name else "passed") for check in ("memcheck", "racecheck")
                  for name in ("gpu_device --watched", "gpu_pixels", "gpu_kernels_flat")))
    expect("sanitizer: exit", code, 0)
    script.find_sanitizer = lambda: None
    rows = told(script, order, "--no-build", "--build", build, "--out", out)[1]
    expect("no sanitizer", {(r["status"], r["output"]) for r in rows[1:-1]}, {("skipped", "compute-sanitizer is not there")})


def a_budget_is_kept_and_gone_on_with(folder):
    """Programs that take a second each, and one that takes ten."""
    build, out = os.path.join(folder, "build"), os.path.join(folder, "out")
    for name in ("a", "b", "c", "d"):
        executable(os.path.join(build, name), f"sleep {10 if name == 'c' else 1}; echo '{{\"family\": \"{name}\"}}'")
    script = as_module()
    script.bench_command = lambda a, name, seconds, results: [os.path.join(a.build, name)]
    order = tuple(("bench", name, 20) for name in "abcd")
    words = ("--no-build", "--build", build, "--out", out, "--commit", "0123abc")
    begin = time.monotonic()
    code, rows = told(script, order, *words, "--budget", "4.5")
    took = time.monotonic() - begin
    expect("a budget: kept", took < 4.5 + 1.5, True)
    expect("a budget: exit", code, 75)
    expect("a budget: the end", {k: v for k, v in rows[-1].items() if k != "seconds"},
           {"record": "end", "budget": 4.5, "passed": 2, "bad": 0, "skipped": 0, "left": 2})
    expect("a budget: rows", [(r["name"], r["status"]) for r in rows if "status" in r],
           [("a", "passed"), ("b", "passed"), ("c", "cut"), ("d", "left")])
    expect("a budget: what was measured", [r["family"] for r in rows if "family" in r], ["a", "b"])
    expect("a budget: outputs", sorted(os.listdir(out)), ["bench-a.txt", "bench-b.txt", "rows.jsonl"])
    executable(os.path.join(build, "c"), "exit 1")
    code, rows = told(script, order, *words, "--continue")
    expect("gone on with: exit", code, 1)
    expect("gone on with: rows", [(r["name"], r["status"]) for r in rows if "status" in r][4:],
           [("c", "failed"), ("d", "passed")])
    expect("nothing is left: exit", told(script, order, *words, "--continue")[0], 0)
    code, rows = told(script, order[:2], *words[:-1], "4567def", "--continue")
    expect("of another commit: all of it", [r["name"] for r in rows if r.get("status") == "passed"][-2:], ["a", "b"])


def a_build_that_is_cut_leaves_the_rest(folder):
    script = as_module()
    script.build = lambda a, name, seconds, timeout: (timeout, script.run(["sleep", "60"], seconds, a.until)[1], {})
    begin = time.monotonic()
    code, rows = told(script, (("build", "build", 60), ("bench", "a", 20), ("test", "b", 20)), "--out", folder, "--budget", "2")
    expect("a build that is cut: kept", time.monotonic() - begin < 2.5, True)
    expect("a build that is cut: exit", code, 75)
    expect("a build that is cut: rows", [(r["name"], r["status"]) for r in rows if "status" in r],
           [("build", "cut"), ("a", "left"), ("b", "left")])


def rows_of_other_sources_do_not_count(folder):
    """Where nothing names a commit, all of them are "unknown"."""
    build, out = os.path.join(folder, "build"), os.path.join(folder, "out")
    executable(os.path.join(build, "a"), "echo '{}'")
    executable(os.path.join(folder, "engine", "a.c"), "1")
    script = as_module()
    script.TOP = folder
    script.bench_command = lambda a, name, seconds, results: [os.path.join(a.build, name)]
    for what, more, want in (("first", (), 1), ("of the same", ("--continue",), 1), ("of others", ("--continue",), 2),
                             ("of these", ("--continue",), 2)):
        if what == "of others":
            executable(os.path.join(folder, "engine", "a.c"), "2")
        rows = told(script, (("bench", "a", 20),), "--no-build", "--build", build, "--out", out, *more)[1]
        expect(f"sources, {what}: commit", {r["commit"] for r in rows if r["record"] == "gpu-check"}, {"unknown"})
        expect(f"sources, {what}: done", len([r for r in rows if r.get("status") == "passed"]), want)


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
    tests = [t for t in json.loads(done.stdout)["tests"] if t["name"].startswith("gpu_")]  # without what they need before
    expect("tests that are run", sorted(n for r, n, _ in as_module().ORDER if r == "test"), sorted(t["name"] for t in tests))
    sees = [t["name"] for t in tests for p in t["properties"]
            if p["name"] == "ENVIRONMENT_MODIFICATION" and "TEGULA_CUDA_PLUGIN=unset:" in p["value"]]
    expect("tests that see the device", sees, [t["name"] for t in tests])
    expect("tests of jobs", {"gpu_run", "gpu_arrays", "gpu_goldens", "gpu_library"} <= set(sees), True)


def marked(word):
    """Processes whose environment has this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if word.encode() in f.read() and not is_dead(pid):
                    found.append(pid)
        except OSError:
            pass
    return found


def all_of_it_within(seconds, folder):
    mark = f"TEGULA_CHECK_MARK={os.getpid()}-{time.monotonic_ns()}"
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-B", SCRIPT, "--no-build", "--build", BUILD, "--budget", str(seconds), "--out", folder,
                           "--commit", "0123abc"], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={**os.environ, "TEGULA_TEST_PLUGIN": PLUGIN, **dict([mark.split("=")])})
    took = time.monotonic() - begin
    print(done.stdout)
    with open(os.path.join(folder, "rows.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    expect(f"{seconds} seconds: kept, took {took:.1f}", took <= seconds, True)
    expect("exit", done.returncode, 75 if any(r.get("status") in ("cut", "left") for r in rows) else 0)
    expect("rows", [(r["record"], r["name"]) for r in rows if "status" in r],
           [(r, n) for r, n, _ in as_module().ORDER if r != "build"])
    expect("the device's own test", [r["status"] for r in rows if r.get("name") == "gpu_device"], ["passed"])
    expect("what goes on running", marked(mark), [])


def is_dead(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def ended():
    for p in problems:
        print(p)
    return 1 if problems else 0


def main():
    if sys.argv[4:5] == ["--budget"]:
        with tempfile.TemporaryDirectory() as folder:
            all_of_it_within(int(sys.argv[5]), folder)
        return ended()
    with tempfile.TemporaryDirectory() as folder:
        every_benchmark_runs(folder)
    with tempfile.TemporaryDirectory() as folder:
        nothing_is_broken_on_purpose_under_the_sanitizer(folder)
    with tempfile.TemporaryDirectory() as folder:
        a_budget_is_kept_and_gone_on_with(folder)
    with tempfile.TemporaryDirectory() as folder:
        a_build_that_is_cut_leaves_the_rest(folder)
    with tempfile.TemporaryDirectory() as folder:
        rows_of_other_sources_do_not_count(folder)
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
    return ended()


if __name__ == "__main__":
    sys.exit(main())
