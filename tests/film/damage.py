#!/usr/bin/env python3
"""Damaged films through the command: those that are bad already, cut ones, and ones with other bytes.

    damage.py TEGULA SOURCE VIDEOS BAD SEED CUTS FLIPS

Every file of BAD, CUTS films of VIDEOS that end early, FLIPS with one to four bytes that are others (half of them near the
beginning or the end, where headers lie), each copied; every eighth is asked for and run through a network, too. What may
never be: a signal, a sanitizer's report, more than 10 s or 1 GiB, a refusal without one line that names the file, a
file that stays behind it, and exit 0 with fewer frames than the film declares, as ffprobe reads it, and no warning. 77: no
samples, or no ffprobe."""
import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from film_help import FOLDER, TEGULA, WRONG, expect, sample
from film_rows import rows_of
from seeds import model, node, port  # noqa: E402

BAD = os.path.abspath(sys.argv[4])
SEED, CUTS, FLIPS = (int(a) for a in sys.argv[5:8])
SECONDS, KIB = 10, 1 << 20
PIXELS, BYTES = 7_000_000, 600_000  # of all frames: more, and only the first is decoded; of a file: more, and it is not used
REFUSED = (65, 71)
WORDS = ("frames missing", "frames more are there and not shown", ": it is cut", ": it may be cut", "by empty chunks")  # of a note on a film with fewer frames


def call(*words):
    """(exit code, stdout, stderr, seconds, KiB)."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        p = subprocess.Popen([TEGULA, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            # A machine that does other work, too, is given time, as long as this process had little of its own.
            if time.monotonic() - start > 4 * SECONDS:
                p.kill()
            time.sleep(0.002)
        p.returncode = os.waitstatus_to_exitcode(status)
        seconds = min(time.monotonic() - start, usage.ru_utime + usage.ru_stime + 1)
        out.seek(0)
        err.seek(0)
        return p.returncode, out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace"), seconds, usage.ru_maxrss


def declared(path):
    """Frames of the first film in it by its header, as ffprobe reads it; 0: it says nothing."""
    r = subprocess.run(["ffprobe", "-v", "quiet", "-of", "json", "-select_streams", "V:0", "-show_entries", "stream=nb_frames", path],
                       capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    try:
        streams = json.loads(r.stdout or b"{}").get("streams") or [{}]
    except ValueError:
        streams = [{}]
    n = streams[0].get("nb_frames", "")
    return int(n) if n.isdigit() else 0


def frames_of(npy):
    """The first of its extents."""
    with open(npy, "rb") as f:
        head = f.read(10)
        text = f.read(struct.unpack("<H", head[8:])[0]).decode("latin-1")
    return int(text.split("'shape': (")[1].split(",")[0])


class Damage:
    def __init__(self):
        self.codes = collections.defaultdict(collections.Counter)
        self.seconds, self.kib, self.silent, self.n = 0.0, 0, collections.Counter(), 0
        with open("same.onnx", "wb") as f:
            f.write(model([node("Identity", ["x"], ["y"])], [], [port("x", ["N", 3, "H", "W"])], [port("y", ["N", 3, "H", "W"])]))

    def one(self, what, path, *words):
        """One start of the command: its exit code and what it said."""
        code, out, err, seconds, kib = call(*words)
        self.n += 1
        self.seconds, self.kib = max(self.seconds, seconds), max(self.kib, kib)
        expect(seconds <= SECONDS, f"{what}: {words[0]}: {seconds:.1f} s")
        expect(kib <= KIB, f"{what}: {words[0]}: {kib >> 10} MiB")
        # Lines of their own follow a refusal where it says what would do.
        lines = [x for x in err.splitlines() if not x.startswith(("tegula: warning", "  "))]
        expect(code == 0 or code in REFUSED, f"{what}: {words[0]}: exit {code}: {err[-600:]}")
        expect(code not in REFUSED or (len(lines) == 1 and os.path.basename(path) in lines[0]), f"{what}: {words[0]}: said {lines}")
        left = sorted(x for x in os.listdir(".") if x.startswith("out."))
        # A run that meets damage in its midst keeps what it has, as for any stop.
        kept = ["out.tif.journal", "out.tif.partial"] if words[0] == "run" else []
        expect(code == 0 or left in ([], kept), f"{what}: {words[0]}: left behind: {left}")
        return code, out, err

    def film(self, kind, what, path, whole=True, also=False, good=0):
        """good: frames that the film has which it was made of."""
        some = [] if whole else ["--planes", "0"]
        code, _, err = self.one(what, path, "copy", path, "-o", "out.npy", "-y", "-q", "--threads", "1", *some)
        if code == 0:
            n, out = frames_of("out.npy"), ""
            if not whole:
                code, out, err = self.one(what, path, "info", path, "--json")
                n = json.loads(out.strip().splitlines()[-1])["shape"][0]
            told = any(w in err + out for w in WORDS)
            expect(told or n >= declared(path), f"{what}: {n} frames, {declared(path)} declared, and no word: {err}")
            self.silent[what.split(",")[0]] += not told and n < good
        self.codes[kind][code] += 1
        if also:
            self.one(what, path, "info", path)
            self.one(what, path, "run", "-m", "same.onnx", path, "-o", "out.tif", "-y", "-q", "--normalize", "none", "--interlaced", "as-is",
                     "--threads", "1", *some)
        for name in [x for x in os.listdir(".") if x.startswith("out.")]:
            os.remove(name)


def flipped(data, r):
    """Other bytes at one to four places, and the places."""
    out, places = bytearray(data), []
    for _ in range(r.randint(1, 4)):
        near = r.randrange(4)
        at = r.randrange(len(data))
        if near < 2:
            at = (r.randrange if not near else lambda n: len(data) - 1 - r.randrange(n))(min(2048, len(data)))
        out[at] ^= r.randint(1, 255)
        places.append(at)
    return bytes(out), places


def cut(data, r):
    """A part from the beginning: anywhere, or close behind the header, or close to the end."""
    far = r.randrange(3)
    return data[:r.randrange(1, len(data)) if not far else r.randrange(1, min(4096, len(data))) if far == 1 else
                len(data) - r.randrange(1, min(4096, len(data)))]


def main():
    rows = rows_of(FOLDER)
    if rows is None or not os.path.isdir(BAD) or not shutil.which("ffprobe"):
        print("skipped: no sample films, no damaged ones, or no ffprobe")
        return 77
    rows = [row for row in rows if int(row["bytes"]) <= BYTES]
    r = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        d = Damage()
        for name in sorted(os.listdir(BAD)):
            d.film("bad", name, os.path.join(BAD, name), also=True)
        for i in range(CUTS + FLIPS):
            row, kind = r.choice(rows), "cut" if i < CUTS else "other bytes"
            with open(sample(row["file"]), "rb") as f:
                data = f.read()
            new, where = flipped(data, r) if i >= CUTS else (cut(data, r), None)
            path = "damaged" + os.path.splitext(row["file"])[1]
            with open(path, "wb") as f:
                f.write(new)
            pixels = int(row["width"]) * int(row["height"]) * int(row["frames_decoded"])
            before = len(WRONG)
            d.film(kind, f"{row['file']}, {f'bytes {where}' if where else f'{len(new)} bytes of {len(data)}'} (seed {SEED}, {i})", path,
                   whole=pixels <= PIXELS, also=i % 8 == 0, good=int(row["frames_decoded"]))
            if len(WRONG) > before and os.environ.get("TEGULA_KEEP"):
                shutil.copy(path, os.path.join(os.environ["TEGULA_KEEP"], f"{i}-{row['file']}"))
        os.chdir("/")
    for kind, codes in d.codes.items():
        print(f"{kind:12s} {sum(codes.values()):5d} files:", ", ".join(f"exit {c}: {n}" for c, n in sorted(codes.items())))
    print(f"{d.n} starts, {d.seconds:.1f} s and {d.kib >> 10} MiB at most")
    print("fewer frames than the whole film, which nothing in it declares:",
          ", ".join(f"{name} {n}" for name, n in sorted(d.silent.items()) if n) or "none")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
