"""A run in stages whose disk fails under it: values that cannot be read, a file cut short, no room, damaged input.

    stages_disk.py TEGULA SOURCE_DIR FAULTS     FAULTS: the library of disk_faults.c

What is kept between stages is of use or made again; it is never taken for a damaged input."""
import os

from crashlib import check, main, picture
from stopped_stages import Staged, make


class Faulty:
    def __init__(self, lab, library):
        self.lab, self.library, self.told = lab, os.path.abspath(library), lab.path("told")

    def run(self, job, fault, ending, at=0, more=()):
        """The job's result, and the two numbers of disk_faults.c."""
        if os.path.exists(self.told):
            os.unlink(self.told)
        r = job.run({"LD_PRELOAD": self.library, "TG_FAULT": fault, "TG_FAULT_IN": ending, "TG_FAULT_AT": at, "TG_FAULT_TOLD": self.told}, more)
        told = open(self.told).read().split() if os.path.exists(self.told) else (0, 0)
        return r, int(told[0]), int(told[1])


def goes_on(job, what, stage):
    """The next run ends well, and begins no earlier than there."""
    check(job.phase_file() and job.slot(), "%s: nothing to go on with" % what)
    r = job.run()
    check(r.code == 0, "%s: does not go on: %s" % (what, r))
    check(job.ran(r.err)[0][0][0] >= stage, "%s: began anew: %s" % (what, r.err))
    job.confirm(what)
    job.clean()


def test_held(faults, job):
    """Blocks of the disk are free before the output is finished."""
    r, reads, held = faults.run(job, "none", ".kept")
    check(r.code == 0 and reads > 100, "undisturbed: %s; %d reads" % (r, reads))
    check(held == 0, "the kept file was removed and held open while the output was finished")
    job.confirm("undisturbed")
    job.clean()


def test_stays(faults, job):
    """A kept file that cannot be removed is told of: behind the run nothing else names it."""
    r, _, _ = faults.run(job, "stay", ".kept")
    kept = job.kept()
    check(r.code == 0 and len(kept) == 1, "cannot be removed: %s" % r)
    check("warning: %s" % kept[0] in r.err, "does not say what it leaves: %s" % r)
    os.unlink(kept[0])
    job.confirm("it was removed by hand")
    job.clean()


def test_unreadable(faults, job):
    """What cannot be read back is made anew."""
    for fault in ("eio", "short"):
        job.killed_in(4)
        r, reads, _ = faults.run(job, fault, ".kept", 40)
        check(r.code == 0 and reads > 40 and "damaged" in r.err, "%s while values are read back: %s" % (fault, r))
        job.confirm(fault)
        job.clean()


def test_stop(faults, job):
    """Ctrl-C is heard while values are read back."""
    job.killed_in(4)
    r, reads, _ = faults.run(job, "stop", ".kept", 5)
    check(r.code == 130, "stopped: %s" % r)
    check(5 <= reads < 50, "%d reads behind the signal" % (reads - 5))
    goes_on(job, "stopped while values are read back", 4)


def test_cut(faults, job):
    """A kept file that is too short in the midst of a run is no damaged input."""
    r, reads, _ = faults.run(job, "short", ".kept", 400)
    check(reads >= 400 and r.code == 74, "cut short: %s" % r)
    goes_on(job, "cut short", 2)


def test_input(lab, faults, job):
    """An input that reads otherwise in a later stage, until it cannot be decoded: nobody knows which rows before that
    were wrong already, so no value between stages stays. Tiles do: of planes that were through."""
    args = list(job.args[:-1])
    at = args.index("--scratch")
    del args[at:at + 2]  # little memory and no disk: later stages read it again
    args[args.index(lab.path("image.tif"))] = picture(lab.path("packed.tif"), 320, 256, planes=2, packed=True)
    packed = Staged(lab, "packed", args).learn()
    _, reads, _ = faults.run(packed, "none", "packed.tif")
    packed.clean()
    r, _, _ = faults.run(packed, "zeros", "packed.tif", reads * 8 // 10)
    check(r.code == 65, "damaged later: %s" % r)
    check(len(packed.ran(r.err)[0]) > 6, "damaged in a first stage: %s" % r.err)
    check(packed.slot()["tiles"] > 0, "no tile of the first plane is safe")
    r = packed.run()
    check(r.code == 0, "does not go on: %s" % r)
    packed.confirm("damaged later")
    check(packed.ran(r.err)[0][0] == (1, False) and len(packed.ran(r.err)[0]) < 7, "went on with %s" % packed.ran(r.err)[0])
    packed.clean()


def test_no_room(faults, job):
    """All tiles are there: what is left takes no room for values."""
    r, _, _ = faults.run(job, "rename", ".tif.partial", more=["-y"])
    check(r.code == -9 and job.slot()["tiles"] == job.tiles, "killed at the end: %s" % r)
    r, _, _ = faults.run(job, "full", ".kept")
    check(r.code == 0, "all is there, and no room: %s" % r)
    job.confirm("no room")
    job.clean()
    faults.run(job, "rename", ".tif.partial", more=["-y"])
    with open(job.out + ".partial", "r+b") as f:  # a tile that was safe is damaged: it takes all stages
        f.seek(-100, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-100, os.SEEK_END)
        f.write(bytes([byte ^ 1]))
    r = job.run()
    check(r.code == 0 and "damaged" in r.err, "a damaged tile: %s" % r)
    check([k for k, _ in job.ran(r.err)[0]] == [1, 2, 3, 4, 5], "a damaged tile, made of stages %s" % job.ran(r.err)[0])
    job.confirm("a damaged tile")
    job.clean()
    r, _, _ = faults.run(job, "full", ".kept")
    check(r.code == 73, "no room at the begin: %s" % r)
    job.clean()


def test(lab, rest):
    faults = Faulty(lab, rest[0])
    job = make(lab)[0]["disk"].learn()
    test_held(faults, job)
    test_stays(faults, job)
    test_unreadable(faults, job)
    test_stop(faults, job)
    test_cut(faults, job)
    test_input(lab, faults, job)
    test_no_room(faults, job)
    return 0


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
