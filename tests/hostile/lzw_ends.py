"""How the LZW data of a strip end, in files that are right and in files that are not.

    lzw_ends.py TEGULA"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "fuzz"))
from seeds import Tiff, lzw, pixels  # noqa: E402

tegula = os.path.abspath(sys.argv[1])
W, H = 97, 50
failed = 0


def turned(data):
    return bytes(int(f"{b:08b}"[::-1], 2) for b in data)


def strips(rows, last):
    """The rows of each strip, the last one with `last` bytes more or as many as make it whole (None)."""
    raw = pixels(W * H)
    parts = [raw[y * W:(y + rows) * W] for y in range(0, H, rows)]
    more = rows * W - len(parts[-1]) if last is None else last
    return parts[:-1] + [parts[-1] + bytes(more)]


def holds(what, rows, good, last=0, end=None, order=1):
    """`end`: what becomes of the packed bytes of each strip."""
    global failed
    t = Tiff()
    packed = [(end or bytes)(lzw(part)) for part in strips(rows, last)]
    at = [t.add(turned(p) if order == 2 else p) for p in packed]
    t.directory({256: (4, W), 257: (4, H), 258: (3, 8), 259: (3, 5), 262: (3, 1), 266: (3, order), 273: (4, at), 277: (3, 1),
                 278: (4, rows), 279: (4, [len(p) for p in packed])})
    with open("a.tif", "wb") as f:
        f.write(bytes(t.out))
    r = subprocess.run([tegula, "copy", "a.tif", "-o", "a.npy", "-y", "-q"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    got = b""
    if r.returncode == 0:
        with open("a.npy", "rb") as f:
            got = f.read()[-W * H:]
    right = r.returncode == 0 and got == pixels(W * H) if good else r.returncode == 65
    failed += not right
    print(f"{'ok  ' if right else 'FAIL'} {what}, {rows} rows a strip{', FillOrder 2' if order == 2 else ''}: {r.returncode} {r.stderr.strip()[-90:]}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for order in (1, 2):
        holds("the mark", 16, True, order=order)
        holds("no mark", 16, True, end=lambda p: p[:-1], order=order)
        holds("no mark, a byte that fills up", 16, True, end=lambda p: p[:-1] + b"\0", order=order)
        holds("bytes behind the mark", 16, True, end=lambda p: p + bytes(100), order=order)
        holds("the last strip in full", 16, True, last=None, order=order)
        holds("the only strip in full", 64, True, last=None, order=order)
        holds("a pixel more", 50, False, last=1, order=order)
        holds("some pixels more in the last strip", 16, False, last=5, order=order)
        holds("cut", 16, False, end=lambda p: p[:len(p) // 2], order=order)
sys.exit(1 if failed else 0)
