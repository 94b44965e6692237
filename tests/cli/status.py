"""tegula status: of runs that work, were stopped, are finished, and of what is no run's.

    status.py TEGULA SOURCE_DIR

Two hundred looks during a run change neither its bytes nor that it ends."""
import json
import os
import random
import shutil
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from crashlib import check, main  # noqa: E402
from stopped_stages import make  # noqa: E402


def look(lab, out, code, state=None):
    r = lab.run(["status", out, "--json"])
    check(r.code == code, "status is %s, not %d" % (r, code))
    s = json.loads(r.out.splitlines()[-1])
    if state:
        check(s["event"] == "status" and s["state"] == state, "%s: %s" % (state, s))
        text = lab.run(["status", out])
        check(text.code == code and text.out.startswith("%s: %s" % (out, state)) and not text.err, "as text: %s %s" % (text.out, text))
    return s


def listing(folder):
    return {n: (os.lstat(os.path.join(folder, n)).st_mtime_ns, os.lstat(os.path.join(folder, n)).st_size) for n in sorted(os.listdir(folder))}


def test_stages(lab, job):
    job.killed_in(3)
    before = listing(lab.dir)
    s = look(lab, job.out, 130, "stopped")
    check(listing(lab.dir) == before, "a look changed something")
    check(s["stages"] == 5 and s["stage"] in (3, 4) and s["items"] == 1 and s["tiles"] == 0 and s["tiles_in_all"] > 0, "stopped in stage 3: %s" % s)
    check(s["input"].endswith("image.tif") and s["model"].endswith("normed.onnx"), "names: %s" % s)
    check(0.2 < s["fraction"] < 0.95 and s["seconds"] > 0 and s["seconds_left"] > 0, "times: %s" % s)
    check(s["cell"] <= s["cells"] and s["rows"] <= s["rows_in_all"], "rows: %s" % s)
    r = job.run()
    check(r.code == 0, "does not go on: %s" % r)
    done = r.done()
    check(done["stages"] == 5 and done["stages_resumed"] in (s["stage"] - 1, s["stage"]), "done before: %s" % done)
    job.confirm("after looks")
    check(look(lab, job.out, 73, "finished")["fraction"] == 1, "finished")
    test_not_made(lab, job.out)
    job.clean()


def test_closing_line(lab, job):
    """Of what an earlier run did, and what of it ran again."""
    job.killed_in(3)
    r = lab.run(job.args + ["-o", job.out], job.env)
    stages, _ = job.ran(r.err)
    again = sum(once_more for _, once_more in stages)
    told = ", 2 of 5 stages were done before"
    if again:
        told += " (%d stage%s ran again for values in memory)" % (again, "s" * (again > 1))
    check(r.code == 0 and told + ";" in r.out, "%s: %s: %s" % (job.name, told, r.out))
    job.confirm("closing line")
    job.clean()


def test_between(lab, job):
    """As soon as a stage begins it is the one that is told, not the last rows of the one before."""
    for stage in (2, 3, 4) * 2:
        job.killed_in(stage, 0)
        s = look(lab, job.out, 130, "stopped")
        check(s["stage"] >= stage, "stage %d has begun: %s" % (stage, s))
        check(s["stage"] > stage or s["rows"] < s["rows_in_all"] or s["cell"] > 1, "it is not through: %s" % s)
        job.clean()


def test_not_made(lab, out):
    """A file that no run is known to have made is not "finished", though it is there."""
    text, moved = lab.path("notes.txt"), lab.path("moved.tif")
    with open(text, "w") as f:
        f.write("hello")
    shutil.copy(out, moved)
    shutil.copy(out + ".tegula.json", text + ".tegula.json")
    for name in (text, moved, lab.path("image.tif")):
        s = look(lab, name, 66)
        check(s["event"] == "error" and "no run works on it" in s["detail"], "none made it: %s" % s)
    for receipt in (b"", b"{}", b"[1", b'{"tegula":"1","output_bytes":-1}', b'{"output_bytes":5}', b'{"tegula":1,"output_bytes":5}'):
        with open(text + ".tegula.json", "wb") as f:
            f.write(receipt)
        look(lab, text, 66)
    os.unlink(text + ".tegula.json")
    os.mkfifo(text + ".tegula.json")
    look(lab, text, 66)
    for name in (text, text + ".tegula.json", moved):
        os.unlink(name)


def look_while(lab, job, p):
    """Looks until the run is through; how many saw it work."""
    seen, most = 0, 0.0
    while p.poll() is None:
        r = lab.run(["status", job.out, "--json"])
        s = json.loads(r.out.splitlines()[-1])
        if r.code == 66:
            check(not seen, "no output any more: %s" % s)  # else it has not begun
            continue
        if s.get("state") == "finished":
            break
        check(s.get("state") == "running" and r.code == 0, "during a run: %s" % s)
        check(s["process"] in (None, p.pid), "process: %s" % s)
        if s["fraction"] is not None:
            check(s["fraction"] >= most - 1e-9, "it went back: %s after %g" % (s, most))
            most = s["fraction"]
        seen += 1
    return seen


def test_running(lab, job):
    seen = 0
    for runs in range(1, 100):
        p = job.start()
        seen += look_while(lab, job, p)
        r = lab.wait(p)
        check(r.code == 0, "disturbed by looks: %s" % r)
        job.confirm("after %d looks" % seen)
        job.clean()
        if seen >= 200:
            break
    print("%d looks at %d runs" % (seen, runs))
    check(seen >= 200, "only %d looks saw it run" % seen)


def test_uncut(lab):
    """A network that runs in one: tiles, and their rate."""
    out = lab.path("one.tif")
    args = ["run", "-m", lab.denoiser, lab.path("image.tif"), "-o", out, "--tile", "64x64", "-q"]
    for k in (60, 40, 30, 25):
        r = lab.run(args, {"TEGULA_FAIL_IO": "%d:kill" % k, "TEGULA_SYNC_TILES": 1})
        if r.code == -9 and os.path.exists(out + ".journal"):
            break
    check(r.code == -9, "not stopped: %s" % r)
    s = look(lab, out, 130, "stopped")
    check(s["stages"] == 1 and s["stage"] is None and 0 < s["tiles"] < s["tiles_in_all"] and s["fraction"] > 0, "in one: %s" % s)
    check(lab.run(args).code == 0, "does not go on")


def test_strangers(lab, job):
    out = lab.path("no.tif")
    s = look(lab, out, 66)
    check(s["event"] == "error" and s["status"] == "TG_E_NOT_FOUND", "none: %s" % s)
    journal = out + ".journal"
    rng = random.Random(lab.seed)
    for text in (b"", b"TGJR", b"TGJRNL05", b"TGJRNL01" + bytes(20000), b"hello" * 4000, rng.randbytes(30000), b"TGJRNL05" + rng.randbytes(30000)):
        with open(journal, "wb") as f:
            f.write(text)
        s = look(lab, out, 65, "stale")
        check(s["why"], "does not say why: %s" % s)
    os.unlink(journal)
    for make_it in (os.mkdir, os.mkfifo, lambda p: os.symlink(lab.denoiser, p)):
        make_it(journal)
        look(lab, out, 65, "stale")
        os.rmdir(journal) if stat.S_ISDIR(os.lstat(journal).st_mode) else os.unlink(journal)
    check(lab.run(["status", lab.dir]).code == 66, "a folder")
    job.killed_in(3)
    rng_bytes = open(job.out + ".journal", "rb").read()
    for _ in range(60):  # whatever it holds, a look ends with an answer
        at, n = rng.randrange(len(rng_bytes)), rng.randrange(1, 64)
        with open(job.out + ".journal", "wb") as f:
            f.write(rng_bytes[:at] + rng.randbytes(n) + rng_bytes[at + n:])
        check(lab.run(["status", job.out]).code in (65, 130), "a damaged journal")
    with open(job.out + ".journal", "wb") as f:
        f.write(rng_bytes)
    data = open(job.out + ".stages", "rb").read()
    for _ in range(60):
        at, n = rng.randrange(len(data)), rng.randrange(1, 64)
        with open(job.out + ".stages", "wb") as f:
            f.write(data[:at] + rng.randbytes(n) + data[at + n:])
        check(lab.run(["status", job.out]).code == 130, "a damaged OUT.stages")
    os.chmod(job.out + ".journal", 0)  # another user's
    who = {"user": 65534} if os.geteuid() == 0 else {}
    os.chmod(lab.dir, 0o755)
    try:
        r = lab.wait(lab.start(["status", job.out], **who))
        check(r.code == 66 and "Permission denied" in r.err, "another user's: %s" % r)
    except PermissionError:
        print("another user may not start the command here")
    os.chmod(job.out + ".journal", 0o644)
    job.clean()


def test(lab, rest):
    jobs, _ = make(lab)
    job = jobs["disk"].learn()
    for kind in jobs.values():
        test_closing_line(lab, kind if kind is job else kind.learn())
    test_stages(lab, job)
    test_between(lab, job)
    test_running(lab, job)
    test_uncut(lab)
    test_strangers(lab, job)
    return 0


if __name__ == "__main__":
    main(test, sys.argv)
