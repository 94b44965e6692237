#!/usr/bin/env python3
"""Makes the seed corpora of the fuzz targets, one folder per target: `seeds.py FOLDER`.

Small valid files of every shape that the parsers know, and dictionaries (TARGET.dict) of words
that a fuzzer would be long in guessing. Standard library alone; the same bytes on every run. Films are what ffmpeg
makes, where it is installed."""
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import weight_files

# ---- TIFF ----------------------------------------------------------------------------------------

def lzw(data, old=False):
    """Literals only, cleared before codes grow beyond 9 bits: LZW that any reader takes. old: in the order of
    bits from before TIFF 5.0."""
    codes = []
    for i, b in enumerate(data):
        if i % 250 == 0:
            codes.append(256)
        codes.append(b)
    codes.append(257)
    bits = "".join(f"{c:09b}"[::-1 if old else 1] for c in codes)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8][::-1 if old else 1], 2) for i in range(0, len(bits), 8))


def lzw_strings(n):
    """A byte, and strings of it that are each a byte longer than the one before: n (n + 1) / 2 bytes."""
    codes = [256, 7] + [258 + i for i in range(n - 1)] + [257]
    bits = "".join(f"{c:09b}" for c in codes)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def packbits(data):
    """A run of the first byte, then literals."""
    out = b""
    n = len(data) - len(data.lstrip(data[:1])) if data else 0
    n = min(n, 128)
    if n > 1:
        out, data = bytes([257 - n, data[0]]), data[n:]
    for i in range(0, len(data), 128):
        part = data[i:i + 128]
        out += bytes([len(part) - 1]) + part
    return out


def zstd(data):
    """One frame, one raw block: no compressor needed."""
    return (b"\x28\xb5\x2f\xfd" + bytes([0xa0]) + struct.pack("<I", len(data)) +
            struct.pack("<I", len(data) << 3 | 1)[:3] + data)


def deflate(data):
    return zlib.compress(data, 9)


def xz(data):
    return lzma.compress(data, check=lzma.CHECK_CRC32, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}])


class Bits:
    """Bits into bytes: JPEG fills a byte from its highest bit, WebP from its lowest."""

    def __init__(self):
        self.text = ""

    def high(self, value, n):
        self.text += f"{value:0{n}b}" if n else ""

    def low(self, value, n):
        self.text += f"{value:0{n}b}"[::-1]

    def bytes(self, low=False, fill="1"):
        t = self.text + fill * (-len(self.text) % 8)
        return bytes(int(t[i:i + 8][::-1] if low else t[i:i + 8], 2) for i in range(0, len(t), 8))


def segment(mark, data):
    return bytes([0xff, mark]) + struct.pack(">H", len(data) + 2) + data


def jpeg_tables():
    """Quantisation by 8; codes for differences of 0 and 4 bits, and for an empty block, a value of
    two bits after a zero, and (progressive) a run of 2 empty blocks."""
    dc, ac = bytes([1, 1] + [0] * 14 + [0, 4]), bytes([1, 1, 1] + [0] * 13 + [0, 0x12, 0x10])
    return segment(0xdb, b"\0" + b"\x08" * 64) + segment(0xc4, b"\0" + dc) + segment(0xc4, b"\x10" + ac)


def jpeg_blocks(blocks, restart=0):
    out, b = b"", Bits()
    for i in range(blocks):
        b.high(0b10, 2)
        b.high(8 + i % 8, 4)  # a difference of four bits
        if i % 3 == 0:
            b.high(0b10, 2)
            b.high(3, 2)
        b.high(0, 1)
        if restart and i % restart == restart - 1 and i < blocks - 1:
            out += b.bytes().replace(b"\xff", b"\xff\0") + bytes([0xff, 0xd0 + i // restart % 8])
            b = Bits()
    return out + b.bytes().replace(b"\xff", b"\xff\0")


def jpeg(w, h, factors=(0x11,), tables=True, front=b"", restart=0, frame=0xc0):
    """Baseline, all components in one scan; `factors`: sampling of each."""
    n = len(factors)
    mx, my = max(f >> 4 for f in factors), max(f & 15 for f in factors)
    mcus = -(-w // (8 * mx)) * -(-h // (8 * my))
    blocks = mcus * sum((f >> 4) * (f & 15) for f in factors) if n > 1 else -(-w // 8) * -(-h // 8)
    sof = struct.pack(">BHHB", 8, h, w, n) + b"".join(bytes([i + 1, f, 0]) for i, f in enumerate(factors))
    sos = bytes([n]) + b"".join(bytes([i + 1, 0]) for i in range(n)) + b"\0\x3f\0"
    return (b"\xff\xd8" + front + (jpeg_tables() if tables else b"") + segment(frame, sof) +
            (segment(0xdd, struct.pack(">H", restart)) if restart else b"") + segment(0xda, sos) +
            jpeg_blocks(blocks, restart) + b"\xff\xd9")


def progressive(w, h):
    """A scan of the first coefficient, one of the others, one that refines the first."""
    blocks = -(-w // 8) * -(-h // 8)
    sof = struct.pack(">BHHB", 8, h, w, 1) + b"\1\x11\0"
    dc, ac, fine = Bits(), Bits(), Bits()
    for i in range(blocks):
        dc.high(0b10, 2)
        dc.high(8 + i % 8, 4)
        fine.high(i & 1, 1)
    for _ in range(blocks // 2):
        ac.high(0b110, 3)
        ac.high(0, 1)
    stuff = lambda b: b.bytes().replace(b"\xff", b"\xff\0")
    return (b"\xff\xd8" + jpeg_tables() + segment(0xc2, sof) + segment(0xda, b"\1\1\0\0\0\1") + stuff(dc) +
            segment(0xda, b"\1\1\0\1\x3f\0") + stuff(ac) + segment(0xda, b"\1\1\0\0\0\x10") + stuff(fine) +
            b"\xff\xd9")


def webp(w, h, alpha=False):
    """Lossless, of one colour: every code has a single symbol."""
    b = Bits()
    for v, n in ((0x2f, 8), (w - 1, 14), (h - 1, 14), (int(alpha), 1), (0, 3), (0, 1), (0, 1), (0, 1)):
        b.low(v, n)
    for symbol in (90, 30, 200, 255, 0):
        for v, n in ((1, 1), (0, 1), (1, 1), (symbol, 8)):
            b.low(v, n)
    data = b.bytes(low=True, fill="0")
    data += b"\0" * (len(data) % 2)
    body = b"WEBPVP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


PACK = {1: bytes, 5: lzw, 8: deflate, 32773: packbits, 32946: deflate, 50000: zstd, 34925: xz}
SIZE = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 13: 4, 16: 8, 12: 8, 7: 1}
CODE = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 12: "d", 7: "B"}


class Tiff:
    """Directories and data appended to a classic or big TIFF of either byte order."""

    def __init__(self, order="<", big=False):
        self.order, self.big = order, big
        mark = b"II" if order == "<" else b"MM"
        self.out = bytearray(mark + (struct.pack(order + "HHHQ", 43, 8, 0, 0) if big else
                                     struct.pack(order + "HI", 42, 0)))
        self.link = 8 if big else 4

    def add(self, data):
        at = len(self.out)
        self.out += data + b"\0" * (len(data) % 2)
        return at

    def point(self, at, value):
        struct.pack_into(self.order + ("Q" if self.big else "I"), self.out, at, value)

    def value(self, kind, v):
        if isinstance(v, bytes):
            return len(v) // SIZE[kind], v
        if kind == 5:
            return 1, struct.pack(self.order + "II", *v)
        v = v if isinstance(v, (list, tuple)) else [v]
        return len(v), struct.pack(f"{self.order}{len(v)}{CODE[kind]}", *v)

    def directory(self, tags, linked=True):
        """tags: {tag: (type, value)}; returns where it lies."""
        room = 8 if self.big else 4
        entries = b""
        for tag in sorted(tags):
            count, raw = self.value(tags[tag][0], tags[tag][1])
            field = raw.ljust(room, b"\0") if len(raw) <= room else struct.pack(
                self.order + ("Q" if self.big else "I"), self.add(raw))
            entries += struct.pack(self.order + ("HHQ" if self.big else "HHI"), tag,
                                   tags[tag][0], count) + field
        at = self.add(struct.pack(self.order + ("Q" if self.big else "H"), len(tags)) + entries +
                      b"\0" * room)
        if linked:
            self.point(self.link, at)
            self.link = at + (8 if self.big else 2) + len(entries)
        return at


def pixels(n, seed=1):
    return bytes((i * 7 + seed * 13 + (i >> 3)) & 255 for i in range(n))


def page(t, w, h, samples=1, bits=8, fmt=1, code=1, rows=None, tile=None, planar=1, predictor=1,
         seed=1, linked=True, packer=None, **more):
    """One page of w x h; `more`: tNUMBER=(type, value)."""
    blocks, size = [], samples * bits / 8
    inner = size if planar == 1 else bits / 8
    for _ in range(1 if planar == 1 else samples):
        if tile:
            for _ in range(-(-h // tile) * -(-w // tile)):
                blocks.append(pixels(tile * -int(-tile * inner // 1), seed))
        else:
            step = rows or h
            for y in range(0, h, step):
                blocks.append(pixels(min(step, h - y) * -int(-w * inner // 1), seed + y))
    packed = [packer(b) if packer else PACK[code](b) for b in blocks]
    at = [t.add(b) for b in packed]
    wide = 16 if t.big else 4
    tags = {256: (4, w), 257: (4, h), 258: (3, [bits] * samples), 259: (3, code),
            262: (3, 2 if samples == 3 else 1), 277: (3, samples), 284: (3, planar),
            339: (3, [fmt] * samples)}
    if predictor > 1:
        tags[317] = (3, predictor)
    if tile:
        tags.update({322: (3, tile), 323: (3, tile), 324: (wide, at), 325: (wide, [len(b) for b in packed])})
    else:
        tags.update({273: (wide, at), 278: (4, rows or h), 279: (wide, [len(b) for b in packed])})
    for k, v in more.items():
        tags[int(k[1:])] = v
    return t.directory(tags, linked)


def old_jpeg(flavour="stream", colour=True, order="<", big=False, w=33, h=32, rows=16, tiled=False):
    """A page of old JPEG: a whole stream; its header, then strips; or tables, then strips. Or tiles."""
    factors = (0x22, 0x11, 0x11) if colour else (0x11,)
    side = 16 if colour else 8
    units = -(-w // side) * (min(rows, h) // side)
    data = jpeg(w, h, factors, restart=units if rows < h else 0)
    scan = data.index(b"\xff\xda") + 8 + 2 * len(factors)
    strips = [jpeg_blocks(units * (6 if colour else 1)) for _ in range(0, h, rows)]
    data = data[:scan] + b"".join(s + bytes([0xff, 0xd0 + i % 8]) for i, s in enumerate(strips))[:-1] + b"\xd9"
    t, more = Tiff(order, big), {}
    if flavour == "tables":
        q, dc, ac = (t.add(jpeg_tables()[a:b]) for a, b in ((5, 69), (74, 92), (97, 116)))
        more = {f"t{519 + i}": (4, [at] * len(factors)) for i, at in enumerate((q, dc, ac))}
    else:
        head = data if flavour == "stream" else data[:scan]
        more = dict(t513=(4, t.add(head)), t514=(4, len(head)))
    if colour:
        more.update(t262=(3, 6), t530=(3, [2, 2]))
    if flavour == "stream":
        rows, strips = h, [data[scan:]]
    if tiled:
        at = [t.add(s) for s in strips]
        tags = {256: (4, w - 3), 257: (4, h - 5), 259: (3, 6), 322: (4, w), 323: (4, rows), 324: (4, at),
                325: (4, [len(s) for s in strips]), 512: (3, 1)}
        t.directory({**tags, **{int(k[1:]): v for k, v in more.items()}})
        return t
    page(t, w, h, samples=len(factors), code=6, rows=rows, packer=lambda b: strips.pop(0), t512=(3, 1), **more)
    return t


def old_jpegs():
    yield "old_jpeg_stream", old_jpeg()
    yield "old_jpeg_grey", old_jpeg("tables", colour=False, rows=8)
    yield "old_jpeg_head", old_jpeg("head")
    yield "old_jpeg_tables", old_jpeg("tables", order=">")
    yield "old_jpeg_big", old_jpeg("tables", big=True)
    yield "old_jpeg_tiles", old_jpeg("tables", w=48, tiled=True)


def thunder(w, rows):
    """A pixel, a run, differences of two and three bits, and a run to the end."""
    return bytes([0xc9, 10, 0x40 | 0b011011, 0x80 | 0b001111, w - 15]) * rows


OME = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
       'UUID="urn:uuid:1"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" '
       'SizeX="9" SizeY="7" SizeZ="2" SizeC="1" SizeT="1" PhysicalSizeX="0.5" PhysicalSizeXUnit="\u00b5m" '
       'PhysicalSizeZ="2" TimeIncrement="3" TimeIncrementUnit="ms"><Channel ID="Channel:0:0" Name="a" '
       'Color="-1" SamplesPerPixel="1"/><TiffData IFD="0" FirstZ="0" FirstC="0" FirstT="0" PlaneCount="2">'
       '<UUID FileName="made.ome.tif">urn:uuid:1</UUID></TiffData></Pixels></Image></OME>').encode()
OME_OTHER = (b'<OME UUID="urn:uuid:2"><BinaryOnly MetadataFile="other.companion.ome" UUID="urn:uuid:3"/></OME>')


def tiffs():
    for name, code in (("none", 1), ("lzw", 5), ("deflate", 8), ("packbits", 32773), ("zstd", 50000), ("lzma", 34925)):
        t = Tiff()
        page(t, 21, 13, code=code, rows=5)
        yield f"strips_{name}", t
        t = Tiff(">")
        page(t, 21, 13, code=code, tile=16, bits=16, predictor=2 if code in (5, 8, 50000, 34925) else 1)
        yield f"tiles_{name}", t
        t = Tiff()
        page(t, 70, 300, code=code, samples=3)
        yield f"one_strip_{name}", t
    t = Tiff(big=True)
    page(t, 17, 9, samples=3, planar=2, rows=4)
    yield "big_planar", t
    t = Tiff()
    page(t, 17, 9, bits=32, fmt=3, code=8, predictor=3)
    page(t, 17, 9, bits=32, fmt=3, code=8, predictor=3, seed=2)
    yield "float_pages", t
    t = Tiff()
    page(t, 9, 7, t270=(2, OME + b"\0"))
    page(t, 9, 7, seed=2)
    yield "ome", t
    t = Tiff()
    page(t, 9, 7, t270=(2, b"ImageJ=1.53t\nimages=2\nslices=2\nunit=micron\nspacing=2.0\nloop=false\n\0"),
         t282=(5, (20000, 10000)), t283=(5, (20000, 10000)), t296=(3, 1))
    t.add(pixels(63, 2))
    yield "imagej", t
    t = Tiff()
    page(t, 9, 7, t270=(2, b'{"shape": [2, 7, 9], "axes": "ZYX"}\0'), t305=(2, b"tifffile.py\0"))
    page(t, 9, 7, seed=2)
    yield "shaped", t
    t = Tiff()
    small = page(t, 16, 16, tile=16, linked=False, t254=(4, 1))
    page(t, 32, 32, tile=16, t330=(13, small))
    yield "subifd", t
    for bits, fmt in ((1, 1), (2, 1), (4, 1), (10, 1), (12, 1), (14, 1), (16, 3), (24, 1), (24, 3), (32, 2), (64, 3)):
        t = Tiff(">" if bits == 12 else "<")
        page(t, 19, 11, bits=bits, fmt=fmt, rows=4, code=5 if bits in (12, 24) else 1)
        yield f"bits_{bits}_{fmt}", t
    t = Tiff()
    page(t, 16, 16, rows=8, samples=3, code=7, packer=lambda b: jpeg(16, 8, (0x21, 0x11, 0x11), tables=False),
         t262=(3, 6), t530=(3, [2, 1]), t347=(7, b"\xff\xd8" + jpeg_tables() + b"\xff\xd9"))
    yield "jpeg_strips", t
    t = Tiff()
    page(t, 20, 20, tile=16, code=7, packer=lambda b: jpeg(16, 16))
    yield "jpeg_tiles", t
    t = Tiff()
    page(t, 20, 20, tile=16, samples=3, code=50001, packer=lambda b: webp(16, 16))
    yield "webp_tiles", t
    t = Tiff()
    page(t, 8, 8, bits=4, t262=(3, 3), t320=(3, list(range(0, 48 * 1000, 1000))))
    yield "palette", t
    t = Tiff()
    page(t, 8, 8, samples=4, t262=(3, 5), t338=(3, [2]), t274=(3, 6))
    yield "cmyk_turned", t
    t = Tiff()
    page(t, 21, 13, code=5, rows=5, t266=(3, 2), packer=lambda b: bytes(int(f"{x:08b}"[::-1], 2) for x in lzw(b)))
    yield "fill_order", t
    for tag, text in ((270, b"Aperio Image Library v10\r\n|AppMag = 20|MPP = 0.4990"), (34118, b"Pixel Size = 10.5 nm\r\n"),
                      (34682, b"[Scan]\r\nPixelWidth=1e-8\r\nPixelHeight=1e-8\r\n")):
        t = Tiff()
        page(t, 9, 7, **{f"t{tag}": (2, text + b"\0")})
        yield f"maker_{tag}", t
    yield from old_jpegs()
    t = Tiff()
    page(t, 40, 8, bits=4, code=32809, rows=3, packer=lambda b: thunder(40, len(b) // 20))
    yield "thunderscan", t
    t = Tiff()
    page(t, 18, 7, samples=3, code=5, packer=lambda b: lzw(pixels(9 * 4 * 6)), t262=(3, 6), t530=(3, [2, 2]))
    yield "ycbcr", t
    t = Tiff()
    page(t, 18, 7, samples=3, code=5, rows=3, planar=2, t262=(3, 6), t530=(3, [1, 1]))
    yield "ycbcr_planes", t
    t = Tiff(">")
    page(t, 17, 5, bits=24, fmt=3, rows=2)
    yield "float_24", t
    t = Tiff()
    page(t, 16, 8, bits=1, code=4, packer=lambda b: b"\xff\x00\x10\x01", t262=(3, 0))
    yield "fax4", t
    t = Tiff()
    page(t, 40, 24, rows=8)
    page(t, 20, 12, rows=8, t254=(4, 1))
    yield "pyramid", t


# ---- Pictures, blocks, sets of files ------------------------------------------------------------

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(w, h, bits, colour, interlaced=0, front=b"", level=9, parts=1, of=pixels):
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    passes = ([(0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2), (0, 1, 1, 2)]
              if interlaced else [(0, 1, 0, 1)])
    raw, k = b"", 0
    for x0, dx, y0, dy in passes:
        width = -(-(w - x0) // dx)
        for _ in range(y0, h, dy):
            if width > 0:
                raw += bytes([k % 5]) + of(-(-width * channels * bits // 8), k)
                k += 1
    data = zlib.compress(raw, level)
    step = -(-len(data) // parts)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, bits, colour, 0, 0, interlaced)) +
            front + b"".join(chunk(b"IDAT", data[i:i + step]) for i in range(0, len(data), step)) +
            chunk(b"IEND", b"") + b"\x80")  # the last byte: checksums are fixed


def pngs():
    palette = chunk(b"PLTE", bytes(range(48))) + chunk(b"tRNS", bytes([0, 128, 255]))
    for bits, colour in ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (8, 2), (16, 2), (8, 4), (16, 4), (8, 6), (16, 6)):
        yield f"colour_{colour}_{bits}", png(13, 9, bits, colour)
        yield f"interlaced_{colour}_{bits}", png(13, 9, bits, colour, 1, level=0)
    yield "palette_4", png(13, 9, 4, 3, front=palette)
    yield "palette_few", png(16, 8, 2, 3, front=chunk(b"PLTE", bytes(range(9))), level=0, of=lambda n, k: bytes(n))
    yield "palette_interlaced", png(5, 3, 2, 3, 1, front=palette)
    yield "many_parts", png(40, 30, 8, 2, front=chunk(b"pHYs", struct.pack(">IIB", 3000, 3000, 1)) +
                            chunk(b"gAMA", b"\0\0\xb1\x8f") + chunk(b"tEXt", b"k\0v"), parts=7)
    yield "stored", png(40, 30, 8, 0, level=0)


def jpegs():
    jfif = segment(0xe0, b"JFIF\0\1\2\1\0\x48\0\x48\0\0")
    yield "grey", jpeg(17, 9)
    yield "jfif_420", jpeg(33, 17, (0x22, 0x11, 0x11), front=jfif)
    yield "422_restarts", jpeg(33, 17, (0x21, 0x11, 0x11), restart=2)
    yield "adobe_cmyk", jpeg(9, 9, (0x11,) * 4, front=segment(0xee, b"Adobe\0\x64\0\0\0\0\2"))
    yield "exif", jpeg(9, 9, front=segment(0xe1, b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0"))
    yield "progressive", progressive(17, 9)
    yield "arithmetic", jpeg(9, 9, frame=0xc9)
    yield "lossless", jpeg(9, 9, frame=0xc3)


def blocks():
    """See fuzz_codec.c for the first eight bytes."""
    row = {0: bytes, 1: lzw, 3: deflate, 4: packbits, 5: xz, 6: zstd}
    for code, pack in row.items():
        for samples, rows in ((1, 3), (3, 20)):
            data = pixels(30 * samples * rows)
            yield f"codec_{code}_{samples}", bytes([code, 0, 29, samples - 1, rows - 1, 0, 6, 1]) + pack(data)
        turned = bytes(int(f"{x:08b}"[::-1], 2) for x in pack(pixels(64)))
        yield f"codec_{code}_turned", bytes([code, 1, 15, 0, 3, 0, 255, 0]) + turned
    yield "codec_1_strings", bytes([1, 0, 29, 0, 60, 0, 6, 0]) + lzw_strings(60)  # 61 rows, taken one by one
    # Fax rows of 30 pixels: white 4, black 3, white 23 by themselves; then changes against the row above.
    rows, eol = "1011 10 0000100", "000000000001"
    for code, name, how, text in (
            (8, "rle", 0, (rows + " 0") * 20), (11, "rle_word", 0, (rows + " 0000") * 20),
            (9, "fax3", 0, (eol + rows) * 20), (9, "fax3_2d", 8, (eol + "1" + rows + eol + "0 1 011 1") * 10),
            (10, "fax4", 0, "001 1011 10 1" + " 1 1 1 011 010 1 0001 1 001 1011 10 1" * 6 + eol * 2),
            (10, "fax4_turned", 1, "001 0011 0101 1 1 000011 1" * 6)):
        data = text.replace(" ", "")
        data += "0" * (-len(data) % 8)
        yield name, bytes([code, how, 29, 0, 19, 0, 6, 1]) + bytes(int(data[i:i + 8], 2) for i in range(0, len(data), 8))
    tables = b"\xff\xd8" + jpeg_tables() + b"\xff\xd9"
    yield "jpeg_grey", bytes([2, 0, 16, 0, 8, 0, 9, 0]) + jpeg(17, 9)
    yield "jpeg_ycc", bytes([2, 6, 32, 2, 16, len(tables), 40, 2]) + tables + jpeg(33, 17, (0x22, 0x11, 0x11), tables=False)
    yield "jpeg_rgb", bytes([2, 2, 15, 2, 7, 0, 255, 7]) + jpeg(16, 8, (0x11,) * 3)
    yield "jpeg_cmyk", bytes([2, 4, 8, 3, 8, 0, 3, 0]) + jpeg(9, 9, (0x11,) * 4, front=segment(0xee, b"Adobe\0\x64\0\0\0\0\2"))
    yield "jpeg_progressive", bytes([2, 0, 16, 0, 8, 0, 9, 0]) + progressive(17, 9)
    for i, (across, down) in enumerate(((1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2), (4, 4))):
        data = pixels(-(-18 // across) * -(-7 // down) * (across * down + 2))
        packed = (bytes, lzw, packbits, deflate)[i % 4](data)
        yield f"ycbcr_{across}_{down}", bytes([19, i << 1 | i % 4 << 5, 17, 0, 6, 0, 0, 0]) + packed
    yield "ycbcr_studio", bytes([19, 2, 17, 0, 6, 36, 0, 0]) + struct.pack(
        "<9f", 0.2126, 0.7152, 0.0722, 16, 235, 128, 240, 128, 240) + pixels(9 * 7 * 4)
    yield "lzw_old", bytes([1, 0, 29, 0, 2, 0, 6, 1]) + lzw(pixels(90), old=True)
    yield "thunderscan", bytes([18, 0, 39, 0, 3, 0, 5, 1]) + thunder(40, 4)
    for name, t in old_jpegs():
        yield name, bytes([20, 0, 0, 0, 0, 0, 0, 0]) + bytes(t.out)
    yield "webp", bytes([7, 2, 15, 2, 7, 0, 255, 0]) + webp(16, 8)
    yield "lerc_u8", bytes([12, 0, 7, 0, 3, 0, 0, 0]) + bytes.fromhex(
        "4c657263322004000000e94f29b704000000080000000100000020000000080000005e00000001000000000000000000e03f0000000000000000"
        "0000000000002a4000000000000d0000010084201032547632547698547698ba7698badc")
    yield "lerc_f32_nan", bytes([12, 12, 5, 0, 3, 0, 0, 0]) + bytes.fromhex(
        "4c65726332200400000044300dce0400000006000000010000001700000008000000b20000000600000000000000000000000000000000000000"
        "0000000000001040070000000300efffff0080000000000000804001000000000000803f0000004000008040000000000000803f000000400000"
        "404000008040000000000000803f000000400000404000008040000000000000803f0000004000004040")
    for name, how, samples, rows in (("u8", 0, 0, 4), ("u16", 2, 1, 4), ("f32", 4, 2, 4), ("big", 18, 0, 4)):
        order = ">" if how & 16 else "<"
        steps = struct.pack(f"{order}{10 * (samples + 1) * rows}H", *(i % 3 for i in range(10 * (samples + 1) * rows)))
        yield f"pixarlog_{name}", bytes([13, how, 9, samples, rows - 1, 0, 0, 0]) + deflate(steps)
    run = b"".join(bytes([0x80 + 8, v]) for v in (0x20, 0x11)) * 3
    yield "log_l", bytes([14, 6, 9, 0, 2, 0, 0, 0]) + run
    yield "log_luv", bytes([14, 6, 9, 2, 2, 0, 0, 0]) + run * 2
    yield "log_luv_f32", bytes([14, 4, 9, 2, 2, 0, 0, 0]) + run * 2
    yield "log_luv_24", bytes([15, 6, 9, 2, 2, 0, 0, 0]) + pixels(90)
    yield "next", bytes([16, 0, 15, 0, 2, 0, 0, 0]) + b"\0abcd" + b"\x40\0\1\0\2ab" + b"\x4a\x86"
    yield "jbig", bytes([17, 0, 15, 0, 7, 0, 0, 0]) + bytes.fromhex(
        "000080000000000800000010000000401000c0383d5106ff4001ff40af6cff4003ff40")
    yield "webp_alpha", bytes([7, 2, 15, 3, 7, 0, 255, 0]) + webp(16, 8, True)


def sets():
    """See fuzz_set.c for the lines."""
    def text(what, keys, names, xml=b""):
        return "\n".join([what, *keys, *names, "", ""]).encode() + xml
    none = ["", "", ""]
    two = OME.replace(b'PlaneCount="2"', b'PlaneCount="1"').replace(b"made.ome.tif", b"a.ome.tif").replace(
        b"</Pixels>", b'<TiffData IFD="1" FirstZ="1" PlaneCount="1"><UUID FileName="b.ome.tif">urn:uuid:2</UUID></TiffData></Pixels>')
    yield "folder", text("", none, ["img_1.tif", "img_2.tif", "img_10.tif", "notes.txt"])
    yield "glob", text("img_*.tif", none, ["img_1.tif", "img_2.tif", "other.tif"])
    yield "numbered", text("img_%03d.tif", none, ["img_001.tif", "img_002.tif", "img_004.tif", "img_1000.tif"])
    yield "grid", text("", [r"z(\d+)", "_(DAPI|GFP)", ""], ["z1_DAPI.tif", "z1_GFP.tif", "z2_DAPI.tif", "z2_GFP.tif"])
    yield "times", text("*.tif", ["", r"c(\d)", "t([0-9]+)"], ["c1t01.tif", "c1t02.tif", "c2t01.tif", "c2t02.tif"])
    yield "grid_hole", text("", [r"z(\d+)", r"c(\d)", ""], ["z1c1.tif", "z1c2.tif", "z2c1.tif"])
    yield "ome_two", text("a.ome.tif", none, ["a.ome.tif", "b.ome.tif"], two)
    yield "ome_missing", text("a.ome.tif", none, ["a.ome.tif"], two)
    yield "companion", text("x.companion.ome", none, ["x.companion.ome", "a.ome.tif", "b.ome.tif"], two)
    yield "binary_only", text("a.tif", none, ["a.tif", "other.companion.ome"], OME_OTHER)
    yield "outside", text("a.ome.tif", none, ["a.ome.tif", "b.ome.tif"], two.replace(b"b.ome.tif", b"../b.ome.tif"))


# ---- ONNX ----------------------------------------------------------------------------------------

def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n)


def blk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attr(name, v):
    if isinstance(v, float):
        return blk(1, name) + varint(2 << 3 | 5) + struct.pack("<f", v) + num(20, 1)
    if isinstance(v, int):
        return blk(1, name) + num(3, v) + num(20, 2)
    if isinstance(v, str):
        return blk(1, name) + blk(4, v) + num(20, 3)
    if isinstance(v, bytes):
        return blk(1, name) + blk(5, v) + num(20, 4)
    if isinstance(v, tuple):
        return blk(1, name) + b"".join(varint(7 << 3 | 5) + struct.pack("<f", x) for x in v) + num(20, 6)
    return blk(1, name) + b"".join(num(8, x) for x in v) + num(20, 7)


def node(op, ins, outs, **attrs):
    return (b"".join(blk(1, i) for i in ins) + b"".join(blk(2, o) for o in outs) + blk(3, outs[0]) +
            blk(4, op) + b"".join(blk(5, attr(k, v)) for k, v in attrs.items()))


def floats(name, dims, over=16):
    n = 1
    for d in dims:
        n *= d
    return (b"".join(num(1, d) for d in dims) + num(2, 1) + blk(8, name) +
            blk(9, struct.pack(f"<{n}f", *[((i * 37) % 11 - 5) / over for i in range(n)])))


def ints(name, values):
    return num(1, len(values)) + num(2, 7) + blk(7, b"".join(varint(v) for v in values)) + blk(8, name)


def port(name, dims, kind=1):
    shape = b"".join(blk(1, blk(2, d) if isinstance(d, str) else num(1, d)) for d in dims)
    return blk(1, name) + blk(2, blk(1, num(1, kind) + blk(2, shape)))


def model(nodes, inits=(), ins=None, outs=None, opset=13):
    graph = (b"".join(blk(1, n) for n in nodes) + blk(2, "made") + b"".join(blk(5, i) for i in inits) +
             b"".join(blk(11, p) for p in ins or [port("x", [1, 2, "H", "W"])]) +
             b"".join(blk(12, p) for p in outs or [port("y", ["N", "C", "H", "W"])]))
    return num(1, 8) + blk(2, "made") + blk(7, graph) + blk(8, blk(1, "") + num(2, opset))


def onnxes():
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield "conv_relu", model([node("Conv", ["x", "w", "b"], ["a"], **conv), node("Relu", ["a"], ["y"])],
                             [floats("w", [3, 2, 3, 3]), floats("b", [3])])
    yield "unet", model([
        node("Conv", ["x", "w"], ["a"], strides=[2, 2], **conv), node("LeakyRelu", ["a"], ["b"], alpha=0.1),
        node("ConvTranspose", ["b", "v"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", ["c", "x"], ["d"], axis=1), node("MaxPool", ["d"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        [floats("w", [4, 2, 3, 3]), floats("v", [4, 2, 2, 2])])
    yield "shapes", model([
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "two"], ["h"], axis=0),
        node("Unsqueeze", ["h", "zero"], ["hs"]), node("Concat", ["lead", "hs", "minus"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]), node("Slice", ["r", "zero", "one", "one"], ["y"])],
        [num(2, 7) + blk(7, varint(2)) + blk(8, "two"), ints("zero", [0]), ints("one", [1]), ints("lead", [1, 2]), ints("minus", [-1])])
    yield "slice", model([node("Slice", ["x", "one", "nine", "two", "one"], ["y"])],
                         [ints("one", [1]), ints("nine", [9]), ints("two", [2])], [port("x", [1, 2, 32, 32])])
    yield "resize", model([node("Resize", ["x", "", "sc"], ["r"], mode="linear", coordinate_transformation_mode="half_pixel"),
                           node("Concat", ["r", "r"], ["q"], axis=1),
                           node("DepthToSpace", ["q"], ["y"], blocksize=2, mode="CRD")],
                          [num(1, 4) + num(2, 1) + blk(8, "sc") + blk(4, struct.pack("<4f", 1, 1, 2, 2))])
    yield "norm", model([node("BatchNormalization", ["x", "a", "b", "c", "d"], ["n"], epsilon=1e-5),
                         node("InstanceNormalization", ["n", "a", "b"], ["i"]), node("PRelu", ["i", "a3"], ["p"]),
                         node("Split", ["p"], ["u", "v"], axis=1), node("Mul", ["u", "v"], ["y"])],
                        [floats("a", [2]), floats("b", [2]), floats("c", [2]), floats("d", [2]), floats("a3", [2, 1, 1])])
    yield "nhwc", model([node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w"], ["c"], **conv),
                         node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])], [floats("w", [2, 3, 3, 3])],
                        [port("x", [1, 32, 32, 3])], [port("y", [1, 32, 32, 2])])
    yield "pads", model([node("Pad", ["x", "p"], ["a"], mode="reflect"), node("AveragePool", ["a"], ["b"], kernel_shape=[3, 3]),
                         node("Clip", ["b", "lo", "hi"], ["y"])],
                        [ints("p", [0, 0, 1, 1, 0, 0, 1, 1]), floats("lo", []), floats("hi", [])])
    yield "constant", model([node("Constant", [], ["k"], value=floats("v", [1])), node("Add", ["x", "k"], ["a"]),
                             node("ConstantOfShape", ["s"], ["z"]), node("Sub", ["a", "z"], ["y"])], [ints("s", [1, 2, 1, 1])])
    yield "old_upsample", model([node("Upsample", ["x"], ["y"], mode="nearest", scales=(1.0, 1.0, 2.0, 2.0))], opset=7)


def more_onnxes():
    """Nets whose nodes the rewrites put together, and operators on arrays that are no images."""
    one = [num(1, 1) + num(2, 1) + blk(8, n) + blk(9, struct.pack("<f", v)) for n, v in (("two", 2.0), ("eps", 1e-3))]
    conv = node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    w = floats("w", [4, 2, 3, 3])
    axes = dict(axes=[2, 3], keepdims=1)
    norm = [node("ReduceMean", ["a"], ["m"], **axes), node("Sub", ["a", "m"], ["d"]), node("Pow", ["d", "two"], ["q"]),
            node("ReduceMean", ["q"], ["s"], **axes), node("Add", ["s", "eps"], ["e"]), node("Sqrt", ["e"], ["r"]),
            node("Div", ["d", "r"], ["n"]), node("Mul", ["n", "g"], ["h"]), node("Add", ["h", "g"], ["y"])]
    yield "norm_in_parts", model([conv, *norm], [w, *one, floats("g", [1, 4, 1, 1])])
    yield "silu_hswish", model([conv, node("Sigmoid", ["a"], ["b"]), node("Mul", ["a", "b"], ["c"]), node("HardSigmoid", ["c"], ["d"]),
                                node("Mul", ["c", "d"], ["e"]), node("Tanh", ["e"], ["f"]), node("Exp", ["e"], ["g"]),
                                node("Div", ["f", "g"], ["y"])], [w])
    yield "residual", model([conv, node("Relu", ["a"], ["b"]), node("Conv", ["b", "v"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                             node("Add", ["c", "a"], ["d"]), node("Max", ["d", "a"], ["e"]), node("Neg", ["e"], ["f"]),
                             node("Abs", ["f"], ["y"])], [w, floats("v", [4, 4, 3, 3])])
    yield "resize_then_1x1", model([conv, node("Resize", ["a", "", "z"], ["b"], mode="linear"), node("Conv", ["b", "v"], ["c"], kernel_shape=[1, 1]),
                                    node("Add", ["c", "p"], ["y"])],
                                   [w, floats("v", [2, 4, 1, 1]), floats("p", [1, 2, 1, 1]),
                                    num(1, 4) + num(2, 1) + blk(8, "z") + blk(4, struct.pack("<4f", 1, 1, 2, 2))])
    yield "conv_norm", model([conv, node("BatchNormalization", ["a", "g", "g", "g", "v"], ["b"]), node("PRelu", ["b", "k"], ["y"])],
                             [w, floats("g", [4]), num(1, 4) + num(2, 1) + blk(8, "v") + blk(9, struct.pack("<4f", 1, 2, 3, 4)), floats("k", [4, 1, 1])])
    tokens = [node("Reshape", ["x", "t"], ["a"]), node("Transpose", ["a"], ["b"], perm=[0, 2, 1]), node("MatMul", ["b", "w"], ["c"]),
              node("Softmax", ["c"], ["d"], axis=2), node("Einsum", ["c", "d"], ["e"], equation="bij,bkj->bik"),
              node("LayerNormalization", ["c", "g", "g"], ["f"]), node("MatMul", ["e", "f"], ["h"]), node("Gelu", ["h"], ["i"])]
    yield "attention", model([*tokens, node("Transpose", ["i"], ["j"], perm=[0, 2, 1]), node("Reshape", ["j", "u"], ["y"])],
                             [ints("t", [1, 2, 64]), ints("u", [1, 3, 8, 8]), floats("w", [2, 3]), floats("g", [3])],
                             [port("x", [1, 2, 8, 8])], [port("y", [1, 3, 8, 8])], opset=20)
    yield "boxes", model([node("GlobalAveragePool", ["x"], ["a"]), node("Flatten", ["a"], ["b"]), node("Gemm", ["b", "w"], ["c"]),
                          node("ArgMax", ["c"], ["d"], axis=1), node("Gather", ["c", "d"], ["e"], axis=1), node("ReduceMax", ["e"], ["f"]),
                          node("Where", ["k", "e", "c"], ["y"])],
                         [floats("w", [2, 4]), num(1, 1) + num(2, 9) + blk(8, "k") + blk(9, b"\1")], [port("x", [1, 2, 8, 8])], [port("y", [1, 4])])
    yield "volume", model([node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3, 3], pads=[1] * 6), node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
                           node("ConvTranspose", ["b", "v"], ["y"], kernel_shape=[2, 2, 2], strides=[2, 2, 2])],
                          [floats("w", [2, 1, 3, 3, 3]), floats("v", [2, 1, 2, 2, 2])], [port("x", [1, 1, "D", "H", "W"])],
                          [port("y", [1, 1, "D", "H", "W"])])
    conv = dict(kernel_shape=[3], pads=[1, 1])
    lines = [port("x", [1, 2, "L"])], [port("y", ["N", "C", "M"])]
    yield "line", model([node("Conv", ["x", "w"], ["a"], **conv), node("BatchNormalization", ["a", "g", "g", "g", "v"], ["b"]),
                         node("MaxPool", ["b"], ["c"], kernel_shape=[2], strides=[2]), node("Mul", ["c", "k"], ["d"]),
                         node("ConvTranspose", ["d", "u"], ["e"], kernel_shape=[2], strides=[2]), node("Concat", ["e", "b"], ["f"], axis=1),
                         node("ReduceMean", ["f"], ["m"], axes=[2], keepdims=1), node("Sub", ["f", "m"], ["y"])],
                        [floats("w", [4, 2, 3]), floats("g", [4]), num(1, 4) + num(2, 1) + blk(8, "v") + blk(9, struct.pack("<4f", 1, 2, 3, 4)),
                         floats("k", [4, 1]), floats("u", [4, 2, 2])], *lines)
    yield "line_to_tokens", model([node("Conv", ["x", "w"], ["a"], **conv), node("Pad", ["a", "p"], ["b"], mode="edge"), node("Slice", ["b", "one", "nine", "axis"], ["c"]),
                                   node("Shape", ["c"], ["s"]), node("Transpose", ["c"], ["t"], perm=[0, 2, 1]), node("MatMul", ["t", "v"], ["q"]),
                                   node("Transpose", ["q"], ["r"], perm=[0, 2, 1]), node("Reshape", ["r", "s"], ["h"]), node("Softmax", ["h"], ["i"], axis=1),
                                   node("Conv", ["i", "w3"], ["j"], **conv), node("ArgMax", ["j"], ["y"], axis=1, keepdims=0)],
                                  [floats("w", [3, 2, 3]), floats("w3", [3, 3, 3]), floats("v", [3, 3]), ints("p", [0, 0, 1, 0, 0, 1]), ints("one", [1]), ints("nine", [9]),
                                   ints("axis", [2])], [port("x", [1, 2, 16])], [port("y", [1, 8])])
    yield "nearest_by_concat", model([node("Reshape", ["x", "l"], ["a"]), node("Concat", ["a", "a"], ["b"], axis=-1), node("Reshape", ["b", "p"], ["c"]),
                                      node("Concat", ["c", "c"], ["d"], axis=-1), node("Reshape", ["d", "q"], ["y"])],
                                     [ints("l", [1, 2, 8, 8, 1]), ints("p", [1, 2, 8, 16]), ints("q", [1, 2, 16, 16])],
                                     [port("x", [1, 2, 8, 8])], [port("y", [1, 2, 16, 16])])


# ---- The rest ------------------------------------------------------------------------------------

def npy(descr, shape, data, version=1, order="False"):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    pad = -(10 + (version > 1) * 2 + len(text) + 1) % 64
    text = text.encode() + b" " * pad + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def npys():
    yield "u1", npy("|u1", "(3, 5)", pixels(15))
    yield "f4", npy("<f4", "(1, 2, 3, 4)", pixels(96))
    yield "u2_swapped", npy(">u2", "(2, 3, 4)", pixels(48))
    yield "v2", npy("<i8", "(2,)", pixels(16), version=2)
    yield "fortran", npy("<f8", "(2, 2)", pixels(32), order="True")
    yield "scalar", npy("|b1", "()", b"\1")


JSON = {
    "descriptor": b'{"format": 1, "axes": "NCHW", "channels": ["a", "b"], "scale": [0.5, -1.25e-3], "k": null}',
    "job": b'{\n "model": "m.onnx",\n "ram": "1GiB", "yes": true, "tile": 256, "big": 9223372036854775807}',
    "strings": '{"\\u00e9": "\\ud83d\\ude00 \\n\\t\\"\u00b5", "": ["", [], {}, [[1], [2]]], "x": -0.0}'.encode(),
    "array": b"[1, 2.5, true, false, null, \"s\", [[[[[[[[]]]]]]]]]",
    "deep": b"[" * 60 + b"]" * 60,
}

CONFIG = {
    "job": b'{"model": "m.onnx", "input": "a.tif", "output": "o.tif", "ram": "1GiB", "tile": "512x256", "roi": "0:10,:,5:",'
           b' "planes": "0,2,5-9", "axes": "TCYX", "normalize": "percentile:1,99.8", "dtype": "uint8", "compress": "zstd:9",'
           b' "exact": true, "level": 1, "threads": 4, "pad": "edge", "input-tensor": ["x=a.npy", "y=b.npy"]}',
    "scale": b'{"normalize": "scale:1/255,-0.5", "ram": "80%", "chunk-size": "8x512x512", "z": "z(1)", "io": "map"}',
    "preset": b'{"schema": 1, "description": "d", "why": "w", "settings": {"ram": "1GiB", "threads": 4, "exact": true, "tile":'
              b' "512", "compress": "zstd:9"}, "device": {"gib": 8, "tile": 512, "batch": 2, "precision": "fp16"}}',
    "job_preset": b'{"preset": "exact", "ram": "1GiB"}',
    "descriptor": b'{"name": "n", "version": "1", "license": "MIT", "normalize": "zscore", "output": "denormalize"}',
    "machine": b'{"schema": "tegula.machine", "version": 1, "tegula": "9.0.0", "memory": {"available_bytes": 8e9, "free_bytes": null},'
               b' "process": {"measured_bytes": 589824}, "cgroups": [{"version": 2, "path": "/a", "limit_bytes": 2147483648}],'
               b' "processors": {"model": "P", "usable": 8, "instruction_sets": ["portable", "avx512"], "bf16": true},'
               b' "disks": [{"role": "temporary", "path": "/tmp", "free_bytes": 1, "in_memory": true}],'
               b' "gpus": [{"name": "NVIDIA H200", "total_bytes": 150754820096}], "speeds": {"processor": "P", "processors": 8,'
               b' "clear_seconds_per_byte": 1e-10, "fixed_seconds": 0.1, "finish_seconds_per_byte": 0,'
               b' "statistics_seconds_per_sample": 0, "processor_seconds_per_sample": 0,'
               b' "decode_seconds_per_byte": {"none": 0, "deflate": 0, "zstd": 0, "lzw": 0},'
               b' "encode_seconds_per_byte": {"none": 0, "deflate": 0, "zstd": 0, "lzw": 0},'
               b' "kernels": {"avx2 conv_direct": [1e10, 8e10], "reference": [1, 1]}}}',
    "statistics": b'{"normalize": "minmax", "image": "a.tif", "channels": [' + b", ".join(
        [b'{"count": 9, "nans": 0, "min": -1.5, "max": 2e3, "mean": 7, "deviation": 1, "low": 0, "high": 1}'] * 3) + b"]}",
}

for word, value in (("planes", "0,2,5-9"), ("roi", "0:10,:,5:"), ("ram", "80%"), ("tile", "8x512x256"), ("at", "1,2,3"),
                    ("normalize", "scale:1/255,-.5"), ("compress", "deflate:9"), ("axes", "TCYX"), ("threads", "4")):
    CONFIG[word] = f'{{"{word}":"{value}"}}'.encode()

OME_NOTES = (b'<OME><Instrument/><Image Name="one"><AcquisitionDate>2024-05-06T07:08:09</AcquisitionDate><Description>a '
             b'<![CDATA[b]]></Description><Pixels DimensionOrder="XYCZT" SizeX="4" SizeY="4" SizeC="1"><Channel EmissionWavelength="5"/>'
             b'<TiffData/><Plane DeltaT="1"/></Pixels><ROIRef/></Image><StructuredAnnotations><MapAnnotation Namespace="imagej.net">'
             b'<Value><M K="Info">words</M><M K="Range 0">1 2.5</M><M K="LUT 0">' + b"00ff" * 384 + b'</M><M K="Label 0">p</M>'
             b'<M K="Label 1"/><M K="Label 9">no</M></Value></MapAnnotation></StructuredAnnotations></OME>')
XML = {"full": OME, "notes": OME_NOTES, "binary_only": OME_OTHER,
       "rich": (b'<OME><Instrument ID="Instrument:0"><Objective ID="Objective:0" LensNA="1.4"/></Instrument><Image><InstrumentRef ID="Instrument:0"/>'
                b'<Pixels SizeX="4" SizeY="4" SizeZ="2" SizeC="2"><Channel Name="c" Fluor="f"><FilterSetRef ID="FilterSet:0"/></Channel><Channel/>'
                b'<Plane TheZ="1" TheC="0" TheT="0" DeltaT="1.5" DeltaTUnit="ms" PositionX="-2"/>'
                b'<Plane TheZ="0" TheC="0" TheT="0"><AnnotationRef ID="Annotation:0"/></Plane></Pixels><ROIRef ID="ROI:0"/></Image>'
                b'<StructuredAnnotations><XMLAnnotation ID="Annotation:0"><Value><m:a xmlns:m="urn:x" m:b="1">t&amp;<![CDATA[<u>]]></m:a></Value></XMLAnnotation>'
                b'</StructuredAnnotations><ROI ID="ROI:0"><Union><Polygon ID="Shape:0" Points="1,2 3.5,4" TheZ="1" TheC="0"><Transform A00="1" A02="3"/>'
                b'</Polygon><Mask ID="Shape:1" X="1"><BinData>/w==</BinData></Mask></Union></ROI></OME>'),
       "many": (b'<ome:OME xmlns:ome="x"><ome:Image><ome:Pixels SizeX="4" SizeY="4" SizeC="3" SizeT="2">' +
                b'<ome:Channel Name="c"/>' * 3 + b'<ome:TiffData IFD="1" FirstC="2"/>' * 4 +
                b"</ome:Pixels></ome:Image><ome:Image/></ome:OME>"),
       "cdata": b"<OME><!-- c --><Image><Pixels SizeX='1'><![CDATA[x]]>&amp;&#65;</Pixels></Image></OME>"}


def journal_head():
    """As this version writes it; of another one nothing behind it is read."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "engine", "base", "versions.h")) as f:
        return b"TGJRNL%02d" % int(re.search(r"TGI_JOURNAL_FORMAT (\d+)", f.read())[1])


def journals():
    """The first byte says how (see fuzz_journal.c); checksums are left to the target."""
    def slot(seq, tiles, final=0, filled=(0, 0, 0, 0, 0)):
        texts = struct.pack("<QQII", 12288, 3, 0, 0) + struct.pack("<QQII", 12291, 0, 0, 0)
        return (struct.pack("<QQQQQ", 0x746f6c732d6a6774, seq, tiles, 4096 + 64 * tiles, 12352) + texts +
                struct.pack("<QIIII", *filled) + struct.pack("<IIIIII", 0, 0, final, 0, 0, 0))
    records = b"".join(struct.pack("<QII", i, 64, 0) for i in range(4))
    def journal(a, b):
        out = bytearray(12352) + records
        out[0:8] = journal_head()
        out[12288:12291] = b"job"
        out[4096:4096 + len(a)] = a
        out[8192:8192 + len(b)] = b
        return bytes(out)
    yield "begun", b"\1" + journal(slot(2, 0), b"")
    yield "two_tiles", b"\5" + journal(slot(2, 2), slot(3, 3))
    yield "two_whole", b"\x25" + journal(slot(2, 2), slot(3, 3))
    yield "filled", b"\x25" + journal(slot(2, 2, 0, (40, 7, 1, 0, 0)), slot(3, 3))
    yield "older", b"\1" + journal(slot(2, 2), slot(3, 3)).replace(journal_head(), b"TGJRNL01")
    yield "final", b"\1" + journal(slot(4, 4, 1), slot(3, 3))
    yield "renamed", b"\x0b" + journal(slot(4, 4, 1), b"")
    yield "damaged", b"\0" + journal(slot(2, 2), slot(3, 3))
    yield "empty", b"\0"


OPTIONS = ("model input input-tensor output ram tile chunk-size roi planes axes series level normalize stats descriptor dtype "
           "compress pyramid pad same-size raw-size exact precision threads isa io on-bad-tile scratch at z c t name version license channels count nans min max mean "
           "deviation low high preset schema description why settings device gib batch").split()
TAGS = (254, 256, 257, 258, 259, 262, 266, 270, 273, 277, 278, 279, 282, 284, 305, 317, 320, 322, 323, 324, 325, 330, 338, 339, 347, 530)
HOST = ("seconds,phase,tile,measured_bytes,peak_bytes,anonymous_bytes,file_bytes,shared_bytes,swapped_bytes,"
        "page_table_bytes,high_water_bytes,pool_allocated_bytes,pool_reserved_bytes,available_bytes,predicted_bytes,"
        "budget_bytes,decode_ms,compute_ms,encode_ms")
OPS = ("Conv ConvTranspose Relu Reshape Resize Slice Split Concat Transpose Gather Shape Expand Pad MaxPool AveragePool "
       "Unsqueeze Squeeze Flatten ConstantOfShape Range Cast Clip Upsample DepthToSpace SpaceToDepth Softmax MatMul Gemm "
       "ReduceMean ReduceMax ReduceSum ArgMax Einsum Where Equal Less LayerNormalization GroupNormalization InstanceNormalization "
       "BatchNormalization Gelu Selu Mish LRN LpPool MaxUnpool Tile Hardmax LogSoftmax TopK EyeLike CastLike Dropout Loop If Constant Identity GlobalAveragePool axes axis starts ends steps perm pads strides "
       "dilations group kernel_shape auto_pad SAME_UPPER ceil_mode scales mode nearest linear value").split()


def quoted(data):
    return '"' + "".join(f"\\x{b:02x}" for b in data) + '"'


# ---- Videos ---------------------------------------------------------------------------------------

def box(name, *inside):
    data = b"".join(inside)
    return struct.pack(">I", 8 + len(data)) + name + data


def mp4_track(number, kind, w, h, samples):
    entry = box(b"avc1", bytes(24), struct.pack(">HH", w, h), bytes(50))
    tables = box(b"stbl", box(b"stsd", struct.pack(">Q", 1), entry),
                 box(b"stsz", bytes(8), struct.pack(">I", samples), bytes(4 * samples)))
    return box(b"trak", box(b"tkhd", bytes(12), struct.pack(">I", number), bytes(68)),
               box(b"mdia", box(b"hdlr", bytes(8), kind, bytes(13)),
                   box(b"minf", box(b"hdlr", bytes(4), b"dhlralis", bytes(13)), tables)))


def ebml(number, data):
    name = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return name + struct.pack(">H", 0x4000 | len(data)) + data


def chunk_le(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def videos():
    head, mdat = box(b"ftyp", b"isom", bytes(4)), struct.pack(">I4sQ", 1, b"mdat", 24) + bytes(8)
    tracks = mp4_track(5, b"soun", 0, 0, 3) + mp4_track(6, b"vide", 64, 48, 7)
    part = box(b"moof", box(b"traf", box(b"tfhd", bytes(4), struct.pack(">I", 6)),
                            box(b"trun", bytes(4), struct.pack(">I", 4))))
    yield "mp4", head + mdat + box(b"moov", tracks)
    yield "mp4_fragments", head + box(b"moov", mp4_track(6, b"vide", 64, 48, 0)) + part * 3
    track = ebml(0xAE, ebml(0xD7, b"\2") + ebml(0x83, b"\1") + ebml(0xE0, ebml(0xB0, b"\1\0") + ebml(0xBA, b"\x90")))
    blocks_ = ebml(0xA3, b"\x82\0\0\x80xx") + ebml(0xA0, ebml(0xA1, b"\x82\0\2\2\1zz")) + ebml(0xEC, bytes(5))
    front = ebml(0x1A45DFA3, b"\x42\x86\x81\1")
    yield "mkv", front + ebml(0x18538067, ebml(0x1654AE6B, track) + ebml(0x1F43B675, blocks_))
    yield "mkv_live", (front + b"\x18\x53\x80\x67\x01" + b"\xff" * 7 + ebml(0x1654AE6B, track) +
                       (b"\x1f\x43\xb6\x75\x01" + b"\xff" * 7 + blocks_) * 2)
    stream = (chunk_le(b"strh", b"vids" + bytes(28) + struct.pack("<I", 12) + bytes(20)) +
              chunk_le(b"strf", struct.pack("<Iii", 40, 16, -12) + bytes(5)))
    heads = b"hdrl" + chunk_le(b"avih", bytes(56)) + chunk_le(b"LIST", b"strl" + stream)
    heads += chunk_le(b"LIST", b"odml" + chunk_le(b"dmlh", struct.pack("<I", 30)))
    yield "avi", b"RIFF" + bytes(4) + b"AVI " + chunk_le(b"LIST", heads) + chunk_le(b"LIST", b"movi" + bytes(40))
    yield "y4m", b"YUV4MPEG2 W5 H3 F25:1 C420p10\n" + (b"FRAME\n" + bytes(54)) * 2


# ---- Films ----------------------------------------------------------------------------------------

# name: container, what ffmpeg is told besides, inputs beside the pictures (sound, words)
FILMS = {
    "mp4": ("mp4", "-c:v libx264 -bf 1 -c:a aac -b:a 16k", "sound"),
    "mp4_fragments": ("mp4", "-c:v libx264 -g 2 -movflags frag_keyframe+empty_moov", ""),
    "mp4_hevc": ("mp4", "-c:v libx265 -x265-params log-level=none:pools=1:info=0", ""),
    "mp4_words": ("mp4", "-c:v mpeg4 -c:s mov_text", "words"),
    "mov_turned": ("mov", "-c:v libx264 -metadata:s:v rotate=90", ""),
    "mov_prores": ("mov", "-c:v prores_ks -c:a pcm_s16le -frames:v 1", "sound"),
    "mkv": ("matroska", "-c:v libx264 -c:a flac -c:s srt", "sound words"),
    "mkv_ffv1": ("matroska", "-c:v ffv1 -pix_fmt gray10le", ""),
    "mkv_av1": ("matroska", "-c:v libaom-av1 -cpu-used 8", ""),
    "webm": ("webm", "-c:v libvpx-vp9 -pix_fmt yuv444p", ""),
    "webm_vp8": ("webm", "-c:v libvpx", ""),
    "ogv": ("ogg", "-c:v libtheora", ""),
    "avi": ("avi", "-c:v mjpeg -c:a pcm_u8", "sound"),
    "avi_mpeg4": ("avi", "-c:v mpeg4", ""),
    "avi_rgb": ("avi", "-c:v huffyuv -pix_fmt rgb24", ""),
    "gif": ("gif", "", ""),
    "flv": ("flv", "-c:v flv1", ""),
    "ts": ("mpegts", "-c:v mpeg2video", ""),
    "mpeg": ("mpeg", "-c:v mpeg1video", ""),
    "h264": ("h264", "-c:v libx264 -bf 1 -x264-params interlaced=1", ""),
    "hevc": ("hevc", "-c:v libx265 -x265-params log-level=none:pools=1:info=0", ""),
}
SPEECH = b"1\n00:00:00,000 --> 00:00:00,400\nword\n\n"


def ffmpeg(program, folder, name, size="32x24"):
    """The bytes of a film of three small frames; None where this ffmpeg lacks the encoder."""
    container, options, besides = FILMS[name]
    exact = "-map_metadata -1 -fflags +bitexact -flags:v +bitexact -flags:a +bitexact -threads 1".split()
    out, words = os.path.join(folder, "film"), os.path.join(folder, "words.srt")
    inputs = ["-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration=0.12"]
    if "sound" in besides:
        inputs += ["-f", "lavfi", "-i", "sine=sample_rate=8000:duration=0.1"]
    if "words" in besides:
        with open(words, "wb") as f:
            f.write(SPEECH)
        inputs += ["-i", words]
    pixels = [] if "-pix_fmt" in options or container == "gif" or "prores" in options else ["-pix_fmt", "yuvj420p" if "mjpeg" in options else "yuv420p"]
    r = subprocess.run([program, "-v", "error", "-y", *inputs, *exact, *pixels, *options.split(), "-f", container, out],
                       capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if r.returncode:
        return None
    with open(out, "rb") as f:
        return f.read()


def films():
    """The last byte says what else is done with it (fuzz_film.c)."""
    yield "y4m", b"YUV4MPEG2 W5 H3 F25:1 C420p10\n" + (b"FRAME\n" + bytes(54)) * 2 + b"\1"
    program = shutil.which("ffmpeg")
    if not program:
        return
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(FILMS):
            data = ffmpeg(program, folder, name)
            if data:
                yield name, data + bytes([1 + i % 3])
        large, small = (ffmpeg(program, folder, "h264", size) for size in ("96x80", "32x24"))
        if small and large:
            yield "h264_shrinks", large + small + b"\0"


DICTS = {
    "film": [quoted(w) for w in (b"moov", b"trak", b"tkhd", b"mdhd", b"edts", b"elst", b"stts", b"ctts", b"stss", b"stsc", b"stco", b"co64",
                                 b"stsz", b"moof", b"traf", b"tfhd", b"trun", b"colr", b"pasp", b"udta", b"chpl", b"hint", b"tmcd", b"rmra",
                                 b"dref", b"url ", b"alis", b"strh", b"strf", b"indx", b"idx1", b"odml", b"GIF89a", b"\x21\xf9\x04",
                                 b"\x1c\x53\xbb\x6b", b"\x12\x54\xc3\x67", b"\x6d\x80", b"\x10\x43\xa7\x70", b"OggS", b"\0\0\1\x67",
                                 b"\0\0\1\x68", b"\0\0\1\xb3", b"\0\0\1\xba", b"\x7f\xff\xff\xff\xff\xff\xff\xff")],
    "video": [quoted(w) for w in (b"moov", b"trak", b"tkhd", b"mdia", b"hdlr", b"vide", b"minf", b"stbl", b"stsd", b"stsz", b"stz2",
                                  b"moof", b"traf", b"tfhd", b"trun", b"\0\0\0\1", b"LIST", b"hdrl", b"strl", b"strh", b"strf", b"vids",
                                  b"odml", b"dmlh", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75", b"\x16\x54\xae\x6b", b"\xae\x80",
                                  b"\xa3\x84", b"\x01\xff\xff\xff\xff\xff\xff\xff", b" C444", b" C422p10", b"FRAME\n")],
    "tiff": [quoted(struct.pack("<HH", t, k)) for t in TAGS for k in (3, 4)] +
            [quoted(struct.pack("<H", c)) for c in (5, 7, 8, 32773, 32946, 34925, 50000, 50001)] +
            [quoted(w) for w in (b"II*\0", b"MM\0*", b"II+\0", b"ImageJ=", b"images=", b"slices=", b"<OME", b'{"shape": [')],
    "ome": [quoted(w.encode()) for w in (
        "<OME ", "<Image ", "<Pixels ", "<Channel ", "<TiffData ", "<UUID ", "<BinaryOnly ", "<!DOCTYPE", "<!ENTITY",
        "<![CDATA[", "xmlns:", " SizeX=\"", " DimensionOrder=\"", " PhysicalSizeX=\"", " FileName=\"", "&lt;", "&#x41;",
        " PlaneCount=\"", "99999999999999", " Color=\"", "</OME>", "/>", "<?xml version=\"1.0\" encoding=\"UTF-16\"?>")],
    "onnx": [quoted(w.encode()) for w in OPS] + [quoted(b) for b in (b"\xff" * 9 + b"\1", b"\x80" * 9 + b"\1", b"\x08\x08")],
    "npy": [quoted(w.encode()) for w in ("'descr': ", "'fortran_order': ", "'shape': ", "'<f4'", "'>u2'", "'|O'", "True",
                                         "False", "(", ",)", "9223372036854775807", "4294967296")],
    "yaml": [quoted(w.encode()) for w in ("format_version: 0.5.3", "inputs", "outputs", "axes", "preprocessing", "postprocessing", "kwargs", "weights",
                                          "onnx", "source", "sha256", "&a", "*a", "<<", "- ", ": ", "|", "---", "channel", "space", "batch", "min", "step",
                                          "scale_range", "zero_mean_unit_variance", "clip", "binarize", "per_sample", "reference_tensor")],
    "json": [quoted(w.encode()) for w in ("true", "false", "null", "\\u", "\\ud83d", "\\udc80", "1e308", "-0", "[[[[", "]]]]")],
    "png": [quoted(w) for w in (b"IHDR", b"PLTE", b"tRNS", b"pHYs", b"IDAT", b"IEND", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\x78\x9c")],
    "jpeg": [quoted(bytes([0xff, m])) for m in (0xc0, 0xc1, 0xc2, 0xc4, 0xc9, 0xcc, 0xd0, 0xd8, 0xd9, 0xda, 0xdb, 0xdd, 0xe0, 0xe1, 0xee, 0xfe)] +
            [quoted(w) for w in (b"JFIF\0", b"Adobe", b"Exif\0\0", b"\x11", b"\x22", b"\x41", b"\0\x3f\0")],
    "codec": [quoted(w) for w in (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"RIFF", b"WEBPVP8L", b"WEBPVP8 ", b"WEBPVP8X", b"ALPH",
                                  b"\x78\x9c", b"\x80", b"\xff\xd8", b"\xff\xc4", b"\xff\xda", b"\xff\xdd")] +
             [quoted(struct.pack("<H", t)) for t in (6, 273, 278, 279, 513, 514, 519, 520, 521, 530)],
    "set": [quoted(w.encode()) for w in (".tif", ".ome", ".ome.xml", ".npy", "%d", "%05d", "*", "?", "[0-9]", r"(\d+)", "_(A|B)", "\n\n",
                                         "<TiffData ", "<UUID ", " FileName=\"", " IFD=\"", " FirstZ=\"", " FirstC=\"", " PlaneCount=\"",
                                         " SizeZ=\"2\"", "<BinaryOnly ", " MetadataFile=\"", "../", "99999999999999999999")],
    "config": [quoted(f'"{w}": '.encode()) for w in OPTIONS] + [quoted(w.encode()) for w in (
        "true", "false", "1e300", "-1", "9223372036854775807", '"auto"', '"percentile:1,99"', '"scale:1/255,0"', '"80%"', '":,0:1"', '"10-"')],
    "memlog": [quoted(w.encode()) for w in HOST.split(",") + ["gpu0_used_bytes", "gpu0_free_bytes", ",9223372036854775807", "\n0,"]],
    "weights": [quoted(w) for w in weight_files.WORDS],
    "journal": [quoted(journal_head()), quoted(struct.pack("<Q", 0x746f6c732d6a6774)), quoted(struct.pack("<Q", 12288)),
                quoted(struct.pack("<Q", 12352))],
}


MEMLOGS = {
    "run": (HOST + "\n" + "".join(
        "%d.%03d,%s,%d,%d,%d,9,3,0,0,4,99,5,6,7000000,%d,200000,%d,40,250\n" % (
            i // 4, i % 4 * 250, ("start", "run", "finish")[i // 5], i, 1000 * i, 1000 * i + 7, 90000 * (i > 2), 10 * i)
        for i in range(15))).encode(),
    "gpus": b"seconds,measured_bytes,gpu0_used_bytes,gpu0_free_bytes,gpu15_used_bytes\n0,1,2,3,4\n5,6,7,8,9\n",
    "other": b"colour,measured_bytes,seconds\r\nblue,5,0\r\n\r\n<&\"\xff,9,1e3\r\ngreen,7",
    "large": b"seconds,measured_bytes,file_bytes,decode_ms\n1e10,9223372036854775807,9223372036854775807,9223372036854775807\n",
}


INPUT5 = (b"- id: raw\n  axes:\n  - {type: batch}\n  - {type: channel, channel_names: [a, b]}\n  - {type: space, id: y, size: {min: 16, step: 8}}\n"
          b"  - {type: space, id: x, size: 64}\n")
YAMLS = {
    "five": b"format_version: 0.5.3\ntype: model\nname: n\ninputs:\n" + INPUT5 + b"  preprocessing:\n  - id: clip\n    kwargs: {min: 0, max: 9}\n"
            b"  - id: scale_range\n    kwargs: {axes: [y, x], min_percentile: 1, max_percentile: 99.8}\n  - id: scale_linear\n"
            b"    kwargs: {axis: channel, gain: [1, 2], offset: 3}\noutputs:\n" + INPUT5.replace(b"raw", b"out") +
            b"  postprocessing:\n  - id: sigmoid\n  - {id: binarize, kwargs: {threshold: 0.5}}\nweights:\n  onnx: {source: net.onnx, opset_version: 17}\n",
    "four": b"format_version: 0.4.10\nname: n\ninputs:\n- name: raw\n  axes: bcyx\n  data_type: uint8\n  shape: {min: [1, 1, 16, 16], step: [0, 0, 8, 8]}\n"
            b"  preprocessing:\n  - name: zero_mean_unit_variance\n    kwargs: {mode: per_sample, axes: yx}\noutputs:\n- name: out\n  axes: bcyx\n"
            b"  data_type: float32\n  shape: {reference_tensor: raw, scale: [1, 1, 1, 1], offset: [0, 0, 0, 0]}\n  postprocessing:\n"
            b"  - name: scale_mean_variance\n    kwargs: {mode: per_sample, axes: yx, reference_tensor: raw}\nweights:\n  onnx: {source: net.onnx}\n",
    "aliases": b"a: &a [1, &b {c: 2}]\nd: *a\ne: [*b, *b]\n",
    "texts": b"a: |\n  x\n  y\nb: >-\n  z\nc: 'd'\ne: \"\\u00e4\"\nf: ~\ng: .inf\nh: -1.5e-3\n",
    "json": b'{"a": [1, 2.5, "c", null, true], "b": {}}',
}


def main(folder):
    corpora = {"tiff": [(n, bytes(t.out)) for n, t in tiffs()], "ome": list(XML.items()), "onnx": [*onnxes(), *more_onnxes()],
               "png": list(pngs()), "jpeg": list(jpegs()), "codec": list(blocks()), "set": list(sets()),
               "npy": list(npys()), "json": list(JSON.items()), "config": list(CONFIG.items()),
               "memlog": list(MEMLOGS.items()), "journal": list(journals()), "video": list(videos()), "film": list(films()),
               "weights": list(weight_files.seeds()), "yaml": list(YAMLS.items())}
    for target, files in corpora.items():
        os.makedirs(os.path.join(folder, target), exist_ok=True)
        for name, data in files:
            with open(os.path.join(folder, target, name), "wb") as f:
                f.write(data)
        with open(os.path.join(folder, target + ".dict"), "w", encoding="ascii") as f:
            f.write("".join(f"w{i}={w}\n" for i, w in enumerate(DICTS[target])))


if __name__ == "__main__":
    main(sys.argv[1])
