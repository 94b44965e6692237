#!/usr/bin/env python3
"""Many films by one command: tables, folders, what fails, what is killed, what a rerun does, one budget for all.

    film_batch.py TEGULA SOURCE VIDEOS [more]

`more`: kills of the batch and of its jobs, signals, and tables of random bytes. The films are drawn here, so no samples and no plugin are
needed."""
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from film_help import SANITIZED, TEGULA, bytes_of, expect, in_folder, png, run

WORDS = ("--method", "smooth", "-q")
HEAD = "input,mask,output\n"


def film(name, frames=4, w=48, h=32, seed=0):
    """A YUV4MPEG2 film: stripes that move."""
    with open(name, "wb") as f:
        f.write(b"YUV4MPEG2 W%d H%d F25:1 C420\n" % (w, h))
        for k in range(frames):
            f.write(b"FRAME\n" + bytes((7 * x + 13 * y + 5 * k + seed) % 200 + 20 for y in range(h) for x in range(w)) + bytes([128]) * (w * h // 2))


def mask(name, w=48, h=32):
    png(name, w, h, [[255 * (10 <= x < 20 and 8 <= y < 18) for x in range(w)] for y in range(h)])


def write(name, text):
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def batch(*words, code, **more):
    got, out, err = run("inpaint", *words, **more)
    expect(got == code, f"inpaint {' '.join(words)}: {got}, not {code}: {err}")
    return out, err


def log_of(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def states(path, last):
    return [(r["input"], r["state"], int(r["exit"])) for r in log_of(path)[-last:]]


def events(text, kind):
    return [e for e in map(json.loads, text.splitlines()) if e["event"] == kind]


# ---- A table -------------------------------------------------------------------------------------------------------------


def one_that_fails_costs_the_others_nothing():
    for k, name in enumerate(("a.y4m", "b.y4m", "c.y4m")):
        film(name, seed=k)
    mask("m.png")
    write("b.y4m", bytes_of("b.y4m")[:3000])
    write("jobs.csv", b"\xef\xbb\xbfinput,mask,output,mask_dilation\r\na.y4m,m.png,a_out.y4m,\r\n\"b.y4m\", m.png ,b_out.y4m,3\r\n\r\nc.y4m,m.png,c_out.y4m,6\r\n,,,\r\n")
    out, err = batch("--batch", "jobs.csv", *WORDS[:2], code=65)
    expect("3 of 3: c.y4m: done in" in err and "2 of 3: b.y4m: failed: " in err, err)
    expect(out.startswith("3 jobs: 2 done, 1 failed, in ") and out.endswith("; jobs.log.csv\n"), out)
    expect("  b.y4m: " in err.split("3 of 3: c.y4m: done")[1] and "(exit code 65)" in err.splitlines()[-1], f"the failure is not listed at the end: {err}")
    expect(states("jobs.log.csv", 3) == [("a.y4m", "done", 0), ("b.y4m", "failed", 65), ("c.y4m", "done", 0)], states("jobs.log.csv", 3))
    rows = log_of("jobs.log.csv")
    expect(int(rows[0]["peak_bytes"]) > 100000 and float(rows[0]["seconds"]) >= 0 and not rows[0]["message"] and "b.y4m" in rows[1]["message"], rows)
    batch("c.y4m", "--mask", "m.png", "-o", "alone.y4m", "--mask-dilation", "6", *WORDS, code=0)
    expect(bytes_of("alone.y4m") == bytes_of("c_out.y4m"), "a cell does not do what the option does")
    batch("a.y4m", "--mask", "m.png", "-o", "alone_a.y4m", *WORDS, code=0)
    expect(bytes_of("alone_a.y4m") == bytes_of("a_out.y4m") and bytes_of("a_out.y4m") != bytes_of("a.y4m"), "an empty cell is not the default")


def a_rerun_does_what_is_missing():
    at = {n: os.stat(n).st_mtime_ns for n in ("a_out.y4m", "c_out.y4m")}
    batch("--batch", "jobs.csv", *WORDS, code=65)
    expect(states("jobs.log.csv", 3) == [("a.y4m", "was complete", 0), ("b.y4m", "failed", 65), ("c.y4m", "was complete", 0)], states("jobs.log.csv", 3))
    film("b.y4m", seed=1)
    out, _ = batch("--batch", "jobs.csv", *WORDS, "--json", code=0)
    jobs, end = events(out, "job"), events(out, "batch")[0]
    expect([j["state"] for j in jobs] == ["was complete", "done", "was complete"] and len(out.splitlines()) == 4, out)
    expect((end["jobs"], end["done"], end["complete"], end["failed"], end["exit"]) == (3, 1, 2, 0, 0), end)
    expect(all(os.stat(n).st_mtime_ns == t for n, t in at.items()), "a complete output was written again")
    expect(len(log_of("jobs.log.csv")) == 9 and bytes_of("jobs.log.csv").count(b"time,input") == 1, "the log was not appended to")


def what_is_complete_is_of_the_same_settings_and_input():
    _, err = batch("--batch", "jobs.csv", *WORDS, "--mask-dilation", "5", code=65)
    expect("a_out.y4m: exists already, and was made with another mask-dilation (4, now 5); -y replaces it (exit code 73)" in err, err)
    expect([s[1] for s in states("jobs.log.csv", 3)] == ["failed", "was complete", "was complete"], states("jobs.log.csv", 3))
    batch("--batch", "jobs.csv", *WORDS, "--mask-dilation", "5", "-y", code=0)
    expect([s[1] for s in states("jobs.log.csv", 3)] == ["done", "was complete", "was complete"], states("jobs.log.csv", 3))
    film("a.y4m", seed=9)
    _, err = batch("--batch", "jobs.csv", *WORDS, "--mask-dilation", "5", code=65)
    expect("was made with another input" in err, err)
    write("a_out.y4m", "somebody's")
    _, err = batch("--batch", "jobs.csv", *WORDS, "--mask-dilation", "5", code=65)
    expect("a_out.y4m: exists already; -y replaces it" in err and bytes_of("a_out.y4m") == b"somebody's", err)


def frames_beside_films_and_larger_frames():
    """--save-frames is rerun as the film is; --mode outpainting takes no mask, from a table and from a folder. What has no end is no table."""
    film("beside.y4m", w=64, h=64)
    write("beside.csv", "input,output,mask-box\nbeside.y4m,beside_out.y4m,\"4,4,9,9\"\n")
    for state in ("done", "was complete"):
        batch("--batch", "beside.csv", "--save-frames", *WORDS, code=0)
        expect(states("beside.log.csv", 1) == [("beside.y4m", state, 0)] and len(os.listdir("beside_out_frames")) == 4, states("beside.log.csv", 1))
    batch("--batch", "beside.csv", *WORDS, code=65)  # other settings
    write("larger.csv", "input,output,mode\nbeside.y4m,larger.y4m,outpainting\n")
    batch("--batch", "larger.csv", "--method", "smooth", *WORDS[2:], code=0)
    os.makedirs("films", exist_ok=True)
    film("films/one.y4m", w=64, h=64)
    batch("--video-dir", "films", "--mode", "outpainting", "--method", "smooth", "-o", "films_out/", code=0)
    os.mkfifo("endless")
    _, err = batch("--batch", "endless", *WORDS, code=65)
    expect("is no file" in err, err)


def skip_done_is_for_one_film_too():
    film("one.y4m")
    words = ("one.y4m", "--mask-box", "4,4,9,9", "-o", "one_out.y4m", "--skip-done", *WORDS[:2])
    batch(*words, code=0)
    out, _ = batch(*words, code=0)
    expect("one_out.y4m: was complete already" in out, out)
    batch(*words, "--isa", "portable", "--threads", "1", code=0)  # no setting of the result
    for other in (("--compose", "official"), ("--mask-box", "1,1,3,3"), ("--frames", "0:2")):
        batch(*words, *other, code=73)
    batch(*(w for w in words if w != "--skip-done"), code=73)
    pictures = ("one.y4m", "--mask-box", "4,4,9,9", "-o", "p%d.png", "--skip-done", *WORDS)
    batch(*pictures, code=0)
    batch(*pictures, code=0)
    os.unlink("p2.png")
    _, err = batch(*pictures, code=73)
    expect("pictures that it lists are gone" in err, err)


def what_a_table_may_not_say():
    film("x.y4m")
    mask("y.png")
    shutil.copy("x.y4m", "z.y4m")
    os.link("z.y4m", "hard.y4m")
    os.makedirs("frames", exist_ok=True)
    mask("frames/1.png")
    good = "x.y4m,y.png,x_no.y4m\n"
    table = [
        (HEAD + good + "x.y4m,y.png,./x_no.y4m\n", 64, "line 3: the output x_no.y4m is that of bad.csv: line 2, too"),
        (HEAD + good + "z.y4m,y.png,x.y4m\n", 64, "line 3: the output x.y4m is the input of bad.csv: line 2"),
        (HEAD + good + "z.y4m,y.png,y.png\n", 64, "line 3: the output y.png is the mask"),
        (HEAD + "x.y4m,y.png,x.y4m\n", 64, "line 2: the output x.y4m is the input itself"),
        (HEAD + good + "later.y4m,y.png,n.y4m\n\nx.y4m,y.png,later.y4m\n", 64, "line 5: the output later.y4m is the input of bad.csv: line 3"),
        (HEAD + "z.y4m,y.png,n.y4m\nx.y4m,y.png,hard.y4m\n", 64, "line 3: the output hard.y4m is the input of bad.csv: line 2"),
        (HEAD + "frames,y.png,n.y4m\nx.y4m,y.png,frames/%d.png\n", 64, "line 3: the output frames/%d.png is the input of bad.csv: line 2"),
        (HEAD + "x.y4m,y.png,bad.log.csv\n", 64, "the output bad.log.csv is the batch's log, too"),
        (HEAD + good + "x.y4m,y.png\n", 64, "line 3: has 2 cells, and there are 3 columns"),
        (HEAD + "x.y4m,y.png,a.y4m,4\n", 64, "line 2: has 4 cells"),
        (HEAD + ",y.png,a.y4m\n", 64, "line 2: the input is missing"),
        (HEAD + "x.y4m,y.png,\n", 64, "line 2: the output is missing"),
        (HEAD + "x.y4m,,a.y4m\n", 64, "line 2: what is to be removed is missing"),
        (HEAD + "-,y.png,a.y4m\n", 64, "standard streams"),
        ("input,mask,output,rech\n", 64, 'line 1: column: there is no option "rech"; the nearest is "reach"'),
        ("input,mask,output,reach\nx.y4m,y.png,n.y4m,abc\n", 64, 'line 2: reach: value "abc"'),
        ("input,mask,output,tile\n", 64, "column tile means nothing to inpaint"),
        ("input,mask,output,jobs\n", 64, "column jobs: that is of the whole batch"),
        ("input,mask,output,mask\n", 64, "column mask is there twice"),
        ("input,mask,output,\n", 64, "column 4 has no name"),
        ("input,mask\n", 64, "column output is missing"),
        ("input,output\nx.y4m,n.y4m\n", 64, "column mask is missing, or mask-box"),
        ("input;mask;output\n", 64, "separated by commas"),
        (HEAD, 64, "names columns and no job"),
        ("input,mask,output,ram\nx.y4m,y.png,n.y4m,900GiB\n", 64, "line 2: ram: 900GiB is more than"),
        ("", 65, "the table is empty"),
        (HEAD + 'x.y4m,"y.png,n.y4m\n', 65, "line 2: a quote is opened and never closed"),
        (HEAD + 'x.y4m,"y.png"x,n.y4m\n', 65, "line 2: something stands behind a closing quote"),
        (HEAD + 'x.y4m,y".png,n.y4m\n', 65, "line 2: a quote in the midst of a cell"),
        (HEAD + '"a\nb",y.png,n.y4m\nx.y4m,y".png,k.y4m\n', 65, "line 4: a quote in the midst"),
        (HEAD + "x.y4m,y\r.png,n.y4m\n", 65, "line 2: a carriage return"),
        (HEAD.encode() + b"x.y4m,\0,n.y4m\n", 65, "bytes of 0"),
        ("\ufeff".encode("utf-16-le") + HEAD.encode("utf-16-le"), 65, "UTF-16"),
    ]
    for text, code, says in table:
        write("bad.csv", text)
        _, err = batch("--batch", "bad.csv", *WORDS, code=code)
        expect("bad.csv: " in err and says in err, f"{text!r}: {err}")
    expect(not os.path.exists("bad.log.csv") and not os.path.exists("n.y4m") and not os.path.exists("x_no.y4m"), "something ran of a table that was refused")


def what_does_not_go_together():
    write("good.csv", HEAD + "x.y4m,y.png,good.y4m\n")
    for words, says in ((("x.y4m", "--batch", "good.csv"), "--batch says what is read already"), (("--batch", "good.csv", "-o", "n.y4m"), "stand in its table"),
                        (("--batch", "good.csv", "--video-dir", "."), "give one"), (("--batch", "good.csv", "--log", "l.csv"), "--log names one file"),
                        (("--batch", "good.csv", "--preview", "0"), "of one film"), (("x.y4m", "--jobs", "2"), "are of many films"),
                        (("--batch", "good.csv", "--batch-log", "x.y4m"), "the batch's log, too"), (("--batch", "good.csv", "--batch-log", "good.csv"), "the table"),
                        (("--video-dir", ".", "-o", "o/"), "--mask-dir DIR"), (("--video-dir", ".", "--mask-dir", "."), "-o OUTDIR/"),
                        (("--video-dir", ".", "--mask-dir", ".", "-o", "n.y4m"), "names a folder")):
        _, err = batch(*words, code=64)
        expect(says in err, f"{words}: {err}")
    batch("--batch", "none.csv", code=66)
    write("other.log", "a,b\n")
    _, err = batch("--batch", "good.csv", "--batch-log", "other.log", code=73)
    expect("other columns" in err, err)


def a_plan_runs_nothing():
    write("plan.csv", HEAD + "x.y4m,y.png,p1.y4m\nz.y4m,y.png,p2.y4m\nnone.y4m,y.png,p3.y4m\n")
    out, _ = batch("--batch", "plan.csv", *WORDS[:2], "--plan", "--ram", "200MiB", "--jobs", "2", code=65)
    lines = out.splitlines()
    expect(len(lines) == 5 and lines[0].split() == ["job", "peak", "time", "input"] and "none.y4m" in lines[3] and "2 at once, each of" in lines[4], out)
    out, _ = batch("--batch", "plan.csv", *WORDS[:2], "--plan", "--ram", "200MiB", "--jobs", "2", "--json", code=65)
    plans, end = events(out, "plan"), events(out, "batch")[0]
    peaks = [p["peak_bytes"] for p in plans if "peak_bytes" in p]
    expect(len(peaks) == 2 and end["peak_bytes"] == sum(peaks) and end["refused"] == 1 and 2 * end["share_bytes"] < 200 << 20, out)
    expect(not os.path.exists("p1.y4m") and not os.path.exists("plan.log.csv"), "a plan wrote something")


# ---- One budget ----------------------------------------------------------------------------------------------------------


def receipt(output):
    with open(output + ".tegula.json", encoding="utf-8") as f:
        return json.load(f)


def the_budget_is_that_of_all():
    """What jobs at once have together, and the batch itself, is within --ram, and so are the peaks; threads are divided."""
    ram = 64 << 20
    write("ram.csv", "input,mask,output,ram,threads\n" + "".join(f"x.y4m,y.png,r{k}.y4m,{'12MiB' if k == 3 else ''},{'3' if k == 3 else ''}\n" for k in range(4)))
    out, _ = batch("--batch", "ram.csv", *WORDS, "--jobs", "3", "--threads", "7", "--ram", f"{ram}KiB".replace(str(ram), str(ram >> 10)), "--json",
                   code=0)
    made, end = [receipt(f"r{k}.y4m") for k in range(4)], events(out, "batch")[0]
    expect(end["budget_bytes"] == ram and 3 * end["share_bytes"] < ram, end)
    expect([m["threads"] for m in made] == [2, 2, 2, 3], [m["threads"] for m in made])
    budgets = [m["budget_bytes"] for m in made]
    expect(max(budgets[:3]) <= end["share_bytes"] and budgets[3] == 12 << 20, f"{budgets} of {end}")
    peaks = sorted((int(r["peak_bytes"]) for r in log_of("ram.log.csv")), reverse=True)
    expect(SANITIZED or (sum(peaks[:3]) < ram and peaks[-1] > 0), peaks)
    _, err = batch("--batch", "ram.csv", *WORDS, "--jobs", "2", "--ram", "1MiB", code=71)
    expect("the batch itself takes" in err, err)


# ---- Folders -------------------------------------------------------------------------------------------------------------


def folders_go_together_by_name():
    for path in ("V/seq", "M", "one"):
        os.makedirs(path, exist_ok=True)
    for name in ("plain", "marked", "lonely"):
        film(f"V/{name}.y4m")
    shutil.copy("V/plain.y4m", "V/.hidden.y4m")
    write("V/notes.txt", "no film")
    for k in range(3):
        mask(f"V/seq/{k}.png")
    for name in ("plain", "marked_mask", "seq_mask", "extra"):
        mask(f"M/{name}.png")
    words = ("--video-dir", "V", "--mask-dir", "M", *WORDS)
    _, err = batch(*words, "-o", "OUT", code=65)
    expect("M/extra.png: a mask, and V has no film of that name" in err and "V/lonely.y4m: there is no mask" in err, err)
    rows = [(r["input"], r["output"], r["state"]) for r in log_of("OUT/batch.log.csv")]
    expect(sorted(rows)[:3] == [("V/lonely.y4m", "OUT/lonely.y4m", "failed"), ("V/marked.y4m", "OUT/marked.y4m", "done"), ("V/plain.y4m", "OUT/plain.y4m", "done")],
           rows)
    expect(len(rows) == 4 and ("V/seq", "OUT/seq.mp4") in [r[:2] for r in rows], rows)
    batch(*words, "-o", "deep/er/%s/f%d.png", code=65)
    expect(os.path.exists("deep/er/plain/f1.png") and os.path.exists("deep/er/batch.log.csv") and os.path.exists("deep/er/seq/f2.png"), "outputs by a pattern")
    mask("M/plain_mask.png")
    _, err = batch(*words, "-o", "OUT", code=64)
    expect("V/plain.y4m: has two masks" in err, err)
    batch("--video-dir", "V", "--mask-box", "3,3,8,8", *WORDS, "-o", "all/%s.y4m", code=0)
    expect(len(log_of("all/batch.log.csv")) == 4, "a box for all films")
    shutil.copy("V/plain.y4m", "V/plain.264")
    _, err = batch("--video-dir", "V", "--mask-box", "3,3,8,8", *WORDS, "-o", "all/%s.y4m", code=64)
    expect("is that of V/plain.264, too" in err or "is that of V/plain.y4m, too" in err, err)


def films_and_masks_may_lie_in_one_folder():
    film("one/a.y4m")
    film("one/a_mask.y4m")  # not 0 nearly everywhere
    film("one/b.y4m")
    mask("one/b.png")
    batch("--video-dir", "one", "--mask-dir", "one", "-o", "one_out/", *WORDS, code=0)
    expect(sorted(n for n in os.listdir("one_out") if n.endswith(".y4m")) == ["a.y4m", "b.y4m"], os.listdir("one_out"))


# ---- Kills and signals ---------------------------------------------------------------------------------------------------


SLOW = ("--method", "propagate", "--reach", "20")


def long_ones(n):
    """So many films that take a while, and what an undisturbed run makes of them; a table for others."""
    mask("long.png", 160, 96)
    for k in range(n):
        film(f"long{k}.y4m", 60, 160, 96, seed=17 * k)
    write("whole.csv", HEAD + "".join(f"long{k}.y4m,long.png,whole{k}.y4m\n" for k in range(n)))
    batch("--batch", "whole.csv", *SLOW, "-q", "--jobs", "2", code=0)


def table_for(name, n):
    for k in range(n):
        for end in ("", ".partial", ".journal", ".tegula.json"):
            if os.path.exists(f"{name}{k}.y4m{end}"):
                os.unlink(f"{name}{k}.y4m{end}")
    write(f"{name}.csv", HEAD + "".join(f"long{k}.y4m,long.png,{name}{k}.y4m\n" for k in range(n)))


def children_of(pid):
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/stat", encoding="utf-8", errors="replace") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(p))
        except OSError:
            pass
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def begun(name, n, words=(), least=1):
    """A batch that has begun to write, and its jobs' processes."""
    p = subprocess.Popen([TEGULA, "inpaint", "--batch", f"{name}.csv", *SLOW, "--jobs", "2", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, start_new_session=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and p.poll() is None:
        if sum(os.path.exists(f"{name}{k}.y4m.partial") and os.path.getsize(f"{name}{k}.y4m.partial") > 23000 for k in range(n)) >= least:
            break
        time.sleep(0.002)
    return p, children_of(p.pid)


def as_undisturbed(name, n):
    for k in range(n):
        expect(bytes_of(f"{name}{k}.y4m") == bytes_of(f"whole{k}.y4m"), f"{name}{k}.y4m: other bytes than undisturbed")


def killed_with_its_jobs(n=4):
    table_for("killed", n)
    p, jobs = begun("killed", n, least=2)
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    expect(p.returncode == -9 and len(jobs) == 2, f"{p.returncode}, {len(jobs)} jobs: nothing was left to kill")
    until = time.monotonic() + 5
    while any(map(is_alive, jobs)) and time.monotonic() < until:
        time.sleep(0.01)
    expect(not any(map(is_alive, jobs)), "jobs outlive their batch")
    batch("--batch", "killed.csv", *SLOW, "--jobs", "2", code=0)
    as_undisturbed("killed", n)


def one_job_is_killed(n=4):
    """As the kernel does where memory runs out: that one has failed, the others are done."""
    table_for("shot", n)
    p, jobs = begun("shot", n)
    os.kill(jobs[0], signal.SIGKILL)
    out, err = p.communicate(timeout=120)
    got = [s for s in states("shot.log.csv", n) if s[1] == "failed"]
    expect(p.returncode == 65 and len(got) == 1 and got[0][2] == 137, f"{p.returncode}: {out} {err} {states('shot.log.csv', n)}")
    expect("killed by signal 9 (as the kernel does where memory runs out)" in err, err)
    batch("--batch", "shot.csv", *SLOW, code=0)
    expect([s[1] for s in states("shot.log.csv", n)].count("was complete") == n - 1, states("shot.log.csv", n))
    as_undisturbed("shot", n)


def stopped_as_one_run_is(sig, n=4):
    table_for("stopped", n)
    if os.path.exists("stopped.log.csv"):
        os.unlink("stopped.log.csv")
    p, jobs = begun("stopped", n)
    os.killpg(p.pid, sig)  # a terminal's Ctrl-C is for the group
    out, err = p.communicate(timeout=120)
    rows = states("stopped.log.csv", len(log_of("stopped.log.csv")))
    expect(p.returncode == 128 + sig and "the same command goes on" in err, f"{sig}: {p.returncode}: {err}")
    expect(any(r[1:] == ("stopped", 128 + sig) for r in rows) and not any(r[1] == "failed" for r in rows) and "not begun" in out, f"{rows} {out}")
    expect(not any(map(is_alive, jobs)), "jobs go on after a stop")
    batch("--batch", "stopped.csv", *SLOW, "--jobs", "2", code=0)
    as_undisturbed("stopped", n)


def two_signals_end_it_at_once(n=4):
    table_for("twice", n)
    p, jobs = begun("twice", n)
    os.kill(p.pid, signal.SIGTERM)
    os.kill(p.pid, signal.SIGINT)
    p.communicate(timeout=60)
    time.sleep(0.2)
    expect(p.returncode != 0 and not any(map(is_alive, jobs)), f"{p.returncode}: {list(map(is_alive, jobs))}")
    batch("--batch", "twice.csv", *SLOW, "--jobs", "2", code=0)
    as_undisturbed("twice", n)


def every_job_is_killed_at_an_operation(n=3):
    """Each job dies on its own at an operation of its file; so often until nothing is left to do."""
    for at in (30, 45, 70):
        table_for("crash", n)
        batch("--batch", "crash.csv", *SLOW, "-q", code=65, TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")
        expect([s[1:] for s in states("crash.log.csv", n)] == [("failed", 137)] * n, states("crash.log.csv", n))
        batch("--batch", "crash.csv", *SLOW, "-q", code=0)
        as_undisturbed("crash", n)


def taken_by(pids):
    """What counts against a budget: RssAnon, RssShmem, VmSwap, VmPTE."""
    sum_ = 0
    for p in pids:
        try:
            with open(f"/proc/{p}/status", encoding="utf-8", errors="replace") as f:
                sum_ += sum(int(v.split()[0]) << 10 for k, _, v in (x.partition(":") for x in f) if k in ("RssAnon", "RssShmem", "VmSwap", "VmPTE"))
        except OSError:
            pass
    return sum_


def all_together_stay_within_the_budget(n=4):
    """The batch and its jobs, looked at again and again, with no more --ram than lets each of two run."""
    table_for("taken", n)
    _, err = batch("--batch", "taken.csv", *SLOW, "-q", "--jobs", "2", "--ram", "12MiB", code=65)
    need = int(err.split("give --ram ")[1].split("MiB")[0])
    ram = 2 * need + 8
    p = subprocess.Popen([TEGULA, "inpaint", "--batch", "taken.csv", *SLOW, "--jobs", "2", "--ram", f"{ram}MiB"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    most, two = 0, 0
    while p.poll() is None:
        jobs = children_of(p.pid)
        most, two = max(most, taken_by([p.pid, *jobs])), two + (len(jobs) == 2)
        time.sleep(0.003)
    expect(p.returncode == 0 and two > 3, f"{p.returncode}, seen {two} times at work: {p.stderr.read()}")
    expect(SANITIZED or need << 20 < most < ram << 20, f"{most} bytes taken together of --ram {ram}MiB, each needs {need} MiB")
    as_undisturbed("taken", n)
    print(f"  two jobs and their batch: {most / (1 << 20):.1f} MiB at most of {ram}", flush=True)


def tables_of_random_bytes(n=150):
    """Refused or run, never a crash; 64, 65, or what a job of a name that is not there ends in."""
    rng = random.Random(5)
    film("r.y4m", 1)
    good = b'input,mask,output,mask-box,reach\r\n"r.y4m",y.png,q1.y4m,,\r\nr.y4m,,"q 2.y4m","1,1,4,4",7\r\n'
    codes = {}
    for i in range(n):
        text = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(text))
            how = rng.randrange(3)
            if how == 0:
                text[at] = rng.choice(b'",\r\n\0%;/ax-\xff')
            elif how == 1:
                del text[at:at + rng.randrange(1, 9)]
            else:
                text[at:at] = bytes(rng.choice(b'",\n\r ab.') for _ in range(rng.randrange(1, 5)))
        write("random.csv", bytes(text))
        r = subprocess.run([TEGULA, "inpaint", "--batch", "random.csv", "--plan", *WORDS], capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                           check=False)
        codes[r.returncode] = codes.get(r.returncode, 0) + 1
        expect(r.returncode in (0, 64, 65), f"seed 5, table {i} {bytes(text)!r}: {r.returncode}: {r.stderr}")
    expect(codes.get(64, 0) > 10 and codes.get(65, 0) > 10, codes)
    print(f"  random tables: {codes}", flush=True)


def quick(_):
    one_that_fails_costs_the_others_nothing()
    a_rerun_does_what_is_missing()
    what_is_complete_is_of_the_same_settings_and_input()
    frames_beside_films_and_larger_frames()
    skip_done_is_for_one_film_too()
    what_a_table_may_not_say()
    what_does_not_go_together()
    a_plan_runs_nothing()
    the_budget_is_that_of_all()
    folders_go_together_by_name()
    films_and_masks_may_lie_in_one_folder()


def more(_):
    long_ones(4)
    killed_with_its_jobs()
    one_job_is_killed()
    for sig in (signal.SIGINT, signal.SIGTERM):
        stopped_as_one_run_is(sig)
    two_signals_end_it_at_once()
    every_job_is_killed_at_an_operation()
    all_together_stay_within_the_budget()
    mask("y.png")
    tables_of_random_bytes()


if __name__ == "__main__":
    sys.exit(in_folder(more if sys.argv[4:] == ["more"] else quick, samples=False))
