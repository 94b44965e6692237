#!/usr/bin/env python3
"""Write a BigTIFF of SIDE x SIDE uint16 pixels, all of them zero, that takes a few KiB of the disk: its strips are a hole.

    sparse.py FILE SIDE

For commands that read headers only."""
import struct
import sys

ROWS = 512


def entry(tag, kind, count, value):
    return struct.pack("<HHQQ", tag, kind, count, value)


def main():
    path, side = sys.argv[1], int(sys.argv[2])
    n, line = -(-side // ROWS), 2 * side
    offsets = 16 + 8 + 9 * 20 + 8
    counts = offsets + 8 * n
    pixels = (counts + 8 * n + 4095) // 4096 * 4096
    with open(path, "wb") as f:
        f.write(struct.pack("<2sHHHQQ", b"II", 43, 8, 0, 16, 9))
        f.write(entry(256, 4, 1, side) + entry(257, 4, 1, side) + entry(258, 3, 1, 16) + entry(259, 3, 1, 1) +
                entry(262, 3, 1, 1) + entry(273, 16, n, offsets) + entry(277, 3, 1, 1) + entry(278, 4, 1, ROWS) +
                entry(279, 16, n, counts) + struct.pack("<Q", 0))
        f.write(struct.pack(f"<{n}Q", *[pixels + i * ROWS * line for i in range(n)]))
        f.write(struct.pack(f"<{n}Q", *[min(ROWS, side - i * ROWS) * line for i in range(n)]))
        f.truncate(pixels + side * line)


if __name__ == "__main__":
    main()
