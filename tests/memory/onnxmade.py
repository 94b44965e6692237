"""One convolution as an ONNX file, written with the standard library alone (protobuf wire format:
a field is a varint `number << 3 | kind`, kind 0 a varint, kind 2 a length and bytes)."""
import struct


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def ints(name, values):
    """AttributeProto: name, ints, type INTS."""
    return block(1, name) + b"".join(number(8, v) for v in values) + number(20, 7)


def port(name, channels):
    """ValueInfoProto of a float tensor N=1, channels, H, W."""
    dims = block(1, number(1, 1)) + block(1, number(1, channels)) + block(1, block(2, "H")) + block(1, block(2, "W"))
    return block(1, name) + block(2, block(1, number(1, 1) + block(2, dims)))


def conv3x3(path, weights):
    """Write y = Conv3x3(x), one channel, zero padding; weights: 9 numbers in row order."""
    node = (block(1, "x") + block(1, "w") + block(2, "y") + block(3, "conv") + block(4, "Conv") +
            block(5, ints("kernel_shape", [3, 3])) + block(5, ints("pads", [1, 1, 1, 1])))
    shape = b"".join(number(1, d) for d in (1, 1, 3, 3))
    w = shape + number(2, 1) + block(8, "w") + block(9, struct.pack("<9f", *weights))
    graph = block(1, node) + block(2, "conv") + block(5, w) + block(11, port("x", 1)) + block(12, port("y", 1))
    with open(path, "wb") as f:
        f.write(number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 13)))
