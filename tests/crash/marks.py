"""Bits flipped in the marks of files that a stopped run left, and values between stages that nobody names any more.

    marks.py TEGULA SOURCE_DIR

A mark that a disk damaged is no stranger's: what needs no journal goes on or begins again by itself, a journal is
refused as damaged (65, with the cure -y), and -y replaces it. What does not begin so stays as it is (73).
Values of a stopped run in --scratch go with the next run of its output, however it is planned and whatever became
of the files that named them; where no run can know them a warning says so."""
import os
import sys

from crashlib import check, main, picture, read, upscaler, write
from stopped_stages import Staged, make


def flipped(data, bits):
    data = bytearray(data)
    for b in bits:
        data[b // 8] ^= 1 << b % 8
    return bytes(data)


def other_scratch(job, folder):
    """The same job; folder None: without --scratch, in one pass."""
    args = list(job.args[:-1])
    at = args.index("--scratch")
    if folder:
        args[at + 1] = folder
    else:
        del args[at:at + 2]
        args[args.index("--ram") + 1] = "2GiB"
    there = Staged(job.lab, job.name, args)
    there.bytes = job.bytes
    return there


# ---- Marks ----------------------------------------------------------------------------------

def refused_until_yes(job, what):
    r = job.run()
    check(r.code == 65 and "damaged; give -y" in r.err, "%s: %s" % (what, r))
    check(not os.path.exists(job.out), "%s: an output" % what)
    r = job.run(more=["-y"])
    check(r.code == 0, "%s: -y: %s" % (what, r))
    job.confirm(what)
    job.clean()


def test_journal(lab, job):
    for bits in ([0], [13], [47], [1, 20, 40]):
        job.killed_in(3)
        write(job.out + ".journal", flipped(read(job.out + ".journal"), bits))
        looked = lab.run(["status", job.out])
        check("damaged" in looked.out + looked.err, "status: %s" % looked)
        refused_until_yes(job, "journal, bits %s" % bits)
    job.killed_in(3)
    data = read(job.out + ".journal")
    write(job.out + ".journal", bytes(4096) + data[4096:])  # a slot tells
    refused_until_yes(job, "journal, a page of zeros")
    job.killed_in(3)
    write(job.out + ".journal", flipped(read(job.out + ".journal"), [48]))  # the number of its format
    check(job.run().code == 65 and job.run(more=["-y"]).code == 0, "journal, its number")
    job.confirm("journal, its number")
    job.clean()


def test_stages(lab, job):
    """No -y is needed: they begin again, and what was on the disk goes."""
    for which in (".stages", ".kept"):
        for bits in ([2], [77], [3, 50, 100]):
            job.killed_in(3)
            path = job.out + which if which == ".stages" else job.kept()[0]
            write(path, flipped(read(path), bits))
            r = job.run()
            check(r.code == 0, "%s, bits %s: %s" % (which, bits, r))
            job.confirm("%s, bits %s" % (which, bits))
            job.clean()


def test_growing(lab, image):
    """An array that grows has no journal: the next run begins again anyway."""
    out = lab.path("x.npy")
    args = ["run", "-m", lab.path("up.onnx"), image, "--threads", "1", "--ram", "64MiB", "-o", out]
    check(lab.run(args).code == 0, "an array")
    want = read(out)
    os.unlink(out)
    for k in range(30, 5, -1):
        r = lab.run(args, {"TEGULA_FAIL_IO": "%d:kill" % k})
        if r.code == -9 and os.path.exists(out + ".partial") and read(out + ".partial").startswith(b"tegula: growing"):
            break
        for path in (out, out + ".partial"):
            if os.path.exists(path):
                os.unlink(path)
    check(os.path.exists(out + ".partial"), "an array: not killed")
    write(out + ".partial", flipped(read(out + ".partial"), [9]))
    r = lab.run(args)
    check(r.code == 0 and read(out) == want and not os.path.exists(out + ".partial"), "an array: %s" % r)


def test_strangers(lab, job):
    """What has no mark that is near, and nothing else of ours, stays as it is, whatever -y says."""
    job.clean()
    for end in (".journal", ".stages", ".partial", ".made"):
        for data in (b"precious notes of somebody\n" * 300, bytes(20000), b"TGJABC06" + b"x" * 9000,
                     b"tegula is a roof tile\n" * 10):
            write(job.out + end, data)
            for more in ([], ["-y"]):
                r = job.run(more=more)
                what = "%s of a stranger (%r) %s" % (end, data[:8], more)
                check(r.code in (65, 73) and not os.path.exists(job.out), "%s: %s" % (what, r))
                check(read(job.out + end) == data, "%s: was written to" % what)
            os.unlink(job.out + end)
    job.clean()


# ---- Values that nobody names ---------------------------------------------------------------

def damage(job, how):
    """Of what names the kept values: OUT.stages, OUT.journal."""
    path = job.out + ".stages"
    data = read(path)
    if how == "mark":
        write(path, flipped(data, [5]))
    elif how == "number":
        write(path, flipped(data, [16 * 8 + 3]))
    elif how == "front":
        write(path, flipped(data, [24 * 8 + 2]))
    elif how == "front and journal":
        write(path, flipped(data, [24 * 8 + 2]))
        write(job.out + ".journal", read(job.out + ".journal")[:9000])
    elif how == "journal":
        journal = read(job.out + ".journal")
        write(job.out + ".journal", journal[:4096] + b"\x55" * 8192 + journal[12288:])
    elif how == "gone":
        os.unlink(path)


def test_orphans(lab, job):
    new = lab.path("scratch2")
    os.makedirs(new, exist_ok=True)
    for how in ("none", "mark", "number", "front", "journal", "front and journal"):
        for name, there in (("another --scratch", other_scratch(job, new)), ("one pass", other_scratch(job, None))):
            for end in (False, True) if how in ("none", "front") else (False,):  # and with a stop before it ends
                job.killed_in(3)
                old = job.kept()
                check(len(old) == 1, "nothing is kept")
                damage(job, how)
                if end:
                    there.run({"TEGULA_FAIL_IO": "25:kill"}, ["-y"])
                r = there.run(more=["-y"])
                what = "%s, %s%s" % (how, name, ", a stop" if end else "")
                check(r.code == 0, "%s: %s" % (what, r))
                there.confirm(what)
                check(not os.path.exists(old[0]), "%s: left %s" % (what, old[0]))
                check(not os.listdir(new), "%s: left %s" % (what, os.listdir(new)))
                job.clean()


def test_same_folder(lab, job):
    """In one pass, with the same --scratch: its name is enough."""
    args = list(job.args[:-1])
    args[args.index("--ram") + 1] = "2GiB"
    there = Staged(lab, job.name, args)
    there.bytes = job.bytes
    for how in ("none", "front", "gone"):
        job.killed_in(3)
        damage(job, how)
        r = there.run(more=["-y"])
        check(r.code == 0, "%s, one pass: %s" % (how, r))
        there.confirm("%s, one pass with --scratch" % how)
        check(not job.kept(), "%s, one pass with --scratch: left %s" % (how, job.kept()))
        job.clean()


def test_unknown(lab, job):
    """The very path is damaged: a warning names what to look for."""
    there = other_scratch(job, None)
    job.killed_in(3)
    kept = job.kept()[0]
    path = job.out + ".stages"
    data = bytearray(read(path))
    at = bytes(data).index(kept.encode())
    data[at + 2] ^= 4
    write(path, bytes(data))
    r = there.run()
    check(r.code == 0, "an unknown path: %s" % r)
    there.confirm("an unknown path")
    check("warning" in r.err and os.path.basename(kept) in r.err, "no warning names %s: %s" % (os.path.basename(kept), r))
    job.clean()


def test_moved(lab, job):
    """The output's files are in another folder now: a warning names the values, which may be those of a copy's original."""
    elsewhere = lab.path("moved")
    os.makedirs(elsewhere, exist_ok=True)
    job.killed_in(3)
    kept = job.kept()[0]
    for end in (".partial", ".journal", ".stages"):
        os.rename(job.out + end, os.path.join(elsewhere, os.path.basename(job.out) + end))
    r = lab.wait(lab.start(job.args + ["-o", os.path.join(elsewhere, os.path.basename(job.out))], job.env))
    check(r.code == 0, "moved: %s" % r)
    check("warning" in r.err and kept in r.err and os.path.exists(kept), "moved: no warning names %s: %s" % (kept, r))
    job.clean()


def test(lab, rest):
    jobs, _ = make(lab)
    disk = jobs["disk"].learn()
    image = picture(lab.path("small.tif"), 400, 300)
    upscaler(lab.path("up.onnx"), 8)
    tests = [test_journal, test_stages, test_strangers, test_orphans, test_same_folder, test_unknown, test_moved]
    for t in tests:
        if not rest or t.__name__ in rest:
            t(lab, disk)
    if not rest or "test_growing" in rest:
        test_growing(lab, image)
    print("marks with flipped bits are known for ours, strangers' files stay, and no values stay behind")


if __name__ == "__main__":
    main(test, sys.argv)
