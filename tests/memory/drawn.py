"""Jobs that nobody chose: small networks as ONNX files, inputs and options, drawn from a
random.Random. The same generator gives the same job."""
import os
import struct
import zlib

import tiffmade
from onnxmade import block, ints, number, varint


def number_attr(name, value):
    return block(1, name) + number(3, value) + number(20, 2)


def real_attr(name, value):
    return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)


def port(name, rank, channels, sides):
    """ValueInfoProto of floats: one sample, channels, then sides; a side of 0 is left open."""
    dims = block(1, number(1, 1)) + block(1, number(1, channels))
    dims += b"".join(block(1, number(1, s) if s else block(2, f"d{i}")) for i, s in enumerate(sides))
    return block(1, name) + block(2, block(1, number(1, 1) + block(2, dims if rank else b"")))


def better_set():
    """avx2, where this machine has it and may use it; the draw itself is the same everywhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            has = " avx2 " in f.read()
    except OSError:
        has = False
    return "avx2" if has and os.environ.get("TEGULA_ISA") != "portable" else "portable"


BETTER = better_set()


class Net:
    """A graph that grows by one operator at a time; each returns the name of its value."""

    def __init__(self, draw, channels, sides):
        self.draw, self.nodes, self.consts, self.n = draw, b"", b"", 0
        self.head = port("x", 4, channels, sides)

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def const(self, dims):
        """Small weights of a few repeated values: how much there is matters here, not what."""
        count = 1
        for d in dims:
            count *= d
        few = struct.pack("<61f", *(self.draw.uniform(-0.05, 0.05) for _ in range(61)))
        name, data = self.name(), (few * (count // 61 + 1))[:4 * count]
        self.consts += block(5, b"".join(number(1, d) for d in dims) + number(2, 1) + block(8, name) + block(9, data))
        return name

    def longs(self, values):
        name = self.name()
        data = struct.pack(f"<{len(values)}q", *values)
        self.consts += block(5, number(1, len(values)) + number(2, 7) + block(8, name) + block(9, data))
        return name

    def node(self, op, sources, *attrs):
        y = self.name()
        self.nodes += block(1, b"".join(block(1, s) for s in sources) + block(2, y) + block(3, y) + block(4, op) +
                            b"".join(block(5, a) for a in attrs))
        return y

    def conv(self, x, from_, to, k):
        return self.node("Conv", [x, self.const([to, from_, k, k]), self.const([to])],
                         ints("kernel_shape", [k, k]), ints("pads", [k // 2] * 4))

    def end(self, path, y, rank, channels, sides):
        y = self.node("Identity", [y])
        graph = self.nodes + block(2, "drawn") + self.consts + block(11, self.head)
        graph += block(12, port(y, rank, channels, sides))
        with open(path, "wb") as f:
            f.write(number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 13)))


def halved_and_doubled(net, x, c):
    """A U: pooled, convolved, transposed back, joined."""
    low = net.node("MaxPool", [x], ints("kernel_shape", [2, 2]), ints("strides", [2, 2]))
    low = net.node("Relu", [net.conv(low, c, 2 * c, 3)])
    up = net.node("ConvTranspose", [low, net.const([2 * c, c, 2, 2])], ints("kernel_shape", [2, 2]),
                  ints("strides", [2, 2]))
    return net.node("Add", [x, up])


def whole_extent(net, x, c):
    """Operators that read all of the image before they give a pixel of it."""
    if net.draw.random() < 0.5:
        return net.node("InstanceNormalization", [x, net.const([c]), net.const([c])], real_attr("epsilon", 1e-5))
    return net.node("Mul", [x, net.node("Sigmoid", [net.node("GlobalAveragePool", [x])])])


def normalised(net, x, c):
    """A row of blocks with an operator each that reads all of the image: as many stages."""
    for _ in range(net.draw.randint(2, 9)):
        y = whole_extent(net, net.conv(x, c, c, 3), c)
        x = net.node("Add", [x, net.node("Relu", [y])]) if net.draw.random() < 0.4 else net.node("Relu", [y])
    return x


class Job:
    """Files in `folder`, and `args` of plan and run without their --ram. `staged`: their networks
    read the whole image many times over."""

    def __init__(self, draw, folder, staged=False):
        self.draw, self.folder, self.staged = draw, folder, staged
        self.kind = draw.choices(["tiff", "strip", "tiles", "png", "npy"], [4, 2, 1, 2, 3])[0]
        self.channels = draw.choice([1, 1, 3]) if self.kind in ("tiff", "png", "npy") else 1
        sides = [(64, 64), (200, 332), (512, 512), (1024, 640), (96, 6000), (3000, 80), (1500, 1500)]
        self.h, self.w = draw.choice(sides[1:4] if staged else sides)
        self.batch = draw.choice([1, 1, 2])
        self.flat = draw.random() < 0.12
        self.sides = draw.choices([(0, 0), (64, 64)], [9, 1])[0] if self.kind != "npy" and not self.flat else (0, 0)
        self.array = self.kind == "npy" or self.flat
        self.png = 0
        self.net = self.make_net()
        self.input = getattr(self, "make_" + self.kind)()
        self.output = os.path.join(folder, "out.npy" if self.array else draw.choice(["out.tif"] * 5 + ["out.png"] * self.png))
        self.args = ["-m", self.net, self.input, "-o", self.output] + self.options()

    def path(self, name):
        return os.path.join(self.folder, name)

    def make_net(self):
        draw, c = self.draw, self.channels
        net, x = Net(draw, c, self.sides), "x"
        wide = draw.choice([4, 8, 16, 24, 48, 64, 128] if not self.staged else [4, 8, 16, 24])
        for _ in range(draw.randint(1, 3 if wide > 24 else 5)):
            y = net.node("Relu", [net.conv(x, c, wide, draw.choice([1, 3, 3, 3, 5]))])
            x = net.node("Add", [x, y]) if c == wide and draw.random() < 0.5 else y
            c = wide
        if draw.random() < 0.3:
            x = halved_and_doubled(net, x, c)
        if self.staged:
            x = normalised(net, x, c)
        elif draw.random() < 0.2:
            x = whole_extent(net, x, c)
        if self.flat:
            x = net.node("Flatten", [net.node("GlobalAveragePool", [x])], number_attr("axis", 1))
            x = net.node("Gemm", [x, net.const([c, 10]), net.const([10])])
            net.end(self.path("net.onnx"), x, 2, 10, [])
        else:
            out = draw.choice([1, 3]) if self.kind != "npy" else 2
            self.png = out == self.channels
            net.end(self.path("net.onnx"), net.conv(x, c, out, 3), 4, out, self.sides)
        return self.path("net.onnx")

    def options(self):
        draw, o = self.draw, []

        def maybe(share, *words):
            if draw.random() < share:
                o.extend(words)
        maybe(0.6, "--threads", str(draw.choice([1, 2, 3, 8, 40])))
        if not self.array:
            if self.sides == (0, 0):
                maybe(0.3, "--tile", draw.choice(["64", "128x512", "256", "1024", "48x300"]))
            if self.output.endswith(".tif"):
                maybe(0.5, "--compress", draw.choice(["zstd", "deflate", "lzw"]))
                maybe(0.2, "--pyramid", "mean")
            maybe(0.4, "--dtype", draw.choice(["uint8", "uint16"] if self.output.endswith(".png") else
                                              ["uint8", "uint16", "float32"]))
        elif self.kind == "npy":
            maybe(0.2, "--tile", "128")
        if self.kind != "npy":
            maybe(0.3, "--normalize", draw.choice(["percentile:1,99", "minmax", "zscore", "scale:1/255,0"]))
            if self.sides == (0, 0) and not self.flat:
                maybe(0.15, "--roi", f"0:{max(40, self.h // 2)},8:{self.w - 8}")
            if self.kind in ("strip", "png") or self.staged:
                maybe(0.3, "--scratch", self.folder)
        maybe(0.15, "--isa", draw.choice(["portable", BETTER]))
        maybe(0.15, "--exact")
        return o

    def rows(self):
        base = tiffmade.texture(self.draw.randint(1, 1 << 20), self.w * self.channels + 997)
        for y in range(self.h):
            yield base[y * 61 % 997:][:self.w * self.channels]

    def make_tiff(self):
        made = tiffmade.Made(self.path("in.tif"), self.w, self.h, self.channels,
                             rows_per_strip=self.draw.choice([1, 16, 64, self.h]))
        with open(made.path, "r+b") as f:
            for y, row in enumerate(self.rows()):
                made.rows(f, y, row)
        return made.path

    def make_strip(self):
        """One compressed strip, or one for some rows."""
        return packed(self.path("in.tif"), self.w, self.h, list(self.rows()), self.draw.choice([self.h, self.h, 50]))

    def make_tiles(self):
        return packed(self.path("in.tif"), self.w, self.h, list(self.rows()), 0, self.draw.choice([64, 256]))

    def make_png(self):
        data = zlib.compress(b"".join(b"\0" + row for row in self.rows()), 1)

        def chunk(name, body):
            return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        head = struct.pack(">IIBBBBB", self.w, self.h, 8, 2 if self.channels == 3 else 0, 0, 0, 0)
        with open(self.path("in.png"), "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
        return self.path("in.png")

    def make_npy(self):
        shape = (self.batch, self.channels, self.h, self.w)
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        with open(self.path("in.npy"), "wb") as f:
            f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head)
            row = struct.pack("<997f", *(self.draw.random() for _ in range(997)))
            left = 4 * self.batch * self.channels * self.h * self.w
            while left > 0:
                left -= f.write(row[:left])
        return self.path("in.npy")


def packed(path, w, h, rows, strip, tile=0):
    """A grey TIFF of deflate strips of `strip` rows, or of square tiles."""
    blocks = []
    if tile:
        pad = -w % tile
        rows = [r + b"\0" * pad for r in rows] + [b"\0" * (w + pad)] * (-h % tile)
        for y in range(0, len(rows), tile):
            blocks += [b"".join(r[x:x + tile] for r in rows[y:y + tile]) for x in range(0, w + pad, tile)]
    else:
        blocks = [b"".join(rows[y:y + strip]) for y in range(0, h, strip)]
    blocks = [zlib.compress(b, 1) for b in blocks]
    at, places = 8, []
    for b in blocks:
        places.append(at)
        at += len(b)
    n, tables = len(blocks), at + at % 2
    tags = [(256, 4, 1, w), (257, 4, 1, h), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, 1)]
    where = (places[0], len(blocks[0])) if n == 1 else (tables, tables + 4 * n)
    if tile:
        tags += [(322, 4, 1, tile), (323, 4, 1, tile), (324, 4, n, where[0]), (325, 4, n, where[1])]
    else:
        tags += [(273, 4, n, where[0]), (278, 4, 1, strip), (279, 4, n, where[1])]
    with open(path, "wb") as f:
        f.write(b"II*\0" + struct.pack("<I", tables + 8 * n) + b"".join(blocks) + b"\0" * (at % 2))
        f.write(struct.pack(f"<{n}I", *places) + struct.pack(f"<{n}I", *map(len, blocks)))
        f.write(struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *t) for t in sorted(tags)))
        f.write(struct.pack("<I", 0))
    return path
