"""--norm-scope tile: operators that read the whole image read each tile with its surroundings alone.

    norm_scope.py TEGULA SOURCE

What a tile is computed from is worked out here, and computed by a run over that box as an image of
its own: every pixel of the tile has the same bits."""
import json
import random
import struct

from verbs_help import expect, main, tegula_run
from gallery_files import GREY, Tiff, floats, model, node  # found by verbs_help
from seeds import blk, num

H, W, CHANNELS = 330, 400, 6


def reals(name, dims, values):
    return b"".join(num(1, d) for d in dims) + num(2, 1) + blk(8, name) + blk(9, struct.pack(f"<{len(values)}f", *values))


def conv(draw, name, x, y, cin, cout, side=3, stride=1):
    values = [draw.uniform(-0.2, 0.2) for _ in range(cout * cin * side * side)]
    weights = reals(name, [cout, cin, side, side], values)
    return node("Conv", [x, name], [y], kernel_shape=[side] * 2, pads=[side // 2] * 4, strides=[stride] * 2), weights


def plain(draw, head=GREY):
    """Reads 4 pixels to each side: 1 + 2 + 1."""
    a, w0 = conv(draw, "w0", "x", "a", 1, CHANNELS)
    b, w1 = conv(draw, "w1", "n", "b", CHANNELS, CHANNELS, 5)
    c, w2 = conv(draw, "w2", "r", "y", CHANNELS, 1)
    return model([a, node("InstanceNormalization", ["a", "one", "one"], ["n"]), b, node("Relu", ["b"], ["r"]), c],
                 [w0, w1, w2, floats("one", [CHANNELS])], head)


def gated(draw):
    """Down by two and up again, with a gate of means between; boxes advance by 2."""
    a, w0 = conv(draw, "w0", "x", "a", 1, CHANNELS, 3, 2)
    t, w1 = conv(draw, "w1", "p", "t", CHANNELS, CHANNELS, 1)
    y, w2 = conv(draw, "w2", "u", "y", CHANNELS, 1)
    sizes = reals("scales", [4], [1, 1, 2, 2])
    return model([a, node("GlobalAveragePool", ["a"], ["p"]), t, node("Sigmoid", ["t"], ["s"]), node("Mul", ["a", "s"], ["v"]),
                  node("Resize", ["v", "", "scales"], ["u"], mode="nearest", coordinate_transformation_mode="asymmetric",
                       nearest_mode="floor"), y], [w0, w1, w2, sizes], GREY)


def pixels(name):
    with open(name, "rb") as f:
        data = f.read()
    head = struct.unpack_from("<H", data, 8)[0]
    shape = eval(data[10:10 + head].decode().split("'shape': ")[1].split(")")[0] + ")")  # our own file
    flat = struct.unpack(f"<{(len(data) - 10 - head) // 4}I", data[10 + head:])  # bits
    return flat, shape[-1]


def of_whole(net, image, out, *more):
    """The bits of a run as an array, and its width."""
    tegula_run("run", "-m", net, image, "-o", out + ".tif", "--dtype", "float32", "--exact", "-y", *more)
    tegula_run("copy", out + ".tif", "-o", out + ".npy", "-y")
    return pixels(out + ".npy")


def box_of(plan):
    line = next(x["note"] for x in plan["lines"] if x["name"] == "boxes")
    return [tuple(int(n) for n in part.split("x")) for part in (line.split()[2].rstrip(","), line.split()[4].rstrip(":"))]


def plan(*words):
    r = tegula_run("plan", *words, "--json")
    return next(json.loads(x) for x in r.stdout.splitlines() if x.startswith('{"event":"plan"'))


def tiles_are_images_of_their_own(net, side, before, step):
    p = plan("-m", net, "in.tif", "--norm-scope", "tile", "--tile", str(side), "--dtype", "float32")
    expect(p["norm_scope"] == "tile" and "whole_image_only" not in p, f"{net}: {p['norm_scope']}")
    (box_h, box_w), core = box_of(p)
    expect(core == (side, side), f"{net}: core {core}")
    got, w = of_whole(net, "in.tif", "tiles", "--norm-scope", "tile", "--tile", str(side))
    differ = 0
    for y in range(0, H, side):
        for x in range(0, W, side):
            at = [min(max((c - before) // step * step, 0), (n - b) // step * step) for c, n, b in ((y, H, box_h), (x, W, box_w))]
            alone, bw = of_whole(net, "in.tif", "alone", "--roi", f"{at[0]}:{at[0] + box_h},{at[1]}:{at[1] + box_w}")
            for row in range(y, min(y + side, H)):
                n = min(side, W - x)
                a, b = row * w + x, (row - at[0]) * bw + x - at[1]
                differ += got[a:a + n] != alone[b:b + n]
    expect(differ == 0, f"{net}, tiles of {side}: {differ} rows differ")
    return got


def a_budget_decides_no_pixel():
    words = ["--norm-scope", "tile", "--tile", "96"]
    expect(of_whole("plain.onnx", "in.tif", "much", *words, "--ram", "1GiB", "--threads", "2") ==
           of_whole("plain.onnx", "in.tif", "little", *words, "--ram", "7MiB", "--threads", "1"), "budgets")


def what_fits_one_box_is_global():
    p = plan("-m", "plain.onnx", "in.tif", "--norm-scope", "tile", "--tile", "512")
    expect(p["norm_scope"] == "global" and not [x for x in p["lines"] if x["name"] == "boxes"], "no boxes")
    expect(of_whole("plain.onnx", "in.tif", "one", "--norm-scope", "tile", "--tile", "512") ==
           of_whole("plain.onnx", "in.tif", "all"), "one box is the image")


def its_size_is_that_of_global():
    """gated.onnx rounds an odd size up: --raw-size keeps that, else the output is as large as the image, in both scopes."""
    odd = f"0:{H - 1},0:{W - 1}"
    for words, size in ([], (H - 1, W - 1)), (["--same-size"], (H - 1, W - 1)), (["--raw-size"], (H, W)):
        for scope in [], ["--norm-scope", "tile", "--tile", "128"]:
            p = plan("-m", "gated.onnx", "in.tif", "--roi", odd, *words, *scope)
            expect(p["norm_scope"] == (scope or ["global"] * 2)[1], f"{words} {scope}: {p['norm_scope']}")
            got, w = of_whole("gated.onnx", "in.tif", "sized", "--roi", odd, *words, *scope)
            expect((len(got) // w, w) == size, f"{words} {scope}: {len(got) // w}x{w}")


def it_is_said():
    r = tegula_run("run", "-m", "plain.onnx", "in.tif", "-o", "said.tif", "--norm-scope", "tile", "--tile", "96")
    expect("seams between tiles are possible" in r.stderr, r.stderr)
    with open("said.tif.tegula.json") as f:
        receipt = json.load(f)
    expect(receipt["norm_scope"] == "tile" and receipt["fingerprint"]["norm_scope"] == "tile", "receipt")
    expect("seams between tiles are possible" in receipt["methods"] and "bit-identical" not in receipt["methods"], receipt["methods"])
    expect(any("seams" in w for w in receipt["warnings"]), "receipt's warnings")
    tegula_run("run", "-m", "plain.onnx", "in.tif", "-o", "global.tif")
    with open("global.tif.tegula.json") as f:
        receipt = json.load(f)
    expect(receipt["norm_scope"] == "global" and "norm_scope" not in receipt["fingerprint"], "receipt of global")
    expect("bit-identical" in receipt["methods"], receipt["methods"])


def refusals():
    r = tegula_run("run", "-m", "plain.onnx", "in.tif", "-o", "no.tif", "--norm-scope", "tile", code=64)
    expect("needs --tile" in r.stderr, r.stderr)
    r = tegula_run("run", "-m", "plain.onnx", "in.npy", "-o", "no.npy", "--norm-scope", "tile", "--tile", "64", code=64)
    expect("is for images" in r.stderr, r.stderr)
    r = tegula_run("plan", "-m", "plain.onnx", "in.tif", "--norm-scope", "tile", "--tile", "256", "--ram", "4MiB", code=71)
    expect("a smaller --tile" in r.stderr, r.stderr)
    told = r.stderr.split("give --ram ")[1].split(",")[0]
    tegula_run("plan", "-m", "plain.onnx", "in.tif", "--norm-scope", "tile", "--tile", "256", "--ram", told)


def prepare():
    seed = random.Random(11)
    for made in (plain, gated):
        with open(made.__name__ + ".onnx", "wb") as f:
            f.write(made(seed))
    t = Tiff()
    data = bytes(min(255, (x * y * 7919 >> 3) % 41 + x // 2) for y in range(H) for x in range(W))
    t.directory({256: (4, W), 257: (4, H), 258: (3, 8), 259: (3, 1), 262: (3, 1), 277: (3, 1), 278: (4, H), 273: (4, t.add(data)),
                 279: (4, W * H)})
    with open("in.tif", "wb") as f:
        f.write(bytes(t.out))
    tegula_run("copy", "in.tif", "-o", "in.npy")


def tiles_are_images():
    whole = of_whole("plain.onnx", "in.tif", "whole")[0]
    expect(tiles_are_images_of_their_own("plain.onnx", 96, 4, 1) != whole, "tiles with numbers of their own differ")
    tiles_are_images_of_their_own("plain.onnx", 128, 4, 1)
    tiles_are_images_of_their_own("gated.onnx", 128, 3, 2)


main(prepare, [tiles_are_images, a_budget_decides_no_pixel, what_fits_one_box_is_global, its_size_is_that_of_global, it_is_said, refusals])
