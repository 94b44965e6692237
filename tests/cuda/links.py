"""What the binaries ask of the system's loader: the command and the library know nothing of CUDA,
the plugin needs libc and its parts alone, takes nothing from a folder of its build, and shows one
symbol.

usage: links.py tegula libtegula.so [libtegula_cuda.so]
"""
import re
import shutil
import subprocess
import sys

OF_THE_SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux[\w-]*)\.so\.\d+")


def output_of(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def dynamic(path):
    """(names needed, search paths) of a binary."""
    text = output_of("readelf", "-d", path)
    return (re.findall(r"\(NEEDED\).*\[(.*)\]", text),
            re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text))


def problems_of_binary(path):
    for name in dynamic(path)[0]:
        if re.match(r"lib(cuda|cudart|cublas|cudnn|nv)", name):
            yield f"{path} links {name}"


def problems_of_plugin(path):
    needed, searched = dynamic(path)
    for name in needed:
        if not OF_THE_SYSTEM.fullmatch(name):
            yield f"{path} needs {name}"
    for folder in searched:
        yield f"{path} looks for libraries in {folder}"
    lines = output_of("nm", "-D", "--defined-only", path).splitlines()
    shown = sorted(line.split()[-1] for line in lines if line.strip())
    if shown != ["tgi_device_plugin"]:
        yield f"{path} shows {len(shown)} symbols: {' '.join(shown[:5])}"


def main():
    if not shutil.which("readelf") or not shutil.which("nm"):
        print("skipped: no readelf, no nm")
        return 77
    found = [p for path in sys.argv[1:3] for p in problems_of_binary(path)]
    found += [p for path in sys.argv[3:] for p in problems_of_plugin(path)]
    for p in found:
        print(p)
    print(f"{len(sys.argv) - 1} binaries, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
