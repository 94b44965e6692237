"""Golden pair of the project's own network: a fixed picture, and what onnxruntime makes of it.

Needs numpy and onnxruntime. Run from the repository's root; rewrites tests/golden/tegula_denoise.
"""
import json
import numpy as np
import onnxruntime as ort

FOLDER = "tests/golden/tegula_denoise"
y, x = np.mgrid[0:60, 0:76].astype(np.float64)
picture = 0.4 + 0.3 * np.sin(x / 5) * np.cos(y / 7) + 0.5 * np.exp(-((x - 40) ** 2 + (y - 25) ** 2) / 60)
picture += 0.1 * np.random.default_rng(20261121).standard_normal(picture.shape)
tensor = picture.astype(np.float32)[None, None]

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession("models/tegula_denoise.onnx", options, providers=["CPUExecutionProvider"])
result = session.run(None, {session.get_inputs()[0].name: tensor})[0]
best = ort.InferenceSession("models/tegula_denoise.onnx", providers=["CPUExecutionProvider"])
spread = float(np.abs(best.run(None, {best.get_inputs()[0].name: tensor})[0] - result).max())

np.save(f"{FOLDER}/small.in.npy", tensor)
np.save(f"{FOLDER}/small.out.npy", result)
with open(f"{FOLDER}/golden.json", "w") as f:
    json.dump({
        "model": "models/tegula_denoise.onnx",
        "reference": f"onnxruntime {ort.__version__} CPU, graph optimisations off, float32",
        "licence": "Apache-2.0",
        "suggested_tolerance": {"rtol": 3e-6, "atol": 3e-6},
        "tolerance_why": "ten times the spread between the optimised and the plain graph",
        "optimised_against_plain_max_abs": spread,
        "cases": [{"tag": "small",
                   "inputs": [{"name": session.get_inputs()[0].name, "file": "small.in.npy"}],
                   "outputs": [{"name": session.get_outputs()[0].name, "file": "small.out.npy"}]}],
    }, f, indent=1)
    f.write("\n")
print("spread", spread)
