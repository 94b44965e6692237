#!/usr/bin/env python3
"""--on-bad-tile, and the promise that damage never ends in exit 0: `bad_tiles.py TEGULA`.

An image of deflate tiles, one of them damaged, and one large deflate strip damaged in its middle:
`stop` ends in 65 without an output; `fill` gives every other pixel, lists the region, ends in 65
with the output in place, and gives the same bytes when it is killed on the way and goes on. A bit
that still decodes is seen in every budget and every part of the image. Then each codec's data are
flipped and cut, byte by byte. Standard library alone."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import hostile_made
import seeds

SIDE, TILE = 192, 32


class Check:
    def __init__(self, tegula, folder):
        self.tegula, self.folder, self.failed, self.n = tegula, folder, 0, 0

    def that(self, ok, what):
        self.n += 1
        if not ok:
            self.failed += 1
            print("not so:", what)

    def run(self, *args, env=None):
        r = subprocess.run([self.tegula, *args, "--threads", "2"], cwd=self.folder, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=120, env={**os.environ, **(env or {})})
        return r.returncode, r.stdout, r.stderr

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(data)

    def names(self, start):
        return sorted(n for n in os.listdir(self.folder) if n.startswith(start))

    def clean(self, start):
        for n in self.names(start):
            os.remove(os.path.join(self.folder, n))


def tiled(bad=None, code=8):
    """(file, where the packed data of each tile lie): SIDE x SIDE, tiles of TILE."""
    t = seeds.Tiff()
    blocks = [seeds.PACK[code](seeds.pixels(TILE * TILE, k + 1)) for k in range((SIDE // TILE) ** 2)]
    if bad is not None:
        b = bytearray(blocks[bad])
        b[len(b) // 2] ^= 0x55
        blocks[bad] = bytes(b)
    at = [t.add(b) for b in blocks]
    t.directory({256: (4, SIDE), 257: (4, SIDE), 258: (3, 8), 259: (3, code), 262: (3, 1), 277: (3, 1), 322: (3, TILE),
                 323: (3, TILE), 324: (4, at), 325: (4, [len(b) for b in blocks])})
    return bytes(t.out)


def strip(height, width, cut):
    """One deflate strip, damaged behind about `cut` of its rows."""
    data = b"".join(bytes((x * 7 + y * 13 + (x * y >> 5)) & 255 for x in range(width)) for y in range(height))
    z = zlib.compressobj(6)
    head = z.compress(data[:int(height * cut) * width]) + z.flush(zlib.Z_FULL_FLUSH)
    tail = b"\xff" * 64  # an invalid block type
    t = seeds.Tiff()
    at = t.add(head + tail)
    t.directory(hostile_made.tags(width, height, at, len(head + tail), 8))
    return bytes(t.out), data


def pixels_of(npy):
    return npy[10 + int.from_bytes(npy[8:10], "little"):]


def tiles(c):
    bad = 8  # row 1, column 2
    c.write("good.tif", tiled())
    c.write("bad.tif", tiled(bad))
    c.run("copy", "good.tif", "-o", "good.npy")
    good = pixels_of(c.read("good.npy"))
    code, _, err = c.run("copy", "bad.tif", "-o", "out.npy")
    c.that(code == 65 and "bad.tif" in err and "tile 8" in err, f"copy stops: {code} {err}")
    c.that(c.names("out") == [], f"copy leaves nothing: {c.names('out')}")
    code, _, err = c.run("copy", "bad.tif", "-o", "out.npy", "--on-bad-tile", "fill")
    c.that(code == 65 and "out.npy.errors.json" in err, f"copy fills: {code} {err}")
    got = pixels_of(c.read("out.npy"))
    box = {(y, x) for y in range(TILE, 2 * TILE) for x in range(2 * TILE, 3 * TILE)}
    c.that(all(got[y * SIDE + x] == (0 if (y, x) in box else good[y * SIDE + x])
               for y in range(SIDE) for x in range(SIDE)), "every pixel but those of the bad tile, which are 0")
    listed = json.loads(c.read("out.npy.errors.json"))
    c.that([{k: r[k] for k in ("plane", "y0", "y1", "x0", "x1")} for r in listed["regions"]] ==
           [{"plane": 0, "y0": 32, "y1": 64, "x0": 64, "x1": 96}] and "deflate" in listed["regions"][0]["reason"],
           f"the list: {listed}")
    c.clean("out")


def network(c):
    conv = hostile_made.node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    c.write("net.onnx", hostile_made.model([conv], [hostile_made.floats("w", [1, 1, 3, 3])], hostile_made.X))
    args = ["run", "-m", "net.onnx", "bad.tif", "-q", "--on-bad-tile", "fill", "--tile", "32", "-o"]
    code, _, err = c.run("run", "-m", "net.onnx", "bad.tif", "-q", "-o", "stop.tif", "--tile", "32",
                         env={"TEGULA_SYNC_TILES": "1"})
    c.that(code == 65 and not os.path.exists(os.path.join(c.folder, "stop.tif")), f"run stops: {code} {err}")
    code, out, err = c.run(*args, "whole.tif", "--json")
    c.that(code == 65 and '"bad_regions":1' in out and '"event":"done"' in out, f"run fills: {code} {out} {err}")
    whole = c.read("whole.tif")
    receipt = json.loads(c.read("whole.tif.tegula.json"))
    c.that(receipt["on_bad_tile"] == "fill" and receipt["bad_regions"] == 1, "the receipt says so")
    c.that(c.names("whole") == ["whole.tif", "whole.tif.errors.json", "whole.tif.tegula.json"], f"{c.names('whole')}")
    errors = c.read("whole.tif.errors.json")
    more = hostile_made.node("Neg", ["y"], ["z"])
    c.write("two.onnx", hostile_made.model([conv, more], [hostile_made.floats("w", [1, 1, 3, 3])], hostile_made.X,
                                          [hostile_made.port(n, ["N", "C", "H", "W"]) for n in "yz"]))
    for out, net in (("array.npy", "net.onnx"), ("arrays/", "two.onnx")):
        code, said, err = c.run("run", "-m", net, "bad.tif", "--on-bad-tile", "fill", "-o", out, "--json")
        c.that(code == 65 and '"bad_regions":1' in said and out + ".errors.json" in err, f"{out}: {code} {said} {err}")
        c.that(json.loads(c.read(out + ".errors.json")) == json.loads(errors), f"{out}: the list")
        c.that(not os.path.exists(os.path.join(c.folder, out + ".errors.partial")), f"{out}: left")
        code, _, err = c.run("run", "-m", net, "good.tif", "-q", "-y", "-o", out)
        c.that(code == 0 and not os.path.exists(os.path.join(c.folder, out + ".errors.json")), f"{out}: an old list stays")
    kills = refused = 0
    for k in range(1, 400, 7):
        c.clean("part")
        code, _, _ = c.run(*args, "part.tif", env={"TEGULA_FAIL_IO": f"{k}:kill", "TEGULA_SYNC_TILES": "1"})
        if code == 65:
            break
        kills += 1
        left = c.names("part.tif.errors.partial")
        if left:
            code, _, err = c.run("run", "-m", "net.onnx", "bad.tif", "-q", "--tile", "32", "-o", "part.tif")
            # refused, or begun anew when no tile was safe yet; never gone on with
            c.that(code == 65 and ("--on-bad-tile fill" in err or "tile 8" in err), f"stop after fill: {code} {err}")
            refused += "--on-bad-tile fill" in err
        ended = c.names("part.tif.journal") == [] and "part.tif" in c.names("part.tif")  # killed behind its end
        code, _, err = c.run(*args, "part.tif")
        c.that(code == (73 if ended else 65), f"goes on after kill {k}: {code} {err}")
        c.that(c.read("part.tif") == whole and c.read("part.tif.errors.json").replace(b"part", b"whole") == errors,
               f"the same bytes after kill {k}")
    c.that(kills > 5 and refused > 0, f"killed {kills} times, refused {refused}")
    if os.path.exists(os.path.join(c.folder, "stop.tif.journal")):
        code, _, err = c.run(*args, "stop.tif")
        c.that(code == 65 and c.read("stop.tif") == whole, "a run that stopped goes on with fill")
    code, _, _ = c.run("run", "-m", "net.onnx", "good.tif", "-q", "-y", "-o", "whole.tif")
    c.that(code == 0 and c.names("whole") == ["whole.tif", "whole.tif.tegula.json"],
           f"a good run does not keep the old list: {c.names('whole')}")


def streams(c):
    """A strip is there or not, in every budget: rows above the damage may be wrong as well."""
    height, width = 3000, 700
    data, _ = strip(height, width, 0.5)
    c.write("strip.tif", data)
    small = "48MiB" if "ASAN_OPTIONS" in os.environ else "6MiB"  # a sanitizer's process alone has 20
    for ram in ("64MiB", small):
        code, _, err = c.run("copy", "strip.tif", "-o", "s.npy", "-y", "--on-bad-tile", "fill", "--ram", ram)
        c.that(code == 65 and "s.npy.errors.json" in err, f"a strip: {code} {err}")
        got, listed = pixels_of(c.read("s.npy")), json.loads(c.read("s.npy.errors.json"))["regions"]
        c.that(len(listed) == 1 and (listed[0]["y0"], listed[0]["y1"]) == (0, height), f"{listed}")
        c.that(len(got) == height * width and not any(got), f"{ram}: zeros, all of it")
        c.clean("s.npy")


def places(tiff):
    """(offset, bytes) of each tile of a classic little-endian TIFF."""
    at, = struct.unpack_from("<I", tiff, 4)
    n, = struct.unpack_from("<H", tiff, at)
    tag = {t: (count, v) for t, _, count, v in struct.iter_unpack("<HHII", tiff[at + 2:at + 2 + 12 * n])}
    lists = [struct.unpack_from(f"<{tag[t][0]}I", tiff, tag[t][1]) for t in (324, 325)]
    return list(zip(*lists))


def flipped(tiff, tile):
    """A bit of a deflate tile such that as many pixels come out, and others."""
    at, n = places(tiff)[tile]
    good = zlib.decompress(tiff[at:at + n])
    for k in range(n // 4, n - 8):
        bad = bytearray(tiff)
        bad[at + k] ^= 1
        z = zlib.decompressobj(-15)
        try:
            out = z.decompress(bytes(bad[at + 2:at + n]))
        except zlib.error:
            continue
        if z.eof and len(out) == len(good) and out != good:
            return bytes(bad)
    raise ValueError("no such bit")


def seals(c):
    """Tiles of 256 rows, of which the lower ones reach below the image."""
    height, width = 300, 5000
    noise = random.Random(3).randbytes(1 << 16)
    rows = b"".join((noise[y * 7:] + noise)[:width] for y in range(height))
    head = str({"descr": "|u1", "fortran_order": False, "shape": (height, width)}).encode().ljust(117) + b"\n"
    c.write("seal.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + rows)
    small = "64MiB" if "ASAN_OPTIONS" in os.environ else "12MiB"
    rams = (["--ram", "4GiB"], ["--ram", small])
    for code in ("deflate", "zstd"):
        c.run("copy", "seal.npy", "-o", "seal.tif", "--compress", code, "-q", "-y")
        tiff = c.read("seal.tif")
        for tile, region in ((21, "270:290,300:400"), (1, "0:40,300:400")):
            at, n = places(tiff)[tile]
            bad = [flipped(tiff, tile)] if code == "deflate" else []
            for k in range(12, n - 4, n // 3) if code == "zstd" else ():
                bad.append(tiff[:at + k] + bytes([tiff[at + k] ^ 4]) + tiff[at + k + 1:])
            for data in bad:
                c.write("seal_bad.tif", data)
                for ram in rams:
                    for more in ([], ["--roi", region]):
                        rc, _, err = c.run("copy", "seal_bad.tif", "-o", "seal_bad.npy", "-y", "-q", *ram, *more)
                        c.that(rc == 65, f"{code}, tile {tile}, {ram} {more}: exit {rc} {err}")
                    rc, _, err = c.run("run", "-m", "net.onnx", "seal_bad.tif", "-o", "seal_run.npy", "-y", "-q",
                                       "--normalize", "minmax", "--roi", region, *ram)
                    c.that(rc == 65, f"run, {code}, tile {tile}, {ram}: exit {rc} {err}")
                given = []
                for ram in rams:
                    rc, _, err = c.run("run", "-m", "net.onnx", "seal_bad.tif", "-o", "seal_fill.npy", "-y", "-q",
                                       "--on-bad-tile", "fill", *ram)
                    given.append((rc, c.read("seal_fill.npy"), c.read("seal_fill.npy.errors.json")))
                c.that(given[0] == given[1] and given[0][0] == 65, f"fill, {code}, tile {tile}: {given[0][2]} {given[1][2]}")
            c.clean("seal_")


def stack(c):
    """In a stack of files the plane is the stack's, the reason names the file."""
    os.mkdir(os.path.join(c.folder, "many"))
    for k, data in enumerate((tiled(), tiled(4), tiled())):
        c.write(f"many/p{k}.tif", data)
    code, _, err = c.run("copy", "many", "-o", "m.npy", "--on-bad-tile", "fill")
    listed = json.loads(c.read("m.npy.errors.json"))["regions"]
    c.that(code == 65 and len(listed) == 1 and listed[0]["plane"] == 1 and "p1.tif" in listed[0]["reason"],
           f"a stack: {code} {err} {listed}")


def nonfinite(c):
    t = seeds.Tiff()
    values = [1.0] * 4096
    values[7] = values[900] = float("nan")
    values[4000] = float("inf")
    at = t.add(struct.pack("<4096f", *values))
    t.directory({**hostile_made.tags(64, 64, at, 16384), 258: (3, 32), 339: (3, 3)})
    c.write("nan.tif", bytes(t.out))
    c.write("relu.onnx", hostile_made.model([hostile_made.node("Identity", ["x"], ["i"]), hostile_made.node(
        "Add", ["i", "x"], ["y"])], [], hostile_made.X))
    code, out, err = c.run("run", "-m", "relu.onnx", "nan.tif", "-o", "nf.tif", "--json")
    c.that(code == 0 and '"nonfinite":3' in out and "3 values" in err, f"NaN and infinity: {code} {out} {err}")
    c.that(json.loads(c.read("nf.tif.tegula.json"))["nonfinite"] == 3, "the receipt counts them")
    code, out, err = c.run("run", "-m", "relu.onnx", "nan.tif", "-o", "nf8.tif", "--dtype", "uint8", "--json")
    c.that(code == 0 and '"nonfinite":3' in out and "clipped" not in err, f"NaN and infinity in uint8: {code} {out} {err}")


def untrusted(c):
    """TEGULA_BLOCK_UNTRUSTED=1: what was fuzzed too little, and what libtiff decodes, is refused; the rest is read."""
    env, refuses = {"TEGULA_BLOCK_UNTRUSTED": "1"}, "TEGULA_BLOCK_UNTRUSTED refuses such"
    t = seeds.Tiff()
    t.directory(hostile_made.tags(8, 8, t.add(b"\xfd7zXZ\0" + b"\0" * 90), 96, 34925))
    c.write("lzma.tif", bytes(t.out))
    c.write("p.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    t = seeds.Tiff()
    xml = seeds.OME.replace(b"made.ome.tif", b"other.ome.tif").replace(b">urn:uuid:1<", b">urn:uuid:2<")
    seeds.page(t, 9, 7, t270=(2, xml + b"\0"))
    c.write("set.ome.tif", bytes(t.out))
    t = seeds.Tiff()
    t.directory({**hostile_made.tags(8, 8, t.add(b"\0" * 16), 16, 32766), 258: (3, 2)})
    c.write("next.tif", bytes(t.out))
    c.write("clip.y4m", b"YUV4MPEG2 W4 H4 F1:1 C420\n" + (b"FRAME\n" + b"\0" * 24) * 2)
    for name in ("lzma.tif", "p.png", "set.ome.tif"):
        code, _, err = c.run("copy", name, "-o", "u.npy", env=env)
        c.that(code != 0 and refuses not in err, f"{name}: {code} {err}")
    for words in (("copy", "next.tif", "-o", "u.npy"), ("estimate", "data", "clip.y4m")):
        code, _, err = c.run(*words, env=env)
        c.that(code == 65 and refuses in err or "this build" in err, f"{words}: {code} {err}")
        code, _, err = c.run(*words)
        c.that(refuses not in err, f"{words} without it: {err}")
    code, _, err = c.run("copy", "good.tif", "-o", "u.npy", env=env)
    c.that(code == 0, f"deflate is fuzzed: {code} {err}")


def sweep(c):
    """Flip and cut packed data. What has a checksum or a length must be refused; PackBits, LZW and
    stored data have none for values, there a flip may read as other pixels: only never crash."""
    checked = {"deflate": 8}
    loose = {"none": 1, "lzw": 5, "packbits": 32773, "zstd": 50000}  # the frame of seeds.py has no checksum
    for name, code in {**checked, **loose}.items():
        t = seeds.Tiff()
        data = seeds.PACK[code](seeds.pixels(900))
        at = t.add(data)
        t.directory(hostile_made.tags(30, 30, at, len(data), code))
        file, silent = bytes(t.out), 0
        for k in range(0, len(data), max(1, len(data) // 40)):
            bad = bytearray(file)
            bad[at + k] ^= 1 << (k % 8)
            c.write("flip.tif", bytes(bad))
            rc, _, err = c.run("copy", "flip.tif", "-o", "flip.npy", "-y", "-q")
            silent += rc == 0
            c.that(rc in (0, 65), f"{name}, bit of byte {k}: exit {rc} {err}")
        c.that(silent == 0 or name in loose, f"{name}: {silent} flips went unnoticed")
        step = max(1, len(file) // 40)
        for n in range(1, len(file), step):
            c.write("cut.tif", file[:n])
            rc, _, err = c.run("copy", "cut.tif", "-o", "cut.npy", "-y", "-q")
            c.that(rc == 65, f"{name} cut to {n} of {len(file)} bytes: exit {rc} {err}")
        c.that(c.names("cut.npy") == [], "nothing left behind")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        c = Check(os.path.abspath(sys.argv[1]), tmp)
        for part in (tiles, network, streams, seals, stack, nonfinite, untrusted, sweep):
            part(c)
    print(f"{c.n} checks, {c.failed} failed")
    return 1 if c.failed or not c.n else 0


if __name__ == "__main__":
    sys.exit(main())
