"""The project's own files, for the checks beside this one. Standard library only."""
import os

# planted.py lets the checks look at a tree of its own.
ROOT = os.environ.get("TG_LINT_ROOT") or \
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = {".git", "out", "__pycache__", ".gpu-carry"}
C_ENDINGS = (".c", ".h", ".cu", ".cuh", ".cc", ".inc")


def files(endings=None):
    """Paths relative to the root, with '/', in order; without build folders."""
    found = []
    for folder, names, entries in os.walk(ROOT):
        names[:] = sorted(n for n in names if n not in SKIPPED and not n.startswith("build"))
        for entry in sorted(e for e in entries if e not in SKIPPED):
            if endings is None or entry.endswith(endings):
                found.append(os.path.relpath(os.path.join(folder, entry), ROOT))
    return found


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def finish(name, problems, checked):
    """Print the problems; the exit code for sys.exit."""
    for p in problems:
        print(p)
    print(f"{name}: {checked} checked, {len(problems)} problems")
    return 1 if problems or not checked else 0
