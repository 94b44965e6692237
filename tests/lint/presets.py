"""Builds that no other test makes can be configured: the presets of the sanitizers.

usage: presets.py CMAKE"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    problems = 0
    if not shutil.which("ninja"):
        print("skipped: the presets are for ninja, which is not there")
        return 77
    for preset in "asan", "tsan":
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.argv[1], "--preset", preset, "-S", ROOT, "-B", folder], cwd=ROOT,
                                  capture_output=True, text=True, check=False)
        if done.returncode:
            problems += 1
            print(f"{preset}:\n{done.stderr[-2000:]}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
