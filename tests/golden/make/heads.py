"""Golden case of a network with several heads: channels last at the input and at one output, an image
of half the size, one number per channel, a table with a row for each pixel.

Needs numpy, onnx and onnxruntime. Run from the repository's root; rewrites tests/golden/heads.
"""
import json
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime as ort

FOLDER = "tests/golden/heads"
rng = np.random.default_rng(20261121)


def weights(name, *shape):
    scale = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 2 else shape[0])
    return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(np.float32), name)


def longs(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


initializers = [weights("w0", 8, 3, 3, 3), weights("b0", 8), weights("w1", 3, 8, 3, 3), weights("w2", 1, 8, 3, 3),
                weights("w3", 8, 5), weights("b3", 5), longs("tokens", 1, 8, -1)]
node = helper.make_node
nodes = [
    node("Transpose", ["picture"], ["x"], perm=[0, 3, 1, 2]),
    node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
    node("Relu", ["c0"], ["f"]),
    node("Conv", ["f", "w1"], ["c1"], pads=[1, 1, 1, 1]),
    node("Sigmoid", ["c1"], ["e"]),
    node("Transpose", ["e"], ["enhanced"], perm=[0, 2, 3, 1]),
    node("Conv", ["f", "w2"], ["mask"], pads=[1, 1, 1, 1], strides=[2, 2]),
    node("GlobalAveragePool", ["f"], ["g"]),
    node("Flatten", ["g"], ["mean"], axis=1),
    node("Reshape", ["f", "tokens"], ["t"]),
    node("Transpose", ["t"], ["rows"], perm=[0, 2, 1]),
    node("MatMul", ["rows", "w3"], ["product"]),
    node("Add", ["product", "b3"], ["table"]),
]
value = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "heads", [value("picture", TensorProto.FLOAT, [1, "H", "W", 3])],
    [value("enhanced", TensorProto.FLOAT, [1, "H", "W", 3]), value("mask", TensorProto.FLOAT, [1, 1, "h", "w"]),
     value("mean", TensorProto.FLOAT, [1, 8]), value("table", TensorProto.FLOAT, [1, "n", 5])],
    initializers)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, f"{FOLDER}/model.onnx")

y, x = np.mgrid[0:24, 0:36].astype(np.float64)
picture = 0.5 + 0.4 * np.stack([np.sin(x / 5), np.cos(y / 3), np.sin((x + y) / 7)], -1)
picture += 0.05 * rng.standard_normal(picture.shape)
tensor = picture.astype(np.float32)[None]
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
plain = ort.InferenceSession(f"{FOLDER}/model.onnx", options, providers=["CPUExecutionProvider"])
best = ort.InferenceSession(f"{FOLDER}/model.onnx", providers=["CPUExecutionProvider"])
results = plain.run(None, {"picture": tensor})
spread = max(float(np.abs(a - b).max()) for a, b in zip(results, best.run(None, {"picture": tensor})))
np.save(f"{FOLDER}/small.in.npy", tensor)
for output, result in zip(plain.get_outputs(), results):
    np.save(f"{FOLDER}/small.{output.name}.npy", result)
with open(f"{FOLDER}/golden.json", "w") as f:
    json.dump({
        "model": "model.onnx",
        "reference": f"onnxruntime {ort.__version__} CPU, graph optimisations off, float32",
        "licence": "Apache-2.0",
        "suggested_tolerance": {"rtol": 3e-6, "atol": 3e-6},
        "tolerance_why": "ten times the spread between the optimised and the plain graph, or of a rounding",
        "optimised_against_plain_max_abs": spread,
        "cases": [{"tag": "small",
                   "inputs": [{"name": "picture", "file": "small.in.npy"}],
                   "outputs": [{"name": o.name, "file": f"small.{o.name}.npy"} for o in plain.get_outputs()]}],
    }, f, indent=1)
    f.write("\n")
print("spread", spread, [r.shape for r in results])
