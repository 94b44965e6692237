"""What the tests of films by the command share.

    TEST.py TEGULA SOURCE VIDEOS ..."""
import os
import subprocess
import sys

TEGULA, SOURCE, FOLDER = (os.path.abspath(a) for a in sys.argv[1:4])
sys.path.insert(0, os.path.join(SOURCE, "tests", "gallery"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "fuzz"))
WRONG = []
SANITIZED = any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS"))  # its runtime's memory is another


def expect(good, text):
    if not good:
        WRONG.append(text)
        print("WRONG:", text, flush=True)


def run(*words, **more):
    r = subprocess.run([TEGULA, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False,
                       env={**os.environ, **more})
    return r.returncode, r.stdout, r.stderr


def sample(name):
    return os.path.join(FOLDER, name)
