"""What the crash tests share: inputs, a network, running the command, reading its journal.

Standard library only. Pictures and networks are drawn here, byte by byte, so that the tests need
neither shared data nor a codec. Sources: TIFF 6.0 for the file; onnx.proto (field numbers) for
the network; engine/out/journal_file.h for the slots."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

SLOT_MAGIC = 0x746F6C732D6A6774
SLOT = struct.Struct("<5Q QQII QQII Q4I 4I 2I")  # engine/out/journal_file.h


def _crc_table():
    table = []
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
        table.append(c)
    return table


CRC_TABLE = _crc_table()


def crc32c(data):
    """Castagnoli, reflected (RFC 3720, appendix B.4)."""
    c = 0xFFFFFFFF
    for b in data:
        c = c >> 8 ^ CRC_TABLE[(c ^ b) & 255]
    return c ^ 0xFFFFFFFF


# ---- Inputs ---------------------------------------------------------------------------------

def tiff_bytes(planes, bits, kind, packed=False):
    """Classic TIFF, one strip per page. planes: [(width, height, bytes)]; kind 1 uint, 3 float;
    packed: deflate."""
    out = bytearray(b"II*\0" + struct.pack("<I", 0))
    link = 4
    for width, height, data in planes:
        at = len(out)
        data = zlib.compress(data, 1) if packed else data
        out += data
        out += b"\0" * (len(out) % 2)
        codec = 8 if packed else 1
        tags = [(256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, codec), (262, 3, 1),
                (273, 4, at), (277, 3, 1), (278, 4, height), (279, 4, len(data)), (339, 3, kind)]
        struct.pack_into("<I", out, link, len(out))
        out += struct.pack("<H", len(tags))
        for tag, form, value in tags:
            out += struct.pack("<HHII", tag, form, 1, value)
        link = len(out)
        out += struct.pack("<I", 0)
    return bytes(out)


def picture(path, width, height, planes=1, kind="uint16", seed=1, packed=False):
    """Blocks of noise over a ramp: neither constant nor incompressible."""
    rng = random.Random(seed)
    pages = []
    for _ in range(planes):
        rows = []
        noise = [rng.randrange(0, 4000) for _ in range(width * 3)]
        for y in range(height):
            at = rng.randrange(width)
            line = noise[at:at + width]
            rows.append([v + 13 * (y % 97) for v in line])
        flat = [v for r in rows for v in r]
        code, bits, sample = {"uint16": ("H", 16, 1), "float32": ("f", 32, 3)}[kind]
        pages.append((width, height, struct.pack("<%d%s" % (len(flat), code), *flat)))
    with open(path, "wb") as f:
        f.write(tiff_bytes(pages, bits, sample, packed))
    return path


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number, value):
    """One protobuf field: an int as a varint, bytes, text or a message with its length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, str):
        value = value.encode()
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _tensor(name, dims, values):
    return (b"".join(_field(1, d) for d in dims) + _field(2, 1) + _field(8, name)
            + _field(9, struct.pack("<%df" % len(values), *values)))


def _ints(name, values):
    return _field(5, _field(1, name) + b"".join(_field(8, v) for v in values) + _field(20, 7))


def _int(name, value):
    return _field(5, _field(1, name) + _field(3, value) + _field(20, 2))


def _node(op, inputs, output, attributes=b""):
    return _field(1, b"".join(_field(1, i) for i in inputs) + _field(2, output) + _field(3, output)
                  + _field(4, op) + attributes)


def _value(name, channels):
    dims = b"".join(_field(1, d) for d in
                    (_field(1, 1), _field(1, channels), _field(2, name + "h"), _field(2, name + "w")))
    return _field(1, name) + _field(2, _field(1, _field(1, 1) + _field(2, dims)))


def upscaler(path, width=16, seed=2):
    """A small x2 network: two convolutions, ReLU, DepthToSpace."""
    rng = random.Random(seed)

    def weights(n):
        return [rng.uniform(-0.2, 0.2) for _ in range(n)]
    conv = _ints("kernel_shape", [3, 3]) + _ints("pads", [1, 1, 1, 1])
    graph = (_node("Conv", ["x", "w0", "b0"], "a", conv) + _node("Relu", ["a"], "r")
             + _node("Conv", ["r", "w1", "b1"], "c", conv)
             + _node("DepthToSpace", ["c"], "y", _int("blocksize", 2)) + _field(2, "upscaler")
             + _field(5, _tensor("w0", [width, 1, 3, 3], weights(width * 9)))
             + _field(5, _tensor("b0", [width], weights(width)))
             + _field(5, _tensor("w1", [4, width, 3, 3], weights(width * 36)))
             + _field(5, _tensor("b1", [4], weights(4)))
             + _field(11, _value("x", 1)) + _field(12, _value("y", 1)))
    with open(path, "wb") as f:
        f.write(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13)))
    return path


def normed(path, width=16, norms=3, kernel=7, seed=4, far=0):
    """Operators that read the whole image: instance norms, and a squeeze-excite before the last one. Its convolutions
    cost enough that a plan keeps what they make, from one stage to the next. `far`: the last stage also reads the image
    through a convolution of that many pixels, farther ahead than what was kept."""
    rng = random.Random(seed)

    def weights(n):
        return [rng.uniform(-0.3, 0.3) for _ in range(n)]

    nodes, tensors, at = [], [], "x"

    def conv(name, src, inside, outside, kernel):
        pads = [kernel // 2] * 4
        nodes.append(_node("Conv", [src, name + "w", name + "b"], name,
                           _ints("kernel_shape", [kernel] * 2) + _ints("pads", pads)))
        tensors.append(_tensor(name + "w", [outside, inside, kernel, kernel], weights(outside * inside * kernel * kernel)))
        tensors.append(_tensor(name + "b", [outside], weights(outside)))
        return name

    def pointwise(op, name, *src):
        nodes.append(_node(op, list(src), name))
        return name

    for k in range(norms):
        at = conv("c%d" % k, at, width if k else 1, width, kernel)
        if k == norms - 1:  # the weights of channels come of their means
            s = conv("s0", pointwise("GlobalAveragePool", "g", at), width, 4, 1)
            s = conv("s1", pointwise("Relu", "sr", s), 4, width, 1)
            at = pointwise("Mul", "m", at, pointwise("Sigmoid", "ss", s))
        tensors.append(_tensor("n%ds" % k, [width], [1 + w for w in weights(width)]))
        tensors.append(_tensor("n%db" % k, [width], weights(width)))
        at = pointwise("Relu", "r%d" % k, pointwise("InstanceNormalization", "n%d" % k, at, "n%ds" % k, "n%db" % k))
    if far:
        at = pointwise("Add", "both", at, conv("far", "x", 1, width, far))
    last = 1 if far else 3
    nodes.append(_node("Conv", [at, "lastw", "lastb"], "y", _ints("kernel_shape", [last] * 2) + _ints("pads", [last // 2] * 4)))
    tensors += [_tensor("lastw", [1, width, last, last], weights(width * last ** 2)), _tensor("lastb", [1], weights(1))]
    graph = (b"".join(nodes) + _field(2, "normed") + b"".join(_field(5, t) for t in tensors)
             + _field(11, _value("x", 1)) + _field(12, _value("y", 1)))
    with open(path, "wb") as f:
        f.write(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13)))
    return path


def two_outputs(path, width=16, seed=6):
    """The first output comes of the stage that gathers the means which the second one needs."""
    rng = random.Random(seed)
    nodes, tensors = [], []

    def conv(name, src, inside, outside, kernel):
        for end, dims in (("w", [outside, inside, kernel, kernel]), ("b", [outside])):
            n = outside * (inside * kernel ** 2 if end == "w" else 1)
            tensors.append(_tensor(name + end, dims, [rng.uniform(-0.3, 0.3) for _ in range(n)]))
        nodes.append(_node("Conv", [src, name + "w", name + "b"], name,
                           _ints("kernel_shape", [kernel] * 2) + _ints("pads", [kernel // 2] * 4)))
        return name

    a = conv("a", "x", 1, width, 7)
    tensors.extend(_tensor("n" + end, [width], [rng.uniform(0.5, 1) for _ in range(width)]) for end in "sb")
    nodes.append(_node("InstanceNormalization", [a, "ns", "nb"], "n"))
    d = conv("d", "n", width, width, 7)
    conv("y", d, width, 1, 1)
    nodes.append(_node("GlobalAveragePool", [d], "g"))
    nodes.append(_node("Mul", [d, conv("c", "g", width, width, 1)], "m"))
    conv("z", "m", width, 1, 1)
    graph = (b"".join(nodes) + _field(2, "two_outputs") + b"".join(_field(5, t) for t in tensors)
             + _field(11, _value("x", 1)) + _field(12, _value("y", 1)) + _field(12, _value("z", 1)))
    with open(path, "wb") as f:
        f.write(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13)))
    return path


def looking(path, width=64, patch=4, seed=5):
    """Patches of pixels as tokens, each of which looks at all others; their image again."""
    rng = random.Random(seed)
    nodes, tensors = [], []

    def tensor(name, *dims):
        n = 1
        for d in dims:
            n *= d
        tensors.append(_tensor(name, list(dims), [rng.uniform(-0.2, 0.2) for _ in range(n)]))
        return name

    def longs(name, *values):
        tensors.append(_field(1, len(values)) + _field(2, 7) + _field(8, name) + _field(9, struct.pack("<%dq" % len(values), *values)))
        return name

    def add(op, name, *src, attributes=b""):
        nodes.append(_node(op, list(src), name, attributes))
        return name

    steps = _ints("kernel_shape", [patch] * 2) + _ints("strides", [patch] * 2)
    turned = _ints("perm", [0, 2, 1])
    p = add("Conv", "p", "x", tensor("pw", width, 1, patch, patch), attributes=steps)
    flat = longs("flat", 0, width, -1)
    q, k, v = (add("Reshape", n + "f", add("Conv", n, p, tensor(n + "w", width, width, 1, 1)), flat) for n in "qkv")
    weights = add("Softmax", "w", add("MatMul", "s", add("Transpose", "qt", q, attributes=turned), k), attributes=_int("axis", 2))
    looks = add("MatMul", "o", weights, add("Transpose", "vt", v, attributes=turned))
    image = add("Reshape", "i", add("Transpose", "ot", looks, attributes=turned), add("Shape", "shape", p))
    add("ConvTranspose", "y", add("Add", "sum", image, p), tensor("yw", width, 1, patch, patch), attributes=steps)
    graph = (b"".join(nodes) + _field(2, "looking") + b"".join(_field(5, t) for t in tensors)
             + _field(11, _value("x", 1)) + _field(12, _value("y", 1)))
    with open(path, "wb") as f:
        f.write(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13)))
    return path


# ---- Running --------------------------------------------------------------------------------

def uses_scratch(lab, args):
    """The plan of this run decodes its input into --scratch (else the test tests nothing)."""
    r = lab.run(["plan"] + args[1:] + ["--json"])
    check(r.code == 0 and r.done()["scratch"]["used"], "no scratch is used: %s" % r)
    return args


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


class Failed(Exception):
    """A promise was broken; the text says which."""


def check(truth, text):
    if not truth:
        raise Failed(text)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def done(self):
        """The last line of --json."""
        lines = self.out.strip().splitlines()
        check(lines, "no line on stdout; stderr: " + self.err)
        return json.loads(lines[-1])

    def __str__(self):
        return "exit %s: %s" % (self.code, self.err.strip()[-400:])


class Lab:
    """A folder to work in, and the command under test."""

    def __init__(self, argv, base=None):
        self.tegula = os.path.abspath(argv[1])
        self.source = os.path.abspath(argv[2])
        self.seed = int(os.environ.get("TEGULA_SEED") or time.time_ns() % 1000000)
        self.rng = random.Random(self.seed)
        self.dir = tempfile.mkdtemp(prefix="tegula-crash-", dir=base)
        self.denoiser = os.path.join(self.source, "models", "tegula_denoise.onnx")
        print("seed %d (TEGULA_SEED=%d repeats it)" % (self.seed, self.seed), flush=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def env(self, extra):
        kept = ("TEGULA_LEAKS", "TEGULA_ISA")  # what a whole suite is run with
        env = {k: v for k, v in os.environ.items() if not k.startswith("TEGULA_") or k in kept}
        env.setdefault("TEGULA_LEARN", "no")  # a long run would end with operations more
        env.update({k: str(v) for k, v in (extra or {}).items()})
        return env

    def start(self, args, env=None, **more):
        return subprocess.Popen([self.tegula] + args, env=self.env(env), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def wait(self, process, limit=120):
        out, err = process.communicate(timeout=limit)
        return Result(process.returncode, out, err)

    def run(self, args, env=None, limit=120):
        return self.wait(self.start(args, env), limit)

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class Job:
    """One command line, its output path and what the output must be."""

    def __init__(self, lab, name, args, env=None, needs_stats=True):
        self.lab, self.name, self.args = lab, name, args
        self.out = lab.path(name + "-out.tif")
        self.env = {"TEGULA_SYNC_TILES": 5}
        self.env.update(env or {})
        self.needs_stats, self.tiles = needs_stats, None
        self.scratch = args[args.index("--scratch") + 1] if "--scratch" in args else None
        self.is_run = args[0] == "run"

    def command(self, more=()):
        return self.args + ["-o", self.out, "--json"] + list(more)

    def start(self, env=None, more=()):
        return self.lab.start(self.command(more), dict(self.env, **(env or {})))

    def run(self, env=None, more=()):
        return self.lab.wait(self.start(env, more))

    def clean(self):
        for end in ("", ".partial", ".journal", ".tegula.json", ".tegula.json.tmp"):
            if os.path.exists(self.out + end):
                os.unlink(self.out + end)

    def learn(self):
        """The undisturbed run: its bytes, tiles and time; and where a tile begins."""
        self.clean()
        begun = time.monotonic()
        r = self.run()
        self.seconds = time.monotonic() - begun
        check(r.code == 0, "%s: undisturbed: %s" % (self.name, r))
        with open(self.out, "rb") as f:
            self.bytes = f.read()
        self.tiles = r.done().get("tiles")
        plan = json.loads(r.out.splitlines()[0]) if self.is_run else {}
        self.in_flight = plan.get("tiles_in_flight")
        self.clean()
        return self

    def operations(self):
        """How many file operations an undisturbed run does: the first one that never fails."""
        low, high = 0, 8
        while self._dies_at(high):
            low, high = high, 2 * high
        while high - low > 1:
            mid = (low + high) // 2
            if self._dies_at(mid):
                low = mid
            else:
                high = mid
        self.clean()
        return low

    def _dies_at(self, k):
        self.clean()
        return self.run({"TEGULA_FAIL_IO": "%d:kill" % k}).code == -9

    def slot(self):
        """Newest slot of the journal as a dict, or None."""
        best = None
        try:
            with open(self.out + ".journal", "rb") as f:
                data = f.read(12288)
        except FileNotFoundError:
            return None
        for at in (4096, 8192):
            if len(data) < at + SLOT.size:
                continue
            v = SLOT.unpack_from(data, at)
            whole = crc32c(data[at:at + SLOT.size - 4]) == v[23]  # else torn by the kill
            if v[0] == SLOT_MAGIC and whole and (best is None or v[1] > best["sequence"]):
                best = {"sequence": v[1], "tiles": v[2], "bytes": v[3], "stats": v[10], "filled": v[15], "final": v[20]}
        if best:
            best["begun"], = struct.unpack_from("<q", data, 8)
        return best

    def phase(self):
        """Where the killed run was, by what it left."""
        s = self.slot()
        if s is None:
            return "done" if os.path.exists(self.out) else "begin"
        if s["final"]:
            return "rename"
        if s["tiles"] == self.tiles:
            return "finish"
        return "statistics" if self.needs_stats and not s["stats"] else "bands"

    def confirm(self, what):
        """The output is there, byte for byte, with a receipt that can be read and nothing else."""
        with open(self.out, "rb") as f:
            same = f.read() == self.bytes
        check(same, "%s: %s: other bytes than undisturbed" % (self.name, what))
        for end in (".partial", ".journal", ".tegula.json.tmp"):
            check(not os.path.exists(self.out + end), "%s: %s: left %s" % (self.name, what, end))
        left = os.listdir(self.scratch) if self.scratch else []
        check(not left, "%s: %s: left %s in the scratch folder" % (self.name, what, left))
        if self.is_run:
            with open(self.out + ".tegula.json") as f:
                check("methods" in json.load(f), "%s: %s: poor receipt" % (self.name, what))

    def finish(self, what, env=None, more=()):
        """Run to the end and confirm; the result of that run, or None when all was done."""
        if os.path.exists(self.out) and not os.path.exists(self.out + ".journal"):
            r = self.run(env, more)
            check(r.code == 73, "%s: %s: finished output is not 73 but %s" % (self.name, what, r))
            self.confirm(what)
            return None
        r = self.run(env, more)
        check(r.code == 0, "%s: %s: does not go on: %s" % (self.name, what, r))
        self.confirm(what)
        return r.done()


def main(test, argv, in_memory=False):
    """Run test(lab, rest); exit 0, 1 with the broken promise, or 77 when it says so. in_memory:
    work on a memory filesystem, where there is one (thousands of short runs)."""
    lab = Lab(argv, "/dev/shm" if in_memory and os.access("/dev/shm", os.W_OK) else None)
    try:
        code = test(lab, argv[3:])
    except Failed as e:
        print("FAILED: %s" % e, flush=True)
        code = 1
    finally:
        lab.close()
    sys.exit(code or 0)
