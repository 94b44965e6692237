#!/usr/bin/env python3
"""tools/export_onnx.py: packages of PyTorch weights, refused with the command that helps, exported by it, and run.

    package_export.py TEGULA SOURCE

77: torch, a YAML library or an exporter is not there."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

MISSING = [n for n in ("numpy", "onnx", "torch") if not importlib.util.find_spec(n)]
if not any(importlib.util.find_spec(n) for n in ("yaml", "ruyaml")):
    MISSING.append("yaml or ruyaml")
if MISSING:
    print(f"skipped: no {', '.join(MISSING)}")
    sys.exit(77)
import numpy as np  # noqa: E402
import torch  # noqa: E402

import package_help as h  # noqa: E402

NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = torch.nn.Conv2d(1, width, 3, padding=1)
        self.b = torch.nn.Conv2d(width, 1, 3, padding=1)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
"""


def packages(folder):
    """(path, network): a torchscript entry of 0.5, and state dicts of both formats."""
    scope = {}
    exec(NET, scope)  # noqa: S102, written above
    torch.manual_seed(3)
    net = scope["Net"](5).eval()
    for version, describe in ((5, h.describe5), (4, h.describe4)):
        says = describe([("scale_linear", {"gain": 0.01})])
        where = os.path.join(folder, f"state{version}")
        os.makedirs(where)
        torch.save(net.state_dict(), os.path.join(where, "weights.pt"))
        with open(os.path.join(where, "net.py"), "w", encoding="ascii") as f:
            f.write(NET)
        arch = {"architecture": "net.py:Net", "kwargs": {"width": 5}} if version == 4 else {
            "architecture": {"source": "net.py", "callable": "Net", "kwargs": {"width": 5}}, "pytorch_version": "2.0"}
        says["weights"] = {"pytorch_state_dict": {"source": "weights.pt", **arch}}
        with open(os.path.join(where, "rdf.yaml"), "w", encoding="ascii") as f:
            json.dump(says, f)
        yield where, net
    where = os.path.join(folder, "script")
    os.makedirs(where)
    torch.jit.trace(net, torch.rand(1, 1, 32, 32)).save(os.path.join(where, "script.pt"))
    says["weights"] = {"torchscript": {"source": "script.pt"}, "keras_hdf5": {"source": "k.h5"}}
    with open(os.path.join(where, "rdf.yaml"), "w", encoding="ascii") as f:
        json.dump(says, f)
    yield where, net


def main():
    export = os.path.join(sys.argv[2], "tools", "export_onnx.py")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        pixels = h.draw(70 * 90, "u1", 4)
        image = os.path.join(folder, "in.tif")
        h.write_tiff(image, [pixels], 70, 90, "u1")
        for where, net in packages(folder):
            code, _, err = h.run("plan", "-m", where, image)
            h.expect(code == 65 and "no ONNX weights" in err and "tools/export_onnx.py" in err, f"{where}: {code}: {err}")
            kept = where + "_onnx"
            r = subprocess.run([sys.executable, "-B", export, where, "-o", kept], capture_output=True, text=True, timeout=300)
            h.expect(r.returncode == 0 and "from the network" in r.stdout or "not compared" in r.stdout, f"export of {where}: {r.stdout} {r.stderr[-600:]}")
            if r.returncode:
                continue
            with torch.no_grad():
                want = net(torch.tensor(pixels, dtype=torch.float32).reshape(1, 1, 70, 90) * 0.01).numpy().ravel()
            _, got = h.result_of(kept, image, folder)
            worst = np.abs(np.array(got) - want).max() if len(got) == want.size else 1
            h.expect(worst < 1e-5, f"{kept}: {worst} from PyTorch")
    print(f"{h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
