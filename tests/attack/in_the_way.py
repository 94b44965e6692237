"""What stands at a name that a run makes from its output's: never written over, whatever -y says, unless it
is what a stopped run left. A folder of outputs and one of its files are the same output to two runs.

    in_the_way.py TEGULA SOURCE_DIR [all]

'all' stops more kinds of runs at each of their operations on files."""
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, os.pardir, "crash"))
from crashlib import check, main, picture, read, upscaler  # noqa: E402
from overwrite import array  # noqa: E402
from two_runs import GROWING, hold  # noqa: E402

DIARY = b"my diary\n" * 600
BESIDE = (".errors.json", ".errors.partial")
REPORTS = (".tegula.json", ".errors.json")  # they stay beside an output, so -y speaks of them, too


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def empty(folder):
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))


class Work:
    """The commands that write, into one folder."""

    def __init__(self, lab):
        self.lab, self.dir = lab, lab.path("work")
        os.mkdir(self.dir)
        # An image by another name: -o DIR/ of one that is named as a picture is one of many, with a name of its own.
        self.model, self.image = upscaler(lab.path("up.onnx"), 4), picture(lab.path("in.pixels"), 64, 64)
        self.array = array(lab.path("x.npy"), [0.5] * 64)
        run, copy = ["run", "-m", self.model], ["copy", self.image]
        at = self.at
        self.all = {  # the command, its output, the names that are made from that
            "run tif": (run + [self.image], at("o.tif"), (".partial", ".journal", ".tegula.json", ".tegula.json.tmp") + BESIDE),
            "run png": (run + [self.image, "--dtype", "uint8"], at("o.png"), (".partial", ".made", ".journal") + BESIDE),
            "run npy": (run + [self.array], at("o.npy"), (".partial",) + BESIDE),
            "run DIR": (run + [self.image], at(""), ("y.tif.partial", "y.tif.journal", "/.tegula.names") + BESIDE),
            "run DIR imagej": (run + [self.image, "--format", "imagej"], at(""), ("y.tif.made",)),
            "run DIR npy": (run + [self.array], at(""), ("y.npy.partial",)),
            "copy tif": (copy, at("o.tif"), (".partial", ".journal") + BESIDE),
            "copy npy": (copy, at("o.npy"), (".partial",) + BESIDE),
            "preview": (["preview", "-m", self.model, self.image], at("o.png"), (".made",)),
            "stats": (run + [self.image, "--normalize", "zscore", "--stats", at("s.json")], at("o.tif"), ("/../s.json.tmp",)),
            "plot": (run + [self.image, "--plot=" + at("m.svg")], at("o.tif"), ("/../m.svg.tmp",)),
            "plot png": (run + [self.image, "--plot=" + at("m.png")], at("o.tif"), ("/../m.png.made",))}

    def at(self, name):
        return os.path.join(self.dir, name)

    def run(self, args, more=(), env=None):
        return self.lab.run(args + list(more), env)


def test_strangers(w):
    """A diary at each name; and a file that begins as ours, but has a second name."""
    for what, (args, out, ends) in w.all.items():
        for end in ends:
            name = os.path.normpath(out + end) if end.startswith("/") else out + end
            for kind in ("diary", "ours by a hard link"):
                empty(w.dir)
                first = b"" if kind == "diary" else GROWING if end.endswith(("partial", "made")) else b'{"tegula":'
                victim = write(w.lab.path("victim"), first + DIARY)
                os.link(victim, name) if first else write(name, DIARY)
                for more in ([], ["-y"]):
                    r = w.run(args + ["-o", out], more)
                    where = "%s %s: %s at %s" % (what, " ".join(more), kind, os.path.basename(name))
                    check(read(victim) == first + DIARY, "%s: the other name's bytes were changed" % where)
                    if more and end in REPORTS:
                        check(r.code == 0, "%s: %s" % (where, r))
                        continue
                    check(r.code == 73 and os.path.basename(name) in r.err, "%s: %s" % (where, r))
                    check(read(name) == first + DIARY, "%s: it was changed" % where)
                    left = sorted(n for n in os.listdir(w.dir) if w.at(n) != name)
                    check(not left, "%s: refused, and left %s" % (where, left))
                    if not more and end in REPORTS:
                        check("-y" in r.err, "%s: says not how: %s" % (where, r))
                os.remove(victim)


def test_empty_files(w):
    """Of a run that was stopped with its file just made: nobody misses it."""
    for what, (args, out, ends) in w.all.items():
        for end in ends:
            empty(w.dir)
            name = os.path.normpath(out + end) if end.startswith("/") else out + end
            if end in (".partial", ".made") and "npy" not in what and what != "preview" or "tif." in end and "journal" not in end:
                continue  # only behind a journal
            write(name, b"")
            r = w.run(args + ["-o", out])
            check(r.code == 0, "%s: an empty file at %s: %s" % (what, os.path.basename(name), r))


def test_stopped_anywhere(w, kinds=("run npy", "run DIR")):
    """At every operation on files: the same command comes to the same bytes, and to no other file."""
    for what in kinds:
        args, out, _ = w.all[what]
        empty(w.dir)
        check(w.run(args + ["-o", out]).code == 0, what)
        want = {n: read(w.at(n)) for n in os.listdir(w.dir) if not n.endswith("tegula.json")}
        mine = {w.at("y.partial.tif"): DIARY, w.at("y.npy.partial") if what == "run DIR" else w.at("other"): DIARY}
        for k in range(1, 200):
            for how in ("kill", "full") if k % 4 == 0 else ("kill",):
                empty(w.dir)
                for name, data in mine.items():
                    write(name, data)
                r = w.run(args + ["-o", out], env={"TEGULA_FAIL_IO": "%d:%s" % (k, how)})
                if r.code == 0:
                    break
                again = w.run(args + ["-o", out], ["-y"] if any(os.path.exists(w.at(n)) for n in want) else [])
                where = "%s, stopped (%s) at operation %d" % (what, how, k)
                check(again.code == 0, "%s: the same command: %s" % (where, again))
                got = {n: read(w.at(n)) for n in os.listdir(w.dir) if not n.endswith("tegula.json")}
                check({n: d for n, d in got.items() if w.at(n) not in mine} == want,
                      "%s: %s, not %s" % (where, sorted(got), sorted(want)))
                check(all(read(n) == d for n, d in mine.items()), "%s: another's file was changed" % where)
            if r.code == 0:
                break
        check(8 < k < 199, "%s: %d operations" % (what, k))


def test_killed_then_failed(w):
    """A run that goes on with what a kill left, and fails itself: nothing of both is in the third one's way."""
    for what, kills in (("run png", (6, 22)), ("run DIR", (14,)), ("run DIR imagej", (36,))):
        args, out, _ = w.all[what]
        for k in kills:
            for j in range(1, 11):
                empty(w.dir)
                w.run(args + ["-o", out], env={"TEGULA_FAIL_IO": "%d:kill" % k})
                w.run(args + ["-o", out], env={"TEGULA_FAIL_IO": "%d" % j})
                there = os.path.exists(out) and os.path.isfile(out) or os.path.exists(w.at("y.tif"))
                r = w.run(args + ["-o", out], ["-y"] if there else [])
                where = "%s, killed at operation %d, then failed at %d" % (what, k, j)
                check(r.code == 0, "%s: the same command: %s" % (where, r))
                left = [n for n in os.listdir(w.dir) if n not in ("o.png", "o.png.tegula.json", "y.tif")]
                check(not left, "%s: left %s" % (where, left))


def test_folder_and_file(w):
    """-o DIR/y.tif and -o DIR/, which makes y.tif, at once and one after the other."""
    big = picture(w.lab.path("big.pixels"), 900, 900)
    one = ["run", "-m", w.model, big, "--threads", "1", "-o", w.at("y.tif")]
    all_of_it = ["run", "-m", w.model, big, "--threads", "1", "-o", w.at("")]
    for first, second in ((one, all_of_it), (all_of_it, one)):
        for _ in range(20):
            empty(w.dir)
            p = w.lab.start(first)
            while p.poll() is None and not os.path.exists(w.at("y.tif.journal")):
                time.sleep(0.0002)
            p.send_signal(signal.SIGSTOP)
            try:
                os.close(hold(w.at("y.tif.journal"), b"", False))
            except OSError:
                break
            p.kill()
            w.lab.wait(p)
        before = {n: os.stat(w.at(n)).st_ino for n in os.listdir(w.dir)}
        for more in ([], ["-y"]):
            r = w.run(second, more)
            check(r.code == 75, "a second run of y.tif%s: %s" % (more, r))
            check({n: os.stat(w.at(n)).st_ino for n in os.listdir(w.dir)} == before, "it changed the first one's files")
        p.send_signal(signal.SIGCONT)
        check(w.lab.wait(p).code == 0 and os.path.exists(w.at("y.tif")), "the first of two")
    want = read(w.at("y.tif"))
    for k in range(20, 200, 3):  # an interrupted y.tif is not what DIR/ discards without -y
        empty(w.dir)
        r = w.run(one, env={"TEGULA_FAIL_IO": "%d:kill" % k, "TEGULA_SYNC_TILES": 1})
        if r.code and os.path.exists(w.at("y.tif.partial")) and os.path.getsize(w.at("y.tif.partial")) > 300000:
            break
    held = {n: read(w.at(n)) for n in os.listdir(w.dir)}
    check("y.tif.partial" in held and "y.tif.journal" in held, "nothing was interrupted: %s" % sorted(held))
    r = w.run(all_of_it)
    check(r.code == 65 and "-y" in r.err, "DIR/ over an interrupted y.tif: %s" % r)
    check({n: read(w.at(n)) for n in os.listdir(w.dir)} == held, "DIR/ over an interrupted y.tif: it was changed")
    r = w.run(all_of_it, ["-y"])
    check(r.code == 0 and read(w.at("y.tif")) == want and os.listdir(w.dir) == ["y.tif"], "DIR/ with -y over that: %s" % r)


def test_descriptors(w):
    """A file that the shell opened is written to as it was opened: behind what is there, or not at all."""
    for option in ("--trace", "--log", "--save"):
        for mode, flags in (("appended to", os.O_WRONLY | os.O_APPEND), ("read", os.O_RDONLY), ("written", os.O_RDWR)):
            for path in ("/dev/fd/%d", "/proc/self/fd/%d"):
                empty(w.dir)
                mine = write(w.lab.path("mine"), DIARY)
                fd = os.open(mine, flags)
                os.lseek(fd, 0, os.SEEK_END)
                os.set_inheritable(fd, True)
                verb = "plan" if option == "--save" else "run"
                p = w.lab.start([verb, "-m", w.model, w.image, "-o", w.at("o.tif"), option, path % fd], close_fds=False)
                r = w.lab.wait(p)
                os.close(fd)
                got = read(mine)
                where = "%s onto a file that was opened to be %s" % (option, mode)
                check(got.startswith(DIARY), "%s: what was there is gone" % where)
                if mode == "read":
                    check(r.code == 73 and got == DIARY, "%s: %s" % (where, r))
                else:
                    check(r.code == 0 and len(got) > len(DIARY), "%s: %s" % (where, r))


def test_sides_by_hard_links(w):
    """With -y a side file is emptied and written: not where it has another name."""
    for option in ("--trace", "--log", "--save", "--plot="):
        empty(w.dir)
        mine = write(w.lab.path("mine"), DIARY)
        os.link(mine, w.at("side.svg"))
        side = [option + w.at("side.svg")] if option.endswith("=") else [option, w.at("side.svg")]
        r = w.run(["plan" if option == "--save" else "run", "-m", w.model, w.image, "-o", w.at("o.tif"), "-y"] + side)
        check(read(mine) == DIARY, "%s -y through a hard link: %s" % (option, r))
        check(r.code == (0 if option.endswith("=") else 73), "%s -y onto a hard link: %s" % (option, r))
        os.remove(mine)


def test(lab, rest):
    w = Work(lab)
    for one in (test_strangers, test_empty_files, test_stopped_anywhere, test_killed_then_failed, test_folder_and_file, test_descriptors,
                test_sides_by_hard_links):
        one(w)
        print("ok  %s" % one.__name__, flush=True)
    if "all" in rest:
        test_stopped_anywhere(w, ("run DIR imagej", "preview", "copy npy", "stats"))


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
