"""What tests of the real command share: they run it in a folder of their own and count what is wrong.

Imported with the arguments TEGULA SOURCE: TEGULA and ROOT are absolute paths from then on, and the makers of
pictures and networks (tests/gallery, tests/fuzz) can be imported."""
import os
import subprocess
import sys
import tempfile
import time

TEGULA, ROOT = (os.path.abspath(p) for p in sys.argv[1:3])
sys.path.insert(0, os.path.join(ROOT, "tests", "gallery"))
failed = 0


def expect(good, what):
    global failed
    if not good:
        failed += 1
        print("FAILED:", what, flush=True)


def tegula_run(*words, code=0):
    """The finished process, which must have ended in `code`; None: in any."""
    r = subprocess.run([TEGULA, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100)
    expect(code is None or r.returncode == code, f"{words}: exit {r.returncode}: {r.stderr}")
    return r


def main(prepare, checks):
    """Prepares the folder, runs the checks in it, and ends the program: 1 when anything is wrong."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        os.chdir(folder)
        os.environ["TEGULA_CACHE"] = folder  # no lessons of others
        prepare()
        for check in checks:
            t0 = time.time()
            check()
            print(f"{check.__name__}: {time.time() - t0:.1f} s", flush=True)
        os.chdir(ROOT)
    sys.exit(1 if failed else 0)
