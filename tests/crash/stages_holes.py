"""A run in stages stops while it writes tiles, and one of them is damaged: the next run fills the hole.

    stages_holes.py TEGULA SOURCE_DIR [TRIALS]   at least so many for each network, default 6

Rows before and behind the hole hold, so a part of a cell is computed, whose inputs reach unequally far."""
import os
import time

from crashlib import check, main, normed, picture, two_outputs
from stopped_stages import Staged, plan

WIDTH, HEIGHT, WIDE = 512, 1536, 64


def make(lab, name, net, ram):
    image, scratch = picture(lab.path("image.tif"), WIDTH, HEIGHT), lab.path("scratch")
    os.makedirs(scratch, exist_ok=True)
    args = ["run", "-m", net, image, "--threads", "2", "--exact", "--dtype", "float32", "--compress", "none",
            "--tile", "%dx%d" % (HEIGHT, WIDE)]
    job = Staged(lab, name, args + ["--ram", ram, "--scratch", scratch])
    check(plan(lab, job.args[:-1]).get("staged"), "%s: it runs in one stage in %s" % (name, ram))
    return job.learn()


def stop(job, tiles):
    """Kill it when so many tiles are on the disk. 0: it had ended."""
    p = job.start()
    while p.poll() is None:
        s = job.slot()
        if s and s["tiles"] >= tiles:
            break
        time.sleep(0.002)
    p.kill()
    job.lab.wait(p)
    return not os.path.exists(job.out)


def damage(job, rng):
    """One bit of one tile that is on the disk; which one, counted from the first."""
    at, tile = job.slot(), 4 * WIDTH * HEIGHT // job.tiles  # not compressed
    k = rng.randrange(at["tiles"])
    with open(job.out + ".partial", "r+b") as f:
        where = at["bytes"] - (at["tiles"] - k) * tile + rng.randrange(tile)
        f.seek(where)
        byte = f.read(1)[0]
        f.seek(where)
        f.write(bytes([byte ^ 1]))
    return k


def test(lab, rest):
    trials = int(rest[0]) if rest else 6
    nets = {"far": (normed(lab.path("far.onnx"), far=31), "7MiB"), "two": (two_outputs(lab.path("two.onnx")), "9MiB")}
    for name, (net, ram) in nets.items():
        job, filled = make(lab, name, net, ram), 0
        done = 0
        while done < trials or (not filled and done < 6 * trials):  # half of the stops leave a hole
            done += 1
            if not stop(job, lab.rng.randrange(2, job.tiles - 2)):
                job.clean()
                continue
            k = damage(job, lab.rng) if lab.rng.random() < 0.7 else None
            r = job.run()
            check(r.code == 0, "%s: tile %s damaged: does not go on: %s" % (name, k, r))
            job.confirm("tile %s damaged" % k)
            filled += "damaged" in r.err
            job.clean()
        print("%s: %d of %d runs filled a hole" % (name, filled, done), flush=True)
        check(filled, "%s: no run had a hole to fill" % name)
    return 0


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
