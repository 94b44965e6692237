#!/usr/bin/env python3
"""The activations that `tegula estimate training` predicts, against the tensors that PyTorch's
autograd really keeps, for three networks made here: a U-Net, a residual network with
squeeze-and-excitation, and a transformer over patches. Within 15 %.

Each network is written once: a call such as `net.conv(x, 32, 3)` runs the operation in PyTorch
and writes the ONNX node beside it, so the two cannot differ. Skipped (77) without PyTorch.

usage: saved_tensors.py TEGULA
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "memory"))
from onnxmade import block, ints, number  # noqa: E402

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

BATCH = 2
TOLERANCE = 0.15  # what the issue asks for; the table printed shows how far off it really is


def real(name, value):
    import struct
    return block(1, name) + b"\x15" + struct.pack("<f", value) + number(20, 1)


def integer(name, value):
    return block(1, name) + number(3, value % 2 ** 64) + number(20, 2)


class Net:
    """A network under way: values are (name, tensor)."""

    def __init__(self, channels, height, width):
        self.nodes, self.inits, self.params, self.buffers, self.n = [], [], [], [], 0
        self.shape = (channels, height, width)

    def input(self):
        return "x", torch.rand(BATCH, *self.shape)

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def init(self, tensor, kind=1):
        name = self.name()
        data = tensor.detach().contiguous().numpy().tobytes()
        self.inits.append(b"".join(number(1, d) for d in tensor.shape) + number(2, kind)
                          + block(8, name) + block(9, data))
        return name

    def param(self, *shape):
        t = torch.nn.Parameter(torch.randn(*shape) * 0.05)
        self.params.append(t)
        return self.init(t), t

    def buffer(self, fill, n):
        t = torch.full((n,), fill)
        self.buffers.append(t)
        return self.init(t), t

    def node(self, op, inputs, tensor, *attrs):
        out = self.name()
        self.nodes.append(b"".join(block(1, i) for i in inputs) + block(2, out) + block(4, op)
                          + b"".join(block(5, a) for a in attrs))
        return out, tensor

    def conv(self, x, out, k, stride=1, groups=1, bias=True):
        w = self.param(out, x[1].shape[1] // groups, k, k)
        b = self.param(out) if bias else (None, None)
        y = F.conv2d(x[1], w[1], b[1], stride, k // 2 if k % 2 else 0, groups=groups)
        pad = k // 2 if k % 2 else 0
        return self.node("Conv", [x[0], w[0]] + ([b[0]] if bias else []), y,
                         ints("kernel_shape", [k, k]), ints("strides", [stride] * 2),
                         ints("pads", [pad] * 4), integer("group", groups))

    def up(self, x, out):
        w, b = self.param(x[1].shape[1], out, 2, 2), self.param(out)
        return self.node("ConvTranspose", [x[0], w[0], b[0]],
                         F.conv_transpose2d(x[1], w[1], b[1], 2),
                         ints("kernel_shape", [2, 2]), ints("strides", [2, 2]))

    def norm(self, x):
        c = x[1].shape[1]
        w, b, m, v = self.param(c), self.param(c), self.buffer(0.0, c), self.buffer(1.0, c)
        return self.node("BatchNormalization", [x[0], w[0], b[0], m[0], v[0]],
                         F.batch_norm(x[1], m[1], v[1], w[1], b[1], training=True))

    def layer_norm(self, x):
        c = x[1].shape[-1]
        w, b = self.param(c), self.param(c)
        return self.node("LayerNormalization", [x[0], w[0], b[0]],
                         F.layer_norm(x[1], (c,), w[1], b[1]))

    def linear(self, x, out):
        w, b = self.param(x[1].shape[-1], out), self.param(out)
        y = self.node("MatMul", [x[0], w[0]], x[1] @ w[1])
        return self.node("Add", [y[0], b[0]], y[1] + b[1])

    def relu(self, x):
        return self.node("Relu", [x[0]], F.relu(x[1]))

    def gelu(self, x):
        return self.node("Gelu", [x[0]], F.gelu(x[1]))

    def sigmoid(self, x):
        return self.node("Sigmoid", [x[0]], torch.sigmoid(x[1]))

    def softmax(self, x):
        return self.node("Softmax", [x[0]], F.softmax(x[1], -1), integer("axis", -1))

    def max_pool(self, x):
        return self.node("MaxPool", [x[0]], F.max_pool2d(x[1], 2), ints("kernel_shape", [2, 2]),
                         ints("strides", [2, 2]))

    def mean(self, x):
        return self.node("GlobalAveragePool", [x[0]], x[1].mean((2, 3), keepdim=True))

    def add(self, a, b):
        return self.node("Add", [a[0], b[0]], a[1] + b[1])

    def mul(self, a, b):
        return self.node("Mul", [a[0], b[0]], a[1] * b[1])

    def scaled(self, x, factor):
        return self.node("Mul", [x[0], self.init(torch.tensor(factor))], x[1] * factor)

    def matmul(self, a, b):
        return self.node("MatMul", [a[0], b[0]], a[1] @ b[1])

    def concat(self, a, b):
        return self.node("Concat", [a[0], b[0]], torch.cat([a[1], b[1]], 1), integer("axis", 1))

    def reshape(self, x, *shape):
        """`shape` without the batch, which ONNX copies (0)."""
        name = self.init(torch.tensor([0, *shape], dtype=torch.int64), 7)
        return self.node("Reshape", [x[0], name], x[1].reshape(BATCH, *shape))

    def transpose(self, x, *perm):
        return self.node("Transpose", [x[0]], x[1].permute(*perm), ints("perm", perm))

    def model(self, out):
        def port(name, dims):
            text = b"".join(block(1, number(1, d)) for d in dims)
            return block(1, name) + block(2, block(1, number(1, 1) + block(2, text)))
        graph = (b"".join(block(1, n) for n in self.nodes) + block(2, "net")
                 + b"".join(block(5, i) for i in self.inits)
                 + block(11, port("x", (1, *self.shape)))
                 + block(12, port(out[0], (1, *out[1].shape[1:]))))
        return number(1, 8) + block(7, graph) + block(8, block(1, "") + number(2, 20))


def unet(net, x):
    def twice(v, c):
        for _ in range(2):
            v = net.relu(net.norm(net.conv(v, c, 3, bias=False)))
        return v
    skips, c = [], 16
    for _ in range(3):
        x = twice(x, c)
        skips.append(x)
        x, c = net.max_pool(x), 2 * c
    x = twice(x, c)
    for skip in reversed(skips):
        c //= 2
        x = twice(net.concat(net.up(x, c), skip), c)
    return net.conv(x, 2, 1)


def residual(net, x):
    x = net.max_pool(net.relu(net.norm(net.conv(x, 24, 7, 2, bias=False))))
    for i in range(4):
        c = 24 << (i // 2)
        y = net.relu(net.norm(net.conv(x, c, 3, 1 + (i == 2), bias=False)))
        y = net.norm(net.conv(y, c, 3, groups=c, bias=False))
        gate = net.relu(net.conv(net.mean(y), c // 4, 1))
        y = net.mul(y, net.sigmoid(net.conv(gate, c, 1)))
        if i == 2:
            x = net.norm(net.conv(x, c, 1, 2, bias=False))
        x = net.relu(net.add(x, y))
    return net.conv(x, 10, 1)


def transformer(net, x):
    side, width, heads = net.shape[1] // 8, 96, 4
    tokens, deep = side * side, width // heads
    x = net.transpose(net.reshape(net.conv(x, width, 8, 8), width, tokens), 0, 2, 1)
    for _ in range(2):
        y = net.layer_norm(x)
        q, k, v = (net.transpose(net.reshape(net.linear(y, width), tokens, heads, deep), 0, 2, 1, 3)
                   for _ in range(3))
        a = net.scaled(net.matmul(q, net.transpose(k, 0, 1, 3, 2)), deep ** -0.5)
        y = net.reshape(net.transpose(net.matmul(net.softmax(a), v), 0, 2, 1, 3), tokens, width)
        x = net.add(x, net.linear(y, width))
        x = net.add(x, net.linear(net.gelu(net.linear(net.layer_norm(x), 4 * width)), width))
    return net.reshape(net.transpose(x, 0, 2, 1), width, side, side)


def kept_by_autograd(make, shape):
    """Network, output and bytes of the distinct memories that the forward pass keeps."""
    net, kept = Net(*shape), {}

    def pack(t):
        kept[t.untyped_storage().data_ptr()] = t
        return t
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = make(net, net.input())
    own = {t.untyped_storage().data_ptr() for t in net.params + net.buffers}
    return net, out, sum(t.untyped_storage().nbytes() for p, t in kept.items() if p not in own)


def predicted(tegula, model):
    done = subprocess.run([tegula, "estimate", "training", "-m", model, "--batch", str(BATCH), "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    tegula, failed = sys.argv[1], 0
    torch.manual_seed(1)
    print("network       kept by autograd   predicted   ratio   parameters")
    for make, shape in ((unet, (3, 128, 128)), (residual, (3, 128, 128)), (transformer, (3, 128, 128))):
        net, out, kept = kept_by_autograd(make, shape)
        with tempfile.NamedTemporaryFile(suffix=".onnx") as f:
            f.write(net.model(out))
            f.flush()
            got = predicted(tegula, f.name)
        mine = got["needed"]["activations_bytes"]
        n_params = sum(p.numel() for p in net.params)
        ok = abs(mine / kept - 1) <= TOLERANCE and got["parameters"] == n_params
        failed += not ok
        print(f"{make.__name__:12} {kept:18} {mine:11} {mine / kept:7.4f}   {got['parameters']}"
              f"{'' if ok else f'  WRONG, {n_params} parameters'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
