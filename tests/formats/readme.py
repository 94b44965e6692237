#!/usr/bin/env python3
"""README.md is true: each command that it shows under "What it does" runs, in its order, in a folder
that has the files it speaks of; the plan it shows has the lines that a plan has, with numbers of that form;
each file that it points to is there.

    readme.py TEGULA"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
for part in ("fuzz", "memory"):
    sys.path.insert(0, os.path.join(HERE, "..", part))
from seeds import Tiff, page  # noqa: E402
from tiffmade import Made  # noqa: E402

MAY_REFUSE = {"mem": (0, 71)}  # a machine may have less than the example asks for


def image(path, w, h):
    t = Tiff()
    page(t, w, h, rows=64, bits=16)
    with open(path, "wb") as f:
        f.write(t.out)


def shape_of(lines):
    """Names of the lines and the form of their numbers, which depend on machine and disk."""
    return [re.sub(r"\d+", "0", re.sub(r" *\d+\.\d\d [KMG]iB", " SIZE", line[:33])) for line in lines]


def plan_differs(tegula, text, folder):
    """The plan of the demo's image, of which only the header is there, against the one that is shown."""
    shown = text.split("    memory\n", 1)[1].split("\n\n", 1)[0].splitlines()
    shown = ["memory"] + [line[4:] for line in shown]
    noisy = Made(os.path.join(folder, "noisy.tif"), 8192, 8192, 1, 2)
    model = os.path.join(ROOT, "models", "tegula_denoise.onnx")
    r = subprocess.run([tegula, "plan", "-m", model, noisy.path, "-o", os.path.join(folder, "o.tif"), "--ram", "96MiB"],
                       capture_output=True, text=True)
    now = r.stdout.splitlines()[:len(shown)]
    return ["README.md shows\n  %s\nand a plan says\n  %s" % (a, b)
            for a, b in zip(shape_of(shown), shape_of(now + [""] * len(shown))) if a != b][:1]


def main():
    tegula = os.path.abspath(sys.argv[1])
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    failed = 0
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not os.path.exists(os.path.join(ROOT, link)):
            print("README.md points to %s, which is not there" % link)
            failed += 1
    part = text.split("## What it does", 1)[1].split("\n## ", 1)[0]
    commands = re.findall(r"^    tegula (.+)$", part, re.M)
    with tempfile.TemporaryDirectory(prefix="tegula-readme-") as folder:
        image(os.path.join(folder, "big.tif"), 700, 600)
        image(os.path.join(folder, "small.tif"), 120, 100)
        shutil.copy(os.path.join(ROOT, "models", "tegula_denoise.onnx"), os.path.join(folder, "model.onnx"))
        for line in plan_differs(tegula, text, folder):
            print(line)
            failed += 1
        for command in commands:
            words = shlex.split(command)
            r = subprocess.run([tegula, *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if r.returncode not in MAY_REFUSE.get(words[0], (0,)):
                print("tegula %s: exit %d: %s" % (command, r.returncode, r.stderr))
                failed += 1
    if len(commands) < 5:
        print("README.md shows %d commands" % len(commands))
        failed += 1
    print("%d commands, %d failures" % (len(commands), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
