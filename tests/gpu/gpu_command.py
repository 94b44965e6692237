"""The command on a device, for the tests of jobs there, and arrays without any library.

The device is the one of the machine, or, with a plugin named, one that is played on the processor."""
import array
import contextlib
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

CODES = {"<f4": "f", "<f8": "d", "|u1": "B", "|b1": "B", "|i1": "b", "<u2": "H", "<i2": "h", "<i4": "i", "<u4": "I",
         "<i8": "q", "<u8": "Q"}


def played(*beside):
    """Words of a test as if it had been told `--emulated`, where TEGULA_TEST_PLUGIN names a plugin (as the programs of
    this label take it): that one, and files of its folder. scripts/gpu-check is tried so, with the tests that it runs."""
    plugin = os.environ.get("TEGULA_TEST_PLUGIN", "none")
    if plugin == "none" or "--emulated" in sys.argv:
        return []
    return ["--emulated", plugin, *(os.path.join(os.path.dirname(plugin), name) for name in beside)]


class Command:
    def __init__(self, build, emulated=None, mib=256):
        self.build, self.emulated, self.mib = os.path.abspath(build), emulated and os.path.abspath(emulated), mib
        self.tegula = os.path.join(self.build, "cli", "tegula")
        self.problems = []

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)
            print(f"NOT: {what}", flush=True)

    def there(self):
        """A device; else why not is printed."""
        if self.emulated:
            return True
        done = subprocess.run([os.path.join(self.build, "tests", "gpu", "gpu_device"), "--there"], text=True,
                              capture_output=True, check=False)
        if done.returncode == 77:
            print(done.stdout.strip())
        return done.returncode != 77

    def environment(self, order=None):
        env = dict(os.environ)
        if self.emulated:
            env["TEGULA_CUDA_PLUGIN"] = self.emulated
            env["TEGULA_EMULATED"] = f"mib={self.mib}" + ("," + order if order else "")
        return env

    def run(self, *words, verb="run", order=None, more=None):
        """(exit code, the last JSON object, stderr); `more` of the environment"""
        done = subprocess.run([self.tegula, verb, "--json", *words], text=True, capture_output=True, check=False,
                              env={**self.environment(order), **(more or {})})
        try:
            last = json.loads(done.stdout)
        except ValueError:
            lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            last = lines[-1] if lines else {}
        return done.returncode, last, done.stderr

    def steps(self, *steps):
        for step in steps:
            before = len(self.problems)
            step()
            print(f"{'ok  ' if len(self.problems) == before else 'FAIL'} {step.__name__}", flush=True)
        return 1 if self.problems else 0


@contextlib.contextmanager
def own_folder():
    """A folder to work in that goes in the end, and in it what tegula keeps of devices."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TEGULA_CACHE"] = os.path.join(folder, "cache")
        yield folder


def read(path):
    """(shape, numbers) of a NumPy file."""
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack_from("<H", data, 8)
    head = eval(data[10:10 + n].decode(), {"__builtins__": {}})  # pylint: disable=eval-used
    numbers = array.array(CODES[head["descr"]])
    numbers.frombytes(data[10 + n:])
    return head["shape"], numbers


def pixels(tif):
    """The numbers of a TIFF of our own writer: uncompressed tiles of float32, uint8 or uint16, one sample. (The command
    itself reads OME-TIFF only where it was built with libxml2.)"""
    with open(tif, "rb") as f:
        data = f.read()
    assert data[:2] == b"II", data[:4]
    big = data[2] == 43
    word, entry, inline = ("<Q", "<HHQ", 8) if big else ("<I", "<HHI", 4)
    at = struct.unpack_from(word, data, 8 if big else 4)[0]
    n, = struct.unpack_from("<Q" if big else "<H", data, at)
    at += 8 if big else 2
    tags = {}
    for i in range(n):
        here = at + (4 + 2 * inline) * i
        tag, kind, count = struct.unpack_from(entry, data, here)
        size, code = {3: (2, "H"), 4: (4, "I"), 16: (8, "Q")}.get(kind, (0, ""))
        if size:
            here += 4 + inline
            where = here if size * count <= inline else struct.unpack_from(word, data, here)[0]
            tags[tag] = struct.unpack_from(f"<{count}{code}", data, where)
    (w,), (h,), (tw,), (th,) = (tags[t] for t in (256, 257, 322, 323))
    code = {(32, 3): "f", (16, 1): "H", (8, 1): "B"}[tags[258][0], tags.get(339, (1,))[0]]
    across, out = (w + tw - 1) // tw, array.array(code, bytes(tags[258][0] // 8 * w * h))
    for i, offset in enumerate(tags[324]):
        y0, x0 = i // across * th, i % across * tw
        for y in range(y0, min(y0 + th, h)):
            n = min(tw, w - x0)
            row = offset + out.itemsize * (y - y0) * tw
            out[y * w + x0:y * w + x0 + n] = array.array(code, data[row:row + out.itemsize * n])
    return out


def distance(a, b):
    """Relative L2; infinite for another number of elements, or one that is no number."""
    if len(a) != len(b) or not all(map(math.isfinite, a)):
        return math.inf
    of = sum(y * y for y in b)
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / of) if of else math.inf
