"""tegula run of many images into a folder: each output is what a run of that image alone writes, a broken image costs the
others nothing, and the same command does only what is missing.

    each_peers.py TEGULA MODEL
"""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiff_peers import drawn, expect, tifffile  # noqa: E402

SIZES = {"a.tif": (40, 56), "b.ome.tif": (64, 33), "c.tif": (70, 90), "d.tif": (40, 56)}


def ask(words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def data(path):
    with open(path, "rb") as f:
        return f.read()


def rows(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def made(folder):
    os.mkdir(folder)
    for i, (name, size) in enumerate(SIZES.items()):
        tifffile.imwrite(os.path.join(folder, name), drawn(size, "uint16", i), ome=".ome." in name, metadata={"axes": "YX"} if ".ome." in name else None)
    with open(os.path.join(folder, "broken.tif"), "wb") as f:
        f.write(data(os.path.join(folder, "c.tif"))[:300])


def all_but_the_broken(tegula, model, files, out):
    r = ask([tegula, "run", "-m", model, files, "--each", "-o", out + "/", "-q"])
    expect(r.returncode == 65, "exit %d: %s" % (r.returncode, r.stderr))
    expect("broken.tif" in r.stderr and r.stderr.count("(exit code 65)") == 1, "told: " + r.stderr)
    log = rows(os.path.join(out, "batch.log.csv"))
    expect([k["state"] for k in log] == ["done", "done", "failed", "done", "done"], "log: %s" % log)
    for name in SIZES:
        alone = os.path.join(out, "alone.ome.tif" if ".ome." in name else "alone.tif")
        a = ask([tegula, "run", "-m", model, os.path.join(files, name), "-o", alone, "-q", "-y"])
        expect(a.returncode == 0, a.stderr)
        expect(data(alone) == data(os.path.join(out, name)), name + ": other bytes than alone")


def planned_before(tegula, model, files, out):
    """Each as alone, the largest peak and the sum of outputs; nothing is made."""
    def events(*words):
        r = ask([tegula, "plan", "-m", model, *words, "--json"])
        return r, [json.loads(line) for line in r.stdout.splitlines()]
    r, said = events(files, "--each", "-o", out + "/")
    plans, whole = [e for e in said if e["event"] == "plan"], said[-1]
    expect(r.returncode == 65 and whole["event"] == "batch" and whole["refused"] == 1 and whole["jobs"] == len(plans) == len(SIZES) + 1, f"exit {r.returncode}: {said}")
    expect([os.path.basename(e["file"]) for e in plans if "detail" in e] == ["broken.tif"], f"the broken one: {plans}")
    expect(not os.path.exists(out), "a plan makes no folder")
    names = [os.path.join(files, n) for n in SIZES]
    r, said = events(names[0], "-o", out + "/")
    expect(r.returncode == 0 and not os.path.exists(out), f"nor of one image: {r.returncode}: {r.stderr}")
    r, said = events(*names)
    peaks = [e["peak_bytes"] for e in said[:-1]]
    alone = [events(n)[1][0] for n in names]

    def of_job(e):
        """Without what the program itself holds, which is more where it has planned others, in steps."""
        return {line["name"]: line["bytes"] for line in e["lines"] if line["kind"] == "memory" and line["name"] not in ("process", "page tables")}
    disk = sum(line["bytes"] for e in alone for line in e["lines"] if line["name"] == "output")
    expect(r.returncode == 0 and [of_job(e) for e in said[:-1]] == [of_job(e) for e in alone], f"lines: {r.returncode}: {[of_job(e) for e in said[:-1]]} {[of_job(e) for e in alone]} {r.stderr}")
    expect(said[-1]["peak_bytes"] == max(peaks) and said[-1]["output_bytes"] == disk > 0, f"the sum: {said[-1]}, {disk}")
    r = ask([tegula, "plan", "-m", model, *names])
    expect(r.returncode == 0 and all(n in r.stdout for n in names) and "1 at once" in r.stdout, f"as text: {r.stdout} {r.stderr}")
    r = ask([tegula, "plan", "-m", model, *names, "--save", os.path.join(files, "x.json")])
    expect(r.returncode == 64 and "--save names one file" in r.stderr, f"--save: {r.returncode}: {r.stderr}")
    r = ask([tegula, "plan", "-m", model, *names, "--why"])
    expect(r.returncode == 64 and "--why is of one plan" in r.stderr, f"--why: {r.returncode}: {r.stderr}")
    r, said = events(*names, "--why")
    expect(r.returncode == 0 and all("rejected" in e for e in said[:-1]), f"--why as JSON: {r.returncode}: {said}")
    broken = os.path.join(files, "broken.tif")
    r = ask([tegula, "plan", "-m", model, broken, broken])
    expect(r.returncode == 65 and "none of them can run" in r.stdout and "0 B" not in r.stdout, f"none can run: {r.returncode}: {r.stdout}")
    job = os.path.join(os.path.dirname(files), "job.json")
    with open(job, "w", encoding="ascii") as f:
        json.dump({"output": "one.tif"}, f)
    r = ask([tegula, "plan", "-m", model, *names, "--config", job])
    expect(r.returncode == 64 and "takes one file" in r.stderr, f"one output of a job file: {r.returncode}: {r.stdout} {r.stderr}")


def only_what_is_missing(tegula, model, files, out):
    was = {n: os.stat(os.path.join(out, n)).st_mtime_ns for n in SIZES}
    os.remove(os.path.join(out, "b.ome.tif"))
    os.remove(os.path.join(out, "b.ome.tif.tegula.json"))
    tifffile.imwrite(os.path.join(files, "broken.tif"), drawn((30, 31), "uint16", 9), metadata=None)
    paths = [os.path.join(files, n) for n in (*SIZES, "broken.tif")]
    r = ask([tegula, "run", "-m", model, *paths, "-o", out + "/"])
    expect(r.returncode == 0 and "2 done, 3 were complete" in r.stdout, "again: %d: %s%s" % (r.returncode, r.stdout, r.stderr))
    for n in SIZES:
        same = os.stat(os.path.join(out, n)).st_mtime_ns == was[n]
        expect(same == (n != "b.ome.tif"), "again: " + n)


def objects_of_each(tegula, model, files, out):
    """Objects and a table of each; and again nothing. Memory that is freed is overwritten at once, so that nobody reads it."""
    words = [tegula, "run", "-m", model, *(os.path.join(files, n) for n in SIZES), "-o", out + "/", "--post", "otsu,label", "--objects", out + "/tables/"]
    env = dict(os.environ, MALLOC_PERTURB_="85", GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
    for told in ("4 done", "0 done, 4 were complete"):
        r = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
        expect(r.returncode == 0 and told in r.stdout, "objects: %d: %s%s" % (r.returncode, r.stdout, r.stderr))
    for n in SIZES:
        labels = tifffile.imread(os.path.join(out, n))
        table = rows(os.path.join(out, "tables", n.split(".")[0] + ".csv"))
        expect(len(table) == int(labels.max()) and sum(int(k["area"]) for k in table) == int((labels > 0).sum()), "objects: the table of " + n)
    r = ask([*words[:-1], os.path.join(out, "one.csv")])
    expect(r.returncode == 64 and "--objects DIR/" in r.stderr, "objects: one table: %d: %s" % (r.returncode, r.stderr))
    one = os.path.join(files, "a.tif")
    r = ask([tegula, "run", "-m", model, one, "-o", os.path.join(out, "a.tif"), "--post", "otsu,min-size:3,label", "--skip-done", "-q"])
    expect(r.returncode == 73, "objects: another list: exit %d" % r.returncode)


def stopped(tegula, model, files, out):
    """A signal in the middle: what is done stays, the same command does the rest, with the same bytes."""
    large = os.path.join(files, "large.tif")
    tifffile.imwrite(large, drawn((900, 1300), "uint16", 3), metadata=None)
    paths = [os.path.join(files, "a.tif"), large, os.path.join(files, "d.tif")]
    words = [tegula, "run", "-m", model, *paths, "-o", out + "/", "-q", "--threads", "1"]
    p = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    for _ in range(2000):
        if os.path.exists(os.path.join(out, "large.tif.partial")) or p.poll() is not None:
            break
        time.sleep(0.005)
    p.send_signal(signal.SIGTERM)
    p.communicate()
    expect(p.returncode in (0, 143), "stopped: exit %d" % p.returncode)
    if p.returncode == 143:
        expect(not os.path.exists(os.path.join(out, "d.tif")), "stopped: the next was begun")
    r = ask(words)
    expect(r.returncode == 0, "goes on: " + r.stderr)
    for path in paths:
        name = os.path.basename(path)
        alone = os.path.join(out, "alone.tif")
        ask([tegula, "run", "-m", model, path, "-o", alone, "-q", "-y"])
        expect(data(alone) == data(os.path.join(out, name)), "goes on: %s has other bytes" % name)


def refused(tegula, model, files, out):
    other = os.path.join(files, "other")
    os.mkdir(other)
    tifffile.imwrite(os.path.join(other, "a.tif"), drawn((20, 20), "uint16", 3), metadata=None)
    tifffile.imwrite(os.path.join(other, "a.ome.tif"), drawn((20, 20), "uint16", 4), metadata=None)
    for words, says in ((["-o", out + "/", os.path.join(files, "a.tif"), os.path.join(other, "a.tif")], "both be written"),
                        (["-o", out + "/", "--each", other, "--post", "threshold:9,label", "--objects", out + "/"], "a.csv: give them other"),
                        (["-o", os.path.join(files, "a.tif"), files, "--each"], "names a folder"),
                        (["-o", os.path.join(out, "x.tif"), os.path.join(files, "a.tif"), os.path.join(files, "d.tif")], "-o DIR/"),
                        (["-o", out + "/", "--each", files, "--log", os.path.join(out, "l.csv")], "one file")):
        r = ask([tegula, "run", "-m", model, *words])
        expect(r.returncode == 64 and says in r.stderr, "%s: exit %d: %s" % (words, r.returncode, r.stderr))
    r = ask([tegula, "run", "-m", model, os.path.join(files, "a.tif"), os.path.join(files, "none.tif"), "-o", files + "/", "-q"])
    expect(r.returncode == 65, "an output over its input: exit %d" % r.returncode)
    expect(tifffile.imread(os.path.join(files, "a.tif")).shape == SIZES["a.tif"], "the input is there still")
    r = ask([tegula, "run", "-m", model, os.path.join(files, "a.tif"), os.path.join(files, "d.tif"), "-o", out + "-small/", "--ram", "1MiB"])
    expect(r.returncode != 0 and r.stderr.count("failed: the smallest plan") == 2 and "each job had" not in r.stderr, "too little for each: %s" % r.stderr)


def main():
    tegula, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        files, out = os.path.join(folder, "in"), os.path.join(folder, "out")
        made(files)
        planned_before(tegula, model, files, out)
        all_but_the_broken(tegula, model, files, out)
        only_what_is_missing(tegula, model, files, out)
        objects_of_each(tegula, model, files, os.path.join(folder, "objects"))
        stopped(tegula, model, files, os.path.join(folder, "stopped"))
        refused(tegula, model, files, out)
    print("many images: each as alone, and again only what is missing")


if __name__ == "__main__":
    main()
