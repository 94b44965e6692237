"""Each header compiles alone; the public ones also as C99 and C++17, with all warnings.

usage: headers.py CC CXX-or-empty [include flags of the codecs...]
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree

# Lists that are included several times with a macro defined by the includer.
LISTS = {"kernels/op_list.h": ["-DTG_OP(s)=struct s;"]}
SKIPPED_FOLDERS = ("kernels/cuda/",)
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def is_list(path):
    """A header without a guard is a list or a template: the includer gives it meaning."""
    return "#ifndef" not in tree.text(path).split("#include")[0] and "TG_OP" not in path


def compile_alone(compiler, language, standard, header, more):
    # Through a file of one line, not as the main file: "#pragma once" and guards behave.
    source = f'#include "{header}"\ntypedef int tg_not_empty;\n'
    command = [compiler, "-x", language, f"-std={standard}", "-fsyntax-only", "-D_GNU_SOURCE",
               "-I.", "-Iinclude", *WARNINGS, *more, "-"]
    done = subprocess.run(command, input=source, text=True, cwd=tree.ROOT,
                          capture_output=True, check=False)
    return None if done.returncode == 0 else f"{header} as {standard}:\n{done.stderr.strip()}"


def jobs(cc, cxx, flags):
    for path in tree.files((".h",)):
        if path.startswith(SKIPPED_FOLDERS) or (path not in LISTS and is_list(path)):
            continue
        # Static helpers of test headers may stay unused in a file that uses none.
        more = ["-Wno-unused-function"] if path.startswith("tests/") else []
        more = more + LISTS.get(path, [])
        if path.startswith("tests/cuda/") and "emulated" in path:  # CUDA's language, played by C++
            if cxx:
                yield cxx, "c++", "gnu++17", path, more + ["-DTG_CUDA_EMULATED", "-Wno-pedantic"]
            continue
        if path.startswith("kernels/cpu/"):
            more.append("-Wno-psabi")  # vectors wider than the baseline; all inline
        yield cc, "c", "gnu11", path, more + ["-Wvla"] + flags
    for public in (p for p in tree.files((".h",)) if p.startswith("include/")):
        yield cc, "c", "c99", public, []
        yield cc, "c", "c11", public, []
        if cxx:
            yield cxx, "c++", "c++98", public, ["-Wno-long-long"]
            yield cxx, "c++", "c++17", public, []


def main():
    cc, cxx, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    todo = list(jobs(cc, cxx, flags))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = [p for p in pool.map(lambda j: compile_alone(*j), todo) if p]
    return tree.finish("headers", found, len(todo))


if __name__ == "__main__":
    sys.exit(main())
