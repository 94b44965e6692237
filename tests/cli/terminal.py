#!/usr/bin/env python3
"""What needs a terminal, a signal or a full disk: progress on a pty, Ctrl-C, /dev/full, the manual."""
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import fcntl

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
RUN = [PROGRAM, "run", "-m", "m.onnx"]
failures = 0


def check(ok, what):
    global failures
    print(("ok   " if ok else "FAIL ") + what)
    failures += not ok


def on_terminal(args, columns, **env):
    """Run with stderr on a terminal of that width; returns what was drawn."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    base = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=child, env={**base, "TERM": "xterm", **env})
    drawn = b""
    # Our own copy of `child` stays open until all is read: where the last one is closed, a reader may be told of
    # that before it has what was written just before.
    while True:
        ended = p.poll() is not None
        if select.select([parent], [], [], 0 if ended else 0.05)[0]:
            drawn += os.read(parent, 65536)
        elif ended:
            break
    p.communicate()
    os.close(child)
    os.close(parent)
    return p.returncode, drawn.decode()


def frames(drawn):
    return [f for f in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*m", "", drawn)) if f.strip()]


def test_the_line_is_redrawn_and_fits_the_terminal():
    for columns in (200, 80, 40, 20):
        code, drawn = on_terminal(RUN + ["a.tif", "-o", "o.tif"], columns)
        shown = [f for f in frames(drawn) if not f.startswith("plan:")]
        check(code == 0 and len(shown) == 12, f"twelve reports are drawn at {columns} columns")
        check(all(len(f) < columns for f in shown), f"no line reaches column {columns}")
        check("\x1b" not in drawn, "no colour while memory is inside the budget")
    code, drawn = on_terminal(RUN + ["a.tif", "-o", "o.tif"], 200)
    check("run 50 %, 30 s left, memory 405.00 MiB of 1.00 GiB, 6 of 12 tiles, 0.2/s" in drawn,
          "a wide line has phase, percent, time left, memory, tiles and rate")
    check(drawn.endswith("\r"), "the line is removed at the end")
    code, drawn = on_terminal(RUN + ["film.mp4", "-o", "o.mp4"], 200)
    check("run 50 %, 30 s left, 60 of 120 frames, 2.0 fps, memory 405.00 MiB of 1.00 GiB" in drawn and "tiles" not in drawn,
          "of a film frames and their rate, no tiles")
    code, drawn = on_terminal(RUN + ["-", "-o", "o.y4m"], 200)
    check("run, 30 s left, 60 frames, 2.0 fps" in drawn and "%" not in drawn, "of a pipe frames, and no share of an unknown whole")


def test_a_dumb_terminal_gets_plain_lines():
    code, drawn = on_terminal(RUN + ["a.tif", "-o", "o.tif"], 80, TERM="dumb")
    check(code == 0 and "run 50 %" in drawn and not re.search(r"\r(?!\r*\n)", drawn), "plain lines, nothing redrawn")


def test_signals_stop_with_their_exit_code():
    for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        p = subprocess.Popen(RUN + ["slow.tif", "-o", "o.tif", "--json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.readline()  # the plan: from here on the job runs
        p.stdout.readline()  # the first progress event
        p.send_signal(sig)
        out, err = p.communicate(timeout=20)
        last = json.loads(out.splitlines()[-1])
        check(p.returncode == code, f"{sig.name} exits {code} (got {p.returncode})")
        check(last["status"] == "TG_E_CANCELLED" and last["exit"] == code, "and says so on stdout")
        check(b"the same command continues" in err, "and on stderr")


def test_the_second_signal_kills():
    p = subprocess.Popen(RUN + ["stuck.tif", "-o", "o.tif", "--json"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    p.stderr.readline(), p.stderr.readline(), p.stderr.readline()  # plan, empty, "stopping"
    check(p.poll() is None, "the first Ctrl-C asks")
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    check(p.returncode == -signal.SIGINT, "the second one ends it at once")


def test_ignored_signals_stay_ignored():
    p = subprocess.Popen(RUN + ["slow.tif", "-o", "o.tif", "--json"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p.stdout.readline(), p.stdout.readline()
    p.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    check(p.poll() is None, "SIGHUP under nohup does not stop a run")
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=20)


def test_every_json_line_parses():
    for args in (["info", "a.tif", "b\xff\n.tif"], ["plan", "-m", "m", "a.tif", "--why"],
                 ["run", "-m", "m", "warns.tif", "-o", "\"\\\n.tif"], ["verify", "-m", "m", "a.tif"],
                 ["copy", "a.tif", "-o", "b.tif"], ["preview", "-m", "m", "a.tif", "-o", "p.png"], ["version"]):
        raw = [os.fsencode(PROGRAM)] + [a.encode("latin-1") for a in args] + [b"--json"]
        p = subprocess.run(raw, capture_output=True, timeout=20)
        events = [json.loads(line) for line in p.stdout.decode("utf-8").splitlines()]
        check(p.returncode == 0 and events and all("event" in e for e in events), f"{args[0]}: {len(events)} events")


def test_done_has_the_promised_keys():
    p = subprocess.run(RUN + ["a.tif", "-o", "o.tif", "--json"], capture_output=True, timeout=20)
    done = json.loads(p.stdout.splitlines()[-1])
    want = {"predicted_peak_bytes", "measured_peak_bytes", "seconds", "compute_seconds", "megapixels_per_second",
            "tiles", "bands", "recomputed_fraction", "bands_seconds", "stall_read_seconds", "stall_write_seconds",
            "convert_seconds", "processor_seconds"}
    check(done["event"] == "done" and want <= set(done), "done has every promised key")
    check(done["seconds"] == 252.25 and done["tiles"] == 10, "with the library's values")


def test_a_full_disk_behind_stdout_is_no_success():
    with open("/dev/full", "wb") as full:
        p = subprocess.run([PROGRAM, "plan", "-m", "m", "a.tif"], stdout=full, stderr=subprocess.PIPE, timeout=20)
    check(p.returncode == 74 and b"standard output" in p.stderr, "exit 74 when stdout cannot be written")


def test_the_manual_is_what_the_table_says():
    p = subprocess.run([PROGRAM, "help", "--man"], capture_output=True, timeout=20)
    with open(os.path.join(SOURCE, "docs", "tegula.1"), "rb") as f:
        kept = f.read()
    check(p.stdout == kept, "docs/tegula.1 is current; else: tegula help --man > docs/tegula.1")
    check(kept.count(b".TP") > 40, "and has a paragraph per option and status")


def test_no_help_is_cut():
    """Every sentence of the table, whole, in the manual and in the help of some verb."""
    with open(os.path.join(SOURCE, "engine", "settings", "opts_list.h")) as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    with open(os.path.join(SOURCE, "docs", "tegula.1")) as f:
        manual = f.read().replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
    verbs = re.findall(r"^  tegula (\w+)", subprocess.run([PROGRAM, "--help"], capture_output=True, text=True).stdout, re.M)
    spoken = "\n".join(" ".join(subprocess.run([PROGRAM, v, "--help"], capture_output=True, text=True).stdout.split())
                       for v in verbs)
    longest = []
    for row in re.findall(r"^TGI_OPT\((.*?)\)\s*(?=^TGI_OPT\(|^#|\Z)", text, re.S | re.M):
        last = re.search(r'((?:"(?:[^"\\]|\\.)*"\s*)+)$', row).group(1)  # the pieces of one string
        sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', last)).replace('\\"', '"').replace("\\\\", "\\")
        longest.append(len(sentence))
        check(sentence in manual, f"the manual has all of: {sentence[:40]}")
        check(" ".join(sentence.split()) in spoken, f"--help has all of: {sentence[:40]}")
    check(len(longest) > 60 and max(longest) > 400, f"{len(longest)} rows, the longest has {max(longest)}")


def test_help_lists_every_verb():
    p = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=20)
    verbs = ("info", "plan", "run", "preview", "verify", "copy", "version", "help")
    check(p.returncode == 0 and all(f"tegula {v}" in p.stdout for v in verbs), "tegula --help")
    none = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=20)
    check(none.returncode == 64 and none.stderr == p.stdout and not none.stdout, "no verb: the same on stderr, 64")
    for v in verbs:
        h = subprocess.run([PROGRAM, v, "--help"], capture_output=True, text=True, timeout=20)
        check(h.returncode == 0 and h.stdout.startswith(f"tegula {v}") and
              all(len(x) <= 80 for x in h.stdout.splitlines()), f"tegula {v} --help fits 80 columns")


for name, function in sorted(globals().items()):
    if name.startswith("test_"):
        function()
print(f"{failures} failed")
sys.exit(1 if failures else 0)
