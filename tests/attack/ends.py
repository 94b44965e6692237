"""An input that lacks its end, or whose checksums do not hold, is no input that ends in exit 0; and one with
far more data than pixels is not followed for ever, and said so.

    ends.py TEGULA SOURCE_DIR"""
import os
import random
import struct
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "crash"))
from crashlib import check, main, tiff_bytes, upscaler  # noqa: E402


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(data, mebibytes):
    """zlib's format of data and so many MiB of zeros: a full flush ends on a byte and forgets what was before, so
    that a MiB is compressed once and repeated."""
    pack, zeros = zlib.compressobj(9), bytes(1 << 20)
    head = pack.compress(data) + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(zeros) + pack.flush(zlib.Z_FULL_FLUSH)
    check_sum = zlib.adler32(data)
    for _ in range(mebibytes):
        check_sum = zlib.adler32(zeros, check_sum)
    return head + block * mebibytes + pack.flush()[:-4] + struct.pack(">I", check_sum)


def png(width, height, interlaced=0, parts=1, behind=b"", extra=b"", zeros=0, text=b""):
    """Grey noise; its data in so many chunks. behind: pixels too many; zeros: MiB of them; extra: bytes behind the
    data; text: chunks in front of them."""
    rng = random.Random(7)
    if interlaced:
        rows = b""
        for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
            for _ in range(y0, height, dy):
                n = len(range(x0, width, dx))
                rows += (b"\0" + rng.randbytes(n)) if n else b""
    else:
        rows = b"".join(b"\0" + rng.randbytes(width) for _ in range(height))
    data = (bomb(rows, zeros) if zeros else zlib.compress(rows + behind, 9 if behind else 0)) + extra
    step = -(-len(data) // parts)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, interlaced))
            + text + b"".join(chunk(b"IDAT", data[i:i + step]) for i in range(0, len(data), step)) + chunk(b"IEND", b""))


class Desk:
    def __init__(self, lab):
        self.lab, self.out = lab, lab.path("out.tif")
        self.model = upscaler(lab.path("net.onnx"), 4)

    def read(self, name, data, verb="copy", more=(), limit=60):
        with open(self.lab.path(name), "wb") as f:
            f.write(data)
        words = {"copy": ["copy", self.lab.path(name)], "run": ["run", "-m", self.model, self.lab.path(name)]}[verb]
        r = self.lab.run(words + ["-o", self.out, "-y"] + list(more), limit=limit)
        there = os.path.exists(self.out)
        if there:
            os.remove(self.out)
        return r, there

    def good(self, what, name, data, verb="copy", more=()):
        r, there = self.read(name, data, verb, more)
        check(r.code == 0 and there, "%s: %s" % (what, r))
        return r

    def bad(self, what, name, data, verb="copy", more=()):
        r, there = self.read(name, data, verb, more)
        check(r.code == 65 and not there, "%s: %s%s" % (what, r, ", with an output" if there else ""))
        return r


def test_png(lab):
    """Cut anywhere, one bit anywhere."""
    d = Desk(lab)
    rng = random.Random(lab.seed)
    for interlaced in (0, 1):
        for parts in (1, 3):
            whole = png(19, 13, interlaced, parts)
            name = "i%d.png" % interlaced
            d.good("a whole PNG", name, whole)
            d.good("a whole PNG", name, whole, "run")
            d.good("with bytes behind its end", name, whole + b"\0" * 100)
            for cut in [12, 11, 1, 13, 16, 20] + [rng.randrange(1, len(whole) - 60) for _ in range(3)]:
                for verb in ("copy", "run") if cut == 12 else ("copy",):
                    d.bad("PNG interlaced %d in %d parts without its last %d bytes" % (interlaced, parts, cut), name,
                          whole[:-cut], verb)
            first = whole.index(b"IDAT") + 4
            for _ in range(12):
                at = rng.randrange(first, len(whole) - 16)
                data = bytearray(whole)
                data[at] ^= 1 << rng.randrange(8)
                d.bad("PNG interlaced %d in %d parts, a bit of byte %d of %d turned" % (interlaced, parts, at, len(whole)),
                      name, bytes(data))
    note = chunk(b"tEXt", b"Comment\0nobody reads this")
    d.good("a note in front of the pixels", "note.png", png(19, 13, text=note))
    d.bad("a note whose checksum is wrong", "note.png", png(19, 13, text=note[:-1] + bytes([note[-1] ^ 1])))
    d.good("zeros behind the data", "more.png", png(19, 13, 0, 1, extra=b"\0" * 50))
    d.good("a few pixels too many", "more.png", png(19, 13, 0, 1, behind=b"\0" * 5000))
    # Pixels too many are followed to their checksum, as long as they are few bytes of the file.
    many = png(19, 13, 0, 1, behind=b"\0" * 5000)
    at = many.index(b"IDAT") + 4
    n = struct.unpack(">I", many[at - 8:at - 4])[0]
    wrong = bytearray(many[at:at + n])
    wrong[-1] ^= 1
    d.bad("a few pixels too many, the checksum of all wrong", "more.png",
          many[:at - 8] + chunk(b"IDAT", bytes(wrong)) + many[at + n + 4:])
    at = time.monotonic()
    r = d.bad("512 MiB behind the pixels", "more.png", png(19, 13, 0, 2, zeros=512))
    check("far more" in r.err, "no word of what was not read: %s" % r)
    check(time.monotonic() - at < 20, "data without end are followed")


def test_jpeg(lab):
    d = Desk(lab)
    with open(lab.path("grey.tif"), "wb") as f:
        f.write(tiff_bytes([(48, 40, random.Random(3).randbytes(48 * 40))], 8, 1))
    r = lab.run(["copy", lab.path("grey.tif"), "-o", lab.path("grey.jpg"), "-y"])
    if r.code != 0:
        check("JPEG" in r.err or "jpeg" in r.err, "copy to JPEG: %s" % r)
        print("this build is without JPEG", flush=True)
        return
    with open(lab.path("grey.jpg"), "rb") as f:
        jpegs = [f.read()]
    for data in jpegs:
        check(data.endswith(b"\xff\xd9"), "a JPEG that ends otherwise")
        for verb in ("copy", "run"):
            d.good("a whole JPEG", "a.jpg", data, verb)
            d.good("a JPEG with bytes behind its end", "a.jpg", data + b"\0" * 64, verb)
            d.bad("a JPEG without EOI", "a.jpg", data[:-2], verb)
            d.bad("a JPEG with half of EOI", "a.jpg", data[:-1], verb)
            d.bad("a JPEG cut in its data", "a.jpg", data[:-40], verb)


def tiff_of(data, width, height, tiled=True):
    """One tile (or strip) of packed bytes."""
    out = bytearray(b"II*\0" + struct.pack("<I", 0))
    at = len(out)
    out += data + b"\0" * (len(data) % 2)
    tags = [(256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 8), (262, 3, 1), (277, 3, 1)]
    tags += [(322, 4, width), (323, 4, height), (324, 4, at), (325, 4, len(data))] if tiled else [
        (273, 4, at), (278, 4, height), (279, 4, len(data))]
    tags.sort()
    struct.pack_into("<I", out, 4, len(out))
    out += struct.pack("<H", len(tags))
    for tag, form, value in tags:
        out += struct.pack("<HHII", tag, form, 1, value)
    return bytes(out + struct.pack("<I", 0))


def test_surplus(lab):
    """A gigabyte of deflate behind a tile of 64 x 64, as a tile and as rows of a strip."""
    d = Desk(lab)
    pixels = random.Random(5).randbytes(64 * 64)
    gibibyte = bomb(pixels, 1024)
    plain = zlib.compress(pixels, 9)
    wide = random.Random(6).randbytes(4096 * 600)
    for verb in ("copy", "run"):
        for tiled in (True, False):
            what = "%s of a %s" % (verb, "tile" if tiled else "strip")
            r = d.good(what, "plain.tif", tiff_of(plain, 64, 64, tiled), verb)
            check("far more" not in r.err, "%s: a warning for nothing: %s" % (what, r))
            r = d.good(what, "few.tif", tiff_of(zlib.compress(pixels + bytes(4096), 9), 64, 64, tiled), verb)
            check("far more" not in r.err, "%s: a warning for padding: %s" % (what, r))
            at = time.monotonic()
            r = d.good(what, "bomb.tif", tiff_of(gibibyte, 64, 64, tiled), verb)
            check("far more" in r.err, "%s: no word of a gigabyte: %s" % (what, r))
            check(time.monotonic() - at < 10, "%s: a gigabyte was followed: %.1f s" % (what, time.monotonic() - at))
    # A strip that is decoded row by row, since the budget has no room for it, ends as the same one whole.
    budgets = ((),) if "ASAN_OPTIONS" in os.environ else ((), ("--ram", "8MiB"))  # its runtime needs more
    surplus = random.Random(8).randbytes(300_000)  # more than is read at a time, less than is far more
    data = tiff_of(zlib.compress(wide + surplus, 1), 4096, 600, False)
    for more in budgets:
        r = d.good("a strip with 300 kB too many %s" % (more,), "rows.tif", data, "copy", more)
    cut = tiff_of(zlib.compress(wide, 1)[:-3], 4096, 600, False)
    for more in budgets:
        d.bad("a strip whose checksum is cut %s" % (more,), "rows.tif", cut, "copy", more)


def test(lab, rest):
    for one in [globals()[n] for n in rest] or [test_png, test_jpeg, test_surplus]:
        one(lab)
        print("ok  %s" % one.__name__, flush=True)


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
