"""The shared library exports exactly what the public headers declare, and carries a SONAME.

usage: symbols.py libtegula.so [nm] [readelf]
"""
import re
import subprocess
import sys

import tree


def output_of(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def main():
    library = sys.argv[1]
    header = "".join(tree.text(path) for path in tree.files((".h",)) if path.startswith("include/"))
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    declared = set(re.findall(r"^TG_API[^;]*?\b(tg_\w+)\s*\(", header, flags=re.M))
    lines = output_of("nm", "-D", "--defined-only", library).splitlines()
    exported = {line.split()[-1].split("@")[0] for line in lines if line.strip()}
    # The runtimes of the sanitizers and of coverage add symbols of their own.
    exported = {s for s in exported if not s.startswith(("__asan", "__ubsan", "__tsan", "__odr_asan"))}
    found = [f"{s} is exported, but in no public header" for s in sorted(exported - declared)]
    found += [f"{s} is in a public header, but not exported" for s in sorted(declared - exported)]
    if not re.search(r"SONAME.*libtegula\.so\.\d+", output_of("readelf", "-d", library)):
        found.append("no SONAME")
    return tree.finish("symbols", found, len(declared))


if __name__ == "__main__":
    sys.exit(main())
