"""What the command says of a network that runs stage by stage: plan, plan --why, info, refusals.

    staged.py TEGULA SOURCE

Networks with norms over the image, one of squeeze and excitation and one of attention, on images
that do not fit the budget."""
import json
import os
import random
import re
import struct
import subprocess
import zlib

from verbs_help import TEGULA, expect, main
from gallery_files import GREY, Tiff, deep, floats, ints, model, node, repeated  # found by verbs_help

LAYERS, CHANNELS = 4, 16


def conv(name, x, y, cin, cout, side=3, stride=1, pad=None):
    return (node("Conv", [x, name], [y], kernel_shape=[side] * 2, pads=[side // 2 if pad is None else pad] * 4, strides=[stride] * 2),
            floats(name, [cout, cin, side, side]))


def norms():
    nodes, consts, x, cin = [], [floats("one", [CHANNELS])], "x", 1
    for k in range(LAYERS):
        n, w = conv(f"w{k}", x, f"c{k}", cin, CHANNELS)
        nodes += [n, node("InstanceNormalization", [f"c{k}", "one", "one"], [f"n{k}"])]
        consts.append(w)
        x, cin = f"n{k}", CHANNELS
    n, w = conv("last", x, "y", CHANNELS, 1)
    return model(nodes + [n], consts + [w], GREY)


def excite():
    a, w0 = conv("w0", "x", "a", 1, CHANNELS)
    t, w1 = conv("w1", "p", "t", CHANNELS, CHANNELS, 1)
    y, w2 = conv("w2", "v", "y", CHANNELS, 1)
    return model([a, node("GlobalAveragePool", ["a"], ["p"]), t, node("Sigmoid", ["t"], ["u"]),
                  node("Mul", ["a", "u"], ["v"]), y], [w0, w1, w2], GREY)


def skip():
    """The image comes in again behind a norm, by a wide kernel; the norm's value has more channels and drives."""
    a, w0 = conv("w0", "x", "a", 1, CHANNELS, 7)
    b, w1 = conv("w1", "a", "b", CHANNELS, CHANNELS, 7)
    d, w2 = conv("w2", "r", "d", CHANNELS, 1, 1)
    e, w3 = conv("w3", "x", "e", 1, 1, 15)
    return model([a, b, node("InstanceNormalization", ["b", "one", "one"], ["n"]), node("Relu", ["n"], ["r"]), d, e,
                  node("Add", ["d", "e"], ["y"])], [w0, w1, w2, w3, floats("one", [CHANNELS])], GREY)


def coarse():
    """Blocks of 56 pixels, each of which is computed alone: tiles of others that keep in step with them are the whole."""
    pool = node("MaxPool", ["x"], ["p"], kernel_shape=[56, 56], strides=[56, 56])
    up = node("ConvTranspose", ["p", "w"], ["u"], kernel_shape=[56, 56], strides=[56, 56])
    return model([pool, up, node("Add", ["u", "x"], ["y"])], [floats("w", [1, 1, 56, 56])], GREY)


def valley():
    """Values of three sizes: large ones at both ends, small ones between them."""
    nodes, consts, x = [], [floats("one", [CHANNELS])], "x"
    for k in range(2 * LAYERS):
        down = {1: 2, 2: 2}.get(k, 1)
        n, w = node("Conv", [x, f"w{k}"], [f"c{k}"], kernel_shape=[3, 3], pads=[1] * 4, strides=[down] * 2), floats(f"w{k}", [CHANNELS, CHANNELS if k else 1, 3, 3])
        nodes += [n, node("InstanceNormalization", [f"c{k}", "one", "one"], [f"n{k}"])]
        consts.append(w)
        x = f"n{k}"
    up = node("ConvTranspose", [x, "wy"], ["y"], kernel_shape=[4, 4], strides=[4, 4])
    return model(nodes + [up], consts + [floats("wy", [CHANNELS, 1, 4, 4])], GREY)


def again():
    """What is cheap is made again in later stages, from the image."""
    a, w0 = conv("w0", "x", "a", 1, CHANNELS)
    b, w1 = conv("w1", "n", "b", CHANNELS, CHANNELS)
    y, w2 = conv("w2", "m", "y", CHANNELS, 1)
    return model([a, node("InstanceNormalization", ["a", "one", "one"], ["n"]), b,
                  node("InstanceNormalization", ["b", "one", "one"], ["m"]), y], [w0, w1, w2, floats("one", [CHANNELS])], GREY)


def attention():
    """A product over pixels: nothing of it can begin before the last of them."""
    a, w0 = conv("w0", "x", "a", 1, 4)
    y, w2 = conv("w2", "b", "y", 4, 1)
    flat, back = ints("flat", [1, 4, -1]), ints("back", [1, 4, 64, 64])
    return model([a, node("Reshape", ["a", "flat"], ["q"]), node("Softmax", ["q"], ["s"], axis=2),
                  node("Reshape", ["s", "back"], ["b"]), y], [w0, w2, flat, back], GREY)


PATCHES = {"kernel_shape": [4, 4], "strides": [4, 4]}


def looks(name):
    """Attention of NAMEq to NAMEk and NAMEv, all pixels of an image, as an image NAMEi."""
    def turn(x, y):
        return node("Transpose", [x], [y], perm=[0, 2, 1])
    q, k, v, s, w, o, i = (name + x for x in "qkvswoi")
    return ([node("Reshape", [n, "flat"], [n + "f"]) for n in (q, k, v)] +
            [turn(q + "f", q + "t"), turn(v + "f", v + "t"), node("MatMul", [q + "t", k + "f"], [s]), node("Softmax", [s], [w], axis=2),
             node("MatMul", [w, v + "t"], [o]), turn(o, o + "t"), node("Reshape", [o + "t", "shape"], [i])])


def tokens(nodes, parts, last):
    """Patches of the image as "p", what is made of them, and the image again of `last`."""
    return model([node("Conv", ["x", "wp"], ["p"], **PATCHES), node("Shape", ["p"], ["shape"])] + [n for n, _ in parts] + nodes +
                 [node("ConvTranspose", [last, "wy"], ["y"], **PATCHES)],
                 [w for _, w in parts] + [floats("wp", [CHANNELS, 1, 4, 4]), floats("wy", [CHANNELS, 1, 4, 4]), ints("flat", [0, CHANNELS, -1])],
                 GREY)


def look():
    """Tokens of pixels, each of which looks at all: keys and values are there as a whole, queries stream."""
    return tokens(looks(""), [conv(f"w{n}", "p", n, CHANNELS, CHANNELS, 1) for n in "qkv"], "i")


def twice():
    """Two of them in one stage; the second one looks at half as many."""
    parts = [conv(f"w{n}", "p", n, CHANNELS, CHANNELS, 1) for n in ("aq", "ak", "av", "bq")]
    few = [(node("Conv", ["p", f"w{n}"], [n], kernel_shape=[1, 2], strides=[1, 2]), floats(f"w{n}", [CHANNELS, CHANNELS, 1, 2])) for n in ("bk", "bv")]
    return tokens(looks("a") + looks("b") + [node("Add", ["ai", "bi"], ["sum"])], parts + few, "sum")


def run(*words):
    r = subprocess.run([TEGULA, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=200)
    expect("NormNumbers" not in r.stdout + r.stderr and "NormApply" not in r.stdout + r.stderr,
           f"{words}: an operator that is no model's")
    return r


def plan(*words):
    r = run("plan", *words, "--json")
    lines = [json.loads(x) for x in r.stdout.splitlines() if x.startswith('{"event":"plan"')]
    expect(r.returncode == 0 and len(lines) == 1, f"{words}: {r.stderr}")
    return lines[0]


def staged_plan_says_its_stages():
    p, one = plan("-m", "norms.onnx", "tall.tif", "--ram", "72MiB"), plan("-m", "norms.onnx", "low.tif", "--ram", "2GiB")
    s = p["staged"]
    expect("staged" not in one, "a plan in one pass")
    expect(p["stages"] == LAYERS + 1 == len(s["stages"]), f"stages {p['stages']}")
    expect("whole_image_only" not in p, "norms do not need an image at once")
    for key in ("strips", "bands"):
        expect(p[key] == sum(t[key] for t in s["stages"]), f"{key} of all stages")
    expect([t["gathers"] for t in s["stages"]] ==
           [[{"operator": "InstanceNormalization", "node": t["gathers"][0]["node"]}] for t in s["stages"][:-1]] + [[]],
           "a norm ends each stage but the last")
    expect(s["stages"][0]["reads_inputs"] == ["x"] and s["stages"][-1]["outputs"] == ["y"], "inputs and outputs")
    kept = [v for t in s["stages"] for v in t["keeps"]]
    expect(len(kept) == s["kept_values"], f"{len(kept)} values kept, said {s['kept_values']}")
    expect(p["arena_bytes"] > max(t["arena_bytes"] for t in s["stages"]), "rows on their way in lie behind the arena")
    # Pixel by pixel nothing is computed less than in one pass, and what is more is said.
    pixels = 1024**2 / 256**2
    expect(p["flops"] / (1 + p["recomputed_fraction"]) > 0.9 * pixels * one["flops"], f"flops {p['flops']:.3g}")
    expect(any(t["recomputed_nodes"] for t in s["stages"]) and p["recomputed_fraction"] > 0, "recomputed nodes")


def time_is_that_of_all_stages():
    """The last stage alone is a third of the work."""
    few, many = (plan("-m", "norms.onnx", "tall.tif", "--ram", ram)["seconds_estimate"] for ram in ("72MiB", "2GiB"))
    expect(few > 0.7 * many, f"{few} s in stages, {many} s in one")


def text_says_what_json_says():
    r = run("plan", "-m", "norms.onnx", "tall.tif", "--ram", "72MiB", "--why")
    expect(re.search(r"stages +5, run one after another; \d+ values kept between them, \S+ \S+ in memory, 0 B on disk",
                     r.stdout), r.stdout)
    expect("the whole image at once" not in r.stdout and "whole image only" not in r.stdout, "not whole")
    expect(r.stdout.count("hands out ") == 5 and r.stdout.count('numbers of InstanceNormalization "') >= 8, r.stdout)
    expect(re.search(r"\n   1  nodes 1, strips \d+, bands \d+, arena .*\n      reads input \"x\"\n", r.stdout), "stage 1")
    expect(re.search(r'hands out "\w+" \(\d+\.\d\d MiB in memory\)', r.stdout) or '"on_disk"' not in r.stdout, "kept")
    r = run("plan", "-m", "norms.onnx", "tall.tif", "--ram", "72MiB", "--json")
    expect("stage_list" not in r.stdout, "stages stand in staged")


def numbers_of_many_norms_are_one():
    """Where values are made again, a late stage loads the numbers of all norms before it."""
    ram = re.search(r"give --ram (\d+)MiB", run("plan", "-m", "norms.onnx", "tall.tif", "--ram", "1MiB").stderr)[1]
    stages = plan("-m", "norms.onnx", "tall.tif", "--ram", f"{ram}MiB")["staged"]["stages"]
    most = [n["node"] for n in max((t["reads_numbers"] for t in stages), key=len)]
    expect(len(most) > 2, f"{most} are too few to be told as one")
    text = run("plan", "-m", "norms.onnx", "tall.tif", "--ram", f"{ram}MiB", "--why").stdout
    expect(f'{len(most)} x numbers of InstanceNormalization "{most[0]}" to "{most[-1]}"' in text, text)
    expect(all(line.count("numbers of") < 2 for line in text.splitlines() if "reads " in line), text)


def refusal_blames_no_norm():
    """The gallery has one of an operator that needs all pixels."""
    p = run("plan", "-m", "norms.onnx", "tall.tif", "--ram", "1MiB")
    expect(p.returncode == 71 and "in 5 stages" in p.stderr and "at once" not in p.stderr, p.stderr)


def why_tells_of_one_pass():
    """Of a plan in stages, and of one that is refused: what did not fit."""
    for ram, code in (("72MiB", 0), ("3MiB", 71)):
        r = run("plan", "-m", "norms.onnx", "tall.tif", "--ram", ram, "--why")
        expect(r.returncode == code and re.search(r"\n  \d+x\d+ .* does not fit\n", r.stdout[r.stdout.find("rejected "):]),
               f"{ram}: {r.returncode}: {r.stdout[-600:]}")


def queries_stream_past_keys_and_values():
    ram = re.search(r"give --ram (\d+)MiB", run("plan", "-m", "look.onnx", "wide.tif", "--ram", "1MiB").stderr)[1]
    p = plan("-m", "look.onnx", "wide.tif", "--ram", f"{int(ram) + 1}MiB")
    first, last = p["staged"]["stages"]
    expect(last["reads_at_once"] == ["k", "v"] and first["reads_at_once"] == [] and "whole_image_only" not in p, f"{p['staged']}")
    expect(last["strips"] * last["bands"] > 1 and p["halo"] == [0, 0, 0], f"halo {p['halo']}, {last}")
    r = run("plan", "-m", "look.onnx", "wide.tif", "--ram", f"{int(ram) + 1}MiB", "--why")
    expect('; at once "k", "v"' in r.stdout, r.stdout)


def told_ram(*words):
    return int(re.search(r"give --ram (\d+)MiB", run("plan", *words, "--ram", "1MiB").stderr)[1])


def same_pixels(words, *ways):
    pixels = set()
    for more in ways:
        for command in (["run", *words, *more, "-o", "looked.tif"], ["copy", "looked.tif", "-o", "looked.npy"]):
            r = run(*command, "-y")
            expect(r.returncode == 0, f"{command}: {r.returncode}: {r.stderr[-300:]}")
        with open("looked.npy", "rb") as f:
            pixels.add(f.read())
    expect(len(pixels) == 1, f"{words}: other pixels")


def keys_and_values_come_from_the_disk_in_pieces():
    """In memory for none of them, and the same pixels."""
    words, whole = ["-m", "look.onnx", "speckle.tif", "--exact", "--threads", "2"], ["--ram", "1GiB"]
    memory = ["--ram", f"{told_ram(*words) + 1}MiB"]
    disk = ["--scratch", ".", "--ram", f"{told_ram(*words, '--scratch', '.') + 1}MiB"]
    kept = 2 * 4 * CHANNELS * (512 // 4) ** 2
    peak = [plan(*words, *more)["peak_bytes"] for more in (memory, disk)]
    expect(peak[0] - peak[1] > kept / 2, f"{peak}, {kept}")
    last = plan(*words, *disk)["staged"]["stages"][1]
    expect(last["reads_in_pieces"] == ["k", "v"] and last["reads_at_once"] == [], f"{last}")
    said = run("plan", *words, *disk, "--why").stdout
    expect('; in pieces "k", "v"' in said, said)
    expect(re.search(r"^ +scratch .* not used for the input: ", said, re.M) and "\ninput, decoded to scratch\n" in said, said)
    same_pixels(words, whole, memory, disk)


def each_node_looks_at_its_own_pieces():
    words = ["-m", "twice.onnx", "speckle.tif", "--exact", "--threads", "2"]
    told = told_ram(*words, "--scratch", ".")
    disk = ["--scratch", ".", "--ram", f"{told}MiB"]
    last = plan(*words, *disk)["staged"]["stages"][1]
    expect({name[0] for name in last["reads_in_pieces"]} == {"a", "b"}, f"{last}")
    same_pixels(words, ["--ram", "1GiB"], disk, [*disk[:2], "--ram", f"{told + 1}MiB", "--tile", "16x512"])


def info_says_what_needs_all_pixels():
    for name in ("norms", "excite", "look"):
        expect("whole image only" not in run("info", f"{name}.onnx").stdout, f"{name} needs no image at once")
    r = run("plan", "-m", "attention.onnx", "square.tif", "--json")
    expect('"whole_image_only":"Reshape \\"q\\" needs all pixels of an operand at once"' in r.stdout, r.stdout + r.stderr)


def refusals_say_what_helps():
    least = [float(re.search(r"needs (\S+) MiB, in", run("plan", "-m", "deep.onnx", "tall.tif", "--ram", "2MiB", *more).stderr)[1])
             for more in (["--scratch", "."], [])]  # what the program itself takes differs by a MiB from file system to file system
    between = f"{int(512 * sum(least))}KiB"
    r = run("plan", "-m", "deep.onnx", "tall.tif", "--ram", between)
    found = re.search(r"needs (\S+ MiB), in \d+ stages; the budget is \S+ MiB: "
                      r"give --ram (\d+MiB), or --scratch DIR on a disk with (\S+ \S+) free, or a smaller --roi", r.stderr)
    expect(r.returncode == 71 and found, f"{r.returncode}: {r.stderr}")
    for more in (["--ram", found.group(2)], ["--ram", between, "--scratch", "."]) if found else ():
        expect("staged" in plan("-m", "deep.onnx", "tall.tif", *more), f"{more}")
    on_disk = plan("-m", "deep.onnx", "tall.tif", "--ram", "12MiB", "--scratch", ".")["staged"]
    expect(on_disk["kept_disk_bytes"] > 0 and on_disk["moved_disk_bytes"] >= 2 * on_disk["kept_disk_bytes"], f"{on_disk}")


def verify_compares_stages_with_the_whole():
    for name, stages in (("norms", LAYERS + 1), ("excite", 2), ("attention", 3), ("look", 2)):
        r = run("verify", "-m", f"{name}.onnx", "noise.tif", "--json")
        lines = [json.loads(x) for x in r.stdout.splitlines() if x.startswith('{"event":"verify"')]
        v = lines[0] if lines else {}
        expect(r.returncode == 0 and v.get("bit_equal") is True and v.get("stages") == stages and "not_tiled" not in v,
               f"{name}: {r.returncode} {v} {r.stderr}")
        expect(v["output_range"][0] < v["output_range"][1], f"{name}: nothing but {v['output_range']} was compared")
        expect(v.get("tiles", 0) > stages, f"{name}: {v.get('tiles')} tiles of {stages} stages: none was cut")


def middle_differences(name):
    """Of a PNG in grey, not interlaced, filter 0 to 4: how far the third column of panels is from its own middle, row by row."""
    with open(name, "rb") as f:
        data = f.read()
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            w, h, depth, colour = struct.unpack_from(">IIBB", data, at + 8)
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + n]
        at += 12 + n
    raw, rows, before = zlib.decompress(packed), [], bytes(w)
    expect((depth, colour) == (8, 0), f"{name}: grey")
    for y in range(h):
        filt, line = raw[y * (w + 1)], bytearray(raw[y * (w + 1) + 1:(y + 1) * (w + 1)])
        for x in range(w):
            a, b, c = (line[x - 1] if x else 0), before[x], (before[x - 1] if x else 0)
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, near)[filt]) & 255
        rows.append(bytes(line))
        before = rows[-1]
    panel_w, panel_h = (w - 6) // 3 - 6, (h - 6) // 2 - 6
    return [max(abs(v - 128) for y in range(6 + i * (panel_h + 6), 6 + i * (panel_h + 6) + panel_h)
                for v in rows[y][6 + 2 * (panel_w + 6):6 + 2 * (panel_w + 6) + panel_w]) for i in range(2)]


def dark_and_bright(h, w):
    t = Tiff()
    data = [(x * y * 7919 >> 3) % 41 + (170 if x > 280 else 0) for y in range(h) for x in range(w)]
    t.directory({256: (4, w), 257: (4, h), 258: (3, 8), 259: (3, 1), 262: (3, 1), 277: (3, 1), 278: (4, h),
                 273: (4, t.add(bytes(data))), 279: (4, w * h)})
    return bytes(t.out)


def a_picture_shows_the_seams_of_others():
    write("noise.tif", dark_and_bright(400, 500))
    r = run("verify", "-m", "norms.onnx", "noise.tif", "--picture", "seams.png")
    expect(r.returncode == 0, r.stderr)
    ours, theirs = middle_differences("seams.png") if r.returncode == 0 else (9, 9)
    expect(ours <= 1, f"stages differ from the whole by {ours} greys")
    expect(theirs > 40, f"tiles with statistics of their own differ by {theirs} greys only")
    r = run("verify", "-m", "excite.onnx", "noise.tif", "--picture", "seams.jpg")
    expect(r.returncode == 64 and "FILE.png" in r.stderr, f"{r.returncode}: {r.stderr}")
    r = run("verify", "-m", "excite.onnx", "noise.tif", "--picture", "seams.png")
    expect(r.returncode != 0 and "give -y to overwrite it" in r.stderr, f"{r.returncode}: {r.stderr}")


def tiles_of_others_keep_in_step_with_the_network():
    """Their windows cover what is taken from them, however coarse the network's steps are."""
    r = run("verify", "-m", "coarse.onnx", "blocks.tif", "--picture", "blocks.png")
    expect(r.returncode == 0, r.stderr)
    expect(r.returncode or max(middle_differences("blocks.png")) <= 1, f"tiles differ: {middle_differences('blocks.png')}")


def networks_that_round_or_shrink_sizes_have_pictures_too():
    """501 x 401 pixels are 504 x 404 of the output, or 12 fewer: what both have is shown, tiles in step with it."""
    for words in (("rounding.onnx", "--roi", "0:401,0:501"), ("rounding.onnx", "--roi", "0:101,0:501", "--raw-size"),
                  ("shrinking.onnx", "--roi", "0:401,0:501")):
        r = run("verify", "-m", words[0], "large.tif", *words[1:], "--picture", "both.png", "-y")
        expect(r.returncode == 0, f"{words}: {r.stderr}")
        expect(r.returncode or max(middle_differences("both.png")) <= 1, f"{words}: {middle_differences('both.png')}")
    r = run("verify", "-m", "rounding_norm.onnx", "large.tif", "--roi", "0:401,0:501", "--picture", "both.png", "-y")
    expect(r.returncode == 0, r.stderr)
    ours, theirs = middle_differences("both.png") if r.returncode == 0 else (9, 9)
    expect(ours <= 1 and theirs > 20, f"a norm: {ours} and {theirs} greys")


def a_preview_runs_in_stages_as_a_run_does():
    """The same picture from all of memory, from little of it, and with what passes between stages on disk; each within its budget."""
    pictures, peaks = [], []
    for words in ("--ram", "1GiB"), ("--ram", "20MiB"), ("--ram", "20MiB", "--scratch", "."):
        r = run("preview", "-m", "norms.onnx", "speckle.tif", "-o", "look.png", "-y", "--threads", "2", *words)
        expect(r.returncode == 0, f"{words}: {r.stderr}")
        took = re.search(r"memory up to ([0-9.]+) MiB of", r.stdout)
        peaks.append(float(took.group(1)) if took else 1e9)
        with open("look.png", "rb") as f:
            pictures.append(f.read())
        os.remove("look.png")
    expect(pictures[0] == pictures[1] == pictures[2], "pictures differ")
    expect(peaks[0] > 40 and max(peaks[1:]) <= 20, f"peaks: {peaks}")
    r = run("preview", "-m", "norms.onnx", "speckle.tif", "-o", "look.png", "--threads", "2", "--ram", "9MiB")
    told = re.search(r"in \d+ stages; .*give --ram (\d+MiB)", r.stderr)
    expect(r.returncode == 71 and told, f"{r.returncode}: {r.stderr}")
    r = run("preview", "-m", "norms.onnx", "speckle.tif", "-o", "look.png", "--threads", "2", "--ram", told.group(1) if told else "9MiB")
    expect(r.returncode == 0, f"the --ram that was told: {r.stderr}")
    expect(not [n for n in os.listdir() if n.startswith("look.png") and n != "look.png"], "nothing else is left")


def an_image_that_comes_in_late_is_read():
    words = ["-m", "skip.onnx", "low.tif", "--tile", "128x128", "--threads", "2", "--exact"]
    peak = plan(*words, "--ram", "2GiB")["peak_bytes"]
    for part in (0.8, 0.6):
        ram = f"{int(part * peak) // 1024}KiB"
        expect("staged" in plan(*words, "--ram", ram), f"{ram}: in one pass")
        r = run("run", *words, "--ram", ram, "-o", "late.tif", "-y")
        expect(r.returncode == 0, f"{ram}: {r.stderr}")


def what_there_is_room_for_is_kept():
    """Between all and nothing: the large values are made again first, and the pixels are the same."""
    words = ["-m", "valley.onnx", "wide.tif", "--exact", "--threads", "2"]
    least = told_ram(*words)
    seen = {}
    for ram in range(least, 4 * least):
        p = plan(*words, "--ram", f"{ram}MiB")
        if "staged" not in p:
            break
        kept, again = p["staged"]["kept_bytes"], p["recomputed_fraction"]
        most = max(seen, default=0)
        expect(kept >= most, f"{ram} MiB keep {kept} bytes, less memory kept {most}")
        expect(not seen or kept == most or again < seen[most][1], f"{ram} MiB: {kept} bytes are kept, and {again} made again")
        seen.setdefault(kept, (ram, again))
    expect(len(seen) >= 3 and min(seen) == 0, f"kept are {sorted(seen)}")
    said = run("plan", *words, "--ram", f"{seen[sorted(seen)[1]][0]}MiB").stdout
    expect("some values are kept, others made again in each stage; --scratch DIR keeps all on disk" in said, said)
    same_pixels(words, *(["--ram", f"{ram}MiB"] for ram, _ in seen.values()), ["--ram", "1GiB"])


def a_folder_in_memory_is_no_disk():
    if not os.access("/dev/shm", os.W_OK):
        return
    here, told = ["-m", "deep.onnx", "tall.tif"], told_ram("-m", "deep.onnx", "tall.tif")
    said = run("plan", *here, "--ram", f"{told}MiB", "--scratch", "/dev/shm").stdout
    expect("values are made again in each stage; /dev/shm is memory, no disk to keep values on" in said, said)
    r = run("plan", *here, "--ram", f"{told - 1}MiB", "--scratch", "/dev/shm")
    expect(r.returncode == 71 and " free (the one given is memory)" in r.stderr, r.stderr)


def each_stage_that_reads_the_image_decodes_it():
    for side in ("128x384", "64x64"):
        p = plan("-m", "again.onnx", "strip.tif", "--tile", side, "--threads", "2", "--ram", "8MiB", "--scratch", ".")
        readers = [-(-384 // t["tile"][2]) for t in p["staged"]["stages"] if t["reads_inputs"]]  # strips beside each other
        expect(len(readers) > 1, f"stages that read the image: {readers}")
        expect(p["scratch"]["decode_passes_without"] == sum(readers), f"{side}: {p['scratch']}, {readers}")


def too_small_a_disk_is_said_at_second_zero():
    r = run("run", "-m", "deep.onnx", "survey.tif", "-o", "out.tif", "--ram", "512MiB", "--scratch", ".")
    expect(r.returncode == 73 and re.search(r"--scratch \.: what passes between the \d+ stages of the network, with the decoded input, needs \d+\.\d\d TiB, "
                                            r"the disk has ", r.stderr), f"{r.returncode}: {r.stderr}")
    expect(not [n for n in os.listdir() if n.startswith("out.tif")], "nothing is begun")


def noise(side):
    t = Tiff()
    at = t.add(random.Random(3).randbytes(side * side))
    t.directory({256: (4, side), 257: (4, side), 258: (3, 8), 259: (3, 1), 262: (3, 1), 277: (3, 1), 278: (4, side),
                 273: (4, at), 279: (4, side * side)})
    return bytes(t.out)


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def rounding(norm=False):
    """Down by four, which rounds sizes up, and up again; with a norm between, or all local."""
    a, w0 = conv("w0", "x", "a", 1, CHANNELS, 7, 4)
    y, w1 = conv("w1", "u", "y", CHANNELS, 1)
    up = node("ConvTranspose", ["n" if norm else "a", "wu"], ["u"], kernel_shape=[4, 4], strides=[4, 4])
    between = [node("InstanceNormalization", ["a", "one", "one"], ["n"])] * norm
    return model([a, *between, up, y], [w0, floats("wu", [CHANNELS, CHANNELS, 4, 4]), w1, floats("one", [CHANNELS])], GREY)


def shrinking():
    """Valid convolutions: 12 pixels fewer."""
    nodes, consts, x, cin = [], [], "x", 1
    for k in range(2):
        n, w = conv(f"w{k}", x, "y" if k else "a", cin, 1, 7, pad=0)
        nodes, consts, x = nodes + [n], consts + [w], "a"
    return model(nodes, consts, GREY)


def prepare():
    for made in (norms, excite, attention, look, twice, skip, valley, again, deep, coarse, rounding, shrinking):
        write(made.__name__ + ".onnx", made())
    write("tall.tif", repeated(1024, 64))
    write("wide.tif", repeated(512, 512))
    write("noise.tif", noise(64))
    write("speckle.tif", noise(512))
    write("blocks.tif", noise(1120))
    write("square.tif", repeated(64, 64))
    write("strip.tif", repeated(384, 384))
    write("low.tif", repeated(256, 64))
    write("survey.tif", repeated(200000, 64))
    write("large.tif", dark_and_bright(401, 501))
    write("rounding_norm.onnx", rounding(norm=True))


main(prepare, [staged_plan_says_its_stages, time_is_that_of_all_stages, text_says_what_json_says,
               numbers_of_many_norms_are_one, refusal_blames_no_norm, why_tells_of_one_pass,
               info_says_what_needs_all_pixels, queries_stream_past_keys_and_values,
               keys_and_values_come_from_the_disk_in_pieces, each_node_looks_at_its_own_pieces,
               verify_compares_stages_with_the_whole,
               a_picture_shows_the_seams_of_others, tiles_of_others_keep_in_step_with_the_network,
               networks_that_round_or_shrink_sizes_have_pictures_too, a_preview_runs_in_stages_as_a_run_does,
               an_image_that_comes_in_late_is_read, what_there_is_room_for_is_kept, a_folder_in_memory_is_no_disk,
               each_stage_that_reads_the_image_decodes_it, refusals_say_what_helps,
               too_small_a_disk_is_said_at_second_zero])
