#!/usr/bin/env python3
"""Give a bioimage.io package an ONNX file, made from its PyTorch weights.

    export_onnx.py PACKAGE -o FOLDER [--opset 17] [--shape 1,1,256,256] [--input NAME]

PACKAGE: a folder, a ZIP archive, or rdf.yaml / bioimageio.yaml. A torchscript entry is loaded as it is; of a
pytorch_state_dict entry the architecture is imported, which runs the package's program: export what you trust.
FOLDER gets all files of the package, NETWORK.onnx, and the description with an entry `onnx` and its SHA-256.

Needs torch, and PyYAML or ruyaml. The network is traced at a size that the description allows; height and width
(and depth) are left open, so other sizes run, too. What comes out is compared with the network once more
at another size where onnxruntime is there.
"""
import argparse
import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
import zipfile

NAMES = ("rdf.yaml", "bioimageio.yaml")


def load_yaml(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    try:
        import yaml
        return yaml.safe_load(text)
    except ImportError:
        import io
        try:
            import ruyaml
        except ImportError:
            sys.exit("export_onnx.py: nothing reads YAML in this Python: pip install PyYAML")
        return ruyaml.YAML(typ="safe").load(io.StringIO(text))


def save_yaml(says, path):
    """JSON is YAML, and needs no library."""
    import json
    with open(path, "w", encoding="utf-8") as f:
        json.dump(says, f, indent=1, default=str)


def unpack(package, folder):
    """All files of the package in `folder`; the path of the description."""
    os.makedirs(folder, exist_ok=True)
    if os.path.isfile(package) and package.endswith(".zip"):
        with zipfile.ZipFile(package) as z:
            z.extractall(folder)  # which keeps names inside
    else:
        source = package if os.path.isdir(package) else os.path.dirname(package) or "."
        if os.path.realpath(source) != os.path.realpath(folder):
            shutil.copytree(source, folder, dirs_exist_ok=True)
    named = [os.path.basename(package)] if package.endswith((".yaml", ".yml")) else NAMES
    for name in named:
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    sys.exit(f"{package}: no {' or '.join(named)}")


def find_architecture(entry, folder):
    """The class or function that makes the network, and its arguments, of either format."""
    arch = entry.get("architecture")
    if isinstance(arch, str):  # 0.4: "module.Class" or "file.py:Class", arguments beside it
        kwargs = entry.get("kwargs") or {}
        place, _, name = arch.rpartition(":" if ":" in arch else ".")
        source, module = (place, None) if ":" in arch else (None, place)
    else:
        kwargs, name = arch.get("kwargs") or {}, arch.get("callable")
        source, module = arch.get("source"), arch.get("import_from")
    if source:
        spec = importlib.util.spec_from_file_location("architecture", os.path.join(folder, source))
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(module)
    return getattr(found, name), kwargs


def load_network(torch, weights, folder):
    entry = weights.get("torchscript")
    if entry:
        return torch.jit.load(os.path.join(folder, entry["source"]), map_location="cpu").eval(), "torchscript"
    entry = weights.get("pytorch_state_dict")
    if not entry:
        sys.exit(f"no torchscript and no pytorch_state_dict among its weights: {', '.join(weights) or 'none'}")
    make, kwargs = find_architecture(entry, folder)
    network = make(**kwargs)
    state = torch.load(os.path.join(folder, entry["source"]), map_location="cpu", weights_only=True)
    network.load_state_dict(state)
    return network.eval(), "pytorch_state_dict"


def axis_names(tensor):
    axes = tensor["axes"]
    if isinstance(axes, str):
        return [{"b": "batch", "c": "channel"}.get(a, a) for a in axes]
    return [a.get("id") or a["type"] for a in axes]


def least(size, at_least):
    """An extent that {min, step} or a number allows."""
    if isinstance(size, dict) and "min" in size:
        n = size["min"]
        while size["step"] and n < at_least:
            n += size["step"]
        return n
    return size if isinstance(size, int) else at_least


def shape_of(tensor, at_least=64):
    axes = tensor["axes"]
    if isinstance(axes, str):
        shape = tensor["shape"]
        if isinstance(shape, list):
            return shape
        return [least({"min": m, "step": s}, at_least) for m, s in zip(shape["min"], shape["step"])]
    out = []
    for a in axes:
        if a["type"] == "batch":
            out.append(1)
        elif a["type"] == "channel":
            out.append(len(a["channel_names"]) if isinstance(a.get("channel_names"), list) else least(a.get("size"), 1))
        else:
            out.append(least(a.get("size"), at_least))
    return out


def open_axes(tensor, name):
    return {name: {i: a for i, a in enumerate(axis_names(tensor)) if a in ("batch", "z", "y", "x")}}


def compare(torch, network, path, shape):
    try:
        import onnxruntime
    except ImportError:
        return "not compared: onnxruntime is not there"
    x = torch.rand(*shape)
    with torch.no_grad():
        want = network(x)
    want = want[0] if isinstance(want, (list, tuple)) else want
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    got = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    worst = float(abs(got - want.numpy()).max())
    if worst > 1e-3 * max(1.0, float(want.abs().max())):
        sys.exit(f"{path} computes something else than the network: {worst:.3g} apart at {shape}")
    return f"at most {worst:.2g} from the network at {'x'.join(map(str, shape))}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("package")
    p.add_argument("-o", "--output", required=True, metavar="FOLDER")
    p.add_argument("--opset", type=int, default=17)
    p.add_argument("--shape", help="to trace at, such as 1,1,256,256 (default: what the description allows)")
    p.add_argument("--name", default="network.onnx", help="of the ONNX file")
    o = p.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("export_onnx.py: PyTorch is not installed for this Python: pip install torch")
    path = unpack(o.package, o.output)
    says = load_yaml(path)
    network, kind = load_network(torch, says["weights"], o.output)
    if len(says["inputs"]) != 1:
        sys.exit(f"{len(says['inputs'])} inputs: networks of one are exported")
    tensor, out = says["inputs"][0], says["outputs"][0]
    shape = [int(n) for n in o.shape.split(",")] if o.shape else shape_of(tensor)
    file = os.path.join(o.output, o.name)
    names = ["input", "output"]
    with torch.no_grad():
        torch.onnx.export(network, (torch.rand(*shape),), file, input_names=names[:1], output_names=names[1:], opset_version=o.opset,
                          dynamic_axes={**open_axes(tensor, names[0]), **open_axes(out, names[1])}, dynamo=False)
    verdict = compare(torch, network, file, shape)
    with open(file, "rb") as f:
        says["weights"]["onnx"] = {"source": o.name, "sha256": hashlib.sha256(f.read()).hexdigest(), "opset_version": o.opset, "parent": kind}
    save_yaml(says, path)
    print(f"{file}: from {kind}, {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
