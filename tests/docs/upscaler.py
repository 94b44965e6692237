#!/usr/bin/env python3
"""A small network for the pages: `upscaler.py OUT.onnx` makes red, green and blue twice as large, each pixel sharpened a
little and repeated."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "fuzz"))
from seeds import blk, model, node, num, port  # noqa: E402


def tensor(name, dims, values):
    return (b"".join(num(1, d) for d in dims) + num(2, 1) + blk(8, name) + blk(9, struct.pack(f"<{len(values)}f", *values)))


def weights():
    """For each colour, and each of the four pixels that become of one, the same kernel."""
    kernel = [0, -.1, 0, -.1, 1.4, -.1, 0, -.1, 0]
    return [v if i == o // 4 else 0 for o in range(12) for i in range(3) for v in kernel]


def main():
    nodes = [node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("DepthToSpace", ["a"], ["y"], blocksize=2, mode="CRD")]
    with open(sys.argv[1], "wb") as f:
        f.write(model(nodes, [tensor("w", [12, 3, 3, 3], weights())], [port("x", ["N", 3, "H", "W"])], [port("y", ["N", 3, "H2", "W2"])]))


if __name__ == "__main__":
    main()
