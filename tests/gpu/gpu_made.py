"""A network that takes much of a device's memory for little work, and its input."""
import struct

from seeds import floats, model, node, npy, port


def broad():
    """Many channels between convolutions of single pixels."""
    one = {"kernel_shape": [1, 1]}
    return model([node("Conv", ["x", "w"], ["a"], **one), node("Relu", ["a"], ["b"]),
                  node("Conv", ["b", "v"], ["c"], **one), node("Conv", ["c", "u"], ["y"], kernel_shape=[3, 3], pads=[1] * 4)],
                 [floats("w", [256, 1, 1, 1], 29), floats("v", [1, 256, 1, 1], 290), floats("u", [1, 1, 3, 3], 29)],
                 [port("x", ["N", 1, "H", "W"])], [port("y", ["N", 1, "H", "W"])])


def numbers(shape):
    n = 1
    for s in shape:
        n *= s
    return npy("<f4", repr(tuple(shape)), struct.pack(f"<{n}f", *[(i * 7919 % 251) / 251 - 0.4 for i in range(n)]))


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def content(name):
    with open(name, "rb") as f:
        return f.read()
