"""What plans ask of an instruction set that runs elsewhere uses none of its registers.

usage: baseline.py OBJECT...        objects of a set's plan flavour (kernels/cpu/simd.h)

On a processor without the set such an instruction ends the program; on one with it no test would see it."""
import re
import shutil
import subprocess
import sys

import tree

WIDE = re.compile(r"%[yz]mm\d+|%k[0-7]\b|\bv[a-z0-9]+\s+.*%xmm")


def main():
    objdump = shutil.which("objdump")
    if not objdump:
        print("baseline: no objdump")
        return 77
    found, lines = [], 0
    for path in ";".join(sys.argv[1:]).split(";"):
        text = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], text=True, capture_output=True, check=True).stdout
        lines += text.count("\n")
        wide = WIDE.search(text)
        if wide:
            found.append(f"{path}: {wide[0]}")
    if lines == 0:
        found.append("no instructions at all")
    return tree.finish("baseline", found, lines)


if __name__ == "__main__":
    sys.exit(main())
