"""What a run that goes on says: where it continues, and how long its own tiles will take.

    resumed.py TEGULA SOURCE_DIR

The time left is told by tiles of this run alone: an estimate that counted those that were found would
promise the end within moments. Each `progress` event must agree with itself: seconds for the tiles made
so far, times those that are missing."""
import json
import re

from crashlib import Job, check, main, normed, picture


def events(result):
    for line in result.out.splitlines():
        e = json.loads(line)
        if e["event"] == "progress" and e["phase"] == "run":
            yield e


def check_time_left(e):
    made, left = e["tiles_done"] - e["tiles_resumed"], e["tiles_total"] - e["tiles_done"]
    if e["eta_seconds"] is None or made <= 0:
        return 0
    want = e["seconds"] / made * left
    check(abs(e["eta_seconds"] - want) <= 1e-9 * max(1, want),
          "%d tiles made in %g s, %d left: %g s are said, not %g" % (made, e["seconds"], left, e["eta_seconds"], want))
    return 1


def test_less_memory(lab):
    """The file's tiles stay what they were, so it takes more to go on than to begin. Where that is too much the input is
    opened once more, to hold less, or the run is refused, with a figure and a cure that hold for the output that is there."""
    image = picture(lab.path("packed.tif"), 1536, 1024, packed=True)
    job = Job(lab, "less", ["run", "-m", lab.denoiser, image, "--threads", "1"], needs_stats=False)
    check(job.run({"TEGULA_FAIL_IO": "60:kill"}, ["--ram", "256MiB"]).code == -9, "a first run is killed")
    ends, refused = [], None
    for kib in range(12288, 2048, -256):
        r = job.run({"TEGULA_FAIL_IO": "12:kill"}, ["--ram", "%dKiB" % kib])
        check(r.code in (-9, 71), "%d KiB: %s" % (kib, r))
        ends.append(r.code)
        stays = r.code == 71 and re.search("the interrupted output goes on in its tiles of", r.err)
        refused = refused or (r if stays else None)
        if stays:
            break
    check(-9 in ends and refused, "goes on down to a budget that is refused: %s" % ends)
    told = re.search(r"give --ram (\d+MiB)", refused.err)
    check(told and "peak" in refused.err and "loses all but" not in refused.err, "a cure: %s" % refused)
    r = job.run(None, ["--ram", told.group(1)])
    check(r.code == 0, "with what was told: %s" % r)
    print("goes on with %d budgets, refused with the next: told %s" % (len(ends) - 1, told.group(1)))


def least_kib(lab, args):
    r = lab.run(["plan"] + args + ["--ram", "1MiB", "--json"])
    told = next(json.loads(x) for x in r.out.splitlines() if "tried_bytes" in x)
    return -(-told["tried_bytes"] // 1024)


def test_the_smallest_budget(lab):
    """A plan that fills its budget is the plan of the run that goes on, too: the same command gives the same bytes."""
    image = picture(lab.path("small.tif"), 256, 192)
    for name, net in (("whole", lab.denoiser), ("staged", normed(lab.path("normed.onnx"), width=8))):
        args = ["-m", net, image, "--threads", "2"]
        least, late = least_kib(lab, args), 0
        for more in (0, 3, 40, 500):
            job = Job(lab, name, ["run"] + args + ["--ram", "%dKiB" % (least + more)], needs_stats=False).learn()
            if not late or job.run({"TEGULA_FAIL_IO": "%d:kill" % late}).code == 0:  # of larger tiles there are fewer
                late = job.operations() * 4 // 5
                check(job.run({"TEGULA_FAIL_IO": "%d:kill" % late}).code == -9, "%s: killed at operation %d" % (name, late))
            job.finish("%s, %d KiB more than the least" % (name, more))
            job.clean()


def test(lab, rest):
    test_less_memory(lab)
    test_the_smallest_budget(lab)
    image = picture(lab.path("noisy.tif"), 1024, 768)
    job = Job(lab, "slow", ["run", "-m", lab.denoiser, image, "--ram", "64MiB", "--tile", "64x64", "--threads", "1",
                            "--isa", "portable"], needs_stats=False)
    r = job.run({"TEGULA_FAIL_IO": "120:kill"})
    check(r.code == -9 and "continuing" not in r.err, "a first run: %s" % r)
    found = job.slot()["tiles"]
    r = job.run()
    check(r.code == 0 and found > 0, "goes on from %d tiles: %s" % (found, r))
    said = re.findall(r"^continuing: .*$", r.err, re.M)
    check(said == ["continuing: %d of 192 tiles done" % found], "it says %s" % said)
    timed = 0
    for e in events(r):
        check(e["tiles_resumed"] == found and e["tiles_done"] >= found, "%s" % e)
        timed += check_time_left(e)
    check(timed > 0, "no event with a time left")
    print("%d of 192 tiles found; %d events with a time left" % (found, timed))


if __name__ == "__main__":
    import sys
    main(test, sys.argv, in_memory=True)
