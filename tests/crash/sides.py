"""Killed with a log and a picture of its memory beside the output: the same command goes on, and the
picture is there when the output is.

    sides.py TEGULA SOURCE_DIR [filled]

A run into a file and one into a folder are killed in front of each of their operations on files
(TEGULA_FAIL_IO). The same command ends with 0, with the bytes of the undisturbed run and nothing else
beside them; 73 is for an output that has its name, and then its picture is there. What others put at
these names is theirs, killed run or not. And what a kill left that was damaged, or lost its journal, is
discarded with -y, and only then, in a folder and complete as well.
'filled': of damaged tiles that were filled no list stays. Standard library."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "attack"))
from crashlib import check, crc32c, main, picture, read, upscaler, write  # noqa: E402
from stopped_run import damaged_tiles  # noqa: E402

DIARY = b"my diary\n" * 600
LOG, DRAWN = "memory.csv", "memory.svg"


class Command:
    """A command that works in a folder of its own."""

    def __init__(self, lab, name, args, out):
        self.lab, self.name, self.dir = lab, name, lab.path(name)
        os.mkdir(self.dir)
        self.out = os.path.join(self.dir, out)
        self.args = args + ["-o", self.out]

    def at(self, name):
        return os.path.join(self.dir, name)

    def run(self, more=(), kill=0):
        env = {"TEGULA_SYNC_TILES": 1}
        if kill:
            env["TEGULA_FAIL_IO"] = "%d:kill" % kill
        return self.lab.run(self.args + list(more), env)

    def clean(self):
        for name in os.listdir(self.dir):
            os.unlink(self.at(name))

    def names(self):
        return sorted(os.listdir(self.dir))

    def logged(self):
        return ["--log", self.at(LOG), "--plot=" + self.at(DRAWN)]

    def learn(self, more=()):
        self.clean()
        r = self.run(more)
        check(r.code == 0, "%s: undisturbed: %s" % (self.name, r))
        self.whole = self.names()
        self.bytes = {n: read(self.at(n)) for n in self.whole if n.endswith((".tif", ".npy", ".png"))}
        check(self.bytes, "%s: no output" % self.name)
        return self

    def confirm(self, what):
        check(self.names() == self.whole, "%s: %s, not %s" % (what, self.names(), self.whole))
        check(all(read(self.at(n)) == d for n, d in self.bytes.items()), what + ": other bytes than undisturbed")

    def named(self):
        return any(os.path.exists(self.at(n)) for n in self.bytes)


def test_killed_anywhere(command):
    command.learn(command.logged())
    complete = 0
    for k in range(1, 300):
        command.clean()
        if command.run(command.logged(), k).code == 0:
            break
        what = "%s, killed at operation %d" % (command.name, k)
        had_name, drawn = command.named(), os.path.exists(command.at(DRAWN))
        check(drawn or not had_name, what + ": the output has its name, and there is no picture")
        if had_name and command.name == "one" and complete == 0:  # as a disk leaves it that had no room for a picture
            os.unlink(command.at(DRAWN))
        r = command.run(command.logged())
        check("peak 0 B" not in r.out, "%s: what was not done is told of: %s" % (what, r))
        if "was complete already" in r.out:
            check(had_name, "%s: %s" % (what, r))
            check(complete > 0 or "draws it" in r.err, "%s: nothing is said of the picture: %s" % (what, r))
            if not complete:
                told = r.err.split("tegula plot ")[1].split(" draws it")[0].split()
                check(command.lab.run(["plot"] + told).code == 0, "%s: the advice: %s" % (what, r))
            complete += 1
        check(r.code == 0 or r.code == 73 and command.named(), "%s: the same command: %s" % (what, r))
        command.confirm(what)
    check(10 < k < 299, "%s: %d operations" % (command.name, k))
    check(complete > 0 or command.name != "one", "no kill behind the name")


def test_strangers(command):
    """What is no log, or lies beside no run of ours, stays."""
    for k in (4, 12):
        command.clean()
        check(command.run((), k).code == -9, "%s: not killed at %d" % (command.name, k))
        for name in (LOG, DRAWN):
            write(command.at(name), DIARY)
            r = command.run(command.logged())
            check(r.code == 73 and name in r.err, "%s: a diary at %s: %s" % (command.name, name, r))
            check(read(command.at(name)) == DIARY, "%s: the diary at %s was changed" % (command.name, name))
            os.unlink(command.at(name))
    command.clean()
    check(command.run(command.logged()).code == 0, command.name)
    log = read(command.at(LOG))
    command.clean()
    write(command.at(LOG), log)
    r = command.run(command.logged())
    check(r.code == 73 and read(command.at(LOG)) == log, "%s: the log of a run that ended: %s" % (command.name, r))


def test_no_room_for_sides(lab, command):
    """The disk is full when all but the picture is written: what the message says to do draws it, for the same
    command finds its output. Of a timeline it says that another run writes one, which it does."""
    command.clean()
    told, k = 0, 0
    while told < 3:
        k += 1
        command.clean()
        r = lab.run(command.args + command.logged(), {"TEGULA_FAIL_IO": "%d:full" % k})
        check(k < 100, "%s: %d warnings of the picture" % (command.name, told))
        if r.code == 0 and "--plot" in r.err:
            told += 1
            what = "%s, full at operation %d" % (command.name, k)
            todo = "tegula plot %s -o %s" % (command.at(LOG), command.at(DRAWN))
            check(todo in r.err and "disk is full" in r.err and "same command" not in r.err, "%s: %s" % (what, r))
            check(os.path.exists(command.out) and not os.path.exists(command.at(DRAWN)), what)
            check(command.run(command.logged()).code == 73, what + ": the same command")
            check(lab.run(todo.split()[1:]).code == 0 and os.path.exists(command.at(DRAWN)), what + ": " + todo)
    command.clean()
    r = lab.run(command.args + ["--trace", "/dev/full"])
    check(r.code == 74 and "with -y" in r.err and os.path.exists(command.out), "a timeline without room: %s" % r)
    r = lab.run(command.args + ["--trace", command.at("t.json"), "-y"])
    check(r.code == 0 and os.path.exists(command.at("t.json")), "another run, for its timeline: %s" % r)


def test_refused(lab, command):
    """A refusal takes the word back that a run was here."""
    command.clean()
    r = lab.run(command.args + command.logged() + ["--ram", "1MiB"])
    check(r.code != 0 and not command.names(), "refused, and left %s: %s" % (command.names(), r))
    write(command.at(LOG), DIARY)
    check(command.run(command.logged()).code == 73 and command.names() == [LOG], "left %s" % command.names())


def stopped(command):
    """Killed with some tiles safe."""
    for k in range(16, 200, 4):
        command.clean()
        if command.run((), k).code == -9 and os.path.exists(command.out + ".journal"):
            slots = read(command.out + ".journal")[4096:12288]
            if len(slots) > 4200 and struct.unpack_from("<Q", slots, 16)[0] + struct.unpack_from("<Q", slots, 4112)[0] > 3:
                return {n: read(command.at(n)) for n in command.names()}
    check(False, command.name + ": never stopped with tiles")


def test_discarded(command):
    """-y discards what cannot be gone on with; without it nothing is changed, and what the message says to
    do does it."""
    command.learn()
    left = stopped(command)
    partial, journal = os.path.basename(command.out) + ".partial", os.path.basename(command.out) + ".journal"

    def damaged_slots():
        return dict(left, **{journal: left[journal][:4096] + b"\x5a" * 8192 + left[journal][12288:]})

    def emptied():
        return dict(left, **{journal: b""})

    def another_tile():
        """A tile that was damaged, and of which the journal tells otherwise: its record is another's."""
        data, tiles = bytearray(left[journal]), bytearray(left[partial])
        slot = max((4096, 8192), key=lambda at: struct.unpack_from("<Q", data, at + 8)[0])
        records = struct.unpack_from("<Q", data, slot + 32)[0]
        n = struct.unpack_from("<Q", data, slot + 16)[0]
        data[records + 12] ^= 1
        struct.pack_into("<I", data, slot + 112, crc32c(bytes(data[records:records + 16 * n])))
        struct.pack_into("<I", data, slot + 132, crc32c(bytes(data[slot:slot + 132])))
        return dict(left, **{journal: bytes(data), partial: bytes(tiles)})

    for change in (damaged_slots, emptied, another_tile):
        what = "%s: %s" % (command.name, change.__name__)
        command.clean()
        for name, data in change().items():
            write(command.at(name), data)
        r = command.run()
        check(r.code == (73 if change is emptied else 65) and not command.named(), "%s: %s" % (what, r))
        check("gave other bytes" in r.err or change is not another_tile, "%s: %s" % (what, r))
        if r.code == 65:
            check("-y" in r.err and "remove" not in r.err, "%s: no cure: %s" % (what, r))
            check(sorted(left) == command.names(), "%s: left %s" % (what, command.names()))
        r = command.run(["-y"])
        check(r.code == 0, "%s: with -y: %s" % (what, r))
        command.confirm(what)
    for data in (DIARY, b"II*\0" + DIARY):  # somebody's, and no journal tells otherwise
        for empty in (True, False):
            command.clean()
            write(command.at(partial), data)
            if empty:
                write(command.at(journal), b"")
            for more in ([], ["-y"]):
                r = command.run(more)
                check(r.code == 73 and read(command.at(partial)) == data, "%s: a diary%s: %s" % (command.name, more, r))


def test_lost(command, made=False):
    """The journal is emptied or removed, of a file that was just begun and of a complete one: -y discards it, for
    it begins as this command's does. What begins otherwise stays."""
    command.learn()
    found = {}
    for k in range(1, 300):
        command.clean()
        if command.run((), k).code == 0:
            break
        left = {n: read(command.at(n)) for n in command.names()}
        grown = [n for n in left if n.endswith(".partial") and left[n]]
        if grown and not command.named() and [n for n in left if n.endswith(".journal") and left[n]]:
            found.setdefault("begun", left)
            found["complete"] = left
            if any(n.endswith(".made") and left[n] for n in left):
                found["made"] = left
    check(sorted(found) == ["begun", "complete"] + ["made"] * made, "%s: %s" % (command.name, sorted(found)))
    for state, left in found.items():
        journal = [n for n in left if n.endswith(".journal")][0]
        partial = [n for n in left if n.endswith(".partial")][0]
        whole = left[partial]
        check(whole.count(b"OME") and (state == "begun" or whole != found["begun"][partial]), "%s: %s" % (command.name, state))
        for how in ("emptied", "removed"):
            for ours in (True, False):
                what = "%s: %s, its journal %s%s" % (command.name, state, how, "" if ours else ", and another front")
                command.clean()
                given = dict(left, **{journal: b"", partial: whole if ours else whole.replace(b"OME", b"OMF", 1)})
                if how == "removed":
                    del given[journal]
                for name, data in given.items():
                    write(command.at(name), data)
                for more in ([],) if ours else ([], ["-y"]):
                    r = command.run(more)
                    check(r.code == 73 and partial in r.err, "%s%s: %s" % (what, more, r))
                    check(all(read(command.at(n)) == d for n, d in given.items() if d), "%s%s: it was changed" % (what, more))
                if ours:
                    r = command.run(["-y"])
                    check(r.code == 0, "%s, with -y: %s" % (what, r))
                    command.confirm(what)


def test_within(lab, net):
    """The output is in the folder, or among the files of the pattern, that is its input, and its journal was left:
    the same command ends, and no other takes it for no input."""
    other = picture(lab.path("other.tif"), 64, 64, 4, seed=9)
    for verb in (["copy"], ["run", "-m", net]):
        for pattern in ("", "*.tif"):
            where = Command(lab, "within_%s%d" % (verb[0], len(pattern)), [], "z3.tif")
            where.args = verb + [where.at(pattern), "--threads", "1", "-o", where.out]

            def fill(k, args=None):
                where.clean()
                for z in range(3):
                    picture(where.at("z%d.tif" % z), 64, 64, seed=z + 1)
                return lab.run(args or where.args, {"TEGULA_FAIL_IO": "%d:kill" % k} if k else None)
            check(fill(0).code == 0, where.name)
            where.whole, where.bytes, n = where.names(), {"z3.tif": read(where.out)}, 0
            k = 1
            while fill(k).code:
                if os.path.exists(where.out) and os.path.exists(where.out + ".journal"):
                    what, n = "%s, killed at operation %d" % (where.name, k), n + 1
                    left = {name: read(where.at(name)) for name in where.names()}
                    write(where.out, left["z3.tif"][:-1] + b"\x01")
                    for more in ([], ["-y"]):
                        r = where.run(more)
                        check(r.code in (64, 65) and read(where.out)[-1:] == b"\x01", "%s, and damaged: %s" % (what, r))
                    write(where.out, left["z3.tif"])
                    r = where.run(["-y"] if n % 2 else [])
                    check(r.code == 0, "%s: the same command: %s" % (what, r))
                    where.confirm(what)
                k += 1
            check(n > 1, "%s: %d kills between the name and the end" % (where.name, n))
            k = 1
            while fill(k, ["copy", other, "--threads", "1", "-o", where.out]).code:  # what another command made there
                if os.path.exists(where.out) and os.path.exists(where.out + ".journal"):
                    break
                k += 1
            left = {name: read(where.at(name)) for name in where.names()}
            check(where.out + ".journal" in map(where.at, left), "%s: another's is not left" % where.name)
            for more in ([], ["-y"]):
                r = where.run(more)
                check(r.code == 64 and "never replaced" in r.err, "%s, another's output%s: %s" % (where.name, more, r))
                check({name: read(where.at(name)) for name in where.names()} == left, "%s%s: it was changed" % (where.name, more))


def test_beside(lab):
    """The input is a folder and the output lies elsewhere: then a journal that was left is one as of any output, and
    -y starts another command afresh."""
    where = Command(lab, "beside", [], "out.tif")
    where.clean()
    os.mkdir(where.at("in"))
    for z in range(2):
        picture(where.at("in/z%d.tif" % z), 64, 64, seed=z + 1)
    args = ["copy", where.at("in"), "--threads", "1", "-o", where.out]
    k, met = 1, 0
    while lab.run(args + ["-y"], {"TEGULA_FAIL_IO": "%d:kill" % k}).code:
        if os.path.exists(where.out) and os.path.exists(where.out + ".journal"):
            r = lab.run(args + ["--compress", "lzw", "-y"])
            met += 1
            check(r.code == 0 and not os.path.exists(where.out + ".journal"), "beside, killed at %d, another command: %s" % (k, r))
        k += 1
    check(met > 1, "beside: %d kills between the name and the end" % met)


def test_filled(command, journal=True):
    """Killed at its end, with damaged tiles that count as 0: what the journal knows the same command ends as the
    finished one did; behind the name of an output without a journal it says that it is there. No list stays."""
    command.clean()
    r = command.run()
    check(r.code == 65, "%s: undisturbed: %s" % (command.name, r))
    command.whole = command.names()
    command.bytes = {n: read(command.at(n)) for n in command.whole if not n.endswith("tegula.json")}

    def dies(k):
        command.clean()
        return command.run((), k).code == -9
    low, end = 0, 16
    while dies(end):
        low, end = end, 2 * end
    while end - low > 1:
        mid = (low + end) // 2
        low, end = (mid, end) if dies(mid) else (low, mid)
    named = missed = 0
    for k in range(end - 1, 0, -1):
        if not dies(k):  # not every run has as many operations: syncs are due by time
            missed += 1
            check(missed < 8, "%s: not killed at %d" % (command.name, k))
            continue
        if not os.path.exists(command.out):
            break
        named += 1
        what = "%s, killed at operation %d" % (command.name, k)
        r = command.run(["--json"])
        check(r.code == (65 if journal else 73), "%s: %s" % (what, r))
        check(not journal or "errors.json lists it" in r.err, "%s: %s" % (what, r))
        command.confirm(what)
    check(named > (2 if journal else 0), "%s: %d kills behind the name" % (command.name, named))


def test(lab, rest):
    net = upscaler(lab.path("up.onnx"), 4)
    if "filled" in rest:
        fill = [damaged_tiles(lab.path("bad.tif")), "--threads", "1", "--on-bad-tile", "fill"]
        test_filled(Command(lab, "run_filled", ["run", "-m", net] + fill, "o.tif"))
        test_filled(Command(lab, "copy_filled", ["copy"] + fill, "o.tif"))
        test_filled(Command(lab, "png_filled", ["copy"] + fill, "o.png"))
        test_filled(Command(lab, "array_filled", ["copy"] + fill, "o.npy"), journal=False)
        print("no list of damaged tiles stays behind a finished output")
        return
    image = picture(lab.path("in.tif"), 96, 80)
    run = ["run", "-m", net, image, "--threads", "1"]
    one = Command(lab, "one", run + ["--tile", "32x32"], "o.tif")
    # Called in.tif its output would be, too, and have a journal: what is made of arrays has the network's names.
    array = picture(lab.path("in.pixels"), 96, 80)
    arrays = ["run", "-m", net, array, "--threads", "1"]
    folder = Command(lab, "folder", arrays, "")
    for command in (one, folder):
        test_killed_anywhere(command)
        test_strangers(command)
    test_refused(lab, one)
    test_no_room_for_sides(lab, one)
    test_within(lab, net)
    test_beside(lab)
    test_discarded(one)
    wide = picture(lab.path("wide.tif"), 600, 520)
    test_discarded(Command(lab, "copy", ["copy", wide, "--threads", "1"], "o.tif"))
    test_lost(one)
    test_lost(folder)
    test_lost(Command(lab, "packed", arrays + ["--compress", "lzw"], ""))
    test_lost(Command(lab, "stacks", arrays + ["--format", "imagej"], ""), made=True)
    test_lost(Command(lab, "png", ["copy", image, "--threads", "1"], "o.png"), made=True)
    print("a log and a picture are in nobody's way, and what -y discards begins again")


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
