"""Run a command and take the peak of its memory from outside, as the project defines it:
the maximum over the run of RssAnon + RssShmem + VmSwap + VmPTE in /proc/PID/status."""
import json
import os
import subprocess
import time

FIELDS = (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:")
EVERY = 0.003  # seconds


def held(pid):
    """Bytes that the process holds now; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", "rb") as f:
            text = f.read()
    except OSError:
        return 0
    kb = 0
    for line in text.splitlines():
        if line.startswith(FIELDS):
            kb += int(line.split()[1])
    return kb * 1024


class Run:
    """What a finished command did: code, done (the last line of --json), stderr, peak, seconds."""


def run(args, env=None, limit=600, before=None):
    start = time.monotonic()
    p = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, env=env, preexec_fn=before)
    peak, gap, last = 0, 0.0, start
    out, err = [], []
    os.set_blocking(p.stdout.fileno(), False)
    os.set_blocking(p.stderr.fileno(), False)
    while p.poll() is None:
        peak = max(peak, held(p.pid))
        now = time.monotonic()
        gap, last = max(gap, now - last), now
        for stream, kept in ((p.stdout, out), (p.stderr, err)):
            kept.append(stream.read() or b"")
        if now - start > limit:
            p.kill()
        time.sleep(EVERY)
    r = Run()
    r.seconds = time.monotonic() - start
    r.code, r.peak, r.gap = p.returncode, peak, gap
    r.stdout = b"".join(out) + (p.stdout.read() or b"")
    r.stderr = (b"".join(err) + (p.stderr.read() or b"")).decode("utf-8", "replace")
    r.done = {}
    for line in r.stdout.splitlines():
        event = json.loads(line) if line.startswith(b"{") else {}
        if event.get("event") == "done":
            r.done = event
    return r
