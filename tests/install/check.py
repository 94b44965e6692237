"""Install into an empty folder, then build and run a stranger's program against it: once by
find_package, once by pkg-config. Also: the installed command starts, and the pages lead to what is there.

usage: check.py BUILD SCRATCH
"""
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """#include <tegula.h>
#include <string.h>
int main(void)
{
    tg_ctx *ctx = NULL;
    if (tg_ctx_open(NULL, &ctx) != TG_OK)
        return 1;
    tg_ctx_close(&ctx);
    return strcmp(tg_status_name(TG_E_BUDGET), "TG_E_BUDGET") != 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(stranger LANGUAGES C)
find_package(tegula 0.1 REQUIRED)
add_executable(stranger stranger.c)
target_link_libraries(stranger PRIVATE tegula::tegula)
"""


def run(*command, **environment):
    done = subprocess.run(command, text=True, capture_output=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        print(" ".join(command))
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def folder_of(prefix, name):
    for folder, _, entries in os.walk(prefix):
        if name in entries:
            return folder
    sys.exit(f"{name} was not installed")


def pages_below(docs):
    return {os.path.relpath(os.path.join(folder, n), docs) for folder, _, names in os.walk(docs)
            for n in names if n.endswith((".md", ".c", ".png"))}


def follow_links(docs):
    """Each link of the installed pages leads to a file that is installed; of the headers and the examples, too."""
    missing = pages_below(os.path.join(SOURCE, "docs")) - pages_below(os.path.join(docs, "docs"))
    dead = [f"docs/{page}: not installed" for page in sorted(missing)]
    kinds = set()
    for folder, _, names in os.walk(docs):
        for page in (os.path.join(folder, n) for n in names if n.endswith(".md")):
            with open(page, encoding="utf-8") as f:
                links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", f.read())
            dead += [f"{os.path.relpath(page, docs)}: {link}" for link in links
                     if not os.path.exists(os.path.join(folder, link))]
            kinds |= {os.path.splitext(link)[1] for link in links}
    if dead or not kinds >= {".md", ".h", ".c", ".svg"}:
        sys.exit("\n".join(["the installed pages lack pages, or lead to what is not there:", *dead,
                            f"kinds of links: {sorted(kinds)}"]))


def found_plugin(prefix):
    """The plugin, by the installed command: whatever it says of devices, it is there."""
    os.environ.pop("TEGULA_CUDA_PLUGIN", None)
    said = subprocess.run([os.path.join(prefix, "bin", "tegula"), "doctor"], text=True, capture_output=True,
                          check=False).stdout
    rows = [line.strip() for line in said.splitlines() if " device " in line]
    if not rows or any("libtegula_cuda" in row for row in rows):
        sys.exit(f"the installed plugin was not found:\n{said}")
    print(rows[0])


def found_network(moved):
    """The network of motions is found from where the command lies, too."""
    film = os.path.join(moved, "film.y4m")
    with open(film, "wb") as f:
        f.write(b"YUV4MPEG2 W64 H48 F25:1 C444\n")
        for k in range(4):
            f.write(b"FRAME\n" + bytes((3 * x + 5 * y + k) % 200 + 20 for y in range(48) for x in range(64)) + b"\x80" * (2 * 64 * 48))
    run(os.path.join(moved, "bin", "tegula"), "inpaint", "-q", film, "--mask-box", "20,20,9,9", "-o", os.path.join(moved, "out.y4m"))


def found_films(prefix):
    """The plugin for films lies among what is installed, and the installed command reads with that one."""
    os.environ.pop("TEGULA_AV_PLUGIN", None)
    said = subprocess.run([os.path.join(prefix, "bin", "tegula"), "doctor"], text=True, capture_output=True, check=False).stdout
    rows = [line.strip() for line in said.splitlines() if " films " in line]
    where = os.path.join(os.path.realpath(prefix), "lib", "tegula", "libtegula_av.so")
    if len(rows) != 1 or not rows[0].startswith("ok") or not os.path.samefile(re.search(r"/\S+", rows[0])[0], where):
        sys.exit(f"the installed plugin for films was not found:\n{said}")
    print(rows[0])


def main():
    build, scratch = sys.argv[1:]
    shutil.rmtree(scratch, ignore_errors=True)
    prefix, source = os.path.join(scratch, "prefix"), os.path.join(scratch, "source")
    os.makedirs(source)
    run("cmake", "--install", build, "--prefix", prefix)
    write(os.path.join(source, "stranger.c"), PROGRAM)
    write(os.path.join(source, "CMakeLists.txt"), PROJECT)

    made = os.path.join(scratch, "made")
    run("cmake", "-S", source, "-B", made, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", made)
    run(os.path.join(made, "stranger"))

    if shutil.which("pkg-config"):
        flags = run("pkg-config", "--cflags", "--libs", "tegula",
                    PKG_CONFIG_PATH=folder_of(prefix, "tegula.pc")).split()
        program = os.path.join(scratch, "by_pkg_config")
        run("cc", os.path.join(source, "stranger.c"), *flags, "-o", program)
        run(program, LD_LIBRARY_PATH=folder_of(prefix, "libtegula.so"))

    version = run(os.path.join(prefix, "bin", "tegula"), "version")
    print(version.strip())
    # The table of GPUs is found from where the command lies, wherever that is.
    moved = os.path.join(scratch, "moved")
    os.rename(prefix, moved)
    run(os.path.join(moved, "bin", "tegula"), "estimate", "batch", "--params", "110M", "--gpu", "T4")
    run(os.path.join(moved, "bin", "tegula"), "preset", "show", "small-memory")
    found_network(moved)
    if os.path.isfile(os.path.join(build, "lib", "tegula", "libtegula_cuda.so")):
        found_plugin(moved)
    if os.path.isfile(os.path.join(build, "lib", "tegula", "libtegula_av.so")):
        found_films(moved)
    os.rename(moved, prefix)
    for name in ("tegula.1", "LICENSE"):
        folder_of(prefix, name)
    follow_links(folder_of(prefix, "CHANGELOG.md"))

    # For a package: laid down elsewhere than where it is to lie.
    staged = os.path.join(scratch, "staged")
    run("cmake", "--install", build, "--prefix", "/opt/tegula", DESTDIR=staged)
    follow_links(folder_of(staged, "CHANGELOG.md"))


if __name__ == "__main__":
    main()
