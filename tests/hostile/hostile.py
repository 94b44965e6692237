#!/usr/bin/env python3
"""Files from strangers: `info`, `plan`, `run` and `copy` over each, and what must be true then.

    hostile.py TEGULA SHARED [--write]     compare with docs/reference/hostile.md, or write it

Each command ends within 10 s with 65 (bad data) or 71 (does not fit), uses less than 256 MiB, says
in one line what is wrong with which file, leaves no file behind and opens no connection. The few
files that a reader may take are listed in READS with the digest that another reader gets. Without
SHARED only the files made here run, and the table is compared as far as it speaks of them."""
import csv
import hashlib
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time

import hostile_made

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DOC = os.path.join(ROOT, "docs", "reference", "hostile.md")
MAX_SECONDS, MAX_KIB = 10, 256 << 10
REFUSED = (65, 71)
VERBS = ("info", "plan", "run", "copy")
# file: md5 of the pixels (C order, little-endian) as another reader gives them, and which
READS = {
    "pillow-bf956be66b.tiff": ("2ab1e5528758afb4bbc59ffa0cc707be", "tifffile with imagecodecs"),
    "pillow-2defe70464.tiff": ("fbaf48ec981a5eecdb57b929fdd426e8", "tifffile: its first series, directories 0 and 2"),
}
# Damage of pixels is met by who reads them; a model may be refused only once an image is there.
LATE = {"info": (0,), "plan": (0,)}


def peak_kib(args, cwd):
    """(exit code, lines of stderr, stdout, seconds, peak resident KiB)."""
    env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TMPDIR": cwd}
    for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TEGULA_LEAKS"):
        if key in os.environ:
            env[key] = os.environ[key]
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        p = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env=env)
        end = start + 6 * MAX_SECONDS
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid or time.monotonic() > end:
                break
            time.sleep(0.002)
        if not pid:
            p.kill()
            _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        return (p.returncode, err.read().decode("utf-8", "replace").splitlines(), out.read(), seconds, usage)


def listing(folder):
    return sorted((p, f) for p, _, files in os.walk(folder) for f in files)


class Run:
    def __init__(self, tegula, folder, good_image, good_model, secret):
        self.tegula, self.cwd = tegula, folder
        self.image, self.model, self.secret = good_image, good_model, secret
        self.failed, self.worst_seconds, self.worst_kib, self.n = 0, 0.0, 0, 0

    def args(self, verb, path, kind):
        image, model = (path, self.model) if kind == "image" else (self.image, path)
        out = "out.npy" if image.endswith(".npy") else "out.tif"
        common = ["--ram", "200MiB", "--threads", "1"]
        return {"info": [self.tegula, "info", path],
                "plan": [self.tegula, "plan", "-m", model, image, *common],
                "run": [self.tegula, "run", "-m", model, image, "-o", out, "-q", *common],
                "copy": [self.tegula, "copy", path, "-o", "out.tif", "-q", *common]}[verb]

    def complain(self, path, verb, what):
        self.failed += 1
        print(f"{os.path.basename(path)}: {verb}: {what}")

    def one(self, verb, path, kind, allowed):
        before = listing(self.cwd)
        code, err, out, seconds, usage = peak_kib(self.args(verb, path, kind), self.cwd)
        self.n += 1
        self.worst_seconds = max(self.worst_seconds, seconds)
        self.worst_kib = max(self.worst_kib, usage.ru_maxrss)
        # Figures and remedies of a memory refusal follow its line, indented.
        lines = [x for x in err if not x.startswith(("tegula: warning", "  "))]
        if code not in allowed:
            self.complain(path, verb, f"exit {code}: {err[:1]}")
        elif code and (len(lines) != 1 or os.path.basename(path) not in lines[0]):
            self.complain(path, verb, f"not one line that names the file: {err}")
        cpu = usage.ru_utime + usage.ru_stime
        if min(seconds, 2 * cpu + 1) > MAX_SECONDS:
            self.complain(path, verb, f"{seconds:.1f} s")
        if usage.ru_maxrss > MAX_KIB and "ASAN_OPTIONS" not in os.environ:
            self.complain(path, verb, f"{usage.ru_maxrss >> 10} MiB")
        if code and listing(self.cwd) != before:
            self.complain(path, verb, f"left behind: {sorted(set(listing(self.cwd)) - set(before))}")
        if self.secret in out or self.secret.decode() in "".join(err):
            self.complain(path, verb, "told the secret")
        for name in os.listdir(self.cwd):
            os.remove(os.path.join(self.cwd, name))
        return code, lines[0] if lines else ""

    def file(self, path, kind, what):
        """One row of the table."""
        codes, line = [], ""
        name = os.path.basename(path)
        if name in READS:
            self.reads(path, READS[name][0])
            return f"| {name} | {what} | reads | the pixels of {READS[name][1]} |"
        for verb in VERBS:
            if verb == "copy" and kind == "model":
                allowed = (65,)
            else:
                allowed = REFUSED + LATE.get(verb, ())
            code, text = self.one(verb, path, kind, allowed)
            codes.append(str(code))
            line = text if verb == "run" else line
        shown = re.sub(r"needs [\d.]+ [KMGT]iB to be decoded", "needs N to be decoded", line).replace(path, name).replace("tegula: ", "", 1).replace("|", "\\|")
        return f"| {name} | {what} | {' '.join(codes)} | {shown} |"

    def reads(self, path, want):
        code, err, _, _, _ = peak_kib([self.tegula, "copy", path, "-o", "out.npy"], self.cwd)
        if code:
            self.complain(path, "copy", f"exit {code}: {err}")
            return
        with open(os.path.join(self.cwd, "out.npy"), "rb") as f:
            data = f.read()
        pixels = data[10 + int.from_bytes(data[8:10], "little"):]
        if hashlib.md5(pixels).hexdigest() != want:
            self.complain(path, "copy", "other pixels than another reader gets")
        os.remove(os.path.join(self.cwd, "out.npy"))


def shared_files(shared):
    bad = os.path.join(shared, "data", "bad")
    if not os.path.isdir(bad):
        return
    for folder, kind in (("tiff", "image"), ("onnx", "model")):
        says = {}
        index = os.path.join(bad, "onnx", "index.csv") if kind == "model" else os.path.join(bad, "index.csv")
        with open(index, newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                says[os.path.basename(row["file"])] = row["what"] if kind == "model" else \
                    re.sub(r"^rc \d+: ", "libtiff: ", row["tool_says"])[:100].strip(' "')
        for name in sorted(os.listdir(os.path.join(bad, folder))):
            if not name.endswith(".csv"):
                yield os.path.join(bad, folder, name), kind, says.get(name, "").replace("|", "\\|")


HEAD = """# Files from strangers

Written by `tests/hostile/hostile.py TEGULA SHARED --write`; the test `hostile_files` runs the same and
fails when this page is not what it finds.

Each file goes through `info`, `plan`, `run` and `copy` (the column *exits*, in this order), with
`--ram 200MiB`. Every command must end within 10 seconds in 65 (bad data) or 71 (does not fit), use less
than 256 MiB, print one line that names the file and what is wrong with it, leave no file behind, and open
no connection. A model that is only too large for an image may pass `info`; a file that a lenient reader
may take is listed with the reader whose pixels ours equal.

"""
TABLE = "| file | what it tries | exits | what `run` says |\n|---|---|---|---|\n"


def document(made, shared):
    text = HEAD + "## Made by the test\n\n" + TABLE + "\n".join(made) + "\n"
    if shared:
        text += "\n## Collected from other projects' tests and from damaged models\n\n" + TABLE + "\n".join(shared) + "\n"
    return text


def check_document(made, shared):
    try:
        with open(DOC, encoding="utf-8") as f:
            now = f.read()
    except OSError:
        now = ""
    want = document(made, shared)
    if now == want or (not shared and now.startswith(want)):
        return 0
    a, b = now.splitlines(), want.splitlines()
    for x, y in zip(a, b):
        if x != y:
            print(f"docs/reference/hostile.md says\n  {x}\nand it is\n  {y}")
            break
    print("docs/reference/hostile.md is not current: run tests/hostile/hostile.py TEGULA SHARED --write")
    return 1


def main():
    tegula, shared = os.path.abspath(sys.argv[1]), sys.argv[2]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    url = "http://127.0.0.1:%d/entity" % server.getsockname()[1]
    with tempfile.TemporaryDirectory() as tmp:
        cwd, files = os.path.join(tmp, "work"), os.path.join(tmp, "files")
        os.mkdir(cwd)
        os.mkdir(files)
        image, net = os.path.join(tmp, "good.tif"), os.path.join(tmp, "good.onnx")
        t = hostile_made.Tiff()
        hostile_made.page(t, 64, 48)
        with open(image, "wb") as f:
            f.write(t.out)
        with open(net, "wb") as f:
            f.write(hostile_made.model([hostile_made.node("Relu", ["x"], ["y"])], [], hostile_made.X))
        run = Run(tegula, cwd, image, net, hostile_made.SECRET)
        made = [run.file(*f).replace(url, "URL") for f in hostile_made.make(files, url)]
        others = [run.file(*f) for f in shared_files(shared)]
    try:
        server.accept()
        run.complain("ome_external_http.tif", "any", "opened a connection")
    except BlockingIOError:
        pass
    if "--write" in sys.argv:
        with open(DOC, "w", encoding="utf-8") as f:
            f.write(document(made, others))
    elif any("this build" in row and "cannot" in row for row in made):
        print("a build without all codecs: docs/reference/hostile.md is not compared")
    elif "ASAN_OPTIONS" not in os.environ:
        run.failed += check_document(made, others)
    print(f"{len(made)} files made, {len(others)} collected, {run.n} commands, {run.failed} failures; slowest "
          f"{run.worst_seconds:.2f} s, most memory {run.worst_kib >> 10} MiB")
    if not others:
        print("skipped: the collected files are not there; the rest ran")
    return 1 if run.failed else 0 if others else 77


if __name__ == "__main__":
    sys.exit(main())
