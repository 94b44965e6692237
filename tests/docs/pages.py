#!/usr/bin/env python3
"""Run the commands of a page of docs/ in order, in a folder of their own, and compare what they print.

    pages.py PAGE TEGULA DRAW LIBRARY SCRATCH      PAGE below the root, such as docs/tutorial.md

What is run: every block fenced with ```console. A line that begins with "$ " is a command for bash (a "\\" at its
end goes on in the next line), and the lines below it are what it prints, stdout and stderr together:

    none               the output is not compared
    a line             comes next; runs of blanks are equal to one
    ...                any lines, or none
    ‹28.69 MiB›        inside a line: another size; ‹1.6 s›: another time; ‹12›: another number; else any text

A command that ends in another code than 0 fails the page, unless the next command is `echo $?`.

<!-- setup: COMMAND --> is run where it stands and not shown. Every other fenced block that begins with ```sh is for
the reader alone and needs <!-- not run: REASON --> in front. Lines of progress are left out of the output."""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIP = 77
PROGRESS = re.compile(r"(statistics|look ahead|run|check|verify|copy|finish|otsu|fill-holes|min-size|label|stardist|cellpose|objects) \d+ %")
NUMBER = r"\d+(?:\.\d+)?"
HELD = ((rf"{NUMBER} (?:B|KiB|MiB|GiB|TiB)", NUMBER + r" (?:B|KiB|MiB|GiB|TiB)"),
        (rf"{NUMBER} (?:ms|s|min|h)(?: \d+ (?:s|min))?", NUMBER + r" (?:ms|s|min|h)(?: \d+ (?:s|min))?"),
        (NUMBER, NUMBER))


class Wrong(Exception):
    pass


# ---- The page ------------------------------------------------------------------------------

def commands_of(block, at):
    """(line number, command, stated lines) of the lines of a console block."""
    found = []
    for i, line in enumerate(block):
        if found and found[-1][1].endswith("\\") and not found[-1][2]:
            found[-1][1] = found[-1][1][:-1] + line.strip()
        elif line.startswith("$ "):
            found.append([at + i, line[2:], []])
        elif not found:
            raise Wrong(f"line {at + i}: a console block begins with a command")
        else:
            found[-1][2].append(line)
    return found


def steps(text):
    """(line number, command, stated lines or None: a setup, whose output is nobody's matter)."""
    lines, i, reason = text.split("\n"), 0, False
    while i < len(lines):
        comment = re.fullmatch(r"<!-- (setup|not run): (.+) -->", lines[i])
        fence = re.fullmatch(r"```(\w*)", lines[i])
        if comment:
            reason = comment[1] == "not run"
            if not reason:
                yield i + 1, comment[2], None
        elif fence:
            end = lines.index("```", i + 1)
            if fence[1] == "console":
                yield from commands_of(lines[i + 1:end], i + 2)
            elif fence[1] == "sh" and not reason:
                raise Wrong(f"line {i + 1}: a block of commands that is not run gives no reason")
            i = end
        if not comment and lines[i].strip():
            reason = False
        i += 1


# ---- What is printed -----------------------------------------------------------------------

def pattern(stated):
    """The regular expression of a stated line."""
    out = []
    for i, part in enumerate(re.split(r"[‹›]", " ".join(stated.split()))):
        if i % 2 == 0:
            out.append(re.escape(part))
            continue
        out.append(next((p for form, p in HELD if re.fullmatch(form, part)), r"\S(?:.*\S)?"))
    return "".join(out)


def missing(stated, printed):
    """The first stated line that did not come, or None; "the end": lines came that were not stated."""
    at, free = 0, False
    for line in stated:
        if line.strip() == "...":
            free = True
            continue
        wanted = re.compile(pattern(line))
        last = len(printed) if free else min(at + 1, len(printed))
        hit = next((k for k in range(at, last) if wanted.fullmatch(" ".join(printed[k].split()))), None)
        if hit is None:
            return line
        at, free = hit + 1, False
    return None if free or at == len(printed) else "the end"


def run(command, env, cwd, before):
    done = subprocess.run(["bash", "-c", f"(exit {before})\n{command}"], env=env, cwd=cwd, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
    return done.returncode, [s for s in done.stdout.rstrip("\n").split("\n") if s and not PROGRESS.match(s)]


def follow(text, env, cwd):
    """Run the steps of a page; the number of commands that were shown."""
    code, where, n = 0, "", 0
    for at, command, stated in steps(text):
        if code and command != "echo $?":
            raise Wrong(f"{where}: ended in {code}")
        where = f"line {at}: {command}"
        code, printed = run(command, env, cwd, code)
        shown = "\n".join("    " + s for s in printed)
        if code and stated is not None:
            print(f"{where}: {code}\n{shown}")
        n += stated is not None
        lost = missing([s for s in stated if s.strip()], printed) if stated else None
        if lost is not None:
            raise Wrong(f"{where}\n  printed\n{shown}\n  where the page says\n    {lost}")
    if code:
        raise Wrong(f"{where}: ended in {code}")
    return n


# ---- The folder ----------------------------------------------------------------------------

def link(source, target):
    os.symlink(os.path.abspath(source), target)


def prepare(scratch, tegula, draw, library):
    """A folder with models/ and docs/ as below the root, the programs in PATH, and tegula.pc of this build."""
    shutil.rmtree(scratch, ignore_errors=True)
    tools = os.path.join(scratch, "bin")
    os.makedirs(tools)
    link(tegula, os.path.join(tools, "tegula"))
    link(draw, os.path.join(tools, "tegula-draw"))
    link(draw + "-film", os.path.join(tools, "tegula-draw-film"))
    link(os.path.join(ROOT, "tests", "docs", "sparse.py"), os.path.join(tools, "sparse-tiff"))
    work = os.path.join(scratch, "work")
    os.makedirs(work)
    for name in ("models", "docs"):
        link(os.path.join(ROOT, name), os.path.join(work, name))
    folder = os.path.dirname(os.path.abspath(library))
    with open(os.path.join(scratch, "tegula.pc"), "w", encoding="utf-8") as f:
        f.write(f"Name: tegula\nDescription: of this build\nVersion: 0\nCflags: -I{ROOT}/include\n"
                f"Libs: -L{folder} -ltegula\n")
    nobody = os.path.join(scratch, "nobody")
    return work, {**os.environ, "PATH": os.path.abspath(tools) + os.pathsep + os.environ["PATH"],
                  "PKG_CONFIG_PATH": os.path.abspath(scratch), "LD_LIBRARY_PATH": folder,
                  "PYTHONDONTWRITEBYTECODE": "1", "TEGULA_CUDA_PLUGIN": "none", "TEGULA_LEARN": "no", "LC_ALL": "C.UTF-8",
                  "TEGULA_CACHE": nobody, "XDG_CONFIG_HOME": nobody, "XDG_CACHE_HOME": nobody}


def main():
    page, tegula, draw, library, scratch = sys.argv[1:]
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        text = f.read()
    for word in ("cc", "pkg-config", "ffmpeg", "ffprobe"):
        if f"$ {word} " in text or f"$({word} " in text:
            if not shutil.which(word):
                print(f"skipped: no {word}")
                return SKIP
    if hasattr(os, "sched_setaffinity"):  # the smallest budgets that pages name are those of two threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    work, env = prepare(scratch, tegula, draw, library)
    try:
        n = follow(text, env, work)
    except Wrong as e:
        print(f"{page}: {e}")
        return 1
    print(f"{page}: {n} commands")
    shutil.rmtree(scratch)
    return 0 if n else 1


if __name__ == "__main__":
    sys.exit(main())
