#!/usr/bin/env python3
"""A small network for the pages: `cells.py OUT.onnx` makes of a grey image what Cellpose gives. Flow goes up the slope of the smoothed
brightness, and a pixel is a cell's where that is above 122."""
import math
import sys

from upscaler import model, node, port, tensor

REACH = 6


def weights():
    """Slopes down and to the right, and the smoothed brightness."""
    near = range(-REACH, REACH + 1)
    bell = {(y, x): math.exp(-(y * y + x * x) / 18) for y in near for x in near}
    total = sum(bell.values())
    down = [y * bell[y, x] / total for y in near for x in near]
    right = [x * bell[y, x] / total for y in near for x in near]
    return down + right + [bell[y, x] / total / 5 for y in near for x in near]


def main():
    side = 2 * REACH + 1
    made = node("Conv", ["x", "w", "b"], ["y"], kernel_shape=[side, side], pads=[REACH] * 4)
    with open(sys.argv[1], "wb") as f:
        f.write(model([made], [tensor("w", [3, 1, side, side], weights()), tensor("b", [3], [0, 0, -122 / 5])], [port("x", ["N", 1, "H", "W"])],
                      [port("y", ["N", 3, "H", "W"])]))


if __name__ == "__main__":
    main()
