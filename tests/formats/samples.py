"""Tables of what others made: images with published sums, networks with published answers."""
import array
import ast
import csv
import hashlib
import json
import math
import os
import struct

from tool import table

MOST_REFUSED = 0.02
# Networks that are meant to be refused: what they are, beside the reason that the command gives.
NO_NETWORK = {
    "pixelboost_int8": "quantised: integers are no part of this version",
    "viper_video_inpainter_graph": "a graph whose weights were never published",
}


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def shape_of(info):
    """As the index writes it: axes of one left out."""
    kept = [(a, n) for a, n in zip(info["axes"], info["shape"]) if n > 1]
    return "x".join(str(n) for _, n in kept), "".join(a for a, _ in kept)


def npy(data):
    """(shape, dtype, bytes) of a .npy file."""
    n = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10:10 + n].decode())
    return head["shape"], head["descr"], data[10 + n:]


# ---- Images


def image(t, folder, row):
    """One row of the table; None for the reason when it is read."""
    path = os.path.join(folder, row["file"])
    info = t.info(path)
    if not info:
        return t.reason(path), ["-", "-", "refused"]
    shape, axes = shape_of(info)
    t.expect((shape, axes) == (row["series0_shape"], row["series0_axes"]),
             "%s is %s %s, expected %s %s" % (row["file"], axes, shape, row["series0_axes"], row["series0_shape"]))
    t.expect(info["dtype"] == row["dtype"], "%s is %s" % (row["file"], info["dtype"]))
    words = ["copy", path, "-o", "pixels.npy", "-q", "-y"]
    if row["array0_shape"] != row["series0_shape"]:  # the published sum is of the first page
        words += ["--planes", "0"]
    code, _, line = t.run(*words)
    if code:
        return line, [axes, shape, "refused"]
    _, _, data = npy(t.read("pixels.npy"))
    t.drop("pixels.npy")
    same = hashlib.md5(data).hexdigest() == row["md5_array0_le"]
    t.expect(same, "%s: other pixels than the index says" % row["file"])
    return None, [axes, shape, "equal" if same else "DIFFER"]


def images(t, data):
    index = rows_of(os.path.join(data, "tiff", "index.csv"))
    rows, refused = [], []
    for row in index:
        why, cells = image(t, os.path.join(data, "tiff"), row)
        what = [row["compression"].lower().replace("_", " "), row["bits"] + " bit", row["photometric"].lower()]
        what += [w for w, yes in (("tiled", row["tiled"] == "1"), ("planar", row["planar"] == "SEPARATE"),
                                  ("big-endian", row["byteorder"] == "big"), ("BigTIFF", row["bigtiff"] == "1")) if yes]
        rows.append([row["file"], ", ".join(what), cells[0], cells[1], cells[2]])
        if why:
            refused.append([row["file"], why])
    return index, rows, refused


def limit(t, what, n, refused):
    t.expect(len(refused) <= MOST_REFUSED * n, "%d of %d %s are refused: %s" % (len(refused), n, what, refused))


def refusals(refused):
    return table(["refused", "why"], refused) if refused else ""


# ---- Networks


def distance(got, want, rtol, atol):
    """How many elements are further off than allowed."""
    a, b = array.array("f", got), array.array("f", want)
    return sum(1 for x, y in zip(a, b) if not abs(x - y) <= atol + rtol * abs(y) or math.isnan(x)) + abs(len(a) - len(b))


def answers(t, folder, golden, case):
    """What is wrong with the answers of one case; "" nothing."""
    words = ["run", "-m", os.path.join(folder, "model.onnx"), "-o", "answers/", "-q", "-y", "--ram", "2GiB"]
    for i in case["inputs"]:
        words += ["--input-tensor", "%s=%s" % (i["name"], os.path.join(folder, i["file"]))]
    code, _, line = t.run(*words)
    if code:
        return line
    wrong = ""
    tol = golden["suggested_tolerance"]
    for name, o in zip(sorted(os.listdir(os.path.join(t.folder, "answers"))), sorted(case["outputs"], key=lambda o: o["name"])):
        with open(os.path.join(folder, o["file"]), "rb") as f:
            shape, dtype, want = npy(f.read())
        got_shape, got_dtype, got = npy(t.read(os.path.join("answers", name)))
        if (got_shape, got_dtype) != (shape, dtype):
            wrong = "%s of %s, expected %s of %s" % (got_dtype, got_shape, dtype, shape)
        elif distance(got, want, tol["rtol"], tol["atol"]):
            wrong = o["name"] + " is further off than golden.json allows"
        t.drop(os.path.join("answers", name))
    return wrong


def extent(n):
    return "any" if n is None else str(n)


def network(t, folder, row):
    """(reason or None, cells)."""
    path = os.path.join(folder, "model.onnx")
    info = t.info(path)
    if not info:
        return t.reason(path), None
    with open(os.path.join(folder, "golden.json"), encoding="utf-8") as f:
        golden = json.load(f)
    wrong = [w for w in (answers(t, folder, golden, c) for c in golden["cases"]) if w]
    t.expect(not wrong, "%s: %s" % (row["name"], wrong))
    ports = ["; ".join(" ".join(extent(n) for n in p["shape"]) for p in info[k]) for k in ("inputs", "outputs")]
    whole = info.get("whole_image_only")
    halo = "in %d stages" % info["stages"] if info.get("stages", 1) > 1 else "whole image" if whole else "tiled"
    halo += ": " + whole if whole else ""
    if info["fixed_size"] and "whole_image_only" not in info:
        halo = "in boxes of its size" if "no_boxes_why" not in info else "at its size: " + info["no_boxes_why"]
    elif "halo" in info:
        halo = "tiled, halo " + "x".join(str(n) for n in info["halo"][1:])
    cases = "%d of %d" % (len(golden["cases"]) - len(wrong), len(golden["cases"]))
    return None, [row["name"], *ports, halo, cases]


def networks(t, data):
    index = rows_of(os.path.join(data, "models", "index.csv"))
    rows, refused, meant = [], [], []
    for row in index:
        why, cells = network(t, os.path.join(data, "models", row["name"]), row)
        if not why:
            rows.append(cells)
        elif row["name"] in NO_NETWORK:
            meant.append([row["name"], "%s (%s)" % (NO_NETWORK[row["name"]], why)])
        else:
            refused.append([row["name"], why])
    t.expect(len(meant) == len(NO_NETWORK), "networks meant to be refused: %s" % meant)
    return index, rows, refused, meant


def tables(t, data):
    index, rows, refused = images(t, data)
    limit(t, "sample images", len(index), refused)
    text = "%d of %d files are read, %d refused.\n\n" % (len(rows) - len(refused), len(index), len(refused))
    text += table(["file", "what it is", "axes", "shape", "pixels"], rows) + "\n" + refusals(refused)
    parts = [("sample images", text.rstrip("\n") + "\n")]
    index, rows, refused, meant = networks(t, data)
    limit(t, "sample networks", len(index) - len(meant), refused)
    text = "%d of %d float networks give the published answers, %d are refused.\n\n" % (
        len(rows), len(index) - len(meant), len(refused))
    text += table(["network", "inputs", "outputs", "how it runs", "answers"], rows) + "\n" + refusals(refused)
    text += "\n" + table(["not among them", "why"], meant)
    return parts + [("sample networks", text.rstrip("\n") + "\n")]
