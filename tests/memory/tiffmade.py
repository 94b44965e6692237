"""Uncompressed BigTIFF files for the memory tests, written with the standard library alone.

    header | directory | strip offsets | strip byte counts | pixels, strip after strip

Pixels may be left out (a sparse file reads as zeros there), so a file of many gigabytes takes
only the disk of what was written into it. `box` writes pixels into a finished file.
"""
import struct
import zlib

TYPES = {1: ("B", 1), 2: ("H", 2)}


class Made:
    """A grey or RGB image of `width` x `height`, `bytes_per` bytes a sample, made at `path`."""

    def __init__(self, path, width, height, channels=1, bytes_per=1, rows_per_strip=16):
        self.path, self.width, self.height = path, width, height
        self.channels, self.bytes_per = channels, bytes_per
        self.row_bytes = width * channels * bytes_per
        strips = -(-height // rows_per_strip)
        entries = 10
        table = 16 + 8 + 20 * entries + 8
        self.data = -(-(table + 16 * strips) // 4096) * 4096
        counts = [min(rows_per_strip, height - k * rows_per_strip) * self.row_bytes for k in range(strips)]
        offsets = [self.data + k * rows_per_strip * self.row_bytes for k in range(strips)]
        with open(path, "wb") as f:
            f.write(b"II" + struct.pack("<HHHQ", 43, 8, 0, 16))
            f.write(struct.pack("<Q", entries))
            bits = struct.pack("<" + "H" * channels, *[8 * bytes_per] * channels).ljust(8, b"\0")
            self.entry(f, 256, 4, 1, struct.pack("<Q", width))
            self.entry(f, 257, 4, 1, struct.pack("<Q", height))
            self.entry(f, 258, 3, channels, bits)
            self.entry(f, 259, 3, 1, struct.pack("<Q", 1))
            self.entry(f, 262, 3, 1, struct.pack("<Q", 2 if channels == 3 else 1))
            one = strips == 1
            self.entry(f, 273, 16, strips, struct.pack("<Q", offsets[0] if one else table))
            self.entry(f, 277, 3, 1, struct.pack("<Q", channels))
            self.entry(f, 278, 4, 1, struct.pack("<Q", rows_per_strip))
            self.entry(f, 279, 16, strips, struct.pack("<Q", counts[0] if one else table + 8 * strips))
            self.entry(f, 284, 3, 1, struct.pack("<Q", 1))
            f.write(struct.pack("<Q", 0))
            f.write(struct.pack(f"<{strips}Q", *offsets))
            f.write(struct.pack(f"<{strips}Q", *counts))
            f.truncate(self.data + height * self.row_bytes)

    @staticmethod
    def entry(f, tag, kind, count, value):
        f.write(struct.pack("<HHQ", tag, kind, count) + value.ljust(8, b"\0"))

    def rows(self, f, y, data):
        """Write whole rows from row y on, through the open file f."""
        f.seek(self.data + y * self.row_bytes)
        f.write(data)

    def box(self, f, y, x, rows):
        """Write `rows` (bytes each) into the image at (y, x)."""
        for k, row in enumerate(rows):
            f.seek(self.data + (y + k) * self.row_bytes + x * self.channels * self.bytes_per)
            f.write(row)


def pack(made, path):
    """The same pixels in one deflate strip, as many programs write a plane; grey only."""
    with open(made.path, "rb") as f:
        f.seek(made.data)
        data = zlib.compress(f.read(made.height * made.row_bytes), 1)
    data += b"\0" * (len(data) % 2)
    bits = 8 * made.bytes_per
    tags = [(256, 4, made.width), (257, 4, made.height), (258, 3, bits), (259, 3, 8), (262, 3, 1),
            (273, 4, 8), (277, 3, 1), (278, 4, made.height), (279, 4, len(data))]
    with open(path, "wb") as f:
        f.write(b"II*\0" + struct.pack("<I", 8 + len(data)) + data)
        f.write(struct.pack("<H", len(tags)))
        for tag, kind, value in tags:
            f.write(struct.pack("<HHII", tag, kind, 1, value))
        f.write(struct.pack("<I", 0))
    return path


def texture(seed, n):
    """n bytes, the same for a seed: noise around a slow wave, as a microscope's image has."""
    out = bytearray(n)
    s = seed * 2654435761 % (1 << 32) or 1
    for i in range(n):
        s = (s * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = 96 + (s >> 26) + (i >> 3 & 31)
    return bytes(out)


def fill(made, seed=1):
    """Give every row some texture (shifted copies of one long row: fast to make)."""
    base = texture(seed, made.row_bytes + 4099)
    with open(made.path, "r+b") as f:
        for y in range(made.height):
            at = y * 61 % 4099
            made.rows(f, y, base[at:at + made.row_bytes])
