"""kill -9 at random moments: the same command then ends with the same bytes and has lost little.

    kill.py TEGULA SOURCE_DIR [MOMENTS]

Moments come in five phases: the pass for statistics, the bands, the final check (all tiles are
there, the file is being closed), the rename, and while going on after an earlier kill. The first
two are hit by the clock, the last ones, which take microseconds, in front of or in the midst of a
random file operation (TEGULA_FAIL_IO=K:kill or K:torn, io/file_ops.h; writes to --scratch are such operations too);
where a kill really was
is read from the journal it left. How much was lost: what the journal counted as safe is not
computed again, what it did not count is less than the sync interval (TEGULA_SYNC_TILES), and the
tiles begun in all attempts exceed the output's by no more, for each kill, than that interval and
the tiles in flight that the plan names."""
import os
import signal
import time

from crashlib import Job, check, main, picture, upscaler, uses_scratch

PHASES = ("statistics", "bands", "finish", "rename", "resume")


def jobs(lab):
    image = picture(lab.path("noisy.tif"), 640, 512)
    stack = picture(lab.path("stack.tif"), 320, 256, 3, "float32", 3)
    packed = picture(lab.path("packed.tif"), 640, 512, packed=True)  # one strip, too large to hold
    os.mkdir(lab.path("scratch"))
    net = upscaler(lab.path("up.onnx"))
    denoise = ["run", "-m", lab.denoiser, image, "--ram", "64MiB"]
    up = ["run", "-m", net, stack, "--ram", "64MiB", "--threads", "2"]
    return [
        Job(lab, "plain", denoise + ["--tile", "64x64"]),
        Job(lab, "zstd", denoise + ["--tile", "64x64", "--compress", "zstd"]),
        Job(lab, "stack", up + ["--normalize", "percentile:1,99", "--tile", "64x64",
                                "--compress", "zstd"]),
        Job(lab, "scratch", uses_scratch(lab, ["run", "-m", lab.denoiser, packed, "--ram", "64MiB",
                                               "--tile", "64x64", "--scratch",
                                               lab.path("scratch")])),
        Job(lab, "stack8", up + ["--normalize", "zscore", "--tile", "256x64", "--dtype", "uint8"]),
    ]


def kill_by_clock(job, wait_for_journal, longest):
    """Start, wait, kill -9. 1 when it was killed and not done already."""
    p = job.start()
    if wait_for_journal:
        until = time.monotonic() + 30
        while p.poll() is None and job.slot() is None and time.monotonic() < until:
            time.sleep(0.0002)
    time.sleep(job.lab.rng.uniform(0, longest))
    p.send_signal(signal.SIGKILL)
    return job.lab.wait(p).code == -9


def kill_at_operation(job, low, high):
    k = job.lab.rng.randint(max(1, low), max(1, high))
    how = job.lab.rng.choice(("kill", "kill", "torn"))
    return job.run({"TEGULA_FAIL_IO": "%d:%s" % (k, how)}).code == -9


def strike(job, phase):
    """One attempt at a kill in this phase, from nothing."""
    job.clean()
    n = job.n_operations
    if phase == "statistics":
        if job.lab.rng.random() < 0.2:
            return kill_at_operation(job, job.n_begin, job.n_begin + 2)
        return kill_by_clock(job, True, 0.01)
    if phase in ("bands", "resume"):
        if job.lab.rng.random() < 0.5:
            return kill_by_clock(job, True, job.seconds)
        return kill_at_operation(job, job.n_begin, n - 12)
    # The end: sync and slot, receipt (5), offsets, sync, slot, sync | rename, sync, unlink.
    return kill_at_operation(job, n - 14 if phase == "finish" else n - 5, n)


def first_kill(job, phase):
    """Strike until the phase is met; bounded, for a machine may be slow in its own way."""
    wanted = ("bands",) if phase == "resume" else (phase,)
    for _ in range(40):
        found = job.phase() if strike(job, phase) else "done"
        if found in wanted:
            return
        if phase in ("finish", "rename"):  # syncs are due by time, too: the learned run had fewer or more of them
            job.n_operations += -1 if found == "done" or (phase, found) == ("finish", "rename") else 1
    check(False, "%s: no kill landed in phase %s" % (job.name, phase))


def tiles_behind_sync(job, slot):
    """Tiles in OUT.partial that no sync counted; None where their sizes are not known."""
    partial = job.out + ".partial"
    if "--compress" in job.args or not os.path.exists(partial) or slot["final"]:
        return None
    tile = (len(job.bytes) - job.front) // job.tiles
    return (os.path.getsize(partial) - slot["bytes"]) // tile


def check_begun(job, what, begun, needed, kills):
    """Tiles begun in all attempts so far, against those that were needed. Returns the excess."""
    lost = begun - needed
    most = kills * (job.env["TEGULA_SYNC_TILES"] + job.in_flight)
    check(0 <= lost <= most, "%s: %s: %d tiles were begun for %d after %d kills; the plan and the sync "
          "interval allow %d more" % (job.name, what, begun, needed, kills, most))
    return lost


def go_on(job, phase, moment):
    """After the kill: kill again while going on (resume), then finish; what was lost is counted."""
    what = "moment %d, %s" % (moment, phase)
    again = 0
    if phase == "resume":
        for _ in range(job.lab.rng.randint(1, 3)):
            again += kill_at_operation(job, 1, job.n_operations // 2)
    slot = job.slot()
    found = job.phase()
    check(not (os.path.exists(job.out) and os.path.exists(job.out + ".partial")),
          "%s: %s: two results" % (job.name, what))
    if slot:
        check_begun(job, what, slot["begun"], slot["tiles"], 1 + again)
    behind = tiles_behind_sync(job, slot) if slot else None
    check(behind is None or behind <= job.env["TEGULA_SYNC_TILES"],
          "%s: %s: %s tiles were written without a sync" % (job.name, what, behind))
    done = job.finish(what)
    if done and slot and found in ("bands", "finish"):
        check(done["tiles_resumed"] == slot["tiles"],
              "%s: %s: %d tiles were safe, %d were used" % (job.name, what, slot["tiles"],
                                                            done["tiles_resumed"]))
        check(done["tiles"] + done["tiles_resumed"] == job.tiles,
              "%s: %s: %d + %d tiles of %d" % (job.name, what, done["tiles"],
                                               done["tiles_resumed"], job.tiles))
    lost = 0
    if done and found != "rename":  # there nothing is begun, and the journal may be gone
        lost = check_begun(job, what, done["tiles_begun"], job.tiles, 1 + again)
    return again, behind or 0, lost


def prepare(job):
    """Learn the bytes, the number of file operations, and where the beginning ends."""
    job.learn()
    job.n_operations = job.operations()
    for k in range(1, 40):
        job.clean()
        job.run({"TEGULA_FAIL_IO": "%d:kill" % k})
        s = job.slot()
        if s:
            job.n_begin, job.front = k, s["bytes"]
            break
    check(s, "%s: no journal after 40 operations" % job.name)


def test(lab, rest):
    moments = int(rest[0]) if rest else 20
    begun = time.monotonic()
    work = jobs(lab)
    if moments < 40:  # the short run: one job of each kind
        work = [work[0], work[2], work[3]]
    for job in work:
        prepare(job)
    count = dict.fromkeys(PHASES, 0)
    again = most = lost = 0
    for m in range(moments):
        phase = PHASES[m % len(PHASES)]
        job = work[m // len(PHASES) % len(work)]
        first_kill(job, phase)
        more, behind, twice = go_on(job, phase, m)
        count[phase] += 1
        again += more
        most = max(most, behind)
        lost = max(lost, twice)
    print("%d moments: %s; killed again while going on: %d times; at most %d tiles written and "
          "not yet safe, %d computed twice; %.0f s"
          % (moments, count, again, most, lost, time.monotonic() - begun))


if __name__ == "__main__":
    import sys
    main(test, sys.argv, in_memory=int((sys.argv + ["20"])[3]) < 40)
