"""clang-tidy over our sources, by the compile commands of a build. Skips (77) without it.

usage: tidy.py BUILD [path prefix...]
"""
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree


def sources(build, prefixes):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = {os.path.relpath(os.path.join(c["directory"], c["file"]), tree.ROOT) for c in commands}
    return sorted(p for p in found if not p.startswith("..") and p.endswith(".c")
                  and not p.startswith("build") and p.startswith(tuple(prefixes)))


def check(tool, build, path):
    done = subprocess.run([tool, "-p", build, "--quiet", path], cwd=tree.ROOT, text=True,
                          capture_output=True, check=False)
    return done.stdout.strip() if done.returncode or "warning:" in done.stdout else ""


def main():
    build, prefixes = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["engine/", "kernels/", "io/", "cli/"]
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        print("tidy: no clang-tidy")
        return 77
    paths = sources(build, prefixes)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = [f for f in pool.map(lambda p: check(tool, build, p), paths) if f]
    return tree.finish("tidy", found, len(paths))


if __name__ == "__main__":
    sys.exit(main())
