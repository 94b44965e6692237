#!/usr/bin/env python3
"""A network of other channels than the image: the refusal has a command that can be pasted, and it works. However a choice is
written, it is the same job.

    channels.py TEGULA SOURCE"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

TEGULA, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "packages"))
import package_help as h  # noqa: E402
import package_names as names  # noqa: E402


def ask(folder, *words):
    r = subprocess.run([TEGULA, *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return r.returncode, r.stdout, r.stderr


def commands_of(said):
    lines = said.splitlines()
    at = [i for i, line in enumerate(lines) if line == "  such as:"]
    return [shlex.split(line) for line in lines[at[0] + 1:] if line.startswith("    ")] if at else []


def offers(folder, given, said, would):
    """What is refused says `said`, and each of its commands is run; would: the values of --channels, in order."""
    words = ["run", *given, "-o", "out.tif", "-y", "in 1.ome.tif"]
    code, out, err = ask(folder, *words)
    h.expect(code == 64 and said in err, f"{given}: {code}: {err}")
    found = commands_of(err)
    h.expect(len(found) > 0 and all(c[:2] == [TEGULA, "run"] and c[-2] == "--channels" for c in found), f"{given}: {found}")
    values = tuple(c[-1] for c in found)
    h.expect(would in (None, values), f"{given}: {values}, not {would}")
    for c in found:
        code, _, err = ask(folder, *c[1:])
        h.expect(code == 0, f"{c}: {code}: {err}")
    code, out, _ = ask(folder, *words, "--json")
    remedies = json.loads(out.splitlines()[-1]).get("remedies", [])
    h.expect(tuple(r["options"].get("channels") for r in remedies) == values, f"{given}: {remedies}")
    h.expect(all(shlex.split(r["command"])[-2:] == ["--channels", v] for r, v in zip(remedies, values)), f"{given}: {remedies}")


def other_order(folder):
    """Of as many channels as the network takes, in another order than the description's."""
    package, same = os.path.join(folder, "package"), h.same(2)
    h.write_package(package, names.named(2, ["GFP", "DAPI"], ["one", "other"], same), same)
    os.rename(names.image(folder, ["DAPI", "GFP"], 2), os.path.join(folder, "in 2.ome.tif"))
    words = ["run", "-m", package, "-o", "out.tif", "-y", "in 2.ome.tif"]
    code, _, err = ask(folder, *words)
    h.expect(code == 0 and "another order: --channels GFP,DAPI is the network's" in err, f"other order: {code}: {err}")
    code, _, err = ask(folder, *words, "--channels", "GFP,DAPI")
    h.expect(code == 0 and "another order" not in err and "other names" not in err, f"its own order: {code}: {err}")
    os.rename(names.image(folder, ["GFP", "405"], 2), os.path.join(folder, "in 2.ome.tif"))
    code, _, err = ask(folder, *words)
    h.expect(code == 0 and "it gets GFP for GFP, 405 for DAPI" in err, f"other names: {code}: {err}")


# Spellings of one choice each, and choices that are others.
SPELLINGS = (
    (["--channels", "1", "--z", "2-4"], (["--channels", "GFP", "--z", "2:5"], ["--c", "name:GFP", "--z", "2,3,4"], ["--channels", "gfp", "--z", "2-"]),
     (["--channels", "0", "--z", "2-4"], ["--channels", "1", "--z", "1-3"], ["--z", "2-4"])),
    (["--planes", "2-3"], (["--planes", "2,3"],), (["--planes", "2"], ["--planes", "1-2"])),
    (["--planes", "1,2,6"], (["--planes", "1-2,6"],), (["--planes", "1,2,7"],)),  # no entries of axes
    (["--channels", "GFP,DAPI"], (["--channels", "1,0"],), (["--channels", "0,1"],)),
    ([], (["--channels", "0-"], ["--z", "0:5"], ["--channels", "DAPI,GFP", "--planes", "0-"]), (["--channels", "1,0"],)),
    (["--roi", "1:3,:,:"], (["--z", "1-2", "--roi", ":,:"],), (["--roi", "2:4,:,:"],)))


def stack(folder):
    """Two channels of five slices."""
    from seeds import Tiff, page
    t = Tiff()
    text = ('<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" '
            'DimensionOrder="XYZCT" Type="uint8" SizeX="24" SizeY="20" SizeC="2" SizeZ="5" SizeT="1"><Channel ID="Channel:0:0" Name="DAPI"/>'
            '<Channel ID="Channel:0:1" Name="GFP"/><TiffData/></Pixels></Image></OME>')
    for k in range(10):
        page(t, 24, 20, seed=k + 1, **({"t270": (2, text.encode() + b"\0")} if k == 0 else {}))
    with open(os.path.join(folder, "stack.ome.tif"), "wb") as f:
        f.write(bytes(t.out))


def spellings(folder):
    """What a run finished, or stopped in, is the same job in any of them. A receipt holds the fingerprint of the journal."""
    stack(folder)
    out = os.path.join(folder, "made.ome.tif")
    for first, same, others in SPELLINGS:
        words = ["run", "-m", "one.onnx", "stack.ome.tif", "-o", "made.ome.tif"]
        code, _, err = ask(folder, *words, "-y", *first)
        h.expect(code == 0, f"{first}: {code}: {err}")
        with open(out, "rb") as f:
            made = f.read()
        for given in same:
            code, _, err = ask(folder, *words, "--skip-done", *given)
            h.expect(code == 0, f"{given} after {first}: {code}: {err}")
            code, _, err = ask(folder, "run", "-m", "one.onnx", "stack.ome.tif", "-o", "again.ome.tif", "-y", *given)
            with open(os.path.join(folder, "again.ome.tif"), "rb") as f:
                h.expect(f.read() == made, f"{given}: other bytes than of {first}")
        for given in others:
            code, _, err = ask(folder, *words, "--skip-done", *given)
            h.expect(code == 73, f"{given} after {first}: {code}: {err}")


def told(folder):
    """What is said of choices that are refused, and that what is offered is taken."""
    odd = os.path.join(folder, "odd.ome.tif")
    os.rename(names.image(folder, ["1:2", "a,b", "plain"], 3), odd)
    os.rename(names.image(folder, ["2"], 1), os.path.join(folder, "single.ome.tif"))
    copy = ["copy", "-y", "-o", "copied.tif"]
    for words, code, says in (
            ([*copy, odd, "--channels", "1:2"], 64, "--channels name:1:2 is the name, --channels 1-1 the number"),
            ([*copy, odd, "--channels", "name:1:2"], 0, ""), ([*copy, odd, "--channels", "1-1"], 0, ""),
            ([*copy, odd, "--channels", "a,b"], 64, "a comma of a name is written \\,"),
            ([*copy, odd, "--channels", "a\\,b,plain"], 0, ""), ([*copy, odd, "--channels", "plain, name:a\\,b"], 0, ""),
            ([*copy, "single.ome.tif", "--channels", "GFP"], 64, "there is one, 0 2"), ([*copy, "single.ome.tif", "--channels", "3"], 64, "there is one, 0 2"),
            ([*copy, "stack.ome.tif", "--z", "0:5:2"], 64, "there are 0 to 4; steps are not taken, each is named: 0,2,4"),
            ([*copy, "stack.ome.tif", "--planes", "0:9:4"], 64, "steps are not taken, each is named: 0,4,8"),
            ([*copy, "stack.ome.tif", "--planes", "5:10"], 0, ""), ([*copy, "stack.ome.tif", "--planes", "5:11"], 64, "number 10 was asked for"),
            ([*copy, "stack.ome.tif", "--post", "otsu,label", "--format", "imagej"], 64, "give --dtype uint16"),
            ([*copy, "stack.ome.tif", "--post", "otsu,label", "--format", "imagej", "--dtype", "uint16"], 0, ""),
            (["plan", "-m", "one.onnx", "s*.ome.tif", "--name-z", "q([0-9]+)"], 66, "no file name matches --name-z 'q([0-9]+)'")):
        got, _, err = ask(folder, *words)
        h.expect(got == code and says in err, f"{words}: {got}, not {code}: {err}")
    code, out, err = ask(folder, "info", "--json", "stack.ome.tif", "--planes", "0,2,6")
    said = json.loads(out) if code == 0 else {}
    h.expect(said.get("planes") == 3 and said.get("axes") == "TYX" and said.get("shape") == [3, 20, 24] and "one plain axis" in said.get("note", "")
             and "channels" not in said, f"info of planes that are no combinations: {code}: {out}{err}")
    code, out, err = ask(folder, "copy", "-y", "stack.ome.tif", "-o", "copied.ome.tif", "--planes", "0,2,6", "--json")
    code, copied, _ = ask(folder, "info", "--json", "copied.ome.tif")
    h.expect([n for n in json.loads(copied)["shape"] if n > 1] == said.get("shape"), f"info is not what a copy makes: {copied}")
    with open(os.path.join(folder, "five.npy"), "wb") as f:
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 16, 24), }".ljust(117) + "\n"
        f.write(b"\x93NUMPY\x01\0" + bytes([118, 0]) + head.encode() + bytes(4 * 5 * 16 * 24))
    code, _, err = ask(folder, "plan", "-m", "one.onnx", "five.npy")
    h.expect(code == 64 and "numpy's a.reshape(5,1,16,24)" in err, f"planes of an array: {code}: {err}")


def alone(folder):
    """One image for -o DIR/ is one of many: named by itself, with a log, and made once. Arrays, and several outputs, are the network's."""
    for words, made_of in ((["one.onnx", "stack.ome.tif"], ["batch.log.csv", "stack.ome.tif", "stack.ome.tif.tegula.json"]),
                         (["one.onnx", "stack.ome.tif", "--save", "job.json"], ["stack.ome.tif", "stack.ome.tif.tegula.json"]),
                         (["one.onnx", "stack.ome.tif", "--post", "otsu,label", "--objects", "objects.csv"],
                          ["batch.log.csv", "stack.ome.tif", "stack.ome.tif.tegula.json"]),
                         (["both.onnx", "stack.ome.tif", "--channels", "0"], ["y.tif", "z.tif"]),
                         (["mean.onnx", "stack.ome.tif", "--channels", "0", "--z", "0"], ["y.npy"])):
        out = os.path.join(folder, "of" + made_of[0] + str(len(words)))
        for again in range(2 if "batch.log.csv" in made_of or "--save" in words else 1):
            code, said, err = ask(folder, "run", "-m", *words, "-o", out + "/", *(["-y"] if "--save" in words else []))
            h.expect(code == 0 and not (again and "0 done, 1 was complete" not in said + err and "was complete already" not in said + err),
                     f"{words}: {again}: {code}: {said}{err}")
            h.expect(os.path.isdir(out) and sorted(os.listdir(out)) == made_of, f"{words}: {os.path.isdir(out) and os.listdir(out)}")
    with open(os.path.join(folder, "of" + "batch.log.csv2", "stack.ome.tif"), "rb") as f:
        made = f.read()
    code, _, err = ask(folder, "run", "-m", "one.onnx", "stack.ome.tif", "-o", "single.ome.tif", "-y")
    with open(os.path.join(folder, "single.ome.tif"), "rb") as f:
        h.expect(code == 0 and f.read() == made, "one of many has other bytes than alone")
    code, _, err = ask(folder, "run", "-m", "one.onnx", "stack.ome.tif", "-o", "labels/", "--format", "imagej")
    h.expect(code == 0 and sorted(os.listdir(os.path.join(folder, "labels"))) == ["batch.log.csv", "stack.tif", "stack.tif.tegula.json"],
             f"ImageJ of an OME-TIFF: {code}: {err}")
    tables = []  # a network of one channel measures all that there are, as a copy does
    for verb in (["run", "-m", "one.onnx"], ["copy"]):
        code, _, err = ask(folder, *verb, "stack.ome.tif", "-o", "measured.ome.tif", "-y", "--post", "threshold:100,label", "--objects", "measured.csv")
        h.expect(code == 0, f"objects of {verb}: {code}: {err}")
        with open(os.path.join(folder, "measured.csv"), encoding="utf-8") as f:
            tables.append(f.read())
    h.expect(tables[0] == tables[1] and tables[0].split("\n", 1)[0].endswith(",mean_DAPI,mean_GFP"), f"tables of objects: {tables[0][:400]} {tables[1][:400]}")
    code, _, err = ask(folder, "run", "-m", "one.onnx", "stack.ome.tif", "-o", "part.tif", "--z", "1", "--normalize", "minmax")
    h.expect(code == 0 and "of the slices and times that are chosen" in err, f"statistics of a part: {code}: {err}")
    code, _, err = ask(folder, "run", "-m", "one.onnx", "stack.ome.tif", "-o", "part.tif", "-y", "--channels", "1", "--normalize", "minmax")
    h.expect(code == 0 and "that are chosen" not in err, f"statistics of a channel: {code}: {err}")
    code, out, err = ask(folder, "plan", "-m", "one.onnx", "stack.ome.tif", "-o", "planned/")
    h.expect(code == 0 and "planned/stack.ome.tif" in out, f"plan: {code}: {out}{err}")
    code, _, err = ask(folder, "run", "-m", "one.onnx", "nowhere.tif", "-o", "planned/")
    h.expect(code == 66, f"an image that is not there: {code}: {err}")


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        with open(os.path.join(folder, "two.onnx"), "wb") as f:
            f.write(h.same(2))
        os.rename(names.image(folder, ["DAPI", "GFP", "RFP"], 3), os.path.join(folder, "in 1.ome.tif"))
        choice = "--channels GFP chooses 1 of the image's 3 (0 DAPI, 1 GFP, 2 RFP)"
        rest = "DAPI,GFP", "DAPI,RFP", "GFP,RFP"
        for given, said, would in (([], "the image (axes TZCYX) has 3", rest), (["--channels", "GFP"], choice, ("GFP,DAPI", "GFP,RFP")),
                                   (["--channels=GFP"], choice, ("GFP,DAPI", "GFP,RFP")), (["--c", "GFP"], choice, ("GFP,DAPI", "GFP,RFP")),
                                   (["--c=GFP"], choice, ("GFP,DAPI", "GFP,RFP")),
                                   (["--channels", "2,1,0"], "chooses 3 of the image's 3", ("RFP,GFP", "RFP,DAPI", "GFP,DAPI"))):
            offers(folder, ["-m", "two.onnx", *given], said, would)
        os.rename(names.image(folder, ["DAPI", "GFP", "405"], 3), os.path.join(folder, "in 1.ome.tif"))
        offers(folder, ["-m", "two.onnx"], "0 DAPI, 1 GFP, 2 405", ("DAPI,GFP", "DAPI,name:405", "GFP,name:405"))
        os.rename(names.image(folder, ["1", "a,b", "1:2"], 3), os.path.join(folder, "in 1.ome.tif"))
        offers(folder, ["-m", "two.onnx"], "0 1, 1 a,b", None)
        other_order(folder)
        with open(os.path.join(folder, "one.onnx"), "wb") as f:
            f.write(h.same(1))
        spellings(folder)
        for name, net in (("both", h.model([h.node("Identity", ["x"], ["y"]), h.node("Neg", ["x"], ["z"])], [], [h.port("x", ["N", 1, "H", "W"])],
                                           [h.port(k, ["N", 1, "H", "W"]) for k in "yz"])),
                          ("mean", h.model([h.node("GlobalAveragePool", ["x"], ["p"]), h.node("Flatten", ["p"], ["y"])], [],
                                           [h.port("x", ["N", 1, "H", "W"])], [h.port("y", ["N", 1])]))):
            with open(os.path.join(folder, name + ".onnx"), "wb") as f:
                f.write(net)
        alone(folder)
        told(folder)
    print(f"{h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
