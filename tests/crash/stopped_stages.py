"""A network that runs in stages (engine/plan/staged.h), killed at random moments.

    stopped_stages.py TEGULA SOURCE_DIR [KILLS]        default 4 for each job
    stopped_stages.py TEGULA SOURCE_DIR KILLS FOLDER   fns_candy_nc16 of the sample data's models, 16 stages

Each job is killed several times before it may end: the later kills hit a run that goes on. In the end
the bytes are those of an undisturbed run, and nothing is left beside them. What a run says of itself
with -vv ("stage 3 of 5", "goes on with row 96 of cell 1") tells which work was done again."""
import os
import re
import time

from crashlib import Failed, Job, check, looking, main, normed, picture

STAGE = re.compile(r"debug: stage (\d+) of (\d+)(: only its values, once more)?$", re.M)
ROW = re.compile(r"debug: stage (\d+) of \d+: goes on with row (\d+) of cell (\d+)$", re.M)
ENDS = (".stages", ".partial", ".journal")


def plan(lab, args):
    r = lab.run(["plan"] + args[1:] + ["--json"])
    check(r.code == 0, "no plan: %s" % r)
    return r.done()


def stores(p):
    """Bytes that pass between stages, in memory and on the disk; None: the net runs in one."""
    got = {line["kind"]: line["bytes"] for line in p["lines"] if line["name"] == "stores"}
    return (got.get("memory", 0), got.get("disk", 0)) if got else None


class Staged(Job):
    """A job, and what its runs said of stages."""

    def __init__(self, lab, name, args, env=None):
        super().__init__(lab, name, args + ["-vv"], dict({"TEGULA_SYNC_TILES": 1}, **(env or {})), needs_stats=False)
        self.known = {}  # killed_in

    def clean(self):
        super().clean()
        for path in [self.out + ".stages"] + self.kept():
            if os.path.exists(path):
                os.unlink(path)

    def kept(self):
        folder = self.scratch
        return [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".kept")] if folder else []

    def confirm(self, what):
        super().confirm(what)
        check(not os.path.exists(self.out + ".stages"), "%s: %s: left .stages" % (self.name, what))

    def ran(self, err):
        """Which stages a run computed, in order: (stage, only its values); and where it went on."""
        stages = [(int(k), bool(again)) for k, _, again in STAGE.findall(err)]
        return stages, [(int(k), int(row), int(cell)) for k, row, cell in ROW.findall(err)]

    def killed_after(self, seconds):
        """Start, kill after so long. What it said; None: it had ended before."""
        p = self.start()
        time.sleep(seconds)
        p.kill()
        r = self.lab.wait(p)
        check(r.code in (0, -9), "%s: %s" % (self.name, r))
        return r if r.code == -9 else None

    def killed_in(self, stage, part=0.3):
        """Killed in front of a file operation of this stage, from nothing; what the run said. `part`: about how far
        behind the stage's begin, in operations; 0: as it begins. Which those are is searched for, and remembered."""
        wanted = self.operations_of(stage)
        missed, wide = 0, 8
        for _ in range(60):
            low, inside, high = wanted  # the last one known to lie before it, one in it, the first one behind it
            if not inside:
                k = (low + high) // 2 if high else 2 * low
            elif missed:  # half way back to the one in it: with a part near 0 or 1 the edges would come near by ones
                k = (missed + inside + (missed < inside)) // 2
            elif part:
                k = low + 1 + int(part * ((high or 2 * inside) - low - 1))
            else:
                k = (low + inside) // 2 if inside - low > 1 else inside
            self.clean()
            r = self.run({"TEGULA_FAIL_IO": "%d:kill" % k})
            check(r.code in (0, 65, -9), "%s: killed at operation %d: %s" % (self.name, k, r))
            at = ([0] + [n for n, _ in self.ran(r.err)[0]])[-1]
            if r.code == -9 and not os.path.exists(self.out) and at == stage:
                wanted[1] = k
                if part or k == inside:
                    return r.err
                continue
            behind = r.code != -9 or os.path.exists(self.out) or at > stage
            wanted[2 if behind else 0] = k
            missed = k if part else 0
            if k == inside or (k < inside) == behind:  # syncs are due by time, too: nothing is known for sure
                wanted[1] = 0
            if wanted[2] and wanted[0] >= wanted[2] - 1:
                wanted[:] = [max(1, k - wide), 0, k + wide]
                wide *= 2
        raise Failed("%s: no kill hit stage %d: %s, %s" % (self.name, stage, wanted, r))

    def operations_of(self, stage):
        """[low, inside, high] of killed_in, from what is known of other stages."""
        if stage not in self.known:
            before = [k for n, of in self.known.items() if n < stage for k in of[:2]]
            behind = [k for n, of in self.known.items() if n > stage for k in of[1:] if k]
            self.known[stage] = [max(before + [8]), 0, min(behind, default=0)]
        return self.known[stage]

    def phase_file(self):
        return os.path.exists(self.out + ".stages")


def sizes(lab, args):
    """Budgets in which the network runs in stages: what is kept in memory, and much less."""
    whole = plan(lab, args + ["--ram", "2GiB"])
    check(stores(whole) is None, "it runs in stages in 2 GiB")
    return whole["peak_bytes"]


def make(lab, width=320, height=384):
    """The network over an image, with what is kept in memory, on the disk, and in both."""
    net = normed(lab.path("normed.onnx"))
    image = picture(lab.path("image.tif"), width, height)
    scratch = lab.path("scratch")
    os.makedirs(scratch, exist_ok=True)
    args = ["run", "-m", net, image, "--threads", "2", "--exact", "--tile", "%dx%d" % (height // 3, width)]
    whole = sizes(lab, args[:-2])
    job = {}
    for name, part, disk in (("memory", 0.95, False), ("disk", 0.3, True), ("both", 0.5, True)):
        for near in (1, 0.98, 0.96, 1.02):  # what the program itself holds is not the same at each start
            more = ["--ram", "%dKiB" % (near * part * whole / 1024)] + (["--scratch", scratch] if disk else [])
            kept = stores(plan(lab, args + more))
            good = kept and (kept[1] > 0) == disk and (kept[0] > 4096) == (name != "disk")
            if good:
                break
        check(good,
              "%s: %s is kept, of %s at most %d bytes" % (name, kept, name, whole))
        job[name] = Staged(lab, name, args + more)
    return job, whole


def make_looking(lab):
    """Attention over pixels: two stages, the second of which streams queries and looks at keys and values, which lie in
    memory or are read in pieces from the disk."""
    net, image, scratch = looking(lab.path("looking.onnx")), picture(lab.path("look.tif"), 480, 384), lab.path("scratch")
    args = ["run", "-m", net, image, "--threads", "2", "--exact", "--tile", "64x480"]
    whole = sizes(lab, args[:-2])
    job = []
    for name, in_pieces, parts in (("look-memory", 0, [0.85]), ("look-both", 1, [p / 100 for p in range(50, 30, -1)]),
                                   ("look-disk", 2, [0.3])):
        found = []  # the middle of them: at the ends what the program itself holds at a start decides
        for part in parts:
            more = ["--ram", "%dKiB" % (part * whole / 1024)] + (["--scratch", scratch] if in_pieces else [])
            last = plan(lab, args + more)["staged"]["stages"][1]
            if len(last["reads_in_pieces"]) == in_pieces and sorted(last["reads_in_pieces"] + last["reads_at_once"]) == ["k", "v"]:
                found.append(more)
        check(found, "%s: no budget of %s, last %s" % (name, parts, last))
        more = found[len(found) // 2]
        job.append(Staged(lab, name, args + more))
    return job


def kill_at_random(lab, job, kills):
    """One to three kills, each after a random part of the time; then it ends."""
    begun = resumed = midst = 0
    while begun < kills:
        for _ in range(lab.rng.choice((1, 2, 3))):
            begun += 1
            r = job.killed_after(lab.rng.random() * job.seconds)
            if not r or os.path.exists(job.out):
                break
        before = job.phase_file()
        if os.path.exists(job.out):
            job.finish("kill %d" % begun)
        else:
            r = job.run()
            check(r.code == 0, "%s: kill %d: does not go on: %s" % (job.name, begun, r))
            check("damaged" not in r.err, "%s: kill %d: %s" % (job.name, begun, r.err))
            job.confirm("kill %d" % begun)
            stages, rows = job.ran(r.err)
            midst += bool(rows)
            if rows:
                check("continuing: in stage %d\n" % rows[0][0] in r.err, "%s: kill %d: it does not say that it goes on: %s"
                      % (job.name, begun, r.err))
            resumed += before and stages[:1] != [(1, False)]
        job.clean()
    return begun, resumed, midst


def test_random(lab, jobs, kills):
    for job in jobs:
        begun = time.monotonic()
        job.learn()
        print("%s: undisturbed in %.2f s" % (job.name, job.seconds), flush=True)
        n, resumed, midst = kill_at_random(lab, job, kills)
        print("%s: %d kills, %d runs went on behind stage 1, %d in the midst of a stage; %.0f s"
              % (job.name, n, resumed, midst, time.monotonic() - begun), flush=True)


def test_parts(job):
    """A kill is found in any part of a stage, be it the first operation or the last."""
    for stage in (4, 2, 3):
        for part in (0.9999, 0.0001, 0):
            job.killed_in(stage, part)
    job.clean()


def test_goes_on(lab, jobs):
    """What is on the disk is not computed again: neither stages nor rows."""
    job = jobs["disk"]
    midst = []
    for stage, part in ((2, 0.5), (3, 0.6), (5, 0.4), (2, 0.8), (3, 0.3), (4, 0.5), (4, 0.7), (3, 0.9)):
        said = job.killed_in(stage, part)
        last = int(STAGE.findall(said)[-1][1])
        r = job.run()
        check(r.code == 0, "%s: does not go on: %s" % (job.name, r))
        job.confirm("killed in stage %d" % stage)
        stages, rows = job.ran(r.err)
        if stage == last and not stages:  # all of it was written, but for the name
            continue
        midst += [row for k, row, _ in rows if k == stage and row > 0]
        check(stages and stages[0][0] in (stage, stage + 1) and not any(again for _, again in stages),
              "killed in stage %d, it went on with %s" % (stage, stages))
        check([k for k, _ in stages] == list(range(stages[0][0], 6)), "stages twice: %s" % stages)
        job.clean()
        if midst and stage > 3:
            break
    check(midst, "no run went on in the midst of a stage")
    job = jobs["memory"]  # values are gone, what was gathered of them is not
    job.killed_in(4)
    r = job.run()
    check(r.code == 0, "%s: does not go on: %s" % (job.name, r))
    job.confirm("killed in stage 4")
    stages, _ = job.ran(r.err)
    check(stages[-2:] == [(4, False), (5, False)] and all(again == (k < 4) for k, again in stages), "%s: %s: %s" % (job.name, stages, r.err))
    job.clean()


def test_looks_go_on(lab, job):
    """Keys and values are loaded anew, rows that were written are not computed again."""
    midst = 0
    for part in (0.3, 0.5, 0.2, 0.4, 0.1, 0.6, 0.7, 0.8):
        job.killed_in(2, part)
        r = job.run()
        check(r.code == 0, "%s: does not go on: %s" % (job.name, r))
        job.confirm("killed in stage 2")
        stages, _ = job.ran(r.err)
        check(all(again == (k < 2) for k, again in stages), "%s: %s" % (job.name, stages))
        midst += bool(re.search(r"continuing: [1-9]\d* of \d+ tiles done", r.err))
        job.clean()
        if midst > 1:
            return
    check(midst, "%s: no run went on in the midst of stage 2" % job.name)


def test_far_goes_on(lab):
    """Two values that a stage streams, one read farther ahead: a run goes on at any row of a cell."""
    net, image, scratch = normed(lab.path("far.onnx"), far=15), picture(lab.path("far.tif"), 320, 384), lab.path("scratch")
    args = ["run", "-m", net, image, "--threads", "2", "--exact"]
    whole = sizes(lab, args)
    job = Staged(lab, "far", args + ["--ram", "%dKiB" % (0.3 * whole / 1024), "--scratch", scratch])
    job.learn()
    midst = 0
    for part in (0.3, 0.5, 0.2, 0.4, 0.1, 0.6, 0.7, 0.8):
        job.killed_in(5, part)
        r = job.run()
        check(r.code == 0, "%s: does not go on: %s" % (job.name, r))
        job.confirm("killed in stage 5")
        midst += bool(re.search(r"continuing: [1-9]\d* of \d+ tiles done", r.err))
        job.clean()
        if midst > 3:
            return
    check(midst, "%s: no run went on in the midst of stage 5" % job.name)


def left_of(job):
    """What a stopped run left, as (path, bytes)."""
    paths = [job.out + end for end in ENDS] + job.kept()
    return [(p, open(p, "rb").read()) for p in paths if os.path.exists(p)]


def put_back(files):
    for path, data in files:
        with open(path, "wb") as f:
            f.write(data)


def job_text(job):
    with open(job.out + ".journal", "rb") as f:
        f.seek(12288)  # engine/out/journal_file.h
        return f.read(2000)


def other_image(lab, job, name):
    """The same command over another image, into the same output."""
    image = picture(lab.path(name + "-image.tif"), 320, 384, seed=77)
    other = Staged(lab, job.name, [image if a == lab.path("image.tif") else a for a in job.args[:-1]])
    check(other.out == job.out and other.args != job.args, "not two jobs of one output")
    return other.learn()


def test_another_job(lab, job):
    """-y over a stopped run in stages, killed while it begins: the next run goes on with nothing of the other
    job's. Neither does one beside whose journal the other's files lie."""
    other = other_image(lab, job, "another")
    job.killed_in(4)
    left = left_of(job)
    check([p for p, _ in left if p.endswith(".stages")], "no .stages")
    theirs = job_text(job)
    begun = 0
    for k in range(1, 80):
        other.clean()
        put_back(left)
        r = other.run({"TEGULA_FAIL_IO": "%d:kill" % k}, more=["-y"])
        check(r.code == -9, "it ended before operation %d: %s" % (k, r))
        if not other.slot() or job_text(other) == theirs:
            continue
        other.finish("-y killed at operation %d" % k)
        begun += 1
        if begun == 3:
            break
    check(begun == 3, "only %d kills behind the new journal" % begun)
    other.killed_in(4)
    put_back([(p, data) for p, data in left if p.endswith((".stages", ".kept"))])
    other.finish("the other's .stages beside its journal")
    job.killed_in(4)
    for end in (".journal", ".partial"):
        os.unlink(job.out + end)
    other.finish("a journal that was removed by hand")
    other.clean()


def test_discarded(lab, job):
    """Who begins the output anew removes what the run in stages left, wherever it lies."""
    image = lab.path("image.tif")
    for verb in (["copy", image], ["run", "-m", lab.denoiser, image]):
        job.killed_in(3)
        check(job.kept() and job.phase_file(), "nothing is left")
        r = lab.run(verb + ["-o", job.out, "-y"])
        check(r.code == 0, "%s -y: %s" % (verb[0], r))
        check(not job.kept() and not job.phase_file(), "%s -y: left %s" % (verb[0], [p for p, _ in left_of(job)]))
        job.clean()


def test_more_memory(lab, job, whole):
    """With tiles there, and now memory for the image in one pass: that is one pass, not one for each missing tile."""
    at = job.args.index("--ram")
    more = Staged(lab, job.name, job.args[:at] + ["--ram", "%dKiB" % (2 * whole // 1024)] + job.args[at + 2:-1])
    check(more.out == job.out, "not one output")
    begun = 0
    for part in (0.3, 0.5, 0.2, 0.4, 0.1, 0.6, 0.7, 0.8):
        job.killed_in(5, part)
        slot = job.slot()
        if not slot or not slot["tiles"]:
            continue
        r = more.run()
        check(r.code == 0, "%d tiles, then more memory: %s" % (slot["tiles"], r))
        check(r.done()["bands"] <= 1, "%d tiles were there: %s bands" % (slot["tiles"], r.done()["bands"]))
        begun += 1
        if begun == 2:
            break
    check(begun, "no kill left a tile")
    job.clean()


def make_candy(lab, models):
    """A real network, over colours; part of its values in memory, all of them there. None: it is not here."""
    net = os.path.join(models, "fns_candy_nc16", "model.onnx")
    if not os.path.exists(net):
        return None
    image, scratch = picture(lab.path("image.tif"), 640, 512, 3), lab.path("scratch")
    os.makedirs(scratch)
    args = ["run", "-m", net, image, "--axes", "CYX", "--exact"]
    whole = sizes(lab, args)
    job = {}
    for name, part in (("memory", 0.45), ("both", 0.25)):
        more = ["--ram", "%dKiB" % (part * whole / 1024), "--scratch", scratch]
        kept = stores(plan(lab, args + more))
        check(kept and (kept[1] > 0) == (name == "both"), "%s: kept is %s of %d bytes" % (name, kept, whole))
        job[name] = Staged(lab, name, args + more)
    return job


def test(lab, rest):
    if len(rest) > 1:
        jobs = make_candy(lab, rest[1])
        if not jobs:
            print("no sample data in %s" % rest[1])
            return 77
        test_random(lab, list(jobs.values()), int(rest[0]))
        return 0
    jobs, whole = make(lab)
    kills = int(rest[0]) if rest else 4
    looks = make_looking(lab)
    test_random(lab, list(jobs.values()) + looks, kills)
    test_looks_go_on(lab, looks[1])
    test_far_goes_on(lab)
    test_parts(jobs["disk"])
    test_goes_on(lab, jobs)
    test_another_job(lab, jobs["disk"])
    test_discarded(lab, jobs["disk"])
    test_more_memory(lab, jobs["memory"], whole)
    return 0


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
