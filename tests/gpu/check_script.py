"""scripts/gpu-check, told of a device that is emulated: rows of what passed, failed and was skipped,
and the exit code that says so.

usage: check_script.py gpu-check BUILD EMULATED_PLUGIN
"""
import json
import os
import subprocess
import sys
import tempfile

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


def main():
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
