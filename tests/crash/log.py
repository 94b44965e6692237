"""kill -9 at random moments of a run with --log: every whole line of the log is a row, the run that
goes on appends to it, and what is left can be drawn at any time.

    log.py TEGULA SOURCE_DIR [MOMENTS]

Rows come every millisecond, so that kills fall beside and into writes. Each kill is followed by a
run that goes on (or begins, when the kill came before the journal: then the log is begun anew)."""
import os
import signal
import time

from crashlib import Job, check, main, picture


def rows_of(path, what):
    """The rows of a log: lists of text, one per whole line; fails when one is not a row."""
    with open(path, "rb") as f:
        text = f.read()
    lines = text.split(b"\n")
    torn = lines.pop()  # what stands behind the last newline
    check(lines, "%s: no header" % what)
    header = lines[0].decode().split(",")
    rows = []
    last = -1.0
    for number, line in enumerate(lines[1:], 2):
        fields = line.decode().split(",")
        check(len(fields) == len(header), "%s: line %d has %d fields" % (what, number, len(fields)))
        row = dict(zip(header, fields))
        check(float(row["seconds"]) >= last, "%s: line %d: time goes back" % (what, number))
        last = float(row["seconds"])
        numbers = {k: int(v) for k, v in row.items() if k.endswith("_bytes") or k == "tile"}
        check(numbers["measured_bytes"] == sum(numbers[k + "_bytes"] for k in (
            "anonymous", "shared", "swapped", "page_table")), "%s: line %d: no sum" % (what, number))
        check(numbers["peak_bytes"] >= numbers["measured_bytes"], "%s: line %d: peak" % (what, number))
        rows.append(row)
    return rows, torn


def test(lab, rest):
    moments = int(rest[0]) if rest else 8
    image = picture(lab.path("noisy.tif"), 640, 512)
    log, drawing = lab.path("memory.csv"), lab.path("memory.svg")
    job = Job(lab, "logged", ["run", "-m", lab.denoiser, image, "--ram", "64MiB", "--tile", "64x64",
                              "--log", log, "--log-interval", "1ms"], needs_stats=False)
    job.learn()
    check(len(rows_of(log, "undisturbed")[0]) > 5, "too few rows")
    killed = appended = torn_ends = 0
    seconds = job.seconds
    for moment in range(4 * moments):  # on a machine that was busier before, runs end too soon
        if killed >= moments and appended:
            break
        what = "moment %d" % moment
        job.clean()
        if os.path.exists(log):
            os.unlink(log)
        p = job.start()
        time.sleep(lab.rng.uniform(0.2, 1.0) * seconds)
        p.send_signal(signal.SIGKILL)
        if lab.wait(p).code != -9:
            seconds *= 0.8
            continue
        if not os.path.exists(log):
            continue
        if os.path.getsize(log) == 0:  # killed between creating it and the header
            continue
        killed += 1
        before, torn = rows_of(log, what)
        torn_ends += torn != b""
        if before:
            r = lab.run(["plot", log, "-o", drawing, "-y"])
            check(r.code == 0, "%s: cannot be drawn: %s" % (what, r))
        goes_on = job.slot() is not None and os.path.exists(job.out + ".partial")
        if job.finish(what, more=["--plot=" + drawing]) is None:
            continue
        after, torn = rows_of(log, what + ", went on")
        check(torn == b"", "%s: the finished log has no end" % what)
        check(after[-1]["phase"] == "finish", "%s: ends in phase %s" % (what, after[-1]["phase"]))
        if goes_on:
            check(after[:len(before)] == before, "%s: earlier rows are gone" % what)
            check(len(after) > len(before), "%s: nothing was appended" % what)
            appended += 1
        with open(drawing, encoding="utf-8") as f:
            check(f.read().endswith("</svg>\n"), "%s: --plot drew nothing" % what)
    check(killed >= moments // 3 and appended >= 1,
          "only %d kills landed, %d logs were continued" % (killed, appended))
    print("%d kills, %d logs continued, %d ends torn" % (killed, appended, torn_ends))


if __name__ == "__main__":
    import sys
    main(test, sys.argv, in_memory=True)
