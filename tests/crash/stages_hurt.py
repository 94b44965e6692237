"""What a stopped run in stages left is damaged, replaced, or has no room; others work beside it.

    stages_hurt.py TEGULA SOURCE_DIR [TRIALS]   trials of damage for each of two jobs, default 4

After damage of OUT.stages or of the file of kept values a run ends with the right bytes or refuses; it
never ends in 0 with others. A stranger's file in their places stays as it is."""
import os
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "attack"))
from crashlib import check, crc32c, main, read, write  # noqa: E402
from stopped_run import damaged_tiles  # noqa: E402
from stopped_stages import Staged, make, plan, stores  # noqa: E402


MARK = {"stages": b"tegula: stages\n", "kept": b"tegula: kept\n\n\n"}  # what does not begin so is a stranger's

# ---- Damage ---------------------------------------------------------------------------------

def flip(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def flip_front(rng, data):
    return flip(rng, data[:64]) + data[64:]


def zero_page(rng, data):
    at = rng.randrange((len(data) + 4095) // 4096) * 4096
    return data[:at] + bytes(len(data[at:at + 4096])) + data[at + 4096:]


def truncate(rng, data):
    return data[:rng.randrange(len(data))]


def grow(rng, data):
    return data + bytes(rng.randrange(1, 9000))


def other(rng, data):
    return bytes(rng.randrange(256) for _ in range(300))


def gone(rng, data):
    return None


DAMAGE = (flip, flip_front, zero_page, truncate, grow, other, gone)


def damage_once(lab, job, how, which):
    """0: went on with the same bytes; else the exit code of the refusal, and -y then ends it."""
    stage = lab.rng.choice((2, 3, 4))
    job.killed_in(stage, lab.rng.random())
    path = job.out + ".stages" if which == "stages" else job.kept()[0]
    old = read(path)
    new = how(lab.rng, old)
    if new is None:
        os.unlink(path)
    else:
        write(path, new)
    what = "%s of .%s in stage %d" % (how.__name__, which, stage)
    r = job.run()
    if r.code:
        check(r.code in (65, 73, 74), "%s: %s" % (what, r))
        check(not os.path.exists(job.out), "%s: refused, and there is an output" % what)
        if new is not None and not new.startswith(MARK[which]):
            check(read(path) == new, "%s: a stranger's file was written" % what)
            os.unlink(path)
        check(job.run(more=["-y"]).code == 0, "%s: -y does not help" % what)
        for left in job.kept():  # its record was lost with OUT.stages: nobody knows whose it is
            check(which == "stages", "%s: left %s" % (what, left))
            os.unlink(left)
    job.confirm(what)
    job.clean()
    return r.code


def test_damage(lab, jobs, trials):
    for name in ("disk", "both"):
        job = jobs[name].learn()
        codes = []
        for i in range(trials):
            how = DAMAGE[(i + lab.rng.randrange(2)) % len(DAMAGE)] if trials < 20 else lab.rng.choice(DAMAGE)
            codes.append(damage_once(lab, job, how, "stages" if i % 2 else "kept"))
        print("%s: %d damaged, %d went on, others %s" % (name, trials, codes.count(0), sorted(set(codes) - {0})))


def test_strangers(lab, job):
    """A link or a folder in their places: 73, and what it leads to is as it was."""
    precious = lab.path("precious")
    for which in ("stages", "kept"):
        for kind in ("symlink", "folder", "hard link"):
            write(precious, b"precious")
            job.killed_in(3)
            path = job.out + ".stages" if which == "stages" else job.kept()[0]
            os.rename(path, lab.path("aside"))
            if kind == "folder":
                os.mkdir(path)
            else:
                (os.symlink if kind == "symlink" else os.link)(precious, path)
            for more in ([], ["-y"]):
                r = job.run(more=more)
                what = "%s in place of .%s %s" % (kind, which, more)
                check(r.code == 73, "%s: %s" % (what, r))
                check(read(precious) == b"precious", what + ": written through")
                check(os.path.lexists(path), what + ": removed")
            os.rmdir(path) if kind == "folder" else os.unlink(path)
            os.rename(lab.path("aside"), path)
            check(job.run().code == 0, "does not go on afterwards")
            job.confirm("after a %s" % kind)
            job.clean()


def test_other_folder(lab, job):
    """Another --scratch: it goes on in the old one; where what was kept is gone, from the first stage in the new one."""
    new = lab.path("scratch2")
    os.makedirs(new, exist_ok=True)
    args = list(job.args)
    args[args.index("--scratch") + 1] = new
    there = Staged(lab, job.name, args[:-1])
    there.bytes = job.bytes
    for gone in (False, True):
        job.killed_in(3)
        old = job.kept()[0]
        if gone:
            os.unlink(old)
        r = there.run()
        check(r.code == 0, "another --scratch: %s" % r)
        said = "it goes on there, not in %s" % new
        check((said in r.err) == (not gone), "another --scratch does not say where it goes on: %s" % r.err)
        check(("so the stages begin with the first again" in r.err) == gone, "another --scratch: %s" % r.err)
        check((there.ran(r.err)[0][0][0] >= 3) == (not gone), "another --scratch: began at %s" % (there.ran(r.err)[0][0],))
        there.confirm("another --scratch")
        check(not os.path.exists(old) and not os.listdir(new), "another --scratch: left %s" % old)
        job.clean()


def test_discarded(lab, job):
    """-y over what another job left: in the folder that is given, and nothing stays in the other one."""
    new = lab.path("scratch3")
    os.makedirs(new, exist_ok=True)
    job.killed_in(3)
    old = job.kept()[0]
    args = list(job.args)
    args[args.index("--scratch") + 1] = new
    other = Staged(lab, job.name, args[:-1] + ["--normalize", "scale:1/255"])
    for k in range(60, 400, 20):
        if other.run({"TEGULA_FAIL_IO": "%d:kill" % k}, more=["-y"]).code == -9 and os.listdir(new):
            break
    check(os.listdir(new), "-y: works in another folder than the one that is given")
    check(not os.path.exists(old), "-y: left %s" % old)
    r = other.run()
    check(r.code == 0 and not os.listdir(new), "-y: %s, left %s" % (r, os.listdir(new)))
    job.clean()


def test_no_folder(lab, jobs):
    """Gone on with without --scratch: it goes on with what lies there, which goes at the end."""
    for name in ("disk", "both"):
        job = jobs[name]
        args = list(job.args[:-1])
        at = args.index("--scratch")
        del args[at:at + 2]
        without = Staged(lab, job.name, args)
        job.killed_in(3)
        check(job.kept(), "nothing is kept on disk")
        r = without.run()
        check(r.code == 0, "without --scratch: %s" % r)
        check("it goes on there, and removes" in r.err and job.ran(r.err)[0][0][0] >= 3, "without --scratch: began anew: %s" % r.err)
        check(read(job.out) == job.bytes, "without --scratch: other bytes")
        check(not job.kept(), "without --scratch: left %s" % job.kept())
        job.clean()


def test_spelled(lab, job):
    """Another spelling of the output and of --scratch, from another folder: the same values."""
    os.symlink(lab.dir, lab.path("link"))
    name, at = os.path.basename(job.out), job.args.index("--scratch") + 1
    folder = os.path.basename(job.args[at])
    for where, out, scratch in ((lab.dir, name, "./" + folder), ("/", lab.path("link/" + name), lab.path("link/" + folder)),
                                (job.args[at], "../" + name, ".")):
        job.killed_in(3)
        kept = job.kept()
        args = list(job.args)
        args[at] = scratch
        p = lab.start(args + ["-o", out], job.env, cwd=where)
        r = lab.wait(p)
        what = "-o %s --scratch %s" % (out, scratch)
        check(r.code == 0, "%s: %s" % (what, r))
        check(job.ran(r.err)[0][0][0] >= 3, "%s: began anew: %s" % (what, r.err))
        job.confirm(what)
        check(len(kept) == 1, "%s kept %s" % (what, kept))
        job.clean()
    os.unlink(lab.path("link"))


def test_copied(lab, job):
    """Files of a stopped run, copied elsewhere: a run that goes on there leaves the values of the first one alone."""
    other = lab.path("elsewhere")
    os.mkdir(other)
    job.killed_in(3)
    kept = job.kept()
    for end in (".partial", ".journal", ".stages"):
        shutil.copy(job.out + end, other)
    r = lab.wait(lab.start(job.args + ["-o", os.path.join(other, os.path.basename(job.out))], job.env))
    check(r.code == 0, "the copy: %s" % r)
    check(kept and job.kept() == kept, "values of another output: %s, then %s" % (kept, job.kept()))
    r = job.run()
    check(r.code == 0 and job.ran(r.err)[0][0][0] >= 3, "the first one goes on: %s" % r)
    job.confirm("copied")
    job.clean()
    shutil.rmtree(other)


# ---- Input that cannot be decoded -----------------------------------------------------------

class Filled(Staged):
    """With --on-bad-tile fill: it ends in 65, with a list of what was filled."""
    lists = (".errors.json", ".errors.partial")

    def clean(self):
        super().clean()
        for end in self.lists:
            if os.path.exists(self.out + end):
                os.unlink(self.out + end)

    def undisturbed(self):
        check(self.run().code == 65, "undisturbed")
        self.bytes, self.list = read(self.out), read(self.out + ".errors.json")
        self.clean()
        return self

    def ends(self, what, more=()):
        r = self.run(more=more)
        check(r.code == 65 and os.path.exists(self.out), "%s: ends in 65, with an output: %s" % (what, r))
        self.confirm(what)
        check(read(self.out + ".errors.json") == self.list, "%s: another list" % what)
        check(not os.path.exists(self.out + ".errors.partial"), "%s: left .errors.partial" % what)
        self.clean()


def test_filled(lab, job):
    """What the first stage could not decode is told by the run that goes on with a later one."""
    args = list(job.args[:-1])
    args[args.index(lab.path("image.tif"))] = damaged_tiles(lab.path("bad.tif"), 320, 64)
    filled = Filled(lab, "filled", args + ["--on-bad-tile", "fill"]).undisturbed()
    for stage in (2, 3, 5):
        filled.killed_in(stage)
        filled.ends("killed in stage %d" % stage)
    filled.killed_in(4)
    os.unlink(filled.out + ".errors.partial")
    r = filled.run()
    check(r.code == 65 and "-y" in r.err and not os.path.exists(filled.out), "its list is gone: %s" % r)
    filled.ends("its list is gone, -y", ["-y"])


# ---- Forged ---------------------------------------------------------------------------------

FRONT, PLACE = 4096, 64  # engine/out/stage_log.c; numbers of a record: job/stage_state.h
NUMBER = {"item": (16, "<q"), "stage": (32, "<i"), "cell": (40, "<q"), "band": (80, "<q")}


def forge(data, name, value):
    """The file with that number in each of its records, and checksums that fit."""
    data = bytearray(data)
    size, = struct.unpack_from("<Q", data, 24)
    at, form = NUMBER[name]
    for k in range(2):
        place = FRONT + k * ((PLACE + size + 4095) // 4096 * 4096)
        record = place + PLACE
        struct.pack_into(form, data, record + at, value)
        struct.pack_into("<I", data, place + 16, crc32c(data[record:record + size]))
        struct.pack_into("<I", data, place + 20, crc32c(data[place:place + 20]))
    return bytes(data)


def test_forged(lab, job):
    """A record that no run wrote down, though its checksums fit: another begin, or none; no crash, no other bytes."""
    tried = 0
    for name, values in (("stage", (-1000000, -1, 77, 2147483647)), ("cell", (-5, 1 << 40, -(1 << 62))),
                         ("item", (-1, 9, 1 << 62)), ("band", (-3, 1 << 60))):
        for value in values:
            job.killed_in(3)
            path = job.out + ".stages"
            write(path, forge(read(path), name, value))
            looked = lab.run(["status", job.out])
            check(looked.code >= 0, "%s %d: status: %s" % (name, value, looked))
            r = job.run()
            check(r.code == 0, "%s %d: %s" % (name, value, r))
            job.confirm("%s %d" % (name, value))
            job.clean()
            tried += 1
    print("%d forged records" % tried)


def test_empty(lab, job):
    """Killed before the mark is in them: the run that does not use the files removes them, too."""
    seen = 0
    for k in range(8, 32):
        if job.run({"TEGULA_FAIL_IO": "%d:kill" % k}).code != -9:
            continue
        seen += sum(os.path.getsize(p) == 0 for p in [job.out + ".stages"] + job.kept() if os.path.exists(p))
        args = list(job.args[:-1])
        at = args.index("--scratch")
        del args[at:at + 2]
        args[args.index("--ram") + 1] = "2GiB"
        r = lab.run(args + ["-o", job.out], job.env)
        check(r.code == 0, "operation %d: in one pass: %s" % (k, r))
        check(not job.kept() and not os.path.exists(job.out + ".stages"), "operation %d: left %s, .stages" % (k, job.kept()))
        job.clean()
    check(seen, "no file was empty")


# ---- Room -----------------------------------------------------------------------------------

def test_full(lab, job):
    """The scratch disk fills up: said before anything is computed, or 73 in the midst; then it goes on."""
    for k in range(40, 400, 90):
        r = job.run({"TEGULA_FAIL_IO": "%d:full" % k})
        check(r.code in (0, 73, 74), "operation %d finds no room: %s" % (k, r))
        if r.code:
            check("room" in r.err or "space" in r.err, "does not say what is wrong: %s" % r)
            check(not os.path.exists(job.out), "a file that is not whole got the name")
            r = job.run()
            check(r.code == 0, "after space was made: %s" % r)
        job.confirm("after space was made")
        job.clean()


def small_disk(lab, kib):
    """A folder on a disk (memory is none, for --scratch) of that size that is mounted; None: not here."""
    image, folder = lab.path("disk.img"), lab.path("disk")
    os.makedirs(folder)
    with open(image, "wb") as f:
        f.truncate(kib << 10)
    try:
        for command in (["mkfs.ext2", "-q", "-m", "0", image], ["mount", "-o", "loop", image, folder]):
            if subprocess.run(command, capture_output=True).returncode:
                return None
    except FileNotFoundError:
        return None
    os.rmdir(os.path.join(folder, "lost+found"))
    return folder


def fill(folder):
    """Take what is free there; the file's path."""
    path = os.path.join(folder, "filler")
    with open(path, "wb", 0) as f:
        try:
            while True:
                f.write(bytes(4096))
        except OSError:
            pass
    return path


def test_full_disk(lab, job):
    """A small disk holds the values once; what a stopped run has there counts as free for the next."""
    kept = stores(plan(lab, job.args[:-1]))[1]
    folder = small_disk(lab, kept // 1024 * 14 // 10)
    if not folder:
        print("no small disk can be mounted here")
        return
    args = list(job.args)
    args[args.index("--scratch") + 1] = folder
    there = Staged(lab, job.name, args[:-1])
    there.bytes, there.seconds = job.bytes, job.seconds
    try:
        there.killed_in(3)
        r = there.run()
        check(r.code == 0, "its own file is in its way: %s" % r)
        check(there.ran(r.err)[0][0][0] >= 3, "began anew: %s" % r.err)
        there.confirm("on a small disk")
        there.clean()
        p = there.start()
        for line in p.stderr:
            if "stage 2 of" in line:
                break
        filler = fill(folder)
        said = line + p.stderr.read()
        p.communicate()
        check(p.returncode == 73 and "room" in said, "the disk is full: exit %d: %s" % (p.returncode, said))
        os.unlink(filler)
        r = there.run()
        check(r.code == 0, "after space was made: %s" % r)
        there.confirm("after space was made")
    finally:
        subprocess.run(["umount", folder], capture_output=True)


# ---- Two runs -------------------------------------------------------------------------------

def test_two(lab, job):
    """The same base name in two folders, one folder of scratch: they know nothing of each other."""
    two = []
    for name in ("a", "b"):
        os.makedirs(lab.path(name), exist_ok=True)
        one = Staged(lab, "two", job.args[:-1])
        one.out, one.bytes, one.seconds = os.path.join(lab.path(name), "same.tif"), job.bytes, job.seconds
        two.append(one)
    a, b = two
    a.killed_in(3)
    running = b.start()
    r = a.run()
    check(r.code == 0, "beside another: %s" % r)
    other_one = lab.wait(running)
    check(other_one.code == 0, "beside one that goes on: %s" % other_one)
    for one in two:
        one.confirm("beside another")
        one.clean()


def test_budgets(lab, jobs):
    """Stopped in stages, it goes on in one in more memory; and the reverse. Pixels stay (--exact), and
    the bytes where tiles are computed in the same order."""
    staged = jobs["disk"]
    args = list(staged.args)
    args[args.index("--ram") + 1] = "256MiB"
    whole = Staged(lab, staged.name, args[:-1])
    whole.bytes = staged.bytes
    check(whole.out == staged.out, "two outputs")
    staged.killed_in(4)
    r = whole.run()
    check(r.code == 0 and not whole.ran(r.err)[0], "in more memory: %s" % r)
    whole.confirm("in more memory")
    staged.clean()
    for k in (90, 60, 40, 30, 20):
        r = whole.run({"TEGULA_FAIL_IO": "%d:kill" % k})
        if r.code == -9 and whole.slot():
            break
    check(r.code == -9 and whole.slot(), "not stopped: %s" % r)
    r = staged.run()
    check(r.code == 0, "in less memory: %s" % r)
    staged.confirm("in less memory")
    staged.clean()


def test(lab, rest):
    trials = int(rest[0]) if rest else 4
    jobs, _ = make(lab)
    test_damage(lab, jobs, trials)
    disk = jobs["disk"]
    test_strangers(lab, disk)
    test_other_folder(lab, disk)
    test_discarded(lab, disk)
    test_no_folder(lab, jobs)
    test_spelled(lab, disk)
    test_copied(lab, disk)
    test_filled(lab, disk)
    test_forged(lab, disk)
    test_empty(lab, disk)
    test_full(lab, disk)
    test_full_disk(lab, disk)
    test_two(lab, disk)
    test_budgets(lab, jobs)
    return 0


if __name__ == "__main__":
    main(test, sys.argv)
