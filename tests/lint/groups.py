"""What `make test` runs, the target `tests` builds, and what `make test-more` runs, `tests_more`: a program that only
another group builds is there on a machine where everything was built once, and nowhere else.

usage: groups.py CTEST BUILD"""
import json
import os
import re
import shutil
import subprocess
import sys

ELSEWHERE = {"long", "gpu"}
MORE = {"cuda", "sets", "more"}


def ninja(build, *words):
    return subprocess.run(["ninja", "-C", build, "-t", *words], capture_output=True, text=True, check=True).stdout


def built(build, target):
    """Everything that making the target makes or reads, level by level (`inputs` leaves out what a phony one lists)."""
    seen, level, inputs = set(), [target], False
    while level:
        seen.update(level)
        found = set()
        for line in ninja(build, "query", *level).splitlines():
            if line.startswith("  ") and not line.startswith("    "):
                inputs = line.startswith("  input")
            elif line.startswith("    ") and inputs:
                found.add(line.strip().lstrip("| "))
        level = sorted(found - seen)
    return {os.path.normpath(os.path.join(build, name)) for name in seen}


def words_of(test):
    """The paths a test's command and environment name, also behind a NAME= or beside others."""
    said = list(test.get("command", []))
    for kind in test.get("properties", []):
        if kind["name"] in ("ENVIRONMENT", "REQUIRED_FILES"):
            said += kind["value"] if isinstance(kind["value"], list) else [kind["value"]]
    return {os.path.normpath(word) for one in said for word in re.split(r"[=;,:]", one) if word.startswith("/")}


def labels_of(test):
    return {label for kind in test.get("properties", []) if kind["name"] == "LABELS" for label in kind["value"]}


def main():
    ctest, build = sys.argv[1], os.path.abspath(sys.argv[2])
    if not shutil.which("ninja") or not os.path.exists(os.path.join(build, "build.ninja")):
        print("skipped: the build folder is not ninja's")
        return 77
    makes = {os.path.normpath(os.path.join(build, line.split(": ")[0]))
             for line in ninja(build, "targets", "all").splitlines()}
    group = {"tests": built(build, "tests"), "tests_more": built(build, "tests_more")}
    shown = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                           check=True).stdout
    problems = looked = 0
    for test in json.loads(shown)["tests"]:
        labels = labels_of(test)
        if labels & ELSEWHERE:
            continue
        target = "tests_more" if labels & MORE else "tests"
        for path in sorted(words_of(test) & makes):
            looked += 1
            if path not in group[target]:
                problems += 1
                print(f"{test['name']} needs {os.path.relpath(path, build)}, which the target {target} does not build")
    if not looked:
        print("no test names a program of this build: this lint looks at nothing")
        return 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
