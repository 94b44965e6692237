#!/usr/bin/env python3
"""What a description calls channels: of the output, in OME-XML, behind the image's own names; of the input, in the refusal of an image of
other channels; in `info` of the network.

    package_names.py TEGULA"""
import json
import os
import re
import subprocess
import sys
import tempfile

import package_help as h
from package_plans import plans

H, W = 20, 24


def two_of(channels):
    """A network that gives two channels of its own."""
    w = [1.0, *[0.0] * (2 * channels - 1)]
    return h.model([h.node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])], [h.tensor("w", [2, channels, 1, 1], w)],
                   [h.port("x", ["N", channels, "H", "W"])], [h.port("y", ["N", 2, "H", "W"])])


def named(channels, ins, outs, data):
    says = h.describe5(channels=channels, data=data)
    says["inputs"][0]["axes"][1]["channel_names"] = ins
    says["outputs"][0]["axes"][1]["channel_names"] = outs
    return says


def image(folder, names, channels):
    path = os.path.join(folder, "in.ome.tif")
    text = ('<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" '
            'DimensionOrder="XYCZT" Type="uint8" SizeX="%d" SizeY="%d" SizeC="%d" SizeZ="1" SizeT="1">%s<TiffData/></Pixels></Image></OME>'
            % (W, H, channels, "".join('<Channel ID="Channel:0:%d"%s/>' % (i, ' Name="%s"' % n if n else "") for i, n in enumerate(names))))
    from seeds import Tiff, page
    t = Tiff()
    for k in range(channels):
        page(t, W, H, seed=k + 1, **({"t270": (2, text.encode() + b"\0")} if k == 0 else {}))
    with open(path, "wb") as f:
        f.write(bytes(t.out))
    return path


def names_in(path):
    with open(path, "rb") as f:
        return re.findall(r'<Channel [^>]*?Name="([^"]*)"', f.read().decode("latin-1"))


def made(folder, model, path, what, want, *words):
    out = os.path.join(folder, "out.ome.tif")
    code, _, err = h.run("run", "-y", "-m", model, path, "-o", out, *words)
    h.expect(code == 0, f"{what}: {code}: {err}")
    got = names_in(out) if code == 0 else None
    h.expect(got == want, f"{what}: {got}, not {want}")


def told(model, what, key, want):
    code, out, err = h.run("info", "--json", model)
    got = json.loads(out).get(key) if code == 0 else err
    h.expect(got == want, f"{what}: info says {got}, not {want}")


def packages(folder):
    where, one = os.path.join(folder, "package"), two_of(1)
    outs = ["nuclei", "border & more"]
    h.write_package(where, named(1, ["any"], outs, one), one)
    escaped = ["nuclei", "border &amp; more"]
    told(where, "two of one", "output_channels", outs)
    told(where, "two of one", "input_channels", ["any"])
    made(folder, where, image(folder, [None], 1), "two of one", escaped)
    made(folder, where, image(folder, ["GFP", "DAPI"], 2), "two of each", [f"{c}, {n}" for c in ("GFP", "DAPI") for n in escaped])
    made(folder, where, image(folder, ["GFP", "DAPI"], 2), "two of a chosen one", [f"DAPI, {n}" for n in escaped], "--channels", "DAPI")
    made(folder, where, image(folder, ["GFP"], 1), "labels are one channel", ["GFP"], "--labels")
    made(folder, where, image(folder, ["GFP"], 1), "masks", [f"GFP, {n}" for n in escaped], "--post", "threshold:0.5")
    code, _, err = h.run("run", "-y", "-m", where, image(folder, [None], 1), "-o", os.path.join(folder, "ij.tif"), "--format", "imagej")
    code, out, _ = h.run("info", "--json", os.path.join(folder, "ij.tif"))
    h.expect(json.loads(out).get("first_label") == "nuclei", f"ImageJ: {out} {err}")
    for names in (["channel0", "channel1"], ["channel1", "channel2"], ["Channel 0", "Channel 1"]):
        h.write_package(where, named(1, ["channel0"], names, one), one)
        told(where, f"{names}", "output_channels", None)
        made(folder, where, image(folder, [None], 1), f"{names} name nothing", ["y 0", "y 1"])
    h.write_package(where, named(1, ["channel0"], ["channel1", "channel0"], one), one)
    made(folder, where, image(folder, [None], 1), "in another order they are names", ["channel1", "channel0"])


def refusals(folder):
    where, two = os.path.join(folder, "refuses"), h.same(2)
    h.write_package(where, named(2, ["DAPI", "gfp"], ["a", "b"], two), two)
    path = image(folder, ["RFP", "GFP", "DAPI"], 3)
    code, _, err = h.run("plan", "-m", where, path)
    h.expect(code == 64 and "takes 2 channels (DAPI, gfp)" in err and "--channels DAPI,GFP" in err, f"known names: {code}: {err}")
    made(folder, where, path, "as it says", ["a", "b"], "--channels", "DAPI,GFP")
    code, _, err = h.run("plan", "-m", where, image(folder, ["RFP", "GFP", "BFP"], 3))
    h.expect(code == 64 and "takes 2 channels (DAPI, gfp)" in err and "--channels RFP,GFP" in err, f"other names: {code}: {err}")


def datasets(folder):
    net, plan = os.path.join(folder, "net.onnx"), os.path.join(folder, "plans.json")

    def dataset(channels, says):
        with open(net, "wb") as f:
            f.write(two_of(channels))
        for path, what in ((plan, plans(["NoNormalization"] * channels, three=False)), (os.path.join(folder, "dataset.json"), says)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(what if isinstance(what, str) else json.dumps(what))

    path = image(folder, [None], 1)
    dataset(1, {"channel_names": {"0": "CT"}, "labels": {"tumour": 1, "background": 0}})
    told(net, "labels", "output_channels", ["background", "tumour"])
    told(net, "labels", "input_channels", ["CT"])
    made(folder, net, path, "labels", ["background", "tumour"])
    dataset(1, {"labels": {"background": 0, "whole": [1, 2], "core": [2], "ignore": 3}, "regions_class_order": [1, 2]})
    made(folder, net, path, "regions", ["whole", "core"])
    dataset(1, {"labels": {"background": 0, "a": 1, "b": 2}})
    made(folder, net, path, "of other channels than the network's", ["y 0", "y 1"])
    dataset(1, {"labels": {"background": 0, "a": 7}})
    made(folder, net, path, "a number that is no channel's", ["y 0", "y 1"])
    dataset(2, {"channel_names": {"0": "T1", "1": "FLAIR"}, "labels": {"background": 0, "a": 1}})
    code, _, err = h.run("plan", "-m", net, image(folder, ["flair", "T2", "t1"], 3))
    h.expect(code == 64 and "(T1, FLAIR)" in err and "--channels t1,flair" in err, f"names of inputs: {code}: {err}")
    dataset(1, "{")
    code, _, err = h.run("plan", "-m", net, path)
    h.expect(code == 65 and "dataset.json" in err, f"a damaged one: {code}: {err}")


def pixels(folder, model, path):
    """The file that is made, or the exit code with what is said."""
    out = os.path.join(folder, "out.ome.tif")
    code, _, err = h.run("run", "-y", "-m", model, path, "-o", out)
    if code:
        return f"{code}: {err}"
    with open(out, "rb") as f:
        return f.read()


def inside(folder):
    """The ONNX file of a package, named itself: with the package's description. Beside another's it is a network of its own."""
    one, path = two_of(1), image(folder, [None], 1)
    bare = os.path.join(folder, "bare", "net.onnx")
    os.mkdir(os.path.dirname(bare))
    with open(bare, "wb") as f:
        f.write(one)
    plain = pixels(folder, bare, path)
    h.expect(isinstance(plain, bytes), f"the network alone: {plain}")
    for name in ("rdf.yaml", "bioimageio.yaml"):
        where = os.path.join(folder, "inside" + name)
        net = os.path.join(where, "net.onnx")
        says = h.describe5(pre=[("scale_linear", {"gain": 0.5, "offset": 3})], data=one)
        says["outputs"][0]["axes"][1]["channel_names"] = ["nuclei", "border"]
        h.write_package(where, says, one, name)
        of = pixels(folder, where, path)
        h.expect(isinstance(of, bytes) and of != plain, f"{name}: the description does nothing")
        h.expect(pixels(folder, net, path) == of, f"{name}: another result than of the folder")
        told(net, name, "preprocessing", ["scale_linear"])
        code, out, err = h.run("run", "-y", "-m", "net.onnx", path, "-o", os.path.join(folder, "here.ome.tif"), cwd=where)
        h.expect(code == 0 and names_in(os.path.join(folder, "here.ome.tif")) == ["nuclei", "border"], f"{name}: in its folder: {code}: {err}")
        with open(os.path.join(where, name), encoding="utf-8") as f:
            text = f.read()
        for what, old, new, want in (("another's", '"net.onnx"', '"other.onnx"', plain), ("a step that is not known", "scale_linear", "scale_odd", "65"),
                                     ("other bytes", says["weights"]["onnx"]["sha256"], 64 * "0", "65"), ("no YAML", "{", "{[", "65")):
            with open(os.path.join(where, name), "w", encoding="utf-8") as f:
                f.write(text.replace(old, new, 1))
            got = pixels(folder, net, path)
            h.expect(got == want or isinstance(want, str) and str(got).startswith(want), f"{name}: {what}: {got[:300]}")
        with open(os.path.join(where, "net.json"), "w", encoding="utf-8") as f:
            f.write("{}")
        h.expect(pixels(folder, net, path) == plain, f"{name}: a description of the network's own goes first")


def exporter_without_torch(folder):
    """-I -S: a Python without packages."""
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "export_onnx.py")
    r = subprocess.run([sys.executable, "-I", "-S", tool, folder, "-o", os.path.join(folder, "made")], capture_output=True, text=True)
    h.expect(r.returncode == 1 and r.stderr.count("\n") == 1 and "PyTorch is not installed" in r.stderr, f"without PyTorch: {r}")


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        packages(folder)
        refusals(folder)
        datasets(folder)
        inside(folder)
        exporter_without_torch(folder)
    print(f"{h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
