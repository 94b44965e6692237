"""What the tests of films by the command share.

    TEST.py TEGULA SOURCE VIDEOS ..."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

TEGULA, SOURCE, FOLDER = (os.path.abspath(a) for a in sys.argv[1:4])
sys.path.insert(0, os.path.join(SOURCE, "tests", "gallery"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "fuzz"))
from film_rows import rows_of  # noqa: E402
from seeds import model, node, port  # noqa: E402

WRONG = []
SANITIZED = any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS"))  # its runtime's memory is another


def expect(good, text):
    if not good:
        WRONG.append(text)
        print("WRONG:", text, flush=True)


def run(*words, **more):
    r = subprocess.run([TEGULA, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False,
                       env={**os.environ, **more})
    return r.returncode, r.stdout, r.stderr


def sample(name):
    return os.path.join(FOLDER, name)


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def ffmpeg(*words):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *words], check=True)


def png(path, width, height, rows):
    """Rows of bytes as a grey PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))) + chunk(b"IEND", b""))


def alpha_film(path, form):
    """Five frames whose alpha rises from left to right."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1,format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='X*4'",
           "-c:v", "ffv1", "-pix_fmt", form, path)


def network(channels, name="same.onnx"):
    """One that hands out what it gets."""
    shape = ["N", channels, "H", "W"]
    with open(name, "wb") as f:
        f.write(model([node("Identity", ["x"], ["y"])], [], [port("x", shape)], [port("y", shape)]))
    return name


def in_folder(tests, *programs, samples=True):
    """The exit code of a test: `tests` gets the rows of the sample films, in a folder of its own. 77: there are none, or one of
    the programs is missing."""
    rows = rows_of(FOLDER) if samples else []
    missing = [p for p in programs if not shutil.which(p)]
    if rows is None or missing:
        print("skipped: no samples" if rows is None else f"skipped: no {missing}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tests(rows)
        os.chdir("/")
    print(f"{len(WRONG)} wrong")
    return 1 if WRONG else 0
