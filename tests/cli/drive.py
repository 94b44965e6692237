#!/usr/bin/env python3
"""Runs each case of a .case file through the command and compares what it prints.

A case is
    $ [NAME=VALUE] ARGUMENTS  a command line after the program's name (shell words, no shell)
    exit CODE
    out LINE                  expected standard output, line by line; a LINE with * is a glob
    err LINE                  the same for standard error
with "# ..." and empty lines ignored between cases. Lines "out" and "err" not given mean: empty. What
the error gallery adds (a status behind the code, cause, cure, also) is left alone.
With --accept the file is rewritten with what the program printed. `{tmp}` in arguments and
expectations is a fresh folder, `{here}` the folder of the .case file, `{NAME}` what the command
line of this program says with NAME=VALUE.
"""
import fnmatch
import os
import re
import shlex
import subprocess
import sys
import tempfile

GALLERY = ("cause", "cure", "also")


def read_cases(path):
    cases = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("$"):
                cases.append({"line": number, "args": line[1:].strip(), "exit": 0, "out": [], "err": []})
            elif line == "" or line.startswith("#"):
                continue
            else:
                word, _, rest = line.partition(" ")
                if word == "exit":
                    cases[-1]["exit"] = int(rest.split()[0])
                    cases[-1]["status"] = rest.partition(" ")[1:]
                elif word in GALLERY:
                    continue
                elif word in ("out", "err"):
                    cases[-1][word].append(rest)
                else:
                    sys.exit(f"{path}:{number}: what is \"{word}\"?")
    return cases


def matches(want, got):
    if len(want) != len(got):
        return False
    return all(w == g or ("*" in w and fnmatch.fnmatchcase(g, w.replace("[", "[[]")))
               for w, g in zip(want, got))


def run_case(program, case, places):
    args = shlex.split(case["args"])
    for name, value in places.items():
        args = [a.replace(name, value) for a in args]
    env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TEGULA_LEAKS"):
        if key in os.environ:
            env[key] = os.environ[key]
    while args and re.fullmatch(r"[A-Z_]+=.*", args[0]):
        name, _, value = args.pop(0).partition("=")
        env[name] = value
    r = subprocess.run([program] + args, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=env,
                       cwd=places["{tmp}"])
    def lines(raw):
        text = raw.decode("utf-8", "replace")
        for name, value in places.items():
            text = text.replace(value, name)
        return [x.rstrip() for x in text.splitlines()]
    return r.returncode, lines(r.stdout), lines(r.stderr)


def show(name, want, got):
    if not matches(want, got):
        print(f"  {name} expected:")
        print("".join(f"    {x}\n" for x in want), end="")
        print(f"  {name} found:")
        print("".join(f"    {x}\n" for x in got), end="")


def accept(path, cases, results):
    it = iter(zip(cases, results))
    out, skipping = [], False
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if line.startswith("$"):
                case, (code, so, se) = next(it)
                keep = matches(case["out"], so) and matches(case["err"], se)
                out += [line, f"exit {code}" + "".join(case.get("status", ""))]
                out += [f"out {x}".rstrip() for x in (case["out"] if keep else so)]
                out += [f"err {x}".rstrip() for x in (case["err"] if keep else se)]
                skipping = True
            elif line == "" or line.startswith("#") or line.partition(" ")[0] in GALLERY:
                skipping = skipping and line != "" and not line.startswith("#")
                out.append(line)
            elif not skipping:
                out.append(line)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    program, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    cases = read_cases(path)
    results, failed = [], 0
    places = {"{%s}" % name: value for name, _, value in
              (a.partition("=") for a in sys.argv[3:] if not a.startswith("--"))}
    places["{program}"] = program
    places["{here}"] = os.path.dirname(os.path.abspath(path))
    with tempfile.TemporaryDirectory() as tmp:
        places["{tmp}"] = tmp
        for case in cases:
            code, out, err = run_case(program, case, places)
            results.append((code, out, err))
            if code != case["exit"] or not matches(case["out"], out) or not matches(case["err"], err):
                failed += 1
                print(f"{path}:{case['line']}: {case['args']}: exit {code}, expected {case['exit']}")
                show("stdout", case["out"], out)
                show("stderr", case["err"], err)
    if "--accept" in sys.argv:
        accept(path, cases, results)
        return 0
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
