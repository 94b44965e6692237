"""Nothing that a run does not make is ever replaced: no input, model or other output, by no option, by no
link, with and without -y; and nothing that is there without -y.

    overwrite.py TEGULA SOURCE_DIR"""
import json
import os
import stat
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "crash"))
from crashlib import check, main, picture, upscaler  # noqa: E402
from mixed_resume import outside, stop  # noqa: E402

PRECIOUS = b"years of work\n" * 40


class Place:
    """A folder with an input, a model with external data, and what goes with them."""

    def __init__(self, lab, name):
        self.lab, self.dir = lab, lab.path(name)
        os.mkdir(self.dir)
        self.image = picture(self.at("cells.tif"), 64, 64)
        self.model = outside(self.at("net.onnx"), "net.bin", 1)
        self.extra = self.at("net.bin")
        self.out = self.at("out.tif")
        self.held = {}

    def at(self, name):
        return os.path.join(self.dir, name)

    def precious(self, name):
        with open(self.at(name), "wb") as f:
            f.write(PRECIOUS)
        return self.at(name)

    def hold(self):
        """Remember every file's bytes and kind."""
        self.held = {}
        for name in os.listdir(self.dir):
            path = self.at(name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                with open(path, "rb") as f:
                    self.held[path] = ("file", f.read())
            else:
                self.held[path] = (stat.S_IFMT(mode), os.readlink(path) if stat.S_ISLNK(mode) else None)

    def confirm(self, what):
        for path, (kind, content) in self.held.items():
            check(os.path.lexists(path), "%s: %s is gone" % (what, os.path.basename(path)))
            mode = os.lstat(path).st_mode
            if kind == "file":
                check(stat.S_ISREG(mode), "%s: %s is no file any more" % (what, os.path.basename(path)))
                with open(path, "rb") as f:
                    check(f.read() == content, "%s: %s was changed" % (what, os.path.basename(path)))
            else:
                check(stat.S_IFMT(mode) == kind, "%s: %s is of another kind" % (what, os.path.basename(path)))

    def run(self, more, verb="run", out=None, limit=60):
        args = {"run": ["run", "-m", self.model, self.image, "-o", out or self.out],
                "plan": ["plan", "-m", self.model, self.image, "-o", out or self.out],
                "verify": ["verify", "-m", self.model, self.image],
                "preview": ["preview", "-m", self.model, self.image, "-o", out or self.at("out.png")],
                "copy": ["copy", self.image, "-o", out or self.out]}[verb]
        return self.lab.run(args + more, limit=limit)

    def refused(self, more, what, verb="run", out=None, codes=(64, 73), word=None):
        self.hold()
        r = self.run(more, verb, out)
        check(r.code in codes, "%s: %s" % (what, r))
        check(not word or word in r.err, "%s: says not \"%s\": %s" % (what, word, r))
        self.confirm(what)


SIDES = {"--trace": ("run", "plan", "verify", "preview", "copy"), "--log": ("run", "verify"), "--plot=": ("run", "verify"),
         "--save": ("run", "plan"), "--stats": ("run",)}


def side(option, path):
    return [option + path] if option.endswith("=") else [option, path]


def test_sides_onto_what_is_read(lab):
    """Every option that writes, onto every file that is read, under its own name and two others."""
    p = Place(lab, "read")
    with open(p.at("net.json"), "w") as f:
        json.dump({"normalize": "zscore"}, f)
    named = {"the input": p.image, "the model": p.model, "external data": p.extra, "the descriptor": p.at("net.json")}
    for what, path in list(named.items()):
        os.symlink(path, path + ".link")
        named[what + " by a link"] = path + ".link"
    os.link(p.image, p.at("hard.tif"))
    named["the input by a hard link"] = p.at("hard.tif")
    for option, verbs in SIDES.items():
        for verb in verbs:
            for what, path in named.items():
                if verb == "copy" and "input" not in what:
                    continue
                if option == "--plot=":  # its name ends in .svg
                    os.link(path, p.at("x.svg")) if not os.path.islink(path) else os.symlink(os.readlink(path), p.at("x.svg"))
                    path = p.at("x.svg")
                y = [] if verb == "verify" and option != "--log" else ["-y"]
                p.refused(side(option, path) + y, "%s %s onto %s" % (verb, option, what), verb, codes=(64, 65, 73))
                if os.path.lexists(p.at("x.svg")):
                    os.remove(p.at("x.svg"))
                check(not os.path.exists(p.out) and not os.path.exists(p.out + ".partial"),
                      "%s %s onto %s: an output was begun" % (verb, option, what))


def test_sides_onto_each_other(lab):
    p = Place(lab, "each")
    both = p.at("both.csv")
    for more in (["--log", both, "--trace", both], ["--log", p.out], ["--trace", p.out + ".partial"],
                 ["--trace", p.out + ".tegula.json"], ["--log", p.out + ".journal"], ["--save", both, "--trace", both],
                 ["--log", p.at("m.svg"), "--plot=" + p.at("m.svg")], ["--log", p.at("./") + "both.csv", "--trace", both],
                 ["--normalize", "zscore", "--stats", both, "--log", both]):
        p.refused(more + ["-y"], "two outputs of one name: %s" % more)
        check(not os.path.exists(p.out), "an output in spite of %s" % more)


def test_sides_without_y(lab):
    """What is there stays without -y, and is replaced with it."""
    p = Place(lab, "sides")
    for option, verb in (("--trace", "run"), ("--trace", "plan"), ("--trace", "copy"), ("--log", "run"), ("--plot=", "run"),
                         ("--save", "plan"), ("--log", "verify"), ("--plot=", "verify"), ("--trace", "verify"), ("--trace", "preview")):
        path = p.precious("there.svg")
        more = ["--log", p.at("verified.csv")] if (option, verb) == ("--plot=", "verify") else []
        what = "%s %s onto a file that is there" % (verb, option)
        p.refused(side(option, path) + more, what, verb, codes=(73,), word="-y")
        r = p.run(side(option, path) + more + ["-y"], verb)
        check(r.code == 0, "%s, with -y: %s" % (what, r))
        with open(path, "rb") as f:
            check(f.read() != PRECIOUS, "%s, with -y: it is as it was" % what)
        for name in ("out.tif", "out.tif.tegula.json", "out.png", "there.svg", "out.memory.csv", "out.tif.memory.csv"):
            if os.path.exists(p.at(name)):
                os.remove(p.at(name))
    os.symlink(p.precious("elsewhere.csv"), p.at("link.csv"))
    for option, verb in (("--trace", "run"), ("--log", "run"), ("--save", "plan")):
        p.refused(side(option, p.at("link.csv")) + ["-y"], "%s %s through a link" % (verb, option), verb, codes=(73,))
        if os.path.exists(p.out):
            os.remove(p.out)
    p.hold()
    for victim in (p.model, p.image, p.extra):
        r = lab.run(["preset", "auto", "-m", p.model, p.image, "-o", victim, "-y"])
        check(r.code in (64, 73), "preset auto -o %s: %s" % (os.path.basename(victim), r))
        p.confirm("preset auto -o %s" % os.path.basename(victim))
    r = lab.run(["run", "-m", p.model, p.image, "-o", p.out, "--log", p.at("m.csv")])
    check(r.code == 0, "a log: %s" % r)
    path = p.precious("m.svg")
    p.hold()
    r = lab.run(["plot", p.at("m.csv"), "-o", path])
    check(r.code == 73, "plot onto a file that is there: %s" % r)
    p.confirm("plot onto a file that is there")
    check(lab.run(["plot", p.at("m.csv"), "-o", path, "-y"]).code == 0, "plot -y")
    for more in ([], ["-y"]):
        os.replace(path, p.at("copy.svg")) if os.path.exists(path) and not os.path.islink(path) else None
        if os.path.lexists(path):
            os.remove(path)
        os.link(p.at("m.csv"), path)
        p.hold()
        r = lab.run(["plot", p.at("m.csv"), "-o", path] + more)
        check(r.code in (64, 73), "plot onto its own log %s: %s" % (more, r))
        p.confirm("plot onto its own log")
    path = p.precious("mem.csv")
    p.hold()
    check(lab.run(["mem", "--csv", path]).code == 73, "mem --csv onto another file")
    p.confirm("mem --csv")


def test_members_of_a_stack(lab):
    """A side file that is one of the files a folder stands for."""
    p = Place(lab, "stack")
    folder = p.at("many")
    os.mkdir(folder)
    for i in range(3):
        picture(os.path.join(folder, "z%d.tif" % i), 64, 64, seed=i)
    model = upscaler(p.at("up.onnx"), 4)
    for option in ("--trace", "--log", "--plot="):
        victim = os.path.join(folder, "z1.tif")
        alias = p.at("alias.svg")
        if os.path.lexists(alias):
            os.remove(alias)
        os.link(victim, alias)
        with open(victim, "rb") as f:
            before = f.read()
        r = lab.run(["run", "-m", model, folder, "-o", p.out, "-y"] + side(option, alias))
        with open(victim, "rb") as f, open(alias, "rb") as g:
            check(f.read() == before and g.read() == before, "%s onto a file of the stack: it was changed" % option)
        check(r.code in (64, 73), "%s onto a file of the stack: %s" % (option, r))


def array(path, values):
    """A [1,1,H,W] array of float32."""
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, %d), }" % (len(values) // 8)
    head += b" " * (64 - (len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % len(values), *values))
    return path


def test_arrays(lab):
    """A folder of outputs whose names are those of inputs, and side files onto arrays."""
    p = Place(lab, "arrays")
    model = upscaler(p.at("up.onnx"), 4)  # gives "y"
    os.mkdir(p.at("all"))
    for name in ("y.npy", "y.tif", "y.npy.partial"):
        x = array(os.path.join(p.at("all"), "x.npy"), [0.5] * 64)
        os.rename(x, os.path.join(p.at("all"), name))
        x = os.path.join(p.at("all"), name)
        with open(x, "rb") as f:
            before = f.read()
        r = lab.run(["run", "-m", model, "--input-tensor", "x=" + x, "-o", p.at("all") + "/", "-y"])
        check(os.path.exists(x), "-o DIR/ over its own input %s: it is gone: %s" % (name, r))
        with open(x, "rb") as f:
            check(f.read() == before, "-o DIR/ over its own input %s: it was changed" % name)
        check(r.code == 64, "-o DIR/ over its own input %s: %s" % (name, r))
        os.remove(x)
    x = array(p.at("x.npy"), [0.5] * 64)
    with open(x, "rb") as f:
        before = f.read()
    for more in (["--log", x], ["--trace", x], ["--log", p.at("z.npy")], ["--log", p.at("z.npy.partial")]):
        r = lab.run(["run", "-m", model, x, "-o", p.at("z.npy"), "-y"] + more)
        check(r.code == 64 and not os.path.exists(p.at("z.npy")), "an array and %s: %s" % (more, r))
        with open(x, "rb") as f:
            check(f.read() == before, "an array and %s: it was changed" % more)
    r = lab.run(["run", "-m", model, x, "-o", p.at("z.npy"), "--log", p.at("l.csv"), "--trace", p.at("t.json")])
    check(r.code == 0, "an array with side files: %s" % r)
    p.hold()
    r = lab.run(["run", "-m", model, x, "-o", p.at("z2.npy"), "--log", p.at("l.csv")])
    check(r.code == 73, "an array, and a log that is there: %s" % r)
    p.confirm("an array, and a log that is there")


def test_folder_that_is_not_there_yet(lab):
    """Side files at names of the run's own, in a folder of outputs that it makes itself; and what is refused leaves none."""
    p = Place(lab, "yet")
    x = array(p.at("x.npy"), [0.5] * 64)
    model = upscaler(p.at("up.onnx"), 4)  # gives "y"
    for folder in ("new", "new/er"):
        for there in (False, True):
            out = p.at(folder)
            if there:
                os.makedirs(out)
            for option, name in (("--log", "y.npy"), ("--trace", "y.npy"), ("--trace", "y.npy.partial"), ("--trace", ".tegula.names"),
                                 ("--save", "y.npy"), ("--log", "./y.npy"), ("--log", "/y.npy")):
                what = "%s %s in %s, which is %s" % (option, name, folder, "there" if there else "not there")
                r = lab.run(["run", "-m", model, x, "-o", out + "/"] + side(option, out + "/" + name))
                check(r.code == 64 and "would be one file" in r.err, "%s: %s" % (what, r))
                check(not os.path.lexists(p.at("new")) if not there else os.listdir(out) == [], "%s: something was made" % what)
        os.rmdir(out)
        if folder == "new/er":
            os.rmdir(p.at("new"))
    r = lab.run(["run", "-m", model, x, "-o", p.at("new") + "/", "--log", p.at("new.csv"), "--trace", p.at("new.json")])
    check(r.code == 0, "side files beside a new folder: %s" % r)


def test_derived_names(lab):
    """An input whose name is one that the output's run takes for itself."""
    for end in (".partial", ".journal", ".made", ".tegula.json", ".tegula.json.tmp", ".errors.partial", ".errors.json"):
        p = Place(lab, "derived" + end)
        os.rename(p.image, p.out + end)
        p.image = p.out + end
        for verb in ("run", "copy"):
            for more in ([], ["-y"], ["--on-bad-tile", "fill", "-y"]):
                if end in (".tegula.json", ".tegula.json.tmp") and verb == "copy":
                    continue  # a copy has no receipt
                p.refused(more, "%s %s of an input OUT%s" % (verb, more, end), verb, codes=(64, 65, 73))


def test_links_at_derived_names(lab):
    """A symbolic link at a name of ours is not followed."""
    for end in (".partial", ".journal", ".tegula.json.tmp", ".errors.partial", ".made"):
        p = Place(lab, "link" + end)
        p.precious("victim")
        os.symlink(p.at("victim"), p.out + end)
        with open(p.at("victim"), "rb") as f:
            before = f.read()
        for verb, out in (("run", p.out), ("copy", p.out), ("run", p.at("out.png"))):
            if out != p.out:
                os.symlink(p.at("victim"), out + end) if not os.path.lexists(out + end) else None
            for more in ([], ["-y"], ["--on-bad-tile", "fill", "-y"]):
                if out.endswith(".png"):
                    more = more + ["--dtype", "uint8"]
                p.run(more, verb, out)
                with open(p.at("victim"), "rb") as f:
                    check(f.read() == before, "%s %s: a link at OUT%s was followed" % (verb, more, end))
                if os.path.exists(out):
                    os.remove(out)


def test_no_regular_files(lab):
    """-y replaces files, nothing else."""
    p = Place(lab, "nodes")
    os.mkfifo(p.at("pipe.tif"))
    os.mkfifo(p.at("pipe.png"))
    os.mkfifo(p.at("pipe.npy"))
    nodes = [("run", p.at("pipe.tif")), ("copy", p.at("pipe.tif")), ("preview", p.at("pipe.png")), ("copy", p.at("pipe.npy"))]
    if os.geteuid() == 0:
        try:
            os.mknod(p.at("null.tif"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            nodes += [("run", p.at("null.tif")), ("copy", p.at("null.tif"))]
        except PermissionError:
            pass
    for verb, out in nodes:
        for more in ([], ["-y"]):
            p.refused(more, "%s %s -o a node" % (verb, more), verb, out, codes=(64, 73))
    for end in (".partial", ".journal", ".tegula.json", ".tegula.json.tmp"):
        path = p.out + end
        os.mkfifo(path)
        p.hold()
        r = p.run(["-y"])
        check(r.code != 0 and not os.path.exists(p.out), "a FIFO at OUT%s: %s" % (end, r))
        p.confirm("a FIFO at OUT%s" % end)
        os.remove(path)
    for option in ("--log", "--trace", "--save", "--plot="):
        path = p.at("folder.svg")
        os.mkdir(path)
        p.refused(side(option, path) + ["-y"], "%s onto a folder" % option, codes=(64, 73))
        check(not os.path.exists(p.out), "%s onto a folder: an output was made" % option)
        os.rmdir(path)


def test_streams(lab):
    """Where a stream is natural it is one: terminals, pipes and what has no end."""
    p = Place(lab, "streams")

    def fresh(more, shell=None, env=None):
        for end in ("", ".tegula.json", ".partial", ".journal"):
            if os.path.exists(p.out + end):
                os.remove(p.out + end)
        words = [lab.tegula, "run", "-m", p.model, p.image, "-o", p.out, "-q"] + more
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=lab.env(env), timeout=60)
    r = fresh(["--log", "/dev/stderr"])
    check(r.returncode == 0 and "seconds,phase,tile" in r.stderr, "--log /dev/stderr: %s %s" % (r.returncode, r.stderr[-200:]))
    r = fresh(["--trace", "/dev/stdout"])
    check(r.returncode == 0 and "tegula_timeline" in r.stdout, "--trace /dev/stdout: %s %s" % (r.returncode, r.stderr[-200:]))
    r = fresh(["--log", "/dev/null", "--trace", "/dev/null"])
    check(r.returncode == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null: %s %s" % (r.returncode, r.stderr))
    with open(p.at("err.txt"), "w") as f:
        f.write("before\n")
    with open(p.at("err.txt"), "a") as f:
        os.remove(p.out)
        done = subprocess.run([lab.tegula, "run", "-m", p.model, p.image, "-o", p.out, "-q", "--log", "/dev/stderr"],
                              stderr=f, stdout=subprocess.DEVNULL, env=lab.env(None), timeout=60)
    with open(p.at("err.txt")) as f:
        text = f.read()
    check(done.returncode == 0 and text.startswith("before\n") and "seconds,phase" in text,
          "--log /dev/stderr into a file: %s %r" % (done.returncode, text[:60]))
    os.mkfifo(p.at("pipe"))
    for option, word in (("--log", "seconds,phase,tile"), ("--trace", "tegula_timeline")):
        got = []
        reader = threading.Thread(target=lambda: got.append(open(p.at("pipe")).read()))
        reader.start()
        r = fresh([option, p.at("pipe")])
        reader.join(20)
        check(r.returncode == 0 and got and word in got[0], "%s into a FIFO: %s %s" % (option, r.returncode, r.stderr[-200:]))
    # A reader that leaves does not end the run.
    reader = subprocess.Popen(["head", "-c", "10", p.at("pipe")], stdout=subprocess.DEVNULL)
    r = fresh(["--log", p.at("pipe"), "--log-interval", "1u"])
    reader.wait(20)
    check(r.returncode == 0 and os.path.exists(p.out), "a reader of --log that leaves: %s %s" % (r.returncode, r.stderr[-200:]))


def test_the_same_command_goes_on(lab):
    """A kill with side files on: what that run wrote is no obstacle."""
    p = Place(lab, "goes-on")
    picture(p.image, 96, 200)
    args = ["run", "-m", upscaler(p.at("up.onnx"), 4), p.image, "--tile", "32x32", "--trace", p.at("t.json"),
            "--log", p.at("m.csv"), "--plot=" + p.at("m.svg"), "--save", p.at("job.json")]
    stop(lab, args, p.out, [p.at(n) for n in ("t.json", "m.csv", "m.svg", "job.json")])
    check(os.path.exists(p.at("m.csv")), "the killed run left no log")
    r = lab.run(args + ["-o", p.out])
    check(r.code == 0, "the same command with side files does not go on: %s" % r)
    for k in range(1, 40):  # from the very first operations on
        for name in ("out.tif", "out.tif.tegula.json", "t.json", "m.csv", "m.svg", "job.json", "out.tif.partial", "out.tif.journal"):
            if os.path.exists(p.at(name)):
                os.remove(p.at(name))
        r = lab.run(args + ["-o", p.out], {"TEGULA_FAIL_IO": "%d:%s" % (k, "kill" if k % 2 else "full"), "TEGULA_SYNC_TILES": 1})
        if k == 2 and r.code == 0:  # the unnamed file of --trace: another folder has one
            continue
        check(r.code != 0, "operation %d did not fail" % k)
        r = lab.run(args + ["-o", p.out])
        check(r.code == 0 or (r.code == 73 and os.path.exists(p.out) and not os.path.exists(p.out + ".journal")),
              "after a failure of operation %d the same command does not go on: %s" % (k, r))


def test(lab, rest):
    chosen = [globals()[name] for name in rest] or [
        test_sides_onto_what_is_read, test_sides_onto_each_other, test_sides_without_y, test_members_of_a_stack,
        test_arrays, test_folder_that_is_not_there_yet, test_derived_names, test_links_at_derived_names, test_no_regular_files, test_streams,
        test_the_same_command_goes_on]
    for one in chosen:
        one(lab)
        print("ok  %s" % one.__name__, flush=True)


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
