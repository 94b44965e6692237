#!/usr/bin/env python3
"""Packages from strangers: `info` and `plan` over each, and what must be true then.

    package_hostile.py TEGULA [--make FOLDER]

Each command ends within 2 s with 65, uses less than 64 MiB, says in one line what is wrong with which package, and leaves nothing behind.
The packages are made by a process of their own: what a parent holds counts as its child's memory until the child begins."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

import package_help as h

MAX_SECONDS, MAX_KIB = 2, 64 << 10
SANITIZED = any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS"))
NET = h.same()


def good(**more):
    return h.describe5([("scale_linear", {"gain": 0.5})], data=NET, **more)


def changed(path, value):
    """A good description with one value replaced; None: taken away."""
    says = json.loads(json.dumps(good()))
    at = says
    for k in path[:-1]:
        at = at[k]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(says)


SOURCE = ("weights", "onnx", "source")
STEPS = ("inputs", 0, "preprocessing")
AXES = ("inputs", 0, "axes")


def texts():
    """(name, description, what it tries)"""
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]\n" for i in range(1, 12))
    yield "laughs", laughs + json.dumps(good()), "10^12 values by aliases"
    yield "laughs_alone", laughs, "the same and nothing else"
    yield "cycle", "a: &a\n  b: *a\n", "a mapping in itself"
    yield "cycle_list", "&a [1, *a]\n", "a list in itself"
    yield "cycle_far", "a: &a {b: {c: [{d: *a}]}}\n", "a mapping that contains itself further down"
    yield "no_anchor", "a: *nobody\n", "an alias of nothing"
    yield "merge", "a: &a {x: 1}\nb: {<<: *a}\n", "a merge key"
    yield "anchors", "a: [" + ", ".join(f"&n{i} 1" for i in range(5000)) + "]\n", "5000 anchors"
    yield "twice", "format_version: 0.5.3\nformat_version: 0.4.0\n", "a key twice"
    yield "twice_deep", '{"a": {"b": 1, "b": 2}}', "a key twice, further down"
    yield "twice_written_otherwise", 'a: 1\n"a": 2\n', "a key twice, once in quotes"
    yield "key_list", "? [a, b]\n: 1\n", "a list as a key"
    yield "key_alias", "a: &a x\n*a : 1\n", "an alias as a key"
    yield "deep", "[" * 100000, "100000 lists in each other"
    yield "deep_maps", "{a: " * 20000, "20000 mappings in each other"
    yield "deep_dashes", "- " * 50000 + "1", "50000 lists in each other, with dashes"
    yield "many", "a: [" + "1, " * 100000 + "1]", "100000 values"
    yield "many_keys", "".join(f"k{i}: 1\n" for i in range(40000)), "40000 keys of a mapping"
    yield "large", "a: '" + "x" * (2 << 20) + "'\n", "two MiB"
    yield "directives", "".join(f"%TAG !a{i}! x:\n" for i in range(40000)) + "--- a\n", "40000 directives"
    yield "two_documents", "a: 1\n---\nb: 2\n", "a second document"
    yield "nul", "a: \"\\0\"\n", "a NUL in a text"
    yield "binary", "\x01\x02\x03", "control characters"
    yield "tabs", "a:\n\t- b\n", "tabs"
    yield "unclosed", "a: [1, 2\n", "a list without an end"
    yield "empty", "", "nothing"
    yield "a_number", "42\n", "a number"
    yield "a_list", "- a\n- b\n", "a list"
    yield "tagged", "!!python/object/apply:os.system [touch made]\n", "an object of Python"
    yield "dataset", json.dumps({**good(), "type": "dataset"}), "a data set"
    yield "no_version", changed(("format_version",), None), "no version of the format"
    yield "version_3", changed(("format_version",), "0.3.6"), "an old format"
    yield "version_6", changed(("format_version",), "0.6.0"), "a format of the future"
    for name, source in (("up", "../net.onnx"), ("up_inside", "a/../../net.onnx"), ("absolute", "/etc/passwd"), ("url", "https://a.b/net.onnx"),
                         ("file_url", "file:///etc/passwd"), ("backslash", "..\\net.onnx"), ("drive", "C:net.onnx"), ("void", ""),
                         ("long_name", "a" * 2000), ("dot", "."), ("double", "a//net.onnx"), ("absent", "nowhere.onnx"),
                         ("itself", "rdf.yaml"), ("folder", "inner"), ("out_link", "link.onnx"), ("through_link", "linked/net.onnx"), ("fifo", "pipe.onnx")):
        yield "source_" + name, changed(SOURCE, source), f"weights {source[:30]!r}"
    yield "sha_wrong", changed(("weights", "onnx", "sha256"), "0" * 64), "another SHA-256"
    yield "sha_none", changed(("weights", "onnx", "sha256"), "abc"), "a SHA-256 that is none"
    yield "no_weights", changed(("weights",), {}), "no weights"
    yield "weights_list", changed(("weights",), [1]), "weights that are a list"
    yield "source_number", changed(SOURCE, {"source": 3}), "weights that are called 3"
    yield "step_unknown", changed(STEPS, [{"id": "sharpen"}]), "a step that nobody knows"
    yield "step_custom", changed(STEPS, [{"id": "custom", "callable": "f", "source": "f.py", "kwargs": {}}]), "a program as a step"
    yield "step_stardist", changed(("outputs", 0, "postprocessing"), [{"id": "stardist_postprocessing", "kwargs": {}}]), "a step not done"
    yield "step_no_name", changed(STEPS, [{"kwargs": {}}]), "a step without a name"
    yield "step_map", changed(STEPS, {"id": "clip"}), "steps that are no list"
    yield "step_key", changed(STEPS, [{"id": "sigmoid", "kwargs": {"steep": 2}}]), "a key that nobody knows"
    yield "step_many", changed(STEPS, [{"id": "sigmoid"}] * 500), "500 steps"
    yield "step_order", changed(STEPS, [{"id": "sigmoid"}, {"id": "zero_mean_unit_variance"}]), "a step before one that measures the image"
    yield "step_line", changed(STEPS, [{"id": "zero_mean_unit_variance", "kwargs": {"axes": ["x"]}}]), "statistics of each line"
    yield "step_nan", changed(STEPS, [{"id": "scale_linear", "kwargs": {"gain": "nan"}}]), "a gain that is no number"
    yield "step_huge", changed(STEPS, [{"id": "scale_linear", "kwargs": {"gain": 1}}]).replace('"gain": 1', '"gain": 1e999'), "a gain of 1e999"
    yield "step_infinite", changed(STEPS, [{"id": "scale_linear", "kwargs": {"gain": 1}}]).replace('"gain": 1', '"gain": .inf'), "a gain of infinity"
    yield "step_length", changed(STEPS, [{"id": "scale_linear", "kwargs": {"gain": [1, 2], "axis": "channel"}}]), "two gains for one channel"
    yield "clip_turned", changed(STEPS, [{"id": "clip", "kwargs": {"min": 1, "max": 0}}]), "a clip without a range"
    yield "eps", changed(STEPS, [{"id": "zero_mean_unit_variance", "kwargs": {"eps": -1}}]), "a negative eps"
    yield "other_tensor", changed(("outputs", 0, "postprocessing"), [{"id": "scale_mean_variance", "kwargs": {"reference_tensor": "other"}}]), \
        "a tensor that is not there"
    yield "axis_time", changed(AXES, good()["inputs"][0]["axes"] + [{"type": "time", "size": 3}]), "an axis of time"
    yield "axis_twice", changed(AXES, good()["inputs"][0]["axes"] + [{"type": "batch"}]), "an axis twice"
    yield "axis_none", changed(AXES, []), "no axes"
    yield "axis_turned", changed(AXES, good()["inputs"][0]["axes"][::-1]), "axes in another order than the network's"
    yield "axis_more", changed(AXES, good()["inputs"][0]["axes"][:3]), "fewer axes than the network"
    yield "channels", changed(AXES + (1, "channel_names"), ["a", "b"]), "two channels for a network of one"
    yield "size_0", changed(AXES + (2, "size"), 0), "a size of 0"
    yield "size_negative", changed(AXES + (2, "size"), {"min": -5, "step": 3}), "a negative size"
    yield "size_2_60", changed(AXES + (2, "size"), {"min": 2**60, "step": 1}), "a size of 2^60"
    yield "size_text", changed(AXES + (2, "size"), "large"), "a size in words"
    yield "inputs_many", changed(("inputs",), good()["inputs"] * 50), "50 inputs"
    yield "inputs_two", changed(("inputs",), good()["inputs"] * 2), "two inputs, and the network has one"
    yield "outputs_none", changed(("outputs",), []), "no outputs"


def archive(path, entries, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, data in entries:
            z.writestr(zipfile.ZipInfo(name) if method == zipfile.ZIP_STORED else name, data, compress_type=method)


def link_entry(name, target):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, 0o120777 << 16
    return info, target


def archives(folder):
    """(name, what it tries)"""
    rdf = ("rdf.yaml", json.dumps(good()))
    net = ("net.onnx", NET)

    def make(name, entries, tries, method=zipfile.ZIP_STORED):
        archive(os.path.join(folder, name), entries, method)
        return name, tries
    yield make("slip.zip", [rdf, net, ("../../evil", b"x")], "a name that leads out")
    yield make("slip_absolute.zip", [rdf, net, ("/tmp/evil", b"x")], "an absolute name")
    yield make("slip_backslash.zip", [rdf, net, ("..\\evil", b"x")], "a name with backslashes")
    yield make("slip_weights.zip", [("rdf.yaml", changed(SOURCE, "../net.onnx")), ("../net.onnx", NET)], "weights outside")
    yield make("nothing.zip", [("readme.txt", b"hello")], "no description")
    yield make("no_weights.zip", [rdf], "weights that are not there")
    yield make("both.zip", [rdf, net, ("bioimageio.yaml", rdf[1])], "two descriptions")
    yield make("bomb_rdf.zip", [("rdf.yaml", b"a" * (200 << 20)), net], "a description of 200 MiB", zipfile.ZIP_DEFLATED)
    yield make("bomb_net.zip", [rdf, ("net.onnx", b"\0" * (300 << 20))], "a network of 300 MiB of zeros", zipfile.ZIP_DEFLATED)
    yield make("laughs.zip", [("rdf.yaml", dict((n, t) for n, t, _ in texts())["laughs"]), net], "aliases in an archive")
    yield make("sha.zip", [("rdf.yaml", changed(("weights", "onnx", "sha256"), "f" * 64)), net], "another SHA-256")
    yield make("sha_packed.zip", [("rdf.yaml", changed(("weights", "onnx", "sha256"), "f" * 64)), net], "the same, packed", zipfile.ZIP_DEFLATED)
    yield make("packed_strangely.zip", [rdf, net], "a packing that is not read", zipfile.ZIP_LZMA)
    yield make("many.zip", [rdf, net] + [(f"f{i:06}" + "x" * 60, b"") for i in range(20000)], "20000 records")
    yield make("empty_net.zip", [rdf, ("net.onnx", b"")], "a network without bytes")
    path = os.path.join(folder, "twice.zip")
    with open(os.devnull, "w", encoding="ascii") as quiet:
        stderr, sys.stderr = sys.stderr, quiet
        import warnings
        warnings.simplefilter("ignore")
        archive(path, [rdf, net, rdf])
        sys.stderr = stderr
    yield "twice.zip", "a record twice"
    yield make("two_folders.zip", [("a/" + rdf[0], rdf[1]), ("a/" + net[0], net[1]), ("b/" + rdf[0], rdf[1])], "packages in two folders")
    yield make("deeper.zip", [("a/b/" + rdf[0], rdf[1]), ("a/b/" + net[0], net[1])], "a package two folders down")
    archive(os.path.join(folder, "whole.zip"), [rdf, net])
    archive(os.path.join(folder, "below.zip"), [("a/", b""), ("a/" + rdf[0], rdf[1]), ("__MACOSX/a/._" + net[0], b"x"), ("a/" + net[0], net[1])])
    with open(os.path.join(folder, "whole.zip"), "rb") as f:
        data = f.read()
    for name, part, tries in (("cut.zip", data[:-40], "cut off"), ("head.zip", data[:60], "its head alone"), ("zeros.zip", b"\0" * 5000, "zeros"),
                              ("none.zip", b"", "nothing")):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(part)
        yield name, tries
    at = data.index(NET)
    with open(os.path.join(folder, "damaged.zip"), "wb") as f:
        f.write(data[:at + 40] + b"\xff" + data[at + 41:])
    yield "damaged.zip", "a byte of the weights"
    unsigned = [("rdf.yaml", changed(("weights", "onnx", "sha256"), None)), net]  # nothing but the archive's own checksum tells
    archive(os.path.join(folder, "whole_unsigned.zip"), unsigned)
    with open(os.path.join(folder, "whole_unsigned.zip"), "rb") as f:
        bare = f.read()
    at = bare.index(NET) + len(NET) // 2
    with open(os.path.join(folder, "damaged_unsigned.zip"), "wb") as f:
        f.write(bare[:at] + bytes([bare[at] ^ 1]) + bare[at + 1:])
    yield "damaged_unsigned.zip", "a bit of weights without SHA-256"
    with open(os.path.join(folder, "place.zip"), "wb") as f:  # the directory says that the weights lie elsewhere
        i = data.rindex(b"net.onnx") - 46
        f.write(data[:i + 42] + struct.pack("<I", 1 << 30) + data[i + 46:])
    yield "place.zip", "a record beyond the end"
    info, target = link_entry("net.onnx", "/etc/passwd")
    with zipfile.ZipFile(os.path.join(folder, "link.zip"), "w") as z:
        z.writestr(*rdf)
        z.writestr(info, target)
    yield "link.zip", "weights that are a symbolic link"


def make(folder):
    made = []
    with open(os.path.join(folder, "outside.onnx"), "wb") as f:
        f.write(NET)
    for name, text, tries in texts():
        where = os.path.join(folder, name)
        os.makedirs(os.path.join(where, "inner"))
        with open(os.path.join(where, "rdf.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        for at in ("net.onnx", "inner/net.onnx"):
            with open(os.path.join(where, at), "wb") as f:
                f.write(NET)
        os.symlink("../outside.onnx", os.path.join(where, "link.onnx"))
        os.symlink("inner", os.path.join(where, "linked"))
        os.mkfifo(os.path.join(where, "pipe.onnx"))
        made.append((name, tries))
    for name, tries, files in (("bare", "no description", {"net.onnx": NET}),
                               ("both", "two descriptions", {"rdf.yaml": b"a: 1", "bioimageio.yaml": b"a: 1"})):
        os.makedirs(os.path.join(folder, name))
        for k, v in files.items():
            with open(os.path.join(folder, name, k), "wb") as f:
                f.write(v)
        made.append((name, tries))
    os.makedirs(os.path.join(folder, "linked_rdf"))
    os.symlink("../laughs/rdf.yaml", os.path.join(folder, "linked_rdf", "rdf.yaml"))
    made.append(("linked_rdf", "a description that is a symbolic link"))
    made += archives(folder)
    h.write_tiff(os.path.join(folder, "in.tif"), [h.draw(64 * 64, "u1", 1)], 64, 64, "u1")
    with open(os.path.join(folder, "made.json"), "w", encoding="ascii") as f:
        json.dump(made, f)
    # That the good one is taken shows that the others are refused for what they try.
    h.write_package(os.path.join(folder, "good"), good(), NET)
    return 0


class Run:
    def __init__(self, folder):
        self.folder, self.n, self.seconds, self.kib = folder, 0, 0, 0

    def command(self, *words):
        start = time.monotonic()
        with tempfile.TemporaryFile() as err:
            p = subprocess.Popen([h.TEGULA, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, cwd=self.folder)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - start
            err.seek(0)
            lines = err.read().decode("utf-8", "replace").splitlines()
        used = usage.ru_utime + usage.ru_stime
        self.n += 1
        self.seconds, self.kib = max(self.seconds, min(used, seconds)), max(self.kib, usage.ru_maxrss)
        h.expect(min(used, seconds) <= MAX_SECONDS * (10 if SANITIZED else 1), f"{words}: {used:.1f} s of a processor")
        h.expect(usage.ru_maxrss <= MAX_KIB or SANITIZED, f"{words}: {usage.ru_maxrss} KiB")
        return p.returncode, lines

    def refused(self, name, tries):
        before = sorted(os.listdir(self.folder))
        for words in (("plan", "-m", name, "in.tif"), ("run", "-m", name, "in.tif", "-o", "out.tif")):
            code, lines = self.command(*words)
            h.expect(code == 65 and lines and name in lines[0], f"{name}, {tries}: exit {code}: {lines}")
        h.expect(sorted(os.listdir(self.folder)) == before, f"{name}, {tries}: left something behind")


def main():
    if sys.argv[2:3] == ["--make"]:
        return make(sys.argv[3])
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        subprocess.run([sys.executable, "-B", os.path.abspath(__file__), h.TEGULA, "--make", folder], check=True)
        with open(os.path.join(folder, "made.json"), encoding="ascii") as f:
            made = json.load(f)
        run = Run(folder)
        for name in ("good", "whole.zip", "below.zip"):
            code, lines = run.command("run", "-m", name, "in.tif", "-o", "good.tif", "-y")
            h.expect(code == 0, f"{name}: {code}: {lines}")
        for name, tries in made:
            run.refused(name, tries)
    print(f"{len(made)} packages, {run.n} commands, {h.failed} failed; most time {run.seconds:.2f} s, most memory {run.kib >> 10} MiB")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
