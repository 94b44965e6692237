#!/usr/bin/env python3
"""Packages written by bioimageio.spec, run by this command and by bioimageio.core: file to file.

    package_core.py TEGULA SOURCE MODELS

Around the project's own network and those of MODELS; every step that both do, in both formats. What core cannot run itself (numbers of an
output, which it looks for before there is one) is left to package_steps.py. 77: bioimageio.core, onnxruntime or tifffile is not there."""
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("LOGURU_LEVEL", "ERROR")
try:
    import numpy as np
    import onnxruntime  # noqa: F401, core runs ONNX by it
    import tifffile
    from bioimageio.core import create_prediction_pipeline, Sample, Tensor
    from bioimageio.spec import save_bioimageio_package, save_bioimageio_yaml_only  # noqa: F401
    from bioimageio.spec.model import v0_4, v0_5
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import package_help as h  # noqa: E402
import package_steps as steps  # noqa: E402

warnings.filterwarnings("ignore")
SOURCE, MODELS = Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else Path("nowhere")
# Of the largest number. core computes in float32 or float64, as it comes; onnxruntime sums in another order than we do.
STEPS, NETWORK = 1e-6, 2e-5


def steps5(given, post=False):
    return [{"id": name, **({"kwargs": k} if k is not None else {})} for name, k in given]


def common(folder):
    cover = folder / "cover.png"
    if not cover.exists():
        import struct
        import zlib
        raw = b"".join(b"\0" + bytes(range(64)) for _ in range(64))

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        cover.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)) +
                          chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
        (folder / "README.md").write_text("# Validation\nmade for a test\n", encoding="ascii")
    return {"name": "made for a test", "description": "made for a test", "license": "Apache-2.0", "version": "0.1.0",
            "authors": [{"name": "nobody"}], "cite": [{"text": "nothing", "url": "https://example.com"}],
            "documentation": folder / "README.md", "tags": ["test"], "covers": [cover],
            "git_repo": "https://example.com/a", "timestamp": "2026-01-01T00:00:00"}


def model5(folder, net, pre, post, test, out, size):
    """A description of format 0.5, checked by bioimageio.spec."""
    channels, c_out = test.shape[1], out.shape[1]
    np.save(folder / "test_in.npy", test)
    np.save(folder / "test_out.npy", out)
    scale = {a: out.shape[i] / test.shape[i] for a, i in (("y", 2), ("x", 3))}
    ins = h.axes5(channels, "yx", size)
    outs = h.axes5(c_out, "yx", of="raw")
    for a in outs[2:]:
        a["scale"] = 1 / scale[a["id"]]
    more = common(folder)
    more["covers"], more["documentation"] = [{"source": c} for c in more["covers"]], {"source": more["documentation"]}
    return v0_5.ModelDescr(**more,
                           inputs=[{"id": "raw", "axes": ins, "data": {"type": str(test.dtype)}, "preprocessing": steps5(pre),
                                    "test_tensor": {"source": folder / "test_in.npy"}}],
                           outputs=[{"id": "out", "axes": outs, "data": {"type": "float32"}, "postprocessing": steps5(post),
                                     "test_tensor": {"source": folder / "test_out.npy"}}],
                           weights={"onnx": {"source": net, "opset_version": 17}})


def model4(folder, net, pre, post, test, out, size):
    np.save(folder / "test_in.npy", test)
    np.save(folder / "test_out.npy", out)
    channels, n = test.shape[1], size["min"]
    scale = [1.0, 0.0 if out.shape[1] != channels else 1.0, out.shape[2] / test.shape[2], out.shape[3] / test.shape[3]]
    offset = [0.0, out.shape[1] / 2 if out.shape[1] != channels else 0.0, 0.0, 0.0]

    def steps4(given, behind=False):
        if behind:  # this bioimageio.spec wants to see them there
            given = [(name, {"axes": "cyx", **k} if name == "scale_linear" else k) for name, k in given]
        return [{"name": name, **({"kwargs": k} if k else {})} for name, k in given]
    return v0_4.ModelDescr(**common(folder), type="model",
                           inputs=[{"name": "raw", "axes": "bcyx", "data_type": "float32", "preprocessing": steps4(pre),
                                    "shape": {"min": (1, channels, n, n), "step": (0, 0, size["step"], size["step"])}}],
                           outputs=[{"name": "out", "axes": "bcyx", "data_type": "float32", "postprocessing": steps4(post, True),
                                     "shape": {"reference_tensor": "raw", "scale": scale, "offset": offset}}],
                           test_inputs=[folder / "test_in.npy"], test_outputs=[folder / "test_out.npy"],
                           weights={"onnx": {"source": net, "opset_version": 17}})


def save(descr, folder, name):
    """0.5 as an archive; 0.4, which this bioimageio.spec does not pack, as a description beside its files."""
    if descr.format_version.startswith("0.5"):
        path = folder / (name + ".zip")
        save_bioimageio_package(descr, output_path=path)
        return path
    path = folder / name / "rdf.yaml"
    path.parent.mkdir(exist_ok=True)
    for f in ("net.onnx", "test_in.npy", "test_out.npy", "cover.png", "README.md"):
        (path.parent / f).write_bytes((folder / f).read_bytes())
    save_bioimageio_yaml_only(descr, path)
    path.write_text(path.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
    return path


def by_core(package, image):
    """What core makes of an image of channels, y, x."""
    from bioimageio.spec import load_model_description
    descr = load_model_description(package, perform_io_checks=False)
    pipeline = create_prediction_pipeline(descr, weights_format="onnx")
    dims = [a if isinstance(a, str) else getattr(a, "id", a) for a in descr.inputs[0].axes]
    names = [{"b": "batch", "c": "channel"}.get(str(d), str(d)) for d in dims]
    name = getattr(descr.inputs[0], "id", None) or descr.inputs[0].name
    sample = Sample(members={name: Tensor.from_numpy(image[None], dims=names)}, stat={}, id="one")
    with pipeline as p:
        got = p.predict_sample_without_blocking(sample)
    return np.asarray(list(got.members.values())[0].data)[0]


def by_us(package, image, folder):
    tifffile.imwrite(folder / "in.tif", image, imagej=image.dtype != np.float64, metadata={"axes": "CYX"})
    code, _, err = h.run("run", "-y", "-m", package, folder / "in.tif", "-o", folder / "out.tif", "--compress", "none")
    h.expect(code == 0, f"{package}: {code}: {err}")
    return np.asarray(tifffile.imread(folder / "out.tif")) if code == 0 else None


NOT_BY_CORE = []
compared = 0


def compare(what, package, image, folder, tolerance):
    try:
        want = by_core(package, image)
    except Exception as e:  # noqa: BLE001, truth values for a network that takes numbers; thresholds of channels
        NOT_BY_CORE.append(what)
        print(f"{what}: not by core: {str(e)[-90:]}")
        return
    global compared
    compared += 1
    got = by_us(package, image, folder)
    if got is None:
        return
    got, want = got.reshape(want.shape).astype(np.float64), want.astype(np.float64)
    size = max(1.0, np.abs(want).max())
    worst = np.abs(got - want).max()
    if np.unique(want).size == 2 and set(np.unique(want)) == {0, 1}:  # a threshold falls on one side or the other
        h.expect((got != want).mean() < 1e-3, f"{what}: {(got != want).sum()} of {want.size} differ")
    else:
        h.expect(worst <= tolerance * size, f"{what}: {worst:.3g} apart, of numbers up to {size:.4g}")
    print(f"{what}: {worst:.2g} of {size:.4g}")


def image_of(channels, kind, seed, side=(64, 80)):
    a = np.array([h.draw(side[0] * side[1], kind, seed + c) for c in range(channels)], {"u1": "u1", "u2": "u2", "i2": "i2", "f4": "f4"}[kind])
    return a.reshape(channels, *side)


def each_step(folder):
    """A network that gives what it gets."""
    for number, (pre, post, channels, kind, _) in enumerate(steps.CASES5):
        if any(name in ("scale_mean_variance", "zero_mean_unit_variance", "scale_range") for name, _ in post):
            continue  # core has no numbers of an output
        if any("eps" in (k or {}) for _, k in pre):
            continue  # core takes 1e-6 whatever the description says
        net = folder / "net.onnx"
        net.write_bytes(h.same(channels))
        image = image_of(channels, kind, number)
        test = image[None].astype(np.float32)
        size = {"min": 1, "step": 1}
        for version, make, form in ((5, model5, lambda s: s), (4, model4, steps.four)):
            before, behind = form(pre), form(post)
            if before is None or behind is None:
                continue
            if version == 4 and any(isinstance((k or {}).get("gain"), list) for _, k in before + behind):
                continue  # of 0.4 core has no lists
            try:
                path = save(make(folder, net, before, behind, test, test, size), folder, f"step{version}_{number}")
            except Exception as e:  # noqa: BLE001, of pydantic or of spec
                h.expect(False, f"bioimageio.spec refuses case {number} of 0.{version}: {str(e)[:300]}")
                continue
            compare(f"0.{version} {[n for n, _ in before]} {[n for n, _ in behind]} {kind} x{channels}", path, image, folder, STEPS)


YX = {"axes": ["y", "x"]}
RANGE = ("scale_range", {**YX, "min_percentile": 1, "max_percentile": 99.8})
# (folder of MODELS, channels, steps before, steps behind, sizes)
NETWORKS = [
    ("kair_dncnn25", 1, [RANGE], [("clip", {"min": 0.0, "max": 1.0})], {"min": 16, "step": 1}),
    ("unet2d_nuclei_broad", 1, [("zero_mean_unit_variance", YX)], [("sigmoid", None)], 512),
    ("fmd_noise2noise_unet", 1, [("scale_linear", {"gain": 1 / 255, "offset": -0.5})], [], {"min": 32, "step": 32}),
    ("compact_x2_nomosuni", 3, [("scale_linear", {"gain": 1 / 255})], [("clip", {"min": 0.0, "max": 1.0})], {"min": 16, "step": 1}),
    ("sci_low_light", 3, [("scale_linear", {"gain": 1 / 255})], [("binarize", {"threshold": 0.5})], None),
]


def onnx_sizes(path):
    s = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return s.get_inputs()[0].shape, s


def networks(folder):
    own = SOURCE / "models" / "tegula_denoise.onnx"
    todo = [(own, 1, [RANGE], [], {"min": 16, "step": 4}), (own, 1, [("zero_mean_unit_variance", YX)], [("binarize", {"threshold": 0.1})], {"min": 16, "step": 4})]
    todo += [(MODELS / n / "model.onnx", c, pre, post, size) for n, c, pre, post, size in NETWORKS if (MODELS / n / "model.onnx").exists()]
    if len(todo) == 2:
        print(f"skipped: the networks of {MODELS}, which are not there")
    for path, channels, pre, post, size in todo:
        shape, session = onnx_sizes(path)
        side = tuple(d if isinstance(d, int) else 96 for d in shape[2:])
        image = image_of(channels, "u1", 3, side)
        test = image[None].astype(np.float32)
        out = session.run(None, {session.get_inputs()[0].name: test})[0]
        if not isinstance(size, dict):
            size = {"y": side[0], "x": side[1]}
        for version, make, form in ((5, model5, lambda s: s), (4, model4, steps.four)):
            if version == 4 and "min" not in size:
                continue  # sizes of one axis each are those of 0.5 here
            net = folder / "net.onnx"
            net.write_bytes(path.read_bytes())
            descr_size = size if "min" in size else None
            made = make(folder, net, form(pre), form(post), test, out, descr_size or {"min": 1, "step": 1}) if descr_size else fixed5(
                folder, net, pre, post, test, out, size)
            package = save(made, folder, f"net{version}_{path.parent.name}")
            compare(f"0.{version} {path.parent.name}", package, image, folder, NETWORK)


def fixed5(folder, net, pre, post, test, out, size):
    """The same with sizes that are the only ones."""
    m = model5(folder, net, pre, post, test, out, {"min": 1, "step": 1}).model_dump(mode="python")
    for a in m["inputs"][0]["axes"]:
        if a.get("id") in size:
            a["size"] = size[a["id"]]
    return v0_5.ModelDescr(**m)


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as name:
        each_step(Path(name))
        networks(Path(name))
    h.expect(len(NOT_BY_CORE) <= 5, f"core runs too few: {NOT_BY_CORE}")
    print(f"{compared} packages beside core, {h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
