"""Arrays of several samples: each is what it is alone, or the network is refused that computes with several together.

    batch.py TEGULA SOURCE"""
import struct

from verbs_help import expect, main, tegula_run
from gallery_files import floats, model, node  # found by verbs_help
from seeds import ints, npy, port

N, C, H, W = 2, 3, 5, 6
K1 = {"kernel_shape": [1, 1]}


def net(nodes, inits, batch):
    return model(nodes, inits, [port("x", [batch, C, H, W])], [port("y", ["b", "c", "h", "w"])])


COUNT = [node("Shape", ["x"], ["sh"]), node("Gather", ["sh", "i"], ["n"], axis=0)]


def turned(op, **attrs):
    """Between two turns that bring the samples to axis 1 and back."""
    return [node("Transpose", ["x"], ["t"], perm=[1, 0, 2, 3]), node(op, ["t"], ["u"], **attrs),
            node("Transpose", ["u"], ["y"], perm=[1, 0, 2, 3])]


def of_image(nodes):
    """Arrays of another shape on the way: `nodes` make u of t; t is x in the shape s."""
    return [node("Reshape", ["x", "s"], ["t"]), *nodes, node("Shape", ["x"], ["sh"]), node("Reshape", ["u", "sh"], ["y"])]


SOFT = [node("Softmax", ["t"], ["u"], axis=-1)]
SEPARATE = {
    "layers": ([node("Conv", ["x", "w"], ["y"], **K1)], [floats("w", [C, C, 1, 1])]),
    "channels": ([node("Softmax", ["x"], ["y"], axis=1)], []),
    "space": ([node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=1), node("Sub", ["x", "m"], ["y"])], []),
    "tokens": (of_image(SOFT), [ints("s", [0, C, -1])]),
    "turned tokens": ([node("Transpose", ["x"], ["p"], perm=[0, 2, 3, 1]), node("Reshape", ["p", "s"], ["t"]),
                       node("MatMul", ["t", "m"], ["a"]), node("Softmax", ["a"], ["b"], axis=2), node("Transpose", ["b"], ["c"], perm=[0, 2, 1]),
                       node("Shape", ["x"], ["sh"]), node("Reshape", ["c", "sh"], ["y"])], [ints("s", [0, H * W, C]), floats("m", [C, C])]),
    "rows as samples": (of_image(SOFT), [ints("s", [-1, C * H * W])]),
    "joined": ([node("Concat", ["x", "x"], ["j"], axis=1), node("Split", ["j"], ["y", "z"], axis=1)], []),
    "by turns": (turned("Softmax", axis=3), []),
    "norm": ([node("InstanceNormalization", ["x", "g", "g"], ["y"])], [floats("g", [C])]),
    "flipped": ([node("Slice", ["x", "from", "to", "at", "by"], ["y"])],
                [ints("from", [-1]), ints("to", [-(1 << 40)]), ints("at", [3]), ints("by", [-1])]),
    "a token of its own": ([node("Reshape", ["x", "s"], ["t"]), node("Shape", ["x"], ["sh"]), node("Gather", ["sh", "i"], ["n"], axis=0),
                            node("Concat", ["n", "one", "width"], ["e"], axis=0), node("Expand", ["c", "e"], ["cn"]),
                            node("Concat", ["cn", "t"], ["j"], axis=1), node("Softmax", ["j"], ["k"], axis=1),
                            node("Slice", ["k", "one", "many", "one"], ["u"]), node("Reshape", ["u", "sh"], ["y"])],
                           [ints("s", [0, C * H, W]), ints("i", [0]), ints("one", [1]), ints("many", [1 << 40]), ints("width", [W]),
                            floats("c", [1, 1, W])]),
    "zeros like it": ([node("Shape", ["x"], ["sh"]), node("ConstantOfShape", ["sh"], ["z"]), node("Add", ["x", "z"], ["a"]),
                       node("Greater", ["a", "z"], ["g"]), node("Where", ["g", "a", "z"], ["y"])], []),
    "edges": ([node("Pad", ["x", "p"], ["e"], mode="reflect"), node("Conv", ["e", "w"], ["y"], kernel_shape=[3, 3])],
              [ints("p", [0, 0, 1, 1, 0, 0, 1, 1]), floats("w", [C, C, 3, 3])]),
    "made weights": ([node("Mul", ["w", "g"], ["v"]), node("Conv", ["x", "v"], ["y"], **K1)], [floats("w", [C, C, 1, 1]), floats("g", [C, 1, 1, 1])]),
    "sums": ([node("Einsum", ["x", "m"], ["y"], equation="nchw,cd->ndhw")], [floats("m", [C, C])]),
    "gated": ([node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=1), node("Mul", ["x", "m"], ["y"])], []),
    "folded": ([node("ReduceSum", ["x", "a"], ["t"], keepdims=0), node("Unsqueeze", ["t", "a"], ["u"]), node("Add", ["x", "u"], ["y"])],
               [ints("a", [2])]),
}
TOGETHER = {
    "one alone": (of_image(SOFT), [ints("s", [1, C, H * W])]),  # takes no batch, whatever it says
    "where there is one": ([*COUNT, node("Equal", ["n", "one"], ["q"]), node("Add", ["x", "x"], ["d"]), node("Where", ["q", "x", "d"], ["y"])],
                           [ints("i", [0]), ints("one", [1])]),
    "a channel by their number": ([*COUNT, node("Sub", ["n", "one"], ["k"]), node("Gather", ["x", "k"], ["f"], axis=1), node("Add", ["x", "f"], ["y"])],
                                  [ints("i", [0]), ints("one", [1])]),
    "moved on": ([node("Pad", ["x", "p"], ["y"])], [ints("p", [1, 0, 0, 0, -1, 0, 0, 0])]),
    "summed away": ([node("Einsum", ["x", "x"], ["y"], equation="nchw,mchw->nchw")], []),
    "means beside channels": ([node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0), node("Add", ["x", "m"], ["y"])], []),
    "count of elements": ([node("Shape", ["x"], ["sh"]), node("ConstantOfShape", ["sh"], ["z"]), node("Exp", ["z"], ["o"]),
                           node("ReduceSum", ["o"], ["k"], keepdims=1), node("Div", ["x", "k"], ["y"])], []),
    "softmax": ([node("Softmax", ["x"], ["y"], axis=0)], []),
    "largest": ([node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=1), node("Sub", ["x", "m"], ["y"])], []),
    "mean": ([node("ReduceMean", ["x"], ["m"], axes=[0, 2, 3], keepdims=1), node("Sub", ["x", "m"], ["y"])], []),
    "mean and variance": ([node("MeanVarianceNormalization", ["x"], ["y"])], []),
    "tokens of all": (of_image(SOFT), [ints("s", [1, C, -1])]),
    "backwards": ([node("Slice", ["x", "from", "to", "at", "by"], ["y"])],
                  [ints("from", [-1]), ints("to", [-(1 << 40)]), ints("at", [0]), ints("by", [-1])]),
    "first of all": ([node("Gather", ["x", "i"], ["f"], axis=0), node("Add", ["x", "f"], ["y"])], [ints("i", [0])]),
    "tiled": ([node("Tile", ["x", "r"], ["y"])], [ints("r", [2, 1, 1, 1])]),
    "products of samples": (of_image([node("Transpose", ["t"], ["v"], perm=[1, 0]), node("MatMul", ["t", "v"], ["p"]),
                                      node("MatMul", ["p", "t"], ["u"])]), [ints("s", [-1, C * H * W])]),
    "by their number": ([node("Shape", ["x"], ["sh"]), node("Gather", ["sh", "i"], ["n"], axis=0), node("Cast", ["n"], ["f"], to=1),
                         node("Mul", ["x", "f"], ["y"])], [ints("i", [0])]),
}


def values(k):
    return [((i * 37 + k * 11) % 23 - 11) / 7 for i in range(C * H * W)]


def write_array(name, samples):
    data = [v for k in samples for v in values(k)]
    with open(name, "wb") as f:
        f.write(npy("<f4", f"({len(samples)}, {C}, {H}, {W})", struct.pack(f"<{len(data)}f", *data)))


def data_of(name):
    with open(name, "rb") as f:
        data = f.read()
    return data[10 + struct.unpack_from("<H", data, 8)[0]:]


def write_net(name, nodes, inits, batch):
    with open(name, "wb") as f:
        f.write(net(nodes, inits, batch))


def separate_ones_run_as_if_alone():
    for name, (nodes, inits) in SEPARATE.items():
        write_net("net.onnx", nodes, inits, "N")
        alone = b""
        for k in range(N):
            tegula_run("run", "-m", "net.onnx", f"{k}.npy", "-o", "one.npy", "-y")
            alone += data_of("one.npy")
        tegula_run("run", "-m", "net.onnx", "both.npy", "-o", "y.npy", "-y")
        expect(data_of("y.npy") == alone, f"{name}: samples of a batch are what they are alone")


def others_are_refused():
    for name, (nodes, inits) in TOGETHER.items():
        for batch in ("N", N):
            write_net("net.onnx", nodes, inits, batch)
            r = tegula_run("run", "-m", "net.onnx", "0.npy", "-o", "one.npy", "-y", code=None)
            expect(r.returncode == 0 or "negative pads" in r.stderr, f"{name}: {r.stderr}")
            r = tegula_run("run", "-m", "net.onnx", "both.npy", "-o", "y.npy", "-y", code=65)
            expect("both.npy holds 2 samples: give arrays of one" in r.stderr, f"{name}: {r.stderr}")


def a_network_of_one_sample_means_each_by_itself():
    nodes, inits = TOGETHER["softmax"]
    write_net("net.onnx", nodes, inits, 1)
    tegula_run("run", "-m", "net.onnx", "both.npy", "-o", "y.npy", "-y")


def prepare():
    for k in range(N):
        write_array(f"{k}.npy", [k])
    write_array("both.npy", range(N))


main(prepare, [separate_ones_run_as_if_alone, others_are_refused, a_network_of_one_sample_means_each_by_itself])
