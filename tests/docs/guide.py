#!/usr/bin/env python3
"""The rows of docs/inpaint.md: each has a command of ours and names a test that there is, and of that a function that it calls.

    guide.py SOURCE CTEST BUILD

CTEST lists the tests of the folder BUILD."""
import os
import re
import subprocess
import sys

SOURCE = sys.argv[1]
ROWS = 20  # that the guide has, at least


def rows():
    """(row, the words of its last column) of the first table."""
    with open(os.path.join(SOURCE, "docs", "inpaint.md"), encoding="utf-8") as f:
        page = f.read()
    table = page[page.index("## The rows"):page.index("## What it takes")]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")][2:]
    return [(c[0], c[2], re.findall(r"`([^`]+)`", c[3])) for c in cells]


def functions_of(name):
    """Names that are called at the end of the script behind a test."""
    for folder, _, files in os.walk(os.path.join(SOURCE, "tests")):
        if name + ".py" in files:
            with open(os.path.join(folder, name + ".py"), encoding="utf-8") as f:
                text = f.read()
            return {d for d in re.findall(r"^def (\w+)\(", text, re.M) if len(re.findall(rf"\b{d}\b", text)) > 1}
    return set()


def main():
    listed = subprocess.run([sys.argv[2], "--test-dir", sys.argv[3], "-N"], capture_output=True, text=True, check=True).stdout
    tests = set(re.findall(r"Test +#\d+: (\S+)", listed))
    wrong, all_rows = [], rows()
    for row, command, named in all_rows:
        if not named or not re.search(r"`[^`]*(tegula|--|…)", command):
            wrong.append(f"{row}: no command, or no test")
        for test in named:
            name, _, function = (p.strip() for p in test.partition(":"))
            if name not in tests:
                wrong.append(f"{row}: there is no test {name}")
            elif function and function not in functions_of(name):
                wrong.append(f"{row}: {name} has no {function}")
    if len(all_rows) < ROWS:
        wrong.append(f"{len(all_rows)} rows")
    print("\n".join(wrong) or f"{len(all_rows)} rows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
