"""tegula mem --watch --csv FILE, killed: every line is whole, and a second watch goes on there.

usage: mem_watch.py TEGULA MACHINE (a folder with the files of a made-up machine)
"""
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time


def watch(args, path, how):
    """Let it run until there are some rows, then send the signal; returns the exit code."""
    child = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    before = os.path.getsize(path) if os.path.exists(path) else 0
    for _ in range(1000):
        time.sleep(0.01)
        if os.path.exists(path) and os.path.getsize(path) > before + 2000:
            break
    child.send_signal(how)
    return child.wait(timeout=30)


def main():
    tegula, machine = sys.argv[1:3]
    wrong = []
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "m.csv")
        args = [tegula, "mem", "--root", machine, "--watch", "1ms", "-q", "--csv", path]
        killed = watch(args, path, signal.SIGKILL)
        asked = watch(args, path, signal.SIGTERM)
        if killed != -signal.SIGKILL or asked != 0:
            wrong.append(f"exit {killed} and {asked}, expected -9 and 0")
        with open(path, encoding="ascii") as f:
            text = f.read()
    rows = list(csv.DictReader(text.splitlines()))
    if not text.endswith("\n") or text.count("time,seconds") != 1 or len(rows) < 10:
        wrong.append(f"{len(rows)} rows, not whole lines below one header")
    for row in rows:
        if row["total_bytes"] != str(16 << 30) or row["free_bytes"] != str(13 << 28) or \
                None in row or None in row.values():
            wrong.append(f"row {row}")
            break
    print(*wrong, f"{len(rows)} rows, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
